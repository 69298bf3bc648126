//! Our own tables and documents, byte for byte, on a record made by hand.

use fathom_analysis::Analysis;
use fathom_record::RunRecord;
use fathom_report::{
    Style, TextWriter, bench,
    fio::json as fio_json,
    fio::normal as fio_normal,
    formats::{csv, markdown, text as format_text},
    history,
};

use crate::sample;

fn text(write: impl FnOnce(&mut TextWriter) -> std::io::Result<()>) -> String {
    fathom_report::text_writer::text(write).expect("writing to memory")
}

fn table(style: &Style) -> String {
    text(|out| format_text::render(&bench::view(&Analysis::of(&sample::run()), style.show_fio), style, out))
}

#[test]
fn bench_table_at_80_columns() {
    insta::assert_snapshot!(table(&Style::default()));
}

#[test]
fn bench_table_at_200_columns_with_the_fio_commands() {
    insta::assert_snapshot!(table(&Style { width: 200, show_fio: true, ..Style::default() }));
}

#[test]
fn bench_in_markdown() {
    let view = bench::view(&Analysis::of(&sample::run()), true);
    insta::assert_snapshot!(text(|out| markdown::render(&view, &Style::default(), out)));
}

#[test]
fn bench_in_csv() {
    insta::assert_snapshot!(text(|out| csv::render(&bench::view(&Analysis::of(&sample::run()), false), out)));
}

#[test]
fn no_line_is_wider_than_asked_for() {
    for width in [60, 80, 100, 132, 200] {
        for line in table(&Style { width, ..Style::default() }).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colours_only_where_asked_for() {
    assert!(!table(&Style::default()).contains('\x1b'));
    let coloured = table(&Style { colour: true, ..Style::default() });
    let mut plain = coloured;
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m"] {
        assert!(plain.contains(code), "{code:?} is used");
        plain = plain.replace(code, "");
    }
    assert_eq!(plain, table(&Style::default()));
}

#[test]
fn bench_document() {
    let style = Style { run_id: Some(17), ..Style::default() };
    insta::assert_snapshot!(text(|out| bench::json::render(
        &Analysis::of(&sample::run()),
        &style,
        &mut out.json()
    )));
}

#[test]
fn fio_text_of_our_own_record() {
    insta::assert_snapshot!(text(|out| fio_normal::render(&sample::run(), &Style::default(), out)));
}

#[test]
fn fio_document_of_our_own_record_ends_in_our_notes() {
    let out = text(|out| fio_json::render(&sample::run(), &Style::default(), &mut out.json()));
    let document: serde_json::Value = serde_json::from_str(&out).expect("one valid document");
    let notes = document["fathom"]["notes"].as_array().expect("our own object");
    assert!(
        notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains("choose a smaller --size")))
    );
    let jobs = document["jobs"].as_array().expect("jobs");
    let groups: Vec<u64> = jobs.iter().map(|job| job["groupid"].as_u64().expect("an integer")).collect();
    assert_eq!(groups, [0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 5], "each test begins a group");
    assert_eq!((jobs[12]["error"].as_i64(), jobs[12]["eta"].as_i64()), (Some(28), Some(2_147_483_647)));
    let quiet = text(|out| fio_json::render(&RunRecord::default(), &Style::default(), &mut out.json()));
    assert!(!quiet.contains("fathom"), "nothing to say, no object of ours: {quiet}");
    assert!(quiet.starts_with("{\n") && quiet.ends_with("\n}\n"));
}

#[test]
fn groups_and_sectors_of_a_damaged_record_do_not_overflow() {
    let mut record = sample::run();
    for test in &mut record.tests {
        test.jobs.iter_mut().for_each(|job| job.group = u32::MAX);
        test.disks.iter_mut().for_each(|disk| disk.counters.read_sectors = u64::MAX / 100);
    }
    assert!(text(|out| fio_normal::render(&record, &Style::default(), out)).contains("groupid=4294967295"));
    assert!(
        text(|out| bench::json::render(&Analysis::of(&record), &Style::default(), &mut out.json()))
            .contains("18446744073709551615")
    );
}

#[test]
fn history_lists() {
    let rows = sample::history();
    let style = Style::default();
    let listed = |rows| {
        text(|out| format_text::render(&history::view(rows, "No runs are stored.", &style), &style, out))
    };
    insta::assert_snapshot!("history_table", listed(&rows));
    let view = history::view(&rows, "No runs are stored.", &style);
    insta::assert_snapshot!("history_markdown", text(|out| markdown::render(&view, &style, out)));
    insta::assert_snapshot!("history_csv", text(|out| csv::render(&view, out)));
    insta::assert_snapshot!("history_json", text(|out| history::render_json(&rows, &mut out.json())));
    assert_eq!(text(|out| history::render_json(&[], &mut out.json())), "[]\n");
    assert_eq!(listed(&[]), "  No runs are stored.\n");
}
