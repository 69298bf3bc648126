//! The store of past runs: one SQLite file per user, written test by test during a run.
//!
//! [`History`] is the file, [`SideFile`] a separate file for one record if the history cannot be used, [`Store`] either
//! of them or none. The only crate that links a database. It never decides whether a run is kept, and none of its
//! failures stops a measurement.

#![forbid(unsafe_code)]

mod columns;
mod connection;
mod error;
mod history;
mod import;
mod list;
mod notes;
mod place;
mod side_file;
mod size;
mod store;
mod trend;

pub use connection::hurry;
pub use error::{Error, SqliteError};
pub use history::{History, PATIENCE, RunId};
pub use list::{Filter, Listing};
pub use place::default_path;
pub use side_file::SideFile;
pub use size::HistorySize;
pub use store::{HistoryPath, Kept, Store, Warning};
pub use trend::{RunKey, TrendQuery};
