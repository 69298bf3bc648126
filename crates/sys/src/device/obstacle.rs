//! The reasons why a target must not be overwritten, each a sentence for the user and a way to overrule it.

use std::fmt;
use std::path::PathBuf;

use super::signature::Signature;

/// One thing that stands against writing to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// A file system on the device is mounted.
    Mounted {
        /// Node of the device.
        device: PathBuf,
        /// Where.
        mount_point: PathBuf,
    },
    /// A partition of the device is mounted.
    MountedPartition {
        /// Node of the partition.
        device: PathBuf,
        /// Where.
        mount_point: PathBuf,
    },
    /// The disk that the target is a partition of is mounted as a whole.
    MountedParent {
        /// Node of the disk.
        device: PathBuf,
        /// Where.
        mount_point: PathBuf,
    },
    /// Another device is built on the device, one of its partitions, or its disk.
    Holder {
        /// Node of what is held.
        device: PathBuf,
        /// Node of what is built on it.
        holder: PathBuf,
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
        /// What uses that loop device.
        user: Box<Obstacle>,
    },
    /// The kernel refuses an exclusive open: something uses the device, though not in a way seen from here.
    Busy {
        /// Node of the device.
        device: PathBuf,
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
}

/// What it takes to write in spite of an obstacle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overrule {
    /// Consent to write to something mounted.
    MountedWrite,
    /// Consent to destroy what the device holds.
    DestroyData,
    /// Nothing that could be said here.
    Impossible,
}

impl Obstacle {
    /// What it takes to write in spite of it.
    pub fn overrule(&self) -> Overrule {
        match self {
            Obstacle::Mounted { .. }
            | Obstacle::MountedPartition { .. }
            | Obstacle::MountedParent { .. }
            | Obstacle::SwapInUse { .. } => Overrule::MountedWrite,
            // Whoever writes beneath a loop device writes to what is on it.
            Obstacle::BackingFile { user, .. } => user.overrule(),
            Obstacle::ReadOnly { .. } => Overrule::Impossible,
            _ => Overrule::DestroyData,
        }
    }

    /// True for everything that is in use right now, as against data that merely lies there.
    pub fn is_in_use(&self) -> bool {
        !matches!(self, Obstacle::Signature { .. } | Obstacle::Partitioned { .. } | Obstacle::ReadOnly { .. })
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Mounted { device, mount_point } => {
                write!(f, "{} is mounted at {}", device.display(), mount_point.display())
            }
            Obstacle::MountedPartition { device, mount_point } => {
                write!(f, "its partition {} is mounted at {}", device.display(), mount_point.display())
            }
            Obstacle::MountedParent { device, mount_point } => {
                write!(f, "its disk {} is mounted as a whole at {}", device.display(), mount_point.display())
            }
            Obstacle::Holder { device, holder } => {
                write!(f, "{} is built on {}", holder.display(), device.display())
            }
            Obstacle::SwapInUse { path } => write!(f, "{} is active swap space", path.display()),
            Obstacle::BackingFile { device, user } => {
                write!(f, "the loop device {} has its data there, and {user}", device.display())
            }
            Obstacle::Busy { device } => {
                write!(
                    f,
                    "the kernel holds {} for another user (an exclusive open is refused)",
                    device.display()
                )
            }
            Obstacle::Signature { what } => write!(f, "it bears a signature: {what}"),
            Obstacle::Partitioned { partitions } => {
                let names: Vec<String> = partitions.iter().map(|path| path.display().to_string()).collect();
                write!(f, "it is divided into {}", names.join(", "))
            }
            Obstacle::ReadOnly { device } => write!(f, "{} is read-only", device.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::signature::Class;

    #[test]
    fn sentences_and_remedies() {
        let check = |obstacle: Obstacle, sentence: &str, overrule: Overrule, in_use: bool| {
            assert_eq!(obstacle.to_string(), sentence);
            assert_eq!((obstacle.overrule(), obstacle.is_in_use()), (overrule, in_use), "{sentence}");
        };
        let (sda, sda1) = (PathBuf::from("/dev/sda"), PathBuf::from("/dev/sda1"));
        let mounted = Obstacle::Mounted { device: sda.clone(), mount_point: "/mnt".into() };
        check(mounted.clone(), "/dev/sda is mounted at /mnt", Overrule::MountedWrite, true);
        let partition = Obstacle::MountedPartition { device: sda1.clone(), mount_point: "/".into() };
        check(partition, "its partition /dev/sda1 is mounted at /", Overrule::MountedWrite, true);
        let holder = Obstacle::Holder { device: sda1, holder: "/dev/dm-0".into() };
        check(holder, "/dev/dm-0 is built on /dev/sda1", Overrule::DestroyData, true);
        let behind = Obstacle::BackingFile { device: "/dev/loop3".into(), user: Box::new(mounted) };
        let sentence = "the loop device /dev/loop3 has its data there, and /dev/sda is mounted at /mnt";
        check(behind, sentence, Overrule::MountedWrite, true);
        let what = Signature { name: "ext4", class: Class::FileSystem, offset: 1080 };
        check(
            Obstacle::Signature { what },
            "it bears a signature: ext4 file system",
            Overrule::DestroyData,
            false,
        );
        check(Obstacle::ReadOnly { device: sda }, "/dev/sda is read-only", Overrule::Impossible, false);
    }
}
