//! `cargo xtask campaign planted-causes`: measures devices whose numbers have a known cause and reports which causes were missed
//! or invented, and capped devices again and again, and reports which verdicts and warnings differed between repeats.

mod case;
mod run;
mod verdict;

use std::path::Path;

use anyhow::ensure;

use crate::device_campaign::DeviceCampaign;
use case::PlantedCase;
use verdict::Tally;

/// One after the other: most causes concern the whole machine.
const CAMPAIGN: DeviceCampaign<PlantedCase> = DeviceCampaign {
    name: "planted-causes",
    usual: (case::PLANTED + case::REPEATED, 1),
    needs: run::NEEDS,
    case: PlantedCase::of,
    name_of: |case| &case.name,
    measure: |case| verdict::judged(case, &run::bench(case)),
    shown: verdict::shown,
};

/// Runs the campaign, or what is left of it.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let results = CAMPAIGN.run(root, arguments)?;
    let tally = Tally::of(&results);
    println!("{tally}");
    ensure!(tally.holds(), "more than 2 of 40 causes were missed, or something was invented or differed");
    Ok(())
}
