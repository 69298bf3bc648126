//! `fathom history trend`: one metric over the stored runs, and since when it is what it is.

use std::collections::BTreeSet;

use clap::Args;
use fathom_analysis::criterion::{Metric, MetricDirection, parse_address};
use fathom_analysis::trend::{TrendRow, by_key, by_time, series};
use fathom_history::{Filter, History, Location, PATIENCE, RunKey, TrendQuery};
use fathom_report::Style;
use fathom_report::formats::Format;
use fathom_report::history::trend::{TrendReport, data_view, render_json, view};

use super::filter::FilterArguments;
use crate::commands::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};

/// Tests and targets that are named where none matches.
const NAMED: usize = 10;

/// What `fathom history trend` takes.
#[derive(Args)]
pub struct TrendArguments {
    /// Metric, with or without its test: rand-read.read.iops, iops, read.lat_ns.p99, ...; all I/Os without a direction
    #[arg(value_parser = address, value_name = "[TEST.]METRIC")]
    metric: MetricOfTest,
    /// Series by target, device, host, type or label:NAME; hour compares the hours of the day
    #[arg(long, value_parser = grouping, value_name = "KEY", default_value = "target")]
    by: Grouping,
    #[command(flatten, next_help_heading = "Filters")]
    filter: FilterArguments,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
}

/// A metric with its direction, and the test it is of.
#[derive(Clone, Debug, PartialEq)]
struct MetricOfTest {
    test: Option<String>,
    metric: Metric,
}

fn address(text: &str) -> Result<MetricOfTest, String> {
    let (test, metric) = parse_address(text)?;
    if !metric.is_recorded() {
        return Err(format!("no run has the metric '{text}': use {}", Metric::KNOWN));
    }
    let direction = Some(metric.direction.unwrap_or(MetricDirection::Total));
    Ok(MetricOfTest { test, metric: Metric { direction, ..metric } })
}

/// What runs are grouped by.
#[derive(Clone, Debug, PartialEq)]
enum Grouping {
    Key(RunKey),
    Hour,
}

impl Grouping {
    fn name(&self) -> String {
        match self {
            Grouping::Key(key) => key.name(),
            Grouping::Hour => "hour".to_owned(),
        }
    }
}

fn grouping(text: &str) -> Result<Grouping, String> {
    if let Some(name) = text.strip_prefix("label:").filter(|name| !name.is_empty()) {
        return Ok(Grouping::Key(RunKey::Label(name.to_owned())));
    }
    let keys = [RunKey::Target, RunKey::Device, RunKey::Host, RunKey::VolumeType];
    match keys.into_iter().find(|key| key.name() == text) {
        Some(key) => Ok(Grouping::Key(key)),
        None if text == "hour" => Ok(Grouping::Hour),
        None => Err("use target, device, host, type, label:NAME or hour".to_owned()),
    }
}

/// Prints the metric of every run that has it.
///
/// # Errors
/// Those of [`report`].
pub fn run(arguments: &TrendArguments, location: &Location) -> Result<Exit, Complaint> {
    let form = &arguments.form;
    let style = form.style();
    let (report, none) = report(arguments, location, &style)?;
    let view = || match form.format() {
        Format::Csv | Format::Jsonl => data_view(&report),
        _ => view(&report, &none, &style),
    };
    form.print(view, |out| render_json(&report, out))?;
    Ok(Exit::Done)
}

/// The metric of every run that has it, and what there is to say where none has.
///
/// # Errors
/// The history cannot be read; two tests are named.
pub fn report(
    arguments: &TrendArguments,
    location: &Location,
    style: &Style,
) -> Result<(TrendReport, String), Complaint> {
    let TrendArguments { metric: MetricOfTest { test, metric }, by, filter, form: _ } = arguments;
    let mut wanted = filter.filter(None);
    if test.is_some() && wanted.test.is_some() && *test != wanted.test {
        return Err(Complaint::usage(
            format!(
                "the metric is of test {}, and --test names another",
                test.as_deref().unwrap_or_default()
            ),
            Some("name the test once".to_owned()),
        ));
    }
    let query = TrendQuery {
        metric: *metric,
        test: test.clone().or(wanted.test.take()),
        by: match by {
            Grouping::Key(key) => key.clone(),
            Grouping::Hour => RunKey::Target,
        },
        filter: wanted,
    };
    let (rows, others) = match History::open_if_there(location, PATIENCE)? {
        Some(history) => {
            let rows = history.trend(&query)?;
            let is_filtered = rows.is_empty() && (query.test.is_some() || query.filter != Filter::default());
            let every =
                TrendQuery { test: None, filter: Filter::default(), by: RunKey::Target, ..query.clone() };
            let others = if is_filtered { history.trend(&every)? } else { Vec::new() };
            (rows, others)
        }
        // A user who never kept a run has an empty trend, not an error.
        None => (Vec::new(), Vec::new()),
    };
    let none = none(&query, filter, &others);
    let series = series(rows);
    let groups = match by {
        Grouping::Key(_) => by_key(&series),
        Grouping::Hour => by_time(&series, |unix_ms| style.hour(unix_ms)),
    };
    Ok((TrendReport { metric: *metric, by: by.name(), series, groups }, none))
}

/// What there is to say where no run has the metric under these filters: which tests and targets have it instead.
fn none(query: &TrendQuery, filter: &FilterArguments, others: &[TrendRow]) -> String {
    let metric = query.metric;
    if others.is_empty() {
        return format!("No stored run has {metric}.");
    }
    let mut words = filter.words();
    words.retain(|word| !word.starts_with("--test "));
    words.extend(query.test.as_ref().map(|test| format!("--test {test}")));
    let names = |name: fn(&TrendRow) -> &str| {
        let names: BTreeSet<&str> = others.iter().map(name).collect();
        names.into_iter().take(NAMED).collect::<Vec<_>>().join(", ")
    };
    let (tests, targets) = (names(|row| &row.test), names(|row| &row.point.target));
    let words = words.join(" ");
    format!("No stored run has {metric} under {words}. Tests that have it: {tests}. Targets: {targets}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_may_name_their_test() {
        let of = |text: &str| address(text).map(|found| (found.test, found.metric.to_string()));
        assert_eq!(of("rand-read.read.iops"), Ok((Some("rand-read".to_owned()), "read.iops".to_owned())));
        assert_eq!(of("read.iops"), Ok((None, "read.iops".to_owned())));
        assert_eq!(of("p99"), Ok((None, "total.lat_ns.p99".to_owned())));
        assert!(of("p98").is_err() && of("rand-read.speed").is_err());
    }

    #[test]
    fn groups_are_named() {
        for name in ["target", "device", "host", "type", "label:volume", "hour"] {
            assert_eq!(grouping(name).unwrap().name(), name);
        }
        assert!(grouping("label:").is_err() && grouping("day").is_err());
    }
}
