//! A simulated volume under a ping: what is pinged, and the session on virtual time in which it answers.

use fathom_analysis::ping::PingTarget;
use fathom_runner::Session;

use super::settings::PingSettings;
use super::target::OpenedTarget;
use crate::AssessError;
use crate::simulated::{SimulatedVolume, check_engine, notes_on, session_for};
use crate::target::BenchTarget;

/// A simulated volume, ready.
pub(super) struct OpenedVolume {
    pub target: OpenedTarget,
    pub session: Session,
    /// Notes on it.
    pub notes: Vec<String>,
}

/// Makes the volume that is pinged.
pub(super) fn open(settings: &PingSettings) -> Result<OpenedVolume, AssessError> {
    let volume = SimulatedVolume::named(&settings.target, &settings.types)?;
    let target = BenchTarget::Simulated(Box::new(volume.clone()));
    check_engine(settings.engine.as_deref(), &target)?;
    if let Some(other) = settings.destroy_named.iter().find(|other| **other != settings.target) {
        return Err(settings.other_named(other));
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
    let opened = OpenedTarget { file: None, facts, range, in_memory: false, disk: None, _handle: None };
    Ok(OpenedVolume { target: opened, session: session_for([&target]), notes })
}
