//! Opening, sizing and shaping the files and devices under test.
//!
//! Everything here is done outside the measurement; the requests themselves are in `transfer`, `uring`, `aio` and
//! `mmap`.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, StatxFlags};

/// How a target is opened. `Default` is read-only and buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFlags {
    /// Open for reading.
    pub read: bool,
    /// Open for writing.
    pub write: bool,
    /// Make the file where it is missing, with mode 0644 less the umask.
    pub create: bool,
    /// With `create`: fail where the file exists.
    pub exclusive: bool,
    /// Cut an existing file to zero bytes.
    pub truncate: bool,
    /// O_APPEND: each write goes to the end of the file, wherever others have moved it.
    pub append: bool,
    /// O_DIRECT.
    pub direct: bool,
    /// O_SYNC.
    pub sync: bool,
    /// O_DSYNC.
    pub dsync: bool,
    /// O_NOATIME for own files; silently omitted if the system forbids it.
    pub no_atime: bool,
}

impl Default for OpenFlags {
    fn default() -> Self {
        OpenFlags {
            read: true,
            write: false,
            create: false,
            exclusive: false,
            truncate: false,
            append: false,
            direct: false,
            sync: false,
            dsync: false,
            no_atime: false,
        }
    }
}

impl OpenFlags {
    fn to_oflags(self) -> OFlags {
        let access = match (self.read, self.write) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (_, false) => OFlags::RDONLY,
        };
        let optional = [
            (self.create, OFlags::CREATE),
            (self.exclusive, OFlags::EXCL),
            (self.truncate, OFlags::TRUNC),
            (self.direct, OFlags::DIRECT),
            (self.sync, OFlags::SYNC),
            (self.dsync, DSYNC),
            (self.append, OFlags::APPEND),
            (self.no_atime, OFlags::NOATIME),
        ];
        let start = access | OFlags::CLOEXEC | OFlags::LARGEFILE | OFlags::NOCTTY;
        optional.iter().filter(|(wanted, _)| *wanted).fold(start, |flags, (_, flag)| flags | *flag)
    }
}

/// rustix's own O_DSYNC is O_SYNC on this backend, which would measure another operation.
const DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as u32);

const NEW_FILE_MODE: Mode = Mode::from_raw_mode(0o644);

/// Opens a file or device. The error is the system's; EINVAL with `direct` means a file system without O_DIRECT.
pub fn open_target(path: &Path, flags: OpenFlags) -> io::Result<File> {
    let oflags = flags.to_oflags();
    let mut opened = rustix::fs::open(path, oflags, NEW_FILE_MODE);
    if flags.no_atime && opened.as_ref().is_err_and(|error| *error == rustix::io::Errno::PERM) {
        opened = rustix::fs::open(path, oflags - OFlags::NOATIME, NEW_FILE_MODE);
    }
    Ok(File::from(opened?))
}

/// Makes a file without a name in `dir`: the kernel removes it when the last descriptor is closed.
///
/// Fails with `EOPNOTSUPP`, `EISDIR` or `ENOENT` on file systems that cannot.
pub fn open_unnamed(dir: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::LARGEFILE;
    Ok(File::from(rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR)?))
}

/// Reopens the file of a descriptor with separate flags and position; works for unnamed files.
///
/// Needs `/proc`. `create`, `exclusive` and `truncate` are refused with `InvalidInput`.
pub fn reopen(file: &File, flags: OpenFlags) -> io::Result<File> {
    if flags.create || flags.exclusive || flags.truncate {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "an open file cannot be made or cut by reopening it",
        ));
    }
    let path = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
    open_target(Path::new(&path), flags)
}

/// The flags that a file was opened with, as far as [`OpenFlags`] has them.
pub fn flags_of(file: &File) -> io::Result<OpenFlags> {
    let raw = rustix::fs::fcntl_getfl(file)?;
    let access = raw & OFlags::RWMODE;
    let sync = raw.contains(OFlags::SYNC);
    Ok(OpenFlags {
        read: access != OFlags::WRONLY,
        write: access != OFlags::RDONLY,
        append: raw.contains(OFlags::APPEND),
        direct: raw.contains(OFlags::DIRECT),
        sync,
        dsync: raw.contains(DSYNC) && !sync,
        no_atime: raw.contains(OFlags::NOATIME),
        ..OpenFlags::default()
    })
}

/// True where another process, or another descriptor of this one, holds a lock (`fcntl`) on a part of the file that an
/// exclusive lock on the whole would meet. Takes no lock itself.
pub fn is_locked_by_another(file: &File) -> io::Result<bool> {
    let mut wanted = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: F_OFD_GETLK reads and writes the one structure, which outlives the call; the descriptor is open.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut wanted) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(i32::from(wanted.l_type) != libc::F_UNLCK)
}

/// The system's message for an error, without the number that `io::Error` appends.
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(errno) => text.trim_end_matches(&format!(" (os error {errno})")).to_owned(),
        None => text,
    }
}

/// The effect of [`fallocate`] on the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallocateMode {
    /// Reserve blocks and extend the file.
    Extend,
    /// Reserve blocks and leave the apparent size.
    KeepSize,
    /// Give the blocks back; the range reads as zeroes.
    PunchHole,
    /// Keep or reserve the blocks; the range reads as zeroes.
    ZeroRange,
}

/// fallocate(2) on `offset..offset + len`. Fails with `EOPNOTSUPP` where the file system cannot.
pub fn fallocate(file: &File, mode: FallocateMode, offset: u64, len: u64) -> io::Result<()> {
    let flags = match mode {
        FallocateMode::Extend => FallocateFlags::empty(),
        FallocateMode::KeepSize => FallocateFlags::KEEP_SIZE,
        FallocateMode::PunchHole => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        FallocateMode::ZeroRange => FallocateFlags::ZERO_RANGE,
    };
    loop {
        match rustix::fs::fallocate(file, flags, offset, len) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Advice to the kernel about future accesses.
pub use rustix::fs::Advice;

/// posix_fadvise(2) on `offset..offset + len`; a `len` of 0 means up to the end.
pub fn fadvise(file: &File, offset: u64, len: u64, advice: Advice) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, offset, NonZeroU64::new(len), advice)?)
}

/// Drops the cached, written-back pages of `offset..offset + len`; a `len` of 0 means up to the end.
pub fn fadvise_dontneed(file: &File, offset: u64, len: u64) -> io::Result<()> {
    fadvise(file, offset, len, Advice::DontNeed)
}

/// Writes the cached data of the file system of `file` to its device (syncfs).
pub fn sync_file_system(file: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(file)?)
}

/// Sets the life time of data written to the inode of `file` (F_SET_RW_HINT): 1 none, 2 short, 3 medium, 4 long, 5
/// extreme. EINVAL where the kernel or the file has no hints.
pub fn set_write_hint(file: &File, life_time: u64) -> io::Result<()> {
    const F_SET_RW_HINT: libc::c_int = 1036;
    // SAFETY: the kernel reads one u64 from a local that outlives the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), F_SET_RW_HINT, &raw const life_time) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The size in bytes of an open block device. Fails with `ENOTTY` on anything else.
pub fn block_device_size(file: &File) -> io::Result<u64> {
    if !file.metadata()?.file_type().is_block_device() {
        return Err(io::Error::from_raw_os_error(libc::ENOTTY));
    }
    const BLKGETSIZE64: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<usize>(0x12, 114);
    // SAFETY: BLKGETSIZE64 writes one u64 to a u64 that the getter owns.
    let getter = unsafe { rustix::ioctl::Getter::<BLKGETSIZE64, u64>::new() };
    // SAFETY: as above; the descriptor is that of a block device.
    Ok(unsafe { rustix::ioctl::ioctl(file.as_fd(), getter) }?)
}

/// The logical block size in bytes of an open block device. Fails with `ENOTTY` on anything else.
pub fn logical_block_size(file: &File) -> io::Result<u32> {
    Ok(rustix::fs::ioctl_blksszget(file)?)
}

/// Discards `offset..offset + len` of a block device (BLKDISCARD).
pub fn discard_blocks(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let range = [offset, len];
    const BLKDISCARD: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 119);
    // SAFETY: BLKDISCARD reads two u64 from the array that outlives the call.
    let setter = unsafe { rustix::ioctl::Setter::<BLKDISCARD, [u64; 2]>::new(range) };
    // SAFETY: as above.
    Ok(unsafe { rustix::ioctl::ioctl(file.as_fd(), setter) }?)
}

/// The alignment that O_DIRECT requires for a file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Alignment of buffers in memory.
    pub memory: u32,
    /// Alignment of offsets and lengths.
    pub offset: u32,
}

/// The alignment that O_DIRECT requires for this file, from Linux 6.1 on; `None` if the kernel does not report it or
/// the file has no direct I/O.
pub fn direct_alignment(file: &File) -> Option<DirectAlignment> {
    let stat = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let reported = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    let (memory, offset) = (stat.stx_dio_mem_align, stat.stx_dio_offset_align);
    (reported && offset != 0).then_some(DirectAlignment { memory, offset })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom, Write};
    use std::os::unix::fs::{FileExt, MetadataExt};

    #[test]
    fn unnamed_files_disappear_and_can_be_reopened() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = open_unnamed(dir.path()).unwrap();
        file.write_all(b"payload").unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);

        let mut second = reopen(&file, OpenFlags::default()).unwrap();
        assert_eq!(second.stream_position().unwrap(), 0, "a reopened file has its own position");
        second.seek(SeekFrom::Start(3)).unwrap();
        assert_eq!(file.stream_position().unwrap(), 7);
        let mut bytes = [0; 4];
        second.read_exact_at(&mut bytes, 3).unwrap();
        assert_eq!(&bytes, b"load");
        assert!(second.write_at(b"x", 0).is_err(), "reopened read-only");
        assert!(reopen(&file, OpenFlags { truncate: true, ..OpenFlags::default() }).is_err());
    }

    #[test]
    fn errors_are_described_in_words() {
        assert_eq!(describe(&io::Error::from_raw_os_error(28)), "No space left on device");
        assert_eq!(describe(&io::Error::other("odd")), "odd");
    }

    #[test]
    fn flags_survive_opening() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let base = OpenFlags { write: true, create: true, ..OpenFlags::default() };
        let table = [
            base,
            OpenFlags { read: false, ..base },
            OpenFlags { sync: true, ..base },
            OpenFlags { dsync: true, ..base },
            OpenFlags { append: true, ..base },
            OpenFlags { write: false, create: false, ..base },
            OpenFlags { no_atime: true, ..base },
        ];
        for flags in table {
            let file = open_target(&path, flags).unwrap();
            assert_eq!(flags_of(&file).unwrap(), OpenFlags { create: false, ..flags });
        }
        let exclusive = OpenFlags { exclusive: true, ..base };
        assert_eq!(open_target(&path, exclusive).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn fallocate_reserves_and_releases() {
        let file = tempfile::tempfile().unwrap();
        fallocate(&file, FallocateMode::Extend, 0, 1 << 20).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 1 << 20);
        file.write_all_at(&[7; 8192], 0).unwrap();
        fallocate(&file, FallocateMode::PunchHole, 4096, 4096).unwrap();
        let mut bytes = [1; 8192];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes[..4096].iter().all(|&byte| byte == 7) && bytes[4096..].iter().all(|&byte| byte == 0));
        assert_eq!(file.metadata().unwrap().size(), 1 << 20);
        fadvise_dontneed(&file, 0, 0).unwrap();
    }

    #[test]
    fn files_are_not_block_devices() {
        let file = tempfile::tempfile().unwrap();
        for error in [
            block_device_size(&file).unwrap_err(),
            logical_block_size(&file).map(|_| ()).unwrap_err(),
            discard_blocks(&file, 0, 4096).unwrap_err(),
        ]
        .map(|error| error.raw_os_error())
        {
            assert!(matches!(error, Some(libc::ENOTTY | libc::EINVAL)), "{error:?}");
        }
    }
}
