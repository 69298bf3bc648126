//! Reports of a capped device: the cap, as Debian's fio reports it under the same cap.
//!
//! The kernel grants a cap in slices of 100 ms, the first of which begins with a process's first request. Looking for
//! what is on the device before a run is such a request: `startdelay` lets that slice pass, so that a new one begins
//! with the measured part and a run of whole seconds sees whole slices.

use fathom_tests::{Cap, FioReport, LoopDevice, MIB, Throttle, fio_under, measuring_capped, need};

use crate::ours::{Ours, filename, steadily, within};

/// Seconds of a run at least.
const RUNTIME: u64 = 2;

/// One way to use a capped device.
struct Use {
    rw: &'static str,
    bs_kib: u64,
    depth: u64,
    engine: &'static str,
}

impl Use {
    fn new(rw: &'static str, bs_kib: u64, depth: u64) -> Self {
        Use { rw, bs_kib, depth, engine: "io_uring" }
    }

    /// Seconds after which the requests that the last slice lets through early, at most those in flight, are less
    /// than half of the percent that is allowed.
    fn runtime(&self, expected: f64) -> u64 {
        let early = (self.depth + 1) as f64;
        RUNTIME.max((early / 0.005 / expected).ceil() as u64)
    }

    fn arguments(&self, device: &LoopDevice, runtime: u64) -> Vec<String> {
        vec![
            "--name=capped".to_owned(),
            "--direct=1".to_owned(),
            "--time_based".to_owned(),
            "--startdelay=300ms".to_owned(),
            filename(device.path()),
            format!("--runtime={runtime}"),
            format!("--ioengine={}", self.engine),
            format!("--rw={}", self.rw),
            format!("--bs={}k", self.bs_kib),
            format!("--iodepth={}", self.depth),
        ]
    }

    fn op(&self) -> &'static str {
        if self.rw.ends_with("write") { "write" } else { "read" }
    }

    /// Completions per second, from what is counted rather than from the rounded rate.
    fn rate(&self, report: &FioReport) -> f64 {
        let number = |key: &str| report.number(&format!("/{}/{key}", self.op()));
        number("total_ios") * 1e3 / number("runtime")
    }
}

/// Ours and fio's rate under `cap`, each against `expected` requests per second and against each other.
fn check(ours: &Ours, device: &LoopDevice, cap: &Cap, case: &Use, expected: f64) -> Result<(), String> {
    let throttle = Throttle::new(device.path(), cap);
    let arguments = case.arguments(device, case.runtime(expected));
    let arguments = || arguments.iter().map(String::as_str);
    let (our, fios) = (ours.fio_under(&throttle, arguments()), fio_under(&throttle, arguments()));
    let what = format!("{} {}k depth {} at {expected}/s", case.rw, case.bs_kib, case.depth);
    let (our_rate, fios_rate) = (case.rate(&our), case.rate(&fios));
    within(&format!("{what}: ours"), our_rate, expected, 1.0)?;
    within(&format!("{what}: fio's"), fios_rate, expected, 1.0)?;
    within(&format!("{what}: ours beside fio's"), our_rate, fios_rate, 1.0)?;
    // The printed figures follow from the counts.
    let op = case.op();
    let bytes = our.number(&format!("/{op}/io_bytes"));
    assert_eq!(bytes, our.number(&format!("/{op}/total_ios")) * (case.bs_kib << 10) as f64, "{what}");
    let bw_bytes = our.number(&format!("/{op}/bw_bytes"));
    within(&format!("{what}: bw_bytes"), bw_bytes, our.bytes_per_second(op), 0.01)?;
    within(&format!("{what}: iops"), our.iops(op) * (case.bs_kib << 10) as f64, bw_bytes, 0.01)
}

#[test]
fn capped_iops_are_reported_as_fio_reports_them() {
    need!(root, limits, tool "losetup", tool "fio", path "/dev/shm");
    let _capped = measuring_capped();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(128 * MIB));
    let cases = [
        (300, Use::new("randread", 256, 2)),
        (300, Use::new("randwrite", 4, 1)),
        (1000, Use::new("randread", 4, 8)),
        (1000, Use::new("write", 64, 8)),
        (4000, Use::new("read", 16, 32)),
        (4000, Use::new("randwrite", 4, 16)),
    ];
    for (cap, case) in cases {
        steadily(|| check(&ours, &device, &Cap::iops(cap), &case, cap as f64));
    }
}

#[test]
fn capped_bandwidth_is_reported_as_fio_reports_it() {
    need!(root, limits, tool "losetup", tool "fio", path "/dev/shm");
    let _capped = measuring_capped();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(128 * MIB));
    let cases = [
        (10, Use::new("randread", 4, 16)),
        (10, Use::new("write", 64, 1)),
        (40, Use::new("read", 256, 1)),
        (40, Use::new("randwrite", 64, 8)),
    ];
    for (mib, case) in cases {
        let expected = (mib << 10) as f64 / case.bs_kib as f64;
        steadily(|| check(&ours, &device, &Cap::bytes_per_second(mib * MIB), &case, expected));
    }
}

/// Little's law: requests in flight = completions per second * seconds each was in flight.
#[test]
fn rate_times_latency_equals_the_queue_depth() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(64 * MIB));
    for (cap, rw, engine, depth) in [
        (500, "randread", "psync", 1),
        (500, "randwrite", "io_uring", 1),
        (2000, "randwrite", "io_uring", 8),
        (2000, "randread", "libaio", 8),
        (8000, "randread", "io_uring", 64),
        (8000, "randwrite", "libaio", 64),
    ] {
        let case = Use { rw, bs_kib: 4, depth, engine };
        let throttle = Throttle::new(device.path(), &Cap::iops(cap));
        steadily(|| {
            let report =
                ours.fio_under(&throttle, case.arguments(&device, RUNTIME).iter().map(String::as_str));
            let latency_s = report.number(&format!("/{}/lat_ns/mean", case.op())) / 1e9;
            within(&format!("{rw} {engine}"), case.rate(&report) * latency_s, depth as f64, 5.0)
        });
    }
}
