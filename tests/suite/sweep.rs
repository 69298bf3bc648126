//! `fathom sweep` on capped devices: limits, crossover and knees as they were set, bounds where a cap hides the other,
//! and a sweep that is resumed after a kill.

use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    Cap, LoopDevice, MIB, Program, Throttle, fathom, fathom_under, find_number, kept_tests, loading,
    measuring_capped, need, number, run, scratch,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::ours::{steadily, within};

fn points(document: &Value) -> &Vec<Value> {
    document["points"].as_array().expect("points")
}

/// The document of a sweep of `device` under `cap`, which must end with `code`.
fn swept(device: &LoopDevice, cap: &Cap, arguments: &[&str], code: i32) -> Result<Value, String> {
    let throttle = Throttle::new(device.path(), cap);
    let home = scratch();
    let mut command = fathom_under(&throttle, home.path());
    command.args(["sweep", "--json", "--no-history"]).args(arguments).arg(device.path());
    let ended = run(&mut command);
    ended.assert_code(code);
    // Progress is for terminals; stalls of a second are reported.
    if ended.stderr.is_empty() { Ok(ended.document()) } else { Err(ended.stderr) }
}

#[test]
fn a_sweep_of_a_very_slow_device_ends_near_its_budget() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(128 * MIB);
    let cap = Cap { read_bps: Some(100_000), ..Cap::default() };
    let throttle = Throttle::new(device.path(), &cap);
    let home = scratch();
    let mut command = fathom_under(&throttle, home.path());
    // 64 requests of 64 KiB take 42 s.
    command.args(["sweep", "--json", "--no-history", "--bs=4k,64k", "--iodepth=1,64", "--budget=30"]);
    let ended = run(command.arg(device.path()));
    ended.assert_code(0);
    let document = ended.document();
    let elapsed = points(&document).iter().map(|point| number(point, "/elapsed_ns")).sum::<f64>() / 1e9;
    assert!(elapsed < 34.0, "{elapsed} s");
    let deep = points(&document).iter().find(|point| point["iodepth"] == 64 && point["status"] == "skipped");
    let reason = deep.expect("a point that is too deep")["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("in flight would take"), "{reason}");
}

#[test]
fn a_sweep_finds_the_caps_their_crossover_and_the_knee() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(128 * MIB);
    // 2,000 IOPS and 50 MiB/s meet at 25.6 KiB.
    let cap = Cap {
        read_iops: Some(2000),
        read_bps: Some(50 * MIB),
        write_iops: Some(2000),
        write_bps: Some(50 * MIB),
    };
    steadily(|| {
        let arguments = ["--bs=4k-256k", "--budget=60", "--expect=iops>=1000"];
        let document = swept(&device, &cap, &arguments, 0)?;
        assert_eq!(document["schema"], "fathom.sweep/1");
        let limits = &document["limits"];
        within("IOPS", find_number(limits, "/read/iops/value")?, 2000.0, 3.0)?;
        within("bandwidth", find_number(limits, "/read/bytes_per_second/value")?, (50 * MIB) as f64, 3.0)?;
        within(
            "crossover",
            find_number(limits, "/read/crossover_block_size_bytes/value")?,
            25.6 * 1024.0,
            3.0,
        )?;
        assert_eq!(limits["write"]["iops"], Value::Null, "writes were not asked for");
        for point in points(&document) {
            assert_eq!(point["rw"], "randread");
            let of = |key: &str| number(point, &format!("/{key}"));
            within("bytes", of("bytes_per_second"), of("iops") * of("block_size_bytes"), 1e-6)?;
            within("depth held", of("queue_depth_mean"), of("iodepth") * of("numjobs"), 7.0)?;
        }
        // One request at a time already meets the cap.
        let knees = document["knees"].as_array().expect("knees");
        let small = knees.iter().find(|knee| knee["block_size_bytes"] == 4096).expect("the curve of 4k");
        for key in ["/iodepth_latency", "/iodepth_throughput"] {
            if find_number(small, key)? > 2.0 {
                return Err(format!("{key}: {small:#}"));
            }
        }
        let reach = &document["reach"];
        let is_met = reach["verdict"] == "met" && reach["answers"][0]["best"]["iodepth"] == 1;
        if is_met { Ok(()) } else { Err(format!("{reach:#}")) }
    });
}

#[test]
fn the_highest_rate_under_an_objective_is_the_cap() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(128 * MIB);
    let cap = Cap { read_iops: Some(2000), ..Cap::default() };
    steadily(|| {
        let arguments = ["--bs=4k", "--iodepth=1,64", "--budget=18", "--expect=mean<1s"];
        let document = swept(&device, &cap, &arguments, 0)?;
        assert_eq!(document["slo"]["verdict"], "met");
        let offered = &document["offered"][0];
        // To the 3 % between two rates.
        let highest = find_number(offered, "/best/rate_iops")?;
        if !(1_900.0..=2_060.0).contains(&highest) || offered["search_complete"] != true {
            return Err(format!("the highest rate: {offered:#}"));
        }
        let samples = number(offered, "/best/response_ns/samples");
        within("requests", samples, highest * number(offered, "/best/measured_ns") / 1e9, 2.0)
    });
}

#[test]
fn a_hidden_cap_has_a_lower_bound_and_an_unreachable_rate_is_reported() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(128 * MIB);
    let cap = Cap::bytes_per_second(20 * MIB);
    steadily(|| {
        let arguments = ["--bs=64k,256k", "--iodepth=1,2", "--budget=60", "--expect=iops>=1000000"];
        let document = swept(&device, &cap, &arguments, 3)?;
        assert_eq!(points(&document).len(), 4);
        let limits = &document["limits"];
        assert_eq!(limits["read"]["iops"]["value"], Value::Null);
        within("bound", find_number(limits, "/read/iops/low")?, 320.0, 3.0)?;
        within("bandwidth", find_number(limits, "/read/bytes_per_second/value")?, (20 * MIB) as f64, 3.0)?;
        assert_eq!(limits["read"]["crossover_block_size_bytes"]["value"], Value::Null);
        let most = find_number(limits, "/read/crossover_block_size_bytes/high")?;
        assert!((62_000.0..70_000.0).contains(&most), "{most}");
        assert_eq!(document["reach"]["verdict"], "missed");
        Ok(())
    });
}

#[test]
fn writes_need_a_request_and_a_permit() {
    need!(root, tool "losetup");
    let _loading = loading();
    let device = LoopDevice::new(32 * MIB);
    let home = scratch();
    let refused = run(fathom(home.path()).args(["sweep", "--rw=randwrite"]).arg(device.path()));
    refused.assert_code(1).assert_told(&["--destroy-data=", "--rw randread"]);
    assert!(std::fs::read(device.path()).expect("the device can be read").iter().all(|byte| *byte == 0));
    for wrong in ["--rw=randrw", "--bs=4x", "--iodepth=8-1", "--expect=p99", "--expect=fast", "--budget=1"] {
        run(fathom(home.path()).args(["sweep", wrong]).arg(device.path())).assert_code(2);
    }
}

#[test]
fn a_killed_sweep_is_resumed() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let device = LoopDevice::in_memory(64 * MIB);
    let home = scratch();
    let command = |more: &[&str]| -> Command {
        let mut command = fathom(home.path());
        command.args(["sweep", "--bs=4k,64k", "--iodepth=1,2", "--budget=60", "--json"]).args(more);
        command.arg(device.path());
        command
    };
    let mut program = Program::start(&mut command(&[]));
    program.run_until(Duration::from_secs(60), |_| kept_tests(home.path()) >= 2);
    program.signal(Signal::KILL);
    program.finish_within(Duration::from_secs(20));
    let kept = kept_tests(home.path());
    let ended = run(&mut command(&["--resume"]));
    ended.assert_code(0);
    let document = ended.document();
    let spots: Vec<(u64, u64)> = points(&document)
        .iter()
        .map(|point| {
            (point["block_size_bytes"].as_u64().unwrap_or(0), point["iodepth"].as_u64().unwrap_or(0))
        })
        .collect();
    // A point that stalled is measured again; a busy device may end a curve early.
    let grid = [(4096, 1), (65_536, 1), (4096, 2), (65_536, 2)];
    assert!(spots.len() as u64 >= kept && spots.iter().all(|spot| grid.contains(spot)), "{spots:?}");
    assert!(grid[..2].iter().all(|spot| spots.contains(spot)), "{spots:?}");
    let note = format!("resumes run 1 with its {kept} measured points");
    assert!(
        document["run"]["notes"].as_array().is_some_and(|notes| notes.contains(&note.as_str().into())),
        "{document:#}"
    );
    // The history shows it as it was shown.
    let shown = run(fathom(home.path()).args(["history", "show", "--json"]));
    shown.assert_code(0);
    assert_eq!(shown.document(), document);
    // That one is complete: there is nothing to resume.
    run(&mut command(&["--resume"])).assert_code(1).assert_told(&["cannot resume run", "is complete"]);
}
