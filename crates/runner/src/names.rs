//! The targets of engines that make, inspect or remove files and directories by name.

use std::collections::BTreeMap;
use std::fs::FileType;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fathom_engine::{EngineEntry, NameUse};
use fathom_sys::device::unfit_for_a_new_file;
use fathom_sys::io::describe;

use crate::RunError;
use crate::session::Session;
use crate::targets::{Target, TargetKind};

/// The use of names by an engine on `session`; simulated volumes have no names.
pub(crate) fn use_of(session: &Session, entry: &EngineEntry) -> Option<NameUse> {
    entry.traits.names.filter(|_| !session.is_simulated())
}

/// Inspects `path` without changing it, for a use that does not need a file; `None` for one that does.
pub(crate) fn inspect(path: &Path, names: NameUse) -> Result<Option<Target>, RunError> {
    if names.needs_file() {
        return Ok(None);
    }
    let unsuitable = |reason: &str, hint: &str| RunError::unsuitable(path, reason, hint);
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => Some(found.file_type()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(source) => {
            return Err(RunError::target("inspect", path, source));
        }
    };
    let is_directory = |found: FileType| found.is_dir();
    let kind = match (found, names) {
        (None, _) => match unfit_for_a_new_file(path) {
            Some(reason) => return Err(unsuitable(reason, "choose a directory outside of /dev")),
            None => TargetKind::NewName,
        },
        (Some(found), NameUse::MakeFile) if found.is_file() => TargetKind::Name,
        (Some(_), NameUse::MakeFile) => {
            return Err(unsuitable("exists and is not a regular file", "choose another name"));
        }
        (Some(_), NameUse::MakeDirectory) => {
            return Err(unsuitable("exists already", "remove it, or choose another name"));
        }
        (Some(found), _) if is_directory(found) => TargetKind::Name,
        (Some(_), _) => return Err(unsuitable("is not a directory", "choose another name")),
    };
    Ok(Some(Target {
        path: path.to_owned(),
        kind,
        size: 0,
        volume: 0,
        handle: None,
        identity: None,
        planned: 0,
        uses: 0,
    }))
}

/// Makes the directories that are inspected or removed and do not exist.
pub(crate) fn make_directories<'a>(
    used: impl Iterator<Item = (&'a PathBuf, NameUse)>,
    targets: &BTreeMap<PathBuf, Target>,
) -> Result<(), RunError> {
    for (path, names) in used {
        if !names.needs_directory() || targets[path].kind != TargetKind::NewName {
            continue;
        }
        match std::fs::create_dir(path) {
            // A job before may have it as well.
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(RunError::target("create", path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Removes what a run has made under a name that was new before it. Directories must be empty.
pub(crate) fn remove(path: &Path) -> Option<String> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir(path),
        Ok(found) if found.is_file() => std::fs::remove_file(path),
        Ok(_) => return Some(format!("could not remove {}: another file has replaced it", path.display())),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Some(format!("could not remove {}: {}", path.display(), describe(&error)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_must_suit_their_use() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::write(path("file"), b"").unwrap();
        std::fs::create_dir(path("dir")).unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        for (name, names, expected) in [
            ("new", NameUse::MakeFile, Some(TargetKind::NewName)),
            ("file", NameUse::MakeFile, Some(TargetKind::Name)),
            ("dir", NameUse::MakeFile, None),
            ("link", NameUse::MakeFile, None),
            ("new", NameUse::MakeDirectory, Some(TargetKind::NewName)),
            ("dir", NameUse::MakeDirectory, None),
            ("new", NameUse::InspectDirectory, Some(TargetKind::NewName)),
            ("dir", NameUse::RemoveDirectory, Some(TargetKind::Name)),
            ("file", NameUse::RemoveDirectory, None),
            ("link", NameUse::RemoveDirectory, None),
        ] {
            let found = inspect(&path(name), names);
            let kind = found.ok().map(|target| target.expect("no file is needed").kind);
            assert_eq!(kind, expected, "{name} {names:?}");
        }
        assert!(inspect(&path("file"), NameUse::RemoveFile).unwrap().is_none());
        assert!(inspect(Path::new("/dev/no-such-name"), NameUse::MakeFile).is_err());
    }

    #[test]
    fn missing_directories_are_made_and_removed_if_empty() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("d");
        let target = inspect(&path, NameUse::InspectDirectory).unwrap().unwrap();
        let targets = BTreeMap::from([(path.clone(), target)]);
        make_directories([(&path, NameUse::MakeDirectory)].into_iter(), &targets).unwrap();
        assert!(!path.exists());
        make_directories([(&path, NameUse::InspectDirectory)].into_iter(), &targets).unwrap();
        assert!(path.is_dir());
        std::fs::write(path.join("f"), b"").unwrap();
        assert!(remove(&path).is_some() && path.join("f").exists());
        std::fs::remove_file(path.join("f")).unwrap();
        assert!(remove(&path).is_none() && !path.exists());
        assert!(remove(&path).is_none(), "what is gone needs no removal");
    }
}
