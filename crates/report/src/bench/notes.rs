//! The notes below the table of `bench`: what its columns mean, and what is to be known of its numbers.

use fathom_analysis::{Analysis, RecordRow, recommendation};
use fathom_model::units;
use fathom_record::TestRecord;

use crate::bench::view::{is_synced, row_latency};
use crate::run_view::{self, id};

/// The meaning of the columns that need an explanation.
fn legend(tests: &[RecordRow<'_>]) -> Option<String> {
    let mut parts = Vec::new();
    if tests.iter().any(|row| row.summary.stability.is_some()) {
        parts.push("CI% is half the 95 % confidence interval of the rate, in percent".to_owned());
    }
    let measured = tests.iter().map(|row| &row.summary).filter(|summary| summary.total.is_some());
    if let Some(device) = measured.filter_map(|summary| summary.device.as_ref()).next() {
        let columns = match device.lat_mean_ns {
            Some(_) => "device and device lat are the IOPS and the mean latency",
            None => "device is the IOPS",
        };
        parts.push(format!("{columns} that the kernel counted on {}", device.name));
    }
    (!parts.is_empty()).then(|| format!("{}.", parts.join("; ")))
}

/// Notes in the order they came, each once, with the tests it belongs to.
#[derive(Default)]
struct TestNotes<'a>(Vec<(String, Vec<&'a str>)>);

impl<'a> TestNotes<'a> {
    fn add(&mut self, text: impl Into<String>, test: Option<&'a TestRecord>) {
        let text = text.into();
        let label = test.map(id);
        match self.0.iter_mut().find(|(known, _)| *known == text) {
            Some((_, tests)) => tests.extend(label),
            None => self.0.push((text, label.into_iter().collect())),
        }
    }
}

/// What a reader must know to read the numbers.
pub(super) fn notes(analysis: &Analysis<'_>) -> Vec<String> {
    let record = analysis.record;
    let mut notes = TestNotes::default();
    if let Some(legend) = legend(analysis.tests()) {
        notes.add(legend, None);
    }
    for note in &record.header.notes {
        notes.add(note, None);
    }
    for (test, row) in record.tests.iter().zip(analysis.tests()) {
        for note in &test.notes {
            notes.add(note, Some(test));
        }
        if is_synced(&row.summary) {
            notes.add("latencies are those of the sync, without the write.", Some(test));
        }
        if let Some(total) = row.summary.total.as_ref().filter(|_| !is_timed(test)) {
            let span = units::duration(fathom_model::Nanos(row.summary.measured_ns));
            notes.add(format!("{} in {span}.", units::bytes(total.bytes)), Some(test));
        }
    }
    if analysis.tests().iter().any(shows_thin) {
        notes.add("~ marks a percentile with fewer than ten samples beyond it.", None);
    }
    notes.0.extend(
        recommendation::followed(analysis).and_then(|it| it.shortfall()).map(|note| (note, Vec::new())),
    );
    notes.0.extend(run_view::interruption(record).map(|note| (note, Vec::new())));
    let line = |(text, tests): (String, Vec<&str>)| match tests.as_slice() {
        [] => text,
        tests => format!("{}: {text}", tests.join("; ")),
    };
    notes.0.into_iter().map(line).collect()
}

/// True where the test was to run for a time, not to move an amount.
fn is_timed(test: &TestRecord) -> bool {
    test.jobs.iter().all(|job| job.plan.time.time_based)
}

/// True where the row of the table shows an uncertain percentile.
fn shows_thin(row: &RecordRow<'_>) -> bool {
    let thin = row_latency(&row.summary).thin;
    thin.p50.or(thin.p99).or(thin.p999).is_some()
}
