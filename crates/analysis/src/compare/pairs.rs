//! Every figure of every source beside that of the base: ratio, interval and verdict.

use fathom_record::import::FigureBound;
use serde::Serialize;

use super::cell::CellState;
use super::figure::{Deltas, Figure};
use super::ratio::{IntervalBasis, Ratio, RatioVerdict, ratio};
use super::rows::{ComparedRow, RowFigure, RunTest};
use super::source::LABELS;

/// One figure of two sources; ratio and verdict speak of B compared with A.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The test.
    pub test: String,
    /// `read`, `write`, `trim` or `sync`; `None` for figures of the whole test.
    pub direction: Option<&'static str>,
    /// The figure.
    pub metric: String,
    /// The base, by its letter.
    pub source_a: &'static str,
    /// The other source, by its letter.
    pub source_b: &'static str,
    /// Mean of A's runs in base units: IOPS, bytes per second, ns, shares. `None` where there is no value.
    pub a: Option<f64>,
    /// The same of B.
    pub b: Option<f64>,
    /// Why A has no value.
    pub state_a: CellState,
    /// Why B has none.
    pub state_b: CellState,
    /// B / A; `None` where one has no value, the tests did different work, or the figure is a share.
    pub ratio: Option<f64>,
    /// Ends of its 95 % confidence interval.
    pub low: Option<f64>,
    /// As `low`.
    pub high: Option<f64>,
    /// What the interval rests on.
    pub interval: Option<IntervalBasis>,
    /// The verdict; `None` where the figures cannot be compared.
    pub verdict: Option<RatioVerdict>,
    /// Runs of A that have a value.
    pub runs_a: u32,
    /// Runs of B that have one.
    pub runs_b: u32,
    /// How many more runs of each would probably decide.
    pub more_runs: Option<u32>,
    /// The figures changed steadily over the runs by more than half of the difference.
    #[serde(skip)]
    pub drifts: bool,
    /// Why there is no verdict, or why it is inconclusive beyond the interval.
    pub reason: Option<String>,
    /// The figure, for tables and criteria.
    #[serde(skip)]
    pub figure: Figure,
}

/// The pairs of `base` with every other source, row by row.
pub fn pairs(rows: &[ComparedRow], base: usize, deltas: Deltas) -> Vec<Pair> {
    let of_row = |row: &ComparedRow| -> Vec<Pair> {
        let others = (0..row.runs.len()).filter(|other| *other != base);
        let both = others.flat_map(|other| row.figures().iter().map(move |figure| (other, figure)));
        both.map(|(other, figure)| pair(row, [base, other], figure, deltas)).collect()
    };
    rows.iter().flat_map(of_row).collect()
}

/// `figure` of `other` beside that of `base`.
pub(super) fn pair(
    row: &ComparedRow,
    [base, other]: [usize; 2],
    RowFigure { figure, cells }: &RowFigure,
    deltas: Deltas,
) -> Pair {
    let (figure, [a, b]) = (*figure, [base, other].map(|source| &cells[source]));
    let threshold = figure.threshold(deltas);
    let is_comparable = row.is_comparable(base, other);
    let samples = |source| figure.samples(row, source);
    let bounded = [(base, a), (other, b)].into_iter().find(|(_, cell)| cell.bound != FigureBound::Exact);
    let found = ratio(&samples(base), &samples(other), threshold)
        .filter(|_| is_comparable && bounded.is_none() && !figure.is_share());
    let (verdict, reason) = match &found {
        Some(found) => judged(found, row, [base, other], figure, deltas),
        None if bounded.is_some() && a.value.is_some() && b.value.is_some() => {
            let source = bounded.map_or(base, |(source, _)| source);
            (None, Some(format!("the source of {} states a bound, not a value", LABELS[source])))
        }
        None if a.value.is_some() && b.value.is_some() && !is_comparable => {
            (None, Some(different_work(row, [base, other])))
        }
        None => (None, None),
    };
    Pair {
        test: row.test.clone(),
        direction: figure.direction(),
        metric: figure.metric(),
        source_a: LABELS[base],
        source_b: LABELS[other],
        a: a.value,
        b: b.value,
        state_a: a.state,
        state_b: b.state,
        ratio: found.map(|found| found.ratio),
        low: found.and_then(|found| found.low),
        high: found.and_then(|found| found.high),
        interval: found.and_then(|found| found.interval),
        verdict,
        runs_a: a.runs,
        runs_b: b.runs,
        more_runs: found.and_then(|found| found.more_runs),
        drifts: found.is_some_and(|found| found.drifts),
        reason,
        figure,
    }
}

/// A verdict that a doubt about the figures would falsify is inconclusive, unless the runs that are not in doubt have it too.
fn judged(
    found: &Ratio,
    row: &ComparedRow,
    [base, other]: [usize; 2],
    figure: Figure,
    deltas: Deltas,
) -> (Option<RatioVerdict>, Option<String>) {
    if found.drifts {
        let reason = "the figures change steadily from run to run: alternate the runs of both".to_owned();
        return (Some(RatioVerdict::Inconclusive), Some(reason));
    }
    // Two targets in memory are compared with each other, not with storage.
    let are_in_memory =
        [base, other].iter().all(|source| row.usable(*source).all(|run| run.in_memory.is_some()));
    let flattered = |run: &RunTest| run.flattered.or(run.in_memory.filter(|_| !are_in_memory));
    let doubt_of = |source: usize, run: &RunTest| match (found.verdict, source == other) {
        (RatioVerdict::Better, true) | (RatioVerdict::Worse, false) => flattered(run),
        (RatioVerdict::Better, false) | (RatioVerdict::Worse, true) => run.impeded,
        (RatioVerdict::Equivalent | RatioVerdict::Single, _) => flattered(run).or(run.impeded),
        (RatioVerdict::Inconclusive, _) => None,
    };
    let doubt = [other, base].into_iter().find_map(|source| {
        let reason = row.usable(source).find_map(|run| doubt_of(source, run))?;
        Some(format!("{}: {reason}", LABELS[source]))
    });
    let Some(doubt) = doubt else { return (Some(found.verdict), None) };
    let without = |source: usize| figure.samples_of(row, source, |run| doubt_of(source, run).is_none());
    let rest = ratio(&without(base), &without(other), figure.threshold(deltas));
    match found.verdict {
        RatioVerdict::Single => (Some(RatioVerdict::Single), Some(format!("in doubt: {doubt}"))),
        verdict if rest.is_some_and(|rest| rest.verdict == verdict) => (Some(verdict), None),
        _ => (Some(RatioVerdict::Inconclusive), Some(format!("in doubt: {doubt}"))),
    }
}

/// The parts of the loads that differ: `different work: queue depth 1 and 64`.
fn different_work(row: &ComparedRow, [base, other]: [usize; 2]) -> String {
    let parts = |source: usize| row.work_of(source).map(|work| work.parts()).into_iter().flatten();
    let differing = parts(base).zip(parts(other)).filter_map(|(one, other)| {
        let (one_value, other_value) = one.value.zip(other.value)?;
        (one_value != other_value).then(|| format!("{} {one_value} and {other_value}", one.name))
    });
    format!("different work: {}", differing.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::rows::matched_rows;
    use crate::compare::source::ComparedSource;
    use crate::fixture::TestLoad;
    use fathom_record::{Finding, FindingId};

    fn source(rates: &[f64], load: &TestLoad, finding: Option<FindingId>) -> ComparedSource {
        let tests = vec![load.id.to_owned()];
        let finding = finding.map(|id| Finding { id, tests, ..Finding::default() });
        let mut source = ComparedSource::at_rates(rates, load);
        source.runs.iter_mut().for_each(|run| run.record.findings.extend(finding.clone()));
        source
    }

    fn rate(sources: &[ComparedSource]) -> Pair {
        let all = pairs(&matched_rows(sources), 0, Deltas::default());
        all.into_iter().find(|pair| pair.metric == "iops").unwrap()
    }

    #[test]
    fn a_pair_has_ratio_interval_and_verdict() {
        let load = TestLoad::default();
        let found = rate(&[source(&[1000.0, 1010.0], &load, None), source(&[2000.0, 2010.0], &load, None)]);
        assert_eq!(
            (found.test.as_str(), found.direction, found.metric.as_str()),
            ("t", Some("read"), "iops")
        );
        assert_eq!((found.source_a, found.source_b, found.runs_a, found.runs_b), ("A", "B", 2, 2));
        assert_eq!(found.verdict, Some(RatioVerdict::Better));
        assert!(found.low.unwrap() < found.ratio.unwrap() && found.ratio.unwrap() < found.high.unwrap());
        assert_eq!(
            rate(&[source(&[1.0], &load, None), source(&[2.0], &load, None)]).verdict,
            Some(RatioVerdict::Single)
        );
    }

    #[test]
    fn different_work_has_values_but_no_ratio() {
        let deep = TestLoad { depth: 64, ..TestLoad::default() };
        let found =
            rate(&[source(&[1000.0; 2], &TestLoad::default(), None), source(&[2000.0; 2], &deep, None)]);
        assert_eq!((found.ratio, found.verdict), (None, None));
        assert_eq!(found.reason.as_deref(), Some("different work: queue depth 1 and 64"));
        assert!(found.a.is_some() && found.b.is_some());
    }

    #[test]
    fn a_doubt_overrules_only_the_verdict_that_it_would_falsify() {
        let load = TestLoad::default();
        let with = |a: f64, finding: Option<FindingId>| {
            rate(&[source(&[a; 2], &load, None), source(&[2000.0; 2], &load, finding)])
        };
        assert_eq!(with(1000.0, None).verdict, Some(RatioVerdict::Better));
        let cached = with(1000.0, Some(FindingId::CacheServed));
        assert_eq!(cached.verdict, Some(RatioVerdict::Inconclusive));
        assert_eq!(cached.reason.as_deref(), Some("in doubt: B: a cache may have served I/Os"));
        assert_eq!(with(4000.0, Some(FindingId::CacheServed)).verdict, Some(RatioVerdict::Worse));
        assert_eq!(with(1000.0, Some(FindingId::ForeignIo)).verdict, Some(RatioVerdict::Better));
    }

    #[test]
    fn a_doubt_about_some_runs_leaves_the_verdict_of_the_others() {
        let load = TestLoad::default();
        let check = |doubted: usize, expected: RatioVerdict| {
            let a = source(&[1000.0, 1010.0, 990.0, 1000.0, 1005.0], &load, None);
            let mut b = source(&[2000.0; 5], &load, None);
            for run in &mut b.runs[..doubted] {
                let tests = vec![load.id.to_owned()];
                let cached = Finding { id: FindingId::CacheServed, tests, ..Finding::default() };
                run.record.findings.push(cached);
            }
            assert_eq!(rate(&[a, b]).verdict, Some(expected), "{doubted}");
        };
        check(1, RatioVerdict::Better);
        check(4, RatioVerdict::Inconclusive);
        check(5, RatioVerdict::Inconclusive);
    }

    #[test]
    fn memory_is_in_doubt_beside_storage_and_not_beside_memory() {
        let load = TestLoad::default();
        let of =
            |rate: f64, memory: bool| source(&[rate; 2], &load, memory.then_some(FindingId::MemoryBacked));
        assert_eq!(rate(&[of(1000.0, true), of(2000.0, true)]).verdict, Some(RatioVerdict::Better));
        assert_eq!(rate(&[of(1000.0, false), of(2000.0, true)]).verdict, Some(RatioVerdict::Inconclusive));
        assert_eq!(rate(&[of(1000.0, true), of(2000.0, false)]).verdict, Some(RatioVerdict::Better));
    }
}
