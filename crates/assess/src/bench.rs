//! Runs a plan test by test. Each finished test is handed out at once; the failure of one is its result, and the next
//! one runs.

use fathom_analysis::Analysis;
use fathom_analysis::conclusions::Use;
use fathom_analysis::steady::run_fall::test_to_repeat;
use fathom_model::{Nanos, units};
use fathom_record::{
    Activity, BenchActivity, InspectionRecord, PrecisionRecord, RunHeader, RunRecord, TestMeta, TestRecord,
    TestStatus,
};
use fathom_runner::{Session, WritePermit};

use crate::AssessError;
use crate::control::{MeasurementEvent, StepObserver, Steps};
use crate::drain::{bounded, drain_limit, with_smaller_blocks};
use crate::findings::findings_of;
use crate::flushes::{flush_time, flush_writes, repeat_writes};
use crate::inspection::inspect;
use crate::machine::engine_rows;
use crate::measure::measure_plan;
use crate::plan::{BenchPlan, QUICK_LIMIT};
use crate::planned::PlannedTest;
use crate::precision::{self, PrecisionWatch};
use crate::site::Site;
use crate::together::PlannedTarget;
use crate::until_steady::until_steady;
use crate::working_file::{Layout, lay_out};

/// Tests that are measured again at the end of a run at most: one for each unit of a limit, or for each direction.
const MAX_AGAIN: usize = 2;
/// The suite that checks twins.
const TWIN_CHECK: &str = "twin-check";

/// Runs `plan` on `session`.
///
/// # Errors
/// The working file could not be made or laid out; nothing has been measured then.
pub fn run(
    plan: &BenchPlan,
    session: &mut Session,
    observer: &mut dyn StepObserver,
) -> Result<RunRecord, AssessError> {
    session.set_permit(WritePermit::own(&plan.settings.run.destroy));
    let deadline = plan.deadline().filter(|_| session.bounds_time()).map(|time| session.now() + time.0);
    let mut header = header(plan, session);
    let (mut size, direct) = (plan.size, !plan.settings.run.buffered);
    let limit = plan.cost.layout_time.map(|limit| Nanos(limit.0 / plan.targets.len() as u64));
    for PlannedTarget { target, file, .. } in &plan.targets {
        let layout = Layout { target, file, size, direct, limit };
        size = size.min(lay_out(&layout, session, observer, &mut header.notes)?);
    }
    header.size_bytes = size;
    header.conditions.target.inspection = inspected(plan, &header, session, observer)?;
    header.job_text = plan.tests.iter().map(|test| plan.fio_command(test, size) + "\n").collect();
    let mut steps = Steps::begin(header, &plan.settings.run, session, observer);
    steps.of = Some(plan.tests.len());
    for test in &plan.tests {
        steps.next(&test.id, &test.title, 0);
        let measured = &steps.record.tests;
        let bounded = match deadline {
            None => bounded_test(plan, test, size, measured, session),
            Some(deadline) => test_before(deadline, plan, test, size, measured, session),
        };
        let mut ended = run_test(plan, &bounded, size, session, &mut *steps.observer);
        let after = (&steps.record.tests[..], &mut ended);
        repeat_writes(plan, &bounded.test, size, after, (session, deadline));
        steps.add(ended);
        if steps.is_over() {
            break;
        }
    }
    measure_again(plan, deadline, size, &mut steps);
    measure_at_need(plan, deadline, size, &mut steps);
    let mut record = steps.end();
    let has_failed = record.tests.iter().any(|test| test.status == TestStatus::Failed);
    if has_failed && record.status == TestStatus::Complete {
        record.status = TestStatus::Failed;
    }
    record.findings = findings_of(&record);
    crate::remedies::name_types(&mut record, &plan.settings.run.types);
    Ok(record)
}

/// Measures an earlier test again for a short time, if the run may have fallen between its tests.
fn measure_again(plan: &BenchPlan, deadline: Option<u64>, size: u64, steps: &mut Steps<'_>) {
    // Check of a twin: its runs are compared test by test.
    let is_plain = plan.targets.len() == 1 && !plan.settings.run.buffered && plan.suite.name != TWIN_CHECK;
    for _ in 0..MAX_AGAIN {
        let wanted = test_to_repeat(&steps.record).filter(|_| is_plain && !steps.is_over());
        let Some(id) = wanted.map(|at| &steps.record.tests[at].id) else { return };
        let Some(test) = plan.tests.iter().find(|test| test.id == *id).and_then(PlannedTest::again) else {
            return;
        };
        let (measured, session) = (&steps.record.tests, steps.session);
        let bounded = match deadline {
            None => bounded_test(plan, &test, size, measured, session),
            Some(deadline) => test_before(deadline, plan, &test, size, measured, session),
        };
        if bounded.test.skip.is_some() {
            return;
        }
        steps.of = Some(measured.len() + 1);
        steps.next(&test.id, &test.title, 0);
        let ended = run_test(plan, &bounded, size, session, &mut *steps.observer);
        steps.keep(ended);
    }
}

/// Arrivals of which a rate is known to about 2 %.
const ARRIVALS: f64 = 2_000.0;
/// The offered rate over the needed one: arrivals at random may be fewer.
const OFFERED: f64 = 1.03;
/// Shortest and longest time of a test at a needed rate.
const MIN_AT_RATE: Nanos = Nanos::from_secs(10);
const MAX_AT_RATE: Nanos = Nanos::from_secs(30);

/// The tests that follow where the highest rates of uses do not decide: each the load of a use at the rate that it needs. One that waits
/// for each of its requests has no arrivals of its own.
pub fn at_need(plan: &BenchPlan) -> impl Iterator<Item = (&'static Use, PlannedTest)> {
    let is_plain = plan.targets.len() == 1;
    plan.tests.iter().filter(move |test| is_plain && test.skip.is_none()).filter_map(|test| {
        let purpose = Use::named(&test.id).filter(|one| one.full.p99_ns.is_some() && !one.serial)?;
        let needed = purpose.iops(&purpose.full) * OFFERED;
        let reads = (needed * f64::from(purpose.read_percent) / 100.0).round() as u64;
        let time = Nanos((ARRIVALS / needed * 1e9) as u64).max(MIN_AT_RATE);
        let paced = test.at_rate([reads, needed.round() as u64 - reads], time)?;
        (time <= MAX_AT_RATE).then_some((purpose, paced))
    })
}

/// Measures the load of a use at the rate that it needs, where the load at its highest rate did not decide: in a queue before a limit
/// latencies are those of the queue.
fn measure_at_need(plan: &BenchPlan, deadline: Option<u64>, size: u64, steps: &mut Steps<'_>) {
    let analysis = Analysis::of(&steps.record);
    let open: Vec<&str> = analysis.conclusions().iter().filter(|one| one.is_open).map(|one| one.id).collect();
    for (_, paced) in at_need(plan).filter(|(purpose, _)| open.contains(&purpose.name)) {
        let time = paced.runtime.unwrap_or_default();
        let is_late = deadline.is_some_and(|deadline| steps.session.now() + time.0 > deadline);
        if is_late || steps.is_over() {
            return;
        }
        steps.of = Some(steps.record.tests.len() + 1);
        steps.next(&paced.id, &paced.title, 0);
        let bounded = BoundedTest { test: paced, note: None };
        let ended = run_test(plan, &bounded, size, steps.session, &mut *steps.observer);
        steps.keep(ended);
    }
}

/// What the only target shows, where a test reads it.
pub(crate) fn inspected(
    plan: &BenchPlan,
    header: &RunHeader,
    session: &Session,
    observer: &mut dyn StepObserver,
) -> Result<Option<InspectionRecord>, AssessError> {
    let [PlannedTarget { target, .. }] = plan.targets.as_slice() else { return Ok(None) };
    if !plan.tests.iter().any(|test| test.reads() && test.skip.is_none()) {
        return Ok(None);
    }
    let site = Site::on(target.clone(), &plan.settings.run, Nanos(0))?;
    Ok(inspect(&site, header, session, observer))
}

pub(crate) fn header(plan: &BenchPlan, session: &Session) -> RunHeader {
    let activity = Activity::Bench(BenchActivity {
        suite: Some(plan.suite.name.clone()),
        recommended: plan.suite.recommended,
    });
    let (name, settings) = (plan.target_name(), &plan.settings);
    let (run, further) = (&settings.run, &settings.further);
    let header = crate::conditions::header(activity, &name, run, further, plan.seed, &plan.notes, session);
    RunHeader { expectations: plan.expectations.clone(), ..header }
}

/// A test with the depth that its targets complete in time, and why it is less than the suite's.
#[derive(Clone, Debug)]
pub(crate) struct BoundedTest {
    pub(crate) test: PlannedTest,
    pub(crate) note: Option<String>,
}

/// `test` with a depth that its targets complete in time; `measured` are the tests of the plan so far, in its order.
pub(crate) fn bounded_test(
    plan: &BenchPlan,
    test: &PlannedTest,
    size: u64,
    measured: &[TestRecord],
    session: &Session,
) -> BoundedTest {
    let words = |target: usize| test.job_options(&plan.targets[target].file, size);
    let earlier = |target: usize| -> Vec<&TestRecord> {
        let alone = plan.tests.iter().zip(measured).filter(|(planned, _)| planned.targets == [target]);
        alone.map(|(_, test)| test).collect()
    };
    let (test, note) = match plan.resolve(test, size, &engine_rows()) {
        Ok(resolved) if test.skip.is_none() => bounded(test, &resolved, earlier, words, session),
        _ => (test.clone(), None),
    };
    BoundedTest { test, note }
}

/// `test` as it ends before `deadline`: with smaller blocks and less depth on a slow device, or skipped.
fn test_before(
    deadline: u64,
    plan: &BenchPlan,
    test: &PlannedTest,
    size: u64,
    measured: &[TestRecord],
    session: &Session,
) -> BoundedTest {
    let time = test.most_time().unwrap_or(Nanos::ZERO);
    let flush = if test.writes { flush_time(measured, time) } else { Nanos::ZERO };
    let needed = time.0 + drain_limit(test).0 + flush.0;
    let is_late = || session.now() + needed > deadline;
    let skipped = || {
        let reason = format!(
            "--quick ends within {}, which this slow target exceeds; run without --quick, or with --only {}",
            units::duration(QUICK_LIMIT),
            test.id
        );
        BoundedTest { test: test.skipped(reason), note: None }
    };
    if test.skip.is_none() && is_late() {
        return skipped();
    }
    let smaller = match (plan.resolve(test, size, &engine_rows()), test.targets.as_slice()) {
        (Ok(resolved), [target]) if test.skip.is_none() => {
            let words = test.job_options(&plan.targets[*target].file, size);
            with_smaller_blocks(test, &resolved, measured.iter().collect(), words, session)
        }
        _ => None,
    };
    let (test, note) = match smaller {
        Some((test, note)) => (test, Some(note)),
        None => (test.clone(), None),
    };
    let BoundedTest { test, note: of_depth } = bounded_test(plan, &test, size, measured, session);
    if test.skip.is_none() && is_late() {
        return skipped();
    }
    let notes: Vec<String> = note.into_iter().chain(of_depth).collect();
    BoundedTest { test, note: (!notes.is_empty()).then(|| notes.join(" ")) }
}

/// Runs one test of `plan`.
pub(crate) fn run_test(
    plan: &BenchPlan,
    BoundedTest { test, note }: &BoundedTest,
    size: u64,
    session: &Session,
    observer: &mut dyn StepObserver,
) -> TestRecord {
    if let Some(reason) = &test.skip {
        return TestRecord::skipped(plan.meta(test, size), reason);
    }
    let engines = engine_rows();
    let meta = plan.meta(test, size);
    let mut record = match (&test.rounds, test.precision) {
        (None, None) => measure_plan(meta, plan.resolve(test, size, &engines), session, observer),
        (None, Some(goal)) => precisely(plan, (test, goal), size, session, observer),
        (Some(rounds), _) => until_steady(rounds, session, |index, so_far| {
            observer.step(&MeasurementEvent::RoundBegun(index, Box::new(so_far.clone())));
            let round = test.round(index);
            let meta = TestMeta { fio: plan.fio_command(&round, size), ..meta.clone() };
            measure_plan(meta, plan.resolve(&round, size, &engines), session, observer)
        }),
    };
    record.notes.extend(note.clone());
    let targets = test.targets.iter().map(|&target| &plan.targets[target]);
    flush_writes(&mut record, targets.map(|it| (&it.target, it.file.as_path())), session);
    record
}

/// Runs `test` until its rate is known precisely enough.
fn precisely(
    plan: &BenchPlan,
    (test, goal): (&PlannedTest, PrecisionRecord),
    size: u64,
    session: &Session,
    observer: &mut dyn StepObserver,
) -> TestRecord {
    let meta = plan.meta(test, size);
    let run_plan = match plan.resolve(test, size, &engine_rows()) {
        Ok(run_plan) => run_plan,
        failed => return measure_plan(meta, failed, session, observer),
    };
    let watched = run_plan.clone();
    let mut watch = PrecisionWatch::new(test, goal, &watched, &plan.expectations, observer);
    let mut record = measure_plan(meta, Ok(run_plan), session, &mut watch);
    if let Some(runtime) = precision::enter(&goal, &mut record) {
        record.fio = plan.fio_command(&test.lasting(runtime), size);
    }
    record
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fathom_volume::{Cache, Limit, LimitStage, TokenRate, VolumeLatency, VolumeModel};

    use super::*;
    use crate::catalogue::VolumeTypes;
    use crate::plan::{BenchSettings, Effort};
    use crate::site::RunSettings;
    use crate::target::BenchTarget;
    use fathom_engine::sim::FixedLatency;
    use fathom_model::Nanos;
    use fathom_record::TestSummary;
    use fathom_runner::RunObserver;

    #[derive(Default)]
    struct Heard(Vec<String>);

    impl RunObserver for Heard {}

    impl StepObserver for Heard {
        fn step(&mut self, event: &MeasurementEvent) {
            self.0.push(match event {
                MeasurementEvent::Begun(header) => format!("begun {}", header.size_bytes),
                MeasurementEvent::StepBegun(step) => format!("{} {}", step.number, step.id),
                MeasurementEvent::StepEnded(test) => format!("{} {}", test.id, test.status.name()),
                _ => return,
            });
        }
    }

    fn simulated(suite: &str, only: &[&str]) -> (RunRecord, Vec<String>) {
        let model = FixedLatency {
            read: Nanos::from_millis(1),
            write: Nanos::from_millis(2),
            flush: Nanos::from_millis(3),
            parallelism: 8,
        };
        let settings = BenchSettings {
            run: RunSettings { seed: Some(1), ..RunSettings::default() },
            suite: suite.to_owned(),
            effort: Effort::Quick,
            only: only.iter().map(|id| id.to_string()).collect(),
            ..BenchSettings::default()
        };
        let plan = BenchPlan::on(
            vec![BenchTarget::simulated("simulated", VolumeModel::unlimited(1 << 30))],
            settings,
        )
        .unwrap();
        let mut session = Session::simulated(model, 1 << 30);
        let mut heard = Heard::default();
        let record = run(&plan, &mut session, &mut heard).unwrap();
        (record, heard.0)
    }

    #[test]
    fn every_test_is_told_of_and_measured() {
        let (record, heard) = simulated("standard", &["lat-read", "commit", "rand-read-jobs"]);
        assert_eq!(
            heard,
            [
                "begun 1073741824",
                "1 lat-read",
                "lat-read complete",
                "2 commit",
                "commit complete",
                "3 rand-read-jobs",
                "rand-read-jobs complete"
            ]
        );
        let summary = |index: usize| TestSummary::new(&record.tests[index]);
        // 1 ms per read at depth 1; 2 ms per write and 3 ms per flush; eight jobs on eight servers.
        assert!((summary(0).read.unwrap().iops - 1000.0).abs() < 1.0);
        assert!((summary(1).write.unwrap().iops - 200.0).abs() < 1.0);
        assert!((summary(2).read.unwrap().iops - 8000.0).abs() < 8.0);
    }

    #[test]
    fn parallelism_is_not_reported_as_a_limit() {
        let (record, _) = simulated("standard", &["lat-read", "rand-read", "rand-read-jobs", "seq-read"]);
        let names: Vec<&str> = record.findings.iter().map(|found| found.id.name()).collect();
        assert!(!names.iter().any(|name| name.ends_with("-cap") || name.ends_with("-limit")), "{names:?}");
    }

    #[test]
    fn a_quick_run_ends_in_time_on_a_volume_of_any_speed() {
        let check = |target: BenchTarget, name: &str| {
            let settings = BenchSettings {
                run: RunSettings { seed: Some(1), ..RunSettings::default() },
                suite: "standard".to_owned(),
                effort: Effort::Quick,
                ..BenchSettings::default()
            };
            let plan = BenchPlan::on(vec![target], settings).unwrap();
            let mut session = plan.session().with_bounded_time();
            let began = session.now();
            let record = run(&plan, &mut session, &mut ()).unwrap();
            let took = Nanos(session.now() - began);
            assert!(took <= QUICK_LIMIT, "{name}: {}", units::duration(took));
            let measured = record.tests.iter().filter(|test| test.status == TestStatus::Complete).count();
            assert!(measured > 0, "{name}");
        };
        for limits in
            ["bandwidth=100000", "bandwidth=20000", "iops=24", "iops=3", "iops=1", "iops=300&bandwidth=1MiB"]
        {
            let name = format!("sim:custom?{limits}&latency=500us&size=1GiB");
            let target = BenchTarget::inspect(Path::new(&name), &[], &VolumeTypes::default()).unwrap();
            check(target, &name);
        }
        // A write cache that takes longer to empty than the run has.
        for (cache, rate) in [(60, 4), (300, 4), (300, 15), (2000, 12)] {
            let mib = 1 << 20;
            let bytes = TokenRate::per_second(rate * mib).map(Limit::Rate);
            let latency = VolumeLatency::fixed(200_000);
            let model = VolumeModel {
                read_latency: latency.clone(),
                write_latency: latency,
                writes: vec![LimitStage { bytes, ..LimitStage::default() }],
                cache: Some(Cache {
                    dirty_bytes: cache * mib,
                    hits_per_million: 0,
                    ..Cache::read_only(4 << 30, 200_000)
                }),
                ..VolumeModel::unlimited(8 << 30)
            };
            check(BenchTarget::simulated("simulated", model), &format!("{cache} MiB at {rate} MiB/s"));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_record() {
        assert_eq!(simulated("standard", &["rand-mixed"]).0, simulated("standard", &["rand-mixed"]).0);
    }

    #[test]
    fn a_test_until_steady_is_the_last_five_rounds() {
        let settings = BenchSettings {
            run: RunSettings { seed: Some(1), ..RunSettings::default() },
            suite: "standard".to_owned(),
            until_steady: true,
            only: vec!["lat-read".to_owned()],
            ..BenchSettings::default()
        };
        let plan = BenchPlan::on(
            vec![BenchTarget::simulated("simulated", VolumeModel::unlimited(1 << 30))],
            settings,
        )
        .unwrap();
        assert_eq!(plan.cost.least_time, Some(Nanos(plan.tests[0].ramp.0 + 300 * 1_000_000_000)));
        assert_eq!(plan.cost.time, Some(Nanos(plan.tests[0].ramp.0 + 1500 * 1_000_000_000)));
        let millis = Nanos::from_millis(1);
        let model = FixedLatency { read: millis, write: millis, flush: millis, parallelism: 1 };
        let record = run(&plan, &mut Session::simulated(model, 1 << 30), &mut ()).unwrap();
        let test = &record.tests[0];
        let rounds = test.rounds.clone().unwrap();
        assert_eq!((rounds.values.len(), rounds.steady, rounds.tracked.as_str()), (5, true, "lat_ns"));
        let read = TestSummary::new(test).read.unwrap();
        assert_eq!(read.lat_ns.mean, Some(1e6));
        assert!((read.iops - 1000.0).abs() < 0.01, "{}", read.iops);
        let duration = fathom_analysis::RecordRow::of(test).duration().clone();
        assert_eq!(format!("{:?}", duration.label), "Inconclusive");
        assert_eq!(record.findings, []);
    }

    #[test]
    fn expectations_are_judged_per_class() {
        let (record, _) = simulated("digitalocean-volumes", &["rand-r", "lat-read"]);
        let results = fathom_analysis::Analysis::of(&record).expectations().to_vec();
        let verdicts = results.iter().map(|result| {
            let fathom_record::ExpectationRecord { test, metric, class, .. } = &result.expectation;
            (test.as_str(), metric.as_str(), class.as_str(), result.verdict.is_met())
        });
        assert_eq!(
            verdicts.collect::<Vec<_>>(),
            [
                ("rand-r", "read.iops", "standard", true),
                ("rand-r", "read.iops", "high-cpu", true),
                ("lat-read", "read.lat_ns.mean", "standard", true),
                ("lat-read", "read.lat_ns.mean", "high-cpu", true),
            ]
        );
    }

    #[test]
    fn a_stop_ends_the_run_and_keeps_what_is_done() {
        struct StopAfterFirst(fathom_runner::StopHandle);
        impl RunObserver for StopAfterFirst {}
        impl StepObserver for StopAfterFirst {
            fn step(&mut self, event: &MeasurementEvent) {
                if matches!(event, MeasurementEvent::StepEnded(_)) {
                    self.0.request("signal 2");
                }
            }
        }
        let settings =
            BenchSettings { suite: "standard".to_owned(), effort: Effort::Quick, ..BenchSettings::default() };
        let plan = BenchPlan::on(
            vec![BenchTarget::simulated("simulated", VolumeModel::unlimited(1 << 30))],
            settings,
        )
        .unwrap();
        let instant = FixedLatency {
            read: Nanos::from_millis(10),
            write: Nanos::from_millis(10),
            flush: Nanos::from_millis(10),
            parallelism: 1,
        };
        let mut session = Session::simulated(instant, 1 << 30);
        let mut observer = StopAfterFirst(session.stop_handle());
        let record = run(&plan, &mut session, &mut observer).unwrap();
        assert_eq!((record.tests.len(), record.status), (1, TestStatus::Incomplete));
        assert_eq!(record.header.interrupted.as_deref(), Some("signal 2"));
    }
}
