//! Words that several commands take on their command lines.

use fathom_model::Nanos;
use fathom_model::units::{duration, parse_duration};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Beyond the refill of any burst bucket, and the time that any device takes to be read.
const MAX_BUDGET: Nanos = Nanos::from_secs(30 * 86_400);

/// A time that is enough for `what`, which needs `least_s` seconds.
pub fn time_for(
    what: &'static str,
    least_s: u64,
) -> impl Fn(&str) -> Result<Nanos, String> + Clone + Send + Sync + 'static {
    let least = Nanos::from_secs(least_s);
    move |text| match parse_duration(text) {
        Ok(time) if time < least => Err(format!("{what} needs at least {}", duration(least))),
        Ok(time) if time > MAX_BUDGET => Err("the longest time budget is 30 days".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// `names` as a choice: `a, b or c`.
pub fn any_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A time that is not nothing.
pub fn positive_duration(text: &str) -> Result<Nanos, String> {
    match parse_duration(text) {
        Ok(Nanos(0)) => Err("the time must be above 0".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a date or a time in `zone`, or one with its own offset (`2026-11-01T14:00:00Z`), ms since the epoch; `None` where it is
/// neither.
pub fn date_in(text: &str, zone: &TimeZone) -> Option<u64> {
    let stamp = text.parse::<Timestamp>().ok();
    let civil = || zone.to_timestamp(text.parse::<DateTime>().ok()?).ok();
    u64::try_from(stamp.or_else(civil)?.as_millisecond()).ok()
}

/// `values` ascending, each once.
pub fn sorted_once<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values.dedup();
    values
}

/// The one of `all` whose `name` is `text`.
pub fn one_of<T: Copy>(all: &[T], name: fn(T) -> &'static str, text: &str) -> Result<T, String> {
    all.iter().copied().find(|&one| name(one) == text.trim()).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|&one| name(one)).collect();
        format!("use one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_names_all() {
        for (names, expected) in [(&["a", "b", "c"][..], "a, b or c"), (&["a"], "a"), (&[], "")] {
            assert_eq!(any_of(names), expected);
        }
    }

    #[test]
    fn times_that_are_enough() {
        for (text, expected) in
            [("40m", Some(2400)), ("30", Some(30)), ("29s", None), ("0", None), ("soon", None)]
        {
            assert_eq!(time_for("it", 30)(text).ok(), expected.map(Nanos::from_secs), "{text}");
        }
        assert_eq!(time_for("it", 5)("30d"), Ok(Nanos::from_secs(30 * 86_400)));
        assert_eq!(time_for("it", 5)("721h"), Err("the longest time budget is 30 days".to_owned()));
        assert_eq!(time_for("a sweep", 5)("4s"), Err("a sweep needs at least 5 s".to_owned()));
        assert!(positive_duration("0").is_err() && positive_duration("1ms").is_ok());
    }

    #[test]
    fn dates_have_the_zone_of_the_user_or_their_own() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        for (text, expected) in [
            ("2026-11-23T03:17:05Z", Some(1_795_403_825_000)),
            ("2026-11-23T05:17:05+02:00", Some(1_795_403_825_000)),
            ("2026-11-23T05:17:05", Some(1_795_403_825_000)),
            ("2026-11-23", Some(1_795_384_800_000)),
            ("1969-01-01", None),
            ("tomorrow", None),
        ] {
            assert_eq!(date_in(text, &zone), expected, "{text}");
        }
    }

    #[test]
    fn names_are_said_where_none_fits() {
        let name = |one: bool| if one { "yes" } else { "no" };
        assert_eq!(one_of(&[true, false], name, " no "), Ok(false));
        assert_eq!(one_of(&[true, false], name, "maybe"), Err("use one of yes, no".to_owned()));
    }
}
