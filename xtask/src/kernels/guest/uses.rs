//! Everything that can be in use, or otherwise must not be written to, on a stack of devices.

use std::path::{Path, PathBuf};

use super::device::clear;
use super::shell::{Undo, sh, wait_until};
use super::stacks::{Stack, WriteAccess};

/// A use of a stack.
pub struct UseCase {
    /// Its name.
    pub name: &'static str,
    /// What the refusal must say.
    pub says: &'static str,
    /// Brings it about.
    pub arrange: fn(&Stack) -> anyhow::Result<Arranged>,
    /// Whether a stack can have it.
    pub applies: fn(&Stack) -> bool,
    /// Which writes it stands against.
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
    /// Those without consent.
    WithoutConsent,
}

/// A use that has been brought about.
pub struct Arranged {
    /// What must not be written to.
    pub targets: Vec<PathBuf>,
    _undo: Undo,
}

const POINT: &str = "/mnt/a";
const OTHER_POINT: &str = "/mnt/b";
/// So that the file system itself writes nothing while bytes are compared.
const READ_ONLY: &str = "mount -t ext4 -o ro,noload";
const THIS: &str = "/proc/self/exe";

/// A use that stands against every write, tried with some of the commands.
const fn refused(
    name: &'static str,
    says: &'static str,
    arrange: fn(&Stack) -> anyhow::Result<Arranged>,
    applies: fn(&Stack) -> bool,
) -> UseCase {
    UseCase { name, says, arrange, applies, against: Against::All, is_thorough: false }
}

/// All uses.
pub const USES: &[UseCase] = &[
    UseCase { is_thorough: true, ..refused("held", "is built on", held, is_stacked) },
    UseCase { is_thorough: true, ..refused("mounted", "is mounted at", mounted, is_free) },
    refused("mounted elsewhere", "is mounted at", mounted_elsewhere, is_free),
    refused("swap", "is active swap space", swap, is_free),
    refused("swap file elsewhere", "is active swap space", swap_file_elsewhere, is_free),
    refused("partition mounted", "is mounted at", partition_mounted, |stack| stack.is_disk),
    refused("partition held", "is built on", partition_held, |stack| stack.is_disk),
    refused("loop", "has its data there", behind_loop, is_free),
    refused(
        "exclusive",
        "an exclusive open is refused",
        |stack| held_by(stack, "exclusive"),
        |stack| stack.access != WriteAccess::Protected,
    ),
    refused(
        "locked",
        "holds a lock",
        |stack| held_by(stack, "locked"),
        |stack| stack.access != WriteAccess::Protected,
    ),
    UseCase {
        against: Against::OwnCommands,
        ..refused("open for writing", "open for writing", |stack| held_by(stack, "writing"), is_free)
    },
    refused("read-only", "is read-only", set_read_only, |stack| stack.access != WriteAccess::Protected),
    UseCase {
        is_thorough: true,
        ..refused("write-protected", "is read-only", as_it_is, |stack| stack.access == WriteAccess::Protected)
    },
    UseCase {
        against: Against::OwnCommands,
        is_thorough: true,
        ..refused("host-managed", "host-managed", as_it_is, |stack| stack.access == WriteAccess::HostManaged)
    },
    UseCase { against: Against::WithoutConsent, ..refused("file system", "ext4", file_system, is_free) },
];

fn is_free(stack: &Stack) -> bool {
    stack.access == WriteAccess::Free
}

fn is_stacked(stack: &Stack) -> bool {
    !stack.below.is_empty()
}

fn arranged(targets: &[&Path], undo: Undo) -> Arranged {
    Arranged { targets: targets.iter().map(|path| path.to_path_buf()).collect(), _undo: undo }
}

/// The device and all below it.
fn all_of(stack: &Stack) -> Vec<&Path> {
    [&stack.device].into_iter().chain(&stack.below).map(PathBuf::as_path).collect()
}

/// Makes a small file system, so that nothing of an earlier case is left but unused bytes.
fn make_ext4(device: &Path) -> anyhow::Result<String> {
    sh(&format!("mkfs.ext4 -q -F {}", device.display()))
}

fn points() -> anyhow::Result<()> {
    Ok([POINT, OTHER_POINT].iter().try_for_each(std::fs::create_dir_all)?)
}

fn held(stack: &Stack) -> anyhow::Result<Arranged> {
    let below: Vec<&Path> = stack.below.iter().map(PathBuf::as_path).collect();
    Ok(arranged(&below, Undo::default()))
}

fn as_it_is(stack: &Stack) -> anyhow::Result<Arranged> {
    Ok(arranged(&[&stack.device], Undo::default()))
}

fn file_system(stack: &Stack) -> anyhow::Result<Arranged> {
    make_ext4(&stack.device)?;
    as_it_is(stack)
}

fn mounted(stack: &Stack) -> anyhow::Result<Arranged> {
    points()?;
    make_ext4(&stack.device)?;
    let mut undo = Undo::default();
    undo.now(&format!("{READ_ONLY} {} {POINT}", stack.device.display()), &format!("umount {POINT}"))?;
    Ok(arranged(&all_of(stack), undo))
}

/// In a mount namespace of its own, as in a container.
fn mounted_elsewhere(stack: &Stack) -> anyhow::Result<Arranged> {
    points()?;
    make_ext4(&stack.device)?;
    let script = format!("{READ_ONLY} {} {POINT} && echo ready && read -r _", stack.device.display());
    let mut undo = Undo::default();
    undo.holding("unshare", &["--mount", "--propagation", "unchanged", "busybox", "sh", "-c", &script])?;
    Ok(arranged(&[&stack.device], undo))
}

fn swap(stack: &Stack) -> anyhow::Result<Arranged> {
    let device = stack.device.display();
    sh(&format!("mkswap {device}"))?;
    let mut undo = Undo::default();
    undo.now(&format!("swapon {device}"), &format!("swapoff {device}"))?;
    Ok(arranged(&all_of(stack), undo))
}

/// Active under a path that exists only in another mount namespace; here the file has another one.
fn swap_file_elsewhere(stack: &Stack) -> anyhow::Result<Arranged> {
    points()?;
    make_ext4(&stack.device)?;
    let (device, file) = (stack.device.display(), format!("{POINT}/pages"));
    let mut undo = Undo::default();
    undo.now(&format!("mount -t ext4 {device} {POINT}"), &format!("umount {POINT}"))?;
    std::fs::write(&file, vec![0; 8 << 20])?;
    sh(&format!("mkswap {file}"))?;
    let there = format!("{OTHER_POINT}/pages");
    let script = format!(
        "mount -t ext4 {device} {OTHER_POINT} && swapon {there} && echo ready && read -r _; swapoff {there}"
    );
    undo.holding("unshare", &["--mount", "--propagation", "unchanged", "busybox", "sh", "-c", &script])?;
    Ok(arranged(&[Path::new(&file)], undo))
}

/// Two partitions, the first of which is returned, with the second.
fn partitioned(stack: &Stack) -> anyhow::Result<[PathBuf; 2]> {
    clear(&stack.device)?;
    let device = stack.device.to_string_lossy().into_owned();
    std::fs::write("/run/partitions", "label: gpt\nsize=12M\nsize=12M\n")?;
    let script =
        format!("sfdisk --quiet --no-reread {device} < /run/partitions; blockdev --rereadpt {device}");
    let arguments = ["-c", &script];
    let ended = std::process::Command::new("busybox").arg("sh").args(arguments).output()?;
    let prefix = if device.ends_with(|last: char| last.is_ascii_digit()) { "p" } else { "" };
    let nodes = [1, 2].map(|number| PathBuf::from(format!("{device}{prefix}{number}")));
    let messages = String::from_utf8_lossy(&ended.stderr).into_owned();
    wait_until(&format!("partitions ({messages})"), || nodes.iter().all(|node| node.exists()))?;
    Ok(nodes)
}

/// Removes the partitions again.
fn unpartitioned(stack: &Stack) -> Undo {
    let device = stack.device.display();
    let mut undo = Undo::default();
    undo.later(format!("sfdisk --quiet --delete {device}"));
    undo
}

fn partition_mounted(stack: &Stack) -> anyhow::Result<Arranged> {
    points()?;
    let [first, _] = partitioned(stack)?;
    let mut undo = unpartitioned(stack);
    make_ext4(&first)?;
    undo.now(&format!("{READ_ONLY} {} {POINT}", first.display()), &format!("umount {POINT}"))?;
    Ok(arranged(&[&stack.device, &first], undo))
}

fn partition_held(stack: &Stack) -> anyhow::Result<Arranged> {
    let [first, _] = partitioned(stack)?;
    let mut undo = unpartitioned(stack);
    std::fs::write("/run/table", format!("0 8192 linear {} 0\n", first.display()))?;
    undo.now("dmsetup create part /run/table", "dmsetup remove part")?;
    Ok(arranged(&[&stack.device, &first], undo))
}

fn behind_loop(stack: &Stack) -> anyhow::Result<Arranged> {
    points()?;
    make_ext4(&stack.device)?;
    let sector = sh(&format!("blockdev --getss {}", stack.device.display()))?;
    let attach = format!("losetup --find --show --sector-size {} {}", sector.trim(), stack.device.display());
    let loop_device = sh(&attach)?.trim().to_owned();
    let mut undo = Undo::default();
    undo.later(format!("losetup --detach {loop_device}"));
    undo.now(&format!("{READ_ONLY} {loop_device} {POINT}"), &format!("umount {POINT}"))?;
    Ok(arranged(&[&stack.device], undo))
}

/// Another process has it.
fn held_by(stack: &Stack, how: &str) -> anyhow::Result<Arranged> {
    let mut undo = Undo::default();
    undo.holding(THIS, &["campaign", "kernels", "--hold", how, &stack.device.to_string_lossy()])?;
    Ok(arranged(&[&stack.device], undo))
}

fn set_read_only(stack: &Stack) -> anyhow::Result<Arranged> {
    let device = stack.device.display();
    let mut undo = Undo::default();
    undo.now(&format!("blockdev --setro {device}"), &format!("blockdev --setrw {device}"))?;
    Ok(arranged(&[&stack.device], undo))
}
