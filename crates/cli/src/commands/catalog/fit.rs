//! `fathom catalog fit`.

use clap::Args;
use fathom_assess::need::need;
use fathom_catalog::{Instances, SearchScope};
use fathom_model::units::UnitSystem;
use fathom_report::view::View;
use fathom_report::{catalog::fit as catalog_fit, catalog::json as catalog_json};

use super::list::check_provider;
use crate::commands::catalog_arguments::CatalogArguments;
use crate::commands::format_arguments::FormatArguments;
use crate::commands::need_arguments::{NeedArguments, currency};
use crate::exit::{Complaint, Exit};

/// What `fathom catalog fit` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct FitArguments {
    #[command(flatten)]
    need: NeedArguments,
    /// Require volumes that outlive the instance
    #[arg(long)]
    persistent: bool,
    /// List only types of this provider
    #[arg(long)]
    provider: Option<String>,
    /// Currency whose prices come first
    #[arg(long, value_parser = currency, value_name = "CODE", default_value = "USD")]
    currency: String,
    /// Include types that are no longer sold
    #[arg(long)]
    historical: bool,
    #[command(flatten)]
    form: FormatArguments,
    #[command(flatten)]
    catalog: CatalogArguments,
}

const EXAMPLES: &str = "\
Examples:
  fathom catalog fit --iops 5000 --throughput 200MiB --size 500GiB
  fathom catalog fit --iops 3000 --burst 30m/day --baseline-iops 200
  fathom catalog fit --profile oltp --size 200GiB --provider aws
  fathom catalog fit --iops 3000 --size 100GiB --currency CNY
  fathom catalog fit --throughput 500MiB --size 2TiB --persistent --json
  fathom catalog fit --iops 5000 --size 500GiB --instance m6i.large

Exit status: 3 if no volume type meets the requirements.";

/// The provider of an instance, which has to be the one that is asked for.
fn provider_of(id: &str, asked: Option<&str>) -> Result<&'static str, Complaint> {
    let instances = Instances::shipped();
    let hint = || Some("run `fathom catalog list --instances` for all instances".to_owned());
    let Some(instance) = instances.named(id).first().copied() else {
        return Err(Complaint::usage(format!("unknown instance '{id}'"), hint()));
    };
    let provider = instances.list_of(instance).provider.as_str();
    match asked.is_none_or(|asked| provider.eq_ignore_ascii_case(asked.trim())) {
        true => Ok(provider),
        false => Err(Complaint::usage(format!("the instance {id} is one of {provider}"), hint())),
    }
}

pub fn run(arguments: &FitArguments) -> Result<Exit, Complaint> {
    let types = arguments.catalog.types();
    let catalog = types.catalogue()?;
    check_provider(catalog, arguments.provider.as_deref())?;
    let said = need(&arguments.need.settings(arguments.persistent))?;
    let provider =
        arguments.need.instance.as_deref().map(|id| provider_of(id, arguments.provider.as_deref()));
    let provider = provider.transpose()?.or(arguments.provider.as_deref());
    let scope =
        SearchScope { provider, historical: arguments.historical, currency: Some(&arguments.currency) };
    let fit = catalog.fit(&said.need, scope);
    arguments.form.print(
        || View {
            units: arguments.need.throughput.map(|rate| UnitSystem::of(rate as f64)),
            ..catalog_fit::view(&fit, &said.text)
        },
        |out| catalog_json::fit(&fit, &said.need, &said.text, out),
    )?;
    Ok(if fit.offers().next().is_some() { Exit::Done } else { Exit::Missed })
}
