//! Several writers at once, and writers that are killed.
//!
//! A writing process is this test binary, which runs only `writer` if the environment says so.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fathom_history::{Filter, RunId};
use fathom_record::TestStatus;

use crate::fixture::{assert_sound, findings, header, open, place, test, test_ids};

const HISTORY: &str = "FATHOM_TEST_WRITER_HISTORY";
const TESTS: &str = "FATHOM_TEST_WRITER_TESTS";
const WRITERS: usize = 8;
const TESTS_EACH: usize = 50;

/// Stores a run of `tests` tests and prints a line after each.
fn write_run(path: &Path, name: &str, tests: usize) {
    let mut history = open(path);
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
    if let (Some(path), Some(tests)) = (std::env::var_os(HISTORY), std::env::var_os(TESTS)) {
        let tests = tests.to_str().unwrap().parse().unwrap();
        write_run(Path::new(&path), &std::process::id().to_string(), tests);
    }
}

fn spawn_writer(path: &Path, tests: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::writer", "--nocapture", "--test-threads=1"])
        .env(HISTORY, path)
        .env(TESTS, tests.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn assert_nothing_lost(path: &Path) {
    let history = open(path);
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
    assert_sound(path);
}

#[test]
fn eight_processes_create_and_fill_one_history() {
    let (_directory, path) = place();
    let writers: Vec<Child> = (0..WRITERS).map(|_| spawn_writer(&path, TESTS_EACH)).collect();
    for writer in writers {
        let output = writer.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_nothing_lost(&path);
}

#[test]
fn eight_threads_create_and_fill_one_history() {
    let (_directory, path) = place();
    std::thread::scope(|scope| {
        for number in 0..WRITERS {
            let path = &path;
            scope.spawn(move || write_run(path, &format!("thread {number}"), TESTS_EACH));
        }
    });
    assert_nothing_lost(&path);
}

#[test]
fn a_killed_writer_keeps_its_finished_tests() {
    let (_directory, path) = place();
    for (round, until) in [0, 1, 7, 20].into_iter().enumerate() {
        let mut writer = spawn_writer(&path, usize::MAX);
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let last = format!("stored {until}");
        assert!(lines.map(Result::unwrap).any(|line| line.ends_with(&last)), "the writer ended early");
        // SIGKILL, at any point of its work.
        writer.kill().unwrap();
        writer.wait().unwrap();

        assert_sound(&path);
        let mut history = open(&path);
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
