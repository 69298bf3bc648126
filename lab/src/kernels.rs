//! `kernels`: boots Debian's kernels in QEMU, without KVM, and there, as root and over stacks of devices that a test machine lacks, runs
//! each command that does I/O, and every kind of use that the guard must see.
//!
//! The program in the guest is this one: [`guest`] builds the stacks and writes a [`CheckLine`] for each check to a serial port, which
//! the host reads. A guest that hangs, panics or ends early fails the campaign.

pub mod guest;
mod stacks;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use fathom_tests::{fathom_path, wait_for};
use serde::{Deserialize, Serialize};
use xtask::packages::{Tool, program_path, require_all, tool};
use xtask::process::{output, target_directory};

use crate::driver::{Asked, Campaign, Case, CaseResult, Plan};

/// Guests wait for their devices most of the time, so that both kernels run at once.
pub const CAMPAIGN: Campaign = Campaign {
    jobs: 2,
    options: &[("stack", Some(""), "Run only stacks with this text in their names")],
    ..Campaign::new(
        "kernels",
        "Boot Debian's kernels in QEMU and run every command and the guard there",
        plan,
    )
};

/// The commands of the guest: the campaign's part there, and a process that holds a device.
pub const IN_GUEST: &str = "in-guest";
pub const HOLD: &str = "hold";

fn plan(asked: &Asked) -> anyhow::Result<Plan> {
    if !asked.list {
        require_all(HOST_TOOLS)?;
        require_all(PROGRAMS)?;
    }
    let stack = asked.text("stack").to_owned();
    Ok(Plan::new(KERNELS.iter().map(|debian| {
        let stack = stack.clone();
        Case::new(debian.0, move || boot(debian, &stack))
    })))
}

/// The last line of a guest that came to its end, and the beginning of the others.
const END: &str = "fathom-kernels: end";
const CHECK: &str = "fathom-kernels: check ";

/// The kinds of checks, columns of the table: a command ran on a free device with plausible figures; a write was refused for the
/// expected reason and no byte of the device changed; a write that is permitted changed the device.
const COMMAND: &str = "commands";
const REFUSAL: &str = "refused";
const WRITE: &str = "written";

/// One check, as the guest reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CheckLine {
    stack: String,
    kind: String,
    /// The case and the command.
    name: String,
    failure: Option<String>,
}

impl CheckLine {
    /// The check on a line of the guest; `None` if the line is something else.
    fn parsed(line: &str) -> Option<CheckLine> {
        serde_json::from_str(line.trim_end().strip_prefix(CHECK)?).ok()
    }
}

/// The version of a kernel of Debian, as in tables, and the release of Debian that has it.
type DebianKernel = (&'static str, &'static str);
const KERNELS: &[DebianKernel] = &[("6.1", "bookworm"), ("6.12", "trixie")];
/// The archive, whatever the sources of this machine are; the keys that sign its lists; the package that depends on the newest kernel.
const ARCHIVE: &str = "http://deb.debian.org/debian";
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const NEWEST: &str = "linux-image-amd64";

const HOST_TOOLS: &[Tool] = &[
    tool(KEYS, "debian-archive-keyring"),
    tool("cpio", "cpio"),
    tool("depmod", "kmod"),
    tool("dpkg-deb", "dpkg"),
    tool("ldd", "libc-bin"),
    tool("qemu-system-x86_64", "qemu-system-x86"),
];

/// The programs of the guest.
const PROGRAMS: &[Tool] = &[
    tool("blockdev", "util-linux"),
    tool("busybox", "busybox-static"),
    tool("cryptsetup", "cryptsetup-bin"),
    tool("dmsetup", "dmsetup"),
    tool("losetup", "mount"),
    tool("lvm", "lvm2"),
    tool("mdadm", "mdadm"),
    tool("mkfs.ext4", "e2fsprogs"),
    tool("mkswap", "util-linux"),
    tool("modprobe", "kmod"),
    tool("mount", "mount"),
    tool("sfdisk", "fdisk"),
    tool("swapoff", "mount"),
    tool("swapon", "mount"),
    tool("umount", "mount"),
    tool("unshare", "util-linux"),
];

/// The modules that the guest loads or the kernel requests; what they depend on comes with them.
const MODULES: &str = "nvme null_blk scsi_debug sd_mod dm-mod dm-crypt dm-multipath dm-round-robin raid1 loop ext4 crc32c xts aes af_alg \
    algif_skcipher algif_hash essiv configfs";

/// The first process. Variables for tools that otherwise wait for udev, which the guest lacks.
const INIT: &str = "#!/bin/busybox sh
export PATH=/bin HOME=/root DM_DISABLE_UDEV=1 MDADM_NO_UDEV=1 NO_COLOR=1
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t tmpfs run /run
busybox mount -t tmpfs tmp /tmp
lab in-guest $FATHOM_ONLY > /dev/ttyS1 2>&1
busybox sync
busybox poweroff -f
";

/// A guest that reports nothing for so long hangs: the slowest command takes two minutes there.
const QUIET_LIMIT: Duration = Duration::from_secs(300);
/// Memory of the guest, which has its file system there.
const MEMORY_MIB: u32 = 1536;
/// Lines of the kernel's console in an error.
const CONSOLE_LINES: usize = 30;
/// The namespaces of the guest's NVMe controller: size in MiB, and options.
const NAMESPACES: &[(u64, &str)] = &[
    (32, ""),
    (32, ",zoned=true,zoned.zone_size=4M,zoned.zone_capacity=4M,zoned.max_open=8,zoned.max_active=8"),
    (40, ""),
    (40, ""),
];

/// Boots one kernel, and counts its checks.
fn boot((version, suite): &DebianKernel, stack: &str) -> anyhow::Result<CaseResult> {
    let directory = target_directory().join("kernels");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let kernel = Kernel::unpacked(suite, &directory)?;
    let image = kernel.make_image(fathom_path(), &directory)?;
    println!("kernel {} boots ...", kernel.release);
    let mut result = CaseResult::new(kernel.release.clone());
    let mut lines = Vec::new();
    let end = run_machine(&kernel, &image, stack, &mut |line| {
        if let Some(failure) = &line.failure {
            println!("FAILED under {version}: {}: {}: {failure}", line.stack, line.name);
        }
        lines.push(line);
    });
    ensure!(!lines.is_empty() || end.is_err(), "nothing was checked");
    for CheckLine { stack, kind, name, failure } in lines {
        let column = if failure.is_some() { "failed" } else { kind.as_str() };
        result = result.count_in(&format!("{version} {stack}"), column, 1);
        result = result.faults(failure.map(|failure| format!("{stack}: {name}: {failure}")));
    }
    Ok(result.faults(end.err().map(|error| format!("{error:#}"))))
}

/// An unpacked kernel: downloaded with apt, never installed.
struct Kernel {
    /// As `uname -r` prints it.
    release: String,
    /// The directory with `lib/modules`.
    directory: PathBuf,
}

impl Kernel {
    /// The newest kernel of `suite`, downloaded into `cache` if it is not there.
    fn unpacked(suite: &str, cache: &Path) -> anyhow::Result<Kernel> {
        let directory = cache.join(suite);
        if let Some(release) = release_in(&directory) {
            return Ok(Kernel { release, directory });
        }
        let work = tempfile::tempdir_in(cache)?;
        let package = download(suite, work.path())?;
        let unpacked = work.path().join("unpacked");
        output(Command::new("dpkg-deb").arg("-x").args([&package, &unpacked]))?;
        if !unpacked.join("lib").exists() {
            std::os::unix::fs::symlink("usr/lib", unpacked.join("lib"))?;
        }
        let release = release_in(&unpacked).context("the package has no kernel")?;
        output(Command::new("depmod").arg("--basedir").arg(&unpacked).arg(&release))?;
        std::fs::rename(&unpacked, &directory)?;
        Ok(Kernel { release, directory })
    }

    /// Makes the initramfs: fathom, this program, the tools that build stacks, and the modules of the kernel.
    fn make_image(&self, fathom: &Path, directory: &Path) -> anyhow::Result<PathBuf> {
        let work = tempfile::tempdir_in(directory)?;
        let root = work.path();
        for name in ["bin", "dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp", "usr"] {
            std::fs::create_dir_all(root.join(name))?;
        }
        for link in ["sbin", "usr/bin", "usr/sbin"] {
            std::os::unix::fs::symlink("/bin", root.join(link))?;
        }
        let mut programs = vec![("fathom", fathom.to_owned()), ("lab", std::env::current_exe()?)];
        for tool in PROGRAMS {
            let path = program_path(tool.program).with_context(|| format!("{} is missing", tool.program))?;
            programs.push((tool.program, path));
        }
        for (name, path) in programs {
            copy(&path, &root.join("bin").join(name))?;
            for library in libraries(&path)? {
                copy(&library, &root.join(library.strip_prefix("/").unwrap_or(&library)))?;
            }
        }
        for module in self.modules()? {
            copy(&module, &root.join(module.strip_prefix(&self.directory).unwrap_or(&module)))?;
        }
        let lists = Path::new("lib/modules").join(&self.release);
        for list in ["modules.builtin", "modules.order"] {
            copy(&self.directory.join(&lists).join(list), &root.join(&lists).join(list))?;
        }
        output(Command::new("depmod").arg("--basedir").arg(root).arg(&self.release))?;
        std::fs::write(root.join("init"), INIT)?;
        let path = directory.join(format!("initramfs-{}", self.release));
        let archive = "chmod 755 init && find . | cpio --quiet --create --format=newc > \"$0\"";
        output(Command::new("sh").current_dir(root).args(["-c", archive]).arg(&path))?;
        Ok(path)
    }

    /// The files of [`MODULES`] and of all that they depend on, but for those that are built in.
    fn modules(&self) -> anyhow::Result<BTreeSet<PathBuf>> {
        let mut files = BTreeSet::new();
        for module in MODULES.split(' ') {
            let mut modprobe = Command::new(program_path("modprobe").context("modprobe is missing")?);
            modprobe.arg("--dirname").arg(&self.directory).args(["--set-version", &self.release]);
            let shown = output(modprobe.args(["--show-depends", module]))?;
            files.extend(shown.lines().filter_map(inserted));
        }
        Ok(files)
    }
}

fn release_in(directory: &Path) -> Option<String> {
    let names = std::fs::read_dir(directory.join("boot")).ok()?.flatten();
    names.filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix("vmlinuz-")?.to_owned())).next()
}

/// Downloads the newest kernel of `suite` into `work`, with lists and settings of its own: the machine's stay as they are.
fn download(suite: &str, work: &Path) -> anyhow::Result<PathBuf> {
    for part in ["lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(work.join(part))?;
    }
    std::fs::write(work.join("sources"), format!("deb [signed-by={KEYS}] {ARCHIVE} {suite} main\n"))?;
    let apt = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.current_dir(work).args(["-o", "Dir::Etc::SourceParts=/dev/null"]);
        command.args(["-o", "APT::Sandbox::User=root"]);
        for (option, name) in [("Etc::SourceList", "sources"), ("State::Lists", "lists"), ("Cache", "cache")]
        {
            command.arg("-o").arg(format!("Dir::{option}={}", work.join(name).display()));
        }
        output(command.args(arguments))
    };
    apt("apt-get", &["update"])?;
    let dependencies = apt("apt-cache", &["depends", NEWEST])?;
    let newest = dependencies.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    apt("apt-get", &["download", newest.with_context(|| format!("{suite} has no {NEWEST}"))?])?;
    let mut files = std::fs::read_dir(work)?.flatten().map(|entry| entry.path());
    files.find(|path| path.extension().is_some_and(|end| end == "deb")).context("apt-get downloaded nothing")
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to.parent().expect("files lie in directories"))
        .and_then(|()| std::fs::copy(from, to))
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// The shared libraries of a program; none of a static one, which `ldd` fails on.
fn libraries(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = Command::new("ldd").arg(program).output().context("cannot run ldd")?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    ensure!(!text.contains("not found"), "{} lacks a library:\n{text}", program.display());
    Ok(text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect())
}

/// The file on a line of `modprobe --show-depends`.
fn inserted(line: &str) -> Option<PathBuf> {
    line.strip_prefix("insmod ")?.split_whitespace().next().map(PathBuf::from)
}

/// Ends the machine however its reader ends.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Boots `kernel` and passes on each check of the guest as it comes.
///
/// # Errors
/// The guest hangs, panics, or ends before its last check.
fn run_machine(
    kernel: &Kernel,
    image: &Path,
    stack: &str,
    checked: &mut dyn FnMut(CheckLine),
) -> anyhow::Result<()> {
    let directory = tempfile::tempdir_in(&kernel.directory)?;
    let (console, results) = (directory.path().join("console"), directory.path().join("results"));
    let mut command = qemu(kernel, image, directory.path())?;
    // The kernel counts the timer's ticks at boot, and panics if a busy host delays those of the emulated one.
    let options = "console=ttyS0 loglevel=5 no_timer_check oops=panic panic=-1 hung_task_panic=1";
    command.arg("-append").arg(format!("{options} FATHOM_ONLY={stack}"));
    for port in [&console, &results] {
        command.arg("-serial").arg(format!("file:{}", port.display()));
    }
    let mut machine = Machine(command.stdin(Stdio::null()).spawn().context("cannot run QEMU")?);
    let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    let complete = |text: &str| text.matches('\n').count();
    let mut lines = 0;
    loop {
        let mut has_ended = false;
        let is_there = wait_for(QUIET_LIMIT, || {
            has_ended = machine.0.try_wait().ok().flatten().is_some();
            has_ended || complete(&read(&results)) > lines
        });
        let text = read(&results);
        let new = text.lines().take(complete(&text)).skip(lines);
        new.filter_map(CheckLine::parsed).for_each(&mut *checked);
        lines = complete(&text);
        // The last lines of the console and of the guest's program.
        let tails = || format!("console:\n{}\nprogram:\n{}", tail(&read(&console)), tail(&text));
        match (has_ended, text.lines().any(|line| line.trim_end() == END)) {
            (true, true) => return Ok(()),
            (true, false) => bail!("the guest ended before its last check\n{}", tails()),
            (false, _) if !is_there => {
                bail!("the guest reported nothing for {} s\n{}", QUIET_LIMIT.as_secs(), tails())
            }
            _ => {}
        }
    }
}

fn qemu(kernel: &Kernel, image: &Path, directory: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new("nice");
    command.args(["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"]);
    command.args(["-nodefaults", "-no-reboot", "-display", "none", "-m", &MEMORY_MIB.to_string()]);
    command.arg("-kernel").arg(kernel.directory.join("boot").join(format!("vmlinuz-{}", kernel.release)));
    command.arg("-initrd").arg(image).args(["-device", "nvme,id=nvme,serial=FATHOM"]);
    for (index, (mib, options)) in NAMESPACES.iter().enumerate() {
        let (number, disk) = (index + 1, directory.join(format!("namespace-{index}")));
        std::fs::File::create(&disk)?.set_len(mib << 20)?;
        let disk = disk.display();
        command.arg("-drive").arg(format!("file={disk},if=none,id=disk{number},format=raw,cache=unsafe"));
        command.arg("-device").arg(format!("nvme-ns,bus=nvme,drive=disk{number},nsid={number}{options}"));
    }
    Ok(command)
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_survive_the_serial_port() {
        for failure in [None, Some("bytes\nchanged")] {
            let (stack, kind, name) = ("nvme".to_owned(), REFUSAL.to_owned(), "mounted: fio".to_owned());
            let line = CheckLine { stack, kind, name, failure: failure.map(str::to_owned) };
            let text = format!("{CHECK}{}\r\n", serde_json::to_string(&line).unwrap());
            assert_eq!((CheckLine::parsed(&text), text.lines().count()), (Some(line), 1));
        }
        assert_eq!(CheckLine::parsed("[    1.0] nvme nvme0: 2/0/0 queues"), None);
        assert_eq!(CheckLine::parsed(END), None);
    }

    #[test]
    fn modules_are_files_or_built_in() {
        assert_eq!(inserted("insmod /k/loop.ko.xz max_loop=8"), Some(PathBuf::from("/k/loop.ko.xz")));
        assert_eq!(inserted("builtin crc32c"), None);
    }

    #[test]
    fn an_error_has_the_last_lines() {
        let text: String = (0..40).map(|line| format!("{line}\n")).collect();
        assert!(tail(&text).starts_with("10\n") && tail(&text).ends_with("\n39"));
        assert_eq!(tail("a\nb"), "a\nb");
    }
}
