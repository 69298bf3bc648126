//! Lists of hosts in bracket notation: `h[1-4,08-10],login`, as Slurm, pdsh and clush write them.

use std::collections::BTreeSet;

use crate::AssessError;

/// Most hosts of a list.
const MAX_HOSTS: usize = 16_384;
/// Longest name of a host.
const MAX_NAME: usize = 253;
/// Most digits of a number in brackets.
const MAX_DIGITS: usize = 9;

const BRACKETS: &str = "write h[1-4], h[01-16,20] or h1,h2";
const NAMES: &str =
    "names have letters, digits, dots, hyphens and underscores, and begin with a letter or digit";

/// The hosts of a list, in its order.
///
/// # Errors
/// It has a mistake, which is named with its place, or a host twice.
pub fn hosts(list: &str) -> Result<Vec<String>, AssessError> {
    let mut found = Vec::new();
    for (from, entry) in entries(list)? {
        let at = |error: EntryError| {
            let column = list[..from + error.at].chars().count() + 1;
            AssessError::usage(format!("{} in '{list}' at character {column}", error.message), error.hint)
        };
        expand(entry, &mut found).map_err(at)?;
    }
    each_once(found, |host| format!("host {host} is twice in '{list}'"))
}

fn each_once(hosts: Vec<String>, twice: impl Fn(&str) -> String) -> Result<Vec<String>, AssessError> {
    let mut known = BTreeSet::new();
    match hosts.iter().find(|host| !known.insert(host.as_str())) {
        Some(host) => Err(AssessError::usage(twice(host), "several ranks on a host: --per-host COUNT")),
        None => Ok(hosts),
    }
}

/// The hosts of a file: a list or a name a line, `#` begins a comment.
///
/// # Errors
/// A line has a mistake, which is named with its number; there is no host, or one twice.
pub fn hosts_of_file(text: &str, name: &str) -> Result<Vec<String>, AssessError> {
    let mut found: Vec<String> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let list = line.split('#').next().unwrap_or_default().trim();
        if list.is_empty() {
            continue;
        }
        let at = |error: AssessError| AssessError {
            message: format!("{name}:{}: {}", index + 1, error.message),
            ..error
        };
        found.extend(hosts(list).map_err(at)?);
    }
    if found.is_empty() {
        return Err(AssessError::usage(format!("{name} names no host"), "write a host a line"));
    }
    each_once(found, |host| format!("{name} names host {host} twice"))
}

/// The hosts as one list: names in a row that differ by a number only share brackets.
pub fn folded(hosts: &[String]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = hosts;
    while let Some(first) = rest.first() {
        let (prefix, digits) = split_number(first);
        let alike = |host: &&String| {
            let (theirs, number) = split_number(host);
            theirs == prefix && !number.is_empty()
        };
        let count = if digits.is_empty() { 1 } else { rest.iter().take_while(alike).count() };
        let (group, others) = rest.split_at(count);
        rest = others;
        parts.push(match group {
            [alone] => alone.clone(),
            _ => format!("{prefix}[{}]", ranges(group)),
        });
    }
    parts.join(",")
}

/// `1-4,08-10` of names with one prefix.
fn ranges(group: &[String]) -> String {
    let follows = |one: &String, next: &String| {
        let (one, next) = (split_number(one).1, split_number(next).1);
        let successor = one.parse::<u64>().ok().and_then(|number| number.checked_add(1));
        successor.is_some_and(|number| format!("{number:0width$}", width = one.len()) == next)
    };
    let text = |run: &[String]| match run {
        [first, .., last] => format!("{}-{}", split_number(first).1, split_number(last).1),
        [one] => split_number(one).1.to_owned(),
        [] => String::new(),
    };
    group.chunk_by(follows).map(text).collect::<Vec<_>>().join(",")
}

/// What stands before the number at the end of a name, and the number.
fn split_number(host: &str) -> (&str, &str) {
    let prefix = host.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &host[prefix.len()..];
    // A name of digits alone, and a number too long to count with, are names.
    if prefix.is_empty() || digits.len() > MAX_DIGITS { (host, "") } else { (prefix, digits) }
}

/// A mistake, and its place within an entry.
struct EntryError {
    at: usize,
    message: String,
    hint: &'static str,
}

impl EntryError {
    fn new(at: usize, message: impl Into<String>, hint: &'static str) -> EntryError {
        EntryError { at, message: message.into(), hint }
    }
}

/// The parts between commas outside of brackets, with their places.
fn entries(list: &str) -> Result<Vec<(usize, &str)>, AssessError> {
    let mut found = Vec::new();
    let (mut from, mut is_inside) = (0, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '[' => is_inside = true,
            ']' => is_inside = false,
            ',' if !is_inside => {
                found.push((from, &list[from..at]));
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push((from, &list[from..]));
    match found.iter().find(|(_, entry)| entry.trim().is_empty()) {
        Some(_) if list.trim().is_empty() => Err(AssessError::usage("the list of hosts is empty", BRACKETS)),
        Some((at, _)) => {
            let column = list[..*at].chars().count() + 1;
            Err(AssessError::usage(format!("no host in '{list}' at character {column}"), BRACKETS))
        }
        None => Ok(found),
    }
}

/// Adds the hosts of one entry.
fn expand(entry: &str, found: &mut Vec<String>) -> Result<(), EntryError> {
    let trimmed = entry.trim();
    let skipped = entry.len() - entry.trim_start().len();
    let mut names = vec![String::new()];
    let mut rest = trimmed;
    while !rest.is_empty() {
        let at = skipped + trimmed.len() - rest.len();
        let end = rest.find(['[', ']']).unwrap_or(rest.len());
        let (plain, tail) = rest.split_at(end);
        check_letters(plain, at)?;
        names.iter_mut().for_each(|name| name.push_str(plain));
        rest = tail;
        if rest.is_empty() {
            break;
        }
        let at = at + end;
        let Some(inner) = rest.strip_prefix('[') else {
            return Err(EntryError::new(at, "] without [", BRACKETS));
        };
        let Some(close) = inner.find(']') else {
            return Err(EntryError::new(at, "[ without ]", BRACKETS));
        };
        let numbers = numbers(&inner[..close], at + 1)?;
        if names.len().saturating_mul(numbers.len()).saturating_add(found.len()) > MAX_HOSTS {
            return Err(EntryError::new(at, format!("more than {MAX_HOSTS} hosts"), "name fewer hosts"));
        }
        let with = |name: &String| numbers.iter().map(|number| format!("{name}{number}")).collect::<Vec<_>>();
        names = names.iter().flat_map(with).collect();
        rest = &inner[close + 1..];
    }
    for name in &names {
        // A name that begins with a hyphen would be an option of ssh.
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins_well || name.len() > MAX_NAME {
            return Err(EntryError::new(skipped, format!("'{name}' is no name of a host"), NAMES));
        }
    }
    found.extend(names);
    Ok(())
}

fn check_letters(plain: &str, at: usize) -> Result<(), EntryError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    match plain.char_indices().find(|(_, letter)| !is_allowed(*letter)) {
        Some((place, letter)) => Err(EntryError::new(at + place, format!("unexpected '{letter}'"), NAMES)),
        None => Ok(()),
    }
}

/// The numbers of `1-4,08`, as texts with their zeros.
fn numbers(text: &str, at: usize) -> Result<Vec<String>, EntryError> {
    let mut found = Vec::new();
    let mut from = at;
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let read = |number: &str| {
            let is_number = !number.is_empty()
                && number.len() <= MAX_DIGITS
                && number.bytes().all(|byte| byte.is_ascii_digit());
            number.parse::<u64>().ok().filter(|_| is_number)
        };
        let (Some(low), Some(high)) = (read(first), read(last)) else {
            return Err(EntryError::new(from, format!("'{part}' is no number and no range"), BRACKETS));
        };
        if high < low {
            return Err(EntryError::new(from, format!("the range {part} runs backwards"), BRACKETS));
        }
        if (high - low) as usize >= MAX_HOSTS {
            return Err(EntryError::new(from, format!("more than {MAX_HOSTS} hosts"), "name fewer hosts"));
        }
        let width = if first.starts_with('0') { first.len() } else { 1 };
        found.extend((low..=high).map(|number| format!("{number:0width$}")));
        from += part.len() + 1;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_hold_ranges_and_lists() {
        for (list, expected) in [
            ("h1", &["h1"][..]),
            ("h[1-3]", &["h1", "h2", "h3"]),
            ("h[08-10]", &["h08", "h09", "h10"]),
            ("h[1,3,5-6].lan, login", &["h1.lan", "h3.lan", "h5.lan", "h6.lan", "login"]),
            ("r[1-2]n[1-2]", &["r1n1", "r1n2", "r2n1", "r2n2"]),
            ("h[001]", &["h001"]),
            ("10.0.0.[1-2]", &["10.0.0.1", "10.0.0.2"]),
        ] {
            assert_eq!(
                hosts(list).as_deref(),
                Ok(&expected.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>()[..]),
                "{list}"
            );
        }
        assert_eq!(hosts("h[1-10000]").map(|hosts| hosts.len()), Ok(10_000));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (list, expected) in [
            ("", "the list of hosts is empty"),
            ("h1,,h2", "no host in 'h1,,h2' at character 4"),
            ("h[1-3", "[ without ] in 'h[1-3' at character 2"),
            ("h1-3]", "] without [ in 'h1-3]' at character 5"),
            ("h1,h[3-1]", "the range 3-1 runs backwards in 'h1,h[3-1]' at character 6"),
            ("h[1,x]", "'x' is no number and no range in 'h[1,x]' at character 5"),
            ("h[1-]", "'1-' is no number and no range in 'h[1-]' at character 3"),
            ("h[]", "'' is no number and no range in 'h[]' at character 3"),
            ("root@h1", "unexpected '@' in 'root@h1' at character 5"),
            (
                "h1,-oProxyCommand",
                "'-oProxyCommand' is no name of a host in 'h1,-oProxyCommand' at character 4",
            ),
            ("h[1-3],h2", "host h2 is twice in 'h[1-3],h2'"),
            ("h[0-99999999]", "more than 16384 hosts in 'h[0-99999999]' at character 3"),
        ] {
            assert_eq!(hosts(list).map_err(|error| error.message), Err(expected.to_owned()), "{list}");
        }
    }

    #[test]
    fn files_have_a_list_a_line() {
        let text = "# racks\nh[1-2]\n\nh3 # the third\n";
        assert_eq!(hosts_of_file(text, "hosts").map(|hosts| hosts.join(" ")), Ok("h1 h2 h3".to_owned()));
        let message = |text: &str| hosts_of_file(text, "hosts").unwrap_err().message;
        assert_eq!(message("h1\nh[2\n"), "hosts:2: [ without ] in 'h[2' at character 2");
        assert_eq!(message("h1\nh1\n"), "hosts names host h1 twice");
        assert_eq!(message("# none\n"), "hosts names no host");
    }

    #[test]
    fn lists_are_folded_and_read_again() {
        for (list, expected) in [
            ("h1,h2,h3", "h[1-3]"),
            ("h08,h09,h10", "h[08-10]"),
            ("h9,h10,h12", "h[9-10,12]"),
            ("a,b", "a,b"),
            ("h1,x,h2", "h1,x,h2"),
            ("h1.lan,h2.lan", "h1.lan,h2.lan"),
        ] {
            let named = hosts(list).unwrap();
            assert_eq!(folded(&named), expected, "{list}");
            assert_eq!(hosts(expected).unwrap(), named, "{list}");
        }
    }
}
