//! Targets that are slower together than apart: something above them, the machine or a disk below both, has a limit.

use fathom_record::{Finding, FindingId, JobRecord, Severity};

use crate::findings::client;
use crate::rows::RecordRow;
use crate::say::{count, finding, of};

/// Share of what targets do apart that they keep together where they share nothing.
const TOGETHER: f64 = 0.85;
/// Full seconds that a rate takes.
const LEAST_SECONDS: usize = 2;

/// What jobs on several targets at once tell, beside the same jobs each by itself.
pub(crate) fn findings(rows: &[RecordRow<'_>]) -> Vec<Finding> {
    rows.iter().filter_map(|together| shared(together, rows)).collect()
}

/// The files of a job, as fio's `filename` has them.
fn target(job: &JobRecord) -> String {
    job.worker.paths.join(":")
}

/// The targets of a row, each once.
pub(crate) fn targets(row: &RecordRow<'_>) -> Vec<String> {
    let mut targets: Vec<String> = row.jobs().iter().map(target).filter(|name| !name.is_empty()).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// The targets of a row that has several, and the rows of the same jobs on each by itself.
pub(crate) fn apart<'r, 'a>(
    together: &'r RecordRow<'a>,
    rows: &'r [RecordRow<'a>],
) -> Option<(Vec<String>, Vec<&'r RecordRow<'a>>)> {
    let targets = targets(together);
    if targets.len() < 2 {
        return None;
    }
    let alone = |name: &String| {
        let mine: Vec<&JobRecord> = together.jobs().iter().filter(|job| target(job) == *name).collect();
        let asked = |job: &JobRecord| (job.rw(), job.largest_blocks(), job.smallest_blocks(), job.iodepth());
        let alike = |job: &JobRecord| asked(job) == asked(mine[0]);
        rows.iter().find(|row| {
            self::targets(row) == std::slice::from_ref(name)
                && row.jobs().len() == mine.len()
                && row.jobs().iter().all(alike)
        })
    };
    let apart = targets.iter().map(alone).collect::<Option<_>>()?;
    Some((targets, apart))
}

fn shared(together: &RecordRow<'_>, rows: &[RecordRow<'_>]) -> Option<Finding> {
    let (targets, apart) = apart(together, rows)?;
    if !counts(together) || !apart.iter().all(|row| counts(row)) {
        return None;
    }
    let sum: f64 = apart.iter().map(|row| row.iops()).sum();
    if sum <= 0.0 || together.iops() > TOGETHER * sum {
        return None;
    }
    let each: Vec<String> = apart.iter().map(|row| count(row.iops())).collect();
    let claim = format!(
        "{} share a limit: {} IOPS apart, {} IOPS together.",
        targets.join(" and "),
        each.join(" and "),
        count(together.iops()),
    );
    let remedy =
        "Check the limits of the machine type, of a disk below the targets, and of the control group.";
    let found = finding(FindingId::InstanceCap, Severity::Info, claim, Some(remedy.to_owned()));
    Some(
        of(found, apart.iter().copied().chain([together]))
            .with("iops_apart", sum)
            .with("iops_together", together.iops())
            .with("targets", targets),
    )
}

/// True where the row's rate is the targets' and not the client's.
fn counts(row: &RecordRow<'_>) -> bool {
    row.is_direct() && !row.is_paced() && !client::is_bound(row) && row.seconds.len() >= LEAST_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, ids, record};
    use crate::rows::rows;

    fn reported(apart: [f64; 2], together: f64) -> Vec<Finding> {
        let load = |iops| TestLoad { depth: 8, iops, ..TestLoad::default() };
        let both = TestLoad { jobs: 2, depth: 8, iops: together, ..TestLoad::default() };
        let mut run = record(&[load(apart[0]), load(apart[1]), both]);
        for (test, names) in run.tests.iter_mut().zip([["/a"; 2], ["/b"; 2], ["/a", "/b"]]) {
            for (job, name) in test.jobs.iter_mut().zip(names) {
                job.worker.paths = vec![name.to_owned()];
            }
        }
        findings(&rows(&run))
    }

    #[test]
    fn apart_and_together() {
        let found = reported([1000.0, 1000.0], 1000.0);
        assert_eq!(ids(&found), ["instance-cap"]);
        assert_eq!(
            found[0].claim,
            "/a and /b share a limit: 1,000 and 1,000 IOPS apart, 1,000 IOPS together."
        );
        assert_eq!(reported([1000.0, 1000.0], 2000.0), []);
        assert_eq!(reported([1000.0, 500.0], 1400.0), []);
    }
}
