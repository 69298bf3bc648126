//! From the TOML parser's message to an error with line, entry and field.

use crate::catalog::CatalogError;

/// Largest edit distance of a suggested field.
const NEAR: usize = 3;

/// The error for the parser's `message` at byte `offset` of `text`.
pub(crate) fn refusal(file: &str, text: &str, message: &str, offset: usize) -> CatalogError {
    let line = line_at(text, offset);
    let message = message.trim_end();
    let field = missing(message).or_else(|| named_on(text, line)).map(str::to_owned);
    let reason = [entry_above(text, line).map(str::to_owned), Some(in_words(message, field.as_deref()))];
    let reason = reason.into_iter().flatten().collect::<Vec<_>>().join(": ");
    CatalogError { file: file.to_owned(), line, field, reason }
}

/// The line of the byte at `offset`, from 1.
fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

/// The missing field, if the message is about one.
fn missing(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.strip_suffix('`')
}

/// The field of a line.
fn named_on(text: &str, line: usize) -> Option<&str> {
    let (name, _) = text.lines().nth(line - 1)?.split_once('=')?;
    let name = name.trim();
    let is_name = |name: &str| name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    (!name.is_empty() && is_name(name)).then_some(name)
}

/// The entry that contains a line.
fn entry_above(text: &str, line: usize) -> Option<&str> {
    let header = text.lines().take(line).filter(|line| line.trim_start().starts_with('[')).last()?;
    let (name, _) = header.trim().strip_prefix("[volume.")?.split_once(']')?;
    let tables = [".facts", ".measured.cache", ".measured"];
    let name = tables.iter().find_map(|table| name.strip_suffix(table)).unwrap_or(name);
    Some(name.trim_matches(['"', '\'']))
}

/// The reason, with the field.
fn in_words(message: &str, field: Option<&str>) -> String {
    if let Some(field) = missing(message) {
        return format!("{field} is missing");
    }
    if let Some((unknown, known)) = unknown(message) {
        return match nearest(unknown, known) {
            Some(near) => format!("unknown field {unknown}; did you mean {near}?"),
            None => format!("unknown field {unknown}"),
        };
    }
    let message = message.replace("expected f64", "expected a number");
    field.map(|field| format!("{field}: {message}")).unwrap_or(message)
}

/// An unknown field, and the parser's list of the known ones.
fn unknown(message: &str) -> Option<(&str, &str)> {
    message.strip_prefix("unknown field `")?.split_once("`, expected one of ")
}

fn nearest<'a>(unknown: &str, known: &'a str) -> Option<&'a str> {
    let names = known.split(", ").map(|name| name.trim_matches('`'));
    let near = names.map(|name| (strsim::osa_distance(unknown, name), name));
    near.filter(|(distance, _)| *distance <= NEAR).min().map(|(_, name)| name)
}
