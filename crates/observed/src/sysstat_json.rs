//! The JSON of sysstat: `iostat -x -t -o JSON` and `sadf -j -- -d`.
//!
//! Rates are per second of the interval; kB are 1,024 bytes and sectors 512.

use fathom_model::Op;
use fathom_model::PerOp;

use crate::clock_text::{self, Instant, SECOND_NS};
use crate::interval_table::{IntervalFigure, IntervalTable, Stretch};
use crate::json::{JsonFault, JsonNode, JsonText};
use crate::load::{GapReason, LoadClock, ObservedLoad};
use crate::{LoadError, LoadFormat};

/// Brackets around the values of an interval: document, sysstat, hosts, host, statistics.
const DEPTH_OF_INTERVALS: usize = 5;
const KIB: f64 = 1_024.0;
const SECTOR: f64 = 512.0;

/// Reads a document of this format.
///
/// # Errors
/// It is no JSON, a value has no meaning, or it has several devices and none is chosen.
pub(crate) fn read(format: LoadFormat, text: &str, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
    let (closed, is_cut) = match closed(text) {
        Some(closed) => (closed, true),
        None => (text.to_owned(), false),
    };
    let json = JsonText::parse(&closed)?;
    let mut reader = SysstatReader::default();
    if is_cut {
        reader.table.note("the recording was interrupted: its last report may be missing");
    }
    for root in json.roots() {
        reader.document(format, &root).map_err(|fault| json.error(&fault))?;
    }
    if reader.hosts > 1 {
        let problem = format!("it has the statistics of {} hosts", reader.hosts);
        return Err(LoadError::new(0, problem, "import one host at a time"));
    }
    let clock = if reader.is_local { LoadClock::Local } else { LoadClock::Utc };
    reader.table.finish(format, clock, device)
}

/// An interrupted document, closed behind its last complete report; `None` for one that is closed.
fn closed(text: &str) -> Option<String> {
    let (mut open, mut is_text, mut is_escaped) = (Vec::new(), false, false);
    let mut last_report = None;
    for (at, sign) in text.bytes().enumerate() {
        match sign {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'{' | b'[' => open.push(if sign == b'{' { '}' } else { ']' }),
            b'}' | b']' => {
                open.pop();
                if open.len() == DEPTH_OF_INTERVALS {
                    last_report = Some((at + 1, open.iter().rev().collect::<String>()));
                }
            }
            _ => {}
        }
    }
    let (end, ends) = last_report.filter(|_| !open.is_empty())?;
    Some(format!("{}{ends}", &text[..end]))
}

#[derive(Debug, Default)]
struct SysstatReader {
    table: IntervalTable,
    hosts: usize,
    is_local: bool,
}

impl SysstatReader {
    fn document(&mut self, format: LoadFormat, root: &JsonNode<'_>) -> Result<(), JsonFault> {
        let sysstat = root.need("sysstat")?;
        let hosts = sysstat.need_array("hosts")?;
        for host in hosts.items() {
            self.hosts += 1;
            let statistics = host.need_array("statistics")?;
            match format {
                LoadFormat::SadfJson => {
                    for report in statistics.items() {
                        self.sadf(&report)?;
                    }
                    self.restarts(&host)?;
                }
                _ => self.iostat(&statistics)?,
            }
        }
        Ok(())
    }

    /// A report of sadf has the length of its interval.
    fn sadf(&mut self, report: &JsonNode<'_>) -> Result<(), JsonFault> {
        let Some(disks) = report.get("disk") else { return Ok(()) };
        let timestamp = report.need("timestamp")?;
        let end = self.instant(&timestamp)?;
        let interval = timestamp.need("interval")?;
        let seconds = interval.number()?;
        // The first report of a file has none: nothing came before.
        if seconds == 0.0 {
            return Ok(());
        }
        let length_ns = (seconds * 1e9).round() as u64;
        let start_ns = end.unix_ns.checked_sub(length_ns).ok_or_else(|| interval.fault("it is too long"))?;
        for disk in disks.items() {
            let name = disk.text_of("disk-device");
            if name.is_empty() {
                return Err(disk.fault("'disk-device' is missing"));
            }
            self.disk(&disk, name, Stretch { start_ns, length_ns })?;
        }
        Ok(())
    }

    /// Date and time of a report or restart of sadf.
    fn instant(&mut self, timestamp: &JsonNode<'_>) -> Result<Instant, JsonFault> {
        let text = format!("{} {}", timestamp.text_of("date"), timestamp.text_of("time"));
        let instant = clock_text::locale(&text)
            .ok_or_else(|| timestamp.fault(format!("'{}' is not a date and a time", text.trim())))?;
        let is_utc = timestamp.number_of("utc")?.is_some_and(|utc| utc != 0.0);
        self.is_local |= instant.is_local && !is_utc;
        Ok(instant)
    }

    /// Restarts explain the gaps that they lie in.
    fn restarts(&mut self, host: &JsonNode<'_>) -> Result<(), JsonFault> {
        let Some(restarts) = host.get("restarts") else { return Ok(()) };
        for restart in restarts.items() {
            let Some(boot) = restart.get("boot") else { continue };
            let at = Stretch { start_ns: self.instant(&boot)?.unix_ns, length_ns: SECOND_NS };
            let devices: Vec<String> = self.table.devices().cloned().collect();
            for device in devices {
                self.table.gap(&device, at, GapReason::Restart).map_err(|problem| boot.fault(problem))?;
            }
        }
        Ok(())
    }

    /// Reports of iostat have the time of their end. The first has the means since the boot, and no interval.
    fn iostat(&mut self, statistics: &JsonNode<'_>) -> Result<(), JsonFault> {
        let mut before: Option<u64> = None;
        for report in statistics.items() {
            let Some(disks) = report.get("disk") else { continue };
            let timestamp = report.get("timestamp").ok_or_else(|| {
                report.fault_with("'timestamp' is missing", "record with `iostat -x -t -o JSON`")
            })?;
            let text = timestamp.text().unwrap_or_default();
            let instant = clock_text::locale(text).ok_or_else(|| {
                let problem = format!("{} is not a date and a time", timestamp.excerpt());
                timestamp.fault_with(problem, "record with S_TIME_FORMAT=ISO in the environment")
            })?;
            self.is_local |= instant.is_local;
            let end = instant.unix_ns;
            let Some(start_ns) = before.replace(end) else { continue };
            if end <= start_ns {
                let problem = "its time is not after that of the report before";
                let hint = "split the file here: the clock was set back, or two recordings are in one file";
                return Err(timestamp.fault_with(problem, hint));
            }
            for disk in disks.items() {
                let name = disk.text_of("disk_device");
                if name.is_empty() {
                    return Err(disk.fault("'disk_device' is missing"));
                }
                self.disk(&disk, name, Stretch { start_ns, length_ns: end - start_ns })?;
            }
        }
        if before.is_some() {
            self.table.note("the first report of iostat has means since the boot and is left out");
        }
        Ok(())
    }

    /// The values of a disk in either format.
    fn disk(&mut self, disk: &JsonNode<'_>, name: &str, at: Stretch) -> Result<(), JsonFault> {
        let seconds = at.length_ns as f64 / 1e9;
        let mut ops: PerOp<Option<f64>> = PerOp::default();
        let mut total_ops = None;
        for &(key, figure, scale) in VALUES {
            let Some(value) = disk.number_of(key)? else { continue };
            let value = match figure {
                IntervalFigure::Ops(op) => {
                    let count = value * seconds;
                    match op {
                        Some(op) => ops[op] = Some(count),
                        None => total_ops = Some(count),
                    }
                    count
                }
                IntervalFigure::Bytes(_) => value * scale * seconds,
                // Means of I/Os, by which they are multiplied.
                IntervalFigure::LatencySum(op) => {
                    let Some(count) = op.map_or(total_ops, |op| ops[op]) else { continue };
                    value * scale * count
                }
                _ => value * scale,
            };
            let set = self.table.set(name, at, figure, value);
            set.map_err(|problem| disk.fault(format!("{key}: {problem}")))?;
        }
        Ok(())
    }
}

/// The values of both formats: member, figure and base units of one. I/Os stand before what they are multiplied with.
const VALUES: &[(&str, IntervalFigure, f64)] = &[
    ("tps", IntervalFigure::Ops(None), 1.0),
    ("r/s", IntervalFigure::Ops(Some(Op::Read)), 1.0),
    ("w/s", IntervalFigure::Ops(Some(Op::Write)), 1.0),
    ("d/s", IntervalFigure::Ops(Some(Op::Trim)), 1.0),
    ("rd_sec", IntervalFigure::Bytes(Some(Op::Read)), SECTOR),
    ("wr_sec", IntervalFigure::Bytes(Some(Op::Write)), SECTOR),
    ("dc_sec", IntervalFigure::Bytes(Some(Op::Trim)), SECTOR),
    ("rsec/s", IntervalFigure::Bytes(Some(Op::Read)), SECTOR),
    ("wsec/s", IntervalFigure::Bytes(Some(Op::Write)), SECTOR),
    ("rkB", IntervalFigure::Bytes(Some(Op::Read)), KIB),
    ("wkB", IntervalFigure::Bytes(Some(Op::Write)), KIB),
    ("dkB", IntervalFigure::Bytes(Some(Op::Trim)), KIB),
    ("kB/s", IntervalFigure::Bytes(None), KIB),
    ("rkB/s", IntervalFigure::Bytes(Some(Op::Read)), KIB),
    ("wkB/s", IntervalFigure::Bytes(Some(Op::Write)), KIB),
    ("dkB/s", IntervalFigure::Bytes(Some(Op::Trim)), KIB),
    ("MB/s", IntervalFigure::Bytes(None), KIB * KIB),
    ("rMB/s", IntervalFigure::Bytes(Some(Op::Read)), KIB * KIB),
    ("wMB/s", IntervalFigure::Bytes(Some(Op::Write)), KIB * KIB),
    ("dMB/s", IntervalFigure::Bytes(Some(Op::Trim)), KIB * KIB),
    ("rGB/s", IntervalFigure::Bytes(Some(Op::Read)), KIB * KIB * KIB),
    ("wGB/s", IntervalFigure::Bytes(Some(Op::Write)), KIB * KIB * KIB),
    ("dGB/s", IntervalFigure::Bytes(Some(Op::Trim)), KIB * KIB * KIB),
    ("await", IntervalFigure::LatencySum(None), 1e-3),
    ("r_await", IntervalFigure::LatencySum(Some(Op::Read)), 1e-3),
    ("w_await", IntervalFigure::LatencySum(Some(Op::Write)), 1e-3),
    ("d_await", IntervalFigure::LatencySum(Some(Op::Trim)), 1e-3),
    ("avgqu-sz", IntervalFigure::QueueDepth, 1.0),
    ("aqu-sz", IntervalFigure::QueueDepth, 1.0),
    ("util", IntervalFigure::Utilization, 0.01),
    ("util-percent", IntervalFigure::Utilization, 0.01),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{LoadCourse, ObservedInterval, ServedIo};

    fn iostat(reports: &[&str]) -> String {
        format!(
            "{{\"sysstat\": {{\"hosts\": [{{\"nodename\": \"h\", \"statistics\": [{}]}}]}}}}",
            reports.join(",\n")
        )
    }

    fn intervals(load: &ObservedLoad) -> &[ObservedInterval] {
        let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
        intervals
    }

    const FIRST: &str =
        "{\"timestamp\": \"11/22/2026 10:00:00 AM\", \"disk\": [{\"disk_device\": \"sda\", \"r/s\": 9.0}]}";
    const SECOND: &str = "{\"timestamp\": \"11/22/2026 10:00:10 AM\", \"disk\": [{\"disk_device\": \"sda\", \"r/s\": 12.50, \
        \"w/s\": 2.0, \"rkB/s\": 50.0, \"wMB/s\": 1.0, \"r_await\": 2.0, \"aqu-sz\": 0.5, \"util\": 25.0}]}";

    #[test]
    fn reports_of_iostat_are_rates_since_the_report_before() {
        let load = read(LoadFormat::IostatJson, &iostat(&[FIRST, SECOND]), None).unwrap();
        let [interval] = intervals(&load) else { panic!("one interval") };
        assert_eq!(interval.length_ns, 10 * SECOND_NS);
        let reads = ServedIo { ops: Some(125), bytes: Some(512_000), latency_sum_ns: Some(250_000_000) };
        assert_eq!(interval.by_op.read, reads);
        assert_eq!(interval.by_op.write.bytes, Some(10 << 20));
        assert_eq!(interval.total.ops, Some(145));
        assert_eq!((interval.queue_depth_milli, interval.utilization_ppm), (Some(500), Some(250_000)));
        assert_eq!((load.clock, load.notes.len()), (LoadClock::Local, 1));
    }

    #[test]
    fn interrupted_recordings_are_read_up_to_their_last_report() {
        let whole = iostat(&[FIRST, SECOND, SECOND.replace("00:10", "00:20").as_str()]);
        let cut = &whole[..whole.rfind("\"w/s\"").unwrap()];
        let load = read(LoadFormat::IostatJson, cut, None).unwrap();
        assert_eq!(intervals(&load).len(), 1);
        assert!(load.notes[0].contains("interrupted"));
        let error = read(LoadFormat::IostatJson, &whole[..60], None).unwrap_err();
        assert!(error.problem.contains("cut off"), "{error}");
    }

    #[test]
    fn what_has_no_meaning_is_refused_by_field() {
        let refused =
            |reports: &[&str]| read(LoadFormat::IostatJson, &iostat(reports), None).unwrap_err().to_string();
        let broken = SECOND.replace("12.50", "\"x\"");
        assert_eq!(
            refused(&[FIRST, &broken]),
            "line 2: sysstat.hosts[0].statistics[1].disk[0].r/s: 'x' is not a number"
        );
        assert!(refused(&[SECOND, FIRST]).contains("timestamp: its time is not after"));
        assert!(refused(&[&FIRST.replace("timestamp", "time")]).ends_with("'timestamp' is missing"));
        assert!(refused(&[FIRST, &SECOND.replace("12.50", "-1")]).ends_with("r/s: -10 is not possible"));
        assert_eq!(refused(&[FIRST]), "it contains no interval of a disk");
    }
}
