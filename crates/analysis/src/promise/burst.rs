//! Bursts are promised for as long as there is credit. How much a volume had when the run began cannot be seen from
//! within; where the user says that it had rested, its credit is counted from there on.

use fathom_model::{Nanos, units};
use fathom_record::{CreditRecord, JobRecord, PhaseRecord, RunRecord, TestRecord};

use super::Judged;
use super::conditions::PromiseCase;
use super::interval::{self, LEAST_SECONDS};
use super::judge::against;
use crate::criterion::CriterionVerdict;

pub(super) fn judge(case: &PromiseCase<'_>, credit: CreditRecord, judged: Judged) -> Judged {
    let timed = interval::timed_rates(&case.row.test, case.quantity.kind, case.direction);
    let rates: Vec<f64> = timed.iter().map(|(rate, _)| *rate).collect();
    let whole = judged.measured.unwrap_or(0.0);
    let refused = |why: String, remedy: Option<String>| Judged { why: Some(why), remedy, ..judged.clone() };
    let all = interval::of_rates(&rates, whole).map(|interval| against(case, interval, judged.clone()));
    // Who bursts throughout had credit throughout.
    if let Some(held) = all.filter(|judged| judged.verdict == CriterionVerdict::Met) {
        return held;
    }
    if !credit.is_rested {
        let why = "it holds while there is credit, and whether there was any when the run began is not known";
        let rest = units::duration(Nanos((rest_s(credit) * 1e9) as u64));
        let remedy = format!("let it rest for {rest}, run again, and add &rested=1");
        return refused(why.to_owned(), Some(remedy));
    }
    let Some(lasts) = lasts_s(case.record, &case.row.test, credit) else {
        let why = "bursts of this type come by turns, and only the first test of a run finds a rested volume";
        return refused(why.to_owned(), Some(format!("--only {}", case.promise.test)));
    };
    let ramp = case.row.jobs().iter().filter_map(|job| job.ramp.as_ref()).map(PhaseRecord::elapsed_ns).max();
    let mut left = lasts - ramp.unwrap_or(0) as f64 / 1e9;
    let within = timed.iter().take_while(|(_, seconds)| {
        left -= seconds;
        left >= 0.0
    });
    let covered: Vec<f64> = within.map(|(rate, _)| *rate).collect();
    if covered.len() < LEAST_SECONDS {
        let why = "its credit was spent before, as it may be".to_owned();
        return refused(why, Some(format!("--only {} after a rest", case.promise.test)));
    }
    let mean = covered.iter().sum::<f64>() / covered.len().max(1) as f64;
    match interval::of_rates(&covered, mean) {
        Some(interval) => against(case, interval, Judged { measured: Some(mean), ..judged }),
        None => refused("too little ran while there was credit".to_owned(), None),
    }
}

/// How long the credit takes to come back.
fn rest_s(credit: CreditRecord) -> f64 {
    match credit.window_ns {
        Some((_, rest_ns)) => rest_ns as f64 / 1e9,
        None => credit.full / credit.base.max(f64::MIN_POSITIVE),
    }
}

/// How long the credit of a volume that had rested when the run began lasts in `test`, at the full rate. `None` where that
/// cannot be told.
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
    let phases = |job: &JobRecord| job.ramp.iter().chain([&job.measured]).cloned().collect::<Vec<_>>();
    let of_job = |job: &JobRecord| {
        let sizes = job.block_sizes;
        let of_phase = |phase: PhaseRecord| {
            [(phase.read, sizes.read), (phase.write, sizes.write), (phase.trim, sizes.trim)]
                .iter()
                .map(|(op, size)| tokens(credit, *size, op.bytes, op.ios))
                .sum::<f64>()
        };
        phases(job).into_iter().map(of_phase).sum::<f64>()
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
