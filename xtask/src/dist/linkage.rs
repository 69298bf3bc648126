//! The libraries that a binary needs, read from it: none may be missing from the dependencies of a package, and a static binary needs none.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use super::build::Build;
use crate::process::output;

/// The C library, and what Debian packs with it.
const GLIBC: &[&str] = &["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"];
const LIBGCC: &str = "libgcc_s.so.1";

/// What the loader must find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linkage {
    /// Names of libraries, each with the oldest glibc that has every function which is used of it, as 2 and 34.
    libraries: BTreeMap<String, Option<(u32, u32)>>,
    has_loader: bool,
}

impl Linkage {
    /// Reads that of `binary`, and fails if it is not linked as `build` says.
    pub fn read(build: &Build, binary: &Path) -> anyhow::Result<Linkage> {
        let mut readelf = Command::new("readelf");
        readelf.env("LC_ALL", "C").args(["--dynamic", "--program-headers", "--version-info", "--wide"]);
        let linkage = Linkage::parse(&output(readelf.arg(binary))?)?;
        linkage.check(build)?;
        Ok(linkage)
    }

    fn check(&self, build: &Build) -> anyhow::Result<()> {
        let needs_nothing = self.libraries.is_empty() && !self.has_loader;
        ensure!(
            needs_nothing == build.is_static,
            "{} is linked the wrong way: it needs the libraries {:?}",
            build.name,
            self.libraries.keys()
        );
        Ok(())
    }

    fn parse(text: &str) -> anyhow::Result<Linkage> {
        let mut linkage = Linkage::default();
        let mut versions_of = String::new();
        for line in text.lines() {
            linkage.has_loader |= line.contains("[Requesting program interpreter:");
            if line.contains("(NEEDED)") {
                let name = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                let name = name.context("readelf names no library")?.0;
                linkage.libraries.entry(name.to_owned()).or_default();
            }
            if let Some((_, rest)) = line.split_once("  File: ") {
                versions_of = rest.split_whitespace().next().unwrap_or_default().to_owned();
            }
            // Weak versions may be missing: the program asks whether such a function is there.
            let wanted = line.split_once("Name: GLIBC_").filter(|_| !line.contains("WEAK"));
            if let Some((_, rest)) = wanted {
                let oldest = linkage.libraries.entry(versions_of.clone()).or_default();
                *oldest = (*oldest).max(Some(version(rest)?));
            }
        }
        Ok(linkage)
    }

    /// The dependencies of a Debian package.
    pub fn debian(&self) -> anyhow::Result<String> {
        let oldest = self.libraries.values().copied().max().flatten();
        let (major, minor) = oldest.context("the binary needs no version of glibc")?;
        let mut packages = vec![format!("libc6 (>= {major}.{minor})")];
        for library in self.libraries.keys() {
            match library.as_str() {
                LIBGCC => packages.push("libgcc-s1".to_owned()),
                known if GLIBC.contains(&known) => {}
                other => bail!("the package of {other} is unknown: add it to the table"),
            }
        }
        Ok(packages.join(", "))
    }

    /// The requirements of an RPM package, which are libraries.
    pub fn rpm(&self) -> Vec<String> {
        let requirement = |(library, oldest): (&String, &Option<(u32, u32)>)| match oldest {
            Some((major, minor)) => format!("{library}(GLIBC_{major}.{minor})(64bit)"),
            None => format!("{library}()(64bit)"),
        };
        self.libraries.iter().map(requirement).collect()
    }
}

/// The version at the beginning of `text`, `2.34` or `2.2.5`, of which the third number says nothing.
fn version(text: &str) -> anyhow::Result<(u32, u32)> {
    let version = text.split_whitespace().next().unwrap_or_default();
    let mut numbers = version.split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => bail!("GLIBC_{version} is no version of glibc"),
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::build::{SHARED_X86_64, STATIC_X86_64};
    use super::*;

    const SHARED: &str = "\
  INTERP         0x0002e0 0x00000000000002e0 0x00000000000002e0 0x00001c 0x00001c R   0x1
      [Requesting program interpreter: /lib64/ld-linux-x86-64.so.2]
 0x0000000000000001 (NEEDED)             Shared library: [libgcc_s.so.1]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
Version needs section '.gnu.version_r' contains 2 entries:
  000000: Version: 1  File: libgcc_s.so.1  Cnt: 1
  0x0010:   Name: GCC_4.2.0  Flags: none  Version: 10
  0x0020: Version: 1  File: libc.so.6  Cnt: 4
  0x0060:   Name: GLIBC_2.2.5  Flags: none  Version: 3
  0x0070:   Name: GLIBC_2.34  Flags: none  Version: 9
  0x0080:   Name: GLIBC_2.9  Flags: none  Version: 9
  0x0090:   Name: GLIBC_2.38  Flags: WEAK  Version: 9
";

    /// The linkage of a shared binary for tests.
    pub fn shared() -> Linkage {
        Linkage::parse(SHARED).unwrap()
    }

    #[test]
    fn dependencies_are_those_of_the_binary() {
        assert_eq!(shared().debian().unwrap(), "libc6 (>= 2.34), libgcc-s1");
        assert_eq!(shared().rpm(), ["libc.so.6(GLIBC_2.34)(64bit)", "libgcc_s.so.1()(64bit)"]);
        let other = SHARED.replace("libgcc_s", "libaio");
        let message = Linkage::parse(&other).unwrap().debian().unwrap_err().to_string();
        assert_eq!(message, "the package of libaio.so.1 is unknown: add it to the table");
        assert!(Linkage::parse("  0x0060:   Name: GLIBC_PRIVATE  Flags: none").is_err());
    }

    #[test]
    fn the_way_of_linking_is_checked() {
        let of_static = Linkage::parse("There is no dynamic section in this file.\n").unwrap();
        assert!(of_static.check(&STATIC_X86_64).is_ok() && of_static.check(&SHARED_X86_64).is_err());
        assert!(shared().check(&SHARED_X86_64).is_ok() && shared().check(&STATIC_X86_64).is_err());
        assert!(of_static.debian().is_err());
    }
}
