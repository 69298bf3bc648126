//! Passes completed requests to logs, which another thread writes.
//!
//! A worker fills buffers and hands over full ones. It has a fixed number of them, so memory does not grow with the run:
//! if all are with the log's thread, the worker waits for one, and the waits are counted.

use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use fathom_model::plan::RecordedRequest;
use fathom_model::{Request, RunPlan};
use fathom_stats::LoggedIo;
use fathom_sys::clock::clock_ms;

/// Requests per buffer.
const CAPACITY: usize = 512;
/// Buffers per worker.
const BUFFERS: usize = 4;
/// Interval at which a waiting worker looks whether the log's thread is there.
const LOOK: Duration = Duration::from_millis(100);

/// What takes the requests of a run's workers, on a thread of its own. Workers are numbered from 0 in the order of the plan.
pub trait CompletionLog: Send {
    /// Makes its files, which may replace older ones: nothing else can refuse the run any more.
    ///
    /// # Errors
    /// Why it cannot.
    fn open(&mut self) -> Result<(), String>;
    /// The measured part of `worker` begins; `clock_ms` is the reading of the clock that its plan names, else 0. Whether its
    /// engine has a submission latency is in `measures_slat`.
    fn begin(&mut self, worker: usize, clock_ms: u64, measures_slat: bool);
    /// `worker` has completed these requests, in this order.
    fn add(&mut self, worker: usize, requests: &[LoggedIo]);
    /// The measured part of `worker` has ended after `elapsed_ns`. It waited `waits` times for the log.
    fn end(&mut self, worker: usize, elapsed_ns: u64, waits: u64);
    /// `worker` has issued these requests, in this order; times are since its start. Only if its plan logs them.
    fn issued(&mut self, worker: usize, requests: &[RecordedRequest]) {
        let _ = (worker, requests);
    }
    /// `worker` issues nothing more, `at_ns` after its start. It waited `waits` times for the log.
    fn issued_all(&mut self, worker: usize, at_ns: u64, waits: u64) {
        let _ = (worker, at_ns, waits);
    }
    /// The run has ended. Returns notes for the reader.
    fn close(self: Box<Self>) -> Vec<String>;
}

enum Message {
    Begin { worker: usize, clock_ms: u64, measures_slat: bool },
    Requests { worker: usize, requests: Vec<LoggedIo>, back: Sender<Vec<LoggedIo>> },
    End { worker: usize, elapsed_ns: u64, waits: u64 },
    Issued { worker: usize, requests: Vec<RecordedRequest>, back: Sender<Vec<RecordedRequest>> },
    IssuedAll { worker: usize, at_ns: u64, waits: u64 },
    Close,
}

/// The thread of a log.
pub(crate) struct LogThread {
    messages: SyncSender<Message>,
    is_alive: Weak<()>,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl LogThread {
    /// Starts the thread for the workers of `plan`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(log: Box<dyn CompletionLog>, plan: &RunPlan) -> io::Result<LogThread> {
        let workers: usize = plan.jobs.iter().map(|job| job.clones.len()).sum();
        // Room for every message that can be on its way at once: sending never blocks.
        let (messages, inbox) = sync_channel(workers * (2 * BUFFERS + 3) + 1);
        let alive = Arc::new(());
        let is_alive = Arc::downgrade(&alive);
        let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            let _alive = alive;
            take(log, &inbox)
        })?;
        Ok(LogThread { messages, is_alive, thread: Some(thread) })
    }

    /// The way to the log for a worker.
    pub fn port(&self, worker: usize, clock: Option<u32>, measures_slat: bool) -> LogPort {
        let (messages, is_alive) = (self.messages.clone(), self.is_alive.clone());
        LogPort { worker, clock, measures_slat, messages, is_alive }
    }

    /// Closes the log and returns its notes. Abandoned workers cannot add anything any more.
    pub fn finish(mut self) -> Vec<String> {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<Vec<String>> {
        let thread = self.thread.take()?;
        let _ = self.messages.send(Message::Close);
        let panicked =
            || vec!["the thread of the logs panicked, which is a bug: the logs are incomplete".to_owned()];
        Some(thread.join().unwrap_or_else(|_| panicked()))
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.end();
    }
}

fn take(mut log: Box<dyn CompletionLog>, inbox: &Receiver<Message>) -> Vec<String> {
    while let Ok(message) = inbox.recv() {
        match message {
            Message::Begin { worker, clock_ms, measures_slat } => log.begin(worker, clock_ms, measures_slat),
            Message::Requests { worker, mut requests, back } => {
                log.add(worker, &requests);
                requests.clear();
                // A worker that has ended needs no buffer.
                let _ = back.send(requests);
            }
            Message::End { worker, elapsed_ns, waits } => log.end(worker, elapsed_ns, waits),
            Message::Issued { worker, mut requests, back } => {
                log.issued(worker, &requests);
                requests.clear();
                let _ = back.send(requests);
            }
            Message::IssuedAll { worker, at_ns, waits } => log.issued_all(worker, at_ns, waits),
            Message::Close => break,
        }
    }
    log.close()
}

/// The way to the log for one worker.
#[derive(Clone)]
pub(crate) struct LogPort {
    worker: usize,
    /// The clock that the times of the log refer to.
    clock: Option<u32>,
    measures_slat: bool,
    messages: SyncSender<Message>,
    /// Held by the log's thread.
    is_alive: Weak<()>,
}

/// A buffer that is being filled, and the way back for those that the log's thread has.
struct Buffers<T> {
    filling: Vec<T>,
    back: Sender<Vec<T>>,
    returned: Receiver<Vec<T>>,
    waits: u64,
}

impl<T> Buffers<T> {
    /// Empty buffers, all allocated.
    fn new() -> Buffers<T> {
        let (back, returned) = channel();
        for _ in 1..BUFFERS {
            let _ = back.send(Vec::with_capacity(CAPACITY));
        }
        Buffers { filling: Vec::with_capacity(CAPACITY), back, returned, waits: 0 }
    }

    /// Adds an entry; true if the buffer is full.
    fn push(&mut self, entry: T) -> bool {
        self.filling.push(entry);
        self.filling.len() == CAPACITY
    }

    /// What was filled, and the way back for its buffer.
    fn take(&mut self, is_alive: &Weak<()>) -> (Vec<T>, Sender<Vec<T>>) {
        let empty = self.returned.try_recv().unwrap_or_else(|_| {
            self.waits += 1;
            self.wait(is_alive)
        });
        (std::mem::replace(&mut self.filling, empty), self.back.clone())
    }

    /// Waits for a buffer; takes a new one if the log's thread is gone, which no longer returns any.
    fn wait(&self, is_alive: &Weak<()>) -> Vec<T> {
        loop {
            match self.returned.recv_timeout(LOOK) {
                Ok(buffer) => return buffer,
                Err(_) if is_alive.strong_count() == 0 => return Vec::with_capacity(CAPACITY),
                Err(_) => {}
            }
        }
    }
}

/// The completed requests of one worker.
pub(crate) struct LogBuffer {
    port: LogPort,
    buffers: Buffers<LoggedIo>,
}

impl LogBuffer {
    /// Empty buffers, all allocated.
    pub fn new(port: LogPort) -> LogBuffer {
        LogBuffer { port, buffers: Buffers::new() }
    }

    /// The measured part begins now.
    pub fn begin(&self) {
        let LogPort { worker, clock, measures_slat, messages, .. } = &self.port;
        let clock_ms = clock.map_or(0, clock_ms);
        // Without a receiver the run has been given up, here and below.
        let _ = messages.send(Message::Begin { worker: *worker, clock_ms, measures_slat: *measures_slat });
    }

    /// Adds a request.
    pub fn push(&mut self, request: LoggedIo) {
        if self.buffers.push(request) {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        let (requests, back) = self.buffers.take(&self.port.is_alive);
        let worker = self.port.worker;
        let _ = self.port.messages.send(Message::Requests { worker, requests, back });
    }

    /// The measured part has ended after `elapsed_ns`.
    pub fn end(mut self, elapsed_ns: u64) {
        if !self.buffers.filling.is_empty() {
            self.hand_over();
        }
        let LogPort { worker, messages, .. } = self.port;
        let _ = messages.send(Message::End { worker, elapsed_ns, waits: self.buffers.waits });
    }
}

/// The issued requests of one worker.
pub(crate) struct IssueLog {
    port: LogPort,
    buffers: Buffers<RecordedRequest>,
    /// Start of the worker, session ns.
    began: u64,
}

impl IssueLog {
    /// Empty buffers, all allocated.
    pub fn new(port: LogPort) -> IssueLog {
        IssueLog { port, buffers: Buffers::new(), began: 0 }
    }

    /// The worker begins at `now`.
    pub fn begin(&mut self, now: u64) {
        self.began = now;
    }

    /// Adds a request that is issued at `now`.
    pub fn push(&mut self, now: u64, request: &Request) {
        let at_ns = now.saturating_sub(self.began);
        if self.buffers.push(RecordedRequest { at_ns, request: *request }) {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        let (requests, back) = self.buffers.take(&self.port.is_alive);
        let worker = self.port.worker;
        let _ = self.port.messages.send(Message::Issued { worker, requests, back });
    }

    /// Nothing is issued any more at `now`.
    pub fn end(mut self, now: u64) {
        if !self.buffers.filling.is_empty() {
            self.hand_over();
        }
        let at_ns = now.saturating_sub(self.began);
        let LogPort { worker, messages, .. } = self.port;
        let _ = messages.send(Message::IssuedAll { worker, at_ns, waits: self.buffers.waits });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use fathom_model::JobPlan;
    use fathom_model::plan::ClonePlan;

    use super::*;

    /// Keeps each message as a line.
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl CompletionLog for Kept {
        fn open(&mut self) -> Result<(), String> {
            Ok(())
        }

        fn begin(&mut self, worker: usize, clock_ms: u64, _measures_slat: bool) {
            self.0.lock().unwrap().push(format!("{worker} begins at {clock_ms}"));
        }

        fn add(&mut self, worker: usize, requests: &[LoggedIo]) {
            let offsets: Vec<u64> = requests.iter().map(|request| request.offset).collect();
            assert!(offsets.is_sorted());
            let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
            self.0.lock().unwrap().push(format!("{worker}: {first} to {last}"));
        }

        fn end(&mut self, worker: usize, elapsed_ns: u64, _waits: u64) {
            self.0.lock().unwrap().push(format!("{worker} ends after {elapsed_ns}"));
        }

        fn issued(&mut self, worker: usize, requests: &[RecordedRequest]) {
            let (first, last) = (requests[0], requests[requests.len() - 1]);
            self.0.lock().unwrap().push(format!("{worker} issued {} to {}", first.at_ns, last.at_ns));
        }

        fn issued_all(&mut self, worker: usize, at_ns: u64, _waits: u64) {
            self.0.lock().unwrap().push(format!("{worker} issued all at {at_ns}"));
        }

        fn close(self: Box<Self>) -> Vec<String> {
            vec!["closed".to_owned()]
        }
    }

    fn one_worker() -> RunPlan {
        let clones = vec![ClonePlan { paths: Vec::new(), seed: 0, cpus: Vec::new() }];
        RunPlan { jobs: vec![JobPlan { clones, ..JobPlan::default() }], ..RunPlan::default() }
    }

    #[test]
    fn every_request_arrives_once_and_in_order() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = LogThread::start(Box::new(Kept(told.clone())), &one_worker()).unwrap();
        let mut buffer = LogBuffer::new(log.port(0, None, true));
        buffer.begin();
        let requests = CAPACITY as u64 * BUFFERS as u64 * 3 + 7;
        (0..requests).for_each(|offset| buffer.push(LoggedIo { offset, ..LoggedIo::default() }));
        buffer.end(9);
        assert_eq!(log.finish(), ["closed"]);
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 2 + BUFFERS * 3 + 1);
        assert_eq!((told[0].as_str(), told[1].as_str()), ("0 begins at 0", "0: 0 to 511"));
        assert_eq!(told[told.len() - 2], format!("0: {} to {}", requests - 7, requests - 1));
        assert_eq!(told[told.len() - 1], "0 ends after 9");
    }

    /// Panics on the first requests.
    struct Broken;

    impl CompletionLog for Broken {
        fn open(&mut self) -> Result<(), String> {
            Ok(())
        }

        fn begin(&mut self, _: usize, _: u64, _: bool) {}

        fn add(&mut self, _: usize, _: &[LoggedIo]) {
            panic!("as the test wants");
        }

        fn end(&mut self, _: usize, _: u64, _: u64) {}

        fn close(self: Box<Self>) -> Vec<String> {
            Vec::new()
        }
    }

    #[test]
    fn a_worker_outlives_the_thread_of_the_log() {
        let log = LogThread::start(Box::new(Broken), &one_worker()).unwrap();
        let mut buffer = LogBuffer::new(log.port(0, None, true));
        (0..CAPACITY * BUFFERS * 3).for_each(|_| buffer.push(LoggedIo::default()));
        buffer.end(1);
        assert!(log.finish()[0].contains("incomplete"));
    }

    #[test]
    fn issued_requests_have_the_time_since_the_start() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = LogThread::start(Box::new(Kept(told.clone())), &one_worker()).unwrap();
        let mut issued = IssueLog::new(log.port(0, None, false));
        issued.begin(1_000);
        let request = Request { op: fathom_model::Op::Read, file: 0, len: 1, offset: 0 };
        (0..CAPACITY as u64 + 1).for_each(|after| issued.push(1_000 + after, &request));
        issued.end(2_000);
        log.finish();
        assert_eq!(
            *told.lock().unwrap(),
            ["0 issued 0 to 511", "0 issued 512 to 512", "0 issued all at 1000"]
        );
    }

    #[test]
    fn a_log_that_is_not_used_ends_with_its_owner() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = LogThread::start(Box::new(Kept(told.clone())), &one_worker()).unwrap();
        let port = log.port(0, None, true);
        drop(log);
        LogBuffer::new(port).end(0);
        assert!(told.lock().unwrap().is_empty());
    }
}
