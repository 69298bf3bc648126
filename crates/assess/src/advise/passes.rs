//! The requests of a load, in memory or passed over as often as needed, to whatever takes them: several at once, on threads of their
//! own.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use fathom_observed::{LoadCourse, LoadError, LoadGap, ObservedLoad, ObservedRequest};
use fathom_predict::load_profile::{LoadProfile, ProfileTally, brief_profile};
use fathom_predict::{
    ArrivalCounter, DemandTally, GapCloser, LoadArrivals, LoadDemand, Replay, RequestChunks,
};

use crate::AssessError;
use crate::observed_load::{RepeatableLoad, RepeatableRecording};

/// Chunks that wait for a thread at most.
const WAITING: usize = 8;
/// Replays of one pass over a recording: each may keep 32 MiB of outstanding requests.
pub(super) const MAX_TOGETHER: usize = 4;

/// Requests that may be replayed again and again.
pub(super) enum TraceRequests {
    /// In memory, without gaps.
    Kept(Vec<ObservedRequest>),
    /// Read anew for each pass.
    Recorded { recording: RepeatableRecording, gaps: Vec<LoadGap>, count: u64 },
}

/// What a load holds.
pub(super) struct ObservedTrace {
    /// The load without its requests.
    pub(super) load: ObservedLoad,
    pub(super) profile: LoadProfile,
    /// Its sums; `None` where it has none.
    pub(super) demand: Option<LoadDemand>,
    pub(super) arrivals: LoadArrivals,
    pub(super) requests: TraceRequests,
}

/// A thread's part of a pass.
type Taker<'a> = Box<dyn FnMut(&[ObservedRequest]) + Send + 'a>;

impl TraceRequests {
    pub(super) fn none() -> TraceRequests {
        TraceRequests::Kept(Vec::new())
    }

    pub(super) fn len(&self) -> usize {
        match self {
            TraceRequests::Kept(requests) => requests.len(),
            TraceRequests::Recorded { count, .. } => usize::try_from(*count).unwrap_or(usize::MAX),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True where each pass reads them anew.
    pub(super) fn are_read_anew(&self) -> bool {
        matches!(self, TraceRequests::Recorded { .. })
    }

    /// Replays all requests on each of `replays`.
    ///
    /// # Errors
    /// They can no longer be read.
    pub(super) fn replay(&self, replays: &mut [Replay]) -> Result<(), AssessError> {
        let (recording, gaps, count) = match self {
            TraceRequests::Kept(requests) => {
                replays.iter_mut().for_each(|replay| replay.take(requests));
                return Ok(());
            }
            TraceRequests::Recorded { recording, gaps, count } => (recording, gaps, *count),
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let of_thread = replays.len().div_ceil(threads).max(1);
        let takers = replays.chunks_mut(of_thread).map(taker).collect();
        let mut chunks = RequestChunks::new(recording.requests()?, gaps);
        let passed = pass_on(&mut chunks, takers).map_err(|error| recording.refused(error))?;
        if passed == count { Ok(()) } else { Err(recording.changed()) }
    }
}

/// The replays of a thread.
fn taker(replays: &mut [Replay]) -> Taker<'_> {
    Box::new(move |chunk| replays.iter_mut().for_each(|replay| replay.take(chunk)))
}

impl ObservedTrace {
    /// What `load` holds.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn of(load: RepeatableLoad) -> Result<ObservedTrace, AssessError> {
        match load {
            RepeatableLoad::Whole(load) => Ok(ObservedTrace::of_whole(load)),
            RepeatableLoad::Recording { recording, load } => ObservedTrace::of_recording(recording, load),
        }
    }

    /// What a load in memory holds.
    pub(super) fn of_whole(mut load: ObservedLoad) -> ObservedTrace {
        let profile = brief_profile(&load);
        close_gaps(&mut load);
        let demand = LoadDemand::of(&load, sequential_share(&profile));
        let mut arrivals = ArrivalCounter::default();
        let requests = match &mut load.course {
            LoadCourse::Requests(trace) => std::mem::take(&mut trace.requests),
            LoadCourse::Intervals(_) => Vec::new(),
        };
        arrivals.take_all(&requests);
        if arrivals.looks_again() {
            arrivals.take_all(&requests);
        }
        let (arrivals, requests) = (arrivals.arrivals(), TraceRequests::Kept(requests));
        ObservedTrace { load, profile, demand, arrivals, requests }
    }

    /// What a recording holds, of which `assumed` is known. Windows and gaps depend on its end: where that is another one than was
    /// assumed, it is read once more.
    fn of_recording(
        recording: RepeatableRecording,
        mut assumed: ObservedLoad,
    ) -> Result<ObservedTrace, AssessError> {
        loop {
            let mut profile = ProfileTally::brief(true);
            let mut demand = DemandTally::new(GapCloser::length_ns(assumed.length_ns, &assumed.gaps));
            let mut arrivals = ArrivalCounter::default();
            let takers: Vec<Taker<'_>> = vec![
                Box::new(|chunk| profile.take_all(chunk)),
                Box::new(|chunk| {
                    arrivals.take_all(chunk);
                    demand.take_all(chunk);
                }),
            ];
            let mut chunks = RequestChunks::new(recording.requests()?, &assumed.gaps);
            let count = pass_on(&mut chunks, takers).map_err(|error| recording.refused(error))?;
            let load = chunks.into_requests().into_load();
            if (load.length_ns, &load.gaps) != (assumed.length_ns, &assumed.gaps) {
                assumed = load;
                continue;
            }
            let profile = profile.profile(&load);
            let demand = demand.demand().completed(sequential_share(&profile), !load.gaps.is_empty());
            if arrivals.looks_again() {
                let mut chunks = RequestChunks::new(recording.requests()?, &load.gaps);
                let takers: Vec<Taker<'_>> = vec![Box::new(|chunk| arrivals.take_all(chunk))];
                pass_on(&mut chunks, takers).map_err(|error| recording.refused(error))?;
            }
            let arrivals = arrivals.arrivals();
            let requests = TraceRequests::Recorded { recording, gaps: load.gaps.clone(), count };
            return Ok(ObservedTrace { load, profile, demand, arrivals, requests });
        }
    }
}

/// The share of reads and writes that continue others, where offsets are known.
fn sequential_share(profile: &LoadProfile) -> Option<f64> {
    profile.order.as_ref().map(|order| order.sequential)
}

/// Leaves the stretches without data out of requests in memory. Intervals say themselves when they begin.
pub(super) fn close_gaps(load: &mut ObservedLoad) {
    let LoadCourse::Requests(trace) = &mut load.course else { return };
    let mut gaps = GapCloser::new(&load.gaps);
    for request in &mut trace.requests {
        request.at_ns = gaps.close(request.at_ns);
    }
    load.length_ns = GapCloser::length_ns(load.length_ns, &load.gaps);
}

/// Passes every request to each of `takers`, which work at the same time. Returns their number.
fn pass_on(chunks: &mut RequestChunks<'_>, takers: Vec<Taker<'_>>) -> Result<u64, LoadError> {
    thread::scope(|scope| {
        let mut senders = Vec::new();
        for mut taker in takers {
            let (sender, receiver) = sync_channel::<Arc<Vec<ObservedRequest>>>(WAITING);
            scope.spawn(move || receiver.iter().for_each(|chunk| taker(&chunk)));
            senders.push(sender);
        }
        let mut count = 0;
        loop {
            let chunk = chunks.next_chunk()?;
            if chunk.is_empty() {
                return Ok(count);
            }
            count += chunk.len() as u64;
            let chunk = Arc::new(chunk);
            for sender in &senders {
                // A thread that panics ends the scope with its panic.
                let _ = sender.send(Arc::clone(&chunk));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::num::NonZeroU64;

    use fathom_model::Op;
    use fathom_observed::RequestPoint;
    use fathom_observed::recording::{RecordingDetail, RecordingEnd, RecordingHeader, RequestBlock};
    use fathom_predict::{Prediction, ReplayPace, ReplaySettings};
    use fathom_volume::{Limit, LimitStage, TokenRate, VolumeLatency, VolumeModel};

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const REQUESTS: u64 = 9_000;

    /// One of two files of a recording: requests from a second on, and what its blocks and its end say of its length.
    fn file(number: u32, from_ns: u64, says_ns: impl Fn(u64) -> u64) -> Vec<u8> {
        let header = RecordingHeader {
            detail: RecordingDetail::Requests,
            point: RequestPoint::Driver,
            device: "sdx".to_owned(),
            size_bytes: 1 << 34,
            sector_bytes: 512,
            host: "h".to_owned(),
            started_unix_ns: SECOND_NS,
            file: number,
            from_ns,
            tool_version: "0".to_owned(),
            notes: Vec::new(),
        };
        let mut bytes = header.block();
        let mut block = RequestBlock::default();
        let mut at_ns = from_ns;
        for index in 0..REQUESTS / 2 {
            at_ns += index * 7919 % 1_999_983;
            block.push(&ObservedRequest {
                at_ns,
                offset: index * index % 99_991 * 4096,
                latency_ns: NonZeroU64::new(200_000 + index * 104_729 % 900_000),
                bytes: 4096,
                file: 0,
                thread: 0,
                op: [Op::Read, Op::Read, Op::Write, Op::Sync][index as usize % 4],
            });
            if block.len() == 999 {
                bytes.extend(block.take(says_ns(at_ns), 0, 0));
            }
        }
        bytes.extend(block.take(says_ns(at_ns), 0, 0));
        bytes.extend(RecordingEnd { end_ns: says_ns(at_ns), ..RecordingEnd::default() }.block());
        bytes
    }

    fn observed(bytes: &[u8], most: usize) -> ObservedTrace {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let load = RepeatableLoad::open(file.path(), Some("sdx"), most).unwrap();
        assert_eq!(matches!(load, RepeatableLoad::Recording { .. }), most < REQUESTS as usize);
        // The descriptor is enough.
        file.close().unwrap();
        ObservedTrace::of(load).unwrap()
    }

    fn predictions(trace: &ObservedTrace) -> Vec<Prediction> {
        let model = |iops: u64| VolumeModel {
            shared: vec![LimitStage {
                ios: TokenRate::per_second(iops).map(Limit::Rate),
                ..LimitStage::default()
            }],
            read_latency: VolumeLatency::around(700_000),
            ..VolumeModel::unlimited(1 << 30)
        };
        let length_ns = trace.demand.as_ref().unwrap().length_ns;
        let settings = |pace| ReplaySettings { seed: 5, pace, growth_milli: 1_300, length_ns, limits: &[] };
        let each = [400, 1_000, 90_000].into_iter().flat_map(|iops| {
            [ReplayPace::Open, ReplayPace::Closed]
                .map(|pace| Replay::new(&model(iops), &settings(pace)).unwrap())
        });
        let mut replays: Vec<Replay> = each.collect();
        trace.requests.replay(&mut replays).unwrap();
        replays.into_iter().map(Replay::prediction).collect()
    }

    fn check_same(bytes: &[u8]) {
        let (kept, passed) = (observed(bytes, 1 << 20), observed(bytes, 1_000));
        assert!(!kept.requests.are_read_anew() && passed.requests.are_read_anew());
        assert_eq!(kept.requests.len(), passed.requests.len());
        assert_eq!((kept.profile.clone(), kept.arrivals), (passed.profile.clone(), passed.arrivals));
        assert_eq!(kept.demand, passed.demand);
        assert_eq!(kept.load.notes, passed.load.notes);
        assert_eq!(predictions(&kept), predictions(&passed));
    }

    #[test]
    fn passes_give_what_requests_in_memory_give() {
        let files =
            |says_ns: fn(u64) -> u64| [file(1, 0, says_ns), file(2, 20 * SECOND_NS, says_ns)].concat();
        check_same(&files(|at_ns| at_ns + 1_000));
        // Blocks that say less than their requests, so that the end and the gaps are others than assumed.
        check_same(&files(|at_ns| at_ns / 2));
    }

    #[test]
    fn a_file_that_changes_is_no_longer_read() {
        let bytes = file(1, 0, |at_ns| at_ns);
        let mut named = tempfile::NamedTempFile::new().unwrap();
        named.write_all(&bytes).unwrap();
        let load = RepeatableLoad::open(named.path(), None, 1_000).unwrap();
        let trace = ObservedTrace::of(load).unwrap();
        named.as_file().set_len(bytes.len() as u64 / 2).unwrap();
        let settings = ReplaySettings {
            seed: 0,
            pace: ReplayPace::Open,
            growth_milli: 1_000,
            length_ns: SECOND_NS,
            limits: &[],
        };
        let mut replays = vec![Replay::new(&VolumeModel::unlimited(1 << 30), &settings).unwrap()];
        let error = trace.requests.replay(&mut replays).unwrap_err();
        assert!(error.to_string().ends_with("it changed while it was read"), "{error}");
    }
}
