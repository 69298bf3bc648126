//! The programs that the tests, the instruction counts and the fuzz targets use, and the Debian packages they come in.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// A program and its Debian package.
pub struct Tool {
    /// Its name on the search path, or the path of the file that is needed of it.
    pub program: &'static str,
    /// The package.
    pub package: &'static str,
}

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

/// The programs that the tests start, sorted; `cargo xtask tidy` compares the list with the tests.
pub const TOOLS: &[Tool] = &[
    tool("/usr/include/nbdkit-plugin.h", "nbdkit-plugin-dev"),
    tool("addpart", "util-linux"),
    tool("bash", "bash"),
    tool("blkid", "util-linux"),
    tool("chrt", "util-linux"),
    tool("cryptsetup", "cryptsetup-bin"),
    tool("dmsetup", "dmsetup"),
    tool("fio", "fio"),
    tool("fio2gnuplot", "fio"),
    tool("fio_jsonplus_clat2csv", "fio"),
    tool("fish", "fish"),
    tool("fsfreeze", "util-linux"),
    tool("fuse2fs", "fuse2fs"),
    tool("fusermount3", "fuse3"),
    tool("g++", "g++"),
    tool("genfio", "fio"),
    tool("genisoimage", "genisoimage"),
    tool("genromfs", "genromfs"),
    tool("gzip", "gzip"),
    tool("hformat", "hfsutils"),
    tool("ioping", "ioping"),
    tool("iostat", "sysstat"),
    tool("ip", "iproute2"),
    tool("losetup", "mount"),
    tool("make-bcache", "bcache-tools"),
    tool("makefs", "makefs"),
    tool("mandoc", "mandoc"),
    tool("mkapfs", "apfsprogs"),
    tool("mkfs.bfs", "util-linux"),
    tool("mkfs.btrfs", "btrfs-progs"),
    tool("mkfs.cramfs", "util-linux"),
    tool("mkfs.erofs", "erofs-utils"),
    tool("mkfs.exfat", "exfatprogs"),
    tool("mkfs.ext2", "e2fsprogs"),
    tool("mkfs.ext3", "e2fsprogs"),
    tool("mkfs.ext4", "e2fsprogs"),
    tool("mkfs.f2fs", "f2fs-tools"),
    tool("mkfs.jfs", "jfsutils"),
    tool("mkfs.minix", "util-linux"),
    tool("mkfs.nilfs2", "nilfs-tools"),
    tool("mkfs.ntfs", "ntfs-3g"),
    tool("mkfs.reiserfs", "reiserfsprogs"),
    tool("mkfs.ubifs", "mtd-utils"),
    tool("mkfs.vfat", "dosfstools"),
    tool("mkfs.xfs", "xfsprogs"),
    tool("mksquashfs", "squashfs-tools"),
    tool("mkswap", "util-linux"),
    tool("mkudffs", "udftools"),
    tool("mount", "mount"),
    tool("mpiexec.mpich", "mpich"),
    tool("mpirun.openmpi", "openmpi-bin"),
    tool("munged", "munge"),
    tool("nbdfuse", "libnbd-bin"),
    tool("nbdkit", "nbdkit"),
    tool("nice", "coreutils"),
    tool("nsenter", "util-linux"),
    tool("parted", "parted"),
    tool("pg_ctl", "postgresql"),
    tool("pip3", "python3-pip"),
    tool("prlimit", "util-linux"),
    tool("pvcreate", "lvm2"),
    tool("python3", "python3"),
    tool("script", "bsdutils"),
    tool("setpriv", "util-linux"),
    tool("setsid", "util-linux"),
    tool("sfdisk", "fdisk"),
    tool("slurmctld", "slurmctld"),
    tool("slurmd", "slurmd"),
    tool("sqlite3", "sqlite3"),
    tool("srun", "slurm-client"),
    tool("ssh", "openssh-client"),
    tool("sshd", "openssh-server"),
    tool("strace", "strace"),
    tool("swapon", "mount"),
    tool("taskset", "util-linux"),
    tool("ubinize", "mtd-utils"),
    tool("unshare", "util-linux"),
    tool("valgrind", "valgrind"),
    tool("veritysetup", "cryptsetup-bin"),
    tool("wipefs", "util-linux"),
    tool("zsh", "zsh"),
];

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
    command
        .args(["--quiet", "--yes"])
        .arg(verb)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    if verb == "install" {
        command.arg("--no-install-recommends").args(packages);
    }
    let output = command.output().context("cannot run apt-get")?;
    if !output.status.success() {
        bail!(
            "apt-get {verb} {} failed:\n{}",
            packages.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
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
