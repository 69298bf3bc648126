//! Text generated from the tables: usage, help on options and engines, and the compatibility page.

use std::fmt::Write as _;

use fathom_model::OptionValueKind;

use crate::command::{self, OptionArity};
use crate::engines::{self, EngineRow};
use crate::refused_engines::REFUSED_ENGINES;
use crate::table::{self, JobOption, KnownOption, OPTION_TABLE, UNSUPPORTED, UnsupportedOption};

/// The output of `--help`.
pub fn usage() -> String {
    let mut out = "fio [options] [job options] <job file(s)>\n".to_owned();
    for row in command::ROWS {
        let left = format!("--{}{}", row.name, value_name(row.takes()));
        put(&mut out, format_args!("  {left:<26}{}\n", row.doc));
    }
    out.push_str("\nJob options are listed by --cmdhelp, engines by --enghelp.\n");
    out
}

fn value_name(takes: OptionArity) -> String {
    match takes {
        OptionArity::Nothing => String::new(),
        OptionArity::Value(name) => format!("={name}"),
        OptionArity::MaybeValue(name) => format!("[={name}]"),
    }
}

/// Writing into a string cannot fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

/// The output of `--cmdhelp`: a list of all options (`None`), all in full (`all`), or one. For an unknown option, `Err`
/// contains the closest name, if any.
pub fn command_help(topic: Option<&str>) -> Result<String, Option<String>> {
    let mut out = String::new();
    match topic {
        None => {
            for (_, rows) in OPTION_TABLE {
                for row in *rows {
                    put(&mut out, format_args!("{:<27}: {}\n", row.name, row.doc));
                }
            }
        }
        Some("all") => {
            for (_, rows) in OPTION_TABLE {
                for row in *rows {
                    out.push_str(&in_full(row));
                    out.push('\n');
                }
            }
        }
        Some(name) => match table::find(name) {
            Some(KnownOption::Supported(row)) => out = in_full(row),
            Some(KnownOption::Unsupported(row)) => {
                put(&mut out, format_args!("{:>20}: fio's option, not supported yet\n", row.name));
                put(&mut out, format_args!("{:>20}: {}\n", "instead", row.instead));
            }
            None => return Err(table::nearest(name, table::names())),
        },
    }
    Ok(out)
}

/// An option of the command line in short, for manual pages and completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionSummary {
    /// Its name without dashes.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// What its value is called; empty where it takes none.
    pub value: &'static str,
    /// The values that it takes, where they are words.
    pub words: &'static [&'static str],
    /// The default, as typed; empty where there is none.
    pub default: &'static str,
}

/// The options of the command line that belong to no job.
pub fn command_summaries() -> impl Iterator<Item = OptionSummary> {
    command::ROWS.iter().map(|row| OptionSummary {
        name: row.name,
        doc: row.doc,
        value: match row.takes() {
            OptionArity::Nothing => "",
            OptionArity::Value(name) | OptionArity::MaybeValue(name) => name,
        },
        words: &[],
        default: "",
    })
}

/// The supported options of jobs, by category.
pub fn job_summaries() -> impl Iterator<Item = (&'static str, impl Iterator<Item = OptionSummary>)> {
    let summary = |row: &'static JobOption| OptionSummary {
        name: row.name,
        doc: row.doc,
        value: kind_name(row.kind),
        words: match row.kind {
            OptionValueKind::Choice(words) => words,
            _ => &[],
        },
        default: row.default,
    };
    OPTION_TABLE.iter().map(move |(category, rows)| (*category, rows.iter().map(summary)))
}

fn in_full(row: &JobOption) -> String {
    in_detail(row.name, row.aliases, row.kind, row.default, row.doc)
}

fn in_detail(name: &str, aliases: &[&str], kind: OptionValueKind, default: &str, doc: &str) -> String {
    let mut out = String::new();
    put(&mut out, format_args!("{name:>20}: {doc}\n"));
    for alias in aliases {
        put(&mut out, format_args!("{:>20}: {alias}\n", "alias"));
    }
    put(&mut out, format_args!("{:>20}: {}\n", "type", kind_name(kind)));
    let default = if default.is_empty() { "no default" } else { default };
    put(&mut out, format_args!("{:>20}: {default}\n", "default"));
    if let OptionValueKind::Choice(words) = kind {
        put(&mut out, format_args!("{:>20}: {}\n", "valid values", words.join(", ")));
    }
    out
}

fn kind_name(kind: OptionValueKind) -> &'static str {
    match kind {
        OptionValueKind::Text => "text",
        OptionValueKind::Size => "size (4096, 4k, 1m)",
        OptionValueKind::SizeOrPercent => "size or percentage (1g, 50%)",
        OptionValueKind::Int => "integer",
        OptionValueKind::Seconds => "time, plain number in seconds (30, 500ms, 5m)",
        OptionValueKind::Micros => "time, plain number in microseconds (100, 5ms)",
        OptionValueKind::Bool => "0 or 1",
        OptionValueKind::Flag => "flag, or 0 or 1 after =",
        OptionValueKind::Choice(_) => "one of the valid values",
        OptionValueKind::Floats => "numbers separated by colons (50:99:99.9)",
        OptionValueKind::LogName => "name; the name of the job if it is empty",
    }
}

/// `option: doc` of a job or command option, for error hints.
pub(crate) fn one_line(option: &str) -> Option<String> {
    if let Some(KnownOption::Supported(row)) = table::find(option) {
        return Some(format!("{}: {} It takes: {}.", row.name, row.doc, kind_name(row.kind)));
    }
    let row = command::ROWS.iter().find(|row| row.name == option)?;
    Some(format!("--{}{}: {}", row.name, value_name(row.takes()), row.doc))
}

/// The output of `--enghelp`: the engines (`None`), the options of `ENGINE`, or one as `ENGINE,OPTION`; `Err` names the
/// unknown engine or option, or an engine without options. In the list scripts look for lines that are the name of an
/// engine, as fio prints them; with `described`, for people, each has its description.
pub fn engine_help(engines: &[EngineRow], topic: Option<&str>, described: bool) -> Result<String, String> {
    let mut out = String::new();
    let Some(topic) = topic else {
        out.push_str("Available IO engines:\n");
        for engine in engines {
            let doc = if described { engine.doc } else { "" };
            put(&mut out, format_args!("{:8}{}\n", "", format!("{:<16}{doc}", engine.name).trim_end()));
        }
        return Ok(out);
    };
    let (name, option) = match topic.split_once(',') {
        Some((name, option)) => (name, Some(option)),
        None => (topic, None),
    };
    let engine = engines::find(engines, name).ok_or_else(|| format!("IO engine {name} not found"))?;
    if engine.options.is_empty() {
        return Err(format!("IO engine {name} has no options"));
    }
    match option {
        None => {
            for option in engine.options {
                put(&mut out, format_args!("{:<24}: {}\n", option.name, option.doc));
            }
        }
        Some(wanted) => {
            let option = engines::find_option(engine, wanted)
                .ok_or_else(|| format!("{name} has no option {wanted}"))?;
            out = in_detail(option.name, &[], option.kind, option.default, option.doc);
        }
    }
    Ok(out)
}

/// The part of the compatibility page that no table has.
const PAGE_HEAD: &str = include_str!("fio-compat.md");

/// The compatibility page, in Markdown.
pub fn compatibility_page() -> String {
    let mut out = PAGE_HEAD.to_owned();
    out.push_str("\n## Supported job options\n");
    for (title, rows) in OPTION_TABLE.iter().filter(|(title, _)| *title != table::HARMLESS) {
        put(&mut out, format_args!("\n### {title}\n\n"));
        out.push_str("| option | value | default | meaning |\n|---|---|---|---|\n");
        for row in *rows {
            let aliases: String = row.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
            let default = if row.default.is_empty() { String::new() } else { format!("`{}`", row.default) };
            let value = value_of(row);
            put(&mut out, format_args!("| `{}`{aliases} | {value} | {default} | {} |\n", row.name, row.doc));
        }
    }
    put(&mut out, format_args!("\n## {}\n\n| option | value | reason |\n|---|---|---|\n", table::HARMLESS));
    let harmless = OPTION_TABLE.iter().filter(|(title, _)| *title == table::HARMLESS);
    for row in harmless.flat_map(|(_, rows)| rows.iter()) {
        let aliases: String = row.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
        put(&mut out, format_args!("| `{}`{aliases} | {} | {} |\n", row.name, value_of(row), row.doc));
    }
    out.push_str("\n## Options of the command\n\n| option | meaning |\n|---|---|\n");
    for row in command::ROWS {
        let note = if row.ours { " Not in fio." } else { "" };
        let value = value_name(row.takes());
        put(&mut out, format_args!("| `--{}{value}` | {}{note} |\n", row.name, row.doc));
    }
    let inert: Vec<String> =
        command::ROWS.iter().filter(|row| row.inert).map(|row| format!("`--{}`", row.name)).collect();
    put(&mut out, format_args!("\nAccepted without effect: {}.\n", inert.join(", ")));
    out.push_str("\n## Not supported\n\n### Options of the command\n\n| option | instead |\n|---|---|\n");
    for (name, _, instead) in command::UNSUPPORTED {
        put(&mut out, format_args!("| `--{name}` | {instead} |\n"));
    }
    out.push_str("\n### Job options\n\n| option | accepted if it is | instead |\n|---|---|---|\n");
    UNSUPPORTED.iter().for_each(|row| out.push_str(&unsupported_line(row)));
    out.push_str("\n### Engines\n\n| engine | reason | instead |\n|---|---|---|\n");
    for row in REFUSED_ENGINES {
        let names: Vec<String> = row.names.iter().map(|name| format!("`{name}`")).collect();
        put(&mut out, format_args!("| {} | it {} | {} |\n", names.join(", "), row.does, row.instead));
    }
    out
}

fn value_of(row: &JobOption) -> String {
    match row.kind {
        OptionValueKind::Choice(words) => words.join(", "),
        kind => kind_name(kind).to_owned(),
    }
}

fn unsupported_line(row: &UnsupportedOption) -> String {
    let aliases: String = row.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
    let inert: Vec<String> = row.inert.iter().map(|value| format!("`{value}`")).collect();
    format!("| `{}`{aliases} | {} | {} |\n", row.name, inert.join(", "), row.instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_page_equals_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference/fio-compat.md");
        if std::env::var_os("FATHOM_BLESS").is_some() {
            std::fs::write(path, compatibility_page()).unwrap();
        }
        let stored = std::fs::read_to_string(path).unwrap();
        assert!(stored == compatibility_page(), "renew it: cargo xtask docs");
    }

    #[test]
    fn help_on_options() {
        let text = command_help(Some("readwrite")).unwrap();
        assert!(text.contains("rw: Operations, and sequential"), "{text}");
        assert!(text.contains("valid values: read, write"), "{text}");
        assert!(command_help(Some("block_error_percentiles")).unwrap().contains("not supported yet"));
        assert_eq!(command_help(Some("iodpeth")), Err(Some("iodepth".to_owned())));
        assert_eq!(command_help(Some("zzzzzzzzz")), Err(None));
        let names = OPTION_TABLE.iter().map(|(_, rows)| rows.len()).sum::<usize>();
        assert_eq!(command_help(None).unwrap().lines().count(), names);
        assert!(command_help(Some("all")).unwrap().contains("type: 0 or 1"));
    }

    #[test]
    fn help_on_engines() {
        let engines = crate::cli::tests::engines();
        assert!(engine_help(engines, None, true).unwrap().contains("        io_uring        An engine.\n"));
        assert!(engine_help(engines, None, false).unwrap().contains("\n        io_uring\n"));
        assert!(engine_help(engines, Some("io_uring"), true).unwrap().contains("fixedbufs"));
        assert!(engine_help(engines, Some("io_uring,hipri"), true).unwrap().contains("flag"));
        assert!(engine_help(engines, Some("bogus"), true).unwrap_err().contains("IO engine bogus not found"));
        for topic in ["psync", "psync,hipri"] {
            assert_eq!(
                engine_help(engines, Some(topic), true),
                Err("IO engine psync has no options".to_owned())
            );
        }
        assert!(usage().lines().count() > command::ROWS.len());
    }
}
