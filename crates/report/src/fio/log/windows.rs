//! The windows of a worker's logs: means of latencies, and rates.

use fathom_model::plan::LogPlan;
use fathom_model::{Nanos, Op};

use super::Line;

/// A window of latencies that has ended.
pub(super) struct LatencyMean {
    at_ms: u64,
    /// Mean and greatest.
    values: [u64; 2],
}

impl LatencyMean {
    pub fn line(self, op: Op) -> Line {
        Line::of_window(self.at_ms, self.values, op)
    }
}

#[derive(Default)]
pub(super) struct LatencyWindow {
    since_ms: u64,
    count: u64,
    sum: u128,
    greatest: u64,
}

impl LatencyWindow {
    pub fn add(&mut self, at_ms: u64, value: u64, length_ms: u64) -> Option<LatencyMean> {
        self.count += 1;
        self.sum += u128::from(value);
        self.greatest = self.greatest.max(value);
        if at_ms < self.since_ms + length_ms {
            return None;
        }
        let done = self.end(at_ms);
        self.since_ms = at_ms - at_ms % length_ms;
        done
    }

    pub fn end(&mut self, at_ms: u64) -> Option<LatencyMean> {
        let LatencyWindow { count, sum, greatest, since_ms } = std::mem::take(self);
        self.since_ms = since_ms;
        (count > 0).then(|| LatencyMean { at_ms, values: [rounded(sum, count.into()), greatest] })
    }
}

/// `sum / count`, rounded to the nearest whole number.
fn rounded(sum: u128, count: u128) -> u64 {
    ((sum + count / 2) / count) as u64
}

/// How rates are formed.
#[derive(Clone, Copy)]
pub(super) struct RateForm {
    length_ms: u64,
    /// Shorter windows, of which the greatest rate is that of one.
    part_ms: u64,
    /// What a rate is counted in.
    unit: u64,
}

impl RateForm {
    pub fn new(plan: &LogPlan, part: Nanos, unit: u64) -> RateForm {
        let length_ms = plan.window.as_millis();
        RateForm { length_ms, part_ms: part.as_millis().clamp(1, length_ms.max(1)), unit }
    }
}

/// Bytes or requests of a window.
#[derive(Clone, Copy)]
struct Amount {
    end_ms: u64,
    length_ns: u64,
    sum: u64,
    greatest_part: u64,
}

/// What an operation has moved in the current window.
#[derive(Default)]
struct RateWindow {
    /// The window before, whose line waits for what may be left over at the end.
    before: Option<Amount>,
    sum: u64,
    part_sum: u64,
    greatest_part: u64,
}

impl RateWindow {
    fn end_part(&mut self) {
        self.greatest_part = self.greatest_part.max(std::mem::take(&mut self.part_sum));
    }

    /// The window that ends now, if anything was moved.
    fn take(&mut self, end_ms: u64, length_ns: u64) -> Option<Amount> {
        self.end_part();
        let (sum, greatest_part) = (std::mem::take(&mut self.sum), std::mem::take(&mut self.greatest_part));
        (sum > 0).then_some(Amount { end_ms, length_ns, sum, greatest_part })
    }
}

/// The windows of all operations, which end together.
pub(super) struct RateWindows {
    form: RateForm,
    index: u64,
    part_index: u64,
    ops: [RateWindow; 3],
}

impl RateWindows {
    pub fn new(form: RateForm) -> RateWindows {
        RateWindows { form, index: 0, part_index: 0, ops: Default::default() }
    }

    /// Adds what a request has moved; returns the lines that are complete, by time.
    pub fn add(&mut self, at_ms: u64, op: Op, amount: u64) -> Vec<Line> {
        let (index, part_index) = (at_ms / self.form.length_ms, at_ms / self.form.part_ms);
        if part_index != self.part_index {
            self.ops.iter_mut().for_each(RateWindow::end_part);
            self.part_index = part_index;
        }
        let lines = if index == self.index { Vec::new() } else { self.advance(index) };
        let window = &mut self.ops[op as usize];
        window.sum += amount;
        window.part_sum += amount;
        lines
    }

    /// Ends the current window and begins that of `index`.
    fn advance(&mut self, index: u64) -> Vec<Line> {
        let form = self.form;
        let end_ms = (self.index + 1) * form.length_ms;
        let mut lines = Vec::new();
        for (op, window) in Op::DATA.into_iter().zip(&mut self.ops) {
            let ended = window.take(end_ms, form.length_ms * 1_000_000);
            let is_before = index == self.index + 1;
            let complete = std::mem::replace(&mut window.before, ended.filter(|_| is_before));
            let complete = complete.into_iter().chain(ended.filter(|_| !is_before));
            lines.extend(complete.map(|amount| amount.line(&form, op)));
        }
        self.index = index;
        lines.sort_by_key(|line| line.at_ms);
        lines
    }

    /// The lines that are left when the worker ends after `elapsed_ns`.
    pub fn end(&mut self, elapsed_ns: u64) -> Vec<Line> {
        let form = self.form;
        if form.length_ms == 0 {
            return Vec::new();
        }
        let begin_ns = self.index * form.length_ms * 1_000_000;
        // The last requests of a worker may be followed by a time without any.
        let length_ns = elapsed_ns.saturating_sub(begin_ns).clamp(1, form.length_ms * 1_000_000);
        let is_short = 2 * length_ns < form.length_ms * 1_000_000;
        let mut lines = Vec::new();
        for (op, window) in Op::DATA.into_iter().zip(&mut self.ops) {
            let left = window.take((begin_ns + length_ns) / 1_000_000, length_ns);
            let amounts = match (window.before.take(), left) {
                (Some(before), Some(left)) if is_short => [Some(before.and(left)), None],
                amounts => amounts.into(),
            };
            lines.extend(amounts.into_iter().flatten().map(|amount| amount.line(&form, op)));
        }
        lines.sort_by_key(|line| line.at_ms);
        lines
    }
}

impl Amount {
    /// This amount and the one that follows.
    fn and(self, next: Amount) -> Amount {
        Amount {
            end_ms: next.end_ms,
            length_ns: self.length_ns + next.length_ns,
            sum: self.sum + next.sum,
            greatest_part: self.greatest_part.max(next.greatest_part),
        }
    }

    fn line(&self, form: &RateForm, op: Op) -> Line {
        let rate = |sum: u64, ns: u64| {
            rounded(u128::from(sum) * 1_000_000_000, u128::from(ns) * u128::from(form.unit))
        };
        let mean = rate(self.sum, self.length_ns);
        let greatest = rate(self.greatest_part, form.part_ms * 1_000_000).max(mean);
        Line::of_window(self.end_ms, [mean, greatest], op)
    }
}
