//! A lock between processes of one machine, by name: the name of a socket without a file, which the kernel releases with the
//! process, however that ends.
//!
//! It holds among the processes of one user, who also waits for those of root. Another user can take the same names, and holds up
//! nobody by that: a lock has several, and the next one is taken.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::Shutdown;

use crate::abstract_socket::{connect, listen};

/// Names of a lock. Where other users have taken all of them, there is no lock.
const NAMES: usize = 8;
/// A holder that has its name and does not listen yet is asked again so often, after this time.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// Held until it is dropped.
#[derive(Debug)]
pub struct NamedLock {
    socket: Arc<UnixListener>,
    answers: Option<JoinHandle<()>>,
}

impl NamedLock {
    /// Takes the lock `name`; `None` where another process of this user, or of root, has it.
    ///
    /// # Errors
    /// There are no sockets for this process; `AddrInUse`: other users have taken every name.
    pub fn take(name: &str) -> io::Result<Option<NamedLock>> {
        // The length of a socket's name is limited.
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let lock = format!("fathom-{:016x}", hasher.finish());
        let names: Vec<String> = (0..NAMES).map(|number| format!("{lock}-{number}")).collect();
        for own in &names {
            match listen(own) {
                Ok(socket) => {
                    // Another user may have left a name before that of the holder.
                    let is_held = names.iter().any(|name| name != own && connect(name).is_ok());
                    return Ok((!is_held).then(|| NamedLock::hold(socket)));
                }
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
                Err(_) if is_held(own) => return Ok(None),
                Err(_) => {}
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// Accepts whoever asks for the holder, or the queue of the socket would be full of them.
    fn hold(socket: UnixListener) -> NamedLock {
        let socket = Arc::new(socket);
        let answering = socket.clone();
        let answer = move || while answering.accept().is_ok() {};
        let thread = std::thread::Builder::new().name("lock".to_owned()).stack_size(64 << 10);
        NamedLock { socket, answers: thread.spawn(answer).ok() }
    }
}

impl Drop for NamedLock {
    fn drop(&mut self) {
        // That ends the wait of the thread, which also has the socket.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
        if let Some(answers) = self.answers.take() {
            let _ = answers.join();
        }
    }
}

/// Whether this user or root has `name`, which is taken.
fn is_held(name: &str) -> bool {
    for _ in 0..ATTEMPTS {
        match connect(name) {
            Ok(_) => return true,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::thread::park_timeout(PAUSE)
            }
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abstract_socket::as_another_user;

    fn name(end: &str) -> String {
        format!("test of {} {end}", std::process::id())
    }

    #[test]
    fn a_name_has_one_holder() {
        let first = NamedLock::take(&name("a")).unwrap();
        assert!(first.is_some());
        assert!(NamedLock::take(&name("a")).unwrap().is_none());
        assert!(NamedLock::take(&name("b")).unwrap().is_some(), "another name");
        drop(first);
        assert!(NamedLock::take(&name("a")).unwrap().is_some(), "released");
    }

    #[test]
    fn one_of_many_takers_has_the_lock() {
        let take = || NamedLock::take(&name("race")).unwrap();
        for _ in 0..50 {
            let locks: Vec<_> = std::thread::scope(|scope| {
                let takers: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
                takers.into_iter().map(|taker| taker.join().unwrap()).collect()
            });
            assert_eq!(locks.iter().flatten().count(), 1);
        }
    }

    #[test]
    fn other_users_neither_hold_up_nor_release_a_lock() {
        let take = || NamedLock::take(&name("c")).unwrap();
        let Some(foreign) = as_another_user(take) else { return };
        assert!(foreign.is_some());
        let own = take();
        assert!(own.is_some(), "another user holds it up");
        assert!(take().is_none());
        drop(foreign);
        assert!(take().is_none(), "the first name is free, and another has the lock");
        assert_eq!(as_another_user(|| take().is_none()), Some(true), "root is waited for");
        drop(own);
        assert!(take().is_some());
    }
}
