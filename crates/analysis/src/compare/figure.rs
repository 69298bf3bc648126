//! The figures that are compared: which a row has, their values in each run, and what stands where there is none.

use fathom_model::units;
use fathom_record::Stability;
use fathom_record::import::{Figure as ImportedFigure, FigureBound, MissingReason};
use serde::Serialize;

use super::cell::{CellState, FigureCell, is_exact};
use super::ratio::{RunValue, Threshold, interval_of};
use super::rows::{ComparedRow, RunTest};
use super::source::SourceKind;
use crate::criterion::{LatencySpan, Metric, MetricDirection, MetricKind, Statistic};
use crate::say::{count, percent};

/// A figure of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A rate or a latency of one direction.
    Metric(Metric),
    /// CPU time per I/O, ns.
    CpuPerIo,
    /// Coefficient of variation of the rate per second.
    Variation,
    /// The slowest second as a share of the mean rate.
    WorstSecond,
    /// Share of the seconds whose rate is within 10 % of the mean.
    NearMean,
    /// The rate as a share of the published sustained rate.
    PublishedShare,
    /// Time of a test that ends with its size, ns.
    Elapsed,
}

/// Smallest relative differences that count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Deltas {
    /// Of rates.
    pub rate: f64,
    /// Of latencies, and of all others.
    pub latency: f64,
}

impl Default for Deltas {
    fn default() -> Deltas {
        Deltas { rate: 0.03, latency: 0.05 }
    }
}

const KINDS: [MetricKind; 6] = [
    MetricKind::Iops,
    MetricKind::BytesPerSecond,
    MetricKind::Latency(LatencySpan::Total, Statistic::Mean),
    MetricKind::Latency(LatencySpan::Total, Statistic::Percentile(500_000)),
    MetricKind::Latency(LatencySpan::Total, Statistic::Percentile(990_000)),
    MetricKind::Latency(LatencySpan::Total, Statistic::Percentile(999_000)),
];
const DIRECTIONS: [MetricDirection; 4] =
    [MetricDirection::Read, MetricDirection::Write, MetricDirection::Trim, MetricDirection::Sync];
const OTHERS: [Figure; 6] = [
    Figure::CpuPerIo,
    Figure::Variation,
    Figure::WorstSecond,
    Figure::NearMean,
    Figure::PublishedShare,
    Figure::Elapsed,
];

impl Figure {
    /// The figures that any source has of `row`, in the order of reports.
    pub(super) fn all_of(row: &ComparedRow) -> Vec<Figure> {
        // Figures of all operations together count where a source does not tell them apart.
        let has = |run: &RunTest, direction: MetricDirection| {
            let metric = move |kind| Figure::Metric(Metric { direction: Some(direction), kind });
            let mut figures = KINDS.into_iter().chain(KINDS.map(completion)).map(metric);
            figures.any(|figure| figure.value(run).is_some())
        };
        let is_told_apart = |run: &RunTest| DIRECTIONS.into_iter().any(|direction| has(run, direction));
        let mut runs = row.runs.iter().flatten();
        let is_together = runs.any(|run| has(run, MetricDirection::Total) && !is_told_apart(run));
        let total = is_together.then_some(MetricDirection::Total);
        let metrics = DIRECTIONS.into_iter().chain(total).flat_map(|direction| {
            let metric = move |kind| Metric { direction: Some(direction), kind };
            KINDS.map(metric).into_iter().chain(KINDS.map(completion).map(metric))
        });
        let mut found: Vec<Figure> = Vec::new();
        for figure in metrics.filter(Metric::exists).map(Figure::Metric).chain(OTHERS) {
            let has = |run: &RunTest| figure.value(run).is_some();
            if !found.contains(&figure) && row.runs.iter().flatten().any(has) {
                found.push(figure);
            }
        }
        // Completion latency stands in for total latency where a source has no other.
        let is_needless = |figure: &Figure| match figure {
            Figure::Metric(Metric { kind: MetricKind::Latency(LatencySpan::Completion, of), direction }) => {
                let total = Figure::Metric(Metric {
                    direction: *direction,
                    kind: MetricKind::Latency(LatencySpan::Total, *of),
                });
                let has =
                    |runs: &Vec<RunTest>, figure: &Figure| runs.iter().any(|run| figure.value(run).is_some());
                !row.runs.iter().any(|runs| has(runs, figure) && !has(runs, &total))
            }
            _ => false,
        };
        found.retain(|figure| !is_needless(figure));
        found
    }

    /// Its value in a run.
    pub fn value(&self, run: &RunTest) -> Option<f64> {
        let stability = |of: fn(&Stability) -> f64| run.summary.stability.as_ref().map(of);
        let total = run.summary.total.as_ref();
        let iops = total.map(|total| total.iops).filter(|iops| *iops > 0.0);
        match self {
            Figure::Metric(metric) => {
                let value = metric.of(&run.summary)?;
                // A rate of 0 is one that a source did not state.
                (metric.is_latency() || value > 0.0).then_some(value)
            }
            Figure::CpuPerIo => run.summary.cpu.as_ref()?.per_request_ns,
            Figure::Variation => stability(|of| of.cv),
            Figure::WorstSecond => Some(stability(|of| of.worst_second_iops)? / iops?),
            Figure::NearMean => stability(|of| of.within_10_percent),
            Figure::PublishedShare => {
                let is_published = run.duration.volume.is_some() && !run.is_paced;
                Some(iops? / run.duration.sustained_iops.filter(|rate| is_published && *rate > 0.0)?)
            }
            Figure::Elapsed => run.ends_with_size.then_some(run.summary.measured_ns as f64),
        }
    }

    /// Its values in the usable runs of a source, as samples of a ratio.
    pub fn samples(&self, row: &ComparedRow, source: usize) -> Vec<RunValue> {
        self.samples_of(row, source, |_| true)
    }

    /// The same of the runs that `is_kept`.
    pub fn samples_of(
        &self,
        row: &ComparedRow,
        source: usize,
        is_kept: impl Fn(&RunTest) -> bool,
    ) -> Vec<RunValue> {
        let is_rate = matches!(self, Figure::Metric(metric) if !metric.is_latency());
        let sample = |run: &RunTest| {
            Some(RunValue {
                value: self.value(run)?,
                started_unix_ms: run.started_unix_ms,
                block: run.block,
                within_fraction: run.within_fraction.filter(|_| is_rate),
            })
        };
        row.usable(source).filter(|run| is_kept(run)).filter_map(sample).collect()
    }

    /// The cell of a source.
    pub fn cell(&self, row: &ComparedRow, source: usize) -> FigureCell {
        let samples = self.samples(row, source);
        let values: Vec<f64> = samples.iter().map(|run| run.value).collect();
        if values.is_empty() {
            let state = self.absence(row, source);
            return FigureCell {
                value: None,
                runs: 0,
                state,
                low: None,
                high: None,
                bound: FigureBound::Exact,
                resolution: 0.0,
            };
        }
        let count = values.len() as f64;
        let mean = match values.iter().all(|value| *value > 0.0) {
            true => (values.iter().map(|value| value.ln()).sum::<f64>() / count).exp(),
            false => values.iter().sum::<f64>() / count,
        };
        // The mean of one value is that value.
        let value = if let [value] = values.as_slice() { *value } else { mean };
        let interval = interval_of(&samples);
        let printed = || row.usable(source).filter_map(|run| self.printed(run));
        FigureCell {
            value: Some(value),
            runs: values.len() as u32,
            state: CellState::Measured,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            bound: printed().map(|figure| figure.bound).find(|bound| !is_exact(bound)).unwrap_or_default(),
            resolution: printed()
                .filter(|figure| figure.value > 0.0)
                .map(|figure| figure.resolution / figure.value)
                .fold(0.0, f64::max),
        }
    }

    /// The figure as another program printed it.
    pub fn printed(&self, run: &RunTest) -> Option<ImportedFigure<f64>> {
        let imported = run.imported.as_ref()?;
        match self {
            Figure::Metric(metric) => imported.figure(*metric),
            _ => None,
        }
    }

    fn absence(&self, row: &ComparedRow, source: usize) -> CellState {
        let runs = &row.runs[source];
        let is_rare = |run: &RunTest| match self {
            Figure::Metric(Metric { kind: MetricKind::Latency(_, Statistic::Percentile(_)), direction }) => {
                let mean = Figure::Metric(Metric {
                    direction: *direction,
                    kind: MetricKind::Latency(LatencySpan::Total, Statistic::Mean),
                });
                run.is_usable() && mean.value(run).is_some()
            }
            _ => false,
        };
        let stated = runs.iter().filter_map(|run| run.imported.as_ref()).find_map(|imported| {
            let missing = imported.missing.iter().find(|missing| self.is_named(&missing.figure))?;
            Some(match missing.reason {
                MissingReason::Lost | MissingReason::Unreadable => CellState::Lost,
                MissingReason::UnknownUnit => CellState::UnknownUnit,
                MissingReason::Stalled => CellState::Stalled,
                MissingReason::NotMeasured => CellState::NotMeasured,
                MissingReason::Unpublished => CellState::Unpublished,
            })
        });
        match (row.kinds[source], stated) {
            _ if runs.iter().any(|run| run.is_stalled) => CellState::Stalled,
            (_, Some(state)) => state,
            (SourceKind::Imported, None) if runs.is_empty() => CellState::NotMeasured,
            (SourceKind::Imported | SourceKind::Published, None) => CellState::Unpublished,
            _ if runs.iter().any(is_rare) => CellState::TooFewSamples,
            _ => CellState::NotMeasured,
        }
    }

    /// True where a reader of another program's output calls it so: `read.iops`, `read bandwidth`, `read lat mean`.
    fn is_named(&self, name: &str) -> bool {
        let Figure::Metric(metric) = self else { return false };
        if let Some(named) = Metric::parse(name) {
            return named.kind == metric.kind
                && (named.direction.is_none() || named.direction == metric.direction);
        }
        let what = match metric.kind {
            MetricKind::Iops => "IOPS".to_owned(),
            MetricKind::BytesPerSecond => "bandwidth".to_owned(),
            MetricKind::Latency(LatencySpan::Submission, of) => format!("slat {}", of.name()),
            MetricKind::Latency(LatencySpan::Completion, of) => format!("clat {}", of.name()),
            MetricKind::Latency(LatencySpan::Total, of) => format!("lat {}", of.name()),
        };
        let direction = metric.direction.map(MetricDirection::name).unwrap_or_default();
        name == format!("{direction} {what}") || name == what
    }

    /// What counts as a difference in it.
    pub fn threshold(&self, deltas: Deltas) -> Threshold {
        let is_rate = matches!(self, Figure::Metric(metric) if !metric.is_latency());
        let more_is_better =
            is_rate || matches!(self, Figure::WorstSecond | Figure::NearMean | Figure::PublishedShare);
        Threshold { more_is_better, delta: if is_rate { deltas.rate } else { deltas.latency } }
    }

    /// The direction in JSON.
    pub fn direction(&self) -> Option<&'static str> {
        match self {
            Figure::Metric(metric) => metric.direction.map(MetricDirection::name),
            _ => None,
        }
    }

    /// The name in JSON, without the direction.
    pub fn metric(&self) -> String {
        match self {
            Figure::Metric(metric) => Metric { direction: None, ..*metric }.to_string(),
            Figure::CpuPerIo => "cpu_ns_per_io".to_owned(),
            Figure::Variation => "cv".to_owned(),
            Figure::WorstSecond => "worst_second_fraction".to_owned(),
            Figure::NearMean => "within_10_percent".to_owned(),
            Figure::PublishedShare => "sustained_rate_fraction".to_owned(),
            Figure::Elapsed => "elapsed_ns".to_owned(),
        }
    }

    /// The name in tables.
    pub fn label(&self) -> String {
        match self {
            Figure::Metric(metric) => metric.label(),
            Figure::CpuPerIo => "CPU per I/O".to_owned(),
            Figure::Variation => "CV".to_owned(),
            Figure::WorstSecond => "worst second".to_owned(),
            Figure::NearMean => "within 10 %".to_owned(),
            Figure::PublishedShare => "of sustained rate".to_owned(),
            Figure::Elapsed => "elapsed".to_owned(),
        }
    }

    /// A value with its unit.
    pub fn quantity(&self, value: f64) -> String {
        match self {
            Figure::Metric(metric) => metric.kind.quantity(value),
            Figure::CpuPerIo => units::latency(value.round() as u64),
            Figure::Elapsed => units::duration(fathom_model::Nanos(value.round() as u64)),
            Figure::Variation | Figure::WorstSecond | Figure::NearMean | Figure::PublishedShare => {
                percent(value)
            }
        }
    }

    /// True for shares, which are compared as they are: their ratio says nothing.
    pub fn is_share(&self) -> bool {
        matches!(self, Figure::Variation | Figure::WorstSecond | Figure::NearMean | Figure::PublishedShare)
    }

    /// True for the rate by which a test is ranked: I/Os of its data.
    pub fn is_rate(&self) -> bool {
        matches!(
            self,
            Figure::Metric(Metric { kind: MetricKind::Iops, direction: Some(direction) })
                if *direction != MetricDirection::Sync
        )
    }
}

/// The same latency from issue to completion.
fn completion(kind: MetricKind) -> MetricKind {
    match kind {
        MetricKind::Latency(_, of) => MetricKind::Latency(LatencySpan::Completion, of),
        other => other,
    }
}

/// A ratio for tables and sentences: `1.94`, `0.051`, `20.3`.
pub fn ratio_text(ratio: f64) -> String {
    match ratio {
        ..0.0995 => format!("{ratio:.3}"),
        ..9.995 => format!("{ratio:.2}"),
        ..99.95 => format!("{ratio:.1}"),
        _ => count(ratio),
    }
}

/// The interval of a ratio: `1.92-1.98`. One of a few runs that differ much has bounds that nobody can use.
pub fn ratio_interval_text(low: f64, high: f64) -> String {
    const MAX_FOLD: f64 = 1000.0;
    match high > low * MAX_FOLD {
        true => "over 1,000-fold".to_owned(),
        false => format!("{}-{}", ratio_text(low), ratio_text(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_says_nothing_has_no_bounds() {
        assert_eq!(ratio_interval_text(0.693, 1.187), "0.69-1.19");
        assert_eq!(ratio_interval_text(0.5, 500.0), "0.50-500");
        assert_eq!(ratio_interval_text(0.0, f64::MAX), "over 1,000-fold");
    }
}
