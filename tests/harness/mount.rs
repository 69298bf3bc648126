//! Mounted file systems.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::shell::{must_run, scratch, try_run};

/// A mounted file system; taken down on drop.
#[derive(Debug)]
pub struct Mount {
    directory: TempDir,
}

impl Mount {
    /// Makes a file system of `kind` (`ext4`, `xfs`) on `device` and mounts it. xfs needs 300 MiB.
    pub fn made(device: &Path, kind: &str) -> Self {
        let force = if kind == "xfs" { "-f" } else { "-F" };
        must_run(Command::new(format!("mkfs.{kind}")).args(["-q", force]).arg(device));
        Self::of(device, &[])
    }

    /// Mounts the file system on `device` with `options` (`ro`, `noatime`).
    pub fn of(device: &Path, options: &[&str]) -> Self {
        Self::by(Command::new("mount").arg(device), options)
    }

    /// A memory file system of `size` bytes: a small one gives ENOSPC. It refuses O_DIRECT before Linux 6.6.
    pub fn tmpfs(size: u64) -> Self {
        Self::by(Command::new("mount").args(["-t", "tmpfs", "fathom-test"]), &[&format!("size={size}")])
    }

    /// The kernel's traces.
    pub fn tracefs() -> Self {
        Self::by(Command::new("mount").args(["-t", "tracefs", "fathom-test"]), &[])
    }

    fn by(mount: &mut Command, options: &[&str]) -> Self {
        let directory = scratch();
        if !options.is_empty() {
            mount.arg("-o").arg(options.join(","));
        }
        must_run(mount.arg(directory.path()));
        Mount { directory }
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A path inside.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if !try_run(Command::new("umount").arg(self.path())) {
            // A file is still open: at least the mount is not reachable any more.
            try_run(Command::new("umount").arg("--lazy").arg(self.path()));
        }
    }
}
