//! Caps on what a group of processes may ask of one device: a volume whose limits are known.
//!
//! The kernel charges a request when it enters the block layer, in slices of 100 ms (rotational) or 20 ms. For a test:
//!
//! - A slice's allowance may be spent immediately at its start, so latencies are either that of the bare device or about 100 ms.
//! - A run counts `cap * runtime + depth` completions: the last `depth` requests come in when the time is over.
//! - A request that is split is charged for every piece: above `max_segments` pages (128 on a loop device, so 512 KiB from
//!   scattered pages), with a physically contiguous buffer above `max_sectors_kb` (1280 KiB).
//! - Reads and writes have separate allowances, shared by all members. Trims have none.
//! - Buffered writes are not throttled when they are issued, but at write-back: closing a raw device then takes as long as
//!   its dirty pages at the cap. A file system's journal is charged as well, so a file gets less than its device.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::wait::wait_for;

/// Limits of one device; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cap {
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
    /// Bytes read per second.
    pub read_bps: Option<u64>,
    /// Bytes written per second.
    pub write_bps: Option<u64>,
}

impl Cap {
    /// The same number of reads and of writes per second, each counted by itself.
    pub fn iops(iops: u64) -> Self {
        Cap { read_iops: Some(iops), write_iops: Some(iops), ..Cap::default() }
    }

    /// The same number of bytes read and written per second, each counted by itself.
    pub fn bytes_per_second(bytes: u64) -> Self {
        Cap { read_bps: Some(bytes), write_bps: Some(bytes), ..Cap::default() }
    }

    /// Each limit under its name in version 1 (`read_iops`) and in version 2 (`riops`).
    fn limits(&self) -> [(&'static str, &'static str, Option<u64>); 4] {
        [
            ("read_iops", "riops", self.read_iops),
            ("write_iops", "wiops", self.write_iops),
            ("read_bps", "rbps", self.read_bps),
            ("write_bps", "wbps", self.write_bps),
        ]
    }
}

/// Where the kernel lets groups be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hierarchy {
    /// The blkio controller of version 1.
    V1(PathBuf),
    /// The unified hierarchy with the io controller.
    V2(PathBuf),
}

/// A control group with limits on one device. Dropping it lifts them, ends what still runs in it, and removes it.
#[derive(Debug)]
pub struct Throttle {
    hierarchy: Hierarchy,
    group: PathBuf,
    device: String,
    /// Devices with limits of their own in the same group.
    further: Vec<String>,
}

impl Throttle {
    /// A new group whose members get `cap` from the block device `device`.
    pub fn new(device: &Path, cap: &Cap) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let hierarchy = hierarchy().expect("a test that caps a device asks for `limits` in need!");
        let (Hierarchy::V1(root) | Hierarchy::V2(root)) = &hierarchy;
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let group = root.join(format!("fathom-test-{}-{unique}", std::process::id()));
        if matches!(hierarchy, Hierarchy::V2(_)) {
            write(&root.join("cgroup.subtree_control"), "+io");
        }
        fs::create_dir(&group).unwrap_or_else(|error| panic!("cannot make {}: {error}", group.display()));
        let throttle = Throttle { hierarchy, group, device: major_minor(device), further: Vec::new() };
        throttle.set(cap);
        throttle
    }

    /// Gives another block device limits in the same group.
    pub fn with(mut self, device: &Path, cap: &Cap) -> Self {
        let device = major_minor(device);
        for (file, line) in self.settings(&device, cap) {
            write(&self.group.join(file), &line);
        }
        self.further.push(device);
        self
    }

    /// Replaces the limits, also while processes run in the group. A limit that is `None` is lifted.
    pub fn set(&self, cap: &Cap) {
        for (file, line) in self.settings(&self.device, cap) {
            write(&self.group.join(file), &line);
        }
    }

    /// The file that takes processes into the group, by their numbers.
    pub fn members(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }

    /// A command that runs `program` inside the group from its first instruction on; add arguments as usual.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("sh");
        // cgroup.procs moves the whole process; the shell becomes the program, so its id is the program's.
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.members()).arg(program);
        command
    }

    /// The settings of a device for the files of the group.
    fn settings(&self, device: &str, cap: &Cap) -> Vec<(String, String)> {
        match self.hierarchy {
            Hierarchy::V1(_) => cap
                .limits()
                .iter()
                // 0 lifts a limit in version 1.
                .map(|(name, _, limit)| {
                    (format!("blkio.throttle.{name}_device"), format!("{device} {}", limit.unwrap_or(0)))
                })
                .collect(),
            Hierarchy::V2(_) => {
                let limits = cap.limits().map(|(_, name, limit)| {
                    format!("{name}={}", limit.map_or_else(|| "max".to_owned(), |limit| limit.to_string()))
                });
                vec![("io.max".to_owned(), format!("{device} {}", limits.join(" ")))]
            }
        }
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // First the limits: a process that waits under one cannot be ended before its requests are through.
        for device in self.further.iter().chain([&self.device]) {
            for (file, line) in self.settings(device, &Cap::default()) {
                fs::write(self.group.join(file), line).ok();
            }
        }
        // A group can be removed once its last process is gone, which is a moment after that process was waited for.
        let is_removed = wait_for(Duration::from_millis(500), || fs::remove_dir(&self.group).is_ok());
        if !is_removed {
            end_members(&self.group);
            wait_for(Duration::from_secs(5), || fs::remove_dir(&self.group).is_ok());
        }
    }
}

/// Ends what still runs in `group`: what a test that panicked left behind.
fn end_members(group: &Path) {
    let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    for member in
        members.lines().filter_map(|line| line.parse().ok()).filter_map(rustix::process::Pid::from_raw)
    {
        rustix::process::kill_process(member, rustix::process::Signal::KILL).ok();
    }
}

/// The hierarchy that can limit block I/O here; version 1 first, since a controller is in one of the two only.
pub(crate) fn hierarchy() -> Option<Hierarchy> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    find_hierarchy(&mounts, |root| fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default())
}

fn find_hierarchy(mounts: &str, controllers: impl Fn(&Path) -> String) -> Option<Hierarchy> {
    let fields =
        || mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|fields| fields.len() > 3);
    let v1 =
        fields().find(|fields| fields[2] == "cgroup" && fields[3].split(',').any(|option| option == "blkio"));
    if let Some(fields) = v1 {
        return Some(Hierarchy::V1(fields[1].into()));
    }
    fields()
        .filter(|fields| fields[2] == "cgroup2")
        .map(|fields| PathBuf::from(fields[1]))
        .find(|root| controllers(root).split_whitespace().any(|controller| controller == "io"))
        .map(Hierarchy::V2)
}

fn major_minor(device: &Path) -> String {
    let metadata =
        fs::metadata(device).unwrap_or_else(|error| panic!("cannot look at {}: {error}", device.display()));
    format!("{}:{}", rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()))
}

fn write(path: &Path, line: &str) {
    fs::write(path, line)
        .unwrap_or_else(|error| panic!("cannot write \"{line}\" to {}: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_that_limits_block_io_is_found() {
        let check = |mounts: &str, controllers: &str, expected: Option<Hierarchy>| {
            assert_eq!(
                find_hierarchy(mounts, |_| controllers.to_owned()),
                expected,
                "{mounts} {controllers}"
            );
        };
        let v1 =
            "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup /sys/fs/cgroup/blkio cgroup rw,blkio 0 0\n";
        let v2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        check(v1, "", Some(Hierarchy::V1("/sys/fs/cgroup/blkio".into())));
        check(v2, "cpuset cpu io memory\n", Some(Hierarchy::V2("/sys/fs/cgroup".into())));
        check(v2, "hugetlb\n", None);
        check(&format!("{v2}{v1}"), "io\n", Some(Hierarchy::V1("/sys/fs/cgroup/blkio".into())));
        check("", "io", None);
    }

    #[test]
    fn limits_have_the_syntax_of_each_cgroup_version() {
        let cap = Cap { read_iops: Some(500), write_bps: Some(1 << 20), ..Cap::default() };
        let settings = |hierarchy: Hierarchy| {
            let group = PathBuf::from("/nowhere/group");
            let (device, further) = ("7:1".to_owned(), Vec::new());
            std::mem::ManuallyDrop::new(Throttle { hierarchy, group, device, further }).settings("7:1", &cap)
        };
        assert_eq!(
            settings(Hierarchy::V2("/nowhere".into())),
            [("io.max".to_owned(), "7:1 riops=500 wiops=max rbps=max wbps=1048576".to_owned())]
        );
        let lines: Vec<_> = settings(Hierarchy::V1("/nowhere".into()))
            .into_iter()
            .map(|(file, line)| format!("{file}: {line}"))
            .collect();
        assert_eq!(
            lines,
            [
                "blkio.throttle.read_iops_device: 7:1 500",
                "blkio.throttle.write_iops_device: 7:1 0",
                "blkio.throttle.read_bps_device: 7:1 0",
                "blkio.throttle.write_bps_device: 7:1 1048576",
            ]
        );
    }
}
