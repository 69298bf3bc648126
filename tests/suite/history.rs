//! Trends over runs on a device whose cap changes.

use std::path::Path;

use fathom_tests::{
    Cap, LoopDevice, MIB, Throttle, fathom, fathom_under, measuring_capped, need, run, scratch,
};
use serde_json::Value;

use crate::ours::{filename, steadily};

/// Runs before the cap changes, and after it.
const RUNS: usize = 8;

/// One run of random reads, kept in the history of `home`.
fn keep(throttle: &Throttle, device: &Path, home: &Path) {
    let mut command = fathom_under(throttle, home);
    command
        .args(["fio", "--keep", "--name=rand-read", "--rw=randread", "--bs=4k", "--direct=1", "--iodepth=8"]);
    command.args(["--ioengine=libaio", "--time_based", "--runtime=1"]).arg(filename(device));
    run(&mut command).assert_code(0);
}

fn trend(home: &Path) -> Value {
    let ended = run(fathom(home).args(["history", "trend", "fio.read.iops", "--by", "device", "--json"]));
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
        throttle.set(&Cap::iops(800));
        for _ in 0..RUNS {
            keep(&throttle, device.path(), home.path());
        }
        let changed = trend(home.path());
        // Another is found by chance in one of twenty trends.
        let is_it = |change: &Value| {
            let place = change["first_after"].as_u64().unwrap_or(0);
            let ratio = change["ratio"]["value"].as_f64().unwrap_or(0.0);
            place.abs_diff(RUNS as u64 + 1) <= 2 && (0.77..0.83).contains(&ratio)
        };
        match changed["changes"].as_array().is_some_and(|changes| changes.iter().any(is_it)) {
            true => Ok(()),
            false => Err(format!("after the change: {changed:#}")),
        }
    });
}
