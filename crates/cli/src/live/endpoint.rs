//! The OpenMetrics endpoint: `GET /metrics`, each answer from the state as it is then, on threads of low priority.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use fathom_report::live::metrics;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, StatusCode};

use super::NICE;
use super::hub::Hub;
use crate::http::own_names::OwnNames;
use crate::http::{Answer, Handler, Limits, Request, Server};

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
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpStream};

    use fathom_report::live::LiveState;

    use super::*;

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
