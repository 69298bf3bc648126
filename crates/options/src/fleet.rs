//! `--fleet` and what belongs to it: one job by the processes that a launcher started on many hosts.

use std::path::PathBuf;

use fathom_model::Nanos;

use crate::command::{CommandOptions, CommandRow, OptionArity, ROWS, needed, row};
use crate::error::OptionError;
use crate::value;

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
    /// Phases start at an instant of the clock.
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
            let value = match row.takes {
                OptionArity::Value(_) => inline.or_else(|| words.next().map(String::as_str)),
                _ => None,
            };
            (row.apply)(&mut command, value).map_err(|reason| OptionError::BadValue {
                option: row.name.to_owned(),
                value: value.unwrap_or_default().to_owned(),
                reason,
                place: None,
            })?;
        }
        Ok(command.fleet)
    }
}

type Apply = fn(&mut CommandOptions, Option<&str>) -> Result<(), String>;

const fn ours(name: &'static str, takes: OptionArity, doc: &'static str, apply: Apply) -> CommandRow {
    CommandRow { ours: true, ..row(name, takes, doc, apply) }
}

pub(crate) const ALL: CommandRow = ours(
    "fleet",
    OptionArity::Nothing,
    "Join the job that a launcher (srun, mpiexec, mpirun) started; rank 0 reports on all.",
    |command, _| {
        command.fleet.is_asked_for = true;
        Ok(())
    },
);

pub(crate) const OUT: CommandRow = ours(
    "fleet-out",
    OptionArity::Value("DIR"),
    "Write the record of each rank to DIR/rank-NNNNN.json.",
    |command, text| {
        command.fleet.out = Some(PathBuf::from(needed(text)?));
        Ok(())
    },
);

pub(crate) const JOIN: CommandRow = ours(
    "fleet-join",
    OptionArity::Value("TIME"),
    "Wait this long for all ranks to come (default 60s).",
    |command, text| {
        command.fleet.join = Some(time(text)?);
        Ok(())
    },
);

pub(crate) const PREPARE: CommandRow = ours(
    "fleet-prepare",
    OptionArity::Value("TIME"),
    "Wait this long for all ranks to be ready to measure (default 30m).",
    |command, text| {
        command.fleet.prepare = Some(time(text)?);
        Ok(())
    },
);

pub(crate) const GRACE: CommandRow = ours(
    "fleet-grace",
    OptionArity::Value("TIME"),
    "Wait this long for other ranks beyond the runtime of their jobs (default 30s).",
    |command, text| {
        command.fleet.grace = Some(time(text)?);
        Ok(())
    },
);

pub(crate) const START: CommandRow = ours(
    "fleet-start",
    OptionArity::Value("HOW"),
    "Start phases at a barrier, or at an instant of the clock: barrier, clock (default barrier).",
    |command, text| {
        command.fleet.starts_by_clock = match needed(text)? {
            "barrier" => false,
            "clock" => true,
            _ => return Err("use barrier or clock".to_owned()),
        };
        Ok(())
    },
);

pub(crate) const SPLIT: CommandRow = ours(
    "fleet-split",
    OptionArity::Value("HOW"),
    "Give each rank its share of the size of a job: offset.",
    |command, text| match needed(text)? {
        "offset" => {
            command.fleet.splits_by_offset = true;
            Ok(())
        }
        _ => Err("use offset".to_owned()),
    },
);

pub(crate) const PLAN: CommandRow = ours(
    "fleet-plan",
    OptionArity::Value("FILE"),
    "Give ranks or hosts roles with options of their own, by a TOML file.",
    |command, text| {
        command.fleet.plan = Some(PathBuf::from(needed(text)?));
        Ok(())
    },
);

/// A time with a unit, or in seconds.
fn time(text: Option<&str>) -> Result<Nanos, String> {
    let time = value::seconds(needed(text)?)?;
    if time == Nanos::ZERO { Err("it must be more than 0".to_owned()) } else { Ok(time) }
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
