//! What each option of `ping` means, under our own name and under ioping's, and the help of both.

use fathom_analysis::criterion::LatencyObjective;
use fathom_assess::VolumeTypes;
use fathom_assess::ping::{LatePolicy, Operation, PingSettings};
use fathom_history::Location;
use fathom_model::Nanos;
use fathom_model::units::UnitSystem;
use fathom_options::FleetOptions;
use fathom_report::formats::Format;

use super::grammar::ParsedWords;
use super::rows::rows;
use super::units::{COUNT, SIZE, parse, parse_time};
use crate::commands::run_arguments::{KeepArguments, label, tag};
use crate::live::arguments::{LiveArguments, LiveStream};

/// Under which name the command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingProgram {
    /// `fathom ping`.
    Own,
    /// `ioping`: everything a script sees is ioping's.
    Ioping,
}

/// How results are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingOutput {
    /// For people.
    Text,
    /// One raw line at the end.
    Raw,
    /// ioping's JSON array.
    Array,
    /// A report at the end and nothing else.
    Report(Format),
    /// A line of JSON per event.
    Events,
}

/// A command line that makes sense.
#[derive(Clone, Debug)]
pub struct PingInvocation {
    /// What to do.
    pub settings: PingSettings,
    /// How to show it.
    pub form: PingOutput,
    /// Leave out single requests.
    pub quiet: bool,
    /// Put the time before each line, in this form.
    pub stamp: Option<String>,
    /// An inconclusive objective has an exit code of its own.
    pub strict: bool,
    /// Units of rates in the report.
    pub units: Option<UnitSystem>,
    /// Where the run is kept.
    pub keeping: KeepArguments,
    /// What shows it while it goes on.
    pub live: LiveArguments,
    /// What is asked of a job of many processes.
    pub fleet: FleetOptions,
}

/// The help of a front.
pub fn help(front: PingProgram) -> String {
    let name = match front {
        PingProgram::Own => "fathom ping",
        PingProgram::Ioping => "ioping",
    };
    let targets =
        if front == PingProgram::Own { "directory|file|device|sim:ID" } else { "directory|file|device" };
    let mut text = format!(" Usage: {name} [options...] {targets}\n        {name} -h | -v\n\n");
    for row in rows(front) {
        let short = row.short.map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let dash = if front == PingProgram::Own { "--" } else { "-" };
        let left = format!("{short}{dash}{} {}", row.long, row.value);
        text.push_str(&format!("   {left:30} {}\n", row.help));
    }
    if front == PingProgram::Own {
        text.push_str(
            "\n Sizes: 4k, 1.5m, 2page. Times: 100us, 10ms, 2s, 1min; a plain number is seconds.\n \
             Stops by -c, -w or Ctrl-C. Uses direct I/O; in a directory, a temporary test\n \
             file. Exit: 0 done, 1 failed, 2 usage, 3 objective missed, 130 interrupted.\n\n",
        );
        super::EXAMPLES.iter().for_each(|line| text.push_str(&format!(" {line}\n")));
    }
    text.push('\n');
    text
}

/// A request that takes longer has timed out by default.
const TIMEOUT_NS: u64 = 10_000_000_000;

/// Values while they are gathered.
#[derive(Default)]
struct PingValues {
    writes: u32,
    mixed: bool,
    rapid: bool,
    quiet: bool,
    buffered: bool,
    strict: bool,
    size: Option<u64>,
    interval: Option<u64>,
    speed: Option<u64>,
    rate: Option<u64>,
    forms: Vec<(PingOutput, &'static str)>,
    units: Option<UnitSystem>,
}

/// Makes an invocation of parsed words.
///
/// # Errors
/// A sentence for the user.
pub fn invocation(said: &ParsedWords, front: PingProgram) -> Result<PingInvocation, String> {
    let mut settings = PingSettings {
        direct: front == PingProgram::Own,
        label: front == PingProgram::Own,
        drop_all: front == PingProgram::Own,
        go_on: front == PingProgram::Own,
        devices_by_name: front == PingProgram::Own,
        engine: (front == PingProgram::Ioping).then(|| "psync".to_owned()),
        ..PingSettings::new()
    };
    settings.rules.timeout_ns = TIMEOUT_NS;
    let (mut gathered, mut stamp, mut keeping) = (PingValues::default(), None, KeepArguments::default());
    let (mut live, mut fleet) = (LiveArguments::default(), FleetOptions::default());
    for (name, value) in &said.options {
        let text = value.as_deref().unwrap_or_default();
        match *name {
            "time" => stamp = Some(if text.is_empty() { "%b %d %T" } else { text }.to_owned()),
            "slo" => {
                for objective in text.split(',') {
                    settings.slo.push(LatencyObjective::parse(objective)?.text().to_owned());
                }
            }
            "schedule" => settings.schedule = schedule(text)?,
            "tui" => live.tui = true,
            "live" => {
                let stream = LiveStream::parse(text);
                live.streams.push(stream.map_err(|sentence| format!("--live {text}: {sentence}"))?);
            }
            "format" => gathered.forms.push((report(text)?, "--format")),
            "units" => gathered.units = Some(text.parse()?),
            "keep" if front == PingProgram::Own => keeping.keep = true,
            "history" => keeping.history = Some(Location::new(text)),
            "label" => keeping.labels.push(label(text)?),
            "tag" => keeping.tags.push(tag(text)?),
            "engine" => settings.engine = Some(text.to_owned()),
            "catalog" => settings.types = VolumeTypes::new(Some(text.into())),
            "destroy-data" => settings.destroy_named = Some(text.into()),
            name if name.starts_with("fleet") => ask_fleet(name, text, &mut fleet)?,
            _ if value.is_some() => number(name, text, &mut settings, &mut gathered)?,
            _ => switch(name, front, &mut settings, &mut gathered),
        }
    }
    settings.target = match said.operands.as_slice() {
        [] => return Err("no destination specified".to_owned()),
        [target] => target.into(),
        _ => return Err("more than one destination specified".to_owned()),
    };
    let form = form(&gathered.forms, front)?;
    settle(&mut settings, &gathered)?;
    let quiet =
        gathered.quiet || gathered.rapid || gathered.forms.iter().any(|(form, _)| *form == PingOutput::Raw);
    settings.each = !quiet && !matches!(form, PingOutput::Report(_));
    Ok(PingInvocation {
        settings,
        form,
        quiet,
        stamp,
        strict: gathered.strict,
        units: gathered.units,
        keeping,
        live,
        fleet,
    })
}

fn ask_fleet(name: &str, text: &str, fleet: &mut FleetOptions) -> Result<(), String> {
    let time = || match parse_time(text)? {
        0 => Err(format!("--{name} 0: the time must be above 0")),
        ns => Ok(Some(Nanos(ns))),
    };
    match name {
        "fleet" => fleet.is_asked_for = true,
        "fleet-out" => fleet.out = Some(text.into()),
        "fleet-join" => fleet.join = time()?,
        "fleet-prepare" => fleet.prepare = time()?,
        "fleet-grace" => fleet.grace = time()?,
        _ => {
            fleet.starts_by_clock = match text {
                "barrier" => false,
                "clock" => true,
                other => return Err(format!("--{name} {other}: use barrier or clock")),
            }
        }
    }
    Ok(())
}

fn report(text: &str) -> Result<PingOutput, String> {
    Ok(match text.parse()? {
        Format::Text => PingOutput::Text,
        format => PingOutput::Report(format),
    })
}

fn schedule(text: &str) -> Result<LatePolicy, String> {
    match text {
        "fixed" => Ok(LatePolicy::Fixed),
        "waiting" => Ok(LatePolicy::Waiting),
        other => Err(format!("--schedule {other}: use fixed or waiting")),
    }
}

fn number(
    name: &str,
    text: &str,
    settings: &mut PingSettings,
    gathered: &mut PingValues,
) -> Result<(), String> {
    let value = match name {
        "size" | "work-size" | "work-offset" | "speed-limit" => parse(text, SIZE)?,
        "warmup" | "burst" | "count" | "entropy" | "rate-limit" | "print-count" => parse(text, COUNT)?,
        _ => parse_time(text)?,
    };
    // ioping treats a zero as the default.
    let some = Some(value).filter(|value| *value > 0);
    match name {
        "warmup" => settings.rules.warmup = value,
        "burst" => settings.burst = value,
        "count" => settings.count = some,
        "entropy" => settings.seed = some,
        "interval" => gathered.interval = Some(value),
        "size" => gathered.size = some,
        "work-size" => settings.range = some,
        "work-offset" => settings.offset = value,
        "work-time" => settings.work_ns = some,
        "speed-limit" => gathered.speed = some,
        "rate-limit" => gathered.rate = some,
        "min-time" => settings.rules.least_ns = value,
        "max-time" => settings.rules.most_ns = some.unwrap_or(u64::MAX),
        "print-count" => settings.print_count = value,
        "print-interval" => settings.print_interval_ns = value,
        _ => settings.rules.timeout_ns = some.unwrap_or(u64::MAX),
    }
    Ok(())
}

fn switch(name: &'static str, front: PingProgram, settings: &mut PingSettings, gathered: &mut PingValues) {
    match name {
        "async" => settings.engine = Some("libaio".to_owned()),
        "cached" => settings.cached = true,
        "direct" => settings.direct = true,
        "buffered" => gathered.buffered = true,
        "strict" => gathered.strict = true,
        "read-write" => {
            gathered.mixed = true;
            gathered.writes += 1;
        }
        "write" => gathered.writes += 1,
        "linear" => settings.linear = true,
        "nowait" => settings.nowait = true,
        "hipri" => settings.poll = true,
        "sync" => settings.sync = true,
        "dsync" => settings.dsync = true,
        "rapid" => gathered.rapid = true,
        "keep" | "keep-file" => settings.keep = true,
        "quiet" => gathered.quiet = true,
        "batch" => gathered.forms.push((PingOutput::Raw, "-B")),
        "ioping-json" => gathered.forms.push((PingOutput::Array, "-J")),
        "json" if front == PingProgram::Ioping => gathered.forms.push((PingOutput::Array, "-J")),
        "json" => gathered.forms.push((PingOutput::Report(Format::Json), "--json")),
        "events" => gathered.forms.push((PingOutput::Events, "--events")),
        _ => {}
    }
}

/// The form that was asked for: ioping's two go together, ours alone.
fn form(forms: &[(PingOutput, &str)], front: PingProgram) -> Result<PingOutput, String> {
    if front == PingProgram::Own {
        let is_own =
            |form: &PingOutput| matches!(form, PingOutput::Text | PingOutput::Report(_) | PingOutput::Events);
        let own = forms.iter().find(|(form, _)| is_own(form));
        if let Some((own, name)) = own {
            return match forms.iter().find(|(form, _)| form != own) {
                Some((_, other)) => Err(format!("cannot combine {name} and {other}")),
                None => Ok(*own),
            };
        }
    }
    let has = |wanted| forms.iter().any(|(form, _)| *form == wanted);
    Ok(match (has(PingOutput::Array), has(PingOutput::Raw)) {
        (true, _) => PingOutput::Array,
        (false, true) => PingOutput::Raw,
        (false, false) => PingOutput::Text,
    })
}

const RAPID_RANGE: u64 = 64 << 20;

/// What follows from several options together.
fn settle(settings: &mut PingSettings, gathered: &PingValues) -> Result<(), String> {
    if gathered.buffered {
        settings.direct = false;
    }
    settings.operation = match (gathered.mixed, gathered.writes) {
        (true, _) => Operation::Mixed,
        (false, 0) => Operation::Read,
        (false, _) => Operation::Write,
    };
    settings.destroy = gathered.writes >= 3;
    settings.size = gathered.size.unwrap_or(if settings.linear { 256 << 10 } else { 4096 });
    let limits = [
        gathered.speed.map(|speed| (settings.size as f64 * 1e9 / speed as f64) as u64),
        gathered.rate.map(|rate| 1_000_000_000 / rate),
    ];
    let limit = limits.into_iter().flatten().max();
    let interval = match (gathered.interval, gathered.rapid || limit.is_some()) {
        (Some(interval), _) => interval,
        (None, true) => 0,
        (None, false) => 1_000_000_000,
    };
    settings.interval_ns = interval.max(limit.unwrap_or(0));
    if gathered.rapid {
        settings.work_ns = settings.work_ns.or(Some(3_000_000_000));
        let is_directory = settings.range.is_none() && settings.target.is_dir();
        settings.range = if is_directory { Some(RAPID_RANGE) } else { settings.range };
    }
    if settings.schedule == LatePolicy::Fixed && settings.interval_ns == 0 {
        return Err("--schedule fixed needs an interval: add -r, -l or -i".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::rows::IOPING;
    use super::*;
    use crate::commands::ping::grammar::{self, PingOption, ValueUse};

    fn read(front: PingProgram, words: &str) -> Result<PingInvocation, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        invocation(&grammar::read(&words, &rows(front))?, front)
    }

    #[test]
    fn every_option_is_named_once_and_means_something() {
        for front in [PingProgram::Own, PingProgram::Ioping] {
            let rows = rows(front);
            for (at, row) in rows.iter().enumerate() {
                assert!(rows[..at].iter().all(|other| other.long != row.long), "{}", row.long);
                let is_new = |other: &PingOption| other.short != row.short;
                assert!(row.short.is_none() || rows[..at].iter().all(is_new), "{}", row.long);
                assert!(help(front).contains(row.long) && !row.help.is_empty(), "{}", row.long);
            }
        }
        // What takes a value takes a number of its kind, and one that is none is refused: none is ignored.
        for row in IOPING.iter().filter(|row| row.takes == ValueUse::Value) {
            let said = |value: &str| read(PingProgram::Ioping, &format!("--{} {value} .", row.long));
            assert!(said("7").is_ok() && said("x").is_err(), "{}", row.long);
        }
        let plain = format!("{:?}", read(PingProgram::Ioping, ".").unwrap());
        for row in IOPING
            .iter()
            .filter(|row| row.takes == ValueUse::Nothing && !matches!(row.short, Some('h' | 'v')))
        {
            let said = format!("{:?}", read(PingProgram::Ioping, &format!("--{} .", row.long)).unwrap());
            assert_ne!(said, plain, "{} changes nothing", row.long);
        }
    }

    #[test]
    fn options_work_together() {
        let check = |front, words: &str, seen: &dyn Fn(&PingInvocation) -> bool| {
            let found = read(front, words).unwrap_or_else(|error| panic!("{words}: {error}"));
            assert!(seen(&found), "{words}: {found:?}");
        };
        check(PingProgram::Own, ".", &|said| {
            said.settings.direct && said.settings.label && said.settings.go_on
        });
        check(PingProgram::Own, "--buffered .", &|said| !said.settings.direct);
        check(PingProgram::Ioping, ".", &|said| {
            !said.settings.direct && !said.settings.label && !said.settings.go_on
        });
        check(PingProgram::Ioping, "-L .", &|said| said.settings.size == 256 << 10);
        check(PingProgram::Ioping, "-s 0 .", &|said| said.settings.size == 4096);
        check(PingProgram::Ioping, "-r 100 .", &|said| said.settings.interval_ns == 10_000_000);
        check(PingProgram::Ioping, "-l 1m -s 4k .", &|said| said.settings.interval_ns == 3_906_250);
        check(PingProgram::Ioping, "-r 0 .", &|said| said.settings.interval_ns == 1_000_000_000);
        check(PingProgram::Ioping, "-R .", &|said| {
            said.quiet && said.settings.interval_ns == 0 && said.settings.work_ns == Some(3_000_000_000)
        });
        check(PingProgram::Ioping, "-WW .", &|said| !said.settings.destroy);
        check(PingProgram::Ioping, "-WWW .", &|said| said.settings.destroy && !said.settings.devices_by_name);
        check(PingProgram::Ioping, "-WGW .", &|said| said.settings.operation == Operation::Mixed);
        check(PingProgram::Own, "-WWW .", &|said| said.settings.destroy && said.settings.devices_by_name);
        check(PingProgram::Ioping, "--json .", &|said| said.form == PingOutput::Array);
        check(PingProgram::Own, "--json .", &|said| {
            said.form == PingOutput::Report(Format::Json) && !said.settings.each
        });
        check(PingProgram::Own, "--format csv .", &|said| said.form == PingOutput::Report(Format::Csv));
        check(PingProgram::Own, "-J .", &|said| said.form == PingOutput::Array);
        check(PingProgram::Own, "-JB .", &|said| said.form == PingOutput::Array && said.quiet);
        check(PingProgram::Own, "--events .", &|said| said.form == PingOutput::Events && said.settings.each);
        check(PingProgram::Own, "--json --tui --live ndjson=f --live openmetrics .", &|said| {
            said.live.tui && said.live.streams.len() == 2 && said.form == PingOutput::Report(Format::Json)
        });
        check(PingProgram::Own, "--keep --label a=b .", &|said| said.keeping.keep && !said.settings.keep);
        check(PingProgram::Own, "-k .", &|said| said.settings.keep && !said.keeping.keep);
        check(PingProgram::Ioping, "--keep .", &|said| said.settings.keep && !said.keeping.keep);
        check(PingProgram::Own, "--schedule fixed -r 5 .", &|said| {
            said.settings.schedule == LatePolicy::Fixed
        });
        for (words, part) in [
            ("--json --events .", "cannot combine"),
            ("--live text .", "--live text: use ndjson, ndjson=FILE, openmetrics"),
            ("--json -B .", "cannot combine"),
            ("--format text --json .", "cannot combine"),
            ("--format csv -B .", "cannot combine"),
            ("--format yaml .", "unknown format 'yaml'"),
            ("--schedule fixed -i 0 .", "needs an interval"),
            ("--schedule slow .", "use fixed or waiting"),
            ("--slo p99 .", "is not an objective"),
            ("", "no destination"),
            ("a b", "more than one destination"),
        ] {
            let error = read(PingProgram::Own, words).unwrap_err();
            assert!(error.contains(part), "{words}: {error}");
        }
    }
}
