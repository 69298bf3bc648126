//! Merging record by record: each is added and dropped, so that memory does not grow with their series and histograms.

use std::collections::BTreeMap;

use super::alignment::TimeLine;
use super::jobs::MergedJob;
use super::pending::{PendingHost, windows};
use super::shape::{MergeRefusal, RunShape};
use super::{Capacity, FleetMember, FleetRecord, FleetTest, HostFinding, HostOutcome, RankNumbers};
use super::{LeftOutRecord, header};
use crate::{
    ActivityKind, DiskOutcome, Finding, FindingId, HostRecord, JobRecord, Observed, RunHeader, RunRecord,
    TestRecord, TestStatus,
};

/// Slices of all hosts that are kept until their common time is known, and of one host in one test at most and at least.
const MAX_SLICES: usize = 2 << 20;
const HOST_SLICES: std::ops::RangeInclusive<usize> = 16..=240;
/// Cells of the courses.
const MAX_CELLS: u64 = 120;

/// What may differ between records, and what is known of them beforehand.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeRules {
    /// Records of several versions of the program are merged.
    pub versions_may_differ: bool,
    /// Records of several kinds of targets are merged.
    pub targets_may_differ: bool,
    /// Ranks of the job, where the user says.
    pub ranks: Option<u32>,
    /// Records to come, as far as that is known.
    pub records: usize,
}

/// Merges records of several hosts that did the same.
#[derive(Debug)]
pub struct FleetMerger {
    rules: MergeRules,
    shape: Option<RunShape>,
    /// What the ranks of a role do, where the job has roles, and the first record of each.
    roles: BTreeMap<String, (RunShape, usize)>,
    header: RunHeader,
    hosts: Vec<HostRecord>,
    /// One worker of each record, by which the same run is known again.
    threads: BTreeMap<(String, u64, u32), usize>,
    ranks: BTreeMap<u32, usize>,
    /// Which numbers the ranks have.
    numbers: RankNumbers,
    /// All ranks are those of labels.
    are_labelled: bool,
    fleet: FleetRecord,
    tests: Vec<MergedTest>,
    capacity: Capacity,
    status: TestStatus,
}

/// One test of all hosts.
#[derive(Debug)]
struct MergedTest {
    /// Everything but jobs and hosts.
    record: TestRecord,
    line: TimeLine,
    jobs: Vec<MergedJob>,
    hosts: Vec<PendingHost>,
}

impl FleetMerger {
    /// Nothing merged yet.
    pub fn new(rules: MergeRules) -> FleetMerger {
        FleetMerger {
            rules,
            shape: None,
            roles: BTreeMap::new(),
            header: RunHeader::default(),
            hosts: Vec::new(),
            threads: BTreeMap::new(),
            ranks: BTreeMap::new(),
            numbers: RankNumbers::default(),
            are_labelled: true,
            fleet: FleetRecord::default(),
            tests: Vec::new(),
            capacity: Capacity::default(),
            status: TestStatus::Skipped,
        }
    }

    /// Records that were merged so far.
    pub fn merged(&self) -> usize {
        self.fleet.members.len()
    }

    /// Adds a record that was read from `source`.
    ///
    /// # Errors
    /// It is of another job, version or kind of target, or is there already; nothing of it is added then.
    pub fn add(&mut self, source: &str, mut record: RunRecord) -> Result<(), MergeRefusal> {
        let shape = RunShape::of(&record);
        self.check(&shape, &record)?;
        let jobs = || record.tests.iter().flat_map(|test| &test.jobs);
        let mut capacity = self.capacity;
        if !capacity.takes(jobs()) {
            let reason = "its counters cannot be added to those of the other records";
            return Err(MergeRefusal::new(reason, "was the file edited? leave it out"));
        }
        self.capacity = capacity;
        let place = self.fleet.members.len();
        let member = header::member(source, &record);
        let launch = header::launch(&record.header);
        self.ranks.extend(member.rank.map(|rank| (rank, place)));
        self.threads.extend(thread(&record).map(|thread| (thread, place)));
        self.are_labelled &= launch.as_ref().is_some_and(header::is_labelled);
        if let Some(launch) = &launch {
            self.numbers = match place {
                0 => launch.numbers,
                _ if launch.numbers == self.numbers => self.numbers,
                _ => RankNumbers::UNKNOWN,
            };
        }
        self.fleet.ranks = self.fleet.ranks.max(launch.and_then(|launch| launch.ranks));
        self.fleet.members.push(member);
        self.hosts.push(record.header.hosts.drain(..).next().unwrap_or_default());
        self.status = worse(self.status, record.status);
        let role = launch_role(&record.header);
        match role.as_ref().map(|role| self.roles.get_mut(role)) {
            None => {}
            Some(Some((known, _))) => known.extend(shape.clone()),
            Some(None) => self.roles.extend(role.map(|role| (role, (shape.clone(), place)))),
        }
        match &mut self.shape {
            Some(known) => {
                known.extend(shape);
                header::join(&mut self.header, record.header);
            }
            None => {
                self.shape = Some(shape);
                self.header = header::begin(record.header);
            }
        }
        let host = place as u32;
        record.findings.into_iter().for_each(|finding| self.add_finding(finding, host));
        let tests = record.tests.len().max(1);
        let slices = MAX_SLICES / tests / self.rules.records.max(1);
        let slices = slices.clamp(*HOST_SLICES.start(), *HOST_SLICES.end());
        record.tests.into_iter().for_each(|test| self.add_test(test, host, slices));
        Ok(())
    }

    /// Notes a record that should be there and cannot be read.
    pub fn add_unreadable(&mut self, source: &str, reason: &str) {
        let (source, reason) = (source.to_owned(), reason.to_owned());
        self.fleet.unreadable.push(LeftOutRecord { source, reason });
    }

    /// The merged record, without findings; `None` where no record was added.
    pub fn finish(self) -> Option<RunRecord> {
        self.shape.as_ref()?;
        let FleetMerger { rules, header, hosts, numbers, are_labelled, mut fleet, tests, status, .. } = self;
        let order = order(&fleet.members);
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &was)| places[was] = place as u32);
        let mut hosts: Vec<Option<HostRecord>> = hosts.into_iter().map(Some).collect();
        let hosts: Vec<HostRecord> = order.iter().filter_map(|&was| hosts[was].take()).collect();
        fleet.members = order.iter().map(|&was| fleet.members[was].clone()).collect();
        fleet.ranks = rules.ranks.or(fleet.ranks);
        let numbers = if are_labelled { header::labelled_numbers(&fleet) } else { numbers };
        fleet.missing = header::missing(&fleet, numbers);
        let is_simulated = fleet.members.iter().all(|member| member.started_unix_ms == 0);
        fleet.clock = header::agreement(&hosts, is_simulated);
        for found in &mut fleet.host_findings {
            found.hosts.iter_mut().for_each(|host| *host = places[*host as usize]);
            found.hosts.sort_unstable();
        }
        fleet.host_findings.sort_by_key(|found| std::cmp::Reverse(found.finding.severity));
        let tests = tests.into_iter().map(|test| test.finish(&places)).collect();
        let header = RunHeader { hosts, fleet: Some(fleet), ..header };
        Some(RunRecord { status, header, tests, ..RunRecord::default() })
    }

    fn check(&self, shape: &RunShape, record: &RunRecord) -> Result<(), MergeRefusal> {
        match shape.kind {
            // Of figures nothing is added up; their hosts are compared.
            ActivityKind::Bench
            | ActivityKind::Fio
            | ActivityKind::Ping
            | ActivityKind::Sweep
            | ActivityKind::Import => {}
            kind => {
                let hint = "records of bench, fio, ping and sweep, and imported figures, can be merged";
                return Err(MergeRefusal::new(format!("records of `fathom {kind}` cannot be merged"), hint));
            }
        }
        if record.header.fleet.is_some() {
            let hint = "merge the records of the hosts again, with those that are to be added";
            return Err(MergeRefusal::new("it is a merged record", hint));
        }
        if record.tests.is_empty() {
            let hint = "was the run interrupted before its first test? leave the record out";
            return Err(MergeRefusal::new("it has no tests", hint));
        }
        let Some(first) = &self.shape else { return Ok(()) };
        let source_of = |place: usize| self.fleet.members[place].source.as_str();
        let source = source_of(0);
        if shape.kind != first.kind {
            let kinds = [first.kind.to_string(), shape.kind.to_string()];
            return Err(MergeRefusal::job("the command", [&kinds[0], &kinds[1]], source));
        }
        if shape.suite != first.suite {
            let [first, other] = [first, shape].map(|shape| shape.suite.as_deref().unwrap_or("none"));
            return Err(MergeRefusal::job("the suite", [first, other], source));
        }
        // The ranks of a role do the same, and those of different roles do not.
        let alike = match launch_role(&record.header) {
            Some(role) => self.roles.get(&role).map(|(shape, place)| (shape, *place)),
            None => Some((first, 0)),
        };
        if let Some(refusal) = alike.and_then(|(alike, place)| alike.difference(shape, source_of(place))) {
            return Err(refusal);
        }
        if first.version != shape.version && !self.rules.versions_may_differ {
            let (first, other) = (&first.version, &shape.version);
            let reason = format!("it was written by fathom {other}, and {source} by fathom {first}");
            return Err(MergeRefusal::new(reason, "use one version on every host, or add --allow version"));
        }
        if first.target_kind != shape.target_kind && !self.rules.targets_may_differ {
            let [first, other] = [first, shape].map(|shape| shape.target_kind.replace('_', " "));
            let hint = "figures of different kinds of targets do not add up; --allow target merges them all the same";
            return Err(MergeRefusal::new(
                format!("its target is a {other}, and that of {source} a {first}"),
                hint,
            ));
        }
        if let Some(launch) = header::launch(&record.header) {
            // Ranks tell apart what one host began at the same time.
            let Some(&place) = self.ranks.get(&launch.rank) else { return Ok(()) };
            let reason = format!("it is of rank {}, and so is {}", launch.rank, source_of(place));
            return Err(MergeRefusal::new(reason, "are records of two jobs in one directory?"));
        }
        match thread(record).and_then(|thread| self.threads.get(&thread)) {
            Some(&place) => {
                let reason = format!("it is the same run as {}", source_of(place));
                Err(MergeRefusal::new(reason, "name each record once"))
            }
            None => Ok(()),
        }
    }

    fn add_finding(&mut self, finding: Finding, host: u32) {
        // That the samples of one host are few says nothing of those of all.
        if matches!(finding.id, FindingId::LowSample | FindingId::ShortRun) {
            return;
        }
        let alike = |known: &&mut HostFinding| {
            (&known.finding.id, &known.finding.tests) == (&finding.id, &finding.tests)
        };
        match self.fleet.host_findings.iter_mut().find(alike) {
            Some(known) => {
                known.finding.severity = known.finding.severity.max(finding.severity);
                if known.hosts.last() != Some(&host) {
                    known.hosts.push(host);
                }
            }
            None => self.fleet.host_findings.push(HostFinding { finding, hosts: vec![host] }),
        }
    }

    fn add_test(&mut self, mut test: TestRecord, host: u32, slices: usize) {
        let place = match self.tests.iter().position(|known| known.record.id == test.id) {
            Some(place) => place,
            None => {
                self.tests.push(MergedTest::begin(&test));
                self.tests.len() - 1
            }
        };
        let merged = &mut self.tests[place];
        merged.hosts.push(PendingHost::new(&test, host, slices));
        merged.line.reach(test.started_unix_ms);
        for job in std::mem::take(&mut test.jobs) {
            merged.add_job(job, test.started_unix_ms);
        }
        merged.join(test);
    }
}

impl MergedTest {
    /// A test that has what all hosts have in common and no host yet.
    fn begin(test: &TestRecord) -> MergedTest {
        let record = TestRecord {
            id: test.id.clone(),
            title: test.title.clone(),
            status: TestStatus::Skipped,
            fio: test.fio.clone(),
            started_unix_ms: test.started_unix_ms,
            ..TestRecord::default()
        };
        MergedTest { record, line: TimeLine::new(test.started_unix_ms), jobs: Vec::new(), hosts: Vec::new() }
    }

    fn add_job(&mut self, job: JobRecord, started_unix_ms: u64) {
        let shift_ns = self.line.shift_ns(started_unix_ms);
        match self.jobs.iter_mut().find(|known| known.is_of(&job)) {
            Some(known) => known.add(job, shift_ns),
            None => self.jobs.push(MergedJob::new(job, shift_ns.unwrap_or(0))),
        }
    }

    /// Takes in the rest of a test of one host.
    fn join(&mut self, mut other: TestRecord) {
        let mine = &mut self.record;
        if worse(mine.status, other.status) != mine.status {
            (mine.status, mine.reason) = (other.status, other.reason);
        }
        if other.started_unix_ms > 0 {
            mine.started_unix_ms = mine.started_unix_ms.min(other.started_unix_ms);
        }
        mine.elapsed_ns = mine.elapsed_ns.max(other.elapsed_ns);
        other.disks.into_iter().for_each(|disk| add_disk(&mut mine.disks, disk));
        match (mine.observed.as_mut(), other.observed.take()) {
            (Some(Observed::Ping(mine)), Some(Observed::Ping(theirs))) => mine.merge(*theirs),
            (None, observed @ Some(Observed::Ping(_))) => mine.observed = observed,
            _ => {}
        }
        header::add_missing(&mut mine.notes, other.notes);
        mine.interrupted = mine.interrupted.take().or(other.interrupted);
    }

    fn finish(self, places: &[u32]) -> TestRecord {
        let MergedTest { mut record, line, jobs, hosts } = self;
        let step_ns = jobs.iter().map(MergedJob::step_ns).max().unwrap_or(0);
        record.jobs = jobs.into_iter().map(|job| job.finish(&line)).collect();
        record.jobs.sort_by_key(|job| (job.phase, job.job));
        let (windows, apart) = windows(&hosts, &line);
        let end_ns = hosts.iter().filter_map(|host| host.end_ns(&line)).max().unwrap_or(0);
        let cell_ns = if windows.is_empty() { 0 } else { cell_ns(end_ns, step_ns) };
        let count = if cell_ns == 0 { 0 } else { end_ns.div_ceil(cell_ns) as usize };
        let finish = |host: PendingHost| host.finish(&line, cell_ns, count, places);
        let mut hosts: Vec<HostOutcome> = hosts.into_iter().map(finish).collect();
        hosts.sort_by_key(|host| host.host);
        if !windows.is_empty() {
            record.elapsed_ns = record.elapsed_ns.max(end_ns);
        }
        record.fleet = Some(FleetTest { hosts, windows, apart, cell_ns });
        record
    }
}

/// Length of the cells that divide this time: whole intervals, or smaller ones where there are few.
fn cell_ns(end_ns: u64, step_ns: u64) -> u64 {
    let step = step_ns.max(1);
    step.saturating_mul(end_ns.div_ceil(step).div_ceil(MAX_CELLS).max(1))
}

/// Adds the counters of a disk to those of the same name; intervals are left to the hosts' own records.
fn add_disk(disks: &mut Vec<DiskOutcome>, disk: DiskOutcome) {
    let bare = DiskOutcome { host: 0, intervals: Vec::new(), ..disk };
    match disks.iter_mut().find(|known| (&known.name, &known.under) == (&bare.name, &bare.under)) {
        Some(known) => {
            known.counters = known.counters.plus(&bare.counters);
            known.elapsed_ns = known.elapsed_ns.saturating_add(bare.elapsed_ns);
        }
        None => disks.push(bare),
    }
}

/// The places of members by rank, those without one behind, in the order of their coming.
fn order(members: &[FleetMember]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&place| (members[place].rank.is_none(), members[place].rank, place));
    order
}

/// What a process does, where those of its job do different things.
fn launch_role(header: &RunHeader) -> Option<String> {
    header.launch.as_ref().and_then(|launch| launch.role.clone())
}

/// Host, start and first thread of a run, which no two runs share; `None` of a simulated run, and where neither thread nor host
/// are known, as of imported figures.
fn thread(record: &RunRecord) -> Option<(String, u64, u32)> {
    let header = &record.header;
    let hostname = &header.host().hostname;
    let thread_id = record.tests.iter().flat_map(|test| &test.jobs).map(|job| job.thread_id).next();
    let is_known = header.started_unix_ms > 0 && (thread_id.is_some() || !hostname.is_empty());
    is_known.then(|| (hostname.clone(), header.started_unix_ms, thread_id.unwrap_or(0)))
}

/// Failed before incomplete before complete; a test that one host skipped is as it is on the other.
fn worse(one: TestStatus, other: TestStatus) -> TestStatus {
    let order = [TestStatus::Failed, TestStatus::Incomplete, TestStatus::Complete, TestStatus::Skipped];
    order.into_iter().find(|status| [one, other].contains(status)).unwrap_or(one)
}
