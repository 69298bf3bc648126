//! Requests that are drawn in batches and issued one by one.

use fathom_model::{Op, Request};
use fathom_workload::Source;

use super::cached::CachedPasses;
use crate::worker::WorkerSpec;

/// Requests per draw.
const AHEAD: usize = 16;

/// Requests drawn ahead, in order, from index `next` on.
pub(super) struct Ahead {
    requests: [Request; AHEAD],
    next: usize,
    /// What drops the cached pages of ended passes.
    cached: Option<Box<CachedPasses>>,
}

impl Default for Ahead {
    fn default() -> Self {
        let requests = [Request { op: Op::Read, file: 0, len: 0, offset: 0 }; AHEAD];
        Ahead { requests, next: AHEAD, cached: None }
    }
}

impl Ahead {
    /// None drawn, for the worker of `spec`.
    pub fn new(spec: &WorkerSpec) -> Ahead {
        Ahead { cached: CachedPasses::new(spec), ..Ahead::default() }
    }

    /// Drops the cached pages if `source` has ended a pass.
    #[inline(always)]
    pub fn drop_cached(&mut self, source: &Source) {
        if let Some(cached) = &mut self.cached {
            cached.drop_ended(source);
        }
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.next == AHEAD
    }

    /// The next request that has been drawn.
    #[inline(always)]
    pub fn take_drawn(&mut self) -> Option<Request> {
        let request = *self.requests.get(self.next)?;
        self.next += 1;
        Some(request)
    }

    /// The next request, drawing more from `source` if necessary; `None` when the work is done.
    #[inline(always)]
    pub fn take(&mut self, source: &mut Source) -> Option<Request> {
        if self.is_empty() {
            self.refill(source);
        }
        self.take_drawn()
    }

    /// Not inlined: it is called once for many requests, and the turns stay short.
    #[inline(never)]
    fn refill(&mut self, source: &mut Source) {
        let mut made = 0;
        source.next_requests(AHEAD as u64, |request| {
            self.requests[made] = request;
            made += 1;
        });
        self.next = AHEAD - made;
        self.requests.rotate_right(self.next);
        self.drop_cached(source);
    }
}
