//! Runs what finds out of what a volume is made: asks the method what to measure next, measures, and hands each
//! measurement out as it ends.

use std::path::PathBuf;

use fathom_analysis::identify::Identified;
use fathom_analysis::identify::probe::{Probe, Seen, Way};
use fathom_analysis::identify::script::{Budget, IdentifySpec, Step, identified, next};
use fathom_analysis::sweep_point::block_name;
use fathom_engine::registry;
use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_record::{RunHeader, RunRecord, Severity, TestRecord, TestStatus};
use fathom_runner::{RunObserver, Session, WritePermit};

use crate::header::Heading;
use crate::layout::{Layout, lay_out};
use crate::measure::{Job, measure_together};
use crate::plan::{remarks, size_on};
use crate::planned::{engine_or_substitute, escaped, size_word, time_word};
use crate::settings::RunSettings;
use crate::target::BenchTarget;
use crate::{AssessError, simulated};

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct IdentifySettings {
    /// What every run is asked for.
    pub run: RunSettings,
    /// Time for everything, laying out included; `None` = [`USUAL_BUDGET`].
    pub budget: Option<Nanos>,
    /// Reads alone, also where writes could be made.
    pub read_only: bool,
}

/// What is going to be done, as far as that is known before.
#[derive(Clone, Debug)]
pub struct IdentifyPlan {
    /// The target.
    pub target: BenchTarget,
    /// The path that jobs name; in a directory a file that exists under no name.
    pub file: PathBuf,
    /// Bytes of it that are used.
    pub size: u64,
    /// What may be done: its budget is the most that time, requests and bytes can come to.
    pub spec: IdentifySpec,
    /// Why writes are not made; `None` where they are.
    pub no_writes: Option<String>,
    /// Longest time for laying out; `None` where nothing is laid out, or as long as it takes.
    pub layout_time: Option<Nanos>,
    /// Things a reader of the results should know.
    pub notes: Vec<String>,
    /// What was asked for.
    pub settings: IdentifySettings,
    /// What all random choices derive from.
    pub seed: u64,
    engine: String,
}

/// Is told how identifying goes on. Every method may be left out.
pub trait IdentifyObserver: RunObserver {
    /// The target is ready; measuring begins.
    fn begun(&mut self, _header: &RunHeader) {}
    /// A measurement begins, so many ns of the budget being spent.
    fn probe_begun(&mut self, _title: &str, _spent_ns: u64) {}
    /// A measurement has ended or failed.
    fn probe_ended(&mut self, _test: &TestRecord) {}
}

impl IdentifyObserver for () {}

/// Time for everything where none is said: a bucket that lasts for half an hour runs dry in it.
pub const USUAL_BUDGET: Nanos = Nanos::from_secs(3600);
/// Size of the working file where none is said.
const FILE_SIZE: u64 = 1 << 30;
/// Largest share of the time that laying out may take.
const LAYOUT_SHARE: u64 = 8;
/// Probes that the budget is thought to hold beside the emptying.
const USUAL_PROBES: u64 = 40;
/// The least time of a measurement: on a modelled volume, and on a real one, whose limits may let requests through by turns
/// of 20 to 100 ms.
const PROBE_NS: (u64, (u64, u64)) = (150_000_000, (4_000_000_000, 6_000_000_000));
/// Most requests in flight, and largest request: on a modelled volume, on a real one, where the kernel splits larger ones.
const MOST_DEPTH: (u32, u32) = (4096, 256);
const MOST_BLOCK: (u64, u64) = (64 << 20, 512 << 10);
/// Most bytes in flight.
const MOST_IN_FLIGHT: (u64, u64) = (1 << 40, 128 << 20);
/// Requests and bytes a second that a budget of time allows for.
const MOST_IOPS: u64 = 250_000;
const MOST_RATE: (u64, u64) = (64 << 30, 8 << 30);
/// Seeds of places differ from probe to probe.
const SEED_STEP: u64 = 0x9e37_79b9;

impl IdentifyPlan {
    /// Plans what was asked for; looks at the target and changes nothing.
    ///
    /// # Errors
    /// The target is not there or cannot be used.
    pub fn make(settings: IdentifySettings) -> Result<IdentifyPlan, AssessError> {
        let target = BenchTarget::inspect(&settings.run.target, &settings.run.destroy)?;
        simulated::check_cache(&settings.run.target, settings.run.buffered)?;
        IdentifyPlan::on(target, settings)
    }

    /// Plans what was asked for on a target already looked at.
    ///
    /// # Errors
    /// As for [`IdentifyPlan::make`].
    pub fn on(target: BenchTarget, settings: IdentifySettings) -> Result<IdentifyPlan, AssessError> {
        if let Some(name) = settings.run.engine.as_ref().filter(|name| registry::find(name).is_none()) {
            return Err(AssessError::UnknownEngine { name: name.clone() });
        }
        let no_writes =
            if settings.read_only { Some("--read-only".to_owned()) } else { target.write_refusal() };
        let size = size_on(&target, &settings.run.target, settings.run.size, FILE_SIZE)?;
        let mut notes: Vec<String> =
            simulated::notes_on([&target]).into_iter().chain(size.note).chain(remarks(&target)).collect();
        let engine = engine_or_substitute(settings.run.engine.as_deref(), &target, &mut notes);
        let budget = settings.budget.unwrap_or(USUAL_BUDGET);
        let is_directory = matches!(target, BenchTarget::Directory { .. });
        let layout_time =
            (is_directory && settings.run.size.is_none()).then_some(Nanos(budget.0 / LAYOUT_SHARE));
        let spec = spec(&settings, &target, (size.size, budget.0, no_writes.is_none()));
        let file = target.working_path();
        let seed = settings.run.seed.unwrap_or_else(|| target.usual_seed());
        Ok(IdentifyPlan {
            target,
            file,
            size: size.size,
            spec,
            no_writes,
            layout_time,
            notes,
            settings,
            seed,
            engine,
        })
    }

    /// The session that it runs on.
    pub fn session(&self) -> Session {
        simulated::session_for([&self.target])
    }

    /// The target by a name that means the same everywhere on this machine.
    pub fn target_name(&self) -> String {
        self.target.name(&self.settings.run.target)
    }

    /// fio's options for one direction of `probe`.
    fn said(&self, probe: &Probe, way: Way) -> Vec<(String, String)> {
        let pair = |name: &str, value: String| (name.to_owned(), value);
        let (rw, salt) = match way {
            Way::Read => ("randread", 1),
            Way::Write => ("randwrite", 2),
        };
        let mut said = vec![
            pair("ioengine", self.engine.clone()),
            pair("filename", escaped(&self.file)),
            pair("size", size_word(probe.range.min(self.size))),
            pair("direct", if self.settings.run.buffered { "0" } else { "1" }.to_owned()),
            pair("rw", rw.to_owned()),
            pair("bs", block_name(probe.block)),
            pair("iodepth", probe.depth(way).to_string()),
        ];
        said.extend(probe.rate.map(|rate| pair("rate_iops", rate.to_string())));
        if probe.rest_ns > 0 {
            said.push(pair("startdelay", time_word(Nanos(probe.rest_ns))));
        }
        if probe.ramp_ns > 0 {
            said.push(pair("ramp_time", time_word(Nanos(probe.ramp_ns))));
        }
        // Not `time_based`: it ends with its requests or its time, whichever comes first.
        said.extend([
            pair("io_size", (probe.ios.saturating_mul(probe.block)).to_string()),
            pair("runtime", time_word(Nanos(probe.runtime_ns))),
            pair("randseed", (self.seed ^ (probe.turn * 4 + salt).wrapping_mul(SEED_STEP)).to_string()),
        ]);
        said
    }
}

/// What may be done on `target`, with so many bytes of it, in so many ns, writing or not.
fn spec(
    settings: &IdentifySettings,
    target: &BenchTarget,
    (size, budget_ns, writes): (u64, u64, bool),
) -> IdentifySpec {
    let is_simulated = target.is_simulated();
    let (virtual_ns, (least, most)) = PROBE_NS;
    let real_ns = (budget_ns / USUAL_PROBES).clamp(least, most);
    let unit = if settings.run.buffered { 512 } else { target.request_unit(&settings.run.target) };
    let of = |(simulated, real): (u64, u64)| if is_simulated { simulated } else { real };
    let largest = of(MOST_BLOCK).min(size / 8);
    let seconds = budget_ns / 1_000_000_000 + 1;
    IdentifySpec {
        unit,
        size,
        most_block: (largest / unit).max(1) * unit,
        most_depth: if is_simulated { MOST_DEPTH.0 } else { MOST_DEPTH.1 },
        most_in_flight: of(MOST_IN_FLIGHT),
        writes,
        probe_ns: if is_simulated { virtual_ns } else { real_ns },
        budget: Budget { time_ns: budget_ns, ios: MOST_IOPS * seconds, bytes: of(MOST_RATE) * seconds },
    }
}

/// Runs `plan` on `session`; what was found is there also where it was broken off.
///
/// # Errors
/// The working file could not be made or laid out; nothing has been measured then.
pub fn identify(
    plan: &IdentifyPlan,
    session: &mut Session,
    observer: &mut dyn IdentifyObserver,
) -> Result<(RunRecord, Identified), AssessError> {
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
    let mut spec = IdentifySpec { size: header.size_bytes, ..plan.spec.clone() };
    spec.budget.time_ns = spec.budget.time_ns.saturating_sub(session.now() - began);
    spec.most_block = spec.most_block.min(spec.size / 8 / spec.unit * spec.unit).max(spec.unit);
    header.identify = Some(spec.record());
    let plan = &IdentifyPlan { size: header.size_bytes, ..plan.clone() };
    observer.begun(&header);
    let mut record = RunRecord { status: TestStatus::Complete, header, ..RunRecord::default() };
    let mut seen: Vec<Seen> = Vec::new();
    loop {
        let probe = match next(&spec, &seen) {
            Step::Run(probe) => probe,
            Step::Done => break,
            Step::OutOfBudget => {
                let budget = duration(Nanos(plan.spec.budget.time_ns));
                record.header.notes.push(format!(
                    "the budget ({budget}) was over before everything was looked at; --budget gives more"
                ));
                break;
            }
        };
        observer.probe_begun(&probe.title(), record.tests.iter().map(|test| test.elapsed_ns).sum());
        let jobs: Vec<Job<'_>> = probe.ways().map(|way| (way.name(), plan.said(&probe, way))).collect();
        let test = measure_together((probe.id(seen.len()), probe.title()), &jobs, session, observer);
        observer.probe_ended(&test);
        seen.extend(Seen::of(&test));
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
    // Probes are short, and go past every limit on purpose: what a single one suffers from counts, not what it is.
    record.findings = fathom_analysis::findings(&record);
    record.findings.retain(|finding| finding.severity >= Severity::Error);
    Ok((record, identified(&spec, &seen)))
}

fn header(plan: &IdentifyPlan, session: &Session) -> RunHeader {
    let heading = Heading {
        kind: "identify",
        target_name: plan.target_name(),
        said: &plan.settings.run,
        suite: None,
        seed: Some(plan.seed),
        notes: &plan.notes,
    };
    crate::header::header(&heading, session)
}
