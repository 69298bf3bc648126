//! `fathom catalog`: the volume types that are known, what each gives and costs, and which of them serve a need.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use fathom_analysis::criterion::LatencyObjective;
use fathom_assess::need::need;
use fathom_assess::published::{compare, runs_of};
use fathom_assess::{PriceStore, VolumeTypes, price_list, read_catalogue, today};
use fathom_catalog::{
    Catalog, CatalogEntry, Instance, Instances, Lifecycle, ModelRefusal, Parameters, SearchScope, Sheet,
    WrittenTypes,
};
use fathom_model::ended_before;
use fathom_model::units::{UnitSystem, parse_bytes, parse_capacity};
use fathom_model::{Nanos, Price};
use fathom_report::TextWriter;
use fathom_report::catalog::show::price_text;
use fathom_report::catalog::{
    fit as catalog_fit, instances as catalog_instances, json as catalog_json, list as catalog_list,
    published as catalog_published, show as catalog_show, upkeep,
};
use fathom_report::formats::Format;
use fathom_report::view::View;
use jiff::Span;
use jiff::civil::Date;

use super::format_arguments::FormatArguments;
use super::need_arguments::{NeedArguments, currency};
use super::words::positive_duration;
use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom catalog` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct CatalogCommand {
    #[command(subcommand)]
    command: CatalogAction,
}

const EXAMPLES: &str = "\
Examples:
  fathom catalog list --provider aws
  fathom catalog show aws-gp2-2016 --size 50GiB
  fathom catalog fit --iops 5000 --bandwidth 200MiB --size 500GiB
  fathom catalog published aws-gp2-2016
  fathom catalog check my-volumes.toml
  fathom catalog import-prices index.json --region us-east-1";

#[derive(Subcommand)]
enum CatalogAction {
    /// List volume types with their maximum rates
    List(CatalogListArguments),
    /// Show one type: limits, bursts, rates by block size, price and source
    Show(ShowArguments),
    /// Find types and sizes that meet requirements, cheapest first, and why others do not
    Fit(FitArguments),
    /// Compare published measurements with the models of their types
    Published(PublishedArguments),
    /// Validate a catalogue file, or list what is stale
    Check(CheckArguments),
    /// Show what differs between two catalogue files or types
    Diff(DiffArguments),
    /// Take prices from the price list of AWS, Azure or GCP; list or remove them
    ImportPrices(ImportPricesArguments),
}

/// Does what is asked.
///
/// # Errors
/// The catalogue or what is asked of it makes no sense.
pub fn run(command: CatalogCommand) -> Result<Exit, Complaint> {
    match command.command {
        CatalogAction::List(arguments) => list(&arguments),
        CatalogAction::Show(arguments) => show(&arguments),
        CatalogAction::Fit(arguments) => fit(&arguments),
        CatalogAction::Published(arguments) => published(&arguments),
        CatalogAction::Check(arguments) => check(&arguments),
        CatalogAction::Diff(arguments) => diff(&arguments),
        CatalogAction::ImportPrices(arguments) => import_prices(&arguments),
    }
}

/// What `fathom catalog check` takes.
#[derive(Args)]
#[command(after_long_help = CHECK_EXAMPLES)]
pub struct CheckArguments {
    /// Catalogue file [default with --stale: the built-in types and your own]
    #[arg(required_unless_present = "stale")]
    file: Option<PathBuf>,
    /// List the types whose rules or prices are older than this: 90d, 52w
    #[arg(long, value_parser = positive_duration, value_name = "TIME")]
    stale: Option<Nanos>,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  fathom catalog check my-volumes.toml
  fathom catalog check --stale 90d
  fathom bench --catalog my-volumes.toml sim:my-ssd";

pub fn check(arguments: &CheckArguments) -> Result<Exit, Complaint> {
    let own = match &arguments.file {
        Some(path) => read_catalogue(path)?,
        None => VolumeTypes::default().catalogue()?.clone(),
    };
    if let Some(age) = arguments.stale {
        return list_stale(&own, age, &arguments.form);
    }
    if arguments.form.format() != Format::Text {
        let hint = "add --stale, whose list has every format".to_owned();
        return Err(Complaint::usage("a validated file is reported as text only", Some(hint)));
    }
    let count = own.entries().count();
    if count == 0 {
        let hint =
            "start each entry with [volume.ID]; `fathom catalog show ID` shows a built-in one".to_owned();
        return Err(Complaint::usage(
            format!(
                "cannot use {}: it defines no volume type",
                arguments.file.as_deref().unwrap_or(Path::new("-")).display()
            ),
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

fn list_stale(catalog: &Catalog, age: Nanos, form: &FormatArguments) -> Result<Exit, Complaint> {
    let today: Date =
        today().parse().map_err(|error| Complaint::failed(format!("cannot read the date: {error}"), None))?;
    let days = Span::new().days(i64::try_from(age.0 / 86_400_000_000_000).unwrap_or(i64::MAX).min(3_650_000));
    let limit = today.checked_sub(days).unwrap_or(Date::MIN).to_string();
    let is_stale = |entry: &&CatalogEntry| {
        let price = entry.price().and_then(|price| price.as_of);
        let is_old =
            ended_before(entry.as_of(), &limit) || price.is_some_and(|date| ended_before(&date, &limit));
        is_old && entry.lifecycle() != Lifecycle::Historical
    };
    let types: Vec<&CatalogEntry> = catalog.entries().filter(is_stale).collect();
    form.print(|| upkeep::stale_view(&types, &limit), |out| upkeep::stale_json(&types, &limit, out))?;
    Ok(Exit::Done)
}

/// What `fathom catalog diff` takes.
#[derive(Args)]
#[command(after_long_help = DIFF_EXAMPLES)]
pub struct DiffArguments {
    /// Catalogue file, or a type of the catalogue
    #[arg(value_name = "OLD")]
    old: String,
    /// Another of the same kind [default: the built-in types of those names]
    #[arg(value_name = "NEW")]
    new: Option<String>,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  fathom catalog diff volumes-2025.toml volumes-2026.toml
  fathom catalog diff my-volumes.toml            against the built-in types
  fathom catalog diff aws-gp2-2016 aws-gp2";

fn diff(arguments: &DiffArguments) -> Result<Exit, Complaint> {
    let shipped = WrittenTypes::shipped();
    let has = |name: &str| shipped.ids().any(|id| id == name);
    let file = |name: &str| -> Result<WrittenTypes, Complaint> {
        let path = Path::new(name);
        // One that is not valid is refused with its line.
        read_catalogue(path)?;
        Ok(WrittenTypes::parse(&std::fs::read_to_string(path)?))
    };
    let (old, new) = match &arguments.new {
        Some(new) if has(&arguments.old) && has(new) => {
            (shipped.renamed(&arguments.old, new), shipped.renamed(new, new))
        }
        Some(new) => (file(&arguments.old)?, file(new)?),
        None => {
            let own = file(&arguments.old)?;
            (shipped.only(own.ids()), own)
        }
    };
    let changes = old.changes(&new);
    arguments.form.print(|| upkeep::changes_view(&changes), |out| upkeep::changes_json(&changes, out))?;
    Ok(Exit::Done)
}

/// What `fathom catalog fit` takes.
#[derive(Args)]
#[command(after_long_help = FIT_EXAMPLES)]
pub struct FitArguments {
    #[command(flatten)]
    need: NeedArguments,
    /// Latency objective: 'p99<5ms', 'mean<1ms' (repeatable)
    ///
    /// Checked against published or typical latencies.
    #[arg(long, alias = "latency", value_parser = LatencyObjective::parse_recorded, value_name = "OBJECTIVE")]
    expect: Vec<LatencyObjective>,
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
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
    #[command(flatten, next_help_heading = "Catalogue")]
    catalog: CatalogArguments,
}

const FIT_EXAMPLES: &str = "\
Examples:
  fathom catalog fit --iops 5000 --bandwidth 200MiB --size 500GiB
  fathom catalog fit --iops 3000 --burst 30m/day --baseline-iops 200
  fathom catalog fit --profile oltp --size 200GiB --provider aws
  fathom catalog fit --iops 3000 --size 100GiB --currency CNY
  fathom catalog fit --bandwidth 500MiB --size 2TiB --persistent --json
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

pub fn fit(arguments: &FitArguments) -> Result<Exit, Complaint> {
    let types = arguments.catalog.types();
    let catalog = types.catalogue()?;
    check_provider(catalog, arguments.provider.as_deref())?;
    let said = need(&arguments.need.settings(arguments.expect.clone(), arguments.persistent))?;
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

/// What `fathom catalog import-prices` takes.
#[derive(Args)]
#[command(after_long_help = IMPORT_PRICES_EXAMPLES, arg_required_else_help = true)]
pub struct ImportPricesArguments {
    /// Price list (- for standard input): AWS's offer file of AmazonEC2, Azure's retail prices, SKUs of GCP, as JSON
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present_any = ["list", "remove"])]
    file: Option<PathBuf>,
    /// Region of a list that has several: us-east-1, eastus, us-central1
    #[arg(long, value_name = "REGION", requires = "file")]
    region: Option<String>,
    /// Date of the prices, YYYY-MM-DD [default: that of the list, else today]
    #[arg(long, value_name = "DATE", value_parser = date, requires = "file")]
    as_of: Option<String>,
    /// List the imported prices
    #[arg(long, conflicts_with_all = ["file", "remove"])]
    list: bool,
    /// Remove the imported price of a volume type, or `all`
    #[arg(long, value_name = "TYPE", conflicts_with = "file")]
    remove: Option<String>,
}

const IMPORT_PRICES_EXAMPLES: &str = "\
Imported prices take precedence over those of the catalogue in every command. They are kept in
fathom/prices.json in XDG_DATA_HOME (~/.local/share).
docs/src/reference/catalogue.md has the addresses of the lists.

Examples:
  fathom catalog import-prices index.json
  fathom catalog import-prices retail-prices.json --region eastus
  fathom catalog import-prices --list
  fathom catalog import-prices --remove aws-gp3";

fn date(text: &str) -> Result<String, String> {
    match text.parse::<jiff::civil::Date>() {
        Ok(date) => Ok(date.to_string()),
        Err(_) => Err("a date has the form 2026-11-23".to_owned()),
    }
}

/// Imports, lists or removes prices.
///
/// # Errors
/// The list makes no sense, or the file of the prices cannot be read or written.
pub fn import_prices(arguments: &ImportPricesArguments) -> Result<Exit, Complaint> {
    let mut store = PriceStore::open()?;
    if let Some(id) = &arguments.remove {
        return remove(&mut store, id);
    }
    let Some(file) = &arguments.file else {
        output::print(|out| list_prices(&store, out))?;
        return Ok(Exit::Done);
    };
    let types = VolumeTypes::new(None);
    let (region, date) = (arguments.region.as_deref(), arguments.as_of.as_deref());
    let found = price_list(file, region, date, types.catalogue()?)?;
    store.prices.take(found.clone());
    store.save()?;
    output::print(|out| {
        found.prices.iter().try_for_each(|(id, price)| line(id, price, out))?;
        let types = match found.prices.len() {
            1 => "1 volume type".to_owned(),
            count => format!("{count} volume types"),
        };
        let path = store.path().display();
        writeln!(out, "Imported the prices of {types} in {} to {path}.", found.region)
    })?;
    Ok(Exit::Done)
}

fn remove(store: &mut PriceStore, id: &str) -> Result<Exit, Complaint> {
    let ids: Vec<String> = store.prices.iter().map(|(id, _)| id.to_owned()).collect();
    let removed: Vec<String> = ids.iter().filter(|known| id == "all" || *known == id).cloned().collect();
    if removed.is_empty() {
        let hint = match ids.is_empty() {
            true => "no price has been imported".to_owned(),
            false => format!("use one of {}, or all", ids.join(", ")),
        };
        return Err(Complaint::usage(format!("there is no imported price of '{id}'"), Some(hint)));
    }
    for id in &removed {
        store.prices.remove(id);
    }
    store.save()?;
    output::print(|out| writeln!(out, "Removed the imported prices of {}.", removed.join(", ")))?;
    Ok(Exit::Done)
}

fn list_prices(store: &PriceStore, out: &mut TextWriter) -> io::Result<()> {
    if store.prices.is_empty() {
        return writeln!(out, "No price has been imported.");
    }
    store.prices.iter().try_for_each(|(id, price)| line(id, price, out))
}

fn line(id: &str, price: &Price, out: &mut TextWriter) -> io::Result<()> {
    writeln!(out, "{id}: {}", price_text(&price.clone().on_day(&today())))
}

/// What `fathom catalog list` takes.
#[derive(Args)]
#[command(after_long_help = LIST_EXAMPLES)]
pub struct CatalogListArguments {
    /// List only types of this provider: aws, gcp, linode, ...
    #[arg(long)]
    provider: Option<String>,
    /// List only types on this medium: ssd, hdd, nvme, hybrid, local
    #[arg(long, alias = "kind")]
    medium: Option<String>,
    /// Omit types that are no longer sold
    #[arg(long)]
    current: bool,
    /// List instances with their limits on volumes instead of volume types
    #[arg(long, conflicts_with_all = ["medium", "current"])]
    instances: bool,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
    #[command(flatten, next_help_heading = "Catalogue")]
    catalog: CatalogArguments,
}

const LIST_EXAMPLES: &str = "\
Examples:
  fathom catalog list
  fathom catalog list --provider azure --current
  fathom catalog list --medium hdd --json
  fathom catalog list --instances --provider aws";

pub fn list(arguments: &CatalogListArguments) -> Result<Exit, Complaint> {
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
    if let Some(kind) = &arguments.medium
        && !catalog.entries().any(|entry| is_kind(entry, kind))
    {
        let hint = one_of_all(catalog, CatalogEntry::media);
        return Err(Complaint::usage(format!("unknown medium '{kind}'"), Some(hint)));
    }
    let wanted = |entry: &&CatalogEntry| {
        arguments.provider.as_ref().is_none_or(|name| entry.is_of(name))
            && arguments.medium.as_ref().is_none_or(|kind| is_kind(entry, kind))
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

/// What `fathom catalog published` takes.
#[derive(Args)]
#[command(after_long_help = PUBLISHED_EXAMPLES)]
pub struct PublishedArguments {
    /// Volume type (see `fathom catalog list`) [default: all]
    #[arg(value_name = "TYPE")]
    id: Option<String>,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
}

const PUBLISHED_EXAMPLES: &str = "\
Examples:
  fathom catalog published aws-gp2-2016
  fathom catalog published --json";

pub fn published(arguments: &PublishedArguments) -> Result<Exit, Complaint> {
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

/// What `fathom catalog show` takes.
#[derive(Args)]
#[command(after_long_help = SHOW_EXAMPLES)]
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
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
    #[command(flatten, next_help_heading = "Catalogue")]
    catalog: CatalogArguments,
}

const SHOW_EXAMPLES: &str = "\
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

pub fn show(arguments: &ShowArguments) -> Result<Exit, Complaint> {
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

/// Which catalogue is used.
#[derive(Args)]
pub struct CatalogArguments {
    /// Additional volume types [default: FATHOM_CATALOG, else fathom/volumes.toml in ~/.config]
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
}

impl CatalogArguments {
    /// The types that names mean.
    pub fn types(&self) -> VolumeTypes {
        VolumeTypes::new(self.catalog.clone())
    }
}
