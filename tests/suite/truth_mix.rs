//! Shares of reads and writes are those asked for.

use fathom_tests::{LoopDevice, MIB, loading, need};

use crate::ours::{Ours, filename};

/// The share of reads must be `percent` of `ios` within half of one in a hundred, or one request where that is more.
fn check(ours: &Ours, mix: &str, percent: f64, ios: u64) {
    let io_size = format!("--io_size={}", ios * 4096);
    for rw in ["randrw", "rw"] {
        let rw = format!("--rw={rw}");
        let report = ours.fio([
            "--name=mix", "--ioengine=null", "--size=100g", "--bs=4k", "--iodepth=4", &rw, mix, &io_size,
        ]);
        let [reads, writes] = ["read", "write"].map(|op| report.number(&format!("/{op}/total_ios")));
        assert_eq!(reads + writes, ios as f64, "{rw} {mix}");
        let off = (reads - ios as f64 * percent / 100.0).abs();
        assert!(off <= (ios as f64 * 0.005).max(1.0), "{rw} {mix}: {reads} reads of {ios}");
    }
}

#[test]
fn the_mix_is_the_requested_one() {
    let _loading = loading();
    let ours = Ours::new();
    for ios in [100, 1000, 20_000, 1_000_000] {
        for percent in [75_u32, 1, 99, 50, 30] {
            check(&ours, &format!("--rwmixread={percent}"), percent.into(), ios);
        }
        check(&ours, "--rwmixwrite=30", 70.0, ios);
        check(&ours, "--rwmixread=100", 100.0, ios);
        check(&ours, "--rwmixread=0", 0.0, ios);
    }
}

#[test]
fn the_mix_is_exact_on_a_device_and_in_every_job() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(32 * MIB));
    let name = filename(device.path());
    let arguments = ["--name=mix", "--rw=randrw", "--rwmixread=75", "--bs=4k", "--direct=1", "--iodepth=64"];
    let more = ["--ioengine=io_uring", "--numjobs=2", &name];
    let report = ours.fio(arguments.into_iter().chain(more));
    for job in report.document["jobs"].as_array().expect("jobs") {
        let [reads, writes] = ["read", "write"].map(|op| job[op]["total_ios"].as_f64().expect("a count"));
        assert_eq!(reads + writes, 8192.0);
        assert!((reads / 8192.0 - 0.75).abs() <= 0.005, "{reads} reads of 8192");
    }
}
