//! Whether hosts share a limit: their total stays the same while their shares change.
//!
//! What one host gains another loses, so the variance of the total is smaller than the sum of the variances of the hosts. If the
//! hosts were independent, the sum of their sample covariances over `m` blocks would be near 0, with the variance
//! `sum of Vi Vj over pairs / (m - 1)`; it must lie 2.33 standard deviations below (1 %), by the rates and, because slow drifts of
//! two hosts look like an exchange, by the changes from block to block too. A limit also keeps the total within 2 %, as the cap of
//! a volume does.

use fathom_record::FleetTest;
use fathom_stats::sample::{mean, variance};
use serde::Serialize;

use super::HostResult;
use super::blocks::RateBlocks;

/// Fewest hosts and blocks. Of 12 blocks or fewer not even a perfect exchange of many hosts lies far enough below zero.
const MIN_HOSTS: usize = 2;
const MIN_BLOCKS: usize = 16;
/// Most blocks that the time is divided into.
const MAX_BLOCKS: usize = 60;
/// Most that the total varies at a limit.
const MAX_TOTAL_CV: f64 = 0.02;
/// Least that the shares must change to tell anything: their deviations together, as a share of the total.
const MIN_SHARE_CV: f64 = 0.005;
/// Most of the hosts' variances that the total has.
const MAX_VARIANCE: f64 = 0.25;
/// Standard deviations below zero of the sum of covariances: 1 %, on one side.
const DEVIATIONS: f64 = 2.326;

/// Whether hosts share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharedLimitVerdict {
    /// They do.
    Shown,
    /// Nothing shows it: the total varies, or it does not vary less than the hosts.
    NotShown,
    /// It cannot be told.
    Inconclusive,
}

/// Whether hosts share a limit, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedLimit {
    /// Whether they do.
    pub verdict: SharedLimitVerdict,
    /// Why, as a sentence.
    pub reason: String,
    /// Mean rate of all hosts together over the blocks.
    pub iops: Option<f64>,
    /// Coefficient of variation of the total.
    pub total_cv: Option<f64>,
    /// Deviations of the hosts together, as a share of the total.
    pub share_cv: Option<f64>,
}

/// How rates vary together.
struct Joint {
    /// Variance of the total over the sum of the variances of the hosts.
    variance_fraction: f64,
    /// Sum of the covariances in standard deviations of that of independent hosts.
    deviations: f64,
}

impl SharedLimit {
    /// Whether hosts that completed a test share a limit.
    pub(super) fn of(fleet: &FleetTest, hosts: &[&HostResult]) -> SharedLimit {
        let blocks = RateBlocks::of(fleet, hosts, MAX_BLOCKS);
        let (count, hosts) = (blocks.count(), blocks.hosts.len());
        if hosts < MIN_HOSTS || count < MIN_BLOCKS {
            let reason = format!(
                "{hosts} hosts have {count} blocks of a second or more in common; needs {MIN_HOSTS} \
                 hosts and {MIN_BLOCKS} blocks."
            );
            return SharedLimit {
                verdict: SharedLimitVerdict::Inconclusive,
                reason,
                iops: None,
                total_cv: None,
                share_cv: None,
            };
        }
        let totals = totals(&blocks.rates);
        let iops = mean(&totals);
        let spread: f64 = blocks.rates.iter().map(|rates| variance(rates)).sum();
        let fraction = |deviation: f64| if iops > 0.0 { deviation / iops } else { 0.0 };
        let (total_cv, share_cv) = (fraction(variance(&totals).sqrt()), fraction(spread.sqrt()));
        let (verdict, reason) = judge(&blocks.rates, total_cv, share_cv);
        let (iops, total_cv, share_cv) = (Some(iops), Some(total_cv), Some(share_cv));
        SharedLimit { verdict, reason, iops, total_cv, share_cv }
    }
}

fn judge(rates: &[Vec<f64>], total_cv: f64, share_cv: f64) -> (SharedLimitVerdict, String) {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let (total, shares) = (percent(total_cv), percent(share_cv));
    if share_cv < MIN_SHARE_CV {
        let reason = format!(
            "the shares of the hosts hardly change (CV {shares}): a limit in common and one of each look alike."
        );
        return (SharedLimitVerdict::Inconclusive, reason);
    }
    if total_cv > MAX_TOTAL_CV {
        return (SharedLimitVerdict::NotShown, format!("the total varies (CV {total})."));
    }
    let changes: Vec<Vec<f64>> =
        rates.iter().map(|rates| rates.windows(2).map(|pair| pair[1] - pair[0]).collect()).collect();
    let is_exchange = |rates: &[Vec<f64>]| {
        let joint = Joint::of(rates);
        joint.variance_fraction < MAX_VARIANCE && joint.deviations < -DEVIATIONS
    };
    if is_exchange(rates) && is_exchange(&changes) {
        let reason = format!("the total is constant (CV {total}) while the shares change (CV {shares}).");
        (SharedLimitVerdict::Shown, reason)
    } else {
        let reason =
            format!("the total (CV {total}) does not vary clearly less than the hosts do (CV {shares}).");
        (SharedLimitVerdict::NotShown, reason)
    }
}

impl Joint {
    fn of(rates: &[Vec<f64>]) -> Joint {
        let variances: Vec<f64> = rates.iter().map(|rates| variance(rates)).collect();
        let sum: f64 = variances.iter().sum();
        let squares: f64 = variances.iter().map(|variance| variance * variance).sum();
        let blocks = rates.first().map_or(0, Vec::len);
        // Pairs of hosts, each counted once.
        let pairs = ((sum * sum - squares) / 2.0).max(0.0);
        let deviation = 2.0 * (pairs / (blocks.max(2) - 1) as f64).sqrt();
        let total = variance(&totals(rates));
        Joint {
            variance_fraction: if sum > 0.0 { total / sum } else { 1.0 },
            deviations: if deviation > 0.0 { (total - sum) / deviation } else { 0.0 },
        }
    }
}

/// The rate of all hosts together, block by block.
fn totals(rates: &[Vec<f64>]) -> Vec<f64> {
    let blocks = rates.first().map_or(0, Vec::len);
    (0..blocks).map(|block| rates.iter().map(|rates| rates[block]).sum()).collect()
}
