//! `cargo xtask campaign twins`: makes twins of capped devices and checks how far each is from its device.
//!
//! The devices are loop devices in memory under the kernel's throttle. A load agrees if rates differ by at most 3 % and the Kolmogorov
//! distance of the latencies is below 0.1, at depths 1, 8 and 64.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use fathom_tests::{Cap, LoopDevice, Need, Program, Throttle, fathom_under, scratch};
use serde_json::{Value, json};

use crate::device_campaign::DeviceCampaign;

const CAMPAIGN: DeviceCampaign<TwinCase> = DeviceCampaign {
    name: "twins",
    usual: (5, 1),
    needs: &[Need::Root, Need::BlockLimits, Need::Tool("losetup"), Need::Path("/dev/shm")],
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
    cap: Cap,
}

const MIB: u64 = 1 << 20;
const SIZE: u64 = 256 * MIB;
/// Reads and writes are identified within it; latencies are measured after it.
const BUDGET_S: u64 = 360;
const LONGEST: Duration = Duration::from_secs(30 * 60);

impl TwinCase {
    /// The `index`th: always the same.
    fn of(index: u64) -> TwinCase {
        let each = |iops: Option<u64>, bps: Option<u64>| Cap {
            read_iops: iops,
            write_iops: iops,
            read_bps: bps,
            write_bps: bps,
        };
        let (name, cap) = match index % 5 {
            0 => ("iops", each(Some(1000 + 137 * (index / 5)), None)),
            1 => ("few-iops", each(Some(317 + 41 * (index / 5)), None)),
            2 => ("bytes", each(None, Some((9 + index / 5) * MIB))),
            3 => ("both", each(Some(1500 + 90 * (index / 5)), Some(25 * MIB))),
            _ => (
                "apart",
                Cap { write_iops: Some(1100), write_bps: Some(20 * MIB), ..each(Some(2200), Some(48 * MIB)) },
            ),
        };
        TwinCase { name: format!("{index:03}-{name}"), cap }
    }
}

fn measured(case: &TwinCase) -> Value {
    let (device, home) = (LoopDevice::in_memory(SIZE), scratch());
    let throttle = Throttle::new(device.path(), &case.cap);
    let destroy = format!("--destroy-data={}", device.path().display());
    let run = |arguments: &[&str]| {
        let mut command = fathom_under(&throttle, home.path());
        command
            .env("FATHOM_TWINS", home.path().join("twins"))
            .args(arguments)
            .arg(&destroy)
            .arg(device.path());
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
