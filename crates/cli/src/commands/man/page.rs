//! The manual page of a command: the sections of its help, and the option tables of the commands that read other programs'
//! command lines.

use clap::builder::StyledStr;
use clap::{Arg, Command};
use fathom_options::{OptionSummary, command_summaries, job_summaries};

use super::listed;
use super::roff::{Font, Roff};
use crate::commands::ping;

/// The version at the foot of every page.
const VERSION: &str = concat!("fathom ", env!("CARGO_PKG_VERSION"));

/// The name of the page of the last command of `path`: `fathom-history-list`.
pub fn name(path: &[&Command]) -> String {
    path.iter().map(|command| command.get_name()).collect::<Vec<_>>().join("-")
}

/// The page of the last command of `path`.
pub fn page(path: &[&Command]) -> String {
    let Some(command) = path.last() else { return String::new() };
    let name = name(path);
    let about = plain(command.get_about());
    let mut page = Roff::page(&name, VERSION);
    page.section("Name");
    page.text(&format!("{name} - {about}"));
    page.section("Synopsis");
    page.text(&synopsis(command));
    let help = HelpParts::of(&plain(command.get_after_help()));
    page.section("Description");
    page.text(&format!("{}.", about.trim_end_matches('.')));
    help.paragraphs.iter().for_each(|text| page.paragraph(text));
    match name.as_str() {
        "fathom-fio" => fio_options(&mut page),
        "fathom-ping" => ping_options(&mut page),
        _ => clap_options(command, &mut page),
    }
    commands(command, &name, &mut page);
    for (title, lines) in &help.sections {
        page.section(title);
        match lines.as_slice() {
            [one] if title == EXIT_STATUS => page.text(one),
            lines => page.literal(lines.iter().map(String::as_str)),
        }
    }
    if name == "fathom-ping" {
        page.section("Examples");
        page.literal(ping::EXAMPLES);
    }
    see_also(path, &mut page);
    page.finish()
}

fn plain(text: Option<&StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

fn synopsis(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    usage.trim_start_matches("Usage:").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The heading of the exit codes.
const EXIT_STATUS: &str = "Exit status";

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

fn clap_options(command: &Command, page: &mut Roff) {
    let visible: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    let (operands, options): (Vec<&Arg>, Vec<&Arg>) =
        visible.into_iter().partition(|arg| arg.is_positional());
    if !operands.is_empty() {
        page.section("Arguments");
        for arg in operands {
            page.item(&[(Font::Italic, &value_names(arg))], &described(arg));
        }
    }
    if !options.is_empty() {
        page.section("Options");
        options.into_iter().for_each(|arg| clap_option(arg, page));
    }
}

fn clap_option(arg: &Arg, page: &mut Roff) {
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let value = if arg.get_action().takes_values() { value_names(arg) } else { String::new() };
    let joined = if arg.is_require_equals_set() { "=" } else { " " };
    let mut term: Vec<(Font, &str)> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            term.push((Font::Roman, ", "));
        }
        term.push((Font::Bold, name));
    }
    if !value.is_empty() {
        term.extend([(Font::Roman, joined), (Font::Italic, value.as_str())]);
    }
    page.item(&term, &described(arg));
}

fn value_names(arg: &Arg) -> String {
    match arg.get_value_names() {
        Some(names) => names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" "),
        None => arg.get_id().as_str().to_uppercase(),
    }
}

/// The help of an argument with its default and its possible values, as `--help` shows them.
fn described(arg: &Arg) -> String {
    let mut text = plain(arg.get_long_help().or(arg.get_help()));
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        text.push_str(&format!(" [default: {}]", defaults.join(" ")));
    }
    let possible = arg.get_possible_values();
    let names: Vec<&str> =
        possible.iter().filter(|one| !one.is_hide_set()).map(|one| one.get_name()).collect();
    if arg.get_action().takes_values() && !names.is_empty() {
        text.push_str(&format!(" [possible values: {}]", names.join(", ")));
    }
    text
}

fn fio_options(page: &mut Roff) {
    let item = |page: &mut Roff, row: OptionSummary| {
        let name = format!("--{}", row.name);
        let mut term = vec![(Font::Bold, name.as_str())];
        if !row.value.is_empty() {
            term.extend([(Font::Roman, "="), (Font::Italic, row.value)]);
        }
        let default =
            if row.default.is_empty() { String::new() } else { format!(" [default: {}]", row.default) };
        let words = if row.words.is_empty() {
            String::new()
        } else {
            format!(" [possible values: {}]", row.words.join(", "))
        };
        page.item(&term, &format!("{}{default}{words}", row.doc));
    };
    page.section("Options");
    command_summaries().for_each(|row| item(page, row));
    page.section("Job options");
    for (category, rows) in job_summaries() {
        page.subsection(category);
        rows.for_each(|row| item(page, row));
    }
}

fn ping_options(page: &mut Roff) {
    page.section("Options");
    for row in ping::own_options() {
        let long = format!("--{}", row.long);
        let short = row.short.map(|letter| format!("-{letter}")).unwrap_or_default();
        let mut term = vec![(Font::Bold, long.as_str())];
        if row.short.is_some() {
            term.splice(0..0, [(Font::Bold, short.as_str()), (Font::Roman, ", ")]);
        }
        if !row.value.is_empty() {
            term.extend([(Font::Roman, " "), (Font::Italic, row.value)]);
        }
        page.item(&term, row.help);
    }
}

fn commands(command: &Command, name: &str, page: &mut Roff) {
    if listed(command).next().is_none() {
        return;
    }
    page.section("Commands");
    for one in listed(command) {
        let page_name = format!("{name}-{}", one.get_name());
        page.item(&[(Font::Bold, &page_name), (Font::Roman, "(1)")], &plain(one.get_about()));
    }
}

/// The command above, and its other commands; for the uppermost nothing, which lists all.
fn see_also(path: &[&Command], page: &mut Roff) {
    let [above @ .., own] = path else { return };
    let Some(parent) = above.last() else { return };
    let siblings = listed(parent).filter(|one| one.get_name() != own.get_name());
    let names = siblings.map(|one| format!("{}-{}(1)", name(above), one.get_name()));
    let all: Vec<String> = std::iter::once(format!("{}(1)", name(above))).chain(names).collect();
    page.section("See also");
    page.text(&all.join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut root = crate::commands::command();
        root.build();
        let page_of = |name: &str| page(&[&root, root.find_subcommand(name).unwrap()]);
        let fio = page_of("fio");
        assert!(fio.contains("\n.SS I/O\n") && fio.contains("\\fB\\-\\-iodepth\\fR="), "{fio}");
        let ping = page_of("ping");
        assert!(ping.contains("\\fB\\-c\\fR, \\fB\\-\\-count\\fR \\fICOUNT\\fR"), "{ping}");
        let bench = page_of("bench");
        assert!(bench.contains("[default: standard]") && bench.contains(".SH EXAMPLES\n.nf\n"), "{bench}");
    }
}
