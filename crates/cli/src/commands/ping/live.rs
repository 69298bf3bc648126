//! `--tui` and `--live` of `fathom ping`.

use fathom_analysis::ping::{PingHow, PingProgress};
use fathom_assess::ping::PING_TEST;
use fathom_record::{RunHeader, TestRecord};
use fathom_report::live::json::LiveLine;
use fathom_report::live::{LivePing, PingEnd};

use super::options::{PingInvocation, PingOutput};
use crate::exit::Complaint;
use crate::live::single::SingleTest;
use crate::live::{LiveOutputs, LiveRun, NextKey, check_beside_lines};

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
