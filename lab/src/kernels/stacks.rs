//! The stacks of devices in the guest, and everything that can be in use, or otherwise must not be written to, on one.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use fathom_tests::wait_for;

use super::HOLD;

/// What a program prints once it holds what it is started for.
pub const READY: &str = "ready";
/// How long the kernel may take to make or remove a device.
const DEVICE_LIMIT: Duration = Duration::from_secs(20);
/// The namespaces of the controller that stacks are built on, and one for the device under test itself.
const NVME: u32 = 1;
const ZONED_NVME: u32 = 2;
const LOWER: [u32; 2] = [3, 4];
const KEY: &str = "/run/key";
/// LVM without udev, and with the devices of this stack alone.
const LVM_SETTINGS: &str = "activation/udev_sync=0\nactivation/udev_rules=0\n\
     activation/verify_udev_operations=0\ndevices/use_devicesfile=0\nglobal/event_activation=0\n";
const POINT: &str = "/mnt/a";
const OTHER_POINT: &str = "/mnt/b";
/// So that the file system itself writes nothing while bytes are compared.
const READ_ONLY: &str = "mount -t ext4 -o ro,noload";

/// Runs the words of `line`, and returns what the program printed.
///
/// # Errors
/// It fails: its messages.
pub fn sh(line: &str) -> anyhow::Result<String> {
    let output = output(line)?;
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    ensure!(output.status.success(), "`{line}` failed ({}): {stderr} {stdout}", output.status);
    Ok(stdout.into_owned())
}

/// Runs the words of `line`.
pub fn output(line: &str) -> anyhow::Result<Output> {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().context("an empty command")?);
    command.args(words).stdin(Stdio::null()).output().with_context(|| format!("cannot run `{line}`"))
}

fn wait_until(what: &str, is_so: impl FnMut() -> bool) -> anyhow::Result<()> {
    ensure!(wait_for(DEVICE_LIMIT, is_so), "{what} did not happen within {} s", DEVICE_LIMIT.as_secs());
    Ok(())
}

/// Undone from the last to the first.
#[derive(Default)]
struct Undo(Vec<UndoStep>);

enum UndoStep {
    Command(String),
    End(Child),
}

impl Undo {
    /// Runs `line` later. The kernel may need some time until it succeeds.
    fn later(&mut self, line: impl Into<String>) {
        self.0.push(UndoStep::Command(line.into()));
    }

    /// Runs `line` now and `undone` later.
    fn now(&mut self, line: &str, undone: &str) -> anyhow::Result<()> {
        sh(line)?;
        self.later(undone);
        Ok(())
    }

    fn mount(&mut self, how: &str, device: &str) -> anyhow::Result<()> {
        self.now(&format!("{how} {device} {POINT}"), &format!("umount {POINT}"))
    }

    fn map(&mut self, name: &str, table: &str) -> anyhow::Result<()> {
        std::fs::write("/run/table", table)?;
        self.now(&format!("dmsetup create {name} /run/table"), &format!("dmsetup remove {name}"))
    }

    /// Starts a program that prints [`READY`] once it holds something, until its standard input ends.
    fn holding(&mut self, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(program);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let out = child.stdout.as_mut().context("its output is a pipe")?;
        BufReader::new(out).read_line(&mut line)?;
        self.0.push(UndoStep::End(child));
        ensure!(line.trim_end() == READY, "{program} {} did not hold", arguments.join(" "));
        Ok(())
    }

    /// A shell in a mount namespace of its own, as in a container, that runs `script` and holds.
    fn holding_elsewhere(&mut self, script: &str) -> anyhow::Result<()> {
        self.holding("unshare", &["--mount", "--propagation", "unchanged", "busybox", "sh", "-c", script])
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        while let Some(step) = self.0.pop() {
            match step {
                UndoStep::Command(line) => {
                    if wait_until(&line, || sh(&line).is_ok()).is_err() {
                        println!("cannot undo: {:?}", sh(&line));
                    }
                }
                UndoStep::End(mut child) => {
                    drop(child.stdin.take());
                    child.wait().ok();
                }
            }
        }
    }
}

/// All bytes of a device or file, from below any cache: another name of the same storage may have been written.
pub fn bytes_of(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::write("/proc/sys/vm/drop_caches", "3")?;
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Fails with the first place at which bytes differ.
pub fn ensure_unchanged(path: &Path, before: &[u8]) -> anyhow::Result<()> {
    let after = bytes_of(path)?;
    if after == before {
        return Ok(());
    }
    ensure!(after.len() == before.len(), "{} has another size", path.display());
    let first = before.iter().zip(&after).position(|(before, after)| before != after);
    bail!("{} has changed at byte {}", path.display(), first.unwrap_or_default())
}

/// Overwrites all of a device with zeros, by other means than fathom: what was on it is no obstacle to the next case.
pub fn clear(path: &Path) -> anyhow::Result<()> {
    let mut device = std::fs::File::options().write(true).open(path)?;
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), size_of(path)?), &mut device)?;
    device.sync_all().with_context(|| format!("cannot clear {}", path.display()))
}

fn size_of(path: &Path) -> anyhow::Result<u64> {
    let shown = sh(&format!("blockdev --getsize64 {}", path.display()))?;
    shown.trim().parse().context("blockdev prints a size")
}

/// The kernel's name of a device: `dm-0` of `/dev/mapper/x`.
pub fn kernel_name(path: &Path) -> anyhow::Result<String> {
    let number = std::os::unix::fs::MetadataExt::rdev(&std::fs::metadata(path)?);
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let link = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}"))?;
    Ok(link.file_name().context("a link names a device")?.to_string_lossy().into_owned())
}

/// What a device does with writes: takes all, refuses all, or takes those at the write pointers of its zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAccess {
    Free,
    Protected,
    HostManaged,
}

/// A stack that has been built.
pub struct Stack {
    /// The device under test.
    pub device: PathBuf,
    /// Its kind in fathom's documents.
    pub kind: &'static str,
    /// The devices below it, which it holds.
    below: Vec<PathBuf>,
    pub access: WriteAccess,
    /// Whether it may have partitions.
    is_disk: bool,
    _undo: Undo,
}

/// Builds a stack.
type BuildStack = fn() -> anyhow::Result<Stack>;

/// All stacks: the name in the table, and what builds it.
pub const STACKS: &[(&str, BuildStack)] = &[
    ("nvme", || disk(&namespace(NVME)?, "nvme", WriteAccess::Free, Undo::default())),
    ("nvme-zns", || disk(&namespace(ZONED_NVME)?, "nvme", WriteAccess::HostManaged, Undo::default())),
    ("null-blk-zoned", null_blk_zoned),
    ("dm-linear", dm_linear),
    ("dm-crypt", dm_crypt),
    ("lvm", lvm),
    ("md-raid1", md_raid1),
    ("scsi-4kn", || disk("/dev/sda", "disk", WriteAccess::Free, scsi_debug("sector_size=4096")?)),
    ("scsi-protected", || disk("/dev/sda", "disk", WriteAccess::Protected, scsi_debug("wp=1")?)),
    ("multipath", multipath),
];

fn disk(device: &str, kind: &'static str, access: WriteAccess, undo: Undo) -> anyhow::Result<Stack> {
    wait_until(device, || size_of(Path::new(device)).is_ok_and(|size| size > 0))?;
    let is_disk = access == WriteAccess::Free;
    Ok(Stack { device: device.into(), kind, below: Vec::new(), access, is_disk, _undo: undo })
}

fn over(below: &[&str], device: &str, kind: &'static str, undo: Undo) -> anyhow::Result<Stack> {
    let stack = disk(device, kind, WriteAccess::Free, undo)?;
    Ok(Stack { below: below.iter().map(PathBuf::from).collect(), is_disk: false, ..stack })
}

/// The node of a namespace. Kernels that scan several at once number the nodes in another order.
fn namespace(id: u32) -> anyhow::Result<String> {
    let mut found = None;
    wait_until(&format!("namespace {id}"), || {
        let blocks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let is_it = |path: &PathBuf| {
            std::fs::read_to_string(path.join("nsid")).is_ok_and(|text| text.trim() == id.to_string())
        };
        let block = blocks.map(|entry| entry.path()).find(is_it);
        found = block.and_then(|path| Some(format!("/dev/{}", path.file_name()?.to_string_lossy())));
        found.as_deref().is_some_and(|node| Path::new(node).exists())
    })?;
    found.context("it was there")
}

/// The two devices to build on, without the data of an earlier stack.
fn cleared_lower() -> anyhow::Result<[String; 2]> {
    let lower = [namespace(LOWER[0])?, namespace(LOWER[1])?];
    lower.iter().try_for_each(|device| clear(Path::new(device)))?;
    Ok(lower)
}

/// The first four of its zones are conventional.
fn null_blk_zoned() -> anyhow::Result<Stack> {
    let mut undo = Undo::default();
    undo.now("modprobe null_blk nr_devices=0", "modprobe -r null_blk")?;
    undo.now("mount -t configfs configfs /sys/kernel/config", "umount /sys/kernel/config")?;
    let directory = "/sys/kernel/config/nullb/nullz0";
    undo.now(&format!("busybox mkdir {directory}"), &format!("busybox rmdir {directory}"))?;
    let attributes = ["size=32", "memory_backed=1", "zoned=1", "zone_size=4", "zone_nr_conv=4", "power=1"];
    for (attribute, value) in attributes.iter().filter_map(|attribute| attribute.split_once('=')) {
        std::fs::write(format!("{directory}/{attribute}"), value)?;
    }
    let names = std::fs::read_dir("/sys/block")?.flatten().map(|entry| entry.file_name());
    let name = names.map(|name| name.to_string_lossy().into_owned()).find(|name| name.starts_with("null"));
    disk(&format!("/dev/{}", name.unwrap_or_default()), "disk", WriteAccess::HostManaged, undo)
}

/// Over 16 MiB of each.
fn dm_linear() -> anyhow::Result<Stack> {
    let [first, second] = &cleared_lower()?;
    let mut undo = Undo::default();
    undo.map("linear", &format!("0 32768 linear {first} 0\n32768 32768 linear {second} 0\n"))?;
    over(&[first, second], "/dev/mapper/linear", "dm", undo)
}

/// Iterations so few that an emulated processor has no work with them.
fn dm_crypt() -> anyhow::Result<Stack> {
    let [first, _] = &cleared_lower()?;
    std::fs::write(KEY, "a key of the campaign")?;
    let format = "cryptsetup luksFormat --batch-mode --pbkdf pbkdf2 --pbkdf-force-iterations 1000";
    sh(&format!("{format} {first} {KEY}"))?;
    let mut undo = Undo::default();
    undo.now(&format!("cryptsetup open --key-file {KEY} {first} crypt"), "cryptsetup close crypt")?;
    // What decrypts to noise would be data of an unknown format.
    clear(Path::new("/dev/mapper/crypt"))?;
    over(&[first], "/dev/mapper/crypt", "dm", undo)
}

fn lvm() -> anyhow::Result<Stack> {
    let [first, second] = &cleared_lower()?;
    std::fs::create_dir_all("/etc/lvm")?;
    std::fs::write("/etc/lvm/lvm.conf", LVM_SETTINGS)?;
    let mut undo = Undo::default();
    sh(&format!("lvm pvcreate --yes {first} {second}"))?;
    sh(&format!("lvm vgcreate group {first} {second}"))?;
    let create = "lvm lvcreate --yes --stripes 2 --extents 8 --name volume group";
    undo.now(create, "lvm vgchange --activate n group")?;
    over(&[first, second], "/dev/group/volume", "dm", undo)
}

/// Its members are equal already: a resync would write meanwhile.
fn md_raid1() -> anyhow::Result<Stack> {
    let [first, second] = &cleared_lower()?;
    let create = "mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --metadata=1.2 --assume-clean";
    let mut undo = Undo::default();
    undo.now(&format!("{create} --bitmap=none {first} {second}"), "mdadm --stop /dev/md0")?;
    over(&[first, second], "/dev/md0", "md", undo)
}

fn scsi_debug(options: &str) -> anyhow::Result<Undo> {
    sh("modprobe sd_mod")?;
    let mut undo = Undo::default();
    undo.now(&format!("modprobe scsi_debug delay=0 dev_size_mb=32 {options}"), "modprobe -r scsi_debug")?;
    Ok(undo)
}

/// Two hosts that share their storage are two paths to it.
fn multipath() -> anyhow::Result<Stack> {
    let mut undo = scsi_debug("add_host=2 per_host_store=0 vpd_use_hostno=0")?;
    let paths = ["/dev/sda", "/dev/sdb"];
    for path in paths {
        wait_until(path, || size_of(Path::new(path)).is_ok_and(|size| size > 0))?;
    }
    sh("modprobe dm-multipath")?;
    sh("modprobe dm-round-robin")?;
    let (sectors, [first, second]) = (size_of(Path::new(paths[0]))? / 512, paths);
    undo.map("paths", &format!("0 {sectors} multipath 0 0 1 1 round-robin 0 2 1 {first} 1 {second} 1\n"))?;
    over(&paths, "/dev/mapper/paths", "dm", undo)
}

/// A use of a stack.
pub struct UseCase {
    pub name: &'static str,
    /// What the refusal must say.
    pub message: &'static str,
    /// Brings it about.
    pub arrange: fn(&Stack) -> anyhow::Result<Arranged>,
    /// Whether a stack can have it.
    pub applies: fn(&Stack) -> bool,
    pub against: Against,
    /// Whether it is tried with every command.
    pub is_thorough: bool,
}

/// Which writes a use stands against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// Every write, whatever consent is given.
    All,
    /// Those of fathom's own commands.
    OwnCommands,
    WithoutConsent,
}

/// A use that has been brought about.
pub struct Arranged {
    /// What must not be written to.
    pub targets: Vec<PathBuf>,
    _undo: Undo,
}

/// A use that stands against every write, tried with some of the commands.
const fn refused(
    name: &'static str,
    message: &'static str,
    arrange: fn(&Stack) -> anyhow::Result<Arranged>,
    applies: fn(&Stack) -> bool,
) -> UseCase {
    UseCase { name, message, arrange, applies, against: Against::All, is_thorough: false }
}

const fn thorough(case: UseCase) -> UseCase {
    UseCase { is_thorough: true, ..case }
}

const fn against(against: Against, case: UseCase) -> UseCase {
    UseCase { against, ..case }
}

/// All uses.
pub const USES: &[UseCase] = &[
    thorough(refused("held", "is built on", held, |stack| !stack.below.is_empty())),
    thorough(refused("mounted", "is mounted at", mounted, is_free)),
    refused("mounted elsewhere", "is mounted at", mounted_elsewhere, is_free),
    refused("swap", "is active swap space", swap, is_free),
    refused("swap file elsewhere", "is active swap space", swap_file_elsewhere, is_free),
    refused("partition mounted", "is mounted at", partition_mounted, |stack| stack.is_disk),
    refused("partition held", "is built on", partition_held, |stack| stack.is_disk),
    refused("loop", "has its data there", behind_loop, is_free),
    refused("exclusive", "an exclusive open is refused", |stack| held_by(stack, "exclusive"), is_writable),
    refused("locked", "holds a lock", |stack| held_by(stack, "locked"), is_writable),
    against(
        Against::OwnCommands,
        refused("open for writing", "open for writing", |stack| held_by(stack, "writing"), is_free),
    ),
    refused("read-only", "is read-only", set_read_only, is_writable),
    thorough(refused("write-protected", "is read-only", as_it_is, |stack| !is_writable(stack))),
    thorough(against(
        Against::OwnCommands,
        refused("host-managed", "host-managed", as_it_is, |stack| stack.access == WriteAccess::HostManaged),
    )),
    against(Against::WithoutConsent, refused("file system", "ext4", file_system, is_free)),
];

fn is_free(stack: &Stack) -> bool {
    stack.access == WriteAccess::Free
}

fn is_writable(stack: &Stack) -> bool {
    stack.access != WriteAccess::Protected
}

fn arranged(targets: &[&Path], undo: Undo) -> anyhow::Result<Arranged> {
    Ok(Arranged { targets: targets.iter().map(|path| path.to_path_buf()).collect(), _undo: undo })
}

/// The device and all below it.
fn all_of(stack: &Stack) -> Vec<&Path> {
    [&stack.device].into_iter().chain(&stack.below).map(PathBuf::as_path).collect()
}

/// Makes a small file system, so that nothing of an earlier case is left but unused bytes, and the mount points.
fn make_ext4(device: &Path) -> anyhow::Result<String> {
    [POINT, OTHER_POINT].iter().try_for_each(std::fs::create_dir_all)?;
    sh(&format!("mkfs.ext4 -q -F {}", device.display()))?;
    Ok(device.display().to_string())
}

fn held(stack: &Stack) -> anyhow::Result<Arranged> {
    arranged(&all_of(stack)[1..], Undo::default())
}

fn as_it_is(stack: &Stack) -> anyhow::Result<Arranged> {
    arranged(&[&stack.device], Undo::default())
}

fn file_system(stack: &Stack) -> anyhow::Result<Arranged> {
    make_ext4(&stack.device)?;
    as_it_is(stack)
}

fn mounted(stack: &Stack) -> anyhow::Result<Arranged> {
    let mut undo = Undo::default();
    undo.mount(READ_ONLY, &make_ext4(&stack.device)?)?;
    arranged(&all_of(stack), undo)
}

fn mounted_elsewhere(stack: &Stack) -> anyhow::Result<Arranged> {
    let mut undo = Undo::default();
    let device = make_ext4(&stack.device)?;
    undo.holding_elsewhere(&format!("{READ_ONLY} {device} {POINT} && echo ready && read -r _"))?;
    arranged(&[&stack.device], undo)
}

fn swap(stack: &Stack) -> anyhow::Result<Arranged> {
    let device = stack.device.display();
    sh(&format!("mkswap {device}"))?;
    let mut undo = Undo::default();
    undo.now(&format!("swapon {device}"), &format!("swapoff {device}"))?;
    arranged(&all_of(stack), undo)
}

/// Active under a path that exists only in another mount namespace; here the file has another one.
fn swap_file_elsewhere(stack: &Stack) -> anyhow::Result<Arranged> {
    let (device, file) = (make_ext4(&stack.device)?, format!("{POINT}/pages"));
    let mut undo = Undo::default();
    undo.mount("mount -t ext4", &device)?;
    std::fs::write(&file, vec![0; 8 << 20])?;
    sh(&format!("mkswap {file}"))?;
    let there = format!("{OTHER_POINT}/pages");
    let mount = format!("mount -t ext4 {device} {OTHER_POINT}");
    undo.holding_elsewhere(&format!(
        "{mount} && swapon {there} && echo ready && read -r _; swapoff {there}"
    ))?;
    arranged(&[Path::new(&file)], undo)
}

/// Two partitions, the first of which is returned; they are removed again.
fn partitioned(stack: &Stack) -> anyhow::Result<(PathBuf, Undo)> {
    clear(&stack.device)?;
    let device = stack.device.to_string_lossy().into_owned();
    std::fs::write("/run/partitions", "label: gpt\nsize=12M\nsize=12M\n")?;
    let script =
        format!("sfdisk --quiet --no-reread {device} < /run/partitions; blockdev --rereadpt {device}");
    let ended = Command::new("busybox").args(["sh", "-c", &script]).output()?;
    let prefix = if device.ends_with(|last: char| last.is_ascii_digit()) { "p" } else { "" };
    let [first, second] = [1, 2].map(|number| PathBuf::from(format!("{device}{prefix}{number}")));
    let messages = String::from_utf8_lossy(&ended.stderr).into_owned();
    wait_until(&format!("partitions ({messages})"), || first.exists() && second.exists())?;
    let mut undo = Undo::default();
    undo.later(format!("sfdisk --quiet --delete {device}"));
    Ok((first, undo))
}

fn partition_mounted(stack: &Stack) -> anyhow::Result<Arranged> {
    let (first, mut undo) = partitioned(stack)?;
    undo.mount(READ_ONLY, &make_ext4(&first)?)?;
    arranged(&[&stack.device, &first], undo)
}

fn partition_held(stack: &Stack) -> anyhow::Result<Arranged> {
    let (first, mut undo) = partitioned(stack)?;
    undo.map("part", &format!("0 8192 linear {} 0\n", first.display()))?;
    arranged(&[&stack.device, &first], undo)
}

fn behind_loop(stack: &Stack) -> anyhow::Result<Arranged> {
    let device = make_ext4(&stack.device)?;
    let sector = sh(&format!("blockdev --getss {device}"))?;
    let attach = format!("losetup --find --show --sector-size {} {device}", sector.trim());
    let loop_device = sh(&attach)?.trim().to_owned();
    let mut undo = Undo::default();
    undo.later(format!("losetup --detach {loop_device}"));
    undo.mount(READ_ONLY, &loop_device)?;
    arranged(&[&stack.device], undo)
}

/// Another process has it.
fn held_by(stack: &Stack, how: &str) -> anyhow::Result<Arranged> {
    let mut undo = Undo::default();
    undo.holding("/proc/self/exe", &[HOLD, how, &stack.device.to_string_lossy()])?;
    arranged(&[&stack.device], undo)
}

fn set_read_only(stack: &Stack) -> anyhow::Result<Arranged> {
    let device = stack.device.display();
    let mut undo = Undo::default();
    undo.now(&format!("blockdev --setro {device}"), &format!("blockdev --setrw {device}"))?;
    arranged(&[&stack.device], undo)
}
