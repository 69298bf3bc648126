//! The order of the sources by a stated rule: the geometric mean of the ratios of their rates to the base over the tests that all
//! ranked sources have. A rate that can be held counts before one that a burst reached.

use fathom_record::import::FigureBound;
use serde::Serialize;

use super::cell::CellState;
use super::figure::{Deltas, Figure};
use super::pairs::pair;
use super::ratio::{RatioVerdict, RunValue, ratio};
use super::rows::{ComparedRow, RowFigure, RunTest};
use super::source::{ComparedSource, LABELS};
use crate::criterion::{Metric, MetricDirection, MetricKind};
use crate::steady::rate_duration::Lasting;

/// The rule, for reports.
pub const RULE: &str = "geometric mean of the ratios to the base over the rates (IOPS, or bandwidth if no IOPS are stated) that all \
                        ranked sources have; the sustained rate counts if it is known, else the measured one";

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
    /// A burst of one of these rates is known, so that the measured rates are not those that count.
    #[serde(skip)]
    pub has_burst: bool,
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
#[derive(Clone, Copy)]
struct RateRow<'a> {
    row: &'a ComparedRow,
    rate: &'a RowFigure,
}

/// Two sources of which each is ahead by so much in some test have no order that a mean of all tests could tell.
const AHEAD: f64 = 1.25;
/// Ratios within this factor are alike.
const ALIKE: f64 = 1.02;

/// What the order rests on.
pub(super) struct Basis<'a> {
    /// The rates that all ranked sources have.
    shared: Vec<RateRow<'a>>,
    /// The places of the ranked sources.
    ranked: Vec<usize>,
    /// Rates of the base that each source has.
    counted: Vec<usize>,
    /// Why there is no order at all.
    pub(super) no_order: Option<&'static str>,
}

/// The rates that two sources are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderedRates {
    /// Those that can be held where a burst is known, else the measured ones.
    Held,
    /// The measured ones.
    Measured,
}

impl<'a> Basis<'a> {
    /// What `count` sources with these `rows` are ordered by.
    pub(super) fn new(count: usize, rows: &'a [ComparedRow], base: usize) -> Basis<'a> {
        let (paced, loading): (Vec<_>, Vec<_>) =
            rows.iter().partition(|row| row.runs.iter().flatten().any(|run| run.is_paced));
        let rates: Vec<RateRow<'_>> = loading.iter().flat_map(|row| rates_of(row, base)).collect();
        let has = |rate: &RateRow<'_>, source: usize| {
            (source == base || rate.row.is_comparable(base, source)) && value(rate, source).is_some()
        };
        let of_base: Vec<&RateRow<'_>> = rates.iter().filter(|rate| has(rate, base)).collect();
        let counted: Vec<usize> =
            (0..count).map(|source| of_base.iter().filter(|rate| has(rate, source)).count()).collect();
        // Two sources with more than half of the rates of the base have some in common; one with fewer would leave little to rank
        // the others by. One that stalled serves nobody.
        let is_ranked = |source: &usize| {
            counted[*source] * 2 > of_base.len() && (*source == base || stalled(rows, *source).is_empty())
        };
        let ranked: Vec<usize> = (0..count).filter(is_ranked).collect();
        let is_shared = |rate: &RateRow<'_>| ranked.iter().all(|source| has(rate, *source));
        let is_paced = || paced.iter().any(|row| !rates_of(row, base).is_empty());
        let no_order = match (of_base.is_empty(), of_base.iter().any(|rate| is_shared(rate))) {
            (true, _) if is_paced() => Some(
                "tests that wait between I/Os do not reach the limit of a volume, and no other has a rate",
            ),
            (true, _) if !rates.is_empty() => Some("the base states only bounds of its rates"),
            (true, _) => Some("the base states no rate"),
            (false, false) => Some("no rate is common to the sources"),
            (false, true) => None,
        };
        let shared = rates.iter().filter(|rate| has(rate, base) && is_shared(rate)).copied().collect();
        Basis { shared, ranked, counted, no_order }
    }

    /// The verdicts on the rates of `other` compared with `one`.
    pub(super) fn verdicts(
        &self,
        [one, other]: [usize; 2],
        deltas: Deltas,
        rates: OrderedRates,
    ) -> Vec<RatioVerdict> {
        let verdict = |rate: &RateRow<'_>| {
            let is_held = |source: usize| rates == OrderedRates::Held && held(rate, source).is_some();
            if !is_held(one) && !is_held(other) {
                return pair(rate.row, [one, other], rate.rate, deltas).verdict;
            }
            let samples = |source: usize| match is_held(source) {
                true => held_samples(rate, source),
                false => rate.rate.figure.samples(rate.row, source),
            };
            let found = ratio(&samples(one), &samples(other), rate.rate.figure.threshold(deltas))?;
            Some(found.verdict)
        };
        self.shared.iter().filter_map(verdict).collect()
    }

    /// What the rates are called.
    /// The tests in which each of two sources is furthest ahead of the other, with the ratio, where either is by a quarter.
    pub(super) fn each_ahead(&self, [one, other]: [usize; 2]) -> Option<[(&'a str, f64); 2]> {
        let rate_of = |rate: &RateRow<'_>, source: usize| held(rate, source).or_else(|| value(rate, source));
        let ratio = |rate: &RateRow<'a>| {
            let ratio = rate_of(rate, one)? / rate_of(rate, other)?;
            (ratio.is_finite() && ratio > 0.0).then_some((rate.row.test.as_str(), ratio))
        };
        let ratios: Vec<(&str, f64)> = self.shared.iter().filter_map(ratio).collect();
        let [highest, lowest] = [
            ratios.iter().map(|one| one.1).fold(0.0, f64::max),
            ratios.iter().map(|one| one.1).fold(f64::MAX, f64::min),
        ];
        // The first of tests that hardly differ.
        let most = *ratios.iter().find(|one| one.1 >= highest / ALIKE)?;
        let least = *ratios.iter().find(|one| one.1 <= lowest * ALIKE)?;
        (most.1 >= AHEAD && least.1 <= 1.0 / AHEAD).then_some([most, (least.0, 1.0 / least.1)])
    }

    pub(super) fn rate_name(&self) -> &'static str {
        if self.shared.iter().all(|rate| rate.rate.figure.is_rate()) { "IOPS" } else { "rate" }
    }
}

/// True where `score` is behind `first` by more than the smallest difference that counts.
pub(super) fn is_behind(score: f64, first: f64, delta: f64) -> bool {
    score < first * (1.0 - delta)
}

/// The sources in their order, unranked ones last.
pub fn ranking(sources: &[ComparedSource], rows: &[ComparedRow], base: usize, delta: f64) -> Vec<Ranked> {
    let Basis { shared, ranked, counted, no_order, .. } = Basis::new(sources.len(), rows, base);
    let why_not = no_order.unwrap_or("it has no more than half of the base's rates");
    let mut all: Vec<Ranked> = (0..sources.len())
        .map(|source| {
            let stalled = stalled(rows, source);
            let is_in = ranked.contains(&source) && !shared.is_empty() && stalled.is_empty();
            let score = |of: &dyn Fn(&RateRow<'_>, usize) -> Option<f64>| {
                let logs = shared.iter().map(|rate| Some((of(rate, source)? / of(rate, base)?).ln()));
                let sum = logs.sum::<Option<f64>>().filter(|_| is_in)?;
                Some((sum / shared.len() as f64).exp())
            };
            let measured = |rate: &RateRow<'_>, source: usize| value(rate, source);
            Ranked {
                rank: None,
                source: LABELS[source],
                score: score(&|rate, source| held(rate, source).or_else(|| measured(rate, source))),
                measured_score: score(&measured),
                sustained_score: score(&sustained),
                rates: if is_in { shared.len() } else { counted[source] } as u32,
                has_burst: shared.iter().any(|rate| held(rate, source).is_some()),
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
            Some((rank, first)) if !is_behind(score, first, delta) => rank,
            _ => place as u32 + 1,
        };
        if best.is_none_or(|(known, _)| known != rank) {
            best = Some((rank, score));
        }
        one.rank = Some(rank);
    }
}

/// The rates of a test: its IOPS, or its bandwidth where the base states no IOPS, or only a bound; those of all operations together
/// where a source does not tell them apart.
fn rates_of(row: &ComparedRow, base: usize) -> Vec<RateRow<'_>> {
    let is_total = |of: &&RowFigure| of.figure.direction() == Some(MetricDirection::Total.name());
    let has_total = row.figures().iter().any(|of| is_total(&of));
    let is_bandwidth = |figure: &Figure| {
        matches!(figure, Figure::Metric(Metric { kind: MetricKind::BytesPerSecond, direction })
            if *direction != Some(MetricDirection::Sync))
    };
    let replaces = |figure: &Figure| {
        let Figure::Metric(metric) = figure else { return false };
        let iops = Figure::Metric(Metric { kind: MetricKind::Iops, ..*metric });
        let iops = iops.cell(row, base);
        is_bandwidth(figure) && (iops.value.is_none() || iops.bound != FigureBound::Exact)
    };
    let is_meant = |of: &&RowFigure| {
        (!has_total || is_total(of))
            && (of.figure.is_rate() || replaces(&of.figure))
            && of.cells[base].value.is_some()
    };
    row.figures().iter().filter(is_meant).map(|rate| RateRow { row, rate }).collect()
}

/// The measured rate; `None` where only a bound is known.
fn value(rate: &RateRow<'_>, source: usize) -> Option<f64> {
    let cell = &rate.rate.cells[source];
    cell.value.filter(|_| cell.bound == FigureBound::Exact)
}

/// The rate that can be held, where it is known: its part of one direction is that of the measured rate.
fn sustained_in(rate: &RateRow<'_>, run: &RunTest) -> Option<f64> {
    let total = run.summary.total.as_ref()?.iops;
    Some(run.sustained_iops()? * rate.rate.figure.value(run)? / total)
}

/// The least of its runs.
fn sustained(rate: &RateRow<'_>, source: usize) -> Option<f64> {
    let of_run = |run: &RunTest| sustained_in(rate, run);
    rate.row.usable(source).map(of_run).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
}

/// The same of each run, as samples of a ratio.
fn held_samples(rate: &RateRow<'_>, source: usize) -> Vec<RunValue> {
    let sample = |run: &RunTest| {
        let RunTest { started_unix_ms, block, .. } = *run;
        Some(RunValue { value: sustained_in(rate, run)?, started_unix_ms, block, within_fraction: None })
    };
    rate.row.usable(source).filter_map(sample).collect()
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
    use crate::fixture::{TestLoad, record};
    use fathom_record::import::{Figure as ImportedFigure, ImportedEntry, ImportedOp, ImportedTest};

    fn source(tests: &[&'static str]) -> ComparedSource {
        let loads: Vec<TestLoad> = tests.iter().map(|id| TestLoad { id, ..TestLoad::default() }).collect();
        ComparedSource::of_records([record(&loads)])
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
    fn the_note_says_why_there_is_no_order() {
        let check = |change: fn(&mut ComparedRow), expected: &str| {
            let sources = [source(&["t"]), source(&["t"])];
            let mut rows = matched_rows(&sources);
            rows.iter_mut().for_each(change);
            let ranked = ranking(&sources, &rows, 0, 0.03);
            let notes: Vec<Option<&str>> = ranked.iter().map(|one| one.note.as_deref()).collect();
            assert_eq!(notes, [Some(format!("not ranked: {expected}").as_str()); 2]);
        };
        check(|row| row.runs[0].clear(), "the base states no rate");
        let paced = |row: &mut ComparedRow| row.runs.iter_mut().flatten().for_each(|run| run.is_paced = true);
        check(
            paced,
            "tests that wait between I/Os do not reach the limit of a volume, and no other has a rate",
        );
        let bounded = |row: &mut ComparedRow| {
            let figure =
                ImportedFigure { value: 2000.0, bound: FigureBound::Below, ..ImportedFigure::default() };
            let op = ImportedOp { iops: Some(figure), ..ImportedOp::default() };
            let entries = vec![ImportedEntry { read: Some(op), ..ImportedEntry::default() }];
            let run = &mut row.runs[0][0];
            run.imported = Some(ImportedTest { entries, ..ImportedTest::default() });
            run.summary.read.as_mut().unwrap().bytes_per_second = 0.0;
        };
        check(bounded, "the base states only bounds of its rates");
    }
}
