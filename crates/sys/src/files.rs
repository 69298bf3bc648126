//! Reads and writes files that users name, without harm to existing files.
//!
//! [`create_output`] and [`replace_output`] are the only ways by which a file with a name is made or written;
//! [`Input`] is the only way by which one is read. The files under test are not the business of this module.

mod input;
mod output;
mod path_walk;
mod private;
mod refusal;
mod taken;

pub use input::{
    CATALOGUE, COMPRESSED_LOG, EXPECTATIONS, HOST_LIST, IMPORT, Input, InputCause, InputError, JOB_FILE,
    LOAD_EXPORT, Lines, RECORD, RECORDING, SUITE, SYSTEM_TEXT, TOKEN, TRACE, TWIN, VERIFY_STATE,
};
pub use output::{check_output, create_new, create_output, private_directory, replace_output};
pub use private::{
    PrivateAccess, ResolvedFile, check_writable_directory, is_own_directory, make_private_directories,
    resolve_private_file, try_directory,
};
pub use refusal::PathRefusal;
pub use taken::{DATABASE_FILES, HISTORY_OWNER, keep_history, own_use};
