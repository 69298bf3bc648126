//! Refuses writes that would destroy data, with the reason and the flag that overrides the refusal.

use std::path::{Path, PathBuf};

use fathom_model::units::grouped;
use fathom_sys::device::{
    Obstacle, ObstacleClass, Survey, SysRoot, TargetHandle, TargetIdentity, unknown_data_on,
};
use fathom_sys::files::own_use;

use crate::RunError;
use crate::error::HOST_MANAGED_HINT;

/// The targets that the user permits to be written to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WritePermit {
    /// Devices and files named with `--destroy-data` or in `FATHOM_DESTROY_DATA`, and the identity that each name had
    /// when the permit was made: a link that leads elsewhere later permits nothing.
    destroy: Vec<(PathBuf, Option<TargetIdentity>)>,
    /// One of fathom's own commands: block devices are written only if named, and targets in use never.
    own_command: bool,
    /// No file is made or extended either (`--readonly`).
    read_only: bool,
}

impl WritePermit {
    /// The permit of fathom's own commands.
    pub fn own(destroy: &[PathBuf]) -> WritePermit {
        WritePermit {
            destroy: destroy.iter().map(|path| identified(path)).collect(),
            own_command: true,
            read_only: false,
        }
    }

    /// The permit of fio's jobs.
    pub fn fio(destroy: &[PathBuf]) -> WritePermit {
        WritePermit { own_command: false, ..WritePermit::own(destroy) }
    }

    /// The same permit, which does not permit making or extending a file if `read_only`.
    pub fn read_only(self, read_only: bool) -> WritePermit {
        WritePermit { read_only, ..self }
    }

    /// Refuses to make the file at `path`, or to extend it to `bytes`, where that is not permitted.
    pub(crate) fn admit_layout(&self, path: &Path, bytes: u64) -> Result<(), RunError> {
        if !self.read_only {
            return Ok(());
        }
        Err(RunError::unsuitable(
            path,
            format!("would have to be extended to {bytes} bytes, and --readonly refuses that"),
            "lay the file out before, or omit --readonly",
        ))
    }

    /// True if the user named the target at `path`.
    pub fn names(&self, path: &Path) -> bool {
        match TargetHandle::open(path) {
            Ok(handle) => self.allows(&handle),
            Err(_) => self.destroy.iter().any(|(named, _)| named == path),
        }
    }

    fn allows(&self, handle: &TargetHandle) -> bool {
        self.destroy.iter().any(|(_, identity)| *identity == Some(handle.identity()))
    }
}

fn identified(path: &Path) -> (PathBuf, Option<TargetIdentity>) {
    (path.to_owned(), TargetHandle::open(path).ok().map(|handle| handle.identity()))
}

/// A target that is to be written to.
pub struct Written<'a> {
    /// Its handle; a block device is claimed if possible.
    pub handle: &'a TargetHandle,
    /// `allow_mounted_write` of all jobs that write to it.
    pub allow_mounted_write: bool,
}

/// Claims the block devices among `targets`, so that they cannot be mounted or used by other devices, and refuses all
/// if one of them must not be written to. Returns notes for the reader of the results.
///
/// # Errors
/// `Refused`, for the first target with an obstacle.
pub fn admit(permit: &WritePermit, targets: &[Written<'_>]) -> Result<Vec<String>, RunError> {
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    // Data that this run wrote itself needs no note.
    let new: Vec<bool> = targets.iter().map(|target| !target.handle.is_claimed()).collect();
    for target in targets {
        // A refused claim is an obstacle like others, which the survey reports.
        let _ = target.handle.claim();
    }
    let handles: Vec<&TargetHandle> = targets.iter().map(|target| target.handle).collect();
    let root = SysRoot::real();
    let unknown = |path: &Path, error: &dyn std::fmt::Display| RunError::Refused {
        path: path.to_owned(),
        reasons: vec![format!("cannot inspect its content: {error}")],
        hint: "run as root, or choose another target".to_owned(),
    };
    let survey = Survey::of(&root, &handles).map_err(|error| unknown(handles[0].path(), &error))?;
    let mut notes = Vec::new();
    for (target, is_new) in targets.iter().zip(new) {
        let path = target.handle.path();
        let mut obstacles: Vec<Obstacle> =
            own_use(target.handle).map(|what| Obstacle::OwnUse { what }).into_iter().collect();
        obstacles.extend(survey.obstacles(target.handle).map_err(|error| unknown(path, &error))?);
        notes.extend(permit.judge(target, &obstacles)?);
        // Own commands state it in their plan, before they write.
        if is_new && !permit.own_command {
            notes.extend(unknown_data(target.handle));
        }
    }
    Ok(notes)
}

/// The note on a device that contains data of an unknown format.
pub fn unknown_data(handle: &TargetHandle) -> Option<String> {
    let offset = unknown_data_on(handle)?;
    let path = handle.path().display();
    Some(format!(
        "{path} contains data of an unknown format, from byte {} on, which is overwritten",
        grouped(offset)
    ))
}

impl WritePermit {
    /// Refuses `target` because of `obstacles`, or returns notes on it.
    fn judge(&self, target: &Written<'_>, obstacles: &[Obstacle]) -> Result<Vec<String>, RunError> {
        let (path, is_named) = (target.handle.path(), self.allows(target.handle));
        let stands = |class| match class {
            ObstacleClass::InUse => self.own_command || !target.allow_mounted_write,
            ObstacleClass::Shared | ObstacleClass::Ordered => self.own_command,
            ObstacleClass::Data => !is_named,
            ObstacleClass::Impossible => true,
        };
        let (against, overruled): (Vec<&Obstacle>, Vec<&Obstacle>) =
            obstacles.iter().partition(|obstacle| stands(obstacle.class()));
        let is_device = matches!(target.handle.identity(), TargetIdentity::Device(..));
        if against.is_empty() && self.own_command && is_device && !is_named {
            return Err(RunError::Refused {
                path: path.to_owned(),
                reasons: vec!["it is a block device, and its data would be lost".to_owned()],
                hint: format!("add --destroy-data={} if nothing on it is needed", path.display()),
            });
        }
        if !against.is_empty() {
            let hint = self.hint(path, against.iter().map(|obstacle| obstacle.class()).collect());
            let reasons = against.iter().map(ToString::to_string).collect();
            return Err(RunError::Refused { path: path.to_owned(), reasons, hint });
        }
        let is_noted = |class| matches!(class, ObstacleClass::Shared | ObstacleClass::Ordered);
        let noted = overruled.iter().filter(|obstacle| is_noted(obstacle.class()));
        Ok(noted.map(|obstacle| format!("{}: {obstacle}", path.display())).collect())
    }

    fn hint(&self, path: &Path, classes: Vec<ObstacleClass>) -> String {
        let has = |class| classes.contains(&class);
        let destroy = format!("--destroy-data={}", path.display());
        let release = "unmount it first (or swapoff, losetup -d, vgchange -an, mdadm --stop)";
        if has(ObstacleClass::Impossible) {
            return "choose a target that can be written".to_owned();
        }
        if has(ObstacleClass::Ordered) {
            return format!("measure reads only, or use `fathom fio`: {HOST_MANAGED_HINT}");
        }
        match (has(ObstacleClass::InUse) || has(ObstacleClass::Shared), has(ObstacleClass::Data)) {
            (true, _) if self.own_command => format!("{release}; no option overrules this"),
            (true, true) => {
                format!("{release}, or add --allow_mounted_write=1 and {destroy} if nothing on it is needed")
            }
            (true, false) => {
                format!("{release}, or set --allow_mounted_write=1 if nothing on it is needed")
            }
            _ => format!("add {destroy} if nothing on it is needed"),
        }
    }
}
