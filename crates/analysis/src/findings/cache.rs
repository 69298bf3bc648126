//! Numbers that memory had a part in: the page cache of this machine, and working sets that fit into a cache elsewhere.

use fathom_model::units;
use fathom_record::{Finding, FindingId, RunRecord};

use crate::rows::RecordRow;
use crate::say::{count, finding, percent};

/// Share of the bytes that may be missing at the device before a cache is behind it: the readings of both sides are
/// taken a moment apart.
const UNSEEN: f64 = 0.02;
/// Bytes below which a share is a matter of chance.
const MIN_BYTES: u64 = 1 << 20;
/// Engines that move no bytes to or from a target.
const NO_TARGET: [&str; 2] = ["null", "sim"];
/// Caches of drives and controllers are of this size and less; a working set above it does not fit.
const SMALL_SET_BYTES: u64 = 1 << 30;
/// Times that every block has to be asked for before a small set is served by a cache for the most part.
const TIMES_OVER: f64 = 4.0;

/// What there is to say of one row.
pub(crate) fn findings(record: &RunRecord, row: &RecordRow<'_>) -> Vec<Finding> {
    let all = [served(row), buffered(row), small_set(record, row)];
    all.into_iter().flatten().collect()
}

/// What stays in flight at both ends of the span in which the device was watched.
fn slack(row: &RecordRow<'_>) -> u64 {
    let in_flight = |job: &fathom_record::JobRecord| {
        u64::from(job.iodepth()) * job.largest_blocks().read.max(job.largest_blocks().write)
    };
    row.jobs().iter().map(in_flight).sum()
}

fn served(row: &RecordRow<'_>) -> Option<Finding> {
    let device = row.summary.device.as_ref().filter(|_| row.has_device)?;
    let unseen = |ours: u64, theirs: u64| {
        let missing = ours.saturating_sub(theirs).saturating_sub(slack(row));
        (ours >= MIN_BYTES && missing as f64 > UNSEEN * ours as f64)
            .then_some(missing as f64 / ours.max(1) as f64)
    };
    let read = row.summary.read.as_ref().and_then(|read| unseen(read.bytes, device.read_bytes));
    let write = row.summary.write.as_ref().and_then(|write| unseen(write.bytes, device.write_bytes));
    let claim = match (read, write) {
        (Some(read), _) => format!(
            "{} of the bytes read did not come from {}: memory served them, so rates and latencies include \
             memory.",
            percent(read),
            device.name
        ),
        (None, Some(write)) => format!(
            "{} of the bytes written had not reached {} when the test ended: they were in memory.",
            percent(write),
            device.name
        ),
        (None, None) => return None,
    };
    let remedy = match (row.is_direct(), row.is_own()) {
        (true, _) => {
            "A layer in between caches data despite direct I/O (a file system without support for it, \
             compression): measure the device below it."
        }
        (false, true) => "Omit --buffered to bypass the page cache.",
        (false, false) => "--direct=1 bypasses the page cache; --end_fsync=1 includes writeback.",
    };
    Some(
        finding(FindingId::CacheServed, [row], claim, remedy)
            .with("read_fraction_unseen", read)
            .with("write_fraction_unseen", write)
            .with("device_read_bytes", device.read_bytes)
            .with("device_write_bytes", device.write_bytes),
    )
}

fn moves_bytes(row: &RecordRow<'_>) -> bool {
    row.jobs().iter().any(|job| !NO_TARGET.contains(&job.engine()))
}

fn buffered(row: &RecordRow<'_>) -> Option<Finding> {
    let buffered = row.jobs().iter().filter(|job| !job.plan.io.direct);
    let jobs = buffered.count();
    if jobs == 0 || !moves_bytes(row) || row.kind().is_none() {
        return None;
    }
    let claim =
        "I/O went through the page cache: rates and latencies are those of cache and target combined.";
    let remedy = if row.is_own() {
        "Omit --buffered if the file system supports direct I/O."
    } else {
        "--direct=1 bypasses it."
    };
    Some(finding(FindingId::Buffered, [row], claim, remedy).with("jobs", jobs))
}

fn small_set(record: &RunRecord, row: &RecordRow<'_>) -> Option<Finding> {
    let total = row.summary.total.as_ref()?;
    let file_size = row.jobs().iter().filter_map(|job| job.plan.io.file_size).max().unwrap_or(0);
    let planned = row.planned_size().max(file_size);
    let set = if record.header.size_bytes > 0 { record.header.size_bytes } else { planned };
    let times = total.bytes as f64 / set.max(1) as f64;
    if set == 0 || set >= SMALL_SET_BYTES || times < TIMES_OVER || !moves_bytes(row) {
        return None;
    }
    let claim = format!(
        "the working set of {} was accessed {} times and fits into caches of drives and controllers.",
        units::bytes(set),
        count(times),
    );
    let remedy = "Use a size of several GiB (--size) to exceed these caches.";
    Some(
        finding(FindingId::SmallWorkingSet, [row], claim, remedy)
            .with("working_set_bytes", set)
            .with("times_over", times),
    )
}

#[cfg(test)]
mod tests {
    use fathom_model::plan::SizeSpec;

    use super::*;
    use crate::fixture::{TestLoad, ids, plan, record};
    use crate::rows::rows;

    fn check(run: &RunRecord, expected: &[&str]) -> Vec<Finding> {
        let found: Vec<Finding> = rows(run).iter().flat_map(|row| findings(run, row)).collect();
        assert_eq!(ids(&found), expected);
        found
    }

    #[test]
    fn bytes_that_the_device_never_saw() {
        let with = |rw: &'static str, share: f64, expected: &[&str]| {
            let mut run = record(&[TestLoad { rw, ..TestLoad::default() }]);
            let counters = &mut run.tests[0].disks[0].counters;
            counters.read_sectors = (counters.read_sectors as f64 * share) as u64;
            counters.write_sectors = (counters.write_sectors as f64 * share) as u64;
            check(&run, expected)
        };
        with("randread", 1.0, &[]);
        with("randread", 0.981, &[]);
        let found = with("randread", 0.5, &["cache-served"]);
        assert!(
            found[0].claim.starts_with("50 % of the bytes read did not come from sdx"),
            "{}",
            found[0].claim
        );
        let found = with("randwrite", 0.0, &["cache-served"]);
        assert!(
            found[0].claim.starts_with("100 % of the bytes written had not reached"),
            "{}",
            found[0].claim
        );
        // No device, nothing to compare with.
        let mut run = record(&[TestLoad::default()]);
        run.tests[0].disks.clear();
        check(&run, &[]);
        // A handful of requests in flight when the readings were taken.
        let mut run = record(&[TestLoad { depth: 64, iops: 40.0, ..TestLoad::default() }]);
        run.tests[0].disks[0].counters.read_sectors -= 8 * 60;
        check(&run, &[]);
    }

    #[test]
    fn the_page_cache() {
        let mut run = record(&[TestLoad::default()]);
        plan(&mut run, |plan| plan.io.direct = false);
        check(&run, &["buffered"]);
        run.tests[0].jobs[0].plan.engine.name = "null".to_owned();
        check(&run, &[]);
    }

    #[test]
    fn a_set_that_fits_into_a_drives_cache() {
        let with = |size: u64, expected: &[&str]| {
            // 24,000 requests of 4 KiB are 94 MiB.
            let mut run = record(&[TestLoad::default()]);
            run.header.size_bytes = size;
            check(&run, expected);
        };
        with(16 << 20, &["small-working-set"]);
        with(64 << 20, &[]);
        with(4 << 30, &[]);
        with(0, &[]);
        let mut run = record(&[TestLoad::default()]);
        run.header.size_bytes = 0;
        plan(&mut run, |plan| plan.io.size = Some(SizeSpec::Bytes(1 << 20)));
        check(&run, &["small-working-set"]);
        plan(&mut run, |plan| plan.io.size = Some(SizeSpec::Percent(50)));
        check(&run, &[]);
        // A model has no cache.
        run.header.size_bytes = 16 << 20;
        run.tests[0].jobs[0].plan.engine.name = "sim".to_owned();
        check(&run, &[]);
    }
}
