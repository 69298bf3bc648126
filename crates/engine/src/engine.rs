//! The engine trait and what goes through it.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use fathom_model::{Nanos, OptionRow, Request};

/// What became of the requests given to [`Engine::queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// The first is done: bytes moved, or a negative errno. The others were not looked at; offer them again.
    Done(i64),
    /// So many, from the first on, were accepted and will come back from [`Engine::reap`] after [`Engine::submit`].
    /// With 0 there is no room: submit and reap, then offer them again.
    Accepted(u32),
}

/// A request that has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The slot it was queued under.
    pub slot: u32,
    /// Bytes moved, or a negative errno.
    pub result: i64,
}

/// What [`Engine::reap`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaped {
    /// This many completions were appended; fewer than asked for when the wait timed out or was interrupted.
    Some(u32),
    /// Virtual time only: nothing can complete before this moment of the session's clock.
    NothingBefore(Nanos),
}

/// Moves bytes between buffers it owns and the files it was opened on.
///
/// A slot is a place in the depth, `0..depth`. The driver never queues a slot that is in flight.
pub trait Engine {
    /// Offers the requests of `slots`, at least one, in order; `requests` is indexed by slot. Synchronous engines do the
    /// first now; others prepare as many as they can for `submit`.
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued;

    /// Hands accepted requests to the kernel or the model and returns how many went; partial submissions are normal.
    fn submit(&mut self) -> Result<u32, EngineError>;

    /// Appends up to `max` completions to `done`. Waits until `min` are there, at most for `wait` (`None` = for ever);
    /// `min == 0` never waits. A simulator never waits either: it answers `NothingBefore`.
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
    /// Which of the session's modelled volumes it is; without meaning on real time.
    pub volume: usize,
}

/// What an engine is opened with.
#[derive(Clone, Debug)]
pub struct EngineSetup {
    /// Slots it must serve at once.
    pub depth: u32,
    /// Largest request in bytes; the size of each slot's buffer.
    pub max_block: usize,
    /// The files, in the order requests index them.
    pub files: Vec<OpenFile>,
    /// O_DIRECT is in use.
    pub direct: bool,
    /// The job writes (mappings must be writable).
    pub writes: bool,
    /// Offsets come in no order (a mapping then turns read-ahead off).
    pub random: bool,
    /// Private options.
    pub options: RawEngineOptions,
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

/// What the runner must know about an engine before opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineTraits {
    /// Requests complete inside `queue`, one at a time (depth is 1 whatever was asked).
    pub synchronous: bool,
    /// Needs real files to be opened and laid out.
    pub needs_files: bool,
    /// Can trim.
    pub trims: bool,
    /// Requests complete inside `queue` at depth 1.
    pub synchronous_alone: bool,
}

/// One registered engine.
pub struct EngineEntry {
    /// fio's name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// One line for `--enghelp` and the docs.
    pub doc: &'static str,
    /// What the runner must know.
    pub traits: EngineTraits,
    /// Private option rows.
    pub options: &'static [OptionRow<RawEngineOptions>],
    /// Opens it for one worker, on the worker's own thread.
    pub open: fn(EngineSetup) -> Result<Box<dyn Engine>, EngineError>,
}

/// The engine itself failed (not a request: those fail in their [`Completion`]).
#[derive(Debug, thiserror::Error)]
#[error("{engine}: cannot {attempted}: {}", fathom_sys::io::describe(source))]
pub struct EngineError {
    /// The engine's name.
    pub engine: &'static str,
    /// What was attempted: an infinitive and its object.
    pub attempted: String,
    /// The system's answer.
    pub source: std::io::Error,
    /// What to do about it.
    pub hint: Option<String>,
}

impl EngineError {
    /// What to do about it, where something can be done.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
