//! Changes of level in words.

use fathom_analysis::trend::{ChangePoint, ShiftRatio};

/// Ratios from here on are said as multiples.
const MULTIPLE: f64 = 2.0;

/// `fell by 12 % (95 % confidence interval: 11 to 13 %)`, `rose to 3.1 times (95 % confidence interval: 3.0 to 3.2)`.
pub(super) fn change(found: &ChangePoint, quantity: impl Fn(f64) -> String) -> String {
    let Some(ratio) = found.ratio else {
        let difference = (found.after.median - found.before.median).abs();
        let verb = if found.after.median < found.before.median { "fell" } else { "rose" };
        return format!("{verb} by {}", quantity(difference));
    };
    let what = match ratio.value {
        value if value < 1.0 => format!("fell by {}", percent(1.0 - value)),
        value if value < MULTIPLE => format!("rose by {}", percent(value - 1.0)),
        value => format!("rose to {value:.1} times"),
    };
    format!("{what} (95 % confidence interval: {})", interval(&ratio))
}

/// The interval in the form of the ratio: `-13 to -11 %`, `3.0 to 3.2 times`.
pub(super) fn interval(ratio: &ShiftRatio) -> String {
    if ratio.value >= MULTIPLE {
        return format!("{:.1} to {:.1} times", ratio.low, ratio.high);
    }
    let (low, high) = (ratio.low - 1.0, ratio.high - 1.0);
    match (signed(low), signed(high)) {
        // Two digits would show no interval.
        (from, to) if from == to => format!("{:+.2} to {:+.2} %", low * 100.0, high * 100.0),
        (from, to) => format!("{from} to {to} %"),
    }
}

/// `-12 %`, `+0.4 %`, `3.1 times`.
pub(super) fn percent_of(ratio: f64) -> String {
    if ratio >= MULTIPLE { format!("{ratio:.1} times") } else { format!("{} %", signed(ratio - 1.0)) }
}

fn signed(share: f64) -> String {
    let text = digits(share.abs());
    if text == "0.0" { text } else { format!("{}{text}", if share < 0.0 { '-' } else { '+' }) }
}

/// `12 %`, `0.4 %`.
fn percent(share: f64) -> String {
    format!("{} %", digits(share))
}

fn digits(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

#[cfg(test)]
mod tests {
    use fathom_analysis::trend::TrendLevel;

    use super::*;

    fn found(ratio: Option<(f64, f64, f64)>) -> String {
        let level = |median: f64| TrendLevel { from: 0, to: 1, median };
        let ratio = ratio.map(|(value, low, high)| ShiftRatio { value, low, high });
        let point = ChangePoint { at: 1, before: level(3000.0), after: level(0.0), ratio };
        change(&point, |value| format!("{value:.0} IOPS"))
    }

    #[test]
    fn changes_are_said_in_percent_or_as_multiples() {
        for (ratio, expected) in [
            (Some((0.88, 0.87, 0.893)), "fell by 12 % (95 % confidence interval: -13 to -11 %)"),
            (Some((1.004, 1.0, 1.008)), "rose by 0.4 % (95 % confidence interval: 0.0 to +0.8 %)"),
            (Some((3.1, 3.02, 3.2)), "rose to 3.1 times (95 % confidence interval: 3.0 to 3.2 times)"),
            (Some((0.88, 0.8799, 0.8801)), "fell by 12 % (95 % confidence interval: -12.01 to -11.99 %)"),
            (None, "fell by 3000 IOPS"),
        ] {
            assert_eq!(found(ratio), expected);
        }
        assert_eq!((percent_of(0.88), percent_of(1.0)), ("-12 %".to_owned(), "0.0 %".to_owned()));
    }
}
