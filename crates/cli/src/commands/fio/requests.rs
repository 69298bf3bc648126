//! What a run is asked for while it goes on: its status by a file, and its end by a trigger.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use fathom_model::Nanos;
use fathom_options::CommandOptions;
use fathom_sys::child::{self, run_until};
use fathom_sys::files::check_output;
use fathom_sys::io::describe;

use crate::output;

/// The requests of a command line.
pub struct Requests {
    /// A file that requests the status and is removed then.
    status_file: PathBuf,
    trigger: Option<Trigger>,
}

/// Ends the run, and runs a command then.
struct Trigger {
    file: Option<PathBuf>,
    /// What was there before the run; it stays.
    earlier: Option<FileState>,
    timeout: Option<Nanos>,
    command: Option<String>,
}

impl Requests {
    /// The requests in `command`.
    pub fn new(command: &CommandOptions) -> Requests {
        let earlier = command.trigger_file.as_deref().and_then(FileState::at);
        if let (Some(file), Some(_)) = (&command.trigger_file, &earlier) {
            output::warn(&format!(
                "fio: the trigger file {} was there before the run: only one that is made during the run ends it",
                file.display()
            ));
        }
        let trigger = Trigger {
            file: command.trigger_file.clone(),
            earlier,
            timeout: command.trigger_timeout.filter(|timeout| *timeout > Nanos::ZERO),
            command: command.trigger.clone(),
        };
        let is_set = trigger.file.is_some() || trigger.timeout.is_some();
        Requests {
            status_file: std::env::temp_dir().join("fio-dump-status"),
            trigger: is_set.then_some(trigger),
        }
    }

    /// True once for each status that is requested by the file.
    pub fn takes_status(&self) -> bool {
        // Whoever removes the file has been asked; a name that cannot be removed is no request.
        std::fs::remove_file(&self.status_file).is_ok()
    }

    /// True once, when the trigger is due.
    pub fn takes_trigger(&mut self, elapsed: Nanos) -> bool {
        let Some(trigger) = &mut self.trigger else { return false };
        let by_time = trigger.timeout.take_if(|timeout| elapsed >= *timeout).is_some();
        let earlier = trigger.earlier;
        let by_file = trigger.file.take_if(|file| has_come(file, earlier)).is_some();
        if by_time || by_file {
            (trigger.timeout, trigger.file) = (None, None);
        }
        by_time || by_file
    }

    /// Runs the command of the trigger, until `is_over`.
    pub fn run_trigger(&self, is_over: impl Fn() -> bool) {
        let Some(command) = self.trigger.as_ref().and_then(|trigger| trigger.command.as_ref()) else {
            return;
        };
        let mut shell = child::command("sh");
        if let Err(error) = run_until(shell.args(["-c", command]).stdin(Stdio::null()), is_over) {
            output::warn(&format!("fio: cannot run the trigger {command}: {}", output::plain(&error)));
        }
    }
}

/// A file as it was at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl FileState {
    fn at(path: &Path) -> Option<FileState> {
        std::fs::symlink_metadata(path).ok().map(|found| FileState::of(&found))
    }

    fn of(found: &Metadata) -> FileState {
        FileState { device: found.dev(), inode: found.ino(), changed: (found.mtime(), found.mtime_nsec()) }
    }
}

/// Whether `file` has come since it was `earlier`. It is removed then, unless something lives in it.
fn has_come(file: &Path, earlier: Option<FileState>) -> bool {
    let Ok(found) = std::fs::symlink_metadata(file) else { return false };
    let now = FileState::of(&found);
    let is_new = earlier.is_none_or(|earlier| (earlier.device, earlier.inode) != (now.device, now.inode));
    if is_new {
        let removed = match found.file_type() {
            kind if kind.is_file() => check_output(file).and_then(|()| std::fs::remove_file(file)),
            kind if kind.is_symlink() => std::fs::remove_file(file),
            _ => Ok(()),
        };
        if let Err(error) = removed {
            output::warn(&format!("fio: the trigger file {} stays: {}", file.display(), describe(&error)));
        }
    }
    // An earlier one that was touched ends the run as well.
    is_new || earlier.is_some_and(|earlier| earlier != now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_is_taken_once() {
        let command = CommandOptions { trigger_timeout: Some(Nanos::from_secs(2)), ..Default::default() };
        let mut requests = Requests::new(&command);
        let due: Vec<bool> = (1..=4).map(|second| requests.takes_trigger(Nanos::from_secs(second))).collect();
        assert_eq!(due, [false, true, false, false]);
        assert!(!Requests::new(&CommandOptions::default()).takes_trigger(Nanos::MAX));
    }

    #[test]
    fn only_a_file_that_came_after_the_start_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("trigger");
        let requests =
            || Requests::new(&CommandOptions { trigger_file: Some(file.clone()), ..Default::default() });
        let mut taken = requests();
        assert!(!taken.takes_trigger(Nanos(1)));
        std::fs::write(&file, "").unwrap();
        assert!(taken.takes_trigger(Nanos(2)) && !file.exists());
        // A file that was there is kept, also where it ends the run because it was changed.
        std::fs::write(&file, "image").unwrap();
        let mut taken = requests();
        assert!(!taken.takes_trigger(Nanos(1)));
        let changed = std::time::SystemTime::UNIX_EPOCH;
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(changed).unwrap();
        assert!(taken.takes_trigger(Nanos(2)) && file.exists());
        // Another in its place is a request.
        let mut taken = requests();
        let other = directory.path().join("other");
        std::fs::write(&other, "").unwrap();
        std::fs::rename(&other, &file).unwrap();
        assert!(taken.takes_trigger(Nanos(1)) && !file.exists());
        // A directory ends the run and stays.
        let mut taken = requests();
        std::fs::create_dir(&file).unwrap();
        assert!(taken.takes_trigger(Nanos(1)) && file.exists());
    }
}
