//! `fathom history trend`: one metric over the stored runs.

use std::path::Path;

use clap::Args;
use fathom_analysis::criterion::{Metric, MetricDirection};
use fathom_history::{History, PATIENCE, TrendPoint};
use fathom_report::document;
use fathom_report::history::{TrendRow, trend_view};

use crate::commands::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};
use crate::output;

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
    let points = match path.exists() {
        true => History::open_existing(path, PATIENCE)?.trend(*metric, test.as_deref(), target.as_deref())?,
        // A user who never kept a run has an empty trend, not an error.
        false => Vec::new(),
    };
    let name = metric.to_string();
    let row = |TrendPoint { run, started_unix_ms, target, test, value }| TrendRow {
        run: u64::try_from(run.0).unwrap_or_default(),
        started_unix_ms,
        target,
        test,
        metric: name.clone(),
        value,
    };
    let rows: Vec<TrendRow> = points.into_iter().map(row).collect();
    let style = output::style();
    output::print(|out| {
        let view = || trend_view(*metric, &rows, &style);
        form.format().write(&style, out, view, |out| document::write(&rows, out))
    })?;
    Ok(Exit::Done)
}
