//! What is put on a volume: the jobs of a file or profile, bound to it, or a trace.

use std::path::Path;

use fathom_model::Nanos;
use fathom_options::{EngineRow, ParseEnvironment, Section, parse_command_line};

use super::trace::Trace;
use crate::AssessError;
use crate::planned::{escaped, size_word, time_word};
use crate::profile::{profiles, unknown};
use crate::simulated::SimulatedVolume;

/// A load.
#[derive(Clone, Debug)]
pub enum SimulatedLoad {
    /// fio's jobs, as the runner carries them out.
    Jobs(JobLoad),
    /// Requests at the times at which they were made.
    Trace(Trace),
}

/// Jobs that are not bound to a volume yet.
#[derive(Clone, Debug)]
pub struct JobLoad {
    /// Where they come from: the file's name, or `profile oltp`.
    pub name: String,
    jobs: Vec<SimulatedJob>,
}

#[derive(Clone, Debug)]
struct SimulatedJob {
    name: String,
    given: Vec<(String, String)>,
    /// It waits for the jobs before.
    waits: bool,
    /// Its range is divided among so many clones, each of which has its own.
    split_over: Option<u32>,
    /// Bytes that it uses at most, where the volume has more.
    size: Option<u64>,
}

/// What is decided by the volume and not by the job.
const BY_VOLUME: &[&str] = &["filename", "directory", "filename_format", "nrfiles", "unlink"];
/// What is decided by the time that is asked for.
const BY_TIME: &[&str] = &["runtime", "time_based", "ramp_time", "loops"];
/// How much of a volume a profile uses, as in `bench`.
const PROFILE_SIZE: u64 = 4 << 30;

impl JobLoad {
    /// The jobs of an fio job file; `-` is what `environment` reads for it.
    ///
    /// # Errors
    /// fio would refuse it.
    pub fn of_file(path: &Path, environment: &ParseEnvironment<'_>) -> Result<JobLoad, AssessError> {
        let name = path.display().to_string();
        let word = path.to_string_lossy().into_owned();
        let invocation = parse_command_line(&["--".to_owned(), word], environment)
            .map_err(|error| AssessError::options_in(&name, &error))?;
        let jobs = invocation.sections.iter().map(SimulatedJob::of).collect();
        Ok(JobLoad { name, jobs })
    }

    /// One of the profiles that come with the program.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn of_profile(name: &str, engines: &[EngineRow]) -> Result<JobLoad, AssessError> {
        let found = profiles(&[name.to_owned()], engines)?;
        let several = found.len() > 1;
        let Some(profile) = found.into_iter().next().filter(|_| !several) else {
            return Err(unknown(name));
        };
        let test = profile.test;
        let job = SimulatedJob {
            name: profile.purpose.name.to_owned(),
            given: test.options,
            waits: false,
            split_over: test.split.then_some(test.jobs),
            size: Some(PROFILE_SIZE),
        };
        Ok(JobLoad { name: format!("profile {name}"), jobs: vec![job] })
    }

    /// True where some jobs wait for others: they are done again and again then, and each ends as it says.
    pub(super) fn is_in_turn(&self) -> bool {
        self.jobs.iter().skip(1).any(|job| job.waits)
    }

    /// What a reader should know of how the jobs are bound.
    pub(super) fn notes(&self, length: Option<Nanos>) -> Vec<String> {
        let mut notes = Vec::new();
        let given = |names: &[&str]| {
            self.jobs.iter().any(|job| job.given.iter().any(|(name, _)| names.contains(&name.as_str())))
        };
        if self.files() > 1 {
            notes.push("all files of the jobs map to the volume and share its offsets".to_owned());
        }
        if length.is_some() && !self.is_in_turn() && given(&["runtime", "ramp_time", "loops"]) {
            notes.push("--for replaces the runtimes of the jobs".to_owned());
        }
        if length.is_some() && self.is_in_turn() {
            notes.push("jobs wait for others: the whole job file repeats".to_owned());
        }
        notes
    }

    /// How many files the jobs name, as far as they do.
    fn files(&self) -> usize {
        let values = |name: &'static str| {
            self.jobs
                .iter()
                .flat_map(|job| &job.given)
                .filter(move |(given, _)| given == name)
                .map(|(_, value)| value)
        };
        let mut named: Vec<&str> = ["filename", "directory"]
            .into_iter()
            .flat_map(values)
            .flat_map(|value| value.split(':'))
            .collect();
        named.sort_unstable();
        named.dedup();
        let numbered = values("nrfiles").filter_map(|value| value.parse::<usize>().ok()).max();
        named.len().max(numbered.unwrap_or(0))
    }

    /// The jobs on a volume, each as long as `length` where that is given and none waits for another.
    pub(super) fn on(
        &self,
        volume: &SimulatedVolume,
        length: Option<Nanos>,
        engines: &[EngineRow],
    ) -> Result<Vec<Section>, AssessError> {
        let length = length.filter(|_| !self.is_in_turn());
        let section = |job: &SimulatedJob| {
            let given = job.on(volume, length);
            let pairs: Vec<(&str, &str)> =
                given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let section = Section::from_pairs(&job.name, &pairs, engines)
                .map_err(|error| AssessError::options_in(&self.name, &error))?;
            Ok(Section { starts_file: job.waits, ..section })
        };
        self.jobs.iter().map(section).collect()
    }
}

impl SimulatedJob {
    fn of(section: &Section) -> SimulatedJob {
        let own = |name: &str| section.raw_options.iter().any(|(given, _)| given == name);
        let mut given: Vec<(String, String)> =
            section.inherited.iter().filter(|(name, _)| !own(name)).cloned().collect();
        given.extend(section.raw_options.iter().cloned());
        let waits = section.starts_file || section.options.stonewall == Some(true);
        given.retain(|(name, _)| name != "stonewall");
        SimulatedJob { name: section.name.clone(), given, waits, split_over: None, size: None }
    }

    /// fio's options of it on `volume`.
    fn on(&self, volume: &SimulatedVolume, length: Option<Nanos>) -> Vec<(String, String)> {
        let decided = |name: &str| BY_VOLUME.contains(&name) || length.is_some() && BY_TIME.contains(&name);
        let mut given: Vec<(String, String)> =
            self.given.iter().filter(|(name, _)| !decided(name)).cloned().collect();
        let mut say = |name: &str, value: String| given.push((name.to_owned(), value));
        say("filename", escaped(&volume.path));
        if let Some(size) = self.size.map(|size| size.min(volume.size())) {
            let range = self.split_over.map_or(size, |jobs| (size / u64::from(jobs.max(1))) & !0xf_ffff);
            say("size", size_word(range));
            if self.split_over.is_some() {
                say("offset_increment", size_word(range));
            }
        }
        if let Some(length) = length {
            say("time_based", "1".to_owned());
            say("runtime", time_word(length));
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use fathom_options::MachineNumbers;

    use super::*;
    use crate::catalogue::VolumeTypes;
    use crate::machine::engine_rows;

    fn load(text: &str) -> Result<JobLoad, AssessError> {
        JobLoad::of_file(
            Path::new("my job.fio"),
            &ParseEnvironment {
                engines: &engine_rows(),
                read_file: &|_| Ok(text.as_bytes().to_vec()),
                variable: &|_| None,
                machine: MachineNumbers::default(),
            },
        )
    }

    fn lines(text: &str, length: Option<u64>) -> Vec<String> {
        let volume =
            SimulatedVolume::named("sim:aws-gp2-2016?size=50GiB".as_ref(), &VolumeTypes::default()).unwrap();
        let sections = load(text).unwrap().on(&volume, length.map(Nanos::from_secs), &engine_rows()).unwrap();
        sections.iter().map(Section::command_line).collect()
    }

    #[test]
    fn jobs_are_bound_to_the_volume_and_to_the_time() {
        let job = "[global]\nrw=randread\nruntime=5\nramp_time=1\n[a]\nfilename=/data/x\nsize=1g\n[b]\nrw=read\nruntime=9";
        let bound = "--filename='sim\\:aws-gp2-2016?size=50GiB'";
        assert_eq!(
            lines(job, Some(60)),
            [
                format!("fio --name=a --rw=randread --size=1g {bound} --time_based=1 --runtime=60s"),
                format!("fio --name=b --rw=read {bound} --time_based=1 --runtime=60s")
            ]
        );
        // As they say themselves, where no time is asked for, and where some wait for others.
        let own = format!("fio --name=a --rw=randread --runtime=5 --ramp_time=1 --size=1g {bound}");
        assert_eq!(lines(job, None)[0], own);
        let in_turn = format!("{job}\nstonewall");
        assert_eq!(lines(&in_turn, Some(60))[0], own);
        assert!(load(&in_turn).unwrap().is_in_turn() && !load(job).unwrap().is_in_turn());
        assert_eq!(load(job).unwrap().notes(Some(Nanos::from_secs(1))).len(), 1);
        let files = "[a]\nfilename=/x:/y\n[b]\nfilename=/x";
        assert_eq!((load(files).unwrap().files(), load(files).unwrap().notes(None).len()), (2, 1));
    }

    #[test]
    fn profiles_divide_their_range_as_bench_does() {
        let volume =
            SimulatedVolume::named("sim:custom?iops=100&size=1GiB".as_ref(), &VolumeTypes::default())
                .unwrap();
        let load = JobLoad::of_profile("video", &engine_rows()).unwrap();
        let line = load.on(&volume, None, &engine_rows()).unwrap()[0].command_line();
        assert!(line.contains("--size=128m") && line.contains("--offset_increment=128m"), "{line}");
        for name in ["all", "vidoe"] {
            let error = JobLoad::of_profile(name, &engine_rows()).unwrap_err();
            assert!(error.message.starts_with("unknown profile"), "{error}");
        }
    }
}
