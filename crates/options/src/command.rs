//! The options of the command itself, which belong to no job: output, sections, help.
//!
//! One row each, as for job options. fio's options that are refused are in [`UNSUPPORTED`].

use std::path::PathBuf;

use fathom_model::Nanos;

use crate::error::OptionError;
use crate::fleet::FleetOptions;
use crate::table::set;
use crate::value;

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
    pub(crate) doc: &'static str,
    /// Not an option of fio: it cannot be shortened, so that prefixes mean the same as in fio.
    pub(crate) ours: bool,
    /// Accepted without effect, because fio has it; the doc says why.
    pub(crate) inert: bool,
    setter: Setter,
}

/// Stores what was given; a value has its name in the usage.
enum Setter {
    Nothing(fn(&mut CommandOptions)),
    Value(&'static str, fn(&mut CommandOptions, &str) -> Result<(), String>),
    MaybeValue(&'static str, fn(&mut CommandOptions, Option<&str>)),
}

const fn new(name: &'static str, setter: Setter) -> CommandRow {
    CommandRow { name, doc: "", ours: false, inert: false, setter }
}

pub(crate) const fn flag(name: &'static str, set: fn(&mut CommandOptions)) -> CommandRow {
    new(name, Setter::Nothing(set))
}

pub(crate) const fn valued(
    name: &'static str,
    value: &'static str,
    set: fn(&mut CommandOptions, &str) -> Result<(), String>,
) -> CommandRow {
    new(name, Setter::Value(value, set))
}

const fn maybe_valued(
    name: &'static str,
    value: &'static str,
    set: fn(&mut CommandOptions, Option<&str>),
) -> CommandRow {
    new(name, Setter::MaybeValue(value, set))
}

impl CommandRow {
    pub(crate) const fn doc(self, doc: &'static str) -> CommandRow {
        CommandRow { doc, ..self }
    }

    pub(crate) const fn ours(self) -> CommandRow {
        CommandRow { ours: true, ..self }
    }

    const fn inert(self) -> CommandRow {
        CommandRow { inert: true, ..self }
    }

    pub(crate) fn takes(&self) -> OptionArity {
        match self.setter {
            Setter::Nothing(_) => OptionArity::Nothing,
            Setter::Value(name, _) => OptionArity::Value(name),
            Setter::MaybeValue(name, _) => OptionArity::MaybeValue(name),
        }
    }

    /// Stores what was given.
    ///
    /// # Errors
    /// The value is missing or wrong.
    pub(crate) fn apply(&self, command: &mut CommandOptions, text: Option<&str>) -> Result<(), OptionError> {
        let refused = |reason: String| OptionError::bad_value(self.name, text.unwrap_or_default(), &reason);
        match self.setter {
            Setter::Nothing(set) => set(command),
            Setter::MaybeValue(_, set) => set(command, text),
            Setter::Value(_, set) => match text {
                None | Some("") => return Err(refused("a value is needed".to_owned())),
                Some(text) => set(command, text).map_err(refused)?,
            },
        }
        Ok(())
    }
}

/// The command's own options, in the order of the usage.
pub(crate) const ROWS: &[CommandRow] = &[
    valued("output", "FILE", |command, text| set(&mut command.output, Ok(text.into())))
        .doc("Write the report to FILE."),
    valued("output-format", "FORMATS", |command, text| {
        formats(text).map(|formats| command.formats = formats)
    })
    .doc("Report formats, separated by commas: normal, terse, json, json+."),
    flag("minimal", |command| command.formats = vec![OutputFormat::Terse])
        .doc("The same as --output-format=terse."),
    flag("append-terse", |command| {
        if command.formats.is_empty() {
            command.formats.push(OutputFormat::Normal);
        }
        command.formats.push(OutputFormat::Terse);
    })
    .doc("Add the terse format to the others."),
    valued("terse-version", "N", |command, text| {
        value::integer_in(text, 2, 5).map(|version| command.terse_version = Some(version as u8))
    })
    .doc("Version of the terse format, 2 to 5 [default: 3]."),
    valued("status-interval", "TIME", |command, text| set(&mut command.status_interval, at_least(text, 1)))
        .doc("Print the report so far this often."),
    valued("aux-path", "DIR", |command, text| set(&mut command.aux_path, Ok(text.into())))
        .doc("Save the states of jobs with verify in this directory, and load them from there."),
    maybe_valued("bandwidth-log", "NAME", |command, text| {
        command.bandwidth_log = Some(text.unwrap_or("agg").to_owned())
    })
    .doc("Log the bandwidth of all jobs together to NAME-read_bw.log and the like [default: agg]."),
    valued("trigger-file", "FILE", |command, text| set(&mut command.trigger_file, Ok(text.into())))
        .doc("End the run as soon as FILE exists."),
    valued("trigger-timeout", "TIME", |command, text| {
        set(&mut command.trigger_timeout, value::seconds(text))
    })
    .doc("End the run after this time."),
    valued("trigger", "COMMAND", |command, text| set(&mut command.trigger, Ok(text.to_owned())))
        .doc("Run this shell command when a trigger ends the run."),
    valued("eta", "WHEN", |command, text| {
        let words = [("always", Eta::Always), ("never", Eta::Never), ("auto", Eta::Auto)];
        value::choice(text, &words).map(|eta| command.eta = eta)
    })
    .doc("Show progress: always, never or auto."),
    valued("eta-newline", "TIME", |command, text| set(&mut command.eta_newline, at_least(text, 1)))
        .doc("Start a new progress line this often."),
    valued("eta-interval", "TIME", |command, text| set(&mut command.eta_interval, at_least(text, 250)))
        .doc("Update progress this often, at least 250 ms."),
    valued("section", "NAME", |command, text| match text {
        name if name.starts_with("global") => Err("can't use global as only section".to_owned()),
        name => {
            command.sections.push(name.to_owned());
            Ok(())
        }
    })
    .doc("Run only this section; may be given several times."),
    valued("idle-prof", "KIND", |command, text| {
        let words = [
            ("system", IdleProfile::System),
            ("percpu", IdleProfile::PerCpu),
            ("calibrate", IdleProfile::Calibrate),
        ];
        set(&mut command.idle_profile, value::choice(text, &words))
    })
    .doc(
        "Report the idle time of the CPUs during the run, by the kernel's count: system, percpu, or \
              calibrate alone.",
    ),
    valued("debug", "CLASSES", |command, text| debug_classes(text).map(|classes| command.debug = classes))
        .doc(
            "Show what happens inside: process, file, io (every request), random, parse, or all; nothing \
              is shown of fio's other classes.",
        ),
    valued("inflate-log", "FILE", |command, text| set(&mut command.inflate_log, Ok(text.into())))
        .doc("Print a log that log_store_compressed has compressed, and stop."),
    flag("parse-only", |command| command.parse_only = true).doc("Check the options and stop."),
    flag("showcmd", |command| command.showcmd = true).doc("Print the jobs as one command line and stop."),
    flag("readonly", |command| command.readonly = true).doc("Refuse jobs that write or trim."),
    maybe_valued("cmdhelp", "OPTION", |command, text| command.cmdhelp = Some(text.map(str::to_owned)))
        .doc("Describe all options, or one, or all in full."),
    maybe_valued("enghelp", "ENGINE[,OPTION]", |command, text| {
        command.enghelp = Some(text.map(str::to_owned))
    })
    .doc("List the engines, or the options of one."),
    flag("version", |command| command.version = true).doc("Print the version and stop."),
    flag("help", |command| command.help = true).doc("Print this page and stop."),
    valued("max-jobs", "N", |_, text| value::integer(text).map(drop))
        .inert()
        .doc("Accepted without effect, as in fio: there is no table of jobs to size."),
    valued("alloc-size", "KB", |_, text| value::integer(text).map(drop))
        .inert()
        .doc("Accepted without effect: there is no shared memory pool to size."),
    flag("warnings-fatal", |_| {})
        .inert()
        .doc("Accepted without effect: fathom refuses what fio warns about."),
    valued("destroy-data", "DEVICE", |command, text| {
        command.destroy_data.push(text.into());
        Ok(())
    })
    .ours()
    .doc("Permit writing to DEVICE although it contains data."),
    flag("advise", |command| command.advise = true)
        .ours()
        .doc("Give advice on the jobs on standard error, as on a terminal."),
    flag("tui", |command| command.tui = true)
        .ours()
        .doc("Show a full-screen view while the jobs run; ? lists its keys."),
    valued("live", "STREAM", |command, text| {
        command.live.push(text.to_owned());
        Ok(())
    })
    .ours()
    .doc(
        "Stream live figures: ndjson[=FILE] to standard error or a file, \
              openmetrics[=ADDR:PORT[,NAME...]] over HTTP.",
    ),
    flag("keep", |command| command.keep = true).ours().doc("Keep the run in the history."),
    flag("fleet", |command| command.fleet.is_asked_for = true)
        .ours()
        .doc("Join the job that a launcher (srun, mpiexec, mpirun) started; rank 0 reports on all."),
    valued("fleet-out", "DIR", |command, text| set(&mut command.fleet.out, Ok(text.into())))
        .ours()
        .doc("Write the record of each rank to DIR/rank-NNNNN.json."),
    valued("fleet-join", "TIME", |command, text| set(&mut command.fleet.join, positive(text)))
        .ours()
        .doc("Wait this long for all ranks to come (default 60s)."),
    valued("fleet-prepare", "TIME", |command, text| set(&mut command.fleet.prepare, positive(text)))
        .ours()
        .doc("Wait this long for all ranks to be ready to measure (default 30m)."),
    valued("fleet-grace", "TIME", |command, text| set(&mut command.fleet.grace, positive(text)))
        .ours()
        .doc("Wait this long for other ranks beyond the runtime of their jobs (default 30s)."),
    valued("fleet-start", "HOW", |command, text| match text {
        "barrier" | "clock" => {
            command.fleet.starts_by_clock = text == "clock";
            Ok(())
        }
        _ => Err("use barrier or clock".to_owned()),
    })
    .ours()
    .doc("Start phases at a barrier, or at an instant of the clock: barrier, clock (default barrier)."),
    valued("fleet-split", "HOW", |command, text| match text {
        "offset" => {
            command.fleet.splits_by_offset = true;
            Ok(())
        }
        _ => Err("use offset".to_owned()),
    })
    .ours()
    .doc("Give each rank its share of the size of a job: offset."),
    valued("fleet-plan", "FILE", |command, text| set(&mut command.fleet.plan, Ok(text.into())))
        .ours()
        .doc("Give ranks or hosts roles with options of their own, by a TOML file."),
];

/// fio's options of the command that are refused, with what to do instead.
pub(crate) const UNSUPPORTED: &[(&str, OptionArity, &str)] = &[
    ("client", OptionArity::Value("HOST"), "start it with srun, mpiexec or mpirun, and add --fleet"),
    ("cpuclock-test", OptionArity::Nothing, "omit it: the clock is the monotonic one of the kernel"),
    ("crctest", OptionArity::MaybeValue("NAME"), "measure a job with verify= and without, on ioengine=null"),
    ("daemonize", OptionArity::Value("FILE"), "start it with nohup or systemd-run"),
    ("latency-log", OptionArity::MaybeValue("NAME"), "use --output-format=json"),
    ("merge-blktrace-only", OptionArity::Nothing, "replay each trace with read_iolog, in a job of its own"),
    ("remote-config", OptionArity::Value("FILE"), "start it on each machine"),
    ("server", OptionArity::MaybeValue("ARGS"), "start it with srun, mpiexec or mpirun, and add --fleet"),
    ("trigger-remote", OptionArity::Value("COMMAND"), "use --trigger on each machine"),
];

/// A time in seconds of at least `millis`.
fn at_least(text: &str, millis: u64) -> Result<Nanos, String> {
    match value::seconds(text)? {
        time if time < Nanos::from_millis(millis) => Err(format!("it must be at least {millis} ms")),
        time => Ok(time),
    }
}

/// A time with a unit, or in seconds.
fn positive(text: &str) -> Result<Nanos, String> {
    match value::seconds(text)? {
        Nanos::ZERO => Err("it must be more than 0".to_owned()),
        time => Ok(time),
    }
}

fn formats(text: &str) -> Result<Vec<OutputFormat>, String> {
    let mut formats = Vec::new();
    for word in text.split(',').map(str::trim) {
        let all = [OutputFormat::Normal, OutputFormat::Terse, OutputFormat::Json, OutputFormat::JsonPlus];
        let format = all.into_iter().find(|format| format.name() == word);
        let format = format
            .ok_or_else(|| format!("invalid output format {word} (valid are normal, terse, json, json+)"))?;
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    Ok(formats)
}

/// Classes separated by commas, each once; `all` are those that show anything.
fn debug_classes(text: &str) -> Result<Vec<DebugClass>, String> {
    let mut classes = Vec::new();
    for word in text.split(',').map(str::trim) {
        let named: Vec<DebugClass> = DebugClass::ALL
            .into_iter()
            .filter(|class| if word == "all" { class.is_traced() } else { class.name() == word })
            .collect();
        if named.is_empty() {
            let names: Vec<&str> = DebugClass::ALL.into_iter().map(DebugClass::name).collect();
            return Err(format!("debug mask {word} not found (valid are {}, all)", names.join(", ")));
        }
        classes.extend(named.into_iter().filter(|class| !classes.contains(class)).collect::<Vec<_>>());
    }
    Ok(classes)
}

/// A report format of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// fio's text.
    Normal,
    /// A line of fields per entry.
    Terse,
    /// JSON.
    Json,
    /// JSON with the bins of every latency histogram.
    JsonPlus,
}

impl OutputFormat {
    /// fio's name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            OutputFormat::Normal => "normal",
            OutputFormat::Terse => "terse",
            OutputFormat::Json => "json",
            OutputFormat::JsonPlus => "json+",
        }
    }
}

/// A class of what `--debug` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugClass {
    /// The states of the workers.
    Process,
    /// The files of the jobs, and their layout.
    File,
    /// Every issued request.
    Io,
    /// The seeds of the workers.
    Random,
    /// The options of the jobs.
    Parse,
    /// One of fio's classes of which nothing is shown.
    Untraced(&'static str),
}

impl DebugClass {
    /// fio's classes, in its order.
    pub(crate) const ALL: [DebugClass; 20] = [
        DebugClass::Process,
        DebugClass::File,
        DebugClass::Io,
        DebugClass::Untraced("mem"),
        DebugClass::Untraced("blktrace"),
        DebugClass::Untraced("verify"),
        DebugClass::Random,
        DebugClass::Parse,
        DebugClass::Untraced("diskutil"),
        DebugClass::Untraced("job"),
        DebugClass::Untraced("mutex"),
        DebugClass::Untraced("profile"),
        DebugClass::Untraced("time"),
        DebugClass::Untraced("net"),
        DebugClass::Untraced("rate"),
        DebugClass::Untraced("compress"),
        DebugClass::Untraced("steadystate"),
        DebugClass::Untraced("helperthread"),
        DebugClass::Untraced("zbd"),
        DebugClass::Untraced("sprandom"),
    ];

    /// fio's name of the class.
    pub const fn name(self) -> &'static str {
        match self {
            DebugClass::Process => "process",
            DebugClass::File => "file",
            DebugClass::Io => "io",
            DebugClass::Random => "random",
            DebugClass::Parse => "parse",
            DebugClass::Untraced(name) => name,
        }
    }

    /// False for a class of which nothing is shown.
    pub const fn is_traced(self) -> bool {
        !matches!(self, DebugClass::Untraced(_))
    }
}

/// When progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eta {
    /// On a terminal.
    #[default]
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// What is reported of idle CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleProfile {
    /// The mean of all.
    System,
    /// Each of them too.
    PerCpu,
    /// The time of a piece of work alone.
    Calibrate,
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
            row.apply(&mut command, text).unwrap();
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
            assert!(row.apply(&mut CommandOptions::default(), Some(bad)).is_err(), "{name}={bad}");
        }
    }

    #[test]
    fn format_lists() {
        use OutputFormat::{Json, JsonPlus, Normal, Terse};
        for (text, expected) in [
            ("json", Some(vec![Json])),
            ("normal,json", Some(vec![Normal, Json])),
            ("json+,normal,json+", Some(vec![JsonPlus, Normal])),
            ("terse", Some(vec![Terse])),
            ("xml", None),
            ("", None),
            ("json,", None),
        ] {
            assert_eq!(formats(text).ok(), expected, "{text}");
        }
    }
}
