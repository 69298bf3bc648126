//! The range that sums leave, in virtual time: the tests of the gate, which draw a few loads and volumes.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::process::run_tests;

/// Loads of a full campaign.
const USUAL_LOADS: u64 = 300;
/// The test.
const TEST: &str = "replay::sums_tests";

fn loads(arguments: &[&str]) -> anyhow::Result<u64> {
    match arguments {
        [] => Ok(USUAL_LOADS),
        ["--loads", loads] => loads.parse().context("--loads is a whole number"),
        _ => bail!("the only argument after --sums is --loads NUMBER"),
    }
}

/// Runs the campaign.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let loads = loads(arguments)?;
    run_tests(root, &["-p", "fathom-predict", "--lib", TEST], ("FATHOM_LOADS", &loads.to_string()))
        .context("the truth lies outside of too many ranges")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_the_loads() {
        assert_eq!((loads(&[]).unwrap(), loads(&["--loads", "40"]).unwrap()), (300, 40));
        for wrong in [&["--loads"][..], &["--loads", "x"], &["--cases", "1"]] {
            assert!(loads(wrong).is_err(), "{wrong:?}");
        }
    }
}
