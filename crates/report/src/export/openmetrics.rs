//! OpenMetrics 1.0 text, as node_exporter's textfile collector reads it: gauges without timestamps.
//!
//! Labels name what was measured, not the run, so that a series goes on from run to run; where several runs measured the
//! same, the newest one counts, and a gauge has its number.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use fathom_analysis::criterion::{LatencySpan, MetricKind};
use fathom_model::text::is_hidden;
use fathom_record::HistoryRow;

use super::{ExportedRun, figures};

/// A family of samples.
struct Family {
    name: &'static str,
    /// Suffix of the name; empty where it has no unit.
    unit: &'static str,
    help: &'static str,
}

const IOPS: Family = Family { name: "fathom_test_iops", unit: "", help: "I/Os per second." };
const RATE: Family =
    Family { name: "fathom_test_bytes_per_second", unit: "bytes_per_second", help: "Bandwidth." };
const LATENCY: Family = Family {
    name: "fathom_test_latency_seconds",
    unit: "seconds",
    help: "Latency: lat is submission (slat) and completion (clat) together.",
};
const RUN: Family =
    Family { name: "fathom_test_run", unit: "", help: "Number of the run that measured the test." };
const STARTED: Family = Family {
    name: "fathom_test_run_started_seconds",
    unit: "seconds",
    help: "Start of that run, Unix time; absent for simulated runs.",
};
const FAMILIES: [Family; 5] = [IOPS, RATE, LATENCY, RUN, STARTED];

const NS: f64 = 1e9;
const MS: f64 = 1e3;

/// Labels and values by family.
#[derive(Default)]
struct Samples {
    families: BTreeMap<&'static str, BTreeMap<String, f64>>,
}

impl Samples {
    /// Adds a sample, in place of one with the same labels.
    fn add(&mut self, family: &Family, labels: &[(String, String)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        self.families.entry(family.name).or_default().insert(labels.join(","), value);
    }
}

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
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let direction =
            own("direction", figure.metric.direction.map_or("total", |direction| direction.name()));
        match figure.metric.kind {
            MetricKind::Iops => samples.add(&IOPS, &[labels, vec![direction]].concat(), figure.value),
            MetricKind::BytesPerSecond => {
                samples.add(&RATE, &[labels, vec![direction]].concat(), figure.value);
            }
            MetricKind::Latency(span, statistic) => {
                let span = match span {
                    LatencySpan::Submission => "slat",
                    LatencySpan::Completion => "clat",
                    LatencySpan::Total => "lat",
                };
                let of = vec![direction, own("span", span), own("statistic", &statistic.name())];
                samples.add(&LATENCY, &[labels, of].concat(), figure.value / NS);
            }
        }
    }
    for Family { name, unit, help } in &FAMILIES {
        let Some(found) = samples.families.get(name) else { continue };
        writeln!(out, "# TYPE {name} gauge")?;
        if !unit.is_empty() {
            writeln!(out, "# UNIT {name} {unit}")?;
        }
        writeln!(out, "# HELP {name} {help}")?;
        for (labels, value) in found {
            writeln!(out, "{name}{{{labels}}} {value}")?;
        }
    }
    writeln!(out, "# EOF")
}

/// What was measured: host, device, target, type, test, and the labels of the user.
fn labels(run: &HistoryRow, test: &str) -> Vec<(String, String)> {
    let known = [
        ("host", run.hostname.as_str()),
        ("device", &run.device),
        ("target", &run.target),
        ("volume_type", run.volume_type.as_deref().unwrap_or_default()),
        ("test", test),
    ];
    let known = known.into_iter().filter(|(_, value)| !value.is_empty());
    let mut labels: Vec<(String, String)> =
        known.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for (name, value) in &run.labels {
        // Two names may become one.
        let name = label_name(name);
        if labels.iter().all(|(known, _)| *known != name) {
            labels.push((name, value.clone()));
        }
    }
    labels
}

/// A name that labels may have, apart from fathom's own.
fn label_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("label_{}", name.chars().map(allowed).collect::<String>())
}

/// The value as a label has it, without characters that a terminal obeys.
fn escaped(value: &str) -> String {
    let letter = |c: char| match c {
        '\\' => "\\\\".to_owned(),
        '"' => "\\\"".to_owned(),
        '\n' => "\\n".to_owned(),
        c if is_hidden(c) => "_".to_owned(),
        c => c.to_string(),
    };
    value.chars().map(letter).collect()
}
