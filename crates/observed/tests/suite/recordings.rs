//! Recordings of fathom: what is written is read again, as far as it was written, and what makes no sense is refused.

use std::num::NonZeroU64;

use fathom_model::Op;
use fathom_observed::recording::{
    RecordingDetail, RecordingEnd, RecordingHeader, RequestBlock, interval_block, read_recording,
};
use fathom_observed::{
    GapReason, LoadCourse, LoadError, LoadFormat, LoadSource, ObservedInterval, ObservedLoad,
    ObservedRequest, RequestPoint, ServedIo, SourceKind, source_kind,
};

const SECOND: u64 = 1_000_000_000;
const STARTED: u64 = 1_700_000_000 * SECOND;

fn header() -> RecordingHeader {
    RecordingHeader {
        detail: RecordingDetail::Requests,
        point: RequestPoint::Driver,
        device: "sda".to_owned(),
        size_bytes: 1 << 40,
        sector_bytes: 4096,
        host: "host".to_owned(),
        started_unix_ns: STARTED,
        file: 1,
        from_ns: 0,
        tool_version: "1.2.3".to_owned(),
        notes: vec!["a note".to_owned()],
    }
}

fn request(at_ns: u64) -> ObservedRequest {
    let latency_ns = NonZeroU64::new(1_000);
    ObservedRequest {
        at_ns,
        offset: at_ns % 1_000 * 4096,
        latency_ns,
        bytes: 4096,
        file: 0,
        thread: 0,
        op: Op::Read,
    }
}

fn block(times: &[u64], until_ns: u64) -> Vec<u8> {
    let mut block = RequestBlock::default();
    times.iter().for_each(|at_ns| block.push(&request(*at_ns)));
    block.take(until_ns, 0, 0)
}

fn end(end_ns: u64) -> Vec<u8> {
    RecordingEnd { end_ns, continues: false, in_flight: 0 }.block()
}

fn load(bytes: &[u8]) -> Result<ObservedLoad, LoadError> {
    read_recording(bytes, None)?.into_load(1_000)
}

fn times(load: &ObservedLoad) -> Vec<u64> {
    let LoadCourse::Requests(trace) = &load.course else { panic!("these are requests") };
    trace.requests.iter().map(|request| request.at_ns).collect()
}

#[test]
fn requests_come_back_with_the_facts_of_the_recording() {
    let bytes = [header().block(), block(&[5, 5, 900], 1_000), block(&[2_000], 3_000), end(9_000)].concat();
    assert_eq!(source_kind(&bytes), SourceKind::Recording);
    let load = load(&bytes).unwrap();
    assert_eq!(times(&load), [5, 5, 900, 2_000]);
    assert_eq!((load.format, load.device.as_str(), load.length_ns), (LoadFormat::Recording, "sda", 9_000));
    assert_eq!((load.started_unix_ns, load.notes), (Some(STARTED), vec!["a note".to_owned()]));
    let LoadCourse::Requests(trace) = &load.course else { panic!("these are requests") };
    assert_eq!((trace.point, trace.has_times, trace.requests[0]), (RequestPoint::Driver, true, request(5)));
    assert!(read_recording(&bytes[..], Some("sda")).is_ok());
    let error = read_recording(&bytes[..], Some("sdb")).unwrap_err();
    assert_eq!(error.problem, "it has no device 'sdb'");
}

#[test]
fn requests_are_counted_and_taken_in_parts() {
    let bytes = [header().block(), block(&[5, 5, 900], 1_000), block(&[2_000], 3_000), end(9_000)].concat();
    let requests = || match read_recording(&bytes[..], None).unwrap() {
        LoadSource::Stream(requests) => requests,
        LoadSource::Whole(_) => panic!("these are requests"),
    };
    let mut whole = requests();
    let mut parts = Vec::new();
    for expected in [2, 2, 0] {
        let mut part = Vec::new();
        whole.fill(&mut part, 2).unwrap();
        assert_eq!(part.len(), expected);
        parts.extend(part);
    }
    assert_eq!(parts, [5, 5, 900, 2_000].map(request));
    assert_eq!(requests().survey().unwrap(), (whole.into_load(), 4));
    let mut begun = requests();
    begun.fill(&mut Vec::new(), 1).unwrap();
    assert_eq!(begun.survey().unwrap().1, 3);
}

#[test]
fn killed_recorders_leave_what_they_wrote() {
    let blocks = [header().block(), block(&[5, 6], 10), block(&[20, 21], 30), end(40)];
    let whole = blocks.concat();
    let firsts = [0, blocks[0].len(), blocks[0].len() + blocks[1].len(), whole.len() - blocks[3].len()];
    for length in blocks[0].len()..whole.len() {
        let expected: &[u64] = match length {
            _ if length >= firsts[3] => &[5, 6, 20, 21],
            _ if length >= firsts[2] => &[5, 6],
            _ => &[],
        };
        match load(&whole[..length]) {
            Ok(load) => {
                assert_eq!(times(&load), expected, "{length}");
                assert!(load.notes.iter().any(|note| note.contains("killed")), "{length}: {:?}", load.notes);
            }
            Err(error) => assert_eq!((expected.len(), error.problem.as_str()), (0, "it contains no I/O")),
        }
    }
    for length in 0..blocks[0].len() {
        assert!(load(&whole[..length]).unwrap_err().problem.starts_with("block 1: "), "{length}");
    }
}

#[test]
fn damaged_blocks_end_what_is_read_and_are_named() {
    let blocks = [header().block(), block(&[5, 6], 10), block(&[20, 21], 30), end(40)];
    let mut bytes = blocks.concat();
    let place = blocks[0].len() + blocks[1].len() + 25;
    bytes[place] ^= 1;
    let load = load(&bytes).unwrap();
    assert_eq!((times(&load), load.length_ns), (vec![5, 6], 10));
    let note = "block 3 is damaged (its checksum does not match): the blocks after it are not read";
    assert!(load.notes.contains(&note.to_owned()), "{:?}", load.notes);
}

#[test]
fn lost_events_and_missing_latencies_are_notes() {
    let mut damaged = RequestBlock::default();
    damaged.push(&request(7));
    let last = RecordingEnd { end_ns: 50, continues: true, in_flight: 3 }.block();
    let load = load(&[header().block(), damaged.take(10, 1_234, 5), last].concat()).unwrap();
    let has = |text: &str| load.notes.iter().any(|note| note.contains(text));
    for text in
        ["lost 1,234 events", "5 I/Os have no latency", "3 I/Os were in flight", "join them with `cat`"]
    {
        assert!(has(text), "{text}: {:?}", load.notes);
    }
}

#[test]
fn files_and_recordings_are_joined_in_their_order() {
    let ended = |end_ns| RecordingEnd { end_ns, continues: true, in_flight: 0 }.block();
    let first = [header().block(), block(&[5], 10), ended(SECOND)].concat();
    let second = RecordingHeader { file: 2, from_ns: SECOND, ..header() };
    let second = [second.block(), block(&[SECOND, SECOND + 1], SECOND + 5), end(2 * SECOND)].concat();
    let later = RecordingHeader { started_unix_ns: STARTED + 10 * SECOND, ..header() };
    let later = [later.block(), block(&[7], 10), end(20)].concat();
    let all = load(&[&first[..], &second, &later].concat()).unwrap();
    assert_eq!(times(&all), [5, SECOND, SECOND + 1, 10 * SECOND + 7]);
    assert_eq!((all.length_ns, all.gaps.len()), (10 * SECOND + 20, 1));
    let gap = all.gaps[0];
    assert_eq!((gap.start_ns, gap.length_ns, gap.reason), (2 * SECOND, 8 * SECOND, GapReason::Missing));
    // A later file by itself begins where it begins.
    let alone = load(&second).unwrap();
    assert_eq!((times(&alone), alone.started_unix_ns), (vec![0, 1], Some(STARTED + SECOND)));
    for (bytes, expected) in [
        ([&second[..], &first].concat(), "the files of the recording are not in their order"),
        ([&later[..], &first].concat(), "the files of the recording are not in their order"),
        (
            [first.clone(), RecordingHeader { device: "sdb".to_owned(), ..header() }.block()].concat(),
            "the devices of the recordings, sda and sdb, differ",
        ),
        ([first.clone(), block(&[1], 1)].concat(), "block 4: it is not where such a block belongs"),
        ([header().block(), block(&[9], 9), block(&[8], 9)].concat(), "block 3: a request in it is earlier"),
        ([header().block(), block(&[u64::MAX - 4096], 1)].concat(), "block 2: a time is more than 10 years"),
    ] {
        let problem = load(&bytes).unwrap_err().problem;
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn counters_of_seconds_are_intervals() {
    let header = RecordingHeader { detail: RecordingDetail::Sums, ..header() };
    let interval = |second: u64| {
        let mut interval = ObservedInterval {
            start_ns: second * SECOND,
            length_ns: SECOND,
            queue_depth_milli: Some(500),
            ..ObservedInterval::default()
        };
        interval.by_op.write = ServedIo { ops: Some(second), bytes: Some(512), latency_sum_ns: Some(9) };
        interval.by_op.read = ServedIo { ops: Some(1), bytes: Some(0), latency_sum_ns: Some(0) };
        interval
    };
    let blocks: Vec<u8> = [0, 1, 5].iter().flat_map(|second| interval_block(&interval(*second))).collect();
    let bytes = [header.block(), blocks, end(9 * SECOND)].concat();
    let source = read_recording(&bytes[..], None).unwrap();
    let LoadSource::Whole(load) = source else { panic!("intervals are read as a whole") };
    let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
    let ops: Vec<_> = intervals.iter().map(|one| (one.start_ns / SECOND, one.total.ops)).collect();
    assert_eq!(ops, [(0, Some(1)), (1, Some(2)), (5, Some(6))]);
    assert_eq!((load.length_ns, load.gaps.len(), load.gaps[0].length_ns), (6 * SECOND, 1, 3 * SECOND));
}
