//! Threads of the kernel that work for io_uring on behalf of this process.
//!
//! They are listed among the process's own threads, with the id of the thread that they serve in their name. Their CPU
//! time is not part of any thread's usage. Reads `/proc` only, and takes long enough for it: whoever measures must not
//! call this.

use crate::device::SysRoot;

/// The task of a kernel thread for a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelThreadKind {
    /// Carries out requests that would have made the submitter wait (`iou-wrk-ID`).
    Worker,
    /// Submits in the place of the ring's owner (`iou-sqp-ID`).
    Submitter,
}

/// A thread of the kernel that serves a thread of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelThread {
    /// Its own thread id.
    pub id: u32,
    /// Its task.
    pub kind: KernelThreadKind,
    /// The thread it serves. Always an id of the machine's first process namespace, whatever namespace this process
    /// is in: below another one it is none that this process knows.
    pub serves: u32,
    /// CPU time since it began, ns.
    pub cpu_ns: u64,
}

/// The current kernel threads, by id. Threads in `known` are excluded, whatever their names.
///
/// Workers end after some seconds without work, so those of the past are missing.
pub fn kernel_threads(root: &SysRoot, known: &[u32]) -> Vec<KernelThread> {
    let ids = root.names("/proc/self/task").into_iter().filter_map(|name| name.parse::<u32>().ok());
    let mut threads: Vec<KernelThread> =
        ids.filter(|id| !known.contains(id)).filter_map(|id| kernel_thread(root, id)).collect();
    threads.sort_by_key(|thread| thread.id);
    threads
}

/// The thread `id`, where it is the kernel's and has not ended meanwhile.
fn kernel_thread(root: &SysRoot, id: u32) -> Option<KernelThread> {
    let place = format!("/proc/self/task/{id}");
    let stat = root.text(format!("{place}/stat"))?;
    // The name is in parentheses and may hold anything, parentheses too.
    let (head, fields) = stat.rsplit_once(')')?;
    let (kind, serves) = role(head.split_once('(')?.1)?;
    let exact = root.text(format!("{place}/schedstat")).and_then(|text| first_number(&text));
    // A kernel without that accounting leaves zeros there; its ticks then have to do.
    let cpu_ns = exact.filter(|&ns| ns > 0).or_else(|| ticks_ns(fields))?;
    Some(KernelThread { id, kind, serves, cpu_ns })
}

/// The properties of a thread by its name.
fn role(name: &str) -> Option<(KernelThreadKind, u32)> {
    let known = [("iou-wrk-", KernelThreadKind::Worker), ("iou-sqp-", KernelThreadKind::Submitter)];
    known.iter().find_map(|(prefix, kind)| Some((*kind, name.strip_prefix(prefix)?.parse().ok()?)))
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// User and system time in the fields of `stat` that follow the name, ns.
fn ticks_ns(fields: &str) -> Option<u64> {
    const USER_TIME: usize = 11;
    let mut times = fields.split_whitespace().skip(USER_TIME).map(str::parse::<u64>);
    let ticks = times.next()?.ok()? + times.next()?.ok()?;
    Some(ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `/proc` with these threads: id, `stat` after the id, `schedstat`.
    fn proc(threads: &[(&str, &str, &str)]) -> (tempfile::TempDir, SysRoot) {
        let directory = tempfile::tempdir().unwrap();
        for (id, stat, schedstat) in threads {
            let place = directory.path().join("proc/self/task").join(id);
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("stat"), format!("{id} {stat}\n")).unwrap();
            std::fs::write(place.join("schedstat"), schedstat).unwrap();
        }
        let root = SysRoot::at(directory.path());
        (directory, root)
    }

    #[test]
    fn kernel_threads_are_known_by_their_names() {
        use KernelThreadKind::{Submitter, Worker};
        let times = "R 1 1 1 0 -1 4194368 0 0 0 0 7 35 0 0 20 0 3 0 1 0 0";
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        for (id, name, schedstat, expected) in [
            ("20377", "iou-wrk-20376", "15658005 591363164 3915\n", Some((Worker, 20_376, 15_658_005))),
            ("20376", "iou-sqp-20375", "276487163 0 753\n", Some((Submitter, 20_375, 276_487_163))),
            // Without the scheduler's own accounting.
            ("9", "iou-wrk-4194304", "0 0 0\n", Some((Worker, 4_194_304, 42 * tick_ns))),
            ("9", "iou-wrk-1", "", Some((Worker, 1, 42 * tick_ns))),
            ("9", "fathom", "5 0 1\n", None),
            ("9", "iou-wrk-", "5 0 1\n", None),
            ("9", "iou-wrk-12x", "5 0 1\n", None),
            ("9", "my iou-wrk-12", "5 0 1\n", None),
            ("9", "a) (iou-wrk-12", "5 0 1\n", None),
        ] {
            let (_directory, root) = proc(&[(id, &format!("({name}) {times}"), schedstat)]);
            let found = kernel_threads(&root, &[]);
            let found = found.first().map(|thread| (thread.kind, thread.serves, thread.cpu_ns));
            assert_eq!(found, expected, "{name} {schedstat}");
        }
    }

    #[test]
    fn threads_are_sorted_and_own_ones_omitted() {
        let (_directory, root) = proc(&[
            ("100", "(iou-wrk-7) S 1", "1 0 1\n"),
            ("20", "(iou-wrk-7) S 1", "2 0 1\n"),
            // A job may be called anything.
            ("7", "(iou-wrk-3) S 1", "3 0 1\n"),
            // Cut off, as by a thread that ends while it is read.
            ("30", "", ""),
        ]);
        let ids: Vec<u32> = kernel_threads(&root, &[7]).iter().map(|thread| thread.id).collect();
        assert_eq!(ids, [20, 100]);
        assert!(kernel_threads(&SysRoot::at("/nowhere"), &[]).is_empty());
    }
}
