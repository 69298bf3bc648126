//! Events of requests on block devices, joined to requests with their latencies.
//!
//! A request is what the driver gets, or, on devices without such events, what programs make. Its latency ends with the completion
//! of a request of the same operation at the same offset.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU64;

use fathom_model::Op;
use fathom_model::units::grouped;
use fathom_workload::replay::{BlockAction, BlockEvent, device_name};

use crate::clock_text::SECOND_NS;
use crate::load::{
    LoadClock, LoadCourse, ObservedLoad, ObservedRequest, RequestPoint, RequestTrace, ThreadNumbers,
};
use crate::{LoadError, LoadFormat, MAX_DEVICES};

/// Longest trace, ns: ten years.
pub(crate) const LONGEST_NS: u64 = 10 * 365 * 86_400 * SECOND_NS;

/// Events in any order.
#[derive(Debug, Default)]
pub(crate) struct BlockEvents {
    devices: Vec<u32>,
    events: Vec<StoredEvent>,
    threads: ThreadNumbers,
    first_ns: Option<u64>,
}

/// An event in memory: 32 bytes.
#[derive(Clone, Copy, Debug)]
struct StoredEvent {
    at_ns: u64,
    offset: u64,
    bytes: u32,
    device: u16,
    action: BlockAction,
    op: Op,
    thread: u8,
}

impl BlockEvents {
    /// Events so far.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Adds an event.
    ///
    /// # Errors
    /// It is too far from the first one, or of one device too many.
    pub fn push(&mut self, event: BlockEvent) -> Result<(), LoadError> {
        let first = *self.first_ns.get_or_insert(event.at_ns);
        if event.at_ns.abs_diff(first) > LONGEST_NS {
            return Err(too_long(&format!("its time, {} s,", event.at_ns / SECOND_NS)));
        }
        let device = match self.devices.iter().position(|known| *known == event.device) {
            Some(index) => index,
            None if self.devices.len() == MAX_DEVICES => {
                let problem = format!("it has more than {MAX_DEVICES} devices");
                return Err(LoadError::new(0, problem, "record one device"));
            }
            None => {
                self.devices.push(event.device);
                self.devices.len() - 1
            }
        };
        let BlockEvent { at_ns, action, op, offset, len: bytes, .. } = event;
        // A completion happens in the context of any thread.
        let thread = if action == BlockAction::Complete { 0 } else { self.threads.number(event.thread) };
        self.events.push(StoredEvent { at_ns, offset, bytes, device: device as u16, action, op, thread });
        Ok(())
    }

    /// The requests of one device.
    ///
    /// # Errors
    /// It has no requests, or several devices and no choice between them.
    pub fn finish(self, format: LoadFormat, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
        let names: Vec<String> = self.devices.iter().map(|device| device_name(*device)).collect();
        let mut events = self.events;
        let place = match device {
            _ if events.is_empty() => return Err(LoadError::empty("I/O")),
            // blkparse separates the numbers by a comma.
            Some(wanted) => names.iter().position(|name| *name == wanted.replace(',', ":")),
            None => (names.len() == 1).then_some(0),
        };
        let place = place.ok_or_else(|| LoadError::device(device, &names))?;
        events.retain(|event| usize::from(event.device) == place);
        // Several CPUs may have been written down one after the other.
        events.sort_by_key(|event| (event.at_ns, event.action));
        let is_at_driver = events.iter().any(|event| event.action == BlockAction::Issue);
        let (begins, point) = match is_at_driver {
            true => (BlockAction::Issue, RequestPoint::Driver),
            false => (BlockAction::Queue, RequestPoint::Program),
        };
        let requests = joined(events, begins);
        let mut notes = Vec::new();
        let open = requests.iter().filter(|request| request.latency_ns.is_none()).count();
        if open > 0 && open < requests.len() {
            notes.push(format!("{} I/Os have no completion in the trace", grouped(open as u64)));
        }
        let name = names[place].clone();
        let trace = RequestTrace { files: vec![name.clone()], requests, has_times: true, point };
        of_trace(format, name, trace, notes)
    }
}

/// Requests with their latencies.
fn joined(events: Vec<StoredEvent>, begins: BlockAction) -> Vec<ObservedRequest> {
    let mut requests: Vec<ObservedRequest> = Vec::new();
    let mut open: HashMap<(u64, Op), VecDeque<usize>> = HashMap::new();
    for StoredEvent { at_ns, offset, bytes, action, op, thread, .. } in events {
        if action == begins {
            open.entry((offset, op)).or_default().push_back(requests.len());
            requests.push(ObservedRequest { at_ns, offset, latency_ns: None, bytes, file: 0, op, thread });
        } else if action == BlockAction::Complete
            && let Some(waiting) = open.get_mut(&(offset, op))
        {
            if let Some(index) = waiting.pop_front() {
                requests[index].latency_ns = NonZeroU64::new((at_ns - requests[index].at_ns).max(1));
            }
            if waiting.is_empty() {
                open.remove(&(offset, op));
            }
        }
    }
    requests
}

pub(crate) fn too_long(what: &str) -> LoadError {
    LoadError::new(
        0,
        format!("{what} is more than 10 years after the first I/O"),
        "correct or remove this line",
    )
}

/// The load of a trace whose requests are by their times.
///
/// # Errors
/// It has no request, or is too long.
pub(crate) fn of_trace(
    format: LoadFormat,
    device: String,
    mut trace: RequestTrace,
    notes: Vec<String>,
) -> Result<ObservedLoad, LoadError> {
    let (Some(first), Some(last)) = (trace.requests.first(), trace.requests.last()) else {
        return Err(LoadError::empty("I/O"));
    };
    let (first_ns, length_ns) = (first.at_ns, last.at_ns - first.at_ns);
    if length_ns > LONGEST_NS {
        return Err(too_long("the last I/O"));
    }
    trace.requests.iter_mut().for_each(|request| request.at_ns -= first_ns);
    Ok(ObservedLoad {
        format,
        device,
        started_unix_ns: None,
        clock: LoadClock::Relative,
        length_ns,
        course: LoadCourse::Requests(trace),
        gaps: Vec::new(),
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_ns: u64, action: BlockAction, offset: u64, device: u32) -> BlockEvent {
        BlockEvent { at_ns, action, op: Op::Read, offset, len: 4096, device, thread: 7 }
    }

    fn load(events: &[BlockEvent], device: Option<&str>) -> Result<ObservedLoad, LoadError> {
        let mut all = BlockEvents::default();
        events.iter().try_for_each(|event| all.push(*event))?;
        all.finish(LoadFormat::Blkparse, device)
    }

    fn requests(load: &ObservedLoad) -> Vec<(u64, u64, Option<u64>)> {
        let LoadCourse::Requests(trace) = &load.course else { panic!("it is a trace") };
        let of = |request: &ObservedRequest| {
            (request.at_ns, request.offset, request.latency_ns.map(NonZeroU64::get))
        };
        trace.requests.iter().map(of).collect()
    }

    #[test]
    fn completions_give_latencies() {
        use BlockAction::{Complete, Issue, Queue};
        let events = [
            event(30, Complete, 0, 1),
            event(5, Queue, 0, 1),
            event(10, Issue, 0, 1),
            event(12, Issue, 8192, 1),
            event(20, Issue, 0, 1),
            event(50, Complete, 0, 1),
            event(60, Complete, 4096, 1),
        ];
        let load = load(&events, None).unwrap();
        assert_eq!(requests(&load), [(0, 0, Some(20)), (2, 8192, None), (10, 0, Some(30))]);
        assert_eq!((load.length_ns, load.notes.len()), (10, 1));
    }

    #[test]
    fn devices_without_a_driver_are_seen_from_above() {
        use BlockAction::{Complete, Queue};
        let load = load(&[event(5, Queue, 0, 1), event(9, Complete, 0, 1)], None).unwrap();
        let LoadCourse::Requests(trace) = &load.course else { panic!("it is a trace") };
        assert_eq!((trace.point, requests(&load)), (RequestPoint::Program, vec![(0, 0, Some(4))]));
    }

    #[test]
    fn one_of_several_devices_is_chosen() {
        let events =
            [event(5, BlockAction::Issue, 0, 8 << 20), event(9, BlockAction::Issue, 1, 8 << 20 | 16)];
        assert_eq!(load(&events, None).unwrap_err().problem, "it has several devices: 8:0, 8:16");
        assert_eq!(load(&events, Some("8,1")).unwrap_err().problem, "it has no device '8,1'");
        assert_eq!(requests(&load(&events, Some("8,16")).unwrap()), [(0, 1, None)]);
        assert_eq!(load(&events, Some("8:0")).unwrap().device, "8:0");
        assert_eq!(load(&[], None).unwrap_err().problem, "it contains no I/O");
        let far = [event(0, BlockAction::Issue, 0, 1), event(u64::MAX, BlockAction::Issue, 0, 1)];
        assert!(load(&far, None).unwrap_err().problem.ends_with("10 years after the first I/O"));
    }
}
