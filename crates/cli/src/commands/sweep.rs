//! `fathom sweep`: measures over block size, depth, jobs and pattern, and says where the limits lie.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use clap::Args;
use fathom_analysis::criterion::{LatencyObjective, RateGoal};
use fathom_analysis::pattern::{AccessPattern, block_name};
use fathom_analysis::sweep::assess;
use fathom_analysis::sweep::spec::{Axis, depths, first_blocks};
use fathom_assess::fleet::Fleet;
use fathom_assess::is_simulated;
use fathom_assess::sweep::{SweepPlan, SweepSettings, sweep, sweep_by};
use fathom_history::HistoryPath;
use fathom_model::Nanos;
use fathom_model::units::{duration, parse_bytes, parse_capacity};
use fathom_record::{ActivityKind, RunRecord, TestRecord, TestStatus};
use fathom_report::TextWriter;
use fathom_report::sweep::ROWS;

use super::measuring::Measuring;
use super::run_arguments::RunArguments;
use super::shown;
use super::words::{one_of, sorted_once, time_for};
use crate::exit::{Complaint, Exit};
use crate::progress::RowPrinter;
use crate::progress::StepCourse;
use crate::ranks::FleetArguments;
use crate::{output, ranks, store};

/// What `fathom sweep` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct SweepArguments {
    /// Directory, file, block device or simulated volume (sim:ID?size=50GiB)
    target: PathBuf,
    /// Patterns: randread, read, randwrite, write
    #[arg(long, value_delimiter = ',', value_parser = pattern, default_value = "randread", value_name = "PATTERN,...")]
    rw: Vec<AccessPattern>,
    /// Block sizes: a range (4k-1m) or a list (4k,64k) [default: 4k-256k]
    ///
    /// Without it further sizes are measured as needed to find the crossover.
    #[arg(long, value_parser = blocks, value_name = "SIZES")]
    bs: Option<Axis>,
    /// Queue depths: a range (1-64) or a list (1,8,32)
    ///
    /// Of each job.
    #[arg(long, value_parser = depth_axis, default_value = "1-256", value_name = "DEPTHS")]
    iodepth: Axis,
    /// Numbers of jobs to sweep
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024), default_value = "1", value_name = "JOBS,...")]
    numjobs: Vec<u32>,
    /// Time limit: 90, 3m, 1h
    #[arg(long, value_parser = time_for("a sweep", 5), default_value = "3m", value_name = "TIME")]
    budget: Nanos,
    /// Find what meets a goal: 'p99<5ms', 'iops>=5000' (repeatable)
    ///
    /// For a latency ('p99<5ms', 'mean<=800us') it is the highest rate within it: in a closed loop, then with I/Os at
    /// random times. For a rate ('iops>=5000', 'bytes_per_second>=200MiB') it is the lowest queue depth.
    #[arg(long, value_parser = SweepGoal::parse, value_name = "GOAL", aliases = ["slo", "reach"])]
    expect: Vec<SweepGoal>,
    /// Exit with 4 if a goal is inconclusive and none is missed
    #[arg(help_heading = "Limits of the run", long)]
    strict: bool,
    /// Resume the interrupted last sweep of this target
    ///
    /// Repeat its other options.
    #[arg(long, conflicts_with = "no_history")]
    resume: bool,
    /// Size of the test file, or of the range to use: 512m, 10g, 200MB
    #[arg(long, value_parser = parse_capacity)]
    size: Option<u64>,
    /// Allow writes to this device or file: destroys its data
    ///
    /// It must be the target.
    #[arg(long, value_name = "DEVICE")]
    destroy_data: Option<PathBuf>,
    #[command(flatten)]
    run: RunArguments,
    #[command(flatten, next_help_heading = "Many hosts")]
    fleet: FleetArguments,
}

const EXAMPLES: &str = "\
Examples:
  fathom sweep /mnt/data                    random reads in a test file, at most about three minutes
  fathom sweep --rw randread,randwrite --budget 10m /mnt/data
  fathom sweep --bs 4k,64k --iodepth 1-32 /dev/nvme1n1
  fathom sweep --expect 'iops>=5000' --expect 'p99<10ms' /dev/nvme1n1
  fathom sweep --rw randwrite --destroy-data=/dev/nvme1n1 /dev/nvme1n1
  mpiexec -n 8 fathom sweep --fleet '/mnt/shared/${fathom_HOST}'   8 hosts, each point together

Exit status: 0 done, 1 a test failed, 2 usage, 3 a goal is missed, 4 with --strict inconclusive,
75 with --fleet where ranks are missing, 130 interrupted.";

/// What `--expect` asks for.
#[derive(Clone, Debug)]
enum SweepGoal {
    Latency(LatencyObjective),
    Rate(RateGoal),
}

impl SweepGoal {
    fn parse(text: &str) -> Result<SweepGoal, String> {
        match text.contains('>') {
            true => RateGoal::parse(text).map(SweepGoal::Rate),
            false => LatencyObjective::parse_recorded(text).map(SweepGoal::Latency),
        }
    }

    /// The latency and the rate among `goals`, of which each may be there once.
    fn parts(goals: &[SweepGoal]) -> Result<(Option<LatencyObjective>, Option<RateGoal>), Complaint> {
        let (mut latency, mut rate) = (None, None);
        for goal in goals {
            let is_second = match goal {
                SweepGoal::Latency(goal) => latency.replace(goal.clone()).is_some(),
                SweepGoal::Rate(goal) => rate.replace(goal.clone()).is_some(),
            };
            if is_second {
                let hint = "a sweep has one goal for the latency and one for the rate";
                return Err(Complaint::usage("--expect has two goals of a kind", Some(hint.to_owned())));
            }
        }
        Ok((latency, rate))
    }
}

fn pattern(text: &str) -> Result<AccessPattern, String> {
    one_of(&AccessPattern::ALL, AccessPattern::name, text)
}

fn blocks(text: &str) -> Result<Axis, String> {
    axis(text, (512, 1 << 30), |word| parse_bytes(word).map_err(|error| error.to_string()))
}

fn depth_axis(text: &str) -> Result<Axis, String> {
    axis(text, (1, 65_536), |word| word.parse::<u64>().map_err(|_| format!("'{word}' is not a number")))
}

/// `a-b` is a range, `a,b,c` a list.
fn axis(
    text: &str,
    (least, most): (u64, u64),
    parse: impl Fn(&str) -> Result<u64, String>,
) -> Result<Axis, String> {
    let value = |word: &str| {
        let value = parse(word.trim())?;
        let fits = (least..=most).contains(&value);
        if fits { Ok(value) } else { Err(format!("'{}' is not between {least} and {most}", word.trim())) }
    };
    if let Some((from, to)) = text.split_once('-') {
        let (from, to) = (value(from)?, value(to)?);
        if from > to {
            return Err("write the lower end of the range first".to_owned());
        }
        return Ok(Axis::Within(from, to));
    }
    Ok(Axis::Exactly(sorted_once(text.split(',').map(value).collect::<Result<_, _>>()?)))
}

/// Runs a sweep.
///
/// # Errors
/// It could not begin.
pub fn run(arguments: SweepArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    let goals = SweepGoal::parts(&arguments.expect)?;
    let refused = [("--resume", arguments.resume), ("--expect with a latency", goals.0.is_some())];
    ranks::refuse(&arguments.fleet, &refused)?;
    let fleet = match ranks::joined(&arguments.fleet, arguments.run.report.as_deref(), command)? {
        Ok(fleet) => fleet,
        Err(exit) => return Ok(exit),
    };
    let mut arguments = arguments;
    ranks::expand(&mut arguments.target, fleet.as_ref());
    let mut measuring = Measuring::new(&arguments.run, !arguments.resume && is_simulated(&arguments.target));
    let (resume, strict) = (arguments.resume, arguments.strict);
    let mut plan = match SweepPlan::make(settings(arguments, goals, command)) {
        Ok(plan) => plan,
        Err(error) => return Err(ranks::failed(error.into(), fleet)),
    };
    let led = fleet.as_ref().map(Fleet::decider);
    measuring.fleet = fleet;
    plan.settings.run.earlier = store::identifications(&measuring.place);
    let earlier = if resume { earlier(&mut plan, &measuring.place)? } else { Vec::new() };
    measuring.announce_as_rank(|out| plan_text(&plan, out))?;
    let (budget, layout_time) = (plan.settings.budget, plan.site.layout_time);
    let rows = RowPrinter::new(ROWS, RunRecord::default(), &measuring.form)
        .silent_if(led.is_some() || plan.site.target.is_simulated());
    let printed = rows.clone();
    let (record, exit) = measuring.run(
        move |control, observer| {
            let mut session = plan.site.session().controlled(control);
            match led {
                Some(mut led) => sweep_by(&plan, earlier, &mut session, observer, &mut led),
                None => sweep(&plan, earlier, &mut session, observer),
            }
        },
        StepCourse::new(layout_time, Some(budget), Some(rows.clone())),
        Some(rows),
        move |record, style, format, out| {
            if printed.has_all(record) { Ok(()) } else { shown::show(record, style, format, out) }
        },
    )?;
    let result = assess(&record);
    Ok(exit.with_criteria(result.is_missed(), strict && result.is_inconclusive()))
}

fn settings(
    arguments: SweepArguments,
    (slo, reach): (Option<LatencyObjective>, Option<RateGoal>),
    command: &[OsString],
) -> SweepSettings {
    SweepSettings {
        run: arguments.run.settings(arguments.target, arguments.size, arguments.destroy_data, command),
        patterns: sorted_once(arguments.rw),
        blocks: arguments.bs,
        depths: Some(arguments.iodepth),
        jobs: sorted_once(arguments.numjobs),
        budget: arguments.budget,
        slo,
        reach,
    }
}

/// The tests of the last sweep of this target, which was broken off.
fn earlier(plan: &mut SweepPlan, place: &HistoryPath) -> Result<Vec<TestRecord>, Complaint> {
    let target = &plan.site.name;
    if plan.site.target.is_simulated() {
        let message =
            format!("{target}: a simulated volume starts anew with each command and cannot be resumed");
        return Err(Complaint::usage(message, Some("omit --resume".to_owned())));
    }
    let anew = || Some("omit --resume to start a new one".to_owned());
    let Some((run, record)) = store::last_run(place, ActivityKind::Sweep, target)? else {
        let message = format!("cannot resume: the history has no sweep of {target}");
        return Err(Complaint::failed(message, anew()));
    };
    if record.status == TestStatus::Complete {
        let message = format!("cannot resume run {run}: the last sweep of {target} is complete");
        return Err(Complaint::failed(message, anew()));
    }
    let tests: Vec<TestRecord> =
        record.tests.into_iter().filter(|test| test.status == TestStatus::Complete).collect();
    plan.site.notes.push(format!("resumes run {run} with its {} measured points", tests.len()));
    Ok(tests)
}

/// What is going to be done and what it costs.
fn plan_text(plan: &SweepPlan, out: &mut TextWriter) -> io::Result<()> {
    let spec = &plan.spec;
    let names: Vec<&str> = spec.patterns.iter().map(|pattern| pattern.title()).collect();
    let sizes: Vec<String> = first_blocks(spec).into_iter().map(block_name).collect();
    let more = if matches!(spec.blocks, Axis::Within(..)) { ", and others as needed" } else { "" };
    let deepest = depths(spec).last().copied().unwrap_or(1);
    let what = format!(
        "Sweep of {}: {}; blocks of {}{more}; queue depth up to {deepest}; {}{} at most.",
        plan.site.name,
        names.join(", "),
        sizes.join(", "),
        duration(plan.settings.budget),
        plan.site.target.time_note()
    );
    output::paragraph(&what, out)?;
    output::paragraph(&plan.traffic().text(plan.site.test_file()), out)?;
    let order = "Runs light points first and heavy ones last, so that burst credits are spent at the end.";
    output::paragraph(order, out)?;
    output::notes(&plan.site.notes, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes() {
        for (text, expected) in [
            ("4k-1m", Some(Axis::Within(4096, 1 << 20))),
            ("64k,4k,4k", Some(Axis::Exactly(vec![4096, 65_536]))),
            ("512", Some(Axis::Exactly(vec![512]))),
            ("1m-4k", None),
            ("4k-", None),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(blocks(text).ok(), expected, "{text}");
        }
        assert_eq!(depth_axis("1-64"), Ok(Axis::Within(1, 64)));
        assert!(depth_axis("1k").is_err());
    }
}
