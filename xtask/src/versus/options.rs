//! The words after `cargo xtask versus-fio`.

use std::path::PathBuf;

use anyhow::{Context as _, bail};

use super::rows::{self, ROWS, TableRow};

/// The usage text.
pub const USAGE: &str = "\
cargo xtask versus-fio [--quick] [--rounds N] [--seconds N] [--rows NAME,...] [--directory DIR] [--write] [--verbose]

  --quick          3 rounds of 1 s instead of 5 of 3 s
  --rounds N       so many rounds
  --seconds N      so many seconds per run
  --rows NAME,...  these rows only
  --directory DIR  directory of the unnamed 1 GiB file (default /var/tmp)
  --write          write the pages although not everything was measured at full length
  --verbose        print every round

FATHOM_BIN names a binary to measure instead of building one.";

/// The parsed options.
#[derive(Debug)]
pub struct Options {
    /// Rounds of each row.
    pub rounds: usize,
    /// Rounds of the rows that measure the start.
    pub start_rounds: usize,
    /// Seconds per run.
    pub seconds: u32,
    /// The rows, in the table's order.
    pub rows: Vec<&'static TableRow>,
    /// Where the file is made.
    pub directory: PathBuf,
    /// Write the pages.
    pub write: bool,
    /// Print every round.
    pub verbose: bool,
}

impl Options {
    /// Reads them. Values follow after a space or an equals sign.
    pub fn parse(arguments: &[&str]) -> anyhow::Result<Options> {
        let mut options = Options {
            rounds: 5,
            start_rounds: 11,
            seconds: 3,
            rows: ROWS.iter().collect(),
            directory: PathBuf::from("/var/tmp"),
            write: false,
            verbose: false,
        };
        let mut is_full = true;
        let mut left = arguments.iter();
        while let Some(argument) = left.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (*argument, None),
            };
            if value.is_some() && matches!(name, "--quick" | "--write" | "--verbose") {
                bail!("{name} takes no value");
            }
            let mut value =
                || value.or_else(|| left.next().copied()).with_context(|| format!("{name} wants a value"));
            match name {
                "--quick" => (options.rounds, options.start_rounds, options.seconds) = (3, 5, 1),
                "--rounds" => options.rounds = at_least_one(name, value()?)?,
                "--seconds" => options.seconds = at_least_one(name, value()?)? as u32,
                "--rows" => options.rows = rows_named(value()?)?,
                "--directory" => options.directory = PathBuf::from(value()?),
                "--write" => options.write = true,
                "--verbose" => options.verbose = true,
                _ => bail!("unknown option {name}\n\n{USAGE}"),
            }
            is_full &= !matches!(name, "--quick" | "--rounds" | "--seconds" | "--rows");
        }
        options.write |= is_full;
        Ok(options)
    }
}

fn at_least_one(name: &str, value: &str) -> anyhow::Result<usize> {
    match value.parse() {
        Ok(number @ 1..=3600) => Ok(number),
        _ => bail!("{name} wants a number from 1 to 3600, not {value}"),
    }
}

fn rows_named(names: &str) -> anyhow::Result<Vec<&'static TableRow>> {
    for name in names.split(',') {
        if rows::find(name).is_none() {
            let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
            bail!("no row is called {name}; there are {}", known.join(", "));
        }
    }
    Ok(ROWS.iter().filter(|row| names.split(',').any(|name| name == row.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_run_writes_by_default() {
        let check = |arguments: &[&str], expected| {
            assert_eq!(Options::parse(arguments).unwrap().write, expected, "{arguments:?}");
        };
        check(&[], true);
        check(&["--verbose", "--directory", "/mnt"], true);
        check(&["--quick"], false);
        check(&["--rows", "psync"], false);
        check(&["--rounds=9"], false);
        check(&["--seconds", "9"], false);
        check(&["--quick", "--write"], true);
    }

    #[test]
    fn values_follow_after_a_blank_or_an_equals_sign() {
        let options =
            Options::parse(&["--rounds=7", "--seconds", "2", "--rows=psync,uring", "--directory=/a=b"])
                .unwrap();
        assert_eq!((options.rounds, options.seconds, options.start_rounds), (7, 2, 11));
        let names: Vec<&str> = options.rows.iter().map(|row| row.name).collect();
        assert_eq!(names, ["uring", "psync"], "in the table's order");
        assert_eq!(options.directory, PathBuf::from("/a=b"));
        let quick = Options::parse(&["--quick"]).unwrap();
        assert_eq!((quick.rounds, quick.seconds, quick.start_rounds), (3, 1, 5));
    }

    #[test]
    fn unknown_arguments_are_refused_by_name() {
        let check = |arguments: &[&str], part: &str| {
            let message = Options::parse(arguments).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        };
        check(&["--slow"], "unknown option --slow");
        check(&["--quick=no"], "--quick takes no value");
        check(&["--rounds"], "--rounds wants a value");
        check(&["--rounds", "0"], "not 0");
        check(&["--seconds=x"], "not x");
        check(&["--rows", "psync,nvme"], "no row is called nvme");
    }
}
