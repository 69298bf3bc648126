//! The engine trait and its types.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use fathom_model::plan::RequestPriorities;
use fathom_model::{EngineOption, Nanos, Op, Request};

/// The result of [`Engine::queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// The first is complete: bytes moved, or a negative errno. The others were not accepted; offer them again.
    Done(i64),
    /// This many, from the first on, were accepted and complete through [`Engine::reap`] after [`Engine::submit`]. 0 =
    /// the queue is full: submit and reap, then offer them again.
    Accepted(u32),
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request's slot.
    pub slot: u32,
    /// Bytes moved, or a negative errno.
    pub result: i64,
}

/// The result of [`Engine::reap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaped {
    /// This many completions were appended; fewer than `min` if the wait timed out or was interrupted.
    Some(u32),
    /// Virtual time only: nothing can complete before this moment of the session's clock.
    NothingBefore(Nanos),
}

/// Moves bytes between buffers it owns and the files it was opened on.
///
/// A slot is an index into the queue depth, `0..depth`. The driver never queues a slot that is in flight.
pub trait Engine {
    /// Offers the requests of `slots`, at least one, in order; `requests` is indexed by slot. Synchronous engines
    /// execute the first immediately; others prepare as many as they can for `submit`.
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued;

    /// Submits accepted requests to the kernel or the simulated volume and returns their number; partial submissions
    /// are normal.
    fn submit(&mut self) -> Result<u32, EngineError>;

    /// Appends up to `max` completions to `done`. Waits for at least `min`, at most for `wait` (`None` = without
    /// limit); `min == 0` never waits. A simulator never waits: it returns `NothingBefore`.
    fn reap(
        &mut self,
        min: u32,
        max: u32,
        wait: Option<Nanos>,
        done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError>;

    /// The buffer of a slot that is not in flight, to be filled before a write. Its length is the largest block;
    /// empty for engines that move no real bytes.
    fn payload(&mut self, slot: u32) -> &mut [u8];

    /// The priority that the engine gave to the last request in `slot`, as Linux packs it; `None` = that of the job.
    fn priority(&self, _slot: u32) -> Option<u16> {
        None
    }
}

/// A file or device that the session opened for the worker.
#[derive(Clone, Debug)]
pub struct OpenFile {
    /// The open file; `None` for engines that need none (`null`, `sim`).
    pub file: Option<Arc<File>>,
    /// Usable bytes.
    pub size: u64,
    /// A block device rather than a regular file.
    pub is_block_device: bool,
    /// Index of the session's simulated volume; unused in real time.
    pub volume: usize,
}

/// The input for opening an engine.
#[derive(Clone, Debug)]
pub struct EngineSetup {
    /// Number of slots.
    pub depth: u32,
    /// Largest request in bytes; the size of each slot's buffer.
    pub max_block: usize,
    /// The files, in the order requests index them.
    pub files: Vec<OpenFile>,
    /// Their paths, for engines that act on names; else empty.
    pub paths: Vec<PathBuf>,
    /// O_DIRECT is in use.
    pub direct: bool,
    /// The job writes, so mappings must be writable.
    pub writes: bool,
    /// Offsets are random, so a mapping disables read-ahead.
    pub random: bool,
    /// Private options.
    pub options: RawEngineOptions,
    /// Requests that have another priority than the job.
    pub priorities: RequestPriorities,
}

/// Private engine options as typed, by canonical name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawEngineOptions(pub BTreeMap<String, String>);

impl RawEngineOptions {
    /// The value of a flag or bool option: absent = `default`, bare = true.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.0.get(name).map_or(default, |value| !matches!(value.as_str(), "0"))
    }

    /// The value of an integer option; absent or malformed = `default` (rows have checked the form).
    pub fn int(&self, name: &str, default: u64) -> u64 {
        self.0.get(name).and_then(|value| value.parse().ok()).unwrap_or(default)
    }
}

impl EngineEntry {
    /// Whether the engine can write atomically (RWF_ATOMIC).
    pub fn writes_atomically(&self) -> bool {
        matches!(self.name, "io_uring" | "libaio" | "pvsync2")
    }
}

impl RawEngineOptions {
    /// The options of an engine that [writes atomically](EngineEntry::writes_atomically), and does.
    pub fn atomic(mut self) -> RawEngineOptions {
        self.0.insert(crate::private::ATOMIC.to_owned(), "1".to_owned());
        self
    }
}

/// Properties of an engine that the runner needs before it opens the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineTraits {
    /// Requests complete inside `queue`, one at a time; the queue depth is always 1.
    pub synchronous: bool,
    /// Needs real files, opened and laid out.
    pub needs_files: bool,
    /// Moves real bytes to and from files.
    pub moves_data: bool,
    /// Operations that it does not have.
    pub lacks: &'static [Op],
    /// Requests complete inside `queue` at depth 1.
    pub synchronous_alone: bool,
    /// Requests are about the names of files, which are not opened; each file has one request.
    pub names: Option<NameUse>,
}

impl EngineTraits {
    /// Moves data of files, one request at a time.
    pub const SYNCHRONOUS: EngineTraits = EngineTraits {
        synchronous: true,
        needs_files: true,
        moves_data: true,
        lacks: &[],
        synchronous_alone: false,
        names: None,
    };
    /// Moves data of files, many requests at a time.
    pub const ASYNCHRONOUS: EngineTraits = EngineTraits { synchronous: false, ..EngineTraits::SYNCHRONOUS };
}

/// What a request does with the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameUse {
    /// Makes a file.
    MakeFile,
    /// Inspects a file.
    InspectFile,
    /// Removes a file.
    RemoveFile,
    /// Makes a directory.
    MakeDirectory,
    /// Inspects a directory.
    InspectDirectory,
    /// Removes an empty directory.
    RemoveDirectory,
}

impl NameUse {
    /// The file exists before its request, and is no directory.
    pub fn needs_file(self) -> bool {
        matches!(self, NameUse::InspectFile | NameUse::RemoveFile)
    }

    /// A second request finds what the first one left.
    pub fn can_be_repeated(self) -> bool {
        matches!(self, NameUse::MakeFile | NameUse::InspectFile | NameUse::InspectDirectory)
    }

    /// The directory exists before its request.
    pub fn needs_directory(self) -> bool {
        matches!(self, NameUse::InspectDirectory | NameUse::RemoveDirectory)
    }
}

/// One registered engine.
pub struct EngineEntry {
    /// fio's name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// One line for `--enghelp` and the docs.
    pub doc: &'static str,
    /// Properties for the runner.
    pub traits: EngineTraits,
    /// Private option rows.
    pub options: &'static [EngineOption],
    /// Opens it for one worker, on the worker's own thread.
    pub open: fn(EngineSetup) -> Result<Box<dyn Engine>, EngineError>,
}

/// A failure of the engine itself; failed requests are [`Completion`]s.
#[derive(Debug, thiserror::Error)]
#[error("{engine}: cannot {attempted}: {}", fathom_sys::io::describe(source))]
pub struct EngineError {
    /// The engine's name.
    pub engine: &'static str,
    /// The failed action: an infinitive and its object.
    pub attempted: String,
    /// The system's error.
    pub source: std::io::Error,
    /// The remedy.
    pub hint: Option<String>,
}

impl EngineError {
    /// The remedy, if there is one.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
