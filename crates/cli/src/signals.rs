//! SIGINT and SIGTERM: the first asks the run to end and report, the second ends the program.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use fathom_runner::StopHandle;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::{Complaint, Exit};
use crate::output;

const WATCHED: [i32; 2] = [SIGINT, SIGTERM];

/// The signal that came, if one did.
#[derive(Clone, Debug, Default)]
pub struct Caught(Arc<AtomicI32>);

impl Caught {
    /// Its number.
    pub fn number(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Acquire)).filter(|&number| number != 0)
    }
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

/// Watches for signals from now on. A second one ends the program with `forced`, for a run that is stuck in the kernel.
///
/// # Errors
/// The handlers cannot be installed.
pub fn watch(stop: StopHandle, forced: Exit) -> io::Result<Caught> {
    watch_saying(stop, forced, "stopped at once; tests that had finished are kept")
}

/// As [`watch`]; a second signal is answered with `words`.
///
/// # Errors
/// The handlers cannot be installed.
pub fn watch_saying(stop: StopHandle, forced: Exit, words: &'static str) -> io::Result<Caught> {
    let caught = Caught::default();
    let seen = caught.clone();
    let mut signals = Signals::new(WATCHED)?;
    // The thread that calls may get stuck in a request to a device, and with it every signal it would take.
    fathom_sys::signals::block(&WATCHED)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        // These are signals, so it cannot fail.
        let _ = fathom_sys::signals::unblock(&WATCHED);
        for signal in signals.forever() {
            if seen.0.swap(signal, Ordering::AcqRel) != 0 {
                output::warn(words);
                std::process::exit(i32::from(forced.number()));
            }
            stop.request(&format!("signal {signal}"));
        }
    })?;
    Ok(caught)
}
