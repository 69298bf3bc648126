//! The language of what users read: string literals of the product, the book and the README. No pattern of stilted English, and in the
//! book no sentence that is too long.

use super::{TidyFinding, Tree};

/// Most words of a sentence in the book.
const MAX_WORDS: usize = 30;
/// Fewest blanks in a literal that is prose.
const MIN_BLANKS: usize = 2;
/// Pages that code writes, and a part of one.
const GENERATED: [&str; 2] = ["fio-compat.md", "published-figures.md"];
const GENERATED_PART: &str = "<!-- versus-fio";

/// Words of which any may stand at a place.
type Place = &'static [&'static str];

/// A sequence of words, and what to write instead.
struct Pattern {
    /// It is one at the beginning of a sentence alone.
    is_at_start: bool,
    words: &'static [Place],
    /// A sequence that goes on with one of these is none.
    unless_next: Place,
    /// A sequence behind one of these is none.
    unless_before: Place,
    advice: &'static str,
}

const fn anywhere(words: &'static [Place], advice: &'static str) -> Pattern {
    Pattern { is_at_start: false, words, unless_next: &[], unless_before: &[], advice }
}

const fn at_start(words: &'static [Place], unless_next: Place, advice: &'static str) -> Pattern {
    Pattern { is_at_start: true, words, unless_next, unless_before: &[], advice }
}

const BE: Place = &["is", "are", "was", "were"];
const PATTERNS: &[Pattern] = &[
    at_start(&[&["where"]], &[], "a condition begins with 'if'"),
    anywhere(
        &[&["where"], &["it", "they", "there", "nothing", "none", "several", "both"]],
        "a condition is 'if'",
    ),
    at_start(&[&["what"]], &["is", "are", "does", "do", "if"], "name the thing instead of 'what ...'"),
    at_start(
        &[&["of"], &["the", "a", "an", "one", "two", "several", "many", "each", "such", "those"]],
        &[],
        "begin with the subject",
    ),
    Pattern {
        unless_next: &["longer"],
        unless_before: &["there"],
        ..anywhere(&[BE, &["no"]], "say what it is, not 'is no ...'")
    },
    Pattern { unless_before: &["there"], ..anywhere(&[BE, &["none"]], "say what it is, not 'is none'") },
    anywhere(&[&["has", "have"], &["none"]], "say what is missing, not 'has none'"),
    anywhere(&[&["excuse", "excuses", "lifts"]], "software and devices do not excuse or lift"),
    anywhere(&[&["tell", "tells"], &["of"]], "write 'shows' or 'means'"),
    anywhere(&[&["that", "those"], &["of"], &["that", "those"]], "name the thing instead of a chain"),
    anywhere(&[&["at"], &["rest"]], "write 'unloaded' or 'idle'"),
    anywhere(&[BE, &["told"]], "write 'reported' or 'shown'"),
];

/// Checks the product and the pages.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let in_code = tree.rust().filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/"));
    let mut findings = Vec::new();
    for file in in_code {
        let lines: Vec<&str> = file.product().map(|(_, line)| line).collect();
        for (line, text) in literals(&lines.join("\n")) {
            findings.extend(patterns(&text).map(|advice| TidyFinding::new(file.path, line, advice)));
        }
    }
    let is_page = |path: &str| path.starts_with("docs/src/") || path == "README.md" || path == "CHANGELOG.md";
    for (path, text) in tree.texts.iter().filter(|(path, _)| path.ends_with(".md") && is_page(path)) {
        if GENERATED.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        for (line, paragraph) in paragraphs(text) {
            findings.extend(patterns(&paragraph).map(|advice| TidyFinding::new(path, line, advice)));
            for sentence in sentences(&paragraph) {
                let words = words(sentence).iter().filter(|word| *word != CODE).count();
                if words > MAX_WORDS {
                    let message = format!("a sentence of {words} words (at most {MAX_WORDS}): {sentence}");
                    findings.push(TidyFinding::new(path, line, message));
                }
            }
        }
    }
    findings
}

/// The advice on each pattern in a text.
fn patterns(text: &str) -> impl Iterator<Item = String> {
    let found: Vec<String> = sentences(text)
        .flat_map(|sentence| {
            let words = words(sentence);
            PATTERNS.iter().filter_map(move |pattern| {
                let place = (0..words.len()).find(|&at| pattern.is_at(&words, at))?;
                let quoted = words[place..words.len().min(place + 4)].join(" ");
                Some(format!("'{quoted}': {}", pattern.advice))
            })
        })
        .collect();
    found.into_iter()
}

impl Pattern {
    fn is_at(&self, all: &[String], at: usize) -> bool {
        let is =
            |place: Place, word: Option<&String>| word.is_some_and(|word| place.contains(&word.as_str()));
        let is_it = self.words.iter().enumerate().all(|(offset, place)| is(place, all.get(at + offset)));
        let before = at.checked_sub(1).and_then(|before| all.get(before));
        is_it
            && (at == 0 || !self.is_at_start)
            && !is(self.unless_next, all.get(at + self.words.len()))
            && !is(self.unless_before, before)
    }
}

/// The sentences of a text without code.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |(at, c): &(usize, char)| {
        matches!(c, '.' | '!' | '?' | ':') && text[at + 1..].starts_with([' ', '\n'])
    };
    let mut ends: Vec<usize> = text.char_indices().filter(is_end).map(|(at, _)| at + 1).collect();
    ends.push(text.len());
    let mut start = 0;
    ends.into_iter().map(move |end| {
        let sentence = text[start..end].trim();
        start = end;
        sentence
    })
}

/// Stands for code, and for what a program puts in.
const CODE: &str = "x";

/// The words in lower case, but for those in capitals (SQL, abbreviations).
fn words(sentence: &str) -> Vec<String> {
    let word = |word: &str| match word.contains('{') {
        true => CODE.to_owned(),
        false => in_lower_case(word.trim_matches(|c: char| !c.is_alphanumeric())),
    };
    sentence.split_whitespace().map(word).filter(|word| !word.is_empty()).collect()
}

fn in_lower_case(word: &str) -> String {
    if word.len() > 1 && word.chars().all(char::is_uppercase) { word.to_owned() } else { word.to_lowercase() }
}

/// String literals that are prose, with the lines they begin on.
fn literals(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut rest = text.char_indices().peekable();
    let mut line = 1;
    while let Some((at, c)) = rest.next() {
        line += usize::from(c == '\n');
        let is_comment = c == '/' && text[at..].starts_with("//");
        if is_comment {
            while rest.next_if(|(_, c)| *c != '\n').is_some() {}
            continue;
        }
        // The character of a quotation mark is no beginning of a string.
        if c != '"' || text[..at].ends_with('\'') {
            continue;
        }
        let (begin, mut literal) = (line, String::new());
        while let Some((_, c)) = rest.next() {
            line += usize::from(c == '\n');
            match c {
                '"' => break,
                '\\' => match rest.next() {
                    Some((_, '\n')) => {
                        line += 1;
                        while rest.next_if(|(_, c)| *c == ' ').is_some() {}
                    }
                    Some((_, 'n')) => literal.push('\n'),
                    other => literal.extend(other.map(|(_, c)| c)),
                },
                c => literal.push(c),
            }
        }
        // What continues another text does not begin a sentence.
        if !literal.starts_with(char::is_alphanumeric) {
            literal.insert_str(0, "x ");
        }
        if literal.matches(' ').count() > MIN_BLANKS {
            found.push((begin, literal));
        }
    }
    found
}

/// The paragraphs, items and cells of a page without code, with the lines they begin on.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut in_code, mut in_generated, mut is_open) = (false, false, false);
    for (index, line) in text.lines().enumerate() {
        if line.starts_with(GENERATED_PART) {
            in_generated = !in_generated;
        }
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            is_open = false;
            continue;
        }
        let trimmed = line.trim();
        let is_indented = line.starts_with("    ") && !is_open;
        if in_code || in_generated || trimmed.is_empty() || trimmed.starts_with('#') || is_indented {
            is_open = false;
            continue;
        }
        if let Some(row) = trimmed.strip_prefix('|') {
            found.extend(row.split('|').map(|cell| (index + 1, without_code(cell.trim()))));
            is_open = false;
            continue;
        }
        let item = trimmed.strip_prefix("- ").or_else(|| {
            trimmed.split_once(". ").filter(|(number, _)| number.parse::<u8>().is_ok()).map(|(_, item)| item)
        });
        match (item, found.last_mut().filter(|_| is_open)) {
            (None, Some((_, paragraph))) => {
                paragraph.push(' ');
                paragraph.push_str(trimmed);
            }
            (item, _) => found.push((index + 1, item.unwrap_or(trimmed).to_owned())),
        }
        is_open = true;
    }
    found.into_iter().map(|(line, paragraph)| (line, without_code(&paragraph))).collect()
}

/// A text without what stands between backticks, and without the targets of links.
fn without_code(text: &str) -> String {
    let outside = text.split('`').step_by(2).collect::<Vec<_>>().join(CODE);
    let mut parts = outside.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        patterns(text).collect()
    }

    #[test]
    fn stilted_sentences_are_found_and_plain_ones_are_not() {
        for text in [
            "Where repeats differ, the highest is a bound.",
            "What it tells about the volume",
            "Of the runs an interval is shown",
            "the ending of x.docx is no format",
            "the database has none of them",
            "absent where it is unknown",
            "the latency at rest is low",
        ] {
            assert_eq!(found(text).len(), 1, "{text}");
        }
        for text in [
            "there is no device here",
            "the type is no longer sold",
            "What is measured?",
            "the directory where files lie",
            "one of the limits",
            "WHERE id is NULL",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn literals_are_told_from_code_and_comments() {
        let code =
            "// a \"comment with some words\"\nlet c = '\"';\nlet text = \"one two \\\n   three four\";\n";
        assert_eq!(literals(code), [(3, "one two three four".to_owned())]);
    }

    #[test]
    fn paragraphs_have_no_code() {
        let page = "# Head\n\nOne `code` two\nthree [link](a.md).\n\n```sh\nWhere\n```\n- item\n| a | b |\n";
        let texts: Vec<(usize, String)> = paragraphs(page);
        let texts: Vec<(usize, &str)> = texts.iter().map(|(line, text)| (*line, text.as_str())).collect();
        assert_eq!(texts, [(3, "One x two three [link."), (9, "item"), (10, "a"), (10, "b"), (10, "")]);
    }
}
