//! `fathom advise`: from what an application really did, or states, to the cheapest volume that serves it.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use fathom_analysis::advise::AdviceOrder;
use fathom_analysis::criterion::{Criterion, LatencyObjective, Statistic};
use fathom_assess::advise::{AdviseSettings, StatedPrice, advise};
use fathom_report::advise::{json, view};

use super::catalog::CatalogArguments;
use super::compare::monthly_price;
use super::format_arguments::FormatArguments;
use super::need_arguments::{NeedArguments, currency};
use super::report::{check_page, write_view};
use crate::exit::{Complaint, Exit};

/// What the first of the volumes that meet the objective is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AdvisedBy {
    /// The cheapest
    Price,
    /// The one with the lowest p99 latency, as far as latencies are published
    Latency,
    /// The one that holds the highest growth of the load
    Headroom,
}

/// What `fathom advise` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES, arg_required_else_help = true)]
pub struct AdviseArguments {
    /// Recordings of one load; - is standard input
    ///
    /// The longest is the load; a finer one shows how bursty it is.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Device of a recording that has several; file of an iolog
    #[arg(long = "device", requires = "files", value_name = "NAME")]
    trace_device: Option<String>,
    /// Objective: 'read.lat_ns.p99<5ms' (repeatable) [default: as now]
    ///
    /// Conditions as for `fathom bench --expect`, without a test: 'iops>=3000'. Without one nothing may be worse than now by more than
    /// 10 %.
    #[arg(long = "expect", alias = "latency", value_parser = AdviseGoal::parse, value_name = "CRITERION")]
    goals: Vec<AdviseGoal>,
    /// Present volume: aws-gp2?size=500GiB
    ///
    /// It is predicted beside the observed latency.
    #[arg(long, value_name = "VOLUME")]
    current: Option<String>,
    /// Volume to choose from (repeatable) [default: the catalogue]
    ///
    /// A type, ID?size=50GiB&…, or custom?iops=3000&…
    #[arg(long = "candidate", value_name = "VOLUME")]
    candidates: Vec<String>,
    /// Price of a candidate (repeatable): 'custom?iops=3000=12USD/month'
    #[arg(long = "price", value_parser = stated_price, value_name = "VOLUME=PRICE")]
    prices: Vec<StatedPrice>,
    /// Order of the volumes that meet the objective [default: price]
    #[arg(
        help_heading = "Search",
        long,
        value_enum,
        default_value = "price",
        hide_default_value = true,
        value_name = "FIGURE"
    )]
    by: AdvisedBy,
    /// Growth of the load to predict: 2x, 1.5x, 150% [default: 1x]
    #[arg(long, value_parser = growth, value_name = "FACTOR", default_value = "1x", hide_default_value = true)]
    growth: f64,
    #[command(flatten)]
    need: NeedArguments,
    /// Search only types of this provider; all = every one [default: that of --current or --instance, else all]
    #[arg(help_heading = "Search", long)]
    provider: Option<String>,
    /// Currency whose prices come first
    #[arg(help_heading = "Search", long, value_parser = currency, value_name = "CODE", default_value = "USD")]
    currency: String,
    /// Include types that are no longer sold
    #[arg(help_heading = "Search", long)]
    historical: bool,
    /// Write a page with charts to this file: advice.html
    #[arg(help_heading = "Output", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
    #[command(flatten, next_help_heading = "Catalogue")]
    catalog: CatalogArguments,
}

const EXAMPLES: &str = "\
Recordings: `fathom monitor --record`, fio iolog 3, blktrace, blkparse, sar, sadf, iostat,
Prometheus, CloudWatch, Azure Monitor, GCP Monitoring (docs/src/reference/load-recordings.md).
In place of a recording, --iops or --bandwidth states the load as for `fathom catalog fit`.

Examples:
  fathom advise cloudwatch.json --current 'aws-gp2?size=500GiB'
  fathom advise sda.blktrace --expect 'read.lat_ns.p99<5ms' --size 200GiB
  fathom advise week.json hour.blktrace --growth 2x --report advice.html
  fathom advise app.iolog --candidate 'sim:custom?iops=1200&latency=1ms' --json
  fathom advise --iops 3000 --burst 30m/day --baseline-iops 200 --size 100GiB --provider aws

Accesses no device. Exit status: 3 if no volume meets the objective for sure. Quote names with ? and &.";

/// What `--expect` asks for: a criterion that a prediction can decide.
#[derive(Clone, Debug)]
struct AdviseGoal {
    criterion: Criterion,
    /// The same as a limit on the latency of all I/Os, which the search of the catalogue can use.
    latency: Option<LatencyObjective>,
}

impl AdviseGoal {
    fn parse(text: &str) -> Result<AdviseGoal, String> {
        let criterion = Criterion::parse(text)?;
        if let Some(test) = &criterion.test {
            return Err(format!("'{test}' names a test, and a load is one whole: write read.lat_ns.p99<5ms"));
        }
        if !criterion.metric.is_recorded() {
            return Err(format!("{} is not predicted; use {}", criterion.metric, Statistic::RECORDED));
        }
        Ok(AdviseGoal { criterion, latency: LatencyObjective::parse_recorded(text).ok() })
    }
}

/// Range of factors.
const MIN_GROWTH: f64 = 0.01;
const MAX_GROWTH: f64 = 1000.0;

/// `2x`, `1.5` or `150%`.
fn growth(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (number, unit) = match (text.strip_suffix(['x', 'X']), text.strip_suffix('%')) {
        (Some(number), _) => (number, 1.0),
        (None, Some(number)) => (number, 0.01),
        (None, None) => (text, 1.0),
    };
    match number.trim().parse::<f64>().map(|number| number * unit) {
        Ok(growth) if (MIN_GROWTH..=MAX_GROWTH).contains(&growth) => Ok(growth),
        _ => Err(format!("'{text}' is not a factor from 0.01x to 1000x, as in 2x or 150%")),
    }
}

/// The name may hold the sign as well.
fn stated_price(text: &str) -> Result<StatedPrice, String> {
    let (volume, price) = text
        .rsplit_once('=')
        .filter(|(volume, _)| !volume.is_empty())
        .ok_or_else(|| format!("'{text}' is not a price: write VOLUME=12USD/month"))?;
    let (per_month, currency) = monthly_price(price)?;
    Ok(StatedPrice { volume: volume.to_owned(), per_month, currency })
}

/// Gives the advice.
///
/// # Errors
/// The load or a volume makes no sense, or the output cannot be written.
pub fn run(arguments: &AdviseArguments) -> Result<Exit, Complaint> {
    let latencies: Vec<_> = arguments.goals.iter().filter_map(|goal| goal.latency.clone()).collect();
    let is_recorded = !arguments.files.is_empty();
    let states_load = arguments.need.states_load() || !is_recorded && !latencies.is_empty();
    if states_load && is_recorded {
        let hint = "omit the recording, or the options of the stated load";
        return Err(Complaint::usage("a load is recorded or stated, not both", Some(hint.to_owned())));
    }
    if let Some(path) = &arguments.report {
        check_page(path)?;
    }
    let is_of_search = |goal: &&AdviseGoal| states_load && goal.latency.is_some();
    let expectations = arguments.goals.iter().filter(|goal| !is_of_search(goal));
    let expectations = expectations.map(|goal| goal.criterion.clone()).collect();
    let settings = AdviseSettings {
        files: arguments.files.clone(),
        device: arguments.trace_device.clone(),
        stated: states_load.then(|| arguments.need.settings(latencies, true)),
        candidates: arguments.candidates.clone(),
        current: arguments.current.clone(),
        instance: arguments.need.instance.clone(),
        provider: arguments.provider.clone(),
        size: arguments.need.size,
        expectations,
        growth: arguments.growth,
        historical: arguments.historical,
        order: match arguments.by {
            AdvisedBy::Price => AdviceOrder::Price,
            AdvisedBy::Latency => AdviceOrder::Latency,
            AdvisedBy::Headroom => AdviceOrder::Headroom,
        },
        currency: arguments.currency.clone(),
        prices: arguments.prices.clone(),
        types: arguments.catalog.types(),
    };
    let advice = advise(&settings)?;
    arguments.form.print(|| view(&advice), |out| json::render(&advice, out))?;
    if let Some(path) = &arguments.report {
        write_view(path, &view(&advice), &arguments.form.style())?;
    }
    Ok(if advice.answer().is_some() { Exit::Done } else { Exit::Missed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_of_the_load() {
        let has_latency = |text| AdviseGoal::parse(text).map(|goal| goal.latency.is_some()).ok();
        assert_eq!(
            ["p99<5ms", "read.lat_ns.p99<5ms", "iops>=3000"].map(has_latency),
            [true, false, false].map(Some)
        );
        assert_eq!(["rand-read.iops>=3000", "p97<5ms"].map(has_latency), [None; 2]);
    }

    #[test]
    fn prices_are_of_a_volume() {
        let price = stated_price("custom?iops=3000&latency=1ms=12.5EUR/month").unwrap();
        assert_eq!((price.volume.as_str(), price.per_month), ("custom?iops=3000&latency=1ms", 12.5));
        assert_eq!(price.currency, "EUR");
        assert!(
            ["12USD/month", "=12USD/month", "a=12", "a=USD/month"]
                .iter()
                .all(|text| stated_price(text).is_err())
        );
    }

    #[test]
    fn factors_of_growth() {
        for (text, expected) in [
            ("2x", Some(2.0)),
            ("1.5X", Some(1.5)),
            ("150%", Some(1.5)),
            ("3", Some(3.0)),
            ("0x", None),
            ("-1x", None),
            ("x", None),
            ("1e9", None),
            ("NaN", None),
        ] {
            assert_eq!(growth(text).ok(), expected, "{text}");
        }
    }
}
