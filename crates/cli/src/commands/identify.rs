//! `fathom identify`: finds out of a volume from outside what its limits are, and which type it is.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use clap::Args;
use fathom_analysis::twin::Twin;
use fathom_assess::identify::{IdentifyPlan, IdentifySettings, identify};
use fathom_assess::{
    AssessError, TwinStore, VolumeTypes, candidates, check_twin_name, is_simulated, twin_differences,
    volume_size,
};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, parse_capacity};
use fathom_record::RunRecord;
use fathom_report::formats::Format;
use fathom_report::identify::{IdentifyReport, view};
use fathom_report::{Style, TextWriter};

use super::measuring::Measuring;
use super::run_arguments::RunArguments;
use super::words::time_for;
use crate::exit::{Complaint, Exit};
use crate::output;
use crate::progress::StepCourse;

/// What `fathom identify` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct IdentifyArguments {
    /// Directory, file, block device or simulated volume (sim:ID?size=50GiB)
    target: PathBuf,
    /// Time limit: 90, 10m, 2h [default: 1h]; a burst bucket that outlasts it is not detected
    #[arg(long, value_parser = time_for("identifying", 30), value_name = "TIME")]
    budget: Option<Nanos>,
    /// Save a twin of the volume under this name, in place of an older one, after measuring its latencies by block size and queue depth, which takes
    /// some minutes beyond the budget: sim:@NAME behaves like the volume
    #[arg(long, value_name = "NAME", value_parser = twin_name)]
    save: Option<String>,
    /// Never write; write limits remain unknown
    #[arg(long, conflicts_with = "destroy_data")]
    read_only: bool,
    /// Size of the test file, or of the range to use: 512m, 10g, 200MB
    #[arg(long, value_parser = parse_capacity)]
    size: Option<u64>,
    /// Allow writes to this block device or file, which must be the target; destroys its data
    #[arg(long, value_name = "DEVICE")]
    destroy_data: Option<PathBuf>,
    #[command(flatten)]
    run: RunArguments,
}

const EXAMPLES: &str = "\
Exhausts the burst credits of the volume, if any: the volume is slow until they refill.

Examples:
  fathom identify /mnt/data                 reads and writes in a test file, at most an hour
  fathom identify /dev/nvme1n1              reads only
  fathom identify --destroy-data=/dev/nvme1n1 /dev/nvme1n1
  fathom identify --budget 5m /dev/nvme1n1  limits and small burst buckets
  fathom identify --save data1 /mnt/data    and keep its twin: fathom bench sim:@data1
  fathom identify 'sim:aws-gp2?size=50GiB'  a simulated volume";

/// Identifies a volume.
///
/// # Errors
/// It could not begin.
pub fn run(arguments: IdentifyArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    let measuring = Measuring::new(&arguments.run, is_simulated(&arguments.target));
    let saved = arguments.save.clone();
    let twins = saved.as_ref().map(|name| store_for(name)).transpose()?;
    let plan = IdentifyPlan::make(settings(arguments, command))?;
    // A catalogue that cannot be read is reported before the run, not after.
    let types = plan.settings.run.types.clone();
    types.catalogue()?;
    measuring.announce(|out| plan_text(&plan, out))?;
    // How long the latencies of a twin take depends on the limits that are found.
    let budget = saved.is_none().then_some(Nanos(plan.spec.limits.budget_ns));
    let layout_time = plan.site.layout_time;
    let form = measuring.form;
    let (record, exit) = measuring.run(
        move |control, observer| {
            let mut session = plan.site.session().controlled(control);
            identify(&plan, &mut session, observer).map(|(record, _)| record)
        },
        StepCourse::new(layout_time, budget, None),
        None,
        |record, style, format, out| show(record, &types, style, format, out),
    )?;
    // What was interrupted replaces no twin.
    if let Some((name, store)) = saved.zip(twins).filter(|_| exit == Exit::Done) {
        keep_twin(&name, &store, &record, form.format())?;
    }
    Ok(exit)
}

/// The store that takes a twin of this name.
fn store_for(name: &str) -> Result<TwinStore, AssessError> {
    let store = TwinStore::usual()?;
    store.check(name)?;
    Ok(store)
}

/// Keeps the twin of what `record` identified.
fn keep_twin(name: &str, store: &TwinStore, record: &RunRecord, format: Format) -> Result<(), Complaint> {
    let mut twin = match Twin::of(record) {
        Ok(twin) => twin,
        Err(reason) => {
            let hint = "let it run to its end, with a longer --budget".to_owned();
            return Err(Complaint::failed(format!("no twin was made: {reason}"), Some(hint)));
        }
    };
    if let Err(reason) = twin.model() {
        return Err(Complaint::failed(format!("no twin was made: {reason}"), None));
    }
    let differences: Vec<String> =
        twin_differences(&twin, record).into_iter().map(|difference| difference.text).collect();
    twin.notes.extend(differences.iter().cloned());
    let path = store.save(name, &twin)?;
    if format == Format::Text {
        let text = format!(
            "Twin saved to {}. Use it as sim:@{name}; check it: fathom twin check {name} TARGET",
            path.display()
        );
        output::print(|out| writeln!(out, "{text}"))?;
        if !differences.is_empty() {
            output::print(|out| output::notes(&differences, out))?;
        }
    }
    Ok(())
}

fn twin_name(text: &str) -> Result<String, String> {
    check_twin_name(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}

/// Shows a volume whose identification is kept, beside those of `types` that are like it.
///
/// # Errors
/// Those of `out`.
pub fn show(
    record: &RunRecord,
    types: &VolumeTypes,
    style: &Style,
    format: Format,
    out: &mut TextWriter,
) -> io::Result<()> {
    let report = report(record, types);
    format.write(style, out, || view(&report, style.show_fio), |out| report.document(style, out))
}

/// What was identified, with the types nearest to it.
pub fn report<'a>(record: &'a RunRecord, types: &VolumeTypes) -> IdentifyReport<'a> {
    IdentifyReport::new(record, |found| {
        let near =
            types.catalogue().map(|catalog| candidates(catalog, found, volume_size(&record.header, types)));
        near.unwrap_or_default()
    })
}

fn settings(arguments: IdentifyArguments, command: &[OsString]) -> IdentifySettings {
    IdentifySettings {
        run: arguments.run.settings(arguments.target, arguments.size, arguments.destroy_data, command),
        budget: arguments.budget,
        read_only: arguments.read_only,
        measures_latencies: arguments.save.is_some(),
    }
}

/// What is going to be done and what it costs at most.
fn plan_text(plan: &IdentifyPlan, out: &mut TextWriter) -> io::Result<()> {
    let limits = &plan.spec.limits;
    let ways = if limits.writes { "reads and writes" } else { "reads only" };
    let what = format!(
        "Identifying {}: {ways}; at most {}{}.",
        plan.site.name,
        duration(Nanos(limits.budget_ns)),
        plan.site.target.time_note(),
    );
    output::paragraph(&what, out)?;
    if plan.site.lays_out() {
        output::paragraph(&format!("Writes a {} test file.", bytes(plan.site.size)), out)?;
    }
    if let Some(why) = plan.no_writes.as_ref().filter(|_| !plan.settings.read_only) {
        output::paragraph(&format!("No writes: this {why}."), out)?;
    }
    let traffic = plan.traffic();
    traffic.amount_text().map_or(Ok(()), |amount| output::paragraph(&amount, out))?;
    let credit = match traffic.volume_type {
        Some(_) => traffic.credit_texts().join(" "),
        None => "Exhausts the burst credits of the volume, if any: the volume is slow until they refill."
            .to_owned(),
    };
    output::paragraph(&credit, out)?;
    if plan.settings.measures_latencies {
        output::paragraph("Measures latencies for a twin afterwards: 3 to 15 minutes more.", out)?;
    }
    output::notes(&plan.site.notes, out)
}
