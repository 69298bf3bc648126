//! The driver of every campaign: it draws the cases, runs those without a result, several at a time, prints a line for each, keeps
//! it, and ends with counts and a verdict. A campaign states what its cases are and what is wrong with a result.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches, Command};
use fathom_tests::{Need, Turn};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A campaign, as the command line names it.
pub struct Campaign {
    pub name: &'static str,
    pub about: &'static str,
    /// Cases that are drawn, and how many run at once, unless the command line says otherwise.
    pub cases: u64,
    pub jobs: usize,
    /// Options of its own: name, default and help. One without a default is a switch.
    pub options: &'static [(&'static str, Option<&'static str>, &'static str)],
    pub needs: &'static [Need],
    /// Results of earlier calls count until `--fresh`.
    pub resumes: bool,
    /// The turn that the whole campaign takes among tests and campaigns of this machine.
    pub turn: Option<fn() -> Turn>,
    pub plan: fn(&Asked) -> anyhow::Result<Plan>,
}

/// The cases, and what is demanded of all results beyond that none has a fault.
pub struct Plan {
    pub cases: Vec<Case>,
    verdict: Verdict,
}

type Verdict = Box<dyn FnOnce(&[CaseResult]) -> anyhow::Result<()>>;

/// One case: always the same for a seed.
pub struct Case {
    /// Unique.
    pub name: String,
    run: Box<dyn Fn() -> anyhow::Result<CaseResult> + Send + Sync>,
}

/// What came out of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    pub case: String,
    /// What is printed of it.
    pub line: String,
    /// What is wrong: each fails the campaign.
    pub faults: Vec<String>,
    /// Counts that add up over all cases, by row and column of a table; the row is empty where there is no table.
    pub counts: BTreeMap<String, BTreeMap<String, u64>>,
    /// For the verdict, and for a reader of the file.
    pub facts: Value,
}

/// The words of the command line.
pub struct Asked {
    pub cases: u64,
    /// The first seed.
    pub from: u64,
    /// Parts of names, of which a case must have one.
    pub only: String,
    /// The names are listed, and nothing is to be built.
    pub list: bool,
    own: ArgMatches,
}

impl Campaign {
    /// One with the usual behaviour: cases one after the other, all run anew.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        plan: fn(&Asked) -> anyhow::Result<Plan>,
    ) -> Self {
        let (options, needs): (&[_], &[_]) = (&[], &[]);
        Campaign { name, about, cases: 0, jobs: 1, options, needs, resumes: false, turn: None, plan }
    }

    /// Its part of the command line.
    pub fn command(&self) -> Command {
        let number = |name: &'static str, default: u64, help: &'static str| {
            let arg = Arg::new(name).long(name).value_name("N").help(format!("{help} [default: {default}]"));
            arg.value_parser(clap::value_parser!(u64).range(1..))
        };
        let switch = |name, help| Arg::new(name).long(name).help(help).action(ArgAction::SetTrue);
        let mut command = Command::new(self.name).about(self.about);
        if self.cases > 0 {
            let from = Arg::new("from").long("from").value_name("SEED").default_value("0");
            command = command.arg(number("cases", self.cases, "Cases to draw"));
            command = command.arg(from.value_parser(clap::value_parser!(u64)).help("First seed"));
        }
        command = command.arg(number("jobs", self.jobs as u64, "Cases at a time"));
        let only = Arg::new("only").long("only").value_name("TEXT").default_value("");
        command = command.arg(only.help("Run only cases with one of these texts (A,B) in their names"));
        if self.resumes {
            command = command.arg(switch("fresh", "Run cases that have a result of an earlier call, too"));
        }
        command = command.arg(switch("list", "Print the names of the cases, and run none"));
        for &(name, default, help) in self.options {
            command = command.arg(match default {
                Some(default) => {
                    Arg::new(name).long(name).value_name("VALUE").default_value(default).help(help)
                }
                None => switch(name, help),
            });
        }
        command
    }

    /// Runs what `words` ask for, and fails if the verdict is not good.
    pub fn run(&self, words: &ArgMatches) -> anyhow::Result<()> {
        let number = |name, usual| words.try_get_one::<u64>(name).ok().flatten().copied().unwrap_or(usual);
        let is_set = |name| words.try_get_one::<bool>(name).ok().flatten().copied().unwrap_or_default();
        let (cases, from) = (number("cases", self.cases), number("from", 0));
        let jobs = number("jobs", self.jobs as u64) as usize;
        let only = words.get_one::<String>("only").cloned().unwrap_or_default();
        let asked = Asked { cases, from, only, list: is_set("list"), own: words.clone() };
        let Plan { mut cases, verdict } = (self.plan)(&asked)?;
        cases.retain(|case| asked.includes(&case.name));
        ensure!(!cases.is_empty(), "no case has \"{}\" in its name: --list prints all names", asked.only);
        if asked.list {
            cases.iter().for_each(|case| println!("{}", case.name));
            return Ok(());
        }
        if let Some(why) = fathom_tests::missing(self.needs) {
            bail!("{why}");
        }
        let _turn = self.turn.map(|turn| turn());
        let path = self.results_path()?;
        if path.exists() && (!self.resumes || is_set("fresh")) {
            fs::remove_file(&path).context("cannot remove earlier results")?;
        }
        let results = run_all(&cases, &path, jobs)?;
        judge(&cases, &results)?;
        verdict(&results)
    }

    fn results_path(&self) -> anyhow::Result<PathBuf> {
        let directory = xtask::process::target_directory().join("lab");
        fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(directory.join(format!("{}.jsonl", self.name)))
    }
}

impl Plan {
    /// Cases of which none may have a fault.
    pub fn new(cases: impl IntoIterator<Item = Case>) -> Plan {
        Plan { cases: cases.into_iter().collect(), verdict: Box::new(|_| Ok(())) }
    }

    /// With one more demand.
    pub fn judged_by(self, verdict: impl FnOnce(&[CaseResult]) -> anyhow::Result<()> + 'static) -> Plan {
        Plan { verdict: Box::new(verdict), ..self }
    }
}

impl Case {
    pub fn new(
        name: impl Into<String>,
        run: impl Fn() -> anyhow::Result<CaseResult> + Send + Sync + 'static,
    ) -> Case {
        Case { name: name.into(), run: Box::new(run) }
    }
}

impl CaseResult {
    pub fn new(line: impl Into<String>) -> CaseResult {
        CaseResult { line: line.into(), ..CaseResult::default() }
    }

    pub fn count(self, column: &str, number: usize) -> CaseResult {
        self.count_in("", column, number)
    }

    pub fn count_in(mut self, row: &str, column: &str, number: usize) -> CaseResult {
        *self.counts.entry(row.to_owned()).or_default().entry(column.to_owned()).or_default() +=
            number as u64;
        self
    }

    pub fn faults(mut self, faults: impl IntoIterator<Item = String>) -> CaseResult {
        self.faults.extend(faults);
        self
    }

    pub fn facts(self, facts: Value) -> CaseResult {
        CaseResult { facts, ..self }
    }

    fn shown(&self) -> String {
        let faults: String = self.faults.iter().map(|fault| format!("\n    FAULT: {fault}")).collect();
        format!("{}: {}{faults}", self.case, self.line)
    }
}

impl Asked {
    pub fn seeds(&self) -> Range<u64> {
        self.from..self.from.saturating_add(self.cases)
    }

    /// Whether `--only` permits a case with this name.
    pub fn includes(&self, name: &str) -> bool {
        self.only.split(',').any(|part| name.contains(part))
    }

    /// An option of the campaign's own.
    pub fn text(&self, name: &str) -> &str {
        self.own.get_one::<String>(name).map_or("", String::as_str)
    }

    pub fn number(&self, name: &str) -> anyhow::Result<u64> {
        self.text(name).parse().with_context(|| format!("--{name} is a whole number"))
    }

    /// Whether a switch of the campaign's own is set.
    pub fn is_set(&self, name: &str) -> bool {
        self.own.get_flag(name)
    }
}

/// Runs `run` for each of `items`, `jobs` at a time.
pub fn in_parallel<T: Sync>(items: &[T], jobs: usize, run: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            run(item);
        }
    };
    std::thread::scope(|scope| {
        (0..jobs.max(1)).for_each(|_| _ = scope.spawn(work));
    });
}

/// Runs the cases that have no result in the file at `path`, and returns the results of all that could be measured.
fn run_all(cases: &[Case], path: &Path, jobs: usize) -> anyhow::Result<Vec<CaseResult>> {
    let kept = kept_results(path);
    let left: Vec<&Case> = cases.iter().filter(|case| !kept.contains_key(&case.name)).collect();
    println!("{} cases, {} of them left; results in {}", cases.len(), left.len(), path.display());
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = Mutex::new(file.with_context(|| format!("cannot open {}", path.display()))?);
    in_parallel(&left, jobs, |case| {
        let why = match catch_unwind(AssertUnwindSafe(|| (case.run)())) {
            Ok(Ok(result)) => {
                let result = CaseResult { case: case.name.clone(), ..result };
                println!("{}", result.shown());
                let mut file = file.lock().expect("no thread panics with it");
                let line = serde_json::to_string(&result).expect("a result is JSON");
                match writeln!(file, "{line}") {
                    Ok(()) => return,
                    Err(error) => format!("its result cannot be kept: {error}"),
                }
            }
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => "its message is above".to_owned(),
        };
        println!("{}: not measured: {why}", case.name);
    });
    let mut results = kept_results(path);
    Ok(cases.iter().filter_map(|case| results.remove(&case.name)).collect())
}

/// The results in a file; a line that was cut off counts for nothing.
fn kept_results(path: &Path) -> BTreeMap<String, CaseResult> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let results = text.lines().filter_map(|line| serde_json::from_str::<CaseResult>(line).ok());
    results.map(|result| (result.case.clone(), result)).collect()
}

/// Prints counts and faults, and fails if there are faults or cases without a result.
fn judge(cases: &[Case], results: &[CaseResult]) -> anyhow::Result<()> {
    let faulty: Vec<&CaseResult> = results.iter().filter(|result| !result.faults.is_empty()).collect();
    println!();
    faulty.iter().for_each(|result| println!("{}", result.shown()));
    let counts = total(results);
    println!("{}{} cases, {} with faults", shown_counts(&counts), results.len(), faulty.len());
    ensure!(faulty.is_empty(), "{} of {} cases have faults", faulty.len(), results.len());
    let missing = cases.len() - results.len();
    ensure!(missing == 0, "{missing} of {} cases could not be measured", cases.len());
    Ok(())
}

/// The sum of a column over all rows and results.
pub fn sum(results: &[CaseResult], column: &str) -> u64 {
    total(results).values().filter_map(|columns| columns.get(column)).sum()
}

fn total(results: &[CaseResult]) -> BTreeMap<&str, BTreeMap<&str, u64>> {
    let mut total: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for (row, columns) in results.iter().flat_map(|result| &result.counts) {
        for (column, number) in columns {
            *total.entry(row).or_default().entry(column).or_default() += number;
        }
    }
    total
}

/// A line for counts without rows, a table for others.
fn shown_counts(counts: &BTreeMap<&str, BTreeMap<&str, u64>>) -> String {
    let mut text = String::new();
    let columns: std::collections::BTreeSet<&str> = counts
        .iter()
        .filter(|(row, _)| !row.is_empty())
        .flat_map(|(_, columns)| columns.keys().copied())
        .collect();
    let cells = |cell: &dyn Fn(&str) -> String| {
        columns
            .iter()
            .map(|column| format!(" {:>width$}", cell(column), width = column.len().max(6)))
            .collect::<String>()
    };
    if !columns.is_empty() {
        text += &format!("{:<34}{}\n", "", cells(&|column| column.to_owned()));
    }
    for (row, numbers) in counts {
        if row.is_empty() {
            let parts: Vec<String> =
                numbers.iter().map(|(column, number)| format!("{column}: {number}")).collect();
            text += &format!("{}\n", parts.join("; "));
        } else {
            let cell = |column: &str| numbers.get(column).copied().unwrap_or_default().to_string();
            text += &format!("{row:<34}{}\n", cells(&cell));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_with_a_result_are_not_run_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.jsonl");
        let runs = std::sync::Arc::new(AtomicUsize::new(0));
        let case = |name: &str, is_broken: bool| {
            let runs = runs.clone();
            Case::new(name, move || {
                runs.fetch_add(1, Ordering::Relaxed);
                ensure!(!is_broken, "no device");
                Ok(CaseResult::new("fine").count("held", 2))
            })
        };
        let all = [case("a", false), case("b", true), case("c", false)];
        let measured = || run_all(&all, &path, 2).unwrap();
        let results = measured();
        assert_eq!(results.iter().map(|result| result.case.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!((runs.load(Ordering::Relaxed), sum(&results, "held")), (3, 4));
        assert!(
            judge(&all, &results).unwrap_err().to_string().contains("1 of 3 cases could not be measured")
        );
        // A case that could not be measured is tried again, and so is one whose result was cut off.
        assert_eq!((measured(), runs.load(Ordering::Relaxed)), (results.clone(), 4));
        fs::write(&path, "{\"case\":\"a\"\n").unwrap();
        assert_eq!((measured(), runs.load(Ordering::Relaxed)), (results, 7));
    }

    #[test]
    fn a_fault_fails_the_campaign() {
        let cases =
            [Case::new("a", || Ok(CaseResult::new("x"))), Case::new("b", || Ok(CaseResult::new("y")))];
        let good = CaseResult { case: "a".to_owned(), ..CaseResult::new("x") };
        let bad = CaseResult { case: "b".to_owned(), ..CaseResult::new("y") }.faults(["late".to_owned()]);
        assert!(judge(&cases, &[good.clone(), good.clone()]).is_ok());
        assert_eq!(judge(&cases, &[good, bad.clone()]).unwrap_err().to_string(), "1 of 2 cases have faults");
        assert_eq!(bad.shown(), "b: y\n    FAULT: late");
    }

    #[test]
    fn counts_are_a_line_or_a_table() {
        let result = CaseResult::new("").count("held", 3).count("outside", 0);
        assert_eq!(shown_counts(&total(&[result.clone(), result])), "held: 6; outside: 0\n");
        let result = CaseResult::new("").count_in("6.1 nvme", "refused", 7).count_in("6.1 lvm", "failed", 1);
        let table = shown_counts(&total(&[result]));
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows,
            [vec!["failed", "refused"], vec!["6.1", "lvm", "1", "0"], vec!["6.1", "nvme", "0", "7"]]
        );
    }
}
