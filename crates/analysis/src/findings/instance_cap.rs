//! Limits above the volume: targets that are slower together than apart, for the machine or a disk below both has a limit; and rates
//! that an instance publishes while the volume would allow more.

use fathom_record::{Finding, FindingId, JobRecord};

use crate::findings::client;
use crate::findings::instance_limit::{self, InstanceHold};
use crate::rows::RecordRow;
use crate::say::{count, finding, on_rows};

/// Share of what targets do apart that they keep together where they share nothing.
const TOGETHER: f64 = 0.85;
/// Full seconds that a rate takes.
const MIN_SECONDS: usize = 2;
/// The share of a rate that one round of requests makes, at most, of one that is shorter.
const PRECISE: f64 = 0.01;

/// What jobs on several targets at once tell, beside the same jobs each by itself, and what known limits of the instance do.
pub(crate) fn findings(rows: &[RecordRow<'_>]) -> Vec<Finding> {
    let mut found: Vec<Finding> = rows.iter().filter_map(|together| shared(together, rows)).collect();
    found.extend(known(rows));
    found
}

/// One finding for each limit of the instance that rows reach.
fn known(rows: &[RecordRow<'_>]) -> Vec<Finding> {
    let held = |row| Some((row, held_by_instance(row)?));
    let all: Vec<(&RecordRow<'_>, InstanceHold<'_>)> = rows.iter().filter_map(held).collect();
    let of_limit = |alike: &[usize]| {
        let holds: Vec<InstanceHold<'_>> = alike.iter().map(|index| all[*index].1).collect();
        on_rows(instance_limit::finding(&holds), alike.iter().map(|index| all[*index].0))
    };
    let holds: Vec<InstanceHold<'_>> = all.iter().map(|(_, hold)| *hold).collect();
    instance_limit::alike(&holds).iter().map(|alike| of_limit(alike)).collect()
}

/// The limit of the instance that holds the rate of a row. Published limits are compared with rates of any length that are precise
/// enough.
fn held_by_instance<'r>(row: &'r RecordRow<'_>) -> Option<InstanceHold<'r>> {
    let reach = row.test.published.as_ref()?.instance.as_ref()?;
    let is_precise = row.seconds.len() >= MIN_SECONDS || row.resolution() <= PRECISE;
    let counts = is_of_target(row) && is_precise && row.mean_queue_depth() >= instance_limit::QUEUE;
    let iops = row.settled_iops();
    InstanceHold::of(reach, iops, row.settled_bytes_per_second() / iops).filter(|_| counts)
}

/// The finding that a known limit of the instance, and not the volume, holds the rate of a test of `tests`.
pub fn instance_limit_of<'a>(findings: &'a [Finding], tests: &[String]) -> Option<&'a Finding> {
    findings.iter().find(|found| {
        found.id == FindingId::InstanceCap
            && found.evidence.contains_key(instance_limit::INSTANCE_IOPS)
            && found.tests.iter().any(|test| tests.contains(test))
    })
}

/// Points the remedies of limits that are those of the instance at it.
pub(crate) fn correct(findings: &mut [Finding], together: &[Finding]) {
    let is_limit =
        |id: &FindingId| matches!(id, FindingId::IopsCap | FindingId::BandwidthCap | FindingId::UnknownLimit);
    for found in findings.iter_mut().filter(|found| is_limit(&found.id)) {
        if let Some(instance) = instance_limit_of(together, &found.tests) {
            found.remedy.clone_from(&instance.remedy);
        }
    }
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
    Some(
        finding(FindingId::InstanceCap, apart.iter().copied().chain([together]), claim, remedy)
            .with("iops_apart", sum)
            .with("iops_together", together.iops())
            .with("targets", targets),
    )
}

/// True where the row's rate is the targets' and not the client's.
fn counts(row: &RecordRow<'_>) -> bool {
    is_of_target(row) && row.seconds.len() >= MIN_SECONDS
}

fn is_of_target(row: &RecordRow<'_>) -> bool {
    row.is_direct() && !row.is_paced() && !client::is_bound(row)
}

#[cfg(test)]
mod tests {
    use fathom_record::InstanceReach;

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

    fn known_reach(volume_iops: Option<f64>) -> InstanceReach {
        let burst =
            fathom_record::BurstRate { iops: 10_000.0, lasts_ns: Some(1_800_000_000_000), refill_ns: None };
        InstanceReach {
            instance: "m9.large".to_owned(),
            sustained_iops: 4000.0,
            burst: Some(burst),
            volume_iops,
            ..InstanceReach::default()
        }
    }

    fn reached(depth: u32, iops: f64, volume_iops: Option<f64>) -> Vec<Finding> {
        let mut run = record(&[TestLoad { depth, iops, ..TestLoad::default() }]);
        let instance = Some(known_reach(volume_iops));
        run.tests[0].published = Some(fathom_record::PublishedRates { instance, ..Default::default() });
        findings(&rows(&run))
    }

    #[test]
    fn rates_of_a_known_instance_are_not_those_of_the_volume() {
        let found = reached(16, 4010.0, Some(16_000.0));
        assert_eq!(ids(&found), ["instance-cap"]);
        let claim = "4,010 IOPS are the baseline of the instance m9.large for this load; the volume allows 16,000 IOPS.";
        assert_eq!(found[0].claim, claim);
        assert_eq!(found[0].evidence["level"], "baseline");
        let claim = &reached(16, 9_900.0, None)[0].claim;
        assert!(
            claim.ends_with("for this load: full burst credits last 30 min, then 4,000 IOPS remain."),
            "{claim}"
        );
        for (depth, iops, volume_iops) in
            [(16, 6000.0, None), (1, 4000.0, None), (16, 4000.0, Some(4100.0)), (16, 3000.0, Some(3000.0))]
        {
            assert_eq!(reached(depth, iops, volume_iops), [], "{depth} {iops} {volume_iops:?}");
        }
    }

    #[test]
    fn other_limits_at_the_same_rate_are_pointed_at_the_instance() {
        let together = reached(16, 4000.0, Some(16_000.0));
        let cap = |tests: &[&str]| {
            let found = finding(FindingId::IopsCap, [], String::new(), "larger");
            Finding { tests: tests.iter().map(|test| (*test).to_owned()).collect(), ..found }
        };
        let mut caps = [cap(&["t"]), cap(&["other"])];
        correct(&mut caps, &together);
        assert_eq!(caps[0].remedy, together[0].remedy);
        assert_eq!(caps[1].remedy.as_deref(), Some("larger"));
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
