//! The differences between the clones of a job: files, seed and CPUs.

use std::path::PathBuf;

use fathom_model::plan::ClonePlan;

use crate::error::OptionError;
use crate::job_options::{CpuPolicy, JobOptions};
use crate::resolve::{PlanningHost, refused};
use crate::section::Section;

/// fio's default seed with `randrepeat`.
const DEFAULT_SEED: u64 = 0x89;

/// Most files of one job over all its clones, and most bytes of their names.
const MAX_FILES: u64 = 1 << 20;
const MAX_NAME_BYTES: u64 = 128 << 20;

/// The clones of a job whose first worker has the index `first_worker` in the run.
pub(crate) fn clones(
    section: &Section,
    first_worker: u32,
    host: &PlanningHost,
) -> Result<Vec<ClonePlan>, OptionError> {
    let options = &section.options;
    let count = options.numjobs.unwrap_or(1);
    let files = options.nrfiles.unwrap_or(1);
    if u64::from(files) * u64::from(count) > MAX_FILES {
        return Err(refused(
            section,
            format!("has nrfiles={files} for each of {count} clones: more than {MAX_FILES} files"),
            "lower nrfiles or numjobs",
        ));
    }
    let bytes = name_bytes(section, files).saturating_mul(u64::from(count));
    if bytes > MAX_NAME_BYTES {
        return Err(refused(
            section,
            format!(
                "names files in {} MiB of text: at most {} MiB are supported",
                bytes >> 20,
                MAX_NAME_BYTES >> 20
            ),
            "lower nrfiles or numjobs, or shorten the names",
        ));
    }
    let cpus = options.cpus_allowed.as_deref().unwrap_or_default();
    if let Some(cpu) = cpus.iter().find(|cpu| **cpu >= host.cpus) {
        return Err(refused(
            section,
            format!("has cpus_allowed with CPU {cpu} too large (max={})", host.cpus.saturating_sub(1)),
            format!("name CPUs from 0 to {}", host.cpus.saturating_sub(1)),
        ));
    }
    let split = options.cpus_allowed_policy == Some(CpuPolicy::Split) && !cpus.is_empty();
    Ok((0..count)
        .map(|index| ClonePlan {
            paths: paths(section, index),
            seed: seed(options, first_worker.saturating_add(index), host),
            cpus: if split { vec![cpus[index as usize % cpus.len()]] } else { cpus.to_vec() },
        })
        .collect())
}

/// A seed that differs between workers, and is the same in every run unless `randrepeat=0`.
fn seed(options: &JobOptions, worker: u32, host: &PlanningHost) -> u64 {
    let base = match (options.randseed, options.randrepeat.unwrap_or(true)) {
        (Some(seed), _) => seed,
        (None, true) => DEFAULT_SEED,
        (None, false) => host.entropy,
    };
    // splitmix64: adjacent inputs give unrelated outputs.
    let mut mixed = base.wrapping_add(u64::from(worker).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Approximate bytes of the paths of one clone, list overhead included.
fn name_bytes(section: &Section, files: u32) -> u64 {
    const EACH: usize = 48;
    let options = &section.options;
    let directory = options.directory.iter().flatten().map(String::len).max().unwrap_or(0);
    match &options.filename {
        Some(names) => names.iter().map(|name| (name.len() + directory + EACH) as u64).sum(),
        None => {
            let format = file_name_format(options);
            let repeated = format.matches("$jobname").count() as u64 * section.name.len() as u64;
            // A number has at most ten digits, which is longer than a variable's name by at most this.
            let numbers = format.matches('$').count() * 10;
            let each = (format.len() + numbers + directory + EACH) as u64 + repeated;
            u64::from(files).saturating_mul(each)
        }
    }
}

fn file_name_format(options: &JobOptions) -> &str {
    options.filename_format.as_deref().unwrap_or("$jobname.$jobnum.$filenum")
}

fn paths(section: &Section, clone: u32) -> Vec<PathBuf> {
    let options = &section.options;
    let directory = options.directory.as_ref().filter(|list| !list.is_empty());
    let directory = directory.map(|list| list[clone as usize % list.len()].as_str());
    let place = |name: String| match directory.filter(|_| !name.starts_with("sim:")) {
        // fio prefixes absolute names as well.
        Some(directory) => PathBuf::from(format!("{}/{name}", directory.trim_end_matches('/'))),
        None => PathBuf::from(name),
    };
    match &options.filename {
        Some(names) => {
            let count = options.nrfiles.map_or(names.len(), |files| files as usize);
            names.iter().take(count).cloned().map(place).collect()
        }
        None => (0..options.nrfiles.unwrap_or(1))
            .map(|file| place(generated_name(section, clone, file)))
            .collect(),
    }
}

/// A file name by `filename_format`; `$jobname` is the section's name, not the `name=` of reports.
fn generated_name(section: &Section, clone: u32, file: u32) -> String {
    file_name_format(&section.options)
        .replace("$jobnum", &clone.to_string())
        .replace("$filenum", &file.to_string())
        .replace("$clientuid", "")
        .replace("$jobname", &section.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clones_of(pairs: &[(&str, &str)]) -> Vec<ClonePlan> {
        let section = Section::from_pairs("job", pairs, &[]).unwrap();
        clones(&section, 0, &PlanningHost { cpus: 4, entropy: 7 }).unwrap()
    }

    #[test]
    fn file_names() {
        for (pairs, expected) in [
            (&[][..], &[&["job.0.0"][..]][..]),
            (&[("numjobs", "2")], &[&["job.0.0"], &["job.1.0"]]),
            (&[("nrfiles", "2")], &[&["job.0.0", "job.0.1"]]),
            (&[("filename", "x:y"), ("numjobs", "2")], &[&["x", "y"], &["x", "y"]]),
            (&[("filename", "x:y"), ("nrfiles", "1")], &[&["x"]]),
            (&[("filename", "x:y"), ("nrfiles", "9")], &[&["x", "y"]]),
            (&[("directory", "a:b/"), ("numjobs", "3")], &[&["a/job.0.0"], &["b/job.1.0"], &["a/job.2.0"]]),
            (&[("directory", "/d"), ("filename", "/abs")], &[&["/d//abs"]]),
            (&[("directory", "/"), ("filename", "x")], &[&["/x"]]),
            (&[("directory", "/d"), ("filename", "sim:a?size=1g:x")], &[&["sim:a?size=1g", "/d/x"]]),
            (&[("filename_format", "f.$filenum"), ("numjobs", "2")], &[&["f.0"], &["f.0"]]),
            (&[("name", "reported"), ("filename_format", "$jobname-$jobnum")], &[&["job-0"]]),
        ] {
            let found: Vec<Vec<PathBuf>> = clones_of(pairs).into_iter().map(|clone| clone.paths).collect();
            let expected: Vec<Vec<PathBuf>> =
                expected.iter().map(|paths| paths.iter().map(PathBuf::from).collect()).collect();
            assert_eq!(found, expected, "{pairs:?}");
        }
    }

    #[test]
    fn seeds_differ_between_clones_and_repeat_between_runs() {
        let seeds = |pairs: &[(&str, &str)], entropy: u64| -> Vec<u64> {
            let section = Section::from_pairs("job", pairs, &[]).unwrap();
            let clones = clones(&section, 0, &PlanningHost { cpus: 1, entropy }).unwrap();
            clones.into_iter().map(|clone| clone.seed).collect()
        };
        let default = seeds(&[("numjobs", "3")], 1);
        assert_eq!(default, seeds(&[("numjobs", "3"), ("randseed", "0x89")], 2));
        assert!(default[0] != default[1] && default[1] != default[2]);
        assert_ne!(seeds(&[("randseed", "1")], 0), seeds(&[("randseed", "2")], 0));
        assert_ne!(seeds(&[("randrepeat", "0")], 1), seeds(&[("randrepeat", "0")], 2));
        assert_eq!(
            seeds(&[("randrepeat", "0"), ("randseed", "5")], 1),
            seeds(&[("randseed", "5"), ("randrepeat", "0")], 2)
        );
    }

    #[test]
    fn cpus_are_shared_or_split() {
        let cpus = |pairs: &[(&str, &str)]| -> Vec<Vec<usize>> {
            clones_of(pairs).into_iter().map(|clone| clone.cpus).collect()
        };
        assert_eq!(cpus(&[("numjobs", "2")]), [vec![], vec![]]);
        assert_eq!(cpus(&[("numjobs", "2"), ("cpus_allowed", "0,2-3")]), [vec![0, 2, 3], vec![0, 2, 3]]);
        let split = [("numjobs", "3"), ("cpus_allowed", "0,3"), ("cpus_allowed_policy", "split")];
        assert_eq!(cpus(&split), [vec![0], vec![3], vec![0]]);
        let section = Section::from_pairs("job", &[("cpus_allowed", "0-4")], &[]).unwrap();
        let error = clones(&section, 0, &PlanningHost { cpus: 4, entropy: 0 }).unwrap_err();
        assert!(error.to_string().contains("CPU 4 too large (max=3)"), "{error}");
    }

    #[test]
    fn files_are_bounded() {
        let section = Section::from_pairs("job", &[("nrfiles", "4294967295")], &[]).unwrap();
        assert!(clones(&section, 0, &PlanningHost::default()).is_err());
    }

    #[test]
    fn file_names_are_bounded_in_bytes() {
        let check = |name: &str, pairs: &[(&str, &str)], expected: bool| {
            let section = Section::from_pairs(name, pairs, &[]).unwrap();
            let clones = clones(&section, 0, &PlanningHost::default()).map(|clones| clones.len());
            let error = clones.as_ref().err().map(ToString::to_string).unwrap_or_default();
            assert_eq!(clones.is_ok(), expected, "{:.20} {pairs:.99?}: {error}", name);
            assert!(expected || error.contains("of text: at most 128 MiB are supported"), "{error}");
        };
        let (long, list) = ("x".repeat(4_000), "x:".repeat(10_000));
        check("job", &[("nrfiles", "100000")], true);
        check("job", &[("nrfiles", "1048576")], true);
        check("job", &[("numjobs", "4096")], true);
        check(&long, &[("numjobs", "4096")], true);
        check(&long, &[("nrfiles", "1048576")], false);
        check("job", &[("directory", &long), ("nrfiles", "100000")], false);
        check("job", &[("filename", &list), ("numjobs", "2")], true);
        check("job", &[("filename", &list), ("numjobs", "4096")], false);
        check(&long, &[("filename_format", &"$jobname".repeat(100_000))], false);
    }
}
