//! Traces in lines, fio's iolog and the text of blkparse: one line in memory at a time, and the requests.

use std::collections::HashMap;

use fathom_workload::replay::{IologAction, IologLine, IologVersion, parse_line};

use crate::block_events::{BlockEvents, LONGEST_NS, of_trace, too_long};
use crate::detect::{trace_format, without_mark};
use crate::load::{ObservedLoad, ObservedRequest, RequestPoint, RequestTrace};
use crate::{LoadError, LoadFormat, MAX_DEVICES, blkparse};

const BROKEN: &str = "correct or remove this line";

/// Reads a trace line by line.
#[derive(Debug)]
pub struct TraceLines {
    format: LoadFormat,
    /// The number of the last line, from 1.
    number: u64,
    reader: LineReader,
}

#[derive(Debug)]
enum LineReader {
    Iolog(IologReader),
    Blkparse(BlockEvents),
}

impl TraceLines {
    /// The reader of a trace that begins with the line `first`, which is taken.
    ///
    /// # Errors
    /// It begins none.
    pub fn new(first: &str) -> Result<TraceLines, LoadError> {
        let first = without_mark(first);
        let format = trace_format(first).ok_or_else(|| LoadError::unknown(first))?;
        let iolog = |version| LineReader::Iolog(IologReader::new(version));
        let reader = match format {
            LoadFormat::IologTwo => iolog(IologVersion::Two),
            LoadFormat::IologThree => iolog(IologVersion::Three),
            _ => LineReader::Blkparse(BlockEvents::default()),
        };
        let mut trace = TraceLines { format, number: 1, reader };
        if format == LoadFormat::Blkparse {
            trace.read(first)?;
        }
        Ok(trace)
    }

    /// Requests or events in memory.
    pub fn kept(&self) -> usize {
        match &self.reader {
            LineReader::Iolog(log) => log.requests.len(),
            LineReader::Blkparse(events) => events.len(),
        }
    }

    /// Takes the next line.
    ///
    /// # Errors
    /// It has no meaning in this trace.
    pub fn line(&mut self, line: &str) -> Result<(), LoadError> {
        self.number += 1;
        self.read(line)
    }

    fn read(&mut self, line: &str) -> Result<(), LoadError> {
        let line = line.trim();
        let number = self.number;
        let at_line = |error: LoadError| LoadError { line: number, ..error };
        let broken = |reason: String| LoadError::new(number, reason, BROKEN);
        match &mut self.reader {
            _ if line.is_empty() => Ok(()),
            LineReader::Iolog(log) => log.line(line).map_err(at_line),
            LineReader::Blkparse(events) => match blkparse::parse(line).map_err(broken)? {
                Some(event) => events.push(event).map_err(at_line),
                None => Ok(()),
            },
        }
    }

    /// The load of all lines. `device` chooses one of several devices; of a log, one of its files.
    ///
    /// # Errors
    /// There is no request, or of several devices none is chosen. The files of a log are one load together.
    pub fn finish(self, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
        match self.reader {
            LineReader::Iolog(log) => log.finish(self.format, device),
            LineReader::Blkparse(events) => events.finish(self.format, device),
        }
    }
}

/// The requests of a log. Files need not be opened: logs that were cut or written by hand are read as well.
#[derive(Debug)]
struct IologReader {
    version: IologVersion,
    names: HashMap<String, u16>,
    files: Vec<String>,
    requests: Vec<ObservedRequest>,
    /// The waits of version 2 so far.
    waited_ns: u64,
    first_ns: Option<u64>,
}

impl IologReader {
    fn new(version: IologVersion) -> IologReader {
        IologReader {
            version,
            names: HashMap::new(),
            files: Vec::new(),
            requests: Vec::new(),
            waited_ns: 0,
            first_ns: None,
        }
    }

    fn line(&mut self, line: &str) -> Result<(), LoadError> {
        let broken = |reason: String| LoadError::new(0, reason, BROKEN);
        let IologLine { at_us, file, action } = parse_line(self.version, line).map_err(broken)?;
        let at_ns = match at_us {
            Some(at) => at.checked_mul(1_000).ok_or_else(|| too_long(&format!("{at} µs")))?,
            None => self.waited_ns,
        };
        let (op, offset, bytes) = match action {
            IologAction::Open | IologAction::Close => return Ok(()),
            IologAction::Add => return self.file(file).map(drop),
            IologAction::Wait(wait) => {
                let waited_ns = wait.checked_mul(1_000).and_then(|wait| wait.checked_add(self.waited_ns));
                let waited_ns = waited_ns.filter(|&waited_ns| waited_ns <= LONGEST_NS);
                self.waited_ns = waited_ns.ok_or_else(|| too_long(&format!("the wait of {wait} µs")))?;
                return Ok(());
            }
            IologAction::Request(op, offset, bytes) => (op, offset, bytes),
        };
        let first_ns = *self.first_ns.get_or_insert(at_ns);
        if at_ns.abs_diff(first_ns) > LONGEST_NS {
            return Err(too_long(&format!("its time, {} s,", at_ns / 1_000_000_000)));
        }
        let too_large = || broken(format!("an I/O of {bytes} bytes is too large"));
        let bytes = u32::try_from(bytes).map_err(|_| too_large())?;
        if offset.checked_add(u64::from(bytes)).is_none_or(|end| end > i64::MAX as u64) {
            return Err(broken(format!("no file has an offset of {offset}")));
        }
        let file = self.file(file)?;
        self.requests.push(ObservedRequest { at_ns, offset, latency_ns: None, bytes, file, thread: 0, op });
        Ok(())
    }

    /// The index of a file.
    fn file(&mut self, name: &str) -> Result<u16, LoadError> {
        if let Some(index) = self.names.get(name) {
            return Ok(*index);
        }
        if self.files.len() == MAX_DEVICES {
            let problem = format!("it has more than {MAX_DEVICES} files");
            return Err(LoadError::new(0, problem, "record the jobs in logs of their own"));
        }
        let index = self.files.len() as u16;
        self.names.insert(name.to_owned(), index);
        self.files.push(name.to_owned());
        Ok(index)
    }

    fn finish(mut self, format: LoadFormat, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
        if let Some(wanted) = device {
            let index = self.names.get(wanted).ok_or_else(|| LoadError::device(device, &self.files))?;
            self.requests.retain(|request| request.file == *index);
            self.requests.iter_mut().for_each(|request| request.file = 0);
            self.files = vec![wanted.to_owned()];
        }
        // Several workers may have been written down one after the other.
        self.requests.sort_by_key(|request| request.at_ns);
        let has_times = self.version == IologVersion::Three;
        let mut notes = Vec::new();
        if !has_times {
            let text = "the trace has no times: each I/O is issued when the previous one completes";
            notes.push(text.to_owned());
        }
        let device = if let [one] = &self.files[..] { one.clone() } else { String::new() };
        let (files, requests) = (self.files, self.requests);
        let trace = RequestTrace { files, requests, has_times, point: RequestPoint::Program };
        of_trace(format, device, trace, notes)
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;

    use super::*;
    use crate::LoadCourse;

    fn read(text: &str, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
        let mut lines = text.lines();
        let mut trace = TraceLines::new(lines.next().unwrap_or_default())?;
        lines.try_for_each(|line| trace.line(line))?;
        trace.finish(device)
    }

    fn requests(load: &ObservedLoad) -> Vec<(u64, Op, u64, u32, u16)> {
        let LoadCourse::Requests(trace) = &load.course else { panic!("it is a trace") };
        let of = |one: &ObservedRequest| (one.at_ns, one.op, one.offset, one.bytes, one.file);
        trace.requests.iter().map(of).collect()
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let parse = "\u{feff}  8,0    0        1     0.000001000  99  D   R 8 + 8 [fio]\r\n\
                     8,0    0        2     0.000301000  99  C   R 8 + 8 [0]\r\n";
        assert_eq!(requests(&read(parse, None).unwrap()), [(0, Op::Read, 4096, 4096, 0)]);
        let log = "\u{feff}fio version 3 iolog\r\n0 /t add\r\n0 /t open\r\n7 /t read 0 512\r\n";
        assert_eq!(requests(&read(log, None).unwrap()), [(0, Op::Read, 0, 512, 0)]);
    }

    #[test]
    fn iologs() {
        let three = "fio version 3 iolog\n16 /t/f add\n104 /t/f open\n108 /t/f read 249856 4096\n446 /t/f write 512 1024\n\
            500 /t/f datasync 0 0\n600 /t/f trim 0 4096\n700 /t/f close\n";
        let three = read(three, None).unwrap();
        assert_eq!(
            requests(&three),
            [
                (0, Op::Read, 249_856, 4096, 0),
                (338_000, Op::Write, 512, 1024, 0),
                (392_000, Op::Datasync, 0, 0, 0),
                (492_000, Op::Trim, 0, 4096, 0)
            ]
        );
        assert_eq!((three.device.as_str(), three.length_ns, three.notes.len()), ("/t/f", 492_000, 0));
        let text =
            "fio version 2 iolog\n/a add\n/b add\n/a open\n/a read 0 512\n/a wait 250 0\n/b write 512 512\n";
        let two = read(text, None).unwrap();
        assert_eq!(requests(&two), [(0, Op::Read, 0, 512, 0), (250_000, Op::Write, 512, 512, 1)]);
        assert_eq!((two.device.as_str(), two.notes.len()), ("", 1));
        let chosen = read(text, Some("/b")).unwrap();
        assert_eq!(requests(&chosen), [(0, Op::Write, 512, 512, 0)]);
        assert_eq!(read(text, Some("/c")).unwrap_err().hint, "use one of /a, /b");
    }

    #[test]
    fn text_of_blkparse() {
        let line = |time: &str, action: &str, rwbs: &str, rest: &str| {
            format!("  8,0    1       17     {time}  4711  {action}  {rwbs} {rest}\n")
        };
        let queued = line("0.000000100", "Q", "R", "8 + 8 [fio]") + &line("0.5", "Q", "WS", "16 + 1 [fio]");
        assert_eq!(
            requests(&read(&queued, None).unwrap()),
            [(0, Op::Read, 4096, 4096, 0), (499_999_900, Op::Write, 8192, 512, 0)]
        );
        // Of what was issued and what was queued, the former.
        let both = queued.clone()
            + &line("0.6", "D", "DS", "8 + 8 [fio]")
            + &line("0.7", "D", "FN", "[fio]")
            + &line("0.8", "C", "R", "8 + 8 [0]")
            + "CPU0 (sda):\n Reads Queued: 1, 4KiB\n";
        assert_eq!(
            requests(&read(&both, None).unwrap()),
            [(0, Op::Trim, 4096, 4096, 0), (100_000_000, Op::Sync, 0, 0, 0)]
        );
    }

    #[test]
    fn what_is_no_trace_is_refused_by_line() {
        for (text, expected) in [
            ("", "it is empty"),
            ("fio version 1 iolog\n", "line 1: the format is unknown"),
            ("fio version 3 iolog\n", "it contains no I/O"),
            ("fio version 3 iolog\nx /t read 0 1\n", "line 2: 'x' is not a time"),
            ("fio version 3 iolog\n1 /t read 0\n", "line 2: offset and length are missing"),
            ("fio version 3 iolog\n1 /t raed 0 1\n", "line 2: unknown action 'raed'"),
            ("fio version 3 iolog\n1 /t wait 5 0\n", "line 2: unknown action 'wait'"),
            ("fio version 3 iolog\n1 /t read 0 9999999999\n", "line 2: an I/O of 9999999999 bytes"),
            ("fio version 3 iolog\n1 /t read 18446744073709551615 1\n", "line 2: no file has an offset"),
            ("fio version 2 iolog\n/t\n", "line 2: expected FILE ACTION"),
            (
                "fio version 3 iolog\n18446744073709551616 /t read 0 1\n",
                "line 2: '18446744073709551616' is not a time",
            ),
            ("8,0 1 1 0.5 1 D R x + 8\n", "line 1: 'x' is not a number of sectors"),
            (
                "fio version 3 iolog\n1 /t read 0 1\n18446744073709551615 /t read 0 1\n",
                "line 3: 18446744073709551615 µs is more than 10 years after the first I/O",
            ),
            (
                "fio version 3 iolog\n400000000000000 /t read 0 1\n1 /t read 0 1\n",
                "line 3: its time, 0 s, is more than 10 years after the first I/O",
            ),
            (
                "fio version 2 iolog\n/t read 0 1\n/t wait 315360000000000 0\n/t wait 1 0\n",
                "line 4: the wait of 1 µs is more than 10 years after the first I/O",
            ),
        ] {
            let error = read(text, None).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
