//! The order of the sources by a stated rule: the geometric mean of the IOPS ratios to the base over the tests that all ranked
//! sources have.

use serde::Serialize;

use super::figure::{CellState, Figure};
use super::rows::{ComparedRow, RunTest};
use super::source::{ComparedSource, LABELS};

/// The rule, for reports.
pub const RULE: &str =
    "geometric mean of the IOPS ratios to the base over the tests that all ranked sources have";

/// The place of a source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    /// From 1; equal where the scores are within the smallest difference that counts. `None` where it is not ranked.
    pub rank: Option<u32>,
    /// The source, by its letter.
    pub source: &'static str,
    /// The geometric mean of its ratios.
    pub score: Option<f64>,
    /// The same with the rates that can be held indefinitely; `None` where one is unknown.
    pub sustained_score: Option<f64>,
    /// The rates that the scores rest on: tests and directions.
    pub rates: u32,
    /// Its data are lost with its instance.
    pub ephemeral: bool,
    /// Why it is not ranked, or what to know of its place.
    pub note: Option<String>,
}

/// A rate of all sources: IOPS of one direction of a test.
struct RateRow<'a> {
    row: &'a ComparedRow,
    figure: Figure,
}

/// The sources in their order, unranked ones last.
pub fn ranking(sources: &[ComparedSource], rows: &[ComparedRow], base: usize, delta: f64) -> Vec<Ranked> {
    let rates: Vec<RateRow<'_>> = rows
        .iter()
        .flat_map(|row| {
            Figure::all_of(row).into_iter().filter(Figure::is_rate).map(move |figure| RateRow { row, figure })
        })
        .collect();
    let has = |rate: &RateRow<'_>, source: usize| {
        (source == base || rate.row.is_comparable(base, source)) && value(sources, rate, source).is_some()
    };
    let of_base: Vec<&RateRow<'_>> = rates.iter().filter(|rate| has(rate, base)).collect();
    // A source that lacks most of the tests of the base would leave little to rank the others by.
    let counted = |source: usize| of_base.iter().filter(|rate| has(rate, source)).count();
    let is_ranked = |source: usize| counted(source) * 2 > of_base.len();
    let ranked: Vec<usize> = (0..sources.len()).filter(|source| is_ranked(*source)).collect();
    let shared: Vec<&RateRow<'_>> =
        of_base.iter().copied().filter(|rate| ranked.iter().all(|source| has(rate, *source))).collect();
    let mut all: Vec<Ranked> = (0..sources.len())
        .map(|source| {
            let is_in = ranked.contains(&source) && !shared.is_empty();
            let score = |of: &dyn Fn(&RateRow<'_>, usize) -> Option<f64>| {
                let logs = shared.iter().map(|rate| Some((of(rate, source)? / of(rate, base)?).ln()));
                let sum = logs.sum::<Option<f64>>().filter(|_| is_in)?;
                Some((sum / shared.len() as f64).exp())
            };
            Ranked {
                rank: None,
                source: LABELS[source],
                score: score(&|rate, source| value(sources, rate, source)),
                sustained_score: score(&|rate, source| sustained(rate, source)),
                rates: if is_in { shared.len() as u32 } else { counted(source) as u32 },
                ephemeral: sources[source].volume.persistent == Some(false),
                note: note(sources, rows, source, is_in),
            }
        })
        .collect();
    all.sort_by(|one, other| other.score.unwrap_or(0.0).total_cmp(&one.score.unwrap_or(0.0)));
    let mut best: Option<(u32, f64)> = None;
    for (place, one) in all.iter_mut().enumerate() {
        let Some(score) = one.score else { continue };
        let rank = match best {
            Some((rank, first)) if score >= first * (1.0 - delta) => rank,
            _ => place as u32 + 1,
        };
        if best.is_none_or(|(known, _)| known != rank) {
            best = Some((rank, score));
        }
        one.rank = Some(rank);
    }
    all
}

fn value(sources: &[ComparedSource], rate: &RateRow<'_>, source: usize) -> Option<f64> {
    rate.figure.cell(rate.row, source, sources[source].kind).value
}

/// The part of the sustained rate of a test that one direction has: its share of the measured one.
fn sustained(rate: &RateRow<'_>, source: usize) -> Option<f64> {
    let of_run = |run: &RunTest| {
        let total = run.summary.total.as_ref()?.iops;
        Some(run.sustained_iops()? * rate.figure.value(run)? / total)
    };
    rate.row.usable(source).map(of_run).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
}

fn note(sources: &[ComparedSource], rows: &[ComparedRow], source: usize, is_ranked: bool) -> Option<String> {
    let stalled: Vec<&str> = rows
        .iter()
        .filter(|row| row.runs[source].iter().any(|run| run.is_stalled))
        .map(|row| row.test.as_str())
        .collect();
    let is_ephemeral = sources[source].volume.persistent == Some(false);
    let notes = [
        (!stalled.is_empty()).then(|| format!("{} in {}", CellState::Stalled.text(), stalled.join(", "))),
        (!is_ranked).then(|| "not ranked: it has too few of the base's tests".to_owned()),
        is_ephemeral.then(|| "ephemeral: its data are lost with its instance".to_owned()),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}
