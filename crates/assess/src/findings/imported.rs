//! What the figures of another program show: limits of the type that is named, and figures that contradict each other. Nothing
//! follows from what the program left out.

use fathom_analysis::compare::contradictions::{Contradiction, contradictions_of};
use fathom_analysis::plateau::settled_iops;
use fathom_model::Nanos;
use fathom_model::units::{duration, grouped};
use fathom_record::{Finding, FindingId, OwnRates, RunRecord, Severity, TestRecord};

/// A rate this near to a published one is held by it, and one beyond it by more than `BEYOND` is not of that volume.
const AT_LIMIT: f64 = 0.03;
const BEYOND: f64 = 1.10;

pub(super) fn findings(record: &RunRecord) -> Vec<Finding> {
    let mut found = limits(record);
    found.extend(contradictions_of(record).into_iter().map(contradiction));
    found
}

/// The tests of a run whose type is named, with their rates and those published.
fn rates(record: &RunRecord) -> impl Iterator<Item = (&TestRecord, f64, &OwnRates)> {
    record.tests.iter().filter_map(|test| {
        let own = test.published.as_ref()?.own.as_ref()?;
        Some((test, settled_iops(test)?, own))
    })
}

/// The highest rate that is published for a test.
fn highest(own: &OwnRates) -> Option<f64> {
    own.burst.as_ref().map(|burst| burst.iops).or(own.sustained_iops)
}

/// The limits that tests reach, and those that they exceed: a finding for each.
fn limits(record: &RunRecord) -> Vec<Finding> {
    let mut limits: Vec<f64> = rates(record).filter_map(|(_, _, own)| highest(own)).collect();
    limits.sort_by(f64::total_cmp);
    limits.dedup();
    let of_limit = |limit: f64| rates(record).filter(move |(.., own)| highest(own) == Some(limit));
    let mut found = Vec::new();
    for limit in limits {
        let at = |(_, iops, _): &(&TestRecord, f64, &OwnRates)| (iops / limit).ln().abs() <= AT_LIMIT;
        let beyond = |(_, iops, _): &(&TestRecord, f64, &OwnRates)| *iops > limit * BEYOND;
        found.extend(finding(of_limit(limit).filter(at).collect(), reached));
        found.extend(finding(of_limit(limit).filter(beyond).collect(), exceeded));
    }
    found
}

fn finding(
    tests: Vec<(&TestRecord, f64, &OwnRates)>,
    said: fn(&OwnRates, f64) -> (FindingId, Severity, String),
) -> Option<Finding> {
    let (_, _, own) = tests.first()?;
    let (id, severity, text) = said(own, highest(own)?);
    let rates: Vec<String> = tests.iter().map(|(_, iops, _)| grouped(iops.round() as u64)).collect();
    let rates = match rates.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => rates.concat(),
    };
    let claim = format!("{rates} IOPS: {text}");
    let tests = tests.iter().map(|(test, ..)| test.id.clone()).collect();
    Some(Finding { id, severity, claim, tests, ..Finding::default() })
}

fn reached(own: &OwnRates, limit: f64) -> (FindingId, Severity, String) {
    let OwnRates { volume, sustained_iops, burst, .. } = own;
    let iops = grouped(limit.round() as u64);
    let lasts = burst.as_ref().and_then(|burst| burst.lasts_ns).map(|ns| duration(Nanos(ns)));
    match (burst, lasts, sustained_iops) {
        (Some(_), Some(lasts), Some(then)) => {
            let then = grouped(then.round() as u64);
            let text =
                format!("the burst limit of {volume}, {iops} for {lasts} from full credits, then {then}.");
            (FindingId::BurstPossible, Severity::Info, text)
        }
        _ => (FindingId::IopsCap, Severity::Info, format!("the limit of {volume}, {iops}.")),
    }
}

fn exceeded(own: &OwnRates, limit: f64) -> (FindingId, Severity, String) {
    let text = format!(
        "more than {} allows ({}): a cache served I/Os, or the volume is of another type.",
        own.volume,
        grouped(limit.round() as u64)
    );
    (FindingId::RuleDiffers, Severity::Warning, text)
}

fn contradiction(found: Contradiction) -> Finding {
    let mut letters = found.claim.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let claim = format!("{}.", first.chain(letters).collect::<String>().trim_end_matches('.'));
    let tests = found.tests.last().cloned().into_iter().collect();
    Finding { id: FindingId::Contradiction, severity: Severity::Warning, claim, tests, ..Finding::default() }
}
