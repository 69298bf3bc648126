//! A block device over a file: the raw device under nearly every other fixture.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use crate::shell::{must_run, scratch, scratch_in, try_run};
use crate::wait::wait_for;

/// How a loop device is made.
#[derive(Clone, Copy, Debug)]
pub struct LoopOptions {
    /// Bytes.
    pub size: u64,
    /// Write every block first, so that none of them is a hole in the backing file.
    pub written: bool,
    /// The device itself reads and writes its backing file directly, past the page cache.
    pub direct_io: bool,
    /// Logical sector in bytes.
    pub sector: u32,
    /// Refuses writes.
    pub read_only: bool,
    /// Makes a device of each partition (`/dev/loop0p1`).
    pub partitions: bool,
    /// The backing file lies in memory (`/dev/shm`), where no other user of the disk can hold the device up.
    pub in_memory: bool,
    /// KiB of the largest request that the device takes; the kernel splits larger ones.
    pub largest_request_kib: Option<u32>,
}

impl LoopOptions {
    /// A sparse, writable device of `size` bytes with sectors of 512 bytes and direct I/O to its backing file.
    pub fn of_size(size: u64) -> Self {
        LoopOptions {
            size,
            written: false,
            direct_io: true,
            sector: 512,
            read_only: false,
            partitions: false,
            in_memory: false,
            largest_request_kib: None,
        }
    }
}

/// A loop device; detached and its file removed on drop.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    backing: PathBuf,
    /// Its previous largest request, because the kernel keeps the setting for the next user of the device.
    usual_largest: Option<String>,
    /// Holds the file where it was made for this device.
    _directory: Option<TempDir>,
}

impl LoopDevice {
    /// A device by [`LoopOptions::of_size`].
    pub fn new(size: u64) -> Self {
        Self::with(&LoopOptions::of_size(size))
    }

    /// A device of `size` bytes whose every block has been written.
    pub fn written(size: u64) -> Self {
        Self::with(&LoopOptions { written: true, ..LoopOptions::of_size(size) })
    }

    /// A device of `size` bytes over memory: as steady as the cap or the delay that a test puts on it.
    pub fn in_memory(size: u64) -> Self {
        // Memory knows no direct I/O before Linux 6.6.
        let options = LoopOptions { in_memory: true, direct_io: false, ..LoopOptions::of_size(size) };
        Self::with(&LoopOptions { written: true, ..options })
    }

    /// A device over the file at `backing` through this machine's page cache, as a host that caches serves a guest; the
    /// file stays.
    pub fn cached_over(backing: &Path) -> Self {
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show", "--sector-size=512"]).arg(backing);
        let path = attached(&mut losetup);
        LoopDevice { path, backing: backing.to_owned(), usual_largest: None, _directory: None }
    }

    /// A device by `options`.
    pub fn with(options: &LoopOptions) -> Self {
        let directory = if options.in_memory { scratch_in(Path::new("/dev/shm")) } else { scratch() };
        let backing = directory.path().join("backing");
        make_backing(&backing, options)
            .unwrap_or_else(|error| panic!("cannot make {}: {error}", backing.display()));
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show", "--sector-size"]).arg(options.sector.to_string());
        if options.direct_io {
            losetup.arg("--direct-io=on");
        }
        if options.read_only {
            losetup.arg("--read-only");
        }
        if options.partitions {
            losetup.arg("--partscan");
        }
        let path = attached(losetup.arg(&backing));
        let mut device = LoopDevice { path, backing, usual_largest: None, _directory: Some(directory) };
        if let Some(kib) = options.largest_request_kib {
            let usual = fs::read_to_string(device.largest()).expect("a loop device has a queue");
            device.usual_largest = Some(usual);
            fs::write(device.largest(), kib.to_string()).expect("a device takes a smaller limit");
        }
        device
    }

    /// A device over the file at `backing`, past the page cache; the file stays.
    pub fn over(backing: &Path) -> Self {
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show", "--direct-io=on"]).arg(backing);
        let path = attached(&mut losetup);
        LoopDevice { path, backing: backing.to_owned(), usual_largest: None, _directory: None }
    }

    /// The device node.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The device's name in sysfs and diskstats, such as `loop0`.
    pub fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).expect("losetup names a node in /dev in ASCII")
    }

    /// The sysfs file of the largest request.
    fn largest(&self) -> String {
        format!("/sys/block/{}/queue/max_sectors_kb", self.name())
    }

    /// The file under the device.
    pub fn backing(&self) -> &Path {
        &self.backing
    }

    /// The node of partition `number`, for a device made with `partitions`.
    pub fn partition(&self, number: u32) -> PathBuf {
        PathBuf::from(format!("{}p{number}", self.path.display()))
    }

    /// Cuts the backing file while the device keeps its size: reads past `size` bytes then fail with EIO. Writes past
    /// it do not: they extend the file again.
    pub fn truncate_backing(&self, size: u64) {
        OpenOptions::new()
            .write(true)
            .open(&self.backing)
            .and_then(|file| file.set_len(size))
            .unwrap_or_else(|error| panic!("cannot truncate {}: {error}", self.backing.display()));
    }

    /// The counters of `/sys/block/NAME/stat` in the kernel's order (reads completed, reads merged, sectors read, ms
    /// reading, then the same of writes, ...).
    pub fn stat(&self) -> Vec<u64> {
        let path = format!("/sys/block/{}/stat", self.name());
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
        text.split_whitespace().map(|field| field.parse().expect("the kernel writes integers")).collect()
    }
}

/// A partition that was added to the kernel; removed on drop, because its disk could not be detached otherwise.
#[derive(Debug)]
pub struct Partition {
    disk: PathBuf,
    number: u32,
    path: PathBuf,
}

impl Partition {
    /// Partition `number` of `device`: `sectors` of 512 bytes from the sector `start` on.
    pub fn add(device: &LoopDevice, number: u32, start: u32, sectors: u32) -> Self {
        let span = [number, start, sectors].map(|value| value.to_string());
        must_run(Command::new("addpart").arg(device.path()).args(span));
        let part = Partition { disk: device.path().to_owned(), number, path: device.partition(number) };
        assert!(wait_for(Duration::from_secs(10), || part.path.exists()), "no {}", part.path.display());
        part
    }

    /// The device node.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        try_run(Command::new("delpart").arg(&self.disk).arg(self.number.to_string()));
    }
}

/// The device that `losetup --find --show` attaches. Several that look for a free one at the same time open the same, and
/// those that lose it hold it open for writing until they look for another: one at a time.
fn attached(losetup: &mut Command) -> PathBuf {
    static ATTACHING: Mutex<()> = Mutex::new(());
    let _alone = ATTACHING.lock().unwrap_or_else(PoisonError::into_inner);
    PathBuf::from(must_run(losetup))
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if let Some(usual) = &self.usual_largest {
            fs::write(self.largest(), usual).ok();
        }
        try_run(Command::new("losetup").arg("--detach").arg(&self.path));
    }
}

fn make_backing(path: &Path, options: &LoopOptions) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.set_len(options.size)?;
    if options.written {
        // Not zeros: a layer below might keep those as holes.
        let chunk: Vec<u8> = (0..1 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        file.seek(SeekFrom::Start(0))?;
        let mut left = options.size;
        while left > 0 {
            let now = left.min(chunk.len() as u64);
            file.write_all(&chunk[..now as usize])?;
            left -= now;
        }
    }
    file.sync_all()
}
