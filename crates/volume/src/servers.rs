//! Bounded parallelism: each server serves one request at a time, the other requests wait in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The busy servers and their end times.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    count: usize,
    busy: BinaryHeap<Reverse<u64>>,
}

impl Servers {
    pub(crate) fn new(count: u32) -> Self {
        let count = count as usize;
        Servers { count, busy: BinaryHeap::with_capacity(count) }
    }

    /// When a server is free for a request that arrives at `arrival`. Each call is followed by one of
    /// [`Servers::occupy`].
    #[inline(always)]
    pub(crate) fn free(&self, arrival: u64) -> u64 {
        match self.busy.peek() {
            Some(&Reverse(earliest)) if self.busy.len() == self.count => arrival.max(earliest),
            _ => arrival,
        }
    }

    /// Keeps that server busy until `end`.
    #[inline(always)]
    pub(crate) fn occupy(&mut self, end: u64) {
        if self.busy.len() < self.count {
            self.busy.push(Reverse(end));
        } else if let Some(mut earliest) = self.busy.peek_mut() {
            *earliest = Reverse(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_for_the_first_free_server() {
        let mut servers = Servers::new(2);
        // (arrival, service time) and the start of each.
        for (arrival, taken, expected) in
            [(0, 10, 0), (0, 4, 0), (0, 1, 4), (4, 1, 5), (5, 1, 6), (20, 1, 20)]
        {
            let begin = servers.free(arrival);
            servers.occupy(begin + taken);
            assert_eq!(begin, expected, "{arrival} for {taken}");
        }
    }
}
