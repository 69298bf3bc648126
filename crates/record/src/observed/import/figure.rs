//! A figure as a source printed it, or as it follows from others.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;

/// A figure, and how exactly the source gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(bound = "T: FigureNumber + Serialize + for<'any> Deserialize<'any>")]
pub struct Figure<T> {
    /// The figure, in the unit of its field.
    pub value: T,
    /// What was measured lies at most this far from `value`; 0 where it was printed in full.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resolution: T,
    /// Where it is from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub origin: FigureOrigin,
    /// Whether it is the value itself, or a bound of it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bound: FigureBound,
}

/// Whether a figure is a value or a bound of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureBound {
    /// The value.
    #[default]
    Exact,
    /// The value is below it.
    Below,
    /// The value is above it.
    Above,
}

impl FigureBound {
    /// What stands before the figure in text; empty before a value.
    pub const fn prefix(self) -> &'static str {
        match self {
            FigureBound::Exact => "",
            FigureBound::Below => "below ",
            FigureBound::Above => "above ",
        }
    }

    /// What a sum or a product of two figures is with these bounds; `None` if it is bounded in no direction.
    pub const fn with(self, other: FigureBound) -> Option<FigureBound> {
        match (self, other) {
            (FigureBound::Exact, bound) | (bound, FigureBound::Exact) => Some(bound),
            (FigureBound::Below, FigureBound::Below) => Some(FigureBound::Below),
            (FigureBound::Above, FigureBound::Above) => Some(FigureBound::Above),
            (FigureBound::Below, FigureBound::Above) | (FigureBound::Above, FigureBound::Below) => None,
        }
    }

    /// The bound of what the figure divides.
    pub const fn reversed(self) -> FigureBound {
        match self {
            FigureBound::Exact => FigureBound::Exact,
            FigureBound::Below => FigureBound::Above,
            FigureBound::Above => FigureBound::Below,
        }
    }
}

/// Where a figure is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureOrigin {
    /// It stands in the source.
    #[default]
    Printed,
    /// It follows from others that do.
    Derived,
}

impl FigureOrigin {
    /// The word in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            FigureOrigin::Printed => "printed",
            FigureOrigin::Derived => "derived",
        }
    }
}

/// A number that figures have: counts, bytes and ns are whole, rates and shares are not.
pub trait FigureNumber: Copy + Default + PartialEq {
    /// As a real number.
    fn as_real(self) -> f64;

    /// The nearest such number; `None` where it is none, or more than a record may hold.
    fn of_real(value: f64) -> Option<Self>;

    /// A distance of at least `value`.
    fn at_least(value: f64) -> Option<Self>;
}

/// The largest whole number of a figure, which a real number holds exactly.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;
/// The largest rate.
const MAX_RATE: f64 = 1e30;

impl FigureNumber for u64 {
    fn as_real(self) -> f64 {
        self as f64
    }

    fn of_real(value: f64) -> Option<u64> {
        let whole = value.round();
        (0.0..=MAX_WHOLE).contains(&whole).then_some(whole as u64)
    }

    fn at_least(value: f64) -> Option<u64> {
        u64::of_real(value.ceil())
    }
}

impl FigureNumber for f64 {
    fn as_real(self) -> f64 {
        self
    }

    fn of_real(value: f64) -> Option<f64> {
        (value.abs() <= MAX_RATE).then_some(value)
    }

    fn at_least(value: f64) -> Option<f64> {
        f64::of_real(value)
    }
}

impl<T: FigureNumber> Figure<T> {
    /// A figure that stands in the source; `None` where no run can have it.
    pub fn printed(value: f64, resolution: f64) -> Option<Figure<T>> {
        let whole = T::of_real(value)?;
        // Rounding to whole units moves it too.
        let moved = (whole.as_real() - value).abs();
        let resolution = T::at_least(resolution + moved)?;
        Some(Figure { value: whole, resolution, ..Figure::default() })
    }

    /// A figure that follows from others; `None` where no run can have it.
    pub fn derived(value: f64, resolution: f64) -> Option<Figure<T>> {
        let figure = Figure::<T>::printed(value, resolution)?;
        Some(Figure { origin: FigureOrigin::Derived, ..figure })
    }

    /// The same as a bound of the value.
    pub fn bounded(self, bound: FigureBound) -> Figure<T> {
        Figure { bound, ..self }
    }

    /// The same as a real number.
    pub fn real(self) -> Figure<f64> {
        let Figure { origin, bound, .. } = self;
        Figure { value: self.value.as_real(), resolution: self.resolution.as_real(), origin, bound }
    }
}

impl Figure<f64> {
    /// True where both can be the same measured value: their resolutions meet.
    pub fn agrees_with(self, other: Figure<f64>) -> bool {
        let rounding = 1e-12 * self.value.abs().max(other.value.abs());
        (self.value - other.value).abs() <= self.resolution + other.resolution + rounding
    }
}

/// A figure that should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MissingFigure {
    /// Line of the source, from 1; 0 where it has no lines of its own.
    pub line: u64,
    /// The text at its place.
    pub text: String,
    /// What it would have been: `write bandwidth`.
    pub figure: String,
    /// Why it is not there.
    pub reason: MissingReason,
}

/// Why a figure is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingReason {
    /// Its place is empty.
    #[default]
    Lost,
    /// There is a text that is no such figure.
    Unreadable,
    /// The number has no unit, or one that has several meanings.
    UnknownUnit,
    /// Nothing completed.
    Stalled,
    /// It was not measured.
    NotMeasured,
    /// The provider does not publish it.
    Unpublished,
}

impl MissingReason {
    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            MissingReason::Lost => "missing",
            MissingReason::Unreadable => "unreadable",
            MissingReason::UnknownUnit => "unit unknown",
            MissingReason::Stalled => "stalled",
            MissingReason::NotMeasured => "not measured",
            MissingReason::Unpublished => "unpublished",
        }
    }
}

/// Where figures stand in their source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FigurePlace {
    /// The beginning of the names of these figures: `read.`, `read.lat_ns.`.
    pub figures: String,
    /// Their line, from 1; 0 where the source has no lines of its own.
    pub line: u64,
    /// The text there, or the path of the member of a document.
    pub text: String,
}

/// A figure that a source states beside its measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatedFigure {
    /// The name of the figure that it speaks of: `read.iops`, `write.runtime_ns`.
    pub figure: String,
    /// Its value in base units.
    pub value: Figure<f64>,
    /// As it is written (`30 s`).
    pub text: String,
    /// Line of the source, from 1; 0 where it has no lines of its own.
    pub line: u64,
    /// Who states it.
    pub kind: StatedKind,
}

/// What kind of statement a figure is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatedKind {
    /// Said to have been measured.
    #[default]
    Claimed,
    /// Said to be expected.
    Expected,
}

impl StatedKind {
    /// The word in text.
    pub const fn name(self) -> &'static str {
        match self {
            StatedKind::Claimed => "claimed",
            StatedKind::Expected => "expected",
        }
    }
}
