//! A figure of one source, or why there is none.

use fathom_record::import::FigureBound;
use serde::Serialize;

/// Why a cell has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellState {
    /// It has one.
    Measured,
    /// I/Os were issued and none completed.
    Stalled,
    /// The sample is too small for the percentile.
    TooFewSamples,
    /// The source does not have the test or the figure.
    NotMeasured,
    /// The output or table that it was imported from does not have it.
    Unpublished,
    /// Its place in the source is empty or unreadable.
    Lost,
    /// The source does not state its unit.
    UnknownUnit,
}

impl CellState {
    /// The text in place of a value; empty where there is one.
    pub const fn text(self) -> &'static str {
        match self {
            CellState::Measured => "",
            CellState::Stalled => "stalled",
            CellState::TooFewSamples => "too few samples",
            CellState::NotMeasured => "not measured",
            CellState::Unpublished => "unpublished",
            CellState::Lost => "lost",
            CellState::UnknownUnit => "unit unknown",
        }
    }
}

/// A figure of one source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FigureCell {
    /// The mean of the runs: the geometric one, or the arithmetic one where a run has 0. `None` where there is no value.
    pub value: Option<f64>,
    /// Runs that have a value.
    pub runs: u32,
    /// Why there is none.
    pub state: CellState,
    /// Ends of the 95 % confidence interval of the mean, where there is one.
    pub low: Option<f64>,
    /// As `low`.
    pub high: Option<f64>,
    /// Whether the source states a value, or a bound of it.
    #[serde(skip_serializing_if = "is_exact")]
    pub bound: FigureBound,
    /// How far the measured value may lie from a printed one, as a share; 0 where that is unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub resolution: f64,
}

/// Printed values with a coarser resolution are marked as approximate.
const COARSE: f64 = 0.01;

impl FigureCell {
    /// What stands before the value in text: `~`, `below `, `above `.
    pub fn prefix(&self) -> &'static str {
        match self.bound {
            FigureBound::Exact if self.resolution > COARSE => "~",
            bound => bound.prefix(),
        }
    }

    /// True where the intervals of repeated runs have values in common, so that no order of the two is shown.
    pub(super) fn overlaps(&self, other: &FigureCell) -> bool {
        let interval = |cell: &FigureCell| cell.low.zip(cell.high).filter(|_| cell.runs > 1);
        let both = interval(self).zip(interval(other));
        both.is_some_and(|((low, high), (other_low, other_high))| low <= other_high && other_low <= high)
    }
}

pub(super) fn is_exact(bound: &FigureBound) -> bool {
    *bound == FigureBound::Exact
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}
