//! Where a run takes place, for commands that decide as they go what to run next: the target checked against the settings, the
//! part of it that is used, and what all jobs on it have in common.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_analysis::pattern::block_name;
use fathom_model::Nanos;
use fathom_model::units::bytes;
use fathom_record::{Activity, RunHeader, ScheduledSlot};
use fathom_runner::{RunObserver, Session, WritePermit, unknown_data};
use fathom_sys::device::TargetHandle;

use crate::catalogue::VolumeTypes;
use crate::conditions::header;
use crate::identify::EarlierIdentification;
use crate::planned::{engine_or_substitute, escaped, size_word};
use crate::target::{BenchTarget, absolute};
use crate::traffic::{OfferedTraffic, PlannedTraffic, TestFile};
use crate::working_file::{self, Layout, SizePlan, WantedSize, lay_out};
use crate::{AssessError, simulated};

/// fio's options of one job.
pub(crate) type JobWords = Vec<(String, String)>;

/// The part of a target that a run uses, and how.
#[derive(Clone, Debug)]
pub struct Site {
    /// The target.
    pub target: BenchTarget,
    /// The target by a name that means the same everywhere on this machine.
    pub name: String,
    /// The path that jobs name; in a directory a file that exists under no name.
    pub file: PathBuf,
    /// Bytes of it that are used.
    pub size: u64,
    /// What requests are multiples of, bytes.
    pub unit: u64,
    /// Longest time for laying out; `None` where nothing is laid out, or as long as it takes.
    pub layout_time: Option<Nanos>,
    /// Things a reader of the results should know.
    pub notes: Vec<String>,
    /// What all random choices derive from.
    pub seed: u64,
    engine: String,
    direct: bool,
}

/// Default size of the working file.
const FILE_SIZE: u64 = 1 << 30;

impl Site {
    /// Looks at the target that was named, and changes nothing.
    ///
    /// # Errors
    /// The target is not there or cannot be used.
    pub(crate) fn inspect(settings: &RunSettings) -> Result<BenchTarget, AssessError> {
        settings.types.check_named()?;
        let target = BenchTarget::inspect(&settings.target, &settings.destroy, &settings.types)?;
        simulated::check_cache(&settings.target, settings.buffered)?;
        Ok(target)
    }

    /// The used part of `target`; file layout takes `layout_limit` at most unless a size is set.
    ///
    /// # Errors
    /// There is no such engine, or not so much of the target.
    pub(crate) fn on(
        target: BenchTarget,
        settings: &RunSettings,
        layout_limit: Nanos,
    ) -> Result<Site, AssessError> {
        simulated::check_engine(settings.engine.as_deref(), &target)?;
        let size = size_on(&target, &settings.target, settings.size, WantedSize::usual(FILE_SIZE))?;
        let mut notes: Vec<String> =
            simulated::notes_on([&target]).into_iter().chain(size.note).chain(remarks(&target)).collect();
        let engine = engine_or_substitute(settings.engine.as_deref(), &target, &mut notes);
        let mut site = Site {
            name: target.name(&settings.target),
            file: target.working_path(),
            size: size.size,
            unit: if settings.buffered { 512 } else { target.request_unit(&settings.target) },
            layout_time: None,
            notes,
            seed: settings.seed.unwrap_or_else(|| target.usual_seed()),
            engine,
            direct: !settings.buffered,
            target,
        };
        site.layout_time = (site.lays_out() && settings.size.is_none()).then_some(layout_limit);
        Ok(site)
    }

    /// True where a working file is made and filled first.
    pub fn lays_out(&self) -> bool {
        matches!(self.target, BenchTarget::Directory { .. })
    }

    /// The test file that is written first, where one is.
    pub fn test_file(&self) -> Option<TestFile> {
        self.lays_out().then_some(TestFile { bytes: self.size, limit: self.layout_time })
    }

    /// What a run with these settings moves here, of what its tests offer.
    pub(crate) fn traffic(&self, settings: &RunSettings, offered: OfferedTraffic) -> PlannedTraffic {
        PlannedTraffic::on(&self.target, settings, &[], offered)
    }

    /// The session that it runs on.
    pub fn session(&self) -> Session {
        simulated::session_for([&self.target])
    }

    /// What every job of `rw` with `depth` requests of `block` bytes has in common, over `size` bytes where that is the same
    /// for all.
    pub(crate) fn job(&self, rw: &str, block: u64, depth: u32, size: Option<u64>) -> JobWords {
        let words = [
            Some(("ioengine", self.engine.clone())),
            Some(("filename", escaped(&self.file))),
            size.map(|size| ("size", size_word(size))),
            Some(("direct", if self.direct { "1" } else { "0" }.to_owned())),
            Some(("rw", rw.to_owned())),
            Some(("bs", block_name(block))),
            Some(("iodepth", depth.to_string())),
        ];
        words.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Makes ready what is used, and the head of the record of `kind`; the size that it came to is the site's from then on.
    ///
    /// # Errors
    /// The working file could not be made or laid out.
    pub(crate) fn begin(
        &mut self,
        activity: Activity,
        settings: &RunSettings,
        session: &mut Session,
        observer: &mut dyn RunObserver,
    ) -> Result<RunHeader, AssessError> {
        session.set_permit(WritePermit::own(&settings.destroy));
        let mut header = header(activity, &self.name, settings, &[], self.seed, &self.notes, session);
        let layout = Layout {
            target: &self.target,
            file: &self.file,
            size: self.size,
            direct: self.direct,
            limit: self.layout_time,
        };
        self.size = lay_out(&layout, session, observer, &mut header.notes)?;
        header.size_bytes = self.size;
        Ok(header)
    }
}

/// How much of the target is used: what was `requested`, else all of it, or `otherwise` where it is a directory.
pub(crate) fn size_on(
    target: &BenchTarget,
    typed: &Path,
    requested: Option<u64>,
    otherwise: WantedSize,
) -> Result<SizePlan, AssessError> {
    if let BenchTarget::Directory { path, filesystem } = target {
        return working_file::plan_size(path, filesystem, otherwise, requested);
    }
    let has = target.size().unwrap_or(0);
    let size = requested.unwrap_or(has);
    if size > has {
        let reason = format!("--size is {}, but the target has {}", bytes(size), bytes(has));
        let hint = format!("use --size {}m or less, or omit it", has / (1 << 20));
        return Err(AssessError::target(typed, reason, hint));
    }
    let size = size - size % (1 << 20);
    if size < working_file::MIN_SIZE {
        return Err(AssessError::too_small(requested.unwrap_or(size)));
    }
    Ok(SizePlan { size, note: None })
}

/// What a reader should know of the target itself.
pub(crate) fn remarks(target: &BenchTarget) -> Option<String> {
    match target {
        BenchTarget::Directory { path, filesystem } if filesystem.is_root_filesystem => Some(format!(
            "{} is on the root file system, which other programs use too; 1.0 GiB stays free",
            absolute(path).display()
        )),
        BenchTarget::File { path, sparse: true, .. } => Some(format!(
            "{} is sparse: reads of holes do not reach a device and are too fast",
            path.display()
        )),
        BenchTarget::BlockDevice { path, destroy: true, .. } => unknown_data(&TargetHandle::open(path).ok()?),
        _ => None,
    }
}

/// What was asked for by every command that runs tests.
#[derive(Clone, Debug, Default)]
pub struct RunSettings {
    /// A directory, file, block device or simulated volume.
    pub target: PathBuf,
    /// Size of the working file, or of the range used, bytes.
    pub size: Option<u64>,
    /// The engine instead of the usual one.
    pub engine: Option<String>,
    /// Through the page cache.
    pub buffered: bool,
    /// Targets whose content may be destroyed.
    pub destroy: Vec<PathBuf>,
    /// Seed of all random choices; drawn at random by default.
    pub seed: Option<u64>,
    /// What the user says of the run.
    pub labels: BTreeMap<String, String>,
    /// The volume types that names mean.
    pub types: VolumeTypes,
    /// Identifications of devices in the history, the latest first.
    pub earlier: Vec<EarlierIdentification>,
    /// The slot of a schedule that the run is for.
    pub scheduled: Option<ScheduledSlot>,
    /// The command line, for the record.
    pub command: Vec<String>,
}

impl RunSettings {
    /// The target cannot be used, with a remedy.
    pub(crate) fn refuse<T>(
        &self,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> Result<T, AssessError> {
        Err(AssessError::target(&self.target, reason, hint))
    }
}
