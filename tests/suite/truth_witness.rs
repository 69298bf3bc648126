//! Latencies, compared with times that others measured for the same requests: the server that delayed them, the
//! kernel's trace, and `strace`.
//!
//! Two disks of known delay take turns, so that the latencies have two steps and p99 lies far from the mean. All
//! figures of a witness are exact ones, from every single request. fathom's percentiles are the middle of a bin, at
//! most 0.8 % off; the rest of the 2 % is the way between fathom and the witness.

use std::path::Path;
use std::time::Duration;

use fathom_tests::{
    BlockTrace, FioReport, GoingFirst, LoggedDisk, LoopDevice, Seen, Span, measuring_alone, need,
};

use crate::ours::{Ours, steadily, within};

const DISK_BYTES: u64 = 16 << 20;
/// The job's name and that of its thread.
const JOB: &str = "witnessed";
/// The way between witness and program takes a part of this, more of it where the host is slow.
const PERCENT: f64 = 5.0;

/// One way to use two disks.
struct Use {
    engine: &'static str,
    depth: u32,
    op: &'static str,
    requests: u32,
}

impl Use {
    fn arguments(&self, one: &Path, other: &Path) -> Vec<String> {
        vec![
            format!("--name={JOB}"),
            "--direct=1".to_owned(),
            "--bs=4k".to_owned(),
            "--lat_percentiles=1".to_owned(),
            "--clat_percentiles=1".to_owned(),
            format!("--filename={}:{}", one.display(), other.display()),
            format!("--ioengine={}", self.engine),
            format!("--iodepth={}", self.depth),
            format!("--rw=rand{}", self.op),
            format!("--io_size={}k", self.requests * 4),
        ]
    }

    fn run(&self, ours: &Ours, paths: [&Path; 2]) -> FioReport {
        ours.fio(self.arguments(paths[0], paths[1]).iter().map(String::as_str))
    }

    /// The report agrees with the observation: each request once, at the requested queue depth, with its latency.
    fn agree(&self, report: &FioReport, seen: &Seen) -> Result<(), String> {
        let what = format!("{} {} depth {}", self.engine, self.op, self.depth);
        let number = |path: &str| report.number(&format!("/{}/{path}", self.op));
        assert_eq!(number("total_ios"), f64::from(self.requests), "{what}: requests reported");
        assert_eq!(seen.count(), self.requests as usize, "{what}: requests seen");
        assert_eq!(seen.most_at_once(), self.depth as usize, "{what}: the depth that was seen");
        let at_once = seen.mean_at_once();
        if at_once < 0.9 * f64::from(self.depth) {
            return Err(format!("{what}: only {at_once:.2} requests at once"));
        }
        for latency in ["clat", "lat"] {
            let mean = number(&format!("{latency}_ns/mean"));
            within(&format!("{what}: mean {latency}"), mean, seen.mean_ns(), PERCENT)?;
            for percent in [90.0, 99.0] {
                let reported = number(&format!("{latency}_ns/percentile/{percent:.6}"));
                let expected = seen.percentile_ns(percent);
                within(&format!("{what}: p{percent} of {latency}"), reported, expected, PERCENT)?;
            }
        }
        // An observed latency lies between the start of a request and its completion. The µs is its clock's step.
        let (least, reported) = (seen.mean_ns() - 1000.0, number("lat_ns/mean"));
        assert!(reported >= least, "{what}: {reported} ns is less than the {least} ns seen");
        Ok(())
    }
}

/// Two disks, the second of which takes three times as long.
fn disks(delay: Duration) -> [LoggedDisk; 2] {
    [delay, 3 * delay].map(|delay| LoggedDisk::new(DISK_BYTES, delay))
}

fn check_server(ours: &Ours, disks: &[LoggedDisk; 2], usage: &Use) {
    assert!(usage.depth as usize <= LoggedDisk::WIDTH);
    let [one, other] = disks.each_ref().map(LoggedDisk::path);
    steadily(|| {
        let before = disks.each_ref().map(|disk| disk.requests().len());
        let report = usage.run(ours, [&one, &other]);
        let logged: Vec<Span> =
            disks.iter().zip(before).flat_map(|(disk, before)| disk.requests().split_off(before)).collect();
        usage.agree(&report, &Seen::new(logged))
    });
}

#[test]
fn the_server_logged_the_same_latencies() {
    need!(root, tool "chrt", tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let (_alone, _first) = (measuring_alone(), GoingFirst::new());
    let ours = Ours::new();
    // The way through nbdfuse takes 0.2 to 0.4 ms.
    let disks = disks(Duration::from_millis(20));
    for (engine, depth, op, requests) in [
        ("psync", 1, "read", 100),
        ("io_uring", 1, "read", 100),
        ("libaio", 1, "write", 100),
        ("io_uring", 8, "read", 400),
        ("libaio", 8, "read", 400),
    ] {
        check_server(&ours, &disks, &Use { engine, depth, op, requests });
    }
}

fn check_kernel(ours: &Ours, (trace, devices): (&BlockTrace, &[LoopDevice; 2]), usage: &Use) {
    steadily(|| {
        let report = usage.run(ours, devices.each_ref().map(LoopDevice::path));
        usage.agree(&report, &trace.requests_of(JOB))
    });
}

/// Of 64 requests most wait in the block device, whose server takes ten at a time: the kernel traces all.
#[test]
fn the_kernel_traced_the_same_latencies() {
    need!(root, tool "chrt", tool "nbdkit", tool "nbdfuse", tool "fusermount3", tool "losetup", tool "mount");
    need!(path "/dev/fuse", path "/sys/kernel/tracing");
    let (_alone, _first) = (measuring_alone(), GoingFirst::new());
    let ours = Ours::new();
    let disks = disks(Duration::from_millis(6));
    // Dropped before the disks they lie over, and the trace before them.
    let devices = disks.each_ref().map(|disk| LoopDevice::over(&disk.path()));
    let trace = BlockTrace::of(&devices);
    for (engine, depth, op, requests) in [
        ("psync", 1, "read", 100),
        ("io_uring", 1, "write", 100),
        ("libaio", 1, "read", 100),
        ("io_uring", 8, "read", 800),
        ("libaio", 8, "write", 800),
        ("io_uring", 64, "read", 1200),
        ("libaio", 64, "read", 1200),
    ] {
        check_kernel(&ours, (&trace, &devices), &Use { engine, depth, op, requests });
    }
}

/// The spans of `pread64` in what `strace -ttt -T` wrote: `PID START CALL(...) = RESULT <SECONDS>`.
fn calls(trace: &str) -> Seen {
    let ns = |seconds: &str| {
        let (seconds, micros) = seconds.split_once('.')?;
        Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + micros.parse::<u64>().ok()? * 1000)
    };
    let span = |line: &str| {
        let (before, _) = line.split_once(" pread64(")?;
        let start_ns = ns(before.split(' ').next_back()?)?;
        let took_ns = ns(line.rsplit_once('<')?.1.strip_suffix('>')?)?;
        Some(Span { start_ns, end_ns: start_ns + took_ns })
    };
    Seen::new(trace.lines().filter_map(span).collect())
}

#[test]
fn strace_timed_the_same_latencies() {
    need!(root, tool "chrt", tool "strace", tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let (_alone, _first) = (measuring_alone(), GoingFirst::new());
    let ours = Ours::new();
    let disks = disks(Duration::from_millis(15));
    let [one, other] = disks.each_ref().map(LoggedDisk::path);
    let [on_one, on_other] = [&one, &other].map(|path| path.to_str().expect("ASCII"));
    let options = ["-ttt", "-T", "-s", "0", "-e", "trace=pread64", "-P", on_one, "-P", on_other];
    let usage = Use { engine: "psync", depth: 1, op: "read", requests: 100 };
    steadily(|| {
        let arguments = usage.arguments(&one, &other);
        let (report, trace) = ours.fio_traced(&options, arguments.iter().map(String::as_str));
        usage.agree(&report, &calls(&trace))
    });
}
