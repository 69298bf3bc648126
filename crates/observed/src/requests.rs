//! The requests of a load one at a time, whether they are in memory or read from a recording of any length.

use crate::LoadError;
use crate::load::{LoadCourse, ObservedLoad, ObservedRequest};
use crate::recording::RecordedRequests;

/// A load as its source gives it.
#[derive(Debug)]
pub enum LoadSource<'a> {
    /// In memory: requests or intervals.
    Whole(ObservedLoad),
    /// Requests that are read one at a time, however many there are.
    Stream(Requests<'a>),
}

impl<'a> LoadSource<'a> {
    /// The requests one at a time; the load itself where it has intervals.
    ///
    /// # Errors
    /// It has intervals, which are returned.
    pub fn into_requests(self) -> Result<Requests<'a>, Box<ObservedLoad>> {
        match self {
            LoadSource::Stream(requests) => Ok(requests),
            LoadSource::Whole(load) => Requests::of(load),
        }
    }

    /// The load with all its requests in memory, at most `most` of them.
    ///
    /// # Errors
    /// It cannot be read, or has more.
    pub fn into_load(self, most: usize) -> Result<ObservedLoad, LoadError> {
        let mut requests = match self {
            LoadSource::Whole(load) => return Ok(load),
            LoadSource::Stream(requests) => requests,
        };
        let mut kept = Vec::new();
        for request in &mut requests {
            if kept.len() == most {
                let hint = "record less in one file: `fathom monitor --record-size`";
                return Err(LoadError::new(0, "it has more requests than are kept in memory", hint));
            }
            kept.push(request?);
        }
        if kept.is_empty() {
            return Err(LoadError::empty("I/O"));
        }
        let mut load = requests.into_load();
        if let LoadCourse::Requests(trace) = &mut load.course {
            trace.requests = kept;
        }
        Ok(load)
    }
}

/// The requests of a load, in the order of their times. After an error there are no more.
#[derive(Debug)]
pub struct Requests<'a> {
    source: RequestSource<'a>,
}

#[derive(Debug)]
enum RequestSource<'a> {
    /// The load without its requests, and these.
    Kept(Box<ObservedLoad>, std::vec::IntoIter<ObservedRequest>),
    Recorded(Box<RecordedRequests<'a>>),
}

impl<'a> Requests<'a> {
    /// Those of a load in memory.
    ///
    /// # Errors
    /// It has intervals: the load itself.
    pub fn of(mut load: ObservedLoad) -> Result<Requests<'a>, Box<ObservedLoad>> {
        let LoadCourse::Requests(trace) = &mut load.course else { return Err(Box::new(load)) };
        let requests = std::mem::take(&mut trace.requests).into_iter();
        Ok(Requests { source: RequestSource::Kept(Box::new(load), requests) })
    }

    pub(crate) fn recorded(requests: RecordedRequests<'a>) -> Requests<'a> {
        Requests { source: RequestSource::Recorded(Box::new(requests)) }
    }

    /// The load without its requests. Device, clock, files and the point of observation are known from the beginning; length, gaps
    /// and notes of a recording after the last request.
    pub fn load(&self) -> &ObservedLoad {
        match &self.source {
            RequestSource::Kept(load, _) => load,
            RequestSource::Recorded(requests) => requests.load(),
        }
    }

    /// Adds the next requests to `into` until it has `most` of them, or the load has no more.
    ///
    /// # Errors
    /// They cannot be read. There are no more after that.
    #[inline]
    pub fn fill(&mut self, into: &mut Vec<ObservedRequest>, most: usize) -> Result<(), LoadError> {
        match &mut self.source {
            RequestSource::Kept(_, requests) => {
                into.extend(requests.take(most.saturating_sub(into.len())));
                Ok(())
            }
            RequestSource::Recorded(requests) => requests.fill(into, most),
        }
    }

    /// The load, and the number of the requests that are left, without a look at each: length and gaps are those that the blocks of
    /// a recording say, which are those of its requests unless another program wrote it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn survey(self) -> Result<(ObservedLoad, u64), LoadError> {
        match self.source {
            RequestSource::Kept(load, requests) => Ok((*load, requests.len() as u64)),
            RequestSource::Recorded(requests) => requests.survey(),
        }
    }

    /// As [`Requests::load`].
    pub fn into_load(self) -> ObservedLoad {
        match self.source {
            RequestSource::Kept(load, _) => *load,
            RequestSource::Recorded(requests) => requests.into_load(),
        }
    }
}

impl Iterator for Requests<'_> {
    type Item = Result<ObservedRequest, LoadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            RequestSource::Kept(_, requests) => requests.next().map(Ok),
            RequestSource::Recorded(requests) => requests.next(),
        }
    }
}
