//! Targets that are modelled volumes, `sim:ID?…`: what one is, and the session on virtual time that runs on them.
//!
//! The rest of a command does not know the difference: the same plans, jobs, records and reports.

use std::path::{Path, PathBuf};

use fathom_catalog::Target;
use fathom_engine::sim::{BEGIN_NS, Volume};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration};
use fathom_runner::Session;
use fathom_volume::{Latency, Limit, Stage, VolumeModel};

use crate::AssessError;
use crate::catalogue::catalogue;
use crate::target::BenchTarget;

/// What a request takes where neither a limit nor a latency says anything: virtual time would never move.
const LEAST_NS: u64 = 10_000;

/// A modelled volume.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedVolume {
    /// Its name as typed, by which jobs name it.
    pub path: PathBuf,
    /// What it is, for people.
    pub title: String,
    /// What it is made of.
    pub model: VolumeModel,
    /// What decides everything that it draws at random.
    pub seed: u64,
    /// What a reader of the results should know, in parts of sentences.
    pub notes: Vec<String>,
}

/// True where `path` names a modelled volume.
pub fn is_simulated(path: &Path) -> bool {
    path.to_str().is_some_and(Target::is_one)
}

impl SimulatedVolume {
    /// The volume that `path` names, `sim:ID?KEY=VALUE&…`.
    ///
    /// # Errors
    /// There is no such type, it has no model, or what is chosen of it makes no sense.
    pub fn named(path: &Path) -> Result<SimulatedVolume, AssessError> {
        let text = path.to_string_lossy();
        let catalogue = catalogue()?;
        let target = Target::parse(catalogue, &text).map_err(|error| {
            let hint = error.hint();
            AssessError::Simulated { target: error.target, reason: error.reason, hint }
        })?;
        let title = match catalogue.get(&target.id) {
            Some(entry) => {
                format!("{} {}, {}", entry.provider(), entry.type_name(), bytes(target.model.size_bytes))
            }
            None => format!("own limits, {}", bytes(target.model.size_bytes)),
        };
        let told = target.assumptions;
        let mut volume =
            SimulatedVolume { seed: target.seed, title, ..SimulatedVolume::of(&text, target.model) };
        volume.notes.extend(told.into_iter().map(|assumption| format!("{text}: {assumption}")));
        volume.keep_time_moving();
        // Nobody says what a flush takes: it asks the volume as a write does, and moves nothing.
        volume.model.sync_latency = volume.model.write_latency.clone();
        Ok(volume)
    }

    /// A volume of one's own making.
    pub fn of(name: &str, model: VolumeModel) -> SimulatedVolume {
        let title = bytes(model.size_bytes);
        SimulatedVolume { path: PathBuf::from(name), title, model, seed: 0, notes: Vec::new() }
    }

    /// Bytes it has.
    pub fn size(&self) -> u64 {
        self.model.size_bytes
    }

    /// Gives a latency to a direction that has neither one nor a limit.
    fn keep_time_moving(&mut self) {
        let holds =
            |stages: &[Stage]| stages.iter().any(|stage| is_bound(stage.ios) || is_bound(stage.bytes));
        let VolumeModel { shared, reads, writes, read_latency, write_latency, .. } = &mut self.model;
        let directions = [("reads", reads, read_latency), ("writes", writes, write_latency)];
        for (name, own, latency) in directions {
            if holds(shared) || holds(own) || *latency != Latency::fixed(0) {
                continue;
            }
            *latency = Latency::fixed(LEAST_NS);
            self.notes.push(format!(
                "{}: {name} have neither a limit nor a latency: each takes {}, so that time goes on; latency= sets it",
                self.path.display(),
                duration(Nanos(LEAST_NS))
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
    let mut volumes: Vec<(PathBuf, Volume)> = Vec::new();
    for target in targets {
        let BenchTarget::Simulated(volume) = target else { continue };
        if volumes.iter().any(|(path, _)| *path == volume.path) {
            continue;
        }
        let begun = Volume::beginning_at(&volume.model, volume.seed, BEGIN_NS);
        volumes.push((volume.path.clone(), begun.expect("the model was found sound when it was read")));
    }
    if volumes.is_empty() { Session::real() } else { Session::on_volumes(volumes) }
}

/// What every report on such volumes says; `None` where none is simulated.
pub(crate) fn note_on<'a>(targets: impl IntoIterator<Item = &'a BenchTarget>) -> Option<String> {
    let mut titles: Vec<&str> = Vec::new();
    for target in targets {
        if let BenchTarget::Simulated(volume) = target
            && !titles.contains(&volume.title.as_str())
        {
            titles.push(&volume.title);
        }
    }
    let what = if titles.len() == 1 { "a modelled volume" } else { "modelled volumes" };
    let time = "on virtual time: the seconds are simulated, and nothing real is measured";
    (!titles.is_empty()).then(|| format!("{what} ({}), {time}", titles.join("; ")))
}

/// Refuses a command that has both kinds of target.
pub(crate) fn refuse_mixture(paths: &[PathBuf]) -> Result<(), AssessError> {
    let Some(simulated) = paths.iter().find(|path| is_simulated(path)) else { return Ok(()) };
    let Some(real) = paths.iter().find(|path| !is_simulated(path)) else { return Ok(()) };
    let reason = format!(
        "is simulated, and {} is not: time is virtual for one and real for the other",
        real.display()
    );
    Err(AssessError::Simulated {
        target: simulated.display().to_string(),
        reason,
        hint: Some("measure them by commands of their own".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_comes_to_a_volume_or_a_reason() {
        let check = |text: &str, expected: Result<&str, &str>| match (
            SimulatedVolume::named(Path::new(text)),
            expected,
        ) {
            (Ok(volume), Ok(title)) => assert_eq!(volume.title, title),
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{error}");
                assert!(error.to_string().starts_with(text) && error.is_usage(), "{error}");
                assert!(error.hint().is_some());
            }
            (found, _) => panic!("{text}: {found:?}, expected {expected:?}"),
        };
        check("sim:aws-gp2-2016?size=50GiB", Ok("AWS EBS General Purpose SSD, 50.0 GiB"));
        check("sim:custom?iops=700&size=20MiB", Ok("own limits, 20.0 MiB"));
        check("sim:aws-gp9", Err("there is no type aws-gp9"));
        check("sim:custom?iosp=5", Err("iosp is not known here"));
        check("sim:", Err("names no volume"));
    }

    #[test]
    fn time_goes_on_whatever_is_left_out() {
        let check = |text: &str, expected: (u64, u64), notes: usize| {
            let volume = SimulatedVolume::named(Path::new(text)).unwrap();
            let model = &volume.model;
            let [read, write] = [expected.0, expected.1].map(Latency::fixed);
            assert_eq!((&model.read_latency, &model.write_latency), (&read, &write), "{text}");
            assert_eq!(volume.notes.len(), notes, "{:?}", volume.notes);
        };
        check("sim:custom", (LEAST_NS, LEAST_NS), 2);
        check("sim:custom?iops=100", (0, 0), 0);
        check("sim:custom?bandwidth=1MiB", (0, 0), 0);
        check("sim:custom?write_iops=100", (LEAST_NS, 0), 1);
        check("sim:custom?latency=1ms", (1_000_000, 1_000_000), 0);
        check("sim:custom?iops=100&bucket_ios=5000", (LEAST_NS, LEAST_NS), 2);
    }

    #[test]
    fn a_session_has_each_volume_once() {
        let target = |text: &str| BenchTarget::inspect(Path::new(text), &[]).unwrap();
        let both =
            [target("sim:custom?iops=100"), target("sim:custom?iops=100"), target("sim:custom?iops=200")];
        assert!(session_for(&both).is_simulated());
        assert!(note_on(&both).is_some_and(|note| note.starts_with("a modelled volume (own")));
        assert!(note_on([]).is_none());
        let mixed = ["sim:custom".into(), PathBuf::from("/tmp")];
        assert!(refuse_mixture(&mixed).is_err_and(|error| error.to_string().contains("/tmp is not")));
        assert!(refuse_mixture(&mixed[..1]).is_ok() && refuse_mixture(&mixed[1..]).is_ok());
    }
}
