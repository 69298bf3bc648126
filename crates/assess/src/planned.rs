//! One test of a plan: what it does, in fio's words, and on which engine.

use std::path::Path;

use fathom_analysis::steady;
use fathom_model::{Nanos, units};
use fathom_record::{ExpectationRecord, PrecisionRecord};

use crate::AssessError;
use crate::error::plain;
use crate::machine::probe;
use crate::plan::BenchSettings;
use crate::precision::PrecisionSettings;
use crate::suite::{Ending, Profile, Suite, SuiteTest};
use crate::target::BenchTarget;
use crate::until_steady::Rounds;

/// One test as it will run.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedTest {
    /// Its name.
    pub id: String,
    /// The same for people.
    pub title: String,
    /// What it is expected to reach.
    pub expected: Vec<ExpectationRecord>,
    /// Measured time; `None` where it ends with its size, however long that takes.
    pub runtime: Option<Nanos>,
    /// Unmeasured time before it.
    pub ramp: Nanos,
    /// It is repeated until it is steady; the run time is that of a round then.
    pub rounds: Option<Rounds>,
    /// It ends as soon as its rate is known precisely enough; the run time is the longest then.
    pub precision: Option<PrecisionRecord>,
    /// It writes.
    pub writes: bool,
    /// Bytes it moves at most, where that is known without running it.
    pub io_bytes: Option<u64>,
    /// Why it is not going to run.
    pub skip: Option<String>,
    /// Which of the plan's targets it runs on, all at once; 0 is the first.
    pub targets: Vec<usize>,
    options: Vec<(String, String)>,
    ends: Ending,
    split_over: Option<u32>,
    /// Its range never exceeds this, bytes.
    at_most: u64,
    pub(crate) seed: u64,
}

impl PlannedTest {
    /// fio's options for this test, in the order a user would type them.
    pub(crate) fn job_options(&self, file: &Path, size: u64) -> Vec<(String, String)> {
        let size = size.min(self.at_most);
        let range = match self.split_over {
            Some(jobs) => size / u64::from(jobs) / MIB * MIB,
            None => size,
        };
        let mut options = vec![pair("filename", escaped(file)), pair("size", size_word(range))];
        options.extend(self.options.iter().cloned());
        if self.split_over.is_some() {
            options.push(pair("offset_increment", size_word(range)));
        }
        if self.ends == Ending::Time {
            options.push(pair("time_based", "1"));
        }
        options.extend(self.runtime.map(|runtime| pair("runtime", time_word(runtime))));
        if self.ramp > Nanos::ZERO {
            options.push(pair("ramp_time", time_word(self.ramp)));
        }
        options.push(seed_pair(self.seed, 0));
        options
    }

    /// It with another queue depth.
    pub(crate) fn with_depth(&self, depth: u64) -> PlannedTest {
        self.with_option("iodepth", depth.to_string())
    }

    /// It, not to run for this reason.
    pub(crate) fn skipped(&self, reason: String) -> PlannedTest {
        PlannedTest { skip: Some(reason), ..self.clone() }
    }

    /// It with another block size.
    pub(crate) fn with_block(&self, bytes: u64) -> PlannedTest {
        self.with_option("bs", bytes.to_string())
    }

    fn with_option(&self, option: &str, new: String) -> PlannedTest {
        let mut changed = self.clone();
        for (_, value) in changed.options.iter_mut().filter(|(name, _)| name == option) {
            value.clone_from(&new);
        }
        changed
    }

    /// Its pattern as reads or writes alone, for so long and without a ramp.
    pub(crate) fn as_pass(&self, direction: &str, depth: Option<u64>, runtime: Nanos) -> PlannedTest {
        let is_random = self.options.iter().any(|(name, value)| name == "rw" && value.starts_with("rand"));
        let rw = format!("{}{direction}", if is_random { "rand" } else { "" });
        let changed = PlannedTest { ramp: Nanos::ZERO, ..self.lasting(runtime).with_option("rw", rw) };
        depth.map_or(changed.clone(), |depth| changed.with_depth(depth))
    }

    /// The queue depth; `None` where its options do not say.
    pub(crate) fn depth(&self) -> Option<u64> {
        self.options.iter().find(|(name, _)| name == "iodepth")?.1.parse().ok()
    }

    /// It reads.
    pub(crate) fn reads(&self) -> bool {
        let is_of_reads = |rw: &str| rw.contains("read") || rw.ends_with("rw");
        self.options
            .iter()
            .any(|(name, value)| ["rw", "readwrite"].contains(&name.as_str()) && is_of_reads(value))
    }

    /// It, ended by the precision or the steady state that `settings` ask for.
    pub(crate) fn ended_by(self, settings: &BenchSettings) -> Result<PlannedTest, AssessError> {
        match settings.precision {
            Some(precision) => self.precise(precision),
            None if settings.until_steady => self.in_rounds(settings.budget),
            None => Ok(self),
        }
    }

    /// It, to be repeated within `budget` until it is steady.
    fn in_rounds(self, budget: Option<Nanos>) -> Result<PlannedTest, AssessError> {
        let round = self.runtime.filter(|_| self.ends == Ending::Time);
        Ok(PlannedTest { rounds: Some(Rounds::new(round, budget)?), ..self })
    }

    /// It, to end as soon as its rate is known precisely enough. One that ends with its size stays as it is.
    fn precise(self, settings: PrecisionSettings) -> Result<PlannedTest, AssessError> {
        let most = self.runtime.filter(|_| self.ends == Ending::Time);
        Ok(PlannedTest { precision: most.map(|most| settings.goal(most)).transpose()?, ..self })
    }

    /// It with another runtime.
    pub(crate) fn lasting(&self, runtime: Nanos) -> PlannedTest {
        PlannedTest { runtime: Some(runtime), ..self.clone() }
    }

    /// Shortest time; `None` where that is not known.
    pub fn least_time(&self) -> Option<Nanos> {
        let measured = match (&self.rounds, &self.precision) {
            (Some(rounds), _) => rounds.least()?,
            (None, Some(precision)) => Nanos(precision.least_ns),
            (None, None) => self.runtime?,
        };
        Some(Nanos(measured.0 + self.ramp.0))
    }

    /// Its round `index`, counted from 0: other random choices, and a ramp in the first alone.
    pub(crate) fn round(&self, index: usize) -> PlannedTest {
        const SEED_STEP: u64 = 0x1_0000_0001;
        let seed = self.seed.wrapping_add(SEED_STEP.wrapping_mul(index as u64));
        let ramp = if index == 0 { self.ramp } else { Nanos::ZERO };
        PlannedTest { seed, ramp, ..self.clone() }
    }

    /// Its repetition `index`, counted from 0: other random choices, after a ramp of its own.
    pub(crate) fn repetition(&self, index: usize) -> PlannedTest {
        PlannedTest { ramp: self.ramp, ..self.round(index) }
    }

    /// It once more at the end of its run, for a short time; `None` of one that is not ended by its time.
    pub(crate) fn again(&self) -> Option<PlannedTest> {
        let is_timed = self.ends == Ending::Time && self.rounds.is_none() && self.precision.is_none();
        let runtime = self.runtime.filter(|_| is_timed)?.min(AGAIN);
        let (id, title) = (format!("{}-again", self.id), format!("{}, again", self.title));
        Some(PlannedTest { id, title, runtime: Some(runtime), expected: Vec::new(), ..self.repetition(1) })
    }

    /// It at fixed rates of reads and writes that arrive at random, for so long.
    pub(crate) fn at_rate(&self, [reads, writes]: [u64; 2], runtime: Nanos) -> Option<PlannedTest> {
        let is_timed = self.ends == Ending::Time && self.rounds.is_none();
        let title = format!("{}, at {} IOPS", self.title, units::grouped(reads + writes));
        let mut paced = PlannedTest {
            id: format!("{}-at-rate", self.id),
            title,
            expected: Vec::new(),
            precision: None,
            ..self.repetition(1).lasting(runtime)
        };
        let rates = match (reads, writes) {
            (0, writes) => format!(",{writes}"),
            (reads, 0) => reads.to_string(),
            (reads, writes) => format!("{reads},{writes}"),
        };
        paced.options.extend([pair("rate_iops", rates), pair("rate_process", "poisson")]);
        is_timed.then_some(paced)
    }

    /// Most bytes that it moves, in all of its rounds; `None` where it ends with its time.
    pub(crate) fn most_bytes(&self) -> Option<u64> {
        let rounds = if self.rounds.is_some() { steady::MAX_ROUNDS as u64 } else { 1 };
        Some(self.io_bytes? * rounds)
    }

    /// Longest time; `None` where that is not known.
    pub fn most_time(&self) -> Option<Nanos> {
        let time = match &self.rounds {
            Some(rounds) => rounds.round.map(|_| rounds.budget)?,
            None => self.runtime?,
        };
        Some(Nanos(time.0 + self.ramp.0))
    }
}

const MIB: u64 = 1 << 20;
/// Three full seconds show whether a rate is even.
const AGAIN: Nanos = Nanos::from_millis(3500);

/// An option of fio with its value.
pub(crate) fn pair(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

/// Options of a job that counts failed requests and goes on: after EIO, and the other errors of the block layer (ENODATA,
/// ENOLINK, ETIMEDOUT, EREMOTEIO, EBADE, EILSEQ) and of file systems (EBADMSG, EUCLEAN) that concern single blocks, which
/// have to be named for fio.
pub(crate) fn goes_on_after_errors() -> [(String, String); 2] {
    const ERRORS: &str = "5:52:61:67:74:84:110:117:121";
    [pair("continue_on_error", "all"), pair("ignore_error", format!("{ERRORS},{ERRORS}"))]
}

/// A path as `filename` takes it: colons separate names there, and a backslash is nothing special but before one.
pub(crate) fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(':', "\\:")
}

pub(crate) fn size_word(size: u64) -> String {
    match size {
        size if size > 0 && size.is_multiple_of(1 << 30) => format!("{}g", size >> 30),
        size if size > 0 && size.is_multiple_of(MIB) => format!("{}m", size >> 20),
        size => size.to_string(),
    }
}

pub(crate) fn time_word(time: Nanos) -> String {
    match time.0 {
        ns if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        ns => format!("{}us", ns.div_ceil(1_000)),
    }
}

/// `randseed` of the job at `place`: jobs of one `seed` have seeds of their own, of 63 bits as fio takes them.
pub(crate) fn seed_pair(seed: u64, place: u64) -> (String, String) {
    const STEP: u64 = 0x9e37_79b9;
    pair("randseed", ((seed ^ place.wrapping_mul(STEP)) & i64::MAX as u64).to_string())
}

/// `test` over a target of `size` bytes, with what was requested instead of what the suite says.
pub(crate) fn planned(
    test: &SuiteTest,
    profile: &Profile,
    size: u64,
    settings: &BenchSettings,
) -> PlannedTest {
    let mut options = test.options.clone();
    if settings.run.buffered {
        options.retain(|(name, _)| name != "direct" && name != "buffered");
        options.push(pair("direct", "0"));
    }
    let (runtime, ramp, at_most) = match test.ends {
        Ending::Time => {
            let share = if settings.until_steady { 1.0 } else { test.time_share };
            let runtime = Nanos((profile.runtime.0 as f64 * share) as u64);
            (Some(runtime), profile.ramp, u64::MAX)
        }
        Ending::Size => (profile.limit, Nanos::ZERO, settings.run.size.unwrap_or(profile.size)),
    };
    let whole = (test.ends == Ending::Size).then(|| test.io_bytes.unwrap_or(size.min(at_most)));
    PlannedTest {
        id: test.id.clone(),
        title: test.title.clone(),
        expected: test.expected.clone(),
        runtime,
        ramp,
        rounds: None,
        precision: None,
        writes: test.writes,
        io_bytes: whole,
        skip: None,
        targets: vec![0],
        options,
        ends: test.ends,
        split_over: test.split.then_some(test.jobs),
        at_most,
        seed: 0,
    }
}

/// Which engine replaces which.
pub(crate) struct EngineChoice {
    /// Every engine, or only this one.
    instead_of: Option<&'static str>,
    by: String,
}

/// The engine that the user asked for, or a substitute where the suite's does not work here.
pub(crate) fn engine_for(
    suite: &Suite,
    settings: &BenchSettings,
    target: &BenchTarget,
    notes: &mut Vec<String>,
) -> Option<EngineChoice> {
    if let Some(engine) = &settings.run.engine {
        return Some(EngineChoice { instead_of: None, by: engine.clone() });
    }
    let asks_for_it =
        |test: &SuiteTest| test.options.iter().any(|(name, value)| name == "ioengine" && value == "io_uring");
    if !suite.tests.iter().any(asks_for_it) {
        return None;
    }
    let by = substitute(target, notes)?.to_owned();
    Some(EngineChoice { instead_of: Some("io_uring"), by })
}

/// The engine that was `requested`, else io_uring, or what stands in for it.
pub(crate) fn engine_or_substitute(
    requested: Option<&str>,
    target: &BenchTarget,
    notes: &mut Vec<String>,
) -> String {
    requested.or_else(|| substitute(target, notes)).unwrap_or("io_uring").to_owned()
}

/// What stands in for io_uring where that cannot be used.
fn substitute(target: &BenchTarget, notes: &mut Vec<String>) -> Option<&'static str> {
    if target.is_simulated() {
        return None;
    }
    let error = probe("io_uring").err()?;
    notes.push(format!("io_uring is not available ({}); uses libaio instead", plain(&error.source)));
    Some("libaio")
}

/// Puts the chosen engine where the options name another.
pub(crate) fn replace_engine(test: &mut PlannedTest, choice: &Option<EngineChoice>) {
    let options = &mut test.options;
    let Some(choice) = choice else { return };
    for (_, value) in options.iter_mut().filter(|(name, _)| name == "ioengine") {
        if choice.instead_of.is_none_or(|engine| engine == value) {
            value.clone_from(&choice.by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_is_an_integer_that_fio_takes() {
        for seed in [0, 1, i64::MAX as u64, 1 << 63, u64::MAX] {
            for place in [0, 1, 4096, u64::MAX] {
                let (name, value) = seed_pair(seed, place);
                assert_eq!(name, "randseed");
                assert!(value.parse::<i64>().is_ok_and(|seed| seed >= 0), "{seed} {place}: {value}");
            }
        }
        assert_eq!(seed_pair(7, 0).1, "7");
        assert_ne!(seed_pair(7, 1), seed_pair(7, 2));
    }
}
