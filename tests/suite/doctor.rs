//! `fathom doctor` on a device with known conditions: limits of a control group, and I/O of others.

use std::process::{Command, Stdio};

use fathom_tests::{
    Cap, LoopDevice, Program, Throttle, fathom, fathom_under, loading, need, run, scratch, wait_for,
};
use serde_json::Value;

use crate::ours::filename;

/// The check `id` of `doctor` on `device`, by a command that has no arguments yet.
fn check(command: &mut Command, device: &LoopDevice, id: &str) -> Value {
    let ended = run(command.args(["doctor", "--json"]).arg(device.path()));
    let document = ended.document();
    let checks = document["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["id"] == id).expect("the check").clone()
}

#[test]
fn limits_of_the_group_and_io_of_others_are_problems() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let (home, device) = (scratch(), LoopDevice::in_memory(64 << 20));
    let throttle = Throttle::new(device.path(), &Cap::iops(500));
    let limited = check(&mut fathom_under(&throttle, home.path()), &device, "io-limits");
    assert_eq!(limited["status"], "problem", "{limited}");
    let wanted = format!("reads on {} to 500 IOPS", device.name());
    assert!(limited["result"].as_str().is_some_and(|text| text.contains(&wanted)), "{limited}");
    let outside = check(&mut fathom(home.path()), &device, "io-limits");
    assert_eq!(outside["status"], "ok", "{outside}");

    let quiet = check(&mut fathom(home.path()), &device, "background-io");
    assert_eq!(quiet["status"], "ok", "{quiet}");
    let mut load = fathom(home.path());
    load.args(["fio", "--name=a", "--rw=randread", "--bs=64k", "--direct=1", "--ioengine=psync"]);
    load.args(["--rate_iops=5000", "--time_based", "--runtime=60", "--eta=never"])
        .arg(filename(device.path()));
    let _load = Program::start(load.stdout(Stdio::null()));
    let reads = || device.stat()[0];
    let before = reads();
    assert!(wait_for(std::time::Duration::from_secs(10), || reads() > before + 1000), "the load has begun");
    let loaded = check(&mut fathom(home.path()), &device, "background-io");
    assert_eq!(
        (&loaded["status"], &loaded["finding"]),
        (&"problem".into(), &"foreign-io".into()),
        "{loaded}"
    );
    let name = loaded["result"].as_str().is_some_and(|text| text.contains(device.name()));
    assert!(name && loaded["remedy"].is_string(), "{loaded}");
}
