//! The server from the outside, by a client that says what it likes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use hyper::body::Bytes;
use hyper::{Method, StatusCode};

use super::*;

const LIMITS: Limits =
    Limits { clients: 4, body_bytes: 64, stack_bytes: 512 << 10, nice: 1, keeps_alive: true };

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stream of three pieces, the second of which lets its client wait.
struct Pieces(u32);

impl EventStream for Pieces {
    fn next(&mut self) -> StreamPiece {
        self.0 += 1;
        match self.0 {
            1 | 3 => StreamPiece::Bytes(Bytes::from(format!("data: {}\n\n", self.0))),
            2 => StreamPiece::Nothing,
            _ => StreamPiece::End,
        }
    }
}

/// Answers at once, but for `/wait`, which begins by `begun` and ends by `go_on`.
struct Echo {
    begun: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl Handler for Echo {
    fn answer(&self, request: &Request) -> Answer {
        match request.head.uri.path() {
            "/events" => Answer::events(Box::new(Pieces(0))),
            "/large" => Answer::whole(StatusCode::OK, "text/plain", vec![b'x'; 4 << 20]),
            "/wait" => {
                self.begun.send(()).unwrap();
                self.go_on.lock().unwrap().recv().unwrap();
                Answer::shared("text/plain", Arc::new(b"waited".to_vec()))
            }
            "/shared" => Answer::shared("text/plain", Arc::new(b"shared".to_vec())),
            _ if request.head.method == Method::POST => {
                Answer::whole(StatusCode::OK, "text/plain", request.body.clone())
            }
            _ => Answer::refusal(StatusCode::NOT_FOUND),
        }
    }
}

fn server() -> SocketAddr {
    waiting_server().0
}

/// A server; the sender lets a `/wait` end, after the receiver has told that it began.
fn waiting_server() -> (SocketAddr, Sender<()>, Receiver<()>) {
    let ((begun, has_begun), (go, go_on)) = (channel(), channel());
    let server = Server::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let address = server.address().unwrap();
    server.serve(Arc::new(Echo { begun, go_on: Mutex::new(go_on) }), LIMITS).unwrap();
    (address, go, has_begun)
}

/// What the server says to `request`, until it closes the connection.
fn answer(address: SocketAddr, request: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text
}

fn get(address: SocketAddr, path: &str) -> String {
    answer(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
}

#[test]
fn answers_are_whole_shared_or_streamed() {
    let address = server();
    let shared = get(address, "/shared");
    assert!(shared.starts_with("HTTP/1.1 200 OK\r\n") && shared.ends_with("\r\n\r\nshared"), "{shared}");
    assert!(shared.contains("\r\nContent-Length: 6\r\n") && shared.contains("nosniff"), "{shared}");
    assert!(get(address, "/nothing").ends_with("\r\n\r\n404 Not Found\n"));
    let (head, body) = ("HEAD /shared HTTP/1.1\r\nConnection: close\r\n\r\n", "\r\n\r\nshared");
    assert!(!answer(address, head).ends_with(body));
    let events = get(address, "/events");
    assert!(events.contains("data: 1\n\n") && events.contains("data: 3\n\n"), "{events}");
    assert_eq!(get(address, "/large").len() - (4 << 20), get(address, "/large").find("xxx").unwrap());
}

#[test]
fn sizes_are_limited() {
    let address = server();
    let post = |length: usize| {
        let body = "y".repeat(length);
        answer(
            address,
            &format!("POST / HTTP/1.1\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"),
        )
    };
    assert!(post(64).ends_with(&"y".repeat(64)));
    assert!(post(65).starts_with("HTTP/1.1 413 "), "{}", post(65));
    let pieces = "20\r\n0123456789abcdef0123456789abcdef\r\n".repeat(3);
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    assert!(answer(address, &format!("{chunked}{pieces}0\r\n\r\n")).starts_with("HTTP/1.1 413 "));
    let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(64 << 10));
    assert!(answer(address, &long).starts_with("HTTP/1.1 431 "));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
    assert!(answer(address, &many).starts_with("HTTP/1.1 431 "));
    assert!(answer(address, "\x16\x03\x01\x02\r\n\r\n").starts_with("HTTP/1.1 400 "));
}

#[test]
fn a_connection_takes_several_requests() {
    let address = server();
    let mut kept = TcpStream::connect(address).unwrap();
    for _ in 0..3 {
        kept.write_all(b"GET /shared HTTP/1.1\r\n\r\n").unwrap();
        let mut text = Vec::new();
        let mut piece = [0; 512];
        while !text.ends_with(b"\r\n\r\nshared") {
            let count = kept.read(&mut piece).unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&text));
            text.extend_from_slice(&piece[..count]);
        }
    }
}

/// What a connection has to say until it is closed, or reset.
fn rest(mut client: TcpStream) -> String {
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut text = String::new();
    let ended = client.read_to_string(&mut text).map_err(|error| error.kind());
    assert_ne!(ended, Err(io::ErrorKind::WouldBlock), "it is neither answered nor closed");
    text
}

#[test]
fn those_who_say_nothing_make_room_the_oldest_first() {
    let address = server();
    let mut silent: Vec<TcpStream> = (0..3 * LIMITS.clients)
        .map(|number| {
            let mut client = TcpStream::connect(address).unwrap();
            // Also with a request that does not end.
            client.write_all(if number % 2 == 0 { b"" } else { b"GET / HTTP/1.1\r\nHost: x" }).unwrap();
            client
        })
        .collect();
    assert!(get(address, "/shared").ends_with("\r\n\r\nshared"));
    let mut last = silent.pop().unwrap();
    silent.into_iter().for_each(|client| assert_eq!(rest(client), ""));
    last.write_all(b"\r\nConnection: close\r\n\r\n").unwrap();
    assert!(rest(last).starts_with("HTTP/1.1 404 "), "the youngest has a place");
}

#[test]
fn those_who_get_answers_stay_and_one_address_has_half_of_the_places() {
    let (address, go, has_begun) = waiting_server();
    let ask = |from: [u8; 4]| {
        let mut client = connect_from(from.into(), address);
        client.write_all(b"GET /wait HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
        client
    };
    let (one, other) = ([127, 0, 0, 1], [127, 0, 0, 2]);
    let mut served = Vec::new();
    for from in [one, one, other, other] {
        // Before the share of the address is taken, and after.
        served.push(ask(from));
        has_begun.recv().unwrap();
        if served.len() == 2 {
            assert_eq!(rest(ask(one)), "");
        }
    }
    assert_eq!(rest(ask([127, 0, 0, 3])), "", "all places are taken");
    served.iter().for_each(|_| go.send(()).unwrap());
    served.into_iter().for_each(|client| assert!(rest(client).ends_with("\r\n\r\nwaited")));
}

/// A connection from an address of this machine.
fn connect_from(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let client = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&client, &SocketAddr::from((from, 0))).unwrap();
    connect(&client, &to).unwrap();
    client.into()
}

#[test]
fn a_network_of_ipv6_is_one_address() {
    let check = |one: &str, other: &str, is_same: bool| {
        let [one, other] = [one, other].map(|text| network(text.parse().unwrap()));
        assert_eq!(one == other, is_same, "{one}, {other}");
    };
    check("192.0.2.1", "::ffff:192.0.2.1", true);
    check("192.0.2.1", "192.0.2.2", false);
    check("2001:db8:0:1::1", "2001:db8:0:1:2:3:4:5", true);
    check("2001:db8:0:1::1", "2001:db8:0:2::1", false);
}

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
