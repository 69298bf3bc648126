//! `cargo xtask campaign fio-parser`: job files and command lines drawn from the option table, parsed by fathom and by Debian's fio
//! (`--parse-only`). Both accept or refuse the same, but for the reasons on the compatibility page.

mod case;
mod verdict;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::ensure;
use fathom_tests::{Need, fathom, scratch};
use serde_json::{Value, json};

use crate::device_campaign::DeviceCampaign;
use case::ParserCase;
use verdict::{Parsed, Verdict};

/// Inputs are independent of one another, so any number of them is a campaign.
const CAMPAIGN: DeviceCampaign<ParserCase> = DeviceCampaign {
    name: "fio-parser",
    usual: (10_000, 2),
    needs: &[Need::Tool("fio")],
    case: ParserCase::of,
    name_of: |case| &case.name,
    measure: compared,
    shown: |line| format!("{}: {}", line["case"].as_str().unwrap_or_default(), line["verdict"]),
};

/// Runs the campaign, or what is left of it.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let results = CAMPAIGN.run(root, arguments)?;
    let with = |verdict: Verdict| results.iter().filter(move |line| line["verdict"] == verdict.name());
    let count = |verdict| with(verdict).count();
    println!(
        "{} inputs: {} accepted by both, {} refused by both, {} refused for a documented reason, {} parsed otherwise",
        results.len(),
        count(Verdict::Accepted),
        count(Verdict::Refused),
        count(Verdict::Documented),
        count(Verdict::Otherwise)
    );
    for line in with(Verdict::Otherwise) {
        println!(
            "\n{}\n  fathom: {}\n  fio: {}",
            line["case"].as_str().unwrap_or_default(),
            line["fathom"],
            line["fio"]
        );
    }
    ensure!(count(Verdict::Otherwise) == 0, "inputs are parsed otherwise than by fio");
    Ok(())
}

/// What both make of `case`.
fn compared(case: &ParserCase) -> Value {
    let home = scratch();
    let mut ours = fathom(home.path());
    ours.arg("fio");
    let parsed = |mut program: Command| {
        let place = scratch();
        program.arg("--parse-only").current_dir(place.path()).stdin(Stdio::null());
        if case.is_job_file {
            std::fs::write(place.path().join("job"), case.job_file()).expect("a job file can be written");
            program.arg("job");
        } else {
            program.args(case.command_line());
        }
        Parsed::of(&program.output().expect("both programs can be run"))
    };
    let (ours, fios) = (parsed(ours), parsed(Command::new("fio")));
    json!({ "verdict": Verdict::of(&ours, &fios).name(), "fathom": ours.shown(), "fio": fios.shown() })
}
