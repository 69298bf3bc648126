//! The client machine: each request costs CPU time, which steal time and CPU credits limit.

use crate::bucket::div_ceil;
use crate::limit::{Limit, LimitState, Limiter};
use crate::rate::TokenRate;

/// A client with limited CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// CPUs that work on requests.
    pub cpus: u32,
    /// CPU time per request, ns.
    pub request_ns: u32,
    /// CPU time per KiB of a request, ns.
    pub kib_ns: u32,
    /// Steal time: thousandths of each CPU that the hypervisor gives to other guests.
    pub steal_per_mille: u32,
    /// CPU credits of a burstable machine.
    pub credit: Option<CpuCredit>,
}

/// CPU credits: unused baseline accrues as credit, which lets the CPUs run at full rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuCredit {
    /// The baseline: thousandths of all CPUs that are always available.
    pub baseline_per_mille: u32,
    /// Capacity, ns of CPU time.
    pub capacity_ns: u64,
    /// Initial credit, ns of CPU time.
    pub initial_ns: u64,
}

impl Client {
    /// The resulting limit on CPU time, or the invalid field and the reason.
    pub(crate) fn limit(&self) -> Result<Limit, (&'static str, String)> {
        let cpus = match self.cpus {
            1..=4096 => u64::from(self.cpus),
            cpus => return Err(("cpus", format!("{cpus} is not between 1 and 4096"))),
        };
        if self.steal_per_mille >= 1000 {
            return Err(("steal_per_mille", format!("{} leaves no CPU time", self.steal_per_mille)));
        }
        let full = TokenRate::ratio(cpus * u64::from(1000 - self.steal_per_mille), 1000);
        let Some(full) = full else { return Err(("cpus", "gives no rate".to_owned())) };
        let Some(credit) = self.credit else { return Ok(Limit::Rate(full)) };
        let base = TokenRate::ratio(cpus * u64::from(credit.baseline_per_mille), 1000);
        let Some(base) = base else { return Err(("credit.baseline_per_mille", "is 0".to_owned())) };
        let (capacity, initial) = (credit.capacity_ns, credit.initial_ns);
        // The hypervisor may take so much that less than the baseline is left; then credit has no effect.
        let limit = Limit::Credit { base: base.min(full), burst: Some(full), capacity, initial };
        match limit.invalid_field() {
            Some(("capacity", reason)) => Err(("credit.capacity_ns", reason)),
            Some(("initial", reason)) => Err(("credit.initial_ns", reason)),
            Some((_, reason)) => Err(("credit.baseline_per_mille", reason)),
            None => Ok(limit),
        }
    }
}

/// The state of a client.
#[derive(Clone, Debug)]
pub(crate) struct Issuer {
    client: Client,
    limit: Limit,
    limiter: Limiter,
    last: u64,
}

impl Issuer {
    /// `limit` is [`Client::limit`]'s.
    pub(crate) fn new(client: Client, limit: Limit) -> Self {
        Issuer { client, limit, limiter: Limiter::new(limit, 0), last: 0 }
    }

    /// When a request that is made at `now` leaves the machine.
    pub(crate) fn issue(&mut self, now: u64, bytes: u32) -> u64 {
        let kib = u64::from(bytes).div_ceil(1024);
        let cost = u64::from(self.client.request_ns) + u64::from(self.client.kib_ns) * kib;
        let begin = self.limiter.earliest(now.max(self.last), cost);
        self.limiter.take(begin, cost);
        self.last = begin;
        // One CPU executes all of a request, at its rate after steal.
        let left = u64::from(1000 - self.client.steal_per_mille);
        begin.saturating_add(div_ceil(u128::from(cost) * 1000, left))
    }

    /// The state of its CPU credits.
    pub(crate) fn state(&self, at: u64) -> LimitState {
        self.limiter.state(&self.limit, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Client =
        Client { cpus: 1, request_ns: 10_000, kib_ns: 0, steal_per_mille: 0, credit: None };
    const SECOND: u64 = 1_000_000_000;

    /// Checks the requests issued in each of the first seconds, with one always waiting.
    fn check(client: Client, expected: &[u64]) {
        let mut issuer = Issuer::new(client, client.limit().unwrap());
        let mut counts = vec![0; expected.len()];
        loop {
            // A request counts in the second in which it leaves; one on a boundary counts in the second that ends
            // there.
            let second = (issuer.issue(0, 4096) - 1) / SECOND;
            let Some(count) = counts.get_mut(second as usize) else { break };
            *count += 1;
        }
        assert_eq!(counts, expected, "{client:?}");
    }

    #[test]
    fn cpu_time_limits_the_request_rate() {
        check(CLIENT, &[100_000, 100_000]);
        check(Client { kib_ns: 2500, ..CLIENT }, &[50_000, 50_000]);
        check(Client { steal_per_mille: 200, ..CLIENT }, &[80_000, 80_000]);
        // A fifth of a CPU and 1.6 s of credit: a full CPU for two seconds. Only the last request waits, because its
        // full cost must be available when it begins.
        let credit =
            CpuCredit { baseline_per_mille: 200, capacity_ns: 1_600_000_000, initial_ns: 1_600_000_000 };
        check(Client { credit: Some(credit), ..CLIENT }, &[100_000, 99_999, 20_000, 20_000]);
    }

    #[test]
    fn invalid_clients_are_refused_by_field() {
        let credit = CpuCredit { baseline_per_mille: 200, capacity_ns: 10, initial_ns: 10 };
        let with = |credit| Client { credit: Some(credit), ..CLIENT };
        for (client, expected) in [
            (CLIENT, None),
            (with(credit), None),
            (Client { cpus: 0, ..CLIENT }, Some("cpus")),
            (Client { steal_per_mille: 1000, ..CLIENT }, Some("steal_per_mille")),
            (with(CpuCredit { baseline_per_mille: 0, ..credit }), Some("credit.baseline_per_mille")),
            (with(CpuCredit { capacity_ns: 0, ..credit }), Some("credit.capacity_ns")),
            (with(CpuCredit { initial_ns: 11, ..credit }), Some("credit.initial_ns")),
            // Steal leaves less than the baseline.
            (Client { steal_per_mille: 900, ..with(credit) }, None),
        ] {
            assert_eq!(client.limit().err().map(|(field, _)| field), expected, "{client:?}");
        }
    }
}
