//! One history, one user: stored runs are read back.

use fathom_history::{ErrorKind, Filter, History, RunId};
use fathom_record::{ActivityKind, TestStatus};

use crate::fixture::{PATIENCE, Place, findings, header, on_both, open, place, record, test, test_ids};

on_both!(
    a_run_is_read_back_exactly,
    a_run_is_incomplete_until_it_is_finished,
    the_list_is_filtered,
    a_simulated_run_has_no_time,
    removed_ids_are_not_reused,
    removing_is_all_or_nothing,
    unknown_runs_are_named,
    notes,
    tags,
    a_record_of_a_later_version_is_exported_as_it_is,
);

fn a_run_is_read_back_exactly(place: &Place) {
    let expected = record("/mnt", &["a", "b", "c"]);
    let mut history = place.open();
    let run = history.begin(&expected.header).unwrap();
    for test in &expected.tests {
        history.append(run, test).unwrap();
    }
    history.finish(run, TestStatus::Complete, &expected.header, &expected.findings).unwrap();
    drop(history);
    let history = History::open_existing(&place.location, PATIENCE).unwrap();
    assert_eq!(history.load(run).unwrap(), expected);
    assert_eq!(history.export(run).unwrap(), expected.to_json());
    place.assert_sound();
}

fn a_run_is_incomplete_until_it_is_finished(place: &Place) {
    let mut history = place.open();
    let run = history.begin(&header("/mnt")).unwrap();
    history.append(run, &test("a")).unwrap();
    // Another process reads, as it would after this one was killed.
    let seen = place.open().load(run).unwrap();
    assert_eq!((seen.status, test_ids(&seen), seen.findings.len()), (TestStatus::Incomplete, vec!["a"], 0));
    let mut last = header("/mnt");
    last.interrupted = Some("SIGINT".into());
    history.finish(run, TestStatus::Failed, &last, &findings()).unwrap();
    let seen = place.open().load(run).unwrap();
    assert_eq!((seen.status, seen.header, seen.findings), (TestStatus::Failed, last, findings()));
}

fn the_list_is_filtered(place: &Place) {
    let mut history = place.open();
    for (target, status) in [
        ("/a", TestStatus::Complete),
        ("/b", TestStatus::Failed),
        ("/a", TestStatus::Incomplete),
        ("/a", TestStatus::Complete),
    ] {
        let run = history.begin(&header(target)).unwrap();
        history.append(run, &test("x")).unwrap();
        if status != TestStatus::Incomplete {
            history.finish(run, status, &header(target), &[]).unwrap();
        }
    }
    history.tag(RunId(1), "base").unwrap();
    history.tag(RunId(2), "base").unwrap();
    history.add_note(RunId(3), "after the Kernel update", 1).unwrap();
    let check = |filter: Filter, expected: &[u64]| {
        let ids: Vec<u64> = history.list(&filter).unwrap().rows.iter().map(|row| row.id).collect();
        assert_eq!(ids, expected, "{filter:?}");
    };
    check(Filter::default(), &[1, 2, 3, 4]);
    check(Filter { status: Some(TestStatus::Complete), ..Filter::default() }, &[1, 4]);
    check(Filter { status: Some(TestStatus::Incomplete), ..Filter::default() }, &[3]);
    check(Filter { target: Some("/a".into()), ..Filter::default() }, &[1, 3, 4]);
    check(Filter { target: Some("/a".into()), newest: Some(2), ..Filter::default() }, &[3, 4]);
    check(Filter { kind: Some(ActivityKind::Fio), ..Filter::default() }, &[]);
    check(Filter { tag: Some("base".into()), ..Filter::default() }, &[1, 2]);
    check(Filter { tag: Some("base".into()), newest: Some(1), ..Filter::default() }, &[2]);
    check(Filter { newest: Some(0), ..Filter::default() }, &[]);
    let text = |text: &str| Filter { text: Some(text.to_owned()), ..Filter::default() };
    check(text("kernel"), &[3]);
    check(text("BASE"), &[1, 2]);
    check(text("gp2 \"fast"), &[1, 2, 3, 4]);
    check(text("nothing"), &[]);
    check(Filter { host: Some("host".into()), ..Filter::default() }, &[1, 2, 3, 4]);
    check(Filter { host: Some("other".into()), ..Filter::default() }, &[]);
    check(Filter { device: Some("/b".into()), ..Filter::default() }, &[2]);
    check(Filter { volume_type: Some("aws-gp2".into()), ..Filter::default() }, &[]);
    check(Filter { test: Some("x".into()), ..Filter::default() }, &[1, 2, 3, 4]);
    check(Filter { test: Some("y".into()), ..Filter::default() }, &[]);
    check(Filter { since_unix_ms: Some(1_790_000_000_123), ..Filter::default() }, &[1, 2, 3, 4]);
    check(Filter { until_unix_ms: Some(1_790_000_000_123), ..Filter::default() }, &[]);

    let row = &history.list(&Filter::default()).unwrap().rows[1];
    assert_eq!(row.started, "2026-09-21T14:13:20Z");
    assert_eq!((row.started_unix_ms, row.tests), (1_790_000_000_123, 1));
    assert_eq!((row.target.as_str(), row.kind), ("/b", ActivityKind::Bench));
    assert_eq!((row.command.as_str(), row.hostname.as_str()), ("fathom bench /b", "host"));
    assert_eq!((row.status, row.labels.len()), (TestStatus::Failed, 1));
}

fn a_simulated_run_has_no_time(place: &Place) {
    let mut history = place.open();
    history.begin(&Default::default()).unwrap();
    history.begin(&fathom_record::RunHeader { started_unix_ms: u64::MAX, ..Default::default() }).unwrap();
    for row in history.list(&Filter::default()).unwrap().rows {
        assert_eq!(row.started, "");
    }
}

fn removed_ids_are_not_reused(place: &Place) {
    for expected in 1..=3 {
        let mut history = place.open();
        let run = history.begin(&header("/mnt")).unwrap();
        assert_eq!(run, RunId(expected));
        history.remove(&[run]).unwrap();
    }
}

fn removing_is_all_or_nothing(place: &Place) {
    let mut history = place.open();
    for _ in 0..3 {
        let run = history.begin(&header("/mnt")).unwrap();
        history.append(run, &test("a")).unwrap();
        history.tag(run, "t").unwrap();
    }
    let error = history.remove(&[RunId(1), RunId(9), RunId(-4)]).unwrap_err();
    assert_eq!(error.to_string(), format!("history {}: no run -4, 9", place.location));
    assert_eq!(history.list(&Filter::default()).unwrap().rows.len(), 3);
    history.remove(&[RunId(3), RunId(1), RunId(3)]).unwrap();
    history.remove(&[]).unwrap();
    let left: Vec<u64> = history.list(&Filter::default()).unwrap().rows.iter().map(|row| row.id).collect();
    assert_eq!(left, [2]);
    drop(history);
    place.assert_sound();
}

#[test]
fn removing_gives_the_space_back() {
    let (_directory, path) = place();
    let mut history = open(&path);
    let mut large = test("large");
    large.notes = vec!["x".repeat(4 << 20)];
    let kept = history.begin(&header("/mnt")).unwrap();
    let removed = history.begin(&header("/mnt")).unwrap();
    history.append(removed, &large).unwrap();
    history.append(kept, &test("small")).unwrap();
    history.remove(&[removed]).unwrap();
    // Both parts of the database, while it is open.
    let used: u64 = std::fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(used < 256 << 10, "{used} bytes");
    assert_eq!(test_ids(&history.load(kept).unwrap()), ["small"]);
}

fn unknown_runs_are_named(place: &Place) {
    let mut history = place.open();
    let nine = RunId(9);
    let expected = format!("history {}: no run 9", place.location);
    for result in [
        history.append(nine, &test("a")),
        history.finish(nine, TestStatus::Complete, &header("/mnt"), &[]),
        history.load(nine).map(drop),
        history.export(nine).map(drop),
        history.tag(nine, "t"),
        history.untag(nine, "t").map(drop),
    ] {
        assert_eq!(result.unwrap_err().to_string(), expected);
    }
}

fn notes(place: &Place) {
    let mut history = place.open();
    let run = history.begin(&header("/mnt")).unwrap();
    for note in ["  first ", "second"] {
        history.add_note(run, note, 7).unwrap();
    }
    assert_eq!(history.notes(run).unwrap(), ["first", "second"]);
    assert_eq!(history.list(&Filter::default()).unwrap().rows[0].notes, ["first", "second"]);
    assert!(history.add_note(run, " \n", 7).is_err_and(|error| error.kind == ErrorKind::BadText));
    assert_eq!(history.remove_notes(run).unwrap(), 2);
    assert!(history.notes(run).unwrap().is_empty());
    history.add_note(run, "third", 7).unwrap();
    history.remove(&[run]).unwrap();
    drop(history);
    place.assert_sound();
}

#[test]
fn the_size_is_that_of_the_files() {
    let (_directory, path) = place();
    let mut history = open(&path);
    history.import(&record("/a", &["x", "y"])).unwrap();
    history.import(&record("/b", &["x"])).unwrap();
    let size = history.size().unwrap();
    assert_eq!((size.runs, size.tests, size.format), (2, 3, 4));
    let files: u64 = ["", "-wal"]
        .iter()
        .map(|suffix| std::fs::metadata(format!("{}{suffix}", path.display())).unwrap().len())
        .sum();
    assert_eq!(size.bytes, files);
}

fn tags(place: &Place) {
    let mut history = place.open();
    let run = history.begin(&header("/mnt")).unwrap();
    for tag in ["b", "a", "b", "do volume"] {
        history.tag(run, tag).unwrap();
    }
    assert_eq!(history.tags(run).unwrap(), ["a", "b", "do volume"]);
    assert!(history.untag(run, "b").unwrap());
    assert!(!history.untag(run, "b").unwrap());
    assert_eq!(history.tags(run).unwrap(), ["a", "do volume"]);
    assert_eq!(history.list(&Filter::default()).unwrap().rows[0].tags, ["a", "do volume"]);
    for tag in ["", " ", "17", "-3", "a\nb", "a,b", "a~1", "host:a"] {
        assert!(history.tag(run, tag).is_err_and(|error| error.kind == ErrorKind::BadText), "{tag:?}");
    }
}

fn a_record_of_a_later_version_is_exported_as_it_is(place: &Place) {
    let mut history = place.open();
    let run = history.begin(&header("/mnt")).unwrap();
    place.sql("UPDATE runs SET schema = 'fathom.record/99', header = '{\"new\":1}'");
    let exported = history.export(run).unwrap();
    assert!(exported.contains(r#""header":{"new":1}"#), "{exported}");
    let error = history.load(run).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unreadable, "{error}");
    assert!(error.hint().is_some());
}
