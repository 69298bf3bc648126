//! The progress of a simulation at a terminal: how far virtual time has come, and how long it still takes.

use std::time::Duration;

use fathom_assess::TestKeeper;
use fathom_assess::simulate::SimulateObserver;
use fathom_model::Nanos;
use fathom_model::units::{duration, grouped};
use fathom_record::{RunHeader, TestRecord};

use crate::commands::run_arguments::KeepArguments;
use crate::output::Bar;
use crate::store::HistoryKeeper;

/// Shows a simulation and keeps each volume of it.
pub struct SimulateProgress {
    /// The progress bar; hidden unless standard error is a terminal.
    pub bar: Bar,
    /// Where it is kept.
    pub keeper: HistoryKeeper,
    volumes: usize,
    length: Option<Nanos>,
    index: usize,
}

impl SimulateProgress {
    /// Nothing is shown unless standard error is a terminal.
    pub fn new(volumes: usize, length: Option<Nanos>, keeping: &KeepArguments) -> SimulateProgress {
        let total = length.map(|length| length.as_millis() * volumes as u64);
        let template = if length.is_some() {
            "{prefix} {bar:20} {wide_msg} {eta} left"
        } else {
            "{prefix} {spinner} {wide_msg}"
        };
        let bar = Bar::new(total, template);
        bar.enable_steady_tick(Duration::from_millis(500));
        let keeper = HistoryKeeper::asked_for(keeping, Some(bar.clone()));
        SimulateProgress { bar, keeper, volumes, length, index: 0 }
    }
}

impl SimulateObserver for SimulateProgress {
    fn begun(&mut self, header: &RunHeader) {
        self.keeper.begin(header);
    }

    fn volume_ended(&mut self, test: &TestRecord) {
        self.keeper.append(test);
    }

    fn volume_begun(&mut self, index: usize) {
        self.index = index;
        self.bar.set_prefix(format!("volume {}/{}", index + 1, self.volumes));
    }

    fn progress(&mut self, at_ns: u64, iops: f64) {
        let before = self.length.map_or(0, |length| length.as_millis() * self.index as u64);
        self.bar.set_position(before + at_ns / 1_000_000);
        let of = self.length.map(|length| format!(" of {}", duration(length))).unwrap_or_default();
        let iops = grouped(iops.round() as u64);
        self.bar.set_message(format!("{}{of}, {iops} IOPS", duration(Nanos(at_ns))));
    }
}
