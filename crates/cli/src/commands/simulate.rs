//! `fathom simulate`: what a load would get of simulated volumes, hour by hour, and what a month of it would cost.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use fathom_assess::simulate::{JobLoad, SimulateSettings, SimulatedLoad, Trace, simulate, volumes};
use fathom_assess::{AssessError, VolumeTypes, engine_rows, host_facts};
use fathom_model::Nanos;
use fathom_model::units::{duration, grouped, parse_duration};
use fathom_options::ParseEnvironment;
use fathom_record::{RunRecord, TestStatus};
use fathom_report::formats::Format;
use fathom_report::simulate::{self as report_simulate, json as simulate_json};
use fathom_report::{JsonWriter, Style, TextWriter};
use fathom_runner::StopHandle;
use fathom_sys::files::JOB_FILE;

use super::fio::{machine_numbers, read_job_file};
use super::format_arguments::FormatArguments;
use super::run_arguments::{KeepArguments, words};
use crate::exit::{Complaint, Exit};
use crate::simulate_progress::SimulateProgress;
use crate::{keys, signals};

/// What `fathom simulate` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES, group = ArgGroup::new("load").required(true))]
pub struct SimulateArguments {
    /// Volumes to simulate, one by one: ID?size=50GiB&…, an ID of `fathom catalog list`, or custom?iops=3000&…
    #[arg(required = true, value_name = "VOLUME")]
    volumes: Vec<String>,
    /// Load: the jobs of this fio job file (- for standard input), all on the volume
    #[arg(long, group = "load", value_name = "FILE")]
    job: Option<PathBuf>,
    /// Load: a built-in workload profile; see `fathom bench --profile list`
    #[arg(long, group = "load", value_name = "NAME")]
    profile: Option<String>,
    /// Load: recorded requests at their times, from an fio iolog, blktrace or blkparse text (- for standard input)
    #[arg(long, group = "load", value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Device of a trace that has several: MAJOR:MINOR, or a file of an iolog
    #[arg(long = "device", requires = "trace", value_name = "NAME")]
    trace_device: Option<String>,
    /// Simulated time: 90, 30m, 24h, 7d [default: 24h; for a trace its length]
    #[arg(long = "for", value_parser = length, value_name = "TIME")]
    length: Option<Nanos>,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
    #[command(flatten, next_help_heading = "History")]
    keeping: KeepArguments,
    /// Additional volume types [default: FATHOM_CATALOG, else fathom/volumes.toml in ~/.config]
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  fathom simulate 'aws-gp2-2016?size=50GiB' --profile oltp --for 24h
  fathom simulate 'aws-gp2?size=100GiB' 'aws-gp3?size=100GiB' --job nightly.fio --for 7d
  fathom simulate 'custom?iops=500&burst_iops=3000&bucket_ios=1000000&latency=1ms' --trace app.iolog

Accesses no device: time is virtual, and a day takes seconds. Quote names with ? and &.";

/// Longest time: ten years.
const LONGEST: Nanos = Nanos::from_secs(10 * 365 * 86_400);
/// Default length of jobs.
const A_DAY: Nanos = Nanos::from_secs(86_400);

fn length(text: &str) -> Result<Nanos, String> {
    match parse_duration(text) {
        Ok(time) if time < Nanos::from_secs(1) => Err("the shortest time is 1 s".to_owned()),
        Ok(time) if time > LONGEST => Err("the longest time is 10 years (3650d)".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs the simulation.
///
/// # Errors
/// A volume, the load or the time makes no sense.
pub fn run(arguments: SimulateArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    let types = VolumeTypes::new(arguments.catalog.clone());
    types.catalogue()?;
    // Said before a long trace is read.
    volumes(&arguments.volumes, &types)?;
    let (load, name) = load(&arguments)?;
    let asked = arguments.length.or_else(|| matches!(load, SimulatedLoad::Jobs(_)).then_some(A_DAY));
    let load_text = match asked {
        Some(length) => format!("{name} over {}", duration(length)),
        None => name,
    };
    let settings = SimulateSettings {
        volumes: arguments.volumes,
        types,
        load,
        load_text,
        length: asked,
        labels: arguments.keeping.labels(),
        command: words(command),
    };
    let stop = StopHandle::default();
    let caught = signals::watch_saying(stop.clone(), "stopped immediately").map_err(signals::unwatched)?;
    let keys = keys::watch();
    let mut progress = SimulateProgress::new(settings.volumes.len(), asked, &arguments.keeping);
    caught.answer_status(progress.bar.status());
    let record = simulate(&settings, &stop, &mut progress);
    progress.bar.finish_and_clear();
    drop(keys);
    let record = record?;
    progress.keeper.finish_and_print(&record, &arguments.form, show)?;
    Ok(match record.status {
        _ if caught.number().is_some() => Exit::Interrupted,
        TestStatus::Failed => Exit::Failed,
        _ => Exit::Done,
    })
}

fn load(arguments: &SimulateArguments) -> Result<(SimulatedLoad, String), Complaint> {
    if let Some(name) = &arguments.profile {
        let load = JobLoad::of_profile(name, &engine_rows())?;
        let said = load.name.clone();
        return Ok((SimulatedLoad::Jobs(load), said));
    }
    if let Some(path) = &arguments.job {
        JOB_FILE.check(path).map_err(AssessError::from)?;
        let environment = ParseEnvironment {
            engines: &engine_rows(),
            read_file: &read_job_file,
            variable: &|name| std::env::var(name).ok(),
            machine: machine_numbers(host_facts().cpus),
        };
        let load = JobLoad::of_file(path, &environment)?;
        let said = format!("the jobs of {}", load.name);
        return Ok((SimulatedLoad::Jobs(load), said));
    }
    let Some(path) = &arguments.trace else {
        return Err(Complaint::usage("no load given", Some("add --job, --profile or --trace".to_owned())));
    };
    let trace = Trace::read(path, arguments.trace_device.as_deref())?;
    let said =
        format!("the {} requests of {} ({})", grouped(trace.requests() as u64), trace.name, trace.format);
    Ok((SimulatedLoad::Trace(trace), said))
}

/// Shows what came out.
///
/// # Errors
/// Those of `out`.
pub fn show(record: &RunRecord, style: &Style, format: Format, out: &mut TextWriter) -> io::Result<()> {
    let document = |out: &mut JsonWriter<'_>| simulate_json::render(record, style, out);
    format.write(style, out, || report_simulate::view(record), document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, expected) in [
            ("90", Some(90)),
            ("24h", Some(86_400)),
            ("7d", Some(604_800)),
            ("0", None),
            ("500ms", None),
            ("4000d", None),
            ("soon", None),
        ] {
            assert_eq!(length(text).ok(), expected.map(Nanos::from_secs), "{text}");
        }
    }
}
