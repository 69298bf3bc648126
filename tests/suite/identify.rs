//! `fathom identify` on devices whose limits are known: a cap on reads, one on each direction, one on requests and bytes
//! together, burst credits that are exhausted and refill, a cap that decays, and one of which another process takes half. Rates
//! are low, so that all run side by side.

use std::time::Duration;

use fathom_tests::{
    Cap, LoopDevice, MIB, Program, Throttle, fathom, fathom_under, find_number, is_long, loading,
    measuring_capped_first, need, run, scratch,
};
use serde_json::Value;

use crate::findings::{Case, side_by_side};
use crate::ours::within;

/// A run that does not end by its budget does not end by this.
const LONGEST: Duration = Duration::from_secs(260);
/// The requests in flight when the budget ends take their time.
const IN_FLIGHT_NS: f64 = 1e9;

/// `fathom identify` of `device` under `throttle`.
fn identifying(throttle: &Throttle, device: &LoopDevice, home: &std::path::Path, more: &[&str]) -> Program {
    let mut command = fathom_under(throttle, home);
    command.args(["identify", "--json", "--no-history"]).args(more).arg(device.path());
    Program::start(&mut command)
}

/// Its result, which must have kept its announced budget.
fn result(program: Program) -> Result<Value, String> {
    let ended = program.finish_within(LONGEST);
    ended.assert_code(0);
    let document = ended.document();
    assert_eq!(document["schema"], "fathom.identify/1");
    for (what, parts) in
        [("ns", &["time_ns"][..]), ("ios", &["ios"]), ("bytes", &["read_bytes", "written_bytes"])]
    {
        let announced = find_number(&document, &format!("/run/budget_{what}"))?;
        let spent = parts
            .iter()
            .map(|part| find_number(&document, &format!("/spent/{part}")))
            .sum::<Result<f64, _>>()?;
        let in_flight = if what == "ns" { IN_FLIGHT_NS } else { 0.0 };
        assert!(spent <= announced + in_flight && spent > 0.0, "{what}: {spent} of {announced}");
    }
    Ok(document)
}

fn identified(device: &LoopDevice, cap: &Cap, more: &[&str]) -> Result<Value, String> {
    let (throttle, home) = (Throttle::new(device.path(), cap), scratch());
    result(identifying(&throttle, device, home.path(), more))
}

/// Only the configured limits are reported.
fn no_bucket(document: &Value) -> Result<(), String> {
    match &document["bursts"][0] {
        Value::Null => Ok(()),
        burst => Err(format!("there is no credit: {burst:#}")),
    }
}

fn a_cap_on_reads() -> Result<(), String> {
    let device = LoopDevice::in_memory(64 * MIB);
    let cap = Cap { read_iops: Some(800), ..Cap::default() };
    let document = identified(&device, &cap, &["--budget=60s"])?;
    within("reads", find_number(&document, "/iops/read/value")?, 800.0, 5.0)?;
    let bandwidth = &document["bytes_per_second"]["read"]["value"];
    assert_eq!((&document["iops"]["write"], bandwidth), (&Value::Null, &Value::Null));
    no_bucket(&document)
}

fn a_cap_on_each() -> Result<(), String> {
    let device = LoopDevice::in_memory(64 * MIB);
    let cap = Cap { read_iops: Some(900), write_iops: Some(500), ..Cap::default() };
    let destroy = format!("--destroy-data={}", device.path().display());
    let document = identified(&device, &cap, &["--budget=110s", &destroy])?;
    within("reads", find_number(&document, "/iops/read/value")?, 900.0, 5.0)?;
    within("writes", find_number(&document, "/iops/write/value")?, 500.0, 5.0)?;
    if document["shares_limits"] != false {
        return Err(format!("the kernel counts them apart: {document:#}"));
    }
    no_bucket(&document)
}

/// 1,000 requests and 25 MiB a second, which meet at 25.6 KiB.
fn requests_and_bytes() -> Result<(), String> {
    let device = LoopDevice::in_memory(64 * MIB);
    let cap = Cap { read_iops: Some(1000), read_bps: Some(25 * MIB), ..Cap::default() };
    let document = identified(&device, &cap, &["--budget=60s"])?;
    within("requests", find_number(&document, "/iops/read/value")?, 1000.0, 5.0)?;
    within("bytes", find_number(&document, "/bytes_per_second/read/value")?, (25 * MIB) as f64, 5.0)?;
    within(
        "where they meet",
        find_number(&document, "/crossover_block_size_bytes/value")?,
        25.6 * 1024.0,
        5.0,
    )?;
    no_bucket(&document)
}

/// Burst credits of a volume: I/O beyond the baseline uses them, unused baseline refills them.
struct Credit {
    full: Cap,
    dry: Cap,
    /// Refill per second, and capacity.
    base: f64,
    credit: f64,
    /// The kernel's counter of the requests, and its unit.
    counted: (usize, f64),
}

impl Credit {
    /// Caps `device` as the credit has it, until `program` ends.
    fn hold(&self, throttle: &Throttle, device: &LoopDevice, program: &mut Program) {
        let (counter, of) = self.counted;
        let used = || device.stat()[counter] as f64 * of;
        let (mut credit, mut is_dry, mut at, mut before) = (self.credit, false, uptime_s(), used());
        while !program.has_ended() {
            std::thread::park_timeout(Duration::from_millis(5));
            let (now, all) = (uptime_s(), used());
            credit = (credit + (now - at) * self.base - (all - before)).clamp(0.0, self.credit);
            (at, before) = (now, all);
            // Under load nothing is gained; half a second of rest ends the dry time.
            let turns = if is_dry { credit > self.base / 2.0 } else { credit <= 0.0 };
            if turns {
                is_dry = !is_dry;
                throttle.set(if is_dry { &self.dry } else { &self.full });
            }
        }
    }
}

/// By the kernel's clock, s.
fn uptime_s() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").expect("the kernel tells its uptime");
    text.split(' ').next().and_then(|word| word.parse().ok()).expect("the kernel writes seconds")
}

fn with_credit(credit: &Credit, budget: &str) -> Result<Value, String> {
    let (device, home) = (LoopDevice::in_memory(64 * MIB), scratch());
    let throttle = Throttle::new(device.path(), &credit.full);
    let mut program = identifying(&throttle, &device, home.path(), &[budget]);
    credit.hold(&throttle, &device, &mut program);
    result(program)
}

/// 1,000 reads a second for 10 s, then 200.
fn credit_of_requests() -> Result<(), String> {
    let reads = |iops: u64| Cap { read_iops: Some(iops), ..Cap::default() };
    let credit =
        Credit { full: reads(1000), dry: reads(200), base: 200.0, credit: 8_000.0, counted: (0, 1.0) };
    let document = with_credit(&credit, "--budget=60s")?;
    within("reads", find_number(&document, "/iops/read/value")?, 1000.0, 5.0)?;
    let burst = &document["bursts"][0];
    if (&burst["unit"], &burst["scope"]) != (&"ios".into(), &"reads".into()) {
        return Err(format!(
            "a bucket of I/Os that reads draw on: {burst:#}, {:#}, {:#}",
            document["burst_why"], document["confounders"]
        ));
    }
    within("burst", find_number(burst, "/burst_rate/value")?, 1000.0, 5.0)?;
    within("baseline", find_number(burst, "/baseline_rate/value")?, 200.0, 5.0)?;
    within("credit", find_number(burst, "/capacity/value")?, 8_000.0, 5.0)?;
    within("to empty", find_number(burst, "/seconds_to_empty/value")?, 10.0, 5.0)?;
    within("refill", find_number(burst, "/refill_rate/value")?, 200.0, 10.0)
}

/// 20 MiB a second for 20 s, then 5 MiB; 1,000 requests at the most.
fn credit_of_bytes() -> Result<(), String> {
    let bytes = |mib: u64| Cap { read_iops: Some(1000), read_bps: Some(mib * MIB), ..Cap::default() };
    let credit = Credit {
        full: bytes(20),
        dry: bytes(5),
        base: (5 * MIB) as f64,
        credit: (300 * MIB) as f64,
        counted: (2, 512.0),
    };
    let document = with_credit(&credit, "--budget=100s")?;
    within("reads", find_number(&document, "/iops/read/value")?, 1000.0, 5.0)?;
    within("bytes", find_number(&document, "/bytes_per_second/read/value")?, (20 * MIB) as f64, 5.0)?;
    let burst = &document["bursts"][0];
    if (&burst["unit"], &burst["scope"]) != (&"bytes".into(), &"reads".into()) {
        return Err(format!(
            "a bucket of bytes that reads draw on: {burst:#}, {:#}, {:#}",
            document["burst_why"], document["confounders"]
        ));
    }
    within("burst", find_number(burst, "/burst_rate/value")?, (20 * MIB) as f64, 5.0)?;
    within("baseline", find_number(burst, "/baseline_rate/value")?, (5 * MIB) as f64, 5.0)?;
    within("credit", find_number(burst, "/capacity/value")?, (300 * MIB) as f64, 5.0)
}

#[test]
fn limits_and_burst_credits_are_identified_as_configured() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped_first();
    // Causes beside limits (a limit that decays, other processes) are in `cargo lab identify-devices`.
    // Two directions and a credit of bytes take two minutes.
    let mut cases: Vec<Case> = vec![
        ("reads", a_cap_on_reads),
        ("requests and bytes", requests_and_bytes),
        ("credit of requests", credit_of_requests),
    ];
    if is_long() {
        cases.extend([("each", a_cap_on_each as fn() -> _), ("credit of bytes", credit_of_bytes)]);
    }
    side_by_side(&cases);
}

#[test]
fn devices_that_are_not_named_keep_their_data() {
    need!(root, limits, tool "losetup");
    let _load = loading();
    let device = LoopDevice::new(32 * MIB);
    let (throttle, home) = (Throttle::new(device.path(), &Cap::iops(200)), scratch());
    let mut command = fathom_under(&throttle, home.path());
    let ended = run(command.args(["identify", "--budget=30s"]).arg(device.path()));
    ended.assert_code(0).assert_shown(&["Unknown", "writes", "--destroy-data="]);
    assert!(std::fs::read(device.path()).expect("the device can be read").iter().all(|byte| *byte == 0));
    for wrong in [&["--budget=29s"][..], &["--read-only", "--destroy-data=/dev/null"], &["--bs=4k"]] {
        run(fathom(home.path()).arg("identify").args(wrong).arg(device.path())).assert_code(2);
    }
}
