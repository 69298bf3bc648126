//! `fathom ping`, and ioping's own command line where the program is called so: reads it, pings, shows, exits.

mod grammar;
mod live;
mod options;
mod printer;
mod rank;
mod rows;
mod units;

use std::ffi::OsString;
use std::io;
use std::sync::atomic::Ordering;

use clap::{Arg, ArgAction};
use fathom_analysis::criterion::ObjectiveVerdict;
use fathom_analysis::ping::{Ping, verdicts};
use fathom_assess::{AssessError, ErrorKind, ping};
use fathom_history::without_password;
use fathom_record::RunRecord;
use fathom_report::formats::Format;
use fathom_report::ping::{self as report_ping, json as ping_json, text as ping_text};
use fathom_report::{JsonWriter, Style, TextWriter};
use fathom_runner::StopHandle;

use crate::exit::{Complaint, Exit};
use crate::{keys, output, signals};
use grammar::{PingOption, ValueUse};
use live::PingLive;
use options::{PingInvocation, PingOutput, PingProgram};
use printer::PingPrinter;

/// The version of ioping whose ways these are.
const IOPING_VERSION: &str = "ioping 1.3";

/// Examples of `fathom ping`.
pub const EXAMPLES: [&str; 6] = [
    "fathom ping -c 10 /mnt/data                     ten requests, one a second",
    "fathom ping -r 200 -w 1min --schedule fixed -q --slo 'p99<5ms' /mnt/data",
    "fathom ping --tui /mnt/data                     in full screen; ? shows the keys",
    "fathom ping -W -c 100 -i 10ms /mnt/data         writes, each synchronous",
    "fathom ping -c 10 'sim:aws-gp2-2016?size=50GiB'  a simulated volume",
    "mpiexec -n 8 fathom ping --fleet -w 1min -q /mnt/shared   8 hosts together, one report",
];

/// `fathom ping`.
pub fn run(args: &[OsString]) -> Exit {
    start(args, PingProgram::Own)
}

/// `ioping`.
pub fn run_as_ioping(args: &[OsString]) -> Exit {
    start(args, PingProgram::Ioping)
}

/// The options of `fathom ping`, as clap describes arguments.
pub fn arguments() -> Vec<Arg> {
    let argument = |row: PingOption| {
        let arg = Arg::new(row.long).long(row.long).short(row.short).help(row.help);
        match row.takes {
            ValueUse::Nothing => arg.action(ArgAction::SetTrue),
            ValueUse::Value => arg.value_name(row.value),
            ValueUse::Glued => arg.value_name(row.value).num_args(0..=1).require_equals(true),
        }
    };
    let target =
        Arg::new("target").value_name("TARGET").help("Directory, file, block device or simulated volume");
    rows::rows(PingProgram::Own).into_iter().map(argument).chain([target]).collect()
}

fn start(args: &[OsString], front: PingProgram) -> Exit {
    let words: Result<Vec<String>, _> = args.iter().map(|word| word.clone().into_string()).collect();
    let Ok(words) = words else {
        return usage(front, "an argument is not valid UTF-8", false);
    };
    if words.is_empty() {
        // No arguments: print the help.
        return match output::print(|out| out.own_lines(&options::help(front))) {
            Ok(()) => usage_exit(front),
            Err(error) => unwritten(front, &error),
        };
    }
    let given = match grammar::read(&words, &rows::rows(front)) {
        Ok(given) => given,
        Err(sentence) => return usage(front, &sentence, true),
    };
    for (name, _) in &given.options {
        let answer = match *name {
            "help" => options::help(front),
            "version" if front == PingProgram::Ioping => format!("{IOPING_VERSION}\n"),
            "version" => format!("fathom {}\n", env!("CARGO_PKG_VERSION")),
            _ => continue,
        };
        return match output::print(|out| out.own_lines(&answer)) {
            Ok(()) => Exit::Done,
            Err(error) => unwritten(front, &error),
        };
    }
    match options::invocation(&given, front) {
        Ok(mut invocation) => {
            let words = words.iter().map(|word| without_password(word).into_owned());
            invocation.settings.command =
                ["fathom", "ping"].map(str::to_owned).into_iter().chain(words).collect();
            if invocation.fleet.is_given() { rank::run(invocation) } else { measure(invocation, front) }
        }
        Err(sentence) => usage(front, &sentence, false),
    }
}

fn measure(invocation: PingInvocation, front: PingProgram) -> Exit {
    let settings = &invocation.settings;
    if let Err(error) = settings.types.check_named() {
        return fail(front, &error.to_string(), error.hint, Exit::Usage);
    }
    if front == PingProgram::Ioping && settings.nowait && !settings.cached && !settings.direct {
        output::warn("ioping: nowait without cached or direct I/O is supposed to fail");
    }
    let mut settings = settings.clone();
    settings.labels = invocation.keeping.labels();
    settings.enter_conditions = front == PingProgram::Own && invocation.keeping.is_asked_for();
    let stop = StopHandle::default();
    let caught = match signals::watch_saying(stop.clone(), "stopped immediately") {
        Ok(caught) => caught,
        Err(error) => {
            let hint = signals::hint(&error);
            return fail(
                front,
                &format!("cannot watch for signals: {}", output::plain(&error)),
                hint,
                Exit::Failed,
            );
        }
    };
    let live = match PingLive::open(&invocation) {
        Ok(live) => live,
        Err(Complaint { message, hint, exit, .. }) => return fail(front, &message, hint, exit),
    };
    let keys = if front == PingProgram::Own && !live.has_screen() { keys::watch() } else { None };
    settings.progress = invocation.live.is_asked_for();
    let mut printer = PingPrinter::new(&invocation, front, stop.clone(), live);
    settings.each &= !printer.is_covered();
    let (name, answered) = (printer.name(), printer.answered.clone());
    caught.answer_status(move || format!("{name}: {} requests so far", answered.load(Ordering::Relaxed)));
    let record = match ping::run(settings, &stop, &mut printer) {
        Ok(record) => record,
        Err(error) => {
            printer.abandon();
            return failed(front, error, caught.number().is_some());
        }
    };
    drop(keys);
    let Some(ping) = record.tests.first().and_then(|test| test.ping()) else { return Exit::Failed };
    let verdicts = verdicts(&record.header, ping);
    let is_inconclusive = invocation.strict && verdicts.iter().any(|one| one.verdict.is_inconclusive());
    if front == PingProgram::Own && invocation.form != PingOutput::Text {
        for verdict in verdicts.iter().filter(|verdict| verdict.verdict.is_missed()) {
            output::warn(&format!("ping: objective {} is missed", verdict.objective));
        }
    }
    let told_in_text = front == PingProgram::Own && invocation.form == PingOutput::Text;
    if let Some(thread) =
        ping.stuck_thread.filter(|_| !told_in_text && (front == PingProgram::Own || output::stderr_is_seen()))
    {
        output::warn(&format!("ping: {}", ping_text::stuck(thread)));
    }
    match printer.finish(&record, ping) {
        Ok(false) if caught.number().is_none() => Exit::Done,
        Ok(_) => {
            exit(front, ping, &verdicts, caught.number().is_some()).with_criteria(false, is_inconclusive)
        }
        Err(error) => unwritten(front, &error),
    }
}

/// Shows what came out.
///
/// # Errors
/// Those of `out`.
pub fn show(record: &RunRecord, style: &Style, format: Format, out: &mut TextWriter) -> io::Result<()> {
    let document = |out: &mut JsonWriter<'_>| ping_json::render(record, style, out);
    match format {
        Format::Text => ping_text::render(record, style, out),
        _ => format.write(style, out, || report_ping::view(record), document),
    }
}

fn exit(front: PingProgram, ping: &Ping, verdicts: &[ObjectiveVerdict], interrupted: bool) -> Exit {
    match front {
        PingProgram::Ioping => Exit::Done,
        PingProgram::Own if verdicts.iter().any(|verdict| verdict.verdict.is_missed()) => Exit::Missed,
        PingProgram::Own if interrupted => Exit::Interrupted,
        PingProgram::Own if ping.counts.errors > 0 => Exit::Failed,
        PingProgram::Own => Exit::Done,
    }
}

fn usage_exit(front: PingProgram) -> Exit {
    match front {
        PingProgram::Own => Exit::Usage,
        PingProgram::Ioping => Exit::Ioping(1),
    }
}

fn usage(front: PingProgram, sentence: &str, with_help: bool) -> Exit {
    match front {
        PingProgram::Own => {
            output::warn(&format!("error: {sentence}"));
            output::warn("hint: `fathom ping --help` lists the options");
        }
        PingProgram::Ioping => {
            output::warn(&format!("ioping: {sentence}"));
            if with_help {
                let _ = output::warn_by(|out| {
                    out.own_lines(&format!("\n{}\n\n", options::help(front).trim_end()))
                });
            }
        }
    }
    usage_exit(front)
}

fn failed(front: PingProgram, error: AssessError, interrupted: bool) -> Exit {
    let stopped = error.kind == ErrorKind::Stopped && interrupted;
    let exit = match front {
        PingProgram::Own if stopped => Exit::Interrupted,
        PingProgram::Own if error.kind == ErrorKind::Usage => Exit::Usage,
        PingProgram::Own => Exit::Failed,
        PingProgram::Ioping if stopped => Exit::Done,
        PingProgram::Ioping if error.kind == ErrorKind::Run => Exit::Ioping(3),
        PingProgram::Ioping => Exit::Ioping(2),
    };
    fail(front, &error.message, error.hint, exit)
}

fn fail(front: PingProgram, message: &str, hint: Option<String>, exit: Exit) -> Exit {
    match front {
        PingProgram::Own => {
            output::warn(&format!("error: {message}"));
            if let Some(hint) = hint {
                output::warn(&format!("hint: {hint}"));
            }
            exit
        }
        PingProgram::Ioping => {
            output::warn(&format!("ioping: {message}"));
            exit
        }
    }
}

fn unwritten(front: PingProgram, error: &io::Error) -> Exit {
    let message = format!("cannot write to standard output: {}", output::plain(error));
    fail(front, &message, None, if front == PingProgram::Own { Exit::Failed } else { Exit::Ioping(3) })
}
