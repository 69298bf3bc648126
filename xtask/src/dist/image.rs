//! The container image: an OCI image layout in a tar file, which is made of files and needs no daemon.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::archive;
use super::build::{Build, Place};
use super::release::{PACKAGE, Release};
use super::stage::{self, PackedFile};
use crate::process::sha256;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Packs `files` as the only layer, and returns the name of the image in `place.out`.
pub fn pack(place: &Place, release: &Release, build: &Build, files: &[PackedFile]) -> anyhow::Result<String> {
    let layer = layer(place, release, files)?;
    let directory = place.emptied("image")?;
    stage::write(&directory, &layout(release, build, &layer)?, release.epoch)?;
    let name = format!("{PACKAGE}-{}-oci-{}.tar", release.version, build.architecture);
    archive::tar(&directory, &place.out.join(&name), release.epoch)?;
    Ok(name)
}

/// The tar file of a root directory.
struct Layer {
    /// The checksum of the tar file, which the configuration names.
    plain_digest: String,
    compressed: Vec<u8>,
}

fn layer(place: &Place, release: &Release, files: &[PackedFile]) -> anyhow::Result<Layer> {
    let directory = place.emptied("layer")?;
    stage::write(&directory, files, release.epoch)?;
    let temporary = directory.join("tmp");
    fs::create_dir(&temporary).context("cannot make the image's /tmp")?;
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1777))
        .context("cannot change the mode of the image's /tmp")?;
    let tar = place.work.join("layer.tar");
    archive::tar(&directory, &tar, release.epoch)?;
    let plain_digest = sha256(&read(&tar)?);
    archive::gzip(std::slice::from_ref(&tar))?;
    Ok(Layer { plain_digest, compressed: read(&tar.with_extension("tar.gz"))? })
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The files of the layout.
fn layout(release: &Release, build: &Build, layer: &Layer) -> anyhow::Result<Vec<PackedFile>> {
    let (layer_entry, layer_file) = blob(LAYER, layer.compressed.clone());
    let config = config(release, build, &layer.plain_digest)?;
    let (config_entry, config_file) = blob(CONFIG, config.to_string().into_bytes());
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config_entry, "layers": [layer_entry],
        "annotations": labels(release)?,
    });
    let (mut manifest_entry, manifest_file) = blob(MANIFEST, manifest.to_string().into_bytes());
    let name = format!("{PACKAGE}:{}", release.version);
    manifest_entry["platform"] = json!({"architecture": build.architecture, "os": "linux"});
    manifest_entry["annotations"] = json!({
        "org.opencontainers.image.ref.name": name,
        "io.containerd.image.name": format!("docker.io/library/{name}"),
    });
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest_entry]});
    Ok(vec![
        layer_file,
        config_file,
        manifest_file,
        PackedFile::data("index.json", index.to_string()),
        PackedFile::data("oci-layout", json!({"imageLayoutVersion": "1.0.0"}).to_string()),
    ])
}

/// The descriptor of `bytes`, and their file.
fn blob(media_type: &str, bytes: Vec<u8>) -> (Value, PackedFile) {
    let digest = sha256(&bytes);
    let entry = json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": bytes.len()});
    (entry, PackedFile::data(format!("blobs/sha256/{digest}"), bytes))
}

fn config(release: &Release, build: &Build, plain_digest: &str) -> anyhow::Result<Value> {
    let created = release.timestamp()?;
    Ok(json!({
        "architecture": build.architecture,
        "os": "linux",
        "created": created,
        "config": {
            "Entrypoint": ["/usr/bin/fathom"],
            "Cmd": ["--help"],
            "Env": ["PATH=/usr/bin"],
            "WorkingDir": "/",
            "Labels": labels(release)?,
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{plain_digest}")]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    }))
}

fn labels(release: &Release) -> anyhow::Result<Value> {
    Ok(json!({
        "org.opencontainers.image.title": PACKAGE,
        "org.opencontainers.image.description": release.summary,
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": release.licence,
        "org.opencontainers.image.source": release.repository,
        "org.opencontainers.image.created": release.timestamp()?,
    }))
}

/// What a runtime needs of an image.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadImage {
    /// The program and its first arguments.
    pub entrypoint: Vec<String>,
    /// Variables as NAME=VALUE.
    pub environment: Vec<String>,
    /// The compressed layers, from the bottom.
    pub layers: Vec<PathBuf>,
}

/// Reads the unpacked layout in `directory` as a runtime does: from the index, by digests, each compared with its blob.
pub fn read_layout(directory: &Path) -> anyhow::Result<ReadImage> {
    let index: Value = serde_json::from_slice(&read(&directory.join("index.json"))?)?;
    let manifest: Value = serde_json::from_slice(&read(&verified(directory, &index["manifests"][0])?)?)?;
    let config: Value = serde_json::from_slice(&read(&verified(directory, &manifest["config"])?)?)?;
    let layers = manifest["layers"].as_array().map_or(&[][..], Vec::as_slice);
    let layers = layers.iter().map(|layer| verified(directory, layer)).collect::<Result<Vec<_>, _>>()?;
    let strings = |value: &Value| {
        let list = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        list.map(str::to_owned).collect::<Vec<_>>()
    };
    let image = ReadImage {
        entrypoint: strings(&config["config"]["Entrypoint"]),
        environment: strings(&config["config"]["Env"]),
        layers,
    };
    let diffs = config["rootfs"]["diff_ids"].as_array().map_or(0, Vec::len);
    ensure!(diffs == image.layers.len() && diffs > 0, "the image has {diffs} digests of layers");
    Ok(image)
}

/// The file of the blob that `entry` describes.
fn verified(directory: &Path, entry: &Value) -> anyhow::Result<PathBuf> {
    let digest = entry["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
    let digest = digest.context("a descriptor has no digest of SHA-256")?;
    let path = directory.join("blobs/sha256").join(digest);
    let bytes = read(&path)?;
    ensure!(sha256(&bytes) == digest, "the blob {digest} has another digest");
    ensure!(entry["size"].as_u64() == Some(bytes.len() as u64), "the blob {digest} has another size");
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::super::build::STATIC_AARCH64;
    use super::super::release::tests::release;
    use super::*;

    fn packed() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let (work, out) = (path.join("work"), path.join("out"));
        fs::create_dir_all(&out).unwrap();
        let place = Place { root: path.clone(), work, out, cargo_home: path };
        let files = [PackedFile::program("usr/bin/fathom", "#!/bin/sh\necho fake\n")];
        let name = pack(&place, &release(), &STATIC_AARCH64, &files).unwrap();
        assert_eq!(name, "fathom-1.2.3-oci-arm64.tar");
        (directory, place.out.join(name))
    }

    #[test]
    fn images_of_the_same_files_are_the_same() {
        let ((_one, first), (_other, second)) = (packed(), packed());
        assert_eq!(fs::read(first).unwrap(), fs::read(second).unwrap());
    }

    #[test]
    fn an_image_is_read_by_its_digests() {
        let (scratch, archive) = packed();
        let directory = scratch.path().join("unpacked");
        fs::create_dir(&directory).unwrap();
        let mut tar = std::process::Command::new("tar");
        crate::process::output(tar.arg("-xf").arg(archive).arg("-C").arg(&directory)).unwrap();
        let image = read_layout(&directory).unwrap();
        assert_eq!(image.entrypoint, ["/usr/bin/fathom"]);
        assert_eq!(image.layers.len(), 1);
        let index: Value = serde_json::from_slice(&read(&directory.join("index.json")).unwrap()).unwrap();
        assert_eq!(index["manifests"][0]["platform"]["architecture"], "arm64");
        fs::write(&image.layers[0], "other bytes").unwrap();
        assert!(read_layout(&directory).unwrap_err().to_string().ends_with("has another digest"));
    }
}
