//! A lock between processes of one machine, by name: the name of a socket without a file, which the kernel releases with the
//! process, however that ends.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Held until it is dropped.
#[derive(Debug)]
pub struct NamedLock {
    _socket: UnixListener,
}

impl NamedLock {
    /// Takes the lock `name`; `None` where another holder has it.
    ///
    /// # Errors
    /// There are no sockets for this process.
    pub fn take(name: &str) -> io::Result<Option<NamedLock>> {
        // The length of a socket's name is limited.
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let address = SocketAddr::from_abstract_name(format!("fathom-{:016x}", hasher.finish()))?;
        match UnixListener::bind_addr(&address) {
            Ok(socket) => Ok(Some(NamedLock { _socket: socket })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_holder() {
        let name = |end: &str| format!("test of {} {end}", std::process::id());
        let first = NamedLock::take(&name("a")).unwrap();
        assert!(first.is_some());
        assert!(NamedLock::take(&name("a")).unwrap().is_none());
        assert!(NamedLock::take(&name("b")).unwrap().is_some(), "another name");
        drop(first);
        assert!(NamedLock::take(&name("a")).unwrap().is_some(), "released");
    }
}
