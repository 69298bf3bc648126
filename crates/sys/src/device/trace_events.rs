//! Where the kernel describes its trace events: a mounted trace file system, or a private one that is attached nowhere.
//!
//! A machine without a mounted trace file system stays one: the private one is gone with the last descriptor of it,
//! however the process ends. Files are read only; nothing is set up in the file system.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags};
use rustix::thread::UnshareFlags;

use super::error::DeviceError;
use super::filesystem;
use super::root::SysRoot;

/// The directory of the block events in the trace file system.
const BLOCK_EVENTS: &str = "events/block";
/// Where the trace file system is usually mounted. The kernel makes this directory for it.
const USUAL_PLACE: &str = "/sys/kernel/tracing";
/// Name of the private mount, as `/proc/self/mountinfo` would show it.
const SOURCE: &str = "fathom";

/// The descriptions of the block events.
#[derive(Debug)]
pub(super) struct TraceEvents {
    directory: OwnedFd,
    /// Where it is, or would be if it were mounted.
    path: PathBuf,
}

impl TraceEvents {
    /// Finds a mounted trace file system, or makes a private one where that is allowed.
    ///
    /// # Errors
    /// None is mounted that we may read, and a private one takes `CAP_SYS_ADMIN`.
    pub fn of_block(root: &SysRoot) -> Result<TraceEvents, DeviceError> {
        let mounts = filesystem::read_mounts(root).unwrap_or_default();
        let of_kind = |kind: &'static str| mounts.iter().filter(move |mount| mount.fs_type == kind);
        let tracefs: Vec<PathBuf> = of_kind("tracefs").map(|mount| mount.mount_point.clone()).collect();
        // Only before Linux 4.1 are the events a part of debugfs. Later kernels mount a trace file system there when
        // somebody looks, which outlives us, so this comes last.
        let debugfs: Vec<PathBuf> =
            of_kind("debugfs").map(|mount| mount.mount_point.join("tracing")).collect();
        let open = |place: &PathBuf| mounted(root, place);
        if let Some(events) = tracefs.iter().find_map(open) {
            return Ok(events);
        }
        if let Some(directory) = root.is_real().then(private).and_then(Result::ok) {
            return Ok(TraceEvents { directory, path: Path::new(USUAL_PLACE).join(BLOCK_EVENTS) });
        }
        debugfs.iter().find_map(open).ok_or_else(|| {
            let mut places = tracefs.into_iter().chain(debugfs);
            // Only root may read the mounted file system.
            let (path, kind) = match places.next() {
                Some(place) => (place, ErrorKind::PermissionDenied),
                None => (PathBuf::from(USUAL_PLACE), ErrorKind::NotFound),
            };
            DeviceError::Io { attempted: "open", path, source: kind.into() }
        })
    }

    /// The text of a file, by its path below the events.
    pub fn text(&self, file: &str) -> Result<String, DeviceError> {
        read_at(&self.directory, file).map_err(|source| DeviceError::Io {
            attempted: "read",
            path: self.path.join(file),
            source,
        })
    }
}

fn mounted(root: &SysRoot, place: &Path) -> Option<TraceEvents> {
    let path = root.path(place.join(BLOCK_EVENTS));
    let directory = open_directory(CWD, &path).ok()?;
    Some(TraceEvents { directory, path })
}

/// The block events of a trace file system that is attached nowhere.
fn private() -> io::Result<OwnedFd> {
    detached().or_else(|_| in_namespace())
}

/// By a mount that has no place, from Linux 5.2 on.
fn detached() -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "source", SOURCE)?;
    rustix::mount::fsconfig_create(context.as_fd())?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    let mount = rustix::mount::fsmount(context.as_fd(), flags, MountAttrFlags::MOUNT_ATTR_RDONLY)?;
    open_directory(&mount, Path::new(BLOCK_EVENTS))
}

/// By a mount in a namespace that ends with its only thread; the directory stays readable as long as it is open.
fn in_namespace() -> io::Result<OwnedFd> {
    let helper = std::thread::Builder::new().name("tracefs".to_owned()).spawn(|| {
        // SAFETY: descriptors stay shared with the other threads; only the mounts that this thread sees change.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
        // Nothing that is mounted here may reach the other namespaces.
        rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        // Not read-only: there is one trace file system, and as an option of `mount` this would affect all its users.
        rustix::mount::mount(SOURCE, USUAL_PLACE, "tracefs", MountFlags::empty(), None)?;
        open_directory(CWD, &Path::new(USUAL_PLACE).join(BLOCK_EVENTS))
    })?;
    helper.join().unwrap_or_else(|_| Err(io::Error::other("the helper thread panicked")))
}

fn open_directory(at: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, path, flags, Mode::empty())?)
}

fn read_at(directory: &OwnedFd, file: &str) -> io::Result<String> {
    let file = rustix::fs::openat(directory, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    File::from(file).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fixture::Fixture;

    #[test]
    fn events_are_found_wherever_they_are_mounted() {
        let mut fixture = Fixture::new();
        let reason = |fixture: &Fixture| TraceEvents::of_block(&fixture.root()).unwrap_err().to_string();
        assert_eq!(reason(&fixture), "cannot open /sys/kernel/tracing: entity not found");
        fixture.mount("0:12", "/sys/kernel/debug", "debugfs", "debugfs").mount("0:13", "/t", "tracefs", "t");
        assert_eq!(reason(&fixture), "cannot open /t: permission denied");
        let id =
            |fixture: &Fixture| TraceEvents::of_block(&fixture.root()).unwrap().text("block_rq_issue/id");
        fixture.write("sys/kernel/debug/tracing/events/block/block_rq_issue/id", "4\n");
        assert_eq!(id(&fixture).unwrap(), "4\n");
        fixture.write("t/events/block/block_rq_issue/id", "5\n");
        assert_eq!(id(&fixture).unwrap(), "5\n");
    }

    /// Each way gives the events to root and nothing to others, and neither leaves a mount.
    #[test]
    fn private_trace_file_system_is_attached_nowhere() {
        for way in [detached, in_namespace] {
            match way() {
                Ok(events) => {
                    let id = read_at(&events, "block_rq_issue/id").unwrap();
                    assert!(id.trim().parse::<u64>().is_ok(), "{id:?}");
                }
                Err(error) => {
                    assert!(!rustix::process::geteuid().is_root(), "{error}");
                    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
                }
            }
            let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
            assert!(!mounts.contains(&format!("tracefs {SOURCE} ")), "{mounts}");
        }
    }
}
