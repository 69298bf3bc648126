//! How the common turn reaps completions.

/// How to reap completions.
pub(super) struct Wait {
    /// Another request may be issued, so there is no wait.
    pub may_issue: bool,
    /// Completions to wait for.
    pub min: u32,
    /// End of the wait, session ns.
    pub until: u64,
}
