//! Plain text for a terminal or a log, within a width.

mod picture;
mod table;

pub(super) use picture::plot_lines;
pub use table::TableStream;

use std::borrow::Cow;
use std::io;

use crate::columns::{pad, width, wrap};
use crate::view::{Block, FindingEntry, KeyFigure, Part, Row, Section, Tone, View, ViewHead};
use crate::{Style, TextWriter, text_writer};

/// Blanks before what stands under a title.
const INDENT: usize = 2;
/// Narrower than this nothing is made to fit.
const MIN_WIDTH: usize = 40;

/// Lines of a brief report: a screen, less two lines that say where the run is kept.
const SCREEN: usize = 22;
/// Rows that a table keeps on a screen.
const MIN_ROWS: usize = 3;

/// Writes the verdict and the sections: all of them in a full report, else what fits a screen.
///
/// # Errors
/// Those of `out`.
pub fn render(view: &View, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let view = view.in_units_of(style);
    // Only a report that has more in full is cut.
    let is_brief = !style.is_full && view.sections.iter().any(|section| section.part == Part::Full);
    let page = Page { style, width: style.width.max(MIN_WIDTH), is_brief };
    let sections: Vec<Cow<'_, Section>> = view.parts(style.is_full).map(Cow::Borrowed).collect();
    let sections = if is_brief { page.on_a_screen(&view, sections)? } else { sections };
    page.report(&view, &sections, out)?;
    // A run that is kept has its number in a line of its own.
    if is_brief && style.run_id.is_none() {
        writeln!(out)?;
        writeln!(out, "{}", style.dim("More with --full: findings, notes and all figures."))?;
    }
    Ok(())
}

struct Page<'a> {
    style: &'a Style,
    width: usize,
    /// What a reader can do without is left out.
    is_brief: bool,
}

impl Page<'_> {
    fn report(&self, view: &View, sections: &[Cow<'_, Section>], out: &mut TextWriter) -> io::Result<()> {
        if let Some(head) = &view.head {
            self.head(head, out)?;
        }
        self.key_figures(&view.verdict, out)?;
        for (index, section) in sections.iter().enumerate() {
            if index > 0 || !view.verdict.is_empty() {
                writeln!(out)?;
            }
            self.section(section, out)?;
        }
        Ok(())
    }

    /// The sections with so many rows of the longest table that all of it fits a screen.
    fn on_a_screen<'s>(
        &self,
        view: &View,
        mut sections: Vec<Cow<'s, Section>>,
    ) -> io::Result<Vec<Cow<'s, Section>>> {
        let lines = text_writer::text(|out| self.report(view, &sections, out))?.lines().count();
        let tables = sections.iter_mut().flat_map(|section| {
            section.to_mut().blocks.iter_mut().filter_map(|block| match block {
                Block::Table(table) => Some(table),
                _ => None,
            })
        });
        let longest = tables.max_by_key(|table| table.rows.len());
        if let Some(table) = longest.filter(|_| lines > SCREEN) {
            // One line more says how many rows are left out.
            let kept = table.rows.len().saturating_sub(lines - SCREEN + 1).max(MIN_ROWS);
            let hidden = table.rows.len().saturating_sub(kept);
            if hidden > 1 {
                table.rows.truncate(kept);
                table.rows.push(Row {
                    remark: Some(format!("{hidden} more with --full")),
                    tone: Tone::Dim,
                    ..Row::new([""])
                });
            }
        }
        Ok(sections)
    }

    /// The target on the left and the host on the right, on one line where there is room.
    fn head(&self, head: &ViewHead, out: &mut TextWriter) -> io::Result<()> {
        const GAP: usize = 4;
        let (left, right) = (head.target.join(", "), head.host_line(self.style));
        let used = width(&left) + width(&right);
        if !left.is_empty() && !right.is_empty() && used + GAP <= self.width {
            let fill = " ".repeat(self.width - used);
            writeln!(out, "{}{fill}{}", self.style.bold(&left), self.style.dim(&right))?;
            return writeln!(out);
        }
        for line in wrap(&left, self.width, 0, INDENT) {
            writeln!(out, "{}", self.style.bold(&line))?;
        }
        if !self.is_brief || left.is_empty() {
            for line in wrap(&right, self.width, 0, INDENT) {
                writeln!(out, "{}", self.style.dim(&line))?;
            }
        }
        writeln!(out)
    }

    fn section(&self, section: &Section, out: &mut TextWriter) -> io::Result<()> {
        if !section.title.is_empty() {
            for line in wrap(&section.title, self.width, 0, INDENT) {
                writeln!(out, "{}", self.style.bold(&line))?;
            }
        }
        for block in &section.blocks {
            match block {
                Block::Notes(notes) => self.notes(notes, out)?,
                Block::KeyFigures(figures) => self.key_figures(figures, out)?,
                Block::Table(table) => self.table(table, section.title.is_empty(), out)?,
                Block::Findings(findings) => self.findings(findings, out)?,
                Block::HeatMaps(maps) => self.heat_maps(maps, out)?,
                Block::Plots(plots) => self.plots(plots, out)?,
                Block::Tests(tests) => self.table(&tests.table, section.title.is_empty(), out)?,
                Block::Commands(commands) => commands.iter().try_for_each(|(name, command)| {
                    writeln!(out, "{:INDENT$}# {name}", "")?;
                    writeln!(out.verbatim(), "{:INDENT$}{command}", "")
                })?,
            }
        }
        Ok(())
    }

    fn notes(&self, notes: &[String], out: &mut TextWriter) -> io::Result<()> {
        let lines = notes.iter().flat_map(|note| wrap(note, self.width, INDENT, INDENT + 2));
        lines.into_iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    fn key_figures(&self, figures: &[KeyFigure], out: &mut TextWriter) -> io::Result<()> {
        let labels = figures.iter().map(|figure| width(&figure.label)).max().unwrap_or(0);
        let indent = INDENT + labels + 2;
        figures.iter().try_for_each(|figure| {
            let lines = wrap(&figure.cell.text, self.width, indent, indent);
            self.labelled(&figure.label, labels, lines, figure.tone, out)
        })
    }

    fn findings(&self, findings: &[FindingEntry], out: &mut TextWriter) -> io::Result<()> {
        let labels = findings.iter().map(|finding| width(finding.id.name())).max().unwrap_or(0);
        let indent = INDENT + labels + 2;
        findings.iter().try_for_each(|finding| {
            let sentences = finding.claims.iter().chain(&finding.remedy);
            let lines = sentences.flat_map(|text| wrap(text, self.width, indent, indent)).collect();
            self.labelled(finding.id.name(), labels, lines, Tone::Normal, out)
        })
    }

    /// Lines that are indented already, with `label` before the first.
    fn labelled(
        &self,
        label: &str,
        labels: usize,
        lines: Vec<String>,
        tone: Tone,
        out: &mut TextWriter,
    ) -> io::Result<()> {
        for (index, line) in lines.iter().enumerate() {
            let label = pad(if index == 0 { label } else { "" }, labels);
            let text = self.toned(line.trim_start_matches(' '), tone);
            writeln!(out, "{:INDENT$}{label}  {text}", "")?;
        }
        Ok(())
    }

    fn toned(&self, text: &str, tone: Tone) -> String {
        match tone {
            Tone::Normal => text.to_owned(),
            Tone::Dim => self.style.dim(text),
            Tone::Alarm => self.style.red(text),
        }
    }
}

impl ViewHead {
    /// Program, host and time in one line.
    pub(crate) fn host_line(&self, style: &Style) -> String {
        let started = (self.started_unix_ms > 0).then(|| style.time(self.started_unix_ms, "%Y-%m-%d %H:%M"));
        let parts: Vec<&str> = self.host.iter().map(String::as_str).chain(started.as_deref()).collect();
        parts.join(", ")
    }
}
