//! A job file, with the files that it may include.

use std::io;
use std::path::Path;

use crate::jobs;

/// The separator of the files in one input.
const SEPARATOR: &[u8] = b"\n%%\n";
/// Their names: the job file, and the files that it may include.
const NAMES: [&str; 3] = ["jobs", "a", "b"];

/// Understands the job file, plans it, and shows it as a command line.
pub fn check(data: &[u8]) {
    let mut files = Vec::new();
    let mut rest = data;
    while files.len() + 1 < NAMES.len()
        && let Some(end) = rest.windows(SEPARATOR.len()).position(|window| window == SEPARATOR)
    {
        files.push(&rest[..end]);
        rest = &rest[end + SEPARATOR.len()..];
    }
    files.push(rest);
    let read_file = |path: &Path| -> io::Result<Vec<u8>> {
        let index = NAMES.iter().position(|name| Path::new(name) == path);
        let file = index.and_then(|index| files.get(index));
        file.map(|file| file.to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    jobs::check(&["jobs".to_owned()], &read_file);
}
