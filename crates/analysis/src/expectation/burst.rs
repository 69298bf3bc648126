//! Expectations of a burst rate hold while burst credits remain. A measurement cannot tell how many a volume had at the
//! start; where the user says that it was rested, its credits are counted from there.

use fathom_model::{Nanos, Op, units};
use fathom_record::{CreditRecord, JobRecord, PhaseOutcome, RunRecord, TestRecord};

use super::ExpectationResult;
use super::compare;
use super::conditions::ExpectationCase;
use super::interval::{self, MIN_SECONDS};
use crate::criterion::{CriterionVerdict, MetricKind};
use crate::say::count;

pub(super) fn judge(
    case: &ExpectationCase<'_>,
    credit: CreditRecord,
    result: ExpectationResult,
) -> ExpectationResult {
    let timed = interval::timed_rates(&case.row.test, case.quantity.kind, case.direction);
    let whole = result.measured.unwrap_or(0.0);
    let inconclusive = |reason: &str, remedy: Option<String>| ExpectationResult {
        verdict: CriterionVerdict::inconclusive(reason, remedy),
        ..result.clone()
    };
    let all = interval::of_timed_rates(&timed, whole).map(|interval| compare(case, interval, result.clone()));
    // A volume that bursts throughout has credits throughout.
    if let Some(met) = all.filter(|result| result.verdict.is_met()) {
        return met;
    }
    if !credit.is_rested {
        let rest = units::duration(Nanos((rest_s(credit) * 1e9) as u64));
        let remedy = format!("let the volume idle for {rest}, run again, and add &rested=1");
        let reason = "it applies while burst credits remain, and how many there were at the start is unknown";
        return inconclusive(reason, Some(remedy));
    }
    let Some(lasts) = lasts_s(case.record, &case.row.test, credit) else {
        let reason = "bursts of this type come in fixed windows: only the first test of a run starts rested";
        return inconclusive(reason, Some(format!("use --only {}", case.expectation.test)));
    };
    let ramp = case.row.jobs().iter().filter_map(|job| job.ramp.as_ref()).map(PhaseOutcome::elapsed_ns).max();
    let mut left = lasts - ramp.unwrap_or(0) as f64 / 1e9;
    let within = timed.iter().take_while(|(_, seconds)| {
        left -= seconds;
        left >= 0.0
    });
    let covered: Vec<(f64, f64)> = within.copied().collect();
    if covered.len() < MIN_SECONDS {
        let remedy = format!("use --only {} on a rested volume", case.expectation.test);
        return inconclusive("earlier load exhausted its burst credits", Some(remedy));
    }
    let mean = covered.iter().map(|(rate, _)| rate).sum::<f64>() / covered.len().max(1) as f64;
    match interval::of_timed_rates(&covered, mean) {
        Some(interval) => compare(case, interval, ExpectationResult { measured: Some(mean), ..result }),
        None => inconclusive("too little was measured while burst credits remained", None),
    }
}

/// `result`, which a rate may meet only as long as burst credits remain: by the published rule of its volume, or because it fell
/// afterwards. One that has to be held indefinitely is missed by it.
pub(super) fn while_credits_remain(
    case: &ExpectationCase<'_>,
    result: ExpectationResult,
) -> ExpectationResult {
    let ExpectationCase { row, expectation, quantity, comparison, .. } = *case;
    let is_concerned = case.is_rate() && comparison.wants_more() && expectation.conditions.credit.is_none();
    if !is_concerned || !result.verdict.is_met() {
        return result;
    }
    let duration = row.duration();
    let (Some(after_iops), Some(measured), Some(total)) =
        (duration.after_burst(), quantity.of(&row.summary), row.summary.total.as_ref())
    else {
        return result;
    };
    // What remains is as much less of every direction, and of its bytes.
    let remains = |iops: f64| measured * iops / total.iops.max(f64::MIN_POSITIVE);
    if comparison
        .holds(remains(after_iops), comparison.bound(expectation.value, expectation.tolerance_percent))
    {
        return result;
    }
    let figure = |iops: f64| match quantity.kind {
        MetricKind::Iops => format!("{} IOPS", count(remains(iops))),
        kind => kind.figure_beside(remains(iops), expectation.value),
    };
    let verdict = match expectation.conditions.sustained {
        true => CriterionVerdict::Missed,
        false => result.verdict,
    };
    ExpectationResult { verdict, lasting: Some(duration.text_with(figure)), ..result }
}

/// How long the credits take to refill.
fn rest_s(credit: CreditRecord) -> f64 {
    match credit.window_ns {
        Some((_, rest_ns)) => rest_ns as f64 / 1e9,
        None => credit.full / credit.base.max(f64::MIN_POSITIVE),
    }
}

/// How long the credits of a volume that was rested at the start of the run last in `test`, at the full rate; `None` where
/// that is unknown.
fn lasts_s(record: &RunRecord, test: &TestRecord, credit: CreditRecord) -> Option<f64> {
    let before: Vec<&TestRecord> = record
        .tests
        .iter()
        .take_while(|other| other.id != test.id)
        .filter(|test| !test.jobs.is_empty())
        .collect();
    if let Some((burst_ns, _)) = credit.window_ns {
        return before.is_empty().then_some(burst_ns as f64 / 1e9);
    }
    let laid_out = match record.header.conditions.target.kind.as_str() {
        "directory" => {
            tokens(credit, 1, record.header.size_bytes, record.header.size_bytes.div_ceil(1 << 18))
        }
        _ => 0.0,
    };
    let mut left = (credit.full - laid_out).max(0.0);
    for other in before {
        let earned = credit.base * other.elapsed_ns as f64 / 1e9;
        left = (left + earned - spent(other, credit)).clamp(0.0, credit.full);
    }
    let speed = credit.burst - credit.base;
    (speed > 0.0).then(|| left / speed)
}

/// Tokens that a test has used up at most; requests that the provider merges count one by one.
fn spent(test: &TestRecord, credit: CreditRecord) -> f64 {
    let of_job = |job: &JobRecord| {
        let sizes = job.largest_blocks();
        let of_op =
            |phase: &PhaseOutcome, op: Op| tokens(credit, sizes[op], phase.op(op).bytes, phase.op(op).ios);
        let of_phase = |phase: &PhaseOutcome| Op::DATA.map(|op| of_op(phase, op)).iter().sum::<f64>();
        job.ramp.iter().chain([&job.measured]).map(of_phase).sum::<f64>()
    };
    test.jobs.iter().map(of_job).sum()
}

fn tokens(credit: CreditRecord, size: u64, bytes: u64, ios: u64) -> f64 {
    match (credit.is_bytes, credit.unit_bytes) {
        (true, unit) => bytes.max(ios.saturating_mul(unit)) as f64,
        (false, 0) => ios as f64,
        (false, unit) => (ios as f64) * size.div_ceil(unit).max(1) as f64,
    }
}
