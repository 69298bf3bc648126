//! fio's iolog: what is read can be written and read again.

use fathom_report::fio::iolog::IologText;
use fathom_workload::replay::{Iolog, IologVersion, Recording};

use crate::blktrace::check_recording;

/// Reads the log line by line, and again as it is written.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(recording) = read(text) else { return };
    check_recording(&recording);
    let mut written = Vec::new();
    let mut log = IologText::new(recording.files.iter().cloned(), &mut written);
    log.issued(&recording.requests, &mut written);
    let last = recording.requests.last().map_or(0, |last| last.at_ns);
    log.end(last, &mut written);
    let written = String::from_utf8(written).expect("names are text");
    let again = read(&written).expect("what is written can be read");
    assert_eq!(again, recording, "{written}");
}

fn read(text: &str) -> Result<Recording, String> {
    let mut lines = text.lines();
    let version = lines.next().and_then(IologVersion::of).ok_or("it is no iolog")?;
    let mut log = Iolog::new(version);
    for line in lines {
        if let Err(reason) = log.line(line) {
            assert!(!reason.is_empty() && !reason.contains('\n'), "{reason:?}");
            return Err(reason);
        }
    }
    Ok(log.finish())
}
