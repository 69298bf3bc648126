//! A view as one HTML page that opens offline: sections, tables, and charts with hover and zoom.
//!
//! The page loads nothing: style and script stand in it, and a policy allows only these two, by their hashes. Text of others
//! cannot become markup. A chart is data beside its place, which the script draws; without scripts it is the picture of
//! [`svg`](crate::formats::svg).

mod blocks;
mod chart;
pub mod site;
mod writer;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

use crate::Style;
use crate::view::{Section, View};
use crate::xml::escaped;
use writer::HtmlWriter;

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
        title: &format!("{}: fathom report", body.title),
        head: &head,
        styles: &[STYLE],
        scripts: &[SCRIPT],
        bar: "",
        heading: &body.title,
        host: &body.host,
        lead: "",
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
    navigation: String,
    sections: String,
}

impl PageBody {
    /// The sections of `view`, with a picture of each chart for readers without scripts.
    pub fn of(view: &View, style: &Style) -> PageBody {
        PageBody::written(view, style, HtmlWriter::default())
    }

    fn written(view: &View, style: &Style, mut out: HtmlWriter) -> PageBody {
        let view = view.in_units_of(style);
        let (title, host) = match &view.head {
            Some(head) => (head.target.join(", "), head.host_line(style)),
            None => ("fathom".to_owned(), String::new()),
        };
        let mut charts = 0;
        for (number, section) in view.sections.iter().enumerate() {
            blocks::section(section, number, &mut charts, &mut out);
        }
        PageBody { title, host, navigation: navigation(&view.sections), sections: out.finish() }
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
        out.element("h1", &[], self.heading);
        if !self.host.is_empty() {
            out.element("p", &[("class", "host")], self.host);
        }
        out.raw("</div>\n<div class=\"tools\"><button type=\"button\" id=\"theme\" hidden>Dark or light</button></div>\n</header>\n");
        out.raw(&body.navigation);
        out.raw("<main id=\"main\">\n");
        out.raw(self.lead);
        out.raw(&body.sections);
        out.raw("</main>\n");
        out.raw(&format!("<footer><p>{}</p></footer>\n", self.footer));
        self.scripts.iter().for_each(|script| out.raw(&format!("<script>{script}</script>\n")));
        out.raw("</body>\n</html>\n");
        out.finish()
    }
}

/// Links to the sections that have a title.
fn navigation(sections: &[Section]) -> String {
    let mut out = String::from("<nav aria-label=\"Sections\">\n<ol>\n");
    for (number, section) in sections.iter().enumerate().filter(|(_, section)| !section.title.is_empty()) {
        out.push_str(&format!("<li><a href=\"#s{number}\">{}</a></li>\n", escaped(&section.title)));
    }
    out.push_str("</ol>\n</nav>\n");
    out
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
