//! Fields of forms.

use super::super::writer::HtmlWriter;
use super::FormValues;

/// A field of text, with its label.
pub(super) struct TextField {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// An example of what is to be entered; may be empty.
    pub(super) example: &'static str,
}

impl TextField {
    pub(super) fn write(&self, values: &FormValues, out: &mut HtmlWriter) {
        out.raw("<label>");
        out.text(self.label);
        out.raw(" ");
        let (name, value) = (("name", self.name), ("value", values.get(self.name)));
        out.open("input", &[("type", "text"), name, value, ("placeholder", self.example)]);
        out.close("label");
    }
}

/// A choice of words, with its label; the empty one is first where `any` names it.
pub(super) fn choice(
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
pub(super) fn refusal(error: Option<&str>, out: &mut HtmlWriter) {
    if let Some(error) = error {
        out.element("p", &[("class", "alarm"), ("role", "alert")], error);
    }
}
