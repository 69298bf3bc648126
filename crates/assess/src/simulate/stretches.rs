//! Steady jobs: stretches of them are simulated until two in a row are the same, and the rest is extrapolated from the last.

use fathom_model::units::duration;
use fathom_model::{Nanos, RunPlan};
use fathom_predict::forecast::credits_left;
use fathom_record::forecast::CompletedRequests;
use fathom_runner::RunError;
use fathom_stats::{DATA_OPS, RunOutcome};

use super::JobLoad;
use super::jobs::{RunTotals, VolumeWatch};
use crate::simulated::SimulatedVolume;

/// Shorter ones are simulated as a whole.
const MIN_STRETCHES: u64 = 4;
const MIN_STRETCH_NS: u64 = 60_000_000_000;
/// Rates and latencies of two stretches are the same within this share: what chance makes of millions of I/Os.
const SAME_RATE: f64 = 0.001;
const SAME_LATENCY: f64 = 0.01;
/// The same of burst credits, which stand at a bound, in tokens: a queue of I/Os.
const SAME_CREDITS: u64 = 256;

/// A load in stretches of one length.
pub(super) struct Stretches {
    /// The jobs for one stretch.
    plan: RunPlan,
    length_ns: u64,
    ends_at: u64,
    previous: Option<Stretch>,
}

/// What a stretch was like.
struct Stretch {
    counted: CompletedRequests,
    mean_latency_ns: f64,
    /// Burst credits at its end.
    left: Vec<u64>,
}

impl Stretches {
    /// `None` of a load that changes with time, and of a volume that does.
    pub(super) fn of(
        load: &JobLoad,
        plan: &RunPlan,
        volume: &SimulatedVolume,
        asked: Option<u64>,
        length_ns: u64,
    ) -> Option<Stretches> {
        let ends_at = asked.filter(|asked| asked / length_ns.max(1) >= MIN_STRETCHES)?;
        let model = &volume.model;
        let is_even = model.faults.is_empty() && model.first_touch.is_none() && model.cache.is_none();
        let goes_on = |job: &fathom_model::JobPlan| {
            let time = &job.time;
            time.time_based
                && time.runtime == Some(Nanos(ends_at))
                && time.ramp == Nanos::ZERO
                && time.ramp_bytes == 0
                && time.start_delay.1 == Nanos::ZERO
                && time.think_time.pause == Nanos::ZERO
                && !time.rate.is_limited()
                && job.replay.is_none()
                && job.io.verify.is_none()
                && job.end.steady_state.duration == Nanos::ZERO
                && job.end.latency_target.target == Nanos::ZERO
        };
        let is_eligible =
            length_ns >= MIN_STRETCH_NS && is_even && !load.is_in_turn() && plan.jobs.iter().all(goes_on);
        is_eligible.then(|| Stretches { plan: plan.clone(), length_ns, ends_at, previous: None })
    }

    /// Simulates the next stretch, and extrapolates the rest if the load is steady.
    pub(super) fn run(
        &mut self,
        watch: &mut VolumeWatch<'_>,
        gathered: &mut RunTotals,
    ) -> Result<(), RunError> {
        let from = watch.elapsed();
        let length = self.length_ns.min(self.ends_at - from);
        self.plan.jobs.iter_mut().for_each(|job| job.time.runtime = Some(Nanos(length)));
        let outcome = watch.session.run(&self.plan, watch)?;
        gathered.add(&outcome, from, &mut watch.course);
        let took = watch.elapsed() - from;
        let present = Stretch::of(&outcome, watch);
        let is_same = length == self.length_ns
            && outcome.interrupted.is_none()
            && self.previous.as_ref().is_some_and(|previous| previous.is_like(&present));
        if is_same {
            let more = (self.ends_at.saturating_sub(watch.elapsed())) / took.max(1);
            if more > 0 {
                let since = duration(Nanos(from));
                gathered.note(format!("steady from {since} on: the rest is extrapolated, not simulated"));
            }
            for _ in 0..more {
                let from = watch.course.at_ns();
                watch.course.advance(from + took, &present.counted, &present.left);
                gathered.add(&outcome, from, &mut watch.course);
            }
            watch.session.skip(Nanos(more * took));
        }
        self.previous = Some(present);
        Ok(())
    }
}

impl Stretch {
    fn of(outcome: &RunOutcome, watch: &VolumeWatch<'_>) -> Stretch {
        let mut counted = CompletedRequests::default();
        let (mut sum, mut count) = (0.0, 0);
        for worker in &outcome.workers {
            for (index, op) in worker.measured.ops().iter().take(DATA_OPS).enumerate() {
                counted.ios[index] += op.ios;
                counted.bytes[index] += op.bytes;
                sum += op.lat.moments.sum as f64;
                count += op.lat.moments.count;
            }
        }
        let left = watch.session.inspect_volume(&watch.volume.path, credits_left).unwrap_or_default();
        Stretch { counted, mean_latency_ns: sum / count.max(1) as f64, left }
    }

    fn is_like(&self, next: &Stretch) -> bool {
        let is_near = |one: f64, other: f64, share: f64| (one - other).abs() <= one * share;
        let mut ios = self.counted.ios.iter().zip(&next.counted.ios);
        let mut credits = self.left.iter().zip(&next.left);
        ios.all(|(one, other)| is_near(*one as f64, *other as f64, SAME_RATE))
            && is_near(self.mean_latency_ns, next.mean_latency_ns, SAME_LATENCY)
            && credits.all(|(one, other)| one.abs_diff(*other) <= SAME_CREDITS)
    }
}
