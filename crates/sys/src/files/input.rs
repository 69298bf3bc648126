//! Reads files that users name, in bounded memory and without waiting for a writer.
//!
//! A file with a name must be a regular one: a device may never end, and a FIFO may never begin. Whatever the process was
//! given open is read as it is (`-`, `/dev/stdin`, `/dev/fd/N`, and so `<(command)` of a shell), up to the same limits.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use super::path_walk::duplicate;
use super::refusal::kind_of;
use super::taken;

/// A kind of input and the most that one may hold.
#[derive(Debug)]
pub struct Input {
    /// What it is called.
    pub noun: &'static str,
    /// Whether `-` is standard input.
    pub takes_stdin: bool,
    /// Bytes of all of it.
    pub most_bytes: u64,
    /// Bytes of a line, where it is read line by line.
    pub most_line_bytes: usize,
    /// Entries that are kept in memory, where it is read line by line.
    pub most_entries: usize,
    /// Whether its reader may replace it. An output never replaces another input.
    pub is_state: bool,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const fn whole(noun: &'static str, takes_stdin: bool, most_bytes: u64) -> Input {
    let (most_line_bytes, most_entries) = (usize::MAX, usize::MAX);
    Input { noun, takes_stdin, most_bytes, most_line_bytes, most_entries, is_state: false }
}

/// What the program itself writes, and reads before it writes it anew.
const fn state(noun: &'static str, most_bytes: u64) -> Input {
    Input { is_state: true, ..whole(noun, false, most_bytes) }
}

// All limits in one place. Nesting is limited by the parsers: 80 deep in TOML, 128 in JSON; the lines and sections of
// a job file by its grammar.

/// A job file of fio, each included file by itself.
pub const JOB_FILE: Input = whole("job file", true, MIB);
/// The state that a job with `verify` has saved.
pub const VERIFY_STATE: Input = state("verify state", 4 * MIB);
/// A twin of a volume.
pub const TWIN: Input = state("twin", 16 * MIB);
/// Volume types of the user's own.
pub const CATALOGUE: Input = whole("catalogue", false, 4 * MIB);
/// A suite of tests.
pub const SUITE: Input = whole("suite", false, MIB);
/// Expectations.
pub const EXPECTATIONS: Input = whole("expectation file", false, MIB);
/// A run record, exported or in a side file.
pub const RECORD: Input = whole("record", false, 256 * MIB);
/// The output of another program, or records.
pub const IMPORT: Input = whole("source", true, 256 * MIB);
/// The description of the distribution (`os-release`).
pub const SYSTEM_TEXT: Input = whole("system file", false, 64 * KIB);
/// The hosts of a job.
pub const HOST_LIST: Input = whole("list of hosts", true, MIB);
/// A secret that a program is given.
pub const TOKEN: Input = whole("token file", false, 4 * KIB);
/// Requests of a program. Its requests are kept, as they have to be sorted by time: 32 bytes each, 512 MB at the most.
pub const TRACE: Input = Input {
    noun: "trace",
    takes_stdin: true,
    most_bytes: 64 * KIB * MIB,
    most_line_bytes: 16 << 10,
    most_entries: 16 << 20,
    is_state: false,
};

/// A compressed log of fio's form, which is printed line by line; one of histograms has 1,792 numbers in a line.
pub const COMPRESSED_LOG: Input =
    Input { noun: "compressed log", takes_stdin: false, most_line_bytes: 64 << 10, ..TRACE };

/// Metrics of an observed load, exported from another program: they are parsed as a whole.
pub const LOAD_EXPORT: Input = whole("observed load", true, 128 * MIB);

/// Recorded requests that a job replays: 32 bytes each in memory, 512 MB at the most.
pub const RECORDING: Input = Input { noun: "recording", ..TRACE };

/// Why an input was not read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the {noun} {name}: {cause}")]
pub struct InputError {
    /// What it is called.
    pub noun: &'static str,
    /// The path as it was named.
    pub name: String,
    /// Why.
    pub cause: InputCause,
}

/// The reason why an input is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputCause {
    /// The system's answer.
    #[error("{}", crate::io::describe(.0))]
    Io(io::Error),
    /// A device, a FIFO, a directory.
    #[error("it is {0}, not a regular file")]
    NotAFile(&'static str),
    /// More bytes than the limit.
    #[error("it is larger than {}", size(*.0))]
    TooLarge(u64),
    /// Not UTF-8.
    #[error("line {0} is not valid UTF-8")]
    NotText(usize),
    /// A line without an end.
    #[error("line {line} is longer than {most} bytes")]
    LongLine {
        /// The line, from 1.
        line: usize,
        /// The limit.
        most: usize,
    },
    /// More entries than are kept.
    #[error("it has more than {0} requests")]
    TooMany(usize),
}

impl InputError {
    /// The remedy.
    pub fn hint(&self) -> String {
        match &self.cause {
            InputCause::Io(_) => "check the path and its permissions".to_owned(),
            InputCause::NotAFile("a FIFO") => {
                "redirect it, which waits for its writer: /dev/stdin as the name, and < FIFO".to_owned()
            }
            InputCause::NotAFile(_) => "name a regular file".to_owned(),
            InputCause::TooLarge(_) | InputCause::LongLine { .. } => {
                format!("check that it is a {}", self.noun)
            }
            InputCause::NotText(_) => "save it as UTF-8".to_owned(),
            InputCause::TooMany(_) => "split it into several by time".to_owned(),
        }
    }

    /// For callers with their own messages; the kind is `FileTooLarge` for large inputs.
    pub fn into_io(self) -> io::Error {
        let hint = self.hint();
        match self.cause {
            InputCause::Io(error) => error,
            InputCause::TooLarge(_) => io::ErrorKind::FileTooLarge.into(),
            cause => io::Error::other(format!("{cause}; {hint}")),
        }
    }

    /// True where there is just nothing.
    pub fn is_absence(&self) -> bool {
        let InputCause::Io(error) = &self.cause else { return false };
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    }
}

fn size(bytes: u64) -> String {
    if bytes >= MIB { format!("{} MiB", bytes / MIB) } else { format!("{} KiB", bytes / KIB) }
}

impl Input {
    /// Says whether the input at `path` can be opened, and reads nothing of it.
    ///
    /// # Errors
    /// It cannot, or is no regular file.
    pub fn check(&self, path: &Path) -> Result<(), InputError> {
        self.open(path).map(drop).map_err(|cause| self.error(path, cause))
    }

    /// All of the input at `path`.
    ///
    /// # Errors
    /// It cannot be opened, is no regular file, or is larger than the limit.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>, InputError> {
        let file = self.open(path).map_err(|cause| self.error(path, cause))?;
        self.read_from(file).map_err(|cause| self.error(path, cause))
    }

    /// All of the input at `path`, as text.
    ///
    /// # Errors
    /// As for [`Input::read`]; it is not UTF-8.
    pub fn read_text(&self, path: &Path) -> Result<String, InputError> {
        String::from_utf8(self.read(path)?).map_err(|error| self.error(path, not_text(&error)))
    }

    /// All text of an open input that has been looked at: errors call it `name`.
    ///
    /// # Errors
    /// It cannot be read, is larger than the limit, or not UTF-8.
    pub fn text_of(&self, name: &str, reader: impl Read) -> Result<String, InputError> {
        let refuse = |cause| InputError { noun: self.noun, name: name.to_owned(), cause };
        let mut bytes = Vec::new();
        let read = reader.take(self.most_bytes + 1).read_to_end(&mut bytes);
        read.map_err(|error| refuse(InputCause::Io(error)))?;
        if bytes.len() as u64 > self.most_bytes {
            return Err(refuse(InputCause::TooLarge(self.most_bytes)));
        }
        String::from_utf8(bytes).map_err(|error| refuse(not_text(&error)))
    }

    /// The lines of the input at `path`, of which one is in memory at a time.
    ///
    /// # Errors
    /// It cannot be opened, or is no regular file.
    pub fn lines(&'static self, path: &Path) -> Result<Lines<'static>, InputError> {
        let (name, file) = self.reader(path)?;
        Ok(Lines::new(self, name, file))
    }

    /// The open input at `path`, and its name in errors.
    ///
    /// # Errors
    /// It cannot be opened, or is no regular file.
    pub fn reader(&self, path: &Path) -> Result<(String, File), InputError> {
        let file = self.open(path).map_err(|cause| self.error(path, cause))?;
        let is_stdin = self.takes_stdin && path == Path::new("-");
        Ok((if is_stdin { "standard input".to_owned() } else { path.display().to_string() }, file))
    }

    fn error(&self, path: &Path, cause: InputCause) -> InputError {
        InputError { noun: self.noun, name: path.display().to_string(), cause }
    }

    fn open(&self, path: &Path) -> Result<File, InputCause> {
        let given = match path == Path::new("-") && self.takes_stdin {
            true => Some(0),
            false => descriptor_named(path),
        };
        match given {
            Some(number) => Ok(duplicate(number).map_err(InputCause::Io)?.into()),
            None => {
                let file = open_regular(path)?;
                if !self.is_state {
                    taken::keep_input(&file, self.noun);
                }
                Ok(file)
            }
        }
    }

    fn read_from(&self, file: File) -> Result<Vec<u8>, InputCause> {
        let known = file.metadata().map_or(0, |metadata| if metadata.is_file() { metadata.len() } else { 0 });
        if known > self.most_bytes {
            return Err(InputCause::TooLarge(self.most_bytes));
        }
        let mut bytes = Vec::with_capacity(known as usize);
        file.take(self.most_bytes + 1).read_to_end(&mut bytes).map_err(InputCause::Io)?;
        if bytes.len() as u64 > self.most_bytes {
            return Err(InputCause::TooLarge(self.most_bytes));
        }
        Ok(bytes)
    }
}

/// The line that is not UTF-8.
fn not_text(error: &std::string::FromUtf8Error) -> InputCause {
    let valid = error.utf8_error().valid_up_to();
    let lines = error.as_bytes()[..valid].iter().filter(|&&byte| byte == b'\n').count();
    InputCause::NotText(lines + 1)
}

/// Opens a regular file, or `/dev/null` for one that is empty.
fn open_regular(path: &Path) -> Result<File, InputCause> {
    // Opening a device can have side effects (rewind a tape, start a watchdog), so the target is inspected first.
    let refuse = |stat: rustix::fs::Stat| match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::CharacterDevice if stat.st_rdev == rustix::fs::makedev(1, 3) => Ok(()),
        _ => Err(InputCause::NotAFile(kind_of(stat.st_mode))),
    };
    let failed = |errno: rustix::io::Errno| InputCause::Io(errno.into());
    refuse(rustix::fs::stat(path).map_err(failed)?)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::LARGEFILE;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?);
    refuse(rustix::fs::fstat(&file).map_err(failed)?)?;
    Ok(file)
}

/// The number in `/dev/stdin`, `/dev/fd/N` or `/proc/self/fd/N`.
fn descriptor_named(path: &Path) -> Option<i32> {
    if path == Path::new("/dev/stdin") {
        return Some(0);
    }
    let name = path.strip_prefix("/dev/fd").or_else(|_| path.strip_prefix("/proc/self/fd")).ok()?;
    name.to_str()?.parse().ok()
}

/// The lines of an input.
pub struct Lines<'a> {
    input: &'static Input,
    name: String,
    reader: BufReader<Box<dyn Read + 'a>>,
    buffer: Vec<u8>,
    number: usize,
    bytes: u64,
}

impl<'a> Lines<'a> {
    /// Those of what `reader` gives; errors call it `name`.
    pub fn new(input: &'static Input, name: impl Into<String>, reader: impl Read + 'a) -> Lines<'a> {
        let reader = BufReader::with_capacity(64 << 10, Box::new(reader) as Box<dyn Read + 'a>);
        Lines { input, name: name.into(), reader, buffer: Vec::new(), number: 0, bytes: 0 }
    }

    /// The name of the input in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the last line, from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The next line without its end; `None` after the last one.
    ///
    /// # Errors
    /// It cannot be read, is too long or not UTF-8; all lines together are longer than the limit.
    pub fn next_line(&mut self) -> Result<Option<&str>, InputError> {
        self.number += 1;
        self.buffer.clear();
        let most = self.input.most_line_bytes;
        let mut limited = (&mut self.reader).take(most as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.buffer);
        let read = read.map_err(|error| self.error(InputCause::Io(error)))?;
        self.bytes += read as u64;
        if read == 0 {
            return Ok(None);
        }
        if self.bytes > self.input.most_bytes {
            return Err(self.error(InputCause::TooLarge(self.input.most_bytes)));
        }
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
        } else if read > most {
            return Err(self.error(InputCause::LongLine { line: self.number, most }));
        }
        match std::str::from_utf8(&self.buffer) {
            Ok(line) => Ok(Some(line)),
            Err(_) => Err(self.error(InputCause::NotText(self.number))),
        }
    }

    /// Refuses to keep `count` entries where that is more than the limit.
    ///
    /// # Errors
    /// It is more.
    pub fn check_entries(&self, count: usize) -> Result<(), InputError> {
        if count > self.input.most_entries {
            return Err(self.error(InputCause::TooMany(self.input.most_entries)));
        }
        Ok(())
    }

    fn error(&self, cause: InputCause) -> InputError {
        InputError { noun: self.input.noun, name: self.name.clone(), cause }
    }
}
