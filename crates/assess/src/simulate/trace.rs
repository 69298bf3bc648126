//! Traces of requests for a simulated volume: fio's iolog, versions 2 and 3, blktrace events and the text of blkparse.

use std::io::Read;
use std::path::Path;

use fathom_model::Nanos;
use fathom_observed::{LoadCourse, ObservedLoad, ObservedRequest};
use fathom_sys::files::{Input, TRACE};

use crate::AssessError;
use crate::observed_load::{no_trace, requests_of};

/// Requests in the order in which they were made.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Where it comes from.
    pub name: String,
    /// What it is: `fio iolog version 3`, ...
    pub format: &'static str,
    /// The requests; the files of a log share the offsets of the volume.
    pub(super) events: Vec<ObservedRequest>,
    /// Each request has its time and is made then, whether those before have completed or not.
    pub(super) has_times: bool,
    /// What the trace lasts by itself, ns.
    pub(super) length_ns: u64,
    pub(super) notes: Vec<String>,
}

impl Trace {
    /// Reads the trace at `path`; `device` chooses one of several.
    ///
    /// # Errors
    /// It cannot be read, is not a trace, has a malformed line, no requests, or more of them than are kept.
    pub fn read(path: &Path, device: Option<&str>) -> Result<Trace, AssessError> {
        let (name, file) = TRACE.reader(path)?;
        Trace::read_from(&TRACE, &name, file, device)
    }

    /// Reads the trace that `reader` gives, within the limits of `input`; errors call it `name`.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn read_from(
        input: &'static Input,
        name: &str,
        reader: impl Read + Send,
        device: Option<&str>,
    ) -> Result<Trace, AssessError> {
        let ObservedLoad { format, length_ns, course, mut notes, .. } =
            requests_of(input, name, reader, device)?;
        let LoadCourse::Requests(trace) = course else { return Err(no_trace(name, "it has no requests")) };
        if trace.files.len() > 1 {
            let count = trace.files.len();
            notes.insert(0, format!("the {count} files of the trace share the offsets of the volume"));
        }
        Ok(Trace {
            name: name.to_owned(),
            format: format.title(),
            events: trace.requests,
            has_times: trace.has_times,
            length_ns,
            notes,
        })
    }

    /// Requests in it.
    pub fn requests(&self) -> usize {
        self.events.len()
    }

    /// What it lasts by itself: from its first request to its last, as far as it says.
    pub fn length(&self) -> Nanos {
        Nanos(self.length_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Trace, String> {
        Trace::read_from(&TRACE, "t", text.as_bytes(), None).map_err(|error| error.to_string())
    }

    #[test]
    fn notes_say_what_a_log_lacks() {
        let two =
            "fio version 2 iolog\n/a add\n/b add\n/a open\n/a read 0 512\n/a wait 250 0\n/b write 512 512\n";
        let (two, three) = (read(two).unwrap(), read("fio version 3 iolog\n1 /t read 0 1\n").unwrap());
        assert!(!two.has_times && two.notes.len() == 2 && three.has_times && three.notes.is_empty());
        assert_eq!((two.requests(), two.length(), two.format), (2, Nanos(250_000), "fio iolog version 2"));
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        for (text, expected) in [
            ("", "t:1: it is empty"),
            ("fio version 1 iolog\n", "t:1: it is neither"),
            ("{\"sysstat\": 1}\n", "t:1: it is neither"),
            ("fio version 3 iolog\n", "t: it contains no I/O"),
            ("fio version 3 iolog\n1 /t raed 0 1\n", "t:2: unknown action 'raed'"),
            ("8,0 1 1 0.5 1 D R 0 + 8\n8,16 1 1 0.5 1 D R 0 + 8\n", "t: it has several devices: 8:0, 8:16"),
            (
                "8,0 1 1 0.5 1 D R 0 + 8\n8,0 1 1 18446744073.5 1 D R 0 + 8\n",
                "t:2: its time, 18446744073 s, is more than 10 years after the first I/O",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}, not {expected}");
        }
    }

    #[test]
    fn lines_and_requests_have_a_limit() {
        static FEW: Input = Input { most_entries: 2, most_line_bytes: 100, ..TRACE };
        let read = |text: &str| {
            let trace = Trace::read_from(&FEW, "t", text.as_bytes(), None);
            trace.map(|trace| trace.requests()).map_err(|error| error.to_string())
        };
        let requests = |count: usize| format!("fio version 3 iolog\n{}", "1 /t read 0 512\n".repeat(count));
        assert_eq!(read(&requests(2)), Ok(2));
        assert_eq!(
            read(&requests(3)),
            Err("cannot read the trace t: it has more than 2 requests".to_owned())
        );
        let long = "cannot read the trace t: line 2 is longer than 100 bytes".to_owned();
        assert_eq!(read(&format!("fio version 3 iolog\n{}", "x".repeat(101))), Err(long));
    }
}
