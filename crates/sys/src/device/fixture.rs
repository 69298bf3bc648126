//! A made-up `/proc` and `/sys` in a temporary directory, for tests on devices that this machine does not have.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::root::SysRoot;

/// The tree; removed when dropped.
pub(super) struct Fixture {
    dir: tempfile::TempDir,
    mounts: String,
}

impl Fixture {
    pub(super) fn new() -> Fixture {
        let fixture = Fixture { dir: tempfile::tempdir().unwrap(), mounts: String::new() };
        fixture
            .write("proc/self/mountinfo", "")
            .write("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
        fixture
    }

    pub(super) fn root(&self) -> SysRoot {
        SysRoot::at(self.dir.path())
    }

    pub(super) fn write(&self, path: &str, text: &str) -> &Fixture {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// A whole disk at `sys/devices/BUS/block/NAME` with these attributes.
    pub(super) fn disk(&self, bus: &str, name: &str, number: &str, attributes: &[(&str, &str)]) -> &Fixture {
        self.device(&format!("sys/devices/{bus}/block/{name}"), number, attributes)
    }

    /// A partition below a disk made before.
    pub(super) fn partition(&self, disk: &str, index: u32, name: &str, number: &str) -> &Fixture {
        let disk = self.dir.path().join("sys/class/block").join(disk).canonicalize().unwrap();
        let place = disk.strip_prefix(self.dir.path().canonicalize().unwrap()).unwrap().join(name);
        let index = index.to_string();
        self.device(place.to_str().unwrap(), number, &[("partition", &index), ("size", "2048"), ("ro", "0")])
    }

    /// `upper` is built on `lower`.
    pub(super) fn holds(&self, upper: &str, lower: &str) -> &Fixture {
        let class = self.dir.path().join("sys/class/block");
        for (directory, name) in
            [(class.join(lower).join("holders"), upper), (class.join(upper).join("slaves"), lower)]
        {
            std::fs::create_dir_all(&directory).unwrap();
            symlink(class.join(name), directory.join(name)).unwrap();
        }
        self
    }

    /// A mount of the device with this number; `id` counts up by itself.
    pub(super) fn mount(
        &mut self,
        number: &str,
        mount_point: &str,
        fs_type: &str,
        source: &str,
    ) -> &mut Fixture {
        self.mount_with(number, mount_point, fs_type, source, "rw")
    }

    /// As [`Fixture::mount`], with options of the file system.
    pub(super) fn mount_with(
        &mut self,
        number: &str,
        mount_point: &str,
        fs_type: &str,
        source: &str,
        options: &str,
    ) -> &mut Fixture {
        let id = 20 + self.mounts.lines().count();
        self.mounts += &format!("{id} 1 {number} / {mount_point} rw - {fs_type} {source} {options}\n");
        self.write("proc/self/mountinfo", &self.mounts);
        self
    }

    fn device(&self, place: &str, number: &str, attributes: &[(&str, &str)]) -> &Fixture {
        let real = self.dir.path().join(place);
        std::fs::create_dir_all(&real).unwrap();
        for (name, value) in [("dev", number)].iter().chain(attributes) {
            self.write(&format!("{place}/{name}"), &format!("{value}\n"));
        }
        self.link(&format!("sys/class/block/{}", real.file_name().unwrap().to_str().unwrap()), &real);
        self.link(&format!("sys/dev/block/{number}"), &real);
        self
    }

    pub(super) fn link(&self, from: &str, to: &Path) -> &Fixture {
        let from: PathBuf = self.dir.path().join(from);
        std::fs::create_dir_all(from.parent().unwrap()).unwrap();
        symlink(to, from).unwrap();
        self
    }
}
