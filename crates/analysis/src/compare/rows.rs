//! The tests of several sources side by side: by id, else by what they did.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use fathom_model::Op;
use fathom_record::confidence::has_independent_batches;
use fathom_record::import::{ImportedTest, MissingReason};
use fathom_record::stability::Second;
use fathom_record::{FindingId, RunRecord, TestStatus, TestSummary};

use super::cell::FigureCell;
use super::figure::Figure;
use super::ratio::BlockPlace;
use super::source::{ComparedSource, SourceKind};
use super::surfaces::is_place;
use super::work::Work;
use crate::doubt::{FigureEffect, doubts_of};
use crate::rows::{RecordRow, rows};
use crate::steady::rate_duration::{Lasting, RateDuration};

/// A rate from this share of a published limit on is held by it.
const AT_LIMIT: f64 = 0.97;

/// One test of one run.
#[derive(Clone, Debug, Default)]
pub struct RunTest {
    /// Its id; of fio's jobs their name.
    pub id: String,
    /// The same for people.
    pub title: String,
    /// Where the run was read from.
    pub origin: String,
    /// What it did.
    pub work: Work,
    /// Its figures.
    pub summary: TestSummary,
    /// How it ended.
    pub status: TestStatus,
    /// Why it was skipped, failed or interrupted.
    pub reason: Option<String>,
    /// When it began, ms since the epoch; 0 where that is unknown.
    pub started_unix_ms: u64,
    /// Its block, where it was measured in turns with another target.
    pub block: Option<BlockPlace>,
    /// Half of the interval of the rate from within the run, as a share, where its seconds are independent.
    pub within_fraction: Option<f64>,
    /// How long its rate lasts.
    pub duration: RateDuration,
    /// Why the volume may be slower than these figures.
    pub flattered: Option<&'static str>,
    /// Why it may be faster.
    pub impeded: Option<&'static str>,
    /// It kept its data in memory, and what that puts in doubt beside a storage device.
    pub in_memory: Option<&'static str>,
    /// Bytes of the target that it used; 0 where that is unknown.
    pub size_bytes: u64,
    /// Its planned runtime, else the measured one, ns; 0 where neither is known.
    pub runtime_ns: u64,
    /// Hosts that the load came from.
    pub hosts: usize,
    /// I/Os were issued and none completed.
    pub is_stalled: bool,
    /// The engine, where it is known.
    pub engine: Option<String>,
    /// It ends when a set amount has been moved.
    pub ends_with_size: bool,
    /// The fio command that does the same.
    pub fio: String,
    /// It waits between I/Os, so that its rate says nothing of the volume.
    pub is_paced: bool,
    /// What another program printed of it.
    pub imported: Option<ImportedTest>,
}

impl RunTest {
    fn new(record: &RunRecord, origin: &str, row: &RecordRow<'_>) -> RunTest {
        let test = &row.test;
        let id = if row.is_own() { test.id.clone() } else { row.name().to_owned() };
        let doubt = |impedes: bool| {
            let has_effect = move |effect: FigureEffect| {
                if impedes { effect.impedes() } else { effect.flatters() }
            };
            let mut doubts = doubts_of(record, &test.id, has_effect);
            doubts.find(|(doubt, _)| doubt.id != FindingId::MemoryBacked).map(|(doubt, _)| doubt.reason)
        };
        let in_memory = doubts_of(record, &test.id, FigureEffect::flatters)
            .find(|(doubt, _)| doubt.id == FindingId::MemoryBacked)
            .map(|(doubt, _)| doubt.reason);
        let started =
            if test.started_unix_ms > 0 { test.started_unix_ms } else { record.header.started_unix_ms };
        let imported = test.imported();
        let stated = imported.and_then(|imported| imported.load.size_bytes);
        let planned = stated.unwrap_or_else(|| row.planned_size());
        let planned_ns = test.jobs.first().and_then(|job| job.plan.time.runtime).map(|runtime| runtime.0);
        RunTest {
            title: if row.is_own() { row.name().to_owned() } else { id.clone() },
            id,
            origin: origin.to_owned(),
            work: Work::of(test),
            status: test.status,
            reason: test.reason.clone(),
            started_unix_ms: started,
            block: record.header.interleaved.as_ref().map(BlockPlace::of),
            within_fraction: within_fraction(row),
            duration: row.duration().clone(),
            flattered: doubt(false),
            impeded: doubt(true),
            in_memory,
            size_bytes: if record.header.size_bytes > 0 { record.header.size_bytes } else { planned },
            runtime_ns: planned_ns.unwrap_or(row.summary.measured_ns),
            hosts: test.fleet.as_ref().map_or(1, |fleet| fleet.hosts.len()),
            is_stalled: is_stalled(row),
            engine: imported.map_or_else(
                || test.jobs.first().map(|job| job.engine().to_owned()),
                |imported| imported.load.engine.clone(),
            ),
            ends_with_size: !test.jobs.is_empty() && test.jobs.iter().all(|job| !job.plan.time.time_based),
            fio: test.fio.clone(),
            is_paced: is_paced(row),
            imported: imported.cloned(),
            summary: TestSummary::clone(&row.summary),
        }
    }

    /// True where the figures are those of the test as it was planned.
    pub fn is_usable(&self) -> bool {
        matches!(self.status, TestStatus::Complete)
    }

    /// True where the rate is that of a published limit, or above the sustained one.
    pub fn reaches_its_limit(&self) -> bool {
        let total = self.summary.total.as_ref().map(|total| total.iops);
        let limit = self.duration.volume.as_ref().and(self.duration.sustained_iops);
        total.zip(limit).is_some_and(|(iops, limit)| iops >= limit * AT_LIMIT)
    }

    /// The rate that can be held indefinitely, IOPS, where it is known.
    pub fn sustained_iops(&self) -> Option<f64> {
        let measured = || self.summary.total.as_ref().map(|total| total.iops);
        match self.duration.label {
            Lasting::Sustained => measured(),
            Lasting::Burst => self.duration.sustained_iops,
            Lasting::Inconclusive => None,
        }
    }
}

/// A ping waits for the next moment of its schedule, a job for its rate.
fn is_paced(row: &RecordRow<'_>) -> bool {
    let of_imported = |imported: &ImportedTest| {
        imported.tool == "ioping" || imported.entries.iter().any(|entry| entry.paced.is_some())
    };
    row.is_paced() || row.test.ping().is_some() || row.test.imported().is_some_and(of_imported)
}

/// Of a test of another program only what it says itself: figures that are missing are unknown.
fn is_stalled(row: &RecordRow<'_>) -> bool {
    if let Some(imported) = row.test.imported() {
        let is_zero = imported.total().is_some_and(|total| total.iops.is_some_and(|iops| iops.value == 0.0));
        return is_zero || imported.missing.iter().any(|missing| missing.reason == MissingReason::Stalled);
    }
    let completed = row.summary.total.as_ref().is_some_and(|total| total.ios > 0);
    !completed && row.summary.measured_ns > 0 && row.test.status != TestStatus::Skipped
}

/// The seconds of a run make an interval where they are independent of each other, and the rate has not fallen.
fn within_fraction(row: &RecordRow<'_>) -> Option<f64> {
    let rates: Vec<f64> = row.seconds.iter().map(Second::iops).collect();
    let has_fallen = crate::steady::levels::fall(&rates).is_some();
    let stability = row.summary.stability.filter(|_| has_independent_batches(&rates) && !has_fallen)?;
    Some(stability.mean_ci95_fraction)
}

/// A figure of a test with its cell of each source.
#[derive(Clone, Debug, PartialEq)]
pub struct RowFigure {
    pub figure: Figure,
    pub cells: Vec<FigureCell>,
}

/// A test of several sources.
#[derive(Clone, Debug, Default)]
pub struct ComparedRow {
    /// The id under which reports name it: that of the first source that has it.
    pub test: String,
    /// The same for people.
    pub title: String,
    /// Its runs of each source, in the order of the sources.
    pub runs: Vec<Vec<RunTest>>,
    /// Where the figures of each source come from.
    pub kinds: Vec<SourceKind>,
    figures: OnceCell<Vec<RowFigure>>,
}

impl ComparedRow {
    /// The figures that any source has, in the order of reports: all parts of a comparison are views of them.
    pub fn figures(&self) -> &[RowFigure] {
        let of_figure = |figure: Figure| {
            let cells = (0..self.runs.len()).map(|source| figure.cell(self, source));
            RowFigure { figure, cells: cells.collect() }
        };
        self.figures.get_or_init(|| Figure::all_of(self).into_iter().map(of_figure).collect())
    }

    /// What the runs of a source did.
    pub fn work_of(&self, source: usize) -> Option<&Work> {
        self.runs[source].first().map(|run| &run.work)
    }

    /// True where both sources have the test, and nothing that is known of both loads differs.
    pub fn is_comparable(&self, one: usize, other: usize) -> bool {
        let works = self.work_of(one).zip(self.work_of(other));
        works.is_some_and(|(one, other)| !one.differs_from(other))
    }

    /// The runs of a source whose figures are those of the test as planned.
    pub fn usable(&self, source: usize) -> impl Iterator<Item = &RunTest> {
        self.runs[source].iter().filter(|run| run.is_usable())
    }
}

/// The tests of `sources`, in the order of the first that has each.
pub fn matched_rows(sources: &[ComparedSource]) -> Vec<ComparedRow> {
    let mut matched: Vec<ComparedRow> = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        for tests in repeated(source) {
            let place = place_of(&matched, index, &tests[0]);
            let row = match place {
                Some(place) => &mut matched[place],
                None => {
                    let test = free_name(&matched, &tests[0].id);
                    let title = tests[0].title.clone();
                    matched.push(ComparedRow {
                        test,
                        title,
                        runs: vec![Vec::new(); sources.len()],
                        kinds: sources.iter().map(|source| source.kind).collect(),
                        figures: OnceCell::new(),
                    });
                    matched.last_mut().expect("a row was just added")
                }
            };
            row.runs[index] = tests;
        }
    }
    matched.iter_mut().for_each(name_totals);
    matched.iter_mut().for_each(mark_fixed_sizes);
    name_operations(&mut matched);
    matched
}

/// The tests of one run, each by itself.
pub(super) fn own_rows(record: &RunRecord) -> Vec<ComparedRow> {
    let rows = rows(record).into_iter().filter(|row| !is_place(record, &row.test.id));
    let row = |row: RecordRow<'_>| {
        let run = RunTest::new(record, "", &row);
        ComparedRow {
            test: run.id.clone(),
            title: run.title.clone(),
            runs: vec![vec![run]],
            kinds: vec![SourceKind::Imported],
            figures: OnceCell::new(),
        }
    };
    rows.map(row).collect()
}

/// Where all others did one operation, figures that a source states without one are of the same.
fn name_totals(row: &mut ComparedRow) {
    let ops_of = |run: &RunTest| {
        let TestSummary { read, write, trim, .. } = &run.summary;
        [(Op::Read, read), (Op::Write, write), (Op::Trim, trim)]
            .into_iter()
            .filter(|(_, op)| op.is_some())
            .map(|(op, _)| op)
            .collect::<Vec<_>>()
    };
    let mut known: Vec<Op> = row.runs.iter().flatten().flat_map(ops_of).collect();
    known.dedup();
    let [op] = known.as_slice() else { return };
    let without = row.runs.iter_mut().flatten().filter(|run| ops_of(run).is_empty());
    for run in without {
        let Some(imported) = &mut run.imported else { continue };
        for entry in &mut imported.entries {
            if let Some(total) = entry.total.take() {
                *entry.op_mut(*op) = total;
            }
        }
        for place in &mut imported.places {
            if let Some(rest) = place.figures.strip_prefix("total.") {
                place.figures = format!("{}.{rest}", op.name());
            }
        }
        let total = run.summary.total.clone();
        match op {
            Op::Read => run.summary.read = total,
            Op::Write => run.summary.write = total,
            _ => run.summary.trim = total,
        }
    }
}

/// Jobs of one name that did different operations are named by them: `test-randread` and `test-randwrite`.
fn name_operations(matched: &mut [ComparedRow]) {
    let id =
        |row: &ComparedRow| row.runs.iter().flatten().next().map(|run| run.id.clone()).unwrap_or_default();
    let operation = |row: &ComparedRow| {
        let work = row.runs.iter().flatten().next()?.work.operation.clone()?;
        work.split(' ').next().map(str::to_owned)
    };
    for place in 0..matched.len() {
        let own = id(&matched[place]);
        let alike: Vec<usize> = (0..matched.len()).filter(|other| id(&matched[*other]) == own).collect();
        let names: Option<BTreeSet<String>> = alike.iter().map(|other| operation(&matched[*other])).collect();
        if alike.len() < 2 || alike[0] != place || names.is_none_or(|names| names.len() < alike.len()) {
            continue;
        }
        for other in alike {
            let name = operation(&matched[other]).map(|operation| format!("{own}-{operation}"));
            if let Some(name) = name.filter(|name| matched.iter().all(|row| row.test != *name)) {
                matched[other].title.clone_from(&name);
                matched[other].test = name;
            }
        }
    }
}

/// Tests of other programs that moved the same amount in different times ended with their size, although their output does not say so.
fn mark_fixed_sizes(row: &mut ComparedRow) {
    const SAME: f64 = 1e-3;
    const APART: f64 = 1e-2;
    let moved = |run: &RunTest| {
        let bytes = run.summary.total.as_ref().map_or(0, |total| total.bytes);
        (run.imported.is_some() && bytes > 0 && run.summary.measured_ns > 0)
            .then_some((bytes as f64, run.summary.measured_ns as f64))
    };
    let all: Vec<(f64, f64)> = row.runs.iter().flatten().filter_map(moved).collect();
    let differ = |one: f64, other: f64, least: f64| (one / other).ln().abs() > least;
    let Some(&(bytes, ns)) = all.first() else { return };
    let is_fixed =
        all.iter().all(|one| !differ(one.0, bytes, SAME)) && all.iter().any(|one| differ(one.1, ns, APART));
    if is_fixed {
        let imported = row.runs.iter_mut().flatten().filter(|run| run.imported.is_some());
        imported.for_each(|run| run.ends_with_size = true);
    }
}

/// The tests of one source, each with its repetitions in other runs: those of the same id that did the same.
fn repeated(source: &ComparedSource) -> Vec<Vec<RunTest>> {
    let mut all: Vec<Vec<RunTest>> = Vec::new();
    for run in &source.runs {
        let mut taken = Vec::new();
        for row in rows(&run.record).into_iter().filter(|row| !is_place(&run.record, &row.test.id)) {
            let test = RunTest::new(&run.record, &run.origin, &row);
            let is_same =
                |known: &[RunTest]| known[0].id == test.id && !known[0].work.differs_from(&test.work);
            match (0..all.len()).find(|place| !taken.contains(place) && is_same(&all[*place])) {
                Some(place) => {
                    taken.push(place);
                    all[place].push(test);
                }
                None => {
                    taken.push(all.len());
                    all.push(vec![test]);
                }
            }
        }
    }
    all
}

/// The row that a test of source `index` belongs to: the same id and load, else the only row of the same load, else the same id
/// and operation.
fn place_of(matched: &[ComparedRow], index: usize, test: &RunTest) -> Option<usize> {
    let free = |row: &ComparedRow| row.runs[index].is_empty();
    let find = |is_it: &dyn Fn(&ComparedRow, &Work) -> bool| {
        let first_work = |row: &ComparedRow| row.runs.iter().flatten().next().map(|run| run.work.clone());
        let places = matched.iter().enumerate().filter(|(_, row)| free(row));
        let fits = places.filter(|(_, row)| first_work(row).is_some_and(|work| is_it(row, &work)));
        fits.map(|(place, _)| place).collect::<Vec<_>>()
    };
    let same = find(&|row, work| row.test == test.id && !work.differs_from(&test.work));
    let alike = find(&|_, work| work.is_like(&test.work));
    let named = find(&|row, work| row.test == test.id && work.has_operation_of(&test.work));
    match (same.first(), alike.as_slice()) {
        (Some(place), _) => Some(*place),
        (None, [place]) => Some(*place),
        (None, _) => named.first().copied(),
    }
}

/// `id`, with a number where another row has it.
fn free_name(matched: &[ComparedRow], id: &str) -> String {
    let mut names = std::iter::once(id.to_owned()).chain((2..).map(|number| format!("{id} ({number})")));
    names.find(|name| matched.iter().all(|row| row.test != *name)).unwrap_or_else(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, record};

    fn source(runs: &[&[TestLoad]]) -> ComparedSource {
        ComparedSource::of_records(runs.iter().map(|loads| record(loads)))
    }

    fn load(id: &'static str, depth: u32) -> TestLoad {
        TestLoad { id, depth, ..TestLoad::default() }
    }

    fn shape(rows: &[ComparedRow]) -> Vec<(&str, Vec<usize>)> {
        rows.iter().map(|row| (row.test.as_str(), row.runs.iter().map(Vec::len).collect())).collect()
    }

    #[test]
    fn rows_match_by_id_and_else_by_what_was_done() {
        let a = source(&[&[load("one", 1), load("deep", 64), load("only-a", 4)]]);
        let b = source(&[&[load("single", 1), load("deep", 64), load("only-b", 2)]]);
        let rows = matched_rows(&[a, b]);
        let expected =
            [("one", vec![1, 1]), ("deep", vec![1, 1]), ("only-a", vec![1, 0]), ("only-b", vec![0, 1])];
        assert_eq!(shape(&rows), expected);
        assert!(rows[0].is_comparable(0, 1) && !rows[2].is_comparable(0, 1));
    }

    #[test]
    fn a_test_of_the_same_name_with_another_load_stays_beside_it_but_is_not_comparable() {
        let rows = matched_rows(&[source(&[&[load("t", 1)]]), source(&[&[load("t", 2)]])]);
        assert_eq!(shape(&rows), [("t", vec![1, 1])]);
        assert!(!rows[0].is_comparable(0, 1));
        // Another operation is another test.
        let write = TestLoad { rw: "randwrite", ..load("t", 1) };
        let rows = matched_rows(&[source(&[&[load("t", 1)]]), source(&[&[write]])]);
        assert_eq!(shape(&rows), [("t-randread", vec![1, 0]), ("t-randwrite", vec![0, 1])]);
    }

    #[test]
    fn repetitions_are_the_tests_of_other_runs_that_did_the_same() {
        let tests = [load("t", 1), load("u", 8)];
        let rows = matched_rows(&[source(&[&tests, &tests, &[load("t", 2)]])]);
        assert_eq!(shape(&rows), [("t", vec![2]), ("u", vec![2]), ("t (2)", vec![1])]);
    }

    #[test]
    fn only_independent_seconds_make_an_interval() {
        let of = |seconds: Vec<f64>| {
            let load = TestLoad { seconds, iops: 1000.0, ..TestLoad::default() };
            matched_rows(&[source(&[&[load]])])[0].runs[0][0].within_fraction
        };
        let noise = |at: usize| 1.0 + ((at * 7919 % 101) as f64 / 50.0 - 1.0) * 0.05;
        assert!(of((0..40).map(noise).collect()).is_some());
        assert_eq!(of((0..40).map(|at| 1.0 + at as f64 / 100.0).collect()), None);
        assert_eq!(of(vec![1.0; 5]), None);
        assert_eq!(of([vec![1.0; 20], vec![0.1; 20]].concat()), None);
    }
}
