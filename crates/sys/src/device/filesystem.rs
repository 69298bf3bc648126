//! The file system that a path lives on: its mount, its options, and its room.
//!
//! Mounts come from `/proc/self/mountinfo`; which of them holds a path is asked of the kernel (`statx` gives the
//! mount's id), or by the longest mount point otherwise.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::error::DeviceError;
use super::memory;
use super::root::SysRoot;

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number of this mount.
    pub id: u64,
    /// The number of the mount it is mounted on.
    pub parent: u64,
    /// Major number of the device; 0 for file systems without a block device (tmpfs, NFS, btrfs).
    pub major: u32,
    /// Minor number of the device.
    pub minor: u32,
    /// The directory of the file system that is seen at the mount point; not `/` for bind mounts and subvolumes.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Options of this mount.
    pub options: String,
    /// The type, such as `ext4`.
    pub fs_type: String,
    /// The source of the mount, as named when it was mounted.
    pub source: OsString,
    /// Options of the file system itself.
    pub super_options: String,
}

impl Mount {
    /// The value of an option of the file system, such as `upperdir`.
    pub fn super_option(&self, name: &str) -> Option<&str> {
        self.super_options
            .split(',')
            .find_map(|option| option.split_once('=').filter(|pair| pair.0 == name))
            .map(|pair| pair.1)
    }

    /// The device nodes named as its source: none for a name such as `tmpfs`, several for `/dev/a:/dev/b`. Only of file
    /// systems that lie on devices is a path outside `/dev` taken for a node: elsewhere it may be anything.
    pub fn source_nodes(&self) -> Vec<&Path> {
        let may_be_anywhere = ["btrfs", "bcachefs"].contains(&self.fs_type.as_str());
        let is_node = |part: &[u8]| part.starts_with(b"/dev/") || (may_be_anywhere && part.starts_with(b"/"));
        let bytes = self.source.as_bytes();
        let parts: Vec<&[u8]> = bytes.split(|&b| b == b':').collect();
        if parts.iter().all(|part| is_node(part)) {
            return parts.into_iter().map(|part| Path::new(std::ffi::OsStr::from_bytes(part))).collect();
        }
        if is_node(bytes) { vec![Path::new(&self.source)] } else { Vec::new() }
    }
}

/// Undo the octal escapes (`\040` for a blank) of `/proc/self/mountinfo` and `/proc/swaps`.
pub fn unescape(field: &[u8]) -> OsString {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, behind)) = rest.split_first() {
        match behind {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if byte == b'\\' => {
                out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = &behind[3..];
            }
            _ => {
                out.push(byte);
                rest = behind;
            }
        }
    }
    OsString::from_vec(out)
}

/// Parse `/proc/self/mountinfo`, in the kernel's order; lines that do not fit are left out.
pub fn parse_mountinfo(text: &[u8]) -> Vec<Mount> {
    text.split(|&b| b == b'\n').filter_map(parse_mount).collect()
}

fn parse_mount(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|&b| b == b' ').collect();
    // Optional fields (shared:1 master:2 …) stand between the sixth field and a lone hyphen.
    let hyphen = 6 + fields.get(6..)?.iter().position(|&field| field == b"-")?;
    let text = |index: usize| fields.get(index).map(|field| String::from_utf8_lossy(field).into_owned());
    let (major, minor) = text(2)?.split_once(':').map(|(a, b)| (a.parse().ok(), b.parse().ok()))?;
    Some(Mount {
        id: text(0)?.parse().ok()?,
        parent: text(1)?.parse().ok()?,
        major: major?,
        minor: minor?,
        root: unescape(fields[3]).into(),
        mount_point: unescape(fields[4]).into(),
        options: text(5)?,
        fs_type: unescape(fields.get(hyphen + 1)?).to_string_lossy().into_owned(),
        source: unescape(fields.get(hyphen + 2)?),
        super_options: unescape(fields.get(hyphen + 3)?).to_string_lossy().into_owned(),
    })
}

/// The mounts this process sees.
pub fn read_mounts(root: &SysRoot) -> Result<Vec<Mount>, DeviceError> {
    let path = root.path("/proc/self/mountinfo");
    let mut mounts = match std::fs::read(&path) {
        Ok(text) => parse_mountinfo(&text),
        Err(source) => return Err(DeviceError::Io { attempted: "read", path, source }),
    };
    if root.is_real() && !holds_root(&mounts) {
        let of_first = parse_mountinfo(&root.bytes("/proc/1/mountinfo").unwrap_or_default());
        mounts.extend(rustix::fs::stat("/").ok().map(|stat| {
            let device = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
            hidden_root(&of_first, device, mount_id(Path::new("/")).unwrap_or(0), type_of_root)
        }));
    }
    Ok(mounts)
}

fn holds_root(mounts: &[Mount]) -> bool {
    mounts.iter().any(|mount| mount.mount_point == Path::new("/"))
}

/// The mount that holds the root directory of a process whose root is no mount point (`chroot`), which the kernel does not show to it:
/// the one of `device` among those of the first process, else what the file system itself says.
fn hidden_root(of_first: &[Mount], device: (u32, u32), id: u64, fs_type: impl FnOnce() -> String) -> Mount {
    let (major, minor) = device;
    let same = of_first.iter().find(|mount| (mount.major, mount.minor) == device).cloned();
    let mount = same.unwrap_or_else(|| Mount { fs_type: fs_type(), ..Mount::default() });
    Mount { id, major, minor, mount_point: PathBuf::from("/"), ..mount }
}

/// The type of the file system of the root directory, by its magic number in `linux/magic.h`.
fn type_of_root() -> String {
    const TYPES: [(u64, &str); 8] = [
        (0xef53, "ext4"),
        (0x5846_5342, "xfs"),
        (0x9123_683e, "btrfs"),
        (0x0102_1994, "tmpfs"),
        (0x794c_7630, "overlay"),
        (0xf2f5_2010, "f2fs"),
        (0x2fc1_2fc1, "zfs"),
        (0x6969, "nfs"),
    ];
    let magic = rustix::fs::statfs("/").map_or(0, |facts| facts.f_type as u64 & 0xffff_ffff);
    let known = TYPES.iter().find(|(number, _)| *number == magic);
    known.map_or_else(|| format!("unknown-{magic:x}"), |(_, name)| (*name).to_owned())
}

/// A mounted file system and the room on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilesystemFacts {
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// The type, such as `ext4`.
    pub fs_type: String,
    /// The source of the mount, as named when it was mounted.
    pub source: OsString,
    /// Options of this mount.
    pub mount_options: String,
    /// Options of the file system itself.
    pub super_options: String,
    /// Major number of its device; 0 if it has none.
    pub major: u32,
    /// Minor number of its device.
    pub minor: u32,
    /// Size in bytes; 0 if it has none (procfs) or is unknown.
    pub total_bytes: u64,
    /// Bytes that a user without privileges may still write.
    pub free_bytes: u64,
    /// True when it is the file system mounted at `/`, by whatever mount the path is reached.
    pub is_root_filesystem: bool,
    /// True when this mount or the file system may not be written.
    pub read_only: bool,
    /// The type of the file system that keeps the path in memory: its own, or that of an overlay's layer.
    pub memory: Option<String>,
}

/// The file system on which an existing path lives; symbolic links are followed.
pub fn filesystem_of(path: &Path) -> Result<FilesystemFacts, DeviceError> {
    let root = SysRoot::real();
    let mounts = read_mounts(&root)?;
    let mount = mount_of(&root, &mounts, path)?;
    Ok(facts_of(&root, &mounts, mount, path))
}

/// The mount that holds an existing path, out of [`read_mounts`].
pub fn mount_of<'a>(root: &SysRoot, mounts: &'a [Mount], path: &Path) -> Result<&'a Mount, DeviceError> {
    let mut known = None;
    let mut resolved = path.to_path_buf();
    if root.is_real() {
        let failed = |source| DeviceError::Io { attempted: "inspect", path: path.to_path_buf(), source };
        resolved = path.canonicalize().map_err(failed)?;
        known = mount_id(&resolved).and_then(|id| mounts.iter().find(|mount| mount.id == id));
    }
    known
        .or_else(|| mount_by_prefix(mounts, &resolved))
        .ok_or_else(|| DeviceError::NoMount { path: path.to_path_buf() })
}

fn mount_id(path: &Path) -> Option<u64> {
    let answer = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    StatxFlags::from_bits_retain(answer.stx_mask).contains(StatxFlags::MNT_ID).then_some(answer.stx_mnt_id)
}

fn mount_by_prefix<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    // Of several mounts on one point the last one covers the others: max_by_key keeps the last of equals.
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.components().count())
}

/// The facts of a mount; the room is asked through `path` on the running system.
pub fn facts_of(root: &SysRoot, mounts: &[Mount], mount: &Mount, path: &Path) -> FilesystemFacts {
    let room = if root.is_real() { rustix::fs::statvfs(path).ok() } else { None };
    let (total_bytes, free_bytes) = room.map_or((0, 0), |room| {
        (room.f_blocks.saturating_mul(room.f_frsize), room.f_bavail.saturating_mul(room.f_frsize))
    });
    let slash = mount_by_prefix(mounts, Path::new("/"));
    FilesystemFacts {
        mount_point: mount.mount_point.clone(),
        fs_type: mount.fs_type.clone(),
        source: mount.source.clone(),
        mount_options: mount.options.clone(),
        super_options: mount.super_options.clone(),
        major: mount.major,
        minor: mount.minor,
        total_bytes,
        free_bytes,
        is_root_filesystem: slash
            .is_some_and(|slash| (slash.major, slash.minor) == (mount.major, mount.minor)),
        read_only: [&mount.options, &mount.super_options]
            .iter()
            .any(|options| options.split(',').any(|o| o == "ro")),
        memory: memory::memory_behind(root, mounts, path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw,discard
40 27 8:17 / /mnt/my\\040disk rw,noatime shared:7 master:2 - xfs /dev/sdb1 rw,attr2,inode64
41 27 0:40 /sub /mnt/tree ro,relatime - btrfs /dev/sdc rw,space_cache=v2,subvolid=257,subvol=/sub
42 27 254:0 /srv /mnt/bind rw - ext4 /dev/root rw,discard
43 40 0:51 / /mnt/my\\040disk/over rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/u\\054x,workdir=/w
44 27 0:52 / /mnt/nfs rw - nfs4 server:/export rw,vers=4.2
45 27 0:53 / /mnt/bfs rw - bcachefs /dev/sdd:/dev/sde rw
46 41 0:54 / /mnt/tree rw - tmpfs none rw
short line
";

    #[test]
    fn mountinfo_fields() {
        let mounts = parse_mountinfo(MOUNTS);
        assert_eq!(mounts.len(), 9);
        let disk = &mounts[2];
        assert_eq!(disk.mount_point, Path::new("/mnt/my disk"));
        assert_eq!((disk.id, disk.parent, disk.major, disk.minor), (40, 27, 8, 17));
        assert_eq!((disk.fs_type.as_str(), disk.super_options.as_str()), ("xfs", "rw,attr2,inode64"));
        assert_eq!(mounts[3].super_option("subvol"), Some("/sub"));
        assert_eq!(mounts[3].super_option("rw"), None);
        assert_eq!(mounts[7].source_nodes(), [Path::new("/dev/sdd"), Path::new("/dev/sde")]);
        assert_eq!(mounts[6].source_nodes(), [] as [&Path; 0]);
        assert_eq!(mounts[1].source_nodes(), [Path::new("/dev/root")]);
    }

    #[test]
    fn octal_escapes() {
        let check = |input: &[u8], expected: &[u8]| assert_eq!(unescape(input).as_bytes(), expected);
        check(b"plain", b"plain");
        check(b"a\\040b\\011c\\134d", b"a b\tc\\d");
        check(b"\\04", b"\\04");
        check(b"\\777", b"\\777");
        check(b"\\377", b"\xff");
        check(b"x\\", b"x\\");
    }

    #[test]
    fn mount_for_a_path() {
        let root = SysRoot::at("/nowhere");
        let mounts = parse_mountinfo(MOUNTS);
        let check = |path: &str, id: u64| {
            assert_eq!(mount_of(&root, &mounts, Path::new(path)).unwrap().id, id, "{path}");
        };
        check("/", 27);
        check("/home/x", 27);
        check("/mnt/my disk/file", 40);
        check("/mnt/my disk/over/file", 43);
        check("/mnt/my diskette", 27);
        check("/mnt/tree/x", 46);
        assert!(matches!(mount_of(&root, &[], Path::new("/x")), Err(DeviceError::NoMount { .. })));
    }

    #[test]
    fn a_root_that_is_no_mount_point_has_the_mount_of_its_device() {
        let mounts = parse_mountinfo(MOUNTS);
        assert!(holds_root(&mounts) && !holds_root(&mounts[2..]));
        let hidden = hidden_root(&mounts, (8, 17), 77, || unreachable!("it is known"));
        assert_eq!(
            (hidden.id, hidden.fs_type.as_str(), hidden.mount_point.as_path()),
            (77, "xfs", Path::new("/"))
        );
        assert_eq!(hidden.source_nodes(), [Path::new("/dev/sdb1")]);
        let unknown = hidden_root(&mounts, (9, 9), 77, || "f2fs".to_owned());
        assert_eq!((unknown.fs_type.as_str(), unknown.major, unknown.minor), ("f2fs", 9, 9));
        assert_eq!(unknown.source_nodes(), [] as [&Path; 0]);
    }

    #[test]
    fn root_and_read_only() {
        let mounts = parse_mountinfo(MOUNTS);
        let facts =
            |index: usize| facts_of(&SysRoot::at("/nowhere"), &mounts, &mounts[index], Path::new("/"));
        assert!(facts(1).is_root_filesystem && facts(4).is_root_filesystem && !facts(2).is_root_filesystem);
        assert!(facts(3).read_only && !facts(1).read_only);
    }

    #[test]
    fn running_system() {
        let facts = filesystem_of(Path::new("/proc/self/status")).unwrap();
        assert_eq!((facts.fs_type.as_str(), facts.mount_point.as_path()), ("proc", Path::new("/proc")));
        let slash = filesystem_of(Path::new("/")).unwrap();
        assert!(slash.is_root_filesystem && slash.total_bytes > 0 && slash.free_bytes <= slash.total_bytes);
        let missing = filesystem_of(Path::new("/no/such/path")).unwrap_err();
        assert!(matches!(missing, DeviceError::Io { attempted: "inspect", .. }), "{missing}");
    }
}
