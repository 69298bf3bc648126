//! The part of a profile that predictions need, at a fraction of its cost: operations, order and extent.

use fathom_model::Op;
use fathom_observed::{LoadCourse, ObservedLoad, ObservedRequest};

use super::access::OrderTally;
use super::operations::{OperationProfile, OperationTally};
use super::working_set::SpanTally;
use super::{load_profile, observed_ns};

/// What predictions need to know of a load. Each figure is that of [`super::LoadProfile`].
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOutline {
    /// From its beginning to its end, ns.
    pub length_ns: u64,
    /// The part of it with data, ns.
    pub observed_ns: u64,
    /// Length of most intervals, ns; `None` where every request is known.
    pub resolution_ns: Option<u64>,
    /// Each operation that occurs, then `total`.
    pub operations: Vec<OperationProfile>,
    /// Share of sequential reads and writes.
    pub sequential: Option<f64>,
    /// From the first to the last byte in use, of several files together.
    pub span_bytes: Option<u64>,
    /// Share of the time in which a limit of the volume or instance was reached.
    pub limit_reached_share: Option<f64>,
}

impl LoadOutline {
    /// That of a load in memory.
    pub fn of(load: &ObservedLoad) -> LoadOutline {
        if let LoadCourse::Requests(trace) = &load.course {
            let mut tally = OutlineTally::new(trace.has_times);
            tally.take_all(&trace.requests);
            return tally.outline(load);
        }
        let profile = load_profile(load);
        LoadOutline {
            length_ns: profile.length_ns,
            observed_ns: profile.observed_ns,
            resolution_ns: profile.resolution_ns,
            operations: profile.operations,
            sequential: profile.order.map(|order| order.sequential),
            span_bytes: profile.working_set.map(|set| set.span_bytes),
            limit_reached_share: profile.limit_reached_share,
        }
    }
}

/// What requests hold, one after the other.
#[derive(Debug)]
pub struct OutlineTally {
    has_times: bool,
    operations: OperationTally,
    order: OrderTally,
    span: SpanTally,
}

impl OutlineTally {
    /// Of requests that have times, or not.
    pub fn new(has_times: bool) -> OutlineTally {
        OutlineTally {
            has_times,
            operations: OperationTally::default(),
            order: OrderTally::default(),
            span: SpanTally::default(),
        }
    }

    #[inline]
    fn take(&mut self, request: &ObservedRequest) {
        self.operations.take(request);
        if matches!(request.op, Op::Read | Op::Write) {
            self.order.take(request);
            self.span.take(request);
        }
    }

    /// Looks at the next requests.
    pub fn take_all(&mut self, requests: &[ObservedRequest]) {
        requests.iter().for_each(|request| self.take(request));
    }

    /// The outline of the load that these requests were of.
    pub fn outline(self, load: &ObservedLoad) -> LoadOutline {
        let observed_ns = observed_ns(load);
        let has_rates = self.has_times && load.length_ns > 0;
        LoadOutline {
            length_ns: load.length_ns,
            observed_ns,
            resolution_ns: None,
            operations: self.operations.profiles(if has_rates { observed_ns } else { 0 }),
            sequential: self.order.order().map(|order| order.sequential),
            span_bytes: self.span.bytes(),
            limit_reached_share: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{load, minute, request, trace};
    use super::*;

    fn check(course: LoadCourse, length_ns: u64) {
        let load = load(course, length_ns, Vec::new());
        let (outline, profile) = (LoadOutline::of(&load), load_profile(&load));
        assert_eq!(outline.operations, profile.operations);
        assert_eq!(outline.sequential, profile.order.map(|order| order.sequential));
        assert_eq!(outline.span_bytes, profile.working_set.map(|set| set.span_bytes));
        let found = (outline.length_ns, outline.observed_ns, outline.resolution_ns);
        assert_eq!(found, (profile.length_ns, profile.observed_ns, profile.resolution_ns));
        assert_eq!(outline.limit_reached_share, profile.limit_reached_share);
    }

    #[test]
    fn an_outline_is_a_part_of_the_profile() {
        let op = |index: u64| [Op::Read, Op::Write, Op::Sync, Op::Trim][index as usize % 4];
        let requests: Vec<_> = (0..400)
            .map(|index| request(index, op(index), index * index % 977 * 512, 512, index % 7))
            .collect();
        let syncs = vec![request(0, Op::Sync, 0, 0, 3)];
        for requests in [requests.clone(), syncs, Vec::new()] {
            check(LoadCourse::Requests(trace(requests)), 400_000_000);
        }
        let mut without_times = trace(requests);
        without_times.has_times = false;
        check(LoadCourse::Requests(without_times), 0);
        check(LoadCourse::Intervals(vec![minute(0, 60), minute(1, 6)]), 120_000_000_000);
    }
}
