//! One figure of a table: its address, its value with unit, bound and resolution, and its place in a test.

use fathom_model::Op;
use fathom_record::import::{
    Figure, FigureBound, FigureNumber, ImportedEntry, ImportedLatency, ImportedOp, ImportedPercentile,
    MissingReason, RateWindows,
};
use fathom_record::{LatencySpan, Metric, MetricDirection, MetricKind, Statistic};

use super::TableRow;
use crate::ImportError;
use crate::number::{self, Number, Reading, UnitStyle};

/// Figures that other programs' sheets have beside the metrics, by their names there.
#[derive(Clone, Copy)]
pub(super) enum SheetFigure {
    Metric(MetricKind),
    LowestBandwidth,
    HighestBandwidth,
    MachineCpu,
    UserCpu,
    SystemCpu,
    Runtime,
    Bytes,
    Ios,
}

const MEAN_LATENCY: MetricKind = MetricKind::Latency(LatencySpan::Total, Statistic::Mean);

const SHEET: &[(&str, SheetFigure)] = &[
    ("transfer rate minimum", SheetFigure::LowestBandwidth),
    ("transfer rate maximum", SheetFigure::HighestBandwidth),
    ("transfer rate average", SheetFigure::Metric(MetricKind::BytesPerSecond)),
    ("burst rate", SheetFigure::Metric(MetricKind::BytesPerSecond)),
    ("access time", SheetFigure::Metric(MEAN_LATENCY)),
    ("cpu usage", SheetFigure::MachineCpu),
    ("bandwidth_windows.min", SheetFigure::LowestBandwidth),
    ("bandwidth_windows.max", SheetFigure::HighestBandwidth),
    ("machine_cpu", SheetFigure::MachineCpu),
    ("cpu.user_percent", SheetFigure::UserCpu),
    ("cpu.system_percent", SheetFigure::SystemCpu),
    ("runtime", SheetFigure::Runtime),
    ("bytes", SheetFigure::Bytes),
    ("ios", SheetFigure::Ios),
];

/// The operation and the figure of a name; without an operation it is of all of them.
pub(super) fn address(name: &str) -> Option<(MetricDirection, SheetFigure)> {
    let name = name.trim().to_ascii_lowercase();
    if let Some(metric) = Metric::parse(&name) {
        return Some((metric.direction.unwrap_or(MetricDirection::Total), SheetFigure::Metric(metric.kind)));
    }
    let named = |name: &str| SHEET.iter().find(|(known, _)| *known == name).map(|&(_, figure)| figure);
    let directions = [
        ("read", MetricDirection::Read),
        ("write", MetricDirection::Write),
        ("trim", MetricDirection::Trim),
        ("total", MetricDirection::Total),
    ];
    let of_op = directions.iter().find_map(|&(word, direction)| {
        let rest = name.strip_prefix(word)?.strip_prefix(['.', ' '])?;
        Some((direction, named(rest)?))
    });
    of_op.or_else(|| Some((MetricDirection::Total, named(&name)?)))
}

/// The name of a figure in a record.
pub(super) fn name_of(direction: MetricDirection, figure: SheetFigure) -> String {
    let of_op = |name: &str| format!("{}.{name}", direction.name());
    match figure {
        SheetFigure::Metric(kind) => Metric { direction: Some(direction), kind }.to_string(),
        SheetFigure::LowestBandwidth => of_op("bandwidth_windows.min_bytes_per_second"),
        SheetFigure::HighestBandwidth => of_op("bandwidth_windows.max_bytes_per_second"),
        SheetFigure::MachineCpu => "cpu.machine_percent".to_owned(),
        SheetFigure::UserCpu => "cpu.user_percent".to_owned(),
        SheetFigure::SystemCpu => "cpu.system_percent".to_owned(),
        SheetFigure::Runtime => of_op("runtime_ns"),
        SheetFigure::Bytes => of_op("bytes"),
        SheetFigure::Ios => of_op("ios"),
    }
}

/// What the units of a table mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableUnits {
    /// As the program defines them.
    Defined(UnitStyle),
    /// `KB` and `MB` are powers of 1,024 or of 1,000, and nobody knows which: read as 1,024, with a resolution that covers both.
    Either,
}

impl TableUnits {
    pub(super) fn of(kb_base: Option<&str>, line: u64) -> Result<TableUnits, ImportError> {
        match kb_base {
            None => Ok(TableUnits::Defined(UnitStyle::Unknown)),
            Some("1024") => Ok(TableUnits::Defined(UnitStyle::Legacy)),
            Some("1000") => Ok(TableUnits::Defined(UnitStyle::LegacyDecimal)),
            Some("either") => Ok(TableUnits::Either),
            Some(other) => Err(ImportError::new(
                line,
                format!("kb_base is {other}"),
                "write 1024 if KB and MB are powers of 1,024, 1000 if of 1,000, or either if that is unknown",
            )),
        }
    }

    /// Bytes of a unit, and by how much less it may be. `MB` is 1,000,000 by definition, and 1,048,576 in many programs: it needs
    /// `kb_base`.
    fn bytes(self, unit: &str) -> Option<(f64, f64)> {
        let in_style = |style| {
            let one = Number { value: 1.0, decimals: 0, unit };
            number::bytes_in(one, unit, style).ok().map(|read| read.value)
        };
        match self {
            TableUnits::Defined(style) => Some((in_style(style)?, 0.0)),
            TableUnits::Either => {
                let most = in_style(UnitStyle::Legacy)?;
                Some((most, most - in_style(UnitStyle::LegacyDecimal)?))
            }
        }
    }
}

/// A value in base units, and whether it is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TableValue {
    reading: Reading,
    bound: FigureBound,
}

impl TableValue {
    fn figure<T: FigureNumber>(self) -> Option<Figure<T>> {
        self.reading.figure().ok().map(|figure: Figure<T>| figure.bounded(self.bound))
    }

    /// As a real number.
    pub(super) fn real(self) -> Option<Figure<f64>> {
        self.figure()
    }
}

/// The signs before a value: a bound, or `~` where only the first digits count.
fn signs(text: &str) -> (FigureBound, bool, &str) {
    let text = text.trim();
    match text.chars().next() {
        Some('<') => (FigureBound::Below, false, text[1..].trim_start()),
        Some('>') => (FigureBound::Above, false, text[1..].trim_start()),
        Some('~') => (FigureBound::Exact, true, text[1..].trim_start()),
        _ => (FigureBound::Exact, false, text),
    }
}

/// Half of the last digit of a rounded number that is not 0.
fn rounding(number: &Number<'_>, digits: &str) -> f64 {
    let whole = digits.split('.').next().unwrap_or_default();
    let zeros = whole.len() - whole.trim_end_matches('0').len();
    match number.decimals {
        0 if number.value > 0.0 => 0.5 * 10_f64.powi(zeros.min(300) as i32),
        decimals => 0.5 * 10_f64.powi(-(decimals.min(300) as i32)),
    }
}

/// The value in base units; a unit of several meanings is no value.
pub(super) fn value(
    figure: SheetFigure,
    row: &TableRow,
    units: TableUnits,
) -> Result<Result<TableValue, MissingReason>, ImportError> {
    let wrong = |what: &str, hint: &str| Err(ImportError::new(row.line, what.to_owned(), hint.to_owned()));
    let unit = row.unit.trim();
    let (bound, is_rounded, digits) = signs(&row.value);
    let Some(number) = Number::parse(digits).filter(|number| !digits.contains(',') && number.unit.is_empty())
    else {
        return wrong(
            &format!("cannot read the value '{}'", row.value),
            "write a number with a point, or: stalled, not measured, unpublished",
        );
    };
    let half = match (is_rounded, number.decimals) {
        (true, _) => rounding(&number, digits),
        (false, 0) => 0.0,
        (false, decimals) => 0.5 * 10_f64.powi(-(decimals.min(300) as i32)),
    };
    let scaled = |scale: f64, less: f64| {
        let resolution = half * scale + number.value * less;
        Ok(Ok(TableValue { reading: Reading { value: number.value * scale, resolution }, bound }))
    };
    match figure {
        SheetFigure::Metric(MetricKind::Latency(..)) | SheetFigure::Runtime => {
            match number::time_unit(unit) {
                Some(scale) => scaled(scale, 0.0),
                None => wrong(&format!("unknown unit of time '{unit}'"), "write ns, us, ms or s"),
            }
        }
        SheetFigure::MachineCpu | SheetFigure::UserCpu | SheetFigure::SystemCpu if unit == "%" => {
            scaled(1.0, 0.0)
        }
        SheetFigure::MachineCpu | SheetFigure::UserCpu | SheetFigure::SystemCpu => {
            wrong(&format!("unknown unit of a share '{unit}'"), "write %")
        }
        SheetFigure::Metric(MetricKind::Iops) | SheetFigure::Ios => {
            match unit.to_ascii_lowercase().as_str() {
                "" | "iops" | "1/s" | "1" | "io/s" | "ops" => scaled(1.0, 0.0),
                "k" | "kiops" => scaled(1e3, 0.0),
                _ => wrong(
                    &format!("unknown unit of I/Os '{unit}'"),
                    "write IOPS, k for thousands, or nothing",
                ),
            }
        }
        _ => match (units.bytes(unit), unit) {
            (Some((most, less)), _) => scaled(most, less),
            (None, "") => wrong("the value has no unit", "write B/s, kB/s, KiB/s, MB/s, MiB/s, ..."),
            _ => Ok(Err(MissingReason::UnknownUnit)),
        },
    }
}

/// Enters a value into the entry of its test.
pub(super) fn set(
    entry: &mut ImportedEntry,
    direction: MetricDirection,
    figure: SheetFigure,
    value: TableValue,
) {
    let of_cpu = match figure {
        SheetFigure::MachineCpu => Some(&mut entry.cpu.machine_percent),
        SheetFigure::UserCpu => Some(&mut entry.cpu.user_percent),
        SheetFigure::SystemCpu => Some(&mut entry.cpu.system_percent),
        _ => None,
    };
    if let Some(slot) = of_cpu {
        *slot = value.figure();
        return;
    }
    let op: &mut ImportedOp = match direction {
        MetricDirection::Read => entry.op_mut(Op::Read),
        MetricDirection::Write => entry.op_mut(Op::Write),
        MetricDirection::Trim => entry.op_mut(Op::Trim),
        MetricDirection::Sync => entry.op_mut(Op::Sync),
        MetricDirection::Total => entry.total.get_or_insert_default(),
    };
    match figure {
        SheetFigure::Metric(MetricKind::Iops) => op.iops = value.figure(),
        SheetFigure::Metric(MetricKind::BytesPerSecond) => op.bytes_per_second = value.figure(),
        SheetFigure::Metric(MetricKind::Latency(span, statistic)) => {
            let latency = match span {
                LatencySpan::Submission => &mut op.slat,
                LatencySpan::Completion => &mut op.clat,
                LatencySpan::Total => &mut op.lat,
            };
            set_latency(latency, statistic, value.figure());
        }
        SheetFigure::LowestBandwidth => windows(op).min = value.figure(),
        SheetFigure::HighestBandwidth => windows(op).max = value.figure(),
        SheetFigure::Runtime => op.runtime_ns = value.figure(),
        SheetFigure::Bytes => op.bytes = value.figure(),
        SheetFigure::Ios => op.ios = value.figure(),
        SheetFigure::MachineCpu | SheetFigure::UserCpu | SheetFigure::SystemCpu => {}
    }
}

fn windows(op: &mut ImportedOp) -> &mut RateWindows {
    op.bandwidth_windows.get_or_insert_default()
}

fn set_latency(latency: &mut ImportedLatency, statistic: Statistic, ns: Option<Figure<u64>>) {
    match (statistic, ns) {
        (Statistic::Least, ns) => latency.min = ns,
        (Statistic::Mean, ns) => latency.mean = ns,
        (Statistic::Greatest, ns) => latency.max = ns,
        (Statistic::Percentile(per_million), Some(ns)) => {
            latency.percentiles.push(ImportedPercentile { percent: f64::from(per_million) / 1e4, ns });
            latency.percentiles.sort_by(|one, other| one.percent.total_cmp(&other.percent));
        }
        (Statistic::Percentile(_), None) => {}
    }
}
