//! Several targets: each test on each of them by itself, then on all at once, so that a limit they share shows.

use std::path::{Path, PathBuf};

use fathom_runner::WritePermit;

use crate::AssessError;
use crate::catalogue::VolumeTypes;
use crate::planned::PlannedTest;
use crate::simulated::{self, is_simulated};
use crate::target::BenchTarget;

/// The tests that are run on several targets unless others are named: they write nothing, and meet one limit each.
pub(crate) const USUAL: [&str; 2] = ["rand-read", "seq-read"];

/// A target of a bench.
#[derive(Clone, Debug)]
pub struct PlannedTarget {
    /// What it is.
    pub target: BenchTarget,
    /// The path that tests name; in a directory a file that exists under no name.
    pub file: PathBuf,
    /// A name that means the same everywhere on this machine.
    pub name: String,
}

/// Looks at each of `paths`. Every entry of `destroy` must name one of them, and counts for that one alone.
///
/// # Errors
/// One cannot be measured, stands twice, or `destroy` names something else.
pub(crate) fn inspect(
    paths: &[PathBuf],
    destroy: &[PathBuf],
    types: &VolumeTypes,
) -> Result<Vec<BenchTarget>, AssessError> {
    let names = |entry: &PathBuf, path: &Path| WritePermit::own(std::slice::from_ref(entry)).names(path);
    if let [path] = paths {
        return Ok(vec![BenchTarget::inspect(path, destroy, types)?]);
    }
    simulated::refuse_mixture(paths)?;
    for (index, path) in paths.iter().enumerate().filter(|(_, path)| !is_simulated(path)) {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        if paths[..index].iter().any(|other| real(other) == real(path)) {
            return Err(AssessError::target(path, "is given twice", "use different targets"));
        }
    }
    if let Some(other) = destroy.iter().find(|entry| !paths.iter().any(|path| names(entry, path))) {
        let reason = "is named by --destroy-data but is not a target";
        let hint = "use the paths of the targets, or omit --destroy-data";
        return Err(AssessError::target(other, reason, hint));
    }
    let inspect_one = |path: &PathBuf| {
        let own: Vec<PathBuf> = destroy.iter().filter(|entry| names(entry, path)).cloned().collect();
        BenchTarget::inspect(path, &own, types)
    };
    paths.iter().map(inspect_one).collect()
}

/// Each of `tests` on each target by itself, then on all of them.
pub(crate) fn spread(tests: Vec<PlannedTest>, targets: &[PlannedTarget]) -> Vec<PlannedTest> {
    if targets.len() < 2 {
        return tests;
    }
    tests.into_iter().flat_map(|test| on_each_and_all(&test, targets)).collect()
}

fn on_each_and_all(test: &PlannedTest, targets: &[PlannedTarget]) -> Vec<PlannedTest> {
    let refusal = |target: &PlannedTarget| target.target.write_refusal().filter(|_| test.writes);
    let mut spread = Vec::with_capacity(targets.len() + 1);
    for (index, target) in targets.iter().enumerate() {
        let mut alone = test.clone();
        alone.id = format!("{}-{}", test.id, index + 1);
        alone.title = format!("{}, {}", test.title, target.name);
        alone.targets = vec![index];
        alone.skip = refusal(target);
        alone.seed = test.seed.wrapping_add((index as u64 + 1) << 20);
        spread.push(alone);
    }
    let mut all = test.clone();
    all.id = format!("{}-together", test.id);
    all.title = format!("{}, together", test.title);
    all.targets = (0..targets.len()).collect();
    all.skip = targets.iter().find_map(refusal);
    all.io_bytes = test.io_bytes.map(|bytes| bytes.saturating_mul(targets.len() as u64));
    spread.push(all);
    spread
}
