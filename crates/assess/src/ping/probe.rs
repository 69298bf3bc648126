//! One engine with one slot: asks for one thing and waits for the answer.

use std::collections::BTreeMap;

use fathom_engine::registry::{self, ENGINES};
use fathom_engine::{Completion, Engine, EngineEntry, EngineSetup, OpenFile, Queued, RawEngineOptions};
use fathom_model::{Nanos, Op, Request};

use super::error::PingError;
use super::settings::PingSettings;
use super::target::OpenedTarget;
use crate::machine;

/// How long an engine waits at a time.
const WAIT: Nanos = Nanos::from_millis(500);

/// An open engine.
pub(crate) struct EngineProbe {
    pub name: String,
    engine: Box<dyn Engine>,
    done: Vec<Completion>,
}

impl EngineProbe {
    /// Opens the engine of `settings` on `target`.
    pub(super) fn open(settings: &PingSettings, target: &OpenedTarget) -> Result<EngineProbe, PingError> {
        let name = name_of(settings);
        let refused = |reason: String, hint: Option<String>| PingError::Engine { reason, hint };
        let entry = registry::find(name).filter(|entry| entry.traits.needs_files).ok_or_else(|| {
            let names = ENGINES.iter().filter(|entry| entry.traits.needs_files).map(|entry| entry.name);
            let hint = format!("there are {}", names.collect::<Vec<_>>().join(", "));
            refused(format!("there is no engine called '{name}' that reads and writes files"), Some(hint))
        })?;
        let max_block = usize::try_from(settings.size).ok().filter(|size| *size <= LARGEST);
        let max_block = max_block.ok_or_else(|| refused("a request of more than 1 GiB".to_owned(), None))?;
        let mut options = BTreeMap::new();
        // The kernel takes the wish to poll from Linux AIO and drops it: nobody is there who would.
        let polls = settings.poll && entry.name != "libaio";
        for (option, wanted) in [("nowait", settings.nowait), ("hipri", polls)] {
            if !wanted {
                continue;
            }
            if !entry.options.iter().any(|row| row.name == option) {
                let hint = Some("leave one of the two out".to_owned());
                return Err(refused(format!("the engine {name} has no {option}"), hint));
            }
            options.insert(option.to_owned(), "1".to_owned());
        }
        let setup = EngineSetup {
            depth: 1,
            max_block,
            files: vec![OpenFile {
                file: target.file.clone(),
                size: settings.offset + target.range,
                is_block_device: target.facts.is_block_device,
                volume: 0,
            }],
            direct: settings.direct,
            writes: settings.operation.writes(),
            random: !settings.linear,
            options: RawEngineOptions(options),
        };
        EngineProbe::with(entry, setup)
    }

    /// Opens `entry` with one slot.
    pub fn with(entry: &EngineEntry, setup: EngineSetup) -> Result<EngineProbe, PingError> {
        let engine = (entry.open)(setup).map_err(PingError::EngineFailed)?;
        Ok(EngineProbe { name: entry.name.to_owned(), engine, done: Vec::with_capacity(1) })
    }

    /// The bytes that the next write will carry, and those that the last read brought.
    pub fn payload(&mut self) -> &mut [u8] {
        self.engine.payload(0)
    }

    /// Bytes moved, or a negative errno, however long that takes.
    pub fn ask(&mut self, op: Op, offset: u64, len: u32) -> Result<i64, PingError> {
        let request = [Request { op, file: 0, len, offset }];
        self.done.clear();
        loop {
            match self.engine.queue(&[0], &request) {
                Queued::Done(result) => return Ok(result),
                Queued::Accepted(0) => {
                    self.engine.reap(0, 1, None, &mut self.done).map_err(PingError::EngineFailed)?;
                }
                Queued::Accepted(_) => break,
            }
        }
        let mut submitted = 0;
        loop {
            if submitted == 0 {
                submitted = self.engine.submit().map_err(PingError::EngineFailed)?;
            }
            self.engine.reap(1, 1, Some(WAIT), &mut self.done).map_err(PingError::EngineFailed)?;
            if let Some(completion) = self.done.first() {
                return Ok(completion.result);
            }
        }
    }
}

/// Buffers beyond this are not what a ping is for.
const LARGEST: usize = 1 << 30;

/// The engine that was asked for; else io_uring where requests pass the cache and the kernel lets it, for it can be broken
/// off; through the cache it would hand reads to another thread, and plain calls are the truth.
fn name_of(settings: &PingSettings) -> &str {
    match settings.engine.as_deref() {
        Some("psync") if settings.nowait || settings.poll => "pvsync2",
        Some(name) => name,
        None if settings.nowait || settings.poll => "pvsync2",
        None if settings.direct && machine::probe("io_uring").is_ok() => "io_uring",
        None => "psync",
    }
}
