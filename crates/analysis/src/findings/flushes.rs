//! Syncs: what they cost, and whether they can have done what they are for.
//!
//! Only a power cut proves that a device lies. The finding states that the figures do not fit a device that flushes.

use fathom_model::units;
use fathom_record::{DeviceRecord, Finding, FindingId, RunRecord};

use crate::rows::RecordRow;
use crate::say::{finding, percent};

/// A flush of a volatile cache takes longer than this on flash; faster is a protected cache, or none at all.
const QUICK_NS: u64 = 30_000;
/// Flushes per sync below which syncs are dropped above the device.
const REACHED: f64 = 0.5;
/// Syncs below which there is too little to tell.
const MIN_SYNCS: u64 = 50;
/// Share of a durable write's time from which on the sync is what it costs.
const COSTLY: f64 = 0.5;

/// What there is to say of one row.
pub(crate) fn findings(record: &RunRecord, row: &RecordRow<'_>) -> Vec<Finding> {
    // What a sync costs is no question where it may not have done anything.
    suspicious(record, row).or_else(|| cost(row)).into_iter().collect()
}

/// The lowest device that says it has a volatile cache.
fn cached_device(record: &RunRecord) -> Option<&DeviceRecord> {
    let devices = &record.header.conditions.target.devices;
    let is_lowest =
        |device: &&DeviceRecord| !devices.iter().any(|below| below.under.as_ref() == Some(&device.name));
    devices.iter().filter(is_lowest).find(|device| device.write_cache == "write back")
}

fn suspicious(record: &RunRecord, row: &RecordRow<'_>) -> Option<Finding> {
    let sync = row.summary.sync.as_ref().filter(|sync| sync.ios >= MIN_SYNCS)?;
    let device = cached_device(record)?;
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

fn cost(row: &RecordRow<'_>) -> Option<Finding> {
    let sync = row.summary.sync.as_ref().filter(|sync| sync.ios >= MIN_SYNCS)?;
    let write = row.summary.write.as_ref()?;
    let (sync_ns, write_ns) = (sync.lat_ns.mean?, write.lat_ns.mean.or(write.clat_ns.mean)?);
    let writes_per_sync = write.ios as f64 / sync.ios as f64;
    let share = sync_ns / (sync_ns + write_ns * writes_per_sync);
    if share < COSTLY {
        return None;
    }
    let claim = format!(
        "a sync takes {} and a write {}: {} of the time is spent making {} durable.",
        units::latency(sync_ns as u64),
        units::latency(write_ns as u64),
        percent(share),
        if writes_per_sync < 1.5 { "each write" } else { "writes" },
    );
    let remedy = "Use fewer, larger commits (group commit).";
    Some(
        finding(FindingId::FlushCost, [row], claim, remedy)
            .with("sync_mean_ns", sync_ns)
            .with("write_mean_ns", write_ns)
            .with("sync_fraction", share)
            .with("writes_per_sync", writes_per_sync),
    )
}

#[cfg(test)]
mod tests {
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
        let found: Vec<Finding> = rows(run).iter().flat_map(|row| findings(run, row)).collect();
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
