//! Rates at which requests are due, whether or not the target keeps up.

use serde::{Deserialize, Serialize};

use crate::{BlockSize, PerOp};

/// ns per second.
const SECOND: u64 = 1_000_000_000;

/// `requests` in every `per_ns` ns; neither is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredRate")]
pub struct Rate {
    requests: u64,
    per_ns: u64,
}

/// A rate as it is stored, before it is checked.
#[derive(Deserialize)]
struct StoredRate {
    requests: u64,
    per_ns: u64,
}

impl TryFrom<StoredRate> for Rate {
    type Error = &'static str;

    fn try_from(StoredRate { requests, per_ns }: StoredRate) -> Result<Self, Self::Error> {
        if requests == 0 || per_ns == 0 {
            return Err("a rate needs requests and a time above 0");
        }
        Ok(Rate { requests, per_ns })
    }
}

impl Rate {
    /// Upper bound of requests or bytes per second, which no worker reaches.
    const MOST: u64 = 1 << 62;

    /// `requests` per second; `None` at 0.
    pub fn iops(requests: u64) -> Option<Rate> {
        (requests > 0).then_some(Rate { requests: requests.min(Self::MOST), per_ns: SECOND })
    }

    /// Requests of these sizes that move `bytes` per second; `None` at 0. Requests of mixed sizes are evenly spread,
    /// and every 100 of them together keep the rate.
    pub fn bytes_per_second(bytes: u64, block: &BlockSize) -> Option<Rate> {
        let hundred = block.bytes_of_hundred();
        // In lowest terms, so that the product does not overflow needlessly.
        let (requests, of) = match hundred % 100 {
            0 => (1, hundred / 100),
            _ => (100, hundred),
        };
        let per_ns = SECOND.saturating_mul(of.max(1));
        (bytes > 0).then_some(Rate { requests: bytes.saturating_mul(requests).min(Self::MOST), per_ns })
    }

    /// Whole ns from one request to the next, and the remainder in parts of [`Rate::requests`].
    pub fn gap(self) -> (u64, u64) {
        (self.per_ns / self.requests, self.per_ns % self.requests)
    }

    /// Denominator of the remainder of the gap.
    pub fn requests(self) -> u64 {
        self.requests
    }

    /// Mean time from one request to the next, ns.
    pub fn mean_gap_ns(self) -> f64 {
        self.per_ns as f64 / self.requests as f64
    }

    /// Requests that are due in a span of `span_ns`.
    pub fn requests_in(self, span_ns: u64) -> u64 {
        (u128::from(span_ns) * u128::from(self.requests) / u128::from(self.per_ns)) as u64
    }
}

/// When requests are due. The default has no schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RatePlan {
    /// The rate of each operation; `None` = as fast as the queue depth permits.
    pub rates: PerOp<Option<Rate>>,
    /// Distribution of the due times.
    pub process: RateProcess,
}

impl RatePlan {
    /// True if any operation has a rate.
    pub fn is_limited(&self) -> bool {
        self.rates.iter().any(|(_, rate)| rate.is_some())
    }
}

/// Distribution of the due times of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RateProcess {
    /// Evenly spaced.
    #[default]
    Linear,
    /// A Poisson process: random and independent of each other.
    Poisson,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_add_up_to_the_rate_exactly() {
        let gap = |rate: Option<Rate>| rate.map(|rate| (rate.gap(), rate.requests()));
        // 5734.4 bytes on average.
        let mix = BlockSize::of_shares(&[(4096, 60), (8192, 40)]).unwrap();
        for (rate, expected) in [
            (Rate::iops(0), None),
            (Rate::iops(200), Some(((5_000_000, 0), 200))),
            (Rate::iops(3), Some(((333_333_333, 1), 3))),
            (Rate::iops(u64::MAX), Some(((0, SECOND), 1 << 62))),
            (Rate::bytes_per_second(0, &4096.into()), None),
            (Rate::bytes_per_second(1 << 20, &4096.into()), Some(((3_906_250, 0), 1 << 20))),
            (Rate::bytes_per_second(1, &(u64::MAX / 100).into()), Some(((u64::MAX, 0), 1))),
            (Rate::bytes_per_second(573_440, &mix), Some(((10_000_000, 0), 57_344_000))),
        ] {
            assert_eq!(gap(rate), expected, "{rate:?}");
        }
        assert_eq!(
            Rate::iops(200).map(|rate| (rate.mean_gap_ns(), rate.requests_in(12 * SECOND))),
            Some((5e6, 2400))
        );
    }
}
