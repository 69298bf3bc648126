//! What campaigns of many cases share, on devices or beside fio: cases that run a few at a time, and results that a later call
//! continues from.
//!
//! Each result is a line of JSON in a file of the build directory, and a case that has one is not measured again.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, bail};
use fathom_tests::Need;
use serde_json::Value;

/// A campaign on devices.
pub struct DeviceCampaign<C> {
    /// Its name on the command line, and of the directory of its results.
    pub name: &'static str,
    /// Cases, and how many of them are measured at once, unless arguments say otherwise.
    pub usual: (u64, usize),
    pub needs: &'static [Need],
    /// The case of this number: always the same.
    pub case: fn(u64) -> C,
    /// A unique name.
    pub name_of: fn(&C) -> &str,
    /// Measures a case; the result is an object.
    pub measure: fn(&C) -> Value,
    /// A result in a line of text.
    pub shown: fn(&Value) -> String,
}

/// The arguments.
#[derive(Debug, PartialEq, Eq)]
struct CampaignArguments {
    cases: u64,
    jobs: usize,
    fresh: bool,
    only: Option<String>,
}

impl CampaignArguments {
    fn parse(arguments: &[&str], (cases, jobs): (u64, usize)) -> anyhow::Result<CampaignArguments> {
        let mut asked = CampaignArguments { cases, jobs, fresh: false, only: None };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut number = || -> anyhow::Result<u64> {
                let value = words.next().with_context(|| format!("{word} needs a value"))?;
                let number = value.parse().ok().filter(|number| (1..=10_000).contains(number));
                number.with_context(|| format!("{word} is a whole number from 1 to 10000"))
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

impl<C: Sync + std::panic::RefUnwindSafe> DeviceCampaign<C> {
    /// Measures the cases that have no result yet, and returns all results, `case` being the name of each.
    pub fn run(&self, root: &Path, arguments: &[&str]) -> anyhow::Result<Vec<Value>> {
        let asked = CampaignArguments::parse(arguments, self.usual)?;
        if let Some(why) = fathom_tests::missing(self.needs) {
            bail!("{why}");
        }
        let directory = crate::gate::target_directory(root).join(self.name);
        fs::create_dir_all(&directory).context("cannot create the directory of the results")?;
        let path = directory.join("results.jsonl");
        if asked.fresh && path.exists() {
            fs::remove_file(&path).context("cannot remove the results")?;
        }
        let all = (0..asked.cases).map(self.case);
        let cases: Vec<C> = all
            .filter(|case| asked.only.as_ref().is_none_or(|only| (self.name_of)(case).contains(only)))
            .collect();
        let done = results(&path)?;
        let has_result = |case: &&C| done.iter().any(|line| line["case"] == (self.name_of)(case));
        let left: Vec<&C> = cases.iter().filter(|case| !has_result(case)).collect();
        println!("{} cases, {} of them left; results in {}", cases.len(), left.len(), path.display());
        self.measure_all(&left, &path, asked.jobs)?;
        let is_asked = |line: &Value| cases.iter().any(|case| line["case"] == (self.name_of)(case));
        Ok(results(&path)?.into_iter().filter(is_asked).collect())
    }

    fn measure_all(&self, left: &[&C], path: &Path, jobs: usize) -> anyhow::Result<()> {
        let file =
            OpenOptions::new().create(true).append(true).open(path).context("cannot open the results")?;
        let (next, file) = (AtomicUsize::new(0), Mutex::new(file));
        let work = || -> anyhow::Result<()> {
            while let Some(case) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                // A device that cannot be measured is left for the next time.
                let Ok(mut line) = std::panic::catch_unwind(|| (self.measure)(case)) else { continue };
                line["case"] = (self.name_of)(case).into();
                println!("{}", (self.shown)(&line));
                writeln!(file.lock().expect("no thread panics with it"), "{line}")?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("panics are caught"))
        })
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
        let parsed = |arguments: &[&str]| {
            CampaignArguments::parse(arguments, (120, 4)).map_err(|error| error.to_string())
        };
        let usual = CampaignArguments { cases: 120, jobs: 4, fresh: false, only: None };
        assert_eq!(parsed(&[]), Ok(usual));
        let asked = CampaignArguments { cases: 8, jobs: 2, fresh: true, only: Some("decay".to_owned()) };
        assert_eq!(parsed(&["--cases", "8", "--jobs", "2", "--fresh", "--only", "decay"]), Ok(asked));
        assert_eq!(parsed(&["--cases"]), Err("--cases needs a value".to_owned()));
        assert_eq!(parsed(&["--jobs", "0"]), Err("--jobs is a whole number from 1 to 10000".to_owned()));
        assert!(parsed(&["--hours", "1"]).is_err());
    }
}
