//! `fathom prepare`: brings a device or a file into the state that a measurement needs, and says what that costs first.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fathom_analysis::pattern::block_name;
use fathom_analysis::prepare::CompletedPiece;
use fathom_assess::prepare::{PrepareKind, PreparePlan, PrepareSettings, PrepareWorkload, prepare};
use fathom_assess::{PlannedTraffic, is_simulated};
use fathom_history::HistoryPath;
use fathom_model::Nanos;
use fathom_model::text::shell_quoted;
use fathom_model::units::{bytes, duration, parse_capacity};
use fathom_record::{ActivityKind, TestRecord, TestStatus};
use fathom_report::{TextWriter, document};
use serde_json::json;

use super::measuring::Measuring;
use super::run_arguments::RunArguments;
use super::shown;
use super::words::positive_duration;
use crate::exit::{Complaint, Exit};
use crate::progress::PrepareCourse;
use crate::{output, store};

/// What `fathom prepare` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct PrepareArguments {
    /// Block device, file, or file to create (with --size)
    target: PathBuf,
    /// Discard all blocks (in a file: punch a hole)
    #[arg(long)]
    trim: bool,
    /// Write every block once with incompressible data [default for a new file and with --destroy-data]
    #[arg(long, conflicts_with = "precondition")]
    fill: bool,
    /// Write every block twice, then RW[:BLOCK[:DEPTH]] until steady (SNIA) [default workload: randwrite:4k:32]
    #[arg(long, value_name = "WORKLOAD", num_args = 0..=1, require_equals = true, default_missing_value = "randwrite")]
    precondition: Option<PrepareWorkload>,
    /// Read every block once [default where writing is not allowed]
    #[arg(long)]
    touch: bool,
    /// Size of the file to create, or of the range to prepare: 512m, 10g, 200MB
    #[arg(long, value_parser = parse_capacity)]
    size: Option<u64>,
    /// Length of each round of the workload
    #[arg(long, value_parser = positive_duration, value_name = "TIME", requires = "precondition", default_value = "1m")]
    round: Nanos,
    /// Time limit for all rounds [default: 25 rounds]
    #[arg(long, value_parser = positive_duration, value_name = "TIME", requires = "precondition")]
    budget: Option<Nanos>,
    /// Resume the interrupted last run for this target; repeat its other options
    #[arg(long, conflicts_with = "no_history")]
    resume: bool,
    /// Allow writes to this block device or file, which must be the target; destroys its data
    #[arg(long, value_name = "DEVICE")]
    destroy_data: Option<PathBuf>,
    /// Print the plan and its cost without running it
    #[arg(long, conflicts_with_all = ["tui", "streams"])]
    dry_run: bool,
    #[command(flatten)]
    run: RunArguments,
}

const EXAMPLES: &str = "\
Examples:
  fathom prepare /dev/nvme1n1                          read every block once
  fathom prepare --destroy-data=/dev/nvme1n1 /dev/nvme1n1
  fathom prepare --trim --precondition --destroy-data=/dev/nvme1n1 /dev/nvme1n1
  fathom prepare /mnt/data/fathom.dat --size 10g       a file for bench, sweep and ping
  fathom prepare --resume /dev/nvme1n1                 resume an interrupted run";

/// Prepares a target.
///
/// # Errors
/// It could not begin.
pub fn run(arguments: PrepareArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    let mut measuring = Measuring::new(&arguments.run, !arguments.resume && is_simulated(&arguments.target));
    let (resume, dry_run) = (arguments.resume, arguments.dry_run);
    let plan_as_json = dry_run && arguments.run.form.is_json("a plan")?;
    let mut plan = PreparePlan::make(settings(arguments, command))?;
    let earlier = if resume { earlier(&mut plan, &measuring.place)? } else { Vec::new() };
    if dry_run {
        output::print(|out| if plan_as_json { plan_json(&plan, out) } else { plan_text(&plan, out) })?;
        return Ok(Exit::Done);
    }
    measuring.announce(|out| plan_text(&plan, out))?;
    measuring.going_on = Some(resuming(&plan));
    let plan = Arc::new(plan);
    let shown = plan.clone();
    let (_, exit) = measuring.run(
        move |control, observer| prepare(&plan, earlier, &mut plan.session().controlled(control), observer),
        PrepareCourse::new(shown),
        None,
        shown::show,
    )?;
    Ok(exit)
}

fn settings(arguments: PrepareArguments, command: &[OsString]) -> PrepareSettings {
    PrepareSettings {
        run: arguments.run.settings(arguments.target, arguments.size, arguments.destroy_data, command),
        trim: arguments.trim,
        fill: arguments.fill,
        precondition: arguments.precondition,
        touch: arguments.touch,
        round: Some(arguments.round),
        budget: arguments.budget,
        resume: arguments.resume,
    }
}

/// The pieces that the last run for this target has done.
fn earlier(plan: &mut PreparePlan, place: &HistoryPath) -> Result<Vec<TestRecord>, Complaint> {
    let target = plan.target_name();
    let anew = || Some("omit --resume to start from the beginning".to_owned());
    let Some((run, record)) = store::last_run(place, ActivityKind::Prepare, &target)? else {
        let message = format!("cannot resume: the history has no run of prepare for {target}");
        return Err(Complaint::failed(message, anew()));
    };
    if record.status == TestStatus::Complete {
        return Err(Complaint::failed(
            format!("cannot resume run {run}: it is complete for {target}"),
            anew(),
        ));
    }
    let done = |test: &&TestRecord| {
        CompletedPiece::of(test).is_some_and(|done| plan.stages.contains(&done.piece.stage))
    };
    let tests: Vec<TestRecord> = record.tests.iter().filter(done).cloned().collect();
    let first_ms = tests.iter().map(|test| test.started_unix_ms).min();
    if let Some(why) = plan.is_another(&record.header, first_ms) {
        return Err(Complaint::failed(format!("cannot resume run {run}: {why}"), anew()));
    }
    let moved = tests.iter().filter_map(CompletedPiece::of).map(|done| done.piece.length).sum();
    plan.notes.push(format!("resumes run {run}, which completed {}", bytes(moved)));
    Ok(tests)
}

/// The command line that goes on with this run.
fn resuming(plan: &PreparePlan) -> String {
    let said = &plan.settings.run.command;
    let mut words: Vec<String> =
        said.iter().filter(|word| *word != "--resume").map(|word| shell_quoted(word).into_owned()).collect();
    words.insert(2.min(words.len()), "--resume".to_owned());
    if plan.target.kind == PrepareKind::NewFile {
        words.push(format!("--destroy-data={}", shell_quoted(&plan.settings.run.target.to_string_lossy())));
    }
    words.join(" ")
}

/// What is going to be done and what it costs.
fn plan_text(plan: &PreparePlan, out: &mut TextWriter) -> io::Result<()> {
    let titles: Vec<&str> = plan.stages.iter().map(|stage| stage.title()).collect();
    let (name, size) = (plan.target_name(), bytes(plan.target.size));
    output::paragraph(&format!("Prepare {name}, {size}: {}.", titles.join("; ")), out)?;
    let traffic = plan.traffic();
    output::paragraph(&cost_text(plan, &traffic), out)?;
    if let (Some(workload), Some(rounds)) = (&plan.settings.precondition, plan.rounds) {
        let (round, most) = (rounds.round.unwrap_or_default(), rounds.budget);
        output::paragraph(
            &format!(
                "Then {} of {} at queue depth {}, in rounds of {} until the last five agree: {} at least, {} at most.",
                workload.rw,
                block_name(workload.block),
                workload.depth,
                duration(round),
                duration(rounds.least().unwrap_or_default()),
                duration(most)
            ),
            out,
        )?;
    }
    output::paragraph(&traffic.credit_texts().join(" "), out)?;
    let has_data = !matches!(plan.target.kind, PrepareKind::NewFile | PrepareKind::Simulated);
    if has_data && plan.stages.iter().any(|stage| stage.modifies()) {
        output::paragraph(&format!("Destroys all data on {name}."), out)?;
    }
    output::notes(&plan.notes, out)
}

/// `Writes 300 GiB: 51 min 12 s at 100 MiB/s, 5 min at 1 GiB/s.`
fn cost_text(plan: &PreparePlan, traffic: &PlannedTraffic) -> String {
    let [read, written, trimmed] = plan.bytes();
    let parts: Vec<String> = [("trims", trimmed), ("writes", written), ("reads", read)]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| format!("{word} {}", bytes(count)))
        .collect();
    let moved = read + written;
    let time = |bytes_per_second: u64| duration(Nanos((moved as f64 * 1e9 / bytes_per_second as f64) as u64));
    let pace = match (moved, traffic.most_bytes_per_second.zip(traffic.volume_type.as_ref())) {
        (0, _) => "no time limit".to_owned(),
        (_, Some((most, name))) => format!("{} at {}/s, the limit of {name}", time(most), bytes(most)),
        (_, None) => format!("{} at 100 MiB/s, {} at 1 GiB/s", time(100 << 20), time(1 << 30)),
    };
    let mut text = parts.join(", ");
    text[..1].make_ascii_uppercase();
    format!("{text}: {pace}.")
}

fn plan_json(plan: &PreparePlan, out: &mut TextWriter) -> io::Result<()> {
    let [read_bytes, write_bytes, trim_bytes] = plan.bytes();
    // Shortest and longest time of the workload; null without one.
    let time = |rounds: fathom_assess::Rounds| [rounds.least().unwrap_or_default().0, rounds.budget.0];
    let stages = plan.stages.iter().map(|&stage| {
        // Over the whole target in one piece, or of one round.
        json!({ "stage": stage.id(), "fio": plan.fio_command(stage) })
    });
    let document = json!({
        "schema": "fathom.prepare-plan/1",
        "target": plan.target_name(),
        "size_bytes": plan.target.size,
        "seed": plan.seed,
        "read_bytes": read_bytes,
        "write_bytes": write_bytes,
        "trim_bytes": trim_bytes,
        "workload_time_ns": plan.rounds.map(time),
        "stages": stages.collect::<Vec<_>>(),
        "notes": plan.notes,
    });
    document::write(&document, &mut out.json())
}
