//! Runs plans: prepares the targets, drives and observes the workers, and returns the outcome.
//!
//! The driver owns time, counting and stopping; engines only move bytes. The crate does not depend on options, records
//! or reports, and has no globals: several runs in one process are independent.
#![forbid(unsafe_code)]

mod background;
mod batching;
mod clock;
mod control;
mod disks;
mod drive;
mod error;
mod execute;
mod exits;
mod feed;
mod files;
mod filler;
mod flush;
mod guard;
mod handle;
mod host_setup;
mod host_watch;
mod kernel_watch;
mod layout;
mod logging;
mod names;
mod observe;
mod prepare;
mod recorder;
mod recording;
mod responses;
mod schedule;
mod session;
mod single;
mod slots;
mod slowest;
mod stalls;
mod steady;
mod stop;
mod targets;
mod thread_setup;
mod usage;
mod verifier;
mod verify_spec;
mod worker;

pub use background::{BackgroundLoad, MachineTick, MachineTicks, observe_background};
pub use control::{InFlight, PhaseGate, ReadyPhase, RunControl, RunState};
pub use drive::Step;
pub use error::RunError;
pub use execute::run_alone;
pub use files::make_directories;
pub use guard::{WritePermit, Written, admit, unknown_data};
pub use handle::{EventSender, Progress, RunEvent, RunHandle};
pub use layout::LayoutProgress;
pub use logging::CompletionLog;
pub use observe::RunObserver;
pub use prepare::Prepared;
pub use recording::load_recordings;
pub use session::{ClockFacts, Session};
pub use single::{Requester, SingleCompletion, SingleFeed, SingleRequest};
pub use stop::StopHandle;
