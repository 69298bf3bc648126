//! The conclusion in words, five sentences at most: who leads and by how much, because of which limit and for how long, for
//! which uses, at what price, and what would reverse it.

mod order;

use fathom_model::{Nanos, units};

use super::figure::Deltas;
use super::pairs::Pair;
use super::ranking::{Ranked, is_behind};
use super::ratio::RatioVerdict;
use super::rows::ComparedRow;
use super::source::{ComparedSource, LABELS, SourceKind, VolumePrice};
use super::volumes::{UseRow, UseVerdict, VolumeSummary};
use crate::conclusions::Suitability;
use crate::say::count;

/// What the sentences rest on.
pub(super) struct Evidence<'a> {
    pub(super) sources: &'a [ComparedSource],
    pub(super) rows: &'a [ComparedRow],
    pub(super) deltas: Deltas,
    pub(super) volumes: &'a [VolumeSummary],
    pub(super) ranking: &'a [Ranked],
    pub(super) pairs: &'a [Pair],
    pub(super) uses: &'a [UseRow],
    pub(super) base: usize,
}

/// Most sentences.
pub(super) const MOST_SENTENCES: usize = 5;

/// Most further runs that a sentence advises.
const MOST_ADVISED: u32 = 100;

/// Volumes that a sentence names.
const MOST_NAMED: usize = 3;
/// A source of a longer name goes by its letter.
const LONGEST_NAME: usize = 48;

pub(super) fn conclusion(evidence: &Evidence<'_>) -> Vec<String> {
    let sentences =
        [evidence.leader(), evidence.limits(), evidence.uses(), evidence.prices(), evidence.reversal()];
    sentences.into_iter().flatten().collect()
}

impl Evidence<'_> {
    fn volume(&self, source: &str) -> Option<&VolumeSummary> {
        self.volumes.iter().find(|volume| volume.source == source)
    }

    /// `B (aws-gp3)`.
    fn name(&self, source: &str) -> String {
        let volume = self.volume(source);
        let name = volume.map(|volume| volume.volume_type.as_ref().unwrap_or(&volume.name));
        let name = name.filter(|name| name.chars().count() <= LONGEST_NAME);
        name.map_or_else(|| source.to_owned(), |name| format!("{source} ({name})"))
    }

    /// The bursts with their ends, else the limits of sustained rates.
    fn limits(&self) -> Option<String> {
        let bursts = self.volumes.iter().filter_map(|volume| {
            let burst = volume.burst.as_ref()?;
            let then = burst.then_iops.map_or_else(
                || ", then an unknown rate".to_owned(),
                |iops| format!(", then {} IOPS", count(iops)),
            );
            let lasts = match burst.lasts_ns {
                Some(ns) => format!("for {}{then}", units::duration(Nanos(ns))),
                None => format!("as a billed burst{then}"),
            };
            Some(format!("{} holds {} IOPS ({}) {lasts}", volume.source, count(burst.iops), burst.test))
        });
        let bursts: Vec<String> = bursts.collect();
        if !bursts.is_empty() {
            let more = bursts.len().saturating_sub(MOST_NAMED);
            let shown = bursts[..bursts.len() - more].join("; ");
            let others = if more > 0 { format!("; {more} more run on burst credits") } else { String::new() };
            return Some(format!("On burst credits {shown}{others}."));
        }
        let limits = self.volumes.iter().filter_map(|volume| {
            let iops = count(volume.sustained_iops?);
            let by = volume.limited_by.map(|by| format!(", limited by {by}")).unwrap_or_default();
            Some(format!("{} sustains {iops} IOPS{by}", volume.source))
        });
        let limits: Vec<String> = limits.collect();
        (!limits.is_empty() && limits.len() <= MOST_NAMED).then(|| format!("{}.", limits.join("; ")))
    }

    /// The uses that some of the sources serve and others do not.
    fn uses(&self) -> Option<String> {
        let benches: Vec<usize> = (0..self.volumes.len())
            .filter(|at| self.uses.iter().any(|row| row.verdicts[*at].is_some()))
            .collect();
        if benches.len() < 2 {
            return None;
        }
        let mut groups: Vec<UseGroup<'_>> = Vec::new();
        for row in self.uses {
            let of = |outcome: UseOutcome| {
                let sources = benches.iter().filter(|at| serves_use(row.verdicts[**at].as_ref()) == outcome);
                sources.map(|at| LABELS[*at]).collect::<Vec<&str>>()
            };
            let (by, open) = (of(UseOutcome::Serves), of(UseOutcome::Open));
            if by.is_empty() || by.len() == benches.len() {
                continue;
            }
            match groups.iter_mut().find(|group| group.by == by && group.open == open) {
                Some(group) => group.purposes.push(row.purpose),
                None => groups.push(UseGroup { by, open, purposes: vec![row.purpose] }),
            }
        }
        if groups.is_empty() {
            return Some("All of them suit the same uses, as far as that is decided.".to_owned());
        }
        let groups: Vec<String> = groups.iter().map(UseGroup::text).collect();
        Some(format!("At least marginal for a use, and not only in a burst: {}.", groups.join("; ")))
    }

    fn prices(&self) -> Option<String> {
        let priced: Vec<(&VolumeSummary, &VolumePrice)> =
            self.volumes.iter().filter_map(|volume| Some((volume, volume.price.as_ref()?))).collect();
        let text = |(volume, price): &(&VolumeSummary, &VolumePrice)| {
            let per = volume.price_per_1000_iops.map(|per| format!(", {per:.2} per 1,000 sustained IOPS"));
            let without = match price.excluded.is_empty() {
                true => String::new(),
                false => format!(", without {}", price.excluded.join(" and ")),
            };
            format!(
                "{} {:.2} {}{}{without}",
                volume.source,
                price.per_month,
                price.currency,
                per.unwrap_or_default()
            )
        };
        if priced.len() <= MOST_NAMED {
            let mut texts: Vec<String> = priced.iter().map(text).collect();
            let unknown = self.volumes.iter().filter(|volume| volume.price.is_none());
            let unknown: Vec<String> = unknown.map(|volume| volume.source.to_owned()).collect();
            if !texts.is_empty() && !unknown.is_empty() && self.volumes.len() <= MOST_NAMED {
                texts.push(format!("{} unknown", list(&unknown)));
            }
            return (!texts.is_empty()).then(|| format!("A month costs: {}.", texts.join("; ")));
        }
        let is_one_currency = priced.windows(2).all(|pair| pair[0].1.currency == pair[1].1.currency);
        let mut by_price: Vec<(f64, String)> = priced
            .iter()
            .filter(|_| is_one_currency)
            .filter_map(|one| Some((one.0.price_per_1000_iops?, text(one))))
            .collect();
        by_price.sort_by(|one, other| one.0.total_cmp(&other.0));
        // A price per IOPS differs by no less than the rate that it rests on.
        let least = by_price.first()?.0;
        let cheapest = by_price.into_iter().filter(|(per, _)| !is_behind(least, *per, self.deltas.rate));
        let cheapest: Vec<String> = cheapest.map(|(_, text)| text).take(MOST_NAMED).collect();
        Some(format!("The cheapest sustained IOPS per month: {}.", cheapest.join("; ")))
    }

    /// What would turn the order round.
    fn reversal(&self) -> Option<String> {
        if let Some(turned) = self.turned() {
            return Some(turned);
        }
        let is_known = |source: &str| {
            self.volume(source)
                .is_some_and(|volume| volume.sustained_iops.is_some() || volume.burst.is_some())
        };
        let unknown: Vec<&str> =
            self.ranked().map(|one| one.source).filter(|source| !is_known(source)).collect();
        let all_simulated = self.volumes.iter().all(|volume| volume.kind == SourceKind::Simulated);
        let open = self.pairs.iter().filter(|pair| pair.figure.is_rate());
        let more = open.clone().filter_map(|pair| pair.more_runs).max();
        let is_single = open.clone().any(|pair| pair.verdict == Some(RatioVerdict::Single));
        match (is_single && !all_simulated, more) {
            (true, _) if !unknown.is_empty() => Some(format!(
                "A burst of {} is not ruled out, and one run each decides no small difference: repeat the runs, alternating, and \
                 longer.",
                list(&unknown.iter().map(|source| (*source).to_owned()).collect::<Vec<_>>())
            )),
            (true, _) => {
                Some("One run each decides no small difference: repeat the runs, alternating.".to_owned())
            }
            (false, Some(more)) if !all_simulated && more > MOST_ADVISED => Some(format!(
                "Some rates are undecided: they differ by less than runs vary, and {MOST_ADVISED} more runs of each would not decide \
                 them. Longer runs on a quieter machine vary less."
            )),
            (false, Some(more)) if !all_simulated => {
                let runs = if more == 1 { "1 more run".to_owned() } else { format!("{more} more runs") };
                Some(format!("Some rates are undecided: about {runs} of each would decide them."))
            }
            _ => None,
        }
    }
}

/// The uses for which the same sources are known to serve.
struct UseGroup<'a> {
    by: Vec<&'a str>,
    /// Those of which it is not known.
    open: Vec<&'a str>,
    purposes: Vec<&'a str>,
}

impl UseGroup<'_> {
    fn text(&self) -> String {
        let listed = |names: &[&str]| list(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let text = format!("{} for {}", listed(&self.by), listed(&self.purposes));
        match self.open.len() {
            0 => format!("only {text}"),
            1 => format!("{text}, where {} is inconclusive", listed(&self.open)),
            _ => format!("{text}, where {} are inconclusive", listed(&self.open)),
        }
    }
}

/// Whether a source serves a use for as long as it likes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UseOutcome {
    Serves,
    Fails,
    Open,
}

fn serves_use(verdict: Option<&UseVerdict>) -> UseOutcome {
    match verdict {
        Some(one) if one.verdict == Suitability::No || one.sustained == Suitability::No => UseOutcome::Fails,
        Some(one) if matches!(one.verdict, Suitability::Yes | Suitability::Marginal) => UseOutcome::Serves,
        _ => UseOutcome::Open,
    }
}

/// `A`, `A and B`, `A, B and C`.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::source::SourceRun;
    use crate::compare::{CompareSettings, ComparedSource, compare};
    use crate::fixture::{TestLoad, record};
    use fathom_record::{BurstRate, OwnRates, PublishedRates};

    /// The first sentence on two sources of runs with these IOPS.
    fn leader(rates: [&[f64]; 2]) -> String {
        let sources = rates.map(|rates| {
            let run = |iops: &f64| SourceRun {
                origin: "a run".to_owned(),
                record: record(&[TestLoad { iops: *iops, ..TestLoad::default() }]),
            };
            ComparedSource { runs: rates.iter().map(run).collect(), ..ComparedSource::default() }
        });
        compare(&sources, &CompareSettings::default()).unwrap().conclusion.remove(0)
    }

    #[test]
    fn an_order_that_repeated_runs_do_not_show_is_none() {
        let open = leader([&[900.0, 1300.0, 1000.0], &[1500.0, 1000.0, 1400.0]]);
        assert!(open.starts_with("No order is shown: B ()") && open.contains(" has 1.2"), "{open}");
        assert!(open.contains("0 of 1 decided by repeated runs"), "{open}");
        let decided = leader([&[1000.0, 1010.0, 1005.0], &[1500.0, 1510.0, 1505.0]]);
        assert!(decided.starts_with("B () leads with 1.5"), "{decided}");
        let single = leader([&[1000.0], &[1500.0]]);
        assert!(single.starts_with("B () leads with 1.5") && single.contains("one run each"), "{single}");
    }

    fn simulated(own: OwnRates, load: &TestLoad) -> ComparedSource {
        let mut record = record(std::slice::from_ref(load));
        record.tests[0].published = Some(PublishedRates { own: Some(own), ..PublishedRates::default() });
        let runs = vec![SourceRun { origin: "a run".to_owned(), record }];
        ComparedSource { runs, kind: SourceKind::Simulated, ..ComparedSource::default() }
    }

    /// How long the rates last: A has 3,000 IOPS until its credits are exhausted, B `iops` indefinitely.
    fn while_bursts_last(iops: f64) -> String {
        let burst = BurstRate { iops: 3000.0, lasts_ns: Some(60_000_000_000), ..BurstRate::default() };
        let own = |sustained: f64, burst| OwnRates {
            volume: "v".to_owned(),
            sustained_iops: Some(sustained),
            burst,
            ..OwnRates::default()
        };
        let load = |iops| TestLoad { depth: 64, iops, ..TestLoad::default() };
        let sources =
            [simulated(own(150.0, Some(burst)), &load(3000.0)), simulated(own(iops, None), &load(iops))];
        let all = compare(&sources, &CompareSettings::default()).unwrap().conclusion;
        all.into_iter().find(|sentence| sentence.starts_with("While")).unwrap_or_default()
    }

    #[test]
    fn a_reversal_is_stated_only_if_it_counts() {
        let reversed = while_bursts_last(2000.0);
        assert!(reversed.contains("reverses, for 1 min: A () then reaches 1.50 times"), "{reversed}");
        for iops in [2970.0, 3000.0, 3030.0] {
            let equal = while_bursts_last(iops);
            assert_eq!(
                equal,
                "While burst credits last, for 1 min, the rates of B and A differ by no more than 3 %."
            );
        }
        assert_eq!(while_bursts_last(4000.0), "");
    }

    #[test]
    fn prices_per_iops_that_differ_by_less_than_counts_are_cheapest_together() {
        let priced = |iops: f64| {
            let own = OwnRates { sustained_iops: Some(iops), ..OwnRates::default() };
            let mut source = simulated(own, &TestLoad { depth: 64, iops, ..TestLoad::default() });
            source.volume.price =
                Some(VolumePrice { per_month: 10.0, currency: "USD".to_owned(), ..VolumePrice::default() });
            source
        };
        let prices = |rates: [f64; 4]| {
            let all = compare(&rates.map(priced), &CompareSettings::default()).unwrap().conclusion;
            all.into_iter().find(|sentence| sentence.starts_with("The cheapest")).unwrap()
        };
        let alike = prices([1000.0, 2000.0, 2020.0, 500.0]);
        assert!(
            alike.contains("C 10.00 USD, 4.95 per 1,000 sustained IOPS; B 10.00 USD, 5.00 per"),
            "{alike}"
        );
        let alone = prices([1000.0, 2000.0, 2200.0, 500.0]);
        assert!(alone.contains("C 10.00 USD") && !alone.contains("B 10.00 USD"), "{alone}");
    }

    /// The first sentence on two sources with these IOPS of one I/O at a time, and of 64.
    fn with_latency(rates: [[f64; 2]; 2]) -> String {
        let sources = rates.map(|[single, deep]| {
            let single = TestLoad { id: "lat", iops: single, ..TestLoad::default() };
            // Most of the rates are those of deep queues.
            let deep =
                ["s", "t", "u"].map(|id| TestLoad { id, iops: deep, depth: 64, ..TestLoad::default() });
            let record = record(&[&[single][..], &deep].concat());
            let runs = vec![SourceRun { origin: "a run".to_owned(), record }];
            ComparedSource { runs, ..ComparedSource::default() }
        });
        compare(&sources, &CompareSettings::default()).unwrap().conclusion.remove(0)
    }

    #[test]
    fn the_leader_is_told_with_its_latency() {
        let lower = with_latency([[1000.0, 3000.0], [4000.0, 9000.0]]);
        assert!(lower.starts_with("B () leads with 3.22 times"), "{lower}");
        assert!(lower.contains("; the mean latency of B at QD 1 is 0.25 times that of A (lat)"), "{lower}");
        let higher = with_latency([[2000.0, 3000.0], [1000.0, 9000.0]]);
        assert!(
            higher.contains(", but the mean latency of B at QD 1 is 2.00 times that of A (lat)"),
            "{higher}"
        );
        let same = with_latency([[2000.0, 3000.0], [2000.0, 9000.0]]);
        assert!(same.starts_with("B () leads") && !same.contains("latency"), "{same}");
    }

    /// A measured rate of a burst does not say whether the rates afterwards differ.
    #[test]
    fn an_order_by_held_rates_is_decided_by_held_rates() {
        let fallen = [vec![20.0; 30], vec![1.0; 90]].concat();
        let source = |base: f64| {
            let load = |iops| TestLoad { depth: 64, iops, seconds: fallen.clone(), ..TestLoad::default() };
            let run =
                |noise: f64| SourceRun { origin: "a run".to_owned(), record: record(&[load(base * noise)]) };
            ComparedSource { runs: [1.0, 1.001, 0.999].map(run).to_vec(), ..ComparedSource::default() }
        };
        let steady = TestLoad { depth: 64, iops: 575.0, seconds: vec![1.0; 120], ..TestLoad::default() };
        let run = |iops: f64| SourceRun {
            origin: "a run".to_owned(),
            record: record(&[TestLoad { iops, ..steady.clone() }]),
        };
        let steady =
            ComparedSource { runs: [575.0, 575.5, 574.5].map(run).to_vec(), ..ComparedSource::default() };
        let sources = [source(100.0), steady];
        let found = compare(&sources, &CompareSettings::default()).unwrap();
        assert_eq!(found.pairs[0].verdict, Some(RatioVerdict::Equivalent), "the means are alike");
        let leader = &found.conclusion[0];
        assert!(leader.starts_with("B () leads with 5.75 times the sustained rate of A ()"), "{leader}");
        assert!(leader.contains("each decided by repeated runs"), "{leader}");
    }

    #[test]
    fn a_use_is_served_by_one_alone_only_where_the_others_fail() {
        let group =
            |open: Vec<&'static str>| UseGroup { by: vec!["A"], open, purposes: vec!["OLTP", "etcd"] };
        assert_eq!(group(vec![]).text(), "only A for OLTP and etcd");
        assert_eq!(group(vec!["B"]).text(), "A for OLTP and etcd, where B is inconclusive");
        assert_eq!(group(vec!["B", "C"]).text(), "A for OLTP and etcd, where B and C are inconclusive");
        let verdict = |verdict, sustained| {
            Some(UseVerdict { verdict, sustained, text: String::new(), reason: String::new() })
        };
        let check =
            |one: Option<UseVerdict>, expected| assert!(serves_use(one.as_ref()) == expected, "{one:?}");
        check(verdict(Suitability::Yes, Suitability::Inconclusive), UseOutcome::Serves);
        check(verdict(Suitability::Marginal, Suitability::Marginal), UseOutcome::Serves);
        check(verdict(Suitability::Yes, Suitability::No), UseOutcome::Fails);
        check(verdict(Suitability::No, Suitability::No), UseOutcome::Fails);
        check(verdict(Suitability::Inconclusive, Suitability::Inconclusive), UseOutcome::Open);
        check(None, UseOutcome::Open);
    }
}
