//! Traces of requests as other programs write them: fio's iolog, versions 2 and 3, and the text of blkparse.

use fathom_model::{Nanos, Op};
use fathom_sys::files::Lines;

use crate::AssessError;

/// A request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceRequest {
    /// When it was made, ns since the first one; in a trace without times, when the waits before it are over.
    pub at_ns: u64,
    pub op: Op,
    pub offset: u64,
    pub bytes: u32,
}

/// Requests in the order in which they were made.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Where it comes from.
    pub name: String,
    /// What it is: `fio iolog version 3`, ...
    pub format: &'static str,
    pub(super) events: Vec<TraceRequest>,
    /// Each request has its time and is made then, whether those before have completed or not.
    pub(super) has_times: bool,
    /// What the trace lasts by itself, ns.
    pub(super) length_ns: u64,
    pub(super) notes: Vec<String>,
}

/// Bytes of what block devices count in.
const SECTOR: u64 = 512;
/// Longest trace, ns: ten years, the longest time that a load can be put on a volume for.
const LONGEST_NS: u64 = 10 * 365 * 86_400 * 1_000_000_000;

impl Trace {
    /// Reads a trace of any format that is known, line by line. Only the requests are kept.
    ///
    /// # Errors
    /// It cannot be read, is none of them, has a line that makes no sense, no request, or more of them than are kept.
    pub fn read(lines: &mut Lines<'_>) -> Result<Trace, AssessError> {
        let name = lines.name().to_owned();
        let refuse = |line: usize, reason: String| AssessError::Trace { name: name.clone(), line, reason };
        let first = lines.next_line()?.ok_or_else(|| refuse(1, "it is empty".to_owned()))?;
        let mut reader = TraceReader::new(first).map_err(|reason| refuse(1, reason))?;
        if matches!(reader.format, TraceFormat::Blkparse) {
            reader.line(first).map_err(|reason| refuse(1, reason))?;
        }
        while let Some(line) = lines.next_line()? {
            let read = reader.line(line.trim());
            read.map_err(|reason| refuse(lines.number(), reason))?;
            lines.check_entries(reader.kept())?;
        }
        reader.finish(&name).map_err(|reason| refuse(1, reason))
    }

    /// Requests in it.
    pub fn requests(&self) -> usize {
        self.events.len()
    }

    /// What it lasts by itself: from its first request to its last, as far as it says.
    pub fn length(&self) -> Nanos {
        Nanos(self.length_ns)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceFormat {
    Iolog2,
    Iolog3,
    Blkparse,
}

/// An event of blkparse: queued, or handed to the driver.
const QUEUED: usize = 0;
const ISSUED: usize = 1;

struct TraceReader {
    format: TraceFormat,
    events: Vec<TraceRequest>,
    /// Of blkparse: what was queued and what was issued; one of them is the trace.
    by_action: [Vec<TraceRequest>; 2],
    files: usize,
    /// The waits of version 2 so far.
    waited_ns: u64,
    /// The time of the first request that was read.
    first_ns: Option<u64>,
}

impl TraceReader {
    fn new(first: &str) -> Result<TraceReader, String> {
        let format = match first.trim() {
            "fio version 2 iolog" => TraceFormat::Iolog2,
            "fio version 3 iolog" => TraceFormat::Iolog3,
            other if is_blkparse(other) => TraceFormat::Blkparse,
            _ => return Err("it is neither a fio iolog nor blkparse text".to_owned()),
        };
        Ok(TraceReader {
            format,
            events: Vec::new(),
            by_action: Default::default(),
            files: 0,
            waited_ns: 0,
            first_ns: None,
        })
    }

    /// Requests in memory.
    fn kept(&self) -> usize {
        self.events.len() + self.by_action.iter().map(Vec::len).sum::<usize>()
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            return Ok(());
        }
        match self.format {
            TraceFormat::Iolog2 => {
                let at_ns = self.waited_ns;
                self.iolog(at_ns, &words)
            }
            TraceFormat::Iolog3 => {
                let at =
                    words[0].parse::<u64>().map_err(|_| format!("'{}' is not a time in µs", words[0]))?;
                let at_ns = at.checked_mul(1_000).ok_or_else(|| too_long(&format!("{at} µs")))?;
                self.iolog(at_ns, &words[1..])
            }
            TraceFormat::Blkparse => self.blkparse(&words),
        }
    }

    /// `FILE ACTION` or `FILE ACTION OFFSET LENGTH`.
    fn iolog(&mut self, at_ns: u64, words: &[&str]) -> Result<(), String> {
        let (action, rest) = match words {
            [_, action, rest @ ..] => (*action, rest),
            _ => return Err("expected FILE ACTION OFFSET LENGTH".to_owned()),
        };
        let op = match action {
            "add" => {
                self.files += 1;
                return Ok(());
            }
            "open" | "close" => return Ok(()),
            "wait" if self.format == TraceFormat::Iolog2 => {
                let wait = rest.first().and_then(|word| word.parse::<u64>().ok());
                let wait = wait.ok_or_else(|| "the time of wait is not a number of µs".to_owned())?;
                let waited_ns =
                    wait.checked_mul(1_000).and_then(|wait_ns| wait_ns.checked_add(self.waited_ns));
                self.waited_ns = waited_ns
                    .filter(|&waited_ns| waited_ns <= LONGEST_NS)
                    .ok_or_else(|| too_long(&format!("the wait of {wait} µs")))?;
                return Ok(());
            }
            "read" => Op::Read,
            "write" => Op::Write,
            "trim" => Op::Trim,
            "sync" => Op::Sync,
            "datasync" => Op::Datasync,
            other => return Err(format!("unknown action '{other}'")),
        };
        let (offset, bytes) = match rest {
            _ if op.is_sync() => (0, 0),
            [offset, bytes, ..] => {
                let number = |word: &str| {
                    word.parse::<u64>().map_err(|_| format!("'{word}' is not a number of bytes"))
                };
                (number(offset)?, number(bytes)?)
            }
            _ => return Err("offset and length are missing".to_owned()),
        };
        self.check_time(at_ns)?;
        self.events.push(TraceRequest { at_ns, op, offset, bytes: whole(bytes)? });
        Ok(())
    }

    /// Refuses a request that is too far from the first one.
    fn check_time(&mut self, at_ns: u64) -> Result<(), String> {
        let first_ns = *self.first_ns.get_or_insert(at_ns);
        if at_ns.abs_diff(first_ns) > LONGEST_NS {
            return Err(too_long(&format!("its time, {} s,", at_ns / 1_000_000_000)));
        }
        Ok(())
    }

    /// `MAJOR,MINOR CPU NUMBER SECONDS PID ACTION RWBS SECTOR + SECTORS`; everything else is no request.
    fn blkparse(&mut self, words: &[&str]) -> Result<(), String> {
        let [_, _, _, time, _, action, rwbs, rest @ ..] = words else { return Ok(()) };
        let list = match *action {
            "Q" => QUEUED,
            "D" => ISSUED,
            _ => return Ok(()),
        };
        if !is_blkparse(&words.join(" ")) {
            return Ok(());
        }
        let at_ns = nanoseconds(time).ok_or_else(|| format!("'{time}' is not a time in seconds"))?;
        let op = match () {
            () if rwbs.contains('D') => Op::Trim,
            () if rwbs.contains('R') => Op::Read,
            () if rwbs.contains('W') => Op::Write,
            () if rwbs.contains('F') => Op::Sync,
            () => return Ok(()),
        };
        let (offset, bytes) = match rest {
            [sector, "+", count, ..] => {
                let number = |word: &str| {
                    word.parse::<u64>().map_err(|_| format!("'{word}' is not a number of sectors"))
                };
                (number(sector)?.saturating_mul(SECTOR), number(count)?.saturating_mul(SECTOR))
            }
            // A flush by itself.
            _ => (0, 0),
        };
        let op = if bytes == 0 { Op::Sync } else { op };
        self.check_time(at_ns)?;
        self.by_action[list].push(TraceRequest { at_ns, op, offset, bytes: whole(bytes)? });
        Ok(())
    }

    fn finish(mut self, name: &str) -> Result<Trace, String> {
        let mut notes = Vec::new();
        let format = match self.format {
            TraceFormat::Iolog2 => "fio iolog version 2",
            TraceFormat::Iolog3 => "fio iolog version 3",
            TraceFormat::Blkparse => {
                let [queued, issued] = std::mem::take(&mut self.by_action);
                self.events = if issued.is_empty() { queued } else { issued };
                "blkparse"
            }
        };
        // Several CPUs, or files, may have been written down one after the other.
        self.events.sort_by_key(|event| event.at_ns);
        let first = self.events.first().ok_or("it contains no I/O")?.at_ns;
        for event in &mut self.events {
            event.at_ns -= first;
        }
        if self.files > 1 {
            notes.push(format!("the {} files of the trace share the offsets of the volume", self.files));
        }
        let has_times = self.format != TraceFormat::Iolog2;
        if !has_times {
            let text = "the trace has no times: each I/O is issued when the previous one completes";
            notes.push(text.to_owned());
        }
        let length_ns = self.events.last().map_or(0, |event| event.at_ns);
        if length_ns > LONGEST_NS {
            return Err("the last I/O is more than 10 years after the first".to_owned());
        }
        Ok(Trace { name: name.to_owned(), format, events: self.events, has_times, length_ns, notes })
    }
}

fn too_long(what: &str) -> String {
    format!("{what} is more than 10 years after the first I/O")
}

fn whole(bytes: u64) -> Result<u32, String> {
    u32::try_from(bytes).map_err(|_| format!("an I/O of {bytes} bytes is too large"))
}

/// True for a line of blkparse's usual text.
fn is_blkparse(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let device = words.next().and_then(|word| word.split_once(','));
    let is_number = |word: &str| word.parse::<u64>().is_ok();
    device.is_some_and(|(major, minor)| is_number(major) && is_number(minor))
        && words.next().is_some_and(is_number)
        && words.next().is_some_and(is_number)
        && words.next().is_some_and(|time| nanoseconds(time).is_some())
}

/// Seconds with up to nine decimals, exactly.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.')?;
    let digits = decimals.len();
    if digits == 0 || digits > 9 {
        return None;
    }
    let fraction: u64 = decimals.parse().ok()?;
    seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(fraction * 10u64.pow(9 - digits as u32))
}

#[cfg(test)]
mod tests {
    use fathom_sys::files::{Input, TRACE};

    use super::*;

    fn read(text: &str) -> Result<Trace, String> {
        Trace::read(&mut Lines::new(&TRACE, "t", text.as_bytes())).map_err(|error| error.to_string())
    }

    fn events(text: &str) -> Vec<(u64, Op, u64, u32)> {
        let trace = read(text).unwrap();
        trace.events.iter().map(|event| (event.at_ns, event.op, event.offset, event.bytes)).collect()
    }

    #[test]
    fn iologs() {
        let three = "fio version 3 iolog\n16 /t/f add\n104 /t/f open\n108 /t/f read 249856 4096\n446 /t/f write 512 1024\n\
            500 /t/f datasync 0 0\n600 /t/f trim 0 4096\n700 /t/f close\n";
        assert_eq!(
            events(three),
            [
                (0, Op::Read, 249_856, 4096),
                (338_000, Op::Write, 512, 1024),
                (392_000, Op::Datasync, 0, 0),
                (492_000, Op::Trim, 0, 4096)
            ]
        );
        let two =
            "fio version 2 iolog\n/a add\n/b add\n/a open\n/a read 0 512\n/a wait 250 0\n/b write 512 512\n";
        assert_eq!(events(two), [(0, Op::Read, 0, 512), (250_000, Op::Write, 512, 512)]);
        let (two, three) = (read(two).unwrap(), read(three).unwrap());
        assert!(!two.has_times && two.notes.len() == 2 && three.has_times && three.notes.is_empty());
    }

    #[test]
    fn text_of_blkparse() {
        let line = |time: &str, action: &str, rwbs: &str, rest: &str| {
            format!("  8,0    1       17     {time}  4711  {action}  {rwbs} {rest}\n")
        };
        let queued = line("0.000000100", "Q", "R", "8 + 8 [fio]") + &line("0.5", "Q", "WS", "16 + 1 [fio]");
        assert_eq!(events(&queued), [(0, Op::Read, 4096, 4096), (499_999_900, Op::Write, 8192, 512)]);
        // Of what was issued and what was queued, the former.
        let both = queued.clone()
            + &line("0.6", "D", "DS", "8 + 8 [fio]")
            + &line("0.7", "D", "FN", "[fio]")
            + &line("0.8", "C", "R", "8 + 8 [0]")
            + "CPU0 (sda):\n Reads Queued: 1, 4KiB\n";
        assert_eq!(events(&both), [(0, Op::Trim, 4096, 4096), (100_000_000, Op::Sync, 0, 0)]);
    }

    #[test]
    fn what_is_no_trace_is_refused_by_line() {
        for (text, expected) in [
            ("", "t:1: it is empty"),
            ("fio version 1 iolog\n", "t:1: it is neither"),
            ("hello\n", "t:1: it is neither"),
            ("fio version 3 iolog\n", "t:1: it contains no I/O"),
            ("fio version 3 iolog\nx /t read 0 1\n", "t:2: 'x' is not a time"),
            ("fio version 3 iolog\n1 /t read 0\n", "t:2: offset and length are missing"),
            ("fio version 3 iolog\n1 /t raed 0 1\n", "t:2: unknown action 'raed'"),
            ("fio version 3 iolog\n1 /t wait 5 0\n", "t:2: unknown action 'wait'"),
            ("fio version 3 iolog\n1 /t read 0 9999999999\n", "t:2: an I/O of 9999999999 bytes"),
            ("fio version 2 iolog\n/t\n", "t:2: expected FILE ACTION"),
            (
                "fio version 3 iolog\n18446744073709551616 /t read 0 1\n",
                "t:2: '18446744073709551616' is not a time",
            ),
            ("8,0 1 1 0.5 1 D R x + 8\n", "t:1: 'x' is not a number of sectors"),
            (
                "fio version 3 iolog\n1 /t read 0 1\n18446744073709551615 /t read 0 1\n",
                "t:3: 18446744073709551615 µs is more than 10 years after the first I/O",
            ),
            (
                "fio version 3 iolog\n400000000000000 /t read 0 1\n1 /t read 0 1\n",
                "t:3: its time, 0 s, is more than 10 years after the first I/O",
            ),
            (
                "fio version 2 iolog\n/t read 0 1\n/t wait 315360000000000 0\n/t wait 1 0\n",
                "t:4: the wait of 1 µs is more than 10 years after the first I/O",
            ),
            (
                "8,0 1 1 0.5 1 D R 0 + 8\n8,0 1 1 18446744073.5 1 D R 0 + 8\n",
                "t:2: its time, 18446744073 s, is more than 10 years after the first I/O",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}, not {expected}");
        }
    }

    #[test]
    fn lines_and_requests_have_a_limit() {
        static FEW: Input = Input { most_entries: 2, most_line_bytes: 100, ..TRACE };
        let read = |text: &str| {
            let trace = Trace::read(&mut Lines::new(&FEW, "t", text.as_bytes()));
            trace.map(|trace| trace.requests()).map_err(|error| error.to_string())
        };
        let requests = |count: usize| format!("fio version 3 iolog\n{}", "1 /t read 0 512\n".repeat(count));
        assert_eq!(read(&requests(2)), Ok(2));
        assert_eq!(
            read(&requests(3)),
            Err("cannot read the trace t: it has more than 2 requests".to_owned())
        );
        let long = "cannot read the trace t: line 2 is longer than 100 bytes".to_owned();
        assert_eq!(read(&format!("fio version 3 iolog\n{}", "x".repeat(101))), Err(long));
    }
}
