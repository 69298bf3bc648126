//! The kernel as an onlooker: its own trace of the requests to block devices.
//!
//! A separate trace instance, so that other traces are not disturbed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::witness::{Seen, Span};
use crate::{LoopDevice, Mount};

/// A request enters the block layer.
const ARRIVES: &str = "block_bio_queue";
/// The driver has answered it, or several that were merged.
const ANSWERED: &str = "block_rq_complete";
/// Room for about 50,000 events per processor.
const BUFFER_KIB: &str = "4096";

/// A trace that is being taken; ended and removed on drop.
#[derive(Debug)]
pub struct BlockTrace {
    instance: PathBuf,
    /// Where the kernel's traces are found; goes after the instance.
    _mount: Mount,
}

impl BlockTrace {
    /// Traces every request to `devices` from here on, by `CLOCK_MONOTONIC` and to the µs.
    pub fn of(devices: &[LoopDevice]) -> Self {
        let mount = Mount::tracefs();
        let name = mount.path().file_name().expect("a mount point has a name");
        let instance = mount.join("instances").join(name);
        std::fs::create_dir(&instance)
            .unwrap_or_else(|error| panic!("cannot make {}: {error}", instance.display()));
        let trace = BlockTrace { instance, _mount: mount };
        trace.set("buffer_size_kb", BUFFER_KIB);
        trace.set("trace_clock", "mono");
        let of_devices: Vec<String> =
            devices.iter().map(|device| format!("dev == {}", number(device))).collect();
        for event in [ARRIVES, ANSWERED] {
            trace.set(&format!("events/block/{event}/filter"), &of_devices.join(" || "));
            trace.set(&format!("events/block/{event}/enable"), "1");
        }
        trace
    }

    /// The requests of the thread called `thread`, and of the kernel's io_uring workers for it, since the beginning or the
    /// last call.
    ///
    /// # Panics
    /// When the kernel had to drop events.
    pub fn requests_of(&self, thread: &str) -> Seen {
        let path = self.instance.join("trace");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| unreadable(&path, &error));
        self.set("trace", "");
        let kept = text.lines().find_map(|line| line.strip_prefix("# entries-in-buffer/entries-written: "));
        let (kept, written) = kept
            .and_then(|counts| counts.split(' ').next()?.split_once('/'))
            .expect("a trace says how much of it is there");
        assert_eq!(kept, written, "the trace is not whole");
        Seen::new(spans(&text, thread))
    }

    fn set(&self, file: &str, value: &str) {
        let path = self.instance.join(file);
        std::fs::write(&path, value)
            .unwrap_or_else(|error| panic!("cannot write {value} to {}: {error}", path.display()));
    }
}

impl Drop for BlockTrace {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.instance).ok();
    }
}

/// The device's number as the kernel's filters know it: 12 bits of major, 20 of minor.
fn number(device: &LoopDevice) -> u32 {
    let path = PathBuf::from(format!("/sys/block/{}/dev", device.name()));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| unreadable(&path, &error));
    let (major, minor) = text.trim().split_once(':').expect("a device has two numbers");
    let [major, minor] = [major, minor].map(|part| part.parse::<u32>().expect("the kernel writes integers"));
    major << 20 | minor
}

fn unreadable(path: &Path, error: &std::io::Error) -> ! {
    panic!("cannot read {}: {error}", path.display())
}

/// One line of a trace: `TASK-PID [CPU] FLAGS TIME: EVENT: MAJOR,MINOR ... SECTOR + COUNT ...`.
struct Event<'a> {
    ns: u64,
    name: &'a str,
    device: &'a str,
    sector: u64,
    sectors: u64,
    rest: &'a str,
}

impl<'a> Event<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (name, (before, details)) = [ARRIVES, ANSWERED]
            .into_iter()
            .find_map(|name| Some((name, line.split_once(&format!(": {name}: "))?)))?;
        let (seconds, micros) = before.rsplit(' ').next()?.split_once('.')?;
        let ns = seconds.parse::<u64>().ok()? * 1_000_000_000 + micros.parse::<u64>().ok()? * 1000;
        let (what, extent) = details.split_once(" + ")?;
        let (sectors, rest) = extent.split_once(' ')?;
        let sector = what.rsplit(' ').next()?.parse().ok()?;
        let device = what.split(' ').next()?;
        Some(Event { ns, name, device, sector, sectors: sectors.parse().ok()?, rest })
    }
}

/// From each arrival by `thread`, or by a worker of io_uring, to the answer that covers it. Requests of one sector follow
/// each other.
fn spans(text: &str, thread: &str) -> Vec<Span> {
    let by_thread = format!("[{thread}]");
    // A request that the submitting thread would have to wait for: a write over a page that somebody has just read.
    let by_worker = |rest: &str| rest.starts_with("[iou-wrk-");
    let mut waiting = BTreeMap::new();
    let mut spans = Vec::new();
    for event in text.lines().filter_map(Event::parse) {
        if event.name == ARRIVES {
            if event.rest == by_thread || by_worker(event.rest) {
                waiting.insert((event.device, event.sector), event.ns);
            }
            continue;
        }
        let covered = (event.device, event.sector)..(event.device, event.sector + event.sectors);
        let answered: Vec<_> = waiting.range(covered).map(|(&request, &start)| (request, start)).collect();
        for (request, start_ns) in answered {
            waiting.remove(&request);
            spans.push(Span { start_ns, end_ns: event.ns });
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_matched_to_requests() {
        let trace = "\
# entries-in-buffer/entries-written: 8/8   #P:2
     two words-25712   [001] ..... 12481.000001: block_bio_queue: 7,3 R 8 + 8 [two words]
           other-1     [001] ..... 12481.000002: block_bio_queue: 7,3 R 64 + 8 [other]
     two words-25712   [001] ..... 12481.000003: block_bio_queue: 7,3 R 16 + 8 [two words]
     two words-25712   [001] ..... 12481.000004: block_bio_queue: 7,4 R 8 + 8 [two words]
     iou-wrk-25712-25713 [000] ..... 12481.000004: block_bio_queue: 7,3 W 32 + 8 [iou-wrk-25712]
     ksoftirqd/1-22    [001] ..s.. 12481.000010: block_rq_complete: 7,3 R () 8 + 16 be,0,4 [0]
     ksoftirqd/1-22    [001] ..s.. 12481.000024: block_rq_complete: 7,3 W () 32 + 8 be,0,4 [0]
     ksoftirqd/1-22    [001] ..s.. 12482.000000: block_rq_complete: 7,4 R () 8 + 8 be,0,4 [0]
";
        let took: Vec<u64> =
            spans(trace, "two words").iter().map(|span| span.end_ns - span.start_ns).collect();
        assert_eq!(took, [9_000, 7_000, 20_000, 999_996_000]);
        assert_eq!(spans(trace, "nobody").len(), 1, "the worker's");
    }
}
