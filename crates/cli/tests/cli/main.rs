//! The program as a stranger meets it: what it says, where it says it, and how it ends.
//!
//! One binary. Every test has a directory of its own on a real file system, and a history that is not the user's.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod advise;
mod against;
mod articles;
mod bad_input;
mod bench;
mod book;
mod catalog;
mod compare;
mod demo;
mod doctor;
mod durations;
mod fio;
mod fio_access;
mod fio_logs;
mod fio_progress;
mod fio_replay;
mod fio_scripts;
mod fleet;
mod fleet_run;
mod golden;
mod history;
mod history_trend;
mod hostile;
mod hostile_records;
mod identify;
mod inputs;
mod kept_files;
mod live;
mod merge;
mod outputs;
mod partial_records;
mod report;
mod scale;
mod schedule;
mod schemas;
mod screens;
mod serve;
mod shell;
mod shown_again;
mod signals;
mod simulate;
mod simulated;
mod strict;
mod trace;
mod twins;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use fathom_tests::PostgresServer;
use tempfile::TempDir;

/// A directory for one test, beside the build's own files, so that it is no tmpfs.
fn scratch() -> TempDir {
    tempfile::Builder::new().prefix("cli-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The same with empty directories of these names in it.
fn scratch_with(directories: &[&str]) -> TempDir {
    let dir = scratch();
    directories.iter().for_each(|name| std::fs::create_dir(dir.path().join(name)).unwrap());
    dir
}

/// The program in `dir`, with nothing of the user's environment that could change what it does.
fn program(dir: &Path) -> Command {
    heed_signals();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
    command.current_dir(dir).env_clear();
    for kept in ["PATH", "LLVM_PROFILE_FILE"] {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
    command.env("HOME", dir.join("home")).env("TZ", "UTC");
    // The day on which prices are looked up: 2026-11-23.
    command.env("SOURCE_DATE_EPOCH", "1795392000");
    if let Ok(uri) = std::fs::read_to_string(dir.join(SERVER_URI)) {
        command.env("FATHOM_HISTORY", uri);
    }
    command
}

/// A file that names the history of a directory, where that is on a server.
const SERVER_URI: &str = "server-uri";

/// A directory whose history is on a server; `None`, after saying so, where there is none.
fn scratch_with_server() -> Option<TempDir> {
    let server = PostgresServer::shared()?;
    let dir = scratch();
    std::fs::write(dir.path().join(SERVER_URI), server.uri(&server.create_database())).unwrap();
    Some(dir)
}

/// The option that names the history of `dir`: none where that is on a server, which the environment names.
fn history_args(dir: &Path) -> &'static [&'static str] {
    if dir.join(SERVER_URI).exists() { &[] } else { &["--history=h.db"] }
}

/// The program with the history of `dir`.
fn run_with_history(dir: &Path, args: &[&str]) -> Ended {
    run(dir, &[args, history_args(dir)].concat())
}

/// Runs tests, each a function of a directory, with a history in a file and on a server.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() { super::$name($crate::scratch().path()); })+
        }
        mod postgres {
            $(#[test] fn $name() {
                if let Some(dir) = $crate::scratch_with_server() { super::$name(dir.path()); }
            })+
        }
    };
}
use on_both;

/// What this process ignores its children ignore, and a shell has what it starts in the background ignore SIGINT. A
/// signal that has a handler here has none there.
fn heed_signals() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP] {
            let always = Arc::new(AtomicBool::new(true));
            signal_hook::flag::register_conditional_shutdown(signal, 130, always).unwrap();
        }
    });
}

fn run(dir: &Path, args: &[&str]) -> Ended {
    ended(program(dir).args(args).output().unwrap())
}

/// How a call ended, as text.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn ended(output: Output) -> Ended {
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    schemas::check(&stdout);
    schemas::check(&stderr);
    Ended { code: output.status.code(), stdout, stderr }
}

impl Ended {
    /// Fails unless the call succeeded.
    #[track_caller]
    fn succeeded(self) -> Ended {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Fails unless the call succeeded without a word on standard error.
    #[track_caller]
    fn quietly(self) -> Ended {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self
    }
}

/// Everything in `dir` and below, hidden files as well.
fn files_in(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(files_in(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}
