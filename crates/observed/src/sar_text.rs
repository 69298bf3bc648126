//! The text of `sar -d`: rows of devices under heads that repeat, with the time of the end of their interval.

use jiff::civil::{Date, Time};

use fathom_model::Op;

use crate::clock_text::{self, SECOND_NS};
use crate::interval_table::{IntervalFigure, IntervalTable, Stretch};
use crate::load::{GapReason, LoadClock, ObservedLoad};
use crate::{LoadError, LoadFormat};

/// A day, ns.
const DAY_NS: u64 = 86_400 * SECOND_NS;
const HINT: &str = "record with `LC_ALL=C sar -d`, and import the whole text";

/// The columns: head, figure and base units of one. `tps` stands before what it is multiplied with.
const COLUMNS: &[(&str, IntervalFigure, f64)] = &[
    ("tps", IntervalFigure::Ops(None), 1.0),
    ("rd_sec/s", IntervalFigure::Bytes(Some(Op::Read)), 512.0),
    ("wr_sec/s", IntervalFigure::Bytes(Some(Op::Write)), 512.0),
    ("rkB/s", IntervalFigure::Bytes(Some(Op::Read)), 1_024.0),
    ("wkB/s", IntervalFigure::Bytes(Some(Op::Write)), 1_024.0),
    ("dkB/s", IntervalFigure::Bytes(Some(Op::Trim)), 1_024.0),
    ("await", IntervalFigure::LatencySum(None), 1e-3),
    ("avgqu-sz", IntervalFigure::QueueDepth, 1.0),
    ("aqu-sz", IntervalFigure::QueueDepth, 1.0),
    ("%util", IntervalFigure::Utilization, 0.01),
];

/// True for a text with a head of `sar -d`.
pub(crate) fn is_sar(text: &str) -> bool {
    text.lines().any(|line| head_of(line).is_some())
}

/// The time of a head, and its columns behind the time.
fn head_of(line: &str) -> Option<(Time, Vec<&str>)> {
    let (time, rest) = timed(line)?;
    let names: Vec<&str> = rest.collect();
    let is_head = names.contains(&"DEV") && names.contains(&"tps");
    is_head.then_some((time, names))
}

/// The time that a line begins with, and its other words.
fn timed(line: &str) -> Option<(Time, impl Iterator<Item = &str>)> {
    let mut words = line.split_whitespace().peekable();
    let clock = words.next()?;
    let time = match words.next_if(|word| matches!(*word, "AM" | "PM")) {
        Some(half) => clock_text::clock(&format!("{clock} {half}"))?,
        None => clock_text::clock(clock)?,
    };
    Some((time, words))
}

/// Reads the text.
///
/// # Errors
/// A row has no meaning, or there are several devices and none is chosen.
pub(crate) fn read(text: &str, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
    let mut reader = SarReader::default();
    for (index, line) in text.lines().enumerate() {
        reader.line(line).map_err(|error| LoadError { line: index as u64 + 1, ..error })?;
    }
    let clock = if reader.has_date { LoadClock::Local } else { LoadClock::Relative };
    reader.table.finish(LoadFormat::SarText, clock, device)
}

#[derive(Debug, Default)]
struct SarReader {
    table: IntervalTable,
    /// Midnight of the day of the rows, ns since the epoch.
    day_ns: u64,
    has_date: bool,
    /// The columns of the table that lines are in; empty outside of one of disks.
    columns: Vec<String>,
    /// Beginning and end of the interval of the last row.
    start_ns: Option<u64>,
    end_ns: Option<u64>,
    has_restarted: bool,
}

impl SarReader {
    fn line(&mut self, line: &str) -> Result<(), LoadError> {
        let first = line.split_whitespace().next().unwrap_or_default();
        if first.is_empty() || first.starts_with("Average") || first.starts_with("Summary") {
            return Ok(());
        }
        if first == "Linux" {
            self.banner(line);
            return Ok(());
        }
        if line.contains("RESTART") {
            self.has_restarted = true;
            return Ok(());
        }
        if let Some((time, names)) = head_of(line) {
            self.columns = names.into_iter().map(str::to_owned).collect();
            return self.head(time);
        }
        let Some((time, words)) = timed(line) else {
            let problem = format!("'{first}' is not a time");
            return Err(LoadError::new(0, problem, HINT));
        };
        if self.columns.is_empty() {
            return Ok(());
        }
        let words: Vec<&str> = words.collect();
        let is_number = |word: &&str| word.starts_with(|sign: char| sign.is_ascii_digit());
        if words.len() > 1 && !words[1..].iter().any(is_number) {
            // The head of another table: `sar -A`.
            self.columns.clear();
            return Ok(());
        }
        self.row(time, &words)
    }

    /// The first line of a file has the date.
    fn banner(&mut self, line: &str) {
        // Behind the name and release of the kernel, which may look like one.
        let date: Option<Date> = line.split_whitespace().skip(2).find_map(clock_text::date);
        if let Some(midnight) = date.and_then(|date| clock_text::at(date, Time::midnight())) {
            self.day_ns = midnight.unix_ns;
            self.has_date = true;
            (self.start_ns, self.end_ns) = (None, None);
        }
    }

    /// A head has the time of the sample before, which begins the interval of the first row.
    fn head(&mut self, time: Time) -> Result<(), LoadError> {
        let at = self.time_ns(time);
        if let Some(start_ns) = self.end_ns.filter(|end| self.has_restarted && *end < at) {
            let stretch = Stretch { start_ns, length_ns: at - start_ns };
            let devices: Vec<String> = self.table.devices().cloned().collect();
            for device in devices {
                let added = self.table.gap(&device, stretch, GapReason::Restart);
                added.map_err(|problem| LoadError::new(0, problem, HINT))?;
            }
        }
        if self.end_ns.is_none() || self.has_restarted {
            self.start_ns = None;
            self.end_ns = Some(at);
            self.has_restarted = false;
        }
        Ok(())
    }

    /// The time of a line, which may be of the next day.
    fn time_ns(&mut self, time: Time) -> u64 {
        let seconds =
            i64::from(time.hour()) * 3_600 + i64::from(time.minute()) * 60 + i64::from(time.second());
        let of_day = seconds as u64 * SECOND_NS;
        // Rows of one report have the same time. A clock that is set back by less than half a day is no midnight.
        if self.end_ns.is_some_and(|end| self.day_ns + of_day + DAY_NS / 2 < end) {
            self.day_ns += DAY_NS;
        }
        self.day_ns + of_day
    }

    fn row(&mut self, time: Time, words: &[&str]) -> Result<(), LoadError> {
        if words.len() != self.columns.len() {
            let problem = format!("expected {} columns, found {}", self.columns.len(), words.len());
            return Err(LoadError::new(0, problem, HINT));
        }
        let at = self.time_ns(time);
        match self.end_ns {
            Some(end) if end < at => (self.start_ns, self.end_ns) = (Some(end), Some(at)),
            Some(end) if end > at => {
                let problem = "its time is before that of the row above";
                return Err(LoadError::new(0, problem, "split the text here: the clock was set back"));
            }
            _ => {}
        }
        let Some(start_ns) = self.start_ns else { return Ok(()) };
        let stretch = Stretch { start_ns, length_ns: at - start_ns };
        let columns = self.columns.clone();
        let values = || columns.iter().map(String::as_str).zip(words.iter().copied());
        let name = values().find(|(head, _)| *head == "DEV").map(|(_, name)| name).unwrap_or_default();
        let seconds = stretch.length_ns as f64 / 1e9;
        let mut ops = 0.0;
        for (head, figure, scale) in COLUMNS {
            let Some((_, word)) = values().find(|(column, _)| column == head) else { continue };
            let refuse = |problem: String| LoadError::new(0, problem, HINT).in_field(*head);
            let value: f64 = word.parse().map_err(|_| refuse(format!("'{word}' is not a number")))?;
            let value = match figure {
                IntervalFigure::Ops(_) => {
                    ops = value * seconds;
                    ops
                }
                IntervalFigure::Bytes(_) => value * scale * seconds,
                IntervalFigure::LatencySum(_) => value * scale * ops,
                _ => value * scale,
            };
            self.table.set(name, stretch, *figure, value).map_err(refuse)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{LoadCourse, ObservedInterval};

    fn intervals(load: &ObservedLoad) -> &[ObservedInterval] {
        let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
        intervals
    }

    const HEAD: &str =
        "       DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n";
    const VALUES: &str =
        "       sda     10.00     40.00      8.00      0.00      4.80      0.02      2.00     20.00\n";

    #[test]
    fn rows_are_rates_since_the_time_before() {
        let text = format!(
            "Linux 6.8.0 (h) \t11/22/2026 \t_x86_64_\t(2 CPU)\n\n11:40:01 PM{HEAD}11:50:01 PM{VALUES}\n\
             11:50:01 PM{HEAD}12:00:01 AM{VALUES}Average: {VALUES}\n12:05:00 AM  LINUX RESTART\t(2 CPU)\n\n12:10:01 AM{HEAD}12:20:01 AM{VALUES}"
        );
        let load = read(&text, None).unwrap();
        let found = intervals(&load);
        let at: Vec<(u64, u64)> =
            found.iter().map(|one| (one.start_ns / SECOND_NS, one.length_ns / SECOND_NS)).collect();
        assert_eq!(at, [(0, 600), (600, 600), (1_800, 600)]);
        let total = found[0].total;
        assert_eq!(
            (total.ops, total.bytes, total.latency_sum_ns),
            (Some(6_000), Some(29_491_200), Some(12_000_000_000))
        );
        assert_eq!(found[0].by_op.read.bytes, Some(24_576_000));
        assert_eq!(
            (load.gaps.len(), load.gaps[0].reason, load.clock),
            (1, GapReason::Restart, LoadClock::Local)
        );
    }

    #[test]
    fn broken_rows_are_refused_by_line_and_column() {
        let with = |row: &str| read(&format!("00:00:01{HEAD}{row}"), None).unwrap_err().to_string();
        assert_eq!(
            with(&format!("00:10:01{}", VALUES.replace("10.00", "10,00"))),
            "line 2: tps: '10,00' is not a number"
        );
        assert_eq!(with("00:10:01 sda 1.0\n"), "line 2: expected 9 columns, found 2");
        assert_eq!(with("hello world\n"), "line 2: 'hello' is not a time");
        let back = format!("00:10:01{VALUES}00:05:01{VALUES}");
        assert_eq!(with(&back), "line 3: its time is before that of the row above");
        assert!(!is_sar("12:00:01 AM CPU %user\n") && is_sar(&format!("00:00:01{HEAD}")));
    }
}
