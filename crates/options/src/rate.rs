//! The combined meaning of `rate`, `rate_iops` and `rate_process`.

use fathom_model::plan::{IoPlan, Mix};
use fathom_model::{Nanos, Op, PerOp, Rate, RatePlan, RunPlan};

use crate::error::OptionError;
use crate::resolve::refused;
use crate::section::Section;

/// Longest time by which fio's front lets a sleep exceed a due time: shorter than the delay of a timer by default.
const COALESCING: Nanos = Nanos::from_micros(20);

/// The plan of fio's front, in which one wake-up of a job serves several requests of a dense rate.
pub(crate) fn coalesced(mut plan: RunPlan) -> RunPlan {
    for job in &mut plan.jobs {
        job.time.rate = job.time.rate.coalesced(COALESCING);
    }
    plan
}

/// The rates of a job with the I/O `io`.
///
/// # Errors
/// Both kinds of rate are given, a rate is below the least one, or the job's operations alternate and so have no
/// separate rates.
pub(crate) fn plan(section: &Section, io: &IoPlan) -> Result<RatePlan, OptionError> {
    let options = &section.options;
    let is_given = |rates: &PerOp<Option<u64>>| rates.iter().any(|(_, rate)| rate.unwrap_or(0) > 0);
    let (bytes, requests) = (is_given(&options.rate), is_given(&options.rate_iops));
    let least = &options.plan.end.least_rates;
    let is_any = |rates: &PerOp<u64>| rates.iter().any(|(_, rate)| *rate > 0);
    if bytes && requests || is_any(&least.bandwidth) && is_any(&least.iops) {
        return Err(refused(
            section,
            "has both: rate and rate_iops are mutually exclusive",
            "keep one of them",
        ));
    }
    let exceeds = |op: Op| {
        let is_above = |least: u64, rate: Option<u64>| rate.is_some_and(|rate| rate > 0 && least > rate);
        is_above(least.bandwidth[op], options.rate[op]) || is_above(least.iops[op], options.rate_iops[op])
    };
    if let Some(op) = Op::DATA.into_iter().find(|&op| exceeds(op)) {
        return Err(refused(
            section,
            format!("can never keep its least rate of {op}s: minimum rate exceeds rate"),
            "lower rate_min or rate_iops_min, or raise the rate",
        ));
    }
    if (bytes || requests) && io.pattern.mix == Mix::TrimWrite {
        return Err(refused(
            section,
            format!("has a rate with rw={}, in which trims and writes alternate", io.pattern.name()),
            "omit the rate, or use one job of trims and one of writes",
        ));
    }
    let rate = |op: Op| {
        let of_bytes = Rate::bytes_per_second(options.rate[op].unwrap_or(0), &io.block_size[op]);
        of_bytes.or_else(|| Rate::iops(options.rate_iops[op].unwrap_or(0))).filter(|_| is_used(io, op))
    };
    Ok(RatePlan {
        rates: PerOp { read: rate(Op::Read), write: rate(Op::Write), trim: rate(Op::Trim) },
        process: options.rate_process.unwrap_or_default(),
        ..RatePlan::default()
    })
}

/// Whether the job issues requests of `op`.
fn is_used(io: &IoPlan, op: Op) -> bool {
    let reads = !matches!(io.pattern.mix, Mix::ReadWrite { read_percent: 0 });
    let writes = !matches!(io.pattern.mix, Mix::ReadWrite { read_percent: 100 });
    match op {
        Op::Read => io.pattern.reads() && reads,
        Op::Write => io.pattern.writes() && writes,
        Op::Trim => io.pattern.trims(),
        Op::Sync | Op::Datasync => false,
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::RateProcess;

    use super::*;
    use crate::resolve::{PlanningHost, resolve};

    fn planned(pairs: &[(&str, &str)]) -> Result<RatePlan, String> {
        let section = Section::from_pairs("job", pairs, &[]).unwrap();
        let plan = resolve(&[section], &PlanningHost { cpus: 1, entropy: 1 });
        plan.map(|plan| plan.jobs[0].time.rate).map_err(|error| error.to_string())
    }

    #[test]
    fn rates_apply_to_the_operations_of_a_job() {
        let iops = |read, write, trim| PerOp { read, write, trim }.map(Rate::iops);
        for (pairs, expected) in [
            (vec![], iops(0, 0, 0)),
            (vec![("rate_iops", "0")], iops(0, 0, 0)),
            (vec![("rate_iops", "200")], iops(200, 0, 0)),
            (vec![("rate_iops", "200"), ("rw", "randrw")], iops(200, 200, 0)),
            (vec![("rate_iops", "200,100"), ("rw", "rw")], iops(200, 100, 0)),
            (vec![("rate_iops", ",100"), ("rw", "rw")], iops(0, 100, 0)),
            (vec![("rate_iops", ",100")], iops(0, 0, 0)),
            (vec![("rate_iops", "100"), ("rw", "rw"), ("rwmixread", "100")], iops(100, 0, 0)),
            (vec![("rate_iops", "7"), ("rw", "randtrim")], iops(0, 0, 7)),
        ] {
            let expected = RatePlan { rates: expected, ..RatePlan::default() };
            assert_eq!(planned(&pairs), Ok(expected), "{pairs:?}");
        }
        let by_bytes = planned(&[("rate", "1m"), ("bs", "8k"), ("rate_process", "poisson")]).unwrap();
        assert_eq!(by_bytes.rates.read, Rate::bytes_per_second(1 << 20, &8192.into()));
        assert_eq!(by_bytes.process, RateProcess::Poisson);
    }

    #[test]
    fn the_front_of_fio_coalesces_dense_rates_of_each_job() {
        let section = |rate| Section::from_pairs("job", &[("rate_iops", rate)], &[]).unwrap();
        let sections = [section("100000"), section("1000")];
        let plan = resolve(&sections, &PlanningHost { cpus: 1, entropy: 1 }).unwrap();
        let spans =
            |plan: &RunPlan| plan.jobs.iter().map(|job| job.time.rate.coalescing.0).collect::<Vec<_>>();
        assert_eq!((spans(&plan), spans(&coalesced(plan.clone()))), (vec![0, 0], vec![20_000, 0]));
    }

    #[test]
    fn contradictory_rates_are_refused() {
        let error = planned(&[("rate", "1m"), ("rate_iops", "100")]).unwrap_err();
        assert!(error.contains("rate and rate_iops are mutually exclusive"), "{error}");
        assert!(planned(&[("rate", "0"), ("rate_iops", "100")]).is_ok());
        let error = planned(&[("rate_min", "1m"), ("rate_iops_min", "100")]).unwrap_err();
        assert!(error.contains("mutually exclusive"), "{error}");
        for pairs in [[("rate", "1m"), ("rate_min", "2m")], [("rate_iops", "9"), ("rate_iops_min", "10")]] {
            let error = planned(&pairs).unwrap_err();
            assert!(error.contains("minimum rate exceeds rate"), "{error}");
        }
        assert!(planned(&[("rate", "1m"), ("rate_min", "1m")]).is_ok());
        let error = planned(&[("rate_iops", "100"), ("rw", "trimwrite")]).unwrap_err();
        assert!(error.contains("alternate"), "{error}");
    }
}
