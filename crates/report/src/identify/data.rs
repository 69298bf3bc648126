//! The values of an identified volume: a row for each figure, candidate, and rate that a workload gets.

use fathom_analysis::estimate::Estimate;
use fathom_analysis::identified::candidate::Candidate;
use fathom_analysis::identified::prediction::{RatePhase, WorkloadPrediction};
use fathom_analysis::identified::{BucketUnit, Burst, Figure, IoScope};

use super::IdentifyReport;
use crate::view::{Cell, Column, Row, Table};

const COLUMNS: [&str; 9] =
    ["figure", "name", "rw", "block_size_bytes", "unit", "value", "low", "high", "unknown_because"];

pub(super) fn data(report: &IdentifyReport<'_>) -> Table {
    let found = report.found;
    let mut rows = Vec::new();
    for (name, each, unit) in [
        ("iops", &found.iops, "iops"),
        ("bandwidth", &found.bytes_per_second, "bytes_per_second"),
        ("latency", &found.lat_ns, "ns"),
    ] {
        rows.extend(each.named().map(|(rw, figure)| figure_row(name, rw, unit, figure)));
    }
    rows.push(figure_row("crossover_block_size", "", "bytes", &found.crossover_block_size_bytes));
    rows.push(figure_row("io_unit", "", "bytes", &found.io_unit_bytes));
    rows.push(figure_row("parallelism", "", "ios", &found.parallelism));
    rows.extend(found.bursts.iter().flat_map(burst_rows));
    if let Some(cost) = &found.first_touch {
        rows.push(figure_row("first_access", "", "ns", &cost.first_ns));
        rows.push(figure_row("second_access", "", "ns", &cost.again_ns));
        rows.push(figure_row("first_access_rate_fraction", "", "fraction", &cost.rate_fraction));
    }
    rows.extend(report.candidates.iter().flat_map(candidate_rows));
    rows.extend(report.predictions.iter().flat_map(prediction_rows));
    Table::new(COLUMNS.map(Column::left), rows)
}

fn row(figure: &str, of: [Cell; 3], unit: &str, values: [Cell; 3]) -> Row {
    Row::new([figure.into()].into_iter().chain(of).chain([unit.into()]).chain(values))
}

fn number(value: Option<f64>) -> Cell {
    value.filter(|value| value.is_finite()).map(|value| Cell::real(value, value.to_string())).into()
}

fn figure_row(name: &str, rw: &str, unit: &str, figure: &Figure) -> Row {
    let (value, low, high) = match figure.estimate {
        Some(Estimate::Known { value, low, high }) => (Some(value), Some(low), Some(high)),
        Some(Estimate::AtLeast(low)) => (None, Some(low), None),
        Some(Estimate::AtMost(high)) => (None, None, Some(high)),
        None => (None, None, None),
    };
    let mut row = row(name, ["".into(), rw.into(), "".into()], unit, [value, low, high].map(number));
    row.cells.push(figure.why.clone().into());
    row
}

fn burst_rows(burst: &Burst) -> [Row; 6] {
    let (amount, rate) = match burst.unit {
        BucketUnit::Ios => ("ios", "iops"),
        BucketUnit::Bytes => ("bytes", "bytes_per_second"),
    };
    let rw = match burst.scope {
        IoScope::Both => "both",
        IoScope::Reads => "read",
        IoScope::Writes => "write",
    };
    [
        figure_row("burst_rate", rw, rate, &burst.burst_rate),
        figure_row("baseline_rate", rw, rate, &burst.baseline_rate),
        figure_row("burst_capacity", rw, amount, &burst.capacity),
        figure_row("refill_rate", rw, rate, &burst.refill_rate),
        figure_row("time_to_empty", rw, "s", &burst.seconds_to_empty),
        figure_row("time_to_refill", rw, "s", &burst.seconds_to_refill),
    ]
}

/// How far a type is from the volume, and what would have to be chosen of it.
fn candidate_rows(candidate: &Candidate) -> Vec<Row> {
    let of_type = |figure: &str, unit: &str, values: [Option<f64>; 3]| {
        row(figure, [candidate.id.as_str().into(), "".into(), "".into()], unit, values.map(number))
    };
    let whole = |value: u64| Some(value as f64);
    let size = candidate.size.map(|size| {
        of_type("candidate_size", "bytes", [size.bytes, size.low_bytes, size.high_bytes].map(whole))
    });
    let iops =
        candidate.provisioned_iops.map(|iops| of_type("candidate_iops", "iops", [whole(iops), None, None]));
    let bandwidth = candidate
        .provisioned_bytes_per_second
        .map(|bytes| of_type("candidate_bandwidth", "bytes_per_second", [whole(bytes), None, None]));
    let distance = of_type("candidate_distance", "", [Some(candidate.distance), None, None]);
    [Some(distance), size, iops, bandwidth].into_iter().flatten().collect()
}

/// Each rate on the way, and how long it lasts where it ends.
fn prediction_rows(prediction: &WorkloadPrediction) -> Vec<Row> {
    let of = || {
        let block = Cell::integer(prediction.block_size_bytes, prediction.block_size_bytes.to_string());
        [prediction.title.as_str().into(), prediction.rw.name().into(), block]
    };
    let empty = Cell::default;
    let of_phase = |phase: &RatePhase| {
        let rate = row("predicted_rate", of(), "iops", [number(Some(phase.iops)), empty(), empty()]);
        let lasts = phase.seconds.map(|lasts| {
            let values = [Some(lasts.value), lasts.low, Some(lasts.high)].map(number);
            row("predicted_duration", of(), "s", values)
        });
        [Some(rate), lasts]
    };
    let refill = prediction
        .seconds_to_refill
        .map(|seconds| row("predicted_refill", of(), "s", [number(Some(seconds)), empty(), empty()]));
    prediction.phases.iter().flat_map(of_phase).flatten().chain(refill).collect()
}
