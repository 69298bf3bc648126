//! Reads observed loads from the files that users name.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use fathom_observed::recording::read_recording;
use fathom_observed::{
    LoadError, LoadSource, ObservedLoad, Requests, SourceKind, TraceLines, read_blktrace, read_text,
    source_kind,
};
use fathom_sys::files::{Input, InputCause, InputError, LOAD_EXPORT, Lines, TRACE};

use crate::AssessError;
use crate::repeatable::RepeatableSource;

/// Why a source of another kind is refused where requests are asked for.
const NO_TRACE: &str = "it is neither an fio iolog nor blkparse text nor a recording of requests by blktrace or `fathom monitor --record`";
/// Bytes of a source that are looked at before it is read.
const HEAD: usize = 64 << 10;

/// Opens the load in the file at `path`, of whatever format; `device` chooses one of several. The requests of fathom's recordings
/// are read one at a time, other loads at once.
///
/// # Errors
/// The file cannot be read, has no known format or an error in it, or several devices and none is chosen.
pub fn open_observed_load(path: &Path, device: Option<&str>) -> Result<LoadSource<'static>, AssessError> {
    let OpenedLoad { name, reader, .. } = OpenedLoad::at(path)?;
    observed_load_of(&name, reader, device)
}

/// A source of which the beginning was looked at.
struct OpenedLoad {
    name: String,
    kind: SourceKind,
    reader: BufReader<File>,
    /// Where a file, which is no pipe, is read from, and its length.
    part: Option<(u64, u64)>,
}

impl OpenedLoad {
    fn at(path: &Path) -> Result<OpenedLoad, AssessError> {
        let (name, mut file) = TRACE.reader(path)?;
        let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file);
        let part = metadata.and_then(|metadata| Some((file.stream_position().ok()?, metadata.len())));
        let mut reader = BufReader::with_capacity(HEAD, file);
        let kind = source_kind(head(&name, &mut reader)?);
        let length = part.map_or(0, |(_, length)| length);
        if kind == SourceKind::Text && length > LOAD_EXPORT.most_bytes {
            let cause = InputCause::TooLarge(LOAD_EXPORT.most_bytes);
            return Err(InputError { noun: LOAD_EXPORT.noun, name, cause }.into());
        }
        Ok(OpenedLoad { name, kind, reader, part })
    }
}

/// A recording of requests that is read more than once.
#[derive(Clone, Debug)]
pub(crate) struct RepeatableRecording {
    /// What errors call it.
    name: String,
    device: Option<String>,
    source: RepeatableSource,
}

/// A load that may be read more than once.
#[derive(Debug)]
pub(crate) enum RepeatableLoad {
    /// In memory.
    Whole(ObservedLoad),
    /// Too long for that.
    Recording {
        /// The recording.
        recording: RepeatableRecording,
        /// The load without its requests, as far as it is known without a look at them.
        load: ObservedLoad,
    },
}

impl RepeatableLoad {
    /// The load in the file at `path`, in memory unless it is a recording of more than `most` requests.
    ///
    /// # Errors
    /// As [`open_observed_load`]; it has more requests of another source than are kept in memory.
    pub(crate) fn open(
        path: &Path,
        device: Option<&str>,
        most: usize,
    ) -> Result<RepeatableLoad, AssessError> {
        let OpenedLoad { name, kind, mut reader, part } = OpenedLoad::at(path)?;
        if kind != SourceKind::Recording {
            let load = observed_load_of(&name, reader, device)?.into_load(TRACE.most_entries);
            return load.map(RepeatableLoad::Whole).map_err(|error| refused_load(&name, error));
        }
        let source = match part {
            Some((start, end)) => RepeatableSource::File { file: Arc::new(reader.into_inner()), start, end },
            None => RepeatableSource::of_pipe(&name, &mut reader)?,
        };
        let recording = RepeatableRecording { name, device: device.map(str::to_owned), source };
        let requests = match recording.open()? {
            LoadSource::Stream(requests) => requests,
            LoadSource::Whole(load) => return Ok(RepeatableLoad::Whole(load)),
        };
        let (load, count) = requests.survey().map_err(|error| recording.refused(error))?;
        if count > most as u64 {
            return Ok(RepeatableLoad::Recording { recording, load });
        }
        let load = recording.open()?.into_load(most);
        load.map(RepeatableLoad::Whole).map_err(|error| recording.refused(error))
    }

    /// From its beginning to its end, ns.
    pub(crate) fn length_ns(&self) -> u64 {
        match self {
            RepeatableLoad::Whole(load) | RepeatableLoad::Recording { load, .. } => load.length_ns,
        }
    }
}

impl RepeatableRecording {
    fn open(&self) -> Result<LoadSource<'static>, AssessError> {
        let reader = BufReader::with_capacity(HEAD, self.source.reader());
        read_recording(reader, self.device.as_deref()).map_err(|error| self.refused(error))
    }

    /// Its requests, from the first.
    ///
    /// # Errors
    /// It is not what it was before.
    pub(crate) fn requests(&self) -> Result<Requests<'static>, AssessError> {
        match self.open()? {
            LoadSource::Stream(requests) => Ok(requests),
            LoadSource::Whole(_) => Err(self.changed()),
        }
    }

    /// An error in it.
    pub(crate) fn refused(&self, error: LoadError) -> AssessError {
        refused_load(&self.name, error)
    }

    /// It is not what it was before.
    pub(crate) fn changed(&self) -> AssessError {
        self.refused(LoadError {
            line: 0,
            field: String::new(),
            problem: "it changed while it was read".to_owned(),
            hint: "repeat it once nothing writes to the file".to_owned(),
        })
    }
}

/// The load in what `reader` gives; errors call it `name`.
///
/// # Errors
/// As [`open_observed_load`].
pub fn observed_load_of<'a>(
    name: &str,
    reader: impl Read + Send + 'a,
    device: Option<&str>,
) -> Result<LoadSource<'a>, AssessError> {
    let mut reader = BufReader::with_capacity(HEAD, reader);
    match source_kind(head(name, &mut reader)?) {
        SourceKind::Text => {
            let text = LOAD_EXPORT.text_of(name, reader)?;
            let load = read_text(&text, device).map_err(|error| refused_load(name, error));
            load.map(LoadSource::Whole)
        }
        SourceKind::Recording => read_recording(reader, device).map_err(|error| refused_load(name, error)),
        kind => trace_of(&TRACE, name, reader, kind, device).map(LoadSource::Whole),
    }
}

/// The trace in what `reader` gives. Other sources are refused.
///
/// # Errors
/// It cannot be read, has an error in it or more requests than are kept in memory, or several devices and none is chosen.
pub(crate) fn requests_of(
    input: &'static Input,
    name: &str,
    reader: impl Read + Send,
    device: Option<&str>,
) -> Result<ObservedLoad, AssessError> {
    let mut reader = BufReader::with_capacity(HEAD, reader);
    let head = head(name, &mut reader)?;
    // Exports may be a single line, longer than any of a trace.
    if head.trim_ascii_start().starts_with(b"{") || head.trim_ascii_start().starts_with(b"[") {
        return Err(no_trace(name, NO_TRACE));
    }
    let kind = source_kind(head);
    trace_of(input, name, reader, kind, device)
}

fn trace_of(
    input: &'static Input,
    name: &str,
    mut reader: BufReader<impl Read + Send>,
    kind: SourceKind,
    device: Option<&str>,
) -> Result<ObservedLoad, AssessError> {
    if kind == SourceKind::Events {
        let load = read_blktrace(&mut reader, device, input.most_entries);
        return load.map_err(|error| refused_load(name, error));
    }
    if kind == SourceKind::Recording {
        let load = read_recording(reader, device).and_then(|source| source.into_load(input.most_entries));
        return load.map_err(|error| refused_load(name, error));
    }
    let mut lines = Lines::new(input, name, reader);
    let Some(first) = lines.next_line()? else { return Err(no_trace(name, "it is empty")) };
    if kind == SourceKind::Text {
        return Err(no_trace(name, NO_TRACE));
    }
    let mut trace = TraceLines::new(first).map_err(|error| refused_load(name, error))?;
    while let Some(line) = lines.next_line()? {
        trace.line(line).map_err(|error| refused_load(name, error))?;
        lines.check_entries(trace.kept())?;
    }
    trace.finish(device).map_err(|error| refused_load(name, error))
}

/// The beginning of a source, which stays in the reader.
fn head<'a>(name: &str, reader: &'a mut BufReader<impl Read>) -> Result<&'a [u8], AssessError> {
    reader.fill_buf().map_err(|error| {
        InputError { noun: TRACE.noun, name: name.to_owned(), cause: InputCause::Io(error) }.into()
    })
}

/// A source that is no trace of requests.
pub(crate) fn no_trace(name: &str, problem: &str) -> AssessError {
    let error = LoadError {
        line: 1,
        field: String::new(),
        problem: problem.to_owned(),
        hint: "create a trace with `fathom monitor --record FILE`, fio --write_iolog=FILE, or blktrace"
            .to_owned(),
    };
    refused_load(name, error)
}

/// A load that cannot be read or used; errors call it `name`.
pub fn refused_load(name: &str, error: LoadError) -> AssessError {
    let LoadError { line, field, problem, hint } = error;
    let line = if line > 0 { format!(":{line}") } else { String::new() };
    let field = if field.is_empty() { String::new() } else { format!(" {field}:") };
    AssessError::usage(format!("{name}{line}:{field} {problem}"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<ObservedLoad, String> {
        let load = observed_load_of("t", bytes, None).map_err(|error| error.to_string())?;
        load.into_load(10).map_err(|error| error.to_string())
    }

    #[test]
    fn every_kind_of_source_is_read() {
        assert_eq!(read(b"fio version 3 iolog\n1 /t read 0 1\n").unwrap().format.name(), "fio-iolog-3");
        let csv = b"Timestamp,VolumeReadOps\n2026-11-22T10:00:00Z,1\n2026-11-22T10:01:00Z,1\n";
        assert_eq!(read(csv).unwrap().format.name(), "cloudwatch-csv");
        assert_eq!(read(b"\x07taexxxx").unwrap_err(), "t: event 1: it is incomplete");
    }

    #[test]
    fn errors_have_name_line_and_field() {
        assert_eq!(read(b"").unwrap_err(), "t: it is empty");
        assert!(read(b"hello\n").unwrap_err().starts_with("t:1: the format is unknown"));
        let csv = b"Timestamp,VolumeReadOps\n2026-11-22T10:00:00Z,x\n";
        assert_eq!(read(csv).unwrap_err(), "t:2: VolumeReadOps: 'x' is not a number");
        assert!(read(b"\xff\xff").unwrap_err().ends_with("line 1 is not valid UTF-8"));
    }
}
