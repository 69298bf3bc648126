//! `fathom catalog show`.

use clap::Args;
use fathom_catalog::{Catalog, CatalogEntry, Instances, ModelRefusal, Parameters, Sheet};
use fathom_model::units::{parse_bytes, parse_capacity};
use fathom_report::{
    catalog::instances as catalog_instances, catalog::json as catalog_json, catalog::show as catalog_show,
};

use crate::commands::catalog_arguments::CatalogArguments;
use crate::commands::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};

/// What `fathom catalog show` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowArguments {
    /// Volume type (see `fathom catalog list`) or instance (`fathom catalog list --instances`)
    #[arg(value_name = "TYPE")]
    id: String,
    /// Sizes to show: 50GiB,1TiB [default: sizes where the limits change]
    #[arg(long, value_delimiter = ',', value_parser = size, value_name = "SIZE,...")]
    size: Vec<u64>,
    /// Provisioned IOPS, for types that offer them
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), value_name = "NUMBER")]
    iops: Option<u64>,
    /// Provisioned bandwidth, for types that offer it: 250MiB
    #[arg(long, value_parser = rate, value_name = "BYTES")]
    bandwidth: Option<u64>,
    /// Performance tier, for types where the size does not set it
    #[arg(long)]
    tier: Option<String>,
    /// Include on-demand bursting, which is billed
    #[arg(long)]
    on_demand: bool,
    /// Show all details and notes
    #[arg(long)]
    facts: bool,
    #[command(flatten)]
    form: FormatArguments,
    #[command(flatten)]
    catalog: CatalogArguments,
}

const EXAMPLES: &str = "\
Examples:
  fathom catalog show aws-gp2-2016
  fathom catalog show aws-gp2-2016 --size 10g,33g,34g,50g,1000g,3334g,16t
  fathom catalog show aws-gp3 --size 500GiB --iops 16000 --bandwidth 1000MiB
  fathom catalog show azure-premium-ssd --size 1TiB --on-demand --json
  fathom catalog show m6i.large";

/// The size of a volume.
pub fn size(text: &str) -> Result<u64, String> {
    match parse_capacity(text) {
        Ok(0) => Err("the size must be above 0".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

/// Bytes a second; `/s` may follow.
pub fn rate(text: &str) -> Result<u64, String> {
    match parse_bytes(text.strip_suffix("/s").unwrap_or(text)) {
        Ok(0) => Err("the rate must be above 0".to_owned()),
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}

/// The type of that name.
pub fn entry<'a>(catalog: &'a Catalog, id: &str) -> Result<&'a CatalogEntry, Complaint> {
    // A copied target stands for its type.
    let id = id.strip_prefix("sim:").unwrap_or(id);
    catalog.get(id).ok_or_else(|| {
        let hint = match catalog.nearest(id).as_slice() {
            [] => "run `fathom catalog list` for all types".to_owned(),
            near => format!("did you mean {}? run `fathom catalog list` for all types", near.join(", ")),
        };
        Complaint::usage(format!("unknown volume type '{id}'"), Some(hint))
    })
}

pub fn run(arguments: &ShowArguments) -> Result<Exit, Complaint> {
    let types = arguments.catalog.types();
    let catalog = types.catalogue()?;
    let instances = Instances::shipped().named(&arguments.id);
    if !instances.is_empty() && catalog.get(&arguments.id).is_none() {
        arguments.form.print(
            || catalog_instances::view(&instances, true),
            |out| catalog_instances::json(&instances, out),
        )?;
        return Ok(Exit::Done);
    }
    let entry = entry(catalog, &arguments.id)?;
    let with = |size_bytes: Option<u64>| Parameters {
        size_bytes,
        iops: arguments.iops,
        bytes_per_second: arguments.bandwidth,
        tier: arguments.tier.clone(),
        on_demand: arguments.on_demand,
        ..Parameters::default()
    };
    let refused = |refusal: ModelRefusal| {
        Complaint::usage(
            refusal.to_string(),
            Some("omit --size, --iops, --bandwidth and --tier to show the type as sold".to_owned()),
        )
    };
    let (mut sheets, mut explained) = (Vec::new(), None);
    if entry.unmodelled().is_none() {
        sheets = match arguments.size.as_slice() {
            [] => every_volume(entry, with),
            sizes => sizes
                .iter()
                .map(|size| entry.sheet(&with(Some(*size))))
                .collect::<Result<_, _>>()
                .map_err(refused)?,
        };
        // What is chosen may ask for another size than the usual one.
        explained = match entry.sheet(&with(arguments.size.first().copied())) {
            Err(_) if !sheets.is_empty() => sheets.first().cloned(),
            explained => Some(explained.map_err(refused)?),
        };
        if sheets.is_empty() {
            sheets.extend(explained.clone());
        }
    }
    let is_asked = !arguments.size.is_empty();
    let shown = catalog_show::Shown {
        entry,
        sheets: &sheets,
        is_asked,
        explained: explained.as_ref(),
        facts: arguments.facts,
    };
    arguments.form.print(|| catalog_show::view(&shown), |out| catalog_json::show(&shown, out))?;
    Ok(Exit::Done)
}

/// The sizes of a type that are worth a line, or its tiers; those that cannot have what is chosen get none.
fn every_volume(entry: &CatalogEntry, with: impl Fn(Option<u64>) -> Parameters) -> Vec<Sheet> {
    let tiers = entry.named_tiers();
    if !tiers.is_empty() && with(None).tier.is_none() {
        let of = |tier: &&str| entry.sheet(&Parameters { tier: Some((*tier).to_owned()), ..with(None) }).ok();
        return tiers.iter().filter_map(of).collect();
    }
    entry.sizes_gib().into_iter().filter_map(|gib| entry.sheet(&with(Some(gib << 30))).ok()).collect()
}
