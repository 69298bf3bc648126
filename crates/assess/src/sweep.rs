//! Runs a sweep point by point: asks the planner where to measure next, measures, and hands each point out as it ends, so
//! that a sweep that was killed can go on where it was.

use fathom_analysis::criterion::{LatencyObjective, RateGoal};
use fathom_analysis::pattern::AccessPattern;
use fathom_analysis::plateau::SETTLE_NS;
use fathom_analysis::sweep::plan::NextPoint;
use fathom_analysis::sweep::point::SweepSpot;
use fathom_analysis::sweep::spec::{Axis, SweepSpec};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration};
use fathom_record::{Activity, RunRecord, SweepActivity, TestMeta, TestRecord, TestStatus};
use fathom_runner::Session;

use crate::AssessError;
use crate::control::{StepObserver, Steps};
use crate::drain::{BoundedJob, InFlight, MIN_DRAIN_NS, depth_bound};
use crate::findings::findings_of;
use crate::fleet::{AloneDecider, PointDecider, SweepSoFar};
use crate::flushes::flush_writes;
use crate::inspection::inspect;
use crate::measure::measure;
use crate::planned::{pair, seed_pair, size_word, time_word};
use crate::site::RunSettings;
use crate::site::{JobWords, Site};
use crate::target::BenchTarget;
use crate::traffic::{OfferedTraffic, PlannedTraffic};

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct SweepSettings {
    /// What every run is asked for.
    pub run: RunSettings,
    /// Patterns.
    pub patterns: Vec<AccessPattern>,
    /// Block sizes, bytes; `None` = as the target needs them.
    pub blocks: Option<Axis>,
    /// Requests in flight per job; `None` = 1 to 256.
    pub depths: Option<Axis>,
    /// Numbers of jobs; empty = one.
    pub jobs: Vec<u32>,
    /// Time for everything, laying out included.
    pub budget: Nanos,
    /// An objective for latency.
    pub slo: Option<LatencyObjective>,
    /// A rate to reach.
    pub reach: Option<RateGoal>,
}

/// What is going to be done, as far as that is known before.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    /// Where.
    pub site: Site,
    /// What the points cover; its budget is that of the points alone.
    pub spec: SweepSpec,
    /// What was asked for.
    pub settings: SweepSettings,
}

/// One measurement in fio's words.
struct SweepJob {
    id: String,
    title: String,
    options: JobWords,
    spot: SweepSpot,
    runtime_ns: u64,
}

/// Largest share of the time that laying out may take.
const LAYOUT_SHARE: u64 = 4;
/// Deepest queue where none is given.
const DEEPEST: u64 = 256;
/// Largest block where none is given.
const LARGEST: u64 = 1 << 20;

impl SweepPlan {
    /// Plans what was asked for; looks at the target and changes nothing.
    ///
    /// # Errors
    /// The target is not there, cannot be used, or may not be written to and would be.
    pub fn make(settings: SweepSettings) -> Result<SweepPlan, AssessError> {
        let target = Site::inspect(&settings.run)?;
        SweepPlan::on(target, settings)
    }

    /// Plans what was asked for on a target already looked at.
    ///
    /// # Errors
    /// As for [`SweepPlan::make`].
    pub fn on(target: BenchTarget, settings: SweepSettings) -> Result<SweepPlan, AssessError> {
        if let Some(reason) =
            target.write_refusal().filter(|_| settings.patterns.iter().any(|pattern| pattern.writes()))
        {
            let hint = "or sweep reads only: --rw randread";
            return settings.run.refuse(reason, hint);
        }
        let site = Site::on(target, &settings.run, Nanos(settings.budget.0 / LAYOUT_SHARE))?;
        let spec = spec(&settings, site.unit)?;
        Ok(SweepPlan { site, spec, settings })
    }

    /// What it moves.
    pub fn traffic(&self) -> PlannedTraffic {
        let (time, patterns) = (self.settings.budget.0, &self.spec.patterns);
        let writes = patterns.iter().any(|pattern| pattern.writes());
        let offered = OfferedTraffic {
            timed_ns: time,
            writing_ns: if writes { time } else { 0 },
            reads: patterns.iter().any(|pattern| !pattern.writes()),
            ..OfferedTraffic::default()
        };
        self.site.traffic(&self.settings.run, offered)
    }

    /// fio's options for the point at `spot`, the `turn`th of those that are alike.
    fn job_options(&self, spot: &SweepSpot, runtime_ns: u64, turn: u64) -> JobWords {
        let (apart, size) = (spot.rw.is_sequential() && spot.numjobs > 1, self.site.size);
        let range = if apart { (size / u64::from(spot.numjobs)) & !0xf_ffff } else { size };
        let mut options = self.site.job(spot.rw.name(), spot.block_size_bytes, spot.iodepth, Some(range));
        if spot.numjobs > 1 {
            options.extend([pair("numjobs", spot.numjobs.to_string()), pair("group_reporting", "1")]);
        }
        if apart {
            options.push(pair("offset_increment", size_word(range)));
        }
        // The seeds of the points differ, so that none reads what another left in a cache on the way.
        let place =
            spot.block_size_bytes.wrapping_mul(31).wrapping_add(u64::from(spot.in_flight())) ^ (turn << 40);
        options.extend([
            pair("time_based", "1"),
            pair("startdelay", time_word(Nanos(SETTLE_NS))),
            pair("runtime", time_word(Nanos(runtime_ns))),
            seed_pair(self.site.seed, place),
        ]);
        options
    }

    /// Name, title and options of the next measurement; `None` where there is none. `offers` have been made before it.
    fn job_of(&self, step: NextPoint, offers: u64) -> Option<SweepJob> {
        match step {
            NextPoint::Run(spot, runtime_ns) => Some(SweepJob {
                id: spot.id(),
                title: spot.title(),
                options: self.job_options(&spot, runtime_ns, 0),
                spot,
                runtime_ns,
            }),
            NextPoint::Offer(offer, runtime_ns) => {
                let spot = offer.spot();
                let mut options = self.job_options(&spot, runtime_ns, offers + 1);
                options.push(pair("rate_iops", offer.rate_iops.to_string()));
                Some(SweepJob { id: offer.id(), title: offer.title(), options, spot, runtime_ns })
            }
            NextPoint::Done | NextPoint::OutOfTime => None,
        }
    }
}

/// What the points cover, as requested, in requests that are multiples of `unit`.
fn spec(settings: &SweepSettings, unit: u64) -> Result<SweepSpec, AssessError> {
    let blocks = settings.blocks.clone().unwrap_or(Axis::Within(unit, LARGEST.max(unit)));
    let given: Vec<u64> = match &blocks {
        Axis::Exactly(blocks) => blocks.clone(),
        Axis::Within(least, most) => vec![*least, *most],
    };
    if let Some(odd) = given.iter().find(|block| !block.is_multiple_of(unit)) {
        let reason = format!("direct I/O requires multiples of {} bytes; got {}", bytes(unit), bytes(*odd));
        return settings.run.refuse(reason, "use other block sizes, or --buffered");
    }
    Ok(SweepSpec {
        patterns: settings.patterns.clone(),
        blocks,
        depths: settings.depths.clone().unwrap_or(Axis::Within(1, DEEPEST)),
        jobs: if settings.jobs.is_empty() { vec![1] } else { settings.jobs.clone() },
        unit,
        budget_ns: settings.budget.0,
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
    observer: &mut dyn StepObserver,
) -> Result<RunRecord, AssessError> {
    sweep_by(plan, earlier, session, observer, &mut AloneDecider)
}

/// As [`sweep`], with points that `decider` decides on.
///
/// # Errors
/// As for [`sweep`].
pub fn sweep_by(
    plan: &SweepPlan,
    earlier: Vec<TestRecord>,
    session: &mut Session,
    observer: &mut dyn StepObserver,
    decider: &mut dyn PointDecider,
) -> Result<RunRecord, AssessError> {
    let mut plan = plan.clone();
    let began = session.now();
    let text = |text: Option<&str>| text.map(str::to_owned);
    let activity = Activity::Sweep(SweepActivity {
        slo: text(plan.spec.slo.as_ref().map(LatencyObjective::text)),
        reach: text(plan.spec.reach.as_ref().map(RateGoal::text)),
    });
    let mut header = plan.site.begin(activity, &plan.settings.run, session, observer)?;
    if plan.spec.patterns.iter().any(|pattern| !pattern.writes()) {
        header.conditions.target.inspection = inspect(&plan.site, &header, session, observer);
    }
    let budget_ns = plan.spec.budget_ns.saturating_sub(session.now() - began);
    let spec = SweepSpec { budget_ns, ..plan.spec.clone() };
    let mut steps = Steps::begin(header, &plan.settings.run, session, observer);
    let mut so_far = SweepSoFar::default();
    // What was broken off or failed gets another chance.
    for test in earlier.into_iter().filter(|test| test.status == TestStatus::Complete) {
        so_far.add(&test);
        steps.add(test);
    }
    loop {
        let step = decider.next(&spec, &so_far, steps.record.tests.last(), &steps.session.stop_handle());
        let Some(job) = plan.job_of(step, so_far.offered.len() as u64) else {
            if step == NextPoint::OutOfTime {
                steps.note(format!(
                    "the time budget ({}) ended before all was measured; use a longer --budget",
                    duration(plan.settings.budget)
                ));
            }
            break;
        };
        steps.next(&job.id, &job.title, steps.elapsed_ns());
        let mut test = match too_deep(&job, &spec, &steps) {
            Some(reason) => {
                let SweepJob { id, title, .. } = job;
                TestRecord::skipped(TestMeta { id, title, fio: String::new() }, &reason)
            }
            None => measure(job.id, job.title, job.options, steps.session, steps.observer),
        };
        flush_writes(&mut test, [(&plan.site.target, plan.site.file.as_path())], steps.session);
        so_far.add(&test);
        steps.keep(test);
        if steps.is_over() {
            break;
        }
    }
    let mut record = steps.end();
    record.findings = findings_of(&record);
    crate::remedies::name_types(&mut record, &plan.settings.run.types);
    Ok(record)
}

/// Why a point cannot be measured within the budget: its requests in flight would outlast it.
fn too_deep(job: &SweepJob, spec: &SweepSpec, steps: &Steps<'_>) -> Option<String> {
    let left_ns = spec.budget_ns.saturating_sub(steps.elapsed_ns() + job.runtime_ns);
    let SweepSpot { iodepth, numjobs, block_size_bytes, .. } = job.spot;
    let in_flight =
        InFlight { depth: iodepth.into(), workers: numjobs.into(), block_bytes: block_size_bytes };
    let earlier = steps.record.tests.iter().collect();
    let bounded = [BoundedJob { in_flight, earlier, words: job.options.clone() }];
    let bound = depth_bound(&bounded, Nanos(left_ns.max(MIN_DRAIN_NS)), steps.session)?;
    Some(format!("{}; use a longer --budget, or a lower --iodepth", bound.reason()))
}

#[cfg(test)]
mod tests {
    use fathom_catalog::{Catalog, Parameters};
    use fathom_record::FindingId;
    use fathom_volume::VolumeModel;

    use super::*;
    use fathom_analysis::Analysis;
    use fathom_analysis::conclusions::{Suitability, USES};
    use fathom_analysis::estimate::Estimate;
    use fathom_analysis::sweep::assess;
    use fathom_analysis::sweep::knee::{curve, knee};
    use fathom_analysis::sweep::offered::OfferedPoint;
    use fathom_analysis::sweep::point::SweepPoint;
    use fathom_engine::sim::FixedLatency;

    fn plan() -> SweepPlan {
        let settings = SweepSettings {
            run: RunSettings { seed: Some(1), ..RunSettings::default() },
            patterns: vec![AccessPattern::RandRead],
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
        let points: Vec<SweepPoint> = record.tests.iter().filter_map(SweepPoint::of).collect();
        let depths: Vec<u32> = points.iter().map(|point| point.spot.iodepth).collect();
        assert_eq!(depths, [1, 2, 4, 8, 16, 32]);
        let knee = knee(&curve(&points, (AccessPattern::RandRead, 4096, 1)), 1).unwrap();
        assert_eq!((knee.iodepth_latency, knee.iodepth_throughput), (8, Some(8)));
        assert!((knee.plateau_iops.unwrap() / 8_000.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn the_highest_rate_under_an_objective_is_offered_not_guessed() {
        let millis = Nanos::from_millis(1);
        let model = FixedLatency { read: millis, write: millis, flush: millis, parallelism: 8 };
        let slo = LatencyObjective::parse_recorded("p99<1500us").unwrap();
        let mut plan = plan();
        (plan.spec.slo, plan.spec.budget_ns) = (Some(slo.clone()), Nanos::from_secs(180).0);
        let mut session = Session::simulated(model, 1 << 30);
        let record = sweep(&plan, Vec::new(), &mut session, &mut ()).unwrap();
        let result = assess(&record);
        let [highest] = &result.offered[..] else { panic!("{:?}", result.offered) };
        let best = highest.best.as_ref().expect("a rate is kept");
        assert!(highest.search_complete && highest.times == 3, "{highest:?}");
        // Eight at a time, a millisecond each.
        assert!((7_750..=8_000).contains(&best.offer.rate_iops), "{highest:?}");
        assert!(best.response_ns.p99.is_some_and(|p99| p99 < 1_500_000), "{highest:?}");
        // Points of the grid are not mixed with offers, whose findings are none of the sweep's.
        assert!(result.points.iter().all(|point| point.spot.iodepth <= 64 && point.holds_its_depth()));
        assert!(record.findings.iter().all(|finding| finding.id != FindingId::RateNotSustained));
        assert!(record.tests.iter().filter_map(OfferedPoint::of).any(|offered| !offered.kept_up));
    }

    /// Random reads of a volume of a type of the catalogue.
    fn swept_type(id: &str, gib: u64, name: &str) -> RunRecord {
        let parameters = Parameters { size_bytes: Some(gib << 30), ..Parameters::default() };
        let model = Catalog::shipped().get(id).unwrap().resolve(&parameters).unwrap().model;
        let settings = SweepSettings {
            run: RunSettings { seed: Some(1), target: name.into(), ..RunSettings::default() },
            patterns: vec![AccessPattern::RandRead],
            depths: Some(Axis::Within(1, 64)),
            budget: Nanos::from_secs(60),
            ..SweepSettings::default()
        };
        let plan = match name.starts_with("sim:") {
            true => SweepPlan::make(settings).unwrap(),
            false => SweepPlan::on(BenchTarget::simulated(name, model), settings).unwrap(),
        };
        sweep(&plan, Vec::new(), &mut plan.site.session(), &mut ()).unwrap()
    }

    #[test]
    fn a_burst_of_a_known_type_is_no_sustained_limit() {
        let record = swept_type("aws-gp2", 50, "sim:aws-gp2?size=50GiB");
        let duration = assess(&record).rate_durations.read.iops.unwrap();
        let text = "burst for 31 min 35 s from full credits, then 150 IOPS (sim:aws-gp2?size=50GiB)";
        assert_eq!(duration.text(), text);
        // The short points of a sweep prove no use, and disprove some.
        let all = Analysis::of(&record).conclusions().to_vec();
        assert_eq!(all.len(), USES.len());
        let oltp = all.iter().find(|one| one.id == "oltp").unwrap();
        assert_ne!(oltp.verdict, Suitability::Yes, "{oltp:?}");
    }

    #[test]
    fn a_plateau_of_an_unknown_volume_may_be_a_burst() {
        let record = swept_type("aws-gp2", 50, "unknown");
        // Which type that would be is not evident without a provider.
        assert!(
            record.findings.iter().all(|found| found.id != FindingId::BurstPossible),
            "{:#?}",
            record.findings
        );
        let duration = assess(&record).rate_durations.read.iops.unwrap();
        assert!(duration.text().ends_with("burst not ruled out"), "{duration:?}");
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
            run: RunSettings { target: target.into(), seed: Some(1), ..RunSettings::default() },
            patterns: vec![AccessPattern::RandRead],
            budget: Nanos::from_secs(60),
            ..SweepSettings::default()
        };
        let plan = SweepPlan::make(settings).unwrap();
        let mut session = plan.site.session();
        let record = sweep(&plan, Vec::new(), &mut session, &mut ()).unwrap();
        let limits = assess(&record).limits.read;
        for (estimate, truth) in [(limits.iops, 3000.0), (limits.bytes_per_second, 104_857_600.0)] {
            let Some(Estimate::Known { value, low, high }) = estimate else { panic!("{estimate:?}") };
            assert!((value / truth - 1.0).abs() < 0.002, "{value}, not {truth}");
            assert!(low <= truth && truth <= high, "{low} to {high}, not {truth}");
        }
    }

    #[test]
    fn commands_are_what_a_user_would_type() {
        let spot = SweepSpot { rw: AccessPattern::Write, block_size_bytes: 65_536, iodepth: 4, numjobs: 2 };
        let words: Vec<String> = plan()
            .job_options(&spot, 980_000_000, 0)
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
