//! The conclusion in words, five sentences at most: who leads and by how much, because of which limit and for how long, for
//! which uses, at what price, and what would reverse it.

use std::borrow::Borrow;

use fathom_model::{Nanos, units};
use serde::Serialize;

use super::VolumeComparison;
use super::figure::{Figure, ratio_text};
use super::pairs::{Pair, pair};
use super::ranking::{Basis, OrderedRates, Ranked, is_behind};
use super::ratio::RatioVerdict;
use super::rows::{ComparedRow, RowFigure, RunTest};
use super::source::{ComparedSource, LABELS, SourceKind, VolumePrice};
use super::volumes::{UseVerdict, VolumeSummary};
use crate::conclusions::Suitability;
use crate::criterion::{Metric, MetricDirection, MetricKind, Statistic};
use crate::say::count;
use crate::steady::rate_duration::Lasting;

/// What the sentences rest on.
pub(super) struct Evidence<'a> {
    pub(super) sources: &'a [ComparedSource],
    pub(super) rows: &'a [ComparedRow],
    /// All but the conclusion.
    pub(super) found: &'a VolumeComparison,
}

/// Most sentences.
pub(super) const MAX_SENTENCES: usize = 5;

/// How the sentence on uses begins.
pub const USES: &str = "Uses that are sustained: ";

/// Most further runs that a sentence advises.
const MAX_ADVISED: u32 = 100;

/// Volumes that a sentence names.
const MAX_NAMED: usize = 3;
/// A source of a longer name goes by its letter.
const LONGEST_NAME: usize = 48;

/// What a comparison says first, a sentence each.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComparisonVerdict {
    /// The first by the rates that can be held; `None` where there is no order.
    pub leader: Option<&'static str>,
    /// Its rate over that of the base.
    pub ratio: Option<f64>,
    /// Who leads and by how much, or why there is no order.
    pub result: Option<String>,
    /// The bursts with their ends, else the limits of sustained rates.
    pub limits: Option<String>,
    /// The uses that some of the sources serve and others do not.
    pub uses: Option<String>,
    /// What a month costs.
    pub cost: Option<String>,
    /// What would reverse the order.
    pub reversal: Option<String>,
}

impl ComparisonVerdict {
    /// The sentences in their order.
    pub fn sentences(&self) -> impl Iterator<Item = &String> {
        [&self.result, &self.limits, &self.uses, &self.cost, &self.reversal].into_iter().flatten()
    }
}

pub(super) fn verdict(evidence: &Evidence<'_>) -> ComparisonVerdict {
    let mut first = evidence.ranked().filter(|one| one.rank == Some(1));
    // Several at the first rank have no leader.
    let leader = first.next().filter(|_| first.next().is_none());
    ComparisonVerdict {
        leader: leader.map(|one| one.source),
        ratio: leader.and_then(|one| one.score),
        result: evidence.leader(),
        limits: evidence.limits(),
        uses: evidence.uses(),
        cost: evidence.prices(),
        reversal: evidence.reversal(),
    }
}

impl Evidence<'_> {
    fn volume(&self, source: &str) -> Option<&VolumeSummary> {
        self.found.sources.iter().find(|volume| volume.source == source)
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
        let bursts = self.found.sources.iter().filter_map(|volume| {
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
            let more = bursts.len().saturating_sub(MAX_NAMED);
            let shown = bursts[..bursts.len() - more].join("; ");
            let others = if more > 0 { format!("; {more} more run on burst credits") } else { String::new() };
            return Some(format!("On burst credits {shown}{others}."));
        }
        let limits = self.found.sources.iter().filter_map(|volume| {
            let iops = count(volume.sustained_iops?);
            let by = volume.limited_by.map(|by| format!(", limited by {by}")).unwrap_or_default();
            Some(format!("{} sustains {iops} IOPS{by}", volume.source))
        });
        let limits: Vec<String> = limits.collect();
        (!limits.is_empty() && limits.len() <= MAX_NAMED).then(|| format!("{}.", limits.join("; ")))
    }

    /// The uses that some of the sources serve and others do not.
    fn uses(&self) -> Option<String> {
        let benches: Vec<usize> = (0..self.found.sources.len())
            .filter(|at| self.found.uses.iter().any(|row| row.verdicts[*at].is_some()))
            .collect();
        if benches.len() < 2 {
            return None;
        }
        let mut groups: Vec<UseGroup<'_>> = Vec::new();
        for row in &self.found.uses {
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
            return Some("The same uses, as far as that is decided.".to_owned());
        }
        let groups: Vec<String> = groups.iter().map(UseGroup::text).collect();
        Some(format!("{USES}{}.", groups.join("; ")))
    }

    fn prices(&self) -> Option<String> {
        let priced: Vec<(&VolumeSummary, &VolumePrice)> =
            self.found.sources.iter().filter_map(|volume| Some((volume, volume.price.as_ref()?))).collect();
        let text = |(volume, price): &(&VolumeSummary, &VolumePrice)| {
            let rate = if volume.is_priced_by_reached() { "measured" } else { "sustained" };
            let per = volume.price_per_1000_iops.map(|per| format!(" ({per:.2} per 1,000 {rate} IOPS)"));
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
        if priced.len() <= MAX_NAMED {
            let mut texts: Vec<String> = priced.iter().map(text).collect();
            let unknown = self.found.sources.iter().filter(|volume| volume.price.is_none());
            let unknown: Vec<&str> = unknown.map(|volume| volume.source).collect();
            if !texts.is_empty() && !unknown.is_empty() && self.found.sources.len() <= MAX_NAMED {
                texts.push(format!("{} unknown", list(&unknown)));
            }
            return (!texts.is_empty()).then(|| format!("Monthly cost: {}.", texts.join("; ")));
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
        let cheapest =
            by_price.into_iter().filter(|(per, _)| !is_behind(least, *per, self.found.deltas.rate));
        let cheapest: Vec<String> = cheapest.map(|(_, text)| text).take(MAX_NAMED).collect();
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
        let all_simulated = self.found.sources.iter().all(|volume| volume.kind == SourceKind::Simulated);
        let open = self.found.pairs.iter().filter(|pair| pair.figure.is_rate());
        let more = open.clone().filter_map(|pair| pair.more_runs).max();
        let is_single = open.clone().any(|pair| pair.verdict == Some(RatioVerdict::Single));
        match (is_single && !all_simulated, more) {
            (true, _) if !unknown.is_empty() => Some(format!(
                "A burst of {} is not ruled out, and one run each decides no small difference: repeat the runs, alternating, and \
                 longer.",
                list(&unknown)
            )),
            (true, _) => {
                Some("One run each decides no small difference: repeat the runs, alternating.".to_owned())
            }
            (false, Some(more)) if !all_simulated && more > MAX_ADVISED => Some(format!(
                "Some rates are undecided: they differ by less than runs vary, and {MAX_ADVISED} more runs of each would not decide \
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
        let text = format!("{} for {}", list(&self.by), list(&self.purposes));
        match self.open.len() {
            0 => format!("only {text}"),
            _ => format!("{text}, undecided on {} without --profile NAME", list(&self.open)),
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
fn list<S: Borrow<str>>(names: &[S]) -> String {
    match names {
        [] => String::new(),
        [one] => one.borrow().to_owned(),
        [first @ .., last] => format!("{} and {}", first.join(", "), last.borrow()),
    }
}

const P99: Statistic = Statistic::Percentile(990_000);

/// A latency of two sources over the tests of one kind.
struct LatencyRatio {
    /// Geometric mean of the ratios of the first to the second.
    ratio: f64,
    tests: Vec<String>,
    /// Some of the tests ran on burst credits.
    is_burst: bool,
}

impl Evidence<'_> {
    fn ranked(&self) -> impl Iterator<Item = &Ranked> {
        self.found.ranking.iter().filter(|one| one.rank.is_some())
    }

    fn basis(&self) -> Basis<'_> {
        Basis::new(self.sources.len(), self.rows, self.found.base)
    }

    /// The verdicts on the rates of `one` compared with `other`.
    fn verdicts(&self, one: &Ranked, other: &Ranked, rates: OrderedRates) -> Vec<RatioVerdict> {
        self.basis().verdicts([place(other.source), place(one.source)], self.found.deltas, rates)
    }

    fn is_behind(&self, score: f64, first: f64) -> bool {
        is_behind(score, first, self.found.deltas.rate)
    }

    /// The first by the rates that can be held, and the next that it is ahead of.
    fn leader(&self) -> Option<String> {
        if self.rows.is_empty() {
            return None;
        }
        let stalled = self.stalled();
        let next = |first: &Ranked| self.ranked().find(|one| one.rank != first.rank);
        let Some((first, next)) = self.ranked().next().and_then(|first| Some((first, next(first)?))) else {
            return Some(format!("{}{stalled}.", self.tie()));
        };
        let with_first: Vec<String> =
            self.ranked().filter(|one| one.rank == first.rank).map(|one| self.name(one.source)).collect();
        let by = ratio_text(first.score? / next.score?);
        let (verb, has) = if with_first.len() > 1 { ("lead", "have") } else { ("leads", "has") };
        let rates = if first.rates == 1 { "1 rate".to_owned() } else { format!("{} rates", first.rates) };
        let verdicts = self.verdicts(first, next, OrderedRates::Held);
        let (sure, is_open) = (self.certainty([first, next], &verdicts), is_undecided(&verdicts));
        let (what, measured) = match (first.is_sustained(), next.is_sustained()) {
            (true, true) => ("sustained rate", String::new()),
            (false, true) => ("sustained rate", self.measured_for(first)),
            (false, false) if next.has_burst => ("sustained rate", self.measured_for(first)),
            _ => ("measured rate", String::new()),
        };
        let latency = self.latency_clause([first.source, next.source], !is_open);
        let after = next;
        let (first_names, next) = (list(&with_first), self.name(next.source));
        let lead = match (self.each_ahead(first, after), is_open) {
            (Some(each), _) => {
                return Some(format!("{each}, {sure}{latency}{measured}{stalled}."));
            }
            (None, true) => format!("No order is shown: {first_names} {has} {by} times the {what} of {next}"),
            (None, false) => format!("{first_names} {verb} with {by} times the {what} of {next}"),
        };
        let mark = if first.ephemeral { self.ephemeral(first.source) } else { String::new() };
        Some(format!("{lead} (geometric mean of {rates}, {sure}){latency}{measured}{mark}{stalled}."))
    }

    /// `A leads in rand-read (1.99 times), B in seq-read (3.60 times)`, where a mean of all tests would hide it.
    fn each_ahead(&self, one: &Ranked, other: &Ranked) -> Option<String> {
        let basis = self.basis();
        let [(test, by), (other_test, other_by)] = basis.each_ahead([one.source, other.source].map(place))?;
        Some(format!(
            "{} leads in {test} ({} times), {} in {other_test} ({} times)",
            one.source,
            ratio_text(by),
            other.source,
            ratio_text(other_by)
        ))
    }

    /// What to know of a leader whose data are lost with its instance: who leads without it.
    fn ephemeral(&self, first: &str) -> String {
        let kept: Vec<&Ranked> = self.ranked().filter(|one| !one.ephemeral).collect();
        let is_behind_first = |one: &&&Ranked| {
            let scores = one.score.zip(kept[0].score);
            scores.is_some_and(|(score, first)| self.is_behind(score, first))
        };
        if kept.is_empty() {
            return format!("; {first} is ephemeral: its data are lost with its instance");
        }
        let next = kept.iter().find(is_behind_first);
        let is_open =
            next.is_some_and(|next| is_undecided(&self.verdicts(kept[0], next, OrderedRates::Held)));
        let leads = kept.iter().filter(|one| !is_behind_first(one)).map(|one| self.name(one.source));
        let leads: Vec<String> = leads.collect();
        let lead = match (is_open, leads.len()) {
            (true, _) => "none is shown to lead".to_owned(),
            (_, 1) => format!("{} leads", leads[0]),
            (_, all) if all == kept.len() => format!("{} do not differ", list(&leads)),
            _ => format!("{} lead", list(&leads)),
        };
        format!("; {first} is ephemeral, and of the volumes that outlive their instance {lead}")
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
        let stalled = self.found.ranking.iter().filter(|one| !one.stalled.is_empty());
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

    /// That the sources have no order by their rates; of two what their latencies say.
    fn tie(&self) -> String {
        let basis = self.basis();
        let ranked: Vec<&Ranked> = self.ranked().collect();
        let latency = match (self.sources.len(), self.found.base) {
            (2, base) => self.latency_clause([LABELS[1 - base], LABELS[base]], false),
            _ => String::new(),
        };
        let [first, others @ ..] = ranked.as_slice() else {
            let why = basis.no_order.unwrap_or("the sources have too few tests in common");
            return format!("No order: {why}{latency}");
        };
        if others.is_empty() {
            return format!("No order: the sources have too few tests in common{latency}");
        }
        let all: Vec<String> = ranked.iter().map(|one| self.name(one.source)).collect();
        let verdicts = others.iter().flat_map(|other| self.verdicts(other, first, OrderedRates::Held));
        let verdicts: Vec<RatioVerdict> = verdicts.collect();
        let rate = basis.rate_name();
        if let Some(each) = others.iter().find_map(|other| self.each_ahead(first, other)) {
            return format!("No order: {each}{latency}");
        }
        match verdicts.iter().all(|verdict| *verdict == RatioVerdict::Equivalent) && !verdicts.is_empty() {
            true => format!("{} are equivalent in {rate}{latency}", list(&all)),
            false => format!(
                "{} do not differ in {rate} on average ({}){latency}",
                list(&all),
                sure_text(&verdicts)
            ),
        }
    }

    /// How sure the order of two sources is.
    fn certainty(&self, both: [&Ranked; 2], verdicts: &[RatioVerdict]) -> String {
        let is_simulated =
            |one: &Ranked| self.volume(one.source).is_some_and(|volume| volume.kind == SourceKind::Simulated);
        if both.into_iter().all(is_simulated) && verdicts.contains(&RatioVerdict::Single) {
            return "both simulated".to_owned();
        }
        sure_text(verdicts)
    }

    /// What becomes of the order while bursts last: the nearest sources that change places, else the leaders if they do not differ.
    fn turned(&self) -> Option<String> {
        let ranked: Vec<(&Ranked, f64)> =
            self.ranked().filter_map(|one| Some((one, one.measured_score?))).collect();
        let pairs = (0..ranked.len())
            .flat_map(|at| ranked[at + 1..].iter().map(move |behind| (at, *behind)))
            .map(|(at, behind)| (ranked[at], behind));
        let mut pairs = pairs.filter(|(ahead, behind)| ahead.0.rank != behind.0.rank);
        let time = |one: &Ranked| {
            let lasts = self.volume(one.source).and_then(|volume| volume.burst.as_ref()?.lasts_ns);
            lasts.map(|ns| format!(", for {}", units::duration(Nanos(ns)))).unwrap_or_default()
        };
        let first = pairs.clone().next()?;
        let is_reversed = |((ahead, rate), (behind, burst)): &((&Ranked, f64), (&Ranked, f64))| {
            self.is_behind(*rate, *burst)
                && !is_undecided(&self.verdicts(behind, ahead, OrderedRates::Measured))
        };
        if let Some((ahead, behind)) = pairs.find(is_reversed) {
            return Some(format!(
                "While burst credits last the order reverses{}: {} then reaches {} times the rate of {}.",
                time(behind.0),
                self.name(behind.0.source),
                ratio_text(behind.1 / ahead.1),
                self.name(ahead.0.source)
            ));
        }
        let (ahead, behind) = first;
        let is_equal = !self.is_behind(ahead.1, behind.1) && !self.is_behind(behind.1, ahead.1);
        (is_equal && behind.0.has_burst).then(|| {
            format!(
                "While burst credits last{}: no difference above {} % between {} and {}.",
                time(behind.0),
                (self.found.deltas.rate * 1000.0).round() / 10.0,
                ahead.0.source,
                behind.0.source
            )
        })
    }

    /// The latency of single I/Os of `one` beside that of `other`, if the difference counts, and under load the p99 if it is worse
    /// although `one` is ahead: there the mean follows from the rate and the queue depth.
    fn latency_clause(&self, [one, other]: [&str; 2], is_ahead: bool) -> String {
        let places = [place(one), place(other)];
        let at_depth_1 = self.latency(places, Statistic::Mean, is_single);
        let under_load = self.latency(places, P99, |run| !is_single(run) && !run.is_paced);
        let under_load = under_load.filter(|found| is_ahead && found.ratio > 1.0);
        let text = |name: &str, load: &str, found: &LatencyRatio| {
            let tests = match found.tests.len() {
                ..=MAX_NAMED => list(&found.tests),
                many => format!("{many} tests"),
            };
            let burst = if found.is_burst { " while burst credits last" } else { "" };
            let times = ratio_text(found.ratio);
            format!("the {name} of {one} {load} is {times} times that of {other}{burst} ({tests})")
        };
        let is_worse = |found: &LatencyRatio| is_ahead && found.ratio > 1.0;
        let parts = [
            at_depth_1.map(|found| (is_worse(&found), text("mean latency", "at QD 1", &found))),
            under_load.map(|found| (true, text("p99 latency", "under load", &found))),
        ];
        let parts = parts.into_iter().flatten();
        parts.map(|(is_worse, text)| format!("{}{text}", if is_worse { ", but " } else { "; " })).collect()
    }

    /// The ratio of a latency in the tests that both have and of which `is_meant`, if it counts and the intervals show it.
    fn latency(
        &self,
        [one, other]: [usize; 2],
        statistic: Statistic,
        is_meant: impl Fn(&RunTest) -> bool,
    ) -> Option<LatencyRatio> {
        let (mut pairs, mut tests): (Vec<Pair>, Vec<&ComparedRow>) = (Vec::new(), Vec::new());
        let is_like = |row: &&ComparedRow| {
            let mut both = row.usable(one).chain(row.usable(other));
            row.is_comparable(other, one) && both.any(&is_meant)
        };
        for row in self.rows.iter().filter(is_like) {
            let found = latencies_of(row, statistic).into_iter();
            let found = found.map(|figure| pair(row, [other, one], figure, self.found.deltas));
            let mut found: Vec<Pair> = found.filter(|pair| pair.verdict.is_some()).collect();
            // Of total and completion latency of one direction the first that both have.
            found.dedup_by_key(|pair| pair.direction);
            if !found.is_empty() {
                tests.push(row);
            }
            pairs.extend(found);
        }
        let logs: Vec<f64> = pairs.iter().filter_map(|pair| Some(pair.ratio?.ln())).collect();
        let ratio = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
        let counts = (ratio.ln().abs() > self.found.deltas.latency.ln_1p()) && !logs.is_empty();
        let verdicts: Vec<RatioVerdict> = pairs.iter().filter_map(|pair| pair.verdict).collect();
        let shows = if ratio < 1.0 { RatioVerdict::Better } else { RatioVerdict::Worse };
        let is_shown = verdicts.iter().any(|verdict| [shows, RatioVerdict::Single].contains(verdict));
        let is_burst = |row: &&ComparedRow| {
            let mut both = row.usable(one).chain(row.usable(other));
            both.any(|run| run.duration.label == Lasting::Burst)
        };
        (counts && is_shown).then(|| LatencyRatio {
            ratio,
            is_burst: tests.iter().any(is_burst),
            tests: tests.iter().map(|row| row.test.clone()).collect(),
        })
    }
}

/// This latency of each direction, total before completion.
fn latencies_of(row: &ComparedRow, statistic: Statistic) -> Vec<&RowFigure> {
    let is_it = |of: &&RowFigure| {
        matches!(of.figure, Figure::Metric(Metric { kind: MetricKind::Latency(_, of), direction })
            if of == statistic && direction != Some(MetricDirection::Sync))
    };
    let mut all: Vec<&RowFigure> = row.figures().iter().filter(is_it).collect();
    all.sort_by_key(|of| of.figure.direction());
    all
}

/// True of one I/O at a time.
fn is_single(run: &RunTest) -> bool {
    run.work.iodepth == Some(1) && run.work.jobs.unwrap_or(1) == 1
}

/// The place of a source among them.
fn place(label: &str) -> usize {
    LABELS.iter().position(|known| *known == label).unwrap_or_default()
}

/// Repeated runs do not show in any rate that the first is ahead.
fn is_undecided(verdicts: &[RatioVerdict]) -> bool {
    let is_shown = |verdict: &RatioVerdict| matches!(verdict, RatioVerdict::Better | RatioVerdict::Single);
    !verdicts.is_empty() && !verdicts.iter().any(is_shown)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{CompareSettings, ComparedSource, compare};
    use crate::fixture::{TestLoad, record};
    use fathom_record::{BurstRate, OwnRates, PublishedRates};

    /// The first sentence on two sources of runs with these IOPS.
    fn leader(rates: [&[f64]; 2]) -> String {
        let sources = rates.map(|rates| ComparedSource::at_rates(rates, &TestLoad::default()));
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
        ComparedSource { kind: SourceKind::Simulated, ..ComparedSource::of_records([record]) }
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
                "While burst credits last, for 1 min: no difference above 3 % between B and A."
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
            alike.contains("C 10.00 USD (4.95 per 1,000 sustained IOPS); B 10.00 USD (5.00 per"),
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
            ComparedSource::of_records([record(&[&[single][..], &deep].concat())])
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
        let source = |rates: [f64; 3], seconds| {
            let load = TestLoad { depth: 64, seconds, ..TestLoad::default() };
            ComparedSource::at_rates(&rates, &load)
        };
        let sources = [source([100.0, 100.1, 99.9], fallen), source([575.0, 575.5, 574.5], vec![1.0; 120])];
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
        assert_eq!(group(vec!["B"]).text(), "A for OLTP and etcd, undecided on B without --profile NAME");
        assert_eq!(
            group(vec!["B", "C"]).text(),
            "A for OLTP and etcd, undecided on B and C without --profile NAME"
        );
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
