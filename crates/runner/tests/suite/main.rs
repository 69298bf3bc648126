//! Whole runs, in virtual time and on real files.

#![forbid(unsafe_code)]

mod alone;
mod handle;
mod open_loop;
mod plans;
mod real;
mod repeats;
mod simulated;
mod time_left;
mod volumes;
