//! Where the device did other work than it was asked for: somebody else's, requests cut into pieces, blocks that had to
//! be read before they were written.

use fathom_model::{PerOp, units};
use fathom_record::{Finding, FindingId, RunRecord, Severity, TargetRecord};

use crate::rows::{RecordRow, RowKind};
use crate::say::{block, count, finding, mebibytes, percent};

/// What to do about the I/O of others.
pub(crate) const FOREIGN_REMEDY: &str = "Stop the other load, or measure while it is idle.";
/// Share of others' I/O from which on the device was not ours alone.
pub(crate) const FOREIGN: f64 = 0.02;
/// Requests of others below which a share is a matter of chance: a few a second are any system's own.
const FOREIGN_PER_SECOND: f64 = 5.0;
/// Fewest requests of others that are counted as a load.
const MIN_FOREIGN: f64 = 10.0;
/// Seconds below which what any system does now and then, in one burst, weighs as much as a neighbour.
const SHORTEST_S: f64 = 1.0;
/// Pieces per request from which on requests were split.
const PIECES: f64 = 1.2;
/// Bytes of both sides agree within this share where every request of the device was ours.
const AGREE: f64 = 0.05;

/// What there is to say of one row.
pub(crate) fn findings(record: &RunRecord, row: &RecordRow<'_>) -> Vec<Finding> {
    [foreign(record, row), splitting(record, row), alignment(record, row)].into_iter().flatten().collect()
}

/// Requests and bytes of other processes on a device under the target.
pub(crate) struct ForeignIo {
    pub(crate) requests: f64,
    pub(crate) bytes: f64,
    /// Kernel name of the device.
    pub(crate) device: String,
    /// Time over which they were counted, s.
    pub(crate) seconds: f64,
}

impl ForeignIo {
    /// More than any system issues now and then.
    pub(crate) fn is_load(&self) -> bool {
        self.seconds >= SHORTEST_S
            && self.requests >= FOREIGN_PER_SECOND * self.seconds
            && self.requests >= MIN_FOREIGN
    }
}

/// What other processes did on the target's device, or on the disk under its partition, while `row` ran; `None` where the
/// counters do not show it.
pub(crate) fn foreign_io(target: &TargetRecord, row: &RecordRow<'_>) -> Option<ForeignIo> {
    let found = of_others(target, row).into_iter().chain(beside_partition(target, row));
    found.max_by(|a, b| a.bytes.total_cmp(&b.bytes))
}

fn foreign(record: &RunRecord, row: &RecordRow<'_>) -> Option<Finding> {
    let total = row.summary.total.as_ref()?;
    let found = foreign_io(&record.header.conditions.target, row)?;
    let seconds = found.seconds;
    let of_bytes = found.bytes / total.bytes.max(1) as f64;
    let of_requests = found.requests / total.ios.max(1) as f64;
    let share = of_bytes.max(of_requests);
    if share <= FOREIGN || !found.is_load() {
        return None;
    }
    // In the unit of the larger share: few large requests may be most of the bytes.
    let (rate, measured) = match of_bytes > of_requests {
        true => (mebibytes(found.bytes / seconds.max(1e-9)), "bandwidth"),
        false => (format!("{} IOPS", count(found.requests / seconds.max(1e-9))), "IOPS"),
    };
    let claim = format!(
        "other processes used {} with {rate} ({} of the measured {measured}): they share its limits and add \
         queueing delay.",
        found.device,
        percent(share),
    );
    Some(
        finding(FindingId::ForeignIo, [row], claim, FOREIGN_REMEDY)
            .with("foreign_fraction", share)
            .with("foreign_requests", found.requests)
            .with("foreign_bytes", found.bytes)
            .with("impeding_fraction", share.max(beyond(record, row).unwrap_or(share))),
    )
}

/// All that the device did beyond our requests as a share of them: the most that others, and the file system itself, can have
/// taken from them.
fn beyond(record: &RunRecord, row: &RecordRow<'_>) -> Option<f64> {
    let (total, device) = (row.summary.total.as_ref()?, row.summary.device.as_ref()?);
    let share = |theirs: u64, ours: u64| theirs.saturating_sub(ours) as f64 / ours.max(1) as f64;
    let of_bytes = share(device.read_bytes + device.write_bytes, total.bytes);
    // Requests in pieces are no more work than their bytes.
    let is_split = largest_request(&record.header.conditions.target, row)
        .zip(row.block_bytes())
        .is_none_or(|(most, block)| block > most);
    let of_requests = if is_split { 0.0 } else { share(device.reads + device.writes, total.ios) };
    Some(of_bytes.max(of_requests))
}

/// How long the device's counters ran, s: a delay before the first request included.
fn counted_seconds(row: &RecordRow<'_>) -> f64 {
    let counted = row.test.disks.iter().map(|disk| disk.elapsed_ns).max().unwrap_or(0);
    counted.max(row.summary.measured_ns) as f64 / 1e9
}

/// What the target's own device did beyond our requests. Only what cannot be ours counts: a file system that is written
/// to writes more than it was asked to, and a page cache reads ahead.
fn of_others(target: &TargetRecord, row: &RecordRow<'_>) -> Option<ForeignIo> {
    let device = row.summary.device.as_ref().filter(|_| row.has_device && row.is_direct())?;
    let jobs = row.jobs();
    let read = row.sum(|op| op.bytes, |job| &job.measured.read);
    let written = row.sum(|op| op.bytes, |job| &job.measured.write);
    let trimmed = row.sum(|op| op.ios, |job| &job.measured.trim);
    let in_flight = |block: fn(&PerOp<u64>) -> u64| -> u64 {
        jobs.iter().map(|job| u64::from(job.iodepth()) * block(&job.largest_blocks())).sum()
    };
    let at_once: u64 = jobs.iter().map(|job| u64::from(job.iodepth())).sum();
    let (reading, writing) = (in_flight(|block| block.read), in_flight(|block| block.write));
    let beyond = |theirs: u64, ours: u64| theirs.saturating_sub(ours) as f64;
    let largest = whole_up_to(target, row);
    let (mut requests, mut bytes) = (0.0, 0.0);
    if written > 0 && target.kind == "block_device" {
        // No file system lies between: every byte that was not ours is of others.
        let of_others = beyond(device.write_bytes, written + writing);
        let ours = row.sum(|op| op.ios, |job| &job.measured.write) + at_once;
        requests += requests_of(of_others, (device.writes, device.write_bytes), ours, largest);
        bytes += of_others;
    }
    // Writes smaller than a block of the device make it read: that has a finding of its own.
    if written == 0 {
        let of_others = beyond(device.read_bytes, read + reading);
        let ours = row.sum(|op| op.ios, |job| &job.measured.read) + at_once;
        requests += requests_of(of_others, (device.reads, device.read_bytes), ours, largest);
        bytes += of_others;
        if trimmed == 0 {
            bytes += device.write_bytes as f64;
            requests += device.writes as f64;
        }
    } else if read == 0 {
        requests += device.reads as f64;
        bytes += device.read_bytes as f64;
    }
    Some(ForeignIo { requests, bytes, device: device.name.clone(), seconds: counted_seconds(row) })
}

/// The requests that `bytes` of others were, of `all` requests and bytes of the device: those beyond `ours` where ours reach it
/// whole, else as many as bytes of the mean size make.
fn requests_of(bytes: f64, all: (u64, u64), ours: u64, whole_up_to: Option<u64>) -> f64 {
    let (requests, all_bytes) = all;
    match whole_up_to {
        // Some of ours may have been merged.
        Some(largest) if requests > ours => {
            ((requests - ours) as f64).max(bytes / largest as f64).min(bytes / 512.0)
        }
        _ => bytes / (all_bytes as f64 / requests.max(1) as f64).max(512.0),
    }
}

/// The largest request that the target's device takes, bytes, where all of ours are no larger.
fn whole_up_to(target: &TargetRecord, row: &RecordRow<'_>) -> Option<u64> {
    let largest = largest_request(target, row)?;
    let largest_of_ours =
        row.jobs().iter().map(|job| job.largest_blocks()).map(|each| each.read.max(each.write)).max()?;
    (largest_of_ours <= largest).then_some(largest)
}

/// What the disk under a partition did beyond the partition itself.
fn beside_partition(target: &TargetRecord, row: &RecordRow<'_>) -> Option<ForeignIo> {
    let devices = &target.devices;
    let is_partition =
        |name: &str| devices.iter().any(|device| device.name == name && device.kind == "partition");
    let own = row.test.disks.iter().find(|disk| disk.under.is_none() && is_partition(&disk.name))?;
    let whole =
        row.test.disks.iter().find(|disk| disk.under.as_ref() == Some(&own.name) && row.has_device)?;
    let (own, all) = (&own.counters, &whole.counters);
    let requests = (all.read_ios + all.write_ios).saturating_sub(own.read_ios + own.write_ios);
    let sectors = (all.read_sectors + all.write_sectors).saturating_sub(own.read_sectors + own.write_sectors);
    let (requests, bytes) = (requests as f64, sectors as f64 * 512.0);
    Some(ForeignIo { requests, bytes, device: whole.name.clone(), seconds: counted_seconds(row) })
}

/// Largest request that the target's device takes, bytes, where that is known.
fn largest_request(target: &TargetRecord, row: &RecordRow<'_>) -> Option<u64> {
    let device = row.summary.device.as_ref()?;
    target.devices.iter().find(|known| known.name == device.name)?.max_request_bytes
}

fn splitting(record: &RunRecord, row: &RecordRow<'_>) -> Option<Finding> {
    let device =
        row.summary.device.as_ref().filter(|_| row.has_device && row.is_direct() && !row.is_synced())?;
    let (ours, theirs, ours_bytes, theirs_bytes) = match row.kind()? {
        RowKind::Read => {
            let read = row.summary.read.as_ref()?;
            (read.ios, device.reads, read.bytes, device.read_bytes)
        }
        RowKind::Write => {
            let write = row.summary.write.as_ref()?;
            (write.ios, device.writes, write.bytes, device.write_bytes)
        }
        RowKind::Mixed => return None,
    };
    let pieces = theirs as f64 / ours.max(1) as f64;
    let same_bytes = (theirs_bytes as f64 / ours_bytes.max(1) as f64 - 1.0).abs() <= AGREE;
    if ours < 10 || pieces < PIECES || !same_bytes {
        return None;
    }
    let largest = largest_request(&record.header.conditions.target, row);
    // The kernel does not split what fits into one request: more of them are of other processes.
    if row.block_bytes().zip(largest).is_some_and(|(block, largest)| block <= largest) {
        return None;
    }
    let size =
        row.block_bytes().map_or_else(|| "requests".to_owned(), |size| format!("{} I/Os", block(size)));
    let takes =
        largest.map(|bytes| format!(" (at most {} per request)", units::bytes(bytes))).unwrap_or_default();
    let claim = format!(
        "{size} reached {}{takes} as {} requests each: an IOPS limit counts each of them.",
        device.name,
        count(pieces),
    );
    Some(
        finding(FindingId::Splitting, [row], claim, "")
            .with("pieces_per_request", pieces)
            .with("max_request_bytes", largest),
    )
}

fn alignment(record: &RunRecord, row: &RecordRow<'_>) -> Option<Finding> {
    let devices = &record.header.conditions.target.devices;
    let physical = u64::from(devices.iter().map(|device| device.physical_block_size).max()?);
    let kind = row.kind()?;
    let is_off = |job: &fathom_record::JobRecord| {
        let offset = job.plan.io.offset.bytes().unwrap_or(0);
        // The sizes of a mix are multiples of its smallest.
        let least = job.smallest_blocks();
        let sizes = [(RowKind::Read, least.read), (RowKind::Write, least.write)];
        let used = sizes.iter().filter(|(of, _)| *of == kind || kind == RowKind::Mixed);
        used.map(|(_, size)| *size).chain([offset]).any(|bytes| !bytes.is_multiple_of(physical))
    };
    // What begins beside a block shifts every request, whatever its own offset.
    let shifted = devices.iter().find_map(|device| {
        device.start_bytes.filter(|start| !start.is_multiple_of(physical.max(1))).map(|start| (device, start))
    });
    let is_beside = shifted.is_some() || row.jobs().iter().any(is_off);
    if physical == 0 || !row.is_direct() || !is_beside {
        return None;
    }
    let writes = kind != RowKind::Read;
    let reads = row.summary.device.as_ref().filter(|_| row.has_device).map(|device| device.reads);
    let (block, does) = (
        units::bytes(physical),
        if writes {
            "each partial write needs a read of the block first"
        } else {
            "it reads more than requested"
        },
    );
    let (claim, remedy) = match shifted {
        Some((device, start)) => (
            format!(
                "{} starts at byte {}, which is not a multiple of the device's {block} blocks: {does}.",
                device.name,
                units::grouped(start)
            ),
            "Recreate the partition with its start at a multiple of 1 MiB.".to_owned(),
        ),
        None => (
            format!("I/Os are not aligned to the device's {block} blocks: {does}."),
            format!("Use a block size and an offset that are multiples of {block}."),
        ),
    };
    let severity = if writes { Severity::Warning } else { Severity::Info };
    let found = Finding { severity, ..finding(FindingId::Alignment, [row], claim, remedy) };
    Some(
        found
            .with("physical_block_size_bytes", physical)
            .with("start_bytes", shifted.map(|(_, start)| start))
            .with("device_reads", reads.filter(|_| kind == RowKind::Write)),
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

    fn with(rw: &'static str, change: fn(&mut RunRecord)) -> RunRecord {
        let mut run = record(&[TestLoad { rw, ..TestLoad::default() }]);
        change(&mut run);
        run
    }

    #[test]
    fn work_of_others() {
        check(&with("randread", |_| ()), &[]);
        let beside = |run: &mut RunRecord, reads: u64, writes: u64| {
            let counters = &mut run.tests[0].disks[0].counters;
            (counters.read_ios, counters.read_sectors) =
                (counters.read_ios + reads, counters.read_sectors + reads * 8);
            (counters.write_ios, counters.write_sectors) =
                (counters.write_ios + writes, counters.write_sectors + writes * 8);
        };
        let case = |rw, (reads, writes): (u64, u64), expected: &[&str]| {
            let mut run = with(rw, |_| ());
            beside(&mut run, reads, writes);
            check(&run, expected)
        };
        // Of 24,000 requests in 12 seconds.
        case("randread", (400, 0), &[]);
        let found = case("randread", (6000, 0), &["foreign-io"]);
        assert!(
            found[0].claim.starts_with("other processes used sdx with 500 IOPS (25 %"),
            "{}",
            found[0].claim
        );
        case("randread", (0, 600), &["foreign-io"]);
        case("randwrite", (600, 0), &["foreign-io"]);
        // A journal is ours; without a file system there is none.
        case("randwrite", (0, 6000), &["foreign-io"]);
        let mut run = with("randwrite", |run| run.header.conditions.target.kind = "directory".to_owned());
        beside(&mut run, 0, 6000);
        check(&run, &[]);
        // Reading ahead is ours too.
        let mut run = with("randread", |run| plan(run, |plan| plan.io.direct = false));
        beside(&mut run, 6000, 0);
        check(&run, &[]);
    }

    /// Requests of others are counted, whatever their size is beside ours.
    #[test]
    fn larger_requests_of_others_are_no_more_of_them() {
        let case = |sectors: u64, largest: Option<u64>, expected: f64| {
            let mut run = with("randread", |_| ());
            run.header.conditions.target.devices[0].max_request_bytes = largest;
            let counters = &mut run.tests[0].disks[0].counters;
            (counters.read_ios, counters.read_sectors) =
                (counters.read_ios + 6000, counters.read_sectors + 6000 * sectors);
            let found = check(&run, &["foreign-io"]);
            let requests = found[0].evidence["foreign_requests"].as_f64().expect("a count");
            assert!((requests / expected - 1.0).abs() < 0.02, "{sectors}, {largest:?}: {requests}");
        };
        case(8, Some(1 << 20), 6000.0);
        case(64, Some(1 << 20), 6000.0);
        case(1, Some(1 << 20), 6000.0);
        // Where ours may have been split, by the mean size: 72,000 blocks in 30,000 requests.
        case(64, None, 48_000.0 / 2.4);
    }

    #[test]
    fn work_on_another_partition() {
        let case = |others: u64, expected: &[&str]| {
            let mut run = with("randread", |_| ());
            run.header.conditions.target.devices[0].kind = "partition".to_owned();
            let mut whole = run.tests[0].disks[0].clone();
            (whole.name, whole.under) = ("sd".to_owned(), Some("sdx".to_owned()));
            whole.counters.write_ios += others;
            whole.counters.write_sectors += others * 8;
            run.tests[0].disks.push(whole);
            check(&run, expected);
        };
        case(0, &[]);
        case(2000, &["foreign-io"]);
    }

    #[test]
    fn requests_in_pieces() {
        let case = |pieces: f64, largest: u64, expected: &[&str]| {
            let mut run = with("randread", |_| {});
            run.header.conditions.target.devices[0].max_request_bytes = Some(largest);
            let counters = &mut run.tests[0].disks[0].counters;
            counters.read_ios = (counters.read_ios as f64 * pieces) as u64;
            check(&run, expected)
        };
        case(1.0, 2048, &[]);
        case(1.1, 2048, &[]);
        // Blocks that the device takes in one request are not split: others read there as well.
        case(2.0, 4096, &[]);
        let found = case(2.0, 2048, &["splitting"]);
        assert_eq!(
            found[0].claim,
            "4k I/Os reached sdx (at most 2.0 KiB per request) as 2 requests each: an IOPS limit counts each of them."
        );
    }

    #[test]
    fn requests_beside_the_blocks_of_the_device() {
        let case = |rw, bs: u64, offset: SizeSpec, expected: Option<Severity>| {
            let mut run = record(&[TestLoad { rw, bs, ..TestLoad::default() }]);
            plan(&mut run, |plan| plan.io.offset = offset);
            let found: Vec<Finding> = findings(&run, &rows(&run)[0]);
            let found = found.into_iter().find(|finding| finding.id == FindingId::Alignment);
            assert_eq!(found.map(|finding| finding.severity), expected, "{rw} {bs} {offset:?}");
        };
        case("randwrite", 4096, SizeSpec::Bytes(0), None);
        case("randwrite", 512, SizeSpec::Bytes(0), Some(Severity::Warning));
        case("randwrite", 4096, SizeSpec::Bytes(512), Some(Severity::Warning));
        case("randread", 6144, SizeSpec::Bytes(0), Some(Severity::Info));
        case("randread", 4096, SizeSpec::Percent(50), None);
        for (start, expected) in [(1 << 20, None), (2049 * 512, Some("Recreate the partition "))] {
            let mut run = record(&[TestLoad { rw: "randwrite", ..TestLoad::default() }]);
            run.header.conditions.target.devices[0].start_bytes = Some(start);
            let found =
                findings(&run, &rows(&run)[0]).into_iter().find(|finding| finding.id == FindingId::Alignment);
            let remedy = found.and_then(|finding| finding.remedy);
            assert!(remedy.as_deref().map(|text| &text[..23]) == expected, "{start}: {remedy:?}");
        }
    }
}
