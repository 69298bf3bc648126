//! Reports: pure functions of records and of the results drawn from them.
//!
//! Each activity has a folder with its `view`, which any of the [`formats`] renders, and its JSON document. The formats of fio and
//! ioping stand apart: they imitate those tools byte for byte.

#![forbid(unsafe_code)]

pub mod advise;
mod axis_text;
pub mod bench;
pub mod catalog;
mod columns;
pub mod compare;
pub mod doctor;
pub mod document;
pub mod export;
pub mod fio;
pub mod fleet;
pub mod fleet_check;
pub mod formats;
pub mod history;
pub mod html;
pub mod identify;
pub mod import;
pub mod ioping;
pub mod live;
mod metrics_text;
pub mod monitor;
pub mod page;
pub mod ping;
pub mod prepare;
mod run_json;
mod run_view;
pub mod scaling;
pub mod schedule;
pub mod simulate;
mod stream;
mod style;
pub mod surface;
pub mod sweep;
pub mod text_writer;
pub mod trace_info;
pub mod twin;
mod verdict;
pub mod view;
mod xml;

pub use columns::{pad, width, wrap};
pub use fio::number::{Family, NumberUnit, fio_number};
pub use fio::report::{FIO_VERSION, FioReport};
pub use stream::{RowSource, StreamedRows};
pub use style::Style;
pub use text_writer::{JsonWriter, TextWriter};
