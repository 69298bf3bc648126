//! A load, and the mean charge of one of its requests.

use fathom_volume::Accounting;
use serde::Serialize;

/// The requests of a use: sizes, order and share of reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfferedLoad {
    /// Sizes in bytes with their shares, which add up to 1.
    pub blocks: Vec<(f64, f64)>,
    /// Sequential offsets.
    pub sequential: bool,
    /// Writes after which the client waits for a sync, so that only these can be merged with each other; `None` = it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synced_after: Option<u32>,
    /// The share of reads; `None` = any, so that results apply to all reads and to all writes.
    pub read_fraction: Option<f64>,
}

/// The mean charge of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeanCharge {
    pub(crate) ios: f64,
    pub(crate) bytes: f64,
}

impl OfferedLoad {
    /// Requests of one size, reads or writes.
    pub fn of(block_bytes: f64, is_sequential: bool) -> Self {
        OfferedLoad {
            blocks: vec![(block_bytes, 1.0)],
            sequential: is_sequential,
            synced_after: None,
            read_fraction: None,
        }
    }

    /// Mean bytes of a request.
    pub fn mean_bytes(&self) -> f64 {
        self.blocks.iter().map(|(bytes, share)| bytes * share).sum()
    }

    /// The shares of reads to check; all rules are linear between them.
    pub(crate) fn mixes(&self) -> Vec<f64> {
        self.read_fraction.map_or(vec![1.0, 0.0], |share| vec![share])
    }

    /// Requests that can be merged with each other: in order, and between two syncs.
    fn merged(&self) -> f64 {
        match (self.sequential, self.synced_after) {
            (false, _) => 1.0,
            (true, Some(writes)) if self.read_fraction != Some(1.0) => f64::from(writes.max(1)),
            (true, _) => f64::INFINITY,
        }
    }

    pub(crate) fn cost(&self, accounting: Accounting) -> MeanCharge {
        let merged = self.merged();
        let costs = self.blocks.iter().map(|(bytes, share)| (cost(accounting, *bytes, merged), share));
        costs.fold(MeanCharge { ios: 0.0, bytes: 0.0 }, |sum, (cost, share)| MeanCharge {
            ios: sum.ios + cost.ios * share,
            bytes: sum.bytes + cost.bytes * share,
        })
    }
}

/// The mean charge of a request of `bytes` that can be merged with others, `merged` of them in all.
fn cost(accounting: Accounting, bytes: f64, merged: f64) -> MeanCharge {
    let Some(unit) = accounting.unit_bytes.map(f64::from) else { return MeanCharge { ios: 1.0, bytes } };
    let together = if accounting.merges_sequential { merged } else { 1.0 };
    if together.is_infinite() {
        return MeanCharge { ios: bytes / unit, bytes };
    }
    let ios = (bytes * together / unit).ceil().max(1.0) / together;
    MeanCharge { ios, bytes: if accounting.whole_units { ios * unit } else { bytes } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_count_by_units() {
        let unit = |kib: u32, merges_sequential, whole_units| Accounting {
            unit_bytes: Some(kib << 10),
            merges_sequential,
            whole_units,
        };
        let kib = 1024.0;
        for (accounting, block, is_sequential, ios, bytes) in [
            (Accounting::default(), 1024.0 * kib, false, 1.0, 1024.0 * kib),
            (unit(256, true, false), 4.0 * kib, false, 1.0, 4.0 * kib),
            (unit(256, true, false), 4.0 * kib, true, 1.0 / 64.0, 4.0 * kib),
            (unit(256, true, false), 257.0 * kib, false, 2.0, 257.0 * kib),
            (unit(256, false, false), 4.0 * kib, true, 1.0, 4.0 * kib),
            (unit(16, false, false), 64.0 * kib, false, 4.0, 64.0 * kib),
            (unit(1024, true, true), 4.0 * kib, false, 1.0, 1024.0 * kib),
            (unit(1024, true, true), 4.0 * kib, true, 1.0 / 256.0, 4.0 * kib),
        ] {
            let found = OfferedLoad::of(block, is_sequential).cost(accounting);
            assert_eq!(found, MeanCharge { ios, bytes }, "{accounting:?} {block} {is_sequential}");
        }
        // A log of 4 KiB with a sync after each write, after each hundredth, and one that is only read.
        let log = |synced_after, read_fraction| OfferedLoad {
            synced_after,
            read_fraction: Some(read_fraction),
            ..OfferedLoad::of(4.0 * kib, true)
        };
        let ios = |load: OfferedLoad| load.cost(unit(256, true, false)).ios;
        assert_eq!(ios(log(Some(1), 0.0)), 1.0);
        assert_eq!(ios(log(Some(100), 0.0)), 0.02);
        assert_eq!(ios(log(Some(1), 1.0)), 1.0 / 64.0);
        // Half of 4 KiB, half of 512 KiB: 1.5 units of 256 KiB, 258 KiB.
        let mixed =
            OfferedLoad { blocks: vec![(4.0 * kib, 0.5), (512.0 * kib, 0.5)], ..OfferedLoad::of(0.0, false) };
        assert_eq!(mixed.cost(unit(256, true, false)), MeanCharge { ios: 1.5, bytes: 258.0 * kib });
        assert_eq!(mixed.mean_bytes(), 258.0 * kib);
    }
}
