//! A rank of a parallel job, for tests of launchers: it joins the job, exchanges values with all ranks, meets them in a barrier, and
//! writes what it saw into a file.
//!
//! `rank DIRECTORY [late=RANK] [lateness=MS] [dead=RANK] [limit=MS]`: once all have met, rank `late` comes `lateness` late to a second
//! barrier, and rank `dead` ends before it; the others wait there for `limit`.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use fathom_sys::clock::monotonic_ns;
use fathom_sys::process_manager::{ProcessManager, ProcessManagerError, join, promised_size};
use serde_json::{Value, json};

/// The exit code of a rank that dies.
const DEAD: u8 = 42;
/// The exit code of a job that misses a rank.
const INCOMPLETE: u8 = 75;

/// Longest wait for launchers and ranks that are not meant to be late.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the arguments ask for.
struct Task {
    directory: PathBuf,
    late: Option<u32>,
    lateness: Duration,
    dead: Option<u32>,
    limit: Duration,
}

impl Task {
    fn from_arguments() -> Option<Task> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let (directory, options) = arguments.split_first()?;
        let option = |name: &str| {
            let value = options.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            value.and_then(|value| value.parse::<u32>().ok())
        };
        let time = |name: &str, usual: u32| Duration::from_millis(option(name).unwrap_or(usual).into());
        Some(Task {
            directory: directory.into(),
            late: option("late"),
            lateness: time("lateness", 300),
            dead: option("dead"),
            limit: time("limit", 60_000),
        })
    }

    fn write(&self, name: &str, seen: &Value) {
        std::fs::write(self.directory.join(name), seen.to_string()).expect("the directory is the test's");
    }
}

fn main() -> ExitCode {
    let task = Task::from_arguments().expect("the test passes a directory");
    let variable = |name: &str| std::env::var(name).ok();
    let mut manager = match join(&variable, PATIENCE) {
        Ok(Some(manager)) => manager,
        Ok(None) => {
            let promised = promised_size(&variable).map(|(name, size)| format!("{name}={size}"));
            task.write(&format!("alone-{}", std::process::id()), &json!({ "promised": promised }));
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            task.write(&format!("error-{}", std::process::id()), &json!(error.to_string()));
            return ExitCode::FAILURE;
        }
    };
    let rank = manager.place().rank;
    match meet(&task, manager.as_mut()) {
        Ok(seen) => {
            task.write(&format!("rank-{rank}"), &seen);
            ExitCode::SUCCESS
        }
        Err(error) => {
            task.write(&format!("rank-{rank}"), &json!({ "error": error.to_string() }));
            manager.abort(INCOMPLETE.into(), "a rank is missing");
            ExitCode::from(INCOMPLETE)
        }
    }
}

/// The longest value that is permitted, its own for each rank.
fn long_value(manager: &dyn ProcessManager, rank: u32) -> String {
    let digit = char::from_digit(rank % 10, 10).unwrap_or_default();
    std::iter::repeat_n(digit, manager.place().limits.value).collect()
}

fn meet(task: &Task, manager: &mut dyn ProcessManager) -> Result<Value, ProcessManagerError> {
    let (rank, limit) = (manager.place().rank, PATIENCE);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    manager.put(&format!("host-{rank}"), &host, limit)?;
    let long = long_value(manager, rank);
    manager.put(&format!("long-{rank}"), &long, limit)?;
    manager.fence(limit)?;
    let ranks = 0..manager.place().size;
    let hosts: Result<Vec<String>, _> =
        ranks.clone().map(|rank| manager.get(rank, &format!("host-{rank}"), limit)).collect();
    let mut are_whole = true;
    for rank in ranks {
        let expected = long_value(manager, rank);
        are_whole &= manager.get(rank, &format!("long-{rank}"), limit)? == expected;
    }
    let is_missing = matches!(
        manager.get(rank, &format!("missing-{rank}"), limit),
        Err(ProcessManagerError::NoValue { .. })
    );
    if task.late == Some(rank) {
        task.write("late", &json!(std::process::id()));
        #[allow(clippy::disallowed_methods)] // No session here whose clock could wait.
        std::thread::sleep(task.lateness);
    }
    if task.dead == Some(rank) {
        // Without a word to the launcher, as a crash.
        std::process::exit(DEAD.into());
    }
    let entered_ns = monotonic_ns();
    manager.fence(task.limit)?;
    let left_ns = monotonic_ns();
    manager.finish(limit)?;
    Ok(json!({
        "interface": manager.place().interface, "rank": rank, "size": manager.place().size, "hosts": hosts?,
        "are_whole": are_whole, "is_missing": is_missing, "entered_ns": entered_ns, "left_ns": left_ns,
    }))
}
