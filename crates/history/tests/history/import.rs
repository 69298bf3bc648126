//! Records from other histories.

use std::fs;

use fathom_history::{ErrorKind, Filter, RunId};
use fathom_record::TestStatus;

use crate::fixture::{Place, header, on_both, record, test, test_ids};

on_both!(
    an_export_is_imported_once,
    the_remaining_tests_are_added_to_a_partial_run,
    invalid_records_are_refused,
    a_different_run_gets_its_own_entry,
    a_stale_file_does_not_undo_the_end_of_a_run,
);

fn an_export_is_imported_once(place: &Place) {
    let expected = record("/mnt", &["a", "b"]);
    let first = Place::file();
    let mut history = first.open();
    let run = history.import(&expected).unwrap();
    let file = first.directory.path().join("export.json");
    fs::write(&file, history.export(run).unwrap()).unwrap();
    let mut other = place.open();
    other.begin(&header("/another")).unwrap();
    for _ in 0..2 {
        assert_eq!(other.import_file(&file).unwrap(), RunId(2));
    }
    assert_eq!(other.load(RunId(2)).unwrap(), expected);
    assert_eq!(other.list(&Filter::default()).unwrap().rows.len(), 2);
}

fn the_remaining_tests_are_added_to_a_partial_run(place: &Place) {
    let mut history = place.open();
    // (stored, in the file, expected)
    for (number, (stored, added, expected)) in [
        (&["a"][..], &["a", "b", "c"][..], &["a", "b", "c"][..]),
        (&["a", "b"], &["c"], &["a", "b", "c"]),
        (&[], &["a"], &["a"]),
        (&["a", "b"], &["a"], &["a", "b"]),
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("/mnt{number}");
        let run = history.begin(&header(&target)).unwrap();
        for id in stored {
            history.append(run, &test(id)).unwrap();
        }
        let mut rest = record(&target, added);
        rest.header.notes.push("known only at the end".into());
        assert_eq!(history.import(&rest).unwrap(), run, "{stored:?} {added:?}");
        let merged = history.load(run).unwrap();
        assert_eq!(test_ids(&merged), expected);
        assert_eq!((merged.status, merged.header), (TestStatus::Complete, rest.header));
    }
}

fn a_different_run_gets_its_own_entry(place: &Place) {
    let mut history = place.open();
    let first = history.import(&record("/mnt", &["a"])).unwrap();
    let mut later = record("/mnt", &["a"]);
    later.header.hosts[0].started_monotonic_ns += 1;
    assert_ne!(history.import(&later).unwrap(), first);
    let mut differs = record("/mnt", &["a"]);
    differs.tests[0].elapsed_ns = 5;
    assert_ne!(history.import(&differs).unwrap(), first);
    assert_eq!(history.list(&Filter::default()).unwrap().rows.len(), 3);
}

fn a_stale_file_does_not_undo_the_end_of_a_run(place: &Place) {
    let mut history = place.open();
    let whole = record("/mnt", &["a", "b"]);
    let run = history.import(&whole).unwrap();
    let mut stale = record("/mnt", &["a"]);
    stale.status = TestStatus::Incomplete;
    stale.findings.clear();
    assert_eq!(history.import(&stale).unwrap(), run);
    assert_eq!(history.load(run).unwrap(), whole);
}

fn invalid_records_are_refused(place: &Place) {
    let mut history = place.open();
    let file = place.directory.path().join("x.json");
    for text in ["", "[]", "{", r#"{"schema":"fathom.record/3"}"#, r#"{"fio version":"fio-3.33"}"#] {
        fs::write(&file, text).unwrap();
        let error = history.import_file(&file).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unreadable, "{text}: {error:?}");
        assert_eq!(error.to_string(), format!("{}: cannot read the record", file.display()));
    }
    fs::write(&file, b"\xff\xfe").unwrap();
    assert!(history.import_file(&file).is_err_and(|error| error.kind == ErrorKind::Input));
    assert!(history.import_file(place.directory.path()).is_err_and(|error| error.kind == ErrorKind::Input));
    assert!(history.list(&Filter::default()).unwrap().rows.is_empty());
}
