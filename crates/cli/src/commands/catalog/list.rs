//! `fathom catalog list`.

use std::collections::BTreeSet;

use clap::Args;
use fathom_catalog::{Catalog, CatalogEntry, Instance, Instances, Lifecycle};
use fathom_report::{
    catalog::instances as catalog_instances, catalog::json as catalog_json, catalog::list as catalog_list,
};

use crate::commands::catalog_arguments::CatalogArguments;
use crate::commands::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};

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
    /// List instances with their limits on volumes instead of volume types
    #[arg(long, conflicts_with_all = ["kind", "current"])]
    instances: bool,
    #[command(flatten)]
    form: FormatArguments,
    #[command(flatten)]
    catalog: CatalogArguments,
}

const EXAMPLES: &str = "\
Examples:
  fathom catalog list
  fathom catalog list --provider azure --current
  fathom catalog list --kind hdd --json
  fathom catalog list --instances --provider aws";

pub fn run(arguments: &CatalogListArguments) -> Result<Exit, Complaint> {
    let types = arguments.catalog.types();
    let catalog = types.catalogue()?;
    check_provider(catalog, arguments.provider.as_deref())?;
    if arguments.instances {
        return list_instances(arguments);
    }
    let is_kind = |entry: &CatalogEntry, kind: &str| {
        let (media, kind) = (entry.media(), kind.to_lowercase());
        media == kind || media.split('_').next() == Some(kind.as_str())
    };
    if let Some(kind) = &arguments.kind
        && !catalog.entries().any(|entry| is_kind(entry, kind))
    {
        let hint = one_of_all(catalog, CatalogEntry::media);
        return Err(Complaint::usage(format!("unknown kind of medium '{kind}'"), Some(hint)));
    }
    let wanted = |entry: &&CatalogEntry| {
        arguments.provider.as_ref().is_none_or(|name| entry.is_of(name))
            && arguments.kind.as_ref().is_none_or(|kind| is_kind(entry, kind))
            && !(arguments.current && entry.lifecycle() == Lifecycle::Historical)
    };
    let entries: Vec<&CatalogEntry> = catalog.entries().filter(wanted).collect();
    arguments.form.print(|| catalog_list::view(&entries), |out| catalog_json::list(&entries, out))?;
    Ok(Exit::Done)
}

fn list_instances(arguments: &CatalogListArguments) -> Result<Exit, Complaint> {
    let shipped = Instances::shipped();
    let is_wanted = |instance: &&Instance| {
        let provider = &shipped.list_of(instance).provider;
        arguments.provider.as_ref().is_none_or(|wanted| provider.eq_ignore_ascii_case(wanted.trim()))
    };
    let instances: Vec<&Instance> = shipped.all().filter(is_wanted).collect();
    arguments.form.print(
        || catalog_instances::view(&instances, false),
        |out| catalog_instances::json(&instances, out),
    )?;
    Ok(Exit::Done)
}

/// Refuses a provider that the catalogue does not have.
pub fn check_provider(catalog: &Catalog, name: Option<&str>) -> Result<(), Complaint> {
    let is_unknown = |name: &&str| !catalog.entries().any(|entry| entry.is_of(name));
    let Some(name) = name.filter(is_unknown) else { return Ok(()) };
    let message = format!("the catalogue has no provider called '{name}'");
    Err(Complaint::usage(message, Some(one_of_all(catalog, CatalogEntry::provider))))
}

/// The remedy that lists every value that `of` takes in the catalogue.
fn one_of_all(catalog: &Catalog, of: fn(&CatalogEntry) -> &str) -> String {
    let names: BTreeSet<&str> = catalog.entries().map(of).collect();
    format!("use one of {}", names.into_iter().collect::<Vec<_>>().join(", "))
}
