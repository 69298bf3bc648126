//! A trace on a simulated volume: each request at the instant at which it was made, however many are still in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_analysis::forecast::{ForecastCourse, credits, joined};
use fathom_model::units::grouped;
use fathom_model::{Nanos, Op, PerOp};
use fathom_observed::ObservedRequest;
use fathom_record::forecast::{CompletedRequests, Forecast, ForecastOp, ForecastStall, OwnPace};
use fathom_runner::StopHandle;
use fathom_stats::{Latency, histogram};
use fathom_volume::{RequestOutcome, Volume, VolumeRequest};

use super::jobs::{stage_states, volume_notes};
use super::trace::Trace;
use super::{Predicted, SimulateObserver};
use crate::AssessError;
use crate::simulated::SimulatedVolume;

/// The volume is looked at this often.
const TICK_NS: u64 = 500_000_000;
/// More are not kept in mind: the volume falls behind for good then.
const MOST_IN_FLIGHT: usize = 1 << 22;
/// Nothing has completed for so long although requests are in flight, and how many such times are kept.
const STALL_NS: u64 = 1_000_000_000;
const MOST_STALLS: usize = 4_096;
/// Requests between two looks at whether to stop.
const LOOK_EVERY: u64 = 1 << 16;
/// Offsets of direct requests are multiples of this.
const SECTOR: u64 = 512;

/// What the trace gets of the volume.
pub(super) fn predict(
    trace: &Trace,
    volume: &SimulatedVolume,
    length: Option<Nanos>,
    stop: &StopHandle,
    observer: &mut dyn SimulateObserver,
) -> Result<Predicted, AssessError> {
    let refuse = |reason: String| AssessError::Simulated {
        target: volume.path.display().to_string(),
        reason,
        hint: Some("use a larger size=".to_owned()),
    };
    let largest = trace.events.iter().map(|event| u64::from(event.bytes)).max().unwrap_or(0);
    if largest > volume.size() {
        return Err(refuse(format!(
            "{} has an I/O of {largest} bytes, more than the size of the volume",
            trace.name
        )));
    }
    let model = Volume::new(&volume.model, volume.seed).map_err(|error| refuse(error.to_string()))?;
    let ends_at = length.map(|length| length.0);
    let mut replay = Replay {
        volume: model,
        course: ForecastCourse::new(Some(ends_at.unwrap_or(trace.length_ns).max(1)), credits(&volume.model)),
        depth: if trace.has_times { usize::MAX } else { 1 },
        ..Replay::empty(observer, stop)
    };
    let ended = replay.run(trace, ends_at).err();
    let reached = replay.now;
    replay.drain();
    Ok(replay.predicted(trace, volume, reached.max(ends_at.unwrap_or(0)), ended))
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

struct Replay<'a> {
    volume: Volume,
    course: ForecastCourse,
    observer: &'a mut dyn SimulateObserver,
    stop: &'a StopHandle,
    pending: BinaryHeap<Reverse<ReplayedRequest>>,
    /// What completed since the last tick.
    counted: CompletedRequests,
    latencies: Vec<(u64, u16)>,
    ops: PerOp<ForecastOp>,
    syncs: Latency,
    now: u64,
    next_tick: u64,
    last_end: u64,
    depth: usize,
    most_in_flight: usize,
    never: u64,
    wrapped: u64,
    /// When the last request completed, or the first after a time without any was made.
    active_at: u64,
    stalls: Vec<ForecastStall>,
}

impl<'a> Replay<'a> {
    fn empty(observer: &'a mut dyn SimulateObserver, stop: &'a StopHandle) -> Self {
        Replay {
            volume: Volume::new(&fathom_volume::VolumeModel::unlimited(1), 0)
                .expect("a volume of one byte is valid"),
            course: ForecastCourse::new(None, Vec::new()),
            observer,
            stop,
            pending: BinaryHeap::new(),
            counted: CompletedRequests::default(),
            latencies: Vec::new(),
            ops: PerOp::default(),
            syncs: Latency::default(),
            now: 0,
            next_tick: TICK_NS,
            last_end: 0,
            depth: usize::MAX,
            most_in_flight: 0,
            never: 0,
            wrapped: 0,
            active_at: 0,
            stalls: Vec::new(),
        }
    }
}

impl Replay<'_> {
    /// Makes the requests, again and again where the time is longer than the trace. Says what ended it early.
    fn run(&mut self, trace: &Trace, ends_at: Option<u64>) -> Result<(), String> {
        let mut begin = 0;
        let mut made = 0_u64;
        loop {
            for event in &trace.events {
                let mut at = begin + event.at_ns;
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
                self.make(event);
                made += 1;
                if self.pending.len() > MOST_IN_FLIGHT {
                    return Err(format!("more than {MOST_IN_FLIGHT} I/Os were in flight"));
                }
            }
            // A pass ends with its last request, and the next one begins there.
            let next = begin + trace.length_ns;
            let next = if trace.has_times { next } else { next.max(self.last_end) };
            // What takes no time would be repeated without end.
            if ends_at.is_none_or(|end| next >= end) || next == begin {
                return self.reach(ends_at.unwrap_or(self.now));
            }
            begin = next;
        }
    }

    /// Whether to go on.
    fn look(&self) -> Result<(), String> {
        if self.stop.is_requested() { Err(self.stop.reason().unwrap_or_default()) } else { Ok(()) }
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

    fn make(&mut self, event: &ObservedRequest) {
        let size = self.volume.model().size_bytes;
        let mut offset = event.offset;
        if offset.checked_add(u64::from(event.bytes)).is_none_or(|end| end > size) {
            self.wrapped += 1;
            let places = size - u64::from(event.bytes) + 1;
            offset = offset % places / SECTOR * SECTOR;
        }
        let answer =
            self.volume.submit(self.now, &VolumeRequest { op: event.op, offset, bytes: event.bytes });
        if answer.outcome == RequestOutcome::Never {
            self.never += 1;
            return;
        }
        let failed = matches!(answer.outcome, RequestOutcome::Failed(_));
        let number = self.volume.counters().issued;
        let (end, start, op, bytes) = (answer.at_ns, self.now, event.op, event.bytes);
        if self.pending.is_empty() {
            self.active_at = self.now;
        }
        self.pending.push(Reverse(ReplayedRequest { end, number, start, op, bytes, failed }));
        self.most_in_flight = self.most_in_flight.max(self.pending.len());
        self.last_end = self.last_end.max(end);
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
            if length_ns >= STALL_NS && self.stalls.len() < MOST_STALLS {
                self.stalls.push(ForecastStall { start_ns: self.active_at, length_ns });
            }
            self.active_at = first.end;
            let ns = first.end - first.start;
            let index = match first.op {
                Op::Read => 0,
                Op::Write => 1,
                Op::Trim => 2,
                Op::Sync | Op::Datasync => {
                    self.syncs.record(ns);
                    continue;
                }
            };
            let total = &mut self.ops[first.op];
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
        let from = self.course.at_ns();
        let counted = std::mem::take(&mut self.counted);
        let left = stage_states(&self.volume, at);
        self.course.advance(at, &counted, &left);
        for (ns, bin) in self.latencies.drain(..) {
            self.course.add_latencies((from, at), ns, &[(bin, 1)]);
        }
        let seconds = (at - from).max(1) as f64 / 1e9;
        self.observer.progress(at, counted.ios.iter().sum::<u64>() as f64 / seconds);
    }

    /// Lets everything complete.
    fn drain(&mut self) {
        while let Some(Reverse(first)) = self.pending.peek().copied() {
            // A queue of days is not looked at twice a second.
            let step = (self.last_end - first.end) / 256;
            self.next_tick = self.next_tick.max(first.end.saturating_add(step) / TICK_NS * TICK_NS);
            let next = self.next_tick.min(self.last_end);
            self.advance(next.max(first.end));
        }
        let end = self.now.max(self.last_end);
        self.take(end);
        self.tick(end);
        self.now = end;
    }

    fn predicted(
        self,
        trace: &Trace,
        volume: &SimulatedVolume,
        planned_ns: u64,
        interrupted: Option<String>,
    ) -> Predicted {
        let mut notes = volume_notes(volume);
        notes.extend(trace.notes.iter().cloned());
        if trace.length_ns == 0 && trace.has_times {
            notes.push("all I/Os of the trace have the same time, so the trace is replayed once".to_owned());
        }
        if self.wrapped > 0 {
            notes.push(format!(
                "{} I/Os beyond the end of the volume were moved into it",
                grouped(self.wrapped)
            ));
        }
        let failure = (self.never > 0).then(|| format!("{} I/Os never complete", grouped(self.never)));
        let mut response = Latency::default();
        self.ops.iter().for_each(|(_, op)| response.merge(&op.lat));
        let mut course = self.course;
        course.bound(response.moments.min, response.moments.max);
        let own_pace = trace.has_times.then(|| OwnPace {
            response,
            backlog: 0,
            most_in_flight: Some(self.most_in_flight as u64),
            late_ns: Some(self.last_end.saturating_sub(planned_ns)),
        });
        let billed = self.volume.billed_transactions();
        let forecast = Forecast {
            target: volume.path.display().to_string(),
            size_bytes: volume.size(),
            elapsed_ns: self.now,
            row_ns: course.row_ns,
            slices: course.slices,
            credits: course.credits,
            ops: self.ops,
            syncs: self.syncs,
            stalls: joined(self.stalls),
            own_pace,
            monthly_cost: None,
        };
        Predicted { forecast, interrupted, failure, notes, billed }
    }
}

#[cfg(test)]
mod tests {
    use fathom_sys::files::TRACE;

    use super::*;
    use crate::catalogue::VolumeTypes;

    fn predicted(volume: &str, text: &str, seconds: Option<u64>) -> Predicted {
        let trace = Trace::read_from(&TRACE, "t", text.as_bytes(), None).unwrap();
        let volume = SimulatedVolume::named(volume.as_ref(), &VolumeTypes::default()).unwrap();
        let stop = StopHandle::default();
        predict(&trace, &volume, seconds.map(Nanos::from_secs), &stop, &mut ()).unwrap()
    }

    /// So many reads of 4 KiB, so many µs apart.
    fn reads(count: u64, apart_us: u64) -> String {
        let line = |index: u64| format!("{} /t read {} 4096\n", index * apart_us, index * 4096);
        "fio version 3 iolog\n".to_owned() + &(0..count).map(line).collect::<String>()
    }

    const HUNDRED: &str = "sim:custom?iops=100&latency=1ms&size=1GiB";

    #[test]
    fn a_volume_that_keeps_up_serves_each_at_its_time() {
        // 50 a second for 10 s.
        let Predicted { forecast, .. } = predicted(HUNDRED, &reads(500, 20_000), None);
        assert_eq!((forecast.ops.read.ios, forecast.ops.read.lat.moments.max), (500, 1_000_000));
        let pace = forecast.own_pace.unwrap();
        assert_eq!((pace.most_in_flight, pace.late_ns), (Some(1), Some(1_000_000)));
        assert_eq!(forecast.elapsed_ns, 499 * 20_000_000 + 1_000_000);
    }

    #[test]
    fn a_volume_that_does_not_is_told_by_how_much() {
        // 200 a second for 5 s on half of that: it takes 10 s, and the last waits 5 s.
        let Predicted { forecast, .. } = predicted(HUNDRED, &reads(1_000, 5_000), None);
        let pace = forecast.own_pace.as_ref().unwrap();
        let late = pace.late_ns.unwrap() as f64 / 1e9;
        assert!((4.9..5.1).contains(&late), "{late}");
        assert!((490..=510).contains(&pace.most_in_flight.unwrap()), "{pace:?}");
        let longest = forecast.ops.read.lat.moments.max as f64 / 1e9;
        assert!((4.9..5.1).contains(&longest), "{longest}");
        assert_eq!(forecast.slices.iter().map(|slice| slice.counted.ios[0]).sum::<u64>(), 1_000);
        let rates: Vec<f64> = forecast.slices[1..].iter().map(|slice| slice.iops()).collect();
        assert!(rates.iter().all(|rate| (99.0..=102.0).contains(rate)), "{rates:?}");
    }

    #[test]
    fn a_trace_is_repeated_for_as_long_as_is_asked() {
        let Predicted { forecast, .. } = predicted(HUNDRED, &reads(50, 20_000), Some(10));
        // 50 in 980 ms, the last of each pass together with the first of the next.
        assert!((505..=512).contains(&forecast.ops.read.ios), "{}", forecast.ops.read.ios);
        assert_eq!(forecast.slices.len(), 10);
        let shorter = predicted(HUNDRED, &reads(500, 20_000), Some(2));
        assert_eq!((shorter.forecast.ops.read.ios, shorter.interrupted), (100, None));
    }

    #[test]
    fn a_trace_that_takes_no_time_is_made_once() {
        let Predicted { forecast, notes, .. } = predicted(HUNDRED, &reads(3, 0), Some(86_400));
        assert_eq!(forecast.ops.read.ios, 3);
        assert!(notes.iter().any(|note| note.contains("the same time")), "{:?}", notes);
        let never = "sim:custom?latency=1ms&size=1GiB&stall=0s+inf";
        let ended = predicted(never, "fio version 2 iolog\n/t read 0 4096\n", Some(86_400));
        assert_eq!(ended.failure.as_deref(), Some("1 I/Os never complete"));
    }

    #[test]
    fn years_in_which_nothing_happens_are_looked_at_now_and_then() {
        let apart = 9 * 365 * 86_400 * 1_000_000;
        let mut looks = 0;
        struct Counting<'a>(&'a mut u32);
        impl SimulateObserver for Counting<'_> {
            fn progress(&mut self, _at_ns: u64, _iops: f64) {
                *self.0 += 1;
            }
        }
        let trace = Trace::read_from(&TRACE, "t", reads(2, apart).as_bytes(), None).unwrap();
        let volume = SimulatedVolume::named(HUNDRED.as_ref(), &VolumeTypes::default()).unwrap();
        let (stop, observer) = (StopHandle::default(), &mut Counting(&mut looks));
        let Predicted { forecast, .. } = predict(&trace, &volume, None, &stop, observer).unwrap();
        assert_eq!((forecast.ops.read.ios, forecast.elapsed_ns), (2, apart * 1_000 + 1_000_000));
        assert!(looks < 10_000, "{looks}");
    }

    #[test]
    fn without_times_each_follows_the_one_before() {
        let text = "fio version 2 iolog\n/t add\n/t open\n".to_owned()
            + &"/t read 0 4096\n".repeat(50)
            + "/t wait 2000000 0\n/t write 99999999999 4096\n/t sync 0 0\n";
        let Predicted { forecast, notes, .. } = predicted("sim:custom?latency=10ms&size=1GiB", &text, None);
        assert_eq!((forecast.ops.read.ios, forecast.ops.write.ios, forecast.syncs.moments.count), (50, 1, 1));
        // The wait is longer than what stands before it.
        assert_eq!(forecast.elapsed_ns, 2_020_000_000);
        assert!(forecast.own_pace.is_none());
        assert!(notes.iter().any(|note| note.starts_with("1 I/Os beyond")), "{:?}", notes);
    }

    #[test]
    fn a_stall_is_told_as_one() {
        let volume = "sim:custom?latency=1ms&size=1GiB&stall=2s+3s";
        let Predicted { forecast, .. } = predicted(volume, &reads(100, 100_000), None);
        let [stall] = forecast.stalls[..] else { panic!("{:?}", forecast.stalls) };
        assert_eq!((stall.start_ns, stall.length_ns), (2_000_000_000, 3_001_000_000));
        assert!(forecast.is_stalled(&forecast.slices[3]) && forecast.ops.read.ios == 100);
    }

    #[test]
    fn what_never_completes_is_counted() {
        let Predicted { forecast, failure, .. } =
            predicted("sim:custom?latency=1ms&size=1GiB&stall=1s+inf", &reads(20, 100_000), None);
        assert_eq!(failure.as_deref(), Some("10 I/Os never complete"));
        assert_eq!(forecast.ops.read.ios, 10);
    }
}
