//! Measures a surface: place by place with one request at a time and single requests in between, then the burst rate, the
//! rate at a high queue depth and the file benchmark; or scans it. Each test is handed out as it ends.

use fathom_analysis::surface::file::file_tests;
use fathom_analysis::surface::plan::{SATURATED_AGAIN, SATURATED_POINTS, SurfacePlace, Times};
use fathom_analysis::surface::point::{POINT, State, SurfacePoint};
use fathom_analysis::surface::probes::gap_ns;
use fathom_analysis::surface::scan::ByteRange;
use fathom_analysis::surface::{AGAIN_ACCESS, AGAIN_SATURATED, BURST, SATURATED, assess};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration};
use fathom_record::{Activity, ContentRecord, RunRecord, TestMeta, TestRecord};
use fathom_runner::Session;

use crate::AssessError;
use crate::drain::{BoundedJob, InFlight, MIN_DRAIN_NS, depth_bound};
use crate::findings::findings_of;
use crate::measure::{NamedJob, measure_in_turn};
use crate::steps::{StepObserver, Steps};
use crate::target::BenchTarget;

mod plan;
pub(crate) mod reader;
mod scan;

pub use plan::{BLOCK, Content, DEPTH, SurfacePlan, SurfaceSettings};
use reader::SurfaceReader;

/// A surface that is being measured.
struct SurfaceRun<'a> {
    plan: &'a SurfacePlan,
    steps: Steps<'a>,
    /// When it began, session ns.
    began: u64,
}

/// Measures `plan` on `session`.
///
/// # Errors
/// The working file could not be made or laid out; nothing has been measured then.
pub fn surface(
    plan: &SurfacePlan,
    session: &mut Session,
    observer: &mut dyn StepObserver,
) -> Result<RunRecord, AssessError> {
    let mut plan = plan.clone();
    let began = session.now();
    let header = plan.site.begin(Activity::Surface, &plan.settings.run, session, observer)?;
    let left_ns = plan.settings.budget.0.saturating_sub(session.now() - began);
    let steps = Steps::begin(header, &plan.settings.run, session, observer);
    let mut run = SurfaceRun { plan: &plan, began: session.now(), steps };
    if plan.settings.scan {
        run.scan();
    } else {
        run.measure(left_ns);
    }
    let mut record = run.steps.end();
    record.findings = findings_of(&record);
    Ok(record)
}

/// A read for inspection may take so long; then nothing more is inspected.
const LOOK_PATIENCE: Nanos = Nanos::from_secs(2);
/// One of so many batches of probes is made again.
const PROBED_AGAIN: usize = 8;
/// Most bytes of one.
const LOOK_BYTES: u64 = 65_536;

impl SurfaceRun<'_> {
    /// Every part in turn: what is modest first, what spends burst credit last.
    fn measure(&mut self, budget_ns: u64) {
        let plan = self.plan;
        let visits = plan.visits(budget_ns);
        let times = plan.times(budget_ns, visits.len());
        let saturated =
            if plan.parts.saturated { plan.saturated_places(SATURATED_POINTS) } else { Vec::new() };
        let rows = if plan.parts.file { file_tests(times.file_ns, plan.settings.depth) } else { Vec::new() };
        let batches = plan.probes(visits.len()).map_or(0, |probes| probes.batches(visits.len()));
        let again = match plan.has_first_accesses() {
            true if saturated.len() >= SATURATED_POINTS as usize => SATURATED_AGAIN as usize,
            _ => 0,
        };
        let again = again + if plan.has_first_accesses() { (batches + 1) / PROBED_AGAIN } else { 0 };
        let others = usize::from(plan.parts.burst) + saturated.len() + again + rows.len();
        self.steps.of = Some(visits.len() + others);
        self.places(&visits, &times);
        if plan.parts.burst && !self.steps.is_over() {
            let words = plan.burst(self.burst_offset(), times.burst_ns);
            self.run(BURST.to_owned(), "burst rate".to_owned(), &[(BURST, words)]);
        }
        self.saturated(&saturated, times.saturated_ns);
        if self.steps.is_over() {
            return;
        }
        for row in &rows {
            if self.steps.is_over() {
                return;
            }
            let (id, title) = (row.id.clone(), row.title.clone());
            match self.why_not(row.rw.writes(), row.block_size_bytes) {
                Some(reason) => {
                    let meta = TestMeta { id, title, fio: String::new() };
                    self.steps.keep(TestRecord::skipped(meta, reason));
                }
                None => self.run(id, title, &plan.file_row(row)),
            }
        }
    }

    /// Measures at a high queue depth, and at some places once more, between the first accesses to others.
    fn saturated(&mut self, places: &[SurfacePlace], time_ns: u64) {
        let plan = self.plan;
        let measured = assess(&self.steps.record);
        // What no medium answers is quick whatever the depth.
        let is_on_medium =
            |place: &&SurfacePlace| !measured.is_answered_elsewhere(place.offset, place.length);
        let places: Vec<&SurfacePlace> = places.iter().filter(is_on_medium).collect();
        let is_repeated = plan.has_first_accesses() && places.len() >= SATURATED_POINTS as usize;
        let depth = self.saturated_depth(places.first().copied(), time_ns);
        for (number, place) in places.iter().enumerate() {
            // Two places later, so that what is remembered of the last requests does not answer; no more than was read.
            let earlier = number.checked_sub(2).filter(|&at| is_repeated && at < SATURATED_AGAIN as usize);
            let again = earlier.and_then(|at| Some((AGAIN_SATURATED, self.part_read(places[at])?)));
            for (prefix, place) in std::iter::once((SATURATED, **place)).chain(again) {
                if self.steps.is_over() {
                    return;
                }
                let title = format!("QD {depth} at {}", bytes(place.offset));
                let title = if prefix == AGAIN_SATURATED { format!("{title} again") } else { title };
                let words = plan.saturated(&place, depth, time_ns);
                self.run(format!("{prefix}{}", place.offset), title, &[("saturated", words)]);
            }
        }
    }

    /// The queue depth whose requests the device completes in about the time of a place.
    fn saturated_depth(&mut self, place: Option<&SurfacePlace>, time_ns: u64) -> u32 {
        let plan = self.plan;
        let asked = plan.settings.depth;
        let Some(place) = place else { return asked };
        let in_flight = InFlight { depth: asked.into(), workers: 1, block_bytes: plan.saturated_block() };
        let (earlier, words) =
            (self.steps.record.tests.iter().collect(), plan.saturated(place, asked, time_ns));
        let limit = Nanos(time_ns.max(MIN_DRAIN_NS));
        let Some(bound) = depth_bound(&[BoundedJob { in_flight, earlier, words }], limit, self.steps.session)
        else {
            return asked;
        };
        let depth = u32::try_from(bound.depth).unwrap_or(asked);
        self.steps.note(format!(
            "queue depth {depth} instead of {asked}: {}; use a longer --budget",
            bound.reason()
        ));
        depth
    }

    /// The part of a place that was read at a high queue depth.
    fn part_read(&self, place: &SurfacePlace) -> Option<SurfacePlace> {
        let id = format!("{SATURATED}{}", place.offset);
        let test = self.steps.record.tests.iter().find(|test| test.id == id)?;
        let length = test.jobs.iter().map(|job| job.measured.read.bytes).sum();
        (length > 0).then_some(SurfacePlace { length, ..*place })
    }

    /// Visits the places.
    fn places(&mut self, visits: &[SurfacePlace], times: &Times) {
        let plan = self.plan;
        // Slow requests make places last longer than planned: twice the time is the end of it.
        let deadline = self.steps.session.now() + 2 * times.place_ns * visits.len() as u64;
        let probes = plan.probes(visits.len());
        let mut probed = Vec::new();
        let mut reader = self.reader(LOOK_BYTES as usize).filter(|_| !plan.settings.writes);
        for (number, place) in visits.iter().enumerate() {
            if self.steps.is_over() {
                return;
            }
            if self.steps.session.now() > deadline {
                let budget = duration(plan.settings.budget);
                self.steps.note(format!(
                    "the time budget ({budget}) ended after {number} of {} points; use a longer --budget",
                    visits.len()
                ));
                return;
            }
            let (id, title) = (format!("{POINT}{}", place.offset), format!("at {}", bytes(place.offset)));
            let batch = probes.filter(|probes| probes.is_due(number));
            let mut jobs = Vec::new();
            if let Some(probes) = &batch {
                // First, as where they are made again: the same seed then means the same requests.
                jobs.push(plan.probe(place, times, probes, gap_ns(&self.steps.record.tests)));
                probed.push(place);
            }
            jobs.extend(plan.place(place, times, batch.is_some()));
            let mut test = self.begin_and_measure(id, title, &jobs);
            if let Some(looker) = &reader {
                test.content = self.look(looker, &test);
                let was_stopped = self.steps.is_over();
                if test.content.is_none()
                    && !was_stopped
                    && SurfacePoint::of(&test, 0).is_some_and(|point| point.bytes > 0)
                {
                    reader = None;
                    self.steps.note(format!(
                        "data read from {} on could not be inspected: unwritten areas there are unknown",
                        bytes(place.offset)
                    ));
                }
            }
            self.steps.keep(test);
            // The same requests as after an earlier place, between first accesses.
            let is_turn = probed.len() % PROBED_AGAIN == PROBED_AGAIN - 1 && plan.has_first_accesses();
            if let Some(probes) = batch.filter(|_| is_turn) {
                let place = probed[probed.len() / PROBED_AGAIN];
                let (id, title) = (
                    format!("{AGAIN_ACCESS}{}", place.offset),
                    format!("probes of {} again", bytes(place.offset)),
                );
                let job = plan.probe(place, times, &probes, gap_ns(&self.steps.record.tests));
                self.run(id, title, &[job]);
            }
        }
    }

    /// A reader of the target's content; `None` where that is known, or the target is simulated.
    fn reader(&self, max_block: usize) -> Option<SurfaceReader> {
        let is_block_device = match self.plan.site.target {
            BenchTarget::File { .. } => false,
            BenchTarget::BlockDevice { .. } => true,
            BenchTarget::Directory { .. } | BenchTarget::Simulated(_) => return None,
        };
        let (site, direct) = (&self.plan.site, !self.plan.settings.run.buffered);
        Some(SurfaceReader::open(&site.file, site.size, is_block_device, direct, max_block))
    }

    /// Looks at the beginning, the middle and the end of what a test read.
    fn look(&self, reader: &SurfaceReader, test: &TestRecord) -> Option<ContentRecord> {
        let point = SurfacePoint::of(test, 0).filter(|point| point.bytes > 0)?;
        let session = self.steps.session;
        let mut found = ContentRecord::default();
        if matches!(self.plan.site.target, BenchTarget::File { .. }) {
            let range = ByteRange { offset: point.offset_bytes, length: point.bytes };
            found.is_hole = reader.is_hole(range, LOOK_PATIENCE, session)?;
        }
        let length = LOOK_BYTES.min(self.plan.settings.block);
        let last = point.bytes.saturating_sub(length) / length * length;
        let spans = [0, last / 2 / length * length, last]
            .map(|skip| ByteRange { offset: point.offset_bytes + skip, length });
        let looks = reader.read(spans.to_vec(), LOOK_PATIENCE, session);
        found.looked_bytes = length * spans.len() as u64;
        found.zero_bytes = length * looks.iter().filter(|look| look.is_zero).count() as u64;
        (looks.len() == spans.len()).then_some(found)
    }

    /// A place that surely was written: a burst of zeros from nowhere tells nothing.
    fn burst_offset(&self) -> u64 {
        let points = assess(&self.steps.record).points;
        let written = points.iter().find(|point| point.state == State::Measured && !point.is_zero);
        written.map_or(self.plan.site.size / 2, |point| point.offset_bytes)
    }

    /// Why a row of the file benchmark cannot be measured.
    fn why_not(&self, writes: bool, block: u64) -> Option<String> {
        if !block.is_multiple_of(self.plan.site.unit) {
            return Some(format!("direct I/O requires multiples of {} bytes", bytes(self.plan.site.unit)));
        }
        if block > self.plan.site.size {
            return Some(format!("the target has only {}", bytes(self.plan.site.size)));
        }
        self.plan.site.target.write_refusal().filter(|_| writes)
    }

    fn run(&mut self, id: String, title: String, jobs: &[NamedJob<'_>]) {
        let test = self.begin_and_measure(id, title, jobs);
        self.steps.keep(test);
    }

    fn begin_and_measure(&mut self, id: String, title: String, jobs: &[NamedJob<'_>]) -> TestRecord {
        let spent_ns = self.steps.session.now() - self.began;
        self.steps.next(&id, &title, spent_ns);
        measure_in_turn(id, title, jobs, self.steps.session, self.steps.observer)
    }
}

#[cfg(test)]
mod tests {
    use fathom_volume::VolumeModel;

    use super::*;
    use crate::MeasurementEvent;
    use crate::settings::RunSettings;
    use fathom_analysis::surface::Surface;
    use fathom_analysis::surface::plan::SurfaceParts;
    use fathom_engine::sim::FixedLatency;
    use fathom_model::Nanos;
    use fathom_record::TestStatus;
    use fathom_runner::RunObserver;

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
        let spread = surface.transfer_rate.unwrap();
        // 64 KiB per ms.
        let rate = 65_536_000.0;
        for value in [spread.min, spread.max, spread.mean, spread.median, spread.weighted_mean] {
            assert!(near(value, rate), "{spread:?}");
        }
        let saturated = surface.saturated_rate.unwrap();
        assert!(near(saturated.mean.unwrap(), 8.0 * 4.0 * rate), "{saturated:?}");
        assert!(near(surface.burst_rate.as_ref().unwrap().bytes_per_second.unwrap(), rate));
        assert_eq!((surface.access_lat_ns.samples, surface.access_lat_ns.p50), (1_000, Some(1_000_000)));
        assert_eq!((surface.probes.len(), &record.findings), (1_000, &Vec::new()));
        assert!(
            record.tests[0].fio.contains("--name=transfer") && record.tests[0].fio.contains("--stonewall")
        );
    }

    #[test]
    fn parts_can_be_chosen_and_the_file_benchmark_writes() {
        let parts =
            SurfaceParts { transfer: false, saturated: false, access: true, burst: false, file: true };
        let content = Content::Mixed;
        let (_, surface) =
            measured(SurfaceSettings { parts: Some(parts), content, ..SurfaceSettings::default() });
        assert_eq!(
            (surface.points.len(), surface.burst_rate, surface.access_lat_ns.samples),
            (0, None, 1_000)
        );
        let iops: Vec<Option<u64>> =
            surface.file_benchmark[..6].iter().map(|row| row.iops.map(|iops| iops.round() as u64)).collect();
        assert_eq!(surface.file_benchmark.len(), 36);
        assert_eq!(iops, [1000, 1000, 1000, 1000, 8000, 8000].map(Some));
    }

    #[test]
    fn a_stop_keeps_what_was_measured() {
        struct StopAfter(fathom_runner::StopHandle, usize);
        impl RunObserver for StopAfter {}
        impl StepObserver for StopAfter {
            fn step(&mut self, event: &MeasurementEvent) {
                self.1 -= usize::from(matches!(event, MeasurementEvent::StepEnded(_)));
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
        assert!(near(surface.transfer_rate.unwrap().mean, 1_048_576_000.0));
    }
}
