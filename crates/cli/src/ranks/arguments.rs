//! `--fleet` and what belongs to it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fathom_model::Nanos;
use fathom_options::FleetOptions;

use crate::commands::words::positive_duration;
use crate::exit::Complaint;

/// The options of commands that many processes can run as one job.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Many hosts")]
pub struct FleetArguments {
    /// Join the job that a launcher (srun, mpiexec, mpirun) started; rank 0 reports on all ranks
    #[arg(long)]
    pub fleet: bool,
    /// Write the record of each rank to DIR/rank-NNNNN.json, for `fathom merge`
    #[arg(long, value_name = "DIR", requires = "fleet")]
    fleet_out: Option<PathBuf>,
    /// Longest wait for all ranks to come [default: 60s]
    #[arg(long, value_parser = positive_duration, value_name = "TIME", requires = "fleet")]
    fleet_join: Option<Nanos>,
    /// Longest wait for all ranks to be ready to measure [default: 30m]
    #[arg(long, value_parser = positive_duration, value_name = "TIME", requires = "fleet")]
    fleet_prepare: Option<Nanos>,
    /// Longest wait for other ranks beyond the runtime of a test [default: 30s]
    #[arg(long, value_parser = positive_duration, value_name = "TIME", requires = "fleet")]
    fleet_grace: Option<Nanos>,
    /// How tests start on all ranks [default: barrier]
    #[arg(long, value_enum, value_name = "HOW", requires = "fleet")]
    fleet_start: Option<StartWord>,
}

/// How tests start on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StartWord {
    /// At a barrier of the launcher
    Barrier,
    /// At an instant of the wall clock, where clocks are known to 1 ms
    Clock,
}

impl FleetArguments {
    /// What is asked for; `None` without `--fleet`.
    pub fn options(&self) -> Option<FleetOptions> {
        self.fleet.then(|| FleetOptions {
            is_asked_for: true,
            out: self.fleet_out.clone(),
            join: self.fleet_join,
            prepare: self.fleet_prepare,
            grace: self.fleet_grace,
            starts_by_clock: self.fleet_start == Some(StartWord::Clock),
            ..FleetOptions::default()
        })
    }
}

/// True where a command line asks for a job of many processes.
///
/// # Errors
/// Its options are given without `--fleet`.
pub fn is_asked(options: &FleetOptions) -> Result<bool, Complaint> {
    if !options.is_asked_for && options.is_given() {
        let hint = "add --fleet, and start it with srun, mpiexec or mpirun".to_owned();
        return Err(Complaint::usage("options of --fleet are given without it", Some(hint)));
    }
    Ok(options.is_asked_for)
}
