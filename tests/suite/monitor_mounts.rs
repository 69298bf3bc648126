//! Mounts that `fathom monitor --trace` needs, and a check that it does not change them.

use std::process::Command;

use fathom_tests::{LoopDevice, fathom_path, loading, need, run, scratch};

/// Traces one interval. All mounts are private to the script, so concurrent tests are not affected.
const TRACED: &str = r#"set -e
umount --lazy --all --types tracefs,debugfs
$PREPARE
cat /proc/self/mountinfo >before
"$FATHOM" monitor --json --trace --interval=50ms --count=1 "$DEVICE"
cat /proc/self/mountinfo >after"#;

fn requests_are_traced_after(prepare: &str, has_tracefs: bool) {
    let _loading = loading();
    let device = LoopDevice::new(16 << 20);
    let home = scratch();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation=private", "sh", "-c", TRACED]);
    command.env("PREPARE", prepare).env("FATHOM", fathom_path()).env("DEVICE", device.name());
    let ended = run(command.env("HOME", home.path()).current_dir(home.path()));
    ended.assert_code(0);
    let seen = ended.document();
    assert!(seen["requests"].is_object(), "{ended}");
    // Other mounts are left out: that of another test disappears here too when its directory is removed.
    let [before, after] = ["before", "after"].map(|name| {
        let mounted = std::fs::read_to_string(home.path().join(name));
        let mounted = mounted.expect("the script has written what is mounted");
        let is_traced = |line: &&str| line.contains(" - tracefs ") || line.contains(" - debugfs ");
        mounted.lines().filter(is_traced).collect::<Vec<_>>().join("\n")
    });
    assert_eq!(before.contains(" - tracefs "), has_tracefs, "{before}");
    assert_eq!(before, after);
}

#[test]
fn requests_are_traced_without_a_mounted_trace_file_system() {
    need!(root, tool "losetup", tool "unshare", tool "mount", path "/sys/kernel/tracing");
    requests_are_traced_after("", false);
}

#[test]
fn requests_are_traced_with_a_mounted_trace_file_system() {
    need!(root, tool "losetup", tool "unshare", tool "mount", path "/sys/kernel/tracing");
    requests_are_traced_after("mount -t tracefs tracefs /sys/kernel/tracing", true);
}

/// The kernel mounts a trace file system in debugfs at the first access to the directory `tracing`.
#[test]
fn requests_are_traced_beside_debugfs_without_mounting_anything_in_it() {
    need!(root, tool "losetup", tool "unshare", tool "mount", path "/sys/kernel/debug");
    requests_are_traced_after("mount -t debugfs debugfs /sys/kernel/debug", false);
}
