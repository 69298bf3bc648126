//! `--debug`: what a run does, in lines that begin like fio's, with the class and the process.

use std::fmt::Display;
use std::sync::mpsc::{self, Receiver, Sender};

use fathom_model::RunPlan;
use fathom_model::plan::RecordedRequest;
use fathom_options::{DebugClass, Invocation};
use fathom_runner::LayoutProgress;
use fathom_stats::Snapshot;

use super::sink::Sink;
use crate::exit::Complaint;
use crate::output;

/// What was asked for with `--debug`.
pub struct DebugTrace {
    classes: Vec<DebugClass>,
    /// The lines of other threads, and the way to here.
    lines: (Sender<String>, Receiver<String>),
    /// The state of each worker when it was last shown.
    states: String,
}

/// Traces the issued requests of a run, on the thread that has them.
pub struct RequestTrace(Sender<String>);

impl DebugTrace {
    /// The traces of `classes`.
    pub fn new(classes: &[DebugClass]) -> DebugTrace {
        DebugTrace { classes: classes.to_vec(), lines: mpsc::channel(), states: String::new() }
    }

    fn shows(&self, class: DebugClass) -> bool {
        self.classes.contains(&class)
    }

    /// What shows the requests; `None` unless they are asked for.
    pub fn requests(&self) -> Option<RequestTrace> {
        self.shows(DebugClass::Io).then(|| RequestTrace(self.lines.0.clone()))
    }

    /// Shows the classes, and the options, seeds and files of the jobs.
    pub fn begin(&self, invocation: &Invocation, plan: &RunPlan, sink: &mut Sink) -> Result<(), Complaint> {
        let mut lines: Vec<String> = Vec::new();
        for class in &self.classes {
            lines.push(format!("fio: set debug option {}", class.name()));
            if !class.is_traced() {
                lines.push(line(*class, "nothing of this class is traced"));
            }
        }
        if self.shows(DebugClass::Parse) {
            lines.extend(options_of(invocation));
        }
        let clones = || plan.jobs.iter().flat_map(|job| &job.clones);
        if self.shows(DebugClass::Random) {
            // A worker has one seed, of which each use draws a stream of its own.
            for clone in clones() {
                lines.push(line(DebugClass::Random, "FIO_RAND_NR_OFFS=1"));
                lines.push(line(DebugClass::Random, format_args!("rand_seeds[0]={}", clone.seed)));
            }
        }
        if self.shows(DebugClass::File) {
            let files = clones().flat_map(|clone| &clone.paths);
            lines.extend(
                files.map(|path| line(DebugClass::File, format_args!("add file {}", path.display()))),
            );
        }
        show(&lines, sink)
    }

    /// Shows the layout of a file.
    pub fn layout(&self, progress: &LayoutProgress, sink: &mut Sink) {
        if self.shows(DebugClass::File) {
            let LayoutProgress { path, done_bytes, total_bytes, .. } = progress;
            let what = format!("layout {}: {done_bytes} of {total_bytes} bytes", path.display());
            let _ = show(&[line(DebugClass::File, what)], sink);
        }
    }

    /// Shows the requests so far, and the workers whose state has changed.
    pub fn snapshot(&mut self, snapshot: &Snapshot, sink: &mut Sink) {
        let mut lines: Vec<String> = self.lines.1.try_iter().collect();
        if self.shows(DebugClass::Process) {
            lines.extend(changes(&self.states, &snapshot.states));
            self.states.clone_from(&snapshot.states);
        }
        // The report says so if the output cannot be written.
        let _ = show(&lines, sink);
    }

    /// Shows the rest.
    pub fn end(self, sink: &mut Sink) -> Result<(), Complaint> {
        let mut lines: Vec<String> = self.lines.1.try_iter().collect();
        if self.shows(DebugClass::Process) {
            lines.extend(changes(&self.states, &"_".repeat(self.states.len())));
        }
        show(&lines, sink)
    }
}

impl RequestTrace {
    /// Shows requests to these targets.
    pub fn issued(&self, requests: &[RecordedRequest], targets: &[String]) {
        for RecordedRequest { request, .. } in requests {
            let file = targets.get(request.file as usize).map_or("", String::as_str);
            let what = format!(
                "queue: off={:#x},len={:#x},ddir={},file={file}",
                request.offset, request.len, request.op as u8
            );
            // The receiver lives as long as the run.
            let _ = self.0.send(line(DebugClass::Io, what));
        }
    }
}

/// The options of each job, and the thresholds of steady states as they were understood.
fn options_of(invocation: &Invocation) -> Vec<String> {
    let mut lines = Vec::new();
    let of_jobs = invocation.sections.iter().flat_map(|section| section.all_options());
    let parsed: Vec<(String, String)> = match invocation.sections.is_empty() {
        true => invocation.global_options.clone(),
        false => of_jobs.collect(),
    };
    for (name, value) in parsed {
        lines.push(line(DebugClass::Parse, format_args!("handle_option={name}, ptr={value}")));
        if let Some(threshold) = threshold(&name, &value) {
            lines.push(line(DebugClass::Parse, threshold));
        }
    }
    lines
}

/// fio's words for the threshold of a steady state.
fn threshold(name: &str, value: &str) -> Option<String> {
    if !matches!(name, "ss" | "steadystate") {
        return None;
    }
    let (figure, limit) = value.split_once(':')?;
    let number = |text: &str| text.trim().parse::<f64>().ok();
    Some(match limit.strip_suffix('%') {
        Some(percent) => format!("set steady state threshold to {:.6}%", number(percent)?),
        None if figure.starts_with("iops") => {
            format!("set steady state IOPS threshold to {:.6}", number(limit)?)
        }
        None => format!("set steady state BW threshold to {limit}"),
    })
}

/// The changes of the states of the workers; one that was not shown before has not started.
fn changes(before: &str, now: &str) -> Vec<String> {
    let before = before.chars().chain(std::iter::repeat('P'));
    let changed = before.zip(now.chars()).enumerate().filter(|(_, (before, now))| before != now);
    let shown = changed.map(|(worker, (before, now))| {
        let number = worker + 1;
        let what = format!("worker {number}: runstate {} -> {}", state_name(before), state_name(now));
        line(DebugClass::Process, what)
    });
    shown.collect()
}

/// The states that the line of the estimated end shows by a letter.
const fn state_name(letter: char) -> &'static str {
    match letter {
        'P' => "NOT_STARTED",
        '/' => "RAMP",
        '_' => "EXITED",
        _ => "RUNNING",
    }
}

fn line(class: DebugClass, what: impl Display) -> String {
    format!("{:<8} {:>5} {what}", class.name(), std::process::id())
}

/// Into fio's text; where the output is for programs alone, to standard error.
fn show(lines: &[String], sink: &mut Sink) -> Result<(), Complaint> {
    if !sink.has_text() {
        lines.iter().for_each(|line| output::warn(line));
        return Ok(());
    }
    if lines.is_empty() {
        return Ok(());
    }
    sink.write(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// fio 3.33's words.
    #[test]
    fn thresholds_are_in_the_words_of_fio() {
        for (value, expected) in [
            ("iops:10", "set steady state IOPS threshold to 10.000000"),
            ("iops_slope:.1%", "set steady state threshold to 0.100000%"),
            ("bw:12", "set steady state BW threshold to 12"),
            ("bw_slope:10%", "set steady state threshold to 10.000000%"),
        ] {
            assert_eq!(threshold("steadystate", value).as_deref(), Some(expected), "{value}");
        }
        assert_eq!(threshold("bs", "iops:10"), None);
    }

    #[test]
    fn changes_of_states_are_shown_once() {
        let shown = |before, now| -> Vec<String> {
            let lines = changes(before, now).into_iter();
            lines.filter_map(|line| Some(line.split_once(": runstate ")?.1.to_owned())).collect()
        };
        assert_eq!(shown("", "RP/"), ["NOT_STARTED -> RUNNING", "NOT_STARTED -> RAMP"]);
        assert_eq!(shown("RP/", "RP/"), [""; 0]);
        assert_eq!(shown("RP/", "_PR"), ["RUNNING -> EXITED", "RAMP -> RUNNING"]);
        assert!(changes("R", "_")[0].starts_with("process  "));
    }
}
