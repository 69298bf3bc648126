//! JSON lines to a file or to standard error, by a thread of their own.
//!
//! A reader that is slow fills a queue of limited length; lines beyond it are dropped and counted, and nobody waits.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fathom_report::TextWriter;
use fathom_report::live::LiveState;
use fathom_report::live::json::{self, LinePlace, LiveLine};
use fathom_sys::priority::set_nice;

use super::NICE;

/// Lines that wait for their reader.
const QUEUE: usize = 256;
/// Time that the reader gets for them at the end.
const PATIENCE: Duration = Duration::from_millis(1000);

/// A stream of lines.
pub struct LineStream(Mutex<Open>);

struct Open {
    /// `None` once it has been finished.
    queue: Option<SyncSender<Vec<u8>>>,
    place: LinePlace,
    /// Disconnects when the last line has been written.
    is_written: Receiver<()>,
}

impl LineStream {
    /// A stream to `file`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn to(file: File) -> io::Result<LineStream> {
        let (queue, lines) = sync_channel::<Vec<u8>>(QUEUE);
        let (writing, is_written) = channel::<()>();
        let write = move || {
            let _writing = writing;
            // The measurement has the CPUs first; without the right to lower it, it stays as it is.
            let _ = set_nice(NICE);
            let mut file = file;
            for line in lines {
                // A reader that has gone has seen enough.
                if file.write_all(&line).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("live-lines".to_owned()).spawn(write)?;
        Ok(LineStream(Mutex::new(Open { queue: Some(queue), place: LinePlace::default(), is_written })))
    }

    /// Sends a line about `state`, or drops it where the reader is slow.
    pub fn send(&self, line: LiveLine<'_>, state: &LiveState) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Open { queue: Some(queue), place, .. } = &mut *open else { return };
        place.line += 1;
        let mut bytes = Vec::new();
        // A vector takes everything.
        let _ = json::write(line, state, *place, &mut TextWriter::new(&mut bytes).json());
        if queue.try_send(bytes).is_err() {
            place.dropped += 1;
        }
    }

    /// Whether somebody reads it: false once a line could not be written.
    pub fn is_read(&self) -> bool {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !matches!(open.is_written.try_recv(), Err(TryRecvError::Disconnected))
    }

    /// No line follows: waits a limited time for the reader of those that were sent.
    pub fn finish(&self) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.queue.take().is_some() {
            let _ = open.is_written.recv_timeout(PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use serde_json::Value;

    use super::*;

    fn pipe() -> (File, File) {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        (File::from(reader), File::from(writer))
    }

    #[test]
    fn each_line_is_an_object_with_its_number() {
        let (reader, writer) = pipe();
        let stream = LineStream::to(writer).unwrap();
        let state = LiveState::default();
        stream.send(LiveLine::Begun, &state);
        stream.send(LiveLine::Message("a \u{1b}[31m\nb"), &state);
        stream.finish();
        stream.send(LiveLine::Ended, &state);
        drop(stream);
        let lines: Vec<Value> = BufReader::new(reader)
            .lines()
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect();
        let of = |index: usize, key: &str| lines[index][key].clone();
        assert_eq!(lines.len(), 2, "what comes after the end is not sent");
        assert_eq!(
            (of(0, "type"), of(0, "line"), of(0, "schema")),
            ("begin".into(), 1.into(), json::SCHEMA.into())
        );
        assert_eq!((of(1, "text"), of(1, "line")), ("a \u{1b}[31m\nb".into(), 2.into()));
    }

    #[test]
    fn a_reader_that_never_reads_loses_lines_and_holds_up_nobody() {
        let (reader, writer) = pipe();
        let stream = LineStream::to(writer).unwrap();
        let (state, long) = (LiveState::default(), "x".repeat(4096));
        let sent = 2 * QUEUE as u64;
        (0..sent).for_each(|_| stream.send(LiveLine::Message(&long), &state));
        let place = stream.0.lock().unwrap().place;
        // The pipe holds 16 of them, and one is being written.
        assert_eq!(place.line, sent);
        assert!(place.dropped >= sent - QUEUE as u64 - 17, "{place:?}");
        drop(reader);
        stream.finish();
    }
}
