//! The blocks that a job has written and not read back.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::{Op, Request};
use fathom_workload::Source;

/// Whether a new write overlaps one that may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    None,
    InFlight,
}

/// File and offset of a write.
type Place = (u32, u64);

/// A write: its length and its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    len: u32,
    number: u64,
    /// The block was trimmed after the write.
    is_trimmed: bool,
}

/// The writes, to be read back in order.
pub(super) enum Written {
    /// Nothing is read back.
    Nothing,
    /// Each block is written once: the writes are those of the source, from where it was.
    Order { rewound: Box<Source>, failed: BTreeSet<Place> },
    /// The last write of each block.
    List {
        unread: BTreeMap<Place, Entry>,
        /// Those that are being read back.
        reading: BTreeMap<Place, Entry>,
        /// Writes from this number on may be in flight.
        in_flight_from: u64,
    },
}

impl Written {
    /// An empty list.
    pub fn list() -> Written {
        Written::List { unread: BTreeMap::new(), reading: BTreeMap::new(), in_flight_from: 0 }
    }

    pub fn is_list(&self) -> bool {
        matches!(self, Written::List { .. })
    }

    /// Notes write number `number`, unless it overlaps one that may be in flight.
    pub fn note(&mut self, write: &Request, number: u64) -> Overlap {
        let Written::List { unread, in_flight_from, .. } = self else { return Overlap::None };
        if overlapping(unread, write).any(|(_, entry)| entry.number >= *in_flight_from) {
            return Overlap::InFlight;
        }
        self.note_done(write, number);
        Overlap::None
    }

    /// As [`Written::note`], for a write that is complete.
    pub fn note_done(&mut self, write: &Request, number: u64) {
        let Written::List { unread, .. } = self else { return };
        let replaced: Vec<Place> = overlapping(unread, write).map(|(place, _)| place).collect();
        replaced.iter().for_each(|place| _ = unread.remove(place));
        unread.insert((write.file, write.offset), Entry { len: write.len, number, is_trimmed: false });
    }

    /// Marks the block of write number `number` as trimmed; false if it was written again or read back since.
    pub fn trim(&mut self, write: &Request, number: u64) -> bool {
        let Written::List { unread, .. } = self else { return false };
        let entry = unread.get_mut(&(write.file, write.offset)).filter(|entry| entry.number == number);
        entry.map(|entry| entry.is_trimmed = true).is_some()
    }

    /// Whether the block that `read` reads back was trimmed.
    pub fn is_trimmed(&self, read: &Request) -> bool {
        let Written::List { reading, .. } = self else { return false };
        reading.get(&(read.file, read.offset)).is_some_and(|entry| entry.is_trimmed)
    }

    /// Nothing is in flight, and the next write has this number.
    pub fn settle(&mut self, number: u64) {
        if let Written::List { reading, in_flight_from, .. } = self {
            reading.clear();
            *in_flight_from = number;
        }
    }

    /// Begins a pass with the requests that `source` draws next.
    pub fn begin_pass(&mut self, source: &Source) {
        match self {
            Written::Nothing => {}
            Written::Order { rewound, failed } => {
                **rewound = source.clone();
                failed.clear();
            }
            Written::List { unread, .. } => unread.clear(),
        }
    }

    /// The next block to read back.
    pub fn next_read(&mut self) -> Option<Request> {
        match self {
            Written::Nothing => None,
            Written::Order { rewound, failed } => loop {
                let request = rewound.next_request()?;
                if request.op == Op::Write && !failed.contains(&(request.file, request.offset)) {
                    return Some(Request { op: Op::Read, ..request });
                }
            },
            Written::List { unread, reading, .. } => {
                let ((file, offset), entry) = unread.pop_first()?;
                reading.insert((file, offset), entry);
                Some(Request { op: Op::Read, file, len: entry.len, offset })
            }
        }
    }

    /// Number of the write whose block `read` reads back.
    pub fn number_of(&self, read: &Request) -> Option<u64> {
        let Written::List { reading, .. } = self else { return None };
        reading.get(&(read.file, read.offset)).map(|entry| entry.number)
    }

    /// Forgets a write that failed.
    pub fn forget(&mut self, write: &Request) {
        let place = (write.file, write.offset);
        match self {
            Written::Nothing => {}
            Written::Order { failed, .. } => _ = failed.insert(place),
            Written::List { unread, .. } => _ = unread.remove(&place),
        }
    }
}

/// The writes that `write` overlaps. Those before it do not overlap each other, so that only the nearest one can.
fn overlapping<'a>(
    unread: &'a BTreeMap<Place, Entry>,
    write: &Request,
) -> impl Iterator<Item = (Place, Entry)> + use<'a> {
    let (file, start, end) = (write.file, write.offset, write.offset + u64::from(write.len));
    let before = unread.range((file, 0)..(file, start)).next_back();
    let before = before.filter(move |((_, offset), entry)| offset + u64::from(entry.len) > start);
    before.into_iter().chain(unread.range((file, start)..(file, end))).map(|(place, entry)| (*place, *entry))
}
