//! Which devices are watched, and what is known of each between two readings.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use fathom_analysis::monitor::load::LoadWatch;
use fathom_analysis::monitor::{
    DeviceActivity, InFlight, MonitorInterval, OpActivity, Presence, WatchedDevice,
};
use fathom_model::PerOp;
use fathom_sys::clock::{RealClock, monotonic_ns};
use fathom_sys::device::diskstats::SECTOR_BYTES;
use fathom_sys::device::stack::beneath;
use fathom_sys::device::{DiskSampler, DiskStats, PathKind, SysRoot, TargetStack, topology};

use super::{MonitorObserver, STALL_NS};
use crate::AssessError;
use crate::simulated::is_simulated;

/// What was asked for.
pub(super) enum DeviceSelection {
    /// These devices, whether they are there or not.
    Named(Vec<WatchedDevice>),
    /// All disks that there are.
    Disks,
}

impl DeviceSelection {
    /// What `words` name.
    pub fn of(root: &SysRoot, words: &[PathBuf]) -> Result<DeviceSelection, AssessError> {
        if words.is_empty() {
            return match disks(root).is_empty() {
                true => Err(AssessError::preparation(
                    "this machine has no visible disks",
                    "check that /sys is mounted",
                )),
                false => Ok(DeviceSelection::Disks),
            };
        }
        let mut devices: Vec<WatchedDevice> = Vec::new();
        for word in words {
            if is_simulated(word) {
                let message = format!(
                    "{} is a simulated volume: the kernel has no counters for it, and its time is virtual",
                    word.display()
                );
                let hint = "use `fathom fio` or `fathom bench` on it; they report each second";
                return Err(AssessError::usage(message, hint));
            }
            for device in named(root, word)? {
                if !devices.iter().any(|known| known.name == device.name) {
                    devices.push(device);
                }
            }
        }
        Ok(DeviceSelection::Named(devices))
    }

    /// Those to begin with.
    pub fn initial(&self, root: &SysRoot) -> Vec<WatchedDevice> {
        match self {
            DeviceSelection::Named(devices) => devices.clone(),
            DeviceSelection::Disks => {
                disks(root).iter().filter_map(|name| watched(root, name, None)).collect()
            }
        }
    }

    /// True where devices were named: they are waited for when they go.
    pub fn is_by_name(&self) -> bool {
        matches!(self, DeviceSelection::Named(_))
    }

    /// Disks that are there now and not among `watches`.
    pub fn appeared(&self, root: &SysRoot, watches: &[DeviceWatch]) -> Vec<WatchedDevice> {
        if self.is_by_name() {
            return Vec::new();
        }
        let is_new = |name: &String| !watches.iter().any(|watch| watch.device.name == *name);
        disks(root).iter().filter(|name| is_new(name)).filter_map(|name| watched(root, name, None)).collect()
    }
}

/// Disks of some size: no partitions, and of loop and memory devices those that hold something.
fn disks(root: &SysRoot) -> Vec<String> {
    let mut names = root.names("/sys/class/block");
    names.retain(|name| {
        let dir = root.block_dir(name);
        let is_disk = !root.exists(dir.join("partition")) && root.number(dir.join("size")) > Some(0);
        is_disk && !name.starts_with("ram")
    });
    names
}

/// The devices that a word means: a kernel name, a node, or what a file or directory lies on.
fn named(root: &SysRoot, word: &Path) -> Result<Vec<WatchedDevice>, AssessError> {
    let text = word.to_string_lossy();
    if !text.contains('/')
        && let Some(device) = watched(root, &text, None)
    {
        return Ok(vec![device]);
    }
    let no_such = || {
        let message = format!("no block device or path named {}", word.display());
        AssessError::preparation(message, "use a name from `ls /sys/class/block`, or none to show all disks")
    };
    let silent = || {
        let message = format!("{} does not respond", word.display());
        AssessError::preparation(message, "use the device itself, which needs no response")
    };
    let path = word.to_owned();
    let stack = in_time(move || TargetStack::of(&path)).ok_or_else(silent)?;
    let stack = stack.map_err(|_| no_such())?;
    // The stack of what is not there would be that of its directory.
    if stack.target == PathKind::Missing {
        return Err(no_such());
    }
    let is_below = |name: &str| stack.devices.iter().any(|other| other.under.iter().any(|n| n == name));
    let tops = stack.devices.iter().filter(|device| !is_below(&device.name));
    let found: Vec<WatchedDevice> =
        tops.filter_map(|device| watched(root, &device.name, Some(text.clone().into_owned()))).collect();
    match (found.is_empty(), stack.target, stack.filesystem) {
        (false, ..) => Ok(found),
        (true, PathKind::Directory | PathKind::File, Some(filesystem)) => {
            let fs_type = filesystem.fs_type;
            let message = format!("{} is on {fs_type}, which has no block device", word.display());
            Err(AssessError::preparation(message, "use a device, or a directory on a disk"))
        }
        _ => Err(no_such()),
    }
}

fn watched(root: &SysRoot, name: &str, asked: Option<String>) -> Option<WatchedDevice> {
    let dir = root.block_dir(name);
    let disk = root.block_dir(&topology::disk_of(root, name).unwrap_or_else(|| name.to_owned()));
    let size = root.number(dir.join("size"))?;
    let path = topology::node_of(name).display().to_string();
    let (own_root, own_name) = (root.clone(), name.to_owned());
    let stack = in_time(move || beneath(&own_root, &[own_name])).unwrap_or_default();
    Some(WatchedDevice {
        name: name.to_owned(),
        asked: asked.filter(|asked| *asked != path && *asked != name),
        path,
        size_bytes: size.saturating_mul(SECTOR_BYTES),
        logical_block_bytes: root.number(disk.join("queue/logical_block_size")).unwrap_or(512),
        under: stack.into_iter().skip(1).map(|device| device.name).collect(),
        stacked: !root.exists(disk.join("mq")),
    })
}

/// What `ask` answers, unless a file system that it asks keeps it waiting: then its thread is left behind.
pub(super) fn in_time<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let (sender, answer) = channel();
    let look = move || {
        // The receiver may have gone.
        let _ = sender.send(ask());
    };
    std::thread::Builder::new().name("look".to_owned()).spawn(look).ok()?;
    answer.recv_timeout(PATIENCE).ok()
}

/// One device between two readings.
pub(super) struct DeviceWatch {
    pub device: WatchedDevice,
    /// None while the device is away.
    sampler: Option<DiskSampler>,
    presence: Presence,
    before: (u64, DiskStats),
    in_flight: InFlight,
    /// When something last completed or nothing was in flight, and what had completed by then.
    progress: (u64, u64),
    reported: bool,
    /// Fed where requests are traced.
    pub load: Option<LoadWatch>,
    /// When it was looked at, by `CLOCK_MONOTONIC`, and what was in flight then; only where requests are traced.
    pub looks: VecDeque<(u64, u64)>,
}

impl DeviceWatch {
    /// Begins to watch; a device that is not there is waited for.
    pub fn start(device: WatchedDevice, now: u64) -> DeviceWatch {
        let mut watch = DeviceWatch {
            device,
            sampler: None,
            presence: Presence::There,
            before: (now, DiskStats::default()),
            in_flight: InFlight::default(),
            progress: (now, 0),
            reported: false,
            load: None,
            looks: VecDeque::new(),
        };
        watch.find(now);
        watch
    }

    pub fn is_there(&self) -> bool {
        self.sampler.is_some()
    }

    fn find(&mut self, now: u64) -> bool {
        let Ok(sampler) = DiskSampler::open(&[&self.device.name]) else { return false };
        let Ok(stats) = sampler.first() else { return false };
        self.sampler = Some(sampler);
        self.before = (now, stats);
        self.progress = (now, completed(&stats));
        true
    }

    /// One reading, or `None` where the device has gone.
    fn read(&mut self) -> Option<DiskStats> {
        let stats = self.sampler.as_ref()?.first().ok();
        if stats.is_none() {
            self.sampler = None;
        }
        stats
    }

    /// How many are in flight now, and whether any of them comes back.
    pub fn look(&mut self, now: u64, observer: &mut dyn MonitorObserver) {
        let at_ns = monotonic_ns();
        let Some(stats) = self.read() else { return };
        self.in_flight.record(stats.in_flight);
        if self.load.is_some() {
            self.looks.push_back((at_ns, stats.in_flight));
        }
        let done = completed(&stats);
        let length = now.saturating_sub(self.progress.0);
        if stats.in_flight == 0 || done != self.progress.1 {
            self.progress = (now, done);
            if std::mem::take(&mut self.reported) {
                observer.answered(&self.device, length);
            }
        } else if length >= STALL_NS && !self.reported {
            self.reported = true;
            observer.stalled(&self.device, length, stats.in_flight);
        }
    }

    /// What the interval that ends now came to.
    pub fn end_interval(&mut self, number: u64, clock: RealClock, end_unix_ms: u64) -> MonitorInterval {
        let device = self.device.clone();
        let interval = MonitorInterval { number, device, end_unix_ms, ..MonitorInterval::default() };
        let presence = std::mem::take(&mut self.presence);
        let Some(stats) = self.read() else {
            if self.find(clock.now()) {
                self.presence = Presence::Appeared;
            }
            return MonitorInterval { presence: Presence::Gone, ..interval };
        };
        let now = clock.now();
        let (since, before) = std::mem::replace(&mut self.before, (now, stats));
        if self.in_flight.samples == 0 {
            self.in_flight.record(stats.in_flight);
        }
        MonitorInterval {
            elapsed_ns: now - since,
            presence,
            activity: activity(&stats.since(&before)),
            in_flight: std::mem::take(&mut self.in_flight),
            stalled_ns: self.reported.then(|| now.saturating_sub(self.progress.0)),
            load: self.load.as_mut().map(LoadWatch::take),
            ..interval
        }
    }
}

/// Requests of all kinds that have come back.
fn completed(stats: &DiskStats) -> u64 {
    stats.read_ios + stats.write_ios + stats.discard_ios + stats.flush_ios
}

fn activity(grown: &DiskStats) -> DeviceActivity {
    let read = OpActivity {
        ios: grown.read_ios,
        merges: grown.read_merges,
        bytes: grown.read_bytes(),
        ticks_ms: grown.read_ticks_ms,
    };
    let write = OpActivity {
        ios: grown.write_ios,
        merges: grown.write_merges,
        bytes: grown.write_bytes(),
        ticks_ms: grown.write_ticks_ms,
    };
    let trim = OpActivity {
        ios: grown.discard_ios,
        merges: grown.discard_merges,
        bytes: grown.discard_bytes(),
        ticks_ms: grown.discard_ticks_ms,
    };
    let flush = OpActivity { ios: grown.flush_ios, ticks_ms: grown.flush_ticks_ms, ..OpActivity::default() };
    let ops = PerOp { read, write, trim };
    DeviceActivity { ops, flush, busy_ms: grown.busy_ms, queue_ms: grown.queue_ms }
}
