//! Tracepoints of the kernel, taken through perf's rings: each record as the kernel wrote it, with time and thread.
//!
//! Nothing is set up in the trace file system, so nothing remains after the process, however it ends, and other traces
//! are not disturbed. `device::block_trace` interprets the records.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which tracepoint, and which of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// The number in the tracepoint's file `id`.
    pub id: u64,
    /// A filter in the kernel's syntax (`dev == 7340032`); empty = none.
    pub filter: String,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord<'a> {
    /// When, by `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// The process of the thread that was running then; 0 where the kernel did this by itself.
    pub process: u32,
    /// The tracepoint's fields, in the layout of its file `format`.
    pub data: &'a [u8],
}

/// Tracepoints that are being recorded on every CPU; ended on drop.
#[derive(Debug)]
pub struct Tracepoints {
    rings: Vec<TraceRing>,
    /// Hold the events that write into a ring they did not make.
    _others: Vec<File>,
    scratch: Vec<u8>,
    lost: u64,
}

impl Tracepoints {
    /// Records `points` on `cpus` from now on, in rings of `ring_bytes` (a power of two, of pages).
    ///
    /// # Errors
    /// Not allowed (this takes `CAP_PERFMON` or root), or no such tracepoint.
    pub fn open(cpus: &[u32], points: &[Tracepoint], ring_bytes: usize) -> io::Result<Tracepoints> {
        let mut all = Tracepoints { rings: Vec::new(), _others: Vec::new(), scratch: Vec::new(), lost: 0 };
        for &cpu in cpus {
            let mut ring: Option<TraceRing> = None;
            for point in points {
                let event = open_event(point, cpu)?;
                match &ring {
                    None => ring = Some(TraceRing::over(event, ring_bytes)?),
                    Some(ring) => {
                        direct_to(&event, &ring.event)?;
                        all._others.push(event);
                    }
                }
            }
            all.rings.extend(ring);
        }
        Ok(all)
    }

    /// Hands over what has been recorded since the last call, of one CPU after the other, each in the order of time.
    pub fn drain(&mut self, mut take: impl FnMut(TraceRecord<'_>)) {
        for ring in &mut self.rings {
            self.lost += ring.drain(&mut self.scratch, &mut take);
        }
    }

    /// Records that found no room, so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// `struct perf_event_attr` up to its fourth published size.
#[repr(C)]
#[derive(Default)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock_id: i32,
}

const _: () = assert!(size_of::<EventAttributes>() == 96);

const KIND_TRACEPOINT: u32 = 2;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_RAW: u64 = 1 << 10;
const USE_CLOCK_ID: u64 = 1 << 25;
const CLOSE_ON_EXEC: u64 = 8;
const SET_OUTPUT: u64 = 0x2405;
const SET_FILTER: u64 = 0x4008_2406;

fn open_event(point: &Tracepoint, cpu: u32) -> io::Result<File> {
    let attributes = EventAttributes {
        kind: KIND_TRACEPOINT,
        size: size_of::<EventAttributes>() as u32,
        config: point.id,
        sample_period: 1,
        sample_type: SAMPLE_TID | SAMPLE_TIME | SAMPLE_RAW,
        flags: USE_CLOCK_ID,
        clock_id: libc::CLOCK_MONOTONIC,
        ..EventAttributes::default()
    };
    let (attributes, every_process, no_group) = (&raw const attributes, -1, -1);
    // SAFETY: the kernel reads `size` bytes of the attributes, which live until the call returns.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes, every_process, cpu, no_group, CLOSE_ON_EXEC)
    };
    let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just returned this descriptor, so it has no other owner.
    let event = unsafe { File::from_raw_fd(fd) };
    if !point.filter.is_empty() {
        let filter = std::ffi::CString::new(point.filter.as_str())?;
        // SAFETY: the kernel reads the string up to its end; it lives until the call returns.
        done(unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER as _, filter.as_ptr()) })?;
    }
    Ok(event)
}

fn direct_to(event: &File, into: &File) -> io::Result<()> {
    // SAFETY: both are descriptors of events of one CPU; no memory is handed over.
    done(unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT as _, into.as_raw_fd()) })
}

fn done(answer: i32) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// One CPU's records: a page of positions, then the bytes, which the kernel writes and we read.
#[derive(Debug)]
struct TraceRing {
    event: File,
    start: NonNull<u8>,
    page: usize,
    bytes: usize,
}

// SAFETY: the mapping belongs to this ring alone, and the kernel does not care which thread reads it.
unsafe impl Send for TraceRing {}

/// Where the kernel's and our position stand in the first page.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

impl TraceRing {
    fn over(event: File, bytes: usize) -> io::Result<TraceRing> {
        let page = rustix::param::page_size();
        let bytes = bytes.max(page).next_power_of_two();
        let (length, access) = (page + bytes, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new mapping at a place the kernel chooses touches nothing that exists.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, event.as_raw_fd(), 0)
        };
        let start = if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast::<u8>()) };
        Ok(TraceRing { event, start: start.ok_or_else(io::Error::last_os_error)?, page, bytes })
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: an aligned u64 inside the first page, which is mapped as long as the ring lives and is only ever
        // accessed atomically.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Hands over the records between our position and the kernel's; answers how many were lost.
    fn drain(&mut self, scratch: &mut Vec<u8>, take: &mut impl FnMut(TraceRecord<'_>)) -> u64 {
        // Everything the kernel wrote before it moved its position is visible after this.
        let head = self.position(HEAD).load(Ordering::Acquire);
        let tail = self.position(TAIL).load(Ordering::Relaxed);
        self.copy(tail, head, scratch);
        // The bytes are copied; the kernel may use their room again.
        self.position(TAIL).store(head, Ordering::Release);
        records(scratch, take)
    }

    /// Replaces `out` by the bytes between two positions.
    fn copy(&self, tail: u64, head: u64, out: &mut Vec<u8>) {
        let length = (head.wrapping_sub(tail) as usize).min(self.bytes);
        out.resize(length, 0);
        let begin = tail as usize & (self.bytes - 1);
        let first = length.min(self.bytes - begin);
        for (from, to, count) in [(begin, 0, first), (0, first, length - first)] {
            let into = &mut out[to..to + count];
            // SAFETY: `from + count` is at most the size of the data part, which is mapped behind the first page, and
            // the kernel does not write between our position and its own.
            unsafe {
                let place = self.start.as_ptr().add(self.page + from);
                std::ptr::copy_nonoverlapping(place, into.as_mut_ptr(), count);
            }
        }
    }
}

impl Drop for TraceRing {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `over`; no reference into it outlives the ring.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.page + self.bytes) };
    }
}

const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;

/// The records that the kernel wrote; returns the number of lost ones.
fn records(bytes: &[u8], take: &mut impl FnMut(TraceRecord<'_>)) -> u64 {
    let (mut rest, mut lost) = (bytes, 0);
    while let (Some(kind), Some(size)) = (u32_at(rest, 0), u16_at(rest, 6)) {
        let size = usize::from(size);
        if size < 8 || size > rest.len() {
            break;
        }
        let (record, behind) = rest.split_at(size);
        rest = behind;
        match kind {
            RECORD_LOST => lost += u64_at(record, 16).unwrap_or(1),
            RECORD_SAMPLE => {
                if let Some(sample) = sample(record) {
                    take(sample);
                }
            }
            _ => {}
        }
    }
    lost
}

/// Header, process, thread, time, length, data.
fn sample(record: &[u8]) -> Option<TraceRecord<'_>> {
    let length = u32_at(record, 24)? as usize;
    let data = record.get(28..28 + length)?;
    Some(TraceRecord { time_ns: u64_at(record, 16)?, process: u32_at(record, 8)?, data })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(0u16.to_ne_bytes());
        bytes.extend((8 + body.len() as u16).to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn sampled(process: u32, time: u64, data: &[u8]) -> Vec<u8> {
        let mut body = process.to_ne_bytes().to_vec();
        body.extend((process + 1).to_ne_bytes());
        body.extend(time.to_ne_bytes());
        body.extend((data.len() as u32).to_ne_bytes());
        body.extend(data);
        record(RECORD_SAMPLE, &body)
    }

    #[test]
    fn records_are_distinguished() {
        let lost: Vec<u8> = [7u64, 40].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let bytes = [
            sampled(100, 5, b"abcd"),
            record(RECORD_LOST, &lost),
            record(77, b"of another kind."),
            sampled(0, 6, b"efghijkl"),
        ]
        .concat();
        let mut seen = Vec::new();
        let lost = records(&bytes, &mut |r| seen.push((r.process, r.time_ns, r.data.to_vec())));
        assert_eq!(lost, 40);
        assert_eq!(seen, [(100, 5, b"abcd".to_vec()), (0, 6, b"efghijkl".to_vec())]);
    }

    #[test]
    fn truncated_records_are_skipped() {
        let whole = sampled(100, 5, b"abcd");
        for length in 0..whole.len() {
            let mut seen = 0;
            records(&whole[..length], &mut |_| seen += 1);
            assert_eq!(seen, 0, "{length}");
        }
        // A length of 0, and a wrong one.
        assert_eq!(records(&[0; 64], &mut |_| {}), 0);
        let mut lying = sampled(1, 1, b"abcd");
        lying[24] = 200;
        records(&lying, &mut |_| unreachable!("200 bytes are not there"));
    }
}
