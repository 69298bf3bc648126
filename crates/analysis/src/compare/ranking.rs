//! The order of the sources by a stated rule: the geometric mean of the ratios of their rates to the base over the tests that all
//! ranked sources have. A rate that can be held counts before one that a burst reached.

use fathom_record::import::FigureBound;
use serde::Serialize;

use super::cell::CellState;
use super::figure::Figure;
use super::rows::{ComparedRow, RunTest};
use super::source::{ComparedSource, LABELS};
use crate::criterion::{Metric, MetricDirection, MetricKind};
use crate::steady::rate_duration::Lasting;

/// The rule, for reports.
pub const RULE: &str = "geometric mean of the ratios to the base over the rates (IOPS, or bandwidth where no IOPS are stated) that all \
                        ranked sources have; the sustained rate counts where it is known, else the measured one";

/// The place of a source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    /// From 1; equal where the scores are within the smallest difference that counts. `None` where it is not ranked.
    pub rank: Option<u32>,
    /// The source, by its letter.
    pub source: &'static str,
    /// The geometric mean of its ratios, with sustained rates where they are known.
    pub score: Option<f64>,
    /// The same with the measured rates.
    pub measured_score: Option<f64>,
    /// The same with the rates that can be held indefinitely; `None` where one is unknown.
    pub sustained_score: Option<f64>,
    /// The rates that the scores rest on: tests and directions.
    pub rates: u32,
    /// Its data are lost with its instance.
    pub ephemeral: bool,
    /// Tests in which I/Os were issued and none completed.
    pub stalled: Vec<String>,
    /// Why it is not ranked, or what to know of its place.
    pub note: Option<String>,
}

impl Ranked {
    /// True where every rate of the score can be held indefinitely.
    pub fn is_sustained(&self) -> bool {
        self.sustained_score.is_some()
    }
}

/// A rate of all sources: one direction of a test.
struct RateRow<'a> {
    row: &'a ComparedRow,
    figure: Figure,
}

/// The sources in their order, unranked ones last.
pub fn ranking(sources: &[ComparedSource], rows: &[ComparedRow], base: usize, delta: f64) -> Vec<Ranked> {
    let is_paced = |row: &&ComparedRow| row.runs.iter().flatten().any(|run| run.is_paced);
    let loading = rows.iter().filter(|row| !is_paced(row));
    let rates: Vec<RateRow<'_>> = loading.flat_map(|row| rates_of(sources, row, base)).collect();
    let has = |rate: &RateRow<'_>, source: usize| {
        (source == base || rate.row.is_comparable(base, source)) && value(sources, rate, source).is_some()
    };
    let of_base: Vec<&RateRow<'_>> = rates.iter().filter(|rate| has(rate, base)).collect();
    // Two sources with more than half of the rates of the base have some in common; one with fewer would leave little to rank the
    // others by. One that stalled serves nobody.
    let counted = |source: usize| of_base.iter().filter(|rate| has(rate, source)).count();
    let is_ranked = |source: usize| {
        counted(source) * 2 > of_base.len() && (source == base || stalled(rows, source).is_empty())
    };
    let ranked: Vec<usize> = (0..sources.len()).filter(|source| is_ranked(*source)).collect();
    let shared: Vec<&RateRow<'_>> =
        of_base.iter().copied().filter(|rate| ranked.iter().all(|source| has(rate, *source))).collect();
    let why_not = match (of_base.is_empty(), shared.is_empty()) {
        (true, _) => "the base states no rate",
        (_, true) => "no rate is common to the sources",
        (_, false) => "it has no more than half of the base's rates",
    };
    let mut all: Vec<Ranked> = (0..sources.len())
        .map(|source| {
            let stalled = stalled(rows, source);
            let is_in = ranked.contains(&source) && !shared.is_empty() && stalled.is_empty();
            let score = |of: &dyn Fn(&RateRow<'_>, usize) -> Option<f64>| {
                let logs = shared.iter().map(|rate| Some((of(rate, source)? / of(rate, base)?).ln()));
                let sum = logs.sum::<Option<f64>>().filter(|_| is_in)?;
                Some((sum / shared.len() as f64).exp())
            };
            let measured = |rate: &RateRow<'_>, source: usize| value(sources, rate, source);
            Ranked {
                rank: None,
                source: LABELS[source],
                score: score(&|rate, source| held(rate, source).or_else(|| measured(rate, source))),
                measured_score: score(&measured),
                sustained_score: score(&sustained),
                rates: if is_in { shared.len() as u32 } else { counted(source) as u32 },
                ephemeral: sources[source].volume.persistent == Some(false),
                note: note(&sources[source], &stalled, (!is_in).then_some(why_not)),
                stalled,
            }
        })
        .collect();
    all.sort_by(|one, other| other.score.unwrap_or(0.0).total_cmp(&one.score.unwrap_or(0.0)));
    set_ranks(&mut all, delta);
    all
}

/// Sources within the smallest difference that counts share a rank.
fn set_ranks(all: &mut [Ranked], delta: f64) {
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
}

/// The rates of a test: its IOPS, or its bandwidth where the base states no IOPS, or only a bound.
fn rates_of<'a>(sources: &[ComparedSource], row: &'a ComparedRow, base: usize) -> Vec<RateRow<'a>> {
    let all = Figure::all_of(row);
    let is_bandwidth = |figure: &Figure| {
        matches!(figure, Figure::Metric(Metric { kind: MetricKind::BytesPerSecond, direction })
            if *direction != Some(MetricDirection::Sync))
    };
    let replaces = |figure: &Figure| {
        let Figure::Metric(metric) = figure else { return false };
        let iops = Figure::Metric(Metric { kind: MetricKind::Iops, ..*metric });
        let iops = iops.cell(row, base, sources[base].kind);
        is_bandwidth(figure) && (iops.value.is_none() || iops.bound != FigureBound::Exact)
    };
    let has_value = |figure: &Figure| figure.cell(row, base, sources[base].kind).value.is_some();
    let rates = all.into_iter().filter(|figure| (figure.is_rate() || replaces(figure)) && has_value(figure));
    rates.map(|figure| RateRow { row, figure }).collect()
}

/// The measured rate; `None` where only a bound is known.
fn value(sources: &[ComparedSource], rate: &RateRow<'_>, source: usize) -> Option<f64> {
    let cell = rate.figure.cell(rate.row, source, sources[source].kind);
    cell.value.filter(|_| cell.bound == FigureBound::Exact)
}

/// The rate that can be held, where it is known: its part of one direction is that of the measured rate.
fn sustained(rate: &RateRow<'_>, source: usize) -> Option<f64> {
    let of_run = |run: &RunTest| {
        let total = run.summary.total.as_ref()?.iops;
        Some(run.sustained_iops()? * rate.figure.value(run)? / total)
    };
    rate.row.usable(source).map(of_run).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
}

/// The rate after a known burst; `None` where no burst is known.
fn held(rate: &RateRow<'_>, source: usize) -> Option<f64> {
    let is_burst = |run: &RunTest| run.duration.label == Lasting::Burst;
    sustained(rate, source).filter(|_| rate.row.usable(source).any(is_burst))
}

/// The tests in which a source stalled.
fn stalled(rows: &[ComparedRow], source: usize) -> Vec<String> {
    let is_stalled = |row: &&ComparedRow| row.runs[source].iter().any(|run| run.is_stalled);
    rows.iter().filter(is_stalled).map(|row| row.test.clone()).collect()
}

/// What to know of a place; a source without one has none because of `why_not`, unless it stalled.
fn note(source: &ComparedSource, stalled: &[String], why_not: Option<&str>) -> Option<String> {
    let is_ephemeral = source.volume.persistent == Some(false);
    let why_not = why_not.filter(|_| stalled.is_empty());
    let notes = [
        (!stalled.is_empty())
            .then(|| format!("not ranked: {} in {}", CellState::Stalled.text(), stalled.join(", "))),
        why_not.map(|why_not| format!("not ranked: {why_not}")),
        is_ephemeral.then(|| "ephemeral: its data are lost with its instance".to_owned()),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::rows::matched_rows;
    use crate::compare::source::SourceRun;
    use crate::fixture::{TestLoad, record};

    fn source(tests: &[&'static str]) -> ComparedSource {
        let loads: Vec<TestLoad> = tests.iter().map(|id| TestLoad { id, ..TestLoad::default() }).collect();
        let runs = vec![SourceRun { origin: "a run".to_owned(), record: record(&loads) }];
        ComparedSource { runs, ..ComparedSource::default() }
    }

    #[test]
    fn a_source_without_more_than_half_of_the_rates_is_not_ranked() {
        let sources = [source(&["t", "u", "v", "w"]), source(&["t", "u", "v"]), source(&["v", "w"])];
        let ranked = ranking(&sources, &matched_rows(&sources), 0, 0.03);
        let of = |label: &str| ranked.iter().find(|one| one.source == label).unwrap();
        assert_eq!((of("A").rank, of("B").rank), (Some(1), Some(1)));
        assert_eq!(of("A").rates, 3, "the rates that all ranked sources have");
        assert_eq!(of("C").rank, None);
        let note = of("C").note.as_deref();
        assert_eq!(note, Some("not ranked: it has no more than half of the base's rates"));
    }

    #[test]
    fn without_a_rate_of_the_base_the_note_says_so() {
        let sources = [source(&["t"]), source(&["t"])];
        let mut rows = matched_rows(&sources);
        rows.iter_mut().for_each(|row| row.runs[0].clear());
        let ranked = ranking(&sources, &rows, 0, 0.03);
        let notes: Vec<Option<&str>> = ranked.iter().map(|one| one.note.as_deref()).collect();
        assert_eq!(notes, [Some("not ranked: the base states no rate"); 2]);
    }
}
