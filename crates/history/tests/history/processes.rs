//! Several writers at once, and writers that are killed.
//!
//! A writing process is this test binary, which runs only `writer` if the environment says so.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use fathom_history::{Filter, History, Location, RunId};
use fathom_record::TestStatus;

use crate::fixture::{PATIENCE, Place, findings, header, on_both, test, test_ids};

on_both!(
    twenty_processes_create_and_fill_one_history,
    twenty_threads_create_and_fill_one_history,
    a_hundred_kills_lose_no_finished_test_and_damage_nothing,
    a_killed_writer_keeps_its_finished_tests,
);

const HISTORY: &str = "FATHOM_TEST_WRITER_HISTORY";
const TESTS: &str = "FATHOM_TEST_WRITER_TESTS";
const WRITERS: usize = 20;
const TESTS_EACH: usize = 20;

/// Stores a run of `tests` tests and prints a line after each.
fn write_run(location: &Location, name: &str, tests: usize) {
    let mut history = History::open(location, PATIENCE).unwrap();
    let run = history.begin(&header(name)).unwrap();
    for number in 0..tests {
        let mut test = test(&number.to_string());
        // Several pages each, so that a kill can interrupt a write.
        test.notes = vec![format!("{name} {number} ").repeat(2000)];
        history.append(run, &test).unwrap();
        println!("stored {number}");
    }
    history.finish(run, TestStatus::Complete, &header(name), &findings()).unwrap();
}

#[test]
fn writer() {
    if let (Some(location), Some(tests)) = (std::env::var_os(HISTORY), std::env::var_os(TESTS)) {
        let tests = tests.to_str().unwrap().parse().unwrap();
        write_run(&Location::new(location), &std::process::id().to_string(), tests);
    }
}

fn spawn_writer(place: &Place, tests: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::writer", "--nocapture", "--test-threads=1"])
        .env(HISTORY, place.uri())
        .env(TESTS, tests.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn assert_nothing_lost(place: &Place) {
    let history = place.open();
    let rows = history.list(&Filter::default()).unwrap().rows;
    assert_eq!(rows.len(), WRITERS);
    for row in rows {
        let run = history.load(RunId(row.id as i64)).unwrap();
        assert_eq!((run.status, run.tests.len()), (TestStatus::Complete, TESTS_EACH));
        for (number, test) in run.tests.iter().enumerate() {
            assert_eq!(test.id, number.to_string());
            assert_eq!(test.notes[0], format!("{} {number} ", row.target).repeat(2000));
        }
    }
    drop(history);
    place.assert_sound();
}

fn twenty_processes_create_and_fill_one_history(place: &Place) {
    let writers: Vec<Child> = (0..WRITERS).map(|_| spawn_writer(place, TESTS_EACH)).collect();
    for writer in writers {
        let output = writer.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_nothing_lost(place);
}

fn twenty_threads_create_and_fill_one_history(place: &Place) {
    std::thread::scope(|scope| {
        for number in 0..WRITERS {
            scope.spawn(move || write_run(&place.location, &format!("thread {number}"), TESTS_EACH));
        }
    });
    assert_nothing_lost(place);
}

/// Runs that are killed, each a little later than the one before.
const KILLS: u32 = 100;
/// Tests of a run that is killed.
const TESTS_KILLED: usize = 4;

fn a_hundred_kills_lose_no_finished_test_and_damage_nothing(place: &Place) {
    let mut finished = Vec::new();
    for kill in 0..KILLS {
        let mut writer = spawn_writer(place, TESTS_KILLED);
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        // From the first test on, or from the last: then the end of the run is written.
        let until = format!("stored {}", kill as usize % TESTS_KILLED);
        assert!(
            lines.by_ref().map(Result::unwrap).any(|line| line.ends_with(&until)),
            "the writer ended early"
        );
        // Some hundredths of a write later.
        (0..kill * 2_000).for_each(|number| drop(std::hint::black_box(number.to_string())));
        writer.kill().unwrap();
        let has_finished = writer.wait().unwrap().success();
        let reported = until_number(lines.map_while(Result::ok), kill as usize % TESTS_KILLED);

        let history = place.open();
        let run = history.load(RunId(i64::from(kill) + 1)).unwrap();
        assert!(run.tests.len() > reported, "{} tests of {reported} reported", run.tests.len());
        for (number, test) in run.tests.iter().enumerate() {
            assert_eq!(test.id, number.to_string());
        }
        if has_finished {
            assert_eq!((run.status, run.tests.len()), (TestStatus::Complete, TESTS_KILLED));
        }
        if run.status == TestStatus::Complete {
            finished.push(u64::from(kill) + 1);
        }
        if kill % 20 == 0 {
            place.assert_sound();
        }
    }
    let rows = place.open().list(&Filter::default()).unwrap();
    assert_eq!((rows.rows.len(), rows.unreadable.len()), (KILLS as usize, 0));
    // A server may have finished since what a killed writer had sent to it; nothing goes back.
    let complete: Vec<u64> =
        rows.rows.iter().filter(|row| row.status == TestStatus::Complete).map(|row| row.id).collect();
    assert!(finished.iter().all(|id| complete.contains(id)), "{finished:?} became {complete:?}");
    place.assert_sound();
}

/// The last test that a writer reported, `first` if it reported none after that.
fn until_number(lines: impl Iterator<Item = String>, first: usize) -> usize {
    let numbers = lines.filter_map(|line| line.rsplit_once("stored ")?.1.trim().parse().ok());
    numbers.last().unwrap_or(first)
}

fn a_killed_writer_keeps_its_finished_tests(place: &Place) {
    for (round, until) in [0, 1, 7, 20].into_iter().enumerate() {
        let mut writer = spawn_writer(place, usize::MAX);
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let last = format!("stored {until}");
        assert!(lines.map(Result::unwrap).any(|line| line.ends_with(&last)), "the writer ended early");
        // SIGKILL, at any point of its work.
        writer.kill().unwrap();
        writer.wait().unwrap();

        place.assert_sound();
        let mut history = place.open();
        let rows = history.list(&Filter::default()).unwrap().rows;
        assert_eq!(rows.len(), round + 1);
        let run = history.load(RunId(rows[round].id as i64)).unwrap();
        assert_eq!(run.status, TestStatus::Incomplete);
        assert!(run.tests.len() > until, "{} of {until} tests", run.tests.len());
        let expected: Vec<String> = (0..run.tests.len()).map(|number| number.to_string()).collect();
        assert_eq!(test_ids(&run), expected);
        // And it can be written to immediately.
        let next = history.begin(&header("next")).unwrap();
        history.remove(&[next]).unwrap();
    }
}
