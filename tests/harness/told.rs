//! Notes about passed tests: skips and retries, which `cargo xtask test` repeats in its last lines, and figures that nothing judges.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

/// The name of the running test, for a thread that the test runner started.
pub fn test_name() -> String {
    std::thread::current().name().unwrap_or("test").to_owned()
}

/// Whether tests run in their whole length, of which the gate runs a part (`cargo lab long-tests`).
pub fn is_long() -> bool {
    std::env::var_os("FATHOM_LONG_TESTS").is_some()
}

/// Says on stderr that `test` failed and is tried again, and why.
pub fn retried(test: &str, why: &str) {
    tell("FATHOM_TEST_RETRIES", &format!("RETRIED {test}: {why}"));
}

/// Says on stderr what `test` measured without judging it.
pub fn noted(test: &str, what: &str) {
    say(&one_line(&format!("NOTED {test}: {what}")));
}

/// Notes how long `test` had its turn.
pub(crate) fn took(test: &str, time: Duration) {
    append("FATHOM_TEST_TIMES", &format!("{:.3} {test}", time.as_secs_f64()));
}

/// One line to stderr, and to the file that the variable names.
pub(crate) fn tell(variable: &str, line: &str) {
    let line = one_line(line);
    say(&line);
    append(variable, &line);
}

/// One line to the file that the variable names.
fn append(variable: &str, line: &str) {
    let line = format!("{line}\n");
    if let Some(path) = std::env::var_os(variable) {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .ok();
    }
}

/// Written to the descriptor: what goes through eprint! is kept back from a test that passes.
fn say(line: &str) {
    #[expect(clippy::disallowed_methods, reason = "the rule is for what users run")]
    let mut stderr = std::io::stderr();
    stderr.write_all(format!("{line}\n").as_bytes()).ok();
}

/// A cause may be a whole document: a line of the file is one event, and no longer than can be read in a summary.
fn one_line(text: &str) -> String {
    const MOST: usize = 240;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_causes_are_shortened() {
        assert_eq!(one_line("off by 3 %:\n  {\n    \"a\": 1\n  }"), "off by 3 %: { \"a\": 1 }");
        assert_eq!(one_line(&"µ".repeat(240)), "µ".repeat(240));
        assert_eq!(one_line(&"µ".repeat(300)), "µ".repeat(240) + " ...");
    }
}
