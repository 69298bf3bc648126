//! A trace on a volume: each request at the instant at which it was made, however many are still in flight, or one after the other.
//! What completes is counted by its time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_model::Op;
use fathom_observed::{ObservedRequest, RequestTrace};
use fathom_record::forecast::{CompletedRequests, Forecast, ForecastStall, OwnPace};
use fathom_stats::histogram;
use fathom_volume::{ModelError, RequestOutcome, Volume, VolumeModel};

use super::{ForecastCourse, left};
use crate::replay::{MAX_IN_FLIGHT, ReplayedVolume};
use crate::tally::place;

/// The volume is looked at this often.
const TICK_NS: u64 = 500_000_000;
/// Nothing has completed for so long although requests are in flight, and how many such times are kept.
const STALL_NS: u64 = 1_000_000_000;
const MAX_STALLS: usize = 4_096;
/// Requests between two looks at whether to stop.
const LOOK_EVERY: u64 = 1 << 16;

/// What a trace gets of a volume.
#[derive(Debug)]
pub struct TraceForecast {
    /// The forecast, for a volume without name.
    pub forecast: Forecast,
    /// What ended it before its time; `None` where nothing did.
    pub interrupted: Option<String>,
    /// Requests that never complete.
    pub never: u64,
    /// Requests beyond the end of the volume, which were moved into it.
    pub moved: u64,
    /// Transactions of billed bursts.
    pub billed: u64,
}

/// What is left of each credit of a volume.
pub fn credits_left(volume: &Volume, now: u64) -> Vec<u64> {
    let both = |state: fathom_volume::StageState<'_>| [state.ios, state.bytes];
    volume.stage_states(now).flat_map(both).flatten().filter_map(|one| left(one, now)).collect()
}

/// What `trace`, which lasts `length_ns` by itself, gets of a volume; it is repeated until `ends_at`, or until `stop` says why it ends
/// early. `progress` is told how far it has come, ns, and the requests per second.
///
/// # Errors
/// The model is not valid.
pub fn forecast_trace(
    model: &VolumeModel,
    seed: u64,
    (trace, length_ns): (&RequestTrace, u64),
    ends_at: Option<u64>,
    stop: &dyn Fn() -> Option<String>,
    progress: &mut dyn FnMut(u64, f64),
) -> Result<TraceForecast, ModelError> {
    let mut replay = TraceReplay {
        volume: ReplayedVolume::new(model, seed)?,
        course: ForecastCourse::new(Some(ends_at.unwrap_or(length_ns).max(1)), model),
        stop,
        progress,
        pending: BinaryHeap::new(),
        counted: CompletedRequests::default(),
        latencies: Vec::new(),
        now: 0,
        next_tick: TICK_NS,
        depth: if trace.has_times { usize::MAX } else { 1 },
        most_in_flight: 0,
        active_at: 0,
    };
    let interrupted = replay.run(trace, length_ns, ends_at).err();
    let planned_ns = replay.now.max(ends_at.unwrap_or(0));
    replay.drain();
    let TraceReplay { volume, course, now, most_in_flight, .. } = replay;
    let own_pace = trace.has_times.then(|| OwnPace {
        response: course.forecast.total().lat,
        backlog: 0,
        most_in_flight: Some(most_in_flight as u64),
        late_ns: Some(volume.last_end.saturating_sub(planned_ns)),
    });
    let forecast = Forecast { own_pace, ..course.finish(now) };
    let billed = volume.volume.billed_transactions();
    Ok(TraceForecast { forecast, interrupted, never: volume.never, moved: volume.moved, billed })
}

/// A request in flight, the first to complete first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReplayedRequest {
    end: u64,
    number: u64,
    start: u64,
    op: Op,
    bytes: u32,
    failed: bool,
}

struct TraceReplay<'a> {
    volume: ReplayedVolume,
    course: ForecastCourse,
    stop: &'a dyn Fn() -> Option<String>,
    progress: &'a mut dyn FnMut(u64, f64),
    pending: BinaryHeap<Reverse<ReplayedRequest>>,
    /// What completed since the last tick.
    counted: CompletedRequests,
    latencies: Vec<(u64, u16)>,
    now: u64,
    next_tick: u64,
    depth: usize,
    most_in_flight: usize,
    /// When the last request completed, or the first after a time without any was made.
    active_at: u64,
}

impl TraceReplay<'_> {
    /// Makes the requests, again and again where the time is longer than the trace. Says what ended it early.
    fn run(&mut self, trace: &RequestTrace, length_ns: u64, ends_at: Option<u64>) -> Result<(), String> {
        let mut begin = 0;
        let mut made = 0_u64;
        loop {
            for request in &trace.requests {
                let mut at = begin + request.at_ns;
                while self.pending.len() >= self.depth {
                    at = at.max(self.pending.peek().map_or(at, |first| first.0.end));
                    self.reach(at)?;
                }
                if ends_at.is_some_and(|end| at >= end) {
                    return self.reach(ends_at.unwrap_or(at));
                }
                self.reach(at)?;
                // By their count as well, for between two requests time may stand still.
                if made.is_multiple_of(LOOK_EVERY) {
                    self.look()?;
                }
                self.make(request);
                made += 1;
                if self.pending.len() > MAX_IN_FLIGHT {
                    return Err(format!("more than {MAX_IN_FLIGHT} I/Os were in flight"));
                }
            }
            // A pass ends with its last request, and the next one begins there.
            let next = begin + length_ns;
            let next = if trace.has_times { next } else { next.max(self.volume.last_end) };
            // What takes no time would be repeated without end.
            if ends_at.is_none_or(|end| next >= end) || next == begin {
                return self.reach(ends_at.unwrap_or(self.now));
            }
            begin = next;
        }
    }

    /// Moves on to `time`, or as far as it comes before a stop is asked for.
    fn reach(&mut self, time: u64) -> Result<(), String> {
        while self.next_tick <= time {
            self.look()?;
            self.step(time);
        }
        self.advance(time);
        Ok(())
    }

    fn look(&self) -> Result<(), String> {
        (self.stop)().map_or(Ok(()), Err)
    }

    fn make(&mut self, request: &ObservedRequest) {
        let Some(answer) = self.volume.make(self.now, request) else { return };
        if self.pending.is_empty() {
            self.active_at = self.now;
        }
        self.pending.push(Reverse(ReplayedRequest {
            end: answer.at_ns,
            number: self.volume.volume.counters().issued,
            start: self.now,
            op: request.op,
            bytes: request.bytes,
            failed: matches!(answer.outcome, RequestOutcome::Failed(_)),
        }));
        self.most_in_flight = self.most_in_flight.max(self.pending.len());
    }

    /// Moves on to `time`, taking what completes until then.
    fn advance(&mut self, time: u64) {
        while self.next_tick <= time {
            self.step(time);
        }
        self.take(time);
        self.now = self.now.max(time);
    }

    /// One tick on the way to `time`.
    fn step(&mut self, time: u64) {
        self.take(self.next_tick);
        self.tick(self.next_tick);
        // Days in which nothing completes are not looked at twice a second.
        let until = self.pending.peek().map_or(time, |first| first.0.end.min(time));
        let step = until.saturating_sub(self.next_tick) / 256 / TICK_NS * TICK_NS;
        self.next_tick = self.next_tick.saturating_add(step.max(TICK_NS));
    }

    fn take(&mut self, until: u64) {
        while let Some(Reverse(first)) = self.pending.peek().filter(|first| first.0.end <= until).copied() {
            self.pending.pop();
            let length_ns = first.end.saturating_sub(self.active_at);
            let Forecast { stalls, ops, syncs, .. } = &mut self.course.forecast;
            if length_ns >= STALL_NS && stalls.len() < MAX_STALLS {
                stalls.push(ForecastStall { start_ns: self.active_at, length_ns });
            }
            self.active_at = first.end;
            let ns = first.end - first.start;
            if first.op.is_sync() {
                syncs.record(ns);
                continue;
            }
            let index = place(first.op);
            let total = &mut ops[first.op];
            if first.failed {
                total.failed += 1;
                continue;
            }
            total.ios += 1;
            total.bytes += u64::from(first.bytes);
            total.lat.record(ns);
            self.counted.ios[index] += 1;
            self.counted.bytes[index] += u64::from(first.bytes);
            self.latencies.push((ns, histogram::bin(ns) as u16));
        }
    }

    fn tick(&mut self, at: u64) {
        let from = self.course.at_ns;
        let counted = std::mem::take(&mut self.counted);
        let left = credits_left(&self.volume.volume, at);
        self.course.advance(at, &counted, &left);
        for (ns, bin) in self.latencies.drain(..) {
            self.course.add_latencies((from, at), ns, &[(bin, 1)]);
        }
        let seconds = (at - from).max(1) as f64 / 1e9;
        (self.progress)(at, counted.ios.iter().sum::<u64>() as f64 / seconds);
    }

    /// Lets everything complete.
    fn drain(&mut self) {
        while let Some(Reverse(first)) = self.pending.peek().copied() {
            // A queue of days is not looked at twice a second.
            let step = (self.volume.last_end - first.end) / 256;
            self.next_tick = self.next_tick.max(first.end.saturating_add(step) / TICK_NS * TICK_NS);
            let next = self.next_tick.min(self.volume.last_end);
            self.advance(next.max(first.end));
        }
        let end = self.now.max(self.volume.last_end);
        self.take(end);
        self.tick(end);
        self.now = end;
    }
}
