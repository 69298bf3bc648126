//! `--tui` and `--live` of `fathom fio`: the jobs of a run as one test.

use std::sync::Arc;

use fathom_model::RunPlan;
use fathom_model::units::UnitSystem;
use fathom_options::CommandOptions;
use fathom_record::RunHeader;
use fathom_runner::RunControl;

use super::keeper::targets;
use super::{named, refusal};
use crate::exit::Complaint;
use crate::live::arguments::{LiveArguments, LiveStream};
use crate::live::single::SingleTest;
use crate::live::{LiveOutputs, LiveRun, NextKey};

/// Opens what the command line asks for to show a run of `plan` while it goes on; others can follow a run that is kept.
///
/// # Errors
/// It names no stream, or the terminal, a file or an address cannot be had.
pub fn open(
    command: &CommandOptions,
    plan: &Arc<RunPlan>,
    header: &RunHeader,
    control: RunControl,
    can_be_followed: bool,
) -> Result<SingleTest, Complaint> {
    let parse = |text: &String| {
        LiveStream::parse(text)
            .map_err(|sentence| refusal(format!("fio: cannot stream to --live={text}"), Some(sentence)))
    };
    let streams = command.live.iter().map(parse).collect::<Result<_, _>>()?;
    let arguments = LiveArguments { tui: command.tui, streams };
    let next = NextKey::EndTest(control);
    let run = LiveRun { steps: Vec::new(), next, units: UnitSystem::default(), can_be_followed };
    let outputs = LiveOutputs::open(&arguments, run).map_err(named)?;
    let mut shown = SingleTest::new(outputs);
    let names: Vec<String> = targets(plan).iter().map(|path| path.display().to_string()).collect();
    let header = RunHeader { target: names.join(","), ..header.clone() };
    let mut jobs: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    jobs.dedup();
    shown.begin(&header, "fio", jobs.join(", "));
    Ok(shown)
}
