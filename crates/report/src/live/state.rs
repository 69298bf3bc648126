//! The state of a run that goes on: where it stands, what it measures now, and what it has found.

use std::collections::BTreeMap;

use fathom_analysis::ping::PingProgress;
use fathom_model::Nanos;
use fathom_record::{
    Finding, Histogram, LatencySpan, RunHeader, Snapshot, TestRecord, TestStatus, TestSummary,
};
use serde::{Deserialize, Serialize};

use super::LivePing;
use super::{DeviceLoad, HostShares};
use super::{LiveMonitor, MonitorTick};
use super::{LivePoint, LiveSeries, histogram};

/// Nothing completes for this long, although requests are in flight: a stall, ns.
pub const STALLED_FROM_NS: u64 = 1_000_000_000;
/// The word for a step that runs.
pub(super) const RUNNING: &str = "running";
/// Messages that are kept.
const MAX_MESSAGES: usize = 20;

/// A measurement that begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveTest {
    /// The id of its test.
    pub id: String,
    /// What it does, for people.
    pub title: String,
    /// Its number, from 1.
    pub number: usize,
    /// How many there will be, where that is known.
    pub of: Option<usize>,
}

/// What the run does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LiveStage {
    /// Targets are inspected and opened.
    #[default]
    Preparing,
    /// A file is laid out: bytes done and in all.
    Layout(u64, u64),
    /// Workers run, and what they do is not counted yet.
    Ramp,
    /// Workers run and are measured.
    Measuring,
    /// Between two tests.
    Between,
    /// The next run of a schedule is waited for.
    Waiting,
    /// Everything has been measured.
    Ended,
}

impl LiveStage {
    /// The word used in streams and on the screen.
    pub const fn name(&self) -> &'static str {
        match self {
            LiveStage::Preparing => "preparing",
            LiveStage::Layout(..) => "file layout",
            LiveStage::Ramp => "ramp",
            LiveStage::Measuring => "measuring",
            LiveStage::Between => "between tests",
            LiveStage::Waiting => "waiting",
            LiveStage::Ended => "ended",
        }
    }
}

/// How far a step of the plan is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LiveStepState {
    /// It is still to come.
    #[default]
    Planned,
    /// It runs.
    Running,
    /// It has ended.
    Ended(TestStatus),
}

impl LiveStepState {
    /// The word used in streams.
    pub const fn name(&self) -> &'static str {
        match self {
            LiveStepState::Planned => "planned",
            LiveStepState::Running => RUNNING,
            LiveStepState::Ended(status) => status.name(),
        }
    }
}

/// Headline figures of a test that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepFigures {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Mean completion latency, ns.
    pub clat_mean_ns: Option<f64>,
    /// 99th percentile of the completion latency, ns.
    pub clat_p99_ns: Option<u64>,
    /// Mean total latency, ns.
    pub lat_mean_ns: Option<f64>,
    /// 99th percentile of the total latency, ns.
    pub lat_p99_ns: Option<u64>,
}

/// One step of the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveStep {
    /// The id of its test.
    pub id: String,
    /// What it does, for people.
    pub title: String,
    /// How far it is.
    pub state: LiveStepState,
    /// What it measured, once it has ended.
    pub figures: Option<StepFigures>,
}

/// Completion latencies, as percentiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveLatency {
    /// Number of samples.
    pub samples: u64,
    /// Median, ns.
    pub p50: Option<u64>,
    /// 90 %, ns.
    pub p90: Option<u64>,
    /// 99 %, ns.
    pub p99: Option<u64>,
    /// 99.9 %, ns.
    pub p999: Option<u64>,
    /// The highest, ns, to the resolution of a histogram.
    pub max: Option<u64>,
}

impl LiveLatency {
    /// The percentiles of `latencies`; one beyond which no sample lies is absent.
    pub fn of(latencies: &Histogram) -> LiveLatency {
        let samples = latencies.samples();
        let carried =
            |percent: f64, of: u64| (samples >= of).then(|| latencies.percentile(percent)).flatten();
        LiveLatency {
            samples,
            p50: carried(50.0, 1),
            p90: carried(90.0, 10),
            p99: carried(99.0, 100),
            p999: carried(99.9, 1000),
            max: carried(100.0, 1),
        }
    }
}

/// A run that goes on.
#[derive(Clone, Debug, Default)]
pub struct LiveState {
    /// The command (`bench`).
    pub command: String,
    /// Where it runs and on what; empty before its targets are ready.
    pub host: String,
    /// The device, by a name that stays the same from run to run.
    pub device: String,
    /// The target.
    pub target: String,
    /// The type of the volume, where it is known.
    pub volume_type: String,
    /// Labels of the user.
    pub labels: BTreeMap<String, String>,
    /// The plan, as far as it is known, and what came of it.
    pub steps: Vec<LiveStep>,
    /// The test that runs, or ran last.
    pub test: Option<LiveTest>,
    /// What the run does.
    pub stage: LiveStage,
    /// What the latencies span: those of a ping are total latencies, in the places of completion latencies.
    pub span: LatencySpan,
    /// The latest snapshot.
    pub snapshot: Snapshot,
    /// Figures that only a ping has.
    pub ping: Option<Box<LivePing>>,
    /// The devices of a monitor, which has no tests.
    pub monitor: Option<Box<LiveMonitor>>,
    /// Rates and latencies over the time of the test.
    pub series: LiveSeries,
    /// Latencies of the measured part of the test so far.
    pub test_clat: Histogram,
    /// Requests of the run so far, ramps included: read, write, trim.
    pub run_ios: [u64; 3],
    /// Bytes of the run so far, ramps included: read, write, trim.
    pub run_bytes: [u64; 3],
    /// Latencies of the run so far, ramps included.
    pub run_clat: Histogram,
    /// Their sum, ns.
    pub run_clat_sum_ns: u128,
    /// What the tests that have ended tell.
    pub findings: Vec<Finding>,
    /// Messages for people while it runs, the latest last; so many at most.
    pub messages: Vec<String>,
    /// Time until the whole run is expected to end.
    pub time_left: Option<Nanos>,
    /// Changes with each event.
    pub version: u64,
}

impl LiveState {
    /// A run that has not begun, with the steps that are planned: id and title.
    pub fn new(steps: impl IntoIterator<Item = (String, String)>) -> LiveState {
        let step = |(id, title)| LiveStep { id, title, ..LiveStep::default() };
        LiveState { steps: steps.into_iter().map(step).collect(), ..LiveState::default() }
    }

    /// The target is ready; measuring begins.
    pub fn begin(&mut self, header: &RunHeader) {
        self.command = header.activity.kind().name().to_owned();
        self.host.clone_from(&header.host().hostname);
        self.device = header.device_identity();
        self.target.clone_from(&header.target);
        self.volume_type = header.volume_type().unwrap_or_default().to_owned();
        self.labels.clone_from(&header.labels);
        self.stage = LiveStage::Between;
        self.version += 1;
    }

    /// A file is laid out.
    pub fn lay_out(&mut self, done_bytes: u64, total_bytes: u64) {
        self.stage = LiveStage::Layout(done_bytes, total_bytes);
        self.version += 1;
    }

    /// A test begins.
    pub fn begin_test(&mut self, test: LiveTest) {
        let index = self.index_of(&test.id, &test.title);
        for step in self.steps.iter_mut().filter(|step| step.state == LiveStepState::Running) {
            step.state = LiveStepState::Ended(TestStatus::Incomplete);
        }
        self.steps[index].state = LiveStepState::Running;
        (self.series, self.test_clat) = (LiveSeries::default(), Histogram::default());
        self.snapshot = Snapshot::default();
        (self.test, self.stage) = (Some(test), LiveStage::Between);
        self.version += 1;
    }

    /// A test has ended, been skipped or failed.
    pub fn end_test(&mut self, test: &TestRecord) {
        let index = self.index_of(&test.id, &test.title);
        self.steps[index].state = LiveStepState::Ended(test.status);
        self.steps[index].figures = TestSummary::new(test).total.map(|total| StepFigures {
            iops: total.iops,
            bytes_per_second: total.bytes_per_second,
            clat_mean_ns: total.clat_ns.mean,
            clat_p99_ns: total.clat_ns.p99,
            lat_mean_ns: total.lat_ns.mean,
            lat_p99_ns: total.lat_ns.p99,
        });
        self.stage = LiveStage::Between;
        self.version += 1;
    }

    /// The place of a step in the plan, to which it is added where it was not planned.
    fn index_of(&mut self, id: &str, title: &str) -> usize {
        self.steps.iter().position(|step| step.id == id).unwrap_or_else(|| {
            let (id, title) = (id.to_owned(), title.to_owned());
            self.steps.push(LiveStep { id, title, ..LiveStep::default() });
            self.steps.len() - 1
        })
    }

    /// A tick of the running test.
    pub fn tick(&mut self, snapshot: &Snapshot) {
        self.stage = if snapshot.ramping { LiveStage::Ramp } else { LiveStage::Measuring };
        let point = LivePoint::of(snapshot);
        self.test_clat.merge(&histogram(&snapshot.clat_bins));
        self.run_clat.merge(&histogram(&point.latency_bins));
        self.run_clat_sum_ns += u128::from(snapshot.clat_sum_ns);
        for op in 0..self.run_ios.len() {
            self.run_ios[op] += snapshot.ios[op];
            self.run_bytes[op] += snapshot.bytes[op];
        }
        if point.span_ns > 0 {
            self.series.push(point);
        }
        self.snapshot = snapshot.clone();
        self.version += 1;
    }

    /// A ping begins; its latencies are those from a request to its answer.
    pub fn begin_ping(&mut self, ping: LivePing) {
        (self.ping, self.span) = (Some(Box::new(ping)), LatencySpan::Total);
        self.version += 1;
    }

    /// The ping stands so; its time left is that of its test.
    pub fn tick_ping(&mut self, progress: &PingProgress) {
        let Some(ping) = &mut self.ping else { return };
        let snapshot = ping.advance(progress);
        self.time_left = snapshot.remaining_ns.map(Nanos);
        self.tick(&snapshot);
    }

    /// A monitor begins: it watches devices and runs no test.
    pub fn begin_monitor(&mut self) {
        self.monitor = Some(Box::default());
        self.version += 1;
    }

    /// An interval of a monitor has ended.
    pub fn tick_monitor(&mut self, tick: &MonitorTick<'_>) {
        let monitor = self.monitor.get_or_insert_default();
        let tick_ns = tick.elapsed_ns.saturating_sub(monitor.elapsed_ns);
        monitor.advance(tick);
        let remaining_ns = monitor.remaining_ns();
        self.snapshot = Snapshot {
            elapsed_ns: tick.elapsed_ns,
            remaining_ns,
            tick_ns,
            host: tick.host,
            ..Snapshot::default()
        };
        (self.stage, self.time_left) = (LiveStage::Measuring, remaining_ns.map(Nanos));
        self.version += 1;
    }

    /// The run does this now.
    pub fn enter(&mut self, stage: LiveStage) {
        self.stage = stage;
        self.version += 1;
    }

    /// The tests so far tell this.
    pub fn set_findings(&mut self, findings: Vec<Finding>) {
        self.findings = findings;
        self.version += 1;
    }

    /// People are told this.
    pub fn add_message(&mut self, text: &str) {
        self.messages.push(text.to_owned());
        self.messages.drain(..self.messages.len().saturating_sub(MAX_MESSAGES));
        self.version += 1;
    }

    /// The length of the stall that goes on, ns.
    pub fn stalled_ns(&self) -> Option<u64> {
        Some(self.snapshot.stalled_ns).filter(|ns| *ns >= STALLED_FROM_NS)
    }

    /// Latencies of the last tick.
    pub fn latency_now(&self) -> LiveLatency {
        LiveLatency::of(&LivePoint::of(&self.snapshot).latencies())
    }

    /// Latencies of the measured part of the test so far.
    pub fn latency_so_far(&self) -> LiveLatency {
        LiveLatency::of(&self.test_clat)
    }

    /// The devices in the last tick, the target's own first; those of a monitor as they are listed, without those that were not
    /// there or did not respond.
    pub fn devices(&self) -> Vec<DeviceLoad> {
        let watched = self.monitor.iter().flat_map(|monitor| &monitor.devices);
        let watched = watched.filter_map(|device| DeviceLoad::of_interval(&device.now));
        self.snapshot.devices.iter().filter_map(DeviceLoad::of).chain(watched).collect()
    }

    /// The machine in the last tick.
    pub fn host_shares(&self) -> Option<HostShares> {
        HostShares::of(self.snapshot.host.as_ref()?)
    }
}
