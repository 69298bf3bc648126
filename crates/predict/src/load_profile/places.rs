//! Where requests go, and how large they are: sizes, order, and the part of a device that they use, in bounded memory: what is touched, in
//! units that grow with it, and how often each region is.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use fathom_model::Op;
use fathom_observed::ObservedRequest;
use serde::Serialize;

/// Sequential streams that are followed at once, for each operation.
pub const STREAMS: usize = 16;
/// Sizes that are listed.
const MAX_SIZES: usize = 12;
/// Sizes that are counted by themselves; further ones count in the total alone.
const MAX_COUNTED: usize = 1 << 16;
/// Sizes that are looked for one after the other.
const FREQUENT: usize = 16;

/// A size of requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeShare {
    /// `read`, `write` or `trim`.
    pub operation: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// Requests.
    pub ops: u64,
    /// Their share in all that move data.
    pub share: f64,
}

/// Shares of sequential requests: those that begin where one of the latest requests of the same operation ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccessOrder {
    /// Of reads.
    pub sequential_reads: Option<f64>,
    /// Of writes.
    pub sequential_writes: Option<f64>,
    /// Of both.
    pub sequential: f64,
}

/// Counts requests by operation and size.
#[derive(Debug, Default)]
pub(super) struct SizeTally {
    /// The sizes that came first, which are most of what most loads have.
    frequent: Vec<((Op, u32), u64)>,
    others: HashMap<(Op, u32), u64>,
    total: u64,
}

impl SizeTally {
    /// Counts a request that is no sync.
    pub fn take(&mut self, request: &ObservedRequest) {
        let size = (request.op, request.bytes);
        self.total += 1;
        if let Some((_, ops)) = self.frequent.iter_mut().find(|(known, _)| *known == size) {
            *ops += 1;
        } else if self.frequent.len() < FREQUENT {
            self.frequent.push((size, 1));
        } else if self.others.len() < MAX_COUNTED || self.others.contains_key(&size) {
            *self.others.entry(size).or_default() += 1;
        }
    }

    /// Sizes, the most frequent first.
    pub fn sizes(self) -> Vec<SizeShare> {
        let mut sizes = self.frequent;
        sizes.extend(self.others);
        sizes.sort_unstable_by_key(|&(size, ops)| (std::cmp::Reverse(ops), size));
        sizes.truncate(MAX_SIZES);
        let of = |((op, bytes), ops): ((Op, u32), u64)| SizeShare {
            operation: op.name(),
            bytes: u64::from(bytes),
            ops,
            share: ops as f64 / self.total as f64,
        };
        sizes.into_iter().map(of).collect()
    }
}

/// The ends of the latest requests of one operation, the oldest replaced first.
#[derive(Clone, Copy, Debug)]
struct LatestEnds {
    ends: [u64; STREAMS],
    files: [u16; STREAMS],
    oldest: usize,
    requests: u64,
    sequential: u64,
}

impl LatestEnds {
    const NONE: LatestEnds =
        LatestEnds { ends: [u64::MAX; STREAMS], files: [0; STREAMS], oldest: 0, requests: 0, sequential: 0 };

    #[inline]
    fn take(&mut self, request: &ObservedRequest) {
        self.requests += 1;
        // Without branches, since most requests match none.
        let known = self.ends.iter().zip(&self.files).enumerate();
        let matches = known.fold(0_u32, |matches, (stream, (end, file))| {
            matches | u32::from((end ^ request.offset) | u64::from(file ^ request.file) == 0) << stream
        });
        let stream = match matches {
            0 => {
                let oldest = self.oldest;
                self.oldest = (oldest + 1) % STREAMS;
                oldest
            }
            _ => {
                self.sequential += 1;
                matches.trailing_zeros() as usize
            }
        };
        self.ends[stream] = request.offset + u64::from(request.bytes);
        self.files[stream] = request.file;
    }

    fn share(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.sequential as f64 / self.requests as f64)
    }
}

/// Follows the streams of reads and of writes.
#[derive(Debug)]
pub(super) struct OrderTally {
    reads: LatestEnds,
    writes: LatestEnds,
}

impl Default for OrderTally {
    fn default() -> OrderTally {
        OrderTally { reads: LatestEnds::NONE, writes: LatestEnds::NONE }
    }
}

impl OrderTally {
    /// Takes a read or write.
    #[inline]
    pub fn take(&mut self, request: &ObservedRequest) {
        match request.op {
            Op::Read => self.reads.take(request),
            _ => self.writes.take(request),
        }
    }

    /// How much is sequential; `None` without reads and writes.
    pub fn order(&self) -> Option<AccessOrder> {
        let OrderTally { reads, writes } = self;
        let requests = reads.requests + writes.requests;
        (requests > 0).then(|| AccessOrder {
            sequential_reads: reads.share(),
            sequential_writes: writes.share(),
            sequential: (reads.sequential + writes.sequential) as f64 / requests as f64,
        })
    }
}

/// The smallest unit, bytes.
const MIN_UNIT: u64 = 512;
/// Units whose use is kept together.
const UNITS: u64 = 256;
/// The smallest region whose accesses are counted together, bytes.
const MIN_REGION: u64 = 1 << 20;
/// Groups of units in memory at most, 40 bytes each; units grow beyond that.
const MAX_GROUPS: usize = 1 << 19;
/// Regions in memory at most, 16 bytes each.
const MAX_REGIONS: usize = 1 << 20;
/// Shares of the accesses for which the smallest part of the device is sought.
const HOT_SHARES: [f64; 3] = [0.5, 0.9, 0.99];
/// Bits of a place on a device.
const PLACE_BITS: u32 = 48;

/// The part of the device that requests use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkingSet {
    /// Bytes that a request covers, each counted once, in whole units.
    pub touched_bytes: u64,
    /// The unit, bytes: a sector, unless much is touched.
    pub unit_bytes: u64,
    /// From the first to the last of them, of several files together.
    pub span_bytes: u64,
    /// The size of a region, bytes: 1 MiB, unless many are used.
    pub region_bytes: u64,
    /// The busiest regions.
    pub hot: Vec<HotRegions>,
}

/// The fewest regions in which a share of the requests begins.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HotRegions {
    /// The share.
    pub share: f64,
    /// Bytes of these regions.
    pub bytes: u64,
}

/// Hashes places, which differ in their low bits.
#[derive(Debug, Default)]
pub(crate) struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type PlaceMap<T> = HashMap<u64, T, BuildHasherDefault<PlaceHasher>>;

/// A place of a file: the file in the high bits.
fn place(file: u16, index: u64) -> u64 {
    u64::from(file) << PLACE_BITS | index
}

/// The place that holds this one where places are twice as long.
fn doubled(place: u64) -> u64 {
    const INDEX: u64 = (1 << PLACE_BITS) - 1;
    place & !INDEX | (place & INDEX) >> 1
}

/// Follows what requests use.
#[derive(Debug)]
pub(super) struct WorkingSetTally {
    most_groups: usize,
    unit_bytes: u64,
    /// Which units of a group are touched.
    groups: PlaceMap<[u64; 4]>,
    most_regions: usize,
    region_bytes: u64,
    /// Accesses that begin in a region.
    regions: PlaceMap<u64>,
    accesses: u64,
}

/// From the first to the last byte that requests use.
#[derive(Debug, Default)]
pub(super) struct SpanTally {
    /// First byte, and the one behind the last, of each file.
    files: Vec<Option<(u64, u64)>>,
}

impl SpanTally {
    /// Adds a read or write.
    #[inline]
    pub fn take(&mut self, request: &ObservedRequest) {
        let end = request.offset.saturating_add(u64::from(request.bytes));
        let index = usize::from(request.file);
        if index >= self.files.len() {
            self.files.resize(index + 1, None);
        }
        let (first, last) = self.files[index].unwrap_or((request.offset, end));
        self.files[index] = Some((first.min(request.offset), last.max(end)));
    }

    /// The sum over the files; `None` without reads and writes.
    pub fn bytes(&self) -> Option<u64> {
        let used = self.files.iter().flatten().map(|(first, end)| end - first);
        used.reduce(u64::saturating_add)
    }
}

impl Default for WorkingSetTally {
    fn default() -> WorkingSetTally {
        WorkingSetTally::within(MAX_GROUPS, MAX_REGIONS)
    }
}

impl WorkingSetTally {
    fn within(most_groups: usize, most_regions: usize) -> WorkingSetTally {
        WorkingSetTally {
            most_groups,
            unit_bytes: MIN_UNIT,
            groups: PlaceMap::default(),
            most_regions,
            region_bytes: MIN_REGION,
            regions: PlaceMap::default(),
            accesses: 0,
        }
    }

    /// Adds a read or write.
    pub fn take(&mut self, request: &ObservedRequest) {
        self.accesses += 1;
        let end = request.offset.saturating_add(u64::from(request.bytes));
        *self.regions.entry(place(request.file, request.offset / self.region_bytes)).or_default() += 1;
        if self.regions.len() > self.most_regions {
            self.double_regions();
        }
        if request.bytes > 0 {
            self.touch(request.file, request.offset, end);
        }
    }

    fn touch(&mut self, file: u16, mut offset: u64, end: u64) {
        while offset < end {
            let group_bytes = self.unit_bytes * UNITS;
            let group = offset / group_bytes;
            let begin = group * group_bytes;
            let first = (offset - begin) / self.unit_bytes;
            let last = (end.min(begin.saturating_add(group_bytes)) - 1 - begin) / self.unit_bytes;
            let bits = self.groups.entry(place(file, group)).or_default();
            for (word, bits) in (0_u64..).zip(bits.iter_mut()) {
                let (low, high) = (first.max(word * 64), last.min(word * 64 + 63));
                if low <= high {
                    *bits |= u64::MAX >> (63 - (high - low)) << (low % 64);
                }
            }
            offset = begin.saturating_add(group_bytes);
            if self.groups.len() > self.most_groups {
                self.double_units();
            }
        }
    }

    fn double_units(&mut self) {
        let mut groups = PlaceMap::default();
        for (place, [a, b, c, d]) in std::mem::take(&mut self.groups) {
            let half = [paired(a) | paired(b) << 32, paired(c) | paired(d) << 32];
            let into: &mut [u64; 4] = groups.entry(doubled(place)).or_default();
            let at = if place & 1 == 0 { 0 } else { 2 };
            into[at] |= half[0];
            into[at + 1] |= half[1];
        }
        self.groups = groups;
        self.unit_bytes *= 2;
    }

    fn double_regions(&mut self) {
        let mut regions = PlaceMap::default();
        for (place, accesses) in std::mem::take(&mut self.regions) {
            *regions.entry(doubled(place)).or_default() += accesses;
        }
        self.regions = regions;
        self.region_bytes *= 2;
    }

    /// The part of the device in use, which spans so many bytes.
    pub fn working_set(self, span_bytes: u64) -> WorkingSet {
        let units: u64 = self.groups.values().flatten().map(|bits| u64::from(bits.count_ones())).sum();
        let mut regions: Vec<u64> = self.regions.into_values().collect();
        regions.sort_unstable_by(|one, other| other.cmp(one));
        let hot = HOT_SHARES.map(|share| HotRegions {
            share,
            bytes: fewest(&regions, share, self.accesses).saturating_mul(self.region_bytes),
        });
        WorkingSet {
            touched_bytes: units.saturating_mul(self.unit_bytes),
            unit_bytes: self.unit_bytes,
            span_bytes,
            region_bytes: self.region_bytes,
            hot: hot.to_vec(),
        }
    }
}

/// One bit for each pair of bits that is set where any of the two is.
fn paired(bits: u64) -> u64 {
    let mut bits = (bits | bits >> 1) & 0x5555_5555_5555_5555;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ] {
        bits = (bits | bits >> shift) & mask;
    }
    bits
}

/// The fewest regions, of those by descending accesses, that have this share of all accesses.
fn fewest(regions: &[u64], share: f64, accesses: u64) -> u64 {
    let wanted = (share * accesses as f64).ceil() as u64;
    let mut reached = 0;
    let enough = regions.iter().position(|count| {
        reached += count;
        reached >= wanted
    });
    enough.map_or(regions.len(), |last| last + 1) as u64
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;

    use super::super::tests::request;
    use super::*;

    #[test]
    fn sizes_are_listed_by_their_frequency() {
        let mut requests: Vec<_> = (0..9).map(|at| request(at, Op::Read, 0, 4096, 0)).collect();
        requests.push(request(9, Op::Write, 0, 65_536, 0));
        let mut tally = SizeTally::default();
        requests.iter().for_each(|request| tally.take(request));
        let sizes = tally.sizes();
        let found: Vec<_> = sizes.iter().map(|size| (size.operation, size.bytes, size.share)).collect();
        assert_eq!(found, [("read", 4096, 0.9), ("write", 65_536, 0.1)]);
    }

    #[test]
    fn interleaved_streams_are_sequential_and_jumps_are_not() {
        let mut requests = Vec::new();
        for at in 0..100_u64 {
            requests.push(request(at, Op::Read, at * 4096, 4096, 0));
            requests.push(request(at, Op::Read, (1 << 30) + at * 4096, 4096, 0));
            requests.push(request(at, Op::Write, at * 40_960 % 7_777_777, 4096, 0));
        }
        let mut tally = OrderTally::default();
        requests.iter().for_each(|request| tally.take(request));
        let order = tally.order().unwrap();
        assert_eq!((order.sequential_reads, order.sequential_writes), (Some(0.99), Some(0.0)));
        assert_eq!(order.sequential, 0.66);
    }

    #[test]
    fn many_sizes_are_counted_in_bounded_memory() {
        let mut tally = SizeTally::default();
        for bytes in 1..100_000 {
            tally.take(&request(0, Op::Write, 0, bytes, 0));
        }
        assert_eq!((tally.frequent.len(), tally.others.len()), (FREQUENT, MAX_COUNTED));
        tally.take(&request(0, Op::Write, 0, 500, 0));
        let sizes = tally.sizes();
        assert_eq!((sizes.len(), sizes[0].bytes, sizes[0].ops), (MAX_SIZES, 500, 2));
    }

    fn set(mut tally: WorkingSetTally, places: &[(u64, u32)]) -> WorkingSet {
        let mut span = SpanTally::default();
        for request in places.iter().map(|&(offset, bytes)| request(0, Op::Read, offset, bytes, 0)) {
            tally.take(&request);
            span.take(&request);
        }
        tally.working_set(span.bytes().unwrap())
    }

    #[test]
    fn bytes_are_touched_once_and_regions_counted() {
        let mut places = vec![(0, 8192); 98];
        places.extend([(4096, 8192), (10 << 20, 4096)]);
        let found = set(WorkingSetTally::default(), &places);
        assert_eq!((found.touched_bytes, found.span_bytes), (16_384, (10 << 20) + 4096));
        assert_eq!((found.unit_bytes, found.region_bytes), (512, 1 << 20));
        let hot: Vec<u64> = found.hot.iter().map(|hot| hot.bytes >> 20).collect();
        assert_eq!(hot, [1, 1, 1]);
        assert_eq!(fewest(&[98, 1, 1], 0.99, 100), 2);
    }

    #[test]
    fn units_and_regions_grow_with_what_is_touched() {
        // Every second MiB of 64, 64 KiB each.
        let places: Vec<(u64, u32)> = (0..64).map(|place| (place << 21, 64 << 10)).collect();
        let exact = set(WorkingSetTally::default(), &places);
        assert_eq!((exact.touched_bytes, exact.hot[2].bytes), (4 << 20, 64 << 20));
        let coarse = set(WorkingSetTally::within(4, 8), &places);
        // Groups of 32 MiB, regions of 16 MiB.
        assert_eq!((coarse.unit_bytes, coarse.region_bytes), (128 << 10, 16 << 20));
        assert_eq!((coarse.touched_bytes, coarse.hot[2].bytes), (64 * (128 << 10), 128 << 20));
        assert_eq!(coarse.span_bytes, exact.span_bytes);
    }

    #[test]
    fn long_requests_cover_several_groups() {
        for (offset, bytes) in
            [(512, 4 << 20), (131_072 - 512, 1024), (0, 131_072), (1 << 62, u32::MAX - 511)]
        {
            let found = set(WorkingSetTally::default(), &[(offset, bytes)]);
            assert_eq!(found.touched_bytes, u64::from(bytes), "{offset} {bytes}");
        }
        assert_eq!(set(WorkingSetTally::default(), &[(7, 1)]).touched_bytes, 512);
    }

    #[test]
    fn pairs_of_bits_become_one() {
        let slow = |bits: u64| (0..32).fold(0, |sum, at| sum | u64::from(bits >> (2 * at) & 3 != 0) << at);
        for bits in
            [0, 1, 2, 3, u64::MAX, 0x8000_0000_0000_0001, 0x1234_5678_9abc_def0, 0xaaaa_5555_0f0f_f0f0]
        {
            assert_eq!(paired(bits), slow(bits), "{bits:x}");
        }
    }
}
