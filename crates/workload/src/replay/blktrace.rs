//! The binary events of blktrace, of which those that queue a request are replayed.
//!
//! The layout is that of the kernel's `blk_io_trace`, in the byte order of the machine that recorded it.

use std::collections::HashMap;
use std::io::{self, Read};

use fathom_model::plan::RecordedRequest;
use fathom_model::{Op, Request};

use super::{MOST_BYTES, Recording};

/// The first word of an event: a magic number and the version.
const MAGIC: u32 = 0x6561_7407;
/// Bytes of an event without what follows it.
const EVENT: usize = 48;
/// The action of an event that queues a request.
const QUEUE: u32 = 1;
/// The categories of an action, shifted.
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const PASSED_THROUGH: u32 = 1 << 25;
const NOTIFICATION: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
/// Bytes of a sector.
const SECTOR: u64 = 512;

/// Why a recording is refused.
#[derive(Debug)]
pub enum BlktraceError {
    /// It cannot be read.
    Io(io::Error),
    /// Event number `event`, from 1, has no meaning.
    Event {
        /// The number.
        event: u64,
        /// The reason.
        reason: String,
    },
    /// More requests than are kept.
    TooMany,
}

/// Whether a file that begins with `bytes` is a recording of blktrace.
pub fn is_blktrace(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|first| order_of(*first).is_some())
}

/// Whether words have to be swapped; `None` if `first` begins no event.
fn order_of(first: [u8; 4]) -> Option<bool> {
    match (u32::from_le_bytes(first), u32::from_be_bytes(first)) {
        (MAGIC, _) => Some(false),
        (_, MAGIC) => Some(true),
        _ => None,
    }
}

/// Reads the events of `input`; at most `most` requests are kept. Files are the numbers of devices.
///
/// # Errors
/// It cannot be read, an event is incomplete or none, or there are too many.
pub fn read_blktrace(input: &mut dyn Read, most: usize) -> Result<Recording, BlktraceError> {
    let mut recording = Recording::default();
    let mut devices: HashMap<u32, u32> = HashMap::new();
    let mut bytes = [0; EVENT];
    let mut number = 0;
    let mut first_ns = None;
    loop {
        number += 1;
        let refuse = |reason: &str| BlktraceError::Event { event: number, reason: reason.to_owned() };
        match fill(input, &mut bytes).map_err(BlktraceError::Io)? {
            0 => break,
            EVENT => {}
            _ => return Err(refuse("it is incomplete")),
        }
        let is_big = order_of(bytes[..4].try_into().expect("four bytes"))
            .ok_or_else(|| refuse("it does not begin with the magic number of blktrace"))?;
        let event = Event::of(&bytes, is_big);
        let skipped = io::copy(&mut input.take(event.rest), &mut io::sink()).map_err(BlktraceError::Io)?;
        if skipped < event.rest {
            return Err(refuse("the data after it is incomplete"));
        }
        let Some((op, offset, len)) = event.request().map_err(|reason| refuse(&reason))? else { continue };
        let file = *devices.entry(event.device).or_insert_with(|| {
            recording.files.push(format!("{}:{}", event.device >> 20, event.device & 0xf_ffff));
            recording.files.len() as u32 - 1
        });
        if recording.requests.len() == most {
            return Err(BlktraceError::TooMany);
        }
        // The first of the recording may not be the first in time: differences are taken below.
        let first = first_ns.get_or_insert(event.time_ns);
        *first = event.time_ns.min(*first);
        let request = Request { op, file, len, offset };
        recording.requests.push(RecordedRequest { at_ns: event.time_ns, request });
    }
    for recorded in &mut recording.requests {
        recorded.at_ns -= first_ns.unwrap_or(0);
    }
    Ok(recording.sorted())
}

/// Reads until `bytes` are full or the input ends; returns the number read.
fn fill(input: &mut dyn Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match input.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The parts of an event that matter here.
struct Event {
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
    /// Bytes that follow.
    rest: u64,
}

impl Event {
    fn of(bytes: &[u8; EVENT], is_big: bool) -> Event {
        let number = |at: usize, len: usize| {
            let field = bytes[at..at + len].iter();
            let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
            if is_big { field.fold(0, join) } else { field.rev().fold(0, join) }
        };
        Event {
            time_ns: number(8, 8),
            sector: number(16, 8),
            bytes: number(24, 4) as u32,
            action: number(28, 4) as u32,
            device: number(36, 4) as u32,
            rest: number(46, 2),
        }
    }

    /// Operation, offset and bytes of the request that is queued, if one is.
    fn request(&self) -> Result<Option<(Op, u64, u32)>, String> {
        let is_queued = self.action & 0xffff == QUEUE;
        if !is_queued || self.action & (PASSED_THROUGH | NOTIFICATION) != 0 {
            return Ok(None);
        }
        let op = match () {
            () if self.action & DISCARD != 0 => Op::Trim,
            () if self.action & WRITE != 0 => Op::Write,
            () => Op::Read,
        };
        if self.bytes == 0 {
            let is_flush = self.action & (FLUSH | WRITE) != 0;
            return Ok(is_flush.then_some((Op::Sync, 0, 0)));
        }
        let offset = self.sector.checked_mul(SECTOR).filter(|offset| *offset <= i64::MAX as u64 - MOST_BYTES);
        let offset = offset.ok_or_else(|| format!("no device has a sector {}", self.sector))?;
        if u64::from(self.bytes) > MOST_BYTES {
            return Err(format!("a request of {} bytes is not possible", self.bytes));
        }
        Ok(Some((op, offset, self.bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: u32 = 1 << 16;

    fn event(time_ns: u64, action: u32, (sector, bytes): (u64, u32), rest: &[u8]) -> Vec<u8> {
        let mut event = Vec::new();
        event.extend(MAGIC.to_le_bytes());
        event.extend(7u32.to_le_bytes());
        event.extend(time_ns.to_le_bytes());
        event.extend(sector.to_le_bytes());
        event.extend(bytes.to_le_bytes());
        event.extend(action.to_le_bytes());
        event.extend(1u32.to_le_bytes());
        event.extend((8u32 << 20 | 16).to_le_bytes());
        event.extend(0u32.to_le_bytes());
        event.extend(0u16.to_le_bytes());
        event.extend((rest.len() as u16).to_le_bytes());
        event.extend(rest);
        event
    }

    fn read(bytes: &[u8]) -> Result<Recording, BlktraceError> {
        read_blktrace(&mut &*bytes, 100)
    }

    fn requests(bytes: &[u8]) -> Vec<(u64, Op, u64, u32)> {
        let of = |RecordedRequest { at_ns, request }: &RecordedRequest| {
            (*at_ns, request.op, request.offset, request.len)
        };
        read(bytes).unwrap().requests.iter().map(of).collect()
    }

    #[test]
    fn queued_requests_are_kept() {
        let bytes = [
            event(900, NOTIFICATION | QUEUE, (0, 0), b"process"),
            event(1_500, READ | QUEUE, (8, 4096), &[]),
            event(1_000, WRITE | QUEUE, (0, 512), &[]),
            event(1_600, READ | 7, (8, 4096), &[]),
            event(2_000, WRITE | DISCARD | QUEUE, (16, 8192), &[]),
            event(2_500, WRITE | FLUSH | QUEUE, (0, 0), &[]),
            event(2_600, READ | PASSED_THROUGH | QUEUE, (0, 36), &[]),
        ]
        .concat();
        let expected = [
            (0, Op::Write, 0, 512),
            (500, Op::Read, 4096, 4096),
            (1_000, Op::Trim, 8192, 8192),
            (1_500, Op::Sync, 0, 0),
        ];
        assert_eq!(requests(&bytes), expected);
        assert_eq!(read(&bytes).unwrap().files, ["8:16"]);
        assert!(is_blktrace(&bytes) && !is_blktrace(b"fio version 3 iolog") && !is_blktrace(b"x"));
    }

    #[test]
    fn either_byte_order_is_read() {
        let mut bytes = event(5, READ | QUEUE, (8, 4096), &[]);
        let fields = [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2];
        let mut at = 0;
        for len in fields {
            bytes[at..at + len].reverse();
            at += len;
        }
        assert_eq!(requests(&bytes), [(0, Op::Read, 4096, 4096)]);
    }

    #[test]
    fn broken_events_are_refused_by_number() {
        let good = event(5, READ | QUEUE, (8, 4096), &[]);
        let refused = |bytes: &[u8]| match read(bytes).unwrap_err() {
            BlktraceError::Event { event, reason } => format!("{event}: {reason}"),
            other => format!("{other:?}"),
        };
        assert_eq!(refused(&[&good[..], &good[..47]].concat()), "2: it is incomplete");
        assert!(refused(&[&good[..], &[0; 48]].concat()).starts_with("2: it does not begin with"));
        let cut = event(5, READ | QUEUE, (8, 4096), b"data");
        assert_eq!(refused(&cut[..50]), "1: the data after it is incomplete");
        let far = event(5, READ | QUEUE, (u64::MAX, 4096), &[]);
        assert!(refused(&far).starts_with("1: no device has a sector"));
        let large = event(5, READ | QUEUE, (0, u32::MAX), &[]);
        assert!(refused(&large).contains("is not possible"));
        assert!(matches!(read_blktrace(&mut &*good, 0), Err(BlktraceError::TooMany)));
        assert!(read(&[]).unwrap().requests.is_empty());
    }
}
