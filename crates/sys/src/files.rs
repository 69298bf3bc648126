//! Reading what a user names and writing where a user says, without harm to anything that lies there.
//!
//! [`create_output`] and [`replace_output`] are the only ways by which a file with a name is made or written;
//! [`Input`] is the only way by which one is read. The files under test are not the business of this module.

mod database;
mod input;
mod output;
mod path_walk;
mod refusal;

pub use database::{PrivateAccess, ResolvedFile, resolve_private_file};
pub use input::{
    CATALOGUE, EXPECTATIONS, Input, InputCause, InputError, JOB_FILE, Lines, RECORD, SUITE, SYSTEM_TEXT,
    TRACE,
};
pub use output::{create_new, create_output, private_directory, replace_output};
pub use refusal::PathRefusal;
