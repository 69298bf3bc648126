//! Where other processes find a run that goes on: a socket in the abstract namespace of Unix sockets, named by the history and the
//! number of the run.
//!
//! Every user can take such a name. So it ends in a random number, lest another user takes it before the run does, and it marks a run
//! only if this user or root has it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};

use fathom_history::{Location, RunId};
use fathom_sys::abstract_socket;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

/// How the names begin.
const PREFIX: &str = "fathom-run";

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

/// Makes a place for `run`. Accepting from it does not wait.
///
/// # Errors
/// There are no sockets for this process.
pub fn listen(history: &Location, run: RunId) -> io::Result<UnixListener> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty())?;
    let name = format!("{}{run}-{:016x}", prefix(history), u64::from_ne_bytes(random));
    let listener = abstract_socket::listen(&name)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects to `run`.
///
/// # Errors
/// It does not go on, or not as this user or root.
pub fn connect(history: &Location, run: RunId) -> io::Result<UnixStream> {
    let names = abstract_socket::names(&format!("{}{run}-", prefix(history)));
    let mut streams = names.iter().filter_map(|name| abstract_socket::connect(name).ok());
    streams.next().ok_or_else(|| io::ErrorKind::ConnectionRefused.into())
}

/// The runs of `history` that go on on this machine, as this user or root.
pub fn running(history: &Location) -> BTreeSet<RunId> {
    let prefix = prefix(history);
    let run = |name: &String| {
        let (run, _) = name.strip_prefix(&prefix)?.split_once('-')?;
        let run = run.parse().ok()?;
        abstract_socket::connect(name).is_ok().then_some(run)
    };
    abstract_socket::names(&prefix).iter().filter_map(run).collect()
}

#[cfg(test)]
mod tests {
    use rustix::process::Uid;

    use super::*;

    fn history(end: &str) -> Location {
        Location::new(format!("/no/such/{}/{end}.db", std::process::id()))
    }

    #[test]
    fn a_run_is_found_while_it_listens() {
        let history = history("h");
        assert_eq!(connect(&history, RunId(3)).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let listener = listen(&history, RunId(3)).unwrap();
        assert_eq!(running(&history), BTreeSet::from([RunId(3)]));
        assert!(connect(&history, RunId(3)).is_ok() && connect(&history, RunId(30)).is_err());
        drop(listener);
        assert_eq!(running(&history), BTreeSet::new());
    }

    #[test]
    fn another_user_marks_no_run_and_takes_the_place_of_none() {
        let history = history("foreign");
        let other = Uid::from_raw(65_534);
        let squat = || {
            // Root alone can be another user; the kernel changes that of this thread only.
            rustix::thread::set_thread_res_uid(other, other, other).ok()?;
            Some(listen(&history, RunId(3)).unwrap())
        };
        let Some(_foreign) = std::thread::scope(|scope| scope.spawn(squat).join().unwrap()) else { return };
        assert_eq!(running(&history), BTreeSet::new());
        assert!(connect(&history, RunId(3)).is_err());
        let _own = listen(&history, RunId(3)).unwrap();
        assert_eq!(running(&history), BTreeSet::from([RunId(3)]));
        assert!(connect(&history, RunId(3)).is_ok());
    }
}
