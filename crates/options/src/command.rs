//! The options of the command itself, which belong to no job: output, sections, help.
//!
//! One row each, as for job options. fio's options that are refused are in [`UNSUPPORTED`].

mod rows;
mod unsupported;

use std::path::PathBuf;

use fathom_model::Nanos;

use crate::command_values::{DebugClass, Eta, IdleProfile, OutputFormat};
use crate::fleet::FleetOptions;

pub(crate) use rows::ROWS;
pub(crate) use unsupported::UNSUPPORTED;

/// Options of the whole invocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOptions {
    /// Write the report to this file instead of standard output.
    pub output: Option<PathBuf>,
    /// Requested report formats, each once; empty = normal.
    pub formats: Vec<OutputFormat>,
    /// Version of the terse format, if it is not 3.
    pub terse_version: Option<u8>,
    /// Save states of verification in this directory.
    pub aux_path: Option<PathBuf>,
    /// Print the report this often during the run.
    pub status_interval: Option<Nanos>,
    /// A file that ends the run as soon as it exists.
    pub trigger_file: Option<PathBuf>,
    /// End the run after this time.
    pub trigger_timeout: Option<Nanos>,
    /// Shell command to run when a trigger ends the run.
    pub trigger: Option<String>,
    /// Log the bandwidth of all jobs together, to files whose names begin so.
    pub bandwidth_log: Option<String>,
    /// When progress is shown.
    pub eta: Eta,
    /// Print a new progress line this often instead of overwriting one.
    pub eta_newline: Option<Nanos>,
    /// Update progress this often; at least 250 ms.
    pub eta_interval: Option<Nanos>,
    /// Only these sections.
    pub sections: Vec<String>,
    /// Check and stop.
    pub parse_only: bool,
    /// Print the equivalent command line and stop.
    pub showcmd: bool,
    /// What is shown of the inside of a run.
    pub debug: Vec<DebugClass>,
    /// Refuse jobs that write or trim.
    pub readonly: bool,
    /// Print the version and stop.
    pub version: bool,
    /// Report how idle the CPUs are; `Calibrate` prints the time of a piece of work and stops.
    pub idle_profile: Option<IdleProfile>,
    /// Print the usage and stop.
    pub help: bool,
    /// Print this log, which `log_store_compressed` has compressed, and stop.
    pub inflate_log: Option<PathBuf>,
    /// Print help on options and stop: a list (`None`), one, or `all` in full.
    pub cmdhelp: Option<Option<String>>,
    /// Print help on engines and stop: the list (`None`), `ENGINE`, or `ENGINE,OPTION`.
    pub enghelp: Option<Option<String>>,
    /// Devices whose content may be destroyed.
    pub destroy_data: Vec<PathBuf>,
    /// Keep the run in the history.
    pub keep: bool,
    /// Give advice on the jobs, also where no terminal shows it.
    pub advise: bool,
    /// Show a full-screen view while the jobs run.
    pub tui: bool,
    /// Streams of live figures, as they were named.
    pub live: Vec<String>,
    /// What is asked of a job of many processes.
    pub fleet: FleetOptions,
}

impl CommandOptions {
    /// True if the command only prints, and needs no job.
    pub fn only_prints(&self) -> bool {
        let calibrates = self.idle_profile == Some(IdleProfile::Calibrate);
        self.version
            || self.help
            || calibrates
            || self.inflate_log.is_some()
            || self.cmdhelp.is_some()
            || self.enghelp.is_some()
    }
}

/// Whether an option of the command takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionArity {
    Nothing,
    /// A value, under this name in the usage.
    Value(&'static str),
    /// A value after `=`, or nothing.
    MaybeValue(&'static str),
}

/// A row of the table of the command's own options.
pub(crate) struct CommandRow {
    pub(crate) name: &'static str,
    pub(crate) takes: OptionArity,
    pub(crate) doc: &'static str,
    /// Not an option of fio: it cannot be shortened, so that prefixes mean the same as in fio.
    pub(crate) ours: bool,
    /// Accepted without effect, because fio has it; the doc says why.
    pub(crate) inert: bool,
    pub(crate) apply: fn(&mut CommandOptions, Option<&str>) -> Result<(), String>,
}

pub(crate) const fn row(
    name: &'static str,
    takes: OptionArity,
    doc: &'static str,
    apply: fn(&mut CommandOptions, Option<&str>) -> Result<(), String>,
) -> CommandRow {
    CommandRow { name, takes, doc, ours: false, inert: false, apply }
}

pub(crate) fn needed(text: Option<&str>) -> Result<&str, String> {
    text.filter(|text| !text.is_empty()).ok_or_else(|| "a value is needed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_docs_are_sentences() {
        let mut names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        names.extend(UNSUPPORTED.iter().map(|(name, _, _)| *name));
        names.extend(crate::table::names());
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for row in ROWS {
            assert!(row.doc.is_ascii() && row.doc.ends_with('.'), "{}", row.name);
        }
    }

    #[test]
    fn values() {
        let check = |name: &str, text: Option<&str>, expected: CommandOptions| {
            let row = ROWS.iter().find(|row| row.name == name).unwrap();
            let mut command = CommandOptions::default();
            (row.apply)(&mut command, text).unwrap();
            assert_eq!(command, expected, "{name}");
        };
        let none = CommandOptions::default;
        check("output", Some("f"), CommandOptions { output: Some("f".into()), ..none() });
        check("eta", Some("never"), CommandOptions { eta: Eta::Never, ..none() });
        check("eta-newline", Some("2"), CommandOptions { eta_newline: Some(Nanos::from_secs(2)), ..none() });
        let quarter = Some(Nanos::from_millis(250));
        check("eta-interval", Some("250ms"), CommandOptions { eta_interval: quarter, ..none() });
        let debug = vec![DebugClass::Io, DebugClass::Untraced("mem")];
        check("debug", Some("io,mem,io"), CommandOptions { debug, ..none() });
        check("section", Some("a"), CommandOptions { sections: vec!["a".into()], ..none() });
        check("cmdhelp", None, CommandOptions { cmdhelp: Some(None), ..none() });
        check("enghelp", Some("null"), CommandOptions { enghelp: Some(Some("null".into())), ..none() });
        let per_cpu = Some(IdleProfile::PerCpu);
        check("idle-prof", Some("percpu"), CommandOptions { idle_profile: per_cpu, ..none() });
        check("advise", None, CommandOptions { advise: true, ..none() });
        check("max-jobs", Some("9"), none());
        check("tui", None, CommandOptions { tui: true, ..none() });
        check("live", Some("ndjson"), CommandOptions { live: vec!["ndjson".into()], ..none() });
        check(
            "destroy-data",
            Some("/dev/x"),
            CommandOptions { destroy_data: vec!["/dev/x".into()], ..none() },
        );
        let terse = vec![OutputFormat::Normal, OutputFormat::Terse];
        check("append-terse", None, CommandOptions { formats: terse, ..none() });
        check("terse-version", Some("5"), CommandOptions { terse_version: Some(5), ..none() });
        check("bandwidth-log", None, CommandOptions { bandwidth_log: Some("agg".into()), ..none() });
        for (name, bad) in [
            ("terse-version", "6"),
            ("status-interval", "0"),
            ("eta", "foo"),
            ("idle-prof", "foo"),
            ("debug", "foo"),
            ("debug", "io,"),
            ("eta-newline", "0"),
            ("eta-newline", "1x"),
            ("eta-interval", "100ms"),
            ("section", "global"),
            ("max-jobs", "foo"),
            ("output", ""),
        ] {
            let row = ROWS.iter().find(|row| row.name == name).unwrap();
            assert!((row.apply)(&mut CommandOptions::default(), Some(bad)).is_err(), "{name}={bad}");
        }
    }
}
