//! The words after `cargo xtask dist`.

use anyhow::bail;

/// The usage text.
pub const USAGE: &str = "\
cargo xtask dist [--check] [--check-reproducible] [--without-aarch64]

Builds what users install into target/dist: static binaries for x86-64 and aarch64 as archives and OCI images, a Debian
and an RPM package for x86-64, manifests for Kubernetes, SBOMs and SHA256SUMS. Needs an x86-64 machine; as root on
Debian it installs the tools that it needs.

  --check               install and run every artefact: in chroots, namespaces and under qemu-user (as root)
  --check-reproducible  build everything again from a copy of the source elsewhere, and compare the bytes
  --without-aarch64     build for x86-64 only

All times in the artefacts are those of SOURCE_DATE_EPOCH, or of the commit.";

/// The parsed options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Install and run the artefacts.
    pub check: bool,
    /// Build a second time and compare.
    pub check_reproducible: bool,
    /// Build for x86-64 only.
    pub without_aarch64: bool,
}

impl Options {
    /// Reads them.
    pub fn parse(arguments: &[&str]) -> anyhow::Result<Options> {
        let mut options = Options::default();
        for argument in arguments {
            match *argument {
                "--check" => options.check = true,
                "--check-reproducible" => options.check_reproducible = true,
                "--without-aarch64" => options.without_aarch64 = true,
                other => bail!("unknown option {other}\n\n{USAGE}"),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_others_refused() {
        let all = Options { check: true, check_reproducible: true, without_aarch64: true };
        let words = ["--check", "--check-reproducible", "--without-aarch64"];
        assert_eq!(Options::parse(&words).unwrap(), all);
        assert_eq!(Options::parse(&[]).unwrap(), Options::default());
        assert!(words.iter().all(|word| USAGE.contains(word)));
        for word in ["--quick", "check", "--check=yes"] {
            let message = Options::parse(&[word]).unwrap_err().to_string();
            assert!(message.starts_with(&format!("unknown option {word}\n")), "{message}");
        }
    }
}
