//! An HTTP server for pages and streams, on threads of low priority. hyper reads and writes the protocol; a loop over poll(2) for each
//! client takes the place of a runtime.
//!
//! A client has a thread, limited sizes, a limited time and a place. Silence costs a client nothing, so the one that has been waited
//! for longest makes room for a new one; a client that gets an answer stays. One address has half of the places at most: it cannot take
//! them all by requests that last either. What is answered is the business of a [`Handler`].
//!
//! A page of another site can make a browser send requests here. It cannot read the answers, unless it reaches the server under a name
//! of its own (DNS rebinding), which would make the answers its own; hence [`OwnNames`].

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::convert::Infallible;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use fathom_sys::clock::monotonic_ns;
use fathom_sys::priority::set_nice;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{
    CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::rt::ReadBufCursor;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(200);

/// A request: its head, and its whole body.
pub struct Request {
    /// Method, target and headers.
    pub head: Parts,
    /// No longer than the limit.
    pub body: Vec<u8>,
}

/// Answers requests, several at the same time.
pub trait Handler: Send + Sync + 'static {
    /// The answer to `request`.
    fn answer(&self, request: &Request) -> Answer;
}

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Clients that are served at the same time, half of them from one address.
    pub clients: usize,
    /// Longest body of a request.
    pub body_bytes: usize,
    /// Stack of the thread of a client.
    pub stack_bytes: usize,
    /// Niceness of all threads.
    pub nice: i8,
    /// A client may ask again on the same connection.
    pub keeps_alive: bool,
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
}

impl Server {
    /// Listens on `address`.
    ///
    /// # Errors
    /// The address is in use, or not one of this machine.
    pub fn listen(address: SocketAddr) -> io::Result<Server> {
        Ok(Server { listener: TcpListener::bind(address)? })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers by `handler` from now on, until the program ends.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn serve(self, handler: Arc<dyn Handler>, limits: Limits) -> io::Result<()> {
        let clients = Arc::new(Clients::new(limits.clients));
        let accept = move || {
            // Measurements have the CPUs first; threads started here inherit it.
            let _ = set_nice(limits.nice);
            loop {
                match self.listener.accept() {
                    // One that finds no place is turned away: its connection is closed, which says enough.
                    Ok((stream, address)) => {
                        if let Some(place) = clients.admit(stream, address) {
                            serve(place, &handler, limits);
                        }
                    }
                    // There are no more descriptors.
                    Err(_) => std::thread::park_timeout(PAUSE),
                }
            }
        };
        thread("http", limits).spawn(accept).map(drop)
    }
}

fn thread(name: &str, limits: Limits) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned()).stack_size(limits.stack_bytes)
}

/// Serves the client of `place` on a thread of its own.
fn serve(place: Place, handler: &Arc<dyn Handler>, limits: Limits) {
    let handler = handler.clone();
    let serve = move || {
        // A client that has gone, or is too slow, gets no answer.
        let _ = serve_client(&place.client, &handler, limits);
    };
    let _ = thread("http-client", limits).spawn(serve);
}

/// The next of a stream.
pub enum StreamPiece {
    /// Bytes.
    Bytes(Bytes),
    /// There is nothing new: the stream is asked again later.
    Nothing,
    /// The stream has ended.
    End,
}

/// A stream of news, which is asked for the next whenever the client can take it.
pub trait EventStream: Send {
    /// The next.
    fn next(&mut self) -> StreamPiece;
}

enum Content {
    Whole(Bytes),
    Stream(Box<dyn EventStream>),
}

/// An answer to a request. It is not to be kept by caches, nor to be taken for another type than its own.
pub struct Answer {
    response: Response<()>,
    content: Content,
}

impl Answer {
    /// `content` of a type, such as `text/html; charset=utf-8`.
    pub fn whole(status: StatusCode, content_type: &'static str, content: impl Into<Bytes>) -> Answer {
        Answer::new(status, content_type, Content::Whole(content.into()))
    }

    /// Content that others share.
    pub fn shared(content_type: &'static str, content: Arc<Vec<u8>>) -> Answer {
        Answer::whole(StatusCode::OK, content_type, Bytes::from_owner(SharedBytes(content)))
    }

    /// A line of text that says what `status` says.
    pub fn refusal(status: StatusCode) -> Answer {
        Answer::whole(status, "text/plain; charset=utf-8", format!("{status}\n"))
    }

    /// The news of `stream`, as server-sent events.
    pub fn events(stream: Box<dyn EventStream>) -> Answer {
        Answer::new(StatusCode::OK, "text/event-stream; charset=utf-8", Content::Stream(stream))
    }

    fn new(status: StatusCode, content_type: &'static str, content: Content) -> Answer {
        let mut response = Response::new(());
        *response.status_mut() = status;
        let answer = Answer { response, content };
        answer
            .with(CONTENT_TYPE, HeaderValue::from_static(content_type))
            .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
            .with(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
    }

    /// The same with a header.
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Answer {
        self.response.headers_mut().insert(name, value);
        self
    }

    /// The same with a header, unless it has one of that name.
    pub fn with_default(self, name: HeaderName, value: HeaderValue) -> Answer {
        if self.response.headers().contains_key(&name) { self } else { self.with(name, value) }
    }

    fn response(self, pulse: Rc<Pulse>) -> Response<AnswerBody> {
        if matches!(self.content, Content::Stream(_)) {
            pulse.enter(Stage::Streaming);
        }
        let content = self.content;
        self.response.map(|()| AnswerBody { content, pulse })
    }
}

struct SharedBytes(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// What hyper takes an answer from.
struct AnswerBody {
    content: Content,
    pulse: Rc<Pulse>,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().content {
            Content::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Content::Stream(stream) => match stream.next() {
                StreamPiece::Bytes(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                // The loop asks again after a while.
                StreamPiece::Nothing => Poll::Pending,
                StreamPiece::End => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.pulse.enter(Stage::Reading);
    }
}

pub const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The name of this machine, where it has one.
pub fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    (!name.is_empty() && name != "(none)").then_some(name)
}

/// The names of a server.
pub struct OwnNames {
    /// In lower case.
    names: Vec<String>,
    /// Says how a name is added.
    unknown: &'static str,
}

impl OwnNames {
    /// `names`, those of this machine, and every address. `unknown` refuses a request that names another host.
    pub fn new(names: &[String], unknown: &'static str) -> OwnNames {
        let own = host_name().into_iter().chain(["localhost".to_owned()]);
        let names = names.iter().cloned().chain(own).map(|name| name.to_ascii_lowercase()).collect();
        OwnNames { names, unknown }
    }

    /// The host that a request names, if that is this server and no page of another site asks.
    ///
    /// # Errors
    /// The request is to be refused with this status, because of this.
    pub fn admit<'a>(&self, head: &'a Parts) -> Result<&'a str, (StatusCode, &'static str)> {
        let Some(host) = only(&head.headers, &HOST).filter(|_| head.uri.authority().is_none()) else {
            return Err((StatusCode::BAD_REQUEST, "A request names its host once, in the header Host."));
        };
        if !self.is_ours(host) {
            return Err((StatusCode::MISDIRECTED_REQUEST, self.unknown));
        }
        if is_cross_site(&head.headers, head.method == Method::POST) {
            return Err((StatusCode::FORBIDDEN, "The request comes from another site."));
        }
        Ok(host)
    }

    /// A name that others give to a server of their own, which they then point here, is not ours; an address is always.
    fn is_ours(&self, host: &str) -> bool {
        let is_address = host.parse::<SocketAddr>().is_ok()
            || host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        let name = host.split(':').next().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
        is_address || self.names.contains(&name)
    }
}

/// The value of a header as text.
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The value of a header that is there once.
pub fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Whether a browser says that a page of another site asks for it. A reader may follow a link from there, to read.
fn is_cross_site(headers: &HeaderMap, is_post: bool) -> bool {
    let Some(site) = text(headers, &FETCH_SITE) else { return false };
    let is_own = matches!(site, "same-origin" | "none");
    let is_link = text(headers, &FETCH_MODE) == Some("navigate")
        && text(headers, &FETCH_DESTINATION) == Some("document")
        && !is_post;
    !is_own && !is_link
}

/// In place of a time: nothing is waited for.
const BUSY: u64 = u64::MAX;
/// Longest wait for the thread of a client that leaves, before another one has to.
const LEAVING: Duration = Duration::from_secs(1);

/// A client that is served.
struct Client {
    stream: TcpStream,
    network: IpAddr,
    /// Since when the client has been waited for, on the monotonic clock.
    idle_since_ns: AtomicU64,
}

impl Client {
    fn new(stream: TcpStream, address: IpAddr) -> Client {
        Client { stream, network: network(address), idle_since_ns: AtomicU64::new(monotonic_ns()) }
    }

    /// From now on it is waited for.
    fn waited_for(&self, since_ns: u64) {
        self.idle_since_ns.store(since_ns, Ordering::Release);
    }

    /// From now on it gets an answer.
    fn answered(&self) {
        self.waited_for(BUSY);
    }

    /// Ends its connection, if it is still waited for.
    fn leave(&self, since_ns: u64) -> bool {
        let idle = &self.idle_since_ns;
        let is_idle = idle.compare_exchange(since_ns, BUSY, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if is_idle {
            self.end();
        }
        is_idle
    }

    /// Ends its connection, which wakes its thread. Closing would not do: a worker that began meanwhile has a descriptor table of its
    /// own, with this connection in it.
    fn end(&self) {
        // An error means that the client has gone.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// What counts as one address: whoever has one of IPv6 has a network of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

/// All clients of a server.
struct Clients {
    most: usize,
    served: Mutex<Vec<Arc<Client>>>,
    left: Condvar,
}

/// The place of a client; given back when it is dropped.
struct Place {
    clients: Arc<Clients>,
    client: Arc<Client>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clients.served().retain(|client| !Arc::ptr_eq(client, &self.client));
        self.clients.left.notify_all();
    }
}

impl Clients {
    /// `most` at the same time.
    fn new(most: usize) -> Clients {
        Clients { most, served: Mutex::default(), left: Condvar::new() }
    }

    /// A place for a new client; `None` where all are taken by clients that get answers.
    fn admit(self: &Arc<Self>, stream: TcpStream, address: SocketAddr) -> Option<Place> {
        let client = Arc::new(Client::new(stream, address.ip()));
        let mut served = self.served();
        loop {
            let of_network = served.iter().filter(|other| other.network == client.network);
            let is_share_taken = of_network.count() >= self.most.div_ceil(2);
            if !is_share_taken && served.len() < self.most {
                break;
            }
            let rivals = served.iter().filter(|other| !is_share_taken || other.network == client.network);
            let idle = rivals.map(|other| (other.idle_since_ns.load(Ordering::Acquire), other));
            let oldest = idle.filter(|(since_ns, _)| *since_ns != BUSY).min_by_key(|(since_ns, _)| *since_ns);
            let Some((since_ns, oldest)) = oldest else {
                client.end();
                return None;
            };
            if oldest.leave(since_ns) {
                let waited = self.left.wait_timeout(served, LEAVING);
                served = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        served.push(client.clone());
        drop(served);
        Some(Place { clients: self.clone(), client })
    }

    fn served(&self) -> MutexGuard<'_, Vec<Arc<Client>>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Longest head of a request, and most of its headers.
const HEAD_BYTES: usize = 16 << 10;
const MAX_HEADERS: usize = 64;
/// A stream is asked for news this often.
const TICK_NS: u64 = 500_000_000;
/// What is read and thrown away after the last answer, so that the client gets it, and how long that is waited for.
const LEFT_BYTES: usize = 256 << 10;
const LEFT_WAIT: Duration = Duration::from_millis(200);

/// Serves `client` until it leaves, has to, or its time is up.
///
/// # Errors
/// The socket fails, or its time is up.
fn serve_client(client: &Arc<Client>, handler: &Arc<dyn Handler>, limits: Limits) -> io::Result<()> {
    let stream = &client.stream;
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let ended = converse(&Rc::new(Pulse::new(client.clone())), handler, limits);
    let _ = stream.shutdown(Shutdown::Write);
    if ended.is_ok() {
        drain(stream);
    }
    client.end();
    ended
}

/// Set where the connection can go on without the socket.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

fn converse(pulse: &Rc<Pulse>, handler: &Arc<dyn Handler>, limits: Limits) -> io::Result<()> {
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (handler, pulse) = (handler.clone(), pulse.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = read_body(body, limits.body_bytes).await;
            pulse.enter(Stage::Answering);
            let answer = match body {
                Ok(body) => handler.answer(&Request { head, body }),
                Err(status) => Answer::refusal(status),
            };
            Ok::<_, Infallible>(answer.response(pulse))
        }
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None::<Duration>)
        .title_case_headers(true)
        .keep_alive(limits.keeps_alive)
        .max_header_size(HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(Socket::new(pulse.clone()), service);
    let mut connection = pin!(connection);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    loop {
        pulse.wants_read.set(false);
        match connection.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(ended) => return ended.map_err(io::Error::other),
            Poll::Pending if woken.0.swap(false, Ordering::AcqRel) => {}
            Poll::Pending => wait(pulse)?,
        }
    }
}

/// Waits until the socket is ready, or a stream is to be asked.
fn wait(pulse: &Pulse) -> io::Result<()> {
    let now = monotonic_ns();
    let deadline = pulse.deadline_ns();
    if deadline.is_some_and(|deadline| deadline <= now) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let tick = now + if pulse.is_streaming() { TICK_NS } else { u64::MAX - now };
    let wait_ns = deadline.map_or(tick, |deadline| deadline.min(tick)) - now;
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, pulse.wants_read.get());
    flags.set(PollFlags::OUT, pulse.wants_write());
    let mut sockets = [PollFd::new(pulse.stream(), flags)];
    let timeout = Timespec {
        tv_sec: (wait_ns / 1_000_000_000).min(3600) as i64,
        tv_nsec: (wait_ns % 1_000_000_000) as _,
    };
    match poll(&mut sockets, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let is_gone = sockets[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
    if is_gone { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
}

/// The body of a request, or why it is refused.
async fn read_body(mut body: Incoming, most: usize) -> Result<Vec<u8>, StatusCode> {
    let mut bytes = Vec::new();
    // Its length is announced before it is sent.
    if body.size_hint().lower() > most as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(frame) = frame else { return Err(StatusCode::BAD_REQUEST) };
        let Some(data) = frame.data_ref() else { continue };
        if bytes.len() + data.len() > most {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes)
}

/// Reads what the client still sends: closing before that would take the last answer from it.
fn drain(mut stream: &TcpStream) {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(Some(LEFT_WAIT));
    let mut piece = [0; 8192];
    for _ in 0..LEFT_BYTES / piece.len() {
        if !matches!(stream.read(&mut piece), Ok(count) if count > 0) {
            break;
        }
    }
}

/// Longest time for a request, from the first wait for it to the end of its body.
const REQUEST_NS: u64 = 10_000_000_000;
/// Longest time in which a client takes nothing of what is ready for it.
const STALL_NS: u64 = 10_000_000_000;
/// Longest time in which a client takes an answer that is whole.
const ANSWER_NS: u64 = 60_000_000_000;
/// Bytes that are read at once.
const PIECE: usize = 4096;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A request is read, or waited for.
    Reading,
    /// An answer is made and written.
    Answering,
    /// A stream is written.
    Streaming,
}

/// Where a connection stands, and since when; shared by the socket, the answers and the loop of one thread.
struct Pulse {
    client: Arc<Client>,
    stage: Cell<Stage>,
    since_ns: Cell<u64>,
    /// When the last answer was begun.
    answering_ns: Cell<u64>,
    /// Since when the client has taken nothing of what is ready for it.
    stalled_ns: Cell<Option<u64>>,
    /// The socket had nothing to read when it was last asked.
    wants_read: Cell<bool>,
}

impl Pulse {
    fn new(client: Arc<Client>) -> Pulse {
        let now = monotonic_ns();
        Pulse {
            client,
            stage: Cell::new(Stage::Reading),
            since_ns: Cell::new(now),
            answering_ns: Cell::new(now),
            stalled_ns: Cell::new(None),
            wants_read: Cell::new(false),
        }
    }

    fn enter(&self, stage: Stage) {
        self.stage.set(stage);
        self.since_ns.set(monotonic_ns());
        if stage == Stage::Answering {
            self.answering_ns.set(self.since_ns.get());
        }
        match stage {
            Stage::Reading => self.client.waited_for(self.since_ns.get()),
            Stage::Answering | Stage::Streaming => self.client.answered(),
        }
    }

    fn stream(&self) -> &TcpStream {
        &self.client.stream
    }

    /// Something waits for the client to take it.
    fn wants_write(&self) -> bool {
        self.stalled_ns.get().is_some()
    }

    fn is_streaming(&self) -> bool {
        self.stage.get() == Stage::Streaming
    }

    /// When the connection is given up unless something happens; `None` for a stream that its client keeps up with.
    fn deadline_ns(&self) -> Option<u64> {
        match (self.stalled_ns.get(), self.stage.get()) {
            (Some(stalled), Stage::Streaming) => Some(stalled + STALL_NS),
            (Some(stalled), _) => Some((stalled + STALL_NS).min(self.answering_ns.get() + ANSWER_NS)),
            (None, Stage::Streaming) => None,
            (None, _) => Some(self.since_ns.get() + REQUEST_NS),
        }
    }

    fn wrote(&self) {
        self.stalled_ns.set(None);
        if self.stage.get() == Stage::Reading {
            // The client had no time for the next request while it took this answer.
            self.enter(Stage::Reading);
        }
    }

    fn stalled(&self) {
        if self.stalled_ns.get().is_none() {
            self.stalled_ns.set(Some(monotonic_ns()));
        }
    }
}

/// The socket, which does not block.
struct Socket(Rc<Pulse>);

impl Socket {
    fn new(pulse: Rc<Pulse>) -> Socket {
        Socket(pulse)
    }
}

impl hyper::rt::Read for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut piece = [0; PIECE];
        let most = buffer.remaining().min(PIECE);
        match again(|| self.0.stream().read(&mut piece[..most])) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.0.wants_read.set(true);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
            Ok(count) => {
                buffer.put_slice(&piece[..count]);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl hyper::rt::Write for Socket {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match again(|| self.0.stream().write(bytes)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.0.stalled();
                Poll::Pending
            }
            written => {
                self.0.wrote();
                Poll::Ready(written)
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The loop closes the socket.
        Poll::Ready(Ok(()))
    }
}

/// What `call` returns once no signal interrupts it.
fn again(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
