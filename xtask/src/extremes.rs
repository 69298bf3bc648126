//! `cargo xtask campaign extremes`: extreme numbers in every option of every command, on simulated volumes and the null engine.
//!
//! No run may abort, use more than a gigabyte, or be deaf: one that goes on for five seconds is asked to end, and has two for it.
//! Options are read from the help, so that a new one is tried as well. Beyond single options, pairs of them are drawn.

mod cases;

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use fathom_tests::wait_for;
use rustix::process::{Pid, Signal, kill_process};

use crate::gate::cargo_command;
use crate::process::{output, watch};

/// Cases, unless others are asked for.
const CASES: usize = 10_000;
/// Most memory of a run, KiB.
const MAX_RESIDENT_KIB: u64 = 1 << 20;
/// Time after which a run is asked to end, and the time that it has for it.
const PATIENCE: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(2);

/// How a run ended.
enum CaseEnd {
    ByItself,
    /// It was asked to.
    Stopped,
    Failed(String),
}

/// Runs the campaign.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let (mut wanted, mut program) = (CASES, None);
    for pair in arguments.chunks(2) {
        match pair {
            ["--cases", count] => wanted = count.parse().context("--cases takes a number")?,
            ["--program", path] => program = Some(PathBuf::from(path)),
            _ => bail!("extremes takes [--cases 10000] [--program PATH]"),
        }
    }
    let program = match program {
        Some(program) => fs::canonicalize(program)?,
        None => {
            watch(&mut cargo_command(root, &["build", "--release", "--package", "fathom"]))?;
            root.join("target/release/fathom")
        }
    };
    let directory = tempfile::tempdir()?;
    let cases = cases::all(&program, directory.path(), wanted)?;
    println!("{} cases", cases.len());
    let queue = Mutex::new(cases.iter().enumerate());
    let totals = Mutex::new(Totals::default());
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for worker in 0..workers {
            let (queue, totals, program) = (&queue, &totals, &program);
            let place = directory.path().join(format!("worker-{worker}"));
            scope.spawn(move || {
                while let Some((number, words)) = next(queue) {
                    let end = run(program, &place, words)
                        .unwrap_or_else(|error| CaseEnd::Failed(format!("{error:#}")));
                    add(totals, number, words, end);
                }
            });
        }
    });
    let totals = totals.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    println!("{} ended by themselves, {} were asked to end and did", totals.by_itself, totals.stopped);
    ensure!(totals.failed.is_empty(), "{} cases failed:\n{}", totals.failed.len(), totals.failed.join("\n"));
    Ok(())
}

#[derive(Default)]
struct Totals {
    by_itself: usize,
    stopped: usize,
    failed: Vec<String>,
}

type Cases<'a> = std::iter::Enumerate<std::slice::Iter<'a, Vec<String>>>;

fn next<'a>(queue: &Mutex<Cases<'a>>) -> Option<(usize, &'a Vec<String>)> {
    queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next()
}

fn add(totals: &Mutex<Totals>, number: usize, words: &[String], end: CaseEnd) {
    let mut totals = totals.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    match end {
        CaseEnd::ByItself => totals.by_itself += 1,
        CaseEnd::Stopped => totals.stopped += 1,
        CaseEnd::Failed(why) => {
            let failed = format!("{why}: fathom {}", cases::shown(words));
            println!("{number}: {failed}");
            totals.failed.push(failed);
        }
    }
    if (number + 1).is_multiple_of(500) {
        println!("{} so far", number + 1);
    }
}

/// Runs a case in an empty directory.
fn run(program: &Path, place: &Path, words: &[String]) -> anyhow::Result<CaseEnd> {
    fs::remove_dir_all(place).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    fs::create_dir(place)?;
    let printed = place.with_extension("out");
    let file = File::create(&printed)?;
    let mut child = Command::new(program)
        .args(words)
        .current_dir(place)
        .env("FATHOM_HISTORY", place.join("history.db"))
        .env("FATHOM_CATALOG", "")
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()?;
    let mut resident = 0;
    if let Some(status) = wait(&mut child, PATIENCE, &mut resident)? {
        return Ok(judged(status, resident, &printed).unwrap_or(CaseEnd::ByItself));
    }
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::TERM)?;
    if let Some(status) = wait(&mut child, GRACE, &mut resident)? {
        return Ok(judged(status, resident, &printed).unwrap_or(CaseEnd::Stopped));
    }
    child.kill()?;
    child.wait()?;
    Ok(CaseEnd::Failed(format!("does not end {} s after a signal", GRACE.as_secs())))
}

/// Waits for `patience`, and reads how much memory the run uses at most; `None` if it goes on.
fn wait(child: &mut Child, patience: Duration, resident: &mut u64) -> anyhow::Result<Option<ExitStatus>> {
    let mut ended = Ok(None);
    wait_for(patience, || {
        ended = child.try_wait();
        *resident = resident_kib(child.id()).unwrap_or(0).max(*resident);
        !matches!(ended, Ok(None)) || *resident > 2 * MAX_RESIDENT_KIB
    });
    Ok(ended?)
}

/// The peak of the resident memory so far.
fn resident_kib(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What is wrong with a run that ended.
fn judged(status: ExitStatus, resident: u64, printed: &Path) -> Option<CaseEnd> {
    let text = fs::read(printed).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let why = match status.signal() {
        Some(signal) => format!("ends by signal {signal}"),
        None if status.code() == Some(101)
            || text.contains("internal error at")
            || text.contains("panicked at") =>
        {
            let line = text.lines().find(|line| line.contains(" at ")).unwrap_or_default();
            format!("has an internal error ({line})")
        }
        None if resident > MAX_RESIDENT_KIB => format!("uses {} MiB", resident >> 10),
        None => return None,
    };
    Some(CaseEnd::Failed(why))
}

/// What the program prints for these arguments.
fn printed(program: &Path, words: &[&str]) -> anyhow::Result<String> {
    output(Command::new(program).args(words))
}
