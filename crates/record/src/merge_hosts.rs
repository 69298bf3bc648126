//! The runs of several hosts as one: hosts, workers, disks and their intervals are put one after the other, and every worker
//! names its host. What is added up is added by whoever reports it, so nothing is lost.

use crate::{Observed, RunRecord, TestRecord, TestStatus};

impl RunRecord {
    /// Takes in the run of another host that did the same at the same time. Times stay those since each host's own start. Tests
    /// with the same id become one; findings are left out, since they are to be made again.
    pub fn merge(&mut self, mut other: RunRecord) {
        let shift = self.header.hosts.len().max(1) as u32;
        self.header.hosts.resize_with(shift as usize, Default::default);
        other.header.hosts.resize_with(other.header.hosts.len().max(1), Default::default);
        self.header.hosts.append(&mut other.header.hosts);
        self.header.started_unix_ms = earliest(self.header.started_unix_ms, other.header.started_unix_ms);
        for (name, value) in other.header.labels {
            self.header.labels.entry(name).or_insert(value);
        }
        add_missing(&mut self.header.notes, other.header.notes);
        self.header.interrupted = self.header.interrupted.take().or(other.header.interrupted);
        self.status = worse(self.status, other.status);
        self.findings.clear();
        for mut test in other.tests {
            move_hosts(&mut test, shift);
            match self.tests.iter_mut().find(|mine| mine.id == test.id) {
                Some(mine) if mine.adds_up_with(&test) => merge_test(mine, test),
                _ => drop(self.push(test)),
            }
        }
    }
}

fn merge_test(mine: &mut TestRecord, mut other: TestRecord) {
    if worse(mine.status, other.status) != mine.status {
        (mine.status, mine.reason) = (other.status, other.reason);
    }
    mine.started_unix_ms = earliest(mine.started_unix_ms, other.started_unix_ms);
    mine.elapsed_ns = mine.elapsed_ns.max(other.elapsed_ns);
    mine.jobs.append(&mut other.jobs);
    mine.disks.append(&mut other.disks);
    mine.host_load.append(&mut other.host_load);
    if let (Some(Observed::Ping(mine)), Some(Observed::Ping(theirs))) =
        (mine.observed.as_mut(), other.observed.as_mut())
    {
        mine.merge(std::mem::take(&mut **theirs));
    }
    add_missing(&mut mine.notes, other.notes);
    mine.interrupted = mine.interrupted.take().or(other.interrupted);
}

fn move_hosts(test: &mut TestRecord, shift: u32) {
    let jobs = test.jobs.iter_mut().map(|job| &mut job.host);
    let disks = test.disks.iter_mut().map(|disk| &mut disk.host);
    let load = test.host_load.iter_mut().map(|interval| &mut interval.host);
    jobs.chain(disks).chain(load).for_each(|host| *host = host.saturating_add(shift));
}

/// Failed before incomplete before complete; a test that one host skipped is as it is on the other.
fn worse(one: TestStatus, other: TestStatus) -> TestStatus {
    let order = [TestStatus::Failed, TestStatus::Incomplete, TestStatus::Complete, TestStatus::Skipped];
    order.into_iter().find(|status| [one, other].contains(status)).unwrap_or(one)
}

/// The earlier of two times, of which 0 says nothing.
fn earliest(one: u64, other: u64) -> u64 {
    if one == 0 || other == 0 { one.max(other) } else { one.min(other) }
}

fn add_missing(notes: &mut Vec<String>, others: Vec<String>) {
    for note in others {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ping::Ping;
    use crate::{
        DiskOutcome, HostInterval, HostRecord, JobRecord, Latency, OpOutcome, PhaseOutcome, merge_jobs,
    };

    /// A run of one host with one worker for each list of latencies.
    fn run(hostname: &str, workers: &[Vec<u64>]) -> RunRecord {
        let job = |values: &Vec<u64>| {
            let mut lat = Latency::default();
            values.iter().for_each(|&ns| lat.record(ns));
            let ios = values.len() as u64;
            let read = OpOutcome { issued: ios, ios, bytes: ios * 4096, lat, ..Default::default() };
            JobRecord {
                measured: PhaseOutcome { end_ns: 9, read, ..Default::default() },
                ..Default::default()
            }
        };
        let mut run = RunRecord { status: TestStatus::Complete, ..Default::default() };
        run.header.hosts = vec![HostRecord { hostname: hostname.to_owned(), ..Default::default() }];
        run.tests = vec![TestRecord {
            id: "rand-read".to_owned(),
            status: TestStatus::Complete,
            jobs: workers.iter().map(job).collect(),
            observed: Some(Observed::Ping(Box::new(ping(workers)))),
            disks: vec![DiskOutcome { name: "vda".to_owned(), ..Default::default() }],
            host_load: vec![HostInterval::default()],
            ..Default::default()
        }];
        run
    }

    /// A ping with these latencies.
    fn ping(workers: &[Vec<u64>]) -> Ping {
        let mut ping = Ping::default();
        workers.iter().flatten().for_each(|&ns| ping.lat_ns.record(ns));
        ping.load.answered = ping.lat_ns.samples();
        ping
    }

    fn workers() -> impl Strategy<Value = Vec<Vec<u64>>> {
        proptest::collection::vec(proptest::collection::vec(0u64..1 << 42, 0..30), 1..4)
    }

    proptest! {
        #[test]
        fn two_hosts_merge_without_losing_a_bin(a in workers(), b in workers()) {
            let mut merged = run("a", &a);
            merged.merge(run("b", &b));
            let test = &merged.tests[0];
            let sum = merge_jobs(&test.jobs.iter().collect::<Vec<_>>()).measured.read;
            let mut expected = Latency::default();
            a.iter().chain(&b).flatten().for_each(|&ns| expected.record(ns));
            prop_assert_eq!(sum.ios, expected.samples());
            prop_assert_eq!(sum.bytes, expected.samples() * 4096);
            prop_assert_eq!(test.ping(), Some(&ping(&[a.concat(), b.concat()])));
            prop_assert_eq!(sum.lat, expected);
            let hosts: Vec<u32> = test.jobs.iter().map(|job| job.host).collect();
            prop_assert_eq!(hosts, [vec![0; a.len()], vec![1; b.len()]].concat());
            let names: Vec<&str> = merged.header.hosts.iter().map(|host| host.hostname.as_str()).collect();
            prop_assert_eq!(names, ["a", "b"]);
            prop_assert_eq!((test.disks[1].host, test.host_load[1].host), (1, 1));
            prop_assert_eq!(RunRecord::from_json(&merged.to_json()).unwrap(), merged);
        }
    }

    #[test]
    fn a_third_host_comes_after_those_already_merged() {
        let mut merged = run("a", &[vec![1]]);
        merged.merge(run("b", &[vec![2]]));
        let mut failed = run("c", &[vec![3]]);
        (failed.tests[0].status, failed.tests[0].reason) =
            (TestStatus::Failed, Some("write failed".to_owned()));
        failed.tests.push(TestRecord { id: "rand-write".to_owned(), ..Default::default() });
        merged.merge(failed);
        let test = &merged.tests[0];
        assert_eq!(test.jobs.iter().map(|job| job.host).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((test.status, test.reason.as_deref()), (TestStatus::Failed, Some("write failed")));
        assert_eq!((merged.tests.len(), merged.header.hosts.len()), (2, 3));
    }
}
