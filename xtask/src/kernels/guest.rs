//! The campaign's part in the guest: builds each stack, checks fathom on it, and takes it down again.

mod commands;
mod device;
mod refusals;
mod shell;
mod stacks;
mod uses;

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};

use super::check_line::{CheckKind, CheckLine, END};
use stacks::STACKS;

/// Writes a line for each check of one stack.
pub struct Reporter {
    stack: &'static str,
}

impl Reporter {
    /// Reports a check; the error is why it failed.
    fn report(&self, kind: CheckKind, name: &str, result: anyhow::Result<()>) {
        let failure = result.err().map(|error| format!("{error:#}"));
        println!("{}", CheckLine { stack: self.stack.to_owned(), kind, name: name.to_owned(), failure });
    }
}

/// Checks fathom on the stacks with `only` in their names.
pub fn run(only: &str) -> anyhow::Result<()> {
    shell::sh("modprobe nvme")?;
    shell::sh("modprobe loop")?;
    for stack in STACKS.iter().filter(|stack| stack.name.contains(only)) {
        let reporter = Reporter { stack: stack.name };
        match (stack.build)() {
            Err(error) => reporter.report(CheckKind::Command, "building the stack", Err(error)),
            Ok(built) => {
                commands::check(&built, &reporter);
                refusals::check(&built, &reporter);
            }
        }
    }
    println!("{END}");
    Ok(())
}

/// Keeps a device or file `exclusive`, `locked` or open for `writing` until standard input ends.
pub fn hold(how: &str, path: &Path) -> anyhow::Result<()> {
    let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
    let mut options = std::fs::File::options();
    match how {
        "exclusive" => options.read(true).custom_flags(exclusive),
        "locked" | "writing" => options.read(true).write(true),
        _ => bail!("cannot hold {how}"),
    };
    let file = options.open(path).with_context(|| format!("cannot open {}", path.display()))?;
    if how == "locked" {
        rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    }
    println!("{}", shell::READY);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
