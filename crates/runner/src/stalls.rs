//! Detection of stalls, per worker and by the observer, so that a worker stuck in the kernel is detected too.

use fathom_stats::Stall;
use fathom_stats::live::LiveWorker;
use fathom_sys::thread::pending_offset;

/// A worker with requests in flight is stalled if none completes for this long, ns. With a check at least every half
/// second, stalls are reported within two seconds.
pub(crate) const STALL_NS: u64 = 1_000_000_000;
/// Stalls kept per worker; the series shows further ones.
const KEPT: usize = 1_000;

/// The observations of one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct StallWatch {
    /// The last completion at the latest check.
    last_completion: u64,
    /// Time since which requests have been in flight without a completion; `None` if none are.
    since: Option<u64>,
    checked_at: u64,
    /// Session times.
    stalls: Vec<Stall>,
}

impl StallWatch {
    /// Checks `live` at `now`; returns the time without a completion, ns, or 0 without a stall.
    pub fn check(&mut self, now: u64, live: &LiveWorker) -> u64 {
        let begun = live.ramp.iter().chain([&live.measured]).map(|phase| phase.start_ns.get());
        let begun = begun.filter(|&start| start != 0).min();
        let (last, in_flight) = (live.last_completion_ns.get(), live.in_flight.get());
        let completed = last != self.last_completion;
        if completed {
            self.end(last.min(now), live.resumed_ns.get());
        }
        self.since = match begun {
            Some(begun) if in_flight > 0 && !live.is_finished() => {
                // If nothing was in flight at the previous check, the current requests began after it.
                let kept = self.since.unwrap_or(self.checked_at);
                Some(if completed { last } else { kept }.max(begun))
            }
            _ => {
                self.end(now, 0);
                None
            }
        };
        (self.last_completion, self.checked_at) = (last, now);
        let stalled_ns = self.since.map_or(0, |since| now.saturating_sub(since));
        if stalled_ns >= STALL_NS {
            self.extend(stalled_ns, live);
        }
        stalled_ns
    }

    /// True during a stall.
    pub fn is_stalled(&self) -> bool {
        self.stalls.last().is_some_and(|stall| !stall.over)
    }

    fn extend(&mut self, stalled_ns: u64, live: &LiveWorker) {
        let Some(since) = self.since else { return };
        if !self.is_stalled() && self.stalls.len() < KEPT {
            let depth = live.in_flight.get() as u32;
            self.stalls.push(Stall { start_ns: since, depth, ..Stall::default() });
        }
        let Some(stall) = self.stalls.last_mut().filter(|stall| !stall.over) else { return };
        stall.length_ns = stalled_ns;
        if stall.offsets.is_empty() {
            stall.offsets = live.offsets_in_flight(since);
        }
        if stall.offsets.is_empty() {
            stall.offsets.extend(pending_offset(live.thread_id.get() as u32));
        }
    }

    /// Ends the current stall, if any, at the latest completion, or at the first one if the worker published it.
    fn end(&mut self, at: u64, resumed: u64) {
        if let Some(stall) = self.stalls.last_mut().filter(|stall| !stall.over) {
            let at = if (stall.start_ns + 1..=at).contains(&resumed) { resumed } else { at };
            stall.over = true;
            stall.length_ns = at.saturating_sub(stall.start_ns).max(stall.length_ns);
        }
    }

    /// All stalls, with times since `origin`.
    pub fn into_stalls(mut self, origin: u64) -> Vec<Stall> {
        for stall in &mut self.stalls {
            stall.start_ns = stall.start_ns.saturating_sub(origin);
        }
        self.stalls
    }
}

#[cfg(test)]
mod tests {
    use fathom_stats::live::Recorded;

    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn stalls_are_detected_and_end() {
        let live = LiveWorker::new(Recorded::default(), [true; 3], false);
        let mut watch = StallWatch::default();
        assert_eq!(watch.check(S, &live), 0, "not begun");
        live.measured.start_ns.set(2 * S);
        live.in_flight.set(4);
        live.last_completion_ns.set(3 * S);
        assert_eq!(watch.check(3 * S + 5, &live), 5);
        assert_eq!((watch.check(4 * S + 1, &live), watch.is_stalled()), (S + 1, true));
        live.publish_stalled_offsets(4 * S, [512, 0].into_iter());
        assert_eq!(watch.check(13 * S, &live), 10 * S);
        // Other requests have completed since the first one.
        live.record_resumption(13 * S + 7, STALL_NS);
        live.record_resumption(13 * S + 8, STALL_NS);
        live.last_completion_ns.set(13 * S + 9);
        live.in_flight.set(3);
        assert_eq!((watch.check(13 * S + 11, &live), watch.is_stalled()), (2, false));
        let expected =
            Stall { start_ns: 2 * S, length_ns: 10 * S + 7, depth: 4, offsets: vec![512, 0], over: true };
        assert_eq!(watch.into_stalls(S), [expected]);
    }

    #[test]
    fn pauses_are_not_stalls_and_do_not_extend_them() {
        let live = LiveWorker::new(Recorded::default(), [true; 3], false);
        let mut watch = StallWatch::default();
        live.measured.start_ns.set(S);
        live.last_completion_ns.set(2 * S);
        for at in [3, 5, 9] {
            assert_eq!(watch.check(at * S, &live), 0, "nothing is in flight");
        }
        live.in_flight.set(1);
        assert_eq!((watch.check(10 * S, &live), watch.is_stalled()), (S, true));
        // From the last check with nothing in flight, not from the last completion.
        assert_eq!(watch.into_stalls(0)[0].start_ns, 9 * S);
    }

    #[test]
    fn a_stall_without_an_end_lasts_until_the_last_check() {
        let live = LiveWorker::new(Recorded::default(), [true; 3], true);
        let mut watch = StallWatch::default();
        live.ramp.as_ref().unwrap().start_ns.set(S);
        live.in_flight.set(1);
        watch.check(S, &live);
        watch.check(8 * S, &live);
        let stalls = watch.into_stalls(S);
        assert_eq!((stalls[0].start_ns, stalls[0].length_ns, stalls[0].over), (0, 7 * S, false));
    }
}
