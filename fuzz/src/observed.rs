//! Recordings of loads in every format, and what `trace info` shows of them.

use std::io;

use fathom_assess::{AssessError, observed_load_of};
use fathom_observed::{LoadCourse, LoadFormat, LoadSource, ObservedLoad};
use fathom_predict::load_profile::{load_profile, profile_of_requests};
use fathom_report::formats::Format;
use fathom_report::trace_info::{TraceInfo, json, view};
use fathom_report::{JsonWriter, Style, TextWriter};

use crate::messages;

/// Requests of an input at most: a request takes at least two bytes.
const MAX_REQUESTS: usize = 1 << 24;

/// Reads the recording, of several devices the first one, and shows it in every format.
pub fn check(data: &[u8]) {
    match observed_load_of("fuzz", data, None) {
        Ok(source) => {
            if let Some(load) = whole(source) {
                check_load(&load);
                check_stream(data, &load);
            }
        }
        Err(error) => {
            messages::check(&error, error.hint.as_deref());
            if let Some(device) = first_device(&error)
                && let Ok(LoadSource::Whole(load)) = observed_load_of("fuzz", data, Some(&device))
            {
                check_load(&load);
            }
        }
    }
}

/// The load in memory; `None` where its requests cannot be read to the end.
fn whole(source: LoadSource<'_>) -> Option<ObservedLoad> {
    match source.into_load(MAX_REQUESTS) {
        Ok(load) => Some(load),
        Err(error) => {
            messages::check(&error, Some(&error.hint));
            None
        }
    }
}

/// Requests have the same profile read one at a time.
fn check_stream(data: &[u8], load: &ObservedLoad) {
    let Ok(LoadSource::Stream(requests)) = observed_load_of("fuzz", data, None) else { return };
    let (streamed, profile) = profile_of_requests(requests).expect("it was read before");
    assert_eq!(profile, load_profile(load));
    assert_eq!(
        (streamed.length_ns, streamed.gaps, streamed.notes),
        (load.length_ns, load.gaps.clone(), load.notes.clone())
    );
}

/// The first of the devices that an error lists.
fn first_device(error: &AssessError) -> Option<String> {
    let (_, listed) = error.message.split_once(": it has several devices: ")?;
    listed.split(", ").next().map(str::to_owned)
}

fn check_load(load: &ObservedLoad) {
    let mut reached = 0;
    match &load.course {
        LoadCourse::Requests(trace) => {
            assert!(trace.requests.is_sorted_by_key(|request| request.at_ns));
            let first_ns = trace.requests.first().map(|request| request.at_ns);
            assert!(first_ns == Some(0) || load.format == LoadFormat::Recording, "{first_ns:?}");
            assert!(trace.requests.iter().all(|request| usize::from(request.file) < trace.files.len()));
        }
        LoadCourse::Intervals(intervals) => {
            for interval in intervals {
                assert!(interval.start_ns >= reached && interval.length_ns > 0, "{interval:?}");
                reached = interval.end_ns();
            }
            assert_eq!(reached, load.length_ns);
        }
    }
    for gap in &load.gaps {
        assert!(gap.length_ns > 0 && gap.start_ns + gap.length_ns <= load.length_ns, "{gap:?}");
    }
    let profile = load_profile(load);
    let info = TraceInfo { file: "fuzz", load, profile: &profile };
    for format in Format::ALL {
        let style = Style::default();
        let document = |out: &mut JsonWriter<'_>| json::render(info, out);
        format
            .write(&style, &mut TextWriter::new(&mut io::sink()), || view(info), document)
            .expect("a sink takes everything");
    }
}
