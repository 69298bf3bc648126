//! An HTTP server for pages and streams, on threads of low priority. hyper reads and writes the protocol; a loop over poll(2) for each
//! client takes the place of a runtime.
//!
//! A client has a thread, limited sizes, a limited time and a place ([`clients`]). What is answered is the business of a [`Handler`].

mod answer;
mod clients;
mod connection;
pub mod own_names;
mod socket;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use fathom_sys::priority::set_nice;
use hyper::http::request::Parts;

use self::clients::{Clients, Place};
pub use answer::{Answer, EventStream, StreamPiece};

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
        let _ = connection::serve(&place.client, &handler, limits);
    };
    let _ = thread("http-client", limits).spawn(serve);
}

#[cfg(test)]
mod tests;
