//! Reports: pure functions from one stored record to text.
//!
//! A report never measures, opens or decides anything; it writes what the record says to the writer it is given.
//! To add one, write its module and a line in [`registry::FORMATS`].

#![forbid(unsafe_code)]

pub mod bench;
pub mod catalog;
mod columns;
pub mod document;
pub mod fio;
pub mod formats;
pub mod history;
pub mod identify;
pub mod ioping;
pub mod monitor;
pub mod ping;
mod plot;
pub mod prepare;
pub mod promises;
pub mod registry;
mod run_json;
mod run_view;
pub mod simulate;
mod style;
pub mod surface;
pub mod sweep;
pub mod text_writer;
pub mod view;

pub use columns::{pad, width, wrap};
pub use fio::number::{Family, NumberUnit, fio_number};
pub use fio::report::{FIO_VERSION, FioReport};
pub use registry::{FORMATS, ReportFormat};
pub use style::Style;
pub use text_writer::{JsonWriter, TextWriter};
