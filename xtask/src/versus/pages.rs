//! The tables: on the terminal, in docs/versus-fio.md and in the README, where they stand between markers. Takes results
//! and answers text; only `MarkedPage` touches files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::measure::MeasuredRow;
use super::rows::{FigureUnit, TableRow};
use super::statistics::{Goal, Summary, summarise};

const BEGIN: &str = "<!-- versus-fio: begin, written by cargo xtask versus-fio -->";
const END: &str = "<!-- versus-fio: end -->";

/// A row and its result.
pub struct RowLine<'a> {
    /// The row.
    pub row: &'a TableRow,
    /// Its result.
    pub measured: &'a MeasuredRow,
}

impl RowLine<'_> {
    fn summary(&self) -> Option<Summary> {
        (!self.measured.rounds.is_empty()).then(|| summarise(&self.measured.rounds))
    }

    /// Whether the goal is met; `None` without a goal or a measurement.
    pub fn is_met(&self) -> Option<bool> {
        self.summary().and_then(|summary| self.row.goal.is_met(&summary))
    }

    /// fathom's figure, the other, the ratio with its spread, the goal, whether it is met.
    fn cells(&self) -> [String; 5] {
        let dash = || "—".to_owned();
        let unit = self.row.unit;
        let summary = self.summary();
        let theirs = summary.and_then(|summary| summary.theirs).map(|theirs| {
            let remark = self.row.remark().map(|remark| format!(" ({remark})")).unwrap_or_default();
            unit.shown(theirs) + &remark
        });
        let ratio = summary
            .and_then(|summary| summary.ratio)
            .map(|ratio| format!("{} ({}..{})", number(ratio.median), number(ratio.min), number(ratio.max)));
        let met = self.is_met().map(|met| if met { "yes" } else { "no" }.to_owned());
        [
            summary.map_or_else(dash, |summary| unit.shown(summary.ours)),
            theirs.unwrap_or_else(dash),
            ratio.unwrap_or_else(dash),
            goal(self.row).unwrap_or_else(dash),
            met.unwrap_or_else(dash),
        ]
    }
}

/// The heads of [`Line::cells`].
const HEADS: [&str; 5] = ["fathom", "fio", "ratio", "goal", "met"];

/// The head of the lines on the terminal.
pub fn terminal_head() -> String {
    terminal("row", &HEADS.map(str::to_owned))
}

/// One line on the terminal.
pub fn terminal_line(line: &RowLine<'_>) -> String {
    terminal(line.row.name, &line.cells())
}

fn terminal(name: &str, [ours, theirs, ratio, goal, met]: &[String; 5]) -> String {
    format!("{name:<14} {ours:>9} {theirs:>22} {ratio:>20} {goal:>10} {met:>4}")
}

/// Every round of a row, for the terminal.
pub fn rounds(line: &RowLine<'_>) -> String {
    let mut text = String::new();
    for (index, round) in line.measured.rounds.iter().enumerate() {
        let unit = line.row.unit;
        let theirs = round.theirs.map(|theirs| unit.shown(theirs)).unwrap_or_default();
        let ratio = round.ratio().map(number).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "    round {:<3} {:>9} {theirs:>12} {ratio:>8}",
            index + 1,
            unit.shown(round.ours)
        );
    }
    text
}

/// The text between the markers of docs/versus-fio.md.
pub fn full(about: &str, lines: &[RowLine<'_>]) -> String {
    let mut text = format!("{about}\n\n| row | what | {} |\n", HEADS.join(" | "));
    text += "|---|---|--:|--:|--:|--:|---|\n";
    for line in lines {
        let _ = writeln!(text, "| {} | {} | {} |", line.row.name, line.row.what, line.cells().join(" | "));
    }
    text += "\n### Command lines\n";
    for line in lines {
        let _ = write!(text, "\n**{}**\n\n", line.row.name);
        if let Some(remark) = &line.measured.remark {
            let _ = write!(text, "{remark}\n\n");
        }
        for command in &line.measured.commands {
            let _ = writeln!(text, "    {command}");
        }
    }
    text
}

/// The text between the markers of the README: the headline rows.
pub fn short(about: &str, lines: &[RowLine<'_>]) -> String {
    let mut text =
        "| same work, side by side | fathom | fio | ratio (spread) |\n|---|--:|--:|--:|\n".to_owned();
    let shown = || lines.iter().filter(|line| line.row.headline);
    for line in shown() {
        let [ours, theirs, ratio, ..] = line.cells();
        let _ = writeln!(text, "| {} | {ours} | {theirs} | {ratio} |", line.row.what);
    }
    let disturbed = shown().any(|line| line.measured.is_disturbed);
    text + "\n" + about + if disturbed { " Something else ran meanwhile.\n" } else { "\n" }
}

impl FigureUnit {
    /// A figure with its unit.
    fn shown(self, value: f64) -> String {
        match self {
            FigureUnit::Million => format!("{value:.3} M"),
            FigureUnit::Nanoseconds => format!("{} ns", number(value)),
            FigureUnit::Milliseconds => format!("{} ms", number(value)),
            FigureUnit::Mebibytes => format!("{} MiB", number(value)),
            FigureUnit::Share => number(value),
        }
    }

    /// A figure that was chosen and not measured: no digits beyond it.
    fn shown_exactly(self, value: f64) -> String {
        match self {
            FigureUnit::Million => format!("{value} M"),
            FigureUnit::Nanoseconds => format!("{value} ns"),
            FigureUnit::Milliseconds => format!("{value} ms"),
            FigureUnit::Mebibytes => format!("{value} MiB"),
            FigureUnit::Share => value.to_string(),
        }
    }
}

/// Three digits, or all before the point.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        magnitude if magnitude < 9.995 => 2,
        magnitude if magnitude < 99.95 => 1,
        _ => 0,
    };
    let shown = format!("{value:.digits$}");
    // A value rounded to 0 has no sign.
    if shown.contains(|c: char| ('1'..='9').contains(&c)) { shown } else { shown.replace('-', "") }
}

fn goal(row: &TableRow) -> Option<String> {
    match row.goal {
        Goal::RatioAtLeast(least) => Some(format!("≥ {least} ×")),
        Goal::RatioAtMost(most) => Some(format!("≤ {most} ×")),
        Goal::Below => Some("< 1 ×".to_owned()),
        Goal::AtMost(most) => Some(format!("≤ {}", row.unit.shown_exactly(most))),
        Goal::AtLeast(least) => Some(format!("≥ {}", row.unit.shown_exactly(least))),
        Goal::Unset => None,
    }
}

/// A page that holds a generated part between markers.
pub struct MarkedPage {
    path: PathBuf,
    before: String,
    after: String,
}

impl MarkedPage {
    /// Reads it. Fails where it has no place for a table, so that this is known before anything was measured.
    pub fn read(root: &Path, name: &str) -> anyhow::Result<MarkedPage> {
        let path = root.join(name);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let Some((before, after)) = around_markers(&text) else {
            bail!("{name} has no place for the table: the lines `{BEGIN}` and `{END}`");
        };
        Ok(MarkedPage { path, before: before.to_owned(), after: after.to_owned() })
    }

    /// Writes it with `part` between its markers.
    pub fn write(&self, part: &str) -> anyhow::Result<()> {
        let text = format!("{}{BEGIN}\n\n{part}\n{END}{}", self.before, self.after);
        std::fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// The text before and after the markers.
fn around_markers(text: &str) -> Option<(&str, &str)> {
    let (before, rest) = text.split_once(BEGIN)?;
    Some((before, rest.split_once(END)?.1))
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
