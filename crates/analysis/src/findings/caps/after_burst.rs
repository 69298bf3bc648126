//! What a limit is when the burst is over, where that is known.

use fathom_model::units::{self, Nanos};

use super::Cap;
use crate::rows::RecordRow;
use crate::steady::rate_duration::DurationBasis;

/// What is left of a limit that burst credits raise.
pub(super) struct AfterBurst {
    /// I/Os or bytes per second.
    pub(super) rate: f64,
    /// The shortest burst of its rows, ns.
    lasts_ns: Option<u64>,
    is_published: bool,
}

impl AfterBurst {
    /// Of a limit all of whose rows are bursts; `rate` gives what is limited of a row's I/Os per second.
    pub(super) fn of(
        cap: &Cap,
        rows: &[RecordRow<'_>],
        rate: fn(&RecordRow<'_>, f64) -> f64,
    ) -> Option<AfterBurst> {
        let each = cap.rows.iter().map(|&at| {
            let duration = rows[at].duration();
            let rate = rate(&rows[at], duration.after_burst()?);
            let is_published = duration.basis == Some(DurationBasis::PublishedRule);
            Some(AfterBurst { rate, lasts_ns: duration.lasts_ns, is_published })
        });
        let each: Vec<AfterBurst> = each.collect::<Option<_>>()?;
        Some(AfterBurst {
            rate: each.iter().map(|one| one.rate).reduce(f64::min)?,
            lasts_ns: each.iter().filter_map(|one| one.lasts_ns).min(),
            is_published: each.iter().all(|one| one.is_published),
        })
    }

    pub(super) fn text(&self, rate: &str) -> String {
        match self.lasts_ns.map(|ns| units::duration(Nanos(ns))) {
            Some(lasts) if self.is_published => format!(" in a burst of at most {lasts}, then to {rate}"),
            Some(lasts) => format!(" for {lasts} as observed, then to {rate}"),
            None => format!(" in a burst that is billed, then to {rate}"),
        }
    }
}
