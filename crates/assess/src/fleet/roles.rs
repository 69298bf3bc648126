//! Roles: which ranks of a job do what.
//!
//! ```toml
//! [[role]]
//! name = "writers"
//! ranks = "0-3"
//! options = { rw = "write" }
//!
//! [[role]]
//! name = "readers"              # the other ranks
//! options = { rw = "randread" }
//! ```

use serde::Deserialize;
use std::collections::BTreeMap;

use crate::AssessError;

/// The roles of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetRoles {
    roles: Vec<FleetRole>,
}

/// What some of the ranks do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetRole {
    /// Its name, which stands before those of its jobs.
    pub name: String,
    /// Its ranks: `0-3,8`.
    #[serde(default)]
    ranks: Option<String>,
    /// Its hosts: `h1`, `h[1-8,12]`.
    #[serde(default)]
    hosts: Vec<String>,
    /// The jobs that it runs; all where none is named.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// Options of fio that replace those of its jobs.
    #[serde(default)]
    options: BTreeMap<String, OptionText>,
}

/// The value of an option, with or without quotes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum OptionText {
    Text(String),
    Number(i64),
    Flag(bool),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RolesFile {
    #[serde(default)]
    role: Vec<FleetRole>,
}

impl FleetRoles {
    /// Reads the roles of `file`.
    ///
    /// # Errors
    /// It is not TOML, has other fields, or roles that cannot be told apart.
    pub fn parse(file: &str, text: &str) -> Result<FleetRoles, AssessError> {
        let hint =
            "write [[role]] with name, ranks = \"0-3,8\" or hosts = [\"h1\"], and [role.options] of fio";
        let wrong = |reason: String| AssessError::usage(format!("{file}: {reason}"), hint);
        let RolesFile { role: roles } =
            toml::from_str(text).map_err(|error| wrong(error.message().to_owned()))?;
        if roles.is_empty() {
            return Err(wrong("it has no [[role]]".to_owned()));
        }
        for (place, role) in roles.iter().enumerate() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            if role.name.is_empty() || !role.name.chars().all(is_word) {
                return Err(wrong(format!("the name of role {} must be a word: '{}'", place + 1, role.name)));
            }
            if roles[..place].iter().any(|other| other.name == role.name) {
                return Err(wrong(format!("two roles are called '{}'", role.name)));
            }
            let is_list = |text: &str| number_ranges(text).is_some();
            if let Some(ranks) = role.ranks.as_deref().filter(|ranks| !is_list(ranks)) {
                return Err(wrong(format!("role '{}': ranks '{ranks}' are not like '0-3,8'", role.name)));
            }
            let is_pattern = |host: &&String| bracket(host).is_none_or(|(_, list, _)| is_list(list));
            if let Some(host) = role.hosts.iter().find(|host| !is_pattern(host)) {
                return Err(wrong(format!("role '{}': host '{host}' is not like 'h[1-8]'", role.name)));
            }
        }
        Ok(FleetRoles { roles })
    }

    /// The role of a rank: the first that names it, else the first that names none.
    pub fn role_of(&self, rank: u32, host: &str) -> Option<&FleetRole> {
        let named = self.roles.iter().find(|role| role.names(rank, host));
        named.or_else(|| self.roles.iter().find(|role| role.ranks.is_none() && role.hosts.is_empty()))
    }
}

impl FleetRole {
    /// Options of fio, by name.
    pub fn options(&self) -> impl Iterator<Item = (&str, String)> {
        self.options.iter().map(|(name, value)| {
            let value = match value {
                OptionText::Text(text) => text.clone(),
                OptionText::Number(number) => number.to_string(),
                OptionText::Flag(flag) => u8::from(*flag).to_string(),
            };
            (name.as_str(), value)
        })
    }

    fn names(&self, rank: u32, host: &str) -> bool {
        let has_rank = self.ranks.as_deref().is_some_and(|ranks| contains(ranks, u64::from(rank)));
        has_rank || self.hosts.iter().any(|pattern| is_host(pattern, host))
    }
}

/// `h[1-8,12]` in its three parts.
fn bracket(pattern: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = pattern.split_once('[')?;
    let (list, after) = rest.split_once(']')?;
    Some((before, list, after))
}

/// True where `pattern` names `host`, with or without its domain.
fn is_host(pattern: &str, host: &str) -> bool {
    let is = |host: &str| match bracket(pattern) {
        None => pattern == host,
        Some((before, list, after)) => {
            let number = host.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            number.and_then(|text| text.parse().ok()).is_some_and(|number| contains(list, number))
        }
    };
    is(host) || host.split_once('.').is_some_and(|(short, _)| is(short))
}

fn contains(list: &str, number: u64) -> bool {
    number_ranges(list).is_some_and(|ranges| ranges.iter().any(|(from, to)| (*from..=*to).contains(&number)))
}

/// `0-3,8` as ranges; `None` where the text is no list of ranges.
fn number_ranges(list: &str) -> Option<Vec<(u64, u64)>> {
    let range = |word: &str| {
        let (from, to) = word.split_once('-').unwrap_or((word, word));
        let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        (from <= to).then_some((from, to))
    };
    list.split(',').map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_the_first_role_that_names_them() {
        let text = "[[role]]\nname = 'rest'\n\
            [[role]]\nname = 'writers'\nranks = '0-1, 4'\noptions = { rw = 'write', iodepth = 4, direct = true }\n\
            [[role]]\nname = 'special'\nhosts = ['h[7-9]', 'big']\njobs = ['a']\n";
        let roles = FleetRoles::parse("x", text).unwrap();
        let role = |rank, host: &str| roles.role_of(rank, host).unwrap().name.clone();
        assert_eq!([role(0, "h1"), role(4, "h9"), role(2, "h1")], ["writers", "writers", "rest"]);
        assert_eq!(
            [role(3, "h08.cluster"), role(5, "big"), role(6, "bigger")],
            ["special", "special", "rest"]
        );
        let options: Vec<_> = roles.role_of(1, "").unwrap().options().collect();
        let expected = [("direct", "1"), ("iodepth", "4"), ("rw", "write")];
        assert_eq!(options, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn wrong_roles_are_refused() {
        for (text, expected) in [
            ("", "it has no [[role]]"),
            ("[[role]]\nname = 'a b'", "must be a word"),
            ("[[role]]\nname = 'a'\n[[role]]\nname = 'a'", "two roles are called 'a'"),
            ("[[role]]\nname = 'a'\nranks = '3-1'", "are not like '0-3,8'"),
            ("[[role]]\nname = 'a'\nhosts = ['h[x]']", "is not like 'h[1-8]'"),
            ("[[role]]\nname = 'a'\nrank = 3", "unknown field"),
            ("role = ", ""),
        ] {
            let error = FleetRoles::parse("plan.toml", text).unwrap_err().to_string();
            assert!(error.starts_with("plan.toml: ") && error.contains(expected), "{text}: {error}");
        }
    }
}
