//! Opens what is pinged: the working file in a directory, a file or a block device; refuses what must not be written.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use fathom_analysis::ping::PingTarget;
use fathom_engine::registry::{self, ENGINES};
use fathom_engine::{EngineEntry, EngineSetup, OpenFile, RawEngineOptions, sim};
use fathom_model::units::bytes;
use fathom_runner::{Requester, Session, WritePermit, Written, admit};
use fathom_sys::device::{
    DiskSampler, FilesystemFacts, PathKind, TargetHandle, TargetIdentity, TargetStack, numbers_of,
    unfit_for_a_new_file,
};
use fathom_sys::io::{Advice, OpenFlags, block_device_size, fadvise, reopen};

use super::PingSettings;
use super::worker::Random;
use crate::error::plain;
use crate::simulated::{SimulatedVolume, check_engine, notes_on, session_for};
use crate::target::BenchTarget;
use crate::{AssessError, ErrorKind, machine, working_file};

/// Working set in a directory where none is named.
const DIRECTORY_RANGE: u64 = 1 << 20;
/// Working sets up to this are made however little is free beside them.
const SMALL: u64 = 16 << 20;
pub(super) const EINVAL: i32 = 22;
/// The name of the file that is kept.
const KEPT: &str = "ioping.tmp";

/// What is pinged, open and filled.
pub(super) struct OpenedTarget {
    /// `None` for a simulated volume.
    pub file: Option<Arc<File>>,
    pub facts: PingTarget,
    /// Bytes over which requests spread, from `PingSettings::offset` on.
    pub range: u64,
    /// The file system keeps its data in this machine's memory.
    pub in_memory: bool,
    /// Counters of the device beneath.
    pub disk: Option<DiskSampler>,
    /// Keeps a device that is written to for this process.
    pub _handle: Option<TargetHandle>,
}

/// Opens the target of `settings`; a working file is filled with what `random` gives, and `beat` is called each time a
/// piece of it is written.
pub(super) fn open(
    settings: &PingSettings,
    random: &mut Random,
    beat: &dyn Fn(),
) -> Result<OpenedTarget, AssessError> {
    let path = &settings.target;
    let unseen = |error: &io::Error| {
        let message = format!("stat \"{}\" failed: {}", path.display(), plain(error));
        AssessError::preparation(message, "use a directory, an existing file or a block device")
    };
    std::fs::metadata(path).map_err(|error| unseen(&error))?;
    let stack = TargetStack::of(path).map_err(|error| unseen(&io::Error::other(error.to_string())))?;
    let filesystem = stack.filesystem.clone().unwrap_or_default();
    let mut held = None;
    let (file, size) = match stack.target {
        PathKind::Directory => {
            let range = settings.range.unwrap_or(DIRECTORY_RANGE.max(settings.size));
            (
                in_directory(settings, range, &filesystem, &mut |payload| {
                    beat();
                    random.fill(payload);
                })?,
                settings.offset.saturating_add(range),
            )
        }
        PathKind::File => existing(settings, false, &mut held)?,
        PathKind::BlockDevice => existing(settings, true, &mut held)?,
        PathKind::CharDevice if !settings.operation.writes() => {
            let range = settings.range.unwrap_or(DIRECTORY_RANGE.max(settings.size));
            (existing(settings, false, &mut held)?.0, settings.offset.saturating_add(range))
        }
        _ => return Err(unsupported(path)),
    };
    let range = settings.range_within(size)?;
    let is_read_ahead = settings.linear && settings.cached;
    if !is_read_ahead {
        // Advice only, and void where there is no cache.
        let _ = fadvise(&file, 0, 0, Advice::Random);
    }
    Ok(OpenedTarget {
        file: Some(Arc::new(file)),
        facts: facts(&stack),
        range,
        in_memory: filesystem.memory.is_some(),
        disk: stack.names().first().and_then(|name| DiskSampler::open(&[name]).ok()),
        _handle: held,
    })
}

fn facts(stack: &TargetStack) -> PingTarget {
    let device = stack.devices.first();
    let is_block_device = stack.target == PathKind::BlockDevice;
    let filesystem = stack.filesystem.clone().unwrap_or_default();
    PingTarget {
        path: stack.path.to_string_lossy().into_owned(),
        fs_type: if is_block_device { "block".to_owned() } else { filesystem.fs_type },
        device: match device {
            Some(device) => device.path.to_string_lossy().into_owned(),
            None => filesystem.source.to_string_lossy().into_owned(),
        },
        device_size_bytes: if is_block_device {
            device.map_or(0, |device| device.size_bytes)
        } else {
            filesystem.total_bytes
        },
        is_block_device,
        is_char_device: stack.target == PathKind::CharDevice,
    }
}

fn flags(settings: &PingSettings) -> OpenFlags {
    OpenFlags {
        write: settings.operation.writes(),
        direct: settings.direct,
        sync: settings.sync,
        dsync: settings.dsync && !settings.sync,
        no_atime: true,
        ..OpenFlags::default()
    }
}

/// Opens what is there, after it was found free where it is to be written to; `held` keeps it.
fn existing(
    settings: &PingSettings,
    is_block_device: bool,
    held: &mut Option<TargetHandle>,
) -> Result<(File, u64), AssessError> {
    let path = &settings.target;
    let failed = |error| unopened("open", path, settings.direct, &error);
    let handle = held.insert(TargetHandle::open(path).map_err(failed)?);
    if settings.operation.writes() {
        may_be_overwritten(settings, handle, is_block_device)?;
    }
    let file = handle.reopen(flags(settings)).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let size = if is_block_device { block_device_size(&file).map_err(failed)? } else { metadata.len() };
    Ok((file, size))
}

/// Refuses to overwrite data without consent, and a target in use in any case.
fn may_be_overwritten(
    settings: &PingSettings,
    handle: &TargetHandle,
    is_block_device: bool,
) -> Result<(), AssessError> {
    let path = &settings.target;
    match &settings.destroy_named {
        Some(other) if !WritePermit::own(std::slice::from_ref(other)).names(path) => {
            return Err(settings.other_named(other));
        }
        None if is_block_device && settings.devices_by_name => {
            let path = path.display();
            let message = format!("would overwrite the data on {path}: requires --destroy-data={path}");
            return Err(AssessError::usage(message, "omit -W and -G to read only"));
        }
        None if !settings.destroy => {
            let message = "think twice, then use -WWW to shred this target";
            return Err(AssessError::usage(message, "this would overwrite the data on the target"));
        }
        _ => {}
    }
    // Under the name ioping, -WWW is the consent.
    admitted(path, handle)
}

/// Refuses a target in use.
fn admitted(path: &Path, handle: &TargetHandle) -> Result<(), AssessError> {
    admit(&WritePermit::own(&[path.to_owned()]), &[Written { handle, allow_mounted_write: false }])
        .map(drop)
        .map_err(|error| AssessError { kind: ErrorKind::Preparation, ..error.into() })
}

fn unsupported(path: &Path) -> AssessError {
    let message = format!("unsupported destination: \"{}\"", path.display());
    AssessError::preparation(message, "use a directory, a regular file or a block device")
}

fn unopened(attempted: &str, path: &Path, direct: bool, error: &io::Error) -> AssessError {
    let message = format!("failed to {attempted} \"{}\": {}", path.display(), plain(error));
    let hint = match error.raw_os_error() {
        Some(EINVAL) if direct => "the file system does not support direct I/O: use --buffered",
        _ => "check permissions, or run as root",
    };
    AssessError::preparation(message, hint)
}

/// The working file: without a name, or `ioping.tmp` where it is to be kept.
fn in_directory(
    settings: &PingSettings,
    range: u64,
    filesystem: &FilesystemFacts,
    payload: &mut dyn FnMut(&mut [u8]),
) -> Result<File, AssessError> {
    let size = settings.offset.saturating_add(range);
    let path = &settings.target;
    let failed =
        |attempted, path: &Path, error: io::Error| unopened(attempted, path, settings.direct, &error);
    // A few MiB hurt no system; more leave something on the one it lives on.
    let is_own_root = filesystem.is_root_filesystem && settings.devices_by_name && size > SMALL;
    let reserve = if is_own_root { working_file::ROOT_RESERVE } else { 0 };
    let free = filesystem.free_bytes.saturating_sub(reserve);
    let kept = path.join(KEPT);
    let (file, has) = if settings.keep {
        let file = kept_file(&kept)?;
        let has = file.metadata().map_err(|error| failed("open", &kept, error))?.len();
        (file, has)
    } else {
        let file = working_file::make(path, settings.direct);
        let failed = |error: AssessError| {
            // The path stands before it.
            let reason = error.reason(path);
            let reason = reason.strip_prefix("cannot create the test file: ").unwrap_or(reason);
            let message = format!("failed to create temporary file at \"{}\": {reason}", path.display());
            AssessError { message, ..error }
        };
        (file.map_err(failed)?, 0)
    };
    if has < size {
        if filesystem.total_bytes > 0 && size - has > free {
            let message = format!("{}: needs {}, {} available", path.display(), bytes(size), bytes(free));
            return Err(AssessError::preparation(message, "use a smaller -S, or free some space"));
        }
        fill(&file, has, size, payload).map_err(|error| failed("fill a file in", path, error))?;
    }
    reopen(&file, flags(settings)).map_err(|error| failed("open a file in", path, error))
}

/// The file that is kept, made where it is missing. One that is there is written to if it is free and has no other name: a
/// link could lead anywhere.
fn kept_file(path: &Path) -> Result<File, AssessError> {
    let failed = |error| unopened("open", path, false, &error);
    let write = OpenFlags { write: true, ..OpenFlags::default() };
    if !path.exists() && unfit_for_a_new_file(path).is_some() {
        return Err(unsupported(path));
    }
    match TargetHandle::create(path) {
        Ok(made) => {
            let file = made.reopen(write).map_err(failed)?;
            file.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
            return Ok(file);
        }
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        Err(_) => {}
    }
    let there = TargetHandle::open(path).map_err(failed)?;
    let named = path.symlink_metadata().map_err(failed)?;
    let (major, minor) = numbers_of(named.dev());
    let is_itself = there.identity() == TargetIdentity::File(major, minor, named.ino());
    if !named.is_file() || !is_itself || named.nlink() > 1 {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    admitted(path, &there)?;
    there.reopen(write).map_err(failed)
}

/// Writes what `payload` gives up to `size`, durably, and leaves none of it in the cache.
fn fill(file: &File, from: u64, size: u64, payload: &mut dyn FnMut(&mut [u8])) -> io::Result<()> {
    let mut chunk = vec![0; 1 << 20];
    let mut at = from;
    while at < size {
        let len = chunk.len().min(usize::try_from(size - at).unwrap_or(usize::MAX));
        payload(&mut chunk[..len]);
        file.write_all_at(&chunk[..len], at)?;
        at += len as u64;
    }
    file.sync_all()?;
    fadvise(file, 0, 0, Advice::DontNeed)
}

/// Opens the engine of `settings` on `target`; with its name. A simulated volume answers whatever engine is named.
pub(super) fn requester(
    settings: &PingSettings,
    target: &OpenedTarget,
    session: &Session,
) -> Result<(String, Requester), AssessError> {
    let (entry, max_block, options) = if session.is_simulated() {
        (&sim::ENTRY, 0, RawEngineOptions::default())
    } else {
        chosen(settings)?
    };
    let setup = EngineSetup {
        depth: 1,
        max_block,
        paths: Vec::new(),
        files: vec![OpenFile {
            file: target.file.clone(),
            size: settings.offset + target.range,
            is_block_device: target.facts.is_block_device,
            volume: 0,
        }],
        direct: settings.direct,
        writes: settings.operation.writes(),
        random: !settings.linear,
        options,
        priorities: Default::default(),
    };
    let requester = session.requester(entry, setup)?;
    Ok((entry.name.to_owned(), requester))
}

/// The engine, its largest request, and the options that it is opened with.
fn chosen(settings: &PingSettings) -> Result<(&'static EngineEntry, usize, RawEngineOptions), AssessError> {
    let name = name_of(settings);
    let refused = |message: String, hint: Option<String>| AssessError::new(ErrorKind::Usage, message, hint);
    let entry = registry::find(name).filter(|entry| entry.traits.moves_data).ok_or_else(|| {
        let names = ENGINES.iter().filter(|entry| entry.traits.moves_data).map(|entry| entry.name);
        let hint = format!("use one of {}", names.collect::<Vec<_>>().join(", "));
        refused(format!("unknown engine '{name}', or one that does not access files"), Some(hint))
    })?;
    let max_block = usize::try_from(settings.size).ok().filter(|size| *size <= LARGEST);
    let max_block = max_block.ok_or_else(|| refused("request size exceeds 1 GiB".to_owned(), None))?;
    let mut options = BTreeMap::new();
    // The kernel takes the wish to poll from Linux AIO and drops it: there is no poller.
    let polls = settings.poll && entry.name != "libaio";
    for (option, wanted) in [("nowait", settings.nowait), ("hipri", polls)] {
        if !wanted {
            continue;
        }
        if !entry.options.iter().any(|row| row.name == option) {
            let hint = Some("omit one of the two".to_owned());
            return Err(refused(format!("engine {name} does not support {option}"), hint));
        }
        options.insert(option.to_owned(), "1".to_owned());
    }
    Ok((entry, max_block, RawEngineOptions(options)))
}

/// Buffers beyond this are not what a ping is for.
const LARGEST: usize = 1 << 30;

/// The engine that was asked for; else io_uring where requests pass the cache and the kernel lets it, for it can be broken
/// off; through the cache it would hand reads to another thread, and plain calls are the truth.
fn name_of(settings: &PingSettings) -> &str {
    match settings.engine.as_deref() {
        Some("psync") if settings.nowait || settings.poll => "pvsync2",
        Some(name) => name,
        None if settings.nowait || settings.poll => "pvsync2",
        None if settings.direct && machine::probe("io_uring").is_ok() => "io_uring",
        None => "psync",
    }
}

/// A simulated volume, ready.
pub(super) struct OpenedVolume {
    pub target: OpenedTarget,
    pub session: Session,
    /// Notes on it.
    pub notes: Vec<String>,
}

/// Makes the volume that is pinged.
pub(super) fn open_volume(settings: &PingSettings) -> Result<OpenedVolume, AssessError> {
    let volume = SimulatedVolume::named(&settings.target, &settings.types)?;
    let target = BenchTarget::Simulated(Box::new(volume.clone()));
    check_engine(settings.engine.as_deref(), &target)?;
    if let Some(other) = settings.destroy_named.iter().find(|other| **other != settings.target) {
        return Err(settings.other_named(other));
    }
    let notes = notes_on([&target]);
    let facts = PingTarget {
        path: volume.path.to_string_lossy().into_owned(),
        fs_type: "block".to_owned(),
        device: volume.path.to_string_lossy().into_owned(),
        device_size_bytes: volume.size(),
        is_block_device: true,
        is_char_device: false,
    };
    let range = settings.range_within(volume.size())?;
    let opened = OpenedTarget { file: None, facts, range, in_memory: false, disk: None, _handle: None };
    Ok(OpenedVolume { target: opened, session: session_for([&target]), notes })
}
