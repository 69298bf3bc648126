//! `fathom merge` and `fathom fleet`: many records, one report.

use std::path::Path;

use serde_json::{Value, json};

use crate::{Ended, run, scratch};

const VOLUME: &str = "sim:custom?iops=3000&latency=500us&size=10GiB";

/// The record of a rank that measured a simulated volume.
fn bench(dir: &Path, rank: u32, ranks: u32, volume: &str) -> String {
    let labels = [format!("--label=rank={rank}"), format!("--label=ranks={ranks}")];
    let seed = format!("--seed={}", rank + 1);
    let fixed = ["bench", "--runtime=10", "--only=lat-read,rand-read", "--history=h.db"];
    let words = [&fixed[..], &[&labels[0], &labels[1], &seed, volume]].concat();
    run(dir, &words).succeeded();
    exported(dir, &format!("rank-{rank}.json"))
}

fn exported(dir: &Path, file: &str) -> String {
    run(dir, &["history", "--history=h.db", "export", "last", "-o", file]).succeeded();
    file.to_owned()
}

/// The record of a job under fio's name.
fn fio(dir: &Path, name: &str, depth: u32) -> String {
    let words = [
        "fio",
        "--keep",
        "--name=job",
        "--filename=sim\\:custom?iops=3000&latency=500us&size=10GiB",
        "--rw=randread",
        "--bs=4k",
        "--time_based=1",
        "--runtime=10",
        "--ioengine=io_uring",
        &format!("--iodepth={depth}"),
    ];
    run(dir, &words).succeeded();
    let file = format!("{name}.json");
    run(dir, &["history", "export", "last", "-o", &file]).succeeded();
    file
}

/// Changes a record in its file.
fn edit(dir: &Path, file: &str, change: impl Fn(&mut Value)) {
    let path = dir.join(file);
    let mut record: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut record);
    std::fs::write(&path, record.to_string() + "\n").unwrap();
}

/// Gives a record a host and a start.
fn on_host(dir: &Path, file: &str, host: &str, started_unix_ms: u64) {
    edit(dir, file, |record| {
        record["header"]["hosts"] = json!([{ "hostname": host, "boot_id": host }]);
        record["header"]["started_unix_ms"] = started_unix_ms.into();
        for test in record["tests"].as_array_mut().unwrap() {
            test["started_unix_ms"] = started_unix_ms.into();
        }
    });
}

fn document(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

fn code(ended: &Ended) -> i32 {
    ended.code.unwrap()
}

/// The merged report without the line that differs from version to version.
fn without_version(text: &str) -> String {
    text.replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn ranks_add_up_and_a_missing_one_is_named() {
    let dir = scratch();
    for rank in [0, 1, 3] {
        bench(dir.path(), rank, 4, VOLUME);
    }
    let merged = run(dir.path(), &["merge", "--no-history", "."]);
    assert_eq!(code(&merged), 75, "{merged:?}");
    insta::assert_snapshot!("merged_ranks", without_version(&merged.stdout));
    let json =
        run(dir.path(), &["merge", "--no-history", "--json", "rank-0.json", "rank-1.json", "rank-3.json"]);
    let document = document(&json);
    assert_eq!(document["schema"], "fathom.fleet/1");
    assert_eq!(document["fleet"]["missing"], json!([2]));
    for (test, fleet) in
        document["tests"].as_array().unwrap().iter().zip(document["fleet"]["tests"].as_array().unwrap())
    {
        let hosts = fleet["hosts"].as_array().unwrap();
        let ios: u64 = hosts.iter().map(|host| host["ios"][0].as_u64().unwrap()).sum();
        assert_eq!(test["total"]["ios"].as_u64(), Some(ios));
        let rates: f64 = hosts.iter().map(|host| host["iops"].as_f64().unwrap()).sum();
        assert!((test["total"]["iops"].as_f64().unwrap() / rates - 1.0).abs() < 0.01);
        assert_eq!(hosts.iter().map(|host| host["rank"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 3]);
    }
    let csv = run(dir.path(), &["merge", "--no-history", "--format=csv", "."]).stdout;
    assert_eq!(csv.lines().count(), 1 + 2 * 4, "{csv}");
}

#[test]
fn jobs_of_fio_are_reported_in_its_format() {
    let dir = scratch();
    for host in ["a", "b"] {
        let file = fio(dir.path(), host, 16);
        on_host(dir.path(), &file, host, 1_700_000_000_000);
    }
    let merged = run(dir.path(), &["merge", "a.json", "b.json", "--no-history"]).quietly();
    let lines: Vec<&str> = merged.stdout.lines().filter(|line| line.starts_with("All clients: ")).collect();
    assert!(lines.len() == 1 && lines[0].contains("(groupid=0, jobs=2)"), "{}", merged.stdout);
    assert!(merged.stdout.contains("Run status group 0 (all jobs):"), "{}", merged.stdout);
    let json = document(&run(dir.path(), &["merge", "a.json", "b.json", "--no-history", "--json"]));
    let jobs = json["jobs"].as_array().unwrap();
    assert_eq!((jobs.len(), jobs[0]["jobname"].as_str()), (1, Some("job")));
    let fleet = &json["fathom"]["fleet"];
    let hosts = fleet["tests"][0]["hosts"].as_array().unwrap();
    let ios: u64 = hosts.iter().map(|host| host["ios"][0].as_u64().unwrap()).sum();
    assert_eq!(jobs[0]["read"]["total_ios"].as_u64(), Some(ios));
    assert_eq!((&fleet["hosts"][1]["host"], &fleet["start_spread_ns"]), (&json!("b"), &json!(0)));
    assert!(fleet["findings"].is_array(), "{fleet}");
    // The rate of fio's own form is over the longest job, which both are.
    let rate = fleet["tests"][0]["iops"].as_f64().unwrap();
    assert!((jobs[0]["read"]["iops"].as_f64().unwrap() / rate - 1.0).abs() < 0.01);
}

#[test]
fn unreadable_records_are_named_and_the_rest_is_merged() {
    let dir = scratch();
    let path = |name: &str| dir.path().join(name);
    let good = bench(dir.path(), 0, 5, VOLUME);
    let text = std::fs::read_to_string(path(&good)).unwrap();
    bench(dir.path(), 4, 5, VOLUME);
    std::fs::write(path("cut.json"), &text[..text.len() / 2]).unwrap();
    std::fs::write(path("newer.json"), text.replace("fathom.record/2", "fathom.record/3")).unwrap();
    std::fs::write(path("empty.json"), "").unwrap();
    let merged = run(dir.path(), &["merge", "--no-history", "--json", "."]);
    assert_eq!(code(&merged), 75, "{merged:?}");
    let document = document(&merged);
    let unreadable = document["fleet"]["unreadable"].as_array().unwrap();
    let reason = |name: &str| {
        let found = unreadable.iter().find(|one| one["source"].as_str().unwrap().ends_with(name));
        found.unwrap_or_else(|| panic!("{name}: {unreadable:?}"))["reason"].as_str().unwrap().to_owned()
    };
    assert!(reason("cut.json").contains("EOF"), "{}", reason("cut.json"));
    assert!(reason("newer.json").contains("version 3"), "{}", reason("newer.json"));
    assert!(!reason("empty.json").is_empty());
    assert_eq!((unreadable.len(), &document["fleet"]["merged"]), (3, &json!(2)));
    assert_eq!(merged.stderr.matches("warning: cannot read").count(), 3, "{}", merged.stderr);
    assert_eq!(document["findings"][0]["id"], "fleet-incomplete");
    let none = run(dir.path(), &["merge", "--no-history", "cut.json"]);
    assert_eq!(code(&none), 2);
    assert!(none.stderr.contains("error: no record can be merged: cut.json: "), "{}", none.stderr);
}

/// Documents of `bench --json` have no histograms: hosts are compared, and nothing is added up.
#[test]
fn figures_of_hosts_are_compared() {
    let dir = scratch();
    for (rank, iops) in [(0, 3000), (1, 3000), (2, 2000)] {
        let volume = format!("sim:custom?iops={iops}&latency=500us&size=10GiB");
        let label = format!("--label=rank={rank}");
        let words = ["bench", "--runtime=5", "--only=rand-read", "--json", &label, &volume];
        let json = run(dir.path(), &words).quietly().stdout;
        std::fs::write(dir.path().join(format!("rank-{rank}.json")), json).unwrap();
    }
    let merged = run(dir.path(), &["merge", "--no-history", "."]).quietly();
    assert!(merged.stdout.contains("no total: only the figures of each host are known"), "{}", merged.stdout);
    let document = document(&run(dir.path(), &["merge", "--no-history", "--json", "."]));
    let test = &document["fleet"]["tests"][0];
    let iops = &test["variation"]["iops"];
    assert!((iops["max"].as_f64().unwrap() / iops["min"].as_f64().unwrap() - 1.5).abs() < 0.02, "{iops}");
    assert_eq!((&test["iops"], test["hosts"].as_array().unwrap().len()), (&Value::Null, 3));
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let dir = scratch();
    let path = |name: &str| dir.path().join(name);
    let first = bench(dir.path(), 0, 2, VOLUME);
    std::fs::copy(path(&first), path("same.json")).unwrap();
    let refusal = |more: &[&str]| {
        let ended = run(dir.path(), &[&["merge", "--no-history"], more].concat());
        assert_eq!(code(&ended), 2, "{ended:?}");
        ended.stderr
    };
    let text = refusal(&[&first, "same.json"]);
    assert!(text.contains("cannot merge same.json: it is of rank 0, and so is rank-0.json"), "{text}");
    let job = fio(dir.path(), "job", 16);
    let text = refusal(&[&first, &job]);
    assert!(text.contains("cannot merge job.json: the command: bench in rank-0.json, fio here"), "{text}");
    let deeper = fio(dir.path(), "deeper", 32);
    let text = refusal(&[&job, &deeper]);
    assert!(text.contains("iodepth of job 'job'") && text.contains(": 16 in job.json, 32 here"), "{text}");
    std::fs::copy(path(&job), path("old.json")).unwrap();
    edit(dir.path(), "old.json", |record| record["header"]["tool_version"] = "0.0.1".into());
    let text = refusal(&[&job, "old.json"]);
    assert!(
        text.contains("by fathom 0.0.1") && text.contains("hint: ") && text.contains("--allow version"),
        "{text}"
    );
    run(dir.path(), &["merge", "--no-history", "--allow=version", &job, "old.json"]).succeeded();
    let missing = run(dir.path(), &["merge", "--no-history", "none.json"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("no such file"), "{missing:?}");
    std::fs::create_dir(path("nothing")).unwrap();
    assert!(refusal(&["nothing"]).contains("nothing has no files of records"));
    assert!(refusal(&["-"]).contains("merge reads no standard input"));
}

#[test]
fn a_merged_run_is_a_run() {
    let dir = scratch();
    for (host, rank) in [("a", 0), ("b", 1)] {
        let file = bench(dir.path(), rank, 2, VOLUME);
        on_host(dir.path(), &file, host, 1_700_000_000_000 + u64::from(rank) * 250);
    }
    let words = [
        "merge", "rank-0.json", "rank-1.json", "-o", "fleet.json", "--report=fleet.html", "--history=m.db",
        "--full",
    ];
    let merged = run(dir.path(), &words).quietly();
    assert!(merged.stdout.contains("Kept as run 1."), "{}", merged.stdout);
    assert!(merged.stdout.contains("250 ms"), "{}", merged.stdout);
    let report = merged.stdout.split("\nKept as run").next().unwrap();
    let shown = run(dir.path(), &["history", "--history=m.db", "show", "--full"]).quietly();
    assert_eq!(shown.stdout.trim_end(), report.trim_end());
    let page = std::fs::read_to_string(dir.path().join("fleet.html")).unwrap();
    assert!(page.contains("Hosts: rand-read") && page.contains("Variation between hosts"));
    let chart = ["report", "--history=m.db", "last", "--chart=hosts", "-o", "hosts.svg"];
    run(dir.path(), &chart).succeeded();
    let markdown = run(dir.path(), &["report", "--history=m.db", "last", "--format=markdown"]).quietly();
    assert!(markdown.stdout.contains("| host"), "{}", markdown.stdout);
    run(dir.path(), &["history", "--history=m.db", "list"]).quietly();
    // Twice the rate of one host.
    let compared = run(dir.path(), &["compare", "rank-0.json", "fleet.json", "--json"]).succeeded();
    let compared = document(&compared);
    assert_eq!(compared["contradictions"], json!([]));
    let hosts =
        compared["differences"].as_array().unwrap().iter().find(|found| found["condition"] == "hosts");
    assert_eq!(hosts.unwrap()["values"], json!(["1", "2"]), "{compared}");
    let again = run(dir.path(), &["merge", "--no-history", "fleet.json"]);
    assert!(code(&again) == 2 && again.stderr.contains("it is a merged record"), "{again:?}");
    let whole =
        run(dir.path(), &["merge", "--no-history", "-o", "-", "rank-0.json", "rank-1.json"]).quietly();
    assert_eq!(whole.stdout, std::fs::read_to_string(dir.path().join("fleet.json")).unwrap());
}

#[test]
fn hosts_an_hour_apart_have_no_total() {
    let dir = scratch();
    for (rank, started) in [(0, 1_700_000_000_000), (1, 1_700_003_600_000)] {
        let file = bench(dir.path(), rank, 2, VOLUME);
        on_host(dir.path(), &file, &format!("h{rank}"), started);
    }
    let merged = run(dir.path(), &["merge", "--no-history", "."]).quietly();
    insta::assert_snapshot!("merged_hosts_an_hour_apart", without_version(&merged.stdout));
    let document = document(&run(dir.path(), &["merge", "--no-history", "--json", "."]));
    let test = &document["fleet"]["tests"][1];
    assert_eq!((&test["iops"], &test["window_ns"]), (&Value::Null, &json!(0)));
    assert_eq!(test["start_spread_ns"], json!(3_600_000_000_000_u64));
    assert!(test["variation"]["iops"]["median"].as_f64().unwrap() > 0.0);
}

#[test]
fn names_of_hosts_stay_text() {
    let dir = scratch();
    for (rank, host) in [(0, "a\u{1b}[31m"), (1, "<script>b\n")] {
        let file = bench(dir.path(), rank, 2, VOLUME);
        on_host(dir.path(), &file, host, 1_700_000_000_000);
    }
    let merged = run(dir.path(), &["merge", "--no-history", "--full", "--report=p.html", "."]).quietly();
    assert!(!merged.stdout.contains('\u{1b}') && merged.stdout.contains("a\\x1b[31m"), "{}", merged.stdout);
    let page = std::fs::read_to_string(dir.path().join("p.html")).unwrap();
    assert!(!page.contains("<script>b"));
    for format in ["csv", "markdown", "jsonl", "json"] {
        let ended = run(dir.path(), &["merge", "--no-history", "--format", format, "."]).quietly();
        assert!(!ended.stdout.contains('\u{1b}'), "{format}");
    }
}

#[test]
fn sixty_records_merge_without_losing_an_io() {
    const RANKS: u64 = 60;
    let dir = scratch();
    let first = bench(dir.path(), 0, RANKS as u32, VOLUME);
    let text = std::fs::read_to_string(dir.path().join(&first)).unwrap();
    let record: Value = serde_json::from_str(&text).unwrap();
    for rank in 1..RANKS {
        let file = format!("rank-{rank}.json");
        std::fs::write(dir.path().join(&file), &text).unwrap();
        edit(dir.path(), &file, |record| record["header"]["labels"]["rank"] = json!(rank.to_string()));
        on_host(dir.path(), &file, &format!("h{rank}"), 1_700_000_000_000);
    }
    on_host(dir.path(), &first, "h0", 1_700_000_000_000);
    let document = document(&run(dir.path(), &["merge", "--no-history", "--json", "."]).quietly());
    assert_eq!(document["fleet"]["merged"], RANKS);
    let merged = document["tests"].as_array().unwrap();
    for (merged, measured) in merged.iter().zip(record["tests"].as_array().unwrap()) {
        let ios = measured["jobs"][0]["measured"]["read"]["ios"].as_u64().unwrap();
        assert!(ios > 0 && merged["total"]["ios"].as_u64() == Some(RANKS * ios), "{merged}");
    }
}
