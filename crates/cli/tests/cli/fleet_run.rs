//! `fathom fleet`: launchers, hosts over ssh and series of runs, played by scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::{Ended, ended, program, run, scratch};

/// Plays hydra: answers `--version`, and has as many ranks write their records as it is asked for, less those of the file `lost`.
/// Then it does what the file `then` says.
const MPIEXEC: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then
  printf 'HYDRA build details:\n    Version:                                 4.0.2\n'
  exit 0
fi
lost=$(cat "$HOME/lost" 2>/dev/null)
while [ $# -gt 0 ]; do
  case "$1" in
    -n) ranks=$2 ;;
    --fleet-out=*) out=${1#--fleet-out=} ;;
  esac
  shift
done
rank=0
while [ "$rank" -lt "$ranks" ]; do
  case " $lost " in
    *" $rank "*) ;;
    *) cp "$HOME/records/rank-0000$rank.json" "$out/" ;;
  esac
  rank=$((rank + 1))
done
. "$HOME/then"
"#;

/// Plays ssh: `h2` refuses, the others are this host.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do shift; done
host=$2
shift 2
if [ "$host" = h2 ]; then
  echo "root@h2: Permission denied (publickey)." >&2
  exit 255
fi
exec sh -c "$*"
"#;

/// A directory with a launcher, ssh and the records of four ranks.
struct Cluster {
    dir: tempfile::TempDir,
}

impl Cluster {
    fn new() -> Cluster {
        let dir = scratch();
        let home = dir.path().join("home");
        for name in ["bin", "home/records"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        for (name, text) in [("mpiexec", MPIEXEC), ("ssh", SSH)] {
            let path = dir.path().join("bin").join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for rank in 0..4 {
            let label = format!("--label=rank={rank}");
            let seed = format!("--seed={}", rank + 1);
            let volume = "sim:custom?iops=3000&latency=500us&size=10GiB";
            let fixed = ["bench", "--runtime=10", "--only=rand-read", "--history=h.db"];
            run(dir.path(), &[&fixed[..], &[&label, &seed, volume]].concat()).succeeded();
            let file = home.join(format!("records/rank-0000{rank}.json"));
            run(dir.path(), &["history", "--history=h.db", "export", "last", "-o", file.to_str().unwrap()])
                .succeeded();
        }
        let cluster = Cluster { dir };
        cluster.write("then", "echo report; exit 0\n");
        cluster
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join("home").join(name), text).unwrap();
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = program(self.path());
        let found = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{found}", self.path().join("bin").display())).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        ended(self.command(args).output().unwrap())
    }

    fn out(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

#[test]
fn the_command_of_the_launcher_is_printed() {
    let cluster = Cluster::new();
    let words = ["fleet", "run", "--dry-run", "--hosts=h[1-3]", "--fleet-out=out", "--program=/opt/fathom"];
    let dry = cluster.run(&[&words[..], &["bench", "--quick", "/mnt/a b"]].concat()).quietly();
    let out = cluster.path().canonicalize().unwrap().join("out");
    assert_eq!(
        dry.stdout,
        format!(
            "mpiexec -launcher ssh -hosts h1,h2,h3 -ppn 1 -n 3 /opt/fathom bench --fleet --fleet-out={} --quick \
             '/mnt/a b'\n",
            out.display()
        )
    );
    assert!(!out.exists());
    let series = cluster.run(&[&words[..], &["--fleet-scale", "bench", "/mnt"]].concat()).quietly();
    assert_eq!(series.stdout.lines().count(), 3, "{}", series.stdout);
    assert!(series.stdout.contains("-hosts h1,h2 -ppn 1 -n 2"), "{}", series.stdout);
}

#[test]
fn mistakes_are_named_before_anything_runs() {
    let cluster = Cluster::new();
    for (words, said) in [
        (&["--hosts=h[1-", "bench", "/mnt"][..], "error: [ without ] in 'h[1-' at character 2"),
        (&["--hosts=h1", "job.fio"], "error: ranks cannot run 'job.fio'"),
        (
            &["--hosts=h1", "--fleet-scale", "bench", "/mnt"],
            "error: --fleet-scale: a curve needs two ranks or more",
        ),
        (&["--hosts=h1", "--launcher=none", "bench", "/mnt"], "error: cannot find the launcher none"),
        (&["--hosts=h1", "--launcher=ssh", "bench", "/mnt"], "error: ssh "),
        (&["--hosts-file=none", "bench", "/mnt"], "error: cannot read the list of hosts none"),
    ] {
        let refused = cluster.run(&[&["fleet", "run"][..], words].concat());
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused.stderr.starts_with(said) && refused.stderr.contains("\nhint: "),
            "{words:?} {refused:?}"
        );
    }
}

#[test]
fn the_report_of_rank_0_and_its_code_are_passed_on() {
    let cluster = Cluster::new();
    cluster.write("then", "printf 'the report\\n'; exit 3\n");
    let words = ["fleet", "run", "--hosts=h[1-4]", "--fleet-out=out", "bench", "/mnt"];
    let done = cluster.run(&words);
    assert_eq!((done.code, done.stdout.as_str()), (Some(3), "the report\n"), "{done:?}");
    assert!(done.stderr.starts_with("mpiexec -launcher ssh -hosts h1,h2,h3,h4"), "{done:?}");
    // The same directory has records now.
    let again = cluster.run(&words);
    assert!(again.code == Some(2) && again.stderr.contains("has the records of another run"), "{again:?}");
}

#[test]
fn lost_ranks_are_named_where_rank_0_cannot() {
    let cluster = Cluster::new();
    cluster.write("lost", "0 2");
    cluster.write(
        "then",
        "printf 'Starting\\n\\n=====\\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\\n'; exit 137\n",
    );
    let lost = cluster.run(&["fleet", "run", "--hosts=h[1-4]", "--fleet-out=out", "bench", "/mnt"]);
    assert_eq!(lost.code, Some(75), "{lost:?}");
    assert!(lost.stdout.contains("2 of 4 ranks were merged; missing: 0, 2."), "{}", lost.stdout);
    assert!(lost.stderr.contains("the launcher ended with 137: reporting the records in "), "{lost:?}");
    // Rank 0 has reported, and its launcher hides the code.
    cluster.write("then", "echo '2 of 4 merged'; exit 137\n");
    let reported = cluster.run(&["fleet", "run", "--hosts=h[1-4]", "--fleet-out=out2", "bench", "/mnt"]);
    assert_eq!((reported.code, reported.stdout.as_str()), (Some(75), "2 of 4 merged\n"), "{reported:?}");
    cluster.write("lost", "0 1 2 3");
    cluster.write("then", "exit 1\n");
    let none = cluster.run(&["fleet", "run", "--hosts=h[1-4]", "--fleet-out=out3", "bench", "/mnt"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(1), ""), "{none:?}");
    assert!(
        none.stderr.contains("and no record is in") && none.stderr.contains("hint: fathom fleet check"),
        "{none:?}"
    );
}

#[test]
fn a_series_makes_a_curve_that_can_be_read_again() {
    let cluster = Cluster::new();
    let words = ["fleet", "run", "--hosts=h[1-4]", "--fleet-out=out", "--fleet-scale", "bench", "/mnt"];
    let series = cluster.run(&words);
    assert_eq!(series.code, Some(0), "{series:?}");
    assert!(!series.stdout.contains("report\n"), "the reports of single runs are dropped: {}", series.stdout);
    assert!(series.stdout.contains("4 ranks do not reach a limit"), "{}", series.stdout);
    for ranks in [1, 2, 4] {
        assert!(cluster.out("out").join(format!("ranks-{ranks:05}/rank-00000.json")).exists());
    }
    let again =
        cluster.run(&["fleet", "scaling", "out", "--json", "--chart=c.svg", "--report=c.html"]).quietly();
    let document: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(document["schema"], "fathom.scaling/1");
    let test = &document["tests"][0];
    let ranks: Vec<u64> =
        test["points"].as_array().unwrap().iter().map(|point| point["ranks"].as_u64().unwrap()).collect();
    assert_eq!((ranks, &test["verdict"]["outcome"]), (vec![1, 2, 4], &Value::from("growing")));
    let written = |name: &str| fs::read_to_string(cluster.out(name)).unwrap();
    assert!(written("c.svg").contains("IOPS by ranks") && written("c.html").contains("rand-read"));
    let one = cluster.run(&["fleet", "scaling", "out/ranks-00002"]);
    assert!(one.code == Some(2) && one.stderr.contains("same number of ranks (2)"), "{one:?}");
    let none = cluster.run(&["fleet", "scaling", "bin"]);
    assert!(none.code == Some(2) && none.stderr.contains("has records"), "{none:?}");
}

#[test]
fn a_series_that_loses_ranks_ends_with_75() {
    let cluster = Cluster::new();
    cluster.write("lost", "3");
    let words = ["fleet", "run", "--hosts=h[1-4]", "--fleet-out=out", "--fleet-scale=1,4", "bench", "/mnt"];
    let series = cluster.run(&words);
    assert_eq!(series.code, Some(75), "{series:?}");
    assert!(series.stdout.contains("1 rank is missing"), "{}", series.stdout);
}

#[test]
fn a_signal_reaches_the_launcher_and_what_is_there_is_reported() {
    let cluster = Cluster::new();
    cluster.write("lost", "1");
    cluster.write("then", "trap 'exit 143' TERM; echo ready >&2; while :; do sleep 0.05; done\n");
    let mut command =
        cluster.command(&["fleet", "run", "--hosts=h[1-2]", "--fleet-out=out", "bench", "/mnt"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while line != "ready\n" {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut said, &mut line).unwrap() > 0);
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    // What it says goes on.
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut said, &mut rest).unwrap();
        rest
    });
    let end = ended(child.wait_with_output().unwrap());
    assert_eq!(end.code, Some(130), "{end:?}");
    assert!(end.stdout.contains("1 of 2 ranks were merged; missing: 1."), "{}", end.stdout);
    drop(rest.join().unwrap());
}

#[test]
fn what_would_stop_a_run_is_found_before() {
    let cluster = Cluster::new();
    let good = cluster.run(&["fleet", "check", "--hosts=h1,h3"]);
    assert_eq!(good.code, Some(0), "{good:?}");
    for said in
        ["mpiexec (MPICH hydra 4.0.2) starts the ranks", "all 2 hosts answer", "on every host that answers"]
    {
        assert!(good.stdout.contains(said), "{said}: {}", good.stdout);
    }
    let bad = cluster.run(&["fleet", "check", "--hosts=h[1-3]", "--json"]);
    assert_eq!(bad.code, Some(3), "{bad:?}");
    let document: Value = serde_json::from_str(&bad.stdout).unwrap();
    let check = |id: &str| {
        document["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap().clone()
    };
    assert_eq!(check("ssh")["status"], "problem");
    assert!(
        check("ssh")["result"]
            .as_str()
            .unwrap()
            .contains("2 of 3 hosts answer. h2: root@h2: Permission denied")
    );
    assert_eq!(document["hosts"][1]["facts"], Value::Null);
    let absent = cluster.run(&["fleet", "check", "--hosts=h1", "--program=/none/fathom"]);
    assert!(absent.code == Some(3) && absent.stdout.contains("no program /none/fathom there"), "{absent:?}");
    let facts = cluster.run(&["fleet", "check", "--facts"]).quietly();
    assert!(facts.stdout.starts_with(concat!("version=", env!("CARGO_PKG_VERSION"), "\n")), "{facts:?}");
}

#[test]
fn hosts_of_a_merged_run_are_compared() {
    let cluster = Cluster::new();
    let merged = |name: &str, ranks: &[u32]| {
        let files: Vec<String> =
            ranks.iter().map(|rank| format!("home/records/rank-0000{rank}.json")).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        cluster.run(&[&["merge", "--no-history", "-o", name][..], &files].concat());
    };
    merged("all.json", &[0, 1, 2, 3]);
    merged("two.json", &[0, 1]);
    let hosts = cluster.run(&["compare", "all.json", "--by", "host", "--json"]).quietly();
    let document: Value = serde_json::from_str(&hosts.stdout).unwrap();
    assert_eq!(document["sources"].as_array().unwrap().len(), 4, "{}", hosts.stdout);
    let ratio = document["pairs"].as_array().unwrap().iter().find(|pair| pair["metric"] == "iops").unwrap();
    assert!((ratio["ratio"].as_f64().unwrap() - 1.0).abs() < 0.05, "{ratio}");
    let fleets = cluster.run(&["compare", "all.json", "two.json", "--json"]).quietly();
    let document: Value = serde_json::from_str(&fleets.stdout).unwrap();
    let ratio = document["pairs"].as_array().unwrap().iter().find(|pair| pair["metric"] == "iops").unwrap();
    assert!((ratio["ratio"].as_f64().unwrap() - 0.5).abs() < 0.02, "{ratio}");
    let alone = cluster.run(&["compare", "all.json"]);
    assert!(alone.code == Some(2) && alone.stderr.contains("--by host"), "{alone:?}");
    let single = cluster.run(&["compare", "home/records/rank-00000.json", "--by", "host"]);
    assert!(single.code == Some(2) && single.stderr.contains("is a run of one host"), "{single:?}");
    let base = cluster.run(&["compare", "all.json", "--by", "host", "--base", "Z"]);
    assert!(base.code == Some(2) && base.stderr.contains("there are 4 hosts"), "{base:?}");
}
