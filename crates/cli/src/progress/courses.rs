//! What each command knows of its run: its place, and an estimate of the time left.

use std::sync::Arc;

use fathom_analysis::prepare::{CompletedPiece, place};
use fathom_assess::against::AgainstPlan;
use fathom_assess::prepare::PreparePlan;
use fathom_assess::{BenchPlan, MeasurementEvent, MeasurementStep, PlannedTest};
use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, grouped, latency};
use fathom_record::{PrecisionRecord, PrepareStage};
use fathom_report::live::STALLED_FROM_NS;
use fathom_report::{pad, width};
use fathom_stats::Snapshot;

use super::{Course, RunDisplay, describe};
use crate::progress::RowPrinter;

/// `2 min 05 s left  3,001+1,002 IOPS  15.6 MiB/s  21.3 ms`
fn rates(snapshot: &Snapshot, left: Option<String>, units: UnitSystem) -> String {
    // What matters least stands where a narrow terminal cuts.
    let mut parts: Vec<String> = left.map(|left| format!("{left} left")).into_iter().collect();
    if snapshot.stalled_ns >= STALLED_FROM_NS {
        parts.push(describe(snapshot));
    } else {
        let used = snapshot.iops.iter().filter(|&&iops| iops > 0.0);
        let rates: Vec<String> = used.map(|&iops| grouped(iops.round() as u64)).collect();
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

/// Of a bench: its tests are known, and most of them end with their time.
pub struct BenchCourse {
    plan: Arc<BenchPlan>,
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

impl BenchCourse {
    /// Of a run of `plan`.
    pub fn new(plan: Arc<BenchPlan>) -> BenchCourse {
        BenchCourse { plan, done_ns: 0, rounds_ns: 0, current: None, sized_rate: None, precise_ns: None }
    }

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

    /// `2/10 rand-read`, and the round where there are several.
    fn prefix(&self, index: usize, round: Option<usize>) -> String {
        let wide = self.plan.tests.iter().map(|test| width(&test.id)).max().unwrap_or(0);
        let round = round.map(|round| format!(" round {:>2}", round + 1)).unwrap_or_default();
        let id = pad(&self.plan.tests[index].id, wide);
        format!("{:>2}/{} {id}{round}", index + 1, self.plan.tests.len())
    }
}

impl Course for BenchCourse {
    fn layout_and_rest(&self) -> (Option<Nanos>, Option<Nanos>) {
        (self.plan.cost.layout_time, self.plan.cost.tests_time)
    }

    fn take(&mut self, event: &MeasurementEvent, display: &mut RunDisplay) {
        match event {
            MeasurementEvent::StepBegun(step) => {
                // A test that is measured again comes after those of the plan.
                let planned = Some(step.number - 1).filter(|index| *index < self.plan.tests.len());
                (self.current, self.rounds_ns) = (planned, 0);
                let prefix = planned.map(|index| self.prefix(index, None));
                let again = || format!("{:>2}/{} {}", step.number, step.number, step.id);
                display.bar.set_prefix(prefix.unwrap_or_else(again));
            }
            MeasurementEvent::RoundBegun(round, so_far) => {
                self.rounds_ns = so_far.elapsed_ns;
                if let Some(test) = self.current {
                    display.bar.set_prefix(self.prefix(test, Some(*round)));
                }
            }
            MeasurementEvent::Waiting(_) => self.done_ns = 0,
            MeasurementEvent::StepEnded(test) => {
                self.current = None;
                self.done_ns += test.elapsed_ns;
                if test.precision.is_some() {
                    self.precise_ns = Some(test.elapsed_ns);
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, snapshot: &Snapshot, display: &mut RunDisplay) -> String {
        let Some(index) = self.current else { return rates(snapshot, None, display.units) };
        let test = &self.plan.tests[index];
        let sized = test.io_bytes.zip(snapshot.remaining_ns).filter(|(_, left)| *left > 0);
        if let Some((bytes, left)) = sized {
            self.sized_rate = Some(bytes as f64 * 1e9 / (snapshot.elapsed_ns + left) as f64);
        }
        let is_simulated = self.plan.targets[0].target.is_simulated();
        let done_ns = self.done_ns + self.rounds_ns + snapshot.elapsed_ns;
        let left = self.left_in(index, snapshot);
        let left = left.and_then(|left| display.on_the_clock(is_simulated, done_ns, left));
        rates(snapshot, left.map(|left| display.time_left(left)), display.units)
    }
}

/// Of two targets measured in turns: which block, which test, and one estimate of the time left.
pub struct AgainstCourse {
    plan: Arc<AgainstPlan>,
    step: MeasurementStep,
    lane: usize,
    /// Measurements that have ended, and the time that they took, ns.
    done: usize,
    done_ns: u64,
}

impl AgainstCourse {
    /// Of a run of `plan`.
    pub fn new(plan: Arc<AgainstPlan>) -> AgainstCourse {
        AgainstCourse { plan, step: MeasurementStep::default(), lane: 0, done: 0, done_ns: 0 }
    }

    /// Time of the measurements that are left: each takes as long as those before, else as long as planned. A budget ends them.
    fn left_ns(&self, elapsed_ns: u64) -> Option<u64> {
        let planned = || {
            let tests = self.plan.sides[0].tests.iter().filter(|test| test.skip.is_none());
            let times: Option<Vec<u64>> = tests.map(|test| Some(test.most_time()?.0)).collect();
            times
                .filter(|times| !times.is_empty())
                .map(|times| times.iter().sum::<u64>() / times.len() as u64)
        };
        let each = self.done_ns.checked_div(self.done as u64).or_else(planned)?;
        let left = self.step.of?.saturating_sub(self.done) as u64 * each;
        let left = left.saturating_sub(elapsed_ns);
        let budget = self.plan.budget.map(|budget| budget.0.saturating_sub(self.step.spent_ns + elapsed_ns));
        Some(budget.map_or(left, |budget| left.min(budget)))
    }
}

impl Course for AgainstCourse {
    fn layout_and_rest(&self) -> (Option<Nanos>, Option<Nanos>) {
        let rest = self.plan.block_time().map(|block| Nanos(block.0 * self.plan.least_blocks()));
        (self.plan.sides[0].cost.layout_time, rest)
    }

    fn take(&mut self, event: &MeasurementEvent, display: &mut RunDisplay) {
        match event {
            MeasurementEvent::Lane(lane) => self.lane = *lane,
            MeasurementEvent::StepBegun(step) => {
                self.step = step.clone();
                let block = step.title.split(' ').take(2).collect::<Vec<_>>().join(" ");
                let source = if self.lane == 0 { "A" } else { "B" };
                display.bar.set_prefix(format!("{block} {} {source}", step.id));
            }
            MeasurementEvent::StepEnded(test) => {
                self.done += 1;
                self.done_ns += test.elapsed_ns;
            }
            _ => {}
        }
    }

    fn message(&mut self, snapshot: &Snapshot, display: &mut RunDisplay) -> String {
        let (is_simulated, elapsed_ns) = (self.plan.is_simulated(), snapshot.elapsed_ns);
        let left = self
            .left_ns(elapsed_ns)
            .and_then(|left| display.on_the_clock(is_simulated, self.done_ns + elapsed_ns, Nanos(left)));
        rates(snapshot, left.map(|left| display.time_left(left)), display.units)
    }
}

/// Of a run whose next measurement follows from those before. Where it is known how many there will be, they are counted;
/// otherwise the time is.
pub struct StepCourse {
    /// The rows of its report, by whose names the measurements go.
    rows: Option<RowPrinter>,
    /// Longest time for file layout.
    layout_time: Option<Nanos>,
    /// Time for everything, where there is a limit.
    budget: Option<Nanos>,
    step: MeasurementStep,
}

impl StepCourse {
    /// Of a run within `budget` whose rows are `rows`.
    pub fn new(layout_time: Option<Nanos>, budget: Option<Nanos>, rows: Option<RowPrinter>) -> StepCourse {
        StepCourse { rows, layout_time, budget, step: MeasurementStep::default() }
    }

    /// What is left, by the share of the measurements that is done where there is no limit.
    fn left(&self, spent_ns: u64, display: &mut RunDisplay) -> Option<String> {
        let (done, of) = (self.step.number.saturating_sub(1) as u128, self.step.of);
        let (left_ns, note) = match (self.budget, of) {
            (Some(budget), None) => (budget.0.saturating_sub(spent_ns), " at most"),
            (Some(budget), Some(_)) => (budget.0.saturating_sub(spent_ns), ""),
            (None, of) => {
                let left = u128::from(self.step.spent_ns) * (of? as u128).saturating_sub(done);
                (left.checked_div(done)? as u64, "")
            }
        };
        Some(format!("{} left{note}", display.time_left(Nanos(left_ns))))
    }
}

impl Course for StepCourse {
    fn layout_and_rest(&self) -> (Option<Nanos>, Option<Nanos>) {
        (self.layout_time, self.budget)
    }

    fn take(&mut self, event: &MeasurementEvent, display: &mut RunDisplay) {
        let MeasurementEvent::StepBegun(step) = event else { return };
        self.step = step.clone();
        let of = step.of.map(|of| format!(" of {of}")).unwrap_or_default();
        let name = self.rows.as_ref().map_or(step.title.as_str(), |rows| rows.name(step));
        let message = self.left(step.spent_ns, display).unwrap_or_default();
        display.set(&format!("{:>3}{of}, {name}", step.number), &message);
    }

    fn message(&mut self, snapshot: &Snapshot, display: &mut RunDisplay) -> String {
        if snapshot.stalled_ns >= STALLED_FROM_NS {
            return describe(snapshot);
        }
        let [iops, moved] = [snapshot.iops, snapshot.bytes_per_second].map(|rates| rates.iter().sum::<f64>());
        // What matters least stands where a narrow terminal cuts.
        let left = self.left(self.step.spent_ns + snapshot.elapsed_ns, display);
        let left = left.map(|left| format!("{left}  ")).unwrap_or_default();
        format!("{left}{}/s  {} IOPS", display.units.amount(moved as u64), grouped(iops.round() as u64))
    }
}

/// Of a preparation: how much of each stage is done.
pub struct PrepareCourse {
    plan: Arc<PreparePlan>,
    stage: Option<PrepareStage>,
    /// Bytes before the piece, and moved in it.
    before: u64,
    moved: f64,
    /// Since the start of the piece or round, ns.
    elapsed_ns: u64,
    /// What this run has done of the stage: bytes and ns.
    paced: (u64, u64),
    /// Of the rounds that have ended, ns.
    rounds_ns: u64,
}

impl PrepareCourse {
    /// Of a run of `plan`.
    pub fn new(plan: Arc<PreparePlan>) -> PrepareCourse {
        PrepareCourse { plan, stage: None, before: 0, moved: 0.0, elapsed_ns: 0, paced: (0, 0), rounds_ns: 0 }
    }

    /// What follows the present stage: passes over the whole target at its pace, and the most time of the workload.
    fn later_stages(&self) -> (usize, Nanos) {
        let stages = &self.plan.stages;
        let at = stages.iter().position(|stage| Some(*stage) == self.stage).map_or(0, |at| at + 1);
        let later = &stages[at.min(stages.len())..];
        let has_workload = later.contains(&PrepareStage::Workload);
        let budget = self.plan.rounds.filter(|_| has_workload).map_or(Nanos::ZERO, |rounds| rounds.budget);
        (later.len() - usize::from(has_workload), budget)
    }

    /// The next piece or round begins, of a stage that is shown with `more` behind its name.
    fn begin(&mut self, stage: PrepareStage, more: &str, display: &mut RunDisplay) {
        if self.stage != Some(stage) {
            display.bar.set_message("");
            self.paced = (0, 0);
        }
        (self.stage, self.moved, self.elapsed_ns) = (Some(stage), 0.0, 0);
        let number = self.plan.stages.iter().position(|known| *known == stage).unwrap_or(0) + 1;
        display.bar.set_prefix(format!("{number}/{} {}{more}", self.plan.stages.len(), stage.title()));
    }
}

impl Course for PrepareCourse {
    fn take(&mut self, event: &MeasurementEvent, display: &mut RunDisplay) {
        match event {
            MeasurementEvent::StepBegun(step) => {
                // Rounds are reported one by one.
                let Some((stage, offset)) = place(&step.id) else { return };
                (self.before, self.rounds_ns) = (offset, 0);
                self.begin(stage, "", display);
            }
            MeasurementEvent::RoundBegun(index, so_far) => {
                (self.before, self.rounds_ns) = (0, so_far.elapsed_ns);
                self.begin(PrepareStage::Workload, &format!(" {}", index + 1), display);
            }
            MeasurementEvent::StepEnded(test) => {
                let done = CompletedPiece::of(test).filter(|done| self.stage == Some(done.piece.stage));
                if let Some(done) = done {
                    self.paced.0 += done.piece.length;
                    self.paced.1 += done.elapsed_ns;
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, snapshot: &Snapshot, display: &mut RunDisplay) -> String {
        let rate: f64 = snapshot.bytes_per_second.iter().sum();
        self.moved += rate * snapshot.elapsed_ns.saturating_sub(self.elapsed_ns) as f64 / 1e9;
        self.elapsed_ns = snapshot.elapsed_ns;
        if snapshot.stalled_ns >= STALLED_FROM_NS {
            return describe(snapshot);
        }
        if self.stage == Some(PrepareStage::Workload) {
            let iops: f64 = snapshot.iops.iter().sum();
            let budget = self.plan.rounds.map_or(Nanos::ZERO, |rounds| rounds.budget);
            let left = budget.0.saturating_sub(self.rounds_ns + self.elapsed_ns);
            let left = display.time_left(Nanos(left));
            return format!("{} IOPS  {left} left at most", grouped(iops.round() as u64));
        }
        let size = self.plan.target.size;
        let done = (self.before + self.moved as u64).min(size);
        let (paced, paced_ns) = (self.paced.0 + self.moved as u64, self.paced.1 + self.elapsed_ns);
        let (passes, later) = self.later_stages();
        let left = (paced > 0).then(|| {
            let bytes = (size - done) as f64 + size as f64 * passes as f64;
            let left_ns = bytes * paced_ns as f64 / paced as f64;
            format!("{} left  ", display.time_left(Nanos(left_ns as u64).plus(later)))
        });
        // What matters least stands where a narrow terminal cuts.
        let left = left.unwrap_or_default();
        let [rate, done, size] = [rate as u64, done, size].map(|count| display.units.amount(count));
        format!("{left}{rate}/s  {done} of {size}")
    }
}

#[cfg(test)]
mod tests {
    use fathom_assess::BenchSettings;
    use fathom_assess::against::{AgainstSettings, Opponent};
    use fathom_record::TestRecord;

    use super::*;

    #[test]
    fn messages() {
        for (bytes, expected) in [(0.0, "0.0"), (10_485_760.0, "10.0"), (2_556_428_288.0, "2,438")] {
            assert_eq!(mega(bytes, UnitSystem::Iec), expected);
        }
        let snapshot = Snapshot {
            iops: [3_001.2, 999.6, 0.0],
            bytes_per_second: [12_292_915.0, 4_094_361.0, 0.0],
            clat_mean_ns: Some(21_300_000),
            ..Snapshot::default()
        };
        let left = Some("2 min 05 s".to_owned());
        assert_eq!(
            rates(&snapshot, left, UnitSystem::Iec),
            "2 min 05 s left  3,001+1,000 IOPS  15.6 MiB/s  21.3 ms"
        );
        let stalled = Snapshot { stalled_ns: 7_000_000_000, stalled_in_flight: 3, ..Snapshot::default() };
        assert_eq!(rates(&stalled, None, UnitSystem::Si), "no I/O completed for 7 s, 3 in flight");
    }

    #[test]
    fn the_time_left_follows_from_the_measurements_that_ended() {
        let mut bench = BenchSettings { suite: "standard".to_owned(), ..BenchSettings::default() };
        bench.run.target = "sim:custom?iops=1000".into();
        let settings = AgainstSettings {
            bench,
            opponent: Opponent::Target("sim:custom?iops=2000".into()),
            budget: Some(Nanos::from_secs(3600)),
            deltas: Default::default(),
        };
        let mut course = AgainstCourse::new(Arc::new(AgainstPlan::make(settings).unwrap()));
        let mut display = RunDisplay::new(UnitSystem::Iec);
        let mut begin = |course: &mut AgainstCourse, number: usize, spent_ns: u64| {
            let step = MeasurementStep { number, of: Some(24), spent_ns, ..MeasurementStep::default() };
            course.take(&MeasurementEvent::StepBegun(step), &mut display);
        };
        begin(&mut course, 1, 0);
        assert_eq!(course.left_ns(0), Some(24 * 32_000_000_000));
        let test = TestRecord { elapsed_ns: 40_000_000_000, ..TestRecord::default() };
        course.take(&MeasurementEvent::StepEnded(Box::new(test)), &mut RunDisplay::new(UnitSystem::Iec));
        begin(&mut course, 2, 40_000_000_000);
        assert_eq!(course.left_ns(10_000_000_000), Some(23 * 40_000_000_000 - 10_000_000_000));
        begin(&mut course, 2, 3_580_000_000_000);
        assert_eq!(course.left_ns(10_000_000_000), Some(10_000_000_000));
    }
}
