//! What the fio grammar needs to know of this machine: its engines, its CPUs and a random number.

use std::hash::{BuildHasher, Hasher, RandomState};

use fathom_engine::registry;
use fathom_engine::{EngineError, EngineSetup, RawEngineOptions};
use fathom_options::{EngineRow, PlanningHost};
use fathom_sys::device::SysRoot;
use fathom_sys::device::host::count_cpus;

/// The rows of every engine a job can name.
pub fn engine_rows() -> Vec<EngineRow> {
    let row = |entry: &fathom_engine::EngineEntry| EngineRow {
        name: entry.name,
        aliases: entry.aliases,
        doc: entry.doc,
        synchronous: entry.traits.synchronous,
        options: entry.options,
    };
    registry::all().map(row).collect()
}

/// What resolving options must know of this machine.
pub fn host_facts() -> PlanningHost {
    let online = SysRoot::real().text("/sys/devices/system/cpu/online").and_then(|list| count_cpus(&list));
    PlanningHost { cpus: online.map_or(1, |count| count as usize), entropy: random() }
}

/// 64 random bits: the standard library keys its hashes from the kernel's random source.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Opens `engine` once without files: what a kernel forbids, it forbids here.
pub(crate) fn probe(engine: &str) -> Result<(), EngineError> {
    let Some(entry) = registry::find(engine) else { return Ok(()) };
    let setup = EngineSetup {
        depth: 1,
        max_block: 4096,
        files: Vec::new(),
        paths: Vec::new(),
        random: false,
        direct: true,
        writes: false,
        options: RawEngineOptions::default(),
        priorities: Default::default(),
    };
    (entry.open)(setup).map(drop)
}
