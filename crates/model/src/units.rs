//! Units of time and size, and their form in text.
//!
//! fio's suffixes, with which `KiB` may mean 1000, belong to fio's grammar in `fathom-options`.

mod parse;
mod system;

use serde::{Deserialize, Serialize};

pub use parse::{ParseDurationError, ParseSizeError, parse_bytes, parse_capacity, parse_duration};
pub use system::UnitSystem;

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
        999_500_000..999_500_000_000 => scaled(ns as f64 / 1e9, "s"),
        _ => format!("{} s", grouped(ns.saturating_add(500_000_000) / 1_000_000_000)),
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
    UnitSystem::Iec.amount(count)
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
            (999_400_000_000, "999 s"),
            (5_737_600_000_000, "5,738 s"),
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
    fn durations_have_two_units_at_most() {
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
