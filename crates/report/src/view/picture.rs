//! Heat maps and plots as data. Every renderer takes axes, ticks and ends from here, so that pictures agree whatever they are drawn in.

use serde::Serialize;

use super::Cell;
use crate::columns::capital;

/// Cells over two axes, shaded by their values.
#[derive(Clone, Debug, Default)]
pub struct HeatMap {
    /// What it is a map of; empty where the heading says so.
    pub title: String,
    /// What the cells are, with their unit.
    pub measure: &'static str,
    /// What the horizontal axis is; empty where its names say so.
    pub across: &'static str,
    /// What the vertical axis is.
    pub down: &'static str,
    /// Names along the horizontal axis.
    pub columns: Vec<String>,
    /// Name and cells of each line; `None` where nothing was measured.
    pub rows: Vec<(String, Vec<Option<Cell>>)>,
    /// Round values along the horizontal axis; empty where the names of the columns are the ticks.
    pub column_ticks: Vec<MapTick>,
    /// The same along the vertical axis.
    pub row_ticks: Vec<MapTick>,
}

/// A value with a mark on an axis of a heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct MapTick {
    /// Its place in columns from the left edge, or in rows from the top.
    pub place: f64,
    /// The value as readers see it.
    pub text: String,
}

/// Series over common axes.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What is shown, with its unit.
    pub title: String,
    /// How the values are drawn.
    pub form: PlotForm,
    /// The horizontal axis; of bars the axis of their names.
    pub x: Axis,
    /// The axis of the values.
    pub y: Axis,
    /// The values.
    pub series: Vec<PlotSeries>,
    /// Limits: horizontal lines.
    pub limits: Vec<PlotLimit>,
    /// Stretches without a value.
    pub marks: Vec<PlotMark>,
}

/// How the values of a plot are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlotForm {
    /// Lines where a value holds for a stretch, dots where it holds for a moment.
    #[default]
    Steps,
    /// Points joined by lines.
    Lines,
    /// Bars from the base of the axis, in groups of one name.
    Bars,
}

/// An axis with its scale.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it measures, with its unit; empty where the title says so.
    pub label: String,
    /// How values lie along it.
    pub scale: AxisScale,
    /// Its ends; `None` where they follow from the values.
    pub ends: Option<AxisEnds>,
    /// Values with a mark; empty where they follow from the ends.
    pub ticks: Vec<f64>,
    /// A value as readers see it.
    pub text: fn(f64) -> String,
    /// Names in place of values, for 0, 1, 2, ...
    pub names: Vec<String>,
}

/// How values lie along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AxisScale {
    /// In proportion.
    #[default]
    Linear,
    /// By their logarithm.
    Logarithmic,
}

/// The ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisEnds {
    /// The first value.
    pub from: f64,
    /// The last.
    pub to: f64,
}

/// The values of one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotSeries {
    /// Its name in the legend; empty where there is only one.
    pub name: String,
    /// Its values, ascending.
    pub points: Vec<PlotPoint>,
}

/// A value that holds from `from` to `to`, which are the same for a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlotPoint {
    /// Beginning, on the horizontal axis.
    pub from: f64,
    /// End.
    pub to: f64,
    /// The value.
    pub y: f64,
    /// Both ends of its interval.
    pub interval: Option<AxisEnds>,
}

/// A limit of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlotLimit {
    /// What it is.
    pub name: String,
    /// The place of its series.
    pub series: usize,
    /// Its value.
    pub y: f64,
}

/// A stretch of the horizontal axis without a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlotMark {
    /// The place of its series.
    pub series: usize,
    /// Beginning.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Why there is none.
    pub reason: &'static str,
}

impl HeatMap {
    /// What it shows: `IOPS by time and host`.
    pub fn name(&self) -> String {
        let measure = capital(self.measure);
        match (self.across, self.down) {
            ("", _) | (_, "") => measure,
            (across, down) => format!("{measure} by {across} and {down}"),
        }
    }

    /// The highest value; 1 where there is none.
    pub fn most(&self) -> f64 {
        let cells = self.rows.iter().flat_map(|(_, cells)| cells).flatten();
        let most = cells.filter_map(Cell::number).fold(0.0, f64::max);
        if most > 0.0 { most } else { 1.0 }
    }

    /// The ticks of the horizontal axis, ascending.
    pub fn across_ticks(&self) -> Vec<MapTick> {
        if self.column_ticks.is_empty() {
            return middles(self.columns.iter().map(String::as_str));
        }
        self.column_ticks.clone()
    }

    /// The ticks of the vertical axis, from the top down.
    pub fn down_ticks(&self) -> Vec<MapTick> {
        if self.row_ticks.is_empty() {
            return middles(self.rows.iter().map(|(name, _)| name.as_str()));
        }
        self.row_ticks.clone()
    }
}

/// A tick in the middle of each column or row.
fn middles<'a>(names: impl Iterator<Item = &'a str>) -> Vec<MapTick> {
    let tick = |(place, name): (usize, &str)| MapTick { place: place as f64 + 0.5, text: name.to_owned() };
    names.enumerate().map(tick).collect()
}

impl Plot {
    /// The same with so many bars at most, of the names that most series have; `None` where it has no more.
    pub(crate) fn abridged(&self, bars: usize) -> Option<Plot> {
        let most = (bars / self.series.len().max(1)).max(1);
        if self.form != PlotForm::Bars || self.x.names.len() <= most {
            return None;
        }
        let count = |name: usize| {
            let has = |series: &&PlotSeries| series.points.iter().any(|point| point.from == name as f64);
            self.series.iter().filter(has).count()
        };
        let mut kept: Vec<usize> = (0..self.x.names.len()).collect();
        kept.sort_by_key(|name| std::cmp::Reverse(count(*name)));
        kept.truncate(most);
        kept.sort_unstable();
        let place = |from: f64| kept.iter().position(|name| *name as f64 == from).map(|place| place as f64);
        let moved = |point: &PlotPoint| place(point.from).map(|from| PlotPoint { from, to: from, ..*point });
        let series = self.series.iter().map(|series| PlotSeries {
            points: series.points.iter().filter_map(moved).collect(),
            ..series.clone()
        });
        let marks = self
            .marks
            .iter()
            .filter_map(|mark| place(mark.from).map(|from| PlotMark { from, to: from, ..*mark }));
        let names = kept.iter().map(|name| self.x.names[*name].clone()).collect();
        Some(Plot { x: Axis::named(names), series: series.collect(), marks: marks.collect(), ..self.clone() })
    }
}

impl PlotPoint {
    /// A value for a moment.
    pub fn at(x: f64, y: f64) -> PlotPoint {
        PlotPoint { from: x, to: x, y, interval: None }
    }
}

impl Axis {
    /// An axis from 0 on, whose end follows from the values.
    pub fn linear(label: impl Into<String>, text: fn(f64) -> String) -> Axis {
        Axis {
            label: label.into(),
            scale: AxisScale::Linear,
            ends: None,
            ticks: Vec::new(),
            text,
            names: Vec::new(),
        }
    }

    /// A value as readers see it: the name of its place where there are names.
    pub fn word(&self, value: f64) -> String {
        let place = (value.max(0.0) as usize).min(self.names.len().saturating_sub(1));
        self.names.get(place).cloned().unwrap_or_else(|| (self.text)(value))
    }

    /// The same by logarithms.
    pub fn logarithmic(label: impl Into<String>, text: fn(f64) -> String) -> Axis {
        Axis { scale: AxisScale::Logarithmic, ..Axis::linear(label, text) }
    }

    /// An axis of names.
    pub fn named(names: Vec<String>) -> Axis {
        let to = names.len() as f64;
        Axis { names, ends: Some(AxisEnds { from: 0.0, to }), ..Axis::linear("", |value| value.to_string()) }
    }

    /// The same with these ends.
    pub fn ending(self, from: f64, to: f64) -> Axis {
        Axis { ends: Some(AxisEnds { from, to }), ..self }
    }

    /// The same with marks at these values, which are its ends as well.
    pub fn marked(self, ticks: Vec<f64>) -> Axis {
        let ends = ticks.first().zip(ticks.last()).map(|(&from, &to)| AxisEnds { from, to });
        Axis { ends, ticks, ..self }
    }

    /// The ends: those that are set, else round values around `values`.
    pub fn ends(&self, values: impl Iterator<Item = f64>) -> AxisEnds {
        if let Some(ends) = self.ends {
            return ends;
        }
        let (least, most) = values
            .filter(|value| value.is_finite() && (self.scale == AxisScale::Linear || *value > 0.0))
            .fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
        match self.scale {
            AxisScale::Linear => AxisEnds { from: 0.0, to: nice(most) },
            AxisScale::Logarithmic if most > 0.0 => {
                let power = |value: f64| 10f64.powf(value);
                let (from, to) = (power(least.log10().floor()), power(most.log10().ceil()));
                AxisEnds { from, to: if to > from { to } else { from * 10.0 } }
            }
            AxisScale::Logarithmic => AxisEnds { from: 1.0, to: 10.0 },
        }
    }

    /// The place of a value between the ends, 0 to 1.
    pub fn place(&self, value: f64, ends: AxisEnds) -> f64 {
        let share = match self.scale {
            AxisScale::Linear => (value - ends.from) / (ends.to - ends.from),
            AxisScale::Logarithmic => {
                (value.max(f64::MIN_POSITIVE) / ends.from).ln() / (ends.to / ends.from).ln()
            }
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The values with a mark: about `count`.
    pub fn ticks(&self, ends: AxisEnds, count: usize) -> Vec<f64> {
        if !self.ticks.is_empty() {
            let step = self.ticks.len().div_ceil(count.max(1)).max(1);
            return self.ticks.iter().copied().step_by(step).collect();
        }
        if !self.names.is_empty() {
            let step = self.names.len().div_ceil(count.max(1)).max(1);
            return (0..self.names.len()).step_by(step).map(|place| place as f64).collect();
        }
        match self.scale {
            AxisScale::Linear => {
                let length = ends.to - ends.from;
                // Ends that are set need not be round: then they are divided as they are.
                let quarter = self.ends.is_some().then_some(length / 4.0);
                let step = divided(length).or(quarter);
                let step = step.unwrap_or_else(|| nice(length / (count.max(2) as f64 - 1.0)));
                let last = ((ends.to - ends.from) / step + 1e-9).floor() as usize;
                (0..=last.min(100)).map(|number| ends.from + number as f64 * step).collect()
            }
            AxisScale::Logarithmic => {
                let (first, last) = (ends.from.log10().round() as i32, ends.to.log10().round() as i32);
                let every = ((last - first) as usize).div_ceil(count.max(1)).max(1);
                (first..=last).step_by(every).map(|power| 10f64.powi(power)).collect()
            }
        }
    }
}

impl Plot {
    /// All values of the axis of values, with their intervals and limits.
    pub fn values(&self) -> impl Iterator<Item = f64> {
        let of_point = |point: &PlotPoint| {
            let interval = point.interval.map(|interval| [interval.from, interval.to]);
            std::iter::once(point.y).chain(interval.into_iter().flatten()).collect::<Vec<_>>()
        };
        let points = self.series.iter().flat_map(|series| &series.points).flat_map(of_point);
        points.chain(self.limits.iter().map(|limit| limit.y))
    }

    /// The ends of the axis of values.
    pub fn y_ends(&self) -> AxisEnds {
        self.y.ends(self.values())
    }

    /// The ends of the other axis.
    pub fn x_ends(&self) -> AxisEnds {
        self.x.ends(
            self.series.iter().flat_map(|series| &series.points).flat_map(|point| [point.from, point.to]),
        )
    }
}

/// The step that divides a round length into equal parts; `None` where it is not round.
fn divided(length: f64) -> Option<f64> {
    const PARTS: [(f64, f64); 8] =
        [(1.0, 5.0), (1.5, 3.0), (2.0, 4.0), (3.0, 3.0), (4.0, 4.0), (5.0, 5.0), (6.0, 3.0), (8.0, 4.0)];
    let power = 10f64.powf((length.log10() + 1e-9).floor());
    let is_it = |(mantissa, _): &&(f64, f64)| (length / power - mantissa).abs() < 1e-6;
    PARTS.iter().find(is_it).map(|(_, parts)| length / parts)
}

/// The next of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten.
pub(crate) fn nice(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    // A value that is itself such a step is not to slip behind it.
    steps.into_iter().map(|step| step * power).find(|step| *step >= value * 0.999_999).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, expected) in
            [(0.0, 1.0), (97.0, 100.0), (101.0, 150.0), (200.0, 200.0), (0.7, 0.8), (9.0, 10.0)]
        {
            assert!((nice(value) - expected).abs() < 1e-9, "{value}: {}", nice(value));
        }
    }

    #[test]
    fn ticks_lie_within_the_ends() {
        let text = |value: f64| value.to_string();
        let linear = Axis::linear("", text);
        let ends = linear.ends([150.0, 2_900.0].into_iter());
        assert_eq!(ends, AxisEnds { from: 0.0, to: 3_000.0 });
        assert_eq!(linear.ticks(ends, 4), [0.0, 1_000.0, 2_000.0, 3_000.0]);
        assert!((linear.place(1_500.0, ends) - 0.5).abs() < 1e-9);
        assert_eq!(linear.ticks(AxisEnds { from: 0.0, to: 0.5 }, 3).len(), 6);
        assert_eq!(linear.ticks(AxisEnds { from: 0.0, to: 7.0 }, 3), [0.0, 4.0]);
        let fixed = Axis::linear("", text).ending(0.0, 7.0);
        assert_eq!(fixed.ticks(fixed.ends.unwrap(), 3), [0.0, 1.75, 3.5, 5.25, 7.0]);
        let logarithmic = Axis::logarithmic("", text);
        let ends = logarithmic.ends([0.0, 150.0, 2_900.0].into_iter());
        assert_eq!(ends, AxisEnds { from: 100.0, to: 10_000.0 });
        assert_eq!(logarithmic.ticks(ends, 5), [100.0, 1_000.0, 10_000.0]);
        assert!((logarithmic.place(1_000.0, ends) - 0.5).abs() < 1e-9);
        assert_eq!(Axis::logarithmic("", text).ends(std::iter::empty()), AxisEnds { from: 1.0, to: 10.0 });
        let marked = Axis::logarithmic("", text).marked(vec![1.0, 2.0, 4.0, 8.0]);
        assert_eq!(
            (marked.ends(std::iter::empty()).to, marked.ticks(marked.ends.unwrap(), 2)),
            (8.0, vec![1.0, 4.0])
        );
        let named = Axis::named(vec!["first".to_owned(), "last".to_owned()]);
        assert_eq!(
            (named.word(0.5), named.word(2.0), linear.word(0.5)),
            ("first".into(), "last".into(), "0.5".into())
        );
        assert_eq!(named.ticks(named.ends.unwrap(), 9), [0.0, 1.0]);
        // One value has no width.
        assert_eq!(linear.place(1.0, AxisEnds { from: 1.0, to: 1.0 }), 0.0);
    }
}
