//! The guard, case by case: everything that can be in use here, by every name it has, through every command that
//! writes. Each attempt is refused, and no byte of a target in use changes.
//!
//! Cases that this kernel lacks (device-mapper, MD) are tested on a fabricated `/proc` and `/sys` in the guard's unit
//! tests (`crates/sys/src/device/guard`).

mod in_use;

use fathom_tests::{LoopDevice, LoopOptions, MIB, fathom_path, loading, must_run, need, run, scratch};
use in_use::{Elsewhere, InUse, image, mounted_image};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A name for the target, and what the program is started through so that it has that name.
struct Way {
    name: PathBuf,
    directory: Option<PathBuf>,
    descriptor: bool,
}

/// By path, by a link, by a link to a link as below `/dev/disk/by-id`, relative to the working directory, and by a
/// descriptor that was inherited.
fn ways(target: &Path, directory: &Path) -> Vec<Way> {
    let way = |name: PathBuf| Way { name, directory: None, descriptor: false };
    let links = directory.join("by-id");
    std::fs::create_dir_all(&links).expect("the directory is ours");
    let (link, chain) = (directory.join("link"), links.join("virtual-disk_1"));
    for (from, to) in [(&link, target), (&chain, Path::new("../link"))] {
        std::fs::remove_file(from).ok();
        symlink(to, from).expect("the directory is ours");
    }
    let parent = target.parent().expect("targets are absolute").to_owned();
    let name = PathBuf::from(target.file_name().expect("targets have names"));
    vec![
        way(target.to_owned()),
        way(link),
        way(chain),
        Way { name, directory: Some(parent), descriptor: false },
        Way { name: PathBuf::from("/proc/self/fd/9"), directory: None, descriptor: true },
    ]
}

/// Each way to write, and whether it has to be refused (or reads only, as nothing allows it to write).
fn attempts(name: &Path, free: &Path) -> Vec<(Vec<String>, bool)> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (name, free) = (name.to_string_lossy().into_owned(), free.to_string_lossy().into_owned());
    let (named, both) = (format!("--destroy-data={name}"), format!("--filename={free}:{name}"));
    let file = format!("--filename={name}");
    let fio = |rw: &str, more: &[&String]| {
        let mut fio = words("fio --name=attempt --bs=4k --size=64k");
        fio.push(format!("--rw={rw}"));
        fio.extend(more.iter().map(|word| (*word).clone()));
        (fio, true)
    };
    let own = |command: &str, more: &[&String], refused: bool| {
        let mut own = words(command);
        own.extend(more.iter().map(|word| (*word).clone()));
        own.push(name.clone());
        (own, refused)
    };
    let bench = "bench --no-history --only=rand-write --runtime=10ms --size=16m";
    vec![
        fio("write", &[&file]),
        fio("randrw", &[&file, &named]),
        fio("randtrim", &[&file]),
        fio("write", &[&both]),
        own(bench, &[], false),
        own(bench, &[&named], true),
        own(bench, &[&named, &format!("--destroy-data={free}"), &free], true),
        own("sweep --no-history --rw=randwrite --budget=10s", &[&named], true),
        own("surface --no-history --write --budget=10s", &[&named], true),
        own("identify --no-history --budget=1m", &[&named], true),
        own("prepare --no-history", &[&named], true),
        own("ping -c 1 -WWW", &[&named], true),
    ]
}

fn command(way: &Way, target: &Path, arguments: &[String], home: &Path) -> Command {
    let mut command = match way.descriptor {
        false => Command::new(fathom_path()),
        true => {
            let mut shell = Command::new("sh");
            shell.args(["-c", "exec 9< \"$0\" && exec \"$@\""]).arg(target).arg(fathom_path());
            shell
        }
    };
    command.args(arguments).env("HOME", home).env("NO_COLOR", "1");
    command.env_remove("FATHOM_HISTORY").env_remove("FATHOM_DESTROY_DATA").env_remove("XDG_DATA_HOME");
    if let Some(directory) = &way.directory {
        command.current_dir(directory);
    }
    command
}

fn content(path: &Path) -> String {
    must_run(Command::new("md5sum").arg("--").arg(path)).split(' ').next().unwrap_or_default().to_owned()
}

#[track_caller]
fn assert_never_written(in_use: &InUse) {
    let (directory, home) = (scratch(), scratch());
    let free = image(directory.path(), "free");
    for target in &in_use.targets {
        let before = content(target);
        for way in ways(target, directory.path()) {
            for (arguments, is_refused) in attempts(&way.name, &free) {
                let ended = run(&mut command(&way, target, &arguments, home.path()));
                assert_eq!(ended.status.code().is_some_and(|code| code != 0), is_refused, "{ended}");
                if is_refused {
                    ended.assert_told(&["refusing to write to", in_use.reason]);
                }
            }
        }
        assert_eq!(content(target), before, "{} has changed", target.display());
    }
    assert_eq!(
        std::fs::read(&free).expect("it is ours"),
        vec![0; 32 * MIB as usize],
        "what is free was written"
    );
}

macro_rules! case {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                need!(
                    root, tool "losetup", tool "mkfs.ext4", tool "mkfs.xfs", tool "mkfs.btrfs", tool "mkswap",
                    tool "swapon", tool "mount", tool "unshare", tool "addpart", tool "fsfreeze", tool "fuse2fs", path "/dev/fuse"
                );
                let _loading = loading();
                assert_never_written(&super::in_use::$name());
            }
        )*
    };
}

/// One test for each thing that is in use.
mod never_written {
    use super::*;

    case! {
        mounted mounted_in_another_namespace mounted_through_another_node external_log external_journal swap swap_file_elsewhere
        held_exclusively loop_chain hard_link removed blanks_in_the_name bind_mounts partition_of_a_mounted_disk
        disk_of_a_mounted_partition member_of_several_devices mounted_by_a_server locked_partition
    }
}

#[test]
fn no_file_is_created_among_device_nodes() {
    need!(root);
    let _loading = loading();
    let (directory, home) = (scratch(), scratch());
    let dangling = directory.path().join("dangling");
    let missing = Path::new("/dev/fathom-no-such-device");
    symlink(missing, &dangling).expect("the directory is ours");
    let below = std::fs::read_dir("/dev").expect("there are devices").flatten();
    let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<PathBuf> = vec![missing.to_owned(), dangling];
    names.extend(
        below
            .filter(|entry| ["mapper", "disk", "net"].iter().any(|name| entry.file_name() == *name))
            .map(|entry| entry.path().join("fathom-no-such-device")),
    );
    for name in &names {
        let text = name.to_string_lossy().into_owned();
        let fio = format!("fio --name=typo --rw=write --bs=4k --size=64k --filename={text}");
        let prepare = format!("prepare --no-history --size 10m {text}");
        for line in [fio, prepare] {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let way = Way { name: name.clone(), directory: None, descriptor: false };
            let ended = run(&mut command(&way, name, &arguments, home.path()));
            assert!(!ended.status.success(), "{ended}");
            assert!(!name.exists(), "{ended}");
        }
    }
}

#[test]
fn images_opened_by_other_processes_are_reported() {
    need!(root, tool "losetup", tool "python3");
    let _loading = loading();
    let (directory, home) = (scratch(), scratch());
    let image = image(directory.path(), "image");
    let text = image.to_string_lossy().into_owned();
    let fio: Vec<String> = ["fio", "--name=shared", "--rw=write", "--bs=4k", "--size=64k", "--advise"]
        .iter()
        .map(|word| (*word).to_owned())
        .chain([format!("--filename={text}")])
        .collect();
    let bench: Vec<String> = ["bench", "--no-history", "--only=rand-write", "--runtime=100ms", "--size=16m"]
        .iter()
        .map(|word| (*word).to_owned())
        .chain([format!("--destroy-data={text}"), text.clone()])
        .collect();
    let way = Way { name: image.clone(), directory: None, descriptor: false };
    let attempt = |arguments: &[String]| run(&mut command(&way, &image, arguments, home.path()));
    let start = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).arg(&image).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().expect("a shell runs");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("it is a pipe")).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Elsewhere(child)
    };
    // Open for writing: a job under fio's grammar says so, an own command does not write.
    let writer = start("exec 8<> \"$0\"; echo ready; read -r _");
    attempt(&fio).assert_code(0).assert_shown(&["open for writing"]);
    attempt(&bench).assert_code(1).assert_told(&["refusing to write to", "open for writing"]);
    drop(writer);
    attempt(&bench).assert_code(0);
    // Mapped, with no descriptor left.
    let mapper = start(
        "exec python3 -c '
import ctypes, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
assert c.mmap(None, ctypes.c_size_t(4096), 3, 1, file, ctypes.c_long(0)) not in (None, 2**64 - 1)
os.close(file)
print(\"ready\", flush=True)
sys.stdin.readline()' \"$0\"",
    );
    attempt(&bench).assert_code(1).assert_told(&["refusing to write to", "open for writing"]);
    drop(mapper);
    // Locked, as the owner of a running machine's image has it: neither writes.
    let owner = start("exec 8< \"$0\"; flock --shared 8; echo ready; read -r _");
    attempt(&fio).assert_code(1).assert_told(&["holds a lock on"]);
    attempt(&bench).assert_code(1).assert_told(&["holds a lock on"]);
    drop(owner);
    attempt(&fio).assert_code(0);
}

/// An empty device, like a loop device.
#[test]
fn free_devices_and_files_are_written() {
    need!(root, tool "losetup");
    let _loading = loading();
    let (directory, home) = (scratch(), scratch());
    let device = LoopDevice::with(&LoopOptions { written: true, ..LoopOptions::of_size(32 * MIB) });
    let free = image(directory.path(), "free");
    for target in [device.path(), free.as_path()] {
        for (index, way) in ways(target, directory.path()).into_iter().enumerate() {
            let name = way.name.to_string_lossy().into_owned();
            let fio =
                format!("fio --name=free --rw=write --bs=4k --size=64k --randseed={index} --filename={name}");
            let bench = format!(
                "bench --no-history --only=rand-write --runtime=10ms --size=16m --destroy-data={name} {name}"
            );
            // A bench takes two seconds: by the first name and the last.
            let is_benched = index % 4 == 0;
            for line in [Some(fio), is_benched.then_some(bench)].into_iter().flatten() {
                let before = content(target);
                let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
                let ended = run(&mut command(&way, target, &arguments, home.path()));
                ended.assert_code(0);
                assert_ne!(content(target), before, "{ended}");
            }
        }
    }
}

#[test]
fn data_of_an_unknown_format_is_mentioned() {
    need!(root, tool "losetup");
    let _loading = loading();
    let home = scratch();
    let (empty, full) = (LoopDevice::new(32 * MIB), LoopDevice::written(32 * MIB));
    let mention = "contains data of an unknown format";
    for (device, is_mentioned) in [(&empty, false), (&full, true)] {
        let name = device.path().to_string_lossy().into_owned();
        let way = Way { name: device.path().to_owned(), directory: None, descriptor: false };
        let attempt = |line: String| {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            run(&mut command(&way, device.path(), &arguments, home.path()))
        };
        let bench = attempt(format!(
            "bench --no-history --only=rand-write --runtime=10ms --size=16m --dry-run --destroy-data={name} {name}"
        ));
        assert_eq!(bench.assert_code(0).stdout.contains(mention), is_mentioned, "{bench}");
        let fio = attempt(format!("fio --name=t --rw=write --bs=4k --size=64k --advise --filename={name}"));
        assert_eq!(fio.assert_code(0).stdout.contains(mention), is_mentioned, "{fio}");
    }
}

#[test]
fn kept_unlinked_and_output_files_are_guarded_like_others() {
    need!(root, tool "losetup", tool "mkfs.ext4", tool "mount");
    let _loading = loading();
    let home = scratch();
    let (in_use, image) = mounted_image("ioping.tmp");
    let directory = image.parent().expect("it lies in one").to_string_lossy().into_owned();
    let way = Way { name: image.clone(), directory: None, descriptor: false };
    let attempt = |line: String| {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        run(&mut command(&way, &image, &arguments, home.path()))
    };
    let before = content(&image);
    for line in [
        format!("ping -k -W -c 1 {directory}"),
        format!("ping -k -S 40m -c 1 {directory}"),
        format!("fio --name=t --rw=read --bs=4k --unlink=1 --filename={}", image.display()),
        format!("fio --name=t --ioengine=null --size=4k --output={}", image.display()),
    ] {
        let ended = attempt(line);
        let is_told =
            ["refusing to write to", "is mounted at"].iter().any(|part| ended.stderr.contains(part));
        assert!(!ended.status.success() && is_told, "{ended}");
        assert_eq!(content(&image), before, "{ended}");
    }
    drop(in_use);
}
