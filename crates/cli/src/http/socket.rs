//! The socket of a client as hyper reads and writes it, and how long the client may take.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use fathom_sys::clock::monotonic_ns;
use hyper::rt::ReadBufCursor;

use super::clients::Client;

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
pub(super) enum Stage {
    /// A request is read, or waited for.
    Reading,
    /// An answer is made and written.
    Answering,
    /// A stream is written.
    Streaming,
}

/// Where a connection stands, and since when; shared by the socket, the answers and the loop of one thread.
pub(super) struct Pulse {
    client: Arc<Client>,
    stage: Cell<Stage>,
    since_ns: Cell<u64>,
    /// When the last answer was begun.
    answering_ns: Cell<u64>,
    /// Since when the client has taken nothing of what is ready for it.
    stalled_ns: Cell<Option<u64>>,
    /// The socket had nothing to read when it was last asked.
    pub(super) wants_read: Cell<bool>,
}

impl Pulse {
    pub(super) fn new(client: Arc<Client>) -> Pulse {
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

    pub(super) fn enter(&self, stage: Stage) {
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

    pub(super) fn stream(&self) -> &TcpStream {
        &self.client.stream
    }

    /// Something waits for the client to take it.
    pub(super) fn wants_write(&self) -> bool {
        self.stalled_ns.get().is_some()
    }

    pub(super) fn is_streaming(&self) -> bool {
        self.stage.get() == Stage::Streaming
    }

    /// When the connection is given up unless something happens; `None` for a stream that its client keeps up with.
    pub(super) fn deadline_ns(&self) -> Option<u64> {
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
pub(super) struct Socket(Rc<Pulse>);

impl Socket {
    pub(super) fn new(pulse: Rc<Pulse>) -> Socket {
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

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn a_client_has_a_limited_time_for_everything_but_a_stream_that_it_follows() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        let pulse = Pulse::new(Arc::new(Client::new(stream, address.ip())));
        let begun = pulse.since_ns.get();
        assert_eq!(pulse.deadline_ns(), Some(begun + REQUEST_NS));
        pulse.enter(Stage::Answering);
        pulse.stalled();
        let stalled = pulse.stalled_ns.get().unwrap();
        assert_eq!(pulse.deadline_ns(), Some(stalled + STALL_NS));
        // Taking a little now and then is not enough.
        pulse.answering_ns.set(stalled - ANSWER_NS);
        assert_eq!(pulse.deadline_ns(), Some(stalled));
        pulse.wrote();
        pulse.enter(Stage::Streaming);
        assert_eq!((pulse.deadline_ns(), pulse.is_streaming()), (None, true));
        pulse.stalled();
        assert!(pulse.deadline_ns().is_some() && pulse.wants_write());
        pulse.wrote();
        pulse.enter(Stage::Reading);
        assert!(pulse.deadline_ns().is_some() && !pulse.wants_write());
    }
}
