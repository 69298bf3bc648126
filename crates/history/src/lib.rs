//! The store of past runs: one SQLite file per user, written test by test while a run goes on.
//!
//! [`History`] is the file, [`SideFile`] one record beside it for when the file cannot be used, [`Store`] either of
//! them or none. The only crate that links a database. It never decides whether a run is kept, and no failure of it
//! is a reason to stop measuring.

#![forbid(unsafe_code)]

mod connection;
mod error;
mod history;
mod import;
mod list;
mod place;
mod side_file;
mod store;
mod trend;

pub use connection::hurry;
pub use error::{Error, SqliteError};
pub use history::{History, PATIENCE, RunId};
pub use list::{Filter, Listing};
pub use place::default_path;
pub use side_file::SideFile;
pub use store::{HistoryPath, Kept, Store, Warning};
pub use trend::TrendPoint;
