//! Refusing to write where that would destroy something, with the reason and the flag that overrules it.

use std::path::{Path, PathBuf};

use fathom_model::JobPlan;
use fathom_sys::device::{Overrule, in_use};

use crate::RunError;
use crate::targets::{Target, TargetKind};

/// What the user has allowed to be written to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WritePermit {
    /// Devices and files named with `--destroy-data` or in `FATHOM_DESTROY_DATA`.
    pub destroy: Vec<PathBuf>,
    /// One of fathom's own commands: block devices are written only when named, mounted ones never.
    pub own_command: bool,
}

impl WritePermit {
    /// True where the user named this very target.
    pub fn names(&self, path: &Path) -> bool {
        let same = |other: &PathBuf| match (path.canonicalize(), other.canonicalize()) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            _ => path == other,
        };
        self.destroy.iter().any(same)
    }
}

/// Refuses a job that would write to `target` without leave.
pub(crate) fn check(permit: &WritePermit, job: &JobPlan, target: &Target) -> Result<(), RunError> {
    if !job.io.pattern.modifies() || matches!(target.kind, TargetKind::Missing | TargetKind::Virtual) {
        return Ok(());
    }
    let path = &target.path;
    if !path.exists() {
        // A held file without a name: nobody else's data.
        return Ok(());
    }
    let named = permit.names(path);
    let obstacles = in_use(path).map_err(|error| RunError::Refused {
        path: path.clone(),
        reasons: vec![format!("what it holds cannot be found out: {error}")],
        hint: "run as root, or choose another target".to_owned(),
    })?;
    let blocks = |overrule| match overrule {
        Overrule::MountedWrite => permit.own_command || !job.files.allow_mounted_write,
        Overrule::DestroyData => !named,
        Overrule::Impossible => true,
    };
    let against: Vec<_> = obstacles.iter().filter(|obstacle| blocks(obstacle.overrule())).collect();
    if !against.is_empty() {
        let hint = hint(permit, path, against.iter().map(|obstacle| obstacle.overrule()));
        return Err(RunError::Refused {
            path: path.clone(),
            reasons: against.iter().map(ToString::to_string).collect(),
            hint,
        });
    }
    if permit.own_command && target.kind == TargetKind::BlockDevice && !named {
        return Err(RunError::Refused {
            path: path.clone(),
            reasons: vec!["it is a block device, and its data would be lost".to_owned()],
            hint: format!("add --destroy-data={} if nothing on it is needed", path.display()),
        });
    }
    Ok(())
}

fn hint(permit: &WritePermit, path: &Path, overrules: impl Iterator<Item = Overrule>) -> String {
    let overrules: Vec<Overrule> = overrules.collect();
    let destroy = format!("--destroy-data={}", path.display());
    let mounted = overrules.contains(&Overrule::MountedWrite);
    match (overrules.contains(&Overrule::Impossible), mounted, overrules.contains(&Overrule::DestroyData)) {
        (true, ..) => "choose a target that can be written".to_owned(),
        (_, true, _) if permit.own_command => "unmount it first (swapoff where it is swap)".to_owned(),
        (_, true, true) => {
            format!("unmount it, or add --allow_mounted_write=1 and {destroy} if nothing on it is needed")
        }
        (_, true, false) => "unmount it, or set allow_mounted_write=1 if nothing on it is needed".to_owned(),
        _ => format!("add {destroy} if nothing on it is needed"),
    }
}
