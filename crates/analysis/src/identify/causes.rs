//! What else a rate that fell may have fallen for than credit (confounders): a limit by the clock, a cache that was full,
//! throttling, and a machine whose processors others had.

use super::ledger::{Account, EmptiedBucket};
use super::probe::IoDirection;
use super::script::Script;
use crate::identified::{BucketUnit, Confounder, IoScope, OtherCause};

/// Share of the CPU time that was withheld from this machine or process at the least where that explains a low rate, and how
/// many times what was withheld before.
const WITHHELD: f64 = 0.1;
const MORE_THAN_BEFORE: f64 = 3.0;

impl Script<'_> {
    /// A rate that fell is reported as a burst bucket.
    pub(crate) fn is_credit(&self, bucket: &EmptiedBucket) -> bool {
        bucket.comes_back()
            && !self.rises(bucket)
            && self.found.restless.is_none()
            && self.held_back(bucket).is_none()
    }

    /// The highest rate of `kind` that one direction was seen to have, where it changed by itself.
    pub(crate) fn by_itself(&self, way: IoDirection, kind: BucketUnit) -> Option<f64> {
        let of_kind = |bucket: &&EmptiedBucket| bucket.account.kind == kind && bucket.account.counts(way);
        let changes = self.found.restless.is_some();
        let rising = self.found.buckets.iter().filter(of_kind).filter(|bucket| changes || self.rises(bucket));
        rising.map(|bucket| bucket.high).reduce(f64::max)
    }

    /// The share of the CPU time that was withheld while the rate was low, where that is much, and more than before.
    fn held_back(&self, bucket: &EmptiedBucket) -> Option<f64> {
        let (from, to) = bucket.dry;
        let share = |is_low: bool| {
            let (mut withheld, mut all) = (0.0, 0.0);
            for (probe, began, seen) in self.answers() {
                let (start, end) = (began + probe.rest_ns, began + seen.elapsed_ns);
                let is_in = if is_low { end > from && start < to } else { end <= from };
                if is_in {
                    withheld += seen.cpu.withheld_ns;
                    all += seen.cpu.all_ns;
                }
            }
            withheld / f64::max(all, 1.0)
        };
        let (before, low) = (share(false), share(true));
        (low > WITHHELD && low > MORE_THAN_BEFORE * before).then_some(low)
    }

    /// Why a rate that fell is not attributed to a burst bucket.
    pub(crate) fn no_credit(&self, bucket: &EmptiedBucket) -> OtherCause {
        let Account { scope, base, .. } = bucket.account;
        let (high, low) = match bucket.account.kind {
            BucketUnit::Ios => (format!("{:.0} IOPS", bucket.high), format!("{base:.0}")),
            BucketUnit::Bytes => (format!("{:.1} MB/s", bucket.high / 1e6), format!("{:.1}", base / 1e6)),
        };
        let fell = format!("the rate fell from {high} to {low}");
        let nothing = format!("{fell}, and idling did not restore it");
        if self.rises(bucket) || self.found.restless.is_some() {
            let why = "and rose again without idling: a time-based limit or other load, not burst credits";
            return OtherCause { id: Confounder::ByItself, text: format!("{fell} {why}") };
        }
        if let Some(share) = self.held_back(bucket) {
            let why = format!("{fell} while CPU steal was {:.0} %", share * 100.0);
            let text = format!("{why}, which may be the cause instead of burst credits");
            return OtherCause { id: Confounder::CpuSteal, text };
        }
        let (id, cause) = match scope {
            IoScope::Writes => (Confounder::WriteCacheFull, "only writes fell, as with a full write cache"),
            _ => (Confounder::Throttling, "throttling or other load, not burst credits"),
        };
        OtherCause { id, text: format!("{nothing}: {cause}") }
    }
}
