//! `fathom bench`: says what it will do, does it, shows what came out, and keeps it.

mod against;
pub(super) mod plan;
mod schedule;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fathom_analysis::Analysis;
use fathom_analysis::compare::gate::FailCondition;
use fathom_analysis::criterion::parse_percent;
use fathom_assess::{BenchPlan, BenchSettings, Effort, ExpectationSettings, PrecisionSettings, is_simulated};
use fathom_model::Nanos;
use fathom_model::units::parse_capacity;
use fathom_record::RunRecord;
use fathom_report::formats::Format;
use fathom_report::{JsonWriter, Style, TextWriter};

use self::plan::{parse_precision, plan_json, plan_text};
use self::schedule::ScheduleArguments;
use super::measuring::Measuring;
use super::run_arguments::RunArguments;
use super::words::positive_duration;
use crate::exit::{Complaint, Exit};
use crate::progress::BenchCourse;
use crate::progress::RowPrinter;
use crate::ranks::FleetArguments;
use crate::{output, ranks, store};

/// What `fathom bench` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct BenchArguments {
    /// Directory, file, block device or simulated volume (sim:ID?size=50GiB) [default: .]
    ///
    /// In a directory a temporary test file is used. Several targets are measured one by one, then together, to find limits that they
    /// share.
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,
    /// Suite of tests: a name or a TOML file
    ///
    /// Names: standard, database-disk, digitalocean-volumes, cloud-disk.
    #[arg(long, default_value = "standard", value_name = "NAME")]
    suite: String,
    /// Run workload profiles instead and check their needs; `list` prints them
    ///
    /// Names separated by commas, or `all`.
    #[arg(long = "profile", value_delimiter = ',', value_name = "NAME,...", conflicts_with_all = ["suite", "only"])]
    profiles: Vec<String>,
    /// Run shorter tests, under a minute in all
    #[arg(long, conflicts_with = "thorough")]
    quick: bool,
    /// Run each test for two minutes over 20 GiB
    #[arg(long)]
    thorough: bool,
    /// Size of the test file, or of the range to use: 512m, 10g, 200MB
    #[arg(long, value_parser = parse_capacity)]
    size: Option<u64>,
    /// Measured time of each test, or of each round: 30, 30s, 2m
    #[arg(long, value_parser = positive_duration, value_name = "TIME")]
    runtime: Option<Nanos>,
    /// Repeat each test in rounds until it is in steady state (SNIA)
    ///
    /// Rounds take one minute unless --runtime says otherwise. At most 25 are run; the last five have to agree.
    #[arg(long)]
    until_steady: bool,
    /// End each test once its rate is this certain: 2%
    ///
    /// The 95 % interval of the rate is within this share of it. --runtime is the longest time then.
    #[arg(long, value_parser = parse_precision, value_name = "PERCENT")]
    precision: Option<f64>,
    /// Shortest measured time of each test with --precision [default: 5 s, or what the precision takes]
    #[arg(long, help_heading = "Precision", value_parser = positive_duration, value_name = "TIME", requires = "precision")]
    min_runtime: Option<Nanos>,
    /// Compare with another target or saved runs, until the verdict is clear
    ///
    /// Another target is measured in alternating blocks. Saved runs are named as for `fathom compare`: 17, last, tag:NAME, a file.
    #[arg(long, value_name = "OTHER", conflicts_with = "report")]
    against: Option<String>,
    /// Smallest difference that counts with --against [default: 3% for rates, 5% for latencies]
    #[arg(long, help_heading = "Comparison", value_parser = parse_percent, value_name = "PERCENT", requires = "against")]
    delta: Option<f64>,
    /// Fail with --against where the whole interval satisfies a condition, such as 'rand-read.iops < 0.95' (repeatable)
    #[arg(long = "fail-if", help_heading = "Comparison", value_parser = FailCondition::parse, value_name = "CONDITION", requires = "against")]
    conditions: Vec<FailCondition>,
    /// Time limit of --until-steady for each test, or of --against in all
    #[arg(long, value_parser = positive_duration, value_name = "TIME")]
    budget: Option<Nanos>,
    /// Run only these tests, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "ID,...")]
    only: Vec<String>,
    /// Check results: 'rand-read.iops>=5000', or a volume type (repeatable)
    ///
    /// A condition on TEST.METRIC, or a type of the catalogue whose published specification counts.
    #[arg(long, value_name = "EXPECTATION")]
    expect: Vec<String>,
    /// Check the results against the expectations in a TOML file (repeatable)
    #[arg(long, help_heading = "Expectations", value_name = "FILE")]
    expect_file: Vec<PathBuf>,
    /// Tolerance for expectations without one [default: 5%]
    #[arg(long, help_heading = "Expectations", value_parser = parse_percent, value_name = "PERCENT")]
    tolerance: Option<f64>,
    /// Exit with 4 if an expectation is inconclusive and none is missed
    #[arg(long, help_heading = "Expectations")]
    strict: bool,
    /// Class of machine or volume that selects the expectations
    #[arg(long, help_heading = "Expectations", value_name = "NAME")]
    class: Option<String>,
    /// Allow writes to this device or file: destroys its data (repeatable)
    ///
    /// It must be a target.
    #[arg(long, value_name = "DEVICE")]
    destroy_data: Vec<PathBuf>,
    /// Print the exact fio command of each test
    #[arg(long, help_heading = "Output")]
    show_fio: bool,
    /// Print the plan and its cost without running it
    #[arg(long, conflicts_with_all = ["tui", "streams"])]
    dry_run: bool,
    #[command(flatten, next_help_heading = "Schedule")]
    schedule: ScheduleArguments,
    #[command(flatten)]
    run: RunArguments,
    #[command(flatten, next_help_heading = "Many hosts")]
    fleet: FleetArguments,
}

const EXAMPLES: &str = "\
Examples:
  fathom bench                              the volume under the current directory
  fathom bench --quick /mnt/data --label provider=example --label volume=ssd-3
  fathom bench --only rand-read,rand-write --runtime 60s /mnt/data
  fathom bench /dev/nvme1n1                 reads only
  fathom bench --destroy-data=/dev/nvme1n1 /dev/nvme1n1
  fathom bench --profile oltp,database-log /mnt/data
  fathom bench /mnt/a /mnt/b                one by one, then together, to find limits that they share
  fathom bench 'sim:aws-gp2-2016?size=50GiB'   a simulated volume
  fathom bench --until-steady --only rand-write /mnt/data
  fathom bench --precision 2% /mnt/data     each test only as long as its rate needs
  fathom bench --tui /mnt/data              a full-screen view while it runs
  fathom bench --live ndjson=live.ndjson --live openmetrics /mnt/data
  fathom bench /mnt/a --against /mnt/b      which is faster, measured in alternating blocks
  fathom bench /mnt/a --against tag:before --only rand-read
  fathom bench /mnt/a --against /mnt/b --budget 30m --fail-if 'rand-read.iops < 0.95'
  fathom bench --suite digitalocean-volumes --json /mnt/volume > volume.json
  fathom bench --suite digitalocean-volumes --class standard /mnt/volume
  fathom bench --every 1h --for 7d --quick /mnt/data   a run an hour, for `history trend --by hour`
  fathom bench --expect 'rand-read.iops>=5000' /mnt/data
  fathom bench --expect 'lat-read.lat_ns.p99<5ms+-2%' --quick /mnt/data
  fathom bench --expect 'aws-gp3?size=100GiB&iops=6000' /mnt/data
  fathom bench --runtime 20m --expect-file expectations.toml /mnt/data
  srun -N64 --mpi=pmi2 fathom bench --fleet --fleet-out=DIR /mnt/shared   64 hosts together, one report
  mpiexec -n 64 fathom bench --fleet --only rand-read '/mnt/shared/${fathom_HOST}'

Exit status: 0 done, 1 a test failed, 2 usage, 3 an expectation is missed or a --fail-if condition holds,
4 with --strict inconclusive, 75 with --fleet where ranks are missing, 130 interrupted.";

/// Runs a bench.
///
/// # Errors
/// It could not begin.
pub fn run(arguments: BenchArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    if arguments.profiles.iter().any(|name| name == "list") {
        plan::print_profiles(arguments.run.form.is_json("the list of profiles")?)?;
        return Ok(Exit::Done);
    }
    check_fleet(&arguments)?;
    let mut measuring =
        Measuring::new(&arguments.run, arguments.targets.iter().any(|target| is_simulated(target)));
    let (dry_run, show_fio, strict) = (arguments.dry_run, arguments.show_fio, arguments.strict);
    if let Some(other) = arguments.against.clone() {
        return against::run(arguments, &other, measuring, command);
    }
    if arguments.budget.is_some() && !arguments.until_steady {
        let hint = "add --until-steady or --against, or omit --budget".to_owned();
        return Err(Complaint::usage(
            "--budget limits repeated measurements, and nothing is repeated",
            Some(hint),
        ));
    }
    if let Some(times) = arguments.schedule.times() {
        return schedule::run(arguments, times, measuring, command);
    }
    let plan_as_json = dry_run && arguments.run.form.is_json("a plan")?;
    let page = arguments.run.report.as_deref();
    let fleet = if dry_run { Ok(None) } else { ranks::joined(&arguments.fleet, page, command)? };
    let fleet = match fleet {
        Ok(fleet) => fleet,
        Err(exit) => return Ok(exit),
    };
    let mut arguments = arguments;
    arguments.targets.iter_mut().for_each(|target| ranks::expand(target, fleet.as_ref()));
    let mut plan = match BenchPlan::make(settings(arguments, command)) {
        Ok(plan) => plan,
        Err(error) => return Err(ranks::failed(error.into(), fleet)),
    };
    measuring.fleet = fleet;
    plan.settings.run.earlier = store::identifications(&measuring.place);
    if dry_run {
        output::print(|out| {
            if plan_as_json { plan_json(&plan, out) } else { plan_text(&plan, true, show_fio, out) }
        })?;
        return Ok(Exit::Done);
    }
    measuring.announce_as_rank(|out| plan_text(&plan, false, false, out))?;
    measuring.planned = plan.tests.iter().map(|test| (test.id.clone(), test.title.clone())).collect();
    measuring.can_skip = true;
    let plan = Arc::new(plan);
    let shown = plan.clone();
    let rows = RowPrinter::new(fathom_report::bench::ROWS, plan.outline(), &measuring.form)
        .silent_if(measuring.fleet.is_some() || plan.targets.iter().any(|one| one.target.is_simulated()));
    let printed = rows.clone();
    let (record, exit) = measuring.run(
        move |control, observer| fathom_assess::run(&plan, &mut plan.session().controlled(control), observer),
        BenchCourse::new(shown),
        Some(rows),
        move |record, style, format, out| {
            let style = Style { show_fio, ..style.clone() };
            if printed.has_all(record) { Ok(()) } else { show(record, &style, format, out) }
        },
    )?;
    let analysis = Analysis::of(&record);
    Ok(exit.with_criteria(analysis.is_missed(), strict && analysis.is_inconclusive()))
}

/// Refuses with `--fleet` what ends or repeats a test by what one process measures: that would be another time on each rank.
fn check_fleet(arguments: &BenchArguments) -> Result<(), Complaint> {
    let BenchArguments { expect, expect_file, class, schedule, .. } = arguments;
    let expects = !expect.is_empty() || !expect_file.is_empty() || class.is_some() || arguments.strict;
    ranks::refuse(
        &arguments.fleet,
        &[
            ("--until-steady", arguments.until_steady),
            ("--precision", arguments.precision.is_some()),
            ("--against", arguments.against.is_some()),
            ("--every", schedule.times().is_some()),
            ("--expect", expects),
        ],
    )
}

/// Shows what came out.
///
/// # Errors
/// Those of `out`.
pub fn show(record: &RunRecord, style: &Style, format: Format, out: &mut TextWriter) -> io::Result<()> {
    let analysis = Analysis::of(record);
    let document = |out: &mut JsonWriter<'_>| fathom_report::bench::json::render(&analysis, style, out);
    format.write(style, out, || fathom_report::bench::view(&analysis, style.show_fio), document)
}

fn settings(arguments: BenchArguments, command: &[OsString]) -> BenchSettings {
    let mut targets = arguments.targets.into_iter();
    let (target, further) = (targets.next().unwrap_or_else(|| PathBuf::from(".")), targets.collect());
    BenchSettings {
        run: arguments.run.settings(target, arguments.size, arguments.destroy_data, command),
        further,
        suite: arguments.suite,
        profiles: arguments.profiles,
        effort: match (arguments.quick, arguments.thorough) {
            (true, _) => Effort::Quick,
            (false, true) => Effort::Thorough,
            (false, false) => Effort::Default,
        },
        runtime: arguments.runtime,
        until_steady: arguments.until_steady,
        precision: arguments.precision.map(|percent| PrecisionSettings {
            target_fraction: percent / 100.0,
            least: arguments.min_runtime,
        }),
        budget: arguments.budget,
        only: arguments.only,
        expectations: ExpectationSettings {
            lines: arguments.expect,
            files: arguments.expect_file,
            tolerance_percent: arguments.tolerance,
            class: arguments.class,
        },
    }
}
