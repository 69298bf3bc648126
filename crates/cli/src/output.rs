//! Standard output and error: who reads them, and writing to them so that a closed pipe is no failure.
//!
//! Nothing else holds them. All that is written goes through a [`TextWriter`], which lets no text of others reach the terminal
//! as anything but text; what a progress bar shows goes through [`Bar`].

#![expect(clippy::disallowed_methods, reason = "the one place that may write to standard output and error")]

pub mod diversion;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fathom_model::text::shown;
use fathom_report::{Style, TextWriter, wrap};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::signals;
use diversion::Standard;

/// Columns of a report that goes to a file or a pipe, unless COLUMNS says otherwise.
const PLAIN_WIDTH: usize = 100;
/// Fewer columns than this are taken for a mistake.
const MIN_COLUMNS: usize = 20;

/// Writes that were begun and writes that have ended, so that it is odd during one.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// The number of the write in progress: one that stays the same has found a reader that does not read.
pub fn write_under_way() -> Option<u64> {
    Some(WRITES.load(Ordering::Acquire)).filter(|writes| !writes.is_multiple_of(2))
}

/// A writer whose writes are counted.
pub struct CountedWriter<W>(pub W);

impl<W: Write> Write for CountedWriter<W> {
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

/// A line on standard error. A failure is ignored: there is nowhere to report it.
pub fn warn(line: &str) {
    let _ = warn_by(|out| writeln!(out, "{line}"));
}

/// Writes to standard error through `write`.
///
/// # Errors
/// It cannot be written.
pub fn warn_by(write: impl FnOnce(&mut TextWriter) -> io::Result<()>) -> io::Result<()> {
    if diversion::is_active() {
        return write_diverted(Standard::Error, write);
    }
    write_to(&mut io::BufWriter::new(CountedWriter(io::stderr().lock())), write)
}

/// Writes to what takes the place of `stream` now, or to the stream where nothing does.
fn write_diverted(stream: Standard, write: impl FnOnce(&mut TextWriter) -> io::Result<()>) -> io::Result<()> {
    let mut bytes = Vec::new();
    write_to(&mut bytes, write)?;
    if diversion::takes(stream, &bytes) { Ok(()) } else { write_directly(stream, &bytes) }
}

/// Writes `bytes`, which a [`TextWriter`] made, to `stream` itself.
///
/// # Errors
/// They cannot be written.
pub fn write_directly(stream: Standard, bytes: &[u8]) -> io::Result<()> {
    match stream {
        Standard::Output => CountedWriter(io::stdout().lock()).write_all(bytes),
        Standard::Error => CountedWriter(io::stderr().lock()).write_all(bytes),
    }
}

/// Standard error as a file of its own, whose writes hold up no other writer.
///
/// # Errors
/// There are no more descriptors.
pub fn stderr_file() -> io::Result<File> {
    Ok(File::from(rustix::io::dup(io::stderr())?))
}

/// Columns and rows of the terminal that shows standard error.
pub fn stderr_size() -> (usize, usize) {
    let (rows, columns) = console::Term::stderr().size();
    (usize::from(columns), usize::from(rows))
}

/// Writes to standard output through `write`. A reader that has gone away has seen enough.
///
/// # Errors
/// Any other failure to write.
pub fn print(write: impl FnOnce(&mut TextWriter) -> io::Result<()>) -> io::Result<()> {
    forgive_closed_pipe(try_print(write))
}

/// Writes to standard output through `write`, for callers that stop when the reader has gone.
///
/// # Errors
/// It cannot be written.
pub fn try_print(write: impl FnOnce(&mut TextWriter) -> io::Result<()>) -> io::Result<()> {
    if diversion::is_active() {
        return write_diverted(Standard::Output, write);
    }
    write_to(&mut io::BufWriter::new(CountedWriter(io::stdout().lock())), write)
}

/// Writes a report that was made before to standard output.
///
/// # Errors
/// It cannot be written; a reader that has gone away has seen enough.
pub fn print_whole(report: &[u8]) -> io::Result<()> {
    let mut out = io::BufWriter::new(CountedWriter(io::stdout().lock()));
    forgive_closed_pipe(out.write_all(report).and_then(|()| out.flush()))
}

/// Prints what clap has to say, help to standard output and mistakes to standard error, in its colours at a terminal.
///
/// # Errors
/// It cannot be written; a reader that has gone away has seen enough.
pub fn print_rendered(message: &clap::Error) -> io::Result<()> {
    let seen = if message.use_stderr() { stderr_is_seen() } else { stdout_is_seen() };
    let text = message.render();
    // One word for what helps: clap says tip.
    let text = if seen && colours_wanted() { text.ansi().to_string() } else { text.to_string() };
    let text = text.replace("tip:", "hint:");
    match message.use_stderr() {
        true => forgive_closed_pipe(warn_by(|out| out.coloured_lines(&text))),
        false => print(|out| out.coloured_lines(&text)),
    }
}

/// Writes to `out` through `write`, to its end.
///
/// # Errors
/// It cannot be written.
pub fn write_to(
    out: &mut dyn Write,
    write: impl FnOnce(&mut TextWriter) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = TextWriter::new(out);
    write(&mut out)?;
    out.flush()
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
    let terminal = stdout_is_seen();
    let width = if terminal { terminal_width() } else { named_width().unwrap_or(PLAIN_WIDTH) };
    Style { width, colour: terminal && colours_wanted(), unicode: is_utf8(), ..Style::local() }
}

/// What COLUMNS says.
fn named_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok()?;
    columns.trim().parse().ok().filter(|&columns| columns >= MIN_COLUMNS)
}

fn terminal_width() -> usize {
    let (_, columns) = console::Term::stdout().size();
    usize::from(columns)
}

/// Writes a paragraph in lines that fit standard output.
///
/// # Errors
/// Those of `out`.
pub fn paragraph(text: &str, out: &mut TextWriter) -> io::Result<()> {
    wrap(text, style().width, 0, 2).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Ends the text of a plan with its notes and an empty line.
///
/// # Errors
/// Those of `out`.
pub fn notes<'a>(notes: impl IntoIterator<Item = &'a String>, out: &mut TextWriter) -> io::Result<()> {
    notes.into_iter().try_for_each(|note| paragraph(&format!("Note: {note}."), out))?;
    writeln!(out)
}

/// `NO_COLOR` and dumb terminals say no.
pub fn colours_wanted() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether the locale has more than ASCII: the first of its variables that is set tells.
pub fn is_utf8() -> bool {
    let given = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| {
        let value = std::env::var_os(name)?;
        (!value.is_empty()).then(|| value.to_string_lossy().to_ascii_lowercase())
    });
    given.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8"))
}

/// Whether a terminal shows standard output.
pub fn stdout_is_seen() -> bool {
    io::stdout().is_terminal()
}

/// Whether a terminal shows standard error.
pub fn stderr_is_seen() -> bool {
    io::stderr().is_terminal()
}

/// A progress bar whose words are cleaned as all text is, with rows above it that leave with it.
#[derive(Clone)]
pub struct Bar {
    bar: ProgressBar,
    rows: ProgressBar,
}

/// Lines of a terminal that rows leave free, for the bar and what was written before.
const FREE_LINES: usize = 4;

impl Bar {
    /// A bar on standard error, of `length` where that is known; hidden unless that is a terminal, and where something else has it.
    pub fn new(length: Option<u64>, template: &str) -> Bar {
        let target = match stderr_is_seen() && !diversion::is_active() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let both = MultiProgress::with_draw_target(target);
        let style = |template: &str| {
            let style =
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            style.progress_chars("=> ")
        };
        let rows = both.add(ProgressBar::no_length().with_style(style("{msg}")));
        let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
        Bar { rows, bar: both.add(bar.with_style(style(template))) }
    }

    /// Shows lines above the bar, of which the last stay as there is room.
    pub fn rows(&self, lines: &str) {
        let room = stderr_size().1.saturating_sub(FREE_LINES).max(1);
        let shown_before = self.rows.message();
        let all: Vec<&str> = shown_before.lines().chain(lines.lines()).collect();
        let last = all[all.len().saturating_sub(room)..].join("\n");
        self.rows.set_message(last);
    }

    /// What stands before the bar.
    pub fn set_prefix<'a>(&self, text: impl Into<Cow<'a, str>>) {
        self.bar.set_prefix(shown(&text.into()).into_owned());
    }

    /// What stands behind the bar.
    pub fn set_message<'a>(&self, text: impl Into<Cow<'a, str>>) {
        self.bar.set_message(shown(&text.into()).into_owned());
    }

    /// The position that is the end.
    pub fn set_length(&self, length: u64) {
        self.bar.set_length(length);
    }

    /// How far it has come.
    pub fn set_position(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Draws it again every `interval`.
    pub fn enable_steady_tick(&self, interval: Duration) {
        self.bar.enable_steady_tick(interval);
    }

    /// Takes the bar away while `print` writes to where it is.
    pub fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// The same as a line, for who asks while the run goes on.
    pub fn status(&self) -> impl Fn() -> String + Send + use<> {
        let bar = self.bar.clone();
        move || {
            let (prefix, message) = (bar.prefix(), bar.message());
            let where_it_is = if prefix.trim().is_empty() { "starting" } else { prefix.trim() };
            let message = if message.is_empty() { message } else { format!(": {message}") };
            format!("fathom: running for {} s, {where_it_is}{message}", bar.elapsed().as_secs())
        }
    }

    /// Takes the bar away.
    pub fn finish_and_clear(&self) {
        self.rows.finish_and_clear();
        self.bar.finish_and_clear();
    }
}
