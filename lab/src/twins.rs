//! `twins`: makes twins of disks with exact models and of devices under the kernel's throttle, and measures both at depths 1, 8 and 64.
//!
//! A disk begins again, with full buckets, before it is compared with its twin. Latencies are some tenths of a millisecond and vary: those
//! of memory are the client's CPU time, and differ from minute to minute.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    BurstBucket, Cap, Direction, DiskModel, KnownDisk, MIB, Need, Program, RateLimit, RateUnit,
    RepeatableNoise, Throttle, fathom, fathom_under, scratch,
};
use serde_json::{Value, json};

use crate::driver::{Campaign, Case, CaseResult, Plan};

pub const CAMPAIGN: Campaign = Campaign {
    cases: MECHANISMS,
    needs: &[Need::Root, Need::BlockLimits, Need::Tool("losetup"), Need::Path("/dev/fuse")],
    resumes: true,
    ..Campaign::new("twins", "Make twins of devices of known behaviour and compare both", |asked| {
        Ok(Plan::new(asked.seeds().map(|index| {
            let (name, device) = device(index);
            Case::new(format!("{index:03}-{name}"), move || Ok(measured(&device)))
        })))
    })
};

enum TwinDevice {
    /// Limited before its queue, in turns of the kernel's throttle.
    Throttled(Cap),
    Known(Box<DiskModel>),
}

const MECHANISMS: u64 = 12;
const SIZE: u64 = 256 * MIB;
/// Reads and writes are identified within it; latencies are measured after it.
const BUDGET_S: u64 = 360;
const LONGEST: Duration = Duration::from_secs(40 * 60);
/// What rates and 99th percentiles of a twin may differ by from those of its disk.
const RATE_WITHIN: f64 = 0.03;
const P99_WITHIN: f64 = 0.1;

/// The `index`th device: always the same.
fn device(index: u64) -> (&'static str, TwinDevice) {
    let mut noise = RepeatableNoise::seeded(index + 1);
    for _ in 0..8 {
        noise.bits();
    }
    let mut around = |least: f64, most: f64| (least * (most / least).powf(noise.even())).round();
    let latency = around(250.0, 900.0) / 1e6;
    let base = DiskModel {
        size: SIZE,
        read_latency: latency,
        write_latency: latency * around(90.0, 200.0) / 100.0,
        jitter: around(15.0, 90.0) / 100.0,
        ..DiskModel::default()
    };
    let (iops, bytes) = (around(700.0, 4000.0), around(8e6, 6e7));
    let with = |limits: Vec<RateLimit>| DiskModel { limits, ..base.clone() };
    let known = |model: DiskModel| TwinDevice::Known(Box::new(model));
    match index % MECHANISMS {
        0 => ("iops", known(with(vec![RateLimit::iops(iops)]))),
        1 => ("servers", known(DiskModel { servers: Some(around(2.0, 12.0) as usize), ..base })),
        // Nearly all that one request at a time can do.
        2 => ("iops-at-depth-1", known(with(vec![RateLimit::iops((0.97 / latency).round())]))),
        3 => ("bytes", known(with(vec![RateLimit::bytes(bytes)]))),
        4 => ("both", known(with(vec![RateLimit::iops(iops), RateLimit::bytes(bytes.max(iops * 12_000.0))]))),
        5 => {
            let of = |iops: f64, direction: Direction| RateLimit::iops(iops).of(direction);
            let writes = around(300.0, 2000.0);
            ("apart", known(with(vec![of(iops, Direction::Reads), of(writes, Direction::Writes)])))
        }
        6 => {
            let tail = Some((around(20.0, 40.0) / 1e4, around(8.0, 30.0) / 1e3));
            ("tail", known(DiskModel { tail, ..with(vec![RateLimit::iops(iops)]) }))
        }
        7 => {
            let (base_iops, burst) = (around(150.0, 400.0), around(1500.0, 3500.0));
            let capacity = (burst - base_iops) * around(8.0, 20.0);
            let unit = RateUnit::Requests;
            let bucket = BurstBucket { unit, burst, base: base_iops, capacity, initial: capacity };
            ("bucket", known(DiskModel { buckets: vec![bucket], ..base }))
        }
        8 => {
            let servers = Some(around(3.0, 6.0) as usize);
            (
                "servers-and-iops",
                known(DiskModel { servers, ..with(vec![RateLimit::iops(0.7 * 3.0 / latency)]) }),
            )
        }
        9 => {
            let limit = RateLimit { unit: RateUnit::Units(16384.0), ..RateLimit::iops(iops) };
            ("units", known(with(vec![limit])))
        }
        10 => {
            let iops = Some(around(300.0, 2000.0) as u64);
            ("throttled", TwinDevice::Throttled(Cap { read_iops: iops, write_iops: iops, ..Cap::default() }))
        }
        _ => {
            let (iops, bytes) = (Some(iops as u64), Some(bytes as u64));
            let cap = Cap { read_iops: iops, write_iops: iops, read_bps: bytes, write_bps: bytes };
            ("throttled-both", TwinDevice::Throttled(cap))
        }
    }
}

/// A disk under the kernel's throttle: a millisecond, and half of one more on average.
fn unlimited() -> DiskModel {
    let (read_latency, write_latency) = (1.5e-3, 1.5e-3);
    DiskModel { size: SIZE, read_latency, write_latency, jitter: 1.0 / 3.0, ..DiskModel::default() }
}

fn measured(device: &TwinDevice) -> CaseResult {
    let home = scratch();
    match device {
        TwinDevice::Throttled(cap) => {
            let disk = KnownDisk::new(&unlimited());
            let device = disk.device();
            let throttle = Throttle::new(device.path(), cap);
            checked(device.path(), home.path(), || fathom_under(&throttle, home.path()), || {})
        }
        TwinDevice::Known(model) => {
            let disk = KnownDisk::new(model);
            checked(disk.path(), home.path(), || fathom(home.path()), || disk.begin_again())
        }
    }
}

/// Identifies the device at `path`, and checks its twin: `read-d1 700 IOPS +0.1 % p99 1.2 ms -0.3 %, …`.
fn checked(path: &Path, home: &Path, program: impl Fn() -> Command, begin_again: impl Fn()) -> CaseResult {
    let destroy = format!("--destroy-data={}", path.display());
    let run = |arguments: &[&str]| {
        begin_again();
        let mut command = program();
        command.env("FATHOM_TWINS", home.join("twins")).args(arguments).arg(&destroy).arg(path);
        Program::start(&mut command).finish_within(LONGEST).document()
    };
    let budget = format!("--budget={BUDGET_S}s");
    let identified = run(&["identify", "--save=device", "--json", "--no-history", &budget]);
    let check = run(&["twin", "check", "device", "--json", "--no-history"]);
    judged(&check).facts(json!({
        "iops": identified["iops"], "bytes_per_second": identified["bytes_per_second"],
        "bursts": identified["bursts"],
    }))
}

fn judged(check: &Value) -> CaseResult {
    let loads = check["loads"].as_array().into_iter().flatten();
    let (texts, differing): (Vec<String>, Vec<bool>) = loads.map(compared).unzip();
    let differs = differing.contains(&true) || differing.is_empty();
    CaseResult::new(texts.join(", ")).faults(differs.then(|| "the twin differs from its device".to_owned()))
}

/// A load as text, and whether the twin differs in it.
fn compared(load: &Value) -> (String, bool) {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let [rate, p99] = [&load["rate_difference"], &load["p99_difference"]].map(number);
    let is_near = rate.abs() <= RATE_WITHIN && p99.abs() <= P99_WITHIN;
    let text = format!(
        "{} {:.0} IOPS {:+.1} % p99 {:.2} ms {:+.1} % distance {:.3}{}",
        load["id"].as_str().unwrap_or_default(),
        number(&load["volume"]["iops"]),
        100.0 * rate,
        number(&load["volume"]["p99_ns"]) / 1e6,
        100.0 * p99,
        number(&load["latency_distance"]),
        if is_near { "" } else { " DIFFERS" }
    );
    (text, !is_near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_differs_is_a_fault() {
        let check = |rate: f64, p99: f64, faults: usize| {
            let load = json!({
                "id": "read-d1", "volume": {"iops": 700, "p99_ns": 1_500_000},
                "rate_difference": rate, "p99_difference": p99, "latency_distance": 0.01,
            });
            let result = judged(&json!({"loads": [load]}));
            assert_eq!(result.faults.len(), faults, "{}", result.line);
        };
        check(0.001, 0.05, 0);
        check(-0.04, 0.05, 1);
        check(0.001, -0.2, 1);
        assert_eq!(judged(&json!({})).faults.len(), 1);
    }
}
