//! The progress of a bench at a terminal: which test, how fast, how long still. In a pipe only that nothing
//! completes.

use std::sync::Arc;

use fathom_assess::{BenchPlan, MeasurementStep, PlannedTest, StepObserver};
use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, grouped, latency};
use fathom_record::{MissedSlots, PrecisionRecord, RoundsRecord, RunHeader, TestRecord};
use fathom_report::{pad, width};
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::Snapshot;

use crate::output;
use crate::row_printer::RowPrinter;
use crate::run_display::RunDisplay;
use crate::stall_note::{self, TOLD_FROM_NS};

/// Shows a bench.
pub struct BenchProgress {
    plan: Arc<BenchPlan>,
    rows: RowPrinter,
    display: RunDisplay,
    /// What the tests that have ended took, ns.
    done_ns: u64,
    /// The same of the rounds of this test.
    rounds_ns: u64,
    current: Option<usize>,
    /// Bytes per second of the last test that ends with its size: what the others are expected to reach.
    sized_rate: Option<f64>,
    /// What the last test took that a precision could end, ns: what the others are expected to take.
    precise_ns: Option<u64>,
}

impl BenchProgress {
    /// Nothing is shown before the bench begins.
    pub fn new(plan: Arc<BenchPlan>, rows: RowPrinter, display: RunDisplay) -> BenchProgress {
        BenchProgress {
            plan,
            rows,
            display,
            done_ns: 0,
            rounds_ns: 0,
            current: None,
            sized_rate: None,
            precise_ns: None,
        }
    }
}

impl RunObserver for BenchProgress {
    fn layout(&mut self, progress: &LayoutProgress) {
        let then = self.plan.cost.tests_time;
        self.display.laying_out(progress, self.plan.cost.layout_time, then);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.display.working(snapshot);
        let Some(index) = self.current else { return };
        let test = &self.plan.tests[index];
        let sized = test.io_bytes.zip(snapshot.remaining_ns).filter(|(_, left)| *left > 0);
        if let Some((bytes, left)) = sized {
            self.sized_rate = Some(bytes as f64 * 1e9 / (snapshot.elapsed_ns + left) as f64);
        }
        let left = self.left_in(index, snapshot).and_then(|left| {
            let done = self.done_ns + self.rounds_ns + snapshot.elapsed_ns;
            self.on_the_clock(done, left)
        });
        let left = left.map(|left| self.display.time_left(left));
        self.display.bar.set_message(message(snapshot, left, self.display.units));
    }
}

impl BenchProgress {
    /// What is left of the run during test `index`, in the time of the tests; `None` where no test so far tells.
    fn left_in(&self, index: usize, snapshot: &Snapshot) -> Option<Nanos> {
        let test = &self.plan.tests[index];
        let passed = self.rounds_ns + snapshot.elapsed_ns;
        let current = match (test.most_time(), snapshot.remaining_ns) {
            (Some(most), _) if test.rounds.is_some() => most.0.saturating_sub(passed),
            (Some(most), _) if test.precision.is_some() => {
                let next_look = PrecisionRecord::next_look_ns(passed) - passed;
                let expected = self.expected_ns(test)?.saturating_sub(passed).max(next_look);
                expected.min(most.0.saturating_sub(passed))
            }
            (_, Some(left)) => left,
            (most, None) => most?.0.saturating_sub(passed),
        };
        let later = self.plan.tests[index + 1..].iter().map(|test| self.expected_ns(test));
        Some(Nanos(current.saturating_add(later.sum::<Option<u64>>()?)))
    }

    /// How long a test is expected to take, ns; `None` where it takes as long as it takes and no other such test has run.
    fn expected_ns(&self, test: &PlannedTest) -> Option<u64> {
        match (test.skip.is_some(), test.most_time(), test.io_bytes) {
            (true, ..) => Some(0),
            (false, Some(most), _) if test.precision.is_some() => {
                let least = test.least_time().map_or(0, |least| least.0);
                Some(self.precise_ns.unwrap_or(least).clamp(least, most.0))
            }
            (false, Some(most), _) => Some(most.0),
            (false, None, bytes) => Some((bytes? as f64 * 1e9 / self.sized_rate?) as u64),
        }
    }

    /// Time of the tests as that of the clock on the wall: a simulated volume has another.
    fn on_the_clock(&self, done_ns: u64, left: Nanos) -> Option<Nanos> {
        if !self.plan.targets[0].target.is_simulated() {
            return Some(left);
        }
        let pace = self.display.spent_ns() as f64 / done_ns as f64;
        pace.is_finite().then_some(Nanos((left.0 as f64 * pace) as u64))
    }

    /// `2/10 rand-read`, and the round where there are several.
    fn prefix(&self, index: usize, round: Option<usize>) -> String {
        let wide = self.plan.tests.iter().map(|test| width(&test.id)).max().unwrap_or(0);
        let round = round.map(|round| format!(" round {:>2}", round + 1)).unwrap_or_default();
        let id = pad(&self.plan.tests[index].id, wide);
        format!("{:>2}/{} {id}{round}", index + 1, self.plan.tests.len())
    }
}

/// `2 min 05 s left  3,001+1,002 IOPS  15.6 MiB/s  21.3 ms`
pub fn message(snapshot: &Snapshot, left: Option<String>, units: UnitSystem) -> String {
    // What matters least stands where a narrow terminal cuts.
    let mut parts: Vec<String> = left.map(|left| format!("{left} left")).into_iter().collect();
    if snapshot.stalled_ns >= TOLD_FROM_NS {
        parts.push(stall_note::describe(snapshot));
    } else {
        let rates: Vec<String> = snapshot
            .iops
            .iter()
            .filter(|&&iops| iops > 0.0)
            .map(|&iops| grouped(iops.round() as u64))
            .collect();
        let rates = if rates.is_empty() { "0".to_owned() } else { rates.join("+") };
        parts.push(format!("{rates} IOPS"));
        let moved: f64 = snapshot.bytes_per_second.iter().sum();
        parts.push(format!("{} {}", mega(moved, units), units.rate_unit()));
        parts.extend(snapshot.clat_mean_ns.map(latency));
    }
    if snapshot.ramping {
        parts.push("ramp".to_owned());
    }
    parts.join("  ")
}

/// MiB or MB, with a decimal where there are few of them.
fn mega(bytes: f64, units: UnitSystem) -> String {
    let mega = bytes / units.mega();
    if mega < 99.95 { format!("{mega:.1}") } else { grouped(mega.round() as u64) }
}

impl StepObserver for BenchProgress {
    fn inspecting(&mut self, _header: &RunHeader) {
        self.display.bar.set_prefix("inspection");
        self.display.bar.set_message("");
    }

    fn begun(&mut self, header: &RunHeader) {
        self.display.bar.set_prefix("");
        self.display.bar.set_message("");
        self.display.bar.suspend(|| self.rows.begin(header));
    }

    fn step_begun(&mut self, step: &MeasurementStep) {
        let index = step.number - 1;
        self.current = Some(index);
        self.rounds_ns = 0;
        self.display.bar.set_prefix(self.prefix(index, None));
    }

    fn round_begun(&mut self, index: usize, so_far: &RoundsRecord) {
        self.rounds_ns = so_far.elapsed_ns;
        if let Some(test) = self.current {
            self.display.bar.set_prefix(self.prefix(test, Some(index)));
        }
    }

    fn waiting(&mut self, due_unix_ms: u64) {
        self.done_ns = 0;
        self.display.begin_again();
        self.display.bar.set_prefix("");
        let due = output::style().time(due_unix_ms, "%Y-%m-%d %H:%M:%S");
        self.display.bar.set_message(format!("waiting until {due}"));
    }

    fn slot_failed(&mut self, failed: &MissedSlots) {
        let (slot, error) = (failed.first + 1, failed.error.as_deref().unwrap_or_default());
        let line = format!("warning: slot {slot} could not begin: {error}");
        self.display.bar.suspend(|| output::warn(&line));
    }

    fn step_ended(&mut self, test: &TestRecord) {
        self.current = None;
        self.done_ns += test.elapsed_ns;
        if test.precision.is_some() {
            self.precise_ns = Some(test.elapsed_ns);
        }
        self.display.bar.suspend(|| self.rows.row(test));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        for (bytes, expected) in [(0.0, "0.0"), (10_485_760.0, "10.0"), (2_556_428_288.0, "2,438")] {
            assert_eq!(mega(bytes, UnitSystem::Iec), expected);
        }
    }

    #[test]
    fn messages() {
        let snapshot = Snapshot {
            iops: [3_001.2, 999.6, 0.0],
            bytes_per_second: [12_292_915.0, 4_094_361.0, 0.0],
            clat_mean_ns: Some(21_300_000),
            ..Snapshot::default()
        };
        let left = Some("2 min 05 s".to_owned());
        assert_eq!(
            message(&snapshot, left, UnitSystem::Iec),
            "2 min 05 s left  3,001+1,000 IOPS  15.6 MiB/s  21.3 ms"
        );
        let stalled = Snapshot { stalled_ns: 7_000_000_000, stalled_in_flight: 3, ..Snapshot::default() };
        assert_eq!(message(&stalled, None, UnitSystem::Si), "no I/O completed for 7 s, 3 in flight");
    }
}
