//! Rates at which requests are due, whether or not the target keeps up.

use serde::{Deserialize, Serialize};

use crate::{BlockSize, Nanos, PerOp, is_default};

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
    /// A sleep may exceed a due time by this much, so that one wake-up serves several requests; 0 = it ends when the next
    /// request is due.
    #[serde(rename = "coalescing_ns", skip_serializing_if = "is_default")]
    pub coalescing: Nanos,
}

impl RatePlan {
    /// True if any operation has a rate.
    pub fn is_limited(&self) -> bool {
        self.rates.iter().any(|(_, rate)| rate.is_some())
    }

    /// Mean time from one request to the next over all operations, ns; infinite without a rate.
    pub fn mean_gap_ns(&self) -> f64 {
        let per_ns = self.rates.iter().filter_map(|(_, rate)| Some(1.0 / (*rate)?.mean_gap_ns()));
        1.0 / per_ns.fold(0.0, |sum, one| sum + one)
    }

    /// The same rates, with sleeps that may exceed a due time by the whole gaps within `span`, so that they end when the
    /// last of several requests is due. Random arrivals are never coalesced.
    #[must_use]
    pub fn coalesced(self, span: Nanos) -> RatePlan {
        /// Of a gap, against the rounding of the division.
        const ROUNDING: f64 = 1e-6;
        let gap_ns = self.mean_gap_ns();
        let gaps = (span.0 as f64 / gap_ns + ROUNDING).floor();
        let is_dense = self.process == RateProcess::Linear && gaps >= 1.0;
        let coalescing = if is_dense { Nanos((gaps * gap_ns).round() as u64) } else { Nanos::ZERO };
        RatePlan { coalescing, ..self }
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
    fn dense_even_rates_are_coalesced() {
        let plan = |read, write, process| RatePlan {
            rates: PerOp { read: Rate::iops(read), write: Rate::iops(write), trim: None },
            process,
            ..RatePlan::default()
        };
        for (read, write, process, expected) in [
            (1_000_000, 0, RateProcess::Linear, 20_000),
            (100_000, 0, RateProcess::Linear, 20_000),
            (80_000, 0, RateProcess::Linear, 12_500),
            (50_000, 0, RateProcess::Linear, 20_000),
            (49_999, 0, RateProcess::Linear, 0),
            (30_000, 30_000, RateProcess::Linear, 16_667),
            (100_000, 0, RateProcess::Poisson, 0),
            (0, 0, RateProcess::Linear, 0),
        ] {
            let coalesced = plan(read, write, process).coalesced(Nanos(20_000));
            assert_eq!(coalesced.coalescing, Nanos(expected), "{read} {write} {process:?}");
        }
        let gap_ns = plan(30_000, 20_000, RateProcess::Linear).mean_gap_ns();
        assert!((gap_ns - 20_000.0).abs() < 1e-6, "{gap_ns}");
        assert_eq!(RatePlan::default().mean_gap_ns(), f64::INFINITY);
    }

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
