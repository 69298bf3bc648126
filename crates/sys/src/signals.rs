//! Which threads take the signals sent to the process, and which signals the process ignores.
//!
//! The kernel prefers the first thread for them, also where that one is stuck in a request to a device and will not run
//! a handler for hours. A thread started later inherits what its parent takes.

use std::io;
use std::mem::MaybeUninit;

/// From now on this thread, and each that it starts, does not take `signals`; other threads do.
///
/// # Errors
/// One of them is no signal.
pub fn block(signals: &[i32]) -> io::Result<()> {
    change(libc::SIG_BLOCK, signals)
}

/// From now on this thread receives `signals`, pending ones included.
///
/// # Errors
/// One of them is no signal.
pub fn unblock(signals: &[i32]) -> io::Result<()> {
    change(libc::SIG_UNBLOCK, signals)
}

/// From now on this thread takes every signal. Async-signal-safe.
pub(crate) fn take_all() -> io::Result<()> {
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is a local and large enough; it is initialised before it is read, and the old mask is not asked for.
    let failed = unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether the process ignores `signal`, as one started by `nohup` ignores SIGHUP.
///
/// # Errors
/// It is no signal.
pub fn is_ignored(signal: i32) -> io::Result<bool> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no new action is given; the old one is written to a local that is large enough.
    if unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the kernel has written all of it.
    Ok(unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN)
}

/// The process ignores SIGXFSZ from now on: a write past the largest file that is allowed (`ulimit -f`) then fails with
/// EFBIG and a reason, where it would have ended the program without a word.
pub fn ignore_file_size_limit() {
    // SAFETY: no handler is installed, so no Rust code runs in signal context.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

fn change(how: i32, signals: &[i32]) -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is a local and large enough; the call initialises all of it.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for &signal in signals {
        // SAFETY: the set was initialised above; a number that is no signal is refused.
        if unsafe { libc::sigaddset(set.as_mut_ptr(), signal) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: the set is initialised and only read; the old mask is not asked for.
    let errno = unsafe { libc::pthread_sigmask(how, set.as_ptr(), std::ptr::null_mut()) };
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mask of the calling thread, as the kernel shows it.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    }

    #[test]
    fn ignored_signals_are_reported() {
        ignore_file_size_limit();
        assert!(is_ignored(libc::SIGXFSZ).unwrap());
        assert!(!is_ignored(libc::SIGUSR1).unwrap());
        assert_eq!(is_ignored(0).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn threads_inherit_and_change_their_own_mask() {
        let of = |signal: i32| 1_u64 << (signal - 1);
        let both = of(libc::SIGUSR1) | of(libc::SIGUSR2);
        std::thread::spawn(move || {
            block(&[libc::SIGUSR1, libc::SIGUSR2]).unwrap();
            let inheriting = std::thread::spawn(move || {
                assert_eq!(blocked() & both, both);
                unblock(&[libc::SIGUSR2]).unwrap();
                assert_eq!(blocked() & both, of(libc::SIGUSR1));
            });
            inheriting.join().unwrap();
            assert_eq!(blocked() & both, both);
        })
        .join()
        .unwrap();
        assert_eq!(block(&[0]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(unblock(&[-1]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
