//! Stands between a write test and somebody's data: what a target is used for now, and what lies on it.
//!
//! Devices are told apart by their numbers, not their paths, so an alias below `/dev/disk` or `/dev/root` hides nothing.
//! What cannot be looked at is an error, never a "free".

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::DeviceError;
use super::filesystem;
use super::obstacle::Obstacle;
use super::root::SysRoot;
use super::signature::{self, Class};
use super::topology::{self, name_of_node, node_of};

/// Loop devices over loop devices are followed this far.
const MAX_LOOP_DEPTH: u32 = 8;

/// Everything that stands against overwriting a block device or a regular file; empty when it is free. For a file only
/// its active uses count (swap, a loop device in use), since replacing a file's contents is what a file target is for.
///
/// Fails when the path, `/proc` or the device's contents cannot be read and nothing else was found against it.
pub fn in_use(path: &Path) -> Result<Vec<Obstacle>, DeviceError> {
    let root = SysRoot::real();
    let stat = |source| DeviceError::Stat { path: path.to_path_buf(), source };
    let file_type = path.metadata().map_err(stat)?.file_type();
    let usage = Usage::read(&root)?;
    if file_type.is_file() {
        let path = path.canonicalize().map_err(stat)?;
        return Ok(usage.of_file(&path, None));
    }
    if !file_type.is_block_device() {
        return Ok(Vec::new());
    }
    let name = name_of_node(&root, path)
        .ok_or_else(|| DeviceError::UnknownDevice { name: path.display().to_string() })?;
    let mut obstacles = usage.of_device(&name);
    let device = node_of(&name);
    if !obstacles.iter().any(Obstacle::is_in_use) && exclusive_open_fails(path).unwrap_or(false) {
        obstacles.push(Obstacle::Busy { device: device.clone() });
    }
    if root.switch(root.block_dir(&name).join("ro")) == Some(true) {
        obstacles.push(Obstacle::ReadOnly { device });
    }
    match signatures_on(path) {
        Ok(found) => {
            let has_table = found.iter().any(|signature| signature.class == Class::PartitionTable);
            obstacles.extend(found.into_iter().map(|what| Obstacle::Signature { what }));
            let partitions = topology::partitions_of(&root, &name);
            if !has_table && !partitions.is_empty() {
                obstacles.push(Obstacle::Partitioned { partitions: nodes_of(&partitions) });
            }
        }
        Err(error) if obstacles.is_empty() => return Err(error),
        Err(_) => {}
    }
    Ok(obstacles)
}

/// Whether the kernel refuses to open a block device exclusively: it does while the device, or a partition of it, is
/// mounted, held or used as swap, also by other namespaces. Opens for reading only, so nothing is disturbed.
pub fn exclusive_open_fails(path: &Path) -> io::Result<bool> {
    let flags = libc::O_EXCL | libc::O_NONBLOCK;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(true),
        Err(error) => Err(error),
    }
}

/// The formats recognised on a device or image.
pub fn signatures_on(path: &Path) -> Result<Vec<signature::Signature>, DeviceError> {
    let open = |source| DeviceError::Open { path: path.to_path_buf(), source };
    let read = |source| DeviceError::Read { path: path.to_path_buf(), source };
    let mut file = File::open(path).map_err(open)?;
    let size = file.seek(SeekFrom::End(0)).map_err(read)?;
    signature::probe(&file as &dyn signature::ReadAt, size).map_err(read)
}

fn nodes_of(names: &[String]) -> Vec<PathBuf> {
    names.iter().map(|name| node_of(name)).collect()
}

/// What uses which device on this machine, read once.
struct Usage<'a> {
    root: &'a SysRoot,
    mounts: Vec<(Vec<String>, PathBuf)>,
    swaps: Vec<PathBuf>,
    loops: Vec<(String, PathBuf)>,
}

impl Usage<'_> {
    fn read(root: &SysRoot) -> Result<Usage<'_>, DeviceError> {
        let mounts = filesystem::read_mounts(root)?;
        let mounts =
            mounts.into_iter().map(|mount| (topology::devices_of_mount(root, &mount), mount.mount_point));
        let backing = |name: String| {
            let file = root.text(root.block_dir(&name).join("loop/backing_file"))?;
            Some((name, PathBuf::from(file)))
        };
        Ok(Usage {
            root,
            mounts: mounts.filter(|(devices, _)| !devices.is_empty()).collect(),
            swaps: parse_swaps(&root.bytes("/proc/swaps").unwrap_or_default()),
            loops: root.names("/sys/class/block").into_iter().filter_map(backing).collect(),
        })
    }

    fn of_device(&self, name: &str) -> Vec<Obstacle> {
        self.of_device_at(name, MAX_LOOP_DEPTH)
    }

    fn of_device_at(&self, name: &str, depth: u32) -> Vec<Obstacle> {
        let mut found = Vec::new();
        self.direct(name, |device, mount_point| Obstacle::Mounted { device, mount_point }, &mut found);
        let mut shared = vec![name.to_string()];
        for partition in topology::partitions_of(self.root, name) {
            self.direct(
                &partition,
                |device, mount_point| Obstacle::MountedPartition { device, mount_point },
                &mut found,
            );
            shared.push(partition);
        }
        if let Some(disk) = topology::disk_of(self.root, name) {
            self.direct(
                &disk,
                |device, mount_point| Obstacle::MountedParent { device, mount_point },
                &mut found,
            );
            shared.push(disk);
        }
        if depth == 0 {
            return found;
        }
        for (loop_name, file) in self.loops.iter().filter(|(loop_name, _)| loop_name != name) {
            if name_of_node(self.root, file).is_some_and(|backing| shared.contains(&backing)) {
                found.extend(self.user_of_loop(loop_name, depth - 1));
            }
        }
        // What is written to a loop device arrives in its backing file, whoever else has that in use.
        if let Some((_, file)) = self.loops.iter().find(|(loop_name, _)| loop_name == name) {
            match name_of_node(self.root, file) {
                Some(backing) => found.extend(self.beneath_loop(&backing, name, depth - 1)),
                None => found.extend(self.of_file(file, Some(name))),
            }
        }
        found
    }

    /// Mounts, swap and holders of exactly this device.
    fn direct(&self, name: &str, mounted: impl Fn(PathBuf, PathBuf) -> Obstacle, found: &mut Vec<Obstacle>) {
        let device = node_of(name);
        for (devices, mount_point) in &self.mounts {
            if devices.iter().any(|candidate| candidate == name) {
                found.push(mounted(device.clone(), mount_point.clone()));
            }
        }
        if self.swaps.iter().any(|swap| name_of_node(self.root, swap).as_deref() == Some(name)) {
            found.push(Obstacle::SwapInUse { path: device.clone() });
        }
        for holder in self.root.names(self.root.block_dir(name).join("holders")) {
            found.push(Obstacle::Holder { device: device.clone(), holder: node_of(&holder) });
        }
    }

    fn user_of_loop(&self, loop_name: &str, depth: u32) -> Option<Obstacle> {
        let user = self.of_device_at(loop_name, depth).into_iter().next()?;
        Some(Obstacle::BackingFile { device: node_of(loop_name), user: Box::new(user) })
    }

    /// What uses the device behind a loop device, except that loop device.
    fn beneath_loop(&self, backing: &str, loop_name: &str, depth: u32) -> Vec<Obstacle> {
        let itself = node_of(loop_name);
        let mut found = self.of_device_at(backing, depth);
        found.retain(
            |obstacle| !matches!(obstacle, Obstacle::BackingFile { device, .. } if *device == itself),
        );
        found
    }

    /// The active uses of a file, apart from a loop device that is itself the target.
    fn of_file(&self, file: &Path, except: Option<&str>) -> Vec<Obstacle> {
        let mut found = Vec::new();
        if self.swaps.iter().any(|swap| is_same_file(swap, file)) {
            found.push(Obstacle::SwapInUse { path: file.to_path_buf() });
        }
        for (loop_name, backing) in &self.loops {
            if Some(loop_name.as_str()) != except && is_same_file(backing, file) {
                let mut users = Vec::new();
                let mounted = |device, mount_point| Obstacle::Mounted { device, mount_point };
                self.direct(loop_name, mounted, &mut users);
                for partition in topology::partitions_of(self.root, loop_name) {
                    self.direct(&partition, mounted, &mut users);
                }
                found.extend(
                    users.into_iter().next().map(|user| Obstacle::BackingFile {
                        device: node_of(loop_name),
                        user: Box::new(user),
                    }),
                );
            }
        }
        found
    }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    let identity = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    a == b || identity(a).is_some_and(|of_a| identity(b) == Some(of_a))
}

/// The first column of `/proc/swaps`, below its heading.
fn parse_swaps(text: &[u8]) -> Vec<PathBuf> {
    let first = |line: &[u8]| {
        let end = line.iter().position(|byte| byte.is_ascii_whitespace())?;
        Some(PathBuf::from(filesystem::unescape(&line[..end])))
    };
    text.split(|&byte| byte == b'\n').skip(1).filter_map(first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fixture::Fixture;

    fn check(fixture: &Fixture, name: &str, expected: &[&str]) {
        let root = fixture.root();
        let found = Usage::read(&root).unwrap().of_device(name);
        let sentences: Vec<String> = found.iter().map(Obstacle::to_string).collect();
        assert_eq!(sentences, expected, "{name}");
    }

    fn disks() -> Fixture {
        let fixture = Fixture::new();
        fixture.disk("a", "sda", "8:0", &[]);
        fixture.partition("sda", 1, "sda1", "8:1").partition("sda", 2, "sda2", "8:2");
        fixture.disk("b", "sdb", "8:16", &[]);
        fixture
            .disk("virtual", "dm-0", "253:0", &[])
            .write("sys/devices/virtual/block/dm-0/dm/name", "vg-lv\n");
        fixture
    }

    #[test]
    fn mounts_by_number() {
        let mut fixture = disks();
        fixture.mount("8:1", "/", "ext4", "/dev/root").mount(
            "8:1",
            "/mnt/bound\\040here",
            "ext4",
            "/dev/root",
        );
        check(
            &fixture,
            "sda",
            &[
                "its partition /dev/sda1 is mounted at /",
                "its partition /dev/sda1 is mounted at /mnt/bound here",
            ],
        );
        check(&fixture, "sda1", &["/dev/sda1 is mounted at /", "/dev/sda1 is mounted at /mnt/bound here"]);
        check(&fixture, "sda2", &[]);
        check(&fixture, "sdb", &[]);
    }

    #[test]
    fn disk_mounted_as_a_whole() {
        let mut fixture = disks();
        fixture.mount("8:0", "/mnt", "xfs", "/dev/sda");
        check(&fixture, "sda2", &["its disk /dev/sda is mounted as a whole at /mnt"]);
    }

    #[test]
    fn members_of_a_mounted_btrfs() {
        let mut fixture = disks();
        fixture.write("sys/fs/btrfs/id/devices/sda2", "").write("sys/fs/btrfs/id/devices/sdb", "");
        fixture.mount("0:50", "/pool", "btrfs", "/dev/sda2");
        check(&fixture, "sdb", &["/dev/sdb is mounted at /pool"]);
        check(&fixture, "sda", &["its partition /dev/sda2 is mounted at /pool"]);
    }

    #[test]
    fn holders() {
        let fixture = disks();
        fixture.holds("dm-0", "sda2");
        check(&fixture, "sda2", &["/dev/dm-0 is built on /dev/sda2"]);
        check(&fixture, "sda", &["/dev/dm-0 is built on /dev/sda2"]);
        check(&fixture, "sda1", &[]);
        check(&fixture, "dm-0", &[]);
        fixture.holds("dm-0", "sdb").partition("sdb", 1, "sdb1", "8:17");
        check(&fixture, "sdb1", &["/dev/dm-0 is built on /dev/sdb"]);
    }

    #[test]
    fn swap() {
        let fixture = disks();
        fixture.write(
            "proc/swaps",
            "Filename\t\t\t\tType\t\tSize\n/dev/mapper/vg-lv partition 100 0 -2\n/dev/sda2\tpartition\t9\n",
        );
        check(&fixture, "dm-0", &["/dev/dm-0 is active swap space"]);
        check(&fixture, "sda", &["/dev/sda2 is active swap space"]);
        check(&fixture, "sdb", &[]);
    }

    #[test]
    fn loops_over_devices_and_files() {
        let mut fixture = disks();
        let backing = |name: &str, file: &str| {
            let number = format!("7:{}", name.trim_start_matches("loop"));
            fixture.disk("virtual", name, &number, &[]);
            fixture.write(&format!("sys/devices/virtual/block/{name}/loop/backing_file"), file);
        };
        backing("loop0", "/dev/sdb\n");
        backing("loop1", "/srv/a.img\n");
        backing("loop2", "/srv/a.img\n");
        fixture.mount("7:0", "/mnt/zero", "ext4", "/dev/loop0").mount("7:1", "/mnt/one", "xfs", "/dev/loop1");
        let behind = |device: &str, at: &str| {
            format!("the loop device {device} has its data there, and {device} is mounted at {at}")
        };
        check(&fixture, "sdb", &[&behind("/dev/loop0", "/mnt/zero")]);
        check(&fixture, "loop0", &["/dev/loop0 is mounted at /mnt/zero"]);
        check(&fixture, "loop2", &[&behind("/dev/loop1", "/mnt/one")]);
        check(&fixture, "loop1", &["/dev/loop1 is mounted at /mnt/one"]);
        let root = fixture.root();
        let found = Usage::read(&root).unwrap().of_file(Path::new("/srv/a.img"), None);
        assert_eq!(
            found.iter().map(Obstacle::to_string).collect::<Vec<_>>(),
            [behind("/dev/loop1", "/mnt/one")]
        );
        assert_eq!(Usage::read(&root).unwrap().of_file(Path::new("/srv/b.img"), None), []);
    }

    #[test]
    fn loop_over_a_mounted_device() {
        let mut fixture = disks();
        fixture.disk("virtual", "loop0", "7:0", &[]);
        fixture.write("sys/devices/virtual/block/loop0/loop/backing_file", "/dev/sda1\n");
        fixture.mount("8:1", "/data", "ext4", "/dev/sda1");
        check(&fixture, "loop0", &["/dev/sda1 is mounted at /data"]);
    }

    #[test]
    fn missing_path() {
        assert!(matches!(in_use(Path::new("/no/such/device")), Err(DeviceError::Stat { .. })));
        assert_eq!(in_use(Path::new("/dev/null")).unwrap(), []);
    }
}
