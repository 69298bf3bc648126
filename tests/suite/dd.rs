//! The claims of docs/src/explanation/why-dd-lies.md: dd's figure on volumes with known limits, compared with bench's.
//!
//! The volumes are those of the page, smaller; every test checks a relation, none a rate.

use std::path::Path;
use std::process::Command;

use fathom_tests::{
    LoopDevice, Mount, NbdDisk, document, fathom, measuring_alone, measuring_capped, must_run, need, number,
    scratch,
};
use serde_json::Value;

use crate::ours::steadily;

const VOLUME: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/dd-volume.c");

/// A file system on a volume of the page; taken down from the top.
struct Mounted {
    mount: Mount,
    _device: LoopDevice,
    _disk: NbdDisk,
}

impl Mounted {
    fn new(parameters: &[&str]) -> Self {
        let disk = NbdDisk::compiled(Path::new(VOLUME), &[&["size=512M"], parameters].concat());
        let device = LoopDevice::over(&disk.path());
        must_run(Command::new("mkfs.ext4").args(["-q", "-E", "nodiscard"]).arg(device.path()));
        Mounted { mount: Mount::of(device.path(), &[]), _device: device, _disk: disk }
    }

    /// Bytes per second of 32 MiB by the page's command, as dd prints them; the file is removed afterwards.
    fn dd(&self) -> f64 {
        let file = self.mount.join("test");
        let mut command = Command::new("dd");
        command.args(["if=/dev/zero", "bs=64k", "count=512", "conv=fdatasync"]).env("LC_ALL", "C");
        let output = command.arg(format!("of={}", file.display())).output().expect("dd runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        std::fs::remove_file(&file).expect("dd has made its file");
        let seconds: Option<f64> =
            said.split("copied, ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        f64::from(32 << 20) / seconds.unwrap_or_else(|| panic!("no time in {said}"))
    }

    fn bench(&self, words: &str) -> Value {
        let home = scratch();
        let mut command = fathom(home.path());
        command
            .args(["bench", "--json", "--no-history", "--quick"])
            .args(words.split(' '))
            .arg(self.mount.path());
        document(&mut command)
    }
}

fn holds(what: &str, is_true: bool, figures: [f64; 2]) -> Result<(), String> {
    if is_true { Ok(()) } else { Err(format!("{what}: {figures:?}")) }
}

#[test]
fn dd_does_not_measure_an_iops_limit() {
    need!(root, tool "losetup", tool "nbdkit", tool "nbdfuse", tool "fusermount3", tool "mkfs.ext4", path "/usr/include/nbdkit-plugin.h");
    let _capped = measuring_capped();
    let volumes = ["iops=150", "iops=1200"].map(|iops| Mounted::new(&[iops, "bandwidth=50000000"]));
    steadily(|| {
        let rates = volumes.each_ref().map(Mounted::dd);
        holds("dd", (0.6..1.7).contains(&(rates[1] / rates[0])), rates)?;
        let iops = volumes.each_ref().map(|volume| {
            number(&volume.bench("--only=rand-read --runtime=700ms --size=16m"), "/tests/0/read/iops")
        });
        holds("random reads", iops[1] > 3.0 * iops[0], iops)
    });
}

#[test]
fn dd_in_a_cache_does_not_measure_the_disk() {
    need!(root, tool "losetup", tool "nbdkit", tool "nbdfuse", tool "fusermount3", tool "mkfs.ext4", path "/usr/include/nbdkit-plugin.h");
    let _alone = measuring_alone();
    let volume = Mounted::new(&["cache=40M"]);
    steadily(|| {
        let rate = volume.dd();
        let beyond = volume.bench("--only=rand-read --runtime=1s --size=112m");
        let bytes = number(&beyond, "/tests/0/read/bytes_per_second");
        holds("dd and random reads, bytes a second", rate > 10.0 * bytes, [rate, bytes])?;
        // As dd: what fits into the cache says nothing of the disk.
        let within =
            number(&volume.bench("--only=rand-read --runtime=700ms --size=16m"), "/tests/0/read/iops");
        let beyond = number(&beyond, "/tests/0/read/iops");
        holds("random reads within the cache and beyond", within > 3.0 * beyond, [within, beyond])
    });
}

#[test]
fn dd_does_not_measure_commit_latency() {
    need!(root, tool "losetup", tool "nbdkit", tool "nbdfuse", tool "fusermount3", tool "mkfs.ext4", path "/usr/include/nbdkit-plugin.h");
    let _capped = measuring_capped();
    let volumes = ["flush=0", "flush=20000"].map(|flush| Mounted::new(&[flush, "bandwidth=50000000"]));
    steadily(|| {
        let rates = volumes.each_ref().map(Mounted::dd);
        holds("dd", (0.5..1.5).contains(&(rates[1] / rates[0])), rates)?;
        let commits = volumes.each_ref().map(|volume| {
            number(&volume.bench("--only=commit --runtime=700ms --size=16m"), "/tests/0/write/iops")
        });
        holds("commits", commits[1] < 50.0 && commits[0] > 4.0 * commits[1], commits)
    });
}

#[test]
fn dd_ends_before_burst_credits_are_exhausted() {
    need!(root, tool "losetup", tool "nbdkit", tool "nbdfuse", tool "fusermount3", tool "mkfs.ext4", path "/usr/include/nbdkit-plugin.h");
    let _capped = measuring_capped();
    steadily(|| {
        let volume = Mounted::new(&["bandwidth=10000000", "credit=70000000", "burst=50000000"]);
        let rate = volume.dd();
        // Its test file uses the remaining burst credits.
        let document = volume.bench("--only=seq-write-jobs --runtime=1500ms --size=64m");
        let lasts = number(&document, "/tests/0/write/bytes_per_second");
        holds("dd and what lasts, bytes a second", rate > 2.0 * lasts, [rate, lasts])
    });
}
