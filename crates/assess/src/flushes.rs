//! Flushes after a test that wrote. What a cache has acknowledged but not written yet would hold up the tests after it, and be taken for
//! the volume's own rate there. What the flushes did is told by their times, and by the same writes once more.

use std::path::Path;

use fathom_analysis::slow_writes;
use fathom_model::{Nanos, units};
use fathom_record::{FlushRecord, OpSummary, RepeatedRecord, TestMeta, TestRecord, TestStatus, TestSummary};
use fathom_runner::Session;

use crate::machine::engine_rows;
use crate::measure::measure_plan;
use crate::plan::BenchPlan;
use crate::planned::PlannedTest;
use crate::target::BenchTarget;

/// A flush that takes longer is worth a word: so much was still to be written.
const WORTH_A_WORD: Nanos = Nanos::from_secs(1);
/// A flush that takes longer has written something for certain.
const DOUBTFUL: Nanos = Nanos::from_millis(100);
/// Flushes with nothing to write: the longest of so many is rarely exceeded by another.
const IDLE_FLUSHES: usize = 5;

/// Flushes the targets of `test`, each with the path that its jobs name, where it wrote and they may hold writes back.
pub(crate) fn flush_writes<'a>(
    test: &mut TestRecord,
    targets: impl IntoIterator<Item = (&'a BenchTarget, &'a Path)>,
    session: &Session,
) {
    let has_written = test.jobs.iter().any(|job| job.plan.io.pattern.writes());
    // A target that fails or does not answer may never complete a flush.
    if !has_written || test.status != TestStatus::Complete {
        return;
    }
    for (target, path) in targets {
        let keeps_writes = match target {
            BenchTarget::Simulated(volume) => {
                volume.model.cache.as_ref().is_some_and(|cache| cache.dirty_bytes > 0)
            }
            BenchTarget::Directory { .. } | BenchTarget::File { .. } | BenchTarget::BlockDevice { .. } => {
                true
            }
        };
        if !keeps_writes {
            continue;
        }
        match session.flush(path) {
            Ok(took) => {
                if took > WORTH_A_WORD {
                    test.notes.push(format!(
                        "flushing its writes took another {}: a cache had acknowledged them before they were written",
                        units::duration(took)
                    ));
                }
                if test.flush.is_none_or(|flush| flush.first_ns < took.0) {
                    test.flush = Some(flushes(took, path, session));
                }
            }
            Err(error) => test.notes.push(format!("its writes were not flushed: {error}")),
        }
    }
}

/// How long the flush after a test may take that writes for `time`: at the highest rate of `earlier` tests, behind a cache that their
/// flushes emptied; 0 where they showed none.
pub(crate) fn flush_time(earlier: &[TestRecord], time: Nanos) -> Nanos {
    let flush_ns = |test: &&TestRecord| test.flush.map_or(0, |flush| flush.first_ns);
    let Some(slowest) = earlier.iter().max_by_key(flush_ns).filter(|test| flush_ns(test) > WORTH_A_WORD.0)
    else {
        return Nanos::ZERO;
    };
    let written = |test: &TestRecord| {
        let phases = test.jobs.iter().flat_map(|job| job.ramp.iter().chain([&job.measured]));
        phases.map(|phase| phase.write.bytes).sum::<u64>() as f64
    };
    let medium = written(slowest) * 1e9 / (slowest.elapsed_ns + flush_ns(&slowest)).max(1) as f64;
    let totals = earlier.iter().filter_map(|test| TestSummary::new(test).total);
    let most = totals.map(|total| total.bytes_per_second).fold(0.0, f64::max);
    Nanos((time.0 as f64 * (most / medium.max(1.0) - 1.0).max(0.0)) as u64)
}

fn flushes(first: Nanos, path: &Path, session: &Session) -> FlushRecord {
    let idle = || (0..IDLE_FLUSHES).map_while(|_| session.flush(path).ok()).max();
    let idle_ns = (first <= DOUBTFUL).then(idle).flatten().map(|time| time.0);
    FlushRecord { first_ns: first.0, idle_ns, repeated: None }
}

/// Length of a pass, and how long the requests that are then in flight may take.
const PASS: Nanos = Nanos::from_millis(250);
const DRAIN_S: f64 = 1.0;
/// The first pass of writes also takes what a cache or a limiter gained while nothing was written.
const PASSES: [&str; 4] = ["write", "write", "read", "read"];
/// Longest time of all of them.
const REPEATED: Nanos = Nanos::from_secs(6);

/// Writes and reads as `planned` once more, if writes are slower than they were and the flush after them did not take as long as a cache
/// needs: reads tell whether the device or its writes alone have become slower.
pub(crate) fn repeat_writes(
    plan: &BenchPlan,
    planned: &PlannedTest,
    size: u64,
    (earlier, test): (&[TestRecord], &mut TestRecord),
    (session, deadline): (&Session, Option<u64>),
) {
    let is_late = deadline.is_some_and(|deadline| session.now() + REPEATED.0 > deadline);
    let slow = slow_writes(earlier, test).filter(|_| !is_late && planned.targets.len() == 1);
    let Some(slow) = slow else { return };
    let workers = test.jobs.len().max(1) as f64;
    let most = slow.bytes_per_second * DRAIN_S / slow.block_bytes as f64 / workers;
    let depth = planned.depth().map(|depth| (most as u64).clamp(1, depth.max(1)));
    let pass = |of: &str, at: usize| {
        let changed = planned.as_pass(of, depth, PASS).repetition(at + 1);
        let meta = TestMeta { id: planned.id.clone(), title: planned.title.clone(), fio: String::new() };
        let record = measure_plan(meta, plan.resolve(&changed, size, &engine_rows()), session, &mut ());
        TestSummary::new(&record).total
    };
    let passes: Option<Vec<OpSummary>> = PASSES.iter().zip(0..).map(|(of, at)| pass(of, at)).collect();
    let Some([_, writes, reads @ ..]) = passes.as_deref() else { return };
    let latency = |reads: &OpSummary| reads.lat_ns.mean.or(reads.clat_ns.mean).unwrap_or(f64::MAX);
    let repeated = RepeatedRecord {
        write_bytes_per_second: writes.bytes_per_second as u64,
        read_lat_ns: reads.iter().map(latency).fold(0.0, f64::max) as u64,
    };
    if let Some(flush) = &mut test.flush {
        flush.repeated = Some(repeated);
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::{FindingId, RunRecord};
    use fathom_volume::{Cache, Limit, LimitStage, TokenRate, VolumeLatency, VolumeModel};

    use super::*;
    use crate::bench::run;
    use crate::plan::BenchSettings;
    use crate::site::RunSettings;

    const MIB: u64 = 1 << 20;

    /// A volume that writes 8 MiB/s behind a cache for 100 MiB of writes, and reads 50 MiB/s.
    fn measured(change: impl Fn(&mut VolumeModel, &mut Cache)) -> RunRecord {
        let mut model = VolumeModel::unlimited(1 << 30);
        let latency = VolumeLatency::fixed(5_000_000);
        (model.read_latency, model.write_latency) = (latency.clone(), latency);
        model.sync_latency = VolumeLatency::fixed(100_000);
        let bytes = TokenRate::per_second(8 * MIB).map(Limit::Rate);
        model.writes = vec![LimitStage { bytes, ..LimitStage::default() }];
        let mut cache =
            Cache { dirty_bytes: 100 * MIB, hits_per_million: 0, ..Cache::read_only(1 << 30, 5_000_000) };
        change(&mut model, &mut cache);
        model.cache = Some(cache);
        let settings = BenchSettings {
            run: RunSettings { seed: Some(1), ..RunSettings::default() },
            suite: "standard".to_owned(),
            only: ["commit", "rand-read", "rand-write"].map(str::to_owned).to_vec(),
            ..BenchSettings::default()
        };
        let plan = BenchPlan::on(vec![BenchTarget::simulated("simulated", model)], settings).unwrap();
        run(&plan, &mut plan.session(), &mut ()).unwrap()
    }

    #[test]
    fn a_flush_that_leaves_a_full_cache_unwritten_is_suspicious() {
        let check = |change: fn(&mut VolumeModel, &mut Cache), expected: &[&str]| {
            let record = measured(change);
            let is_of_flush = |found: &&fathom_record::Finding| found.id == FindingId::FlushSuspicious;
            let found = record.findings.iter().find(is_of_flush);
            let tests: Vec<&str> =
                found.into_iter().flat_map(|found| &found.tests).map(String::as_str).collect();
            assert_eq!(
                tests,
                expected,
                "{:?}",
                record.tests.iter().map(|test| test.flush).collect::<Vec<_>>()
            );
        };
        check(|_, _| {}, &[]);
        check(|_, cache| cache.ignores_flushes = true, &["commit", "rand-write"]);
        // Too little to fill in half a second, no limit behind the cache, and no cache worth the name.
        check(|_, cache| (cache.ignores_flushes, cache.dirty_bytes) = (true, 2 * MIB), &[]);
        let fast = |model: &mut VolumeModel, cache: &mut Cache| {
            cache.ignores_flushes = true;
            model.writes.clear();
        };
        check(fast, &[]);
        // Reads that fall too are limited by something else.
        let shared = |model: &mut VolumeModel, cache: &mut Cache| {
            cache.ignores_flushes = true;
            std::mem::swap(&mut model.shared, &mut model.writes);
        };
        check(shared, &[]);
    }
}
