//! The jobs of fio's grammar on one rank: files of rank 0, roles, shares of a target.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use fathom_assess::AssessError;
use fathom_assess::fleet::{FleetFiles, FleetPlace, FleetRole, FleetRoles};
use fathom_model::plan::SizeSpec;
use fathom_model::{JobPlan, RunPlan};
use fathom_options::{EngineRow, FleetOptions, Invocation, OptionError};
use fathom_sys::files::JOB_FILE;

/// Options of fio that only print, or check what was written: nothing is measured, and no other rank is needed.
const NO_RUN: [&str; 8] =
    ["help", "version", "cmdhelp", "enghelp", "parse-only", "showcmd", "idle-prof", "crctest"];

/// True where the words ask for something to be printed, and for no run.
pub fn only_prints(words: &[String]) -> bool {
    words.iter().any(|word| {
        let Some(name) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { return false };
        let (name, value) = name.split_once('=').unwrap_or((name, ""));
        match name {
            "h" | "v" => true,
            "idle-prof" => value == "calibrate",
            name => NO_RUN.contains(&name),
        }
    })
}

/// The files that are read through it.
#[derive(Default)]
pub struct CapturedFiles(RefCell<BTreeMap<String, String>>);

impl CapturedFiles {
    /// Reads a file by `read` and keeps its text.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read(&self, path: &Path, read: impl FnOnce(&Path) -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
        let bytes = read(path)?;
        if let Ok(text) = String::from_utf8(bytes.clone()) {
            self.0.borrow_mut().insert(path.display().to_string(), text);
        }
        Ok(bytes)
    }

    /// The files, and the roles of a job with these options.
    ///
    /// # Errors
    /// The file of roles cannot be read or used.
    pub fn finish(self, options: &FleetOptions) -> Result<FleetFiles, String> {
        let roles = options.plan.as_deref().map(|path| {
            let text = JOB_FILE.read_text(path).map_err(|error| error.to_string())?;
            let name = path.display().to_string();
            FleetRoles::parse(&name, &text).map_err(|error| error.to_string())?;
            Ok::<_, String>(text)
        });
        Ok(FleetFiles { jobs: self.0.into_inner(), roles: roles.transpose()? })
    }
}

/// The jobs of a role, with its options.
///
/// # Errors
/// An option is not valid, or the role names a job that does not exist.
pub fn take_role(
    invocation: &mut Invocation,
    role: &FleetRole,
    engines: &[EngineRow],
) -> Result<(), OptionError> {
    if let Some(unknown) =
        role.jobs.iter().find(|name| invocation.sections.iter().all(|section| section.name != **name))
    {
        let problem = format!("does not exist, and role '{}' runs it", role.name);
        return Err(OptionError::job(unknown, &problem, "name jobs of the job file in the role"));
    }
    if !role.jobs.is_empty() {
        invocation.sections.retain(|section| role.jobs.contains(&section.name));
    }
    let options: Vec<(&str, String)> = role.options().collect();
    let pairs: Vec<(&str, &str)> = options.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for section in &mut invocation.sections {
        *section = section.with_pairs(&pairs, engines)?;
    }
    Ok(())
}

/// Fits the plan to the place of this rank: jobs are named after its role, and use its share of their target.
///
/// # Errors
/// A job has no size that can be divided, or something else decides its range.
pub fn fit(plan: &mut RunPlan, place: &FleetPlace, options: &FleetOptions) -> Result<(), AssessError> {
    for job in &mut plan.jobs {
        if let Some(role) = &place.role {
            job.name = format!("{role}/{}", job.name);
        }
        if options.splits_by_offset {
            take_share(job, place)?;
        }
    }
    Ok(())
}

/// Fits a job to the share of this rank of each of its files.
fn take_share(job: &mut JobPlan, place: &FleetPlace) -> Result<(), AssessError> {
    let problem = |text: &str| {
        AssessError::usage(
            format!("--fleet-split=offset: job '{}' has {text}", job.name),
            "give each job a size in bytes: size=100g",
        )
    };
    if job.io.file_size.is_some() {
        return Err(problem("a filesize, which decides its range"));
    }
    if job.files.usage.append {
        return Err(problem("file_append, which decides its range"));
    }
    let Some(SizeSpec::Bytes(size)) = job.io.size else {
        return Err(problem("no size in bytes"));
    };
    let SizeSpec::Bytes(offset) = job.io.offset else {
        return Err(problem("an offset in percent"));
    };
    let sizes = &job.io.block_size;
    let block = sizes.read.largest().max(sizes.write.largest()).max(sizes.trim.largest()).max(1);
    // The files of a job share its size.
    let files = job.clones.iter().map(|clone| clone.paths.len() as u64).max().unwrap_or(1).max(1);
    let share = size / files / u64::from(place.ranks.max(1)) / block * block;
    if share == 0 {
        return Err(problem("less than a block for each rank"));
    }
    job.io.size = Some(SizeSpec::Bytes(share * files));
    job.io.offset = SizeSpec::Bytes(offset + share * u64::from(place.rank));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::plan::ClonePlan;

    #[test]
    fn what_only_prints_needs_no_other_rank() {
        let check = |line: &str| only_prints(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(check("--fleet --help") && check("-v") && check("--fleet --cmdhelp=all"));
        assert!(!check("--fleet --name=help --rw=read job.fio") && !check("--idle-prof=system"));
    }

    #[test]
    fn shares_follow_one_another() {
        let mut job = JobPlan { name: "a".to_owned(), ..Default::default() };
        job.io.size = Some(SizeSpec::Bytes(1 << 30));
        let fleet = FleetOptions { splits_by_offset: true, ..FleetOptions::default() };
        let fitted = |rank: u32| {
            let mut plan = RunPlan { jobs: vec![job.clone()], ..RunPlan::default() };
            let role = Some("w".to_owned());
            let place = FleetPlace { rank, ranks: 4, role, ..FleetPlace::default() };
            fit(&mut plan, &place, &fleet).unwrap();
            let job = plan.jobs.remove(0);
            (job.name, job.io.offset, job.io.size)
        };
        let share = Some(SizeSpec::Bytes(1 << 28));
        assert_eq!(fitted(0), ("w/a".to_owned(), SizeSpec::Bytes(0), share));
        assert_eq!(fitted(3), ("w/a".to_owned(), SizeSpec::Bytes(3 << 28), share));
        job.io.size = None;
        let mut plan = RunPlan { jobs: vec![job], ..RunPlan::default() };
        let error = fit(&mut plan, &FleetPlace::default(), &fleet).unwrap_err();
        assert_eq!(error.to_string(), "--fleet-split=offset: job 'a' has no size in bytes");
    }

    #[test]
    fn each_file_is_divided() {
        let paths = vec!["/d/a".into(), "/d/b".into()];
        let clones = vec![ClonePlan { paths, seed: 0, cpus: Vec::new() }];
        let mut job = JobPlan { name: "a".to_owned(), clones, ..Default::default() };
        job.io.size = Some(SizeSpec::Bytes(1 << 30));
        let place = FleetPlace { rank: 3, ranks: 4, ..FleetPlace::default() };
        let mut fitted = job.clone();
        take_share(&mut fitted, &place).unwrap();
        // Each file has 512 MiB, of which a rank uses 128 MiB.
        assert_eq!(fitted.io.size, Some(SizeSpec::Bytes(2 << 27)));
        assert_eq!(fitted.io.offset, SizeSpec::Bytes(3 << 27));
        job.io.file_size = Some(1 << 29);
        let error = take_share(&mut job, &place).unwrap_err();
        assert!(error.to_string().ends_with("a filesize, which decides its range"), "{error}");
    }
}
