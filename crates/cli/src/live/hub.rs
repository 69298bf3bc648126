//! The state of the run and all who read it: changes come from the thread that follows the run, and no reader holds it up.
//!
//! A reader that is slow fills a queue of limited length; lines beyond it are dropped and counted, and nobody waits. Other processes
//! find a run by a socket in the abstract namespace, named by the history and the number of the run: it is looked for when the state
//! changes, which costs a system call that does not wait. Every user can take such a name. So it ends in a random number, lest another
//! user takes it before the run does, and it marks a run only if this user or root has it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fathom_history::{HistoryPath, Kept, Location, RunId};
use fathom_report::TextWriter;
use fathom_report::live::json::{self, LinePlace, LiveLine};
use fathom_report::live::{LiveState, metrics};
use fathom_sys::abstract_socket::{self, is_trusted};
use fathom_sys::priority::set_nice;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, StatusCode};
use rustix::net::RecvFlags;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

use super::NICE;
use crate::http::OwnNames;
use crate::http::{Answer, Handler, Limits, Request, Server};

/// A run that other processes can follow, until this is dropped.
pub struct OpenToFollowers {
    hub: Arc<Hub>,
    run: RunId,
}

impl Drop for OpenToFollowers {
    fn drop(&mut self) {
        self.hub.followers.close(self.run);
    }
}

/// The state, and the streams that receive each change.
pub struct Hub {
    state: Mutex<LiveState>,
    streams: Vec<LineStream>,
    /// Other processes that read it.
    followers: Followers,
    /// Somebody reads what the tests tell as soon as they end.
    pub wants_findings: bool,
    /// Changes with the state, to be asked without holding it up.
    version: AtomicU64,
    metrics: Mutex<RenderedMetrics>,
}

/// The text of the metrics, made once for all who ask before the next change.
#[derive(Default)]
struct RenderedMetrics {
    version: Option<u64>,
    text: Arc<Vec<u8>>,
}

impl Hub {
    /// A run in `state`, told to `streams`.
    pub fn new(state: LiveState, streams: Vec<LineStream>) -> Hub {
        let (version, metrics) = (AtomicU64::new(0), Mutex::default());
        let followers = Followers::default();
        Hub { state: Mutex::new(state), streams, followers, wants_findings: true, version, metrics }
    }

    /// A run that nobody reads here, which others may follow.
    pub fn for_followers(state: LiveState) -> Hub {
        Hub { wants_findings: false, ..Hub::new(state, Vec::new()) }
    }

    /// From now on other processes can follow the run, where it is kept in a history.
    pub fn open_to_followers(self: &Arc<Self>, place: &HistoryPath, kept: &Kept) -> Option<OpenToFollowers> {
        let (history, Kept::Run(run)) = (place.history.as_ref()?, kept) else { return None };
        // Whoever has taken its place keeps the run from being followed, not from being measured.
        self.followers.open(history, *run).ok()?;
        Some(OpenToFollowers { hub: self.clone(), run: *run })
    }

    /// Changes the state, and tells the streams.
    pub fn change(&self, line: Option<LiveLine<'_>>, change: impl FnOnce(&mut LiveState)) {
        let mut state = self.state();
        change(&mut state);
        self.version.fetch_add(1, Ordering::AcqRel);
        if let Some(line) = line {
            self.streams.iter().for_each(|stream| stream.send(line, &state));
        }
        self.followers.tell(line, &state);
    }

    /// The state as it is now. Whoever reads it lets go of it before it writes anything anywhere.
    pub fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The metrics of the latest state. However many ask, the state is read once for each change: the run does not wait for
    /// those who read it.
    ///
    /// # Errors
    /// They cannot be written, which does not happen.
    pub fn metrics(&self) -> io::Result<Arc<Vec<u8>>> {
        let mut rendered = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        let version = Some(self.version.load(Ordering::Acquire));
        if rendered.version != version {
            let mut text = Vec::new();
            metrics::render(&self.state(), &mut text)?;
            *rendered = RenderedMetrics { version, text: Arc::new(text) };
        }
        Ok(rendered.text.clone())
    }

    /// Ends the streams: waits a limited time for their readers.
    pub fn finish(&self) {
        self.streams.iter().for_each(LineStream::finish);
    }
}

/// Lines that wait for their reader.
const QUEUE: usize = 256;
/// Time that the reader gets for them at the end.
const PATIENCE: Duration = Duration::from_millis(1000);

/// A stream of lines.
pub struct LineStream(Mutex<Open>);

struct Open {
    /// `None` once it has been finished.
    queue: Option<SyncSender<Vec<u8>>>,
    place: LinePlace,
    /// Disconnects when the last line has been written.
    is_written: Receiver<()>,
}

impl LineStream {
    /// A stream to `file`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn to(file: File) -> io::Result<LineStream> {
        let (queue, lines) = sync_channel::<Vec<u8>>(QUEUE);
        let (writing, is_written) = channel::<()>();
        let write = move || {
            let _writing = writing;
            // The measurement has the CPUs first; without the right to lower it, it stays as it is.
            let _ = set_nice(NICE);
            let mut file = file;
            for line in lines {
                // A reader that has gone has seen enough.
                if file.write_all(&line).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("live-lines".to_owned()).spawn(write)?;
        Ok(LineStream(Mutex::new(Open { queue: Some(queue), place: LinePlace::default(), is_written })))
    }

    /// Sends a line about `state`, or drops it where the reader is slow.
    pub fn send(&self, line: LiveLine<'_>, state: &LiveState) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Open { queue: Some(queue), place, .. } = &mut *open else { return };
        place.line += 1;
        let mut bytes = Vec::new();
        // A vector takes everything.
        let _ = json::write(line, state, *place, &mut TextWriter::new(&mut bytes).json());
        if queue.try_send(bytes).is_err() {
            place.dropped += 1;
        }
    }

    /// Whether somebody reads it: false once a line could not be written.
    pub fn is_read(&self) -> bool {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !matches!(open.is_written.try_recv(), Err(TryRecvError::Disconnected))
    }

    /// No line follows: waits a limited time for the reader of those that were sent.
    pub fn finish(&self) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.queue.take().is_some() {
            let _ = open.is_written.recv_timeout(PATIENCE);
        }
    }
}

/// Processes that follow a run at the same time; further ones are turned away.
const MOST: usize = 8;

/// Connections that are looked at at once: any user can make them, also faster than they are refused.
const ADMITTED_AT_ONCE: usize = 64;

/// The followers of the run that goes on, if it can be followed.
#[derive(Default)]
pub struct Followers(Mutex<Vec<OpenRun>>);

/// A run that can be followed. Where targets are measured in turns there are several.
struct OpenRun {
    run: RunId,
    listener: UnixListener,
    streams: Vec<LineStream>,
}

impl Followers {
    /// From now on `run` of `history` can be followed.
    ///
    /// # Errors
    /// There are no sockets for this process.
    pub fn open(&self, history: &Location, run: RunId) -> io::Result<()> {
        let listener = listen(history, run)?;
        self.runs().push(OpenRun { run, listener, streams: Vec::new() });
        Ok(())
    }

    /// `run` has ended, and is kept: its followers get no more lines.
    pub fn close(&self, run: RunId) {
        self.runs().retain(|followed| followed.run != run);
    }

    /// Tells them of a change that led to `state`, and admits new ones.
    pub fn tell(&self, line: Option<LiveLine<'_>>, state: &LiveState) {
        for followed in self.runs().iter_mut() {
            if let Some(line) = line {
                followed.streams.iter().for_each(|stream| stream.send(line, state));
            }
            followed.streams.retain(LineStream::is_read);
            followed.admit(state);
        }
    }

    fn runs(&self) -> MutexGuard<'_, Vec<OpenRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenRun {
    fn admit(&mut self, state: &LiveState) {
        for (stream, _) in (0..ADMITTED_AT_ONCE).map_while(|_| self.listener.accept().ok()) {
            if self.streams.len() >= MOST || !is_trusted(&stream) || has_left(&stream) {
                continue;
            }
            // Who cannot have a thread cannot follow.
            if let Ok(stream) = LineStream::to(File::from(OwnedFd::from(stream))) {
                stream.send(LiveLine::State, state);
                self.streams.push(stream);
            }
        }
    }
}

/// Whether the other end is closed already: it only asked whether the run goes on.
fn has_left(stream: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(rustix::net::recv(stream, &mut [0_u8; 1][..], flags), Ok((0, _)))
}

/// How the names begin.
const PREFIX: &str = "fathom-run";

/// What the names of the runs of a history have in common.
fn prefix(history: &Location) -> String {
    let name = match history {
        Location::File(path) => fs::canonicalize(path).unwrap_or_else(|_| path.clone()).display().to_string(),
        Location::Server(_) => history.to_string(),
    };
    let digest = Sha256::digest(name.as_bytes());
    let hex: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}-{hex}-")
}

/// Makes a place for `run`. Accepting from it does not wait.
///
/// # Errors
/// There are no sockets for this process.
pub fn listen(history: &Location, run: RunId) -> io::Result<UnixListener> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty())?;
    let name = format!("{}{run}-{:016x}", prefix(history), u64::from_ne_bytes(random));
    let listener = abstract_socket::listen(&name)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects to `run`.
///
/// # Errors
/// It does not go on, or not as this user or root.
pub fn connect(history: &Location, run: RunId) -> io::Result<UnixStream> {
    let names = abstract_socket::names(&format!("{}{run}-", prefix(history)));
    let mut streams = names.iter().filter_map(|name| abstract_socket::connect(name).ok());
    streams.next().ok_or_else(|| io::ErrorKind::ConnectionRefused.into())
}

/// The runs of `history` that go on on this machine, as this user or root.
pub fn running(history: &Location) -> BTreeSet<RunId> {
    let prefix = prefix(history);
    let run = |name: &String| {
        let (run, _) = name.strip_prefix(&prefix)?.split_once('-')?;
        let run = run.parse().ok()?;
        abstract_socket::connect(name).is_ok().then_some(run)
    };
    abstract_socket::names(&prefix).iter().filter_map(run).collect()
}

/// A scraper comes at intervals, and asks once.
const LIMITS: Limits =
    Limits { clients: 16, body_bytes: 0, stack_bytes: 256 << 10, nice: NICE, keeps_alive: false };

/// An endpoint that listens.
pub struct Endpoint {
    server: Server,
    names: OwnNames,
}

impl Endpoint {
    /// Listens on `address`; clients reach it by the names of this machine, and by `host_names`.
    ///
    /// # Errors
    /// The address is in use, or not one of this machine.
    pub fn listen(address: SocketAddr, host_names: &[String]) -> io::Result<Endpoint> {
        let unknown =
            "This endpoint is not known by that name. `--live openmetrics=ADDR:PORT,NAME` adds one.";
        Ok(Endpoint { server: Server::listen(address)?, names: OwnNames::new(host_names, unknown) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.server.address()
    }

    /// Serves the state of `hub` from now on, until the program ends.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn serve(self, hub: Arc<Hub>) -> io::Result<()> {
        self.server.serve(Arc::new(Metrics { hub, names: self.names }), LIMITS)
    }
}

struct Metrics {
    hub: Arc<Hub>,
    names: OwnNames,
}

impl Handler for Metrics {
    fn answer(&self, request: &Request) -> Answer {
        if !matches!(request.head.method, Method::GET | Method::HEAD) {
            let allowed = HeaderValue::from_static("GET, HEAD");
            return Answer::refusal(StatusCode::METHOD_NOT_ALLOWED).with(ALLOW, allowed);
        }
        if let Err((status, reason)) = self.names.admit(&request.head) {
            return Answer::whole(status, "text/plain; charset=utf-8", format!("{reason}\n"));
        }
        if request.head.uri.path() != "/metrics" {
            return Answer::refusal(StatusCode::NOT_FOUND);
        }
        match self.hub.metrics() {
            Ok(text) => Answer::shared(metrics::CONTENT_TYPE, text),
            Err(_) => Answer::refusal(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_report::live::LiveState;
    use rustix::process::Uid;
    use serde_json::Value;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{Ipv4Addr, TcpStream};

    fn pipe() -> (File, File) {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        (File::from(reader), File::from(writer))
    }

    #[test]
    fn each_line_is_an_object_with_its_number() {
        let (reader, writer) = pipe();
        let stream = LineStream::to(writer).unwrap();
        let state = LiveState::default();
        stream.send(LiveLine::Begun, &state);
        stream.send(LiveLine::Message("a \u{1b}[31m\nb"), &state);
        stream.finish();
        stream.send(LiveLine::Ended, &state);
        drop(stream);
        let lines: Vec<Value> = BufReader::new(reader)
            .lines()
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect();
        let of = |index: usize, key: &str| lines[index][key].clone();
        assert_eq!(lines.len(), 2, "what comes after the end is not sent");
        assert_eq!(
            (of(0, "type"), of(0, "line"), of(0, "schema")),
            ("begin".into(), 1.into(), json::SCHEMA.into())
        );
        assert_eq!((of(1, "text"), of(1, "line")), ("a \u{1b}[31m\nb".into(), 2.into()));
    }

    #[test]
    fn a_reader_that_never_reads_loses_lines_and_holds_up_nobody() {
        let (reader, writer) = pipe();
        let stream = LineStream::to(writer).unwrap();
        let (state, long) = (LiveState::default(), "x".repeat(4096));
        let sent = 2 * QUEUE as u64;
        (0..sent).for_each(|_| stream.send(LiveLine::Message(&long), &state));
        let place = stream.0.lock().unwrap().place;
        // The pipe holds 16 of them, and one is being written.
        assert_eq!(place.line, sent);
        assert!(place.dropped >= sent - QUEUE as u64 - 17, "{place:?}");
        drop(reader);
        stream.finish();
    }

    #[test]
    fn a_follower_gets_the_state_and_then_every_line() {
        let history = Location::new(format!("/no/such/followers/{}/h.db", std::process::id()));
        let (followers, state) = (Followers::default(), LiveState::default());
        followers.open(&history, RunId(1)).unwrap();
        followers.open(&history, RunId(2)).unwrap();
        let mut follower = connect(&history, RunId(1)).unwrap();
        followers.tell(Some(LiveLine::Message("before")), &state);
        followers.tell(Some(LiveLine::Message("after")), &state);
        followers.close(RunId(1));
        assert_eq!(running(&history).into_iter().collect::<Vec<_>>(), [RunId(2)]);
        let mut text = String::new();
        follower.read_to_string(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].contains("\"type\":\"state\"") && lines[1].contains("after"), "{text}");
        // One that only asked whether it goes on is no follower.
        drop(connect(&history, RunId(2)).unwrap());
        followers.tell(None, &state);
        assert!(followers.runs()[0].streams.is_empty());
        // Many who ask hold up neither the run nor, in the end, a follower.
        (0..ADMITTED_AT_ONCE).for_each(|_| drop(connect(&history, RunId(2)).unwrap()));
        let follower = connect(&history, RunId(2)).unwrap();
        followers.tell(None, &state);
        assert!(followers.runs()[0].streams.is_empty());
        // One that has gone is forgotten.
        followers.tell(None, &state);
        assert_eq!(followers.runs()[0].streams.len(), 1);
        drop(follower);
        while !followers.runs()[0].streams.is_empty() {
            followers.tell(Some(LiveLine::Snapshot), &state);
            std::thread::yield_now();
        }
    }

    fn history(end: &str) -> Location {
        Location::new(format!("/no/such/{}/{end}.db", std::process::id()))
    }

    #[test]
    fn a_run_is_found_while_it_listens() {
        let history = history("h");
        assert_eq!(connect(&history, RunId(3)).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let listener = listen(&history, RunId(3)).unwrap();
        assert_eq!(running(&history), BTreeSet::from([RunId(3)]));
        assert!(connect(&history, RunId(3)).is_ok() && connect(&history, RunId(30)).is_err());
        drop(listener);
        assert_eq!(running(&history), BTreeSet::new());
    }

    #[test]
    fn another_user_marks_no_run_and_takes_the_place_of_none() {
        let history = history("foreign");
        let other = Uid::from_raw(65_534);
        let squat = || {
            // Root alone can be another user; the kernel changes that of this thread only.
            rustix::thread::set_thread_res_uid(other, other, other).ok()?;
            Some(listen(&history, RunId(3)).unwrap())
        };
        let Some(_foreign) = std::thread::scope(|scope| scope.spawn(squat).join().unwrap()) else { return };
        assert_eq!(running(&history), BTreeSet::new());
        assert!(connect(&history, RunId(3)).is_err());
        let _own = listen(&history, RunId(3)).unwrap();
        assert_eq!(running(&history), BTreeSet::from([RunId(3)]));
        assert!(connect(&history, RunId(3)).is_ok());
    }

    fn answer(address: SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    fn endpoint(host_names: &[String]) -> SocketAddr {
        let endpoint = Endpoint::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), host_names).unwrap();
        let address = endpoint.address().unwrap();
        endpoint.serve(Arc::new(Hub::new(LiveState::default(), Vec::new()))).unwrap();
        address
    }

    #[test]
    fn clients_that_say_nothing_keep_nobody_from_the_figures() {
        let address = endpoint(&[]);
        let silent: Vec<TcpStream> =
            (0..LIMITS.clients * 2).map(|_| TcpStream::connect(address).unwrap()).collect();
        let text = answer(address, "GET /metrics?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
        assert!(body.starts_with("# TYPE ") && body.ends_with("# EOF\n"), "{body}");
        let head = answer(address, &format!("HEAD /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        assert!(head.ends_with("\r\n\r\n") && head.contains(metrics::CONTENT_TYPE), "{head}");
        assert!(answer(address, "PUT / HTTP/1.1\r\n\r\n").contains("\r\nAllow: GET, HEAD\r\n"));
        let other = answer(address, "GET /../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
        drop(silent);
    }

    #[test]
    fn pages_of_other_sites_get_no_figures() {
        let address = endpoint(&["perf.example.org".to_owned()]);
        let check = |headers: &str, status: u32| {
            let text = answer(address, &format!("GET /metrics HTTP/1.1\r\n{headers}\r\n"));
            assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{headers:?}: {text}");
            assert_eq!(text.contains("# EOF"), status == 200, "{headers:?}: {text}");
        };
        check("Host: perf.example.org:9797\r\n", 200);
        check("Host: [::1]:9797\r\n", 200);
        // A name that another site has pointed here.
        check("Host: evil.example:9797\r\n", 421);
        check("", 400);
        check("Host: localhost\r\nHost: evil.example\r\n", 400);
        check("Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", 403);
    }
}
