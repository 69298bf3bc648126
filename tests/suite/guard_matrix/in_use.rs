//! Everything that can be in use here, by every name it has.

use fathom_tests::{LoopDevice, MIB, Mount, Partition, must_run, scratch};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::any::Any;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Something in use, kept as long as this lives.
#[derive(Default)]
pub(super) struct InUse {
    /// The protected target.
    pub(super) targets: Vec<PathBuf>,
    /// A part of each refusal.
    pub(super) reason: &'static str,
    /// Undone from the last to the first.
    kept: Vec<Box<dyn Any>>,
}

impl InUse {
    fn because(reason: &'static str) -> Self {
        InUse { targets: Vec::new(), reason, kept: Vec::new() }
    }

    fn keep<T: 'static>(&mut self, thing: T) {
        self.kept.push(Box::new(thing));
    }

    fn target(&mut self, path: impl AsRef<Path>) {
        self.targets.push(path.as_ref().to_owned());
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        while self.kept.pop().is_some() {}
    }
}

pub(super) fn tool(name: &str, arguments: &[&str], last: &Path) {
    must_run(Command::new(name).args(arguments).arg(last));
}

pub(super) fn ext4(device: &Path) {
    tool("mkfs.ext4", &["-q", "-F"], device);
}

/// Mounted so that the file system itself writes nothing meanwhile.
pub(super) fn read_only(device: &Path) -> Mount {
    Mount::of(device, &["ro", "noload"])
}

/// A process of another mount namespace that keeps a mount there; ended on drop.
pub(super) struct Elsewhere(pub(super) Child);

impl Elsewhere {
    pub(super) fn mount(device: &Path, point: &Path) -> Self {
        Elsewhere::start("mount -o ro,noload \"$0\" \"$1\" && echo ready && read -r _", &[device, point])
    }

    /// Runs a script that says when it is ready, and then waits for its standard input to end.
    fn start(script: &str, arguments: &[&Path]) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("unshare runs");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("it is a pipe");
        BufReader::new(out).read_line(&mut line).expect("it writes a line");
        assert_eq!(line, "ready\n");
        Elsewhere(child)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().ok();
    }
}

/// Undoes something by a command.
pub(super) struct Undo(Command);

impl Drop for Undo {
    fn drop(&mut self) {
        self.0.output().ok();
    }
}

pub(super) fn undo(program: &str, arguments: &[&Path]) -> Undo {
    let mut command = Command::new(program);
    command.args(arguments);
    Undo(command)
}

/// A file of 32 MiB in its own directory.
pub(super) fn image(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    let file = std::fs::File::create(&path).expect("the directory is ours");
    file.set_len(32 * MIB).expect("there is room");
    path
}

/// A loop device over an image of this name, mounted: the image is the target.
pub(super) fn mounted_image(name: &str) -> (InUse, PathBuf) {
    let mut in_use = InUse::because("is mounted at");
    let directory = scratch();
    let image = image(directory.path(), name);
    in_use.keep(directory);
    let device = LoopDevice::over(&image);
    ext4(device.path());
    let mount = read_only(device.path());
    in_use.keep(device);
    in_use.keep(mount);
    (in_use, image)
}

pub(super) fn mounted() -> InUse {
    let mut in_use = InUse::because("is mounted at");
    let device = LoopDevice::new(32 * MIB);
    ext4(device.path());
    let mount = read_only(device.path());
    in_use.target(device.path());
    in_use.target(device.backing());
    in_use.keep(device);
    in_use.keep(mount);
    in_use
}

pub(super) fn mounted_in_another_namespace() -> InUse {
    let mut in_use = InUse::because("is mounted at");
    let (device, point) = (LoopDevice::new(32 * MIB), scratch());
    ext4(device.path());
    let elsewhere = Elsewhere::mount(device.path(), point.path());
    in_use.target(device.path());
    in_use.target(device.backing());
    in_use.keep(point);
    in_use.keep(device);
    in_use.keep(elsewhere);
    in_use
}

/// A node of the test's own for the device, as in a container.
pub(super) fn node_of(device: &Path, directory: &Path) -> PathBuf {
    let rdev = std::fs::metadata(device).expect("it is there").rdev();
    let [major, minor] = [rustix::fs::major(rdev), rustix::fs::minor(rdev)].map(|number| number.to_string());
    let node = directory.join("node");
    must_run(Command::new("mknod").arg(&node).args(["b", &major, &minor]));
    node
}

pub(super) fn mounted_through_another_node() -> InUse {
    let mut in_use = InUse::because("is mounted at");
    let (device, directory) = (LoopDevice::new(128 * MIB), scratch());
    tool("mkfs.btrfs", &["-q", "-f"], device.path());
    let node = node_of(device.path(), directory.path());
    let mount = Mount::of(&node, &["ro"]);
    in_use.target(device.path());
    in_use.target(&node);
    in_use.keep(directory);
    in_use.keep(device);
    in_use.keep(mount);
    in_use
}

pub(super) fn external_log() -> InUse {
    let mut in_use = InUse::default();
    let (data, log) = (LoopDevice::new(320 * MIB), LoopDevice::new(80 * MIB));
    let log_option = format!("logdev={}", log.path().display());
    must_run(Command::new("mkfs.xfs").args(["-q", "-f", "-l", &log_option]).arg(data.path()));
    let mount = Mount::of(data.path(), &["ro", &log_option]);
    in_use.target(log.path());
    in_use.keep(data);
    in_use.keep(log);
    in_use.keep(mount);
    in_use
}

pub(super) fn external_journal() -> InUse {
    let mut in_use = InUse::default();
    let (data, journal) = (LoopDevice::new(32 * MIB), LoopDevice::new(16 * MIB));
    tool("mkfs.ext4", &["-q", "-F", "-O", "journal_dev"], journal.path());
    let device = format!("device={}", journal.path().display());
    must_run(
        Command::new("mkfs.ext4")
            .args(["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-J", &device])
            .arg(data.path()),
    );
    let mount = Mount::of(data.path(), &[]);
    // Nothing may be written by the file system itself while bytes are compared.
    tool("fsfreeze", &["--freeze"], mount.path());
    let thaw = undo("fsfreeze", &[Path::new("--unfreeze"), mount.path()]);
    in_use.target(journal.path());
    in_use.keep(data);
    in_use.keep(journal);
    in_use.keep(mount);
    in_use.keep(thaw);
    in_use
}

pub(super) fn swap() -> InUse {
    let mut in_use = InUse::because("active swap space");
    let device = LoopDevice::new(32 * MIB);
    tool("mkswap", &["--quiet"], device.path());
    tool("swapon", &[], device.path());
    in_use.target(device.path());
    let off = undo("swapoff", &[device.path()]);
    in_use.keep(device);
    in_use.keep(off);
    in_use
}

/// Swap in a file whose path in the other mount namespace leads nowhere here, where the file has another one.
pub(super) fn swap_file_elsewhere() -> InUse {
    let mut in_use = InUse::because("active swap space");
    let (device, elsewhere) = (LoopDevice::new(64 * MIB), scratch());
    ext4(device.path());
    let mount = Mount::of(device.path(), &[]);
    let file = mount.path().join("pages");
    std::fs::write(&file, vec![0; 16 * MIB as usize]).expect("there is room");
    tool("mkswap", &["--quiet"], &file);
    let script =
        "mount \"$0\" \"$1\" && swapon \"$1/pages\" && echo ready && read -r _; swapoff \"$1/pages\"";
    let elsewhere_active = Elsewhere::start(script, &[device.path(), elsewhere.path()]);
    in_use.target(file);
    in_use.keep(elsewhere);
    in_use.keep(device);
    in_use.keep(mount);
    in_use.keep(elsewhere_active);
    in_use
}

pub(super) fn held_exclusively() -> InUse {
    let mut in_use = InUse::because("the kernel holds");
    let device = LoopDevice::new(32 * MIB);
    let exclusively = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    let holder = rustix::fs::open(device.path(), exclusively, Mode::empty()).expect("it is free");
    in_use.target(device.path());
    in_use.target(device.backing());
    in_use.keep(device);
    in_use.keep(holder);
    in_use
}

pub(super) fn loop_chain() -> InUse {
    let mut in_use = InUse::because("is mounted at");
    let lower = LoopDevice::new(32 * MIB);
    let middle = LoopDevice::over(lower.path());
    let upper = LoopDevice::over(middle.path());
    ext4(upper.path());
    let mount = read_only(upper.path());
    in_use.target(lower.backing());
    for device in [&lower, &middle, &upper] {
        in_use.target(device.path());
    }
    in_use.keep(lower);
    in_use.keep(middle);
    in_use.keep(upper);
    in_use.keep(mount);
    in_use
}

pub(super) fn hard_link() -> InUse {
    let (mut in_use, image) = mounted_image("image");
    let link = image.with_file_name("link");
    std::fs::hard_link(&image, &link).expect("the directory is ours");
    in_use.target(link);
    in_use
}

pub(super) fn removed() -> InUse {
    let (mut in_use, image) = mounted_image("image");
    let link = image.with_file_name("link");
    std::fs::hard_link(&image, &link).expect("the directory is ours");
    std::fs::remove_file(&image).expect("the directory is ours");
    // The new file of that name is another one.
    std::fs::write(&image, "innocent").expect("the directory is ours");
    in_use.target(link);
    in_use
}

pub(super) fn blanks_in_the_name() -> InUse {
    let mut all = InUse::because("is mounted at");
    for name in ["image ", " image", "image\n", "image (deleted)"] {
        let (in_use, image) = mounted_image(name);
        all.target(image);
        all.keep(in_use);
    }
    all
}

pub(super) fn bind_mounts() -> InUse {
    let (mut in_use, image) = mounted_image("image");
    // A file under another name by a bind mount.
    let bound = image.with_file_name("bound");
    std::fs::write(&bound, "").expect("the directory is ours");
    must_run(Command::new("mount").arg("--bind").arg(&image).arg(&bound));
    in_use.keep(undo("umount", &[&bound]));
    in_use.target(bound);
    // A device whose first mount point is gone.
    let (device, directory) = (LoopDevice::new(32 * MIB), scratch());
    ext4(device.path());
    let mount = read_only(device.path());
    must_run(Command::new("mount").arg("--bind").arg(mount.path()).arg(directory.path()));
    let bind = undo("umount", &[directory.path()]);
    drop(mount);
    in_use.target(device.path());
    in_use.keep(device);
    in_use.keep(directory);
    in_use.keep(bind);
    in_use
}

pub(super) fn partition_of_a_mounted_disk() -> InUse {
    let mut in_use = InUse::default();
    let device = LoopDevice::new(64 * MIB);
    ext4(device.path());
    let part = Partition::add(&device, 1, 2048, 65536);
    let mount = read_only(device.path());
    in_use.target(part.path());
    in_use.keep(device);
    in_use.keep(part);
    in_use.keep(mount);
    in_use
}

pub(super) fn disk_of_a_mounted_partition() -> InUse {
    let mut in_use = InUse::because("is mounted at");
    let device = LoopDevice::new(64 * MIB);
    let part = Partition::add(&device, 1, 2048, 65536);
    ext4(part.path());
    let mount = read_only(part.path());
    in_use.target(part.path());
    in_use.target(device.path());
    in_use.target(device.backing());
    in_use.keep(device);
    in_use.keep(part);
    in_use.keep(mount);
    in_use
}

pub(super) fn member_of_several_devices() -> InUse {
    let mut in_use = InUse::because("is mounted at");
    let (first, second) = (LoopDevice::new(128 * MIB), LoopDevice::new(128 * MIB));
    must_run(Command::new("mkfs.btrfs").args(["-q", "-f"]).args([first.path(), second.path()]));
    let other = format!("device={}", second.path().display());
    let mount = Mount::of(first.path(), &["ro", &other]);
    in_use.target(first.path());
    in_use.target(second.path());
    in_use.keep(first);
    in_use.keep(second);
    in_use.keep(mount);
    in_use
}

/// A file that a file system is mounted from without a loop device.
pub(super) fn mounted_by_a_server() -> InUse {
    let mut in_use = InUse::default();
    let (directory, point) = (scratch(), scratch());
    let image = image(directory.path(), "image");
    ext4(&image);
    must_run(Command::new("fuse2fs").args(["-o", "ro"]).arg(&image).arg(point.path()));
    let link = directory.path().join("link");
    std::fs::hard_link(&image, &link).expect("the directory is ours");
    let mount = undo("umount", &[point.path()]);
    in_use.target(image);
    in_use.target(link);
    in_use.keep(directory);
    in_use.keep(point);
    in_use.keep(mount);
    in_use
}

/// A partition that another process has locked, as a virtual machine its disk: the disk and the file behind it are in use.
pub(super) fn locked_partition() -> InUse {
    let mut in_use = InUse::because("holds a lock");
    let device = LoopDevice::new(64 * MIB);
    let part = Partition::add(&device, 1, 2048, 65536);
    let owner = std::fs::OpenOptions::new().read(true).write(true).open(part.path()).expect("it is ours");
    rustix::fs::fcntl_lock(&owner, FlockOperation::LockExclusive).expect("nobody else has locked it");
    // Not the partition itself by its own name: to read it for its sum would give the lock up.
    in_use.target(device.path());
    in_use.target(device.backing());
    in_use.keep(device);
    in_use.keep(part);
    in_use.keep(owner);
    in_use
}
