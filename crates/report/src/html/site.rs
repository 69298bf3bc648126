//! Pages of a history that is served: lists, reports with what can be done with them, comparisons, trends, and runs that go on.
//!
//! They are the pages of reports in another shell: sections come from the same views through the same renderer. A page works without
//! scripts, but for charts and for following a run. Links lead to places of the same server.

mod forms;
mod run;
mod runs;
mod trend;

use std::fmt::Write as _;

use super::{PageBody, SCRIPT, STYLE, Shell, policy};
use crate::Style;
use crate::view::View;
use crate::xml::escaped;

use super::writer::HtmlWriter;
pub use run::ServedRun;
pub use runs::RunList;
pub use trend::TrendPage;

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
        let lead = format!(
            "<section class=\"about\" aria-label=\"About this comparison\"><p>{}</p>\n\
             <p class=\"actions\"><a href=\"/compare.html?{query}\" download>HTML file</a></p></section>\n",
            links.collect::<Vec<_>>().join(", ")
        );
        self.page("Comparison", &lead, body)
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
            footer: "Served by fathom. This page loads nothing from elsewhere.",
        };
        SitePage { html: shell.render(body), policy: policy(&STYLES, scripts, POLICY) }
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
