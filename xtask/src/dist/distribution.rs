//! The packages of distributions, and the libraries that a binary needs, read from it: none may be missing from the dependencies of a
//! package, and a static binary needs none. `dpkg-deb` of Debian packs the Debian package, and `rpmbuild` the RPM package, from a spec
//! without a build: what reads packages everywhere has written them, and no crate is needed for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use super::build::{Build, Place};
use super::release::{DESCRIPTION, EPOCH_VARIABLE, MAINTAINER, PACKAGE, Release};
use super::stage::{self, PackedFile};
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

/// Packs `files` and returns the name of the package in `place.out`.
pub fn pack_deb(
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
pub fn deb_fields(package: &Path) -> anyhow::Result<String> {
    fs::metadata(package).with_context(|| format!("cannot find {}", package.display()))?;
    output(Command::new("dpkg-deb").arg("--field").arg(package))
}

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
pub fn pack_rpm(
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
    use super::super::build::{SHARED_X86_64, STATIC_X86_64};
    use super::super::release::tests::release;
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
            let name = pack_deb(&place, &release(), &SHARED_X86_64, &shared(), files, documentation).unwrap();
            assert_eq!(name, "fathom_1.2.3_amd64.deb");
            let package = place.out.join(&name);
            assert!(deb_fields(&package).unwrap().contains("Package: fathom"));
            let list = output(Command::new("dpkg-deb").arg("--contents").arg(&package)).unwrap();
            assert!(list.contains("-rwxr-xr-x root/root") && list.contains("./usr/bin/fathom"), "{list}");
            fs::read(package).unwrap()
        };
        assert_eq!(packed(), packed());
    }

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
