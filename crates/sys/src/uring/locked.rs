//! The share of RLIMIT_MEMLOCK that registered buffers may have.
//!
//! The kernel charges buffers and rings to one account. Buffers are registered because that is faster, rings because
//! nothing works without: so buffers registered by default take at most half, and the jobs that start later find room.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

/// Bytes that this process has registered.
static REGISTERED: AtomicU64 = AtomicU64::new(0);

/// Registered bytes, given back when dropped.
#[derive(Debug)]
pub(super) struct Locked(u64);

impl Locked {
    /// Counts `bytes`, if they fit into the share or `insist` is set.
    pub fn count(bytes: u64, insist: bool) -> Option<Locked> {
        let share = if insist { u64::MAX } else { share() };
        REGISTERED
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |registered| {
                registered.checked_add(bytes).filter(|sum| *sum <= share)
            })
            .ok()
            .map(|_| Locked(bytes))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        REGISTERED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// The bytes of buffers that this process registers at most; `None` where no limit applies.
pub fn registered_memory_limit() -> Option<u64> {
    // Whoever may lock memory is not charged.
    if capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK)) {
        return None;
    }
    getrlimit(Resource::Memlock).current.map(|limit| limit / 2)
}

fn share() -> u64 {
    registered_memory_limit().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_memory_can_be_locked_again() {
        let all = Locked::count(1 << 62, true).unwrap();
        assert!(Locked::count(u64::MAX, true).is_none(), "the sum does not overflow");
        drop(all);
        for _ in 0..3 {
            assert!(Locked::count(1 << 62, true).is_some());
        }
    }
}
