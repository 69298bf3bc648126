//! Which CPUs a thread may run on.
//!
//! Acts on the calling thread only: a worker pins itself before it opens its engine, so that rings and buffers are
//! allocated near the CPU that uses them.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Restricts the calling thread to `cpus`.
///
/// Fails with `InvalidInput` where the list is empty or names a CPU above the kernel interface's limit, and with the
/// system's error if none of them is online or allowed.
pub fn pin_current_thread(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            let message =
                format!("CPU {cpu} is above the highest that can be named, {}", CpuSet::MAX_CPU - 1);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        set.set(cpu);
    }
    if cpus.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no CPU was named"));
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// The CPUs the calling thread may run on, ascending.
pub fn allowed_cpus() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        // Machines with more CPUs than the mask can hold refuse the short mask.
        Err(_) => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_pinned_to_each_allowed_cpu() {
        std::thread::spawn(|| {
            for cpu in allowed_cpus() {
                pin_current_thread(&[cpu]).unwrap();
                assert_eq!(allowed_cpus(), [cpu]);
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn impossible_cpus_are_refused() {
        for cpus in [&[][..], &[usize::MAX], &[CpuSet::MAX_CPU], &[CpuSet::MAX_CPU - 1]] {
            let kind = pin_current_thread(cpus).unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::InvalidInput, "{cpus:?}");
        }
    }
}
