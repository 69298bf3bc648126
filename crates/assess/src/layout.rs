//! Making the working file of a directory and filling it before anything is measured.

use std::path::Path;

use fathom_model::Nanos;
use fathom_model::units::{bytes, duration};
use fathom_runner::{LayoutProgress, RunObserver, Session};

use crate::error::plain;
use crate::target::BenchTarget;
use crate::{AssessError, working_file};

/// What is laid out.
pub(crate) struct Layout<'a> {
    /// Where.
    pub target: &'a BenchTarget,
    /// The path that jobs name.
    pub file: &'a Path,
    /// Bytes wanted.
    pub size: u64,
    /// It will be opened for direct I/O.
    pub direct: bool,
    /// Longest time; `None` = as long as it takes.
    pub limit: Option<Nanos>,
}

/// Makes the working file where the target is a directory and fills it for as long as it may take; returns the bytes
/// that are used then.
///
/// # Errors
/// It cannot be made or written, or has too little when the time is over.
pub(crate) fn lay_out(
    layout: &Layout<'_>,
    session: &mut Session,
    observer: &mut dyn RunObserver,
    notes: &mut Vec<String>,
) -> Result<u64, AssessError> {
    let BenchTarget::Directory { path, .. } = layout.target else { return Ok(layout.size) };
    let file = working_file::make(path, layout.direct)?;
    session.hold(layout.file.to_owned(), file).map_err(|error| {
        let reason = format!("cannot inspect the test file: {}", plain(&error));
        AssessError { hint: None, ..AssessError::target(path, reason, "") }
    })?;
    let deadline = layout.limit.map(|time| session.now() + time.0);
    let mut report = |progress: &LayoutProgress| observer.layout(progress);
    let got = session.lay_out(layout.file, layout.size, deadline, &mut report)?;
    let size = got - got % (1 << 20);
    let Some(limit) = layout.limit.filter(|_| size < layout.size) else { return Ok(size) };
    if size < working_file::MIN_SIZE {
        let reason = format!("accepted only {} in {}, too little for the tests", bytes(got), duration(limit));
        let hint = "use --size 16m and more time (--runtime, --budget)";
        return Err(AssessError::target(path, reason, hint));
    }
    notes.push(format!(
        "the test file has {} instead of {}, limited by a layout time of {}; set the size with --size",
        bytes(size),
        bytes(layout.size),
        duration(limit)
    ));
    Ok(size)
}
