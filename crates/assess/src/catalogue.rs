//! The volume types that a command may name: those shipped, and those of the user's own file beside them.
//!
//! The file is the one that is named (`--catalog`), else `FATHOM_CATALOG`, else `fathom/volumes.toml` where programs keep
//! what is configured of them. Prices that the user imported take precedence over those of both. Whoever runs a command says which, and hands it to whatever looks a name up.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use fathom_catalog::Catalog;
use fathom_sys::files::CATALOGUE;

use crate::{AssessError, prices};

/// Names a file of volume types; empty = none, not even the usual one.
pub const VARIABLE: &str = "FATHOM_CATALOG";

/// The volume types that a command may name, read when the first of them is; clones read once together.
#[derive(Clone, Debug, Default)]
pub struct VolumeTypes {
    named: Option<PathBuf>,
    read: Arc<OnceLock<Catalog>>,
}

impl VolumeTypes {
    /// The types that are shipped, and those of the user's own file, `named` where it is.
    pub fn new(named: Option<PathBuf>) -> VolumeTypes {
        VolumeTypes { named, read: Arc::default() }
    }

    /// All of them; entries of the user's own file hold where both have an id.
    ///
    /// # Errors
    /// The file cannot be read, or one of its entries cannot be.
    pub fn catalogue(&self) -> Result<&Catalog, AssessError> {
        if let Some(catalog) = self.read.get() {
            return Ok(catalog);
        }
        let catalog = load(self.named.as_deref(), |name| std::env::var_os(name))?;
        Ok(self.read.get_or_init(|| catalog))
    }

    /// Reads them where a file is named; otherwise nothing is read until a target names a type.
    ///
    /// # Errors
    /// As for [`VolumeTypes::catalogue`].
    pub fn check_named(&self) -> Result<(), AssessError> {
        self.named.as_ref().map_or(Ok(()), |_| self.catalogue().map(drop))
    }
}

/// Equal where they name the same file.
impl PartialEq for VolumeTypes {
    fn eq(&self, other: &VolumeTypes) -> bool {
        self.named == other.named
    }
}

/// Reads a catalogue file, and nothing that is shipped.
///
/// # Errors
/// As for [`VolumeTypes::catalogue`].
pub fn read_catalogue(path: &Path) -> Result<Catalog, AssessError> {
    Ok(Catalog::parse(&path.display().to_string(), &CATALOGUE.read_text(path)?)?)
}

fn load(named: Option<&Path>, env: impl Fn(&str) -> Option<OsString>) -> Result<Catalog, AssessError> {
    let prices =
        prices::usual_path(&env).map(|path| prices::prices_in(&path)).transpose()?.unwrap_or_default();
    let today = prices::day_of(&env);
    Ok(types(named, env)?.into_owned().with_prices(&prices).on_day(&today))
}

/// The types that are shipped, and those of the user's own file.
fn types(
    named: Option<&Path>,
    env: impl Fn(&str) -> Option<OsString>,
) -> Result<Cow<'static, Catalog>, AssessError> {
    let shipped = Cow::Borrowed(Catalog::shipped());
    let given = named.map(Path::to_owned).or_else(|| env(VARIABLE).map(PathBuf::from));
    let own = match given {
        Some(path) if path.as_os_str().is_empty() => return Ok(shipped),
        Some(path) => read_catalogue(&path)?,
        None => {
            let Some(path) = usual_path(env) else { return Ok(shipped) };
            match CATALOGUE.read_text(&path) {
                // There is just nothing, which is what most have in the usual place.
                Err(error) if error.is_absence() => return Ok(shipped),
                text => Catalog::parse(&path.display().to_string(), &text?)?,
            }
        }
    };
    Ok(Cow::Owned(shipped.into_owned().with(own)))
}

/// `$XDG_CONFIG_HOME/fathom/volumes.toml`, or the same under `~/.config`; `None` where `env` knows neither.
fn usual_path(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // Relative ones are to be ignored (XDG base directory specification).
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(config.join("fathom/volumes.toml"))
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
        let given = |path: &Path| load(Some(path), |_| None).unwrap_err();
        assert_eq!(
            given(&path).to_string(),
            format!("cannot read the catalogue {}: No such file or directory", path.display())
        );
        std::fs::write(&path, MINE.replace("5000", "-1")).unwrap();
        let error = given(&path);
        assert_eq!(error.to_string(), format!("{}:12: mine: iops_max -1 is below 0", path.display()));
        assert!(error.kind == crate::ErrorKind::Usage && error.hint.is_some());
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(given(&path).to_string().contains("UTF-8"));
    }
}
