//! `cargo xtask campaign advise-devices`: loads of known shape are recorded on a capped volume, `fathom advise` predicts what three
//! others would give them, and then they run on those.
//!
//! Volumes are files with exact limits behind a loop device ([`fathom_tests::CappedDisk`]), not the kernel's throttle: that delays
//! requests before the device that is recorded, and grants them in slices, while limits of volumes lie behind the device and are
//! smooth. Recorded is the loop device. What a load gets is measured on the file, since a loop device holds 128 requests at most and
//! what waits before it is in no latency. Latencies of candidates are those of their data sheet: nothing is taken from the
//! recording but by `fathom advise`.
//!
//! `--sums` does the same in virtual time, with recordings reduced to sums of 1 s and 5 min: the truth has to lie in the stated range.

mod case;
mod load;
mod run;
mod sums;
mod verdict;

use std::path::Path;

use anyhow::ensure;

use crate::device_campaign::DeviceCampaign;
use case::AdviseCase;
use verdict::Tally;

/// Each shape twice, one after the other: percentiles suffer from what else runs.
const CAMPAIGN: DeviceCampaign<AdviseCase> = DeviceCampaign {
    name: "advise-devices",
    usual: (10, 1),
    needs: run::NEEDS,
    case: AdviseCase::of,
    name_of: |case| &case.name,
    measure: |case| verdict::judged(&run::measured(case)),
    shown: verdict::shown,
};

/// Runs the campaign, or what is left of it.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    if let Some((&"--sums", rest)) = arguments.split_first() {
        return sums::campaign(root, rest);
    }
    let results = CAMPAIGN.run(root, arguments)?;
    println!("{}", verdict::table(&results));
    let tally = Tally::of(&results);
    println!("{tally}");
    ensure!(tally.holds(), "a prediction is further from the truth than it may be");
    Ok(())
}
