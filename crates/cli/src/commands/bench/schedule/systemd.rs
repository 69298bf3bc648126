//! `--systemd`: prints the units that run a schedule.

use std::ffi::OsString;
use std::io;

use fathom_assess::schedule::SchedulePlan;
use fathom_history::HistoryPath;
use fathom_report::schedule::units::{ScheduleUnits, UnitCommand, units};
use fathom_report::{TextWriter, document};
use jiff::Timestamp;
use serde::Serialize;

use crate::exit::{Complaint, Exit};
use crate::output;

/// Time to install the units before the first slot, ms.
const INSTALL_MS: u64 = 300_000;

/// The first multiple of the interval that leaves time to install the units.
pub fn next_whole_interval(now_unix_ms: u64, every_ms: u64) -> u64 {
    (now_unix_ms + INSTALL_MS).next_multiple_of(every_ms.max(1000))
}

#[derive(Serialize)]
struct UnitsDocument<'a> {
    schema: &'static str,
    service: UnitDocument<'a>,
    timer: UnitDocument<'a>,
}

#[derive(Serialize)]
struct UnitDocument<'a> {
    name: String,
    text: &'a str,
}

/// Prints the units of `plan`, which `command` asked for.
///
/// # Errors
/// They cannot be expressed; standard output cannot be written.
pub fn print(
    plan: &SchedulePlan,
    place: &HistoryPath,
    command: &[OsString],
    as_json: bool,
) -> Result<Exit, Complaint> {
    let failed = |what: &str, error: &io::Error| {
        Complaint::failed(format!("cannot find {what}: {}", output::plain(error)), None)
    };
    let program = std::env::current_exe().map_err(|error| failed("this program", &error))?;
    let directory = std::env::current_dir().map_err(|error| failed("the current directory", &error))?;
    let history = place.history.as_ref().map(|location| {
        let location = location.absolute().map_err(|error| failed("the history", &error))?;
        location.public_words().ok_or_else(|| {
            let hint =
                "leave it out of the URI and write it to ~/.pgpass of the user that the service runs as";
            Complaint::usage("the unit would contain the password of the history", Some(hint.to_owned()))
        })
    });
    let history = history.transpose()?;
    let (arguments, target) = (arguments(plan, history, command), plan.bench.target_name());
    let unit_command =
        UnitCommand { program: &program, arguments: &arguments, directory: &directory, target: &target };
    let found = units(&plan.schedule, &unit_command)
        .map_err(|error| Complaint::usage(error.reason, Some(error.hint)))?;
    output::print(|out| if as_json { json(&found, out) } else { text(&found, out) })?;
    Ok(Exit::Done)
}

/// The arguments of the service: those given, and what they left open.
fn arguments(plan: &SchedulePlan, history: Option<OsString>, command: &[OsString]) -> Vec<OsString> {
    let begins = i64::try_from(plan.schedule.begins_unix_ms).unwrap_or_default();
    let begins = Timestamp::from_millisecond(begins).unwrap_or_default();
    // What follows `--` are targets.
    let (options, targets) = match command.iter().position(|word| word == "--") {
        Some(end) => command.split_at(end),
        None => (command, &[][..]),
    };
    let options = options.iter().skip(2);
    let is_given = |name: &str| options.clone().any(|word| word.to_string_lossy().starts_with(name));
    let mut words: Vec<OsString> = vec!["bench".into(), "--due".into()];
    if !is_given("--schedule") {
        words.push(format!("--schedule={}", plan.schedule.name).into());
    }
    if !is_given("--from") {
        words.push(format!("--from={begins}").into());
    }
    if let Some(history) = history.filter(|_| !is_given("--history")) {
        let mut word = OsString::from("--history=");
        word.push(history);
        words.push(word);
    }
    words.extend(options.clone().filter(|word| *word != "--systemd").chain(targets).cloned());
    words
}

fn text(units: &ScheduleUnits, out: &mut TextWriter) -> io::Result<()> {
    let ScheduleUnits { name, service, timer } = units;
    writeln!(
        out,
        "# Save both in /etc/systemd/system (or ~/.config/systemd/user, with systemctl --user), then:"
    )?;
    writeln!(out, "# systemctl daemon-reload && systemctl enable --now {name}.timer")?;
    for (ending, text) in [("service", service), ("timer", timer)] {
        writeln!(out)?;
        writeln!(out, "# {name}.{ending}")?;
        text.lines().try_for_each(|line| writeln!(out.verbatim(), "{line}"))?;
    }
    Ok(())
}

fn json(units: &ScheduleUnits, out: &mut TextWriter) -> io::Result<()> {
    let unit = |ending: &str, text| UnitDocument { name: format!("{}.{ending}", units.name), text };
    let document = UnitsDocument {
        schema: "fathom.systemd/1",
        service: unit("service", &units.service),
        timer: unit("timer", &units.timer),
    };
    document::write(&document, &mut out.json())
}
