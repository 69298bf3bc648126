//! The description of the machine and the programs of a measurement.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::programs::{Programs, version};

/// The machine, the day and the versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Day, UTC.
    pub date: String,
    /// The CPU's name for itself.
    pub cpu: String,
    /// CPUs that may be used.
    pub cpus: usize,
    /// Release of the kernel.
    pub kernel: String,
    /// Ours, with the commit it was built from.
    pub fathom: String,
    /// fio's.
    pub fio: String,
}

impl Host {
    /// Asks all of them.
    pub fn look(root: &Path, programs: &Programs, cpus: usize) -> anyhow::Result<Host> {
        let cpu_info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel =
            std::fs::read_to_string("/proc/sys/kernel/osrelease").context("which kernel is this?")?;
        let mut fathom = version(&programs.fathom)?;
        if let Some(commit) = commit(root) {
            fathom = format!("{fathom} ({commit})");
        }
        Ok(Host {
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
            cpu: cpu_name(&cpu_info),
            cpus,
            kernel: kernel.trim().to_owned(),
            fathom,
            fio: version(&programs.fio)?,
        })
    }

    /// In one line.
    pub fn shown(&self) -> String {
        let Host { date, cpu, cpus, kernel, fathom, fio } = self;
        let plural = if *cpus == 1 { "CPU" } else { "CPUs" };
        format!("{date}, {cpu}, {cpus} {plural}, Linux {kernel}, {fathom} and {fio}")
    }
}

/// The model, which not every architecture names.
fn cpu_name(cpu_info: &str) -> String {
    let model = cpu_info.lines().find_map(|line| line.strip_prefix("model name"));
    let name = model.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.filter(|name| !name.is_empty()).unwrap_or(std::env::consts::ARCH).to_owned()
}

/// The commit of the working tree, and whether it differs; `None` outside a repository.
fn commit(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no", "--", "crates", "Cargo.toml"])?;
    Some(if changes.is_empty() { format!("commit {commit}") } else { format!("commit {commit} and changes") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_named_by_model_or_architecture() {
        let check = |cpu_info: &str, expected: &str| assert_eq!(cpu_name(cpu_info), expected, "{cpu_info}");
        check("processor\t: 0\nmodel name\t: Some CPU: 9\nmodel name\t: Other\n", "Some CPU: 9");
        check("processor\t: 0\nBogoMIPS\t: 50\n", std::env::consts::ARCH);
        check("model name\t:\n", std::env::consts::ARCH);
    }

    #[test]
    fn a_host_is_shown_in_one_line() {
        let host = Host {
            date: "2026-01-02".to_owned(),
            cpu: "Some CPU".to_owned(),
            cpus: 1,
            kernel: "6.18.0".to_owned(),
            fathom: "fathom 0.1.0 (commit 0a1b2c3)".to_owned(),
            fio: "fio-3.33".to_owned(),
        };
        assert_eq!(
            host.shown(),
            "2026-01-02, Some CPU, 1 CPU, Linux 6.18.0, fathom 0.1.0 (commit 0a1b2c3) and fio-3.33"
        );
    }
}
