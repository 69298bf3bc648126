//! OpenMetrics 1.0 text, as node_exporter's textfile collector reads it: gauges without timestamps.
//!
//! Labels name what was measured, not the run, so that a series goes on from run to run; where several runs measured the
//! same, the newest one counts, and a gauge has its number.

use std::collections::BTreeSet;
use std::io::{self, Write};

use fathom_analysis::criterion::{LatencySpan, MetricKind};
use fathom_record::HistoryRow;

use super::{ExportedRun, figures};
use crate::metrics_text::{Family, LabelSet, Samples, end};

const IOPS: Family = Family::gauge("fathom_test_iops", "I/Os per second.");
const RATE: Family = Family::gauge_in("bytes_per_second", "fathom_test_bytes_per_second", "Bandwidth.");
const LATENCY: Family = Family::gauge_in(
    "seconds",
    "fathom_test_latency_seconds",
    "Latency: lat is submission (slat) and completion (clat) together.",
);
const RUN: Family = Family::gauge("fathom_test_run", "Number of the run that measured the test.");
const STARTED: Family = Family::gauge_in(
    "seconds",
    "fathom_test_run_started_seconds",
    "Start of that run, Unix time; absent for simulated runs.",
);
const FAMILIES: [Family; 5] = [IOPS, RATE, LATENCY, RUN, STARTED];

const NS: f64 = 1e9;
const MS: f64 = 1e3;

/// Writes the figures of `runs`, oldest first.
///
/// # Errors
/// Those of `out`.
pub fn render(runs: &[ExportedRun], out: &mut dyn Write) -> io::Result<()> {
    let mut samples = Samples::default();
    let mut tests: BTreeSet<(u64, &str)> = BTreeSet::new();
    for figure in figures(runs).iter().filter(|figure| figure.value.is_finite()) {
        let labels = labels(figure.run, figure.test);
        if tests.insert((figure.run.id, figure.test)) {
            samples.add(&RUN, &labels, figure.run.id as f64);
            if figure.run.started_unix_ms > 0 {
                samples.add(&STARTED, &labels, figure.run.started_unix_ms as f64 / MS);
            }
        }
        let direction = ("direction", figure.metric.direction.map_or("total", |direction| direction.name()));
        match figure.metric.kind {
            MetricKind::Iops => samples.add(&IOPS, &labels.and(&[direction]), figure.value),
            MetricKind::BytesPerSecond => samples.add(&RATE, &labels.and(&[direction]), figure.value),
            MetricKind::Latency(span, statistic) => {
                let span = match span {
                    LatencySpan::Submission => "slat",
                    LatencySpan::Completion => "clat",
                    LatencySpan::Total => "lat",
                };
                let statistic = statistic.name();
                let of = [direction, ("span", span), ("statistic", statistic.as_str())];
                samples.add(&LATENCY, &labels.and(&of), figure.value / NS);
            }
        }
    }
    samples.write(&FAMILIES, out)?;
    end(out)
}

/// What was measured: host, device, target, type, test, and the labels of the user.
fn labels(run: &HistoryRow, test: &str) -> LabelSet {
    let known = [
        ("host", run.hostname.as_str()),
        ("device", &run.device),
        ("target", &run.target),
        ("volume_type", run.volume_type.as_deref().unwrap_or_default()),
        ("test", test),
    ];
    LabelSet::of(&known).with_users(&run.labels)
}
