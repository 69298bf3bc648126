//! A bench record made by hand: every kind of row, note and verdict that the reports must show.

use fathom_model::Op;
use fathom_model::PerOp;
use fathom_model::plan::{DepthPlan, EnginePlan, IoPlan, MeasurePlan, Mix, Pattern, TimePlan};
use fathom_record::{
    Activity, BenchActivity, BestFigures, Conditions, CpuUsage, DepthCounts, DeviceRecord, DiskCounters,
    DiskOutcome, ErrorCount, FilesystemRecord, Finding, HistoryRow, HostRecord, Interval, IntervalOp,
    JobRecord, Latency, OpOutcome, PhaseOutcome, PlanRecord, RunHeader, RunRecord, Severity, TargetRecord,
    TestMeta, TestRecord, TestStatus, WorkerFailure,
};

/// 2026-09-21 14:13:20 UTC.
pub const STARTED_UNIX_MS: u64 = 1_790_000_000_000;

fn latencies(count: u64, ns: u64) -> Latency {
    let mut latency = Latency::default();
    (0..count).for_each(|i| latency.record(ns + (i % 100) * ns / 1_000));
    latency
}

fn op(count: u64, block: u64, ns: u64) -> OpOutcome {
    OpOutcome {
        issued: count,
        ios: count,
        bytes: count * block,
        slat: latencies(count, 1_500),
        clat: latencies(count, ns),
        lat: latencies(count, ns + 1_500),
        ..Default::default()
    }
}

/// Ten seconds of half-second intervals with these reads and writes in all, the fifth second a little slower.
fn series(reads: u64, writes: u64) -> Vec<Interval> {
    let interval = |tick: u32| {
        let share = if tick / 2 == 4 { 25 } else { 20 };
        let part = |count: u64| IntervalOp { ios: count / share, ..Default::default() };
        Interval {
            tick,
            start_ns: u64::from(tick) * 500_000_000,
            end_ns: u64::from(tick + 1) * 500_000_000,
            read: part(reads),
            write: part(writes),
            ..Default::default()
        }
    };
    (0..20).map(interval).collect()
}

fn meta(id: &str, title: &str, fio: &str) -> TestMeta {
    TestMeta { id: id.to_owned(), title: title.to_owned(), fio: format!("fio --name={id} {fio}") }
}

fn job(name: &str, rw: &str, block: u64, iodepth: u32) -> JobRecord {
    let engine = EnginePlan { name: "io_uring".to_owned(), ..EnginePlan::default() };
    let io = IoPlan {
        pattern: Pattern::named(rw).expect("a pattern"),
        block_size: PerOp::splat(block.into()),
        direct: true,
        ..IoPlan::default()
    };
    let measure = MeasurePlan { percentiles: vec![50.0, 99.0, 99.9], ..MeasurePlan::default() };
    let time = TimePlan { time_based: true, ..TimePlan::default() };
    JobRecord {
        name: name.to_owned(),
        thread_id: 4711,
        started_unix_ms: STARTED_UNIX_MS,
        options: vec![("rw".to_owned(), rw.to_owned()), ("bs".to_owned(), block.to_string())],
        plan: PlanRecord {
            engine,
            io,
            depth: DepthPlan::new(iodepth),
            time,
            measure,
            ..PlanRecord::default()
        },
        ..Default::default()
    }
}

fn measured(read: OpOutcome, write: OpOutcome) -> PhaseOutcome {
    PhaseOutcome {
        end_ns: 10_000_000_000,
        series: series(read.ios, write.ios),
        depth: DepthCounts([read.ios + write.ios, 0, 0, 0, 0, 0, 0]),
        cpu: CpuUsage {
            user_ns: 400_000_000,
            system_ns: 1_300_000_000,
            voluntary_switches: 9,
            ..Default::default()
        },
        read,
        write,
        ..Default::default()
    }
}

fn disk(reads: u64, writes: u64) -> DiskOutcome {
    DiskOutcome {
        name: "nvme1n1".to_owned(),
        counters: DiskCounters {
            read_ios: reads,
            read_sectors: reads * 8,
            write_ios: writes,
            write_sectors: writes * 8,
            busy_ms: 9_990,
            ..Default::default()
        },
        elapsed_ns: 10_000_000_000,
        ..Default::default()
    }
}

fn done(meta: TestMeta, jobs: Vec<JobRecord>, disk: DiskOutcome) -> TestRecord {
    TestRecord {
        id: meta.id,
        title: meta.title,
        fio: meta.fio,
        status: TestStatus::Complete,
        started_unix_ms: STARTED_UNIX_MS,
        elapsed_ns: 11_000_000_000,
        jobs,
        disks: vec![disk],
        ..Default::default()
    }
}

/// The tests: whole, committing, mixed, wide, tiny, skipped, failed, broken off.
pub fn tests() -> Vec<TestRecord> {
    let none = OpOutcome::default;
    let with = |mut job: JobRecord, read, write| {
        job.measured = measured(read, write);
        job
    };
    let read = with(job("lat-read", "randread", 4096, 1), op(17_420, 4096, 551_000), none());
    let lat_read =
        done(meta("lat-read", "read latency", "--rw=randread --bs=4k"), vec![read], disk(17_421, 0));
    let mut commit = with(job("commit", "randwrite", 4096, 1), none(), op(4_100, 4096, 60_000));
    commit.plan.io.fdatasync_every = 1;
    commit.measured.syncs = 4_100;
    commit.measured.sync_lat = latencies(4_100, 2_300_000);
    let commit = done(meta("commit", "commit", "--rw=randwrite --fdatasync=1"), vec![commit], disk(0, 8_210));
    let mut mixed = with(
        job("rand-mixed", "randrw", 4096, 64),
        op(22_510, 4096, 21_300_000),
        op(7_500, 4096, 21_400_000),
    );
    mixed.plan.io.pattern.mix = Mix::ReadWrite { read_percent: 75 };
    mixed.errors = vec![ErrorCount { op: Op::Write, errno: 5, count: 12 }];
    let mut mixed = done(
        meta("rand-mixed", "random mixed", "--rw=randrw --iodepth=64"),
        vec![mixed],
        disk(22_510, 7_500),
    );
    mixed.notes = vec!["half of the reads came from the cache.".to_owned()];
    let wide = |clone: u32| {
        let mut job = job("rand-read-jobs", "randread", 4096, 1);
        job.clone = clone;
        with(job, op(130_000, 4096, 61_000), none())
    };
    let wide = (0..8).map(wide).collect();
    let wide = done(meta("rand-read-jobs", "random read, 8 jobs", "--numjobs=8"), wide, disk(1_040_000, 0));
    let mut pings = with(job("pings", "randread", 4096, 1), op(10, 4096, 700_000), none());
    pings.measured.series.clear();
    pings.plan.time.time_based = false;
    let pings = done(meta("pings", "ten pings", "--number_ios=10"), vec![pings], disk(10, 0));
    let skipped = TestRecord::skipped(
        meta("bw-write", "bandwidth write", "--rw=randwrite --bs=1m"),
        "the target is a block device; --destroy-data=/dev/nvme1n1 allows the tests that write to it",
    );
    let failed = TestRecord::failed(
        meta("seq-read", "sequential read", "--rw=read"),
        "open /mnt/data/x: No such file",
    );
    let mut cut = with(job("seq-write-jobs", "write", 131_072, 1), none(), op(512, 131_072, 1_100_000));
    cut.error = Some(WorkerFailure {
        errno: 28,
        message: "write of 131072 bytes at 67108864: No space left on device".to_owned(),
        hint: Some("make room, or choose a smaller --size".to_owned()),
        ..Default::default()
    });
    let mut cut =
        done(meta("seq-write-jobs", "sequential write, 8 jobs", "--rw=write"), vec![cut], disk(0, 512));
    cut.status = TestStatus::Incomplete;
    cut.reason = Some("SIGINT after 3 s".to_owned());
    vec![lat_read, commit, mixed, wide, pings, skipped, failed, cut]
}

/// The run they belong to.
pub fn run() -> RunRecord {
    let device = DeviceRecord {
        name: "nvme1n1".to_owned(),
        model: "Amazon Elastic Block Store".to_owned(),
        locality: Some("network".to_owned()),
        ..Default::default()
    };
    let filesystem =
        FilesystemRecord { fs_type: "ext4".to_owned(), total_bytes: 100 << 30, ..Default::default() };
    let target = TargetRecord {
        path: "/mnt/data".to_owned(),
        kind: "directory".to_owned(),
        filesystem: Some(filesystem),
        devices: vec![device],
        inspection: None,
    };
    let host = HostRecord { kernel: "6.8.0-45".to_owned(), cpus_online: 2, ..Default::default() };
    RunRecord {
        status: TestStatus::Incomplete,
        header: RunHeader {
            command: vec!["fathom".to_owned(), "bench".to_owned(), "/mnt/data".to_owned()],
            target: "/mnt/data".to_owned(),
            tool_version: "0.1.0".to_owned(),
            activity: Activity::Bench(BenchActivity {
                suite: Some("standard".to_owned()),
                ..BenchActivity::default()
            }),
            started_unix_ms: STARTED_UNIX_MS,
            hosts: vec![host],
            conditions: Conditions { target },
            labels: [("provider".to_owned(), "aws".to_owned())].into(),
            size_bytes: 4 << 30,
            notes: vec!["The file was reduced to 4.0 GiB, a tenth of the free space.".to_owned()],
            interrupted: Some("SIGINT".to_owned()),
            ..Default::default()
        },
        tests: tests(),
        findings: findings(),
        ..Default::default()
    }
}

/// One with an id that this version does not define, and two of another kind that have the same remedy.
fn findings() -> Vec<Finding> {
    let finding = |id: &str, claim: &str, remedy: &str| Finding {
        id: id.to_owned().into(),
        severity: Severity::Warning,
        claim: claim.to_owned(),
        remedy: Some(remedy.to_owned()),
        ..Default::default()
    };
    let on = |test: &str, finding: Finding| Finding { tests: vec![test.to_owned()], ..finding };
    let psync = "--engine=psync issues the same calls directly, with less CPU time.";
    vec![
        finding(
            "cache-hits",
            "The device saw 50 % fewer reads than were done; the rest came from a cache on the way.",
            "Use a file larger than the memory of the host.",
        )
        .with("device_reads", 11_255),
        on(
            "lat-read",
            finding(
                "async-is-not",
                "io_uring did not run asynchronously: a kernel worker executed I/Os and used 1.05 µs of CPU time \
                 per I/O, in addition to 815 ns in the job.",
                psync,
            ),
        ),
        on(
            "rand-mixed",
            finding(
                "async-is-not",
                "io_uring did not run asynchronously: 2 kernel workers executed I/Os and used 1.24 µs of CPU time \
                 per I/O, in addition to 1.00 µs in the job.",
                psync,
            ),
        ),
    ]
}

/// Past runs.
pub fn history() -> Vec<HistoryRow> {
    let row = |id: u64, started_unix_ms: u64, target: &str, status: TestStatus| HistoryRow {
        id,
        started: fathom_report::history::started(started_unix_ms),
        started_unix_ms,
        target: target.to_owned(),
        command: format!("fathom bench {target}"),
        status,
        tests: 10,
        hostname: "bench-1".to_owned(),
        tool_version: "0.1.0".to_owned(),
        stored_unix_ms: STARTED_UNIX_MS,
        best: BestFigures {
            read_iops: Some(3000.4),
            bytes_per_second: Some(134_217_728.0),
            lat_p50_ns: Some(551_000.0),
            ..BestFigures::default()
        },
        ..Default::default()
    };
    let mut rows = vec![
        row(17, STARTED_UNIX_MS, "/mnt/data", TestStatus::Complete),
        row(9, STARTED_UNIX_MS - 86_400_000, "/dev/nvme1n1", TestStatus::Incomplete),
        row(18, 0, "sim:custom?iops=100", TestStatus::Complete),
    ];
    rows[0].verdict = Some("missed".to_owned());
    rows[0].findings = 2;
    rows[0].labels = [("provider".to_owned(), "aws".to_owned())].into();
    rows
}
