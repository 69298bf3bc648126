//! How long a rank waits for the others, and for what.

use std::time::Duration;

use fathom_sys::clock::monotonic_ns;

use super::super::message::{FIRST_START, NEXT_START};
use super::{Coordinator, RankState, StartedPhase};

/// Time for rank 0 to read one state, beside the grace.
const PER_RANK: Duration = Duration::from_millis(10);

impl Coordinator {
    /// What a rank in `state` waits for.
    pub(super) fn phase(&self, state: &RankState) -> &'static str {
        match state {
            RankState::Ended { .. } => "the end of all runs",
            _ if self.started.is_none() => FIRST_START,
            RankState::Failed { .. } => "the other ranks, having failed",
            RankState::Ready { .. } => NEXT_START,
            RankState::Asks { .. } => "what to measure next",
        }
    }

    /// Longest wait for the other ranks: until they have prepared, or for the rest of what they run, and the grace. Where runtimes do not
    /// determine the length of a run, the others may take twice as long as this rank.
    pub(super) fn limit(&self) -> Duration {
        let grace = Duration::from_nanos(self.settings.grace.0);
        let Some(StartedPhase { at_ns, longest_ns }) = self.started else {
            return Duration::from_nanos(self.settings.prepare.0);
        };
        let spent_ns = monotonic_ns().saturating_sub(at_ns);
        let left_ns = longest_ns.map_or(spent_ns, |longest_ns| longest_ns.saturating_sub(spent_ns));
        Duration::from_nanos(left_ns) + grace
    }

    /// Longest wait for ranks that have just met.
    pub(super) fn short_limit(&self) -> Duration {
        Duration::from_nanos(self.settings.grace.0) + PER_RANK * self.place.ranks
    }
}
