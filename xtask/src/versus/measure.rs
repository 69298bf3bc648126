//! Measures rows: the runs of each, and the figures from them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::first_read;
use super::lab::{Lab, Subject, in_turn};
use super::load::{Cpus, RunLoad};
use super::recording::RecordingCost;
use super::resident::{self, Count};
use super::rows::{Against, ComparedPair, RowMeasure, TableRow};
use super::sample::{RunSample, SampleFigure};
use super::statistics::{Round, median};

/// The share of its CPUs that a job has on a quiet machine: starting and ending take a little of the wall time.
const QUIET_SHARE: f64 = 0.97;

/// Blocks from which on the start of a pass is lost among its offsets.
const LARGE: u64 = 4096;
/// Rows that compare fathom with itself look for a hundredth, and have so many times the rounds.
const MORE_ROUNDS: usize = 6;
/// Rounds of rows whose figure hardly differs from one to the next.
pub const MEMORY_ROUNDS: usize = 3;

/// The measurement of a row.
#[derive(Clone, Debug, Default)]
pub struct MeasuredRow {
    /// In the order in which they were made.
    pub rounds: Vec<Round>,
    /// Notes for the reader.
    pub remark: Option<String>,
    /// Other processes had the CPUs for part of a run; the remark has the share.
    pub is_disturbed: bool,
    /// The command lines, fathom's first.
    pub commands: Vec<String>,
}

impl MeasuredRow {
    /// Rounds of jobs that never wait, the least share of whose CPUs was `share`.
    fn of_busy_jobs(rounds: Vec<Round>, commands: Vec<String>, share: f64) -> Self {
        let remark = disturbed(share);
        MeasuredRow { rounds, commands, is_disturbed: remark.is_some(), remark }
    }
}

/// The runs of one pair.
struct PairRuns {
    pair: ComparedPair,
    commands: Vec<String>,
    samples: Vec<(RunSample, RunSample)>,
}

/// Measures one row after the other.
pub struct Bench<'a> {
    lab: &'a Lab,
    rounds: usize,
    start_rounds: usize,
    /// The pair measured last; the next row may want another figure of it.
    last_pair: Option<PairRuns>,
}

impl<'a> Bench<'a> {
    /// A bench that makes so many rounds.
    pub fn new(lab: &'a Lab, rounds: usize, start_rounds: usize) -> Self {
        Bench { lab, rounds, start_rounds, last_pair: None }
    }

    /// Measures `row`. Without rounds where this machine cannot; the remark then says why.
    pub fn measure(&mut self, row: &TableRow) -> anyhow::Result<MeasuredRow> {
        match row.measure {
            _ if row.measure.is_recorded() && self.lab.device.is_none() => {
                let remark = Some("not measured: this takes root and loop devices".to_owned());
                Ok(MeasuredRow { remark, ..MeasuredRow::default() })
            }
            RowMeasure::Pair(pair, figure) => self.pair(pair, figure),
            RowMeasure::Scaling(load) => self.scaling(load),
            RowMeasure::Resident(load) => self.resident(load),
            RowMeasure::ResidentGrowth(load) => self.resident_growth(load),
            RowMeasure::Start(load) => self.start(load),
            RowMeasure::NextOffset => self.next_offset(),
        }
    }

    fn pair(&mut self, pair: ComparedPair, figure: SampleFigure) -> anyhow::Result<MeasuredRow> {
        let runs = match self.last_pair.take() {
            Some(runs) if runs.pair == pair => runs,
            _ => self.run_pair(pair)?,
        };
        let round = |(ours, theirs): &(RunSample, RunSample)| Round {
            ours: ours.figure(figure),
            theirs: Some(theirs.figure(figure)),
        };
        let rounds = runs.samples.iter().map(round).collect();
        let shares = runs.samples.iter().flat_map(|(ours, theirs)| [ours.share_of(1), theirs.share_of(1)]);
        // Jobs that wait for a device leave their CPU on purpose.
        let share = if pair.load.direct || pair.load.work.waits() { 1.0 } else { shares.fold(1.0, f64::min) };
        let mut measured = MeasuredRow::of_busy_jobs(rounds, runs.commands.clone(), share);
        measured.remark = measured.remark.or_else(|| recorded(&runs.samples));
        self.last_pair = Some(runs);
        Ok(measured)
    }

    fn run_pair(&self, pair: ComparedPair) -> anyhow::Result<PairRuns> {
        let theirs = match pair.against {
            Against::Fio => Subject::Fio,
            Against::FioAtBest => Subject::FioAtBest,
            Against::BareRing => self.best_bare_ring(pair.load)?,
            Against::BarePread => Subject::BarePread,
            Against::Unshown => Subject::FathomUnshown,
        };
        let more = if pair.against == Against::Unshown { MORE_ROUNDS } else { 1 };
        let subjects = [Subject::Fathom, theirs];
        let mut samples = Vec::new();
        for round in 0..self.rounds * more {
            self.lab.warm_for(pair.load)?;
            let both = in_turn(round, &subjects, |subject| self.lab.sample(subject, pair.load))?;
            samples.push((both[0], both[1]));
        }
        let commands = subjects.map(|subject| self.lab.shown(subject, pair.load)).to_vec();
        Ok(PairRuns { pair, commands, samples })
    }

    /// The batch that is cheapest today.
    fn best_bare_ring(&self, load: RunLoad) -> anyhow::Result<Subject> {
        let candidates = [Subject::BareRing(16), Subject::BareRing(32)];
        self.lab.warm_for(load)?;
        let mut figures = [Vec::new(), Vec::new()];
        for round in 0..3 {
            let both = in_turn(round, &candidates, |subject| self.lab.sample(subject, load))?;
            for (figures, sample) in figures.iter_mut().zip(both) {
                figures.push(sample.figure(SampleFigure::PerCpuSecond));
            }
        }
        Ok(candidates[usize::from(median(&figures[1]) > median(&figures[0]))])
    }

    fn scaling(&self, load: RunLoad) -> anyhow::Result<MeasuredRow> {
        if self.lab.cpus.len() < 2 {
            let remark = Some("not measured: this takes two CPUs".to_owned());
            return Ok(MeasuredRow { remark, ..MeasuredRow::default() });
        }
        let one = RunLoad { jobs: 1, cpus: Cpus::One, ..load };
        let least_share = Cell::new(1.0);
        let (four, commands) = self.four_runs(&[load, one], self.rounds, |subject, load| {
            let sample = self.lab.sample(subject, load)?;
            let cpus = if load.cpus == Cpus::One { 1 } else { 2 };
            least_share.set(sample.share_of(cpus).min(least_share.get()));
            Ok(sample.figure(SampleFigure::PerSecond))
        })?;
        let of_twice_one = |many: f64, one: f64| many / (2.0 * one);
        let rounds = combined(&four, of_twice_one);
        Ok(MeasuredRow::of_busy_jobs(rounds, commands, least_share.get()))
    }

    fn resident(&self, load: RunLoad) -> anyhow::Result<MeasuredRow> {
        let mut rounds = Vec::new();
        for round in 0..self.rounds.min(MEMORY_ROUNDS) {
            let both =
                in_turn(round, &[Subject::Fathom, Subject::Fio], |subject| self.peak_mib(subject, load))?;
            rounds.push(Round { ours: both[0], theirs: Some(both[1]) });
        }
        let commands = [Subject::Fathom, Subject::Fio].map(|subject| self.lab.shown(subject, load));
        Ok(MeasuredRow { rounds, commands: commands.to_vec(), ..MeasuredRow::default() })
    }

    fn resident_growth(&self, load: RunLoad) -> anyhow::Result<MeasuredRow> {
        let small = RunLoad { size: "1g", ..load };
        let (four, commands) =
            self.four_runs(&[load, small], self.rounds.min(MEMORY_ROUNDS), |subject, load| {
                self.peak_mib(subject, load)
            })?;
        let grown = |large: f64, small: f64| large - small;
        Ok(MeasuredRow { rounds: combined(&four, grown), commands, ..MeasuredRow::default() })
    }

    fn peak_mib(&self, subject: Subject, load: RunLoad) -> anyhow::Result<f64> {
        // fathom is one process; fio is one per job, with much in common.
        let count = if subject == Subject::Fathom { Count::Process } else { Count::Family };
        let peak = resident::peak_mib(self.lab.start(subject, load)?, count);
        peak.with_context(|| self.lab.shown(subject, load))
    }

    /// Runs fathom and fio with both of `loads` in each round; answers fathom's two, then fio's two.
    fn four_runs(
        &self,
        loads: &[RunLoad; 2],
        rounds: usize,
        run: impl Fn(Subject, RunLoad) -> anyhow::Result<f64>,
    ) -> anyhow::Result<(Vec<[f64; 4]>, Vec<String>)> {
        let runs = [
            (Subject::Fathom, loads[0]),
            (Subject::Fathom, loads[1]),
            (Subject::Fio, loads[0]),
            (Subject::Fio, loads[1]),
        ];
        let mut four = Vec::new();
        for round in 0..rounds {
            self.lab.warm_for(loads[0])?;
            let figures = in_turn(round, &runs, |(subject, load)| run(subject, load))?;
            four.push([figures[0], figures[1], figures[2], figures[3]]);
        }
        Ok((four, runs.map(|(subject, load)| self.lab.shown(subject, load)).to_vec()))
    }

    fn start(&self, load: RunLoad) -> anyhow::Result<MeasuredRow> {
        let subjects = [Subject::Fathom, Subject::Fio];
        let mut rounds = Vec::new();
        self.lab.warm_for(load)?;
        for round in 0..self.start_rounds {
            let both = in_turn(round, &subjects, |subject| first_read::start_ms(self.lab, subject, load))?;
            rounds.push(Round { ours: both[0], theirs: Some(both[1]) });
        }
        let commands = subjects.map(|subject| self.lab.shown(subject, load)).to_vec();
        Ok(MeasuredRow { rounds, commands, ..MeasuredRow::default() })
    }

    fn next_offset(&self) -> anyhow::Result<MeasuredRow> {
        let mut command = Command::new(&self.lab.programs.next_offset);
        command.arg("--rounds=30").stdin(Stdio::null());
        let mut by_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for _ in 0..self.rounds {
            let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
            if !output.status.success() {
                bail!("{command:?} ended with {}", output.status);
            }
            for (blocks, ns) in sizes(&String::from_utf8_lossy(&output.stdout))? {
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
        Ok(MeasuredRow { rounds, remark: Some(remark), commands, ..MeasuredRow::default() })
    }
}

/// The remark on a row with a run in which the jobs, which never wait, had only this share of their CPUs.
fn disturbed(share: f64) -> Option<String> {
    (share < QUIET_SHARE).then(|| {
        format!("disturbed: in one run its CPUs were with something else for {:.0} %", 100.0 * (1.0 - share))
    })
}

/// The remark on runs that were recorded: what the recorder took and lost.
fn recorded(samples: &[(RunSample, RunSample)]) -> Option<String> {
    let recordings: Vec<(RecordingCost, f64)> =
        samples.iter().filter_map(|(ours, _)| Some((ours.recording?, ours.wall_ns))).collect();
    let lost: u64 = recordings.iter().map(|(cost, _)| cost.lost).sum();
    let shares: Vec<f64> = recordings.iter().map(|(cost, wall_ns)| cost.cpu_ns / wall_ns * 100.0).collect();
    (!recordings.is_empty()).then(|| {
        format!(
            "{lost} events lost in {} recordings; the recorder took {:.1} % of a CPU (median)",
            recordings.len(),
            median(&shares)
        )
    })
}

/// Rounds of a figure that takes two runs of each program.
fn combined(four: &[[f64; 4]], figure: impl Fn(f64, f64) -> f64) -> Vec<Round> {
    let round =
        |runs: &[f64; 4]| Round { ours: figure(runs[0], runs[1]), theirs: Some(figure(runs[2], runs[3])) };
    four.iter().map(round).collect()
}

/// Blocks and ns, line by line.
fn sizes(text: &str) -> anyhow::Result<Vec<(u64, f64)>> {
    let size = |line: &str| {
        let value: Value = serde_json::from_str(line).ok()?;
        Some((value["blocks"].as_u64()?, value["ns"].as_f64()?))
    };
    text.lines().map(|line| size(line).with_context(|| format!("not a size and its time: {line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_two_runs_of_each_program() {
        let rounds = combined(&[[9.0, 5.0, 8.0, 8.0]], |many, one| many / (2.0 * one));
        assert_eq!(rounds, [Round { ours: 0.9, theirs: Some(0.5) }]);
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
}
