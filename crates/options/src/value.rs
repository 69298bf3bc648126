//! fio's value syntax: sizes with suffixes, percentages, times and lists.
//!
//! Every function returns the value, or the reason why the text is invalid; the caller names the option. Where fio
//! silently accepts nonsense (`1.5m` as 1 byte, `5 parsecs` as 5 microseconds) the text is refused.

use fathom_model::Nanos;
use fathom_model::plan::SizeSpec;

/// An integer with an optional size suffix: `4096`, `0x1000`, `4k`, `4kb`, `4ki` (all 4096), `4KiB` (4000).
pub fn integer(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let (digits, suffix, radix) = split_number(trimmed)?;
    let too_large = |what: &str| format!("{what} exceeds the maximum of {}", i64::MAX);
    let number = u64::from_str_radix(digits, radix).map_err(|_| too_large(digits))?;
    let scale = size_scale(suffix).ok_or_else(|| {
        format!(
            "'{suffix}' is not a size suffix: use k, m, g, t, p (powers of 1024) or kib, mib, gib (of 1000)"
        )
    })?;
    let whole = number.checked_mul(scale).filter(|whole| i64::try_from(*whole).is_ok());
    whole.ok_or_else(|| too_large(trimmed))
}

/// An [`integer`] that may be negative.
pub fn signed_integer(text: &str) -> Result<i64, String> {
    let (digits, sign) = text.trim().strip_prefix('-').map_or((text, 1), |digits| (digits, -1));
    integer(digits).map(|size| sign * size.cast_signed())
}

/// Splits a number into digits, suffix and radix; signs and fractions are refused here.
fn split_number(text: &str) -> Result<(&str, &str, u32), String> {
    if text.is_empty() {
        return Err("a number is needed".to_owned());
    }
    if text.starts_with('-') {
        return Err("min value out of range: it must not be negative".to_owned());
    }
    let (body, radix) = match text.get(..2) {
        Some("0x" | "0X") => (&text[2..], 16),
        _ => (text, 10),
    };
    let end = body.find(|c: char| !c.is_digit(radix)).unwrap_or(body.len());
    let (digits, suffix) = body.split_at(end);
    // Programs that calculate with fractions write whole numbers so: `1048576.0`.
    let zeroes = suffix.strip_prefix('.').map(|rest| rest.trim_start_matches('0'));
    let suffix = match zeroes {
        Some(rest)
            if radix == 10
                && suffix.len() > rest.len() + 1
                && !rest.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            rest
        }
        _ => suffix,
    };
    if suffix.starts_with('.') {
        return Err("fractions are not supported: write a smaller unit (1536k for 1.5m)".to_owned());
    }
    if digits.is_empty() {
        return Err(format!("'{text}' is not a number"));
    }
    Ok((digits, suffix.trim(), radix))
}

/// `text` with the suffixes of `kb_base=1000`, in which `k` is 1000 and `kib` is 1024, as the other functions read them.
pub fn in_default_base(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        let end =
            rest[at..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |length| at + length);
        let (before, word) = (&rest[..at], &rest[at..end]);
        let lower = word.to_ascii_lowercase();
        out.push_str(before);
        match lower.strip_prefix(['k', 'm', 'g', 't', 'p']) {
            Some("" | "b") => out.extend([&lower[..1], "ib"]),
            Some("i" | "ib") => out.push_str(&lower[..1]),
            _ => out.push_str(word),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// fio's suffixes for its default `kb_base=1024`, where the IEC names are powers of 1000.
fn size_scale(suffix: &str) -> Option<u64> {
    let lower = suffix.to_ascii_lowercase();
    if lower.is_empty() || lower == "b" {
        return Some(1);
    }
    let power = match lower.as_bytes()[0] {
        b'k' => 1,
        b'm' => 2,
        b'g' => 3,
        b't' => 4,
        b'p' => 5,
        _ => return None,
    };
    match &lower[1..] {
        "" | "b" | "i" => Some(1024_u64.pow(power)),
        "ib" => Some(1000_u64.pow(power)),
        _ => None,
    }
}

/// An [`integer`] between `min` and `max`, both included; errors have fio's wording.
pub fn integer_in(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let number = integer(text)?;
    if number < min {
        return Err(format!("min value out of range: {number} ({min} min)"));
    }
    if number > max {
        return Err(format!("max value out of range: {number} ({max} max)"));
    }
    Ok(number)
}

/// An [`integer_in`] that fits into 32 bits.
pub fn count(text: &str, min: u32) -> Result<u32, String> {
    integer_in(text, u64::from(min), u64::from(u32::MAX)).map(|number| number as u32)
}

/// A percentage, 0 to 100, without a percent sign, to which fio gives another meaning.
pub fn percent(text: &str) -> Result<u8, String> {
    if let Some(number) = text.trim().strip_suffix('%') {
        return Err(format!("write {number} without the percent sign"));
    }
    integer_in(text, 0, 100).map(|number| number as u8)
}

/// A size, or `N%` of the file.
pub fn size_or_percent(text: &str) -> Result<SizeSpec, String> {
    match text.trim().strip_suffix('%') {
        Some(share) => match percent(share)? {
            0 => Err("0% of the file is nothing: write 1% to 100%".to_owned()),
            share => Ok(SizeSpec::Percent(share)),
        },
        None => integer(text).map(SizeSpec::Bytes),
    }
}

/// A start within the file: like [`size_or_percent`], and `0%` is its beginning.
pub fn offset(text: &str) -> Result<SizeSpec, String> {
    match text.trim().strip_suffix('%').map(percent) {
        Some(Ok(0)) => Ok(SizeSpec::Bytes(0)),
        Some(Err(reason)) => Err(reason),
        _ => size_or_percent(text),
    }
}

/// 0 or 1.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text.trim() {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("it must be 0 or 1".to_owned()),
    }
}

/// A time whose plain number means seconds.
pub fn seconds(text: &str) -> Result<Nanos, String> {
    time(text, 1_000_000_000)
}

/// A time whose plain number means microseconds.
pub fn micros(text: &str) -> Result<Nanos, String> {
    time(text, 1_000)
}

fn time(text: &str, plain: u64) -> Result<Nanos, String> {
    let trimmed = text.trim();
    let (digits, suffix, radix) = split_number(trimmed).map_err(|reason| match reason.split_once(':') {
        Some(("fractions are not supported", _)) => {
            "fractions are not supported: write a smaller unit (500ms for 0.5s)".to_owned()
        }
        _ => reason,
    })?;
    let scale = match suffix.to_ascii_lowercase().as_str() {
        "" => plain,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(format!("'{suffix}' is not a unit of time: use one of us, ms, s, m, h, d")),
    };
    u64::from_str_radix(digits, radix)
        .ok()
        .and_then(|number| number.checked_mul(scale))
        .map(Nanos)
        .ok_or_else(|| format!("{trimmed} is longer than 584 years"))
}

/// A time, or `a-b`: a range to draw from. The ends may be swapped.
pub fn seconds_range(text: &str) -> Result<(Nanos, Nanos), String> {
    let (first, second) = match text.split_once('-') {
        Some((first, second)) if !first.trim().is_empty() => (seconds(first)?, seconds(second)?),
        _ => (seconds(text)?, seconds(text)?),
    };
    Ok((first.min(second), first.max(second)))
}

/// The entries of an `R,W,T` list: `None` for an empty one; the last entry is repeated for missing ones.
pub fn per_operation(text: &str) -> Result<[Option<&str>; 3], String> {
    let mut entries = [None; 3];
    let mut given = 0;
    for (i, entry) in text.split(',').enumerate() {
        if i == 3 {
            return Err("there are at most three entries: read,write,trim".to_owned());
        }
        let entry = entry.trim();
        entries[i] = (!entry.is_empty()).then_some(entry);
        given = i + 1;
    }
    for i in given..3 {
        entries[i] = entries[given - 1];
    }
    Ok(entries)
}

/// Names separated by colons; `\:` is a colon inside a name, as is the one in `sim:`, the prefix of a simulated volume.
pub fn names(text: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ':' if names.last().is_some_and(|name| name == "sim") => push_last(&mut names, ':'),
            '\\' if chars.peek() == Some(&':') => {
                chars.next();
                push_last(&mut names, ':');
            }
            ':' => names.push(String::new()),
            c => push_last(&mut names, c),
        }
    }
    names.retain(|name| !name.is_empty());
    if names.is_empty() { Err("a name is needed".to_owned()) } else { Ok(names) }
}

fn push_last(names: &mut [String], c: char) {
    if let Some(last) = names.last_mut() {
        last.push(c);
    }
}

/// Percentiles separated by colons, ascending; 1 to 20 of them, each from 0 to 100.
pub fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let mut list = Vec::new();
    for entry in text.split([':', ',']) {
        let entry = entry.trim();
        let value = entry.parse::<f64>().ok().filter(|value| value.is_finite());
        let value = value.ok_or_else(|| format!("'{entry}' is not a number"))?;
        if !(0.0..=100.0).contains(&value) {
            return Err(format!("value out of range: {entry} (0 to 100)"));
        }
        list.push(value);
    }
    if list.len() > 20 {
        return Err(format!("{} percentiles are too many: 20 at most", list.len()));
    }
    list.sort_by(f64::total_cmp);
    Ok(list)
}

/// Highest CPU number, that of the largest kernels; the bound protects the memory against misspelt ranges.
const MAX_CPU: u64 = 8_191;

/// CPU numbers and ranges: `0,2-5`. Ascending, each once.
pub fn cpus(text: &str) -> Result<Vec<usize>, String> {
    let mut ranges = Vec::new();
    for entry in text.split(',') {
        let entry = entry.trim();
        let (first, last) = entry.split_once(['-', ':']).unwrap_or((entry, entry));
        let first = integer_in(first, 0, MAX_CPU)? as usize;
        let last = integer_in(last, 0, MAX_CPU)? as usize;
        if last < first {
            return Err(format!("{entry} ends before it begins: write {last}-{first}"));
        }
        ranges.push((first, last));
    }
    ranges.sort_unstable();
    let mut list: Vec<usize> = Vec::new();
    for (first, last) in ranges {
        // Duplicates are removed at once, so that they take no memory.
        let next = list.last().map_or(first, |highest| first.max(highest + 1));
        list.extend(next..=last);
    }
    Ok(list)
}

/// One of `choices`, or an error that lists them.
pub fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let text = text.trim();
    choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        format!("valid values are {}", words.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_are_exchanged() {
        for (text, expected) in
            [("4k", "4kib"), ("4kb,8KiB", "4kib,8k"), ("1Mi:2m", "1m:2mib"), ("50%", "50%"), ("0x1f", "0x1f")]
        {
            assert_eq!(in_default_base(text), expected, "{text}");
        }
    }

    #[test]
    fn integers_take_size_suffixes() {
        for (text, expected) in [
            ("0", Some(0)),
            ("4096", Some(4096)),
            (" 4096 ", Some(4096)),
            ("512B", Some(512)),
            ("4k", Some(4096)),
            ("4K", Some(4096)),
            ("4kb", Some(4096)),
            ("4KB", Some(4096)),
            ("4ki", Some(4096)),
            ("4kib", Some(4000)),
            ("4KiB", Some(4000)),
            ("1m", Some(1 << 20)),
            ("1MiB", Some(1_000_000)),
            ("2g", Some(2 << 30)),
            ("1t", Some(1 << 40)),
            ("1p", Some(1 << 50)),
            ("1pib", Some(1_000_000_000_000_000)),
            ("0x2000", Some(8192)),
            ("0X10k", Some(16384)),
            ("0x10b", Some(0x10b)),
            ("9223372036854775807", Some(i64::MAX as u64)),
            ("9223372036854775808", None),
            ("18446744073709551616", None),
            ("8191p", Some(8191 << 50)),
            ("8192p", None),
            ("", None),
            ("k", None),
            ("0x", None),
            ("-1", None),
            ("+1", None),
            ("1048576.0", Some(1 << 20)),
            ("4.00k", Some(4096)),
            ("70.", None),
            ("70.01", None),
            ("0x1.0", None),
            ("1.5m", None),
            ("4kx", None),
            ("4 k", Some(4096)),
            ("8k 16k", None),
            ("4é", None),
        ] {
            assert_eq!(integer(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn integers_may_be_negative_where_that_means_something() {
        assert_eq!(signed_integer("4k"), Ok(4096));
        assert_eq!(signed_integer("-8k"), Ok(-8192));
        for bad in ["--1", "-", "8e", "9223372036854775808"] {
            assert!(signed_integer(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn range_errors_have_fios_wording() {
        assert_eq!(integer_in("0", 1, 9).unwrap_err(), "min value out of range: 0 (1 min)");
        assert_eq!(integer_in("101", 0, 100).unwrap_err(), "max value out of range: 101 (100 max)");
        assert_eq!(percent("75"), Ok(75));
        assert_eq!(percent("75%").unwrap_err(), "write 75 without the percent sign");
        assert_eq!(count("4294967295", 1), Ok(u32::MAX));
        assert!(count("4294967296", 1).is_err());
    }

    #[test]
    fn sizes_may_be_percentages() {
        for (text, expected) in [
            ("1g", Some(SizeSpec::Bytes(1 << 30))),
            ("50%", Some(SizeSpec::Percent(50))),
            ("100%", Some(SizeSpec::Percent(100))),
            ("0%", None),
            ("101%", None),
            ("%", None),
            ("-5%", None),
        ] {
            assert_eq!(size_or_percent(text).ok(), expected, "{text}");
        }
        assert_eq!(offset("0%"), Ok(SizeSpec::Bytes(0)));
        assert_eq!(offset("10%"), Ok(SizeSpec::Percent(10)));
        assert!(offset("200%").is_err());
    }

    #[test]
    fn times_accept_units() {
        const S: u64 = 1_000_000_000;
        for (text, expected) in [
            ("0", Some(0)),
            ("30", Some(30 * S)),
            ("30s", Some(30 * S)),
            ("30sec", Some(30 * S)),
            ("5min", Some(300 * S)),
            ("5M", Some(300 * S)),
            ("1h", Some(3600 * S)),
            ("1d", Some(86_400 * S)),
            ("500ms", Some(S / 2)),
            ("500msec", Some(S / 2)),
            ("7us", Some(7_000)),
            ("7usec", Some(7_000)),
            ("1m30s", None),
            ("0.5", None),
            ("0.5s", None),
            ("-1", None),
            ("abc", None),
            ("99999999999d", None),
        ] {
            assert_eq!(seconds(text).ok().map(|n| n.0), expected, "{text}");
        }
        assert_eq!(micros("20"), Ok(Nanos(20_000)));
        assert_eq!(micros("20ms"), Ok(Nanos(20_000_000)));
        assert_eq!(seconds_range("2"), Ok((Nanos(2 * S), Nanos(2 * S))));
        assert_eq!(seconds_range("3-1"), Ok((Nanos(S), Nanos(3 * S))));
        assert_eq!(seconds_range("500ms-2s"), Ok((Nanos(S / 2), Nanos(2 * S))));
        assert!(seconds_range("-1").is_err());
        assert!(seconds_range("1-").is_err());
    }

    #[test]
    fn lists_for_each_operation() {
        for (text, expected) in [
            ("4k", [Some("4k"); 3]),
            ("4k,8k", [Some("4k"), Some("8k"), Some("8k")]),
            (",16k", [None, Some("16k"), Some("16k")]),
            ("4k,,16k", [Some("4k"), None, Some("16k")]),
            ("8k,", [Some("8k"), None, None]),
        ] {
            assert_eq!(per_operation(text), Ok(expected), "{text}");
        }
        assert!(per_operation("1,2,3,4").is_err());
    }

    #[test]
    fn name_lists() {
        for (text, expected) in [
            ("a", vec!["a"]),
            ("a:b", vec!["a", "b"]),
            ("/dev/disk/x\\:y:b", vec!["/dev/disk/x:y", "b"]),
            ("a::b:", vec!["a", "b"]),
            ("a\\b", vec!["a\\b"]),
            ("sim:a?size=1g:sim:b:c", vec!["sim:a?size=1g", "sim:b", "c"]),
            ("x:sim\\:a", vec!["x", "sim:a"]),
            ("./sim:x:sim:", vec!["./sim", "x", "sim:"]),
        ] {
            assert_eq!(names(text).unwrap(), expected, "{text}");
        }
        assert!(names("").is_err());
        assert!(names("::").is_err());
    }

    #[test]
    fn percentile_lists() {
        assert_eq!(percentiles("99.9:50:99"), Ok(vec![50.0, 99.0, 99.9]));
        assert_eq!(percentiles("0:100"), Ok(vec![0.0, 100.0]));
        assert_eq!(percentiles("50,99"), Ok(vec![50.0, 99.0]));
        for bad in ["", "101", "-1", "nan", "inf", "50:", "50,"] {
            assert!(percentiles(bad).is_err(), "{bad}");
        }
        assert!(percentiles(&vec!["1"; 20].join(":")).is_ok());
        assert!(percentiles(&vec!["1"; 21].join(":")).is_err());
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(cpus("0,2-4,3"), Ok(vec![0, 2, 3, 4]));
        assert_eq!(cpus("6,1-3,2-5,1"), Ok(vec![1, 2, 3, 4, 5, 6]));
        let often = cpus(&vec!["0-8191"; 10_000].join(",")).unwrap();
        assert!(often.len() == 8_192 && often.capacity() < 32_768, "{}", often.capacity());
        for bad in ["", "x", "3-1", "1-", "-1", "0-99999999999"] {
            assert!(cpus(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn choice_errors_list_the_valid_values() {
        let choices = [("none", 0), ("sync", 1)];
        assert_eq!(choice("sync", &choices), Ok(1));
        assert_eq!(choice("x", &choices).unwrap_err(), "valid values are none, sync");
    }
}
