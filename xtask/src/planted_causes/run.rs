//! One case: the device is made, what is planted is started, and `fathom bench` measures it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fathom_tests::{
    Cap, LoopDevice, LoopOptions, Mount, NbdDisk, Need, Program, Throttle, fathom, fathom_path, fathom_under,
    must_run, scratch,
};
use serde_json::Value;

use super::case::{Cause, FakeFlush, Memory, PlantedCase};

/// What the campaign needs of the machine.
pub const NEEDS: &[Need] = &[
    Need::Root,
    Need::BlockLimits,
    Need::Tool("losetup"),
    Need::Tool("mkfs.ext4"),
    Need::Tool("mount"),
    Need::Tool("taskset"),
    Need::Tool("fio"),
    Need::Tool("nbdkit"),
    Need::Tool("nbdfuse"),
    Need::Tool("fusermount3"),
    Need::Path("/dev/shm"),
];

const MIB: u64 = 1 << 20;
const SIZE: u64 = 256 * MIB;
const LONGEST: Duration = Duration::from_secs(300);
/// How often a limit is set anew, s.
const STEP_S: f64 = 0.25;
/// A limit far below what the machine can do, which a neighbour shares and a decay begins at.
const PLAIN_IOPS: u64 = 1500;

/// Four seconds of one kind of I/O are enough for most causes.
const READS: &[&str] = &["--only=rand-read", "--runtime=4s", "--size=64m"];

/// What `fathom bench --json` prints of `case`.
pub fn bench(case: &PlantedCase) -> Value {
    match case.cause {
        Cause::Capped(cap) => capped(&cap, READS),
        Cause::Repeat(cap) => repeat(&cap),
        Cause::Decaying(a_second) => decaying(a_second),
        Cause::Neighbour(iops) => beside(iops),
        Cause::Starved(loops) => starved(loops),
        Cause::MemoryBacked(memory) => in_memory(memory),
        Cause::Unwritten(mib) => {
            // Direct reads of holes are answered by the file system that holds them.
            let device = LoopDevice::new(mib * MIB);
            plain(device.path(), READS)
        }
        Cause::FakeFlush(flush) => fake_flush(flush),
        Cause::Split(kib) => split(kib),
        Cause::Misaligned(block) => misaligned(block),
        Cause::Stalled(ms) => stalled(Duration::from_millis(ms)),
    }
}

/// A device on a disk of this machine, every block written.
fn on_disk() -> LoopDevice {
    LoopDevice::written(SIZE)
}

fn measured(mut command: Command, target: &Path, arguments: &[&str]) -> Value {
    command.args(["bench", "--json", "--no-history"]).args(arguments).arg(target);
    Program::start(&mut command).finish_within(LONGEST).document()
}

fn plain(target: &Path, arguments: &[&str]) -> Value {
    let home = scratch();
    measured(fathom(home.path()), target, arguments)
}

fn capped(cap: &Cap, arguments: &[&str]) -> Value {
    let (device, home) = (on_disk(), scratch());
    let throttle = Throttle::new(device.path(), cap);
    measured(fathom_under(&throttle, home.path()), device.path(), arguments)
}

fn repeat(cap: &Cap) -> Value {
    let (device, home) = (on_disk(), scratch());
    let throttle = Throttle::new(device.path(), cap);
    let destroy = format!("--destroy-data={}", device.path().display());
    measured(
        fathom_under(&throttle, home.path()),
        device.path(),
        &["--size=64m", "--runtime=4s", destroy.as_str()],
    )
}

fn decaying(a_second: f64) -> Value {
    let (device, home) = (on_disk(), scratch());
    let at = |seconds: f64| {
        let iops = PLAIN_IOPS as f64 * (1.0 - a_second).powf(seconds);
        Cap { read_iops: Some((iops as u64).max(1)), ..Cap::default() }
    };
    let throttle = Throttle::new(device.path(), &at(0.0));
    let mut command = fathom_under(&throttle, home.path());
    command.args(["bench", "--json", "--no-history", "--only=rand-read", "--runtime=20s", "--size=64m"]);
    let before = device.stat()[0];
    let mut program = Program::start(command.arg(device.path()));
    let mut began = None;
    while !program.has_ended() {
        std::thread::park_timeout(Duration::from_secs_f64(STEP_S));
        if began.is_none() && device.stat()[0] > before + PLAIN_IOPS / 4 {
            began = Some(crate::gate::now());
        }
        if let Some(began) = began {
            throttle.set(&at(began.elapsed().as_secs_f64()));
        }
    }
    program.finish_within(LONGEST).document()
}

fn beside(iops: u64) -> Value {
    let (device, home) = (on_disk(), scratch());
    let throttle = Throttle::new(device.path(), &Cap { read_iops: Some(PLAIN_IOPS), ..Cap::default() });
    let mut other = throttle.command("fio");
    other.args([
        "--name=other",
        "--direct=1",
        "--ioengine=libaio",
        "--rw=randread",
        "--bs=4k",
        "--iodepth=8",
    ]);
    other.args(["--time_based", "--runtime=600", &format!("--rate_iops={iops}")]);
    let mut other = started(other.arg(format!("--filename={}", device.path().display())));
    let document = measured(fathom_under(&throttle, home.path()), device.path(), READS);
    end(&mut other);
    document
}

/// Where a device is slow the client has time to spare, and waits for no CPU: this one is in memory.
fn starved(loops: usize) -> Value {
    let (device, home) = (LoopDevice::in_memory(SIZE), scratch());
    let mut others: Vec<Child> = (0..loops)
        .map(|_| started(Command::new("taskset").args(["-c", "0", "sh", "-c", "while :; do :; done"])))
        .collect();
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", "0"]).arg(fathom_path()).env("HOME", home.path());
    let document = measured(pinned, device.path(), READS);
    others.iter_mut().for_each(end);
    document
}

fn in_memory(memory: Memory) -> Value {
    match memory {
        Memory::Tmpfs => plain(Mount::tmpfs(SIZE).path(), READS),
        Memory::Device => plain(LoopDevice::in_memory(SIZE).path(), READS),
        Memory::FileSystem => {
            let device = LoopDevice::in_memory(SIZE);
            plain(Mount::made(device.path(), "ext4").path(), READS)
        }
        Memory::Overlay => {
            let (below, lower) = (Mount::tmpfs(SIZE), scratch());
            let [upper, work] = ["upper", "work"].map(|name| below.join(name));
            let merged = scratch();
            for directory in [&upper, &work] {
                fs::create_dir(directory).expect("the mount is new and ours");
            }
            let options = format!(
                "lowerdir={},upperdir={},workdir={}",
                lower.path().display(),
                upper.display(),
                work.display()
            );
            let mut mount = Command::new("mount");
            must_run(mount.args(["-t", "overlay", "overlay", "-o", &options]).arg(merged.path()));
            let document = plain(merged.path(), READS);
            must_run(Command::new("umount").arg(merged.path()));
            document
        }
    }
}

fn fake_flush(flush: FakeFlush) -> Value {
    // A helper thread of io_uring makes a sync of memory take as long as one of a disk.
    let commits = ["--only=commit", "--runtime=2s", "--size=32m", "--engine=psync"];
    match flush {
        FakeFlush::Memory(mib) => {
            let device = LoopDevice::in_memory(mib * MIB);
            let destroy = format!("--destroy-data={}", device.path().display());
            plain(device.path(), &[&commits[..], &[destroy.as_str()]].concat())
        }
        FakeFlush::NoBarriers(mib) => {
            let device = LoopDevice::written(mib * MIB);
            drop(Mount::made(device.path(), "ext4"));
            plain(Mount::of(device.path(), &["barrier=0"]).path(), &commits)
        }
    }
}

/// A suite of one test with these options of fio, at one runtime.
fn suite(options: &str) -> String {
    let profile = "runtime = \"3s\"\nramp = \"0s\"\nsize = \"16MiB\"\n";
    let profiles = ["quick", "default", "thorough"].map(|name| format!("[profile.{name}]\n{profile}"));
    format!(
        "title = \"One test\"\ndescription = \"One kind of I/O.\"\nsource = \"fathom\"\n[options]\nioengine = \"io_uring\"\n\
         direct = 1\n{}[[test]]\nid = \"one\"\ntitle = \"one\"\noptions = {{ {options} }}\n",
        profiles.concat()
    )
}

fn by_suite(target: &Path, options: &str, more: &[&str]) -> Value {
    let home = scratch();
    let path = home.path().join("suite.toml");
    fs::write(&path, suite(options)).expect("the scratch directory is ours");
    let named = format!("--suite={}", path.display());
    measured(fathom(home.path()), target, &[&[named.as_str()], more].concat())
}

fn split(kib: u32) -> Value {
    let options = LoopOptions { written: true, largest_request_kib: Some(kib), ..LoopOptions::of_size(SIZE) };
    let device = LoopDevice::with(&options);
    let options = format!("rw = \"randread\", bs = \"{}k\", iodepth = 2, rate_iops = 100", 4 * kib);
    by_suite(device.path(), &options, &[])
}

fn misaligned(block: u64) -> Value {
    let disk =
        LoopDevice::with(&LoopOptions { written: true, sector: 4096, ..LoopOptions::of_size(64 * MIB) });
    let mount = Mount::made(disk.path(), "ext4");
    let file = mount.join("image");
    fs::write(&file, vec![7; 24 * MIB as usize]).expect("the file system has room");
    let device = LoopDevice::cached_over(&file);
    let options = format!("rw = \"randwrite\", bs = {block}, iodepth = 1, rate_iops = 300");
    let destroy = format!("--destroy-data={}", device.path().display());
    by_suite(device.path(), &options, &[destroy.as_str()])
}

fn stalled(hang: Duration) -> Value {
    let (disk, home) = (NbdDisk::new(64 * MIB, &["delay"], &["rdelay=2ms"]), scratch());
    let mut command = fathom(home.path());
    command.args(["bench", "--json", "--no-history", "--only=rand-read", "--runtime=8s", "--size=32m"]);
    let mut program = Program::start(command.arg(disk.path()));
    // Most of the measured time is left once the test file is open.
    std::thread::park_timeout(Duration::from_secs(4));
    assert!(!program.has_ended(), "the run ended before the disk hung");
    disk.hang();
    std::thread::park_timeout(hang);
    disk.resume();
    program.finish_within(LONGEST).document()
}

fn started(command: &mut Command) -> Child {
    fathom_path();
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.spawn().unwrap_or_else(|error| panic!("cannot run {silent:?}: {error}"))
}

fn end(child: &mut Child) {
    child.kill().ok();
    child.wait().ok();
}
