//! The load that an application put on a device, as other programs recorded it: traces of requests, counters of operating systems
//! and metrics of cloud providers.
//!
//! Opens nothing: traces are passed line by line or as a reader, exports as whole texts. Units are those of the format and never
//! guessed; a period without data stays a gap, and what a reader has to know of a source is a note of the load.

#![forbid(unsafe_code)]

mod azure;
mod blkparse;
mod block_events;
mod clock_text;
mod cloudwatch;
mod cloudwatch_csv;
mod cloudwatch_metric;
mod detect;
mod error;
mod gcp;
mod interval_table;
mod json;
mod json_place;
mod load;
mod prometheus;
pub mod recording;
mod requests;
mod sar_text;
mod sysstat_json;
mod trace_lines;

pub use detect::{LoadFormat, SourceKind, source_kind};
pub use error::LoadError;
pub use load::{
    GapReason, LoadClock, LoadCourse, LoadGap, ObservedInterval, ObservedLoad, ObservedRequest, RequestPoint,
    RequestTrace, ServedIo, ThreadNumbers,
};
pub use requests::{LoadSource, Requests};
pub use trace_lines::TraceLines;

use std::io::Read;

use fathom_workload::replay::{BlktraceError, BlktraceEvents, BlockAction};

use block_events::BlockEvents;

/// Most devices and files of one recording.
const MAX_DEVICES: usize = 4_096;

/// Reads the binary events of blktrace, of which at most `most` are kept. `device` chooses one of several.
///
/// # Errors
/// It cannot be read, an event has no meaning, there are too many of them, or several devices and none is chosen.
pub fn read_blktrace(
    input: &mut dyn Read,
    device: Option<&str>,
    most: usize,
) -> Result<ObservedLoad, LoadError> {
    let mut events = BlockEvents::default();
    let mut source = BlktraceEvents::new(input);
    let wanted = [BlockAction::Queue, BlockAction::Issue, BlockAction::Complete];
    while let Some(event) = source.next_of(&wanted).map_err(broken_events)? {
        if events.len() == most {
            return Err(broken_events(BlktraceError::TooMany));
        }
        events.push(event)?;
    }
    events.finish(LoadFormat::Blktrace, device)
}

fn broken_events(error: BlktraceError) -> LoadError {
    match error {
        BlktraceError::Io(error) => {
            LoadError::new(0, format!("it cannot be read: {error}"), "check the file and its permissions")
        }
        BlktraceError::Event { event, reason } => LoadError::new(
            0,
            format!("event {event}: {reason}"),
            "merge the files of blktrace with `blkparse -i NAME -d FILE`, and name that one",
        ),
        BlktraceError::TooMany => {
            LoadError::new(0, "it has more events than are kept in memory", "split it into several by time")
        }
    }
}

/// Reads an export as a whole: JSON, CSV or the text of sar. `device` chooses one of several.
///
/// # Errors
/// The text has no known format, a value has no meaning, it holds no interval, or several devices and none is chosen.
pub fn read_text(text: &str, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
    let text = detect::without_mark(text);
    let format = detect::format_of(text).ok_or_else(|| LoadError::unknown(text))?;
    match format {
        LoadFormat::IostatJson | LoadFormat::SadfJson => sysstat_json::read(format, text, device),
        LoadFormat::SarText => sar_text::read(text, device),
        LoadFormat::PrometheusRange => prometheus::read(text, device),
        LoadFormat::CloudwatchStatistics | LoadFormat::CloudwatchData => {
            cloudwatch::read(format, text, device)
        }
        LoadFormat::CloudwatchCsv => cloudwatch_csv::read(text, device),
        LoadFormat::AzureMonitor => azure::read(text, device),
        LoadFormat::GcpMonitoring => gcp::read(text, device),
        LoadFormat::IologTwo | LoadFormat::IologThree | LoadFormat::Blkparse => read_trace_text(text, device),
        LoadFormat::Blktrace | LoadFormat::Recording => Err(LoadError::unknown(text)),
    }
}

/// Reads a trace that is a text as a whole.
fn read_trace_text(text: &str, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
    let mut lines = text.lines();
    let mut trace = TraceLines::new(lines.next().unwrap_or_default())?;
    lines.try_for_each(|line| trace.line(line))?;
    trace.finish(device)
}
