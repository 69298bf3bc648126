//! The store of past runs: one SQLite file per user, or a PostgreSQL server for several, written test by test during a run.
//!
//! [`History`] is either of them, [`SideFile`] a separate file for one record if the history cannot be used, [`Store`] any
//! of them or none. The only crate that links a database. It never decides whether a run is kept, and none of its
//! failures stops a measurement.

#![forbid(unsafe_code)]

mod columns;
mod database;
mod error;
mod history;
mod import;
mod list;
mod location;
mod migrations;
mod notes;
mod place;
mod side_file;
mod size;
mod store;
mod trend;
mod unsent;

pub use database::{SERVER_PATIENCE, hurry};
pub use error::{Error, ErrorKind};
pub use history::{History, PATIENCE, RunId};
pub use import::ImportedRun;
pub use list::{Filter, Listing};
pub use location::{Location, ServerUri, without_password};
pub use notes::is_tag;
pub use place::default_path;
pub use side_file::SideFile;
pub use size::HistorySize;
pub use store::{HistoryPath, Kept, Store, Warning};
pub use trend::{RunKey, TrendQuery};
pub use unsent::Sent;
