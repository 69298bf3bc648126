//! The session's clock for the loop: real or virtual, never both in one run.

use std::rc::Rc;

use fathom_engine::sim::World;
use fathom_sys::clock::RealClock;

/// ns since the session began.
pub(crate) trait Clock {
    fn now(&self) -> u64;
}

impl Clock for RealClock {
    #[inline(always)]
    fn now(&self) -> u64 {
        RealClock::now(self)
    }
}

/// Virtual time, which only the executor advances.
#[derive(Clone)]
pub(crate) struct VirtualClock(pub Rc<World>);

impl Clock for VirtualClock {
    #[inline(always)]
    fn now(&self) -> u64 {
        self.0.now().0
    }
}
