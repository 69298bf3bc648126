//! Numbers as ioping reads them: fractions, a division, and a suffix in any case (`3.5k`, `1/3s`, `/2`).

use fathom_model::units::parse_duration;

/// Suffixes and what they stand for, in lower case.
type Suffixes = &'static [(&'static str, u64)];

/// Bytes; all suffixes are powers of 1024.
pub const SIZE: Suffixes = &[
    ("", 1),
    ("b", 1),
    ("sector", 512),
    ("page", 4096),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tb", 1 << 40),
    ("tib", 1 << 40),
];

/// Nanoseconds; seconds without a suffix.
const TIME: Suffixes = &[
    ("", 1_000_000_000),
    ("ns", 1),
    ("nsec", 1),
    ("us", 1_000),
    ("usec", 1_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("hour", 3_600_000_000_000),
];

/// Plain numbers.
pub const COUNT: Suffixes =
    &[("", 1), ("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000), ("t", 1_000_000_000_000)];

/// Reads a time as ioping does, or one of several units (`5m30s`), which ioping refuses.
pub fn parse_time(text: &str) -> Result<u64, String> {
    parse(text, TIME).or_else(|error| parse_duration(text).map(|time| time.0).map_err(|_| error))
}

/// Reads `text`; the error is the sentence that ioping has for it.
pub fn parse(text: &str, suffixes: Suffixes) -> Result<u64, String> {
    let (mut value, mut rest) = number(text).unwrap_or((1.0, text));
    let had_number = rest.len() < text.len();
    if let Some(behind) = rest.strip_prefix('/') {
        let (divisor, behind) = number(behind).unwrap_or((1.0, behind));
        value /= divisor;
        rest = behind;
    } else if !had_number {
        return Err(format!("invalid suffix: \"{text}\""));
    }
    let suffix = rest.to_ascii_lowercase();
    let scale = suffixes.iter().find(|(name, _)| *name == suffix).map(|&(_, scale)| scale);
    let scale = scale.ok_or_else(|| format!("invalid suffix: \"{rest}\""))?;
    let scaled = value * scale as f64;
    if scaled.is_nan() || scaled < 0.0 || scaled >= u64::MAX as f64 {
        return Err(format!("integer overflow at parsing argument: {text}"));
    }
    Ok(scaled as u64)
}

/// The number at the beginning, whole numbers also in base 16, and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        return u64::from_str_radix(&hex[..end], 16).ok().map(|value| (value as f64, &hex[end..]));
    }
    let sign = usize::from(text.starts_with(['-', '+']));
    let end =
        text[sign..].find(|c: char| !(c.is_ascii_digit() || c == '.')).map_or(text.len(), |at| at + sign);
    text[..end].parse().ok().map(|value| (value, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_ioping_does() {
        let check = |text: &str, suffixes: Suffixes, expected: Result<u64, &str>| {
            assert_eq!(parse(text, suffixes), expected.map_err(str::to_owned), "{text}");
        };
        check("4k", SIZE, Ok(4096));
        check("4KiB", SIZE, Ok(4096));
        check("3.5k", SIZE, Ok(3584));
        check("1/2k", SIZE, Ok(512));
        check("/2", SIZE, Ok(0));
        check("2sector", SIZE, Ok(1024));
        check("1Page", SIZE, Ok(4096));
        check("1.5m", SIZE, Ok(3 << 19));
        check("0x10", COUNT, Ok(16));
        check("1k", COUNT, Ok(1000));
        check("1/3s", TIME, Ok(333_333_333));
        check("10MSEC", TIME, Ok(10_000_000));
        check("2", TIME, Ok(2_000_000_000));
        check("1hour", TIME, Ok(3_600_000_000_000));
        check("x", COUNT, Err("invalid suffix: \"x\""));
        check("1q", TIME, Err("invalid suffix: \"q\""));
        assert_eq!(parse_time("5m30s"), Ok(330_000_000_000));
        assert_eq!(parse_time("1m1q"), Err("invalid suffix: \"m1q\"".to_owned()));
        check("4 k", SIZE, Err("invalid suffix: \" k\""));
        check("4kk", SIZE, Err("invalid suffix: \"kk\""));
        check("-1", COUNT, Err("integer overflow at parsing argument: -1"));
        check("1/0", COUNT, Err("integer overflow at parsing argument: 1/0"));
        check("99999999t", SIZE, Err("integer overflow at parsing argument: 99999999t"));
        check("", COUNT, Err("invalid suffix: \"\""));
    }
}
