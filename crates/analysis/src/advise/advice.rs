//! The answer for a load: what it is, what each candidate would give it, and which one to take.

use fathom_model::MonthlyCost;
use fathom_predict::{LoadPace, PredictionSet};
use fathom_stats::LatencySummary;
use serde::Serialize;

use super::objective::{AdviseVerdict, ObjectiveSource};

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

    /// Orders the candidates: those that meet the objective, then those that may, each by the price in `currency`; unknown
    /// prices last.
    pub fn rank(&mut self, currency: &str) {
        self.candidates.sort_by(|one, other| {
            let key = |candidate: &AdvisedCandidate| candidate.rank(currency);
            let (one_key, other_key) = (key(one), key(other));
            (one_key.0, one_key.1)
                .cmp(&(other_key.0, other_key.1))
                .then(one_key.2.total_cmp(&other_key.2))
                .then_with(|| other.is_current.cmp(&one.is_current))
                .then_with(|| one.target.cmp(&other.target))
        });
    }
}

impl AdvisedCandidate {
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

#[cfg(test)]
mod tests {
    use fathom_model::{CostPart, Price};

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
        advice.candidates.drain(..5);
        assert!(advice.answer().is_none());
    }
}
