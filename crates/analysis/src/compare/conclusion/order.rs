//! The order of the sources in words. A sentence states an order only if the difference is one that counts and the intervals show it.

use fathom_model::{Nanos, units};

use super::super::figure::{Figure, ratio_text};
use super::super::pairs::{Pair, pair};
use super::super::ranking::{Basis, OrderedRates, Ranked, is_behind};
use super::super::ratio::RatioVerdict;
use super::super::rows::{ComparedRow, RunTest};
use super::super::source::{LABELS, SourceKind};
use super::{Evidence, MOST_NAMED, list};
use crate::criterion::{Metric, MetricDirection, MetricKind, Statistic};
use crate::steady::rate_duration::Lasting;

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
    pub(super) fn ranked(&self) -> impl Iterator<Item = &Ranked> {
        self.ranking.iter().filter(|one| one.rank.is_some())
    }

    fn basis(&self) -> Basis<'_> {
        Basis::new(self.sources, self.rows, self.base)
    }

    /// The verdicts on the rates of `one` compared with `other`.
    fn verdicts(&self, one: &Ranked, other: &Ranked, rates: OrderedRates) -> Vec<RatioVerdict> {
        self.basis().verdicts([place(other.source), place(one.source)], self.deltas, rates)
    }

    fn is_behind(&self, score: f64, first: f64) -> bool {
        is_behind(score, first, self.deltas.rate)
    }

    /// The first by the rates that can be held, and the next that it is ahead of.
    pub(super) fn leader(&self) -> Option<String> {
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
        let (first_names, next) = (list(&with_first), self.name(next.source));
        let lead = match is_open {
            true => format!("No order is shown: {first_names} {has} {by} times the {what} of {next}"),
            false => format!("{first_names} {verb} with {by} times the {what} of {next}"),
        };
        let mark = if first.ephemeral { self.ephemeral(first.source) } else { String::new() };
        Some(format!("{lead} (geometric mean of {rates}, {sure}){latency}{measured}{mark}{stalled}."))
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

    /// That the sources have no order by their rates; of two what their latencies say.
    fn tie(&self) -> String {
        let basis = self.basis();
        let ranked: Vec<&Ranked> = self.ranked().collect();
        let latency = match (self.sources.len(), self.base) {
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
    pub(super) fn turned(&self) -> Option<String> {
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
                "While burst credits last{}, the rates of {} and {} differ by no more than {} %.",
                time(behind.0),
                ahead.0.source,
                behind.0.source,
                (self.deltas.rate * 1000.0).round() / 10.0
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
                ..=MOST_NAMED => list(&found.tests),
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
            let found = found.map(|figure| pair(self.sources, row, [other, one], figure, self.deltas));
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
        let counts = (ratio.ln().abs() > self.deltas.latency.ln_1p()) && !logs.is_empty();
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
fn latencies_of(row: &ComparedRow, statistic: Statistic) -> Vec<Figure> {
    let mut all = Figure::all_of(row);
    all.retain(|figure| {
        matches!(figure, Figure::Metric(Metric { kind: MetricKind::Latency(_, of), direction })
            if *of == statistic && *direction != Some(MetricDirection::Sync))
    });
    all.sort_by_key(Figure::direction);
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
