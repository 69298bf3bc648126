//! The settings of a run, whatever it measures. Commands add their own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fathom_record::ScheduledSlot;

use crate::AssessError;
use crate::catalogue::VolumeTypes;
use crate::earlier::EarlierIdentification;

/// What was asked for by every command that runs tests.
#[derive(Clone, Debug, Default)]
pub struct RunSettings {
    /// A directory, file, block device or simulated volume.
    pub target: PathBuf,
    /// Size of the working file, or of the range used, bytes.
    pub size: Option<u64>,
    /// The engine instead of the usual one.
    pub engine: Option<String>,
    /// Through the page cache.
    pub buffered: bool,
    /// Targets whose content may be destroyed.
    pub destroy: Vec<PathBuf>,
    /// Seed of all random choices; drawn at random by default.
    pub seed: Option<u64>,
    /// What the user says of the run.
    pub labels: BTreeMap<String, String>,
    /// The volume types that names mean.
    pub types: VolumeTypes,
    /// Identifications of devices in the history, the latest first.
    pub earlier: Vec<EarlierIdentification>,
    /// The slot of a schedule that the run is for.
    pub scheduled: Option<ScheduledSlot>,
    /// The command line, for the record.
    pub command: Vec<String>,
}

impl RunSettings {
    /// The target cannot be used, with a remedy.
    pub(crate) fn refuse<T>(
        &self,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> Result<T, AssessError> {
        Err(AssessError::target(&self.target, reason, hint))
    }
}
