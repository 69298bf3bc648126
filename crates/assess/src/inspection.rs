//! Inspects a target that holds data, before its tests: whether first accesses cost more than later ones, and whether anything
//! was ever written there.

use fathom_analysis::surface::scan::ByteRange;
use fathom_model::Nanos;
use fathom_record::{
    BlockRecord, BurstRecord, InspectionRecord, PassRecord, RunHeader, ShapeRecord, TestRecord, TestSummary,
    latency_bin_midpoint,
};
use fathom_runner::{RunObserver, Session};
use fathom_stats::Snapshot;

use crate::control::{MeasurementEvent, StepObserver};
use crate::measure::measure;
use crate::planned::{pair, seed_pair, size_word, time_word};
use crate::site::Site;
use crate::surface::SurfaceReader;
use crate::target::BenchTarget;

/// Requests in flight, and the least and most requests of a pass: one after the other, which shows latency, and as many as the
/// limits of most volumes take.
const KINDS: [(u32, u64, u64); 2] = [(1, 4, 64), (32, 128, u64::MAX)];
/// Parts of the target, one for each pair of passes.
const PARTS: u64 = 4;
/// Bytes of a request.
const BLOCK: u64 = 4096;
/// What a volume fetches at a time, at the most that is known.
const PIECE: u64 = 512 << 10;
/// Boundary that blocks are aligned to, and how far beside a block its neighbour is read: in the same piece, in another block of
/// a cache.
const ALIGNED: u64 = 64 << 10;
const BESIDE: u64 = ALIGNED / 2;
/// Longest first pass of a kind, and longest pass.
const PASS: Nanos = Nanos::from_millis(250);
const LONGEST_PASS: Nanos = Nanos::from_secs(1);
/// Rest before each, after which a limiter lets through the same: longer than twice the 100 ms for which the kernel's throttle
/// grants I/Os at a time. After 100 or 150 ms some passes take a grant more than others.
const REST: Nanos = Nanos::from_millis(250);
/// Blocks that are read one by one, this many in a row, and how long that may take.
const BLOCKS: u64 = 64;
const IN_A_ROW: usize = 8;
const BLOCKS_TIME: Nanos = Nanos::from_secs(1);
/// Blocks of random reads one at a time, bytes: no device has larger ones inside that a request must cover.
const SHAPES: [u64; 4] = [4 << 10, 8 << 10, 16 << 10, 64 << 10];
/// Times that all of them are read in turn, so that a change in between does not look like one of size.
const ROUNDS: u64 = 2;
/// Block and depth of reads in order at the beginning and at the end, which occupy what transfers data, and how much of the target
/// each such pass has to itself.
const ORDERED: (u64, u32) = (64 << 10, 4);
const ORDERED_PART: u64 = 4 << 20;
/// Reads at the beginning (false) and at the end (true), in an order that no period and no trend follows.
const ENDS: [bool; 6] = [false, true, true, false, true, false];
/// Reads that begin together, how often, and the rest before them, after which a device is idle.
const BURST: u64 = 32;
const BURSTS: u64 = 8;
const BURST_REST: Nanos = Nanos::from_millis(50);
/// Time after which no further one begins: on a slower device a limit shows without them.
const BURSTS_TIME: Nanos = Nanos::from_millis(1500);
/// Length of a pass of one shape, and the latency above which the target is too slow for more.
const SHAPE: Nanos = Nanos::from_millis(120);
const TOO_SLOW_NS: u64 = 50_000_000;
/// A pass of fewer reads has no median worth the name.
const MIN_READS: u64 = 5;
/// Usual time of everything.
pub(crate) const INSPECTION_TIME: Nanos = Nanos::from_secs(6);

/// Receives of the inspection, which is no measurement, only that nothing completes, and that this is over.
struct Stalls<'a> {
    observer: &'a mut dyn StepObserver,
    is_stalled: bool,
}

impl RunObserver for Stalls<'_> {
    fn snapshot(&mut self, snapshot: &Snapshot) {
        let was_stalled = std::mem::replace(&mut self.is_stalled, snapshot.stalled_ns > 0);
        if was_stalled || self.is_stalled {
            self.observer.snapshot(snapshot);
        }
    }
}

/// What the target of `site` shows, for the run of `header`; `None` where its content is known.
pub(crate) fn inspect(
    site: &Site,
    header: &RunHeader,
    session: &Session,
    observer: &mut dyn StepObserver,
) -> Option<InspectionRecord> {
    let has_penalty = match &site.target {
        // A test file was written just before.
        BenchTarget::Directory { .. } => return None,
        // Where it has none, passes would only use up credits.
        BenchTarget::Simulated(volume) => volume.model.first_touch.is_some(),
        BenchTarget::File { .. } | BenchTarget::BlockDevice { .. } => true,
    };
    observer.step(&MeasurementEvent::Inspecting(Box::new(header.clone())));
    let stalls = &mut Stalls { observer, is_stalled: false };
    let block_size_bytes = BLOCK.max(site.unit);
    let passes = match has_penalty {
        true => KINDS
            .iter()
            .zip(0..)
            .flat_map(|(kind, at)| passes(site, block_size_bytes, (*kind, at), session, stalls))
            .collect(),
        false => Vec::new(),
    };
    let blocks = blocks(site, block_size_bytes, session);
    let shapes = if session.is_simulated() { Vec::new() } else { shapes(site, session, stalls) };
    let is_quick = !shapes.is_empty() && !shapes.iter().any(is_too_slow);
    let bursts = if is_quick { bursts(site, block_size_bytes, session, stalls) } else { Vec::new() };
    Some(InspectionRecord { block_size_bytes, passes, shapes, bursts, blocks })
}

/// Two pairs of passes of a kind, each over a part of the target; none where they had too few requests.
fn passes(
    site: &Site,
    block: u64,
    ((depth, least, most), kind): ((u32, u64, u64), u64),
    session: &Session,
    stalls: &mut Stalls<'_>,
) -> Vec<PassRecord> {
    let part = site.size / PARTS / PIECE * PIECE;
    let mut passes: Vec<PassRecord> = Vec::new();
    for (at, is_again) in [(2 * kind, false), (2 * kind, true), (2 * kind + 1, false), (2 * kind + 1, true)] {
        let (ios, runtime) = match passes.first() {
            // Of every other piece, so that most accesses are the first of theirs.
            None => (most.min(part / PIECE / 2), PASS),
            Some(first) => (first.ios, LONGEST_PASS),
        };
        if ios < least || session.stop_handle().is_requested() {
            return Vec::new();
        }
        let offset = at * part + if is_again { BESIDE } else { 0 };
        let mut options = site.job("randread", block, depth, Some(part - 2 * BESIDE));
        options.extend([
            pair("offset", size_word(offset)),
            pair("blockalign", size_word(ALIGNED)),
            pair("io_size", size_word(ios * block)),
            pair("runtime", time_word(runtime)),
            pair("startdelay", time_word(REST)),
            // Each pair reads in one order.
            seed_pair(site.seed, at),
        ]);
        let name = "inspection";
        let test: TestRecord = measure(name.to_owned(), name.to_owned(), options, session, stalls);
        let summary = TestSummary::new(&test);
        let ios = summary.total.map_or(0, |total| total.ios);
        passes.push(PassRecord { iodepth: depth, is_again, ios, elapsed_ns: summary.measured_ns });
    }
    passes
}

/// Reads of several sizes, at random and in order, at the beginning and at the end.
fn shapes(site: &Site, session: &Session, stalls: &mut Stalls<'_>) -> Vec<ShapeRecord> {
    let at_random = |block| (block, 1, true, 0);
    let in_order = |at: u64| (BLOCK, 1, false, site.size / 2 + at * ORDERED_PART);
    let rounds = (0..ROUNDS).flat_map(|at| SHAPES.map(at_random).into_iter().chain([in_order(at)]));
    let (block, depth) = ORDERED;
    let ends = ENDS.iter().zip(0..).map(|(&is_end, at)| {
        let offset = if is_end { site.size - (at + 1) * ORDERED_PART } else { at * ORDERED_PART };
        (block, depth, false, offset)
    });
    let mut shapes: Vec<ShapeRecord> = Vec::new();
    for ((block, iodepth, is_random, offset_bytes), at) in rounds.chain(ends).zip(0..) {
        let has_room = site.size >= 4 * ENDS.len() as u64 * ORDERED_PART;
        if shapes.last().is_some_and(is_too_slow)
            || !has_room
            || session.stop_handle().is_requested()
            || !block.is_multiple_of(site.unit)
        {
            break;
        }
        let part = if is_random { site.size } else { ORDERED_PART };
        let mut options = site.job(if is_random { "randread" } else { "read" }, block, iodepth, Some(part));
        options.extend([
            pair("offset", size_word(offset_bytes)),
            pair("runtime", time_word(SHAPE)),
            seed_pair(site.seed, PARTS + at),
        ]);
        let name = "inspection";
        let test: TestRecord = measure(name.to_owned(), name.to_owned(), options, session, stalls);
        let Some(read) = test.jobs.first().map(|job| &job.measured.read).filter(|read| read.ios >= MIN_READS)
        else {
            break;
        };
        // A summary has no percentiles of so few.
        let [lat_ns_p50, lat_ns_p90] =
            [50.0, 90.0].map(|percent| read.clat.histogram.percentile(percent).unwrap_or_default());
        let (ios, elapsed_ns) = (read.ios, TestSummary::new(&test).measured_ns);
        shapes.push(ShapeRecord {
            block_size_bytes: block,
            iodepth,
            is_random,
            offset_bytes,
            ios,
            elapsed_ns,
            lat_ns_p50,
            lat_ns_p90,
        });
    }
    shapes
}

/// Time of each request, of several in flight their share.
fn is_too_slow(shape: &ShapeRecord) -> bool {
    shape.lat_ns_p50 / u64::from(shape.iodepth.max(1)) > TOO_SLOW_NS
}

/// Reads that begin together: one after the other they are served by a limiter, in groups by a device that serves so many at a time.
fn bursts(site: &Site, block: u64, session: &Session, stalls: &mut Stalls<'_>) -> Vec<BurstRecord> {
    let burst = |at: u64| {
        let mut options = site.job("randread", block, BURST as u32, None);
        options.extend([
            pair("io_size", size_word(BURST * block)),
            pair("runtime", time_word(LONGEST_PASS)),
            pair("startdelay", time_word(BURST_REST)),
            seed_pair(site.seed, 2 * PARTS + at),
        ]);
        let name = "inspection";
        let test: TestRecord = measure(name.to_owned(), name.to_owned(), options, session, stalls);
        let read = &test.jobs.first()?.measured.read;
        let each = read.clat.histogram.sparse();
        let lat_ns = each.flat_map(|(bin, count)| (0..count).map(move |_| latency_bin_midpoint(bin)));
        Some(BurstRecord { lat_ns: lat_ns.collect() }).filter(|_| read.ios == BURST)
    };
    let deadline = session.now() + BURSTS_TIME.0;
    let is_over = || session.stop_handle().is_requested() || session.now() > deadline;
    (0..BURSTS).take_while(|_| !is_over()).map_while(burst).collect()
}

/// Some blocks from all over a real target, read one by one.
fn blocks(site: &Site, block: u64, session: &Session) -> Vec<BlockRecord> {
    let is_block_device = matches!(site.target, BenchTarget::BlockDevice { .. });
    // To open it may take as long as the device does not respond.
    if session.is_simulated() || session.stop_handle().is_requested() {
        return Vec::new();
    }
    let reader = SurfaceReader::open(&site.file, site.size, is_block_device, true, block as usize);
    // Neither in the order of their offsets nor beside what the passes read.
    let step = site.size / BLOCKS / block * block;
    let span = |at: u64| ByteRange {
        offset: (at * 37 + site.seed) % BLOCKS * step + step / 2 / block * block,
        length: block,
    };
    let spans: Vec<ByteRange> = (0..BLOCKS).map(span).collect();
    let deadline = session.now() + BLOCKS_TIME.0;
    let mut found = Vec::new();
    for spans in spans.chunks(IN_A_ROW) {
        let looks = reader.read(spans.to_vec(), BLOCKS_TIME, session);
        let is_over = looks.len() < spans.len() || session.now() > deadline;
        found.extend(looks.iter().map(|look| BlockRecord { is_zero: look.is_zero, lat_ns: look.time_ns }));
        if is_over {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fathom_record::{FindingId, RunRecord};

    use super::*;
    use crate::catalogue::VolumeTypes;
    use crate::expectations::ExpectationSettings;
    use crate::plan::{BenchPlan, BenchSettings, Effort};
    use crate::site::RunSettings;

    fn measured(volume: &str, expected: &str, seed: u64) -> (RunRecord, &'static str) {
        let target = BenchTarget::inspect(Path::new(volume), &[], &VolumeTypes::default()).unwrap();
        let lines = vec![expected.to_owned()];
        let expectations = ExpectationSettings { lines, ..ExpectationSettings::default() };
        let settings = BenchSettings {
            run: RunSettings { target: volume.into(), seed: Some(seed), ..RunSettings::default() },
            suite: "standard".to_owned(),
            effort: Effort::Quick,
            only: vec!["rand-read".to_owned()],
            runtime: Some(Nanos::from_secs(10)),
            expectations,
            ..BenchSettings::default()
        };
        let plan = BenchPlan::on(vec![target], settings).unwrap();
        let record = crate::bench::run(&plan, &mut plan.session(), &mut ()).unwrap();
        let verdict = fathom_analysis::Analysis::of(&record).expectations()[0].verdict.name();
        (record, verdict)
    }

    #[test]
    fn a_first_touch_penalty_is_found_and_explains_what_it_can() {
        let base = "sim:custom?iops=1000&latency=1ms&size=40GiB";
        for (more, expected, verdict) in [
            ("", "rand-read.iops>=980", "met"),
            ("", "rand-read.iops>=1900", "missed"),
            ("&first_touch=1", "rand-read.iops>=980", "inconclusive"),
            ("&first_touch=1", "rand-read.iops>=1900", "missed"),
            // Many in flight reach the limit all the same.
            ("&first_touch=20ms", "rand-read.iops>=980", "met"),
        ] {
            for seed in 1..=8 {
                let (record, found) = measured(&format!("{base}{more}"), expected, seed);
                let has_penalty = record.findings.iter().any(|found| found.id == FindingId::FirstTouch);
                let all = &record.findings;
                assert_eq!(
                    (has_penalty, found),
                    (!more.is_empty(), verdict),
                    "{seed} {more} {expected}: {all:?}"
                );
            }
        }
    }
}
