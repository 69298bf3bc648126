//! What each option of `ping` means, under our own name and under ioping's, and the help of both.
//!
//! Words are read as the C library's `getopt_long_only` reads them (one or two dashes, abbreviated, glued and clustered), numbers as
//! ioping does: fractions, a division, and a suffix in any case (`3.5k`, `1/3s`, `/2`).

use fathom_analysis::criterion::LatencyObjective;
use fathom_assess::VolumeTypes;
use fathom_assess::ping::{LatePolicy, Operation, PingSettings};
use fathom_history::Location;
use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, parse_duration};
use fathom_options::FleetOptions;
use fathom_report::formats::Format;

use crate::commands::run_arguments::{KeepArguments, label, tag};
use crate::live::{LiveArguments, LiveStream};

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
    /// The report has everything.
    pub full: bool,
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
    full: bool,
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
            "expect" => {
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
        full: gathered.full,
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
        "full" => gathered.full = true,
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

const fn flag(long: &'static str, short: char, help: &'static str) -> PingOption {
    PingOption { long, short: Some(short), takes: ValueUse::Nothing, value: "", help }
}

const fn valued(long: &'static str, short: char, value: &'static str, help: &'static str) -> PingOption {
    PingOption { long, short: Some(short), takes: ValueUse::Value, value, help }
}

const fn ours(long: &'static str, value: &'static str, help: &'static str) -> PingOption {
    let takes = if value.is_empty() { ValueUse::Nothing } else { ValueUse::Value };
    PingOption { long, short: None, takes, value, help }
}

/// ioping's options.
pub const IOPING: &[PingOption] = &[
    flag("async", 'A', "use Linux AIO"),
    flag("cached", 'C', "use cached I/O: neither drop nor flush the cache"),
    flag("direct", 'D', "use direct I/O (O_DIRECT)"),
    flag("read-write", 'G', "alternate writes and reads"),
    flag("linear", 'L', "sequential offsets instead of random; 256k requests"),
    flag("nowait", 'N', "fail instead of waiting (RWF_NOWAIT)"),
    flag("hipri", 'H', "poll for completions (RWF_HIPRI)"),
    flag("write", 'W', "write instead of read; -WWW overwrites a file"),
    flag("sync", 'Y', "use synchronous I/O (O_SYNC)"),
    flag("dsync", 'y', "use synchronous data I/O (O_DSYNC)"),
    flag("rapid", 'R', "no delay between requests, 3 s, range 64m (-q -i 0 -w 3)"),
    flag("keep", 'k', "keep and reuse ioping.tmp in the directory"),
    valued("warmup", 'a', "COUNT", "requests to ignore at the start [default: 1]"),
    valued("burst", 'b', "COUNT", "requests without delay before each interval [default: 0]"),
    valued("count", 'c', "COUNT", "stop after COUNT requests"),
    valued("entropy", 'e', "SEED", "seed of random offsets [default: the clock]"),
    valued("interval", 'i', "TIME", "time between requests [default: 1s]"),
    valued("size", 's', "SIZE", "request size [default: 4k]"),
    valued("work-size", 'S', "SIZE", "size of the range [default: 1m in a directory, else all]"),
    valued("work-offset", 'o', "SIZE", "start of the range [default: 0]"),
    valued("work-time", 'w', "TIME", "stop after TIME"),
    valued("speed-limit", 'l', "SIZE", "bandwidth limit in bytes per second"),
    valued("rate-limit", 'r', "COUNT", "IOPS limit"),
    valued("min-time", 't', "TIME", "ignore faster requests"),
    valued("max-time", 'T', "TIME", "ignore slower requests"),
    flag("batch", 'B', "print one raw line of numbers at the end"),
    PingOption {
        long: "time",
        short: Some('I'),
        takes: ValueUse::Glued,
        value: "FORMAT",
        help: "print the time before each line (-I%T)",
    },
    flag("json", 'J', "print a JSON array"),
    valued("print-count", 'p', "COUNT", "print a raw line every COUNT requests"),
    valued("print-interval", 'P', "TIME", "print a raw line every TIME"),
    flag("quiet", 'q', "omit the line per request"),
    flag("help", 'h', "print this help"),
    flag("version", 'v', "print the version"),
];

/// What `fathom ping` has beyond them; a long `--json` is its own document there, `-J` stays ioping's, and so does `-k` where a
/// long `--keep` keeps the run.
const OWN: &[PingOption] = &[
    ours("json", "", "print one JSON document (fathom.ping/1) only"),
    ours("format", "FORMAT", "print a report only: text, markdown, csv, jsonl, json [default: text]"),
    ours("full", "", "print the full report: histogram, answers and notes"),
    ours("units", "UNITS", "units of the report: iec (MiB/s) or si (MB/s) [default: iec]"),
    ours("events", "", "print a line of JSON per request, stall and period, and a summary"),
    ours("tui", "", "show a full-screen view while it runs; press ? for its keys"),
    ours(
        "live",
        "STREAM",
        "stream live figures: ndjson[=FILE], openmetrics[=ADDR:PORT[,NAME...]] (repeatable)",
    ),
    ours("buffered", "", "use the page cache instead of direct I/O"),
    ours("engine", "NAME", "I/O engine: io_uring, libaio, psync, ... [default: io_uring if direct]"),
    ours("schedule", "fixed", "issue requests at fixed times and measure latency from them"),
    ours("expect", "P<TIME", "latency objective such as 'p99<5ms,max<1s'; exit 3 if missed"),
    ours("strict", "", "exit 4 if an objective is inconclusive and none is missed"),
    ours("timeout", "TIME", "count slower requests as timed out [default: 10s]"),
    ours("keep", "", "keep the run in the history; --history and FATHOM_HISTORY imply it"),
    ours(
        "history",
        "FILE|URI",
        "keep the run in this file or server [default: FATHOM_HISTORY, else the user's own]",
    ),
    ours("label", "NAME=VALUE", "label of the run (repeatable)"),
    ours("tag", "NAME", "tag of the run (repeatable)"),
    ours("fleet", "", "join the job that a launcher (srun, mpiexec, mpirun) started; rank 0 reports"),
    ours("fleet-out", "DIR", "write the record of each rank to DIR/rank-NNNNN.json"),
    ours("fleet-join", "TIME", "longest wait for all ranks to come [default: 60s]"),
    ours("fleet-prepare", "TIME", "longest wait for all ranks to be ready [default: 30min]"),
    ours("fleet-grace", "TIME", "longest wait for other ranks beyond -w [default: 30s]"),
    ours("fleet-start", "HOW", "start at a barrier, or at an instant of the clock: barrier, clock"),
    ours("catalog", "FILE", "additional volume types for sim: targets [default: FATHOM_CATALOG]"),
    ours("destroy-data", "DEVICE", "allow writes to this target, a device or file; destroys its data"),
];

/// The options of a front.
pub fn rows(front: PingProgram) -> Vec<PingOption> {
    match front {
        PingProgram::Ioping => IOPING.to_vec(),
        PingProgram::Own => {
            let theirs = IOPING.iter().map(|row| match row.long {
                "json" => PingOption { long: "ioping-json", help: "print ioping's JSON array", ..*row },
                "keep" => PingOption { long: "keep-file", ..*row },
                _ => *row,
            });
            theirs.chain(OWN.iter().copied()).collect()
        }
    }
}

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueUse {
    /// No.
    Nothing,
    /// Always.
    Value,
    /// Only where it is glued on.
    Glued,
}

/// An option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingOption {
    /// Its long name.
    pub long: &'static str,
    /// Its letter.
    pub short: Option<char>,
    /// Whether it takes a value.
    pub takes: ValueUse,
    /// What the help calls the value.
    pub value: &'static str,
    /// What the help says.
    pub help: &'static str,
}

/// The options and operands of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedWords {
    /// Long names and values, in order.
    pub options: Vec<(&'static str, Option<String>)>,
    /// What is no option.
    pub operands: Vec<String>,
}

/// Reads `words` by the options of `rows`; the error is the C library's sentence.
pub fn read_words(words: &[String], rows: &[PingOption]) -> Result<ParsedWords, String> {
    let mut parsed = ParsedWords::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            parsed.operands.extend(words.cloned());
            break;
        }
        let Some(body) = word.strip_prefix('-').filter(|body| !body.is_empty()) else {
            parsed.operands.push(word.clone());
            continue;
        };
        let by_short =
            |letter: Option<char>| rows.iter().find(|row| row.short.is_some() && row.short == letter);
        let is_double = body.starts_with('-');
        // A lone letter that is one is never an abbreviation.
        let is_letter = !is_double && body.chars().count() == 1 && by_short(body.chars().next()).is_some();
        if !is_letter {
            let (dashes, name) = if is_double { ("--", &body[1..]) } else { ("-", body) };
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, None),
            };
            if let Some(row) = long(dashes, name, rows)? {
                parsed.options.push((row.long, long_value(row, dashes, value, &mut words)?));
                continue;
            }
            if is_double || by_short(body.chars().next()).is_none() {
                return Err(format!("unrecognized option '{dashes}{name}'"));
            }
        }
        cluster(body, rows, &mut words, &mut parsed)?;
    }
    Ok(parsed)
}

/// The row called `name`, or the only one whose name begins so.
fn long(dashes: &str, name: &str, rows: &[PingOption]) -> Result<Option<PingOption>, String> {
    // An older name.
    let name = if name == "slo" { "expect" } else { name };
    if let Some(row) = rows.iter().find(|row| row.long == name) {
        return Ok(Some(*row));
    }
    let found: Vec<&PingOption> = rows.iter().filter(|row| row.long.starts_with(name)).collect();
    if found.len() > 1 {
        let names: Vec<String> = found.iter().map(|row| format!("'{dashes}{}'", row.long)).collect();
        return Err(format!("option '{dashes}{name}' is ambiguous; possibilities: {}", names.join(" ")));
    }
    Ok(found.first().map(|row| **row))
}

fn long_value<'a>(
    row: PingOption,
    dashes: &str,
    value: Option<String>,
    words: &mut impl Iterator<Item = &'a String>,
) -> Result<Option<String>, String> {
    match (row.takes, value) {
        (ValueUse::Nothing, Some(_)) => {
            Err(format!("option '{dashes}{}' doesn't allow an argument", row.long))
        }
        (ValueUse::Value, None) => {
            let value = words.next().cloned();
            value.map(Some).ok_or_else(|| format!("option '{dashes}{}' requires an argument", row.long))
        }
        (_, value) => Ok(value),
    }
}

/// `-RLB`, `-s4k`.
fn cluster<'a>(
    body: &str,
    rows: &[PingOption],
    words: &mut impl Iterator<Item = &'a String>,
    parsed: &mut ParsedWords,
) -> Result<(), String> {
    let mut rest = body;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let row = rows.iter().find(|row| row.short == Some(letter));
        let row = row.ok_or_else(|| format!("invalid option -- '{letter}'"))?;
        let value = match row.takes {
            ValueUse::Nothing => None,
            ValueUse::Glued => Some(std::mem::take(&mut rest).to_owned()).filter(|value| !value.is_empty()),
            ValueUse::Value if rest.is_empty() => {
                let value = words.next().cloned();
                Some(value.ok_or_else(|| format!("option requires an argument -- '{letter}'"))?)
            }
            ValueUse::Value => Some(std::mem::take(&mut rest).to_owned()),
        };
        parsed.options.push((row.long, value));
    }
    Ok(())
}

/// Suffixes and what they stand for, in lower case.
type Suffixes = &'static [(&'static str, u64)];

/// Bytes; all suffixes are powers of 1024.
pub const SIZE: Suffixes = &[
    ("", 1),
    ("b", 1),
    ("sector", 512),
    ("page", 4096),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tb", 1 << 40),
    ("tib", 1 << 40),
];

/// Nanoseconds; seconds without a suffix.
const TIME: Suffixes = &[
    ("", 1_000_000_000),
    ("ns", 1),
    ("nsec", 1),
    ("us", 1_000),
    ("usec", 1_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("hour", 3_600_000_000_000),
];

/// Plain numbers.
pub const COUNT: Suffixes =
    &[("", 1), ("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000), ("t", 1_000_000_000_000)];

/// Reads a time as ioping does, or one of several units (`5m30s`), which ioping refuses.
pub fn parse_time(text: &str) -> Result<u64, String> {
    parse(text, TIME).or_else(|error| parse_duration(text).map(|time| time.0).map_err(|_| error))
}

/// Reads `text`; the error is the sentence that ioping has for it.
pub fn parse(text: &str, suffixes: Suffixes) -> Result<u64, String> {
    let (mut value, mut rest) = numeral(text).unwrap_or((1.0, text));
    let had_number = rest.len() < text.len();
    if let Some(behind) = rest.strip_prefix('/') {
        let (divisor, behind) = numeral(behind).unwrap_or((1.0, behind));
        value /= divisor;
        rest = behind;
    } else if !had_number {
        return Err(format!("invalid suffix: \"{text}\""));
    }
    let suffix = rest.to_ascii_lowercase();
    let scale = suffixes.iter().find(|(name, _)| *name == suffix).map(|&(_, scale)| scale);
    let scale = scale.ok_or_else(|| format!("invalid suffix: \"{rest}\""))?;
    let scaled = value * scale as f64;
    if scaled.is_nan() || scaled < 0.0 || scaled >= u64::MAX as f64 {
        return Err(format!("integer overflow at parsing argument: {text}"));
    }
    Ok(scaled as u64)
}

/// The number at the beginning, whole numbers also in base 16, and what follows it.
fn numeral(text: &str) -> Option<(f64, &str)> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        return u64::from_str_radix(&hex[..end], 16).ok().map(|value| (value as f64, &hex[end..]));
    }
    let sign = usize::from(text.starts_with(['-', '+']));
    let end =
        text[sign..].find(|c: char| !(c.is_ascii_digit() || c == '.')).map_or(text.len(), |at| at + sign);
    text[..end].parse().ok().map(|value| (value, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(front: PingProgram, words: &str) -> Result<PingInvocation, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        invocation(&read_words(&words, &rows(front))?, front)
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
            ("--expect p99 .", "is not an objective"),
            ("", "no destination"),
            ("a b", "more than one destination"),
        ] {
            let error = read(PingProgram::Own, words).unwrap_err();
            assert!(error.contains(part), "{words}: {error}");
        }
    }

    const fn row(long: &'static str, short: Option<char>, takes: ValueUse) -> PingOption {
        PingOption { long, short, takes, value: "", help: "" }
    }

    const ROWS: &[PingOption] = &[
        row("cached", Some('C'), ValueUse::Nothing),
        row("count", Some('c'), ValueUse::Value),
        row("batch", Some('B'), ValueUse::Nothing),
        row("linear", Some('L'), ValueUse::Nothing),
        row("rapid", Some('R'), ValueUse::Nothing),
        row("time", Some('I'), ValueUse::Glued),
        row("live", None, ValueUse::Value),
    ];

    #[test]
    fn words_are_read_as_the_c_library_does() {
        let check = |words: &str, expected: Result<&str, &str>| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let found = read_words(&words, ROWS).map(|parsed| {
                let options = parsed.options.iter().map(|(name, value)| match value {
                    Some(value) => format!("{name}={value}"),
                    None => (*name).to_owned(),
                });
                options.chain(parsed.operands.iter().cloned()).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{words:?}");
        };
        check("-c 2 .", Ok("count=2 ."));
        check(". -c2", Ok("count=2 ."));
        check("-count 2 --count=3 -cou 4", Ok("count=2 count=3 count=4"));
        check("-RLB .", Ok("rapid linear batch ."));
        check("-ba", Ok("batch"));
        check("-I .", Ok("time ."));
        check("-I%s .", Ok("time=%s ."));
        check("--time=%s", Ok("time=%s"));
        check("-- -c", Ok("-c"));
        check("-", Ok("-"));
        check("--li", Err("option '--li' is ambiguous; possibilities: '--linear' '--live'"));
        check("--c 1", Err("option '--c' is ambiguous; possibilities: '--cached' '--count'"));
        check("-Z", Err("unrecognized option '-Z'"));
        check("--nosuch", Err("unrecognized option '--nosuch'"));
        check("-c", Err("option requires an argument -- 'c'"));
        check("--count", Err("option '--count' requires an argument"));
        check("--batch=3", Err("option '--batch' doesn't allow an argument"));
        check("-BZ", Err("invalid option -- 'Z'"));
    }

    #[test]
    fn numbers_are_read_as_ioping_does() {
        let check = |text: &str, suffixes: Suffixes, expected: Result<u64, &str>| {
            assert_eq!(parse(text, suffixes), expected.map_err(str::to_owned), "{text}");
        };
        check("4k", SIZE, Ok(4096));
        check("4KiB", SIZE, Ok(4096));
        check("3.5k", SIZE, Ok(3584));
        check("1/2k", SIZE, Ok(512));
        check("/2", SIZE, Ok(0));
        check("2sector", SIZE, Ok(1024));
        check("1Page", SIZE, Ok(4096));
        check("1.5m", SIZE, Ok(3 << 19));
        check("0x10", COUNT, Ok(16));
        check("1k", COUNT, Ok(1000));
        check("1/3s", TIME, Ok(333_333_333));
        check("10MSEC", TIME, Ok(10_000_000));
        check("2", TIME, Ok(2_000_000_000));
        check("1hour", TIME, Ok(3_600_000_000_000));
        check("x", COUNT, Err("invalid suffix: \"x\""));
        check("1q", TIME, Err("invalid suffix: \"q\""));
        assert_eq!(parse_time("5m30s"), Ok(330_000_000_000));
        assert_eq!(parse_time("1m1q"), Err("invalid suffix: \"m1q\"".to_owned()));
        check("4 k", SIZE, Err("invalid suffix: \" k\""));
        check("4kk", SIZE, Err("invalid suffix: \"kk\""));
        check("-1", COUNT, Err("integer overflow at parsing argument: -1"));
        check("1/0", COUNT, Err("integer overflow at parsing argument: 1/0"));
        check("99999999t", SIZE, Err("integer overflow at parsing argument: 99999999t"));
        check("", COUNT, Err("invalid suffix: \"\""));
    }
}
