//! A host cache in front of the limits: they do not count the requests that it serves.

use std::collections::VecDeque;

/// A read cache, and a write-back cache if `dirty_bytes` is above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Capacity.
    pub bytes: u64,
    /// Size of a line.
    pub line_bytes: u32,
    /// Latency of a request that the cache serves, ns.
    pub latency_ns: u64,
    /// Most dirty bytes, which are not on the volume yet; 0 = write-through.
    pub dirty_bytes: u64,
}

/// Lines per set.
const WAYS: usize = 8;
/// Upper bound of the number of lines, above any real host's, at 8 bytes each.
const MOST_LINES: u64 = 1 << 26;

impl Cache {
    /// The first invalid field, and the reason.
    pub(crate) fn invalid_field(&self) -> Option<(&'static str, String)> {
        let lines = self.bytes / u64::from(self.line_bytes.max(1));
        match self {
            Cache { line_bytes: 0, .. } => Some(("line_bytes", "is 0".to_owned())),
            _ if lines < WAYS as u64 => {
                Some(("bytes", format!("give {lines} lines; at least {WAYS} are required")))
            }
            _ if lines > MOST_LINES => {
                Some(("bytes", format!("give {lines} lines; at most {MOST_LINES} are possible")))
            }
            _ if self.dirty_bytes > self.bytes => {
                Some(("dirty_bytes", "exceed the capacity of the cache".to_owned()))
            }
            _ => None,
        }
    }
}

/// The state of a cache: its lines, and the writes that are not on the volume yet.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    cache: Cache,
    /// Sets of [`WAYS`], most recently used first; line number + 1, or 0 for an empty entry.
    lines: Vec<u64>,
    /// When each write will be on the volume, and its bytes.
    dirty: VecDeque<(u64, u32)>,
    dirty_bytes: u64,
}

impl Cached {
    pub(crate) fn new(cache: Cache) -> Self {
        let sets = (cache.bytes / u64::from(cache.line_bytes)) as usize / WAYS;
        Cached { cache, lines: vec![0; sets * WAYS], dirty: VecDeque::new(), dirty_bytes: 0 }
    }

    pub(crate) fn latency_ns(&self) -> u64 {
        self.cache.latency_ns
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
        ways[..=found.unwrap_or(WAYS - 1)].rotate_right(1);
        ways[0] = line + 1;
        found.is_some()
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
        kept_at.saturating_add(self.cache.latency_ns)
    }

    /// When all writes are on the volume; 0 if they are already.
    pub(crate) fn written(&self) -> u64 {
        self.dirty.back().map_or(0, |&(done, _)| done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHE: Cache = Cache { bytes: 1 << 20, line_bytes: 4096, latency_ns: 10, dirty_bytes: 8192 };

    #[test]
    fn the_least_recently_used_line_is_evicted() {
        let mut cached = Cached::new(CACHE);
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
    fn a_range_is_served_only_if_it_is_cached_completely() {
        let mut cached = Cached::new(CACHE);
        assert!(!cached.touch(0, 4096) && !cached.touch(4000, 200) && cached.touch(0, 8192));
    }

    #[test]
    fn writes_are_cached_up_to_the_dirty_limit() {
        let mut cached = Cached::new(CACHE);
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
            (CACHE, None),
            (Cache { line_bytes: 0, ..CACHE }, Some("line_bytes")),
            (Cache { bytes: 7 * 4096, dirty_bytes: 0, ..CACHE }, Some("bytes")),
            (Cache { bytes: u64::MAX, ..CACHE }, Some("bytes")),
            (Cache { dirty_bytes: (1 << 20) + 1, ..CACHE }, Some("dirty_bytes")),
        ] {
            assert_eq!(cache.invalid_field().map(|(field, _)| field), expected, "{cache:?}");
        }
    }
}
