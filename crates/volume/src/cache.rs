//! A host cache in front of the limits: they do not count the requests that it serves.
//!
//! It holds the lines that were used last, so the hit ratio follows from its capacity and the working set. A cold cache
//! warms up with the first access to each line; a warm one already holds the lines that are used first.

use std::collections::VecDeque;

use crate::fault::FaultSchedule;
use crate::rate::TokenRate;
use crate::rng::VolumeRng;
use crate::stage::{LimitStage, Passage, StageRequest};

/// A read cache, and a write-back cache if `dirty_bytes` is above 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Capacity.
    pub bytes: u64,
    /// Size of a line.
    pub line_bytes: u32,
    /// Latency of a read that the cache serves, ns.
    pub latency_ns: u64,
    /// Latency of a write that the cache keeps, ns.
    pub write_latency_ns: u64,
    /// Most dirty bytes, which are not on the volume yet; 0 = write-through.
    pub dirty_bytes: u64,
    /// Flushes do not wait for dirty bytes, as those of QEMU's `cache=unsafe`.
    pub ignores_flushes: bool,
    /// Reads of a million that the cache serves of those whose data it holds.
    pub hits_per_million: u32,
    /// The cache already holds the data that is used first, as far as it has room.
    pub is_warm: bool,
    /// Rate at which the host reads ahead of sequential reads; `None` = it does not.
    pub read_ahead: Option<TokenRate>,
    /// Limit on the reads that the cache serves.
    pub reads: Option<LimitStage>,
    /// Limit on the writes that the cache keeps.
    pub writes: Option<LimitStage>,
}

/// [`Cache::hits_per_million`] of a cache that serves all data it holds.
const ALL_HITS: u32 = 1_000_000;

/// Lines per set.
const WAYS: usize = 8;
/// Upper bound of the number of lines, above any real host's, at 8 bytes each.
const MAX_LINES: u64 = 1 << 26;
/// Most lines of 4 KiB; a larger cache has larger lines.
const MAX_USUAL_LINES: u64 = 1 << 24;

impl Cache {
    /// A cold read cache of `bytes` that serves all data it holds in `latency_ns`, without limits.
    pub fn read_only(bytes: u64, latency_ns: u64) -> Self {
        Cache {
            bytes,
            line_bytes: usual_line_bytes(bytes),
            latency_ns,
            write_latency_ns: latency_ns,
            dirty_bytes: 0,
            ignores_flushes: false,
            hits_per_million: ALL_HITS,
            is_warm: false,
            read_ahead: None,
            reads: None,
            writes: None,
        }
    }

    /// The first invalid field, and the reason.
    pub(crate) fn invalid_field(&self) -> Option<(String, String)> {
        if let Some((field, reason)) = self.invalid_number() {
            return Some((field.to_owned(), reason));
        }
        let stages = [("reads", &self.reads), ("writes", &self.writes)];
        stages.into_iter().find_map(|(name, stage)| {
            let (field, reason) = stage.as_ref()?.invalid_field()?;
            Some((format!("{name}.{field}"), reason))
        })
    }

    fn invalid_number(&self) -> Option<(&'static str, String)> {
        let lines = self.bytes / u64::from(self.line_bytes.max(1));
        match self {
            Cache { line_bytes: 0, .. } => Some(("line_bytes", "is 0".to_owned())),
            _ if lines < WAYS as u64 => {
                Some(("bytes", format!("give {lines} lines; at least {WAYS} are required")))
            }
            _ if lines > MAX_LINES => {
                Some(("bytes", format!("give {lines} lines; at most {MAX_LINES} are possible")))
            }
            _ if self.dirty_bytes > self.bytes => {
                Some(("dirty_bytes", "exceed the capacity of the cache".to_owned()))
            }
            _ if self.hits_per_million > ALL_HITS => {
                Some(("hits_per_million", format!("{} is above a million", self.hits_per_million)))
            }
            _ => None,
        }
    }
}

/// Lines of 4 KiB, or larger ones where these would be too many.
fn usual_line_bytes(bytes: u64) -> u32 {
    let least = bytes.div_ceil(MAX_USUAL_LINES).clamp(4096, 1 << 30);
    u32::try_from(least.next_power_of_two()).unwrap_or(4096)
}

/// The state of a cache: its lines, and the writes that are not on the volume yet.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    cache: Cache,
    rng: VolumeRng,
    reads: Option<Passage>,
    writes: Option<Passage>,
    /// Where a sequential read would begin, and when the host has read up to there.
    ahead: (u64, u64),
    /// Sets of [`WAYS`], most recently used first; line number + 1, or 0 for an empty entry.
    lines: Vec<u64>,
    /// When each write will be on the volume, and its bytes.
    dirty: VecDeque<(u64, u32)>,
    dirty_bytes: u64,
}

impl Cached {
    pub(crate) fn new(cache: &Cache, rng: VolumeRng) -> Self {
        let sets = (cache.bytes / u64::from(cache.line_bytes)) as usize / WAYS;
        Cached {
            rng,
            reads: cache.reads.as_ref().map(Passage::new),
            writes: cache.writes.as_ref().map(Passage::new),
            ahead: (u64::MAX, 0),
            lines: vec![0; sets * WAYS],
            dirty: VecDeque::new(),
            dirty_bytes: 0,
            cache: cache.clone(),
        }
    }

    /// When a read that arrives at `arrival` and is served by the cache completes its limits; and its latency.
    pub(crate) fn serve(
        &mut self,
        arrival: u64,
        request: &StageRequest,
        faults: &FaultSchedule,
    ) -> (u64, u64) {
        let at = self.reads.as_mut().map_or(arrival, |passage| passage.pass(arrival, request, faults));
        (at, self.cache.latency_ns)
    }

    /// When a write that arrives at `arrival` has passed the limits of the cache.
    pub(crate) fn accept(&mut self, arrival: u64, request: &StageRequest, faults: &FaultSchedule) -> u64 {
        self.writes.as_mut().map_or(arrival, |passage| passage.pass(arrival, request, faults))
    }

    /// True if the host has read ahead to `offset`.
    pub(crate) fn is_sequential(&self, offset: u64) -> bool {
        self.cache.read_ahead.is_some() && offset == self.ahead.0
    }

    /// Reading ahead begins behind a read that the medium serves from `at` on.
    pub(crate) fn begin_sequence(&mut self, at: u64, offset: u64, bytes: u32) {
        self.ahead = (offset.saturating_add(u64::from(bytes)), at);
    }

    /// When a sequential read, whose limits allow it from `at` on, has been read ahead.
    pub(crate) fn read_ahead(&mut self, at: u64, offset: u64, bytes: u32) -> u64 {
        let begin = at.max(self.ahead.1);
        let time = self.cache.read_ahead.map_or(0, |rate| rate.time_for(u64::from(bytes)));
        self.begin_sequence(begin.saturating_add(time), offset, bytes);
        self.ahead.1
    }

    /// True if a read of data that the cache holds is served by it.
    pub(crate) fn is_served(&mut self) -> bool {
        self.cache.hits_per_million == ALL_HITS
            || self.rng.below(u64::from(ALL_HITS)) < u64::from(self.cache.hits_per_million)
    }

    /// Uses the lines of a range; true if all of them were cached.
    pub(crate) fn touch(&mut self, offset: u64, bytes: u32) -> bool {
        let line_bytes = u64::from(self.cache.line_bytes);
        let last = offset.saturating_add(u64::from(bytes.max(1)) - 1) / line_bytes;
        let mut is_hit = true;
        for line in offset / line_bytes..=last {
            is_hit &= self.use_line(line);
        }
        is_hit
    }

    fn use_line(&mut self, line: u64) -> bool {
        let sets = (self.lines.len() / WAYS) as u64;
        // Adjacent lines fall into adjacent sets, so that a range as large as the cache fits.
        let set = (line % sets) as usize * WAYS;
        let ways = &mut self.lines[set..set + WAYS];
        let found = ways.iter().position(|&way| way == line + 1);
        // A warm cache held this line in place of an empty one.
        let is_held = found.is_some() || self.cache.is_warm && ways[WAYS - 1] == 0;
        ways[..=found.unwrap_or(WAYS - 1)].rotate_right(1);
        ways[0] = line + 1;
        is_held
    }

    /// True for a write-back cache.
    pub(crate) fn keeps_writes(&self) -> bool {
        self.cache.dirty_bytes > 0
    }

    /// The acknowledgement time of a write that arrives at `arrival` and is on the volume at `written`.
    pub(crate) fn keep(&mut self, arrival: u64, bytes: u32, written: u64) -> u64 {
        let written = written.max(self.written());
        let room = self.cache.dirty_bytes.saturating_sub(u64::from(bytes));
        let mut kept_at = arrival;
        while let Some(&(done, done_bytes)) = self.dirty.front() {
            if done > arrival && self.dirty_bytes <= room {
                break;
            }
            kept_at = kept_at.max(done);
            self.dirty_bytes -= u64::from(done_bytes);
            self.dirty.pop_front();
        }
        if u64::from(bytes) > self.cache.dirty_bytes {
            return written;
        }
        self.dirty.push_back((written, bytes));
        self.dirty_bytes += u64::from(bytes);
        kept_at.saturating_add(self.cache.write_latency_ns)
    }

    /// What a flush waits for.
    pub(crate) fn flushed(&self) -> u64 {
        if self.cache.ignores_flushes { 0 } else { self.written() }
    }

    /// When all writes are on the volume; 0 if they are already.
    pub(crate) fn written(&self) -> u64 {
        self.dirty.back().map_or(0, |&(done, _)| done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> Cache {
        Cache { dirty_bytes: 8192, ..Cache::read_only(1 << 20, 10) }
    }

    fn cached(cache: &Cache) -> Cached {
        Cached::new(cache, VolumeRng::stream(0, 5))
    }

    #[test]
    fn the_least_recently_used_line_is_evicted() {
        let mut cached = cached(&cache());
        let lines = 256;
        let mut pass = |from: u64, to: u64| (from..to).filter(|line| cached.touch(line * 4096, 4096)).count();
        assert_eq!(pass(0, lines), 0);
        assert_eq!(pass(0, lines), 256);
        // A quarter more than the capacity: the least recently used lines are evicted, one after the other.
        assert_eq!(pass(lines, lines + 64), 0);
        assert_eq!(pass(64, lines + 64), 256);
        assert!(!cached.touch(0, 4096) && cached.touch(0, 1));
    }

    #[test]
    fn a_warm_cache_holds_what_is_used_first_up_to_its_capacity() {
        let mut cached = cached(&Cache { is_warm: true, ..cache() });
        let mut pass = |from: u64, to: u64| (from..to).filter(|line| cached.touch(line * 4096, 4096)).count();
        assert_eq!(pass(0, 256), 256);
        assert_eq!(pass(256, 512), 0);
    }

    #[test]
    fn the_share_of_served_reads_is_the_hit_ratio() {
        for (hits_per_million, low, high) in [(1_000_000, 10_000, 10_000), (800_000, 7800, 8200), (0, 0, 0)] {
            let mut cached = cached(&Cache { hits_per_million, ..cache() });
            let served = (0..10_000).filter(|_| cached.is_served()).count();
            assert!((low..=high).contains(&served), "{hits_per_million}: {served}");
        }
    }

    #[test]
    fn sequential_reads_are_read_ahead_at_a_rate() {
        let rate = TokenRate::ratio(4096, 1000);
        let mut cached = cached(&Cache { read_ahead: rate, ..cache() });
        assert!(!cached.is_sequential(0));
        cached.begin_sequence(0, 0, 4096);
        // 4,096 bytes take 1,000 ns, one after the other.
        for (at, offset, expected) in [(5000, 4096, 6000), (6000, 8192, 7000), (6000, 12_288, 8000)] {
            assert!(cached.is_sequential(offset), "{offset}");
            assert_eq!(cached.read_ahead(at, offset, 4096), expected, "{offset}");
        }
        assert!(!cached.is_sequential(0));
    }

    #[test]
    fn a_range_is_served_only_if_it_is_cached_completely() {
        let mut cached = cached(&cache());
        assert!(!cached.touch(0, 4096) && !cached.touch(4000, 200) && cached.touch(0, 8192));
    }

    #[test]
    fn writes_are_cached_up_to_the_dirty_limit() {
        let mut cached = cached(&cache());
        // (arrival, bytes, on the volume) and the acknowledgement.
        for (arrival, bytes, written, expected) in [
            (0, 4096, 1000, 10),
            (0, 4096, 2000, 10),
            (0, 4096, 3000, 1010),
            (0, 4096, 4000, 2010),
            (3500, 4096, 5000, 3510),
            (9000, 8192, 9500, 9010),
            // A write above the dirty limit goes to the volume, behind the dirty ones.
            (9000, 8193, 9400, 9500),
        ] {
            assert_eq!(cached.keep(arrival, bytes, written), expected, "{arrival}");
        }
    }

    #[test]
    fn invalid_caches_are_refused_by_field() {
        for (cache, expected) in [
            (cache(), None),
            (Cache { line_bytes: 0, ..cache() }, Some("line_bytes")),
            (Cache { bytes: 7 * 4096, dirty_bytes: 0, ..cache() }, Some("bytes")),
            (Cache { bytes: u64::MAX, ..cache() }, Some("bytes")),
            (Cache { dirty_bytes: (1 << 20) + 1, ..cache() }, Some("dirty_bytes")),
            (Cache { hits_per_million: 1_000_001, ..cache() }, Some("hits_per_million")),
            (
                Cache { reads: Some(LimitStage { slack_ns: u64::MAX, ..LimitStage::default() }), ..cache() },
                Some("reads.slack_ns"),
            ),
        ] {
            assert_eq!(cache.invalid_field().map(|(field, _)| field).as_deref(), expected, "{cache:?}");
        }
    }
}
