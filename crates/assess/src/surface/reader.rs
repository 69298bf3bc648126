//! Reads single blocks and looks at them: what they hold, how long they took, whether they can be read at all. On a thread
//! of its own, which may get stuck in a request without anybody else getting stuck.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use fathom_engine::{EngineSetup, OpenFile, RawEngineOptions, registry};
use fathom_model::{Op, Request};
use fathom_runner::{Requester, Session};
use fathom_sys::io::{OpenFlags, open_target};
use fathom_sys::residency::is_hole;

use crate::machine;

/// What is read, and how.
#[derive(Clone, Debug)]
pub(super) struct ReadSource {
    pub path: PathBuf,
    pub size: u64,
    pub is_block_device: bool,
    pub direct: bool,
    /// Largest block, bytes.
    pub max_block: usize,
}

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// Positive errno of a read that failed.
    pub errno: Option<i32>,
    pub time_ns: u64,
    /// Every byte is zero.
    pub is_zero: bool,
}

enum Ask {
    Read { offset: u64, length: u32 },
    Hole { offset: u64, length: u64 },
}

enum ReaderReply {
    Read(Look),
    Hole(bool),
}

/// A thread that reads what it is asked for.
pub(super) struct SurfaceReader {
    asks: SyncSender<Ask>,
    answers: Receiver<ReaderReply>,
}

/// How often it is looked whether to stop.
const PIECE: Duration = Duration::from_millis(50);

impl SurfaceReader {
    /// Starts the thread, which opens `source` by itself; `None` where no thread can be made.
    pub fn start(source: ReadSource) -> Option<SurfaceReader> {
        let (asks, asked) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        let work = move || work(&source, &asked, &answer);
        std::thread::Builder::new().name("surface-look".to_owned()).spawn(work).ok()?;
        Some(SurfaceReader { asks, answers })
    }

    /// Reads a block; `None` where that took longer than `patience`, the session was stopped, or nothing can be read at
    /// all. The reader is of no use any more then.
    pub fn read(&self, offset: u64, length: u32, patience: Duration, session: &Session) -> Option<Look> {
        match self.ask(Ask::Read { offset, length }, patience, session)? {
            ReaderReply::Read(look) => Some(look),
            ReaderReply::Hole(_) => None,
        }
    }

    /// Whether all of a range of a file is a hole; `None` as for [`Reader::read`].
    pub fn is_hole(&self, offset: u64, length: u64, patience: Duration, session: &Session) -> Option<bool> {
        match self.ask(Ask::Hole { offset, length }, patience, session)? {
            ReaderReply::Hole(is_hole) => Some(is_hole),
            ReaderReply::Read(_) => None,
        }
    }

    fn ask(&self, ask: Ask, patience: Duration, session: &Session) -> Option<ReaderReply> {
        let stop = session.stop_handle();
        // Looked at before as well: where each read fails at once, no wait below is long enough for a look.
        if stop.is_requested() {
            return None;
        }
        self.asks.try_send(ask).ok()?;
        let mut left = patience;
        loop {
            match self.answers.recv_timeout(PIECE.min(left)) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => left = left.saturating_sub(PIECE),
            }
            if left.is_zero() || stop.is_requested() {
                return None;
            }
        }
    }
}

/// The life of the thread. It ends when nobody asks any more.
fn work(source: &ReadSource, asked: &Receiver<Ask>, answer: &SyncSender<ReaderReply>) {
    let Some((file, mut requester)) = open(source) else { return };
    while let Ok(ask) = asked.recv() {
        let told = match ask {
            Ask::Hole { offset, length } => ReaderReply::Hole(is_hole(&file, offset, length)),
            Ask::Read { offset, length } => {
                let start = requester.now();
                let request = Request { op: Op::Read, file: 0, len: length, offset };
                let Ok(Some(result)) = requester.request(request) else { return };
                let time_ns = requester.now() - start;
                // Less than was asked for is the end of a file that has become shorter.
                let errno = match result {
                    result if result < 0 => Some(-result as i32),
                    result if result < i64::from(length) => Some(EIO),
                    _ => None,
                };
                let bytes = &requester.payload()[..length as usize];
                let is_zero = errno.is_none() && bytes.iter().all(|byte| *byte == 0);
                ReaderReply::Read(Look { errno, time_ns, is_zero })
            }
        };
        if answer.send(told).is_err() {
            return;
        }
    }
}

const EIO: i32 = 5;

fn open(source: &ReadSource) -> Option<(Arc<std::fs::File>, Requester)> {
    let flags = OpenFlags { direct: source.direct, ..OpenFlags::default() };
    let file = Arc::new(open_target(Path::new(&source.path), flags).ok()?);
    let name = if source.direct && machine::probe("io_uring").is_ok() { "io_uring" } else { "psync" };
    let setup = EngineSetup {
        depth: 1,
        max_block: source.max_block,
        files: vec![OpenFile {
            file: Some(file.clone()),
            size: source.size,
            is_block_device: source.is_block_device,
            volume: 0,
        }],
        direct: source.direct,
        writes: false,
        random: true,
        options: RawEngineOptions::default(),
    };
    Some((file, Session::real().requester(registry::find(name)?, setup).ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn what_is_there_is_told() {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        file.as_file().write_all_at(&[7], 5 * 4096).unwrap();
        let source = ReadSource {
            path: file.path().to_owned(),
            size: 1 << 20,
            is_block_device: false,
            direct: false,
            max_block: 65_536,
        };
        let (reader, session) = (SurfaceReader::start(source).unwrap(), Session::real());
        let patience = Duration::from_secs(10);
        let zero =
            |offset| reader.read(offset, 4096, patience, &session).map(|look| (look.errno, look.is_zero));
        assert_eq!(zero(0), Some((None, true)));
        assert_eq!(zero(5 * 4096), Some((None, false)));
        // Behind its end there is nothing to be read.
        assert_eq!(zero(1 << 20), Some((Some(EIO), false)));
        assert_eq!(reader.is_hole(1 << 19, 65_536, patience, &session), Some(true));
        assert_eq!(reader.is_hole(0, 65_536, patience, &session), Some(false));
        session.stop_handle().request("signal 2");
        assert!(
            SurfaceReader::start(ReadSource {
                path: "/no/such/file".into(),
                size: 0,
                is_block_device: false,
                direct: false,
                max_block: 512
            })
            .unwrap()
            .read(0, 512, patience, &session)
            .is_none()
        );
    }
}
