//! The first screen of each command: the verdict in its first three lines, all of it within 24 lines and the width asked for.

use std::path::Path;

use serde_json::Value;

use crate::{ended, program, run, scratch};

const GP2: &str = "sim:aws-gp2?size=50GiB";
const GP3: &str = "sim:aws-gp3?size=100GiB";
const CUSTOM: &str = "sim:custom?iops=700&bandwidth=20MiB&latency=500us&parallelism=64";

/// Lines of a terminal.
const SCREEN: usize = 24;

/// Each command with the beginning of the line that is its verdict.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["bench", GP2], "  Sustains "),
    (&["bench", GP3], "  Sustains "),
    (&["bench", CUSTOM], "  Sustains "),
    (&["bench", "--only=rand-read", GP2], "  Sustains "),
    (&["bench", "--expect=rand-read.iops>=5000", GP2], "  Expected "),
    (&["bench", "--profile=oltp,etcd", GP3], "  OLTP "),
    (&["sweep", GP2], "  Sustains "),
    (&["sweep", "--rw=randread,randwrite", CUSTOM], "  Sustains "),
    (&["sweep", "--expect=p99<=5ms", CUSTOM], "  Answer "),
    (&["identify", GP2], "  Type "),
    (&["identify", "--read-only", CUSTOM], "  Type "),
    (&["surface", GP2], "  Transfer "),
    (&["compare", GP2, GP3], "  Result "),
    (&["compare", GP2, GP3, "sim:do-volume-standard", CUSTOM], "  Result "),
    (&["simulate", "aws-gp2?size=50GiB", "--profile=oltp", "--for=2h"], "  Sustains "),
    (&["simulate", "aws-gp2?size=50GiB", "aws-gp3", "--profile=oltp", "--for=2h"], "  Fastest "),
    (&["advise", "--iops=3000"], "  Answer "),
    (&["catalog", "show", "aws-gp2"], "  Rules "),
    (&["catalog", "fit", "--iops=5000", "--throughput=200MiB"], "  Cheapest "),
    (&["ping", "-q", "-c", "200", "-i", "0", GP3], "  Latency "),
    (&["prepare", "sim:aws-gp3?size=10GiB"], "  Ready "),
];

fn printed(dir: &Path, args: &[&str], columns: usize) -> String {
    let mut command = program(dir);
    command.args(args).env("COLUMNS", columns.to_string());
    ended(command.output().unwrap()).stdout
}

#[test]
fn each_fits_a_screen_and_begins_with_its_verdict() {
    let dir = scratch();
    for columns in [80, 100] {
        for (args, verdict) in COMMANDS {
            let screen = printed(dir.path(), args, columns);
            let lines: Vec<&str> = screen.lines().collect();
            let first = lines.iter().position(|line| line.starts_with(verdict));
            let wide: Vec<&&str> = lines.iter().filter(|line| line.chars().count() > columns).collect();
            let is_fit = lines.len() <= SCREEN && wide.is_empty() && first.is_some_and(|line| line < 3);
            assert!(
                is_fit,
                "{args:?} at {columns}: {} lines, verdict {first:?}, wide {wide:?}\n{screen}",
                lines.len()
            );
        }
    }
}

#[test]
fn a_full_report_has_what_the_first_screen_leaves_out() {
    let dir = scratch();
    let brief = printed(dir.path(), &["bench", GP2], 100);
    let full = printed(dir.path(), &["bench", "--full", GP2], 100);
    for section in ["Findings", "Workload suitability", "Duration of the rates", "Notes"] {
        let has = |text: &str| text.lines().any(|line| line == section);
        assert_eq!((has(&brief), has(&full)), (false, true), "{section}\n{full}");
    }
}

#[test]
fn documents_begin_with_the_verdict() {
    let dir = scratch();
    for (args, _) in COMMANDS {
        let text = run(dir.path(), &[args, &["--json"][..]].concat()).stdout;
        let document: Value = serde_json::from_str(&text).unwrap();
        assert!(document["verdict"].is_object(), "{args:?}");
        let place = text.find("\"verdict\"").unwrap();
        assert!(text[..place].lines().count() <= 3, "{args:?}: {}", &text[..place]);
    }
    let bench = run(dir.path(), &["bench", "--json", GP2]).stdout;
    let verdict = &serde_json::from_str::<Value>(&bench).unwrap()["verdict"];
    let rate = &verdict["rates"][0];
    assert_eq!((rate["unit"].as_str(), rate["direction"].as_str()), (Some("iops"), Some("read_and_write")));
    assert_eq!((rate["sustained"].as_f64(), rate["limit"].as_str()), (Some(150.0), Some("iops-cap")));
    assert!((rate["measured"].as_f64().unwrap() - 3_000.0).abs() < 10.0, "{rate}");
    assert!(verdict["next"].as_str().unwrap().starts_with("aws-gp3"), "{verdict}");
}
