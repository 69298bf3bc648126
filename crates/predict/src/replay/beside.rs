//! Clients beside requests that come by themselves, told apart by their threads.
//!
//! A client makes a request, waits for it, and pauses, for as long as its thread makes requests in the recording: more of them on a
//! faster volume, fewer on a slower one. Its requests and pauses are, in turn, those that the recording has around the same time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_observed::ObservedRequest;

use super::{Copies, ReplayRun};
use crate::clients::ThreadSet;

/// A thread without a request for so long has stopped, ns.
const STOPPED_NS: u64 = 1_000_000_000;
/// Requests of a thread that are made in turn.
const RECENT: usize = 64;

/// Clients, and requests that come by themselves.
pub(super) struct ClientsBeside {
    copies: Copies,
    growth: f64,
    clients: ThreadSet,
    threads: Vec<ClientThread>,
    /// When clients make their next requests, with their threads. Those that growth adds do not count as the thread's own.
    ready: BinaryHeap<Reverse<(u64, u8, bool)>>,
    /// Requests of the recording, and those that were made here.
    recorded: u64,
    made: u64,
}

/// A thread of the recording: one client, or as many as it has requests in flight.
#[derive(Clone, Debug, Default)]
struct ClientThread {
    /// Its latest requests, with the pauses before them, ns.
    recent: Vec<(u64, ObservedRequest)>,
    /// The place of the oldest of them, and of the one that is made next.
    oldest: usize,
    next: usize,
    /// Completions of the recording that lie ahead, and those that no request followed yet.
    ahead: BinaryHeap<Reverse<u64>>,
    unclaimed: Vec<u64>,
    /// The latest of all.
    last_end: u64,
    /// Clients that run.
    running: usize,
}

impl ClientThread {
    /// Takes the next request of the recording. Returns how many clients begin with it.
    fn observe(&mut self, request: &ObservedRequest) -> usize {
        let at = request.at_ns;
        while let Some(Reverse(end)) = self.ahead.peek().copied().filter(|end| end.0 <= at) {
            self.ahead.pop();
            self.unclaimed.push(end);
        }
        let pause = self.unclaimed.pop().map(|end| at - end).filter(|pause| *pause < STOPPED_NS);
        if let Some(pause) = pause {
            match self.recent.get_mut(self.oldest) {
                Some(oldest) => *oldest = (pause, *request),
                None => self.recent.push((pause, *request)),
            }
            self.oldest = (self.oldest + 1) % RECENT;
        }
        let end = at.saturating_add(request.latency_ns.map_or(1, std::num::NonZeroU64::get));
        self.ahead.push(Reverse(end));
        self.last_end = self.last_end.max(end);
        self.ahead.len().saturating_sub(self.running)
    }

    /// The request that is made next, and the pause after it.
    fn next(&mut self) -> Option<(u64, ObservedRequest)> {
        let (pause, request) = *self.recent.get(self.next % self.recent.len().max(1))?;
        self.next = (self.next + 1) % self.recent.len();
        Some((pause, request))
    }
}

impl ClientsBeside {
    pub(super) fn new(clients: ThreadSet, growth_milli: u64) -> ClientsBeside {
        ClientsBeside {
            copies: Copies::new(growth_milli),
            growth: growth_milli as f64 / 1000.0,
            clients,
            threads: vec![ClientThread::default(); usize::from(u8::MAX) + 1],
            ready: BinaryHeap::new(),
            recorded: 0,
            made: 0,
        }
    }

    pub(super) fn take(&mut self, requests: &[ObservedRequest], run: &mut ReplayRun) {
        for request in requests {
            self.reach(request.at_ns, run);
            self.recorded += 1;
            if !self.clients.contains(request.thread) {
                for _ in 0..self.copies.next_count() {
                    self.made += 1;
                    run.make(request.at_ns, request);
                }
                continue;
            }
            let thread = &mut self.threads[usize::from(request.thread)];
            let begins = thread.observe(request);
            thread.running += begins;
            for _ in 0..begins {
                for copy in 0..self.copies.next_count() {
                    self.make(request.at_ns, request, 0, copy == 0, run);
                }
            }
        }
    }

    /// Lets clients go on until the end of the recording.
    pub(super) fn finish(&mut self, run: &mut ReplayRun) {
        self.reach(run.length_ns, run);
        run.made_share = (self.made as f64 / (self.recorded.max(1) as f64 * self.growth)).min(1.0);
    }

    /// Makes what clients make before `until`.
    fn reach(&mut self, until: u64, run: &mut ReplayRun) {
        while let Some(Reverse((at, number, is_own))) =
            self.ready.peek().copied().filter(|next| next.0.0 < until)
        {
            self.ready.pop();
            let thread = &mut self.threads[usize::from(number)];
            let is_running = at < thread.last_end.saturating_add(STOPPED_NS);
            match thread.next().filter(|_| is_running) {
                Some((pause, request)) => self.make(at, &request, pause, is_own, run),
                None => thread.running -= usize::from(is_own),
            }
        }
    }

    fn make(&mut self, at: u64, request: &ObservedRequest, pause: u64, is_own: bool, run: &mut ReplayRun) {
        self.made += 1;
        match run.make(at, request) {
            // What never completes, nothing follows.
            u64::MAX => {}
            end => self.ready.push(Reverse((end.saturating_add(pause), request.thread, is_own))),
        }
    }
}
