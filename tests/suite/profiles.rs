//! The access patterns of `bench --profile`: fio takes their files, and a capped device is judged by what uses need.

use std::path::{Path, PathBuf};

use fathom_tests::{
    Cap, LoopDevice, Throttle, fathom_under, loading, measuring_capped, must_run, need, run, scratch,
};
use serde_json::Value;

use crate::ours::{Ours, steadily};

/// The job files in the source.
fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiles");
    let entries = std::fs::read_dir(&directory).expect("the profiles are beside the tests");
    entries.map(|entry| entry.expect("a directory that can be read").path()).collect()
}

#[test]
fn debians_fio_accepts_every_profile_unchanged() {
    need!(tool "fio");
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let listed = must_run(ours.command().args(["bench", "--profile", "list", "--json"]));
    let listed: Value = serde_json::from_str(&listed).expect("one document");
    let listed = listed["profiles"].as_array().expect("profiles");
    assert_eq!(listed.len(), files().len(), "a file in profiles/ that is not listed, or the other way round");
    for file in files() {
        let mut fio = std::process::Command::new("fio");
        let taken = run(fio.current_dir(directory.path()).arg("--parse-only").arg(&file));
        taken.assert_code(0);
        let said = must_run(ours.command().arg("fio").arg("--showcmd").arg(&file));
        let name = file.file_stem().and_then(|name| name.to_str()).expect("ASCII");
        assert!(said.contains(&format!("--name={name} ")), "{said}");
    }
}

#[test]
fn profiles_of_a_capped_device_are_checked_against_their_needs() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(64 << 20);
    let throttle = Throttle::new(device.path(), &Cap::iops(400));
    let home = scratch();
    let path = device.path().to_str().expect("ASCII").to_owned();
    let bench = |more: &[&str]| {
        let mut command = fathom_under(&throttle, home.path());
        let profiles = ["bench", "--profile", "oltp,web-server,streaming-read", "--runtime", "3s", "--json"];
        let document = must_run(command.args(profiles).args(more).arg(&path));
        serde_json::from_str::<Value>(&document).expect("one document")
    };
    let verdict = |document: &Value, purpose: &str| {
        let all = document["conclusions"].as_array().expect("conclusions");
        let found = all.iter().find(|conclusion| conclusion["use"] == purpose)?;
        Some(found["verdict"].as_str().expect("a word").to_owned())
    };

    let is_not_enough = |document: &Value, purpose: &str| {
        let verdict = verdict(document, purpose).expect("it ran");
        let is_so = ["marginal", "no"].contains(&verdict.as_str());
        if is_so { Ok(()) } else { Err(format!("{purpose}: {verdict}: {:#}", document["conclusions"])) }
    };

    steadily(|| {
        let reads = bench(&[]);
        assert_eq!(reads["tests"][0]["status"], "skipped", "a profile that writes, on a device");
        assert_eq!(verdict(&reads, "OLTP"), None);
        assert_eq!(reads["tests"][1]["needs"].as_array().map(Vec::len), Some(4));
        // 400 reads a second where 500 are wanted, in slices of 100 ms; 400 MiB/s where 113 are.
        is_not_enough(&reads, "web server")?;
        // It would be enough if the device were no memory.
        let conclusions = reads["conclusions"].as_array().expect("conclusions");
        let streaming = conclusions.iter().find(|conclusion| conclusion["use"] == "streaming read");
        let streaming = streaming.expect("it ran");
        let is_doubted = streaming["verdict"] == "inconclusive"
            && streaming["reason"]
                .as_str()
                .is_some_and(|reason| reason.ends_with("because of memory-backed"));
        if is_doubted { Ok(()) } else { Err(format!("{streaming:#}")) }
    });
    steadily(|| {
        let all = bench(&[&format!("--destroy-data={path}")]);
        let sizes = all["tests"][0]["fio"].as_str().expect("a command");
        assert!(sizes.contains("--bssplit=4k/20:8k/60:16k/20"), "{sizes}");
        // Depth 4 at 400 a second, in slices of 100 ms: p99 is far above 5 ms.
        is_not_enough(&all, "OLTP")
    });
}
