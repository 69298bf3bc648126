//! Expectations and their results: a table, and the reasons below it.

use fathom_analysis::Analysis;
use fathom_analysis::criterion::{Comparison, CriterionVerdict, Metric, MetricDirection, MetricKind};
use fathom_analysis::expectation::{ConfidenceInterval, ExpectationResult, classes, of_year};
use fathom_model::units::{self, UnitSystem};
use fathom_record::{ExpectationRecord, RunRecord};

use crate::view::{Block, Cell, Column, Table, Tone, View};

/// The units of the bandwidths that are expected, where they are all in the same.
pub(super) fn units(record: &RunRecord) -> Option<UnitSystem> {
    let is_bandwidth = |one: &&ExpectationRecord| {
        Metric::parse(&one.metric).is_some_and(|metric| metric.kind == MetricKind::BytesPerSecond)
    };
    let expected = record.header.expectations.iter().filter(is_bandwidth);
    let mut systems = expected.map(|one| UnitSystem::of(one.value));
    let first = systems.next()?;
    systems.all(|system| system == first).then_some(first)
}

/// A row per expectation, the counts and the reasons; nothing where there are none.
pub(super) fn blocks(analysis: &Analysis<'_>) -> Vec<Block> {
    let judged = analysis.expectations();
    let Some(first) = judged.first() else { return Vec::new() };
    let mut left_out = Vec::new();
    if judged.iter().all(|one| one.expectation.class.is_empty()) {
        left_out.push("class");
    }
    if judged.iter().all(|one| one.expectation.source == first.expectation.source) {
        left_out.push("source");
    }
    let table = Table::of::<ExpectationResult>(
        &[
            (Column::left("test"), &|one| one.expectation.test.as_str().into()),
            (Column::left("source").dispensable(0), &|one| one.expectation.source.as_str().into()),
            (Column::left("class"), &|one| one.expectation.class.as_str().into()),
            (Column::left(""), &|one| metric_name(analysis.record, &one.expectation).into()),
            (Column::right("expected"), &|one| {
                let ExpectationRecord { is, value, .. } = &one.expectation;
                Cell::real(*value, format!("{is} {}", kind_of(&one.expectation).figure(*value)))
            }),
            (Column::right("tolerance").dispensable(2), &|one| {
                let percent = Some(one.expectation.tolerance_percent).filter(|percent| *percent > 0.0);
                percent.map(|percent| format!("{} %", digits(percent))).into()
            }),
            (Column::right("measured"), &|one| one.measured.map(|value| shown(one, value)).into()),
            (Column::left("95 % interval").dispensable(1), &|one| interval_text(one).into()),
            (Column::left("verdict"), &|one| verdict_text(one).into()),
        ],
        judged,
    );
    let table = table.toned(judged.iter().map(|one| tone(&one.verdict))).without(&left_out);
    let notes = std::iter::once(counts(judged)).chain(by_class(analysis)).chain(reasons(judged));
    vec![Block::Table(table), Block::Notes(notes.collect())]
}

/// What was expected comes first: how many were met, and the first that were not.
pub(super) fn push_verdict(analysis: &Analysis<'_>, view: &mut View) {
    const MAX_NAMED: usize = 2;
    let judged = analysis.expectations();
    let open: Vec<&ExpectationResult> =
        judged.iter().filter(|one| !matches!(one.verdict, CriterionVerdict::Met)).collect();
    let named: Vec<String> = open.iter().take(MAX_NAMED).map(|one| sentence(analysis.record, one)).collect();
    let text = match (judged.len(), open.len()) {
        (0, _) => return,
        (1, 0) => "met".to_owned(),
        (all, 0) => format!("all {all} met"),
        (all, some) if some > MAX_NAMED => format!("{} of {all} met; {}, ...", all - some, named.join("; ")),
        (all, some) => format!("{} of {all} met; {}", all - some, named.join("; ")),
    };
    match judged.iter().any(|one| one.verdict.is_missed()) {
        true => view.warn("Expected", text),
        false => view.say("Expected", text),
    }
}

fn tone(verdict: &CriterionVerdict) -> Tone {
    match verdict {
        CriterionVerdict::Missed => Tone::Alarm,
        CriterionVerdict::Inconclusive { .. } => Tone::Dim,
        CriterionVerdict::Met => Tone::Normal,
    }
}

fn kind_of(expectation: &ExpectationRecord) -> MetricKind {
    Metric::parse(&expectation.metric).map_or(MetricKind::Iops, |metric| metric.kind)
}

/// A measured value: the share of the time where one is expected.
fn shown(ExpectationResult { expectation, .. }: &ExpectationResult, value: f64) -> Cell {
    let is = Comparison::of(&expectation.is).unwrap_or(Comparison::AtLeast);
    Cell::real(
        value,
        match expectation.share {
            Some(_) => format!("{} %", digits(value * 100.0)),
            None => kind_of(expectation).figure_against(value, is, expectation.value),
        },
    )
}

fn interval_text(one: &ExpectationResult) -> Option<String> {
    let ConfidenceInterval { low, high } = one.interval?;
    match one.expectation.share {
        Some(_) => Some(format!("{}-{} %", digits(low * 100.0), digits(high * 100.0))),
        None => kind_of(&one.expectation).range_beside(low, high, one.expectation.value),
    }
}

/// The test and the metric of an expectation, and its verdict.
pub(crate) fn sentence(record: &RunRecord, one: &ExpectationResult) -> String {
    format!("{} {} {}", one.expectation.test, metric_name(record, &one.expectation), verdict_text(one))
}

/// The verdict, and by how much an expectation was missed, or within which tolerance it is met.
fn verdict_text(judged: &ExpectationResult) -> String {
    let ExpectationResult { expectation, measured, verdict, .. } = judged;
    let ExpectationRecord { share, value, tolerance_percent, .. } = expectation;
    let holds_within = |measured: f64, tolerance: f64| {
        Comparison::of(&expectation.is).is_some_and(|is| is.holds(measured, is.bound(*value, tolerance)))
    };
    let name = verdict.name();
    match (verdict, measured.filter(|_| share.is_none())) {
        // What is missed after a burst was met by what was measured.
        (CriterionVerdict::Missed, Some(measured)) if !holds_within(measured, *tolerance_percent) => {
            deviation(measured / value - 1.0).map_or_else(|| name.to_owned(), |off| format!("{name}, {off}"))
        }
        (CriterionVerdict::Met, Some(measured)) if !holds_within(measured, 0.0) => {
            format!("{name} within {} %", digits(*tolerance_percent))
        }
        _ => name.to_owned(),
    }
}

/// A share that a value is off: `-58 %`; `None` where it is off by nothing that three decimals show.
fn deviation(off: f64) -> Option<String> {
    // -99.6 % is not -100 %, and -0.04 % is not 0 %.
    let least = usize::from(off.abs() > 0.99 && off < 0.0 || off.abs() < 0.1);
    let is_shown = |digits: &usize| (off * 100.0).abs() * 10_f64.powi(*digits as i32) >= 0.5;
    let digits = (least..=3).find(is_shown)?;
    Some(format!("{:+.digits$} %", off * 100.0))
}

/// `IOPS`, `IOPS for 99.9 %`, `IOPS in bursts`. The direction is shown where the test has several.
fn metric_name(record: &RunRecord, expectation: &ExpectationRecord) -> String {
    let quantity = Metric::parse(&expectation.metric);
    let jobs = record.tests.iter().filter(|test| test.id == expectation.test).flat_map(|test| &test.jobs);
    let is_mixed =
        jobs.into_iter().any(|job| matches!(job.rw(), "rw" | "randrw" | "trimwrite" | "randtrimwrite"));
    let is_sync = |quantity: Metric| quantity.direction == Some(MetricDirection::Sync);
    let quantity = quantity.map(|quantity| match is_mixed || is_sync(quantity) {
        true => quantity,
        false => Metric { direction: None, ..quantity },
    });
    let name = quantity.map_or_else(|| expectation.metric.clone(), Metric::label);
    match (expectation.share, expectation.conditions.credit) {
        (Some(share), _) => format!("{name} for {} %", digits(share.fraction * 100.0)),
        (None, Some(_)) => format!("{name} in bursts"),
        (None, None) => name,
    }
}

/// A percentage with as many decimals as it has, three at most.
fn digits(percent: f64) -> String {
    let text = format!("{percent:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// How many have each verdict, and how much time was measured.
fn counts(judged: &[ExpectationResult]) -> String {
    let count = |decided| judged.iter().filter(|one| one.verdict.decided() == decided).count();
    let all = [(count(Some(true)), "met"), (count(Some(false)), "missed"), (count(None), "inconclusive")];
    let all = all.into_iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    let all: Vec<String> = all.collect();
    let most = judged.iter().map(|one| one.seconds).max().unwrap_or(0);
    let measured = match most {
        0 => String::new(),
        most => format!(" (measured for {} s, {})", units::grouped(most), of_year(most)),
    };
    format!("{}{measured}.", all.join(", "))
}

/// Classes are alternatives, and a measurement cannot tell which one a volume has.
fn by_class(analysis: &Analysis<'_>) -> Option<String> {
    let judged = analysis.expectations();
    let classes = classes(&analysis.record.header.expectations);
    if classes.len() < 2 {
        return None;
    }
    let misses =
        |class: &&str| judged.iter().any(|one| one.expectation.class == **class && one.verdict.is_missed());
    let of = |class: &&str| match misses(class) {
        true => format!("missed as {class}"),
        false => format!("not missed as {class}"),
    };
    let all: Vec<String> = classes.iter().map(of).collect();
    let choose: Vec<String> = classes.iter().map(|class| format!("--class {class}")).collect();
    Some(format!(
        "The class of this volume is unknown: {}; choose with {}.",
        all.join(", "),
        choose.join(" or ")
    ))
}

/// Why they are inconclusive, and how much time a share covers; the same reason once.
fn reasons(judged: &[ExpectationResult]) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for one in judged {
        let name = one.verdict.name();
        let text = match (one.verdict.reason(), &one.basis) {
            (Some((reason, Some(remedy))), _) => format!("{name}: {reason}; {remedy}."),
            (Some((reason, None)), _) => format!("{name}: {reason}."),
            // The table shows by how much a rate is missed.
            (None, Some(basis)) if one.expectation.share.is_some() => format!("{name}: {basis}."),
            (None, _) if let Some(lasting) = &one.lasting => format!("{name}: {lasting}."),
            _ => continue,
        };
        let test = one.expectation.test.clone();
        match reasons.iter_mut().find(|(known, _)| *known == text) {
            Some((_, tests)) if tests.contains(&test) => {}
            Some((_, tests)) => tests.push(test),
            None => reasons.push((text, vec![test])),
        }
    }
    reasons.into_iter().map(|(text, tests)| format!("{}: {text}", tests.join("; "))).collect()
}
