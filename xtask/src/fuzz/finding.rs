//! A finding of a target, with the command that reproduces it.

use std::fmt::Write as _;
use std::path::Path;

/// Largest input that is shown.
const SHOWN_BYTES: usize = 256;

/// The finding of `program`, whose messages are `log`, kept in the file `kept`.
pub fn told(name: &str, program: &Path, log: &str, kept: &Path) -> String {
    let mut text = format!("fuzz target {name}: {}", cause(log));
    match input(log) {
        Some(path) => {
            let bytes = std::fs::read(path).unwrap_or_default();
            let _ = write!(text, "\n  input: {path} ({} bytes)", bytes.len());
            if !bytes.is_empty() && bytes.len() <= SHOWN_BYTES {
                let _ = write!(text, "\n  hex: {}", hex(&bytes));
            }
            let _ = write!(text, "\n  to see it again: {} {path}", program.display());
            let _ = write!(
                text,
                "\n  once it is mended: keep it, as small as it gets, in fuzz/regressions/{name}/"
            );
        }
        None => {
            let _ = write!(text, "\n  it left no input: see the messages");
        }
    }
    let _ = write!(text, "\n  messages: {}", kept.display());
    text
}

/// The first line that says what happened.
fn cause(log: &str) -> String {
    let mut lines = log.lines();
    while let Some(line) = lines.next() {
        if let Some((_, place)) = line.split_once("panicked at ") {
            let message = lines.next().unwrap_or_default();
            return format!("panicked at {place} {message}").chars().take(300).collect();
        }
        let is_cause = line.contains("memory allocation of") || line.contains("ERROR: libFuzzer:");
        if is_cause {
            return line.trim_start_matches('=').to_owned();
        }
    }
    "ended without a word, as by a signal".to_owned()
}

/// The input that did it: where libFuzzer kept it, or the last one of those that were replayed.
fn input(log: &str) -> Option<&str> {
    let last = |before: &str| log.lines().rev().find_map(|line| Some(line.split_once(before)?.1.trim()));
    last("Test unit written to ").or_else(|| last("Running: "))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_has_a_command_that_reproduces_it() {
        let directory = tempfile::tempdir().unwrap();
        let input = directory.path().join("crash-1");
        std::fs::write(&input, b"a\n").unwrap();
        let log = format!(
            "#9\tNEW cov: 1\n\nthread '<unnamed>' (7) panicked at src/a.rs:5:9:\nattempt to add with overflow\n\
             ==7== ERROR: libFuzzer: deadly signal\nartifact_prefix='d/'; Test unit written to {}\n",
            input.display()
        );
        let text = told("suite", Path::new("/b/suite"), &log, Path::new("/b/suite-run.log"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "fuzz target suite: panicked at src/a.rs:5:9: attempt to add with overflow");
        assert_eq!(lines[1], format!("  input: {} (2 bytes)", input.display()));
        assert_eq!(lines[2], "  hex: 610a");
        assert_eq!(lines[3], format!("  to see it again: /b/suite {}", input.display()));
        assert_eq!(lines[5], "  messages: /b/suite-run.log");
    }

    #[test]
    fn every_exit_status_has_a_cause() {
        let check = |log: &str, expected: &str| assert_eq!(cause(log), expected);
        check(
            "==3== ERROR: libFuzzer: timeout after 11 seconds\n",
            "3== ERROR: libFuzzer: timeout after 11 seconds",
        );
        check(
            "memory allocation of 68719476736 bytes failed\n",
            "memory allocation of 68719476736 bytes failed",
        );
        check("", "ended without a word, as by a signal");
        assert_eq!(super::input("Running: /r/1\nRunning: /r/2\n"), Some("/r/2"));
    }
}
