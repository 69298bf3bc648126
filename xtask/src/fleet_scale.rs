//! `cargo xtask campaign fleet-scale`: 200 ranks under `mpiexec`, whose records rank 0 gathers, and `fathom merge` of 10,000 records;
//! prints what both take beside the limits.
//!
//! Times are printed and not judged: they are those of the machine, and of an idle one only where it is. Results are judged.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use fathom_tests::{Cluster, Launcher, Program, fathom, fathom_path, loading, scratch};
use serde_json::{Value, json};

use crate::versus::resident::{Count, peak_mib};

/// Ranks, on so many hosts.
const RANKS: usize = 200;
const HOSTS: usize = 2;
/// What each measures: so many I/Os a second of no device, for so long.
const IOPS: u64 = 50;
const RUNTIME_S: u64 = 5;
/// Longest time to gather and to report, and the most memory.
const LIMIT_S: f64 = 10.0;
const MEMORY_LIMIT_MIB: f64 = 1024.0;
/// Longest wait for a job that is not meant to hang.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs the campaign.
pub fn campaign(_root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let records = match arguments {
        [] => 10_000,
        ["--records", count] => count.parse().context("--records is a whole number")?,
        _ => bail!("the only argument is --records COUNT"),
    };
    let _loading = loading();
    merge(records)?;
    gather()
}

/// Merges and reports copies of the record of a simulated minute, each with a rank and a host of its own.
fn merge(records: u64) -> anyhow::Result<()> {
    let home = scratch();
    let path = |name: &str| home.path().join(name);
    let job =
        ["fio", "--keep", "--name=randread", "--filename=sim\\:custom?iops=3000&latency=300us&size=10GiB"];
    let load =
        ["--rw=randread", "--bs=4k", "--iodepth=8", "--ioengine=io_uring", "--time_based=1", "--runtime=60"];
    finished(fathom(home.path()).args(job).args(load))?;
    let text = finished(fathom(home.path()).args(["history", "export", "last"]))?;
    let mut record: Value = serde_json::from_str(&text).context("the history exports no record")?;
    let ios = record["tests"][0]["jobs"][0]["measured"]["read"]["ios"].as_u64().context("no I/Os")?;
    fs::create_dir(path("records"))?;
    for rank in 0..records {
        let header = &mut record["header"];
        header["labels"] = json!({ "rank": rank.to_string(), "ranks": records.to_string() });
        header["hosts"] = json!([{ "hostname": format!("h{rank:05}") }]);
        fs::write(path("records").join(format!("rank-{rank:05}.json")), record.to_string())?;
    }
    let mut command = fathom(home.path());
    command.args(["merge", "--no-history", "--json", "--report"]).args([path("page.html"), path("records")]);
    let begun = crate::gate::now();
    let child = command.stdout(File::create(path("merged.json"))?).spawn()?;
    let mib = peak_mib(child, Count::Process)?;
    println!("{records} records of {} KiB each", text.len() / 1024);
    println!("  merged and reported in {}", beside_limit(begun.elapsed().as_secs_f64()));
    println!("  with {mib:.0} MiB of memory (limit {MEMORY_LIMIT_MIB:.0} MiB)");
    let merged: Value = serde_json::from_str(&fs::read_to_string(path("merged.json"))?)?;
    let total = &merged["jobs"][0]["read"]["total_ios"];
    ensure!(*total == records * ios, "the records have {} I/Os, and the merged one {total}", records * ios);
    ensure!(mib <= MEMORY_LIMIT_MIB, "merging takes too much memory");
    Ok(())
}

/// Has ranks measure, and rank 0 gather.
fn gather() -> anyhow::Result<()> {
    let cluster = Cluster::start().context("a cluster cannot be started here")?;
    let (home, per_host) = (scratch(), RANKS / HOSTS);
    let out = home.path().join("out");
    let mut job = cluster.launch(Launcher::Mpiexec, &cluster.hosts()[..HOSTS], per_host);
    job.env("HOME", home.path()).env_remove("XDG_DATA_HOME").arg(fathom_path());
    job.args(["fio", "--fleet", "--name=a", "--ioengine=null", "--rw=randread", "--size=1g", "--time_based"]);
    job.arg(format!("--runtime={RUNTIME_S}")).arg(format!("--rate_iops={IOPS}")).arg("--output-format=json");
    job.arg(format!("--fleet-out={}", out.display()));
    let begun = crate::gate::now();
    let text = finished(&mut job)?;
    let (took, ended_ms) = (begun.elapsed(), jiff::Timestamp::now().as_millisecond());
    let document: Value = serde_json::from_str(&text).context("rank 0 prints no document")?;
    let fleet = &document["fathom"]["fleet"];
    ensure!(fleet["merged"] == RANKS && fleet["missing"].as_array().is_some_and(Vec::is_empty), "{fleet}");
    let last_ms = last_end_ms(&out)?;
    let spread_ns = fleet["start_spread_ns"].as_u64().context("the report has no spread of starts")?;
    println!("{RANKS} ranks under mpiexec on {HOSTS} hosts");
    println!("  started within {:.1} ms", spread_ns as f64 / 1e6);
    println!("  gathered, reported and ended in {}", beside_limit((ended_ms - last_ms) as f64 / 1e3));
    println!("  whole job {:.1} s, of which {RUNTIME_S} s measured", took.as_secs_f64());
    let read: u64 = fleet["tests"][0]["hosts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|host| host["ios"][0].as_u64())
        .sum();
    ensure!(document["jobs"][0]["read"]["total_ios"] == read, "the ranks have {read} I/Os: {document}");
    Ok(())
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
    fn times_stand_beside_the_limit() {
        assert_eq!(beside_limit(2.84), "2.8 s (limit 10 s: met)");
        assert_eq!(beside_limit(10.4), "10.4 s (limit 10 s: missed)");
    }

    #[test]
    fn other_arguments_are_refused() {
        let error = campaign(Path::new("/nonexistent"), &["--ranks", "7"]).unwrap_err();
        assert_eq!(error.to_string(), "the only argument is --records COUNT");
    }
}
