//! Tests of latency objectives and rate goals on points of a sweep.

use crate::criterion::{LatencyObjective, RateGoal};
use crate::pattern::AccessPattern;
use crate::sweep::point::model::Model;
use crate::sweep::point::{SweepPoint, SweepSpot};

fn point() -> SweepPoint {
    let model = Model::unlimited(1e6);
    model.measure(
        SweepSpot { rw: AccessPattern::RandRead, block_size_bytes: 4096, iodepth: 2, numjobs: 1 },
        1_000_000_000,
        0.0,
    )
}

#[test]
fn latency_objectives_are_judged_where_the_samples_suffice() {
    // A mean of 1 ms, percentiles of 1.2 ms, 2000 samples.
    for (text, met) in [
        ("mean<=1ms", Some(true)),
        ("lat_ns.mean<1ms±1%", Some(true)),
        ("lat.mean<=1ms", Some(true)),
        ("mean<1ms", Some(false)),
        ("p99<1.5ms", Some(true)),
        ("p99<1100us", Some(false)),
        ("p99.9<5ms", None),
        ("p9999<5ms", None),
    ] {
        assert_eq!(
            LatencyObjective::parse_recorded(text).unwrap().verdict(&point().lat_ns).decided(),
            met,
            "{text}"
        );
    }
    for (text, message) in [
        ("p99", "is not an objective"),
        ("p98<1ms", "p98 is not recorded: use mean"),
        ("min<1ms", "the minimum cannot be"),
        ("p99>1ms", "needs < or <="),
        ("rand-read.p99<1ms", "names a test"),
        ("read.p99<1ms", "names a direction"),
        ("clat_ns.p99<1ms", "an objective limits lat_ns"),
        ("p99<5", "no unit"),
        ("p99<0ms", "above 0"),
    ] {
        let error = LatencyObjective::parse_recorded(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn rates_are_reached_within_their_tolerance() {
    // 2000 requests of 4 KiB a second.
    for (text, reached) in [
        ("iops>=2000", true),
        ("iops>=2001", false),
        ("iops>2000", false),
        ("iops>1999", true),
        ("iops>=2001±1%", true),
        ("bytes_per_second>=7MiB", true),
        ("bw >= 8MiB/s", false),
    ] {
        assert_eq!(point().reaches(&RateGoal::parse(text).unwrap()), reached, "{text}");
    }
    for text in ["iops<5", "iops>=x", "iops>=0", "iops>=inf", "lat>=5", ""] {
        assert!(RateGoal::parse(text).is_err(), "{text}");
    }
}
