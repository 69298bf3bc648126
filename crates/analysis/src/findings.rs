//! What single tests of a record tell, and what several tell together: each finding is a claim with its evidence and a
//! remedy. One module per kind of finding.

mod async_is_not;
mod burst_possible;
mod cache;
pub(crate) mod caps;
pub(crate) mod client;
mod depths;
pub(crate) mod device_view;
mod evenness;
mod flushes;
mod inspection;
pub(crate) mod instance_cap;
pub(crate) mod instance_limit;
pub(crate) mod memory_backed;
mod open_loop;
mod passes;
pub(crate) mod pauses;
mod run_fall;
pub(crate) mod samples;
mod shape;
pub(crate) mod stalled;
mod tail;

pub use caps::REQUESTS_WAIT;
use fathom_record::{ActivityKind, Finding, FindingId, RunRecord};
pub use flushes::{SlowWrites, slow_writes};
pub use instance_cap::instance_limit_of;
pub(crate) use passes::TOUCH;

use crate::rows::RecordRow;
use crate::{Analysis, fleet};
use pauses::DevicePauses;

/// Everything that the record tells: what concerns single tests, in their order, then what several tell together.
pub(crate) fn findings(analysis: &Analysis<'_>) -> Vec<Finding> {
    let record = analysis.record;
    if record.header.fleet.is_some() {
        // The rules below look at one host and its device; what they found is in the records of the hosts.
        return in_order(fleet::findings(record));
    }
    let words = Words::of(record);
    let rows = analysis.rows();
    let each = by_target(rows, words).into_iter().map(lasting).collect::<Vec<_>>();
    let limits: Vec<Limits<'_>> = each.iter().map(|rows| Limits::of(record, rows)).collect();
    let mut found: Vec<Finding> = rows.iter().flat_map(|row| of_row(record, row, &limits)).collect();
    found.extend(record.tests.iter().flat_map(|test| async_is_not::findings(test, words)));
    found.extend(record.tests.iter().flat_map(open_loop::findings));
    found.extend(client::credit(record));
    found.extend(memory_backed::findings(record, rows));
    for rows in by_target(rows, words) {
        let pauses = DevicePauses::of(&rows);
        found.extend(pauses::findings(&rows, pauses.as_ref()));
        let is_limited = |row: &RecordRow<'_>| limits.iter().any(|limits| limits.holds(row));
        found.extend(tail::findings(record, &rows, pauses.as_ref(), &is_limited));
        found.extend(flushes::held_back(record, &rows));
    }
    found.extend(burst_possible::findings(rows, words));
    found.extend(inspection::findings(record, rows));
    found.extend(shape::findings(record, rows));
    holes(&mut found);
    let together = instance_cap::findings(rows);
    found.extend(run_fall::findings(rows));
    found.extend(limits.iter().flat_map(|limits| caps::findings(&limits.caps, &limits.rows)));
    instance_cap::correct(&mut found, &together);
    found.extend(together);
    found.extend(each.iter().flat_map(|rows| depths::findings(rows)));
    in_order(found)
}

/// The limits of one target, and the rows that they were looked for in.
struct Limits<'a> {
    rows: Vec<RecordRow<'a>>,
    caps: caps::Caps,
}

impl<'a> Limits<'a> {
    fn of(record: &RunRecord, rows: &[RecordRow<'a>]) -> Limits<'a> {
        let rows = shape::comparable(record, rows);
        let mut caps = caps::caps(record, &rows);
        if shape::has_head(record, &rows) {
            caps.keep_set();
        }
        Limits { rows, caps }
    }

    /// True where one of them holds the rate of `row`.
    fn holds(&self, row: &RecordRow<'_>) -> bool {
        self.caps.limited(&self.rows).any(|limited| limited.test.id == row.test.id)
    }
}

/// Bytes that did not come from a device whose blocks were never written need no cache as an explanation.
fn holes(found: &mut [Finding]) {
    let Some(unwritten) = found.iter().find(|found| found.id == FindingId::Unwritten).cloned() else {
        return;
    };
    for served in found.iter_mut().filter(|found| found.id == FindingId::CacheServed) {
        if served.tests.iter().all(|test| unwritten.tests.contains(test)) {
            served.remedy.clone_from(&unwritten.remedy);
        }
    }
}

/// Limits and depths are those that remain after a fall of the run.
fn lasting(mut rows: Vec<RecordRow<'_>>) -> Vec<RecordRow<'_>> {
    rows.retain(|row| !row.is_burst());
    rows
}

/// The rows of each target by itself, for a plateau of several at once is a limit of none; of jobs under fio's grammar all of
/// them, whose files may well lie on one device.
fn by_target<'a>(rows: &[RecordRow<'a>], words: Words) -> Vec<Vec<RecordRow<'a>>> {
    let names = |row: &RecordRow<'_>| instance_cap::targets(row).join("\n");
    if words == Words::Fio {
        return vec![rows.to_vec()];
    }
    let mut each: Vec<Vec<RecordRow<'a>>> = Vec::new();
    for row in rows.iter().filter(|row| instance_cap::targets(row).len() < 2) {
        match each.iter_mut().find(|others| names(&others[0]) == names(row)) {
            Some(others) => others.push(row.clone()),
            None => each.push(vec![row.clone()]),
        }
    }
    each
}

/// Highest severity first, and all findings of one kind together, so that their remedy appears once.
fn in_order(found: Vec<Finding>) -> Vec<Finding> {
    let first = |id: &FindingId| found.iter().position(|finding| finding.id == *id);
    let mut keyed: Vec<_> = found
        .iter()
        .map(|finding| ((std::cmp::Reverse(finding.severity), first(&finding.id)), finding.clone()))
        .collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, finding)| finding).collect()
}

/// What one set of jobs tells by itself.
fn of_row(record: &RunRecord, row: &RecordRow<'_>, limits: &[Limits<'_>]) -> Vec<Finding> {
    let mut found = samples::findings(row);
    found.extend(stalled::findings(record, row));
    found.extend(client::findings(record, row));
    found.extend(cache::findings(record, row));
    found.extend(device_view::findings(record, row));
    found.extend(passes::findings(record, row));
    found.extend(evenness::findings(record, row));
    let of_target = limits.iter().find(|limits| limits.rows.iter().any(|one| one.test.id == row.test.id));
    let of_syncs = of_target.and_then(|limits| limits.caps.of_syncs(row));
    found.extend(flushes::findings(record, row, of_syncs));
    found
}

/// Whose options a remedy names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// Those of fio.
    Fio,
    /// Those of fathom's own commands, which choose the rest.
    Own,
    /// Those of a sweep, whose time limit determines how long its points are.
    Sweep,
}

impl Words {
    pub(crate) fn of(record: &RunRecord) -> Words {
        match record.header.activity.kind() {
            ActivityKind::Fio => Words::Fio,
            ActivityKind::Sweep => Words::Sweep,
            _ => Words::Own,
        }
    }

    /// How to measure for longer, as a sentence.
    pub(crate) const fn longer(self) -> &'static str {
        match self {
            Words::Fio => "Use --time_based --runtime=30s.",
            Words::Own => "Use a longer --runtime.",
            Words::Sweep => "Use a longer --budget.",
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;
    use fathom_record::{Activity, BlockRecord, ErrorCount, InspectionRecord, Severity};

    use super::*;
    use crate::fixture::{TestLoad, ids, latency, plan, record};

    fn findings_of(run: &RunRecord) -> Vec<Finding> {
        Analysis::of(run).findings()
    }

    #[test]
    fn a_clean_run_tells_nothing() {
        for rw in ["randread", "randwrite", "read", "write"] {
            assert_eq!(findings_of(&record(&[TestLoad { rw, ..TestLoad::default() }])), [], "{rw}");
        }
        assert_eq!(findings_of(&RunRecord::default()), []);
    }

    #[test]
    fn each_of_several_targets_has_limits_of_its_own() {
        let load = |depth, iops| TestLoad { depth, iops, ..TestLoad::default() };
        let both = |depth| TestLoad { jobs: 2, depth, iops: 3500.0, ..TestLoad::default() };
        let loads = [load(8, 500.0), load(64, 500.0), load(8, 3000.0), load(64, 3000.0), both(8), both(64)];
        let mut run = record(&loads);
        let names = [["/a"; 2], ["/a"; 2], ["/b"; 2], ["/b"; 2], ["/a", "/b"], ["/a", "/b"]];
        for (test, names) in run.tests.iter_mut().zip(names) {
            for (job, name) in test.jobs.iter_mut().zip(names) {
                job.worker.paths = vec![name.to_owned()];
            }
        }
        let caps = |run: &RunRecord| -> Vec<f64> {
            let found = findings_of(run);
            assert!(found.iter().all(|found| found.id != FindingId::QueueTooShallow), "{found:?}");
            let caps = found.iter().filter(|found| found.id == FindingId::UnknownLimit);
            caps.filter_map(|found| found.evidence["iops"].as_f64()).collect()
        };
        assert_eq!(caps(&run), [500.0, 3000.0]);
        // Jobs under fio's grammar may name files of one device.
        run.header.activity = Activity::Fio;
        assert!(!caps(&run).is_empty());
    }

    /// A write of 100 us, and a sync of `sync_ns`, in turn.
    #[test]
    fn syncs_that_a_limit_counts_wait_for_it() {
        let write = |id, depth, iops| TestLoad { id, rw: "randwrite", depth, iops, ..TestLoad::default() };
        let claim = |commits: f64| {
            let mut run =
                record(&[write("one", 1, 1500.0), write("many", 64, 1500.0), write("commit", 1, commits)]);
            let job = &mut run.tests[2].jobs[0];
            job.plan.io.fdatasync_every = 1;
            let syncs = 12 * commits as u64;
            (job.measured.syncs, job.measured.sync_lat) = (syncs, latency(syncs, 1_200_000));
            job.measured.write.lat = latency(syncs, 100_000);
            run.tests[2].disks[0].counters.flush_ios = syncs;
            let found = findings_of(&run).into_iter().find(|found| found.id == FindingId::FlushCost);
            found.unwrap().claim
        };
        let text = claim(745.0);
        assert!(text.starts_with("745 syncs per second use as much of the limit of 1,500 IOPS"), "{text}");
        let text = claim(500.0);
        assert!(text.starts_with("a sync takes 1.20 ms and a write 100 µs"), "{text}");
    }

    #[test]
    fn holes_are_no_cache() {
        let mut run = record(&[TestLoad { iops: 90_000.0, ..TestLoad::default() }]);
        run.tests[0].disks[0].counters = Default::default();
        let remedy = |run: &RunRecord| {
            let found = findings_of(run).into_iter().find(|found| found.id == FindingId::CacheServed);
            found.and_then(|found| found.remedy).unwrap_or_default()
        };
        assert!(remedy(&run).starts_with("A layer in between caches data"));
        let block = BlockRecord { is_zero: true, ..BlockRecord::default() };
        let inspection = InspectionRecord { blocks: vec![block; 64], ..InspectionRecord::default() };
        run.header.conditions.target.inspection = Some(inspection);
        assert_eq!(remedy(&run), "Write it once before measuring reads: `fathom prepare --fill`.");
    }

    #[test]
    fn what_matters_most_comes_first_and_one_kind_together() {
        let short = TestLoad { seconds: vec![1.0], ..TestLoad::default() };
        let mut run = record(&[TestLoad { id: "a", ..short.clone() }, TestLoad { id: "b", ..short }]);
        plan(&mut run, |plan| plan.io.direct = false);
        let error = ErrorCount { op: Op::Read, errno: 5, count: 1 };
        run.tests[1].jobs[0].errors = vec![error];
        let found = findings_of(&run);
        assert_eq!(ids(&found), ["errors", "short-run", "short-run", "buffered", "buffered"]);
        assert_eq!(found[0].severity, Severity::Error);
    }
}
