//! Short times in which a worker waited and nothing completed: what shows a device that pauses, which few of its requests do.

use serde::{Deserialize, Serialize};

/// A time without a completion of one worker, although it had requests in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Silence {
    /// Last completion before, or start of the request that ended it, ns since the start of the run.
    pub start_ns: u64,
    /// Until the next completion, ns.
    pub length_ns: u64,
    /// Requests in flight at its end, the one included that ended it.
    pub depth: u32,
}

impl Silence {
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }
}

/// The silences of [`MIN_SILENCE_NS`] or more of a worker in its measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Silences {
    pub count: u64,
    /// Their lengths, added up, ns.
    pub total_ns: u64,
    /// The longest of them, longest first.
    pub longest: Vec<Silence>,
}

/// Length of the shortest silence that is recorded, ns: what a busy machine withholds from a thread is mostly shorter.
pub const MIN_SILENCE_NS: u64 = 10_000_000;
/// Silences of a worker that are kept one by one.
const KEPT: usize = 256;

impl Silences {
    /// Adds a silence.
    #[cold]
    pub fn add(&mut self, silence: Silence) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(silence.length_ns);
        let at = self.longest.partition_point(|kept| kept.length_ns >= silence.length_ns);
        if at < KEPT {
            self.longest.insert(at, silence);
            self.longest.truncate(KEPT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_kept_and_all_counted() {
        let mut silences = Silences::default();
        for length_ns in (0..1000).map(|index| (index * 7919) % 1000) {
            silences.add(Silence { length_ns, ..Silence::default() });
        }
        assert_eq!((silences.count, silences.total_ns), (1000, 499_500));
        let kept: Vec<u64> = silences.longest.iter().map(|silence| silence.length_ns).collect();
        assert_eq!(kept, (744..1000).rev().collect::<Vec<u64>>());
    }
}
