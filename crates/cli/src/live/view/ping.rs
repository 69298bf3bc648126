//! What a ping has beside the figures of any test: how its requests fared, and its schedule.

use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, duration, grouped, latency};
use fathom_report::live::{LiveLatency, LivePing};

use super::canvas::{Area, Canvas, Colour, Paint};

/// `Reads of 4.0 KiB`
pub fn title(ping: &LivePing, units: UnitSystem) -> String {
    let what = match ping.how.operation.as_str() {
        "read" => "Reads",
        "write" => "Writes",
        _ => "Reads and writes",
    };
    format!("{what} of {}", units.amount(ping.how.block_size_bytes))
}

/// Draws how the requests fared.
pub fn requests(canvas: &mut Canvas, area: Area, ping: &LivePing) {
    let counts = &ping.account.counts;
    let alarming = |is_alarming: bool| if is_alarming { Paint::of(Colour::Red) } else { Paint::PLAIN };
    let [made, answered, failed, timed_out] =
        [counts.requests, ping.account.load.answered, counts.errors, counts.timeouts].map(grouped);
    let fared = format!("{made} made: {answered} answered, {failed} failed, {timed_out} timed out");
    let (schedule, is_missed) = schedule(ping);
    let lines = [
        (fared, alarming(counts.errors + counts.timeouts > 0)),
        (schedule, if is_missed { Paint::of(Colour::Yellow) } else { Paint::PLAIN }),
    ];
    let rest = canvas.lines(area, lines);
    let served = counts.served;
    let places = [("device", served.device), ("cache", served.cache), ("holes", served.hole)];
    let remarks =
        [("stalls", counts.stall_count), ("refused (EAGAIN)", counts.again), ("short", counts.short)];
    let text = |parts: &[(&str, u64)]| {
        let parts = parts.iter().filter(|(_, count)| *count > 0);
        parts.map(|(name, count)| format!("{name} {}", grouped(*count))).collect::<Vec<_>>().join(", ")
    };
    let (places, remarks) = (text(&places), text(&remarks));
    let places = (!places.is_empty()).then(|| (format!("answered by: {places}"), Paint::PLAIN));
    let remarks = (!remarks.is_empty()).then_some((remarks, Paint::of(Colour::Yellow)));
    canvas.lines(rest, remarks.into_iter().chain(places));
}

/// The schedule, and whether requests of it are missing.
fn schedule(ping: &LivePing) -> (String, bool) {
    let Some(missed) = ping.missed_intervals() else {
        return ("no interval: each request follows the answer to the one before".to_owned(), false);
    };
    let interval = duration_or_latency(ping.how.interval_ns);
    let missed_text = grouped(missed);
    let text = if ping.how.fixed_schedule {
        format!("every {interval} on a fixed schedule, {missed_text} behind it")
    } else {
        format!("every {interval}, {missed_text} intervals missed")
    };
    (text, missed > 0)
}

fn duration_or_latency(ns: u64) -> String {
    if ns >= 1_000_000_000 { duration(Nanos(ns)) } else { latency(ns) }
}

/// Response times from the due times, where there is a fixed schedule: name, now and so far.
pub fn responses(ping: &LivePing) -> Vec<(&'static str, Option<u64>, Option<u64>)> {
    let Some((now, so_far)) = ping.response_now.zip(ping.response_so_far()) else { return Vec::new() };
    let values = |of: LiveLatency| [of.p50, of.p99, of.max];
    let both = values(now).into_iter().zip(values(so_far));
    ["p50", "p99", "max"].into_iter().zip(both).map(|(name, (now, so_far))| (name, now, so_far)).collect()
}
