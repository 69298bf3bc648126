//! The binaries of a release: for which machines, how they are linked, and the compilation whose result depends on the source alone.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::release::{EPOCH_VARIABLE, PACKAGE, Release};
use crate::process::{output, watch};

/// One binary.
#[derive(Debug, PartialEq, Eq)]
pub struct Build {
    /// Its name in those of files.
    pub name: &'static str,
    /// Its target, by the name of the compiler.
    pub triple: &'static str,
    /// The architecture, by the name of Debian and of images.
    pub architecture: &'static str,
    pub is_static: bool,
    /// The C compiler, which links it too, where it is not the machine's own.
    pub cross_compiler: Option<&'static str>,
}

/// Runs on every x86-64 machine, and loads no libraries.
pub const STATIC_X86_64: Build = Build {
    name: "x86_64-linux-static",
    triple: "x86_64-unknown-linux-gnu",
    architecture: "amd64",
    is_static: true,
    cross_compiler: None,
};
/// The binary of the packages, which loads PostgreSQL's client library where a history needs it.
pub const SHARED_X86_64: Build = Build { name: "x86_64-linux-gnu", is_static: false, ..STATIC_X86_64 };
/// Runs on every aarch64 machine.
pub const STATIC_AARCH64: Build = Build {
    name: "aarch64-linux-static",
    triple: "aarch64-unknown-linux-gnu",
    architecture: "arm64",
    is_static: true,
    cross_compiler: Some("aarch64-linux-gnu-gcc"),
};

/// Where a release is made.
#[derive(Clone, Debug)]
pub struct Place {
    /// The source.
    pub root: PathBuf,
    /// Everything on the way, kept for the next time.
    pub work: PathBuf,
    /// The artefacts.
    pub out: PathBuf,
    /// Cargo's home, where the sources of dependencies are.
    pub cargo_home: PathBuf,
}

impl Place {
    /// A directory below `work`, empty.
    pub fn emptied(&self, name: &str) -> anyhow::Result<PathBuf> {
        let directory = self.work.join(name);
        empty(&directory)?;
        Ok(directory)
    }
}

/// Makes `directory`, or removes what is in it.
pub fn empty(directory: &Path) -> anyhow::Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)
            .with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))
}

impl Build {
    /// Compiles it; returns the binary.
    pub fn compile(&self, place: &Place, release: &Release) -> anyhow::Result<PathBuf> {
        self.require_standard_library(&place.root)?;
        let target = place.work.join(self.name);
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&place.root).args(["build", "--profile", "dist", "--locked", "--package", PACKAGE]);
        cargo
            .args(["--all-features", "--bin", PACKAGE, "--target", self.triple, "--target-dir"])
            .arg(&target);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_a_wish(&name.to_string_lossy())) {
            cargo.env_remove(name);
        }
        cargo.env("CARGO_ENCODED_RUSTFLAGS", self.flags(place, &target));
        cargo.env("CARGO_HOME", &place.cargo_home).env(EPOCH_VARIABLE, release.epoch.to_string());
        if let Some(compiler) = self.cross_compiler {
            let triple = self.triple.replace('-', "_");
            cargo.env(format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase()), compiler);
            cargo.env(format!("CC_{triple}"), compiler);
        }
        watch(&mut cargo)?;
        Ok(target.join(self.triple).join("dist").join(PACKAGE))
    }

    /// The compiler's flags, separated as cargo wants them. Of several prefixes that fit, the last is replaced.
    fn flags(&self, place: &Place, target: &Path) -> OsString {
        let linking = if self.is_static { "+crt-static" } else { "-crt-static" };
        let mut flags = OsString::from(format!("-Ctarget-feature={linking}"));
        for (prefix, name) in [(&*place.root, "fathom"), (&*place.cargo_home, "cargo"), (target, "target")] {
            flags.push("\u{1f}--remap-path-prefix=");
            flags.push(prefix);
            flags.push(format!("=/{name}"));
        }
        flags
    }

    /// Adds the target to the toolchain where it is missing.
    fn require_standard_library(&self, root: &Path) -> anyhow::Result<()> {
        let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root))?;
        let library = Path::new(&sysroot).join("lib/rustlib").join(self.triple).join("lib");
        if library.is_dir() {
            return Ok(());
        }
        output(Command::new("rustup").args(["target", "add", self.triple]).current_dir(root))
            .with_context(|| format!("the toolchain has no standard library for {}", self.triple))?;
        ensure!(library.is_dir(), "rustup added {} to another toolchain than rustc's", self.triple);
        Ok(())
    }
}

/// True for variables by which developers change how they build.
fn is_a_wish(variable: &str) -> bool {
    let exact = ["RUSTFLAGS", "CFLAGS", "CARGO_INCREMENTAL", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "CC"];
    let starts = ["CARGO_PROFILE_", "CARGO_TARGET_X86", "CARGO_TARGET_AARCH64", "CFLAGS_", "CC_", "TARGET_C"];
    exact.contains(&variable) || starts.iter().any(|start| variable.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_hide_where_it_was_built() {
        let place = Place {
            root: "/home/a b/fathom".into(),
            work: "/w".into(),
            out: "/o".into(),
            cargo_home: "/home/a b/.cargo".into(),
        };
        let flags = |build: &Build| {
            let flags = build.flags(&place, Path::new("/w/t")).into_string().unwrap();
            flags.split('\u{1f}').map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            flags(&STATIC_AARCH64),
            [
                "-Ctarget-feature=+crt-static",
                "--remap-path-prefix=/home/a b/fathom=/fathom",
                "--remap-path-prefix=/home/a b/.cargo=/cargo",
                "--remap-path-prefix=/w/t=/target",
            ]
        );
        assert_eq!(flags(&SHARED_X86_64)[0], "-Ctarget-feature=-crt-static");
    }

    #[test]
    fn wishes_of_developers_are_left_out() {
        for name in ["RUSTFLAGS", "CARGO_PROFILE_RELEASE_DEBUG", "CC_x86_64_unknown_linux_gnu", "CFLAGS"] {
            assert!(is_a_wish(name), "{name}");
        }
        for name in ["PATH", "CARGO_HOME", "CARGO_BUILD_JOBS", "RUSTUP_TOOLCHAIN", "CCACHE_DIR"] {
            assert!(!is_a_wish(name), "{name}");
        }
    }
}
