//! The socket that a launcher leaves to each of its processes.

use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::ProcessManagerError;
use crate::clock::monotonic_ns;

/// The longest message of a launcher that is read, bytes.
pub(super) const MAX_MESSAGE: usize = 64 << 10;
/// The time that a launcher has to take the request to abort.
const ABORT_LIMIT: Duration = Duration::from_secs(1);

/// The socket with the place of this process.
#[derive(Debug)]
pub(super) struct Inherited {
    pub(super) stream: UnixStream,
    pub(super) rank: u32,
    pub(super) size: u32,
}

impl Inherited {
    /// Takes the socket that the environment names; `None` where it names none, or one that is not open although the variables
    /// of PMIx are there.
    pub(super) fn from_environment(
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Inherited>, ProcessManagerError> {
        let Some(descriptor) = variable("PMI_FD") else { return Ok(None) };
        let stream = descriptor.trim().parse().ok().and_then(own_socket);
        let Some(stream) = stream else {
            return match variable("PMIX_RANK") {
                Some(_) => Ok(None),
                None => Err(ProcessManagerError::Environment("PMI_FD")),
            };
        };
        let number = |name: &'static str| -> Result<u32, ProcessManagerError> {
            let number = variable(name).and_then(|text| text.trim().parse().ok());
            number.ok_or(ProcessManagerError::Environment(name))
        };
        let (rank, size) = (number("PMI_RANK")?, number("PMI_SIZE")?);
        match rank < size {
            true => Ok(Some(Inherited { stream, rank, size })),
            false => Err(ProcessManagerError::Environment("PMI_SIZE")),
        }
    }
}

/// A descriptor of its own for the socket behind `inherited`; `None` where that is no open socket. Programs that this one starts get
/// neither of both.
fn own_socket(inherited: RawFd) -> Option<UnixStream> {
    if inherited <= libc::STDERR_FILENO {
        return None;
    }
    // SAFETY: fcntl duplicates an open descriptor, or fails for a number that is not open.
    let own = unsafe { libc::fcntl(inherited, libc::F_DUPFD_CLOEXEC, 3) };
    if own < 0 {
        return None;
    }
    // SAFETY: the descriptor was made above, and nothing else owns it.
    let own = unsafe { OwnedFd::from_raw_fd(own) };
    rustix::net::sockopt::socket_type(&own).ok()?;
    // SAFETY: as above; the flag concerns programs that are started later.
    unsafe { libc::fcntl(inherited, libc::F_SETFD, libc::FD_CLOEXEC) };
    Some(UnixStream::from(own))
}

/// A request and the time until which it must be answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) name: &'static str,
    limit: Duration,
    until_ns: u64,
}

impl Asked {
    pub(super) fn new(name: &'static str, limit: Duration) -> Asked {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Asked { name, limit, until_ns: monotonic_ns().saturating_add(limit_ns) }
    }

    /// A further request, which has to be answered within the same time.
    pub(super) fn then(self, name: &'static str) -> Asked {
        Asked { name, ..self }
    }

    /// The time left.
    pub(super) fn left(self) -> Result<Duration, ProcessManagerError> {
        let left = Duration::from_nanos(self.until_ns.saturating_sub(monotonic_ns()));
        if left.is_zero() { Err(self.is_late()) } else { Ok(left) }
    }

    pub(super) fn is_late(self) -> ProcessManagerError {
        ProcessManagerError::Deadline { asked: self.name, limit: self.limit }
    }

    /// An answer that is not the expected one.
    pub(super) fn unexpected(self, answer: impl Into<String>) -> ProcessManagerError {
        ProcessManagerError::Answer { asked: self.name, answer: answer.into() }
    }
}

/// A socket on which requests are answered one after the other.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    /// Bytes behind the last message.
    left: Vec<u8>,
    /// An answer is outstanding that nobody waits for: what comes next belongs to that request.
    is_out_of_step: bool,
}

impl Connection {
    pub(super) fn new(stream: UnixStream) -> Connection {
        Connection { stream, left: Vec::new(), is_out_of_step: false }
    }

    /// Sends a request.
    pub(super) fn send(&mut self, message: &[u8], asked: Asked) -> Result<(), ProcessManagerError> {
        if self.is_out_of_step {
            return Err(asked.is_late());
        }
        let sent = self.send_all(message, asked);
        self.is_out_of_step |= matches!(sent, Err(ProcessManagerError::Deadline { .. }));
        sent
    }

    fn send_all(&mut self, mut message: &[u8], asked: Asked) -> Result<(), ProcessManagerError> {
        while !message.is_empty() {
            self.stream.set_write_timeout(Some(asked.left()?)).map_err(ProcessManagerError::Connection)?;
            match self.stream.write(message) {
                Ok(count) => message = &message[count..],
                Err(error) => unless_interrupted(error, asked)?,
            }
        }
        Ok(())
    }

    /// The next line, without its end.
    pub(super) fn line(&mut self, asked: Asked) -> Result<String, ProcessManagerError> {
        loop {
            if let Some(end) = self.left.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.left.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.left.len() > MAX_MESSAGE {
                return Err(asked.unexpected(format!("a line of more than {MAX_MESSAGE} bytes")));
            }
            self.receive(asked)?;
        }
    }

    /// The next `count` bytes.
    pub(super) fn bytes(&mut self, count: usize, asked: Asked) -> Result<Vec<u8>, ProcessManagerError> {
        while self.left.len() < count {
            self.receive(asked)?;
        }
        Ok(self.left.drain(..count).collect())
    }

    /// Waits for more bytes.
    fn receive(&mut self, asked: Asked) -> Result<(), ProcessManagerError> {
        let received = self.receive_some(asked);
        self.is_out_of_step |= matches!(received, Err(ProcessManagerError::Deadline { .. }));
        received
    }

    fn receive_some(&mut self, asked: Asked) -> Result<(), ProcessManagerError> {
        self.stream.set_read_timeout(Some(asked.left()?)).map_err(ProcessManagerError::Connection)?;
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(ProcessManagerError::Closed),
            Ok(count) => {
                self.left.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            Err(error) => unless_interrupted(error, asked),
        }
    }

    /// Sends a request that has no answer, also where another one is outstanding. A launcher that does not take it cannot be helped.
    pub(super) fn send_last(&mut self, message: &[u8]) {
        self.send_all(message, Asked::new("abort", ABORT_LIMIT)).ok();
    }
}

fn unless_interrupted(error: io::Error, asked: Asked) -> Result<(), ProcessManagerError> {
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(()),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Err(asked.is_late()),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Err(ProcessManagerError::Closed),
        _ => Err(ProcessManagerError::Connection(error)),
    }
}
