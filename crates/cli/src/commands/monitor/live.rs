//! `--tui` and `--live` of `fathom monitor`.

use fathom_analysis::monitor::MonitorInterval;
use fathom_record::RunHeader;
use fathom_report::Style;
use fathom_report::formats::Format;
use fathom_report::live::MonitorTick;
use fathom_report::live::json::LiveLine;
use fathom_runner::MachineTicks;
use fathom_sys::clock::monotonic_ns;

use crate::exit::Complaint;
use crate::live::arguments::LiveArguments;
use crate::live::{LiveOutputs, LiveRun, NextKey, check_beside_lines};

/// What shows a monitor while it goes on, beside its own output.
pub struct MonitorLive {
    outputs: LiveOutputs,
    /// How many intervals there will be, where that is known.
    of: Option<u64>,
    /// When it began, ns of the monotonic clock.
    began_ns: u64,
    machine: Option<MachineTicks>,
}

impl MonitorLive {
    /// Opens what `arguments` ask for, beside a report in `format`.
    ///
    /// # Errors
    /// The terminal, a file or an address cannot be had, or the view and lines of JSON would share the terminal.
    pub fn open(
        arguments: &LiveArguments,
        format: Format,
        style: &Style,
        of: Option<u64>,
    ) -> Result<MonitorLive, Complaint> {
        if format == Format::Json {
            check_beside_lines(arguments)?;
        }
        let units = style.units.unwrap_or_default();
        let run = LiveRun { steps: Vec::new(), next: NextKey::ShowDevice, units, can_be_followed: false };
        let outputs = LiveOutputs::open(arguments, run)?;
        Ok(MonitorLive { outputs, of, began_ns: 0, machine: None })
    }

    /// True where a view has the terminal.
    pub fn has_screen(&self) -> bool {
        self.outputs.has_screen()
    }

    /// Watching begins.
    pub fn begin(&mut self, header: &RunHeader) {
        let Some(hub) = self.outputs.hub() else { return };
        self.began_ns = monotonic_ns();
        self.machine = Some(MachineTicks::begin(None, self.began_ns));
        hub.change(Some(LiveLine::Begun), |state| {
            state.begin(header);
            state.begin_monitor();
        });
    }

    /// An interval has ended.
    pub fn take(&mut self, intervals: &[MonitorInterval]) {
        let Some(hub) = self.outputs.hub() else { return };
        let now = monotonic_ns();
        let host = self.machine.as_mut().and_then(|machine| machine.tick(now).host);
        let tick = MonitorTick { intervals, host, elapsed_ns: now - self.began_ns, of: self.of };
        hub.change(Some(LiveLine::Snapshot), |state| state.tick_monitor(&tick));
    }

    /// It has ended; the terminal is as it was.
    pub fn end(&mut self) {
        self.outputs = LiveOutputs::default();
    }
}
