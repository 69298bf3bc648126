//! Files that users name, in directories that others may write to, and inputs that never end.

mod inputs;
mod outputs;
mod planted;
