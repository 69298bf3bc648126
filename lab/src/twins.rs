//! `twins`: makes twins of capped devices and checks how far each is from its device.
//!
//! Half of the devices are under the kernel's throttle, the others have limits of their own; all have latencies of a millisecond or
//! more, which vary. Latencies of memory are the client's CPU time, and differ from minute to minute. A load agrees if rates differ by
//! at most 3 % and the Kolmogorov distance of the latencies is below 0.1, at depths 1, 8 and 64.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    Cap, CappedDisk, DiskLimits, MIB, Need, Program, Throttle, fathom, fathom_under, scratch,
};
use serde_json::{Value, json};

use crate::driver::{Campaign, Case, CaseResult, Plan};

pub const CAMPAIGN: Campaign = Campaign {
    cases: 10,
    needs: &[Need::Root, Need::BlockLimits, Need::Tool("losetup"), Need::Path("/dev/fuse")],
    resumes: true,
    ..Campaign::new("twins", "Make twins of capped devices and compare both", |asked| {
        Ok(Plan::new(asked.seeds().map(|index| {
            let (name, device) = device(index);
            Case::new(format!("{index:03}-{name}"), move || Ok(measured(&device)))
        })))
    })
};

enum TwinDevice {
    /// Limited before its queue, in turns of the kernel's throttle.
    Throttled(Cap),
    /// Limited behind it, at exact times.
    Capped(DiskLimits),
}

const SIZE: u64 = 256 * MIB;
/// Reads and writes are identified within it; latencies are measured after it.
const BUDGET_S: u64 = 360;
/// A disk under the kernel's throttle.
const UNLIMITED: DiskLimits = DiskLimits {
    latency: Duration::from_millis(1),
    spread_percent: 50,
    iops: 100_000,
    bytes_per_second: None,
    burst: None,
};
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The `index`th device: always the same.
fn device(index: u64) -> (&'static str, TwinDevice) {
    let round = index / 10;
    let throttled = |read_iops, write_iops, read_mib: Option<u64>, write_mib: Option<u64>| {
        let [read_bps, write_bps] = [read_mib, write_mib].map(|mib| mib.map(|mib| mib * MIB));
        TwinDevice::Throttled(Cap { read_iops, write_iops, read_bps, write_bps })
    };
    let capped = |iops: u64, latency_us: u64, spread_percent: u32, mib: Option<u64>| {
        let latency = Duration::from_micros(latency_us);
        let bytes_per_second = mib.map(|mib| mib * MIB);
        TwinDevice::Capped(DiskLimits { latency, spread_percent, iops, bytes_per_second, burst: None })
    };
    let both_ways = |iops, mib| throttled(iops, iops, mib, mib);
    match index % 10 {
        0 => ("iops", both_ways(Some(1000 + 137 * round), None)),
        1 => ("capped", capped(3000 + 190 * round, 1000, 50, None)),
        2 => ("few-iops", both_ways(Some(317 + 41 * round), None)),
        3 => ("capped-bytes", capped(4000 + 70 * round, 900, 40, Some(10))),
        4 => ("bytes", both_ways(None, Some(9 + round))),
        5 => ("capped-slow", capped(350 + 30 * round, 4000, 100, None)),
        6 => ("both", both_ways(Some(1500 + 90 * round), Some(25))),
        7 => ("capped-both", capped(2000 + 110 * round, 1500, 20, Some(60))),
        8 => ("apart", throttled(Some(2200), Some(1100), Some(48), Some(20))),
        _ => ("capped-fast", capped(6000 + 250 * round, 800, 60, None)),
    }
}

fn measured(device: &TwinDevice) -> CaseResult {
    let home = scratch();
    match device {
        TwinDevice::Throttled(cap) => {
            let disk = CappedDisk::new(SIZE, &UNLIMITED);
            let device = disk.device();
            let throttle = Throttle::new(device.path(), cap);
            checked(device.path(), home.path(), || fathom_under(&throttle, home.path()))
        }
        TwinDevice::Capped(limits) => {
            let disk = CappedDisk::new(SIZE, limits);
            checked(disk.path(), home.path(), || fathom(home.path()))
        }
    }
}

/// Identifies the device at `path`, and checks its twin: `read-d1 700 IOPS +0.1 % 0.02, …`.
fn checked(path: &Path, home: &Path, program: impl Fn() -> Command) -> CaseResult {
    let destroy = format!("--destroy-data={}", path.display());
    let run = |arguments: &[&str]| {
        let mut command = program();
        command.env("FATHOM_TWINS", home.join("twins")).args(arguments).arg(&destroy).arg(path);
        Program::start(&mut command).finish_within(LONGEST).document()
    };
    let budget = format!("--budget={BUDGET_S}s");
    let identified = run(&["identify", "--save=device", "--json", "--no-history", &budget]);
    let check = run(&["twin", "check", "device", "--json", "--no-history"]);
    judged(&check)
        .facts(json!({"iops": identified["iops"], "bytes_per_second": identified["bytes_per_second"]}))
}

fn judged(check: &Value) -> CaseResult {
    let loads: Vec<String> = check["loads"].as_array().into_iter().flatten().map(shown_load).collect();
    let differs = (check["agrees"] != true).then(|| "the twin differs from its device".to_owned());
    CaseResult::new(loads.join(", ")).faults(differs)
}

fn shown_load(load: &Value) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    format!(
        "{} {:.0} IOPS {:+.1} % {:.3}{}",
        load["id"].as_str().unwrap_or_default(),
        number(&load["volume"]["iops"]),
        100.0 * number(&load["rate_difference"]),
        number(&load["latency_distance"]),
        if load["agrees"] == true { "" } else { " DIFFERS" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_differs_is_a_fault() {
        let load =
            json!({"id": "read-d1", "volume": {"iops": 700}, "rate_difference": 0.001, "agrees": true});
        let good = judged(&json!({"agrees": true, "loads": [load]}));
        assert_eq!((good.line.as_str(), good.faults.len()), ("read-d1 700 IOPS +0.1 % NaN", 0));
        assert_eq!(judged(&json!({"agrees": false})).faults.len(), 1);
    }
}
