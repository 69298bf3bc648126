//! `fathom catalog fit`.

use clap::Args;
use fathom_analysis::criterion::LatencyObjective;
use fathom_assess::need::{NeedSettings, need};
use fathom_catalog::{FitScope, Instances};
use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, parse_bytes, parse_duration};
use fathom_report::view::View;
use fathom_report::{catalog::fit as catalog_fit, catalog::json as catalog_json};

use super::list::check_provider;
use super::show::{rate, size};
use crate::commands::catalog_arguments::CatalogArguments;
use crate::commands::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};

/// What `fathom catalog fit` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct FitArguments {
    /// Required IOPS
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), value_name = "NUMBER")]
    iops: Option<u64>,
    /// Required bandwidth per second: 200MiB; together with --iops it sets the block size
    #[arg(long, value_parser = rate, value_name = "BYTES")]
    throughput: Option<u64>,
    /// Required capacity: 500GiB
    #[arg(long, value_parser = size, value_name = "SIZE")]
    size: Option<u64>,
    /// Block size [default: from the rates, else 4k; 1m with --throughput only]
    #[arg(long, value_parser = parse_bytes, value_name = "SIZE")]
    bs: Option<u64>,
    /// Pattern: randread, randwrite, randrw, read, write or rw [default: random, any mix]
    #[arg(long, value_name = "PATTERN")]
    rw: Option<String>,
    /// Percentage of reads in a mix [default: any]
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=100), value_name = "PERCENT")]
    rwmixread: Option<u8>,
    /// Latency objective, checked against published or typical latencies: 'p99<5ms', 'mean<1ms' (repeatable)
    #[arg(long, value_parser = LatencyObjective::parse_recorded, value_name = "OBJECTIVE")]
    latency: Vec<LatencyObjective>,
    /// Time under load per hour, day or week, so that burst credits may serve it: 30m/day
    #[arg(long, value_parser = burst, value_name = "TIME/PERIOD")]
    burst: Option<(Nanos, Nanos)>,
    /// Required IOPS between bursts
    #[arg(long, requires = "burst", value_name = "NUMBER")]
    baseline_iops: Option<u64>,
    /// Require volumes that outlive the instance
    #[arg(long)]
    persistent: bool,
    /// Instance that the volume is attached to, whose limits apply as well: m6i.large
    #[arg(long, value_name = "INSTANCE")]
    instance: Option<String>,
    /// Requirements of a workload profile (see `fathom bench --profile list`); other options override them
    #[arg(long)]
    profile: Option<String>,
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

/// A currency code, in any case.
fn currency(text: &str) -> Result<String, String> {
    match text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        true => Ok(text.to_ascii_uppercase()),
        false => Err(format!("'{text}' is not a currency code, as in USD or EUR")),
    }
}

/// `30m/day`.
fn burst(text: &str) -> Result<(Nanos, Nanos), String> {
    let wrong = || format!("'{text}' is not TIME/PERIOD, as in 30m/day or 5m/h");
    let (length, every) = text.split_once('/').ok_or_else(wrong)?;
    let length = parse_duration(length).map_err(|_| wrong())?;
    let every = match every.trim() {
        "hour" | "h" => Nanos::from_secs(3600),
        "day" | "d" => Nanos::from_secs(86_400),
        "week" | "w" => Nanos::from_secs(7 * 86_400),
        other => parse_duration(other).map_err(|_| wrong())?,
    };
    match length {
        Nanos::ZERO => Err("the time must be above 0".to_owned()),
        length if length >= every => {
            Err("the time must be shorter than its period; for a continuous load omit --burst".to_owned())
        }
        length => Ok((length, every)),
    }
}

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
    let said = need(&NeedSettings {
        size: arguments.size,
        iops: arguments.iops,
        bytes_per_second: arguments.throughput,
        block: arguments.bs,
        rw: arguments.rw.clone(),
        read_percent: arguments.rwmixread,
        latency: arguments.latency.clone(),
        burst: arguments.burst,
        baseline_iops: arguments.baseline_iops,
        persistent: arguments.persistent,
        instance: arguments.instance.clone(),
        profile: arguments.profile.clone(),
    })?;
    let provider = arguments.instance.as_deref().map(|id| provider_of(id, arguments.provider.as_deref()));
    let provider = provider.transpose()?.or(arguments.provider.as_deref());
    let scope = FitScope { provider, historical: arguments.historical, currency: Some(&arguments.currency) };
    let fit = catalog.fit(&said.need, scope);
    arguments.form.print(
        || View {
            units: arguments.throughput.map(|rate| UnitSystem::of(rate as f64)),
            ..catalog_fit::view(&fit, &said.text)
        },
        |out| catalog_json::fit(&fit, &said.need, &said.text, out),
    )?;
    Ok(if fit.offers().next().is_some() { Exit::Done } else { Exit::Missed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts() {
        let seconds = |length: u64, every: u64| Some((Nanos::from_secs(length), Nanos::from_secs(every)));
        for (text, expected) in [
            ("30m/day", seconds(1800, 86_400)),
            ("90/h", seconds(90, 3600)),
            ("2h/week", seconds(7200, 604_800)),
            ("10s/5m", seconds(10, 300)),
            ("1d/day", None),
            ("0/day", None),
            ("30m", None),
            ("30m/", None),
            ("/day", None),
        ] {
            assert_eq!(burst(text).ok(), expected, "{text}");
        }
        assert_eq!(size("50GiB"), Ok(50 << 30));
        assert!(size("0").is_err() && size("50").is_err() && rate("0").is_err());
        assert_eq!((rate("200MiB/s"), rate("200MB")), (Ok(200 << 20), Ok(200_000_000)));
    }
}
