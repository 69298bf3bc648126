//! One client: its connection is polled whenever its socket is ready, until it ends or its time is up.

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use fathom_sys::clock::monotonic_ns;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::clients::Client;
use super::socket::{Pulse, Socket, Stage};
use super::{Answer, Handler, Limits, Request};

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
pub(super) fn serve(client: &Arc<Client>, handler: &Arc<dyn Handler>, limits: Limits) -> io::Result<()> {
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
