//! `fathom trace`: observed loads, as `monitor --record` and other programs recorded them.

mod convert;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use fathom_assess::{open_observed_load, refused_load};
use fathom_observed::LoadSource;
use fathom_predict::load_profile::{load_profile, profile_of_requests};
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
  fathom monitor --record app.load nvme1n1
  fathom trace info app.load
  fathom trace info cloudwatch.json --json
  fathom trace convert app.load --file /mnt/test/file > app.iolog";

#[derive(Subcommand)]
enum TraceAction {
    /// Show what a recording holds: rates by hour, sizes, order, burstiness, working set, latency, gaps
    Info(InfoArguments),
    /// Write the requests of a recording as an iolog, which fio and `fathom fio` replay
    Convert(convert::ConvertArguments),
}

/// What `fathom trace info` takes.
#[derive(Args)]
#[command(after_long_help = INFO_EXAMPLES)]
struct InfoArguments {
    /// Recording (- for standard input); the format follows from its content
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: PathBuf,
    /// Device of a recording that has several; of an iolog, one of its files
    #[arg(long = "device", value_name = "NAME")]
    trace_device: Option<String>,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
}

const INFO_EXAMPLES: &str = "\
Formats: `fathom monitor --record`, fio iolog 2 and 3, blktrace, blkparse, `sar -d`, `sadf -j -- -d`, `iostat -x -t -o
JSON`, Prometheus query_range of node_exporter, AWS CloudWatch (JSON, CSV), Azure Monitor, GCP Monitoring; see
docs/src/reference/load-recordings.md.

Examples:
  fathom trace info app.load
  cat app.load.* | fathom trace info -
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
        TraceAction::Convert(arguments) => convert::run(&arguments),
    }
}

fn info(arguments: &InfoArguments) -> Result<Exit, Complaint> {
    let file = name_of(&arguments.trace);
    let (load, profile) = match open_observed_load(&arguments.trace, arguments.trace_device.as_deref())? {
        LoadSource::Whole(load) => {
            let profile = load_profile(&load);
            (load, profile)
        }
        LoadSource::Stream(requests) => {
            profile_of_requests(requests).map_err(|error| refused_load(&file, error))?
        }
    };
    let info = TraceInfo { file: &file, load: &load, profile: &profile };
    arguments.form.print(|| view(info), |out| json::render(info, out))?;
    Ok(Exit::Done)
}

/// What a recording is called.
fn name_of(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}
