//! The binary events of blktrace.

use fathom_workload::replay::{BlktraceError, Recording, is_blktrace, read_blktrace};

/// Most requests to keep.
const MOST: usize = 1 << 16;

/// Reads the events.
pub fn check(data: &[u8]) {
    let mut rest = data;
    match read_blktrace(&mut rest, MOST) {
        Ok(recording) => {
            assert!(rest.is_empty() && recording.requests.len() <= MOST);
            assert!(data.is_empty() || is_blktrace(data));
            check_recording(&recording);
        }
        Err(BlktraceError::Event { event, reason }) => {
            assert!(event >= 1 && event <= data.len() as u64 / 48 + 1 && !reason.is_empty());
        }
        Err(BlktraceError::TooMany) => assert!(data.len() >= MOST * 48),
        Err(BlktraceError::Io(error)) => panic!("memory can be read: {error}"),
    }
}

/// Checks that the requests can be issued: by their times, to files that exist, within what a file can have.
pub(crate) fn check_recording(recording: &Recording) {
    assert!(recording.requests.is_sorted_by_key(|recorded| recorded.at_ns));
    for recorded in &recording.requests {
        let request = recorded.request;
        assert!((request.file as usize) < recording.files.len(), "{request:?}");
        assert_eq!(request.len == 0, request.op.is_sync(), "{request:?}");
        assert!(request.offset + u64::from(request.len) <= i64::MAX as u64, "{request:?}");
    }
}
