//! A view in other units. Cells are rendered again from their values; the rates in sentences are restated.

use std::borrow::Cow;

use fathom_model::units::UnitSystem;

use super::cell::decimal;
use super::{
    AxisEnds, Block, Cell, CellMeasure, CellValue, FindingEntry, Front, HeatMap, KeyFigure, Plot, Table, View,
};
use crate::Style;

/// Heads of columns of rates, in powers of 1024 and of 1000.
const HEADS: [(&str, &str); 7] = [
    ("MiB/s", "MB/s"),
    ("burst MiB/s", "burst MB/s"),
    ("read MiB/s", "read MB/s"),
    ("write MiB/s", "write MB/s"),
    ("rMiB/s", "rMB/s"),
    ("wMiB/s", "wMB/s"),
    ("tMiB/s", "tMB/s"),
];
/// Amounts from here on are restated: I/Os and blocks, which are powers of two, are smaller.
const MIN_AMOUNT: u64 = 1 << 20;

impl View {
    /// The same in the units that readers asked for, else in those they expect. The data keeps its base units.
    pub(crate) fn in_units_of(&self, style: &Style) -> Cow<'_, View> {
        match style.units.or(self.units) {
            Some(system) => Cow::Owned(self.clone().in_units(system)),
            None => Cow::Borrowed(self),
        }
    }

    fn in_units(mut self, system: UnitSystem) -> View {
        let head = self.head.iter_mut().flat_map(|head| head.target.iter_mut().chain(&mut head.host));
        head.for_each(|part| *part = system.restate_all(part).into_owned());
        self.verdict.iter_mut().for_each(|figure| figure.set_units(system));
        self.front.set_units(system);
        for section in &mut self.sections {
            restate(&mut section.title, system);
            section.blocks.iter_mut().for_each(|block| block.set_units(system));
        }
        self
    }
}

/// The head of a column in `system`.
pub(crate) fn head_in(system: UnitSystem, head: &'static str) -> &'static str {
    let si = HEADS.iter().find(|(iec, _)| *iec == head).filter(|_| system == UnitSystem::Si);
    si.map_or(head, |(_, si)| si)
}

fn restate(text: &mut String, system: UnitSystem) {
    *text = system.restate_rates(text).into_owned();
}

impl Block {
    fn set_units(&mut self, system: UnitSystem) {
        match self {
            Block::Notes(notes) => notes.iter_mut().for_each(|note| restate(note, system)),
            Block::KeyFigures(figures) => figures.iter_mut().for_each(|figure| figure.set_units(system)),
            Block::Table(table) => table.set_units(system),
            Block::Findings(findings) => findings.iter_mut().for_each(|finding| finding.set_units(system)),
            Block::HeatMaps(maps) => maps.iter_mut().for_each(|map| map.set_units(system)),
            Block::Plots(plots) => plots.iter_mut().for_each(|plot| plot.set_units(system)),
            Block::Tests(tests) => {
                tests.table.set_units(system);
                let blocks = tests.details.iter_mut().flat_map(|details| &mut details.blocks);
                blocks.for_each(|block| block.set_units(system));
            }
            Block::Commands(_) => {}
        }
    }
}

impl Front {
    fn set_units(&mut self, system: UnitSystem) {
        self.plot.iter_mut().for_each(|plot| plot.set_units(system));
        for figure in &mut self.figures {
            figure.cell.set_units(system);
            restate(&mut figure.note, system);
        }
    }
}

impl KeyFigure {
    fn set_units(&mut self, system: UnitSystem) {
        restate(&mut self.label, system);
        self.cell.set_units(system);
    }
}

impl Table {
    pub(crate) fn set_units(&mut self, system: UnitSystem) {
        for column in &mut self.columns {
            column.head = head_in(system, column.head);
        }
        for row in &mut self.rows {
            row.cells.iter_mut().for_each(|cell| cell.set_units(system));
            row.remark.iter_mut().for_each(|remark| restate(remark, system));
        }
    }
}

impl FindingEntry {
    fn set_units(&mut self, system: UnitSystem) {
        self.claims.iter_mut().chain(&mut self.remedy).for_each(|text| restate(text, system));
    }
}

impl HeatMap {
    fn set_units(&mut self, system: UnitSystem) {
        self.measure = head_in(system, self.measure);
        let cells = self.rows.iter_mut().flat_map(|(_, cells)| cells).flatten();
        cells.for_each(|cell| cell.set_units(system));
    }
}

impl Plot {
    /// A plot of rates has them in MiB per second, as its title or its axis says.
    pub(crate) fn set_units(&mut self, system: UnitSystem) {
        let (iec, si) = (UnitSystem::Iec, UnitSystem::Si);
        let is_rate = |text: &str| text.contains(iec.rate_unit());
        if system == iec || !(is_rate(&self.title) || is_rate(&self.y.label)) {
            return;
        }
        for text in [&mut self.title, &mut self.y.label] {
            *text = text.replace(iec.rate_unit(), si.rate_unit());
        }
        let factor = iec.mega() / si.mega();
        let scale = |ends: &mut AxisEnds| {
            ends.from *= factor;
            ends.to *= factor;
        };
        for point in self.series.iter_mut().flat_map(|series| &mut series.points) {
            point.y *= factor;
            point.interval.iter_mut().for_each(scale);
        }
        self.limits.iter_mut().for_each(|limit| limit.y *= factor);
        self.y.ends.iter_mut().for_each(scale);
    }
}

impl Cell {
    /// A remark in place of the number stays.
    fn set_units(&mut self, system: UnitSystem) {
        let rate_text = |value: f64, system: UnitSystem| decimal(value / system.mega());
        match (self.measure, self.value) {
            (CellMeasure::Rate, Some(CellValue::Real(value))) => {
                let usual = rate_text(value, UnitSystem::Iec);
                match self.text.strip_prefix(&usual).map(str::trim_start) {
                    Some("") => self.text = rate_text(value, system),
                    Some(unit) if unit == UnitSystem::Iec.rate_unit() => {
                        self.text = format!("{} {}", rate_text(value, system), system.rate_unit());
                    }
                    _ => restate(&mut self.text, system),
                }
            }
            (CellMeasure::Amount, Some(CellValue::Integer(value))) if value >= MIN_AMOUNT => {
                self.text = system.amount(value);
            }
            _ => restate(&mut self.text, system),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::text::render;
    use crate::text_writer::text;
    use crate::view::{Column, Row, ViewHead};

    #[test]
    fn tables_sentences_and_the_head_change_their_units_and_the_data_does_not() {
        let columns = [Column::left("test"), Column::right("MiB/s"), Column::right("size")];
        let rate = Cell::mebibytes(200e6);
        let stalled = Cell { text: "stalled".to_owned(), ..rate.clone() };
        let rows = [
            Row::new(["a".into(), rate.clone(), Cell::bytes(50 << 30)]),
            Row::new(["b".into(), stalled, Cell::bytes(4096)]),
        ];
        let table = Table::new(columns, rows);
        let head = ViewHead { target: vec!["/mnt".to_owned(), "100 GiB".to_owned()], ..ViewHead::default() };
        let mut view = View { head: Some(head), data: table.clone(), ..View::default() };
        let limit = KeyFigure::new("limit", "95.4 MiB/s (95 to 96 MiB/s)");
        let with_unit = KeyFigure::new("rate", Cell { text: format!("{} MiB/s", rate.text), ..rate });
        view.push("", [Block::Table(table), Block::KeyFigures(vec![limit, with_unit])]);
        let shown = |units: Option<UnitSystem>| {
            text(|out| render(&view, &Style { units, ..Style::default() }, out)).expect("writing to memory")
        };
        assert_eq!(
            shown(Some(UnitSystem::Si)),
            "/mnt, 107.4 GB\n\n  test     MB/s     size\n  a       200.0  53.7 GB\n  b     stalled  4.0 KiB\n  limit  \
             100 MB/s (99.6 to 100.7 MB/s)\n  rate   200.0 MB/s\n"
        );
        assert_eq!(shown(Some(UnitSystem::Iec)), shown(None));
        assert_eq!(view.clone().in_units(UnitSystem::Si).data.rows[0].cells[1].raw(), "200000000");
    }
}
