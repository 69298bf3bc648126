//! The conclusion in words, five sentences at most: who leads and by how much, because of which limit and for how long, for
//! which uses, at what price, and what would reverse it.

use fathom_model::{Nanos, units};

use super::figure::ratio_text;
use super::pairs::Pair;
use super::ranking::Ranked;
use super::ratio::RatioVerdict;
use super::source::{LABELS, SourceKind, VolumePrice};
use super::volumes::{UseRow, VolumeSummary};
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
        let verb = if with_first.len() > 1 { "lead" } else { "leads" };
        let rates = if first.rates == 1 { "1 rate".to_owned() } else { format!("{} rates", first.rates) };
        let mark = match (first.ephemeral, self.ranked().find(|one| !one.ephemeral)) {
            (true, Some(kept)) => format!(
                "; it is ephemeral, and of the volumes that outlive their instance {} leads",
                self.name(kept.source)
            ),
            (true, None) => "; it is ephemeral: its data are lost with its instance".to_owned(),
            (false, _) => String::new(),
        };
        let sure = self.certainty(first.source, next.source);
        let (what, measured) = match (first.is_sustained(), next.is_sustained()) {
            (true, true) => ("sustained rate", String::new()),
            (false, true) => ("sustained rate", self.measured_for(first)),
            (false, false) if has_known_burst(next) => ("sustained rate", self.measured_for(first)),
            _ => ("measured rate", String::new()),
        };
        Some(format!(
            "{} {verb} with {by} times the {what} of {} (geometric mean of {rates}, {sure}){measured}{mark}{stalled}.",
            list(&with_first),
            self.name(next.source)
        ))
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

    /// How sure the order of two sources is, as far as the pairs with the base tell.
    fn certainty(&self, one: &str, other: &str) -> String {
        let base = LABELS[self.base];
        let simulated =
            |source: &str| self.volume(source).is_some_and(|volume| volume.kind == SourceKind::Simulated);
        let verdicts = match (one == base, other == base) {
            (true, _) => self.rate_verdicts(Some(other)),
            (_, true) => self.rate_verdicts(Some(one)),
            _ => [self.rate_verdicts(Some(one)), self.rate_verdicts(Some(other))].concat(),
        };
        if simulated(one) && simulated(other) && verdicts.contains(&RatioVerdict::Single) {
            return "both simulated".to_owned();
        }
        sure_text(&verdicts)
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
        let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
        for row in self.uses {
            let serves = |at: &&usize| {
                row.verdicts[**at].as_ref().is_some_and(|one| {
                    matches!(one.verdict, Suitability::Yes | Suitability::Marginal)
                        && one.sustained != Suitability::No
                })
            };
            let by: Vec<&str> = benches.iter().filter(serves).map(|at| LABELS[*at]).collect();
            if by.is_empty() || by.len() == benches.len() {
                continue;
            }
            match groups.iter_mut().find(|(sources, _)| *sources == by) {
                Some((_, purposes)) => purposes.push(row.purpose),
                None => groups.push((by, vec![row.purpose])),
            }
        }
        if groups.is_empty() {
            return Some("All of them suit the same uses, as far as that is decided.".to_owned());
        }
        let group = |(by, purposes): &(Vec<&str>, Vec<&str>)| {
            let by: Vec<String> = by.iter().map(|source| (*source).to_owned()).collect();
            let purposes: Vec<String> = purposes.iter().map(|purpose| (*purpose).to_owned()).collect();
            format!("only {} for {}", list(&by), list(&purposes))
        };
        let groups: Vec<String> = groups.iter().map(group).collect();
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
            (false, Some(more)) if !all_simulated => {
                let runs = if more == 1 { "1 more run".to_owned() } else { format!("{more} more runs") };
                Some(format!("Some rates are undecided: about {runs} of each would decide them."))
            }
            _ => None,
        }
    }
}

/// True where a burst that is known makes the measured rates others than those that count.
fn has_known_burst(one: &Ranked) -> bool {
    one.score != one.measured_score
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
