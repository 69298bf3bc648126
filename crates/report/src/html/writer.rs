//! HTML as text.

use crate::xml::escaped;

/// What is written so far.
#[derive(Default)]
pub(super) struct HtmlWriter {
    text: String,
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
