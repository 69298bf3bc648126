//! A file whose requests a model answers: a file system, served by threads of this process through FUSE, whose root is a regular file.
//!
//! A thread reads requests and knows at once when each completes; another answers them then. Only what a disk needs of the
//! protocol is there (`include/uapi/linux/fuse.h`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::{File, OpenOptions};
use std::io::{IoSlice, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fathom_sys::clock::monotonic_ns;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use crate::priority::GoingFirst;
use crate::shell::scratch;
use crate::wait::wait_for;

/// When the requests of a file complete. Times are those of the monotonic clock, ns.
pub(crate) trait FileModel: Send + 'static {
    /// When `request`, which arrives at `now_ns`, not before the previous one, is complete; or its error.
    fn complete_ns(&mut self, request: &FileRequest, now_ns: u64) -> Result<u64, i32>;

    /// True if requests say whether their data is zeros.
    fn sees_data(&self) -> bool {
        false
    }

    /// A request was answered so much later than it was complete.
    fn answered_late(&mut self, _late_ns: u64) {}
}

/// A request; the range lies within the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileRequest {
    pub(crate) operation: FileOperation,
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    /// True where all the data is zeros, of models that see it.
    pub(crate) is_zeros: bool,
}

/// What is asked of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileOperation {
    Read,
    Write,
    Flush,
    /// Discards a range of any length.
    Discard(u64),
}

/// A mounted file; unmounted on drop.
#[derive(Debug)]
pub(crate) struct FuseFile<M> {
    path: PathBuf,
    model: Arc<Mutex<M>>,
    threads: Vec<JoinHandle<()>>,
    _directory: TempDir,
}

/// How long the kernel may take to release the file.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest request, bytes.
const MAX_BYTES: usize = 1 << 20;
/// The header of a request, and that of an answer.
const IN_HEADER: usize = 40;
const OUT_HEADER: usize = 16;
/// What precedes the data of a write.
const WRITE_HEADER: usize = 40;
/// The version that is spoken.
const VERSION: (u32, u32) = (7, 31);
/// Pages of a request, and requests at a time.
const MAX_PAGES: u16 = 256;
const MAX_REQUESTS: u16 = u16::MAX;
/// Requests are independent of each other, large, and have more than 32 pages.
const FEATURES: u32 = 1 | 1 << 5 | 1 << 15 | 1 << 22;
/// Files are opened for direct I/O only, and written by several at a time.
const OPEN_FLAGS: u32 = 1 | 1 << 6;
/// What is known of the file stays true for this time, s.
const VALID_S: u64 = 86_400;
const REGULAR_FILE: u32 = 0o100_600;

mod operation {
    pub(super) const FORGET: u32 = 2;
    pub(super) const GETATTR: u32 = 3;
    pub(super) const OPEN: u32 = 14;
    pub(super) const READ: u32 = 15;
    pub(super) const WRITE: u32 = 16;
    pub(super) const RELEASE: u32 = 18;
    pub(super) const FSYNC: u32 = 20;
    pub(super) const FLUSH: u32 = 25;
    pub(super) const INIT: u32 = 26;
    pub(super) const INTERRUPT: u32 = 36;
    pub(super) const BATCH_FORGET: u32 = 42;
    pub(super) const FALLOCATE: u32 = 43;
}

/// The error of what the file system does not know: ENOSYS.
const UNKNOWN: i32 = -38;

/// A request that is answered later; ordered by when.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DueAnswer {
    at_ns: u64,
    unique: u64,
    body: AnswerBody,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AnswerBody {
    Read { offset: u64, length: usize },
    Written(u32),
    Done,
}

impl<M: FileModel> FuseFile<M> {
    /// A file of `size` bytes with `contents`; without, reads return zeros and nothing is kept.
    pub(crate) fn new(size: u64, model: M, contents: Option<File>) -> Self {
        let directory = scratch();
        let path = directory.path().join("disk");
        File::create_new(&path).expect("the scratch directory is new and ours");
        let options = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let fuse = options.unwrap_or_else(|error| panic!("cannot open /dev/fuse: {error}"));
        let data = format!("fd={},rootmode=100600,user_id=0,group_id=0", fuse.as_raw_fd());
        let data = std::ffi::CString::new(data).expect("there is no NUL in it");
        mount("fathom-test", &path, "fuse", MountFlags::NOSUID | MountFlags::NODEV, data.as_c_str())
            .unwrap_or_else(|error| panic!("cannot mount {}: {error}", path.display()));
        let model = Arc::new(Mutex::new(model));
        let threads = start(fuse, size, &model, contents.map(Arc::new));
        FuseFile { path, model, threads, _directory: directory }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, M> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> Drop for FuseFile<M> {
    fn drop(&mut self) {
        // A loop device is released a moment after it was detached.
        let is_unmounted = wait_for(PATIENCE, || unmount(&self.path, UnmountFlags::empty()).is_ok());
        if !is_unmounted {
            unmount(&self.path, UnmountFlags::DETACH | UnmountFlags::FORCE).ok();
        }
        // Threads whose file is still open somewhere end with it.
        for thread in self.threads.drain(..).filter(|_| is_unmounted) {
            thread.join().ok();
        }
    }
}

/// Serves the file until it is unmounted.
fn start<M: FileModel>(
    fuse: File,
    size: u64,
    model: &Arc<Mutex<M>>,
    contents: Option<Arc<File>>,
) -> Vec<JoinHandle<()>> {
    let (sender, receiver) = channel();
    let answers = fuse.try_clone().expect("a descriptor can be duplicated");
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(work).expect("a thread can be started")
    };
    vec![
        spawn("disk-answers", {
            let (model, contents) = (model.clone(), contents.clone());
            Box::new(move || answer_when_due(&answers, &receiver, &model, contents.as_deref()))
        }),
        spawn("disk-requests", {
            let model = model.clone();
            Box::new(move || FuseRequests { fuse, size, model, contents, sender }.serve())
        }),
    ]
}

/// Answers requests when they complete.
fn answer_when_due<M: FileModel>(
    mut fuse: &File,
    receiver: &Receiver<DueAnswer>,
    model: &Mutex<M>,
    contents: Option<&File>,
) {
    let _first = GoingFirst::new();
    let mut buffer = vec![0; MAX_BYTES];
    let mut waiting: BinaryHeap<Reverse<DueAnswer>> = BinaryHeap::new();
    loop {
        let left_ns = waiting.peek().map(|Reverse(next)| next.at_ns.saturating_sub(monotonic_ns()));
        let received = match left_ns {
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(0) => Err(RecvTimeoutError::Timeout),
            Some(left_ns) => receiver.recv_timeout(Duration::from_nanos(left_ns)),
        };
        match received {
            Ok(answer) => waiting.push(Reverse(answer)),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(next) = waiting.peek_mut().filter(|next| next.0.at_ns <= monotonic_ns()) {
                    let due = PeekMut::pop(next).0;
                    answer(&mut fuse, &mut buffer, &due, contents);
                    let late_ns = monotonic_ns().saturating_sub(due.at_ns);
                    model.lock().unwrap_or_else(PoisonError::into_inner).answered_late(late_ns);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn answer(fuse: &mut &File, buffer: &mut [u8], due: &DueAnswer, contents: Option<&File>) {
    let length = match due.body {
        AnswerBody::Read { offset, length } => {
            if let Some(contents) = contents {
                contents
                    .read_exact_at(&mut buffer[..length], offset)
                    .expect("the range lies within the file");
            }
            length
        }
        AnswerBody::Written(bytes) => {
            buffer[..8].copy_from_slice(&u64::from(bytes).to_ne_bytes());
            8
        }
        AnswerBody::Done => 0,
    };
    let header = header(due.unique, 0, length);
    // The kernel takes an answer as a whole, or refuses it: a request that was given up is no longer known.
    let _ = fuse.write_vectored(&[IoSlice::new(&header), IoSlice::new(&buffer[..length])]).is_ok();
    buffer[..8].fill(0);
}

struct FuseRequests<M> {
    fuse: File,
    size: u64,
    model: Arc<Mutex<M>>,
    contents: Option<Arc<File>>,
    sender: Sender<DueAnswer>,
}

impl<M: FileModel> FuseRequests<M> {
    fn serve(mut self) {
        let _first = GoingFirst::new();
        let mut buffer = vec![0; MAX_BYTES + 4096];
        loop {
            match self.fuse.read(&mut buffer) {
                Ok(length) => self.take(&buffer[..length]),
                // Unmounted.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) => return,
                Err(_) => {}
            }
        }
    }

    fn take(&mut self, request: &[u8]) {
        let now_ns = monotonic_ns();
        let (Some(operation), Some(unique)) = (u32_at(request, 4), u64_at(request, 8)) else { return };
        let body = &request[IN_HEADER.min(request.len())..];
        match operation {
            operation::READ | operation::WRITE => {
                let (offset, bytes) =
                    (u64_at(body, 8).unwrap_or(0), u32_at(body, 16).unwrap_or(0).min(MAX_BYTES as u32));
                let bytes = self.size.saturating_sub(offset).min(u64::from(bytes)) as u32;
                if operation == operation::READ {
                    let body = AnswerBody::Read { offset, length: bytes as usize };
                    self.answer_later(FileOperation::Read, offset, bytes, now_ns, unique, body);
                } else {
                    let written = AnswerBody::Written(bytes);
                    self.keep(offset, &body[WRITE_HEADER..WRITE_HEADER + bytes as usize]);
                    self.answer_later(FileOperation::Write, offset, bytes, now_ns, unique, written);
                }
            }
            operation::FSYNC => {
                self.answer_later(FileOperation::Flush, 0, 0, now_ns, unique, AnswerBody::Done);
            }
            operation::FALLOCATE if self.contents.is_some() => {
                let (offset, length) = (u64_at(body, 8).unwrap_or(0), u64_at(body, 16).unwrap_or(0));
                let length = self.size.saturating_sub(offset).min(length);
                self.discard(offset, length);
                let discard = FileOperation::Discard(length);
                self.answer_later(discard, offset, 0, now_ns, unique, AnswerBody::Done);
            }
            operation::INIT => self.answer(unique, 0, &initial(body)),
            operation::GETATTR => self.answer(unique, 0, &self.attributes()),
            operation::OPEN => {
                self.answer(unique, 0, &[1_u64.to_ne_bytes(), u64::from(OPEN_FLAGS).to_ne_bytes()].concat());
            }
            operation::RELEASE | operation::FLUSH => self.answer(unique, 0, &[]),
            operation::FORGET | operation::BATCH_FORGET | operation::INTERRUPT => {}
            _ => self.answer(unique, UNKNOWN, &[]),
        }
    }

    /// Asks the model when to answer.
    fn answer_later(
        &mut self,
        operation: FileOperation,
        offset: u64,
        bytes: u32,
        now_ns: u64,
        unique: u64,
        body: AnswerBody,
    ) {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let is_zeros = model.sees_data() && self.is_zeros(offset, bytes);
        let result = model.complete_ns(&FileRequest { operation, offset, bytes, is_zeros }, now_ns);
        drop(model);
        match result {
            Ok(at_ns) => {
                self.sender.send(DueAnswer { at_ns, unique, body }).ok();
            }
            Err(errno) => self.answer(unique, -errno, &[]),
        }
    }

    fn is_zeros(&self, offset: u64, bytes: u32) -> bool {
        let mut data = vec![0; bytes as usize];
        let contents = self.contents.as_ref();
        contents.is_none_or(|contents| contents.read_exact_at(&mut data, offset).is_ok())
            && data.iter().all(|byte| *byte == 0)
    }

    fn keep(&self, offset: u64, data: &[u8]) {
        if let Some(contents) = &self.contents {
            contents.write_all_at(data, offset).expect("the contents have room");
        }
    }

    fn discard(&self, offset: u64, length: u64) {
        let zeros = [0; 4096];
        let mut at = offset;
        while let Some(contents) = self.contents.as_ref().filter(|_| at < offset + length) {
            let bytes = (offset + length - at).min(zeros.len() as u64) as usize;
            contents.write_all_at(&zeros[..bytes], at).expect("the contents have room");
            at += bytes as u64;
        }
    }

    fn answer(&mut self, unique: u64, error: i32, body: &[u8]) {
        let bytes = [&header(unique, error, body.len()), body].concat();
        self.fuse.write_all(&bytes).ok();
    }

    /// How long they are valid, then inode, size and blocks, three times, their ns, mode, links, owners, device, block size.
    fn attributes(&self) -> Vec<u8> {
        let long = [VALID_S, 0, 1, self.size, self.size / 512, 0, 0, 0];
        let short = [0, 0, 0, REGULAR_FILE, 1, 0, 0, 0, 4096, 0_u32];
        let long = long.into_iter().flat_map(u64::to_ne_bytes);
        long.chain(short.into_iter().flat_map(u32::to_ne_bytes)).collect()
    }
}

/// Version, read-ahead, features, requests at a time and those that congest, largest write, granularity of times, pages.
fn initial(body: &[u8]) -> Vec<u8> {
    let offered = u32_at(body, 12).unwrap_or(0);
    let read_ahead = u32_at(body, 8).unwrap_or(0);
    let mut bytes: Vec<u8> = [VERSION.0, VERSION.1, read_ahead, FEATURES & offered]
        .into_iter()
        .flat_map(u32::to_ne_bytes)
        .collect();
    bytes.extend([MAX_REQUESTS, MAX_REQUESTS].into_iter().flat_map(u16::to_ne_bytes));
    bytes.extend([MAX_BYTES as u32, 1].into_iter().flat_map(u32::to_ne_bytes));
    bytes.extend(MAX_PAGES.to_ne_bytes());
    bytes.resize(64, 0);
    bytes
}

fn header(unique: u64, error: i32, length: usize) -> [u8; OUT_HEADER] {
    let mut bytes = [0; OUT_HEADER];
    bytes[..4].copy_from_slice(&((OUT_HEADER + length) as u32).to_ne_bytes());
    bytes[4..8].copy_from_slice(&error.to_ne_bytes());
    bytes[8..].copy_from_slice(&unique.to_ne_bytes());
    bytes
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_lengths_of_the_protocol() {
        let request: Vec<u8> =
            [7_u32, 45, 131_072, u32::MAX].into_iter().flat_map(u32::to_ne_bytes).collect();
        assert_eq!(initial(&request).len(), 64);
        assert_eq!(u32_at(&initial(&request), 12), Some(FEATURES));
        assert_eq!(header(9, UNKNOWN, 8)[..4], 24_u32.to_ne_bytes());
    }
}
