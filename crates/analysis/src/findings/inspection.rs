//! What the target showed before its tests: first accesses that cost more than later ones, and blocks that were never
//! written.

use fathom_model::units;
use fathom_record::{BlockRecord, Finding, FindingId, InspectionRecord, PassRecord, RunRecord};
use fathom_stats::sample::{mean, upper_median};

use super::passes;
use crate::rows::{RecordRow, RowKind};
use crate::say::{count, finding, on_rows, percent};

/// Rate of later accesses over that of first ones from which on they differ.
const SLOWER: f64 = 1.25;
/// How many times as far apart as passes of one kind the two kinds must be, on a logarithmic scale: the few quick reads of a
/// pass may take twice as long as those of another, and still a tenth of what first accesses take.
const APART: f64 = 3.0;
/// What each first pass must take longer than each later one, ns: passes of a fast device are as short as what a busy machine takes
/// from one of them.
const LONGER_NS: u64 = 10_000_000;
/// Share of zero blocks that makes a part of a target.
const PART: f64 = 0.1;
/// Share from which on the whole of it counts.
const WHOLE: f64 = 0.95;
/// Median of other blocks over that of zero ones from which on zeros are not read from the medium.
const FASTER: f64 = 1.5;
/// Blocks of a kind whose median counts.
const MIN_BLOCKS: usize = 5;

/// Findings for all rows that read.
pub(crate) fn findings(record: &RunRecord, rows: &[RecordRow<'_>]) -> Vec<Finding> {
    let Some(inspection) = &record.header.conditions.target.inspection else { return Vec::new() };
    let reads = |row: &&RecordRow<'_>| matches!(row.kind(), Some(RowKind::Read | RowKind::Mixed));
    let rows: Vec<&RecordRow<'_>> = rows.iter().filter(reads).collect();
    // The passes of a row tell more than the inspection.
    let is_own = |row: &&RecordRow<'_>| passes::findings(record, row).is_none();
    let touched = rows.iter().copied().filter(is_own).collect::<Vec<_>>();
    let found = [(first_touch(inspection), touched), (unwritten(inspection), rows)];
    let with_rows = found.into_iter().filter(|(_, rows)| !rows.is_empty());
    with_rows.filter_map(|(found, rows)| Some(on_rows(found?, rows))).collect()
}

/// First accesses were slower in each pair of passes of one depth, by more than passes of one kind differ; the depth at which
/// they were so most.
fn first_touch(inspection: &InspectionRecord) -> Option<Finding> {
    let of_depth = |passes: &[PassRecord]| slower(passes).map(|rates| (passes[0].iodepth, rates));
    let found = inspection.passes.chunk_by(|one, next| one.iodepth == next.iodepth).filter_map(of_depth);
    let times = |(first, again): (f64, f64)| again / first;
    let (depth, rates) = found.max_by(|one, other| times(one.1).total_cmp(&times(other.1)))?;
    let claim = format!(
        "first accesses to blocks reached {} IOPS, later ones {} at QD {depth}: first-touch penalty (a volume created \
         from a snapshot), or a cache.",
        count(rates.0),
        count(rates.1),
    );
    let found = finding(FindingId::FirstTouch, [], claim, passes::TOUCH);
    Some(
        found
            .with("iodepth", depth)
            .with("first_iops", rates.0)
            .with("again_iops", rates.1)
            .with("times_slower", times(rates)),
    )
}

/// Mean rates of first and of later accesses, where the first were slower.
fn slower(passes: &[PassRecord]) -> Option<(f64, f64)> {
    let of_kind =
        |is_again: bool| passes.iter().filter(move |pass| pass.is_again == is_again && pass.ios > 0);
    let rates = |is_again: bool| -> Vec<f64> {
        of_kind(is_again).map(|pass| pass.ios as f64 * 1e9 / pass.elapsed_ns.max(1) as f64).collect()
    };
    let (first, again) = (rates(false), rates(true));
    let least = |rates: &[f64]| rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    let spread = |rates: &[f64]| (most(rates) / least(rates)).ln();
    let within = spread(&first).max(spread(&again));
    let means = (mean(&first), mean(&again));
    let is_slower = least(&again) >= SLOWER * most(&first) && (means.1 / means.0).ln() >= APART * within;
    let times = |is_again: bool| of_kind(is_again).map(|pass| pass.elapsed_ns);
    let is_longer = times(false).min() >= times(true).max().map(|longest| longest + LONGER_NS);
    (first.len() >= 2 && again.len() >= 2 && is_slower && is_longer).then_some(means)
}

/// Blocks of zeros: all of them, or those that are read faster than the others.
fn unwritten(inspection: &InspectionRecord) -> Option<Finding> {
    let blocks = &inspection.blocks;
    let zero = blocks.iter().filter(|block| block.is_zero).count();
    let share = zero as f64 / blocks.len().max(1) as f64;
    let [zero_ns, other_ns] = [true, false].map(|is_zero| median(blocks, is_zero));
    let is_faster = zero_ns.zip(other_ns).is_some_and(|(zero, other)| other as f64 >= FASTER * zero as f64);
    let why = match share {
        share if zero >= MIN_BLOCKS && share >= WHOLE => "if nothing was ever written there,",
        share if share >= PART && is_faster => "they are read faster than data, so",
        _ => return None,
    };
    let claim = format!(
        "{} of {} blocks read for inspection are zeros: {why} these figures may not be those of the medium.",
        percent(share),
        units::grouped(blocks.len() as u64),
    );
    let remedy = "Write it once before measuring reads: `fathom prepare --fill`.";
    let found = finding(FindingId::Unwritten, [], claim, remedy);
    Some(found.with("zero_fraction", share).with("zero_p50_ns", zero_ns).with("other_p50_ns", other_ns))
}

/// Median latency of the blocks of a kind, ns; `None` where there are few.
fn median(blocks: &[BlockRecord], is_zero: bool) -> Option<u64> {
    let times = || blocks.iter().filter(|block| block.is_zero == is_zero).map(|block| block.lat_ns);
    upper_median(times()).filter(|_| times().count() >= MIN_BLOCKS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, record};
    use crate::rows::rows;

    fn told(inspection: InspectionRecord) -> Vec<Finding> {
        let loads = [("r", "randread"), ("w", "randwrite")];
        let mut run = record(&loads.map(|(id, rw)| TestLoad { id, rw, ..TestLoad::default() }));
        run.header.conditions.target.inspection = Some(inspection);
        let found = findings(&run, &rows(&run));
        // Writes are not judged by reads.
        assert!(found.iter().all(|found| found.tests == ["r"]), "{found:?}");
        found
    }

    #[test]
    fn first_accesses_that_cost_more_are_reported_where_both_pairs_agree() {
        let check = |rates: [u64; 4], expected: Option<f64>| {
            let passes = rates.iter().enumerate().map(|(at, &rate)| PassRecord {
                iodepth: 32,
                is_again: at % 2 == 1,
                ios: 500,
                elapsed_ns: 500 * 1_000_000_000 / rate,
            });
            let found = told(InspectionRecord { passes: passes.collect(), ..Default::default() });
            let times = found.first().map(|found| {
                assert_eq!(found.id, FindingId::FirstTouch);
                found.evidence["times_slower"].as_f64().unwrap()
            });
            assert_eq!(times.map(|times| (times * 10.0).round() / 10.0), expected, "{rates:?}");
        };
        check([1000, 1000, 1000, 1000], None);
        check([500, 1000, 500, 1000], Some(2.0));
        check([520, 980, 500, 1010], Some(2.0));
        check([1000, 1200, 1000, 1200], None);
        // Once only, or a rate that rises or falls by itself.
        check([500, 1000, 1000, 1000], None);
        check([500, 700, 900, 1200], None);
        check([3000, 1500, 1500, 1500], None);
        // As restless as that, a difference may be chance.
        check([500, 900, 700, 1300], None);
        // The few quick reads vary, and take a tenth of the time all the same.
        check([47, 600, 48, 1000], Some(16.8));
        assert_eq!(told(InspectionRecord::default()), []);
    }

    #[test]
    fn first_accesses_are_not_judged_by_passes_as_short_as_a_disturbance() {
        let check = |milliseconds: [u64; 4], is_found: bool| {
            let passes = milliseconds.iter().enumerate().map(|(at, ms)| PassRecord {
                iodepth: 1,
                is_again: at % 2 == 1,
                ios: 64,
                elapsed_ns: ms * 1_000_000,
            });
            let found = told(InspectionRecord { passes: passes.collect(), ..Default::default() });
            assert_eq!(!found.is_empty(), is_found, "{milliseconds:?}");
        };
        check([8, 3, 8, 3], false);
        check([40, 28, 40, 31], false);
        check([40, 28, 42, 30], true);
    }

    #[test]
    fn blocks_that_were_never_written_are_reported() {
        let check = |zeros: u64, (zero_ns, other_ns): (u64, u64), expected: bool| {
            let blocks = (0..64).map(|at| BlockRecord {
                is_zero: at < zeros,
                lat_ns: if at < zeros { zero_ns } else { other_ns },
            });
            let found = told(InspectionRecord { blocks: blocks.collect(), ..Default::default() });
            assert_eq!(found.len(), usize::from(expected), "{zeros} {zero_ns} {other_ns}: {found:?}");
        };
        check(0, (100, 100), false);
        check(64, (100, 100), true);
        check(62, (100, 100), true);
        check(32, (100, 110), false);
        check(32, (100, 200), true);
        check(4, (100, 200), false);
    }
}
