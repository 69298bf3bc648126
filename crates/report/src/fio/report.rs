//! What fio's text and JSON have in common: the entries of a record and the figures of their groups.

use std::collections::BTreeMap;

use super::idleness::CpuIdleness;
use fathom_model::plan::{FigureForm, UnifiedReporting};
use fathom_model::{Nanos, Op, units};
use fathom_record::{
    DiskOutcome, Finding, FleetTest, JobRecord, ReportEntry, RunRecord, Severity, TestRecord, TestStatus,
    TestSummary, entries,
};

use crate::fleet;

/// The fio whose output is imitated.
pub const FIO_VERSION: &str = "fio-3.42";

/// A record seen as fio reports it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioReport {
    /// The entries, in fio's order.
    pub entries: Vec<ReportEntry>,
    /// The devices under the targets.
    pub disks: Vec<DiskOutcome>,
    /// When the run ended, ms since the epoch; 0 in virtual time.
    pub finished_unix_ms: u64,
    /// Options of all jobs.
    pub global_options: Vec<(String, String)>,
    /// What fio has no place for.
    pub notes: Vec<String>,
    /// A program reads the text: it has fio's lines alone.
    pub is_for_programs: bool,
    /// The idle time of the CPUs, where it was asked for.
    pub idleness: Option<CpuIdleness>,
    /// All jobs of all hosts, where the records of several were merged.
    pub all_clients: Option<AllClients>,
}

/// All jobs of all hosts, as fio's client mode reports them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllClients {
    /// The jobs as one.
    pub entry: ReportEntry,
    /// The hosts, as a member of the JSON document.
    pub fleet: serde_json::Value,
}

/// Share of the I/Os outside the common time of several hosts from which on fio's rates are no longer theirs.
const MAX_OUTSIDE: f64 = 0.01;
/// fio's own name for the sum over its clients.
const ALL_CLIENTS: &str = "All clients";

impl FioReport {
    /// The report of all tests of a record; groups of later tests are numbered on from those before.
    pub fn new(record: &RunRecord) -> FioReport {
        let mut report = FioReport { notes: record.header.notes.clone(), ..FioReport::default() };
        for test in &record.tests {
            report.add(test);
        }
        if let Some(fleet) = fleet::json::member(record) {
            report.notes.extend(record.tests.iter().filter_map(apart));
            // Its findings stand with the hosts.
            report.all_clients = Some(AllClients { entry: all_clients(record), fleet });
            return report;
        }
        // Where fio's own words are expected only what puts a number in question is added; what failed fio tells itself.
        let reported = record.findings.iter().filter(|finding| finding.severity == Severity::Warning);
        report.notes.extend(reported.map(Finding::text));
        report
    }

    fn add(&mut self, test: &TestRecord) {
        let first_group = self.entries.last().map_or(0, |entry| entry.job.group.saturating_add(1));
        for mut entry in entries(test) {
            entry.job.group = entry.job.group.saturating_add(first_group);
            self.entries.push(entry);
        }
        let reports_disks = test.jobs.is_empty() || test.jobs.iter().any(|job| job.plan.measure.disk_util);
        for disk in test.disks.iter().filter(|_| reports_disks) {
            match self.disks.iter_mut().find(|known| known.name == disk.name && known.under == disk.under) {
                Some(known) => add_disk(known, disk),
                None => self.disks.push(disk.clone()),
            }
        }
        if test.started_unix_ms > 0 {
            self.finished_unix_ms = test.started_unix_ms.saturating_add(test.elapsed_ns / 1_000_000);
        }
        if self.global_options.is_empty() {
            self.global_options = test.jobs.first().map(|job| job.global_options.clone()).unwrap_or_default();
        }
        self.notes.extend(notes(test));
    }

    /// The figures of each group, ascending.
    pub(crate) fn groups(&self) -> BTreeMap<u32, GroupFigures> {
        groups(&self.entries)
    }
}

/// The figures of each group of these entries, ascending.
pub(crate) fn groups(entries: &[ReportEntry]) -> BTreeMap<u32, GroupFigures> {
    let mut groups: BTreeMap<u32, GroupFigures> = BTreeMap::new();
    for entry in entries {
        let group = groups.entry(entry.job.group).or_default();
        (group.unified, group.form) = (entry.job.plan.measure.unified, entry.job.plan.measure.figures);
        for op in Op::DATA {
            group.ops[op as usize].add(entry.job.measured.op(op).bytes, entry.op(op).runtime_ms);
        }
        let bytes = Op::DATA.into_iter().map(|op| entry.job.measured.op(op).bytes).sum();
        let runtime_ms = entry.ops.iter().map(|of| of.runtime_ms).max().unwrap_or(0);
        group.mixed.add(bytes, runtime_ms);
    }
    groups
}

fn all_clients(record: &RunRecord) -> ReportEntry {
    let counted = |job: &&JobRecord| job.plan.measure.stats;
    let jobs: Vec<&JobRecord> = record.tests.iter().flat_map(|test| &test.jobs).filter(counted).collect();
    let elapsed_ns = record.tests.iter().map(|test| test.elapsed_ns).sum();
    let mut entry = ReportEntry::new(&jobs, elapsed_ns);
    entry.job.name = ALL_CLIENTS.to_owned();
    (entry.job.group, entry.job.description) = (0, None);
    // Phases of several tests have no time in common.
    if let [test] = record.tests.as_slice()
        && test.fleet.as_ref().is_some_and(FleetTest::has_total)
    {
        count_over_common_time(&mut entry, test);
    }
    entry
}

/// Gives an entry the running times in which its I/Os are done at the rates of the common time: fio's forms divide by them.
fn count_over_common_time(entry: &mut ReportEntry, test: &TestRecord) {
    let summary = TestSummary::new(test);
    for (place, op) in [&summary.read, &summary.write, &summary.trim].into_iter().enumerate() {
        let Some(op) = op.as_ref().filter(|op| op.iops > 0.0) else { continue };
        let counted = entry.job.measured.op(Op::DATA[place]).ios;
        entry.ops[place].runtime_ms = ((counted as f64 / op.iops * 1e3).round() as u64).max(1);
    }
}

/// That fio's rates of jobs are none of the time that the hosts have in common.
fn apart(test: &TestRecord) -> Option<String> {
    let fleet = test.fleet.as_ref().filter(|fleet| fleet.hosts.len() > 1 && !test.jobs.is_empty())?;
    let common = match fleet.window_ns() {
        _ if !fleet.has_total() => "no time in common".to_owned(),
        _ if fleet.outside_fraction() <= MAX_OUTSIDE => return None,
        ns => format!("{} in common", units::duration(Nanos(ns))),
    };
    let of_all = match fleet.has_total() {
        true => "All clients has the rates over this time",
        false => "so does All clients",
    };
    Some(format!(
        "The hosts have {common}. IOPS and BW of jobs in fio's form count the I/Os of all hosts over the longest run of one; \
         {of_all}."
    ))
}

fn add_disk(known: &mut DiskOutcome, disk: &DiskOutcome) {
    known.counters = known.counters.plus(&disk.counters);
    known.elapsed_ns += disk.elapsed_ns;
}

/// What a reader should know of a test and fio's forms cannot say.
fn notes(test: &TestRecord) -> Vec<String> {
    let mut notes = test.notes.clone();
    let shown_by_a_job = test.jobs.iter().any(|job| job.error.is_some());
    if let Some(reason) =
        test.reason.as_ref().filter(|_| test.status != TestStatus::Complete && !shown_by_a_job)
    {
        notes.push(format!("{}: {reason}", test.status.name()));
    }
    for job in &test.jobs {
        if let Some(error) = &job.error {
            let hint = error.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            notes.push(format!("{}: {}{hint}", job.name, error.message));
        }
        if job.stuck {
            notes.push(format!("{}: a request did not come back from the kernel", job.name));
        }
    }
    notes
}

/// The figures of one group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupFigures {
    /// Read, write, trim.
    pub ops: [GroupOp; 3],
    /// All of them together.
    pub mixed: GroupOp,
    /// How the last entry reports them.
    pub unified: UnifiedReporting,
    pub form: FigureForm,
}

/// One direction of one group: totals and extremes over its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupOp {
    /// Bytes moved.
    pub bytes: u64,
    /// Bandwidth of the slowest entry, B/s.
    pub min_bandwidth: u64,
    /// Bandwidth of the fastest entry, B/s.
    pub max_bandwidth: u64,
    /// Shortest running time, ms.
    pub min_runtime_ms: u64,
    /// Longest running time, ms; 0 where nothing ran.
    pub max_runtime_ms: u64,
}

impl GroupOp {
    fn add(&mut self, bytes: u64, runtime_ms: u64) {
        if runtime_ms == 0 {
            return;
        }
        let bandwidth = per_second(bytes, runtime_ms);
        let first = self.max_runtime_ms == 0;
        self.bytes += bytes;
        self.min_bandwidth = if first { bandwidth } else { self.min_bandwidth.min(bandwidth) };
        self.max_bandwidth = self.max_bandwidth.max(bandwidth);
        self.min_runtime_ms = if first { runtime_ms } else { self.min_runtime_ms.min(runtime_ms) };
        self.max_runtime_ms = self.max_runtime_ms.max(runtime_ms);
    }

    /// All bytes over the longest running time, B/s.
    pub(crate) fn bandwidth(&self) -> u64 {
        per_second(self.bytes, self.max_runtime_ms)
    }

    /// `mean_kib` (KiB/s) as a percentage of the group's bandwidth, at most 100.
    pub(crate) fn percent_of(&self, mean_kib: f64) -> f64 {
        match self.bandwidth() {
            0 => 100.0,
            all => (mean_kib * 100.0 / (all as f64 / 1024.0)).min(100.0),
        }
    }
}

/// `count` over `runtime_ms` as a whole number per second; 0 where nothing ran.
pub(crate) fn per_second(count: u64, runtime_ms: u64) -> u64 {
    if runtime_ms == 0 { 0 } else { (u128::from(count) * 1000 / u128::from(runtime_ms)) as u64 }
}

/// Each count as a percentage of `total`; a share that is not zero is never below `least`.
pub(crate) fn shares<const N: usize>(counts: &[u64; N], total: u64, least: f64) -> [f64; N] {
    counts.map(|count| match (count, total) {
        (0, _) | (_, 0) => 0.0,
        // In fio's order of operations, which decides how 86.975 is rounded.
        _ => (count as f64 / total as f64 * 100.0).max(least),
    })
}

/// The shares an entry shows, computed once for text and JSON.
pub(crate) struct EntryShares {
    pub depth: [f64; 7],
    pub submit: [f64; 7],
    pub complete: [f64; 7],
    pub ns: [f64; 10],
    pub us: [f64; 10],
    pub ms: [f64; 12],
    pub user: f64,
    pub system: f64,
}

impl EntryShares {
    pub(crate) fn new(entry: &ReportEntry) -> EntryShares {
        let measured = &entry.job.measured;
        let issued: u64 = Op::DATA.iter().map(|&op| measured.op(op).issued).sum();
        let ios: u64 = Op::DATA.iter().map(|&op| measured.op(op).ios).sum();
        let cpu = |ns: u64| {
            if entry.job_runtime_ns == 0 { 0.0 } else { ns as f64 * 100.0 / entry.job_runtime_ns as f64 }
        };
        EntryShares {
            depth: shares(&measured.depth.0, issued, 0.1),
            submit: shares(&measured.submit.0, measured.submit.0.iter().sum(), 0.1),
            complete: shares(&measured.complete.0, measured.complete.0.iter().sum(), 0.1),
            ns: shares(&entry.classes.ns, ios, 0.01),
            us: shares(&entry.classes.us, ios, 0.01),
            ms: shares(&entry.classes.ms, ios, 0.01),
            user: cpu(measured.cpu.user_ns),
            system: cpu(measured.cpu.system_ns),
        }
    }
}

/// Labels of the depth shares.
pub(crate) const DEPTH_LABELS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// Labels of the batch shares.
pub(crate) const BATCH_LABELS: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// The errno that fio's forms show for a failure: 22 (EINVAL) for one that has none.
pub fn shown_errno(errno: i32) -> i32 {
    if errno == 0 { 22 } else { errno }
}

/// The errno that fio's forms show for an entry: that of the failure; 22 (EINVAL) for a failure that has none.
pub(crate) fn errno(entry: &ReportEntry) -> i32 {
    // Of a job that goes on after wrong data, as in fio.
    let continued = if entry.job.bad_blocks() > 0 { WRONG_DATA } else { 0 };
    entry.job.error.as_ref().map_or(continued, |error| shown_errno(error.errno))
}

/// errno of wrong data (EILSEQ).
const WRONG_DATA: i32 = 84;

/// Failed requests and the errno to show for them, where the job was to go on after errors or went on after those it ignores.
pub(crate) fn continued_errors(entry: &ReportEntry) -> Option<(u64, i32)> {
    let job = &entry.job;
    let total = job.errors.iter().map(|error| error.count).sum();
    let first = job.errors.first().map_or(errno(entry), |error| error.errno);
    let ignores = job.options.iter().chain(&job.global_options).any(|(name, _)| name == "ignore_error");
    let ignored = ignores || total > 0 && job.error.is_none();
    (job.continues_on_error() || ignored).then_some((total, first))
}

#[cfg(test)]
mod tests {
    use fathom_record::{FleetMerger, HostRecord, Interval, IntervalOp, MergeRules};

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// 1000 reads a second for 20 s.
    fn host(name: &str, started_unix_ms: u64) -> RunRecord {
        let mut job = JobRecord::default();
        let measured = &mut job.measured;
        measured.end_ns = 20 * SECOND_NS;
        let second = |second: u32| {
            let start_ns = u64::from(second) * SECOND_NS;
            let read = IntervalOp { ios: 1000, bytes: 4_096_000, ..IntervalOp::default() };
            Interval { tick: second, start_ns, end_ns: start_ns + SECOND_NS, read, ..Interval::default() }
        };
        measured.series = (0..20).map(second).collect();
        (measured.read.issued, measured.read.ios, measured.read.bytes) = (20_000, 20_000, 81_920_000);
        let test = TestRecord {
            status: TestStatus::Complete,
            started_unix_ms,
            jobs: vec![job],
            ..TestRecord::default()
        };
        let mut run = RunRecord { status: TestStatus::Complete, tests: vec![test], ..RunRecord::default() };
        run.header.started_unix_ms = started_unix_ms;
        run.header.hosts = vec![HostRecord { hostname: name.to_owned(), ..HostRecord::default() }];
        run
    }

    #[test]
    fn rates_of_hosts_that_were_apart_have_a_note() {
        let notes = |after_ms: u64| {
            let mut merger = FleetMerger::new(MergeRules::default());
            merger.add("a.json", host("a", 1_700_000_000_000)).unwrap();
            merger.add("b.json", host("b", 1_700_000_000_000 + after_ms)).unwrap();
            FioReport::new(&merger.finish().unwrap()).notes
        };
        assert_eq!(notes(0), [] as [&str; 0]);
        assert!(notes(5_000)[0].contains("The hosts have 15 s in common"), "{:?}", notes(5_000));
        // 40,000 reads, of which 2,000 a second are in the common time.
        let all = |after_ms: u64| {
            let mut merger = FleetMerger::new(MergeRules::default());
            merger.add("a.json", host("a", 1_700_000_000_000)).unwrap();
            merger.add("b.json", host("b", 1_700_000_000_000 + after_ms)).unwrap();
            let report = FioReport::new(&merger.finish().unwrap());
            report.all_clients.unwrap().entry.ops[0].runtime_ms
        };
        assert_eq!((all(0), all(5_000)), (20_000, 20_000));
        assert!(notes(3_600_000)[0].contains("The hosts have no time in common"), "{:?}", notes(3_600_000));
    }
}
