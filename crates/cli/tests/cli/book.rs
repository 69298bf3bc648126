//! The book: each of its command lines is executed on simulated volumes, and the output that a page shows is what comes out.
//!
//! With `FATHOM_WRITE_DOCS` set, the shown output is written anew.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::scratch;

/// Blocks whose lines after `$ ` are commands.
const BLOCK: &str = "```console";
/// The same with what they print.
const WITH_OUTPUT: &str = "```console,output";

/// Names of real targets in the book, and what takes their place here.
const TARGETS: [(&str, &str); 2] = [
    ("/mnt/data", "'sim:aws-gp3?size=100GiB'"),
    ("/dev/nvme1n1", "'sim:custom?iops=5000&bandwidth=200MiB&size=10GiB'"),
];

/// The pages at and below `directory`.
fn pages(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// What a command line prints on standard output, and its exit.
fn executed(line: &str, directory: &Path) -> (String, Option<i32>) {
    let line = TARGETS.iter().fold(line.to_owned(), |line, (name, simulated)| line.replace(name, simulated));
    let program = Path::new(env!("CARGO_BIN_EXE_fathom")).parent().unwrap();
    let path = std::env::join_paths(
        [program.to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let mut command = Command::new("sh");
    command.args(["-c", &line]).current_dir(directory).env_clear();
    command
        .env("PATH", path.unwrap())
        .env("HOME", directory.join("home"))
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8");
    command.env("COLUMNS", "80").env("FATHOM_HISTORY", directory.join("history.db"));
    command.env("FATHOM_TWINS", directory.join("twins"));
    let ended = command.output().unwrap();
    let error = String::from_utf8_lossy(&ended.stderr).into_owned();
    // A check that fails, and a goal that is missed, are examples as well; a mistake is not.
    let is_mistake = matches!(ended.status.code(), None | Some(1 | 2 | 101));
    assert!(!is_mistake, "{line}: {:?}\n{error}", ended.status);
    (String::from_utf8_lossy(&ended.stdout).into_owned(), ended.status.code())
}

/// The page with what its commands print today.
fn renewed(text: &str, directory: &Path) -> String {
    let mut out = String::new();
    let mut block = None;
    for line in text.lines() {
        match (block, line) {
            (None, WITH_OUTPUT | BLOCK) => block = Some(line),
            (Some(_), "```") => block = None,
            (Some(kind), line) if line.starts_with("$ ") => {
                out += &format!("{line}\n");
                let (printed, _) = executed(&line[2..], directory);
                if kind == WITH_OUTPUT {
                    printed.lines().for_each(|line| out += &format!("{}\n", line.trim_end_matches(' ')));
                }
                continue;
            }
            // The output of another day.
            (Some(WITH_OUTPUT), _) => continue,
            _ => {}
        }
        out += &format!("{line}\n");
    }
    out
}

#[test]
fn commands_of_the_book_run_and_print_what_it_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![root.join("README.md")];
    pages(&root.join("docs/src"), &mut all);
    let writes = std::env::var_os("FATHOM_WRITE_DOCS").is_some();
    let outdated = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let check = || {
        while let Some(page) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let text = std::fs::read_to_string(page).unwrap();
            let dir = scratch();
            let today = renewed(&text, dir.path());
            if today != text {
                outdated.lock().unwrap().push(page.display().to_string());
                if writes {
                    std::fs::write(page, &today).unwrap();
                }
            }
        }
    };
    // Most of the time is that of programs, of which each uses one CPU.
    thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(check))));
    let outdated = outdated.into_inner().unwrap();
    assert!(all.len() > 20);
    assert!(outdated.is_empty() || writes, "run `cargo xtask docs`: {outdated:?}");
}

/// The commands that a help lists: the first word of each line indented by two.
fn listed(help: &str) -> Vec<&str> {
    let lines = help.lines().take_while(|line| !line.starts_with("Options:"));
    let names = lines.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").collect()
}

#[test]
fn the_reference_has_every_command() {
    let dir = scratch();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/commands.md");
    let page = std::fs::read_to_string(page).unwrap();
    let help = crate::run(dir.path(), &["--help"]).quietly().stdout;
    let has_parts = ["catalog", "trace", "twin", "history", "fleet"];
    for command in listed(&help) {
        let parts = match has_parts.contains(&command) {
            true => crate::run(dir.path(), &[command, "--help"]).quietly().stdout,
            false => String::new(),
        };
        let whole = listed(&parts).into_iter().map(|part| format!("{command} {part}"));
        let names: Vec<String> = if parts.is_empty() { vec![command.to_owned()] } else { whole.collect() };
        for name in names {
            assert!(page.contains(&format!("\n### fathom {name}\n")), "{name} has no place in the reference");
        }
    }
}
