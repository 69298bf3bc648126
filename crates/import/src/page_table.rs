//! Tables of figures on a page: in Markdown, separated by tabs, or a cell on each line as they are copied from a browser. A column is
//! taken if its head, or its cells, say what it counts.

pub(crate) mod column;

use std::collections::{BTreeMap, HashMap, HashSet};

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
    match line.contains('\t') {
        _ if line.matches('|').count() > 1 => Some(barred(line)),
        true => Some(line.split('\t').map(plain_cell).collect()),
        false => None,
    }
}

/// The cells between bars, of which a backslash makes a sign of a cell.
fn barred(line: &str) -> Vec<String> {
    const ESCAPED: &str = "\u{1}";
    let line = line.trim().replace("\\|", ESCAPED);
    let line = line.strip_prefix('|').unwrap_or(&line);
    let parts = line.strip_suffix('|').unwrap_or(line).split('|');
    parts.map(|part| plain_cell(&part.replace(ESCAPED, "/"))).collect()
}

/// A cell without its emphasis: `**200**`, `_200_`, `` `200` ``.
fn plain_cell(cell: &str) -> String {
    let mut cell = cell.trim();
    for mark in ["***", "**", "__", "~~", "*", "_", "`"] {
        let inside = cell.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
        cell = inside.filter(|inside| !inside.is_empty()).unwrap_or(cell);
    }
    cell.to_owned()
}

/// Cells that blanks line up: two or more between each.
fn aligned(line: &str) -> Option<Vec<String>> {
    let is_prose = line.contains([':', '=', '|', ';']) || line.trim().ends_with('.');
    let parts: Vec<&str> = line.split("  ").map(str::trim).filter(|part| !part.is_empty()).collect();
    (!is_prose && parts.len() > 1).then(|| parts.into_iter().map(plain_cell).collect())
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
        let Some((read, all)) = block(lines, at) else {
            at += 1;
            continue;
        };
        let taken = all.last().map_or(1, |(line, _)| line + 1 - at);
        let caption = caption(lines, at);
        grids.extend(grid(
            caption,
            all.into_iter().map(|(line, row)| (line as u64 + 1, row)).collect(),
            read,
        ));
        at += taken;
    }
    grids
}

/// What separates the cells of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CellMarks {
    /// By bars or tabs.
    Signs,
    /// By one bar, with a rule below the head.
    OneBar,
    /// By blanks.
    Blanks,
}

/// Lines by their places, each with its cells.
type Rows = Vec<(usize, Vec<String>)>;

/// The lines of a table that begins at a line, without rules.
fn block(lines: &[&str], at: usize) -> Option<(CellMarks, Rows)> {
    let is_ruled = lines.get(at + 1).is_some_and(|line| line.contains('-') && is_rule(&barred(line)));
    let marks = match () {
        () if cells(lines[at]).is_some() => CellMarks::Signs,
        () if lines[at].contains('|') && is_ruled => CellMarks::OneBar,
        () if aligned(lines[at]).is_some_and(|head| has_figures(&head)) => CellMarks::Blanks,
        () => return None,
    };
    let count = aligned(lines[at]).map_or(0, |head| head.len());
    let of_line = |line: &str| match marks {
        CellMarks::Signs => cells(line),
        CellMarks::OneBar => line.contains('|').then(|| barred(line)),
        CellMarks::Blanks => aligned(line).filter(|cells| cells.len() == count),
    };
    let rows = lines[at..].iter().enumerate().map_while(|(index, line)| Some((at + index, of_line(line)?)));
    let rows: Rows = rows.filter(|(_, row)| !is_rule(row)).collect();
    (rows.len() > 1).then_some((marks, rows))
}

/// A table of these rows, whose head may take two of them, or stand in the first column; `None` without figures.
fn grid(caption: String, mut rows: Vec<(u64, Vec<String>)>, marks: CellMarks) -> Option<Grid> {
    let (line, mut head) = rows.remove(0);
    // Units, or names of figures, below the names of columns.
    let is_lower_head = |row: &[String]| {
        let filled = || row.iter().filter(|cell| !cell.is_empty());
        filled().all(|cell| amount(cell).is_none())
            && filled().any(|cell| matches!(column(cell), ColumnKind::Figure(_)))
    };
    if rows.len() > 1 && is_lower_head(&rows[0].1) {
        let (_, lower) = rows.remove(0);
        for (name, below) in head.iter_mut().zip(lower) {
            *name = format!("{name} {below}").trim().to_owned();
        }
    }
    without_points(&mut rows);
    if !has_figures(&head) && marks != CellMarks::Blanks {
        with_unit_of(&caption, &mut head, &rows);
    }
    if !has_figures(&head) {
        (head, rows) = turned(line, &head, &rows)?;
    }
    for (_, row) in &mut rows {
        row.resize(head.len(), String::new());
    }
    has_figures(&head).then_some(Grid { line, caption, head, rows })
}

/// Where commas stand before decimals, points group digits: `95.000` beside `0,05`.
fn without_points(rows: &mut [(u64, Vec<String>)]) {
    let digits = |text: &str, count: std::ops::RangeInclusive<usize>| {
        count.contains(&text.len()) && text.bytes().all(|sign| sign.is_ascii_digit())
    };
    let is_decimal = |cell: &str| {
        let number = cell.split(' ').next().unwrap_or_default();
        number.split_once(',').is_some_and(|(whole, part)| digits(whole, 1..=9) && digits(part, 1..=2))
    };
    if !rows.iter().flat_map(|(_, row)| row).any(|cell| is_decimal(cell)) {
        return;
    }
    for cell in rows.iter_mut().flat_map(|(_, row)| row) {
        let number = cell.split(' ').next().unwrap_or_default().to_owned();
        let mut groups = number.split(['.', ',']);
        let is_grouped = number.contains('.')
            && groups.next().is_some_and(|first| digits(first, 1..=3))
            && number
                .split(',')
                .next()
                .is_some_and(|whole| whole.split('.').skip(1).all(|group| digits(group, 3..=3)));
        if is_grouped {
            *cell = cell.replacen(&number, &number.replace('.', ""), 1);
        }
    }
}

/// Adds the unit, or the quantity, that the caption says to the columns of numbers that name a direction.
fn with_unit_of(caption: &str, head: &mut [String], rows: &[(u64, Vec<String>)]) {
    let ColumnKind::Figure(FigureColumn { quantity, unit, .. }) = column(caption) else { return };
    let words = match (quantity, unit) {
        (_, unit) if !unit.is_empty() => unit,
        (Quantity::Latency, _) => "latency",
        (Quantity::Bandwidth, _) => "bandwidth",
        (Quantity::Iops, _) => "IOPS",
    };
    for (at, name) in head.iter_mut().enumerate() {
        let is_number = |row: &(u64, Vec<String>)| row.1.get(at).is_some_and(|cell| amount(cell).is_some());
        let lower = name.to_lowercase();
        let is_load = column::has(&lower, column::READS) || column::has(&lower, column::WRITES);
        if is_load && rows.iter().all(is_number) {
            *name = format!("{name} ({words})");
        }
    }
}

/// The head of a table, and its rows with their lines.
type Turned = (Vec<String>, Vec<(u64, Vec<String>)>);

/// A table whose figures have a row each, and what was measured a column, with both exchanged.
fn turned(line: u64, head: &[String], rows: &[(u64, Vec<String>)]) -> Option<Turned> {
    let is_figure = |row: &[String]| {
        matches!(column(row.first().map_or("", String::as_str)), ColumnKind::Figure(_))
            && row[1..].iter().any(|cell| amount(cell).is_some())
    };
    if head.len() < 2 || !rows.iter().any(|(_, row)| is_figure(row)) {
        return None;
    }
    let names = rows.iter().map(|(_, row)| row.first().cloned().unwrap_or_default());
    let names = std::iter::once(head[0].clone()).chain(names).collect();
    let cell = |row: &[String], at: usize| row.get(at).cloned().unwrap_or_default();
    let of_column = |at: usize| {
        let cells = rows.iter().map(|(_, row)| cell(row, at));
        (line, std::iter::once(head[at].clone()).chain(cells).collect())
    };
    Some((names, (1..head.len()).map(of_column).collect()))
}

fn has_figures(head: &[String]) -> bool {
    let is_number = |cell: &&String| {
        let is_short = cell.split_whitespace().count() < 3;
        is_short && cell.starts_with(|sign: char| sign.is_ascii_digit()) && amount(cell).is_some()
    };
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
        let is_fence = line.starts_with("```");
        line.chars().count() <= MAX_CELL
            && !ends_sentence
            && !is_fence
            && cells(line).is_none()
            && *line != "?"
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
    let cell = without_footnote(cell.trim());
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

/// A number without the mark of a footnote: `4 000^1`. Powers of ten keep theirs.
fn without_footnote(cell: &str) -> &str {
    match cell.split_once('^') {
        Some((number, mark)) if !number.ends_with("10") && mark.trim().chars().count() < 3 => {
            number.trim_end()
        }
        _ => cell,
    }
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
    let alike = alike(&columns, has_mean);
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    for (name, (line, cells)) in row_names(grid, &columns, label).iter().zip(&grid.rows) {
        let common = row_options(name, &columns, cells);
        for (at, ((kind, cell), head)) in columns.iter().zip(cells).zip(&grid.head).enumerate() {
            let ColumnKind::Figure(figure) = kind else { continue };
            let own = alike[at].then_some(head.as_str());
            let place = TablePlace { line: *line, name, own, has_mean };
            match row_of(&place, figure, cell, &common) {
                Some(row) => rows.push(row),
                None if cell.trim().is_empty() || matches!(cell.as_str(), "-" | "?" | "—") => {}
                None => skipped.push(format!("line {line}: {head}: {cell}")),
            }
        }
    }
    let is_either = rows.iter().any(|row| row.options.contains_key("kb_base"));
    let mut found = report(rows, &BTreeMap::new()).ok()?.at(grid.line);
    let is_empty =
        found.tests.iter().all(|test| test.imported.places.is_empty() && test.imported.missing.is_empty());
    if is_empty {
        return None;
    }
    let caption = if grid.caption.is_empty() { String::new() } else { format!(" ({})", grid.caption) };
    found.notes.push(format!("table at line {}{caption}: {} rows", grid.line, grid.rows.len()));
    if is_either {
        found.notes.push(format!(
            "table at line {}: whether KB and MB are powers of 1,000 or of 1,024 is not stated: read as 1,024, so that rates in \
             MB/s may be up to 4.6 % too high",
            grid.line
        ));
    }
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

/// A name for each row: its label, and where rows have the same one, what else tells them apart.
fn row_names(grid: &Grid, columns: &[ColumnKind], label: Option<usize>) -> Vec<String> {
    let is_option = |at: &usize| matches!(columns[*at], ColumnKind::Option(_));
    let is_label = |at: &usize| columns[*at] == ColumnKind::Label && Some(*at) != label;
    let places: Vec<usize> = (0..columns.len()).collect();
    let options: Vec<usize> = places.iter().copied().filter(is_option).collect();
    let others = places.iter().copied().filter(is_option).chain(places.iter().copied().filter(is_label));
    let mut used: Vec<usize> = label.map_or(options, |at| vec![at]);
    let name = |row: &[String], used: &[usize]| {
        let cells = used.iter().filter_map(|at| row.get(*at)).filter(|cell| !cell.is_empty());
        cells.map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    let names = |used: &[usize]| grid.rows.iter().map(|(_, row)| name(row, used)).collect::<Vec<_>>();
    let different = |names: &[String]| names.iter().collect::<HashSet<_>>().len();
    for at in others {
        if different(&names(&used)) == grid.rows.len() {
            break;
        }
        let more: Vec<usize> = used.iter().copied().chain([at]).collect();
        if different(&names(&more)) > different(&names(&used)) {
            used = more;
        }
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    let numbered = names(&used).into_iter().map(|name| {
        let count = seen.entry(name.clone()).or_insert(0);
        *count += 1;
        if *count > 1 { format!("{name} ({count})") } else { name }
    });
    numbered.collect()
}

/// True of each column that has the figure of another one: their heads tell them apart.
fn alike(columns: &[ColumnKind], has_mean: bool) -> Vec<bool> {
    let key = |kind: &ColumnKind| match kind {
        ColumnKind::Figure(figure) => Some((
            metric_of(figure, has_mean),
            figure.direction,
            figure.percentile,
            load_text(figure),
            figure.is_claimed,
        )),
        _ => None,
    };
    let keys: Vec<_> = columns.iter().map(key).collect();
    keys.iter().map(|one| one.is_some() && keys.iter().filter(|other| *other == one).count() > 1).collect()
}

/// Where a figure stands.
struct TablePlace<'a> {
    line: u64,
    /// The name of its row.
    name: &'a str,
    /// The head of its column, where that alone tells it from another figure.
    own: Option<&'a str>,
    has_mean: bool,
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
    place: &TablePlace<'_>,
    figure: &FigureColumn,
    cell: &str,
    common: &BTreeMap<String, String>,
) -> Option<TableRow> {
    let amount = in_units(figure, amount(cell)?);
    // The least rate of several is not the rate of the test.
    let is_least = figure.extreme == Some(Extreme::Least);
    if is_least
        && (figure.quantity == Quantity::Iops || figure.quantity == Quantity::Bandwidth && !place.has_mean)
    {
        return None;
    }
    let unit = amount.unit.unwrap_or(match figure.unit {
        "kIOPS" => "k",
        "" => UNKNOWN,
        unit => unit,
    });
    let (metric, part) = metric_of(figure, place.has_mean);
    let percentile = figure.percentile.map(|name| format!("lat_ns.{name}"));
    let metric = percentile.as_deref().unwrap_or(metric);
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
    if figure.is_claimed {
        options.insert("kind".to_owned(), "claimed".to_owned());
    }
    let has_own_load = figure.direction.is_some() || figure.is_random.is_some() || figure.bs.is_some();
    let load = has_own_load.then(|| load_text(figure));
    let part = place.own.or(part).map(str::to_owned);
    let test = [Some(place.name.to_owned()), load.filter(|_| place.own.is_none()), part];
    let test: Vec<String> = test.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    let metric = format!("{}{metric}", direction.unwrap_or_default());
    Some(TableRow {
        line: place.line,
        test: test.join(" "),
        metric,
        value: amount.text,
        unit: unit.to_owned(),
        options,
    })
}

/// An amount in the units that the head of its column says.
fn in_units(figure: &FigureColumn, amount: Amount) -> Amount {
    let Some(scale) = figure.scale.filter(|_| amount.unit.is_none()) else { return amount };
    let digits = amount.text.trim_start_matches(['~', '<', '>']);
    let sign = &amount.text[..amount.text.len() - digits.len()];
    match Number::parse(digits) {
        Some(number) => scaled(sign, number, scale),
        None => amount,
    }
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

    /// Each test with its figures, as `name: 9000 IOPS, 35.2 MiB/s, 100 us`.
    fn figures(text: &str) -> Vec<String> {
        let all = found(text);
        let one = |test: &crate::report::SourceTest| {
            let entry = &test.imported.entries[0];
            let ops = [entry.read.as_ref(), entry.write.as_ref(), entry.total.as_ref()];
            let mut parts = Vec::new();
            for op in ops.into_iter().flatten() {
                parts.extend(op.iops.map(|iops| format!("{} IOPS", iops.value.round())));
                parts
                    .extend(op.bytes_per_second.map(|rate| format!("{:.1} MiB/s", rate.value / 1_048_576.0)));
                parts.extend(op.lat.mean.map(|ns| format!("{} us", ns.value / 1000)));
            }
            format!("{}: {}", test.name, parts.join(", "))
        };
        all.iter().flat_map(|report| &report.tests).map(one).collect()
    }

    #[test]
    fn no_figure_replaces_another_one() {
        for (text, expected) in [
            (
                "| Disk | Block size | IOPS |\n|---|---|---|\n| A | 4k | 90,000 |\n| A | 64k | 12,000 |\n",
                &["A 4k: 90000 IOPS", "A 64k: 12000 IOPS"][..],
            ),
            (
                "| Test | Disk | IOPS |\n| 4k read | A | 9000 |\n| 4k read | B | 8000 |\n",
                &["4k read A: 9000 IOPS", "4k read B: 8000 IOPS"],
            ),
            ("| Disk | IOPS |\n| A | 1 |\n| A | 2 |\n", &["A: 1 IOPS", "A (2): 2 IOPS"]),
            (
                "| Disk | IOPS before | IOPS after |\n| A | 1000 | 1900 |\n| B | 5 | 6 |\n",
                &[
                    "A IOPS before: 1000 IOPS",
                    "A IOPS after: 1900 IOPS",
                    "B IOPS before: 5 IOPS",
                    "B IOPS after: 6 IOPS",
                ],
            ),
            ("| Disk | IOPS | IOPS limit |\n| A | 2,990 | 3,000 |\n", &["A: 2990 IOPS"]),
        ] {
            assert_eq!(figures(text), expected, "{text}");
        }
    }

    #[test]
    fn heads_that_are_no_measured_figure_are_skipped() {
        for head in [
            "IOPS per $", "IOPS/GB", "$/IOPS", "MB/s per TB", "IOPS % of max", "Network latency (ms)",
            "Latency stdev (ms)",
        ] {
            let text = format!("| Disk | IOPS | {head} |\n|---|---|---|\n| A | 16,000 | 133 |\n");
            assert_eq!(figures(&text), ["A: 16000 IOPS"], "{head}");
        }
        assert_eq!(figures("| Disk | IOPS | p99 latency (ms) |\n| A | 7 | 22.1 |\n"), ["A: 7 IOPS"]);
        let p99 = &found("| Disk | p99 latency (ms) |\n| A | 22.1 |\n")[0].tests[0].imported;
        assert_eq!(p99.places[0].figures, "total.lat_ns.p99");
    }

    #[test]
    fn tables_in_every_shape() {
        let pair = &["A: 3000 IOPS, 11.7 MiB/s", "B: 64000 IOPS, 250.0 MiB/s"][..];
        for text in [
            "Disk | IOPS | MiB/s\n--- | --- | ---\nA | 3,000 | 11.7\nB | **64,000** | 250\n",
            "> | Disk | IOPS | MiB/s |\n> |---|---|---|\n> | A | 3,000 | 11.7 |\n> | B | 64,000 | 250 |\n",
            "Disk    IOPS    MiB/s\n------  ------  -----\nA       3000    11.7\nB       64000   250\n",
            "| | A | B |\n|---|---|---|\n| IOPS | 3,000 | 64,000 |\n| MiB/s | 11.7 | 250 |\n",
            "| Disk | IOPS | MiB/s |\n|---|---|---|\n| A | 3.000 | 11,7 |\n| B | 64.000 | 250 |\n",
            "| Disk | IOPS (k) | MiB/s |\n|---|---|---|\n| `A` | 3 | 11.7 |\n| B | 64 | 250 |\n",
        ] {
            assert_eq!(figures(text), pair, "{text}");
        }
        let both = &["A read: 500.0 MiB/s", "A write: 400.0 MiB/s"][..];
        for text in [
            "| Disk | Read | Write |\n|---|---|---|\n|  | MiB/s | MiB/s |\n| A | 500 | 400 |\n",
            "Throughput in MiB/s\n\n| Disk | Read | Write |\n|---|---|---|\n| A | 500 | 400 |\n",
        ] {
            assert_eq!(figures(text), both, "{text}");
        }
        let note = |unit: &str| found(&format!("| Disk | {unit} |\n| A | 524 |\n"))[0].notes.concat();
        assert!(note("MB/s").contains("up to 4.6 % too high") && !note("MiB/s").contains("too high"));
        assert_eq!(figures("| Disk | IOPS |\n| A \\| x | 4 000^1 |\n"), ["A / x: 4000 IOPS"]);
        assert_eq!(figures("| Disk | IOPS |\n| A | 10^5 |\n| B | 7 |\n"), ["B: 7 IOPS"]);
        assert_eq!(figures("| Disk | SATA speed | IOPS |\n| A | 6 Gb/s | 7 |\n"), ["A: 7 IOPS"]);
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
