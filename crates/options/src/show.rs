//! Options as a command line, quoted for a shell, so that a run can be repeated by hand.

use fathom_model::text::shell_quoted;

use crate::cli::Invocation;
use crate::section::{RawOptions, Section};
use crate::table;

/// `--name=value` for each pair, quoted; the name first, and the engine before its private options.
pub fn command_line(options: &RawOptions) -> String {
    let mut pairs: Vec<&(String, String)> = options.iter().collect();
    pairs.sort_by_key(|(name, _)| match name.as_str() {
        "name" => 0,
        "ioengine" => 1,
        _ => 2,
    });
    let words: Vec<String> = pairs.into_iter().map(word).collect();
    words.join(" ")
}

/// The whole invocation as one fio command line. Options for all jobs come first if they are the same for each;
/// otherwise (several job files, several `[global]`s) they are repeated in every job.
pub fn show_command(invocation: &Invocation) -> String {
    let sections = &invocation.sections;
    let global = sections.first().map(|first| &first.inherited);
    let are_equal = sections.iter().all(|section| Some(&section.inherited) == global);
    let mut words = vec!["fio".to_owned()];
    // Without it the same jobs may write.
    if invocation.command.readonly {
        words.push("--readonly".to_owned());
    }
    if let Some(global) = global.filter(|_| are_equal) {
        // A name among the options for all jobs would start a job.
        let global = global.iter().filter(|(name, _)| name != "name").cloned().collect();
        words.push(command_line(&global));
    }
    for section in sections {
        let options = if are_equal { named(section) } else { section.all_options() };
        words.push(command_line(&options));
    }
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

/// The options of a job, with the name that its files are named after; the first job of a later job file waits for the
/// earlier files.
pub(crate) fn named(section: &Section) -> RawOptions {
    let mut options = section.raw_options.clone();
    options.retain(|(name, _)| name != "name");
    options.insert(0, ("name".to_owned(), section.name.clone()));
    if section.starts_file && !options.iter().any(|(name, _)| name == "stonewall") {
        options.push(("stonewall".to_owned(), String::new()));
    }
    options
}

fn word((name, value): &(String, String)) -> String {
    // A required value may be empty; without the `=` the option would take the next word.
    let needs_value = || table::find(name).is_some_and(|known| !known.value_is_optional());
    match value.as_str() {
        "" if needs_value() => format!("--{name}="),
        "" => format!("--{name}"),
        value => format!("--{name}={}", shell_quoted(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_value_is_shown_as_one() {
        let options = |pairs: &[(&str, &str)]| -> RawOptions {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let shown = command_line(&options(&[("description", ""), ("time_based", ""), ("hipri", "")]));
        assert_eq!(shown, "--description= --time_based --hipri");
    }

    #[test]
    fn a_section_prints_the_equivalent_command() {
        let pairs = [("rw", "randread"), ("blocksize", "4k"), ("time_based", ""), ("ioengine", "libaio")];
        let section = Section::from_pairs("lat-read", &pairs, &[]).unwrap();
        assert_eq!(
            section.command_line(),
            "fio --name=lat-read --ioengine=libaio --rw=randread --bs=4k --time_based"
        );
    }
}
