//! Control groups for I/O: the `blkio` hierarchy of version 1, whose groups have threads, and the `io` controller of
//! version 2, whose groups have processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::device::SysRoot;

/// The mounted hierarchy that controls I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoHierarchy {
    root: PathBuf,
    is_unified: bool,
}

/// Files of a group that take its weight, the first that exists.
const WEIGHTS: [&[&str]; 2] = [&["blkio.weight", "blkio.bfq.weight"], &["io.bfq.weight", "io.weight"]];

impl IoHierarchy {
    /// The hierarchy of this machine; `None` if none is mounted.
    pub fn find(system: &SysRoot) -> Option<IoHierarchy> {
        let mounts = system.text("/proc/mounts")?;
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let groups = fields.filter(|fields| fields.len() > 3 && fields[2].starts_with("cgroup"));
        let mut unified = None;
        for fields in groups {
            let (root, kind, options) = (PathBuf::from(fields[1]), fields[2], fields[3]);
            if kind == "cgroup" && options.split(',').any(|option| option == "blkio") {
                return Some(IoHierarchy { root, is_unified: false });
            }
            let controllers = || system.text(root.join("cgroup.controllers")).unwrap_or_default();
            if kind == "cgroup2" && controllers().split_whitespace().any(|name| name == "io") {
                unified = Some(IoHierarchy { root, is_unified: true });
            }
        }
        unified
    }

    /// Its groups have whole processes, so that all threads of a process are in one.
    pub fn has_processes(&self) -> bool {
        self.is_unified
    }

    /// The directory of the group `name`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name.trim_matches('/'))
    }

    /// Makes the group `name`; false if it exists already.
    pub fn make(&self, name: &str) -> io::Result<bool> {
        if self.is_unified {
            // It may be enabled already, or refused; then the group has no file for a weight.
            let _ = fs::write(self.root.join("cgroup.subtree_control"), "+io");
        }
        match fs::create_dir(self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            made => made.map(|()| true),
        }
    }

    /// Sets the weight of the group. `Unsupported` where the kernel gives its groups no weight.
    pub fn set_weight(&self, name: &str, weight: u32) -> io::Result<()> {
        let group = self.path(name);
        let files = WEIGHTS[usize::from(self.is_unified)].iter().map(|file| group.join(file));
        match files.into_iter().find(|file| file.exists()) {
            Some(file) => fs::write(file, weight.to_string()),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Moves a thread, or with version 2 the process of this number, into the group.
    pub fn join(&self, name: &str, id: u32) -> io::Result<()> {
        fs::write(
            self.path(name).join(if self.is_unified { "cgroup.procs" } else { "tasks" }),
            id.to_string(),
        )
    }

    /// The group that the calling process is in.
    pub fn of_process(&self, system: &SysRoot) -> Option<String> {
        let groups = system.text("/proc/self/cgroup")?;
        let is_ours = |controllers: &str| match self.is_unified {
            true => controllers.is_empty(),
            false => controllers.split(',').any(|name| name == "blkio"),
        };
        groups.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            is_ours(controllers).then(|| path.to_owned())
        })
    }

    /// Removes a group; threads that are still in it return to the root of the hierarchy.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        if !self.is_unified {
            let members = fs::read_to_string(self.path(name).join("tasks")).unwrap_or_default();
            for member in members.split_whitespace() {
                // One that has ended meanwhile is not in the way.
                let _ = fs::write(self.root.join("tasks"), member);
            }
        }
        fs::remove_dir(self.path(name))
    }
}

/// Chooses the I/O scheduler of the device with these numbers, or of the disk of which it is a partition. `Ok(false)`
/// where there is no such device, or it has no scheduler.
///
/// # Errors
/// The device has no such scheduler; the text is the list of those that it has.
pub fn set_scheduler(
    system: &Path,
    (major, minor): (u32, u32),
    scheduler: &str,
) -> Result<bool, SchedulerError> {
    let link = system.join(format!("sys/dev/block/{major}:{minor}"));
    let Ok(device) = fs::canonicalize(link) else { return Ok(false) };
    let disk = if device.join("partition").exists() { device.parent().unwrap_or(&device) } else { &device };
    let file = disk.join("queue/scheduler");
    let Ok(before) = fs::read_to_string(&file) else { return Ok(false) };
    let refused = |source| SchedulerError { available: before.trim().replace(['[', ']'], ""), source };
    fs::write(&file, scheduler).map_err(refused)?;
    let now = fs::read_to_string(&file).map_err(refused)?;
    // A disk with a single scheduler shows it without brackets.
    let is_chosen = now.contains(&format!("[{scheduler}]")) || now.trim() == scheduler;
    if is_chosen { Ok(true) } else { Err(refused(io::ErrorKind::InvalidInput.into())) }
}

/// A scheduler that could not be chosen.
#[derive(Debug)]
pub struct SchedulerError {
    /// Those of the device, separated by blanks.
    pub available: String,
    /// The system's error.
    pub source: io::Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(mounts: &str) -> (tempfile::TempDir, SysRoot) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        fs::write(dir.path().join("proc/mounts"), mounts).unwrap();
        fs::write(dir.path().join("proc/self/cgroup"), "7:blkio:/a\n0::/user.slice\n").unwrap();
        let root = SysRoot::at(dir.path());
        (dir, root)
    }

    #[test]
    fn the_hierarchy_that_controls_io_is_found() {
        let v1 = "cgroup /g/cpu cgroup rw,cpu 0 0\ncgroup /g/blkio cgroup rw,relatime,blkio 0 0\n";
        let (_dir, root) = machine(v1);
        let found = IoHierarchy::find(&root).unwrap();
        assert_eq!((found.path("x"), found.has_processes()), (PathBuf::from("/g/blkio/x"), false));
        assert_eq!(found.of_process(&root).as_deref(), Some("/a"));
        let (dir, root) = machine("cgroup2 /g cgroup2 rw 0 0\n");
        assert_eq!(IoHierarchy::find(&root), None, "without the io controller");
        fs::create_dir(dir.path().join("g")).unwrap();
        fs::write(dir.path().join("g/cgroup.controllers"), "cpu io memory\n").unwrap();
        let found = IoHierarchy::find(&root).unwrap();
        assert!(found.has_processes());
        assert_eq!(found.of_process(&root).as_deref(), Some("/user.slice"));
        assert_eq!(IoHierarchy::find(&machine("").1), None);
    }

    #[test]
    fn groups_have_weights_and_members() {
        let dir = tempfile::tempdir().unwrap();
        for (is_unified, weight, members) in
            [(false, "blkio.bfq.weight", "tasks"), (true, "io.weight", "cgroup.procs")]
        {
            let groups = IoHierarchy { root: dir.path().to_owned(), is_unified };
            assert!(groups.make("g").unwrap() && !groups.make("g").unwrap());
            assert_eq!(groups.set_weight("g", 200).unwrap_err().kind(), io::ErrorKind::Unsupported);
            fs::write(groups.path("g").join(weight), "100").unwrap();
            groups.set_weight("g", 200).unwrap();
            groups.join("/g/", 77).unwrap();
            let text = |file: &str| fs::read_to_string(groups.path("g").join(file)).unwrap();
            assert_eq!((text(weight).as_str(), text(members).as_str()), ("200", "77"));
            assert!(groups.remove("g").is_err(), "it has files here, as a group in use has members");
            fs::remove_dir_all(groups.path("g")).unwrap();
        }
    }

    #[test]
    fn schedulers_are_chosen_on_the_disk_of_a_partition() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("sys/block/vda");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::create_dir_all(disk.join("vda1")).unwrap();
        fs::write(disk.join("vda1/partition"), "1").unwrap();
        fs::write(disk.join("queue/scheduler"), "[none] bfq\n").unwrap();
        fs::create_dir_all(dir.path().join("sys/dev/block")).unwrap();
        std::os::unix::fs::symlink(disk.join("vda1"), dir.path().join("sys/dev/block/254:1")).unwrap();
        // A plain file has what was written to it.
        assert!(set_scheduler(dir.path(), (254, 1), "bfq").unwrap());
        assert_eq!(fs::read_to_string(disk.join("queue/scheduler")).unwrap(), "bfq");
        assert!(!set_scheduler(dir.path(), (0, 25), "bfq").unwrap(), "no device");
    }
}
