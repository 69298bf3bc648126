//! `cargo xtask campaign identify-devices`: identifies capped devices whose limits are known and reports how many intervals hold
//! them, and whether buckets were invented where a rate decays or another process takes a share.
//!
//! The devices are loop devices in memory under the kernel's throttle: reads and writes have separate limits.

mod case;
mod run;
mod verdict;

use std::path::Path;

use anyhow::ensure;

use crate::device_campaign::DeviceCampaign;
use case::DeviceCase;
use verdict::Tally;

/// 120 devices are more than a hundred limits; each is capped far below what the machine can do.
const CAMPAIGN: DeviceCampaign<DeviceCase> = DeviceCampaign {
    name: "identify-devices",
    usual: (120, 4),
    needs: run::NEEDS,
    case: DeviceCase::of,
    name_of: |case| &case.name,
    measure: |case| verdict::judged(case, &run::identify(case)),
    shown: verdict::shown,
};

/// Runs the campaign, or what is left of it.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let results = CAMPAIGN.run(root, arguments)?;
    let tally = Tally::of(results.iter());
    println!("{tally}");
    ensure!(tally.holds(), "fewer than 90 % of the intervals hold, or a bucket was invented");
    Ok(())
}
