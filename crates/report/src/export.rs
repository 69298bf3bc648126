//! Stored runs for other programs: a table of their figures, OpenMetrics, and histograms of their latencies.

mod hlog;
mod openmetrics;
#[cfg(test)]
mod tests;

use fathom_analysis::criterion::{Metric, MetricKind};
use fathom_record::{HistoryRow, RunRecord, TestSummary};

pub use hlog::render as hlog;
pub use openmetrics::render as openmetrics;

use crate::view::{Cell, Column, Row, Table, View};

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
        for test in &run.record.tests {
            let figure = |(metric, value)| ExportedFigure { run: &run.row, test: &test.id, metric, value };
            found.extend(Metric::all_of(&TestSummary::new(test)).into_iter().map(figure));
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

/// The columns of the table of figures.
const COLUMNS: [&str; 13] = [
    "run",
    "started_unix_ms",
    "host",
    "device",
    "volume_type",
    "target",
    "command",
    "status",
    "tags",
    "test",
    "metric",
    "value",
    "unit",
];

/// Every figure as a row of a table, for CSV.
pub fn figure_view(runs: &[ExportedRun]) -> View {
    let row = |figure: ExportedFigure<'_>| {
        let run = figure.run;
        Row::new([
            Cell::count(run.id),
            Cell::count(run.started_unix_ms),
            run.hostname.as_str().into(),
            run.device.as_str().into(),
            run.volume_type.as_deref().unwrap_or_default().into(),
            run.target.as_str().into(),
            run.kind.name().into(),
            run.status.name().into(),
            run.tags.join(",").into(),
            figure.test.into(),
            figure.metric.to_string().into(),
            Cell::real(figure.value, ""),
            unit(&figure.metric).into(),
        ])
    };
    let data = Table::new(COLUMNS.map(Column::left), figures(runs).into_iter().map(row));
    View { data, ..View::default() }
}
