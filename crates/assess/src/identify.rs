//! Runs what finds out of what a volume is made: asks the method what to measure next, measures, and hands each
//! measurement out as it ends.

use fathom_analysis::identified::Identified;
use fathom_analysis::identify::probe::{IdentifyProbe, IoDirection, Seen};
use fathom_analysis::identify::script::{IdentifySpec, IdentifyStep, identified, next};
use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_record::{Activity, IdentifyActivity, RunRecord};
use fathom_runner::Session;

use crate::AssessError;
use crate::control::{StepObserver, Steps};
use crate::findings::findings_of;
use crate::measure::{NamedJob, measure_together};
use crate::planned::{pair, seed_pair, time_word};
use crate::settings::RunSettings;
use crate::site::{JobWords, Site};
use crate::target::BenchTarget;
use crate::traffic::{OfferedTraffic, PlannedTraffic};
use crate::twin;

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct IdentifySettings {
    /// What every run is asked for.
    pub run: RunSettings,
    /// Time for everything, laying out included; `None` = [`USUAL_BUDGET`].
    pub budget: Option<Nanos>,
    /// Reads alone, also where writes could be made.
    pub read_only: bool,
    /// Latencies are measured as well, after the budget, for a twin of the volume.
    pub measures_latencies: bool,
}

/// What is going to be done, as far as that is known before.
#[derive(Clone, Debug)]
pub struct IdentifyPlan {
    /// Where.
    pub site: Site,
    /// What may be done: its budget is the most that time, requests and bytes can come to.
    pub spec: IdentifySpec,
    /// Why writes are not made; `None` where they are.
    pub no_writes: Option<String>,
    /// What was asked for.
    pub settings: IdentifySettings,
}

/// The usual budget: a bucket that lasts for half an hour is exhausted in it.
pub const USUAL_BUDGET: Nanos = Nanos::from_secs(3600);
/// Largest share of the time that laying out may take.
const LAYOUT_SHARE: u64 = 8;
/// Probes that the budget is thought to hold beside the emptying.
const USUAL_PROBES: u64 = 40;
/// The least time of a measurement: on a simulated volume, and on a real one, whose limits may let requests through by turns
/// of 20 to 100 ms.
const PROBE_NS: (u64, (u64, u64)) = (150_000_000, (4_000_000_000, 6_000_000_000));
/// Most requests in flight, and largest request: on a simulated volume, on a real one, where the kernel splits larger ones.
const MAX_DEPTH: (u32, u32) = (4096, 256);
const MAX_BLOCK: (u64, u64) = (64 << 20, 512 << 10);
/// Most bytes in flight.
const MAX_IN_FLIGHT: (u64, u64) = (1 << 40, 128 << 20);
/// Requests and bytes a second that a budget of time allows for.
const MAX_IOPS: u64 = 250_000;
const MAX_RATE: (u64, u64) = (64 << 30, 8 << 30);

impl IdentifyPlan {
    /// Plans what was asked for; looks at the target and changes nothing.
    ///
    /// # Errors
    /// The target is not there or cannot be used.
    pub fn make(settings: IdentifySettings) -> Result<IdentifyPlan, AssessError> {
        let target = Site::inspect(&settings.run)?;
        IdentifyPlan::on(target, settings)
    }

    /// Plans what was asked for on a target already looked at.
    ///
    /// # Errors
    /// As for [`IdentifyPlan::make`].
    pub fn on(target: BenchTarget, settings: IdentifySettings) -> Result<IdentifyPlan, AssessError> {
        let no_writes =
            if settings.read_only { Some("--read-only".to_owned()) } else { target.write_refusal() };
        let budget = settings.budget.unwrap_or(USUAL_BUDGET);
        let site = Site::on(target, &settings.run, Nanos(budget.0 / LAYOUT_SHARE))?;
        let spec = spec(&site, budget.0, no_writes.is_none());
        Ok(IdentifyPlan { site, spec, no_writes, settings })
    }

    /// What it moves.
    pub fn traffic(&self) -> PlannedTraffic {
        let limits = &self.spec.limits;
        let offered = OfferedTraffic {
            timed_ns: limits.budget_ns,
            writing_ns: if limits.writes { limits.budget_ns } else { 0 },
            reads: true,
            ..OfferedTraffic::default()
        };
        self.site.traffic(&self.settings.run, offered)
    }

    /// fio's options for one direction of `probe`.
    fn job_options(&self, probe: &IdentifyProbe, way: IoDirection) -> JobWords {
        let (rw, salt) = match way {
            IoDirection::Read => ("randread", 1),
            IoDirection::Write => ("randwrite", 2),
        };
        let range = probe.range.min(self.site.size);
        let mut options = self.site.job(rw, probe.block, probe.depth(way), Some(range));
        options.extend(probe.rate.map(|rate| pair("rate_iops", rate.to_string())));
        if probe.rest_ns > 0 {
            options.push(pair("startdelay", time_word(Nanos(probe.rest_ns))));
        }
        if probe.ramp_ns > 0 {
            options.push(pair("ramp_time", time_word(Nanos(probe.ramp_ns))));
        }
        // Not `time_based`: it ends with its requests or its time, whichever comes first.
        options.extend([
            pair("io_size", (probe.ios.saturating_mul(probe.block)).to_string()),
            pair("runtime", time_word(Nanos(probe.runtime_ns))),
            seed_pair(self.site.seed, probe.turn * 4 + salt),
        ]);
        options
    }
}

/// What may be done on `site` in so many ns, writing or not.
fn spec(site: &Site, budget_ns: u64, writes: bool) -> IdentifySpec {
    let (is_simulated, size, unit) = (site.target.is_simulated(), site.size, site.unit);
    let (virtual_ns, (least, most)) = PROBE_NS;
    let real_ns = (budget_ns / USUAL_PROBES).clamp(least, most);
    let of = |(simulated, real): (u64, u64)| if is_simulated { simulated } else { real };
    let largest = of(MAX_BLOCK).min(size / 8);
    let seconds = budget_ns / 1_000_000_000 + 1;
    let limits = IdentifyActivity {
        unit_bytes: unit,
        most_block_bytes: (largest / unit).max(1) * unit,
        most_depth: if is_simulated { MAX_DEPTH.0 } else { MAX_DEPTH.1 },
        most_in_flight_bytes: of(MAX_IN_FLIGHT),
        writes,
        probe_ns: if is_simulated { virtual_ns } else { real_ns },
        budget_ns,
        budget_ios: MAX_IOPS.saturating_mul(seconds),
        budget_bytes: of(MAX_RATE).saturating_mul(seconds),
    };
    IdentifySpec { size, limits }
}

/// Runs `plan` on `session`; what was found is there also where it was broken off.
///
/// # Errors
/// The working file could not be made or laid out; nothing has been measured then.
pub fn identify(
    plan: &IdentifyPlan,
    session: &mut Session,
    observer: &mut dyn StepObserver,
) -> Result<(RunRecord, Identified), AssessError> {
    let mut plan = plan.clone();
    let began = session.now();
    let activity = Activity::Identify(IdentifyActivity::default());
    let mut header = plan.site.begin(activity, &plan.settings.run, session, observer)?;
    let mut spec = IdentifySpec { size: plan.site.size, ..plan.spec.clone() };
    let (limits, unit) = (&mut spec.limits, plan.site.unit);
    limits.budget_ns = limits.budget_ns.saturating_sub(session.now() - began);
    limits.most_block_bytes = limits.most_block_bytes.min(spec.size / 8 / unit * unit).max(unit);
    header.activity = Activity::Identify(spec.limits.clone());
    let target = header.conditions.target.clone();
    let mut steps = Steps::begin(header, &plan.settings.run, session, observer);
    let mut seen: Vec<Seen> = Vec::new();
    loop {
        let probe = match next(&spec, &seen) {
            IdentifyStep::Run(probe) => probe,
            IdentifyStep::Done => break,
            IdentifyStep::OutOfBudget => {
                let budget = duration(Nanos(plan.spec.limits.budget_ns));
                steps.note(format!(
                    "the time budget ({budget}) ended before all was measured; use a longer --budget"
                ));
                break;
            }
        };
        let (id, title) = (probe.id(seen.len()), probe.title());
        steps.next(&id, &title, steps.elapsed_ns());
        let jobs: Vec<NamedJob<'_>> =
            probe.ways().map(|way| (way.name(), plan.job_options(&probe, way))).collect();
        let test = measure_together(id, title, &jobs, steps.session, steps.observer);
        seen.extend(Seen::of(&test, &target));
        steps.keep(test);
        if steps.is_over() {
            break;
        }
    }
    let found = identified(&spec, &seen);
    if plan.settings.measures_latencies && !steps.is_over() {
        twin::measure_latencies(&plan.site, &found, &spec.limits, &mut steps);
    }
    let mut record = steps.end();
    record.findings = findings_of(&record);
    Ok((record, found))
}
