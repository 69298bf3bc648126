//! `fathom surface` on devices whose rates, holes and faults are known.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Duration;

use fathom_tests::{
    Cap, LoopDevice, MIB, NbdDisk, Program, Throttle, fathom, fathom_under, kept_tests, loading,
    measuring_capped, need, newest_record, number, run, scratch, wait_for,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::ours::{steadily, within};

/// A row of the file benchmark.
fn file_row<'a>(document: &'a Value, id: &str) -> &'a Value {
    let rows = document["file_benchmark"].as_array().expect("rows");
    rows.iter().find(|row| row["id"] == id).expect("a row")
}

fn points(document: &Value) -> &Vec<Value> {
    document["points"].as_array().expect("points")
}

fn ids(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array().expect("findings");
    findings.iter().filter_map(|finding| finding["id"].as_str()).collect()
}

fn states(document: &Value, state: &str) -> usize {
    points(document).iter().filter(|point| point["state"] == state).count()
}

#[test]
fn the_rates_of_a_capped_device_equal_the_cap() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(128 * MIB);
    let throttle = Throttle::new(device.path(), &Cap::bytes_per_second(40 * MIB));
    steadily(|| {
        let home = scratch();
        let mut command = fathom_under(&throttle, home.path());
        command.args(["surface", "--json", "--no-history", "--budget=9", "--points=8"]).arg(device.path());
        let ended = run(&mut command);
        ended.assert_code(0);
        // Progress is for terminals; stalls of a second are reported.
        if !ended.stderr.is_empty() {
            return Err(ended.stderr);
        }
        let document = ended.document();
        assert_eq!((&document["schema"], points(&document).len()), (&"fathom.surface/1".into(), 8));
        let cap = (40 * MIB) as f64;
        // A slice's allowance may be spent immediately, so single points scatter.
        within("mean", number(&document, "/transfer_rate/weighted_mean"), cap, 12.0)?;
        within("median", number(&document, "/transfer_rate/median"), cap, 12.0)?;
        let (least, most) =
            (number(&document, "/transfer_rate/min"), number(&document, "/transfer_rate/max"));
        assert!(least <= number(&document, "/transfer_rate/mean") && most >= least);
        for point in points(&document) {
            let offset = point["offset_bytes"].as_u64().expect("an offset");
            assert!(offset % (16 * MIB) == 0 && point["state"] == "measured", "{point:#}");
            let rate = number(point, "/bytes") * 1e9 / number(point, "/measured_ns");
            within("rate", number(point, "/bytes_per_second"), rate, 0.001)?;
        }
        assert!(number(&document, "/access_lat_ns/samples") >= 100.0);
        assert!(
            number(&document, "/burst_rate/bytes_per_second") > 0.0
                && number(&document, "/saturated_rate/mean") > 0.0
        );
        let cpu = number(&document, "/cpu_fraction");
        assert!(cpu > 0.0 && cpu < 1.0, "{cpu}");
        assert_eq!(document["file_benchmark"], Value::Array(Vec::new()));
        Ok(())
    });
}

/// A limit that falls on the way, as when a burst credit is spent, is seen in time and not in place.
#[test]
fn a_falling_limit_is_distinguished_from_a_slow_region() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(256 * MIB);
    steadily(|| {
        let throttle = Throttle::new(device.path(), &Cap::bytes_per_second(40 * MIB));
        let home = scratch();
        let mut command = fathom_under(&throttle, home.path());
        command.args(["surface", "--json", "--no-history", "--budget=10", "--points=24", "--only=transfer"]);
        let mut program = Program::start(command.arg(device.path()));
        assert!(
            !wait_for(Duration::from_millis(1_500), || program.has_ended()),
            "over before the limit fell"
        );
        throttle.set(&Cap::bytes_per_second(8 * MIB));
        let ended = program.finish();
        ended.assert_code(0);
        let document = ended.document();
        let found = ids(&document);
        // The slices of the limiter may make a third level of the change itself.
        let follows_time = found.contains(&"burst-suspected") || found.contains(&"rate-follows-time");
        let is_told = follows_time && !found.contains(&"rate-follows-place");
        if is_told { Ok(()) } else { Err(format!("{found:?} of {:#}", document["points"])) }
    });
}

#[test]
fn unwritten_regions_have_no_rate() {
    let _loading = loading();
    let home = scratch();
    let path = home.path().join("sparse");
    let mut file = File::create_new(&path).expect("the scratch directory is new and ours");
    file.set_len(64 * MIB).expect("a file of 64 MiB");
    let chunk: Vec<u8> = (0..MIB as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for _ in 0..32 {
        file.write_all(&chunk).expect("room for 32 MiB");
    }
    file.seek(SeekFrom::Start(0)).expect("a file can be sought in");
    file.sync_all().expect("a file can be synced");
    let ended = run(fathom(home.path())
        .args(["surface", "--json", "--no-history", "--budget=4", "--points=16", "--only=transfer,access"])
        .arg(&path));
    ended.assert_code(0);
    let document = ended.document();
    assert_eq!((states(&document, "unwritten"), states(&document, "measured")), (8, 8), "{document:#}");
    assert_eq!(document["transfer_rate"]["points"], 8);
    for point in points(&document) {
        let is_hole = point["offset_bytes"].as_u64() >= Some(32 * MIB);
        assert_eq!(point["state"] == "unwritten", is_hole, "{point:#}");
    }
    assert!(ids(&document).contains(&"unwritten"));
}

#[test]
fn a_scan_finds_all_unreadable_sectors() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let (home, device) = (scratch(), LoopDevice::in_memory(96 * MIB));
    let good = 95 * MIB + 3 * 512;
    device.truncate_backing(good);
    let ended = run(fathom(home.path()).args(["surface", "--scan", "--json"]).arg(device.path()));
    ended.assert_code(0);
    let document = ended.document();
    let scan = &document["scan"];
    assert_eq!(
        (&scan["scanned_bytes"], &scan["unreadable_bytes"]),
        (&(96 * MIB).into(), &(96 * MIB - good).into())
    );
    let unreadable = scan["unreadable"].as_array().expect("a list");
    assert_eq!(unreadable.len(), 1, "{scan:#}");
    let range = &unreadable[0];
    assert_eq!(
        (&range["offset_bytes"], &range["length_bytes"], &range["errno"], &range["is_exact"]),
        (&good.into(), &(96 * MIB - good).into(), &5.into(), &true.into())
    );
    assert_eq!(ids(&document)[0], "unreadable");
    // It is in the record, and shown again.
    let shown = run(fathom(home.path()).args(["history", "show", "--json"])).document();
    assert_eq!((&shown["scan"], &shown["run"]["id"]), (scan, &1.into()));
}

/// A device that stands still for some seconds in the middle.
#[test]
fn a_hang_is_survived_and_excluded_from_the_rates() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _loading = loading();
    let (home, disk) = (scratch(), NbdDisk::new(64 * MIB, &[], &[]));
    let mut command = fathom(home.path());
    command.args(["surface", "--json", "--budget=12", "--points=64", "--bs=4k", "--only=transfer,access"]);
    let mut program = Program::start(command.arg(disk.path()));
    let stored = || kept_tests(home.path()) >= 3;
    assert!(wait_for(Duration::from_secs(20), stored) && !program.has_ended(), "{}", program.stderr());
    disk.hang();
    wait_for(Duration::from_secs(4), || false);
    disk.resume();
    let ended = program.finish();
    ended.assert_code(0).assert_told(&["no I/O completed for"]);
    let document = ended.document();
    assert!(ids(&document).contains(&"stalled") || longest_stall(home.path()) > 2e9, "{document:#}");
    let longest = longest_stall(home.path());
    assert!((2e9..7e9).contains(&longest), "{longest}");
    for point in points(&document) {
        let is_stalled = point["state"] == "stalled";
        assert_eq!(
            point["bytes_per_second"].is_null(),
            is_stalled || point["state"] == "failed",
            "{point:#}"
        );
        assert_ne!(point["bytes_per_second"], 0.0, "{point:#}");
    }
    assert!(states(&document, "measured") >= 50, "{document:#}");
}

/// The longest stall in the record of the newest run, ns.
fn longest_stall(home: &Path) -> f64 {
    let record = newest_record(home);
    let tests = record["tests"].as_array().expect("tests").iter();
    let jobs = tests.flat_map(|test| test["jobs"].as_array().into_iter().flatten());
    let stalls = jobs.flat_map(|job| job["stalls"].as_array().into_iter().flatten());
    stalls.filter_map(|stall| stall["length_ns"].as_f64()).fold(0.0, f64::max)
}

#[test]
fn a_surface_of_an_unresponsive_device_ends_after_a_signal() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let (home, device) = (scratch(), LoopDevice::in_memory(32 * MIB));
    let held = Throttle::new(device.path(), &Cap { read_bps: Some(64), ..Cap::default() });
    let mut program = Program::start(fathom_under(&held, home.path()).arg("surface").arg(device.path()));
    let opens = || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", program.pid().as_raw_nonzero()));
        let mut links =
            open.into_iter().flatten().flatten().filter_map(|entry| entry.path().read_link().ok());
        links.any(|path| path == device.path())
    };
    let begun = wait_for(Duration::from_secs(20), opens);
    assert!(begun && !wait_for(Duration::from_secs(2), || program.has_ended()), "{}", program.stderr());
    program.signal(Signal::INT);
    // Five seconds, and as many again for a machine that does much else.
    program.finish_within(Duration::from_secs(10)).assert_code(130);
    drop(held);
}

#[test]
fn a_directory_gets_the_file_benchmark_and_keeps_no_files() {
    let _loading = loading();
    let (home, directory) = (scratch(), scratch());
    let mut command = fathom(home.path());
    command.args(["surface", "--json", "--no-history", "--budget=7", "--size=32m", "--pattern=mixed"]);
    let ended = run(command.arg(directory.path()));
    ended.assert_code(0);
    let document = ended.document();
    for row in ["sequential", "single", "multi"] {
        for direction in ["read", "write"] {
            let row = file_row(&document, &format!("file-{row}-{direction}"));
            assert!(number(row, "/bytes_per_second") > 0.0, "{row:#}");
        }
    }
    assert_eq!(file_row(&document, "file-multi-read")["iodepth"], 32);
    let rows = document["file_benchmark"].as_array().expect("rows");
    assert_eq!(rows.iter().filter(|row| row["kind"] == "block").count(), 30);
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
}

#[test]
fn writing_needs_a_request_and_a_permit() {
    need!(root, tool "losetup");
    let _loading = loading();
    let (home, device) = (scratch(), LoopDevice::new(32 * MIB));
    let path = device.path().display().to_string();
    run(fathom(home.path()).args(["surface", "--write", &path]))
        .assert_code(1)
        .assert_told(&["--destroy-data=", "omit --write"]);
    let ended = run(fathom(home.path())
        .args(["surface", "--json", "--no-history", "--budget=4", "--only=transfer,file", &path]));
    ended.assert_code(0);
    let document = ended.document();
    let status = |id: &str| &file_row(&document, id)["status"];
    assert_eq!(
        (status("file-sequential-write"), status("file-sequential-read")),
        (&"skipped".into(), &"complete".into())
    );
    let bytes = || std::fs::read(device.path()).expect("the device can be read");
    assert!(bytes().iter().all(|byte| *byte == 0), "something was written");
    let destroy = format!("--destroy-data={path}");
    let arguments =
        ["surface", "--json", "--no-history", "--budget=3", "--only=transfer", "--write", &destroy, &path];
    let ended = run(fathom(home.path()).args(arguments));
    ended.assert_code(0);
    assert_eq!(points(&ended.document()).len(), states(&ended.document(), "measured"));
    assert!(bytes().iter().any(|byte| *byte != 0), "nothing was written");
    for wrong in
        ["--bs=1", "--bs=1000", "--order=up", "--points=0", "--only=all", "--budget=1", "--pattern=x"]
    {
        let ended = run(fathom(home.path()).args(["surface", wrong, &path]));
        ended.assert_code(if wrong == "--bs=1000" { 1 } else { 2 });
    }
    run(fathom(home.path()).args(["surface", "--scan", "--write", &path])).assert_code(2);
    run(fathom(home.path()).args(["surface", "--scan"]).arg(home.path()))
        .assert_told(&["block device or a file"]);
}
