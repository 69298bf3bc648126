//! What several charts share.

use crate::view::{Axis, Plot, PlotForm, PlotSeries};

pub(super) fn percent_text(percent: f64) -> String {
    format!("{percent:.1} %")
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
