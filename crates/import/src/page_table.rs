//! Tables of figures on a page: in Markdown, separated by tabs, or a cell on each line as they are copied from a browser. A column is
//! taken if its head, or its cells, say what it counts.

pub(crate) mod column;

use std::collections::BTreeMap;

use column::{ColumnKind, Extreme, FigureColumn, Quantity, block_size, column, heads_in_line, unit_of};

use crate::number::Number;
use crate::report::SourceReport;
use crate::table::{TableRow, report};
use crate::text::SourceText;

/// Letters of the longest cell that stands on a line of its own.
const MAX_CELL: usize = 48;
/// Columns of such a table.
const MAX_STACKED: usize = 10;
/// A unit that nobody knows.
const UNKNOWN: &str = "?";

/// A table as it stands there.
#[derive(Debug, Default)]
struct Grid {
    line: u64,
    caption: String,
    head: Vec<String>,
    rows: Vec<(u64, Vec<String>)>,
}

/// Each table of figures in a text.
pub(crate) fn read(source: &SourceText) -> Vec<SourceReport> {
    let lines: Vec<&str> = source.as_str().split('\n').map(str::trim_end).collect();
    let mut grids = ruled(&lines);
    grids.extend(stacked(&lines));
    grids.sort_by_key(|grid| grid.line);
    grids.iter().filter_map(tests_of).collect()
}

/// The cells of a line of Markdown, or of one with tabs.
fn cells(line: &str) -> Option<Vec<String>> {
    let line = line.trim_matches(' ');
    let bars = line.matches('|').count();
    let parts: Vec<&str> = match line.contains('\t') {
        _ if bars > 1 => {
            let line = line.strip_prefix('|').unwrap_or(line);
            line.strip_suffix('|').unwrap_or(line).split('|').collect()
        }
        true => line.split('\t').collect(),
        false => return None,
    };
    Some(parts.into_iter().map(|part| part.trim().to_owned()).collect())
}

/// A line of Markdown between head and rows.
fn is_rule(cells: &[String]) -> bool {
    cells.iter().all(|cell| cell.chars().all(|sign| matches!(sign, '-' | ':' | ' ' | '=')))
        && !cells.is_empty()
}

/// Tables whose rows are lines.
fn ruled(lines: &[&str]) -> Vec<Grid> {
    let (mut grids, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let Some(head) = cells(lines[at]).filter(|cells| has_figures(cells)) else {
            at += 1;
            continue;
        };
        let mut grid = Grid { line: at as u64 + 1, caption: caption(lines, at), head, rows: Vec::new() };
        at += 1;
        while let Some(mut row) = lines.get(at).and_then(|line| cells(line)) {
            if !is_rule(&row) {
                row.resize(grid.head.len(), String::new());
                grid.rows.push((at as u64 + 1, row));
            }
            at += 1;
        }
        grids.push(grid);
    }
    grids
}

fn has_figures(head: &[String]) -> bool {
    let is_number =
        |cell: &&String| cell.starts_with(|sign: char| sign.is_ascii_digit()) && amount(cell).is_some();
    head.iter().any(|cell| matches!(column(cell), ColumnKind::Figure(_)))
        && head.iter().filter(is_number).count() * 2 < head.len()
}

/// Tables of which each cell is a line, as a browser copies them.
fn stacked(lines: &[&str]) -> Vec<Grid> {
    let is_cell = |line: &&str| line.chars().count() <= MAX_CELL && !line.contains('|');
    let filled = lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let filled: Vec<(usize, &str)> = filled.map(|(at, line)| (at, line.trim())).collect();
    let is_short: Vec<bool> = filled.iter().map(|(_, line)| is_cell(line)).collect();
    let is_figure: Vec<bool> = filled
        .iter()
        .zip(&is_short)
        .map(|(&(_, line), &short)| short && matches!(column(line), ColumnKind::Figure(_)))
        .collect();
    let (mut grids, mut at) = (Vec::new(), 0);
    while at < filled.len() {
        let head = is_short[at].then(|| stacked_head(&filled, &is_figure, at)).flatten();
        let found = head.and_then(|(head, taken)| {
            rows_below(&filled, &is_short, &head, at + taken).map(|rows| (head, taken, rows))
        });
        match found {
            Some((head, taken, rows)) => {
                let used = taken + rows.len() * head.len();
                let (line, first) = (filled[at].0 as u64 + 1, filled[at].0);
                grids.push(Grid { line, caption: caption(lines, first), head, rows });
                at += used;
            }
            None => at += 1,
        }
    }
    grids
}

/// The head that begins at a line: all of it in one, or a name each; and the lines that it takes.
fn stacked_head(filled: &[(usize, &str)], is_figure: &[bool], at: usize) -> Option<(Vec<String>, usize)> {
    // The first cell names what was measured, and figures follow; or one line has all names.
    if is_figure[at] {
        return heads_in_line(filled[at].1).map(|heads| (heads, 1));
    }
    let figures = is_figure[at + 1..].iter().take(MAX_STACKED).take_while(|is_one| **is_one).count();
    let heads = || filled[at..=at + figures].iter().map(|(_, line)| (*line).to_owned()).collect();
    (figures > 0).then(|| (heads(), figures + 1))
}

/// The rows below a head, each of as many cells, with a number wherever the head says so; two at least.
fn rows_below(
    filled: &[(usize, &str)],
    is_short: &[bool],
    head: &[String],
    from: usize,
) -> Option<Vec<(u64, Vec<String>)>> {
    let is_number: Vec<bool> =
        head.iter().map(|name| matches!(column(name), ColumnKind::Figure(_))).collect();
    let mut rows = Vec::new();
    let mut at = from;
    while at + head.len() <= filled.len() && is_short[at..at + head.len()].iter().all(|short| *short) {
        let row: Vec<String> =
            filled[at..at + head.len()].iter().map(|(_, line)| (*line).to_owned()).collect();
        if !row.iter().zip(&is_number).all(|(cell, is_number)| !is_number || amount(cell).is_some()) {
            break;
        }
        rows.push((filled[at].0 as u64 + 1, row));
        at += head.len();
    }
    (rows.len() > 1).then_some(rows)
}

/// The short lines in front of a table, which name it.
fn caption(lines: &[&str], first: usize) -> String {
    let before = lines[..first].iter().rev().map(|line| line.trim()).filter(|line| !line.is_empty());
    let is_name = |line: &&str| {
        let ends_sentence = line.ends_with(['.', '。', ';', '；', ',', '，']);
        line.chars().count() <= MAX_CELL && !ends_sentence && cells(line).is_none() && *line != "?"
    };
    let mut names: Vec<&str> = before.take(2).take_while(is_name).collect();
    names.reverse();
    let names: Vec<&str> = names.iter().map(|name| name.trim_start_matches(['#', ' ', '*'])).collect();
    names.join(", ")
}

/// A number with its sign and its unit: `~20 MB/s`, `22.7K`, `2,353,760`.
struct Amount {
    /// As the table has it: a number with a point, a sign before it.
    text: String,
    /// `None` where none stands there.
    unit: Option<&'static str>,
}

fn amount(cell: &str) -> Option<Amount> {
    let cell = cell.trim();
    let (sign, rest) = match cell.chars().next()? {
        '≈' | '~' | '約' | '约' => ("~", cell.trim_start_matches(['≈', '~', '約', '约'])),
        '<' | '≤' => ("<", cell.trim_start_matches(['<', '≤', '='])),
        '>' | '≥' => (">", cell.trim_start_matches(['>', '≥', '='])),
        _ => ("", cell),
    };
    let rest = rest.trim_start();
    let end = rest
        .find(|sign: char| !(sign.is_ascii_digit() || matches!(sign, '.' | ',' | ' ' | '\'')))
        .unwrap_or(rest.len());
    let (digits, unit) = (without_groups(rest[..end].trim())?, rest[end..].trim().trim_end_matches('+'));
    let number = Number::parse(&digits).filter(|number| number.unit.is_empty())?;
    let known = match unit {
        "" => None,
        "k" | "K" | "千" => return Some(scaled(sign, number, 1e3)),
        "m" | "M" => return Some(scaled(sign, number, 1e6)),
        "万" | "萬" => return Some(scaled(sign, number, 1e4)),
        unit => match unit_of(unit)?.0 {
            "" => Some(UNKNOWN),
            "kIOPS" => return Some(Amount { unit: Some("IOPS"), ..scaled(sign, number, 1e3) }),
            unit => Some(unit),
        },
    };
    Some(Amount { text: format!("{sign}{digits}"), unit: known })
}

/// A number in thousands as a whole one, of which only the printed digits count.
fn scaled(sign: &str, number: Number<'_>, scale: f64) -> Amount {
    let sign = if sign.is_empty() { "~" } else { sign };
    Amount { text: format!("{sign}{}", (number.value * scale).round()), unit: None }
}

/// Digits with a point: groups of three lose what separates them, a comma with other digits behind it is the point.
fn without_groups(digits: &str) -> Option<String> {
    let digits = digits.trim_end_matches(['.', ',']);
    let compact: String = digits.chars().filter(|sign| !matches!(sign, ' ' | '\'')).collect();
    let groups: Vec<&str> = compact.split(',').collect();
    let is_grouped = groups.len() > 1
        && groups[1..].iter().all(|group| group.split('.').next().is_some_and(|whole| whole.len() == 3));
    match groups.as_slice() {
        [_] => Some(compact),
        _ if is_grouped => Some(groups.concat()),
        [whole, decimals] if !decimals.contains('.') => Some(format!("{whole}.{decimals}")),
        _ => None,
    }
}

/// The tests of a table; `None` where it has no figure.
fn tests_of(grid: &Grid) -> Option<SourceReport> {
    let columns: Vec<ColumnKind> = grid.head.iter().map(|name| column(name)).collect();
    let label = columns.iter().position(|kind| *kind == ColumnKind::Label);
    let has_mean = columns.iter().any(|kind| {
        matches!(
            kind,
            ColumnKind::Figure(FigureColumn {
                extreme: Some(Extreme::Mean),
                quantity: Quantity::Bandwidth,
                ..
            })
        )
    });
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    for (line, cells) in &grid.rows {
        let options = columns.iter().zip(cells).filter(|(kind, _)| matches!(kind, ColumnKind::Option(_)));
        let options: Vec<&str> = options.map(|(_, cell)| cell.as_str()).collect();
        let name = label.and_then(|at| cells.get(at)).cloned().unwrap_or_else(|| options.join(" "));
        let name = name.as_str();
        let common = row_options(name, &columns, cells);
        for ((kind, cell), head) in columns.iter().zip(cells).zip(&grid.head) {
            let ColumnKind::Figure(figure) = kind else { continue };
            match row_of(*line, name, figure, has_mean, cell, &common) {
                Some(row) => rows.push(row),
                None if cell.trim().is_empty() || matches!(cell.as_str(), "-" | "?" | "—") => {}
                None => skipped.push(format!("line {line}: {head}: {cell}")),
            }
        }
    }
    let mut found = report(rows, &BTreeMap::new()).ok()?.at(grid.line);
    let is_empty =
        found.tests.iter().all(|test| test.imported.places.is_empty() && test.imported.missing.is_empty());
    if is_empty {
        return None;
    }
    let caption = if grid.caption.is_empty() { String::new() } else { format!(" ({})", grid.caption) };
    found.notes.push(format!("table at line {}{caption}: {} rows", grid.line, grid.rows.len()));
    let ignored = grid.head.iter().zip(&columns).enumerate();
    let ignored = ignored
        .filter(|(at, (name, kind))| **kind == ColumnKind::Label && Some(*at) != label && !name.is_empty());
    let ignored: Vec<&str> = ignored.map(|(_, (name, _))| name.as_str()).collect();
    if !ignored.is_empty() {
        found.notes.push(format!("table at line {}: skipped columns: {}", grid.line, ignored.join(", ")));
    }
    found.notes.extend(skipped.into_iter().map(|cell| format!("skipped: {cell}")));
    Some(found)
}

/// What the name of a row and its columns of options say of the load.
fn row_options(name: &str, columns: &[ColumnKind], cells: &[String]) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    if let ColumnKind::Figure(figure) = column(&format!("{name} iops")) {
        options.extend(load_of(&figure));
    }
    for (kind, cell) in columns.iter().zip(cells) {
        let ColumnKind::Option(option) = kind else { continue };
        let digits: String = cell.chars().filter(char::is_ascii_digit).collect();
        let value =
            if *option == "bs" { block_size(cell) } else { Some(digits).filter(|digits| !digits.is_empty()) };
        options.extend(value.map(|value| ((*option).to_owned(), value)));
    }
    options
}

fn load_of(figure: &FigureColumn) -> Vec<(String, String)> {
    let rw = match (figure.direction, figure.is_random) {
        (Some(direction), Some(true)) => Some(format!("rand{direction}")),
        (Some(direction), Some(false)) => Some(direction.to_owned()),
        _ => None,
    };
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    let all = [
        ("rw", rw),
        ("bs", figure.bs.clone()),
        ("iodepth", number(figure.iodepth)),
        ("numjobs", number(figure.numjobs)),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// A figure as a row of a table of figures.
fn row_of(
    line: u64,
    name: &str,
    figure: &FigureColumn,
    has_mean: bool,
    cell: &str,
    common: &BTreeMap<String, String>,
) -> Option<TableRow> {
    let amount = amount(cell)?;
    let unit = amount.unit.unwrap_or(match figure.unit {
        "kIOPS" => "k",
        "" => UNKNOWN,
        unit => unit,
    });
    let (metric, part) = metric_of(figure, has_mean);
    // A latency without a unit is unknown.
    if figure.quantity == Quantity::Latency && unit == UNKNOWN {
        return None;
    }
    let direction = figure.direction.map(|direction| {
        let sign = if metric.contains(' ') { " " } else { "." };
        format!("{direction}{sign}")
    });
    let mut options = common.clone();
    options.extend(load_of(figure));
    if matches!(unit, "KB/s" | "MB/s" | "GB/s") {
        options.insert("kb_base".to_owned(), "either".to_owned());
    }
    let has_own_load = figure.direction.is_some() || figure.is_random.is_some() || figure.bs.is_some();
    let load = has_own_load.then(|| load_text(figure));
    let test = [Some(name.to_owned()), load, part.map(str::to_owned)];
    let test: Vec<String> = test.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    let metric = format!("{}{metric}", direction.unwrap_or_default());
    Some(TableRow { line, test: test.join(" "), metric, value: amount.text, unit: unit.to_owned(), options })
}

/// The metric of a column, and what sets its test apart from others of the row.
fn metric_of(figure: &FigureColumn, has_mean: bool) -> (&'static str, Option<&'static str>) {
    let extreme = figure.extreme;
    match figure.quantity {
        Quantity::Bandwidth if figure.is_burst => ("burst rate", Some("burst rate")),
        Quantity::Bandwidth if has_mean && extreme.is_some() => {
            let metric = match extreme {
                Some(Extreme::Least) => "transfer rate minimum",
                Some(Extreme::Most) => "transfer rate maximum",
                _ => "transfer rate average",
            };
            (metric, Some("transfer rate"))
        }
        // The largest of each was hardly reached by one load.
        Quantity::Bandwidth => {
            ("bytes_per_second", (extreme == Some(Extreme::Most)).then_some("max bandwidth"))
        }
        Quantity::Iops => ("iops", (extreme == Some(Extreme::Most)).then_some("max IOPS")),
        Quantity::Latency => {
            let metric = match extreme {
                Some(Extreme::Least) => "lat_ns.min",
                Some(Extreme::Most) => "lat_ns.max",
                _ => "lat_ns.mean",
            };
            (metric, figure.is_access_time.then_some("access time"))
        }
    }
}

/// `rand-read-4k-qd32`.
fn load_text(figure: &FigureColumn) -> String {
    let order = figure.is_random.map(|is_random| if is_random { "rand" } else { "seq" });
    let depth = figure.iodepth.map(|depth| format!("qd{depth}"));
    let parts = [order.map(str::to_owned), figure.direction.map(str::to_owned), figure.bs.clone(), depth];
    parts.into_iter().flatten().collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use fathom_record::import::ImportedOp;

    use super::*;

    fn found(text: &str) -> Vec<SourceReport> {
        read(&SourceText::new(text))
    }

    fn names(report: &SourceReport) -> Vec<&str> {
        report.tests.iter().map(|test| test.name.as_str()).collect()
    }

    fn total(report: &SourceReport, name: &str) -> ImportedOp {
        let test = report.tests.iter().find(|test| test.name == name).unwrap();
        test.imported.total().unwrap()
    }

    #[test]
    fn a_table_in_markdown_with_heads_in_chinese() {
        let text = "第二節\n1, 文件測試\n| 磁盤 | 順序讀(KB/s) | 4KB隨機讀IOPS | 32個4KB隨機寫IOPS | 圖例 |\n\
                    | C | 102,176 | 1828 | 4316 | 圖5 |\n| D | 98794 | - | 4440 | 圖6 |\n";
        let all = found(text);
        assert_eq!(all.len(), 1);
        let expected =
            ["C seq-read", "C rand-read-4k", "C rand-write-4k-qd32", "D seq-read", "D rand-write-4k-qd32"];
        assert_eq!(names(&all[0]), expected);
        assert_eq!(all[0].line(), 3);
        let load = &all[0].tests[2].imported.load;
        assert_eq!((load.rw.as_deref(), load.queue_depth), (Some("randwrite"), Some(32)));
        assert!(all[0].notes.iter().any(|note| note.contains("第二節, 1, 文件測試")), "{:?}", all[0].notes);
        assert!(
            all[0].notes.iter().any(|note| note.ends_with("skipped columns: 圖例")),
            "{:?}",
            all[0].notes
        );
    }

    #[test]
    fn a_cell_on_each_line() {
        let text = "Results of a year:\n\nType\n\nMax throughput (MiB/s)\n\nMax IOPS\n\nA\n\n151\n\n7480\n\nB\n\n262\n\n22.7K\n\nThe end.\n";
        let all = found(text);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(names(&all[0]), ["A max bandwidth", "A max IOPS", "B max bandwidth", "B max IOPS"]);
        let iops = total(&all[0], "B max IOPS").iops.unwrap();
        assert_eq!((iops.value, iops.resolution), (22_700.0, 50.0));
        let one_head =
            "Block Size IOPS Bandwidth\n\n4K\n\n~5000 IOPS\n\n~20MB/sec\n\n64K\n\n~3200 IOPS\n\n~200MB/sec\n";
        let all = found(one_head);
        assert_eq!(names(&all[0]), ["4K", "64K"]);
        assert_eq!(all[0].tests[1].imported.load.options["bs"], "64k");
    }

    #[test]
    fn tabs_and_decimal_commas() {
        let text = "Диск\tСкорость чтения, МБ/с\tЗадержка (мс)\nA\t210,5\t0,42\nB\t1 012,9\t—\n";
        let all = found(text);
        assert_eq!(names(&all[0]), ["A read", "A", "B read"]);
        let rate = total(&all[0], "A read").bytes_per_second.unwrap();
        assert!((rate.value - 210.5 * 1_048_576.0).abs() < 1.0, "{rate:?}");
    }

    #[test]
    fn what_is_no_table_of_figures_is_none() {
        for text in [
            "The bandwidth | of the | disk\n",
            "    |  1.00th=[  101],  5.00th=[  155], 10.00th=[  159],\n    | 30.00th=[  165]\n",
            "Name\n\nLatency\n\nlow\n\nhigh\n",
            "a\tb\n1\t2\n",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn numbers_as_people_write_them() {
        let value = |cell: &str| amount(cell).map(|amount| (amount.text, amount.unit));
        let of = |text: &str, unit| Some((text.to_owned(), unit));
        assert_eq!(value("2,353,760"), of("2353760", None));
        assert_eq!(value("1,012.9 MB/s"), of("1012.9", Some("MB/s")));
        assert_eq!(value("12,5"), of("12.5", None));
        assert_eq!(value("22.7K"), of("~22700", None));
        assert_eq!(value("~5000 IOPS"), of("~5000", Some("IOPS")));
        assert_eq!(value("1 234 мкс"), of("1234", Some("us")));
        assert_eq!(value("1.5万"), of("~15000", None));
        assert_eq!((value("fast"), value("10 apples"), value("")), (None, None, None));
    }
}
