//! Jobs on a simulated volume: the real runner in virtual time, watched tick by tick. Of steady jobs stretches are simulated until two in a
//! row are the same, and the rest is extrapolated from the last.

use fathom_model::units::duration;
use fathom_model::{Nanos, Op, RunPlan};
use fathom_options::resolve;
use fathom_predict::forecast::{ForecastCourse, credits_left};
use fathom_record::forecast::{CompletedRequests, Forecast, ForecastStall};
use fathom_runner::{RunControl, RunError, RunObserver, Session, StopHandle};
use fathom_stats::{DATA_OPS, PhaseOutcome, RunOutcome, Snapshot};

use super::{JobLoad, Predicted, SimulateObserver};
use crate::machine::{engine_rows, host_facts};
use crate::simulated::{SimulatedVolume, session_for};
use crate::target::BenchTarget;
use crate::{AssessError, ErrorKind};

/// Why a run ends that would go on.
const TIME_IS_OVER: &str = "the time ended";

/// What the jobs get of the volume.
pub(super) fn predict(
    load: &JobLoad,
    volume: &SimulatedVolume,
    length: Option<Nanos>,
    stop: &StopHandle,
    observer: &mut dyn SimulateObserver,
) -> Result<Predicted, AssessError> {
    let session = session_for([&BenchTarget::Simulated(Box::new(volume.clone()))])
        .controlled(RunControl::default().with_stop(stop.part()));
    let sections = load.on(volume, length, &engine_rows())?;
    // Whatever is drawn at random is drawn alike each time.
    let host = fathom_options::PlanningHost { entropy: volume.seed, ..host_facts() };
    let plan = resolve(&sections, &host).map_err(|error| AssessError::options_in(&load.name, &error))?;
    let asked = length.map(|length| length.0);
    let given =
        plan.jobs.iter().filter_map(|job| Some(job.time.runtime?.0.saturating_add(job.time.ramp.0))).max();
    let course = ForecastCourse::new(asked.or(given), &volume.model);
    let mut stretches = Stretches::of(load, &plan, volume, asked, course.slice_ns);
    let mut watch = VolumeWatch {
        session: &session,
        volume,
        begin: session.now(),
        course,
        ends_at: asked,
        observer,
        failure: None,
        notes: Vec::new(),
    };
    loop {
        let from = watch.elapsed();
        let ran = match &mut stretches {
            Some(stretches) => stretches.run(&mut watch),
            None => session.run(&plan, &mut watch).map(|outcome| watch.add(&outcome, from)),
        };
        match ran {
            Ok(()) => {}
            Err(RunError::Stopped { .. }) => break,
            Err(error) => return Err(unfit(volume, &error)),
        }
        let repeats = stretches.is_some() || load.is_in_turn();
        let is_over = !repeats || asked.is_none_or(|end| watch.elapsed() >= end);
        if is_over || watch.elapsed() == from || watch.failure.is_some() || stop.is_requested() {
            break;
        }
    }
    let billed = session.inspect_volume(&volume.path, |volume, _| volume.billed_transactions()).unwrap_or(0);
    let mut notes = load.notes(length);
    notes.append(&mut watch.notes);
    let elapsed_ns = watch.elapsed();
    let VolumeWatch { course, failure, .. } = watch;
    Ok(Predicted { forecast: course.finish(elapsed_ns), interrupted: stop.reason(), failure, notes, billed })
}

fn unfit(volume: &SimulatedVolume, error: &RunError) -> AssessError {
    AssessError::new(ErrorKind::Usage, format!("{}: {error}", volume.path.display()), error.hint())
}

/// Looks at the volume at each tick, and adds up the runs.
struct VolumeWatch<'a> {
    session: &'a Session,
    volume: &'a SimulatedVolume,
    begin: u64,
    course: ForecastCourse,
    /// When everything is to end.
    ends_at: Option<u64>,
    observer: &'a mut dyn SimulateObserver,
    failure: Option<String>,
    notes: Vec<String>,
}

impl RunObserver for VolumeWatch<'_> {
    fn snapshot(&mut self, snapshot: &Snapshot) {
        let now = self.elapsed();
        // The rates are those of the time since the last tick, and that is where the course has come to.
        let seconds = now.saturating_sub(self.course.at_ns).max(1) as f64 / 1e9;
        let count = |rates: [f64; DATA_OPS]| rates.map(|rate| (rate * seconds).round() as u64);
        let counted =
            CompletedRequests { ios: count(snapshot.iops), bytes: count(snapshot.bytes_per_second) };
        let left = self.session.inspect_volume(&self.volume.path, credits_left).unwrap_or_default();
        self.course.advance(now, &counted, &left);
        self.observer.progress(now, snapshot.iops.iter().sum());
        if self.ends_at.is_some_and(|end| now >= end) {
            self.session.stop_handle().request(TIME_IS_OVER);
        }
    }
}

impl VolumeWatch<'_> {
    /// ns since the load began.
    fn elapsed(&self) -> u64 {
        self.session.now() - self.begin
    }

    /// Adds a run that began at `from`.
    fn add(&mut self, outcome: &RunOutcome, from: u64) {
        // A backlog is that of the end.
        let mut backlog = 0;
        for worker in &outcome.workers {
            for phase in worker.ramp.iter().chain([&worker.measured]) {
                backlog += self.add_phase(phase, from);
            }
            let since = |stall: &fathom_stats::Stall| ForecastStall {
                start_ns: from + stall.start_ns,
                length_ns: stall.length_ns,
            };
            self.course.forecast.stalls.extend(worker.stalls.iter().map(since));
            if let Some(failure) = &worker.failure {
                self.failure.get_or_insert_with(|| failure.message.clone());
            }
        }
        if let Some(own_pace) = &mut self.course.forecast.own_pace {
            own_pace.backlog = backlog;
        }
        for note in &outcome.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
    }

    fn add_phase(&mut self, phase: &PhaseOutcome, from: u64) -> u64 {
        let mut backlog = 0;
        let Forecast { ops, syncs, own_pace, .. } = &mut self.course.forecast;
        for (kind, op) in Op::DATA.into_iter().zip(phase.ops()) {
            let total = &mut ops[kind];
            total.ios += op.ios;
            total.bytes += op.bytes;
            total.failed += op.failed;
            total.lat.merge(&op.lat);
            if op.open_loop.response.moments.count + op.open_loop.backlog > 0 {
                let own_pace = own_pace.get_or_insert_default();
                own_pace.response.merge(&op.open_loop.response);
                backlog += op.open_loop.backlog;
            }
        }
        syncs.merge(&phase.sync_lat);
        for interval in &phase.series {
            let span = (from + interval.start_ns, from + interval.end_ns);
            for op in interval.ops() {
                self.course.add_latencies(span, op.clat_sum_ns, &op.clat_bins);
            }
        }
        backlog
    }
}

/// Shorter ones are simulated as a whole.
const MIN_STRETCHES: u64 = 4;
const MIN_STRETCH_NS: u64 = 60_000_000_000;
/// Rates and latencies of two stretches are the same within this share: what chance makes of millions of I/Os.
const SAME_RATE: f64 = 0.001;
const SAME_LATENCY: f64 = 0.01;
/// The same of burst credits, which stand at a bound, in tokens: a queue of I/Os.
const SAME_CREDITS: u64 = 256;

/// A load in stretches of one length.
struct Stretches {
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
    fn of(
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
    fn run(&mut self, watch: &mut VolumeWatch<'_>) -> Result<(), RunError> {
        let from = watch.elapsed();
        let length = self.length_ns.min(self.ends_at - from);
        self.plan.jobs.iter_mut().for_each(|job| job.time.runtime = Some(Nanos(length)));
        let outcome = watch.session.run(&self.plan, watch)?;
        watch.add(&outcome, from);
        let took = watch.elapsed() - from;
        let present = Stretch::of(&outcome, watch);
        let is_same = length == self.length_ns
            && outcome.interrupted.is_none()
            && self.previous.as_ref().is_some_and(|previous| previous.is_like(&present));
        if is_same {
            let more = (self.ends_at.saturating_sub(watch.elapsed())) / took.max(1);
            if more > 0 {
                let since = duration(Nanos(from));
                watch.notes.push(format!("steady from {since} on: the rest is extrapolated, not simulated"));
            }
            for _ in 0..more {
                let from = watch.course.at_ns;
                watch.course.advance(from + took, &present.counted, &present.left);
                watch.add(&outcome, from);
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

#[cfg(test)]
mod tests {
    use fathom_options::{MachineNumbers, ParseEnvironment};

    use super::*;
    use crate::catalogue::VolumeTypes;

    fn predicted(volume: &str, job: &str, seconds: Option<u64>) -> Predicted {
        let environment = ParseEnvironment {
            engines: &engine_rows(),
            read_file: &|_| Ok(job.as_bytes().to_vec()),
            variable: &|_| None,
            machine: MachineNumbers::default(),
        };
        let load = JobLoad::of_file("job".as_ref(), &environment).unwrap();
        let volume = SimulatedVolume::named(volume.as_ref(), &VolumeTypes::default()).unwrap();
        let stop = StopHandle::default();
        let predicted = predict(&load, &volume, seconds.map(Nanos::from_secs), &stop, &mut ()).unwrap();
        let forecast = &predicted.forecast;
        // Whatever is predicted, the slices add up to it.
        for (index, (_, op)) in forecast.ops.iter().enumerate() {
            let counted = forecast.slices.iter().map(|slice| &slice.counted);
            let (ios, bytes) =
                counted.fold((0, 0), |(ios, bytes), one| (ios + one.ios[index], bytes + one.bytes[index]));
            assert_eq!((ios, bytes), (op.ios, op.bytes), "operation {index}");
        }
        predicted
    }

    /// 300 a second for 20 s, then 100: 4,000 above the baseline.
    const BURSTS: &str = "sim:custom?iops=100&burst_iops=300&bucket_ios=4000&latency=1ms&size=1GiB";

    #[test]
    fn credit_runs_dry_when_it_must() {
        let Predicted { forecast, .. } =
            predicted(BURSTS, "[a]\nrw=randread\niodepth=8\nioengine=libaio", Some(60));
        let credit = &forecast.credits[0];
        assert_eq!(credit.first_exhausted_ns.map(|at| at / 500_000_000), Some(40), "{credit:?}");
        assert_eq!((credit.exhausted_ns / 500_000_000, credit.left), (80, Some(0)), "{credit:?}");
        let iops: Vec<f64> = forecast.slices.iter().map(|slice| slice.iops().round()).collect();
        // The limit holds over 10 ms, and depth 8 is let in at once.
        assert!(iops[..19].iter().all(|iops| (298.0..=311.0).contains(iops)), "{iops:?}");
        assert!(iops[21..60].iter().all(|iops| (99.0..=101.0).contains(iops)), "{iops:?}");
        assert!(
            (forecast.per_second(forecast.total().ios) / (10_000.0 / 60.0) - 1.0).abs() < 0.01,
            "{forecast:?}"
        );
        // Eight in flight: Little.
        let late = &forecast.slices[40];
        let mean = late.lat.moments.mean();
        assert!((mean / 80e6 - 1.0).abs() < 0.02, "{mean}");
        assert_eq!(forecast.ops.read.ios, forecast.ops.read.lat.moments.count);
    }

    #[test]
    fn steady_jobs_are_extrapolated() {
        // 300 a second for 2,000 s, then 100; slices of a day are longer than a minute.
        let volume = "sim:custom?iops=100&burst_iops=300&bucket_ios=400000&latency=1ms&size=1GiB";
        let job = "[a]\nrw=randread\niodepth=8\nioengine=libaio";
        let Predicted { forecast, notes, .. } = predicted(volume, job, Some(86_400));
        let told: Vec<&String> =
            notes.iter().filter(|note| note.contains("extrapolated, not simulated")).collect();
        assert_eq!(told.len(), 1, "{notes:?}");
        let total = forecast.total().ios as f64;
        assert!((total / (2_000.0 * 300.0 + 84_400.0 * 100.0) - 1.0).abs() < 0.002, "{total}");
        assert!(
            (86_400_000_000_000..86_402_000_000_000).contains(&forecast.elapsed_ns),
            "{}",
            forecast.elapsed_ns
        );
        let late: Vec<f64> = forecast.slices.iter().skip(10).map(|slice| slice.iops()).collect();
        assert!(late.len() > 40 && late.iter().all(|iops| (99.5..=100.5).contains(iops)), "{late:?}");
        let credit = &forecast.credits[0];
        assert_eq!(credit.first_exhausted_ns.map(|at| at / 10_000_000_000), Some(200), "{credit:?}");
        assert!((84_390.0..=84_410.0).contains(&(credit.exhausted_ns as f64 / 1e9)), "{credit:?}");
        // A fault comes at its time.
        let Predicted { notes, .. } = predicted(&format!("{volume}&stall=5h+10s"), job, Some(86_400));
        assert!(!notes.iter().any(|note| note.contains("extrapolated, not simulated")), "{notes:?}");
    }

    #[test]
    fn a_load_below_the_baseline_leaves_the_credit() {
        let job = "[a]\nrw=randwrite\nrate_iops=,50\niodepth=4\nioengine=libaio";
        let Predicted { forecast, .. } = predicted(BURSTS, job, Some(30));
        let credit = &forecast.credits[0];
        assert_eq!((credit.first_exhausted_ns, credit.exhausted_ns), (None, 0));
        assert!(credit.least >= Some(3_990), "{credit:?}");
        let pace = forecast.own_pace.expect("the load has its own");
        assert_eq!((pace.backlog, forecast.ops.write.ios), (0, 1_500));
    }

    #[test]
    fn jobs_in_turn_are_done_again_until_the_time_is_over() {
        let job = "[global]\nrw=read\nbs=4k\nruntime=4s\ntime_based\n[a]\nrate_iops=10\n[b]\nstonewall\nrate_iops=20";
        let volume = "sim:custom?iops=1000&latency=1ms&size=1GiB";
        let Predicted { forecast, interrupted, .. } = predicted(volume, job, Some(20));
        assert!(interrupted.is_none());
        assert!((20_000_000_000..=20_600_000_000).contains(&forecast.elapsed_ns), "{}", forecast.elapsed_ns);
        // 40 and 80 in eight seconds, and 40 and the first of the last four.
        assert!((275..=305).contains(&forecast.ops.read.ios), "{}", forecast.ops.read.ios);
        let slices = &forecast.slices;
        assert_eq!(
            (slices[1].iops().round(), slices[5].iops().round(), slices[9].iops().round()),
            (10.0, 20.0, 10.0)
        );
    }
}
