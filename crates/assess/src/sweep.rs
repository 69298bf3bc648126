//! Runs a sweep point by point: asks the planner where to measure next, measures, and hands each point out as it ends, so
//! that a sweep that was killed can go on where it was.

use std::path::PathBuf;

use fathom_analysis::offered::{Offered, next_offer};
use fathom_analysis::sweep_goal::{Reach, Slo};
use fathom_analysis::sweep_plan::{Next, SETTLE_NS, next};
use fathom_analysis::sweep_point::{Pattern, Point, Spot, block_name};
use fathom_analysis::sweep_spec::{Axis, SweepSpec};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration};
use fathom_record::{RunHeader, RunRecord, Severity, TestRecord, TestStatus};
use fathom_runner::{RunObserver, Session, WritePermit};

use crate::AssessError;
use crate::header::Heading;
use crate::layout::{Layout, lay_out};
use crate::measure::measure;
use crate::plan::{remarks, size_on};
use crate::planned::{engine_or_substitute, escaped, size_word, time_word};
use crate::settings::RunSettings;
use crate::simulated;
use crate::target::BenchTarget;

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct SweepSettings {
    /// What every run is asked for.
    pub run: RunSettings,
    /// Patterns.
    pub patterns: Vec<Pattern>,
    /// Block sizes, bytes; `None` = as the target needs them.
    pub blocks: Option<Axis>,
    /// Requests in flight per job; `None` = 1 to 256.
    pub depths: Option<Axis>,
    /// Numbers of jobs; empty = one.
    pub jobs: Vec<u32>,
    /// Time for everything, laying out included.
    pub budget: Nanos,
    /// An objective for latency.
    pub slo: Option<Slo>,
    /// A rate to reach.
    pub reach: Option<Reach>,
}

/// What is going to be done, as far as that is known before.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    /// The target.
    pub target: BenchTarget,
    /// The path that points name; in a directory a file that exists under no name.
    pub file: PathBuf,
    /// Bytes of it that are used.
    pub size: u64,
    /// What the points cover; its budget is that of the points alone.
    pub spec: SweepSpec,
    /// Longest time for laying out; `None` where nothing is laid out, or as long as it takes.
    pub layout_time: Option<Nanos>,
    /// Things a reader of the results should know.
    pub notes: Vec<String>,
    /// What was asked for.
    pub settings: SweepSettings,
    /// What all random choices derive from.
    pub seed: u64,
    engine: String,
}

/// One measurement in fio's words.
struct Job {
    id: String,
    title: String,
    said: Vec<(String, String)>,
}

/// Is told how a sweep goes on. Every method may be left out.
pub trait SweepObserver: RunObserver {
    /// The target is ready; measuring begins.
    fn begun(&mut self, _header: &RunHeader) {}
    /// A point or an offered rate begins, so many ns of the budget being spent.
    fn point_begun(&mut self, _title: &str, _spent_ns: u64) {}
    /// A point has ended or failed, or was measured by the sweep that this one goes on with.
    fn point_ended(&mut self, _test: &TestRecord) {}
}

impl SweepObserver for () {}

/// Size of the working file where none is said.
const FILE_SIZE: u64 = 1 << 30;
/// Largest share of the time that laying out may take.
const LAYOUT_SHARE: u64 = 4;
/// Deepest queue where none is said.
const DEEPEST: u64 = 256;
/// Largest block where none is said.
const LARGEST: u64 = 1 << 20;
/// The finding of a rate that was offered and not kept: what a search for the highest one looks for.
const TOO_MUCH: &str = "rate-not-sustained";
/// Seeds of the points differ, so that none reads what another left in a cache on the way.
const SEED_STEP: u64 = 0x9e37_79b9;

impl SweepPlan {
    /// Plans what was asked for; looks at the target and changes nothing.
    ///
    /// # Errors
    /// The target is not there, cannot be used, or may not be written to and would be.
    pub fn make(settings: SweepSettings) -> Result<SweepPlan, AssessError> {
        let target = BenchTarget::inspect(&settings.run.target, &settings.run.destroy)?;
        simulated::check_cache(&settings.run.target, settings.run.buffered)?;
        SweepPlan::on(target, settings)
    }

    /// Plans what was asked for on a target already looked at.
    ///
    /// # Errors
    /// As for [`SweepPlan::make`].
    pub fn on(target: BenchTarget, settings: SweepSettings) -> Result<SweepPlan, AssessError> {
        simulated::check_engine(settings.run.engine.as_deref(), &target)?;
        if let Some(reason) =
            target.write_refusal().filter(|_| settings.patterns.iter().any(|pattern| pattern.writes()))
        {
            let hint = "or sweep reads alone: --rw randread".to_owned();
            return Err(AssessError::Target { path: settings.run.target, reason, hint: Some(hint) });
        }
        let size = size_on(&target, &settings.run.target, settings.run.size, FILE_SIZE)?;
        let mut notes: Vec<String> =
            simulated::notes_on([&target]).into_iter().chain(size.note).chain(remarks(&target)).collect();
        let engine = engine_or_substitute(settings.run.engine.as_deref(), &target, &mut notes);
        let is_directory = matches!(target, BenchTarget::Directory { .. });
        let limits_layout = is_directory && settings.run.size.is_none();
        let layout_time = limits_layout.then_some(Nanos(settings.budget.0 / LAYOUT_SHARE));
        let spec = spec(&settings, &target, settings.budget.0)?;
        let file = target.working_path();
        let seed = settings.run.seed.unwrap_or_else(|| target.usual_seed());
        Ok(SweepPlan { target, file, size: size.size, spec, layout_time, notes, settings, seed, engine })
    }

    /// The session that it runs on.
    pub fn session(&self) -> Session {
        simulated::session_for([&self.target])
    }

    /// The target by a name that means the same everywhere on this machine.
    pub fn target_name(&self) -> String {
        self.target.name(&self.settings.run.target)
    }

    /// fio's options for the point at `spot`, the `turn`th of those that are alike.
    fn said(&self, spot: &Spot, runtime_ns: u64, turn: u64) -> Vec<(String, String)> {
        let pair = |name: &str, value: String| (name.to_owned(), value);
        let apart = spot.rw.is_sequential() && spot.jobs > 1;
        let range = if apart { (self.size / u64::from(spot.jobs)) & !0xf_ffff } else { self.size };
        let mut said = vec![
            pair("ioengine", self.engine.clone()),
            pair("filename", escaped(&self.file)),
            pair("size", size_word(range)),
            pair("direct", if self.settings.run.buffered { "0" } else { "1" }.to_owned()),
            pair("rw", spot.rw.name().to_owned()),
            pair("bs", block_name(spot.block)),
            pair("iodepth", spot.depth.to_string()),
        ];
        if spot.jobs > 1 {
            said.extend([pair("numjobs", spot.jobs.to_string()), pair("group_reporting", "1".to_owned())]);
        }
        if apart {
            said.push(pair("offset_increment", size_word(range)));
        }
        let place = spot.block.wrapping_mul(31).wrapping_add(u64::from(spot.in_flight())) ^ (turn << 40);
        said.extend([
            pair("time_based", "1".to_owned()),
            pair("startdelay", time_word(Nanos(SETTLE_NS))),
            pair("runtime", time_word(Nanos(runtime_ns))),
            pair("randseed", (self.seed ^ place.wrapping_mul(SEED_STEP)).to_string()),
        ]);
        said
    }

    /// Name, title and options of the next measurement; `None` where there is none. `offers` have been made before it.
    fn job_of(&self, step: Next, offers: u64) -> Option<Job> {
        match step {
            Next::Run(spot, runtime_ns) => {
                Some(Job { id: spot.id(), title: spot.title(), said: self.said(&spot, runtime_ns, 0) })
            }
            Next::Offer(offer, runtime_ns) => {
                let mut said = self.said(&offer.spot(), runtime_ns, offers + 1);
                said.push(("rate_iops".to_owned(), offer.rate.to_string()));
                Some(Job { id: offer.id(), title: offer.title(), said })
            }
            Next::Done | Next::OutOfTime => None,
        }
    }
}

/// What the points cover, for what was said and what the target allows.
fn spec(settings: &SweepSettings, target: &BenchTarget, budget_ns: u64) -> Result<SweepSpec, AssessError> {
    let unit = if settings.run.buffered { 512 } else { target.request_unit(&settings.run.target) };
    let blocks = settings.blocks.clone().unwrap_or(Axis::Within(unit, LARGEST.max(unit)));
    let said: Vec<u64> = match &blocks {
        Axis::Exactly(blocks) => blocks.clone(),
        Axis::Within(least, most) => vec![*least, *most],
    };
    if let Some(odd) = said.iter().find(|block| !block.is_multiple_of(unit)) {
        return Err(AssessError::Target {
            path: settings.run.target.clone(),
            reason: format!(
                "takes direct requests in multiples of {}, and {} is none",
                bytes(unit),
                bytes(*odd)
            ),
            hint: Some("choose other block sizes, or --buffered".to_owned()),
        });
    }
    Ok(SweepSpec {
        patterns: settings.patterns.clone(),
        blocks,
        depths: settings.depths.clone().unwrap_or(Axis::Within(1, DEEPEST)),
        jobs: if settings.jobs.is_empty() { vec![1] } else { settings.jobs.clone() },
        unit,
        budget_ns,
        slo: settings.slo.clone(),
        reach: settings.reach.clone(),
    })
}

/// Runs `plan` on `session`, going on from the tests of an earlier sweep.
///
/// # Errors
/// The working file could not be made or laid out; nothing has been measured then.
pub fn sweep(
    plan: &SweepPlan,
    earlier: Vec<TestRecord>,
    session: &mut Session,
    observer: &mut dyn SweepObserver,
) -> Result<RunRecord, AssessError> {
    session.set_permit(WritePermit { destroy: plan.settings.run.destroy.clone(), own_command: true });
    let mut header = header(plan, session);
    let began = session.now();
    let layout = Layout {
        target: &plan.target,
        file: &plan.file,
        size: plan.size,
        direct: !plan.settings.run.buffered,
        limit: plan.layout_time,
    };
    header.size_bytes = lay_out(&layout, session, observer, &mut header.notes)?;
    let plan = &SweepPlan { size: header.size_bytes, ..plan.clone() };
    let laid_out_ns = session.now() - began;
    let budget_ns = plan.spec.budget_ns.saturating_sub(laid_out_ns);
    let spec = SweepSpec { budget_ns, ..plan.spec.clone() };
    observer.begun(&header);
    let mut record = RunRecord { status: TestStatus::Complete, header, ..RunRecord::default() };
    let (mut points, mut offered) = (Vec::new(), Vec::new());
    // What was broken off or failed gets another chance.
    for test in earlier.into_iter().filter(|test| test.status == TestStatus::Complete) {
        observer.point_ended(&test);
        points.extend(Point::of(&test));
        offered.extend(Offered::of(&test));
        record.tests.push(test);
    }
    loop {
        let step = match next(&spec, &points) {
            Next::Done => next_offer(&spec, &points, &offered),
            step => step,
        };
        let Some(Job { id, title, said }) = plan.job_of(step, offered.len() as u64) else {
            if step == Next::OutOfTime {
                record.header.notes.push(format!(
                    "the time ({}) was over before everything was looked at; --budget gives more",
                    duration(plan.settings.budget)
                ));
            }
            break;
        };
        observer.point_begun(&title, record.tests.iter().map(|test| test.elapsed_ns).sum());
        let test = measure((id, title), &said, session, observer);
        observer.point_ended(&test);
        // Whatever came of it, it counts as tried.
        points.extend(Point::of(&test));
        offered.extend(Offered::of(&test));
        record.header.job_text.push_str(&test.fio);
        record.header.job_text.push('\n');
        record.tests.push(test);
        if let Some(reason) = session.stop_handle().reason() {
            record.header.interrupted = Some(reason);
            record.status = TestStatus::Incomplete;
            break;
        }
    }
    if record.tests.iter().all(|test| test.status == TestStatus::Failed) {
        record.status = TestStatus::Failed;
    }
    // Points are short and go past the knee on purpose: what a single one suffers from counts, not what it is.
    record.findings = fathom_analysis::findings(&record);
    record.findings.retain(|finding| finding.severity >= Severity::Warning && finding.id != TOO_MUCH);
    record.findings.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(record)
}

fn header(plan: &SweepPlan, session: &Session) -> RunHeader {
    let heading = Heading {
        kind: "sweep",
        target_name: plan.target_name(),
        said: &plan.settings.run,
        suite: None,
        seed: Some(plan.seed),
        notes: &plan.notes,
    };
    crate::header::header(&heading, session)
}

#[cfg(test)]
mod tests {
    use fathom_volume::VolumeModel;

    use super::*;
    use fathom_analysis::cap_fit::Estimate;
    use fathom_analysis::knee::{curve, knee};
    use fathom_analysis::sweep::assess;
    use fathom_engine::sim::FixedLatency;

    fn plan() -> SweepPlan {
        let settings = SweepSettings {
            run: RunSettings { seed: Some(1), ..RunSettings::default() },
            patterns: vec![Pattern::RandRead],
            blocks: Some(Axis::Exactly(vec![4096])),
            depths: Some(Axis::Within(1, 64)),
            budget: Nanos::from_secs(60),
            ..SweepSettings::default()
        };
        SweepPlan::on(BenchTarget::simulated("simulated", VolumeModel::unlimited(1 << 30)), settings).unwrap()
    }

    /// 1 ms per request, eight at once.
    fn swept(earlier: Vec<TestRecord>) -> RunRecord {
        let millis = Nanos::from_millis(1);
        let model = FixedLatency { read: millis, write: millis, flush: millis, parallelism: 8 };
        sweep(&plan(), earlier, &mut Session::simulated(model, 1 << 30), &mut ()).unwrap()
    }

    #[test]
    fn a_device_that_serves_eight_at_once_bends_at_eight() {
        let record = swept(Vec::new());
        assert_eq!(record.status, TestStatus::Complete);
        let points: Vec<Point> = record.tests.iter().filter_map(Point::of).collect();
        let depths: Vec<u32> = points.iter().map(|point| point.spot.depth).collect();
        assert_eq!(depths, [1, 2, 4, 8, 16, 32]);
        let knee = knee(&curve(&points, (Pattern::RandRead, 4096, 1)), 1).unwrap();
        assert_eq!((knee.iodepth_latency, knee.iodepth_throughput), (8, Some(8)));
        assert!((knee.plateau_iops.unwrap() / 8_000.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn the_highest_rate_under_an_objective_is_offered_not_guessed() {
        let millis = Nanos::from_millis(1);
        let model = FixedLatency { read: millis, write: millis, flush: millis, parallelism: 8 };
        let slo = Slo::parse("p99<1500us").unwrap();
        let mut plan = plan();
        (plan.spec.slo, plan.spec.budget_ns) = (Some(slo.clone()), Nanos::from_secs(180).0);
        let mut session = Session::simulated(model, 1 << 30);
        let record = sweep(&plan, Vec::new(), &mut session, &mut ()).unwrap();
        let result = assess(&record, Some(&slo), None);
        let [highest] = &result.offered[..] else { panic!("{:?}", result.offered) };
        let best = highest.best.as_ref().expect("a rate is kept");
        assert!(highest.is_found && highest.times == 3, "{highest:?}");
        // Eight at a time, a millisecond each.
        assert!((7_750..=8_000).contains(&best.offer.rate), "{highest:?}");
        assert!(best.response.p99.is_some_and(|p99| p99 < 1_500_000), "{highest:?}");
        // Points of the grid are not mixed with offers, whose findings are none of the sweep's.
        assert!(result.points.iter().all(|point| point.spot.depth <= 64 && point.holds_its_depth()));
        assert_eq!(record.findings.iter().filter(|finding| finding.id == TOO_MUCH).count(), 0);
        assert!(record.tests.iter().filter_map(Offered::of).any(|offered| !offered.is_sustained));
    }

    #[test]
    fn what_was_measured_before_is_not_measured_again() {
        let mut earlier = swept(Vec::new()).tests;
        earlier.truncate(3);
        earlier[1].status = TestStatus::Incomplete;
        let record = swept(earlier.clone());
        let ids: Vec<&str> = record.tests.iter().map(|test| test.id.as_str()).collect();
        let expected: Vec<String> =
            [1, 4, 2, 8, 16, 32].map(|depth| format!("randread-4k-d{depth}")).to_vec();
        assert_eq!(ids, expected);
        assert_eq!(record.tests[0], earlier[0]);
    }

    #[test]
    fn limits_that_let_a_little_through_after_a_rest_are_told_with_it() {
        let target = "sim:custom?iops=3000&bandwidth=100MiB&latency=200us";
        let settings = SweepSettings {
            run: RunSettings { target: PathBuf::from(target), seed: Some(1), ..RunSettings::default() },
            patterns: vec![Pattern::RandRead],
            budget: Nanos::from_secs(60),
            ..SweepSettings::default()
        };
        let plan = SweepPlan::make(settings).unwrap();
        let mut session = crate::simulated::session_for([&plan.target]);
        let record = sweep(&plan, Vec::new(), &mut session, &mut ()).unwrap();
        let limits = assess(&record, None, None).read;
        for (estimate, truth) in [(limits.iops, 3000.0), (limits.bytes_per_second, 104_857_600.0)] {
            let Some(Estimate::Known { value, low, high }) = estimate else { panic!("{estimate:?}") };
            assert!((value / truth - 1.0).abs() < 0.02, "{value}, not {truth}");
            assert!(low <= truth && truth <= high, "{low} to {high}, not {truth}");
        }
    }

    #[test]
    fn commands_are_what_a_user_would_type() {
        let spot = Spot { rw: Pattern::Write, block: 65_536, depth: 4, jobs: 2 };
        let words: Vec<String> = plan()
            .said(&spot, 980_000_000, 0)
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let words = words.join(" ");
        for part in
            ["rw=write bs=64k iodepth=4 numjobs=2", "size=512m", "offset_increment=512m", "runtime=980ms"]
        {
            assert!(words.contains(part), "{words}");
        }
    }
}
