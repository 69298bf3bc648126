//! Tables of typed cells.

use std::borrow::Borrow;

use fathom_record::{TestRecord, TestStatus};
use serde_json::Value;

use super::Cell;

/// Rows under one head.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// One for each cell of a row.
    pub columns: Vec<Column>,
    /// In reading order.
    pub rows: Vec<Row>,
    /// Columns keep room for values to come, so that rows shown one by one look like the whole table.
    pub reserves: bool,
    /// What to know of the column with this head, below the table where the column is shown.
    pub legends: Vec<(&'static str, String)>,
    /// How it is divided where its columns do not fit beside each other.
    pub division: Option<TableDivision>,
}

/// How a table of many columns is divided into tables below each other.
#[derive(Clone, Copy, Debug)]
pub struct TableDivision {
    /// So many columns stand at the start of each.
    pub repeated: usize,
    /// The text of a cell without a value: rows of one group that have no other are left out.
    pub absent: &'static str,
}

/// The head of a column, and what a renderer may do with it.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name in CSV, with the unit of its values (`lat_p99_ns`); empty where the column is for people only.
    pub id: &'static str,
    /// What readers see above it.
    pub head: &'static str,
    /// On which side cells are filled up.
    pub align: Align,
    /// Where there is little room, columns leave in the order of this rank; those without one stay.
    pub dispensable: Option<u8>,
    /// Values to be drawn as well: bars in text, a line elsewhere.
    pub is_drawn: bool,
    /// The first column of numbers: a remark in place of a row's numbers begins here.
    pub takes_remark: bool,
    /// Characters that are kept free for values to come, where rows are written one by one.
    pub reserved: u8,
}

/// A column, declared once: its cell of a record is what people read and what programs do. One without a head is for programs
/// alone, one without an id for people.
pub type ColumnOf<'a, T> = (Column, &'a dyn Fn(&T) -> Cell);
/// The id of a column of values, and the cell that it takes from a record.
pub type DataColumn<'a, T> = (&'static str, &'a dyn Fn(&T) -> Cell);

/// On which side a column is filled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// One row.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// One for each column.
    pub cells: Vec<Cell>,
    /// How it is to be seen.
    pub tone: Tone,
    /// Why it has no numbers, or what to know of them.
    pub remark: Option<String>,
    /// The first of rows that belong together, up to the next such one.
    pub begins_group: bool,
}

/// How something is to be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Like the rest.
    #[default]
    Normal,
    /// Of less interest.
    Dim,
    /// Wrong, missed or failed.
    Alarm,
}

impl Column {
    /// A column of text.
    pub const fn left(head: &'static str) -> Column {
        Column { reserved: 0, ..Column::new(head, Align::Left) }
    }

    /// A column of numbers.
    pub const fn right(head: &'static str) -> Column {
        Column::new(head, Align::Right)
    }

    /// A column for programs alone.
    pub const fn data(id: &'static str) -> Column {
        Column { id, ..Column::left("") }
    }

    const fn new(head: &'static str, align: Align) -> Column {
        Column { id: head, head, align, dispensable: None, is_drawn: false, takes_remark: false, reserved: 8 }
    }

    /// The same with a name of its own in CSV.
    pub const fn id(self, id: &'static str) -> Column {
        Column { id, ..self }
    }

    /// The same, to leave as number `rank` where there is little room.
    pub const fn dispensable(self, rank: u8) -> Column {
        Column { dispensable: Some(rank), ..self }
    }

    /// The same with its values drawn.
    pub const fn drawn(self) -> Column {
        Column { is_drawn: true, ..self }
    }

    /// The same with `reserved` characters for values to come.
    pub const fn reserved(self, reserved: u8) -> Column {
        Column { reserved, ..self }
    }

    /// The same as the place of remarks.
    pub const fn takes_remark(self) -> Column {
        Column { takes_remark: true, ..self }
    }
}

impl Row {
    /// A row of cells, like the rest.
    pub fn new<T: Into<Cell>>(cells: impl IntoIterator<Item = T>) -> Row {
        Row { cells: cells.into_iter().map(Into::into).collect(), ..Row::default() }
    }

    /// The cells of `test` in the tone of how it ended, with a remark where it is not complete.
    pub(crate) fn ended(cells: impl IntoIterator<Item = Cell>, test: &TestRecord) -> Row {
        let tone = match test.status {
            TestStatus::Complete => Tone::Normal,
            TestStatus::Skipped => Tone::Dim,
            TestStatus::Failed | TestStatus::Incomplete => Tone::Alarm,
        };
        let remark = match (test.status, &test.reason) {
            (TestStatus::Complete, _) => None,
            (status, Some(reason)) => Some(format!("{}: {reason}", status.name())),
            (status, None) => Some(status.name().to_owned()),
        };
        Row { cells: cells.into_iter().collect(), tone, remark, ..Row::default() }
    }

    /// The same in another tone.
    pub fn toned(self, tone: Tone) -> Row {
        Row { tone, ..self }
    }
}

impl Table {
    /// A table of rows without remarks.
    pub fn new(columns: impl Into<Vec<Column>>, rows: impl IntoIterator<Item = Row>) -> Table {
        Table { columns: columns.into(), rows: rows.into_iter().collect(), ..Table::default() }
    }

    /// A table of `records`, whose columns take their cells from each.
    pub fn of<T>(columns: &[ColumnOf<'_, T>], records: impl IntoIterator<Item: Borrow<T>>) -> Table {
        let row = |record: &T| Row::new(columns.iter().map(|(_, cell)| cell(record)));
        let heads: Vec<Column> = columns.iter().map(|(column, _)| *column).collect();
        Table::new(heads, records.into_iter().map(|record| row(record.borrow())))
    }

    /// The values of `records`: the id of each column with the cell that it takes from a record.
    pub fn data<T>(columns: &[DataColumn<'_, T>], records: impl IntoIterator<Item: Borrow<T>>) -> Table {
        let columns: Vec<ColumnOf<'_, T>> =
            columns.iter().map(|(id, cell)| (Column::data(id), *cell)).collect();
        Table::of(&columns, records)
    }

    /// The values of `documents`. `columns` are lists of names, separated by commas: each has the member of its name, or that at the path
    /// behind its name (`iops_chosen=parameters.iops`).
    pub fn of_documents(columns: &[&'static str], documents: impl IntoIterator<Item = Value>) -> Table {
        let columns = columns.iter().flat_map(|names| names.split(','));
        let named = columns.map(|column| column.split_once('=').unwrap_or((column, column)));
        let (ids, paths): (Vec<_>, Vec<_>) = named.unzip();
        let cell = |document: &Value, path: &str| {
            path.split('.').try_fold(document, |value, name| value.get(name)).map(Cell::from)
        };
        let row = |document: Value| Row::new(paths.iter().map(|path| Cell::from(cell(&document, path))));
        Table::new(ids.into_iter().map(Column::data).collect::<Vec<_>>(), documents.into_iter().map(row))
    }

    /// The same with the tones of its rows.
    pub(crate) fn toned(mut self, tones: impl IntoIterator<Item = Tone>) -> Table {
        self.rows.iter_mut().zip(tones).for_each(|(row, tone)| row.tone = tone);
        self
    }

    /// The same, divided where there is little room.
    pub fn divided(self, division: TableDivision) -> Table {
        Table { division: Some(division), ..self }
    }

    /// The table with the columns `places` alone, behind those that each part repeats, without the groups of rows that have no value
    /// there.
    pub(crate) fn part(&self, places: std::ops::Range<usize>, division: TableDivision) -> Table {
        let kept = |index: usize| index < division.repeated || places.contains(&index);
        let mut part = self.clone().retain(|index, _| kept(index));
        let has_value = |row: &Row| {
            let mut values = row.cells.iter().skip(division.repeated);
            values.any(|cell| !cell.text.is_empty() && cell.text != division.absent)
        };
        let groups = part.rows.chunk_by(|_, next| !next.begins_group);
        part.rows = groups.filter(|group| group.iter().any(has_value)).flatten().cloned().collect();
        part
    }

    /// The same with a legend of the column with this head.
    pub fn with_legend(mut self, head: &'static str, legend: impl Into<String>) -> Table {
        self.legends.push((head, legend.into()));
        self
    }

    /// The legends of those of its columns for which `is_shown`.
    pub(crate) fn legends_of(&self, is_shown: impl Fn(&str) -> bool) -> Vec<String> {
        let shown = self.legends.iter().filter(|(head, _)| !self.rows.is_empty() && is_shown(head));
        shown.map(|(_, legend)| legend.clone()).collect()
    }

    /// The same without the columns of these heads.
    pub fn without(self, heads: &[&str]) -> Table {
        self.retain(|_, column| !heads.contains(&column.head))
    }

    /// The same without the columns that no row has a text for.
    pub fn without_empty(self) -> Table {
        let is_empty = |index: usize, row: &Row| row.cells.get(index).is_none_or(|cell| cell.text.is_empty());
        let empty: Vec<bool> =
            (0..self.columns.len()).map(|index| self.rows.iter().all(|row| is_empty(index, row))).collect();
        self.retain(|index, _| !empty[index])
    }

    fn retain(mut self, keeps: impl Fn(usize, &Column) -> bool) -> Table {
        let keeps: Vec<bool> =
            self.columns.iter().enumerate().map(|(index, column)| keeps(index, column)).collect();
        let mut of_column = keeps.iter();
        self.columns.retain(|_| *of_column.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut of_cell = keeps.iter();
            row.cells.retain(|_| *of_cell.next().unwrap_or(&true));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_leave_with_their_cells() {
        let columns = ["a", "b", "c"].map(Column::left);
        let table = Table::new(columns, [Row::new(["1", "", "3"]), Row::new(["4"])]);
        let heads = |table: Table| -> Vec<&str> { table.columns.iter().map(|column| column.head).collect() };
        assert_eq!(heads(table.clone().without_empty()), ["a", "c"]);
        assert_eq!(table.clone().without_empty().rows[0].cells, ["1", "3"].map(Cell::from));
        assert_eq!(table.clone().without(&["a"]).rows[1].cells, []);
        assert_eq!(heads(table.without(&["a"])), ["b", "c"]);
    }
}
