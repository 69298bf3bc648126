//! Reports of `identify`: the limits, the burst bucket, types that match, what workloads get, and what was not determined and why.

use std::io::{self, Write};

use fathom_analysis::estimate::Estimate;
use fathom_analysis::identified::candidate::{Candidate, LIKELY};
use fathom_analysis::identified::prediction::{RatePhase, WorkloadPrediction, predictions};
use fathom_analysis::identified::{
    BucketUnit, Burst, Confounder, EachWay, Figure, Identified, IoScope, OtherCause,
};
use fathom_analysis::identify::script::identified_of;
use fathom_analysis::verdict::{BurstVerdict, IdentifiedVerdict, RateEachWay};
use fathom_model::Nanos;
use fathom_model::units::{self, bytes, duration, grouped};
use fathom_record::{Activity, RunRecord};
use serde::Serialize;

use crate::columns::capital;
use crate::view::{Block, Cell, Column, Front, FrontFigure, KeyFigure, Row, Table, View, decimal, iops_text};
use crate::{Style, run_json, run_view, verdict};

/// Most types that are shown.
const MAX_TYPES: usize = 4;

/// All that is known of a volume.
#[derive(Serialize)]
pub struct IdentifyReport<'a> {
    #[serde(skip)]
    record: &'a RunRecord,
    #[serde(flatten)]
    found: Identified,
    /// The nearest types, the nearest first.
    candidates: Vec<Candidate>,
    predictions: Vec<WorkloadPrediction>,
}

impl<'a> IdentifyReport<'a> {
    /// The report of a run, beside the types that `candidates` finds near to the volume.
    pub fn new(
        record: &'a RunRecord,
        candidates: impl FnOnce(&Identified) -> Vec<Candidate>,
    ) -> IdentifyReport<'a> {
        let found = identified_of(record).unwrap_or_default();
        let (candidates, predictions) = (candidates(&found), predictions(&found));
        IdentifyReport { record, found, candidates, predictions }
    }

    /// Writes the document of `identify --json`, indented.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn document(&self, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        run_json::write("fathom.identify/1", self.record, self.verdict(), self, style, out)
    }

    fn verdict(&self) -> IdentifiedVerdict {
        IdentifiedVerdict::of(&self.found, &self.candidates)
    }
}

/// Everything that is known of a volume; the fio command of each test where `show_fio` says so.
pub fn view(report: &IdentifyReport<'_>, show_fio: bool) -> View {
    let IdentifyReport { record, found, .. } = report;
    let mut view = run_view::of_run(record);
    view.data = data(report);
    if record.tests.iter().all(|test| test.jobs.is_empty()) {
        view.push("", [Block::note("Nothing was measured.")]);
    } else {
        push_verdict(report, &mut view);
        view.front = Front { title: "Limits", figures: front_figures(found), ..Front::default() };
        view.push("Limits", limits(found));
        for burst in &found.bursts {
            view.push_full(burst_title(burst), [Block::Table(Table::new(FIGURE_COLUMNS, burst_rows(burst)))]);
        }
        view.push_full("Burst", burst_note(found).map(Block::note));
        let confounders = found.confounders.iter().map(confounder).collect();
        view.push_full("Alternative explanations", [Block::KeyFigures(confounders)]);
        push_first_touch(found, &mut view);
        if !report.verdict().confounders.contains(&Confounder::ControlGroup) {
            push_candidates(&report.candidates, &mut view);
        }
        view.push_full("Expected performance at full load", [prediction_lines(&report.predictions)]);
        let [bounds, unknown] = without_value(found);
        view.push_full("Bounds", [Block::KeyFigures(bounds)]);
        view.push_full("Not determined", [Block::KeyFigures(unknown)]);
    }
    view.push_full("Findings", [run_view::brief_findings(record)]);
    view.push_full("", [Block::Notes(notes(report))]);
    view.push("Equivalent fio commands", show_fio.then(|| run_view::fio_commands(record)));
    view
}

/// The type, what can be held, the burst before it, and what is in doubt.
fn push_verdict(report: &IdentifyReport<'_>, view: &mut View) {
    let IdentifyReport { record, found, candidates, .. } = report;
    let verdict = report.verdict();
    view.warn("Stopped", run_view::interruption(record));
    let is_of_group = verdict.confounders.contains(&Confounder::ControlGroup);
    let first = candidates.first().filter(|_| !is_of_group);
    view.say("Type", first.map(|first| type_text(first, &verdict)));
    let rates = [
        each_way(&verdict.iops, |rate| format!("{} IOPS", iops_text(rate))),
        each_way(&verdict.bytes_per_second, |rate| FigureScale::Bandwidth.text(rate)),
    ];
    let rates: Vec<String> = rates.into_iter().flatten().collect();
    let held = verdict.held_ns.map(|ns| format!(" (no fall in {} at full load)", duration(Nanos(ns))));
    let label = if verdict.bursts.is_empty() { "Reaches" } else { "Sustains" };
    view.say(label, (!rates.is_empty()).then(|| format!("{}{}", rates.join(", "), held.unwrap_or_default())));
    for burst in &verdict.bursts {
        view.say("Burst", burst_line(burst));
    }
    let first_touch = found.first_touch.as_ref().map(|cost| {
        let text = |figure: &Figure| {
            figure.value().map_or_else(|| "unknown".to_owned(), |ns| FigureScale::Latency.text(ns))
        };
        format!("a first access takes {}, later ones {}", text(&cost.first_ns), text(&cost.again_ns))
    });
    view.warn("First touch", first_touch);
    for cause in found.confounders.iter().take(2) {
        let figure = confounder(cause);
        view.warn(capital(&figure.label), figure.cell.text);
    }
    verdict::push_problems(record, view);
    view.say(
        "Unknown",
        (!verdict.unknown.is_empty()).then(|| format!("{}; --full says why", verdict.unknown.join(", "))),
    );
    let can_write = record.header.command.iter().all(|word| word != "--read-only");
    let is_protected = ["block_device", "file"].contains(&record.header.conditions.target.kind.as_str());
    let next = (verdict.unknown.contains(&"writes") && can_write && is_protected).then(|| {
        format!(
            "--destroy-data={} measures writes as well, and destroys the data there",
            record.header.target
        )
    });
    view.say("Next", next);
}

/// `aws-gp2, 50 GiB (distance 0.00)`; several types that match as well by their names.
fn type_text(first: &Candidate, verdict: &IdentifiedVerdict) -> String {
    let is_chosen = first.provisioned_iops.is_some() || first.provisioned_bytes_per_second.is_some();
    let chosen = if is_chosen { ", its rates chosen to fit" } else { "" };
    let distance = format!("distance {:.2}{chosen}", first.distance);
    match (&verdict.volume_type, verdict.alternatives.as_slice()) {
        (None, _) => format!("no known type matches; the nearest is {} ({distance})", first.id),
        (Some(id), []) => format!("{id}, {} ({distance})", size(first)),
        (Some(id), [other]) => format!("{id}, {} ({distance}), or {other}", size(first)),
        (Some(id), [second, third]) => format!("{id}, {} ({distance}), {second} or {third}", size(first)),
        (Some(id), [second, rest @ ..]) => {
            format!("unknown: {} types match, such as {id} ({}) and {second}", rest.len() + 2, size(first))
        }
    }
}

/// A rate of both directions, or of each where they differ.
fn each_way(rates: &RateEachWay, text: impl Fn(f64) -> String) -> Option<String> {
    match (rates.read, rates.write) {
        (Some(read), Some(write)) if text(read) == text(write) || (read / write - 1.0).abs() <= 0.03 => {
            Some(text(read))
        }
        (Some(read), Some(write)) => Some(format!("reads {}, writes {}", text(read), text(write))),
        (Some(read), None) => Some(format!("reads {}", text(read))),
        (None, Some(write)) => Some(format!("writes {}", text(write))),
        (None, None) => None,
    }
}

fn burst_line(burst: &BurstVerdict) -> String {
    let rate = burst.burst_rate.map_or_else(
        || "an unknown rate".to_owned(),
        |rate| match burst.unit {
            BucketUnit::Ios => format!("{} IOPS", iops_text(rate)),
            BucketUnit::Bytes => FigureScale::Bandwidth.text(rate),
        },
    );
    let time = |seconds: Option<f64>| {
        seconds.map_or_else(|| "an unknown time".to_owned(), |seconds| FigureScale::Seconds.text(seconds))
    };
    format!(
        "{rate} for {} from full credits; refills in {} when idle",
        time(burst.seconds_to_empty),
        time(burst.seconds_to_refill)
    )
}

fn limits(found: &Identified) -> [Block; 2] {
    let mut rows = Vec::new();
    for (name, each, scale) in [
        ("IOPS limit", &found.iops, FigureScale::Count),
        ("bandwidth limit", &found.bytes_per_second, FigureScale::Bandwidth),
        ("latency, unloaded", &found.lat_ns, FigureScale::Latency),
    ] {
        let known = each.named().filter(|(_, figure)| figure.estimate.is_some());
        rows.extend(known.map(|(direction, figure)| scale.row(format!("{direction} {name}"), figure)));
    }
    for (name, figure, scale) in [
        ("crossover block size", &found.crossover_block_size_bytes, FigureScale::Size),
        ("I/O unit size", &found.io_unit_bytes, FigureScale::ExactSize),
        ("parallelism", &found.parallelism, FigureScale::Count),
    ] {
        // A lower bound of the parallelism is no limit.
        if figure.value().is_some() || figure.estimate.is_some() && scale != FigureScale::Count {
            rows.push(scale.row(name, figure));
        }
    }
    let is_in_both = |each: &EachWay| each.read.is_some() && each.write.is_some();
    let note = match found.shares_limits {
        _ if rows.is_empty() => Some("None determined.".to_owned()),
        Some(true) => Some("Reads and writes share these limits.".to_owned()),
        Some(false) => Some("Reads and writes have separate limits.".to_owned()),
        None if is_in_both(&found.iops) => {
            let why = found.shares_limits_why.as_deref().unwrap_or("not measured");
            Some(format!("Whether reads and writes share these limits is unknown: {why}."))
        }
        None => None,
    };
    [Block::Table(Table::new(FIGURE_COLUMNS, rows)), Block::Notes(note.into_iter().collect())]
}

/// What can be held indefinitely, the bursts before it, then what both ways have; reads and writes as one where they read alike.
fn front_figures(found: &Identified) -> Vec<FrontFigure> {
    let figure = |name: &str, scale: FigureScale, unit: &str, figure: &Figure| {
        let row = scale.row(name, figure);
        let [label, value, _, half] = row.cells.as_slice() else { return None };
        let note = if half.text.is_empty() { String::new() } else { format!("±{} %", half.text) };
        let cell = Cell { text: format!("{}{unit}", value.text), ..value.clone() };
        figure.estimate.map(|_| FrontFigure { note, ..FrontFigure::new(label.text.clone(), cell) })
    };
    let mut figures = Vec::new();
    for burst in &found.bursts {
        let (rate, unit) = match burst.unit {
            BucketUnit::Ios => (FigureScale::Count, " IOPS"),
            BucketUnit::Bytes => (FigureScale::Bandwidth, ""),
        };
        figures.extend(figure("Sustained", rate, unit, &burst.baseline_rate));
        figures.extend(figure("Burst", rate, unit, &burst.burst_rate));
        figures.extend(figure("Burst lasts", FigureScale::Seconds, "", &burst.seconds_to_empty));
        figures.extend(figure("Refilled in", FigureScale::Seconds, "", &burst.seconds_to_refill));
    }
    for (name, each, scale) in [
        ("IOPS", &found.iops, FigureScale::Count),
        ("bandwidth", &found.bytes_per_second, FigureScale::Bandwidth),
        ("latency", &found.lat_ns, FigureScale::Latency),
    ] {
        // The rate of a burst is the limit as well.
        let of_burst = match scale {
            FigureScale::Count => Some(BucketUnit::Ios),
            FigureScale::Bandwidth => Some(BucketUnit::Bytes),
            _ => None,
        };
        if found.bursts.iter().any(|burst| Some(burst.unit) == of_burst) {
            continue;
        }
        let one = |direction: &str, of: &Option<Figure>| {
            of.as_ref().and_then(|of| figure(&capital(&format!("{direction}{name}")), scale, "", of))
        };
        let (read, write) = (one("read ", &each.read), one("write ", &each.write));
        match (read, write) {
            (Some(read), Some(write)) if read.cell.text == write.cell.text => {
                figures.push(FrontFigure { label: capital(name), ..read });
            }
            (read, write) => figures.extend(read.into_iter().chain(write)),
        }
    }
    figures.extend(figure("Crossover", FigureScale::Size, "", &found.crossover_block_size_bytes));
    figures.extend(figure("I/O unit", FigureScale::ExactSize, "", &found.io_unit_bytes));
    figures
}

fn burst_title(burst: &Burst) -> String {
    let unit = match burst.unit {
        BucketUnit::Ios => "I/Os",
        BucketUnit::Bytes => "bytes",
    };
    let draws = match burst.scope {
        IoScope::Both => "shared by reads and writes",
        IoScope::Reads => "reads only",
        IoScope::Writes => "writes only",
    };
    format!("Burst bucket of {unit}, {draws}")
}

fn burst_rows(burst: &Burst) -> [Row; 6] {
    let (amount, rate, [of_rate, of_amount]) = match burst.unit {
        BucketUnit::Ios => (FigureScale::Count, FigureScale::Count, [", IOPS", ", I/Os"]),
        BucketUnit::Bytes => (FigureScale::Size, FigureScale::Bandwidth, ["", ""]),
    };
    [
        rate.row(format!("burst rate{of_rate}"), &burst.burst_rate),
        rate.row(format!("baseline rate{of_rate}"), &burst.baseline_rate),
        amount.row(format!("capacity{of_amount}"), &burst.capacity),
        rate.row(format!("refill rate{of_rate}"), &burst.refill_rate),
        FigureScale::Seconds.row("exhausted at full rate after", &burst.seconds_to_empty),
        FigureScale::Seconds.row("refilled when idle after", &burst.seconds_to_refill),
    ]
}

/// Why there is no burst bucket, or what else is to be known of those there are.
fn burst_note(found: &Identified) -> Option<String> {
    let is_unwatched =
        found.bursts.is_empty() && found.longest_peak_ns.is_none() && found.confounders.is_empty();
    match &found.burst_why {
        Some(_) if is_unwatched => Some("Not measured: the run ended before.".to_owned()),
        Some(why) if found.bursts.is_empty() => Some(format!("No burst bucket found: {why}.")),
        Some(why) => Some(format!("{}.", capital(why))),
        None => None,
    }
}

/// Another explanation of what was measured.
fn confounder(OtherCause { id, text }: &OtherCause) -> KeyFigure {
    let name = match id {
        Confounder::WriteCacheFull => "full write cache",
        Confounder::Throttling => "throttling",
        Confounder::CpuSteal => "CPU steal",
        Confounder::Drift => "drift",
        Confounder::RecoveryNotMeasured => "recovery not measured",
        Confounder::ForeignIo => "foreign I/O",
        Confounder::ByItself => "unsteady rate",
        Confounder::ControlGroup => "control group",
    };
    KeyFigure::new(name, format!("{text}."))
}

fn push_first_touch(found: &Identified, view: &mut View) {
    let Some(cost) = &found.first_touch else { return };
    let mut rows = vec![
        FigureScale::Latency.row("first access", &cost.first_ns),
        FigureScale::Latency.row("later accesses", &cost.again_ns),
    ];
    if cost.rate_fraction.value().is_some() {
        rows.push(FigureScale::Percent.row("rate of first accesses, of later ones", &cost.rate_fraction));
    }
    let note = Block::note("`fathom prepare --touch` reads every block once.");
    view.push_full("First-touch penalty", [Block::Table(Table::new(FIGURE_COLUMNS, rows)), note]);
}

fn push_candidates(all: &[Candidate], view: &mut View) {
    let is_likely = all.first().is_some_and(|first| first.distance <= LIKELY);
    let title = if is_likely { "Candidates" } else { "Nearest types, none of them a match" };
    let shown = all.iter().filter(|candidate| !is_likely || candidate.distance <= LIKELY * 1.5);
    let row = |candidate: &Candidate| {
        let lifecycle = match candidate.lifecycle.as_str() {
            "current" => String::new(),
            lifecycle => format!(" ({lifecycle})"),
        };
        Row::new([
            candidate.id.as_str().into(),
            size(candidate).into(),
            Cell::real(candidate.distance, format!("{:.2}", candidate.distance)),
            format!("{} {}{lifecycle}", candidate.provider, candidate.type_name).into(),
        ])
    };
    let columns = [
        Column::left("type"),
        Column::left("size"),
        Column::right("distance"),
        Column::left("name").dispensable(0),
    ];
    view.push_full(title, [Block::Table(Table::new(columns, shown.take(MAX_TYPES).map(row)))]);
}

/// What of a type it would be: `50 GiB`, `34 to 170 GiB`, `5,000 IOPS`.
fn size(candidate: &Candidate) -> String {
    let mut parts: Vec<String> = candidate.tier.iter().cloned().collect();
    parts.push(match candidate.size {
        Some(size) if size.low_bytes < size.high_bytes && size.high_bytes > size.bytes + size.bytes / 10 => {
            format!("{} to {}", exact_bytes(size.low_bytes), exact_bytes(size.high_bytes))
        }
        Some(size) => exact_bytes(size.bytes),
        None => "any size".to_owned(),
    });
    parts.extend(candidate.provisioned_iops.map(|iops| format!("{} IOPS", grouped(iops))));
    parts.extend(
        candidate.provisioned_bytes_per_second.map(|bytes| FigureScale::Bandwidth.text(bytes as f64)),
    );
    if candidate.on_demand {
        parts.push("bursts on demand".to_owned());
    }
    if candidate.size.and_then(|size| size.is_target_size) == Some(false) {
        parts.push("differs from the size of the target".to_owned());
    }
    parts.join(", ")
}

fn prediction_lines(all: &[WorkloadPrediction]) -> Block {
    let mut lines: Vec<KeyFigure> = Vec::new();
    for (index, prediction) in all.iter().enumerate() {
        // A write that gets what the read before it gets shares its line.
        let before = index.checked_sub(1).and_then(|before| all.get(before));
        let is_alike = before.is_some_and(|read| read.is_like(prediction));
        match lines.last_mut() {
            Some(line) if is_alike => line.label.push_str(" or writes"),
            _ => lines.push(KeyFigure::new(prediction.title.as_str(), prediction.text.as_str())),
        }
    }
    Block::KeyFigures(lines)
}

/// Figures that have no value, by name, with the reason: those of which a bound is known, or that they do not apply, and the others.
fn without_value(found: &Identified) -> [Vec<KeyFigure>; 2] {
    let (mut bounds, mut unknown): (Vec<KeyFigure>, Vec<KeyFigure>) = Default::default();
    let mut of = |name: String, figure: &Figure| {
        let lines = if figure.estimate.is_some() { &mut bounds } else { &mut unknown };
        let why = figure.why.as_ref().filter(|_| figure.value().is_none());
        lines.extend(why.map(|why| KeyFigure::new(name, format!("{why}."))));
    };
    for (name, each) in [
        ("IOPS limit", &found.iops),
        ("bandwidth limit", &found.bytes_per_second),
        ("latency, unloaded", &found.lat_ns),
    ] {
        each.named().for_each(|(direction, figure)| of(format!("{direction} {name}"), figure));
    }
    of("crossover block size".to_owned(), &found.crossover_block_size_bytes);
    of("I/O unit size".to_owned(), &found.io_unit_bytes);
    for burst in &found.bursts {
        for (name, figure) in [
            ("baseline rate", &burst.baseline_rate),
            ("burst bucket capacity", &burst.capacity),
            ("refill rate", &burst.refill_rate),
        ] {
            of(name.to_owned(), figure);
        }
    }
    let has_writes = found.iops.write.is_some() || found.bytes_per_second.write.is_some();
    if found.iops.read.is_some() && !has_writes {
        unknown.push(KeyFigure::new("writes", "not measured."));
    }
    if let Some(why) = found.first_touch_why.as_ref().filter(|_| found.first_touch.is_none()) {
        match found.has_no_first_touch {
            true => bounds.push(KeyFigure::new("first-touch penalty", format!("none: {why}."))),
            false => unknown.push(KeyFigure::new("first-touch penalty", format!("{why}."))),
        }
    }
    [bounds, unknown]
}

fn notes(report: &IdentifyReport<'_>) -> Vec<String> {
    let IdentifyReport { record, found, .. } = report;
    let spent = found.spent;
    let mut took = format!("Took {}", duration(Nanos(spent.time_ns)));
    if let Activity::Identify(allowed) = &record.header.activity {
        took.push_str(&format!(" of at most {}", duration(Nanos(allowed.budget_ns))));
    }
    took.push_str(&format!(", {} I/Os, {} read", grouped(spent.ios), bytes(spent.read_bytes)));
    if spent.written_bytes > 0 {
        took.push_str(&format!(", {} written", bytes(spent.written_bytes)));
    }
    let mut notes = vec![format!("{took}.")];
    notes.extend(record.header.notes.iter().cloned());
    notes.extend(run_view::interruption(record));
    notes
}

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FigureScale {
    /// A number, or a rate whose unit stands elsewhere.
    Count,
    /// Bytes per second.
    Bandwidth,
    /// ns.
    Latency,
    /// Bytes, rounded.
    Size,
    /// Bytes, to the last one.
    ExactSize,
    /// s.
    Seconds,
    /// A fraction of one.
    Percent,
}

/// The columns of [`FigureScale::row`].
const FIGURE_COLUMNS: [Column; 4] = [
    Column::left(""),
    Column::right("value"),
    Column::left("95 % interval"),
    Column::right("±%").dispensable(0),
];

impl FigureScale {
    /// With its unit.
    fn text(self, value: f64) -> String {
        match self {
            FigureScale::Count => iops_text(value),
            FigureScale::Bandwidth => format!("{} MiB/s", decimal(value / f64::from(1 << 20))),
            FigureScale::Latency => units::latency(value.max(0.0).round() as u64),
            FigureScale::Size if value < 10_240.0 => format!("{} B", units::grouped(value.round() as u64)),
            FigureScale::Size => units::bytes(value.round() as u64),
            FigureScale::ExactSize => exact_bytes(value.round() as u64),
            FigureScale::Seconds => duration(Nanos((value.max(0.0) * 1e9) as u64)),
            FigureScale::Percent => format!("{:.0} %", value * 100.0),
        }
    }

    /// Name, value, range, and half of the range in percent; a bound stands in place of the value.
    fn row(self, name: impl Into<Cell>, figure: &Figure) -> Row {
        let (value, range, half) = match figure.estimate {
            Some(Estimate::Known { value, low, high }) if low == high => {
                (Cell::real(value, self.text(value)), "exact".to_owned(), Cell::default())
            }
            Some(Estimate::Known { value, low, high }) => {
                let half = (high - low) / 2.0 / value;
                let digits = if half < 0.009_95 { 2 } else { 1 };
                let half = Cell::real(half, format!("{:.digits$}", half * 100.0));
                let range = format!("{} to {}", self.text(low), self.text(high));
                (Cell::real(value, self.text(value)), range, half)
            }
            Some(Estimate::AtLeast(low)) => {
                (format!("at least {}", self.text(low)).into(), String::new(), Cell::default())
            }
            Some(Estimate::AtMost(high)) => {
                (format!("at most {}", self.text(high)).into(), String::new(), Cell::default())
            }
            None => ("unknown".into(), String::new(), Cell::default()),
        };
        Row::new([name.into(), value, range.into(), half])
    }
}

/// `256 KiB`, `40,960 B`.
fn exact_bytes(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{} B", units::grouped(bytes))
}

const VALUES: [&str; 9] =
    ["figure", "name", "rw", "block_size_bytes", "unit", "value", "low", "high", "unknown_because"];

fn data(report: &IdentifyReport<'_>) -> Table {
    let found = &report.found;
    let mut rows = Vec::new();
    for (name, each, unit) in [
        ("iops", &found.iops, "iops"),
        ("bandwidth", &found.bytes_per_second, "bytes_per_second"),
        ("latency", &found.lat_ns, "ns"),
    ] {
        rows.extend(each.named().map(|(rw, figure)| figure_row(name, rw, unit, figure)));
    }
    rows.push(figure_row("crossover_block_size", "", "bytes", &found.crossover_block_size_bytes));
    rows.push(figure_row("io_unit", "", "bytes", &found.io_unit_bytes));
    rows.push(figure_row("parallelism", "", "ios", &found.parallelism));
    rows.extend(found.bursts.iter().flat_map(burst_values));
    if let Some(cost) = &found.first_touch {
        rows.push(figure_row("first_access", "", "ns", &cost.first_ns));
        rows.push(figure_row("second_access", "", "ns", &cost.again_ns));
        rows.push(figure_row("first_access_rate_fraction", "", "fraction", &cost.rate_fraction));
    }
    rows.extend(report.candidates.iter().flat_map(candidate_rows));
    rows.extend(report.predictions.iter().flat_map(prediction_rows));
    Table::new(VALUES.map(Column::left), rows)
}

fn row(figure: &str, of: [Cell; 3], unit: &str, values: [Cell; 3]) -> Row {
    Row::new([figure.into()].into_iter().chain(of).chain([unit.into()]).chain(values))
}

fn number(value: Option<f64>) -> Cell {
    value.filter(|value| value.is_finite()).map(|value| Cell::real(value, value.to_string())).into()
}

fn figure_row(name: &str, rw: &str, unit: &str, figure: &Figure) -> Row {
    let (value, low, high) = match figure.estimate {
        Some(Estimate::Known { value, low, high }) => (Some(value), Some(low), Some(high)),
        Some(Estimate::AtLeast(low)) => (None, Some(low), None),
        Some(Estimate::AtMost(high)) => (None, None, Some(high)),
        None => (None, None, None),
    };
    let mut row = row(name, ["".into(), rw.into(), "".into()], unit, [value, low, high].map(number));
    row.cells.push(figure.why.clone().into());
    row
}

fn burst_values(burst: &Burst) -> [Row; 6] {
    let (amount, rate) = match burst.unit {
        BucketUnit::Ios => ("ios", "iops"),
        BucketUnit::Bytes => ("bytes", "bytes_per_second"),
    };
    let rw = match burst.scope {
        IoScope::Both => "both",
        IoScope::Reads => "read",
        IoScope::Writes => "write",
    };
    [
        figure_row("burst_rate", rw, rate, &burst.burst_rate),
        figure_row("baseline_rate", rw, rate, &burst.baseline_rate),
        figure_row("burst_capacity", rw, amount, &burst.capacity),
        figure_row("refill_rate", rw, rate, &burst.refill_rate),
        figure_row("time_to_empty", rw, "s", &burst.seconds_to_empty),
        figure_row("time_to_refill", rw, "s", &burst.seconds_to_refill),
    ]
}

/// How far a type is from the volume, and what would have to be chosen of it.
fn candidate_rows(candidate: &Candidate) -> Vec<Row> {
    let of_type = |figure: &str, unit: &str, values: [Option<f64>; 3]| {
        row(figure, [candidate.id.as_str().into(), "".into(), "".into()], unit, values.map(number))
    };
    let whole = |value: u64| Some(value as f64);
    let size = candidate.size.map(|size| {
        of_type("candidate_size", "bytes", [size.bytes, size.low_bytes, size.high_bytes].map(whole))
    });
    let iops =
        candidate.provisioned_iops.map(|iops| of_type("candidate_iops", "iops", [whole(iops), None, None]));
    let bandwidth = candidate
        .provisioned_bytes_per_second
        .map(|bytes| of_type("candidate_bandwidth", "bytes_per_second", [whole(bytes), None, None]));
    let distance = of_type("candidate_distance", "", [Some(candidate.distance), None, None]);
    [Some(distance), size, iops, bandwidth].into_iter().flatten().collect()
}

/// Each rate on the way, and how long it lasts where it ends.
fn prediction_rows(prediction: &WorkloadPrediction) -> Vec<Row> {
    let of = || {
        let block = Cell::integer(prediction.block_size_bytes, prediction.block_size_bytes.to_string());
        [prediction.title.as_str().into(), prediction.rw.name().into(), block]
    };
    let empty = Cell::default;
    let of_phase = |phase: &RatePhase| {
        let rate = row("predicted_rate", of(), "iops", [number(Some(phase.iops)), empty(), empty()]);
        let lasts = phase.seconds.map(|lasts| {
            let values = [Some(lasts.value), lasts.low, Some(lasts.high)].map(number);
            row("predicted_duration", of(), "s", values)
        });
        [Some(rate), lasts]
    };
    let refill = prediction
        .seconds_to_refill
        .map(|seconds| row("predicted_refill", of(), "s", [number(Some(seconds)), empty(), empty()]));
    prediction.phases.iter().flat_map(of_phase).flatten().chain(refill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_analysis::identified::Spent;
    use fathom_analysis::identified::candidate::SizeImplied;
    use fathom_record::{IdentifyActivity, JobRecord, TestRecord};

    use crate::formats::Format;
    use crate::text_writer;

    fn about(value: f64) -> Figure {
        Figure::known(value, value * 0.995, value * 1.005)
    }

    fn both(figure: Figure) -> EachWay {
        EachWay { read: Some(figure.clone()), write: Some(figure) }
    }

    /// A gp2 of 50 GiB as it would be found.
    fn found() -> Identified {
        let burst = Burst {
            unit: BucketUnit::Ios,
            scope: IoScope::Both,
            burst_rate: about(3000.0),
            baseline_rate: about(150.0),
            capacity: about(5.4e6),
            refill_rate: about(150.0),
            seconds_to_empty: about(1894.7),
            seconds_to_refill: about(36_000.0),
        };
        Identified {
            iops: both(about(3000.0)),
            bytes_per_second: both(about(134_217_728.0)),
            shares_limits: Some(true),
            crossover_block_size_bytes: about(134_217_728.0 / 3000.0),
            io_unit_bytes: Figure::bound(Estimate::AtLeast(89_088.0), "bytes limit larger requests before"),
            lat_ns: both(about(500_000.0)),
            bursts: vec![burst],
            first_touch_why: Some("first accesses took no longer than second ones".to_owned()),
            spent: Spent {
                time_ns: 2_300_000_000_000,
                ios: 5_812_345,
                read_bytes: 30 << 30,
                written_bytes: 9 << 30,
            },
            ..Identified::default()
        }
    }

    fn rendered(found: &Identified, format: Format) -> String {
        let mut record = RunRecord::default();
        record.header.target = "sim:aws-gp2?size=50GiB".to_owned();
        record.header.activity = Activity::Identify(IdentifyActivity {
            budget_ns: 2_400_000_000_000,
            budget_ios: 8_000_000,
            budget_bytes: 100 << 30,
            ..IdentifyActivity::default()
        });
        let jobs = vec![JobRecord::default()];
        record.tests = vec![TestRecord { id: "p1".to_owned(), jobs, ..TestRecord::default() }];
        let size = SizeImplied {
            bytes: 50 << 30,
            low_bytes: 50 << 30,
            high_bytes: 50 << 30,
            is_target_size: Some(true),
        };
        let candidate = |id: &str, distance: f64, lifecycle: &str| Candidate {
            id: id.to_owned(),
            provider: "AWS".to_owned(),
            type_name: "EBS General Purpose SSD gp2".to_owned(),
            lifecycle: lifecycle.to_owned(),
            distance,
            size: Some(size),
            ..Candidate::default()
        };
        let candidates =
            [candidate("aws-gp2", 0.003, "current"), candidate("aws-gp2-2016", 0.08, "historical")];
        let (candidates, predictions) = (candidates.to_vec(), predictions(found));
        let report = IdentifyReport { record: &record, found: found.clone(), candidates, predictions };
        let style = Style { is_full: true, ..Style::default() };
        let written = text_writer::text(|out| {
            format.write(&style, out, || view(&report, false), |out| report.document(&style, out))
        });
        written.expect("writing to memory")
    }

    #[test]
    fn every_format() {
        insta::assert_snapshot!("identify_page", rendered(&found(), Format::Text));
        insta::assert_snapshot!("identify_markdown", rendered(&found(), Format::Markdown));
        insta::assert_snapshot!("identify_csv", rendered(&found(), Format::Csv));
        insta::assert_snapshot!("identify_document", rendered(&found(), Format::Json));
    }

    #[test]
    fn nothing_found_is_a_page_as_well() {
        insta::assert_snapshot!("identify_nothing", rendered(&Identified::default(), Format::Text));
    }

    #[test]
    fn unknown_figures_of_a_bucket_are_named_with_their_reason() {
        let known = |value: f64| Figure::known(value, value, value);
        let unknown = || Figure::unknown("the budget ended");
        let mut found = found();
        found.bursts = vec![Burst {
            unit: BucketUnit::Ios,
            scope: IoScope::Reads,
            burst_rate: known(1000.0),
            baseline_rate: known(200.0),
            capacity: Figure::bound(Estimate::AtLeast(15_500.0), "the budget ended"),
            refill_rate: unknown(),
            seconds_to_empty: unknown(),
            seconds_to_refill: unknown(),
        }];
        let page = rendered(&found, Format::Text);
        let lines: Vec<String> =
            page.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for expected in [
            "Burst bucket of I/Os, reads only",
            "capacity, I/Os at least 15,500",
            "refilled when idle after unknown",
            "burst bucket capacity the budget ended.",
        ] {
            assert!(lines.iter().any(|line| line == expected), "{expected:?} in\n{page}");
        }
    }

    #[test]
    fn sizes_of_types() {
        let size_of = |low: u64, high: u64, is_target_size: Option<bool>| {
            Some(SizeImplied {
                bytes: low << 30,
                low_bytes: low << 30,
                high_bytes: high << 30,
                is_target_size,
            })
        };
        let check = |candidate: Candidate, expected: &str| assert_eq!(size(&candidate), expected);
        check(Candidate { size: size_of(50, 50, Some(true)), ..Candidate::default() }, "50 GiB");
        check(
            Candidate { size: size_of(1, 33, Some(false)), ..Candidate::default() },
            "1 GiB to 33 GiB, differs from the size of the target",
        );
        let provisioned_iops = Some(5000);
        check(Candidate { provisioned_iops, ..Candidate::default() }, "any size, 5,000 IOPS");
    }

    #[test]
    fn figures_in_cells() {
        let check = |scale: FigureScale, figure: Figure, expected: [&str; 3]| {
            let row = scale.row("", &figure);
            let cells: Vec<&str> = row.cells[1..].iter().map(|cell| cell.text.as_str()).collect();
            assert_eq!(cells, expected);
        };
        check(FigureScale::Count, Figure::known(3000.0, 2990.0, 3010.0), ["3,000", "2,990 to 3,010", "0.33"]);
        let exact = |bytes: f64| Figure::known(bytes, bytes, bytes);
        check(FigureScale::ExactSize, exact(262_144.0), ["256 KiB", "exact", ""]);
        check(FigureScale::ExactSize, exact(3584.0), ["3,584 B", "exact", ""]);
        let bound = Figure::bound(Estimate::AtLeast(134_217_728.0), "hidden");
        check(FigureScale::Bandwidth, bound, ["at least 128.0 MiB/s", "", ""]);
        check(FigureScale::Latency, Figure::unknown("no time"), ["unknown", "", ""]);
        check(
            FigureScale::Size,
            Figure::known(44_739.0, 44_000.0, 45_000.0),
            ["43.7 KiB", "43.0 KiB to 43.9 KiB", "1.1"],
        );
    }
}
