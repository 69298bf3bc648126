//! Priorities, NUMA policy and user of the calling thread.
//!
//! Linux keeps them per thread: a worker sets its own before it opens its engine.

use std::io;

/// Sets the CPU priority of the calling thread, -20 to 19. Values below the present one need privileges (EACCES, EPERM).
pub fn set_nice(nice: i8) -> io::Result<()> {
    Ok(rustix::process::setpriority_process(None, nice.into())?)
}

/// Sets the I/O priority of the calling thread, as Linux packs it. The realtime class needs privileges (EPERM).
pub fn set_io_priority(value: u16) -> io::Result<()> {
    const WHO_PROCESS: libc::c_int = 1;
    // SAFETY: ioprio_set takes three integers and touches no memory of the caller.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, libc::c_long::from(value)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The I/O priority of the calling thread, as Linux packs it.
pub fn io_priority() -> io::Result<u16> {
    const WHO_PROCESS: libc::c_int = 1;
    // SAFETY: ioprio_get takes two integers and touches no memory of the caller.
    let value = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) };
    if value < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value as u16)
}

/// Makes the calling thread act as this group, and not the rest of the process: the system call itself is per thread.
/// EPERM without privileges.
pub fn set_group(group: u32) -> io::Result<()> {
    // SAFETY: it takes integers and touches no memory of the caller.
    let result = unsafe { libc::syscall(libc::SYS_setresgid, group, group, group) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// As [`set_group`], of the user; other properties of the thread that need privileges are to be set before.
pub fn set_user(user: u32) -> io::Result<()> {
    // SAFETY: it takes integers and touches no memory of the caller.
    let result = unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Where memory of a thread is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumaMode {
    /// As the system decides.
    Default,
    /// On the first of the nodes, or others if it is full.
    Preferred,
    /// On these nodes only.
    Bind,
    /// On these nodes in turn.
    Interleave,
    /// On the node of the CPU that allocates.
    Local,
}

/// Sets the memory policy of the calling thread. A node that does not exist is EINVAL.
pub fn set_memory_policy(mode: NumaMode, nodes: &[u32]) -> io::Result<()> {
    const WORD: usize = libc::c_ulong::BITS as usize;
    let mode: libc::c_int = match mode {
        NumaMode::Default => 0,
        NumaMode::Preferred => 1,
        NumaMode::Bind => 2,
        NumaMode::Interleave => 3,
        NumaMode::Local => 4,
    };
    let mut mask = [0 as libc::c_ulong; 1024 / WORD];
    for &node in nodes {
        let word = mask.get_mut(node as usize / WORD).ok_or(io::ErrorKind::InvalidInput)?;
        *word |= 1 << (node as usize % WORD);
    }
    let (pointer, bits) =
        if nodes.is_empty() { (std::ptr::null(), 0) } else { (mask.as_ptr(), mask.len() * WORD) };
    // SAFETY: the kernel reads `bits` bits from the array, which outlives the call, or nothing where it is null.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, pointer, bits) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_sets_its_own_priorities() {
        let before = rustix::process::getpriority_process(None).unwrap();
        std::thread::spawn(|| {
            set_nice(5).unwrap();
            assert_eq!(rustix::process::getpriority_process(None).unwrap(), 5);
            set_io_priority(2 << 13 | 6).unwrap();
            assert_eq!(io_priority().unwrap(), 2 << 13 | 6);
        })
        .join()
        .unwrap();
        assert_eq!(rustix::process::getpriority_process(None).unwrap(), before);
    }

    #[test]
    fn a_thread_acts_as_another_user_by_itself() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        std::thread::spawn(|| {
            set_group(65534).unwrap();
            set_user(65533).unwrap();
            // Of the thread that calls.
            assert_eq!(
                (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
                (65533, 65534)
            );
            assert!(set_user(0).is_err(), "there is no way back");
        })
        .join()
        .unwrap();
        assert!(rustix::process::geteuid().is_root() && rustix::process::getegid().is_root());
    }

    #[test]
    fn memory_policies_name_existing_nodes() {
        std::thread::spawn(|| {
            for (mode, nodes) in [
                (NumaMode::Bind, &[0][..]),
                (NumaMode::Interleave, &[0]),
                (NumaMode::Preferred, &[0]),
                (NumaMode::Local, &[]),
                (NumaMode::Default, &[]),
            ] {
                match set_memory_policy(mode, nodes) {
                    // Kernels without NUMA, and sandboxes.
                    Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {}
                    result => result.unwrap(),
                }
            }
            assert!(set_memory_policy(NumaMode::Bind, &[1023]).is_err());
            assert!(set_memory_policy(NumaMode::Bind, &[5000]).is_err());
        })
        .join()
        .unwrap();
    }
}
