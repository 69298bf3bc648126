//! One case: recorded, predicted, and run on the volumes that were predicted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_tests::{CappedDisk, Need, Program, fathom, run, scratch, wait_for};
use rustix::process::Signal;
use serde_json::Value;

use super::case::{AdviseCase, candidate};
use super::load::{BLOCK, LEAD_S, SIZE, arguments, iolog};

/// What the campaign needs of the machine.
pub const NEEDS: &[Need] = &[
    Need::Root,
    Need::Tool("losetup"),
    Need::Tool("chrt"),
    Need::Path("/dev/fuse"),
    Need::Path("/dev/loop-control"),
];

/// A run takes its length and what piles up.
const LONGEST: Duration = Duration::from_secs(400);
/// A recorder has begun after this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a load got of a volume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFigures {
    pub ios: f64,
    /// From its first request to the end of its last one.
    pub seconds: f64,
    /// p50 and p99 of reads and of writes, ns.
    pub read_ns: [f64; 2],
    pub write_ns: [f64; 2],
    /// By how much the disk was late, at the same percentiles, ns.
    pub late_ns: [f64; 2],
    /// When credits were exhausted, from the first request on.
    pub exhausted_s: Option<f64>,
}

/// A case with all its figures.
#[derive(Clone, Debug)]
pub struct MeasuredCase {
    pub is_closed: bool,
    /// What `fathom advise --json` prints.
    pub advice: Value,
    /// From the beginning of the recording to the first request.
    pub head_s: f64,
    /// Events that the recorder lost.
    pub has_lost: bool,
    /// On the recorded volume.
    pub recorded: RunFigures,
    /// By volume: its name, its target, what the load got of it.
    pub truths: Vec<(&'static str, String, RunFigures)>,
}

/// Records the load of `case`, predicts it, and runs it on the other volumes.
pub fn measured(case: &AdviseCase) -> MeasuredCase {
    let home = scratch();
    let disk = CappedDisk::new(SIZE, &case.recorded_on);
    let file = home.path().join("app.load");
    let (recorded, has_lost) = record(case, home.path(), &disk, &file);
    let advice = advice(case, home.path(), &file);
    let head_s = head_s(home.path(), &file, lead_s(case));
    let truths = case.others.map(|(name, limits)| {
        disk.limit(&limits);
        let mut figures = load(case, home.path(), disk.path());
        figures.exhausted_s = disk.exhausted_after().map(|after| after.as_secs_f64());
        figures.late_ns = [50, 99].map(|percent| disk.lateness(percent).as_nanos() as f64);
        (name, candidate(&limits), figures)
    });
    MeasuredCase { is_closed: case.is_closed(), advice, head_s, has_lost, recorded, truths: truths.into() }
}

/// Runs the load while it is recorded; whether events were lost.
fn record(case: &AdviseCase, home: &Path, disk: &CappedDisk, file: &Path) -> (RunFigures, bool) {
    let device = disk.device();
    let mut command = fathom(home);
    command.args(["monitor", "--no-owners", "--record"]).arg(file).arg(device.name());
    let recorder = Program::start(&mut command);
    let has_begun = wait_for(PATIENCE, || recorder.stderr().contains("recording every I/O"));
    assert!(has_begun, "no request is recorded:\n{}", recorder.stderr());
    let figures = load(case, home, device.path());
    recorder.signal(Signal::INT);
    let ended = recorder.finish();
    (figures, !ended.stderr.contains("no event lost"))
}

fn advice(case: &AdviseCase, home: &Path, file: &Path) -> Value {
    let mut command = fathom(home);
    command.args(["advise", "--json"]).arg(file);
    for (_, limits) in &case.others {
        command.arg(format!("--candidate={}", candidate(limits)));
    }
    let current = candidate(&case.recorded_on);
    run(command.arg(format!("--current={current}"))).document()
}

/// Before the first request of the load, which begins `lead_s` after the run at the least: what is earlier or of another length is
/// of others.
fn head_s(home: &Path, file: &Path, lead_s: f64) -> f64 {
    let converted = run(fathom(home).args(["trace", "convert", "--file=/dev/null"]).arg(file));
    first_s(&converted.stdout, lead_s).expect("the load was recorded")
}

/// When the first request of the load begins in an iolog, and not before `lead_s`.
fn first_s(iolog: &str, lead_s: f64) -> Option<f64> {
    let length = format!(" {BLOCK}");
    let requests = iolog.lines().filter(|line| line.ends_with(&length));
    let times = requests.filter_map(|line| line.split(' ').next()?.parse::<f64>().ok());
    times.map(|at_us| at_us / 1e6).find(|at_s| *at_s >= lead_s)
}

fn load(case: &AdviseCase, home: &Path, target: &Path) -> RunFigures {
    let target = target.display().to_string();
    let log = home.join("load.iolog");
    std::fs::write(&log, iolog(case, &target)).expect("the scratch directory is ours");
    // In a directory of its own: a run leaves a log for each client.
    let logs = tempfile::tempdir_in(home).expect("the scratch directory is ours");
    let latencies = logs.path().join("load").display().to_string();
    let mut command = fathom(home);
    command.arg("fio").args(arguments(case, &target, &log.display().to_string(), &latencies));
    let ended = Program::start(command.current_dir(home)).finish_within(LONGEST);
    ended.assert_code(0);
    figures(&ended.document(), &completion_log(logs.path()), lead_s(case))
}

/// How long after its run a load begins.
fn lead_s(case: &AdviseCase) -> f64 {
    if case.is_closed() { 0.0 } else { LEAD_S }
}

/// The lines of the logs of completion latencies of all clients.
fn completion_log(directory: &Path) -> String {
    let files =
        std::fs::read_dir(directory).expect("the directory is ours").flatten().map(|file| file.path());
    let is_completion = |file: &PathBuf| file.display().to_string().contains("_clat.");
    files.filter(is_completion).filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}

/// The figures in a document of `fathom fio`, whose load begins `lead_s` after the run, and in its log of latencies: percentiles of the
/// document end at 17 s, as fio's do.
fn figures(document: &Value, log: &str, lead_s: f64) -> RunFigures {
    let job = &document["jobs"][0];
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let of = |direction: &str| {
        let mut latencies: Vec<u64> = log.lines().filter_map(|line| latency_ns(line, direction)).collect();
        latencies.sort_unstable();
        [50, 99].map(|percent| {
            let rank = (latencies.len() * percent).div_ceil(100).max(1);
            latencies.get(rank - 1).map_or(0.0, |latency| *latency as f64)
        })
    };
    let runtimes = ["read", "write"].map(|direction| number(&job[direction]["runtime"]));
    RunFigures {
        ios: number(&job["read"]["total_ios"]) + number(&job["write"]["total_ios"]),
        seconds: runtimes.into_iter().fold(0.0, f64::max) / 1e3 - lead_s,
        read_ns: of("0"),
        write_ns: of("1"),
        late_ns: [0.0; 2],
        exhausted_s: None,
    }
}

/// The latency in a line of a log, `time ms, latency ns, direction, ...`, if it is of this direction.
fn latency_ns(line: &str, direction: &str) -> Option<u64> {
    let mut fields = line.split(", ").skip(1);
    let (latency, of) = (fields.next()?, fields.next()?);
    latency.parse().ok().filter(|_| of == direction)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_load_begins_with_its_first_request() {
        let iolog =
            "40000 /dev/null read 0 8192\n3100000 /dev/null read 0 4096\n3400000 /dev/null read 8 8192\n";
        assert_eq!((first_s(iolog, 3.0), first_s(iolog, 0.0)), (Some(3.4), Some(0.04)));
        assert_eq!(first_s("", 0.0), None);
    }

    #[test]
    fn figures_of_a_document() {
        let of = |ios: u64, ms: u64| json!({"total_ios": ios, "runtime": ms});
        let document = json!({"jobs": [{"read": of(150, 3000), "write": of(1, 2999)}]});
        // Reads of 1 to 150 ns, and a write.
        let reads: String = (1..=150).rev().map(|ns| format!("{ns}, {ns}, 0, 8192, 0\n")).collect();
        let log = reads + "7, 20000000000, 1, 8192, 0\n";
        let expected = RunFigures {
            ios: 151.0,
            seconds: 2.0,
            read_ns: [75.0, 149.0],
            write_ns: [20e9, 20e9],
            late_ns: [0.0; 2],
            exhausted_s: None,
        };
        assert_eq!(figures(&document, &log, 1.0), expected);
    }
}
