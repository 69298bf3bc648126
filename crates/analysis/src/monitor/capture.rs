//! What a monitor saw of one device's load from its beginning to its end, in constant memory. Pure.
//!
//! Idle time before and after the load is left out, and with it the intervals in which the load began and ended, which it
//! filled only in part; pauses in between belong to it.

use crate::monitor::{MonitorInterval, Presence};

/// Fewer whole intervals than these say less than the parts at the ends.
const FEW: u64 = 3;

/// Takes the intervals of one device one after the other.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// From the first interval with I/O to the last.
    whole: Option<MonitorInterval>,
    /// The same without the ends.
    inner: Option<MonitorInterval>,
    inner_count: u64,
    /// The last interval with I/O, of which is not yet known whether the load ended in it.
    last: Option<MonitorInterval>,
    /// Those without since then.
    pause: Option<MonitorInterval>,
    was_idle: bool,
}

impl Capture {
    /// One more interval.
    pub fn add(&mut self, interval: &MonitorInterval) {
        if interval.presence == Presence::Gone {
            return;
        }
        if !interval.activity.is_some() {
            if self.whole.is_some() {
                append(&mut self.pause, interval);
            }
            self.was_idle = true;
            return;
        }
        let pause = self.pause.take();
        if let Some(last) = self.last.take() {
            append(&mut self.inner, &last);
            self.inner_count += 1;
        }
        if let Some(pause) = pause {
            append(&mut self.whole, &pause);
            append(&mut self.inner, &pause);
        }
        if self.whole.is_some() || !self.was_idle {
            self.last = Some(interval.clone());
        }
        append(&mut self.whole, interval);
    }

    /// The load; `None` where there was none.
    pub fn load(&self) -> Option<MonitorInterval> {
        let (mut inner, mut count) = (self.inner.clone(), self.inner_count);
        if let (Some(last), None) = (&self.last, &self.pause) {
            append(&mut inner, last);
            count += 1;
        }
        inner.filter(|_| count >= FEW).or_else(|| self.whole.clone())
    }
}

fn append(sum: &mut Option<MonitorInterval>, later: &MonitorInterval) {
    match sum {
        Some(sum) => sum.add(later),
        None => *sum = Some(later.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals of a second with so many reads: what is captured of them, as seconds and reads.
    fn check(reads: &[u64], expected: Option<(u64, u64)>) {
        let mut capture = Capture::default();
        for &ios in reads {
            let mut interval = MonitorInterval { elapsed_ns: 1_000_000_000, ..MonitorInterval::default() };
            interval.activity.ops.read.ios = ios;
            capture.add(&interval);
        }
        let seen = capture.load().map(|load| (load.elapsed_ns / 1_000_000_000, load.activity.ops.read.ios));
        assert_eq!(seen, expected, "{reads:?}");
    }

    #[test]
    fn idle_ends_are_left_out_with_the_intervals_beside_them() {
        check(&[], None);
        check(&[0, 0], None);
        check(&[100, 100], Some((2, 200)));
        check(&[100, 100, 100, 100], Some((4, 400)));
        check(&[0, 30, 100, 100, 100, 40, 0, 0], Some((3, 300)));
        check(&[0, 30, 100, 100, 100], Some((3, 300)));
        check(&[100, 100, 100, 40, 0], Some((3, 300)));
        check(&[30, 100, 100, 0, 100, 100, 30], Some((7, 460)));
        // Too few whole ones.
        check(&[0, 30, 100, 40, 0], Some((3, 170)));
        check(&[0, 30, 0], Some((1, 30)));
    }
}
