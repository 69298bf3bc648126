//! Whether there is enough of a row to go by: failed requests, few requests, little time.

use fathom_model::text::errno_text;
use fathom_model::units;
use fathom_record::{Finding, FindingId};

use crate::findings::Words;
use crate::rows::RecordRow;
use crate::say::{finding, seconds};

/// Requests that carry a p99: ten lie beyond it.
const CARRY_P99: u64 = 1000;
/// Full seconds that tell how even a rate is.
const MIN_SECONDS: usize = 3;

/// What there is to say of one row.
pub(crate) fn findings(row: &RecordRow<'_>) -> Vec<Finding> {
    errors(row).into_iter().chain(short_run(row)).chain(low_sample(row)).collect()
}

fn errors(row: &RecordRow<'_>) -> Vec<Finding> {
    let ios = row.summary.total.as_ref().map_or(0, |total| total.ios);
    let reported = row.summary.errors.iter().map(|error| {
        let text = errno_text(error.errno);
        let requests = if error.count == 1 { "request" } else { "requests" };
        let claim = format!("{} {} {requests} failed: {text}.", units::grouped(error.count), error.op);
        let remedy = "Check the kernel log (dmesg) for device errors.";
        finding(FindingId::Errors, [row], claim, remedy)
            .with("op", error.op.name())
            .with("errno", error.errno)
            .with("failed", error.count)
            .with("completed", ios)
    });
    reported.collect()
}

fn short_run(row: &RecordRow<'_>) -> Option<Finding> {
    let total = row.summary.total.as_ref()?;
    if total.ios == 0 || row.seconds.len() >= MIN_SECONDS || row.summary.measured_ns == 0 {
        return None;
    }
    let claim = format!(
        "{} is too short to measure variation, or to tell a burst from the sustained rate.",
        seconds(row.summary.measured_ns)
    );
    let remedy = match row.words {
        Words::Own => "Use a longer --runtime or a larger --size.",
        words => words.longer(),
    };
    Some(
        finding(FindingId::ShortRun, [row], claim, remedy)
            .with("measured_ns", row.summary.measured_ns)
            .with("full_seconds", row.seconds.len()),
    )
}

fn low_sample(row: &RecordRow<'_>) -> Option<Finding> {
    let total = row.summary.total.as_ref()?;
    if total.ios == 0 || total.ios >= CARRY_P99 {
        return None;
    }
    let claim = format!(
        "too few samples for p99 ({}; needs {}).",
        units::grouped(total.ios),
        units::grouped(CARRY_P99)
    );
    Some(finding(FindingId::LowSample, [row], claim, "Run longer.").with("requests", total.ios))
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;
    use fathom_record::{ErrorCount, RunRecord};

    use super::*;
    use crate::fixture::{TestLoad, ids, record};
    use crate::rows::rows;
    use fathom_record::Severity;

    fn check(run: &RunRecord, expected: &[&str]) -> Vec<Finding> {
        let found: Vec<Finding> = rows(run).iter().flat_map(findings).collect();
        assert_eq!(ids(&found), expected);
        found
    }

    #[test]
    fn failed_requests() {
        let mut run = record(&[TestLoad { jobs: 2, ..TestLoad::default() }]);
        check(&run, &[]);
        for job in &mut run.tests[0].jobs {
            job.errors = vec![ErrorCount { op: Op::Read, errno: 5, count: 700 }];
        }
        let found = check(&run, &["errors"]);
        assert_eq!(found[0].claim, "1,400 read requests failed: Input/output error.");
        assert_eq!(found[0].severity, Severity::Error);
    }

    #[test]
    fn too_little() {
        let with = |iops: f64, seconds: usize, expected: &[&str]| {
            check(
                &record(&[TestLoad { iops, seconds: vec![1.0; seconds], ..TestLoad::default() }]),
                expected,
            );
        };
        with(2000.0, 3, &[]);
        with(2000.0, 2, &["short-run"]);
        with(100.0, 10, &[]);
        with(100.0, 9, &["low-sample"]);
        with(100.0, 1, &["short-run", "low-sample"]);
        // What did nothing has its own reason.
        with(0.0001, 1, &[]);
    }
}
