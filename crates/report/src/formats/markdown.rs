//! GitHub's Markdown, to be pasted into an issue or a chat. Text of others cannot become markup.

use std::io;

use super::text;
use crate::view::{Align, Block, Cell, Column, HeatMap, KeyFigure, Part, Plot, Section, Table, Tone, View};
use crate::{Style, TextWriter};

/// Writes the verdict and all sections; those of a full report are folded unless it is one.
///
/// # Errors
/// Those of `out`.
pub fn render(view: &View, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let (view, out) = (view.in_units_of(style), &mut out.verbatim());
    render_head(&view, style, out)?;
    if !view.verdict.is_empty() {
        if view.head.is_some() {
            writeln!(out)?;
        }
        key_figures(&view.verdict, out)?;
    }
    let (open, folded): (Vec<&Section>, Vec<&Section>) =
        view.parts(true).partition(|section| style.is_full || section.part == Part::Both);
    let is_first = view.head.is_none() && view.verdict.is_empty();
    for (index, section) in open.iter().enumerate() {
        if index > 0 || !is_first {
            writeln!(out)?;
        }
        render_section(section, out)?;
    }
    if folded.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    writeln!(out, "<details><summary>Details</summary>")?;
    for section in folded {
        writeln!(out)?;
        render_section(section, out)?;
    }
    writeln!(out)?;
    writeln!(out, "</details>")
}

fn key_figures(figures: &[KeyFigure], out: &mut TextWriter) -> io::Result<()> {
    figures.iter().try_for_each(|figure| {
        writeln!(out, "- **{}**: {}", escaped(&figure.label), toned(&figure.cell, figure.tone))
    })
}

fn render_head(view: &View, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let Some(head) = &view.head else { return Ok(()) };
    writeln!(out, "# {}", escaped(&head.target.join(", ")))?;
    writeln!(out)?;
    writeln!(out, "{}", escaped(&head.host_line(style)))
}

fn render_section(section: &Section, out: &mut TextWriter) -> io::Result<()> {
    let mut is_apart = true;
    if !section.title.is_empty() {
        writeln!(out, "## {}", escaped(&section.title))?;
        is_apart = false;
    }
    for block in &section.blocks {
        if !std::mem::replace(&mut is_apart, false) {
            writeln!(out)?;
        }
        match block {
            Block::Notes(notes) => notes.iter().try_for_each(|note| writeln!(out, "- {}", escaped(note)))?,
            Block::KeyFigures(figures) => key_figures(figures, out)?,
            Block::Findings(findings) => findings.iter().try_for_each(|finding| {
                let sentences: Vec<&str> =
                    finding.claims.iter().chain(&finding.remedy).map(String::as_str).collect();
                writeln!(
                    out,
                    "- **{}** ({}): {}",
                    finding.id,
                    finding.severity.name(),
                    escaped(&sentences.join(" "))
                )
            })?,
            Block::Table(table) => {
                render_table(table, out)?;
                let legends = table.legends_of(|head| table.columns.iter().any(|column| column.head == head));
                if !legends.is_empty() {
                    writeln!(out)?;
                }
                legends.iter().try_for_each(|legend| writeln!(out, "- {}", escaped(legend)))?;
            }
            Block::HeatMaps(maps) => apart(maps, out, |map, out| render_table(&map_table(map), out))?,
            Block::Plots(plots) => apart(plots, out, |plot, out| fenced("", &plot_lines(plot), out))?,
            Block::Tests(tests) => render_table(&tests.table, out)?,
            Block::Commands(commands) => {
                let lines: Vec<String> = commands
                    .iter()
                    .flat_map(|(name, command)| [format!("# {name}"), command.clone()])
                    .collect();
                fenced("sh", &lines, out)?;
            }
        }
    }
    Ok(())
}

fn apart<T>(
    parts: &[T],
    out: &mut TextWriter,
    render: impl Fn(&T, &mut TextWriter) -> io::Result<()>,
) -> io::Result<()> {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        render(part, out)?;
    }
    Ok(())
}

fn render_table(table: &Table, out: &mut TextWriter) -> io::Result<()> {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    writeln!(out, "{}", line(table.columns.iter().map(|column| escaped(column.head)).collect()))?;
    let rule = |column: &Column| match column.align {
        Align::Left => "---".to_owned(),
        Align::Right => "---:".to_owned(),
    };
    writeln!(out, "{}", line(table.columns.iter().map(rule).collect()))?;
    let first_number = table.columns.iter().position(|column| column.takes_remark).unwrap_or(1);
    for row in &table.rows {
        let mut cells: Vec<String> = row.cells.iter().map(|cell| toned(cell, row.tone)).collect();
        cells.resize(table.columns.len(), String::new());
        if let (Some(remark), Some(cell)) = (&row.remark, cells.get_mut(first_number)) {
            *cell = [cell.as_str(), &escaped(remark)].join(" ").trim_matches(' ').to_owned();
        }
        writeln!(out, "{}", line(cells))?;
    }
    Ok(())
}

fn map_table(map: &HeatMap) -> Table {
    let mut columns = vec![Column::right(map.measure)];
    columns.extend(map.columns.iter().map(|_| Column::right("")));
    let heads = std::iter::once("").chain(map.columns.iter().map(String::as_str));
    let mut table = Table::new(columns, [crate::view::Row::new(heads).toned(Tone::Dim)]);
    table.rows.extend(map.rows.iter().map(|(name, cells)| {
        let cells = cells.iter().map(|cell| cell.clone().unwrap_or_default());
        crate::view::Row::new(std::iter::once(Cell::from(name.as_str())).chain(cells))
    }));
    table
}

/// Columns of a plot.
const PLOT_WIDTH: usize = 100;

fn plot_lines(plot: &Plot) -> Vec<String> {
    text::plot_lines(plot, PLOT_WIDTH)
}

/// Lines that are shown as they are, between fences longer than any in them.
fn fenced(language: &str, lines: &[String], out: &mut TextWriter) -> io::Result<()> {
    let runs = lines.iter().flat_map(|line| line.split(|c| c != '`')).map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    writeln!(out, "{fence}{language}")?;
    lines.iter().try_for_each(|line| writeln!(out, "{}", line.trim_end_matches(' ')))?;
    writeln!(out, "{fence}")
}

fn toned(cell: &Cell, tone: Tone) -> String {
    let text = escaped(&cell.text);
    if tone == Tone::Alarm && !text.is_empty() { format!("**{text}**") } else { text }
}

/// `text` as text: no character of it is markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '#' | '&' | '$' | '!' => {
                out.extend(['\\', c]);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_writer;
    use crate::view::{KeyFigure, Row, ViewHead};

    fn written(view: &View) -> String {
        text_writer::text(|out| render(view, &Style::default(), out)).expect("writing to memory")
    }

    #[test]
    fn tables_figures_and_notes() {
        let columns = [Column::left("test"), Column::right("IOPS").takes_remark()];
        let skipped = Row { remark: Some("skipped".to_owned()), ..Row::new(["b"]) };
        let missed = Row::new(["a".into(), Cell::iops(3000.0)]).toned(Tone::Alarm);
        let mut view = View {
            head: Some(ViewHead { target: vec!["/dev/sdb".to_owned()], ..ViewHead::default() }),
            ..View::default()
        };
        view.push("Tests", [Block::Table(Table::new(columns, [missed, skipped]))]);
        view.push(
            "Limits",
            [Block::KeyFigures(vec![KeyFigure::new("read IOPS", "3,000")]), Block::note("n")],
        );
        assert_eq!(
            written(&view),
            "# /dev/sdb\n\n\n\n## Tests\n\n| test | IOPS |\n| --- | ---: |\n| **a** | **3,000** |\n| b | skipped |\n\n\
             ## Limits\n\n- **read IOPS**: 3,000\n\n- n\n"
        );
    }

    #[test]
    fn text_of_others_is_no_markup() {
        let mut view = View::default();
        view.push("", [Block::note("<script> [x](y) a|b `c` **d**\n# e")]);
        view.push("", [Block::Commands(vec![("t".to_owned(), "fio --name=```".to_owned())])]);
        assert_eq!(
            written(&view),
            "- \\<script\\> \\[x\\](y) a\\|b \\`c\\` \\*\\*d\\*\\* \\# e\n\n````sh\n# t\nfio --name=```\n````\n"
        );
    }
}
