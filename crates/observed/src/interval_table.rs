//! Intervals of several devices as a reader finds them, value by value, and the load of one device made of them.

use std::collections::BTreeMap;

use fathom_model::Op;
use fathom_model::units::grouped;

use crate::block_events::LONGEST_NS;
use crate::clock_text::SECOND_NS;
use crate::load::{GapReason, LoadClock, LoadCourse, LoadGap, ObservedInterval, ObservedLoad, ServedIo};
use crate::{LoadError, LoadFormat, MAX_DEVICES};

/// What a value says of an interval. Rates are multiplied by its length before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntervalFigure {
    /// I/Os, of one operation or of all.
    Ops(Option<Op>),
    /// Bytes.
    Bytes(Option<Op>),
    /// The sum of latencies, s.
    LatencySum(Option<Op>),
    /// Mean number of outstanding I/Os.
    QueueDepth,
    /// A share of the time, of one.
    Utilization,
    /// Above 0 where a limit was reached.
    LimitReached,
    /// Burst credits left, of one.
    Credits,
    /// I/Os in the busiest second.
    PeakOps(Op),
}

/// Intervals by device and beginning.
#[derive(Debug, Default)]
pub(crate) struct IntervalTable {
    devices: BTreeMap<String, DeviceIntervals>,
    /// Sentences for readers.
    notes: Vec<String>,
}

/// The intervals of a device by their beginnings, ns since the epoch.
#[derive(Debug, Default)]
struct DeviceIntervals {
    intervals: BTreeMap<u64, ObservedInterval>,
    gaps: Vec<LoadGap>,
}

/// A stretch of time, ns since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub start_ns: u64,
    pub length_ns: u64,
}

/// The largest count, which a real number holds exactly.
pub(crate) const MOST: f64 = (1_u64 << 53) as f64;
/// Longest interval: 31 days.
const LONGEST_INTERVAL_NS: u64 = 31 * 86_400 * SECOND_NS;

impl IntervalTable {
    /// Adds a sentence for readers, once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Sets one value of an interval.
    ///
    /// # Errors
    /// Why the value is not possible.
    pub fn set(
        &mut self,
        device: &str,
        at: Stretch,
        figure: IntervalFigure,
        value: f64,
    ) -> Result<(), String> {
        if at.length_ns == 0 || at.length_ns > LONGEST_INTERVAL_NS {
            return Err("an interval is longer than 0 s and at most 31 days".to_owned());
        }
        let of_device = self.device(device)?;
        let new = ObservedInterval {
            start_ns: at.start_ns,
            length_ns: at.length_ns,
            ..ObservedInterval::default()
        };
        let interval = of_device.intervals.entry(at.start_ns).or_insert(new);
        if interval.length_ns != at.length_ns {
            return Err("two intervals of different lengths begin at its time".to_owned());
        }
        let count = |scale: f64| count(value, scale);
        match figure {
            IntervalFigure::Ops(op) => served(interval, op).ops = Some(count(1.0)?),
            IntervalFigure::Bytes(op) => served(interval, op).bytes = Some(count(1.0)?),
            IntervalFigure::LatencySum(op) => served(interval, op).latency_sum_ns = Some(count(1e9)?),
            IntervalFigure::QueueDepth => interval.queue_depth_milli = Some(count(1e3)?),
            // A busy time may exceed its interval by the inaccuracy of both.
            IntervalFigure::Utilization => interval.utilization_ppm = Some(count(1e6)?.min(1_000_000) as u32),
            IntervalFigure::LimitReached => {
                let is_reached = count(1e6)? > 0;
                interval.limit_reached = Some(interval.limit_reached.unwrap_or(false) || is_reached);
            }
            IntervalFigure::Credits => {
                let left = count(1e6)?.min(1_000_000) as u32;
                interval.credits_ppm = Some(interval.credits_ppm.map_or(left, |other| other.min(left)));
            }
            IntervalFigure::PeakOps(op) => interval.peak_ops_per_second[op] = Some(count(1.0)?),
        }
        Ok(())
    }

    /// States why a device has no data for a stretch.
    ///
    /// # Errors
    /// It is one device too many.
    pub fn gap(&mut self, device: &str, at: Stretch, reason: GapReason) -> Result<(), String> {
        let Stretch { start_ns, length_ns } = at;
        self.device(device)?.gaps.push(LoadGap { start_ns, length_ns, reason });
        Ok(())
    }

    /// The I/Os of an interval, where they are known.
    pub fn ops(&self, device: &str, start_ns: u64) -> Option<u64> {
        self.devices.get(device)?.intervals.get(&start_ns)?.with_total().total.ops
    }

    /// The devices so far.
    pub fn devices(&self) -> impl Iterator<Item = &String> {
        self.devices.keys()
    }

    fn device(&mut self, name: &str) -> Result<&mut DeviceIntervals, String> {
        if !self.devices.contains_key(name) && self.devices.len() == MAX_DEVICES {
            return Err(format!("it has more than {MAX_DEVICES} devices"));
        }
        Ok(self.devices.entry(name.to_owned()).or_default())
    }

    /// The load of one device.
    ///
    /// # Errors
    /// There is no interval with I/Os or bytes, intervals overlap, or of several devices none is chosen.
    pub fn finish(
        mut self,
        format: LoadFormat,
        clock: LoadClock,
        device: Option<&str>,
    ) -> Result<ObservedLoad, LoadError> {
        for of_device in self.devices.values_mut() {
            of_device.intervals.retain(|_, interval| {
                *interval = interval.with_total();
                interval.total != ServedIo::default()
            });
        }
        self.devices.retain(|_, of_device| !of_device.intervals.is_empty());
        let names: Vec<String> = self.devices.keys().cloned().collect();
        let name = match (device, &names[..]) {
            (_, []) => return Err(LoadError::empty("interval of a disk")),
            (None, [one]) => one.clone(),
            (None, _) => return Err(LoadError::device(None, &names)),
            (Some(wanted), _) => chosen(wanted, &names).ok_or_else(|| LoadError::device(device, &names))?,
        };
        let DeviceIntervals { intervals, gaps } = self.devices.remove(&name).unwrap_or_default();
        let intervals: Vec<ObservedInterval> = intervals.into_values().collect();
        let mut notes = self.notes;
        let load = of_intervals(intervals, gaps, &mut notes)?;
        let started_unix_ns = (clock != LoadClock::Relative).then_some(load.started_ns);
        Ok(ObservedLoad {
            format,
            device: name,
            started_unix_ns,
            clock,
            length_ns: load.length_ns,
            course: LoadCourse::Intervals(load.intervals),
            gaps: load.gaps,
            notes,
        })
    }
}

/// The device of the name `wanted`; the directory `/dev` may stand before it.
fn chosen(wanted: &str, names: &[String]) -> Option<String> {
    let bare = wanted.strip_prefix("/dev/").unwrap_or(wanted);
    names.iter().find(|name| *name == wanted || *name == bare).cloned()
}

fn served(interval: &mut ObservedInterval, op: Option<Op>) -> &mut ServedIo {
    match op {
        Some(op) => &mut interval.by_op[op],
        None => &mut interval.total,
    }
}

/// A value in units of which `scale` are one of the value.
fn count(value: f64, scale: f64) -> Result<u64, String> {
    match value * scale {
        scaled @ 0.0..=MOST => Ok(scaled.round() as u64),
        // What is left where a sum of counters is computed with real numbers.
        -0.5..0.0 => Ok(0),
        _ => Err(impossible(value)),
    }
}

/// Why a value is refused.
pub(crate) fn impossible(value: f64) -> String {
    match value.abs() {
        0.0..1e15 => format!("{value} is not possible"),
        _ => format!("{value:e} is not possible"),
    }
}

/// The intervals of a load, from its beginning on.
struct LoadIntervals {
    started_ns: u64,
    length_ns: u64,
    intervals: Vec<ObservedInterval>,
    gaps: Vec<LoadGap>,
}

/// Intervals may be off by the resolution of the times: of a clock in seconds, and of timers that are late.
fn tolerance_ns(interval: &ObservedInterval) -> u64 {
    (interval.length_ns / 10).max(SECOND_NS)
}

fn of_intervals(
    mut intervals: Vec<ObservedInterval>,
    known: Vec<LoadGap>,
    notes: &mut Vec<String>,
) -> Result<LoadIntervals, LoadError> {
    let started_ns = intervals.first().map_or(0, |first| first.start_ns);
    let mut gaps = Vec::new();
    for index in 1..intervals.len() {
        let (before, next) = (intervals[index - 1], intervals[index]);
        let tolerance = tolerance_ns(&before).min(tolerance_ns(&next));
        if before.end_ns() > next.start_ns {
            let is_inexact = before.end_ns() - next.start_ns <= tolerance && next.start_ns > before.start_ns;
            if !is_inexact {
                let at = (next.start_ns - started_ns) / SECOND_NS;
                let problem = format!("two intervals overlap, {at} s after the beginning");
                return Err(LoadError::new(0, problem, "import one recording of one host at a time"));
            }
            intervals[index - 1].length_ns = next.start_ns - before.start_ns;
        } else if next.start_ns - before.end_ns() > tolerance {
            let (start_ns, length_ns) = (before.end_ns(), next.start_ns - before.end_ns());
            let touches =
                |gap: &&LoadGap| gap.start_ns < next.start_ns && gap.start_ns + gap.length_ns > start_ns;
            let reason = known.iter().find(touches).map_or(GapReason::Missing, |gap| gap.reason);
            gaps.push(LoadGap { start_ns: start_ns - started_ns, length_ns, reason });
        }
    }
    let length_ns = intervals.last().map_or(0, |last| last.end_ns() - started_ns);
    if length_ns > LONGEST_NS {
        return Err(LoadError::new(
            0,
            "it is longer than 10 years",
            "check the times of its first and last interval",
        ));
    }
    intervals.iter_mut().for_each(|interval| interval.start_ns -= started_ns);
    let without_ops = intervals.iter().filter(|interval| interval.total.ops.is_none()).count();
    if without_ops > 0 {
        notes.push(format!(
            "{} of {} intervals have no number of I/Os",
            grouped(without_ops as u64),
            grouped(intervals.len() as u64)
        ));
    }
    Ok(LoadIntervals { started_ns, length_ns, intervals, gaps })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: u64, length: u64) -> Stretch {
        Stretch { start_ns: start * SECOND_NS, length_ns: length * SECOND_NS }
    }

    fn table(stretches: &[(u64, u64)]) -> IntervalTable {
        let mut table = IntervalTable::default();
        for &(start, length) in stretches {
            table.set("a", at(start, length), IntervalFigure::Ops(None), 10.0).unwrap();
        }
        table
    }

    fn gaps(table: IntervalTable) -> Vec<(u64, u64, GapReason)> {
        let load = table.finish(LoadFormat::SarText, LoadClock::Utc, None).unwrap();
        let of = |gap: &LoadGap| (gap.start_ns / SECOND_NS, gap.length_ns / SECOND_NS, gap.reason);
        load.gaps.iter().map(of).collect()
    }

    #[test]
    fn gaps_are_found_and_keep_their_reason() {
        let missing = GapReason::Missing;
        assert_eq!(gaps(table(&[(100, 60), (161, 60), (280, 60)])), [(121, 59, missing)]);
        let mut known = table(&[(100, 60), (220, 60)]);
        known.gap("a", at(160, 60), GapReason::CounterReset).unwrap();
        assert_eq!(gaps(known), [(60, 60, GapReason::CounterReset)]);
    }

    #[test]
    fn intervals_that_overlap_are_refused_unless_times_are_inexact() {
        let load = table(&[(100, 60), (159, 60)]).finish(LoadFormat::SarText, LoadClock::Utc, None).unwrap();
        let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
        assert_eq!((intervals[0].length_ns, intervals[1].start_ns), (59 * SECOND_NS, 59 * SECOND_NS));
        let error = table(&[(100, 60), (130, 60)]).finish(LoadFormat::SarText, LoadClock::Utc, None);
        assert_eq!(error.unwrap_err().problem, "two intervals overlap, 30 s after the beginning");
    }

    #[test]
    fn values_are_in_their_units_and_possible() {
        let mut table = IntervalTable::default();
        let mut set = |figure, value| table.set("sda", at(0, 60), figure, value);
        set(IntervalFigure::Ops(Some(Op::Read)), 6.4).unwrap();
        set(IntervalFigure::Ops(Some(Op::Write)), -1e-9).unwrap();
        set(IntervalFigure::LatencySum(Some(Op::Read)), 0.25).unwrap();
        set(IntervalFigure::QueueDepth, 1.5).unwrap();
        set(IntervalFigure::Utilization, 1.001).unwrap();
        set(IntervalFigure::Credits, 0.9).unwrap();
        set(IntervalFigure::Credits, 0.4).unwrap();
        set(IntervalFigure::LimitReached, 0.2).unwrap();
        set(IntervalFigure::LimitReached, 0.0).unwrap();
        assert_eq!(set(IntervalFigure::QueueDepth, -3.0).unwrap_err(), "-3 is not possible");
        assert!(set(IntervalFigure::QueueDepth, f64::NAN).is_err());
        assert!(table.set("sda", at(0, 30), IntervalFigure::QueueDepth, 1.0).is_err());
        let load = table.finish(LoadFormat::SarText, LoadClock::Relative, Some("/dev/sda")).unwrap();
        let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
        let interval = intervals[0];
        assert_eq!(interval.total, ServedIo { ops: Some(6), bytes: None, latency_sum_ns: Some(250_000_000) });
        assert_eq!((interval.queue_depth_milli, interval.utilization_ppm), (Some(1_500), Some(1_000_000)));
        assert_eq!((interval.credits_ppm, interval.limit_reached), (Some(400_000), Some(true)));
        assert_eq!(load.started_unix_ns, None);
    }

    #[test]
    fn devices_without_io_figures_do_not_count() {
        let mut table = table(&[(0, 60)]);
        table.set("b", at(0, 60), IntervalFigure::QueueDepth, 1.0).unwrap();
        assert_eq!(table.finish(LoadFormat::SarText, LoadClock::Utc, None).unwrap().device, "a");
        let empty = IntervalTable::default().finish(LoadFormat::SarText, LoadClock::Utc, None);
        assert_eq!(empty.unwrap_err().problem, "it contains no interval of a disk");
    }
}
