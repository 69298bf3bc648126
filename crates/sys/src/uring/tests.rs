//! Tests beyond the engines' conformance suite: granted features, and fallbacks for older kernels.

use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;

use super::*;
use crate::SetupStep;

const BLOCK: usize = 4096;

/// A ring on `file`, or `None` where this machine forbids rings.
fn ring_on(file: File, options: RingOptions) -> Option<Ring> {
    match Ring::new(vec![Arc::new(file)], RingOptions { depth: 4, block: BLOCK, ..options }) {
        Ok(ring) => Some(ring),
        Err(error) if matches!(error.source.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn pipe() -> (File, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    (File::from(OwnedFd::from(reader)), writer)
}

#[test]
fn optional_features_are_used_or_omitted_as_requested() {
    let table = [
        (Wish::Always, Wish::Always, (true, true)),
        (Wish::Never, Wish::IfGranted, (false, true)),
        (Wish::Never, Wish::Never, (false, false)),
    ];
    for (fixed_buffers, fixed_files, expected) in table {
        let file = tempfile::tempfile().unwrap();
        let Some(ring) = ring_on(file, RingOptions { fixed_buffers, fixed_files, ..RingOptions::default() })
        else {
            return;
        };
        assert_eq!((ring.features().fixed_buffers, ring.features().fixed_files), expected);
        assert!(!ring.features().sq_thread && !ring.features().polled);
    }
}

#[test]
fn a_queue_depth_above_the_kernels_limit_is_refused() {
    let files = || vec![Arc::new(tempfile::tempfile().unwrap())];
    let options = |depth| RingOptions { depth, block: 512, ..RingOptions::default() };
    let error = Ring::new(files(), options(MAX_DEPTH + 1)).err().unwrap();
    assert_eq!(error.step, SetupStep::Depth);
    assert!(error.to_string().contains("32769"), "{error}");
    if let Some(ring) = ring_on(tempfile::tempfile().unwrap(), RingOptions::default()) {
        drop(ring);
        let refused = Ring::new(files(), options(MAX_DEPTH)).err().map(|error| error.source.kind());
        // RLIMIT_MEMLOCK may be too small for it; the depth itself is fine.
        assert!(matches!(refused, None | Some(ErrorKind::OutOfMemory)), "{refused:?}");
    }
}

#[test]
fn rings_without_newer_features_work() {
    for without in 0..3 {
        let (reader, mut writer) = pipe();
        let Some(mut ring) = ring_on(reader, RingOptions::default()) else { return };
        match without {
            0 => ring.features.timed_waits = false,
            1 => ring.unregister_ring(),
            _ => {}
        }
        ring.read(0, 0, 0, 100, 0);
        ring.read(1, 0, 0, 100, 0);
        assert_eq!((ring.submit().unwrap(), ring.in_kernel()), (2, 2));
        assert_eq!(ring.reap(1, 4, Some(2_000_000), |_, _| panic!("nothing was written")).unwrap(), 0);
        writer.write_all(b"ab").unwrap();
        let mut seen = Vec::new();
        assert_eq!(
            ring.reap(1, 4, Some(60_000_000_000), |slot, result| seen.push((slot, result))).unwrap(),
            1
        );
        // Which of the two reads is served first is the kernel's choice.
        assert_eq!(seen.iter().map(|&(_, result)| result).collect::<Vec<_>>(), [2]);
        assert_eq!(&ring.bytes(seen[0].0)[..2], b"ab");
        assert_eq!(ring.in_kernel(), 1);
    }
}

#[test]
fn dropping_a_ring_cancels_requests_in_flight() {
    let (reader, writer) = pipe();
    let Some(mut ring) = ring_on(reader, RingOptions::default()) else { return };
    for slot in 0..4 {
        ring.read(slot, 0, 0, 1, 0);
    }
    assert_eq!(ring.submit().unwrap(), 4);
    assert!(ring.drain(), "reads of an empty pipe can be cancelled");
    assert_eq!(ring.in_kernel(), 0);
    drop(ring);
    drop(writer);
}

#[test]
fn many_rings_on_one_thread_leave_nothing_behind() {
    // The kernel lets a thread register 16 rings: more prove that each registration is undone.
    for _ in 0..64 {
        let Some(ring) = ring_on(tempfile::tempfile().unwrap(), RingOptions::default()) else { return };
        let first = ring.features().registered_ring;
        drop(ring);
        let again = ring_on(tempfile::tempfile().unwrap(), RingOptions::default()).unwrap();
        assert_eq!(again.features().registered_ring, first);
    }
}
