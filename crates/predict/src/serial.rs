//! Requests of which hardly any two are outstanding at a time: those of a client that waits for each and then thinks, or ones that come
//! by themselves and happen to lie so far apart.
//!
//! A longer latency delays the next request of a client that waits, and does not concern requests that come by themselves. So the slope
//! of the distance to the next request over the latency is 1 of the former, and 0 of the latter. Where latencies hardly vary, both look
//! the same.

use fathom_stats::Moments;

use crate::pace::{CLOSED_FROM, LoadPace, OPEN_TO};

/// Of so many requests, at most one may meet another.
const FEW: u64 = 1_000;
/// So many would meet another by chance, at least.
const MIN_BY_CHANCE: f64 = 20.0;
/// Longer pauses are those of no client that is busy, ns.
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;
/// The standard error of a slope that decides.
const PRECISE: f64 = 0.1;

/// Looks at requests by their times.
#[derive(Debug, Default)]
pub(super) struct SerialCounter {
    /// When the latest request was made, and its latency, ns.
    latest: Option<(u64, u64)>,
    requests: u64,
    /// Requests that were made while another was outstanding.
    meetings: u64,
    latencies: Moments,
    /// From a request to the next one, and the part of it after the latency, ns.
    distances: Moments,
    pauses: Moments,
}

impl SerialCounter {
    /// Looks at the next request, made while `outstanding` others are.
    #[inline]
    pub(super) fn push(&mut self, at_ns: u64, latency_ns: u64, outstanding: usize) {
        self.requests += 1;
        self.meetings += u64::from(outstanding > 0);
        if !self.is_serial() {
            return;
        }
        if let Some((latest_ns, took_ns)) = self.latest.replace((at_ns, latency_ns)) {
            let distance = at_ns - latest_ns;
            if let Some(pause) = distance.checked_sub(took_ns).filter(|pause| *pause <= LONGEST_PAUSE_NS) {
                self.latencies.record(took_ns);
                self.distances.record(distance);
                self.pauses.record(pause);
            }
        }
    }

    fn is_serial(&self) -> bool {
        self.meetings <= 1 + self.requests / FEW
    }

    /// The pace of the requests; `None` where they meet, or would hardly meet if they came at random.
    pub(super) fn pace(&self) -> Option<LoadPace> {
        let count = self.latencies.count as f64;
        let busy = self.latencies.mean() / self.distances.mean().max(1.0);
        if !self.is_serial() || count * (1.0 - (-busy).exp()) < MIN_BY_CHANCE {
            return None;
        }
        let variance = |moments: &Moments| moments.stdev() * moments.stdev();
        let (latency, distance) = (variance(&self.latencies), variance(&self.distances));
        let common = (latency + distance - variance(&self.pauses)) / 2.0;
        let slope = common / latency;
        let error = ((distance - slope * common).max(0.0) / (count * latency)).sqrt();
        Some(match slope {
            slope if slope >= CLOSED_FROM && error <= PRECISE => LoadPace::Closed,
            slope if slope <= OPEN_TO && error <= PRECISE => LoadPace::Open,
            _ => LoadPace::Mixed,
        })
    }
}
