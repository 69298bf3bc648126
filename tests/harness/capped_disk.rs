//! A volume with exact limits: a file that threads of the test serve through FUSE, and a loop device over it.
//!
//! Limits of real volumes lie behind the device that a machine sees, and these do too: a tracepoint of the loop device sees a
//! request when the application makes it. [`Throttle`](crate::Throttle) delays requests before they reach the device, where no
//! tracepoint sees them waiting, and grants them in slices of 20 or 100 ms.
//!
//! - Requests are admitted in order, at exact times: a hundredth of a second's allowance may be used at once, as in
//!   `docs/simulated-volumes.md`. Reads and writes count alike.
//! - Latencies may vary; they are drawn, always the same ones in the same order.
//! - The disk keeps no data: reads return zeros. Use direct I/O.
//! - A loop device has 128 requests in flight at most, and others wait where no counter sees them. The file has 65,535: measure
//!   what a load gets of the limits on the file.

mod limiter;

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use fathom_sys::clock::monotonic_ns;
use rustix::fs::OFlags;

use crate::fuse_file::FuseFile;
use crate::loop_device::LoopDevice;
use limiter::Limiter;

/// The limits of a [`CappedDisk`]: reads and writes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLimits {
    /// What a read of 4 KiB takes at least that no limit delays.
    pub latency: Duration,
    /// What requests take more on average, distributed exponentially, in percent of it.
    pub spread_percent: u32,
    /// Requests per second; with a burst bucket the baseline.
    pub iops: u64,
    /// Bytes per second; `None` is no limit.
    pub bytes_per_second: Option<u64>,
    /// Burst credits, full at the beginning; `None` is no burst.
    pub burst: Option<BurstCredits>,
}

/// A burst bucket: unused baseline accrues, and permits a higher rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstCredits {
    /// Requests per second while there are credits.
    pub iops: u64,
    /// Requests of a full bucket.
    pub capacity: u64,
}

/// A disk with exact limits; unmounted on drop.
#[derive(Debug)]
pub struct CappedDisk {
    file: FuseFile<Limiter>,
}

/// Reads that show what the way to the disk takes.
const SAMPLES: usize = 200;
const BLOCK: usize = 4096;

impl CappedDisk {
    /// A disk of `size` bytes without data.
    pub fn new(size: u64, limits: &DiskLimits) -> Self {
        let disk = CappedDisk { file: FuseFile::new(size, Limiter::new(limits, 0), None) };
        disk.limit(limits);
        disk
    }

    /// Takes on other limits, as new: credits are full. What the way through the kernel takes is a part of the latency.
    ///
    /// # Panics
    /// When the disk cannot be read, or the way to it takes a fifth of the latency: the machine is busy.
    pub fn limit(&self, limits: &DiskLimits) {
        let idle = DiskLimits {
            latency: limits.latency,
            spread_percent: 0,
            iops: 1_000_000,
            bytes_per_second: None,
            burst: None,
        };
        *self.file.model() = Limiter::new(&idle, 0);
        let latency_ns = limits.latency.as_nanos() as u64;
        let way_ns = self.median_read_ns().saturating_sub(latency_ns);
        assert!(way_ns < latency_ns / 5, "the way to the disk takes {way_ns} ns: the machine is too busy");
        *self.file.model() = Limiter::new(limits, way_ns);
    }

    /// The disk as a file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// A loop device over it, past the page cache; it is to be dropped before the disk.
    pub fn device(&self) -> LoopDevice {
        LoopDevice::over(self.path())
    }

    /// How long after the first request credits were exhausted; `None` if they were not, or there are none.
    pub fn exhausted_after(&self) -> Option<Duration> {
        self.file.model().exhausted_after_ns().map(Duration::from_nanos)
    }

    /// By how much at most `percent` of the answers were late, since the limits were set: what the machine withheld from the disk.
    pub fn lateness(&self, percent: usize) -> Duration {
        Duration::from_nanos(self.file.model().lateness_ns(percent))
    }

    fn median_read_ns(&self) -> u64 {
        let direct = OFlags::DIRECT.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(direct).open(self.path());
        let file = file.unwrap_or_else(|error| panic!("cannot open {}: {error}", self.path().display()));
        let mut buffer = vec![0; 2 * BLOCK];
        let start = buffer.as_ptr().align_offset(BLOCK);
        let mut took: Vec<u64> = (0..SAMPLES)
            .map(|index| {
                let began = monotonic_ns();
                let into = &mut buffer[start..start + BLOCK];
                file.read_exact_at(into, (index * BLOCK) as u64).expect("the disk answers");
                monotonic_ns() - began
            })
            .collect();
        took.sort_unstable();
        took[SAMPLES / 2]
    }
}
