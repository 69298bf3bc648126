//! The blocks of a recording one after the other, with its headers and ends, and the facts of the load that follow from them.

use std::io::Read;

use super::block::{BlockFault, BlockKind, read_block};
use super::header::{RecordingEnd, RecordingHeader};
use crate::LoadError;
use crate::LoadFormat;
use crate::block_events::LONGEST_NS;
use crate::load::{GapReason, LoadClock, LoadCourse, LoadGap, ObservedLoad};

const DAMAGED: &str = "copy the file again, or record again";

/// Reads blocks, and follows the time of the load.
pub(super) struct Blocks<'a> {
    input: Box<dyn Read + Send + 'a>,
    pub content: Vec<u8>,
    /// The number of the block in `content`, from 1.
    pub number: u64,
    first: RecordingHeader,
    /// The header of the present file.
    pub header: RecordingHeader,
    /// What is added to the times of the present file for those of the load.
    shift_ns: i64,
    /// The end of the load so far.
    pub end_ns: u64,
    gaps: Vec<LoadGap>,
    notes: Vec<String>,
    ended: Option<RecordingEnd>,
    /// I/Os that were in flight where a file ended that no other follows.
    in_flight: u64,
}

impl<'a> Blocks<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// There is none.
    pub fn new(mut input: Box<dyn Read + Send + 'a>) -> Result<Blocks<'a>, LoadError> {
        let mut content = Vec::new();
        let broken = |problem: String| Err(LoadError::new(0, format!("block 1: {problem}"), DAMAGED));
        let header = match read_block(&mut *input, &mut content) {
            Ok(block) if block.kind == BlockKind::Header => RecordingHeader::parse(&content),
            Ok(_) => Err("not a header".to_owned()),
            Err(BlockFault::Version(version)) => return Err(later_version(1, version)),
            Err(BlockFault::Io(error)) => return Err(unreadable(&error)),
            Err(BlockFault::End | BlockFault::Cut) => Err("it is incomplete".to_owned()),
            Err(BlockFault::Damaged(reason)) => Err(reason.to_owned()),
        };
        let header = match header {
            Ok(header) => header,
            Err(problem) => return broken(problem),
        };
        let Some(shift_ns) = i64::try_from(header.from_ns).ok().and_then(i64::checked_neg) else {
            return broken("from_ns: it is too large".to_owned());
        };
        if header.started_unix_ns.checked_add(header.from_ns).is_none() {
            return broken("started_unix_ns: it is too large".to_owned());
        }
        Ok(Blocks {
            input,
            content,
            number: 1,
            first: header.clone(),
            shift_ns,
            end_ns: 0,
            gaps: Vec::new(),
            notes: header.notes.clone(),
            header,
            ended: None,
            in_flight: 0,
        })
    }

    /// The number of entries in the next block of requests or intervals, which is then in `content`; `None` at the end.
    ///
    /// # Errors
    /// The source cannot be read, or a header makes no sense here.
    pub fn next(&mut self) -> Result<Option<u32>, LoadError> {
        loop {
            let block = match read_block(&mut *self.input, &mut self.content) {
                Ok(block) => block,
                Err(BlockFault::Io(error)) => return Err(unreadable(&error)),
                Err(BlockFault::Version(version)) => return Err(later_version(self.number + 1, version)),
                Err(fault) => {
                    self.stopped(&fault);
                    return Ok(None);
                }
            };
            self.number += 1;
            let data = match self.header.detail {
                super::RecordingDetail::Requests => BlockKind::Requests,
                super::RecordingDetail::Sums => BlockKind::Sums,
            };
            match block.kind {
                BlockKind::Header => self.next_file()?,
                BlockKind::End => self.end_file()?,
                kind if kind == data && self.ended.is_none() => return Ok(Some(block.entries)),
                _ => return Err(self.broken("it is not where such a block belongs")),
            }
        }
    }

    /// Why no further block follows, as a note where it is not the end.
    fn stopped(&mut self, fault: &BlockFault) {
        match (fault, self.ended) {
            (BlockFault::End, Some(_)) => {}
            (BlockFault::End | BlockFault::Cut, None) => self.notes.push(
                "the recorder was killed: the last second, and I/Os in flight before it, may be missing"
                    .to_owned(),
            ),
            (BlockFault::Damaged(reason), _) => self.notes.push(format!(
                "block {} is damaged ({reason}): the blocks after it are not read",
                self.number + 1
            )),
            _ => self.notes.push(format!("block {} is incomplete", self.number + 1)),
        }
        if let Some(end) = self.ended {
            self.in_flight += end.in_flight;
            if end.continues {
                self.notes.push("further files of this recording exist; join them with `cat`".to_owned());
            }
        }
        if self.in_flight > 0 {
            let were = if self.in_flight == 1 { "I/O was" } else { "I/Os were" };
            self.notes.push(format!("{} {were} in flight at the end", self.in_flight));
        }
    }

    /// The time of the load at the time `at_ns` of the present file.
    ///
    /// # Errors
    /// It is too long after the beginning.
    #[inline]
    pub fn load_time(&self, at_ns: u64) -> Result<u64, LoadError> {
        let sum = i128::from(at_ns) + i128::from(self.shift_ns);
        match u64::try_from(sum.max(0)) {
            Ok(at_ns) if at_ns <= LONGEST_NS => Ok(at_ns),
            _ => Err(self.broken("a time is more than 10 years after the beginning")),
        }
    }

    /// An error in the present block.
    pub fn broken(&self, problem: &str) -> LoadError {
        LoadError::new(0, format!("block {}: {problem}", self.number), DAMAGED)
    }

    fn end_file(&mut self) -> Result<(), LoadError> {
        let end = RecordingEnd::parse(&self.content).map_err(|problem| self.broken(&problem))?;
        self.end_ns = self.end_ns.max(self.load_time(end.end_ns)?);
        self.ended = Some(end);
        Ok(())
    }

    /// Another file was appended: the next of the same recording, or a later recording of the same device.
    fn next_file(&mut self) -> Result<(), LoadError> {
        let header = RecordingHeader::parse(&self.content).map_err(|problem| self.broken(&problem))?;
        let differs = |what: &str, hint: &str| Err(LoadError::new(0, format!("{what} differ"), hint));
        if header.device != self.first.device {
            let devices =
                format!("the devices of the recordings, {} and {},", self.first.device, header.device);
            return differs(&devices, "name the files of one device");
        }
        if (header.detail, header.point) != (self.first.detail, self.first.point) {
            return differs("requests and intervals: the recordings", "name files of one kind");
        }
        let is_same = header.started_unix_ns == self.header.started_unix_ns;
        let later = header.started_unix_ns.checked_sub(self.first.started_unix_ns);
        let shift = later.and_then(|later| i64::try_from(later).ok());
        let shift = shift.and_then(|shift| shift.checked_sub(i64::try_from(self.first.from_ns).ok()?));
        let in_order = if is_same {
            header.file > self.header.file
        } else {
            header.started_unix_ns > self.header.started_unix_ns
        };
        let Some(shift_ns) = shift.filter(|_| in_order) else {
            let hint = "join the files by their numbers, and recordings by their times";
            return Err(LoadError::new(0, "the files of the recording are not in their order", hint));
        };
        self.shift_ns = shift_ns;
        let start_ns = self.load_time(header.from_ns)?;
        if self.ended.is_none() {
            self.notes.push(format!("a recorder was killed before block {}", self.number));
        }
        if start_ns > self.end_ns {
            self.gap_before(start_ns);
        }
        if let Some(end) = self.ended.take().filter(|_| !is_same) {
            self.in_flight += end.in_flight;
        }
        for note in &header.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        self.header = header;
        Ok(())
    }

    /// There is no data from the end so far to `start_ns`, which is later.
    pub fn gap_before(&mut self, start_ns: u64) {
        let length_ns = start_ns - self.end_ns;
        self.gaps.push(LoadGap { start_ns: self.end_ns, length_ns, reason: GapReason::Missing });
        self.end_ns = start_ns;
    }

    /// The load ends at `end_ns`, whatever follows.
    pub fn end_at(&mut self, end_ns: u64) {
        self.end_ns = end_ns;
        self.gaps.retain(|gap| gap.start_ns < end_ns);
    }

    /// The load as far as it is known, without its requests or intervals; `notes` come first.
    pub fn load(&self, course: LoadCourse, mut notes: Vec<String>) -> ObservedLoad {
        notes.extend(self.notes.iter().cloned());
        ObservedLoad {
            format: LoadFormat::Recording,
            device: self.first.device.clone(),
            started_unix_ns: Some(self.first.started_unix_ns + self.first.from_ns),
            clock: LoadClock::Utc,
            length_ns: self.end_ns,
            course,
            gaps: self.gaps.clone(),
            notes,
        }
    }
}

impl std::fmt::Debug for Blocks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocks")
            .field("number", &self.number)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

fn unreadable(error: &std::io::Error) -> LoadError {
    LoadError::new(0, format!("it cannot be read: {error}"), "check the file and its permissions")
}

fn later_version(number: u64, version: u8) -> LoadError {
    let problem = format!("block {number}: its format has version {version}, and 1 is known");
    LoadError::new(0, problem, "use a later version of fathom")
}
