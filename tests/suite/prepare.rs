//! `fathom prepare` on devices and files: every block is accessed, nothing is written without a permit, a killed run is
//! resumed; and a steady state is distinguished from a rate that is about to fall.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    Cap, LoopDevice, LoopOptions, MIB, Mount, Program, Throttle, fathom, fathom_path, fathom_under,
    kept_runs, kept_tests, loading, measuring_capped, need, number, run, scratch, wait_for, with_environment,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::ours::{steadily, within};

fn destroying(device: &LoopDevice) -> String {
    format!("--destroy-data={}", device.path().display())
}

/// The document of `fathom prepare` on `device`, which must end with `code`.
fn prepared(device: &LoopDevice, arguments: &[&str], code: i32) -> Value {
    let home = scratch();
    let mut command = fathom(home.path());
    command.args(["prepare", "--json", "--no-history"]).args(arguments).arg(device.path());
    let ended = run(&mut command);
    ended.assert_code(code);
    assert_eq!(ended.stderr, "", "progress is for terminals");
    ended.document()
}

fn stage<'a>(document: &'a Value, name: &str) -> &'a Value {
    let stages = document["stages"].as_array().expect("stages");
    stages.iter().find(|stage| stage["stage"] == name).unwrap_or_else(|| panic!("no {name} in {document:#}"))
}

/// Sectors read and written, by the kernel's count.
fn sectors(device: &LoopDevice) -> (u64, u64) {
    let stat = device.stat();
    (stat[2], stat[6])
}

/// Sectors with distinct contents.
fn different_sectors(content: &[u8]) -> usize {
    let held = content.chunks(512).filter(|sector| sector.iter().any(|byte| *byte != 0));
    held.collect::<HashSet<_>>().len()
}

#[test]
fn every_block_is_written_read_and_given_back() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    // Neither whole pieces nor whole blocks.
    let size = 70 * MIB + 3 * 512;
    let device =
        LoopDevice::with(&LoopOptions { in_memory: true, direct_io: false, ..LoopOptions::of_size(size) });
    let destroy = destroying(&device);
    let before = sectors(&device);
    let document = prepared(&device, &[&destroy], 0);
    assert_eq!(document["schema"], "fathom.prepare/1");
    let fill = stage(&document, "fill");
    assert_eq!((&fill["complete"], &fill["errors"]), (&true.into(), &0.into()));
    for key in ["/covered_bytes", "/moved_bytes"] {
        assert_eq!(number(fill, key), size as f64, "{key}");
    }
    assert_eq!(sectors(&device).1 - before.1, size / 512);
    let content = std::fs::read(device.path()).expect("the device can be read");
    assert_eq!(different_sectors(&content), (size / 512) as usize, "sectors that are zero or alike");

    let before = sectors(&device);
    let document = prepared(&device, &[], 0);
    assert_eq!(number(stage(&document, "touch"), "/covered_bytes"), size as f64);
    let after = sectors(&device);
    assert_eq!((after.0 - before.0, after.1 - before.1), (size / 512, 0));

    prepared(&device, &["--trim", &destroy], 0);
    let backing = std::fs::metadata(device.backing()).expect("it is ours");
    assert!(backing.blocks() * 512 < MIB, "{} bytes are still occupied", backing.blocks() * 512);
}

#[test]
fn nothing_is_written_without_a_permit() {
    need!(root, tool "losetup", tool "mkfs.ext4", tool "mount");
    let _loading = loading();
    let device = LoopDevice::new(64 * MIB);
    let home = scratch();
    let prepare = |arguments: &[&str]| {
        let mut command = fathom(home.path());
        command.arg("prepare").args(arguments).arg(device.path());
        run(&mut command)
    };
    for step in ["--fill", "--trim", "--precondition"] {
        prepare(&[step]).assert_code(1).assert_told(&["would destroy the data", "--destroy-data="]);
    }
    prepare(&["--fill", "--destroy-data=/dev/null"])
        .assert_code(1)
        .assert_told(&["is not the target named by"]);
    assert!(std::fs::read(device.path()).expect("the device can be read").iter().all(|byte| *byte == 0));
    let mount = Mount::made(device.path(), "ext4");
    prepare(&["--fill", &destroying(&device)]).assert_code(1).assert_told(&["mounted", "unmount it first"]);
    let directory = run(fathom(home.path()).args(["prepare", "--size=10m"]).arg(mount.path()));
    directory.assert_code(1).assert_told(&["is a directory", "use a file in it"]);
    let too_large = run(fathom(home.path()).args(["prepare", "--size=1g"]).arg(mount.join("new")));
    too_large.assert_code(1).assert_told(&["needs 1.0 GiB more"]);
    assert!(!mount.join("new").exists());
    for wrong in ["--precondition=randread", "--precondition=write:5", "--size=big", "--round=0"] {
        prepare(&[wrong]).assert_code(2);
    }
    prepare(&["--fill", "--precondition"]).assert_code(2);
}

#[test]
fn unreadable_blocks_are_counted_and_the_others_are_touched() {
    need!(root, tool "losetup");
    let _loading = loading();
    let device = LoopDevice::written(40 * MIB);
    device.truncate_backing(30 * MIB);
    let document = prepared(&device, &["--touch"], 1);
    let touch = stage(&document, "touch");
    assert_eq!((&touch["errors"], &touch["complete"]), (&10.into(), &true.into()), "{document:#}");
    assert_eq!(number(touch, "/moved_bytes"), (30 * MIB) as f64);
    assert_eq!(document["findings"][0]["id"], "errors");
}

#[test]
fn a_device_is_preconditioned_until_it_is_steady() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(48 * MIB);
    let destroy = destroying(&device);
    steadily(|| {
        let throttle = Throttle::new(device.path(), &Cap { write_iops: Some(400), ..Cap::default() });
        let home = scratch();
        let before = sectors(&device);
        let mut command = fathom_under(&throttle, home.path());
        command.args(["prepare", "--json", "--precondition=randwrite:4k:8", "--round=1", &destroy]);
        let ended = run(command.arg(device.path()));
        ended.assert_code(0);
        let document = ended.document();
        let mut written = 0.0;
        for pass in ["precondition-1", "precondition-2"] {
            assert_eq!(number(stage(&document, pass), "/moved_bytes"), (48 * MIB) as f64);
            written += (48 * MIB) as f64;
        }
        let workload = stage(&document, "precondition-workload");
        if workload["workload"]["rounds"]["steady"] != true {
            return Err(format!("not steady: {:#}", workload["workload"]));
        }
        // A round of a second begins with what the limiter has saved up since the last one.
        within("IOPS", number(workload, "/workload/iops"), 400.0, 5.0)?;
        let rounds = workload["workload"]["rounds"]["values"].as_array().map_or(0, Vec::len);
        // Each round moves 400 blocks and once its depth; only the last five are in the document.
        let least = written + 5.0 * 380.0 * 4096.0;
        let counted = ((sectors(&device).1 - before.1) * 512) as f64;
        let most = written + rounds as f64 * 450.0 * 4096.0;
        assert!((least..most).contains(&counted), "{counted} bytes, expected {least} to {most}");
        let list = run(fathom(home.path()).args(["history", "show", "--full"]));
        list.assert_code(0);
        assert!(list.stdout.contains("the last five are steady"), "{}", list.stdout);
        Ok(())
    });
}

/// The document of a bench until steady, of which the cap falls from 2,000 to 400 once its rounds have begun.
fn bench_on_credit(device: &LoopDevice, arguments: &[&str]) -> Result<Value, String> {
    let throttle = Throttle::new(device.path(), &Cap::iops(2000));
    let home = scratch();
    let before = device.stat()[0];
    let mut command = fathom_under(&throttle, home.path());
    command.args(["bench", "--quick", "--only=rand-read", "--until-steady", "--runtime=1", "--json"]);
    let mut program = Program::start(command.args(["--no-history"]).args(arguments).arg(device.path()));
    let has_begun =
        wait_for(Duration::from_secs(30), || program.has_ended() || device.stat()[0] > before + 5000);
    throttle.set(&Cap::iops(400));
    if !has_begun || program.has_ended() {
        return Err(format!("over before the cap fell:\n{}\n{}", program.stdout(), program.stderr()));
    }
    let ended = program.finish();
    ended.assert_code(0);
    Ok(ended.document())
}

#[test]
fn a_bench_continues_until_a_falling_rate_is_steady() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(64 * MIB);
    steadily(|| {
        let document = bench_on_credit(&device, &[])?;
        let test = &document["tests"][0];
        let rounds = &test["rounds"];
        if rounds["steady"] != true {
            return Err(format!("not steady: {rounds:#}"));
        }
        // The kernel's limiter grants requests in slices of up to a tenth of the round.
        within("first round", number(rounds, "/values/0"), 2000.0, 10.0)?;
        within("what lasts", number(test, "/read/iops"), 400.0, 5.0)?;
        let count = rounds["values"].as_array().map_or(0, Vec::len);
        // Two or three before the fall, and five after it; a busy machine may make it more.
        assert!(count >= 7, "{count} rounds");
        // Five seconds are too short to call it a rate that lasts.
        assert_eq!(test["rate_duration"]["label"], "inconclusive");
        // With time for five rounds, the fall is among them.
        let document = bench_on_credit(&device, &["--budget=5"])?;
        let test = &document["tests"][0];
        assert_eq!(test["rounds"]["values"].as_array().map(Vec::len), Some(5));
        assert_eq!(test["rounds"]["steady"], false, "{test:#}");
        Ok(())
    });
}

#[test]
fn a_hanging_device_is_reported_and_abandoned_after_a_signal() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let device = LoopDevice::in_memory(64 * MIB);
    let home = scratch();
    let held = Throttle::new(device.path(), &Cap { write_bps: Some(64), ..Cap::default() });
    let mut command = fathom_under(&held, home.path());
    command.args(["prepare", "--json", &destroying(&device)]).arg(device.path());
    let mut program = Program::start(&mut command);
    let is_held =
        wait_for(Duration::from_secs(20), || program.has_ended() || kept_runs(home.path()).len() == 1);
    assert!(is_held && !wait_for(Duration::from_secs(3), || program.has_ended()), "{}", program.stderr());
    program.signal(Signal::INT);
    // Five seconds, and as many again for a machine that does much else.
    let ended = program.finish_within(Duration::from_secs(10));
    ended.assert_code(130);
    let document = ended.document();
    assert_eq!(document["findings"][0]["id"], "stalled", "{document:#}");
    assert_eq!(document["run"]["status"], "incomplete");
    let fill = stage(&document, "fill");
    assert_eq!((&fill["complete"], &fill["covered_bytes"]), (&false.into(), &0.into()));
    drop(held);
}

#[test]
fn a_killed_preparation_is_resumed() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let device = LoopDevice::with(&LoopOptions {
        in_memory: true,
        direct_io: false,
        ..LoopOptions::of_size(192 * MIB)
    });
    let home = scratch();
    let destroy = destroying(&device);
    let throttle = Throttle::new(device.path(), &Cap::bytes_per_second(40 * MIB));
    let command = |command: Command, more: &[&str]| {
        let mut command = command;
        command.args(["prepare", &destroy]).args(more).arg(device.path());
        command
    };
    let mut program = Program::start(&mut command(fathom_under(&throttle, home.path()), &[]));
    program.run_until(Duration::from_secs(60), |_| kept_tests(home.path()) >= 1);
    program.signal(Signal::KILL);
    program.finish_within(Duration::from_secs(20));
    drop(throttle);
    // Requests in flight of the killed process still reach the device, some of them from the limiter, which no counter
    // shows.
    let mut before = sectors(&device).1;
    let is_quiet = wait_for(Duration::from_secs(20), || {
        wait_for(Duration::from_millis(500), || false);
        device.stat()[8] == 0 && std::mem::replace(&mut before, sectors(&device).1) == before
    });
    assert!(is_quiet, "requests stay in flight");
    let other = run(&mut command(fathom(home.path()), &["--resume", "--size=100m"]));
    other.assert_code(1).assert_told(&["it prepared 192 MiB"]);
    let ended = run(&mut command(fathom(home.path()), &["--resume", "--json"]));
    ended.assert_code(0);
    let document = ended.document();
    let fill = stage(&document, "fill");
    assert_eq!((&fill["complete"], &fill["covered_bytes"]), (&true.into(), &(192 * MIB).into()));
    // The first piece was done.
    assert_eq!((sectors(&device).1 - before) * 512, 128 * MIB);
    let content = std::fs::read(device.path()).expect("the device can be read");
    assert_eq!(different_sectors(&content), (192 * MIB / 512) as usize);
    run(&mut command(fathom(home.path()), &["--resume"]))
        .assert_code(1)
        .assert_told(&["cannot resume run", "it is complete"]);
}

#[test]
fn an_interrupted_file_is_short_and_the_printed_command_completes_it() {
    need!(root, limits, tool "losetup", tool "mkfs.ext4", tool "mount", path "/dev/shm");
    let _loading = loading();
    let device = LoopDevice::in_memory(320 * MIB);
    let mount = Mount::made(device.path(), "ext4");
    let file = mount.join("data file");
    let home = scratch();
    let throttle = Throttle::new(device.path(), &Cap::bytes_per_second(40 * MIB));
    let mut command = fathom_under(&throttle, home.path());
    command.args(["prepare", "--size=192m"]).arg(&file);
    let mut program = Program::start(&mut command);
    program.run_until(Duration::from_secs(60), |_| kept_tests(home.path()) >= 1);
    program.signal(Signal::INT);
    let ended = program.finish_within(Duration::from_secs(20));
    ended.assert_code(130);
    drop(throttle);
    let metadata = std::fs::metadata(&file).expect("it was made");
    assert!(metadata.len() < 192 * MIB, "{} bytes", metadata.len());
    let told = ended.stdout.lines().find_map(|line| line.strip_prefix("To resume: fathom "));
    let told = told.unwrap_or_else(|| panic!("no command to go on in {}", ended.stdout));
    assert!(told.contains("'"), "a name with a space is quoted: {told}");
    let mut shell = with_environment(Command::new("sh"), &fathom(home.path()));
    shell.args(["-c", &format!("\"$FATHOM\" {told}")]);
    run(shell.env("FATHOM", fathom_path())).assert_code(0);
    assert_eq!(std::fs::metadata(&file).expect("it was made").len(), 192 * MIB);
    let content = std::fs::read(&file).expect("the file can be read");
    assert_eq!(different_sectors(&content), (192 * MIB / 512) as usize);
}
