//! The courses of the hosts of a fleet: a strip for each.

use fathom_analysis::fleet::{HostResult, assess};
use fathom_record::{RunRecord, TestRecord};

use crate::axis_text::{time_axis, time_text};
use crate::view::{Cell, HeatMap, MapTick};

/// Strips at most; of more hosts those whose rates are farthest from the median are shown.
const MAX_STRIPS: usize = 64;

/// A strip for each host of a test with its rate over time; `None` where no host has a course.
pub(super) fn strips(record: &RunRecord, test: &TestRecord) -> Option<HeatMap> {
    let cell_ns = test.fleet.as_ref()?.cell_ns;
    let assessed = assess(record)?.tests.into_iter().find(|assessed| assessed.id == test.id)?;
    let hosts: Vec<&HostResult> =
        assessed.hosts.iter().filter(|host| !host.outcome.course.is_empty()).collect();
    let columns = hosts.iter().map(|host| host.outcome.course.len()).max().filter(|columns| *columns > 1)?;
    let median = assessed.variation.iops.map_or(1.0, |iops| iops.median.max(f64::MIN_POSITIVE));
    let distance = |host: &HostResult| (host.outcome.iops.max(f64::MIN_POSITIVE) / median).ln().abs();
    let mut order: Vec<usize> = (0..hosts.len()).collect();
    order.sort_by(|&one, &other| distance(hosts[other]).total_cmp(&distance(hosts[one])));
    order.truncate(MAX_STRIPS);
    order.sort_unstable();
    let per_second = 1e9 / cell_ns.max(1) as f64;
    let row = |place: usize| {
        let outcome = &hosts[place].outcome;
        let cell = |(column, ios): (usize, &u64)| {
            // Cells before its start and after its end have no rate.
            let (from, to) = (column as u64 * cell_ns, (column as u64 + 1) * cell_ns);
            let is_measured = to > outcome.start_ns && from < outcome.end_ns;
            is_measured.then(|| Cell::iops(*ios as f64 * per_second))
        };
        (hosts[place].host.clone(), outcome.course.iter().enumerate().map(cell).collect())
    };
    let length = cell_ns.max(1) as f64;
    let ticks = time_axis(0, columns as u64 * cell_ns).ticks;
    Some(HeatMap {
        title: String::new(),
        measure: "IOPS",
        across: "time",
        down: if hosts.len() > MAX_STRIPS { "hosts farthest from the median" } else { "host" },
        columns: (0..columns).map(|column| time_text((column as u64 * cell_ns) as f64)).collect(),
        rows: order.into_iter().map(row).collect(),
        column_ticks: ticks
            .into_iter()
            .map(|ns| MapTick { place: ns / length, text: time_text(ns) })
            .collect(),
        row_ticks: Vec::new(),
    })
}
