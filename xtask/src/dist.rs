//! `cargo xtask dist`: what users install. Builds the binaries, packs them as archives, packages and container images with their
//! documentation, and with `--check` installs and runs each of them.
//!
//! Nothing in an artefact depends on the day, the directory or the user. Distributions' own tools write their formats.

mod archive;
mod build;
mod check;
mod contents;
mod distribution;
mod image;
mod kubernetes;
mod parts;
mod release;
mod reproducible;
mod stage;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

use crate::packages;
use build::{Build, Place, SHARED_X86_64, STATIC_AARCH64, STATIC_X86_64};
use contents::{KUBERNETES, Layout, MANIFESTS, OwnTexts, Texts};
use distribution::{Linkage, pack_deb, pack_rpm};
use release::{PACKAGE, Release};

/// The usage text.
const USAGE: &str = "\
cargo xtask dist [--check] [--check-reproducible] [--without-aarch64]

Builds what users install into target/dist: static binaries for x86-64 and aarch64 as archives and OCI images, a Debian
and an RPM package for x86-64, manifests for Kubernetes, SBOMs and SHA256SUMS. Needs an x86-64 machine; as root on
Debian it installs the tools that it needs.

  --check               install and run every artefact: in chroots, namespaces and under qemu-user (as root)
  --check-reproducible  build everything again from a copy of the source elsewhere, and compare the bytes
  --without-aarch64     build for x86-64 only

All times in the artefacts are those of SOURCE_DATE_EPOCH, or of the commit.";

const OPTIONS: [&str; 3] = ["--check", "--check-reproducible", "--without-aarch64"];
/// The file of the checksums.
const CHECKSUMS: &str = "SHA256SUMS";

/// An artefact in `Place::out`.
struct Artefact {
    name: String,
    kind: ArtefactKind,
    build: &'static Build,
}

/// How it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArtefactKind {
    Archive,
    Debian,
    Rpm,
    Image,
    BillOfMaterials,
}

/// What was made.
struct Made {
    artefacts: Vec<Artefact>,
    /// The binary for every machine of this kind.
    static_binary: PathBuf,
}

/// Makes what `arguments` ask for of the workspace at `root`.
pub fn run(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    if matches!(arguments, ["--help" | "-h" | "help"]) {
        println!("{USAGE}");
        return Ok(());
    }
    if let Some(unknown) = arguments.iter().find(|argument| !OPTIONS.contains(argument)) {
        bail!("unknown option {unknown}\n\n{USAGE}");
    }
    let [check, check_reproducible, without_aarch64] = OPTIONS.map(|option| arguments.contains(&option));
    ensure!(
        std::env::consts::ARCH == "x86_64",
        "dist runs on x86-64: packages for it have a binary of this machine"
    );
    ensure!(!check || packages::is_root(), "--check runs as root: it installs packages in a chroot");
    packages::require_all(tools::MAKING)?;
    let mut builds = vec![&STATIC_X86_64, &SHARED_X86_64];
    if !without_aarch64 {
        packages::require_all(tools::CROSS)?;
        builds.push(&STATIC_AARCH64);
    }
    let release = Release::read(root)?;
    let place = place(root)?;
    let made = make(&place, &release, &builds)?;
    println!("{}", list(&place.out)?);
    if check {
        check::run(&place, &release, &made)?;
    }
    if check_reproducible {
        let other = reproducible::other_place(&place)?;
        make(&other, &release, &builds)?;
        let count = reproducible::compare(&place.out, &other.out)?;
        println!("reproducible: {count} files are the same when they are made elsewhere");
    }
    Ok(())
}

fn place(root: &Path) -> anyhow::Result<Place> {
    let target = crate::process::target_directory();
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
    Ok(Place {
        root: root.to_owned(),
        work: target.join("dist-work"),
        out: target.join("dist"),
        cargo_home: cargo_home.context("set CARGO_HOME or HOME")?,
    })
}

/// Makes every artefact of `builds`, of which the first runs on this machine.
fn make(place: &Place, release: &Release, builds: &[&'static Build]) -> anyhow::Result<Made> {
    build::empty(&place.out)?;
    let mut texts = None;
    let mut made = Made { artefacts: Vec::new(), static_binary: PathBuf::new() };
    for &build in builds {
        println!("building {} ...", build.name);
        let binary = build.compile(place, release)?;
        let texts = match &mut texts {
            Some(texts) => texts,
            none => {
                made.static_binary.clone_from(&binary);
                none.insert(Texts::of(&binary, place)?)
            }
        };
        let packer = Packer::new(place, release, build, &binary)?;
        made.artefacts.extend(packer.pack(texts)?);
    }
    for name in MANIFESTS {
        let from = place.root.join(KUBERNETES).join(name);
        fs::copy(&from, place.out.join(name)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let sums = archive::checksums(&place.out)?;
    fs::write(place.out.join(CHECKSUMS), sums).context("cannot write the checksums")?;
    Ok(made)
}

/// Packs one binary.
struct Packer<'a> {
    place: &'a Place,
    release: &'a Release,
    build: &'static Build,
    linkage: Linkage,
    binary: Vec<u8>,
    own: OwnTexts,
}

impl<'a> Packer<'a> {
    fn new(
        place: &'a Place,
        release: &'a Release,
        build: &'static Build,
        binary: &Path,
    ) -> anyhow::Result<Self> {
        let parts = parts::parts_of(place, release, build)?;
        let own = OwnTexts {
            bill_of_materials: parts::bill_of_materials(release, &parts)?,
            licences: parts::licence_texts(&parts)?,
        };
        let linkage = Linkage::read(build, binary)?;
        let binary = fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
        Ok(Packer { place, release, build, linkage, binary, own })
    }

    /// A static binary becomes an archive and an image, a shared one the packages of distributions.
    fn pack(&self, texts: &Texts) -> anyhow::Result<Vec<Artefact>> {
        let Packer { place, release, build, linkage, .. } = self;
        let files = |layout: &Layout| layout.files(&self.binary, texts, &self.own);
        let mut named = vec![(ArtefactKind::BillOfMaterials, self.bill_of_materials()?)];
        if build.is_static {
            named.push((ArtefactKind::Archive, self.archive(texts)?));
            named.push((ArtefactKind::Image, image::pack(place, release, build, &files(&Layout::USR))?));
        } else {
            let (debian, usr) = (files(&Layout::DEBIAN), files(&Layout::USR));
            let documentation = Layout::USR.documentation();
            let package = pack_deb(place, release, build, linkage, debian, &documentation)?;
            named.push((ArtefactKind::Debian, package));
            let package = pack_rpm(place, release, build, linkage, &usr, &documentation)?;
            named.push((ArtefactKind::Rpm, package));
        }
        Ok(named.into_iter().map(|(kind, name)| Artefact { name, kind, build: self.build }).collect())
    }

    fn stem(&self) -> String {
        format!("{PACKAGE}-{}-{}", self.release.version, self.build.name)
    }

    fn bill_of_materials(&self) -> anyhow::Result<String> {
        let name = format!("{}.cdx.json", self.stem());
        fs::write(self.place.out.join(&name), &self.own.bill_of_materials)
            .context("cannot write the bill of materials")?;
        Ok(name)
    }

    fn archive(&self, texts: &Texts) -> anyhow::Result<String> {
        let (directory, stem) = (self.place.emptied("archive")?, self.stem());
        let top = directory.join(&stem);
        fs::create_dir(&top).context("cannot make the directory of the archive")?;
        let files = Layout::PREFIX.files(&self.binary, texts, &self.own);
        stage::write(&top, &files, self.release.epoch)?;
        let tar = self.place.out.join(format!("{stem}.tar"));
        archive::tar(&directory, &tar, self.release.epoch)?;
        archive::gzip(&[tar])?;
        Ok(format!("{stem}.tar.gz"))
    }
}

/// The files in `directory` with their sizes.
fn list(directory: &Path) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let entry = entry?;
        let kib = entry.metadata()?.len().div_ceil(1024);
        lines.push(format!("  {:<44} {kib:>7} KiB", entry.file_name().to_string_lossy()));
    }
    lines.sort_unstable();
    lines.insert(0, format!("{}:", directory.display()));
    Ok(lines.join("\n"))
}
