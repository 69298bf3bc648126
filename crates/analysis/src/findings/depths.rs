//! What several depths of the same load tell together: one too shallow, one that could go deeper, and where the bend is.

use fathom_model::units;
use fathom_record::{Finding, FindingId};

use crate::bend::{DepthRate, bend};
use crate::findings::client;
use crate::findings::instance_cap::targets;
use crate::rows::{RecordRow, RowKind};
use crate::say::{block, count, finding};
use crate::steady::levels::before_fall;
use crate::steady::run_fall::RowCourse;

/// Points are of different depths where one is this many times the other, but for what Little leaves open.
const DEEPER: f64 = 1.9;
/// Below this many in flight a test asks for latency, and is no queue.
const QUEUE: f64 = 1.5;
/// A deeper queue must have made this many times as much before a shallower one is called too shallow.
const WORTHWHILE: f64 = 1.25;
/// Latency over that of the shallowest point up to which no queue has formed.
const NO_QUEUE: f64 = 1.3;
/// Depths that a bend takes.
const MIN_DEPTHS: usize = 4;

/// What the depths of each load tell.
pub(crate) fn findings(rows: &[RecordRow<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    for family in families(rows) {
        found.extend(too_shallow(&family));
        found.extend(not_saturated(&family));
        found.extend(knee(&family));
    }
    found
}

/// Rows that differ in depth alone, shallowest first; families of one are left out. What one target does says nothing of
/// the depth that another needs, nor what several do together of any of them.
fn families<'r, 'a>(rows: &'r [RecordRow<'a>]) -> Vec<Vec<&'r RecordRow<'a>>> {
    // After a row whose rate fell, a volume may have no burst credits; before it, it had. The row itself is of both kinds.
    let fallen: Vec<bool> = rows.iter().map(|row| before_fall(&row.test).is_some()).collect();
    let place = |row: &RecordRow<'_>| rows.iter().position(|other| std::ptr::eq(other, row));
    let has_fallen = |row: &RecordRow<'_>| place(row).is_some_and(|at| fallen[at]);
    let has_credits = |row: &RecordRow<'_>| {
        row.exhausted().is_none()
            && !matches!(row.course, RowCourse::Lasting(_))
            && place(row).is_some_and(|at| !fallen[..at].contains(&true))
    };
    let key = |row: &'r RecordRow<'a>| match (row.kind(), row.block_bytes()) {
        (Some(kind @ (RowKind::Read | RowKind::Write)), Some(size)) => {
            Some((kind, size, row.is_random(), has_credits(row), targets(row)))
        }
        _ => None,
    };
    let counts = |row: &&RecordRow<'_>| {
        row.is_direct()
            && !row.is_paced()
            && !row.is_synced()
            && !client::is_bound(row)
            && row.mean_queue_depth() >= 0.5
            && !has_fallen(row)
    };
    let mut keys: Vec<_> = rows.iter().filter(counts).filter_map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    let family = |wanted| {
        let wanted = Some(wanted);
        let mut family: Vec<&RecordRow<'a>> =
            rows.iter().filter(counts).filter(|row| key(row) == wanted).collect();
        family.sort_by(|one, other| one.mean_queue_depth().total_cmp(&other.mean_queue_depth()));
        family
    };
    keys.into_iter().map(family).filter(|family| family.len() > 1).collect()
}

fn too_shallow(family: &[&RecordRow<'_>]) -> Option<Finding> {
    let best = family.iter().max_by(|one, other| one.iops().total_cmp(&other.iops()))?;
    let falls_short = |row: &&&RecordRow<'_>| {
        row.mean_queue_depth() >= QUEUE
            && best.mean_queue_depth() >= DEEPER * row.mean_queue_depth()
            && best.iops() >= WORTHWHILE * row.iops()
    };
    let row = family.iter().rev().find(falls_short)?;
    // Little, if latency stayed as it is: the least that can do.
    let needed = (best.iops() * row.lat_ns() / 1e9).ceil();
    let claim = format!(
        "QD {} reached {} of the {} IOPS measured at QD {}.",
        count(row.mean_queue_depth()),
        count(row.iops()),
        count(best.iops()),
        count(best.mean_queue_depth()),
    );
    let remedy = format!("Use at least QD {} (Little's law: rate times latency).", count(needed));
    Some(
        finding(FindingId::QueueTooShallow, [*row], claim, remedy)
            .with("depth", row.mean_queue_depth())
            .with("iops", row.iops())
            .with("iops_reached", best.iops())
            .with("depth_needed", needed),
    )
}

fn not_saturated(family: &[&RecordRow<'_>]) -> Option<Finding> {
    let (first, last) = (family.first()?, family.last()?);
    let growth = last.lat_ns() / first.lat_ns().max(1.0);
    if last.mean_queue_depth() < DEEPER * first.mean_queue_depth()
        || growth > NO_QUEUE
        || last.mean_queue_depth() < QUEUE
    {
        return None;
    }
    let claim = format!(
        "latency at QD {} is {}, and {} at QD {}: no queue forms, and the target can exceed {} IOPS.",
        count(last.mean_queue_depth()),
        units::latency(last.lat_ns() as u64),
        units::latency(first.lat_ns() as u64),
        count(first.mean_queue_depth()),
        count(last.iops()),
    );
    let remedy = "Use more depth or jobs to find its limit.";
    Some(
        finding(FindingId::NotSaturated, [*last], claim, remedy)
            .with("depth", last.mean_queue_depth())
            .with("latency_growth", growth)
            .with("iops", last.iops()),
    )
}

fn knee(family: &[&RecordRow<'_>]) -> Option<Finding> {
    let mut curve: Vec<&RecordRow<'_>> = Vec::new();
    for row in family {
        if curve
            .last()
            .is_none_or(|before| row.mean_queue_depth() >= DEEPER * 0.8 * before.mean_queue_depth())
        {
            curve.push(row);
        }
    }
    let at = |row: &&RecordRow<'_>| DepthRate {
        depth: row.mean_queue_depth(),
        iops: row.settled_iops(),
        lat_ns: Some(row.lat_ns()),
        resolution: row.resolution(),
    };
    let bend = bend(&curve.iter().map(at).collect::<Vec<_>>())?;
    let (place, plateau) = bend.throughput.filter(|_| curve.len() >= MIN_DEPTHS)?;
    let (enough, frugal) = (curve[place], curve[bend.latency]);
    let claim = format!(
        "{} {} level off at {} IOPS: QD {} is enough for the rate, QD {} has the best ratio of rate to \
         latency.",
        block(enough.block_bytes()?),
        enough.kind()?.plural(),
        count(plateau),
        count(enough.mean_queue_depth()),
        count(frugal.mean_queue_depth()),
    );
    Some(
        finding(FindingId::Knee, curve.iter().copied(), claim, "")
            .with("iodepth_throughput", enough.mean_queue_depth())
            .with("iodepth_latency", frugal.mean_queue_depth())
            .with("plateau_iops", plateau),
    )
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;

    use super::*;
    use crate::fixture::{TestLoad, ids, plan, record};
    use crate::rows::rows;

    fn curve(points: &[(u32, f64)]) -> fathom_record::RunRecord {
        let load = |&(depth, iops): &(u32, f64)| TestLoad { depth, iops, ..TestLoad::default() };
        record(&points.iter().map(load).collect::<Vec<_>>())
    }

    fn check(points: &[(u32, f64)], expected: &[&str]) -> Vec<Finding> {
        let run = curve(points);
        let found = findings(&rows(&run));
        assert_eq!(ids(&found), expected, "{points:?}");
        found
    }

    #[test]
    fn depths() {
        check(&[(1, 2000.0)], &[]);
        check(&[(1, 2000.0), (8, 9000.0)], &[]);
        // Latency has not grown, so there is no queue.
        check(&[(1, 2000.0), (8, 15_500.0)], &["not-saturated"]);
        let found = check(&[(1, 2000.0), (8, 10_000.0), (64, 20_000.0)], &["queue-too-shallow"]);
        assert_eq!(found[0].claim, "QD 8 reached 10,000 of the 20,000 IOPS measured at QD 64.");
        assert_eq!(found[0].evidence["depth_needed"].as_f64(), Some(16.0));
        check(&[(1, 2000.0), (8, 10_000.0), (64, 10_400.0)], &[]);
    }

    #[test]
    fn what_remains_after_a_fall_is_not_held_against_the_burst() {
        let load = |depth, iops, seconds: Vec<f64>| TestLoad { depth, iops, seconds, ..TestLoad::default() };
        let fell = [vec![1.0; 20], vec![0.05; 40]].concat();
        let deep = load(64, 3000.0, vec![1.0; 12]);
        let later = load(8, 150.0, vec![1.0; 12]);
        let number = |loads: &[TestLoad]| findings(&rows(&record(loads))).len();
        assert!(number(&[deep.clone(), later.clone()]) > 0);
        assert_eq!(number(&[deep, load(64, 3000.0, fell), later]), 0);
    }

    #[test]
    fn targets_are_not_held_against_each_other() {
        let mut run = curve(&[(8, 10_000.0), (64, 20_000.0)]);
        for (test, name) in run.tests.iter_mut().zip(["/a", "/b"]) {
            test.jobs[0].worker.paths = vec![name.to_owned()];
        }
        assert_eq!(findings(&rows(&run)), []);
    }

    #[test]
    fn the_bend_of_a_curve() {
        let found = check(&[(1, 2000.0), (2, 3000.0), (4, 3001.0), (8, 3000.0)], &["knee"]);
        assert_eq!(
            found[0].claim,
            "4k reads level off at 3,000 IOPS: QD 2 is enough for the rate, QD 2 has the best ratio of rate to latency."
        );
        check(&[(1, 2000.0), (2, 2900.0), (4, 4000.0), (8, 5200.0)], &["queue-too-shallow"]);
    }

    #[test]
    fn loads_that_hold_themselves_back_are_no_points() {
        let mut run = curve(&[(1, 2000.0), (8, 15_500.0)]);
        plan(&mut run, |plan| plan.time.think_time.pause = Nanos(7));
        assert_eq!(findings(&rows(&run)), []);
    }
}
