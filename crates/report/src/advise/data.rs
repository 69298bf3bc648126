//! The values behind the report: a row for each candidate.

use fathom_analysis::advise::{Advice, AdvisedCandidate};
use fathom_predict::PredictionRange;
use fathom_record::OpSummary;

use crate::view::{Cell, Table, decimal};

/// A row for each candidate.
pub(super) fn table(advice: &Advice) -> Table {
    let percentile = |candidate: &AdvisedCandidate, figure: fn(&OpSummary) -> Option<u64>| {
        candidate.predicted.range(|one| figure(one.summary.total.as_ref()?).map(|ns| ns as f64))
    };
    let low = |range: Option<PredictionRange>| {
        Cell::from(range.map(|range| Cell::real(range.low, range.low.to_string())))
    };
    let high = |range: Option<PredictionRange>| {
        Cell::from(range.map(|range| Cell::real(range.high, range.high.to_string())))
    };
    Table::data(
        &[
            ("id", &|candidate: &&AdvisedCandidate| candidate.id.as_str().into()),
            ("target", &|candidate| candidate.target.as_str().into()),
            ("verdict", &|candidate| candidate.verdict.verdict.name().into()),
            ("why", &|candidate| candidate.verdict.why.as_str().into()),
            ("size_bytes", &|candidate| candidate.parameters.size_bytes.map(Cell::bytes).into()),
            ("iops_chosen", &|candidate| candidate.parameters.iops.map(Cell::count).into()),
            ("bytes_per_second_chosen", &|candidate| {
                candidate.parameters.bytes_per_second.map(Cell::count).into()
            }),
            ("instance", &|candidate| candidate.instance.as_deref().into()),
            ("iops", &|candidate| {
                high(candidate.predicted.range(|one| Some(one.summary.total.as_ref()?.iops)))
            }),
            ("lat_p50_low_ns", &|candidate| low(percentile(candidate, |op| op.lat_ns.p50))),
            ("lat_p50_high_ns", &|candidate| high(percentile(candidate, |op| op.lat_ns.p50))),
            ("lat_p99_low_ns", &|candidate| low(percentile(candidate, |op| op.lat_ns.p99))),
            ("lat_p99_high_ns", &|candidate| high(percentile(candidate, |op| op.lat_ns.p99))),
            ("lat_p999_low_ns", &|candidate| low(percentile(candidate, |op| op.lat_ns.p999))),
            ("lat_p999_high_ns", &|candidate| high(percentile(candidate, |op| op.lat_ns.p999))),
            ("throttled_share_high", &|candidate| {
                high(candidate.predicted.range(|one| Some(one.throttled_share)))
            }),
            ("exhausted_ns", &|candidate| {
                let first = candidate.predicted.all.iter().filter_map(|one| one.exhausted_ns).min();
                first.map(Cell::count).into()
            }),
            ("holds_up_to_growth", &|candidate| {
                let breaks = candidate.breaks.as_ref();
                breaks.map(|breaks| Cell::real(breaks.met_at, decimal(breaks.met_at))).into()
            }),
            ("monthly_cost", &|candidate| {
                candidate.price.as_ref().map(|bill| Cell::money(bill.total)).into()
            }),
            ("cost_unknown", &|candidate| {
                candidate.price.as_ref().map(|bill| bill.unknown.join("; ")).into()
            }),
            ("currency", &|candidate| {
                candidate.price.as_ref().map(|bill| bill.price.currency.as_str()).into()
            }),
            ("price_is_stale", &|candidate| {
                candidate.price.as_ref().map(|bill| bill.price.is_stale.to_string()).into()
            }),
        ],
        advice.candidates.iter(),
    )
}
