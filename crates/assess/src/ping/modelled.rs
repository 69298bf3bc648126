//! A modelled volume under a ping: it answers at once with the instant at which it would have answered.

use fathom_analysis::ping::PingTarget;
use fathom_engine::sim::{self, Volume};
use fathom_model::Op;
use fathom_volume::{RequestOutcome, VolumeRequest};

use super::clock::PingClock;
use super::error::PingError;
use super::settings::PingSettings;
use super::target::OpenedTarget;
use crate::simulated::{SimulatedVolume, check_engine, notes_on};
use crate::target::BenchTarget;

/// The volume that is pinged.
pub(super) struct ModelledProbe {
    volume: Volume,
    /// What is to be told of it.
    pub notes: Vec<String>,
}

/// What is pinged, and who answers.
pub(super) fn open(settings: &PingSettings) -> Result<(OpenedTarget, ModelledProbe), PingError> {
    let volume = SimulatedVolume::named(&settings.target, &settings.types).map_err(PingError::Simulated)?;
    let target = BenchTarget::Simulated(Box::new(volume.clone()));
    check_engine(settings.engine.as_deref(), &target).map_err(PingError::Simulated)?;
    if let Some(other) = settings.destroy_named.iter().find(|other| **other != settings.target) {
        return Err(PingError::OtherNamed { path: settings.target.clone(), other: other.clone() });
    }
    let notes = notes_on([&target]);
    let facts = PingTarget {
        path: volume.path.to_string_lossy().into_owned(),
        fs_type: "block".to_owned(),
        device: volume.path.to_string_lossy().into_owned(),
        device_size_bytes: volume.size(),
        is_block_device: true,
        is_char_device: false,
    };
    let range = settings.range_within(volume.size())?;
    let target = OpenedTarget { file: None, facts, range, in_memory: false, disk: None, _handle: None };
    let volume = Volume::new(&volume.model, volume.seed).expect("the model was found sound when it was read");
    Ok((target, ModelledProbe { volume, notes }))
}

impl ModelledProbe {
    /// What every report calls who answers.
    pub const NAME: &str = sim::ENTRY.name;

    /// Bytes moved or a negative errno, `clock` standing at the answer then; `None` where there is never one.
    pub fn ask(&mut self, op: Op, offset: u64, bytes: u32, clock: &PingClock) -> Option<i64> {
        let answer = self.volume.submit(clock.now(), &VolumeRequest { op, offset, bytes });
        let result = match answer.outcome {
            RequestOutcome::Done => i64::from(bytes),
            RequestOutcome::Failed(errno) => i64::from(-errno),
            RequestOutcome::Never => return None,
        };
        clock.sleep_until(answer.at_ns, || true);
        Some(result)
    }
}
