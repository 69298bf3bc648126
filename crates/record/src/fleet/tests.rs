//! Merging records of several hosts: nothing is lost, nothing is counted twice, and what cannot be merged is named.

use fathom_stats::series;
use proptest::prelude::*;

use super::*;
use crate::ping::Ping;
use crate::{
    Activity, FindingId, Interval, IntervalOp, Latency, Observed, OpOutcome, PhaseOutcome, RunHeader,
    RunRecord, Severity, TestRecord, TestSummary, entries, latency_bin, merge_jobs,
};

const TICK: u64 = 500_000_000;
const START_MS: u64 = 1_700_000_000_000;

/// A worker with these latencies, spread evenly over intervals of half a second.
fn worker(latencies: &[u64], ticks: u32) -> JobRecord {
    let mut series: Vec<Interval> = Vec::new();
    for tick in 0..ticks {
        let start_ns = u64::from(tick) * TICK;
        series.push(Interval { tick, start_ns, end_ns: start_ns + TICK, ..Interval::default() });
    }
    let mut lat = Latency::default();
    for (place, &ns) in latencies.iter().enumerate() {
        lat.record(ns);
        let read =
            IntervalOp { ios: 1, bytes: 4096, clat_sum_ns: ns, clat_bins: vec![(latency_bin(ns) as u16, 1)] };
        let tick = place as u32 % ticks;
        let place = series[tick as usize].clone();
        series::merge(
            &mut series,
            &[Interval {
                read,
                ..Interval { tick, start_ns: place.start_ns, end_ns: place.end_ns, ..Interval::default() }
            }],
        );
    }
    let ios = latencies.len() as u64;
    let read =
        OpOutcome { issued: ios, ios, bytes: ios * 4096, clat: lat.clone(), lat, ..OpOutcome::default() };
    let measured = PhaseOutcome { end_ns: u64::from(ticks) * TICK, read, series, ..PhaseOutcome::default() };
    JobRecord { name: "job".to_owned(), measured, ..JobRecord::default() }
}

/// A run of one host that began so many ms after the first.
fn run(hostname: &str, after_ms: u64, workers: Vec<JobRecord>) -> RunRecord {
    let mut header = RunHeader { started_unix_ms: START_MS + after_ms, ..RunHeader::default() };
    header.hosts = vec![HostRecord { hostname: hostname.to_owned(), ..HostRecord::default() }];
    header.tool_version = "1.0.0".to_owned();
    let jobs = workers
        .into_iter()
        .enumerate()
        .map(|(clone, job)| JobRecord { clone: clone as u32, thread_id: 7 + clone as u32, ..job })
        .collect();
    let test = TestRecord {
        id: "rand-read".to_owned(),
        status: TestStatus::Complete,
        started_unix_ms: START_MS + after_ms,
        elapsed_ns: 10 * TICK,
        jobs,
        ..TestRecord::default()
    };
    RunRecord { status: TestStatus::Complete, header, tests: vec![test], ..RunRecord::default() }
}

fn merged(runs: Vec<RunRecord>) -> RunRecord {
    let mut merger = FleetMerger::new(MergeRules { records: runs.len(), ..MergeRules::default() });
    for (place, run) in runs.into_iter().enumerate() {
        merger.add(&format!("{place}.json"), run).unwrap();
    }
    merger.finish().unwrap()
}

fn fleet(record: &RunRecord) -> &FleetTest {
    record.tests[0].fleet.as_ref().unwrap()
}

fn even(count: usize) -> Vec<u64> {
    vec![1_000_000; count]
}

fn workers() -> impl Strategy<Value = Vec<Vec<u64>>> {
    proptest::collection::vec(proptest::collection::vec(0u64..1 << 42, 0..30), 1..4)
}

proptest! {
    #[test]
    fn hosts_merge_without_losing_an_io(
        hosts in proptest::collection::vec((workers(), 0u64..4_000, 1u32..9), 1..5)
    ) {
        let runs = hosts.iter().enumerate().map(|(place, (latencies, after_ms, ticks))| {
            let workers = latencies.iter().map(|values| worker(values, *ticks)).collect();
            run(&format!("h{place}"), *after_ms, workers)
        });
        let merged = merged(runs.collect());
        let mut expected = Latency::default();
        let all = || hosts.iter().flat_map(|(latencies, ..)| latencies.iter().flatten());
        all().for_each(|&ns| expected.record(ns));
        let test = &merged.tests[0];
        let sum = merge_jobs(&test.jobs.iter().collect::<Vec<_>>()).measured;
        prop_assert_eq!((sum.read.ios, sum.read.bytes), (expected.samples(), expected.samples() * 4096));
        prop_assert_eq!(&sum.read.lat, &expected);
        let ios = |interval: &Interval| interval.read.ios;
        prop_assert_eq!(sum.series.iter().map(ios).sum::<u64>(), expected.samples());
        let binned: u64 =
            sum.series.iter().flat_map(|interval| &interval.read.clat_bins).map(|&(_, count)| count).sum();
        prop_assert_eq!(binned, expected.samples());
        let fleet = fleet(&merged);
        prop_assert_eq!(fleet.hosts.iter().map(|host| host.ios[0]).sum::<u64>(), expected.samples());
        for host in fleet.hosts.iter().filter(|host| !host.course.is_empty()) {
            prop_assert_eq!(host.course.iter().sum::<u64>(), host.ios[0]);
        }
        let in_windows: f64 = fleet.windows.iter().map(|window| window.ios[0]).sum();
        prop_assert!(in_windows <= expected.samples() as f64 + 1e-6);
        let workers: usize = hosts.iter().map(|(latencies, ..)| latencies.len()).sum();
        prop_assert_eq!(entries(test)[0].workers as usize, workers);
        prop_assert_eq!(RunRecord::from_json(&merged.to_json()).unwrap(), merged);
    }
}

#[test]
fn rates_are_those_of_the_common_window() {
    // 100 and 300 IOPS for 5 s, the second 2 s later.
    let runs =
        vec![run("a", 0, vec![worker(&even(500), 10)]), run("b", 2_000, vec![worker(&even(1500), 10)])];
    let merged = merged(runs);
    let fleet = fleet(&merged);
    assert_eq!(fleet.start_spread_ns(), 2_000_000_000);
    let window = &fleet.windows[0];
    assert_eq!((window.start_ns, window.end_ns), (2_000_000_000, 5_000_000_000));
    assert!((fleet.outside_fraction() - 0.4).abs() < 1e-9);
    let summary = TestSummary::new(&merged.tests[0]);
    let total = summary.total.unwrap();
    assert!((total.iops - 400.0).abs() < 1e-6, "{}", total.iops);
    assert_eq!((total.ios, summary.measured_ns), (2000, 3_000_000_000));
    assert!(summary.stability.unwrap().cv < 1e-9);
    let own: Vec<f64> = fleet.hosts.iter().map(|host| host.iops).collect();
    assert_eq!(own, [100.0, 300.0]);
}

#[test]
fn hosts_an_hour_apart_have_no_rate_in_common() {
    let runs = [("a", 0), ("b", 3_600_000), ("c", 400_000_000)];
    let merged = merged(runs.map(|(name, after)| run(name, after, vec![worker(&even(500), 10)])).into());
    let fleet = fleet(&merged);
    assert!(fleet.windows.is_empty() && fleet.cell_ns == 0);
    assert_eq!(fleet.start_spread_ns(), 400_000_000_000_000);
    let total = TestSummary::new(&merged.tests[0]).total.unwrap();
    assert_eq!((total.ios, total.iops), (1500, 0.0));
    assert_eq!(fleet.hosts[2].iops, 100.0);
    assert_eq!(RunRecord::from_json(&merged.to_json()).unwrap(), merged);
}

/// Reads for 60 s and, after a stonewall, writes for 5 s; the second host begins 10 s later.
#[test]
fn a_phase_without_common_time_leaves_no_total() {
    let two_phases = || {
        let mut written = worker(&even(50), 10);
        let phase = &mut written.measured;
        (phase.start_ns, phase.end_ns) = (120 * TICK, 130 * TICK);
        for interval in &mut phase.series {
            interval.tick += 120;
            (interval.start_ns, interval.end_ns) =
                (interval.start_ns + 120 * TICK, interval.end_ns + 120 * TICK);
            interval.write = std::mem::take(&mut interval.read);
        }
        phase.write = std::mem::take(&mut phase.read);
        vec![worker(&even(600), 120), JobRecord { job: 1, phase: 1, ..written }]
    };
    let merged = merged(vec![run("a", 0, two_phases()), run("b", 10_000, two_phases())]);
    let fleet = fleet(&merged);
    assert_eq!((fleet.windows.len(), fleet.apart.as_slice()), (1, [1].as_slice()));
    let summary = TestSummary::new(&merged.tests[0]);
    let rate = |op: Option<crate::OpSummary>| op.unwrap().iops;
    assert!((rate(summary.read) - 20.0).abs() < 1e-6);
    assert_eq!((rate(summary.write), rate(summary.total)), (0.0, 0.0));
    assert_eq!(summary.stability, None);
}

/// Two hosts, each with a schedule of 1000 requests a second, 30 s apart: no rate was due in sum.
#[test]
fn schedules_of_several_hosts_have_no_rate_in_common() {
    let scheduled = || {
        let mut job = worker(&even(600), 120);
        job.measured.schedule_end_ns = job.measured.end_ns;
        job.measured.read.open_loop.response = job.measured.read.lat.clone();
        job
    };
    let one = run("a", 0, vec![scheduled()]);
    let offered = |record: &RunRecord| {
        TestSummary::new(&record.tests[0]).read.unwrap().schedule.map(|schedule| schedule.offered_iops)
    };
    assert_eq!(offered(&one), Some(10.0));
    let merged = merged(vec![one, run("b", 30_000, vec![scheduled()])]);
    assert_eq!(offered(&merged), None);
    assert!(TestSummary::new(&merged.tests[0]).read.unwrap().response_ns.is_some());
}

#[test]
fn a_host_that_died_does_not_shorten_the_window() {
    let mut died = run("c", 0, vec![worker(&even(100), 2)]);
    (died.tests[0].status, died.tests[0].reason) = (TestStatus::Failed, Some("write failed".to_owned()));
    died.status = TestStatus::Failed;
    let alive = |name: &str| run(name, 0, vec![worker(&even(500), 10)]);
    let merged = merged(vec![alive("a"), alive("b"), died]);
    assert_eq!(fleet(&merged).windows[0].end_ns, 10 * TICK);
    assert_eq!((merged.status, merged.tests[0].status), (TestStatus::Failed, TestStatus::Failed));
    assert_eq!(merged.tests[0].reason.as_deref(), Some("write failed"));
}

#[test]
fn ranks_order_the_hosts_and_name_the_missing() {
    let ranked = |rank: u32| {
        let mut run = run(&format!("h{rank}"), 0, vec![worker(&even(10), 2)]);
        let launcher = "slurm".to_owned();
        run.header.launch = Some(LaunchRecord { launcher, rank, ranks: Some(6), ..LaunchRecord::default() });
        run.findings = vec![Finding {
            id: FindingId::CpuSteal,
            severity: Severity::Warning,
            claim: format!("claim {rank}"),
            ..Finding::default()
        }];
        run
    };
    let merged = merged([4, 0, 2].map(ranked).into());
    let fleet = merged.header.fleet.as_ref().unwrap();
    assert_eq!(fleet.missing, [1, 3, 5]);
    assert_eq!((fleet.expected(), fleet.is_complete()), (6, false));
    let names: Vec<&str> = merged.header.hosts.iter().map(|host| host.hostname.as_str()).collect();
    assert_eq!(names, ["h0", "h2", "h4"]);
    let sources: Vec<&str> = fleet.members.iter().map(|member| member.source.as_str()).collect();
    assert_eq!(sources, ["1.json", "2.json", "0.json"]);
    let found = &fleet.host_findings[0];
    assert_eq!((found.hosts.as_slice(), found.finding.claim.as_str()), ([0, 1, 2].as_slice(), "claim 4"));
    let places: Vec<u32> =
        merged.tests[0].fleet.as_ref().unwrap().hosts.iter().map(|host| host.host).collect();
    assert_eq!(places, [0, 1, 2]);
}

/// Tasks 10, 12, 14 and 16 of a Slurm array keep their numbers; those of different jobs name none as missing.
#[test]
fn ranks_keep_the_numbers_of_their_array() {
    let task = |rank: u32, first: u32| {
        let mut run = run(&format!("h{rank}"), 0, vec![worker(&even(10), 2)]);
        let launcher = "slurm-array".to_owned();
        let numbers = RankNumbers { first, step: 2 };
        run.header.launch = Some(LaunchRecord { launcher, rank, ranks: Some(4), numbers, role: None });
        assert_eq!(RunRecord::from_json(&run.to_json()).unwrap(), run);
        run
    };
    let head = |runs: Vec<RunRecord>| merged(runs).header.fleet.unwrap();
    let fleet = head(vec![task(16, 10), task(10, 10), task(12, 10)]);
    assert_eq!((fleet.missing.as_slice(), fleet.expected()), ([14].as_slice(), 4));
    assert_eq!(head(vec![task(10, 10), task(12, 12)]).missing, [] as [u32; 0]);
}

/// Kubernetes does not tell how many ranks there are.
#[test]
fn a_gap_between_ranks_is_missing_where_nobody_tells_their_number() {
    let pod = |rank: u32| {
        let mut run = run(&format!("h{rank}"), 0, vec![worker(&even(10), 2)]);
        let launcher = "kubernetes".to_owned();
        run.header.launch = Some(LaunchRecord { launcher, rank, ..LaunchRecord::default() });
        run
    };
    let head = |ranks: &[u32]| merged(ranks.iter().map(|rank| pod(*rank)).collect()).header.fleet.unwrap();
    let fleet = head(&[0, 1, 3]);
    assert_eq!((fleet.missing.as_slice(), fleet.expected(), fleet.is_complete()), ([2].as_slice(), 4, false));
    assert!(head(&[0, 1, 2]).is_complete());
}

#[test]
fn labels_name_ranks_where_no_launcher_does() {
    let labelled = |rank: &str| {
        let mut run = run(rank, 0, vec![worker(&even(10), 2)]);
        run.header.labels =
            [("rank", rank), ("ranks", "3"), ("site", "x")].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        run
    };
    let merged = merged(vec![labelled("2"), labelled("0")]);
    assert_eq!(merged.header.fleet.as_ref().unwrap().missing, [1]);
    assert_eq!(merged.header.labels.keys().collect::<Vec<_>>(), ["site"]);
}

#[test]
fn the_ranks_of_a_role_do_the_same() {
    let of_role = |rank: u32, role: &str, depth: u32| {
        let mut run = run(role, 0, vec![worker(&even(10), 2)]);
        let job = &mut run.tests[0].jobs[0];
        (job.name, job.plan.depth.iodepth) = (format!("{role}/job"), depth);
        let role = Some(role.to_owned());
        run.header.launch = Some(LaunchRecord { rank, role, ..LaunchRecord::default() });
        run
    };
    let mut merger = FleetMerger::new(MergeRules::default());
    merger.add("0.json", of_role(0, "readers", 1)).unwrap();
    merger.add("1.json", of_role(1, "writers", 32)).unwrap();
    merger.add("2.json", of_role(2, "readers", 1)).unwrap();
    let error = merger.add("3.json", of_role(3, "writers", 16)).unwrap_err().to_string();
    assert_eq!(error, "iodepth of job 'writers/job' in test 'rand-read': 32 in 1.json, 16 here");
    let merged = merger.finish().unwrap();
    assert_eq!(merged.tests[0].jobs.len(), 2);
}

#[test]
fn what_cannot_be_merged_is_named() {
    let first = || run("a", 0, vec![worker(&even(10), 2)]);
    let refusal = |rules: MergeRules, change: &dyn Fn(&mut RunRecord)| {
        let mut merger = FleetMerger::new(rules);
        merger.add("a.json", first()).unwrap();
        let mut other = run("b", 5, vec![worker(&even(10), 2)]);
        change(&mut other);
        merger.add("b.json", other).err().map(|error| error.to_string())
    };
    let strict = |change: &dyn Fn(&mut RunRecord)| refusal(MergeRules::default(), change).unwrap_or_default();
    assert_eq!(refusal(MergeRules::default(), &|_| {}), None);
    assert_eq!(
        strict(&|run| run.header.tool_version = "1.1.0".to_owned()),
        "it was written by fathom 1.1.0, and a.json by fathom 1.0.0"
    );
    let free = MergeRules { versions_may_differ: true, ..MergeRules::default() };
    assert_eq!(refusal(free, &|run| run.header.tool_version = "1.1.0".to_owned()), None);
    assert_eq!(
        strict(&|run| run.tests[0].jobs[0].plan.depth.iodepth = 32),
        "iodepth of job 'job' in test 'rand-read': 1 in a.json, 32 here"
    );
    assert_eq!(strict(&|run| run.header.activity = Activity::Fio), "the command: bench in a.json, fio here");
    assert_eq!(
        strict(&|run| run.header.activity = Activity::Surface),
        "records of `fathom surface` cannot be merged"
    );
    assert_eq!(
        strict(&|run| run.header.conditions.target.kind = "file".to_owned()),
        "its target is a file, and that of a.json a "
    );
    assert_eq!(strict(&|run| run.header.fleet = Some(FleetRecord::default())), "it is a merged record");
    assert_eq!(strict(&|run| run.tests.clear()), "it has no tests");
    assert_eq!(strict(&|run| *run = first()), "it is the same run as a.json");
    let huge = |run: &mut RunRecord| run.tests[0].jobs[0].measured.read.ios = 1 << 63;
    assert_eq!(strict(&huge), "its counters cannot be added to those of the other records");
}

#[test]
fn two_records_of_one_rank_are_refused() {
    let ranked = |name: &str| {
        let mut run = run(name, 0, vec![worker(&even(10), 2)]);
        run.header.labels.insert("rank".to_owned(), "3".to_owned());
        run
    };
    let mut merger = FleetMerger::new(MergeRules::default());
    merger.add("a.json", ranked("a")).unwrap();
    let error = merger.add("b.json", ranked("b")).unwrap_err();
    assert_eq!(error.to_string(), "it is of rank 3, and so is a.json");
    assert_eq!(merger.merged(), 1);
}

#[test]
fn imported_figures_are_compared_and_not_added() {
    let imported = |name: &str, iops: f64| {
        use crate::import::{Figure, ImportedEntry, ImportedTest};
        let mut run = run(name, 0, Vec::new());
        run.header.activity = Activity::Import(Default::default());
        let mut entry = ImportedEntry::default();
        entry.op_mut(fathom_model::Op::Read).iops = Figure::printed(iops, 0.0);
        let test = ImportedTest { entries: vec![entry], ..ImportedTest::default() };
        run.tests[0].observed = Some(Observed::Import(Box::new(test)));
        run
    };
    let merged = merged(vec![imported("a", 100.0), imported("b", 300.0)]);
    assert_eq!(TestSummary::new(&merged.tests[0]).total, None);
    let rates: Vec<f64> = fleet(&merged).hosts.iter().map(|host| host.iops).collect();
    assert_eq!(rates, [100.0, 300.0]);
}

#[test]
fn pings_add_up() {
    let pinged = |name: &str, latencies: &[u64]| {
        let mut ping = Ping::default();
        latencies.iter().for_each(|&ns| ping.lat_ns.record(ns));
        ping.load.answered = latencies.len() as u64;
        let mut run = run(name, 0, Vec::new());
        run.header.activity = Activity::Ping(Default::default());
        run.tests[0].observed = Some(Observed::Ping(Box::new(ping)));
        run
    };
    let merged = merged(vec![pinged("a", &[1, 2]), pinged("b", &[3])]);
    assert_eq!(merged.tests[0].ping().unwrap().lat_ns.samples(), 3);
    let ios: Vec<u64> = fleet(&merged).hosts.iter().map(|host| host.ios[0]).collect();
    assert_eq!(ios, [2, 1]);
    let mut merger = FleetMerger::new(MergeRules::default());
    merger.add("a.json", pinged("a", &[1])).unwrap();
    let error = merger.add("again.json", pinged("a", &[1])).unwrap_err();
    assert_eq!(error.to_string(), "it is the same run as a.json");
}

#[test]
fn several_records_of_one_host_have_names_of_their_own() {
    let hosts = ["a", "b", "b"].map(|name| HostRecord { hostname: name.to_owned(), ..HostRecord::default() });
    let member = |rank| FleetMember { rank, source: "x.json".to_owned(), ..FleetMember::default() };
    let fleet = FleetRecord {
        members: vec![member(Some(0)), member(Some(1)), member(None)],
        ..FleetRecord::default()
    };
    assert_eq!(fleet.host_names(&hosts), ["a", "b rank 1", "b #3"]);
    assert_eq!(fleet.host_names(&[]), ["rank 0", "rank 1", "x.json"]);
}

#[test]
fn a_merged_record_whose_counters_overflow_is_refused() {
    let mut merged = merged(vec![run("a", 0, vec![worker(&even(10), 2)])]);
    merged.tests[0].jobs[0].measured.read.ios = 1 << 60;
    let copy = merged.tests[0].jobs[0].clone();
    assert!(RunRecord::from_json(&merged.to_json()).is_ok());
    merged.tests[0].jobs.extend([copy.clone(), copy.clone(), copy.clone(), copy]);
    let error = RunRecord::from_json(&merged.to_json()).unwrap_err();
    assert_eq!(error.to_string(), "the record has a number that cannot have been measured");
}

#[test]
fn a_merged_record_is_divided_into_its_hosts() {
    let runs = vec![run("h1", 0, vec![worker(&even(30), 8)]), run("h2", 0, vec![worker(&even(10), 8)])];
    assert!(runs[0].divided_by_host().is_none());
    let merged = merged(runs);
    let divided = merged.divided_by_host().unwrap();
    assert_eq!(divided.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["h1", "h2"]);
    let all = TestSummary::new(&merged.tests[0]).total.unwrap();
    let totals: Vec<crate::OpSummary> =
        divided.iter().map(|(_, record)| TestSummary::new(&record.tests[0]).total.unwrap()).collect();
    assert_eq!(totals.iter().map(|total| total.ios).collect::<Vec<_>>(), [30, 10]);
    let rates: f64 = totals.iter().map(|total| total.iops).sum();
    assert!((rates / all.iops - 1.0).abs() < 1e-6, "{rates} {}", all.iops);
    for (_, record) in &divided {
        assert!(record.header.fleet.is_none() && record.header.hosts.len() == 1);
        assert_eq!(RunRecord::from_json(&record.to_json()).unwrap(), *record);
    }
}

#[test]
fn lists_name_the_targets_of_all_hosts() {
    let with = |host: &str, target: &str| {
        let mut run = run(host, 0, vec![worker(&even(10), 8)]);
        run.header.target = target.to_owned();
        run
    };
    assert_eq!(merged(vec![with("h1", "/mnt"), with("h2", "/mnt")]).header.target_text(), "/mnt");
    assert_eq!(
        merged(vec![with("h1", "/dev/a"), with("h2", "/dev/b")]).header.target_text(),
        "/dev/a, /dev/b"
    );
    assert_eq!(with("h1", "/mnt").header.target_text(), "/mnt");
}
