//! Runs one program once, and lets programs take turns. Knows no rows.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail};
use fathom_tests::LoopDevice;
use tempfile::TempDir;

use super::data_file::DataFile;
use super::load::{BEST_OPTIONS, LOG, RunLoad, Shown, Work};
use super::programs::Programs;
use super::recording::Recording;
use super::sample::RunSample;
use super::shown_run;

/// A program with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// fathom under fio's command line.
    Fathom,
    /// The same, with nothing that shows its run.
    FathomUnshown,
    /// fio with the same words.
    Fio,
    /// fio with its best options.
    FioAtBest,
    /// The bare ring, with this batch size.
    BareRing(u32),
    /// The bare loop over pread.
    BarePread,
}

/// Everything a run needs.
#[derive(Debug)]
pub struct Lab {
    /// The available programs.
    pub programs: Programs,
    /// The file to read.
    pub file: DataFile,
    /// The file to write, in memory, so that no writing back disturbs what follows.
    pub in_memory: DataFile,
    /// The device in memory of rows that record one, if there are any.
    pub device: Option<LoopDevice>,
    /// Where logs are written.
    pub logs: TempDir,
    /// How long, in seconds.
    pub seconds: u32,
    /// The CPUs that we may use, ascending; at least one.
    pub cpus: Vec<usize>,
}

impl Lab {
    /// The words after the program's name.
    fn arguments(&self, subject: Subject, load: RunLoad, file: &str) -> Vec<String> {
        let cpu = self.cpus.last().copied().unwrap_or_default();
        let bare = |more: &str| format!("{file} --seconds={} --cpu={cpu}{more}", self.seconds);
        let split = |words: String| words.split(' ').map(str::to_owned).collect();
        match subject {
            Subject::Fathom | Subject::FathomUnshown => {
                let shown = if subject == Subject::Fathom { load.shown.words() } else { &[] };
                let mut words = vec!["fio".to_owned()];
                words.extend(load.arguments(file, self.seconds, &self.cpus));
                words.extend(shown.iter().map(|word| (*word).to_owned()));
                words
            }
            Subject::Fio => load.arguments(file, self.seconds, &self.cpus),
            Subject::FioAtBest => {
                let mut words = load.arguments(file, self.seconds, &self.cpus);
                words.extend(BEST_OPTIONS.iter().map(|word| (*word).to_owned()));
                words
            }
            Subject::BareRing(batch) => split(bare(&format!(" --depth={} --batch={batch}", load.depth))),
            Subject::BarePread => split(bare("")),
        }
    }

    fn program(&self, subject: Subject) -> &Path {
        match subject {
            Subject::Fathom | Subject::FathomUnshown => &self.programs.fathom,
            Subject::Fio | Subject::FioAtBest => &self.programs.fio,
            Subject::BareRing(_) => &self.programs.bare_ring,
            Subject::BarePread => &self.programs.bare_pread,
        }
    }

    /// The command line as one would type it, with `FILE` for the file.
    pub fn shown(&self, subject: Subject, load: RunLoad) -> String {
        let program = match subject {
            Subject::Fathom | Subject::FathomUnshown => "fathom",
            Subject::Fio | Subject::FioAtBest => "fio",
            Subject::BareRing(_) => "bare_ring",
            Subject::BarePread => "bare_pread",
        };
        let file = if load.shown == Shown::Recorded { "DEVICE" } else { "FILE" };
        let line = format!("{program} {}", self.arguments(subject, load, file).join(" "));
        match subject == Subject::Fathom && load.shown == Shown::Recorded {
            true => format!("{line}, while fathom monitor --no-owners --record LOG.load DEVICE"),
            false => line,
        }
    }

    fn command(&self, subject: Subject, load: RunLoad) -> Command {
        let mut command = Command::new(self.program(subject));
        let device = self.device.as_ref().filter(|_| load.shown == Shown::Recorded);
        let target = match device {
            Some(device) => &device.path().display().to_string(),
            None if load.work == Work::Verified => &self.in_memory.path,
            None => &self.file.path,
        };
        let log = self.logs.path().join("q").display().to_string();
        let arguments = self.arguments(subject, load, target);
        command.args(arguments.iter().map(|word| word.replace(LOG, &log))).stdin(Stdio::null());
        // fio leaves files of its state where it stands.
        command.current_dir("/");
        command
    }

    /// Runs it to its end and parses its output.
    pub fn sample(&self, subject: Subject, load: RunLoad) -> anyhow::Result<RunSample> {
        let command = self.command(subject, load);
        let shown = if subject == Subject::Fathom { load.shown } else { Shown::Nothing };
        let device = self.device.as_ref().filter(|_| shown == Shown::Recorded);
        let record = |device| Recording::start(&self.programs.fathom, device, self.logs.path());
        let recording = device.map(record).transpose()?;
        let children_before = children_ns()?;
        let output = shown_run::output(command, shown, &self.logs.path().join("q.json"))?;
        let process_ns = children_ns()? - children_before;
        let recording = recording.map(Recording::finish).transpose()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let failed = || {
            let messages = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            format!("`{}` ended with {}: {messages}", self.shown(subject, load), output.status)
        };
        if !output.status.success() {
            bail!(failed());
        }
        let sample = match subject {
            Subject::BareRing(_) | Subject::BarePread => RunSample::from_bare_loop(&text),
            _ => RunSample::from_document(&text),
        };
        Ok(RunSample { process_ns, recording, ..sample.with_context(failed)? })
    }

    /// Starts it without waiting; its output is dropped.
    pub fn start(&self, subject: Subject, load: RunLoad) -> anyhow::Result<Child> {
        let mut command = self.command(subject, load);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().with_context(|| format!("cannot run {command:?}"))
    }

    /// Gets the file into the page cache where `load` reads it.
    pub fn warm_for(&self, load: RunLoad) -> anyhow::Result<()> {
        if load.is_on_file() { self.file.warm() } else { Ok(()) }
    }
}

/// Runs each of `subjects`, in the opposite order in every other round, so that what drifts troubles all alike. Answers in
/// the order of `subjects`.
pub fn in_turn<S: Copy, T>(
    round: usize,
    subjects: &[S],
    mut run: impl FnMut(S) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<T>> {
    if round.is_multiple_of(2) {
        return subjects.iter().map(|subject| run(*subject)).collect();
    }
    let mut results: Vec<T> =
        subjects.iter().rev().map(|subject| run(*subject)).collect::<anyhow::Result<_>>()?;
    results.reverse();
    Ok(results)
}

/// CPU time of the waited-for children and their children, ns; the kernel counts it in ticks.
pub fn children_ns() -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    let ticks = children_ticks(&stat).context("/proc/self/stat holds no times of children")?;
    Ok(ticks as f64 * 1e9 / rustix::param::clock_ticks_per_second() as f64)
}

/// `cutime` and `cstime`: the 16th and 17th field, counted behind the name, which may hold anything.
fn children_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(13);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// The time, for what a program cannot be asked for.
#[allow(clippy::disallowed_methods)] // For the comparison with fio, not for a record.
pub fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_round_is_reversed() {
        let check = |round, expected: &str| {
            let mut order = String::new();
            let answers = in_turn(round, &['a', 'b', 'c'], |subject| {
                order.push(subject);
                Ok(subject.to_ascii_uppercase())
            });
            assert_eq!(answers.unwrap(), ['A', 'B', 'C']);
            assert_eq!(order, expected);
        };
        check(0, "abc");
        check(1, "cba");
        check(2, "abc");
    }

    #[test]
    fn the_first_failure_ends_a_round() {
        let mut runs = 0;
        let failed = in_turn(1, &[1, 2, 3], |subject| {
            runs += 1;
            if subject == 2 { bail!("no") } else { Ok(()) }
        });
        assert!(failed.is_err());
        assert_eq!(runs, 2);
    }

    #[test]
    fn process_names_may_contain_any_character() {
        let check = |stat: &str, expected| assert_eq!(children_ticks(stat), expected, "{stat}");
        check("7 (a) R) S 1 2 3 4 5 6 7 8 9 10 11 12 130 14 15", Some(144));
        check("7 (a) S 1 2 3", None);
        check("", None);
    }
}
