//! Figures of the catalogue as whole numbers. They are decimals with up to eight places and are computed as such, so
//! that a rule like 3 IOPS per GiB is exact at every size.

/// Bytes of a GiB.
pub(crate) const GIB: u64 = 1 << 30;
/// Bytes of a TiB.
pub(crate) const TIB: u64 = 1 << 40;
/// Fixed-point scale of figures.
const PARTS: u128 = 100_000_000;

/// A figure in [`PARTS`]. Negative figures and NaN become 0; the check refuses them.
fn parts(figure: f64) -> u128 {
    (figure * PARTS as f64).round() as u128
}

/// `figure` times `unit`, rounded down.
pub(crate) fn of(figure: f64, unit: u64) -> u64 {
    whole(parts(figure).saturating_mul(u128::from(unit)) / PARTS)
}

/// `intercept + slope * size` times `unit`, rounded down; the slope is per `per_bytes` bytes.
pub(crate) fn linear(intercept: f64, (slope, per_bytes): (f64, u64), size_bytes: u64, unit: u64) -> u64 {
    let product = |figure: f64, by: u64| parts(figure).saturating_mul(u128::from(by));
    let sum = product(intercept, per_bytes).saturating_add(product(slope, size_bytes));
    whole(sum.saturating_mul(u128::from(unit)) / (u128::from(per_bytes) * PARTS))
}

/// A size in GiB, in bytes.
pub(crate) fn gib(figure: f64) -> u64 {
    of(figure, GIB)
}

/// Seconds in ns.
pub(crate) fn seconds(figure: f64) -> u64 {
    of(figure, 1_000_000_000)
}

/// Milliseconds in ns.
pub(crate) fn milliseconds(figure: f64) -> u64 {
    of(figure, 1_000_000)
}

fn whole(amount: u128) -> u64 {
    u64::try_from(amount).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        for (intercept, per_gib, gib, unit, expected) in [
            (0.0, 3.0, 34, 1, 102),
            (0.0, 0.75, 10, 1, 7),
            (0.0, 453.3, 375, 1, 169_987),
            (120.0, 0.2, 1024, 1_000_000, 324_800_000),
            (140.0, 0.28, 100, 1 << 20, 176_160_768),
            (0.0, 0.1, 3, 10, 3),
        ] {
            assert_eq!(
                linear(intercept, (per_gib, GIB), gib * GIB, unit),
                expected,
                "{intercept} + {per_gib} * {gib}"
            );
        }
        assert_eq!(linear(0.0, (40.0, TIB), 3 * TIB, 1 << 20), 120 << 20);
        // Figures above any volume's stay above any volume's.
        assert_eq!(of(1e12, u64::MAX), u64::MAX);
        assert!(linear(1e12, (1e12, TIB), u64::MAX, u64::MAX) > 1_000_000_000_000_000_000);
        assert_eq!((gib(0.5), seconds(1800.0), milliseconds(0.556)), (1 << 29, 1_800_000_000_000, 556_000));
    }
}
