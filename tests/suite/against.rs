//! Comparisons and precision on capped devices: different limits are distinguished, equal ones are not, and a precise test ends early
//! with the cap in its interval.

use std::path::Path;

use fathom_tests::{
    Cap, LoopDevice, MIB, Throttle, document, fathom_under, is_long, measuring_capped, need, scratch,
};
use serde_json::Value;

use crate::ours::steadily;

const CAP: u64 = 1000;

/// The document of `bench` with `arguments` under `throttle`, and of `after` in the same history.
fn documents(throttle: &Throttle, arguments: &[&str], after: &[&str]) -> [Value; 2] {
    let home = scratch();
    let run =
        |arguments: &[&str]| document(fathom_under(throttle, home.path()).args(arguments).arg("--json"));
    let measured = run(arguments);
    [measured, if after.is_empty() { Value::Null } else { run(after) }]
}

fn name(device: &LoopDevice) -> &str {
    device.path().to_str().expect("loop devices have plain names")
}

/// Compares a device of [`CAP`] reads a second with one of `other`, and checks that the stored runs get the same verdict.
fn compared(other: u64) -> Result<Value, String> {
    let devices = [LoopDevice::in_memory(64 * MIB), LoopDevice::in_memory(64 * MIB)];
    let throttle =
        Throttle::new(devices[0].path(), &Cap::iops(CAP)).with(devices[1].path(), &Cap::iops(other));
    let [a, b] = devices.each_ref().map(name);
    let mut arguments = vec!["bench", a, "--against", b, "--quick", "--only", "rand-read"];
    arguments.extend(if is_long() { ["--runtime=6s"].as_slice() } else { &["--runtime=3s", "--budget=30s"] });
    let again = ["compare", "tag:against-1-a", "tag:against-1-b"];
    let [measured, again] = documents(&throttle, &arguments, &again);
    let verdict = |document: &Value| document["interleaved"]["verdicts"][0].clone();
    assert_eq!(verdict(&measured), verdict(&again), "two commands judge the same runs");
    Ok(verdict(&measured))
}

#[test]
fn a_higher_limit_is_told_apart_and_an_equal_one_is_not() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    steadily(|| {
        let verdicts = std::thread::scope(|scope| {
            // A difference of 5 % needs the time of ten pairs.
            let higher = if is_long() { CAP * 105 / 100 } else { CAP * 120 / 100 };
            let runs = [higher, CAP].map(|other| scope.spawn(move || compared(other)));
            runs.map(|run| run.join().expect("the comparison ran"))
        });
        let [apart, same] = verdicts;
        let (apart, same) = (apart?, same?);
        if apart["verdict"] != "better" {
            return Err(format!("not told apart: {apart:#}"));
        }
        let is_alike = same["verdict"] == "equivalent" || same["verdict"] == "inconclusive";
        if is_alike { Ok(()) } else { Err(format!("told apart: {same:#}")) }
    });
}

/// The test of `bench --precision` on a device with this cap.
fn precise(device: &Path, test: &str, cap: &Cap) -> Value {
    let throttle = Throttle::new(device, cap);
    let device = device.to_str().expect("loop devices have plain names");
    let arguments = ["bench", device, "--precision", "2%", "--only", test];
    documents(&throttle, &arguments, &[])[0]["tests"][0].clone()
}

#[test]
fn a_precise_test_of_a_capped_device_ends_early_with_the_cap_in_its_interval() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(64 * MIB);
    steadily(|| {
        for (test, cap, expected) in [
            ("rand-read", Cap::iops(CAP), CAP as f64),
            ("seq-read", Cap::bytes_per_second(40 * MIB), 40.0),
            ("rand-read-jobs", Cap::iops(CAP), CAP as f64),
        ] {
            let found = precise(device.path(), test, &cap);
            let number = |pointer: &str| found.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
            let (iops, half) = (number("/total/iops"), number("/precision/reached_fraction"));
            let seconds = number("/measured_ns") / 1e9;
            if found["precision"]["reached"] != true || half > 0.02 || seconds > 60.0 {
                return Err(format!("{test}: {:#} in {seconds} s", found["precision"]));
            }
            if (iops - expected).abs() > half * iops {
                return Err(format!("{test}: {iops} ± {half} does not hold {expected}"));
            }
        }
        Ok(())
    });
}
