//! How many files this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to `wanted` where it is lower: up to the hard limit, and past it where this user may. What
/// cannot be raised shows when a file is opened.
pub fn allow_open_files(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    let is_enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= wanted);
    if is_enough(limit.current) {
        return;
    }
    if !is_enough(limit.maximum)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: Some(wanted) }).is_ok()
    {
        return;
    }
    let current = limit.maximum.map_or(wanted, |most| most.min(wanted));
    // Not allowed in a sandbox: then the limit stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
}

/// The most files that this process may open where it asks for them; `None` without a limit.
pub fn open_files_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_allowed_and_never_lowered() {
        let before = getrlimit(Resource::Nofile);
        allow_open_files(1);
        assert_eq!(getrlimit(Resource::Nofile), before);
        allow_open_files(before.current.unwrap_or(0).saturating_add(1));
        let after = getrlimit(Resource::Nofile);
        assert!(after.current >= before.current && after.maximum >= before.maximum, "{before:?} {after:?}");
        let could = before.maximum.is_none_or(|most| before.current.is_some_and(|now| now < most));
        assert!(!could || after.current > before.current, "{before:?} {after:?}");
    }
}
