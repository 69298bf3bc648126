//! Measures rows: the runs of each, and the figures from them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use fathom_tests::{LoopDevice, Need};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::Value;
use xtask::process::{output, root};

use super::load::RunLoad;
use super::resident::{Count, peak_mib};
use super::runs::{DataFile, Lab, Programs, RecordingCost, RunSample, Subject};
use super::{Against, Figure, MeasuredRow, Round, Settings, TableRow, median};

/// The share of its CPUs that a job has on a quiet machine: starting and ending take a little of the wall time.
const QUIET_SHARE: f64 = 0.97;
/// Blocks from which on the start of a pass is lost among its offsets.
const LARGE: u64 = 4096;
/// Rows that compare fathom with itself look for a hundredth, and have so many times the rounds.
const MORE_ROUNDS: usize = 6;
/// Rounds of rows whose figure hardly differs from one to the next.
const MEMORY_ROUNDS: usize = 3;
/// Size of the device that is recorded.
const DEVICE_BYTES: u64 = 256 << 20;

/// Measures one row after the other.
pub struct Bench {
    lab: Lab,
    rounds: usize,
    start_rounds: usize,
    /// The machine, the programs and the rounds, in one line.
    pub about: String,
    /// The runs measured last; the next row may want another figure of them.
    last: Option<PairRuns>,
}

/// The runs of fathom and of what it is compared with.
struct PairRuns {
    load: RunLoad,
    against: Against,
    commands: Vec<String>,
    samples: Vec<(RunSample, RunSample)>,
}

impl Bench {
    /// Builds the programs, and makes files and a device if rows need one and this machine can make it.
    pub fn prepare(settings: &Settings, has_bench: bool, has_device: bool) -> anyhow::Result<Bench> {
        let programs = Programs::prepare(has_bench)?;
        let set = sched_getaffinity(None).context("cannot ask which CPUs may be used")?;
        let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
        let needs = [Need::Root, Need::Tool("losetup"), Need::Path("/dev/shm")];
        let has_device = has_device && fathom_tests::missing(&needs).is_none();
        let Settings { rounds, start_rounds, seconds, .. } = *settings;
        let about = format!(
            "Measured {}; {rounds} rounds of {seconds} s, {start_rounds} of the start, {} of memory.",
            host(&programs, cpus.len())?,
            rounds.min(MEMORY_ROUNDS)
        );
        let lab = Lab {
            programs,
            file: DataFile::create(&settings.directory)?,
            in_memory: DataFile::create(Path::new("/dev/shm"))?,
            device: has_device.then(|| LoopDevice::in_memory(DEVICE_BYTES)),
            logs: tempfile::tempdir().context("cannot make a directory for logs")?,
            seconds,
            cpus,
        };
        Ok(Bench { lab, rounds, start_rounds, about, last: None })
    }

    /// Measures `row`. Without rounds if this machine cannot; the remark then says why.
    pub fn measure(&mut self, row: &TableRow) -> anyhow::Result<MeasuredRow> {
        let impossible = |why: &str| {
            let remark = Some(format!("not measured: this takes {why}"));
            Ok(MeasuredRow { remark, ..MeasuredRow::default() })
        };
        let (rounds, load) = (self.rounds, &row.load);
        let both = |load: &RunLoad| [(Subject::Fathom, load.clone()), (Subject::Fio, load.clone())];
        match row.figure {
            _ if load.is_recorded() && self.lab.device.is_none() => impossible("root and loop devices"),
            Figure::NextOffset => self.next_offset(),
            Figure::Scaling if self.lab.cpus.len() < 2 => impossible("two CPUs"),
            Figure::Scaling => self.scaling(load),
            Figure::Resident => self.in_rounds(rounds.min(MEMORY_ROUNDS), &both(load), |subject, load| {
                self.peak_mib(subject, load)
            }),
            Figure::ResidentGrowth => {
                let small = RunLoad { size: "1g".to_owned(), ..load.clone() };
                let runs = alternating(load, &small);
                let grown = |runs: &[f64]| runs[0] - runs[1];
                let peak = |subject, load: &RunLoad| self.peak_mib(subject, load);
                self.in_combined_rounds(rounds.min(MEMORY_ROUNDS), &runs, grown, peak)
            }
            Figure::Start => {
                self.lab.warm_for(load)?;
                let start = |subject, load: &RunLoad| self.lab.start_ms(subject, load);
                self.in_rounds(self.start_rounds, &both(load), start)
            }
            _ => self.pair(row),
        }
    }

    fn pair(&mut self, row: &TableRow) -> anyhow::Result<MeasuredRow> {
        let runs = match self.last.take() {
            Some(runs) if runs.load == row.load && runs.against == row.against => runs,
            _ => self.run_pair(row)?,
        };
        let round = |(ours, theirs): &(RunSample, RunSample)| Round {
            ours: ours.figure(row.figure),
            theirs: Some(theirs.figure(row.figure)),
        };
        let rounds = runs.samples.iter().map(round).collect();
        let shares = runs.samples.iter().flat_map(|(ours, theirs)| [ours.share_of(1), theirs.share_of(1)]);
        // Jobs that wait for a device leave their CPU on purpose.
        let disturbed = if row.load.waits() { None } else { disturbed(shares.fold(1.0, f64::min)) };
        let is_disturbed = disturbed.is_some();
        let remark = disturbed.or_else(|| recorded(&runs.samples));
        let commands = runs.commands.clone();
        self.last = Some(runs);
        Ok(MeasuredRow { rounds, remark, is_disturbed, commands })
    }

    fn run_pair(&self, row: &TableRow) -> anyhow::Result<PairRuns> {
        let load = &row.load;
        let theirs = match row.against {
            Against::Fio => Subject::Fio,
            Against::FioAtBest => Subject::FioAtBest,
            Against::BareRing => self.best_bare_ring(load)?,
            Against::BarePread => Subject::BarePread,
            Against::Unshown => Subject::FathomUnshown,
        };
        let more = if row.against == Against::Unshown { MORE_ROUNDS } else { 1 };
        let subjects = [Subject::Fathom, theirs];
        let mut samples = Vec::new();
        for round in 0..self.rounds * more {
            self.lab.warm_for(load)?;
            let both = in_turn(round, &subjects, |subject| self.lab.sample(*subject, load))?;
            samples.push((both[0], both[1]));
        }
        let commands = subjects.map(|subject| self.lab.shown(subject, load)).to_vec();
        Ok(PairRuns { load: load.clone(), against: row.against, commands, samples })
    }

    /// The batch that is cheapest today.
    fn best_bare_ring(&self, load: &RunLoad) -> anyhow::Result<Subject> {
        let candidates = [Subject::BareRing(16), Subject::BareRing(32)];
        self.lab.warm_for(load)?;
        let mut figures = [Vec::new(), Vec::new()];
        for round in 0..3 {
            let both = in_turn(round, &candidates, |subject| self.lab.sample(*subject, load))?;
            for (figures, sample) in figures.iter_mut().zip(both) {
                figures.push(sample.figure(Figure::PerCpuSecond));
            }
        }
        Ok(candidates[usize::from(median(&figures[1]) > median(&figures[0]))])
    }

    fn scaling(&self, load: &RunLoad) -> anyhow::Result<MeasuredRow> {
        let runs = alternating(load, &RunLoad { jobs: 1, cpus: 1, ..load.clone() });
        let mut least_share = 1.0;
        let of_twice_one = |runs: &[f64]| runs[0] / (2.0 * runs[1]);
        let mut measured = self.in_combined_rounds(self.rounds, &runs, of_twice_one, |subject, load| {
            let sample = self.lab.sample(subject, load)?;
            least_share = sample.share_of(load.cpus).min(least_share);
            Ok(sample.figure(Figure::PerSecond))
        })?;
        measured.remark = disturbed(least_share);
        measured.is_disturbed = measured.remark.is_some();
        Ok(measured)
    }

    fn peak_mib(&self, subject: Subject, load: &RunLoad) -> anyhow::Result<f64> {
        // fathom is one process; fio is one per job, with much in common.
        let count = if subject == Subject::Fathom { Count::Process } else { Count::Family };
        peak_mib(self.lab.start(subject, load)?, count).with_context(|| self.lab.shown(subject, load))
    }

    /// Rounds of a figure that takes one run of each program.
    fn in_rounds(
        &self,
        rounds: usize,
        runs: &[(Subject, RunLoad)],
        run: impl FnMut(Subject, &RunLoad) -> anyhow::Result<f64>,
    ) -> anyhow::Result<MeasuredRow> {
        self.in_combined_rounds(rounds, runs, |figures| figures[0], run)
    }

    /// Rounds of a figure that `combined` makes of the runs of a program: the first half of `runs` is fathom's, the other fio's.
    fn in_combined_rounds(
        &self,
        rounds: usize,
        runs: &[(Subject, RunLoad)],
        combined: impl Fn(&[f64]) -> f64,
        mut run: impl FnMut(Subject, &RunLoad) -> anyhow::Result<f64>,
    ) -> anyhow::Result<MeasuredRow> {
        let mut measured = MeasuredRow::default();
        for round in 0..rounds {
            self.lab.warm_for(&runs[0].1)?;
            let figures = in_turn(round, runs, |(subject, load)| run(*subject, load))?;
            let (ours, theirs) = figures.split_at(runs.len() / 2);
            measured.rounds.push(Round { ours: combined(ours), theirs: Some(combined(theirs)) });
        }
        measured.commands = runs.iter().map(|(subject, load)| self.lab.shown(*subject, load)).collect();
        Ok(measured)
    }

    fn next_offset(&self) -> anyhow::Result<MeasuredRow> {
        let mut by_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for _ in 0..self.rounds {
            let text = output(Command::new(&self.lab.programs.next_offset).arg("--rounds=30"))?;
            for (blocks, ns) in sizes(&text)? {
                by_size.entry(blocks).or_default().push(ns);
            }
        }
        let slowest = by_size.iter().max_by(|a, b| median(a.1).total_cmp(&median(b.1)));
        let (blocks, slowest) = slowest.context("the bench of the next offset printed nothing")?;
        let large = by_size.range(LARGE..).map(|(_, ns)| median(ns)).fold(0.0, f64::max);
        let remark = format!(
            "the slowest of {} sizes is {blocks} blocks; from {LARGE} blocks on it is {large:.1} ns at most",
            by_size.len()
        );
        let rounds = slowest.iter().map(|ns| Round { ours: *ns, theirs: None }).collect();
        let commands = vec!["next_offset --rounds=30".to_owned()];
        Ok(MeasuredRow { rounds, remark: Some(remark), commands, is_disturbed: false })
    }
}

/// fathom with both loads, then fio with both.
fn alternating(one: &RunLoad, other: &RunLoad) -> Vec<(Subject, RunLoad)> {
    let both = |subject| [(subject, one.clone()), (subject, other.clone())];
    [both(Subject::Fathom), both(Subject::Fio)].concat()
}

/// Runs each of `subjects`, in the opposite order in every other round, so that what drifts troubles all alike. Answers in
/// the order of `subjects`.
fn in_turn<S, T>(
    round: usize,
    subjects: &[S],
    mut run: impl FnMut(&S) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<T>> {
    if round.is_multiple_of(2) {
        return subjects.iter().map(run).collect();
    }
    let mut results: Vec<T> = subjects.iter().rev().map(&mut run).collect::<anyhow::Result<_>>()?;
    results.reverse();
    Ok(results)
}

/// The remark on a row with a run in which the jobs, which never wait, had only this share of their CPUs.
fn disturbed(share: f64) -> Option<String> {
    let percent = 100.0 * (1.0 - share);
    let remark = format!("disturbed: in one run its CPUs were with something else for {percent:.0} %");
    (share < QUIET_SHARE).then_some(remark)
}

/// The remark on runs that were recorded: what the recorder took and lost.
fn recorded(samples: &[(RunSample, RunSample)]) -> Option<String> {
    let recordings: Vec<(RecordingCost, f64)> =
        samples.iter().filter_map(|(ours, _)| Some((ours.recording?, ours.wall_ns))).collect();
    let lost: u64 = recordings.iter().map(|(cost, _)| cost.lost).sum();
    let shares: Vec<f64> = recordings.iter().map(|(cost, wall_ns)| cost.cpu_ns / wall_ns * 100.0).collect();
    let remark = format!(
        "{lost} events lost in {} recordings; the recorder took {:.1} % of a CPU (median)",
        recordings.len(),
        median(&shares)
    );
    (!recordings.is_empty()).then_some(remark)
}

/// Blocks and ns, line by line.
fn sizes(text: &str) -> anyhow::Result<Vec<(u64, f64)>> {
    let size = |line: &str| {
        let value: Value = serde_json::from_str(line).ok()?;
        Some((value["blocks"].as_u64()?, value["ns"].as_f64()?))
    };
    text.lines().map(|line| size(line).with_context(|| format!("not a size and its time: {line}"))).collect()
}

/// The day, the machine and the versions, in one line.
fn host(programs: &Programs, cpus: usize) -> anyhow::Result<String> {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let cpu = cpu_name(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default());
    let plural = if cpus == 1 { "CPU" } else { "CPUs" };
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").context("which kernel is this?")?;
    let version = |program: &Path| output(Command::new(program).arg("--version"));
    let (fathom, fio) = (version(&programs.fathom)?, version(&programs.fio)?);
    let commit = commit().map(|commit| format!(" ({commit})")).unwrap_or_default();
    Ok(format!("{date}, {cpu}, {cpus} {plural}, Linux {}, {fathom}{commit} and {fio}", kernel.trim()))
}

/// The model, which not every architecture names.
fn cpu_name(cpu_info: &str) -> String {
    let model = cpu_info.lines().find_map(|line| line.strip_prefix("model name"));
    let name = model.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.filter(|name| !name.is_empty()).unwrap_or(std::env::consts::ARCH).to_owned()
}

/// The commit of the working tree, and whether it differs; `None` outside a repository.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| output(Command::new("git").current_dir(root()).args(arguments)).ok();
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no", "--", "crates", "Cargo.toml"])?;
    Some(if changes.is_empty() { format!("commit {commit}") } else { format!("commit {commit} and changes") })
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;

    use super::*;

    #[test]
    fn every_second_round_is_reversed() {
        let check = |round, expected: &str| {
            let mut order = String::new();
            let answers = in_turn(round, &['a', 'b', 'c'], |subject| {
                order.push(*subject);
                Ok(subject.to_ascii_uppercase())
            });
            assert_eq!(answers.unwrap(), ['A', 'B', 'C']);
            assert_eq!(order, expected);
        };
        check(0, "abc");
        check(1, "cba");
        check(2, "abc");
        let mut runs = 0;
        let failed = in_turn(1, &[1, 2, 3], |subject| {
            runs += 1;
            ensure!(*subject != 2, "the first failure ends a round");
            Ok(())
        });
        assert_eq!((failed.is_err(), runs), (true, 2));
    }

    #[test]
    fn recordings_say_what_they_took_and_lost() {
        let sample = |cpu_ns, lost| {
            let recording = Some(RecordingCost { cpu_ns, lost });
            (RunSample { wall_ns: 1e9, recording, ..RunSample::default() }, RunSample::default())
        };
        let expected = "7 events lost in 3 recordings; the recorder took 3.0 % of a CPU (median)";
        let samples = [sample(2e7, 0), sample(3e7, 7), sample(9e7, 0)];
        assert_eq!(recorded(&samples).as_deref(), Some(expected));
        assert_eq!(recorded(&[(RunSample::default(), RunSample::default())]), None);
    }

    #[test]
    fn rows_say_when_they_were_disturbed() {
        let check = |share, expected: Option<&str>| assert_eq!(disturbed(share).as_deref(), expected);
        check(1.0, None);
        check(0.97, None);
        check(0.58, Some("disturbed: in one run its CPUs were with something else for 42 %"));
    }

    #[test]
    fn sizes_are_read_line_by_line() {
        let text = "{\"blocks\":2,\"block_size\":4096,\"ns\":1.500}\n{\"blocks\":3,\"ns\":2}\n";
        assert_eq!(sizes(text).unwrap(), [(2, 1.5), (3, 2.0)]);
        assert!(sizes("{\"blocks\":2}").is_err());
    }

    #[test]
    fn the_cpu_is_named_by_model_or_architecture() {
        let check = |cpu_info: &str, expected: &str| assert_eq!(cpu_name(cpu_info), expected, "{cpu_info}");
        check("processor\t: 0\nmodel name\t: Some CPU: 9\nmodel name\t: Other\n", "Some CPU: 9");
        check("processor\t: 0\nBogoMIPS\t: 50\n", std::env::consts::ARCH);
        check("model name\t:\n", std::env::consts::ARCH);
    }
}
