//! Measures two targets in turns until the verdict on each test is clear, or one beside saved runs.
//!
//! A block is one run of each target; the order of the targets changes from block to block and from test to test (ABBA, BAAB), so
//! that a drift is in both. After set numbers of blocks each test ends whose verdict is clear: the intervals of
//! `fathom_analysis::compare` allow for these looks, so that the stored runs, read again, get the same verdicts.

mod plan;

pub use plan::{AgainstPlan, AgainstSettings, Opponent};

use fathom_analysis::compare::interleaved::{LOOKS, is_settled};
use fathom_analysis::compare::pairs::{Pair, pairs};
use fathom_analysis::compare::rows::matched_rows;
use fathom_analysis::compare::source::SourceRun;
use fathom_record::{InterleavedRecord, RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_runner::{Session, WritePermit};

use crate::AssessError;
use crate::bench::{BoundedTest, bounded_test, header, inspected, run_test};
use crate::control::{MeasurementEvent, MeasurementStep, StepObserver};
use crate::plan::BenchPlan;
use crate::published_rates;
use crate::together::PlannedTarget;
use crate::working_file::{Layout, lay_out};
use plan::MIN_BLOCKS;

/// One target while it is measured.
struct Lane<'a> {
    plan: &'a BenchPlan,
    header: RunHeader,
    /// The run of the current block, once it has begun.
    run: Option<RunRecord>,
    runs: Vec<SourceRun>,
}

impl Lane<'_> {
    /// The run of this block, which begins with its first test.
    fn begin(&mut self, place: &InterleavedRecord, session: &Session, observer: &mut dyn StepObserver) {
        if self.run.is_some() {
            return;
        }
        let mut header = RunHeader { interleaved: Some(place.clone()), ..self.header.clone() };
        if !session.is_simulated() {
            header.started_unix_ms = fathom_sys::clock::unix_ms();
        }
        observer.step(&MeasurementEvent::Begun(Box::new(header.clone())));
        self.run = Some(RunRecord { status: TestStatus::Complete, header, ..RunRecord::default() });
    }

    fn add(&mut self, mut test: TestRecord, observer: &mut dyn StepObserver) {
        let Some(run) = &mut self.run else { return };
        published_rates::look_up(&run.header, &self.plan.settings.run, &mut test);
        observer.step(&MeasurementEvent::StepEnded(Box::new(test.clone())));
        run.tests.push(test);
    }

    /// Ends the run of this block, if it has begun.
    fn end(&mut self, stopped: Option<String>, observer: &mut dyn StepObserver) {
        let Some(mut run) = self.run.take() else { return };
        if stopped.is_some() {
            run.status = TestStatus::Incomplete;
            run.header.interrupted = stopped;
        } else if run.tests.iter().any(|test| test.status == TestStatus::Failed) {
            run.status = TestStatus::Failed;
        }
        run.findings = fathom_analysis::Analysis::of(&run).findings();
        crate::remedies::name_types(&mut run, &self.plan.settings.run.types);
        observer.step(&MeasurementEvent::RunEnded(Box::new(run.clone())));
        self.runs.push(SourceRun { origin: format!("block {}", self.runs.len() + 1), record: run });
    }
}

/// A test that has not ended.
#[derive(Clone, Debug)]
struct OpenTest {
    index: usize,
    /// As it runs on each target.
    sides: Vec<BoundedTest>,
}

/// Runs `plan` on `session`. The observer receives each run as it ends.
///
/// # Errors
/// A test file could not be made or laid out; nothing has been measured then.
pub fn run(
    plan: &AgainstPlan,
    session: &mut Session,
    observer: &mut dyn StepObserver,
) -> Result<(), AssessError> {
    session.set_permit(WritePermit::own(&plan.sides[0].settings.run.destroy));
    let mut lanes = begin(plan, session, observer)?;
    let size = lanes.iter().map(|lane| lane.header.size_bytes).min().unwrap_or_default();
    for lane in &mut lanes {
        lane.header.size_bytes = size;
        let commands = lane.plan.tests.iter().map(|test| lane.plan.fio_command(test, size) + "\n");
        lane.header.job_text = commands.collect();
    }
    let bound = |index: usize| {
        let one = |side: &BenchPlan| BoundedTest { test: side.tests[index].clone(), note: None };
        OpenTest { index, sides: plan.sides.iter().map(one).collect() }
    };
    let running = (0..plan.sides[0].tests.len()).filter(|&index| plan.sides[0].tests[index].skip.is_none());
    let mut open: Vec<OpenTest> = running.map(bound).collect();
    let (began, mut number, mut expected) = (session.now(), 0, plan.least_blocks());
    for block in 0..plan.most_blocks() {
        let spent_ns = session.now() - began;
        let next_ns = spent_ns.checked_div(block).unwrap_or(0);
        // Each block takes a little longer than planned, which is not held against the last one.
        let is_spent = plan.budget.is_some_and(|budget| spent_ns + next_ns > budget.0 + budget.0 / 50);
        if open.is_empty() || session.stop_handle().is_requested() || (is_spent && block >= MIN_BLOCKS) {
            break;
        }
        let of = number + open.len() * lanes.len() * (expected.saturating_sub(block)) as usize;
        let at = BlockStart { block, size, began, number, of };
        measure_block(plan, &at, &mut lanes, &mut open, session, observer);
        number += open.len() * lanes.len();
        let blocks = block as u32 + 1;
        if LOOKS.contains(&blocks) {
            let pairs = judged(plan, &lanes)?;
            let is_open = |test: &OpenTest| {
                let id = &plan.sides[0].tests[test.index].id;
                !is_settled(&pairs, id, plan.deltas)
            };
            open.retain(is_open);
            expected = expected_blocks(plan, &pairs, blocks);
        }
    }
    Ok(())
}

/// Where a block begins.
struct BlockStart {
    block: u64,
    /// Bytes of the targets that are used.
    size: u64,
    /// When the first block began, ns of the session's clock.
    began: u64,
    /// Measurements before it, and how many there will probably be.
    number: usize,
    of: usize,
}

/// Measures each open test on each target, and ends the runs of the block.
fn measure_block(
    plan: &AgainstPlan,
    at: &BlockStart,
    lanes: &mut [Lane<'_>],
    open: &mut [OpenTest],
    session: &Session,
    observer: &mut dyn StepObserver,
) {
    let (comparison, block) = (plan.comparison, at.block as u32);
    let place = InterleavedRecord { comparison, block, looks: LOOKS.to_vec() };
    let mut number = at.number;
    for (place_of_test, test) in open.iter_mut().enumerate() {
        if block == 0 {
            bound_alike(test, lanes, at.size, session);
        }
        let mut order: Vec<usize> = (0..lanes.len()).collect();
        if (block as usize + place_of_test) % 2 == 1 {
            order.reverse();
        }
        for side in order.into_iter().filter(|_| !session.stop_handle().is_requested()) {
            number += 1;
            let lane = &mut lanes[side];
            observer.step(&MeasurementEvent::Lane(side));
            lane.begin(&place, session, observer);
            let BoundedTest { test, note } = &test.sides[side];
            let test = BoundedTest { test: test.repetition(block as usize), note: note.clone() };
            observer.step(&MeasurementEvent::StepBegun(MeasurementStep {
                id: test.test.id.clone(),
                title: format!("block {} {}", block + 1, lane.plan.target_name()),
                number,
                of: Some(at.of.max(number)),
                spent_ns: session.now() - at.began,
            }));
            let measured = run_test(lane.plan, &test, at.size, session, observer);
            lane.add(measured, observer);
        }
    }
    for (side, lane) in lanes.iter_mut().enumerate() {
        observer.step(&MeasurementEvent::Lane(side));
        lane.end(session.stop_handle().reason(), observer);
    }
}

/// The targets, ready to be measured.
fn begin<'a>(
    plan: &'a AgainstPlan,
    session: &mut Session,
    observer: &mut dyn StepObserver,
) -> Result<Vec<Lane<'a>>, AssessError> {
    let mut lanes: Vec<Lane<'a>> = Vec::new();
    for side in &plan.sides {
        let mut header = header(side, session);
        let PlannedTarget { target, file, .. } = &side.targets[0];
        let known = lanes.iter().find(|lane| lane.plan.targets[0].file == *file);
        header.size_bytes = match known {
            Some(same) => same.header.size_bytes,
            None => {
                let direct = !side.settings.run.buffered;
                let layout = Layout { target, file, size: side.size, direct, limit: side.cost.layout_time };
                lay_out(&layout, session, observer, &mut header.notes)?
            }
        };
        header.conditions.target.inspection = inspected(side, &header, session, observer)?;
        lanes.push(Lane { plan: side, header, run: None, runs: Vec::new() });
    }
    Ok(lanes)
}

/// Both targets get the smaller of the depths that they complete in time, so that they do the same work.
fn bound_alike(test: &mut OpenTest, lanes: &[Lane<'_>], size: u64, session: &Session) {
    let bounded: Vec<BoundedTest> = lanes
        .iter()
        .map(|lane| {
            let measured = lane.run.as_ref().map(|run| run.tests.as_slice()).unwrap_or_default();
            bounded_test(lane.plan, &lane.plan.tests[test.index], size, measured, session)
        })
        .collect();
    let slowest = bounded.iter().min_by_key(|bounded| bounded.test.depth().unwrap_or(u64::MAX));
    let Some((depth, note)) = slowest.and_then(|slowest| Some((slowest.test.depth()?, slowest.note.clone())))
    else {
        return;
    };
    for (side, lane) in test.sides.iter_mut().zip(lanes) {
        *side = BoundedTest { test: lane.plan.tests[test.index].with_depth(depth), note: note.clone() };
    }
}

fn judged(plan: &AgainstPlan, lanes: &[Lane<'_>]) -> Result<Vec<Pair>, AssessError> {
    let runs: Vec<Vec<SourceRun>> = lanes.iter().map(|lane| lane.runs.clone()).collect();
    let sources = plan.sources(&runs)?;
    Ok(pairs(&matched_rows(&sources), 0, plan.deltas))
}

/// The blocks after which the last open test will probably end.
fn expected_blocks(plan: &AgainstPlan, pairs: &[Pair], blocks: u32) -> u64 {
    let more = pairs.iter().filter(|pair| pair.figure.is_rate()).filter_map(|pair| pair.more_runs).max();
    let needed = blocks + more.unwrap_or(1);
    let look = LOOKS.into_iter().find(|look| *look >= needed && *look > blocks);
    look.map_or(plan.most_blocks(), u64::from).min(plan.most_blocks())
}

#[cfg(test)]
mod tests;
