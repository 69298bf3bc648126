//! The kernel's own counters of a block device, from `/proc/diskstats` and `/sys/class/block/*/stat`.
//!
//! Fields were added over time (11, then 15 with discards, then 17 with flushes); older kernels leave the rest at zero.
//! A sector is 512 bytes here, independent of the device's block size.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::error::DeviceError;
use super::root::SysRoot;

/// Bytes of a sector in the kernel's counters, for every device.
pub const SECTOR_BYTES: u64 = 512;

/// One reading of a device's counters since it appeared; `in_flight` is the only one that also falls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Reads completed.
    pub read_ios: u64,
    /// Reads merged into a neighbour before they were issued.
    pub read_merges: u64,
    /// Sectors read.
    pub read_sectors: u64,
    /// Milliseconds summed over all reads.
    pub read_ticks_ms: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Writes merged into a neighbour before they were issued.
    pub write_merges: u64,
    /// Sectors written.
    pub write_sectors: u64,
    /// Milliseconds summed over all writes.
    pub write_ticks_ms: u64,
    /// Requests at the device now.
    pub in_flight: u64,
    /// Milliseconds during which at least one request was in flight.
    pub busy_ms: u64,
    /// Milliseconds summed over all requests, weighted by the requests in flight.
    pub queue_ms: u64,
    /// Discards completed.
    pub discard_ios: u64,
    /// Discards merged.
    pub discard_merges: u64,
    /// Sectors discarded.
    pub discard_sectors: u64,
    /// Milliseconds summed over all discards.
    pub discard_ticks_ms: u64,
    /// Cache flushes completed (counted on whole devices only).
    pub flush_ios: u64,
    /// Milliseconds summed over all flushes.
    pub flush_ticks_ms: u64,
}

impl DiskStats {
    /// Parse the fields of a `stat` file, or of a `/proc/diskstats` line behind the name. `None` when there are fewer
    /// than 11 numbers or one is not a number; fields beyond those known are ignored.
    pub fn parse(fields: &str) -> Option<DiskStats> {
        let mut values = [0u64; 17];
        let mut seen = 0;
        for (slot, field) in values.iter_mut().zip(fields.split_ascii_whitespace()) {
            *slot = field.parse().ok()?;
            seen += 1;
        }
        if seen < 11 {
            return None;
        }
        let [read_ios, read_merges, read_sectors, read_ticks_ms, write_ios, write_merges, write_sectors, ..] =
            values;
        Some(DiskStats {
            read_ios,
            read_merges,
            read_sectors,
            read_ticks_ms,
            write_ios,
            write_merges,
            write_sectors,
            write_ticks_ms: values[7],
            in_flight: values[8],
            busy_ms: values[9],
            queue_ms: values[10],
            discard_ios: values[11],
            discard_merges: values[12],
            discard_sectors: values[13],
            discard_ticks_ms: values[14],
            flush_ios: values[15],
            flush_ticks_ms: values[16],
        })
    }

    /// The counts since `earlier`; `in_flight` keeps the current value. Counters that the kernel prints in 32 bits are
    /// followed over one wrap; those that began anew count from there.
    pub fn since(&self, earlier: &DiskStats) -> DiskStats {
        DiskStats {
            read_ios: grown(self.read_ios, earlier.read_ios),
            read_merges: grown(self.read_merges, earlier.read_merges),
            read_sectors: grown(self.read_sectors, earlier.read_sectors),
            read_ticks_ms: grown(self.read_ticks_ms, earlier.read_ticks_ms),
            write_ios: grown(self.write_ios, earlier.write_ios),
            write_merges: grown(self.write_merges, earlier.write_merges),
            write_sectors: grown(self.write_sectors, earlier.write_sectors),
            write_ticks_ms: grown(self.write_ticks_ms, earlier.write_ticks_ms),
            in_flight: self.in_flight,
            busy_ms: grown(self.busy_ms, earlier.busy_ms),
            queue_ms: grown(self.queue_ms, earlier.queue_ms),
            discard_ios: grown(self.discard_ios, earlier.discard_ios),
            discard_merges: grown(self.discard_merges, earlier.discard_merges),
            discard_sectors: grown(self.discard_sectors, earlier.discard_sectors),
            discard_ticks_ms: grown(self.discard_ticks_ms, earlier.discard_ticks_ms),
            flush_ios: grown(self.flush_ios, earlier.flush_ios),
            flush_ticks_ms: grown(self.flush_ticks_ms, earlier.flush_ticks_ms),
        }
    }

    /// Bytes read.
    pub fn read_bytes(&self) -> u64 {
        self.read_sectors * SECTOR_BYTES
    }

    /// Bytes written.
    pub fn write_bytes(&self) -> u64 {
        self.write_sectors * SECTOR_BYTES
    }

    /// Bytes discarded.
    pub fn discard_bytes(&self) -> u64 {
        self.discard_sectors * SECTOR_BYTES
    }
}

fn grown(now: u64, earlier: u64) -> u64 {
    // More than in any interval: 2^31 sectors are a TiB, 2^31 ms a thousand requests waiting for 35 minutes.
    const MOST: u64 = 1 << 31;
    if now >= earlier {
        return now - earlier;
    }
    // Milliseconds are printed as unsigned int and wrap after 49 days of summed waiting.
    let wrapped = (now + (1 << 32)).saturating_sub(earlier);
    let has_wrapped = earlier <= u64::from(u32::MAX) && wrapped < MOST;
    // Else the counters began anew, as those of a device that was set up again.
    if has_wrapped { wrapped } else { now }
}

/// Parse the whole of `/proc/diskstats` into counters by kernel name; lines that do not fit are left out.
pub fn parse_diskstats(text: &str) -> BTreeMap<String, DiskStats> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<(String, DiskStats)> {
    let mut rest = line.trim_start();
    for _major_minor in 0..2 {
        let (number, behind) = rest.split_once(char::is_whitespace)?;
        number.parse::<u32>().ok()?;
        rest = behind.trim_start();
    }
    let (name, fields) = rest.split_once(char::is_whitespace)?;
    // Here the kernel writes cciss/c0d0, in sysfs (and in all our names) cciss!c0d0.
    Some((name.replace('/', "!"), DiskStats::parse(fields)?))
}

/// The counters of every block device now, by kernel name.
pub fn read_diskstats(root: &SysRoot) -> Result<BTreeMap<String, DiskStats>, DeviceError> {
    let path = root.path("/proc/diskstats");
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(parse_diskstats(&text)),
        Err(source) => Err(DeviceError::Io { attempted: "read", path, source }),
    }
}

#[derive(Debug)]
struct CounterSource {
    name: String,
    path: PathBuf,
    stat: File,
}

/// Reads the counters of a few devices again and again, from files that stay open: one system call per device.
#[derive(Debug)]
pub struct DiskSampler {
    sources: Vec<CounterSource>,
}

impl DiskSampler {
    /// Open the counters of these kernel names (`vda`, `nvme0n1p1`, `dm-0`). Fails on the first that does not exist.
    pub fn open<S: AsRef<str>>(names: &[S]) -> Result<DiskSampler, DeviceError> {
        DiskSampler::open_in(&SysRoot::real(), names)
    }

    /// As [`DiskSampler::open`], below a given root.
    pub fn open_in<S: AsRef<str>>(root: &SysRoot, names: &[S]) -> Result<DiskSampler, DeviceError> {
        let open_one = |name: &S| {
            let name = name.as_ref().to_string();
            let path = root.path(root.block_dir(&name).join("stat"));
            match File::open(&path) {
                Ok(stat) => Ok(CounterSource { name, path, stat }),
                Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                    Err(DeviceError::UnknownDevice { name })
                }
                Err(source) => Err(DeviceError::Io { attempted: "open", path, source }),
            }
        };
        Ok(DiskSampler { sources: names.iter().map(open_one).collect::<Result<_, _>>()? })
    }

    /// The kernel names, in the order of the samples.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.sources.iter().map(|source| source.name.as_str())
    }

    /// One reading of the first device. Fails when it has gone away, also where another has its name by now.
    pub fn first(&self) -> Result<DiskStats, DeviceError> {
        match self.sources.first() {
            Some(source) => source.read(),
            None => Err(DeviceError::UnknownDevice { name: String::new() }),
        }
    }

    /// Replace `out` by one reading per device. Fails when a device has gone away.
    pub fn sample(&self, out: &mut Vec<DiskStats>) -> Result<(), DeviceError> {
        out.clear();
        for source in &self.sources {
            out.push(source.read()?);
        }
        Ok(())
    }
}

impl CounterSource {
    fn read(&self) -> Result<DiskStats, DeviceError> {
        let mut buffer = [0u8; 512];
        // A read from offset 0 makes sysfs print the counters anew.
        let length = self.stat.read_at(&mut buffer, 0).map_err(|source| DeviceError::Io {
            attempted: "read",
            path: self.path.clone(),
            source,
        })?;
        let text = std::str::from_utf8(&buffer[..length]).unwrap_or_default();
        DiskStats::parse(text).ok_or_else(|| DeviceError::Counters {
            path: self.path.clone(),
            text: text.chars().take(80).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str =
        "61438 8738 5156970 59991 16136 19681 2899608 8968 3 8248 69532 5776 72 571424 487 1932 84";

    #[test]
    fn fields_by_kernel_age() {
        let full = DiskStats::parse(FULL).unwrap();
        assert_eq!(
            (full.read_ios, full.write_ticks_ms, full.in_flight, full.queue_ms),
            (61438, 8968, 3, 69532)
        );
        assert_eq!(
            (full.discard_ios, full.discard_ticks_ms, full.flush_ios, full.flush_ticks_ms),
            (5776, 487, 1932, 84)
        );
        let check = |fields: usize, expected: Option<DiskStats>| {
            let text: Vec<&str> = FULL.split(' ').take(fields).collect();
            assert_eq!(DiskStats::parse(&text.join("  ")), expected, "{fields} fields");
        };
        check(0, None);
        check(10, None);
        let old = DiskStats { flush_ios: 0, flush_ticks_ms: 0, ..full };
        check(15, Some(old));
        let oldest =
            DiskStats { discard_ios: 0, discard_merges: 0, discard_sectors: 0, discard_ticks_ms: 0, ..old };
        check(11, Some(oldest));
        assert_eq!(DiskStats::parse(&format!("{FULL} 7 8 9")), Some(full), "fields yet to come");
        assert_eq!(DiskStats::parse("1 2 3 x 5 6 7 8 9 10 11"), None);
        assert_eq!(DiskStats::parse("1 2 3 -4 5 6 7 8 9 10 11"), None);
    }

    #[test]
    fn lines_by_name() {
        let text = format!(
            " 254       0 vda {FULL}\n 259       0 nvme0n1p1 1 2 3 4 5 6 7 8 9 10 11\n   8       0 sda 1 2\nrubbish\n\n 104 0 cciss/c0d0 1 1 1 1 1 1 1 1 1 1 1"
        );
        let all = parse_diskstats(&text);
        assert_eq!(all.keys().collect::<Vec<_>>(), ["cciss!c0d0", "nvme0n1p1", "vda"]);
        assert_eq!(all["nvme0n1p1"].queue_ms, 11);
        assert_eq!(all["vda"].read_bytes(), 5156970 * 512);
    }

    #[test]
    fn growth_over_a_wrap() {
        let check = |now: u64, earlier: u64, expected: u64| assert_eq!(grown(now, earlier), expected);
        check(5, 3, 2);
        check(3, 3, 0);
        check(4, u64::from(u32::MAX) - 5, 10);
        check(7, 1 << 40, 7);
        check(7, 90_000, 7);
        let start = DiskStats { read_ios: 10, in_flight: 9, ..DiskStats::default() };
        let end = DiskStats { read_ios: 25, in_flight: 2, ..DiskStats::default() };
        assert_eq!(end.since(&start), DiskStats { read_ios: 15, in_flight: 2, ..DiskStats::default() });
    }

    #[test]
    fn sampler_reads_again() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sys/class/block/vda");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("stat"), "1 0 8 0 0 0 0 0 0 0 0\n").unwrap();
        let root = SysRoot::at(root.path());
        let sampler = DiskSampler::open_in(&root, &["vda"]).unwrap();
        let mut out = vec![DiskStats::default(); 3];
        sampler.sample(&mut out).unwrap();
        assert_eq!((out.len(), out[0].read_ios), (1, 1));
        std::fs::write(dir.join("stat"), "2 0 16 0 0 0 0 0 0 0 0\n").unwrap();
        sampler.sample(&mut out).unwrap();
        assert_eq!(out[0].read_sectors, 16);
        std::fs::write(dir.join("stat"), "gone\n").unwrap();
        assert!(matches!(sampler.sample(&mut out), Err(DeviceError::Counters { .. })));
        assert!(matches!(DiskSampler::open_in(&root, &["vdb"]), Err(DeviceError::UnknownDevice { .. })));
    }
}
