//! Real devices with known behaviour, for tests of the whole program: capped, slow, failing, full and signed ones.
//!
//! Everything made here undoes itself on drop, also when a test panics: loop devices are detached, caps lifted, mounts
//! taken down. Nothing here knows what a test asserts. Making devices needs root; see [`need!`] for machines without.

#![forbid(unsafe_code)]

mod block_trace;
mod fathom;
mod fio;
mod logged_disk;
mod loop_device;
mod mount;
mod nbd;
mod priority;
mod program;
mod shell;
mod skip;
mod throttle;
mod wait;
mod witness;

pub use block_trace::BlockTrace;
pub use fathom::{fathom, fathom_named, fathom_path, fathom_under};
pub use fio::{FioReport, fio, fio_under};
pub use logged_disk::LoggedDisk;
pub use loop_device::{LoopDevice, LoopOptions};
pub use mount::Mount;
pub use nbd::NbdDisk;
pub use priority::GoingFirst;
pub use program::{Ended, Program, run};
pub use shell::{must_run, scratch};
pub use skip::{Need, missing, skip};
pub use throttle::{Cap, Throttle};
pub use wait::wait_for;
pub use witness::{Seen, Span};

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static ALONE: RwLock<()> = RwLock::new(());

/// Held by every test that measures: two tests that share the disk and the processors would each spoil the other's
/// numbers. A test that failed while holding it does not fail the others.
pub fn measuring_alone() -> RwLockWriteGuard<'static, ()> {
    ALONE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Held by every test that loads the machine and asserts no number: it runs beside its like, but not beside one that
/// measures. Never together with [`measuring_alone`].
pub fn loading() -> RwLockReadGuard<'static, ()> {
    ALONE.read().unwrap_or_else(PoisonError::into_inner)
}
