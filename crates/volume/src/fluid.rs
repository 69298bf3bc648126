//! The limits of a volume under sums of I/Os over stretches of time, where single requests are unknown: credits, throttling and
//! waiting times, folded in integers from stretch to stretch.
//!
//! Within a stretch the I/Os arrive evenly or all at its beginning. What the limits do not permit waits and is served first come,
//! first served. Between two changes (a bucket is empty, a queue is empty, a window ends) every rate is constant, so a stretch
//! takes a few steps whatever its length. The balance of a bucket is that of a spreadsheet: the balance before, plus the refill,
//! minus what was served, between empty and full.

mod bundle;
mod limits;

use std::collections::VecDeque;

use crate::model::{ModelError, VolumeModel};
use bundle::Bundle;
use limits::{CountedDirections, FluidLimit, FluidRule, part_of, scaled_part};

pub use bundle::{FluidServed, FluidStep, FluidSum};
pub use limits::{FluidReport, FluidUnit};

/// A bundle of I/Os is served in so many parts.
const WHOLE: u64 = 1 << 32;

/// The directions whose waiting times are computed. A direction with limits of its own does not wait for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FluidLane {
    /// Reads and writes in one queue.
    Both,
    /// Reads, with the limits that they share with writes.
    Reads,
    /// Writes, with the limits that they share with reads.
    Writes,
}

impl FluidLane {
    /// The lanes of a volume.
    pub fn of(model: &VolumeModel) -> &'static [FluidLane] {
        match model.reads.is_empty() && model.writes.is_empty() {
            true => &[FluidLane::Both],
            false => &[FluidLane::Reads, FluidLane::Writes],
        }
    }
}

/// The limits of a volume and what waits for them.
#[derive(Clone, Debug)]
pub struct FluidVolume {
    lane: FluidLane,
    limits: Vec<FluidLimit>,
    queue: VecDeque<Bundle>,
    now: u64,
    throttled_ns: u64,
    /// Reads and writes that wait.
    waiting: u64,
    /// Those of bundles between the first and the last in the queue: all of them have arrived, and none is served.
    between: u64,
    most_waiting: u64,
}

impl FluidVolume {
    /// The limits of a lane of `model` at time 0.
    ///
    /// # Errors
    /// The model is not valid.
    pub fn new(model: &VolumeModel, lane: FluidLane) -> Result<FluidVolume, ModelError> {
        model.validate()?;
        let mut limits = Vec::new();
        let own = |counted| match (lane, counted) {
            (FluidLane::Reads, CountedDirections::Writes) | (FluidLane::Writes, CountedDirections::Reads) => {
                false
            }
            (FluidLane::Both | FluidLane::Reads | FluidLane::Writes, _) => true,
        };
        for (counted, stages) in [
            (CountedDirections::Both, &model.shared),
            (CountedDirections::Reads, &model.reads),
            (CountedDirections::Writes, &model.writes),
        ] {
            for stage in stages.iter().filter(|_| own(counted)) {
                limits.extend(FluidLimit::of_stage(stage, counted));
            }
        }
        limits.extend(model.parallelism.map(|count| FluidLimit::of_servers(model, lane, count)));
        Ok(FluidVolume {
            lane,
            limits,
            queue: VecDeque::new(),
            now: 0,
            throttled_ns: 0,
            waiting: 0,
            between: 0,
            most_waiting: 0,
        })
    }

    /// The time up to which it has come, ns.
    pub fn now_ns(&self) -> u64 {
        self.now
    }

    /// Time for which requests waited, ns.
    pub fn throttled_ns(&self) -> u64 {
        self.throttled_ns
    }

    /// Requests that wait now.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// The most requests that waited at a time.
    pub fn most_waiting(&self) -> u64 {
        self.most_waiting
    }

    /// What each limit did.
    pub fn reports(&self) -> Vec<FluidReport> {
        let credits = |limit: &FluidLimit| match limit.rule {
            FluidRule::Credit { capacity, level, .. } => {
                let whole = |tokens: i128| (tokens / i128::from(limit.scale)).max(0) as u64;
                Some((whole(level), whole(capacity)))
            }
            _ => None,
        };
        self.limits
            .iter()
            .map(|limit| FluidReport { credits: credits(limit), ..limit.report.clone() })
            .collect()
    }

    /// The lowest level of all buckets now, millionths.
    pub fn credits_ppm(&self) -> Option<u32> {
        self.limits.iter().filter_map(FluidLimit::level_ppm).min()
    }

    /// Lets time pass in which nothing is known of the load: no limit changes.
    pub fn skip(&mut self, length_ns: u64) {
        let shift = |time: u64| time.saturating_add(length_ns);
        self.now = shift(self.now);
        for bundle in &mut self.queue {
            (bundle.from, bundle.to) = (shift(bundle.from), shift(bundle.to));
        }
        for limit in &mut self.limits {
            if let FluidRule::Window { began: Some(began), .. } = &mut limit.rule {
                *began = shift(*began);
            }
        }
    }

    /// Passes a stretch of time; `served` gets what is served.
    pub fn pass(&mut self, step: &FluidStep, served: &mut dyn FnMut(FluidServed)) {
        let end = self.now.saturating_add(step.length_ns);
        if self.queue.is_empty() && !step.is_at_once && self.pass_whole(step, end, served) {
            return;
        }
        let to = if step.is_at_once { self.now } else { end };
        let bundle = self.bundle(step, to);
        if bundle.costs.iter().any(|cost| *cost > 0) || bundle.reads + bundle.writes > 0 {
            if step.is_at_once {
                self.waiting += bundle.reads + bundle.writes;
                self.most_waiting = self.most_waiting.max(self.waiting);
            }
            self.push(bundle);
        }
        while self.now < end || self.is_instant() {
            if !self.turn(end, served) {
                break;
            }
        }
    }

    /// Adds `bundle` to the end of the queue.
    fn push(&mut self, bundle: Bundle) {
        if let Some(last) = self.queue.back().filter(|_| self.queue.len() >= 2) {
            self.between += last.reads + last.writes;
        }
        self.queue.push_back(bundle);
    }

    /// Serves what waits; at most `longest_ns` more.
    pub fn drain(&mut self, longest_ns: u64, served: &mut dyn FnMut(FluidServed)) {
        let end = self.now.saturating_add(longest_ns);
        while !self.queue.is_empty() && self.now < end && self.turn(end, served) {}
    }

    /// A stretch within all limits from its beginning to its end needs one step.
    fn pass_whole(&mut self, step: &FluidStep, end: u64, served: &mut dyn FnMut(FluidServed)) -> bool {
        let length = i128::from(step.length_ns);
        let fits = self.limits.iter().all(|limit| {
            let cost = limit.cost(step);
            match limit.rule {
                FluidRule::Rate { most, .. } => cost <= most * length,
                FluidRule::Credit { base, burst, level, .. } => {
                    cost - base * length <= level && burst.is_none_or(|burst| cost <= burst * length)
                }
                FluidRule::Window { base, began, burst_ns, rest_ns, .. } => {
                    let is_over = began.is_none_or(|began| {
                        self.now >= began.saturating_add(burst_ns).saturating_add(rest_ns)
                    });
                    is_over && cost <= base * length
                }
                FluidRule::Servers { count, .. } => cost <= count * length,
            }
        });
        if !fits {
            return false;
        }
        for limit in &mut self.limits {
            let cost = limit.cost(step);
            limit.settle(step.length_ns, cost, end);
        }
        let (reads, writes) = self.counted(step);
        if reads + writes > 0 {
            let (from_ns, to_ns) = (self.now, end);
            served(FluidServed { from_ns, to_ns, reads, writes, first_wait_ns: 0, last_wait_ns: 0 });
        }
        self.now = end;
        true
    }

    /// Whether something can be served that no limit delays.
    fn is_instant(&self) -> bool {
        self.queue.front().is_some_and(|bundle| {
            bundle.arrived(self.now) > bundle.served && self.time_for(bundle, WHOLE, false).0 == 0
        })
    }

    fn counted(&self, step: &FluidStep) -> (u64, u64) {
        match self.lane {
            FluidLane::Both => (step.reads.ops, step.writes.ops),
            FluidLane::Reads => (step.reads.ops, 0),
            FluidLane::Writes => (0, step.writes.ops),
        }
    }

    fn bundle(&self, step: &FluidStep, to: u64) -> Bundle {
        let (reads, writes) = self.counted(step);
        let costs = self.limits.iter().map(|limit| limit.cost(step)).collect();
        Bundle { from: self.now, to, reads, writes, costs, served: 0 }
    }

    /// The time that the limits take for a part of `bundle` at their present rates, and the slowest of them. `is_held` where it
    /// waits: a window begins its burst then.
    fn time_for(&self, bundle: &Bundle, part: u64, is_held: bool) -> (u64, Option<usize>) {
        let mut slowest = (0, None);
        for (index, (limit, &cost)) in self.limits.iter().zip(&bundle.costs).enumerate() {
            let Some(rate) = limit.rate(self.now, is_held) else { continue };
            let ns = if cost == 0 { 0 } else { limits::div_up(scaled_part(cost, part), rate) };
            if ns > slowest.0 {
                slowest = (ns, Some(index));
            }
        }
        slowest
    }

    /// One step at constant rates, not beyond `end`. False where nothing more can happen.
    fn turn(&mut self, end: u64, served: &mut dyn FnMut(FluidServed)) -> bool {
        let Some(bundle) = self.queue.front() else {
            self.idle(end);
            return false;
        };
        let arrived = bundle.arrived(self.now);
        let spread = bundle.to.saturating_sub(bundle.from);
        let is_waiting = arrived > bundle.served || bundle.to <= self.now;
        let (whole_ns, _) = self.time_for(bundle, WHOLE, true);
        // Evenly arriving I/Os pass as they come where the limits are as fast.
        let passes = !is_waiting && whole_ns <= spread;
        let rest = WHOLE - bundle.served;
        let (rest_ns, slowest) = self.time_for(bundle, rest, true);
        let (total_ns, caught_up) = match passes {
            true => (bundle.to - self.now, bundle.to - self.now),
            false => (rest_ns, self.catch_up_ns(bundle, arrived, whole_ns, rest_ns)),
        };
        let mut length = caught_up.min(end - self.now.min(end));
        let usage: Vec<i128> = bundle.costs.iter().map(|cost| scaled_part(*cost, rest)).collect();
        for (limit, &used) in self.limits.iter().zip(&usage) {
            length = length.min(limit.next_change(self.now, used, total_ns));
        }
        if !passes && slowest.is_some_and(|index| self.limits[index].begin_burst(self.now)) {
            return true;
        }
        let part = match total_ns {
            0 => self
                .limits
                .iter()
                .zip(&usage)
                .fold(rest, |part, (limit, &used)| part.min(limit.prepaid(rest, used))),
            total => ((u128::from(rest) * u128::from(length)).div_ceil(u128::from(total)) as u64).min(rest),
        };
        if length == 0 && part == 0 {
            length = 1.min(end - self.now.min(end));
        }
        self.serve(part, length, passes, slowest, served);
        length > 0 || part > 0
    }

    /// How long until what has arrived is served, ns.
    fn catch_up_ns(&self, bundle: &Bundle, arrived: u64, whole_ns: u64, rest_ns: u64) -> u64 {
        if bundle.to <= self.now || whole_ns == 0 {
            return rest_ns;
        }
        let spread = bundle.to - bundle.from;
        if whole_ns >= spread {
            return rest_ns;
        }
        // Served part per ns minus arriving part per ns.
        let waiting = u128::from(arrived.saturating_sub(bundle.served));
        let both = u128::from(whole_ns) * u128::from(spread);
        let ns = waiting.saturating_mul(both) / (u128::from(WHOLE) * u128::from(spread - whole_ns)).max(1);
        u64::try_from(ns).unwrap_or(u64::MAX).saturating_add(1).min(rest_ns.max(1))
    }

    fn serve(
        &mut self,
        part: u64,
        length: u64,
        passes: bool,
        slowest: Option<usize>,
        served: &mut dyn FnMut(FluidServed),
    ) {
        let Some(mut bundle) = self.queue.pop_front() else { return };
        let until = self.now + length;
        let end_part = match passes {
            true => bundle.arrived(until),
            false => (bundle.served + part).min(bundle.arrived(until)),
        };
        let is_at_baseline = slowest
            .and_then(|index| self.limits.get(index))
            .is_some_and(|limit| limit.is_at_baseline(self.now));
        for (limit, &cost) in self.limits.iter_mut().zip(&bundle.costs) {
            let used = scaled_part(cost, end_part) - scaled_part(cost, bundle.served);
            limit.settle(length, used, until);
        }
        let of = |amount: u64| part_of(amount, end_part) - part_of(amount, bundle.served);
        let (reads, writes) = (of(bundle.reads), of(bundle.writes));
        let (from_ns, to_ns) = (bundle.arrival(bundle.served), bundle.arrival(end_part));
        let wait = |at: u64, arrival: u64| if passes { 0 } else { at.saturating_sub(arrival) };
        if reads + writes > 0 {
            let (first_wait_ns, last_wait_ns) = (wait(self.now, from_ns), wait(until, to_ns));
            served(FluidServed { from_ns, to_ns, reads, writes, first_wait_ns, last_wait_ns });
        }
        if !passes {
            self.throttled_ns += length;
            if let Some(limit) = slowest.and_then(|index| self.limits.get_mut(index)) {
                limit.report.throttled_ns += length;
                if is_at_baseline {
                    limit.report.throttled_at_baseline_ns += length;
                }
            }
        }
        bundle.served = end_part;
        self.now = until;
        if bundle.served < WHOLE {
            self.queue.push_front(bundle);
        } else if let Some(first) = self.queue.front().filter(|_| self.queue.len() >= 2) {
            self.between -= first.reads + first.writes;
        }
        self.count_waiting();
    }

    fn count_waiting(&mut self) {
        let waits = |bundle: &Bundle| {
            let arrived = bundle.arrived(self.now).max(bundle.served);
            let of = |amount: u64| part_of(amount, arrived) - part_of(amount, bundle.served);
            of(bundle.reads) + of(bundle.writes)
        };
        let last = self.queue.back().filter(|_| self.queue.len() >= 2);
        self.waiting = self.between + self.queue.front().map_or(0, waits) + last.map_or(0, waits);
        self.most_waiting = self.most_waiting.max(self.waiting);
    }

    fn idle(&mut self, end: u64) {
        let length = end.saturating_sub(self.now);
        for limit in &mut self.limits {
            limit.settle(length, 0, end);
        }
        self.now = self.now.max(end);
    }
}

#[cfg(test)]
mod tests;
