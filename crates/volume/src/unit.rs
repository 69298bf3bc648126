//! The charge of a request in I/Os and bytes.
//!
//! Providers count in units: larger requests are split, and sequential ones may be merged into one unit.

/// The counting rule of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Most bytes that count as one I/O; `None` = any request is one I/O.
    pub unit_bytes: Option<u32>,
    /// A request that begins at the end of an earlier one shares its unit, until that is full or a flush comes between.
    pub merges_sequential: bool,
    /// Bytes are counted in whole units, as for disks, where a short random read costs as much as a long one.
    pub whole_units: bool,
}

/// The charge of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestCharge {
    pub(crate) ios: u64,
    pub(crate) bytes: u64,
}

/// Sequential streams that are tracked; the oldest is replaced first.
const STREAMS: usize = 8;

/// Counts the requests of one limit.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    accounting: Accounting,
    streams: Box<Streams>,
}

#[derive(Clone, Debug)]
struct Streams {
    /// Start of the next request of each stream. No request begins at [`u64::MAX`].
    ends: [u64; STREAMS],
    /// Used bytes of the last unit of each stream.
    used: [u32; STREAMS],
    oldest: usize,
}

impl Counter {
    pub(crate) fn new(accounting: Accounting) -> Self {
        let streams = Streams { ends: [u64::MAX; STREAMS], used: [0; STREAMS], oldest: 0 };
        Counter { accounting, streams: Box::new(streams) }
    }

    /// The charge of `bytes` at `offset`. Reads and writes have separate counters, because they never merge with each
    /// other.
    #[inline(always)]
    pub(crate) fn cost(&mut self, offset: u64, bytes: u32) -> RequestCharge {
        let Some(unit) = self.accounting.unit_bytes else {
            return RequestCharge { ios: 1, bytes: u64::from(bytes) };
        };
        let ios = if self.accounting.merges_sequential {
            self.streams.continue_with(offset, bytes, unit)
        } else {
            units(u64::from(bytes), unit)
        };
        let bytes = if self.accounting.whole_units { ios * u64::from(unit) } else { u64::from(bytes) };
        RequestCharge { ios, bytes }
    }

    /// The client waited for a flush: what it writes next cannot share a unit with what is already written.
    pub(crate) fn flushed(&mut self) {
        self.streams.ends = [u64::MAX; STREAMS];
    }
}

impl Streams {
    /// New units that `bytes` at `offset` begin, beyond the current one of their stream.
    #[inline(always)]
    fn continue_with(&mut self, offset: u64, bytes: u32, unit: u32) -> u64 {
        let found = self.ends.iter().position(|&end| end == offset);
        let stream = found.unwrap_or(self.oldest);
        let used = if found.is_some() {
            self.used[stream]
        } else {
            self.oldest = (self.oldest + 1) % STREAMS;
            0
        };
        // Every request belongs to a unit, so one without bytes begins a unit if none is open.
        let total = u64::from(used) + u64::from(bytes);
        let begun = units(total, unit);
        self.ends[stream] = offset.saturating_add(u64::from(bytes));
        self.used[stream] = (total - (begun - 1) * u64::from(unit)) as u32;
        begun - u64::from(used > 0)
    }
}

/// Units for `bytes`; most requests fit in one, which needs no division.
#[inline(always)]
fn units(bytes: u64, unit: u32) -> u64 {
    let unit = u64::from(unit);
    if bytes <= unit { 1 } else { bytes.div_ceil(unit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn check(accounting: Accounting, requests: &[(u64, u64)], expected: &[u64]) {
        let mut counter = Counter::new(accounting);
        let counted: Vec<u64> =
            requests.iter().map(|&(at, len)| counter.cost(at * KIB, (len * KIB) as u32).ios).collect();
        assert_eq!(counted, expected, "{accounting:?} {requests:?}");
    }

    fn unit(kib: u64, merges_sequential: bool) -> Accounting {
        Accounting { unit_bytes: Some((kib * KIB) as u32), merges_sequential, whole_units: false }
    }

    #[test]
    fn requests_are_split_and_merged() {
        check(Accounting::default(), &[(0, 4), (4, 1024)], &[1, 1]);
        // io1 of 2012: 16 KB units, no merging.
        check(unit(16, false), &[(0, 4), (4, 16), (20, 17), (37, 64)], &[1, 1, 2, 4]);
        // gp2: 256 KiB units, sequential ones merged; 1,024 KiB are four.
        check(unit(256, true), &[(0, 1024), (1 << 20, 4), (1 << 21, 256)], &[4, 1, 1]);
        // Eight sequential requests of 32 KiB are one I/O, the ninth begins the next.
        let sequential: Vec<(u64, u64)> = (0..9).map(|index| (index * 32, 32)).collect();
        check(unit(256, true), &sequential, &[1, 0, 0, 0, 0, 0, 0, 0, 1]);
        // 160 KiB each: ceil(160/256), ceil(320/256), ceil(480/256), ceil(640/256).
        check(unit(256, true), &[(0, 160), (160, 160), (320, 160), (480, 160)], &[1, 1, 0, 1]);
        // Two interleaved streams, and one with a gap.
        check(unit(256, true), &[(0, 64), (1000, 64), (64, 64), (1064, 64), (2000, 64)], &[1, 1, 0, 0, 1]);
        // One stream more than are tracked.
        let many: Vec<(u64, u64)> = (0..=8).map(|index| (index * 1000, 64)).collect();
        let costs: Vec<u64> = vec![1; 10];
        check(unit(256, true), &[&many[..], &[(64, 64)]].concat(), &costs);
    }

    #[test]
    fn a_flush_ends_the_unit_of_a_stream() {
        let mut counter = Counter::new(unit(256, true));
        let mut cost = |at: u64| counter.cost(at * KIB, (4 * KIB) as u32).ios;
        assert_eq!([cost(0), cost(4), cost(8)], [1, 0, 0]);
        counter.flushed();
        let mut cost = |at: u64| counter.cost(at * KIB, (4 * KIB) as u32).ios;
        assert_eq!([cost(12), cost(16)], [1, 0]);
    }

    #[test]
    fn whole_units_charge_random_requests_a_full_unit() {
        let mut counter = Counter::new(Accounting { whole_units: true, ..unit(1024, true) });
        // st1: a random 4 KiB read costs a MiB of burst credits.
        assert_eq!(counter.cost(0, 4096), RequestCharge { ios: 1, bytes: 1 << 20 });
        assert_eq!(counter.cost(1 << 30, 4096), RequestCharge { ios: 1, bytes: 1 << 20 });
        // Sequential requests after it are free until the MiB is full.
        assert_eq!(counter.cost((1 << 30) + 4096, 4096), RequestCharge { ios: 0, bytes: 0 });
        assert_eq!(counter.cost(1 << 33, 1 << 20), RequestCharge { ios: 1, bytes: 1 << 20 });
    }
}
