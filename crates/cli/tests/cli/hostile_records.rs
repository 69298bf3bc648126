//! Every report of every kind of record, with text in it that others may have written: nothing of it reaches a terminal but as
//! text, and it makes no line.

use std::sync::LazyLock;

use fathom_analysis::Analysis;
use fathom_analysis::monitor::{
    DeviceActivity, MonitorInterval, MonitoredDevice, OpActivity, ProcessActivity, WatchedDevice,
};
use fathom_analysis::ping::{PingSample, PingTarget};
use fathom_assess::{VolumeTypes, candidates, volume_size};
use fathom_model::text::{defused, is_hidden, shown};
use fathom_model::{Op, PerOp};
use fathom_record::{Activity, HistoryRow, HostRecord, Observed, RunHeader, RunRecord, TestRecord};
use fathom_report::formats::{self, Format};
use fathom_report::identify::{self, IdentifyReport};
use fathom_report::view::View;
use fathom_report::{
    Style, TextWriter, bench, fio::json as fio_json, fio::normal as fio_normal, history, ioping,
};
use fathom_report::{
    monitor, ping::json as ping_json, ping::text as ping_text, ping::view as ping_view, prepare, simulate,
    surface, sweep,
};
use fathom_report::{text_writer, width};
use proptest::prelude::*;
use serde_json::Value;

use crate::{run, scratch};

/// What a run of each kind left in the history.
static RECORDS: LazyLock<Vec<Template>> = LazyLock::new(|| {
    let volume = "sim:custom?iops=700&bandwidth=20MiB&latency=500us&parallelism=64&size=1GiB";
    let quick = ["bench", "--quick", "--only=lat-read,commit,rand-mixed", "--expect", "lat-read.iops>=5000"];
    let commands: [&[&str]; 7] = [
        &quick,
        &["sweep", "--budget=10s", "--expect=p99<5ms"],
        &["surface", "--points=10", "--budget=10s"],
        &["identify", "--budget=5m"],
        &["prepare", "--fill"],
        &["ping", "-q", "-c", "20", "--schedule=fixed", "--expect=p50<5ms"],
        &["simulate", "--profile=oltp", "--for=10s", "aws-gp2?size=100GiB"],
    ];
    let dir = scratch();
    let run = |args: &[&str]| {
        let ended = run(dir.path(), &[args, &["--history", "h.db"]].concat());
        assert!(matches!(ended.code, Some(0 | 3)), "{args:?}: {ended:?}");
        ended.stdout
    };
    for command in commands {
        run(&[command, &["--label=a=b", volume]].concat());
    }
    let exported = run(&["history", "export"]);
    // What is monitored depends on the machine.
    exported.lines().chain([monitored().to_json().as_str()]).map(Template::new).collect()
});

/// A record whose texts can be replaced.
struct Template {
    record: Value,
    /// Where texts are that may hold anything: their paths without indices.
    free: Vec<String>,
}

impl Template {
    fn new(json: &str) -> Template {
        let mut record: Value = serde_json::from_str(json).unwrap();
        // A host as a run on real time has, a test of each status, and everything there that need not be.
        record["header"]["hosts"] = serde_json::to_value([HostRecord::default()]).unwrap();
        for (index, status) in ["failed", "skipped"].into_iter().enumerate() {
            if let Some(test) = record["tests"].get_mut(index) {
                test["status"] = status.into();
                test["reason"] = "a reason".into();
            }
        }
        let mut free = Vec::new();
        for path in paths(&record) {
            let mut changed = record.clone();
            change(&mut changed, "", &mut |at, text| {
                if at == path {
                    text.push('~');
                }
            });
            if reads(&changed).is_some() {
                record = filled(record, &changed, &path);
                free.push(path);
            }
        }
        assert!(free.len() > 40, "{free:#?}");
        Template { record, free }
    }

    /// The record with `suffix` behind the texts that `chosen` chooses.
    fn with(&self, suffix: &str, chosen: &[bool]) -> RunRecord {
        let mut record = self.record.clone();
        change(&mut record, "", &mut |at, text| {
            let index = self.free.iter().position(|path| path == at);
            if index.is_some_and(|index| chosen[index % chosen.len()]) {
                text.push_str(suffix);
            }
        });
        reads(&record).unwrap()
    }
}

fn reads(record: &Value) -> Option<RunRecord> {
    RunRecord::from_json(&record.to_string()).ok()
}

/// `record` with a text where `path` is null or an empty list of what `changed` shows to be texts.
fn filled(record: Value, changed: &Value, path: &str) -> Value {
    let mut is_missing = false;
    let mut plain = record.clone();
    change(&mut plain, "", &mut |at, text| is_missing |= at == path && text.is_empty());
    if !is_missing {
        return record;
    }
    let mut with_text = changed.clone();
    change(&mut with_text, "", &mut |at, text| {
        if at == path && text == "~" {
            "some text".clone_into(text);
        }
    });
    with_text
}

/// The paths of all that is a text, or null or an empty list and may be one.
fn paths(record: &Value) -> Vec<String> {
    let mut found = Vec::new();
    change(&mut record.clone(), "", &mut |at, _| found.push(at.to_owned()));
    found.sort();
    found.dedup();
    // With spaces behind it, the goal of a sweep is the same; with letters, it is not read.
    found.retain(|path| !["/schema", "/slo", "/reach"].iter().any(|end| path.ends_with(end)));
    found
}

/// Shows `each` all texts below `value` and the names of labels; null and empty lists as an empty text, which they become where
/// it is changed.
fn change(value: &mut Value, at: &str, each: &mut impl FnMut(&str, &mut String)) {
    let mut offered = String::new();
    match value {
        Value::String(text) => each(at, text),
        Value::Null => {
            each(at, &mut offered);
            if !offered.is_empty() {
                *value = offered.into();
            }
        }
        Value::Array(items) if items.is_empty() => {
            each(at, &mut offered);
            if !offered.is_empty() {
                items.push(offered.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| change(item, at, each)),
        Value::Object(fields) if at.ends_with("/labels") => {
            let renamed = std::mem::take(fields).into_iter().map(|(mut name, mut value)| {
                each(&format!("{at}/names"), &mut name);
                change(&mut value, &format!("{at}/values"), each);
                (name, value)
            });
            *fields = renamed.collect();
        }
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(name, value)| change(value, &format!("{at}/{name}"), each));
        }
        Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What others may write.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = [
        "\x1b]0;x\x07", "\x1b[31m", "\x1b[2J", "\x1b[0m", "\n", "\r\n", "\t", "\0", "\x7f", "\u{9b}1A",
        "\u{202e}", "\u{2066}", "\u{200b}", "\u{2028}", "\u{feff}", "\\", r"\x1b", r"\u{202e}", " ", "word",
        "日", "é", "'", "\"", "\u{fdd0}",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 1..8).prop_map(|pieces| pieces.concat())
}

/// As wide as `text` is when it is shown, and broken in the same places, but without anything to be shown otherwise.
fn harmless(text: &str) -> String {
    shown(text)
        .chars()
        .map(|c| if c == ' ' { c.to_string() } else { "x".repeat(width(&c.to_string())) })
        .collect()
}

/// The colours of `text` in their order, and the text without them.
fn colours(text: &str) -> (Vec<String>, String) {
    let (mut colours, mut rest) = (Vec::new(), String::new());
    for (index, piece) in text.split("\x1b[").enumerate() {
        let end = if index == 0 { None } else { piece.find('m') };
        let (colour, after) = end.map_or(("", piece), |end| piece.split_at(end + 1));
        assert!(colour.chars().all(|c| c.is_ascii_digit() || c == ';' || c == 'm'), "{colour:?}");
        colours.extend(end.map(|_| colour.to_owned()));
        rest.push_str(after);
    }
    (colours, rest)
}

/// Holds what `render` makes of hostile text against what it makes of harmless text of the same width.
#[track_caller]
fn compare(name: &str, suffix: &str, render: impl Fn(&str, &mut TextWriter) -> std::io::Result<()>) {
    let of = |suffix: &str| text_writer::text(|out| render(suffix, out)).unwrap();
    let ((ours, text), (expected, plain)) = (colours(&of(suffix)), colours(&of(&harmless(suffix))));
    let found = text.chars().find(|&c| c != '\n' && is_hidden(c));
    assert_eq!(found, None, "{name}: {suffix:?} in\n{text:?}");
    assert_eq!(text.lines().count(), plain.lines().count(), "{name}: {suffix:?}:\n{text}\nbeside\n{plain}");
    assert_eq!(ours, expected, "{name}: {suffix:?}");
    // What scripts read and people copy shows no text longer than it is, and JSON has escapes of its own.
    let is_text = !["json", "record", "markdown", "csv"].iter().any(|format| name.contains(format));
    if is_text && shown(suffix) == defused(suffix) {
        for (line, beside) in text.lines().zip(plain.lines()) {
            let (found, expected) = (width(&line.replace('\\', "x")), width(beside));
            assert!(
                found == expected,
                "{name}: {suffix:?}: {found} and {expected} columns:\n{text}\nbeside\n{plain}"
            );
        }
    }
}

/// Activities whose reports are views.
const VIEWS: [&str; 8] = ["bench", "identify", "monitor", "ping", "prepare", "simulate", "surface", "sweep"];

fn view(activity: &str, record: &RunRecord, show_fio: bool) -> View {
    match activity {
        "bench" => bench::view(&Analysis::of(record), show_fio),
        "identify" => identify::view(&identified(record), show_fio),
        "monitor" => monitor::means(record),
        "ping" => ping_view(record),
        "prepare" => prepare::view(record),
        "simulate" => simulate::view(record),
        "surface" => surface::view(record, show_fio),
        "sweep" => sweep::view(&Analysis::of(record), show_fio),
        _ => panic!("{activity} has no view"),
    }
}

fn identified(record: &RunRecord) -> IdentifyReport<'_> {
    let types = VolumeTypes::default();
    let size = volume_size(&record.header, &types);
    IdentifyReport::new(record, |found| candidates(types.catalogue().unwrap(), found, size))
}

fn report(name: &str, record: &RunRecord, style: &Style, out: &mut TextWriter) -> std::io::Result<()> {
    if let Some((activity, format)) = name.split_once(" as ") {
        let format: Format = format.parse().unwrap();
        return format.write(style, out, || view(activity, record, style.show_fio), |_| Ok(()));
    }
    match name {
        "identify-json" => identified(record).document(style, &mut out.json()),
        "json+" => fio_json::render_plus(record, style, &mut out.json()),
        "normal" => fio_normal::render(record, style, out),
        "json" => fio_json::render(record, style, &mut out.json()),
        "bench-json" => bench::json::render(&Analysis::of(record), style, &mut out.json()),
        "monitor" => monitor::lines::render(record, style, out),
        "monitor-json" => {
            let mut intervals = monitor::intervals(record).into_iter();
            intervals.try_for_each(|interval| monitor::json::line(interval, &mut out.json()))
        }
        "ping" => ping_text::render(record, style, out),
        "ping-json" => ping_json::render(record, style, &mut out.json()),
        "simulate-json" => simulate::json::render(record, style, &mut out.json()),
        "record" => record.write_json(&mut out.json()),
        unknown => unreachable!("{unknown}"),
    }
}

fn styles() -> impl Strategy<Value = Style> {
    (prop::sample::select(vec![40, 80, 200]), any::<bool>()).prop_map(|(width, colour)| Style {
        width,
        colour,
        show_fio: colour,
        ..Style::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn reports_of_records_hide_nothing_and_no_text_makes_a_line(
        suffix in hostile(),
        style in styles(),
        chosen in prop::collection::vec(any::<bool>(), 1..60),
        kind in any::<prop::sample::Index>(),
    ) {
        let names = [
            "normal", "json", "json+", "record", "bench-json", "identify-json", "monitor", "monitor-json", "ping", "ping-json", "simulate-json",
        ];
        let names = names.map(str::to_owned).into_iter();
        let views = VIEWS.iter().flat_map(|activity| Format::ALL.map(|format| format!("{activity} as {format}")));
        let template = kind.get(&RECORDS);
        let (hostile, plain) = (template.with(&suffix, &chosen), template.with(&harmless(&suffix), &chosen));
        for name in names.chain(views) {
            let record = |text: &str| if text == suffix { &hostile } else { &plain };
            compare(&name, &suffix, |text, out| report(&name, record(text), &style, out));
        }
    }

    #[test]
    fn lists_of_runs_have_a_line_per_run(suffix in hostile(), style in styles()) {
        let rows = |text: &str| {
            let own = |name: &str| format!("{name}{text}");
            let labels = [(own("l"), own("v"))].into();
            let row = HistoryRow { id: 1, started: own("s"), target: own("t"), labels, ..HistoryRow::default() };
            vec![row; 3]
        };
        compare("history", &suffix, |text, out| formats::text::render(&history::view(&rows(text), "", &style), &style, out));
        compare("history-markdown", &suffix, |text, out| {
            formats::markdown::render(&history::view(&rows(text), "", &style), &style, out)
        });
        compare("history-csv", &suffix, |text, out| formats::csv::render(&history::view(&rows(text), "", &style), out));
        compare("json", &suffix, |text, out| history::render_json(&rows(text), &mut out.json()));
        let table = text_writer::text(|out| formats::text::render(&history::view(&rows(&suffix), "", &style), &style, out)).unwrap();
        prop_assert_eq!(table.lines().count(), 4);
    }

    #[test]
    fn what_monitor_shows_has_a_line_per_device(suffix in hostile(), style in styles()) {
        compare("monitor", &suffix, |text, out| {
            let interval = interval(text);
            writeln!(out, "{}", monitor::lines::line(&interval, &style))?;
            formats::text::render(&monitor::view("Means", &[interval]), &style, out)
        });
        compare("markdown", &suffix, |text, out| {
            formats::markdown::render(&monitor::view("Means", &[interval(text)]), &style, out)
        });
        compare("csv", &suffix, |text, out| formats::csv::render(&monitor::view("Means", &[interval(text)]), out));
        compare("json", &suffix, |text, out| monitor::json::line(&interval(text), &mut out.json()));
        let job = monitor::job::render(&interval(&suffix)).unwrap();
        let plain = monitor::job::render(&interval(&harmless(&suffix))).unwrap();
        prop_assert_eq!(job.lines().count(), plain.lines().count());
        prop_assert!(!job.chars().any(|c| c != '\n' && is_hidden(c)), "{}", job);
    }

    #[test]
    fn pings_have_a_line_per_request(suffix in hostile(), style in styles()) {
        compare("ping", &suffix, |text, out| {
            let own = |name: &str| format!("{name}{text}");
            let (path, fs_type, device) = (own("/mnt"), own("ext4"), own("/dev/sda"));
            let target = PingTarget { path, fs_type, device, ..PingTarget::default() };
            let sample = PingSample {
                request: 1, operation: Op::Read, offset_bytes: 0, size_bytes: 4096, result: 4096, lat_ns: 1000, response_ns: None,
                served: None, elapsed_ns: 0,
            };
            writeln!(out, "{}", ping_text::line(&target, &sample, None, &style))?;
            writeln!(out, "{}", ioping::stamp(0, text, &style))
        });
    }
}

/// A run of monitor with one interval of one device.
fn monitored() -> RunRecord {
    let interval = interval("");
    let device = MonitoredDevice { means: interval.clone(), intervals: vec![interval] };
    let test = TestRecord { observed: Some(Observed::Monitor(Box::new(device))), ..TestRecord::default() };
    let header = RunHeader { activity: Activity::Monitor, ..RunHeader::default() };
    RunRecord { header, tests: vec![test], ..RunRecord::default() }
}

fn interval(text: &str) -> MonitorInterval {
    let own = |name: &str| format!("{name}{text}");
    let read = OpActivity { ios: 1000, bytes: 4_096_000, ticks_ms: 1000, merges: 0 };
    let owner = ProcessActivity {
        process: 7,
        command: own("command"),
        file: own("/file"),
        read_bytes_per_second: 1e6,
        ..ProcessActivity::default()
    };
    let device = WatchedDevice {
        name: own("sda"),
        path: own("/dev/sda"),
        asked: Some(own("/mnt")),
        under: vec![own("sdb")],
        ..WatchedDevice::default()
    };
    MonitorInterval {
        elapsed_ns: 1_000_000_000,
        device,
        activity: DeviceActivity { ops: PerOp { read, ..PerOp::default() }, ..DeviceActivity::default() },
        owners: vec![owner.clone(), owner],
        ..MonitorInterval::default()
    }
}
