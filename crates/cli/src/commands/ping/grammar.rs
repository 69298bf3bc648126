//! The words of ioping's command line: options with one or two dashes, abbreviated, glued and clustered, as the C
//! library's `getopt_long_only` reads them. Knows no option's meaning.

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueUse {
    /// No.
    Nothing,
    /// Always.
    Value,
    /// Only where it is glued on.
    Glued,
}

/// An option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingOption {
    /// Its long name.
    pub long: &'static str,
    /// Its letter.
    pub short: Option<char>,
    /// Whether it takes a value.
    pub takes: ValueUse,
    /// What the help calls the value.
    pub value: &'static str,
    /// What the help says.
    pub help: &'static str,
}

/// The options and operands of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedWords {
    /// Long names and values, in order.
    pub options: Vec<(&'static str, Option<String>)>,
    /// What is no option.
    pub operands: Vec<String>,
}

/// Reads `words` by the options of `rows`; the error is the C library's sentence.
pub fn read(words: &[String], rows: &[PingOption]) -> Result<ParsedWords, String> {
    let mut parsed = ParsedWords::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            parsed.operands.extend(words.cloned());
            break;
        }
        let Some(body) = word.strip_prefix('-').filter(|body| !body.is_empty()) else {
            parsed.operands.push(word.clone());
            continue;
        };
        let by_short =
            |letter: Option<char>| rows.iter().find(|row| row.short.is_some() && row.short == letter);
        let is_double = body.starts_with('-');
        // A lone letter that is one is never an abbreviation.
        let is_letter = !is_double && body.chars().count() == 1 && by_short(body.chars().next()).is_some();
        if !is_letter {
            let (dashes, name) = if is_double { ("--", &body[1..]) } else { ("-", body) };
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, None),
            };
            if let Some(row) = long(dashes, name, rows)? {
                parsed.options.push((row.long, long_value(row, dashes, value, &mut words)?));
                continue;
            }
            if is_double || by_short(body.chars().next()).is_none() {
                return Err(format!("unrecognized option '{dashes}{name}'"));
            }
        }
        cluster(body, rows, &mut words, &mut parsed)?;
    }
    Ok(parsed)
}

/// The row called `name`, or the only one whose name begins so.
fn long(dashes: &str, name: &str, rows: &[PingOption]) -> Result<Option<PingOption>, String> {
    if let Some(row) = rows.iter().find(|row| row.long == name) {
        return Ok(Some(*row));
    }
    let found: Vec<&PingOption> = rows.iter().filter(|row| row.long.starts_with(name)).collect();
    if found.len() > 1 {
        let names: Vec<String> = found.iter().map(|row| format!("'{dashes}{}'", row.long)).collect();
        return Err(format!("option '{dashes}{name}' is ambiguous; possibilities: {}", names.join(" ")));
    }
    Ok(found.first().map(|row| **row))
}

fn long_value<'a>(
    row: PingOption,
    dashes: &str,
    value: Option<String>,
    words: &mut impl Iterator<Item = &'a String>,
) -> Result<Option<String>, String> {
    match (row.takes, value) {
        (ValueUse::Nothing, Some(_)) => {
            Err(format!("option '{dashes}{}' doesn't allow an argument", row.long))
        }
        (ValueUse::Value, None) => {
            let value = words.next().cloned();
            value.map(Some).ok_or_else(|| format!("option '{dashes}{}' requires an argument", row.long))
        }
        (_, value) => Ok(value),
    }
}

/// `-RLB`, `-s4k`.
fn cluster<'a>(
    body: &str,
    rows: &[PingOption],
    words: &mut impl Iterator<Item = &'a String>,
    parsed: &mut ParsedWords,
) -> Result<(), String> {
    let mut rest = body;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let row = rows.iter().find(|row| row.short == Some(letter));
        let row = row.ok_or_else(|| format!("invalid option -- '{letter}'"))?;
        let value = match row.takes {
            ValueUse::Nothing => None,
            ValueUse::Glued => Some(std::mem::take(&mut rest).to_owned()).filter(|value| !value.is_empty()),
            ValueUse::Value if rest.is_empty() => {
                let value = words.next().cloned();
                Some(value.ok_or_else(|| format!("option requires an argument -- '{letter}'"))?)
            }
            ValueUse::Value => Some(std::mem::take(&mut rest).to_owned()),
        };
        parsed.options.push((row.long, value));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn row(long: &'static str, short: Option<char>, takes: ValueUse) -> PingOption {
        PingOption { long, short, takes, value: "", help: "" }
    }

    const ROWS: &[PingOption] = &[
        row("cached", Some('C'), ValueUse::Nothing),
        row("count", Some('c'), ValueUse::Value),
        row("batch", Some('B'), ValueUse::Nothing),
        row("linear", Some('L'), ValueUse::Nothing),
        row("rapid", Some('R'), ValueUse::Nothing),
        row("time", Some('I'), ValueUse::Glued),
        row("live", None, ValueUse::Value),
    ];

    #[test]
    fn words_are_read_as_the_c_library_does() {
        let check = |words: &str, expected: Result<&str, &str>| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let found = read(&words, ROWS).map(|parsed| {
                let options = parsed.options.iter().map(|(name, value)| match value {
                    Some(value) => format!("{name}={value}"),
                    None => (*name).to_owned(),
                });
                options.chain(parsed.operands.iter().cloned()).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{words:?}");
        };
        check("-c 2 .", Ok("count=2 ."));
        check(". -c2", Ok("count=2 ."));
        check("-count 2 --count=3 -cou 4", Ok("count=2 count=3 count=4"));
        check("-RLB .", Ok("rapid linear batch ."));
        check("-ba", Ok("batch"));
        check("-I .", Ok("time ."));
        check("-I%s .", Ok("time=%s ."));
        check("--time=%s", Ok("time=%s"));
        check("-- -c", Ok("-c"));
        check("-", Ok("-"));
        check("--li", Err("option '--li' is ambiguous; possibilities: '--linear' '--live'"));
        check("--c 1", Err("option '--c' is ambiguous; possibilities: '--cached' '--count'"));
        check("-Z", Err("unrecognized option '-Z'"));
        check("--nosuch", Err("unrecognized option '--nosuch'"));
        check("-c", Err("option requires an argument -- 'c'"));
        check("--count", Err("option '--count' requires an argument"));
        check("--batch=3", Err("option '--batch' doesn't allow an argument"));
        check("-BZ", Err("invalid option -- 'Z'"));
    }
}
