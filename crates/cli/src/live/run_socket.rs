//! Where other processes find a run that goes on: a socket in the abstract namespace of Unix sockets, named by the history and the
//! number of the run.
//!
//! Such a name is no file: nothing is written to a disk, and it is gone with the process that had it, however that ended. It is
//! visible in one network namespace, to every user; who connects is therefore asked for its user.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use fathom_history::{Location, RunId};
use rustix::net::sockopt::socket_peercred;
use sha2::{Digest, Sha256};

/// How the names begin.
const PREFIX: &str = "fathom-run";
/// The sockets of this network namespace.
const SOCKETS: &str = "/proc/net/unix";
/// The flag of a socket that listens, in its fourth column.
const LISTENS: &str = "00010000";

/// What the names of the runs of a history have in common.
fn prefix(history: &Location) -> String {
    let name = match history {
        Location::File(path) => fs::canonicalize(path).unwrap_or_else(|_| path.clone()).display().to_string(),
        Location::Server(_) => history.to_string(),
    };
    let digest = Sha256::digest(name.as_bytes());
    let hex: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}-{hex}-")
}

fn address(history: &Location, run: RunId) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{}{run}", prefix(history)))
}

/// Takes the place of `run`. Accepting from it does not wait.
///
/// # Errors
/// It is taken.
pub fn listen(history: &Location, run: RunId) -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&address(history, run)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects to `run`.
///
/// # Errors
/// It does not go on, or another user has its place.
pub fn connect(history: &Location, run: RunId) -> io::Result<UnixStream> {
    let stream = UnixStream::connect_addr(&address(history, run)?)?;
    match is_trusted(&stream) {
        true => Ok(stream),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Whether the process at the other end is of this user, or of root.
pub fn is_trusted(stream: &UnixStream) -> bool {
    socket_peercred(stream).is_ok_and(|peer| peer.uid.is_root() || peer.uid == rustix::process::geteuid())
}

/// The runs of `history` that go on on this machine, without disturbing them.
pub fn running(history: &Location) -> BTreeSet<RunId> {
    // Names of others need not be text.
    let sockets = fs::read(SOCKETS).unwrap_or_default();
    runs_in(&String::from_utf8_lossy(&sockets), &prefix(history))
}

fn runs_in(sockets: &str, prefix: &str) -> BTreeSet<RunId> {
    let run = |line: &str| {
        let mut columns = line.split_ascii_whitespace();
        let is_listening = columns.nth(3) == Some(LISTENS);
        let name = columns.nth(3)?.strip_prefix('@')?.strip_prefix(prefix)?;
        name.parse().ok().filter(|_| is_listening)
    };
    sockets.lines().filter_map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_that_listen_are_runs() {
        let sockets = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17 @fathom-run-ab-7\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 18 @fathom-run-ab-8\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 19 @fathom-run-cd-9\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 20 /run/x\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 21\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 22 @fathom-run-ab-12x\n";
        assert_eq!(runs_in(sockets, "fathom-run-ab-"), BTreeSet::from([RunId(7)]));
        assert_eq!(runs_in("", "fathom-run-ab-"), BTreeSet::new());
    }

    #[test]
    fn a_run_is_found_while_it_listens() {
        let history = Location::new(format!("/no/such/{}/h.db", std::process::id()));
        assert_eq!(connect(&history, RunId(3)).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let listener = listen(&history, RunId(3)).unwrap();
        assert_eq!(running(&history), BTreeSet::from([RunId(3)]));
        assert!(listen(&history, RunId(3)).is_err(), "it is taken");
        let client = connect(&history, RunId(3)).unwrap();
        let (server, _) = listener.accept().unwrap();
        assert!(is_trusted(&client) && is_trusted(&server));
        drop(listener);
        assert_eq!(running(&history), BTreeSet::new());
    }
}
