//! What `bench` is going to do and what that costs, before anything is touched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_engine::registry;
use fathom_model::units::bytes;
use fathom_model::{Nanos, RunPlan};
use fathom_options::EngineRow;

use crate::AssessError;
use crate::expect::Expectation;
use crate::machine::{engine_rows, host_facts, probe, random};
use crate::suite::{Ending, Profile, Suite, SuiteTest, section_of};
use crate::target::BenchTarget;
use crate::working_file::{self, SizePlan};

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct BenchSettings {
    /// A directory, file or block device.
    pub target: PathBuf,
    /// Name or path of the suite.
    pub suite: String,
    /// How long it may take.
    pub effort: Effort,
    /// Size of the working file, bytes, instead of the suite's.
    pub size: Option<u64>,
    /// Measured time of each test instead of the suite's.
    pub runtime: Option<Nanos>,
    /// Only these tests; empty = all.
    pub only: Vec<String>,
    /// The engine instead of the suite's.
    pub engine: Option<String>,
    /// Through the page cache.
    pub buffered: bool,
    /// Targets whose content may be destroyed.
    pub destroy: Vec<PathBuf>,
    /// What all random choices derive from; drawn where it is not said.
    pub seed: Option<u64>,
    /// What the user says of the run.
    pub labels: BTreeMap<String, String>,
    /// The command line, for the record.
    pub command: Vec<String>,
}

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

/// One test as it will run.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedTest {
    /// Its name.
    pub id: String,
    /// The same for people.
    pub title: String,
    /// What it is expected to reach.
    pub expected: Vec<Expectation>,
    /// Measured time; `None` where it ends with its size, however long that takes.
    pub runtime: Option<Nanos>,
    /// Unmeasured time before it.
    pub ramp: Nanos,
    /// It writes.
    pub writes: bool,
    /// Bytes it moves at most, where that is known without running it.
    pub io_bytes: Option<u64>,
    /// Why it is not going to run.
    pub skip: Option<String>,
    options: Vec<(String, String)>,
    ends: Ending,
    split_over: Option<u32>,
    /// Its range never exceeds this, bytes.
    at_most: u64,
    seed: u64,
}

/// What a plan costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Longest time, layout included; `None` where something takes as long as it takes.
    pub time: Option<Nanos>,
    /// Longest time of the tests alone; `None` where one takes as long as it takes.
    pub tests_time: Option<Nanos>,
    /// Bytes written to lay the working file out.
    pub layout_bytes: u64,
    /// Longest time of the layout; `None` = as long as it takes.
    pub layout_time: Option<Nanos>,
    /// Time in which tests write as fast as they can.
    pub writing_time: Nanos,
    /// Bytes written by tests that end with their size.
    pub writing_bytes: u64,
}

/// What is going to be done.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// The suite.
    pub suite: Suite,
    /// The target.
    pub target: BenchTarget,
    /// The path that tests name; in a directory a file that exists under no name.
    pub file: PathBuf,
    /// Bytes of it that are used.
    pub size: u64,
    /// In the order they run.
    pub tests: Vec<PlannedTest>,
    /// What it costs.
    pub cost: Cost,
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
        let target = BenchTarget::inspect(&settings.target, &settings.destroy)?;
        BenchPlan::on(target, settings)
    }

    /// Plans what was asked for on a target already looked at.
    ///
    /// # Errors
    /// As for [`BenchPlan::make`].
    pub fn on(target: BenchTarget, settings: BenchSettings) -> Result<BenchPlan, AssessError> {
        let engines = engine_rows();
        let suite = Suite::load(&settings.suite, &engines)?;
        if let Some(name) = settings.engine.as_ref().filter(|name| registry::find(name).is_none()) {
            return Err(AssessError::UnknownEngine { name: name.clone() });
        }
        let mut notes = Vec::new();
        let profile = profile_of(&suite, &settings);
        let SizePlan { size, note } = size_on(&target, &settings, profile.size)?;
        notes.extend(note);
        notes.extend(remarks(&target));
        let seed = settings.seed.unwrap_or_else(|| random() >> 32);
        let engine = engine_for(&suite, &settings, &target, &mut notes);
        let refusal = target.write_refusal();
        let mut tests = Vec::new();
        for (index, test) in chosen(&suite, &settings.only)?.into_iter().enumerate() {
            let mut planned = planned(test, &profile, size, &settings);
            replace_engine(&mut planned.options, &engine);
            planned.seed = seed.wrapping_add(index as u64 + 1);
            planned.skip = refusal.clone().filter(|_| test.writes);
            tests.push(planned);
        }
        let file = match &target {
            BenchTarget::Directory { path, .. } => absolute(path).join("fathom.tmp"),
            BenchTarget::File { path, .. } | BenchTarget::BlockDevice { path, .. } => absolute(path),
            BenchTarget::Simulated { .. } => PathBuf::from("simulated"),
        };
        let is_directory = matches!(target, BenchTarget::Directory { .. });
        let cost = cost_of(&tests, size, is_directory, settings.size.is_some());
        let plan = BenchPlan { suite, target, file, size, tests, cost, notes, settings, seed };
        for test in &plan.tests {
            plan.resolve(test, plan.size, &engines)?;
        }
        Ok(plan)
    }

    /// The target by a name that means the same everywhere on this machine.
    pub fn target_name(&self) -> String {
        match &self.target {
            BenchTarget::Simulated { .. } => self.settings.target.display().to_string(),
            _ => absolute(&self.settings.target).display().to_string(),
        }
    }

    /// The fio command line that does what `test` does over `size` bytes.
    pub fn fio_command(&self, test: &PlannedTest, size: u64) -> String {
        let words = test.said(&self.file, size);
        let engines = engine_rows();
        // A test that was planned has been resolved from these very words.
        section_of(&test.id, &words, &engines).map(|section| section.command_line()).unwrap_or_default()
    }

    /// What `test` means over `size` bytes.
    pub(crate) fn resolve(
        &self,
        test: &PlannedTest,
        size: u64,
        engines: &[EngineRow],
    ) -> Result<RunPlan, AssessError> {
        let section =
            section_of(&test.id, &test.said(&self.file, size), engines).map_err(AssessError::Options)?;
        fathom_options::resolve(&[section], &host_facts()).map_err(AssessError::Options)
    }
}

impl PlannedTest {
    /// fio's options for this test, in the order a user would type them.
    fn said(&self, file: &Path, size: u64) -> Vec<(String, String)> {
        let size = size.min(self.at_most);
        let range = match self.split_over {
            Some(jobs) => size / u64::from(jobs) / MIB * MIB,
            None => size,
        };
        let mut said = vec![pair("filename", escaped(file)), pair("size", size_word(range))];
        said.extend(self.options.iter().cloned());
        if self.split_over.is_some() {
            said.push(pair("offset_increment", size_word(range)));
        }
        if self.ends == Ending::Time {
            said.push(pair("time_based", "1"));
        }
        said.extend(self.runtime.map(|runtime| pair("runtime", time_word(runtime))));
        if self.ramp > Nanos::ZERO {
            said.push(pair("ramp_time", time_word(self.ramp)));
        }
        said.push(pair("randseed", self.seed.to_string()));
        said
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

const MIB: u64 = 1 << 20;

fn pair(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

/// A path as `filename` takes it: colons separate names there.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "\\\\").replace(':', "\\:")
}

fn size_word(size: u64) -> String {
    match size {
        size if size > 0 && size.is_multiple_of(1 << 30) => format!("{}g", size >> 30),
        size if size > 0 && size.is_multiple_of(MIB) => format!("{}m", size >> 20),
        size => size.to_string(),
    }
}

fn time_word(time: Nanos) -> String {
    match time.0 {
        ns if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        ns => format!("{}us", ns.div_ceil(1_000)),
    }
}

fn profile_of(suite: &Suite, settings: &BenchSettings) -> Profile {
    let profile = match settings.effort {
        Effort::Quick => suite.quick,
        Effort::Default => suite.default,
        Effort::Thorough => suite.thorough,
    };
    let runtime = settings.runtime.unwrap_or(profile.runtime);
    Profile { runtime, limit: settings.runtime.or(profile.limit), ..profile }
}

/// How much of the target is used.
fn size_on(target: &BenchTarget, settings: &BenchSettings, of_profile: u64) -> Result<SizePlan, AssessError> {
    let has = match target {
        BenchTarget::Directory { path, filesystem } => {
            return working_file::plan_size(path, filesystem, of_profile, settings.size);
        }
        BenchTarget::File { size, .. }
        | BenchTarget::BlockDevice { size, .. }
        | BenchTarget::Simulated { size } => *size,
    };
    let size = settings.size.unwrap_or(has);
    let fail = |reason: String, hint: String| AssessError::Target {
        path: settings.target.clone(),
        reason,
        hint: Some(hint),
    };
    if size > has {
        return Err(fail(
            format!("--size asks for {}, and it has {}", bytes(size), bytes(has)),
            format!("use --size {}m or less, or leave it out", has / MIB),
        ));
    }
    let size = size - size % MIB;
    if size < working_file::LEAST_SIZE {
        return Err(AssessError::TooSmall { size: settings.size.unwrap_or(size) });
    }
    Ok(SizePlan { size, note: None })
}

/// What a reader should know of the target itself.
fn remarks(target: &BenchTarget) -> Option<String> {
    match target {
        BenchTarget::Directory { path, filesystem } if filesystem.is_root_filesystem => Some(format!(
            "{} is on the root file system: other programs use it too, and 1.0 GiB is kept free",
            absolute(path).display()
        )),
        BenchTarget::File { path, sparse: true, .. } => Some(format!(
            "{} is sparse: reads of its holes never reach a device and are too fast",
            path.display()
        )),
        _ => None,
    }
}

fn chosen<'a>(suite: &'a Suite, only: &[String]) -> Result<Vec<&'a SuiteTest>, AssessError> {
    if let Some(unknown) = only.iter().find(|id| !suite.tests.iter().any(|test| test.id == **id)) {
        return Err(AssessError::UnknownTest {
            suite: suite.name.clone(),
            id: unknown.clone(),
            known: suite.tests.iter().map(|test| test.id.clone()).collect(),
        });
    }
    Ok(suite.tests.iter().filter(|test| only.is_empty() || only.contains(&test.id)).collect())
}

fn planned(test: &SuiteTest, profile: &Profile, size: u64, settings: &BenchSettings) -> PlannedTest {
    let mut options = test.options.clone();
    if settings.buffered {
        options.retain(|(name, _)| name != "direct" && name != "buffered");
        options.push(pair("direct", "0"));
    }
    let (runtime, ramp, at_most) = match test.ends {
        Ending::Time => {
            let runtime = Nanos((profile.runtime.0 as f64 * test.time_share) as u64);
            (Some(runtime), profile.ramp, u64::MAX)
        }
        Ending::Size => (profile.limit, Nanos::ZERO, settings.size.unwrap_or(profile.size)),
    };
    let whole = (test.ends == Ending::Size).then(|| test.io_bytes.unwrap_or(size.min(at_most)));
    PlannedTest {
        id: test.id.clone(),
        title: test.title.clone(),
        expected: test.expected.clone(),
        runtime,
        ramp,
        writes: test.writes,
        io_bytes: whole,
        skip: None,
        options,
        ends: test.ends,
        split_over: test.split.then_some(test.jobs),
        at_most,
        seed: 0,
    }
}

/// Which engine replaces which.
struct EngineChoice {
    /// Every engine, or only this one.
    instead_of: Option<&'static str>,
    by: String,
}

/// The engine that the user asked for, or a substitute where the suite's does not work here.
fn engine_for(
    suite: &Suite,
    settings: &BenchSettings,
    target: &BenchTarget,
    notes: &mut Vec<String>,
) -> Option<EngineChoice> {
    if let Some(engine) = &settings.engine {
        return Some(EngineChoice { instead_of: None, by: engine.clone() });
    }
    let asks_for_it =
        |test: &SuiteTest| test.options.iter().any(|(name, value)| name == "ioengine" && value == "io_uring");
    if matches!(target, BenchTarget::Simulated { .. }) || !suite.tests.iter().any(asks_for_it) {
        return None;
    }
    let error = probe("io_uring").err()?;
    notes.push(format!("io_uring cannot be used here ({}), libaio is used instead", error.source));
    Some(EngineChoice { instead_of: Some("io_uring"), by: "libaio".to_owned() })
}

fn replace_engine(options: &mut [(String, String)], choice: &Option<EngineChoice>) {
    let Some(choice) = choice else { return };
    for (_, value) in options.iter_mut().filter(|(name, _)| name == "ioengine") {
        if choice.instead_of.is_none_or(|engine| engine == value) {
            value.clone_from(&choice.by);
        }
    }
}

/// A fifth of the whole is left for the layout, so it may take a quarter of the tests' time.
fn cost_of(tests: &[PlannedTest], size: u64, lays_out: bool, size_was_said: bool) -> Cost {
    let runs = || tests.iter().filter(|test| test.skip.is_none());
    let time = |test: &PlannedTest| test.runtime.map(|runtime| runtime.0 + test.ramp.0);
    let of_tests: Option<u64> = runs().map(time).sum();
    let layout_time = of_tests.filter(|_| lays_out && !size_was_said).map(|all| Nanos(all / 4));
    let total = match (lays_out, of_tests, layout_time) {
        (true, Some(tests), Some(layout)) => Some(tests + layout.0),
        (true, ..) => None,
        (false, tests, _) => tests,
    };
    let timed = runs().filter(|test| test.writes && test.io_bytes.is_none());
    Cost {
        time: total.map(Nanos),
        tests_time: of_tests.map(Nanos),
        layout_bytes: if lays_out { size } else { 0 },
        layout_time,
        writing_time: Nanos(timed.filter_map(time).sum()),
        writing_bytes: runs().filter(|test| test.writes).filter_map(|test| test.io_bytes).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(settings: BenchSettings) -> Result<BenchPlan, AssessError> {
        let suite = if settings.suite.is_empty() { "standard".to_owned() } else { settings.suite.clone() };
        BenchPlan::on(
            BenchTarget::Simulated { size: 8 << 30 },
            BenchSettings { suite, seed: Some(7), ..settings },
        )
    }

    #[test]
    fn commands_are_what_a_user_would_type() {
        let settings =
            BenchSettings { effort: Effort::Quick, size: Some(4 << 30), ..BenchSettings::default() };
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
        for name in ["standard", "digitalocean-volumes", "cloud-disk"] {
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
    fn what_was_said_replaces_what_the_suite_says() {
        let settings = BenchSettings {
            only: vec!["rand-read".to_owned()],
            engine: Some("psync".to_owned()),
            runtime: Some(Nanos::from_secs(5)),
            buffered: true,
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
        check(BenchSettings { size: Some(1), ..BenchSettings::default() }, "too small");
        check(BenchSettings { size: Some(9 << 30), ..BenchSettings::default() }, "it has 8.0 GiB");
        check(BenchSettings { engine: Some("warp".to_owned()), ..BenchSettings::default() }, "warp");
    }
}
