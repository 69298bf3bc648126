//! The documents of a release, checked by the schemas of those who define them. Python packages bring both schemas.

use std::process::Command;

use anyhow::Context as _;

use super::super::build::Place;
use super::super::contents::{FLEET, MANIFESTS};
use crate::process::output;
use crate::readers;

/// Packages with their versions.
const PACKAGES: &[&str] = &["cyclonedx-python-lib[json-validation]==11.12.0", "kubernetes-validate==1.37.0"];
/// The oldest and the newest version of Kubernetes that the manifests are checked for.
const KUBERNETES: [&str; 2] = ["1.27", "1.37"];
/// The oldest whose Jobs count failures by index.
const INDEXED_FAILURES: &str = "1.29";
const BILLS: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
validator = JsonStrictValidator(SchemaVersion.V1_6)
for path in sys.argv[1:]:
    error = validator.validate_str(open(path).read())
    if error:
        sys.exit(f'{path}: {error}')
";

/// Checks the manifests, and the bills of materials of these names.
pub fn check(place: &Place, bills: &[&str]) -> anyhow::Result<String> {
    let directory = place.work.join("python-schemas");
    readers::install_into(&directory, PACKAGES).context("the schemas cannot be installed")?;
    let python = || {
        let mut python = Command::new("python3");
        python.current_dir(&place.out).env("PYTHONPATH", &directory);
        python
    };
    output(python().args(["-c", BILLS]).args(bills))?;
    let validate = |version| {
        let mut validate = python();
        validate.arg(directory.join("bin/kubernetes-validate"));
        validate.args(["--strict", "--kubernetes-version", version]);
        validate
    };
    let [oldest, newest] = KUBERNETES;
    for version in KUBERNETES {
        output(validate(version).args(MANIFESTS))?;
    }
    for version in [INDEXED_FAILURES, newest] {
        output(validate(version).arg(place.root.join(FLEET).join("indexed-job.yaml")))?;
    }
    Ok(format!("bills of materials by CycloneDX 1.6, manifests by Kubernetes {oldest} and {newest}"))
}
