//! The values behind the report: a row for each candidate.

use fathom_analysis::advise::{Advice, AdvisedCandidate};
use serde_json::json;

use super::json::candidate;
use crate::document::object;
use crate::view::Table;

/// The members of a candidate's document that a row has.
const COLUMNS: &str = "\
    id,target,verdict,why,size_bytes=parameters.size_bytes,iops_chosen=parameters.iops,\
    bytes_per_second_chosen=parameters.bytes_per_second,instance,iops=predicted.range.iops.high,\
    lat_p50_low_ns=predicted.range.lat_ns.p50.low,lat_p50_high_ns=predicted.range.lat_ns.p50.high,\
    lat_p99_low_ns=predicted.range.lat_ns.p99.low,lat_p99_high_ns=predicted.range.lat_ns.p99.high,\
    lat_p999_low_ns=predicted.range.lat_ns.p999.low,\
    lat_p999_high_ns=predicted.range.lat_ns.p999.high,\
    throttled_share_high=predicted.range.throttled_share.high,exhausted_ns,\
    holds_up_to_growth=breaks.met_at,monthly_cost=price.total,cost_unknown=price.unknown,\
    currency=price.currency,price_is_stale";

/// A row for each candidate.
pub(super) fn table(advice: &Advice) -> Table {
    let document = |one: &AdvisedCandidate| {
        let rest = json!({
            "exhausted_ns": one.predicted.all.iter().filter_map(|one| one.exhausted_ns).min(),
            "price_is_stale": one.price.as_ref().map(|bill| bill.price.is_stale),
        });
        object([candidate(one), rest])
    };
    Table::of_documents(&[COLUMNS], advice.candidates.iter().map(document))
}
