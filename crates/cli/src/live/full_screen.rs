//! The full-screen view on a terminal: its thread, its keys, and the terminal as it was when it ends.
//!
//! Draws from the state at most four times a second, on a thread of low priority. Whatever else is written to the terminal is
//! held back until the view has ended.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use fathom_model::units::UnitSystem;
use fathom_report::live::LiveState;
use fathom_sys::priority::set_nice;
use signal_hook::consts::{SIGQUIT, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::hub::Hub;
use super::view::{self, Canvas, Look, ViewOptions};
use super::{NICE, NextKey};
use crate::keys::{self, KeyWatch};
use crate::output;
use crate::output::diversion::{self, Standard};

/// Time between two looks at the state.
const LOOK: Duration = Duration::from_millis(250);
/// Tries, a fiftieth of a second apart, to have the terminal to oneself before it is restored all the same.
const TRIES: usize = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// Time for a terminal to be restored as the program ends.
const END_PATIENCE: Duration = Duration::from_millis(1500);
/// The signals that take the terminal away from a program that goes on or ends.
const TAKING: [i32; 2] = [SIGTSTP, SIGQUIT];

/// The alternate screen, without a cursor; and back.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[0m\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// The reason that a test ended early has in its record.
const NEXT_TEST: &str = "ended early by key: next test";

/// Whether the view has the terminal. Held while it is written to.
static HAS_TERMINAL: Mutex<bool> = Mutex::new(false);
/// The same without waiting for a write, for who restores it.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);
/// What was written to the terminal meanwhile.
static HELD: Mutex<Vec<(Standard, Vec<u8>)>> = Mutex::new(Vec::new());

/// What the keys choose.
#[derive(Default)]
struct Chosen {
    /// The state that is shown instead of the latest.
    paused: Option<Box<LiveState>>,
    shows_help: bool,
    redraws: bool,
    /// The device of a monitor whose figures are shown; `None` = the one that has done most.
    device: Option<String>,
}

/// A view that has the terminal as long as this lives.
pub struct FullScreen {
    has_ended: Arc<AtomicBool>,
    _keys: KeyWatch,
}

/// What a view shows and does.
pub struct ViewSource {
    /// The state.
    pub hub: Arc<Hub>,
    /// What the key for the next does.
    pub next: NextKey,
    /// Units of rates and amounts.
    pub units: UnitSystem,
}

/// Why there is no view here; `None` where there can be one.
pub fn obstacle() -> Option<&'static str> {
    if std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
        return Some("the terminal cannot place its cursor (TERM is dumb or not set)");
    }
    (!keys::has_person()).then_some("standard input and standard error are not both this terminal")
}

impl FullScreen {
    /// Takes the terminal and draws `source` on it.
    ///
    /// # Errors
    /// There is no terminal, or no thread.
    pub fn open(source: ViewSource) -> io::Result<FullScreen> {
        let chosen: Arc<Mutex<Chosen>> = Arc::default();
        let has_ended = Arc::new(AtomicBool::new(false));
        let (hub, next, choices) = (source.hub.clone(), source.next.clone(), chosen.clone());
        let keys = keys::watch_for(move |key| act(key, &hub, &next, &choices));
        let keys = keys.ok_or(io::ErrorKind::NotConnected)?;
        // From here on the terminal is restored wherever this ends.
        let screen = FullScreen { has_ended: has_ended.clone(), _keys: keys };
        enter();
        hold_back(source.hub.clone());
        watch_signals(chosen.clone())?;
        let draw = move || draw_until(&has_ended, &source, &chosen);
        std::thread::Builder::new().name("view".to_owned()).spawn(draw)?;
        Ok(screen)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Release);
        restore();
    }
}

/// Gives the terminal back as it was, if a view has it, and writes what was held back. Also called where the program ends early or
/// panics.
pub fn restore() {
    if leave() {
        diversion::end();
        let held = std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner));
        for (stream, bytes) in held {
            let _ = output::write_directly(stream, &bytes);
        }
    }
}

/// As [`restore`], for a program that ends: a terminal that takes no output is waited for a limited time.
pub fn restore_soon() {
    if !IS_ENTERED.load(Ordering::Acquire) {
        return;
    }
    let (given, is_restored) = channel();
    let restore = move || {
        restore();
        let _ = given.send(());
    };
    if std::thread::Builder::new().name("restore".to_owned()).spawn(restore).is_ok() {
        let _ = is_restored.recv_timeout(END_PATIENCE);
    }
}

/// Keeps what is written to the terminal until the view has ended; messages show in the view.
fn hold_back(hub: Arc<Hub>) {
    let (stdout, stderr) = (output::stdout_is_seen(), output::stderr_is_seen());
    diversion::divert(move |stream, bytes| {
        let is_seen = if stream == Standard::Output { stdout } else { stderr };
        if is_seen {
            HELD.lock().unwrap_or_else(PoisonError::into_inner).push((stream, bytes.to_vec()));
        }
        if stream == Standard::Error {
            let text = String::from_utf8_lossy(bytes).into_owned();
            hub.change(None, |state| text.lines().for_each(|line| state.add_message(line)));
        }
        is_seen
    });
}

fn act(key: u8, hub: &Hub, next: &NextKey, chosen: &Mutex<Chosen>) {
    let mut chosen = lock(chosen);
    match key {
        b'q' => keys::interrupt(),
        b'p' | b' ' => {
            chosen.paused = match chosen.paused {
                Some(_) => None,
                None => Some(Box::new(hub.state().clone())),
            }
        }
        b'n' => match next {
            NextKey::Nothing => {}
            NextKey::EndTest(control) => {
                control.end_phase(NEXT_TEST);
            }
            NextKey::ShowDevice => {
                let after = |state: &LiveState| state.monitor.as_ref()?.after(chosen.device.as_deref());
                let next = chosen.paused.as_deref().map_or_else(|| after(&hub.state()), after);
                chosen.device = next;
            }
        },
        b'?' | b'h' => chosen.shows_help = !chosen.shows_help,
        b'r' => chosen.redraws = true,
        _ => {}
    }
}

fn lock(chosen: &Mutex<Chosen>) -> MutexGuard<'_, Chosen> {
    chosen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws what has changed until the view has ended or its terminal is gone.
fn draw_until(has_ended: &AtomicBool, source: &ViewSource, chosen: &Mutex<Chosen>) {
    // The measurement has the CPUs first; without the right to lower it, it stays as it is.
    let _ = set_nice(NICE);
    let look = Look { colour: output::colours_wanted(), unicode: output::is_utf8() };
    let Ok(mut terminal) = output::stderr_file() else { return };
    let mut before: Option<Canvas> = None;
    let mut drawn = None;
    while !has_ended.load(Ordering::Acquire) {
        let now = Drawn::of(source, chosen);
        if std::mem::take(&mut lock(chosen).redraws) {
            (before, drawn) = (None, None);
        }
        if drawn.as_ref() != Some(&now) {
            drawn = Some(now);
            let canvas = canvas_of(source, chosen, look);
            let bytes = canvas.bytes_after(before.as_ref());
            let has_terminal = HAS_TERMINAL.lock().unwrap_or_else(PoisonError::into_inner);
            if *has_terminal && terminal.write_all(&bytes).is_err() {
                return;
            }
            before = has_terminal.then_some(canvas);
        }
        std::thread::park_timeout(LOOK);
    }
}

/// What a screen shows: the same shows the same.
#[derive(Clone, PartialEq, Eq)]
struct Drawn {
    version: u64,
    size: (usize, usize),
    is_paused: bool,
    shows_help: bool,
    device: Option<String>,
}

impl Drawn {
    fn of(source: &ViewSource, chosen: &Mutex<Chosen>) -> Drawn {
        let chosen = lock(chosen);
        let version = match &chosen.paused {
            Some(state) => state.version,
            None => source.hub.state().version,
        };
        let (is_paused, shows_help) = (chosen.paused.is_some(), chosen.shows_help);
        let device = chosen.device.clone();
        Drawn { version, size: output::stderr_size(), is_paused, shows_help, device }
    }
}

/// The screen as it is to be now.
fn canvas_of(source: &ViewSource, chosen: &Mutex<Chosen>, look: Look) -> Canvas {
    let chosen = lock(chosen);
    let options = ViewOptions {
        is_paused: chosen.paused.is_some(),
        shows_help: chosen.shows_help,
        next: source.next.words(),
        device: chosen.device.as_deref(),
        units: source.units,
    };
    let size = output::stderr_size();
    match &chosen.paused {
        Some(state) => view::draw(state, &options, size, look),
        None => view::draw(&source.hub.state(), &options, size, look),
    }
}

fn enter() {
    let mut has_terminal = HAS_TERMINAL.lock().unwrap_or_else(PoisonError::into_inner);
    *has_terminal = true;
    IS_ENTERED.store(true, Ordering::Release);
    let _ = write_to_terminal(ENTER);
}

/// Leaves the alternate screen; false where no view has the terminal. A terminal that takes no more output is not waited for.
fn leave() -> bool {
    if !IS_ENTERED.swap(false, Ordering::AcqRel) {
        return false;
    }
    keys::restart_output();
    let mut guard = None;
    for _ in 0..TRIES {
        guard = match HAS_TERMINAL.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                std::thread::park_timeout(BETWEEN_TRIES);
                continue;
            }
        };
        break;
    }
    if let Some(has_terminal) = &mut guard {
        **has_terminal = false;
    }
    let _ = write_to_terminal(LEAVE);
    true
}

fn write_to_terminal(bytes: &[u8]) -> io::Result<()> {
    output::stderr_file()?.write_all(bytes)
}

/// Ctrl-Z and a signal that dumps core find the terminal as it was; after Ctrl-Z the view comes back with the foreground.
fn watch_signals(chosen: Arc<Mutex<Chosen>>) -> io::Result<()> {
    let mut signals = Signals::new(TAKING)?;
    // As for the signals that end a run: a thread that is stuck in a request to a device must not get them.
    fathom_sys::signals::block(&TAKING)?;
    let watch = move || {
        let _ = fathom_sys::signals::unblock(&TAKING);
        for signal in signals.forever() {
            let was_entered = leave();
            keys::suspend();
            let _ = emulate_default_handler(signal);
            if was_entered {
                keys::resume();
                enter();
                lock(&chosen).redraws = true;
            }
        }
    };
    std::thread::Builder::new().name("view-signals".to_owned()).spawn(watch).map(drop)
}
