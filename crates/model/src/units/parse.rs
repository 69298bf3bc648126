//! Sizes and times as the command lines of fathom's own commands take them.

use std::fmt;

use super::Nanos;

/// Parses a size of fathom's own commands: `k`, `m`, `g`, `t` and `KiB` … are powers of 1024, `kB`, `MB` … of 1000.
///
/// A fraction is accepted if the result is a whole number of bytes (`1.5g`).
///
/// # Errors
/// The text is no size.
pub fn parse_bytes(text: &str) -> Result<u64, ParseSizeError> {
    let fail = || ParseSizeError { text: text.to_owned(), lacks_unit: false };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, suffix) = trimmed.split_at(split);
    let scale: u64 = match suffix.trim() {
        "" | "b" | "B" => 1,
        "k" | "K" | "KiB" | "kib" | "Ki" | "ki" => 1 << 10,
        "m" | "M" | "MiB" | "mib" | "Mi" | "mi" => 1 << 20,
        "g" | "G" | "GiB" | "gib" | "Gi" | "gi" => 1 << 30,
        "t" | "T" | "TiB" | "tib" | "Ti" | "ti" => 1 << 40,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return Err(fail()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(scale).ok_or_else(fail);
    }
    let value = number.parse::<f64>().map_err(|_| fail())? * scale as f64;
    if value.fract() != 0.0 || value > 9e15 { Err(fail()) } else { Ok(value as u64) }
}

/// A plain number below this is no capacity in bytes.
const MIN_PLAIN_CAPACITY: u64 = 1 << 20;

/// Parses the size of a volume, a test file or a range, as [`parse_bytes`] does. A plain number is bytes, as in fio; one that
/// would be less than 1 MiB is refused, since whoever types `50` means GiB.
///
/// # Errors
/// The text is no size, or has no unit.
pub fn parse_capacity(text: &str) -> Result<u64, ParseSizeError> {
    let bytes = parse_bytes(text)?;
    let is_plain = text.trim().ends_with(|end: char| end.is_ascii_digit());
    match bytes {
        1..MIN_PLAIN_CAPACITY if is_plain => {
            Err(ParseSizeError { text: text.trim().to_owned(), lacks_unit: true })
        }
        bytes => Ok(bytes),
    }
}

/// Parses a time span of fathom's own commands: `30`, `30s`, `500ms`, `1.5h`, `5m30s`, `5 min 30 s`; a plain number is seconds.
///
/// Units descend, each stands once, and only the last number may have a fraction.
///
/// # Errors
/// The text is no time span.
pub fn parse_duration(text: &str) -> Result<Nanos, ParseDurationError> {
    let fail = || ParseDurationError { text: text.to_owned(), is_too_long: false };
    let too_long = || ParseDurationError { is_too_long: true, ..fail() };
    let (mut rest, mut total, mut last_scale) = (text.trim(), 0_u64, f64::INFINITY);
    loop {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let behind = behind.trim_start();
        let end = behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let scale = match unit {
            // Seconds only where nothing else stands: the 30 of `5m30` could be anything.
            "" if last_scale.is_infinite() => 1e9,
            "s" | "sec" => 1e9,
            "ms" => 1e6,
            "us" | "µs" => 1e3,
            "ns" => 1.0,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            "d" => 86400e9,
            _ => return Err(fail()),
        };
        rest = behind.trim_start();
        let value = number.parse::<f64>().map_err(|_| fail())? * scale;
        let is_misplaced = scale >= last_scale || (!rest.is_empty() && number.contains('.'));
        if is_misplaced || value.is_nan() {
            return Err(fail());
        }
        if value >= u64::MAX as f64 {
            return Err(too_long());
        }
        total = total.checked_add(value.round() as u64).ok_or_else(too_long)?;
        if rest.is_empty() {
            return Ok(Nanos(total));
        }
        last_scale = scale;
    }
}

/// An invalid size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSizeError {
    text: String,
    lacks_unit: bool,
}

impl fmt::Display for ParseSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        if self.lacks_unit {
            return write!(
                f,
                "'{text}' has no unit: write {text}g for GiB, {text}m for MiB or {text}b for bytes"
            );
        }
        write!(f, "'{text}' is not a size: write bytes, or a number with k, m, g, t, KiB … or kB, MB …")
    }
}

impl std::error::Error for ParseSizeError {}

/// An invalid time span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseDurationError {
    text: String,
    is_too_long: bool,
}

impl fmt::Display for ParseDurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        if self.is_too_long {
            return write!(f, "'{text}' is too long: a duration is at most 584 years");
        }
        write!(f, "'{text}' is not a duration: write seconds, or numbers with ms, s, m, h or d, as in 5m30s")
    }
}

impl std::error::Error for ParseDurationError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::duration;

    #[test]
    fn sizes_accept_binary_and_decimal_units() {
        for (text, expected) in [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("4k", Some(4096)),
            ("4KiB", Some(4096)),
            ("4kB", Some(4000)),
            ("1.5g", Some(3 << 29)),
            ("200MB", Some(200_000_000)),
            ("20 GiB", Some(20 << 30)),
            ("", None),
            ("k", None),
            ("-1", None),
            ("4x", None),
            ("1.0001", None),
            ("99999999999999999999", None),
            ("18446744073709551615k", None),
        ] {
            assert_eq!(parse_bytes(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_capacity_has_a_unit_or_is_plausible_in_bytes() {
        for (text, expected) in [
            ("50g", Some(50 << 30)),
            ("50 GB", Some(50_000_000_000)),
            ("1073741824", Some(1 << 30)),
            ("512b", Some(512)),
            ("0", Some(0)),
            ("50", None),
            ("16384 ", None),
        ] {
            assert_eq!(parse_capacity(text).ok(), expected, "{text}");
        }
        let error = parse_capacity(" 50").unwrap_err().to_string();
        assert_eq!(error, "'50' has no unit: write 50g for GiB, 50m for MiB or 50b for bytes");
    }

    #[test]
    fn durations_have_one_unit_or_several_that_descend() {
        for (text, expected_ms) in [
            ("30", Some(30_000)),
            ("500ms", Some(500)),
            ("2m", Some(120_000)),
            ("1.5h", Some(5_400_000)),
            ("5m30s", Some(330_000)),
            ("5 min 30 s", Some(330_000)),
            ("1h 2m 3s 4ms", Some(3_723_004)),
            ("2 h 05 min", Some(7_500_000)),
            ("1d12h", Some(129_600_000)),
            ("1m1.5s", Some(61_500)),
            ("850 ms", Some(850)),
            ("", None),
            ("s", None),
            ("5m30", None),
            ("30s5m", None),
            ("5m5m", None),
            ("1.5m30s", None),
            ("5m 30 x", None),
            ("300000000000000d1s", None),
        ] {
            let expected = expected_ms.map(Nanos::from_millis);
            assert_eq!(parse_duration(text).ok(), expected, "{text}");
        }
        assert_eq!(parse_duration("23.4 µs"), Ok(Nanos(23_400)));
        for text in ["1000000d", "213503d86400h", "99999999999999999999"] {
            let refused = parse_duration(text).map_err(|error| error.to_string());
            assert_eq!(refused, Err(format!("'{text}' is too long: a duration is at most 584 years")));
        }
    }

    #[test]
    fn a_duration_that_is_shown_can_be_typed() {
        for secs in [1, 59, 60, 61, 330, 3600, 7500, 86_400] {
            assert_eq!(parse_duration(&duration(Nanos::from_secs(secs))), Ok(Nanos::from_secs(secs)));
        }
    }
}
