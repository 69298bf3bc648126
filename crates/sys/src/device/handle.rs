//! A file or device under test, resolved once: later changes of its path do not matter.
//!
//! The path is resolved without opening its target, so neither a pipe nor a tape drive is affected. Everything later
//! (the guard, the layout, the jobs) goes through the descriptor. A claim keeps a block device for this process: while
//! it lasts, the kernel mounts nothing on the device and lets no other program claim it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, StatxFlags};

use super::filesystem;
use super::root::SysRoot;
use crate::io::{OpenFlags, open_target, reopen};

/// Identity of a descriptor's target by the kernel's numbers, the same for all its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetIdentity {
    /// A block device by major and minor number, whichever node it was reached by.
    Device(u32, u32),
    /// A file by the device of its file system (major, minor) and its inode.
    File(u32, u32, u64),
}

/// The kind of a handle's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleKind {
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// A directory.
    Directory,
    /// `/dev/null`, `/dev/zero`, `/dev/full`, `/dev/random` or `/dev/urandom`: it has no size, and no storage is behind it.
    PseudoDevice,
    /// Another character device.
    CharDevice,
    /// A pipe, a socket, or the like.
    Other,
}

/// Whether a character device is null, zero, full, random or urandom, by the numbers that Linux gives them
/// (Documentation/admin-guide/devices.txt).
fn is_pseudo_device(major: u32, minor: u32) -> bool {
    major == 1 && matches!(minor, 3 | 5 | 7 | 8 | 9)
}

/// A target under test, with an open descriptor.
#[derive(Debug)]
pub struct TargetHandle {
    file: File,
    path: PathBuf,
    kind: HandleKind,
    identity: TargetIdentity,
    /// The inode that was opened; of a block device that of its node.
    inode: TargetIdentity,
    claim: OnceLock<File>,
}

impl AsFd for TargetHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl TargetHandle {
    /// Resolves `path`, following symbolic links, without opening its target.
    ///
    /// # Errors
    /// It does not exist, or cannot be inspected.
    pub fn open(path: &Path) -> io::Result<TargetHandle> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        TargetHandle::of(File::from(rustix::fs::open(path, flags, Mode::empty())?), path)
    }

    /// Makes a new regular file at `path` with mode 0644 less the umask; a symbolic link there is not followed.
    ///
    /// # Errors
    /// Something has that name, or the file cannot be made.
    pub fn create(path: &Path) -> io::Result<TargetHandle> {
        let flags = OpenFlags { write: true, create: true, exclusive: true, ..OpenFlags::default() };
        TargetHandle::of(open_target(path, flags)?, path)
    }

    /// A file that is open already, such as one without a name; `path` is its name in messages.
    ///
    /// # Errors
    /// The file cannot be identified.
    pub fn of(file: File, path: &Path) -> io::Result<TargetHandle> {
        let stat = rustix::fs::statx(&file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
        let kind = match FileType::from_raw_mode(u32::from(stat.stx_mode)) {
            FileType::RegularFile => HandleKind::File,
            FileType::BlockDevice => HandleKind::BlockDevice,
            FileType::Directory => HandleKind::Directory,
            FileType::CharacterDevice if is_pseudo_device(stat.stx_rdev_major, stat.stx_rdev_minor) => {
                HandleKind::PseudoDevice
            }
            FileType::CharacterDevice => HandleKind::CharDevice,
            _ => HandleKind::Other,
        };
        let inode = TargetIdentity::File(stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino);
        let identity = match kind {
            HandleKind::BlockDevice => TargetIdentity::Device(stat.stx_rdev_major, stat.stx_rdev_minor),
            _ => inode,
        };
        Ok(TargetHandle { file, path: path.to_path_buf(), kind, identity, inode, claim: OnceLock::new() })
    }

    /// The path it was reached by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its kind.
    pub fn kind(&self) -> HandleKind {
        self.kind
    }

    /// Its identity.
    pub fn identity(&self) -> TargetIdentity {
        self.identity
    }

    /// The inode that was opened: of a block device that of its node, which is what file locks lie on.
    pub fn inode(&self) -> TargetIdentity {
        self.inode
    }

    /// Current size of a file, bytes; 0 for other targets.
    ///
    /// # Errors
    /// The size cannot be read.
    pub fn file_size(&self) -> io::Result<u64> {
        Ok(if self.kind == HandleKind::File { self.file.metadata()?.len() } else { 0 })
    }

    /// The number of names that a file has; 0 once the last one is gone.
    pub fn links(&self) -> Option<u64> {
        let stat = rustix::fs::statx(&self.file, c"", AtFlags::EMPTY_PATH, StatxFlags::NLINK).ok()?;
        Some(u64::from(stat.stx_nlink))
    }

    /// True where the file itself is a mount point (a bind mount of one file): its name there is not its name on disk.
    pub fn is_mount_point(&self) -> bool {
        let stat = rustix::fs::statx(&self.file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS);
        stat.is_ok_and(|stat| stat.stx_attributes.contains(rustix::fs::StatxAttributes::MOUNT_ROOT))
    }

    /// Whether swap is active in this file, under whatever path it was activated; false if it cannot be opened for writing.
    pub fn is_swap_file(&self) -> bool {
        const BEYOND_ANY_FILE: u64 = i64::MAX.cast_unsigned();
        let flags = OpenFlags { write: true, ..OpenFlags::default() };
        let Ok(file) = self.reopen(flags) else { return false };
        // The kernel looks for swap first, and then refuses a range that no file can have: nothing is allocated.
        let refused = rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, BEYOND_ANY_FILE, 1);
        refused == Err(rustix::io::Errno::TXTBSY)
    }

    /// Reopens the target with separate flags and position. Needs `/proc`.
    ///
    /// # Errors
    /// Those of opening; `InvalidInput` for `create`, `exclusive` and `truncate`.
    pub fn reopen(&self, flags: OpenFlags) -> io::Result<File> {
        reopen(&self.file, flags)
    }

    /// Keeps a block device for this process for as long as the handle lives; nothing changes for anything else.
    ///
    /// # Errors
    /// `ResourceBusy` where the device or a part of it is in use: mounted (in any mount namespace), used by another
    /// device, swap, or claimed by another program.
    pub fn claim(&self) -> io::Result<()> {
        if self.kind == HandleKind::BlockDevice && !self.is_claimed() {
            // A second claim of the same handle would be the first one's rival; it is dropped here.
            let _ = self.claim.set(self.open_exclusively()?);
        }
        Ok(())
    }

    fn open_exclusively(&self) -> io::Result<File> {
        let path = format!("/proc/thread-self/fd/{}", self.file.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::LARGEFILE;
        Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// True while the device is kept for this process.
    pub fn is_claimed(&self) -> bool {
        self.claim.get().is_some()
    }
}

/// Major and minor number of a device as `stat` gives it.
pub fn numbers_of(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// Why no file may be made at `path`, which does not exist; `None` where one may.
///
/// A file among the device nodes would lie in memory and be no device's measure, and a symbolic link that leads nowhere
/// would have the file made somewhere else.
pub fn unfit_for_a_new_file(path: &Path) -> Option<&'static str> {
    if path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
        return Some("is a symbolic link that leads nowhere");
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = parent.canonicalize().ok()?;
    is_among_devices(&parent).then_some("there is no such device")
}

/// True for a directory of device nodes: in a devtmpfs, or below `/dev` on the same mount as `/dev` itself (`/dev/shm` is
/// another).
fn is_among_devices(directory: &Path) -> bool {
    // A devtmpfs is a tmpfs or ramfs to those who ask for its type; others need no look at the mounts.
    const TMPFS: i128 = 0x0102_1994;
    const RAMFS: i128 = 0x8584_58f6;
    let is_in_memory = rustix::fs::statfs(directory)
        .map_or(true, |stat| [TMPFS, RAMFS].contains(&(i128::from(stat.f_type) & 0xffff_ffff)));
    if !is_in_memory && !directory.starts_with("/dev") {
        return false;
    }
    let root = SysRoot::real();
    let Ok(mounts) = filesystem::read_mounts(&root) else { return directory.starts_with("/dev") };
    let mount_of = |path: &Path| filesystem::mount_of(&root, &mounts, path).ok();
    let Some(mount) = mount_of(directory) else { return directory.starts_with("/dev") };
    let is_of_dev =
        || directory.starts_with("/dev") && mount_of(Path::new("/dev")).is_some_and(|dev| dev.id == mount.id);
    mount.fs_type == "devtmpfs" || is_of_dev()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_handle_keeps_its_file_when_the_path_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second, link) =
            (dir.path().join("first"), dir.path().join("second"), dir.path().join("link"));
        std::fs::write(&first, "first").unwrap();
        std::fs::write(&second, "second").unwrap();
        symlink(&first, &link).unwrap();
        let handle = TargetHandle::open(&link).unwrap();
        std::fs::remove_file(&link).unwrap();
        symlink(&second, &link).unwrap();
        let text = std::io::read_to_string(handle.reopen(OpenFlags::default()).unwrap()).unwrap();
        assert_eq!(text, "first");
        assert_eq!(handle.identity(), TargetHandle::open(&first).unwrap().identity());
        assert_ne!(handle.identity(), TargetHandle::open(&link).unwrap().identity());
        assert_eq!(
            (handle.kind(), handle.links(), handle.file_size().unwrap()),
            (HandleKind::File, Some(1), 5)
        );
        std::fs::remove_file(&first).unwrap();
        assert_eq!(handle.links(), Some(0));
    }

    #[test]
    fn new_files_are_created_only_at_unused_names() {
        let dir = tempfile::tempdir().unwrap();
        let (new, elsewhere, link) =
            (dir.path().join("new"), dir.path().join("elsewhere"), dir.path().join("link"));
        let handle = TargetHandle::create(&new).unwrap();
        assert_eq!(handle.kind(), HandleKind::File);
        assert_eq!(TargetHandle::create(&new).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        symlink(&elsewhere, &link).unwrap();
        assert_eq!(TargetHandle::create(&link).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(!elsewhere.exists());
    }

    #[test]
    fn the_question_for_swap_changes_no_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let handle = TargetHandle::open(file.path()).unwrap();
        assert!(!handle.is_swap_file());
        let metadata = std::fs::metadata(file.path()).unwrap();
        use std::os::unix::fs::MetadataExt as _;
        assert_eq!((metadata.len(), metadata.blocks()), (1 << 20, 0));
    }

    #[test]
    fn pseudo_devices_are_few() {
        let kind = |path: &str| TargetHandle::open(Path::new(path)).unwrap().kind();
        for path in ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"] {
            assert_eq!(kind(path), HandleKind::PseudoDevice, "{path}");
        }
        assert_eq!(kind("/dev/tty"), HandleKind::CharDevice);
        // Memory and I/O ports of the machine: writing to them can do anything.
        assert!([1, 2, 4].iter().all(|&minor| !is_pseudo_device(1, minor)));
    }

    #[test]
    fn inspecting_a_pipe_does_not_wait_for_a_writer() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(TargetHandle::open(&pipe).unwrap().kind(), HandleKind::Other);
        assert_eq!(TargetHandle::open(dir.path()).unwrap().kind(), HandleKind::Directory);
    }

    #[test]
    fn no_file_is_created_among_device_nodes_or_through_a_dangling_link() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink("/dev/fathom-no-such-device", &link).unwrap();
        let check = |path: &Path, expected: Option<&str>| {
            let found = unfit_for_a_new_file(path);
            assert_eq!(found.is_some(), expected.is_some(), "{}: {found:?}", path.display());
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()), "{found:?}");
        };
        check(&dir.path().join("new"), None);
        check(Path::new("fathom-no-such-file"), None);
        check(&link, Some("leads nowhere"));
        check(Path::new("/dev/fathom-no-such-device"), Some("no such device"));
        check(Path::new("/dev/../dev/fathom-no-such-device"), Some("no such device"));
        if Path::new("/dev/mapper").is_dir() {
            check(Path::new("/dev/mapper/fathom-no-such-device"), Some("no such device"));
        }
        let shm = Path::new("/dev/shm");
        let is_a_mount = std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains(" /dev/shm ");
        if is_a_mount {
            check(&shm.join("fathom-no-such-file"), None);
        }
    }
}
