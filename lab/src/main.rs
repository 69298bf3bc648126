//! Campaigns: experiments that run for as long as one likes, outside the gate: `cargo lab NAME`. Each draws cases, runs them and
//! ends with a verdict ([`driver`]).

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)] // A program that talks to developers.

mod advise;
mod advise_speed;
mod causes;
mod driver;
mod extremes;
mod fio;
mod fleet;
mod full_length;
mod fuzz;
mod identify;
mod kernels;
mod known;
mod pages;
mod twins;
mod versus;

use std::process::ExitCode;

use anyhow::ensure;
use clap::{Arg, Command};
use driver::Campaign;
use xtask::process::{now, shown_duration};

const CAMPAIGNS: &[Campaign] = &[
    advise::DEVICES,
    full_length::ADVISE_SUMS,
    advise_speed::CAMPAIGN,
    full_length::COMPARISONS,
    full_length::CONTRADICTIONS,
    extremes::CAMPAIGN,
    fio::CORPUS,
    fio::PARSER,
    fleet::FAILURES,
    fleet::SCALE,
    fuzz::CAMPAIGN,
    identify::CAMPAIGN,
    kernels::CAMPAIGN,
    known::CAMPAIGN,
    known::REPEATS,
    full_length::LONG_TESTS,
    pages::CAMPAIGN,
    causes::CAMPAIGN,
    twins::CAMPAIGN,
    versus::CAMPAIGN,
];

fn command() -> Command {
    let all =
        Command::new("all").about("Run every campaign but versus-fio, for a night, and list the verdicts");
    let word = |name: &'static str| Arg::new(name).default_value("");
    let in_guest = Command::new(kernels::IN_GUEST).hide(true).arg(word("stack"));
    let hold = Command::new(kernels::HOLD).hide(true).args([word("how"), word("path")]);
    Command::new("cargo lab")
        .about("Campaigns: experiments outside the gate")
        .arg_required_else_help(true)
        .subcommand_required(true)
        .subcommands(CAMPAIGNS.iter().map(Campaign::command))
        .subcommands([all, in_guest, hold])
}

fn main() -> ExitCode {
    let words = command().get_matches();
    let (name, words) = words.subcommand().expect("clap demands one");
    let text = |name| words.get_one::<String>(name).map_or("", String::as_str);
    let result = match CAMPAIGNS.iter().find(|campaign| campaign.name == name) {
        Some(campaign) => campaign.run(words),
        None if name == kernels::IN_GUEST => kernels::guest::run(text("stack")),
        None if name == kernels::HOLD => kernels::guest::hold(text("how"), text("path").as_ref()),
        None => run_all(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one campaign after the other, as each is by itself: one that fails does not stop the next. versus-fio, which writes pages,
/// is not among them.
fn run_all() -> anyhow::Result<()> {
    let mut failed = 0;
    let mut lines = Vec::new();
    for campaign in CAMPAIGNS.iter().filter(|campaign| campaign.name != versus::CAMPAIGN.name) {
        println!("campaign {} ...", campaign.name);
        let begun = now();
        let result = campaign.run(&campaign.command().get_matches_from([campaign.name]));
        let verdict = match &result {
            Ok(()) => "holds".to_owned(),
            Err(error) => format!("FAILED: {error:#}"),
        };
        println!("{verdict}");
        failed += usize::from(result.is_err());
        let first = verdict.lines().next().unwrap_or_default();
        lines.push(format!("{:<17} {:>8}  {first}", campaign.name, shown_duration(begun.elapsed())));
    }
    println!("{}", lines.join("\n"));
    ensure!(failed == 0, "{failed} of {} campaigns failed", lines.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_understood() {
        command().debug_assert();
        for campaign in CAMPAIGNS {
            let words = campaign.command().get_matches_from([campaign.name, "--only", "x", "--jobs=3"]);
            assert_eq!(words.get_one::<u64>("jobs"), Some(&3), "{}", campaign.name);
            let refused = campaign.command().try_get_matches_from([campaign.name, "--picnic"]);
            assert!(refused.is_err(), "{}", campaign.name);
        }
        let drawn = CAMPAIGNS.iter().find(|campaign| campaign.cases > 0).unwrap();
        assert!(drawn.command().try_get_matches_from([drawn.name, "--cases", "0"]).is_err());
    }
}
