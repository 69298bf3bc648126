//! What a run is asked for while it goes on: its status by a file, and its end by a trigger.

use std::path::PathBuf;
use std::process::Command;

use fathom_model::Nanos;
use fathom_options::CommandOptions;

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
    timeout: Option<Nanos>,
    command: Option<String>,
}

impl Requests {
    /// The requests in `command`.
    pub fn new(command: &CommandOptions) -> Requests {
        let trigger = Trigger {
            file: command.trigger_file.clone(),
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
        let by_file = trigger.file.take_if(|file| std::fs::remove_file(file).is_ok()).is_some();
        if by_time || by_file {
            (trigger.timeout, trigger.file) = (None, None);
        }
        by_time || by_file
    }

    /// Runs the command of the trigger.
    pub fn run_trigger(&self) {
        let Some(command) = self.trigger.as_ref().and_then(|trigger| trigger.command.as_ref()) else {
            return;
        };
        if let Err(error) = Command::new("sh").args(["-c", command]).status() {
            output::warn(&format!("fio: cannot run the trigger {command}: {}", output::plain(&error)));
        }
    }
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
}
