//! Heat maps and plots as data.

use super::Cell;

/// Cells over two axes, shaded by their values.
#[derive(Clone, Debug, Default)]
pub struct HeatMap {
    /// What the cells are, with their unit.
    pub measure: &'static str,
    /// Names along the horizontal axis.
    pub columns: Vec<String>,
    /// Name and cells of each line; `None` where nothing was measured.
    pub rows: Vec<(String, Vec<Option<Cell>>)>,
}

/// A series over one axis: lines where a value holds for a stretch, dots where it holds for a moment.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What is shown, with its unit.
    pub title: String,
    /// The values.
    pub points: Vec<PlotPoint>,
    /// Stretches without a value.
    pub marks: Vec<PlotMark>,
    /// End of the horizontal axis, which begins at 0.
    pub x_end: f64,
    /// Both ends of the horizontal axis as readers see them.
    pub x_labels: (String, String),
    /// A value of the vertical axis as readers see it.
    pub y_cell: fn(f64) -> Cell,
}

/// A value that holds from `from` to `to`, which are the same for a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotPoint {
    /// Beginning, on the horizontal axis.
    pub from: f64,
    /// End.
    pub to: f64,
    /// The value.
    pub y: f64,
}

/// A stretch of the horizontal axis without a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotMark {
    /// Beginning.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Why there is none.
    pub reason: &'static str,
}
