//! Requirements of tests on the machine, and the report of unmet ones.
//!
//! A skip goes to stderr past the test runner's capture, and into the file that `FATHOM_TEST_SKIPS` names, so that
//! `cargo xtask test` can count it. Where `CI` or `FATHOM_TEST_NO_SKIP` is set a skip is a failure instead.

use std::path::Path;

use crate::told::{tell, test_name};

/// One thing a test cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The privilege to make devices and mounts.
    Root,
    /// A program on the search path.
    Tool(&'static str),
    /// A path that the kernel provides where it has the feature.
    Path(&'static str),
    /// Block I/O limits by control group, version 1 or 2.
    BlockLimits,
}

/// Returns from the test, saying why, unless the machine has all of: `root`, `limits`, `tool "NAME"`, `path "PATH"`.
///
/// ```text
/// need!(root, limits, tool "losetup", tool "fio");
/// ```
#[macro_export]
macro_rules! need {
    ($($kind:ident $($name:literal)?),+ $(,)?) => {
        if let Some(why) = $crate::missing(&[$($crate::need!(@one $kind $($name)?)),+]) {
            return $crate::skip(&why);
        }
    };
    (@one root) => { $crate::Need::Root };
    (@one limits) => { $crate::Need::BlockLimits };
    (@one tool $name:literal) => { $crate::Need::Tool($name) };
    (@one path $name:literal) => { $crate::Need::Path($name) };
}

/// The first of `needs` that this machine does not have, in words; `None` when it has them all.
pub fn missing(needs: &[Need]) -> Option<String> {
    needs.iter().find_map(|need| match need {
        Need::Root => (!rustix::process::geteuid().is_root()).then(|| "needs root".to_owned()),
        Need::Tool(name) => (!is_on_path(name)).then(|| format!("needs the program {name}")),
        Need::Path(path) => (!Path::new(path).exists()).then(|| format!("needs {path}")),
        Need::BlockLimits => crate::throttle::hierarchy()
            .is_none()
            .then(|| "needs a control group with block I/O limits".to_owned()),
    })
}

/// Says on stderr that the running test is skipped and why.
///
/// # Panics
/// Where skipping is not allowed.
pub fn skip(why: &str) {
    let line = format!("SKIPPED {}: {why}", test_name());
    let forbidden = ["CI", "FATHOM_TEST_NO_SKIP"].into_iter().find(|name| std::env::var_os(name).is_some());
    assert!(
        forbidden.is_none(),
        "{line}\na skip is a failure where {} is set",
        forbidden.unwrap_or_default()
    );
    tell("FATHOM_TEST_SKIPS", &line);
}

/// True if a program of that name exists; root's directories are searched independently of `PATH`.
fn is_on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|directory| directory.join(name).is_file())
}
