//! What an identification says first: the type it takes the volume for, what that sustains, and the burst before it.

use serde::Serialize;

use crate::identified::candidate::{Candidate, LIKELY};
use crate::identified::{BucketUnit, Confounder, EachWay, Identified, IoScope};

/// What an identification says first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IdentifiedVerdict {
    /// The type that it matches; `None` where none is near enough.
    pub volume_type: Option<String>,
    /// The nearest type with its distance, whether it matches or not.
    pub nearest: Option<String>,
    /// The distance of that.
    pub distance: Option<f64>,
    /// Other types that match about as well.
    pub alternatives: Vec<String>,
    /// The rate that can be held, IOPS; the IOPS limit where no burst was found.
    pub iops: RateEachWay,
    /// The bandwidth that can be held, bytes per second; the bandwidth limit where no burst was found.
    pub bytes_per_second: RateEachWay,
    /// The bursts.
    pub bursts: Vec<BurstVerdict>,
    /// The highest rates were held for so long, ns, where no burst was found.
    pub held_ns: Option<u64>,
    /// Other explanations of what was measured.
    pub confounders: Vec<Confounder>,
    /// The figures that were not determined.
    pub unknown: Vec<&'static str>,
}

/// A rate in each direction, where it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RateEachWay {
    /// Of reads.
    pub read: Option<f64>,
    /// Of writes.
    pub write: Option<f64>,
}

/// A burst, in I/Os or bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BurstVerdict {
    /// What its bucket holds.
    pub unit: BucketUnit,
    /// Which I/Os draw on it.
    pub scope: IoScope,
    /// The rate while credits last.
    pub burst_rate: Option<f64>,
    /// Time from full credits to none at that rate, s.
    pub seconds_to_empty: Option<f64>,
    /// Time from no credits to full ones when idle, s.
    pub seconds_to_refill: Option<f64>,
}

impl IdentifiedVerdict {
    /// Of what was found, beside the types near to it, the nearest first.
    pub fn of(found: &Identified, candidates: &[Candidate]) -> IdentifiedVerdict {
        // The limits of a control group tell nothing of the volume behind it.
        let is_volumes = found.confounders.iter().all(|cause| cause.id != Confounder::ControlGroup);
        let is_likely = |candidate: &&Candidate| is_volumes && candidate.distance <= LIKELY;
        let mut likely = candidates.iter().filter(is_likely).map(|candidate| candidate.id.clone());
        let bursts = found.bursts.iter().map(|burst| BurstVerdict {
            unit: burst.unit,
            scope: burst.scope,
            burst_rate: burst.burst_rate.value(),
            seconds_to_empty: burst.seconds_to_empty.value(),
            seconds_to_refill: burst.seconds_to_refill.value(),
        });
        let iops = held(found, &found.iops, BucketUnit::Ios);
        let bytes = held(found, &found.bytes_per_second, BucketUnit::Bytes);
        IdentifiedVerdict {
            volume_type: likely.next(),
            alternatives: likely.collect(),
            nearest: candidates.first().map(|candidate| candidate.id.clone()),
            distance: candidates.first().map(|candidate| candidate.distance),
            iops,
            bytes_per_second: RateEachWay {
                read: held_bytes(found, bytes.read, iops.read, IoScope::Reads),
                write: held_bytes(found, bytes.write, iops.write, IoScope::Writes),
            },
            bursts: bursts.collect(),
            held_ns: found.longest_peak_ns.filter(|_| found.bursts.is_empty()),
            confounders: found.confounders.iter().map(|cause| cause.id).collect(),
            unknown: unknown(found),
        }
    }
}

/// What can be held: the baseline behind a bucket, else the limit.
fn held(found: &Identified, limits: &EachWay, unit: BucketUnit) -> RateEachWay {
    let baseline = |scopes: [IoScope; 2]| {
        let of_unit = found.bursts.iter().filter(move |burst| burst.unit == unit);
        of_unit
            .into_iter()
            .find(|burst| scopes.contains(&burst.scope))
            .map(|burst| burst.baseline_rate.value())
    };
    let limit =
        |figure: &Option<crate::identified::Figure>| figure.as_ref().and_then(|figure| figure.value());
    RateEachWay {
        read: baseline([IoScope::Both, IoScope::Reads]).unwrap_or_else(|| limit(&limits.read)),
        write: baseline([IoScope::Both, IoScope::Writes]).unwrap_or_else(|| limit(&limits.write)),
    }
}

/// The bandwidth that can be held behind a bucket of I/Os: no more than its baseline allows of the largest I/Os that count as one.
fn held_bytes(found: &Identified, limit: Option<f64>, iops: Option<f64>, scope: IoScope) -> Option<f64> {
    let draws = |burst: &crate::identified::Burst| {
        burst.unit == BucketUnit::Ios && (burst.scope == IoScope::Both || burst.scope == scope)
    };
    match found.bursts.iter().any(draws) {
        true => Some(limit?.min(iops? * found.io_unit_bytes.value()?)),
        false => limit,
    }
}

/// The figures that have neither a value nor a bound.
fn unknown(found: &Identified) -> Vec<&'static str> {
    let is_open = |each: &EachWay| {
        let mut figures = each.read.iter().chain(&each.write);
        figures.any(|figure| figure.estimate.is_none())
    };
    let mut names = Vec::new();
    for (name, is_unknown) in [
        ("IOPS limit", is_open(&found.iops)),
        ("bandwidth limit", is_open(&found.bytes_per_second)),
        (
            "writes",
            found.iops.read.is_some() && found.iops.write.is_none() && found.bytes_per_second.write.is_none(),
        ),
        ("burst", found.bursts.is_empty() && found.longest_peak_ns.is_none()),
        ("burst bucket capacity", found.bursts.iter().any(|burst| burst.capacity.estimate.is_none())),
        ("refill rate", found.bursts.iter().any(|burst| burst.refill_rate.estimate.is_none())),
    ] {
        names.extend(is_unknown.then_some(name));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identified::OtherCause;
    use crate::identified::{Burst, Figure};

    #[test]
    fn the_baseline_behind_a_bucket_is_what_can_be_held() {
        let known = |value: f64| Figure::known(value, value, value);
        let both = |value: f64| EachWay { read: Some(known(value)), write: Some(known(value)) };
        let burst = Burst {
            unit: BucketUnit::Ios,
            scope: IoScope::Both,
            burst_rate: known(3_000.0),
            baseline_rate: known(150.0),
            capacity: known(5.4e6),
            refill_rate: known(150.0),
            seconds_to_empty: known(1_895.0),
            seconds_to_refill: known(36_000.0),
        };
        let found = Identified {
            iops: both(3_000.0),
            bytes_per_second: both(134e6),
            bursts: vec![burst],
            ..Identified::default()
        };
        let near =
            |id: &str, distance: f64| Candidate { id: id.to_owned(), distance, ..Candidate::default() };
        let verdict = IdentifiedVerdict::of(&found, &[near("a", 0.01), near("b", 0.05), near("c", 0.5)]);
        assert_eq!(verdict.iops, RateEachWay { read: Some(150.0), write: Some(150.0) });
        // How many bytes count as one I/O is unknown.
        assert_eq!(verdict.bytes_per_second.read, None);
        let with_unit = Identified { io_unit_bytes: known(262_144.0), ..found.clone() };
        let held = IdentifiedVerdict::of(&with_unit, &[]).bytes_per_second;
        assert_eq!(held.write, Some(150.0 * 262_144.0));
        assert_eq!((verdict.volume_type.as_deref(), verdict.alternatives), (Some("a"), vec!["b".to_owned()]));
        assert_eq!((verdict.unknown, verdict.held_ns), (Vec::new(), None));
        let cause = OtherCause { id: Confounder::ControlGroup, text: String::new() };
        let of_group = Identified { confounders: vec![cause], ..found.clone() };
        assert_eq!(IdentifiedVerdict::of(&of_group, &[near("a", 0.01)]).volume_type, None);
        let far = IdentifiedVerdict::of(&found, &[near("c", 0.5)]);
        assert_eq!((far.volume_type, far.nearest.as_deref()), (None, Some("c")));
    }
}
