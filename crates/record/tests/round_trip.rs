//! What is stored is what was counted, in this version and in every stored older one.

use std::path::PathBuf;

use fathom_model::plan::{
    AccessPlan, ClonePlan, DepthPlan, EndPlan, EnginePlan, FilePlan, FileUsage, IoPlan, LatencyTarget,
    MeasurePlan, Mix, OnError, OpenSync, Pattern, Payload, SizeSpec, SteadyFigure, SteadyStatePlan,
    ThreadPlan, TimePlan,
};
use fathom_model::{BlockSize, JobPlan, Nanos, Op, PerOp, Rate, RateProcess, RunPlan};
use fathom_record::{
    Activity, Conditions, DeviceRecord, FilesystemRecord, Finding, HostRecord, RunHeader, RunRecord,
    Severity, TargetRecord, TestMeta, TestRecord, TestStatus, entries, merge_jobs, test_record,
};
use fathom_stats::{
    BadBlock, BatchCounts, CpuUsage, DepthCounts, DiskCounters, DiskInterval, DiskOutcome, ErrorCount,
    FailedRequest, FailureCause, Interval, IntervalOp, KernelThreads, Latency, LatencyOutcome, Moments,
    OpOutcome, OpenLoop, PhaseOutcome, PriorityLatency, RunOutcome, Silence, Silences, SlowRequest, Stall,
    SteadyOutcome, VerifyOutcome, WorkerFailure, WorkerOutcome,
};
use proptest::prelude::*;

fn plan(clones: usize, group_reporting: bool) -> RunPlan {
    let clone = |index: usize| ClonePlan {
        paths: vec![PathBuf::from(format!("/data/file.{index}"))],
        seed: 42 + index as u64,
        cpus: vec![index],
    };
    let job = JobPlan {
        name: "mixed".to_owned(),
        description: Some("three quarters reads".to_owned()),
        group: 0,
        phase: 0,
        group_reporting,
        replay: None,
        engine: EnginePlan {
            name: "io_uring".to_owned(),
            options: vec![("sqthread_poll".into(), "1".into())],
        },
        io: IoPlan {
            pattern: Pattern { mix: Mix::ReadWrite { read_percent: 75 }, random: true },
            block_size: PerOp { read: 4096, write: 8192, trim: 4096 }.map(BlockSize::from),
            size: Some(SizeSpec::Percent(50)),
            io_size: None,
            file_size: None,
            file_size_most: None,
            offset: SizeSpec::Bytes(0),
            offset_align: 0,
            offset_increment: SizeSpec::Bytes(0),
            random_map: true,
            access: AccessPlan::default(),
            serialize_overlap: false,
            loops: 1,
            fsync_every: 32,
            fdatasync_every: 0,
            end_fsync: false,
            open_sync: OpenSync::None,
            direct: true,
            invalidate: true,
            payload: Payload::Stamped,
            verify: None,
        },
        depth: DepthPlan::new(64),
        time: TimePlan { runtime: Some(Nanos::from_secs(3)), time_based: true, ..Default::default() },
        files: FilePlan {
            fallocate: Default::default(),
            overwrite: false,
            create_only: false,
            allow_create: true,
            unlink: false,
            allow_mounted_write: false,
            usage: FileUsage::default(),
        },
        measure: MeasurePlan::default(),
        clones: (0..clones).map(clone).collect(),
        threads: ThreadPlan::default(),
        end: EndPlan::default(),
        exit_all: false,
        on_error: OnError::default(),
        thread_wording: true,
        options: vec![("rw".into(), "randrw".into()), ("bs".into(), "4k,8k".into())],
    };
    RunPlan { jobs: vec![job], global_options: vec![("direct".into(), "1".into())] }
}

fn latency(values: &[u64]) -> Latency {
    let mut latency = Latency::default();
    values.iter().for_each(|&ns| latency.record(ns));
    latency
}

fn moments(values: &[u64]) -> Moments {
    let mut moments = Moments::default();
    values.iter().for_each(|&value| moments.record(value));
    moments
}

fn op(values: &[u64]) -> OpOutcome {
    let ios = values.len() as u64;
    OpOutcome {
        issued: ios + 1,
        ios,
        bytes: ios * 4096,
        short: 1,
        failed: 1,
        slat: latency(&values.iter().map(|v| v / 10).collect::<Vec<_>>()),
        clat: latency(values),
        lat: latency(&values.iter().map(|v| v + v / 10).collect::<Vec<_>>()),
        open_loop: OpenLoop {
            response: latency(&values.iter().map(|v| v * 2).collect::<Vec<_>>()),
            late: latency(&[7]),
            latest_ns: 9,
            backlog: 3,
        },
        bandwidth_windows: moments(&[100, 120]),
        iops_windows: moments(&[25, 30]),
        priorities: vec![PriorityLatency { priority: 0x2003, latency: latency(&[5, 6]) }],
    }
}

fn phase(values: &[u64]) -> PhaseOutcome {
    let interval = |tick: u32| Interval {
        tick,
        start_ns: u64::from(tick) * 500_000_000,
        end_ns: u64::from(tick + 1) * 500_000_000,
        read: IntervalOp { ios: 3, bytes: 12_288, clat_sum_ns: 900, clat_bins: vec![(100, 1), (200, 2)] },
        ..Interval::default()
    };
    PhaseOutcome {
        read_back_ns: 12_345_678,
        start_ns: 0,
        end_ns: 4_000_123_456,
        schedule_end_ns: 3_999_000_000,
        read: op(values),
        write: op(&values[..values.len() / 2]),
        trim: OpOutcome::default(),
        syncs: 2,
        sync_lat: latency(&[5_000, 7_000]),
        syncs_failed: 1,
        depth: DepthCounts([1, 2, 3, 4, 5, 6, 7]),
        submit: BatchCounts([0, 9, 8, 7, 6, 5, 4]),
        complete: BatchCounts([1, 0, 0, 0, 0, 0, 2]),
        cpu: CpuUsage {
            user_ns: 1,
            system_ns: 2,
            voluntary_switches: 3,
            involuntary_switches: 4,
            major_faults: 5,
            minor_faults: 6,
            run_queue_wait_ns: 0,
        },
        kernel_threads: KernelThreads { workers: 14, workers_ns: 1 << 40, submitter_ns: 7 },
        series: (0..8).map(interval).collect(),
    }
}

fn worker(clone: usize, values: &[u64]) -> WorkerOutcome {
    WorkerOutcome {
        verified: Some(verified()),
        job: 0,
        clone,
        thread_id: 4711 + clone as u32,
        started_unix_ms: 1_790_000_000_123,
        ramp: Some(phase(&values[..values.len() / 3])),
        measured: phase(values),
        errors: vec![ErrorCount { op: Op::Write, errno: 5, count: 2 }],
        silences: Silences {
            count: 3,
            total_ns: 1 << 33,
            longest: vec![Silence { start_ns: 9, length_ns: 1 << 32, depth: 64 }],
        },
        slowest: vec![SlowRequest { start_ns: 17, lat_ns: 1 << 36, op: Op::Sync, offset: 4096, depth: 64 }],
        failure: (clone == 1).then(|| WorkerFailure {
            errno: 5,
            message: "write at 4096 of /data/file.1: Input/output error".to_owned(),
            hint: Some("look at the kernel's log".to_owned()),
            cause: FailureCause::Request(FailedRequest { op: Op::Write, file: 1, offset: 4096, len: 8192 }),
        }),
        steady: None,
        latency: None,
        stuck: false,
        stalls: vec![Stall {
            start_ns: 5,
            length_ns: 2_000_000_000,
            depth: 3,
            offsets: vec![0, 1 << 40],
            over: true,
        }],
    }
}

fn outcome(workers: Vec<WorkerOutcome>) -> RunOutcome {
    let counters = DiskCounters { read_ios: 10, read_sectors: 80, busy_ms: 17, ..Default::default() };
    let disk = DiskOutcome {
        host: 0,
        name: "vda".to_owned(),
        under: None,
        counters,
        elapsed_ns: 4_000_000_000,
        intervals: vec![DiskInterval { tick: 0, start_ns: 0, end_ns: 500_000_000, counters }],
    };
    let below = DiskOutcome { name: "sda".to_owned(), under: Some("vda".to_owned()), ..disk.clone() };
    RunOutcome {
        started_unix_ms: 1_790_000_000_000,
        elapsed_ns: 4_100_000_000,
        workers,
        disks: vec![disk, below],
        host_load: Vec::new(),
        interrupted: None,
        notes: vec!["the file was shortened".to_owned()],
    }
}

fn meta() -> TestMeta {
    TestMeta {
        id: "rand-mixed".to_owned(),
        title: "random mixed".to_owned(),
        fio: "fio --name=mixed --rw=randrw --bs=4k,8k".to_owned(),
    }
}

/// Through JSON text and back to what was counted.
fn check_round_trip(outcome: &RunOutcome, clones: usize) {
    let record = test_record(meta(), &plan(clones, false), outcome.clone());
    let run = RunRecord { tests: vec![record], ..Default::default() };
    let read = RunRecord::from_json(&run.to_json()).expect("just written");
    assert_eq!(read, run);
    for (job, worker) in read.tests[0].jobs.iter().zip(&outcome.workers) {
        assert_eq!(
            (&job.measured, &job.ramp, &job.slowest),
            (&worker.measured, &worker.ramp, &worker.slowest)
        );
        assert_eq!((&job.errors, &job.error, &job.stalls), (&worker.errors, &worker.failure, &worker.stalls));
        assert_eq!((&job.steady, &job.latency), (&worker.steady, &worker.latency));
    }
    assert_eq!((read.tests[0].jobs.len(), &read.tests[0].disks), (outcome.workers.len(), &outcome.disks));
}

#[test]
fn nothing_is_lost() {
    let values: Vec<u64> = (1..400).map(|i| i * i * 37).collect();
    let mut first = worker(0, &values);
    first.steady = Some(steady());
    first.latency = Some(LatencyOutcome {
        target: LatencyTarget { target: Nanos(2_000_000), window: Nanos(7), percentile: 99.5, run: true },
        depth: 20,
    });
    check_round_trip(&outcome(vec![first, worker(1, &values[..50])]), 2);
    check_round_trip(&RunOutcome::default(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn nothing_is_lost_at_any_plausible_value(values in proptest::collection::vec(0u64..1 << 46, 3..40)) {
        check_round_trip(&outcome(vec![worker(0, &values)]), 1);
    }
}

#[test]
fn a_test_ends_as_its_outcome_says() {
    let values = [1_000, 2_000, 3_000];
    let status = |change: fn(&mut RunOutcome)| {
        let mut outcome = outcome(vec![worker(0, &values)]);
        change(&mut outcome);
        let record = test_record(meta(), &plan(1, false), outcome);
        (record.status, record.reason)
    };
    assert_eq!(status(|_| ()), (TestStatus::Complete, None));
    assert_eq!(
        status(|o| o.interrupted = Some("SIGINT".to_owned())),
        (TestStatus::Incomplete, Some("SIGINT".to_owned()))
    );
    assert_eq!(status(|o| o.workers[0].stuck = true).0, TestStatus::Incomplete);
    let failed = status(|o| {
        o.interrupted = Some("SIGINT".to_owned());
        o.workers[0].failure =
            Some(WorkerFailure { errno: 5, message: "read of x failed".to_owned(), ..Default::default() });
    });
    assert_eq!(failed, (TestStatus::Failed, Some("read of x failed".to_owned())));
}

#[test]
fn merging_adds_counts_and_keeps_the_spread() {
    let (a, b) = ([10_000, 20_000, 30_000], [40_000, 50_000, 60_000, 70_000]);
    let record = test_record(meta(), &plan(2, true), outcome(vec![worker(0, &a), worker(1, &b)]));
    let merged = merge_jobs(&record.jobs.iter().collect::<Vec<_>>());
    let together: Vec<u64> = a.iter().chain(&b).copied().collect();
    assert_eq!(merged.measured.read.clat, latency(&together));
    assert_eq!((merged.measured.read.ios, merged.measured.syncs, merged.errors[0].count), (7, 4, 4));
    assert_eq!(merged.measured.series[3].read.clat_bins, [(100, 2), (200, 4)]);
    assert_eq!(merged.error.as_ref().map(|error| error.errno), Some(5));
}

#[test]
fn group_reporting_joins_the_entry_before() {
    let values = [10_000, 20_000, 30_000];
    for (group_reporting, expected) in [(false, vec![1, 1, 1]), (true, vec![3])] {
        let workers = (0..3).map(|clone| worker(clone, &values)).collect();
        let record = test_record(meta(), &plan(3, group_reporting), outcome(workers));
        let found: Vec<u32> = entries(&record).iter().map(|entry| entry.workers).collect();
        assert_eq!(found, expected);
    }
    // As fio does it: the flag of the worker that comes decides, and the group must be the same.
    let workers = (0..3).map(|clone| worker(clone, &values)).collect();
    let mut record = test_record(meta(), &plan(3, false), outcome(workers));
    record.jobs[1].group_reporting = true;
    record.jobs[2].group_reporting = true;
    record.jobs[2].group = 1;
    let found: Vec<u32> = entries(&record).iter().map(|entry| entry.workers).collect();
    assert_eq!(found, [2, 1]);
}

#[test]
fn window_statistics_of_a_group_are_sums() {
    let values = [10_000, 20_000, 30_000];
    let workers = (0..3).map(|clone| worker(clone, &values)).collect();
    let record = test_record(meta(), &plan(3, true), outcome(workers));
    let entry = &entries(&record)[0];
    let windows = entry.ops[0].bandwidth;
    assert_eq!((windows.samples, windows.min, windows.max, windows.mean), (6, 300, 360, 330.0));
    // Each worker has squared deviations of 200; 600 over 5 degrees of freedom.
    assert!((windows.stdev() - 120f64.sqrt()).abs() < 1e-9, "{}", windows.stdev());
    assert_eq!((entry.ops[0].runtime_ms, entry.ops[2].runtime_ms), (4_000, 0));
    assert_eq!(entry.job_runtime_ns, 3 * 4_000_123_456);
}

fn sample_run() -> RunRecord {
    let values: Vec<u64> = (1..60).map(|i| i * i * 37).collect();
    let test = test_record(meta(), &plan(2, true), outcome(vec![worker(0, &values), worker(1, &values)]));
    let skipped = TestRecord::skipped(meta(), "the target is a block device");
    let host = HostRecord {
        hostname: "bench-1".to_owned(),
        kernel: "6.8.0".to_owned(),
        cpus_online: 2,
        load: vec![0.1, 0.25, 1.0],
        ..Default::default()
    };
    let filesystem = FilesystemRecord { fs_type: "ext4".to_owned(), ..Default::default() };
    let device = DeviceRecord { name: "vda".to_owned(), rotational: Some(false), ..Default::default() };
    let target = TargetRecord {
        path: "/data".to_owned(),
        kind: "directory".to_owned(),
        filesystem: Some(filesystem),
        devices: vec![device],
        inspection: None,
    };
    RunRecord {
        status: TestStatus::Failed,
        header: RunHeader {
            command: vec!["fathom".to_owned(), "bench".to_owned(), "/data".to_owned()],
            activity: Activity::default(),
            target: "/data".to_owned(),
            tool_version: "0.1.0".to_owned(),
            started_unix_ms: 1_790_000_000_000,
            hosts: vec![host],
            conditions: Conditions { target },
            labels: [("provider".to_owned(), "example".to_owned())].into(),
            seed: Some(7),
            ..Default::default()
        },
        tests: vec![test, skipped],
        findings: vec![Finding {
            id: "failed-requests".to_owned().into(),
            severity: Severity::Warning,
            claim: "Two writes failed.".to_owned(),
            evidence: [("failed".to_owned(), 2.into())].into(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// Stored records must stay readable: this file is renewed while its version is unreleased, and never rewritten
/// afterwards.
#[test]
fn a_stored_record_of_this_version_still_loads() {
    let stored = include_str!("fixtures/record-v2.json");
    let record = RunRecord::from_json(stored).expect("the version is read by every later one");
    assert_eq!(record, sample_run());
}

#[test]
fn clones_share_a_plan_and_differ_in_their_own_part() {
    let record = sample_run();
    let jobs = &record.tests[0].jobs;
    assert_eq!(jobs[0].plan, jobs[1].plan);
    assert_eq!((jobs[0].plan.numjobs, jobs[0].plan.depth.iodepth), (2, 64));
    let own: Vec<_> = jobs.iter().map(|job| (job.worker.paths.join(":"), job.worker.seed)).collect();
    assert_eq!(own, [("/data/file.0".to_owned(), 42), ("/data/file.1".to_owned(), 43)]);
}

#[test]
fn plans_with_every_kind_of_value_are_read_back() {
    let mix = BlockSize::of_shares(&[(4096, 60), (8192, 40)]).unwrap();
    let mut planned = plan(1, false);
    let job = &mut planned.jobs[0];
    job.io.block_size.write = mix.clone();
    job.io.size = Some(SizeSpec::Bytes(u64::MAX));
    job.time.runtime = Some(Nanos::MAX);
    job.time.rate.rates.read = Rate::bytes_per_second(1 << 30, &(1 << 30).into());
    job.time.rate.process = RateProcess::Poisson;
    job.clones[0].seed = u64::MAX;
    let test = test_record(meta(), &planned, outcome(vec![worker(0, &[1])]));
    let record = RunRecord { tests: vec![test], ..RunRecord::default() };
    let read = RunRecord::from_json(&record.to_json()).unwrap();
    assert_eq!(read, record);
    let stored = &read.tests[0].jobs[0].plan;
    assert_eq!((&stored.io.block_size.write, stored.time.rate.is_limited()), (&mix, true));
}

#[test]
fn parts_of_a_plan_that_are_not_possible_are_refused() {
    let check = |plan: &str, expected: &str| {
        let text = format!(r#"{{"schema":"fathom.record/2","tests":[{{"jobs":[{{"plan":{plan}}}]}}]}}"#);
        let error = RunRecord::from_json(&text).unwrap_err();
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(cause.contains(expected), "{plan}: {error}: {cause}");
    };
    check(
        r#"{"time":{"rate":{"rates":{"read":{"requests":0,"per_ns":1}}}}}"#,
        "needs requests and a time above 0",
    );
    check(r#"{"io":{"bs":{"read":{"bssplit":[[4096,60]]}}}}"#, "at least two sizes");
    check(r#"{"io":{"payload":"striped"}}"#, "unknown variant `striped`");
}

fn steady() -> SteadyOutcome {
    SteadyOutcome {
        plan: SteadyStatePlan {
            figure: SteadyFigure::Lat,
            slope: true,
            limit: 0.5,
            percent: true,
            duration: Nanos(4),
            ramp: Nanos(2),
            interval: Nanos(1),
        },
        attained: true,
        criterion: 0.25,
        deviation: 0.0,
        slope: -17.5,
        iops: vec![1, 2, 3, 1 << 40],
        bandwidth: vec![4, 5, 6, 7],
        latency_ns: vec![8, 9, 10, 11],
    }
}

fn verified() -> VerifyOutcome {
    let bad = BadBlock {
        file: "data".to_owned(),
        offset: 8192,
        len: 1024,
        block_offset: 8192,
        block_len: 4096,
        problem: vec!["verify: bad magic header 0, wanted acca".to_owned()],
        dumps: vec!["received data dumped as data.8192.received".to_owned()],
    };
    VerifyOutcome { checked: 9, unchecked: 1, bad: 1, first_bad: vec![bad], unsaved: Some("full".to_owned()) }
}
