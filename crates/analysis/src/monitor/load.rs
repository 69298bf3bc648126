//! A load by its single requests: sizes, order, depth, how long the device took, and what part of it is used.
//!
//! A request is sequential where it begins where one of the last requests of its kind ended; several streams at once are
//! followed. Memory is bounded whatever is seen. Pure.

use std::collections::HashMap;

use fathom_model::Op;

pub use fathom_record::load::{LoadClass, ObservedLoad, OpLoad};

/// Streams that are followed at once per kind of request.
const STREAMS: usize = 32;
/// Requests in flight that are remembered. More than any device holds: their completions were missed.
const WAITING: usize = 1 << 18;

/// A stream: where its next request would begin, and when it last went on.
#[derive(Clone, Copy, Debug, Default)]
struct SequentialStream {
    next: u64,
    used: u64,
}

/// Looks at the requests of one device as they come by.
#[derive(Clone, Debug, Default)]
pub struct LoadWatch {
    load: ObservedLoad,
    streams: HashMap<Op, Vec<SequentialStream>>,
    waiting: HashMap<(Op, u64), (u64, bool)>,
    /// In flight now, by kind and whether sequential.
    depths: HashMap<(Op, bool), usize>,
    turn: u64,
}

impl LoadWatch {
    /// A request is issued to the driver. One that is still in flight is issued anew and counts once.
    pub fn issued(&mut self, op: Op, at: u64, bytes: u64, time_ns: u64) {
        if self.waiting.contains_key(&(op, at)) {
            return;
        }
        if self.waiting.len() >= WAITING {
            self.forget();
        }
        let sequential = self.count(op, at, bytes);
        self.waiting.insert((op, at), (time_ns, sequential));
        let depth = self.depths.entry((op, sequential)).or_default();
        *depth += 1;
        let depth = *depth;
        self.class(op, sequential).record_depth(depth);
    }

    /// A request enters a device that does not tell when it is issued or done.
    pub fn entered(&mut self, op: Op, at: u64, bytes: u64) {
        self.count(op, at, bytes);
    }

    /// A request has come back.
    pub fn completed(&mut self, op: Op, at: u64, time_ns: u64) {
        if let Some(issued_ns) = self.done((op, at)) {
            self.load.ops.entry(op).or_default().service.record(time_ns.saturating_sub(issued_ns));
        }
    }

    /// Forgets a request that was waited for; answers when it was issued.
    fn done(&mut self, key: (Op, u64)) -> Option<u64> {
        let (issued_ns, sequential) = self.waiting.remove(&key)?;
        if let Some(depth) = self.depths.get_mut(&(key.0, sequential)) {
            *depth = depth.saturating_sub(1);
        }
        Some(issued_ns)
    }

    /// No more than `in_flight` were in flight at this moment. Where more are waited for, the completions of the oldest of them
    /// were not seen as such; those issued at `recent_ns` or later are spared, since they may have come in between.
    pub fn settle(&mut self, in_flight: u64, recent_ns: u64) {
        let excess = (self.waiting.len() as u64).saturating_sub(in_flight) as usize;
        if excess == 0 {
            return;
        }
        let mut old: Vec<(u64, (Op, u64))> = self
            .waiting
            .iter()
            .filter(|(_, (at, _))| *at < recent_ns)
            .map(|(&key, &(at, _))| (at, key))
            .collect();
        old.sort_unstable();
        for (_, key) in old.into_iter().take(excess) {
            self.done(key);
        }
    }

    /// So many events were missed; what is in flight is not known any more.
    pub fn missed(&mut self, events: u64) {
        self.load.lost += events;
        self.forget();
    }

    /// What was seen since the last call; what is in flight stays known.
    pub fn take(&mut self) -> ObservedLoad {
        std::mem::take(&mut self.load)
    }

    fn forget(&mut self) {
        self.waiting.clear();
        self.depths.clear();
    }

    fn class(&mut self, op: Op, sequential: bool) -> &mut LoadClass {
        let load = self.load.ops.entry(op).or_default();
        if sequential { &mut load.sequential } else { &mut load.random }
    }

    /// Counts a request; answers whether it is sequential.
    fn count(&mut self, op: Op, at: u64, bytes: u64) -> bool {
        self.turn += 1;
        let streams = self.streams.entry(op).or_default();
        let stream = SequentialStream { next: at + bytes, used: self.turn };
        let known = streams.iter().position(|stream| stream.next == at);
        let sequential = known.is_some() && !op.is_sync();
        let oldest = || (0..streams.len()).min_by_key(|&index| streams[index].used);
        match known.or_else(|| oldest().filter(|_| streams.len() == STREAMS)) {
            Some(index) => streams[index] = stream,
            None => streams.push(stream),
        }
        self.class(op, sequential).record(at, bytes);
        sequential
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The load of requests that are each done before the next.
    fn load(requests: impl IntoIterator<Item = (Op, u64, u64)>) -> ObservedLoad {
        let mut watch = LoadWatch::default();
        for (turn, (op, at, bytes)) in requests.into_iter().enumerate() {
            watch.issued(op, at, bytes, turn as u64 * 1000);
            watch.completed(op, at, turn as u64 * 1000 + 300);
        }
        watch.take()
    }

    #[test]
    fn streams_are_sequential_also_when_they_alternate() {
        let share = |load: &ObservedLoad, op: Op| load.ops[&op].sequential_share().unwrap();
        let one = load((0..1000).map(|n| (Op::Read, n * 4096, 4096)));
        assert!(share(&one, Op::Read) > 0.99);
        let four = load((0..1000).map(|n| (Op::Write, ((n % 4) << 30) + n / 4 * 8192, 8192)));
        assert!(share(&four, Op::Write) > 0.99);
        // Scattered over 4 GiB by a multiplier without a common divisor.
        let random = load((0..1000).map(|n| (Op::Read, n * 514_229 % 1_048_576 * 4096, 4096)));
        assert!(share(&random, Op::Read) < 0.01);
        // A stream of writes among scattered reads.
        let mixed = load((0..1000).map(|n| match n % 2 {
            0 => (Op::Read, n * 514_229 % 1_048_576 * 4096, 4096),
            _ => (Op::Write, n / 2 * 4096, 4096),
        }));
        assert!(share(&mixed, Op::Read) < 0.01 && share(&mixed, Op::Write) > 0.99);
    }

    #[test]
    fn sizes_ranges_and_times_are_exact() {
        let load = load([(Op::Read, 8192, 4096), (Op::Read, 1 << 20, 65_536), (Op::Read, 12_288, 4096)]);
        let read = &load.ops[&Op::Read];
        let all = read.all();
        assert_eq!((all.requests, all.bytes), (3, 73_728));
        assert_eq!(all.sizes, BTreeMap::from([(4096, 2), (65_536, 1)]));
        assert_eq!(all.range, Some((8192, (1 << 20) + 65_536)));
        assert_eq!((read.service.moments.count, read.service.moments.max), (3, 300));
        assert_eq!(read.sequential.requests, 1);
    }

    #[test]
    fn depth_is_that_at_issue() {
        let mut watch = LoadWatch::default();
        for n in 0..100 {
            watch.issued(Op::Read, n * 1_000_000, 4096, n);
            if n >= 7 {
                watch.completed(Op::Read, (n - 7) * 1_000_000, n);
            }
        }
        let class = watch.take().ops[&Op::Read].all();
        assert_eq!((class.depth_at(0.95), class.depth_at(0.0)), (Some(8), Some(1)));
        assert_eq!(LoadClass::default().depth_at(0.5), None);
    }

    #[test]
    fn a_request_issued_again_counts_once_and_a_stray_completion_not_at_all() {
        let mut watch = LoadWatch::default();
        watch.completed(Op::Read, 0, 5);
        watch.issued(Op::Read, 4096, 4096, 10);
        watch.issued(Op::Read, 4096, 4096, 20);
        watch.completed(Op::Read, 4096, 30);
        let load = watch.take();
        let read = &load.ops[&Op::Read];
        assert_eq!((read.all().requests, read.service.moments.count, read.service.moments.max), (1, 1, 20));
        assert!(watch.take().ops.is_empty());
    }

    #[test]
    fn requests_whose_completion_was_missed_do_not_deepen_the_queue() {
        let mut watch = LoadWatch::default();
        for n in 0..10 {
            watch.issued(Op::Read, n * 1_000_000, 4096, n * 100);
        }
        watch.settle(10, 2000);
        assert_eq!(watch.waiting.len(), 10);
        // Of the ten three are really there; those from 800 ns on may have come after it was looked.
        watch.settle(3, 800);
        assert_eq!(watch.waiting.len(), 3);
        watch.settle(0, 800);
        let mut left: Vec<u64> = watch.waiting.values().map(|&(at, _)| at).collect();
        left.sort_unstable();
        assert_eq!(left, [800, 900]);
        watch.settle(0, 2000);
        watch.take();
        watch.issued(Op::Read, 77, 4096, 3000);
        assert_eq!(watch.take().ops[&Op::Read].all().depth_at(1.0), Some(1));
    }

    #[test]
    fn memory_is_bounded() {
        let mut watch = LoadWatch::default();
        for n in 0..WAITING as u64 + 10 {
            watch.issued(Op::Write, n * 4096 * 7, 512 * (n % 10_000 + 1), n);
        }
        assert!(watch.waiting.len() <= WAITING);
        let write = &watch.take().ops[&Op::Write];
        assert!(write.random.sizes.len() <= 4096);
        assert_eq!(write.all().sizes.values().sum::<u64>(), WAITING as u64 + 10);
    }

    #[test]
    fn loads_add_up() {
        let mut sum = load([(Op::Read, 0, 4096)]);
        sum.merge(&load([(Op::Read, 1 << 20, 8192), (Op::Sync, 0, 0)]));
        let all = sum.ops[&Op::Read].all();
        assert_eq!((all.requests, all.range, sum.ops.len()), (2, Some((0, (1 << 20) + 8192)), 2));
    }
}
