//! The access patterns of `bench --profile`: fio takes their files, and a capped device is judged by the needs of uses.

use std::path::{Path, PathBuf};

use fathom_tests::{
    Cap, LoopDevice, Throttle, document, fathom_under, loading, measuring_capped, must_run, need, run,
    scratch,
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
    let listed = document(ours.command().args(["bench", "--profile", "list", "--json"]));
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
    let throttle = Throttle::new(device.path(), &Cap::iops(60));
    let home = scratch();
    let path = device.path().to_str().expect("ASCII").to_owned();
    let bench = |more: &[&str]| {
        let mut command = fathom_under(&throttle, home.path());
        let profiles = [
            "bench",
            "--profile",
            "oltp,web-server,streaming-read",
            "--runtime",
            "4s",
            "--seed",
            "1",
            "--json",
        ];
        document(command.args(profiles).args(more).arg(&path))
    };
    let is = |document: &Value, id: &str, verdict: &str, reason: &str| {
        let all = document["conclusions"].as_array().expect("conclusions");
        let found = all.iter().find(|conclusion| conclusion["id"] == id).expect("every use is listed");
        let is_so =
            found["verdict"] == verdict && found["reason"].as_str().is_some_and(|why| why.contains(reason));
        if is_so { Ok(()) } else { Err(format!("{id} is not {verdict} because of {reason}: {found:#}")) }
    };

    steadily(|| {
        let reads = bench(&[]);
        assert_eq!(reads["tests"][0]["status"], "skipped", "a profile that writes, on a device");
        is(&reads, "etcd", "inconclusive", "commits not measured")?;
        // 60 reads a second where 100 are needed.
        is(&reads, "web-server", "no", "(needs >= 100 IOPS)")?;
        // It would be enough for a small installation if the device were no memory.
        is(&reads, "streaming-read", "inconclusive", "(memory-backed)")
    });
    steadily(|| {
        let all = bench(&[&format!("--destroy-data={path}")]);
        let sizes = all["tests"][0]["fio"].as_str().expect("a command");
        assert!(sizes.contains("--bssplit=4k/20:8k/60:16k/20"), "{sizes}");
        // The queue of four is nearly too short to disprove a small installation; what memory shows disproves nothing.
        is(&all, "oltp", "no", "(needs").or_else(|_| is(&all, "oltp", "inconclusive", "(memory-backed)"))
    });
}
