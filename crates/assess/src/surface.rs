//! Measures a surface: place by place with one request at a time and single requests in between, then the burst rate, the
//! rate with many requests under way and the file benchmark; or scans it. Each test is handed out as it ends.

use std::time::Duration;

use fathom_analysis::surface::{BURST, SATURATED, assess};
use fathom_analysis::surface_file::file_tests;
use fathom_analysis::surface_findings::findings;
use fathom_analysis::surface_plan::{Place, SATURATED_POINTS, Times};
use fathom_analysis::surface_point::{POINT, Point, State};
use fathom_model::units::{bytes, duration};
use fathom_record::{ContentRecord, RunHeader, RunRecord, TestMeta, TestRecord, TestStatus};
use fathom_runner::{RunObserver, Session, WritePermit};

use crate::AssessError;
use crate::header::Heading;
use crate::layout::{Layout, lay_out};
use crate::measure::{Job, measure_in_turn};
use crate::target::BenchTarget;

mod plan;
mod reader;
mod scan;

pub use plan::{BLOCK, Content, DEPTH, SurfacePlan, SurfaceSettings};
use reader::{Reader, Source};

/// A test that is about to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it does, for people.
    pub title: String,
    /// Its number, from 1.
    pub number: usize,
    /// How many there will be.
    pub of: usize,
    /// ns of the budget that are spent.
    pub spent_ns: u64,
}

/// Is told how a surface goes on. Every method may be left out.
pub trait SurfaceObserver: RunObserver {
    /// The target is ready; measuring begins.
    fn begun(&mut self, _header: &RunHeader) {}
    /// A test begins.
    fn test_begun(&mut self, _step: &Step) {}
    /// A test has ended, been skipped or failed.
    fn test_ended(&mut self, _test: &TestRecord) {}
}

impl SurfaceObserver for () {}

/// A surface that is being measured.
struct Run<'a> {
    plan: &'a SurfacePlan,
    session: &'a Session,
    observer: &'a mut dyn SurfaceObserver,
    record: RunRecord,
    /// When it began, session ns.
    began: u64,
    /// Number of tests that are planned altogether.
    of: usize,
}

/// Measures `plan` on `session`.
///
/// # Errors
/// The working file could not be made or laid out; nothing has been measured then.
pub fn surface(
    plan: &SurfacePlan,
    session: &mut Session,
    observer: &mut dyn SurfaceObserver,
) -> Result<RunRecord, AssessError> {
    session.set_permit(WritePermit { destroy: plan.settings.run.destroy.clone(), own_command: true });
    let mut header = header(plan, session);
    let began = session.now();
    let layout = Layout {
        target: &plan.target,
        file: &plan.file,
        size: plan.size,
        direct: !plan.settings.run.buffered,
        limit: plan.layout_time,
    };
    header.size_bytes = lay_out(&layout, session, observer, &mut header.notes)?;
    let plan = &SurfacePlan { size: header.size_bytes, ..plan.clone() };
    let left_ns = plan.settings.budget.0.saturating_sub(session.now() - began);
    observer.begun(&header);
    let record = RunRecord { status: TestStatus::Complete, header, ..RunRecord::default() };
    let began = session.now();
    let mut run = Run { plan, session, observer, record, began, of: 0 };
    if plan.settings.scan {
        run.scan();
    } else {
        run.measure(left_ns);
    }
    let mut record = run.record;
    if let Some(reason) = session.stop_handle().reason() {
        record.header.interrupted = Some(reason);
        record.status = TestStatus::Incomplete;
    } else if record.tests.iter().all(|test| test.status == TestStatus::Failed) {
        record.status = TestStatus::Failed;
    }
    record.findings = findings(&record, &assess(&record));
    Ok(record)
}

fn header(plan: &SurfacePlan, session: &Session) -> RunHeader {
    let heading = Heading {
        kind: "surface",
        target_name: plan.target_name(),
        said: &plan.settings.run,
        suite: None,
        seed: Some(plan.seed),
        notes: &plan.notes,
    };
    crate::header::header(&heading, session)
}

/// How long a look at what was read may take before nobody looks any more.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);
/// Most bytes of one look.
const LOOK_BYTES: u64 = 65_536;

impl Run<'_> {
    /// Every part in turn: what is modest first, what spends burst credit last.
    fn measure(&mut self, budget_ns: u64) {
        let plan = self.plan;
        let visits = plan.visits(budget_ns);
        let times = plan.times(budget_ns, visits.len());
        let saturated =
            if plan.parts.saturated { plan.saturated_places(SATURATED_POINTS) } else { Vec::new() };
        let rows = if plan.parts.file { file_tests(times.file_ns, plan.settings.depth) } else { Vec::new() };
        self.of = visits.len() + usize::from(plan.parts.burst) + saturated.len() + rows.len();
        self.places(&visits, &times);
        if plan.parts.burst && !self.is_over() {
            let said = plan.burst(self.burst_offset(), times.burst_ns);
            self.run((BURST.to_owned(), "burst rate".to_owned()), &[(BURST, said)]);
        }
        let measured = assess(&self.record);
        for place in &saturated {
            if self.is_over() {
                return;
            }
            // What no medium answers is quick whatever the depth.
            if measured.is_answered_elsewhere(place.offset, place.length) {
                continue;
            }
            let title = format!("{} at a time at {}", plan.settings.depth, bytes(place.offset));
            let said = plan.saturated(place, times.saturated_ns);
            self.run((format!("{SATURATED}{}", place.offset), title), &[("saturated", said)]);
        }
        for row in &rows {
            if self.is_over() {
                return;
            }
            let meta = (row.id.clone(), row.title.clone());
            match self.why_not(row.rw.writes(), row.block) {
                Some(reason) => {
                    let meta = TestMeta { id: meta.0, title: meta.1, fio: String::new() };
                    self.keep(TestRecord::skipped(meta, reason));
                }
                None => self.run(meta, &plan.file_row(row)),
            }
        }
    }

    /// Visits the places.
    fn places(&mut self, visits: &[Place], times: &Times) {
        let plan = self.plan;
        // Slow requests make places last longer than planned: twice the time is the end of it.
        let deadline = self.session.now() + 2 * times.place_ns * visits.len() as u64;
        let probes = plan.probes_each(visits.len());
        let mut reader = self.reader(LOOK_BYTES as usize).filter(|_| !plan.settings.writes);
        for (number, place) in visits.iter().enumerate() {
            if self.is_over() {
                return;
            }
            if self.session.now() > deadline {
                let budget = duration(plan.settings.budget);
                self.record.header.notes.push(format!(
                    "the time ({budget}) was over after {number} of {} points; --budget gives more",
                    visits.len()
                ));
                return;
            }
            let meta = (format!("{POINT}{}", place.offset), format!("at {}", bytes(place.offset)));
            let jobs = plan.place(place, times, probes);
            let mut test = self.begin_and_measure(meta, &jobs);
            if let Some(looker) = &reader {
                test.content = self.look(looker, &test);
                let was_stopped = self.is_over();
                if test.content.is_none()
                    && !was_stopped
                    && Point::of(&test, 0).is_some_and(|point| point.bytes > 0)
                {
                    reader = None;
                    self.record.header.notes.push(format!(
                        "what was read could not be looked at from {} on: nothing is said of unwritten places",
                        bytes(place.offset)
                    ));
                }
            }
            self.keep(test);
        }
    }

    /// A reader of what the target holds; `None` where that is known, or nothing is really there.
    fn reader(&self, max_block: usize) -> Option<Reader> {
        let is_block_device = match self.plan.target {
            BenchTarget::File { .. } => false,
            BenchTarget::BlockDevice { .. } => true,
            BenchTarget::Directory { .. } | BenchTarget::Simulated(_) => return None,
        };
        Reader::start(Source {
            path: self.plan.file.clone(),
            size: self.plan.size,
            is_block_device,
            direct: !self.plan.settings.run.buffered,
            max_block,
        })
    }

    /// Looks at the beginning, the middle and the end of what a test read.
    fn look(&self, reader: &Reader, test: &TestRecord) -> Option<ContentRecord> {
        let point = Point::of(test, 0).filter(|point| point.bytes > 0)?;
        let mut found = ContentRecord::default();
        if matches!(self.plan.target, BenchTarget::File { .. }) {
            found.is_hole = reader.is_hole(point.offset, point.bytes, LOOK_PATIENCE, self.session)?;
        }
        let length = LOOK_BYTES.min(self.plan.settings.block);
        let last = point.bytes.saturating_sub(length) / length * length;
        for skip in [0, last / 2 / length * length, last] {
            let look = reader.read(point.offset + skip, length as u32, LOOK_PATIENCE, self.session)?;
            found.looked_bytes += length;
            found.zero_bytes += if look.is_zero { length } else { 0 };
        }
        Some(found)
    }

    /// A place that surely was written: a burst of zeros from nowhere tells nothing.
    fn burst_offset(&self) -> u64 {
        let points = assess(&self.record).points;
        let written = points.iter().find(|point| point.state == State::Measured && !point.is_zero);
        written.map_or(self.plan.size / 2, |point| point.offset)
    }

    /// Why a row of the file benchmark cannot be measured.
    fn why_not(&self, writes: bool, block: u64) -> Option<String> {
        if !block.is_multiple_of(self.plan.unit) {
            return Some(format!("direct requests are multiples of {} here", bytes(self.plan.unit)));
        }
        if block > self.plan.size {
            return Some(format!("there are only {}", bytes(self.plan.size)));
        }
        self.plan.target.write_refusal().filter(|_| writes)
    }

    fn is_over(&self) -> bool {
        self.session.stop_handle().is_requested()
    }

    fn run(&mut self, meta: (String, String), jobs: &[Job<'_>]) {
        let test = self.begin_and_measure(meta, jobs);
        self.keep(test);
    }

    fn begin_and_measure(&mut self, meta: (String, String), jobs: &[Job<'_>]) -> TestRecord {
        self.observer.test_begun(&Step {
            title: meta.1.clone(),
            number: self.record.tests.len() + 1,
            of: self.of,
            spent_ns: self.session.now() - self.began,
        });
        measure_in_turn(meta, jobs, self.session, self.observer)
    }

    fn keep(&mut self, test: TestRecord) {
        self.observer.test_ended(&test);
        if !test.fio.is_empty() {
            self.record.header.job_text.push_str(&test.fio);
            self.record.header.job_text.push('\n');
        }
        self.record.tests.push(test);
    }
}

#[cfg(test)]
mod tests {
    use fathom_volume::VolumeModel;

    use super::*;
    use crate::settings::RunSettings;
    use fathom_analysis::surface::Surface;
    use fathom_analysis::surface_plan::Parts;
    use fathom_engine::sim::FixedLatency;
    use fathom_model::Nanos;

    const GIB: u64 = 1 << 30;

    /// 1 ms per request, eight at once.
    fn measured(settings: SurfaceSettings) -> (RunRecord, Surface) {
        let millis = Nanos::from_millis(1);
        let model = FixedLatency { read: millis, write: millis, flush: millis, parallelism: 8 };
        let settings = SurfaceSettings { run: RunSettings { seed: Some(1), ..settings.run }, ..settings };
        let plan =
            SurfacePlan::on(BenchTarget::simulated("simulated", VolumeModel::unlimited(GIB)), settings)
                .unwrap();
        let record = surface(&plan, &mut Session::simulated(model, GIB), &mut ()).unwrap();
        let surface = assess(&record);
        (record, surface)
    }

    fn near(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 0.02
    }

    #[test]
    fn an_even_device_has_one_rate_everywhere() {
        let (record, surface) = measured(SurfaceSettings::default());
        assert_eq!(
            (record.status, surface.points.len(), surface.count("measured")),
            (TestStatus::Complete, 200, 200)
        );
        let spread = surface.transfer.unwrap();
        // 64 KiB per ms.
        let rate = 65_536_000.0;
        for value in [spread.min, spread.max, spread.mean, spread.median, spread.weighted_mean] {
            assert!(near(value, rate), "{spread:?}");
        }
        assert!(near(surface.saturated_rate().unwrap(), 8.0 * 4.0 * rate), "{:?}", surface.saturated);
        assert!(near(surface.burst.as_ref().unwrap().bytes_per_second.unwrap(), rate));
        assert_eq!((surface.access.samples, surface.access.p50), (1_000, Some(1_000_000)));
        assert_eq!((surface.probes.len(), &record.findings), (1_000, &Vec::new()));
        assert!(
            record.tests[0].fio.contains("--name=transfer") && record.tests[0].fio.contains("--stonewall")
        );
    }

    #[test]
    fn parts_can_be_chosen_and_the_file_benchmark_writes() {
        let parts = Parts { transfer: false, saturated: false, access: true, burst: false, file: true };
        let content = Content::Mixed;
        let (_, surface) =
            measured(SurfaceSettings { parts: Some(parts), content, ..SurfaceSettings::default() });
        assert_eq!((surface.points.len(), surface.burst, surface.access.samples), (0, None, 1_000));
        let iops: Vec<Option<u64>> =
            surface.file[..6].iter().map(|row| row.iops.map(|iops| iops.round() as u64)).collect();
        assert_eq!(surface.file.len(), 36);
        assert_eq!(iops, [1000, 1000, 1000, 1000, 8000, 8000].map(Some));
    }

    #[test]
    fn a_stop_keeps_what_was_measured() {
        struct StopAfter(fathom_runner::StopHandle, usize);
        impl RunObserver for StopAfter {}
        impl SurfaceObserver for StopAfter {
            fn test_ended(&mut self, _test: &TestRecord) {
                self.1 -= 1;
                if self.1 == 0 {
                    self.0.request("signal 2");
                }
            }
        }
        let millis = Nanos::from_millis(1);
        let model = FixedLatency { read: millis, write: millis, flush: millis, parallelism: 8 };
        let plan = SurfacePlan::on(
            BenchTarget::simulated("simulated", VolumeModel::unlimited(GIB)),
            SurfaceSettings::default(),
        )
        .unwrap();
        let mut session = Session::simulated(model, GIB);
        let mut observer = StopAfter(session.stop_handle(), 3);
        let record = surface(&plan, &mut session, &mut observer).unwrap();
        assert_eq!((record.tests.len(), record.status), (3, TestStatus::Incomplete));
        assert_eq!(record.header.interrupted.as_deref(), Some("signal 2"));
    }

    #[test]
    fn a_scan_reads_everything_once() {
        let (record, surface) = measured(SurfaceSettings { scan: true, ..SurfaceSettings::default() });
        let scan = surface.scan.unwrap();
        assert_eq!((scan.scanned_bytes, scan.unreadable.len(), scan.slow.len()), (GIB, 0, 0));
        assert_eq!((record.status, record.tests.len()), (TestStatus::Complete, 16));
        assert!(near(surface.transfer.unwrap().mean, 1_048_576_000.0));
    }
}
