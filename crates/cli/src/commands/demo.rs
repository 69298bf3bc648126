//! `fathom demo`: a tour of the commands on simulated volumes, for who has not touched a disk yet.
//!
//! Each step runs this program again with the arguments that it shows, so what is seen is what the command prints. Volumes are
//! simulated on virtual time: no device is accessed, no file is written, no run is kept.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;
use fathom_model::text::shell_quoted;
use fathom_report::TextWriter;
use fathom_sys::child;

use crate::exit::{Complaint, Exit};
use crate::{output, store};

/// What `fathom demo` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct DemoArguments {
    /// Steps to show [default: all]
    #[arg(value_parser = ["ping", "bench", "sweep", "identify", "compare"], value_name = "STEP")]
    steps: Vec<String>,
}

const EXAMPLES: &str = "\
Volumes are simulated: accesses no device, writes no file, keeps no run. Takes some seconds; at a terminal it waits for
Enter between the steps.

Examples:
  fathom demo                       the whole tour
  fathom demo identify              one step
  fathom demo | less";

/// A step of the tour.
struct DemoStep {
    /// Its name.
    name: &'static str,
    /// What it shows.
    title: &'static str,
    /// What to know before it.
    introduction: &'static str,
    /// The arguments of the command.
    arguments: &'static [&'static str],
    /// What to look at in its output.
    reading: &'static str,
}

/// The volume of the tour: one whose burst credits hide its baseline.
const VOLUME: &str = "sim:aws-gp2?size=50GiB";
/// The volume that it is compared with, of the same size.
const OTHER: &str = "sim:aws-gp3?size=50GiB";

/// All steps, in their order.
const STEPS: &[DemoStep] = &[
    DemoStep {
        name: "ping",
        title: "latency of single I/Os",
        introduction: "ping issues one I/O after the other and shows the latency of each, as ioping does.",
        arguments: &["ping", "-c", "5", "-i", "100ms", VOLUME],
        reading: "A quick look at an idle volume; bench and sweep load it.",
    },
    DemoStep {
        name: "bench",
        title: "assessment",
        introduction: "bench runs a suite of tests and draws conclusions from their figures.",
        arguments: &["bench", VOLUME],
        reading: "The findings name the limits; the suitability section names the uses that the figures suffice for, and \
                  for how long.",
    },
    DemoStep {
        name: "sweep",
        title: "limits and knees",
        introduction: "sweep measures over block size and queue depth to find where more depth adds only latency.",
        arguments: &["sweep", "--budget", "15m", VOLUME],
        reading: "The knee is the queue depth to run at; the crossover block size separates the IOPS limit from the \
                  bandwidth limit.",
    },
    DemoStep {
        name: "identify",
        title: "burst credits and type",
        introduction: "identify loads a volume until its burst credits are exhausted: 3,000 IOPS are not what it sustains.",
        arguments: &["identify", "--budget", "3h", VOLUME],
        reading: "The baseline is the rate that lasts. On a real volume this takes as long as the credits do.",
    },
    DemoStep {
        name: "compare",
        title: "two volume types",
        introduction: "compare puts runs, files of other programs and simulated volumes side by side, with prices.",
        arguments: &["compare", VOLUME, OTHER, "--only", "rand-read,rand-write,seq-read"],
        reading: "Sources may be past runs, output of fio or ioping, or volumes that nobody has bought yet.",
    },
];

/// Commands to go on with.
const NEXT: &[(&str, &str)] = &[
    ("fathom doctor /mnt/data", "conditions of this machine that falsify figures"),
    ("fathom bench --quick /mnt/data", "assess a volume of your own in under a minute"),
    ("fathom report -o volume.html", "the newest run as a page with charts"),
    ("fathom monitor", "the I/O of the disks, live"),
    ("fathom catalog fit --iops 5000 --size 500GiB", "volume types that meet a need"),
    ("fathom --help", "all commands"),
];

/// Shows the steps.
///
/// # Errors
/// A step cannot be started, or standard output cannot be written.
pub fn run(arguments: &DemoArguments) -> Result<Exit, Complaint> {
    let is_wanted =
        |step: &&DemoStep| arguments.steps.is_empty() || arguments.steps.iter().any(|name| name == step.name);
    let steps: Vec<&DemoStep> = STEPS.iter().filter(is_wanted).collect();
    for (index, step) in steps.iter().enumerate() {
        let place = format!("{} of {}", index + 1, steps.len());
        if !is_read(|out| announce(step, &place, out))? {
            return Ok(Exit::Done);
        }
        let status = command_of(step).status().map_err(|error| {
            Complaint::failed(format!("cannot start step {}: {}", step.name, output::plain(&error)), None)
        })?;
        match status.code() {
            Some(0) => {}
            Some(code) if code == i32::from(Exit::Interrupted.number()) => return Ok(Exit::Interrupted),
            _ => return Ok(Exit::Failed),
        }
        if !is_read(|out| explain(step, out))? {
            return Ok(Exit::Done);
        }
        if index + 1 < steps.len() && !is_continued() {
            break;
        }
    }
    output::print(next)?;
    Ok(Exit::Done)
}

/// This program with the arguments of a step; whatever the user keeps runs in, this one is not kept.
fn command_of(step: &DemoStep) -> Command {
    let mut command = child::command("/proc/self/exe");
    command.arg0("fathom").args(step.arguments.iter().map(OsString::from)).env_remove(store::VARIABLE);
    command
}

/// At a terminal waits for the reader; false where that is enough of the tour.
fn is_continued() -> bool {
    let keyboard = io::stdin();
    if !keyboard.is_terminal() || !output::stdout_is_seen() || !output::stderr_is_seen() {
        return true;
    }
    output::warn("Press Enter for the next step, or q and Enter to stop.");
    let mut line = String::new();
    keyboard.read_line(&mut line).is_ok_and(|bytes| bytes > 0) && line.trim() != "q"
}

/// Writes to standard output; false where its reader has gone.
fn is_read(write: impl FnOnce(&mut TextWriter) -> io::Result<()>) -> Result<bool, Complaint> {
    match output::try_print(write) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn announce(step: &DemoStep, place: &str, out: &mut TextWriter) -> io::Result<()> {
    let words = step.arguments.iter().map(|word| shell_quoted(word));
    let line: Vec<String> = std::iter::once("fathom".to_owned()).chain(words.map(Into::into)).collect();
    writeln!(out, "== {place}: {} ({}) ==", step.name, step.title)?;
    output::paragraph(step.introduction, out)?;
    writeln!(out)?;
    writeln!(out.verbatim(), "$ {}", line.join(" "))
}

fn explain(step: &DemoStep, out: &mut TextWriter) -> io::Result<()> {
    writeln!(out)?;
    output::paragraph(&format!("-> {}", step.reading), out)?;
    writeln!(out)
}

fn next(out: &mut TextWriter) -> io::Result<()> {
    writeln!(out, "== What to try next ==")?;
    NEXT.iter().try_for_each(|(line, what)| writeln!(out.verbatim(), "  {line:<46}{what}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use clap::builder::PossibleValue;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: DemoArguments,
    }

    #[test]
    fn every_step_can_be_chosen_and_is_a_command() {
        use clap::CommandFactory;
        let command = Line::command();
        let known: Vec<PossibleValue> =
            command.get_positionals().flat_map(|arg| arg.get_possible_values()).collect();
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(known.iter().map(PossibleValue::get_name).collect::<Vec<_>>(), names);
        for step in STEPS {
            assert_eq!(step.arguments[0], step.name);
            assert!(step.arguments.contains(&VOLUME), "{}", step.name);
            if step.name != "ping" {
                let line = std::iter::once("fathom").chain(step.arguments.iter().copied());
                assert!(crate::commands::command().try_get_matches_from(line).is_ok(), "{}", step.name);
            }
        }
        assert!(Line::parse_from(["demo"]).arguments.steps.is_empty());
    }

    #[test]
    fn what_to_try_next_exists() {
        for (line, _) in NEXT {
            let words: Vec<&str> = line.split(' ').collect();
            let parsed = crate::commands::command().try_get_matches_from(words);
            let is_help = |error: &clap::Error| error.kind() == clap::error::ErrorKind::DisplayHelp;
            assert!(parsed.as_ref().is_ok_and(|_| true) || parsed.as_ref().is_err_and(is_help), "{line}");
        }
    }
}
