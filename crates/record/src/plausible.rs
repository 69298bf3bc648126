//! Whether the numbers of a record can have been counted. Reports add counters up in 64 bits: a record whose numbers no
//! run can reach is refused when it is read, so that no sum overflows.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The largest counter: 8 PiB, or 104 days in ns. The sum of 2,000 such numbers fits in 64 bits.
const MAX_COUNT: u64 = 1 << 53;
/// The largest counter of a merged record, which is a sum over many hosts. Few of them are added again, and those are checked.
const MAX_SUM: u64 = 1 << 60;
/// The largest time of what was observed, which may be virtual: 36 years in ns. Sums of such times saturate.
const MAX_OBSERVED_NS: u64 = 1 << 60;
/// The largest fraction, and the largest integer of more than 64 bits, such as a sum of squares.
const MAX_REAL: f64 = 1e36;
/// Fields that are never added up: what was asked for, random numbers, clock readings and positions on a device.
const NOT_COUNTED: &[&str] = &["plan", "seed", "started_monotonic_ns", "offset", "size_bytes", "asked_ns"];

/// Whose counters a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counters {
    /// Those of the workers of one host.
    OfOne,
    /// Sums over those of many.
    OfMany,
}

/// Checks every number of the JSON document `text`.
///
/// # Errors
/// A number is too large, with its line and column; the text is not JSON.
pub(crate) fn check(text: &str, counters: Counters) -> Result<(), serde_json::Error> {
    let max = if counters == Counters::OfMany { MAX_SUM } else { MAX_COUNT };
    let mut reader = serde_json::Deserializer::from_str(text);
    Limit { base: max, max, is_observed: false }.deserialize(&mut reader)?;
    reader.end()
}

/// A JSON document whose numbers are plausible.
struct Plausible;

/// The limit of the numbers of a JSON value.
#[derive(Clone, Copy)]
struct Limit {
    /// That of counters.
    base: u64,
    max: u64,
    /// It is a part of what was observed.
    is_observed: bool,
}

impl Limit {
    /// The limit of the member `name`.
    fn of(self, name: &str) -> Limit {
        let is_observed = self.is_observed || name == "observed";
        let is_time = name.ends_with("_ns") || ["min", "max"].contains(&name);
        let max = if is_observed && is_time { MAX_OBSERVED_NS } else { self.base };
        Limit { max, is_observed, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Limit {
    type Value = Plausible;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Plausible, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Limit {
    type Value = Plausible;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Plausible, E> {
        if number > self.max {
            Err(E::custom(format!("{number} is larger than any counter of a run")))
        } else {
            Ok(Plausible)
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Plausible, E> {
        self.visit_u64(number.unsigned_abs())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Plausible, E> {
        if number.abs() > MAX_REAL {
            Err(E::custom(format!("{number:e} is larger than any figure of a run")))
        } else {
            Ok(Plausible)
        }
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Plausible, E> {
        Ok(Plausible)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Plausible, E> {
        Ok(Plausible)
    }

    fn visit_unit<E: Error>(self) -> Result<Plausible, E> {
        Ok(Plausible)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Plausible, A::Error> {
        while list.next_element_seed(self)?.is_some() {}
        Ok(Plausible)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Plausible, A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            if NOT_COUNTED.contains(&name.as_str()) {
                fields.next_value::<IgnoredAny>()?;
            } else {
                fields.next_value_seed(self.of(&name))?;
            }
        }
        Ok(Plausible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_no_run_can_count_are_refused_with_their_place() {
        for plausible in [
            "{\"ios\":9007199254740992}",
            "[1.5,-3,null,true,\"x\"]",
            "{\"seed\":18446744073709551615,\"offset\":1152921504606846975}",
            "{\"sum_squares\":340282366920938463463374607431768211}",
            "{\"observed\":{\"ping\":{\"elapsed_ns\":315360000000000000,\"left_ns\":[315360000000000000]}}}",
        ] {
            check(plausible, Counters::OfOne).unwrap_or_else(|error| panic!("{plausible}: {error}"));
        }
        for (text, expected) in [
            (
                "{\"a\":[{\"ios\":9007199254740993}]}",
                "9007199254740993 is larger than any counter of a run at line 1 column 29",
            ),
            (
                "[-9223372036854775808]",
                "9223372036854775808 is larger than any counter of a run at line 1 column 21",
            ),
            (
                "{\"observed\":{\"elapsed_ns\":[1],\"ios\":9007199254740993}}",
                "9007199254740993 is larger than any counter of a run at line 1 column 52",
            ),
            ("[1e37]", "1e37 is larger than any figure of a run at line 1 column 5"),
        ] {
            assert_eq!(check(text, Counters::OfOne).unwrap_err().to_string(), expected, "{text}");
        }
        assert!(check("{\"ios\":1152921504606846976}", Counters::OfMany).is_ok());
        assert!(check("{\"ios\":1152921504606846977}", Counters::OfMany).is_err());
    }
}
