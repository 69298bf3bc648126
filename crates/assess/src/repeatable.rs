//! Sources that are read more than once: a file by its descriptor, a pipe from a copy without a name.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_sys::files::{InputCause, InputError, TRACE};

use crate::AssessError;
use crate::error::plain;
use crate::working_file::make_unnamed;

/// Bytes of a pipe that are kept in memory; beyond that they are copied to a file.
const MAX_IN_MEMORY: u64 = 8 << 20;
/// Bytes that are copied at once.
const COPIED: u64 = 1 << 20;
/// Where copies are made unless TMPDIR names another directory. /tmp may be memory.
const USUAL_DIRECTORY: &str = "/var/tmp";

/// A source of bytes that can be read again and again.
#[derive(Clone, Debug)]
pub(crate) enum RepeatableSource {
    /// What a pipe gave.
    Memory(Arc<Vec<u8>>),
    /// A part of a file.
    File {
        /// The file, whose position is not used.
        file: Arc<File>,
        /// Where the part begins.
        start: u64,
        /// Where it ends: what is appended meanwhile is not read.
        end: u64,
    },
}

impl RepeatableSource {
    /// What a pipe gives from now on, up to its end; errors call it `name`.
    ///
    /// # Errors
    /// It cannot be read or copied.
    pub(crate) fn of_pipe(name: &str, reader: &mut dyn Read) -> Result<RepeatableSource, AssessError> {
        let unread =
            |error| InputError { noun: TRACE.noun, name: name.to_owned(), cause: InputCause::Io(error) };
        let mut part = Vec::new();
        reader.take(MAX_IN_MEMORY).read_to_end(&mut part).map_err(unread)?;
        if (part.len() as u64) < MAX_IN_MEMORY {
            return Ok(RepeatableSource::Memory(Arc::new(part)));
        }
        let directory = directory();
        let failed = |error: io::Error| copy_failed(name, &directory, &error);
        let (mut copy, mut end) = (make_unnamed(&directory).map_err(failed)?, 0);
        while !part.is_empty() {
            copy.write_all(&part).map_err(failed)?;
            end += part.len() as u64;
            part.clear();
            reader.take(COPIED).read_to_end(&mut part).map_err(unread)?;
        }
        Ok(RepeatableSource::File { file: Arc::new(copy), start: 0, end })
    }

    /// Reads it from its beginning.
    pub(crate) fn reader(&self) -> RepeatedReader {
        let at = match self {
            RepeatableSource::Memory(_) => 0,
            RepeatableSource::File { start, .. } => *start,
        };
        RepeatedReader { source: self.clone(), at }
    }
}

fn directory() -> PathBuf {
    let named = std::env::var_os("TMPDIR").filter(|name| !name.is_empty());
    named.map_or_else(|| PathBuf::from(USUAL_DIRECTORY), PathBuf::from)
}

fn copy_failed(name: &str, directory: &Path, error: &io::Error) -> AssessError {
    AssessError::usage(
        format!("cannot copy {name} to {}: {}", directory.display(), plain(error)),
        "name the file itself, or set TMPDIR to a directory with enough room: the recording is read several times",
    )
}

/// Reads a source from its beginning; several may do so at once.
#[derive(Debug)]
pub(crate) struct RepeatedReader {
    source: RepeatableSource,
    at: u64,
}

impl Read for RepeatedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = match &self.source {
            RepeatableSource::Memory(bytes) => {
                let at = (self.at as usize).min(bytes.len());
                (&bytes[at..]).read(into)?
            }
            RepeatableSource::File { file, end, .. } => {
                let left = usize::try_from(end.saturating_sub(self.at)).unwrap_or(usize::MAX);
                let count = into.len().min(left);
                file.read_at(&mut into[..count], self.at)?
            }
        };
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &RepeatableSource) -> Vec<u8> {
        let mut bytes = Vec::new();
        source.reader().read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn pipes_and_parts_of_files_are_read_as_often_as_one_likes() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before, and behind").unwrap();
        let part = RepeatableSource::File { file: Arc::new(file), start: 8, end: 11 };
        assert_eq!((read(&part), read(&part)), (b"and".to_vec(), b"and".to_vec()));
        let long: Vec<u8> = (0..MAX_IN_MEMORY + 12_345).map(|index| (index % 251) as u8).collect();
        for (bytes, is_copied) in [(&[][..], false), (&long[..1_000], false), (&long[..], true)] {
            let source = RepeatableSource::of_pipe("t", &mut { bytes }).unwrap();
            assert!(read(&source) == bytes && read(&source) == bytes, "{} bytes", bytes.len());
            assert_eq!(matches!(source, RepeatableSource::File { .. }), is_copied);
        }
    }
}
