//! From what the reader of TOML says of a catalogue file to the line, the entry and the field that people look for.

use crate::catalog::CatalogError;

/// Fields that are nearer than this to an unknown one may have been meant.
const NEAR: usize = 3;

/// The refusal of `text`, of which the reader says `message` at the byte `offset`.
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

/// The field that is missing, where that is what is wrong.
fn missing(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.strip_suffix('`')
}

/// The field that a line says.
fn named_on(text: &str, line: usize) -> Option<&str> {
    let (name, _) = text.lines().nth(line - 1)?.split_once('=')?;
    let name = name.trim();
    let is_name = |name: &str| name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    (!name.is_empty() && is_name(name)).then_some(name)
}

/// The entry that a line belongs to.
fn entry_above(text: &str, line: usize) -> Option<&str> {
    let header = text.lines().take(line).filter(|line| line.trim_start().starts_with('[')).last()?;
    let (name, _) = header.trim().strip_prefix("[volume.")?.split_once(']')?;
    let name = name.strip_suffix(".facts").unwrap_or(name);
    Some(name.trim_matches(['"', '\'']))
}

/// What is wrong, the field named.
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

/// A field that is not known, and what the reader says of those that are.
fn unknown(message: &str) -> Option<(&str, &str)> {
    message.strip_prefix("unknown field `")?.split_once("`, expected one of ")
}

fn nearest<'a>(unknown: &str, known: &'a str) -> Option<&'a str> {
    let names = known.split(", ").map(|name| name.trim_matches('`'));
    let near = names.map(|name| (strsim::osa_distance(unknown, name), name));
    near.filter(|(distance, _)| *distance <= NEAR).min().map(|(_, name)| name)
}
