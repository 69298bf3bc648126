//! Jobs on a simulated volume: the real runner in virtual time, watched tick by tick.

use fathom_model::{Nanos, Op, PerOp};
use fathom_options::resolve;
use fathom_predict::forecast::{ForecastCourse, credits, credits_left, joined};
use fathom_record::forecast::{CompletedRequests, Forecast, ForecastOp, ForecastStall, OwnPace};
use fathom_runner::{RunControl, RunError, RunObserver, Session, StopHandle};
use fathom_stats::{DATA_OPS, Latency, PhaseOutcome, RunOutcome, Snapshot};

use super::stretches::Stretches;
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
    let course = ForecastCourse::new(asked.or(given), credits(&volume.model));
    let mut watch =
        VolumeWatch { session: &session, volume, begin: session.now(), course, ends_at: asked, observer };
    let mut gathered = RunTotals::default();
    let mut stretches = Stretches::of(load, &plan, volume, asked, watch.course.slice_ns());
    loop {
        let from = watch.elapsed();
        let ran = match &mut stretches {
            Some(stretches) => stretches.run(&mut watch, &mut gathered),
            None => {
                session.run(&plan, &mut watch).map(|outcome| gathered.add(&outcome, from, &mut watch.course))
            }
        };
        match ran {
            Ok(()) => {}
            Err(RunError::Stopped { .. }) => break,
            Err(error) => return Err(unfit(volume, &error)),
        }
        let repeats = stretches.is_some() || load.is_in_turn();
        let is_over = !repeats || asked.is_none_or(|end| watch.elapsed() >= end);
        if is_over || watch.elapsed() == from || gathered.failure.is_some() || stop.is_requested() {
            break;
        }
    }
    let billed = session.inspect_volume(&volume.path, |volume, _| volume.billed_transactions()).unwrap_or(0);
    let mut notes = volume.own_notes();
    notes.extend(load.notes(length));
    notes.append(&mut gathered.notes);
    gathered.bound(&mut watch.course);
    let forecast = Forecast {
        target: volume.path.display().to_string(),
        size_bytes: volume.size(),
        elapsed_ns: watch.elapsed(),
        row_ns: watch.course.row_ns,
        slices: watch.course.slices,
        credits: watch.course.credits,
        ops: gathered.ops,
        syncs: gathered.syncs,
        stalls: joined(gathered.stalls),
        own_pace: gathered.own_pace,
        monthly_cost: None,
    };
    Ok(Predicted { forecast, interrupted: stop.reason(), failure: gathered.failure, notes, billed })
}

fn unfit(volume: &SimulatedVolume, error: &RunError) -> AssessError {
    AssessError::new(ErrorKind::Usage, format!("{}: {error}", volume.path.display()), error.hint())
}

/// Looks at the volume at each tick.
pub(super) struct VolumeWatch<'a> {
    pub(super) session: &'a Session,
    pub(super) volume: &'a SimulatedVolume,
    begin: u64,
    pub(super) course: ForecastCourse,
    /// When everything is to end.
    pub(super) ends_at: Option<u64>,
    pub(super) observer: &'a mut dyn SimulateObserver,
}

impl VolumeWatch<'_> {
    /// ns since the load began.
    pub(super) fn elapsed(&self) -> u64 {
        self.session.now() - self.begin
    }
}

impl RunObserver for VolumeWatch<'_> {
    fn snapshot(&mut self, snapshot: &Snapshot) {
        let now = self.elapsed();
        // The rates are those of the time since the last tick, and that is where the course has come to.
        let seconds = now.saturating_sub(self.course.at_ns()).max(1) as f64 / 1e9;
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

/// What the runs amount to.
#[derive(Default)]
pub(super) struct RunTotals {
    ops: PerOp<ForecastOp>,
    syncs: Latency,
    own_pace: Option<OwnPace>,
    failure: Option<String>,
    stalls: Vec<ForecastStall>,
    notes: Vec<String>,
}

impl RunTotals {
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Adds a run that began at `from`.
    pub(super) fn add(&mut self, outcome: &RunOutcome, from: u64, course: &mut ForecastCourse) {
        // A backlog is that of the end.
        let mut backlog = 0;
        for worker in &outcome.workers {
            for phase in worker.ramp.iter().chain([&worker.measured]) {
                backlog += self.add_phase(phase, from, course);
            }
            let since = |stall: &fathom_stats::Stall| ForecastStall {
                start_ns: from + stall.start_ns,
                length_ns: stall.length_ns,
            };
            self.stalls.extend(worker.stalls.iter().map(since));
            if let Some(failure) = &worker.failure {
                self.failure.get_or_insert_with(|| failure.message.clone());
            }
        }
        if let Some(own_pace) = &mut self.own_pace {
            own_pace.backlog = backlog;
        }
        for note in &outcome.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
    }

    fn bound(&self, course: &mut ForecastCourse) {
        let moments = self.ops.iter().map(|(_, op)| &op.lat.moments).filter(|moments| moments.count > 0);
        let (least, most) =
            moments.fold((u64::MAX, 0), |(least, most), one| (least.min(one.min), most.max(one.max)));
        course.bound(least, most.max(least));
    }

    fn add_phase(&mut self, phase: &PhaseOutcome, from: u64, course: &mut ForecastCourse) -> u64 {
        let mut backlog = 0;
        for (kind, op) in Op::DATA.into_iter().zip(phase.ops()) {
            let total = &mut self.ops[kind];
            total.ios += op.ios;
            total.bytes += op.bytes;
            total.failed += op.failed;
            total.lat.merge(&op.lat);
            if op.open_loop.response.moments.count + op.open_loop.backlog > 0 {
                let own_pace = self.own_pace.get_or_insert_default();
                own_pace.response.merge(&op.open_loop.response);
                backlog += op.open_loop.backlog;
            }
        }
        self.syncs.merge(&phase.sync_lat);
        for interval in &phase.series {
            let span = (from + interval.start_ns, from + interval.end_ns);
            for op in interval.ops() {
                course.add_latencies(span, op.clat_sum_ns, &op.clat_bins);
            }
        }
        backlog
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

    #[test]
    fn a_stall_is_told_as_one() {
        let volume = "sim:custom?iops=1000&latency=1ms&size=1GiB&stall=5s+10s";
        let Predicted { forecast, .. } = predicted(volume, "[a]\nrw=randread\n[b]\nrw=randread", Some(30));
        let [stall] = forecast.stalls[..] else { panic!("{:?}", forecast.stalls) };
        // Its end is seen at the next tick.
        assert!((4_990_000_000..=5_010_000_000).contains(&stall.start_ns), "{stall:?}");
        assert!((10_000_000_000..=10_020_000_000).contains(&stall.length_ns), "{stall:?}");
        let stalled: Vec<bool> = forecast.slices.iter().map(|slice| forecast.is_stalled(slice)).collect();
        assert!(stalled[6..14].iter().all(|is| *is) && !stalled[3] && !stalled[20], "{stalled:?}");
    }

    #[test]
    fn what_does_not_fit_is_told_and_what_fails_is_kept() {
        let environment = ParseEnvironment {
            engines: &engine_rows(),
            read_file: &|_| Ok(b"[a]\nrw=read\nbs=2g".to_vec()),
            variable: &|_| None,
            machine: MachineNumbers::default(),
        };
        let load = JobLoad::of_file("job".as_ref(), &environment).unwrap();
        let volume = SimulatedVolume::named(BURSTS.as_ref(), &VolumeTypes::default()).unwrap();
        let stop = StopHandle::default();
        let error = predict(&load, &volume, None, &stop, &mut ()).unwrap_err();
        assert!(
            error.kind == crate::ErrorKind::Usage && error.to_string().starts_with("sim:custom"),
            "{error}"
        );
    }
}
