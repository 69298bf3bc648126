//! Real devices with known behaviour, for tests of the whole program: capped, slow, failing, full and signed ones.
//!
//! Everything made here undoes itself on drop, also when a test panics: loop devices are detached, caps lifted, mounts
//! taken down. Nothing here knows what a test asserts. Making devices needs root; see [`need!`] for machines without.

#![forbid(unsafe_code)]

mod block_trace;
mod cluster;
mod corpus;
mod documents;
mod fathom;
mod fio;
mod fleet_failure;
mod fuse_file;
mod fuzz_seeds;
mod known_disk;
mod logged_disk;
mod loop_device;
mod mount;
mod nbd;
mod noise;
mod postgres;
mod priority;
mod program;
mod shell;
mod skip;
mod staged_job;
mod throttle;
mod told;
mod turn;
mod wait;
mod witness;

pub use block_trace::BlockTrace;
pub use cluster::{Cluster, Launcher};
pub use corpus::{CorpusJob, corpus};
pub use documents::{document, find_number, kept_runs, kept_tests, newest_record, number, with_environment};
pub use fathom::{fathom, fathom_named, fathom_path, fathom_under, suite};
pub use fio::{FioReport, fio, fio_under};
pub use fleet_failure::{FailureOutcome, FleetFailure, PlantedFailure, RankPhase};
pub use fuzz_seeds::fuzz_seeds;
pub use known_disk::{BurstBucket, Direction, DiskModel, KnownDisk, RateLimit, RateUnit};
pub use logged_disk::LoggedDisk;
pub use loop_device::{LoopDevice, LoopOptions, Partition};
pub use mount::Mount;
pub use nbd::NbdDisk;
pub use noise::RepeatableNoise;
pub use postgres::PostgresServer;
pub use priority::GoingFirst;
pub use program::{Ended, Program, run};
pub use shell::{must_run, scratch};
pub use skip::{Need, missing, skip};
pub use staged_job::is_measuring;
pub use throttle::{Cap, Throttle};
pub use told::{is_long, noted, retried, test_name};
pub use turn::{Turn, loading, measuring_alone, measuring_capped, measuring_capped_first};
pub use wait::wait_for;
pub use witness::{Seen, Span};

/// Bytes of a mebibyte.
pub const MIB: u64 = 1 << 20;
