//! Files that users name, in directories that others may write to, and inputs that never end.

#![allow(clippy::unwrap_used, reason = "what the tests share is not marked as a test")]

mod inputs;
mod outputs;
mod planted;
