//! HTML as text.

use crate::xml::escaped;

/// What is written so far.
#[derive(Default)]
pub(super) struct HtmlWriter {
    pub(super) text: String,
    /// Charts have no picture for readers without scripts.
    pub(super) needs_scripts: bool,
    /// Numbers of runs in the first column of a table lead to their reports.
    pub(super) links_runs: bool,
}

impl HtmlWriter {
    /// Markup of ours.
    pub(super) fn raw(&mut self, markup: &str) {
        self.text.push_str(markup);
    }

    /// Text of anybody.
    pub(super) fn text(&mut self, text: &str) {
        self.text.push_str(&escaped(text));
    }

    /// A whole element with `text` in it, on a line.
    pub(super) fn element(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.open(name, attributes);
        self.text(text);
        self.close(name);
    }

    /// A link with `text` in it.
    pub(super) fn link(&mut self, to: &str, text: &str) {
        self.element("a", &[("href", to)], text);
    }

    /// The start of an element.
    pub(super) fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
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

    /// Its end.
    pub(super) fn close(&mut self, name: &str) {
        self.raw("</");
        self.raw(name);
        self.raw(">\n");
    }

    /// All of it.
    pub(super) fn finish(self) -> String {
        self.text
    }
}
