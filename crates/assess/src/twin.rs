//! Twins of volumes: their files, `sim:@NAME`, and the measurements of latencies that make them.
//!
//! A twin is a file `NAME.json` in the directory that FATHOM_TWINS names, else in `fathom/twins` where programs keep their data.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fathom_analysis::identified::Identified;
use fathom_analysis::identify::probe::IoDirection;
use fathom_analysis::identify::script::{IdentifySpec, identified_of};
use fathom_analysis::twin::measured::LoadMeasurement;
use fathom_analysis::twin::probe::{LatencyProbe, ProbedLoad, again, checked, next};
use fathom_analysis::twin::{SCHEMA, Twin};
use fathom_catalog::SimulatedTarget;
use fathom_model::Nanos;
use fathom_model::units::{bytes, grouped, latency};
use fathom_record::{IdentifyActivity, RunRecord};
use fathom_sys::files::{
    PathRefusal, TWIN, check_output, check_writable_directory, make_private_directories, replace_output,
};

use crate::control::Steps;
use crate::measure::measure;
use crate::planned::{pair, seed_pair, time_word};
use crate::simulated::SimulatedVolume;
use crate::site::{JobWords, RunSettings, Site};
use crate::target::BenchTarget;
use crate::{AssessError, ErrorKind};

/// Names the directory of the twins.
pub const TWINS_VARIABLE: &str = "FATHOM_TWINS";
/// What a name of a twin begins with on the command line.
const PREFIX: &str = "sim:@";
/// Mode of the files: they name devices of the host.
const MODE: u32 = 0o600;
/// Longest name.
const LONGEST_NAME: usize = 100;

/// The twins that are stored.
#[derive(Clone, Debug)]
pub struct TwinStore {
    directory: PathBuf,
}

impl TwinStore {
    /// The usual store.
    ///
    /// # Errors
    /// There is no such place.
    pub fn usual() -> Result<TwinStore, AssessError> {
        let directory = directory(|name| std::env::var_os(name)).ok_or_else(|| {
            let hint = format!("set {TWINS_VARIABLE}, XDG_DATA_HOME or HOME to an absolute path");
            refused("store", "there is no directory for it", hint)
        })?;
        Ok(TwinStore { directory })
    }

    /// The names of all twins, sorted.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn names(&self) -> Result<Vec<String>, AssessError> {
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                let problem =
                    format!("cannot read {}: {}", self.directory.display(), fathom_sys::io::describe(&error));
                return Err(refused("store", problem, format!("make it readable, or set {TWINS_VARIABLE}")));
            }
        };
        let name = |entry: std::fs::DirEntry| {
            let name = entry.file_name().to_str()?.strip_suffix(".json")?.to_owned();
            check_name(&name).is_ok().then_some(name)
        };
        let mut names: Vec<String> = entries.filter_map(|entry| name(entry.ok()?)).collect();
        names.sort();
        Ok(names)
    }

    /// The twin of this name.
    ///
    /// # Errors
    /// There is none, or its file makes no sense.
    pub fn load(&self, name: &str) -> Result<Twin, AssessError> {
        check_name(name)?;
        let path = self.path(name);
        let text = match TWIN.read_text(&path) {
            Ok(text) => text,
            Err(error) if error.is_absence() => {
                let names = self.names()?;
                let hint = match names.is_empty() {
                    true => format!("make one: fathom identify --save {name} TARGET"),
                    false => format!(
                        "there are {}; or make it: fathom identify --save {name} TARGET",
                        names.join(", ")
                    ),
                };
                return Err(refused(name, format!("does not exist in {}", self.directory.display()), hint));
            }
            Err(error) => return Err(error.into()),
        };
        let again = format!("identify the volume again: fathom identify --save {name} TARGET");
        read_twin(&text).map_err(|problem| refused(name, format!("{}: {problem}", path.display()), again))
    }

    /// Refuses what [`TwinStore::save`] would refuse after a long run; makes the directory.
    ///
    /// # Errors
    /// As there.
    pub fn check(&self, name: &str) -> Result<(), AssessError> {
        check_name(name)?;
        let made = make_private_directories(&self.directory);
        let checked = made.and_then(|()| check_writable_directory(&self.directory));
        let path = self.path(name);
        checked.and_then(|()| check_output(&path)).map_err(|error| unwritable(name, &path, &error))
    }

    /// Stores `twin` in place of one of the same name.
    ///
    /// # Errors
    /// The name makes no sense, or the file cannot be written.
    pub fn save(&self, name: &str, twin: &Twin) -> Result<PathBuf, AssessError> {
        check_name(name)?;
        let path = self.path(name);
        let text = serde_json::to_string(twin).map_err(std::io::Error::from);
        let written = text.and_then(|text| {
            make_private_directories(&self.directory)?;
            replace_output(&path, MODE, |out| out.write_all(format!("{text}\n").as_bytes()))
        });
        written.map_err(|error| unwritable(name, &path, &error))?;
        Ok(path)
    }

    /// Removes the twin of this name.
    ///
    /// # Errors
    /// There is none, or its file cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), AssessError> {
        check_name(name)?;
        std::fs::remove_file(self.path(name)).map_err(|error| {
            let problem = format!("cannot be removed: {}", fathom_sys::io::describe(&error));
            refused(name, problem, "list the twins: fathom twin list")
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }
}

fn unwritable(name: &str, path: &Path, error: &std::io::Error) -> AssessError {
    let hint =
        PathRefusal::of(error).map_or("make the directory writable, or set FATHOM_TWINS", PathRefusal::hint);
    refused(name, format!("cannot write {}: {}", path.display(), fathom_sys::io::describe(error)), hint)
}

fn refused(name: &str, problem: impl Into<String>, hint: impl Into<String>) -> AssessError {
    AssessError::usage(format!("twin {name}: {}", problem.into()), hint)
}

/// The twin in the text of a file.
///
/// # Errors
/// The text is no twin, or a field makes no sense.
pub fn read_twin(text: &str) -> Result<Twin, String> {
    let twin: Twin = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if twin.schema != SCHEMA {
        return Err(format!("schema is '{}', not {SCHEMA}", twin.schema));
    }
    twin.model()?;
    Ok(twin)
}

/// Refuses a name that could be mistaken for a path, an option or parameters.
///
/// # Errors
/// It has other characters than letters, digits, `.`, `_` and `-`, or begins with another than a letter or digit.
pub fn check_name(name: &str) -> Result<(), AssessError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    if begins && name.len() <= LONGEST_NAME && name.chars().all(is_plain) {
        return Ok(());
    }
    let hint = format!("use letters, digits, '.', '_' and '-', {LONGEST_NAME} at most: data-volume-1");
    Err(refused(&format!("'{name}'"), "is not a valid name", hint))
}

/// The directory of the twins; `None` where `env` knows none.
fn directory(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(named) = env(TWINS_VARIABLE).filter(|named| !named.is_empty()) {
        return Some(PathBuf::from(named));
    }
    // Relative ones are to be ignored (XDG base directory specification).
    let absolute = |name| env(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("fathom/twins"))
}

/// True where `text` names a twin, `sim:@NAME`.
pub(crate) fn is_twin(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// The volume that `sim:@NAME?KEY=VALUE&…` names.
pub(crate) fn volume(path: &Path) -> Result<SimulatedVolume, AssessError> {
    let text = path.to_string_lossy();
    let name = text.strip_prefix(PREFIX).unwrap_or_default();
    let name = name.split_once('?').map_or(name, |(name, _)| name);
    let twin = TwinStore::usual()?.load(name)?;
    let refuse = |message, hint| AssessError::new(ErrorKind::Usage, message, hint);
    let model = twin.model().map_err(|reason| refuse(format!("{text}: {reason}"), None))?;
    let target = SimulatedTarget::of_model(&text, model)
        .map_err(|error| refuse(format!("{}: {}", error.target, error.reason), error.hint()))?;
    let title = format!("twin of {}, {}", twin.source.target, bytes(target.model.size_bytes));
    let notes = target.assumptions.iter().chain(&twin.notes);
    let notes = notes.map(|note| format!("sim:@{name}: {note}")).collect();
    Ok(SimulatedVolume { seed: target.seed, title, notes, ..SimulatedVolume::of(&text, target.model) })
}

/// Measures the latencies of a twin of `found`, after its identification; again, where the twin differs from what was measured.
pub(crate) fn measure_latencies(
    site: &Site,
    found: &Identified,
    limits: &IdentifyActivity,
    steps: &mut Steps<'_>,
) {
    while let Some(probe) = next(found, limits, &steps.record.tests) {
        if !measured(site, &probe, steps) {
            return;
        }
    }
    for _ in 0..MORE_ROUNDS {
        let Ok(twin) = Twin::of(&steps.record) else { return };
        // Bursts with pauses let credits accrue since.
        let differing = if twin.has_bursts() { Vec::new() } else { differences(&twin, &steps.record) };
        for TwinDifference { probe, .. } in &differing {
            let Some(probe) = again(probe, &steps.record.tests) else { continue };
            if !measured(site, &probe, steps) {
                return;
            }
        }
    }
}

/// Rounds of measurements that a twin differs from.
const MORE_ROUNDS: usize = 2;

/// Measures one load; false where the run is to end.
fn measured(site: &Site, probe: &LatencyProbe, steps: &mut Steps<'_>) -> bool {
    if steps.is_over() {
        return false;
    }
    let (id, title) = (probe.id(), probe.title());
    steps.next(&id, &title, steps.elapsed_ns());
    let number = steps.record.tests.len() as u64;
    let test = measure(id, title, job(site, probe, number), steps.session, steps.observer);
    steps.keep(test);
    true
}

/// A load that a twin answers otherwise than the volume did.
#[derive(Clone, Debug)]
pub struct TwinDifference {
    probe: LatencyProbe,
    /// How they differ.
    pub text: String,
}

/// Requests that tell what a twin makes of a load, and the least time for them, of which its edges are a small part.
const CHECKED_IOS: f64 = 100_000.0;
const CHECKED_S: f64 = 4.0;
const LONGEST_CHECK_S: f64 = 60.0;

/// The loads at depths 1, 8 and 64 that `twin` answers in virtual time otherwise than they were measured in `record`.
pub fn differences(twin: &Twin, record: &RunRecord) -> Vec<TwinDifference> {
    let Some((found, spec)) = identified_of(record).zip(IdentifySpec::of(record)) else { return Vec::new() };
    let loads = checked(&found, &spec.limits, &record.tests);
    let of = |(probe, volume): (LatencyProbe, LoadMeasurement)| {
        let answer = on_twin(twin, &probe, &volume)?;
        let figures = |one: &LoadMeasurement| {
            let p99 = one.latency.histogram.percentile(99.0).unwrap_or(0);
            format!("{} IOPS with a p99 of {}", grouped(one.iops.round() as u64), latency(p99))
        };
        volume.differs(&answer).then(|| TwinDifference {
            text: format!(
                "{}: the twin makes {}, the volume made {}",
                probe.title(),
                figures(&answer),
                figures(&volume)
            ),
            probe,
        })
    };
    loads.into_iter().filter_map(of).collect()
}

/// What `twin` without burst credits makes of `probe`, which a volume answered as in `volume`.
fn on_twin(twin: &Twin, probe: &LatencyProbe, volume: &LoadMeasurement) -> Option<LoadMeasurement> {
    let mut model = twin.model().ok()?;
    model.begin_with_credits(0);
    let settings = RunSettings { target: TWIN_NAME.into(), seed: Some(1), ..RunSettings::default() };
    let site = Site::on(BenchTarget::simulated(TWIN_NAME, model), &settings, Nanos(0)).ok()?;
    let runtime_ns = ((CHECKED_IOS / volume.iops.max(1.0)).clamp(CHECKED_S, LONGEST_CHECK_S) * 1e9) as u64;
    let probe = LatencyProbe { runtime_ns, ..*probe };
    let test = measure(probe.id(), probe.title(), job(&site, &probe, 0), &site.session(), &mut ());
    LoadMeasurement::of(&probe, &test)
}

/// The name of a twin that is looked at before it is saved.
const TWIN_NAME: &str = "twin";

/// fio's options of `probe`, the `number`th measurement.
fn job(site: &Site, probe: &LatencyProbe, number: u64) -> JobWords {
    let rw = if probe.way == IoDirection::Write { "randwrite" } else { "randread" };
    let mut words = site.job(rw, probe.block_bytes, probe.depth, Some(site.size));
    match probe.load {
        ProbedLoad::Full => {}
        ProbedLoad::Bursts(pause_ns) => {
            let pause = Nanos(pause_ns.div_ceil(1_000) * 1_000);
            words.extend([
                pair("thinktime", time_word(pause)),
                pair("thinktime_blocks", probe.depth.to_string()),
            ]);
        }
        ProbedLoad::Synced => words.push(pair("fdatasync", "1")),
    }
    words.extend([
        pair("time_based", "1"),
        pair("ramp_time", time_word(Nanos(probe.ramp_ns))),
        pair("runtime", time_word(Nanos(probe.runtime_ns))),
        seed_pair(site.seed, number),
    ]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_paths_and_no_parameters() {
        for name in ["a", "data-volume_1.ssd", "7"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let long = "a".repeat(101);
        for name in ["", ".", "..", "../a", "a/b", "-a", "a?b", "a b", "ä", &long] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_directory_is_the_one_that_is_named_or_the_usual_one() {
        let of = |env: &[(&str, &str)]| {
            directory(|name| env.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
        };
        assert_eq!(of(&[(TWINS_VARIABLE, "/t"), ("HOME", "/h")]), Some("/t".into()));
        assert_eq!(of(&[(TWINS_VARIABLE, ""), ("HOME", "/h")]), Some("/h/.local/share/fathom/twins".into()));
        assert_eq!(of(&[("XDG_DATA_HOME", "/d"), ("HOME", "/h")]), Some("/d/fathom/twins".into()));
        assert_eq!(of(&[("XDG_DATA_HOME", "d")]), None);
    }

    #[test]
    fn twins_that_cannot_be_read_are_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let store = TwinStore { directory: directory.path().join("twins") };
        assert_eq!(store.names().unwrap(), [] as [&str; 0]);
        let error = store.load("a").unwrap_err();
        assert!(error.to_string().starts_with("twin a: does not exist in "), "{error}");
        store.save("b", &Twin { schema: "fathom.twin/9".to_owned(), ..Twin::default() }).unwrap();
        assert_eq!(store.names().unwrap(), ["b"]);
        let error = store.load("b").unwrap_err();
        assert!(error.to_string().ends_with("schema is 'fathom.twin/9', not fathom.twin/1"), "{error}");
        store.save("b", &Twin { schema: SCHEMA.to_owned(), ..Twin::default() }).unwrap();
        let error = store.load("b").unwrap_err();
        assert!(error.to_string().contains("size_bytes is 0"), "{error}");
        assert!(store.load("a").unwrap_err().hint.is_some_and(|hint| hint.starts_with("there are b")));
        store.remove("b").unwrap();
        assert!(store.remove("b").is_err() && store.names().unwrap().is_empty());
    }
}
