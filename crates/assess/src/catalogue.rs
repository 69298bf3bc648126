//! The volume types that a command may name: those shipped, and those of the user's own file beside them.
//!
//! The file is the one that is named (`--catalog`), else `FATHOM_CATALOG`, else `fathom/volumes.toml` where programs keep
//! what is configured of them. Which it is is decided once in a process, before anything of it is used.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use fathom_catalog::Catalog;
use fathom_sys::files::CATALOGUE;

use crate::AssessError;

/// Names a file of volume types; empty = none, not even the usual one.
pub const VARIABLE: &str = "FATHOM_CATALOG";

static IN_USE: OnceLock<Catalog> = OnceLock::new();

/// The types that are shipped, and those of the user's own file, whose entries hold where both have an id.
///
/// # Errors
/// The file cannot be read, or one of its entries cannot be.
pub fn catalogue() -> Result<&'static Catalog, AssessError> {
    use_catalogue(None)
}

/// As [`catalogue`], with `named` for the user's own file. What the first call of a process finds holds for all of them.
///
/// # Errors
/// As there.
pub fn use_catalogue(named: Option<&Path>) -> Result<&'static Catalog, AssessError> {
    if let Some(catalog) = IN_USE.get() {
        return Ok(catalog);
    }
    let catalog = load(named, |name| std::env::var_os(name))?;
    Ok(IN_USE.get_or_init(|| catalog))
}

/// Reads a catalogue file, and nothing that is shipped.
///
/// # Errors
/// As for [`catalogue`].
pub fn read_catalogue(path: &Path) -> Result<Catalog, AssessError> {
    Ok(Catalog::parse(&path.display().to_string(), &CATALOGUE.read_text(path)?)?)
}

fn load(named: Option<&Path>, env: impl Fn(&str) -> Option<OsString>) -> Result<Catalog, AssessError> {
    let shipped = Catalog::shipped().clone();
    let said = named.map(Path::to_owned).or_else(|| env(VARIABLE).map(PathBuf::from));
    let own = match said {
        Some(path) if path.as_os_str().is_empty() => return Ok(shipped),
        Some(path) => read_catalogue(&path)?,
        None => match usual_path(env).map(|path| read_catalogue(&path)) {
            None => return Ok(shipped),
            Some(Err(error)) if is_absence(&error) => return Ok(shipped),
            Some(own) => own?,
        },
    };
    Ok(shipped.with(own))
}

/// `$XDG_CONFIG_HOME/fathom/volumes.toml`, or the same under `~/.config`; `None` where `env` knows neither.
fn usual_path(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // Relative ones are to be ignored (XDG base directory specification).
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(config.join("fathom/volumes.toml"))
}

/// True where there is just nothing, which is what most have in the usual place.
fn is_absence(error: &AssessError) -> bool {
    matches!(error, AssessError::Input(error) if error.is_absence())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: &str = include_str!("../../catalog/tests/mine.toml");

    #[test]
    fn the_file_that_is_said_holds_and_the_usual_one_may_be_missing() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, id: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, MINE.replace("volume.mine", &format!("volume.{id}"))).unwrap();
            path
        };
        let (named, variable) = (write("named.toml", "named"), write("variable.toml", "variable"));
        write("config/fathom/volumes.toml", "usual");
        let own = |named: Option<&Path>, env: &[(&str, &Path)]| -> Vec<String> {
            let value =
                |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, path)| path.into());
            let all = load(named, value).unwrap();
            let own = all.entries().filter(|entry| entry.provider() == "Me");
            own.map(|entry| entry.id().to_owned()).collect()
        };
        let config = dir.path().join("config");
        let usual = ("XDG_CONFIG_HOME", config.as_path());
        let (variable, none) = ((VARIABLE, variable.as_path()), (VARIABLE, Path::new("")));
        assert_eq!(own(Some(&named), &[variable, usual]), ["named"]);
        assert_eq!(own(None, &[variable, usual]), ["variable"]);
        assert_eq!(own(None, &[usual]), ["usual"]);
        assert_eq!(own(None, &[none, usual]), [] as [&str; 0]);
        assert_eq!(own(None, &[("HOME", dir.path())]), [] as [&str; 0]);
        assert_eq!(own(None, &[]), [] as [&str; 0]);
        assert_eq!(load(None, |_| None).unwrap().entries().count(), Catalog::shipped().entries().count());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.toml");
        let said = |path: &Path| load(Some(path), |_| None).unwrap_err();
        assert_eq!(
            said(&path).to_string(),
            format!("cannot read the catalogue {}: No such file or directory", path.display())
        );
        std::fs::write(&path, MINE.replace("5000", "-1")).unwrap();
        let error = said(&path);
        assert_eq!(error.to_string(), format!("{}:12: mine: iops_max -1 is below 0", path.display()));
        assert!(error.is_usage() && error.hint().is_some());
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(said(&path).to_string().contains("UTF-8"));
    }
}
