//! `fathom man`: manual pages for `man`, made from the descriptions that `--help` is made from.

mod page;

use std::path::{Path, PathBuf};

use clap::{Args, Command, ValueHint};
use fathom_sys::files::{PathRefusal, replace_output};

use super::monitor::NEW_FILE_MODE;
use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom man` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ManArguments {
    /// Command whose page to print, such as bench or history list [default: fathom itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Write the pages of all commands to this directory instead
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  fathom man bench | man -l -
  fathom man history list > fathom-history-list.1
  fathom man --dir /usr/local/share/man/man1";

/// Prints a page, or writes all of them.
///
/// # Errors
/// There is no such command; a page cannot be written.
pub fn run(arguments: &ManArguments) -> Result<Exit, Complaint> {
    let root = root();
    if let Some(dir) = &arguments.dir {
        return write_all(&root, dir);
    }
    let mut path = vec![&root];
    for word in &arguments.command {
        let parent = path[path.len() - 1];
        let Some(found) = listed(parent).find(|one| one.get_name() == word) else {
            let known: Vec<&str> = listed(parent).map(Command::get_name).collect();
            let hint = match known.is_empty() {
                true => {
                    format!("`fathom man {}` is the last page", arguments.command[..path.len() - 1].join(" "))
                }
                false => format!("use one of {}", known.join(", ")),
            };
            return Err(Complaint::usage(format!("unknown command '{word}'"), Some(hint)));
        };
        path.push(found);
    }
    let page = page::page(&path);
    output::print(|out| out.own_lines(&page))?;
    Ok(Exit::Done)
}

/// The whole command line, without the commands that print help.
fn root() -> Command {
    let mut root = super::command().disable_help_subcommand(true);
    root.build();
    root
}

/// The commands below `command` that have a page.
fn listed(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set())
}

/// Every command with a page, each with those above it.
fn all_paths(root: &Command) -> Vec<Vec<&Command>> {
    let mut paths = vec![vec![root]];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        next += 1;
        let below = path.last().copied().into_iter().flat_map(listed);
        paths.extend(below.map(|one| path.iter().copied().chain([one]).collect()));
    }
    paths
}

fn write_all(root: &Command, dir: &Path) -> Result<Exit, Complaint> {
    if !dir.is_dir() {
        let hint = Some(format!("create it with mkdir -p {}", dir.display()));
        return Err(Complaint::usage(format!("{} is not a directory", dir.display()), hint));
    }
    let paths = all_paths(root);
    for path in &paths {
        let (file, page) = (dir.join(format!("{}.1", page::name(path))), page::page(path));
        replace_output(&file, NEW_FILE_MODE, |out| output::write_to(out, |out| out.own_lines(&page)))
            .map_err(|error| {
                let hint = PathRefusal::of(&error).map(|refusal| refusal.hint().to_owned());
                Complaint::failed(format!("cannot write {}: {}", file.display(), output::plain(&error)), hint)
            })?;
    }
    output::print(|out| writeln!(out, "Wrote {} pages to {}.", paths.len(), dir.display()))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let root = root();
        let paths = all_paths(&root);
        let names: Vec<String> = paths.iter().map(|path| page::name(path)).collect();
        for name in ["fathom", "fathom-bench", "fathom-history-list", "fathom-catalog-fit", "fathom-man"] {
            assert!(names.contains(&name.to_owned()), "{names:?}");
        }
        for (path, name) in paths.iter().zip(&names) {
            let page = page::page(path);
            assert!(page.starts_with(&format!(".TH {} 1 ", name.to_uppercase())), "{name}");
            for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES"] {
                assert!(page.contains(&format!("\n.SH {section}\n")), "{name}: {section}");
            }
            assert!(page.is_ascii(), "{name}");
            let command = path[path.len() - 1];
            for long in
                command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(clap::Arg::get_long)
            {
                assert!(page.contains(&format!("--{long}").replace('-', "\\-")), "{name}: {long}");
            }
        }
    }
}
