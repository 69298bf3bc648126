//! Latencies by percentile, on an axis that gives each nine the same room.

use fathom_model::Op;
use fathom_record::import::{ImportedOp, ImportedTest};
use fathom_record::{Histogram, JobRecord, Latency, Observed, OpOutcome, TestRecord, entries, merge_jobs};

use super::axes::plot;
use crate::axis_text::{beyond, latency_text, percentile_text};
use crate::view::{Axis, Plot, PlotForm, PlotPoint, PlotSeries};

/// I/Os beyond a percentile that is shown.
const MIN_BEYOND: f64 = 10.0;
/// Jobs that have curves of their own.
const MAX_JOBS: usize = 6;
/// Fewer I/Os than this have no percentiles worth a curve.
const MIN_SAMPLES: u64 = 100;

/// The percentiles of a test; none where it has too few I/Os.
pub(super) fn curves(test: &TestRecord) -> Option<Plot> {
    let named: Vec<(String, Latency)> = match &test.observed {
        Some(Observed::Ping(ping)) => {
            let response = ping.response_ns.clone().map(|response| ("response time".to_owned(), response));
            std::iter::once(("latency".to_owned(), ping.lat_ns.clone())).chain(response).collect()
        }
        Some(Observed::Forecast(forecast)) => {
            Op::DATA.into_iter().map(|op| (op.name().to_owned(), forecast.ops[op].lat.clone())).collect()
        }
        Some(Observed::Import(imported)) => return imported_curves(imported),
        Some(Observed::Monitor(_)) => Vec::new(),
        None => of_jobs(test),
    };
    let enough: Vec<&(String, Latency)> =
        named.iter().filter(|(_, latency)| latency.histogram.samples() >= MIN_SAMPLES).collect();
    let most = enough.iter().map(|(_, latency)| latency.histogram.samples()).max()?;
    let series = enough
        .iter()
        .map(|(name, latency)| PlotSeries { name: name.clone(), points: curve(&latency.histogram) })
        .collect();
    drawn(series, NINES.into_iter().filter(|percent| is_carried(*percent, most)))
}

fn drawn(series: Vec<PlotSeries>, percents: impl Iterator<Item = f64>) -> Option<Plot> {
    let x = Axis::logarithmic("percentile", percentile_text).marked(percents.map(beyond).collect());
    let y = Axis::logarithmic("latency", latency_text);
    plot("Latency by percentile", PlotForm::Lines, x, y, series)
}

/// The percentiles that the source of an imported test has, from the median on; none where it has fewer than two.
fn imported_curves(imported: &ImportedTest) -> Option<Plot> {
    let curve = |op: &ImportedOp| -> Vec<PlotPoint> {
        let latency = [&op.lat, &op.clat].into_iter().find(|latency| !latency.percentiles.is_empty());
        let all = latency.into_iter().flat_map(|latency| &latency.percentiles);
        let upper = all.filter(|found| (50.0..100.0).contains(&found.percent));
        let mut points: Vec<PlotPoint> =
            upper.map(|found| PlotPoint::at(beyond(found.percent), found.ns.value as f64)).collect();
        points.sort_by(|one, other| one.from.total_cmp(&other.from));
        points
    };
    let ops = Op::DATA.into_iter().chain([Op::Sync]);
    let series: Vec<PlotSeries> = ops
        .filter_map(|op| Some(PlotSeries { name: op.name().to_owned(), points: curve(&imported.op(op)?) }))
        .filter(|series| series.points.len() > 1)
        .collect();
    let ends = series.iter().flat_map(|series| series.points.first().into_iter().chain(series.points.last()));
    let (least, most) = ends
        .fold((f64::INFINITY, 0.0_f64), |(least, most), point| (least.min(point.from), most.max(point.from)));
    let percents = NINES.into_iter().filter(|percent| (least..=most).contains(&beyond(*percent)));
    let axis = drawn(series, percents)?;
    // The ends are those of the figures, which need not be ticks.
    Some(Plot { x: axis.x.clone().ending(least, most.max(least * 1.01)), ..axis })
}

/// Of each operation; of jobs that are reported apart, of each of them.
fn of_jobs(test: &TestRecord) -> Vec<(String, Latency)> {
    let entries = entries(test);
    if !(2..=MAX_JOBS).contains(&entries.len()) {
        return of_job(&merge_jobs(&test.jobs.iter().collect::<Vec<_>>()), "");
    }
    entries.iter().flat_map(|entry| of_job(&entry.job, &format!("{} ", entry.job.name))).collect()
}

/// Total latency of each operation of a job, or from issue to completion where that was not recorded.
fn of_job(job: &JobRecord, before: &str) -> Vec<(String, Latency)> {
    let measured = &job.measured;
    let latency =
        |op: &OpOutcome| if op.lat.histogram.samples() > 0 { op.lat.clone() } else { op.clat.clone() };
    let all = [
        ("read", latency(&measured.read)),
        ("write", latency(&measured.write)),
        ("trim", latency(&measured.trim)),
        ("sync", measured.sync_lat.clone()),
    ];
    let used = all.into_iter().filter(|(_, latency)| latency.histogram.samples() > 0);
    used.map(|(name, latency)| (format!("{before}{name}"), latency)).collect()
}

const NINES: [f64; 7] = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999];

fn is_carried(percent: f64, samples: u64) -> bool {
    samples as f64 * (100.0 - percent) / 100.0 >= MIN_BEYOND * 0.999 || percent <= 50.0
}

/// From the median on as far as enough I/Os lie beyond, ten points for each nine.
fn curve(histogram: &Histogram) -> Vec<PlotPoint> {
    const PER_NINE: f64 = 10.0;
    let samples = histogram.samples();
    let exact = NINES.into_iter().map(beyond);
    let between = (4..70).map(|step| 10_f64.powf(f64::from(step) / PER_NINE));
    let mut places: Vec<f64> = exact.chain(between).collect();
    places.sort_by(f64::total_cmp);
    places.dedup_by(|next, one| (*next / *one - 1.0).abs() < 0.01);
    let percent = |beyond: f64| 100.0 - 100.0 / beyond;
    let point = |place: f64| Some(PlotPoint::at(place, histogram.percentile(percent(place))? as f64));
    places.into_iter().filter(|place| is_carried(percent(*place), samples)).filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_the_exact_percentiles_and_ends_where_ten_lie_beyond() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|ms| histogram.record(ms * 1_000_000));
        let points = curve(&histogram);
        let at =
            |percent: f64| points.iter().find(|point| point.from == beyond(percent)).map(|point| point.y);
        assert_eq!(at(50.0), histogram.percentile(50.0).map(|ns| ns as f64));
        assert_eq!(at(99.0), histogram.percentile(99.0).map(|ns| ns as f64));
        assert_eq!(at(99.9), None);
        assert!(points.windows(2).all(|pair| pair[0].from < pair[1].from && pair[0].y <= pair[1].y));
    }
}
