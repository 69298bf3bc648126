//! A command line of fio's, a word on each line of the input.

use std::io;
use std::path::Path;

use crate::jobs;

/// The one job file that there is.
const JOB_FILE: &str = "[global]\nrw=randread\nsize=1m\n[one]\n[two]\nbs=8k\n";

/// Understands the words, plans the jobs, and shows them as a command line.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let read_file = |path: &Path| -> io::Result<Vec<u8>> {
        if path == Path::new("jobs.fio") { Ok(JOB_FILE.into()) } else { Err(io::ErrorKind::NotFound.into()) }
    };
    jobs::check(&words, &read_file);
}
