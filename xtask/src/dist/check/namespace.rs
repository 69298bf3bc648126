//! A directory as the root of a process in namespaces of its own, as a container runtime or a chroot of an installer has it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::process::output;

/// Mounts what a process needs, and becomes it: arguments are the root, the data, the user, and after the variables and `--` the
/// program. The capabilities that are left are those that chroot and the change of the user need; no other user keeps one.
const SCRIPT: &str = r#"
root=$1 data=$2 user=$3 access=$4; shift 4
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount --bind "$data" "$root/data"
mount -o "remount,bind,$access" "$root"
cd "$root"
exec setpriv --no-new-privs --bounding-set=$CAPABILITIES env --ignore-environment "$@"
"#;

/// By its path: the variables of the process have no search path for it.
const CHROOT: &str = "/usr/sbin/chroot";

/// How a process runs.
#[derive(Clone, Copy, Debug)]
pub struct ProcessUser {
    pub id: u32,
    /// The root is read-only, and the user has no capabilities, as in a container that is allowed nothing.
    pub is_confined: bool,
}

/// The superuser, with all capabilities.
pub const SUPERUSER: ProcessUser = ProcessUser { id: 0, is_confined: false };

/// A root directory, and the one that is mounted as its `/data`.
pub struct Root {
    directory: PathBuf,
    data: PathBuf,
}

impl Root {
    /// Makes the mount points, in a root that may have nothing else.
    pub fn new(directory: PathBuf, data: PathBuf) -> anyhow::Result<Root> {
        for name in ["proc", "sys", "dev", "data"] {
            let point = directory.join(name);
            fs::create_dir_all(&point).with_context(|| format!("cannot make {}", point.display()))?;
        }
        fs::create_dir_all(&data).with_context(|| format!("cannot make {}", data.display()))?;
        Ok(Root { directory, data })
    }

    /// A path within it, from outside.
    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.join(path)
    }

    /// What is mounted as `/data`, from outside.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Gives the data to a group, as Kubernetes does for `fsGroup`.
    pub fn give_data_to(&self, group: u32) -> anyhow::Result<()> {
        chown(&self.data, Some(0), Some(group)).context("cannot give the data to a group")?;
        fs::set_permissions(&self.data, fs::Permissions::from_mode(0o2775)).context("cannot share the data")
    }

    /// Runs a program, which is named by its whole path, and returns what it printed.
    pub fn run<S: AsRef<OsStr>>(
        &self,
        user: ProcessUser,
        environment: &[String],
        program: &[S],
    ) -> anyhow::Result<String> {
        let ProcessUser { id, is_confined } = user;
        let (capabilities, access) = match is_confined {
            true => ("-all,+setgid,+setuid,+sys_chroot", "ro"),
            false => ("+all", "rw"),
        };
        let mut unshare = Command::new("unshare");
        unshare.env("CAPABILITIES", capabilities).args(["--mount", "--pid", "--fork", "--kill-child"]);
        unshare.args(["sh", "-ec", SCRIPT, "sh"]).arg(&self.directory).arg(&self.data);
        unshare.args([&id.to_string(), access]).args(environment);
        unshare.arg(CHROOT).arg(format!("--userspec={id}:{id}")).arg(&self.directory);
        output(unshare.args(program))
    }
}

/// Unpacks an archive into `directory`.
pub fn unpack(archive: &Path, directory: &Path) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--same-permissions", "--file"]).arg(archive);
    output(tar.arg("--directory").arg(directory)).map(drop)
}
