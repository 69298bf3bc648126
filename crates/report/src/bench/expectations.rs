//! What was expected and what became of it: a table, and the reasons below it.

use fathom_analysis::criterion::{CriterionVerdict, Metric, MetricDirection, MetricKind};
use fathom_analysis::promise::{self, Judged, figure, of_year, quantity_name, span};
use fathom_model::units;
use fathom_record::{PromiseRecord, RunRecord};

use crate::run_view::name;
use crate::view::{Block, Cell, Column, Row, Table, Tone};

const COLUMNS: [Column; 9] = [
    Column::left("test"),
    Column::left("by").dispensable(0),
    Column::left("class"),
    Column::left(""),
    Column::right("expected"),
    Column::right("margin").dispensable(2),
    Column::right("measured"),
    Column::left("interval").dispensable(1),
    Column::left("verdict"),
];

/// A row per expectation, the counts and the reasons; nothing where nothing was expected.
pub(super) fn blocks(record: &RunRecord) -> Vec<Block> {
    let judged = promise::judge(record);
    let Some(first) = judged.first() else { return Vec::new() };
    let mut left_out = Vec::new();
    if judged.iter().all(|one| one.promise.class.is_empty()) {
        left_out.push("class");
    }
    if judged.iter().all(|one| one.promise.source == first.promise.source) {
        left_out.push("by");
    }
    let table = Table::new(COLUMNS, judged.iter().map(|one| row(record, one))).without(&left_out);
    let notes =
        std::iter::once(counts(&judged)).chain(by_class(record, &judged)).chain(reasons(record, &judged));
    vec![Block::Table(table), Block::Notes(notes.collect())]
}

fn row(record: &RunRecord, judged: &Judged) -> Row {
    let Judged { promise, measured, interval, .. } = judged;
    let quantity = Metric::parse(&promise.metric);
    let measure = quantity.map_or(MetricKind::Iops, |quantity| quantity.kind);
    let shown = |value: f64| match promise.share {
        Some(_) => Cell::real(value, format!("{} %", digits(value * 100.0))),
        None => Cell::real(value, figure(measure, value)),
    };
    let within = interval.and_then(|interval| match promise.share {
        Some(_) => Some(format!("{}-{}", digits(interval.low * 100.0), shown(interval.high).text)),
        None => span(measure, interval.low, interval.high),
    });
    let margin =
        (promise.tolerance_percent > 0.0).then(|| format!("{} %", digits(promise.tolerance_percent)));
    let tone = match judged.verdict {
        CriterionVerdict::Missed => Tone::Alarm,
        CriterionVerdict::Inconclusive => Tone::Dim,
        CriterionVerdict::Met => Tone::Normal,
    };
    let cells = [
        test_name(record, promise).into(),
        promise.source.as_str().into(),
        promise.class.as_str().into(),
        what(record, promise, quantity).into(),
        Cell::real(promise.value, format!("{} {}", promise.is, figure(measure, promise.value))),
        margin.into(),
        measured.map(shown).into(),
        within.into(),
        verdict_text(judged).into(),
    ];
    Row::new(cells).toned(tone)
}

/// The verdict, and by how much a promise was missed.
fn verdict_text(judged: &Judged) -> String {
    let Judged { promise, measured, verdict, .. } = judged;
    let off = measured.map(|measured| measured / promise.value - 1.0);
    match (verdict, off.filter(|_| promise.share.is_none())) {
        (CriterionVerdict::Missed, Some(off)) => {
            // Nearly all of it is not all of it, and a little is not nothing.
            let digits = usize::from(off.abs() > 0.99 && off < 0.0 || off.abs() < 0.1);
            format!("{}, {:+.digits$} %", verdict.name(), off * 100.0)
        }
        _ => verdict.name().to_owned(),
    }
}

/// A test's title, or its id where it did not run.
fn test_name(record: &RunRecord, promise: &PromiseRecord) -> String {
    let test = record.tests.iter().find(|test| test.id == promise.test);
    test.map_or(promise.test.as_str(), name).to_owned()
}

/// `IOPS`, `IOPS for 99.9 %`, `IOPS in bursts`. The direction is told where the test has several.
fn what(record: &RunRecord, promise: &PromiseRecord, quantity: Option<Metric>) -> String {
    let jobs = record.tests.iter().filter(|test| test.id == promise.test).flat_map(|test| &test.jobs);
    let is_mixed = jobs
        .into_iter()
        .any(|job| matches!(job.rw.as_str(), "rw" | "randrw" | "trimwrite" | "randtrimwrite"));
    let is_sync = |quantity: Metric| quantity.direction == Some(MetricDirection::Sync);
    let quantity = quantity.map(|quantity| match is_mixed || is_sync(quantity) {
        true => quantity,
        false => Metric { direction: None, ..quantity },
    });
    let name = quantity.map_or_else(|| promise.metric.clone(), quantity_name);
    match (promise.share, promise.conditions.credit) {
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

/// How many there are of each, and how little time they rest on.
fn counts(judged: &[Judged]) -> String {
    let told =
        [CriterionVerdict::Met, CriterionVerdict::Missed, CriterionVerdict::Inconclusive].map(|verdict| {
            let count = promise::count(judged, verdict);
            (count, format!("{count} {}", verdict.name()))
        });
    let told: Vec<String> = told.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    let what = if judged.len() == 1 { "promise" } else { "promises" };
    let most = judged.iter().map(|one| one.seconds).max().unwrap_or(0);
    let rests_on = match most {
        0 => String::new(),
        most => format!("; {} s were watched at most, {}", units::grouped(most), of_year(most)),
    };
    format!("Of {} {what}: {}{rests_on}.", judged.len(), told.join(", "))
}

/// Classes are alternatives; which one it is cannot be seen.
fn by_class(record: &RunRecord, judged: &[Judged]) -> Option<String> {
    let classes = promise::classes(&record.header.promises);
    if classes.len() < 2 {
        return None;
    }
    let broken = |class: &&str| {
        judged.iter().any(|one| one.promise.class == **class && one.verdict == CriterionVerdict::Missed)
    };
    let of = |class: &&str| match broken(class) {
        true => format!("missed as {class}"),
        false => format!("not missed as {class}"),
    };
    let told: Vec<String> = classes.iter().map(of).collect();
    let choose: Vec<String> = classes.iter().map(|class| format!("--class {class}")).collect();
    Some(format!(
        "Which class it is cannot be seen from within: {}; {} says so.",
        told.join(", "),
        choose.join(" or ")
    ))
}

/// Why they are inconclusive, and what a share of the time speaks for; the same reason once.
fn reasons(record: &RunRecord, judged: &[Judged]) -> Vec<String> {
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for one in judged {
        // Of a rate that fell short the table says it all.
        let is_told = one.verdict == CriterionVerdict::Missed && one.promise.share.is_none();
        let Some(why) = one.why.as_ref().filter(|_| !is_told) else { continue };
        let remedy = one.remedy.as_ref().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
        let text = format!("{}: {why}{remedy}.", one.verdict.name());
        let test = test_name(record, &one.promise);
        match told.iter_mut().find(|(known, _)| *known == text) {
            Some((_, tests)) if tests.contains(&test) => {}
            Some((_, tests)) => tests.push(test),
            None => told.push((text, vec![test])),
        }
    }
    told.into_iter().map(|(text, tests)| format!("{}: {text}", tests.join("; "))).collect()
}
