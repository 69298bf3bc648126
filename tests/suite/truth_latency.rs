//! Latencies, compared with known delays and with another program's clock.

use fathom_tests::{
    Cap, FioReport, GoingFirst, LoopDevice, MIB, NbdDisk, Throttle, fio, measuring_alone, measuring_capped,
    need,
};

use crate::ours::{Ours, filename, steadily, within};

#[test]
fn the_reported_latency_is_the_configured_delay() {
    need!(root, tool "chrt", tool "nbdkit", tool "nbdfuse", tool "fusermount3", tool "fio", path "/dev/fuse");
    let (_alone, _first) = (measuring_alone(), GoingFirst::new());
    let ours = Ours::new();
    let disk = NbdDisk::new(16 * MIB, &["delay"], &["rdelay=5ms", "wdelay=10ms"]);
    let name = filename(&disk.path());
    for engine in ["psync", "io_uring", "libaio"] {
        for (op, delay_ns) in [("read", 5e6), ("write", 10e6)] {
            let (engine, rw) = (format!("--ioengine={engine}"), format!("--rw=rand{op}"));
            let arguments =
                ["--name=delayed", "--bs=4k", "--direct=1", "--io_size=240k", &name, &engine, &rw];
            let arguments = || arguments.into_iter().chain(["--iodepth=1", "--size=16m"]);
            steadily(|| {
                let (our, fios) = (ours.fio(arguments()), fio(arguments()));
                let least = |report: &FioReport| report.number(&format!("/{op}/lat_ns/min"));
                let median =
                    |report: &FioReport| report.number(&format!("/{op}/clat_ns/percentile/50.000000"));
                // A timer wakes late and never early.
                assert!(least(&our) >= delay_ns, "{op} {engine}: before the delay");
                // The way through nbdfuse takes a fraction of a ms, more of it where the host is slow or busy.
                within(&format!("{op} {engine}: least, beside fio"), least(&our), least(&fios), 5.0)?;
                within(&format!("{op} {engine}: median, beside fio"), median(&our), median(&fios), 10.0)
            });
        }
    }
}

/// 100 requests per second are granted ten at a time: nine of ten complete immediately, and the tenth after a slice of
/// 100 ms. The percentiles step from one to the other where that share is.
#[test]
fn percentiles_step_with_the_latencies() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(16 * MIB));
    let throttle = Throttle::new(device.path(), &Cap::iops(100));
    let name = filename(device.path());
    let arguments = ["--name=two", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=psync", &name];
    let timed = ["--time_based", "--startdelay=300ms", "--runtime=2", "--percentile_list=10:50:85:95:99"];
    steadily(|| {
        let report = ours.fio_under(&throttle, arguments.into_iter().chain(timed));
        for (percent, expected_ms) in
            [(10, 0.0..10.0), (50, 0.0..10.0), (85, 0.0..10.0), (95, 80.0..105.0), (99, 80.0..105.0)]
        {
            let ms = report.number(&format!("/read/clat_ns/percentile/{percent}.000000")) / 1e6;
            if !expected_ms.contains(&ms) {
                return Err(format!("p{percent} is {ms} ms"));
            }
        }
        Ok(())
    });
}

/// `strace -T` times each system call by its own clock; a synchronous engine's latency is that of its call.
#[test]
fn strace_measures_the_same_latencies() {
    need!(root, tool "strace", tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _alone = measuring_alone();
    let ours = Ours::new();
    let disk = NbdDisk::new(16 * MIB, &["delay"], &["rdelay=3ms"]);
    let path = disk.path();
    let name = filename(&path);
    let options = ["-T", "-s", "0", "-e", "trace=pread64", "-P", path.to_str().expect("ASCII")];
    let arguments = ["--name=timed", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=psync", &name];
    steadily(|| {
        let (report, trace) = ours.fio_traced(&options, arguments.into_iter().chain(["--io_size=800k"]));
        let durations: Vec<f64> = trace
            .lines()
            .filter_map(|line| line.rsplit_once('<')?.1.strip_suffix('>')?.parse().ok())
            .collect();
        assert_eq!(durations.len(), 200, "{trace}");
        let straces_ns = durations.iter().sum::<f64>() / durations.len() as f64 * 1e9;
        // Ours holds the stops for the tracer as well, a few tens of us of 3 ms.
        within("ours beside strace", report.number("/read/clat_ns/mean"), straces_ns, 5.0)
    });
}
