//! Signals, in one place. SIGINT, SIGTERM and SIGHUP ask the run to end and report, the second of them ends the program;
//! SIGUSR1 asks how the run is doing.
//!
//! A command begins with nothing to lose, and a signal then ends the program at once. From [`watch`] on there is a run that
//! is asked to stop. The wait is bounded: a reader that does not read, and a wait that nobody thought of, are given
//! a time.
//!
//! The thread that takes the signals never writes and never waits for a lock that a writer holds: a terminal that was
//! stopped with Ctrl-S, or a full pipe, would make it deaf.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use fathom_runner::StopHandle;
use fathom_sys::clock::monotonic_ns;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::exit::{Complaint, Exit};
use crate::output;

const WATCHED: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGUSR1];

/// A program that was asked to end is looked at this often, and ended after so many looks: that is more than the runner and
/// whoever follows a run give a device that does not answer.
const LOOK: Duration = Duration::from_millis(250);
const LOOKS: u32 = 32;
/// The same where all of these looks find it in one and the same write.
const LOOKS_AT_A_WRITE: u32 = 5;
/// Signals that are less apart were sent by one and the same wish.
const APART_NS: u64 = 200_000_000;
/// Last words are given this long.
const WORDS_PATIENCE: Duration = Duration::from_millis(200);

/// How the run is doing, as a line.
type Status = Box<dyn Fn() -> String + Send>;

/// What a signal does.
struct Manners {
    /// Who is asked to stop.
    stop: StopHandle,
    /// The message where it takes longer.
    words: &'static str,
    /// The program is not ended where it takes longer: others that it waits for have more time.
    is_patient: bool,
}

/// The watching of this process.
pub struct SignalWatch {
    forced: Exit,
    /// Takes the number that the program ends with.
    end: Sender<u8>,
    is_installed: AtomicBool,
    caught: AtomicI32,
    /// When that was, ns of the monotonic clock.
    caught_at: AtomicU64,
    has_hung_up: AtomicBool,
    /// `None` while nothing is lost by ending at once.
    manners: Mutex<Option<Manners>>,
    status: Mutex<Option<Status>>,
    is_status_wanted: AtomicBool,
}

static WATCH: OnceLock<SignalWatch> = OnceLock::new();

/// Begins to watch for signals, and to take EFBIG for SIGXFSZ. Whatever is asked to end before it can be is ended by sending the
/// number of `forced` to `end`. What was ignored when the program was started (`nohup`) stays ignored, but for SIGINT in fio's
/// place: fio takes it where a shell has started it in the background, and scripts end it so. Where the handlers cannot be
/// installed, [`watch`] says so when it comes to a run.
pub fn start(forced: Exit, end: Sender<u8>) {
    let watch = WATCH.get_or_init(|| SignalWatch {
        forced,
        end,
        is_installed: AtomicBool::new(false),
        caught: AtomicI32::new(0),
        caught_at: AtomicU64::new(0),
        has_hung_up: AtomicBool::new(false),
        manners: Mutex::new(None),
        status: Mutex::new(None),
        is_status_wanted: AtomicBool::new(false),
    });
    let _ = watch.install();
}

/// From now on a signal asks `stop`; a second one ends the program, for a run that is stuck in the kernel.
///
/// # Errors
/// The handlers cannot be installed.
pub fn watch(stop: StopHandle) -> io::Result<&'static SignalWatch> {
    watch_saying(stop, "stopped immediately; completed tests are kept")
}

/// As [`watch`]; a program that is ended is ended with `words`.
///
/// # Errors
/// The handlers cannot be installed.
pub fn watch_saying(stop: StopHandle, words: &'static str) -> io::Result<&'static SignalWatch> {
    watch_with(Manners { stop, words, is_patient: false })
}

/// As [`watch_saying`]; only a second signal ends the program where it takes longer: a process that it waits for has its own limits.
///
/// # Errors
/// The handlers cannot be installed.
pub fn watch_patiently(stop: StopHandle, words: &'static str) -> io::Result<&'static SignalWatch> {
    watch_with(Manners { stop, words, is_patient: true })
}

fn watch_with(manners: Manners) -> io::Result<&'static SignalWatch> {
    let watch = WATCH.get().ok_or(io::ErrorKind::NotFound)?;
    watch.install()?;
    *lock(&watch.manners) = Some(manners);
    Ok(watch)
}

/// True once the terminal, or the connection to it, is gone.
pub fn has_hung_up() -> bool {
    WATCH.get().is_some_and(|watch| watch.has_hung_up.load(Ordering::Acquire))
}

/// What to do where they cannot be watched for: that takes a few descriptors.
pub fn hint(error: &io::Error) -> Option<String> {
    let too_many = matches!(error.raw_os_error(), Some(23 | 24));
    too_many.then(|| "raise the number of open files (ulimit -n)".to_owned())
}

/// That they cannot be watched for, to a user of our own commands.
pub fn unwatched(error: io::Error) -> Complaint {
    Complaint::failed(format!("cannot watch for signals: {}", output::plain(&error)), hint(&error))
}

impl SignalWatch {
    /// Installs the handlers where that has not been done.
    fn install(&'static self) -> io::Result<()> {
        if self.is_installed.load(Ordering::Acquire) {
            return Ok(());
        }
        fathom_sys::signals::ignore_file_size_limit();
        let is_fio = self.forced == Exit::FioInterrupted;
        let is_watched = |signal: &i32| {
            (is_fio && *signal == SIGINT) || !fathom_sys::signals::is_ignored(*signal).unwrap_or(false)
        };
        let watched: Vec<i32> = WATCHED.into_iter().filter(is_watched).collect();
        let mut signals = Signals::new(&watched)?;
        // The thread that calls may get stuck in a request to a device, and with it every signal it would take.
        fathom_sys::signals::block(&watched)?;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            // These are signals, so it cannot fail.
            let _ = fathom_sys::signals::unblock(&watched);
            // Most users may not; then a signal is late if thousands of workers compute.
            let _ = fathom_sys::thread::run_first();
            signals.forever().for_each(|signal| self.take(signal));
        })?;
        self.is_installed.store(true, Ordering::Release);
        Ok(())
    }

    /// The signal that asked for the end, if one did.
    pub fn number(&self) -> Option<i32> {
        Some(self.caught.load(Ordering::Acquire)).filter(|&number| number != 0)
    }

    /// What SIGUSR1 is answered with from now on, on standard error.
    pub fn answer_status(&self, status: impl Fn() -> String + Send + 'static) {
        *lock(&self.status) = Some(Box::new(status));
    }

    /// True where SIGUSR1 came since this was last asked: for who answers in another way than by a line.
    pub fn takes_status_request(&self) -> bool {
        self.is_status_wanted.swap(false, Ordering::AcqRel)
    }

    fn take(&'static self, signal: i32) {
        if signal == SIGUSR1 {
            self.is_status_wanted.store(true, Ordering::Release);
            // Its own thread may wait for whoever draws or writes.
            let _ = std::thread::Builder::new().name("status".to_owned()).spawn(|| self.tell_status());
            return;
        }
        if signal == SIGHUP {
            self.has_hung_up.store(true, Ordering::Release);
        }
        let manners = lock(&self.manners);
        let words = manners.as_ref().map_or("", |manners| manners.words);
        if self.caught.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // A shell hands on the hang-up that the kernel has sent already, systemd sends one after SIGTERM, and
            // `timeout` sends its signal to the program and at once to the group of the program as well.
            let since_ns = monotonic_ns().saturating_sub(self.caught_at.load(Ordering::Acquire));
            if signal != SIGHUP && since_ns >= APART_NS {
                self.leave(words);
            }
            return;
        }
        self.caught_at.store(monotonic_ns(), Ordering::Release);
        fathom_history::hurry();
        let Some(manners) = &*manners else { return self.leave(words) };
        manners.stop.request(&format!("signal {signal}"));
        if !manners.is_patient {
            self.end_soon(words);
        }
    }

    fn tell_status(&self) {
        let line = lock(&self.status).as_ref().map(|status| status());
        if let Some(line) = line {
            output::warn(&line);
        }
    }

    /// Ends the program, with `words`, where it does not end by itself.
    fn end_soon(&'static self, words: &'static str) {
        let wait = move || {
            let (mut write, mut looks) = (None, 0);
            for _ in 0..LOOKS {
                // Nobody sends: this waits for the time alone.
                let (_sender, never) = channel::<()>();
                let _ = never.recv_timeout(LOOK);
                let now = output::write_under_way();
                looks = if now.is_some() && now == write { looks + 1 } else { 0 };
                write = now;
                if looks >= LOOKS_AT_A_WRITE {
                    break;
                }
            }
            self.leave(words);
        };
        if std::thread::Builder::new().name("deadline".to_owned()).spawn(wait).is_err() {
            self.leave(words);
        }
    }

    /// Ends the program, with `words` unless standard error is redirected.
    fn leave(&self, words: &'static str) {
        let (given, is_said) = channel();
        let say = move || {
            if !words.is_empty() {
                output::warn(words);
            }
            let _ = given.send(());
        };
        if std::thread::Builder::new().name("last-words".to_owned()).spawn(say).is_ok() {
            let _ = is_said.recv_timeout(WORDS_PATIENCE);
        }
        // Nobody listens where the program ends by itself.
        let _ = self.end.send(self.forced.number());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
