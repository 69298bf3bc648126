//! The launchers of parallel jobs on this machine: which they are, and which one starts a job.

use std::time::Duration;

use fathom_sys::child;
use serde::Serialize;

use super::process::{ProgramFailure, output_of};
use crate::AssessError;

/// How long a launcher may take to say its version: `srun` asks its controller.
const PATIENCE: Duration = Duration::from_secs(10);

/// The launchers that are looked for, in the order of preference outside of an allocation of Slurm.
pub const LAUNCHERS: [&str; 3] = ["mpiexec", "mpirun", "srun"];
/// Plugins of `srun` by which ranks find each other, in the order of preference.
const PLUGINS: [&str; 2] = ["pmi2", "pmix"];

/// Launchers that take the same options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LauncherFamily {
    /// `srun` of Slurm.
    Slurm,
    /// `mpiexec` of MPICH, Intel MPI and MVAPICH.
    Hydra,
    /// `mpirun` and `mpiexec` of Open MPI.
    OpenMpi,
}

impl LauncherFamily {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            LauncherFamily::Slurm => "Slurm",
            LauncherFamily::Hydra => "MPICH hydra",
            LauncherFamily::OpenMpi => "Open MPI",
        }
    }
}

/// A launcher of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Launcher {
    /// As it is called.
    pub program: String,
    /// Whose options it takes.
    pub family: LauncherFamily,
    /// Its version; empty where it does not say.
    pub version: String,
    /// Plugins of `srun` by which ranks can find each other.
    pub plugins: Vec<String>,
}

const INSTALL: &str = "install MPICH (mpiexec) or Open MPI (mpirun), or use srun in an allocation of Slurm";

impl Launcher {
    /// The launcher of this name or path; `None` where there is none.
    ///
    /// # Errors
    /// There is a program of this name that does not say which launcher it is.
    pub fn find(program: &str) -> Result<Option<Launcher>, AssessError> {
        let error = |message: String| AssessError::usage(message, INSTALL);
        let output = match output_of(child::command(program).arg("--version"), PATIENCE) {
            Ok(output) => output,
            Err(ProgramFailure::Absent) => return Ok(None),
            Err(ProgramFailure::NotStarted(cause)) => {
                return Err(error(format!("cannot start {program}: {cause}")));
            }
            Err(ProgramFailure::TimedOut) => {
                return Err(error(format!("{program} --version did not end in {} s", PATIENCE.as_secs())));
            }
        };
        let text = format!("{}\n{}", output.stdout, output.stderr);
        let Some((family, version)) = identified(&text) else {
            let last = output.stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
            return Err(error(match last.filter(|_| output.code != Some(0)) {
                Some(said) => format!("{program} --version fails ({said})"),
                None => format!("{program} is no launcher of Slurm, MPICH, Intel MPI or Open MPI"),
            }));
        };
        let plugins = if family == LauncherFamily::Slurm { plugins(program) } else { Vec::new() };
        Ok(Some(Launcher { program: program.to_owned(), family, version, plugins }))
    }

    /// The launcher that starts a job: the one that is named, else `srun` in an allocation of Slurm, `mpiexec`, or `mpirun`.
    ///
    /// # Errors
    /// There is none.
    pub fn chosen(named: Option<&str>, is_in_slurm: bool) -> Result<Launcher, AssessError> {
        if let Some(program) = named {
            let absent = || AssessError::usage(format!("cannot find the launcher {program}"), INSTALL);
            return Launcher::find(program)?.ok_or_else(absent);
        }
        let outside = ["mpiexec", "mpirun"];
        let candidates = ["srun"].into_iter().filter(|_| is_in_slurm).chain(outside);
        let mut first_error = None;
        for program in candidates {
            match Launcher::find(program) {
                Ok(Some(launcher)) => return Ok(launcher),
                Ok(None) => {}
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        let none = || AssessError::usage("cannot find a launcher: neither mpiexec nor mpirun", INSTALL);
        Err(first_error.unwrap_or_else(none))
    }

    /// The plugin of `srun` that ranks are started with; `None` where it has neither that fathom speaks.
    pub fn plugin(&self) -> Option<&'static str> {
        PLUGINS.into_iter().find(|name| self.plugins.iter().any(|known| known == name))
    }
}

/// The family and version that a launcher says it has.
fn identified(text: &str) -> Option<(LauncherFamily, String)> {
    let first = text.lines().find(|line| !line.trim().is_empty())?.trim();
    if let Some(version) = first.strip_prefix("slurm") {
        let version = version.trim_start_matches("-wlm").trim();
        return Some((LauncherFamily::Slurm, version.to_owned()));
    }
    if text.contains("Open MPI") || text.contains("OpenRTE") || text.contains("open-mpi.org") {
        let version = first.split_whitespace().next_back().unwrap_or_default();
        return Some((LauncherFamily::OpenMpi, version.to_owned()));
    }
    if text.contains("HYDRA") || text.contains("Intel(R) MPI Library") {
        let labelled = text.lines().find_map(|line| line.trim().strip_prefix("Version:"));
        let word = |text: &str| {
            let (_, behind) = text.split_once("Version ")?;
            behind.split_whitespace().next().map(str::to_owned)
        };
        let version = labelled.map(|version| version.trim().to_owned()).or_else(|| word(text));
        return Some((LauncherFamily::Hydra, version.unwrap_or_default()));
    }
    None
}

/// The plugins that `srun --mpi=list` names.
fn plugins(program: &str) -> Vec<String> {
    match output_of(child::command(program).arg("--mpi=list"), PATIENCE) {
        Ok(output) => listed_plugins(&format!("{}\n{}", output.stdout, output.stderr)),
        Err(_) => Vec::new(),
    }
}

fn listed_plugins(text: &str) -> Vec<String> {
    let words = text.split([' ', '\t', '\n', ':', ',']).map(str::trim);
    let mut found: Vec<String> = words.filter(|word| word.starts_with("pmi")).map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_what_they_say() {
        let hydra =
            "HYDRA build details:\n    Version:                                 4.0.2\n    Release Date: x\n";
        let intel = "Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307 (id: d82b3071db)\n";
        for (text, expected) in [
            ("slurm-wlm 22.05.8\n", Some((LauncherFamily::Slurm, "22.05.8"))),
            ("slurm 24.11.1\n", Some((LauncherFamily::Slurm, "24.11.1"))),
            (
                "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
                Some((LauncherFamily::OpenMpi, "4.1.4")),
            ),
            ("mpiexec (OpenRTE) 4.1.4\n", Some((LauncherFamily::OpenMpi, "4.1.4"))),
            (hydra, Some((LauncherFamily::Hydra, "4.0.2"))),
            (intel, Some((LauncherFamily::Hydra, "2021.9"))),
            ("GNU bash, version 5\n", None),
            ("", None),
        ] {
            let expected = expected.map(|(family, version)| (family, version.to_owned()));
            assert_eq!(identified(text), expected, "{text}");
        }
    }

    #[test]
    fn plugins_of_old_and_new_slurm() {
        let old = "srun: MPI types are...\nsrun: pmi2\nsrun: cray_shasta\nsrun: none\n";
        let new = "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\nspecific pmix plugin versions available: pmix_v4\n";
        assert_eq!(listed_plugins(old), ["pmi2"]);
        assert_eq!(listed_plugins(new), ["pmi2", "pmix", "pmix_v4"]);
        let launcher = |text: &str| Launcher {
            program: "srun".to_owned(),
            family: LauncherFamily::Slurm,
            version: String::new(),
            plugins: listed_plugins(text),
        };
        assert_eq!(launcher(new).plugin(), Some("pmi2"));
        assert_eq!(launcher("\tpmix\n\tpmix_v4\n").plugin(), Some("pmix"));
        assert_eq!(launcher("\tnone\n").plugin(), None);
    }
}
