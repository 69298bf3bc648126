//! Shows a ping while it goes on, in the form that was asked for.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fathom_analysis::ping::{Note, Ping, PingHow, PingProgress, PingSample, PingStall, PingWindow, whole};
use fathom_assess::TestKeeper;
use fathom_assess::ping::PingObserver;
use fathom_model::units::latency;
use fathom_record::{RunHeader, RunRecord};
use fathom_report::formats::Format;
use fathom_report::ioping::json::Pieces;
use fathom_report::ping::{json as ping_json, text as ping_text};
use fathom_report::{Style, TextWriter, ioping};
use fathom_runner::StopHandle;

use super::live::PingLive;
use super::options::{PingInvocation, PingOutput, PingProgram};
use super::show;
use crate::output;
use crate::store::{self, HistoryKeeper};

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
            style: Style { units: invocation.units, ..output::style() },
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
