//! One unreadable run: the others are listed, shown, exported and extended as before.

use fathom_history::{Error, ErrorKind, Filter, RunId};

use crate::fixture::{Place, on_both, record, test_ids};

on_both!(
    one_damaged_run_does_not_affect_others,
    the_newest_readable_run_is_found_after_a_damaged_one,
    a_run_with_damaged_columns_is_not_listed_but_can_be_read,
);

/// Runs `sql` on the history, whatever the schema of a file forbids.
fn corrupt(place: &Place, sql: &str) {
    let Some(path) = place.location.file() else { return drop(place.sql(sql)) };
    let connection = rusqlite::Connection::open(path).unwrap();
    let permissive = "PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(replace(replace(sql, 'STRICT', ''), 'NOT NULL', ''), 'TEXT', '');
        PRAGMA writable_schema = RESET;";
    connection.execute_batch(permissive).unwrap();
    assert_eq!(connection.execute(sql, []).unwrap(), 1, "{sql}");
}

/// Damage to run 2 that any database permits.
const DAMAGES: &[&str] = &[
    "UPDATE runs SET header = '{\"command\":7}' WHERE id = 2",
    "UPDATE runs SET header = '\"x\"' WHERE id = 2",
    "UPDATE runs SET header = '{\"started_unix_ms\":1e30}' WHERE id = 2",
    "UPDATE runs SET header = '{\"started_unix_ms\":99999999999999999999999}' WHERE id = 2",
    "UPDATE runs SET header = substr(header, 1, 40) WHERE id = 2",
    "UPDATE runs SET header = '' WHERE id = 2",
    "UPDATE runs SET schema = 'fathom.bench/1' WHERE id = 2",
    "UPDATE runs SET findings = '[{' WHERE id = 2",
    "UPDATE runs SET findings = '[{\"severity\":\"odd\"}]' WHERE id = 2",
    "UPDATE tests SET body = '{\"id\":' WHERE run_id = 2",
    "UPDATE tests SET body = '[7]' WHERE run_id = 2",
    "UPDATE tests SET body = '{\"id\":\"a\",\"elapsed_ns\":-1}' WHERE run_id = 2",
    "UPDATE tests SET body = '{\"id\":\"a\",\"elapsed_ns\":1e400}' WHERE run_id = 2",
];

/// Damage that only a file permits, and whether the run can still be listed.
const DAMAGES_OF_FILES: &[(&str, bool)] = &[
    ("UPDATE runs SET header = NULL WHERE id = 2", true),
    ("UPDATE runs SET header = 17 WHERE id = 2", true),
    ("UPDATE runs SET header = x'ff00ff' WHERE id = 2", true),
    ("UPDATE runs SET header = CAST(x'ff' AS TEXT) WHERE id = 2", true),
    ("UPDATE runs SET header = zeroblob(17000000) WHERE id = 2", true),
    ("UPDATE runs SET header = replace(hex(zeroblob(300000)), '0', '[') WHERE id = 2", true),
    ("UPDATE runs SET status = NULL WHERE id = 2", false),
    ("UPDATE runs SET schema = NULL WHERE id = 2", true),
    ("UPDATE runs SET schema = x'00' WHERE id = 2", true),
    ("UPDATE runs SET findings = NULL WHERE id = 2", true),
    ("UPDATE tests SET body = NULL WHERE run_id = 2", true),
    ("UPDATE tests SET body = x'00' WHERE run_id = 2", true),
];

fn one_damaged_run_does_not_affect_others(place: &Place) {
    let anywhere = DAMAGES.iter().map(|sql| (*sql, true));
    let more = if place.is_server() { &[] } else { DAMAGES_OF_FILES };
    for (sql, is_listed) in anywhere.chain(more.iter().copied()) {
        let place = place.another();
        let mut history = place.open();
        for target in ["/one", "/two", "/three"] {
            history.import(&record(target, &["a"])).unwrap();
        }
        drop(history);
        corrupt(&place, sql);
        let mut history = place.open();

        let listing = history.list(&Filter::default()).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let ids: Vec<u64> = listing.rows.iter().map(|row| row.id).collect();
        let expected: &[u64] = if is_listed { &[1, 2, 3] } else { &[1, 3] };
        assert_eq!(ids, expected, "{sql}");
        let named: Vec<String> = listing.unreadable.iter().map(Error::to_string).collect();
        let message = format!("{}: cannot read run 2", place.location);
        assert_eq!(named, vec![message.as_str(); usize::from(!is_listed)], "{sql}");

        // The run itself is refused by name, and its export is not a partial document.
        for error in [history.load(RunId(2)).map(drop), history.export(RunId(2)).map(drop)] {
            let error = error.expect_err(sql);
            assert!(error.kind == ErrorKind::Unreadable && error.to_string() == message, "{sql}: {error:?}");
        }
        for (run, target) in [(1, "/one"), (3, "/three")] {
            assert_eq!(history.load(RunId(run)).unwrap(), record(target, &["a"]), "{sql}");
        }
        // Remaining tests are added to an intact run; the damaged one gets a new entry.
        assert_eq!(history.import(&record("/three", &["a", "b"])).unwrap(), RunId(3), "{sql}");
        assert_eq!(test_ids(&history.load(RunId(3)).unwrap()), ["a", "b"], "{sql}");
        history.import(&record("/two", &["a"])).unwrap_or_else(|error| panic!("{sql}: {error}"));
        history.remove(&[RunId(2)]).unwrap();
        assert!(history.list(&Filter::default()).unwrap().unreadable.is_empty(), "{sql}");
    }
}

fn the_newest_readable_run_is_found_after_a_damaged_one(place: &Place) {
    let mut history = place.open();
    for target in ["/one", "/two"] {
        history.import(&record(target, &["a"])).unwrap();
    }
    corrupt(place, "UPDATE runs SET target = NULL WHERE id = 2");
    let newest = history.list(&Filter { newest: Some(1), ..Filter::default() }).unwrap();
    assert_eq!((newest.rows[0].id, newest.unreadable.len()), (1, 1));
}

fn a_run_with_damaged_columns_is_not_listed_but_can_be_read(place: &Place) {
    let of_files = ["UPDATE runs SET device = x'ff' WHERE id = 2"];
    let damages = ["UPDATE runs SET target = NULL WHERE id = 2", "UPDATE runs SET labels = '{' WHERE id = 2"];
    for sql in damages.into_iter().chain(of_files.into_iter().filter(|_| !place.is_server())) {
        let place = place.another();
        let mut history = place.open();
        for target in ["/one", "/two"] {
            history.import(&record(target, &["a"])).unwrap();
        }
        corrupt(&place, sql);
        let listing = history.list(&Filter::default()).unwrap();
        assert_eq!((listing.rows.len(), listing.unreadable.len()), (1, 1), "{sql}");
        assert_eq!(history.load(RunId(2)).unwrap(), record("/two", &["a"]), "{sql}");
    }
}
