//! `fathom history trend`: one metric over the stored runs.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Args;
use fathom_analysis::criterion::{Metric, MetricDirection};
use fathom_history::{History, PATIENCE, TrendPoint};
use fathom_report::document;
use fathom_report::history::{TrendRow, trend_view};

use crate::commands::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};
use crate::output;

/// Tests and targets that are named where none matches.
const NAMED: usize = 10;

/// What `fathom history trend` takes.
#[derive(Args)]
pub struct TrendArguments {
    /// Metric: iops, read.lat_ns.p99, write.bytes_per_second, sync.lat_ns.p99, ...; all I/Os without a direction
    #[arg(value_parser = metric)]
    metric: Metric,
    /// Show only this test, by its id
    #[arg(long, value_name = "ID")]
    test: Option<String>,
    /// Show only runs of this target, as named on the command line
    #[arg(long)]
    target: Option<String>,
    #[command(flatten)]
    form: FormatArguments,
}

fn metric(text: &str) -> Result<Metric, String> {
    let metric = Metric::parse(text).filter(Metric::is_recorded);
    let metric = metric.ok_or_else(|| format!("unknown metric '{text}': use {}", Metric::KNOWN))?;
    Ok(Metric { direction: Some(metric.direction.unwrap_or(MetricDirection::Total)), ..metric })
}

/// Prints the metric of every run that has it.
///
/// # Errors
/// The history cannot be read.
pub fn run(arguments: &TrendArguments, path: &Path) -> Result<Exit, Complaint> {
    let TrendArguments { metric, test, target, form } = arguments;
    let name = metric.to_string();
    let (points, others) = match path.exists() {
        true => {
            let history = History::open_existing(path, PATIENCE)?;
            let points = history.trend(*metric, test.as_deref(), target.as_deref())?;
            let is_filtered = points.is_empty() && (test.is_some() || target.is_some());
            let others = if is_filtered { history.trend(*metric, None, None)? } else { Vec::new() };
            (points, others)
        }
        // A user who never kept a run has an empty trend, not an error.
        false => (Vec::new(), Vec::new()),
    };
    let none = none(&name, test.as_deref(), target.as_deref(), &others);
    let row = |TrendPoint { run, started_unix_ms, target, test, value }| TrendRow {
        run: u64::try_from(run.0).unwrap_or_default(),
        started_unix_ms,
        target,
        test,
        metric: name.clone(),
        value,
    };
    let rows: Vec<TrendRow> = points.into_iter().map(row).collect();
    let style = form.style();
    output::print(|out| {
        let view = || trend_view(*metric, &rows, &none, &style);
        form.format().write(&style, out, view, |out| document::write(&rows, out))
    })?;
    Ok(Exit::Done)
}

/// What there is to say where no run has the metric under these filters: which tests and targets have it instead.
fn none(metric: &str, test: Option<&str>, target: Option<&str>, others: &[TrendPoint]) -> String {
    if others.is_empty() {
        return format!("No stored run has {metric}.");
    }
    let words =
        [test.map(|test| format!(" --test {test}")), target.map(|target| format!(" --target {target}"))];
    let words: String = words.into_iter().flatten().collect();
    let names = |name: fn(&TrendPoint) -> &str| {
        let names: BTreeSet<&str> = others.iter().map(name).collect();
        names.into_iter().take(NAMED).collect::<Vec<_>>().join(", ")
    };
    let (tests, targets) = (names(|point| &point.test), names(|point| &point.target));
    format!("No stored run has {metric} under{words}. Tests that have it: {tests}. Targets: {targets}.")
}
