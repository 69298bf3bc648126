//! What `ping` reports at its end: percentiles, a histogram, where requests were answered, failures, objectives. Pure.

use fathom_analysis::criterion::ObjectiveVerdict;
use fathom_analysis::ping::classes::{LatencyClass, classes};
use fathom_analysis::ping::{Ping, suitability, whole};
use fathom_analysis::verdict::SuitabilityVerdict;
use fathom_model::units::{grouped, latency};
use fathom_record::{Latency, LatencySummary, RunRecord, ScheduleSummary};
use serde_json::json;

use super::PingReport;
use super::text::{error, stuck};
use crate::document::object;
use crate::run_view::{LATENCY_COLUMNS, latency_members};
use crate::verdict::{self, NEXT};
use crate::view::{
    Block, Cell, Column, Front, FrontFigure, KeyFigure, Row, Table, Tone, View, ViewHead, iops_text,
};
use crate::{ioping, text_writer};

/// The whole report.
pub fn view(record: &RunRecord) -> View {
    let ping = PingReport::of(record).ping;
    let how = &ping.how;
    let direct = if how.direct { "direct I/O" } else { "buffered I/O" };
    let head = ViewHead {
        target: vec![ioping::target(&how.target)],
        host: vec![
            format!("{} of {}", how.operation, ioping::size(how.block_size_bytes)),
            how.engine.clone(),
            direct.to_owned(),
        ],
        started_unix_ms: record.header.started_unix_ms,
    };
    let mut view = View { head: Some(head), data: data(ping), ..View::default() };
    let statistics =
        text_writer::text(|out| ioping::statistics(&how.target, &how.operation, &whole(ping), out));
    // Its own head stands above already.
    let statistics = statistics.unwrap_or_default().lines().skip(2).map(str::to_owned).collect();
    view.verdict = verdict(record).verdict;
    let LatencySummary { min, mean, max, p50, p90, p99, p999, .. } = ping.lat_ns.summary();
    let mean = mean.map(|mean| mean.round() as u64);
    let parts = [
        ("Minimum", min),
        ("p50", p50),
        ("p90", p90),
        ("p99", p99),
        ("p99.9", p999),
        ("Maximum", max),
        ("Mean", mean),
    ];
    let figures = parts.into_iter().filter_map(|(name, ns)| Some(FrontFigure::new(name, Cell::latency(ns?))));
    view.front = Front { title: "Latency", figures: figures.collect(), ..Front::default() };
    view.push("", [Block::Notes(statistics)]);
    view.sections.extend(closing(record).sections);
    view
}

/// What stands above ioping's statistics: the objectives, the latency, and what makes it that of something else than the device.
pub fn verdict(record: &RunRecord) -> View {
    const SPOILS: [&str; 8] =
        ["cache", "hole", "cache-served", "offered rate", "errors", "timed out", "stalls", "unanswered"];
    let mut view = View::default();
    let PingReport { ping, slo, .. } = PingReport::of(record);
    for one in &slo {
        let observed = one.observed_ns.map(|ns| format!(", measured {}", latency(ns))).unwrap_or_default();
        let text = format!("{} {}{observed}", one.objective, one.verdict.name());
        if one.verdict.is_missed() { view.warn("Objective", text) } else { view.say("Objective", text) }
    }
    let LatencySummary { samples, p50, p99, max, .. } = ping.lat_ns.summary();
    let parts = [("p50", p50), ("p99", p99), ("max", max)];
    let parts = parts.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", latency(ns?))));
    let parts: Vec<String> = parts.collect();
    let requests =
        if samples == 1 { "1 request".to_owned() } else { format!("{} requests", grouped(samples)) };
    view.say("Latency", (samples > 0).then(|| format!("{} ({requests})", parts.join(", "))));
    let by_latency = suitability(ping);
    if let Some((label, text)) = by_latency.as_ref().and_then(verdict::suitability) {
        view.say(label, format!("{text} (by this latency alone)"));
    }
    for figure in figures(ping).into_iter().filter(|figure| SPOILS.contains(&figure.label.as_str())) {
        view.warn(figure.label, figure.cell.text);
    }
    view.say(NEXT, by_latency.and_then(|uses| next(ping, &uses)));
    view
}

/// What shows more than latencies do.
fn next(ping: &Ping, uses: &SuitabilityVerdict) -> Option<String> {
    let device = ping.device_counts.as_ref().map(|device| device.name.as_str());
    Some(match (uses.unsuitable.is_empty(), uses.inconclusive.is_empty()) {
        (false, _) => format!("`fathom monitor {}` shows the load beside this one", device?),
        (_, false) => "repeat with `-q -c 1200 -i 5ms`: these requests are too few for a p99".to_owned(),
        _ => "`fathom bench` tests the rates that these uses need".to_owned(),
    })
}

/// What stands below ioping's statistics.
pub fn closing(record: &RunRecord) -> View {
    let mut view = View::default();
    let PingReport { ping, slo, .. } = PingReport::of(record);
    if ping.lat_ns.samples() > 0 {
        let series = [("time", Some(&ping.lat_ns)), ("response", ping.response_ns.as_ref())];
        let rows = series.into_iter().filter_map(|(name, record)| Some(percentiles(name, record?)));
        let numbers = ["min", "p50", "p90", "p95", "p99", "p99.9", "max", "mean"].map(Column::right);
        let columns = std::iter::once(Column::left("")).chain(numbers).collect::<Vec<_>>();
        view.push("", [Block::Table(Table::new(columns, rows))]);
        view.push_full("", [Block::Table(histogram(&classes(&ping.lat_ns)))]);
    }
    view.push_full("", [Block::KeyFigures(figures(ping))]);
    let objectives = ["objective", "result", "measured", ""].map(Column::left);
    view.push_full("", [Block::Table(Table::new(objectives, slo.iter().map(objective)).without_empty())]);
    view.push_full("Notes", [Block::Notes(ping.how.notes.clone())]);
    view
}

fn percentiles(name: &str, record: &Latency) -> Row {
    let LatencySummary { min, mean, max, p50, p90, p95, p99, p999, .. } = record.summary();
    let mean = mean.map(|mean| mean.round() as u64);
    let cell = |ns: Option<u64>| ns.map_or_else(|| "-".into(), Cell::latency);
    Row::new(std::iter::once(name.into()).chain([min, p50, p90, p95, p99, p999, max, mean].map(cell)))
}

fn histogram(classes: &[LatencyClass]) -> Table {
    let columns = [
        Column::right("from"),
        Column::right("below"),
        Column::right("requests").drawn(),
        Column::right("share"),
    ];
    let all = classes.iter().map(|class| class.samples).sum::<u64>().max(1) as f64;
    let rows = classes.iter().map(|&LatencyClass { from_ns, below_ns, samples: count }| {
        let share = count as f64 / all;
        let share = Cell::real(share, format!("{:.2} %", share * 100.0));
        Row::new([Cell::latency(from_ns), Cell::latency(below_ns), Cell::count(count), share])
    });
    Table::new(columns, rows)
}

fn objective(verdict: &ObjectiveVerdict) -> Row {
    let observed = verdict.observed_ns.map_or_else(|| "none".into(), Cell::latency);
    let note = verdict.verdict.reason().map_or("", |(reason, _)| reason);
    let row =
        Row::new([verdict.objective.as_str().into(), verdict.verdict.name().into(), observed, note.into()]);
    row.toned(if verdict.verdict.is_missed() { Tone::Alarm } else { Tone::Normal })
}

/// The rate of a fixed schedule, requests per second, where the target did not keep it over a second or more.
fn unsustained_rate(ping: &Ping) -> Option<f64> {
    let (how, load) = (&ping.how, &ping.load);
    let offered = 1e9 / how.interval_ns as f64;
    let is_measured = load.wall_ns() >= 1_000_000_000;
    let is_scheduled = how.fixed_schedule && how.interval_ns > 0;
    let completed = load.per_second(load.answered);
    (is_scheduled && is_measured && completed < ScheduleSummary::MIN_SHARE * offered).then_some(offered)
}

const EINVAL: i32 = 22;
/// Below so many requests the kernel's counters say nothing.
const FEW: u64 = 10;

fn figures(ping: &Ping) -> Vec<KeyFigure> {
    let counts = &ping.counts;
    let mut figures = Vec::new();
    let mut add = |label: &str, text: String| figures.push(KeyFigure::new(label, text));
    let answered = [
        ("device", counts.served.device),
        ("cache", counts.served.cache),
        ("a hole in the file", counts.served.hole),
    ];
    let answered: Vec<String> = answered
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{} by {what}", grouped(*count)))
        .collect();
    if !answered.is_empty() {
        let first = counts.first_ns.map(|ns| format!("; the first took {}", latency(ns))).unwrap_or_default();
        add("answered", format!("{}{first}", answered.join(", ")));
    }
    if counts.served.cache > 0 {
        add("cache", "the memory of this host answered: these are not times of the device".to_owned());
    }
    if counts.served.hole > 0 {
        add("hole", "never written, so the device was not asked".to_owned());
    }
    if let Some(device) = &ping.device_counts {
        let seen = device.reads + device.writes;
        if counts.served.device >= FEW && seen * 2 < counts.served.device {
            let asked = grouped(counts.served.device);
            let seen = grouped(seen);
            let text = format!(
                "{asked} requests bypassed the page cache, but the kernel counted {seen} at {}",
                device.name
            );
            add("cache-served", text);
        }
    }
    if let Some(offered) = unsustained_rate(ping) {
        let text = format!(
            "not sustained: {} IOPS offered, {} completed; response times grow with the length of the run",
            iops_text(offered),
            iops_text(ping.load.per_second(ping.load.answered))
        );
        add("offered rate", text);
    }
    for (errno, count) in &counts.errors_by_errno {
        add(
            "errors",
            format!("{} of {} requests: {}", grouped(*count), grouped(counts.requests), error(*errno)),
        );
    }
    if counts.timeouts > 0 {
        add("timed out", grouped(counts.timeouts));
    }
    if counts.stall_count > 0 {
        let longest = counts.stalls.iter().map(|stall| stall.length_ns).max().unwrap_or(0);
        add("stalls", format!("{}, longest {}", grouped(counts.stall_count), latency(longest)));
    }
    if let Some(thread) = ping.stuck_thread {
        add("unanswered", stuck(thread));
    }
    if ping.how.direct && counts.errors_by_errno.contains_key(&EINVAL) {
        add("hint", "direct I/O requires whole sectors: use -s 4k, or --buffered".to_owned());
    }
    figures
}

/// The latencies of all requests and, as `class`, how many fell between two bounds.
fn data(ping: &Ping) -> Table {
    let (counts, load) = (&ping.counts, &ping.load);
    let scope = |scope: &str, latency: &Latency| {
        let counted = json!({
            "scope": scope,
            "requests": counts.requests,
            "errors": counts.errors,
            "timeouts": counts.timeouts,
            "iops": load.per_second(load.answered),
            "bytes_per_second": load.per_second(load.answered_bytes),
        });
        let samples = json!({ "lat_samples": latency.samples() });
        object([counted, latency_members(&latency.summary()), samples])
    };
    let class = |LatencyClass { from_ns, below_ns, samples }| json!({ "scope": "class", "from_ns": from_ns, "below_ns": below_ns, "lat_samples": samples });
    let rows = std::iter::once(scope("time", &ping.lat_ns))
        .chain(ping.response_ns.as_ref().map(|response| scope("response", response)))
        .chain(classes(&ping.lat_ns).into_iter().map(class));
    let latency = LATENCY_COLUMNS.split_once(',').map_or("", |(_, figures)| figures);
    let counted = "requests,errors,timeouts,iops,bytes_per_second";
    Table::of_documents(&["scope,from_ns,below_ns,samples=lat_samples", latency, counted], rows)
}
