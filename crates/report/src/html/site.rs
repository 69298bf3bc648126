//! Pages of a history that is served: lists, reports with what can be done with them, comparisons, trends, and runs that go on.
//!
//! They are the pages of reports in another shell: sections come from the same views through the same renderer. A page works without
//! scripts, but for charts and for following a run. Links lead to places of the same server.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fathom_record::{ActivityKind, HistoryRow, TestStatus};

use super::{HtmlWriter, PageBody, SCRIPT, STYLE, Shell, policy, write_table};
use crate::view::{Block, Table, View};
use crate::xml::escaped;
use crate::{Style, history};

const SITE_STYLE: &str = include_str!("site/site.css");
const FOLLOW_SCRIPT: &str = include_str!("site/follow.js");
const POLICY: &str = "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// What the pages of a server have in common.
#[derive(Clone, Debug)]
pub struct Site {
    /// How figures and times are shown.
    pub style: Style,
    /// Runs may be tagged, noted and removed.
    pub can_write: bool,
}

/// A page, and the content security policy that it is sent with.
#[derive(Clone, Debug, Default)]
pub struct SitePage {
    /// The page.
    pub html: String,
    /// The policy.
    pub policy: String,
}

/// What a form was sent with: names and values.
#[derive(Clone, Debug, Default)]
pub struct FormValues(pub Vec<(String, String)>);

impl FormValues {
    /// The first value of `name` that is not blank, without blanks around it; empty where there is none.
    pub fn get(&self, name: &str) -> &str {
        let mut found = self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.trim());
        found.find(|value| !value.is_empty()).unwrap_or("")
    }

    /// All values of `name` that are not blank.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }
}

/// `text` as a value in a query.
pub fn query_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => escaped.push(char::from(byte)),
            byte => write!(escaped, "%{byte:02X}").unwrap_or_default(),
        }
    }
    escaped
}

/// Where the report of a run is.
pub fn run_path(run: u64) -> String {
    format!("/runs/{run}")
}

impl Site {
    /// The sections of a report, with links to runs.
    pub fn body(&self, view: &View) -> PageBody {
        PageBody::written(view, &self.style, HtmlWriter { links_runs: true, ..HtmlWriter::default() })
    }

    /// The comparison of `runs`.
    pub fn comparison(&self, body: &PageBody, runs: &[u64]) -> SitePage {
        let links = runs.iter().map(|run| format!("<a href=\"{}\">run {run}</a>", run_path(*run)));
        let query = runs.iter().map(|run| format!("run={run}")).collect::<Vec<_>>().join("&amp;");
        let about = format!(
            "<section class=\"about\" aria-label=\"About this comparison\"><p>{}</p>\n\
             <p class=\"actions\"><a href=\"/compare.html?{query}\" download>HTML file</a></p></section>\n",
            links.collect::<Vec<_>>().join(", ")
        );
        SiteShell { heading: "Comparison", tail: &about, ..SiteShell::default() }.render(body)
    }

    /// The page on which `run` is followed until it ends.
    pub fn follow(&self, run: u64) -> SitePage {
        let report = run_path(run);
        let lead = format!(
            "<section class=\"about\" aria-label=\"About this run\"><p id=\"state\" role=\"status\">Waiting for figures.</p>\n\
             <p class=\"actions\"><a href=\"{report}\">Report so far</a></p>\n\
             <noscript><p>Following a run needs scripts; the report so far does not.</p></noscript></section>\n\
             <div id=\"live\" data-events=\"{report}/events\"></div>\n"
        );
        let heading = format!("Run {run} is running");
        let shell = SiteShell { heading: &heading, lead: &lead, follows: true, ..SiteShell::default() };
        shell.render(&PageBody::default())
    }

    /// The sections of a run that goes on, for its page.
    pub fn live_sections(&self, view: &View) -> String {
        let out = HtmlWriter { needs_scripts: true, ..HtmlWriter::default() };
        PageBody::written(view, &self.style, out).sections
    }

    /// The page on which a token is entered; it leads to `next` afterwards.
    pub fn sign_in(&self, next: &str, error: Option<&str>) -> SitePage {
        let mut lead = HtmlWriter::default();
        lead.raw("<section aria-label=\"Sign in\">\n");
        if let Some(error) = error {
            lead.element("p", &[("class", "alarm"), ("role", "alert")], error);
        }
        lead.raw("<form method=\"post\" action=\"/login\" class=\"fields\">\n");
        lead.open("input", &[("type", "hidden"), ("name", "next"), ("value", next)]);
        lead.raw(
            "<label>Token <input type=\"password\" name=\"token\" required autocomplete=\"current-password\"></label>\n\
             <button type=\"submit\">Sign in</button>\n</form>\n\
             <p class=\"note\">`fathom serve` prints the token and a link that signs in.</p>\n</section>\n",
        );
        self.page("Sign in", &lead.finish(), &PageBody::default())
    }

    /// A page that leads to `next` at once. A browser that came from another site sends its cookie there, and not here.
    pub fn forward(&self, next: &str) -> SitePage {
        let next = escaped(next);
        let lead = format!("<section><p><a href=\"{next}\">Go on</a></p></section>\n");
        let head = format!("<meta http-equiv=\"refresh\" content=\"0; url={next}\">\n");
        let shell = SiteShell { heading: "Continue", lead: &lead, head: &head, ..SiteShell::default() };
        shell.render(&PageBody::default())
    }

    /// A page of one message.
    pub fn message(&self, title: &str, paragraphs: &[&str]) -> SitePage {
        let mut lead = HtmlWriter::default();
        lead.raw("<section>\n");
        paragraphs.iter().for_each(|text| lead.element("p", &[], text));
        lead.raw("</section>\n");
        self.page(title, &lead.finish(), &PageBody::default())
    }

    /// The report of a run for who may see nothing else.
    pub fn shared(&self, body: &PageBody) -> SitePage {
        SiteShell { heading: &body.title, is_alone: true, ..SiteShell::default() }.render(body)
    }

    fn page(&self, heading: &str, lead: &str, body: &PageBody) -> SitePage {
        SiteShell { heading, lead, ..SiteShell::default() }.render(body)
    }
}

/// What a page has around its sections.
#[derive(Default)]
struct SiteShell<'a> {
    heading: &'a str,
    /// Markup before the sections.
    lead: &'a str,
    /// Markup behind them.
    tail: &'a str,
    /// Markup of its head.
    head: &'a str,
    /// It follows a run.
    follows: bool,
    /// It leads to no other page.
    is_alone: bool,
}

impl SiteShell<'_> {
    fn render(&self, body: &PageBody) -> SitePage {
        const STYLES: [&str; 2] = [STYLE, SITE_STYLE];
        const BAR: &str = "<div class=\"site\" role=\"navigation\" aria-label=\"Site\"><a href=\"/\">Runs</a> \
            <a href=\"/trend\">Trends</a></div>\n";
        let scripts = if self.follows { &[SCRIPT, FOLLOW_SCRIPT][..] } else { &[SCRIPT] };
        let shell = Shell {
            title: &format!("{}: fathom", self.heading),
            head: &format!("<meta name=\"referrer\" content=\"same-origin\">\n{}", self.head),
            styles: &STYLES,
            scripts,
            bar: if self.is_alone { "" } else { BAR },
            heading: self.heading,
            host: &body.host,
            lead: self.lead,
            tail: self.tail,
            footer: "Served by fathom. This page loads nothing from elsewhere.",
        };
        SitePage { html: shell.render(body), policy: policy(&STYLES, scripts, POLICY) }
    }
}

/// A field of text, with its label.
struct TextField {
    name: &'static str,
    label: &'static str,
    /// An example of what is to be entered; may be empty.
    example: &'static str,
}

impl TextField {
    fn write(&self, values: &FormValues, out: &mut HtmlWriter) {
        out.raw("<label>");
        out.text(self.label);
        out.raw(" ");
        let (name, value) = (("name", self.name), ("value", values.get(self.name)));
        out.open("input", &[("type", "text"), name, value, ("placeholder", self.example)]);
        out.close("label");
    }
}

/// A choice of words, with its label; the empty one is first where `any` names it.
fn choice(
    name: &str,
    label: &str,
    any: Option<&str>,
    words: &[&str],
    values: &FormValues,
    out: &mut HtmlWriter,
) {
    out.raw("<label>");
    out.text(label);
    out.raw(" ");
    out.open("select", &[("name", name)]);
    let chosen = values.get(name);
    let option = |value: &str, text: &str, out: &mut HtmlWriter| {
        let attributes = [("value", value), ("selected", "")];
        out.element("option", if value == chosen { &attributes[..] } else { &attributes[..1] }, text);
    };
    any.iter().for_each(|any| option("", any, out));
    words.iter().for_each(|word| option(word, word, out));
    out.close("select");
    out.close("label");
}

/// Why what was entered is refused.
fn refusal(error: Option<&str>, out: &mut HtmlWriter) {
    if let Some(error) = error {
        out.element("p", &[("class", "alarm"), ("role", "alert")], error);
    }
}

/// A run that is shown.
#[derive(Clone, Copy, Debug)]
pub struct ServedRun<'a> {
    /// What the list says of it.
    pub row: &'a HistoryRow,
    /// It goes on.
    pub is_running: bool,
    /// Where others see its report, and nothing else, without a token.
    pub shared: Option<&'a str>,
}

/// Endings of the files that a report can be had as, and their names.
const FILES: [(&str, &str); 4] =
    [("html", "HTML file"), ("md", "Markdown"), ("csv", "CSV"), ("json", "JSON")];

impl Site {
    /// The report of `run`, whose sections are `body`.
    pub fn run(&self, body: &PageBody, run: &ServedRun<'_>) -> SitePage {
        let row = run.row;
        let path = run_path(row.id);
        let mut out = HtmlWriter::default();
        out.raw("<section class=\"about\" aria-label=\"About this run\">\n<p>");
        out.text(&format!("Run {}: {}, {}. ", row.id, row.kind.name(), row.status.name()));
        if run.is_running {
            out.link(&format!("{path}/follow"), "Running: follow it");
        }
        out.raw("</p>\n");
        self.tags(run, &path, &mut out);
        self.notes(run, &path, &mut out);
        out.raw("<p class=\"actions\">");
        for (ending, name) in FILES {
            out.element("a", &[("href", &format!("{path}/report.{ending}")), ("download", "")], name);
        }
        run.shared.iter().for_each(|shared| out.link(shared, "Share this report"));
        out.link(&format!("/?target={}", query_escaped(&row.target)), "Runs of this target");
        if self.can_write {
            out.link(&format!("{path}/remove"), "Remove this run");
        }
        out.raw("</p>\n</section>\n");
        let (heading, about) = (format!("Run {}: {}", row.id, body.title), out.finish());
        SiteShell { heading: &heading, tail: &about, ..SiteShell::default() }.render(body)
    }

    fn tags(&self, run: &ServedRun<'_>, path: &str, out: &mut HtmlWriter) {
        if run.row.tags.is_empty() && !self.can_write {
            return;
        }
        out.raw("<div class=\"marks\"><span>Tags</span>\n");
        for tag in &run.row.tags {
            let found = format!("/?tag={}", query_escaped(tag));
            if !self.can_write {
                out.link(&found, tag);
                continue;
            }
            out.open("form", &[("method", "post"), ("action", &format!("{path}/untag"))]);
            out.link(&found, tag);
            out.open("input", &[("type", "hidden"), ("name", "tag"), ("value", tag)]);
            let label = format!("Remove the tag {tag}");
            out.element("button", &[("type", "submit"), ("aria-label", &label)], "×");
            out.close("form");
        }
        if self.can_write {
            out.open("form", &[("method", "post"), ("action", &format!("{path}/tag"))]);
            out.raw("<input type=\"text\" name=\"tag\" required aria-label=\"New tag\">");
            out.element("button", &[("type", "submit")], "Add tag");
            out.close("form");
        }
        out.close("div");
    }

    fn notes(&self, run: &ServedRun<'_>, path: &str, out: &mut HtmlWriter) {
        if !run.row.notes.is_empty() {
            out.raw("<ul>\n");
            run.row.notes.iter().for_each(|note| out.element("li", &[], note));
            out.close("ul");
        }
        if !self.can_write {
            return;
        }
        out.raw("<div class=\"marks\">");
        out.open("form", &[("method", "post"), ("action", &format!("{path}/note"))]);
        out.raw("<input type=\"text\" name=\"text\" required aria-label=\"New note\">");
        out.element("button", &[("type", "submit")], "Add note");
        out.close("form");
        if !run.row.notes.is_empty() {
            out.open("form", &[("method", "post"), ("action", &format!("{path}/remove-notes"))]);
            out.element("button", &[("type", "submit")], "Remove all notes");
            out.close("form");
        }
        out.close("div");
    }

    /// The page that asks whether `run` is to be removed.
    pub fn removal(&self, run: &ServedRun<'_>) -> SitePage {
        let path = run_path(run.row.id);
        let mut out = HtmlWriter::default();
        out.raw("<section>\n");
        let date = history_date(run.row, &self.style);
        let target = &run.row.target;
        let question = format!("Remove the run of {target}{date} permanently? It cannot be restored.");
        out.element("p", &[], &question);
        out.open("form", &[("method", "post"), ("action", &format!("{path}/remove")), ("class", "fields")]);
        out.element("button", &[("type", "submit")], &format!("Remove run {}", run.row.id));
        out.link(&path, "Keep it");
        out.close("form");
        out.raw("</section>\n");
        self.page(&format!("Remove run {}", run.row.id), &out.finish(), &PageBody::default())
    }
}

fn history_date(row: &HistoryRow, style: &crate::Style) -> String {
    match row.dated_unix_ms() {
        0 => String::new(),
        ms => style.time(ms, " of %Y-%m-%d %H:%M"),
    }
}

/// What a list of runs shows.
#[derive(Clone, Debug)]
pub struct RunList<'a> {
    /// The runs, newest first.
    pub rows: &'a [HistoryRow],
    /// What is said where there is none.
    pub none: &'a str,
    /// The numbers of those that go on.
    pub running: &'a BTreeSet<u64>,
    /// What was searched for.
    pub values: &'a FormValues,
    /// Why that cannot be searched for.
    pub error: Option<&'a str>,
    /// Where older ones are listed.
    pub older: Option<String>,
    /// Where newer ones are listed.
    pub newer: Option<String>,
}

/// Fields that few searches need.
const MORE_FIELDS: [TextField; 9] = [
    TextField { name: "target", label: "Target", example: "/mnt/data" },
    TextField { name: "host", label: "Host", example: "" },
    TextField { name: "device", label: "Device", example: "serial number or part of it" },
    TextField { name: "type", label: "Volume type", example: "aws-gp3" },
    TextField { name: "tag", label: "Tag", example: "" },
    TextField { name: "label", label: "Label", example: "NAME=VALUE" },
    TextField { name: "test", label: "Test", example: "rand-read" },
    TextField { name: "since", label: "Since", example: "2026-11-01 or 7d" },
    TextField { name: "until", label: "Until", example: "2026-11-08" },
];
const TEXT: TextField = TextField { name: "text", label: "Text", example: "target, tag, note, host" };

impl Site {
    /// The list of runs.
    pub fn runs(&self, list: &RunList<'_>) -> SitePage {
        let mut out = HtmlWriter::default();
        search(list, &mut out);
        out.raw("<section aria-label=\"Runs\">\n<form method=\"get\" action=\"/compare\">\n");
        let view = history::view(list.rows, list.none, &self.style);
        for block in view.sections.iter().flat_map(|section| &section.blocks) {
            match block {
                Block::Table(table) => self::table(table, list, &mut out),
                Block::Notes(notes) => {
                    notes.iter().for_each(|note| out.element("p", &[("class", "note")], note))
                }
                _ => {}
            }
        }
        if list.rows.len() > 1 {
            out.raw("<p class=\"actions\"><button type=\"submit\">Compare the selected runs</button></p>\n");
        }
        out.raw("</form>\n<p class=\"actions\">");
        let links = [("Newer runs", &list.newer), ("Older runs", &list.older)];
        links.iter().for_each(|(text, to)| to.iter().for_each(|to| out.link(to, text)));
        out.raw("</p>\n</section>\n");
        self.page("Runs", &out.finish(), &PageBody::default())
    }
}

fn search(list: &RunList<'_>, out: &mut HtmlWriter) {
    out.raw("<section aria-label=\"Search\">\n");
    refusal(list.error, out);
    out.raw("<form method=\"get\" action=\"/\">\n<div class=\"fields\">\n");
    TEXT.write(list.values, out);
    let kinds = ActivityKind::ALL.map(ActivityKind::name);
    choice("kind", "Command", Some("any"), &kinds, list.values, out);
    let statuses = [TestStatus::Complete, TestStatus::Incomplete, TestStatus::Failed].map(TestStatus::name);
    choice("status", "Status", Some("any"), &statuses, list.values, out);
    out.raw("<button type=\"submit\">Search</button>\n</div>\n");
    let is_used = MORE_FIELDS.iter().any(|field| !list.values.get(field.name).is_empty());
    out.open("details", if is_used { &[("open", "")] } else { &[] });
    out.raw("<summary>More fields</summary>\n<div class=\"fields\">\n");
    MORE_FIELDS.iter().for_each(|field| field.write(list.values, out));
    out.raw("</div>\n</details>\n</form>\n</section>\n");
}

fn table(table: &Table, list: &RunList<'_>, out: &mut HtmlWriter) {
    let head = |place: usize, number: &str, out: &mut HtmlWriter| {
        let label = format!("Select run {number}");
        out.open(
            "input",
            &[("type", "checkbox"), ("name", "run"), ("value", number), ("aria-label", &label)],
        );
        let run = list.rows.get(place).map_or(0, |row| row.id);
        out.link(&run_path(run), number);
        if list.running.contains(&run) {
            let label = format!("Follow run {number}");
            let to = format!("{}/follow", run_path(run));
            out.element("a", &[("href", &to), ("class", "running"), ("aria-label", &label)], "running");
        }
    };
    write_table(table, "Runs", Some(&head), out);
}

/// What the page of a trend shows.
#[derive(Clone, Copy, Debug)]
pub struct TrendPage<'a> {
    /// What was asked for.
    pub values: &'a FormValues,
    /// Why that cannot be shown.
    pub error: Option<&'a str>,
    /// The trend, once it was asked for.
    pub body: Option<&'a PageBody>,
}

const METRIC: TextField =
    TextField { name: "metric", label: "Metric", example: "rand-read.read.iops or p99" };
const FILTERS: [TextField; 7] = [
    TextField { name: "test", label: "Test", example: "rand-read" },
    TextField { name: "target", label: "Target", example: "/mnt/data" },
    TextField { name: "host", label: "Host", example: "" },
    TextField { name: "device", label: "Device", example: "" },
    TextField { name: "tag", label: "Tag", example: "" },
    TextField { name: "since", label: "Since", example: "2026-11-01 or 30d" },
    TextField { name: "until", label: "Until", example: "" },
];
/// What runs can be grouped by, besides labels.
const GROUPS: [&str; 5] = ["target", "device", "host", "type", "hour"];

impl Site {
    /// The page of a trend.
    pub fn trend(&self, page: &TrendPage<'_>) -> SitePage {
        let mut out = HtmlWriter::default();
        out.raw("<section aria-label=\"Metric and runs\">\n");
        refusal(page.error, &mut out);
        out.raw("<form method=\"get\" action=\"/trend\" class=\"fields\">\n");
        METRIC.write(page.values, &mut out);
        choice("by", "Series by", None, &GROUPS, page.values, &mut out);
        FILTERS.iter().for_each(|field| field.write(page.values, &mut out));
        out.raw("<button type=\"submit\">Show the trend</button>\n</form>\n");
        out.element("p", &[("class", "note")], "A metric may name its test, as in rand-read.p99.");
        out.raw("</section>\n");
        let nothing = PageBody::default();
        self.page("Trends", &out.finish(), page.body.unwrap_or(&nothing))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fathom_record::HistoryRow;

    use super::*;

    const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}";

    fn site(can_write: bool) -> Site {
        Site { style: Style::default(), can_write }
    }

    fn pages() -> Vec<SitePage> {
        let site = site(true);
        let values = FormValues(vec![("text".to_owned(), HOSTILE.to_owned())]);
        let row = HistoryRow {
            id: 7,
            target: HOSTILE.to_owned(),
            tags: vec![HOSTILE.to_owned()],
            notes: vec![HOSTILE.to_owned()],
            ..HistoryRow::default()
        };
        let running = BTreeSet::from([7]);
        let list = RunList {
            rows: std::slice::from_ref(&row),
            none: HOSTILE,
            running: &running,
            values: &values,
            error: Some(HOSTILE),
            older: Some("/?page=1".to_owned()),
            newer: None,
        };
        let run = ServedRun { row: &row, is_running: true, shared: Some(HOSTILE) };
        let body = site.body(&View::default());
        vec![
            site.runs(&list),
            site.run(&body, &run),
            site.removal(&run),
            site.comparison(&body, &[7, 8]),
            site.trend(&TrendPage { values: &values, error: Some(HOSTILE), body: Some(&body) }),
            site.shared(&body),
            site.follow(7),
            site.sign_in(HOSTILE, Some(HOSTILE)),
            site.forward(HOSTILE),
            site.message(HOSTILE, &[HOSTILE]),
        ]
    }

    #[test]
    fn text_of_others_is_no_markup_and_every_element_is_closed() {
        for SitePage { html, .. } in pages() {
            let ours = [STYLE, SITE_STYLE, SCRIPT, FOLLOW_SCRIPT];
            let text = ours.iter().fold(html, |html, ours| html.replace(ours, ""));
            assert!(!text.contains("<img") && !text.contains("<script>alert"), "{text}");
            assert!(text.chars().all(|c| c == '\n' || !fathom_model::text::is_hidden(c)), "{text}");
            for name in [
                "section", "form", "label", "select", "option", "table", "tr", "td", "th", "div", "ul", "li",
                "p", "details", "button", "a", "h1",
            ] {
                let opened =
                    text.matches(&format!("<{name}>")).count() + text.matches(&format!("<{name} ")).count();
                assert_eq!(opened, text.matches(&format!("</{name}>")).count(), "{name} of {text}");
            }
        }
    }

    #[test]
    fn a_policy_allows_what_is_in_its_page() {
        for SitePage { html, policy } in pages() {
            for (start, end) in [("<style>", "</style>"), ("<script>", "</script>")] {
                for part in html.split(start).skip(1) {
                    let text = part.split(end).next().unwrap();
                    assert!(policy.contains(&super::super::hash(text)), "{start} is not in {policy}");
                }
            }
            assert!(!html.contains(" style=") && !html.contains(" onclick="), "{html}");
            assert!(policy.starts_with("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"));
        }
    }

    #[test]
    fn forms_that_change_runs_are_there_only_where_they_may_be_changed() {
        let row = HistoryRow { id: 7, ..HistoryRow::default() };
        let run = ServedRun { row: &row, is_running: false, shared: None };
        let of = |can_write| site(can_write).run(&PageBody::default(), &run).html;
        assert!(of(true).contains("method=\"post\" action=\"/runs/7/tag\""));
        assert!(!of(false).contains("method=\"post\""));
    }

    #[test]
    fn values_in_queries_have_no_meaning() {
        assert_eq!(query_escaped("a b&c=ü/?"), "a%20b%26c%3D%C3%BC%2F%3F");
        let values = FormValues(vec![("run".into(), " 1".into()), ("run".into(), " ".into())]);
        assert_eq!((values.get("run"), values.all("run").count(), values.get("x")), ("1", 1, ""));
    }
}
