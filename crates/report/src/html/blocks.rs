//! The blocks of a section, other than charts.

use fathom_record::Severity;

use super::chart;
use super::writer::HtmlWriter;
use crate::view::{Align, Block, Cell, Column, FindingEntry, HeatMap, KeyFigure, Row, Section, Table, Tone};

/// Texts of a column that are longer than this may be wrapped.
const LONG_TEXT: usize = 32;
/// Texts of a tile that are longer than this are written smaller.
const LONG_FIGURE: usize = 16;
/// More commands than this are folded.
const MOST_COMMANDS: usize = 3;
/// A map of more columns or rows is drawn.
const MOST_LINES: usize = 24;

/// Writes a section; `charts` counts those of the page.
pub(super) fn section(section: &Section, number: usize, charts: &mut usize, out: &mut HtmlWriter) {
    out.open("section", &[("id", &format!("s{number}"))]);
    if !section.title.is_empty() {
        out.element("h2", &[], &section.title);
    }
    out.raw("\n");
    for block in &section.blocks {
        self::block(block, &section.title, charts, out);
    }
    out.close("section");
}

fn block(block: &Block, title: &str, charts: &mut usize, out: &mut HtmlWriter) {
    match block {
        Block::Notes(notes) => match notes.as_slice() {
            [note] => out.element("p", &[], note),
            notes => {
                out.raw("<ul>\n");
                notes.iter().for_each(|note| out.element("li", &[], note));
                out.close("ul");
            }
        },
        Block::KeyFigures(figures) if title.ends_with(crate::page::SUMMARY) => tiles(figures, out),
        Block::KeyFigures(figures) => key_figures(figures, out),
        Block::Findings(entries) => findings(entries, out),
        Block::Table(table) => {
            let is_of_runs = table.columns.first().is_some_and(|column| column.head == "run");
            let head: Option<RowHead<'_>> = if out.links_runs && is_of_runs { Some(&link_run) } else { None };
            self::table(table, title, head, out);
        }
        Block::HeatMaps(maps) => maps.iter().for_each(|map| {
            if map.columns.len().max(map.rows.len()) > MOST_LINES {
                out.raw("<div class=\"charts\">\n");
                chart::heat_map(map, charts, out);
                out.close("div");
            } else {
                heat_map(map, title, out);
            }
        }),
        Block::Plots(plots) => {
            out.raw("<div class=\"charts\">\n");
            plots.iter().for_each(|plot| chart::plot(plot, charts, out));
            out.close("div");
        }
        Block::Commands(all) => commands(all, out),
    }
}

fn tone_class(tone: Tone) -> &'static [(&'static str, &'static str)] {
    match tone {
        Tone::Normal => &[],
        Tone::Dim => &[("class", "dim")],
        Tone::Alarm => &[("class", "alarm")],
    }
}

fn tiles(figures: &[KeyFigure], out: &mut HtmlWriter) {
    out.raw("<dl class=\"tiles\">\n");
    for figure in figures {
        let is_long = figure.cell.text.chars().count() > LONG_FIGURE;
        out.open("div", if is_long { &[("class", "long")] } else { &[] });
        out.element("dt", &[], &figure.label);
        out.element("dd", tone_class(figure.tone), &figure.cell.text);
        out.close("div");
    }
    out.close("dl");
}

fn key_figures(figures: &[KeyFigure], out: &mut HtmlWriter) {
    out.raw("<dl class=\"figures\">\n");
    for figure in figures {
        out.element("dt", &[], &figure.label);
        out.element("dd", tone_class(figure.tone), &figure.cell.text);
    }
    out.close("dl");
}

fn findings(entries: &[FindingEntry], out: &mut HtmlWriter) {
    out.raw("<ul class=\"findings\">\n");
    for entry in entries {
        let class = match entry.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        out.open("li", &[("class", class)]);
        out.raw("<p><span class=\"kind\">");
        out.text(entry.id.name());
        out.raw("</span> <span class=\"severity\">");
        out.text(entry.severity.name());
        out.raw("</span></p>\n");
        entry.claims.iter().for_each(|claim| out.element("p", &[], claim));
        entry.remedy.iter().for_each(|remedy| out.element("p", &[("class", "remedy")], remedy));
        out.close("li");
    }
    out.close("ul");
}

/// What is written in place of the head of a row: its place, and the text.
pub(super) type RowHead<'a> = &'a dyn Fn(usize, &str, &mut HtmlWriter);

fn link_run(_: usize, run: &str, out: &mut HtmlWriter) {
    out.link(&format!("/runs/{run}"), run);
}

/// Writes a table; `row_head` writes the first cell of each row.
pub(super) fn table(table: &Table, title: &str, row_head: Option<RowHead<'_>>, out: &mut HtmlWriter) {
    let label = if title.is_empty() { "Results" } else { title };
    out.open(
        "div",
        &[
            ("class", "scroll"),
            ("tabindex", "0"),
            ("role", "group"),
            ("aria-label", &format!("Table: {label}")),
        ],
    );
    out.raw("<table>\n<thead><tr>");
    for column in &table.columns {
        let class = if column.align == Align::Left { "left" } else { "" };
        match column.head {
            "" => out.element("td", &[("class", class)], ""),
            head => out.element("th", &[("scope", "col"), ("class", class)], head),
        }
    }
    out.raw("</tr></thead>\n<tbody>\n");
    let wraps: Vec<bool> = (0..table.columns.len())
        .map(|index| {
            let length = |row: &Row| row.cells.get(index).map_or(0, |cell| cell.text.chars().count());
            table.rows.iter().map(length).max().unwrap_or(0) > LONG_TEXT
        })
        .collect();
    let remarks = table.columns.iter().position(|column| column.takes_remark).unwrap_or(1);
    for (place, row) in table.rows.iter().enumerate() {
        let head = row_head.map(|write| move |text: &str, out: &mut HtmlWriter| write(place, text, out));
        self::row(row, &table.columns, &wraps, remarks, head, out);
    }
    out.raw("</tbody>\n</table>\n");
    out.close("div");
    let legends = table.legends_of(|head| table.columns.iter().any(|column| column.head == head));
    legends.iter().for_each(|legend| out.element("p", &[("class", "legend-note")], legend));
}

/// Writes a row; its remark stands in the column `remarks`.
fn row(
    row: &Row,
    columns: &[Column],
    wraps: &[bool],
    remarks: usize,
    head: Option<impl Fn(&str, &mut HtmlWriter)>,
    out: &mut HtmlWriter,
) {
    let classes = [
        row.begins_group.then_some("group"),
        match row.tone {
            Tone::Normal => None,
            Tone::Dim => Some("dim"),
            Tone::Alarm => Some("alarm"),
        },
    ];
    out.open("tr", &[("class", &classes.into_iter().flatten().collect::<Vec<_>>().join(" "))]);
    for (index, column) in columns.iter().enumerate() {
        let text = row.cells.get(index).map_or("", |cell| cell.text.as_str());
        let remark = row.remark.as_deref().filter(|_| index == remarks);
        let text = [Some(text), remark].into_iter().flatten().filter(|text| !text.is_empty());
        let text = text.collect::<Vec<_>>().join(" ");
        let is_left = column.align == Align::Left || remark.is_some();
        let class = [is_left.then_some("left"), (wraps[index] || remark.is_some()).then_some("wraps")];
        let class = class.into_iter().flatten().collect::<Vec<_>>().join(" ");
        match (index, &head) {
            (0, Some(write)) => {
                out.open("th", &[("scope", "row"), ("class", &class)]);
                write(&text, out);
                out.close("th");
            }
            (0, None) if !text.is_empty() => {
                out.element("th", &[("scope", "row"), ("class", &class)], &text);
            }
            _ => out.element("td", &[("class", &class)], &text),
        }
    }
    out.close("tr");
}

/// A map of few cells as a table whose ground shows the values.
fn heat_map(map: &HeatMap, title: &str, out: &mut HtmlWriter) {
    let label = map.name();
    out.open(
        "div",
        &[
            ("class", "scroll"),
            ("tabindex", "0"),
            ("role", "group"),
            ("aria-label", &format!("{title}: {label}")),
        ],
    );
    out.raw("<table class=\"map\">\n");
    out.element("caption", &[], &label);
    out.raw("<thead><tr><td></td>");
    map.columns.iter().for_each(|column| out.element("th", &[("scope", "col")], column));
    out.raw("</tr></thead>\n<tbody>\n");
    let most = map.most();
    for (name, cells) in &map.rows {
        out.raw("<tr>");
        out.element("th", &[("scope", "row")], name);
        for cell in cells {
            let level =
                cell.as_ref().and_then(Cell::number).map_or(0, |value| (value / most * 5.0).ceil() as usize);
            let class = format!("v{}", level.min(5));
            let text = cell.as_ref().map_or("", |cell| cell.text.as_str());
            out.element("td", &[("class", &class)], text);
        }
        out.close("tr");
    }
    out.raw("</tbody>\n</table>\n");
    out.close("div");
}

/// Commands to copy; many of them are seen on demand.
fn commands(all: &[(String, String)], out: &mut HtmlWriter) {
    let is_folded = all.len() > MOST_COMMANDS;
    if is_folded {
        out.raw("<details class=\"commands\">");
        out.element("summary", &[], &format!("{} commands", all.len()));
    }
    all.iter().for_each(|(name, text)| command(name, text, out));
    if is_folded {
        out.close("details");
    }
}

fn command(name: &str, command: &str, out: &mut HtmlWriter) {
    out.raw("<div class=\"copy\">");
    out.element("span", &[("class", "kind")], name);
    out.open(
        "button",
        &[("type", "button"), ("hidden", ""), ("aria-label", &format!("Copy the command of {name}"))],
    );
    out.text("Copy");
    out.close("button");
    out.close("div");
    out.open("pre", &[("tabindex", "0"), ("role", "group"), ("aria-label", &format!("Command of {name}"))]);
    out.text(command);
    out.close("pre");
}
