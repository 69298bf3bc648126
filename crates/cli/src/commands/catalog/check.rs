//! `fathom catalog check`.

use std::path::PathBuf;

use clap::Args;
use fathom_assess::read_catalogue;
use fathom_catalog::Catalog;

use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom catalog check` takes.
#[derive(Args)]
pub struct CheckArguments {
    /// The file
    file: PathBuf,
}

pub fn run(arguments: &CheckArguments) -> Result<Exit, Complaint> {
    let own = read_catalogue(&arguments.file)?;
    let count = own.entries().count();
    if count == 0 {
        let hint =
            "an entry begins with [volume.ID]; `fathom catalog show ID` shows one that is shipped".to_owned();
        return Err(Complaint::usage(
            format!("{}: no volume type is in it", arguments.file.display()),
            Some(hint),
        ));
    }
    output::print(|out| {
        for entry in own.entries() {
            let shipped = if Catalog::shipped().get(entry.id()).is_some() {
                ", instead of the one that is shipped"
            } else {
                ""
            };
            let told = match entry.unmodelled() {
                Some(why) => format!("without a model: {why}"),
                None => "can be used".to_owned(),
            };
            writeln!(out, "{}: {told}{shipped}", entry.id())?;
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}
