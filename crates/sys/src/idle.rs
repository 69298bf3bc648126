//! How idle the CPUs are, by the kernel's own count, and how fast one is.

use std::collections::BTreeMap;

use crate::clock::RealClock;
use crate::device::SysRoot;

/// The idle and the whole time of each CPU since the machine began, in ticks of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    cpus: BTreeMap<u32, (u64, u64)>,
}

impl CpuTimes {
    /// The times now; empty where the kernel does not tell.
    pub fn read(root: &SysRoot) -> CpuTimes {
        let text = root.text("/proc/stat").unwrap_or_default();
        let times = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
            // The guests' times, after the eighth, are part of the first two.
            let ticks: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
            // Waiting for I/O is idle: the CPU would run any thread.
            let idle = ticks.get(3)?.saturating_add(*ticks.get(4)?);
            Some((cpu, (idle, ticks.iter().sum())))
        });
        CpuTimes { cpus: times.collect() }
    }

    /// The idle share of each CPU since `before`, percent, by its number; CPUs without a tick since then are idle.
    pub fn idle_since(&self, before: &CpuTimes) -> Vec<(u32, f64)> {
        let shares = self.cpus.iter().map(|(cpu, (idle, whole))| {
            let (idle_before, whole_before) = before.cpus.get(cpu).copied().unwrap_or_default();
            let (idle, whole) = (idle.saturating_sub(idle_before), whole.saturating_sub(whole_before));
            (*cpu, if whole == 0 { 100.0 } else { idle as f64 * 100.0 / whole as f64 })
        });
        shares.collect()
    }
}

/// Time that a fixed piece of work takes on the CPU of the caller: mean and standard deviation, us.
pub fn unit_work_us() -> (f64, f64) {
    const PIECES: usize = 100;
    const WORDS: usize = 4096;
    let clock = RealClock::start();
    let mut memory = vec![0_u64; WORDS];
    let mut times = Vec::with_capacity(PIECES);
    for piece in 0..PIECES {
        let began = clock.now();
        for (index, word) in memory.iter_mut().enumerate() {
            *word = (*word ^ index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(piece as u32 % 64);
        }
        std::hint::black_box(&mut memory);
        times.push((clock.now() - began) as f64 / 1000.0);
    }
    let mean = times.iter().sum::<f64>() / PIECES as f64;
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / PIECES as f64;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(text: &str) -> CpuTimes {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        std::fs::write(dir.path().join("proc/stat"), text).unwrap();
        CpuTimes::read(&SysRoot::at(dir.path()))
    }

    #[test]
    fn idle_shares_are_those_of_the_time_between() {
        let before =
            times("cpu  9 9 9 9\ncpu0 100 0 100 700 100 0 0 0 5 5\ncpu1 0 0 0 10 0 0 0 0 0 0\nintr 5\n");
        let after =
            times("cpu0 150 0 150 790 110 0 0 0 5 5\ncpu1 0 0 0 10 0 0 0 0 0 0\ncpu7 1 0 0 3 0 0 0 0\n");
        assert_eq!(after.idle_since(&before), [(0, 50.0), (1, 100.0), (7, 75.0)]);
        assert_eq!(times("").idle_since(&before), []);
        assert!(!CpuTimes::read(&SysRoot::real()).idle_since(&CpuTimes::default()).is_empty());
    }

    #[test]
    fn work_takes_time() {
        let (mean, deviation) = unit_work_us();
        assert!(mean > 0.0 && deviation >= 0.0);
    }
}
