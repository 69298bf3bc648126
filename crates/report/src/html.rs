//! A view as one HTML page that opens offline: sections, tables, and charts with hover and zoom.
//!
//! The page loads nothing: style and script stand in it, and a policy allows only these two, by their hashes. Text of others
//! cannot become markup. A chart is data beside its place, which the script draws; without scripts it is the picture of
//! [`svg`](crate::formats::svg).

mod chart;
mod front;
pub mod site;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fathom_record::Severity;
use sha2::{Digest, Sha256};

use crate::view::{
    Align, Block, Cell, Column, FindingEntry, HeatMap, KeyFigure, Row, Section, Table, Tone, View,
};
use crate::xml::escaped;
use crate::{Style, page};

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");
/// Of a page that is a file: it loads nothing, and posts to nobody.
const FILE_POLICY: &str = "base-uri 'none'; form-action 'none'";

/// The page.
pub fn render(view: &View, style: &Style) -> String {
    let body = PageBody::of(view, style);
    let policy = policy(&[STYLE], &[SCRIPT], FILE_POLICY);
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n"
    );
    Shell {
        title: &match body.verdict.as_str() {
            "" => format!("{}: fathom report", body.title),
            verdict => format!("{}: {verdict}", body.title),
        },
        head: &head,
        styles: &[STYLE],
        scripts: &[SCRIPT],
        bar: "",
        heading: &body.title,
        host: &body.host,
        lead: "",
        tail: "",
        footer: "Made by fathom. This page loads nothing from anywhere.",
    }
    .render(&body)
}

/// The sections of a page as markup, which may stand in several pages.
#[derive(Clone, Debug, Default)]
pub struct PageBody {
    /// What was measured.
    pub title: String,
    host: String,
    /// The first line of its verdict, which is the heading; empty without a verdict.
    verdict: String,
    sections: String,
}

impl PageBody {
    /// The sections of `view`, with a picture of each chart for readers without scripts.
    pub fn of(view: &View, style: &Style) -> PageBody {
        PageBody::written(view, style, HtmlWriter::default())
    }

    fn written(view: &View, style: &Style, mut out: HtmlWriter) -> PageBody {
        let mut view = view.in_units_of(style).into_owned();
        page::choose_front(&mut view);
        let (title, host) = match &view.head {
            Some(head) => (head.target.join(", "), head.host_line(style)),
            None => ("fathom".to_owned(), String::new()),
        };
        let mut charts = 0;
        front::write(&view, &mut charts, &mut out);
        for (number, section) in view.sections.iter().enumerate() {
            if section.part.is_of(true) {
                write_section(section, number, &mut charts, &mut out);
            }
        }
        let verdict = view.verdict.first().map(|line| format!("{} {}", line.label, line.cell.text));
        PageBody { title, host, verdict: verdict.unwrap_or_default(), sections: out.finish() }
    }
}

/// What stands around the sections of a page.
struct Shell<'a> {
    /// In the tab of the browser.
    title: &'a str,
    /// Markup of its head.
    head: &'a str,
    styles: &'a [&'a str],
    scripts: &'a [&'a str],
    /// Markup above the heading.
    bar: &'a str,
    heading: &'a str,
    host: &'a str,
    /// Markup before the sections.
    lead: &'a str,
    /// Markup behind them.
    tail: &'a str,
    footer: &'a str,
}

impl Shell<'_> {
    fn render(&self, body: &PageBody) -> String {
        let mut out = HtmlWriter::default();
        out.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        out.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        out.raw(self.head);
        out.element("title", &[], self.title);
        self.styles.iter().for_each(|style| out.raw(&format!("<style>{style}</style>\n")));
        out.raw("</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the report</a>\n");
        out.raw(self.bar);
        out.raw("<header>\n<div>\n");
        // The verdict is the heading where there is one.
        let is_heading = body.verdict.is_empty();
        out.element(if is_heading { "h1" } else { "p" }, &[("class", "subject")], self.heading);
        if !self.host.is_empty() {
            out.element("p", &[("class", "host")], self.host);
        }
        out.raw("</div>\n<button type=\"button\" id=\"theme\" hidden>Dark or light</button>\n</header>\n");
        out.raw("<main id=\"main\">\n");
        out.raw(self.lead);
        out.raw(&body.sections);
        out.raw(self.tail);
        out.raw("</main>\n");
        out.raw(&format!("<footer><p>{}</p></footer>\n", self.footer));
        self.scripts.iter().for_each(|script| out.raw(&format!("<script>{script}</script>\n")));
        out.raw("</body>\n</html>\n");
        out.finish()
    }
}

/// A policy that allows these styles and scripts alone, and what `rest` says.
fn policy(styles: &[&str], scripts: &[&str], rest: &str) -> String {
    let hashes =
        |texts: &[&str]| texts.iter().map(|text| format!("'{}'", hash(text))).collect::<Vec<_>>().join(" ");
    format!("default-src 'none'; style-src {}; script-src {}; {rest}", hashes(styles), hashes(scripts))
}

/// What a policy allows a text by.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// What is written so far.
#[derive(Default)]
struct HtmlWriter {
    text: String,
    /// Charts have no picture for readers without scripts.
    needs_scripts: bool,
    /// Numbers of runs in the first column of a table lead to their reports.
    links_runs: bool,
}

impl HtmlWriter {
    /// Markup of ours.
    fn raw(&mut self, markup: &str) {
        self.text.push_str(markup);
    }

    /// Text of anybody.
    fn text(&mut self, text: &str) {
        self.text.push_str(&escaped(text));
    }

    /// A whole element with `text` in it, on a line.
    fn element(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.open(name, attributes);
        self.text(text);
        self.close(name);
    }

    /// A link with `text` in it.
    fn link(&mut self, to: &str, text: &str) {
        self.element("a", &[("href", to)], text);
    }

    /// The start of an element.
    fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.raw("<");
        self.raw(name);
        for (attribute, value) in attributes {
            self.raw(" ");
            self.raw(attribute);
            self.raw("=\"");
            self.text(value);
            self.raw("\"");
        }
        self.raw(">");
    }

    /// The start of a part that is scrolled by itself, also with the keyboard.
    fn open_scrolled(&mut self, label: &str) {
        let attributes = [("class", "scroll"), ("tabindex", "0"), ("role", "group"), ("aria-label", label)];
        self.open("div", &attributes);
    }

    /// Its end.
    fn close(&mut self, name: &str) {
        self.raw("</");
        self.raw(name);
        self.raw(">\n");
    }

    /// All of it.
    fn finish(self) -> String {
        self.text
    }
}

/// Texts of a column that are longer than this may be wrapped.
const LONG_TEXT: usize = 32;
/// Tables of more rows are seen on demand.
const FEW_ROWS: usize = 10;
/// More notes as well.
const FEW_NOTES: usize = 3;
/// A map of more columns or rows is drawn.
const MAX_LINES: usize = 24;

/// Writes a section; `charts` counts those of the page. Long sections without a picture are folded.
fn write_section(section: &Section, number: usize, charts: &mut usize, out: &mut HtmlWriter) {
    out.open("section", &[("id", &format!("s{number}"))]);
    if !section.title.is_empty() {
        out.raw(if is_open(section) { "<details open><summary>" } else { "<details><summary>" });
        out.raw("<h2>");
        out.text(&section.title);
        out.raw("</h2>");
        out.close("summary");
    }
    for block in &section.blocks {
        write_block(block, &section.title, charts, out);
    }
    if !section.title.is_empty() {
        out.close("details");
    }
    out.close("section");
}

fn is_open(section: &Section) -> bool {
    let is_short = |block: &Block| matches!(block, Block::Table(table) if table.rows.len() <= FEW_ROWS);
    let is_picture = |block: &Block| matches!(block, Block::Plots(_) | Block::HeatMaps(_) | Block::Tests(_));
    let is_note = |block: &Block| matches!(block, Block::Notes(notes) if notes.len() <= FEW_NOTES);
    let mut blocks = section.blocks.iter();
    blocks.clone().any(is_picture) || blocks.all(|block| is_short(block) || is_note(block))
}

fn write_block(block: &Block, title: &str, charts: &mut usize, out: &mut HtmlWriter) {
    match block {
        Block::Notes(notes) => match notes.as_slice() {
            [note] => out.element("p", &[], note),
            notes => {
                out.raw("<ul>\n");
                notes.iter().for_each(|note| out.element("li", &[], note));
                out.close("ul");
            }
        },
        Block::KeyFigures(figures) => key_figures(figures, out),
        Block::Findings(entries) => findings(entries, out),
        Block::Table(table) => {
            let is_of_runs = table.columns.first().is_some_and(|column| column.head == "run");
            let head: Option<RowHead<'_>> = if out.links_runs && is_of_runs { Some(&link_run) } else { None };
            write_table(table, title, head, out);
        }
        Block::HeatMaps(maps) => maps.iter().for_each(|map| {
            if map.columns.len().max(map.rows.len()) > MAX_LINES {
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
        Block::Tests(tests) => front::tests(tests, title, charts, out),
        Block::Commands(all) => all.iter().for_each(|(name, text)| command(name, text, out)),
    }
}

fn tone_class(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Normal => None,
        Tone::Dim => Some("dim"),
        Tone::Alarm => Some("alarm"),
    }
}

fn key_figures(figures: &[KeyFigure], out: &mut HtmlWriter) {
    out.raw("<dl class=\"figures\">\n");
    for figure in figures {
        out.element("dt", &[], &figure.label);
        let class = tone_class(figure.tone).map(|class| ("class", class));
        out.element("dd", class.as_slice(), &figure.cell.text);
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
type RowHead<'a> = &'a dyn Fn(usize, &str, &mut HtmlWriter);

fn link_run(_: usize, run: &str, out: &mut HtmlWriter) {
    out.link(&format!("/runs/{run}"), run);
}

/// Writes a table; `row_head` writes the first cell of each row.
fn write_table(table: &Table, title: &str, row_head: Option<RowHead<'_>>, out: &mut HtmlWriter) {
    let label = if title.is_empty() { "Results" } else { title };
    out.open_scrolled(&format!("Table: {label}"));
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
    let classes = [row.begins_group.then_some("group"), tone_class(row.tone)];
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
    out.open_scrolled(&format!("{title}: {label}"));
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

/// A command to copy.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{
        Axis, Block, Cell, Column, HeatMap, KeyFigure, Plot, PlotForm, PlotLimit, PlotPoint, PlotSeries, Row,
        Table, ViewHead,
    };

    const HOSTILE: &str =
        "</script><script>alert(1)</script>\"><img src=x onerror=alert(1)>\u{1b}[2J\u{202e}<!--";

    fn hostile() -> View {
        let head = ViewHead {
            target: vec![HOSTILE.to_owned()],
            host: vec![HOSTILE.to_owned()],
            ..ViewHead::default()
        };
        let mut view = View { head: Some(head), ..View::default() };
        let table = Table::new(
            [Column::left("test"), Column::right("IOPS").takes_remark()],
            [Row { remark: Some(HOSTILE.to_owned()), ..Row::new([HOSTILE]) }],
        );
        let plot = Plot {
            title: HOSTILE.to_owned(),
            form: PlotForm::Lines,
            x: Axis::linear(HOSTILE, |value| value.to_string()),
            y: Axis::linear("IOPS", |value| value.to_string()),
            series: vec![PlotSeries { name: HOSTILE.to_owned(), points: vec![PlotPoint::at(1.0, 2.0)] }],
            limits: vec![PlotLimit { name: HOSTILE.to_owned(), series: 0, y: 2.0 }],
            marks: Vec::new(),
        };
        let map = HeatMap {
            measure: "IOPS",
            across: "time",
            down: "latency",
            columns: vec![HOSTILE.to_owned()],
            rows: vec![(HOSTILE.to_owned(), vec![Some(Cell::count(3)), None])],
            ..HeatMap::default()
        };
        let wide = HeatMap { columns: vec![HOSTILE.to_owned(); 40], ..map.clone() };
        view.push(
            HOSTILE,
            [
                Block::note(HOSTILE),
                Block::Table(table),
                Block::KeyFigures(vec![KeyFigure::new(HOSTILE, HOSTILE)]),
                Block::HeatMaps(vec![map, wide]),
                Block::Plots(vec![plot]),
                Block::Commands(vec![(HOSTILE.to_owned(), HOSTILE.to_owned())]),
            ],
        );
        view
    }

    #[test]
    fn text_of_others_is_no_markup() {
        let page = render(&hostile(), &Style::default());
        let ours = ["<script>\"use strict\"", "<script type=\"application/json\">"];
        let scripts: usize = ours.iter().map(|ours| page.matches(ours).count()).sum();
        assert_eq!(page.matches("<script").count(), scripts, "{page}");
        assert_eq!(page.matches("</script").count(), scripts);
        assert!(!page.contains("<img") && !page.contains("<!--"));
        let text = page.replace([SCRIPT, STYLE].concat().as_str(), "");
        assert!(text.chars().all(|c| c == '\n' || !fathom_model::text::is_hidden(c)));
    }

    #[test]
    fn the_policy_names_what_is_in_the_page() {
        let page = render(&View::default(), &Style::default());
        let between = |start: &str, end: &str| {
            let from = page.find(start).map(|at| at + start.len());
            from.and_then(|from| page[from..].split(end).next()).expect("it is in the page")
        };
        assert!(page.contains(&format!("script-src '{}'", hash(between("<script>", "</script>")))));
        assert!(page.contains(&format!("style-src '{}'", hash(between("<style>", "</style>")))));
        for loaded in [" src=", "url(h", "@import", "http://", "https://"] {
            let rest = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!rest.contains(loaded), "{loaded}");
        }
    }

    #[test]
    fn every_element_is_closed() {
        let page = render(&hostile(), &Style::default());
        for name in [
            "section", "figure", "table", "tr", "td", "th", "div", "ul", "li", "dl", "dt", "dd", "p",
            "noscript",
        ] {
            let opened =
                page.matches(&format!("<{name}>")).count() + page.matches(&format!("<{name} ")).count();
            assert_eq!(opened, page.matches(&format!("</{name}>")).count(), "{name}");
        }
    }
}
