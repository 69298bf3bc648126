//! `fathom ping`, and ioping's own command line where the program is called so: reads it, pings, shows, exits.

mod options;

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Arg, ArgAction};
use fathom_analysis::criterion::ObjectiveVerdict;
use fathom_analysis::ping::{
    Note, Ping, PingHow, PingProgress, PingSample, PingStall, PingWindow, verdicts, whole,
};
use fathom_assess::fleet::Fleet;
use fathom_assess::ping::{self, PING_TEST, PingObserver};
use fathom_assess::{AssessError, ErrorKind, TestKeeper};
use fathom_history::without_password;
use fathom_model::units::latency;
use fathom_record::{RunHeader, RunRecord, TestRecord};
use fathom_report::formats::Format;
use fathom_report::ioping::json::Pieces;
use fathom_report::live::json::LiveLine;
use fathom_report::live::{LivePing, PingEnd};
use fathom_report::ping::{self as report_ping, json as ping_json, text as ping_text};
use fathom_report::{JsonWriter, Style, TextWriter, ioping};
use fathom_runner::{RunControl, StopHandle};

use super::format_arguments::FormatArguments;
use super::shown;
use crate::exit::{Complaint, Exit};
use crate::live::SingleTest;
use crate::live::{LiveOutputs, LiveRun, NextKey, check_beside_lines};
use crate::ranks::keep_and_print;
use crate::store::{self, HistoryKeeper};
use crate::{keys, output, ranks, signals};
use options::{PingInvocation, PingOption, PingOutput, PingProgram, ValueUse};

/// The version of ioping whose ways these are.
const IOPING_VERSION: &str = "ioping 1.3";

/// Examples of `fathom ping`.
pub const EXAMPLES: [&str; 6] = [
    "fathom ping -c 10 /mnt/data                     ten requests, one a second",
    "fathom ping -r 200 -w 1min --schedule fixed -q --expect 'p99<5ms' /mnt/data",
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
    options::rows(PingProgram::Own).into_iter().map(argument).chain([target]).collect()
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
    let given = match options::read_words(&words, &options::rows(front)) {
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
            if invocation.fleet.is_given() { run_rank(invocation) } else { measure(invocation, front) }
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

/// What shows a ping while it goes on.
pub struct PingLive {
    shown: SingleTest,
    end: PingEnd,
}

impl PingLive {
    /// Opens what `invocation` asks for.
    ///
    /// # Errors
    /// The terminal, a file or an address cannot be had, or the view and lines of JSON would share the terminal.
    pub fn open(invocation: &PingInvocation) -> Result<PingLive, Complaint> {
        let settings = &invocation.settings;
        if matches!(invocation.form, PingOutput::Events | PingOutput::Array) {
            check_beside_lines(&invocation.live)?;
        }
        let units = invocation.units.unwrap_or_default();
        let run = LiveRun { steps: Vec::new(), next: NextKey::Nothing, units, can_be_followed: false };
        let outputs = LiveOutputs::open(&invocation.live, run)?;
        let end = PingEnd { count: settings.count, work_ns: settings.work_ns };
        Ok(PingLive { shown: SingleTest::new(outputs), end })
    }

    /// True where a view has the terminal.
    pub fn has_screen(&self) -> bool {
        self.shown.has_screen()
    }

    /// Requests begin.
    pub fn begin(&mut self, header: &RunHeader, how: &PingHow) {
        self.shown.begin(header, PING_TEST, how.title());
        self.shown.change(None, |state| state.begin_ping(LivePing::new(how.clone(), self.end)));
    }

    /// The ping stands so.
    pub fn take(&self, progress: &PingProgress) {
        self.shown.change(Some(LiveLine::Snapshot), |state| state.tick_ping(progress));
    }

    /// The ping has ended; the terminal is as it was.
    pub fn end(self, test: &TestRecord) {
        self.shown.end(test);
    }
}

/// Pings as a rank.
pub fn run_rank(invocation: PingInvocation) -> Exit {
    let refused =
        |Complaint { message, hint, exit, .. }: Complaint| fail(PingProgram::Own, &message, hint, exit);
    match join_and_ping(invocation) {
        Ok(exit) => exit,
        Err(complaint) => refused(complaint),
    }
}

fn join_and_ping(invocation: PingInvocation) -> Result<Exit, Complaint> {
    if !ranks::is_asked(&invocation.fleet)? {
        return Ok(Exit::Usage);
    }
    check_rank(&invocation)?;
    let job = ranks::join(invocation.fleet.clone())?;
    let met = ranks::meet(job, &invocation.settings.command, Ok(Default::default()));
    match met {
        Ok((fleet, _)) => measure_rank(invocation, fleet),
        Err(exit) => Ok(exit),
    }
}

/// Refuses what many ranks do not have: an output while they run, an end that only one of them knows, and objectives of one host.
fn check_rank(invocation: &PingInvocation) -> Result<(), Complaint> {
    let settings = &invocation.settings;
    let refused = [
        ("--expect", !settings.slo.is_empty()),
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

fn measure_rank(invocation: PingInvocation, fleet: Fleet) -> Result<Exit, Complaint> {
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
    let (measured, own) = match ping::run_under(control, settings, &mut ()) {
        Ok(record) => (Ok(record), None),
        // Where another rank was the reason, the report names it for all.
        Err(error) => {
            (Err(error.message.clone()), Some(error).filter(|error| error.kind != ErrorKind::Stopped))
        }
    };
    let exit = ranks::end(fleet, measured, stop.reason(), own.is_some(), |record| {
        report_ranks(&invocation, &record)
    })?;
    Ok(own.map_or(exit, |error| failed(PingProgram::Own, error, caught.number().is_some())))
}

fn report_ranks(invocation: &PingInvocation, record: &RunRecord) -> Result<Exit, Complaint> {
    let format = match invocation.form {
        PingOutput::Report(format) => format,
        _ => Format::Text,
    };
    let keeps = invocation.keeping.is_asked_for();
    if keeps && store::place(invocation.keeping.history.clone(), true).history.is_none() {
        store::tell_of_no_place();
    }
    let form = FormatArguments::of(format, invocation.full, invocation.units);
    keep_and_print(record, invocation.keeping.place(keeps), keeps, &form, shown::show)?;
    Ok(ranks::exit_of(record))
}

/// Writes to standard output as things happen.
pub struct PingPrinter {
    front: PingProgram,
    form: PingOutput,
    quiet: bool,
    stamp: Option<String>,
    periods: bool,
    style: Style,
    stop: StopHandle,
    /// Requests that were answered, for who asks how it goes.
    pub answered: Arc<AtomicU64>,
    how: Option<(PingHow, u64)>,
    pieces: Option<Pieces>,
    keeper: Option<HistoryKeeper>,
    /// What shows it beside that; `None` once it has ended.
    live: Option<PingLive>,
    /// A view has the terminal that lines would go to: they are left out.
    is_covered: bool,
    /// What went wrong with writing; nothing more is written then.
    failed: Option<io::Error>,
}

impl PingPrinter {
    /// For `invocation` under `front`, beside `live`; ends the ping through `stop` where the reader has gone.
    pub fn new(
        invocation: &PingInvocation,
        front: PingProgram,
        stop: StopHandle,
        live: PingLive,
    ) -> PingPrinter {
        let settings = &invocation.settings;
        PingPrinter {
            front,
            form: invocation.form,
            quiet: invocation.quiet,
            stamp: invocation.stamp.clone(),
            periods: settings.print_count > 0 || settings.print_interval_ns > 0,
            style: Style { units: invocation.units, is_full: invocation.full, ..output::style() },
            stop,
            answered: Arc::new(AtomicU64::new(0)),
            how: None,
            pieces: None,
            keeper: (front == PingProgram::Own).then(|| HistoryKeeper::asked_for(&invocation.keeping, None)),
            is_covered: live.has_screen() && output::stdout_is_seen(),
            live: Some(live),
            failed: None,
        }
    }

    /// Keeps the run and prints what is left to print at the end; true unless the reader has gone.
    ///
    /// # Errors
    /// Standard output cannot be written, other than because its reader has gone away.
    pub fn finish(mut self, record: &RunRecord, ping: &Ping) -> io::Result<bool> {
        if let (Some(live), Some(test)) = (self.live.take(), record.tests.first()) {
            live.end(test);
        }
        let mut keeper = self.keeper.take();
        let kept = keeper.as_mut().map(|keeper| {
            record.tests.iter().for_each(|test| keeper.append(test));
            keeper.finish(record)
        });
        let style = Style { run_id: kept.as_ref().and_then(store::run_id), ..self.style.clone() };
        let whole = whole(ping);
        match self.form {
            PingOutput::Text if self.front == PingProgram::Ioping && !(self.quiet && self.periods) => {
                self.write(|out| ioping::statistics(&ping.how.target, &ping.how.operation, &whole, out));
            }
            PingOutput::Text => {
                let shows = !(self.quiet && self.periods);
                self.write(|out| {
                    if shows {
                        show(record, &style, Format::Text, out)?;
                    }
                    kept.iter().try_for_each(|kept| store::write_kept(kept, out))
                });
            }
            PingOutput::Raw => self.line(&ioping::raw(&whole)),
            PingOutput::Array => {
                let at = self.how.as_ref().map_or(0, |(_, began)| began + whole.load.end_ns / 1000);
                let last = self.pieces.as_mut().map(|pieces| pieces.window(&whole, at)).unwrap_or_default();
                let end = self.pieces.take().map_or("[]\n", Pieces::end);
                self.json(&format!("{last}{end}"));
            }
            PingOutput::Report(format) => self.write(|out| show(record, &style, format, out)),
            PingOutput::Events => self.json_line(&ping_json::summary_line(record, &style)),
        }
        let is_read = self.failed.is_none();
        output::forgive_closed_pipe(self.failed.map_or(Ok(()), Err)).map(|()| is_read)
    }

    /// Closes what a failure left open.
    pub fn abandon(mut self) {
        self.live = None;
        if let Some(pieces) = self.pieces.take() {
            self.json(pieces.end());
        }
    }

    /// Whether the lines of requests and periods are left out.
    pub fn is_covered(&self) -> bool {
        self.is_covered
    }

    fn line(&mut self, line: &str) {
        self.write(|out| writeln!(out.verbatim(), "{line}"));
    }

    fn json_line(&mut self, line: &str) {
        self.json(&format!("{line}\n"));
    }

    fn json(&mut self, text: &str) {
        self.write(|out| out.json().write_all(text.as_bytes()));
    }

    /// A line at a time, so that a reader sees each request when it was answered.
    fn write(&mut self, write: impl FnOnce(&mut TextWriter) -> io::Result<()>) {
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = output::try_print(write) {
            self.failed = Some(error);
            self.stop.request("the reader of standard output has gone");
        }
    }

    /// What a script that knows ioping would not expect stays away from it.
    fn may_note(&self) -> bool {
        self.front == PingProgram::Own || output::stderr_is_seen()
    }
}

impl PingObserver for PingPrinter {
    fn ready(&mut self, header: &RunHeader, how: &PingHow, unix_us: u64) {
        if let Some(keeper) = &mut self.keeper {
            keeper.begin(header);
        }
        if self.form == PingOutput::Array {
            self.pieces = Some(Pieces::new(how.target.clone(), self.style.time_zone.clone()));
        }
        if let Some(live) = &mut self.live {
            live.begin(header, how);
        }
        self.how = Some((how.clone(), unix_us));
    }

    fn sample(&mut self, sample: &PingSample, note: Option<Note>) {
        self.answered.store(sample.request, Ordering::Relaxed);
        let Some((how, began)) = &self.how else { return };
        let at = began + sample.elapsed_ns / 1000;
        if sample.result >= 0 && sample.result < i64::from(sample.size_bytes) {
            output::warn(&format!("{}: request returned less than expected: {}", self.name(), sample.result));
        }
        let line = match self.form {
            PingOutput::Text if self.front == PingProgram::Ioping => ioping::line(&how.target, sample, note),
            PingOutput::Text => ping_text::line(&how.target, sample, note, &self.style),
            PingOutput::Events => return self.json_line(&ping_json::sample_line(sample, note, at)),
            PingOutput::Array => {
                let text = self.pieces.as_mut().map(|pieces| pieces.sample(sample, note, at));
                return self.json(&text.unwrap_or_default());
            }
            PingOutput::Raw | PingOutput::Report(_) => return,
        };
        match self.stamp.as_ref().filter(|_| self.form == PingOutput::Text) {
            Some(format) => self.line(&format!("{} {line}", ioping::stamp(at, format, &self.style))),
            None => self.line(&line),
        }
    }

    fn period(&mut self, period: &PingWindow) {
        let at = self.how.as_ref().map_or(0, |(_, began)| began + period.load.end_ns / 1000);
        match self.form {
            PingOutput::Text | PingOutput::Raw if self.is_covered => {}
            PingOutput::Text | PingOutput::Raw => self.line(&ioping::raw(period)),
            PingOutput::Events => self.json_line(&ping_json::period_line(period)),
            PingOutput::Array => {
                let text = self.pieces.as_mut().map(|pieces| pieces.window(period, at));
                self.json(&text.unwrap_or_default());
            }
            PingOutput::Report(_) => {}
        }
    }

    fn burst_ended(&mut self) {
        if self.form == PingOutput::Text {
            self.line("");
        }
    }

    fn progress(&mut self, progress: &PingProgress) {
        self.answered.store(progress.account.counts.requests, Ordering::Relaxed);
        if let Some(live) = &self.live {
            live.take(progress);
        }
    }

    fn stalled(&mut self, stall: &PingStall, preparing: bool) {
        if self.form == PingOutput::Events {
            self.json_line(&ping_json::stalled_line(stall));
        }
        if self.may_note() {
            let what = if preparing { "making the target ready" } else { "a request" };
            let length = latency(stall.length_ns);
            output::warn(&format!("{}: stalled: {what} has had no answer for {length}", self.name()));
        }
    }

    fn answered(&mut self, length_ns: u64) {
        if self.form == PingOutput::Events {
            self.json_line(&ping_json::answered_line(length_ns));
        }
        if self.may_note() {
            output::warn(&format!("{}: answered after {}", self.name(), latency(length_ns)));
        }
    }
}

impl PingPrinter {
    /// The name that messages begin with.
    pub fn name(&self) -> &'static str {
        match self.front {
            PingProgram::Own => "ping",
            PingProgram::Ioping => "ioping",
        }
    }
}
