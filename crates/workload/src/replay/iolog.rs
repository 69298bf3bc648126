//! fio's iolog, versions 2 and 3: a line per request, and per opening and closing of a file.
//!
//! Version 3 has the time of each line, in microseconds since the start of the job; version 2 has lines that wait.

use std::collections::HashMap;

use fathom_model::plan::RecordedRequest;
use fathom_model::{Op, Request};

use super::{MAX_BYTES, Recording};

/// Longest time of a request, µs: ten years.
const LONGEST_US: u64 = 10 * 365 * 86_400 * 1_000_000;
/// Waits below this are none, µs.
const MIN_WAIT_US: u64 = 100;

/// The version of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IologVersion {
    /// Waits are lines.
    Two,
    /// Each line has its time.
    Three,
}

impl IologVersion {
    /// The version of a log with this first line.
    pub fn of(first: &str) -> Option<IologVersion> {
        match first.trim() {
            "fio version 2 iolog" => Some(IologVersion::Two),
            "fio version 3 iolog" => Some(IologVersion::Three),
            _ => None,
        }
    }
}

/// One line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IologLine<'a> {
    /// Its time, µs; `None` in version 2.
    pub at_us: Option<u64>,
    /// The file that it is about.
    pub file: &'a str,
    /// What happens to it.
    pub action: IologAction,
}

/// The action of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IologAction {
    /// The file belongs to the job.
    Add,
    /// The file is opened.
    Open,
    /// The file is closed.
    Close,
    /// Nothing is issued for this time, µs.
    Wait(u64),
    /// A request: operation, offset and bytes, which are 0 for syncs.
    Request(Op, u64, u64),
}

/// The meaning of a line that is not empty.
///
/// # Errors
/// Why it has none.
pub fn parse_line(version: IologVersion, line: &str) -> Result<IologLine<'_>, String> {
    let mut words = line.split_whitespace();
    let at_us = match version {
        IologVersion::Two => None,
        IologVersion::Three => {
            let word = words.next().unwrap_or_default();
            Some(word.parse::<u64>().map_err(|_| format!("'{word}' is not a time in µs"))?)
        }
    };
    let (Some(file), Some(word)) = (words.next(), words.next()) else {
        return Err("expected FILE ACTION OFFSET LENGTH".to_owned());
    };
    let number = |word: Option<&str>, what: &str| match word.map(str::parse::<u64>) {
        Some(Ok(number)) => Ok(number),
        Some(Err(_)) => Err(format!("'{}' is not a number of {what}", word.unwrap_or_default())),
        None => Err("offset and length are missing".to_owned()),
    };
    let op = match word {
        "add" => return Ok(IologLine { at_us, file, action: IologAction::Add }),
        "open" => return Ok(IologLine { at_us, file, action: IologAction::Open }),
        "close" => return Ok(IologLine { at_us, file, action: IologAction::Close }),
        "wait" if version == IologVersion::Two => {
            let wait = words.next().and_then(|word| word.parse().ok());
            let wait = wait.ok_or_else(|| "the time of wait is not a number of µs".to_owned())?;
            return Ok(IologLine { at_us, file, action: IologAction::Wait(wait) });
        }
        "read" => Op::Read,
        "write" => Op::Write,
        "trim" => Op::Trim,
        "sync" => Op::Sync,
        "datasync" => Op::Datasync,
        other => return Err(format!("unknown action '{other}'")),
    };
    let (offset, bytes) = match op.is_sync() {
        true => (0, 0),
        false => (number(words.next(), "bytes")?, number(words.next(), "bytes")?),
    };
    Ok(IologLine { at_us, file, action: IologAction::Request(op, offset, bytes) })
}

/// A file of the log.
#[derive(Clone, Copy, Debug)]
struct LoggedFile {
    index: u32,
    is_open: bool,
}

/// Reads a log line by line.
#[derive(Debug)]
pub struct Iolog {
    version: IologVersion,
    recording: Recording,
    files: HashMap<String, LoggedFile>,
    /// The waits of version 2 so far.
    waited_us: u64,
}

impl Iolog {
    /// A log of this version, without a line.
    pub fn new(version: IologVersion) -> Iolog {
        Iolog { version, recording: Recording::default(), files: HashMap::new(), waited_us: 0 }
    }

    /// Requests and files so far.
    pub fn kept(&self) -> usize {
        self.recording.requests.len() + self.recording.files.len()
    }

    /// Takes the next line after the first.
    ///
    /// # Errors
    /// Why it has no meaning in this log.
    pub fn line(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim();
        if line.is_empty() {
            return Ok(());
        }
        if IologVersion::of(line).is_some() {
            return Err("a second log begins here, as when several workers write to one file".to_owned());
        }
        let IologLine { at_us, file, action } = parse_line(self.version, line)?;
        if at_us.unwrap_or(0) > LONGEST_US {
            return Err("its time is more than 10 years after the start of the job".to_owned());
        }
        match action {
            IologAction::Wait(wait) if wait < MIN_WAIT_US => Ok(()),
            IologAction::Wait(wait) => {
                let waited = self.waited_us.checked_add(wait).filter(|waited| *waited <= LONGEST_US);
                self.waited_us = waited.ok_or("the waits so far are longer than 10 years")?;
                Ok(())
            }
            IologAction::Add => {
                self.add(file);
                Ok(())
            }
            IologAction::Open => self.open(file, true),
            IologAction::Close => self.open(file, false),
            IologAction::Request(op, offset, bytes) => {
                let at_ns = at_us.unwrap_or(self.waited_us) * 1_000;
                self.request(file, at_ns, (op, offset, bytes))
            }
        }
    }

    fn add(&mut self, name: &str) {
        let Recording { files, .. } = &mut self.recording;
        self.files.entry(name.to_owned()).or_insert_with(|| {
            files.push(name.to_owned());
            LoggedFile { index: files.len() as u32 - 1, is_open: false }
        });
    }

    fn open(&mut self, name: &str, is_open: bool) -> Result<(), String> {
        let file = self.files.get_mut(name).ok_or_else(|| format!("'{name}' was not added before"))?;
        file.is_open = is_open;
        Ok(())
    }

    fn request(&mut self, name: &str, at_ns: u64, (op, offset, bytes): (Op, u64, u64)) -> Result<(), String> {
        let file = match self.files.get(name) {
            Some(file) if file.is_open => file.index,
            Some(_) => return Err(format!("'{name}' is not open")),
            None => return Err(format!("'{name}' was not added before")),
        };
        if bytes > MAX_BYTES || (bytes == 0 && !op.is_sync()) {
            return Err(format!("a request of {bytes} bytes is not possible"));
        }
        if offset.checked_add(bytes).is_none_or(|end| end > i64::MAX as u64) {
            return Err(format!("no file has an offset of {offset}"));
        }
        let request = Request { op, file, len: bytes as u32, offset };
        self.recording.requests.push(RecordedRequest { at_ns, request });
        Ok(())
    }

    /// The requests of the log.
    pub fn finish(self) -> Recording {
        self.recording.sorted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Recording, String> {
        let mut lines = text.lines();
        let version = IologVersion::of(lines.next().unwrap()).unwrap();
        let mut log = Iolog::new(version);
        for (index, line) in lines.enumerate() {
            log.line(line).map_err(|reason| format!("{}: {reason}", index + 2))?;
        }
        Ok(log.finish())
    }

    fn requests(text: &str) -> Vec<(u64, u32, Op, u64, u32)> {
        let of = |RecordedRequest { at_ns, request }: &RecordedRequest| {
            (at_ns / 1_000, request.file, request.op, request.offset, request.len)
        };
        read(text).unwrap().requests.iter().map(of).collect()
    }

    #[test]
    fn version_3_has_times() {
        let text = "fio version 3 iolog\n1 a add\n2 b add\n3 a open\n4 a write 0 4096\n5 b open\n6 b read 512 512\n\
                    7 a sync 0 0\n8 a datasync\n9 b trim 0 4096\n\n10 a close\n";
        assert_eq!(
            requests(text),
            [
                (4, 0, Op::Write, 0, 4096),
                (6, 1, Op::Read, 512, 512),
                (7, 0, Op::Sync, 0, 0),
                (8, 0, Op::Datasync, 0, 0),
                (9, 1, Op::Trim, 0, 4096)
            ]
        );
        assert_eq!(read(text).unwrap().files, ["a", "b"]);
    }

    #[test]
    fn waits_of_version_2_add_up() {
        let text = "fio version 2 iolog\na add\na open\na write 0 1\na wait 99 0\na wait 1000 0\na write 1 1\n\
                    a wait 500 0\na write 2 1\na close\n";
        let times: Vec<u64> = requests(text).iter().map(|request| request.0).collect();
        assert_eq!(times, [0, 1000, 1500]);
    }

    #[test]
    fn requests_are_in_the_order_of_their_times() {
        let text = "fio version 3 iolog\n0 a add\n0 a open\n9 a read 9 1\n4 a read 4 1\n9 a read 1 1\n";
        let offsets: Vec<u64> = requests(text).iter().map(|request| request.3).collect();
        assert_eq!(offsets, [4, 9, 1]);
    }

    #[test]
    fn what_has_no_meaning_is_refused_by_line() {
        let opened = "fio version 3 iolog\n0 a add\n0 a open\n";
        for (line, expected) in [
            ("x a read 0 1", "4: 'x' is not a time in µs"),
            ("1 a raed 0 1", "4: unknown action 'raed'"),
            ("1 a wait 100 0", "4: unknown action 'wait'"),
            ("1 a read 0", "4: offset and length are missing"),
            ("1 a read 0 x", "4: 'x' is not a number of bytes"),
            ("1 a read 0 0", "4: a request of 0 bytes is not possible"),
            ("1 a read 0 9999999999", "4: a request of 9999999999 bytes is not possible"),
            ("1 a read 18446744073709551615 1", "4: no file has an offset of 18446744073709551615"),
            ("1 b read 0 1", "4: 'b' was not added before"),
            ("1 b open", "4: 'b' was not added before"),
            ("1 a", "4: expected FILE ACTION OFFSET LENGTH"),
            ("1 a close\n2 a read 0 1", "5: 'a' is not open"),
            ("400000000000000 a read 0 1", "4: its time is more than 10 years"),
            ("fio version 3 iolog", "4: a second log begins here"),
        ] {
            let error = read(&format!("{opened}{line}\n")).unwrap_err();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
        let waits = "fio version 2 iolog\na wait 315360000000000 0\na wait 100 0\n";
        assert_eq!(read(waits).unwrap_err(), "3: the waits so far are longer than 10 years");
        assert!(read("fio version 2 iolog\na wait x 0\n").is_err());
        assert_eq!(IologVersion::of("fio version 1 iolog"), None);
    }
}
