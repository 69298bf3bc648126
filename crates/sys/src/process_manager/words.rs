//! Messages of PMI-1 and PMI-2: pairs `name=value`, between blanks or semicolons; and the texts that fit into them.

use std::collections::BTreeMap;

use super::connection::Asked;
use super::{ProcessManagerError, TextLimits};

/// The pairs of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words(BTreeMap<String, String>);

impl Words {
    /// The pairs between blanks.
    pub(super) fn between_blanks(message: &str) -> Words {
        Words(message.split_whitespace().filter_map(pair).collect())
    }

    /// The pairs between semicolons.
    pub(super) fn between_semicolons(message: &str) -> Words {
        Words(message.split(';').filter_map(pair).collect())
    }

    /// The value of a name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Takes the value of a name out.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Refuses another answer than `command`, and one that reports a failure.
    pub(super) fn expect(&self, asked: Asked, command: &str) -> Result<(), ProcessManagerError> {
        let is_done = self.get("rc").is_none_or(|code| code == "0");
        if self.is(command) && is_done { Ok(()) } else { Err(self.unexpected(asked)) }
    }

    /// True for the answer `command`.
    pub(super) fn is(&self, command: &str) -> bool {
        self.get("cmd") == Some(command)
    }

    /// The error for this answer.
    pub(super) fn unexpected(&self, asked: Asked) -> ProcessManagerError {
        let words: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        asked.unexpected(words.join(" "))
    }
}

fn pair(word: &str) -> Option<(String, String)> {
    word.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.to_owned()))
}

impl TextLimits {
    /// Refuses a key that is too long, or that a launcher would cut.
    pub(super) fn check_key(self, key: &str) -> Result<(), ProcessManagerError> {
        check("key", key, self.key)
    }

    /// Refuses a value that is too long, or that a launcher would cut.
    pub(super) fn check_value(self, value: &str) -> Result<(), ProcessManagerError> {
        check("value", value, self.value)
    }
}

fn check(what: &'static str, text: &str, most: usize) -> Result<(), ProcessManagerError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b';');
    let reason = match text.len() {
        0 => "it is empty",
        length if length > most => "it is longer than the launcher takes",
        _ if !is_plain => "it is not printable ASCII without blanks and semicolons",
        _ => return Ok(()),
    };
    Err(ProcessManagerError::Text { what, length: text.len(), reason })
}
