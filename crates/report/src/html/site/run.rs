//! The report of one run, with its tags and notes and what can be done with it.

use fathom_record::HistoryRow;

use super::super::PageBody;
use super::super::writer::HtmlWriter;
use super::{Site, SitePage, query_escaped, run_path};

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
        self.page(&format!("Run {}: {}", row.id, body.title), &out.finish(), body)
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
