//! Jobs of several ranks, each on a thread, over a process manager in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use fathom_engine::sim::FixedLatency;
use fathom_model::Nanos;
use fathom_options::FleetOptions;
use fathom_options::Section;
use fathom_record::{Activity, BenchActivity, RunHeader, TestMeta, TestStatus, TestSummary, test_record};
use fathom_runner::Session;
use fathom_sys::process_manager::{JobPlace, ProcessManager, ProcessManagerError, TextLimits};

use super::*;
use crate::machine::{engine_rows, host_facts};

/// What the ranks of a job share in their launcher.
#[derive(Debug, Default)]
struct Launcher {
    state: Mutex<LauncherState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LauncherState {
    space: BTreeMap<String, String>,
    waiting: u32,
    round: u64,
    aborted: Option<i32>,
    finished: u32,
}

/// One rank's connection.
#[derive(Debug)]
struct MemoryManager {
    launcher: Arc<Launcher>,
    rank: u32,
    size: u32,
    /// Fences that the rank enters before it dies.
    lives: usize,
}

impl ProcessManager for MemoryManager {
    fn place(&self) -> JobPlace {
        let limits = TextLimits { key: 64, value: 100 };
        JobPlace { interface: "memory", rank: self.rank, size: self.size, limits }
    }

    fn put(&mut self, key: &str, value: &str, _limit: Duration) -> Result<(), ProcessManagerError> {
        assert!(key.len() < 64 && value.len() < 100, "{key}: {}", value.len());
        let old = self.launcher.state.lock().unwrap().space.insert(key.to_owned(), value.to_owned());
        assert_eq!(old, None, "{key} is put twice");
        Ok(())
    }

    fn get(&mut self, rank: u32, key: &str, _limit: Duration) -> Result<String, ProcessManagerError> {
        let found = self.launcher.state.lock().unwrap().space.get(key).cloned();
        found.ok_or_else(|| ProcessManagerError::NoValue { rank, key: key.to_owned() })
    }

    fn fence(&mut self, limit: Duration) -> Result<(), ProcessManagerError> {
        if self.lives == 0 {
            return Err(ProcessManagerError::Closed);
        }
        self.lives -= 1;
        let mut state = self.launcher.state.lock().unwrap();
        let round = state.round;
        state.waiting += 1;
        if state.waiting == self.size {
            (state.waiting, state.round) = (0, round + 1);
            self.launcher.changed.notify_all();
            return Ok(());
        }
        let is_waiting = |state: &mut LauncherState| state.round == round;
        let (state, _) = self.launcher.changed.wait_timeout_while(state, limit, is_waiting).unwrap();
        let came = state.round > round;
        if came { Ok(()) } else { Err(ProcessManagerError::Deadline { asked: "fence", limit }) }
    }

    fn finish(&mut self, _limit: Duration) -> Result<(), ProcessManagerError> {
        self.launcher.state.lock().unwrap().finished += 1;
        Ok(())
    }

    fn abort(&mut self, code: i32, _message: &str) {
        self.launcher.state.lock().unwrap().aborted = Some(code);
    }
}

/// What a rank of a test does.
#[derive(Clone, Default)]
struct Rank {
    version: Option<&'static str>,
    host: Option<&'static str>,
    /// Fences before it dies.
    lives: Option<usize>,
    /// It fails to prepare.
    fails: bool,
    /// Tests that it runs, of two phases each; a rank may skip some.
    tests: Vec<u32>,
    /// It is interrupted before its last test.
    is_interrupted: bool,
}

/// How a rank ended.
#[derive(Debug)]
enum Left {
    Stopped(String),
    Met(Option<Box<FleetReport>>),
    Refused(String),
    Lost(Option<Box<FleetReport>>),
}

struct Ran {
    left: Vec<Left>,
    aborted: Option<i32>,
    finished: u32,
    lines: Vec<String>,
}

fn options(out: Option<&Path>) -> FleetOptions {
    FleetOptions { out: out.map(Path::to_path_buf), ..FleetOptions::default() }
}

/// With deadlines that a test can wait for.
fn short(out: &Path) -> FleetOptions {
    let time = Some(Nanos::from_millis(1_500));
    FleetOptions { join: time, prepare: time, grace: time, ..options(Some(out)) }
}

fn run(ranks: &[Rank], options: &FleetOptions) -> Ran {
    let launcher = Arc::new(Launcher::default());
    let lines = Arc::new(Mutex::new(Vec::new()));
    let size = ranks.len() as u32;
    let threads: Vec<_> = ranks
        .iter()
        .enumerate()
        .map(|(number, rank)| {
            let lives = rank.lives.unwrap_or(usize::MAX);
            let manager = MemoryManager { launcher: launcher.clone(), rank: number as u32, size, lives };
            let (rank, options, lines) = (rank.clone(), options.clone(), lines.clone());
            thread::spawn(move || be(manager, &rank, options, lines))
        })
        .collect();
    let left = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let state = launcher.state.lock().unwrap();
    let lines = lines.lock().unwrap().clone();
    Ran { left, aborted: state.aborted, finished: state.finished, lines }
}

fn be(manager: MemoryManager, rank: &Rank, options: FleetOptions, lines: Arc<Mutex<Vec<String>>>) -> Left {
    let host = rank.host.map_or_else(|| format!("h{}", manager.rank), str::to_owned);
    let mut job = FleetJob::on(Box::new(manager), options, host, "boot".to_owned(), monotonic_ns());
    if let Some(version) = rank.version {
        job = job.of_version(version);
    }
    let tell = move |line: &str| lines.lock().unwrap().push(line.to_owned());
    let fleet = match job.meet(&["fathom".to_owned()], Ok(FleetFiles::default()), tell) {
        Ok((fleet, _)) => fleet,
        Err(stop) => {
            let message = stop.error.to_string();
            stop.abort();
            return Left::Stopped(message);
        }
    };
    let end = if rank.fails { fleet.fail("no space") } else { measured(rank, fleet) };
    match end {
        FleetEnd::Met(report) => Left::Met(report),
        FleetEnd::Refused(reason) => Left::Refused(reason),
        FleetEnd::Lost(report, abort) => {
            abort.abort();
            Left::Lost(report)
        }
    }
}

/// Runs tests of two phases of 10 s each, of 1,000 IOPS, on virtual time.
fn measured(rank: &Rank, fleet: Fleet) -> FleetEnd {
    let millis = Nanos::from_millis(1);
    let model = FixedLatency { read: millis, write: millis, flush: millis, parallelism: 1 };
    let control = fleet.control(RunControl::default());
    let stop = control.stop_handle();
    let session = Session::simulated(model, 1 << 30).controlled(control);
    let options =
        [("rw", "randread"), ("filename", "sim"), ("runtime", "10"), ("time_based", "1"), ("size", "1m")];
    let second = [&options[..], &[("stonewall", "")]].concat();
    let engines = engine_rows();
    let sections = [("a", &options[..]), ("b", &second[..])]
        .map(|(name, pairs)| Section::from_pairs(name, pairs, &engines).unwrap());
    let mut record = RunRecord {
        status: TestStatus::Complete,
        header: RunHeader { activity: Activity::Bench(BenchActivity::default()), ..RunHeader::default() },
        ..RunRecord::default()
    };
    for (place, test) in rank.tests.iter().enumerate() {
        if rank.is_interrupted && place + 1 == rank.tests.len() {
            stop.request("signal 15");
            break;
        }
        session.enter_step(*test);
        let plan = fathom_options::resolve(&sections, &host_facts()).unwrap();
        let outcome = session.run(&plan, &mut ()).unwrap();
        let meta = TestMeta { id: format!("t{test}"), ..TestMeta::default() };
        record.tests.push(test_record(meta, &plan, outcome));
    }
    fleet.end(record, stop.reason())
}

fn ranks(count: usize) -> Vec<Rank> {
    vec![Rank { tests: vec![1], ..Rank::default() }; count]
}

fn report(ran: &Ran) -> &FleetReport {
    match &ran.left[0] {
        Left::Met(Some(report)) | Left::Lost(Some(report)) => report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_ranks_start_together_and_rank_0_has_the_sum() {
    let ran = run(&ranks(4), &options(None));
    let report = report(&ran);
    assert!(report.missing.is_empty() && report.notes.is_empty(), "{report:?}");
    let record = report.record.as_ref().unwrap();
    let fleet = record.header.fleet.as_ref().unwrap();
    assert_eq!((fleet.members.len(), fleet.missing.len()), (4, 0));
    let ios: u64 = record.tests[0].jobs.iter().map(|job| job.measured.read.ios).sum();
    // Two jobs of 10 s on four ranks.
    assert!((79_900..=80_100).contains(&ios), "{ios}");
    assert!(TestSummary::new(&record.tests[0]).read.is_some());
    assert!(ran.left[1..].iter().all(|left| matches!(left, Left::Met(None))), "{:?}", ran.left);
    assert_eq!((ran.finished, ran.aborted, ran.lines.len()), (4, None, 0));
}

#[test]
fn a_rank_that_skips_a_test_joins_at_the_next() {
    let mut all = ranks(3);
    all.iter_mut().for_each(|rank| rank.tests = vec![1, 2, 3]);
    all[1].tests = vec![1, 3];
    let ran = run(&all, &options(None));
    let record = report(&ran).record.as_ref().unwrap();
    let hosts: Vec<usize> =
        record.tests.iter().map(|test| test.fleet.as_ref().unwrap().hosts.len()).collect();
    assert_eq!(hosts, [3, 2, 3]);
}

#[test]
fn versions_and_failed_preparations_are_of_all() {
    let mut all = ranks(3);
    all[2].version = Some("9.9.9");
    let ran = run(&all, &options(None));
    for left in &ran.left {
        let Left::Stopped(reason) = left else { panic!("{left:?}") };
        assert!(reason.starts_with("rank 2 on h2 runs fathom 9.9.9, and rank 0 on h0 runs "), "{reason}");
    }
    assert_eq!((ran.finished, ran.aborted), (3, None));
    let mut all = ranks(3);
    all[1].fails = true;
    let dir = tempfile::tempdir().unwrap();
    let ran = run(&all, &options(Some(dir.path())));
    for left in &ran.left {
        assert!(matches!(left, Left::Refused(reason) if reason == "rank 1 on h1: no space"), "{left:?}");
    }
    assert_eq!((ran.finished, ran.aborted, ran.lines.len()), (3, None, 0));
    // The same directory can be used again.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn an_interrupted_rank_ends_all_and_what_was_measured_is_kept() {
    let mut all = ranks(3);
    all.iter_mut().for_each(|rank| rank.tests = vec![1, 2]);
    all[2].is_interrupted = true;
    let ran = run(&all, &options(None));
    let record = report(&ran).record.as_ref().unwrap();
    assert_eq!(record.header.fleet.as_ref().unwrap().members.len(), 3);
    assert_eq!((ran.finished, ran.aborted), (3, None));
}

#[test]
fn the_job_ends_wherever_a_rank_dies() {
    // Fences: two to meet; two of a meeting and one to start for each phase; two to end and one to collect.
    thread::scope(|scope| (0..11).for_each(|lives| drop(scope.spawn(move || check_death(lives)))));
}

/// A job whose last rank dies after so many fences.
fn check_death(lives: usize) {
    let dir = tempfile::tempdir().unwrap();
    let mut all = ranks(3);
    all[2].lives = Some(lives);
    let ran = run(&all, &short(dir.path()));
    assert_eq!(ran.aborted, Some(MISSING_EXIT), "{lives}");
    match &ran.left[0] {
        Left::Stopped(reason) => assert!(lives < 2 && !reason.is_empty(), "{lives}: {reason}"),
        Left::Lost(Some(report)) => {
            assert!(lives >= 2, "{lives}");
            let record = report.record.as_ref().unwrap();
            let members = record.header.fleet.as_ref().unwrap().members.len();
            assert_eq!(members + report.missing.len(), 3, "{lives}: {report:?}");
            assert!(members >= 2, "{lives}: {report:?}");
            let named = ran.lines.iter().filter(|line| line.contains("not all ranks came in time"));
            assert_eq!(named.count(), 2, "{lives}: {:?}", ran.lines);
        }
        other => panic!("{lives}: {other:?}"),
    }
}

#[test]
fn missing_ranks_are_named_with_the_last_that_is_known_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let open = |rank: u32| RecordDirectory::open(dir.path(), rank, "", 1);
    let place = FleetPlace {
        ranks: 4,
        hosts: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
        ..FleetPlace::default()
    };
    let own = open(0);
    own.mark("the end of all runs", 3);
    open(1).mark("the start of the next phase", 2);
    open(2).mark("the end of all runs", 3);
    let report = records::found(&place, Some(&own), None, 0);
    let reasons: Vec<&str> = report.missing.iter().map(|missing| missing.reason.as_str()).collect();
    assert_eq!(
        reasons[1..],
        [
            "it began to measure and did not come back",
            "it waited for the end of all runs, without a record",
            "its record is not in the directory of rank 0",
        ]
    );
    let line = report.missing_line(4).unwrap();
    assert!(line.starts_with("0 of 4 ranks; missing: rank 0 on a ("), "{line}");
    let unseen = records::found(&place, None, None, 0).missing_line(4).unwrap();
    assert!(unseen.contains("rank 3 on d (unknown: add --fleet-out"), "{unseen}");
}

#[test]
fn large_jobs_are_collected_from_the_directory_alone() {
    let dir = tempfile::tempdir().unwrap();
    let place = FleetPlace { ranks: 2, hosts: vec!["a".to_owned(), "b".to_owned()], ..FleetPlace::default() };
    let record = |rank: u32| {
        let launch = LaunchRecord { rank, ranks: Some(2), ..LaunchRecord::default() };
        let test = fathom_record::TestRecord { id: "t".to_owned(), ..Default::default() };
        let header = RunHeader { launch: Some(launch), ..RunHeader::default() };
        RunRecord { header, tests: vec![test], ..RunRecord::default() }
    };
    let directory = RecordDirectory::open(dir.path(), 0, "a", 1);
    RecordDirectory::open(dir.path(), 1, "b", 1).write_record(&record(1)).unwrap();
    let report = records::collect(&place, Some(record(0)), |rank| directory.read_record(rank));
    assert!(report.missing.is_empty(), "{report:?}");
    let report = records::collect(&place, None, |rank| directory.read_record(rank));
    let line = report.missing_line(2).unwrap();
    assert_eq!(line, "1 of 2 ranks; missing: rank 0 on a (it ended without a record)");
    std::fs::write(directory.record(1), "{").unwrap();
    let report = records::collect(&place, Some(record(0)), |rank| directory.read_record(rank));
    let line = report.missing_line(2).unwrap();
    assert!(line.starts_with("1 of 2 ranks; missing: rank 1 on b ("), "{line}");
}

#[test]
fn a_process_without_a_launcher_is_no_rank() {
    let join = |set: &[(&str, &str)]| {
        let variable =
            |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        FleetJob::join(FleetOptions::default(), &variable).map(drop).unwrap_err()
    };
    assert!(join(&[]).message.ends_with("none started this process"));
    let alone = join(&[("SLURM_NTASKS", "64")]);
    assert_eq!(alone.to_string(), "this process is alone in its job, but SLURM_NTASKS says 64 processes");
    assert!(alone.hint.is_some());
}

/// A launcher that answers at once, and every text has a further value.
#[derive(Debug)]
struct Endless;

impl ProcessManager for Endless {
    fn place(&self) -> JobPlace {
        let limits = TextLimits { key: 64, value: 1024 };
        JobPlace { interface: "endless", rank: 0, size: 1, limits }
    }

    fn put(&mut self, _: &str, _: &str, _: Duration) -> Result<(), ProcessManagerError> {
        Ok(())
    }

    fn get(&mut self, _: u32, _: &str, _: Duration) -> Result<String, ProcessManagerError> {
        Ok(format!("{}.", usize::MAX))
    }

    fn fence(&mut self, _: Duration) -> Result<(), ProcessManagerError> {
        Ok(())
    }

    fn finish(&mut self, _: Duration) -> Result<(), ProcessManagerError> {
        Ok(())
    }

    fn abort(&mut self, _: i32, _: &str) {}
}

#[test]
fn a_text_that_never_ends_holds_no_rank_that_joins() {
    let options = FleetOptions { join: Some(Nanos::from_millis(50)), ..FleetOptions::default() };
    let job = FleetJob::on(Box::new(Endless), options, "h".to_owned(), "boot".to_owned(), monotonic_ns());
    let met = job.meet(&[], Ok(FleetFiles::default()), |_| {});
    let stop = met.map(drop).unwrap_err();
    assert!(stop.error.to_string().contains("did not answer 'get' within 50ms"), "{}", stop.error);
}

#[test]
fn texts_of_any_length_come_back() {
    for length in [0, 1, 2, 3, 4, 1000, 100_000] {
        let text: Vec<u8> = (0..length).map(|at: u32| (at.wrapping_mul(at) >> 3) as u8).collect();
        let packed = pack(&text);
        assert!(packed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        assert_eq!(unpack(&packed), Ok(text), "{length}");
    }
}

#[test]
fn damage_is_noticed() {
    let packed = pack(b"a text of some length, which is compressed");
    assert!(unpack(&packed[..packed.len() - 6]).is_err());
    let mut other = packed.clone().into_bytes();
    let middle = other.len() / 2;
    other[middle] = if other[middle] == b'A' { b'B' } else { b'A' };
    assert!(unpack(std::str::from_utf8(&other).unwrap()).is_err());
    assert!(unpack("a b").is_err());
}
