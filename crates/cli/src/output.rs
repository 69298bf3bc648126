//! Standard output and error: who reads them, and writing to them so that a closed pipe is no failure.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use fathom_report::Style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::signals;

/// Columns of a report that goes to a file or a pipe.
const PLAIN_WIDTH: usize = 120;

/// Writes that were begun and writes that have ended, so that it is odd during one.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// The number of the write that is under way: one that stays the same has found a reader that does not read.
pub fn write_under_way() -> Option<u64> {
    Some(WRITES.load(Ordering::Acquire)).filter(|writes| !writes.is_multiple_of(2))
}

/// A writer whose writes are counted.
pub struct Watched<W>(pub W);

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        WRITES.fetch_add(1, Ordering::AcqRel);
        let written = self.0.write(bytes).and_then(|count| self.0.flush().map(|()| count));
        WRITES.fetch_add(1, Ordering::AcqRel);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Standard output, with a buffer.
pub fn stdout() -> io::BufWriter<Watched<io::StdoutLock<'static>>> {
    io::BufWriter::new(Watched(io::stdout().lock()))
}

/// A line on standard error. Nobody is left to tell where that fails.
pub fn warn(line: &str) {
    let _ = Watched(io::stderr()).write_all(format!("{line}\n").as_bytes());
}

/// Writes to standard output through `write`. A reader that has gone away has seen enough.
///
/// # Errors
/// Any other failure to write.
pub fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = stdout();
    forgive_closed_pipe(write(&mut out).and_then(|()| out.flush()))
}

/// What a terminal that has gone answers.
const EIO: i32 = 5;

/// A closed pipe is success, and so is a terminal that has hung up.
pub fn forgive_closed_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) if error.raw_os_error() == Some(EIO) && signals::has_hung_up() => Ok(()),
        other => other,
    }
}

/// The system's answer without its number, which means nothing to a user.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// How reports are to look on standard output.
pub fn style() -> Style {
    let terminal = io::stdout().is_terminal();
    let width = if terminal { terminal_width() } else { PLAIN_WIDTH };
    Style { width, colour: terminal && colours_wanted(), unicode: is_utf8(), ..Style::local() }
}

fn terminal_width() -> usize {
    let (_, columns) = console::Term::stdout().size();
    usize::from(columns)
}

/// Writes a paragraph in lines that fit standard output.
///
/// # Errors
/// Those of `out`.
pub fn paragraph(text: &str, out: &mut dyn Write) -> io::Result<()> {
    wrap(text, style().width).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// What a plan writes, one after the other, as a sentence.
pub fn writes(parts: &[String]) -> String {
    format!("Writes {}.", if parts.is_empty() { "nothing".to_owned() } else { parts.join(", then ") })
}

/// Ends what is said of a plan: what a reader of the results should know of it, and an empty line.
///
/// # Errors
/// Those of `out`.
pub fn notes<'a>(notes: impl IntoIterator<Item = &'a String>, out: &mut dyn Write) -> io::Result<()> {
    notes.into_iter().try_for_each(|note| paragraph(&format!("Note: {note}."), out))?;
    writeln!(out)
}

/// `text` in lines of at most `width` characters, broken between words; all but the first are indented.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        let used = line.chars().count();
        if used == 0 {
            line.push_str(word);
        } else if used + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines
}

/// `NO_COLOR` and dumb terminals say no.
fn colours_wanted() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether the locale has more than ASCII: the first of its variables that is set tells.
fn is_utf8() -> bool {
    let said = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| {
        let value = std::env::var_os(name)?;
        (!value.is_empty()).then(|| value.to_string_lossy().to_ascii_lowercase())
    });
    said.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8"))
}

/// Whether somebody is looking at standard error.
pub fn stderr_is_seen() -> bool {
    io::stderr().is_terminal()
}

/// A bar on standard error, of `length` where that is known; hidden where nobody looks.
pub fn progress_bar(length: Option<u64>, template: &str) -> ProgressBar {
    let target = if stderr_is_seen() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(length, target);
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("=> "));
    bar
}

/// The same as a line, for who asks while the run goes on.
pub fn status_of(bar: &ProgressBar) -> impl Fn() -> String + Send + use<> {
    let bar = bar.clone();
    move || {
        let (prefix, message) = (bar.prefix(), bar.message());
        let where_it_is = if prefix.trim().is_empty() { "starting" } else { prefix.trim() };
        let message = if message.is_empty() { message } else { format!(": {message}") };
        format!("fathom: running for {} s, {where_it_is}{message}", bar.elapsed().as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_broken_between_words() {
        assert_eq!(wrap("one two three four", 9), ["one two", "  three", "  four"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
        assert_eq!(wrap("", 9), [""]);
    }
}
