//! `bench` on several targets: two loop devices over one limited disk share its limit, two over a disk each do not.

use fathom_tests::{LoopDevice, MIB, NbdDisk, document, loading, measuring_capped, need};
use serde_json::Value;

use crate::ours::{Ours, steadily, within};

/// A disk that gives 4 MiB/s, which are 1024 reads of 4 KiB a second.
fn disk() -> NbdDisk {
    NbdDisk::new(64 * MIB, &["rate"], &["rate=32M", "burstiness=0.1"])
}

/// The results of `bench` for random reads on both devices.
fn measured(devices: &[LoopDevice; 2]) -> Value {
    let ours = Ours::new();
    let arguments = ["bench", "--quick", "--only", "rand-read", "--runtime", "6s", "--json"];
    let document = document(ours.command().args(arguments).args(devices.each_ref().map(LoopDevice::path)));
    let ids: Vec<&str> =
        document["tests"].as_array().expect("tests").iter().filter_map(|test| test["id"].as_str()).collect();
    assert_eq!(ids, ["rand-read-1", "rand-read-2", "rand-read-together"]);
    assert_eq!(document["conclusions"], Value::Array(Vec::new()), "of two volumes as if they were one");
    let found = document["together"].as_array().expect("a verdict");
    assert_eq!(found.len(), 1);
    found[0].clone()
}

fn check(found: &Value, verdict: &str, together: f64) -> Result<(), String> {
    if found["verdict"] != verdict {
        return Err(format!("not {verdict}: {found:#}"));
    }
    for apart in found["iops_apart"].as_array().expect("rates") {
        within("apart", apart.as_f64().expect("a rate"), 1024.0, 6.0)?;
    }
    within("together", found["iops_together"].as_f64().expect("a rate"), together, 6.0)
}

#[test]
fn shared_limits_are_distinguished_from_separate_ones() {
    need!(root, tool "losetup", tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _capped = measuring_capped();
    let (one, other, third) = (disk(), disk(), disk());
    let shared = [&one, &one].map(|disk| LoopDevice::over(&disk.path()));
    let apart = [&other, &third].map(|disk| LoopDevice::over(&disk.path()));
    steadily(|| {
        // Both concurrently: each bench uses a tenth of a CPU.
        let found = std::thread::scope(|scope| {
            let runs = [&shared, &apart].map(|devices| scope.spawn(|| measured(devices)));
            runs.map(|run| run.join().expect("the bench ran"))
        });
        check(&found[0], "shares-limit", 1024.0)?;
        check(&found[1], "independent", 2048.0)
    });
}

#[test]
fn a_single_target_is_refused() {
    let _loading = loading();
    let (ours, directory) = (Ours::new(), fathom_tests::scratch());
    let here = directory.path();
    let bench = |more: &[&str]| {
        let mut command = ours.command();
        fathom_tests::run(command.current_dir(here).args(["bench", "--dry-run"]).args(more))
    };
    std::fs::create_dir(here.join("a")).expect("the scratch directory is ours");
    bench(&["a", "a/../a"]).assert_code(1).assert_told(&["is given twice", "use different targets"]);
    bench(&["a", ".", "--destroy-data=/dev/null"]).assert_code(1).assert_told(&["is not a target"]);
    let planned = bench(&["a", ".", "--size", "16m", "--show-fio"]);
    planned.assert_code(0).assert_shown(&[
        "Standard assessment: 6 tests",
        "Writes a 32.0 MiB test file",
        "seq-read-together",
        " --name=rand-read-together-2 ",
    ]);
}
