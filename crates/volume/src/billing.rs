//! Billing of on-demand bursts: transactions beyond the baseline, per second.

use crate::rate::TokenRate;
use crate::stage::LimitStage;
use crate::unit::RequestCharge;

/// ns per second.
const SECOND: u64 = 1_000_000_000;

/// The rule for on-demand bursts: each second bills the I/Os beyond the baseline, or the bytes beyond it in
/// transactions, whichever is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Billing {
    /// Bytes per transaction.
    pub transaction_bytes: u64,
}

/// Adds up the billed transactions.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    billing: Billing,
    base_ios: u64,
    base_bytes: u64,
    /// The current second, and its counts.
    second: u64,
    ios: u64,
    bytes: u64,
    billed: u64,
}

impl Meter {
    pub(crate) fn new(billing: Billing, stage: &LimitStage) -> Self {
        // No request exceeds a limit that is not on demand, so nothing is billed.
        let base = |limit: Option<crate::Limit>| match limit {
            Some(crate::Limit::OnDemand { base, .. }) => in_a_second(base),
            _ => u64::MAX,
        };
        let (base_ios, base_bytes) = (base(stage.ios), base(stage.bytes));
        Meter { billing, base_ios, base_bytes, second: 0, ios: 0, bytes: 0, billed: 0 }
    }

    pub(crate) fn count(&mut self, at: u64, cost: RequestCharge) {
        let second = at / SECOND;
        if second != self.second {
            self.billed += self.open();
            (self.second, self.ios, self.bytes) = (second, 0, 0);
        }
        self.ios += cost.ios;
        self.bytes += cost.bytes;
    }

    /// Transactions billed, including those of the current second.
    pub(crate) fn billed(&self) -> u64 {
        self.billed + self.open()
    }

    fn open(&self) -> u64 {
        let bytes = self.bytes.saturating_sub(self.base_bytes);
        self.ios.saturating_sub(self.base_ios).max(bytes / self.billing.transaction_bytes)
    }
}

fn in_a_second(rate: TokenRate) -> u64 {
    u64::try_from(rate.in_ns(SECOND)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;

    const MB: u64 = 1_000_000;

    /// Checks the bill of a P30 (5,000 IOPS and 200 MB/s); a slot is (seconds, I/Os per second, MB/s).
    fn check(slots: &[(u64, u64, u64)], expected: u64) {
        let rate = |tokens| TokenRate::per_second(tokens).unwrap();
        let stage = LimitStage {
            ios: Some(Limit::OnDemand { base: rate(5000), burst: rate(30_000) }),
            bytes: Some(Limit::OnDemand { base: rate(200 * MB), burst: rate(1000 * MB) }),
            ..LimitStage::default()
        };
        // A MB counts as 1,024 KB when divided by 256, so a transaction is a quarter of one.
        let mut meter = Meter::new(Billing { transaction_bytes: MB / 4 }, &stage);
        let mut second = 0;
        for &(seconds, ios, megabytes) in slots {
            for _ in 0..seconds {
                meter.count(second * SECOND + 7, RequestCharge { ios, bytes: megabytes * MB });
                second += 1;
            }
        }
        assert_eq!(meter.billed(), expected, "{slots:?}");
    }

    #[test]
    fn bills_match_the_providers_examples() {
        check(&[(600, 4000, 50), (10, 6000, 50), (2930, 4900, 200), (60, 7000, 50)], 130_000);
        check(&[(5, 10_000, 300)], 25_000);
        check(&[(5, 6000, 600)], 8_000);
        check(&[(5, 5000, 200)], 0);
    }
}
