//! A block of lines on a terminal that is drawn over again and again, in the place where it began.

use std::io;

use fathom_report::TextWriter;

/// What is on the terminal now.
#[derive(Debug, Default)]
pub struct Screen {
    lines: usize,
}

impl Screen {
    /// Replaces what was drawn by `lines`, as many of them as the terminal has room for.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn draw(&mut self, lines: &[String], out: &mut TextWriter) -> io::Result<()> {
        let (rows, _) = console::Term::stdout().size();
        self.draw_within(lines, usize::from(rows).saturating_sub(1).max(1), out)
    }

    fn draw_within(&mut self, lines: &[String], rows: usize, out: &mut TextWriter) -> io::Result<()> {
        self.clear(out)?;
        let lines = &lines[..lines.len().min(rows)];
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        self.lines = lines.len();
        Ok(())
    }

    /// Takes away what was drawn; the cursor stands where it began.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn clear(&mut self, out: &mut TextWriter) -> io::Result<()> {
        if self.lines > 0 {
            out.go_back(self.lines)?;
            self.lines = 0;
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_drawn_over_those_before() {
        let mut screen = Screen::default();
        let mut written = Vec::new();
        let mut out = TextWriter::new(&mut written);
        let lines = ["a", "b", "c"].map(str::to_owned);
        screen.draw_within(&lines, 10, &mut out).unwrap();
        screen.draw_within(&lines, 2, &mut out).unwrap();
        screen.clear(&mut out).unwrap();
        screen.clear(&mut out).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "a\nb\nc\n\x1b[3A\r\x1b[Ja\nb\n\x1b[2A\r\x1b[J");
    }
}
