//! `fathom catalog`: the volume types that are known, what each gives and costs, and which of them serve a need.

mod check;
mod fit;
mod import_prices;
mod list;
mod published;
mod show;

use clap::{Args, Subcommand};

pub use show::{rate, size};

use crate::exit::{Complaint, Exit};

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
  fathom catalog fit --iops 5000 --throughput 200MiB --size 500GiB
  fathom catalog published aws-gp2-2016
  fathom catalog check my-volumes.toml
  fathom catalog import-prices index.json --region us-east-1";

#[derive(Subcommand)]
enum CatalogAction {
    /// List volume types with their maximum rates
    List(list::CatalogListArguments),
    /// Show one type: limits, bursts, rates by block size, price and source
    Show(show::ShowArguments),
    /// Find types and sizes that meet requirements, cheapest first, and why others do not
    Fit(fit::FitArguments),
    /// Compare published measurements with the models of their types
    Published(published::PublishedArguments),
    /// Validate a catalogue file
    Check(check::CheckArguments),
    /// Take prices from the price list of AWS, Azure or GCP; list or remove them
    ImportPrices(import_prices::ImportPricesArguments),
}

/// Does what is asked.
///
/// # Errors
/// The catalogue or what is asked of it makes no sense.
pub fn run(command: CatalogCommand) -> Result<Exit, Complaint> {
    match command.command {
        CatalogAction::List(arguments) => list::run(&arguments),
        CatalogAction::Show(arguments) => show::run(&arguments),
        CatalogAction::Fit(arguments) => fit::run(&arguments),
        CatalogAction::Published(arguments) => published::run(&arguments),
        CatalogAction::Check(arguments) => check::run(&arguments),
        CatalogAction::ImportPrices(arguments) => import_prices::run(&arguments),
    }
}
