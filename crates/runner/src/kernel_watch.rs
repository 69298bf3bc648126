//! CPU time of kernel threads on behalf of each worker, from one reading of `/proc` to the next.
//!
//! Such a thread lives for some seconds after its last request, so readings at every tick and before a worker's thread
//! ends include all of them. Pure: the caller reads `/proc`.

use std::collections::{BTreeMap, BTreeSet};

use fathom_stats::KernelThreads;
use fathom_sys::kernel_workers::{KernelThread, KernelThreadKind};

/// A worker at the time of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// Kernel id of the worker's own thread; 0 before it runs.
    pub thread_id: u32,
    /// It has a ramp, which is counted separately.
    pub has_ramp: bool,
    /// Session ns at which its measured part began; 0 until then.
    pub measured_since: u64,
}

/// CPU time on behalf of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub ramp: KernelThreads,
    pub measured: KernelThreads,
}

/// The sums of all readings of one phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelWatch {
    /// CPU time at the latest reading and the worker served, by the kernel thread's id.
    before: BTreeMap<u32, (u64, Option<usize>)>,
    read_at: u64,
    used: Vec<Used>,
}

impl KernelWatch {
    /// A watch that begins at `now`.
    pub fn new(now: u64) -> Self {
        KernelWatch { read_at: now, ..KernelWatch::default() }
    }

    /// Adds a reading of `threads`, made at `now`, to the sums of those they serve.
    pub fn add(&mut self, now: u64, threads: &[KernelThread], workers: &[Served]) {
        self.used.resize(workers.len(), Used::default());
        let mut alive = vec![0; workers.len()];
        for (thread, owner) in threads.iter().zip(owners(threads, workers)) {
            let (before, known) = self.before.get(&thread.id).copied().unwrap_or_default();
            // A known owner is kept when other threads end.
            let owner = owner.or(known);
            self.before.insert(thread.id, (thread.cpu_ns, owner));
            let Some(owner) = owner else { continue };
            // A falling count belongs to a new thread with the id of an ended one.
            let gain = thread.cpu_ns.checked_sub(before).unwrap_or(thread.cpu_ns);
            let measured = measured_part(gain, (self.read_at, now), &workers[owner]);
            let Used { ramp, measured: sum } = &mut self.used[owner];
            match thread.kind {
                KernelThreadKind::Worker => {
                    alive[owner] += 1;
                    sum.workers_ns += measured;
                    ramp.workers_ns += gain - measured;
                }
                KernelThreadKind::Submitter => {
                    sum.submitter_ns += measured;
                    ramp.submitter_ns += gain - measured;
                }
            }
        }
        for ((used, worker), alive) in self.used.iter_mut().zip(workers).zip(alive) {
            let in_ramp = worker.has_ramp && (worker.measured_since == 0 || worker.measured_since >= now);
            let phase = if in_ramp { &mut used.ramp } else { &mut used.measured };
            phase.workers = phase.workers.max(alive);
        }
        self.read_at = now;
    }

    /// CPU time on behalf of worker `index`.
    pub fn used(&self, index: usize) -> Used {
        self.used.get(index).copied().unwrap_or_default()
    }
}

/// The part of `gain` in the measured time, assuming an even rate between two readings.
fn measured_part(gain: u64, (since, now): (u64, u64), worker: &Served) -> u64 {
    if !worker.has_ramp {
        return gain;
    }
    let begun = if worker.measured_since == 0 { now } else { worker.measured_since.clamp(since, now) };
    let span = u128::from((now - since).max(1));
    (u128::from(gain) * u128::from(now - begun) / span) as u64
}

/// The index of the worker that each thread serves; `None` for threads of other processes and unknown ones.
fn owners(threads: &[KernelThread], workers: &[Served]) -> Vec<Option<usize>> {
    let by_id = |id: u32| workers.iter().position(|worker| worker.thread_id == id && id != 0);
    let direct = |thread: &KernelThread| {
        // Requests of a submitting thread are executed by its own kernel workers.
        let through = threads.iter().find(|other| other.id == thread.serves);
        by_id(thread.serves).or_else(|| by_id(through?.serves))
    };
    let found: Vec<Option<usize>> = threads.iter().map(direct).collect();
    if found.iter().any(Option::is_some) { found } else { by_rank(threads, workers) }
}

/// For a process in a PID namespace, where thread names contain ids of another namespace: both kinds of id ascend, so
/// if all workers are served, their order identifies them.
fn by_rank(threads: &[KernelThread], workers: &[Served]) -> Vec<Option<usize>> {
    let mut ids: Vec<(u32, usize)> =
        workers.iter().enumerate().map(|(index, worker)| (worker.thread_id, index)).collect();
    ids.sort_unstable();
    let first = ids.first().map_or(0, |&(id, _)| id);
    // Threads older than all workers serve an earlier phase.
    let is_ours = |thread: &&KernelThread| first > 0 && thread.id > first;
    let served = |kind: KernelThreadKind| -> BTreeSet<u32> {
        let of_kind = threads.iter().filter(is_ours).filter(|thread| thread.kind == kind);
        of_kind.map(|thread| thread.serves).collect()
    };
    let (by_workers, by_submitters) = (served(KernelThreadKind::Worker), served(KernelThreadKind::Submitter));
    let owner = |thread: &KernelThread| {
        let served = match thread.kind {
            KernelThreadKind::Worker => &by_workers,
            KernelThreadKind::Submitter => &by_submitters,
        };
        let rank = served.iter().position(|&id| id == thread.serves)?;
        (served.len() == ids.len() && is_ours(&thread)).then(|| ids[rank].1)
    };
    threads.iter().map(owner).collect()
}

#[cfg(test)]
mod tests {
    use super::KernelThreadKind::{Submitter, Worker};
    use super::*;

    fn thread(id: u32, kind: KernelThreadKind, serves: u32, cpu_ns: u64) -> KernelThread {
        KernelThread { id, kind, serves, cpu_ns }
    }

    fn served(thread_id: u32) -> Served {
        Served { thread_id, has_ramp: false, measured_since: 100 }
    }

    #[test]
    fn threads_are_assigned_to_the_workers_they_serve() {
        let workers = [served(10), served(12), served(0)];
        let check = |threads: &[(u32, KernelThreadKind, u32)], expected: &[Option<usize>]| {
            let threads: Vec<_> = threads.iter().map(|&(id, kind, of)| thread(id, kind, of, 1)).collect();
            assert_eq!(owners(&threads, &workers), expected, "{threads:?}");
        };
        check(&[], &[]);
        check(&[(20, Worker, 12), (21, Worker, 10), (22, Worker, 12)], &[Some(1), Some(0), Some(1)]);
        check(&[(20, Worker, 11), (21, Worker, 10)], &[None, Some(0)]);
        // A submitting thread and its own worker.
        check(&[(20, Submitter, 12), (21, Worker, 20)], &[Some(1), Some(1)]);
        check(&[(20, Worker, 0)], &[None]);
    }

    #[test]
    fn in_a_pid_namespace_threads_are_assigned_by_order() {
        let check = |ids: &[u32], threads: &[(u32, KernelThreadKind, u32)], expected: &[Option<usize>]| {
            let workers: Vec<Served> = ids.iter().map(|&id| served(id)).collect();
            let threads: Vec<_> = threads.iter().map(|&(id, kind, of)| thread(id, kind, of, 1)).collect();
            assert_eq!(owners(&threads, &workers), expected, "{ids:?} {threads:?}");
        };
        check(&[5, 6], &[(7, Worker, 20_357), (8, Worker, 20_356)], &[Some(1), Some(0)]);
        check(&[6, 5], &[(7, Worker, 20_357), (8, Worker, 20_356)], &[Some(0), Some(1)]);
        // Not all are served, so the assignment is unknown.
        check(&[5, 6], &[(7, Worker, 20_357)], &[None]);
        // Left over from an earlier phase.
        check(&[5], &[(4, Worker, 20_300), (7, Worker, 20_357)], &[None, Some(0)]);
        check(&[5], &[(6, Submitter, 20_350), (7, Worker, 20_351)], &[Some(0), Some(0)]);
        check(&[0], &[(7, Worker, 20_357)], &[None]);
    }

    #[test]
    fn readings_add_up() {
        let mut watch = KernelWatch::new(100);
        let workers = [served(10), served(11)];
        watch.add(600, &[thread(20, Worker, 10, 50), thread(21, Worker, 10, 5)], &workers);
        // One has ended, its id is reused, and another has started.
        watch.add(1100, &[thread(20, Worker, 10, 80), thread(22, Submitter, 11, 9)], &workers);
        watch.add(1600, &[thread(20, Worker, 10, 30), thread(22, Submitter, 11, 10)], &workers);
        let expected = KernelThreads { workers: 2, workers_ns: 50 + 5 + 30 + 30, submitter_ns: 0 };
        assert_eq!(watch.used(0), Used { ramp: KernelThreads::default(), measured: expected });
        assert_eq!(watch.used(1).measured, KernelThreads { workers: 0, workers_ns: 0, submitter_ns: 10 });
        assert_eq!(watch.used(2), Used::default());
    }

    #[test]
    fn assignments_are_kept() {
        let mut watch = KernelWatch::new(100);
        let workers = [served(5), served(6)];
        let all = [thread(7, Worker, 20_356, 10), thread(8, Worker, 20_357, 20)];
        watch.add(600, &all, &workers);
        watch.add(1100, &[thread(8, Worker, 20_357, 50)], &workers);
        assert_eq!([0, 1].map(|index| watch.used(index).measured.workers_ns), [10, 50]);
    }

    #[test]
    fn the_ramp_is_counted_separately() {
        let mut watch = KernelWatch::new(0);
        let at = |measured_since| [Served { thread_id: 10, has_ramp: true, measured_since }];
        let look = |watch: &mut KernelWatch, now, threads: u32, cpu_ns, measured_since| {
            let threads: Vec<_> =
                (0..threads).map(|n| thread(20 + n, Worker, 10, if n == 0 { cpu_ns } else { 0 })).collect();
            watch.add(now, &threads, &at(measured_since));
            (watch.used(0).ramp.workers_ns, watch.used(0).measured.workers_ns)
        };
        assert_eq!(look(&mut watch, 400, 3, 1_000, 0), (1_000, 0));
        // The measured part began a quarter of the interval before this reading.
        assert_eq!(look(&mut watch, 800, 2, 2_000, 700), (1_750, 250));
        assert_eq!(look(&mut watch, 1_200, 1, 2_100, 700), (1_750, 350));
        let workers = (watch.used(0).ramp.workers, watch.used(0).measured.workers);
        assert_eq!(workers, (3, 2));
        // Twice at the same moment.
        assert_eq!(look(&mut watch, 1_200, 1, 2_100, 700), (1_750, 350));
    }
}
