//! The Debian package. `dpkg-deb` of Debian packs it: what reads the package everywhere has written it, and no crate is needed for it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::build::{Build, Place};
use super::linkage::Linkage;
use super::release::{DESCRIPTION, EPOCH_VARIABLE, MAINTAINER, PACKAGE, Release};
use super::stage::{self, PackedFile};
use crate::process::output;

/// Packs `files` and returns the name of the package in `place.out`.
pub fn pack(
    place: &Place,
    release: &Release,
    build: &Build,
    linkage: &Linkage,
    mut files: Vec<PackedFile>,
    documentation: &str,
) -> anyhow::Result<String> {
    files.push(PackedFile::data(format!("{documentation}/copyright"), copyright(release)));
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let directory = place.emptied("deb")?;
    stage::write(&directory, &files, release.epoch)?;
    let sums = sums(&directory, &files)?;
    let control = control(release, build, &linkage.debian()?, stage::installed_kib(&files));
    let own = [PackedFile::data("DEBIAN/control", control), PackedFile::data("DEBIAN/md5sums", sums)];
    stage::write(&directory, &own, release.epoch)?;
    let name = format!("{PACKAGE}_{}_{}.deb", release.version, build.architecture);
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.env(EPOCH_VARIABLE, release.epoch.to_string()).env("LC_ALL", "C");
    // With more threads, the compressed bytes depend on their number.
    dpkg.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"]).arg(&directory);
    output(dpkg.arg(place.out.join(&name)))?;
    Ok(name)
}

fn control(release: &Release, build: &Build, depends: &str, installed_kib: usize) -> String {
    let Release { version, summary, repository, .. } = release;
    let description: String = DESCRIPTION.lines().map(|line| format!(" {line}\n")).collect();
    format!(
        "Package: {PACKAGE}\nVersion: {version}\nArchitecture: {}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {installed_kib}\nDepends: {depends}\nSuggests: libpq5\nSection: utils\nPriority: optional\n\
         Homepage: {repository}\nDescription: {summary}\n{description}",
        build.architecture
    )
}

fn copyright(release: &Release) -> String {
    let Release { repository, licence, .. } = release;
    let licence = licence.replace("MIT", "Expat").replace(" OR ", " or ");
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: {PACKAGE}\n\
         Source: {repository}\n\nFiles: *\nCopyright: the {PACKAGE} developers\nLicense: {licence}\n The texts are in \
         LICENSE-MIT and LICENSE-APACHE beside this file, and those of the\n libraries that are part of the program in \
         third-party-licences.txt.\n"
    )
}

/// What `dpkg --verify` compares the installed files with.
fn sums(directory: &Path, files: &[PackedFile]) -> anyhow::Result<String> {
    let mut md5sum = Command::new("md5sum");
    md5sum.current_dir(directory).arg("--").args(files.iter().map(|file| &file.path));
    let sums = output(&mut md5sum).context("cannot sum the files of the package")?;
    Ok(format!("{sums}\n"))
}

/// The fields of a package file, for the check.
pub fn fields(package: &Path) -> anyhow::Result<String> {
    fs::metadata(package).with_context(|| format!("cannot find {}", package.display()))?;
    output(Command::new("dpkg-deb").arg("--field").arg(package))
}

#[cfg(test)]
mod tests {
    use super::super::build::SHARED_X86_64;
    use super::super::linkage::tests::shared;
    use super::super::release::tests::release;
    use super::*;

    #[test]
    fn the_control_file_has_the_fields_of_debian() {
        let control = control(&release(), &SHARED_X86_64, &shared().debian().unwrap(), 17);
        let lines: Vec<&str> = control.lines().collect();
        assert_eq!(
            lines[..10],
            [
                "Package: fathom",
                "Version: 1.2.3",
                "Architecture: amd64",
                "Maintainer: fathom developers <fathom-io@users.noreply.github.com>",
                "Installed-Size: 17",
                "Depends: libc6 (>= 2.34), libgcc-s1",
                "Suggests: libpq5",
                "Section: utils",
                "Priority: optional",
                "Homepage: https://example.com/fathom",
            ]
        );
        assert_eq!(lines[10], "Description: Measures disks");
        assert!(lines[11..].iter().all(|line| line.starts_with(" fathom") || line.starts_with(' ')));
        assert!(control.ends_with(".\n"));
    }

    #[test]
    fn packages_of_the_same_files_are_the_same() {
        if fathom_tests::missing(&[fathom_tests::Need::Tool("dpkg-deb")]).is_some() {
            return;
        }
        let packed = || {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().to_owned();
            let place = Place { root: path.clone(), work: path.clone(), out: path.clone(), cargo_home: path };
            let files = vec![PackedFile::program("usr/bin/fathom", "#!/bin/sh\necho fake\n")];
            let documentation = "usr/share/doc/fathom";
            let name = pack(&place, &release(), &SHARED_X86_64, &shared(), files, documentation).unwrap();
            assert_eq!(name, "fathom_1.2.3_amd64.deb");
            let package = place.out.join(&name);
            assert!(fields(&package).unwrap().contains("Package: fathom"));
            let list = output(Command::new("dpkg-deb").arg("--contents").arg(&package)).unwrap();
            assert!(list.contains("-rwxr-xr-x root/root") && list.contains("./usr/bin/fathom"), "{list}");
            fs::read(package).unwrap()
        };
        assert_eq!(packed(), packed());
    }
}
