//! What `trace info` shows: operations, key figures, sizes, burstiness, rates over time and gaps.

mod course;

use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped, latency};
use fathom_observed::{GapReason, LoadClock, LoadCourse, LoadGap, ObservedLoad, RequestPoint};
use fathom_predict::load_profile::{BurstinessScale, LoadProfile, OperationProfile, STREAMS, SizeShare};
use jiff::Timestamp;

use fathom_record::LatencySummary;

use super::TraceInfo;
use crate::columns::capital;
use crate::view::{Block, Cell, Column, KeyFigure, Table, Tone, View, ViewHead, decimal};

/// The unit of the bytes that are touched, unless much is.
const SECTOR: u64 = 512;
/// Gaps that are listed.
const MAX_GAPS: usize = 10;

/// What a load holds.
pub fn view(info: TraceInfo<'_>) -> View {
    let TraceInfo { load, profile, .. } = info;
    let mut view = View { head: Some(head(info)), data: course::data(info), ..View::default() };
    view.push("", [Block::Table(operations(&profile.operations)), Block::KeyFigures(figures(load, profile))]);
    view.push("Request sizes", [Block::Table(sizes(&profile.sizes))]);
    view.push("Burstiness", burstiness(&profile.burstiness));
    view.push(course::title(load, profile), course::blocks(load, profile));
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
pub(super) fn requests(profile: &LoadProfile) -> u64 {
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
        (None, None) => "unknown: the source does not tell reads and writes apart, or has none".to_owned(),
    }
}

fn latency_text(load: &ObservedLoad, profile: &LoadProfile) -> String {
    let total = profile.operations.iter().find(|operation| operation.operation == "total");
    let Some(mean) = total.and_then(|total| total.mean_latency_ns) else {
        return "unknown: the source has none".to_owned();
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
            (Column::right("from"), &|gap| course::time_cell(load, gap.start_ns)),
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
