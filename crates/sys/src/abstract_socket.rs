//! Sockets in the abstract namespace of Unix sockets: names without files, which are gone with the process that has them, however that
//! ends. They are visible in one network namespace.
//!
//! Every user can take any name that is free. So a name means nothing before the user behind it is known, and [`connect`] leads only
//! to this user and to root.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

/// The sockets of this network namespace.
const SOCKETS: &str = "/proc/net/unix";
/// The flag of a socket that listens, in its fourth column.
const LISTENS: &str = "00010000";

/// Takes `name`.
///
/// # Errors
/// `AddrInUse`: it is taken, by whomever.
pub fn listen(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Connects to this user's or root's process that has `name`, without waiting for it.
///
/// # Errors
/// `ConnectionRefused`: nobody listens there. `PermissionDenied`: another user does.
pub fn connect(name: &str) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    // One who listens and never accepts would hold up whoever asks.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &address)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    match is_trusted(&stream) {
        true => Ok(stream),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Whether the process at the other end is of this user, or of root.
pub fn is_trusted(stream: &UnixStream) -> bool {
    socket_peercred(stream).is_ok_and(|peer| peer.uid.is_root() || peer.uid == rustix::process::geteuid())
}

/// The names with this beginning at which somebody listens, whoever that is.
pub fn names(prefix: &str) -> Vec<String> {
    // Names of others need not be text.
    let sockets = std::fs::read(SOCKETS).unwrap_or_default();
    names_in(&String::from_utf8_lossy(&sockets), prefix)
}

fn names_in(sockets: &str, prefix: &str) -> Vec<String> {
    let name = |line: &str| {
        let mut columns = line.split_ascii_whitespace();
        let is_listening = columns.nth(3) == Some(LISTENS);
        let name = columns.nth(3)?.strip_prefix('@')?;
        (is_listening && name.starts_with(prefix)).then(|| name.to_owned())
    };
    sockets.lines().filter_map(name).collect()
}

/// Does `work` as another user, on a thread of its own; `None` where this user is not root, who alone can.
#[cfg(test)]
pub(crate) fn as_another_user<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    use rustix::process::Uid;
    let other = Uid::from_raw(65_534);
    let work = || {
        // The kernel changes the user of this thread alone.
        rustix::thread::set_thread_res_uid(other, other, other).ok()?;
        Some(work())
    };
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_that_listen_have_names() {
        let sockets = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17 @fathom-run-ab-7\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 18 @fathom-run-ab-8\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 19 @fathom-run-cd-9\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 20 /run/x\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 21\n";
        assert_eq!(names_in(sockets, "fathom-run-ab-"), ["fathom-run-ab-7"]);
        assert_eq!(names_in("", "fathom-run-ab-"), [""; 0]);
    }

    #[test]
    fn only_this_user_and_root_are_connected_to() {
        let name = format!("fathom test of names {}", std::process::id());
        assert_eq!(connect(&name).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let own = listen(&name).unwrap();
        assert!(connect(&name).is_ok());
        assert_eq!(listen(&name).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // Root is trusted by everybody.
        assert_ne!(as_another_user(|| connect(&name).is_ok()), Some(false));
        drop(own);
        let Some(_foreign) = as_another_user(|| listen(&name).unwrap()) else { return };
        assert_eq!(connect(&name).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_holder_that_never_accepts_holds_up_nobody() {
        let name = format!("fathom test of queues {}", std::process::id());
        let _holder = listen(&name).unwrap();
        // Connections wait in its queue until that is full, also those whose other end is closed.
        let full = (0..1_000_000).find_map(|_| connect(&name).err());
        assert_eq!(full.unwrap().kind(), io::ErrorKind::WouldBlock);
    }
}
