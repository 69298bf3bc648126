//! `fathom monitor` compared with Debian's iostat on known loads; jobs written from observed loads; stalls, removed
//! devices, and stacked devices.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    FioReport, LoopDevice, LoopOptions, MIB, NbdDisk, Program, fathom, fathom_path, loading, measuring_alone,
    measuring_capped, must_run, need, number, run, scratch, wait_for,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::ours::{Ours, filename, steadily, within};

/// The lines of `monitor --json` of these arguments, which must end well.
fn monitored(arguments: &[&str]) -> Vec<Value> {
    let home = scratch();
    let ended = run(fathom(home.path()).args(["monitor", "--json"]).args(arguments));
    ended.assert_code(0);
    lines(&ended.stdout)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("each line is a JSON object")).collect()
}

/// A sentence where something does not hold.
fn holds(what: bool, told: impl std::fmt::Debug) -> Result<(), String> {
    if what { Ok(()) } else { Err(format!("{told:?}")) }
}

/// Debian's fio at a steady rate: 400 scattered reads of 4k, 100 of 16k, 150 writes of 64k in order with a flush after
/// every tenth, and 40 trims of 32k, each a second, until dropped.
fn load(device: &Path) -> Program {
    let mut command = Command::new("fio");
    command.args(["--direct=1", "--ioengine=libaio", "--time_based", "--runtime=60", "--eta=never"]);
    command.arg(filename(device));
    for job in [
        "--name=a --rw=randread --bs=4k --rate_iops=400",
        "--name=b --rw=randread --bs=16k --rate_iops=100",
        "--name=c --rw=write --bs=64k --rate_iops=150 --fdatasync=10",
        "--name=d --rw=randtrim --bs=32k --rate_iops=40",
    ] {
        command.args(job.split(' '));
    }
    let mut load = Program::start(&mut command);
    assert!(!wait_for(Duration::from_secs(2), || load.has_ended()), "{}", load.stderr());
    load
}

/// The reads of each size that `load` does in a second.
const READS: [(&str, f64); 2] = [("4096", 400.0), ("16384", 100.0)];

#[test]
fn rates_equal_those_of_the_load_and_of_iostat() {
    need!(root, tool "losetup", tool "fio", tool "iostat", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(128 * MIB);
    let load = load(device.path());
    steadily(|| {
        // Both observe the same four seconds, except for their start.
        let mut iostat = Command::new("iostat");
        iostat.args(["-x", "-y", "-k", "-o", "JSON", device.name(), "4", "1"]).env("LC_ALL", "C");
        let iostat = Program::start(&mut iostat);
        let seen = monitored(&["--interval=4", "--count=1", "--trace", device.name()]);
        let theirs = iostat.finish().document();
        let theirs =
            theirs.pointer("/sysstat/hosts/0/statistics/0/disk/0").expect("iostat's row of the device");
        let [seen] = seen.as_slice() else { return Err(format!("{} lines", seen.len())) };
        assert_eq!((&seen["schema"], &seen["presence"]), (&"fathom.monitor/1".into(), &"there".into()));

        within("reads", number(seen, "/read/iops"), 500.0, 3.0)?;
        within("trims", number(seen, "/trim/iops"), 40.0, 6.0)?;
        // The kernel counts a flush without data as a write, too.
        within("writes", number(seen, "/write/iops"), 165.0, 4.0)?;
        within("flushes", number(seen, "/flush/iops"), 15.0, 14.0)?;
        for (ours, name, factor) in [
            ("/read/iops", "r/s", 1.0),
            ("/write/iops", "w/s", 1.0),
            ("/trim/iops", "d/s", 1.0),
            ("/read/bytes_per_second", "rkB/s", 1024.0),
            ("/write/bytes_per_second", "wkB/s", 1024.0),
            ("/trim/bytes_per_second", "dkB/s", 1024.0),
        ] {
            within(
                name,
                number(seen, ours),
                number(theirs, &format!("/{}", name.replace('/', "~1"))) * factor,
                6.0,
            )?;
        }
        let queue = (number(seen, "/queue_depth_mean"), number(theirs, "/aqu-sz"));
        holds((queue.0 - queue.1).abs() < 0.2 + queue.1 / 4.0, queue)?;

        // Single requests: exact sizes, order, and times that lie within the waits.
        let requests = &seen["requests"];
        holds(requests["lost"] == 0, &requests["lost"])?;
        for (size, rate) in READS {
            let count = number(requests, &format!("/read/sizes/{size}"));
            // Adjacent requests issued together are sometimes merged.
            within(size, count / (number(seen, "/elapsed_ns") / 1e9), rate, 4.0)?;
        }
        let written = requests["write"]["sizes"].as_object().map(|sizes| sizes.len());
        holds(written == Some(1), &requests["write"]["sizes"])?;
        let shares = ["write", "read"].map(|op| number(requests, &format!("/{op}/sequential_share")));
        holds(shares[0] > 0.95 && shares[1] < 0.1, shares)?;
        let (service, wait) =
            (number(requests, "/read/service_ns/mean"), number(seen, "/read/await_mean_ns"));
        let error = number(seen, "/read/await_error_ns");
        holds(service > 0.0 && service < wait + error, (service, wait, error))?;

        let owners = seen["owners"].as_array().expect("owners");
        holds(owners.iter().any(|owner| owner["command"] == "fio"), owners)
    });
    load.signal(Signal::INT);
    load.finish();
}

/// Requests and bytes per second of each kind in a report of several jobs.
fn totals(report: &FioReport) -> Vec<(&'static str, f64, f64)> {
    ["read", "write", "trim"].map(|op| (op, report.iops(op), report.bytes_per_second(op))).to_vec()
}

#[test]
fn a_job_from_a_known_load_repeats_it() {
    need!(root, tool "losetup", tool "fio", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(128 * MIB);
    let home = scratch();
    let file = home.path().join("load.fio");
    let path = file.to_str().expect("a path in ASCII");
    let running = load(device.path());
    let named = device.path().to_str().expect("a node in ASCII");
    monitored(&["--count=3", "--to-job", path, named]);
    running.signal(Signal::INT);
    running.finish();

    let text = std::fs::read_to_string(&file).expect("the job was written");
    let ours = Ours::new();
    // Without a target it must not run on anything.
    assert_eq!(run(ours.command().args(["fio", path]).env_remove("TARGET")).status.code(), Some(1), "{text}");
    let with_target = |mut command: Command| {
        command.args(["--output-format=json", "--eta=never", path]).env("TARGET", device.path());
        let output = command.output().expect("the program runs");
        FioReport::read(&output)
    };
    steadily(|| {
        for (who, command) in [("fathom", ours.command()), ("fio", Command::new("fio"))] {
            let mut command = command;
            if who == "fathom" {
                command.arg("fio");
            }
            let report = with_target(command);
            assert_eq!(report.status, Some(0), "{who}: {}", report.said);
            let expected = [(500.0, 3_276_800.0), (150.0, 9_830_400.0), (40.0, 1_310_720.0)];
            for ((op, iops, rate), (known_iops, known_rate)) in totals(&report).into_iter().zip(expected) {
                within(&format!("{who} {op} IOPS"), iops, known_iops, 5.0)?;
                within(&format!("{who} {op} size"), rate / iops, known_rate / known_iops, 5.0)?;
            }
        }
        Ok(())
    });
    assert!(text.contains("fdatasync=10\n") && text.contains("rw=write\nbs=64k\n"), "{text}");
}

#[test]
fn named_targets_are_found_with_their_underlying_devices() {
    need!(root, tool "losetup", tool "addpart", tool "sfdisk", tool "mkfs.ext4", tool "mount", path "/dev/shm");
    let _loading = loading();
    let device = LoopDevice::with(&LoopOptions { partitions: true, ..LoopOptions::of_size(32 * MIB) });
    let script = scratch();
    std::fs::write(script.path().join("table"), "start=2048, size=32768\n").expect("the directory is ours");
    let table = std::fs::File::open(script.path().join("table")).expect("just written");
    must_run(Command::new("sfdisk").args(["--quiet", "--no-tell-kernel"]).arg(device.path()).stdin(table));
    must_run(Command::new("addpart").arg(device.path()).args(["1", "2048", "32768"]));
    let partition = device.partition(1);
    let name = partition.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    let mount = fathom_tests::Mount::made(&partition, "ext4");
    let inside = mount.path().to_str().expect("a path in ASCII");
    for (asked, as_typed) in [(name.as_str(), Value::Null), (inside, inside.into())] {
        let seen = monitored(&["--interval=50ms", "--count=1", asked]);
        assert_eq!((seen.len(), &seen[0]["device"]["name"]), (1, &name.as_str().into()));
        assert_eq!(seen[0]["device"]["asked"], as_typed);
        let under = seen[0]["device"]["under"].as_array().expect("what it lies on");
        assert_eq!(under[0], device.name(), "{under:?}");
    }
    // Writes into the partition are the partition's and the disk's; another part of the disk is not the partition's.
    let home = scratch();
    let mut both = fathom(home.path());
    both.args(["monitor", "--json", "--trace", "--interval=3", "--count=1", &name, device.name()]);
    let monitor = Program::start(&mut both);
    wait_for(Duration::from_secs(1), || false);
    must_run(
        Command::new("dd")
            .args(["if=/dev/zero", "bs=64k", "count=8", "oflag=direct", "conv=notrunc"])
            .arg(format!("of={}", mount.join("file").display())),
    );
    must_run(
        Command::new("dd")
            .args(["bs=4k", "count=16", "iflag=direct", "skip=5000", "of=/dev/null"])
            .arg(format!("if={}", device.path().display())),
    );
    let ended = monitor.finish();
    let seen = lines(&ended.stdout);
    let requests = |index: usize, kind: &str| number(&seen[index], &format!("/requests/{kind}/sizes/65536"));
    assert_eq!((requests(0, "write"), requests(1, "write")), (8.0, 8.0), "{ended}");
    assert!(number(&seen[1], "/read/ios") >= 16.0, "{ended}");
    let reads = seen[0].pointer("/requests/read/sizes/4096").and_then(Value::as_f64).unwrap_or(0.0);
    assert!(reads < 16.0, "{ended}");
    drop(mount);
    must_run(Command::new("delpart").arg(device.path()).arg("1"));
}

#[test]
fn an_unresponsive_device_is_stalled_and_not_idle() {
    need!(root, tool "losetup", tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _loading = loading();
    let disk = NbdDisk::new(16 * MIB, &[], &[]);
    let device = LoopDevice::over(&disk.path());
    let home = scratch();
    let mut command = fathom(home.path());
    command.args(["monitor", "--json", "--interval=500ms", device.name()]);
    let monitor = Program::start(&mut command);
    disk.hang();
    let mut read = Command::new("dd");
    read.args(["of=/dev/null", "bs=4k", "count=1", "iflag=direct"])
        .arg(format!("if={}", device.path().display()));
    let read = Program::start(&mut read);
    let told = wait_for(Duration::from_secs(20), || monitor.stderr().contains("stalled: no I/O completed"));
    assert!(told, "{}\n{}", monitor.stdout(), monitor.stderr());
    let in_lines = || lines(&monitor.stdout()).iter().any(|line| line["stalled_ns"].is_u64());
    assert!(wait_for(Duration::from_secs(20), in_lines), "{}", monitor.stdout());
    disk.resume();
    assert!(
        wait_for(Duration::from_secs(20), || monitor.stderr().contains("I/Os complete again")),
        "{}",
        monitor.stderr()
    );
    read.finish();
    monitor.signal(Signal::INT);
    let ended = monitor.finish_within(Duration::from_secs(10));
    ended.assert_code(130);
    let stalled: Vec<Value> =
        lines(&ended.stdout).into_iter().filter(|line| line["stalled_ns"].is_u64()).collect();
    let longest = stalled.iter().map(|line| number(line, "/stalled_ns")).fold(0.0, f64::max);
    assert!(longest >= 1.5e9, "{stalled:#?}");
    assert!(stalled.iter().any(|line| line["total"]["iops"].is_null() && line["in_flight"]["last"] == 1));
}

/// A memory disk without its own queue; removed on drop.
struct Zram(String);

impl Zram {
    fn new() -> Zram {
        let number = std::fs::read_to_string("/sys/class/zram-control/hot_add").expect("zram makes a disk");
        let zram = Zram(format!("zram{}", number.trim()));
        let size = format!("/sys/block/{}/disksize", zram.0);
        std::fs::write(&size, "32M").unwrap_or_else(|error| panic!("cannot set {size}: {error}"));
        zram
    }

    fn node(&self) -> PathBuf {
        Path::new("/dev").join(&self.0)
    }

    fn remove(&self) -> bool {
        std::fs::write("/sys/class/zram-control/hot_remove", self.0.trim_start_matches("zram")).is_ok()
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        wait_for(Duration::from_secs(5), || !self.node().exists() || self.remove());
    }
}

#[test]
fn removed_devices_are_reported_and_devices_without_a_queue_traced() {
    need!(root, path "/sys/class/zram-control/hot_add");
    let _loading = loading();
    let device = Zram::new();
    let home = scratch();
    let mut command = fathom(home.path());
    command.args(["monitor", "--json", "--trace", "--interval=200ms", &device.0]);
    let monitor = Program::start(&mut command);
    let seen = |what: &dyn Fn(&Value) -> bool| {
        let found = wait_for(Duration::from_secs(20), || lines(&monitor.stdout()).iter().any(what));
        assert!(found, "{}\n{}", monitor.stdout(), monitor.stderr());
    };
    seen(&|line| line["presence"] == "there");
    must_run(
        Command::new("dd")
            .args(["if=/dev/zero", "bs=16k", "count=10", "oflag=direct"])
            .arg(format!("of={}", device.node().display())),
    );
    seen(&|line| line["device"]["stacked"] == true && line["requests"]["write"]["sizes"]["16384"].is_u64());
    assert!(wait_for(Duration::from_secs(10), || device.remove()), "the disk does not go");
    seen(&|line| line["presence"] == "gone" && line["total"]["iops"].is_null());
    monitor.signal(Signal::INT);
    monitor.finish().assert_code(130);
}

#[test]
fn monitor_ends_with_success_and_leaves_nothing_behind() {
    need!(root, tool "losetup", path "/dev/shm");
    let _alone = measuring_alone();
    let device = LoopDevice::new(16 * MIB);
    let home = scratch();
    let asked = |arguments: &[&str]| run(fathom(home.path()).arg("monitor").args(arguments));
    asked(&["no-such-device"]).assert_code(1).assert_told(&["no-such-device", "/sys/class/block"]);
    asked(&["/dev/shm"]).assert_code(1).assert_told(&["tmpfs", "hint: use a device"]);
    asked(&["--interval=1ms", device.name()]).assert_code(2);
    asked(&["--count=0", device.name()]).assert_code(2);
    asked(&["--to-job=/nowhere/load.fio", device.name()]).assert_code(2).assert_told(&["/nowhere/load.fio"]);
    let idle = home.path().join("idle.fio");
    let idle_arguments =
        ["--interval=50ms", "--count=2", "--to-job", idle.to_str().expect("ASCII"), device.name()];
    asked(&idle_arguments).assert_code(1).assert_told(&["the devices completed no I/O"]);
    assert!(!idle.exists());
    let plain = asked(&["--interval=50ms", "--count=2", device.name(), device.name()]);
    plain.assert_code(0);
    assert_eq!(plain.stdout.lines().count(), 3, "a head and two lines:\n{plain}");
    assert!(!plain.stdout.contains('\x1b'), "{plain}");

    // A reader that has seen enough ends it.
    let pipe = format!("{} monitor --interval=50ms {} | head -n 2", fathom_path().display(), device.name());
    assert_eq!(must_run(Command::new("timeout").args(["20", "sh", "-c", &pipe])).lines().count(), 2);

    // Nothing of a trace outlives the process that took it, however that ends.
    let tracefs = fathom_tests::Mount::tracefs();
    let state = || {
        let enabled = std::fs::read_to_string(tracefs.join("events/block/enable")).unwrap_or_default();
        let instances = std::fs::read_dir(tracefs.join("instances")).map(Iterator::count).unwrap_or(0);
        (enabled, instances)
    };
    let before = state();
    let mut command = fathom(home.path());
    command.args(["monitor", "--json", "--trace", "--interval=50ms", device.name()]);
    let monitor = Program::start(&mut command);
    assert!(
        wait_for(Duration::from_secs(20), || monitor.stdout().lines().count() > 2),
        "{}",
        monitor.stderr()
    );
    monitor.signal(Signal::KILL);
    monitor.finish();
    assert_eq!(state(), before);
}

/// A load that keeps a number of requests in flight comes back with that depth.
#[test]
fn a_job_keeps_the_queue_depth() {
    need!(root, tool "losetup", tool "fio", tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _capped = measuring_capped();
    // So slow that what fio does between two requests does not count.
    let disk = NbdDisk::new(64 * MIB, &["delay"], &["rdelay=4ms"]);
    let device = LoopDevice::over(&disk.path());
    let home = scratch();
    let file = home.path().join("load.fio");
    let mut command = Command::new("fio");
    command.args("--name=d --rw=randread --bs=4k --iodepth=16 --direct=1 --ioengine=libaio".split(' '));
    command.args(["--time_based", "--runtime=60", "--eta=never"]).arg(filename(device.path()));
    let before = device.stat()[0];
    let running = Program::start(&mut command);
    assert!(wait_for(Duration::from_secs(20), || device.stat()[0] > before + 100));
    monitored(&["--count=1", "--to-job", file.to_str().expect("ASCII"), device.name()]);
    running.signal(Signal::INT);
    running.finish();
    let text = std::fs::read_to_string(&file).expect("the job was written");
    let depth = text.lines().find_map(|line| line.strip_prefix("iodepth=")?.parse::<u64>().ok());
    assert_eq!(depth, Some(16), "{text}");
}
