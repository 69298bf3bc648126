//! Installs and runs every artefact the way its users do: the archive in an empty root, the packages in a Debian, the images as a
//! container runtime and a Kubernetes Job do, the static binary as ranks under launchers, and the one for aarch64 under qemu-user.

mod launchers;
mod namespace;
mod schemas;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use super::build::Place;
use super::distribution::deb_fields;
use super::kubernetes::{self, Job};
use super::release::{PACKAGE, Release};
use super::{Artefact, ArtefactKind, CHECKSUMS, Made, image, tools};
use crate::packages;
use crate::process::{output, watch};
use namespace::{ProcessUser, Root, SUPERUSER, unpack};

/// A bench of a file, in seconds.
const SMALL_BENCH: [&str; 4] = ["--only=lat-read,rand-write", "--runtime=1", "--size=64m", "--no-history"];
/// Where the program is in packages and images.
const INSTALLED: &str = "/usr/bin/fathom";
/// A history that a static program cannot reach.
const SERVER: &str = "postgres://localhost:1/none";
/// How often the program is started to find how long that takes.
const STARTS: usize = 51;

/// A release that is checked.
struct Checker<'a> {
    place: &'a Place,
    release: &'a Release,
    made: &'a Made,
}

/// Checks them all, and lists what was not.
pub fn run(place: &Place, release: &Release, made: &Made) -> anyhow::Result<()> {
    packages::require_all(tools::CHECKING)?;
    let checker = Checker { place, release, made };
    checker.checksums()?;
    held(schemas::check(place, &checker.names(ArtefactKind::BillOfMaterials))?);
    for artefact in &made.artefacts {
        let note = match (artefact.kind, artefact.build.cross_compiler) {
            (ArtefactKind::BillOfMaterials, _) => continue,
            (ArtefactKind::Archive, None) => checker.archive(artefact),
            (ArtefactKind::Archive, Some(_)) => checker.foreign_archive(artefact),
            (ArtefactKind::Debian, _) => checker.debian(artefact),
            (ArtefactKind::Rpm, _) => checker.rpm(artefact),
            (ArtefactKind::Image, None) => checker.image(artefact),
            (ArtefactKind::Image, Some(_)) => checker.foreign_image(artefact),
        };
        held(note.with_context(|| format!("{} does not hold", artefact.name))?);
    }
    held(checker.cargo_install()?);
    held(launchers::check(&made.static_binary)?);
    held(start(&made.static_binary)?);
    for line in NOT_TESTED {
        println!("not tested: {line}");
    }
    Ok(())
}

/// What no step does.
const NOT_TESTED: [&str; 3] = [
    "the RPM package on a distribution of RPM: it was installed by rpm in a root of Debian, without its dependencies",
    "aarch64 on a machine: under qemu-user there are no io_uring, no kernel of aarch64, and no `fathom demo`, which starts itself",
    "the images by a container runtime, and the manifests on a cluster",
];

fn held(note: String) {
    println!("holds: {note}");
}

impl Checker<'_> {
    fn names(&self, kind: ArtefactKind) -> Vec<&str> {
        let artefacts = self.made.artefacts.iter().filter(|artefact| artefact.kind == kind);
        artefacts.map(|artefact| artefact.name.as_str()).collect()
    }

    fn file(&self, artefact: &Artefact) -> PathBuf {
        self.place.out.join(&artefact.name)
    }

    fn checksums(&self) -> anyhow::Result<()> {
        let mut sums = Command::new("sha256sum");
        output(sums.current_dir(&self.place.out).args(["--check", "--strict", "--quiet", CHECKSUMS]))?;
        held(CHECKSUMS.to_owned());
        Ok(())
    }

    /// The version, the tour and a small bench of a program in `root`.
    fn use_program(
        &self,
        root: &Root,
        user: ProcessUser,
        environment: &[String],
        path: &str,
    ) -> anyhow::Result<()> {
        let run = |arguments: &[&str]| root.run(user, environment, &[&[path], arguments].concat());
        let version = run(&["--version"])?;
        ensure!(version == format!("{PACKAGE} {}", self.release.version), "--version says {version}");
        let tour = run(&["demo"])?;
        ensure!(tour.contains("$ fathom compare "), "the tour does not reach its end:\n{tour}");
        has_figures(&run(&[&["bench", "/data"], &SMALL_BENCH[..]].concat())?)
    }

    /// In a root that has nothing but what is in the archive.
    fn archive(&self, artefact: &Artefact) -> anyhow::Result<String> {
        let directory = self.place.emptied("check-archive")?;
        unpack(&self.file(artefact), &directory)?;
        let top = directory.join(artefact.name.trim_end_matches(".tar.gz"));
        let root = Root::new(top, self.place.emptied("data")?)?;
        let program = "/bin/fathom";
        self.use_program(&root, SUPERUSER, &[], program)?;
        let refusal = root.run(SUPERUSER, &[], &[program, "history", "list", "--history", SERVER]);
        let refusal =
            refusal.err().context("a static program has reached a history on a server")?.to_string();
        ensure!(
            refusal.contains("statically linked") && refusal.contains("use a fathom that loads libraries"),
            "a static program does not say what it lacks:\n{refusal}"
        );
        Ok(format!("{}: version, tour and bench in an empty root; refuses a server", artefact.name))
    }

    /// A Debian that is made once.
    fn debian_root(&self) -> anyhow::Result<Root> {
        let directory = self.place.work.join("debian");
        let mark = directory.join("made");
        if !mark.exists() {
            super::build::empty(&directory)?;
            println!("making a Debian ...");
            let mut debootstrap = Command::new("debootstrap");
            output(debootstrap.arg("--variant=minbase").arg(codename()?).arg(&directory))?;
            fs::write(&mark, "").context("cannot mark the Debian as made")?;
        }
        Root::new(directory, self.place.emptied("data")?)
    }

    fn debian(&self, artefact: &Artefact) -> anyhow::Result<String> {
        let root = self.debian_root()?;
        fs::copy(self.file(artefact), root.data().join("package.deb")).context("cannot copy the package")?;
        let environment = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_owned()];
        let run = |program: &[&str]| root.run(SUPERUSER, &environment, program);
        run(&["/usr/bin/dpkg", "--install", "/data/package.deb"])?;
        let changed = run(&["/usr/bin/dpkg", "--verify", PACKAGE])?;
        ensure!(changed.is_empty(), "installed files differ from the package:\n{changed}");
        self.use_program(&root, SUPERUSER, &environment, INSTALLED)?;
        has_documents(&root, "vendor-completions")?;
        run(&["/usr/bin/dpkg", "--purge", PACKAGE])?;
        ensure!(!root.path("usr/bin/fathom").exists(), "dpkg --purge leaves the program behind");
        let depends = deb_fields(&self.file(artefact))?;
        let depends = depends.lines().find_map(|line| line.strip_prefix("Depends: ")).unwrap_or_default();
        Ok(format!("{}: installed, verified, used and removed by dpkg; depends on {depends}", artefact.name))
    }

    fn rpm(&self, artefact: &Artefact) -> anyhow::Result<String> {
        let (root, file) = (self.debian_root()?, self.file(artefact));
        let rpm = |arguments: &[&str]| {
            let mut rpm = Command::new("rpm");
            rpm.args(["--dbpath", "/var/lib/rpm", "--root"]).arg(root.path("")).args(arguments);
            output(&mut rpm)
        };
        rpm(&["--initdb"])?;
        let package = file.to_str().context("the target directory has a name of UTF-8")?;
        rpm(&["--install", "--nodeps", "--nosignature", package])?;
        let changed = rpm(&["--verify", "--nodeps", PACKAGE])?;
        ensure!(changed.is_empty(), "installed files differ from the package:\n{changed}");
        self.use_program(&root, SUPERUSER, &[], INSTALLED)?;
        has_documents(&root, "site-functions")?;
        rpm(&["--erase", PACKAGE])?;
        ensure!(!root.path("usr/bin/fathom").exists(), "rpm --erase leaves the program behind");
        Ok(format!("{}: installed, verified, used and removed by rpm", artefact.name))
    }

    /// The root of an image, unpacked as a runtime does.
    fn image_root(&self, artefact: &Artefact) -> anyhow::Result<(Root, image::ReadImage)> {
        let (layout, directory) = (self.place.emptied("check-layout")?, self.place.emptied("check-image")?);
        unpack(&self.file(artefact), &layout)?;
        let image = image::read_layout(&layout)?;
        for layer in &image.layers {
            unpack(layer, &directory)?;
        }
        Ok((Root::new(directory, self.place.emptied("data")?)?, image))
    }

    fn image(&self, artefact: &Artefact) -> anyhow::Result<String> {
        let (root, image) = self.image_root(artefact)?;
        let entrypoint = image.entrypoint.first().context("the image has no entry point")?;
        self.use_program(&root, SUPERUSER, &image.environment, entrypoint)?;
        let jobs = kubernetes::jobs(&self.place.root)?;
        for Job { name, arguments, user, .. } in &jobs {
            if *user != 0 {
                root.give_data_to(*user)?;
            }
            let small =
                SMALL_BENCH.iter().map(|word| (*word).to_owned()).filter(|word| !arguments.contains(word));
            let words: Vec<String> = image.entrypoint.iter().chain(arguments).cloned().chain(small).collect();
            let user = ProcessUser { id: *user, is_confined: true };
            let report =
                root.run(user, &image.environment, &words).with_context(|| format!("as {name} runs it"))?;
            has_figures(&report)?;
        }
        Ok(format!("{}: used as a runtime does, and as the {} Jobs do", artefact.name, jobs.len()))
    }

    fn foreign_image(&self, artefact: &Artefact) -> anyhow::Result<String> {
        let (root, _) = self.image_root(artefact)?;
        emulate(&root.path("usr/bin/fathom"), &["--version"])?;
        Ok(format!("{}: its program starts under {}", artefact.name, tools::EMULATOR))
    }

    fn foreign_archive(&self, artefact: &Artefact) -> anyhow::Result<String> {
        packages::require_all(tools::EMULATING)?;
        let (directory, data) = (self.place.emptied("check-foreign")?, self.place.emptied("data")?);
        unpack(&self.file(artefact), &directory)?;
        let program = directory.join(artefact.name.trim_end_matches(".tar.gz")).join("bin/fathom");
        let version = emulate(&program, &["--version"])?;
        ensure!(version == format!("{PACKAGE} {}", self.release.version), "--version says {version}");
        let data = data.to_str().context("the target directory has a name of UTF-8")?;
        has_figures(&emulate(&program, &[&["bench", "--engine=psync", data], &SMALL_BENCH[..]].concat())?)?;
        has_figures(&emulate(&program, &["bench", "--quick", "sim:aws-gp3?size=50GiB"])?)?;
        let note = "version, bench of a file with psync and of a simulated volume";
        Ok(format!("{}: {note} under {}", artefact.name, tools::EMULATOR))
    }

    /// As the documentation says it.
    fn cargo_install(&self) -> anyhow::Result<String> {
        let installed = self.place.emptied("cargo-install")?;
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&self.place.root).args(["install", "--quiet", "--locked", "--path", "crates/cli"]);
        watch(cargo.arg("--root").arg(&installed))?;
        let version = output(Command::new(installed.join("bin/fathom")).arg("--version"))?;
        Ok(format!("cargo install --path crates/cli: {version}"))
    }
}

/// Runs a program for aarch64.
fn emulate(program: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    output(Command::new(tools::EMULATOR).arg(program).args(arguments).env_remove("FATHOM_HISTORY"))
}

fn has_figures(report: &str) -> anyhow::Result<()> {
    let rows = ["lat-read", "rand-write"];
    let row = |name| {
        report
            .lines()
            .any(|line| line.trim_start().starts_with(name) && (line.contains(" µs") || line.contains(" ms")))
    };
    match rows.into_iter().find(|name| !row(*name)) {
        Some(name) => bail!("the bench shows no figures of {name}:\n{report}"),
        None => Ok(()),
    }
}

fn has_documents(root: &Root, zsh: &str) -> anyhow::Result<()> {
    for path in [
        "man/man1/fathom-history-list.1.gz",
        "bash-completion/completions/fathom",
        "fish/vendor_completions.d/fathom.fish",
        &format!("zsh/{zsh}/_fathom"),
        "doc/fathom/third-party-licences.txt",
        "doc/fathom/kubernetes/measure-pvc.yaml",
        "doc/fathom/fleet/fleet.sbatch",
    ] {
        let path = root.path(&format!("usr/share/{path}"));
        ensure!(path.metadata().is_ok_and(|file| file.len() > 0), "{} is not there", path.display());
    }
    Ok(())
}

/// The name of this Debian's release.
fn codename() -> anyhow::Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("which distribution is this?")?;
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    Ok(name.context("/etc/os-release has no VERSION_CODENAME")?.trim_matches('"').to_owned())
}

/// Size and start of the static binary.
fn start(binary: &Path) -> anyhow::Result<String> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let begun = crate::process::now();
        output(Command::new(binary).arg("--version"))?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let bytes = fs::metadata(binary).context("cannot find the static binary")?.len();
    let start = times[STARTS / 2].as_secs_f64() * 1e3;
    Ok(format!("static binary: {bytes} B, started and ended in {start:.1} ms (median of {STARTS})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_without_a_row_is_refused() {
        let report = "  lat-read  4k d1  1,998  500 µs\n  rand-write  4k d64  3,000  21 ms  500 µs\n";
        assert!(has_figures(report).is_ok());
        let message = has_figures(&report.replace("rand-write", "write")).unwrap_err().to_string();
        assert!(message.starts_with("the bench shows no figures of rand-write"), "{message}");
    }
}
