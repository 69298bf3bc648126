//! The binary events of blktrace, of which those that queue a request are replayed.
//!
//! The layout is that of the kernel's `blk_io_trace`, in the byte order of the machine that recorded it.

use std::collections::HashMap;
use std::io::{self, Read};

use fathom_model::plan::RecordedRequest;
use fathom_model::{Op, Request};

use super::{MAX_BYTES, Recording};

/// The first word of an event: a magic number and the version.
const MAGIC: u32 = 0x6561_7407;
/// Bytes of an event without what follows it.
const EVENT: usize = 48;
/// The actions of events that queue a request, issue it to the driver and complete it.
const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
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
    let mut first_ns = None;
    let mut events = BlktraceEvents::new(input);
    while let Some(event) = events.next_of(&[BlockAction::Queue])? {
        let file = *devices.entry(event.device).or_insert_with(|| {
            recording.files.push(device_name(event.device));
            recording.files.len() as u32 - 1
        });
        if recording.requests.len() == most {
            return Err(BlktraceError::TooMany);
        }
        // The first of the recording may not be the first in time: differences are taken below.
        let first = first_ns.get_or_insert(event.at_ns);
        *first = event.at_ns.min(*first);
        let request = Request { op: event.op, file, len: event.len, offset: event.offset };
        recording.requests.push(RecordedRequest { at_ns: event.at_ns, request });
    }
    for recorded in &mut recording.requests {
        recorded.at_ns -= first_ns.unwrap_or(0);
    }
    Ok(recording.sorted())
}

/// The number of a device as `MAJOR:MINOR`.
pub fn device_name(device: u32) -> String {
    format!("{}:{}", device >> 20, device & 0xf_ffff)
}

/// What happens to a request of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockAction {
    /// A program or file system makes it.
    Queue,
    /// It is passed to the driver.
    Issue,
    /// The device has completed it.
    Complete,
}

/// One event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// The clock of the recording, ns.
    pub at_ns: u64,
    /// What happens.
    pub action: BlockAction,
    /// The operation.
    pub op: Op,
    /// Offset on the device, bytes.
    pub offset: u64,
    /// Length, bytes; 0 for flushes.
    pub len: u32,
    /// The device: its major number, and its minor number in the lower 20 bits.
    pub device: u32,
    /// The thread in whose context it happens.
    pub thread: u32,
}

/// The events of a recording, one after the other.
pub struct BlktraceEvents<'a> {
    input: &'a mut dyn Read,
    /// The number of the last event, from 1.
    number: u64,
}

impl<'a> BlktraceEvents<'a> {
    /// Those of `input`.
    pub fn new(input: &'a mut dyn Read) -> BlktraceEvents<'a> {
        BlktraceEvents { input, number: 0 }
    }

    /// The next event whose action is one of `wanted`; `None` at the end.
    ///
    /// # Errors
    /// The input cannot be read, or an event is incomplete or none.
    pub fn next_of(&mut self, wanted: &[BlockAction]) -> Result<Option<BlockEvent>, BlktraceError> {
        let mut bytes = [0; EVENT];
        loop {
            self.number += 1;
            let event = self.number;
            let refuse = |reason: &str| BlktraceError::Event { event, reason: reason.to_owned() };
            match fill(self.input, &mut bytes).map_err(BlktraceError::Io)? {
                0 => return Ok(None),
                EVENT => {}
                _ => return Err(refuse("it is incomplete")),
            }
            let is_big = order_of(bytes[..4].try_into().expect("four bytes"))
                .ok_or_else(|| refuse("it does not begin with the magic number of blktrace"))?;
            let event = Event::of(&bytes, is_big);
            let mut rest = (&mut *self.input).take(event.rest);
            let skipped = io::copy(&mut rest, &mut io::sink()).map_err(BlktraceError::Io)?;
            if skipped < event.rest {
                return Err(refuse("the data after it is incomplete"));
            }
            let Some(action) = event.action().filter(|action| wanted.contains(action)) else { continue };
            let Some((op, offset, len)) = event.request().map_err(|reason| refuse(&reason))? else {
                continue;
            };
            let (at_ns, device, thread) = (event.time_ns, event.device, event.thread);
            return Ok(Some(BlockEvent { at_ns, action, op, offset, len, device, thread }));
        }
    }
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
    thread: u32,
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
            thread: number(32, 4) as u32,
            device: number(36, 4) as u32,
            rest: number(46, 2),
        }
    }

    /// What happens, if it happens to a request of a file system or program.
    fn action(&self) -> Option<BlockAction> {
        if self.action & (PASSED_THROUGH | NOTIFICATION) != 0 {
            return None;
        }
        match self.action & 0xffff {
            QUEUE => Some(BlockAction::Queue),
            ISSUE => Some(BlockAction::Issue),
            COMPLETE => Some(BlockAction::Complete),
            _ => None,
        }
    }

    /// Operation, offset and bytes of the request, if it is one.
    fn request(&self) -> Result<Option<(Op, u64, u32)>, String> {
        let op = match () {
            () if self.action & DISCARD != 0 => Op::Trim,
            () if self.action & WRITE != 0 => Op::Write,
            () => Op::Read,
        };
        if self.bytes == 0 {
            let is_flush = self.action & (FLUSH | WRITE) != 0;
            return Ok(is_flush.then_some((Op::Sync, 0, 0)));
        }
        let offset = self.sector.checked_mul(SECTOR).filter(|offset| *offset <= i64::MAX as u64 - MAX_BYTES);
        let offset = offset.ok_or_else(|| format!("no device has a sector {}", self.sector))?;
        if u64::from(self.bytes) > MAX_BYTES {
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
    fn issues_and_completions_are_events_of_their_own() {
        let bytes = [
            event(1_000, READ | QUEUE, (8, 4096), &[]),
            event(1_200, READ | ISSUE, (8, 4096), &[]),
            event(1_300, READ | 3, (8, 4096), &[]),
            event(2_000, READ | COMPLETE, (8, 4096), &[]),
        ]
        .concat();
        let mut input = &*bytes;
        let mut events = BlktraceEvents::new(&mut input);
        let wanted = [BlockAction::Issue, BlockAction::Complete];
        let mut found = Vec::new();
        while let Some(event) = events.next_of(&wanted).unwrap() {
            found.push((event.at_ns, event.action, event.offset, device_name(event.device)));
        }
        let device = || "8:16".to_owned();
        assert_eq!(
            found,
            [(1_200, BlockAction::Issue, 4096, device()), (2_000, BlockAction::Complete, 4096, device())]
        );
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
