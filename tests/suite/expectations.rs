//! Expectations of a real device whose limit is known: above it they are missed, at and below it they are met. They
//! lie a quarter of the limit away from it, so that a second in which the host stood still decides nothing.

use fathom_tests::{
    Cap, LoopDevice, MIB, Throttle, fathom_under, loading, measuring_capped, need, run, scratch,
};
use serde_json::Value;

use crate::ours::{steadily, within};

const CAP: u64 = 400;
/// The exit of a bench of random reads, and of each expectation its verdict and measured value.
fn judged(
    throttle: &Throttle,
    (device, test): (&LoopDevice, &str),
    expectations: &[&str],
) -> (i32, Vec<(String, f64)>) {
    let home = scratch();
    let mut command = fathom_under(throttle, home.path());
    command.args(["bench", "--only", test, "--runtime", "6s", "--json"]).arg(device.path());
    for expectation in expectations {
        command.args(["--expect", expectation]);
    }
    let output = command.output().expect("the program runs");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let all = document["expectations"].as_array().expect("expectations");
    let of = |one: &Value| {
        let verdict = one["verdict"].as_str().expect("a verdict").to_owned();
        let reason = one["reason"].as_str().map(|reason| format!(": {reason}")).unwrap_or_default();
        let verdict = if verdict == "inconclusive" { verdict + &reason } else { verdict };
        (verdict, one["measured"].as_f64().expect("a figure"))
    };
    // The stored run gives the same verdicts.
    let mut again = fathom_under(throttle, home.path());
    let kept = fathom_tests::document(again.args(["history", "show", "--json"]));
    assert_eq!(kept["expectations"], document["expectations"]);
    (output.status.code().expect("it ended by itself"), all.iter().map(of).collect())
}

fn check(found: &(i32, Vec<(String, f64)>), cap: u64, exit: i32, verdicts: &[&str]) -> Result<(), String> {
    let told: Vec<&str> = found.1.iter().map(|(verdict, _)| verdict.as_str()).collect();
    if found.0 != exit || told != verdicts {
        return Err(format!("exit {} and {told:?} instead of {exit} and {verdicts:?}", found.0));
    }
    found.1.iter().try_for_each(|(_, measured)| within("measured", *measured, cap as f64, 4.0))
}

#[test]
fn a_capped_device_misses_expectations_above_its_cap() {
    need!(root, limits, tool "losetup");
    let _capped = measuring_capped();
    let device = LoopDevice::written(256 << 20);
    let throttle = Throttle::new(device.path(), &Cap::iops(CAP));
    steadily(|| {
        let expectations =
            ["rand-read.iops>=600", "rand-read.iops>=400+-25%", "custom?iops=800", "custom?iops=300"];
        let above = judged(&throttle, (&device, "rand-read"), &expectations);
        check(&above, CAP, 3, &["missed", "met", "missed", "met"])?;
        let below = judged(&throttle, (&device, "rand-read"), &["rand-read.iops>=300", "custom?iops=300"]);
        check(&below, CAP, 0, &["met", "met"])
    });
    // Bandwidth, where requests of 4k say nothing of it.
    throttle.set(&Cap::bytes_per_second(20 * MIB));
    steadily(|| {
        let expectations = ["seq-read.bytes_per_second>=30MiB", "seq-read.bytes_per_second>=20MiB/s±25%"];
        let found = judged(&throttle, (&device, "seq-read"), &expectations);
        check(&found, 20 * MIB, 3, &["missed", "met"])
    });
}

#[test]
fn a_device_in_memory_misses_expectations_and_meets_none() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(256 << 20);
    let throttle = Throttle::new(device.path(), &Cap::iops(CAP));
    steadily(|| {
        let expectations = ["rand-read.iops>=600", "rand-read.iops>=300"];
        let (exit, found) = judged(&throttle, (&device, "rand-read"), &expectations);
        let is_doubted =
            found[1].0.starts_with("inconclusive: no storage device was measured (memory-backed)");
        if exit == 3 && found[0].0 == "missed" && is_doubted {
            Ok(())
        } else {
            Err(format!("{exit}: {found:?}"))
        }
    });
}

#[test]
fn invalid_expectations_end_before_anything_is_measured() {
    let _loading = loading();
    let directory = scratch();
    let refused = |more: &[&str], told: &[&str]| {
        let mut command = fathom_tests::fathom(directory.path());
        let ended = run(command.current_dir(directory.path()).args(["bench", "--size", "16m"]).args(more));
        ended.assert_code(2).assert_told(told);
    };
    refused(
        &["--expect", "rand-raed.iops>=5000"],
        &["there is no test 'rand-raed'", "lat-read, lat-write, commit"],
    );
    refused(&["--expect", "rand-read.iops>=5 apples"], &["'5 apples' is not a number"]);
    refused(&["--expect", ""], &["neither a comparison nor a volume type"]);
    refused(&["--expect", "gp2"], &["unknown volume type 'gp2'", "aws-gp2"]);
    refused(&["--expect-file", "nothing.toml"], &["cannot read the expectation file nothing.toml"]);
    refused(&["--expect", "rand-read.iops>=1", "--tolerance", "2"], &["is not a percentage"]);
}
