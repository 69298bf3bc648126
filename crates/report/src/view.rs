//! What a report shows, before it has a form: sections of tables, key figures, findings, heat maps, plots and notes, whose cells
//! keep their value beside their text. Every activity makes a [`View`]; [`formats`](crate::formats) renders any of them.

mod cell;
mod front;
mod picture;
mod table;
mod units;

pub use cell::{Cell, CellMeasure, CellValue};
pub(crate) use cell::{decimal, iops_text};
pub use front::{Front, FrontFigure, TestDetails, TestRows, UseGroup, UseTone};
pub use picture::{
    Axis, AxisEnds, AxisScale, HeatMap, MapTick, Plot, PlotForm, PlotLimit, PlotMark, PlotPoint, PlotSeries,
};
pub use table::{Align, Column, ColumnOf, Row, Table, TableDivision, Tone};
pub(crate) use units::head_in;

use fathom_model::units::UnitSystem;
use fathom_record::{FindingId, Severity};

/// A whole report.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// What was measured, by what and when; `None` where nothing was measured.
    pub head: Option<ViewHead>,
    /// The verdict: what a reader sees first.
    pub verdict: Vec<KeyFigure>,
    /// What a page shows beside the verdict.
    pub front: Front,
    /// In reading order; empty ones are left out.
    pub sections: Vec<Section>,
    /// The values behind the report, one row for each test, point or entry: what CSV holds. Column ids name their units.
    pub data: Table,
    /// The units that its readers expect: those of the expectations. They count unless others are asked for.
    pub units: Option<UnitSystem>,
}

/// The first lines of a report.
#[derive(Clone, Debug, Default)]
pub struct ViewHead {
    /// The target and what is known of it, most important first.
    pub target: Vec<String>,
    /// The program and the host.
    pub host: Vec<String>,
    /// Wall clock at the start, ms since the epoch; 0 where there is none.
    pub started_unix_ms: u64,
}

/// Blocks under one heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Empty where the first block needs none.
    pub title: String,
    /// In reading order.
    pub blocks: Vec<Block>,
    /// Which reports have it.
    pub part: Part,
}

/// Which reports have a section: a brief one fits a screen, a full one has everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// Both.
    #[default]
    Both,
    /// A full one.
    Full,
    /// A brief one: its figures are part of another section of a full one.
    Brief,
}

impl Part {
    /// True of a part that a report has, full if it `is_full`.
    pub const fn is_of(self, is_full: bool) -> bool {
        !matches!((self, is_full), (Part::Full, false) | (Part::Brief, true))
    }
}

/// One part of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// One paragraph each.
    Notes(Vec<String>),
    /// A label and its value or sentence each.
    KeyFigures(Vec<KeyFigure>),
    /// Rows under one head.
    Table(Table),
    /// What the numbers imply.
    Findings(Vec<FindingEntry>),
    /// Maps over the same axes.
    HeatMaps(Vec<HeatMap>),
    /// Series over a common kind of axis.
    Plots(Vec<Plot>),
    /// Tests, of which more is seen on demand: a part of pages.
    Tests(TestRows),
    /// Commands to copy: never wrapped, each under its name.
    Commands(Vec<(String, String)>),
}

/// A labelled value.
#[derive(Clone, Debug)]
pub struct KeyFigure {
    /// What it is.
    pub label: String,
    /// The value, or a sentence.
    pub cell: Cell,
    /// How it is to be seen.
    pub tone: Tone,
}

/// Findings of one kind with one remedy.
#[derive(Clone, Debug)]
pub struct FindingEntry {
    /// The kind.
    pub id: FindingId,
    /// How serious it is.
    pub severity: Severity,
    /// One sentence or more for each test or group of tests.
    pub claims: Vec<String>,
    /// What to do.
    pub remedy: Option<String>,
}

impl View {
    /// Adds a section unless its blocks are all empty.
    pub fn push(&mut self, title: impl Into<String>, blocks: impl IntoIterator<Item = Block>) {
        self.push_part(Part::Both, title, blocks);
    }

    /// Adds a section of full reports.
    pub fn push_full(&mut self, title: impl Into<String>, blocks: impl IntoIterator<Item = Block>) {
        self.push_part(Part::Full, title, blocks);
    }

    /// Adds a section of brief reports.
    pub fn push_brief(&mut self, title: impl Into<String>, blocks: impl IntoIterator<Item = Block>) {
        self.push_part(Part::Brief, title, blocks);
    }

    fn push_part(&mut self, part: Part, title: impl Into<String>, blocks: impl IntoIterator<Item = Block>) {
        let blocks: Vec<Block> = blocks.into_iter().filter(|block| !block.is_empty()).collect();
        if !blocks.is_empty() {
            self.sections.push(Section { title: title.into(), blocks, part });
        }
    }

    /// Adds a line of the verdict, if there is one.
    pub fn say(&mut self, label: impl Into<String>, line: impl Into<Option<String>>) {
        self.verdict.extend(line.into().map(|line| KeyFigure::new(label, line)));
    }

    /// The same of what is wrong.
    pub fn warn(&mut self, label: impl Into<String>, line: impl Into<Option<String>>) {
        let alarm = |line: String| KeyFigure { tone: Tone::Alarm, ..KeyFigure::new(label, line) };
        self.verdict.extend(line.into().map(alarm));
    }

    /// The sections of a report, full if it `is_full`.
    pub fn parts(&self, is_full: bool) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(move |section| section.part.is_of(is_full))
    }
}

impl KeyFigure {
    /// A label with its value or sentence.
    pub fn new(label: impl Into<String>, cell: impl Into<Cell>) -> KeyFigure {
        KeyFigure { label: label.into(), cell: cell.into(), tone: Tone::Normal }
    }
}

impl Block {
    /// One paragraph.
    pub fn note(text: impl Into<String>) -> Block {
        Block::Notes(vec![text.into()])
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Block::Notes(notes) => notes.is_empty(),
            Block::KeyFigures(figures) => figures.is_empty(),
            Block::Table(table) => table.rows.is_empty(),
            Block::Findings(findings) => findings.is_empty(),
            Block::HeatMaps(maps) => maps.is_empty(),
            Block::Plots(plots) => plots.is_empty(),
            Block::Tests(tests) => tests.details.is_empty(),
            Block::Commands(commands) => commands.is_empty(),
        }
    }
}
