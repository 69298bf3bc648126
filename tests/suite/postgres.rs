//! Runs that are kept on a real PostgreSQL server, which stops, hangs and comes back.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fathom_tests::{Ended, PostgresServer, Program, fathom, loading, run, scratch, wait_for};
use rustix::process::Signal;
use serde_json::Value;

/// Seconds of each test.
const TEST: u64 = 2;

/// `fathom` with its history on the server.
fn program(home: &Path, uri: &str) -> Command {
    let mut command = fathom(home);
    command.env("FATHOM_HISTORY", uri).current_dir(home);
    command
}

/// A measurement of three tests in `home`.
fn bench(home: &Path, uri: &str) -> Command {
    let mut command = program(home, uri);
    command.args(["bench", ".", "--buffered", "--size=64m", "--only=lat-read,rand-read,rand-write"]);
    command.arg(format!("--runtime={TEST}s"));
    command
}

fn runs(home: &Path, uri: &str) -> Vec<Value> {
    let listed = run(program(home, uri).args(["history", "list", "--json"]));
    listed.assert_code(0);
    listed.document().as_array().cloned().unwrap_or_default()
}

/// Waits until the server has a test of the run.
fn wait_for_first_test(server: &PostgresServer, database: &str) {
    let stored = || server.sql(database, "SELECT count(*) FROM tests") == "1";
    let is_there = || server.sql(database, "SELECT to_regclass('fathom.tests') IS NOT NULL") == "t";
    assert!(wait_for(Duration::from_secs(60), || is_there() && stored()));
}

#[expect(clippy::disallowed_methods, reason = "how long the program takes is measured from outside")]
fn now() -> Instant {
    Instant::now()
}

fn assert_sent(ended: &Ended) {
    ended.assert_code(0).assert_told(&["fathom: sent the record in ", " to the server as run 1"]);
}

#[test]
fn a_server_that_stops_during_a_measurement_gets_the_record_later() {
    let _loading = loading();
    let Some(server) = PostgresServer::start() else { return };
    let home = scratch();
    let database = server.create_database();
    let uri = server.guarded_uri(&database, server.password());
    let running = Program::start(&mut bench(home.path(), &uri));
    wait_for_first_test(&server, &database);
    server.stop();
    let ended = running.finish();
    ended.assert_code(0);
    ended.assert_told(&[
        "no connection to the server",
        "the record is kept in",
        "a later run sends the record",
    ]);
    ended.assert_shown(&["Kept in ", "server-guarded@"]);
    assert_eq!(ended.stderr.matches("warning: ").count(), 1, "{}", ended.stderr);

    server.resume();
    let command = ["bench", "sim:custom?iops=500", "--quick", "--only=rand-read"];
    let mut next = program(home.path(), "");
    let next = run(next.args(command).arg(format!("--history={uri}")));
    assert_sent(&next);
    let listed = runs(home.path(), &uri);
    assert_eq!(listed.len(), 2);
    assert_eq!((&listed[0]["tests"], &listed[0]["status"]), (&3.into(), &"complete".into()));
    // The password is nowhere, not even where it was on the command line.
    let exported = run(program(home.path(), &uri).args(["history", "export"]));
    exported.assert_code(0).assert_shown(&["--history=postgres://guarded@/"]);
    for text in [&ended.stdout, &ended.stderr, &next.stdout, &next.stderr, &exported.stdout] {
        assert!(!text.contains("sesame"), "{text}");
    }
}

#[test]
fn a_server_that_hangs_delays_a_measurement_briefly_and_its_interruption_less() {
    let _loading = loading();
    let Some(server) = PostgresServer::start() else { return };
    let home = scratch();
    let database = server.create_database();
    let uri = server.uri(&database);
    let start = now();
    let running = Program::start(&mut bench(home.path(), &uri));
    wait_for_first_test(&server, &database);
    server.hang();
    let ended = running.finish();
    // Once after the second test, and half a second at the end, when it tries again.
    assert!(start.elapsed() < Duration::from_secs(3 * TEST + 6 + 15), "{:?}", start.elapsed());
    ended.assert_code(0).assert_told(&["the server did not answer within 5.0 s"]);
    server.go_on();

    let running = Program::start(&mut bench(home.path(), &uri));
    let two = || server.sql(&database, "SELECT count(*) FROM tests WHERE run_id > 1") == "1";
    assert!(wait_for(Duration::from_secs(60), two));
    server.hang();
    let start = now();
    running.signal(Signal::INT);
    let ended = running.finish();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    ended.assert_told(&["the record is kept in"]);
    server.go_on();
    let next =
        run(program(home.path(), &uri).args(["bench", "sim:custom?iops=500", "--quick", "--only=rand-read"]));
    next.assert_code(0).assert_told(&["fathom: sent the record in "]);
    assert_eq!(runs(home.path(), &uri).len(), 3);
}

#[test]
fn a_schedule_runs_without_its_server_and_counts_what_waits_for_it() {
    let _loading = loading();
    let Some(server) = PostgresServer::start() else { return };
    let home = scratch();
    let uri = server.uri(&server.create_database());
    let schedule = || {
        let mut command = program(home.path(), &uri);
        let test = ["--buffered", "--size=16m", "--only=rand-read", "--runtime=1ms"];
        Program::start(command.args(["bench", ".", "--every=4s", "--for=1m"]).args(test))
    };
    // Runs one slot at least; returns the first and what was told.
    let interrupted = || {
        let running = schedule();
        let slot =
            || running.stdout().lines().find_map(|line| line.split_once("/15  ")?.0.parse::<u64>().ok());
        assert!(wait_for(Duration::from_secs(60), || slot().is_some()), "{}", running.stderr());
        let slot = slot();
        running.signal(Signal::INT);
        let ended = running.finish();
        ended.assert_code(130);
        (slot, ended)
    };
    server.stop();
    let (first, told) = interrupted();
    told.assert_told(&["the runs that it has of this schedule are not known", "the record is kept in"]);
    assert_eq!(first, Some(1));
    let (second, _) = interrupted();
    assert!(second > first, "no slot is run twice: {second:?}");

    server.resume();
    let (third, told) = interrupted();
    told.assert_told(&["fathom: sent "]);
    assert!(third > second, "{third:?}");
    assert!(runs(home.path(), &uri).len() >= 3);
}
