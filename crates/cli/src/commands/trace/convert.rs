//! `fathom trace convert`: the requests of a recording as an iolog.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use fathom_assess::{open_observed_load, refused_load};
use fathom_model::Request;
use fathom_model::plan::RecordedRequest;
use fathom_observed::{LoadCourse, LoadError, ObservedRequest, Requests};
use fathom_report::TextWriter;
use fathom_report::fio::iolog::IologText;

use super::name_of;
use crate::exit::{Complaint, Exit};
use crate::output;

/// Requests that are written together.
const TOGETHER: usize = 4_096;

/// What `fathom trace convert` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ConvertArguments {
    /// Recording of requests (- for standard input): `fathom monitor --record`, blktrace, blkparse, fio iolog
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: PathBuf,
    /// Format to write: fio's iolog, version 3
    #[arg(long, value_enum, default_value_t = TraceTarget::Iolog)]
    to: TraceTarget,
    /// File or device that the iolog names, on which it is to be replayed
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    file: PathBuf,
    /// Device of a recording that has several; of an iolog, one of its files
    #[arg(long = "device", value_name = "NAME")]
    trace_device: Option<String>,
}

/// What recordings are converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TraceTarget {
    Iolog,
}

const EXAMPLES: &str = "\
An iolog has the time, operation, offset and length of each request, and no latencies. The offsets
are those of the recorded device: the file must be as large. A replay overwrites what the recorded
writes overwrote.

Examples:
  fathom trace convert app.load --file /mnt/test/file > app.iolog
  fathom fio --name=app --read_iolog=app.iolog --ioengine=libaio --direct=1
  cat app.load.* | fathom trace convert - --file /dev/nvme1n1 > app.iolog";

/// Writes the iolog to standard output.
///
/// # Errors
/// The recording cannot be read or has no requests, or standard output cannot be written.
pub fn run(arguments: &ConvertArguments) -> Result<Exit, Complaint> {
    let TraceTarget::Iolog = arguments.to;
    let name = name_of(&arguments.trace);
    let source = open_observed_load(&arguments.trace, arguments.trace_device.as_deref())?;
    let refuse = |problem: &str, hint: &str| {
        Err(Complaint::failed(format!("{name}: {problem}"), Some(hint.to_owned())))
    };
    let Ok(mut requests) = source.into_requests() else {
        return refuse(
            "it has intervals, not requests",
            "record requests with `fathom monitor --record` as root",
        );
    };
    if matches!(&requests.load().course, LoadCourse::Requests(trace) if trace.files.len() > 1) {
        return refuse("it has several files", "choose one with --device");
    }
    let file = iolog_name(&arguments.file)?;
    let mut failed = None;
    output::print(|out| write_iolog(&mut requests, &file, &mut failed, out))?;
    match failed {
        Some(error) => Err(refused_load(&name, error).into()),
        None => Ok(Exit::Done),
    }
}

/// A name as a line of an iolog can have it.
fn iolog_name(path: &Path) -> Result<String, Complaint> {
    let name = path.display().to_string();
    match name.is_empty() || name.contains(|one: char| one.is_whitespace() || one.is_control()) {
        true => {
            let hint = "name a file without spaces in its path".to_owned();
            Err(Complaint::usage(format!("an iolog cannot name '{name}'"), Some(hint)))
        }
        false => Ok(name),
    }
}

/// Writes the requests up to the first that cannot be read, which `failed` gets.
fn write_iolog(
    requests: &mut Requests<'_>,
    file: &str,
    failed: &mut Option<LoadError>,
    out: &mut TextWriter,
) -> io::Result<()> {
    let mut text = Vec::new();
    let mut log = IologText::new(std::iter::once(file.to_owned()), &mut text);
    let mut end_ns = 0;
    let mut together = Vec::with_capacity(TOGETHER);
    loop {
        together.clear();
        for request in requests.by_ref().take(TOGETHER) {
            match request {
                Ok(request) => together.push(recorded(&request)),
                Err(error) => *failed = Some(error),
            }
        }
        let Some(last) = together.last() else { break };
        end_ns = last.at_ns;
        log.issued(&together, &mut text);
        pass_on(&mut text, out)?;
    }
    log.end(end_ns, &mut text);
    pass_on(&mut text, out)
}

fn pass_on(text: &mut Vec<u8>, out: &mut TextWriter) -> io::Result<()> {
    let written = out.own_lines(&String::from_utf8_lossy(text));
    text.clear();
    written
}

fn recorded(request: &ObservedRequest) -> RecordedRequest {
    let ObservedRequest { at_ns, op, offset, bytes, .. } = *request;
    RecordedRequest { at_ns, request: Request { op, file: 0, offset, len: bytes } }
}
