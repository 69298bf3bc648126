//! What `identify` shows: the limits, the burst bucket, types that match, what workloads get, and what was not determined and why.

use fathom_analysis::identified::candidate::{Candidate, LIKELY};
use fathom_analysis::identified::{
    BucketUnit, Burst, Confounder, EachWay, Figure, Identified, IoScope, OtherCause,
};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped};
use fathom_record::Activity;

use super::IdentifyReport;
use super::data::data;
use super::figure::{COLUMNS, FigureScale, exact_bytes};
use crate::columns::capital;
use crate::run_view;
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, View};

/// Most types that are shown.
const MOST_TYPES: usize = 4;

/// Everything that is known of a volume; the fio command of each test where `show_fio` says so.
pub fn view(report: &IdentifyReport<'_>, show_fio: bool) -> View {
    let IdentifyReport { record, found, .. } = report;
    let mut view = run_view::of_run(record);
    view.data = data(report);
    if record.tests.iter().all(|test| test.jobs.is_empty()) {
        view.push("", [Block::note("Nothing was measured.")]);
    } else {
        view.push("Limits", limits(found));
        for burst in &found.bursts {
            view.push(burst_title(burst), [Block::Table(Table::new(COLUMNS, burst_rows(burst)))]);
        }
        view.push("Burst", burst_note(found).map(Block::note));
        let confounders = found.confounders.iter().map(confounder).collect();
        view.push("Alternative explanations", [Block::KeyFigures(confounders)]);
        push_first_touch(found, &mut view);
        push_candidates(report.candidates, &mut view);
        view.push("Expected performance at full load", [predictions(report)]);
        let [bounds, unknown] = without_value(found);
        view.push("Bounds", [Block::KeyFigures(bounds)]);
        view.push("Not determined", [Block::KeyFigures(unknown)]);
    }
    view.push("Findings", [run_view::brief_findings(record)]);
    view.push("", [Block::Notes(notes(report))]);
    view.push("Equivalent fio commands", show_fio.then(|| run_view::fio_commands(record)));
    view
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
    [Block::Table(Table::new(COLUMNS, rows)), Block::Notes(note.into_iter().collect())]
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
    view.push("First-touch penalty", [Block::Table(Table::new(COLUMNS, rows)), note]);
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
    view.push(title, [Block::Table(Table::new(columns, shown.take(MOST_TYPES).map(row)))]);
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

fn predictions(report: &IdentifyReport<'_>) -> Block {
    let mut lines: Vec<KeyFigure> = Vec::new();
    let all = report.predictions;
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

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_analysis::estimate::Estimate;
    use fathom_analysis::identified::candidate::SizeImplied;
    use fathom_analysis::identified::prediction::predictions;
    use fathom_analysis::identified::{BucketUnit, Burst, EachWay, IoScope, Spent};
    use fathom_record::{IdentifyActivity, JobRecord, RunRecord, TestRecord};

    use crate::formats::Format;
    use crate::identify::json;
    use crate::{Style, text_writer};

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
        let predictions = predictions(found);
        let report =
            IdentifyReport { record: &record, found, candidates: &candidates, predictions: &predictions };
        let style = Style::default();
        let written = text_writer::text(|out| {
            format.write(&style, out, || view(&report, false), |out| json::render(&report, &style, out))
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
}
