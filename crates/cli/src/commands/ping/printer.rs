//! Shows a ping while it goes on, in the form that was asked for.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fathom_analysis::ping::{Note, Ping, PingHow, Sample, Stall, Window};
use fathom_assess::ping::PingObserver;
use fathom_model::units::latency;
use fathom_report::ioping_json::Pieces;
use fathom_report::{Style, TextWriter, ioping, ping_json, ping_text};
use fathom_runner::StopHandle;

use super::options::{Form, Front, Invocation};
use crate::output;

/// Writes to standard output as things happen.
pub struct Printer {
    front: Front,
    form: Form,
    quiet: bool,
    stamp: Option<String>,
    periods: bool,
    style: Style,
    stop: StopHandle,
    /// Requests that were answered, for who asks how it goes.
    pub answered: Arc<AtomicU64>,
    how: Option<(PingHow, u64)>,
    pieces: Option<Pieces>,
    /// What went wrong with writing; nothing more is written then.
    failed: Option<io::Error>,
}

impl Printer {
    /// For `invocation` under `front`; ends the ping through `stop` where nobody reads any more.
    pub fn new(invocation: &Invocation, front: Front, stop: StopHandle) -> Printer {
        let settings = &invocation.settings;
        Printer {
            front,
            form: invocation.form,
            quiet: invocation.quiet,
            stamp: invocation.stamp.clone(),
            periods: settings.print_count > 0 || settings.print_interval_ns > 0,
            style: output::style(),
            stop,
            answered: Arc::new(AtomicU64::new(0)),
            how: None,
            pieces: None,
            failed: None,
        }
    }

    /// What is left to say at the end; true where somebody still listens.
    ///
    /// # Errors
    /// Standard output cannot be written, other than because its reader has gone away.
    pub fn finish(mut self, ping: &Ping) -> io::Result<bool> {
        let (front, style) = (self.front, self.style.clone());
        let whole = &ping.result.whole;
        match self.form {
            Form::Text if self.quiet && self.periods => {}
            Form::Text => self.write(|out| {
                ioping::statistics(&ping.how.target, ping.how.operation, whole, out)?;
                if front == Front::Own { ping_text::summary(ping, &style, out) } else { Ok(()) }
            }),
            Form::Raw => self.line(&ioping::raw(whole)),
            Form::Array => {
                let at = ping.started_unix_us + whole.end_ns / 1000;
                let last = self.pieces.as_mut().map(|pieces| pieces.window(whole, at)).unwrap_or_default();
                let end = self.pieces.take().map_or("[]\n", Pieces::end);
                self.json(&format!("{last}{end}"));
            }
            Form::Document => self.write(|out| ping_json::render(ping, &mut out.json())),
            Form::Live => self.json_line(&ping_json::summary_line(ping)),
        }
        let is_read = self.failed.is_none();
        output::forgive_closed_pipe(self.failed.map_or(Ok(()), Err)).map(|()| is_read)
    }

    /// Closes what a failure left open.
    pub fn abandon(mut self) {
        if let Some(pieces) = self.pieces.take() {
            self.json(pieces.end());
        }
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
        self.front == Front::Own || output::stderr_is_seen()
    }
}

impl PingObserver for Printer {
    fn ready(&mut self, how: &PingHow, unix_us: u64) {
        if self.form == Form::Array {
            self.pieces = Some(Pieces::new(how.target.clone(), self.style.time_zone.clone()));
        }
        self.how = Some((how.clone(), unix_us));
    }

    fn sample(&mut self, sample: &Sample, note: Option<Note>) {
        self.answered.store(sample.number, Ordering::Relaxed);
        let Some((how, began)) = &self.how else { return };
        let at = began + sample.at_ns / 1000;
        if sample.result >= 0 && sample.result < i64::from(sample.len) {
            output::warn(&format!("{}: request returned less than expected: {}", self.name(), sample.result));
        }
        let line = match self.form {
            Form::Text if self.front == Front::Ioping => ioping::line(&how.target, sample, note),
            Form::Text => ping_text::line(&how.target, sample, note, &self.style),
            Form::Live => return self.json_line(&ping_json::sample_line(sample, note, at)),
            Form::Array => {
                let text = self.pieces.as_mut().map(|pieces| pieces.sample(sample, note, at));
                return self.json(&text.unwrap_or_default());
            }
            Form::Raw | Form::Document => return,
        };
        match self.stamp.as_ref().filter(|_| self.form == Form::Text) {
            Some(format) => self.line(&format!("{} {line}", ioping::stamp(at, format, &self.style))),
            None => self.line(&line),
        }
    }

    fn period(&mut self, period: &Window) {
        let at = self.how.as_ref().map_or(0, |(_, began)| began + period.end_ns / 1000);
        match self.form {
            Form::Text | Form::Raw => self.line(&ioping::raw(period)),
            Form::Live => self.json_line(&ping_json::period_line(period)),
            Form::Array => {
                let text = self.pieces.as_mut().map(|pieces| pieces.window(period, at));
                self.json(&text.unwrap_or_default());
            }
            Form::Document => {}
        }
    }

    fn burst_ended(&mut self) {
        if self.form == Form::Text {
            self.line("");
        }
    }

    fn stalled(&mut self, stall: &Stall, preparing: bool) {
        if self.form == Form::Live {
            self.json_line(&ping_json::stalled_line(stall));
        }
        if self.may_note() {
            let what = if preparing { "making the target ready" } else { "a request" };
            let length = latency(stall.length_ns);
            output::warn(&format!("{}: stalled: {what} has had no answer for {length}", self.name()));
        }
    }

    fn answered(&mut self, length_ns: u64) {
        if self.form == Form::Live {
            self.json_line(&ping_json::answered_line(length_ns));
        }
        if self.may_note() {
            output::warn(&format!("{}: answered after {}", self.name(), latency(length_ns)));
        }
    }
}

impl Printer {
    /// The name that messages begin with.
    pub fn name(&self) -> &'static str {
        match self.front {
            Front::Own => "ping",
            Front::Ioping => "ioping",
        }
    }
}
