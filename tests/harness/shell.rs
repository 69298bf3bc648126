//! Running the system's own tools while a test is set up, and a place on a real disk to do it in.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Runs `command` to its end and returns its standard output, trimmed.
///
/// # Panics
/// When it cannot be run or fails: a test that cannot be set up has failed.
pub fn must_run(command: &mut Command) -> String {
    let shown = format!("{command:?}");
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {shown}: {error}"));
    assert!(
        output.status.success(),
        "{shown} ended with {}:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A new directory on a real disk (`/tmp` is often memory), removed on drop. `FATHOM_TEST_DIR` names another parent.
///
/// # Panics
/// When it cannot be made, or the test has not asked for its turn.
pub fn scratch() -> TempDir {
    scratch_in(&std::env::var_os("FATHOM_TEST_DIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from))
}

/// As [`scratch`], in `parent`. Every device, mount and program of a test goes through here.
pub(crate) fn scratch_in(parent: &Path) -> TempDir {
    crate::turn::must_have_come();
    tempfile::Builder::new()
        .prefix("fathom-test-")
        .tempdir_in(parent)
        .unwrap_or_else(|error| panic!("cannot make a directory in {}: {error}", parent.display()))
}

/// Runs `command` and ignores its result, for cleanup.
pub(crate) fn try_run(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
