//! Tables in aligned columns.

use std::io;

use super::{INDENT, MIN_WIDTH, Page};
use crate::columns::{width, wrap};
use crate::view::{Align, Cell, Column, Row, Table, TableDivision};
use crate::{Style, TextWriter};

/// A table whose rows are written as they come, in columns that an outline of it has.
#[derive(Debug)]
pub struct TableStream {
    text: TextTable,
    style: Style,
    width: usize,
}

impl TableStream {
    /// The columns that fit `style`: `outline` has the names of all rows, and the columns of numbers keep room for values.
    pub fn new(outline: &Table, style: &Style) -> TableStream {
        let width = style.width.max(MIN_WIDTH);
        TableStream { text: TextTable::fit(outline, width - INDENT), style: style.clone(), width }
    }

    /// Writes the heads of the columns.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn head(&self, out: &mut TextWriter) -> io::Result<()> {
        self.page().table_head(&self.text, true, out)
    }

    /// Writes a row of the same columns.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn row(&self, row: &Row, out: &mut TextWriter) -> io::Result<()> {
        let cell = |&index: &usize| row.cells.get(index).map(|cell| cell.text.clone()).unwrap_or_default();
        let cells: Vec<String> = self.text.kept.iter().map(cell).collect();
        self.page().table_row(&self.text, row, &cells, out)
    }

    fn page(&self) -> Page<'_> {
        Page { style: &self.style, width: self.width, is_brief: false }
    }
}

/// A table as text: what is left of its columns where there is little room.
#[derive(Debug)]
struct TextTable {
    /// Which columns of the table are left.
    kept: Vec<usize>,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
    gap: usize,
}

impl Page<'_> {
    /// Writes `table`, its head bold where it `is_title`, else dim.
    pub(super) fn table(&self, table: &Table, is_title: bool, out: &mut TextWriter) -> io::Result<()> {
        let room = self.width - INDENT;
        let text = TextTable::fit(table, room);
        if let Some(division) = table.division.filter(|_| text.width() > room) {
            for (index, part) in parts(table, division, room).iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                self.fitted(part, TextTable::fit(part, room), is_title, out)?;
            }
            return Ok(());
        }
        self.fitted(table, text, is_title, out)
    }

    fn fitted(&self, table: &Table, text: TextTable, is_title: bool, out: &mut TextWriter) -> io::Result<()> {
        self.table_head(&text, is_title, out)?;
        let rows = table.rows.iter().zip(&text.rows);
        rows.into_iter().try_for_each(|(row, cells)| self.table_row(&text, row, cells, out))?;
        self.notes(&table.legends_of(|head| text.columns.iter().any(|column| column.head == head)), out)
    }

    fn table_head(&self, text: &TextTable, is_title: bool, out: &mut TextWriter) -> io::Result<()> {
        let head = text.line(text.columns.iter().map(|column| column.head));
        if !head.is_empty() {
            let head = if is_title { self.style.bold(&head) } else { self.style.dim(&head) };
            writeln!(out, "{:INDENT$}{head}", "")?;
        }
        Ok(())
    }

    fn table_row(
        &self,
        text: &TextTable,
        row: &Row,
        cells: &[String],
        out: &mut TextWriter,
    ) -> io::Result<()> {
        let (line, more) = self.with_remark(text, row, cells);
        writeln!(out, "{:INDENT$}{}", "", self.toned(&line, row.tone))?;
        more.iter().try_for_each(|line| writeln!(out, "{}", self.toned(line, row.tone)))
    }

    /// The line of a row and those below it: a remark stands in place of numbers, or under them.
    fn with_remark(&self, text: &TextTable, row: &Row, cells: &[String]) -> (String, Vec<String>) {
        let line = |cells: &[String]| text.line(cells.iter().map(String::as_str));
        let Some(remark) = &row.remark else { return (line(cells), Vec::new()) };
        let first = text.columns.iter().position(|column| column.takes_remark).unwrap_or(1.min(cells.len()));
        let start = INDENT + text.start(first);
        let mut lines = wrap(remark, self.width, start, start + 2);
        let has_no_column = first >= text.columns.len();
        if lines.is_empty() || has_no_column || cells[first..].iter().any(|cell| !cell.is_empty()) {
            return (line(cells), lines);
        }
        let mut cells = cells[..first].to_vec();
        cells.push(lines.remove(0).trim_start_matches(' ').to_owned());
        (line(&cells), lines)
    }
}

/// The parts of a table that does not fit, each with as many of its columns as there is room for.
fn parts(table: &Table, division: TableDivision, room: usize) -> Vec<Table> {
    let (mut parts, mut start) = (Vec::new(), division.repeated);
    while start < table.columns.len() {
        let fits = |end: &usize| TextTable::fit(&table.part(start..*end, division), room).width() <= room;
        let end = (start + 2..=table.columns.len()).take_while(fits).last().unwrap_or(start + 1);
        parts.push(table.part(start..end, division));
        start = end;
    }
    parts.retain(|part| !part.rows.is_empty());
    parts
}

impl TextTable {
    /// The table within `room`: columns two blanks apart, else one, else without those that may leave.
    fn fit(table: &Table, room: usize) -> TextTable {
        let mut order: Vec<u8> = table.columns.iter().filter_map(|column| column.dispensable).collect();
        order.sort_unstable();
        let mut least = 0;
        loop {
            let stays = |column: &Column| column.dispensable.is_none_or(|rank| rank >= least);
            for gap in [2, 1] {
                let text = TextTable::new(table, &stays, gap, room);
                if text.width() <= room || gap == 1 && order.is_empty() {
                    return text;
                }
            }
            least = order.remove(0) + 1;
            order.retain(|&rank| rank >= least);
        }
    }

    fn new(table: &Table, stays: &impl Fn(&Column) -> bool, gap: usize, room: usize) -> TextTable {
        let kept: Vec<usize> =
            (0..table.columns.len()).filter(|&index| stays(&table.columns[index])).collect();
        let (mut columns, mut rows) = (Vec::new(), vec![Vec::new(); table.rows.len()]);
        for &index in &kept {
            let column = table.columns[index];
            if column.is_drawn {
                let drawn = kept.iter().filter(|&&index| table.columns[index].is_drawn).count();
                let bars = bars(table, index, (room / 4 / drawn).clamp(8, 40));
                columns.push(Column::left(""));
                rows.iter_mut().zip(bars).for_each(|(row, bar)| row.push(bar));
            }
            columns.push(column);
            for (row, of_table) in rows.iter_mut().zip(&table.rows) {
                row.push(of_table.cells.get(index).map(|cell| cell.text.clone()).unwrap_or_default());
            }
        }
        let widest =
            |index: usize| rows.iter().map(|row: &Vec<String>| width(&row[index])).max().unwrap_or(0);
        let reserved = |column: &Column| if table.reserves { usize::from(column.reserved) } else { 0 };
        let least = |column: &Column| width(column.head).max(reserved(column));
        let widths = columns.iter().enumerate().map(|(index, column)| widest(index).max(least(column)));
        TextTable { widths: widths.collect(), kept, columns, rows, gap }
    }

    fn width(&self) -> usize {
        self.widths.iter().sum::<usize>() + self.gap * self.widths.len().saturating_sub(1)
    }

    /// Where column `index` begins.
    fn start(&self, index: usize) -> usize {
        self.widths[..index].iter().map(|width| width + self.gap).sum()
    }

    /// Cells under their heads. Where there are fewer than columns, the last one runs on to the right.
    fn line<'a>(&self, cells: impl ExactSizeIterator<Item = &'a str>) -> String {
        let (count, mut line) = (cells.len(), String::new());
        for (index, cell) in cells.enumerate() {
            if index > 0 {
                line.push_str(&" ".repeat(self.gap));
            }
            let runs_on = index + 1 == count && count < self.columns.len();
            let fill = " ".repeat(self.widths[index].saturating_sub(width(cell)));
            match self.columns[index].align {
                _ if runs_on => line.push_str(cell),
                Align::Right => line.extend([fill.as_str(), cell]),
                Align::Left => line.extend([cell, fill.as_str()]),
            }
        }
        line.trim_end_matches(' ').to_owned()
    }
}

/// A bar for each cell of a column, as long as its share of the greatest.
fn bars(table: &Table, column: usize, width: usize) -> Vec<String> {
    let value = |row: &Row| row.cells.get(column).and_then(Cell::number);
    let most = table.rows.iter().filter_map(value).fold(0.0, f64::max);
    let bar = |row: &Row| {
        value(row).map(|value| bar(if most > 0.0 { value / most } else { 0.0 }, width)).unwrap_or_default()
    };
    table.rows.iter().map(bar).collect()
}

/// A bar of `share` of `width` characters; eighths are drawn.
fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_writer::text;

    const COLUMNS: [Column; 4] = [
        Column::left("test"),
        Column::left("shape").dispensable(0),
        Column::right("IOPS").takes_remark(),
        Column::right("p50").dispensable(1),
    ];

    fn written(table: &Table, width: usize) -> Vec<String> {
        let style = Style::default();
        let page = Page { style: &style, width, is_brief: false };
        let text = text(|out| page.table(table, true, out)).expect("writing to memory");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn wide_tables_are_divided_and_leave_out_what_no_column_of_a_part_has() {
        let columns = ["test", "figure", "A", "B", "C"].map(Column::left);
        let row = |begins_group: bool, cells: [&str; 5]| Row { begins_group, ..Row::new(cells) };
        let rows = [
            row(true, ["one", "IOPS", "1,000", "2,000", "-"]),
            row(false, ["4k", "MiB/s", "1.0", "-", "-"]),
            row(true, ["two", "IOPS", "-", "-", "3,000"]),
        ];
        let table = Table::new(columns, rows).divided(TableDivision { repeated: 2, absent: "-" });
        assert_eq!(written(&table, 60).len(), 4);
        let narrow = written(&table, 28);
        let expected = [
            "  test  figure  A      B",
            "  one   IOPS    1,000  2,000",
            "  4k    MiB/s   1.0    -",
            "",
            "  test  figure  C",
            "  two   IOPS    3,000",
        ];
        assert_eq!(narrow, expected);
    }

    #[test]
    fn legends_belong_to_columns_that_are_shown() {
        let columns = [Column::left("test"), Column::right("p").dispensable(0)];
        let table = Table::new(columns, [Row::new(["a long name of a test", "0.5"])]);
        let table = table.with_legend("p", "p: a probability.").with_legend("q", "q: no such column.");
        let shown = |width: usize| {
            let page = Style { width, ..Style::default() };
            crate::text_writer::text(|out| {
                Page { style: &page, width, is_brief: false }.table(&table, true, out)
            })
            .unwrap()
        };
        assert!(shown(60).ends_with("0.5\n  p: a probability.\n"), "{}", shown(60));
        assert!(!shown(25).contains("probability"), "{}", shown(25));
    }

    #[test]
    fn a_remark_without_a_column_stands_below_its_row() {
        let row = Row { remark: Some("no I/O".to_owned()), ..Row::new(["a"]) };
        let table = Table::new(COLUMNS, [row]).without_empty();
        assert_eq!(written(&table, 60), ["  test", "  a", "        no I/O"]);
    }

    #[test]
    fn columns_align_and_remarks_take_the_place_of_numbers() {
        let failed =
            Row { remark: Some("skipped: because of something".to_owned()), ..Row::new(["bcdef", "4k"]) };
        let odd = Row { remark: Some("incomplete".to_owned()), ..Row::new(["c", "4k", "7", "5 µs"]) };
        let table = Table::new(COLUMNS, [Row::new(["a", "4k", "1,000", "5 µs"]), failed, odd]);
        assert_eq!(
            written(&table, 60),
            [
                "  test   shape   IOPS   p50",
                "  a      4k     1,000  5 µs",
                "  bcdef  4k     skipped: because of something",
                "  c      4k         7  5 µs",
                "                incomplete",
            ]
        );
    }

    #[test]
    fn narrow_tables_lose_gaps_and_then_columns_by_rank() {
        let table = Table::new(COLUMNS, [Row::new(["a", "4k", "1,000", "5 µs"])]);
        for (room, expected) in [
            (24, "test  shape   IOPS   p50"),
            (23, "test shape  IOPS  p50"),
            (20, "test   IOPS   p50"),
            (15, "test  IOPS  p50"),
            (11, "test   IOPS"),
            (1, "test  IOPS"),
        ] {
            let text = TextTable::fit(&table, room);
            assert_eq!(text.line(text.columns.iter().map(|column| column.head)), expected, "{room}");
        }
    }

    #[test]
    fn rows_that_come_later_stand_under_the_heads_of_the_outline() {
        let rows = [Row::new(["a", "4k"]), Row::new(["longer", "1m d8"])];
        let outline = Table { reserves: true, ..Table::new(COLUMNS, rows) };
        let style = Style { width: 44, ..Style::default() };
        let stream = TableStream::new(&outline, &style);
        let failed = Row { remark: Some("failed".to_owned()), ..Row::new(["longer", "1m d8"]) };
        let written = text(|out| {
            stream.head(out)?;
            stream.row(&Row::new(["a", "4k", "1,000", "5 µs"]), out)?;
            stream.row(&failed, out)
        });
        assert_eq!(
            written.expect("writing to memory").lines().collect::<Vec<_>>(),
            [
                "  test    shape      IOPS       p50",
                "  a       4k        1,000      5 µs",
                "  longer  1m d8  failed",
            ]
        );
    }

    #[test]
    fn drawn_columns_have_bars() {
        let columns = [Column::right("depth"), Column::right("IOPS").drawn()];
        let rows =
            [(1, 100.0), (2, 200.0)].map(|(depth, iops)| Row::new([Cell::count(depth), Cell::iops(iops)]));
        assert_eq!(
            written(&Table::new(columns, rows), 40),
            ["  depth             IOPS", "      1  ████▌       100", "      2  █████████   200"]
        );
    }
}
