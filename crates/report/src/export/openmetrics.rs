//! OpenMetrics 1.0 text, as node_exporter's textfile collector reads it: gauges without timestamps.
//!
//! Labels name what was measured, not the run, so that a series goes on from run to run; where several runs measured the
//! same, the newest one counts, and a gauge has its number.

use std::collections::BTreeSet;
use std::io::{self, Write};

use fathom_analysis::criterion::MetricKind;
use fathom_record::HistoryRow;

use super::{ExportedRun, figures};
use crate::metrics_text::{Family, LabelSet, Samples, end};

static IOPS: Family = Family::gauge("fathom_test_iops", "", "I/Os per second.");
static RATE: Family = Family::gauge("fathom_test", "bytes_per_second", "Bandwidth.");
static LATENCY: Family = Family::gauge(
    "fathom_test_latency",
    "seconds",
    "Latency: lat is submission (slat) and completion (clat) together.",
);
static RUN: Family = Family::gauge("fathom_test_run", "", "Number of the run that measured the test.");
static STARTED: Family = Family::gauge(
    "fathom_test_run_started",
    "seconds",
    "Start of that run, Unix time; absent for simulated runs.",
);

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
                let statistic = statistic.name();
                let of = [direction, ("span", span.name()), ("statistic", statistic.as_str())];
                samples.add(&LATENCY, &labels.and(&of), figure.value / NS);
            }
        }
    }
    samples.write(out)?;
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
