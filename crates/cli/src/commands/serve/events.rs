//! Server-sent events: the news of a run for one reader.

use fathom_sys::clock::monotonic_ns;
use hyper::body::Bytes;

use super::follow::Reader;
use crate::http::{EventStream, StreamPiece};

/// After so long without news, a comment shows whether the reader is still there.
const QUIET_NS: u64 = 15_000_000_000;

/// An event of this name, whose text may have several lines.
pub fn event(name: &str, text: &str) -> Bytes {
    let lines: String = text.lines().map(|line| format!("data: {line}\n")).collect();
    format!("event: {name}\n{lines}\n").into()
}

/// The news of a run; a reader who is slow gets the latest.
pub struct RunEvents {
    reader: Reader,
    /// The version that was sent last.
    sent: u64,
    sent_ns: u64,
    has_ended: bool,
}

impl RunEvents {
    /// All news from now on.
    pub fn new(reader: Reader) -> RunEvents {
        RunEvents { reader, sent: 0, sent_ns: monotonic_ns(), has_ended: false }
    }
}

impl EventStream for RunEvents {
    fn next(&mut self) -> StreamPiece {
        if self.has_ended {
            return StreamPiece::End;
        }
        let (news, now) = (self.reader.news(), monotonic_ns());
        if news.version != self.sent {
            (self.sent, self.sent_ns, self.has_ended) = (news.version, now, news.has_ended);
            return StreamPiece::Bytes(news.event);
        }
        if now - self.sent_ns >= QUIET_NS {
            self.sent_ns = now;
            return StreamPiece::Bytes(Bytes::from_static(b":\n\n"));
        }
        StreamPiece::Nothing
    }
}

/// One event, and no other.
pub struct LastEvent(pub Option<Bytes>);

impl EventStream for LastEvent {
    fn next(&mut self) -> StreamPiece {
        self.0.take().map_or(StreamPiece::End, StreamPiece::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_their_text_in_lines() {
        assert_eq!(event("view", "a\nb: c\n"), "event: view\ndata: a\ndata: b: c\n\n");
        let mut last = LastEvent(Some(event("end", "/")));
        assert!(matches!(last.next(), StreamPiece::Bytes(_)) && matches!(last.next(), StreamPiece::End));
    }
}
