//! The conclusion in words, five sentences at most: who leads and by how much, because of which limit and for how long, for
//! which uses, at what price, and what would reverse it.

use fathom_model::{Nanos, units};

use super::figure::ratio_text;
use super::pairs::Pair;
use super::ranking::Ranked;
use super::ratio::RatioVerdict;
use super::source::{LABELS, SourceKind, VolumePrice};
use super::volumes::{UseRow, UseVerdict, VolumeSummary};
use crate::conclusions::Suitability;
use crate::say::count;

/// What the sentences rest on.
pub(super) struct Evidence<'a> {
    pub(super) volumes: &'a [VolumeSummary],
    pub(super) ranking: &'a [Ranked],
    pub(super) pairs: &'a [Pair],
    pub(super) uses: &'a [UseRow],
    pub(super) base: usize,
    /// Some source has a test; surfaces alone have none.
    pub(super) has_tests: bool,
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

    fn ranked(&self) -> impl Iterator<Item = &Ranked> {
        self.ranking.iter().filter(|one| one.rank.is_some())
    }

    /// The first by the rates that can be held, and the next that it is ahead of.
    fn leader(&self) -> Option<String> {
        let first = self.ranked().next().filter(|_| self.has_tests)?;
        let stalled = self.stalled();
        let Some(next) = self.ranked().find(|one| one.rank != first.rank) else {
            return Some(format!("{}{stalled}.", self.tie()));
        };
        let with_first: Vec<String> =
            self.ranked().filter(|one| one.rank == first.rank).map(|one| self.name(one.source)).collect();
        let by = ratio_text(first.score? / next.score?);
        let (verb, has) = if with_first.len() > 1 { ("lead", "have") } else { ("leads", "has") };
        let rates = if first.rates == 1 { "1 rate".to_owned() } else { format!("{} rates", first.rates) };
        let mark = match (first.ephemeral, self.ranked().find(|one| !one.ephemeral)) {
            (true, Some(kept)) => format!(
                "; it is ephemeral, and of the volumes that outlive their instance {} leads",
                self.name(kept.source)
            ),
            (true, None) => "; it is ephemeral: its data are lost with its instance".to_owned(),
            (false, _) => String::new(),
        };
        let verdicts = self.verdicts_between(first.source, next.source);
        let (sure, is_open) =
            (self.certainty((first.source, next.source), &verdicts), is_undecided(&verdicts));
        let (what, measured) = match (first.is_sustained(), next.is_sustained()) {
            (true, true) => ("sustained rate", String::new()),
            (false, true) => ("sustained rate", self.measured_for(first)),
            (false, false) if has_known_burst(next) => ("sustained rate", self.measured_for(first)),
            _ => ("measured rate", String::new()),
        };
        let (first_names, next) = (list(&with_first), self.name(next.source));
        let lead = match is_open {
            true => format!("No order is shown: {first_names} {has} {by} times the {what} of {next}"),
            false => format!("{first_names} {verb} with {by} times the {what} of {next}"),
        };
        Some(format!("{lead} (geometric mean of {rates}, {sure}){measured}{mark}{stalled}."))
    }

    /// `; A was measured for 24 s, and a burst is not ruled out`.
    fn measured_for(&self, one: &Ranked) -> String {
        let longest = self.volume(one.source).map_or(0, |volume| volume.longest_test_ns);
        let time =
            if longest > 0 { format!(" for {}", units::duration(Nanos(longest))) } else { String::new() };
        format!("; {} was measured{time}, and its burst is not ruled out", one.source)
    }

    /// `; E stalled in rand-read-32 and is not ranked`.
    fn stalled(&self) -> String {
        let stalled = self.ranking.iter().filter(|one| !one.stalled.is_empty());
        stalled
            .map(|one| {
                format!(
                    "; {} stalled in {} and is not ranked",
                    self.name(one.source),
                    one.stalled.join(" and ")
                )
            })
            .collect()
    }

    fn tie(&self) -> String {
        let all: Vec<String> = self.ranked().map(|one| self.name(one.source)).collect();
        if all.len() < 2 {
            return "No order: the sources have too few tests in common".to_owned();
        }
        let verdicts = self.rate_verdicts(None);
        match verdicts.iter().all(|verdict| *verdict == RatioVerdict::Equivalent) && !verdicts.is_empty() {
            true => format!("{} are equivalent in IOPS", list(&all)),
            false => format!("{} do not differ in IOPS on average ({})", list(&all), sure_text(&verdicts)),
        }
    }

    /// The verdicts on rates: of the pairs of `source` with the base, or of all.
    fn rate_verdicts(&self, source: Option<&str>) -> Vec<RatioVerdict> {
        let is_meant =
            |pair: &&Pair| pair.figure.is_rate() && source.is_none_or(|source| pair.source_b == source);
        self.pairs.iter().filter(is_meant).filter_map(|pair| pair.verdict).collect()
    }

    /// The verdicts on rates that tell the order of two sources, as far as the pairs with the base do.
    fn verdicts_between(&self, one: &str, other: &str) -> Vec<RatioVerdict> {
        let base = LABELS[self.base];
        match (one == base, other == base) {
            (true, _) => self.rate_verdicts(Some(other)),
            (_, true) => self.rate_verdicts(Some(one)),
            _ => [self.rate_verdicts(Some(one)), self.rate_verdicts(Some(other))].concat(),
        }
    }

    /// How sure the order of two sources is.
    fn certainty(&self, (one, other): (&str, &str), verdicts: &[RatioVerdict]) -> String {
        let simulated =
            |source: &str| self.volume(source).is_some_and(|volume| volume.kind == SourceKind::Simulated);
        if simulated(one) && simulated(other) && verdicts.contains(&RatioVerdict::Single) {
            return "both simulated".to_owned();
        }
        sure_text(verdicts)
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
        let cheapest = priced
            .iter()
            .filter(|(volume, _)| is_one_currency && volume.price_per_1000_iops.is_some())
            .min_by(|one, other| {
                let per = |volume: &VolumeSummary| volume.price_per_1000_iops.unwrap_or(f64::INFINITY);
                per(one.0).total_cmp(&per(other.0))
            })?;
        Some(format!("The cheapest sustained IOPS per month: {}.", text(cheapest)))
    }

    /// The nearest sources whose order is another one while bursts last.
    fn turned(&self) -> Option<String> {
        let ranked: Vec<(&Ranked, f64)> =
            self.ranked().filter_map(|one| Some((one, one.measured_score?))).collect();
        let (ahead, behind) = (0..ranked.len())
            .flat_map(|at| ranked[at + 1..].iter().map(move |behind| (at, behind)))
            .map(|(at, behind)| (ranked[at], *behind))
            .find(|(ahead, behind)| ahead.0.rank != behind.0.rank && behind.1 > ahead.1)?;
        let burst = self.volume(behind.0.source).and_then(|volume| volume.burst.as_ref()?.lasts_ns);
        let time = burst.map(|ns| format!(", for {}", units::duration(Nanos(ns)))).unwrap_or_default();
        Some(format!(
            "While burst credits last the order reverses{time}: {} then reaches {} times the rate of {}.",
            self.name(behind.0.source),
            ratio_text(behind.1 / ahead.1),
            self.name(ahead.0.source)
        ))
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

/// True where a burst that is known makes the measured rates others than those that count.
fn has_known_burst(one: &Ranked) -> bool {
    one.score != one.measured_score
}

/// Repeated runs show no difference in any rate.
fn is_undecided(verdicts: &[RatioVerdict]) -> bool {
    let is_open =
        |verdict: &RatioVerdict| matches!(verdict, RatioVerdict::Inconclusive | RatioVerdict::Equivalent);
    !verdicts.is_empty() && verdicts.iter().all(is_open)
}

/// How sure verdicts are in one phrase.
fn sure_text(verdicts: &[RatioVerdict]) -> String {
    let of = |verdict: RatioVerdict| verdicts.iter().filter(|one| **one == verdict).count();
    let decided = of(RatioVerdict::Better) + of(RatioVerdict::Worse) + of(RatioVerdict::Equivalent);
    match (of(RatioVerdict::Single), decided) {
        (0, decided) if decided == verdicts.len() && decided > 0 => {
            "each decided by repeated runs".to_owned()
        }
        (0, decided) => format!("{decided} of {} decided by repeated runs", verdicts.len()),
        _ => "one run each".to_owned(),
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
