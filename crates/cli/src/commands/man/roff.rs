//! A page in the language of roff, with the macros of man(7). What is written is escaped: no text of ours is a macro by accident.

use std::fmt::Write as _;

/// A page that is being written.
#[derive(Debug, Default)]
pub struct Roff(String);

/// How a part of a line is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Font {
    /// As it is typed.
    Bold,
    /// What is replaced by a value.
    Italic,
    /// Everything else.
    Roman,
}

/// `text` with what roff would obey as escapes, on one line.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            '\n' => out.push(' '),
            ' '..='\u{7e}' => out.push(letter),
            _ => put(&mut out, format_args!("\\[u{:04X}]", u32::from(letter))),
        }
    }
    out
}

/// Writing into a string cannot fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

/// A line that is no macro, whatever it begins with.
fn line_of(text: &str) -> String {
    let text = escaped(text);
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

impl Roff {
    /// A page of section 1 called `name`, of this `version` of the program.
    pub fn page(name: &str, version: &str) -> Roff {
        Roff(format!(".TH {} 1 \"\" \"{version}\" \"User Commands\"\n", name.to_uppercase()))
    }

    /// The text so far.
    pub fn finish(self) -> String {
        self.0
    }

    /// A heading.
    pub fn section(&mut self, title: &str) {
        put(&mut self.0, format_args!(".SH {}\n", escaped(&title.to_uppercase())));
    }

    /// A heading below another.
    pub fn subsection(&mut self, title: &str) {
        put(&mut self.0, format_args!(".SS {}\n", escaped(title)));
    }

    /// A line of running text.
    pub fn text(&mut self, text: &str) {
        put(&mut self.0, format_args!("{}\n", line_of(text)));
    }

    /// A paragraph of running text.
    pub fn paragraph(&mut self, text: &str) {
        self.0.push_str(".PP\n");
        self.text(text);
    }

    /// A term with its description.
    pub fn item(&mut self, term: &[(Font, &str)], description: &str) {
        self.0.push_str(".TP\n");
        for (font, part) in term {
            let letter = match font {
                Font::Bold => 'B',
                Font::Italic => 'I',
                Font::Roman => 'R',
            };
            put(&mut self.0, format_args!("\\f{letter}{}", escaped(part)));
        }
        self.0.push_str("\\fR\n");
        self.text(if description.is_empty() { "No description." } else { description });
    }

    /// Lines as they are.
    pub fn literal<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        self.0.push_str(".nf\n");
        lines.into_iter().for_each(|line| self.text(line));
        self.0.push_str(".fi\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_obeyed() {
        let check = |text: &str, expected: &str| assert_eq!(line_of(text), expected, "{text}");
        check("plain text", "plain text");
        check("--only a\\b", "\\-\\-only a\\eb");
        check(".SH NO", "\\&.SH NO");
        check("'tis", "\\(aqtis");
        check("a\nb", "a b");
        check("50 µs", "50 \\[u00B5]s");
    }

    #[test]
    fn a_page_has_its_macros() {
        let mut page = Roff::page("fathom-x", "fathom 1");
        page.section("Options");
        page.item(&[(Font::Bold, "--x"), (Font::Roman, " "), (Font::Italic, "N")], "Sets x.");
        page.literal(["  a", "b"]);
        assert_eq!(
            page.finish(),
            ".TH FATHOM-X 1 \"\" \"fathom 1\" \"User Commands\"\n.SH OPTIONS\n.TP\n\\fB\\-\\-x\\fR \\fIN\\fR\nSets x.\n.nf\n  a\nb\n.fi\n"
        );
    }
}
