//! `cargo xtask campaign fio-corpus`: runs every job file of the corpus under fathom and under Debian's fio, and reports where exit
//! status, jobs, errors, amounts, files or keys of the document differ.

use std::path::Path;
use std::process::Command;

use anyhow::{bail, ensure};
use fathom_tests::{CorpusJob, Need, corpus, fathom, loading, missing, scratch};

/// Runs the campaign.
pub fn campaign(_root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let only = match arguments {
        [] => "",
        ["--only", part] => part,
        _ => bail!("the only argument is --only TEXT, a part of PART/NAME"),
    };
    if let Some(why) = missing(&[Need::Tool("fio")]) {
        bail!("{why}");
    }
    let _loading = loading();
    let home = scratch();
    let is_asked = |job: &CorpusJob| format!("{}/{}", job.part, job.name).contains(only);
    let jobs: Vec<CorpusJob> = corpus().into_iter().filter(is_asked).collect();
    let mut different = 0;
    for job in &jobs {
        let mut ours = fathom(home.path());
        ours.arg("fio");
        let differences = job.differences(ours, Command::new("fio"));
        different += usize::from(!differences.is_empty());
        differences.iter().for_each(|difference| println!("{difference}"));
    }
    println!("{} job files, {different} of them with differences", jobs.len());
    ensure!(different == 0, "runs differ from fio's");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fathom_options::OPTION_TABLE;

    use super::*;

    #[test]
    fn the_corpus_has_hundreds_of_job_files_and_every_option() {
        let jobs = corpus();
        assert!(jobs.len() >= 300, "{}", jobs.len());
        let names: BTreeSet<(&str, &str)> =
            jobs.iter().map(|job| (job.part.as_str(), job.name.as_str())).collect();
        assert_eq!(names.len(), jobs.len(), "names are unique");
        let lines: BTreeSet<&str> = jobs
            .iter()
            .flat_map(|job| job.text.lines())
            .map(|line| line.split_once('=').map_or(line, |(name, _)| name).trim())
            .collect();
        let rows = OPTION_TABLE.iter().flat_map(|(_, rows)| rows.iter());
        let absent: Vec<&str> = rows
            .filter(|row| !lines.contains(row.name) && !row.aliases.iter().any(|alias| lines.contains(alias)))
            .map(|row| row.name)
            .collect();
        assert!(absent.is_empty(), "no job file has {absent:?}");
    }
}
