//! Noticing that nothing completes: per worker, from outside, so that a worker stuck in the kernel is seen as well.

use fathom_stats::Stall;
use fathom_stats::live::LiveWorker;
use fathom_sys::thread::pending_offset;

/// A worker with requests in flight of which none completes for so long is stalled, ns. With a look at least every half
/// second it is told of within two seconds.
pub(crate) const STALL_NS: u64 = 1_000_000_000;
/// Stalls kept of one worker; a device that stalls more often is told by its series.
const KEPT: usize = 1_000;

/// What has been seen of one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct StallWatch {
    /// The last completion at the latest look.
    last_completion: u64,
    /// Since when requests have been in flight without a completion; `None` where none are.
    since: Option<u64>,
    looked_at: u64,
    /// Session times.
    stalls: Vec<Stall>,
}

impl StallWatch {
    /// Looks at `live` at `now`; answers for how long nothing has completed, ns, 0 where all is well.
    pub fn look(&mut self, now: u64, live: &LiveWorker) -> u64 {
        let begun = live.ramp.iter().chain([&live.measured]).map(|phase| phase.start_ns.get());
        let begun = begun.filter(|&start| start != 0).min();
        let (last, in_flight) = (live.last_completion_ns.get(), live.in_flight.get());
        let completed = last != self.last_completion;
        if completed {
            self.end(last.min(now), live.resumed_ns.get());
        }
        self.since = match begun {
            Some(begun) if in_flight > 0 && !live.is_finished() => {
                // Where nothing was in flight at the look before, what is now has begun since.
                let kept = self.since.unwrap_or(self.looked_at);
                Some(if completed { last } else { kept }.max(begun))
            }
            _ => {
                self.end(now, 0);
                None
            }
        };
        (self.last_completion, self.looked_at) = (last, now);
        let stalled_ns = self.since.map_or(0, |since| now.saturating_sub(since));
        if stalled_ns >= STALL_NS {
            self.extend(stalled_ns, live);
        }
        stalled_ns
    }

    /// True while a stall goes on.
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

    /// Ends the stall that goes on, where one does, at the latest completion, or at the first where the worker told of it.
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
    fn stalls_are_noticed_and_end() {
        let live = LiveWorker::new(Recorded::default(), [true; 3], false);
        let mut watch = StallWatch::default();
        assert_eq!(watch.look(S, &live), 0, "not begun");
        live.measured.start_ns.set(2 * S);
        live.in_flight.set(4);
        live.last_completion_ns.set(3 * S);
        assert_eq!(watch.look(3 * S + 5, &live), 5);
        assert_eq!((watch.look(4 * S + 1, &live), watch.is_stalled()), (S + 1, true));
        live.hold(4 * S, [512, 0].into_iter());
        assert_eq!(watch.look(13 * S, &live), 10 * S);
        // Others have completed since the first that did.
        live.resume(13 * S + 7, STALL_NS);
        live.resume(13 * S + 8, STALL_NS);
        live.last_completion_ns.set(13 * S + 9);
        live.in_flight.set(3);
        assert_eq!((watch.look(13 * S + 11, &live), watch.is_stalled()), (2, false));
        let expected =
            Stall { start_ns: 2 * S, length_ns: 10 * S + 7, depth: 4, offsets: vec![512, 0], over: true };
        assert_eq!(watch.into_stalls(S), [expected]);
    }

    #[test]
    fn a_pause_is_no_stall_and_does_not_lengthen_one() {
        let live = LiveWorker::new(Recorded::default(), [true; 3], false);
        let mut watch = StallWatch::default();
        live.measured.start_ns.set(S);
        live.last_completion_ns.set(2 * S);
        for at in [3, 5, 9] {
            assert_eq!(watch.look(at * S, &live), 0, "nothing is in flight");
        }
        live.in_flight.set(1);
        assert_eq!((watch.look(10 * S, &live), watch.is_stalled()), (S, true));
        // From the last look at which nothing was in flight, not from the last completion.
        assert_eq!(watch.into_stalls(0)[0].start_ns, 9 * S);
    }

    #[test]
    fn a_stall_that_never_ends_is_kept_as_far_as_it_was_seen() {
        let live = LiveWorker::new(Recorded::default(), [true; 3], true);
        let mut watch = StallWatch::default();
        live.ramp.as_ref().unwrap().start_ns.set(S);
        live.in_flight.set(1);
        watch.look(S, &live);
        watch.look(8 * S, &live);
        let stalls = watch.into_stalls(S);
        assert_eq!((stalls[0].start_ns, stalls[0].length_ns, stalls[0].over), (0, 7 * S, false));
    }
}
