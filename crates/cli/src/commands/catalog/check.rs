//! `fathom catalog check`.

use std::path::PathBuf;

use clap::Args;
use fathom_assess::read_catalogue;
use fathom_catalog::Catalog;

use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom catalog check` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckArguments {
    /// Catalogue file
    file: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  fathom catalog check my-volumes.toml
  fathom bench --catalog my-volumes.toml sim:my-ssd";

pub fn run(arguments: &CheckArguments) -> Result<Exit, Complaint> {
    let own = read_catalogue(&arguments.file)?;
    let count = own.entries().count();
    if count == 0 {
        let hint =
            "start each entry with [volume.ID]; `fathom catalog show ID` shows a built-in one".to_owned();
        return Err(Complaint::usage(
            format!("cannot use {}: it defines no volume type", arguments.file.display()),
            Some(hint),
        ));
    }
    output::print(|out| {
        for entry in own.entries() {
            let shipped = if Catalog::shipped().get(entry.id()).is_some() {
                ", overrides the built-in type"
            } else {
                ""
            };
            let reported = match entry.unmodelled() {
                Some(why) => format!("cannot be simulated: {why}"),
                None => "valid".to_owned(),
            };
            writeln!(out, "{}: {reported}{shipped}", entry.id())?;
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}
