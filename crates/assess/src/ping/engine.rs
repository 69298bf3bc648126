//! The engine that answers a ping, with one slot.

use std::collections::BTreeMap;

use fathom_engine::registry::{self, ENGINES};
use fathom_engine::{EngineEntry, EngineSetup, OpenFile, RawEngineOptions, sim};
use fathom_runner::{Requester, Session};

use super::settings::PingSettings;
use super::target::OpenedTarget;
use crate::{AssessError, ErrorKind, machine};

/// Opens the engine of `settings` on `target`; with its name. A simulated volume answers whatever engine is named.
pub(super) fn requester(
    settings: &PingSettings,
    target: &OpenedTarget,
    session: &Session,
) -> Result<(String, Requester), AssessError> {
    let (entry, max_block, options) = if session.is_simulated() {
        (&sim::ENTRY, 0, RawEngineOptions::default())
    } else {
        chosen(settings)?
    };
    let setup = EngineSetup {
        depth: 1,
        max_block,
        paths: Vec::new(),
        files: vec![OpenFile {
            file: target.file.clone(),
            size: settings.offset + target.range,
            is_block_device: target.facts.is_block_device,
            volume: 0,
        }],
        direct: settings.direct,
        writes: settings.operation.writes(),
        random: !settings.linear,
        options,
        priorities: Default::default(),
    };
    let requester = session.requester(entry, setup)?;
    Ok((entry.name.to_owned(), requester))
}

/// The engine, its largest request, and the options that it is opened with.
fn chosen(settings: &PingSettings) -> Result<(&'static EngineEntry, usize, RawEngineOptions), AssessError> {
    let name = name_of(settings);
    let refused = |message: String, hint: Option<String>| AssessError::new(ErrorKind::Usage, message, hint);
    let entry = registry::find(name).filter(|entry| entry.traits.moves_data).ok_or_else(|| {
        let names = ENGINES.iter().filter(|entry| entry.traits.moves_data).map(|entry| entry.name);
        let hint = format!("use one of {}", names.collect::<Vec<_>>().join(", "));
        refused(format!("unknown engine '{name}', or one that does not access files"), Some(hint))
    })?;
    let max_block = usize::try_from(settings.size).ok().filter(|size| *size <= LARGEST);
    let max_block = max_block.ok_or_else(|| refused("request size exceeds 1 GiB".to_owned(), None))?;
    let mut options = BTreeMap::new();
    // The kernel takes the wish to poll from Linux AIO and drops it: there is no poller.
    let polls = settings.poll && entry.name != "libaio";
    for (option, wanted) in [("nowait", settings.nowait), ("hipri", polls)] {
        if !wanted {
            continue;
        }
        if !entry.options.iter().any(|row| row.name == option) {
            let hint = Some("omit one of the two".to_owned());
            return Err(refused(format!("engine {name} does not support {option}"), hint));
        }
        options.insert(option.to_owned(), "1".to_owned());
    }
    Ok((entry, max_block, RawEngineOptions(options)))
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
