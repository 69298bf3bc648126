//! `cargo xtask campaign contradictions`: draws simulated volumes and fails where two runs of one of them contradict each other
//! (`crates/assess/tests/suite/contradictions.rs`, of which the gate draws a few).

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::process::run_tests;

/// Volumes of a full campaign.
const USUAL_VOLUMES: u64 = 300;

/// The range of seeds that the arguments ask for.
fn seeds(arguments: &[&str]) -> anyhow::Result<std::ops::Range<u64>> {
    let (mut volumes, mut from) = (USUAL_VOLUMES, 0);
    for pair in arguments.chunks(2) {
        let number = || -> anyhow::Result<u64> {
            let value = pair.get(1).with_context(|| format!("{} needs a value", pair[0]))?;
            value.parse().with_context(|| format!("{} is a whole number", pair[0]))
        };
        match pair[0] {
            "--volumes" => volumes = number()?,
            "--from" => from = number()?,
            other => bail!("{other} is not an argument; there are --volumes and --from"),
        }
    }
    Ok(from..from.saturating_add(volumes))
}

/// Runs the campaign.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let seeds = seeds(arguments)?;
    let which = ["-p", "fathom-assess", "--test", "suite", "contradictions::"];
    run_tests(root, &which, ("FATHOM_VOLUMES", &format!("{}..{}", seeds.start, seeds.end)))
        .context("runs contradict each other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_the_seeds() {
        assert_eq!(seeds(&[]).unwrap(), 0..300);
        assert_eq!(seeds(&["--from", "300", "--volumes", "10"]).unwrap(), 300..310);
        for wrong in [&["--from"][..], &["--from", "x"], &["--seed", "1"]] {
            assert!(seeds(wrong).is_err(), "{wrong:?}");
        }
    }
}
