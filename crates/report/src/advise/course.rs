//! Charts of the load and of what a volume would give it: rate, burst credits and latency over the period.

use fathom_analysis::advise::AdvisedCandidate;
use fathom_predict::PredictedSlice;

use crate::axis_text::rate_text;
use crate::view::{Axis, Plot, PlotForm, PlotPoint, PlotSeries};

/// Units of time for the horizontal axis, and the length from which each is used, seconds.
const UNITS: [(&str, f64, f64); 4] =
    [("days", 86_400.0, 2.0 * 86_400.0), ("h", 3600.0, 7200.0), ("min", 60.0, 120.0), ("s", 1.0, 0.0)];

/// The charts; none where there is no course.
pub(super) fn plots(candidate: &AdvisedCandidate) -> Vec<Plot> {
    let Some(first) = candidate.predicted.first().filter(|first| first.slices.len() > 1) else {
        return Vec::new();
    };
    let worst = candidate.predicted.all.last().filter(|last| *last != first);
    let last = &first.slices[first.slices.len() - 1];
    let seconds = (last.start_ns + last.length_ns) as f64 / 1e9;
    let (name, unit, _) = UNITS.into_iter().find(|(_, _, from)| seconds >= *from).unwrap_or(UNITS[3]);
    let label = format!("time ({name})");
    let points =
        |slices: &[PredictedSlice], value: &dyn Fn(&PredictedSlice) -> Option<f64>| -> Vec<PlotPoint> {
            let at = |ns: u64| ns as f64 / 1e9 / unit;
            let of = |slice: &PredictedSlice| {
                let (from, to) = (at(slice.start_ns), at(slice.start_ns + slice.length_ns));
                Some(PlotPoint { from, to, y: value(slice)?, interval: None })
            };
            slices.iter().filter_map(of).collect()
        };
    let plot = |title: String, text: fn(f64) -> String, series: Vec<PlotSeries>| Plot {
        title,
        form: PlotForm::Steps,
        x: Axis::linear(label.clone(), |value| format!("{value:.0}")).ending(0.0, seconds / unit),
        y: Axis::linear("", text),
        series,
        limits: Vec::new(),
        marks: Vec::new(),
    };
    let one = |name: &str, points: Vec<PlotPoint>| PlotSeries { name: name.to_owned(), points };
    let rate = points(&first.slices, &|slice| Some(slice.iops));
    let mut plots = vec![plot("IOPS of the load".to_owned(), rate_text, vec![one("", rate)])];
    let credits = points(&first.slices, &|slice| Some(slice.credits? * 100.0));
    if !credits.is_empty() {
        let title = format!("Burst credits of {} (%)", candidate.id);
        plots.push(plot(title, |value| format!("{value:.0}"), vec![one("", credits)]));
    }
    let p99 = |slices: &[PredictedSlice]| points(slices, &|slice| Some(slice.p99_ns? as f64 / 1e6));
    let mut series = vec![one(if worst.is_some() { "at best" } else { "" }, p99(&first.slices))];
    series.extend(worst.map(|worst| one("at worst", p99(&worst.slices))));
    if series.iter().any(|series| !series.points.is_empty()) {
        plots.push(plot(format!("p99 latency on {} (ms)", candidate.id), millis, series));
    }
    plots
}

/// Milliseconds on an axis.
fn millis(value: f64) -> String {
    match value {
        value if value == 0.0 || value >= 10.0 => rate_text(value),
        value => format!("{value:.2}"),
    }
}
