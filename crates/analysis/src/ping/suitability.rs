//! Which uses the latency of single requests suits.

use fathom_record::LatencySummary;
use fathom_record::ping::Ping;

use crate::conclusions::{USES, Use};
use crate::verdict::SuitabilityVerdict;

/// Requests of which none takes longer than a limit, so that with 95 % confidence at most one in a hundred does: 0.99^299 is 0.05.
const FOR_P99: u64 = 299;

/// The uses by the latency of single requests alone, whose rates these do not test: those that only read or that write as
/// `ping` did. `None` where the latencies are not those of the device.
pub fn suitability(ping: &Ping) -> Option<SuitabilityVerdict> {
    let (how, counts) = (&ping.how, &ping.counts);
    let is_of_device = counts.served.cache + counts.served.hole + counts.errors + counts.timeouts == 0;
    let (reads, writes) = (how.operation == "read", how.operation == "write");
    if !is_of_device || reads == writes || ping.stuck_thread.is_some() {
        return None;
    }
    // A late request is late for whoever waits for it.
    let latency = ping.response_ns.as_ref().unwrap_or(&ping.lat_ns);
    let LatencySummary { samples, min, p50, p90, p99, max, .. } = latency.summary();
    // The 99th percentile lies between these.
    let (low, high) = (p99.or(p90).or(p50).or(min), p99.or(max.filter(|_| samples >= FOR_P99)));
    let asks = |one: &Use| match reads {
        true => one.read_percent > 0,
        false => one.read_percent < 100 && one.synced == how.flushed,
    };
    let mut uses = SuitabilityVerdict::default();
    for one in USES.iter().filter(|one| asks(one)) {
        let (Some(full), Some(small)) = (one.full.p99_ns, one.small.p99_ns) else { continue };
        let is_within = |most: u64| high.is_some_and(|high| high <= most);
        let exceeds = |most: u64| low.is_some_and(|low| low > most);
        let list = match () {
            () if is_within(full) => &mut uses.suitable,
            () if exceeds(small) => &mut uses.unsuitable,
            () if exceeds(full) && is_within(small) => &mut uses.marginal,
            () => &mut uses.inconclusive,
        };
        list.push(one.name);
    }
    (uses != SuitabilityVerdict::default()).then_some(uses)
}

#[cfg(test)]
mod tests {
    use fathom_record::Latency;
    use fathom_record::ping::PingHow;

    use super::*;

    #[test]
    fn the_latency_of_single_requests_is_that_of_uses_as_far_as_it_is_known() {
        let lists = |latency: Latency, operation: &str| {
            let how = PingHow { operation: operation.to_owned(), ..PingHow::default() };
            let ping = Ping { how, lat_ns: latency, ..Ping::default() };
            let uses = suitability(&ping)?;
            let of = |list: &[&str]| list.contains(&"oltp");
            Some([of(&uses.suitable), of(&uses.marginal), of(&uses.unsuitable), of(&uses.inconclusive)])
        };
        let ms = 1_000_000;
        let all_of = |count, ms_each: u64| lists(Latency::repeated(count, ms_each * ms), "read");
        assert_eq!(all_of(5000, 4), Some([true, false, false, false]));
        assert_eq!(all_of(5000, 10), Some([false, true, false, false]));
        assert_eq!(all_of(5000, 30), Some([false, false, true, false]));
        // Few requests show that it is slow, and not that it is fast.
        assert_eq!(all_of(10, 30), Some([false, false, true, false]));
        assert_eq!(all_of(298, 4), Some([false, false, false, true]));
        assert_eq!(all_of(299, 4), Some([true, false, false, false]));
        assert_eq!(lists(Latency::default(), "mixed"), None);
        let mut tail = Latency::repeated(4900, ms);
        tail.merge(&Latency::repeated(100, 50 * ms));
        assert_eq!(lists(tail, "read"), Some([false, false, true, false]));
        let is_of_logs = |flushed| {
            let how = PingHow { operation: "write".to_owned(), flushed, ..PingHow::default() };
            let ping = Ping { how, lat_ns: Latency::repeated(5000, ms), ..Ping::default() };
            suitability(&ping).unwrap().suitable.contains(&"etcd")
        };
        assert_eq!([true, false].map(is_of_logs), [true, false]);
        let mut cached = Ping { lat_ns: Latency::repeated(5000, ms), ..Ping::default() };
        cached.how.operation = "read".to_owned();
        cached.counts.served.cache = 1;
        assert_eq!(suitability(&cached), None);
    }
}
