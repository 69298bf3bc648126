//! The limits that control groups put on this process: CPU, memory, and I/O per device, of version 1 and 2.
//!
//! A limit of an ancestor applies to all groups below it, so the smallest on the way up is effective.

use std::path::{Path, PathBuf};

use super::filesystem::{self, Mount};
use super::root::SysRoot;

/// The unit of a throttle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThrottleKind {
    /// Bytes read per second.
    ReadBytes,
    /// Bytes written per second.
    WriteBytes,
    /// Reads per second.
    ReadIos,
    /// Writes per second.
    WriteIos,
}

/// A cap on the I/O of this process to one device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IoThrottle {
    /// Major number of the device.
    pub major: u32,
    /// Minor number of the device.
    pub minor: u32,
    /// The limited unit.
    pub kind: ThrottleKind,
    /// Bytes or requests per second.
    pub limit: u64,
}

/// The effective limits; `None` or empty if there is none or it cannot be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CgroupLimits {
    /// This process's group of the unified hierarchy, or of the CPU controller where that is version 1.
    pub path: Option<String>,
    /// CPUs' worth of time it may use.
    pub cpu_quota: Option<f64>,
    /// Bytes of memory it may use.
    pub memory_bytes: Option<u64>,
    /// Caps per device, the smallest of each kind.
    pub io: Vec<IoThrottle>,
    /// The directory of the lowest group that sets one.
    pub io_group: Option<PathBuf>,
}

impl CgroupLimits {
    /// Read the limits of this process.
    pub fn read(root: &SysRoot) -> CgroupLimits {
        let groups = parse_groups(&root.text("/proc/self/cgroup").unwrap_or_default());
        let mounts = filesystem::read_mounts(root).unwrap_or_default();
        let mut limits = CgroupLimits::default();
        let place = |controller: &str| CgroupDirectories::find(&groups, &mounts, controller);
        if let Some(place) = place("cpu") {
            limits.path = Some(place.group.clone());
            limits.cpu_quota = place.smallest(|dir| v1_quota(root, dir), f64::min);
        }
        if let Some(place) = place("memory") {
            let limit = |dir: &Path| {
                root.number(dir.join("memory.limit_in_bytes")).filter(|&bytes| bytes < V1_UNLIMITED)
            };
            limits.memory_bytes = place.smallest(limit, u64::min);
        }
        if let Some(place) = place("blkio") {
            // Without inheritance, as version 1 has it: only the group itself counts.
            limits.join_io(place.dirs.first(), |dir| v1_throttles(root, dir));
        }
        if let Some(place) = place("") {
            limits.join_v2(root, &place);
        }
        limits.io = smallest_of_each(limits.io);
        limits
    }

    /// Leaves the limits on these devices, by their numbers.
    pub fn keep_limits_on(&mut self, devices: &[(u32, u32)]) {
        self.io.retain(|limit| devices.contains(&(limit.major, limit.minor)));
        self.io_group.take_if(|_| self.io.is_empty());
    }

    fn join_v2(&mut self, root: &SysRoot, place: &CgroupDirectories) {
        self.path.get_or_insert_with(|| place.group.clone());
        let quota = |dir: &Path| parse_cpu_max(&root.text(dir.join("cpu.max"))?);
        self.cpu_quota = self.cpu_quota.into_iter().chain(place.smallest(quota, f64::min)).reduce(f64::min);
        let memory = |dir: &Path| root.number(dir.join("memory.max"));
        self.memory_bytes = self.memory_bytes.into_iter().chain(place.smallest(memory, u64::min)).min();
        let io_max =
            |dir: &Path| root.text(dir.join("io.max")).map(|text| parse_io_max(&text)).unwrap_or_default();
        self.join_io(&place.dirs, io_max);
    }

    fn join_io<'a>(
        &mut self,
        dirs: impl IntoIterator<Item = &'a PathBuf>,
        read: impl Fn(&Path) -> Vec<IoThrottle>,
    ) {
        for dir in dirs {
            let set = read(dir);
            if !set.is_empty() {
                self.io_group.get_or_insert_with(|| dir.clone());
            }
            self.io.extend(set);
        }
    }
}

/// The directories of this process's group under the CPU controller and of those above it, lowest first.
pub fn cpu_groups(root: &SysRoot) -> Vec<PathBuf> {
    let groups = parse_groups(&root.text("/proc/self/cgroup").unwrap_or_default());
    let mounts = filesystem::read_mounts(root).unwrap_or_default();
    let place = CgroupDirectories::find(&groups, &mounts, "cpu")
        .or_else(|| CgroupDirectories::find(&groups, &mounts, ""));
    place.map(|place| place.dirs).unwrap_or_default()
}

/// Version 1 writes "no limit" as the largest multiple of a page.
const V1_UNLIMITED: u64 = 1 << 62;

struct ControlGroup {
    controllers: Vec<String>,
    path: String,
}

/// `/proc/self/cgroup`: `4:memory:/a/b` per version 1 hierarchy, `0::/a/b` for the unified one.
fn parse_groups(text: &str) -> Vec<ControlGroup> {
    let parse = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?.split(',').map(str::to_string).collect();
        Some(ControlGroup { controllers, path: fields.next()?.to_string() })
    };
    text.lines().filter_map(parse).collect()
}

/// Directories of this process's group and its ancestors, as far up as they are mounted.
struct CgroupDirectories {
    group: String,
    dirs: Vec<PathBuf>,
}

impl CgroupDirectories {
    /// `controller` is a version 1 controller, or empty for the unified hierarchy.
    fn find(groups: &[ControlGroup], mounts: &[Mount], controller: &str) -> Option<CgroupDirectories> {
        let group = groups.iter().find(|group| group.controllers.iter().any(|name| name == controller))?;
        let is_its_mount = |mount: &&Mount| match controller {
            "" => mount.fs_type == "cgroup2",
            _ => {
                mount.fs_type == "cgroup" && mount.super_options.split(',').any(|option| option == controller)
            }
        };
        let mount = mounts.iter().find(is_its_mount)?;
        // A container sees its own group as the mount's root; then the mount point itself is the group.
        let below = Path::new(&group.path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
        let dirs = below.ancestors().map(|part| mount.mount_point.join(part)).collect();
        Some(CgroupDirectories { group: group.path.clone(), dirs })
    }

    fn smallest<T>(&self, read: impl Fn(&Path) -> Option<T>, least: impl Fn(T, T) -> T) -> Option<T> {
        self.dirs.iter().filter_map(|dir| read(dir)).reduce(least)
    }
}

fn v1_quota(root: &SysRoot, dir: &Path) -> Option<f64> {
    // -1 is "no quota" and no number here.
    let quota = root.number(dir.join("cpu.cfs_quota_us"))?;
    let period = root.number(dir.join("cpu.cfs_period_us")).filter(|&period| period > 0)?;
    Some(quota as f64 / period as f64)
}

fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let period: f64 = period.trim().parse().ok().filter(|&period| period > 0.0)?;
    Some(quota.parse::<f64>().ok()? / period)
}

fn v1_throttles(root: &SysRoot, dir: &Path) -> Vec<IoThrottle> {
    let files = [
        ("read_bps", ThrottleKind::ReadBytes),
        ("write_bps", ThrottleKind::WriteBytes),
        ("read_iops", ThrottleKind::ReadIos),
        ("write_iops", ThrottleKind::WriteIos),
    ];
    let mut found = Vec::new();
    for (name, kind) in files {
        let text = root.text(dir.join(format!("blkio.throttle.{name}_device"))).unwrap_or_default();
        for line in text.lines() {
            let mut fields = line.split_ascii_whitespace();
            let number = fields.next().and_then(super::topology::parse_number);
            let limit = fields.next().and_then(|limit| limit.parse().ok());
            found.extend(number.zip(limit).map(|((major, minor), limit)| IoThrottle {
                major,
                minor,
                kind,
                limit,
            }));
        }
    }
    found
}

/// `8:16 rbps=2097152 wbps=max riops=max wiops=120`
fn parse_io_max(text: &str) -> Vec<IoThrottle> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let Some((major, minor)) = fields.next().and_then(super::topology::parse_number) else { continue };
        for (name, value) in fields.filter_map(|field| field.split_once('=')) {
            let kind = match name {
                "rbps" => ThrottleKind::ReadBytes,
                "wbps" => ThrottleKind::WriteBytes,
                "riops" => ThrottleKind::ReadIos,
                "wiops" => ThrottleKind::WriteIos,
                _ => continue,
            };
            found.extend(value.parse().ok().map(|limit| IoThrottle { major, minor, kind, limit }));
        }
    }
    found
}

fn smallest_of_each(mut throttles: Vec<IoThrottle>) -> Vec<IoThrottle> {
    throttles.sort();
    throttles.dedup_by_key(|throttle| (throttle.major, throttle.minor, throttle.kind));
    throttles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_with(files: &[(&str, &str)]) -> (tempfile::TempDir, SysRoot) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = SysRoot::at(dir.path());
        (dir, root)
    }

    #[test]
    fn version_1() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio
";
        let (_dir, root) = root_with(&[
            ("proc/self/cgroup", "4:memory:/a/b\n7:blkio:/a\n1:cpu,cpuacct:/a/b\n"),
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824\n"),
            ("sys/fs/cgroup/blkio/a/blkio.throttle.read_iops_device", "7:0 1000\n7:1 500\n"),
            ("sys/fs/cgroup/blkio/a/blkio.throttle.write_bps_device", "7:0 1048576\n"),
            ("sys/fs/cgroup/blkio/blkio.throttle.write_bps_device", "7:0 1024\n"),
        ]);
        let limits = CgroupLimits::read(&root);
        assert_eq!(limits.path.as_deref(), Some("/a/b"));
        assert_eq!((limits.cpu_quota, limits.memory_bytes), (Some(1.5), Some(1 << 30)));
        let throttle = |minor, kind, limit| IoThrottle { major: 7, minor, kind, limit };
        let expected = [
            throttle(0, ThrottleKind::WriteBytes, 1048576),
            throttle(0, ThrottleKind::ReadIos, 1000),
            throttle(1, ThrottleKind::ReadIos, 500),
        ];
        assert_eq!(limits.io, expected);
        assert_eq!(limits.io_group.as_deref(), Some(Path::new("/sys/fs/cgroup/blkio/a")));
        let mut of_other = limits.clone();
        of_other.keep_limits_on(&[(7, 1), (8, 0)]);
        assert_eq!((of_other.io.as_slice(), of_other.io_group.is_some()), (&expected[2..], true));
        of_other.keep_limits_on(&[(8, 0)]);
        assert_eq!((of_other.io.len(), of_other.io_group), (0, None));
    }

    #[test]
    fn version_2() {
        let (_dir, root) = root_with(&[
            ("proc/self/cgroup", "0::/user/me\n"),
            ("proc/self/mountinfo", "30 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/user/me/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/user/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/user/me/memory.max", "max\n"),
            ("sys/fs/cgroup/user/me/io.max", "8:16 rbps=2097152 wbps=max riops=max wiops=120\n"),
            ("sys/fs/cgroup/user/io.max", "8:16 rbps=max wbps=max riops=max wiops=100\n"),
        ]);
        let limits = CgroupLimits::read(&root);
        assert_eq!((limits.cpu_quota, limits.memory_bytes), (Some(0.5), None));
        let throttle = |kind, limit| IoThrottle { major: 8, minor: 16, kind, limit };
        assert_eq!(
            limits.io,
            [throttle(ThrottleKind::ReadBytes, 2097152), throttle(ThrottleKind::WriteIos, 100)]
        );
        assert_eq!(limits.io_group.as_deref(), Some(Path::new("/sys/fs/cgroup/user/me")));
    }

    #[test]
    fn container_whose_mount_shows_only_its_group() {
        let (_dir, root) = root_with(&[
            ("proc/self/cgroup", "3:memory:/docker/1234\n"),
            (
                "proc/self/mountinfo",
                "30 23 0:28 /docker/1234 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n"),
        ]);
        assert_eq!(CgroupLimits::read(&root).memory_bytes, Some(4096));
    }

    #[test]
    fn nothing_to_read() {
        let (_dir, root) = root_with(&[]);
        assert_eq!(CgroupLimits::read(&root), CgroupLimits::default());
    }
}
