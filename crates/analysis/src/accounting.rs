//! What a limit counts of a large request: its bytes, or one I/O for each unit that it begins. A sweep, a bench and an
//! identification decide it by this rule.
//!
//! Under a limit on I/Os with a unit the rate is `limit / ceil(block / unit)`, under one on bytes `limit / block`. Sizes that
//! are whole units have the same rates under both; a size a little above the unit tells them apart.

use crate::estimate::Estimate;
use crate::plateau::AGREE;

/// The size that tells both rules apart, over the unit: its rate is half of that of small requests where it counts as two,
/// and four fifths where bytes count.
const DECIDING: f64 = 1.25;

/// The rate that a limit held for one block size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BlockRate {
    /// Bytes per request.
    pub(crate) block: u64,
    /// Requests per second.
    pub(crate) iops: f64,
}

impl BlockRate {
    fn bytes_per_second(&self) -> f64 {
        self.iops * self.block as f64
    }
}

/// The most bytes that count as one I/O.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IoUnit {
    /// At least so many.
    pub(crate) low: f64,
    /// Fewer than so many.
    pub(crate) high: f64,
}

impl IoUnit {
    /// The most likely unit: a power of two, or else the largest size that surely counts as one.
    pub(crate) fn value(&self) -> f64 {
        self.power_of_two().unwrap_or(self.low)
    }

    pub(crate) fn estimate(&self) -> Estimate {
        Estimate::Known { value: self.value(), low: self.low, high: self.high }
    }

    /// The unit that may have been published: all are powers of two.
    pub(crate) fn power_of_two(&self) -> Option<f64> {
        let power = (self.low.max(1.0).ceil() as u64).next_power_of_two() as f64;
        (power < self.high).then_some(power)
    }
}

/// The block size that decides whether I/Os of more than `unit` bytes, the least unit in question, count as several: a multiple
/// of `multiple` and where possible of pages; `None` where all sizes in question are whole units.
pub(crate) fn deciding_block(unit: f64, multiple: u64) -> Option<u64> {
    const PAGE: u64 = 4096;
    [multiple.max(PAGE), multiple.max(1)].into_iter().find_map(|multiple| {
        let block = ((unit * DECIDING / multiple as f64).round() as u64).max(1) * multiple;
        let block = if (block as f64) <= unit { block + multiple } else { block };
        ((block as f64) < unit * 1.9).then_some(block)
    })
}

/// What counts of a large request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Charge {
    /// Its bytes.
    Bytes,
    /// The units it begins, as I/Os.
    Units(IoUnit),
    /// One or the other: the sizes that were measured have the same rates under both.
    Either(IoUnit),
    /// Neither explains the rates, or none fell.
    Neither,
}

/// What explains `rates`, of which those of small requests are `iops`.
pub(crate) fn charge(iops: f64, rates: &[BlockRate]) -> Charge {
    let (flat, fallen): (Vec<BlockRate>, Vec<BlockRate>) = rates
        .iter()
        .copied()
        .filter(|rate| rate.iops > 0.0)
        .partition(|rate| rate.iops >= iops * (1.0 - AGREE));
    if fallen.is_empty() {
        return Charge::Neither;
    }
    let most = fallen.iter().map(BlockRate::bytes_per_second).fold(0.0, f64::max);
    let are_bytes_even = fallen.iter().all(|rate| rate.bytes_per_second() >= most * (1.0 - AGREE))
        && flat.iter().all(|rate| rate.bytes_per_second() <= most * (1.0 + AGREE));
    match (unit(iops, &flat, &fallen), are_bytes_even) {
        (Some(unit), true) => Charge::Either(unit),
        (None, true) => Charge::Bytes,
        (Some(unit), false) if fallen.iter().any(|rate| is_step(iops, rate, &unit)) => Charge::Units(unit),
        (_, false) => Charge::Neither,
    }
}

/// The units under which every rate is `iops` over the number of units; `None` where there are none.
fn unit(iops: f64, flat: &[BlockRate], fallen: &[BlockRate]) -> Option<IoUnit> {
    let low = flat.iter().map(|rate| rate.block as f64).fold(0.0, f64::max);
    let mut unit = IoUnit { low, high: f64::INFINITY };
    for rate in fallen {
        let counted = iops / rate.iops;
        let (least, most) = ((counted * (1.0 - AGREE)).ceil(), (counted * (1.0 + AGREE)).floor());
        if least > most || least < 2.0 {
            return None;
        }
        unit.low = unit.low.max(rate.block as f64 / most);
        unit.high = unit.high.min(rate.block as f64 / (least - 1.0));
    }
    (unit.low < unit.high).then_some(unit)
}

/// True where a size costs more in whole units than its bytes are, whatever unit of the range it is.
fn is_step(iops: f64, rate: &BlockRate, unit: &IoUnit) -> bool {
    (iops / rate.iops).round() * unit.low / rate.block as f64 > 1.0 + 2.0 * AGREE
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    /// Rates under a limit of `iops` that counts units, if there are any, and one on bytes, off by at most 0.5 %.
    fn rates(iops: f64, unit: Option<u64>, bytes_per_second: f64, blocks: &[u64]) -> Vec<BlockRate> {
        let rate = |&block: &u64| {
            let counted = unit.map_or(1, |unit| block.div_ceil(unit)) as f64;
            let noise = 1.0 + ((block / 512 * 7919 % 101) as f64 / 100.0 - 0.5) * 0.01;
            BlockRate { block, iops: (iops / counted).min(bytes_per_second / block as f64) * noise }
        };
        blocks.iter().map(rate).collect()
    }

    const GRID: [u64; 4] = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB];

    #[test]
    fn whole_units_leave_both_rules_and_a_size_above_the_unit_decides() {
        for unit in [4 * KIB, 16 * KIB, 64 * KIB, 128 * KIB] {
            let mut blocks = GRID.to_vec();
            blocks.extend([unit / 2, unit]);
            let found = charge(1000.0, &rates(1000.0, Some(unit), f64::INFINITY, &blocks));
            let Charge::Either(either) = found else { panic!("{unit}: {found:?}") };
            assert_eq!(either.value(), unit as f64);
            let same = rates(1000.0, None, 1000.0 * unit as f64, &blocks);
            assert_eq!(charge(1000.0, &same), Charge::Either(either));
            blocks.push(deciding_block(either.low, 512).expect("sectors are smaller"));
            let found = charge(1000.0, &rates(1000.0, Some(unit), f64::INFINITY, &blocks));
            assert!(
                matches!(found, Charge::Units(found) if found.value() == unit as f64),
                "{unit}: {found:?}"
            );
            let found = charge(1000.0, &rates(1000.0, None, 1000.0 * unit as f64, &blocks));
            assert_eq!(found, Charge::Bytes, "{unit}");
        }
    }

    #[test]
    fn the_rule_never_names_the_wrong_one() {
        let mut decided = 0;
        for units in 1..=60u64 {
            let unit = units * 4 * KIB;
            for iops in [100.0, 1000.0, 16_000.0] {
                let by_units = charge(iops, &rates(iops, Some(unit), f64::INFINITY, &GRID));
                assert_ne!(by_units, Charge::Bytes, "{unit}");
                if let Charge::Units(found) = by_units {
                    assert!(found.low <= unit as f64 && unit as f64 <= found.high, "{unit}: {found:?}");
                }
                let by_bytes = charge(iops, &rates(iops, None, iops * unit as f64, &GRID));
                assert!(!matches!(by_bytes, Charge::Units(_) | Charge::Neither), "{unit}: {by_bytes:?}");
                decided += usize::from(by_bytes == Charge::Bytes);
            }
        }
        assert!(decided > 100, "{decided}");
    }

    #[test]
    fn rates_without_a_limit_tell_nothing() {
        let flat = rates(1000.0, None, f64::INFINITY, &GRID);
        assert_eq!(charge(1000.0, &flat), Charge::Neither);
        assert_eq!(charge(1000.0, &[]), Charge::Neither);
        // A medium: neither whole steps nor the same bytes.
        let medium = [(4, 1000.0), (16, 700.0), (64, 250.0), (256, 71.0)];
        let medium = medium.map(|(kib, iops)| BlockRate { block: kib * KIB, iops });
        assert_eq!(charge(1000.0, &medium), Charge::Neither);
    }

    #[test]
    fn sizes_that_cannot_be_measured_decide_nothing() {
        assert_eq!((deciding_block(4096.0, 512), deciding_block(4096.0, 4096)), (Some(5120), None));
        assert_eq!(
            (deciding_block(8192.0, 512), deciding_block(16_384.0, 512)),
            (Some(12_288), Some(20_480))
        );
        // No power of two: the largest size that surely counts as one.
        assert_eq!(IoUnit { low: 23_831.0, high: 25_000.0 }.value(), 23_831.0);
    }
}
