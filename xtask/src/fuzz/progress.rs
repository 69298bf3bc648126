//! How long a target has run without a finding, so that a later call of the campaign continues where one ended.
//!
//! The time belongs to one state of the code, known by the program that was built from it: a change of anything that a target reaches
//! starts it anew.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::Places;
use crate::dist::sha256;

/// Times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FuzzTime {
    pub wall: f64,
    pub cpu: f64,
}

impl FuzzTime {
    pub fn plus(self, other: FuzzTime) -> FuzzTime {
        FuzzTime { wall: self.wall + other.wall, cpu: self.cpu + other.cpu }
    }
}

/// The stored time of a target.
#[derive(Debug)]
pub struct FuzzProgress {
    file: PathBuf,
    /// The SHA-256 of the program.
    program: String,
    /// The time of earlier calls on this program.
    pub earlier: FuzzTime,
}

impl FuzzProgress {
    /// What is stored for `target`; nothing for another program than this.
    pub fn of(places: &Places, target: &str, program: &Path) -> anyhow::Result<FuzzProgress> {
        let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
        let directory = places.build().join("progress");
        fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let (file, program) = (directory.join(format!("{target}.json")), sha256(&bytes));
        let earlier = fs::read_to_string(&file).ok().and_then(|text| stored(&text, &program));
        Ok(FuzzProgress { file, program, earlier: earlier.unwrap_or_default() })
    }

    /// Stores the time so far: that of earlier calls and `now` of this one.
    pub fn store(&self, now: FuzzTime) -> anyhow::Result<()> {
        let time = self.earlier.plus(now);
        let value = json!({"program": self.program, "wall_seconds": time.wall, "cpu_seconds": time.cpu});
        // A call that is killed leaves one time or the other, whole.
        let new = self.file.with_extension("new");
        let written = fs::write(&new, format!("{value}\n")).and_then(|()| fs::rename(&new, &self.file));
        written.with_context(|| format!("cannot write {}", self.file.display()))
    }

    /// The same without the time of earlier calls.
    pub fn fresh(self) -> FuzzProgress {
        FuzzProgress { earlier: FuzzTime::default(), ..self }
    }

    /// Removes the stored time.
    pub fn forget(&self) -> anyhow::Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.with_context(|| format!("cannot remove {}", self.file.display())),
        }
    }
}

fn stored(text: &str, program: &str) -> Option<FuzzTime> {
    let value: Value = serde_json::from_str(text).ok()?;
    let seconds = |name: &str| value[name].as_f64().filter(|seconds| *seconds >= 0.0);
    let time = FuzzTime { wall: seconds("wall_seconds")?, cpu: seconds("cpu_seconds")? };
    (value["program"] == program).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_until_the_program_changes() {
        let directory = tempfile::tempdir().unwrap();
        let places = Places { root: directory.path().to_owned(), target: directory.path().join("target") };
        let program = directory.path().join("suite");
        fs::write(&program, "one").unwrap();
        let progress = || FuzzProgress::of(&places, "suite", &program).unwrap();
        assert_eq!(progress().earlier, FuzzTime::default());
        progress().store(FuzzTime { wall: 60.0, cpu: 30.0 }).unwrap();
        progress().store(FuzzTime { wall: 5.0, cpu: 4.0 }).unwrap();
        assert_eq!(progress().earlier, FuzzTime { wall: 65.0, cpu: 34.0 });
        assert_eq!(
            FuzzProgress::of(&places, "record", &program).unwrap().earlier,
            FuzzTime::default(),
            "each target has its own"
        );
        fs::write(&program, "two").unwrap();
        assert_eq!(progress().earlier, FuzzTime::default());
        fs::write(&program, "one").unwrap();
        progress().fresh().store(FuzzTime { wall: 7.0, cpu: 7.0 }).unwrap();
        assert_eq!(progress().earlier, FuzzTime { wall: 7.0, cpu: 7.0 });
        progress().forget().unwrap();
        progress().forget().unwrap();
        assert_eq!(progress().earlier, FuzzTime::default());
    }

    #[test]
    fn what_is_no_time_counts_as_none() {
        let check = |text: &str, expected: Option<f64>| {
            assert_eq!(stored(text, "p").map(|time| time.wall), expected, "{text}");
        };
        check(r#"{"program":"p","wall_seconds":1.5,"cpu_seconds":1}"#, Some(1.5));
        check(r#"{"program":"q","wall_seconds":1.5,"cpu_seconds":1}"#, None);
        check(r#"{"program":"p","wall_seconds":-1,"cpu_seconds":1}"#, None);
        check(r#"{"program":"p","wall_sec"#, None);
    }
}
