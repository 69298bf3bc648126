//! What a comparison of two targets is going to do, before anything is touched.

use std::path::{Path, PathBuf};

use fathom_analysis::compare::figure::Deltas;
use fathom_analysis::compare::interleaved::LOOKS;
use fathom_analysis::compare::source::{ComparedSource, SourceRun};
use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_runner::Session;

use crate::AssessError;
use crate::compare::{source_of, suite_of};
use crate::machine::{engine_rows, random};
use crate::plan::{BenchPlan, BenchSettings, Effort};
use crate::planned::PlannedTest;
use crate::simulated::{self, session_for};
use crate::suite::Suite;
use crate::target::BenchTarget;
use crate::together;

/// Measured time of a test in a block, unless another is asked for: the unit of a comparison is a run of this length.
const SLICE: Nanos = Nanos(30_000_000_000);
/// The least that an interval takes.
pub(super) const MIN_BLOCKS: u64 = 2;

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
    pub(super) comparison: u64,
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
