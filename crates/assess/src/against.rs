//! Measures two targets in turns until the verdict on each test is clear, or one beside saved runs.
//!
//! A block is one run of each target; the order of the targets changes from block to block and from test to test (ABBA, BAAB), so
//! that a drift is in both. After set numbers of blocks each test ends whose verdict is clear: the intervals of
//! `fathom_analysis::compare` allow for these looks, so that the stored runs, read again, get the same verdicts.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use fathom_analysis::compare::figure::Deltas;
use fathom_analysis::compare::interleaved::{LOOKS, is_settled};
use fathom_analysis::compare::pairs::{Pair, pairs};
use fathom_analysis::compare::rows::matched_rows;
use fathom_analysis::compare::source::{ComparedSource, SourceRun};
use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_record::{InterleavedRecord, RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_runner::{Session, WritePermit};

use crate::bench::{BoundedTest, bounded_test, header, inspected, run_test};
use crate::compare::{source_of, suite_of};
use crate::control::{MeasurementEvent, MeasurementStep, StepObserver};
use crate::machine::{engine_rows, random};
use crate::plan::{BenchPlan, BenchSettings, Effort};
use crate::planned::PlannedTest;
use crate::simulated::{self, session_for};
use crate::suite::Suite;
use crate::target::BenchTarget;
use crate::together::{self, PlannedTarget};
use crate::working_file::{Layout, lay_out};
use crate::{AssessError, published_rates};

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

/// Measured time of a test in a block, unless another is asked for: the unit of a comparison is a run of this length.
const SLICE: Nanos = Nanos(30_000_000_000);
/// The least that an interval takes.
const MIN_BLOCKS: u64 = 2;

/// What the first target is compared with.
#[derive(Clone, Debug)]
pub enum Opponent {
    /// Another target, measured in turns with it.
    Target(PathBuf),
    /// Runs that were measured before.
    Saved(Box<ComparedSource>),
}

/// What was asked for.
#[derive(Clone, Debug)]
pub struct AgainstSettings {
    /// The tests and the first target.
    pub bench: BenchSettings,
    /// What it is compared with.
    pub opponent: Opponent,
    /// Longest time of all blocks.
    pub budget: Option<Nanos>,
    /// Smallest differences that count.
    pub deltas: Deltas,
}

/// What is going to be done.
#[derive(Clone, Debug)]
pub struct AgainstPlan {
    /// The tests on the first target and, where that is measured too, on the second one.
    pub sides: Vec<BenchPlan>,
    /// The runs that were measured before, instead of a second target.
    pub saved: Option<ComparedSource>,
    /// Longest time of all blocks; `None` = as many as the last look takes.
    pub budget: Option<Nanos>,
    /// Smallest differences that count.
    pub deltas: Deltas,
    /// What the runs of the comparison have in common.
    comparison: u64,
}

impl AgainstPlan {
    /// Plans what was asked for; looks at the targets and changes nothing.
    ///
    /// # Errors
    /// Settings contradict each other, or a target cannot be used.
    pub fn make(settings: AgainstSettings) -> Result<AgainstPlan, AssessError> {
        let AgainstSettings { bench, opponent, budget, deltas } = settings;
        check(&bench)?;
        bench.run.types.check_named()?;
        let mut sides = match &opponent {
            Opponent::Target(path) => on_targets(&bench, path)?,
            Opponent::Saved(source) => vec![beside(&bench, source)?],
        };
        let size = sides.iter().map(|side| side.size).min().unwrap_or_default();
        let count = sides[0].tests.len();
        for index in 0..count {
            let skip = sides.iter().find_map(|side| side.tests[index].skip.clone());
            sides.iter_mut().for_each(|side| side.tests[index].skip.clone_from(&skip));
        }
        sides.iter_mut().for_each(|side| side.size = size);
        let comparison =
            if sides[0].targets[0].target.is_simulated() { sides[0].seed } else { random() >> 32 };
        let saved = if let Opponent::Saved(source) = opponent { Some(*source) } else { None };
        let plan = AgainstPlan { sides, saved, budget, deltas, comparison };
        if let Some(reason) = plan.sides[0].tests.iter().find_map(|test| test.skip.clone())
            && plan.running().next().is_none()
        {
            let hint = "name tests that only read with --only, or allow writes";
            return Err(AssessError::usage(format!("every test is skipped: {reason}"), hint));
        }
        match (budget, plan.block_time()) {
            (Some(budget), Some(block)) if budget.0 < block.0 * MIN_BLOCKS => Err(AssessError::usage(
                format!(
                    "a comparison takes at least {MIN_BLOCKS} blocks of {}, and the budget is {}",
                    duration(block),
                    duration(budget)
                ),
                "use a larger --budget, a shorter --runtime, or fewer tests (--only)",
            )),
            _ => Ok(plan),
        }
    }

    fn running(&self) -> impl Iterator<Item = &PlannedTest> {
        self.sides[0].tests.iter().filter(|test| test.skip.is_none())
    }

    /// Longest time of a block of all tests; `None` where a test takes as long as it takes.
    pub fn block_time(&self) -> Option<Nanos> {
        let times = self.running().map(|test| test.most_time().map(|time| time.0));
        Some(Nanos(times.sum::<Option<u64>>()? * self.sides.len() as u64))
    }

    /// Most blocks that the budget permits.
    pub fn most_blocks(&self) -> u64 {
        let most = u64::from(LOOKS[LOOKS.len() - 1]);
        match (self.budget, self.block_time()) {
            // A single saved run gets no verdict, however often the other target is measured.
            _ if self.is_single() => 1,
            (Some(budget), Some(block)) => (budget.0 / block.0.max(1)).min(most),
            _ => most,
        }
    }

    /// Fewest blocks before a test may end.
    pub fn least_blocks(&self) -> u64 {
        u64::from(LOOKS[0]).min(self.most_blocks())
    }

    /// True where the other source is a single run.
    pub fn is_single(&self) -> bool {
        self.saved.as_ref().is_some_and(|saved| saved.runs.len() < 2)
    }

    /// True where time is virtual.
    pub fn is_simulated(&self) -> bool {
        self.sides[0].targets[0].target.is_simulated()
    }

    /// The name of each source.
    pub fn names(&self) -> Vec<String> {
        let saved = self.saved.iter().map(|saved| saved.name.clone());
        self.sides.iter().map(BenchPlan::target_name).chain(saved).collect()
    }

    /// The session that it runs on.
    pub fn session(&self) -> Session {
        session_for(self.sides.iter().flat_map(|side| &side.targets).map(|target| &target.target))
    }

    /// Both sources, with these runs of the targets.
    ///
    /// # Errors
    /// The user's own volume types cannot be read.
    pub fn sources(&self, runs: &[Vec<SourceRun>]) -> Result<Vec<ComparedSource>, AssessError> {
        let types = &self.sides[0].settings.run.types;
        let measured = self.sides.iter().zip(runs);
        let mut sources = measured
            .map(|(side, runs)| source_of(side.target_name(), runs.clone(), types))
            .collect::<Result<Vec<_>, _>>()?;
        sources.extend(self.saved.clone());
        Ok(sources)
    }
}

/// Refuses what a comparison cannot do.
fn check(bench: &BenchSettings) -> Result<(), AssessError> {
    let refuse = |reason: &str, hint: &str| Err(AssessError::usage(reason, hint));
    let expects = &bench.expectations;
    if !bench.further.is_empty() {
        return refuse("--against compares one target with another", "name one target before --against");
    }
    if bench.until_steady {
        return refuse(
            "--until-steady and --against both decide how often a test is repeated",
            "bring both targets to the steady state with --until-steady first, then compare them without it",
        );
    }
    if bench.precision.is_some() {
        return refuse(
            "--precision and --against both decide when a test ends",
            "omit --precision: --against ends a test when the interval of the ratio is clear",
        );
    }
    if !expects.lines.is_empty() || !expects.files.is_empty() {
        return refuse(
            "--expect checks one target, and --against compares two",
            "use --fail-if for a condition on the ratio, or omit --against",
        );
    }
    Ok(())
}

/// The plans on both targets.
fn on_targets(bench: &BenchSettings, other: &Path) -> Result<Vec<BenchPlan>, AssessError> {
    let engines = engine_rows();
    let mut suite = match bench.profiles.as_slice() {
        [] => Suite::load(&bench.suite, &engines)?,
        names => Suite::of_profiles(names, &engines)?,
    };
    suite.default.runtime = suite.default.runtime.max(SLICE);
    let own = &bench.run.target;
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (paths, destroy, types) = ([own.clone(), other.to_owned()], &bench.run.destroy, &bench.run.types);
    let targets = match real(own) == real(other) {
        true => {
            let target = together::inspect(&paths[..1], destroy, types)?.remove(0);
            vec![target.clone(), target]
        }
        false => together::inspect(&paths, destroy, types)?,
    };
    let seed = bench.run.seed.unwrap_or_else(|| targets[0].usual_seed());
    let mut only = bench.only.clone();
    let are_there = together::USUAL.iter().all(|id| suite.tests.iter().any(|test| test.id == *id));
    if only.is_empty() && are_there {
        only = together::USUAL.map(str::to_owned).to_vec();
    }
    let plan = |(target, path): (BenchTarget, &PathBuf)| {
        simulated::check_cache(path, bench.run.buffered)?;
        let mut settings = BenchSettings { only: only.clone(), ..bench.clone() };
        settings.run.target.clone_from(path);
        settings.run.seed = Some(seed);
        BenchPlan::of_suite(suite.clone(), vec![target], settings)
    };
    targets.into_iter().zip(&paths).map(plan).collect()
}

/// The plan on one target of the tests that `saved` runs did.
fn beside(bench: &BenchSettings, saved: &ComparedSource) -> Result<BenchPlan, AssessError> {
    let records = || saved.runs.iter().map(|run| &run.record);
    let Some(suite) = suite_of(records()) else {
        return Err(AssessError::usage(
            format!("{} has no tests that could be repeated", saved.name),
            "compare with a target, or with runs of fathom bench",
        ));
    };
    let path = &bench.run.target;
    simulated::check_cache(path, bench.run.buffered)?;
    let target = BenchTarget::inspect(path, &bench.run.destroy, &bench.run.types)?;
    let mut settings = BenchSettings { effort: Effort::Default, ..bench.clone() };
    let used = records().map(|record| record.header.size_bytes).find(|size| *size > 0);
    let fits = |size: &u64| target.size().is_none_or(|has| *size <= has);
    settings.run.size = settings.run.size.or(used.filter(fits));
    BenchPlan::of_suite(suite, vec![target], settings)
}
