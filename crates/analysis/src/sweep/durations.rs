//! How long the highest rates of a sweep last: a plateau may be a burst.

use fathom_record::TestRecord;
use serde::Serialize;

use crate::RecordRow;
use crate::pattern::AccessPattern;
use crate::plateau;
use crate::steady::rate_duration::{Lasting, RateDuration};
use crate::sweep::point::SweepPoint;

/// How long the highest rates of one direction last.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DirectionDurations {
    /// The most requests per second; `None` where nothing was measured.
    pub iops: Option<RateDuration>,
    /// The most bytes per second.
    pub bytes_per_second: Option<RateDuration>,
    /// The largest block size that has the most bytes per second: credits of I/Os last longest with it.
    pub block_size_bytes: Option<u64>,
}

impl DirectionDurations {
    /// Those of the points of `rw` with `jobs` jobs. `measured` are all points with their tests.
    pub(crate) fn of(measured: &[(SweepPoint, &TestRecord)], rw: AccessPattern, jobs: u32) -> Self {
        let is_of = |point: &SweepPoint| (point.spot.rw, point.spot.numjobs) == (rw, jobs);
        let sound: Vec<_> = measured.iter().filter(|(point, _)| is_of(point) && point.is_sound()).collect();
        let of_highest = |measure: fn(&SweepPoint) -> f64, order: fn(u64) -> i128| {
            let top = plateau::at_the_top(sound.iter().map(|(point, _)| measure(point)));
            let of_point = |at: usize| {
                (sound[at].0.spot.block_size_bytes, RecordRow::of(sound[at].1).duration().clone())
            };
            // Points at one plateau have one duration: what is known of one holds for the others.
            top.into_iter()
                .map(of_point)
                .min_by_key(|(block, duration)| (duration.label == Lasting::Inconclusive, order(*block)))
        };
        let largest_first = |block| -i128::from(block);
        let (block_size_bytes, bytes_per_second) =
            of_highest(|point| point.bytes_per_second, largest_first).unzip();
        // Large blocks at the limit on I/Os may use up credits of bytes, which are none of this limit's.
        let iops = of_highest(|point| point.iops, i128::from).map(|(_, duration)| duration);
        DirectionDurations { iops, bytes_per_second, block_size_bytes }
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::{BurstRate, KnownBy, OwnRates, PublishedRates};

    use super::*;
    use crate::fixture::{TestLoad, record};
    use crate::sweep::assess;

    #[test]
    fn a_plateau_that_is_a_burst_says_so() {
        let load = |id: &'static str, depth| TestLoad { id, depth, iops: 3000.0, ..TestLoad::default() };
        let mut run = record(&[load("randread-4k-d8", 8), load("randread-4k-d16", 16)]);
        let burst = BurstRate { iops: 3000.0, lasts_ns: Some(1_895_000_000_000), refill_ns: None };
        for test in &mut run.tests {
            test.published = Some(PublishedRates {
                own: Some(OwnRates {
                    volume: "aws-gp2?size=50GiB".to_owned(),
                    known_by: KnownBy::Label,
                    sustained_iops: Some(150.0),
                    burst: Some(burst),
                    ..OwnRates::default()
                }),
                ..PublishedRates::default()
            });
        }
        let durations = assess(&run).rate_durations;
        let text = "burst for 31 min 35 s from full credits, then 150 IOPS (aws-gp2?size=50GiB)";
        assert_eq!(durations.read.iops.map(|duration| duration.text()).as_deref(), Some(text));
        assert_eq!(durations.write, DirectionDurations::default());
    }

    #[test]
    fn the_iops_limit_lasts_as_its_smallest_blocks_do() {
        let load = |id: &'static str, bs| TestLoad { id, bs, depth: 8, iops: 3000.0, ..TestLoad::default() };
        let mut run = record(&[load("randread-4k-d8", 4096), load("randread-64k-d8", 65_536)]);
        for (test, sustained) in run.tests.iter_mut().zip([3000.0, 747.0]) {
            test.published = Some(PublishedRates {
                own: Some(OwnRates {
                    volume: "some".to_owned(),
                    known_by: KnownBy::Label,
                    sustained_iops: Some(sustained),
                    burst: Some(BurstRate { iops: 3000.0, lasts_ns: Some(68_000_000_000), refill_ns: None }),
                    ..OwnRates::default()
                }),
                ..PublishedRates::default()
            });
        }
        let durations = assess(&run).rate_durations.read;
        let text = |duration: Option<RateDuration>| duration.map(|duration| duration.text());
        assert_eq!(text(durations.iops).as_deref(), Some("sustained by the published rule (some)"));
        let burst = "burst for 1 min 08 s from full credits, then 747 IOPS (some)";
        assert_eq!(text(durations.bytes_per_second).as_deref(), Some(burst));
    }

    #[test]
    fn a_rate_of_an_unknown_volume_is_no_more_than_measured() {
        let run = record(&[TestLoad { id: "randread-4k-d8", depth: 8, ..TestLoad::default() }]);
        let label = assess(&run).rate_durations.read.iops.map(|duration| duration.label);
        assert_eq!(label, Some(Lasting::Inconclusive));
    }
}
