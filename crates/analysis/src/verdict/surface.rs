//! What a surface says first: the rates over the area, the access time, and what cannot be read.

use fathom_record::{FindingId, RunRecord};
use serde::Serialize;

use super::volume::problems;
use crate::surface::Surface;

/// What a surface says first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SurfaceVerdict {
    /// Mean transfer rate of a reader of all points, one I/O at a time, bytes per second.
    pub transfer_bytes_per_second: Option<f64>,
    /// Mean rate with many I/Os outstanding, bytes per second.
    pub saturated_bytes_per_second: Option<f64>,
    /// Mean access time, ns.
    pub access_mean_ns: Option<f64>,
    /// Bytes that were scanned.
    pub scanned_bytes: Option<u64>,
    /// Bytes that cannot be read.
    pub unreadable_bytes: Option<u64>,
    /// Findings that spoil figures, the gravest first.
    pub problems: Vec<FindingId>,
    /// What to do next.
    pub next: Option<String>,
}

impl SurfaceVerdict {
    /// Of a run and what was made of it.
    pub fn of(record: &RunRecord, surface: &Surface) -> SurfaceVerdict {
        let mut ids: Vec<FindingId> = problems(record).map(|found| found.id.clone()).collect();
        ids.dedup();
        SurfaceVerdict {
            transfer_bytes_per_second: surface.transfer_rate.map(|spread| spread.weighted_mean),
            saturated_bytes_per_second: surface.saturated_rate.as_ref().and_then(|rate| rate.mean),
            access_mean_ns: surface.access_lat_ns.mean,
            scanned_bytes: surface.scan.as_ref().map(|scan| scan.scanned_bytes),
            unreadable_bytes: surface.scan.as_ref().map(|scan| scan.unreadable_bytes),
            next: problems(record).find_map(|found| found.remedy.clone()),
            problems: ids,
        }
    }
}
