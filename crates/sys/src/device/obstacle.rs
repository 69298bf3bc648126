//! The reasons why a target must not be overwritten, each a sentence for the user and a way to overrule it.

use std::fmt;
use std::path::PathBuf;

use super::guard::Process;
use super::signature::Signature;

/// One thing that stands against writing to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// A file system on the device is mounted.
    Mounted {
        /// Node of the device.
        device: PathBuf,
        /// How the device stands to the target.
        relation: Relation,
        /// Where.
        mount_point: PathBuf,
        /// A process that sees the mount, where this one does not.
        seen_by: Option<Process>,
    },
    /// A mounted file system on other devices keeps its log, journal or a part of its data on the device.
    PartOfMounted {
        /// Node of the device.
        device: PathBuf,
        /// The role of the device in the file system: `the log of the xfs mounted at /srv`.
        role: String,
    },
    /// Another device is built on the device, one of its partitions, or its disk.
    Holder {
        /// Node of the device in use.
        device: PathBuf,
        /// Node of its holder.
        holder: PathBuf,
        /// The use of the holder, if known.
        user: Option<Box<Obstacle>>,
    },
    /// Swap is active on the device, a partition of it, or the file.
    SwapInUse {
        /// Node or file.
        path: PathBuf,
    },
    /// A loop device in use has its data in the target.
    BackingFile {
        /// Node of the loop device.
        device: PathBuf,
        /// The use of that loop device.
        user: Box<Obstacle>,
    },
    /// A loop device has its data in a file that cannot be identified, which may be the target.
    UnknownBackingFile {
        /// Node of the loop device.
        device: PathBuf,
    },
    /// The kernel refuses an exclusive open: something uses the device, though not in a way seen from here.
    Busy {
        /// Node of the device.
        device: PathBuf,
    },
    /// This process itself keeps something there, or reads it.
    OwnUse {
        /// What, as a sentence.
        what: String,
    },
    /// Another process holds a lock on the target, as the owner of a disk image does.
    Locked {
        /// The locked object: the target, or something that shares its data.
        path: PathBuf,
        /// The process, if known.
        by: Option<Process>,
    },
    /// Another process has the target open for writing, or something that its data is shared with.
    OpenForWriting {
        /// The open object.
        path: PathBuf,
        /// Which.
        by: Process,
    },
    /// The device holds data in a known format.
    Signature {
        /// The format.
        what: Signature,
    },
    /// The kernel has partitions of the device though no table was recognised on it.
    Partitioned {
        /// Nodes of the partitions.
        partitions: Vec<PathBuf>,
    },
    /// The kernel refuses writes to the device.
    ReadOnly {
        /// Node of the device.
        device: PathBuf,
    },
    /// The device takes writes only at the write pointers of its zones, but for conventional ones.
    HostManaged {
        /// Node of the device.
        device: PathBuf,
    },
}

/// How a device in use stands to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It is the target itself.
    Itself,
    /// It is a partition of the target.
    Partition,
    /// It is the disk that the target is a partition of.
    Disk,
}

/// The class of an obstacle, which decides which consent overrules it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObstacleClass {
    /// The target is in use now. Own commands never write to it.
    InUse,
    /// Another process may write to the target as well: nothing is destroyed that is not shared already. Own commands
    /// never write to it; a job under fio's grammar does, as two of them may share a file.
    Shared,
    /// Data lies there that nothing uses now: consent to destroy it is enough.
    Data,
    /// Only writes in the order of the device's zones succeed. Own commands write in another order, so they never do; a
    /// job under fio's grammar may keep to it.
    Ordered,
    /// The system does not permit it.
    Impossible,
}

impl Obstacle {
    /// Its class.
    pub fn class(&self) -> ObstacleClass {
        match self {
            Obstacle::Mounted { .. }
            | Obstacle::PartOfMounted { .. }
            | Obstacle::Holder { .. }
            | Obstacle::SwapInUse { .. }
            | Obstacle::BackingFile { .. }
            | Obstacle::UnknownBackingFile { .. }
            | Obstacle::OwnUse { .. }
            | Obstacle::Locked { .. }
            | Obstacle::Busy { .. } => ObstacleClass::InUse,
            Obstacle::OpenForWriting { .. } => ObstacleClass::Shared,
            Obstacle::Signature { .. } | Obstacle::Partitioned { .. } => ObstacleClass::Data,
            Obstacle::HostManaged { .. } => ObstacleClass::Ordered,
            Obstacle::ReadOnly { .. } => ObstacleClass::Impossible,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Mounted { device, relation, mount_point, seen_by } => {
                let (prefix, whole) = match relation {
                    Relation::Itself => ("", ""),
                    Relation::Partition => ("its partition ", ""),
                    Relation::Disk => ("its disk ", "as a whole "),
                };
                let (device, mount_point) = (device.display(), mount_point.display());
                write!(f, "{prefix}{device} is mounted {whole}at {mount_point}")?;
                match seen_by {
                    Some(process) => write!(f, " in the mount namespace of {process}"),
                    None => Ok(()),
                }
            }
            Obstacle::PartOfMounted { device, role } => write!(f, "{} is {role}", device.display()),
            Obstacle::Holder { device, holder, user } => {
                write!(f, "{} is built on {}", holder.display(), device.display())?;
                user.as_ref().map_or(Ok(()), |user| write!(f, ", and {user}"))
            }
            Obstacle::SwapInUse { path } => write!(f, "{} is active swap space", path.display()),
            Obstacle::BackingFile { device, user } => {
                write!(f, "the loop device {} has its data there, and {user}", device.display())
            }
            Obstacle::UnknownBackingFile { device } => {
                let device = device.display();
                write!(f, "the loop device {device} may have its data there: its file cannot be identified")
            }
            Obstacle::OwnUse { what } => f.write_str(what),
            Obstacle::Busy { device } => {
                let device = device.display();
                write!(f, "the kernel holds {device} for another user (an exclusive open is refused)")
            }
            Obstacle::Locked { path, by: Some(process) } => {
                write!(f, "{process} holds a lock on {}", path.display())
            }
            Obstacle::Locked { path, by: None } => {
                let path = path.display();
                write!(f, "another process holds a lock on {path}, as a running virtual machine does")
            }
            Obstacle::OpenForWriting { path, by } => {
                write!(f, "{by} has {} open for writing", path.display())
            }
            Obstacle::Signature { what } => write!(f, "it bears a signature: {what}"),
            Obstacle::Partitioned { partitions } => {
                let names: Vec<String> = partitions.iter().map(|path| path.display().to_string()).collect();
                write!(f, "it is divided into {}", names.join(", "))
            }
            Obstacle::ReadOnly { device } => write!(f, "{} is read-only", device.display()),
            Obstacle::HostManaged { device } => {
                let device = device.display();
                write!(
                    f,
                    "{device} is a host-managed zoned device, which takes writes only in the order of its zones"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::signature::SignatureClass;

    #[test]
    fn sentences_and_classes() {
        let check = |obstacle: Obstacle, sentence: &str, class: ObstacleClass| {
            assert_eq!((obstacle.to_string().as_str(), obstacle.class()), (sentence, class));
        };
        let mounted = |relation, device: &str, mount_point: &str| Obstacle::Mounted {
            device: device.into(),
            relation,
            mount_point: mount_point.into(),
            seen_by: None,
        };
        let in_use = ObstacleClass::InUse;
        let itself = mounted(Relation::Itself, "/dev/sda", "/mnt");
        check(itself.clone(), "/dev/sda is mounted at /mnt", in_use);
        check(
            mounted(Relation::Partition, "/dev/sda1", "/"),
            "its partition /dev/sda1 is mounted at /",
            in_use,
        );
        check(
            mounted(Relation::Disk, "/dev/sda", "/"),
            "its disk /dev/sda is mounted as a whole at /",
            in_use,
        );
        let process = Process { id: 7, command: "bash".to_owned() };
        let elsewhere = Obstacle::Mounted {
            device: "/dev/sda".into(),
            relation: Relation::Itself,
            mount_point: "/m".into(),
            seen_by: Some(process.clone()),
        };
        check(elsewhere, "/dev/sda is mounted at /m in the mount namespace of process 7 (bash)", in_use);
        let holder = |user| Obstacle::Holder { device: "/dev/sda1".into(), holder: "/dev/dm-0".into(), user };
        check(holder(None), "/dev/dm-0 is built on /dev/sda1", in_use);
        let data = mounted(Relation::Itself, "/dev/dm-0", "/data");
        let chain = "/dev/dm-0 is built on /dev/sda1, and /dev/dm-0 is mounted at /data";
        check(holder(Some(Box::new(data))), chain, in_use);
        let behind = Obstacle::BackingFile { device: "/dev/loop3".into(), user: Box::new(itself) };
        check(
            behind,
            "the loop device /dev/loop3 has its data there, and /dev/sda is mounted at /mnt",
            in_use,
        );
        let path = PathBuf::from("/dev/sda1");
        let shared = Obstacle::OpenForWriting { path: path.clone(), by: process.clone() };
        check(shared, "process 7 (bash) has /dev/sda1 open for writing", ObstacleClass::Shared);
        check(
            Obstacle::Locked { path, by: Some(process) },
            "process 7 (bash) holds a lock on /dev/sda1",
            in_use,
        );
        let what = Signature { name: "ext4", class: SignatureClass::FileSystem, offset: 1080 };
        check(Obstacle::Signature { what }, "it bears a signature: ext4 file system", ObstacleClass::Data);
        check(
            Obstacle::HostManaged { device: "/dev/nvme0n2".into() },
            "/dev/nvme0n2 is a host-managed zoned device, which takes writes only in the order of its zones",
            ObstacleClass::Ordered,
        );
        check(
            Obstacle::ReadOnly { device: "/dev/sda".into() },
            "/dev/sda is read-only",
            ObstacleClass::Impossible,
        );
    }
}
