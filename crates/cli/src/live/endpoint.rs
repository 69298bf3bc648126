//! The OpenMetrics endpoint: `GET /metrics`, each answer from the state as it is then, on threads of low priority.
//!
//! The parser of requests is a library's; the answers are few and fixed. Each client has a thread, a limited time and at most one
//! answer; beyond a few clients, further ones are turned away.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fathom_report::live::metrics;
use fathom_sys::clock::monotonic_ns;
use fathom_sys::priority::set_nice;

use super::NICE;
use super::hub::Hub;

/// Clients that are served at the same time.
const MOST_CLIENTS: usize = 16;
/// Longest wait for one read or write.
const WAIT: Duration = Duration::from_millis(500);
/// Longest time for a request and its answer.
const PATIENCE_NS: u64 = 5_000_000_000;
/// Longest request, and most of its headers.
const REQUEST_BYTES: usize = 8192;
const MOST_HEADERS: usize = 64;
const STACK_BYTES: usize = 256 << 10;
/// Pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(200);

/// An endpoint that listens.
pub struct Endpoint {
    listener: TcpListener,
}

impl Endpoint {
    /// Listens on `address`.
    ///
    /// # Errors
    /// The address is in use, or not one of this machine.
    pub fn listen(address: SocketAddr) -> io::Result<Endpoint> {
        Ok(Endpoint { listener: TcpListener::bind(address)? })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves the state of `hub` from now on, until the program ends.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn serve(self, hub: Arc<Hub>) -> io::Result<()> {
        let clients = Arc::new(AtomicUsize::new(0));
        let accept = move || {
            // The measurement has the CPUs first; threads started here inherit it.
            let _ = set_nice(NICE);
            for client in self.listener.incoming() {
                let Ok(client) = client else {
                    std::thread::park_timeout(PAUSE);
                    continue;
                };
                admit(client, &hub, &clients);
            }
        };
        thread("live-metrics").spawn(accept).map(drop)
    }
}

fn thread(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES)
}

/// One of those that are served; counts itself out.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Serves `client` on a thread of its own, if there is room.
fn admit(client: TcpStream, hub: &Arc<Hub>, clients: &Arc<AtomicUsize>) {
    let others = clients.fetch_add(1, Ordering::AcqRel);
    let place = Place(clients.clone());
    if others >= MOST_CLIENTS {
        // That says enough, and costs no wait.
        let _ = client.shutdown(Shutdown::Both);
        return;
    }
    let hub = hub.clone();
    let serve = move || {
        let _place = place;
        // A client that has gone, or is too slow, gets no answer.
        let _ = serve_client(&client, &hub);
        // Closing would not do: a worker that began meanwhile has a descriptor table of its own, with this connection in it.
        let _ = client.shutdown(Shutdown::Both);
    };
    let _ = thread("live-client").spawn(serve);
}

/// An answer: its status, type and text.
struct Answer {
    status: &'static str,
    content_type: &'static str,
    body: Arc<Vec<u8>>,
}

impl Answer {
    fn refusal(status: &'static str) -> Answer {
        let body = Arc::new(format!("{status}\n").into_bytes());
        Answer { status, content_type: "text/plain; charset=utf-8", body }
    }
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Metrics {
        only_head: bool,
    },
    Refused(&'static str),
    /// The rest of it is still to come.
    Incomplete,
}

/// Reads the head of a request.
fn asked(head: &[u8]) -> Asked {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Err(_) => return Asked::Refused("400 Bad Request"),
        Ok(httparse::Status::Partial) if head.len() >= REQUEST_BYTES => {
            return Asked::Refused("431 Request Header Fields Too Large");
        }
        Ok(httparse::Status::Partial) => return Asked::Incomplete,
        Ok(httparse::Status::Complete(_)) => {}
    }
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default();
    match (request.method, path) {
        (Some("GET" | "HEAD"), "/metrics") => Asked::Metrics { only_head: request.method == Some("HEAD") },
        (Some("GET" | "HEAD"), _) => Asked::Refused("404 Not Found"),
        _ => Asked::Refused("405 Method Not Allowed"),
    }
}

fn serve_client(client: &TcpStream, hub: &Hub) -> io::Result<()> {
    let until_ns = monotonic_ns() + PATIENCE_NS;
    client.set_read_timeout(Some(WAIT))?;
    client.set_write_timeout(Some(WAIT))?;
    let (answer, only_head) = match read_request(client, until_ns)? {
        Asked::Metrics { only_head } => {
            let body = hub.metrics()?;
            (Answer { status: "200 OK", content_type: metrics::CONTENT_TYPE, body }, only_head)
        }
        Asked::Refused(status) => (Answer::refusal(status), false),
        Asked::Incomplete => return Ok(()),
    };
    let Answer { status, content_type, body } = answer;
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let mut text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{allow}Cache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    if !only_head {
        text.extend_from_slice(&body);
    }
    write_until(client, &text, until_ns)
}

fn read_request(mut client: &TcpStream, until_ns: u64) -> io::Result<Asked> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while monotonic_ns() < until_ns {
        match client.read(&mut piece) {
            Ok(0) => return Ok(Asked::Incomplete),
            Ok(count) => head.extend_from_slice(&piece[..count]),
            Err(error) if is_wait(&error) => continue,
            Err(error) => return Err(error),
        }
        match asked(&head) {
            Asked::Incomplete => {}
            asked => return Ok(asked),
        }
    }
    Ok(Asked::Incomplete)
}

fn write_until(mut client: &TcpStream, mut text: &[u8], until_ns: u64) -> io::Result<()> {
    while !text.is_empty() && monotonic_ns() < until_ns {
        match client.write(text) {
            Ok(count) => text = &text[count..],
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// True where time ran out, or a signal came, and another try may succeed.
fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use fathom_report::live::LiveState;

    use super::*;

    #[test]
    fn requests() {
        let check = |head: &str, expected: Asked| assert_eq!(asked(head.as_bytes()), expected, "{head:?}");
        let whole = |line: &str| format!("{line}\r\nHost: x\r\n\r\n");
        check(&whole("GET /metrics HTTP/1.1"), Asked::Metrics { only_head: false });
        check(&whole("GET /metrics?a=b HTTP/1.0"), Asked::Metrics { only_head: false });
        check(&whole("HEAD /metrics HTTP/1.1"), Asked::Metrics { only_head: true });
        check(&whole("GET /../etc/passwd HTTP/1.1"), Asked::Refused("404 Not Found"));
        check(&whole("POST /metrics HTTP/1.1"), Asked::Refused("405 Method Not Allowed"));
        check("GET /metrics HTTP/1.1\r\n", Asked::Incomplete);
        check("\x16\x03\x01\x02", Asked::Refused("400 Bad Request"));
        let long = format!("GET /metrics HTTP/1.1\r\nA: {}", "a".repeat(REQUEST_BYTES));
        check(&long, Asked::Refused("431 Request Header Fields Too Large"));
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS + 1));
        check(&many, Asked::Refused("400 Bad Request"));
    }

    fn answer(address: SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn clients_that_say_nothing_keep_nobody_from_the_figures() {
        let endpoint = Endpoint::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let address = endpoint.address().unwrap();
        endpoint.serve(Arc::new(Hub::new(LiveState::default(), Vec::new()))).unwrap();
        let silent: Vec<TcpStream> =
            (0..MOST_CLIENTS / 2).map(|_| TcpStream::connect(address).unwrap()).collect();
        let text = answer(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(body.starts_with("# TYPE ") && body.ends_with("# EOF\n"), "{body}");
        let head = answer(address, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.ends_with("\r\n\r\n") && head.contains(metrics::CONTENT_TYPE), "{head}");
        assert!(answer(address, "PUT / HTTP/1.1\r\n\r\n").contains("\r\nAllow: GET, HEAD\r\n"));
        drop(silent);
    }
}
