//! `cargo xtask campaign kernels`: boots Debian's kernels in QEMU, without KVM, and there, as root and over stacks of
//! devices that a test machine lacks, runs each command that does I/O, and every kind of use that the guard must see.
//!
//! The program in the guest is this one: [`guest`] builds the stacks and writes a [`CheckLine`] for each check to a serial
//! port, which [`machine`] reads. A guest that hangs, panics or ends early fails the campaign.

mod check_line;
mod guest;
mod image;
mod kernel;
mod machine;
mod tally;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{bail, ensure};

use crate::gate::{cargo_command, target_directory};
use crate::packages::{Tool, require_all};
use crate::process::watch;
use image::Image;
use kernel::{DebianKernel, KERNELS, Kernel};
use tally::Tally;

/// What the campaign runs on the host; [`image::PROGRAMS`] has those of the guest.
const HOST_TOOLS: &[Tool] = &[
    Tool { program: kernel::KEYS, package: "debian-archive-keyring" },
    Tool { program: "cpio", package: "cpio" },
    Tool { program: "depmod", package: "kmod" },
    Tool { program: "dpkg-deb", package: "dpkg" },
    Tool { program: "ldd", package: "libc-bin" },
    Tool { program: "qemu-system-x86_64", package: "qemu-system-x86" },
];

/// The arguments of the campaign.
#[derive(Default)]
struct KernelsArguments<'a> {
    /// Only stacks with this in their name.
    only: &'a str,
    /// Only kernels with this in their name.
    kernel: &'a str,
}

/// Runs the campaign; in the guest, its part there.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    match arguments {
        ["--in-guest", rest @ ..] => guest::run(rest.first().copied().unwrap_or_default()),
        ["--hold", how, path] => guest::hold(how, Path::new(path)),
        _ => boot_all(root, &parsed(arguments)?),
    }
}

fn parsed<'a>(arguments: &[&'a str]) -> anyhow::Result<KernelsArguments<'a>> {
    let mut parsed = KernelsArguments::default();
    for pair in arguments.chunks(2) {
        match *pair {
            ["--only", name] => parsed.only = name,
            ["--kernel", name] => parsed.kernel = name,
            _ => bail!("kernels takes [--only STACK] [--kernel VERSION]"),
        }
    }
    Ok(parsed)
}

fn boot_all(root: &Path, arguments: &KernelsArguments<'_>) -> anyhow::Result<()> {
    require_all(HOST_TOOLS)?;
    require_all(image::PROGRAMS)?;
    watch(&mut cargo_command(root, &["build", "--quiet", "--release", "--package", "fathom"]))?;
    let directory = target_directory(root).join("kernels");
    let tally = Mutex::new(Tally::default());
    // Guests wait for their devices most of the time.
    std::thread::scope(|scope| {
        for debian in KERNELS.iter().filter(|kernel| kernel.version.contains(arguments.kernel)) {
            let (tally, directory) = (&tally, &directory);
            scope.spawn(move || {
                if let Err(error) = boot(root, debian, directory, arguments.only, tally) {
                    locked(tally).break_off(debian.version, &format!("{error:#}"));
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{tally}");
    ensure!(tally.holds(), "a check failed, a guest ended early, or nothing was checked");
    Ok(())
}

fn locked(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Boots one kernel, and counts its checks.
fn boot(
    root: &Path,
    debian: &DebianKernel,
    directory: &Path,
    only: &str,
    tally: &Mutex<Tally>,
) -> anyhow::Result<()> {
    let kernel = Kernel::unpacked(debian, directory)?;
    let image = Image::made(&kernel, &target_directory(root).join("release/fathom"), directory)?;
    println!("kernel {} boots ...", kernel.release);
    machine::run(&kernel, &image, only, &mut |line| {
        if let Some(failure) = &line.failure {
            println!("FAILED under {}: {}: {}: {failure}", debian.version, line.stack, line.name);
        }
        locked(tally).add(debian.version, line);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_pairs() {
        let parsed = parsed(&["--only", "zns", "--kernel", "6.1"]).unwrap();
        assert_eq!((parsed.only, parsed.kernel), ("zns", "6.1"));
        assert!(super::parsed(&["--only"]).is_err());
        assert!(super::parsed(&["--fresh"]).is_err());
    }
}
