//! Copies to and from a mapping of the file. Syncs are msync(2) over the whole mapping.
//!
//! A page that the file cannot deliver ends its request with EIO. A write beyond the size that the file had when the
//! engine was opened ends with ENOSPC: a mapping cannot make a file longer.

use std::io;
use std::sync::Arc;

use fathom_model::{EngineOption, Op, Request};
use fathom_sys::io::{OpenFlags, flags_of, reopen};
use fathom_sys::mmap::{FileMap, MapAdvice};

use crate::immediate::{Immediate, ImmediateEngine};
use crate::private::switch;
use crate::targets::{self, EngineTarget};
use crate::{Engine, EngineEntry, EngineError, EngineSetup, EngineTraits, OpenFile};

/// The engine's entry.
pub const ENTRY: EngineEntry = EngineEntry {
    name: "mmap",
    aliases: &[],
    doc: "Copies to and from a mapping of the file; syncs are msync(2).",
    traits: EngineTraits::SYNCHRONOUS,
    options: OPTIONS,
    open,
};

const OPTIONS: &[EngineOption] = &[switch(
    "thp",
    "0",
    "Ask for huge pages (MADV_HUGEPAGE), which few file systems have; fail where the kernel refuses.",
)];

/// One mapping per file.
struct Maps(Vec<FileMap>);

fn open(setup: EngineSetup) -> Result<Box<dyn Engine>, EngineError> {
    if setup.direct {
        let source = io::Error::from(io::ErrorKind::InvalidInput);
        return Err(failed(
            "map files for direct I/O",
            source,
            "use direct=0: a mapping is in the page cache",
        ));
    }
    let mut maps = Vec::with_capacity(setup.files.len());
    for (index, open) in setup.files.iter().enumerate() {
        maps.push(map(index, open, &setup)?);
    }
    ImmediateEngine::open(ENTRY.name, &setup, Maps(maps))
}

fn map(index: usize, open: &OpenFile, setup: &EngineSetup) -> Result<FileMap, EngineError> {
    let attempted = |what: &str| format!("{what} file {index} ({} bytes)", open.size);
    let Some(file) = &open.file else {
        let source = io::Error::from(io::ErrorKind::NotFound);
        return Err(failed(&attempted("map"), source, "open the file first"));
    };
    let there = file
        .metadata()
        .map_err(|source| {
            failed(&attempted("determine the size of"), source, "check that the file still exists")
        })?
        .len();
    if open.size == 0 || (!open.is_block_device && there < open.size) {
        let source = io::Error::new(io::ErrorKind::UnexpectedEof, format!("the file has {there} bytes"));
        return Err(failed(
            &attempted("map"),
            source,
            "create the file with its full size first: a mapping cannot extend it",
        ));
    }
    // A mapping reads whole pages even to write, so a write-only file cannot be mapped.
    let flags = flags_of(file)
        .map_err(|source| failed(&attempted("inspect"), source, "check that the file still exists"))?;
    let file = if flags.read {
        Arc::clone(file)
    } else {
        let both = OpenFlags { read: true, ..flags };
        let opened = reopen(file, both);
        Arc::new(opened.map_err(|source| {
            failed(&attempted("open for reading"), source, "grant read permission, which a mapping needs")
        })?)
    };
    let advice = MapAdvice { random: setup.random, huge: setup.options.flag("thp", false) };
    FileMap::new(file, open.size, setup.writes, advice).map_err(|error| {
        let hint = advice.huge.then(|| "omit thp: the kernel may have no transparent huge pages".to_owned());
        targets::setup_failed(ENTRY.name, error, hint)
    })
}

fn failed(attempted: &str, source: io::Error, hint: &str) -> EngineError {
    EngineError { engine: ENTRY.name, attempted: attempted.to_owned(), source, hint: Some(hint.to_owned()) }
}

impl Immediate for Maps {
    #[inline]
    fn act(&mut self, target: &EngineTarget, request: &Request, bytes: &mut [u8]) -> i64 {
        let map = &mut self.0[request.file as usize];
        match request.op {
            Op::Read => map.read(bytes, request.offset),
            Op::Write => map.write(bytes, request.offset),
            Op::Sync | Op::Datasync => map.sync(),
            Op::Trim => target.execute(request),
        }
    }
}
