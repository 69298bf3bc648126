//! `fathom catalog list`.

use clap::Args;
use fathom_catalog::{Catalog, CatalogEntry, Lifecycle};
use fathom_report::{JsonWriter, catalog::json as catalog_json, catalog::list as catalog_list};

use crate::commands::catalog_arguments::CatalogArguments;
use crate::commands::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom catalog list` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct CatalogListArguments {
    /// List only types of this provider: aws, gcp, linode, ...
    #[arg(long)]
    provider: Option<String>,
    /// List only this kind of medium: ssd, hdd, nvme, hybrid, local
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Omit types that are no longer sold
    #[arg(long)]
    current: bool,
    #[command(flatten)]
    form: FormatArguments,
    #[command(flatten)]
    catalog: CatalogArguments,
}

const EXAMPLES: &str = "\
Examples:
  fathom catalog list
  fathom catalog list --provider azure --current
  fathom catalog list --kind hdd --json";

pub fn run(arguments: &CatalogListArguments) -> Result<Exit, Complaint> {
    let types = arguments.catalog.types();
    let catalog = types.catalogue()?;
    if let Some(name) = &arguments.provider {
        known_provider(catalog, name)?;
    }
    let is_kind = |entry: &CatalogEntry, kind: &str| {
        let (media, kind) = (entry.media(), kind.to_lowercase());
        media == kind || media.split('_').next() == Some(kind.as_str())
    };
    if let Some(kind) = &arguments.kind
        && !catalog.entries().any(|entry| is_kind(entry, kind))
    {
        let mut kinds: Vec<&str> = catalog.entries().map(CatalogEntry::media).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let hint = format!("use one of {}", kinds.join(", "));
        return Err(Complaint::usage(format!("unknown kind of medium '{kind}'"), Some(hint)));
    }
    let wanted = |entry: &&CatalogEntry| {
        arguments.provider.as_ref().is_none_or(|name| entry.is_of(name))
            && arguments.kind.as_ref().is_none_or(|kind| is_kind(entry, kind))
            && !(arguments.current && entry.lifecycle() == Lifecycle::Historical)
    };
    let entries: Vec<&CatalogEntry> = catalog.entries().filter(wanted).collect();
    let (view, document) =
        (|| catalog_list::view(&entries), |out: &mut JsonWriter<'_>| catalog_json::list(&entries, out));
    output::print(|out| arguments.form.format().write(&output::style(), out, view, document))?;
    Ok(Exit::Done)
}

/// Refuses a provider that nobody is.
pub fn known_provider(catalog: &Catalog, name: &str) -> Result<(), Complaint> {
    if catalog.entries().any(|entry| entry.is_of(name)) {
        return Ok(());
    }
    let mut names: Vec<&str> = catalog.entries().map(CatalogEntry::provider).collect();
    names.sort_unstable();
    names.dedup();
    let message = format!("the catalogue has no provider called '{name}'");
    Err(Complaint::usage(message, Some(format!("use one of {}", names.join(", ")))))
}
