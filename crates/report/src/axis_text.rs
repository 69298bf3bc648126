//! Values along the axes of charts, as readers see them.

use fathom_model::units;

pub(crate) const MIB: f64 = (1 << 20) as f64;

/// A rate with three digits at least: `11.7`, `128`, `3,000`.
pub(crate) fn rate_text(rate: f64) -> String {
    let text = match rate {
        0.0 => return "0".to_owned(),
        ..0.0995 => format!("{rate:.4}"),
        ..9.995 => format!("{rate:.2}"),
        ..99.95 => format!("{rate:.1}"),
        _ => return units::grouped(rate.round() as u64),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A latency in ns.
pub(crate) fn latency_text(ns: f64) -> String {
    if ns <= 0.0 { "0".to_owned() } else { units::latency(ns.round() as u64) }
}

/// The place of a percentile on an axis that gives each nine the same room: one of so many I/Os lies beyond.
pub(crate) fn beyond(percent: f64) -> f64 {
    100.0 / (100.0 - percent)
}

/// `p99.9` of the place where one of 1,000 lies beyond.
pub(crate) fn percentile_text(beyond: f64) -> String {
    let percent = 100.0 - 100.0 / beyond;
    format!("p{}", (percent * 10_000.0).round() / 10_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits_and_percentiles_their_names() {
        let texts = [0.0, 0.004, 0.5, 9.991, 11.72, 99.9, 128.4, 3000.0].map(rate_text);
        assert_eq!(texts, ["0", "0.004", "0.5", "9.99", "11.7", "99.9", "128", "3,000"]);
        let names = [50.0, 99.0, 99.9, 99.99, 99.9999].map(|percent| percentile_text(beyond(percent)));
        assert_eq!(names, ["p50", "p99", "p99.9", "p99.99", "p99.9999"]);
        assert_eq!((latency_text(0.0), latency_text(1500.0)), ("0".into(), units::latency(1500)));
    }
}
