//! The keyboard while a run goes on: `q` does what Ctrl-C does.
//!
//! The terminal then hands over single keys without showing them. Its modes are restored when the run ends, and by [`restore`]
//! where the program is ended; a program in the background touches neither modes nor keys, which would stop it.

use std::io::{self, IsTerminal, Stdin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

use crate::output;

/// A read waits for a key for this many tenths of a second.
const TENTHS: u8 = 2;
/// Pause before the next read where none waits: in the background, or at a terminal that is gone.
const PAUSE: Duration = Duration::from_millis(200);

/// The modes that the terminal had.
static MODES: Mutex<Option<Termios>> = Mutex::new(None);

/// Keys are watched for as long as this lives.
pub struct KeyWatch {
    has_ended: Arc<AtomicBool>,
}

/// Watches for `q` where a person sits at the terminal; `None` where nobody does.
pub fn watch() -> Option<KeyWatch> {
    let terminal = io::stdin();
    if !terminal.is_terminal() || !output::stderr_is_seen() || !is_in_foreground(&terminal) {
        return None;
    }
    let before = tcgetattr(&terminal).ok()?;
    let mut modes = before.clone();
    modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    modes.special_codes[SpecialCodeIndex::VMIN] = 0;
    modes.special_codes[SpecialCodeIndex::VTIME] = TENTHS;
    *MODES.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    let has_ended = Arc::new(AtomicBool::new(false));
    let watch = KeyWatch { has_ended: has_ended.clone() };
    tcsetattr(&terminal, OptionalActions::Now, &modes).ok()?;
    let thread = std::thread::Builder::new().name("keys".to_owned());
    thread.spawn(move || read_keys(&terminal, &has_ended)).ok()?;
    Some(watch)
}

/// Gives the terminal its modes back.
pub fn restore() {
    let modes = MODES.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(modes) = modes {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
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

fn read_keys(terminal: &Stdin, has_ended: &AtomicBool) {
    let mut keys = [0; 16];
    while !has_ended.load(Ordering::Acquire) {
        if !is_in_foreground(terminal) {
            std::thread::park_timeout(PAUSE);
            continue;
        }
        match rustix::io::read(terminal, &mut keys) {
            Ok(0) => std::thread::park_timeout(PAUSE),
            Ok(count) if keys[..count].contains(&b'q') => {
                let _ = kill_process(getpid(), Signal::INT);
            }
            Ok(_) => {}
            Err(error) if error == rustix::io::Errno::INTR => {}
            // The terminal is gone.
            Err(_) => return,
        }
    }
}
