//! Job options that choose offsets, sizes, files and the course of a job: deterministic runs have the counts, bytes, errors, files
//! and exit status of Debian's fio. The whole corpus is a campaign of its own.

use std::process::Command;

use fathom_tests::{corpus, fathom, loading, need, scratch};

#[test]
fn deterministic_jobs_have_fios_counts_and_exit_status() {
    need!(tool "fio");
    let _loading = loading();
    let home = scratch();
    let jobs = corpus().into_iter().filter(|job| job.part == "access");
    let differences: Vec<String> = jobs
        .flat_map(|job| {
            let mut ours = fathom(home.path());
            ours.arg("fio");
            job.differences(ours, Command::new("fio"))
        })
        .collect();
    assert!(differences.is_empty(), "{differences:#?}");
}
