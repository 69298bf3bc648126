use proptest::prelude::*;

use super::*;

#[test]
fn criteria_are_read() {
    let check = |text: &str, expected: (Option<&str>, &str, &str, f64, Option<f64>)| {
        let found = Criterion::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let metric = found.metric.to_string();
        let parts =
            (found.test.as_deref(), &*metric, found.comparison.sign(), found.value, found.tolerance_percent);
        assert_eq!(parts, expected, "{text}");
    };
    check("rand-read.iops>=5000", (Some("rand-read"), "iops", ">=", 5000.0, None));
    check("rand-mixed.read.iops > 2250.5", (Some("rand-mixed"), "read.iops", ">", 2250.5, None));
    check("bw-write.bytes_per_second>=200MB", (Some("bw-write"), "bytes_per_second", ">=", 2e8, None));
    check("bw-write.bw>=200MiB/s", (Some("bw-write"), "bytes_per_second", ">=", 209_715_200.0, None));
    check("lat-read.lat_ns.p99<5ms", (Some("lat-read"), "lat_ns.p99", "<", 5e6, None));
    check("lat-read.lat.p99.9<5ms", (Some("lat-read"), "lat_ns.p999", "<", 5e6, None));
    check("lat-read.p99<5ms", (Some("lat-read"), "lat_ns.p99", "<", 5e6, None));
    check("p99<5ms", (None, "lat_ns.p99", "<", 5e6, None));
    check("write.iops>=1", (None, "write.iops", ">=", 1.0, None));
    check("read.write.iops>=1", (Some("read"), "write.iops", ">=", 1.0, None));
    check("a.iops>=5000±2%", (Some("a"), "iops", ">=", 5000.0, Some(2.0)));
    check(" a.iops <= 5000 +- 0.5 % ", (Some("a"), "iops", "<=", 5000.0, Some(0.5)));
}

#[test]
fn errors_name_the_input_and_the_remedy() {
    let check = |text: &str, expected: &str| {
        let error = Criterion::parse(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    };
    check("a.iops=5", "'a.iops=5' has no comparison: use >=");
    check("rand-read>=5", "'rand-read' names no metric: write TEST.METRIC");
    check("a.ipos>=5", "'ipos' is not a metric: use iops");
    check(".iops>=5", "no name before the dot");
    check("a.iops>=5k", "'5k' is not a number of IOPS");
    check("a.iops>=", "'' is not a number");
    check("a.iops>=0", "not above 0");
    check("a.iops>=-5", "not above 0");
    check("a.iops>=inf", "not above 0");
    check("a.bytes_per_second>=5ms", "is not a size");
    check("a.lat_ns.p99<5", "'5' has no unit: write 5ms, 5us or 5ns");
    check("a.lat_ns.p99<5MB", "is not a duration");
    check("a.iops>=5±2", "is not a percentage");
    check("a.iops>=5±100%", "is not a percentage");
    check("a.iops>=5+-x%", "is not a percentage");
}

#[test]
fn bounds_lie_on_the_side_that_forgives() {
    for (sign, bound, at) in
        [(">=", 95.0, true), (">", 95.0, false), ("<=", 105.0, true), ("<", 105.0, false)]
    {
        let comparison = Comparison::of(sign).unwrap();
        assert_eq!((comparison.sign(), comparison.bound(100.0, 5.0)), (sign, bound));
        assert_eq!(comparison.holds(bound, bound), at, "{sign}");
    }
    assert_eq!(Comparison::of("="), None);
}

fn directions() -> impl Strategy<Value = Option<MetricDirection>> {
    use MetricDirection::{Read, Sync, Total, Trim, Write};
    prop::option::of(prop::sample::select(vec![Read, Write, Trim, Total, Sync]))
}

fn kinds() -> impl Strategy<Value = MetricKind> {
    use LatencySpan::{Completion, Submission, Total};
    let statistic = prop_oneof![
        prop::sample::select(vec![Statistic::Least, Statistic::Mean, Statistic::Greatest]),
        (1u32..1_000_000).prop_map(Statistic::Percentile),
    ];
    let latency = (prop::sample::select(vec![Submission, Completion, Total]), statistic)
        .prop_map(|(span, statistic)| MetricKind::Latency(span, statistic));
    prop_oneof![Just(MetricKind::Iops), Just(MetricKind::BytesPerSecond), latency]
}

proptest! {
    #[test]
    fn a_printed_criterion_is_read_back_unchanged(
        test in prop::option::of("t-[a-z0-9-]{0,12}"),
        (direction, kind) in (directions(), kinds()),
        comparison in prop::sample::select(vec![Comparison::AtLeast, Comparison::AtMost, Comparison::Above, Comparison::Below]),
        whole in 1u64..1 << 50,
        rate in 1e-3f64..1e12,
        tolerance_percent in prop::option::of(0.0f64..100.0),
    ) {
        let metric = Metric { direction, kind };
        prop_assume!(metric.exists());
        let value = if kind == MetricKind::Iops { rate } else { whole as f64 };
        let criterion = Criterion { test, metric, comparison, value, tolerance_percent };
        let text = criterion.to_string();
        prop_assert_eq!(Criterion::parse(&text), Ok(criterion), "{}", text);
    }
}
