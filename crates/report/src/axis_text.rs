//! Values along the axes of charts, as readers see them, and axes with ticks at round values.

use fathom_model::{Nanos, units};

use crate::view::{Axis, AxisEnds};

pub(crate) const MIB: f64 = (1 << 20) as f64;
const SECOND: f64 = 1e9;

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

/// A time since the start, ns.
pub(crate) fn time_text(ns: f64) -> String {
    match ns {
        ns if ns <= 0.0 => "0 s".to_owned(),
        // The middle of half a second.
        ns if ns < 60.0 * SECOND => {
            let text = format!("{:.2}", ns / SECOND);
            format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
        }
        ns => units::duration(Nanos(ns as u64)),
    }
}

/// Time from `from` to `to`, ns, with marks at round values.
pub(crate) fn time_axis(from: u64, to: u64) -> Axis {
    const STEPS_S: [f64; 20] = [
        0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
        10_800.0, 21_600.0, 43_200.0, 86_400.0,
    ];
    const MAX_STEPS: f64 = 10.0;
    let length = to.saturating_sub(from).max(1) as f64;
    // The first interval of a run begins some microseconds after it.
    let from = if from as f64 * 100.0 < length { 0 } else { from };
    let step = STEPS_S.map(|step| step * SECOND).into_iter().find(|step| length / step <= MAX_STEPS);
    let step = step.unwrap_or(length / MAX_STEPS);
    let first = (from as f64 / step).ceil() as u64;
    let ticks = (first..).map(|number| number as f64 * step).take_while(|tick| *tick <= to as f64);
    Axis {
        ticks: ticks.collect(),
        ends: Some(AxisEnds { from: from as f64, to: (to as f64).max(from as f64 + 1.0) }),
        ..Axis::linear("time", time_text)
    }
}

/// Offsets of an area of so many bytes, with marks at powers of two.
pub(crate) fn offset_axis(area: u64) -> Axis {
    const MAX_STEPS: u64 = 8;
    let step = area.div_ceil(MAX_STEPS).max(1).next_power_of_two();
    let text = |offset: f64| if offset > 0.0 { units::bytes(offset as u64) } else { "0".to_owned() };
    Axis {
        ticks: (0..=area / step).map(|number| (number * step) as f64).collect(),
        ..Axis::linear("", text).ending(0.0, area as f64)
    }
}

/// Latencies between the lowest and the highest, ns, that have one digit: 1, 2 or 5 of each power of ten, or powers of ten where
/// these are more than `most`.
pub(crate) fn round_latencies(least: f64, highest: f64, most: usize) -> Vec<f64> {
    let of = |digits: &[f64]| -> Vec<f64> {
        let powers = (0..12).map(|power| 10_f64.powi(power));
        let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * power));
        all.filter(|latency| (least..=highest).contains(latency)).collect()
    };
    let fine = of(&[1.0, 2.0, 5.0]);
    if fine.len() > most { of(&[1.0]) } else { fine }
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

    #[test]
    fn time_has_marks_at_round_values() {
        let ticks = |from: f64, to: f64| time_axis((from * SECOND) as u64, (to * SECOND) as u64).ticks;
        assert_eq!(ticks(0.0, 7.5), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].map(|tick| tick * SECOND));
        assert_eq!(ticks(2.5, 32.6).first(), Some(&(5.0 * SECOND)));
        assert_eq!(ticks(0.000_2, 2.0).first(), Some(&0.0));
        assert_eq!(ticks(0.0, 86_400.0).last(), Some(&(86_400.0 * SECOND)));
        assert_eq!(time_axis(0, 0).ticks, [0.0]);
    }

    #[test]
    fn texts_of_time() {
        for (seconds, expected) in
            [(0.0, "0 s"), (0.25, "0.25 s"), (12.5, "12.5 s"), (3.0, "3 s"), (90.0, "1 min 30 s")]
        {
            assert_eq!(time_text(seconds * SECOND), expected);
        }
    }

    #[test]
    fn offsets_and_latencies_have_marks_at_round_values() {
        let gib = 1_u64 << 30;
        let texts = |area: u64| {
            let axis = offset_axis(area);
            axis.ticks.iter().map(|tick| (axis.text)(*tick)).collect::<Vec<_>>()
        };
        assert_eq!(texts(50 * gib).last().map(String::as_str), Some("48.0 GiB"));
        assert_eq!(texts(gib).len(), 9);
        assert_eq!(texts(0), ["0"]);
        assert_eq!(round_latencies(90_000.0, 600_000.0, 9), [100_000.0, 200_000.0, 500_000.0]);
        assert_eq!(round_latencies(900.0, 2_000_000.0, 4), [1e3, 1e4, 1e5, 1e6]);
    }
}
