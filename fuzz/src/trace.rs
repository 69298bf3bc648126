//! A trace of requests, fio's or blkparse's.

use std::collections::BTreeMap;
use std::io;

use fathom_assess::VolumeTypes;
use fathom_assess::simulate::{SimulateSettings, SimulatedLoad, Trace, simulate};
use fathom_model::Nanos;
use fathom_report::formats::Format;
use fathom_report::simulate::{json as simulate_json, view};
use fathom_report::{JsonWriter, Style, TextWriter};
use fathom_runner::StopHandle;
use fathom_sys::files::TRACE;

use crate::messages;

/// A volume with credit, so that there is something to follow.
const VOLUME: &str = "custom?iops=100&burst_iops=3000&bucket_ios=5000&bandwidth=100MiB&latency=1ms&size=1GiB";
/// Reads the trace and puts it to a volume, once and two and a half times.
pub fn check(data: &[u8]) {
    let trace = match Trace::read_from(&TRACE, "fuzz", data, None) {
        Ok(trace) => trace,
        Err(error) => return messages::check(&error, error.hint.as_deref()),
    };
    // So that it is repeated.
    let longer = Nanos(trace.length().0 * 5 / 2);
    for length in [None, Some(longer)] {
        let settings = SimulateSettings {
            types: VolumeTypes::default(),
            volumes: vec![VOLUME.to_owned()],
            load: SimulatedLoad::Trace(trace.clone()),
            load_text: "a trace".to_owned(),
            length,
            labels: BTreeMap::new(),
            command: Vec::new(),
        };
        match simulate(&settings, &StopHandle::default(), &mut ()) {
            Ok(record) => {
                for format in Format::ALL {
                    let style = Style::default();
                    let document = |out: &mut JsonWriter<'_>| simulate_json::render(&record, &style, out);
                    format
                        .write(&style, &mut TextWriter::new(&mut io::sink()), || view(&record), document)
                        .expect("a sink takes everything");
                }
            }
            Err(error) => messages::check(&error, error.hint.as_deref()),
        }
    }
}
