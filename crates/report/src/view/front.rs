//! What a page shows before everything else, beside the verdict.

use super::{Block, Cell, Plot, Table};

/// The first screen of a page.
#[derive(Clone, Debug, Default)]
pub struct Front {
    /// The chart that shows what happened.
    pub plot: Option<Plot>,
    /// The title of the figures.
    pub title: &'static str,
    /// Limits, or the figures that matter most.
    pub figures: Vec<FrontFigure>,
    /// Uses by how well the volume serves them.
    pub uses: Vec<UseGroup>,
}

/// A figure with its precision.
#[derive(Clone, Debug, Default)]
pub struct FrontFigure {
    /// What it is.
    pub label: String,
    /// The value with its unit.
    pub cell: Cell,
    /// Its interval, or what else is to be known of it; may be empty.
    pub note: String,
}

/// Uses that a volume serves equally well.
#[derive(Clone, Debug)]
pub struct UseGroup {
    /// How well: `Suits`, `Not for`.
    pub heading: &'static str,
    /// How they are to be seen.
    pub tone: UseTone,
    /// Their titles.
    pub names: Vec<String>,
}

/// How a use is to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseTone {
    /// It is served.
    Good,
    /// It is served at times, or nearly.
    Partly,
    /// It is not served.
    Bad,
}

/// Tests under each other, each with what is seen of it on demand.
#[derive(Clone, Debug, Default)]
pub struct TestRows {
    /// A row for each test.
    pub table: Table,
    /// One for each row.
    pub details: Vec<TestDetails>,
}

/// What is seen of a test on demand.
#[derive(Clone, Debug, Default)]
pub struct TestDetails {
    /// Its course at a glance: values at equal distances in time.
    pub course: Vec<f64>,
    /// Its charts.
    pub blocks: Vec<Block>,
}

impl FrontFigure {
    /// A figure without a note.
    pub fn new(label: impl Into<String>, cell: impl Into<Cell>) -> FrontFigure {
        FrontFigure { label: label.into(), cell: cell.into(), note: String::new() }
    }
}

impl Front {
    /// True where there is nothing to show beside the verdict.
    pub fn is_empty(&self) -> bool {
        self.plot.is_none() && self.figures.is_empty() && self.uses.is_empty()
    }
}
