//! Targets that are simulated volumes, `sim:ID?…`: what one is, and the session on virtual time that runs on them.
//!
//! The rest of a command does not know the difference: the same plans, jobs, records and reports.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use fathom_catalog::{MonthlyUse, Parameters, SimulatedTarget};
use fathom_engine::registry;
use fathom_engine::sim::{self, BEGIN_NS, Volume};
use fathom_model::units::bytes;
use fathom_model::{MonthlyCost, RunPlan};
use fathom_runner::Session;
use fathom_volume::{Limit, LimitStage, VolumeLatency, VolumeModel};

use crate::catalogue::VolumeTypes;
use crate::target::BenchTarget;
use crate::twin;
use crate::{AssessError, ErrorKind};

/// What a request takes where neither a limit nor a latency says anything: virtual time would never move.
const MIN_NS: u64 = 10_000;

/// A simulated volume.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedVolume {
    /// Its name as typed, by which jobs name it.
    pub path: PathBuf,
    /// What it is, for people.
    pub title: String,
    /// The type of the catalogue that it is, and what was chosen of it; `None` for limits of one's own.
    pub chosen: Option<(String, Parameters)>,
    /// What it is made of.
    pub model: VolumeModel,
    /// What decides everything that it draws at random.
    pub seed: u64,
    /// What a reader of the results should know, in parts of sentences.
    pub notes: Vec<String>,
}

/// True where `path` names a simulated volume.
pub fn is_simulated(path: &Path) -> bool {
    path.to_str().is_some_and(SimulatedTarget::is_one)
}

impl SimulatedVolume {
    /// The volume that `path` names among `types`, `sim:ID?KEY=VALUE&…`, or among the twins, `sim:@NAME`.
    ///
    /// # Errors
    /// There is no such type, it has no model, or what is chosen of it makes no sense.
    pub fn named(path: &Path, types: &VolumeTypes) -> Result<SimulatedVolume, AssessError> {
        let text = path.to_string_lossy();
        if twin::is_twin(&text) {
            return twin::volume(path);
        }
        let catalogue = types.catalogue()?;
        let target = SimulatedTarget::parse(catalogue, &text).map_err(|error| {
            let message = format!("{}: {}", error.target, error.reason);
            AssessError::new(ErrorKind::Usage, message, error.hint())
        })?;
        let title = match catalogue.get(&target.id) {
            Some(entry) => {
                let how = if entry.is_as_measured() { ", as measured" } else { "" };
                let size = bytes(target.model.size_bytes);
                format!("{} {}{how}, {size}", entry.provider(), entry.type_name())
            }
            None => format!("own limits, {}", bytes(target.model.size_bytes)),
        };
        let reported = target.assumptions;
        let chosen = target.chosen.map(|chosen| (target.id, chosen));
        let mut volume =
            SimulatedVolume { seed: target.seed, title, chosen, ..SimulatedVolume::of(&text, target.model) };
        volume.notes.extend(reported.into_iter().map(|assumption| format!("{text}: {assumption}")));
        volume.keep_time_moving();
        // The cost of a flush is not published: it costs as much as a write and moves no bytes.
        volume.model.sync_latency = volume.model.write_latency.clone();
        Ok(volume)
    }

    /// The volume of a name that may leave `sim:` out.
    ///
    /// # Errors
    /// As [`SimulatedVolume::named`].
    pub(crate) fn of_name(name: &str, types: &VolumeTypes) -> Result<SimulatedVolume, AssessError> {
        let full = if name.starts_with("sim:") { name.to_owned() } else { format!("sim:{name}") };
        SimulatedVolume::named(Path::new(&full), types)
    }

    /// What a month of this use costs; `None` without a sourced price.
    pub(crate) fn cost_of_month(
        &self,
        types: &VolumeTypes,
        used: MonthlyUse,
    ) -> Result<Option<MonthlyCost>, AssessError> {
        let Some((id, parameters)) = &self.chosen else { return Ok(None) };
        let Some(entry) = types.catalogue()?.get(id) else { return Ok(None) };
        entry.cost_of_month(parameters, used).map_err(|refusal| {
            let message = format!("{}: {}", self.path.display(), refusal.reason);
            AssessError::new(ErrorKind::Usage, message, refusal.hint().map(str::to_owned))
        })
    }

    /// Its notes, without its name before them.
    pub(crate) fn own_notes(&self) -> Vec<String> {
        let name = format!("{}: ", self.path.display());
        self.notes.iter().map(|note| note.strip_prefix(&name).unwrap_or(note).to_owned()).collect()
    }

    /// A volume of one's own making.
    pub fn of(name: &str, model: VolumeModel) -> SimulatedVolume {
        let title = bytes(model.size_bytes);
        SimulatedVolume { path: PathBuf::from(name), title, chosen: None, model, seed: 0, notes: Vec::new() }
    }

    /// Bytes it has.
    pub fn size(&self) -> u64 {
        self.model.size_bytes
    }

    /// Gives a latency to a direction that has neither one nor a limit.
    fn keep_time_moving(&mut self) {
        let holds =
            |stages: &[LimitStage]| stages.iter().any(|stage| is_bound(stage.ios) || is_bound(stage.bytes));
        let VolumeModel { shared, reads, writes, read_latency, write_latency, least_trim_ns, .. } =
            &mut self.model;
        // A trim moves no bytes.
        let counts_trims = shared.iter().chain(&*writes).any(|stage| is_bound(stage.ios));
        if write_latency.is_none() && !counts_trims {
            *least_trim_ns = MIN_NS;
        }
        let directions = [("reads", reads, read_latency), ("writes", writes, write_latency)];
        for (name, own, latency) in directions {
            if holds(shared) || holds(own) || !latency.is_none() || latency.transfer.is_some() {
                continue;
            }
            *latency = VolumeLatency::fixed(MIN_NS);
            self.notes.push(format!(
                "{}: {name} have neither a limit nor a latency and take {} µs each; set it with latency=",
                self.path.display(),
                MIN_NS / 1000
            ));
        }
    }
}

/// True where only so many are let through in a time, credit or not.
fn is_bound(limit: Option<Limit>) -> bool {
    limit.is_some_and(|limit| !matches!(limit, Limit::Credit { burst: None, .. }))
}

/// The session for a command on `targets`: on real time, or on virtual time with the volumes that they are. Credit lives
/// on as long as the session.
pub fn session_for<'a>(targets: impl IntoIterator<Item = &'a BenchTarget>) -> Session {
    let volumes = once_each(targets);
    if volumes.is_empty() { Session::real() } else { session_on(volumes) }
}

fn session_on<'a>(volumes: impl IntoIterator<Item = &'a SimulatedVolume>) -> Session {
    let begun = |volume: &SimulatedVolume| {
        let begun = Volume::beginning_at(&volume.model, volume.seed, BEGIN_NS);
        (volume.path.clone(), begun.expect("the model was validated when it was read"))
    };
    Session::on_volumes(volumes.into_iter().map(begun).collect())
}

/// The simulated volumes among `targets`; the same name is the same volume.
fn once_each<'a>(targets: impl IntoIterator<Item = &'a BenchTarget>) -> Vec<&'a SimulatedVolume> {
    let mut volumes: Vec<&SimulatedVolume> = Vec::new();
    for target in targets {
        if let BenchTarget::Simulated(volume) = target
            && !volumes.iter().any(|known| known.path == volume.path)
        {
            volumes.push(volume);
        }
    }
    volumes
}

/// What every report on such volumes says; nothing where none is simulated.
pub(crate) fn notes_on<'a>(targets: impl IntoIterator<Item = &'a BenchTarget> + Clone) -> Vec<String> {
    let volumes = once_each(targets.clone());
    let mut notes: Vec<String> = introduction(&volumes).into_iter().collect();
    for volume in &volumes {
        let is_it =
            |target: &BenchTarget| matches!(target, BenchTarget::Simulated(it) if it.path == volume.path);
        if targets.clone().into_iter().filter(|target| is_it(target)).count() > 1 {
            notes.push(format!("{} is given more than once", volume.path.display()));
        }
        notes.extend(volume.notes.iter().cloned());
    }
    notes
}

fn introduction(volumes: &[&SimulatedVolume]) -> Option<String> {
    let mut titles: Vec<&str> = volumes.iter().map(|volume| volume.title.as_str()).collect();
    titles.dedup();
    let what = if volumes.len() == 1 { "a simulated volume" } else { "simulated volumes" };
    let time = "in virtual time: simulated, not measured";
    (!titles.is_empty()).then(|| format!("{what} ({}), {time}", titles.join("; ")))
}

/// What a plan runs on.
#[derive(Clone, Debug, Default)]
pub struct PlanTargets {
    volumes: Vec<SimulatedVolume>,
    /// Notes on simulated volumes.
    pub notes: Vec<String>,
}

impl PlanTargets {
    /// The simulated volumes that the jobs of `plan` name, if any.
    ///
    /// # Errors
    /// A volume cannot be, jobs name real targets as well, or the engine of simulated volumes without naming one.
    pub fn of(plan: &RunPlan, types: &VolumeTypes) -> Result<PlanTargets, AssessError> {
        let (mut paths, mut seen): (Vec<PathBuf>, HashSet<&PathBuf>) = Default::default();
        for path in plan.jobs.iter().flat_map(|job| &job.clones).flat_map(|clone| &clone.paths) {
            if seen.insert(path) {
                paths.push(path.clone());
            }
        }
        if !paths.iter().any(|path| is_simulated(path)) {
            return match plan.jobs.iter().find(|job| job.engine.name == sim::ENTRY.name) {
                Some(job) => Err(AssessError::usage(
                    format!("job '{}': ioengine=sim needs a simulated volume", job.name),
                    "use filename=sim:ID?size=50GiB",
                )),
                None => Ok(PlanTargets::default()),
            };
        }
        refuse_mixture(&paths)?;
        let volumes: Vec<SimulatedVolume> =
            paths.iter().map(|path| SimulatedVolume::named(path, types)).collect::<Result<_, _>>()?;
        let mut notes: Vec<String> = introduction(&volumes.iter().collect::<Vec<_>>()).into_iter().collect();
        notes.extend(volumes.iter().flat_map(|volume| volume.notes.iter().cloned()));
        let mut others: Vec<&str> = plan.jobs.iter().map(|job| job.engine.name.as_str()).collect();
        others.retain(|name| *name != sim::ENTRY.name);
        others.sort_unstable();
        others.dedup();
        if !others.is_empty() {
            notes.push(format!("the volume replaces ioengine={}", others.join(", ")));
        }
        Ok(PlanTargets { volumes, notes })
    }

    /// True where time is virtual.
    pub fn is_simulated(&self) -> bool {
        !self.volumes.is_empty()
    }

    /// The session that the plan runs on.
    pub fn session(&self) -> Session {
        if self.is_simulated() { session_on(&self.volumes) } else { Session::real() }
    }
}

/// Refuses the page cache where there is none.
pub(crate) fn check_cache(path: &Path, is_buffered: bool) -> Result<(), AssessError> {
    if !is_buffered || !is_simulated(path) {
        return Ok(());
    }
    let reason = "--buffered does not apply: a simulated volume has no page cache";
    Err(AssessError::usage(format!("{}: {reason}", path.display()), "omit --buffered"))
}

/// Refuses an engine that does not exist, or not for `target`.
pub(crate) fn check_engine(name: Option<&str>, target: &BenchTarget) -> Result<(), AssessError> {
    let Some(name) = name else { return Ok(()) };
    match registry::find(name) {
        None => {
            Err(AssessError::unknown("engine", name, registry::ENGINES.iter().map(|entry| entry.name), ""))
        }
        Some(entry) if entry.name == sim::ENTRY.name && !target.is_simulated() => Err(AssessError::usage(
            "engine sim: it only serves simulated volumes, and the target is not one",
            "omit --engine, or use a simulated volume: sim:ID?size=50GiB",
        )),
        Some(_) => Ok(()),
    }
}

/// Refuses a command that has both kinds of target.
pub(crate) fn refuse_mixture(paths: &[PathBuf]) -> Result<(), AssessError> {
    let Some(simulated) = paths.iter().find(|path| is_simulated(path)) else { return Ok(()) };
    let Some(real) = paths.iter().find(|path| !is_simulated(path)) else { return Ok(()) };
    let reason =
        format!("is simulated, and {} is not: simulated and real targets cannot be combined", real.display());
    Err(AssessError::usage(
        format!("{}: {reason}", simulated.display()),
        "measure them with separate commands",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_comes_to_a_volume_or_a_reason() {
        let check = |text: &str, expected: Result<&str, &str>| match (
            SimulatedVolume::named(Path::new(text), &VolumeTypes::default()),
            expected,
        ) {
            (Ok(volume), Ok(title)) => assert_eq!(volume.title, title),
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{error}");
                assert!(
                    error.to_string().starts_with(text) && error.kind == crate::ErrorKind::Usage,
                    "{error}"
                );
                assert!(error.hint.is_some());
            }
            (found, _) => panic!("{text}: {found:?}, expected {expected:?}"),
        };
        check("sim:aws-gp2-2016?size=50GiB", Ok("AWS EBS General Purpose SSD, 50.0 GiB"));
        check("sim:custom?iops=700&size=20MiB", Ok("own limits, 20.0 MiB"));
        check("sim:aws-gp9", Err("unknown volume type 'aws-gp9'"));
        check("sim:custom?iosp=5", Err("unknown parameter iosp"));
        check("sim:", Err("no volume type given"));
    }

    #[test]
    fn time_goes_on_whatever_is_left_out() {
        let check = |text: &str, expected: (u64, u64), notes: usize| {
            let volume = SimulatedVolume::named(Path::new(text), &VolumeTypes::default()).unwrap();
            let model = &volume.model;
            let [read, write] = [expected.0, expected.1].map(VolumeLatency::fixed);
            assert_eq!((&model.read_latency, &model.write_latency), (&read, &write), "{text}");
            assert_eq!(volume.notes.len(), notes, "{:?}", volume.notes);
        };
        check("sim:custom", (MIN_NS, MIN_NS), 2);
        check("sim:custom?iops=100", (0, 0), 0);
        check("sim:custom?bandwidth=1MiB", (0, 0), 0);
        check("sim:custom?write_iops=100", (MIN_NS, 0), 1);
        check("sim:custom?latency=1ms", (1_000_000, 1_000_000), 0);
        check("sim:custom?latency_spread=1", (MIN_NS, MIN_NS), 2);
        check("sim:custom?iops=100&bucket_ios=5000", (MIN_NS, MIN_NS), 2);
    }

    #[test]
    fn trims_take_time_where_no_limit_counts_them() {
        for (text, expected) in [
            ("sim:custom?bandwidth=1GiB", MIN_NS),
            ("sim:custom?read_iops=100&bandwidth=1GiB", MIN_NS),
            ("sim:custom?iops=100", 0),
            ("sim:custom?write_iops=100", 0),
            ("sim:custom?bandwidth=1GiB&latency=1us", 0),
        ] {
            let volume = SimulatedVolume::named(Path::new(text), &VolumeTypes::default()).unwrap();
            assert_eq!(volume.model.least_trim_ns, expected, "{text}");
        }
    }

    #[test]
    fn a_session_has_each_volume_once() {
        let target =
            |text: &str| BenchTarget::inspect(Path::new(text), &[], &VolumeTypes::default()).unwrap();
        let both =
            [target("sim:custom?iops=100"), target("sim:custom?iops=100"), target("sim:custom?iops=200")];
        assert!(session_for(&both).is_simulated());
        let notes = notes_on(&both);
        assert!(
            notes[0].starts_with("simulated volumes (own limits, 100 GiB), in virtual time"),
            "{notes:?}"
        );
        assert_eq!(notes[1], "sim:custom?iops=100 is given more than once");
        assert_eq!((notes.len(), notes_on([])), (2, Vec::new()));
        let mixed = ["sim:custom".into(), PathBuf::from("/tmp")];
        assert!(refuse_mixture(&mixed).is_err_and(|error| error.to_string().contains("/tmp is not")));
        assert!(check_cache(&mixed[0], true).is_err() && check_cache(&mixed[1], true).is_ok());
        assert!(refuse_mixture(&mixed[..1]).is_ok() && refuse_mixture(&mixed[1..]).is_ok());
    }
}
