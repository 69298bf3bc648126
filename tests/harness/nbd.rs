//! A disk with scripted faults: nbdkit's memory disk behind its filters, mounted as a file by nbdfuse.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::shell::{scratch, try_run};
use crate::wait::wait_for;

/// How long the file may take to appear and to go; a busy machine needs a second at worst.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A file backed by nbdkit; unmounted and the server ended on drop.
///
/// Use it with direct I/O: buffered reads come from the page cache and never see the filters. Requests are served in
/// parallel, but only about three at a time at any queue depth.
#[derive(Debug)]
pub struct NbdDisk {
    server: Child,
    directory: TempDir,
    log: PathBuf,
}

impl NbdDisk {
    /// A memory disk of `size` bytes behind `filters` (outermost first), with their `parameters`:
    /// `NbdDisk::new(64 << 20, &["delay"], &["rdelay=20ms"])`.
    pub fn new(size: u64, filters: &[&str], parameters: &[&str]) -> Self {
        let mut words: Vec<String> = filters.iter().map(|filter| format!("--filter={filter}")).collect();
        words.extend(["memory".to_owned(), format!("size={size}")]);
        Self::serving(&words, parameters)
    }

    /// A volume with known limits by the plugin at `source`, which nbdkit compiles, with its `parameters`.
    pub fn compiled(source: &Path, parameters: &[&str]) -> Self {
        Self::serving(&["cc".to_owned(), source.display().to_string()], parameters)
    }

    fn serving(plugin: &[String], parameters: &[&str]) -> Self {
        let directory = scratch();
        let mount_point = directory.path().join("disk");
        std::fs::create_dir(&mount_point).expect("the scratch directory is new and ours");
        let log = directory.path().join("log");
        let said = File::create(&log).expect("the scratch directory is new and ours");
        let mut command = Command::new("nbdfuse");
        command.arg(mount_point.join("file")).args(["[", "nbdkit"]);
        command.args(plugin).args(parameters).arg("]");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let server = command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        let mut disk = NbdDisk { server, directory, log };
        let mut has_ended = false;
        let is_there = wait_for(LIMIT, || {
            has_ended = matches!(disk.server.try_wait(), Ok(Some(_)));
            has_ended || disk.path().exists()
        });
        assert!(is_there && !has_ended, "{command:?} did not come up:\n{}", disk.said());
        disk
    }

    /// The file that is the disk.
    pub fn path(&self) -> PathBuf {
        self.mount_point().join("file")
    }

    /// The output of nbdkit and nbdfuse so far: a line for each injected fault.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The disk hangs: requests are neither answered nor refused until [`NbdDisk::resume`]. A thread of the server goes on
    /// until it hears of it; this waits until the last has.
    pub fn hang(&self) {
        self.signal(rustix::process::Signal::STOP);
        assert!(wait_for(LIMIT, || self.has_stopped()), "the server does not stop");
    }

    fn has_stopped(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.server.id()));
        let is_stopped = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            // The state stands after the name, which may hold anything.
            stat.rsplit(") ").next().is_some_and(|state| state.starts_with('T'))
        };
        tasks.is_ok_and(|tasks| tasks.flatten().all(is_stopped))
    }

    /// Ends a hang; what waited is answered.
    pub fn resume(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    /// Ends the server under the mounted file, like a crashed host: requests in flight and later ones fail.
    pub fn end_server(&mut self) {
        self.server.kill().ok();
        self.server.wait().ok();
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.server), signal)
            .unwrap_or_else(|error| panic!("cannot signal the server: {error}"));
    }

    fn mount_point(&self) -> PathBuf {
        self.directory.path().join("disk")
    }
}

impl Drop for NbdDisk {
    fn drop(&mut self) {
        let mount_point = self.mount_point();
        // A server that hangs answers no unmount either.
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.server),
            rustix::process::Signal::CONT,
        )
        .ok();
        wait_for(Duration::from_secs(5), || unmount(&mount_point));
        let has_ended = wait_for(LIMIT, || !matches!(self.server.try_wait(), Ok(None)));
        if !has_ended {
            self.end_server();
            try_run(Command::new("umount").arg("--lazy").arg(&mount_point));
        }
    }
}

pub(crate) fn unmount(mount_point: &Path) -> bool {
    try_run(Command::new("fusermount3").arg("-u").arg(mount_point)) || !is_mounted(mount_point)
}

fn is_mounted(mount_point: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().filter_map(|line| line.split(' ').nth(1)).any(|mounted| Path::new(mounted) == mount_point)
}
