//! What is packed beside the binary: manual pages, completions, licences and the bill of materials, and where each lies.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::archive;
use super::build::Place;
use super::stage::PackedFile;
use crate::process::output;

/// Texts of the source that every artefact has.
const TEXTS: [&str; 4] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
/// The manifests, below [`KUBERNETES`].
pub const MANIFESTS: [&str; 2] = ["measure-pvc.yaml", "measure-storage-class.yaml"];
/// Where they are in the source.
pub const KUBERNETES: &str = "packaging/kubernetes";
/// What starts ranks on many hosts, below [`FLEET`].
const FLEET_FILES: [&str; 4] = ["fleet.sbatch", "indexed-job.yaml", "mpijob.yaml", "play.yaml"];
pub const FLEET: &str = "packaging/fleet";

/// What the binary prints, and the texts of the source.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// Compressed manual pages by their names.
    pages: Vec<(String, Vec<u8>)>,
    bash: String,
    zsh: String,
    fish: String,
    /// Files of the documentation by their names.
    documents: Vec<(String, Vec<u8>)>,
}

impl Texts {
    /// Asks `fathom`, a binary for this machine.
    pub fn of(fathom: &Path, place: &Place) -> anyhow::Result<Texts> {
        let completions = |shell| {
            let script = output(Command::new(fathom).args(["completions", shell]))?;
            anyhow::Ok(format!("{script}\n"))
        };
        let manifests = MANIFESTS.iter().map(|name| format!("{KUBERNETES}/{name}"));
        let fleet = FLEET_FILES.iter().map(|name| format!("{FLEET}/{name}"));
        let texts = TEXTS.iter().map(|name| (*name).to_owned());
        let documents = texts.chain(manifests).chain(fleet).map(|path| {
            let from = place.root.join(&path);
            let bytes = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
            anyhow::Ok((path.replace("packaging/", ""), bytes))
        });
        Ok(Texts {
            pages: pages(fathom, &place.emptied("pages")?)?,
            bash: completions("bash")?,
            zsh: completions("zsh")?,
            fish: completions("fish")?,
            documents: documents.collect::<Result<_, _>>()?,
        })
    }
}

fn pages(fathom: &Path, directory: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    output(Command::new(fathom).args(["man", "--dir"]).arg(directory))?;
    let list = || {
        let entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
        let mut paths: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
        paths.sort_unstable();
        anyhow::Ok(paths)
    };
    archive::gzip(&list()?)?;
    let pages = list()?.into_iter().map(|path| {
        let name = path.file_name().context("a page has a name")?.to_string_lossy().into_owned();
        anyhow::Ok((name, fs::read(&path)?))
    });
    let pages = pages.collect::<anyhow::Result<Vec<_>>>().context("cannot read the manual pages")?;
    ensure!(!pages.is_empty(), "fathom wrote no manual page");
    Ok(pages)
}

/// Where each kind of file lies.
pub struct Layout {
    /// Before all paths: empty, or ending with a slash.
    prefix: &'static str,
    zsh: &'static str,
}

impl Layout {
    /// In an archive that is unpacked into a prefix such as /usr/local.
    pub const PREFIX: Layout = Layout { prefix: "", zsh: "share/zsh/site-functions" };
    /// In the root of an RPM distribution, and of an image.
    pub const USR: Layout = Layout { prefix: "usr/", zsh: "share/zsh/site-functions" };
    /// In the root of Debian.
    pub const DEBIAN: Layout = Layout { prefix: "usr/", zsh: "share/zsh/vendor-completions" };

    /// The directory of the documentation.
    pub fn documentation(&self) -> String {
        format!("{}share/doc/fathom", self.prefix)
    }

    /// All files, sorted.
    pub fn files(&self, binary: &[u8], texts: &Texts, own: &OwnTexts) -> Vec<PackedFile> {
        let Layout { prefix, zsh } = self;
        let data = |path: String, bytes: &[u8]| PackedFile::data(format!("{prefix}{path}"), bytes);
        let mut files = vec![
            PackedFile::program(format!("{prefix}bin/fathom"), binary),
            data("share/bash-completion/completions/fathom".to_owned(), texts.bash.as_bytes()),
            data(format!("{zsh}/_fathom"), texts.zsh.as_bytes()),
            data("share/fish/vendor_completions.d/fathom.fish".to_owned(), texts.fish.as_bytes()),
        ];
        files.extend(texts.pages.iter().map(|(name, page)| data(format!("share/man/man1/{name}"), page)));
        let own = [("fathom.cdx.json", &own.bill_of_materials), ("third-party-licences.txt", &own.licences)];
        let documents = texts.documents.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        let all = documents.chain(own.map(|(name, text)| (name, text.as_bytes())));
        files.extend(
            all.map(|(name, bytes)| PackedFile::data(format!("{}/{name}", self.documentation()), bytes)),
        );
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files
    }
}

/// The texts that differ from build to build.
#[derive(Clone, Debug, Default)]
pub struct OwnTexts {
    pub bill_of_materials: String,
    pub licences: String,
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Texts for tests.
    pub fn texts() -> Texts {
        Texts {
            pages: vec![("fathom.1.gz".to_owned(), b"page".to_vec())],
            documents: vec![("kubernetes/measure-pvc.yaml".to_owned(), b"kind: Job\n".to_vec())],
            ..Texts::default()
        }
    }

    #[test]
    fn every_file_has_its_place() {
        let paths = |layout: &Layout| {
            let files = layout.files(b"ELF", &texts(), &OwnTexts::default());
            files.into_iter().map(|file| file.path).collect::<Vec<_>>()
        };
        assert_eq!(
            paths(&Layout::DEBIAN),
            [
                "usr/bin/fathom",
                "usr/share/bash-completion/completions/fathom",
                "usr/share/doc/fathom/fathom.cdx.json",
                "usr/share/doc/fathom/kubernetes/measure-pvc.yaml",
                "usr/share/doc/fathom/third-party-licences.txt",
                "usr/share/fish/vendor_completions.d/fathom.fish",
                "usr/share/man/man1/fathom.1.gz",
                "usr/share/zsh/vendor-completions/_fathom",
            ]
        );
        assert_eq!(paths(&Layout::PREFIX)[0], "bin/fathom");
        assert!(paths(&Layout::USR).contains(&"usr/share/zsh/site-functions/_fathom".to_owned()));
    }
}
