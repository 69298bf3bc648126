//! The kernel's counters of the calling thread.

use std::fs::File;
use std::io::Read;

/// CPU time, context switches and page faults of one thread since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Time in user mode, ns (the kernel reports µs).
    pub user_ns: u64,
    /// Time in the kernel, ns (the kernel reports µs).
    pub system_ns: u64,
    /// The thread gave up the CPU to wait.
    pub voluntary_switches: u64,
    /// The CPU was taken from the thread.
    pub involuntary_switches: u64,
    /// Faults that needed I/O.
    pub major_faults: u64,
    /// Faults without I/O.
    pub minor_faults: u64,
}

/// The kernel's id of the calling thread.
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Usage of the calling thread so far; all zero if unknown.
pub fn usage_of_this_thread() -> ThreadUsage {
    let mut raw = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage through a pointer to a local that is large enough.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, raw.as_mut_ptr()) };
    if result != 0 {
        return ThreadUsage::default();
    }
    // SAFETY: zeroed above, and all zeroes is a valid rusage of plain integers.
    let raw = unsafe { raw.assume_init() };
    ThreadUsage {
        user_ns: to_ns(raw.ru_utime),
        system_ns: to_ns(raw.ru_stime),
        voluntary_switches: raw.ru_nvcsw as u64,
        involuntary_switches: raw.ru_nivcsw as u64,
        major_faults: raw.ru_majflt as u64,
        minor_faults: raw.ru_minflt as u64,
    }
}

/// Time for which the calling thread could run and waited for a CPU so far, ns; 0 where the kernel does not count it.
pub fn run_queue_wait_of_this_thread() -> u64 {
    let mut buffer = [0; 96];
    let file = File::open("/proc/thread-self/schedstat");
    let length = file.and_then(|mut file| file.read(&mut buffer)).unwrap_or(0);
    parse_run_queue_wait(&buffer[..length]).unwrap_or(0)
}

/// The second of the numbers of `schedstat`: time on a CPU, time waiting for one, turns.
fn parse_run_queue_wait(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Gives the calling thread its own descriptor table, and `files` as descriptors of that table, which belong to this
/// thread alone: no other thread can close them, and dropping them closes nothing of others.
///
/// In a table that threads share, every system call counts a reference to its file up and down. From here on, what one thread
/// opens is not open in another, so no file may be handed to this thread or by it. Refused by some containers (EPERM), where
/// nothing changes; on any other error the thread can go on with `files` themselves.
pub fn own_descriptors(files: &[&File]) -> std::io::Result<Vec<File>> {
    // SAFETY: the new table is a copy: every descriptor that this thread holds so far means the same file in it. Those
    // in use from here on, returned or opened later, are in the new table only, so no other thread closes or replaces
    // them.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) }?;
    files.iter().map(|file| file.try_clone()).collect()
}

/// The offset at which a thread of this process is inside a pread(2) or pwrite(2) that waits; `None` where it is not, and
/// where the kernel does not tell.
pub fn pending_offset(thread_id: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread_id}/syscall")).ok()?;
    offset_of_call(&text)
}

/// Number, descriptor, buffer, length, offset: as the kernel writes a system call that waits.
fn offset_of_call(text: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let offset = words.nth(3)?.strip_prefix("0x")?;
    let known = [libc::SYS_pread64, libc::SYS_pwrite64].map(i64::from).contains(&number);
    known.then(|| u64::from_str_radix(offset, 16).ok()).flatten()
}

/// Makes the kernel wake the calling thread exactly when its timer is due, not up to 50 us later.
pub fn wake_precisely() -> std::io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?)
}

/// Lets the calling thread run before all others that have no real-time priority, if this process may have one: among thousands of
/// threads that compute, the scheduler otherwise runs it seconds after it was woken.
pub fn run_first() -> std::io::Result<()> {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the pointer is valid for the call, and 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &lowest) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn to_ns(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_waiting_calls_are_read() {
        let call = |number: i64| format!("{number} 0x5 0x7f00 0x1000 0x12340000 0x0 0x0 0x7ffc 0x7f12\n");
        assert_eq!(offset_of_call(&call(libc::SYS_pread64)), Some(0x1234_0000));
        assert_eq!(offset_of_call(&call(libc::SYS_pwrite64)), Some(0x1234_0000));
        assert_eq!(offset_of_call(&call(libc::SYS_futex)), None);
        for text in ["", "running", "-1 0x7ffc 0x7f12", &format!("{} 0x5", libc::SYS_pread64)] {
            assert_eq!(offset_of_call(text), None, "{text}");
        }
    }

    #[test]
    fn a_thread_that_runs_first_leaves_others_as_they_are() {
        // SAFETY: no memory is involved.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let own = policy();
        let raised = std::thread::spawn(move || (run_first().is_ok(), policy())).join().unwrap();
        assert!(!raised.0 || raised.1 == libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, "{raised:?}");
        assert_eq!(policy(), own);
    }

    #[test]
    fn an_own_descriptor_table_has_earlier_files_and_shares_no_new_ones() {
        use std::os::fd::AsRawFd;
        let path = |of: &str, fd: i32| std::fs::read_link(format!("/proc/{of}/fd/{fd}")).ok();
        let before = std::fs::File::open("/dev/zero").unwrap();
        let number = before.as_raw_fd();
        let sent = before.try_clone().unwrap();
        let other = std::thread::spawn(move || {
            let own = own_descriptors(&[&sent]).unwrap().remove(0);
            let owned = own.as_raw_fd();
            assert_ne!(owned, number);
            assert_eq!(path("thread-self", owned).as_deref(), Some("/dev/zero".as_ref()));
            assert_ne!(path("self", owned), path("thread-self", owned), "another thread sees the duplicate");
            let opened = std::fs::File::open("/dev/null").unwrap();
            let fd = opened.as_raw_fd();
            let again = crate::io::reopen(&opened, crate::io::OpenFlags::default()).unwrap();
            assert_eq!(path("thread-self", again.as_raw_fd()).as_deref(), Some("/dev/null".as_ref()));
            (path("thread-self", number), path("thread-self", fd), path("self", fd))
        });
        let (copied, own, shared) = other.join().unwrap();
        assert_eq!(copied.as_deref(), Some("/dev/zero".as_ref()));
        assert_eq!(own.as_deref(), Some("/dev/null".as_ref()));
        assert_ne!(shared, own, "another thread sees the file");
    }

    #[test]
    fn time_in_the_run_queue_is_the_second_number() {
        for (text, expected) in [
            ("1500000 996762 12\n", Some(996_762)),
            ("0 0 0", Some(0)),
            ("5", None),
            ("1 x 3", None),
            ("", None),
        ] {
            assert_eq!(parse_run_queue_wait(text.as_bytes()), expected, "{text}");
        }
        let before = run_queue_wait_of_this_thread();
        assert!(run_queue_wait_of_this_thread() >= before);
    }

    #[test]
    fn usage_counts_this_thread_only() {
        let busy_ns = 30_000_000;
        let before = usage_of_this_thread();
        let other = std::thread::spawn(move || {
            let start = usage_of_this_thread();
            while usage_of_this_thread().user_ns + usage_of_this_thread().system_ns
                < start.user_ns + start.system_ns + busy_ns
            {}
            (thread_id(), usage_of_this_thread())
        });
        let (other_id, other_usage) = other.join().unwrap();
        let after = usage_of_this_thread();
        assert_ne!(other_id, thread_id());
        assert!(other_usage.user_ns + other_usage.system_ns >= busy_ns);
        let ours = after.user_ns + after.system_ns - before.user_ns - before.system_ns;
        assert!(ours < busy_ns, "{ours} ns charged to a thread that waited");
    }

    #[test]
    fn faults_are_counted() {
        let before = usage_of_this_thread().minor_faults;
        let pages = std::hint::black_box(vec![1_u8; 8 << 20]);
        assert!(usage_of_this_thread().minor_faults > before, "{} bytes touched", pages.len());
    }
}
