//! The live streams from the outside: what a program reads from them while a run goes on, and that no reader holds it up.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::Value;

use crate::{ended, program, run, schemas, scratch};

const VOLUME: &str = "sim:custom?size=1GiB&iops=1000";
const BENCH: [&str; 6] =
    ["bench", "--seed=1", "--only=rand-read,lat-read", "--runtime=5s", "--no-history", VOLUME];

/// Each line as an object.
#[track_caller]
fn objects(text: &str) -> Vec<Value> {
    schemas::check(text);
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    text.lines().map(parse).collect()
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

fn check_stream(lines: &[Value]) {
    assert_eq!(
        (lines[0]["type"].as_str(), lines[lines.len() - 1]["type"].as_str()),
        (Some("begin"), Some("end"))
    );
    for (index, line) in lines.iter().enumerate() {
        let place = (line["schema"].as_str(), line["line"].as_u64(), line["dropped"].as_u64());
        assert_eq!(place, (Some("fathom.live/1"), Some(index as u64 + 1), Some(0)), "{line}");
        assert_eq!((line["command"].as_str(), line["target"].as_str()), (Some("bench"), Some(VOLUME)));
    }
    let ids =
        |kind: &str| of_type(lines, kind).iter().map(|line| line["test"]["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids("test_begin"), ["lat-read", "rand-read"]);
    assert_eq!(ids("test_end"), ["lat-read", "rand-read"]);
    let snapshots = of_type(lines, "snapshot");
    assert!(snapshots.len() >= 20, "{}", snapshots.len());
    for (id, end) in ["lat-read", "rand-read"].into_iter().zip(of_type(lines, "test_end")) {
        let measured =
            snapshots.iter().filter(|line| line["test"]["id"] == id && line["stage"] == "measuring");
        let last = measured.clone().next_back().unwrap();
        let samples = last["clat_ns"]["so_far"]["samples"].as_u64().unwrap();
        let rate = end["test"]["figures"]["iops"].as_f64().unwrap();
        assert!(samples.abs_diff((rate * 5.0) as u64) <= samples / 50, "{samples} of {rate} IOPS");
    }
}

#[test]
fn lines_in_a_file_tell_of_every_test_and_leave_the_report_alone() {
    let dir = scratch();
    let plain = run(dir.path(), &BENCH).quietly();
    let live = run(dir.path(), &[&BENCH[..], &["--live=ndjson=live.ndjson"]].concat()).quietly();
    assert_eq!(live.stdout, plain.stdout);
    check_stream(&objects(&std::fs::read_to_string(dir.path().join("live.ndjson")).unwrap()));
}

#[test]
fn on_standard_error_every_line_is_an_object() {
    let dir = scratch();
    let live = run(dir.path(), &[&BENCH[..], &["--live=ndjson"]].concat());
    assert_eq!(live.code, Some(0), "{live:?}");
    check_stream(&objects(&live.stderr));
    assert!(live.stdout.contains("lat-read"));
    let job = ["--name=a", "--rw=read", "--bs=4k", "--time_based", "--runtime=3"];
    let fio = [&["fio", "--filename", VOLUME, "--live=ndjson", "--output-format=json"][..], &job].concat();
    let fio = run(dir.path(), &fio);
    let lines = objects(&fio.stderr);
    assert_eq!((lines[0]["command"].as_str(), lines[0]["target"].as_str()), (Some("fio"), Some(VOLUME)));
    assert_eq!(of_type(&lines, "test_end")[0]["test"]["status"], "complete");
    serde_json::from_str::<Value>(&fio.stdout).unwrap();
}

#[test]
fn a_reader_that_never_reads_holds_up_nothing() {
    let dir = scratch();
    let mut child = program(dir.path())
        .args(["fio", "--name=a", "--rw=randread", "--time_based", "--runtime=5000", "--live=ndjson"])
        .args(["--filename", VOLUME, "--output=report"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let unread = child.stderr.take().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let report = std::fs::read_to_string(dir.path().join("report")).unwrap();
    assert!(report.contains("run=5000"), "{report}");
    // What it would have read: whole lines, up to where the pipe was full.
    let lines = BufReader::new(unread).lines().map_while(Result::ok).count();
    assert!((10..5000).contains(&lines), "{lines}");
}

#[test]
fn a_ping_streams_its_figures_beside_its_report() {
    let dir = scratch();
    let ping = ["ping", "-c", "2000", "-i", "10ms", "-q", "-e", "1"];
    let plain = run(dir.path(), &[&ping[..], &[VOLUME]].concat()).quietly();
    let live = run(dir.path(), &[&ping[..], &["--live", "ndjson=live.ndjson", VOLUME]].concat()).quietly();
    assert_eq!(live.stdout, plain.stdout);
    let lines = objects(&std::fs::read_to_string(dir.path().join("live.ndjson")).unwrap());
    let types: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(types[..2], ["begin", "test_begin"]);
    assert_eq!(types[types.len() - 1], "end");
    let snapshots = of_type(&lines, "snapshot");
    // Of 20 s, twice a second.
    assert!((39..=42).contains(&snapshots.len()), "{}", snapshots.len());
    let ios: u64 = snapshots.iter().filter_map(|line| line["read"]["ios"].as_u64()).sum();
    let last = snapshots[snapshots.len() - 1];
    assert_eq!(
        (ios, &last["ping"]["requests"], &last["ping"]["missed_intervals"]),
        (2000, &2000.into(), &0.into())
    );
    // The first is the warm-up.
    assert_eq!(last["lat_ns"]["so_far"]["samples"], 1999);
    let end = of_type(&lines, "test_end")[0]["test"].clone();
    assert_eq!((&end["id"], &end["status"]), (&"ping".into(), &"complete".into()));
    assert!(end["figures"]["lat_p99_ns"].is_u64() && end["figures"]["clat_p99_ns"].is_null(), "{end}");
    // On standard error, beside lines per request on standard output.
    let both = run(dir.path(), &["ping", "-c", "5", "-i", "1s", "--events", "--live", "ndjson", VOLUME]);
    assert_eq!((objects(&both.stdout).len(), both.code), (6, Some(0)), "{both:?}");
    assert_eq!(of_type(&objects(&both.stderr), "snapshot").len(), 5);
    let refused = run(dir.path(), &["ping", "--tui", VOLUME]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("error: --tui needs a terminal"), "{}", refused.stderr);
}

fn get(address: &str, request: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_endpoint_has_the_figures_of_a_run_that_goes_on() {
    let dir = scratch();
    let mut child = program(dir.path())
        .args([
            "fio", "--name=a", "--filename=f", "--size=1m", "--rw=randread", "--time_based", "--runtime=100s",
        ])
        .args(["--live=openmetrics=127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut told).unwrap();
    let address =
        told.trim().strip_prefix("Live metrics: http://").and_then(|it| it.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{told}")).to_owned();
    let silent = TcpStream::connect(&address).unwrap();
    let figure =
        "fathom_live_iops{device=\"f\",target=\"f\",command=\"fio\",test=\"fio\",direction=\"read\"} ";
    let answer = loop {
        let answer = get(&address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if answer.contains(figure) {
            break answer;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended: {answer}");
        std::thread::yield_now();
    };
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    let iops = body.lines().find_map(|line| line.strip_prefix(figure)).unwrap();
    assert!(iops.parse::<f64>().unwrap() > 0.0 && body.ends_with("# EOF\n"), "{body}");
    let other = |host: &str| get(&address, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert!(other(&address).starts_with("HTTP/1.1 404 "));
    assert!(other("evil.example").starts_with("HTTP/1.1 421 "));
    // Its address is taken as long as it runs.
    let option = format!("--live=openmetrics={address}");
    let second = run(dir.path(), &["bench", VOLUME, &option]);
    assert_eq!(second.code, Some(2), "{second:?}");
    assert!(second.stderr.contains("cannot listen on 127.0.0.1:"), "{}", second.stderr);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    let ended = ended(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(128), "{ended:?}");
    drop(silent);
}

#[test]
fn what_cannot_be_shown_is_refused_before_anything_is_measured() {
    let dir = scratch();
    let check = |args: &[&str], code: i32, parts: &[&str]| {
        let refused = run(dir.path(), args);
        assert_eq!(refused.code, Some(code), "{refused:?}");
        for part in parts {
            assert!(refused.stderr.contains(part), "{part:?} is not in {}", refused.stderr);
        }
    };
    check(&["bench", VOLUME, "--tui"], 2, &["error: --tui needs a terminal", "hint: omit --tui"]);
    check(
        &["sweep", VOLUME, "--live=json"],
        2,
        &["use ndjson, ndjson=FILE, openmetrics or openmetrics=ADDR:PORT"],
    );
    check(&["bench", VOLUME, "--live=openmetrics=9100"], 2, &["is not an address and a port"]);
    check(&["bench", VOLUME, "--live=ndjson=missing/file"], 2, &["cannot write missing/file", "hint: "]);
    check(&["bench", VOLUME, "--live=ndjson", "--tui"], 2, &["--live ndjson=FILE"]);
    check(&["bench", VOLUME, "--dry-run", "--live=ndjson"], 2, &["cannot be used with"]);
    let job = ["fio", "--name=a", "--filename=f", "--size=1m"];
    check(&[&job[..], &["--tui"]].concat(), 1, &["fio: --tui needs a terminal"]);
    check(&[&job[..], &["--live=text"]].concat(), 1, &["fio: cannot stream to --live=text", "use ndjson"]);
    assert!(!dir.path().join("f").exists(), "nothing was laid out");
}
