//! The kernel's facts about block devices, file systems and the host, as plain structs from safe code.
//!
//! Parsers work on text and readers take a [`SysRoot`], so everything but the guard's real checks is tested without
//! hardware. Nothing here writes to a device, and an attribute that cannot be read is absent, never guessed.

pub mod block_trace;
pub mod cgroup;
pub mod diskstats;
pub mod error;
pub mod facts;
pub mod filesystem;
#[cfg(test)]
mod fixture;
pub mod guard;
pub mod handle;
pub mod host;
pub mod host_load;
pub mod kind;
pub mod locality;
mod memory;
pub mod obstacle;
pub mod processes;
pub mod provider;
pub mod root;
pub mod signature;
pub mod stack;
pub mod topology;
mod trace_events;
pub mod tuning;

pub use block_trace::{BlockTrace, TraceError};
pub use diskstats::{DiskSampler, DiskStats};
pub use error::DeviceError;
pub use facts::{DeviceFacts, is_host_managed_file};
pub use filesystem::{FilesystemFacts, filesystem_of};
pub use guard::{Process, Survey, in_use, unknown_data_on};
pub use handle::{HandleKind, TargetHandle, TargetIdentity, numbers_of, unfit_for_a_new_file};
pub use host::HostFacts;
pub use kind::DeviceKind;
pub use locality::Locality;
pub use obstacle::{Obstacle, ObstacleClass};
pub use root::SysRoot;
pub use stack::{PathKind, TargetStack};
