//! What `trace info` shows of an observed load: operations, key figures, sizes, burstiness, rates over time and gaps. In text, rates over time
//! are a row for each of a few slices, else for each hour of the day; all slices are a plot, and data.

pub mod json;

use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped, latency};
use fathom_observed::{GapReason, LoadClock, LoadCourse, LoadGap, ObservedLoad, RequestPoint};
use fathom_predict::load_profile::{
    BurstinessScale, LoadProfile, LoadSlice, OperationProfile, STREAMS, SizeShare, SliceCounts,
};
use fathom_record::LatencySummary;
use jiff::Timestamp;
use serde_json::json;

use crate::axis_text::rate_text;
use crate::columns::capital;
use crate::view::{
    Axis, Block, Cell, Column, KeyFigure, Plot, PlotForm, PlotMark, PlotPoint, PlotSeries, Row, Table, Tone,
    View, ViewHead, decimal,
};

/// An observed load with its profile.
#[derive(Clone, Copy, Debug)]
pub struct TraceInfo<'a> {
    /// The name of its file.
    pub file: &'a str,
    /// The load.
    pub load: &'a ObservedLoad,
    /// What it holds.
    pub profile: &'a LoadProfile,
}

/// The unit of the bytes that are touched, unless much is.
const SECTOR: u64 = 512;
/// Gaps that are listed.
const MAX_GAPS: usize = 10;

/// What a load holds.
pub fn view(info: TraceInfo<'_>) -> View {
    let TraceInfo { load, profile, .. } = info;
    let mut view = View { head: Some(head(info)), data: data(info), ..View::default() };
    view.push("", [Block::Table(operations(&profile.operations)), Block::KeyFigures(figures(load, profile))]);
    view.push("Request sizes", [Block::Table(sizes(&profile.sizes))]);
    view.push("Burstiness", burstiness(&profile.burstiness));
    view.push(course_title(load, profile), course(load, profile));
    view.push("Gaps", gaps(load));
    view.push("Notes", [Block::Notes(load.notes.iter().map(|note| format!("{}.", capital(note))).collect())]);
    view
}

fn head(info: TraceInfo<'_>) -> ViewHead {
    let TraceInfo { file, load, profile } = info;
    let files = match &load.course {
        LoadCourse::Requests(trace) if trace.files.len() > 1 => format!("{} files", trace.files.len()),
        _ => load.device.clone(),
    };
    let detail = match (&load.course, profile.resolution_ns) {
        (LoadCourse::Requests(_), _) => format!("{} I/Os", grouped(requests(profile))),
        (LoadCourse::Intervals(intervals), Some(length)) => {
            format!("{} intervals of {}", grouped(intervals.len() as u64), duration(Nanos(length)))
        }
        (LoadCourse::Intervals(_), None) => "no interval".to_owned(),
    };
    let mut target = vec![file.to_owned(), files, load.format.title().to_owned()];
    target.retain(|part| !part.is_empty());
    let started =
        load.started_unix_ns.map(|ns| format!("{} {}", time_text(ns, "%Y-%m-%d %H:%M"), zone(load)));
    let length = format!("{} long", duration(Nanos(profile.length_ns)));
    ViewHead { target, host: [detail, length].into_iter().chain(started).collect(), started_unix_ms: 0 }
}

/// The number of requests, which a load that is read one request at a time does not keep.
fn requests(profile: &LoadProfile) -> u64 {
    profile.operations.last().and_then(|total| total.ops).unwrap_or(0)
}

/// What times of the day are of.
fn zone(load: &ObservedLoad) -> &'static str {
    if load.clock == LoadClock::Local { "host time" } else { "UTC" }
}

/// `unix_ns` in UTC in the form of `format` (strftime).
fn time_text(unix_ns: u64, format: &str) -> String {
    let timestamp = i64::try_from(unix_ns / 1_000_000).map(Timestamp::from_millisecond);
    timestamp.ok().and_then(Result::ok).map(|time| time.strftime(format).to_string()).unwrap_or_default()
}

fn operations(profiles: &[OperationProfile]) -> Table {
    let percentile = |profile: &OperationProfile, of: fn(&LatencySummary) -> Option<u64>| {
        profile.lat_ns.as_ref().and_then(of).map(Cell::latency).into()
    };
    let table = Table::of::<OperationProfile>(
        &[
            (Column::left("operation"), &|it| it.operation.into()),
            (Column::right("I/Os").dispensable(0), &|it| it.ops.map(Cell::count).into()),
            (Column::right("IOPS"), &|it| it.iops.map(Cell::iops).into()),
            (Column::right("MiB/s"), &|it| it.bytes_per_second.map(Cell::mebibytes).into()),
            (Column::right("mean size"), &|it| {
                it.mean_bytes.map(|mean| Cell::real(mean, bytes(mean.round() as u64))).into()
            }),
            (Column::right("mean"), &|it| it.mean_latency_ns.map(Cell::mean_latency).into()),
            (Column::right("p50"), &|it| percentile(it, |lat| lat.p50)),
            (Column::right("p99"), &|it| percentile(it, |lat| lat.p99)),
            (Column::right("p99.9").dispensable(1), &|it| percentile(it, |lat| lat.p999)),
            (Column::right("worst interval").dispensable(2), &|it| {
                it.highest_interval_latency_ns.map(Cell::mean_latency).into()
            }),
        ],
        profiles,
    );
    table.without_empty()
}

fn figures(load: &ObservedLoad, profile: &LoadProfile) -> Vec<KeyFigure> {
    let mut figures = vec![KeyFigure::new("reads", reads(profile))];
    if profile.course.slices.is_empty() {
        let text = "unknown: the requests have no times of their own, or all the same";
        figures.push(KeyFigure::new("rates", text));
    }
    figures.push(match &profile.order {
        Some(order) => KeyFigure::new(
            "sequential",
            format!(
                "{} of the I/Os begin where one of the {STREAMS} latest of their operation ended",
                percent(order.sequential)
            ),
        ),
        None => KeyFigure::new("sequential", "unknown: the source has no offsets"),
    });
    if let Some(set) = &profile.working_set {
        let hot: Vec<String> =
            set.hot.iter().map(|hot| format!("{} in {}", percent(hot.share), bytes(hot.bytes))).collect();
        let text = format!(
            "{} touched{} within {}; of the I/Os {} (in regions of {})",
            bytes(set.touched_bytes),
            if set.unit_bytes > SECTOR {
                format!(" (in units of {})", bytes(set.unit_bytes))
            } else {
                String::new()
            },
            bytes(set.span_bytes),
            hot.join(", "),
            bytes(set.region_bytes)
        );
        figures.push(KeyFigure::new("working set", text));
    } else {
        figures.push(KeyFigure::new("working set", "unknown: the source has no offsets"));
    }
    figures.push(KeyFigure::new("latency", latency_text(load, profile)));
    figures.push(KeyFigure::new("queue depth", depth_text(profile)));
    if let Some(share) = profile.utilization {
        figures.push(KeyFigure::new("utilization", Cell::percent(share)));
    }
    if let Some(share) = profile.limit_reached_share {
        let tone = if share > 0.0 { Tone::Alarm } else { Tone::Normal };
        let text = match share {
            0.0 => "no limit reached".to_owned(),
            share => format!(
                "reached in {} of the time: the demand was higher than the rates here",
                percent(share)
            ),
        };
        figures.push(KeyFigure { tone, ..KeyFigure::new("limit", text) });
    }
    if let Some(share) = profile.lowest_credits {
        figures.push(KeyFigure::new("burst credits", format!("{} left at the lowest", percent(share))));
    }
    if let Some(ns) = profile.longest_idle_ns {
        figures.push(KeyFigure::new("longest idle time", latency(ns)));
    }
    figures
}

fn percent(share: f64) -> String {
    Cell::percent(share).text
}

fn reads(profile: &LoadProfile) -> String {
    match (profile.read_share, profile.read_bytes_share) {
        (Some(ops), Some(of_bytes)) => {
            format!("{} of the I/Os, {} of the bytes", percent(ops), percent(of_bytes))
        }
        (Some(ops), None) => format!("{} of the I/Os", percent(ops)),
        (None, Some(of_bytes)) => format!("{} of the bytes; of the I/Os unknown", percent(of_bytes)),
        (None, None) => "unknown: the source does not separate reads from writes".to_owned(),
    }
}

fn latency_text(load: &ObservedLoad, profile: &LoadProfile) -> String {
    let total = profile.operations.iter().find(|operation| operation.operation == "total");
    let Some(mean) = total.and_then(|total| total.mean_latency_ns) else {
        return "unknown: not in the source".to_owned();
    };
    let mean = Cell::mean_latency(mean).text;
    match &load.course {
        LoadCourse::Requests(trace) => {
            let from = match trace.point {
                RequestPoint::Program => "from the request of the program",
                RequestPoint::Driver => "from the driver",
            };
            format!("mean {mean}, {from} to the completion")
        }
        LoadCourse::Intervals(_) => format!("mean {mean}; the source has no distribution of single I/Os"),
    }
}

fn depth_text(profile: &LoadProfile) -> String {
    match (profile.mean_queue_depth, profile.highest_queue_depth) {
        (Some(mean), Some(highest)) if profile.resolution_ns.is_some() => {
            format!("mean {}, highest interval {}", decimal(mean), decimal(highest))
        }
        (Some(mean), Some(highest)) => format!("mean {}, highest {}", decimal(mean), grouped(highest as u64)),
        _ => "unknown".to_owned(),
    }
}

fn sizes(sizes: &[SizeShare]) -> Table {
    Table::of::<SizeShare>(
        &[
            (Column::left("operation"), &|size| size.operation.into()),
            (Column::right("size"), &|size| Cell::integer(size.bytes, bytes(size.bytes))),
            (Column::right("I/Os"), &|size| Cell::count(size.ops)),
            (Column::right("share").drawn(), &|size| Cell::percent(size.share)),
        ],
        sizes,
    )
}

fn burstiness(scales: &[BurstinessScale]) -> Vec<Block> {
    let table = Table::of::<BurstinessScale>(
        &[
            (Column::right("window"), &|it| Cell::integer(it.window_ns, duration(Nanos(it.window_ns)))),
            (Column::right("windows").dispensable(0), &|it| Cell::count(it.windows)),
            (Column::right("dispersion"), &|it| Cell::real(it.dispersion, decimal(it.dispersion))),
            (Column::right("peak/mean"), &|it| Cell::real(it.peak_to_mean, decimal(it.peak_to_mean))),
            (Column::right("peak IOPS"), &|it| Cell::iops(it.peak_iops)),
        ],
        scales,
    );
    let mut blocks = vec![Block::Table(table)];
    if !scales.is_empty() {
        blocks.push(Block::note(
            "Dispersion is the variance of the I/Os in a window over their mean: 0 at a constant rate, 1 for independent \
             arrivals (Poisson). Growth with the window means bursts longer than it.",
        ));
    }
    blocks
}

fn gaps(load: &ObservedLoad) -> Vec<Block> {
    let total: u64 = load.gaps.iter().map(|gap| gap.length_ns).sum();
    let reason = |gap: &LoadGap| match gap.reason {
        GapReason::Missing => "no data: idle, detached or lost",
        GapReason::CounterReset => "a counter was reset",
        GapReason::Restart => "the host restarted",
    };
    let table = Table::of::<LoadGap>(
        &[
            (Column::right("from"), &|gap| time_cell(load, gap.start_ns)),
            (Column::right("length"), &|gap| Cell::duration(gap.length_ns)),
            (Column::left("reason"), &|gap| reason(gap).into()),
        ],
        load.gaps.iter().take(MAX_GAPS),
    );
    let mut blocks = vec![Block::Table(table)];
    if !load.gaps.is_empty() {
        let listed = if load.gaps.len() > MAX_GAPS { "; the first are listed" } else { "" };
        let count = match load.gaps.len() {
            1 => "1 gap".to_owned(),
            count => format!("{} gaps", grouped(count as u64)),
        };
        blocks.push(Block::note(format!(
            "{} in total without data ({} of the time, {count}{listed}). Rates are those of the time with data.",
            duration(Nanos(total)),
            percent(total as f64 / load.length_ns.max(1) as f64)
        )));
    }
    blocks
}

/// Rows in text.
const MAX_ROWS: usize = 24;
/// Hours beyond which those of a day are shown.
const MAX_HOURS: usize = 48;
const HOUR_NS: u64 = 3_600_000_000_000;
const HOURS: usize = 24;

/// The title of the section.
fn course_title(load: &ObservedLoad, profile: &LoadProfile) -> String {
    match is_by_hour_of_day(load, profile) {
        true => format!("Rates by hour of the day ({})", zone(load)),
        false => {
            let zone = load.started_unix_ns.map(|_| format!(", {}", zone(load))).unwrap_or_default();
            format!(
                "Rates over time (rows of {}{zone})",
                duration(Nanos(profile.course.slice_ns * together(profile) as u64))
            )
        }
    }
}

/// Days are shown as one where the hours of each would be too many rows.
fn is_by_hour_of_day(load: &ObservedLoad, profile: &LoadProfile) -> bool {
    let course = &profile.course;
    course.slices.len() > MAX_HOURS && course.slice_ns == HOUR_NS && load.started_unix_ns.is_some()
}

/// The plot and the table; none where rates are unknown.
fn course(load: &ObservedLoad, profile: &LoadProfile) -> Vec<Block> {
    if profile.course.slices.is_empty() {
        return Vec::new();
    }
    let table = match is_by_hour_of_day(load, profile) {
        true => by_hour_of_day(load, profile),
        false => rows(load, profile),
    };
    vec![Block::Plots(vec![plot(load, profile)]), Block::Table(table)]
}

/// The time of a moment of the load: of the wall clock where it is known.
fn time_cell(load: &ObservedLoad, at_ns: u64) -> Cell {
    let text = match load.started_unix_ns {
        Some(started) => time_text(started + at_ns, "%m-%d %H:%M:%S"),
        None if load.length_ns < 60_000_000_000 => format!("{:.2} s", at_ns as f64 / 1e9),
        None => {
            let seconds = at_ns / 1_000_000_000;
            format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
        }
    };
    Cell::integer(at_ns, text)
}

fn columns() -> Vec<Column> {
    vec![
        Column::right("from"),
        Column::right("reads/s").takes_remark(),
        Column::right("writes/s"),
        Column::right("IOPS"),
        Column::right("peak IOPS"),
        Column::right("MiB/s"),
        Column::right("mean size").dispensable(0),
        Column::right("mean latency").dispensable(1),
    ]
}

/// The cells of a slice or of the same hour of several days.
fn row(from: Cell, slice: &LoadSlice) -> Row {
    if slice.observed_ns == 0 {
        return Row { remark: Some("no data".to_owned()), ..Row::new([from]) };
    }
    let rate = |sum: Option<f64>| slice.per_second(sum);
    let iops = |counts: &SliceCounts| Cell::from(rate(counts.ops).map(Cell::iops));
    let size = slice.total.bytes.zip(slice.total.ops.filter(|ops| *ops > 0.0)).map(|(sum, ops)| sum / ops);
    let size = size.map(|mean| Cell::real(mean, bytes(mean.round() as u64)));
    Row::new([
        from,
        iops(&slice.read),
        iops(&slice.write),
        iops(&slice.total),
        Cell::iops(slice.peak_iops),
        rate(slice.total.bytes).map(Cell::mebibytes).into(),
        size.into(),
        slice.total.mean_latency_ns().map(Cell::mean_latency).into(),
    ])
}

/// Slices that share a row.
fn together(profile: &LoadProfile) -> usize {
    profile.course.slices.len().div_ceil(MAX_ROWS).max(1)
}

/// A row for each slice, or for several together where there are many.
fn rows(load: &ObservedLoad, profile: &LoadProfile) -> Table {
    let of = |slices: &[LoadSlice]| {
        let start_ns = slices.first().map_or(0, |slice| slice.start_ns);
        row(time_cell(load, start_ns), &sum(slices.iter()))
    };
    Table::new(columns(), profile.course.slices.chunks(together(profile)).map(of)).without_empty()
}

/// A row for each hour of the day.
fn by_hour_of_day(load: &ObservedLoad, profile: &LoadProfile) -> Table {
    let started = load.started_unix_ns.unwrap_or(0);
    let hour_of = |slice: &LoadSlice| ((started + slice.start_ns) / HOUR_NS) as usize % HOURS;
    let of = |hour: usize| {
        let slices = profile.course.slices.iter().filter(|slice| hour_of(slice) == hour);
        row(Cell::integer(hour as u64, format!("{hour}:00")), &sum(slices))
    };
    Table::new(columns(), (0..HOURS).map(of)).without_empty()
}

fn sum<'a>(slices: impl Iterator<Item = &'a LoadSlice>) -> LoadSlice {
    let mut all = LoadSlice::default();
    slices.for_each(|slice| all.add(slice));
    all
}

/// The unit of the horizontal axis, in ns, with its name.
fn axis_unit(length_ns: u64) -> (f64, &'static str) {
    match length_ns {
        0..120_000_000_000 => (1e9, "s"),
        120_000_000_000..HOUR_NS => (60e9, "min"),
        HOUR_NS..172_800_000_000_000 => (HOUR_NS as f64, "h"),
        _ => (24.0 * HOUR_NS as f64, "days"),
    }
}

fn plot(load: &ObservedLoad, profile: &LoadProfile) -> Plot {
    let (unit, name) = axis_unit(load.length_ns);
    let place = |ns: u64| ns as f64 / unit;
    let point = |slice: &LoadSlice| {
        let y = slice.per_second(slice.total.ops)?;
        let to = place(slice.start_ns + slice.length_ns);
        Some(PlotPoint { from: place(slice.start_ns), to, y, interval: None })
    };
    let mark = |gap: &LoadGap| PlotMark {
        series: 0,
        from: place(gap.start_ns),
        to: place(gap.start_ns + gap.length_ns),
        reason: "no data",
    };
    // Gaps shorter than a slice are in its rate.
    let is_seen = |gap: &&LoadGap| gap.length_ns >= profile.course.slice_ns;
    let points = profile.course.slices.iter().filter_map(point).collect();
    Plot {
        title: "IOPS".to_owned(),
        form: PlotForm::Steps,
        x: Axis::linear(name, rate_text).ending(0.0, place(load.length_ns.max(1))),
        y: Axis::linear("", rate_text),
        series: vec![PlotSeries { name: String::new(), points }],
        limits: Vec::new(),
        marks: load.gaps.iter().filter(is_seen).map(mark).collect(),
    }
}

/// The members of a slice's document.
const COLUMNS: &str = "\
    start_unix_ns,start_ns,length_ns,observed_ns,read_iops,write_iops,iops,peak_iops,read_bytes_per_second,\
    write_bytes_per_second,bytes_per_second,mean_latency_ns";

/// A row for each slice.
fn data(info: TraceInfo<'_>) -> Table {
    let document = |slice: &LoadSlice| {
        json!({
            "start_unix_ns": info.load.started_unix_ns.map(|started| started + slice.start_ns),
            "start_ns": slice.start_ns,
            "length_ns": slice.length_ns,
            "observed_ns": slice.observed_ns,
            "read_iops": slice.per_second(slice.read.ops),
            "write_iops": slice.per_second(slice.write.ops),
            "iops": slice.per_second(slice.total.ops),
            "peak_iops": slice.peak_iops,
            "read_bytes_per_second": slice.per_second(slice.read.bytes),
            "write_bytes_per_second": slice.per_second(slice.write.bytes),
            "bytes_per_second": slice.per_second(slice.total.bytes),
            "mean_latency_ns": slice.total.mean_latency_ns(),
        })
    };
    Table::of_documents(&[COLUMNS], info.profile.course.slices.iter().map(document))
}

#[cfg(test)]
mod tests {
    use fathom_observed::read_text;
    use fathom_predict::load_profile::load_profile;

    use super::*;

    #[test]
    fn loads_without_times_have_no_rates() {
        let text = "fio version 2 iolog\n/f add\n/f open\n/f read 0 4096\n/f read 4096 4096\n/f close\n";
        let load = read_text(text, None).unwrap();
        let profile = load_profile(&load);
        let info = TraceInfo { file: "app.iolog", load: &load, profile: &profile };
        assert!(course(&load, &profile).is_empty() && data(info).rows.is_empty());
        let sections: Vec<String> = view(info).sections.into_iter().map(|section| section.title).collect();
        assert_eq!(sections, ["", "Request sizes", "Notes"]);
    }

    #[test]
    fn units_of_the_axis_follow_the_length() {
        let of = |seconds: u64| axis_unit(seconds * 1_000_000_000).1;
        assert_eq!([of(0), of(90), of(600), of(7_200), of(604_800)], ["s", "s", "min", "h", "days"]);
    }

    #[test]
    fn slices_add_up() {
        let slice = |ops: f64, peak_iops: f64| LoadSlice {
            length_ns: 1_000_000_000,
            observed_ns: 1_000_000_000,
            total: SliceCounts { ops: Some(ops), bytes: Some(ops * 4096.0), ..SliceCounts::default() },
            peak_iops,
            ..LoadSlice::default()
        };
        let all = sum([slice(10.0, 20.0), slice(30.0, 15.0)].iter());
        assert_eq!((all.per_second(all.total.ops), all.peak_iops), (Some(20.0), 20.0));
        let cells: Vec<String> = row("0".into(), &all).cells.into_iter().map(|cell| cell.text).collect();
        assert_eq!(cells, ["0", "", "", "20", "20", "0.078", "4.0 KiB", ""]);
        let empty = LoadSlice::default();
        assert_eq!(row("0".into(), &empty).remark.as_deref(), Some("no data"));
    }
}
