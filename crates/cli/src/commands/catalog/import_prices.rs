//! `fathom catalog import-prices`.

use std::io;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use fathom_assess::{PriceStore, VolumeTypes, price_list, today};
use fathom_model::Price;
use fathom_report::TextWriter;
use fathom_report::catalog::show::price_text;

use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom catalog import-prices` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
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

const EXAMPLES: &str = "\
Imported prices take precedence over those of the catalogue in every command. They are kept in
fathom/prices.json in XDG_DATA_HOME (~/.local/share). docs/catalog.md has the addresses of the lists.

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
pub fn run(arguments: &ImportPricesArguments) -> Result<Exit, Complaint> {
    let mut store = PriceStore::open()?;
    if let Some(id) = &arguments.remove {
        return remove(&mut store, id);
    }
    let Some(file) = &arguments.file else {
        output::print(|out| list(&store, out))?;
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

fn list(store: &PriceStore, out: &mut TextWriter) -> io::Result<()> {
    if store.prices.is_empty() {
        return writeln!(out, "No price has been imported.");
    }
    store.prices.iter().try_for_each(|(id, price)| line(id, price, out))
}

fn line(id: &str, price: &Price, out: &mut TextWriter) -> io::Result<()> {
    writeln!(out, "{id}: {}", price_text(&price.clone().on_day(&today())))
}
