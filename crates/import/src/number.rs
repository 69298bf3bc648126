//! Numbers with their units, and how exactly they are printed.

use fathom_record::import::{Figure, FigureNumber, MissingReason};

/// Which of fio's unit words a text has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UnitStyle {
    /// fio 1.x and 2.x: `KB` is 1,024 bytes. The digits behind a point are the remainder without its leading zeros.
    Legacy,
    /// The same under `kb_base=1000`.
    LegacyDecimal,
    /// fio 3.x: `KiB` and `kB`.
    Modern,
    /// Nothing tells: only units that have one meaning are read.
    #[default]
    Unknown,
}

/// A number as printed, scaled to base units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    pub value: f64,
    pub resolution: f64,
}

/// What was read, or why not.
pub(crate) type ReadResult = Result<Reading, MissingReason>;

impl Reading {
    /// As a figure.
    pub fn figure<T: FigureNumber>(self) -> Result<Figure<T>, MissingReason> {
        Figure::printed(self.value, self.resolution).ok_or(MissingReason::Unreadable)
    }
}

/// A number in front of a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number<'a> {
    pub value: f64,
    /// Digits behind the point.
    pub decimals: usize,
    /// The text behind it, trimmed.
    pub unit: &'a str,
}

impl<'a> Number<'a> {
    /// The number at the beginning of `text`.
    pub fn parse(text: &'a str) -> Option<Number<'a>> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (digits, unit) = text.split_at(end);
        // A point that ends a sentence is none of the number.
        let digits = digits.strip_suffix('.').unwrap_or(digits);
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let value = digits.parse::<f64>().ok()?;
        (digits.starts_with(|c: char| c.is_ascii_digit()) && value.is_finite()).then_some(Number {
            value,
            decimals,
            unit: unit.trim(),
        })
    }

    /// Scaled, with `resolution` in the printed unit.
    fn scaled(self, scale: f64, resolution: f64) -> Reading {
        Reading { value: self.value * scale, resolution: resolution * scale }
    }

    /// Half of the last digit.
    fn half_digit(self) -> f64 {
        0.5 * 10_f64.powi(-(self.decimals.min(300) as i32))
    }
}

/// Half of the last digit, of a number without a unit but `%`: `99.57%`.
pub(crate) fn real(text: &str) -> ReadResult {
    let number = Number::parse(text).ok_or(MissingReason::Unreadable)?;
    match number.unit {
        "" | "%" => Ok(number.scaled(1.0, number.half_digit())),
        _ => Err(MissingReason::Unreadable),
    }
}

/// A count, printed in full or as `1720.4k`.
pub(crate) fn count(text: &str, style: UnitStyle) -> ReadResult {
    amount(text, style, 0.0)
}

/// A rate of I/Os, of which a whole number is what is left of division.
pub(crate) fn iops(text: &str, style: UnitStyle) -> ReadResult {
    const REMAINDER: f64 = 1.0;
    let read = amount(text, style, REMAINDER)?;
    // That remainder is lost before a prefix is.
    let lost = if read.resolution > REMAINDER { REMAINDER } else { 0.0 };
    Ok(Reading { resolution: read.resolution + lost, ..read })
}

/// A number with a prefix of 1,000; a whole one without a prefix has this resolution.
fn amount(text: &str, style: UnitStyle, whole: f64) -> ReadResult {
    let number = Number::parse(text).ok_or(MissingReason::Unreadable)?;
    let level = match number.unit {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        _ => return Err(MissingReason::Unreadable),
    };
    Ok(prefixed(number, 1000.0, level, style, whole))
}

fn prefixed(number: Number<'_>, base: f64, level: i32, style: UnitStyle, whole: f64) -> Reading {
    let is_legacy = matches!(style, UnitStyle::Legacy | UnitStyle::LegacyDecimal);
    let resolution = match (level, number.decimals) {
        (0, 0) => whole,
        (_, 0) => 1.0,
        _ if is_legacy => 1.0,
        // Of several divisions, only the last has a remainder.
        (2.., _) => number.half_digit() + 1.0 / base,
        _ => number.half_digit(),
    };
    number.scaled(base.powi(level), resolution)
}

/// The base and power of a unit of bytes, with or without `/s`.
fn byte_unit(unit: &str, style: UnitStyle) -> Option<(f64, i32)> {
    let unit: String = unit.chars().filter(|c| !c.is_whitespace()).collect();
    let unit = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("/sec")).unwrap_or(&unit);
    if matches!(unit, "B" | "b" | "bytes" | "byte") {
        return Some((1024.0, 0));
    }
    let level = "KMGTPE".find(unit.chars().next()?.to_ascii_uppercase())? as i32 + 1;
    let rest = &unit[1..];
    if rest == "iB" || rest == "ib" || rest == "i" {
        return Some((1024.0, level));
    }
    let is_plain = matches!(rest, "" | "B" | "b");
    match style {
        UnitStyle::Legacy if is_plain => Some((1024.0, level)),
        UnitStyle::LegacyDecimal if is_plain => Some((1000.0, level)),
        // Of the SI prefixes, only that of 1,000 is a small letter.
        UnitStyle::Modern if rest == "B" && !unit.starts_with('K') => Some((1000.0, level)),
        UnitStyle::Unknown if unit == "kB" => Some((1000.0, level)),
        _ => None,
    }
}

/// Bytes, or bytes per second: `4096.0MB`, `206MiB/s`.
pub(crate) fn bytes(text: &str, style: UnitStyle) -> ReadResult {
    let number = Number::parse(text).ok_or(MissingReason::Unreadable)?;
    bytes_in(number, number.unit, style)
}

/// The same with the unit elsewhere: in the head of a line.
pub(crate) fn bytes_in(number: Number<'_>, unit: &str, style: UnitStyle) -> ReadResult {
    let (base, level) = byte_unit(unit, style).ok_or(MissingReason::UnknownUnit)?;
    Ok(prefixed(number, base, level, style, 0.0))
}

/// A statistic of a rate over windows, in the unit of its line: means have all their digits.
pub(crate) fn window_rate(text: &str, unit: &str, style: UnitStyle) -> ReadResult {
    let number =
        Number::parse(text).filter(|number| number.unit.is_empty()).ok_or(MissingReason::Unreadable)?;
    let (base, level) = byte_unit(unit, style).ok_or(MissingReason::UnknownUnit)?;
    let resolution = if number.decimals == 0 { 1.0 } else { number.half_digit() };
    Ok(number.scaled(base.powi(level), resolution))
}

/// Nanoseconds of a unit of time.
pub(crate) fn time_unit(unit: &str) -> Option<f64> {
    Some(match unit.trim() {
        "ns" | "nsec" => 1.0,
        "us" | "usec" => 1e3,
        "ms" | "msec" => 1e6,
        "s" | "sec" => 1e9,
        "min" | "m" => 60e9,
        "h" | "hour" | "hours" => 3600e9,
        _ => return None,
    })
}

/// A time with its unit, ns: `347640msec`, `9.01 s`. A whole number is what is left of division.
pub(crate) fn time(text: &str) -> ReadResult {
    let number = Number::parse(text).ok_or(MissingReason::Unreadable)?;
    let scale = time_unit(number.unit).ok_or(MissingReason::UnknownUnit)?;
    let resolution = if number.decimals == 0 { 1.0 } else { number.half_digit() };
    // A whole number of ns is exact.
    Ok(number.scaled(scale, if scale == 1.0 && number.decimals == 0 { 0.0 } else { resolution }))
}

/// A time whose unit is elsewhere, ns: `min=53`, `max=1720.4k`.
pub(crate) fn time_in(text: &str, unit: &str, style: UnitStyle) -> ReadResult {
    // fio prints no latency in seconds: the unit has lost its first letter.
    let scale = time_unit(unit).filter(|&scale| scale < 1e9).ok_or(MissingReason::UnknownUnit)?;
    let number = Number::parse(text).ok_or(MissingReason::Unreadable)?;
    let reading = match number.unit {
        "" if number.decimals == 0 => number.scaled(1.0, 1.0),
        "" => number.scaled(1.0, number.half_digit()),
        _ => amount(text, style, 1.0)?,
    };
    Ok(Reading { value: reading.value * scale, resolution: reading.resolution * scale })
}

#[cfg(test)]
mod tests {
    use super::*;
    use UnitStyle::{Legacy, LegacyDecimal, Modern, Unknown};

    fn check(read: ReadResult, value: f64, resolution: f64) {
        let read = read.unwrap();
        assert!((read.value - value).abs() < 1e-6 * value.max(1.0), "{read:?} {value}");
        assert!((read.resolution - resolution).abs() < 1e-6 * resolution.max(1.0), "{read:?} {resolution}");
    }

    #[test]
    fn a_figure_is_as_exact_as_its_digits() {
        check(iops("4.2k", Modern), 4_200.0, 51.0);
        // fio prints 17350.65 as 17.3k.
        check(iops("17.3k", Modern), 17_300.0, 51.0);
        check(count("4.2k", Modern), 4_200.0, 50.0);
        check(iops("1782", Modern), 1_782.0, 1.0);
        check(iops("10.4M", Modern), 10_400_000.0, 51_001.0);
        check(real("99.57%"), 99.57, 0.005);
        check(time("347640msec"), 347_640e6, 1e6);
        check(time("1.26 ms"), 1.26e6, 5e3);
        check(time_in("135.46", "usec", Legacy), 135_460.0, 5.0);
        check(time_in("1720.4k", "nsec", Modern), 1_720_400.0, 50.0);
    }

    #[test]
    fn legacy_units_are_of_1024_and_lose_zeros_behind_the_point() {
        check(bytes("346522KB/s", Legacy), 346_522.0 * 1024.0, 1024.0);
        check(bytes("4096.0MB", Legacy), 4_294_967_296.0, 1_048_576.0);
        check(bytes("4096KB", LegacyDecimal), 4_096_000.0, 1000.0);
        check(iops("12.8K", Legacy), 12_800.0, 1001.0);
    }

    #[test]
    fn modern_units_say_their_base_and_others_are_not_guessed() {
        check(bytes("206MiB/s", Modern), 206.0 * 1_048_576.0, 1_048_576.0);
        check(bytes("216MB/s", Modern), 216e6, 1e6);
        check(bytes("4096B", Modern), 4096.0, 0.0);
        check(bytes("5 kB/s", Unknown), 5000.0, 1000.0);
        for (text, style) in [("5KB/s", Unknown), ("5MB/s", Unknown), ("5KB/s", Modern), ("5", Legacy)] {
            assert_eq!(bytes(text, style), Err(MissingReason::UnknownUnit), "{text}");
        }
        assert_eq!(time_in("5", "sec", Legacy), Err(MissingReason::UnknownUnit));
        for text in ["", "-nan", "x5", ".5"] {
            assert_eq!(real(text), Err(MissingReason::Unreadable), "{text}");
        }
    }
}
