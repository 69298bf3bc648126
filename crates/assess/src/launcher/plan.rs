//! The command line that starts the ranks of a job, in the options of each launcher.

use super::hosts::{folded, hosts, hosts_of_file};
use super::program::{Launcher, LauncherFamily};
use crate::AssessError;

/// Variables whose value is the file of the hosts that a scheduler gave to a job; in each line the first word is a host.
const HOST_FILES: [(&str, &str); 4] = [
    ("PBS_NODEFILE", "PBS"),
    ("LSB_DJOB_HOSTFILE", "LSF"),
    ("PE_HOSTFILE", "Grid Engine"),
    // Also that of Kubeflow's MPI operator.
    ("HYDRA_HOST_FILE", "hydra"),
];
/// The hosts that Slurm gave to a job, in bracket notation.
const SLURM_HOSTS: &str = "SLURM_JOB_NODELIST";
/// The job of Slurm that a process belongs to.
const SLURM_JOB: &str = "SLURM_JOB_ID";

/// Who says which hosts take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOrigin {
    /// The user.
    Named,
    /// A scheduler, by its name.
    Scheduler(&'static str),
    /// Nobody: the ranks are on this host.
    Local,
}

/// The hosts of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobHosts {
    /// Their names; none for this host.
    pub names: Vec<String>,
    /// Who says so.
    pub origin: HostOrigin,
}

impl JobHosts {
    /// The hosts that are named, else those of the scheduler's job, else this one. `variable` looks up the environment, `read` reads
    /// a file.
    ///
    /// # Errors
    /// The list of the scheduler cannot be read.
    pub fn of(
        named: Vec<String>,
        variable: &dyn Fn(&str) -> Option<String>,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<JobHosts, AssessError> {
        if !named.is_empty() {
            return Ok(JobHosts { names: named, origin: HostOrigin::Named });
        }
        if let Some(list) = variable(SLURM_HOSTS).filter(|_| is_in_slurm(variable)) {
            return Ok(JobHosts { names: hosts(&list)?, origin: HostOrigin::Scheduler("Slurm") });
        }
        for (name, scheduler) in HOST_FILES {
            let Some(path) = variable(name).filter(|path| !path.is_empty()) else { continue };
            let text = read(&path).map_err(|cause| {
                let message = format!("cannot read {path}, the hosts of this job of {scheduler}: {cause}");
                AssessError::usage(message, "name them: --hosts LIST")
            })?;
            let names = hosts_of_file(&first_words(&text), &path)?;
            return Ok(JobHosts { names, origin: HostOrigin::Scheduler(scheduler) });
        }
        Ok(JobHosts { names: Vec::new(), origin: HostOrigin::Local })
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX).max(1)
    }

    /// The first `count` of them.
    pub fn first(&self, count: u32) -> JobHosts {
        let names = self.names.iter().take(count as usize).cloned().collect();
        JobHosts { names, origin: self.origin.clone() }
    }
}

/// True in an allocation of Slurm.
pub fn is_in_slurm(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    variable(SLURM_JOB).is_some_and(|job| !job.is_empty())
}

/// Each host once, in the order of a scheduler's file, which has a line for each slot or the slots behind the name (`h1 4`, `h1:4`).
fn first_words(text: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in text.lines().filter_map(|line| line.split([' ', '\t', ':']).find(|word| !word.is_empty())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("\n")
}

/// Ranks to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchPlan {
    /// What starts them.
    pub launcher: Launcher,
    /// Where.
    pub hosts: JobHosts,
    /// Ranks on each host.
    pub per_host: u32,
    /// Variables of the environment that every rank is to have, where the launcher does not pass on all: `NAME`, `NAME=VALUE`.
    pub exported: Vec<String>,
    /// This user is root, as whom Open MPI starts nothing unless told to.
    pub is_root: bool,
    /// What each rank runs.
    pub command: Vec<String>,
}

impl LaunchPlan {
    /// Ranks in all.
    pub fn ranks(&self) -> u32 {
        self.hosts.count().saturating_mul(self.per_host)
    }

    /// The command line.
    ///
    /// # Errors
    /// `srun` has no plugin by which the ranks would find each other.
    pub fn words(&self) -> Result<Vec<String>, AssessError> {
        let mut words = vec![self.launcher.program.clone()];
        match self.launcher.family {
            LauncherFamily::Slurm => words.extend(self.of_slurm()?),
            LauncherFamily::Hydra => words.extend(self.of_hydra()),
            LauncherFamily::OpenMpi => words.extend(self.of_open_mpi()),
        }
        words.extend(self.command.iter().cloned());
        Ok(words)
    }

    fn of_slurm(&self) -> Result<Vec<String>, AssessError> {
        let plugin = self.launcher.plugin().ok_or_else(|| {
            let message = format!("{} has neither the plugin pmi2 nor pmix", self.launcher.program);
            AssessError::usage(message, "use mpiexec in the allocation: --launcher mpiexec")
        })?;
        let mut words = vec![
            format!("--mpi={plugin}"),
            format!("--nodes={}", self.hosts.count()),
            format!("--ntasks={}", self.ranks()),
            format!("--ntasks-per-node={}", self.per_host),
        ];
        if !self.hosts.names.is_empty() {
            words.push(format!("--nodelist={}", folded(&self.hosts.names)));
        }
        // A rank may use all CPUs that it was given; the ranks that are left report when one dies.
        words.extend(["--cpu-bind=none", "--kill-on-bad-exit=0", "--wait=0"].map(str::to_owned));
        Ok(words)
    }

    fn of_hydra(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.hosts.origin == HostOrigin::Named {
            words.extend(["-launcher", "ssh"].map(str::to_owned));
        }
        if !self.hosts.names.is_empty() {
            words.extend(["-hosts".to_owned(), self.hosts.names.join(",")]);
            words.extend(["-ppn".to_owned(), self.per_host.to_string()]);
        }
        words.extend(["-n".to_owned(), self.ranks().to_string()]);
        words
    }

    fn of_open_mpi(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.is_root {
            words.push("--allow-run-as-root".to_owned());
        }
        // It would bind each rank to a core, and with it all of its workers.
        words.extend(["--bind-to", "none", "-n"].map(str::to_owned));
        words.push(self.ranks().to_string());
        let slots = |host: &str| format!("{host}:{}", self.per_host);
        let hosts: Vec<String> = match self.hosts.names.as_slice() {
            [] => vec![slots("localhost")],
            names => names.iter().map(|name| slots(name)).collect(),
        };
        words.extend(["--host".to_owned(), hosts.join(",")]);
        words.extend(self.exported.iter().flat_map(|name| ["-x".to_owned(), name.clone()]));
        words
    }
}

/// How many ranks a series of runs has: on 1, 2, 4, ... hosts, then 2, 4, ... on each, and at last on all that there are.
pub fn scale_steps(hosts: u32, per_host: u32) -> Vec<ScaleStep> {
    let mut steps: Vec<ScaleStep> =
        doublings(hosts).into_iter().map(|hosts| ScaleStep { hosts, per_host: 1 }).collect();
    steps.extend(doublings(per_host).into_iter().skip(1).map(|per_host| ScaleStep { hosts, per_host }));
    steps
}

/// 1, 2, 4, ... up to `most`, which is the last.
fn doublings(most: u32) -> Vec<u32> {
    let mut counts: Vec<u32> =
        (0..u32::BITS).map(|power| 1 << power).take_while(|count| *count < most).collect();
    counts.push(most.max(1));
    counts
}

/// A run of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleStep {
    /// Hosts that take part: the first ones.
    pub hosts: u32,
    /// Ranks on each.
    pub per_host: u32,
}

impl ScaleStep {
    /// Ranks in all.
    pub const fn ranks(self) -> u32 {
        self.hosts.saturating_mul(self.per_host)
    }

    /// The run that has so many ranks on up to `hosts` hosts.
    ///
    /// # Errors
    /// They cannot be divided among the hosts, or are more than these take.
    pub fn of(ranks: u32, hosts: u32, per_host: u32) -> Result<ScaleStep, String> {
        let most = hosts.saturating_mul(per_host);
        match ranks {
            0 => Err("0 ranks measure nothing".to_owned()),
            ranks if ranks > most => Err(format!("{ranks} ranks are more than the {most} of all hosts")),
            ranks if ranks <= hosts => Ok(ScaleStep { hosts: ranks, per_host: 1 }),
            ranks if ranks.is_multiple_of(hosts) => Ok(ScaleStep { hosts, per_host: ranks / hosts }),
            ranks => Err(format!("{ranks} ranks cannot be divided among {hosts} hosts")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(family: LauncherFamily, names: &[&str], origin: HostOrigin, per_host: u32) -> LaunchPlan {
        let program = match family {
            LauncherFamily::Slurm => "srun",
            LauncherFamily::Hydra => "mpiexec",
            LauncherFamily::OpenMpi => "mpirun",
        };
        LaunchPlan {
            launcher: Launcher {
                program: program.to_owned(),
                family,
                version: String::new(),
                plugins: vec!["pmi2".to_owned()],
            },
            hosts: JobHosts { names: names.iter().map(|name| (*name).to_owned()).collect(), origin },
            per_host,
            exported: vec!["FATHOM_HISTORY".to_owned()],
            is_root: true,
            command: ["fathom", "bench", "--fleet", "/mnt"].map(str::to_owned).to_vec(),
        }
    }

    #[test]
    fn each_launcher_has_its_options() {
        use HostOrigin::{Local, Named, Scheduler};
        use LauncherFamily::{Hydra, OpenMpi, Slurm};
        let hosts = &["h1", "h2", "h3"][..];
        for (plan, expected) in [
            (
                plan(Slurm, hosts, Scheduler("Slurm"), 2),
                "srun --mpi=pmi2 --nodes=3 --ntasks=6 --ntasks-per-node=2 --nodelist=h[1-3] --cpu-bind=none \
                 --kill-on-bad-exit=0 --wait=0",
            ),
            (plan(Hydra, hosts, Named, 1), "mpiexec -launcher ssh -hosts h1,h2,h3 -ppn 1 -n 3"),
            (plan(Hydra, hosts, Scheduler("PBS"), 2), "mpiexec -hosts h1,h2,h3 -ppn 2 -n 6"),
            (plan(Hydra, &[], Local, 4), "mpiexec -n 4"),
            (
                plan(OpenMpi, hosts, Named, 2),
                "mpirun --allow-run-as-root --bind-to none -n 6 --host h1:2,h2:2,h3:2 -x FATHOM_HISTORY",
            ),
            (
                plan(OpenMpi, &[], Local, 4),
                "mpirun --allow-run-as-root --bind-to none -n 4 --host localhost:4 -x FATHOM_HISTORY",
            ),
        ] {
            let expected = format!("{expected} fathom bench --fleet /mnt");
            assert_eq!(plan.words().map(|words| words.join(" ")), Ok(expected));
        }
        let mut without = plan(Slurm, hosts, Named, 1);
        without.launcher.plugins.clear();
        assert!(without.words().is_err());
    }

    #[test]
    fn schedulers_tell_the_hosts() {
        let found = |set: &[(&str, &str)], file: &str| {
            let variable =
                |name: &str| set.iter().find(|known| known.0 == name).map(|known| known.1.to_owned());
            JobHosts::of(Vec::new(), &variable, &|_| Ok(file.to_owned()))
        };
        let of = |names: &[&str], origin| {
            Ok(JobHosts { names: names.iter().map(|name| (*name).to_owned()).collect(), origin })
        };
        let slurm = [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "n[1-2]")];
        assert_eq!(found(&slurm, ""), of(&["n1", "n2"], HostOrigin::Scheduler("Slurm")));
        let pbs = [("PBS_NODEFILE", "/x")];
        assert_eq!(found(&pbs, "n1\nn1\nn2\n"), of(&["n1", "n2"], HostOrigin::Scheduler("PBS")));
        let engine = [("PE_HOSTFILE", "/x")];
        let file = "n1 4 all.q@n1 UNDEFINED\nn2 4 all.q@n2 UNDEFINED\n";
        assert_eq!(found(&engine, file), of(&["n1", "n2"], HostOrigin::Scheduler("Grid Engine")));
        let hydra = [("HYDRA_HOST_FILE", "/x")];
        let file = "fathom-worker-0.fathom:1\nfathom-worker-1.fathom:1\n";
        let pods = ["fathom-worker-0.fathom", "fathom-worker-1.fathom"];
        assert_eq!(found(&hydra, file), of(&pods, HostOrigin::Scheduler("hydra")));
        assert_eq!(found(&[], ""), of(&[], HostOrigin::Local));
    }

    #[test]
    fn series_double_the_hosts_and_then_the_ranks_on_each() {
        let ranks = |hosts, per_host| -> Vec<u32> {
            scale_steps(hosts, per_host).into_iter().map(ScaleStep::ranks).collect()
        };
        assert_eq!(ranks(64, 1), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(ranks(6, 1), [1, 2, 4, 6]);
        assert_eq!(ranks(3, 4), [1, 2, 3, 6, 12]);
        assert_eq!(ranks(1, 1), [1]);
        let step = |ranks| ScaleStep::of(ranks, 3, 4).map(|step| (step.hosts, step.per_host));
        assert_eq!((step(2), step(6)), (Ok((2, 1)), Ok((3, 2))));
        assert!(step(0).is_err() && step(7).is_err() && step(13).is_err());
    }
}
