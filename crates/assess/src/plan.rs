//! What `bench` is going to do and what that costs, before anything is touched.

use std::path::{Path, PathBuf};

use fathom_analysis::steady;
use fathom_model::{Nanos, RunPlan};
use fathom_options::{EngineRow, OptionError, Section};
use fathom_record::{ExpectationRecord, JobRecord, PlanRecord, RunHeader, RunRecord, TestMeta, TestRecord};
use fathom_runner::Session;
use serde::Serialize;

use crate::expectations::{self, CLASS, ExpectationSettings, PlannedExpectations, Tests};
use crate::inspection::INSPECTION_TIME;
use crate::machine::{engine_rows, host_facts};
use crate::planned::{PlannedTest, engine_for, planned, replace_engine};
use crate::precision::{self, PrecisionSettings};
use crate::site::RunSettings;
use crate::site::{remarks, size_on};
use crate::suite::{Profile, Suite, SuiteTest, section_of};
use crate::target::BenchTarget;
use crate::together::{self, PlannedTarget};
use crate::traffic::{self, PlannedTraffic, TestFile};
use crate::working_file::WantedSize;
use crate::{AssessError, simulated};

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct BenchSettings {
    /// What every run is asked for.
    pub run: RunSettings,
    /// Further targets: each test runs on each by itself, then on all at once.
    pub further: Vec<PathBuf>,
    /// Name or path of the suite.
    pub suite: String,
    /// Names of profiles that are run instead of a suite.
    pub profiles: Vec<String>,
    /// How long it may take.
    pub effort: Effort,
    /// Measured time of each test instead of the suite's.
    pub runtime: Option<Nanos>,
    /// Each test goes on in rounds until it is steady; the measured time is that of a round then.
    pub until_steady: bool,
    /// Each test ends as soon as its rate is known so precisely; the measured time is the longest then.
    pub precision: Option<PrecisionSettings>,
    /// Time for the rounds of each test; `None` = as many as the rule allows.
    pub budget: Option<Nanos>,
    /// Only these tests; empty = all.
    pub only: Vec<String>,
    /// What the results are held against.
    pub expectations: ExpectationSettings,
}

/// `--quick` takes no longer than this on any target.
pub(crate) const QUICK_LIMIT: Nanos = Nanos::from_secs(75);
/// Time to begin and end a run that is no test.
const QUICK_RESERVE: Nanos = Nanos::from_secs(4);

/// Which profile of the suite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Under a minute.
    Quick,
    /// About three minutes.
    #[default]
    Default,
    /// Two minutes per test.
    Thorough,
}

/// What a plan costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlanCost {
    /// Longest time, layout included; `None` where something takes as long as it takes.
    #[serde(rename = "time_ns")]
    pub time: Option<Nanos>,
    /// Longest time of the tests alone; `None` where one takes as long as it takes.
    #[serde(rename = "tests_time_ns")]
    pub tests_time: Option<Nanos>,
    /// Shortest time of the tests alone, where they may end early.
    #[serde(rename = "least_time_ns")]
    pub least_time: Option<Nanos>,
    /// Bytes written to lay the working file out.
    pub layout_bytes: u64,
    /// Longest time of the layout; `None` = as long as it takes.
    #[serde(rename = "layout_time_ns")]
    pub layout_time: Option<Nanos>,
}

/// What is going to be done.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// The suite.
    pub suite: Suite,
    /// The targets, at least one.
    pub targets: Vec<PlannedTarget>,
    /// Bytes of each that are used.
    pub size: u64,
    /// In the order they run.
    pub tests: Vec<PlannedTest>,
    /// What they are expected to reach.
    pub expectations: Vec<ExpectationRecord>,
    /// What it costs.
    pub cost: PlanCost,
    /// What it moves, and the burst credits that it uses.
    pub traffic: PlannedTraffic,
    /// Things a reader of the results should know.
    pub notes: Vec<String>,
    /// What was asked for.
    pub settings: BenchSettings,
    /// What all random choices derive from.
    pub seed: u64,
}

impl BenchPlan {
    /// Plans what was asked for; looks at the target and changes nothing.
    ///
    /// # Errors
    /// The suite, one of its tests or the target is not there or cannot be used.
    pub fn make(settings: BenchSettings) -> Result<BenchPlan, AssessError> {
        let paths: Vec<PathBuf> =
            std::iter::once(&settings.run.target).chain(&settings.further).cloned().collect();
        settings.run.types.check_named()?;
        let targets = together::inspect(&paths, &settings.run.destroy, &settings.run.types)?;
        simulated::check_cache(&settings.run.target, settings.run.buffered)?;
        BenchPlan::on(targets, settings)
    }

    /// Plans on inspected targets: those that the settings name, in that order, at least one.
    ///
    /// # Errors
    /// As for [`BenchPlan::make`].
    pub fn on(targets: Vec<BenchTarget>, settings: BenchSettings) -> Result<BenchPlan, AssessError> {
        let engines = engine_rows();
        let suite = match settings.profiles.as_slice() {
            [] => Suite::load(&settings.suite, &engines)?,
            names => Suite::of_profiles(names, &engines)?,
        };
        BenchPlan::of_suite(suite, targets, settings)
    }

    /// Plans a suite that has been read, whichever the settings name, on inspected targets.
    ///
    /// # Errors
    /// As for [`BenchPlan::make`].
    pub fn of_suite(
        suite: Suite,
        targets: Vec<BenchTarget>,
        mut settings: BenchSettings,
    ) -> Result<BenchPlan, AssessError> {
        if let Some(class) = &settings.expectations.class {
            settings.run.labels.insert(CLASS.to_owned(), class.clone());
        }
        let engines = engine_rows();
        targets
            .iter()
            .try_for_each(|target| simulated::check_engine(settings.run.engine.as_deref(), target))?;
        let mut notes: Vec<String> = simulated::notes_on(&targets);
        let profile = profile_of(&suite, &settings);
        let typed: Vec<&Path> =
            std::iter::once(&settings.run.target).chain(&settings.further).map(PathBuf::as_path).collect();
        let is_recommended = suite.recommended.is_some_and(|best| best.size_bytes == profile.size);
        let wanted = WantedSize { bytes: profile.size, is_recommended };
        let mut size = u64::MAX;
        for (target, typed) in targets.iter().zip(&typed) {
            let planned = size_on(target, typed, settings.run.size, wanted)?;
            size = size.min(planned.size);
            notes.extend(planned.note);
            notes.extend(remarks(target));
        }
        let seed = settings.run.seed.unwrap_or_else(|| targets[0].usual_seed());
        let engine = engine_for(&suite, &settings, &targets[0], &mut notes);
        let refusal = targets[0].write_refusal();
        let lays_out =
            targets.iter().filter(|target| matches!(target, BenchTarget::Directory { .. })).count() as u64;
        let planned_target = |(target, typed): (BenchTarget, &Path)| PlannedTarget {
            file: target.working_path(),
            name: target.name(typed),
            target,
        };
        let targets: Vec<PlannedTarget> = targets.into_iter().zip(typed).map(planned_target).collect();
        let mut tests = Vec::new();
        let only = usual(&settings, &suite);
        for (index, test) in chosen(&suite, &only)?.into_iter().enumerate() {
            let mut planned = planned(test, &profile, size, &settings);
            replace_engine(&mut planned, &engine);
            planned.seed = seed.wrapping_add(index as u64 + 1);
            planned.skip = refusal.clone().filter(|_| test.writes);
            tests.push(planned.ended_by(&settings)?);
        }
        notes.extend(precision::check(&settings, &suite, &tests)?);
        let tests = together::spread(tests, &targets);
        let layout_part = settings.run.size.is_none().then_some(if is_recommended { 2 } else { 4 });
        let inspects = matches!(
            targets.as_slice(),
            [PlannedTarget { target: BenchTarget::File { .. } | BenchTarget::BlockDevice { .. }, .. }]
        ) && tests.iter().any(|test| test.reads() && test.skip.is_none());
        let inspection = if inspects { INSPECTION_TIME } else { Nanos::ZERO };
        let cost = cost_of(&tests, size * lays_out, lays_out > 0, layout_part);
        let plan = BenchPlan {
            cost: PlanCost { time: cost.time.map(|time| Nanos(time.0 + inspection.0)), ..cost },
            traffic: PlannedTraffic::default(),
            expectations: Vec::new(),
            suite,
            targets,
            size,
            tests,
            notes,
            settings,
            seed,
        };
        plan.with_expectations(&engines)
    }

    fn with_expectations(self, engines: &[EngineRow]) -> Result<BenchPlan, AssessError> {
        let (settings, tests) = (&self.settings, self.resolved(engines)?);
        let PlannedExpectations { expectations, notes } =
            expectations::determine(&settings.expectations, &tests, &settings.run.labels)?;
        let traffic = traffic::of_plan(&self, &tests.plans, &expectations);
        Ok(BenchPlan { expectations, traffic, notes: [self.notes, notes].concat(), ..self })
    }

    /// The expectations of these tests in the text of an expectation file called `name`.
    ///
    /// # Errors
    /// It is no such file, or about something that there is not.
    pub fn expectations_in(&self, name: &str, text: &str) -> Result<Vec<ExpectationRecord>, AssessError> {
        expectations::of_text(name, text, &self.settings.expectations, &self.resolved(&engine_rows())?)
    }

    fn resolved(&self, engines: &[EngineRow]) -> Result<Tests<'_>, AssessError> {
        let resolved = self.tests.iter().map(|test| self.resolve(test, self.size, engines));
        let plans = resolved.collect::<Result<_, OptionError>>()?;
        Ok(Tests { suite: &self.suite, planned: &self.tests, plans, types: &self.settings.run.types })
    }

    /// The time after which no test may go on: of a quick run as the suite has it, which is planned to take less.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        let limit = Nanos(QUICK_LIMIT.0 - QUICK_RESERVE.0);
        let BenchSettings { effort, runtime, precision, until_steady, .. } = self.settings;
        let is_quick = effort == Effort::Quick && runtime.is_none() && precision.is_none() && !until_steady;
        self.cost.time.filter(|time| is_quick && *time < limit).map(|_| limit)
    }

    /// The session that it runs on.
    pub fn session(&self) -> Session {
        simulated::session_for(self.targets.iter().map(|target| &target.target))
    }

    /// The test file that is written first, where one is.
    pub fn test_file(&self) -> Option<TestFile> {
        let PlanCost { layout_bytes, layout_time, .. } = self.cost;
        (layout_bytes > 0).then_some(TestFile { bytes: layout_bytes, limit: layout_time })
    }

    /// The target by a name that means the same everywhere on this machine.
    pub fn target_name(&self) -> String {
        let names: Vec<&str> = self.targets.iter().map(|target| target.name.as_str()).collect();
        names.join(", ")
    }

    /// The fio command line that does what `test` does over `size` bytes.
    pub fn fio_command(&self, test: &PlannedTest, size: u64) -> String {
        let engines = engine_rows();
        // A test that was planned has been resolved from these very words.
        let sections = self.sections(test, size, &engines).unwrap_or_default();
        let lines: Vec<String> = sections.iter().map(|section| section.command_line()).collect();
        // Each line begins with the program's name, which stands once.
        lines.join(" ").replace(" fio --name=", " --name=")
    }

    /// The id, title and fio command of `test` over `size` bytes.
    pub(crate) fn meta(&self, test: &PlannedTest, size: u64) -> TestMeta {
        TestMeta { id: test.id.clone(), title: test.title.clone(), fio: self.fio_command(test, size) }
    }

    /// What `test` means over `size` bytes.
    pub(crate) fn resolve(
        &self,
        test: &PlannedTest,
        size: u64,
        engines: &[EngineRow],
    ) -> Result<RunPlan, OptionError> {
        fathom_options::resolve(&self.sections(test, size, engines)?, &host_facts())
    }

    /// A job for each target that `test` runs on.
    fn sections(
        &self,
        test: &PlannedTest,
        size: u64,
        engines: &[EngineRow],
    ) -> Result<Vec<Section>, OptionError> {
        let of_target = |&index: &usize| {
            let name =
                if test.targets.len() > 1 { format!("{}-{}", test.id, index + 1) } else { test.id.clone() };
            section_of(&name, &test.job_options(&self.targets[index].file, size), engines)
        };
        test.targets.iter().map(of_target).collect()
    }
}

fn profile_of(suite: &Suite, settings: &BenchSettings) -> Profile {
    let profile = match settings.effort {
        Effort::Quick => suite.quick,
        Effort::Default => suite.default,
        Effort::Thorough => suite.thorough,
    };
    let usual = match (settings.until_steady, settings.precision, settings.effort) {
        (true, ..) => Nanos(steady::ROUND_NS),
        (false, Some(_), Effort::Quick) => suite.default.runtime,
        (false, Some(_), _) => suite.thorough.runtime,
        (false, None, _) => profile.runtime,
    };
    let runtime = settings.runtime.unwrap_or(usual);
    Profile { runtime, limit: settings.runtime.or(profile.limit), ..profile }
}

/// The tests that were asked for; on several targets a few, unless others are named.
fn usual(settings: &BenchSettings, suite: &Suite) -> Vec<String> {
    let are_there = together::USUAL.iter().all(|id| suite.tests.iter().any(|test| test.id == *id));
    if settings.further.is_empty() || !settings.only.is_empty() || !are_there {
        return settings.only.clone();
    }
    together::USUAL.map(str::to_owned).to_vec()
}

fn chosen<'a>(suite: &'a Suite, only: &[String]) -> Result<Vec<&'a SuiteTest>, AssessError> {
    if let Some(unknown) = only.iter().find(|id| !suite.tests.iter().any(|test| test.id == **id)) {
        let known: Vec<&str> = suite.tests.iter().map(|test| test.id.as_str()).collect();
        return Err(AssessError::usage(
            format!("suite {} has no test '{unknown}'", suite.name),
            format!("use one of {}", known.join(", ")),
        ));
    }
    Ok(suite.tests.iter().filter(|test| only.is_empty() || only.contains(&test.id)).collect())
}

/// The layout may take one of `layout_part` parts of the tests' time, a quarter as a rule; `None` where the size was asked for.
fn cost_of(tests: &[PlannedTest], size: u64, lays_out: bool, layout_part: Option<u64>) -> PlanCost {
    let runs = || tests.iter().filter(|test| test.skip.is_none());
    let time = |test: &PlannedTest| test.most_time().map(|time| time.0);
    let of_tests: Option<u64> = runs().map(time).sum();
    let ends_early = runs().any(|test| test.rounds.is_some() || test.precision.is_some());
    let least_time: Option<u64> =
        runs().map(|test| test.least_time().map(|time| time.0)).sum::<Option<u64>>().filter(|_| ends_early);
    let shortest = least_time.or(of_tests);
    let layout_time = shortest.zip(layout_part).filter(|_| lays_out).map(|(all, part)| Nanos(all / part));
    let total = match (lays_out, of_tests, layout_time) {
        (true, Some(tests), Some(layout)) => Some(tests + layout.0),
        (true, ..) => None,
        (false, tests, _) => tests,
    };
    PlanCost {
        time: total.map(Nanos),
        tests_time: of_tests.map(Nanos),
        least_time: least_time.map(Nanos),
        layout_bytes: if lays_out { size } else { 0 },
        layout_time,
    }
}

impl BenchPlan {
    /// The tests with the plans of their jobs, under the expectations; nothing is measured yet.
    pub fn outline(&self) -> RunRecord {
        let engines = engine_rows();
        let tests = self.tests.iter().map(|test| {
            let plan = self.resolve(test, self.size, &engines);
            let jobs = plan.iter().flat_map(|plan| &plan.jobs).flat_map(|job| {
                let record = JobRecord { plan: PlanRecord::of(job), ..JobRecord::default() };
                job.clones.iter().map(move |_| record.clone())
            });
            let (id, title) = (test.id.clone(), test.title.clone());
            TestRecord { id, title, jobs: jobs.collect(), ..TestRecord::default() }
        });
        let header = RunHeader { expectations: self.expectations.clone(), ..RunHeader::default() };
        RunRecord { header, tests: tests.collect(), ..RunRecord::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_record::Recommendation;
    use fathom_volume::VolumeModel;

    fn plan(settings: BenchSettings) -> Result<BenchPlan, AssessError> {
        let suite = if settings.suite.is_empty() { "standard".to_owned() } else { settings.suite.clone() };
        BenchPlan::on(
            vec![BenchTarget::simulated("simulated", VolumeModel::unlimited(8 << 30))],
            BenchSettings { run: RunSettings { seed: Some(7), ..settings.run }, suite, ..settings },
        )
    }

    #[test]
    fn commands_are_what_a_user_would_type() {
        let settings = BenchSettings {
            run: RunSettings { size: Some(4 << 30), ..RunSettings::default() },
            effort: Effort::Quick,
            ..BenchSettings::default()
        };
        let plan = plan(settings).unwrap();
        let command = |id: &str| {
            let test = plan.tests.iter().find(|test| test.id == id).unwrap();
            plan.fio_command(test, plan.size)
        };
        let tail = "--time_based=1 --runtime=3500ms --ramp_time=500ms";
        assert_eq!(
            command("rand-mixed"),
            format!(
                "fio --name=rand-mixed --ioengine=io_uring --filename=simulated --size=4g --direct=1 \
                 --rw=randrw --rwmixread=75 --bs=4k --iodepth=64 {tail} --randseed=13"
            )
        );
        assert!(command("seq-write-jobs").contains("--size=512m"));
        assert!(command("seq-write-jobs").contains("--offset_increment=512m"));
    }

    #[test]
    fn quick_stays_under_a_minute_and_default_near_three() {
        for name in ["standard", "cloud-disk"] {
            for (effort, least, most) in [(Effort::Quick, 30, 57), (Effort::Default, 120, 200)] {
                let plan = plan(BenchSettings { effort, suite: name.to_owned(), ..BenchSettings::default() })
                    .unwrap();
                let tests = plan.cost.time.unwrap().as_secs_f64();
                assert!((f64::from(least)..f64::from(most)).contains(&(tests * 1.25)), "{name}: {tests} s");
            }
        }
        let open =
            plan(BenchSettings { suite: "database-disk".to_owned(), ..BenchSettings::default() }).unwrap();
        assert_eq!(open.cost.time, None);
    }

    #[test]
    fn a_suite_with_a_recommendation_follows_it_by_default() {
        for effort in [Effort::Default, Effort::Thorough] {
            let suite = "digitalocean-volumes".to_owned();
            let plan = plan(BenchSettings { effort, suite, ..BenchSettings::default() }).unwrap();
            let recommended = plan.suite.recommended.unwrap();
            assert_eq!(
                recommended,
                Recommendation { runtime_ns: 60_000_000_000, size_bytes: 20_000_000_000 }
            );
            let runtimes = plan.tests.iter().map(|test| test.runtime.unwrap().0);
            assert!(runtimes.min() >= Some(recommended.runtime_ns), "{effort:?}");
        }
    }

    #[test]
    fn what_was_said_replaces_what_the_suite_says() {
        let settings = BenchSettings {
            run: RunSettings { engine: Some("psync".to_owned()), buffered: true, ..RunSettings::default() },
            only: vec!["rand-read".to_owned()],
            runtime: Some(Nanos::from_secs(5)),
            ..BenchSettings::default()
        };
        let plan = plan(settings).unwrap();
        assert_eq!(plan.tests.len(), 1);
        let command = plan.fio_command(&plan.tests[0], plan.size);
        for part in ["--ioengine=psync", "--direct=0", "--runtime=5s"] {
            assert!(command.contains(part), "{command}");
        }
    }

    #[test]
    fn refusals() {
        let check = |settings: BenchSettings, expected: &str| {
            let error = plan(settings).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        let only = |id: &str| BenchSettings { only: vec![id.to_owned()], ..BenchSettings::default() };
        check(only("rand-raed"), "no test 'rand-raed'");
        check(
            BenchSettings {
                run: RunSettings { size: Some(1), ..RunSettings::default() },
                ..BenchSettings::default()
            },
            "too small",
        );
        check(
            BenchSettings {
                run: RunSettings { size: Some(9 << 30), ..RunSettings::default() },
                ..BenchSettings::default()
            },
            "the target has 8.0 GiB",
        );
        check(
            BenchSettings {
                run: RunSettings { engine: Some("warp".to_owned()), ..RunSettings::default() },
                ..BenchSettings::default()
            },
            "warp",
        );
    }
}
