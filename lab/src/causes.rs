//! `planted-causes`: measures devices whose numbers have a known cause, and counts the causes that were missed or invented; and capped
//! devices again and again, and reports verdicts and warnings that differ between repeats.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::ensure;
use fathom_tests::{
    Cap, LoopDevice, LoopOptions, MIB, Mount, NbdDisk, Need, Program, Throttle, fathom, fathom_path,
    fathom_under, must_run, scratch, suite,
};
use serde_json::{Value, json};
use xtask::process::now;

use crate::driver::{Campaign, Case, CaseResult, Plan};
use crate::identify::neighbour;

/// One after the other: most causes concern the whole machine.
pub const CAMPAIGN: Campaign = Campaign {
    cases: PLANTED + REPEATED,
    needs: &[
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
    ],
    resumes: true,
    ..Campaign::new(
        "planted-causes",
        "Measure devices with planted causes, and others again and again",
        |asked| {
            let cases = asked.seeds().map(PlantedCase::from_seed);
            let cases = cases
                .map(|case| Case::new(case.name.clone(), move || Ok(judged(&case, &measured(&case.cause)))));
            Ok(Plan::new(cases).judged_by(verdict))
        },
    )
};

/// Cases with a cause, and repeated measurements of devices without one.
const PLANTED: u64 = CAUSES * 4;
const REPEATED: u64 = REPEATED_CAPS.len() as u64 * 6;
const CAUSES: u64 = 10;
const SIZE: u64 = 256 * MIB;
const LONGEST: Duration = Duration::from_secs(300);
/// How often a limit is set anew, s.
const STEP_S: f64 = 0.25;
/// A limit far below what the machine can do, which a neighbour shares and a decay begins at.
const PLAIN_IOPS: u64 = 1500;
/// Four seconds of one kind of I/O are enough for most causes.
const READS: &[&str] = &["--only=rand-read", "--runtime=4s", "--size=64m"];
/// Rates of a limit may be wrong by this share.
const WITHIN: f64 = 0.05;
/// Causes of forty that may be missed.
const MAX_MISSED: usize = 2;
/// Findings that describe the load and not a cause, and those of the machine, which may be busy with something else.
pub const OF_LOAD: &[&str] = &[
    "short-run",
    "low-sample",
    "queueing",
    "queue-too-shallow",
    "not-saturated",
    "knee",
    "small-working-set",
    "small-block-for-bandwidth",
    "flush-cost",
    "buffered",
];
pub const OF_HOST: &[&str] =
    &["cpu-wait", "cpu-steal", "cpu-credit-suspected", "generator-late", "client-cpu-bound"];

/// What is known of a device or of its surroundings.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cause {
    Capped(Cap),
    /// The limit falls by this share a second.
    Decaying(f64),
    /// Another process reads this many blocks of 4 KiB a second.
    Neighbour(u64),
    /// So many busy loops share the CPU with the benchmark.
    Starved(usize),
    /// Data is kept in memory: on tmpfs, a device, a file system on one, or an overlay whose upper directory is on tmpfs.
    MemoryBacked(&'static str),
    /// So many MiB that were never written.
    Unwritten(u64),
    /// Syncs reach no medium of so many MiB: a device keeps its data in memory and announces a cache, or else a file system is
    /// mounted without barriers.
    FakeFlush {
        mib: u64,
        in_memory: bool,
    },
    /// The device takes requests of so many KiB at the most.
    Split(u32),
    /// Writes of this block size on physical blocks of 4 KiB.
    Misaligned(u64),
    /// Nothing is answered for so many ms.
    Stalled(u64),
    /// None: a repeat of one device.
    Repeat(Cap),
}

/// One measurement; the name of a repeat ends with its number.
struct PlantedCase {
    name: String,
    cause: Cause,
}

const fn reads(iops: Option<u64>, mib: Option<u64>) -> Cap {
    Cap { write_iops: None, write_bps: None, ..both(iops, None, mib, None) }
}

const fn both(
    read_iops: Option<u64>,
    write_iops: Option<u64>,
    read_mib: Option<u64>,
    write_mib: Option<u64>,
) -> Cap {
    const fn bytes(mib: Option<u64>) -> Option<u64> {
        match mib {
            Some(mib) => Some(mib * MIB),
            None => None,
        }
    }
    Cap { read_iops, write_iops, read_bps: bytes(read_mib), write_bps: bytes(write_mib) }
}

const REPEATED_CAPS: [Cap; 5] = [
    both(Some(240), Some(240), None, None),
    both(Some(1000), Some(600), None, None),
    both(None, None, Some(9), Some(9)),
    both(Some(1500), Some(1500), Some(25), Some(25)),
    both(Some(2200), Some(1100), Some(48), Some(20)),
];

impl PlantedCase {
    /// The `index`th: always the same. Four with each cause, then every device in turn.
    fn from_seed(index: u64) -> PlantedCase {
        if let Some(repeat) = index.checked_sub(PLANTED) {
            let device = repeat as usize % REPEATED_CAPS.len();
            let name = format!("repeat-{device}-{}", repeat as usize / REPEATED_CAPS.len());
            return PlantedCase { name, cause: Cause::Repeat(REPEATED_CAPS[device]) };
        }
        let variant = (index / CAUSES) as usize;
        let caps = [
            reads(Some(317), None),
            reads(Some(1900), None),
            reads(None, Some(7)),
            reads(Some(5000), Some(31)),
        ];
        let flush = |mib, in_memory| Cause::FakeFlush { mib, in_memory };
        let flushes = [flush(64, true), flush(128, true), flush(128, false), flush(256, false)];
        let (name, cause) = match index % CAUSES {
            0 => ("capped", Cause::Capped(caps[variant])),
            1 => ("decaying", Cause::Decaying([0.01, 0.02, 0.04, 0.08][variant])),
            2 => ("neighbour", Cause::Neighbour([200, 400, 700, 1000][variant])),
            3 => ("starved", Cause::Starved([1, 1, 2, 3][variant])),
            4 => ("memory", Cause::MemoryBacked(["tmpfs", "device", "file-system", "overlay"][variant])),
            5 => ("unwritten", Cause::Unwritten([64, 100, 256, 1000][variant])),
            6 => ("fake-flush", flushes[variant]),
            7 => ("split", Cause::Split([32, 64, 128, 256][variant])),
            8 => ("misaligned", Cause::Misaligned([512, 1024, 1536, 2048][variant])),
            _ => ("stalled", Cause::Stalled([2600, 3000, 3500, 4000][variant])),
        };
        PlantedCase { name: format!("{name}-{variant}"), cause }
    }
}

/// Makes the device, starts what is planted, and returns what `fathom bench --json` prints.
fn measured(cause: &Cause) -> Value {
    match *cause {
        Cause::Capped(cap) => capped(&cap, READS, false),
        Cause::Repeat(cap) => capped(&cap, &["--size=64m", "--runtime=4s"], true),
        Cause::Decaying(a_second) => decaying(a_second),
        Cause::Neighbour(iops) => {
            let (device, home) = (LoopDevice::written(SIZE), scratch());
            let throttle = Throttle::new(device.path(), &reads(Some(PLAIN_IOPS), None));
            let mut other = neighbour(&throttle, &device, iops);
            let document = bench(fathom_under(&throttle, home.path()), device.path(), READS);
            end(&mut other);
            document
        }
        Cause::Starved(loops) => starved(loops),
        Cause::MemoryBacked(place) => in_memory(place),
        // Direct reads of holes are answered by the file system that holds them.
        Cause::Unwritten(mib) => plain(LoopDevice::new(mib * MIB).path(), READS),
        Cause::FakeFlush { mib, in_memory } => fake_flush(mib * MIB, in_memory),
        Cause::Split(kib) => {
            let more = LoopOptions::of_size(SIZE);
            let device =
                LoopDevice::with(&LoopOptions { written: true, largest_request_kib: Some(kib), ..more });
            let options = format!("rw = \"randread\", bs = \"{}k\", iodepth = 2, rate_iops = 100", 4 * kib);
            by_suite(device.path(), &options, &[])
        }
        Cause::Misaligned(block) => misaligned(block),
        Cause::Stalled(ms) => stalled(Duration::from_millis(ms)),
    }
}

fn bench_command(mut command: Command, target: &Path, arguments: &[&str]) -> Command {
    command.args(["bench", "--json", "--no-history"]).args(arguments).arg(target);
    command
}

fn bench(command: Command, target: &Path, arguments: &[&str]) -> Value {
    Program::start(&mut bench_command(command, target, arguments)).finish_within(LONGEST).document()
}

fn plain(target: &Path, arguments: &[&str]) -> Value {
    let home = scratch();
    bench(fathom(home.path()), target, arguments)
}

/// The consent to overwrite a device.
fn destroy(device: &LoopDevice) -> String {
    format!("--destroy-data={}", device.path().display())
}

/// A device on a disk of this machine, every block written.
fn capped(cap: &Cap, arguments: &[&str], writes: bool) -> Value {
    let (device, home) = (LoopDevice::written(SIZE), scratch());
    let throttle = Throttle::new(device.path(), cap);
    let consent = destroy(&device);
    let consent: &[&str] = if writes { &[&consent] } else { &[] };
    bench(fathom_under(&throttle, home.path()), device.path(), &[arguments, consent].concat())
}

fn decaying(a_second: f64) -> Value {
    let (device, home) = (LoopDevice::written(SIZE), scratch());
    let limit_at = |seconds: f64| {
        let iops = PLAIN_IOPS as f64 * (1.0 - a_second).powf(seconds);
        reads(Some((iops as u64).max(1)), None)
    };
    let throttle = Throttle::new(device.path(), &limit_at(0.0));
    let before = device.stat()[0];
    let words = ["--only=rand-read", "--runtime=20s", "--size=64m"];
    let mut program =
        Program::start(&mut bench_command(fathom_under(&throttle, home.path()), device.path(), &words));
    let mut began = None;
    while !program.has_ended() {
        std::thread::park_timeout(Duration::from_secs_f64(STEP_S));
        if began.is_none() && device.stat()[0] > before + PLAIN_IOPS / 4 {
            began = Some(now());
        }
        if let Some(began) = began {
            throttle.set(&limit_at(began.elapsed().as_secs_f64()));
        }
    }
    program.finish_within(LONGEST).document()
}

/// On a slow device the client has time to spare, and waits for no CPU: this one is in memory.
fn starved(loops: usize) -> Value {
    let (device, home) = (LoopDevice::in_memory(SIZE), scratch());
    // The program is built before the loops take the CPU.
    let program = fathom_path();
    let mut others: Vec<Child> = (0..loops)
        .map(|_| {
            let mut busy = Command::new("taskset");
            busy.args(["-c", "0", "sh", "-c", "while :; do :; done"]).stdin(Stdio::null());
            busy.spawn().unwrap_or_else(|error| panic!("cannot run {busy:?}: {error}"))
        })
        .collect();
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", "0"]).arg(program).env("HOME", home.path());
    let document = bench(pinned, device.path(), READS);
    others.iter_mut().for_each(end);
    document
}

fn in_memory(place: &str) -> Value {
    match place {
        "tmpfs" => plain(Mount::tmpfs(SIZE).path(), READS),
        "device" => plain(LoopDevice::in_memory(SIZE).path(), READS),
        "file-system" => {
            let device = LoopDevice::in_memory(SIZE);
            plain(Mount::made(device.path(), "ext4").path(), READS)
        }
        _ => {
            let (below, lower, merged) = (Mount::tmpfs(SIZE), scratch(), scratch());
            let [upper, work] = ["upper", "work"].map(|name| below.join(name));
            for directory in [&upper, &work] {
                fs::create_dir(directory).expect("the mount is new and ours");
            }
            let [lower, upper, work] = [lower.path(), &upper, &work].map(|path| path.display());
            let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
            let mut mount = Command::new("mount");
            must_run(mount.args(["-t", "overlay", "overlay", "-o", &options]).arg(merged.path()));
            let document = plain(merged.path(), READS);
            must_run(Command::new("umount").arg(merged.path()));
            document
        }
    }
}

fn fake_flush(size: u64, in_memory: bool) -> Value {
    // A helper thread of io_uring makes a sync of memory take as long as one of a disk.
    let commits = ["--only=commit", "--runtime=2s", "--size=32m", "--engine=psync"];
    if in_memory {
        let device = LoopDevice::in_memory(size);
        return plain(device.path(), &[&commits[..], &[&destroy(&device)]].concat());
    }
    let device = LoopDevice::written(size);
    drop(Mount::made(device.path(), "ext4"));
    plain(Mount::of(device.path(), &["barrier=0"]).path(), &commits)
}

/// With a suite of one test that has these options of fio, at one runtime.
fn by_suite(target: &Path, options: &str, more: &[&str]) -> Value {
    let home = scratch();
    let path = home.path().join("suite.toml");
    let suite = suite("3s", &[("one", &format!("options = {{ {options} }}"))]);
    fs::write(&path, suite).expect("the scratch directory is ours");
    let named = format!("--suite={}", path.display());
    bench(fathom(home.path()), target, &[&[named.as_str()], more].concat())
}

fn misaligned(block: u64) -> Value {
    let options = LoopOptions { written: true, sector: 4096, ..LoopOptions::of_size(64 * MIB) };
    let disk = LoopDevice::with(&options);
    let mount = Mount::made(disk.path(), "ext4");
    let file = mount.join("image");
    fs::write(&file, vec![7; 24 * MIB as usize]).expect("the file system has room");
    let device = LoopDevice::cached_over(&file);
    let options = format!("rw = \"randwrite\", bs = {block}, iodepth = 1, rate_iops = 300");
    by_suite(device.path(), &options, &[&destroy(&device)])
}

fn stalled(hang: Duration) -> Value {
    let (disk, home) = (NbdDisk::new(64 * MIB, &["delay"], &["rdelay=2ms"]), scratch());
    let words = ["--only=rand-read", "--runtime=8s", "--size=32m"];
    let mut program = Program::start(&mut bench_command(fathom(home.path()), &disk.path(), &words));
    // Most of the measured time is left once the test file is open.
    std::thread::park_timeout(Duration::from_secs(4));
    assert!(!program.has_ended(), "the run ended before the disk hung");
    disk.hang();
    std::thread::park_timeout(hang);
    disk.resume();
    program.finish_within(LONGEST).document()
}

fn end(child: &mut Child) {
    child.kill().ok();
    child.wait().ok();
}

/// Findings of which one must be there, and those that may be there as well.
fn expected(cause: &Cause) -> (&'static [&'static str], &'static [&'static str]) {
    match cause {
        Cause::Capped(Cap { read_bps: Some(_), .. }) => (&["bandwidth-cap", "iops-cap"], &[]),
        Cause::Capped(_) => (&["iops-cap"], &[]),
        Cause::Repeat(_) => (&[], &["iops-cap", "bandwidth-cap"]),
        Cause::Decaying(_) => (&["not-steady"], &[]),
        // What a neighbour leaves is no limit, but it is as even as one.
        Cause::Neighbour(_) => (&["foreign-io"], &["iops-cap"]),
        // A client without CPU time has an uneven rate.
        Cause::Starved(_) => (&["cpu-wait"], &["memory-backed", "not-steady"]),
        // Memory completes what should be asynchronous at once, and varies with the load of the machine.
        Cause::MemoryBacked(_) => (&["memory-backed"], &["async-is-not", "not-steady"]),
        Cause::Unwritten(_) => (&["unwritten"], &["not-steady"]),
        Cause::FakeFlush { .. } => (&["flush-suspicious"], &["memory-backed", "not-steady"]),
        Cause::Split(_) => (&["splitting"], &[]),
        Cause::Misaligned(_) => (&["alignment"], &["not-steady"]),
        // The server's disk was never written.
        Cause::Stalled(_) => (&["stalled"], &["unwritten", "not-steady"]),
    }
}

/// `found; ["iops-cap", …]`, a count if the cause was missed, and a fault for each finding that was invented.
fn judged(case: &PlantedCase, document: &Value) -> CaseResult {
    let findings = || document["findings"].as_array().into_iter().flatten();
    let id = |finding: &'_ Value| finding["id"].as_str().map(str::to_owned);
    let ids: BTreeSet<String> = findings().filter_map(id).collect();
    let (wanted, allowed) = expected(&case.cause);
    let is_found = wanted.is_empty() || wanted.iter().any(|id| ids.contains(*id));
    let wrong_rate = match case.cause {
        Cause::Capped(cap) => findings().find_map(|finding| wrong_rate(finding, &cap)),
        _ => None,
    };
    let verdict = match (is_found, wrong_rate) {
        (_, Some(rate)) => format!("WRONG RATE {rate}"),
        (true, None) => "found".to_owned(),
        (false, None) => "MISSED".to_owned(),
    };
    let is_known = |id: &str| [wanted, allowed, OF_LOAD, OF_HOST].iter().any(|known| known.contains(&id));
    let invented = ids.iter().filter(|id| !is_known(id)).map(|id| format!("invented {id}"));
    let mut result = CaseResult::new(format!("{verdict}; {ids:?}")).faults(invented);
    if let Cause::Repeat(_) = case.cause {
        result = result.count("rows without a cause", document["tests"].as_array().map_or(0, Vec::len));
    } else {
        result = result.count("causes", 1).count(MISSED, usize::from(verdict != "found"));
    }
    let conclusions = document["conclusions"].as_array().into_iter().flatten();
    let verdicts: BTreeMap<&str, &str> =
        conclusions.filter_map(|one| Some((one["id"].as_str()?, one["verdict"].as_str()?))).collect();
    let warnings: BTreeSet<String> = findings()
        .filter(|finding| finding["severity"] != "info")
        .filter_map(id)
        .filter(|id| !OF_HOST.contains(&id.as_str()))
        .collect();
    result.facts(json!({"verdicts": verdicts, "warnings": warnings}))
}

const MISSED: &str = "missed";

/// The rate of a limit that was reported and is not the one that was set.
fn wrong_rate(finding: &Value, cap: &Cap) -> Option<f64> {
    let (limit, path) = match finding["id"].as_str()? {
        "iops-cap" => (cap.read_iops, "iops"),
        "bandwidth-cap" => (cap.read_bps, "bytes_per_second"),
        _ => return None,
    };
    let rate = finding["evidence"][path].as_f64().unwrap_or(0.0);
    // A limit on bytes holds requests of one size as one on requests does.
    let limit = limit.or(cap.read_bps.map(|bytes| bytes / 4096)).unwrap_or(0) as f64;
    ((rate / limit - 1.0).abs() > WITHIN).then_some(rate)
}

/// At most 2 of 40 causes were missed, and nothing differed between repeats of a device.
fn verdict(results: &[CaseResult]) -> anyhow::Result<()> {
    let (causes, missed) = (crate::driver::sum(results, "causes"), crate::driver::sum(results, MISSED));
    let flips = flips(results);
    println!("differed between repeats: {flips:?}");
    ensure!(
        missed * PLANTED <= MAX_MISSED as u64 * causes.max(PLANTED),
        "{missed} of {causes} causes were missed"
    );
    ensure!(flips.is_empty(), "verdicts or warnings differ between repeats");
    Ok(())
}

/// The uses and warnings that differed between repeats, by device.
fn flips(results: &[CaseResult]) -> BTreeSet<String> {
    let device = |result: &CaseResult| {
        let name = result.case.strip_prefix("repeat-")?;
        Some(name.rsplit_once('-')?.0.to_owned())
    };
    let mut flips = BTreeSet::new();
    for (index, one) in results.iter().enumerate() {
        let Some(name) = device(one) else { continue };
        for other in results[index + 1..].iter().filter(|other| device(other).as_ref() == Some(&name)) {
            let both =
                [&one.facts["verdicts"], &other.facts["verdicts"]].into_iter().filter_map(Value::as_object);
            for id in both.flat_map(serde_json::Map::keys) {
                if one.facts["verdicts"][id] != other.facts["verdicts"][id] {
                    flips.insert(format!("{name} {id}"));
                }
            }
            if one.facts["warnings"] != other.facts["warnings"] {
                flips.insert(format!("{name} warnings"));
            }
        }
    }
    flips
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_different_and_always_the_same() {
        let names: BTreeSet<String> =
            (0..PLANTED + REPEATED).map(|index| PlantedCase::from_seed(index).name).collect();
        assert_eq!(names.len() as u64, PLANTED + REPEATED);
        assert!(names.contains("stalled-3") && names.contains("repeat-4-5"));
        assert_eq!(PlantedCase::from_seed(0).cause, Cause::Capped(reads(Some(317), None)));
    }

    fn result(index: u64, findings: &Value) -> CaseResult {
        let case = PlantedCase::from_seed(index);
        CaseResult {
            case: case.name.clone(),
            ..judged(&case, &json!({"findings": findings, "tests": [1, 2]}))
        }
    }

    #[test]
    fn a_cause_is_found_missed_or_invented() {
        let cap = |iops: u64| json!([{"id": "iops-cap", "severity": "note", "evidence": {"iops": iops}}]);
        let check = |index, findings: &Value, missed: u64, faults: &[&str]| {
            let result = result(index, findings);
            assert_eq!(crate::driver::sum(std::slice::from_ref(&result), MISSED), missed, "{result:?}");
            assert_eq!(result.faults, faults);
        };
        check(0, &cap(320), 0, &[]);
        check(0, &cap(380), 1, &[]);
        check(0, &json!([]), 1, &[]);
        check(1, &cap(320), 1, &["invented iops-cap"]);
        check(1, &json!([{"id": "not-steady"}, {"id": "cpu-steal"}, {"id": "knee"}]), 0, &[]);
        check(PLANTED, &cap(1), 0, &[]);
    }

    #[test]
    fn few_may_be_missed_and_repeats_are_alike() {
        let missed = |count: u64| (0..count).map(|index| result(index, &json!([]))).collect::<Vec<_>>();
        assert!(verdict(&missed(2)).is_ok() && verdict(&missed(3)).is_err());
        let repeat = |round: u64, severity: &str| {
            result(PLANTED + 5 * round, &json!([{"id": "iops-cap", "severity": severity}]))
        };
        assert_eq!(repeat(1, "note").case, "repeat-0-1");
        assert!(flips(&[repeat(0, "info"), repeat(1, "info")]).is_empty());
        let flips = flips(&[repeat(0, "info"), repeat(1, "note")]);
        assert_eq!(flips.into_iter().collect::<Vec<_>>(), ["0 warnings"]);
    }
}
