//! What reads of different sizes, orders and places show of the device before its tests: blocks inside it that a request should cover,
//! heads that move, and an end that is slower than the beginning.

use fathom_model::units;
use fathom_record::{Finding, FindingId, RunRecord, ShapeRecord};

use crate::rows::{RecordRow, RowKind};
use crate::say::{block, finding, mebibytes, on_rows};

/// Latency of smaller blocks over that of a larger one, which they exceed on no limiter and no medium but for alignment.
const SMALLER_SLOWER: f64 = 1.3;
/// The least difference, ns: a busy machine takes less from the median.
const SLOWER_NS: u64 = 100_000;
/// A seek takes longer than this, ns; flash and networks in a data centre take less.
const SEEK_NS: u64 = 2_000_000;
/// Random reads take so many times as long as reads in order, if a head moves between them.
const IN_ORDER: u64 = 10;
/// Seeks are of different lengths, and turns of the disk begin anywhere: the 90th percentile over the median. A limiter spaces I/Os evenly.
const UNEVEN: f64 = 1.2;
/// A head gains at most this factor from sorting a queue.
const SORTED: f64 = 4.0;
/// Queue depth from which on parallel service would show.
const DEEP: f64 = 8.0;
/// Rate at one end over that at the other, and how many times as far apart ends are than passes at one of them, on a
/// logarithmic scale.
const FASTER: f64 = 1.25;
const APART: f64 = 3.0;

/// The shapes of a record; none where there was no inspection.
fn shapes(record: &RunRecord) -> &[ShapeRecord] {
    record.header.conditions.target.inspection.as_ref().map_or(&[], |inspection| &inspection.shapes)
}

/// Findings for all rows that they concern.
pub(crate) fn findings(record: &RunRecord, rows: &[RecordRow<'_>]) -> Vec<Finding> {
    let shapes = shapes(record);
    let small =
        |size: u64| rows.iter().filter(move |row| row.block_bytes().is_some_and(|block| block < size));
    let aligned = alignment(shapes).map(|(size, found)| on_rows(found, small(size)));
    let random = rows.iter().filter(|row| row.is_random());
    let sought = seeks(shapes, rows).map(|found| on_rows(found, random));
    let placed = place(shapes).map(|found| on_rows(found, rows.iter().filter(|row| !row.is_random())));
    [aligned, sought, placed].into_iter().flatten().filter(|found| !found.tests.is_empty()).collect()
}

/// True of rates that a moving head makes: plateaus of them are no limits.
pub(crate) fn has_head(record: &RunRecord, rows: &[RecordRow<'_>]) -> bool {
    seeks(shapes(record), rows).is_some()
}

/// The rows whose rates are comparable: if the rate follows the place, those that visit all places alike.
pub(crate) fn comparable<'a>(record: &RunRecord, rows: &[RecordRow<'a>]) -> Vec<RecordRow<'a>> {
    let follows_place = place(shapes(record)).is_some();
    rows.iter().filter(|row| !follows_place || row.is_random()).cloned().collect()
}

fn of_block(shapes: &[ShapeRecord], is_wanted: impl Fn(u64) -> bool) -> impl Iterator<Item = u64> {
    let random = shapes.iter().filter(move |shape| shape.is_random && is_wanted(shape.block_size_bytes));
    random.map(|shape| shape.lat_ns_p50)
}

/// The smallest blocks that are read faster than all smaller ones.
fn alignment(shapes: &[ShapeRecord]) -> Option<(u64, Finding)> {
    let mut sizes: Vec<u64> =
        shapes.iter().filter(|shape| shape.is_random).map(|shape| shape.block_size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let is_faster = |&size: &u64| {
        let (smaller, own) =
            (of_block(shapes, |block| block < size).min()?, of_block(shapes, |block| block == size).max()?);
        let is_slower = smaller as f64 >= SMALLER_SLOWER * own as f64 && smaller >= own + SLOWER_NS;
        is_slower.then_some((size, smaller, own))
    };
    let (size, smaller, own) = sizes.iter().find_map(is_faster)?;
    let claim = format!(
        "reads of less than {} take {}, aligned reads of {} only {}: the device works in blocks of that size.",
        units::bytes(size),
        units::latency(smaller),
        units::bytes(size),
        units::latency(own),
    );
    let remedy = format!("Use blocks of {} or multiples of it, at multiples of it.", block(size));
    let found = finding(FindingId::Alignment, [], claim, remedy);
    let found = found.with("block_size_bytes", size).with("lat_ns", own).with("unaligned_lat_ns", smaller);
    Some((size, found))
}

/// Random reads take milliseconds, differ from one to the next, and hardly gain from a queue, while reads in order take a fraction.
fn seeks(shapes: &[ShapeRecord], rows: &[RecordRow<'_>]) -> Option<Finding> {
    let smallest = shapes.iter().map(|shape| shape.block_size_bytes).min()?;
    let alone = |is_random: bool| {
        let of_kind = move |shape: &&ShapeRecord| {
            shape.block_size_bytes == smallest && shape.iodepth == 1 && shape.is_random == is_random
        };
        shapes.iter().filter(of_kind)
    };
    let random_ns = alone(true).map(|shape| shape.lat_ns_p50).min()?;
    let ordered_ns = alone(false).map(|shape| shape.lat_ns_p50).max()?;
    let is_uneven = alone(true).all(|shape| shape.lat_ns_p90 as f64 >= UNEVEN * shape.lat_ns_p50 as f64);
    let deep = rows.iter().filter(|row| {
        row.kind() == Some(RowKind::Read)
            && row.is_random()
            && row.mean_queue_depth() >= DEEP
            && row.block_bytes() == Some(smallest)
    });
    let deep_iops = deep.map(RecordRow::iops).max_by(f64::total_cmp)?;
    let is_serial = deep_iops <= SORTED * 1e9 / random_ns.max(1) as f64;
    if random_ns < SEEK_NS || random_ns < IN_ORDER * ordered_ns || !is_uneven || !is_serial {
        return None;
    }
    let transfer = rows.iter().filter(|row| row.kind() == Some(RowKind::Read) && !row.is_random());
    let bytes_per_second = transfer.map(RecordRow::bytes_per_second).max_by(f64::total_cmp);
    let in_order = bytes_per_second.map_or_else(String::new, |rate| format!(" ({})", mebibytes(rate)));
    let claim = format!(
        "a random read takes {} and one in order {}{in_order}, and a queue hardly helps: the disk moves its head for each random I/O.",
        units::latency(random_ns),
        units::latency(ordered_ns),
    );
    let remedy = "Use large or sequential I/O, or a disk without moving parts.";
    let found = finding(FindingId::Seeks, [], claim, remedy);
    let found = found.with("random_lat_ns", random_ns).with("sequential_lat_ns", ordered_ns);
    Some(found.with("bytes_per_second", bytes_per_second))
}

/// Reads in order are faster at one end than at the other, by more than passes at one of them differ.
fn place(shapes: &[ShapeRecord]) -> Option<Finding> {
    let ordered = || shapes.iter().filter(|shape| !shape.is_random && shape.iodepth > 1 && shape.ios > 0);
    let middle = ordered().map(|shape| shape.offset_bytes).max()? / 2;
    let rates = |is_end: bool| -> Vec<f64> {
        let of_end = ordered().filter(|shape| (shape.offset_bytes > middle) == is_end);
        // By the median latency (Little), which a pause or a busy client does not change.
        let bytes = |shape: &ShapeRecord| (u64::from(shape.iodepth) * shape.block_size_bytes) as f64;
        of_end.map(|shape| bytes(shape) * 1e9 / shape.lat_ns_p50.max(1) as f64).collect()
    };
    let range = |rates: &[f64]| {
        rates.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)))
    };
    let (begin, end) = (rates(false), rates(true));
    let ((begin_low, begin_high), (end_low, end_high)) = (range(&begin), range(&end));
    let gap = (begin_low / end_high).max(end_low / begin_high);
    let within = (begin_high / begin_low).max(end_high / end_low);
    if begin.len() < 3 || end.len() < 3 || gap < FASTER || gap.ln() < APART * within.ln() {
        return None;
    }
    let mean = |rates: &[f64]| fathom_stats::sample::mean(rates);
    let claim = format!(
        "reads in order reach {} at the beginning of the target and {} at its end.",
        mebibytes(mean(&begin)),
        mebibytes(mean(&end)),
    );
    let remedy = "Map the target: `fathom surface` shows the rate at each place.";
    let found = finding(FindingId::RateFollowsPlace, [], claim, remedy);
    Some(found.with("begin_bytes_per_second", mean(&begin)).with("end_bytes_per_second", mean(&end)))
}

#[cfg(test)]
mod tests {
    use fathom_record::InspectionRecord;

    use super::*;
    use crate::fixture::{TestLoad, ids, record};
    use crate::rows::rows;

    /// Latencies by block in µs, of reads in order of 4 KiB, and MB/s at the beginning and at the end.
    struct Device {
        random_us: [u64; 4],
        in_order_us: u64,
        ends: [u64; 6],
    }

    const PLAIN: Device = Device { random_us: [400, 410, 420, 500], in_order_us: 400, ends: [90; 6] };

    fn check(device: &Device, deep_iops: f64, expected: &[&str]) {
        let shape = |block_kib: u64, iodepth, is_random, offset_bytes, lat_us: u64, p90: u64| ShapeRecord {
            block_size_bytes: block_kib << 10,
            iodepth,
            is_random,
            offset_bytes,
            ios: 100,
            elapsed_ns: lat_us * 100_000,
            lat_ns_p50: lat_us * 1000,
            lat_ns_p90: lat_us * p90 * 10,
        };
        let mut shapes = Vec::new();
        for _ in 0..2 {
            let sizes = [4, 8, 16, 64].into_iter().zip(device.random_us);
            let p90 = if deep_iops < 1000.0 { 140 } else { 101 };
            shapes.extend(sizes.map(|(block, us)| shape(block, 1, true, 0, us, p90)));
            shapes.push(shape(4, 1, false, 1 << 28, device.in_order_us, 101));
        }
        let offsets = [0, 9 << 26, 8 << 26, 1 << 22, 7 << 26, 2 << 22];
        shapes.extend(
            device.ends.iter().zip(offsets).map(|(rate, at)| shape(64, 4, false, at, 4 * 65_536 / rate, 101)),
        );
        let loads = [
            TestLoad { id: "rand", depth: 64, iops: deep_iops, ..TestLoad::default() },
            TestLoad { id: "seq", rw: "read", bs: 1 << 20, depth: 32, iops: 100.0, ..TestLoad::default() },
        ];
        let mut run = record(&loads);
        run.header.conditions.target.inspection = Some(InspectionRecord { shapes, ..Default::default() });
        assert_eq!(ids(&findings(&run, &rows(&run))), expected);
    }

    #[test]
    fn sizes_orders_and_places_show_what_the_device_is() {
        let check = |device: Device, deep_iops, expected| check(&device, deep_iops, expected);
        check(PLAIN, 20_000.0, &[]);
        check(Device { random_us: [2400, 410, 420, 500], ..PLAIN }, 20_000.0, &["alignment"]);
        check(Device { random_us: [2400, 2410, 420, 500], ..PLAIN }, 20_000.0, &["alignment"]);
        check(Device { random_us: [480, 410, 420, 500], ..PLAIN }, 20_000.0, &[]);
        let head = || Device { random_us: [6000, 6000, 6100, 6500], in_order_us: 60, ..PLAIN };
        check(head(), 165.0, &["seeks"]);
        // A volume that reads ahead and serves many random reads at a time, and limits of both orders.
        check(head(), 20_000.0, &[]);
        check(Device { in_order_us: 6000, ..head() }, 165.0, &[]);
        let ends = |ends| Device { ends, ..PLAIN };
        check(ends([90, 36, 37, 91, 35, 88]), 20_000.0, &["rate-follows-place"]);
        check(ends([36, 90, 91, 37, 88, 35]), 20_000.0, &["rate-follows-place"]);
        // A rate that falls, and one that varies.
        check(ends([90, 88, 36, 37, 36, 36]), 20_000.0, &[]);
        check(ends([90, 36, 60, 61, 35, 88]), 20_000.0, &[]);
    }
}
