//! Processes that follow a run: each gets its state once, then the lines of the live stream.
//!
//! The run looks for them when its state changes, which costs a system call that does not wait; nothing else is done while nobody
//! follows. A follower that is slow loses lines, like any other reader.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fathom_history::{Location, RunId};
use fathom_report::live::LiveState;
use fathom_report::live::json::LiveLine;
use fathom_sys::abstract_socket::is_trusted;
use rustix::net::RecvFlags;

use super::lines::LineStream;
use super::run_socket::listen;

/// Processes that follow a run at the same time; further ones are turned away.
const MOST: usize = 8;

/// Connections that are looked at at once: any user can make them, also faster than they are refused.
const ADMITTED_AT_ONCE: usize = 64;

/// The followers of the run that goes on, if it can be followed.
#[derive(Default)]
pub struct Followers(Mutex<Vec<OpenRun>>);

/// A run that can be followed. Where targets are measured in turns there are several.
struct OpenRun {
    run: RunId,
    listener: UnixListener,
    streams: Vec<LineStream>,
}

impl Followers {
    /// From now on `run` of `history` can be followed.
    ///
    /// # Errors
    /// There are no sockets for this process.
    pub fn open(&self, history: &Location, run: RunId) -> io::Result<()> {
        let listener = listen(history, run)?;
        self.runs().push(OpenRun { run, listener, streams: Vec::new() });
        Ok(())
    }

    /// `run` has ended, and is kept: its followers get no more lines.
    pub fn close(&self, run: RunId) {
        self.runs().retain(|followed| followed.run != run);
    }

    /// Tells them of a change that led to `state`, and admits new ones.
    pub fn tell(&self, line: Option<LiveLine<'_>>, state: &LiveState) {
        for followed in self.runs().iter_mut() {
            if let Some(line) = line {
                followed.streams.iter().for_each(|stream| stream.send(line, state));
            }
            followed.streams.retain(LineStream::is_read);
            followed.admit(state);
        }
    }

    fn runs(&self) -> MutexGuard<'_, Vec<OpenRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenRun {
    fn admit(&mut self, state: &LiveState) {
        for (stream, _) in (0..ADMITTED_AT_ONCE).map_while(|_| self.listener.accept().ok()) {
            if self.streams.len() >= MOST || !is_trusted(&stream) || has_left(&stream) {
                continue;
            }
            // Who cannot have a thread cannot follow.
            if let Ok(stream) = LineStream::to(File::from(OwnedFd::from(stream))) {
                stream.send(LiveLine::State, state);
                self.streams.push(stream);
            }
        }
    }
}

/// Whether the other end is closed already: it only asked whether the run goes on.
fn has_left(stream: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(rustix::net::recv(stream, &mut [0_u8; 1][..], flags), Ok((0, _)))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::super::run_socket::{connect, running};
    use super::*;

    #[test]
    fn a_follower_gets_the_state_and_then_every_line() {
        let history = Location::new(format!("/no/such/followers/{}/h.db", std::process::id()));
        let (followers, state) = (Followers::default(), LiveState::default());
        followers.open(&history, RunId(1)).unwrap();
        followers.open(&history, RunId(2)).unwrap();
        let mut follower = connect(&history, RunId(1)).unwrap();
        followers.tell(Some(LiveLine::Message("before")), &state);
        followers.tell(Some(LiveLine::Message("after")), &state);
        followers.close(RunId(1));
        assert_eq!(running(&history).into_iter().collect::<Vec<_>>(), [RunId(2)]);
        let mut text = String::new();
        follower.read_to_string(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].contains("\"type\":\"state\"") && lines[1].contains("after"), "{text}");
        // One that only asked whether it goes on is no follower.
        drop(connect(&history, RunId(2)).unwrap());
        followers.tell(None, &state);
        assert!(followers.runs()[0].streams.is_empty());
        // Many who ask hold up neither the run nor, in the end, a follower.
        (0..ADMITTED_AT_ONCE).for_each(|_| drop(connect(&history, RunId(2)).unwrap()));
        let follower = connect(&history, RunId(2)).unwrap();
        followers.tell(None, &state);
        assert!(followers.runs()[0].streams.is_empty());
        // One that has gone is forgotten.
        followers.tell(None, &state);
        assert_eq!(followers.runs()[0].streams.len(), 1);
        drop(follower);
        while !followers.runs()[0].streams.is_empty() {
            followers.tell(Some(LiveLine::Snapshot), &state);
            std::thread::yield_now();
        }
    }
}
