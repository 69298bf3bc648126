//! `fleet-failures`: jobs of many ranks in which one is killed in each phase, hangs, loses its host, finds no room for its record or has
//! another version, ten times under each launcher. `fleet-scale`: 200 ranks whose records rank 0 gathers, and 10,000 records merged.
//!
//! Hosts are namespaces of this machine; jobs that run at once have a cluster each, which serves for the next job if it can.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use fathom_tests::{
    Cluster, FailureOutcome, FleetFailure, Launcher, PlantedFailure, Program, RankPhase, fathom, fathom_path,
    loading, scratch,
};
use serde_json::{Value, json};
use xtask::process::now;

use crate::driver::{Campaign, Case, CaseResult, Plan};
use crate::versus::resident::{Count, peak_mib};

/// Each failure under each launcher, so many times.
const REPEATS: usize = 10;
const CASES: usize = REPEATS * FleetFailure::ALL.len() * Launcher::MEETING.len();

/// A job must not hang, end with a code that is not documented, keep quiet about a rank, or lose what the others measured.
pub const FAILURES: Campaign = Campaign {
    cases: CASES as u64,
    jobs: 3,
    needs: Cluster::NEEDS,
    resumes: true,
    ..Campaign::new(
        "fleet-failures",
        "Let ranks die, hang and lose their hosts under each launcher",
        |asked| {
            let clusters = Arc::new(Mutex::new(Vec::new()));
            Ok(Plan::new(asked.seeds().map(|index| {
                let (planted, clusters) = (planted(index as usize), clusters.clone());
                let PlantedFailure { launcher, failure, repeat } = planted;
                let name = format!("{}-{}-{repeat}", launcher.name(), failure.name());
                Case::new(name, move || fail(&planted, &clusters))
            })))
        },
    )
};

pub const SCALE: Campaign = Campaign {
    options: &[("records", Some("10000"), "Records to merge")],
    turn: Some(loading),
    ..Campaign::new("fleet-scale", "Gather 200 ranks under mpiexec, and merge 10,000 records", |asked| {
        let records = asked.number("records")?;
        let merged = Case::new("merge", move || merge(records));
        Ok(Plan::new([merged, Case::new("gather", gather)]))
    })
};

/// The `index`th: all failures come once under each launcher before one comes again.
fn planted(index: usize) -> PlantedFailure {
    let (launchers, failures) = (Launcher::MEETING, FleetFailure::ALL);
    PlantedFailure {
        launcher: launchers[index % launchers.len()],
        failure: failures[index / launchers.len() % failures.len()],
        repeat: index / (launchers.len() * failures.len()),
    }
}

/// Runs the job on a cluster that waits for one, or on a new one.
fn fail(planted: &PlantedFailure, clusters: &Mutex<Vec<Cluster>>) -> anyhow::Result<CaseResult> {
    let waiting = clusters.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let cluster = waiting.or_else(Cluster::start).context("a cluster cannot be started here")?;
    let outcome = planted.run(&cluster);
    // A launcher's behaviour towards a host that was gone for a while is another question.
    if planted.failure != FleetFailure::CableCut && cluster.settles() {
        clusters.lock().unwrap_or_else(PoisonError::into_inner).push(cluster);
    }
    Ok(judged(planted, &outcome))
}

fn judged(planted: &PlantedFailure, outcome: &FailureOutcome) -> CaseResult {
    let phase = planted.phase().map_or("from the beginning", RankPhase::name);
    let code = outcome.code().map_or_else(|| "no code".to_owned(), |code| format!("code {code}"));
    let violations = outcome.violations();
    let verdict = if violations.is_empty() { "held" } else { "violated" };
    let printed = (!violations.is_empty()).then(|| outcome.printed());
    CaseResult::new(format!("{verdict}; {phase}, {code}, {:.1} s", outcome.seconds))
        .count_in(planted.failure.name(), planted.launcher.name(), usize::from(violations.is_empty()))
        .count_in(planted.failure.name(), "violated", violations.len().min(1))
        .faults(violations)
        .facts(json!({"kept": outcome.kept, "printed": printed}))
}

/// Ranks, on so many hosts.
const RANKS: usize = 200;
const HOSTS: usize = 2;
/// What each measures: so many I/Os a second of no device, for so long.
const IOPS: u64 = 50;
const RUNTIME_S: u64 = 5;
/// Longest time to gather and to report, which is printed and not judged: it is that of the machine. Most memory.
const LIMIT_S: f64 = 10.0;
const MAX_MIB: f64 = 1024.0;
/// Longest wait for a job that is not meant to hang.
const PATIENCE: Duration = Duration::from_secs(300);

/// Merges and reports copies of the record of a short run, each with a rank and a host of its own.
fn merge(records: u64) -> anyhow::Result<CaseResult> {
    let home = scratch();
    let path = |name: &str| home.path().join(name);
    let words = "fio --keep --name=randread --ioengine=null --size=1g --rw=randread --rate_iops=3000 --time_based --runtime=5";
    finished(fathom(home.path()).args(words.split(' ')))?;
    let text = finished(fathom(home.path()).args(["history", "export", "last"]))?;
    let mut record: Value = serde_json::from_str(&text).context("the history exports no record")?;
    let ios = record["tests"][0]["jobs"][0]["measured"]["read"]["ios"].as_u64().context("no I/Os")?;
    fs::create_dir(path("records"))?;
    for rank in 0..records {
        let header = &mut record["header"];
        header["labels"] = json!({ "rank": rank.to_string(), "ranks": records.to_string() });
        header["hosts"][0]["hostname"] = json!(format!("h{rank:05}"));
        fs::write(path("records").join(format!("rank-{rank:05}.json")), record.to_string())?;
    }
    let mut command = fathom(home.path());
    command.args(["merge", "--no-history", "--json", "--report"]).args([path("page.html"), path("records")]);
    let begun = now();
    let mib = peak_mib(command.stdout(fs::File::create(path("merged.json"))?).spawn()?, Count::Process)?;
    let line = format!(
        "{records} records of {} KiB each merged and reported in {}, with {mib:.0} MiB of memory (limit {MAX_MIB:.0} MiB)",
        text.len() / 1024,
        beside_limit(begun.elapsed().as_secs_f64())
    );
    let merged: Value = serde_json::from_str(&fs::read_to_string(path("merged.json"))?)?;
    let total = &merged["jobs"][0]["read"]["total_ios"];
    let lost =
        (*total != records * ios).then(|| format!("the records have {} I/Os, not {total}", records * ios));
    let too_large = (mib > MAX_MIB).then(|| "merging takes too much memory".to_owned());
    Ok(CaseResult::new(line).faults(lost).faults(too_large))
}

/// Has ranks measure, and rank 0 gather.
fn gather() -> anyhow::Result<CaseResult> {
    let cluster = Cluster::start().context("a cluster cannot be started here")?;
    let (home, per_host) = (scratch(), RANKS / HOSTS);
    let out = home.path().join("out");
    let mut job = cluster.launch(Launcher::Mpiexec, &cluster.hosts()[..HOSTS], per_host);
    job.env("HOME", home.path()).env_remove("XDG_DATA_HOME").arg(fathom_path());
    job.args(["fio", "--fleet", "--name=a", "--ioengine=null", "--rw=randread", "--size=1g", "--time_based"]);
    job.arg(format!("--runtime={RUNTIME_S}")).arg(format!("--rate_iops={IOPS}")).arg("--output-format=json");
    job.arg(format!("--fleet-out={}", out.display()));
    let begun = now();
    let text = finished(&mut job)?;
    let (took, ended_ms) = (begun.elapsed(), jiff::Timestamp::now().as_millisecond());
    let document: Value = serde_json::from_str(&text).context("rank 0 prints no document")?;
    let fleet = &document["fathom"]["fleet"];
    ensure!(fleet["merged"] == RANKS && fleet["missing"].as_array().is_some_and(Vec::is_empty), "{fleet}");
    let last_ms = last_end_ms(&out)?;
    let spread_ns = fleet["start_spread_ns"].as_u64().context("the report has no spread of starts")?;
    let hosts = fleet["tests"][0]["hosts"].as_array().into_iter().flatten();
    let read: u64 = hosts.filter_map(|host| host["ios"][0].as_u64()).sum();
    ensure!(document["jobs"][0]["read"]["total_ios"] == read, "the ranks have {read} I/Os: {document}");
    Ok(CaseResult::new(format!(
        "{RANKS} ranks under mpiexec on {HOSTS} hosts started within {:.1} ms; gathered, reported and ended in {}; whole job \
         {:.1} s, of which {RUNTIME_S} s measured",
        spread_ns as f64 / 1e6,
        beside_limit((ended_ms - last_ms) as f64 / 1e3),
        took.as_secs_f64()
    )))
}

/// When the last rank ended its measurement, ms since the epoch: the hosts share a clock.
fn last_end_ms(out: &Path) -> anyhow::Result<i64> {
    let mut last = 0;
    for rank in 0..RANKS {
        let path = out.join(format!("rank-{rank:05}.json"));
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let test = &serde_json::from_str::<Value>(&text).context("a record is JSON")?["tests"][0];
        let end_ns = test["jobs"][0]["measured"]["end_ns"].as_i64();
        let (start_ms, end_ns) =
            test["started_unix_ms"].as_i64().zip(end_ns).context("a record has times")?;
        last = last.max(start_ms + end_ns / 1_000_000);
    }
    Ok(last)
}

/// The output of a command that must succeed.
fn finished(command: &mut Command) -> anyhow::Result<String> {
    let ended = Program::start(command).finish_within(PATIENCE);
    ensure!(ended.status.success(), "{ended}");
    Ok(ended.stdout)
}

fn beside_limit(seconds: f64) -> String {
    let outcome = if seconds <= LIMIT_S { "met" } else { "missed" };
    format!("{seconds:.1} s (limit {LIMIT_S:.0} s: {outcome})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_comes_ten_times_under_each_launcher() {
        let names: std::collections::BTreeSet<String> = (0..CASES)
            .map(planted)
            .map(|planted| {
                format!("{} {} {}", planted.launcher.name(), planted.failure.name(), planted.repeat)
            })
            .collect();
        assert_eq!(names.len(), CASES);
        assert!((0..CASES).all(|index| planted(index).repeat < REPEATS));
    }

    #[test]
    fn times_stand_beside_their_limit() {
        assert_eq!(beside_limit(9.96), "10.0 s (limit 10 s: met)");
        assert_eq!(beside_limit(10.5), "10.5 s (limit 10 s: missed)");
    }
}
