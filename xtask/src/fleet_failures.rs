//! `cargo xtask campaign fleet-failures`: runs jobs of many ranks in which one is killed in each phase, hangs, loses its host, finds no
//! room for its record or has another version, ten times under each launcher, and reports where a job hung, ended with a code that is
//! not documented, kept quiet about a rank, or lost what the others had measured.
//!
//! Hosts are namespaces of this machine; jobs that run at once have a cluster each, which serves for the next job where it can.

mod tally;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::ensure;
use fathom_tests::{Cluster, FleetFailure, Launcher, PlantedFailure};
use serde_json::{Value, json};

use crate::device_campaign::DeviceCampaign;
use tally::Tally;

/// Each failure under each launcher, so many times.
const REPEATS: usize = 10;
const CASES: usize = REPEATS * FleetFailure::ALL.len() * Launcher::MEETING.len();

const CAMPAIGN: DeviceCampaign<FleetCase> = DeviceCampaign {
    name: "fleet-failures",
    usual: (CASES as u64, 3),
    needs: Cluster::NEEDS,
    case: FleetCase::of,
    name_of: |case| &case.name,
    measure,
    shown: tally::shown,
};

/// Clusters that wait for a job.
static CLUSTERS: Mutex<Vec<Cluster>> = Mutex::new(Vec::new());

/// One job.
struct FleetCase {
    /// `mpiexec-killed-join-0`.
    name: String,
    planted: PlantedFailure,
}

impl FleetCase {
    /// The `index`th: always the same. All failures come once under each launcher before one comes again.
    fn of(index: u64) -> FleetCase {
        let (launchers, failures) = (Launcher::MEETING, FleetFailure::ALL);
        let index = index as usize;
        let launcher = launchers[index % launchers.len()];
        let failure = failures[index / launchers.len() % failures.len()];
        let repeat = index / (launchers.len() * failures.len());
        let name = format!("{}-{}-{repeat}", launcher.name(), failure.name());
        FleetCase { name, planted: PlantedFailure { launcher, failure, repeat } }
    }
}

fn measure(case: &FleetCase) -> Value {
    let waiting = CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let cluster = waiting.or_else(Cluster::start).expect("the campaign has all it needs");
    let outcome = case.planted.run(&cluster);
    let PlantedFailure { launcher, failure, repeat } = case.planted;
    // What a launcher makes of a host that was gone for a while is not asked here.
    if failure != FleetFailure::CableCut && cluster.settles() {
        CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner).push(cluster);
    }
    let violations = outcome.violations();
    let printed = if violations.is_empty() { None } else { Some(outcome.printed()) };
    let phase = case.planted.phase().map(fathom_tests::RankPhase::name);
    json!({
        "launcher": launcher.name(), "failure": failure.name(), "phase": phase, "repeat": repeat,
        "code": outcome.code(),
        "seconds": outcome.seconds, "kept": outcome.kept, "violations": violations, "printed": printed,
    })
}

/// Runs the campaign, or what is left of it.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let results = CAMPAIGN.run(root, arguments);
    CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let tally = Tally::of(&results?);
    println!("{tally}");
    ensure!(tally.holds(), "a job with a failure did not end as documented");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_different_and_always_the_same() {
        let cases: Vec<FleetCase> = (0..CASES as u64).map(FleetCase::of).collect();
        for (index, case) in cases.iter().enumerate() {
            assert!(cases[..index].iter().all(|other| other.name != case.name), "{}", case.name);
        }
        assert_eq!(cases[0].name, "mpiexec-killed-join-0");
        assert_eq!(cases[CASES - 1].name, "mpirun-other-version-9");
    }
}
