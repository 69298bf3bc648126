//! The fuzz targets of `fuzz/`: built with the stable toolchain, and run by `cargo xtask campaign fuzz` for as long as one likes,
//! over several calls. Their known inputs are tests of the workspace (`fuzz/tests/replay.rs`).

mod arguments;
mod build;
mod corpus;
mod finding;
mod progress;
mod session;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::bail;

use arguments::FuzzArguments;
use progress::FuzzProgress;
use session::{FuzzSession, FuzzTally};

/// Where the parts of a fuzzing run lie.
struct Places {
    root: PathBuf,
    target: PathBuf,
}

impl Places {
    fn new(root: &Path) -> Places {
        Places { root: root.to_owned(), target: crate::gate::target_directory(root) }
    }

    /// The build directory of the targets, with logs, seeds and dictionaries.
    fn build(&self) -> PathBuf {
        self.target.join("fuzz")
    }

    /// The corpus of a target, over all runs.
    fn corpus(&self, target: &str) -> PathBuf {
        self.target.join("fuzz-corpus").join(target)
    }

    /// Inputs that made a target fail.
    fn findings(&self, target: &str) -> PathBuf {
        self.build().join("findings").join(target)
    }

    /// Regression inputs.
    fn regressions(&self, target: &str) -> PathBuf {
        self.root.join("fuzz/regressions").join(target)
    }
}

/// `cargo xtask campaign fuzz`.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let asked = FuzzArguments::parse(arguments)?;
    if let Some(why) = build::missing() {
        bail!("{why}");
    }
    let places = Places::new(root);
    let targets = chosen(build::targets(root)?, &asked.only)?;
    println!("{}", FuzzTally::HEAD);
    let session = |name: &str, program: &Path| -> anyhow::Result<FuzzTally> {
        let progress = FuzzProgress::of(&places, name, program)?;
        let mut progress = if asked.fresh { progress.fresh() } else { progress };
        let mut runs = 0;
        // On a busy machine the CPU time of a session is less than its time.
        loop {
            let (seconds, progress_now) = (asked.seconds, Some(progress));
            let session = FuzzSession { places: &places, name, program, seconds, progress: progress_now };
            let tally = session.run()?;
            runs += tally.runs;
            if tally.finding.is_some() || session.is_over(tally.time) {
                let tally = FuzzTally { runs, ..tally };
                println!("{tally}");
                return Ok(tally);
            }
            progress = FuzzProgress::of(&places, name, program)?;
        }
    };
    run(&places, &targets, asked.jobs, &session)?;
    Ok(())
}

/// Builds the targets and runs a session of each, several concurrently; fails with all findings once every target has ended.
fn run(
    places: &Places,
    targets: &[String],
    jobs: usize,
    session: &(dyn Fn(&str, &Path) -> anyhow::Result<FuzzTally> + Sync),
) -> anyhow::Result<Vec<FuzzTally>> {
    let programs = build::build(places, targets)?;
    let (next, tallies) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> anyhow::Result<()> {
        while let Some((name, program)) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let tally = session(name, program)?;
            tallies.lock().expect("no thread panics").push(tally);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no thread panics"))
    })?;
    let tallies = tallies.into_inner().expect("no thread panics");
    let findings: Vec<&str> = tallies.iter().filter_map(|tally| tally.finding.as_deref()).collect();
    if findings.is_empty() { Ok(tallies) } else { bail!("{}", findings.join("\n\n")) }
}

/// The targets that `only` names, or all.
fn chosen(targets: Vec<String>, only: &[String]) -> anyhow::Result<Vec<String>> {
    if let Some(unknown) = only.iter().find(|name| !targets.contains(name)) {
        bail!("there is no fuzz target {unknown}; there are {}", targets.join(", "));
    }
    Ok(targets.into_iter().filter(|target| only.is_empty() || only.contains(target)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_targets_or_all_are_run() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let all = || names(&["record", "suite", "trace"]);
        assert_eq!(chosen(all(), &[]).unwrap(), all());
        assert_eq!(chosen(all(), &names(&["trace", "record"])).unwrap(), names(&["record", "trace"]));
        let error = chosen(all(), &names(&["record", "suit"])).unwrap_err().to_string();
        assert_eq!(error, "there is no fuzz target suit; there are record, suite, trace");
    }
}
