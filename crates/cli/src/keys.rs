//! The keyboard while a run goes on: `q` does what Ctrl-C does.
//!
//! A full-screen view has more of them. The terminal then hands over single keys without showing them. Its modes are restored when
//! the run ends, and by [`restore`] where the program is ended; a program in the background touches neither modes nor keys, which
//! would stop it.

use std::io::{self, IsTerminal, Stdin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

use crate::output;

/// A read waits for a key for this many tenths of a second.
const TENTHS: u8 = 2;
/// Pause before the next read where none waits: in the background, or at a terminal that is gone.
const PAUSE: Duration = Duration::from_millis(200);

/// What begins the sequence of a function key, or of a key with Alt.
const ESCAPE: u8 = 0x1b;

/// The modes of the terminal: those that it had, and those in which it hands over keys.
struct Modes {
    before: Termios,
    keys: Termios,
}

static MODES: Mutex<Option<Modes>> = Mutex::new(None);

/// Keys are watched for as long as this lives.
pub struct KeyWatch {
    has_ended: Arc<AtomicBool>,
}

/// Watches for `q` where a person sits at the terminal; `None` where nobody does.
pub fn watch() -> Option<KeyWatch> {
    watch_for(|key| {
        if key == b'q' {
            interrupt();
        }
    })
}

/// Does what Ctrl-C does.
pub fn interrupt() {
    let _ = kill_process(getpid(), Signal::INT);
}

/// Whether a person sits at the terminal: it shows standard error, and hands its keys to this program.
pub fn has_person() -> bool {
    let terminal = io::stdin();
    terminal.is_terminal() && output::stderr_is_seen() && is_in_foreground(&terminal)
}

/// Calls `act` with each key where a person sits at the terminal; `None` where nobody does.
pub fn watch_for(act: impl Fn(u8) + Send + 'static) -> Option<KeyWatch> {
    let terminal = io::stdin();
    if !has_person() {
        return None;
    }
    let before = tcgetattr(&terminal).ok()?;
    let mut modes = before.clone();
    modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    modes.special_codes[SpecialCodeIndex::VMIN] = 0;
    modes.special_codes[SpecialCodeIndex::VTIME] = TENTHS;
    *MODES.lock().unwrap_or_else(PoisonError::into_inner) = Some(Modes { before, keys: modes.clone() });
    let has_ended = Arc::new(AtomicBool::new(false));
    let watch = KeyWatch { has_ended: has_ended.clone() };
    tcsetattr(&terminal, OptionalActions::Now, &modes).ok()?;
    let thread = std::thread::Builder::new().name("keys".to_owned());
    thread.spawn(move || read_keys(&terminal, &has_ended, act)).ok()?;
    Some(watch)
}

/// Gives the terminal its modes back.
pub fn restore() {
    let modes = MODES.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(modes) = modes {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes.before);
    }
}

/// Lets a terminal go on that was stopped with Ctrl-S: whoever writes to it would wait for it. The kernel restarts it where
/// the mode that stops it is taken away.
pub fn restart_output() {
    if let Some(modes) = &*MODES.lock().unwrap_or_else(PoisonError::into_inner) {
        let mut without = modes.keys.clone();
        without.input_modes.remove(InputModes::IXON);
        for modes in [&without, &modes.keys] {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, modes);
        }
    }
}

/// Gives the terminal its modes back until [`resume`].
pub fn suspend() {
    if let Some(modes) = &*MODES.lock().unwrap_or_else(PoisonError::into_inner) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes.before);
    }
}

/// The terminal hands over keys again, once this program has the foreground.
pub fn resume() {
    let terminal = io::stdin();
    while !is_in_foreground(&terminal) {
        std::thread::park_timeout(PAUSE);
    }
    if let Some(modes) = &*MODES.lock().unwrap_or_else(PoisonError::into_inner) {
        let _ = tcsetattr(terminal, OptionalActions::Now, &modes.keys);
    }
}

impl Drop for KeyWatch {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Release);
        restore();
    }
}

fn is_in_foreground(terminal: &Stdin) -> bool {
    tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}

fn read_keys(terminal: &Stdin, has_ended: &AtomicBool, act: impl Fn(u8)) {
    let mut keys = [0; 16];
    while !has_ended.load(Ordering::Acquire) {
        if !is_in_foreground(terminal) {
            std::thread::park_timeout(PAUSE);
            continue;
        }
        match rustix::io::read(terminal, &mut keys) {
            Ok(0) => std::thread::park_timeout(PAUSE),
            // What follows an escape belongs to one key that nothing is bound to.
            Ok(count) => keys[..count].iter().take_while(|key| **key != ESCAPE).for_each(|key| act(*key)),
            Err(error) if error == rustix::io::Errno::INTR => {}
            // The terminal is gone.
            Err(_) => return,
        }
    }
}
