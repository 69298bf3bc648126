//! Where everything that people read is written: the only way to a terminal, and the place where text that others wrote is
//! cleaned.
//!
//! A renderer writes what a record holds as it came; `writeln!` on a [`TextWriter`] makes it one line without anything that a
//! terminal would obey. Columns that align such text count it by [`width`](crate::columns::width).

use std::fmt;
use std::io::{self, Write};

use fathom_model::text::{defused, is_hidden, shown};

use crate::style::mark;

/// Lines of text. Each call of `writeln!` is one line, whatever its arguments hold: end-of-line characters in them are shown as
/// escapes, like everything else that a terminal would not display. Only [`Style`](crate::Style) colours.
pub struct TextWriter<'a> {
    out: &'a mut dyn Write,
    is_verbatim: bool,
    line: String,
}

impl<'a> TextWriter<'a> {
    /// A out that is written to `out`.
    pub fn new(out: &'a mut dyn Write) -> TextWriter<'a> {
        TextWriter { out, is_verbatim: false, line: String::new() }
    }

    /// The same out for what others read or copy: text that can be printed is printed as it is, even where it looks like an
    /// escape of ours.
    pub fn verbatim(&mut self) -> TextWriter<'_> {
        TextWriter { out: &mut *self.out, is_verbatim: true, line: String::new() }
    }

    /// What `writeln!` calls: one line.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        self.line.clear();
        // A string takes everything; an error is that of a Display.
        fmt::write(&mut self.line, text).map_err(io::Error::other)?;
        let line = self.line.strip_suffix('\n').unwrap_or(&self.line);
        let clean = if self.is_verbatim { defused } else { shown };
        for (index, piece) in line.split(mark()).enumerate() {
            if index > 0 {
                self.out.write_all(b"\x1b[")?;
            }
            self.out.write_all(clean(piece).as_bytes())?;
        }
        self.out.write_all(b"\n")
    }

    /// Several lines that we wrote and that contain no foreign text, such as help.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn own_lines(&mut self, text: &str) -> io::Result<()> {
        let mut out = self.verbatim();
        text.lines().try_for_each(|line| writeln!(out, "{line}"))
    }

    /// Several lines that a library wrote for a terminal, with its colours and nothing else.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn coloured_lines(&mut self, text: &str) -> io::Result<()> {
        let mut out = self.verbatim();
        text.lines().try_for_each(|line| writeln!(out, "{}", marked_colours(line)))
    }

    /// A line that the next one is written over, at least `width` wide.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn passing_line(&mut self, text: &str, width: usize) -> io::Result<()> {
        write!(self.out, "{:width$}\r", defused(text))
    }

    /// Goes back over the last `lines` and clears the screen from there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn go_back(&mut self, lines: usize) -> io::Result<()> {
        write!(self.out, "\x1b[{lines}A\r\x1b[J")
    }

    /// The same output for a JSON document.
    pub fn json(&mut self) -> JsonWriter<'_> {
        JsonWriter { out: &mut *self.out }
    }

    /// Writes out what is held back.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// `line` with what sets colours as our own marks, so that it passes where nothing else does.
fn marked_colours(line: &str) -> String {
    let mut out = String::new();
    for (index, piece) in line.split("\x1b[").enumerate() {
        let parameters = piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        out.push_str(match (index, parameters.starts_with('m')) {
            (0, _) => "",
            (_, true) => mark(),
            (_, false) => "\x1b[",
        });
        out.push_str(piece);
    }
    out
}

/// Where a JSON document is written. Its strings keep every character; those that a terminal would obey, and that JSON allows
/// to stand for themselves, are written as `\u009b`.
pub struct JsonWriter<'a> {
    out: &'a mut dyn Write,
}

impl Write for JsonWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Text is handed over in whole characters.
        let text =
            std::str::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if text.bytes().all(|byte| byte == b'\n' || (b' '..0x7f).contains(&byte)) {
            self.out.write_all(bytes)?;
            return Ok(bytes.len());
        }
        for c in text.chars() {
            if c == '\n' || !is_hidden(c) {
                self.out.write_all(c.encode_utf8(&mut [0; 4]).as_bytes())?;
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(self.out, "\\u{unit:04x}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// What `write` puts on a out.
pub fn text(write: impl FnOnce(&mut TextWriter<'_>) -> io::Result<()>) -> io::Result<String> {
    let mut out = Vec::new();
    write(&mut TextWriter::new(&mut out))?;
    String::from_utf8(out).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;

    fn check(write: impl FnOnce(&mut TextWriter<'_>) -> io::Result<()>, expected: &str) {
        assert_eq!(text(write).expect("writing to memory"), expected);
    }

    #[test]
    fn each_call_is_one_line_whatever_it_holds() {
        let line = |name: &str, expected: &str| check(|out| writeln!(out, "a {name}"), expected);
        line("\x1b[2J\nforged\n", "a \\x1b[2J\\x0aforged\\x0a\n");
        line("x\n\n", "a x\\x0a\\x0a\n");
        line("\r\\x1b", "a \\x0d\\\\x1b\n");
        check(|out| writeln!(out), "\n");
        check(|out| out.own_lines("a\n\nb\n"), "a\n\nb\n");
        check(|out| writeln!(out.verbatim(), "\\x1b\x1b"), "\\x1b\\x1b\n");
        check(|out| out.go_back(3), "\x1b[3A\r\x1b[J");
        check(|out| out.passing_line("ab\x1b", 8), "ab\\x1b  \r");
    }

    #[test]
    fn only_our_own_colours_pass() {
        let style = Style { colour: true, ..Style::default() };
        let forged = "\x1b[1mx\x1b[0m";
        check(
            |out| writeln!(out, "{} {forged}", style.red(forged)),
            "\x1b[31m\\x1b[1mx\\x1b[0m\x1b[0m \\x1b[1mx\\x1b[0m\n",
        );
        check(
            |out| out.coloured_lines("\x1b[1;31me\x1b[0m \x1b[2J\x1b]0;t\n"),
            "\x1b[1;31me\x1b[0m \\x1b[2J\\x1b]0;t\n",
        );
    }

    #[test]
    fn documents_escape_what_json_leaves_to_terminals() {
        let value = "\x1b\x7f\u{9b}31m\u{202e}\u{e0001}é\n";
        check(
            |out| crate::document::write(&value, &mut out.json()),
            "\"\\u001b\\u007f\\u009b31m\\u202e\\udb40\\udc01é\\n\"\n",
        );
        let written = text(|out| crate::document::write(&value, &mut out.json())).unwrap();
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), value);
    }
}
