//! The text of a source as a program printed it: what web pages and translations put in place of plain characters is put back.
//! Lines keep their numbers.

use std::borrow::Cow;

/// Entities of HTML, and what they stand for.
const ENTITIES: &[(&str, &str)] = &[
    ("&nbsp;", " "),
    ("&gt;", ">"),
    ("&lt;", "<"),
    ("&quot;", "\""),
    ("&#39;", "'"),
    ("&apos;", "'"),
    ("&micro;", "u"),
    ("&mu;", "u"),
    ("&ndash;", "-"),
    ("&mdash;", "-"),
    ("&#160;", " "),
    ("&amp;", "&"),
];

/// A text with plain characters.
pub(crate) struct SourceText {
    text: String,
    starts: Vec<usize>,
}

impl SourceText {
    /// `text` with plain characters.
    pub fn new(text: &str) -> SourceText {
        SourceText::of_plain(unlisted(plain(text)))
    }

    fn of_plain(text: String) -> SourceText {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        SourceText { text, starts }
    }

    /// The text with an empty line in place of each that `is_left_out`.
    pub fn without(&self, is_left_out: fn(&str) -> bool) -> SourceText {
        let kept = |line| if is_left_out(line) { "" } else { line };
        let lines: Vec<&str> = self.text.split('\n').map(kept).collect();
        SourceText::of_plain(lines.join("\n"))
    }

    /// The text without a number that its end may have cut: the value of a field whose line does not end.
    pub fn without_cut_number(&self) -> SourceText {
        let rest = self.text.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
        let number = &self.text[rest.len()..];
        // Two decimals are all that is printed.
        let is_whole = number.rsplit_once('.').is_some_and(|(_, decimals)| decimals.len() >= 2);
        let before = rest.trim_end_matches(' ');
        let is_value = before.ends_with('=') || before.ends_with("=[");
        let is_cut = !number.is_empty() && is_value && !is_whole;
        SourceText::of_plain(if is_cut { rest } else { &self.text }.to_owned())
    }

    /// All of it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number of the line at a byte, from 1.
    pub fn line_of(&self, at: usize) -> u64 {
        self.starts.partition_point(|&start| start <= at) as u64
    }

    /// Lines by their numbers, from 1, the last one included.
    pub fn lines(&self, from: u64, to: u64) -> &str {
        let start = |index: u64| self.starts.get(index as usize).copied().unwrap_or(self.text.len());
        &self.text[start(from - 1)..start(to)]
    }

    /// The line at a byte.
    pub fn line_at(&self, at: usize) -> &str {
        let index = self.starts.partition_point(|&start| start <= at).saturating_sub(1);
        self.text[self.starts[index]..].lines().next().unwrap_or_default()
    }
}

/// `text` with plain characters: blanks, dashes, the micro sign, quotes and entities of HTML.
fn plain(text: &str) -> String {
    let mut entities = Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text));
    for (entity, character) in ENTITIES {
        if entities.contains(entity) {
            entities = entities.replace(entity, character).into();
        }
    }
    let mut out = String::with_capacity(entities.len());
    let mut characters = entities.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            // A line of progress ends in a carriage return alone.
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' => out.push(' '),
            '\n' | '\t' => out.push(character),
            '\u{00ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' => {}
            '\u{2028}' | '\u{2029}' | '\u{0085}' => out.push(' '),
            '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => out.push('-'),
            'µ' | 'μ' => out.push('u'),
            '\u{2018}' | '\u{2019}' => out.push('\''),
            '\u{201c}' | '\u{201d}' => out.push('"'),
            // Full-width forms of a page in Chinese or Japanese.
            '\u{ff01}'..='\u{ff5e}' => out.extend(char::from_u32(u32::from(character) - 0xfee0)),
            space if space.is_whitespace() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

/// Numbered lines in a row from which on they are a listing.
const LISTED: usize = 4;
/// Most marks of quotations in front of a line.
const MAX_QUOTATIONS: usize = 8;

/// `text` without the marks of quotations, `> `, in front of outputs and tables, and the numbers of lines, `12 | `. Quoted prose
/// keeps its marks: it is somebody else's.
fn unlisted(text: String) -> String {
    if !text.split('\n').any(|line| line.starts_with('>') || numbered(line).is_some()) {
        return text;
    }
    let mut lines: Vec<&str> = text.split('\n').collect();
    let is_output = |line: &str| line.contains(['=', '|']) || line.contains(": ");
    let unquoted = |line, _| Some((0, quoted(line)?));
    // A quotation of a quotation has two marks.
    for _ in 0..MAX_QUOTATIONS {
        if !strip(&mut lines, unquoted, |rests| rests.iter().any(|line| is_output(line))) {
            break;
        }
    }
    let unnumbered = |line, before: Option<u64>| {
        let (number, rest) = numbered(line)?;
        before.is_none_or(|before| number == before + 1).then_some((number, rest))
    };
    strip(&mut lines, unnumbered, |rests| rests.len() >= LISTED);
    lines.join("\n")
}

/// What stands behind the mark of a quotation.
fn quoted(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('>')?;
    (rest.is_empty() || rest.starts_with([' ', '>', '|'])).then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

/// Takes away what `mark` finds in front of each of several lines in a row, a number before the rest of the line, if the rests are
/// `wanted`; true if there were some.
fn strip<'a>(
    lines: &mut [&'a str],
    mark: impl Fn(&'a str, Option<u64>) -> Option<(u64, &'a str)>,
    wanted: impl Fn(&[&'a str]) -> bool,
) -> bool {
    let (mut from, mut has_any) = (0, false);
    while from < lines.len() {
        let mut before = None;
        let marked = lines[from..].iter().map_while(|line| {
            let (number, rest) = mark(line, before)?;
            before = Some(number);
            Some(rest)
        });
        let rests: Vec<&str> = marked.collect();
        let count = rests.len();
        if count > 0 && wanted(&rests) {
            lines[from..from + count].copy_from_slice(&rests);
            has_any = true;
        }
        from += count.max(1);
    }
    has_any
}

/// The number of a line in a listing, and the line: `  5 |   read: IOPS=6842`.
fn numbered(line: &str) -> Option<(u64, &str)> {
    let line = line.trim_start();
    let end = line.find(|sign: char| !sign.is_ascii_digit())?;
    let rest = line[end..].trim_start().strip_prefix(['|', ':'])?;
    Some((line[..end].parse().ok()?, rest.strip_prefix(' ').unwrap_or(rest)))
}

/// `text` without the sequences that colour a terminal, or move in it.
pub(crate) fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains(ESCAPE) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split(ESCAPE);
    let mut out = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| out.push_str(behind_escape(part)));
    out.into()
}

const ESCAPE: char = '\u{1b}';

/// What follows an escape sequence, of which `text` has all but the first character.
fn behind_escape(text: &str) -> &str {
    let from = |at: Option<usize>| at.map_or("", |at| &text[at..]);
    match text.chars().next() {
        // Parameters, and a letter that ends them; a line that ends before is left alone.
        Some('[') => {
            let end = text[1..].find(|sign: char| !matches!(sign, ' '..='?')).map(|at| at + 1);
            let is_letter = end.is_some_and(|end| text[end..].starts_with(|sign| matches!(sign, '@'..='~')));
            from(end.map(|end| end + usize::from(is_letter)))
        }
        // The title of a window, up to a bell or the next escape.
        Some(']') => from(text.find('\u{7}').map(|at| at + 1)),
        Some('(' | ')') => from(text.char_indices().nth(2).map(|(at, _)| at)),
        Some(sign) if sign.is_ascii_graphic() => &text[1..],
        _ => text,
    }
}

/// A part of a text for a list: one line of at most 120 characters.
pub(crate) fn excerpt(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_pages_become_plain_and_lines_stay() {
        let source = SourceText::new("\u{feff}a\u{a0}— b\r\n&gt;=64&nbsp;µs\n\u{ff1a}x");
        assert_eq!(source.as_str(), "a - b\n>=64 us\n:x");
        assert_eq!((source.line_of(0), source.line_of(7), source.line_at(8)), (1, 2, ">=64 us"));
    }

    #[test]
    fn marks_in_front_of_lines_are_no_text() {
        let text = |lines: &[&str], mark: &dyn Fn(usize) -> String| -> String {
            lines.iter().enumerate().map(|(at, line)| format!("{}{line}\n", mark(at))).collect()
        };
        let lines = ["a: (g=0)", "  read: IOPS=5", "     | 90.00th=[  190]", "", "1: x"];
        let plain = text(&lines, &|_| String::new());
        for mark in
            [&|_| "> ".to_owned() as String, &|at| format!(" {} | ", at + 9)] as [&dyn Fn(usize) -> String; 2]
        {
            assert_eq!(SourceText::new(&text(&lines, mark)).as_str(), plain);
        }
        assert_eq!(SourceText::new("> > | A | 5 |\nb").as_str(), "| A | 5 |\nb");
        for text in ["> a\n> b\n> c\n> d\ne\n", "1: a\n2: b\n4: c\n5: d\n", ">a=1\n>b\n"] {
            assert_eq!(SourceText::new(text).as_str(), text);
        }
    }

    #[test]
    fn colours_of_a_terminal_are_no_text() {
        let text =
            "\u{1b}]0;title\u{7}\u{1b}[1;32m  read\u{1b}[0m: IOPS=\u{1b}[31m6842\u{1b}[K\u{1b}(B, x\u{1b}[";
        assert_eq!(without_escapes(text), "  read: IOPS=6842, x");
        assert_eq!(without_escapes("a\u{1b}[3\nb\u{1b}"), "a\nb");
        assert_eq!(without_escapes("a"), "a");
    }

    #[test]
    fn a_number_at_the_end_of_a_text_may_be_cut() {
        for (text, rest) in [
            ("IOPS=68", "IOPS="),
            ("min=8, avg= 14.", "min=8, avg= "),
            ("99.00th=[  40", "99.00th=[  "),
            ("IOPS=68\n", "IOPS=68\n"),
            ("avg=1, stdev=40.30", "avg=1, stdev=40.30"),
            ("util=99.57%", "util=99.57%"),
            ("| A | 3000", "| A | 3000"),
        ] {
            assert_eq!(SourceText::new(text).without_cut_number().as_str(), rest);
        }
    }
}
