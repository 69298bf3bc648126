//! Whether a file system keeps its files in memory, by itself or in the layer of an overlay that holds them.

use std::path::{Path, PathBuf};

use super::filesystem::{self, Mount};
use super::root::SysRoot;

/// File systems that keep their files in memory.
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// Overlays on overlays that are followed; the kernel allows two.
const MAX_LAYERS: usize = 4;

/// The type of the file system that keeps `path` in memory; `None` where none does, or where the layers of an overlay are
/// out of sight.
pub fn memory_behind(root: &SysRoot, mounts: &[Mount], path: &Path) -> Option<String> {
    let mut place = path.to_path_buf();
    for _ in 0..MAX_LAYERS {
        if root.is_real() {
            place = place.canonicalize().ok()?;
        }
        let mount = filesystem::mount_of(root, mounts, &place).ok()?;
        if IN_MEMORY.contains(&mount.fs_type.as_str()) {
            return Some(mount.fs_type.clone());
        }
        place = layer_of(root, mount, &place)?;
    }
    None
}

/// The path in the layer of an overlay that holds `path`: the first layer that has the file; for a directory the upper
/// layer, where new files are created.
fn layer_of(root: &SysRoot, mount: &Mount, path: &Path) -> Option<PathBuf> {
    if mount.fs_type != "overlay" {
        return None;
    }
    let below = path.strip_prefix(&mount.mount_point).ok()?;
    let inside = mount.root.strip_prefix("/").unwrap_or(&mount.root).join(below);
    let options = || mount.super_options.split(',').filter_map(|option| option.split_once('='));
    let lower = options().filter(|(name, _)| ["lowerdir", "lowerdir+"].contains(name));
    let upper = mount.super_option("upperdir");
    let mut layers = upper.into_iter().chain(lower.flat_map(|(_, dirs)| dirs.split(':')));
    if root.path(path).is_dir() {
        return layers.next().map(PathBuf::from);
    }
    layers.map(|layer| Path::new(layer).join(&inside)).find(|file| root.exists(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fixture::Fixture;

    #[test]
    fn files_in_memory_are_recognised_by_themselves_and_in_the_layers_of_an_overlay() {
        let mut fixture = Fixture::new();
        fixture
            .mount("254:0", "/", "ext4", "/dev/root")
            .mount("0:30", "/ram", "tmpfs", "tmpfs")
            .mount_with(
                "0:40",
                "/live",
                "overlay",
                "overlay",
                "rw,lowerdir=/low:/base,upperdir=/ram/up,workdir=/ram/w",
            )
            .mount_with(
                "0:41",
                "/disk",
                "overlay",
                "overlay",
                "rw,lowerdir+=/ram/low,upperdir=/up,workdir=/w",
            )
            .mount_with(
                "0:42",
                "/deep",
                "overlay",
                "overlay",
                "rw,lowerdir=/low,upperdir=/live/up,workdir=/live/w",
            )
            .mount_with(
                "0:43",
                "/gone",
                "overlay",
                "overlay",
                "rw,lowerdir=/x,upperdir=/nowhere/up,workdir=/y",
            );
        for file in [
            "ram/file", "base/old", "live/old", "ram/up/new", "live/new", "ram/low/a", "disk/a", "up/b",
            "disk/b",
        ] {
            fixture.write(file, "");
        }
        for dir in ["ram/up/up", "live/up", "deep", "gone", "srv"] {
            fixture.write(&format!("{dir}/.keep"), "");
        }
        let root = fixture.root();
        let mounts = filesystem::read_mounts(&root).unwrap();
        for (path, expected) in [
            ("/ram", Some("tmpfs")),
            ("/ram/file", Some("tmpfs")),
            ("/srv", None),
            ("/live", Some("tmpfs")),
            ("/live/new", Some("tmpfs")),
            // The lower layer on a disk holds it until it is written to.
            ("/live/old", None),
            ("/disk", None),
            ("/disk/a", Some("tmpfs")),
            ("/disk/b", None),
            ("/deep", Some("tmpfs")),
            ("/gone", None),
        ] {
            assert_eq!(memory_behind(&root, &mounts, Path::new(path)).as_deref(), expected, "{path}");
        }
    }
}
