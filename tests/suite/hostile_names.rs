//! `fathom monitor`, run by root, with a process whose name contains control characters for terminals.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    LoopDevice, Program, fathom, fathom_path, measuring_capped, need, run, scratch, wait_for,
};
use serde_json::Value;

use crate::ours::filename;

/// Sets the title of a terminal, then begins a line.
const NAME: &str = "\x1b]0;x\x07\nsda";
const SHOWN: &str = r"\x1b]0;x\x07\x0asda";

/// Debian's fio, which the kernel calls by the name of the link to it, reading from `device` until dropped.
fn load(link: &Path, device: &Path) -> Program {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs: Vec<PathBuf> = std::env::split_paths(&path).map(|dir| dir.join("fio")).collect();
    let fio = programs.iter().find(|path| path.exists()).expect("fio is needed");
    symlink(fio, link).expect("a link in a directory of our own");
    let mut command = Command::new(link);
    command
        .args(["--name=a", "--rw=randread", "--bs=4k", "--rate_iops=200", "--direct=1", "--ioengine=psync"]);
    command.args(["--thread", "--time_based", "--runtime=60", "--eta=never"]).arg(filename(device));
    let mut load = Program::start(&mut command);
    assert!(!wait_for(Duration::from_secs(1), || load.has_ended()), "{}", load.stderr());
    load
}

/// The control characters in `text`, except line ends and those that redraw a table.
fn orders(text: &str) -> Vec<&str> {
    let ours = |order: &str| {
        let end = order.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        order.len() - end.len() <= 3 && ["m", "A", "J"].iter().any(|letter| end.starts_with(letter))
    };
    let orders = text.split('\x1b').skip(1).filter(|order| !order.strip_prefix('[').is_some_and(ours));
    orders.chain(text.matches(|c: char| c.is_control() && !"\x1b\r\n".contains(c))).collect()
}

#[test]
fn control_characters_in_process_names_are_escaped() {
    need!(root, tool "losetup", tool "fio", tool "script", path "/dev/shm");
    let _capped = measuring_capped();
    let (home, device) = (scratch(), LoopDevice::in_memory(64 << 20));
    let _load = load(&home.path().join(NAME), device.path());
    let monitor = ["monitor", "--interval=1", "--count=2"];
    let ended = run(fathom(home.path()).args(monitor).arg(device.name()));
    ended.assert_code(0).assert_shown(&[SHOWN]);
    assert_eq!(ended.stdout.lines().count(), 3, "a head and a line an interval: {:?}", ended.stdout);
    assert_eq!(orders(&ended.stdout), [""; 0]);

    let ended = run(fathom(home.path()).args(monitor).args(["--json", device.name()]));
    let objects: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let names = objects.iter().filter_map(|object| object["owners"][0]["command"].as_str());
    assert_eq!(names.collect::<Vec<_>>(), [NAME; 2], "documents keep the name as it is");
    assert_eq!(orders(&ended.stdout), [""; 0]);

    // At a terminal, where it redraws its table.
    let line = format!("{} {} {}", fathom_path().display(), monitor.join(" "), device.name());
    let mut terminal = Command::new("script");
    terminal.args(["-q", "-e", "-c", &line, "/dev/null"]).env("HOME", home.path()).env("TERM", "xterm");
    let ended = run(&mut terminal);
    ended.assert_code(0).assert_shown(&[SHOWN, "\x1b[J", "\x1b[1m"]);
    assert_eq!(orders(&ended.stdout), [""; 0]);
}
