//! The list of runs, with search and selection.

use std::collections::BTreeSet;

use fathom_record::{ActivityKind, HistoryRow, TestStatus};

use super::super::writer::HtmlWriter;
use super::super::{PageBody, blocks};
use super::forms::{TextField, choice, refusal};
use super::{FormValues, Site, SitePage, run_path};
use crate::history;
use crate::view::{Block, Table};

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
    blocks::table(table, "Runs", Some(&head), out);
}
