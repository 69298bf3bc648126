//! What `prepare` is going to do and what that costs, before anything is touched.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use fathom_analysis::pattern::block_name;
use fathom_analysis::prepare::PreparePiece;
use fathom_analysis::steady::ROUND_NS;
use fathom_model::Nanos;
use fathom_model::units::{bytes, parse_bytes};
use fathom_record::{PrepareStage, RunHeader};
use fathom_runner::{Session, WritePermit, unknown_data};
use fathom_sys::device::{FilesystemFacts, PathKind, TargetHandle, TargetStack, unfit_for_a_new_file};
use fathom_volume::VolumeModel;

use crate::AssessError;
use crate::error::plain;
use crate::machine::engine_rows;
use crate::planned::{
    engine_or_substitute, escaped, goes_on_after_errors, pair, seed_pair, size_word, time_word,
};
use crate::simulated::{self, SimulatedVolume, is_simulated};
use crate::site::RunSettings;
use crate::suite::section_of;
use crate::target::{BenchTarget, absolute, never_overruled};
use crate::traffic::{OfferedTraffic, PlannedTraffic};
use crate::until_steady::Rounds;
use crate::working_file::ROOT_RESERVE;

/// What is going to be done.
#[derive(Clone, Debug)]
pub struct PreparePlan {
    /// The target.
    pub target: PrepareTarget,
    /// In the order they come in.
    pub stages: Vec<PrepareStage>,
    /// How long the workload is repeated, where there is one.
    pub rounds: Option<Rounds>,
    /// Things a reader of the results should know.
    pub notes: Vec<String>,
    /// What was asked for.
    pub settings: PrepareSettings,
    /// What all random choices derive from.
    pub seed: u64,
    engine: String,
}

impl PreparePlan {
    /// Plans what was asked for; looks at the target and changes nothing.
    ///
    /// # Errors
    /// The target cannot be used, or may not be written to and would be; the time is too short for a steady state.
    pub fn make(settings: PrepareSettings) -> Result<PreparePlan, AssessError> {
        settings.run.types.check_named()?;
        let target = PrepareTarget::inspect(&settings)?;
        simulated::check_cache(&settings.run.target, settings.run.buffered)?;
        PreparePlan::on(target, settings)
    }

    /// Plans what was asked for on a target already looked at.
    ///
    /// # Errors
    /// As for [`PreparePlan::make`].
    pub fn on(target: PrepareTarget, settings: PrepareSettings) -> Result<PreparePlan, AssessError> {
        let stages = stages(&target, &settings)?;
        let rounds = match &settings.precondition {
            Some(workload) => {
                check_workload(workload, &target, &settings)?;
                let round = settings.round.unwrap_or(Nanos(ROUND_NS));
                Some(Rounds::new(Some(round), settings.budget)?)
            }
            None => None,
        };
        let of_bench = as_of_bench(&target);
        simulated::check_engine(settings.run.engine.as_deref(), &of_bench)?;
        let mut notes = simulated::notes_on([&of_bench]);
        notes.extend(remarks(&target, &stages));
        let engine = engine_or_substitute(settings.run.engine.as_deref(), &of_bench, &mut notes);
        let seed = settings.run.seed.unwrap_or_else(|| of_bench.usual_seed());
        Ok(PreparePlan { target, stages, rounds, notes, settings, seed, engine })
    }

    /// The session that it runs on.
    pub fn session(&self) -> Session {
        simulated::session_for([&as_of_bench(&self.target)])
    }

    /// The target by a name that means the same everywhere on this machine.
    pub fn target_name(&self) -> String {
        match self.target.kind {
            PrepareKind::Simulated => self.settings.run.target.display().to_string(),
            _ => self.target.file.display().to_string(),
        }
    }

    /// What it moves.
    pub fn traffic(&self) -> PlannedTraffic {
        let [read, written, _] = self.bytes();
        let passes =
            self.stages.iter().filter(|stage| !matches!(stage, PrepareStage::Workload | PrepareStage::Trim));
        let ios = |stage: &PrepareStage| {
            let piece = PreparePiece { stage: *stage, offset: 0, length: self.target.size };
            self.target.size / piece.block()
        };
        let rounds_ns = self.rounds.map_or(0, |rounds| rounds.budget.0);
        let reads_in_rounds = |workload: &PrepareWorkload| workload.rw.ends_with("rw");
        let offered = OfferedTraffic {
            sized_bytes: read + written,
            sized_written_bytes: written,
            sized_ios: passes.map(ios).sum(),
            timed_ns: rounds_ns,
            writing_ns: rounds_ns,
            reads: read > 0 || self.settings.precondition.as_ref().is_some_and(reads_in_rounds),
        };
        PlannedTraffic::on(&as_of_bench(&self.target), &self.settings.run, &[], offered)
    }

    /// Bytes of all passes that read, write and trim, in this order.
    pub fn bytes(&self) -> [u64; 3] {
        let passes = |wanted: &str| {
            let stages =
                self.stages.iter().filter(|stage| **stage != PrepareStage::Workload && stage.rw() == wanted);
            stages.count() as u64 * self.target.size
        };
        [passes("read"), passes("write"), passes("trim")]
    }

    /// Why the run that `earlier` is the head of cannot be gone on with; `None` where it can. `first_ms` is when its first piece
    /// began.
    pub fn is_another(&self, earlier: &RunHeader, first_ms: Option<u64>) -> Option<String> {
        if earlier.size_bytes != self.target.size {
            let (was, is) = (bytes(earlier.size_bytes), bytes(self.target.size));
            return Some(format!("it prepared {was}, and this is {is}"));
        }
        if self.target.kind == PrepareKind::File {
            let made = std::fs::metadata(&self.target.file).and_then(|metadata| metadata.created()).ok()?;
            let made_ms = made.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis() as u64;
            return (made_ms > first_ms?).then(|| "the file was recreated since".to_owned());
        }
        let stack = TargetStack::of(&self.target.file).ok()?;
        let (now, then) = (stack.devices.first()?, earlier.conditions.target.devices.first()?);
        let serial = now.serial.clone().unwrap_or_default();
        let differs = now.size_bytes != then.size_bytes || (!then.serial.is_empty() && serial != then.serial);
        differs.then(|| "the device has another size or serial number".to_owned())
    }

    /// The fio command line that does what `stage` does, in one piece or for one round.
    pub fn fio_command(&self, stage: PrepareStage) -> String {
        let options = match (stage, &self.settings.precondition, self.rounds.and_then(|rounds| rounds.round))
        {
            (PrepareStage::Workload, Some(workload), Some(round)) => self.round_options(workload, round, 0),
            _ => self.job_options(&PreparePiece { stage, offset: 0, length: self.target.size }),
        };
        section_of(stage.id(), &options, &engine_rows())
            .map(|section| section.command_line())
            .unwrap_or_default()
    }

    /// fio's options for `piece`.
    pub(super) fn job_options(&self, piece: &PreparePiece) -> Vec<(String, String)> {
        let stage = piece.stage;
        // A discard is one call whatever the engine; the simplest does.
        let by_call = stage == PrepareStage::Trim && self.target.kind != PrepareKind::Simulated;
        let mut options = self.base(if by_call { "psync" } else { &self.engine });
        if piece.offset > 0 {
            options.push(pair("offset", size_word(piece.offset)));
        }
        options.extend([
            pair("size", size_word(piece.length)),
            pair("rw", stage.rw()),
            pair("bs", block_name(piece.block())),
            pair("iodepth", stage.depth().to_string()),
        ]);
        match stage {
            PrepareStage::Fill | PrepareStage::Sequential { .. } => options.push(pair("end_fsync", "1")),
            // One block that cannot be read is no reason to leave the others untouched.
            PrepareStage::Touch => options.extend(goes_on_after_errors()),
            PrepareStage::Trim | PrepareStage::Workload => {}
        }
        let pass = PrepareStage::ALL.iter().position(|known| *known == stage).unwrap_or(0) as u64;
        options.push(self.seed_word((piece.offset >> 9).wrapping_mul(31).wrapping_add(pass + 1)));
        options
    }

    /// fio's options for a round of the workload, counted from 0.
    pub(super) fn round_options(
        &self,
        workload: &PrepareWorkload,
        round: Nanos,
        index: usize,
    ) -> Vec<(String, String)> {
        let size = self.target.size - self.target.size % workload.block;
        let mut options = self.base(&self.engine);
        options.extend([
            pair("size", size_word(size)),
            pair("rw", workload.rw.as_str()),
            pair("bs", block_name(workload.block)),
            pair("iodepth", workload.depth.to_string()),
            pair("time_based", "1"),
            pair("runtime", time_word(round)),
            self.seed_word(index as u64 + 1_000_003),
        ]);
        options
    }

    fn base(&self, engine: &str) -> Vec<(String, String)> {
        vec![
            pair("ioengine", engine),
            pair("filename", escaped(&self.target.file)),
            pair("direct", if self.settings.run.buffered { "0" } else { "1" }),
        ]
    }

    /// Passes have other data each, and rounds other places.
    fn seed_word(&self, place: u64) -> (String, String) {
        seed_pair(self.seed, place)
    }
}

/// The stages that were asked for, or what suits the target.
fn stages(target: &PrepareTarget, settings: &PrepareSettings) -> Result<Vec<PrepareStage>, AssessError> {
    let passes = settings.precondition.is_some();
    let nothing_said = !(settings.trim || settings.fill || settings.touch || passes);
    let fill = settings.fill || nothing_said && target.may_write;
    let touch = settings.touch || nothing_said && !target.may_write;
    let wanted = |stage: &PrepareStage| match stage {
        PrepareStage::Trim => settings.trim,
        PrepareStage::Fill => fill,
        PrepareStage::Sequential { .. } | PrepareStage::Workload => passes,
        PrepareStage::Touch => touch,
    };
    let stages: Vec<PrepareStage> = PrepareStage::ALL.into_iter().filter(wanted).collect();
    if !target.may_write && stages.iter().any(|stage| stage.modifies()) {
        let path = settings.run.target.display();
        let hint = format!(
            "use --destroy-data={path} if nothing on it is needed, or --touch alone, which only reads"
        );
        return settings.run.refuse(format!("this would destroy the data of the {}", target.noun()), hint);
    }
    if target.kind == PrepareKind::NewFile && (settings.trim || !(fill || passes)) {
        return settings.run.refuse("a new file can only be filled", "use --fill or --precondition");
    }
    if settings.trim && target.kind == PrepareKind::BlockDevice && !discards(&settings.run.target) {
        return settings.run.refuse("the device does not support discard", "omit --trim, or use --fill");
    }
    Ok(stages)
}

/// Whether the device supports discards; true where that is unknown.
fn discards(path: &Path) -> bool {
    let stack = TargetStack::of(path).ok();
    let granularity = stack.and_then(|stack| stack.devices.first()?.discard_granularity);
    granularity != Some(0)
}

fn check_workload(
    workload: &PrepareWorkload,
    target: &PrepareTarget,
    settings: &PrepareSettings,
) -> Result<(), AssessError> {
    if workload.block > target.size {
        let reason =
            format!("a block of {} exceeds the size of {}", bytes(workload.block), bytes(target.size));
        return settings.run.refuse(reason, "use a smaller block: --precondition=randwrite:4k");
    }
    if !settings.run.buffered && !workload.block.is_multiple_of(target.unit) {
        let (unit, block) = (bytes(target.unit), bytes(workload.block));
        let reason = format!("direct I/O requires multiples of {unit} bytes; got {block}");
        return settings.run.refuse(reason, "use another block size, or --buffered");
    }
    Ok(())
}

/// The same target as other commands know it.
fn as_of_bench(target: &PrepareTarget) -> BenchTarget {
    match (&target.volume, target.kind) {
        (Some(volume), _) => BenchTarget::Simulated(volume.clone()),
        (None, PrepareKind::Simulated) => {
            BenchTarget::simulated(&target.file.to_string_lossy(), VolumeModel::unlimited(target.size))
        }
        _ => BenchTarget::BlockDevice { path: target.file.clone(), size: target.size, destroy: true },
    }
}

/// What a reader should know of the target and the plan.
fn remarks(target: &PrepareTarget, stages: &[PrepareStage]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(volume) = &target.volume {
        let kept =
            "the simulated volume is lost when the command ends: the result is the time that preparing takes";
        notes.push(kept.to_owned());
        if stages.contains(&PrepareStage::Touch) && volume.model.first_touch.is_none() {
            notes.push("this volume has no first-touch penalty; set one with first_touch=".to_owned());
        }
    }
    if target.may_write && target.volume.is_none() && target.kind == PrepareKind::BlockDevice {
        notes.extend(TargetHandle::open(&target.file).ok().as_ref().and_then(unknown_data));
    }
    if target.filesystem.as_ref().is_some_and(|filesystem| filesystem.is_root_filesystem) {
        notes.push("the file is on the root file system, which other programs use too".to_owned());
    }
    if target.sparse && stages.contains(&PrepareStage::Touch) && !stages.contains(&PrepareStage::Fill) {
        notes.push("the file is sparse: reads of holes do not reach a device".to_owned());
    }
    if target.size < target.capacity {
        notes.push(format!("prepares {} of {}", bytes(target.size), bytes(target.capacity)));
    }
    notes
}

/// What was asked for. Where no step is, the target decides.
#[derive(Clone, Debug, Default)]
pub struct PrepareSettings {
    /// What every run is asked for.
    pub run: RunSettings,
    /// Tell the device that nothing on it is needed.
    pub trim: bool,
    /// Write every block once.
    pub fill: bool,
    /// Write every block twice, then this until it is steady.
    pub precondition: Option<PrepareWorkload>,
    /// Read every block once.
    pub touch: bool,
    /// What a round of the workload lasts; `None` = a minute.
    pub round: Option<Nanos>,
    /// Longest time for the rounds; `None` = as many as the rule allows.
    pub budget: Option<Nanos>,
    /// Goes on with an earlier run, which made the file if there is one.
    pub resume: bool,
}

/// The workload that a device is brought into a steady state by: `randwrite:4k:32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepareWorkload {
    /// fio's word: `randwrite`, `write`, `randrw` or `rw`, of which half are writes.
    pub rw: String,
    /// Bytes per request.
    pub block: u64,
    /// Requests in flight.
    pub depth: u32,
}

impl Default for PrepareWorkload {
    /// Random writes of 4 KiB: what the SNIA's IOPS test watches.
    fn default() -> Self {
        PrepareWorkload { rw: "randwrite".to_owned(), block: 4096, depth: 32 }
    }
}

const PATTERNS: [&str; 4] = ["randwrite", "write", "randrw", "rw"];

impl FromStr for PrepareWorkload {
    type Err = String;

    fn from_str(text: &str) -> Result<PrepareWorkload, String> {
        let mut workload = PrepareWorkload::default();
        let mut words = text.split(':').map(str::trim);
        let rw = words.next().unwrap_or_default();
        if !PATTERNS.contains(&rw) {
            return Err(format!("write RW[:BLOCK[:DEPTH]] with RW one of {}", PATTERNS.join(", ")));
        }
        workload.rw = rw.to_owned();
        if let Some(block) = words.next() {
            workload.block = parse_bytes(block).map_err(|error| error.to_string())?;
            if !(512..=1 << 30).contains(&workload.block) || !workload.block.is_multiple_of(512) {
                return Err(format!("block size '{block}' is not a multiple of 512 up to 1 GiB"));
            }
        }
        if let Some(depth) = words.next() {
            let number = depth.parse().ok().filter(|depth| (1..=65_536).contains(depth));
            workload.depth = number.ok_or_else(|| format!("depth '{depth}' is not between 1 and 65536"))?;
        }
        match words.next() {
            Some(more) => Err(format!("unexpected '{more}': write RW[:BLOCK[:DEPTH]]")),
            None => Ok(workload),
        }
    }
}

/// What is to be prepared.
#[derive(Clone, Debug, PartialEq)]
pub struct PrepareTarget {
    /// What it is.
    pub kind: PrepareKind,
    /// The path that jobs name.
    pub file: PathBuf,
    /// Bytes to be prepared, from its start.
    pub size: u64,
    /// Bytes it has, or will have.
    pub capacity: u64,
    /// Its content may be lost.
    pub may_write: bool,
    /// What its requests are multiples of, bytes.
    pub unit: u64,
    /// It occupies less than its size.
    pub sparse: bool,
    /// Where a file lies.
    pub filesystem: Option<FilesystemFacts>,
    /// The simulated volume that it is.
    pub volume: Option<Box<SimulatedVolume>>,
}

/// The kinds of target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrepareKind {
    /// A file that is not there yet.
    NewFile,
    /// A file that is there.
    File,
    /// A block device.
    BlockDevice,
    /// A simulated volume, on virtual time.
    Simulated,
}

/// The least that is worth preparing.
const LEAST: u64 = 1 << 20;

impl PrepareTarget {
    /// Looks at the target of `settings`.
    ///
    /// # Errors
    /// It is nothing that can be prepared, it may not be written to although the user allowed it, or there is no room.
    pub fn inspect(settings: &PrepareSettings) -> Result<PrepareTarget, AssessError> {
        let (run, path) = (&settings.run, &settings.run.target);
        if is_simulated(path) {
            return simulated(settings);
        }
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return new_file(settings),
            Err(error) => {
                let hint = "check its permissions and those of the directories above it";
                return run.refuse(format!("cannot be inspected: {}", plain(&error)), hint);
            }
        };
        if metadata.is_dir() {
            let name = path.join("fathom.dat");
            let hint =
                format!("use a file in it, which is created: fathom prepare {} --size 10g", name.display());
            return run.refuse("is a directory; only files and block devices can be prepared", hint);
        }
        if !metadata.is_file() {
            return device(settings);
        }
        existing_file(settings, &metadata)
    }

    /// The part of `file` that `settings` name, of a target of `capacity` bytes whose requests are multiples of `unit`.
    fn new(
        settings: &PrepareSettings,
        kind: PrepareKind,
        file: PathBuf,
        (capacity, unit): (u64, u64),
    ) -> Result<PrepareTarget, AssessError> {
        Ok(PrepareTarget {
            kind,
            file,
            size: within(settings, capacity, unit)?,
            capacity,
            may_write: true,
            unit,
            sparse: false,
            filesystem: None,
            volume: None,
        })
    }

    /// The word used for it in sentences.
    pub fn noun(&self) -> &'static str {
        match self.kind {
            PrepareKind::NewFile | PrepareKind::File => "file",
            PrepareKind::BlockDevice | PrepareKind::Simulated => "device",
        }
    }
}

fn device(settings: &PrepareSettings) -> Result<PrepareTarget, AssessError> {
    let (run, path) = (&settings.run, &settings.run.target);
    let target = BenchTarget::inspect(path, &settings.run.destroy, &settings.run.types)?;
    let BenchTarget::BlockDevice { size: capacity, destroy, .. } = target else {
        return run
            .refuse("is neither a regular file nor a block device", "use a regular file or a block device");
    };
    let unit = target.request_unit(path);
    let all = PrepareTarget::new(settings, PrepareKind::BlockDevice, absolute(path), (capacity, unit))?;
    Ok(PrepareTarget { may_write: destroy, ..all })
}

fn simulated(settings: &PrepareSettings) -> Result<PrepareTarget, AssessError> {
    let (run, path) = (&settings.run, &settings.run.target);
    if settings.resume {
        let reason = "a simulated volume starts anew with each command and cannot be resumed";
        return Err(AssessError::usage(format!("{}: {reason}", path.display()), "omit --resume"));
    }
    let target = BenchTarget::inspect(path, &settings.run.destroy, &settings.run.types)?;
    let unit = target.request_unit(path);
    let BenchTarget::Simulated(volume) = target else {
        return run.refuse("is not a simulated volume", "use sim:ID?size=50GiB");
    };
    let file = volume.path.clone();
    let all = PrepareTarget::new(settings, PrepareKind::Simulated, file, (volume.size(), unit))?;
    Ok(PrepareTarget { volume: Some(volume), ..all })
}

/// The part of `capacity` that is used.
fn within(settings: &PrepareSettings, capacity: u64, unit: u64) -> Result<u64, AssessError> {
    let run = &settings.run;
    let given = settings.run.size.unwrap_or(capacity);
    if given > capacity {
        let reason = format!("--size is {}, but the target has {}", bytes(given), bytes(capacity));
        return run.refuse(reason, "omit --size to use all of it");
    }
    let size = given - given % unit;
    if size < LEAST {
        return run.refuse(format!("{} is too little to prepare", bytes(given)), "use at least 1 MiB");
    }
    Ok(size)
}

fn new_file(settings: &PrepareSettings) -> Result<PrepareTarget, AssessError> {
    let (run, path) = (&settings.run, &settings.run.target);
    let parent = absolute(path).parent().map(Path::to_path_buf).unwrap_or_default();
    if settings.resume || !settings.run.destroy.is_empty() {
        let option = if settings.resume { "--resume" } else { "--destroy-data" };
        let hint = format!("check the name, or omit {option} to create it");
        return run.refuse("no such file", hint);
    }
    if !parent.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return run.refuse("no such file or directory", "create the directory first, or check the name");
    }
    if let Some(reason) = unfit_for_a_new_file(path) {
        return run.refuse(
            reason,
            "check the name (`lsblk` lists the devices); fathom creates no files among device nodes",
        );
    }
    if settings.run.size.is_none() {
        let hint = "give its size: --size 10g";
        return run.refuse("no such file, and no size to create it with", hint);
    }
    let filesystem = filesystem_of(run)?;
    let all = PrepareTarget::new(settings, PrepareKind::NewFile, absolute(path), (u64::MAX, 4096))?;
    has_room(run, &filesystem, all.size)?;
    Ok(PrepareTarget { capacity: all.size, filesystem: Some(filesystem), ..all })
}

fn existing_file(
    settings: &PrepareSettings,
    metadata: &std::fs::Metadata,
) -> Result<PrepareTarget, AssessError> {
    let (run, path) = (&settings.run, &settings.run.target);
    if path.to_str().is_none() {
        return run
            .refuse("its name is not valid UTF-8", "rename it, or use a symbolic link with a valid name");
    }
    let permit = WritePermit::own(&settings.run.destroy);
    if let Some(other) = settings.run.destroy.iter().find(|_| !permit.names(path)) {
        let reason = format!("is not the target named by --destroy-data={}", other.display());
        return run.refuse(reason, "use the path of the target, or omit --destroy-data");
    }
    let may_write = !settings.run.destroy.is_empty();
    if may_write {
        never_overruled(path)?;
    }
    let filesystem = filesystem_of(run)?;
    let (has, occupied) = (metadata.len(), metadata.blocks().saturating_mul(512));
    let capacity = if may_write { has.max(settings.run.size.unwrap_or(has)) } else { has };
    let unit = BenchTarget::File { path: path.clone(), size: has, destroy: may_write, sparse: false }
        .request_unit(path);
    let all = PrepareTarget::new(settings, PrepareKind::File, absolute(path), (capacity, unit))?;
    if may_write {
        has_room(run, &filesystem, all.size.saturating_sub(occupied))?;
    }
    let sparse = occupied < has / 10 * 9;
    Ok(PrepareTarget { may_write, sparse, filesystem: Some(filesystem), ..all })
}

fn filesystem_of(run: &RunSettings) -> Result<FilesystemFacts, AssessError> {
    let path = &run.target;
    let stack = TargetStack::of(path).map_err(|error| {
        AssessError::target(path, error.to_string(), error.hint().unwrap_or("check the path"))
    })?;
    match stack.target {
        PathKind::File | PathKind::Missing => Ok(stack.filesystem.unwrap_or_default()),
        _ => {
            run.refuse("is neither a regular file nor a block device", "use a regular file or a block device")
        }
    }
}

/// Refuses what would fill a file system to the brim.
fn has_room(run: &RunSettings, filesystem: &FilesystemFacts, more: u64) -> Result<(), AssessError> {
    if filesystem.read_only {
        let reason = format!("its file system at {} is mounted read-only", filesystem.mount_point.display());
        return run.refuse(reason, "choose a writable directory");
    }
    let reserve = if filesystem.is_root_filesystem { ROOT_RESERVE } else { 0 };
    let usable = filesystem.free_bytes.saturating_sub(reserve);
    if more <= usable {
        return Ok(());
    }
    let kept = if reserve > 0 { ", of which 1.0 GiB is reserved for the system" } else { "" };
    let reason = format!("needs {} more, {} free{kept}", bytes(more), bytes(filesystem.free_bytes));
    run.refuse(reason, "choose a smaller --size, or free some space")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::RunSettings;

    const MIB: u64 = 1 << 20;

    fn target(kind: PrepareKind, may_write: bool) -> PrepareTarget {
        PrepareTarget {
            kind,
            file: "/t/x".into(),
            size: 64 * MIB,
            capacity: 64 * MIB,
            may_write,
            unit: 512,
            sparse: false,
            filesystem: None,
            volume: None,
        }
    }

    fn settings() -> PrepareSettings {
        PrepareSettings {
            run: RunSettings {
                target: "/t/x".into(),
                seed: Some(1),
                engine: Some("psync".to_owned()),
                ..RunSettings::default()
            },
            ..Default::default()
        }
    }

    #[test]
    fn stages_suit_the_target_unless_they_are_said() {
        use PrepareKind::{BlockDevice, File, NewFile};
        let check = |kind, may_write, settings: PrepareSettings, expected: Result<&[&str], &str>| {
            let found = stages(&target(kind, may_write), &settings);
            match (found, expected) {
                (Ok(found), Ok(expected)) => {
                    assert_eq!(found.iter().map(|stage| stage.id()).collect::<Vec<_>>(), expected)
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, _) => panic!("{found:?}, expected {expected:?}"),
            }
        };
        check(NewFile, true, settings(), Ok(&["fill"]));
        check(File, false, settings(), Ok(&["touch"]));
        check(File, true, settings(), Ok(&["fill"]));
        check(BlockDevice, false, settings(), Ok(&["touch"]));
        check(BlockDevice, true, settings(), Ok(&["fill"]));
        let all = PrepareSettings {
            trim: true,
            precondition: Some(PrepareWorkload::default()),
            touch: true,
            ..settings()
        };
        let in_order = ["trim", "precondition-1", "precondition-2", "precondition-workload", "touch"];
        check(File, true, all.clone(), Ok(&in_order));
        check(File, false, all.clone(), Err("destroy the data"));
        check(NewFile, true, all, Err("can only be filled"));
        check(NewFile, true, PrepareSettings { touch: true, ..settings() }, Err("can only be filled"));
        check(
            NewFile,
            true,
            PrepareSettings { touch: true, fill: true, ..settings() },
            Ok(&["fill", "touch"]),
        );
    }

    #[test]
    fn commands_are_what_a_user_would_type() {
        let plan = PreparePlan::on(target(PrepareKind::File, true), settings()).unwrap();
        let words = |piece: PreparePiece| {
            let options = plan.job_options(&piece);
            options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        let piece = |stage, offset, length| PreparePiece { stage, offset, length };
        let base = "ioengine=psync filename=/t/x direct=1";
        assert!(
            words(piece(PrepareStage::Fill, 0, 64 * MIB))
                .starts_with(&format!("{base} size=64m rw=write bs=1m iodepth=32 end_fsync=1 randseed="))
        );
        assert!(
            words(piece(PrepareStage::Sequential { pass: 2 }, 16 * MIB, 32 * MIB))
                .starts_with(&format!("{base} offset=16m size=32m rw=write bs=128k iodepth=32 end_fsync=1"))
        );
        assert!(words(piece(PrepareStage::Touch, 63 * MIB, 512)).starts_with(&format!(
            "{base} offset=63m size=512 rw=read bs=512 iodepth=32 continue_on_error=all ignore_error=5:52:61:67:74:84:110:117:121,5:52:61:67:74:84:110:117:121"
        )));
        assert!(
            words(piece(PrepareStage::Trim, 0, 64 * MIB))
                .starts_with(&format!("{base} size=64m rw=trim bs=64m iodepth=1"))
        );
        // The two passes write other data.
        let [one, two] = [1, 2].map(|pass| words(piece(PrepareStage::Sequential { pass }, 0, MIB)));
        assert_ne!(one, two);
        let round = plan.round_options(&PrepareWorkload::default(), Nanos::from_secs(60), 0);
        assert!(round.contains(&pair("runtime", "60s")) && round.contains(&pair("bs", "4k")));
    }

    #[test]
    fn what_cannot_be_done_is_refused_before() {
        let check = |settings: PrepareSettings, expected: &str| {
            let error = PreparePlan::on(target(PrepareKind::File, true), settings).unwrap_err();
            assert!(error.to_string().contains(expected) && error.hint.is_some(), "{error}");
        };
        let with = |text: &str| Some(text.parse::<PrepareWorkload>().unwrap());
        check(PrepareSettings { precondition: with("randwrite:1g"), ..settings() }, "exceeds the size");
        check(
            PrepareSettings { precondition: with("write"), budget: Some(Nanos::from_secs(5)), ..settings() },
            "5 rounds",
        );
        check(
            PrepareSettings {
                run: RunSettings { engine: Some("warp".to_owned()), ..settings().run },
                ..settings()
            },
            "warp",
        );
        let of_pages = PrepareTarget { unit: 4096, ..target(PrepareKind::File, true) };
        let odd = PrepareSettings { precondition: with("randwrite:512"), ..settings() };
        assert!(PreparePlan::on(of_pages, odd).unwrap_err().to_string().contains("multiples of 4.0 KiB"));
    }

    #[test]
    fn workloads() {
        let check = |text: &str, expected: Option<(&str, u64, u32)>| {
            let found = text.parse::<PrepareWorkload>().ok();
            let found = found.as_ref().map(|found| (found.rw.as_str(), found.block, found.depth));
            assert_eq!(found, expected, "{text}");
        };
        check("randwrite", Some(("randwrite", 4096, 32)));
        check("write:128k", Some(("write", 131_072, 32)));
        check("randrw:8k:1", Some(("randrw", 8192, 1)));
        for wrong in [
            "", "randread", "randwrite:0", "randwrite:1000", "randwrite:4k:0", "randwrite:4k:1:2", "write::3",
        ] {
            check(wrong, None);
        }
    }

    fn inspect(target: &Path, size: Option<u64>, destroy: &[&Path]) -> Result<PrepareTarget, AssessError> {
        PrepareTarget::inspect(&PrepareSettings {
            run: RunSettings {
                target: target.to_owned(),
                size,
                destroy: destroy.iter().map(|path| path.to_path_buf()).collect(),
                ..RunSettings::default()
            },
            ..PrepareSettings::default()
        })
    }

    #[test]
    fn files_are_made_read_or_written_as_far_as_was_said() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, vec![1; 3 << 20]).unwrap();
        let new = dir.path().join("new");
        let check = |path: &Path,
                     size: Option<u64>,
                     destroy: &[&Path],
                     expected: Result<(PrepareKind, u64, bool), &str>| {
            match (inspect(path, size, destroy), expected) {
                (Ok(target), Ok(expected)) => {
                    assert_eq!((target.kind, target.size, target.may_write), expected)
                }
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{error}");
                    assert!(error.hint.is_some(), "{error}");
                }
                (found, _) => panic!("{}: {found:?}, expected {expected:?}", path.display()),
            }
        };
        check(&new, Some(2 << 20), &[], Ok((PrepareKind::NewFile, 2 << 20, true)));
        check(&new, None, &[], Err("no size to create it"));
        check(&new, Some(1 << 60), &[], Err(" more, "));
        check(&new, Some(4096), &[], Err("too little"));
        check(&new, Some(2 << 20), &[&new], Err("no such file"));
        check(&dir.path().join("no/new"), Some(2 << 20), &[], Err("no such file or directory"));
        check(&file, None, &[], Ok((PrepareKind::File, 3 << 20, false)));
        check(&file, Some(5 << 20), &[], Err("the target has 3.0 MiB"));
        check(&file, Some(5 << 20), &[&file], Ok((PrepareKind::File, 5 << 20, true)));
        check(&file, None, &[&new], Err("is not the target named by --destroy-data="));
        check(dir.path(), Some(2 << 20), &[], Err("is a directory"));
        check(Path::new("/dev/null"), None, &[], Err("neither"));
    }
}
