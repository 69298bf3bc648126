//! Syncs: what they cost, and whether they can have done what they are for.
//!
//! Only a power cut proves that a device lies. The finding states that the figures do not fit a device that flushes.

use fathom_model::units;
use fathom_record::{DeviceRecord, Finding, FindingId, FlushRecord, RunRecord, TestRecord};

use crate::rows::{RecordRow, RowKind};
use crate::say::{count, finding, mebibytes, percent};
use crate::steady::run_fall::{Fell, RowCourse};

/// A flush of a volatile cache takes longer than this on flash; faster is a protected cache, or none at all.
const QUICK_NS: u64 = 30_000;
/// Flushes per sync below which syncs are dropped above the device.
const REACHED: f64 = 0.5;
/// Syncs below which there is too little to tell.
const MIN_SYNCS: u64 = 50;
/// Share of a durable write's time from which on the sync is what it costs.
const COSTLY: f64 = 0.5;

/// A flush takes no longer than one with nothing to write if it takes at most this many times as long.
const ALIKE: u64 = 2;
/// Writes have become slower by this factor: more than the steps and neighbours that all I/O suffers from usually take.
const SLOWER: f64 = 3.0;
/// Reads are as fast as before if their latency is within this factor: less than half of what writes have lost.
const AS_FAST: f64 = 1.5;
/// What was acknowledged takes the device at least this long to write, s: more than the slack of a limiter.
const HELD_S: f64 = 2.0;
/// A flush that wrote a tenth of what was acknowledged takes longer than one that wrote nothing.
const WROTE: f64 = 0.1;

/// A row reaches at least this share of the level that holds it.
const HELD: f64 = 0.95;

/// What there is to say of one row, whose syncs a limit of `limit` IOPS counts.
pub(crate) fn findings(record: &RunRecord, row: &RecordRow<'_>, limit: Option<f64>) -> Option<Finding> {
    // What a sync costs is no question where it may not have done anything.
    suspicious(record, row).or_else(|| cost(row, limit))
}

/// The lowest device that reports this of its cache.
fn lowest_device<'a>(record: &'a RunRecord, write_cache: &str) -> Option<&'a DeviceRecord> {
    let devices = &record.header.conditions.target.devices;
    let is_lowest =
        |device: &&DeviceRecord| !devices.iter().any(|below| below.under.as_ref() == Some(&device.name));
    devices.iter().filter(is_lowest).find(|device| device.write_cache == write_cache)
}

/// Writes that have become slow, although the flush after them wrote nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowWrites {
    pub bytes_per_second: f64,
    pub block_bytes: u64,
}

/// The writes of `test`, if repeating them can tell whether its flush did something: they have become slow after `earlier` tests or
/// within this one, and no test was repeated yet.
pub fn slow_writes(earlier: &[TestRecord], test: &TestRecord) -> Option<SlowWrites> {
    let is_known = earlier.iter().any(|test| test.flush.is_some_and(|flush| flush.repeated.is_some()));
    let rows: Vec<RecordRow<'_>> = earlier.iter().chain([test]).map(RecordRow::of).collect();
    let (row, earlier) = rows.split_last()?;
    let last = row.seconds.last();
    let bytes_per_second = last.map_or(row.bytes_per_second(), |last| rate(last.bytes, last.elapsed_ns));
    let acknowledged = Acknowledged::of(earlier, row, bytes_per_second).filter(|_| !is_known)?;
    acknowledged.is_held().then_some(SlowWrites { bytes_per_second, block_bytes: row.block_bytes()? })
}

fn rate(bytes: u64, elapsed_ns: u64) -> f64 {
    bytes as f64 * 1e9 / elapsed_ns.max(1) as f64
}

/// True of a flush that took no longer than one with nothing to write.
fn is_idle(flush: &FlushRecord) -> bool {
    flush.idle_ns.is_some_and(|idle_ns| flush.first_ns <= ALIKE * idle_ns)
}

/// What a device has acknowledged beyond what it can have written.
struct Acknowledged {
    first_flush_ns: u64,
    idle_flush_ns: u64,
    /// Bytes per second that the device writes in the end, and that it acknowledged at first.
    written: f64,
    fastest: f64,
    /// Bytes that were not written at the end.
    held: f64,
}

impl Acknowledged {
    /// By the end of `row`, after `earlier` ones, on a device that writes at the rate `written`. Earlier requests count if they
    /// were no larger and no more sequential: then only a cache or a limit makes them faster.
    fn of(earlier: &[RecordRow<'_>], row: &RecordRow<'_>, written: f64) -> Option<Acknowledged> {
        let is_write = |row: &RecordRow<'_>| row.kind() == Some(RowKind::Write);
        let flush = row.test.flush.as_ref().filter(|flush| is_idle(flush))?;
        let block = row.block_bytes().filter(|_| is_write(row) && row.is_direct() && !row.is_paced())?;
        let counts = |other: &RecordRow<'_>| {
            is_write(other)
                && !other.is_synced()
                && other.block_bytes().is_some_and(|size| size <= block)
                && (other.is_random() || !row.is_random())
        };
        let (mut held, mut fastest) = (0.0, 0.0_f64);
        for other in earlier.iter().chain([row]) {
            for (bytes, elapsed_ns) in spans(other) {
                let bytes = if counts(other) { bytes } else { 0 };
                fastest = fastest.max(rate(bytes, elapsed_ns));
                held = (held + bytes as f64 - written * elapsed_ns as f64 / 1e9).max(0.0);
            }
            if other.test.flush.as_ref().is_some_and(|flush| !is_idle(flush)) {
                held = 0.0;
            }
        }
        let (first_flush_ns, idle_flush_ns) = (flush.first_ns, flush.idle_ns?);
        Some(Acknowledged { first_flush_ns, idle_flush_ns, written, fastest, held })
    }

    /// True where an honest flush of a cache takes so long that this one cannot have been one.
    fn is_held(&self) -> bool {
        let needs_s = self.held / self.written.max(1.0);
        self.fastest >= SLOWER * self.written
            && needs_s >= HELD_S
            && (self.first_flush_ns as f64) < WROTE * needs_s * 1e9
    }
}

/// Bytes and lengths of the ramp and of the seconds of a row.
fn spans(row: &RecordRow<'_>) -> Vec<(u64, u64)> {
    let ramps = || row.jobs().iter().filter_map(|job| job.ramp.as_ref());
    let ramp_bytes = ramps().map(|ramp| ramp.read.bytes + ramp.write.bytes).sum();
    let ramp = ramps().map(|ramp| ramp.end_ns.saturating_sub(ramp.start_ns)).max();
    let seconds = row.seconds.iter().map(|second| (second.bytes, second.elapsed_ns));
    ramp.map(|ramp_ns| (ramp_bytes, ramp_ns)).into_iter().chain(seconds).collect()
}

/// A flush that wrote nothing, although writes alone have become as slow as they do when a cache is full. A device that reports to
/// have no volatile cache has nothing to flush: flash slows down too when its quick cells are full, and keeps them without power.
pub(crate) fn held_back(record: &RunRecord, rows: &[RecordRow<'_>]) -> Option<Finding> {
    let is_slow = |row: &RecordRow<'_>| row.test.flush.is_some_and(|flush| flush.repeated.is_some());
    let at = rows.iter().position(is_slow)?;
    let (earlier, row) = (&rows[..at], &rows[at]);
    let repeated = row.test.flush?.repeated?;
    let acknowledged = Acknowledged::of(earlier, row, repeated.write_bytes_per_second as f64)?;
    let reads_alike = |other: &&RecordRow<'_>| {
        other.kind() == Some(RowKind::Read)
            && other.block_bytes() == row.block_bytes()
            && other.is_direct()
            && !other.is_paced()
            && other.mean_queue_depth() >= row.mean_queue_depth() / 2.0
    };
    let before_ns = earlier.iter().filter(reads_alike).map(RecordRow::lat_ns).min_by(f64::total_cmp)?;
    let are_reads_as_fast =
        repeated.read_lat_ns as f64 <= AS_FAST * before_ns && !rows.iter().any(has_fallen);
    if !acknowledged.is_held() || !are_reads_as_fast || lowest_device(record, "write through").is_some() {
        return None;
    }
    let Acknowledged { first_flush_ns, idle_flush_ns, written, fastest, held } = acknowledged;
    let claim = format!(
        "writes fell from {} to {}, reads did not, and the flush after them took {}, no longer than one with nothing to write ({}). \
         Possible causes: a write cache protected against power loss, ignored flushes, or burst credits of writes alone.",
        mebibytes(fastest),
        mebibytes(written),
        units::latency(first_flush_ns),
        units::latency(idle_flush_ns),
    );
    let remedy = "Ask the provider how acknowledged writes survive a power loss. Only a power cut can prove it: record acknowledged \
                  writes on another host, and read them back afterwards.";
    let concerned = rows.iter().filter(|other| std::ptr::eq(*other, row) || other.is_synced());
    Some(
        finding(FindingId::FlushSuspicious, concerned, claim, remedy)
            .with("flush_ns", first_flush_ns)
            .with("idle_flush_ns", idle_flush_ns)
            .with("acknowledged_bytes_per_second", fastest)
            .with("written_bytes_per_second", written)
            .with("held_bytes", held),
    )
}

/// A read that a fall of the run holds, of a limit that reads and writes share.
fn has_fallen(row: &RecordRow<'_>) -> bool {
    row.kind() == Some(RowKind::Read)
        && match &row.course {
            RowCourse::Steady => false,
            RowCourse::Burst(_, fell) => *fell == Fell::Within,
            RowCourse::Lasting(fall) => row.settled_iops() >= fall.left(row) * HELD,
        }
}

fn suspicious(record: &RunRecord, row: &RecordRow<'_>) -> Option<Finding> {
    let sync = row.summary.sync.as_ref().filter(|sync| sync.ios >= MIN_SYNCS)?;
    let device = lowest_device(record, "write back")?;
    let disk = row.test.disks.iter().find(|disk| disk.name == device.name && row.has_device)?;
    let flushes = disk.counters.flush_ios;
    let options = record.header.conditions.target.filesystem.as_ref().map_or("", |fs| fs.options.as_str());
    let no_barrier = options.split(',').any(|option| matches!(option, "nobarrier" | "barrier=0"));
    // Several workers may share a flush, so only one at a time can be held against the count.
    let dropped = row.jobs().len() == 1 && (flushes as f64) < REACHED * sync.ios as f64;
    let quick = sync.lat_ns.p50.filter(|&ns| ns < QUICK_NS && !dropped);
    let claim = match (dropped, quick) {
        (true, _) => format!(
            "{} syncs, but only {} flushes reached {}, which has a volatile write cache{}: a power cut may lose \
             acknowledged writes.",
            units::grouped(sync.ios),
            units::grouped(flushes),
            device.name,
            if no_barrier { " (mounted without barriers)" } else { "" },
        ),
        (false, Some(ns)) => format!(
            "a sync takes {}, although {} reports a volatile write cache: the cache is protected against power \
             loss, or flushes are ignored.",
            units::latency(ns),
            device.name,
        ),
        (false, None) => return None,
    };
    let remedy = match (dropped, no_barrier) {
        (true, true) => "Mount with barriers.",
        (true, false) => {
            "Check the layers in between: mount options, LD_PRELOAD filters, hypervisor settings."
        }
        (false, _) => {
            "Ask the provider how acknowledged writes survive a power loss; only a power cut can prove it."
        }
    };
    Some(
        finding(FindingId::FlushSuspicious, [row], claim, remedy)
            .with("syncs", sync.ios)
            .with("flushes", flushes)
            .with("sync_p50_ns", sync.lat_ns.p50)
            .with("write_cache", device.write_cache.as_str())
            .with("mounted_without_barriers", no_barrier),
    )
}

fn cost(row: &RecordRow<'_>, limit: Option<f64>) -> Option<Finding> {
    let sync = row.summary.sync.as_ref().filter(|sync| sync.ios >= MIN_SYNCS)?;
    let write = row.summary.write.as_ref()?;
    let (sync_ns, write_ns) = (sync.lat_ns.mean?, write.lat_ns.mean.or(write.clat_ns.mean)?);
    let writes_per_sync = write.ios as f64 / sync.ios as f64;
    let share = sync_ns / (sync_ns + write_ns * writes_per_sync);
    if share < COSTLY {
        return None;
    }
    let claim = match limit {
        Some(limit) => format!(
            "{} syncs per second use as much of the limit of {} IOPS as so many writes: a write and its sync count as two I/Os, and \
             wait for it.",
            count(sync.ios as f64 * 1e9 / row.summary.measured_ns as f64),
            count(limit),
        ),
        None => format!(
            "a sync takes {} and a write {}: {} of the time is spent making {} durable.",
            units::latency(sync_ns as u64),
            units::latency(write_ns as u64),
            percent(share),
            if writes_per_sync < 1.5 { "each write" } else { "writes" },
        ),
    };
    let remedy = "Use fewer, larger commits (group commit).";
    Some(
        finding(FindingId::FlushCost, [row], claim, remedy)
            .with("sync_mean_ns", sync_ns)
            .with("write_mean_ns", write_ns)
            .with("sync_fraction", share)
            .with("limit_iops", limit)
            .with("writes_per_sync", writes_per_sync),
    )
}

#[cfg(test)]
mod tests {
    use fathom_record::RepeatedRecord;

    use super::*;
    use crate::fixture::{TestLoad, ids, latency, plan, record};
    use crate::rows::rows;

    /// 24,000 writes of 500 us, a sync of `sync_ns` after each, and so many flushes at the device.
    fn run(sync_ns: u64, flushes: u64) -> RunRecord {
        let mut run = record(&[TestLoad { rw: "write", ..TestLoad::default() }]);
        plan(&mut run, |plan| plan.io.fdatasync_every = 1);
        let measured = &mut run.tests[0].jobs[0].measured;
        (measured.syncs, measured.sync_lat) = (24_000, latency(24_000, sync_ns));
        run.tests[0].disks[0].counters.flush_ios = flushes;
        run
    }

    fn check(run: &RunRecord, expected: &[&str]) -> Vec<Finding> {
        let found: Vec<Finding> = rows(run).iter().filter_map(|row| findings(run, row, None)).collect();
        assert_eq!(ids(&found), expected);
        found
    }

    #[test]
    fn flushes_that_do_not_fit() {
        check(&record(&[TestLoad { rw: "write", ..TestLoad::default() }]), &[]);
        check(&run(400_000, 24_000), &[]);
        let found = check(&run(400_000, 3), &["flush-suspicious"]);
        assert!(
            found[0].claim.starts_with("24,000 syncs, but only 3 flushes reached sdx"),
            "{}",
            found[0].claim
        );
        check(&run(10_000, 24_000), &["flush-suspicious"]);
        check(&run(11_000_000, 3), &["flush-suspicious"]);
        // A device without a volatile cache has nothing to flush.
        let mut through = run(10_000, 0);
        through.header.conditions.target.devices[0].write_cache = "write through".to_owned();
        check(&through, &[]);
        // Workers that share flushes.
        let mut shared = run(400_000, 9000);
        let other = shared.tests[0].jobs[0].clone();
        shared.tests[0].jobs.push(other);
        check(&shared, &[]);
    }

    /// Reads at 40,000 IOPS, then writes that fall from 20,000 IOPS to 2,000 after 4 s, a flush after them, and both once more.
    fn filled(change: impl Fn(&mut TestLoad, &mut FlushRecord)) -> Option<Finding> {
        let reads = TestLoad { id: "r", depth: 64, iops: 40_000.0, ..TestLoad::default() };
        let seconds = [vec![1.0; 4], vec![0.1; 8]].concat();
        let mut writes = TestLoad { id: "w", rw: "randwrite", iops: 20_000.0, seconds, ..reads.clone() };
        let repeated =
            RepeatedRecord { write_bytes_per_second: 2000 * 4096, read_lat_ns: reads.depth as u64 * 25_000 };
        let mut flush = FlushRecord { first_ns: 120_000, idle_ns: Some(110_000), repeated: Some(repeated) };
        change(&mut writes, &mut flush);
        let mut run = record(&[reads, writes]);
        run.header.conditions.target.devices.clear();
        let mut unknown = run.tests[1].clone();
        unknown.flush = Some(FlushRecord { repeated: None, ..flush });
        run.tests[1].flush = Some(flush);
        let found = held_back(&run, &rows(&run));
        // Who suspects nothing does not repeat.
        assert!(found.is_none() || slow_writes(&run.tests[..1], &unknown).is_some());
        found
    }

    #[test]
    fn a_flush_after_writes_that_fell_takes_longer_than_one_with_nothing_to_write() {
        let found = filled(|_, _| {}).unwrap();
        assert_eq!(
            found.claim,
            "writes fell from 78.1 MiB/s to 7.8 MiB/s, reads did not, and the flush after them took 120 µs, no longer than one \
             with nothing to write (110 µs). Possible causes: a write cache protected against power loss, ignored flushes, or \
             burst credits of writes alone."
        );
        fn again(flush: &mut FlushRecord) -> &mut RepeatedRecord {
            flush.repeated.as_mut().unwrap()
        }
        // A cache that is flushed, or a flush that writes a little, as that of the memory of a drive.
        assert_eq!(filled(|_, flush| (flush.first_ns, flush.idle_ns) = (40_000_000_000, None)), None);
        assert_eq!(filled(|_, flush| flush.first_ns = 5_000_000), None);
        // Credits for all I/O, and writes that were slow for a while only.
        assert_eq!(filled(|_, flush| again(flush).read_lat_ns *= 10), None);
        assert_eq!(filled(|_, flush| again(flush).write_bytes_per_second *= 10), None);
        // A limit of writes, the slack of a limiter, and half of the rate.
        let seconds = |seconds: Vec<f64>| filled(|writes, _| writes.seconds = seconds.clone());
        assert_eq!(seconds(vec![0.1; 12]), None);
        assert_eq!(seconds([vec![0.2], vec![0.1; 11]].concat()), None);
        assert_eq!(seconds([vec![0.2; 6], vec![0.1; 6]].concat()), None);
    }

    #[test]
    fn what_a_sync_costs() {
        check(&run(400_000, 24_000), &[]);
        let found = check(&run(11_000_000, 24_000), &["flush-cost"]);
        assert_eq!(
            found[0].claim,
            "a sync takes 11.0 ms and a write 500 µs: 96 % of the time is spent making each write durable."
        );
    }
}
