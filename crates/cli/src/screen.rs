//! A block of lines on a terminal that is drawn over again and again, in the place where it began.

use std::io;

use fathom_report::TextWriter;

/// What is on the terminal now.
#[derive(Debug, Default)]
pub struct Screen {
    lines: usize,
}

impl Screen {
    /// Replaces what was drawn by the lines of `text`, as many of them as the terminal has room for. They have their colours
    /// already.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn draw(&mut self, text: &str, out: &mut TextWriter) -> io::Result<()> {
        let (rows, columns) = console::Term::stdout().size();
        let size = (usize::from(rows).saturating_sub(1).max(1), usize::from(columns).max(1));
        self.draw_within(text, size, out)
    }

    fn draw_within(
        &mut self,
        text: &str,
        (rows, columns): (usize, usize),
        out: &mut TextWriter,
    ) -> io::Result<()> {
        self.clear(out)?;
        for line in text.lines() {
            // A line that is wider than the terminal takes several of its rows.
            let taken = console::measure_text_width(line).div_ceil(columns).max(1);
            if self.lines + taken > rows {
                break;
            }
            out.coloured_lines(&format!("{line}\n"))?;
            self.lines += taken;
        }
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
        screen.draw_within("a\n\n\x1b[1mabcde\x1b[0m\n", (10, 3), &mut out).unwrap();
        screen.draw_within("a\nb\nc\n", (2, 3), &mut out).unwrap();
        screen.clear(&mut out).unwrap();
        screen.clear(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(written).unwrap(),
            "a\n\n\x1b[1mabcde\x1b[0m\n\x1b[4A\r\x1b[Ja\nb\n\x1b[2A\r\x1b[J"
        );
    }
}
