//! Figures of an identified volume in words.

use fathom_analysis::estimate::Estimate;
use fathom_analysis::identified::candidate::Candidate;
use fathom_analysis::identified::{
    BucketScope, BucketUnit, Burst, Confounder, Figure, Identified, OtherCause,
};
use fathom_model::Nanos;
use fathom_model::units::{self, duration};

use crate::bench::table::{count, decimal};

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FigureScale {
    /// Requests, or requests a second.
    Count,
    /// Bytes a second.
    Bandwidth,
    /// ns.
    Latency,
    /// Bytes of a block, rounded.
    Size,
    /// Bytes, to the last one.
    ExactSize,
    /// s.
    Seconds,
}

impl FigureScale {
    /// With its unit.
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            FigureScale::Count => count(value),
            FigureScale::Bandwidth => format!("{} MiB/s", decimal(value / 1_048_576.0)),
            FigureScale::Latency => units::latency(value.max(0.0).round() as u64),
            FigureScale::Size if value < 10_240.0 => format!("{} B", units::grouped(value.round() as u64)),
            FigureScale::Size => units::bytes(value.round() as u64),
            FigureScale::ExactSize => exact(value.round() as u64),
            FigureScale::Seconds => duration(Nanos((value.max(0.0) * 1e9) as u64)),
        }
    }

    /// The value, else what is known of it.
    pub(crate) fn figure(self, figure: &Figure) -> String {
        match figure.estimate {
            Some(Estimate::Known { value, .. }) => self.text(value),
            Some(Estimate::AtLeast(low)) => format!("at least {}", self.text(low)),
            Some(Estimate::AtMost(high)) => format!("at most {}", self.text(high)),
            None => "unknown".to_owned(),
        }
    }

    /// Value, interval, and half of the interval in percent.
    pub(crate) fn cells(self, figure: &Figure) -> (String, String, String) {
        match figure.estimate {
            Some(Estimate::Known { value, low, high }) if low == high => {
                (self.text(value), "exactly".to_owned(), String::new())
            }
            Some(Estimate::Known { value, low, high }) => {
                let half = (high - low) / 2.0 / value * 100.0;
                let digits = if half < 0.995 { 2 } else { 1 };
                let between = format!("{} to {}", self.text(low), self.text(high));
                (self.text(value), between, format!("{half:.digits$}"))
            }
            Some(_) => ("not seen".to_owned(), self.figure(figure), String::new()),
            None => ("not seen".to_owned(), String::new(), String::new()),
        }
    }
}

/// `256 KiB`, `40,960 B`.
fn exact(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{} B", units::grouped(bytes))
}

/// A bucket in words.
pub(crate) fn burst(burst: &Burst) -> Vec<String> {
    let (what, rate, amount): (_, &dyn Fn(f64) -> String, &dyn Fn(f64) -> String) = match burst.unit {
        BucketUnit::Ios => {
            ("I/Os", &|rate| format!("{} IOPS", count(rate)), &|ios| format!("{} I/Os", count(ios)))
        }
        BucketUnit::Bytes => {
            ("bytes", &|rate| FigureScale::Bandwidth.text(rate), &|bytes| units::bytes(bytes as u64))
        }
    };
    let who = match burst.scope {
        BucketScope::Both => "for reads and writes together",
        BucketScope::Reads => "for reads",
        BucketScope::Writes => "for writes",
    };
    let say = |figure: &Figure, text: &dyn Fn(f64) -> String| match figure.estimate {
        Some(Estimate::Known { value, .. }) => text(value),
        Some(Estimate::AtLeast(low)) => format!("at least {}", text(low)),
        Some(Estimate::AtMost(high)) => format!("at most {}", text(high)),
        None => "an unknown amount".to_owned(),
    };
    let between = match burst.capacity.estimate {
        Some(Estimate::Known { low, high, .. }) if low < high => {
            format!(
                " ({} to {})",
                amount(low).trim_end_matches(" I/Os"),
                amount(high).trim_end_matches(" I/Os")
            )
        }
        _ => String::new(),
    };
    let known = |figure: &Figure| figure.estimate.is_some().then(|| FigureScale::Seconds.figure(figure));
    let times = match (known(&burst.seconds_to_empty), known(&burst.seconds_to_refill)) {
        (Some(empty), Some(refill)) => {
            format!(": gone after {empty} at full speed, back after {refill} of rest.")
        }
        (Some(empty), None) => {
            format!(": gone after {empty} at full speed; how long it takes to fill is open.")
        }
        (None, Some(refill)) => format!(": back after {refill} of rest; how long it lasts is open."),
        (None, None) => "; how long it lasts and takes to fill is open.".to_owned(),
    };
    vec![
        format!(
            "A bucket of {what} {who}: {} as long as there is credit, {} afterwards.",
            say(&burst.burst_rate, rate),
            say(&burst.baseline_rate, rate)
        ),
        format!("When full it holds {}{between}{times}", say(&burst.capacity, amount)),
    ]
}

/// Another explanation of what was seen.
pub(crate) fn confounder(OtherCause { id, text }: &OtherCause) -> String {
    let what = match id {
        Confounder::WriteCacheFull => "A write cache that was full",
        Confounder::Throttling => "Throttling",
        Confounder::CpuSteal => "Processors that others had",
        Confounder::ByItself => "A rate that changes by itself",
    };
    format!("{what}: {text}.")
}

/// What of a type it would be: `50 GiB`, `34 to 170 GiB`, `5,000 IOPS`.
pub(crate) fn size(candidate: &Candidate) -> String {
    let mut parts = Vec::new();
    if let Some(tier) = &candidate.tier {
        parts.push(tier.clone());
    }
    match candidate.size {
        Some(size) if size.low_bytes < size.high_bytes && size.high_bytes > size.bytes + size.bytes / 10 => {
            parts.push(format!("{} to {}", exact(size.low_bytes), exact(size.high_bytes)));
        }
        Some(size) => parts.push(exact(size.bytes)),
        None => parts.push("any size".to_owned()),
    }
    parts.extend(candidate.provisioned_iops.map(|iops| format!("{} IOPS", units::grouped(iops))));
    parts.extend(
        candidate.provisioned_bytes_per_second.map(|bytes| FigureScale::Bandwidth.text(bytes as f64)),
    );
    if candidate.on_demand {
        parts.push("bursts on demand".to_owned());
    }
    if candidate.size.and_then(|size| size.is_target_size) == Some(false) {
        parts.push("not the target's size".to_owned());
    }
    parts.join(", ")
}

/// What is not known, and why, each in a sentence.
pub(crate) fn unseen(found: &Identified) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut of = |name: &str, figure: &Figure| {
        if figure.value().is_none()
            && let Some(why) = &figure.why
        {
            lines.push(format!("{name}: {why}."));
        }
    };
    for (name, each) in
        [("IOPS", &found.iops), ("bandwidth", &found.bytes_per_second), ("latency", &found.lat_ns)]
    {
        for (direction, figure) in [("read", &each.read), ("write", &each.write)] {
            figure.iter().for_each(|figure| of(&format!("{direction} {name}"), figure));
        }
    }
    of("block size where both meet", &found.crossover_block_size_bytes);
    of("what one I/O is", &found.io_unit_bytes);
    for burst in &found.bursts {
        for (name, figure) in [
            ("the rate without credit", &burst.baseline_rate),
            ("the credit", &burst.capacity),
            ("the refill", &burst.refill_rate),
        ] {
            of(name, figure);
        }
    }
    let has_writes = found.iops.write.is_some() || found.bytes_per_second.write.is_some();
    if found.iops.read.is_some() && !has_writes {
        lines.push("writes: not looked at.".to_owned());
    }
    if let Some(why) = found.first_touch_why.as_ref().filter(|_| found.first_touch.is_none()) {
        lines.push(format!("first access: {why}."));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_analysis::identified::candidate::SizeImplied;

    #[test]
    fn figures_in_cells() {
        let check = |scale: FigureScale, figure: Figure, expected: [&str; 3]| {
            let (value, between, sure) = scale.cells(&figure);
            assert_eq!([value.as_str(), &between, &sure], expected);
        };
        check(FigureScale::Count, Figure::known(3000.0, 2990.0, 3010.0), ["3,000", "2,990 to 3,010", "0.33"]);
        check(
            FigureScale::ExactSize,
            Figure::known(262_144.0, 262_144.0, 262_144.0),
            ["256 KiB", "exactly", ""],
        );
        check(FigureScale::ExactSize, Figure::known(3584.0, 3584.0, 3584.0), ["3,584 B", "exactly", ""]);
        let bound = Figure::bound(Estimate::AtLeast(134_217_728.0), "hidden");
        check(FigureScale::Bandwidth, bound, ["not seen", "at least 128.0 MiB/s", ""]);
        check(FigureScale::Latency, Figure::unknown("no time"), ["not seen", "", ""]);
        check(
            FigureScale::Size,
            Figure::known(44_739.0, 44_000.0, 45_000.0),
            ["43.7 KiB", "43.0 KiB to 43.9 KiB", "1.1"],
        );
    }

    #[test]
    fn what_is_open_of_a_bucket_is_not_told_as_a_figure() {
        let known = |value: f64| Figure::known(value, value, value);
        let unknown = || Figure::unknown("the budget ended");
        let check = |(capacity, empty, refill): (Figure, Figure, Figure), expected: &str| {
            let bucket = Burst {
                unit: BucketUnit::Ios,
                scope: BucketScope::Reads,
                burst_rate: known(1000.0),
                baseline_rate: known(200.0),
                capacity,
                refill_rate: unknown(),
                seconds_to_empty: empty,
                seconds_to_refill: refill,
            };
            assert_eq!(burst(&bucket)[1], expected);
        };
        let credit = known(16_000.0);
        check(
            (credit.clone(), known(20.0), known(80.0)),
            "When full it holds 16,000 I/Os: gone after 20 s at full speed, back after 1 min 20 s of rest.",
        );
        check(
            (credit, known(20.0), unknown()),
            "When full it holds 16,000 I/Os: gone after 20 s at full speed; how long it takes to fill is open.",
        );
        let least = Figure::bound(Estimate::AtLeast(15_500.0), "the budget ended");
        check(
            (least, unknown(), unknown()),
            "When full it holds at least 15,500 I/Os; how long it lasts and takes to fill is open.",
        );
    }

    #[test]
    fn sizes_of_types() {
        let size_of = |low: u64, high: u64, is_target_size: Option<bool>| {
            Some(SizeImplied {
                bytes: low << 30,
                low_bytes: low << 30,
                high_bytes: high << 30,
                is_target_size,
            })
        };
        let check = |candidate: Candidate, expected: &str| assert_eq!(size(&candidate), expected);
        check(Candidate { size: size_of(50, 50, Some(true)), ..Candidate::default() }, "50 GiB");
        check(
            Candidate { size: size_of(1, 33, Some(false)), ..Candidate::default() },
            "1 GiB to 33 GiB, not the target's size",
        );
        let provisioned_iops = Some(5000);
        check(Candidate { provisioned_iops, ..Candidate::default() }, "any size, 5,000 IOPS");
    }
}
