//! The runner on real files and threads.

use std::path::Path;

use fathom_model::plan::{Mix, SizeSpec};
use fathom_model::{JobPlan, Nanos, RunPlan};
use fathom_runner::{LayoutProgress, RunError, RunObserver, Session};
use fathom_stats::RunOutcome;

use crate::plans::{self, job};

fn on(path: &Path, mut job: JobPlan, engine: &str, blocks: u64) -> JobPlan {
    job.clones[0].paths = vec![path.to_owned()];
    job.engine.name = engine.to_owned();
    job.io.size = Some(SizeSpec::Bytes(blocks * 4096));
    job
}

fn run(jobs: Vec<JobPlan>) -> Result<RunOutcome, RunError> {
    Session::real().run(&RunPlan { jobs, ..RunPlan::default() }, &mut ())
}

/// The engines that read, at least in name.
fn engines() -> impl Iterator<Item = &'static fathom_engine::EngineEntry> {
    let entries = fathom_engine::registry::ENGINES.iter();
    entries.filter(|entry| entry.traits.moves_data || !entry.traits.needs_files)
}

#[test]
fn every_engine_reads_laid_out_files_and_conserves_requests() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for entry in engines() {
        for depth in [1, 8] {
            let path = dir.path().join(entry.name);
            let mix = Mix::ReadWrite { read_percent: 50 };
            let outcome =
                run(vec![on(&path, job("job", mix, true, depth), entry.name, 256)]).expect("it runs");
            let worker = &outcome.workers[0];
            assert_eq!(worker.failure, None, "{}", entry.name);
            let [read, write, _] = worker.measured.ops();
            assert_eq!(read.ios + write.ios, 256, "{}", entry.name);
            assert_eq!(read.issued + write.issued, 256);
            assert_eq!((read.ios, write.ios).max((0, 0)), (read.ios, write.ios));
            assert_eq!(read.lat.moments.count, read.ios);
            let alone = entry.traits.synchronous_alone && depth == 1;
            let with_slat = if entry.traits.synchronous || alone { 0 } else { read.ios };
            assert_eq!(read.slat.moments.count, with_slat, "{}", entry.name);
            let moved = |batches: &fathom_stats::BatchCounts| batches.0[1..].iter().sum::<u64>();
            assert!(
                moved(&worker.measured.submit) > 0 && moved(&worker.measured.complete) > 0,
                "{}",
                entry.name
            );
            let series: u64 = worker.measured.series.iter().map(|i| i.read.ios + i.write.ios).sum();
            assert_eq!(series, 256);
            assert_eq!(path.exists(), entry.traits.needs_files, "{}", entry.name);
        }
    }
}

#[test]
fn reading_does_not_change_the_access_time() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("data");
    std::fs::write(&path, vec![1; 16 * 4096]).expect("it is written");
    // Older than the last change, so that even a mount with relatime would update it at the next read.
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let times = std::fs::FileTimes::new().set_accessed(old);
    std::fs::File::options().write(true).open(&path).and_then(|file| file.set_times(times)).expect("ours");
    for entry in engines() {
        run(vec![on(&path, job("job", Mix::Read, true, 2), entry.name, 16)]).expect("it runs");
        let accessed = path.metadata().and_then(|metadata| metadata.accessed()).expect("it has one");
        assert_eq!(accessed, old, "{}", entry.name);
    }
}

#[test]
fn a_layout_writes_every_byte_and_reports_it() {
    struct Seen(Vec<LayoutProgress>);
    impl RunObserver for Seen {
        fn layout(&mut self, progress: &LayoutProgress) {
            self.0.push(progress.clone());
        }
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("data");
    let mut seen = Seen(Vec::new());
    let mut reader = on(&path, job("reader", Mix::Read, false, 1), "psync", 300);
    reader.io.size = Some(SizeSpec::Bytes(300 * 4096 + 5));
    Session::real().run(&RunPlan { jobs: vec![reader], ..RunPlan::default() }, &mut seen).expect("it runs");
    let data = std::fs::read(&path).expect("it is laid out");
    assert_eq!(data.len(), 300 * 4096 + 5);
    assert!(data.chunks_exact(512).all(|sector| sector.iter().any(|&byte| byte != 0)), "a sector is empty");
    let last = seen.0.last().expect("progress is told");
    assert_eq!((last.done_bytes, last.total_bytes), (data.len() as u64, data.len() as u64));
}

#[test]
fn writing_does_not_change_data_outside_the_range() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("data");
    std::fs::write(&path, vec![7u8; 64 * 4096]).expect("a file");
    let mut writer = on(&path, job("writer", Mix::Write, true, 4), "io_uring", 16);
    writer.io.offset = SizeSpec::Bytes(8 * 4096);
    run(vec![writer]).expect("it runs");
    let data = std::fs::read(&path).expect("still there");
    let changed: Vec<usize> = data
        .chunks(4096)
        .enumerate()
        .filter(|(_, block)| block.iter().any(|&b| b != 7))
        .map(|(i, _)| i)
        .collect();
    assert_eq!(changed, (8..24).collect::<Vec<_>>());
    assert_eq!(data.len(), 64 * 4096);
}

#[test]
fn a_file_truncated_during_the_run_is_an_error_of_the_job() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("data");
    std::fs::write(&path, vec![7u8; 64 * 4096]).expect("a file");
    let session = Session::real();
    for engine in ["psync", "io_uring", "libaio", "pvsync2", "sync"] {
        let plan = RunPlan {
            jobs: vec![on(&path, job("reader", Mix::Read, false, 2), engine, 64)],
            ..RunPlan::default()
        };
        let prepared = session.prepare(&plan, &mut ()).expect("it prepares");
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("writable");
        file.set_len(10 * 4096).expect("it shrinks");
        let outcome = prepared.start(&mut ());
        let worker = &outcome.workers[0];
        let failure = worker.failure.as_ref().expect("the worker failed");
        assert_eq!(failure.errno, 5, "{engine}: {}", failure.message);
        assert_eq!(worker.measured.read.ios, 10, "{engine}");
        assert_eq!(worker.errors.iter().map(|error| error.count).sum::<u64>(), worker.measured.read.failed);
        file.set_len(64 * 4096).expect("it grows");
    }
}

#[test]
fn phases_and_runtime_in_real_time() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("data");
    let mut first = on(&path, job("first", Mix::Read, true, 1), "psync", 64);
    first.time.runtime = Some(Nanos::from_millis(200));
    first.time.time_based = true;
    let mut second = on(&path, job("second", Mix::Write, true, 4), "io_uring", 64);
    (second.phase, second.group) = (1, 1);
    let outcome = run(vec![first, second]).expect("it runs");
    let [first, second] = &outcome.workers[..] else { panic!("two workers") };
    assert!(first.measured.end_ns - first.measured.start_ns >= 200_000_000);
    assert!(second.measured.start_ns >= first.measured.end_ns, "a phase waits for the one before");
    assert_eq!(second.measured.write.ios, 64);
    assert!(first.measured.cpu.user_ns + first.measured.cpu.system_ns > 0);
    assert!(first.thread_id > 0 && first.started_unix_ms > 0);
}

#[test]
fn a_stop_ends_the_run_with_a_partial_result() {
    struct StopAtOnce(fathom_runner::StopHandle);
    impl RunObserver for StopAtOnce {
        fn snapshot(&mut self, _: &fathom_stats::Snapshot) {
            self.0.request("signal 2");
        }
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let session = Session::real();
    let plan = RunPlan {
        jobs: vec![plans::timed(
            on(&dir.path().join("data"), job("long", Mix::Read, true, 4), "io_uring", 64),
            3600,
        )],
        ..RunPlan::default()
    };
    let outcome = session.run(&plan, &mut StopAtOnce(session.stop_handle())).expect("it runs");
    assert_eq!(outcome.interrupted.as_deref(), Some("signal 2"));
    assert!(outcome.workers[0].measured.read.ios > 0);
    assert!(!outcome.workers[0].stuck);
}

#[test]
fn an_observer_ends_a_phase_early() {
    struct EndAtOnce;
    impl RunObserver for EndAtOnce {
        fn ends_phase(&mut self) -> bool {
            true
        }
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("data");
    let long = plans::timed(on(&path, job("long", Mix::Read, true, 4), "io_uring", 64), 3600);
    let plan = RunPlan { jobs: vec![long], ..RunPlan::default() };
    let outcome = Session::real().run(&plan, &mut EndAtOnce).expect("it runs");
    assert_eq!(outcome.interrupted, None);
    let worker = &outcome.workers[0];
    assert!(worker.measured.read.ios > 0 && !worker.stuck && worker.failure.is_none());
    assert!(worker.measured.elapsed_ns() < 60_000_000_000);
}

#[test]
fn unsuitable_targets_are_refused_with_a_remedy() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let check = |job: JobPlan, expected: &str| {
        let error = run(vec![job]).expect_err(expected);
        assert!(error.to_string().contains(expected), "'{error}' does not say '{expected}'");
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "'{error}' has no remedy");
    };
    let file = dir.path().join("file");
    let read = || job("job", Mix::Read, true, 1);
    check(on(dir.path(), read(), "psync", 1), "is a directory");
    let mut no_size = on(&file, read(), "psync", 1);
    no_size.io.size = None;
    check(no_size, "you need to specify size=");
    let mut zero = on(&file, read(), "psync", 0);
    zero.io.size = Some(SizeSpec::Bytes(0));
    check(zero, "you need to specify size=");
    let mut small = on(&file, read(), "psync", 1);
    small.io.size = Some(SizeSpec::Bytes(100));
    check(small, "smaller than the block size");
    check(on(&file, read(), "warp", 1), "unknown engine 'warp'");
    check(on(Path::new("/dev/tty"), read(), "psync", 1), "is a character device");
    check(on(&dir.path().join("no/such"), read(), "psync", 1), "No such file");
    let mut huge = on(&file, read(), "psync", 1);
    huge.io.size = Some(SizeSpec::Bytes(u64::MAX - 1));
    check(huge, "past the largest file");
    let mut odd = on(&file, read(), "psync", 64);
    odd.io.direct = true;
    odd.io.block_size = fathom_model::PerOp::splat(1000.into());
    check(odd, "is not a multiple of");
    assert!(!dir.path().join("no").exists());
}

#[test]
fn files_to_be_read_are_filled_whatever_the_preallocation() {
    use fathom_model::plan::Fallocate::{Keep, Native, None, Posix, Truncate};
    let dir = tempfile::tempdir().expect("a temporary directory");
    for fallocate in [None, Native, Posix, Keep, Truncate] {
        let path = dir.path().join(format!("{fallocate:?}"));
        let mut reader = on(&path, job("reader", Mix::Read, false, 1), "psync", 64);
        reader.files.fallocate = fallocate;
        run(vec![reader]).expect("it runs");
        let data = std::fs::read(&path).expect("it is laid out");
        assert_eq!(data.len(), 64 * 4096, "{fallocate:?}");
        assert!(data.chunks(512).all(|sector| sector.iter().any(|&b| b != 0)), "{fallocate:?} left holes");
    }
}

#[test]
fn reads_do_not_change_the_contents_of_writes() {
    use fathom_model::plan::Payload;
    let dir = tempfile::tempdir().expect("a temporary directory");
    for payload in [Payload::Stamped, Payload::Fixed, Payload::Refill, Payload::Zero] {
        let path = dir.path().join(format!("{payload:?}"));
        let old = if payload == Payload::Zero { 7u8 } else { 0 };
        std::fs::write(&path, vec![old; 256 * 4096]).expect("a file");
        let mix = Mix::ReadWrite { read_percent: 75 };
        let mut mixed = on(&path, job("mixed", mix, true, 2), "io_uring", 256);
        mixed.io.payload = payload.clone();
        let outcome = run(vec![mixed]).expect("it runs");
        let data = std::fs::read(&path).expect("still there");
        let written: Vec<&[u8]> = data.chunks(4096).filter(|b| b.iter().any(|&x| x != old)).collect();
        assert_eq!(written.len() as u64, outcome.workers[0].measured.write.ios, "{payload:?}");
        let zeroes = |block: &&[u8]| block.iter().filter(|&&byte| byte == 0).count();
        let expected = if payload == Payload::Zero { 4096..=4096 } else { 0..=100 };
        assert!(written.iter().all(|block| expected.contains(&zeroes(block))), "{payload:?}");
    }
}

#[test]
fn a_failed_layout_leaves_no_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (new, old) = (dir.path().join("new"), dir.path().join("old"));
    std::fs::write(&old, [7u8; 5000]).expect("a file");
    for path in [&new, &old] {
        // Larger than any test file system: no space, or file too large.
        run(vec![on(path, job("reader", Mix::Read, false, 1), "psync", 1 << 50)]).expect_err("no room");
    }
    assert!(!new.exists());
    assert_eq!(std::fs::read(&old).expect("untouched"), [7u8; 5000]);
}

#[test]
fn a_mapping_is_laid_out_before_it_is_written() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut writer = on(&dir.path().join("data"), job("writer", Mix::Write, true, 1), "mmap", 64);
    writer.files.fallocate = fathom_model::plan::Fallocate::None;
    let outcome = run(vec![writer]).expect("it runs");
    assert_eq!((&outcome.workers[0].failure, outcome.workers[0].measured.write.ios), (&None, 64));
}

#[test]
fn empty_and_oversized_transfers_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("data");
    let check = |change: fn(&mut JobPlan), expected: &str| {
        let mut changed = on(&path, job("job", Mix::Read, true, 1), "io_uring", 1 << 40);
        change(&mut changed);
        let error = run(vec![changed]).expect_err(expected);
        assert!(error.to_string().contains(expected) && error.hint().is_some(), "'{error}': {expected}");
        assert!(!path.exists());
    };
    check(|job| job.depth.iodepth = 0, "iodepth=0 transfers no data");
    check(|job| job.io.block_size = fathom_model::PerOp::splat(0.into()), "bs=0 transfers no data");
    check(
        |job| {
            job.depth = fathom_model::plan::DepthPlan::new(30_000);
            job.io.block_size = fathom_model::PerOp::splat((1 << 30).into());
        },
        "MiB of memory are available",
    );
}

#[test]
fn a_session_file_is_not_removed_by_its_name() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("data");
    std::fs::write(&path, b"somebody's").expect("a file");
    let mut session = Session::real();
    session
        .hold(path.clone(), tempfile::tempfile_in(dir.path()).expect("an unnamed file"))
        .expect("it is open");
    let mut reader = on(&path, job("reader", Mix::Read, true, 1), "psync", 4);
    reader.files.unlink = true;
    let outcome = session.run(&RunPlan { jobs: vec![reader], ..RunPlan::default() }, &mut ());
    assert_eq!(outcome.expect("it runs").workers[0].measured.read.ios, 4);
    assert_eq!(std::fs::read(&path).expect("still there"), b"somebody's");
}
