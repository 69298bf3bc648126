//! Recordings of I/O, in the formats of other programs and of fathom.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod formats;
mod recordings;
