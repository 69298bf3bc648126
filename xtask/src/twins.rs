//! `cargo xtask campaign twins`: makes twins of capped devices and checks how far each is from its device.
//!
//! Half of the devices are under the kernel's throttle, the others have limits of their own; all have latencies of a millisecond or
//! more, which vary. Latencies of memory are the client's CPU time, and differ from minute to minute. A load agrees if rates differ by
//! at most 3 % and the Kolmogorov distance of the latencies is below 0.1, at depths 1, 8 and 64.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use fathom_tests::{Cap, CappedDisk, DiskLimits, Need, Program, Throttle, fathom, fathom_under, scratch};
use serde_json::{Value, json};

use crate::device_campaign::DeviceCampaign;

const CAMPAIGN: DeviceCampaign<TwinCase> = DeviceCampaign {
    name: "twins",
    usual: (10, 1),
    needs: &[Need::Root, Need::BlockLimits, Need::Tool("losetup"), Need::Path("/dev/fuse")],
    case: TwinCase::of,
    name_of: |case| &case.name,
    measure: measured,
    shown,
};

/// Runs the campaign, or what is left of it.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let results = CAMPAIGN.run(root, arguments)?;
    let apart = results.iter().filter(|line| line["check"]["agrees"] != true).count();
    println!("{} devices, {apart} of them not like their twins", results.len());
    ensure!(apart == 0 && !results.is_empty(), "a twin differs from its device");
    Ok(())
}

/// One device.
#[derive(Clone, Debug)]
struct TwinCase {
    name: String,
    device: TwinDevice,
}

#[derive(Clone, Debug)]
enum TwinDevice {
    /// Limited before its queue, in turns of the kernel's throttle.
    Throttled(Cap),
    /// Limited behind it, at exact times.
    Capped(DiskLimits),
}

const MIB: u64 = 1 << 20;
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

impl TwinCase {
    /// The `index`th: always the same.
    fn of(index: u64) -> TwinCase {
        let round = index / 10;
        let throttled = |iops: Option<u64>, bps: Option<u64>| {
            TwinDevice::Throttled(Cap { read_iops: iops, write_iops: iops, read_bps: bps, write_bps: bps })
        };
        let capped = |iops: u64, latency_us: u64, spread_percent: u32, mib: Option<u64>| {
            TwinDevice::Capped(DiskLimits {
                latency: Duration::from_micros(latency_us),
                spread_percent,
                iops,
                bytes_per_second: mib.map(|mib| mib * MIB),
                burst: None,
            })
        };
        let (name, device) = match index % 10 {
            0 => ("iops", throttled(Some(1000 + 137 * round), None)),
            1 => ("capped", capped(3000 + 190 * round, 1000, 50, None)),
            2 => ("few-iops", throttled(Some(317 + 41 * round), None)),
            3 => ("capped-bytes", capped(4000 + 70 * round, 900, 40, Some(10))),
            4 => ("bytes", throttled(None, Some((9 + round) * MIB))),
            5 => ("capped-slow", capped(350 + 30 * round, 4000, 100, None)),
            6 => ("both", throttled(Some(1500 + 90 * round), Some(25 * MIB))),
            7 => ("capped-both", capped(2000 + 110 * round, 1500, 20, Some(60))),
            8 => (
                "apart",
                TwinDevice::Throttled(Cap {
                    read_iops: Some(2200),
                    write_iops: Some(1100),
                    read_bps: Some(48 * MIB),
                    write_bps: Some(20 * MIB),
                }),
            ),
            _ => ("capped-fast", capped(6000 + 250 * round, 800, 60, None)),
        };
        TwinCase { name: format!("{index:03}-{name}"), device }
    }
}

fn measured(case: &TwinCase) -> Value {
    let home = scratch();
    match &case.device {
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

/// Identifies the device at `path`, and checks its twin.
fn checked(path: &Path, home: &Path, program: impl Fn() -> Command) -> Value {
    let destroy = format!("--destroy-data={}", path.display());
    let run = |arguments: &[&str]| {
        let mut command = program();
        command.env("FATHOM_TWINS", home.join("twins")).args(arguments).arg(&destroy).arg(path);
        Program::start(&mut command).finish_within(LONGEST).document()
    };
    let budget = format!("--budget={BUDGET_S}s");
    let identified = run(&["identify", "--save=device", "--json", "--no-history", &budget]);
    let check = run(&["twin", "check", "device", "--json", "--no-history"]);
    json!({"check": check, "iops": identified["iops"], "bytes_per_second": identified["bytes_per_second"]})
}

/// `000-iops: read-d1 +0.1 % 0.02, …`.
fn shown(line: &Value) -> String {
    let loads = line["check"]["loads"].as_array().into_iter().flatten().map(|load| {
        let number = |name: &str| load[name].as_f64().unwrap_or(f64::NAN);
        format!(
            "{} {:.0} IOPS {:+.1} % {:.3}{}",
            load["id"].as_str().unwrap_or_default(),
            load["volume"]["iops"].as_f64().unwrap_or(f64::NAN),
            100.0 * number("rate_difference"),
            number("latency_distance"),
            if load["agrees"] == true { "" } else { " DIFFERS" }
        )
    });
    format!("{}: {}", line["case"].as_str().unwrap_or_default(), loads.collect::<Vec<_>>().join(", "))
}
