//! `fathom ping --fleet`: one rank of a job that a launcher started. Only rank 0 prints, a report of all ranks at the end.

use fathom_assess::fleet::Fleet;
use fathom_assess::{ErrorKind, ping};
use fathom_record::RunRecord;
use fathom_report::formats::Format;
use fathom_runner::{RunControl, StopHandle};

use super::options::{PingInvocation, PingOutput, PingProgram};
use super::{fail, failed};
use crate::commands::format_arguments::FormatArguments;
use crate::commands::shown;
use crate::exit::{Complaint, Exit};
use crate::ranks::keeper::keep_and_print;
use crate::ranks::{self, arguments};
use crate::{signals, store};

/// Pings as a rank.
pub fn run(invocation: PingInvocation) -> Exit {
    let refused =
        |Complaint { message, hint, exit, .. }: Complaint| fail(PingProgram::Own, &message, hint, exit);
    match ping(invocation) {
        Ok(exit) => exit,
        Err(complaint) => refused(complaint),
    }
}

fn ping(invocation: PingInvocation) -> Result<Exit, Complaint> {
    if !arguments::is_asked(&invocation.fleet)? {
        return Ok(Exit::Usage);
    }
    check(&invocation)?;
    let job = ranks::join(invocation.fleet.clone())?;
    let met = ranks::meet(job, &invocation.settings.command, Ok(Default::default()));
    match met {
        Ok((fleet, _)) => measure(invocation, fleet),
        Err(exit) => Ok(exit),
    }
}

/// Refuses what many ranks do not have: an output while they run, an end that only one of them knows, and objectives of one host.
fn check(invocation: &PingInvocation) -> Result<(), Complaint> {
    let settings = &invocation.settings;
    let refused = [
        ("--slo", !settings.slo.is_empty()),
        ("--strict", invocation.strict),
        ("--tui", invocation.live.tui),
        ("--live", invocation.live.is_asked_for()),
        ("-p", settings.print_count > 0),
        ("-P", settings.print_interval_ns > 0),
        ("-I", invocation.stamp.is_some()),
        ("-B, -J and --events", !matches!(invocation.form, PingOutput::Text | PingOutput::Report(_))),
    ];
    if let Some((option, _)) = refused.iter().find(|(_, is_given)| *is_given) {
        let hint = format!("omit {option}: rank 0 prints one report of all ranks at the end");
        return Err(Complaint::usage(format!("{option} cannot be used with --fleet"), Some(hint)));
    }
    if settings.count.is_none() && settings.work_ns.is_none() {
        let hint = "add -w TIME or -c COUNT".to_owned();
        return Err(Complaint::usage("--fleet needs an end that all ranks know", Some(hint)));
    }
    settings.types.check_named().map_err(Complaint::from)
}

fn measure(invocation: PingInvocation, fleet: Fleet) -> Result<Exit, Complaint> {
    let mut settings = invocation.settings.clone();
    ranks::expand(&mut settings.target, Some(&fleet));
    settings.labels = invocation.keeping.labels();
    settings.enter_conditions = true;
    settings.each = false;
    let stop = StopHandle::default();
    let caught = match signals::watch_saying(stop.clone(), "stopped immediately") {
        Ok(caught) => caught,
        Err(error) => return Err(ranks::failed(signals::unwatched(error), Some(fleet))),
    };
    let control = fleet.control(RunControl::default().with_stop(stop.clone()));
    let (ranks, reports) = (fleet.place().ranks, fleet.reports());
    let (end, own) = match ping::run_under(control, settings, &mut ()) {
        Ok(record) => (fleet.end(record, stop.reason()), None),
        // Where another rank was the reason, the report names it for all.
        Err(error) => {
            (fleet.fail(&error.message), Some(error).filter(|error| error.kind != ErrorKind::Stopped))
        }
    };
    let exit = ranks::leave(end, ranks, reports && own.is_none(), |record, notes| {
        report(&invocation, record, notes)
    })?;
    Ok(own.map_or(exit, |error| failed(PingProgram::Own, error, caught.number().is_some())))
}

fn report(invocation: &PingInvocation, mut record: RunRecord, notes: Vec<String>) -> Result<Exit, Complaint> {
    record.header.notes.extend(notes);
    let format = match invocation.form {
        PingOutput::Report(format) => format,
        _ => Format::Text,
    };
    let keeps = invocation.keeping.is_asked_for();
    if keeps && store::place(invocation.keeping.history.clone(), true).history.is_none() {
        store::tell_of_no_place();
    }
    let form = FormatArguments::of(format, invocation.units);
    keep_and_print(&record, invocation.keeping.place(keeps), keeps, &form, shown::show)?;
    Ok(ranks::exit_of(&record))
}
