//! `--fleet` and what belongs to it: one job by the processes that a launcher started on many hosts.

use std::path::PathBuf;
use std::time::Duration;

use fathom_model::Nanos;

use crate::command::{CommandOptions, OptionArity, ROWS};
use crate::error::OptionError;

/// What is asked of a job of many processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetOptions {
    /// Join the job that a launcher started.
    pub is_asked_for: bool,
    /// Directory of the records.
    pub out: Option<PathBuf>,
    /// Longest wait for all processes to come.
    pub join: Option<Nanos>,
    /// Longest wait for all to be ready.
    pub prepare: Option<Nanos>,
    /// Longest wait for all beyond the time that their jobs take.
    pub grace: Option<Nanos>,
    /// Phases start at an instant of the wall clock, which is the same on all hosts to a millisecond, instead of when the launcher lets
    /// the processes out of a fence.
    pub starts_by_clock: bool,
    /// Each process uses its share of the target.
    pub splits_by_offset: bool,
    /// The file of roles.
    pub plan: Option<PathBuf>,
}

impl FleetOptions {
    /// Any of its options is given.
    pub fn is_given(&self) -> bool {
        *self != FleetOptions::default()
    }

    /// Longest wait for all processes to come [default: 60 s].
    pub fn join(&self) -> Duration {
        or_seconds(self.join, 60)
    }

    /// Longest wait for all to be ready to measure [default: 30 min].
    pub fn prepare(&self) -> Duration {
        or_seconds(self.prepare, 30 * 60)
    }

    /// Longest wait for all beyond the time that their jobs take [default: 30 s].
    pub fn grace(&self) -> Duration {
        or_seconds(self.grace, 30)
    }

    /// The options among the words of a command line, of which nothing else is read.
    ///
    /// # Errors
    /// One of them has no value, or a wrong one.
    pub fn scan(words: &[String]) -> Result<FleetOptions, OptionError> {
        let mut command = CommandOptions::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(body) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
            let (name, inline) = match body.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (body, None),
            };
            let Some(row) = ROWS.iter().find(|row| row.name == name && row.name.starts_with("fleet")) else {
                continue;
            };
            let value = match row.takes() {
                OptionArity::Value(_) => inline.or_else(|| words.next().map(String::as_str)),
                _ => None,
            };
            row.apply(&mut command, value)?;
        }
        Ok(command.fleet)
    }
}

fn or_seconds(given: Option<Nanos>, usual: u64) -> Duration {
    given.map_or(Duration::from_secs(usual), |time| Duration::from_nanos(time.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_options_are_found_among_others() {
        let scan = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            FleetOptions::scan(&words).map_err(|error| error.to_string())
        };
        assert_eq!(scan("--name=a --rw=read job.fio"), Ok(FleetOptions::default()));
        let found =
            scan("job.fio --fleet -fleet-out=d --fleet-grace 5s --fleet-start=clock --name=a").unwrap();
        assert_eq!(
            found,
            FleetOptions {
                is_asked_for: true,
                out: Some("d".into()),
                grace: Some(Nanos::from_secs(5)),
                starts_by_clock: true,
                ..FleetOptions::default()
            }
        );
        assert!(found.is_given());
        assert!(scan("--fleet-start=soon").unwrap_err().contains("use barrier or clock"));
        assert!(scan("--fleet-join=0").is_err() && scan("--fleet-out").is_err());
    }
}
