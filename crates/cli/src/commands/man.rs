//! `fathom man`: manual pages for `man`, made from the descriptions that `--help` is made from.

use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap::{Args, Command, ValueHint};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use fathom_sys::files::{PathRefusal, replace_output};

use super::monitor::NEW_FILE_MODE;
use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom man` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
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
    let page = page(&path);
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
        let (file, page) = (dir.join(format!("{}.1", name(path))), page(path));
        replace_output(&file, NEW_FILE_MODE, |out| output::write_to(out, |out| out.own_lines(&page)))
            .map_err(|error| {
                let hint = PathRefusal::of(&error).map(|refusal| refusal.hint().to_owned());
                Complaint::failed(format!("cannot write {}: {}", file.display(), output::plain(&error)), hint)
            })?;
    }
    output::print(|out| writeln!(out, "Wrote {} pages to {}.", paths.len(), dir.display()))?;
    Ok(Exit::Done)
}

/// The version at the foot of every page.
const VERSION: &str = concat!("fathom ", env!("CARGO_PKG_VERSION"));
/// The heading of the exit codes, which are running text.
const EXIT_STATUS: &str = "Exit status";

/// The name of the page of the last command of `path`: `fathom-history-list`.
pub fn name(path: &[&Command]) -> String {
    path.iter().map(|command| command.get_name()).collect::<Vec<_>>().join("-")
}

/// The page of the last command of `path`.
pub fn page(path: &[&Command]) -> String {
    let Some(command) = path.last() else { return String::new() };
    let man = Man::new((*command).clone().subcommand_help_heading("COMMANDS"));
    let mut page = Vec::new();
    // Writing into a vector cannot fail.
    let _ = man.render_name_section(&mut page);
    let _ = described(command).to_writer(&mut page);
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        let _ = man.render_options_section(&mut page);
    }
    if listed(command).next().is_some() {
        let _ = man.render_subcommands_section(&mut page);
    }
    let _ = closing(path).to_writer(&mut page);
    let title = format!(".TH {} 1 \"\" \"{VERSION}\" \"User Commands\"\n", name(path).to_uppercase());
    title + &plain_roff(&String::from_utf8_lossy(&page))
}

/// Synopsis and description. clap's usage is short; clap_mangen's would list every option.
fn described(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let about = text_of(command.get_about());
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([roman(usage.trim_start_matches("Usage:").split_whitespace().collect::<Vec<_>>().join(" "))]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([roman(format!("{}.", about.trim_end_matches('.')))]);
    for text in HelpParts::of(&ending_of(command)).paragraphs {
        roff.control("PP", []);
        roff.text([roman(text)]);
    }
    roff
}

/// What stands at the end of the help.
fn ending_of(command: &Command) -> String {
    text_of(command.get_after_long_help().or(command.get_after_help()))
}

/// The titled blocks at the end of the help, then the command above with its other commands.
fn closing(path: &[&Command]) -> Roff {
    let mut roff = Roff::new();
    let [above @ .., own] = path else { return roff };
    for (title, lines) in HelpParts::of(&ending_of(own)).sections {
        roff.control("SH", [title.to_uppercase().as_str()]);
        let is_running = title == EXIT_STATUS;
        if !is_running {
            roff.control("nf", []);
        }
        for line in lines {
            roff.text([roman(line)]);
        }
        if !is_running {
            roff.control("fi", []);
        }
    }
    if let Some(parent) = above.last() {
        let siblings = listed(parent).filter(|one| one.get_name() != own.get_name());
        let names = siblings.map(|one| format!("{}-{}", name(above), one.get_name()));
        roff.control("SH", ["SEE ALSO"]);
        let mut texts = vec![bold(name(above)), roman("(1)")];
        texts.extend(names.flat_map(|name| [roman(", "), bold(name), roman("(1)")]));
        roff.text(texts);
    }
    roff
}

fn text_of(text: Option<&StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

/// The same page in ASCII, in which no formatter makes typographic marks of what is typed.
fn plain_roff(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    // Each part defines the apostrophe again, and breaks twice where once is enough.
    let is_kept = |line: &&str| !line.is_empty() && !line.starts_with(".ie ") && !line.starts_with(".el ");
    let mut lines = page.lines().filter(is_kept).peekable();
    while let Some(line) = lines.next() {
        while line == ".br" && lines.next_if_eq(&line).is_some() {}
        for letter in line.replace("\\*(Aq", "\\(aq").chars() {
            match letter {
                '`' => out.push_str("\\(ga"),
                '^' => out.push_str("\\(ha"),
                '~' => out.push_str("\\(ti"),
                ' '..='~' => out.push(letter),
                _ => out.push_str(&format!("\\[u{:04X}]", u32::from(letter))),
            }
        }
        out.push('\n');
    }
    out
}

/// The text below the options of a help: paragraphs, and blocks of lines under a title.
#[derive(Debug, Default, PartialEq)]
struct HelpParts {
    paragraphs: Vec<String>,
    sections: Vec<(String, Vec<String>)>,
}

impl HelpParts {
    /// Blocks are separated by empty lines; a title ends in a colon and stands alone, but for exit codes.
    fn of(text: &str) -> HelpParts {
        let mut parts = HelpParts::default();
        for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
            let lines: Vec<&str> = block.lines().collect();
            let joined = || lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
            if let Some(codes) = block.strip_prefix(EXIT_STATUS).and_then(|rest| rest.strip_prefix(':')) {
                let codes = codes.split_whitespace().collect::<Vec<_>>().join(" ");
                parts.sections.push((EXIT_STATUS.to_owned(), vec![codes]));
            } else if let Some(title) = lines[0].strip_suffix(':').filter(|_| lines.len() > 1) {
                let body = lines[1..].iter().map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned());
                parts.sections.push((title.to_owned(), body.collect()));
            } else {
                parts.paragraphs.push(joined());
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let root = root();
        let paths = all_paths(&root);
        let names: Vec<String> = paths.iter().map(|path| name(path)).collect();
        for name in ["fathom", "fathom-bench", "fathom-history-list", "fathom-catalog-fit", "fathom-man"] {
            assert!(names.contains(&name.to_owned()), "{names:?}");
        }
        for (path, name) in paths.iter().zip(&names) {
            let page = page(path);
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

    #[test]
    fn the_end_of_a_help_is_divided() {
        let help = "Does much.\n\nExamples:\n  fathom x\n    deep\n\nExit status: 0 done,\n3 bad.";
        let sections = vec![
            ("Examples".to_owned(), vec!["fathom x".to_owned(), "  deep".to_owned()]),
            (EXIT_STATUS.to_owned(), vec!["0 done, 3 bad.".to_owned()]),
        ];
        assert_eq!(HelpParts::of(help), HelpParts { paragraphs: vec!["Does much.".to_owned()], sections });
        assert_eq!(HelpParts::of(""), HelpParts::default());
    }

    #[test]
    fn commands_of_other_programs_have_their_tables() {
        let root = root();
        let page_of = |name: &str| page(&[&root, root.find_subcommand(name).unwrap()]);
        let fio = page_of("fio");
        assert!(fio.contains("\n.SH I/O\n") && fio.contains("\\fB\\-\\-iodepth\\fR="), "{fio}");
        let ping = page_of("ping");
        assert!(ping.contains("\\fB\\-c\\fR, \\fB\\-\\-count\\fR \\fI<COUNT>\\fR"), "{ping}");
        let bench = page_of("bench");
        assert!(bench.contains("[default: standard]") && bench.contains(".SH EXAMPLES\n.nf\n"), "{bench}");
    }

    #[test]
    fn what_is_typed_is_shown_as_typed() {
        let check = |line: &str, expected: &str| assert_eq!(plain_roff(line), expected);
        check("~/.bashrc `a` ^b", "\\(ti/.bashrc \\(gaa\\(ga \\(hab\n");
        check("50 µs\n\n.el .ds Aq '\n\\*(Aqx", "50 \\[u00B5]s\n\\(aqx\n");
    }
}
