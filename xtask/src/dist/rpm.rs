//! The RPM package. `rpmbuild` packs it from a spec without a build: rpm of Debian reads its dependencies and checksums back.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::Context as _;

use super::build::{Build, Place};
use super::linkage::Linkage;
use super::release::{DESCRIPTION, EPOCH_VARIABLE, PACKAGE, Release};
use super::stage::{self, PackedFile};
use crate::process::output;

/// Changes of the packaging alone raise it.
const RELEASE_NUMBER: u32 = 1;
/// What makes a package depend on its files alone. Nothing is stripped, compressed or searched for dependencies.
const MACROS: [&str; 9] = [
    "debug_package %{nil}",
    "__os_install_post %{nil}",
    "_build_id_links none",
    "_buildhost localhost",
    "_binary_payload w9.gzdio",
    "use_source_date_epoch_as_buildtime 1",
    "clamp_mtime_to_source_date_epoch 1",
    "source_date_epoch_from_changelog 0",
    "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
];

/// Packs `files` and returns the name of the package in `place.out`.
pub fn pack(
    place: &Place,
    release: &Release,
    build: &Build,
    linkage: &Linkage,
    files: &[PackedFile],
    documentation: &str,
) -> anyhow::Result<String> {
    let directory = place.emptied("rpm")?;
    let staged = directory.join("files");
    fs::create_dir(&staged).context("cannot make the directory of the files")?;
    stage::write(&staged, files, release.epoch)?;
    let spec = directory.join("fathom.spec");
    fs::write(&spec, spec_text(release, linkage, files, documentation)).context("cannot write the spec")?;
    let architecture = build.triple.split('-').next().unwrap_or_default();
    let mut rpmbuild = Command::new("rpmbuild");
    // A home without the macros of a developer.
    rpmbuild.env("HOME", &directory).env("LC_ALL", "C").env("TZ", "UTC");
    rpmbuild.env(EPOCH_VARIABLE, release.epoch.to_string());
    rpmbuild.args(["-bb", "--quiet", &format!("--target={architecture}-linux")]);
    for definition in MACROS {
        rpmbuild.args(["--define", definition]);
    }
    for (name, path) in [("_topdir", &directory), ("_rpmdir", &place.out), ("staged", &staged)] {
        rpmbuild.arg("--define").arg(format!("{name} {}", path.display()));
    }
    output(rpmbuild.arg(&spec))?;
    Ok(format!("{PACKAGE}-{}-{RELEASE_NUMBER}.{architecture}.rpm", release.version))
}

fn spec_text(release: &Release, linkage: &Linkage, files: &[PackedFile], documentation: &str) -> String {
    let Release { version, summary, licence, repository, .. } = release;
    let mut spec = format!(
        "Name: {PACKAGE}\nVersion: {version}\nRelease: {RELEASE_NUMBER}\nSummary: {summary}\nLicense: {licence}\n\
         URL: {repository}\nAutoReqProv: no\n"
    );
    for requirement in linkage.rpm() {
        let _ = writeln!(spec, "Requires: {requirement}");
    }
    let _ = write!(
        spec,
        "Suggests: libpq\n\n%description\n{DESCRIPTION}\n\n%install\nmkdir -p \"%{{buildroot}}\"\n\
         cp -a \"%{{staged}}/.\" \"%{{buildroot}}\"\n\n%files\n%defattr(-,root,root,-)\n%dir /{documentation}\n"
    );
    for PackedFile { path, .. } in files {
        let mark = match path.strip_prefix(documentation) {
            Some(name) if name.contains("LICENSE") || name.contains("licences") => "%license ",
            Some(_) => "%doc ",
            None => "",
        };
        let _ = writeln!(spec, "{mark}/{path}");
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::super::linkage::tests::shared;
    use super::super::release::tests::release;
    use super::*;

    #[test]
    fn the_spec_names_every_file_and_requirement() {
        let paths = ["usr/bin/fathom", "usr/share/doc/fathom/LICENSE-MIT", "usr/share/doc/fathom/README.md"];
        let files = paths.map(|path| PackedFile::data(path, ""));
        let spec = spec_text(&release(), &shared(), &files, "usr/share/doc/fathom");
        for line in [
            "Version: 1.2.3",
            "License: MIT OR Apache-2.0",
            "Requires: libc.so.6(GLIBC_2.34)(64bit)",
            "Suggests: libpq",
            "%dir /usr/share/doc/fathom",
            "/usr/bin/fathom",
            "%license /usr/share/doc/fathom/LICENSE-MIT",
            "%doc /usr/share/doc/fathom/README.md",
        ] {
            assert!(spec.lines().any(|found| found == line), "{line} is not in\n{spec}");
        }
    }
}
