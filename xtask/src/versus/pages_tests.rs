use super::super::rows::{ROWS, find};
use super::super::statistics::Round;
use super::*;

fn measured(rounds: &[(f64, Option<f64>)]) -> MeasuredRow {
    let rounds = rounds.iter().map(|(ours, theirs)| Round { ours: *ours, theirs: *theirs }).collect();
    let commands = vec!["fathom fio".to_owned(), "fio".to_owned()];
    MeasuredRow { rounds, commands, ..MeasuredRow::default() }
}

#[test]
fn numbers_have_three_significant_digits() {
    let check = |value, expected: &str| assert_eq!(number(value), expected, "{value}");
    check(0.0, "0.00");
    check(-0.126, "-0.13");
    check(-0.004, "0.00");
    check(1.849, "1.85");
    check(9.996, "10.0");
    check(99.96, "100");
    check(1234.4, "1234");
}

#[test]
fn a_line_has_every_cell() {
    let check = |name: &str, measured: &MeasuredRow, expected: [&str; 5]| {
        assert_eq!(RowLine { row: find(name).unwrap(), measured }.cells(), expected, "{name}");
    };
    let two = measured(&[(1.0, Some(0.5)), (1.2, Some(0.625))]);
    check("uring", &two, ["1.100 M", "0.562 M", "1.96 (1.92..2.00)", "≥ 1.85 ×", "yes"]);
    check("uring-bare", &two, ["1.100 M", "0.562 M (bare ring)", "1.96 (1.92..2.00)", "≥ 0.97 ×", "yes"]);
    check("null-64", &two, ["1.100 M", "0.562 M", "1.96 (1.92..2.00)", "≥ 10 ×", "no"]);
    check("outside-psync", &two, ["1.10 ns", "0.56 ns", "1.96 (1.92..2.00)", "< 1 ×", "no"]);
    check("psync-bare", &two, ["1.100 M", "0.562 M (bare pread)", "1.96 (1.92..2.00)", "—", "—"]);
    check("next-offset", &measured(&[(7.25, None)]), ["7.25 ns", "—", "—", "≤ 10 ns", "yes"]);
    check("jobs-8-psync", &measured(&[]), ["—", "—", "—", "≥ 0.95", "—"]);
}

#[test]
fn the_page_has_every_row_with_its_command_lines() {
    let mut result = measured(&[(1.0, Some(0.5))]);
    result.remark = Some("a remark".to_owned());
    let lines = [RowLine { row: find("psync").unwrap(), measured: &result }];
    let expected = "about\n\n\
        | row | what | fathom | fio | ratio | goal | met |\n|---|---|--:|--:|--:|--:|---|\n\
        | psync | psync: I/Os per CPU-second | 1.000 M | 0.500 M | 2.00 (2.00..2.00) | ≥ 1.35 × | yes |\n\
        \n### Command lines\n\n**psync**\n\na remark\n\n    fathom fio\n    fio\n";
    assert_eq!(full("about", &lines), expected);
}

#[test]
fn the_short_table_has_only_headline_rows() {
    let mut result = measured(&[(1.0, Some(0.5))]);
    let lines: Vec<RowLine<'_>> = ROWS.iter().map(|row| RowLine { row, measured: &result }).collect();
    let text = short("about", &lines);
    let table: Vec<&str> = text.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(table.len(), ROWS.iter().filter(|row| row.headline).count());
    assert_eq!(
        table[0],
        "| io_uring, depth 64: I/Os per CPU-second | 1.000 M | 0.500 M | 2.00 (2.00..2.00) |"
    );
    assert!(text.ends_with("\n\nabout\n"));
    result.is_disturbed = true;
    let text = short("about", &[RowLine { row: find("psync").unwrap(), measured: &result }]);
    assert!(text.ends_with("\n\nabout Something else ran meanwhile.\n"));
}

#[test]
fn terminal_lines_stand_under_their_heads() {
    let result = measured(&[(1.0, Some(0.5))]);
    let head = terminal_head();
    for row in ROWS {
        let line = terminal_line(&RowLine { row, measured: &result });
        assert_eq!(line.chars().count(), head.chars().count(), "{line}");
    }
    let line = RowLine { row: find("uring").unwrap(), measured: &result };
    assert_eq!(rounds(&line), "    round 1     1.000 M      0.500 M     2.00\n");
}

#[test]
fn only_text_between_the_markers_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("page.md");
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    write(&format!("# Head\n\n{BEGIN}\nold\n{END}\n\nFoot\n"));
    for part in ["| new |\n", "| newer |\n"] {
        MarkedPage::read(directory.path(), "page.md").unwrap().write(part).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("# Head\n\n{BEGIN}\n\n{part}\n{END}\n\nFoot\n"));
    }
    write(&format!("{END}\n{BEGIN}\n"));
    assert!(MarkedPage::read(directory.path(), "page.md").is_err());
    assert!(MarkedPage::read(directory.path(), "no-page.md").is_err());
}

#[test]
fn the_pages_of_this_repository_have_markers() {
    for name in super::super::PAGES {
        MarkedPage::read(&crate::root(), name).unwrap();
    }
}
