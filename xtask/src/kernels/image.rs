//! The initramfs of the guest: fathom, this program, the tools that build stacks, and the modules of the kernel.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::kernel::Kernel;
use crate::packages::{Tool, program_path};
use crate::process::output;

/// The programs of the guest.
pub const PROGRAMS: &[Tool] = &[
    Tool { program: "blockdev", package: "util-linux" },
    Tool { program: "busybox", package: "busybox-static" },
    Tool { program: "cryptsetup", package: "cryptsetup-bin" },
    Tool { program: "dmsetup", package: "dmsetup" },
    Tool { program: "losetup", package: "mount" },
    Tool { program: "lvm", package: "lvm2" },
    Tool { program: "mdadm", package: "mdadm" },
    Tool { program: "mkfs.ext4", package: "e2fsprogs" },
    Tool { program: "mkswap", package: "util-linux" },
    Tool { program: "modprobe", package: "kmod" },
    Tool { program: "mount", package: "mount" },
    Tool { program: "sfdisk", package: "fdisk" },
    Tool { program: "swapoff", package: "mount" },
    Tool { program: "swapon", package: "mount" },
    Tool { program: "umount", package: "mount" },
    Tool { program: "unshare", package: "util-linux" },
];

/// The modules that the guest loads or the kernel requests; what they depend on comes with them.
const MODULES: &[&str] = &[
    "nvme",
    "null_blk",
    "scsi_debug",
    "sd_mod",
    "dm-mod",
    "dm-crypt",
    "dm-multipath",
    "dm-round-robin",
    "raid1",
    "loop",
    "ext4",
    "crc32c",
    "xts",
    "aes",
    "af_alg",
    "algif_skcipher",
    "algif_hash",
    "essiv",
    "configfs",
];

/// Directories of the guest.
const DIRECTORIES: &[&str] = &["bin", "dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp", "usr"];

/// The first process. Variables for tools that otherwise wait for udev, which the guest lacks.
const INIT: &str = "#!/bin/busybox sh
export PATH=/bin HOME=/root DM_DISABLE_UDEV=1 MDADM_NO_UDEV=1 NO_COLOR=1
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t tmpfs run /run
busybox mount -t tmpfs tmp /tmp
xtask campaign kernels --in-guest $FATHOM_ONLY > /dev/ttyS1 2>&1
busybox sync
busybox poweroff -f
";

/// An initramfs.
pub struct Image {
    /// The archive.
    pub path: PathBuf,
}

impl Image {
    /// Makes the initramfs for `kernel` in `directory`.
    pub fn made(kernel: &Kernel, fathom: &Path, directory: &Path) -> anyhow::Result<Image> {
        let work = tempfile::tempdir_in(directory)?;
        let root = work.path();
        for name in DIRECTORIES {
            std::fs::create_dir_all(root.join(name))?;
        }
        for link in ["sbin", "usr/bin", "usr/sbin"] {
            std::os::unix::fs::symlink("/bin", root.join(link))?;
        }
        let this = std::env::current_exe()?;
        let mut programs = vec![("fathom", fathom.to_owned()), ("xtask", this)];
        for tool in PROGRAMS {
            let path = program_path(tool.program).with_context(|| format!("{} is missing", tool.program))?;
            programs.push((tool.program, path));
        }
        for (name, path) in programs {
            copied(&path, &root.join("bin").join(name))?;
            libraries(&path)?.iter().try_for_each(|library| copied(library, &below(root, library)))?;
        }
        modules(kernel)?.iter().try_for_each(|module| {
            copied(module, &root.join(module.strip_prefix(&kernel.directory).unwrap_or(module)))
        })?;
        let lists = Path::new("lib/modules").join(&kernel.release);
        for list in ["modules.builtin", "modules.order"] {
            copied(&kernel.directory.join(&lists).join(list), &root.join(&lists).join(list))?;
        }
        output(Command::new("depmod").arg("--basedir").arg(root).arg(&kernel.release))?;
        std::fs::write(root.join("init"), INIT)?;
        let path = directory.join(format!("initramfs-{}", kernel.release));
        let archive = "chmod 755 init && find . | cpio --quiet --create --format=newc > \"$0\"";
        output(Command::new("sh").current_dir(root).args(["-c", archive]).arg(&path))?;
        Ok(Image { path })
    }
}

fn below(root: &Path, absolute: &Path) -> PathBuf {
    root.join(absolute.strip_prefix("/").unwrap_or(absolute))
}

fn copied(from: &Path, to: &Path) -> anyhow::Result<()> {
    let directory = to.parent().expect("files lie in directories");
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::copy(from, to))
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// The shared libraries of a program; none of a static one, which `ldd` fails on.
fn libraries(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = Command::new("ldd").arg(program).output().context("cannot run ldd")?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    ensure!(!text.contains("not found"), "{} lacks a library:\n{text}", program.display());
    Ok(text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect())
}

/// The files of [`MODULES`] and of all that they depend on, but for those that are built in.
fn modules(kernel: &Kernel) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for module in MODULES {
        let mut modprobe = Command::new(program_path("modprobe").context("modprobe is missing")?);
        modprobe.arg("--dirname").arg(&kernel.directory).args(["--set-version", &kernel.release]);
        let shown = output(modprobe.args(["--show-depends", module]))?;
        files.extend(shown.lines().filter_map(inserted));
    }
    Ok(files)
}

/// The file on a line of `modprobe --show-depends`.
fn inserted(line: &str) -> Option<PathBuf> {
    line.strip_prefix("insmod ")?.split_whitespace().next().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_files_or_built_in() {
        assert_eq!(inserted("insmod /k/loop.ko.xz max_loop=8"), Some(PathBuf::from("/k/loop.ko.xz")));
        assert_eq!(inserted("builtin crc32c"), None);
    }
}
