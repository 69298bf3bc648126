//! The programs that the tests, the instruction counts and the fuzz targets use, and the Debian packages they come in.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use anyhow::{Context as _, bail};

use crate::process::output;

/// A program and its Debian package.
pub struct Tool {
    /// Its name on the search path, or the path of the file that is needed of it.
    pub program: &'static str,
    /// The package.
    pub package: &'static str,
}

/// A program of this package.
pub const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

/// The programs that the tests start, sorted; `cargo xtask tidy` compares the list with the tests.
pub static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let lines = include_str!("../packages.txt").lines().filter(|line| !line.starts_with('#'));
    let tools = lines.map(|line| line.split_once(' ').expect("a line is a program and its package"));
    tools.map(|(program, package)| tool(program, package)).collect()
});

/// The tools that `is_there` does not find.
fn absent(is_there: impl Fn(&str) -> bool) -> Vec<&'static Tool> {
    TOOLS.iter().filter(|tool| !is_there(tool.program)).collect()
}

/// Installs missing packages, or reports what will be skipped without them. Returns the messages for the developer.
pub fn install_missing() -> anyhow::Result<String> {
    let note = install(&absent(is_on_path))?;
    if is_root() {
        link_mtab()?;
    }
    Ok(note)
}

/// Makes `/etc/mtab`, which a minimal Debian lacks and without which mkfs.nilfs2 does not start.
fn link_mtab() -> anyhow::Result<()> {
    match std::os::unix::fs::symlink("../proc/self/mounts", "/etc/mtab") {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error).context("cannot make /etc/mtab"),
        _ => Ok(()),
    }
}

/// Installs the package of `program`, one of [`TOOLS`], if it is missing; fails if the program is still missing
/// afterwards.
pub fn require(program: &str) -> anyhow::Result<()> {
    let mut missing = absent(is_on_path);
    missing.retain(|tool| tool.program == program);
    let note = install(&missing)?;
    if is_on_path(program) { Ok(()) } else { bail!("{note}") }
}

/// Installs the packages of those of `tools` that are missing; fails if one is still missing afterwards.
pub fn require_all(tools: &[Tool]) -> anyhow::Result<()> {
    let missing: Vec<&Tool> = tools.iter().filter(|tool| !is_on_path(tool.program)).collect();
    let note = install(&missing)?;
    if missing.iter().all(|tool| is_on_path(tool.program)) { Ok(()) } else { bail!("{note}") }
}

fn install(missing: &[&Tool]) -> anyhow::Result<String> {
    if missing.is_empty() {
        return Ok("all there".to_owned());
    }
    let mut packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    packages.sort_unstable();
    packages.dedup();
    let packages_shown = packages.join(" ");
    if !is_root() || !is_on_path("apt-get") {
        let programs: Vec<&str> = missing.iter().map(|tool| tool.program).collect();
        return Ok(format!(
            "missing: {}; what needs them is skipped (as root on Debian: apt-get install {packages_shown})",
            programs.join(" ")
        ));
    }
    if apt_get("install", &packages).is_err() {
        // The lists may be absent (a fresh container) or older than the archive.
        apt_get("update", &[])?;
        apt_get("install", &packages)?;
    }
    if let Some(tool) = missing.iter().find(|tool| !is_on_path(tool.program)) {
        bail!("{} is not on the search path although {} is installed", tool.program, tool.package);
    }
    Ok(format!("installed {packages_shown}"))
}

fn apt_get(verb: &str, packages: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("apt-get");
    command.args(["--quiet", "--yes", verb]).env("DEBIAN_FRONTEND", "noninteractive");
    if verb == "install" {
        command.arg("--no-install-recommends").args(packages);
    }
    output(&mut command).map(drop)
}

/// True for the superuser.
pub fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| effective_user(&status) == Some("0"))
}

/// The effective user id in `/proc/self/status`: the second of the four.
fn effective_user(status: &str) -> Option<&str> {
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)
}

fn is_on_path(program: &str) -> bool {
    program_path(program).is_some()
}

/// Where a program is: on the search path, or where Debian keeps those of the superuser.
pub fn program_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .chain(server_versions())
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

/// Where Debian keeps the programs of each version of PostgreSQL, off the search path.
fn server_versions() -> impl Iterator<Item = PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_tools_are_absent() {
        assert!(absent(|_| true).is_empty());
        let without_fio: Vec<_> =
            absent(|program| program != "fio").iter().map(|tool| tool.package).collect();
        assert_eq!(without_fio, ["fio"]);
        assert_eq!(absent(|_| false).len(), TOOLS.len());
    }

    #[test]
    fn tools_are_sorted_and_unique() {
        assert!(TOOLS.windows(2).all(|pair| pair[0].program < pair[1].program));
    }

    #[test]
    fn the_effective_user_is_the_second_number() {
        let check = |status: &str, expected| assert_eq!(effective_user(status), expected, "{status}");
        check("Name:\tx\nUid:\t1000\t0\t0\t0\n", Some("0"));
        check("Uid:\t0\t1000\t0\t0\n", Some("1000"));
        check("Name:\tx\n", None);
    }
}
