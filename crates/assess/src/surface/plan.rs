//! What a surface is going to do: its settings held against the target, and fio's options for each of its tests.

use fathom_analysis::plateau::{SETTLE_NS, runtime_within};
use fathom_analysis::surface::file::{FileRowKind, FileTest, LADDER_RANGE};
use fathom_analysis::surface::plan::{
    SurfaceParts, SurfacePlace, Times, VisitOrder, places, points, time_of_places, times, visits,
};
use fathom_analysis::surface::point::{ACCESS, SEEK, TRANSFER};
use fathom_analysis::surface::probes::{ProbePlan, probes};
use fathom_model::Nanos;
use fathom_model::units::bytes;
use fathom_record::confidence::LIMITER_SLICE_NS;

use crate::AssessError;
use crate::planned::{goes_on_after_errors, pair, seed_pair, size_word, time_word};
use crate::site::RunSettings;
use crate::site::{JobWords, Site};
use crate::target::BenchTarget;
use crate::traffic::{OfferedTraffic, PlannedTraffic};

/// What the file benchmark writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Nothing that can be made smaller.
    #[default]
    Random,
    /// Zeros.
    Zero,
    /// Half zeros, half random: half of the range where it is written in order, half of the time where not.
    Mixed,
}

impl Content {
    /// All of them.
    pub const ALL: [Content; 3] = [Content::Random, Content::Zero, Content::Mixed];

    /// As typed.
    pub const fn name(self) -> &'static str {
        match self {
            Content::Random => "random",
            Content::Zero => "zero",
            Content::Mixed => "mixed",
        }
    }
}

/// What was asked for.
#[derive(Clone, Debug)]
pub struct SurfaceSettings {
    /// What every run is asked for.
    pub run: RunSettings,
    /// What is measured; `None` = what suits the target.
    pub parts: Option<SurfaceParts>,
    /// Read every block once instead.
    pub scan: bool,
    /// Write instead of read.
    pub writes: bool,
    /// Places; `None` = as many as suit the area and the time.
    pub points: Option<u32>,
    /// Bytes per request of the transfer.
    pub block: u64,
    /// The order of the places.
    pub order: VisitOrder,
    /// Requests in flight where many are.
    pub depth: u32,
    /// Time for everything, laying out included.
    pub budget: Nanos,
    /// What the file benchmark writes.
    pub content: Content,
}

impl Default for SurfaceSettings {
    fn default() -> Self {
        SurfaceSettings {
            run: RunSettings::default(),
            parts: None,
            scan: false,
            writes: false,
            points: None,
            block: BLOCK,
            order: VisitOrder::default(),
            depth: DEPTH,
            budget: Nanos::from_secs(60),
            content: Content::default(),
        }
    }
}

/// Default bytes per request.
pub const BLOCK: u64 = 65_536;
/// Default queue depth of saturated points.
pub const DEPTH: u32 = 32;
/// Largest share of the time that laying out may take.
const LAYOUT_SHARE: u64 = 4;
/// Least block where many requests are in flight: small ones meet a limit on requests before one on bytes.
const SATURATED_BLOCK: u64 = 262_144;
/// Longer than a slice of a limiter.
const USE_UP_NS: u64 = LIMITER_SLICE_NS + 20_000_000;
/// The region that is read over and over.
const BURST_RANGE: u64 = 1 << 20;
/// Block of a scan.
pub(super) const SCAN_BLOCK: u64 = 1 << 20;

/// What is going to be done, as far as that is known before.
#[derive(Clone, Debug)]
pub struct SurfacePlan {
    /// Where.
    pub site: Site,
    /// What is measured.
    pub parts: SurfaceParts,
    /// What was asked for.
    pub settings: SurfaceSettings,
}

impl SurfacePlan {
    /// Plans what was asked for; looks at the target and changes nothing.
    ///
    /// # Errors
    /// The target is not there, cannot be used, or may not be written to and would be.
    pub fn make(settings: SurfaceSettings) -> Result<SurfacePlan, AssessError> {
        let target = Site::inspect(&settings.run)?;
        SurfacePlan::on(target, settings)
    }

    /// What it moves.
    pub fn traffic(&self) -> PlannedTraffic {
        let (settings, size) = (&self.settings, self.site.size);
        let offered = if settings.scan {
            OfferedTraffic {
                sized_bytes: size,
                sized_ios: size / SCAN_BLOCK,
                reads: true,
                ..OfferedTraffic::default()
            }
        } else {
            let time = settings.budget.0;
            let writes_rows = self.parts.file && self.site.target.write_refusal().is_none();
            let rows_ns = self.times(time, self.visits(time).len()).file_ns;
            OfferedTraffic {
                timed_ns: time,
                writing_ns: match () {
                    () if settings.writes => time,
                    () if writes_rows => rows_ns,
                    () => 0,
                },
                reads: !settings.writes || self.parts.file,
                ..OfferedTraffic::default()
            }
        };
        self.site.traffic(&settings.run, offered)
    }

    /// Plans what was asked for on a target already looked at.
    ///
    /// # Errors
    /// As for [`SurfacePlan::make`].
    pub fn on(target: BenchTarget, settings: SurfaceSettings) -> Result<SurfacePlan, AssessError> {
        let refuse = |reason, hint: &str| AssessError::target(&settings.run.target, reason, hint);
        let is_directory = matches!(target, BenchTarget::Directory { .. });
        if let Some(reason) = target.write_refusal().filter(|_| settings.writes) {
            return Err(refuse(reason, "or omit --write to read only"));
        }
        if settings.scan && is_directory {
            let reason = "is a directory, and a new file has no surface to measure";
            return Err(refuse(reason.to_owned(), "use a block device or a file"));
        }
        let mut site = Site::on(target, &settings.run, Nanos(settings.budget.0 / LAYOUT_SHARE))?;
        let unit = site.unit;
        if !settings.block.is_multiple_of(unit) {
            let (unit, block) = (bytes(unit), bytes(settings.block));
            let reason = format!("direct I/O requires multiples of {unit} bytes; got {block}");
            return Err(refuse(reason, "use another --bs, or --buffered"));
        }
        if site.size < settings.block {
            let reason = format!("has {}, less than one block", bytes(site.size));
            return Err(refuse(reason, "use a smaller --bs"));
        }
        let otherwise =
            SurfaceParts { transfer: true, saturated: true, access: true, burst: true, file: is_directory };
        let parts = settings.parts.unwrap_or(otherwise);
        site.size -= site.size % unit;
        Ok(SurfacePlan { site, parts, settings })
    }

    /// The places in the order of visiting, where `budget_ns` are there for everything.
    pub fn visits(&self, budget_ns: u64) -> Vec<SurfacePlace> {
        if !self.parts.transfer && !self.parts.access {
            return Vec::new();
        }
        let SurfaceSettings { block, order, points: wanted, .. } = self.settings;
        let count = points(self.site.size, block, wanted, time_of_places(budget_ns, &self.parts));
        let mut visits = visits(places(self.site.size, block, count), order, self.site.seed);
        if !self.parts.transfer {
            // Probes go all over the area: what is left of a place is the time at which they are made.
            let every = probes(count).every as usize;
            visits = visits.into_iter().step_by(every).collect();
        }
        visits
    }

    /// The probes after places of these, where they are made at all.
    pub(super) fn probes(&self, visits: usize) -> Option<ProbePlan> {
        self.parts.access.then(|| probes(visits as u32))
    }

    /// True where first accesses may cost: of what is read, and was not written just now.
    pub(super) fn has_first_accesses(&self) -> bool {
        !self.settings.writes && !matches!(self.site.target, BenchTarget::Directory { .. })
    }

    /// How long each part takes.
    pub fn times(&self, budget_ns: u64, places: usize) -> Times {
        times(budget_ns, places as u32, &self.parts)
    }

    /// What every job has in common.
    fn job(&self, rw: &str, block: u64, depth: u32) -> JobWords {
        self.site.job(rw, block, depth, None)
    }

    /// fio's words for the direction.
    fn words(&self) -> (&'static str, &'static str) {
        if self.settings.writes { ("write", "randwrite") } else { ("read", "randread") }
    }

    /// The jobs of reading or writing a place in order: one request that takes the way there, or, after probes, requests that
    /// use up what a limiter saved up meanwhile.
    pub(super) fn place(
        &self,
        place: &SurfacePlace,
        times: &Times,
        is_after_probes: bool,
    ) -> Vec<(&'static str, JobWords)> {
        if !self.parts.transfer {
            return Vec::new();
        }
        let before = place.offset.checked_sub(place.length).filter(|_| is_after_probes);
        let seek = match before {
            Some(offset) => {
                let job = range(self.job("read", self.settings.block, 1), offset, place.length);
                ends(job, USE_UP_NS)
            }
            None => range(self.job("read", self.site.unit, 1), place.offset, self.site.unit),
        };
        let transfer = range(self.job(self.words().0, self.settings.block, 1), place.offset, place.length);
        vec![(SEEK, goes_on(seek)), (TRANSFER, goes_on(ends(transfer, times.transfer_ns)))]
    }

    /// The job of the probes that are made at `place`: after a rest and apart, so that no limit holds them up.
    pub(super) fn probe(
        &self,
        place: &SurfacePlace,
        times: &Times,
        plan: &ProbePlan,
        gap_ns: u64,
    ) -> (&'static str, JobWords) {
        let mut access = range(self.job(self.words().1, self.site.unit, 1), 0, self.site.size);
        access.push(pair("io_size", (u64::from(plan.each) * self.site.unit).to_string()));
        access.push(seed_pair(self.site.seed, place.index.into()));
        let (rest_ns, time_ns) = plan.times(times.access_ns);
        access.push(pair("startdelay", time_word(Nanos(rest_ns))));
        access.push(pair("thinktime", (gap_ns / 1000).to_string()));
        (ACCESS, goes_on(ends(access, time_ns)))
    }

    /// Places for many requests in flight: the second halves of even parts.
    pub(super) fn saturated_places(&self, count: u32) -> Vec<SurfacePlace> {
        let block = self.saturated_block();
        let count = u64::from(count).min(self.site.size / (2 * block)).max(1) as u32;
        let half = |place: SurfacePlace| {
            let skip = place.length / 2 / block * block;
            SurfacePlace { offset: place.offset + skip, length: place.length - skip, ..place }
        };
        places(self.site.size, block, count).into_iter().map(half).collect()
    }

    pub(super) fn saturated_block(&self) -> u64 {
        self.settings
            .block
            .max(SATURATED_BLOCK)
            .min(self.site.size / self.settings.block * self.settings.block)
    }

    /// The job that reads or writes at a place at a high queue depth, `time_ns` with the time in which the rate settles.
    pub(super) fn saturated(&self, place: &SurfacePlace, depth: u32, time_ns: u64) -> JobWords {
        let mut job = self.job(self.words().0, self.saturated_block(), depth);
        let runtime_ns = runtime_within(time_ns);
        if runtime_ns.is_some() {
            job.push(pair("startdelay", time_word(Nanos(SETTLE_NS))));
        }
        goes_on(ends(range(job, place.offset, place.length), runtime_ns.unwrap_or(time_ns)))
    }

    /// The job that goes over one small region again and again.
    pub(super) fn burst(&self, offset: u64, runtime_ns: u64) -> JobWords {
        let length = BURST_RANGE.max(self.settings.block).min(self.site.size);
        let offset = offset.min(self.site.size - length) / self.settings.block * self.settings.block;
        let mut job = range(self.job(self.words().0, self.settings.block, 1), offset, length);
        job.push(pair("time_based", "1"));
        goes_on(ends(job, runtime_ns))
    }

    /// The jobs of a row of the file benchmark.
    pub(super) fn file_row(&self, row: &FileTest) -> Vec<(&'static str, JobWords)> {
        let length =
            if row.kind == FileRowKind::Block { self.site.size.min(LADDER_RANGE) } else { self.site.size };
        let job = |offset: u64, length: u64, runtime_ns: u64| {
            let mut job = range(self.job(row.rw.name(), row.block_size_bytes, row.iodepth), offset, length);
            job.push(pair("time_based", "1"));
            job.push(seed_pair(self.site.seed, row.block_size_bytes));
            goes_on(ends(job, runtime_ns))
        };
        let zeros = |mut job: JobWords| {
            job.push(pair("zero_buffers", ""));
            job
        };
        match self.settings.content {
            Content::Zero if row.rw.writes() => vec![("file", zeros(job(0, length, row.runtime_ns)))],
            Content::Mixed if row.rw.writes() => {
                let half = length / 2 / row.block_size_bytes * row.block_size_bytes;
                let halves =
                    if row.rw.is_sequential() && half > 0 { (half, length - half) } else { (length, length) };
                let time = row.runtime_ns / 2;
                let second = length - halves.1;
                vec![("zero", zeros(job(0, halves.0, time))), ("random", job(second, halves.1, time))]
            }
            Content::Random | Content::Zero | Content::Mixed => {
                vec![("file", job(0, length, row.runtime_ns))]
            }
        }
    }

    /// The job of a part of a scan: the first error ends it, so that it is known where that was.
    pub(super) fn scan(&self, offset: u64, length: u64) -> JobWords {
        range(self.job("read", SCAN_BLOCK.min(length), 1), offset, length)
    }
}

fn range(mut job: JobWords, offset: u64, length: u64) -> JobWords {
    job.push(pair("offset", size_word(offset)));
    job.push(pair("size", size_word(length)));
    job
}

fn ends(mut job: JobWords, runtime_ns: u64) -> JobWords {
    job.push(pair("runtime", time_word(Nanos(runtime_ns))));
    job
}

/// A request that fails is counted, and the next one made.
fn goes_on(mut job: JobWords) -> JobWords {
    job.extend(goes_on_after_errors());
    job
}

#[cfg(test)]
mod tests {
    use fathom_volume::VolumeModel;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn plan(settings: SurfaceSettings) -> Result<SurfacePlan, AssessError> {
        SurfacePlan::on(
            BenchTarget::simulated("simulated", VolumeModel::unlimited(GIB)),
            SurfaceSettings { run: RunSettings { seed: Some(1), ..settings.run }, ..settings },
        )
    }

    fn text(words: &JobWords) -> String {
        words.iter().map(|(name, value)| format!("{name}={value} ")).collect()
    }

    #[test]
    fn jobs_are_what_a_user_would_type() {
        let plan = plan(SurfaceSettings::default()).unwrap();
        let places = plan.visits(60_000_000_000);
        let times = plan.times(60_000_000_000, places.len());
        assert_eq!(places.len(), 200);
        let place = SurfacePlace { index: 3, offset: 15 << 20, length: 5 << 20 };
        let mut jobs = plan.place(&place, &times, false);
        let probes = plan.probes(places.len()).unwrap();
        jobs.push(plan.probe(&place, &times, &probes, 2_500_000));
        let check = |words: &str, parts: &[&str]| {
            for part in parts {
                assert!(words.contains(part), "{part} in {words}");
            }
        };
        let after_probes = plan.place(&place, &times, true);
        check(&text(&after_probes[0].1), &["rw=read bs=64k iodepth=1 offset=10m size=5m runtime=120ms"]);
        assert_eq!(jobs.iter().map(|(name, _)| *name).collect::<Vec<_>>(), [SEEK, TRANSFER, ACCESS]);
        check(&text(&jobs[0].1), &["rw=read bs=512 iodepth=1 offset=15m size=512 "]);
        check(
            &text(&jobs[1].1),
            &[
                "rw=read bs=64k iodepth=1 offset=15m size=5m runtime=",
                "continue_on_error=all ignore_error=5:52:61:67:74:84:110:117:121,5:52:61:67:74:84:110:117:121",
            ],
        );
        check(
            &text(&jobs[2].1),
            &[
                "rw=randread bs=512 iodepth=1 offset=0 size=1g io_size=12800",
                "startdelay=110ms thinktime=2500 runtime=",
            ],
        );
        check(&text(&plan.burst(15 << 20, 1)), &["offset=15m size=1m time_based=1"]);
        let saturated = plan.saturated_places(8);
        assert_eq!((saturated.len(), saturated[7].offset), (8, GIB / 16 * 15));
        check(
            &text(&plan.saturated(&saturated[0], 32, 1)),
            &["bs=256k iodepth=32 offset=64m size=64m runtime="],
        );
        let mixed = SurfaceSettings { content: Content::Mixed, ..SurfaceSettings::default() };
        let mixed = SurfacePlan { settings: mixed, ..plan.clone() };
        let rows = fathom_analysis::surface::file::file_tests(41_000_000_000, 32);
        let jobs = mixed.file_row(&rows[0]);
        check(&text(&jobs[0].1), &["rw=write bs=1m iodepth=1 offset=0 size=512m", "zero_buffers="]);
        check(&text(&jobs[1].1), &["rw=write bs=1m iodepth=1 offset=512m size=512m"]);
        assert_eq!((jobs.len(), mixed.file_row(&rows[1]).len()), (2, 1));
        check(&text(&mixed.file_row(&rows[4])[1].1), &["rw=randwrite bs=4k iodepth=32 offset=0 size=1g"]);
        check(&text(&plan.scan(GIB, 64 << 20)), &["rw=read bs=1m iodepth=1 offset=1g size=64m"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let check = |settings: SurfaceSettings, part: &str| {
            let error = plan(settings).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        check(SurfaceSettings { block: 1000, ..SurfaceSettings::default() }, "multiples of 512 B");
        check(SurfaceSettings { block: 2 * GIB, ..SurfaceSettings::default() }, "less than one block");
        let engine = Some("warp".to_owned());
        check(
            SurfaceSettings {
                run: RunSettings { engine, ..RunSettings::default() },
                ..SurfaceSettings::default()
            },
            "unknown engine 'warp'",
        );
    }
}
