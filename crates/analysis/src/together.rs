//! Whether targets that were measured apart and together share a limit: what they do together, as a share of what they do
//! apart, with the interval that the seconds of the runs leave.
//!
//! There is no verdict where the client itself may be the limit, because all targets share it.

use fathom_record::stability::Second;
use fathom_record::{RunRecord, TestStatus};
use fathom_stats::sample::{mean, variance};
use serde::Serialize;

use crate::Analysis;
use crate::findings::client;
use crate::findings::instance_cap::apart;
use crate::rows::RecordRow;

/// Share of the sum apart below which targets hold each other back.
const INDEPENDENT: f64 = 0.95;
/// Seconds of even rate that an interval takes.
const MIN_SECONDS: usize = 5;
/// No two runs agree better than this, whatever their seconds say.
const MIN_ERROR: f64 = 0.01;
/// How the working file of a directory is called.
const WORKING_FILE: &str = "/fathom.tmp";
/// Standard errors to either side: about 95 %.
const WIDTH: f64 = 2.0;

/// What is known of a limit above several targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetSharing {
    /// They do less together than apart.
    SharesLimit,
    /// They do together what they do apart.
    Independent,
    /// The interval holds both, or the numbers are in doubt.
    Inconclusive,
}

/// One test on several targets, apart and together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Together {
    /// The test that ran on all of them.
    pub test: String,
    /// The tests that ran on one each.
    pub apart: Vec<String>,
    /// The targets, in the order of `apart`.
    pub targets: Vec<String>,
    /// Requests per second of each by itself.
    pub iops_apart: Vec<f64>,
    /// Requests per second of all at once.
    pub iops_together: f64,
    /// Together as a share of the sum apart.
    pub ratio: TogetherRatio,
    /// Whether they share a limit.
    pub verdict: TargetSharing,
    /// Why it is inconclusive.
    pub reason: Option<&'static str>,
}

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TogetherRatio {
    /// Most likely.
    pub value: f64,
    /// At least; `None` where the runs are too short for an interval.
    pub low: Option<f64>,
    /// At most, likewise.
    pub high: Option<f64>,
}

/// What a record tells of targets that were measured apart and together, test by test.
pub(crate) fn compare_together(analysis: &Analysis<'_>) -> Vec<Together> {
    let mut rows = analysis.rows().to_vec();
    rows.retain(|row| row.test.status == TestStatus::Complete);
    rows.iter().filter_map(|row| of_row(analysis.record, row, &rows)).collect()
}

fn of_row(record: &RunRecord, all: &RecordRow<'_>, rows: &[RecordRow<'_>]) -> Option<Together> {
    let (targets, apart) = apart(all, rows)?;
    let sum: f64 = apart.iter().map(|row| row.iops()).sum();
    if sum <= 0.0 {
        return None;
    }
    let value = all.iops() / sum;
    let weighted = |row: &&RecordRow<'_>| Some((error(&row.seconds)? * row.iops() / sum).powi(2));
    let of_sum: Option<f64> = apart.iter().map(weighted).sum();
    let relative = error(&all.seconds).zip(of_sum).map(|(own, sum)| (own.powi(2) + sum).sqrt());
    let interval = relative.map(|relative| {
        let half = value * (WIDTH * relative).max(MIN_ERROR);
        (value - half, value + half)
    });
    let client = std::iter::once(&all).chain(&apart).any(|row| client::has_no_more(record, row));
    let (low, high) = interval.unzip();
    let (verdict, reason) = match interval {
        _ if client => (
            TargetSharing::Inconclusive,
            Some("the CPUs of the client are the limit, and all targets share them"),
        ),
        None => (TargetSharing::Inconclusive, Some("needs at least 5 s of each")),
        Some((_, high)) if high < INDEPENDENT => (TargetSharing::SharesLimit, None),
        Some((low, _)) if low > INDEPENDENT => (TargetSharing::Independent, None),
        Some(_) => (TargetSharing::Inconclusive, Some("the confidence interval includes both; run longer")),
    };
    Some(Together {
        test: all.test.id.clone(),
        apart: apart.iter().map(|row| row.test.id.clone()).collect(),
        // A working file exists under no name: the directory is the target.
        targets: targets
            .into_iter()
            .map(|name| name.strip_suffix(WORKING_FILE).unwrap_or(&name).to_owned())
            .collect(),
        iops_apart: apart.iter().map(|row| row.iops()).collect(),
        iops_together: all.iops(),
        ratio: TogetherRatio { value, low, high },
        verdict,
        reason,
    })
}

/// Standard error of the mean rate, as a share of it, from second to second.
fn error(seconds: &[Second]) -> Option<f64> {
    let rates: Vec<f64> = seconds.iter().map(Second::iops).collect();
    let count = rates.len() as f64;
    if rates.len() < MIN_SECONDS {
        return None;
    }
    let mean = mean(&rates);
    (mean > 0.0).then(|| (variance(&rates) / count).sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, record};

    fn record_of(apart: [f64; 2], iops: f64, change: fn(&mut RunRecord)) -> Vec<Together> {
        let load = |id, iops| TestLoad { id, depth: 8, iops, ..TestLoad::default() };
        let both = TestLoad { id: "both", jobs: 2, depth: 8, iops, ..TestLoad::default() };
        let mut run = record(&[load("one", apart[0]), load("two", apart[1]), both]);
        for (test, names) in run.tests.iter_mut().zip([["/a"; 2], ["/b"; 2], ["/a", "/b"]]) {
            for (job, name) in test.jobs.iter_mut().zip(names) {
                job.worker.paths = vec![name.to_owned()];
            }
        }
        change(&mut run);
        Analysis::of(&run).together().to_vec()
    }

    fn reported(apart: [f64; 2], iops: f64) -> (TargetSharing, f64) {
        let found = record_of(apart, iops, |_| ());
        assert_eq!((found.len(), found[0].apart.join(" ")), (1, "one two".to_owned()));
        (found[0].verdict, (found[0].ratio.value * 100.0).round())
    }

    #[test]
    fn less_together_is_a_limit() {
        assert_eq!(reported([1000.0, 1000.0], 1000.0), (TargetSharing::SharesLimit, 50.0));
        assert_eq!(reported([1000.0, 1000.0], 2000.0), (TargetSharing::Independent, 100.0));
        assert_eq!(reported([1000.0, 500.0], 1350.0), (TargetSharing::SharesLimit, 90.0));
        assert_eq!(reported([1000.0, 500.0], 1425.0), (TargetSharing::Inconclusive, 95.0));
    }

    #[test]
    fn a_client_at_its_end_tells_of_no_target() {
        let found = record_of([1000.0, 1000.0], 1000.0, |run| {
            for job in &mut run.tests[2].jobs {
                job.measured.cpu.user_ns = job.measured.elapsed_ns();
            }
        });
        assert_eq!(found[0].verdict, TargetSharing::Inconclusive);
        assert!(found[0].reason.is_some_and(|why| why.contains("CPUs")));
    }

    #[test]
    fn one_target_shares_nothing() {
        assert_eq!(
            Analysis::of(&record(&[TestLoad::default(), TestLoad { jobs: 2, ..TestLoad::default() }]))
                .together(),
            []
        );
    }
}
