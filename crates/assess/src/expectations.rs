//! The expectations of a bench: from the command line, files, suites, and published specifications of the catalogue.
//!
//! Makes records of them before anything runs, so that an expectation of an unknown test is refused then. The results come
//! from `fathom_analysis::expectation`.

mod file;
mod volume;

use std::collections::BTreeMap;
use std::path::PathBuf;

use fathom_analysis::criterion::{Criterion, Metric, MetricDirection, MetricKind, Statistic, parse_value};
use fathom_analysis::expectation;
use fathom_catalog::{CatalogEntry, SimulatedTarget};
use fathom_model::{JobPlan, RunPlan};
use fathom_record::ExpectationRecord;

use crate::AssessError;
use crate::catalogue::VolumeTypes;
use crate::planned::PlannedTest;
use crate::simulated::{SimulatedVolume, is_simulated};
use crate::suite::Suite;
use volume::{PublishedSpecification, Shape};

/// The default tolerance, percent.
pub(crate) const TOLERANCE_PERCENT: f64 = 5.0;
/// The label that names the class of machine or volume.
pub(crate) const CLASS: &str = "class";

/// The expectations that the results are checked against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectationSettings {
    /// Expectations in one line each, or volume types of the catalogue (`--expect`).
    pub lines: Vec<String>,
    /// Expectation files.
    pub files: Vec<PathBuf>,
    /// The tolerance of expectations without one of their own, percent.
    pub tolerance_percent: Option<f64>,
    /// The class of machine or volume, where expectations depend on it.
    pub class: Option<String>,
}

/// The tests that run, and their plans.
pub(crate) struct Tests<'a> {
    pub(crate) suite: &'a Suite,
    pub(crate) planned: &'a [PlannedTest],
    pub(crate) plans: Vec<RunPlan>,
    pub(crate) types: &'a VolumeTypes,
}

impl Tests<'_> {
    fn job(&self, id: &str) -> Option<&JobPlan> {
        let at = self.planned.iter().position(|test| test.id == id)?;
        self.plans.get(at)?.jobs.first()
    }

    fn is_in_suite(&self, id: &str) -> bool {
        self.suite.tests.iter().any(|test| test.id == id)
    }
}

/// The expectations of a plan, with notes for the reader.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedExpectations {
    pub(crate) expectations: Vec<ExpectationRecord>,
    pub(crate) notes: Vec<String>,
}

/// All expectations; of those for classes only the chosen class's, where one is chosen.
///
/// # Errors
/// One is not valid, or names something unknown.
pub(crate) fn determine(
    settings: &ExpectationSettings,
    tests: &Tests<'_>,
    labels: &BTreeMap<String, String>,
) -> Result<PlannedExpectations, AssessError> {
    let (mut all, mut notes) = (Vec::new(), Vec::new());
    for text in &settings.lines {
        match text.contains(['<', '>']) {
            true => all.push(of_line(text, settings, tests)?),
            false => all.extend(of_volume(text, settings, tests, &mut notes)?),
        }
    }
    for path in &settings.files {
        all.extend(of_filed(&path.display().to_string(), file::read(path)?, settings, tests)?);
    }
    all.extend(of_suite(tests));
    for expectation in &mut all {
        add_machine(expectation, tests)?;
    }
    if !all.is_empty() {
        check_labels(labels)?;
    }
    let expectations = match &settings.class {
        Some(class) => choose(all, class)?,
        // Where no expectation depends on a class, the label may mean something else.
        None => match labels.get(CLASS).filter(|_| !expectation::classes(&all).is_empty()) {
            Some(class) => choose(all, class)?,
            None => all,
        },
    };
    Ok(PlannedExpectations { expectations, notes })
}

/// Adds the limit of the machine, where the target is a simulated volume whose name gives one.
fn add_machine(expectation: &mut ExpectationRecord, tests: &Tests<'_>) -> Result<(), AssessError> {
    let measure = Metric::parse(&expectation.metric).map(|quantity| quantity.kind);
    let in_bytes = match measure {
        Some(MetricKind::Iops) => false,
        Some(MetricKind::BytesPerSecond) => true,
        _ => return Ok(()),
    };
    let Some(job) = tests.job(&expectation.test) else { return Ok(()) };
    let mut paths = job.clones.iter().flat_map(|clone| &clone.paths);
    let (Some(path), Some(shape)) = (paths.next().filter(|path| is_simulated(path)), Shape::of(job)) else {
        return Ok(());
    };
    // Several volumes at once may have several machines.
    if paths.any(|other| other != path) {
        return Ok(());
    }
    let model = SimulatedVolume::named(path, tests.types)?.model;
    let Some((limit, most)) = volume::instance_limit(&model, &shape) else { return Ok(()) };
    let per_request = if in_bytes { shape.bytes() } else { 1.0 };
    let conditions = &mut expectation.conditions;
    if conditions.instance_limit.is_none_or(|known| limit * per_request < known) {
        conditions.instance_limit = Some(limit * per_request);
        conditions.instance_maximum = most.map(|most| most * per_request);
    }
    Ok(())
}

/// Labels with limits of the machine must be numbers, because checks depend on them.
fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), AssessError> {
    let numbers = [("instance_iops", MetricKind::Iops), ("instance_bandwidth", MetricKind::BytesPerSecond)];
    for (name, measure) in numbers {
        let Some(Err(reason)) = labels.get(name).map(|text| parse_value(measure, text)) else { continue };
        let hint = "write instance_iops=4000, instance_bandwidth=62.5MB";
        return Err(refuse(&format!("--label {name}"), reason, hint));
    }
    Ok(())
}

fn choose(mut all: Vec<ExpectationRecord>, class: &str) -> Result<Vec<ExpectationRecord>, AssessError> {
    let classes = expectation::classes(&all);
    if !classes.contains(&class) {
        let hint = match classes.as_slice() {
            [] => "omit --class: these expectations have no classes".to_owned(),
            classes => format!("use one of {}", classes.join(", ")),
        };
        return Err(refuse(class, "no expectation has this class", hint));
    }
    all.retain(|expectation| expectation.class.is_empty() || expectation.class == class);
    Ok(all)
}

fn refuse(text: &str, reason: impl Into<String>, hint: impl Into<String>) -> AssessError {
    AssessError::usage(format!("{text}: {}", reason.into()), hint)
}

const FORM: &str = "write TEST.METRIC>=VALUE, such as rand-read.iops>=5000 or lat-read.lat_ns.p99<5ms+-2%, \
                    or a volume type, such as aws-gp3?size=100GiB";

fn of_line(
    text: &str,
    settings: &ExpectationSettings,
    tests: &Tests<'_>,
) -> Result<ExpectationRecord, AssessError> {
    let (test, criterion) = parse(text, text, tests)?;
    check(text, &test, criterion.metric, tests)?;
    Ok(record("--expect", test, &criterion, settings.tolerance_percent))
}

/// The criterion `expect`, given in `text`, and its test: the only one where it names none.
fn parse(text: &str, expect: &str, tests: &Tests<'_>) -> Result<(String, Criterion), AssessError> {
    let mut criterion = Criterion::parse(expect).map_err(|reason| refuse(text, reason, FORM))?;
    if let MetricKind::Latency(_, statistic) = criterion.metric.kind
        && !statistic.is_recorded()
    {
        let reason = format!("{} is not recorded", statistic.name());
        return Err(refuse(text, reason, format!("use {}", Statistic::RECORDED)));
    }
    let is_test = |name: &str| tests.job(name).is_some() || tests.is_in_suite(name);
    let named = match (criterion.test.take(), criterion.metric.direction) {
        // A test may be called as a direction is.
        (None, Some(direction)) if is_test(direction.name()) => {
            criterion.metric.direction = None;
            Some(direction.name().to_owned())
        }
        (test, _) => test,
    };
    match (named, tests.planned) {
        (Some(test), _) => Ok((test, criterion)),
        (None, [only]) => Ok((only.id.clone(), criterion)),
        (None, _) => {
            let all: Vec<&str> = tests.planned.iter().map(|test| test.id.as_str()).collect();
            let reason = format!("it names no test, and the plan has {}", all.len());
            Err(refuse(
                text,
                reason,
                format!("write TEST.{} with one of the tests {}", criterion.metric, all.join(", ")),
            ))
        }
    }
}

fn record(source: &str, test: String, criterion: &Criterion, tolerance: Option<f64>) -> ExpectationRecord {
    ExpectationRecord {
        source: source.to_owned(),
        test,
        metric: criterion.metric.to_string(),
        is: criterion.comparison.sign().to_owned(),
        value: criterion.value,
        tolerance_percent: criterion.tolerance_percent.or(tolerance).unwrap_or(TOLERANCE_PERCENT),
        ..ExpectationRecord::default()
    }
}

/// Refuses an expectation of a test that does not run, or of a direction that the test does not have.
fn check(text: &str, test: &str, quantity: Metric, tests: &Tests<'_>) -> Result<(), AssessError> {
    let ids: Vec<&str> = tests.planned.iter().map(|test| test.id.as_str()).collect();
    let Some(job) = tests.job(test) else {
        let reason = match tests.is_in_suite(test) {
            true => format!("the test '{test}' is not part of this run"),
            false => format!("there is no test '{test}'"),
        };
        return Err(refuse(text, reason, format!("the tests are {}", ids.join(", "))));
    };
    let (io, pattern) = (&job.io, job.io.pattern);
    let is_synced = io.fsync_every > 0 || io.fdatasync_every > 0 || io.end_fsync;
    let does = match quantity.direction {
        Some(MetricDirection::Read) => pattern.reads(),
        Some(MetricDirection::Write) => pattern.writes(),
        Some(MetricDirection::Trim) => pattern.trims(),
        Some(MetricDirection::Sync) => is_synced,
        Some(MetricDirection::Total) | None => true,
    };
    let Some(direction) = quantity.direction.filter(|_| !does) else { return Ok(()) };
    let reason = format!("the test '{test}' ({}) has no {}", pattern.name(), direction.name());
    Err(refuse(text, reason, "omit the direction; it defaults to the one of the test"))
}

/// The expectations in the text of a file called `name`.
///
/// # Errors
/// As for a file.
pub(crate) fn of_text(
    name: &str,
    text: &str,
    settings: &ExpectationSettings,
    tests: &Tests<'_>,
) -> Result<Vec<ExpectationRecord>, AssessError> {
    of_filed(name, file::of_text(name, text)?, settings, tests)
}

fn of_filed(
    name: &str,
    all_filed: Vec<file::Filed>,
    settings: &ExpectationSettings,
    tests: &Tests<'_>,
) -> Result<Vec<ExpectationRecord>, AssessError> {
    let mut all = Vec::new();
    for filed in all_filed {
        let text = format!("{name}: {}", filed.expect);
        let (test, criterion) = parse(&text, &filed.expect, tests)?;
        // A file covers the whole suite; tests that this run omits stay inconclusive.
        let is_left_out = tests.job(&test).is_none() && tests.is_in_suite(&test);
        let is_rate = criterion.metric.kind == MetricKind::Iops;
        if filed.depth_per_iops.is_some() && !is_rate
            || filed.share.is_some() && criterion.metric.is_latency()
        {
            let hint = "use time with rates, and depth_per_iops with iops";
            return Err(refuse(&text, "time or depth_per_iops does not apply to this metric", hint));
        }
        if !is_left_out {
            check(&text, &test, criterion.metric, tests)?;
        }
        let mut conditions = filed.conditions;
        conditions.depth =
            conditions.depth.or(filed.depth_per_iops.map(|per_iops| per_iops * criterion.value));
        let expectation =
            record(&filed.source, test, &criterion, filed.tolerance_percent.or(settings.tolerance_percent));
        all.push(ExpectationRecord {
            class: filed.class,
            share: filed.share,
            conditions,
            cannot: is_left_out.then(|| "the test was not part of this run".to_owned()),
            ..expectation
        });
    }
    Ok(all)
}

/// The published specification of a volume type, applied to each test.
fn of_volume(
    text: &str,
    settings: &ExpectationSettings,
    tests: &Tests<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<ExpectationRecord>, AssessError> {
    let looks_like_a_line =
        text.split('?').next().is_some_and(|id| id.is_empty() || id.contains(['.', ' ', '=']));
    if looks_like_a_line {
        return Err(refuse(text, "it is neither a comparison nor a volume type", FORM));
    }
    let (id, rest) = text.split_once('?').unwrap_or((text, ""));
    let (rested, rest): (Vec<&str>, Vec<&str>) =
        rest.split('&').filter(|part| !part.is_empty()).partition(|part| part.starts_with("rested="));
    let is_rested = match rested.as_slice() {
        [] | ["rested=0"] => false,
        ["rested=1"] => true,
        _ => {
            return Err(refuse(
                text,
                "rested must be 0 or 1",
                "use rested=1 where the burst bucket is full when the run starts",
            ));
        }
    };
    let named = if rest.is_empty() { id.to_owned() } else { format!("{id}?{}", rest.join("&")) };
    let catalog = tests.types.catalogue()?;
    let target = SimulatedTarget::parse(catalog, &named)
        .map_err(|error| AssessError { hint: error.hint(), ..refuse(text, &error.reason, "") })?;
    if catalog.get(&target.id).is_some_and(CatalogEntry::is_as_measured) {
        let hint = "expect rates of your own, such as rand-read.iops>=5000";
        return Err(refuse(text, "its provider publishes no limits: it is known as measured alone", hint));
    }
    // Latency is not part of the published specification of a rate.
    let shown = target.assumptions.iter().filter(|assumption| !assumption.starts_with("its latency"));
    notes.extend(shown.map(|assumption| format!("published specification of {named}: {assumption}")));
    let specification = PublishedSpecification {
        source: text,
        model: &target.model,
        entry: catalog.get(&target.id),
        tolerance_percent: settings.tolerance_percent,
        is_rested,
    };
    let alone = tests.planned.iter().zip(&tests.plans).filter(|(test, _)| test.targets.len() == 1);
    let shaped = alone.filter_map(|(test, plan)| Some((test, Shape::of(plan.jobs.first()?)?)));
    let all: Vec<ExpectationRecord> =
        shaped.flat_map(|(test, shape)| volume::determine(&specification, &test.id, &shape)).collect();
    match all.is_empty() {
        true => Err(refuse(text, "it specifies nothing for these tests", "choose other tests with --only")),
        false => Ok(all),
    }
}

/// The expectations of a suite.
fn of_suite(tests: &Tests<'_>) -> Vec<ExpectationRecord> {
    let judged = tests.planned.iter().filter(|test| test.targets.len() == 1);
    let of_test = |test: &PlannedTest| {
        let of = |expected: &ExpectationRecord| ExpectationRecord {
            source: format!("suite {}", tests.suite.name),
            test: test.id.clone(),
            tolerance_percent: tests.suite.tolerance_percent,
            ..expected.clone()
        };
        test.expected.iter().map(of).collect::<Vec<_>>()
    };
    judged.flat_map(of_test).collect()
}
