//! The progress of a bench at a terminal: which test, how fast, how long still. In a pipe only that nothing
//! completes.

use std::sync::Arc;

use fathom_assess::{BenchPlan, MeasurementStep, PlannedTest, StepObserver};
use fathom_model::Nanos;
use fathom_model::units::{duration, grouped, latency};
use fathom_record::{RoundsRecord, RunHeader, TestRecord};
use fathom_report::{pad, width};
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::Snapshot;

use crate::run_display::RunDisplay;
use crate::stall_note::{self, TOLD_FROM_NS};

/// Shows a bench.
pub struct BenchProgress {
    plan: Arc<BenchPlan>,
    display: RunDisplay,
    /// Planned ns of the tests that have ended.
    done_ns: u64,
    /// Of the rounds of this test that have ended.
    rounds_ns: u64,
    current: Option<(usize, u64)>,
}

impl BenchProgress {
    /// Nothing is shown before the bench begins.
    pub fn new(plan: Arc<BenchPlan>, display: RunDisplay) -> BenchProgress {
        BenchProgress { plan, display, done_ns: 0, rounds_ns: 0, current: None }
    }
}

impl RunObserver for BenchProgress {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.display.laying_out(progress, self.plan.cost.layout_time);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.display.working(snapshot);
        let Some((_, planned)) = self.current else { return };
        let in_test = match (planned, snapshot.remaining_ns) {
            (0, _) => 0,
            (planned, _) if self.is_in_rounds() => planned.min(self.rounds_ns + snapshot.elapsed_ns),
            (planned, Some(left)) => planned.saturating_sub(left),
            (planned, None) => planned.min(snapshot.elapsed_ns),
        };
        self.display.bar.set_position((self.done_ns + in_test) / 1_000_000);
        let left = match self.plan.cost.time {
            Some(_) => Some(Nanos(self.planned_total().saturating_sub(self.done_ns + in_test))),
            None => snapshot.remaining_ns.map(Nanos),
        };
        self.display.bar.set_message(message(snapshot, left));
    }
}

impl BenchProgress {
    /// Planned ns of all tests that run; what takes as long as it takes counts as nothing.
    fn planned_total(&self) -> u64 {
        self.plan.tests.iter().map(planned_ns).sum()
    }

    fn is_in_rounds(&self) -> bool {
        self.current.is_some_and(|(index, _)| self.plan.tests[index].rounds.is_some())
    }

    /// `2/10 rand-read`, and the round where there are several.
    fn prefix(&self, index: usize, round: Option<usize>) -> String {
        let wide = self.plan.tests.iter().map(|test| width(&test.id)).max().unwrap_or(0);
        let round = round.map(|round| format!(" round {:>2}", round + 1)).unwrap_or_default();
        let id = pad(&self.plan.tests[index].id, wide);
        format!("{:>2}/{} {id}{round}", index + 1, self.plan.tests.len())
    }
}

fn planned_ns(test: &PlannedTest) -> u64 {
    if test.skip.is_some() { 0 } else { test.most_time().unwrap_or(test.ramp).0 }
}

/// `3,001+1,002 IOPS  15.6 MiB/s  21.3ms  2 min 05 s left`
fn message(snapshot: &Snapshot, left: Option<Nanos>) -> String {
    let mut parts = Vec::new();
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
        parts.push(format!("{} MiB/s", mib(moved)));
        parts.extend(snapshot.clat_mean_ns.map(latency));
    }
    if snapshot.ramping {
        parts.push("ramp".to_owned());
    }
    parts.extend(left.map(|left| format!("{} left", duration(left))));
    parts.join("  ")
}

/// MiB, with a decimal where there are few of them.
fn mib(bytes: f64) -> String {
    let mib = bytes / 1_048_576.0;
    if mib < 99.95 { format!("{mib:.1}") } else { grouped(mib.round() as u64) }
}

impl StepObserver for BenchProgress {
    fn begun(&mut self, _header: &RunHeader) {
        self.display.bar.set_length((self.planned_total() / 1_000_000).max(1));
        self.display.bar.set_position(0);
    }

    fn step_begun(&mut self, step: &MeasurementStep) {
        let index = step.number - 1;
        self.current = Some((index, planned_ns(&self.plan.tests[index])));
        self.rounds_ns = 0;
        self.display.bar.set_prefix(self.prefix(index, None));
        self.display.bar.set_message(String::new());
        self.display.bar.set_position(self.done_ns / 1_000_000);
    }

    fn round_begun(&mut self, index: usize, so_far: &RoundsRecord) {
        self.rounds_ns = so_far.elapsed_ns;
        if let Some((test, _)) = self.current {
            self.display.bar.set_prefix(self.prefix(test, Some(index)));
        }
    }

    fn step_ended(&mut self, _test: &TestRecord) {
        if let Some((_, planned)) = self.current.take() {
            self.done_ns += planned;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        for (bytes, expected) in [(0.0, "0.0"), (10_485_760.0, "10.0"), (2_556_428_288.0, "2,438")] {
            assert_eq!(mib(bytes), expected);
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
        let left = Some(Nanos::from_secs(125));
        assert_eq!(message(&snapshot, left), "3,001+1,000 IOPS  15.6 MiB/s  21.3 ms  2 min 05 s left");
        let stalled = Snapshot { stalled_ns: 7_000_000_000, stalled_in_flight: 3, ..Snapshot::default() };
        assert_eq!(message(&stalled, None), "no I/O completed for 7 s, 3 in flight");
    }
}
