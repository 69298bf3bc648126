//! The report of `compare`: the conclusion, the sources and the differences in their conditions, then the figures.

use fathom_analysis::compare::differences::{Difference, persistence};
use fathom_analysis::compare::figure::ratio_text;
use fathom_analysis::compare::gate::{GateResult, GateVerdict};
use fathom_analysis::compare::pairs::Pair;
use fathom_analysis::compare::source::LABELS;
use fathom_analysis::compare::volumes::{UseRow, UseVerdict, VolumeSummary};
use fathom_analysis::compare::{ComparisonVerdict, USES, VolumeComparison, ranking};
use fathom_analysis::conclusions::Suitability;
use fathom_model::units::duration;
use fathom_model::{Nanos, STALE};
use serde_json::json;

use super::matrix::{Group, Layout, brief, matrix, ratios, side_by_side, transposed};
use super::{explain, surfaces, value};
use crate::columns::brief_name;
use crate::document::object;
use crate::view::{
    Block, Cell, Column, KeyFigure, Plot, Row, Table, TableDivision, Tone, View, ViewHead, iops_text,
};

/// The whole comparison with these charts, or only the cells that were to be explained.
pub fn view(comparison: &VolumeComparison, layout: Layout, charts: Vec<Plot>) -> View {
    if !comparison.explanations.is_empty() {
        return explain::view(comparison);
    }
    let base = LABELS[comparison.base];
    let count = comparison.sources.len();
    let deltas = &comparison.deltas;
    let head = ViewHead {
        target: vec![format!("Comparison of {count} sources, base {base}")],
        host: vec![format!(
            "differences count from {} % (rates), {} % (latencies)",
            number(deltas.rate * 100.0),
            number(deltas.latency * 100.0)
        )],
        started_unix_ms: 0,
    };
    let mut view = View { head: Some(head), data: data(comparison), ..View::default() };
    if layout == Layout::Value {
        value::push_verdict(comparison, &mut view);
    }
    push_verdict(comparison, &mut view);
    match layout {
        Layout::Value => view.push("Value for money", value::blocks(comparison)),
        Layout::Volumes | Layout::Transposed => {
            view.push_brief("", [Block::Table(brief_sources(comparison))]);
        }
    }
    let verdicts = comparison.interleaved.iter().flat_map(|of| &of.verdicts).map(|one| one.text.clone());
    view.push_full("Verdict", [Block::Notes(verdicts.skip(MAX_VERDICTS).collect())]);
    view.push_full("Sources", [Block::Table(sources(comparison)), Block::Notes(notes(comparison))]);
    view.push_full("Differences in conditions", [differences(comparison)]);
    view.push_brief("", [Block::Table(brief(comparison))]);
    match (count, layout) {
        (_, Layout::Transposed) => view.push_full("Figures", [transposed(comparison)]),
        (2, Layout::Volumes | Layout::Value) => view.push_full("Figures", side_by_side(comparison)),
        (_, Layout::Volumes | Layout::Value) => {
            view.push_full("Figures", matrix(comparison, Group::Main));
            view.push_full(format!("Ratio to {base}"), ratios(comparison));
        }
    }
    match comparison.tests.is_empty() {
        true => view.push("Surfaces", surfaces::blocks(comparison)),
        false => view.push_full("Surfaces", surfaces::blocks(comparison)),
    }
    view.push("Charts", [Block::Plots(charts)]);
    view.push_full("Stability and CPU time", matrix(comparison, Group::Other));
    view.push_full("Limits and prices", limits(comparison));
    let sentence = comparison.verdict.uses.clone().map(Block::note);
    view.push_full("Workload suitability", uses(comparison).into_iter().chain(sentence));
    if !comparison.tests.is_empty() {
        view.push_full("Ranking", [Block::Table(ranked(comparison)), Block::Notes(rule(comparison))]);
    }
    view.push("Conditions", [Block::KeyFigures(comparison.conditions.iter().map(condition).collect())]);
    let contradictions = comparison.contradictions.iter().map(|one| format!("{}.", one.claim)).collect();
    view.push_full("Contradictions", [Block::Notes(contradictions)]);
    view
}

/// Verdicts that a brief report shows one by one.
const MAX_VERDICTS: usize = 3;

/// Who leads, for how long and for what, at what price, and what makes the figures hard to compare.
fn push_verdict(comparison: &VolumeComparison, view: &mut View) {
    let ComparisonVerdict { result, uses, reversal, .. } = &comparison.verdict;
    let verdicts: Vec<_> = comparison.interleaved.iter().flat_map(|of| &of.verdicts).collect();
    for one in verdicts.iter().take(MAX_VERDICTS) {
        view.say("Verdict", one.text.clone());
    }
    view.say("Result", result.clone());
    view.say("Uses", uses.as_deref().map(|text| shortened(text.strip_prefix(USES).unwrap_or(text))));
    view.say("Bursts", reversal.clone());
    if comparison.verdict.result.is_none() {
        view.say("Result", comparison.conclusion.first().cloned());
    }
    if let Some(first) = comparison.contradictions.first() {
        let more = comparison.contradictions.len() - 1;
        let more = if more > 0 { format!(" ({more} more under --full)") } else { String::new() };
        view.warn("Contradiction", format!("{}{more}", first.claim));
    }
    let mut named: Vec<&str> = comparison.differences.iter().map(|one| one.condition).collect();
    named.dedup();
    view.say("Differ in", (!named.is_empty()).then(|| named.join(", ")));
}

/// Characters of a sentence that names many sources.
const MAX_SENTENCE: usize = 150;

/// The first parts of a long sentence.
fn shortened(text: &str) -> String {
    let is_long = text.chars().count() > MAX_SENTENCE;
    let end = text.char_indices().nth(MAX_SENTENCE).map_or(text.len(), |(at, _)| at);
    match text[..end].rfind("; ").filter(|_| is_long) {
        Some(at) => format!("{}; and others", &text[..at]),
        None => text.to_owned(),
    }
}

/// What each source is and what is known of it, a line each.
fn brief_sources(comparison: &VolumeComparison) -> Table {
    let rate = |iops: Option<f64>| Cell::from(iops.map(Cell::iops));
    let table = Table::of::<VolumeSummary>(
        &[
            (Column::left("source"), &|volume| volume.source.into()),
            (Column::left("named"), &|volume| brief_name(&short_name(&volume.name)).into()),
            (Column::left("figures").dispensable(0), &|volume| volume.kind.name().into()),
            (Column::right("burst IOPS").dispensable(2), &|volume| {
                rate(volume.burst.as_ref().map(|burst| burst.iops))
            }),
            (Column::right("lasts").dispensable(1), &|volume| {
                volume.burst.as_ref().and_then(|burst| burst.lasts_ns).map(Cell::duration).into()
            }),
            (Column::right("sustains IOPS"), &|volume| rate(volume.sustained_iops)),
            (Column::right("reaches IOPS"), &|volume| rate(volume.reached_iops)),
            (Column::right("per month"), &|volume| {
                let price = volume.price.as_ref();
                price.map(|price| format!("{} {}", Cell::money(price.per_month).text, price.currency)).into()
            }),
            (Column::right("per 1,000 IOPS").dispensable(0), &|volume| {
                volume.price_per_1000_iops.map(|per| Cell::real(per, format!("{per:.2}"))).into()
            }),
            (Column::right("per 100 MiB/s").dispensable(0), &|volume| {
                volume.price_per_100_mib.map(|per| Cell::real(per, format!("{per:.2}"))).into()
            }),
        ],
        &comparison.sources,
    );
    table.without_empty()
}

fn number(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    tenths.to_string()
}

fn sources(comparison: &VolumeComparison) -> Table {
    let columns =
        [Column::left("source"), Column::left("named"), Column::left("figures"), Column::left("runs")];
    let row = |volume: &VolumeSummary| {
        let runs = match volume.runs.as_slice() {
            runs if runs.join(",") == volume.name => String::new(),
            [first, .., last] if volume.runs.len() > 3 => {
                format!("{} runs: {first} to {last}", volume.runs.len())
            }
            runs => runs.join(", "),
        };
        Row::new([volume.source.to_owned(), short_name(&volume.name), volume.kind.name().to_owned(), runs])
    };
    Table::new(columns, comparison.sources.iter().map(row)).without_empty()
}

/// The first of several files, and how many there are.
pub(super) fn short_name(name: &str) -> String {
    const LONGEST: usize = 72;
    match name.split_once(',') {
        Some((first, rest)) if name.len() > LONGEST => {
            format!("{first} and {} more", rest.split(',').count())
        }
        _ => name.to_owned(),
    }
}

/// What to know of the figures of sources; of many notes the first are shown.
fn notes(comparison: &VolumeComparison) -> Vec<String> {
    const MOST: usize = 4;
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for volume in &comparison.sources {
        for note in volume.notes.iter().take(MOST) {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, sources)) => sources.push(volume.source),
                None => notes.push((note.clone(), vec![volume.source])),
            }
        }
        let more = volume.notes.len().saturating_sub(MOST);
        if more > 0 {
            notes.push((format!("{more} more notes in --json"), vec![volume.source]));
        }
    }
    notes.into_iter().map(|(note, sources)| format!("{}: {note}.", sources.join(", "))).collect()
}

fn differences(comparison: &VolumeComparison) -> Block {
    if comparison.differences.is_empty() {
        return Block::note("None known.");
    }
    let figure = |one: &Difference| {
        let tone = if one.prevents_verdict { Tone::Alarm } else { Tone::Normal };
        KeyFigure { tone, ..KeyFigure::new(one.condition, difference(one)) }
    };
    Block::KeyFigures(comparison.differences.iter().map(figure).collect())
}

/// `12 s (A, B); 30 s (C): rand-read; no verdict`.
fn difference(one: &Difference) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (at, value) in one.values.iter().enumerate().filter(|(at, _)| one.has_tests(*at)) {
        let value = value.as_deref().unwrap_or("unknown");
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, sources)) => sources.push(LABELS[at]),
            None => groups.push((value, vec![LABELS[at]])),
        }
    }
    let groups: Vec<String> =
        groups.iter().map(|(value, sources)| format!("{value} ({})", sources.join(", "))).collect();
    let tests = if one.tests.is_empty() { String::new() } else { format!(": {}", one.tests.join(", ")) };
    let verdict = if one.prevents_verdict { "; different work, no verdict" } else { "" };
    format!("{}{tests}{verdict}", groups.join("; "))
}

/// The volumes, and who says what they cost.
fn limits(comparison: &VolumeComparison) -> [Block; 2] {
    let price_source = |volume: &VolumeSummary| {
        Some(format!("Price of {}: {}.", volume.source, volume.price.as_ref()?.source))
    };
    [
        Block::KeyFigures(comparison.sources.iter().filter_map(volume_limits).collect()),
        Block::Notes(comparison.sources.iter().filter_map(price_source).collect()),
    ]
}

/// Sustained rate, burst and price; `None` where none is known.
fn volume_limits(volume: &VolumeSummary) -> Option<KeyFigure> {
    let mut parts = Vec::new();
    let by = volume.limited_by.map(|by| format!(", limited by {by}")).unwrap_or_default();
    parts.extend(volume.sustained_iops.map(|iops| format!("sustains {} IOPS{by}", iops_text(iops))));
    parts.extend(volume.burst.as_ref().map(|burst| {
        let lasts =
            burst.lasts_ns.map_or_else(|| "billed".to_owned(), |ns| format!("for {}", duration(Nanos(ns))));
        let refill = burst.refill_ns.map(|ns| format!(", refills in {} when idle", duration(Nanos(ns))));
        format!("burst {} IOPS {lasts} ({}){}", iops_text(burst.iops), burst.test, refill.unwrap_or_default())
    }));
    parts.extend(volume.persistent.filter(|kept| !kept).map(|kept| persistence(kept).to_owned()));
    match &volume.price {
        Some(price) => {
            let per =
                |amount: Option<f64>, unit: &str| amount.map(|amount| format!("{amount:.2} per {unit}"));
            let per = [
                per(
                    volume.price_per_1000_iops,
                    if volume.is_priced_by_reached() {
                        "1,000 measured IOPS"
                    } else {
                        "1,000 sustained IOPS"
                    },
                ),
                per(volume.price_per_100_mib, "100 MiB/s"),
            ];
            let per: Vec<String> = per.into_iter().flatten().collect();
            let per = if per.is_empty() { String::new() } else { format!(", {}", per.join(", ")) };
            let without = match price.excluded.is_empty() {
                true => String::new(),
                false => format!(", without {}", price.excluded.join(", ")),
            };
            let stale = if price.is_stale { format!(", {STALE}") } else { String::new() };
            let dated = price.as_of.as_ref().map(|date| format!(" ({date}{stale})")).unwrap_or_default();
            let money = Cell::money(price.per_month).text;
            parts.push(format!("{money} {} per month{dated}{per}{without}", price.currency));
        }
        None if !parts.is_empty() => parts.push("price unknown".to_owned()),
        None => {}
    }
    (!parts.is_empty()).then(|| KeyFigure::new(volume.source, parts.join("; ")))
}

/// A use that was not measured.
const ABSENT: &str = "not measured";

/// The verdicts on the uses; their reasons are those of `bench` and in the data of each run. Sources without a verdict, and uses that no
/// source decides, are named once.
fn uses(comparison: &VolumeComparison) -> Vec<Block> {
    let is_measured = |at: &usize| comparison.uses.iter().any(|row| row.verdicts[*at].is_some());
    let (places, others): (Vec<usize>, Vec<usize>) = (0..comparison.sources.len()).partition(is_measured);
    if places.is_empty() {
        return Vec::new();
    }
    let is_decided = |row: &&UseRow| {
        let mut verdicts = row.verdicts.iter().flatten();
        verdicts.any(|verdict| use_text(verdict) != Suitability::Inconclusive.name())
    };
    let (decided, open): (Vec<&UseRow>, Vec<&UseRow>) = comparison.uses.iter().partition(is_decided);
    let heads = places.iter().map(|at| Column::left(LABELS[*at]));
    let columns: Vec<Column> = std::iter::once(Column::left("use")).chain(heads).collect();
    let rows = decided.iter().map(|row| {
        let verdict = |at: &usize| match &row.verdicts[*at] {
            Some(verdict) => use_text(verdict),
            None => ABSENT.to_owned(),
        };
        let cells = std::iter::once(row.purpose.to_owned()).chain(places.iter().map(verdict));
        Row { begins_group: true, ..Row::new(cells) }
    });
    let table = Table::new(columns, rows).divided(TableDivision { repeated: 1, absent: ABSENT });
    let (unmeasured, open): (Vec<&UseRow>, Vec<&UseRow>) =
        open.into_iter().partition(|row| row.verdicts.iter().all(Option::is_none));
    let purposes = |rows: Vec<&UseRow>| rows.into_iter().map(|row| row.purpose).collect();
    let notes: [(&str, Vec<&str>); 3] = [
        ("Inconclusive on every source:", purposes(open)),
        ("Not measured on any source:", purposes(unmeasured)),
        ("No use was measured on", others.into_iter().map(|at| LABELS[at]).collect()),
    ];
    let notes = notes.into_iter().filter(|(_, names)| !names.is_empty());
    let notes = notes.map(|(words, names)| format!("{words} {}.", names.join(", "))).collect();
    vec![Block::Table(table), Block::Notes(notes)]
}

/// `yes`, `yes, then no` where burst credits end.
fn use_text(verdict: &UseVerdict) -> String {
    let (now, later) = (verdict.verdict.name(), verdict.sustained);
    match later != verdict.verdict && later != Suitability::Inconclusive {
        true => format!("{now}, then {}", later.name()),
        false => now.to_owned(),
    }
}

fn ranked(comparison: &VolumeComparison) -> Table {
    let ratio = |score: Option<f64>| Cell::from(score.map(|score| Cell::real(score, ratio_text(score))));
    let name = |source: &str| {
        let volume = comparison.sources.iter().find(|volume| volume.source == source);
        volume.map(|volume| volume.name.clone()).unwrap_or_default()
    };
    let table = Table::of::<ranking::Ranked>(
        &[
            (Column::right("rank"), &|one| one.rank.map(|rank| Cell::count(u64::from(rank))).into()),
            (Column::left("source"), &|one| one.source.into()),
            (Column::left("named"), &|one| short_name(&name(one.source)).into()),
            (Column::right("rate"), &|one| ratio(one.score)),
            (Column::right("measured"), &|one| ratio(one.measured_score)),
            (Column::left("note"), &|one| one.note.clone().into()),
        ],
        &comparison.ranking,
    );
    table.without_empty()
}

fn rule(comparison: &VolumeComparison) -> Vec<String> {
    let Some(first) = comparison.ranking.iter().find(|one| one.rank.is_some()) else { return Vec::new() };
    let rates = first.rates;
    let rates = if rates == 1 { "1 rate".to_owned() } else { format!("{rates} rates") };
    vec![format!("By the {} ({rates}); measured: the same with measured rates alone.", ranking::RULE)]
}

fn condition(one: &GateResult) -> KeyFigure {
    let tone = if one.verdict == GateVerdict::Failed { Tone::Alarm } else { Tone::Normal };
    let reason = one.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let value = if one.text.is_empty() { String::new() } else { format!(" {}", one.text) };
    let text = format!("{}{value}, {}, {}{reason}", one.verdict.name(), one.source, one.test);
    KeyFigure { tone, ..KeyFigure::new(one.condition.clone(), text) }
}

/// Every pair with its values in base units.
fn data(comparison: &VolumeComparison) -> Table {
    const COLUMNS: &str = "\
        test,direction,metric,source_a,source_b,a,b,state_a,state_b,ratio,low,high,verdict,runs_a,\
        runs_b,reason";
    let document = |pair: &Pair| {
        let states = json!({ "state_a": pair.state_a.text(), "state_b": pair.state_b.text() });
        object([json!(pair), states])
    };
    Table::of_documents(&[COLUMNS], comparison.pairs.iter().map(document))
}
