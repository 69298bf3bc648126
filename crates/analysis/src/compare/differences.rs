//! The differences in conditions between sources: all of them, before any number.

use std::collections::BTreeSet;

use fathom_model::{Nanos, units};
use fathom_record::{ActivityKind, FindingId, RunHeader, RunRecord};
use serde::Serialize;

use super::rows::{ComparedRow, RunTest};
use super::source::{ComparedSource, SourceRun};
use crate::steady::rate_duration::Lasting;

/// A condition in which sources differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its name.
    pub condition: &'static str,
    /// The tests that differ in it; empty for a condition of the whole run.
    pub tests: Vec<String>,
    /// Its value in each source; `None` where it is unknown, or the source lacks the tests.
    pub values: Vec<Option<String>>,
    /// The sources that have none of the tests: there is nothing to know.
    #[serde(skip)]
    lacking: Vec<usize>,
    /// The tests do different work, so they get no verdict.
    pub prevents_verdict: bool,
}

impl Difference {
    /// True where the source at `place` has one of the tests.
    pub fn has_tests(&self, place: usize) -> bool {
        !self.lacking.contains(&place)
    }
}

/// All differences between `sources`: of the loads first, then of the runs.
pub fn differences(sources: &[ComparedSource], rows: &[ComparedRow]) -> Vec<Difference> {
    let mut all = of_loads(rows);
    all.extend(of_tests(rows));
    all.extend(of_runs(sources));
    // A condition on every row that several sources have is one of the whole run.
    let shared: Vec<&str> = rows.iter().filter(|row| is_shared(row)).map(|row| row.test.as_str()).collect();
    for one in all.iter_mut().filter(|one| one.tests.len() > 1 && one.tests == shared) {
        one.tests.clear();
    }
    all
}

fn is_shared(row: &ComparedRow) -> bool {
    row.runs.iter().filter(|runs| !runs.is_empty()).count() > 1
}

/// When values make a difference.
#[derive(Clone, Copy, PartialEq)]
enum DiffersWhere {
    /// The known ones differ.
    Known,
    /// They differ, or some of them are unknown.
    PartlyUnknown,
    /// One is known: there is one only where something went wrong.
    Present,
}

/// The condition of one test, or of the whole run, with its `values`; `None` where they do not differ.
fn difference(
    condition: &'static str,
    row: Option<&ComparedRow>,
    values: Vec<Option<String>>,
    differs: DiffersWhere,
) -> Option<Difference> {
    let lacks = |source: &usize| row.is_some_and(|row| row.runs[*source].is_empty());
    let (lacking, having): (Vec<usize>, Vec<usize>) = (0..values.len()).partition(lacks);
    let known: BTreeSet<&String> = values.iter().flatten().collect();
    let (is_different, is_known) = (known.len() > 1, !known.is_empty());
    let is_one = match differs {
        DiffersWhere::Known => false,
        DiffersWhere::PartlyUnknown => is_known && having.iter().any(|source| values[*source].is_none()),
        DiffersWhere::Present => is_known,
    };
    (is_different || is_one).then(|| Difference {
        condition,
        tests: row.map(|row| row.test.clone()).into_iter().collect(),
        prevents_verdict: is_different && differs == DiffersWhere::PartlyUnknown,
        lacking,
        values,
    })
}

/// What the tests do: these differences prevent a verdict where the values are known.
fn of_loads(rows: &[ComparedRow]) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    for row in rows.iter().filter(|row| is_shared(row)) {
        let parts: Vec<_> =
            (0..row.runs.len()).map(|source| row.work_of(source).map(|work| work.parts())).collect();
        let Some(names) = parts.iter().flatten().next().map(|parts| parts.each_ref().map(|part| part.name))
        else {
            continue;
        };
        for (place, condition) in names.into_iter().enumerate() {
            let values = parts.iter().map(|parts| parts.as_ref()?[place].value.clone()).collect();
            add(&mut found, difference(condition, Some(row), values, DiffersWhere::PartlyUnknown));
        }
    }
    found
}

/// Other conditions of single tests.
fn of_tests(rows: &[ComparedRow]) -> Vec<Difference> {
    type Condition = (&'static str, DiffersWhere, fn(&RunTest) -> Option<String>);
    const CONDITIONS: [Condition; 5] = [
        ("status", DiffersWhere::Present, |run| (!run.is_usable()).then(|| run.status.name().to_owned())),
        ("runtime", DiffersWhere::Known, |run| (run.runtime_ns > 0).then(|| runtime(run.runtime_ns))),
        ("size", DiffersWhere::Known, |run| (run.size_bytes > 0).then(|| units::bytes(run.size_bytes))),
        ("engine", DiffersWhere::Known, |run| run.engine.clone()),
        ("burst credits", DiffersWhere::Known, |run| match run.duration.label {
            Lasting::Burst => Some("in use".to_owned()),
            Lasting::Sustained => Some("not needed".to_owned()),
            Lasting::Inconclusive => None,
        }),
    ];
    let mut found = Vec::new();
    for (condition, differs, of) in CONDITIONS {
        for row in rows.iter().filter(|row| is_shared(row)) {
            let values = row.runs.iter().map(|runs| joined(runs.iter().filter_map(of))).collect();
            add(&mut found, difference(condition, Some(row), values, differs));
        }
    }
    found
}

/// A runtime in whole seconds from 10 s on: a run ends with its last request.
fn runtime(ns: u64) -> String {
    const SECOND: u64 = 1_000_000_000;
    let rounded =
        if ns >= 10 * SECOND { (ns + SECOND / 2) / SECOND * SECOND } else { ns / 100_000_000 * 100_000_000 };
    units::duration(Nanos(rounded))
}

/// Conditions of whole runs.
fn of_runs(sources: &[ComparedSource]) -> Vec<Difference> {
    type Condition = (&'static str, fn(&ComparedSource) -> Option<String>);
    const CONDITIONS: [Condition; 18] = [
        ("figures", |source| Some(source.kind.name().to_owned())),
        ("tool", |source| joined(source.runs.iter().flat_map(|run| tools(&run.record)))),
        ("hosts", |source| of_headers(source, hosts)),
        ("host", |source| of_headers(source, |header| some(&header.host().hostname))),
        ("provider", |source| of_headers(source, |header| header.host().provider.name.clone())),
        ("instance type", |source| of_headers(source, |header| header.host().provider.instance_type.clone())),
        ("CPUs", |source| of_headers(source, cpus)),
        ("memory", |source| of_headers(source, |header| bytes(header.host().memory_bytes))),
        ("kernel", |source| of_headers(source, |header| some(&header.host().kernel))),
        ("file system", |source| {
            of_headers(source, |header| Some(header.conditions.target.filesystem.as_ref()?.fs_type.clone()))
        }),
        ("target", |source| of_headers(source, |header| some(&header.conditions.target.kind))),
        ("device", |source| {
            of_headers(source, |header| some(&header.conditions.target.devices.first()?.model))
        }),
        ("volume type", |source| source.volume.volume_type.clone()),
        ("volume size", volume_size),
        ("location", |source| {
            of_headers(source, locality).or_else(|| source.volume.location.map(str::to_owned))
        }),
        ("persistence", |source| source.volume.persistent.map(|is_kept| persistence(is_kept).to_owned())),
        ("first touch", first_touch),
        ("labels", |source| of_headers(source, labels)),
    ];
    let of_run = |(condition, of): Condition| {
        difference(condition, None, sources.iter().map(of).collect(), DiffersWhere::Known)
    };
    CONDITIONS.into_iter().filter_map(of_run).collect()
}

/// The word for a volume that outlives its instance, or does not.
pub fn persistence(is_persistent: bool) -> &'static str {
    if is_persistent { "persistent" } else { "ephemeral" }
}

/// The programs that made the measurements of a run, with their versions.
fn tools(record: &RunRecord) -> Vec<String> {
    let header = &record.header;
    let named = |name: &str, version: &str| format!("{name} {version}").trim().to_owned();
    let imported = record.tests.iter().filter_map(|test| test.imported());
    let mut tools: Vec<String> = imported.map(|test| named(&test.tool, &test.tool_version)).collect();
    if header.activity.kind() != ActivityKind::Import {
        tools.push(named(&format!("fathom {}", header.activity.kind().name()), &header.tool_version));
    }
    tools.retain(|tool| !tool.is_empty());
    tools
}

/// How many hosts the load came from.
fn hosts(header: &RunHeader) -> Option<String> {
    let merged = header.fleet.as_ref().map(|fleet| fleet.members.len());
    let count = merged.or((!header.hosts.is_empty()).then_some(1))?;
    Some(count.to_string())
}

fn cpus(header: &RunHeader) -> Option<String> {
    let host = header.host();
    let cpus = if host.cpus_allowed > 0 { host.cpus_allowed } else { host.cpus_online };
    (cpus > 0).then(|| cpus.to_string())
}

fn locality(header: &RunHeader) -> Option<String> {
    header.conditions.target.devices.iter().find_map(|device| device.locality.clone())
}

fn labels(header: &RunHeader) -> Option<String> {
    // The type has a row of its own.
    let labels = header.labels.iter().filter(|(name, _)| *name != "type");
    let labels: Vec<String> = labels.map(|(name, value)| format!("{name}={value}")).collect();
    (!labels.is_empty()).then(|| labels.join(" "))
}

fn volume_size(source: &ComparedSource) -> Option<String> {
    let of_device = |header: &RunHeader| bytes(header.conditions.target.devices.first()?.size_bytes);
    source.volume.size_bytes.and_then(bytes).or_else(|| of_headers(source, of_device))
}

fn first_touch(source: &ComparedSource) -> Option<String> {
    let inspected = source.runs.iter().any(|run| run.record.header.conditions.target.inspection.is_some());
    let is_found = |run: &SourceRun| run.record.findings.iter().any(|one| one.id == FindingId::FirstTouch);
    match source.runs.iter().any(is_found) {
        true => Some("first accesses were slower".to_owned()),
        false => inspected.then(|| "no penalty".to_owned()),
    }
}

fn bytes(bytes: u64) -> Option<String> {
    (bytes > 0).then(|| units::bytes(bytes))
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn of_headers(source: &ComparedSource, of: impl Fn(&RunHeader) -> Option<String>) -> Option<String> {
    joined(source.runs.iter().filter_map(|run| of(&run.record.header)))
}

/// Different values of the runs of a source.
fn joined(values: impl Iterator<Item = String>) -> Option<String> {
    let values: BTreeSet<String> = values.collect();
    (!values.is_empty()).then(|| values.into_iter().collect::<Vec<_>>().join(", "))
}

/// Adds a difference to the same one of other tests.
fn add(found: &mut Vec<Difference>, one: Option<Difference>) {
    let Some(one) = one else { return };
    let same = found.iter_mut().find(|other| {
        (other.condition, &other.values, &other.lacking, other.prevents_verdict)
            == (one.condition, &one.values, &one.lacking, one.prevents_verdict)
    });
    match same {
        Some(other) => other.tests.extend(one.tests),
        None => found.push(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::rows::matched_rows;
    use crate::fixture::{TestLoad, record};

    fn source(loads: &[TestLoad], change: impl Fn(&mut RunHeader)) -> ComparedSource {
        let mut record = record(loads);
        change(&mut record.header);
        ComparedSource::of_records([record])
    }

    fn of(sources: &[ComparedSource]) -> Vec<Difference> {
        differences(sources, &matched_rows(sources))
    }

    #[test]
    fn equal_conditions_are_not_listed() {
        let one = || source(&[TestLoad::default()], |_| {});
        assert_eq!(of(&[one(), one()]), []);
    }

    #[test]
    fn a_source_without_the_tests_has_no_unknown_condition() {
        let load = |id, seconds| TestLoad { id, seconds: vec![1.0; seconds], ..TestLoad::default() };
        let a = source(&[load("t", 12), load("u", 12)], |_| {});
        let b = source(&[load("t", 30), load("u", 12)], |_| {});
        let c = source(&[load("u", 12)], |_| {});
        let found = of(&[a, b, c]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].condition, &found[0].tests), ("runtime", &vec!["t".to_owned()]));
        assert_eq!([0, 1, 2].map(|place| found[0].has_tests(place)), [true, true, false]);
    }

    #[test]
    fn what_the_tests_do_comes_first_and_prevents_a_verdict() {
        let load =
            |id, depth, seconds| TestLoad { id, depth, seconds: vec![1.0; seconds], ..TestLoad::default() };
        let a = source(&[load("t", 1, 12), load("u", 8, 12)], |_| {});
        let b = source(&[load("t", 2, 30), load("u", 8, 30)], |header| {
            header.hosts[0].provider.instance_type = Some("large".to_owned());
            header.hosts[0].cpus_allowed = 8;
        });
        let found = of(&[a, b]);
        let names: Vec<(&str, bool)> =
            found.iter().map(|one| (one.condition, one.prevents_verdict)).collect();
        assert_eq!(names, [("queue depth", true), ("runtime", false), ("CPUs", false)]);
        assert_eq!(found[0].tests, ["t"]);
        assert!(found[1].tests.is_empty(), "a condition of all tests is one of the run");
        assert_eq!(found[1].values, [Some("12 s".to_owned()), Some("30 s".to_owned())]);
    }
}
