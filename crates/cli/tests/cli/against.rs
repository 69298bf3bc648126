//! `fathom bench --against` and `--precision` from the outside.

use std::path::Path;

use serde_json::Value;

use crate::{files_in, on_both, run, run_with_history, scratch, scratch_with};

on_both!(saved_runs_and_conditions);

const A: &str = "sim:custom?iops=1000&latency=1ms";
const B: &str = "sim:custom?iops=1050&latency=1ms";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn kept_runs_get_the_same_verdicts_from_compare() {
    let dir = scratch();
    let args = ["bench", A, "--against", B, "--quick", "--history", "h.db", "--json"];
    let measured = json(&run(dir.path(), &args).quietly().stdout);
    assert_eq!(measured["schema"], "fathom.compare/1");
    let verdicts = measured["interleaved"]["verdicts"].as_array().unwrap();
    assert_eq!((verdicts.len(), &verdicts[0]["test"]), (2, &"rand-read".into()));
    for verdict in verdicts {
        assert_eq!((&verdict["verdict"], &verdict["blocks"]), (&"better".into(), &6.into()), "{verdict}");
    }
    let compared = |form: &str| {
        let args = ["compare", "tag:against-1-a", "tag:against-1-b", "--history", "h.db", form];
        run(dir.path(), &args).quietly().stdout
    };
    let again = json(&compared("--json"));
    for member in ["pairs", "interleaved", "conclusion", "differences", "tests"] {
        let (mut one, mut other) = (measured[member].clone(), again[member].clone());
        if member == "tests" {
            // The origins of the cells are named alike.
            (one, other) = (one[0].clone(), other[0].clone());
        }
        assert_eq!(one, other, "{member}");
    }
    let text = compared("--format=text");
    let (first, next) = (text.find("  Verdict "), text.find("  Result "));
    assert!(first.is_some() && first < next, "the verdict comes first: {text}");
    let listed = json(&run(dir.path(), &["history", "list", "--json", "--history", "h.db"]).quietly().stdout);
    assert_eq!(listed.as_array().unwrap().len(), 12);
    let shown = run(dir.path(), &["history", "show", "3", "--history", "h.db"]).quietly().stdout;
    assert!(shown.contains("rand-read"), "each run is a bench of its own: {shown}");
}

#[test]
fn targets_are_measured_in_turns_within_the_budget() {
    let dir = scratch_with(&["a", "b"]);
    let args = [
        "bench", "a", "--against", "b", "--buffered", "--size=16m", "--quick", "--runtime=200ms",
        "--only=rand-read", "--budget=3s", "--history=h.db",
    ];
    let plan = run(dir.path(), &[&args[..], &["--dry-run"]].concat()).quietly().stdout;
    assert!(plan.contains("2 blocks, about 3 s"), "{plan}");
    // Lines are wrapped.
    let text = run(dir.path(), &args).quietly().stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["Verdict rand-read: ", "2 blocks", "Kept 4 runs.", "tag:against-1-a tag:against-1-b"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(files_in(&dir.path().join("a")).is_empty() && files_in(&dir.path().join("b")).is_empty());
    let order = json(&run(dir.path(), &["history", "list", "--json", "--history", "h.db"]).quietly().stdout);
    let sides: Vec<String> = order
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["tags"][0].as_str().unwrap().rsplit_once('-').unwrap().1.to_owned())
        .collect();
    assert_eq!(sides, ["a", "b", "b", "a"], "the order of the targets changes from block to block");
}

fn saved_runs_and_conditions(dir: &Path) {
    let bench = |args: &[&str]| run_with_history(dir, &[&["bench", "--quick"], args].concat());
    bench(&[A, "--against", A, "--only", "rand-read"]).quietly();
    let fails = ["--fail-if", "rand-read.iops < 0.98"];
    // The saved runs are B: the ratio is theirs to the target's.
    let ended = bench(&[&[B, "--against", "tag:against-1-a"], &fails[..]].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), ""), "{ended:?}");
    assert!(ended.stdout.contains("rand-read: B is worse, 0.95 times the IOPS of A"), "{}", ended.stdout);
    assert_eq!(bench(&[&[A, "--against", "tag:against-1-a"], &fails[..]].concat()).code, Some(0));
    let exported = run_with_history(dir, &["history", "export", "1"]).quietly().stdout;
    std::fs::write(dir.join("one.json"), exported).unwrap();
    let single = bench(&[A, "--against", "one.json", "--json"]).quietly().stdout;
    assert_eq!(json(&single)["interleaved"]["verdicts"][0]["verdict"], "single");
}

#[test]
fn what_contradicts_itself_is_refused_with_a_remedy() {
    let dir = scratch();
    for (args, part) in [
        (&["bench", A, "--against", B, "--precision=2%"][..], "--precision and --against both decide"),
        (&["bench", A, "--against", B, "--until-steady"], "--until-steady and --against both decide"),
        (&["bench", A, "--against", B, "--budget=5s"], "at least 2 blocks"),
        (&["bench", A, "--against", "nothing-there"], "there is no history"),
        (&["bench", A, "--against", "."], "is simulated, and . is not"),
        (&["bench", A, "--precision=2%", "--until-steady"], "--precision and --until-steady both decide"),
        (&["bench", A, "--precision=2%", "--runtime=3s"], "a precision of 2 % takes at least 5 s per test"),
        (&["bench", A, "--precision=0.5%", "--quick"], "takes at least 20 s per test, and the limit is 12 s"),
        (&["bench", A, "--precision=50%"], "is not between 0.1% and 20%"),
        (&["bench", A, "--budget=5m"], "--budget limits repeated measurements"),
    ] {
        let ended = run(dir.path(), args);
        let code = if part.starts_with("there is no ") { 1 } else { 2 };
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(part), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn a_precision_ends_each_test_and_names_those_that_did_not_get_there() {
    let dir = scratch();
    // Few, slow I/Os of varying latency make a noisy rate.
    let target = "sim:custom?iops=1000&read_latency=1ms&write_latency=60ms&latency_spread=1";
    let args = ["bench", target, "--quick", "--precision=2%", "--only=lat-read,lat-write"];
    let document = json(&run(dir.path(), &[&args[..], &["--json"]].concat()).quietly().stdout);
    let of = |test: usize| &document["tests"][test]["precision"];
    assert_eq!((&of(0)["reached"], &of(1)["reached"]), (&true.into(), &false.into()), "{document:#}");
    let measured = |test: usize| document["tests"][test]["measured_ns"].as_u64().unwrap();
    assert!((5_000_000_000..12_000_000_000).contains(&measured(0)), "{}", measured(0));
    assert!(measured(1) >= 12_000_000_000, "{}", measured(1));
    assert_eq!(document["tests"][0]["stability"]["mean_ci95_fraction"], of(0)["reached_fraction"]);
    let seconds = (measured(0) + 250_000_000) / 500_000_000 * 500;
    let runtime = if seconds % 1000 == 0 { format!("{}s", seconds / 1000) } else { format!("{seconds}ms") };
    let fio = document["tests"][0]["fio"].as_str().unwrap();
    assert!(
        fio.contains(&format!("--runtime={runtime} ")),
        "the command runs as long as the test did: {fio}"
    );
    let text = run(dir.path(), &[&args[..], &["--full"]].concat()).quietly().stdout;
    for part in ["not reached", "the precision of 2 % was not reached in 12 s"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn a_precision_ends_tests_of_files_too() {
    let dir = scratch();
    // A rate that the job itself keeps is steady on any machine.
    let profile =
        |name: &str| format!("[profile.{name}]\nruntime = \"60s\"\nramp = \"500ms\"\nsize = \"16MiB\"\n");
    let suite = format!(
        "title = \"Paced\"\ndescription = \"A fixed rate.\"\nsource = \"a test\"\n{}{}{}[[test]]\nid = \"paced\"\n\
         title = \"paced\"\noptions = {{ rw = \"randread\", bs = \"4k\", rate_iops = 200, ioengine = \"psync\" }}\n",
        profile("quick"),
        profile("default"),
        profile("thorough")
    );
    std::fs::write(dir.path().join("paced.toml"), suite).unwrap();
    let args = ["bench", "--buffered", "--no-history", "--suite=paced.toml", "--precision=5%", "--json"];
    let document = json(&run(dir.path(), &args).quietly().stdout);
    let test = &document["tests"][0];
    assert_eq!(
        (&test["status"], &test["precision"]["reached"]),
        (&"complete".into(), &true.into()),
        "{test:#}"
    );
    assert!(test["measured_ns"].as_u64().unwrap() < 55_000_000_000, "{test:#}");
}

#[test]
fn a_dry_run_shows_the_plan_of_a_comparison() {
    let dir = scratch();
    let args = ["bench", A, "--against", B, "--dry-run"];
    let text = run(dir.path(), &[&args[..], &["--show-fio"]].concat()).quietly().stdout;
    for part in ["rand-read, seq-read; 6 to 96 blocks", "after 6, 12, 24, 48 blocks", "--runtime=30s"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let plan = json(&run(dir.path(), &[&args[..], &["--json"]].concat()).quietly().stdout);
    assert_eq!((&plan["sources"][1], &plan["most_blocks"]), (&B.into(), &96.into()));
    assert_eq!(plan["tests"][0]["fio"].as_array().unwrap().len(), 2);
}
