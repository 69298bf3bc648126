//! What a text states of a test against what the output beside it says.

use fathom_model::{Nanos, units};
use fathom_record::import::{Figure as ImportedFigure, StatedFigure};

use super::super::figure::Figure;
use super::super::rows::RunTest;
use super::ContradictionKind;
use crate::criterion::Metric;
use crate::say::count;

/// Statements are rounded.
const ROUNDING: f64 = 0.02;
/// Factors between units that are taken for one another.
const UNIT_FACTORS: [f64; 3] = [1e3, 1e6, 1024.0];

/// The statements that contradict the output.
pub(super) fn of_run(run: &RunTest) -> Vec<(ContradictionKind, String)> {
    let stated = run.imported.iter().flat_map(|imported| &imported.stated);
    stated.filter_map(|stated| Some((ContradictionKind::Stated, contradicted(run, stated)?))).collect()
}

fn contradicted(run: &RunTest, stated: &StatedFigure) -> Option<String> {
    let metric = Metric::parse(&stated.figure);
    let measured = measured(run, metric, &stated.figure)?;
    if stated.value.agrees_with(measured) || stated.value.value <= 0.0 || measured.value <= 0.0 {
        return None;
    }
    let factor = measured.value / stated.value.value;
    if factor.ln().abs() <= ROUNDING {
        return None;
    }
    let apart = factor.max(1.0 / factor);
    let is_unit = UNIT_FACTORS.iter().any(|unit| (apart / unit).ln().abs() <= ROUNDING);
    let why = match is_unit {
        true => format!(", {} times as {}: the unit of the statement is wrong", count(apart), word(factor)),
        false => String::new(),
    };
    let (label, value) = match metric {
        Some(metric) => {
            let figure = Figure::Metric(metric);
            (figure.label(), figure.quantity(measured.value))
        }
        None => {
            let name = stated.figure.rsplit('.').next().unwrap_or_default().trim_end_matches("_ns");
            (name.to_owned(), units::duration(Nanos(measured.value.round() as u64)))
        }
    };
    let is_bound = stated.value.bound.prefix();
    Some(format!(
        "the text states {is_bound}{} as {label} ({}), and the output has {value}{why}",
        stated.text,
        stated.kind.name()
    ))
}

fn word(factor: f64) -> &'static str {
    if factor > 1.0 { "much" } else { "little" }
}

/// The figure of the output: a metric, or any other by its name.
fn measured(run: &RunTest, metric: Option<Metric>, name: &str) -> Option<ImportedFigure<f64>> {
    let imported = run.imported.as_ref()?;
    match metric {
        Some(metric) => imported.figure(metric),
        None => imported.figures().into_iter().find(|found| found.name == name).map(|found| found.figure),
    }
}
