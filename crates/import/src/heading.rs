//! What a page says above an output: its heading, or the sentence that introduces it.

use std::collections::{BTreeMap, BTreeSet};

use crate::page::Output;
use crate::text::SourceText;
use crate::tools;

/// Lines above an output in which its heading is looked for.
const MAX_ABOVE: u64 = 14;
/// Letters of the longest heading.
const MAX_HEADING: usize = 60;
/// Words that begin a command of a shell.
const COMMANDS: &[&str] = &["fio", "ioping", "dd", "sudo", "apt", "apt-get", "yum", "dnf", "cd", "sysbench"];

/// Names tests by their headings where several outputs of a page have tests of one name, and each of these a heading.
pub(crate) fn name_apart(source: &SourceText, outputs: &mut [Output]) {
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    let mut without: BTreeSet<String> = BTreeSet::new();
    let headings: Vec<Option<String>> = outputs
        .iter()
        .map(|output| above(source, Some(output.report.line()).filter(|line| *line > 0)?))
        .collect();
    for (output, heading) in outputs.iter().zip(&headings) {
        let names: BTreeSet<&String> = output.report.tests.iter().map(|test| &test.name).collect();
        for name in names {
            *uses.entry(name.clone()).or_default() += 1;
            if heading.is_none() {
                without.insert(name.clone());
            }
        }
    }
    for (output, heading) in outputs.iter_mut().zip(headings) {
        let (is_alone, Some(heading)) = (output.report.tests.len() == 1, heading) else { continue };
        for test in &mut output.report.tests {
            if test.heading.is_empty() && uses[&test.name] > 1 && !without.contains(&test.name) {
                test.heading = if is_alone { heading.clone() } else { format!("{heading}: {}", test.name) };
            }
        }
    }
}

/// The heading of what begins at a line.
fn above(source: &SourceText, line: u64) -> Option<String> {
    let lines: Vec<&str> =
        source.lines(line.saturating_sub(MAX_ABOVE).max(1), line.max(2) - 1).lines().collect();
    for text in lines[..lines.len().min(line as usize - 1)].iter().rev() {
        let text = text.trim();
        if text.is_empty() || text.starts_with("```") || is_command(text) || tools::is_count(text) {
            continue;
        }
        // Another output, or a table.
        if text.contains(['=', '|']) || tools::is_result(text) {
            return None;
        }
        if let Some(found) = heading(text) {
            return Some(found);
        }
    }
    None
}

/// True of a line of a shell, with or without its prompt.
fn is_command(text: &str) -> bool {
    let words = text.trim_start_matches(['$', '#', '>', ' ']);
    let words = words.rsplit_once("# ").map_or(words, |(_, behind)| behind);
    let first = words.split_whitespace().next().unwrap_or_default();
    let has_options = words.split_whitespace().any(|word| {
        word.strip_prefix("--")
            .or_else(|| word.strip_prefix('-'))
            .is_some_and(|option| option.starts_with(|sign: char| sign.is_ascii_lowercase()))
    });
    COMMANDS.contains(&first) || first.ends_with("/fio") || has_options
}

/// A line of a heading, or its last sentence where that introduces what follows.
fn heading(text: &str) -> Option<String> {
    let is_introduction = text.ends_with(':');
    let is_marked = text.starts_with('#');
    let text = text.trim_matches(['#', ':', '*', ' ']);
    let text = match is_introduction {
        true => text.rsplit(['.', '。', '!', ';']).next().unwrap_or(text).trim(),
        false => text,
    };
    let text = without_number(text);
    let is_sentence = text.ends_with(['.', '。', '!', '?', ';', ',', '、']);
    let is_short = (1..=MAX_HEADING).contains(&text.chars().count());
    (is_short && (is_marked || !is_sentence)).then(|| text.to_owned())
}

/// `Random reads` of `2. Random reads`.
fn without_number(text: &str) -> &str {
    let behind = text.trim_start_matches(|sign: char| sign.is_ascii_digit());
    match behind.strip_prefix(['.', ',', ')', '、']) {
        Some(rest) if behind.len() < text.len() && !rest.starts_with(|sign: char| sign.is_ascii_digit()) => {
            rest.trim_start()
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(page: &str) -> Option<String> {
        let text = format!("{page}\ntest: (g=0): rw=read");
        above(&SourceText::new(&text), text.lines().count() as u64)
    }

    #[test]
    fn the_heading_or_the_introduction_above_an_output_is_its_name() {
        for (page, name) in [
            ("## Random reads, AWS\n\n```\n$ fio --name=test --rw=randread\n```", "Random reads, AWS"),
            ("Random reads — AWS\n\n/home/me# fio --name=test", "Random reads - AWS"),
            ("# fio -name=test", ""),
            (
                "Each test runs for two minutes. The output on the fast disk:\n\n```",
                "The output on the fast disk",
            ),
            ("会创建一个4GB的文件。以下是容量型磁盘的输出：\n\n```", "以下是容量型磁盘的输出"),
            ("2, File benchmark\n", "File benchmark"),
            ("A sentence ends with a period.\n", ""),
            ("## Writes\nA sentence.\n", "Writes"),
            ("## Disk A\n\n$ dd if=a of=b\n1+0 records in\n1+0 records out", "Disk A"),
            ("## A\n$ dd if=a of=b\n512 bytes copied, 0.1 s, 5.1 kB/s\n$ dd if=a of=b", ""),
            ("## Writes\nread : io=4096MB\n", ""),
            ("", ""),
        ] {
            assert_eq!(of(page).unwrap_or_default(), name, "{page}");
        }
    }
}
