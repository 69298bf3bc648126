//! A worker on its way from stage to stage: its start delay, the ramp, the measured part, the end.

use fathom_engine::Engine;
use fathom_model::Nanos;

use crate::clock::Clock;
use crate::drive::{Step, Worker};
use crate::schedule::Stage;

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
    /// Moves on to the stage that is due, if one is. `Some` where the worker has to wait for it.
    #[cold]
    pub fn change_stage(&mut self) -> Option<Step> {
        if self.stop.is_set() {
            if self.schedule.stage != Stage::Draining {
                self.end_schedule(self.now);
            }
            self.schedule.drain();
            return None;
        }
        if let Some(start) = self.schedule.delayed_until(self.now) {
            return Some(Step::BlockedUntil(Nanos(start)));
        }
        if self.now < self.schedule.next_change {
            return None;
        }
        let due = self.schedule.next_change;
        match self.schedule.advance(self.now) {
            Stage::Ramp => {
                self.usage_at_start = (self.usage)();
                if let Some(ramp) = &self.live.ramp {
                    ramp.start_ns.set(self.now);
                }
            }
            Stage::Measuring => self.begin_measuring(),
            Stage::Draining => self.end_schedule(due),
            Stage::Delayed => {}
        }
        self.begin_schedule();
        None
    }

    fn begin_measuring(&mut self) {
        let usage = (self.usage)();
        if let Some(ramp) = &self.live.ramp {
            ramp.close(self.now);
            self.usage_of_ramp = usage.since(&self.usage_at_start);
            self.slowest.clear();
        }
        self.usage_at_start = usage;
        self.measuring = true;
        self.live.measured.start_ns.set(self.now);
    }
}
