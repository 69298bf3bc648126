//! Instruction counts of one operation of the loop, the recorder and the generators, compared with stored values.
//!
//! Counts do not depend on how busy the machine is, so they can fail the gate where times could not. The cases are the
//! bench targets called `instructions`; the values stand in `benches/instructions.toml` and change by a reviewed commit.

mod build;
mod count;
mod stored;
mod verdict;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail};

pub use build::{Compiler, changes_code};
use stored::StoredCounts;
use verdict::{CountLine, CountRatio};

use crate::gate::target_directory;

const STORE: &str = "benches/instructions.toml";

/// The arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct InstructionArguments {
    /// Store the counts instead of comparing them.
    write: bool,
    /// Only cases whose names contain this.
    only: Option<String>,
}

impl InstructionArguments {
    /// Reads the arguments; `None` where they make no sense.
    pub fn parse(arguments: &[&str]) -> Option<Self> {
        let mut asked = InstructionArguments::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "--write" => asked.write = true,
                "--only" => asked.only = Some((*arguments.next()?).to_owned()),
                _ => return None,
            }
        }
        Some(asked)
    }
}

/// Whether the counts could be compared on this machine.
pub enum Compared {
    /// They hold; with a note on how many and how closely.
    Holds(String),
    /// They could not be compared, and why.
    Skipped(String),
}

/// The command: counts, shows every case, and stores or compares.
pub fn run(root: &Path, asked: &InstructionArguments) -> anyhow::Result<()> {
    if let Some(why) = count::missing() {
        bail!("{why}");
    }
    let (now, lines) = compare(root, asked)?;
    println!("instructions per operation, rustc {}", now.compiler.rustc);
    lines.iter().for_each(|line| println!("  {line}"));
    if asked.write {
        return write(root, asked, now);
    }
    match judge(root, &now.compiler, &lines)? {
        Compared::Holds(note) => println!("{note}"),
        Compared::Skipped(why) => bail!("{why}"),
    }
    Ok(())
}

/// The step of the gate: counts and compares, and shows only what does not hold.
pub fn check(root: &Path) -> anyhow::Result<Compared> {
    if let Some(why) = count::missing() {
        return Ok(Compared::Skipped(why));
    }
    let (now, lines) = compare(root, &InstructionArguments::default())?;
    judge(root, &now.compiler, &lines)
}

/// Counts the requested cases, with their stored values.
fn compare(root: &Path, asked: &InstructionArguments) -> anyhow::Result<(StoredCounts, Vec<CountLine>)> {
    let compiler = Compiler::in_use()?;
    let wanted = |name: &str| asked.only.as_deref().is_none_or(|part| name.contains(part));
    let mut cases = build::cases(root)?;
    if !cases.iter().any(|case| wanted(&case.name)) {
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        bail!(
            "no case has \"{}\" in its name; there are {}",
            asked.only.as_deref().unwrap_or(""),
            names.join(", ")
        );
    }
    cases.retain(|case| wanted(&case.name));
    let counts = count::all(&cases, &target_directory(root).join("instructions"))?;
    let mut stored =
        StoredCounts::read(&root.join(STORE))?.map_or_else(BTreeMap::new, |stored| stored.counts);
    stored.retain(|name, _| wanted(name));
    let lines = verdict::lines(&stored, &counts);
    Ok((StoredCounts { compiler, counts }, lines))
}

/// Fails with a message for each case that does not hold.
fn judge(root: &Path, compiler: &Compiler, lines: &[CountLine]) -> anyhow::Result<Compared> {
    let path = root.join(STORE);
    let Some(stored) = StoredCounts::read(&path)? else {
        bail!("{STORE} is not there: `cargo xtask instructions --write` makes it");
    };
    if stored.compiler.host != compiler.host {
        return Ok(Compared::Skipped(format!(
            "{STORE} holds counts of {}, this is {}",
            stored.compiler.host, compiler.host
        )));
    }
    let ratio =
        if stored.compiler == *compiler { CountRatio::SAME_COMPILER } else { CountRatio::OTHER_COMPILER };
    let mut note = format!("{} cases within {}", lines.len(), ratio.name());
    if stored.compiler != *compiler {
        note += &format!(
            ", for the stored counts are of rustc {} and this is {}; store anew with `cargo xtask instructions --write`",
            stored.compiler.rustc, compiler.rustc
        );
    }
    let wrong: Vec<String> = lines.iter().filter_map(|line| line.complaint(ratio)).collect();
    if wrong.is_empty() {
        return Ok(Compared::Holds(note));
    }
    let profiles = target_directory(root).join("instructions");
    bail!(
        "{}\nwhere the instructions are: callgrind_annotate {}/CASE.out",
        wrong.join("\n"),
        profiles.display()
    )
}

/// Stores the counts; other cases keep their values.
fn write(root: &Path, asked: &InstructionArguments, now: StoredCounts) -> anyhow::Result<()> {
    let path = root.join(STORE);
    let mut new = now;
    if asked.only.is_some()
        && let Some(old) = StoredCounts::read(&path)?
    {
        if old.compiler != new.compiler {
            bail!(
                "the other values of {STORE} are of rustc {} on {}: store all anew, without --only",
                old.compiler.rustc,
                old.compiler.host
            );
        }
        for (name, count) in old.counts {
            new.counts.entry(name).or_insert(count);
        }
    }
    std::fs::create_dir_all(path.parent().unwrap_or(root)).context("cannot make the directory benches")?;
    std::fs::write(&path, new.text()).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {STORE}: say in the commit why the values have changed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed_or_refused() {
        let check = |arguments: &[&str], expected: Option<(bool, Option<&str>)>| {
            let expected =
                expected.map(|(write, only)| InstructionArguments { write, only: only.map(str::to_owned) });
            assert_eq!(InstructionArguments::parse(arguments), expected, "{arguments:?}");
        };
        check(&[], Some((false, None)));
        check(&["--write"], Some((true, None)));
        check(&["--only", "runner/", "--write"], Some((true, Some("runner/"))));
        check(&["--only"], None);
        check(&["--read"], None);
        check(&["runner"], None);
    }
}
