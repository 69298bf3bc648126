//! Tests with real files and real devices.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "helpers shared by the tests are not marked as tests")]

mod files;
mod guard;
