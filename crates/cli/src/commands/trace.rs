//! `fathom trace`: observed loads, as other programs recorded them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use fathom_analysis::load_profile::load_profile;
use fathom_assess::read_observed_load;
use fathom_report::trace_info::{TraceInfo, json, view};

use super::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};

/// What `fathom trace` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct TraceCommand {
    #[command(subcommand)]
    action: TraceAction,
}

const EXAMPLES: &str = "\
Examples:
  fathom trace info app.iolog
  fathom trace info sda.json --device nvme1n1
  fathom trace info cloudwatch.json --json";

#[derive(Subcommand)]
enum TraceAction {
    /// Show what a recording holds: rates by hour, sizes, order, burstiness, working set, latency, gaps
    Info(InfoArguments),
}

/// What `fathom trace info` takes.
#[derive(Args)]
#[command(after_help = INFO_EXAMPLES)]
struct InfoArguments {
    /// Recording (- for standard input); the format follows from its content
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: PathBuf,
    /// Device of a recording that has several; of an iolog, one of its files
    #[arg(long = "device", value_name = "NAME")]
    trace_device: Option<String>,
    #[command(flatten)]
    form: FormatArguments,
}

const INFO_EXAMPLES: &str = "\
Formats: fio iolog 2 and 3, blktrace, blkparse, `sar -d`, `sadf -j -- -d`, `iostat -x -t -o JSON`, Prometheus query_range
of node_exporter, AWS CloudWatch (JSON, CSV), Azure Monitor, GCP Monitoring; see docs/observed-load.md.

Examples:
  fathom trace info app.iolog
  cat sda.blktrace.* | fathom trace info -
  sadf -j /var/log/sysstat/sa22 -- -d | fathom trace info - --device nvme0n1
  aws cloudwatch get-metric-data --cli-input-json file://query.json > volume.json
  fathom trace info volume.json --format csv";

/// Does what is asked.
///
/// # Errors
/// The recording cannot be read, or standard output cannot be written.
pub fn run(command: TraceCommand) -> Result<Exit, Complaint> {
    match command.action {
        TraceAction::Info(arguments) => info(&arguments),
    }
}

fn info(arguments: &InfoArguments) -> Result<Exit, Complaint> {
    let load = read_observed_load(&arguments.trace, arguments.trace_device.as_deref())?;
    let profile = load_profile(&load);
    let file = arguments.trace.display().to_string();
    let file = if file == "-" { "standard input".to_owned() } else { file };
    let info = TraceInfo { file: &file, load: &load, profile: &profile };
    arguments.form.print(|| view(info), |out| json::render(info, out))?;
    Ok(Exit::Done)
}
