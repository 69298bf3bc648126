//! fio's log files: a line for every request, or for every window of time.
//!
//! A worker's requests come in the order of their completion. Means of latencies end with the first request after the end of
//! their window and have its time, as in fio. Rates are those of whole windows; a last piece shorter than half a window counts
//! for the window before it, so that rates times lengths always add up to what was moved.

mod windows;

use fathom_model::Op;
use fathom_model::plan::{LogPlan, WindowValues};
use fathom_record::{FIO_LATENCY_BINS, Histogram, LoggedIo};

use windows::{LatencyWindow, RateForm, RateWindows};

/// The kinds of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// KiB per second.
    Bandwidth,
    /// Requests per second.
    Iops,
    /// Start to issued, ns.
    Slat,
    /// Issued to completed, ns.
    Clat,
    /// Start to completed, ns.
    Lat,
    /// Completion latencies by bins.
    Histogram,
}

impl LogKind {
    /// All kinds, in the order of [`WorkerLog`]'s texts.
    pub const ALL: [LogKind; 6] =
        [LogKind::Bandwidth, LogKind::Iops, LogKind::Slat, LogKind::Clat, LogKind::Lat, LogKind::Histogram];

    /// The file of this kind for a job, where `plan` asks for one. Workers are numbered from 1 over all jobs.
    pub fn file_name(self, plan: &LogPlan, job: &str, worker: usize) -> Option<String> {
        let (name, kind) = match self {
            LogKind::Bandwidth => (&plan.bandwidth, "bw"),
            LogKind::Iops => (&plan.iops, "iops"),
            LogKind::Slat => (&plan.latency, "slat"),
            LogKind::Clat => (&plan.latency, "clat"),
            LogKind::Lat => (&plan.latency, "lat"),
            LogKind::Histogram => (&plan.histogram, "clat_hist"),
        };
        let name = name.as_ref().map(|name| if name.is_empty() { job } else { name })?;
        let end = if plan.compressed { ".fz" } else { "" };
        Some(match plan.shared {
            true => format!("{name}_{kind}.log{end}"),
            false => format!("{name}_{kind}.{worker}.log{end}"),
        })
    }
}

/// The texts of one worker's logs, in the order of [`LogKind::ALL`]; their reader empties them.
pub type LogTexts = [Vec<u8>; LogKind::ALL.len()];

/// Formats the logs of one worker.
pub struct WorkerLog {
    plan: LogPlan,
    /// Kinds with a file and with values.
    kinds: Vec<LogKind>,
    /// Time of the first request on the plan's clock, ms.
    clock_ms: u64,
    bandwidth: RateWindows,
    iops: RateWindows,
    windows: [OpWindows; 3],
}

/// The current windows of one operation.
#[derive(Default)]
struct OpWindows {
    /// Mean and greatest slat, clat and lat.
    latencies: [LatencyWindow; 3],
    histogram: Histogram,
    histogram_since_ms: u64,
    /// Bytes of the latest request.
    len: u32,
}

/// One line of a log before it is text.
struct Line {
    at_ms: u64,
    /// One or two.
    values: [u64; 2],
    op: Op,
    len: u32,
    offset: u64,
    issued_ns: u64,
    priority: u16,
    is_high: bool,
}

impl WorkerLog {
    /// The logs of a worker whose job records the latencies `recorded` (slat, clat, lat).
    pub fn new(plan: &LogPlan, recorded: [bool; 3], clock_ms: u64) -> WorkerLog {
        let [slat, clat, lat] = recorded;
        let wanted = |kind: &LogKind| match kind {
            LogKind::Bandwidth => plan.bandwidth.is_some(),
            LogKind::Iops => plan.iops.is_some(),
            LogKind::Slat => plan.latency.is_some() && slat,
            LogKind::Clat => plan.latency.is_some() && clat,
            LogKind::Lat => plan.latency.is_some() && lat,
            LogKind::Histogram => plan.histogram.is_some() && clat,
        };
        let kinds = LogKind::ALL.into_iter().filter(wanted).collect();
        WorkerLog {
            plan: plan.clone(),
            kinds,
            clock_ms,
            bandwidth: RateWindows::new(RateForm::new(plan, plan.bandwidth_window, 1024)),
            iops: RateWindows::new(RateForm::new(plan, plan.iops_window, 1)),
            windows: Default::default(),
        }
    }

    /// Adds requests.
    pub fn add(&mut self, requests: &[LoggedIo], texts: &mut LogTexts) {
        for request in requests {
            for index in 0..self.kinds.len() {
                self.add_one(self.kinds[index], request, texts);
            }
        }
    }

    fn add_one(&mut self, kind: LogKind, request: &LoggedIo, texts: &mut LogTexts) {
        let LoggedIo { at_ns, clat_ns, lat_ns, op, len, .. } = *request;
        let (at_ms, length_ms) = (at_ns / 1_000_000, self.plan.window.as_millis());
        let latency = match kind {
            LogKind::Slat => lat_ns - clat_ns.min(lat_ns),
            LogKind::Clat => clat_ns,
            _ => lat_ns,
        };
        if kind == LogKind::Histogram {
            self.add_to_histogram(request, texts);
        } else if length_ms == 0 {
            let value = match kind {
                // Here fio divides by 1000, unlike everywhere else.
                LogKind::Bandwidth => u64::from(len) * 1_000_000 / clat_ns.max(1),
                LogKind::Iops => 1,
                _ => latency,
            };
            let issued_ns = at_ns - clat_ns.min(at_ns);
            let LoggedIo { offset, priority, is_high, .. } = *request;
            let line = Line { at_ms, values: [value; 2], op, len, offset, issued_ns, priority, is_high };
            self.write(kind, &line, texts);
        } else {
            let done = match kind {
                LogKind::Bandwidth => self.bandwidth.add(at_ms, op, len.into()),
                LogKind::Iops => self.iops.add(at_ms, op, 1),
                _ => self
                    .latencies(kind, op)
                    .add(at_ms, latency, length_ms)
                    .map(|done| done.line(op))
                    .into_iter()
                    .collect(),
            };
            done.iter().for_each(|line| self.write(kind, line, texts));
        }
    }

    fn latencies(&mut self, kind: LogKind, op: Op) -> &mut LatencyWindow {
        &mut self.windows[op as usize].latencies[kind as usize - LogKind::Slat as usize]
    }

    fn add_to_histogram(&mut self, request: &LoggedIo, texts: &mut LogTexts) {
        let (at_ms, length_ms) = (request.at_ns / 1_000_000, self.plan.histogram_window.as_millis());
        let windows = &mut self.windows[request.op as usize];
        windows.histogram.record(request.clat_ns);
        windows.len = request.len;
        if length_ms > 0 && at_ms >= windows.histogram_since_ms + length_ms {
            windows.histogram_since_ms = at_ms - at_ms % length_ms;
            self.write_histogram(at_ms, request.op, texts);
        }
    }

    /// Writes what is left of the windows when the worker ends after `elapsed_ns`.
    pub fn end(&mut self, elapsed_ns: u64, texts: &mut LogTexts) {
        let end_ms = elapsed_ns / 1_000_000;
        for index in 0..self.kinds.len() {
            let kind = self.kinds[index];
            let left = match kind {
                LogKind::Bandwidth => self.bandwidth.end(elapsed_ns),
                LogKind::Iops => self.iops.end(elapsed_ns),
                LogKind::Histogram => {
                    Op::DATA.into_iter().for_each(|op| self.write_histogram(end_ms, op, texts));
                    continue;
                }
                _ => Op::DATA
                    .into_iter()
                    .filter_map(|op| Some(self.latencies(kind, op).end(end_ms)?.line(op)))
                    .collect(),
            };
            left.iter().for_each(|line| self.write(kind, line, texts));
        }
    }

    fn write(&self, kind: LogKind, line: &Line, texts: &mut LogTexts) {
        let plan = &self.plan;
        let text = &mut texts[kind as usize];
        put(text, self.clock_ms + line.at_ms);
        let [mean, greatest] = line.values;
        match plan.values {
            _ if plan.window.as_millis() == 0 => put_next(text, mean),
            WindowValues::Mean => put_next(text, mean),
            WindowValues::Greatest => put_next(text, greatest),
            WindowValues::Both => [mean, greatest].into_iter().for_each(|value| put_next(text, value)),
        }
        put_next(text, line.op as u64);
        put_next(text, line.len.into());
        if plan.offset {
            put_next(text, line.offset);
        }
        if plan.priority {
            put_hexadecimal(text, line.priority);
        } else {
            put_next(text, line.is_high.into());
        }
        if plan.issue_time {
            // As fio has it: 0 in the logs of other values.
            let has_it = matches!(kind, LogKind::Slat | LogKind::Clat);
            put_next(text, if has_it { line.issued_ns } else { 0 });
        }
        text.push(b'\n');
    }

    /// Writes the histogram of `op`, if it has any request, and empties it.
    fn write_histogram(&mut self, at_ms: u64, op: Op, texts: &mut LogTexts) {
        let windows = &mut self.windows[op as usize];
        if windows.histogram.samples() == 0 {
            return;
        }
        let bins = std::mem::take(&mut windows.histogram);
        let coarseness = self.plan.histogram_coarseness;
        let mut columns = vec![0; FIO_LATENCY_BINS >> coarseness];
        for (bin, count) in bins.sparse() {
            columns[bin.min(FIO_LATENCY_BINS - 1) >> coarseness] += count;
        }
        let text = &mut texts[LogKind::Histogram as usize];
        put(text, self.clock_ms + at_ms);
        put_next(text, op as u64);
        put_next(text, windows.len.into());
        columns.into_iter().for_each(|count| put_next(text, count));
        text.push(b'\n');
    }
}

impl Line {
    /// fio's line of a window has no size, offset, time of issue and priority.
    fn of_window(at_ms: u64, values: [u64; 2], op: Op) -> Line {
        Line { at_ms, values, op, len: 0, offset: 0, issued_ns: 0, priority: 0, is_high: false }
    }
}

/// Appends a number.
fn put(text: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

/// Appends a priority as `, 0x2003`.
fn put_hexadecimal(text: &mut Vec<u8>, priority: u16) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    text.extend_from_slice(b", 0x");
    text.extend([12, 8, 4, 0].map(|shift| DIGITS[usize::from(priority >> shift & 0xf)]));
}

fn put_next(text: &mut Vec<u8>, number: u64) {
    text.extend_from_slice(b", ");
    put(text, number);
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
