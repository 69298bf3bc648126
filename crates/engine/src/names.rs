//! Engines that make, inspect or remove files and directories by name, one per request, and move no data.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;

use fathom_model::{EngineOption, Nanos, OptionValueKind, Request};
use fathom_sys::names;

use crate::targets::EINVAL;
use crate::{
    Completion, Engine, EngineEntry, EngineError, EngineSetup, EngineTraits, NameUse, Queued, Reaped,
};

const fn traits(names: NameUse) -> EngineTraits {
    EngineTraits { moves_data: false, names: Some(names), ..EngineTraits::SYNCHRONOUS }
}

const fn entry(
    name: &'static str,
    doc: &'static str,
    names: NameUse,
    options: &'static [EngineOption],
    open: fn(EngineSetup) -> Result<Box<dyn Engine>, EngineError>,
) -> EngineEntry {
    EngineEntry { name, aliases: &[], doc, traits: traits(names), options, open }
}

/// The entries, in the order of the list of engines.
pub const FILE_CREATE: EngineEntry = entry(
    "filecreate",
    "open(2) of a file that does not exist yet, and close(2): one request per file.",
    NameUse::MakeFile,
    &[],
    |setup| NamesEngine::open("filecreate", &setup, names::make_file),
);
/// `filestat`.
pub const FILE_STAT: EngineEntry = entry(
    "filestat",
    "stat(2) of a file: one request per file.",
    NameUse::InspectFile,
    STAT_OPTIONS,
    |setup| NamesEngine::open("filestat", &setup, inspection(&setup)),
);
/// `filedelete`.
pub const FILE_DELETE: EngineEntry =
    entry("filedelete", "unlink(2) of a file: one request per file.", NameUse::RemoveFile, &[], |setup| {
        NamesEngine::open("filedelete", &setup, names::remove_file)
    });
/// `dircreate`.
pub const DIR_CREATE: EngineEntry =
    entry("dircreate", "mkdir(2): one request per name.", NameUse::MakeDirectory, &[], |setup| {
        NamesEngine::open("dircreate", &setup, names::make_directory)
    });
/// `dirstat`.
pub const DIR_STAT: EngineEntry = entry(
    "dirstat",
    "stat(2) of a directory: one request per directory.",
    NameUse::InspectDirectory,
    STAT_OPTIONS,
    |setup| NamesEngine::open("dirstat", &setup, inspection(&setup)),
);
/// `dirdelete`.
pub const DIR_DELETE: EngineEntry = entry(
    "dirdelete",
    "rmdir(2) of an empty directory: one request per directory.",
    NameUse::RemoveDirectory,
    &[],
    |setup| NamesEngine::open("dirdelete", &setup, names::remove_directory),
);

const STAT_TYPES: &[&str] = &["statx", "stat", "lstat"];

const STAT_OPTIONS: &[EngineOption] = &[EngineOption {
    name: "stat_type",
    kind: OptionValueKind::Choice(STAT_TYPES),
    default: "stat",
    doc: "The system call that inspects a file.",
    check: |value| match STAT_TYPES.contains(&value) {
        true => Ok(()),
        false => Err(format!("use one of {}", STAT_TYPES.join(", "))),
    },
}];

/// A request on a name.
type Act = fn(&CStr) -> i64;

fn inspection(setup: &EngineSetup) -> Act {
    match setup.options.0.get("stat_type").map(String::as_str) {
        Some("lstat") => names::inspect_link,
        Some("statx") => names::inspect_extended,
        _ => names::inspect,
    }
}

struct NamesEngine {
    names: Box<[CString]>,
    act: Act,
}

impl NamesEngine {
    fn open(engine: &'static str, setup: &EngineSetup, act: Act) -> Result<Box<dyn Engine>, EngineError> {
        let name = |path: &std::path::PathBuf| {
            CString::new(path.as_os_str().as_bytes()).map_err(|_| EngineError {
                engine,
                attempted: format!("use the name {}", path.display()),
                source: std::io::ErrorKind::InvalidInput.into(),
                hint: Some("omit the zero byte".to_owned()),
            })
        };
        let names = setup.paths.iter().map(name).collect::<Result<_, _>>()?;
        Ok(Box::new(NamesEngine { names, act }))
    }
}

impl Engine for NamesEngine {
    #[inline]
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        let Some(&slot) = slots.first() else { return Queued::Accepted(0) };
        let request = &requests[slot as usize];
        if request.op.is_sync() {
            return Queued::Done(0);
        }
        let Some(name) = self.names.get(request.file as usize) else { return Queued::Done(EINVAL) };
        match (self.act)(name) {
            0 => Queued::Done(i64::from(request.len)),
            errno => Queued::Done(errno),
        }
    }

    fn submit(&mut self) -> Result<u32, EngineError> {
        Ok(0)
    }

    fn reap(
        &mut self,
        _min: u32,
        _max: u32,
        _wait: Option<Nanos>,
        _done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        Ok(Reaped::Some(0))
    }

    fn payload(&mut self, _slot: u32) -> &mut [u8] {
        &mut []
    }
}
