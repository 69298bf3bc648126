//! Reads recordings: requests one at a time, sums of intervals as a whole.

use std::io::Read;

use fathom_model::units::grouped;

use super::blocks::Blocks;
use super::number::get;
use super::request_code::RequestCode;
use super::{RecordingDetail, sums_code};
use crate::LoadError;
use crate::load::{LoadCourse, ObservedInterval, ObservedLoad, ObservedRequest, RequestTrace};
use crate::requests::{LoadSource, Requests};

/// Intervals in memory at most. Beyond that, neighbours are added up.
const MAX_INTERVALS: usize = 1 << 18;

/// Reads a recording; `device` is the one that it must be of.
///
/// # Errors
/// It has no header, is of another device, or has intervals and one of them is impossible.
pub fn read_recording<'a>(
    input: impl Read + Send + 'a,
    device: Option<&str>,
) -> Result<LoadSource<'a>, LoadError> {
    let blocks = Blocks::new(Box::new(input))?;
    if device.is_some_and(|device| device != blocks.header.device) {
        return Err(LoadError::device(device, std::slice::from_ref(&blocks.header.device)));
    }
    match blocks.header.detail {
        RecordingDetail::Requests => {
            Ok(LoadSource::Stream(Requests::recorded(RecordedRequests::new(blocks))))
        }
        RecordingDetail::Sums => read_sums(blocks, MAX_INTERVALS).map(LoadSource::Whole),
    }
}

/// The requests of a recording.
#[derive(Debug)]
pub(crate) struct RecordedRequests<'a> {
    blocks: Blocks<'a>,
    code: RequestCode,
    /// Where the next request of the block is.
    at: usize,
    /// Requests of the block that are left.
    left: u32,
    last_ns: u64,
    lost: u64,
    overdue: u64,
    /// The load without its requests, as far as it is known.
    load: ObservedLoad,
    is_over: bool,
}

impl<'a> RecordedRequests<'a> {
    fn new(blocks: Blocks<'a>) -> RecordedRequests<'a> {
        let trace = RequestTrace {
            files: vec![blocks.header.device.clone()],
            requests: Vec::new(),
            has_times: true,
            point: blocks.header.point,
        };
        let load = blocks.load(LoadCourse::Requests(trace), Vec::new());
        RecordedRequests {
            blocks,
            code: RequestCode::default(),
            at: 0,
            left: 0,
            last_ns: 0,
            lost: 0,
            overdue: 0,
            load,
            is_over: false,
        }
    }

    /// The load without its requests: whole after the last of them.
    pub fn load(&self) -> &ObservedLoad {
        &self.load
    }

    pub fn into_load(self) -> ObservedLoad {
        self.load
    }

    /// Adds the next requests to `into` until it has `most`.
    #[inline]
    pub fn fill(&mut self, into: &mut Vec<ObservedRequest>, most: usize) -> Result<(), LoadError> {
        while into.len() < most && !self.is_over {
            match self.take() {
                Ok(Some(request)) => into.push(request),
                Ok(None) => {}
                Err(error) => {
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Passes over all that are left: the load, and their number as their blocks say it.
    pub fn survey(mut self) -> Result<(ObservedLoad, u64), LoadError> {
        let mut requests = u64::from(self.left);
        while !self.is_over {
            match self.next_block()? {
                true => requests += u64::from(self.left),
                false => self.finish(),
            }
        }
        Ok((self.load, requests))
    }

    #[inline]
    fn take(&mut self) -> Result<Option<ObservedRequest>, LoadError> {
        while self.left == 0 {
            if !self.next_block()? {
                self.finish();
                return Ok(None);
            }
        }
        self.left -= 1;
        let request = self.code.decode(&self.blocks.content, &mut self.at);
        let mut request = request.ok_or_else(|| self.blocks.broken("a request in it is impossible"))?;
        request.at_ns = self.blocks.load_time(request.at_ns)?;
        if request.at_ns < self.last_ns {
            return Err(self.blocks.broken("a request in it is earlier than the previous one"));
        }
        self.last_ns = request.at_ns;
        self.blocks.end_ns = self.blocks.end_ns.max(request.at_ns);
        Ok(Some(request))
    }

    fn next_block(&mut self) -> Result<bool, LoadError> {
        let Some(entries) = self.blocks.next()? else { return Ok(false) };
        let mut at = 0;
        let head = head(&self.blocks.content, &mut at);
        let [base_ns, span_ns, lost, overdue] = head.ok_or_else(|| self.blocks.broken("it is too short"))?;
        let until_ns = self.blocks.load_time(base_ns.saturating_add(span_ns))?;
        self.blocks.end_ns = self.blocks.end_ns.max(until_ns);
        self.lost = self.lost.saturating_add(lost);
        self.overdue = self.overdue.saturating_add(overdue);
        (self.at, self.left, self.code) = (at, entries, RequestCode::from(base_ns));
        Ok(true)
    }

    fn finish(&mut self) {
        self.is_over = true;
        let mut notes = Vec::new();
        if self.lost > 0 {
            notes.push(format!(
                "the recorder lost {} events of the kernel: up to as many I/Os or latencies are missing",
                grouped(self.lost)
            ));
        }
        if self.overdue > 0 {
            let have = if self.overdue == 1 { "I/O has" } else { "I/Os have" };
            notes.push(format!(
                "{} {have} no latency: the kernel reported no completion, or it took longer than a minute",
                grouped(self.overdue)
            ));
        }
        let LoadCourse::Requests(trace) = &self.load.course else { return };
        self.load = self.blocks.load(LoadCourse::Requests(trace.clone()), notes);
    }
}

impl Iterator for RecordedRequests<'_> {
    type Item = Result<ObservedRequest, LoadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let taken = self.take();
        self.is_over |= taken.is_err();
        taken.transpose()
    }
}

/// The numbers that a block of requests begins with.
fn head(content: &[u8], at: &mut usize) -> Option<[u64; 4]> {
    Some([get(content, at)?, get(content, at)?, get(content, at)?, get(content, at)?])
}

/// The intervals of a recording, at most `most` of them.
fn read_sums(mut blocks: Blocks<'_>, most: usize) -> Result<ObservedLoad, LoadError> {
    let mut intervals: Vec<ObservedInterval> = Vec::new();
    let mut halvings = 0;
    while let Some(entries) = blocks.next()? {
        let mut at = 0;
        for _ in 0..entries {
            let interval = sums_code::decode(&blocks.content, &mut at);
            let mut interval = interval.ok_or_else(|| blocks.broken("an interval in it is impossible"))?;
            interval.start_ns = blocks.load_time(interval.start_ns)?;
            blocks.load_time(interval.end_ns())?;
            if interval.start_ns < blocks.end_ns {
                return Err(blocks.broken("an interval in it is earlier than the previous one"));
            }
            if interval.start_ns > blocks.end_ns {
                blocks.gap_before(interval.start_ns);
            }
            blocks.end_ns = interval.end_ns();
            intervals.push(interval);
        }
        if intervals.len() > most {
            sums_code::halve(&mut intervals);
            halvings += 1;
            if intervals.len() > most {
                return Err(LoadError::new(0, "it has too many gaps", "read its files one by one"));
            }
        }
    }
    let Some(last) = intervals.last() else { return Err(LoadError::empty("interval")) };
    blocks.end_at(last.end_ns());
    let mut notes = Vec::new();
    if halvings > 0 {
        notes.push(format!("{} intervals each are added up to one", 1_u64 << halvings));
    }
    Ok(blocks.load(LoadCourse::Intervals(intervals), notes))
}
