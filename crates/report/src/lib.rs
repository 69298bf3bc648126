//! Reports: pure functions from one stored record to text.
//!
//! A report never measures, opens or decides anything; it writes what the record says to the writer it is given.
//! To add one, write its module and a line in [`registry::FORMATS`].

#![forbid(unsafe_code)]

mod bench_below;
pub mod bench_json;
mod bench_rounds;
pub mod bench_table;
mod bench_together;
pub mod catalog_fit;
pub mod catalog_fit_json;
pub mod catalog_json;
pub mod catalog_list;
pub mod catalog_show;
mod columns;
pub mod document;
pub mod fio_banner;
mod fio_disk;
mod fio_entry;
pub mod fio_json;
mod fio_json_value;
mod fio_latency;
pub mod fio_normal;
mod fio_number;
mod fio_report;
mod fio_response;
pub mod history;
pub mod identify_json;
pub mod identify_text;
mod identify_words;
pub mod ioping;
pub mod ioping_json;
pub mod monitor_job;
pub mod monitor_json;
pub mod monitor_table;
pub mod ping_json;
pub mod ping_text;
mod plot;
pub mod prepare_json;
pub mod prepare_text;
pub mod promises;
pub mod registry;
mod run_json;
pub mod simulate_json;
pub mod simulate_text;
mod style;
pub mod surface_json;
pub mod surface_table;
mod sweep_goals;
pub mod sweep_json;
mod sweep_map;
pub mod sweep_table;
pub mod text_writer;

pub use columns::{pad, width};
pub use fio_number::{Family, NumberUnit, fio_number};
pub use fio_report::{FIO_VERSION, FioReport};
pub use registry::{FORMATS, ReportFormat};
pub use style::Style;
pub use text_writer::{JsonWriter, TextWriter};
