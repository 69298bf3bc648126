//! `cargo xtask campaign long-tests`: tests of which the gate runs a part, in their whole length.

use std::path::Path;

use anyhow::ensure;

use crate::process::run_tests;

/// What tells a test to run in its whole length.
const VARIABLE: (&str, &str) = ("FATHOM_LONG_TESTS", "1");
/// The tests.
const TESTS: [&[&str]; 6] = [
    &["-p", "fathom-assess", "--test", "suite", "identified::"],
    &["-p", "fathom-assess", "--test", "suite", "catalogued::"],
    &["-p", "fathom-tests", "--test", "suite", "against::"],
    &["-p", "fathom-tests", "--test", "suite", "guard_race::"],
    &["-p", "fathom-tests", "--test", "suite", "identify::"],
    &["-p", "fathom-tests", "--test", "suite", "verify::"],
];

/// Runs the campaign: all of its tests, also after one that fails.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    ensure!(arguments.is_empty(), "long-tests takes no arguments");
    let failed: Vec<String> = TESTS
        .iter()
        .filter_map(|test| Some(format!("{:#}", run_tests(root, test, VARIABLE).err()?)))
        .collect();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}
