//! Stored runs for other programs: a table of their figures, OpenMetrics, and histograms of their latencies.

mod hlog;
mod openmetrics;
#[cfg(test)]
mod tests;

use fathom_analysis::Analysis;
use fathom_analysis::criterion::{Metric, MetricKind};
use fathom_record::{HistoryRow, RunRecord};

pub use hlog::render as hlog;
pub use openmetrics::render as openmetrics;

use crate::view::{Cell, Table, View};

/// A run with what the history knows of it.
#[derive(Clone, Debug)]
pub struct ExportedRun {
    /// Its entry in the list.
    pub row: HistoryRow,
    /// The record.
    pub record: RunRecord,
}

/// One figure of one test.
#[derive(Clone, Debug)]
pub(crate) struct ExportedFigure<'a> {
    pub(crate) run: &'a HistoryRow,
    pub(crate) test: &'a str,
    pub(crate) metric: Metric,
    /// IOPS, bytes per second or ns.
    pub(crate) value: f64,
}

/// Every figure of every test, in the order of the runs.
pub(crate) fn figures(runs: &[ExportedRun]) -> Vec<ExportedFigure<'_>> {
    let mut found = Vec::new();
    for run in runs {
        for (test, row) in run.record.tests.iter().zip(Analysis::of(&run.record).tests()) {
            let figure = |(metric, value)| ExportedFigure { run: &run.row, test: &test.id, metric, value };
            found.extend(Metric::all_of(&row.summary).into_iter().map(figure));
        }
    }
    found
}

/// The unit of a metric in tables.
fn unit(metric: &Metric) -> &'static str {
    match metric.kind {
        MetricKind::Iops => "IOPS",
        MetricKind::BytesPerSecond => "B/s",
        MetricKind::Latency(..) => "ns",
    }
}

/// Every figure as a row of a table, for CSV.
pub fn figure_view(runs: &[ExportedRun]) -> View {
    let data = Table::data::<ExportedFigure<'_>>(
        &[
            ("run", &|figure| Cell::count(figure.run.id)),
            ("started_unix_ms", &|figure| Cell::count(figure.run.started_unix_ms)),
            ("host", &|figure| figure.run.hostname.as_str().into()),
            ("device", &|figure| figure.run.device.as_str().into()),
            ("volume_type", &|figure| figure.run.volume_type.as_deref().into()),
            ("target", &|figure| figure.run.target.as_str().into()),
            ("command", &|figure| figure.run.kind.name().into()),
            ("status", &|figure| figure.run.status.name().into()),
            ("tags", &|figure| figure.run.tags.join(",").into()),
            ("test", &|figure| figure.test.into()),
            ("metric", &|figure| figure.metric.to_string().into()),
            ("value", &|figure| Cell::real(figure.value, "")),
            ("unit", &|figure| unit(&figure.metric).into()),
        ],
        figures(runs),
    );
    View { data, ..View::default() }
}
