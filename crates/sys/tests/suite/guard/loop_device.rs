//! A loop device over a temporary file, undone when dropped whatever happened on it.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use fathom_sys::device::{DeviceError, Obstacle};

/// Where tools are looked for: also where the user's path has no `sbin`.
fn search_path() -> String {
    format!("{}:/usr/local/sbin:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// The tools this program's tests start.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", search_path());
    command
}

/// Whether a tool is installed.
pub fn is_on_path(program: &str) -> bool {
    std::env::split_paths(&search_path()).any(|directory| directory.join(program).is_file())
}

/// Run a tool that has to succeed; its standard output.
#[track_caller]
pub fn run(program: &str, arguments: &[&str]) -> String {
    run_with_input(program, arguments, "")
}

/// The same for a tool that reads its standard input.
#[track_caller]
pub fn run_with_input(program: &str, arguments: &[&str], input: &str) -> String {
    let mut stdin = tempfile::tempfile().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    stdin.rewind().unwrap();
    let output = output_of(command(program).args(arguments).stdin(stdin));
    let Output { status, stdout, stderr } =
        output.unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
    let complaint = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{program} {}: {status}: {complaint}", arguments.join(" "));
    String::from_utf8_lossy(&stdout).trim().to_string()
}

/// Whether loop devices can be made here. Says why not; in CI it has to be possible.
pub fn can_make_loops() -> bool {
    let reason = if !rustix::process::geteuid().is_root() {
        "not root"
    } else if !Path::new("/dev/loop-control").exists() {
        "no /dev/loop-control"
    } else if output_of(command("losetup").arg("--version")).is_err() {
        "no losetup"
    } else {
        return true;
    };
    assert!(std::env::var_os("CI").is_none(), "loop devices are needed in CI, but: {reason}");
    eprintln!("skipped: loop devices cannot be made here: {reason}");
    false
}

/// Held while a program starts and while a device is examined: until a forked child has become its program, it holds all
/// files that the tests have open.
static STARTING: Mutex<()> = Mutex::new(());

/// Runs `command` to its end. `losetup` runs alone, because it opens devices of other tests while it looks for a free one.
pub fn output_of(command: &mut Command) -> io::Result<Output> {
    let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if command.get_program() == "losetup" {
        return child.wait_with_output();
    }
    drop(starting);
    child.wait_with_output()
}

/// What stands against writing to `path`.
pub fn in_use(path: &Path) -> Result<Vec<Obstacle>, DeviceError> {
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    fathom_sys::device::in_use(path)
}

/// A loop device, with all that a test puts on it.
pub struct LoopDevice {
    /// Its node.
    pub node: String,
    /// The file behind it.
    pub file: PathBuf,
    /// A directory for mounts and the like; removed with the device.
    pub dir: tempfile::TempDir,
    mounted: Vec<PathBuf>,
    swap: Vec<String>,
    partitions: Vec<u32>,
}

impl LoopDevice {
    /// A device of `mib` MiB of zeros.
    pub fn new(mib: u64) -> LoopDevice {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("backing");
        File::create(&file).unwrap().set_len(mib << 20).unwrap();
        LoopDevice::over(dir, file, &[])
    }

    /// A second device over another one's file.
    pub fn sharing(other: &LoopDevice, flags: &[&str]) -> LoopDevice {
        LoopDevice::over(tempfile::tempdir().unwrap(), other.file.clone(), flags)
    }

    /// A device over this file.
    pub fn over(dir: tempfile::TempDir, file: PathBuf, flags: &[&str]) -> LoopDevice {
        let mut arguments = vec!["--find", "--show"];
        arguments.extend(flags);
        arguments.push(file.to_str().unwrap());
        let node = run("losetup", &arguments);
        LoopDevice { node, file, dir, mounted: Vec::new(), swap: Vec::new(), partitions: Vec::new() }
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        self.node.trim_start_matches("/dev/")
    }

    /// Mount this node (the device or a partition of it); where.
    pub fn mount(&mut self, node: &str) -> PathBuf {
        let point = self.dir.path().join(format!("mount{}", self.mounted.len()));
        std::fs::create_dir(&point).unwrap();
        run("mount", &[node, point.to_str().unwrap()]);
        self.mounted.push(point.clone());
        point
    }

    /// Use a node or file as swap.
    pub fn swap_on(&mut self, path: &str) {
        run("swapon", &[path]);
        self.swap.push(path.to_string());
    }

    /// Tell the kernel of a partition, as a scan of a table would; its node.
    pub fn add_partition(&mut self, number: u32, first_sector: u64, sectors: u64) -> String {
        let (number_text, first, length) =
            (number.to_string(), first_sector.to_string(), sectors.to_string());
        run("addpart", &[&self.node, &number_text, &first, &length]);
        self.partitions.push(number);
        format!("{}p{number}", self.node)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Best effort in reverse order: a failing test must not leave mounts behind, and panicking here would hide why.
        let undo = |program: &str, arguments: &[&str]| drop(output_of(command(program).args(arguments)));
        for path in self.swap.iter().rev() {
            undo("swapoff", &[path]);
        }
        for point in self.mounted.iter().rev() {
            undo("umount", &[point.to_str().unwrap_or_default()]);
        }
        for number in &self.partitions {
            undo("delpart", &[&self.node, &number.to_string()]);
        }
        undo("losetup", &["--detach", &self.node]);
    }
}
