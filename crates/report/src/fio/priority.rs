//! Latencies by the priority of the requests: fio's lines and its list `prios`.
//!
//! fio has them where requests had at least two priorities. They are total latencies if the percentiles of those are reported.

use std::io;

use fathom_model::plan::{IoPriority, MeasurePlan};
use fathom_record::{Latency, OpOutcome, PriorityLatency};

use crate::TextWriter;
use crate::fio::latency::{line, percentiles};

/// fio's name of the latencies that are recorded by priority.
pub(crate) fn kind(measure: &MeasurePlan) -> &'static str {
    if measure.lat && measure.lat_percentiles { "lat" } else { "clat" }
}

/// Priorities with requests, if there are at least two.
pub(crate) fn listed(counted: &OpOutcome) -> Vec<(IoPriority, &Latency)> {
    let with_requests = |one: &&PriorityLatency| one.latency.moments.count > 0;
    let listed: Vec<_> = counted
        .priorities
        .iter()
        .filter(with_requests)
        .map(|one| (IoPriority::from_value(one.priority), &one.latency))
        .collect();
    if listed.len() > 1 { listed } else { Vec::new() }
}

/// Writes a line of each priority.
pub(crate) fn lines(out: &mut TextWriter, counted: &OpOutcome, measure: &MeasurePlan) -> io::Result<()> {
    listed(counted).into_iter().try_for_each(|(priority, latency)| {
        line(out, &format!("    {}", name(measure, priority)), latency, 0)
    })
}

/// Writes the percentiles of each priority.
pub(crate) fn percentile_blocks(
    out: &mut TextWriter,
    counted: &OpOutcome,
    measure: &MeasurePlan,
) -> io::Result<()> {
    let [_, clat, lat] = measure.shown_percentiles();
    if !clat && !lat {
        return Ok(());
    }
    let listed = listed(counted);
    let all: u64 = listed.iter().map(|(_, latency)| latency.moments.count).sum();
    listed.into_iter().try_for_each(|(priority, latency)| {
        let share = latency.moments.count as f64 * 100.0 / all as f64;
        let title = format!("{} ({share:3.2}% of IOs)", name(measure, priority));
        percentiles(out, &title, latency, &measure.percentiles)
    })
}

fn name(measure: &MeasurePlan, priority: IoPriority) -> String {
    let IoPriority { class, level, hint } = priority;
    format!("{} prio {class}/{level}/{hint}", kind(measure))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(counts: &[(u16, u64)]) -> OpOutcome {
        let of = |&(priority, count)| PriorityLatency { priority, latency: Latency::repeated(count, 5_000) };
        OpOutcome { priorities: counts.iter().map(of).collect(), ..OpOutcome::default() }
    }

    fn text(counted: &OpOutcome, measure: &MeasurePlan) -> String {
        let mut bytes = Vec::new();
        let mut out = TextWriter::new(&mut bytes);
        lines(&mut out, counted, measure).unwrap();
        percentile_blocks(&mut out, counted, measure).unwrap();
        drop(out);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn two_priorities_have_lines_and_percentiles() {
        let measure = MeasurePlan { percentiles: vec![50.0], ..MeasurePlan::default() };
        let counted = outcome(&[(0, 3), (0x2003, 1), (0x4000, 0)]);
        let expected = "    clat prio 0/0/0 (nsec): min=5000, max=5000, avg=5000.00, stdev= 0.00\n    \
                        clat prio 1/3/0 (nsec): min=5000, max=5000, avg=5000.00, stdev= 0.00\n    \
                        clat prio 0/0/0 (75.00% of IOs) percentiles (nsec):\n     |  50th=[ 5024]\n    \
                        clat prio 1/3/0 (25.00% of IOs) percentiles (nsec):\n     |  50th=[ 5024]\n";
        assert_eq!(text(&counted, &measure), expected);
        let of_lat = MeasurePlan { lat_percentiles: true, ..measure.clone() };
        assert_eq!(text(&counted, &of_lat), expected.replace("clat", "lat"));
        let without = MeasurePlan { clat_percentiles: false, ..measure.clone() };
        assert_eq!(text(&counted, &without).lines().count(), 2);
        assert_eq!(text(&outcome(&[(0, 3), (0x2003, 0)]), &measure), "");
    }
}
