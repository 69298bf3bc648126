//! Trends over runs on a device whose cap changes.

use std::path::Path;

use fathom_tests::{Cap, LoopDevice, Throttle, fathom, fathom_under, measuring_capped, need, run, scratch};
use serde_json::Value;

use crate::ours::steadily;

const MIB: u64 = 1 << 20;
/// Runs before the cap changes, and after it.
const RUNS: usize = 10;

/// One run of random reads, kept in the history of `home`.
fn keep(throttle: &Throttle, device: &Path, home: &Path) {
    let mut command = fathom_under(throttle, home);
    command.args(["bench", "--only=rand-read", "--runtime=2s", "--size=64m", "--json"]);
    run(command.arg(device)).assert_code(0);
}

fn trend(home: &Path) -> Value {
    let ended =
        run(fathom(home).args(["history", "trend", "rand-read.read.iops", "--by", "device", "--json"]));
    ended.assert_code(0);
    ended.document()["series"][0].clone()
}

#[test]
fn a_change_of_cap_is_found_within_two_runs_of_its_place() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(64 * MIB);
    steadily(|| {
        let home = scratch();
        let throttle = Throttle::new(device.path(), &Cap::iops(1000));
        for _ in 0..RUNS {
            keep(&throttle, device.path(), home.path());
        }
        let steady = trend(home.path());
        if steady["verdict"] != "no-change" {
            return Err(format!("before the change: {steady:#}"));
        }
        throttle.set(&Cap::iops(950));
        for _ in 0..RUNS {
            keep(&throttle, device.path(), home.path());
        }
        let changed = trend(home.path());
        let place = changed["changes"][0]["first_after"].as_u64().unwrap_or(0);
        let is_one = changed["changes"].as_array().is_some_and(|changes| changes.len() == 1);
        let ratio = changed["changes"][0]["ratio"]["value"].as_f64().unwrap_or(0.0);
        match is_one && place.abs_diff(RUNS as u64 + 1) <= 2 && (0.93..0.97).contains(&ratio) {
            true => Ok(()),
            false => Err(format!("after the change: {changed:#}")),
        }
    });
}
