//! The virtual machine: QEMU without KVM and without a network, whose serial ports are files.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use fathom_tests::wait_for;

use super::check_line::{CheckLine, END};
use super::image::Image;
use super::kernel::Kernel;

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
pub fn run(
    kernel: &Kernel,
    image: &Image,
    only: &str,
    checked: &mut dyn FnMut(&CheckLine),
) -> anyhow::Result<()> {
    let directory = tempfile::tempdir_in(&kernel.directory)?;
    let (console, results) = (directory.path().join("console"), directory.path().join("results"));
    let mut command = qemu(kernel, image, directory.path())?;
    let kernel_line =
        format!("console=ttyS0 loglevel=5 oops=panic panic=-1 hung_task_panic=1 FATHOM_ONLY={only}");
    command.arg("-append").arg(kernel_line);
    for port in [&console, &results] {
        command.arg("-serial").arg(format!("file:{}", port.display()));
    }
    let mut machine = Machine(command.stdin(Stdio::null()).spawn().context("cannot run QEMU")?);
    let mut lines = 0;
    loop {
        let mut has_ended = false;
        let read = || std::fs::read(&results).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let complete = |text: &str| text.matches('\n').count();
        let is_there = wait_for(QUIET_LIMIT, || {
            has_ended = machine.0.try_wait().ok().flatten().is_some();
            has_ended || read().is_ok_and(|text| complete(&text) > lines)
        });
        let text = read().unwrap_or_default();
        let new = text.lines().take(complete(&text)).skip(lines);
        new.filter_map(CheckLine::parsed).for_each(|line| checked(&line));
        lines = complete(&text);
        match (has_ended, text.lines().any(|line| line.trim_end() == END)) {
            (true, true) => return Ok(()),
            (true, false) => bail!("the guest ended before its last check\n{}", tails(&console, &text)),
            (false, _) if !is_there => {
                bail!(
                    "the guest reported nothing for {} s\n{}",
                    QUIET_LIMIT.as_secs(),
                    tails(&console, &text)
                )
            }
            _ => {}
        }
    }
}

fn qemu(kernel: &Kernel, image: &Image, directory: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new("nice");
    command.args([
        "qemu-system-x86_64",
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max",
        "-smp",
        "2",
        "-nodefaults",
    ]);
    command.args(["-no-reboot", "-display", "none", "-m", &MEMORY_MIB.to_string()]);
    command.arg("-kernel").arg(kernel.image()).arg("-initrd").arg(&image.path);
    command.args(["-device", "nvme,id=nvme,serial=FATHOM"]);
    for (index, (mib, options)) in NAMESPACES.iter().enumerate() {
        let (number, disk) = (index + 1, directory.join(format!("namespace-{index}")));
        std::fs::File::create(&disk)?.set_len(mib << 20)?;
        let disk = disk.display();
        command.arg("-drive").arg(format!("file={disk},if=none,id=disk{number},format=raw,cache=unsafe"));
        command.arg("-device").arg(format!("nvme-ns,bus=nvme,drive=disk{number},nsid={number}{options}"));
    }
    Ok(command)
}

/// The last lines of the console and of the guest's program.
fn tails(console: &Path, results: &str) -> String {
    let console = std::fs::read(console).unwrap_or_default();
    let console = String::from_utf8_lossy(&console).into_owned();
    format!("console:\n{}\nprogram:\n{}", tail(&console), tail(results))
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_last_lines() {
        let text: String = (0..40).map(|line| format!("{line}\n")).collect();
        assert!(tail(&text).starts_with("10\n") && tail(&text).ends_with("\n39"));
        assert_eq!(tail("a\nb"), "a\nb");
    }
}
