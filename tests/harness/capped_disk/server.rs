//! Answers the kernel's requests for a file: a file system whose root is a regular file.
//!
//! A thread reads requests and knows at once when each completes; another answers them then. Only what a disk needs of the
//! protocol is there (`include/uapi/linux/fuse.h`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fathom_sys::clock::monotonic_ns;

use super::limiter::Limiter;
use crate::priority::GoingFirst;

/// Largest request, bytes.
const MAX_BYTES: usize = 1 << 20;
/// The header of a request, and that of an answer.
const IN_HEADER: usize = 40;
const OUT_HEADER: usize = 16;
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
}

/// The error of what the file system does not know: ENOSYS.
const UNKNOWN: i32 = -38;

/// A request that is answered later; ordered by when.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DueAnswer {
    at_ns: u64,
    unique: u64,
    /// Zeros to return, or bytes that were written.
    body: AnswerBody,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AnswerBody {
    Zeros(usize),
    Written(u32),
}

/// Serves a file of `size` bytes until it is unmounted.
pub(super) fn start(fuse: File, size: u64, limiter: Arc<Mutex<Limiter>>) -> Vec<JoinHandle<()>> {
    let (sender, receiver) = channel();
    let answers = fuse.try_clone().expect("a descriptor can be duplicated");
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(work).expect("a thread can be started")
    };
    vec![
        spawn("disk-answers", {
            let limiter = limiter.clone();
            Box::new(move || answer_when_due(&answers, &receiver, &limiter))
        }),
        spawn("disk-requests", Box::new(move || FuseRequests { fuse, size, limiter, sender }.serve())),
    ]
}

/// Answers requests when they complete.
fn answer_when_due(mut fuse: &File, receiver: &Receiver<DueAnswer>, limiter: &Mutex<Limiter>) {
    let _first = GoingFirst::new();
    let mut buffer = vec![0; OUT_HEADER + MAX_BYTES];
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
                    answer(&mut fuse, &mut buffer, &due);
                    let late_ns = monotonic_ns().saturating_sub(due.at_ns);
                    limiter.lock().unwrap_or_else(PoisonError::into_inner).answered_late(late_ns);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn answer(fuse: &mut &File, buffer: &mut [u8], DueAnswer { unique, body, .. }: &DueAnswer) {
    let length = match body {
        AnswerBody::Zeros(length) => *length,
        AnswerBody::Written(bytes) => {
            buffer[OUT_HEADER..OUT_HEADER + 8].copy_from_slice(&u64::from(*bytes).to_ne_bytes());
            8
        }
    };
    buffer[..OUT_HEADER].copy_from_slice(&header(*unique, 0, length));
    // A request that was given up is no longer known.
    fuse.write_all(&buffer[..OUT_HEADER + length]).ok();
    buffer[OUT_HEADER..OUT_HEADER + 8].fill(0);
}

struct FuseRequests {
    fuse: File,
    size: u64,
    limiter: Arc<Mutex<Limiter>>,
    sender: Sender<DueAnswer>,
}

impl FuseRequests {
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
                let left = self.size.saturating_sub(offset).min(u64::from(bytes)) as u32;
                let mut limiter = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
                let at_ns = limiter.complete_ns(now_ns, bytes);
                let body = match operation {
                    operation::READ => AnswerBody::Zeros(left as usize),
                    _ => AnswerBody::Written(bytes),
                };
                self.sender.send(DueAnswer { at_ns, unique, body }).ok();
            }
            operation::INIT => self.answer(unique, 0, &initial(body)),
            operation::GETATTR => self.answer(unique, 0, &self.attributes()),
            operation::OPEN => {
                self.answer(unique, 0, &[1_u64.to_ne_bytes(), u64::from(OPEN_FLAGS).to_ne_bytes()].concat());
            }
            operation::RELEASE | operation::FSYNC | operation::FLUSH => self.answer(unique, 0, &[]),
            operation::FORGET | operation::BATCH_FORGET | operation::INTERRUPT => {}
            _ => self.answer(unique, UNKNOWN, &[]),
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
