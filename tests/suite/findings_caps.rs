//! Findings about limits, from devices whose limits are known. Rates are low, so that all run side by side.

use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_tests::{
    Cap, LoggedDisk, LoopDevice, MIB, NbdDisk, Partition, Throttle, fathom_path, measuring_alone, must_run,
    need, wait_for, with_environment,
};
use serde_json::Value;

use crate::findings::{Case, found, number, only, side_by_side};
use crate::ours::{Ours, filename, within};

/// Common to all loads: direct reads for a fixed time.
const READS: [&str; 8] = [
    "fio", "--keep", "--eta=never", "--rw=randread", "--bs=4k", "--ioengine=io_uring", "--direct=1",
    "--time_based",
];

/// A run of `words` after [`READS`], inside the group of `throttle`.
fn load(ours: &Ours, throttle: Option<&Throttle>, words: &str) -> Command {
    let plain = ours.command();
    let mut command = match throttle {
        Some(throttle) => with_environment(throttle.command(fathom_path()), &plain),
        None => plain,
    };
    command.args(READS).args(words.split_whitespace()).stdout(Stdio::null());
    command
}

/// The record of such a run.
fn measured(ours: &Ours, throttle: Option<&Throttle>, words: &str) -> Value {
    must_run(load(ours, throttle, words).stdout(Stdio::piped()));
    ours.newest_record()
}

/// One request takes 8 ms and ten are served in parallel, but the limit is 400 IOPS.
fn a_curve_that_bends() -> Result<(), String> {
    let ours = Ours::new();
    let disk = LoggedDisk::new(64 * MIB, Duration::from_millis(8));
    let device = LoopDevice::over(&disk.path());
    let throttle = Throttle::new(device.path(), &Cap::iops(400));
    let jobs = [(1, "2500ms"), (2, "2500ms"), (4, "4300ms"), (16, "4300ms")].map(|(depth, runtime)| {
        format!(
            "--name=d{depth} {} --iodepth={depth} --runtime={runtime} --stonewall",
            filename(device.path())
        )
    });
    let record = measured(&ours, Some(&throttle), &jobs.join(" "));
    let cap = found(&record, "iops-cap")?;
    within("the cap", number(cap, "iops"), 400.0, 3.0)?;
    let knee = found(&record, "knee")?;
    within("the plateau", number(knee, "plateau_iops"), 400.0, 5.0)?;
    within("the depth for the rate", number(knee, "iodepth_throughput"), 4.0, 5.0)?;
    within("the depth for latency", number(knee, "iodepth_latency"), 4.0, 5.0)?;
    let queueing = found(&record, "queueing")?;
    // 16 in flight at 400 IOPS take 40 ms, of which the disk takes slightly more than eight.
    within("the latency", number(queueing, "lat_ns"), 40e6, 3.0)?;
    within("the latency of one", number(queueing, "lat_alone_ns"), 8.5e6, 15.0)?;
    within("the depth that is enough", number(queueing, "depth_enough"), 4.0, 26.0)?;
    let shallow = found(&record, "queue-too-shallow")?;
    within("the depth that is too small", number(shallow, "depth"), 2.0, 5.0)?;
    within("what it could be", number(shallow, "iops_reached"), 400.0, 5.0)?;
    only(&record, &["iops-cap", "knee", "queueing", "queue-too-shallow", "short-run", "low-sample"])
}

/// As before without a limit: eight in parallel take no longer than one.
fn a_disk_that_could_do_more() -> Result<(), String> {
    let (ours, disk) = (Ours::new(), LoggedDisk::new(64 * MIB, Duration::from_millis(8)));
    let jobs = [1, 2, 8].map(|depth| {
        format!("--name=d{depth} {} --iodepth={depth} --runtime=1200ms --stonewall", filename(&disk.path()))
    });
    let record = measured(&ours, None, &jobs.join(" "));
    let open = found(&record, "not-saturated")?;
    within("the depth", number(open, "depth"), 8.0, 5.0)?;
    within("the growth of latency", number(open, "latency_growth"), 1.0, 25.0)?;
    let shallow = found(&record, "queue-too-shallow")?;
    within("the depth that is too small", number(shallow, "depth"), 2.0, 5.0)?;
    within("the depth it takes", number(shallow, "depth_needed"), 8.0, 26.0)?;
    let short = found(&record, "short-run")?;
    within("the run", number(short, "measured_ns"), 1.2e9, 5.0)?;
    let few = found(&record, "low-sample")?;
    within("the requests of the first", number(few, "requests"), 1.2 / 0.0085, 15.0)?;
    only(&record, &["not-saturated", "queue-too-shallow", "short-run", "low-sample"])
}

/// 1,000 requests and 25 MiB a second, which meet at 25.6 KiB.
fn blocks_too_small_for_the_bandwidth() -> Result<(), String> {
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(128 * MIB));
    let cap = Cap { read_iops: Some(1000), read_bps: Some(25 * MIB), ..Cap::default() };
    let throttle = Throttle::new(device.path(), &cap);
    let common = format!("{} --rw=read --runtime=4300ms --stonewall", filename(device.path()));
    let words = format!("--name=small {common} --iodepth=8 --name=large {common} --bs=256k --iodepth=4");
    let record = measured(&ours, Some(&throttle), &words);
    within("requests", number(found(&record, "iops-cap")?, "iops"), 1000.0, 3.0)?;
    let bytes = found(&record, "bandwidth-cap")?;
    // The figure of the test, with what the limiter allowed at its start.
    within("bytes", number(bytes, "bytes_per_second"), (25 * MIB) as f64, 5.0)?;
    within("the crossover", number(bytes, "crossover_block_size_bytes"), 25.6 * 1024.0, 5.0)?;
    let small = found(&record, "small-block-for-bandwidth")?;
    within("blocks that are too small", number(small, "block_size_bytes"), 4096.0, 0.0)?;
    within("blocks that are not", number(small, "block_size_needed_bytes"), 25.6 * 1024.0, 5.0)?;
    only(&record, &["iops-cap", "bandwidth-cap", "small-block-for-bandwidth", "low-sample"])
}

/// The record of 12 s on a device whose cap changes after a number of reads, and what stood on standard error.
fn under_changing_caps(caps: &[(u64, u64)]) -> (Value, String) {
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(64 * MIB));
    let throttle = Throttle::new(device.path(), &Cap::iops(caps[0].0));
    let words = format!("--name=q {} --iodepth=16 --runtime=12", filename(device.path()));
    let mut command = load(&ours, Some(&throttle), &words);
    let child = command.stderr(Stdio::piped()).spawn().expect("the program runs");
    let mut at = device.stat()[0];
    for pair in caps.windows(2) {
        at += pair[0].1;
        let is_there = wait_for(Duration::from_secs(30), || device.stat()[0] >= at);
        assert!(is_there, "{} of {at} reads", device.stat()[0]);
        throttle.set(&Cap::iops(pair[1].0));
    }
    let ended = child.wait_with_output().expect("a child can be waited for");
    assert!(ended.status.success());
    (ours.newest_record(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

fn a_falling_cap_gives_burst_suspected() -> Result<(), String> {
    let (record, stderr) = under_changing_caps(&[(2000, 11_500), (500, 0)]);
    // Also where no terminal shows the notes: the mean is the rate of neither.
    assert!(stderr.starts_with("fathom: ") && stderr.contains("the rate fell from "), "{stderr}");
    let burst = found(&record, "burst-suspected")?;
    within("burst", number(burst, "burst_iops"), 2000.0, 5.0)?;
    within("baseline", number(burst, "baseline_iops"), 500.0, 5.0)?;
    within("what was used", number(burst, "credit_used_requests"), 1500.0 * 5.75, 15.0)?;
    only(&record, &["burst-suspected"])
}

fn a_cap_that_falls_and_rises_is_not_steady() -> Result<(), String> {
    let (record, _) = under_changing_caps(&[(1000, 4000), (500, 2000), (1000, 0)]);
    let course = found(&record, "not-steady")?;
    let windows = course["evidence"]["windows_iops"].as_array().expect("windows are listed");
    let rates = || windows.iter().filter_map(Value::as_f64);
    within("the least", rates().fold(f64::MAX, f64::min), 500.0, 8.0)?;
    within("the most", rates().fold(0.0, f64::max), 1000.0, 8.0)?;
    only(&record, &["not-steady"])
}

/// Both targets by themselves, then together, each with jobs of `common`.
fn apart_and_together(names: &[String; 2], common: &str) -> String {
    let [one, other] = names;
    format!(
        "{common} --name=first {one} --name=second {other} --stonewall --name=both-first {one} --stonewall \
         --name=both-second {other}"
    )
}

fn two_partitions_share_the_limit_of_their_disk() -> Result<(), String> {
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(64 * MIB));
    // Of 30 MiB each.
    let parts = [1, 2].map(|number| Partition::add(&device, number, 2048 + (number - 1) * 61_440, 61_440));
    let throttle = Throttle::new(device.path(), &Cap::iops(1000));
    let names = parts.each_ref().map(|part| filename(part.path()));
    let words = apart_and_together(&names, "--iodepth=8 --runtime=2700ms");
    let record = measured(&ours, Some(&throttle), &words);
    let shared = found(&record, "instance-cap")?;
    within("together", number(shared, "iops_together"), 1000.0, 5.0)?;
    within("apart", number(shared, "iops_apart"), 2000.0, 5.0)
}

/// A hidden limit of 16 MiB/s: two volumes on one disk that has the limit.
fn two_volumes_share_the_limit_of_a_server() -> Result<(), String> {
    let ours = Ours::new();
    let disk = NbdDisk::new(64 * MIB, &["rate"], &["rate=128M", "burstiness=0.1"]);
    let devices = [(); 2].map(|()| LoopDevice::over(&disk.path()));
    let names = devices.each_ref().map(|device| filename(device.path()));
    let words = apart_and_together(&names, "--bs=64k --iodepth=4 --runtime=2700ms");
    let record = measured(&ours, None, &words);
    let shared = found(&record, "instance-cap")?;
    within("together", number(shared, "iops_together"), 256.0, 10.0)?;
    within("apart", number(shared, "iops_apart"), 512.0, 10.0)
}

#[test]
fn limits_are_reported_with_their_values() {
    need!(
        root, limits, tool "losetup", tool "addpart", tool "nbdkit", tool "nbdfuse", tool "fusermount3",
        path "/dev/shm"
    );
    let _alone = measuring_alone();
    let cases: [Case; 7] = [
        ("a curve", a_curve_that_bends),
        ("no limit", a_disk_that_could_do_more),
        ("blocks", blocks_too_small_for_the_bandwidth),
        ("a burst", a_falling_cap_gives_burst_suspected),
        ("ups and downs", a_cap_that_falls_and_rises_is_not_steady),
        ("partitions", two_partitions_share_the_limit_of_their_disk),
        ("volumes", two_volumes_share_the_limit_of_a_server),
    ];
    side_by_side(&cases);
}
