//! Axes that several charts share.

use fathom_model::{Nanos, units};

use crate::view::{Axis, AxisEnds, Plot, PlotForm, PlotSeries};

const SECOND: f64 = 1e9;

pub(super) fn time_text(ns: f64) -> String {
    match ns {
        ns if ns <= 0.0 => "0 s".to_owned(),
        // The middle of half a second.
        ns if ns < 60.0 * SECOND => {
            let text = format!("{:.2}", ns / SECOND);
            format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
        }
        ns => units::duration(Nanos(ns as u64)),
    }
}

pub(super) fn percent_text(percent: f64) -> String {
    format!("{percent:.1} %")
}

/// Time from `from` to `to`, ns, with marks at round values.
pub(crate) fn time(from: u64, to: u64) -> Axis {
    const STEPS_S: [f64; 20] = [
        0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
        10_800.0, 21_600.0, 43_200.0, 86_400.0,
    ];
    const MOST_STEPS: f64 = 10.0;
    let length = to.saturating_sub(from).max(1) as f64;
    let step = STEPS_S.map(|step| step * SECOND).into_iter().find(|step| length / step <= MOST_STEPS);
    let step = step.unwrap_or(length / MOST_STEPS);
    let first = (from as f64 / step).ceil() as u64;
    let ticks = (first..).map(|number| number as f64 * step).take_while(|tick| *tick <= to as f64);
    Axis {
        ticks: ticks.collect(),
        ends: Some(AxisEnds { from: from as f64, to: (to as f64).max(from as f64 + 1.0) }),
        ..Axis::linear("time", time_text)
    }
}

/// A plot without limits and marks; series without points are left out, and the name of one that is alone.
pub(crate) fn plot(
    title: impl Into<String>,
    form: PlotForm,
    x: Axis,
    y: Axis,
    series: Vec<PlotSeries>,
) -> Option<Plot> {
    let mut series: Vec<PlotSeries> = series.into_iter().filter(|series| !series.points.is_empty()).collect();
    if let [alone] = series.as_mut_slice() {
        alone.name.clear();
    }
    let plot = Plot { title: title.into(), form, x, y, series, limits: Vec::new(), marks: Vec::new() };
    (!plot.series.is_empty()).then_some(plot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_has_marks_at_round_values() {
        let ticks = |from: f64, to: f64| time((from * SECOND) as u64, (to * SECOND) as u64).ticks;
        assert_eq!(ticks(0.0, 7.5), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].map(|tick| tick * SECOND));
        assert_eq!(ticks(2.5, 32.6).first(), Some(&(5.0 * SECOND)));
        assert_eq!(ticks(0.0, 86_400.0).last(), Some(&(86_400.0 * SECOND)));
        assert_eq!(time(0, 0).ticks, [0.0]);
    }

    #[test]
    fn texts_of_time() {
        for (seconds, expected) in
            [(0.0, "0 s"), (0.25, "0.25 s"), (12.5, "12.5 s"), (3.0, "3 s"), (90.0, "1 min 30 s")]
        {
            assert_eq!(time_text(seconds * SECOND), expected);
        }
    }
}
