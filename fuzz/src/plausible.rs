//! Whether the numbers of a record can have been counted. Reports add them up, and sums of those that cannot need not fit:
//! a record is read and written whatever they are, and rendered where they are plausible.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Few counters of a worker come to that: 8 PiB, 104 days in ns. A thousand of them fit into 64 bits.
const MOST: u64 = 1 << 53;
/// The same for what is no whole number, or one of more than 64 bits, as sums of squares are.
const MOST_REAL: f64 = 1e36;
/// Fields that are not counted, and may have any value.
const FREE: &[&str] = &["seed", "started_monotonic_ns"];

/// True where every number of the JSON document `text` is plausible.
pub(crate) fn check(text: &str) -> bool {
    serde_json::from_str::<Plausible>(text).is_ok()
}

/// Any JSON value whose numbers are plausible; all else is an error of the deserializer, with its place.
struct Plausible;

impl<'de> Deserialize<'de> for Plausible {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Walk)
    }
}

struct Walk;

impl<'de> Visitor<'de> for Walk {
    type Value = Plausible;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Plausible, E> {
        if number > MOST {
            Err(E::custom(format!("{number} is more than can be counted")))
        } else {
            Ok(Plausible)
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Plausible, E> {
        self.visit_u64(number.unsigned_abs())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Plausible, E> {
        if number.abs() > MOST_REAL {
            Err(E::custom(format!("{number:e} is more than can be counted")))
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
        while list.next_element::<Plausible>()?.is_some() {}
        Ok(Plausible)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Plausible, A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            if FREE.contains(&name.as_str()) {
                fields.next_value::<IgnoredAny>()?;
            } else {
                fields.next_value::<Plausible>()?;
            }
        }
        Ok(Plausible)
    }
}
