//! `cargo xtask campaign identify-devices`: identifies capped devices whose limits are known and reports how many intervals hold
//! them, and whether buckets were invented where a rate decays or another process takes a share.
//!
//! Each result is a line of a file in the build directory, and a device that has one is not measured again. The devices are loop
//! devices in memory under the kernel's throttle: reads and writes have separate limits.

mod case;
mod run;
mod verdict;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, bail};
use serde_json::Value;

use case::DeviceCase;
use verdict::Tally;

/// Devices of a full campaign: more than a hundred limits.
const USUAL_CASES: u64 = 120;
/// Devices that are measured at once: each is capped far below what the machine can do.
const USUAL_JOBS: usize = 4;

/// The arguments.
#[derive(Debug, PartialEq, Eq)]
struct CampaignArguments {
    cases: u64,
    jobs: usize,
    fresh: bool,
    only: Option<String>,
}

impl CampaignArguments {
    fn parse(arguments: &[&str]) -> anyhow::Result<CampaignArguments> {
        let mut asked = CampaignArguments { cases: USUAL_CASES, jobs: USUAL_JOBS, fresh: false, only: None };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut number = || -> anyhow::Result<u64> {
                let value = words.next().with_context(|| format!("{word} needs a value"))?;
                let number = value.parse().ok().filter(|number| (1..=10_000).contains(number));
                number.with_context(|| format!("{word} is a whole number above 0"))
            };
            match *word {
                "--cases" => asked.cases = number()?,
                "--jobs" => asked.jobs = number()? as usize,
                "--fresh" => asked.fresh = true,
                "--only" => asked.only = Some((*words.next().context("--only needs a value")?).to_owned()),
                _ => bail!("{word} is not an argument; there are --cases, --jobs, --only and --fresh"),
            }
        }
        Ok(asked)
    }
}

/// Runs the campaign, or what is left of it.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let asked = CampaignArguments::parse(arguments)?;
    if let Some(why) = run::missing() {
        bail!("{why}");
    }
    let directory = crate::gate::target_directory(root).join("identify-devices");
    fs::create_dir_all(&directory).context("cannot create the directory of the results")?;
    let path = directory.join("results.jsonl");
    if asked.fresh && path.exists() {
        fs::remove_file(&path).context("cannot remove the results")?;
    }
    let done = results(&path)?;
    let cases: Vec<DeviceCase> = (0..asked.cases)
        .map(DeviceCase::of)
        .filter(|case| asked.only.as_ref().is_none_or(|only| case.name.contains(only)))
        .collect();
    let left: Vec<&DeviceCase> =
        cases.iter().filter(|case| !done.iter().any(|line| line["case"] == *case.name)).collect();
    println!("{} devices, {} of them left; results in {}", cases.len(), left.len(), path.display());
    let file = OpenOptions::new().create(true).append(true).open(&path).context("cannot open the results")?;
    let (next, file) = (AtomicUsize::new(0), Mutex::new(file));
    let work = || -> anyhow::Result<()> {
        while let Some(case) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
            // A device that cannot be measured is left for the next time.
            let Ok(document) = std::panic::catch_unwind(|| run::identify(case)) else { continue };
            let line = verdict::judged(case, &document);
            println!("{}", verdict::shown(&line));
            writeln!(file.lock().expect("no thread panics with it"), "{line}")?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..asked.jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("panics are caught"))
    })?;
    let named = |line: &Value| cases.iter().any(|case| line["case"] == *case.name);
    let tally = Tally::of(results(&path)?.iter().filter(|line| named(line)));
    println!("{tally}");
    if tally.holds() {
        Ok(())
    } else {
        bail!("fewer than 90 % of the intervals hold, or a bucket was invented")
    }
}

/// The lines that there are; one that was cut off is measured again.
fn results(path: &Path) -> anyhow::Result<Vec<Value>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).context("cannot read the results")?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed_or_refused() {
        let parsed =
            |arguments: &[&str]| CampaignArguments::parse(arguments).map_err(|error| error.to_string());
        let usual = CampaignArguments { cases: 120, jobs: 4, fresh: false, only: None };
        assert_eq!(parsed(&[]), Ok(usual));
        let asked = CampaignArguments { cases: 8, jobs: 2, fresh: true, only: Some("decay".to_owned()) };
        assert_eq!(parsed(&["--cases", "8", "--jobs", "2", "--fresh", "--only", "decay"]), Ok(asked));
        assert_eq!(parsed(&["--cases"]), Err("--cases needs a value".to_owned()));
        assert_eq!(parsed(&["--jobs", "0"]), Err("--jobs is a whole number above 0".to_owned()));
        assert!(parsed(&["--hours", "1"]).is_err());
    }
}
