//! `cargo xtask campaign comparisons`: how often the intervals of `bench --precision` and of comparisons hold the truth, and how
//! often verdicts are right, over many tries. The tests are those of the gate, which makes a few.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::process::run_tests;

/// Tries of each kind in a full campaign.
const USUAL_TRIES: u64 = 1000;
/// The tests: on series of seconds, on series of runs, and through the whole loop on simulated volumes.
const TESTS: [&[&str]; 3] = [
    &["-p", "fathom-record", "--lib", "precision"],
    &["-p", "fathom-analysis", "--lib", "compare::ratio"],
    &["-p", "fathom-assess", "--test", "suite", "comparisons::"],
];

fn tries(arguments: &[&str]) -> anyhow::Result<u64> {
    match arguments {
        [] => Ok(USUAL_TRIES),
        ["--tries", tries] => tries.parse().context("--tries is a whole number"),
        _ => bail!("the only argument is --tries NUMBER"),
    }
}

/// Runs the campaign.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let tries = tries(arguments)?;
    TESTS.iter().try_for_each(|test| run_tests(root, test, ("FATHOM_TRIES", &tries.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_the_tries() {
        assert_eq!((tries(&[]).unwrap(), tries(&["--tries", "100"]).unwrap()), (1000, 100));
        for wrong in [&["--tries"][..], &["--tries", "x"], &["--seed", "1"]] {
            assert!(tries(wrong).is_err(), "{wrong:?}");
        }
    }
}
