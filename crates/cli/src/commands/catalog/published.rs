//! `fathom catalog published`.

use clap::Args;
use fathom_assess::published::{compare, runs_of};
use fathom_catalog::Catalog;
use fathom_report::{catalog::json as catalog_json, catalog::published as catalog_published};

use super::show::entry;
use crate::commands::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};

/// What `fathom catalog published` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct PublishedArguments {
    /// Volume type (see `fathom catalog list`) [default: all]
    #[arg(value_name = "TYPE")]
    id: Option<String>,
    #[command(flatten)]
    form: FormatArguments,
}

const EXAMPLES: &str = "\
Examples:
  fathom catalog published aws-gp2-2016
  fathom catalog published --json";

pub fn run(arguments: &PublishedArguments) -> Result<Exit, Complaint> {
    let id =
        arguments.id.as_deref().map(|id| entry(Catalog::shipped(), id)).transpose()?.map(|entry| entry.id());
    let runs = runs_of(id);
    if let (Some(id), true) = (id, runs.is_empty()) {
        let hint = "run `fathom catalog published` for all published figures".to_owned();
        return Err(Complaint::usage(format!("no figures of {id} were published"), Some(hint)));
    }
    let compared = compare(&runs)?;
    arguments.form.print(
        || catalog_published::view(&runs, &compared),
        |out| catalog_json::published(&runs, &compared, out),
    )?;
    Ok(Exit::Done)
}
