//! Debian's kernels: downloaded with apt, unpacked below the build directory, never installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::process::output;

/// A kernel of Debian.
pub struct DebianKernel {
    /// Its version, as in tables.
    pub version: &'static str,
    /// The release of Debian that has it.
    suite: &'static str,
}

/// The kernels of the campaign.
pub const KERNELS: &[DebianKernel] =
    &[DebianKernel { version: "6.1", suite: "bookworm" }, DebianKernel { version: "6.12", suite: "trixie" }];

/// The archive, whatever the sources of this machine are.
const ARCHIVE: &str = "http://deb.debian.org/debian";
/// The keys that its lists are signed with.
pub const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The package that depends on the newest kernel.
const NEWEST: &str = "linux-image-amd64";

/// An unpacked kernel.
pub struct Kernel {
    /// As `uname -r` prints it.
    pub release: String,
    /// The directory with `lib/modules`.
    pub directory: PathBuf,
}

impl Kernel {
    /// The kernel, downloaded into `cache` if it is not there.
    pub fn unpacked(kernel: &DebianKernel, cache: &Path) -> anyhow::Result<Kernel> {
        let directory = cache.join(kernel.suite);
        if let Some(release) = release_in(&directory) {
            return Ok(Kernel { release, directory });
        }
        let work = tempfile::tempdir_in(made(cache)?)?;
        let package = download(kernel.suite, work.path())?;
        let unpacked = work.path().join("unpacked");
        output(Command::new("dpkg-deb").arg("-x").args([&package, &unpacked]))?;
        if !unpacked.join("lib").exists() {
            std::os::unix::fs::symlink("usr/lib", unpacked.join("lib"))?;
        }
        let release = release_in(&unpacked).context("the package has no kernel")?;
        output(Command::new("depmod").arg("--basedir").arg(&unpacked).arg(&release))?;
        std::fs::rename(&unpacked, &directory)?;
        Ok(Kernel { release, directory })
    }

    /// The kernel's image.
    pub fn image(&self) -> PathBuf {
        self.directory.join("boot").join(format!("vmlinuz-{}", self.release))
    }
}

fn made(directory: &Path) -> anyhow::Result<&Path> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(directory)
}

fn release_in(directory: &Path) -> Option<String> {
    let names = std::fs::read_dir(directory.join("boot")).ok()?.flatten();
    names.filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix("vmlinuz-")?.to_owned())).next()
}

/// Downloads the newest kernel of `suite` into `work`, with lists and settings of its own: the machine's stay as they are.
fn download(suite: &str, work: &Path) -> anyhow::Result<PathBuf> {
    for part in ["lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(work.join(part))?;
    }
    let sources = work.join("sources.list");
    std::fs::write(&sources, format!("deb [signed-by={KEYS}] {ARCHIVE} {suite} main\n"))?;
    let apt = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.current_dir(work).args([
            "-o",
            "Dir::Etc::SourceParts=/dev/null",
            "-o",
            "APT::Sandbox::User=root",
        ]);
        for (option, path) in [
            ("Etc::SourceList", &sources),
            ("State::Lists", &work.join("lists")),
            ("Cache", &work.join("cache")),
        ] {
            command.arg("-o").arg(format!("Dir::{option}={}", path.display()));
        }
        output(command.args(arguments))
    };
    apt("apt-get", &["update"])?;
    let dependencies = apt("apt-cache", &["depends", NEWEST])?;
    let newest = dependencies
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: "))
        .with_context(|| format!("{suite} has no {NEWEST}"))?;
    apt("apt-get", &["download", newest])?;
    let mut files = std::fs::read_dir(work)?.flatten().map(|entry| entry.path());
    files.find(|path| path.extension().is_some_and(|end| end == "deb")).context("apt-get downloaded nothing")
}
