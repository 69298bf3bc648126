//! What only servers do: stop, hang, refuse passwords and privileges, and accept no changes.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use fathom_history::{Error, ErrorKind, Filter, History, HistoryPath, Kept, Location, RunId, Store};
use fathom_record::{RunHeader, RunRecord, TestStatus};
use fathom_sys::clock::monotonic_ns;
use fathom_tests::{PostgresServer, wait_for};

use crate::fixture::{PATIENCE, Place, findings, header, record, test, test_ids};

/// A server that a test may stop, and a history on it.
fn own_server() -> Option<(PostgresServer, Place)> {
    let server = PostgresServer::start()?;
    let place = Place::on(&server);
    Some((server, place))
}

fn side_file(store: &Store) -> PathBuf {
    match store.kept() {
        Kept::File(path) => path,
        other => panic!("{other:?}"),
    }
}

fn finish(store: &mut Store, target: &str) {
    assert!(store.finish(TestStatus::Complete, &header(target), &findings()).is_none());
}

fn files(place: &Place) -> usize {
    let own = fs::read_dir(place.directory.path().join("own")).into_iter().flatten().flatten();
    own.map(|directory| fs::read_dir(directory.path()).unwrap().count()).sum()
}

/// The seconds that `work` takes.
fn seconds(work: impl FnOnce()) -> f64 {
    let start = monotonic_ns();
    work();
    (monotonic_ns() - start) as f64 / 1e9
}

#[test]
fn a_server_that_stops_during_a_run_gets_the_record_from_the_next_run() {
    let Some((server, place)) = own_server() else { return };
    let path = place.path(Duration::from_secs(3));
    let (mut store, warning) = Store::begin(&path, &header("/mnt"));
    assert!(warning.is_none() && store.append(&test("a")).is_none());
    server.stop();
    let mut warning = None;
    assert!(seconds(|| warning = store.append(&test("b"))) < 1.0);
    let warning = warning.unwrap();
    assert_eq!(warning.error.kind, ErrorKind::Unreachable, "{warning}");
    let file = side_file(&store);
    assert!(warning.to_string().ends_with(&format!("the record is kept in {} instead", file.display())));
    assert!(warning.hint().unwrap().contains("later run sends"), "{:?}", warning.hint());
    assert_eq!(file.parent().and_then(|directory| directory.parent()), path.own_directory.as_deref());
    assert!(store.append(&test("c")).is_none());
    finish(&mut store, "/mnt");
    let sent = store.send_unsent(&path);
    assert!(sent.runs.is_empty() && sent.errors.is_empty());
    let stored = RunRecord::from_json(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(stored, record("/mnt", &["a", "b", "c"]));

    server.resume();
    let (mut next, warning) = Store::begin(&path, &header("/next"));
    assert!(warning.is_none());
    finish(&mut next, "/next");
    let sent = next.send_unsent(&path);
    assert_eq!(sent.runs, [(file.clone(), RunId(1))]);
    assert!(sent.errors.is_empty() && !file.exists());
    let history = place.open();
    assert_eq!(history.load(RunId(1)).unwrap(), record("/mnt", &["a", "b", "c"]));
    assert_eq!(history.list(&Filter::default()).unwrap().rows.len(), 2);
    place_sql_is_sound(&server, &place);
}

#[test]
fn a_server_that_is_back_at_the_end_of_a_run_gets_its_record_at_once() {
    let Some((server, place)) = own_server() else { return };
    let path = place.path(Duration::from_secs(3));
    server.stop();
    let (mut store, warning) = Store::begin(&path, &header("/mnt"));
    assert_eq!(warning.unwrap().error.kind, ErrorKind::Unreachable);
    assert!(store.append(&test("a")).is_none());
    server.resume();
    finish(&mut store, "/mnt");
    let sent = store.send_unsent(&path);
    assert!(sent.runs.is_empty() && sent.errors.is_empty(), "{sent:?}");
    let Kept::Run(run) = store.kept() else { panic!("{:?}", store.kept()) };
    assert_eq!(place.open().load(run).unwrap(), record("/mnt", &["a"]));
    assert_eq!(files(&place), 0);
}

#[test]
fn without_a_directory_of_the_users_own_the_command_is_named_that_sends_the_record() {
    let location = Location::new("postgres://nobody@localhost:1/none");
    let place = HistoryPath { own_directory: None, ..HistoryPath::new(Some(location)) };
    let (store, warning) = Store::begin(&place, &header("/mnt"));
    let file = side_file(&store);
    let expected = format!("send the record later with `fathom history import {}`", file.display());
    let warning = warning.unwrap();
    match warning.error.kind {
        ErrorKind::Unreachable => assert_eq!(warning.hint(), Some(expected)),
        // A machine without the library.
        ErrorKind::NoClient => assert!(warning.hint().unwrap().contains("libpq5")),
        _ => panic!("{warning}"),
    }
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

#[test]
fn a_record_that_cannot_be_sent_stays_and_hinders_no_other() {
    let Some(place) = Place::server() else { return };
    let path = place.path(PATIENCE);
    let (mut store, _) = Store::begin(&path, &header("/mnt"));
    finish(&mut store, "/mnt");
    // As runs leave them whose server cannot be reached.
    let name = match &place.location {
        Location::Server(server) => server.directory_name().unwrap(),
        Location::File(path) => panic!("{path:?}"),
    };
    let directory = place.directory.path().join("own").join(name);
    fs::create_dir_all(&directory).unwrap();
    let write = |name: &str, record: &RunRecord| {
        let mut text = Vec::new();
        record.write_json(&mut text).unwrap();
        fs::write(directory.join(name), text).unwrap();
    };
    fs::write(directory.join("fathom-20260101T000000Z-1.json"), "{").unwrap();
    write("fathom-20260102T000000Z-999999999.json", &record("/dead", &["a"]));
    let going_on = RunRecord { status: TestStatus::Incomplete, ..record("/alive", &["a"]) };
    write(&format!("fathom-20260103T000000Z-{}.json", std::process::id()), &going_on);
    let sent = store.send_unsent(&path);
    assert_eq!(sent.runs.len(), 1);
    assert!(matches!(&sent.errors[..], [error] if error.kind == ErrorKind::Unreadable), "{sent:?}");
    let targets: Vec<String> =
        place.open().list(&Filter::default()).unwrap().rows.into_iter().map(|row| row.target).collect();
    assert_eq!(targets, ["/mnt", "/dead"]);
    assert_eq!(files(&place), 2);
}

#[test]
fn a_server_that_hangs_delays_a_run_once_and_briefly() {
    let Some((server, place)) = own_server() else { return };
    // Two seconds for an answer.
    let path = place.path(Duration::ZERO);
    let (mut store, _) = Store::begin(&path, &header("/mnt"));
    server.hang();
    let mut warning = None;
    let waited = seconds(|| warning = store.append(&test("a")));
    assert!((1.9..4.0).contains(&waited), "{waited} s");
    let warning = warning.unwrap().to_string();
    assert!(warning.contains("the server did not answer within 2.0 s"), "{warning}");
    let waited = seconds(|| {
        assert!(store.append(&test("b")).is_none());
        finish(&mut store, "/mnt");
    });
    assert!(waited < 1.0, "{waited} s");
    // Neither can a run begin, but nobody waits as long again.
    let waited = seconds(|| drop(Store::begin(&path, &header("/next"))));
    assert!((0.4..1.5).contains(&waited), "{waited} s");
    server.go_on();
    let sent = store.send_unsent(&path);
    assert!(sent.errors.is_empty(), "{sent:?}");
    assert_eq!(store.kept(), Kept::Run(RunId(1)));
    assert_eq!(test_ids(&place.open().load(RunId(1)).unwrap()), ["a", "b"]);
}

#[test]
fn a_lock_of_another_client_sends_a_test_to_a_file() {
    let Some(server) = PostgresServer::shared() else { return };
    let place = Place::on(server);
    let (mut store, _) = Store::begin(&place.path(Duration::ZERO), &header("/mnt"));
    let hold = "BEGIN; LOCK TABLE tests IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)";
    let mut holder = server.psql(place.database());
    let mut holder = holder.arg("--command").arg(hold).stdout(Stdio::null()).spawn().unwrap();
    let held = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted
        AND relation = 'fathom.tests'::regclass";
    assert!(wait_for(Duration::from_secs(10), || place.sql(held) == "1"));
    let warning = store.append(&test("a")).unwrap();
    assert_eq!(warning.error.kind, ErrorKind::Locked, "{warning}");
    assert_eq!(
        test_ids(&RunRecord::from_json(&fs::read_to_string(side_file(&store)).unwrap()).unwrap()),
        ["a"]
    );
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[test]
fn passwords_appear_nowhere() {
    let Some(server) = PostgresServer::shared() else { return };
    let database = server.create_database();
    let right = Location::new(server.guarded_uri(&database, server.password()));
    History::open(&right, PATIENCE).unwrap().begin(&header("/mnt")).unwrap();
    let wrong = "not the password";
    let wrong_uri = Location::new(server.guarded_uri(&database, wrong));
    let error = History::open(&wrong_uri, PATIENCE).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unreachable, "{error}");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("password authentication failed"), "{source}");
    for text in
        [format!("{error:?} {error} {source} {:?}", error.hint()), format!("{wrong_uri:?} {wrong_uri}")]
    {
        assert!(!text.contains(wrong) && !text.contains("not%20the"), "{text}");
    }
}

#[test]
fn databases_that_are_no_histories_are_refused() {
    let Some(server) = PostgresServer::shared() else { return };
    let check = |place: &Place, message: &str| {
        for opened in
            [History::open(&place.location, PATIENCE), History::open_existing(&place.location, PATIENCE)]
        {
            let error = opened.unwrap_err();
            assert_eq!(error.to_string(), format!("history {}: {message}", place.location));
            assert!(error.hint().is_some_and(|hint| !hint.is_empty()));
        }
    };
    let newer = Place::on(server);
    drop(newer.open());
    newer.sql("UPDATE history_format SET number = 1000");
    check(&newer, "has format 1000; this version of fathom supports formats up to 4");
    let foreign = Place::on(server);
    foreign.sql("CREATE SCHEMA fathom; CREATE TABLE fathom.fish (id int)");
    check(&foreign, "is the database of another program (application id 0x0)");
    // Tables of others elsewhere do not matter, nor does a schema that was made for it.
    let shared = Place::on(server);
    shared.sql("CREATE TABLE public.runs (id int); CREATE SCHEMA fathom");
    let missing = History::open_existing(&shared.location, PATIENCE).unwrap_err();
    assert!(missing.kind == ErrorKind::Missing && missing.is_missing());
    assert_eq!(shared.open().begin(&header("/mnt")).unwrap(), RunId(1));
    shared.assert_sound();
}

#[test]
fn a_server_that_accepts_no_changes_can_be_read() {
    let Some(place) = Place::server() else { return };
    let run = place.open().import(&record("/mnt", &["a", "b"])).unwrap();
    place.sql(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", place.database()));
    let error = History::open(&place.location, PATIENCE).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ReadOnly, "{error:?}");
    let mut history = History::open_existing(&place.location, PATIENCE).unwrap();
    assert_eq!(history.list(&Filter::default()).unwrap().rows.len(), 1);
    assert_eq!(history.size().unwrap().tests, 2);
    assert_eq!(history.load(run).unwrap(), record("/mnt", &["a", "b"]));
    let error = history.tag(run, "t").unwrap_err();
    assert_eq!(error.kind, ErrorKind::ReadOnly, "{error:?}");
}

#[test]
fn a_user_without_privileges_is_told_which() {
    let Some(server) = PostgresServer::shared() else { return };
    let place = Place::on(server);
    drop(place.open());
    let location = Location::new(server.reader_uri(place.database()));
    let denied = |opened: Result<History, Error>| {
        let error = opened.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{error:?}");
        assert!(error.hint().unwrap().contains("grant this user"), "{error}");
    };
    denied(History::open_existing(&location, PATIENCE));
    denied(History::open(&Location::new(server.reader_uri("template1")), PATIENCE));
    place
        .sql("GRANT USAGE ON SCHEMA fathom TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA fathom TO reader");
    let mut history = History::open(&location, PATIENCE).unwrap();
    assert!(history.list(&Filter::default()).unwrap().rows.is_empty());
    assert!(history.begin(&header("/mnt")).unwrap_err().kind == ErrorKind::Denied);
    place.sql("GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA fathom TO reader");
    let run = history.import(&record("/mnt", &["a"])).unwrap();
    assert_eq!(history.load(run).unwrap(), record("/mnt", &["a"]));
}

#[test]
fn texts_that_servers_cannot_store_stay_in_the_record() {
    let Some(place) = Place::server() else { return };
    let odd = RunHeader { target: "a\0b".to_owned(), ..header("/mnt") };
    let mut history = place.open();
    let run = history.begin(&odd).unwrap();
    history.append(run, &test("x\0")).unwrap();
    history.finish(run, TestStatus::Complete, &odd, &[]).unwrap();
    assert_eq!(history.load(run).unwrap().header, odd);
    assert_eq!(history.list(&Filter::default()).unwrap().rows[0].target, "a\u{2400}b");
}

/// As [`Place::assert_sound`], for a server of a test's own.
fn place_sql_is_sound(server: &PostgresServer, place: &Place) {
    let orphans = "SELECT count(*) FROM tests WHERE run_id NOT IN (SELECT id FROM runs)";
    assert_eq!(server.sql(place.database(), orphans), "0");
}
