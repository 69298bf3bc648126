//! fio's grammar: text -> [`JobOptions`] (options as given) -> [`fathom_model::RunPlan`] (their meaning).
//!
//! One option is one row of a table in `table/`; the parser, the help and the compatibility page all derive from it.
//! The crate opens no target and reads no clock and no environment. Files, variables and facts about the machine are
//! passed in through [`ParseEnvironment`] and [`PlanningHost`].

#![forbid(unsafe_code)]

mod access;
mod arithmetic;
mod block_split;
mod cli;
mod clones;
mod command;
mod distribution;
mod doc;
mod engines;
mod errno;
mod error;
mod fleet;
mod job_options;
mod jobfile;
mod listed;
mod pasted;
mod pattern;
mod priorities;
mod rate;
mod refused_engines;
mod replay;
mod resolve;
mod section;
mod show;
mod table;
pub mod value;
mod verify;

pub use cli::{Invocation, MachineNumbers, ParseEnvironment, parse_command_line};
pub use command::{CommandOptions, DebugClass, Eta, IdleProfile, OutputFormat};
pub use doc::{
    OptionSummary, command_help, command_summaries, compatibility_page, engine_help, job_summaries, usage,
};
pub use engines::EngineRow;
pub use error::{JobFilePosition, OptionError};
pub use fathom_model::{EngineOption, OptionValueKind};
pub use fleet::FleetOptions;
pub use job_options::{CpuPolicy, DedupeOption, JobOptions, RandomGenerator, ReadWriteOption, VerifyOptions};
pub use jobfile::JOB_FILE_LIMIT;
pub use resolve::{MAX_WORKERS, PlanningHost, resolve};
pub use section::{RawOptions, Section};
pub use show::{command_line, show_command};
pub use table::{JobOption, OPTION_TABLE, UNSUPPORTED, UnsupportedOption};
