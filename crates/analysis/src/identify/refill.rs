//! What a rest gives back to a bucket, what it holds, and how long to rest before a probe.

use super::fall::SETTLED_NS;
use super::ledger::{Account, EmptiedBucket, Recovery};
use super::level::ProbeLoad;
use super::probe::{IoDirection, ProbeCounts, ProbeSlice};
use super::script::{Halt, Script};
use super::stretches::stretches;
use crate::identified::BucketUnit;

/// What is taken from a bucket over what it holds, at the most, but for a second at its highest rate.
const MORE: f64 = 1.1;
/// Time to use up what came back, over the least that it takes.
const AGAIN: f64 = 1.4;
/// Share of its credit without which a bucket is nearly empty.
const NEARLY: f64 = 0.9;

/// Share of the budget that a rest takes at the most, and time to be seen dry again, s: where the limits are still to be
/// measured, and at the end.
const EARLY: (f64, f64) = (0.04, 4.0);
const LATE: (f64, f64) = (0.08, 8.0);

impl Script<'_> {
    /// Rests, and looks how much came back of what has not been looked at yet.
    pub(crate) fn refills(&mut self) -> Result<(), Halt> {
        for index in 0..self.found.buckets.len() {
            let bucket = &self.found.buckets[index];
            if !bucket.is_early && bucket.recovery.is_none() {
                self.refill(index)?;
            }
        }
        Ok(())
    }

    /// The same of one bucket.
    pub(crate) fn refill(&mut self, index: usize) -> Result<(), Halt> {
        let bucket = self.found.buckets[index].clone();
        let Account { base, .. } = bucket.account;
        let beyond = (bucket.high - base).max(0.05 * base);
        let Some((full, _)) = self.capacity(&bucket) else { return Ok(()) };
        let (share, settling) = if bucket.is_early { EARLY } else { LATE };
        let longest = (self.spec.budget_ns as f64 / 1e9 * share).max(10.0);
        // Once it is full nothing more comes back; and what came back has to be used up again.
        let rest = (6.0 * beyond / base).clamp(10.0, longest).min(0.6 * full / base);
        // Large requests may exhaust bytes meanwhile, so that fewer I/Os come than the baseline has.
        let block = match bucket.account.kind {
            BucketUnit::Ios => self.block_for(bucket.load.ways, BucketUnit::Ios).unwrap_or(bucket.load.block),
            BucketUnit::Bytes => bucket.load.block,
        };
        let load = ProbeLoad { aim: "after idling", block, ..bucket.load };
        let way = load.way();
        let cost = bucket.account.cost(&self.found, way, block);
        let missing = self.missing_now(&bucket.account);
        let emptying = 4.0 + 1.5 * (full - missing).max(0.0) / beyond;
        let later = self.found.buckets[index..].iter().filter(|bucket| bucket.recovery.is_none()).count();
        let left = self.left_ns() as f64 / 1e9 / if bucket.is_early { 1.0 } else { later.max(1) as f64 };
        let affordable = (left - emptying - settling) / (1.0 + AGAIN * base / beyond);
        let rest = rest.min(longest * beyond / base).min(affordable).max(1.0);
        // It has to be empty when the rest begins, as it is at once after it was exhausted.
        let pieces = [(0.0, emptying), (rest, base * rest / beyond * AGAIN + settling)];
        let is_dry_now = bucket.is_early && bucket.account.kind == BucketUnit::Ios;
        let pieces = &pieces[usize::from(is_dry_now)..];
        let middle = (base + beyond / 2.0) / cost;
        let (mut is_used_up, mut has_risen) = (true, false);
        for &(rest_s, seconds) in pieces {
            let mut probe = self.plain(load);
            probe.rest_ns = (rest_s * 1e3) as u64 * 1_000_000;
            let runtime_ns = (seconds * 1e3) as u64 * 1_000_000;
            (probe.runtime_ns, probe.counts) = (runtime_ns, true);
            let seen = self.ask(probe)?;
            let done = seen.done(way);
            // Where it ended before its time, the budget cut it short.
            let is_whole = done.all_ios() < probe.ios && seen.elapsed_ns >= probe.rest_ns + runtime_ns;
            has_risen |= rises_through(done, probe.rest_ns, middle) || is_whole && done.ends_above(middle);
            is_used_up &= done.ends_at(base / cost);
            let last = done.slices.last().map_or(0, |slice| slice.end_ns);
            let from = probe.rest_ns.min(last);
            let over = done.all_ios() as f64 * cost - base * (last - from) as f64 / 1e9;
            let regained = over.max(0.0);
            let recovery = Recovery {
                rest_s,
                gained: (base * rest_s).min(full),
                regained,
                restored_s: regained / beyond,
                is_used_up,
                has_risen,
                may_be_full: rest_s >= NEARLY * full / base,
            };
            self.found.buckets[index].recovery = Some(recovery).filter(|_| rest_s > 0.0);
        }
        Ok(())
    }

    /// What was taken from a bucket until it was empty, and by how much that varies.
    pub(crate) fn capacity(&self, bucket: &EmptiedBucket) -> Option<(f64, f64)> {
        self.while_dry(bucket, self.missing(&bucket.account))
    }

    /// More was taken once it had run dry than it holds: what it is thought to hold is none.
    pub(crate) fn rises(&self, bucket: &EmptiedBucket) -> bool {
        let Some((capacity, _)) = self.capacity(bucket) else { return false };
        let most = MORE * capacity + bucket.high;
        self.missing(&bucket.account).iter().any(|one| one.0 > bucket.dry.1 && one.1 > most)
    }

    /// Whether a bucket of one direction was empty, or nearly so, at an instant, ns.
    pub(crate) fn was_dry(&self, way: IoDirection, at_ns: u64) -> bool {
        let of_way = self.found.buckets.iter().filter(|bucket| bucket.account.counts(way));
        of_way.into_iter().any(|bucket| {
            let missing = self.missing(&bucket.account);
            let then = missing.iter().rfind(|one| one.0 <= at_ns).map_or(0.0, |one| one.1);
            self.capacity(bucket).is_none_or(|(capacity, _)| then >= NEARLY * capacity)
        })
    }

    /// The same, every request having cost as much as it may.
    pub(crate) fn capacity_at_most(&self, bucket: &EmptiedBucket) -> Option<f64> {
        Some(self.while_dry(bucket, self.missing_at_most(&bucket.account))?.0)
    }

    fn while_dry(&self, bucket: &EmptiedBucket, missing: Vec<(u64, f64)>) -> Option<(f64, f64)> {
        let is_dry = |at: u64| at > bucket.dry.0 + SETTLED_NS && at <= bucket.dry.1;
        let dry: Vec<f64> = missing.into_iter().filter(|one| is_dry(one.0)).map(|one| one.1).collect();
        let mean = dry.iter().sum::<f64>() / dry.len().max(1) as f64;
        let most = dry.iter().map(|one| (one - mean).abs()).fold(0.0, f64::max);
        (!dry.is_empty()).then_some((mean, most))
    }

    /// The rest before `probe` that leaves enough credit for `ios` requests, ns.
    pub(crate) fn rest_for(&self, probe: &super::probe::IdentifyProbe, ios: f64) -> u64 {
        if !self.found.is_resting {
            return 0;
        }
        let mut rest = 0.0f64;
        for bucket in &self.found.buckets {
            let account = &bucket.account;
            let Some(capacity) = bucket.full else { continue };
            let need: f64 = probe
                .ways()
                .filter(|&way| account.counts(way))
                .map(|way| ios * account.cost(&self.found, way, probe.block))
                .sum();
            let over = self.missing_now(account) + need.min(0.85 * capacity) - 0.9 * capacity;
            rest = rest.max(over.max(0.0) / account.base);
        }
        (rest * 1e3).ceil() as u64 * 1_000_000
    }
}

/// The rate rose through `middle` after the idle period that ended at `from_ns`: what a bucket regained comes at first.
fn rises_through(done: &ProbeCounts, from_ns: u64, middle: f64) -> bool {
    let slices: Vec<ProbeSlice> =
        done.slices.iter().filter(|slice| slice.start_ns >= from_ns).copied().collect();
    stretches(&slices).windows(2).any(|pair| pair[0].rate() < middle && pair[1].rate() > middle)
}
