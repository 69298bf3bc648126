//! A run that goes on in another process, from the lines of its live stream, and what a page shows of it. Pure.

use fathom_model::{Nanos, Op, units};
use fathom_record::latency_bin;
use serde::Deserialize;

use super::json::{LatencyLine, OpLine};
use super::{LiveLatency, LiveStage, LiveTest, RUNNING, StepFigures};
use super::{LivePoint, LiveSeries};
use crate::axis_text::{MIB, latency_text, rate_text, time_axis};
use crate::page::axes;
use crate::view::{
    Axis, Block, Cell, Column, Front, FrontFigure, Plot, PlotForm, PlotPoint, PlotSeries, Row, Table, Tone,
    View,
};

/// Columns of a chart at most.
const MAX_COLUMNS: usize = 160;

/// A run that is followed.
#[derive(Clone, Debug, Default)]
pub struct FollowedRun {
    /// The command (`bench`).
    pub command: String,
    /// The target.
    pub target: String,
    stage: String,
    /// Bytes of a file layout: done and in all.
    layout: Option<(u64, u64)>,
    test: Option<LiveTest>,
    steps: Vec<FollowedStep>,
    run_remaining_ns: Option<u64>,
    /// The latest snapshot; as it is before the first.
    snapshot: SnapshotLine,
    series: LiveSeries,
}

/// A line of any type, as far as a page shows what is in it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamLine {
    #[serde(rename = "type")]
    kind: String,
    command: String,
    target: String,
    stage: String,
    test: Option<TestLine>,
    run_remaining_ns: Option<u64>,
    done_bytes: u64,
    total_bytes: u64,
    steps: Vec<FollowedStep>,
    points: Vec<LivePoint>,
    #[serde(flatten)]
    snapshot: SnapshotLine,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TestLine {
    #[serde(flatten)]
    test: LiveTest,
    status: String,
    figures: Option<StepFigures>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SnapshotLine {
    elapsed_ns: u64,
    remaining_ns: Option<u64>,
    interval_ns: u64,
    in_flight: u64,
    stalled_ns: Option<u64>,
    read: OpLine,
    write: OpLine,
    trim: OpLine,
    clat_ns: LatencyLine,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct FollowedStep {
    id: String,
    title: String,
    state: String,
    figures: Option<StepFigures>,
}

impl FollowedRun {
    /// Takes the next line of the stream; returns false for one that does not belong to it.
    pub fn take(&mut self, line: &str) -> bool {
        let Ok(line) = serde_json::from_str::<StreamLine>(line) else { return false };
        (self.command, self.target) = (line.command.clone(), line.target.clone());
        match line.kind.as_str() {
            "state" => {
                self.stage = line.stage;
                self.test = line.test.map(|line| line.test);
                self.run_remaining_ns = line.run_remaining_ns;
                self.steps = line.steps;
                self.series = LiveSeries::default();
                line.points.into_iter().for_each(|point| self.series.push(point));
            }
            "layout" => {
                self.stage = LiveStage::Layout(0, 0).name().to_owned();
                self.layout = Some((line.done_bytes, line.total_bytes));
            }
            "test_begin" => self.begin(line.test.map(|line| line.test).unwrap_or_default()),
            "snapshot" => self.tick(line),
            "test_end" => {
                let Some(TestLine { test, status, figures }) = line.test else { return true };
                let step = self.step(&test);
                (step.state, step.figures) = (status, figures);
                self.stage = LiveStage::Between.name().to_owned();
            }
            "end" => self.stage = LiveStage::Ended.name().to_owned(),
            _ => {}
        }
        true
    }

    fn begin(&mut self, test: LiveTest) {
        self.step(&test).state = RUNNING.to_owned();
        self.stage = LiveStage::Between.name().to_owned();
        (self.series, self.snapshot) = (LiveSeries::default(), SnapshotLine::default());
        (self.test, self.layout) = (Some(test), None);
    }

    fn tick(&mut self, line: StreamLine) {
        let (snapshot, stage) = (line.snapshot, line.stage);
        let ops = snapshot.ops();
        let iops = ops.map(|op| op.iops).iter().sum();
        let bins = &snapshot.clat_ns.now.bins;
        let point = LivePoint {
            span_ns: snapshot.interval_ns,
            ios: ops.map(|op| op.ios),
            bytes: ops.map(|op| op.bytes),
            iops_range: (iops, iops),
            latency_bins: bins.iter().map(|&(edge_ns, count)| (latency_bin(edge_ns) as u16, count)).collect(),
            in_flight: snapshot.in_flight,
            is_ramp: stage == LiveStage::Ramp.name(),
            ..LivePoint::default()
        };
        if point.span_ns > 0 {
            self.series.push(point);
        }
        (self.stage, self.snapshot, self.run_remaining_ns) = (stage, snapshot, line.run_remaining_ns);
    }

    /// The step of a test, which is added where it was not planned.
    fn step(&mut self, test: &LiveTest) -> &mut FollowedStep {
        let place = self.steps.iter().position(|step| step.id == test.id).unwrap_or(self.steps.len());
        if place == self.steps.len() {
            let (id, title) = (test.id.clone(), test.title.clone());
            self.steps.push(FollowedStep { id, title, ..FollowedStep::default() });
        }
        &mut self.steps[place]
    }

    /// What a page shows of it now.
    pub fn view(&self) -> View {
        let mut plots = self.plots().into_iter();
        let front = Front { plot: plots.next(), title: "Now", figures: self.figures(), uses: Vec::new() };
        let mut view = View { front, ..View::default() };
        view.warn("Stalled", self.snapshot.stalled_ns.map(|ns| format!("for {}", Cell::duration(ns).text)));
        view.push("Running test", [Block::Plots(plots.collect())]);
        view.push("Plan", [Block::Table(self.plan())]);
        view
    }

    fn figures(&self) -> Vec<FrontFigure> {
        let snapshot = &self.snapshot;
        let stage = match self.layout.filter(|_| self.stage == LiveStage::Layout(0, 0).name()) {
            Some((done, total)) => {
                format!("{}: {} of {}", self.stage, units::bytes(done), units::bytes(total))
            }
            None => self.stage.clone(),
        };
        let test = self.test.as_ref().map(|test| match test.of {
            Some(of) => format!("{} ({} of {of})", test.title, test.number),
            None => test.title.clone(),
        });
        let is_measured = snapshot.interval_ns > 0;
        let measured = |cell: Cell| Some(cell).filter(|_| is_measured);
        let ops = snapshot.ops();
        let latency = |ns: Option<u64>| ns.map(Cell::latency);
        let (now, so_far) = (&snapshot.clat_ns.now.percentiles, &snapshot.clat_ns.so_far);
        let figures = [
            ("Stage", Some(stage.into())),
            ("Test", test.map(Into::into)),
            ("IOPS", measured(Cell::iops(ops.iter().map(|op| op.iops).sum()))),
            ("Bandwidth", measured(Cell::rate(ops.iter().map(|op| op.bytes_per_second).sum()))),
            ("Median latency, last half second", latency(now.p50)),
            ("p99 latency, last half second", latency(now.p99)),
            ("Median latency, test so far", latency(so_far.p50)),
            ("p99 latency, test so far", latency(so_far.p99)),
            ("In flight", measured(Cell::count(snapshot.in_flight))),
            ("Left of the test", snapshot.remaining_ns.map(whole_seconds)),
            ("Left of the run", self.run_remaining_ns.map(whole_seconds)),
        ];
        figures.into_iter().filter_map(|(label, cell)| Some(FrontFigure::new(label, cell?))).collect()
    }

    fn plan(&self) -> Table {
        let columns = [
            Column::left("test"),
            Column::left("state"),
            Column::right("IOPS"),
            Column::right("MiB/s"),
            Column::right("mean latency"),
            Column::right("p99"),
        ];
        let row = |step: &FollowedStep| {
            let tone = match step.state.as_str() {
                "planned" | "skipped" => Tone::Dim,
                "failed" | "incomplete" => Tone::Alarm,
                _ => Tone::Normal,
            };
            let figures = step.figures.as_ref();
            let cells: [Cell; 6] = [
                step.title.as_str().into(),
                step.state.as_str().into(),
                figures.map(|figures| Cell::iops(figures.iops)).into(),
                figures.map(|figures| Cell::mebibytes(figures.bytes_per_second)).into(),
                figures.and_then(|figures| figures.clat_mean_ns.map(Cell::mean_latency)).into(),
                figures.and_then(|figures| figures.clat_p99_ns.map(Cell::latency)).into(),
            ];
            Row::new(cells).toned(tone)
        };
        Table::new(columns, self.steps.iter().map(row))
    }

    /// Rates and latencies over the time of the test, on an axis as long as it is planned.
    fn plots(&self) -> Vec<Plot> {
        let columns = self.series.columns(MAX_COLUMNS);
        let mut stretches: Vec<(f64, f64, &LivePoint)> = Vec::with_capacity(columns.len());
        let mut to = 0;
        for point in &columns {
            let from = to;
            to += point.span_ns;
            stretches.push((from as f64, to as f64, point));
        }
        let time = || time_axis(0, to + self.snapshot.remaining_ns.unwrap_or(0));
        let series = |name: &str, y: &dyn Fn(&LivePoint) -> Option<f64>| {
            let point = |&(from, to, point): &(f64, f64, &LivePoint)| {
                Some(PlotPoint { from, to, y: y(point)?, interval: None })
            };
            PlotSeries { name: name.to_owned(), points: stretches.iter().filter_map(point).collect() }
        };
        let used: Vec<usize> = (0..3).filter(|&op| columns.iter().any(|point| point.ios[op] > 0)).collect();
        let each = |count: &dyn Fn(&LivePoint, usize) -> f64| -> Vec<PlotSeries> {
            let rate = |point: &LivePoint, op| count(point, op) * 1e9 / point.span_ns.max(1) as f64;
            used.iter().map(|&op| series(Op::DATA[op].name(), &|point| Some(rate(point, op)))).collect()
        };
        let percentile = |name: &str, of: fn(&LiveLatency) -> Option<u64>| {
            series(name, &|point| of(&LiveLatency::of(&point.latencies())).map(|ns| ns.max(1) as f64))
        };
        let iops = each(&|point, op| point.ios[op] as f64);
        let bandwidth = each(&|point, op| point.bytes[op] as f64 / MIB);
        let latencies = vec![
            percentile("p50", |latency| latency.p50),
            percentile("p99", |latency| latency.p99),
            percentile("maximum", |latency| latency.max),
        ];
        let linear = |label: &str| Axis::linear(label, rate_text);
        let latency = Axis::logarithmic("latency", latency_text);
        let plots = [
            axes::plot("IOPS over time", PlotForm::Steps, time(), linear("IOPS"), iops),
            axes::plot("Bandwidth over time", PlotForm::Steps, time(), linear("MiB/s"), bandwidth),
            axes::plot("Completion latency over time", PlotForm::Steps, time(), latency, latencies),
        ];
        plots.into_iter().flatten().collect()
    }
}

impl SnapshotLine {
    const fn ops(&self) -> [OpLine; 3] {
        [self.read, self.write, self.trim]
    }
}

/// A time that is an estimate.
fn whole_seconds(ns: u64) -> Cell {
    Cell::duration(Nanos::from_secs(ns.div_ceil(1_000_000_000)).0)
}

#[cfg(test)]
mod tests {
    use fathom_record::{RunHeader, Snapshot, TestRecord, TestStatus};

    use super::super::LiveState;
    use super::super::json::{LinePlace, LiveLine, write};
    use super::*;

    fn line(line: LiveLine<'_>, state: &LiveState) -> String {
        let mut text = Vec::new();
        write(line, state, LinePlace::default(), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn snapshot() -> Snapshot {
        Snapshot {
            tick_ns: 500_000_000,
            remaining_ns: Some(1_500_000_000),
            iops: [300.0, 0.0, 0.0],
            bytes_per_second: [300.0 * 4096.0, 0.0, 0.0],
            ios: [150, 0, 0],
            bytes: [150 * 4096, 0, 0],
            clat_bins: vec![(latency_bin(200_000) as u16, 150)],
            in_flight: 4,
            ..Snapshot::default()
        }
    }

    fn texts(run: &FollowedRun) -> Vec<String> {
        let figures = run.view().front.figures;
        figures.iter().map(|figure| format!("{}: {}", figure.label, figure.cell.text)).collect()
    }

    #[test]
    fn a_follower_knows_what_the_run_knows_whenever_it_begins() {
        let mut state = LiveState::new([("rand-read".to_owned(), "Random read".to_owned())]);
        state.begin(&RunHeader { target: "/dev/<b>".to_owned(), ..RunHeader::default() });
        let test =
            LiveTest { id: "rand-read".to_owned(), title: "Random read".to_owned(), number: 1, of: Some(2) };
        let mut early = FollowedRun::default();
        assert!(early.take(&line(LiveLine::State, &state)));
        state.begin_test(test);
        assert!(early.take(&line(LiveLine::TestBegun, &state)));
        for _ in 0..4 {
            state.tick(&snapshot());
            assert!(early.take(&line(LiveLine::Snapshot, &state)));
        }
        let mut late = FollowedRun::default();
        assert!(late.take(&line(LiveLine::State, &state)));
        assert_eq!(early.series.points(), late.series.points());
        state.tick(&snapshot());
        for run in [&mut early, &mut late] {
            assert!(run.take(&line(LiveLine::Snapshot, &state)));
            let texts = texts(run);
            for text in ["Stage: measuring", "Test: Random read (1 of 2)", "IOPS: 300", "In flight: 4"] {
                assert!(texts.iter().any(|found| found == text), "{text} is not in {texts:?}");
            }
            assert_eq!(run.target, "/dev/<b>");
            let view = run.view();
            let titles: Vec<&str> = view.sections.iter().map(|section| section.title.as_str()).collect();
            assert_eq!(titles, ["Running test", "Plan"]);
            let Block::Plots(plots) = &view.sections[0].blocks[0] else { panic!("{view:?}") };
            assert_eq!(plots.len(), 2);
            let plots = [view.front.plot.as_ref().expect("it has a chart")];
            assert_eq!(plots[0].series[0].points.len(), 5);
            assert_eq!(plots[0].series[0].points[4].y, 300.0);
        }
    }

    #[test]
    fn results_stand_in_the_plan() {
        let mut run = FollowedRun::default();
        let test = TestRecord {
            id: "rand-read".to_owned(),
            title: "Random read".to_owned(),
            status: TestStatus::Failed,
            ..TestRecord::default()
        };
        assert!(run.take(&line(LiveLine::TestEnded(&test), &LiveState::default())));
        let view = run.view();
        let Block::Table(plan) = &view.sections[0].blocks[0] else { panic!("{view:?}") };
        let texts: Vec<&str> = plan.rows[0].cells.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!((texts[0], texts[1], plan.rows[0].tone), ("Random read", "failed", Tone::Alarm));
        for other in ["", "{", "[]", "\u{1b}[2J", "{\"type\":\"snapshot\",\"elapsed_ns\":-1}"] {
            assert!(!run.take(other), "{other}");
        }
        assert!(run.take("{\"type\":\"later\",\"new\":[1]}"), "types of later versions are passed over");
    }
}
