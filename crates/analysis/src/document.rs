//! How results show in documents what they keep as counts: latencies as summaries.

use fathom_record::LatencySummary;
use fathom_stats::Moments;
use serde::{Serialize, Serializer};

/// A rate, null where nothing completed.
pub(crate) fn rate<S: Serializer>(rate: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    Some(*rate).filter(|rate| *rate > 0.0).serialize(serializer)
}

/// Moments as a summary without percentiles.
pub(crate) fn moments<S: Serializer>(moments: &Moments, serializer: S) -> Result<S::Ok, S::Error> {
    let some = moments.count > 0;
    let summary = LatencySummary {
        samples: moments.count,
        min: some.then_some(moments.min),
        mean: some.then(|| moments.mean()),
        max: some.then_some(moments.max),
        stdev: some.then(|| moments.stdev()),
        ..LatencySummary::default()
    };
    summary.serialize(serializer)
}
