//! The single requests of block devices, from the kernel's block tracepoints.
//!
//! A device with its own queue (`mq` in sysfs) is traced where requests are issued to the driver and where they
//! complete, after merging and splitting. One without (device mapper, md, zram) is seen where requests enter it. A
//! partition is the part of its disk's requests that begin in its range.

use super::error::DeviceError;
use super::root::SysRoot;
use super::topology;
use super::trace_events::TraceEvents;
use crate::tracepoint::{Tracepoint, Tracepoints};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockOp {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Gives blocks back.
    Discard,
    /// Empties the device's cache.
    Flush,
    /// Anything else: zeroing, zone management, commands passed through.
    Other,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockStage {
    /// It enters a device without its own queue.
    Entered,
    /// It is issued to the driver; again where the driver had no room.
    Issued,
    /// The driver had no room for it: it goes back to the queue, and is issued again.
    Requeued,
    /// The driver has answered it.
    Completed,
}

/// Something that happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// When, by `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// Which device: the place in the list that the trace was opened for.
    pub device: usize,
    /// Where the request is.
    pub stage: BlockStage,
    /// Its operation.
    pub op: BlockOp,
    /// Its first sector of 512 bytes, from the start of the device.
    pub sector: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The thread in whose context it happened: of a request that enters or is issued most often the one that made it.
    pub thread: u32,
}

/// Why requests cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// No trace file system, or no access to it.
    #[error("cannot read the kernel's trace events: {0}")]
    NoEvents(#[source] DeviceError),
    /// An event is not described as this program understands it.
    #[error("cannot parse the kernel's description of the event {name}")]
    Format {
        /// The event.
        name: &'static str,
    },
    /// The kernel refuses to record.
    #[error("cannot trace requests: {}", crate::io::describe(.0))]
    Refused(#[source] std::io::Error),
}

impl TraceError {
    /// The remedy.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            TraceError::NoEvents(_) => {
                Some("run as root; if tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing")
            }
            TraceError::Refused(_) => {
                Some("run as root (CAP_PERFMON), outside a container that forbids perf_event_open")
            }
            TraceError::Format { .. } => None,
        }
    }
}

/// One device of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Traced {
    /// Major and minor number of the whole disk, as the kernel's filters know them.
    number: u32,
    /// Sectors of the disk that belong to it, where it is a partition.
    range: Option<(u64, u64)>,
    has_queue: bool,
}

/// A trace that is being taken.
#[derive(Debug)]
pub struct BlockTrace {
    devices: Vec<Traced>,
    formats: Vec<EventLayout>,
    points: Tracepoints,
}

/// Memory for the records of all CPUs together; at least a quarter MiB and at most 8 MiB, about 70,000 events, for each.
const RINGS_BYTES: usize = 64 << 20;

impl BlockTrace {
    /// Traces the devices of these kernel names from now on.
    ///
    /// # Errors
    /// The kernel has no such trace, or not for us.
    pub fn open<S: AsRef<str>>(root: &SysRoot, names: &[S]) -> Result<BlockTrace, TraceError> {
        let devices: Vec<Traced> =
            names.iter().map(|name| traced(root, name.as_ref())).collect::<Option<_>>().ok_or_else(|| {
                TraceError::NoEvents(DeviceError::UnknownDevice {
                    name: names.first().map_or(String::new(), |name| name.as_ref().to_owned()),
                })
            })?;
        let events = TraceEvents::of_block(root).map_err(TraceError::NoEvents)?;
        let mut formats = Vec::new();
        let mut points = Vec::new();
        for (name, stage) in EVENTS {
            let filter = filter(&devices, *stage);
            if filter.is_empty() {
                continue;
            }
            let format = EventLayout::read(&events, name, *stage)?;
            points.push(Tracepoint { id: u64::from(format.id), filter });
            formats.push(format);
        }
        let cpus = online_cpus(root);
        let ring = (RINGS_BYTES / cpus.len().max(1)).clamp(256 << 10, 8 << 20);
        let points = Tracepoints::open(&cpus, &points, ring).map_err(TraceError::Refused)?;
        Ok(BlockTrace { devices, formats, points })
    }

    /// Whether requests can be traced on this machine, without tracing any.
    ///
    /// # Errors
    /// As for [`BlockTrace::open`].
    pub fn check(root: &SysRoot) -> Result<(), TraceError> {
        const SMALL_RING: usize = 8 << 10;
        let events = TraceEvents::of_block(root).map_err(TraceError::NoEvents)?;
        let (name, stage) = EVENTS[0];
        let id = u64::from(EventLayout::read(&events, name, stage)?.id);
        // No device has this number.
        let point = Tracepoint { id, filter: format!("dev == {}", u32::MAX) };
        let cpu = online_cpus(root).into_iter().next().unwrap_or(0);
        Tracepoints::open(&[cpu], &[point], SMALL_RING).map(drop).map_err(TraceError::Refused)
    }

    /// Adds to `out` what happened since the last call; of one CPU after the other, each in the order of time.
    pub fn read(&mut self, out: &mut Vec<BlockEvent>) {
        let (devices, formats) = (&self.devices, &self.formats);
        self.points.drain(|record| {
            let event = formats.iter().find_map(|format| format.event(record.data));
            let Some((number, mut event)) = event else { return };
            event.time_ns = record.time_ns;
            for (index, device) in devices.iter().enumerate() {
                if device.covers(number, event.sector, event.stage) {
                    let start = device.range.map_or(0, |(first, _)| first);
                    out.push(BlockEvent { device: index, sector: event.sector - start, ..event });
                }
            }
        });
    }

    /// Events that were lost because they came too fast, so far.
    pub fn lost(&self) -> u64 {
        self.points.lost()
    }
}

impl Traced {
    fn covers(&self, number: u32, sector: u64, stage: BlockStage) -> bool {
        let is_inside = self.range.is_none_or(|(first, end)| (first..end).contains(&sector));
        self.number == number && is_inside && self.has_queue != (stage == BlockStage::Entered)
    }
}

fn traced(root: &SysRoot, name: &str) -> Option<Traced> {
    let disk = topology::disk_of(root, name);
    let dir = root.block_dir(name);
    let range = disk.as_ref().and_then(|_| {
        let first = root.number(dir.join("start"))?;
        Some((first, first + root.number(dir.join("size"))?))
    });
    let whole = root.block_dir(disk.as_deref().unwrap_or(name));
    let (major, minor) = topology::parse_number(&root.text(whole.join("dev"))?)?;
    Some(Traced { number: major << 20 | minor, range, has_queue: root.exists(whole.join("mq")) })
}

/// The kernel filter for the records of `devices` at `stage`; empty if none of them is traced there.
fn filter(devices: &[Traced], stage: BlockStage) -> String {
    let seen = devices.iter().filter(|device| device.has_queue != (stage == BlockStage::Entered));
    let terms: Vec<String> = seen
        .map(|device| match device.range {
            None => format!("(dev == {})", device.number),
            Some((first, end)) => {
                format!("(dev == {} && sector >= {first} && sector < {end})", device.number)
            }
        })
        .collect();
    terms.join(" || ")
}

const EVENTS: &[(&str, BlockStage)] = &[
    ("block_rq_issue", BlockStage::Issued),
    ("block_rq_complete", BlockStage::Completed),
    ("block_rq_requeue", BlockStage::Requeued),
    ("block_bio_queue", BlockStage::Entered),
];

fn online_cpus(root: &SysRoot) -> Vec<u32> {
    let list = root.text("/sys/devices/system/cpu/online").unwrap_or_else(|| "0".to_owned());
    let ends = |part: &str| match part.split_once('-') {
        None => part.parse().ok().map(|cpu| (cpu, cpu)),
        Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
    };
    list.split(',').filter_map(ends).flat_map(|(first, last): (u32, u32)| first..=last).collect()
}

/// Where an event's fields stand in its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EventLayout {
    id: u16,
    stage: BlockStage,
    dev: usize,
    sector: usize,
    nr_sector: usize,
    rwbs: (usize, usize),
    thread: usize,
}

impl EventLayout {
    fn read(events: &TraceEvents, name: &'static str, stage: BlockStage) -> Result<EventLayout, TraceError> {
        let text = |file: &str| events.text(&format!("{name}/{file}")).map_err(TraceError::NoEvents);
        let id = text("id")?.trim().parse::<u16>().ok();
        let format = text("format")?;
        id.and_then(|id| EventLayout::parse(id, stage, &format)).ok_or(TraceError::Format { name })
    }

    /// From lines such as `field:sector_t sector; offset:16; size:8; signed:0;`.
    fn parse(id: u16, stage: BlockStage, text: &str) -> Option<EventLayout> {
        let place = |wanted: &str, least: usize| {
            text.lines().find_map(|line| {
                let mut parts = line.trim().split(';').map(str::trim);
                let declared = parts.next()?.strip_prefix("field:")?;
                let name = declared.rsplit(' ').next()?.split('[').next()?;
                let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse::<usize>().ok();
                let (offset, size) = (number("offset:")?, number("size:")?);
                (name == wanted && size >= least).then_some((offset, size))
            })
        };
        Some(EventLayout {
            id,
            stage,
            dev: place("dev", 4)?.0,
            sector: place("sector", 8)?.0,
            nr_sector: place("nr_sector", 4)?.0,
            rwbs: place("rwbs", 1)?,
            thread: place("common_pid", 4)?.0,
        })
    }

    /// The event in a record and the device's number; `None` where the record is of another kind.
    fn event(&self, data: &[u8]) -> Option<(u32, BlockEvent)> {
        let four = |at: usize| Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(data.get(..2)?.try_into().ok()?);
        if kind != self.id {
            return None;
        }
        let sector = u64::from_ne_bytes(data.get(self.sector..self.sector + 8)?.try_into().ok()?);
        // A flush has no place; before the driver sees it, it is at the last sector there could be.
        let sector = if sector == u64::MAX { 0 } else { sector };
        let bytes = u64::from(four(self.nr_sector)?) * super::diskstats::SECTOR_BYTES;
        let (at, length) = self.rwbs;
        let op = op(data.get(at..at + length)?, bytes);
        let (stage, thread) = (self.stage, four(self.thread)?);
        Some((four(self.dev)?, BlockEvent { time_ns: 0, device: 0, stage, op, sector, bytes, thread }))
    }
}

/// The kernel's letters: an F in front asks for a flush first, then comes the operation, then its flags.
fn op(letters: &[u8], bytes: u64) -> BlockOp {
    let flushes = letters.first() == Some(&b'F');
    let rest = if flushes { &letters[1..] } else { letters };
    match rest.first() {
        Some(b'R') => BlockOp::Read,
        // A flush enters a device as a write of nothing.
        Some(b'W') if flushes && bytes == 0 => BlockOp::Flush,
        Some(b'W') => BlockOp::Write,
        Some(b'D') => BlockOp::Discard,
        Some(b'F') => BlockOp::Flush,
        _ => BlockOp::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fixture::Fixture;

    const FORMAT: &str = "name: block_rq_issue
ID: 2104
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;
\tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;

print fmt: \"field:char rwbs[10]\"
";

    fn record(id: u16, number: u32, sector: u64, sectors: u32, letters: &str) -> Vec<u8> {
        let mut data = vec![0; 64];
        data[..2].copy_from_slice(&id.to_ne_bytes());
        data[4..8].copy_from_slice(&4711_u32.to_ne_bytes());
        data[8..12].copy_from_slice(&number.to_ne_bytes());
        data[16..24].copy_from_slice(&sector.to_ne_bytes());
        data[24..28].copy_from_slice(&sectors.to_ne_bytes());
        data[34..34 + letters.len()].copy_from_slice(letters.as_bytes());
        data
    }

    #[test]
    fn records_are_read_by_their_format() {
        let format = EventLayout::parse(2104, BlockStage::Issued, FORMAT).unwrap();
        let (number, event) = format.event(&record(2104, 7 << 20 | 3, 88, 16, "WS")).unwrap();
        assert_eq!(
            (number, event.op, event.sector, event.bytes, event.thread),
            (7 << 20 | 3, BlockOp::Write, 88, 16 * 512, 4711)
        );
        let (_, flush) = format.event(&record(2104, 1, u64::MAX, 0, "FF")).unwrap();
        assert_eq!((flush.op, flush.sector), (BlockOp::Flush, 0));
        assert_eq!(format.event(&record(2105, 1, 1, 1, "R")), None, "of another event");
        assert_eq!(format.event(&[0x38, 0x08, 0, 0]), None, "cut off");
        assert_eq!(
            EventLayout::parse(1, BlockStage::Issued, &FORMAT.replace("sector_t sector", "sector_t other")),
            None
        );
    }

    #[test]
    fn letters_name_the_operation() {
        for (letters, bytes, expected) in [
            ("R", 4096, BlockOp::Read),
            ("RA", 4096, BlockOp::Read),
            ("W", 4096, BlockOp::Write),
            ("WS", 4096, BlockOp::Write),
            ("FWFS", 4096, BlockOp::Write),
            ("FWS", 0, BlockOp::Flush),
            ("FF", 0, BlockOp::Flush),
            ("D", 4096, BlockOp::Discard),
            ("DE", 4096, BlockOp::Discard),
            ("N", 0, BlockOp::Other),
            ("", 0, BlockOp::Other),
        ] {
            assert_eq!(op(letters.as_bytes(), bytes), expected, "{letters}");
        }
    }

    #[test]
    fn partitions_are_ranges_of_their_disk_and_stacked_devices_are_seen_entered() {
        let fixture = Fixture::new();
        fixture.disk("a", "sda", "8:0", &[]).write("sys/devices/a/block/sda/mq/0/cpu_list", "0");
        fixture.partition("sda", 1, "sda1", "8:1").write("sys/devices/a/block/sda/sda1/start", "2048\n");
        fixture.disk("virtual", "dm-0", "253:0", &[]);
        let root = fixture.root();
        let devices: Vec<Traced> =
            ["sda", "sda1", "dm-0"].iter().map(|name| traced(&root, name).unwrap()).collect();
        let sda = 8 << 20;
        assert_eq!(
            filter(&devices, BlockStage::Issued),
            format!("(dev == {sda}) || (dev == {sda} && sector >= 2048 && sector < 4096)")
        );
        assert_eq!(filter(&devices, BlockStage::Entered), format!("(dev == {})", 253 << 20));
        assert_eq!(filter(&devices[2..], BlockStage::Completed), "");
        let check = |index: usize, sector: u64, stage: BlockStage, expected: bool| {
            assert_eq!(devices[index].covers(sda, sector, stage), expected, "{index} {sector} {stage:?}");
        };
        check(0, 5000, BlockStage::Issued, true);
        check(0, 5000, BlockStage::Entered, false);
        check(1, 2048, BlockStage::Completed, true);
        check(1, 4096, BlockStage::Completed, false);
        check(2, 0, BlockStage::Entered, false);
        assert_eq!(traced(&root, "sdz"), None);
    }

    #[test]
    fn cpus_are_listed() {
        let fixture = Fixture::new();
        assert_eq!(online_cpus(&fixture.root()), [0]);
        fixture.write("sys/devices/system/cpu/online", "0-2,8\n");
        assert_eq!(online_cpus(&fixture.root()), [0, 1, 2, 8]);
    }
}
