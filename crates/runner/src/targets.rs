//! The targets of a plan, and the range that each worker uses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_engine::registry;
use fathom_model::plan::{Distribution, IoPlan, Mix, Pattern, RecordedFile, SizeSpec};
use fathom_model::{JobPlan, Op};
use fathom_sys::device::{HandleKind, TargetHandle, TargetIdentity, unfit_for_a_new_file};
use fathom_sys::io::{OpenFlags, block_device_size};
use fathom_workload::{Extent, Rng};

use crate::RunError;
use crate::session::{Session, Time};

/// The kind of a path before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    /// Does not exist yet.
    Missing,
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// A device without a size and without storage behind it, such as `/dev/zero`.
    PseudoDevice,
    /// Needs no file: an engine without one, or virtual time.
    Virtual,
    /// A name that is not opened and exists.
    Name,
    /// A name that does not exist yet.
    NewName,
}

/// A path and its properties.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub path: PathBuf,
    pub kind: TargetKind,
    /// Bytes it has now.
    pub size: u64,
    /// Bytes that a file will have when the jobs so far are prepared.
    pub planned: u64,
    /// Index of the simulated volume; unused in real time.
    pub volume: usize,
    /// The target of the path when it was inspected; `None` if it is missing or virtual.
    pub handle: Option<Arc<TargetHandle>>,
    /// Identity of the target, also after its handle is dropped.
    pub identity: Option<TargetIdentity>,
    /// Workers that have not opened it yet.
    pub uses: usize,
}

impl Target {
    /// A regular file, or a missing one.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, TargetKind::File | TargetKind::Missing)
    }

    /// A block device, or one without storage.
    pub fn is_device(&self) -> bool {
        matches!(self.kind, TargetKind::BlockDevice | TargetKind::PseudoDevice)
    }

    /// What the reader of its figures must know.
    pub fn note(&self) -> Option<String> {
        (self.kind == TargetKind::PseudoDevice).then(|| {
            format!("{}: no storage is behind it; its figures are those of the CPU", self.path.display())
        })
    }

    /// Bytes of a file for a job that follows those so far.
    pub fn bytes(&self) -> u64 {
        self.size.max(self.planned)
    }

    /// Records that a worker has opened it. After the last one a file's own descriptor is closed, because there may be
    /// many; a device's stays open, and with it the claim.
    pub fn opened(&mut self) {
        self.uses = self.uses.saturating_sub(1);
        if self.uses == 0 && self.is_file() {
            self.handle = None;
        }
    }
}

/// Inspects `path` without changing it.
pub(crate) fn inspect(session: &Session, path: &Path, needs_file: bool) -> Result<Target, RunError> {
    let target = |kind, size, handle: Option<Arc<TargetHandle>>| {
        let identity = handle.as_ref().map(|handle| handle.identity());
        Ok(Target { path: path.to_owned(), kind, size, planned: 0, volume: 0, handle, identity, uses: 0 })
    };
    if let Time::Virtual { world, names } = &session.time {
        let Some(volume) = names.find(path) else {
            let reason = "is not one of the simulated volumes of this run".to_owned();
            let hint = "run simulated and real volumes separately".to_owned();
            return Err(RunError::unsuitable(path, reason, hint));
        };
        let (path, size) = (path.to_owned(), world.size_of(volume));
        return Ok(Target {
            path,
            kind: TargetKind::Virtual,
            size,
            planned: 0,
            volume,
            handle: None,
            identity: None,
            uses: 0,
        });
    }
    if !needs_file {
        return target(TargetKind::Virtual, 0, None);
    }
    let failed = |source| RunError::target("open", path, source);
    let unsuitable = |reason: &str, hint: &str| RunError::unsuitable(path, reason, hint);
    let handle = match session.handle(path) {
        Ok(handle) => handle,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return match unfit_for_a_new_file(path) {
                Some(reason) => Err(unsuitable(
                    reason,
                    "check the name (`lsblk` lists the devices); fathom creates no files in /dev",
                )),
                None => target(TargetKind::Missing, 0, None),
            };
        }
        Err(error) => return Err(failed(error)),
    };
    match handle.kind() {
        HandleKind::File => target(TargetKind::File, handle.file_size().map_err(failed)?, Some(handle)),
        HandleKind::BlockDevice => {
            let device = handle.reopen(OpenFlags::default()).map_err(failed)?;
            target(TargetKind::BlockDevice, block_device_size(&device).map_err(failed)?, Some(handle))
        }
        HandleKind::PseudoDevice => target(TargetKind::PseudoDevice, 0, Some(handle)),
        HandleKind::Directory => {
            Err(unsuitable("is a directory", "name a file in it (filename=), or use directory="))
        }
        HandleKind::CharDevice => Err(unsuitable(
            "is a character device",
            "name a file, a block device, or one of /dev/null, /dev/zero, /dev/full and /dev/urandom",
        )),
        HandleKind::Other => {
            Err(unsuitable("is neither a regular file nor a block device", "choose one of these"))
        }
    }
}

/// The operations with offsets of a job.
pub(crate) fn ops_used(job: &JobPlan) -> impl Iterator<Item = Op> {
    let pattern = job.io.pattern;
    let trims_written = job.io.verify.as_ref().is_some_and(|verify| verify.trims.is_some());
    Op::DATA.into_iter().filter(move |op| match op {
        Op::Read => pattern.reads(),
        Op::Write => pattern.writes(),
        Op::Trim => pattern.trims() || trims_written,
        Op::Sync | Op::Datasync => false,
    })
}

/// A note on absolute zones of a random job that do not fit into the ranges of its files.
pub(crate) fn cut_zones(job: &JobPlan, extents: &[Extent]) -> Option<String> {
    let range = extents.iter().map(|extent| extent.len).min().filter(|_| job.io.pattern.random)?;
    let ends = ops_used(job).filter_map(|op| match &job.io.access.distribution[op] {
        Distribution::ZonedAbs(zones) => {
            Some(zones.iter().fold(0_u64, |end, zone| end.saturating_add(zone.1)))
        }
        _ => None,
    });
    let end = ends.max().filter(|&end| end > range)?;
    let name = &job.name;
    Some(format!(
        "note: job '{name}': the zones of zoned_abs end at {end} bytes, and the range at {range}: they are cut"
    ))
}

/// The largest request of a job, bytes.
pub(crate) fn largest_block(job: &JobPlan) -> u64 {
    ops_used(job).map(|op| job.io.block_size[op].largest()).max().unwrap_or(0)
}

/// The bytes of `target` that clone number `clone` of `job` uses; the file may have to be extended.
pub(crate) fn extent(job: &JobPlan, clone: usize, target: &Target) -> Result<Extent, RunError> {
    let io = &job.io;
    let plan_error = |reason: String, hint: &str| RunError::plan(&job.name, reason, hint);
    let files = job.clones[clone].paths.len().max(1) as u64;
    let block = largest_block(job);
    if let Some(extent) = extent_without_size(job, clone, target) {
        return extent;
    }
    let usage = job.files.usage;
    let offset = start(job, target)
        .saturating_add(relative(io.offset_increment, target.bytes(), block).saturating_mul(clone as u64));
    if usage.fill_device && target.is_file() && io.size.is_none() && io.file_size.is_none() {
        if io.pattern != (Pattern { mix: Mix::Write, random: false }) {
            return Err(plan_error(
                "fill_device=1 without a size fills the file system, which only sequential writes do"
                    .to_owned(),
                "add size=, or use rw=write",
            ));
        }
        // As far as the file system goes.
        return Ok(Extent { offset, len: FULL_FILE_SYSTEM - FULL_FILE_SYSTEM % block.max(1) });
    }
    let own = file_size(job, clone, target);
    if let Some(own) = own.filter(|own| offset >= *own) {
        return Err(plan_error(
            format!("offset {offset} is at or past the end of files of {own} bytes"),
            "lower offset, or raise filesize",
        ));
    }
    let whole = own.unwrap_or(target.bytes());
    let asked = match io.size {
        Some(SizeSpec::Bytes(_)) if own.is_some() => Some(whole - offset),
        Some(SizeSpec::Bytes(bytes)) => Some(bytes / files),
        Some(SizeSpec::Percent(_)) if whole == 0 => None,
        Some(percent) => Some(relative(percent, whole, block)),
        None if whole == 0 => None,
        None => Some(whole.saturating_sub(offset)),
    };
    let name = target.path.display();
    let Some(mut len) = asked.filter(|&len| len > 0 || io.size.is_none()) else {
        return Err(plan_error(
            format!("{name} has no size to go by: you need to specify size="),
            "add size=, for example size=1g",
        ));
    };
    if target.kind == TargetKind::BlockDevice || session_fixed(target) {
        if offset >= target.size {
            return Err(plan_error(
                format!("offset {offset} is at or past the end of {name} ({} bytes)", target.size),
                "lower offset",
            ));
        }
        len = len.min(target.size - offset);
    }
    if offset.checked_add(len).is_none_or(|end| end > i64::MAX as u64) {
        return Err(plan_error(
            format!("offset {offset} plus size {len} is past the largest file"),
            "lower size or offset",
        ));
    }
    if len < block {
        return Err(plan_error(
            format!("the range of {len} bytes in {name} is smaller than the block size of {block} bytes"),
            "raise size or lower bs",
        ));
    }
    Ok(Extent { offset, len })
}

/// The size of a file of a job that names it: the same for every run of a job.
pub(crate) fn file_size(job: &JobPlan, clone: usize, target: &Target) -> Option<u64> {
    let (io, clone) = (&job.io, &job.clones[clone]);
    // An engine without files has those that the job describes.
    let may_have_it = target.is_file()
        || target.kind == TargetKind::PseudoDevice
        || (target.kind == TargetKind::Virtual && target.size == 0);
    let least = io.file_size.filter(|_| may_have_it)?;
    let Some(most) = io.file_size_most else { return Some(least) };
    let place = clone.paths.iter().position(|path| *path == target.path).unwrap_or(0) as u64;
    let step = ops_used(job).map(|op| io.block_size[op].smallest()).min().unwrap_or(1).max(1);
    let drawn = least + Rng::stream(clone.seed, place).below(most - least + 1);
    Some((drawn - drawn % step).max(least))
}

/// The bytes that a recording uses, or a request on a name; `None` for other jobs.
fn extent_without_size(job: &JobPlan, clone: usize, target: &Target) -> Option<Result<Extent, RunError>> {
    let block = largest_block(job);
    let Some(file) = recorded_file(job, clone, target) else {
        let is_named = acts_on_names(job) && !session_fixed(target);
        return is_named.then_some(Ok(Extent { offset: 0, len: block }));
    };
    let is_fixed = target.kind == TargetKind::BlockDevice || session_fixed(target);
    if is_fixed && file.end > target.size {
        let (name, size) = (target.path.display(), target.size);
        return Some(Err(RunError::plan(
            &job.name,
            format!("the recording uses {} bytes of {name}, which has {size}", file.end),
            "use replay_scale=, or a larger target",
        )));
    }
    Some(Ok(Extent { offset: 0, len: file.end.max(block) }))
}

/// Whether the engine of a job acts on the names of files, once each.
pub(crate) fn acts_on_names(job: &JobPlan) -> bool {
    registry::find(&job.engine.name).is_some_and(|entry| entry.traits.names.is_some())
}

/// The use of `target` in the recording of a clone, if it replays one.
pub(crate) fn recorded_file<'a>(job: &'a JobPlan, clone: usize, target: &Target) -> Option<&'a RecordedFile> {
    let recorded = job.replay.as_ref()?.of_clone(clone)?;
    recorded.files.iter().find(|file| file.path == target.path)
}

/// More than any file system holds, and little enough that offsets do not overflow.
const FULL_FILE_SYSTEM: u64 = 1 << 62;

/// The start of the range of the first clone: rounded up, where it is a percentage.
fn start(job: &JobPlan, target: &Target) -> u64 {
    let io = &job.io;
    if job.files.usage.append && target.is_file() {
        return target.bytes();
    }
    let smallest = ops_used(job).map(|op| io.block_size[op].smallest()).min().unwrap_or(1);
    let step = if io.offset_align == 0 { smallest } else { io.offset_align };
    match io.offset {
        SizeSpec::Bytes(bytes) => bytes,
        percent => relative(percent, target.bytes(), 0).next_multiple_of(step.max(1)),
    }
}

/// True for virtual targets of known size, which cannot grow.
fn session_fixed(target: &Target) -> bool {
    target.kind == TargetKind::Virtual && target.size > 0
}

/// A size in bytes; percentages are of `whole`, rounded down to whole blocks.
fn relative(size: SizeSpec, whole: u64, block: u64) -> u64 {
    match size {
        SizeSpec::Bytes(bytes) => bytes,
        SizeSpec::Percent(percent) => {
            let bytes = (u128::from(whole) * u128::from(percent) / 100) as u64;
            if block > 0 { bytes - bytes % block } else { bytes }
        }
    }
}

/// Bytes one loop of the job moves over `range` bytes, at most.
fn bytes_per_loop(io: &IoPlan, range: u64) -> u64 {
    let asked = match io.io_size {
        None => match (io.file_size, io.size) {
            (Some(_), Some(SizeSpec::Bytes(size))) => size.min(range),
            _ => range,
        },
        Some(SizeSpec::Bytes(bytes)) => bytes,
        Some(percent) => relative(percent, range, 0),
    };
    let largest = io.block_size.iter().map(|(_, size)| size.largest()).max().unwrap_or(0);
    let bytes = match io.access.number_ios {
        0 => asked,
        number => asked.min(number.saturating_mul(largest)),
    };
    // As in fio, what is read back is written once per loop, unless it is drawn anew or mixed with reads.
    let is_drawn = io.pattern.random && !io.random_map;
    let is_once = io.verify.is_some() && io.pattern.writes() && !io.pattern.reads() && !is_drawn;
    if is_once { bytes.min(range) } else { bytes }
}

/// Bytes of one loop over `range` bytes, and the loops.
///
/// Where `io_size` asks for more than the range and loops repeat it, each loop covers the range once, as in fio: there are as
/// many as `io_size` needs, or more where `loops` says so. Offsets that are drawn anew never cover a range.
pub(crate) fn bytes_and_loops(io: &IoPlan, range: u64, loops: Option<u32>) -> (u64, Option<u32>) {
    let bytes = bytes_per_loop(io, range);
    let covers = !io.pattern.random || io.random_map && io.access.is_uniform();
    let Some(repeats) = loops.filter(|&loops| loops > 1 && covers && range > 0 && bytes > range) else {
        return (bytes, loops);
    };
    // A rest smaller than the largest request is not begun.
    let largest = io.block_size.iter().map(|(_, size)| size.largest()).max().unwrap_or(1);
    let needed = bytes.saturating_sub(largest.saturating_sub(1)).div_ceil(range);
    (range, Some(repeats.max(u32::try_from(needed).unwrap_or(u32::MAX))))
}

#[cfg(test)]
mod tests {
    use fathom_model::PerOp;

    use super::*;

    #[test]
    fn an_io_size_above_the_range_is_not_repeated_by_each_loop() {
        const MIB: u64 = 1 << 20;
        let (map, drawn) = ((true, true), (true, false));
        let sequential = (false, true);
        for ((random, random_map), kib, loops, expected) in [
            (sequential, 3072, 1, (3 * MIB, 1)),
            (sequential, 3072, 2, (MIB, 3)),
            (sequential, 3072, 3, (MIB, 3)),
            (sequential, 3072, 7, (MIB, 7)),
            (sequential, 1536, 2, (MIB, 2)),
            (sequential, 2560, 2, (MIB, 3)),
            (sequential, 2050, 2, (MIB, 2)),
            (map, 2560, 2, (MIB, 3)),
            (drawn, 2560, 2, (2560 << 10, 2)),
            (sequential, 512, 3, (MIB / 2, 3)),
        ] {
            let mut io =
                IoPlan { random_map, io_size: Some(SizeSpec::Bytes(kib << 10)), ..IoPlan::default() };
            (io.pattern.random, io.block_size) = (random, PerOp::splat(4096.into()));
            let (bytes, loops) = bytes_and_loops(&io, MIB, Some(loops));
            assert_eq!((bytes, loops), (expected.0, Some(expected.1)), "{random} {random_map} {kib}");
        }
        let io = IoPlan { io_size: Some(SizeSpec::Bytes(3 * MIB)), ..IoPlan::default() };
        assert_eq!(bytes_and_loops(&io, MIB, None), (3 * MIB, None));
    }

    #[test]
    fn zones_beyond_the_range_are_told() {
        let mut job = JobPlan::default();
        job.io.pattern.random = true;
        job.io.access.distribution.read = Distribution::ZonedAbs(vec![(50, 4096), (50, 8192)]);
        let note = |len| cut_zones(&job, &[Extent { offset: 0, len }, Extent { offset: 0, len: 1 << 20 }]);
        assert_eq!(note(12288), None);
        assert!(note(8192).unwrap().contains("end at 12288 bytes, and the range at 8192"));
    }
}
