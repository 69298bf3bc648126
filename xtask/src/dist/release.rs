//! The facts that all artefacts of a release share.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::process::output;

/// The variable of the specification of reproducible builds.
pub const EPOCH_VARIABLE: &str = "SOURCE_DATE_EPOCH";
/// Who answers for the packages.
pub const MAINTAINER: &str = "fathom developers <fathom-io@users.noreply.github.com>";
/// The package that is released.
pub const PACKAGE: &str = "fathom";
/// What the packages say below the one line of the summary.
pub const DESCRIPTION: &str = "\
fathom measures the IOPS, throughput and latency that a disk or cloud volume delivers, finds its limits, and checks them
against what you need or what the provider publishes. It runs the command lines and job files of fio with engines of its
own, and keeps every run as a complete record.";

/// A release.
#[derive(Clone, Debug)]
pub struct Release {
    pub version: String,
    /// One line, without a full stop.
    pub summary: String,
    pub licence: String,
    pub repository: String,
    /// The compiler, as it names itself.
    pub rustc: String,
    /// All times in the artefacts, seconds since 1970.
    pub epoch: i64,
}

impl Release {
    /// The release of the source at `root`, at the time that the environment or the commit gives.
    pub fn read(root: &Path) -> anyhow::Result<Release> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(root)
            .args(["metadata", "--no-deps", "--format-version=1", "--locked", "--offline"]);
        let metadata = serde_json::from_str(&output(&mut cargo)?).context("cargo metadata is not JSON")?;
        let rustc = output(Command::new("rustc").arg("--version").current_dir(root))?;
        Release::of(&metadata, rustc, epoch(root)?)
    }

    fn of(metadata: &Value, rustc: String, epoch: i64) -> anyhow::Result<Release> {
        let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
        let package = packages.iter().find(|package| package["name"] == PACKAGE);
        let package = package.with_context(|| format!("the workspace has no package {PACKAGE}"))?;
        let text = |key: &str| {
            let text = package[key].as_str().map(str::to_owned);
            text.with_context(|| format!("the manifest of {PACKAGE} has no {key}"))
        };
        Ok(Release {
            version: text("version")?,
            summary: text("description")?,
            licence: text("license")?,
            repository: text("repository")?,
            rustc,
            epoch,
        })
    }

    /// The time of the artefacts in RFC 3339.
    pub fn timestamp(&self) -> anyhow::Result<String> {
        let time = jiff::Timestamp::from_second(self.epoch).context("the time of the release is no time")?;
        Ok(time.to_string())
    }
}

fn epoch(root: &Path) -> anyhow::Result<i64> {
    if let Some(value) = std::env::var_os(EPOCH_VARIABLE) {
        return parse_epoch(&value.to_string_lossy());
    }
    let commit = output(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]));
    parse_epoch(&commit.with_context(|| format!("not a git checkout: set {EPOCH_VARIABLE}"))?)
}

fn parse_epoch(text: &str) -> anyhow::Result<i64> {
    match text.trim().parse() {
        Ok(seconds) if seconds >= 0 => Ok(seconds),
        _ => bail!("{EPOCH_VARIABLE} wants seconds since 1970, not {text}"),
    }
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;

    /// A release for tests.
    pub fn release() -> Release {
        let package = json!({
            "name": "fathom", "version": "1.2.3", "description": "Measures disks", "license": "MIT OR Apache-2.0",
            "repository": "https://example.com/fathom",
        });
        Release::of(
            &json!({"packages": [{"name": "other"}, package]}),
            "rustc 1.95.0 (0 2026)".to_owned(),
            1_790_000_000,
        )
        .unwrap()
    }

    #[test]
    fn a_release_is_read_from_the_manifest() {
        let release = release();
        assert_eq!((release.version.as_str(), release.summary.as_str()), ("1.2.3", "Measures disks"));
        assert_eq!(release.timestamp().unwrap(), "2026-09-21T14:13:20Z");
        let metadata = json!({"packages": [{"name": "fathom", "version": "1"}]});
        let message = Release::of(&metadata, String::new(), 0).unwrap_err().to_string();
        assert_eq!(message, "the manifest of fathom has no description");
    }

    #[test]
    fn times_are_seconds() {
        assert_eq!(parse_epoch("1790000000\n").unwrap(), 1_790_000_000);
        for text in ["", "today", "-1", "1.5"] {
            assert!(
                parse_epoch(text).unwrap_err().to_string().contains("wants seconds since 1970"),
                "{text}"
            );
        }
    }
}
