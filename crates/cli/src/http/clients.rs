//! The clients that are served: how many at a time, how many of one address, and which one leaves for a new one.
//!
//! Silence costs a client nothing. So the one that has been waited for longest makes room for a new one; a client that gets an answer
//! stays. One address has half of the places at most: it cannot take them all by requests that last either.

use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fathom_sys::clock::monotonic_ns;

/// In place of a time: nothing is waited for.
const BUSY: u64 = u64::MAX;
/// Longest wait for the thread of a client that leaves, before another one has to.
const LEAVING: Duration = Duration::from_secs(1);

/// A client that is served.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    network: IpAddr,
    /// Since when the client has been waited for, on the monotonic clock.
    idle_since_ns: AtomicU64,
}

impl Client {
    pub(super) fn new(stream: TcpStream, address: IpAddr) -> Client {
        Client { stream, network: network(address), idle_since_ns: AtomicU64::new(monotonic_ns()) }
    }

    /// From now on it is waited for.
    pub(super) fn waited_for(&self, since_ns: u64) {
        self.idle_since_ns.store(since_ns, Ordering::Release);
    }

    /// From now on it gets an answer.
    pub(super) fn answered(&self) {
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
    pub(super) fn end(&self) {
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
pub(super) struct Clients {
    most: usize,
    served: Mutex<Vec<Arc<Client>>>,
    left: Condvar,
}

/// The place of a client; given back when it is dropped.
pub(super) struct Place {
    clients: Arc<Clients>,
    pub(super) client: Arc<Client>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clients.served().retain(|client| !Arc::ptr_eq(client, &self.client));
        self.clients.left.notify_all();
    }
}

impl Clients {
    /// `most` at the same time.
    pub(super) fn new(most: usize) -> Clients {
        Clients { most, served: Mutex::default(), left: Condvar::new() }
    }

    /// A place for a new client; `None` where all are taken by clients that get answers.
    pub(super) fn admit(self: &Arc<Self>, stream: TcpStream, address: SocketAddr) -> Option<Place> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
