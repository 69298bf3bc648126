//! Clients that keep a fixed queue depth, like a benchmark.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_model::Op;
use fathom_volume::{TokenRate, Volume, VolumeCompletion, VolumeRequest};

pub const SECOND: u64 = 1_000_000_000;
pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

pub fn rate(tokens: u64) -> TokenRate {
    TokenRate::per_second(tokens).expect("a rate above 0")
}

/// The order of a client's offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Sequential,
    /// Never adjacent to the previous one.
    Random,
}

/// One client: operation, block size, queue depth and order.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    pub op: Op,
    pub block: u64,
    pub depth: usize,
    pub order: Order,
}

impl Client {
    pub fn random_read(block: u64, depth: usize) -> Self {
        Client { op: Op::Read, block, depth, order: Order::Random }
    }

    fn request(&self, index: u64, size: u64) -> VolumeRequest {
        let blocks = size / self.block;
        let block = match self.order {
            Order::Sequential => index % blocks,
            // Successive requests are far apart.
            Order::Random => (index * 0x9e37_79b1) % blocks,
        };
        VolumeRequest { op: self.op, offset: block * self.block, bytes: self.block as u32 }
    }
}

/// The result of a client: completed requests, the sum of their latencies, and the requests in each second.
#[derive(Clone, Debug)]
pub struct Seen {
    pub count: u64,
    pub latency_ns: u128,
    pub per_second: Vec<u64>,
}

impl Seen {
    pub fn mean_latency_ns(&self) -> f64 {
        self.latency_ns as f64 / self.count as f64
    }

    /// Mean of the seconds `from..to`.
    pub fn mean(&self, from: usize, to: usize) -> f64 {
        self.per_second[from..to].iter().sum::<u64>() as f64 / (to - from) as f64
    }
}

/// Runs clients concurrently on one volume for `seconds` from `begin_ns`.
pub fn run(volume: &mut Volume, clients: &[Client], begin_ns: u64, seconds: u64) -> Vec<Seen> {
    let size = volume.model().size_bytes;
    let per_second = vec![0; seconds as usize];
    let mut seen = vec![Seen { count: 0, latency_ns: 0, per_second }; clients.len()];
    let mut issued = vec![0; clients.len()];
    // End, client and start of each request.
    let mut under_way: BinaryHeap<Reverse<(u64, usize, u64)>> = BinaryHeap::new();
    let mut submit = |volume: &mut Volume, client: usize, now: u64| {
        let request = clients[client].request(issued[client], size);
        issued[client] += 1;
        let VolumeCompletion { at_ns, .. } = volume.submit(now, &request);
        Reverse((at_ns, client, now))
    };
    for (client, of) in clients.iter().enumerate() {
        for _ in 0..of.depth {
            under_way.push(submit(volume, client, begin_ns));
        }
    }
    let end = begin_ns + seconds * SECOND;
    while let Some(Reverse((at, client, made))) = under_way.pop() {
        if at >= end {
            break;
        }
        let seen = &mut seen[client];
        seen.count += 1;
        seen.latency_ns += u128::from(at - made);
        seen.per_second[((at - begin_ns) / SECOND) as usize] += 1;
        under_way.push(submit(volume, client, at));
    }
    seen
}

/// Runs one client from the beginning.
pub fn run_one(volume: &mut Volume, client: Client, seconds: u64) -> Seen {
    run(volume, &[client], 0, seconds).remove(0)
}
