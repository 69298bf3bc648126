//! Serialised forms that differ from serde's defaults: 128-bit sums as decimal text, which loses no digits, and
//! histograms as the list of their non-empty bins, which is shorter.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Histogram;

/// `u128` as a decimal string, because JSON readers may keep only 53 bits of a number.
pub(crate) mod wide {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// The largest valid sum: 1,024 of them can be added without overflow.
    const MAX: u128 = 1 << 118;

    pub(crate) fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number =
            text.parse().map_err(|_| D::Error::custom(format_args!("'{text}' is not a whole number")))?;
        if number > MAX {
            return Err(D::Error::custom(format_args!("{number} is larger than any sum of a run")));
        }
        Ok(number)
    }
}

/// `[[bin, count], …]`, ascending.
impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.sparse())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<(usize, u64)>::deserialize(deserializer).map(Histogram::from_sparse)
    }
}
