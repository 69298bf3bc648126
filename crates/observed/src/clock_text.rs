//! Times as other programs write them, in ns since the epoch.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

/// The latest time that is taken: the year 2200.
const LATEST_NS: u64 = 7_258_118_400 * SECOND_NS;
/// A second, ns.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// An instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instant {
    /// ns since the epoch.
    pub unix_ns: u64,
    /// The text has no offset from UTC.
    pub is_local: bool,
}

/// `2026-11-22T10:00:00Z`, `2026-11-22T10:00:00+00:00`, or without an offset.
pub(crate) fn iso(text: &str) -> Option<Instant> {
    let text = text.trim();
    let zoned = text.parse::<Timestamp>().ok().or_else(|| offset_without_colon(text));
    if let Some(timestamp) = zoned {
        return Some(Instant { unix_ns: unix_ns(timestamp)?, is_local: false });
    }
    civil(text.parse::<DateTime>().ok()?)
}

/// `2026-11-22T10:00:01+0000`, as sysstat writes it.
fn offset_without_colon(text: &str) -> Option<Timestamp> {
    let at = text.len().checked_sub(2)?;
    let (front, back) = (text.get(..at)?, text.get(at..)?);
    let digits = front.get(front.len().checked_sub(3)?..)?;
    let is_offset = digits.starts_with(['+', '-']) && back.bytes().all(|byte| byte.is_ascii_digit());
    if is_offset { format!("{front}:{back}").parse().ok() } else { None }
}

fn civil(time: DateTime) -> Option<Instant> {
    let timestamp = TimeZone::UTC.to_timestamp(time).ok()?;
    Some(Instant { unix_ns: unix_ns(timestamp)?, is_local: true })
}

fn unix_ns(timestamp: Timestamp) -> Option<u64> {
    u64::try_from(timestamp.as_nanosecond()).ok().filter(|&ns| ns <= LATEST_NS)
}

/// Seconds since the epoch, as Prometheus writes them.
pub(crate) fn unix_seconds(seconds: f64) -> Option<u64> {
    let is_possible = (0.0..=(LATEST_NS / SECOND_NS) as f64).contains(&seconds);
    // The decimals of a time of today have a resolution of a quarter of a microsecond: ms are exact.
    is_possible.then(|| (seconds * 1e3).round() as u64 * 1_000_000)
}

/// A date and a time of sysstat: `11/22/2026 10:00:01 AM`, `11/22/26 22:00:01`, `2026-11-22 22:00:01`, `22.11.2026 22:00:01`.
pub(crate) fn locale(text: &str) -> Option<Instant> {
    if let Some(instant) = iso(text) {
        return Some(instant);
    }
    let (day, time) = text.trim().split_once(' ')?;
    at(date(day)?, clock(time)?)
}

/// A time on a day.
pub(crate) fn at(date: Date, time: Time) -> Option<Instant> {
    civil(date.to_datetime(time))
}

/// A date of sysstat. With slashes the month is first, unless it can only be the day.
pub(crate) fn date(text: &str) -> Option<Date> {
    if let Ok(date) = text.parse::<Date>() {
        return Some(date);
    }
    let separator = ['/', '.'].into_iter().find(|separator| text.contains(*separator))?;
    let parts: Vec<i16> = text.split(separator).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [first, second, year] = parts[..] else { return None };
    let year = if year < 100 { year.checked_add(2000)? } else { year };
    let is_day_first = separator == '.' || first > 12;
    let (month, day) = if is_day_first { (second, first) } else { (first, second) };
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// A time of the day: `22:00:01`, or `10:00:01 PM`.
pub(crate) fn clock(text: &str) -> Option<Time> {
    let mut words = text.split_whitespace();
    let mut parts = words.next()?.split(':').map(|part| part.parse::<i8>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() {
        return None;
    }
    let hour = match words.next() {
        None => hour,
        Some("AM" | "am") if (1..=12).contains(&hour) => hour % 12,
        Some("PM" | "pm") if (1..=12).contains(&hour) => hour % 12 + 12,
        Some(_) => return None,
    };
    if words.next().is_some() {
        return None;
    }
    Time::new(hour, minute, second, 0).ok()
}

/// The length of an interval in ISO 8601 (`PT1M`, `P1D`) or as a clock (`0:05:00`), ns.
pub(crate) fn span(text: &str) -> Option<u64> {
    let Some(rest) = text.strip_prefix('P') else {
        let parts: Vec<u64> = text.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [hours, minutes, seconds] = parts[..] else { return None };
        let seconds =
            hours.checked_mul(3_600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)?;
        return seconds.checked_mul(SECOND_NS).filter(|&ns| ns > 0);
    };
    let (mut is_time, mut digits, mut total) = (false, String::new(), 0_u64);
    for sign in rest.chars() {
        let seconds = match (is_time, sign) {
            (false, 'T') => {
                is_time = true;
                continue;
            }
            (_, '0'..='9') => {
                digits.push(sign);
                continue;
            }
            (false, 'D') => 86_400,
            (true, 'H') => 3_600,
            (true, 'M') => 60,
            (true, 'S') => 1,
            _ => return None,
        };
        total = digits.parse::<u64>().ok()?.checked_mul(seconds)?.checked_add(total)?;
        digits.clear();
    }
    if digits.is_empty() { total.checked_mul(SECOND_NS).filter(|&ns| ns > 0) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: u64 = 1_795_341_600 * SECOND_NS;

    #[test]
    fn times_of_every_source() {
        for (text, is_local) in [
            ("2026-11-22T10:00:00Z", false),
            ("2026-11-22T10:00:00+00:00", false),
            ("2026-11-22T12:00:00+0200", false),
            ("2026-11-22T10:00:00", true),
            ("2026-11-22 10:00:00", true),
            ("11/22/2026 10:00:00 AM", true),
            ("11/22/26 10:00:00", true),
            ("22/11/26 10:00:00", true),
            ("22.11.2026 10:00:00", true),
        ] {
            assert_eq!(locale(text), Some(Instant { unix_ns: TEN, is_local }), "{text}");
        }
        for text in [
            "", "x", "11/22/2026", "11/22/2026 25:00:00", "13/13/2026 1:00:00", "1969-12-31T00:00:00Z",
            "9999-01-01T00:00:00Z", "11/22/2026 10:00:00 XM",
        ] {
            assert_eq!(locale(text), None, "{text}");
        }
        assert_eq!(unix_seconds(1_795_341_600.781), Some(TEN + 781_000_000));
        assert_eq!((unix_seconds(-1.0), unix_seconds(f64::NAN), unix_seconds(1e12)), (None, None, None));
    }

    #[test]
    fn twelve_hour_clocks() {
        let of = |text| clock(text).map(|time| time.hour());
        assert_eq!(of("12:00:01 AM"), Some(0));
        assert_eq!(of("12:00:01 PM"), Some(12));
        assert_eq!(of("01:00:01 PM"), Some(13));
        assert_eq!(of("13:00:01 PM"), None);
        assert_eq!(of("13:00"), Some(13));
        assert_eq!(of("13:00:00:00"), None);
    }

    #[test]
    fn spans() {
        for (text, seconds) in [
            ("PT1M", Some(60)),
            ("PT1H30M", Some(5_400)),
            ("P1D", Some(86_400)),
            ("0:05:00", Some(300)),
            ("PT", None),
            ("P1M", None),
            ("PT5", None),
            ("5", None),
            ("99999999999999999999:0:0", None),
        ] {
            assert_eq!(span(text), seconds.map(|seconds: u64| seconds * SECOND_NS), "{text}");
        }
    }
}
