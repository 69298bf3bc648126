//! The properties of engines that the grammar needs. They are passed in, so that this crate does not import the
//! engines.

use fathom_model::EngineOption;

use crate::{refused_engines, table};

/// One engine: its names and private options.
#[derive(Clone, Copy, Debug)]
pub struct EngineRow {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// One line for `--enghelp`.
    pub doc: &'static str,
    /// Its queue depth is 1, whatever `iodepth` says.
    pub synchronous: bool,
    pub options: &'static [EngineOption],
}

/// The engine of this name or alias.
pub(crate) fn find<'a>(engines: &'a [EngineRow], name: &str) -> Option<&'a EngineRow> {
    engines.iter().find(|row| row.name == name || row.aliases.contains(&name))
}

/// The private option of this name.
pub(crate) fn find_option(engine: &EngineRow, name: &str) -> Option<&'static EngineOption> {
    engine.options.iter().find(|option| option.name == name)
}

/// All names of the private options of an engine.
pub(crate) fn option_names(engine: &EngineRow) -> impl Iterator<Item = &'static str> {
    engine.options.iter().map(|option| option.name)
}

/// The reason why an engine is unknown, and the remedy.
pub(crate) fn why_missing(engines: &[EngineRow], name: &str) -> (String, String) {
    let known: Vec<&str> = engines.iter().map(|row| row.name).collect();
    let use_one = format!("use one of {}", known.join(", "));
    if let Some(row) = refused_engines::find(name) {
        let reason = format!("fio's engine {name} is not supported: it {}", row.does);
        return (reason, row.instead.to_owned());
    }
    let remedy = match table::nearest(name, known.iter().copied()) {
        Some(near) => format!("Did you mean {near}?"),
        None => use_one,
    };
    ("there is no such engine".to_owned(), remedy)
}

/// Whether fio's engine acts on the names of files, and has only a completion latency.
pub(crate) fn acts_on_names(name: &str) -> bool {
    ["filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete"].contains(&name)
}

/// Whether fio's engine makes or removes files, whatever `rw` says.
pub(crate) fn changes_names(name: &str) -> bool {
    acts_on_names(name) && !name.ends_with("stat")
}

/// What to do instead of giving a private option that no engine has here.
pub(crate) fn instead_of(engine: &str) -> String {
    format!("omit it, or see --enghelp={engine} for the options of the engine")
}

/// Names of private options of fio's engines, so that unsupported ones are refused as such.
pub(crate) const FIO_ENGINE_OPTIONS: &[&str] = &[
    "apptag", "apptag_mask", "cmd_type", "cpuchunks", "cpuload", "cpumode", "deac", "fixedbufs",
    "force_async", "hipri", "hipri_percentage", "libaio_vectored", "md_per_io_size", "nonvectored", "nowait",
    "pi_act", "pi_chk", "readfua", "registerfiles", "sqthread_poll", "sqthread_poll_cpu", "thp", "uncached",
    "userspace_reap", "verify_mode", "write_mode", "writefua",
];
