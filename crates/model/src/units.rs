//! Units of time and size, and their form in text.
//!
//! fio's suffixes, with which `KiB` may mean 1000, belong to fio's grammar in `fathom-options`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Nanoseconds on a session's clock, or a span of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Zero.
    pub const ZERO: Nanos = Nanos(0);
    /// The latest time.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// `seconds` as nanoseconds, saturating.
    pub const fn from_secs(seconds: u64) -> Self {
        Nanos(seconds.saturating_mul(1_000_000_000))
    }

    /// `millis` as nanoseconds, saturating.
    pub const fn from_millis(millis: u64) -> Self {
        Nanos(millis.saturating_mul(1_000_000))
    }

    /// `micros` as nanoseconds, saturating.
    pub const fn from_micros(micros: u64) -> Self {
        Nanos(micros.saturating_mul(1_000))
    }

    /// The span as fractional seconds, for rates and printing.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// `self - earlier`, or zero where `earlier` is later.
    pub const fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, saturating.
    pub const fn plus(self, span: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(span.0))
    }
}

/// A latency for a table: three significant digits and a unit (`551 ns`, `23.4 µs`, `1.10 ms`, `2.50 s`).
pub fn latency(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..999_500 => scaled(ns as f64 / 1e3, "µs"),
        999_500..999_500_000 => scaled(ns as f64 / 1e6, "ms"),
        _ => scaled(ns as f64 / 1e9, "s"),
    }
}

fn scaled(value: f64, unit: &str) -> String {
    let digits = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {unit}")
}

/// A byte count in binary units (`512 B`, `4.0 KiB`, `1.5 GiB`).
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value >= 100.0 { format!("{value:.0} {}", UNITS[unit]) } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A whole number with thousands separated by commas (`3,001`).
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A span for people: `850 ms`, `12 s`, `3 min 20 s`, `2 h 05 min`, `10 h`.
pub fn duration(span: Nanos) -> String {
    let secs = span.0.saturating_add(500_000_000) / 1_000_000_000;
    match secs {
        _ if span.0 < 1_000_000_000 => format!("{} ms", span.as_millis()),
        0..60 => format!("{secs} s"),
        60..3600 if secs.is_multiple_of(60) => format!("{} min", secs / 60),
        60..3600 => format!("{} min {:02} s", secs / 60, secs % 60),
        _ => match ((secs + 30) / 3600, (secs + 30) % 3600 / 60) {
            (hours, 0) => format!("{hours} h"),
            (hours, minutes) => format!("{hours} h {minutes:02} min"),
        },
    }
}

/// Parses a size of fathom's own commands: `k`, `m`, `g`, `t` and `KiB` … are powers of 1024, `kB`, `MB` … of 1000.
///
/// A fraction is accepted if the result is a whole number of bytes (`1.5g`).
pub fn parse_bytes(text: &str) -> Result<u64, ParseSizeError> {
    let fail = || ParseSizeError { text: text.to_owned() };
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

/// Parses a time span of fathom's own commands: `30`, `30s`, `2m`, `1h`, `500ms`; a plain number is seconds.
pub fn parse_duration(text: &str) -> Result<Nanos, ParseDurationError> {
    let fail = || ParseDurationError { text: text.to_owned() };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, suffix) = trimmed.split_at(split);
    let scale = match suffix.trim() {
        "" | "s" | "sec" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        "ns" => 1.0,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "d" => 86400e9,
        _ => return Err(fail()),
    };
    let value: f64 = number.parse().map_err(|_| fail())?;
    let ns = value * scale;
    if ns.is_finite() && ns < u64::MAX as f64 { Ok(Nanos(ns.round() as u64)) } else { Err(fail()) }
}

/// An invalid size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSizeError {
    text: String,
}

impl fmt::Display for ParseSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a size: write bytes, or a number with k, m, g, t, KiB … or kB, MB …",
            self.text
        )
    }
}

impl std::error::Error for ParseSizeError {}

/// An invalid time span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseDurationError {
    text: String,
}

impl fmt::Display for ParseDurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a duration: write seconds, or a number with ms, s, m, h or d", self.text)
    }
}

impl std::error::Error for ParseDurationError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_three_significant_digits() {
        for (ns, expected) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (23_440, "23.4 µs"),
            (551_000, "551 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (21_300_000, "21.3 ms"),
            (2_500_000_000, "2.50 s"),
        ] {
            assert_eq!(latency(ns), expected, "{ns}");
        }
    }

    #[test]
    fn byte_counts_have_binary_units() {
        for (count, expected) in
            [(0, "0 B"), (1023, "1023 B"), (4096, "4.0 KiB"), (1 << 30, "1.0 GiB"), (200 << 20, "200 MiB")]
        {
            assert_eq!(bytes(count), expected);
        }
    }

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
    fn durations_are_parsed_and_printed() {
        for (text, expected) in [
            ("30", Some(30_000_000_000)),
            ("500ms", Some(500_000_000)),
            ("2m", Some(120_000_000_000)),
            ("1.5h", Some(5_400_000_000_000)),
            ("1m30s", None),
            ("", None),
        ] {
            assert_eq!(parse_duration(text).ok(), expected.map(Nanos), "{text}");
        }
        assert_eq!(duration(Nanos::from_secs(200)), "3 min 20 s");
        assert_eq!(duration(Nanos::from_millis(850)), "850 ms");
        assert_eq!(duration(Nanos(u64::MAX)), "5124095 h 35 min");
        assert_eq!(duration(Nanos::from_secs(7500)), "2 h 05 min");
        assert_eq!(duration(Nanos::from_secs(7529)), "2 h 05 min");
        assert_eq!(duration(Nanos::from_secs(7530)), "2 h 06 min");
        assert_eq!(duration(Nanos::from_secs(35_997)), "10 h");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
