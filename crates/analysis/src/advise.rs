//! Advice for an observed or stated load: what it is, what each candidate would give it by `fathom-predict`, whether that meets the
//! objective, and which one to take.
//!
//! A volume meets its objective where every prediction does, and misses it where none does. Where some do, what is known of the load
//! cannot decide.

use fathom_model::MonthlyCost;
use fathom_model::units::{Nanos, UnitSystem, duration, grouped, latency};
use fathom_predict::{LoadPace, Prediction, PredictionSet, Requirement};
use fathom_record::{Metric, MetricDirection, MetricKind};
use fathom_stats::LatencySummary;
use serde::Serialize;

use crate::criterion::{Comparison, Criterion, CriterionVerdict};

/// The answer for a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// What was observed or stated.
    pub observed: AdvisedLoad,
    /// Where the objective comes from.
    pub source: ObjectiveSource,
    /// The objective, a bound each.
    pub objective: Vec<String>,
    /// The load that is predicted, times the observed one.
    pub growth: f64,
    /// The present volume under the load as it is.
    pub current: Option<AdvisedCandidate>,
    /// What the best of those that meet the objective is.
    pub order: AdviceOrder,
    /// The candidates, the best first.
    pub candidates: Vec<AdvisedCandidate>,
    /// Types without a volume that could be predicted.
    pub unsuitable: Vec<UnsuitableCandidate>,
    /// Types that are no longer sold and were left out.
    pub left_out: usize,
    /// The types that were searched: `aws`, or empty for all.
    pub provider: String,
    /// What to know, one sentence each without its full stop.
    pub notes: Vec<String>,
}

/// The order of volumes that meet the objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AdviceOrder {
    /// The lowest price of a month first.
    #[default]
    Price,
    /// The lowest 99th percentile of the latency first; those whose latency is assumed last.
    Latency,
    /// The one that meets the objective at the highest growth of the load first.
    Headroom,
}

impl AdviceOrder {
    /// What the first one is: `the cheapest that meets the objective`.
    pub const fn text(self) -> &'static str {
        match self {
            AdviceOrder::Price => "the cheapest that meets the objective",
            AdviceOrder::Latency => "the lowest p99 of those that meet the objective",
            AdviceOrder::Headroom => "the most headroom of those that meet the objective",
        }
    }
}

/// The load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AdvisedLoad {
    /// Its files; empty for stated needs.
    pub files: Vec<String>,
    /// The format, or `stated`.
    pub format: String,
    /// The device, where the source names it.
    pub device: String,
    /// The load in words, where it was stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// `requests` or `intervals`.
    pub detail: &'static str,
    /// Wall clock at the beginning; null where it is unknown.
    pub started_unix_ns: Option<u64>,
    /// From its beginning to its end, ns.
    pub length_ns: u64,
    /// The part with data, ns.
    pub observed_ns: u64,
    /// Length of most intervals, ns; null where every request is known.
    pub resolution_ns: Option<u64>,
    /// I/Os.
    pub ops: u64,
    /// I/Os per second.
    pub iops: f64,
    /// I/Os per second of the busiest interval.
    pub peak_iops: f64,
    /// Bytes per second; null where bytes are unknown.
    pub bytes_per_second: Option<f64>,
    /// Mean size; null where bytes are unknown.
    pub mean_bytes: Option<f64>,
    /// Share of reads; null where they are not told apart.
    pub read_share: Option<f64>,
    /// Mean latency, ns.
    pub mean_latency_ns: Option<f64>,
    /// Latencies of all requests, where each is known.
    pub lat_ns: Option<LatencySummary>,
    /// What requests wait for.
    pub pace: LoadPace,
    /// How I/Os arrive within intervals, or requests: one prediction each.
    pub arrivals: Vec<&'static str>,
    /// Share of the time in which the source reports a limit.
    pub limit_reached_share: Option<f64>,
}

/// What was chosen of a type.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AdvisedParameters {
    /// Size; null where the instance determines it.
    pub size_bytes: Option<u64>,
    /// Provisioned IOPS.
    pub iops: Option<u64>,
    /// Provisioned bandwidth.
    pub bytes_per_second: Option<u64>,
    /// The tier.
    pub tier: Option<String>,
}

/// A volume and what it would give to the load.
#[derive(Clone, Debug, PartialEq)]
pub struct AdvisedCandidate {
    /// The type, or `custom`.
    pub id: String,
    /// Its name as a target: `sim:aws-gp3?size=100GiB`.
    pub target: String,
    /// What was chosen.
    pub parameters: AdvisedParameters,
    /// The instance whose limits apply.
    pub instance: Option<String>,
    /// It is the present volume.
    pub is_current: bool,
    /// Whether it meets the objective.
    pub verdict: AdviseVerdict,
    /// The prediction for each way of arrival.
    pub predicted: PredictionSet,
    /// Every request was replayed; otherwise sums were folded.
    pub is_replayed: bool,
    /// The cost of a month, as far as it is known.
    pub price: Option<MonthlyCost>,
    /// At which growth of the load the objective is no longer met for sure; `None` where it was not looked for.
    pub breaks: Option<GrowthBreak>,
    /// What to know of it.
    pub notes: Vec<String>,
}

/// The growth at which a volume no longer meets its objective.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrowthBreak {
    /// The load times the observed one; null where it holds up to the highest growth that was tried.
    pub growth: Option<f64>,
    /// The highest growth at which the objective is met.
    pub met_at: f64,
    /// What breaks first.
    pub why: String,
}

/// A type without a suitable volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnsuitableCandidate {
    /// The type.
    pub id: String,
    /// Why.
    pub why: String,
}

impl Advice {
    /// The volume to take: the first that meets the objective.
    pub fn answer(&self) -> Option<&AdvisedCandidate> {
        self.candidates.first().filter(|candidate| candidate.verdict.verdict.is_met())
    }

    /// Orders the candidates: those that meet the objective, then those that may, each by what was asked for, then by the price in
    /// `currency`; unknown figures last.
    pub fn rank(&mut self, currency: &str) {
        let order = self.order;
        self.candidates.sort_by(|one, other| {
            let key = |candidate: &AdvisedCandidate| candidate.rank(currency);
            let ((verdict, known, price), (other_verdict, other_known, other_price)) = (key(one), key(other));
            verdict
                .cmp(&other_verdict)
                .then(one.figure(order).total_cmp(&other.figure(order)))
                .then(known.cmp(&other_known))
                .then(price.total_cmp(&other_price))
                .then_with(|| other.is_current.cmp(&one.is_current))
                .then_with(|| one.target.cmp(&other.target))
        });
    }
}

impl AdvisedCandidate {
    /// What it is ordered by before its price, the lowest first.
    fn figure(&self, order: AdviceOrder) -> f64 {
        let p99 = |one: &Prediction| one.summary.total.as_ref().and_then(|total| total.lat_ns.p99);
        match order {
            AdviceOrder::Price => 0.0,
            AdviceOrder::Latency if self.is_latency_assumed() => f64::INFINITY,
            AdviceOrder::Latency => self
                .predicted
                .all
                .iter()
                .map(|one| p99(one).map_or(f64::INFINITY, |ns| ns as f64))
                .fold(0.0, f64::max),
            AdviceOrder::Headroom => self.breaks.as_ref().map_or(f64::INFINITY, |breaks| -breaks.met_at),
        }
    }

    /// Nobody says how long an I/O takes on it.
    fn is_latency_assumed(&self) -> bool {
        self.notes.iter().any(|note| note.starts_with("its latency is not published"))
    }

    fn rank(&self, currency: &str) -> (u8, u8, f64) {
        let verdict = match () {
            () if self.verdict.verdict.is_met() => 0,
            () if self.verdict.verdict.is_inconclusive() => 1,
            () => 2,
        };
        let (known, total) = match &self.price {
            Some(bill) if bill.parts.is_empty() => (3, 0.0),
            Some(bill) if !bill.is_whole() => (2, bill.total),
            Some(bill) if bill.price.currency == currency => (0, bill.total),
            Some(bill) => (1, bill.total),
            None => (3, 0.0),
        };
        (verdict, known, total)
    }
}

/// Share of the rate of a load that has to be served: what comes by itself piles up, clients that wait slow down.
const MIN_SERVED: f64 = 0.99;
const MIN_SERVED_CLOSED: f64 = 0.9;
/// The same of a load without end, where whatever piles up grows without bound: all but the rounding of a month to whole I/Os.
const MIN_SERVED_ENDLESS: f64 = 1.0 - 1e-6;
/// By how much a volume may be worse than the present one.
const MAX_WORSE: f64 = 1.1;
/// Bins of histograms are a part of their value wide; equal latencies may lie in neighbouring ones.
const BIN: f64 = 1.0 / 64.0;

/// Where an objective comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectiveSource {
    /// It was given.
    Given,
    /// Not worse than the prediction for the present volume by more than 10 %.
    Current,
    /// Not worse than observed by more than 10 %.
    Observed,
    /// Nothing is known of the present latency: the rate alone.
    Rate,
}

/// What a volume has to give.
#[derive(Clone, Debug, PartialEq)]
pub struct AdviseObjective {
    /// Where it comes from.
    pub source: ObjectiveSource,
    /// The bounds; of [`ObjectiveSource::Current`] they follow from the prediction for the present volume.
    pub requirements: Vec<Requirement>,
    /// The load goes on like this, as a stated one does: a volume that falls behind never catches up.
    pub is_endless: bool,
}

/// Whether a volume meets its objective.
#[derive(Clone, Debug, PartialEq)]
pub struct AdviseVerdict {
    /// The verdict.
    pub verdict: CriterionVerdict,
    /// Why it is not met, or may not be; empty where it is met.
    pub why: String,
}

/// A value of a metric with its unit.
fn value_text(metric: &Metric, value: f64) -> String {
    match metric.kind {
        MetricKind::Iops => format!("{} IOPS", grouped(value.round() as u64)),
        MetricKind::BytesPerSecond => format!("{}/s", UnitSystem::of(value).amount(value.round() as u64)),
        MetricKind::Latency(..) => latency(value.round() as u64),
    }
}

/// The latencies that are compared with those of now: of each direction the mean and the 99th percentile.
fn compared() -> impl Iterator<Item = Metric> {
    ["read.lat_ns.mean", "read.lat_ns.p99", "write.lat_ns.mean", "write.lat_ns.p99"]
        .into_iter()
        .filter_map(Metric::parse)
}

impl AdviseObjective {
    /// Bounds of a load that has an end.
    pub fn of(source: ObjectiveSource, requirements: Vec<Requirement>) -> AdviseObjective {
        AdviseObjective { source, requirements, is_endless: false }
    }

    /// What was given.
    pub fn given(criteria: &[Criterion]) -> AdviseObjective {
        let of = |criterion: &Criterion| Requirement {
            metric: criterion.metric,
            comparison: criterion.comparison,
            bound: criterion.bound(),
        };
        AdviseObjective::of(ObjectiveSource::Given, criteria.iter().map(of).collect())
    }

    /// Not worse than the present volume.
    pub fn current() -> AdviseObjective {
        AdviseObjective::of(ObjectiveSource::Current, Vec::new())
    }

    /// Not worse than observed: these latencies.
    pub fn observed(latencies: impl IntoIterator<Item = (Metric, f64)>) -> AdviseObjective {
        let of = |(metric, value): (Metric, f64)| Requirement {
            metric,
            comparison: Comparison::AtMost,
            bound: value * MAX_WORSE,
        };
        let requirements: Vec<Requirement> = latencies.into_iter().map(of).collect();
        let source = if requirements.is_empty() { ObjectiveSource::Rate } else { ObjectiveSource::Observed };
        AdviseObjective::of(source, requirements)
    }

    /// The bounds of its latencies that are the same for every way of arrival.
    pub fn latency_limits(&self) -> Vec<Requirement> {
        self.requirements.iter().filter(|requirement| requirement.metric.is_latency()).copied().collect()
    }

    /// Its bounds in words: `read.lat_ns.p99 < 5 ms`.
    pub fn texts(&self) -> Vec<String> {
        let text = |&Requirement { metric, comparison, bound }: &Requirement| {
            format!("{metric} {} {}", comparison.sign(), value_text(&metric, bound))
        };
        self.requirements.iter().map(text).collect()
    }

    /// Whether `found` meets it. `current` is the same load on the present volume, arriving in the same ways.
    pub fn verdict(&self, found: &PredictionSet, current: Option<&PredictionSet>) -> AdviseVerdict {
        let problems: Vec<Option<Problem>> = found
            .all
            .iter()
            .enumerate()
            .map(|(index, prediction)| {
                self.problem(prediction, current.and_then(|current| current.all.get(index)))
            })
            .collect();
        let first = problems.iter().flatten().next();
        let Some(first) = first else {
            return AdviseVerdict { verdict: CriterionVerdict::Met, why: String::new() };
        };
        let is_known = problems.iter().flatten().any(|problem| problem.is_known);
        if is_known && problems.iter().all(|problem| problem.as_ref().is_some_and(|problem| problem.is_known))
        {
            return AdviseVerdict { verdict: CriterionVerdict::Missed, why: first.text.clone() };
        }
        // The worst way of arrival says most.
        let worst = problems.iter().flatten().next_back().unwrap_or(first);
        let finer = "add a finer recording of the same load: requests (blktrace), or sums of 1 s (iostat)";
        let is_of_requests = found.all.iter().any(|prediction| prediction.is_closed);
        let depends = |on: &str| format!("it depends on {on}: at worst {}", worst.text);
        let within = "how I/Os arrive within the intervals";
        let (reason, remedy) = match (worst.is_known, self.source) {
            (false, _) => {
                (worst.text.clone(), "record a longer time, or ask for a lower percentile".to_owned())
            }
            (true, _) if is_of_requests => {
                let remedy = "record a longer time of the application alone";
                (depends("whether requests wait for each other"), remedy.to_owned())
            }
            (true, ObjectiveSource::Observed) => {
                (depends(within), format!("name the present volume with --current, or {finer}"))
            }
            (true, _) => (depends(within), finer.to_owned()),
        };
        AdviseVerdict { verdict: CriterionVerdict::inconclusive(reason.clone(), Some(remedy)), why: reason }
    }

    /// What a prediction misses first.
    fn problem(&self, found: &Prediction, current: Option<&Prediction>) -> Option<Problem> {
        let least = if found.is_closed { MIN_SERVED_CLOSED } else { MIN_SERVED };
        let least = match (self.source, current) {
            (ObjectiveSource::Current, Some(current)) => least * current.served_share,
            _ => least,
        };
        if found.served_share < least {
            let percent = found.served_share * 100.0;
            let cause = cause_text(found);
            return Some(Problem::known(format!("serves {percent:.0} % of the rate of the load{cause}")));
        }
        if self.is_endless && !found.is_closed && found.served_share < MIN_SERVED_ENDLESS {
            let behind = duration(Nanos(found.backlog_ns));
            let cause = cause_text(found);
            return Some(Problem::known(format!(
                "falls behind: its queue grows without bound, and is {behind} long at the end{cause}"
            )));
        }
        let relative: Vec<Requirement> = match (self.source, current) {
            (ObjectiveSource::Current, Some(current)) => compared()
                .filter_map(|metric| {
                    let bound = current.value(&metric)? * (MAX_WORSE + BIN);
                    Some(Requirement { metric, comparison: Comparison::AtMost, bound })
                })
                .collect(),
            _ => Vec::new(),
        };
        let all = self.requirements.iter().chain(&relative);
        let missed = all.filter_map(|requirement| {
            let Some(value) = found.value(&requirement.metric) else {
                return is_present(found, &requirement.metric).then(|| Problem {
                    is_known: false,
                    text: format!("too few I/Os for {}", requirement.metric),
                });
            };
            (!requirement.comparison.holds(value, requirement.bound)).then(|| {
                let found_text = value_text(&requirement.metric, value);
                let bound = value_text(&requirement.metric, requirement.bound);
                let cause = if requirement.metric.is_latency() { cause_text(found) } else { String::new() };
                let Requirement { metric, comparison, .. } = requirement;
                Problem::known(format!(
                    "{metric} {found_text} (objective {} {bound}){cause}",
                    comparison.sign()
                ))
            })
        });
        let missed: Vec<Problem> = missed.collect();
        let known = missed.iter().position(|problem| problem.is_known);
        missed.into_iter().nth(known.unwrap_or(0))
    }
}

/// Whether the load has I/Os of the direction of a metric.
fn is_present(found: &Prediction, metric: &Metric) -> bool {
    let summary = &found.summary;
    match metric.direction {
        Some(MetricDirection::Sync) => summary.sync.is_some(),
        Some(direction) => direction.of(summary).is_some(),
        None => true,
    }
}

/// `: throttled 12 % of the time by …`.
fn cause_text(found: &Prediction) -> String {
    match found.causes.first() {
        Some(cause) => format!(": throttled {:.1} % of the time by {}", cause.share * 100.0, cause.text()),
        None => String::new(),
    }
}

/// A requirement that is not met, or not known to be.
#[derive(Clone, Debug)]
struct Problem {
    is_known: bool,
    text: String,
}

impl Problem {
    fn known(text: String) -> Problem {
        Problem { is_known: true, text }
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::{CostPart, Price};
    use fathom_record::{OpSummary, TestSummary};
    use fathom_stats::LatencySummary;

    use super::*;
    use crate::criterion::CriterionVerdict;

    fn candidate(id: &str, verdict: CriterionVerdict, price: Option<(&str, f64, bool)>) -> AdvisedCandidate {
        let price = price.map(|(currency, total, is_whole)| MonthlyCost {
            price: Price { currency: currency.to_owned(), ..Price::default() },
            total,
            parts: vec![CostPart::default()],
            unknown: if is_whole { Vec::new() } else { vec!["I/Os".to_owned()] },
        });
        AdvisedCandidate {
            id: id.to_owned(),
            target: format!("sim:{id}"),
            parameters: AdvisedParameters::default(),
            instance: None,
            is_current: false,
            verdict: AdviseVerdict { verdict, why: String::new() },
            predicted: PredictionSet::default(),
            is_replayed: false,
            price,
            breaks: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_cheapest_that_meets_the_objective_is_first() {
        use CriterionVerdict::{Met, Missed};
        let open = || CriterionVerdict::inconclusive("x", None);
        let mut advice = Advice {
            observed: AdvisedLoad::default(),
            source: ObjectiveSource::Given,
            objective: Vec::new(),
            growth: 1.0,
            current: None,
            order: AdviceOrder::Price,
            candidates: vec![
                candidate("missed", Missed, Some(("USD", 1.0, true))),
                candidate("free", Met, None),
                candidate("dear", Met, Some(("USD", 9.0, true))),
                candidate("partly", Met, Some(("USD", 2.0, false))),
                candidate("euro", Met, Some(("EUR", 2.0, true))),
                candidate("cheap", Met, Some(("USD", 3.0, true))),
                candidate("open", open(), Some(("USD", 1.0, true))),
            ],
            unsuitable: Vec::new(),
            left_out: 0,
            provider: String::new(),
            notes: Vec::new(),
        };
        advice.rank("USD");
        let ids: Vec<&str> = advice.candidates.iter().map(|candidate| candidate.id.as_str()).collect();
        assert_eq!(ids, ["cheap", "dear", "euro", "partly", "free", "open", "missed"]);
        assert_eq!(advice.answer().map(|candidate| candidate.id.as_str()), Some("cheap"));
        advice.order = AdviceOrder::Headroom;
        for (id, met_at) in [("dear", 3.0), ("partly", 2.0), ("missed", 9.0)] {
            let found = advice.candidates.iter_mut().find(|candidate| candidate.id == id).unwrap();
            found.breaks = Some(GrowthBreak { growth: None, met_at, why: String::new() });
        }
        advice.rank("USD");
        let ids: Vec<&str> = advice.candidates.iter().map(|candidate| candidate.id.as_str()).collect();
        assert_eq!(ids, ["dear", "partly", "cheap", "euro", "free", "open", "missed"]);
        advice.candidates.drain(..5);
        assert!(advice.answer().is_none());
    }

    fn prediction(p99: Option<u64>, served_share: f64) -> Prediction {
        let lat_ns = LatencySummary {
            samples: 9,
            mean: p99.map(|ns| ns as f64 / 4.0),
            p99,
            ..LatencySummary::default()
        };
        let read = Some(OpSummary { ios: 9, iops: 3.0, lat_ns, ..OpSummary::default() });
        let summary = TestSummary { total: read.clone(), read, ..TestSummary::default() };
        Prediction { summary, served_share, ..Prediction::default() }
    }

    fn set(all: impl IntoIterator<Item = Prediction>) -> PredictionSet {
        PredictionSet { all: all.into_iter().collect() }
    }

    fn given(text: &str) -> AdviseObjective {
        AdviseObjective::given(&[Criterion::parse(text).unwrap()])
    }

    #[test]
    fn every_way_of_arrival_has_to_meet_the_objective() {
        let objective = given("read.lat_ns.p99<5ms");
        let (good, bad) = (prediction(Some(4_000_000), 1.0), prediction(Some(6_000_000), 1.0));
        let verdict = |all: Vec<Prediction>| objective.verdict(&set(all), None);
        assert!(verdict(vec![good.clone(), good.clone()]).verdict.is_met());
        let missed = verdict(vec![bad.clone(), bad.clone()]);
        assert!(missed.verdict.is_missed());
        assert_eq!(missed.why, "read.lat_ns.p99 6.00 ms (objective < 5.00 ms)");
        let open = verdict(vec![good.clone(), bad]);
        assert!(open.verdict.is_inconclusive() && open.verdict.reason().unwrap().1.is_some(), "{open:?}");
        assert!(verdict(vec![prediction(None, 1.0)]).verdict.is_inconclusive());
        assert!(verdict(vec![prediction(Some(1), 0.5)]).why.starts_with("serves 50 % of the rate"));
        // A part of a percent is missed at the end of a recording; of a load without end it piles up.
        let (kept_up, behind) = (prediction(Some(1), 1.0), prediction(Some(1), 0.997));
        assert!(objective.verdict(&set([behind.clone()]), None).verdict.is_met());
        let endless = AdviseObjective { is_endless: true, ..objective.clone() };
        assert!(endless.verdict(&set([kept_up]), None).verdict.is_met());
        let missed = endless.verdict(&set([Prediction { backlog_ns: 60_000_000_000, ..behind }]), None);
        assert!(missed.verdict.is_missed());
        assert_eq!(missed.why, "falls behind: its queue grows without bound, and is 1 min long at the end");
        // No writes: nothing to miss.
        assert!(given("write.lat_ns.p99<5ms").verdict(&set([good]), None).verdict.is_met());
    }

    #[test]
    fn the_present_volume_is_compared_way_by_way() {
        let objective = AdviseObjective::current();
        let now = set([prediction(Some(1_000_000), 1.0), prediction(Some(50_000_000), 1.0)]);
        let of = |even, burst| {
            let found = set([prediction(Some(even), 1.0), prediction(Some(burst), 1.0)]);
            objective.verdict(&found, Some(&now)).verdict
        };
        assert!(of(1_090_000, 54_000_000).is_met());
        assert!(of(1_090_000, 60_000_000).is_inconclusive());
        assert!(of(1_200_000, 60_000_000).is_missed());
    }

    #[test]
    fn observed_latencies_may_grow_by_a_tenth() {
        let p99 = Metric::parse("read.lat_ns.p99").unwrap();
        let objective = AdviseObjective::observed([(p99, 1_000_000.0)]);
        assert_eq!(objective.latency_limits()[0].bound, 1_100_000.0);
        assert!(objective.verdict(&set([prediction(Some(1_050_000), 1.0)]), None).verdict.is_met());
        assert_eq!(AdviseObjective::observed([]).source, ObjectiveSource::Rate);
        assert_eq!(objective.texts(), ["read.lat_ns.p99 <= 1.10 ms"]);
    }
}
