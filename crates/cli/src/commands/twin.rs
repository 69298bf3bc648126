//! `fathom twin`: twins of real volumes, and how far they are from them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Args, Subcommand};
use fathom_analysis::twin::Twin;
use fathom_analysis::twin::agreement::TwinAgreement;
use fathom_assess::{AssessError, BenchPlan, BenchSettings, Effort, RunSettings, TwinStore, is_simulated};
use fathom_model::Nanos;
use fathom_model::units::parse_capacity;
use fathom_record::RunRecord;
use fathom_report::twin::{TwinCheck, check_view, list_view, show_view, write_check, write_list, write_twin};

use super::bench::plan::plan_text;
use super::format_arguments::FormatArguments;
use super::measuring::Measuring;
use super::run_arguments::RunArguments;
use super::words::positive_duration;
use crate::exit::{Complaint, Exit};
use crate::progress::BenchCourse;

/// What `fathom twin` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct TwinCommand {
    #[command(subcommand)]
    action: TwinAction,
}

const EXAMPLES: &str = "\
Twins are kept in FATHOM_TWINS, else in fathom/twins in ~/.local/share.

Examples:
  fathom identify --save data1 /mnt/data    identify a volume and keep its twin
  fathom bench sim:@data1                   any command that measures takes it, in virtual time
  fathom twin check data1 /mnt/data         the same loads on both: how far they are apart";

#[derive(Subcommand)]
enum TwinAction {
    /// Compare a volume with its twin under the same loads: rates and latencies
    Check(Box<CheckArguments>),
    /// List the twins
    List(ListArguments),
    /// Show the limits, burst credits and latencies of a twin
    Show(NamedArguments),
    /// Remove a twin
    #[command(after_long_help = REMOVE_EXAMPLES)]
    Remove {
        /// Name of the twin
        name: String,
    },
}

#[derive(Args)]
#[command(after_long_help = CHECK_EXAMPLES)]
struct CheckArguments {
    /// Name of the twin
    name: String,
    /// Directory (for a temporary test file), file, block device or simulated volume
    target: PathBuf,
    /// Run each load for 6 s
    #[arg(long, conflicts_with = "thorough")]
    quick: bool,
    /// Run each load for a minute
    #[arg(long)]
    thorough: bool,
    /// Measured time of each load [default: 15s]
    #[arg(long, value_parser = positive_duration, value_name = "TIME")]
    runtime: Option<Nanos>,
    /// Run only these loads, separated by commas: read-d1, read-d8, read-d64, write-d1, write-d8, write-d64
    #[arg(long, value_delimiter = ',', value_name = "ID,...")]
    only: Vec<String>,
    /// Size of the test file, or of the range to use: 512m, 10g, 200MB
    #[arg(long, value_parser = parse_capacity)]
    size: Option<u64>,
    /// Allow writes to this block device or file, which must be the target; destroys its data
    #[arg(long, value_name = "DEVICE")]
    destroy_data: Option<PathBuf>,
    /// Exit with 4 if a load is inconclusive and none differs
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    run: RunArguments,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  fathom twin check data1 /mnt/data
  fathom twin check data1 /dev/nvme1n1      reads only
  fathom twin check data1 --destroy-data=/dev/nvme1n1 /dev/nvme1n1
  fathom twin check data1 /mnt/data --json

Exit status: 0 agrees or inconclusive, 1 failed, 2 usage, 3 differs, 4 with --strict inconclusive, 130 interrupted.";

#[derive(Args)]
#[command(after_long_help = LIST_EXAMPLES)]
struct ListArguments {
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
}

#[derive(Args)]
#[command(after_long_help = SHOW_EXAMPLES)]
struct NamedArguments {
    /// Name of the twin
    name: String,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
}

const LIST_EXAMPLES: &str = "\
Examples:
  fathom twin list
  fathom twin list --json";
const SHOW_EXAMPLES: &str = "\
Examples:
  fathom twin show data1
  fathom twin show data1 --json             the file of the twin, indented";
const REMOVE_EXAMPLES: &str = "\
Examples:
  fathom twin remove data1";

/// Does what is asked.
///
/// # Errors
/// There is no such twin, or the volume cannot be measured.
pub fn run(command: TwinCommand, line: &[OsString]) -> Result<Exit, Complaint> {
    let store = TwinStore::usual()?;
    match command.action {
        TwinAction::Check(arguments) => check(*arguments, &store, line),
        TwinAction::List(ListArguments { form }) => {
            let (mut twins, mut unreadable) = (Vec::new(), Vec::new());
            for name in store.names()? {
                match store.load(&name) {
                    Ok(twin) => twins.push((name, twin)),
                    // One that was damaged hides no other.
                    Err(error) => unreadable.push(error.to_string()),
                }
            }
            form.print(|| list_view(&twins, &unreadable), |out| write_list(&twins, &unreadable, out))?;
            Ok(Exit::Done)
        }
        TwinAction::Show(NamedArguments { name, form }) => {
            let twin = store.load(&name)?;
            form.print(|| show_view(&name, &twin), |out| write_twin(&twin, out))?;
            Ok(Exit::Done)
        }
        TwinAction::Remove { name } => {
            store.remove(&name)?;
            Ok(Exit::Done)
        }
    }
}

/// What the loads came to on the twin.
struct TwinRun {
    record: RunRecord,
    notes: Vec<String>,
}

fn check(arguments: CheckArguments, store: &TwinStore, line: &[OsString]) -> Result<Exit, Complaint> {
    let twin = store.load(&arguments.name)?;
    let measuring = Measuring::new(&arguments.run, is_simulated(&arguments.target));
    let (name, strict) = (arguments.name.clone(), arguments.strict);
    let target = arguments.target.display().to_string();
    let settings = settings(arguments, line);
    let plan = Arc::new(BenchPlan::make(settings.clone())?);
    measuring.announce(|out| plan_text(&plan, false, false, out))?;
    let shown = plan.clone();
    let run = Arc::new(Mutex::new(None));
    let (kept, named) = (run.clone(), name.clone());
    let agreed = Arc::new(Mutex::new(TwinAgreement::default()));
    let result = agreed.clone();
    let (_, exit) = measuring.run(
        move |control, observer| {
            let record = fathom_assess::run(&plan, &mut plan.session().controlled(control), observer)?;
            let on_twin = on_twin(&named, &twin, &settings, &record)?;
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(on_twin);
            Ok(record)
        },
        BenchCourse::new(shown),
        None,
        move |record, style, format, out| {
            let run = run.lock().unwrap_or_else(PoisonError::into_inner);
            let empty = TwinRun { record: RunRecord::default(), notes: Vec::new() };
            let TwinRun { record: on_twin, notes } = run.as_ref().unwrap_or(&empty);
            let agreement = TwinAgreement::of(record, on_twin);
            let check = TwinCheck { name: &name, target: &target, agreement: &agreement, notes };
            format.write(style, out, || check_view(check), |out| write_check(check, out))?;
            *result.lock().unwrap_or_else(PoisonError::into_inner) = agreement;
            Ok(())
        },
    )?;
    let agrees = agreed.lock().unwrap_or_else(PoisonError::into_inner).agrees;
    Ok(exit.with_criteria(agrees == Some(false), strict && agrees.is_none()))
}

/// Runs on the twin what ran on the volume, with full and with empty burst buckets, and keeps what is nearer to it.
fn on_twin(
    name: &str,
    twin: &Twin,
    settings: &BenchSettings,
    volume: &RunRecord,
) -> Result<TwinRun, AssessError> {
    let ran = volume.tests.iter().filter(|test| !test.jobs.is_empty()).map(|test| test.id.clone());
    let only: Vec<String> = ran.collect();
    if only.is_empty() {
        return Ok(TwinRun { record: RunRecord::default(), notes: Vec::new() });
    }
    let at = |parameters: &str| {
        let run = RunSettings {
            target: format!("sim:@{name}{parameters}").into(),
            size: None,
            destroy: Vec::new(),
            engine: None,
            buffered: false,
            ..settings.run.clone()
        };
        let plan = BenchPlan::make(BenchSettings { run, only: only.clone(), ..settings.clone() })?;
        fathom_assess::run(&plan, &mut plan.session(), &mut ())
    };
    let full = at("")?;
    if !twin.has_bursts() {
        return Ok(TwinRun { record: full, notes: Vec::new() });
    }
    let empty = at("?credits=0%")?;
    let apart = |record: &RunRecord| {
        let agreement = TwinAgreement::of(volume, record);
        let differences = agreement.loads.iter().filter_map(|load| load.rate_difference);
        differences.map(|share| share.abs().min(10.0)).sum::<f64>()
    };
    let (record, state) = if apart(&empty) < apart(&full) { (empty, "empty") } else { (full, "full") };
    let note = format!(
        "The twin began with {state} burst buckets: with these its rates are nearer to the volume's."
    );
    Ok(TwinRun { record, notes: vec![note] })
}

fn settings(arguments: CheckArguments, line: &[OsString]) -> BenchSettings {
    let effort = match (arguments.quick, arguments.thorough) {
        (true, _) => Effort::Quick,
        (_, true) => Effort::Thorough,
        _ => Effort::Default,
    };
    BenchSettings {
        run: arguments.run.settings(arguments.target, arguments.size, arguments.destroy_data, line),
        suite: "twin-check".to_owned(),
        effort,
        runtime: arguments.runtime,
        only: arguments.only,
        ..BenchSettings::default()
    }
}
