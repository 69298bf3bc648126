//! Reports as printed: of records made by hand, and of stored runs of fio.

#![forbid(unsafe_code)]

mod fio_fixtures;
mod own_reports;
mod sample;
mod support;
