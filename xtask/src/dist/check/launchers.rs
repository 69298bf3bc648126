//! The static binary as the ranks of a job: under launchers whose interface takes no library it measures as any other, and under one
//! whose interface is a library it says why it cannot.

use std::path::Path;

use anyhow::{Context as _, ensure};
use fathom_tests::{Cluster, Ended, Launcher, loading, run, scratch};
use serde_json::Value;

use crate::packages;

/// What a cluster needs of the programs that the tests start.
const PROGRAMS: [&str; 10] = [
    "ip", "mpiexec.mpich", "mpirun.openmpi", "munged", "nsenter", "slurmctld", "slurmd", "srun", "ssh",
    "sshd",
];
/// Ranks on each host, and 64 KiB reads of each.
const PER_HOST: usize = 2;
const IOS: usize = 16;

/// Runs `binary` under each kind of launcher.
pub(super) fn check(binary: &Path) -> anyhow::Result<String> {
    PROGRAMS.iter().try_for_each(|program| packages::require(program))?;
    let _loading = loading();
    let cluster = Cluster::start().context("a cluster cannot be started here")?;
    let ranks = cluster.hosts().len() * PER_HOST;
    for launcher in [Launcher::Mpiexec, Launcher::SrunPmi2] {
        let ended = launched(&cluster, launcher, binary);
        ensure!(ended.status.success(), "{launcher:?}: {ended}");
        let document: Value = serde_json::from_str(&ended.stdout).context("rank 0 prints no document")?;
        let of_ranks = (&document["fathom"]["fleet"]["merged"], &document["jobs"][0]["read"]["total_ios"]);
        ensure!(*of_ranks.0 == ranks && *of_ranks.1 == ranks * IOS, "{launcher:?}: {of_ranks:?} in {ended}");
    }
    let refused = launched(&cluster, Launcher::SrunPmix, binary);
    let told = ["statically linked", "use a fathom that loads libraries"];
    ensure!(
        !refused.status.success()
            && refused.stdout.is_empty()
            && told.iter().all(|part| refused.stderr.contains(part)),
        "with PMIx a static program does not say what it lacks:\n{refused}"
    );
    Ok(format!(
        "static binary: {ranks} ranks report together under mpiexec (PMI-1) and srun (PMI-2); refuses PMIx"
    ))
}

fn launched(cluster: &Cluster, launcher: Launcher, binary: &Path) -> Ended {
    let home = scratch();
    let mut command = cluster.launch(launcher, cluster.hosts(), PER_HOST);
    command.env("HOME", home.path()).env_remove("XDG_DATA_HOME").arg(binary);
    command.args(["fio", "--fleet", "--name=a", "--ioengine=sync", "--rw=read", "--bs=64k", "--size=1m"]);
    command.args(["--filename=data-${fathom_RANK}", "--output-format=json"]);
    run(command.arg(format!("--directory={}", home.path().display())))
}
