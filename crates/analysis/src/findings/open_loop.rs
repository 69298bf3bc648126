//! Whether a rate was kept: by the target, which may be too slow for it, and by the driver, which may be late itself.
//!
//! A rate that is not sustained makes a queue that grows as long as the run: its percentiles tell the length of the run.
//! A driver that is late adds its own lateness to what it measures.

use fathom_model::{Nanos, Op, units};
use fathom_record::{Finding, FindingId, JobRecord, ScheduleSummary, TestRecord, merge_jobs};

/// Share of a request's usual service time that the driver may be late by.
const LATE_SHARE: f64 = 0.1;

/// What there is to say of each job of a test.
pub(crate) fn findings(test: &TestRecord) -> Vec<Finding> {
    let mut found = Vec::new();
    for clones in test.jobs.chunk_by(|one, next| one.job == next.job) {
        let clones: Vec<&JobRecord> = clones.iter().collect();
        let job = merge_jobs(&clones);
        for op in Op::DATA {
            let counted = job.measured.op(op);
            let Some(schedule) = ScheduleSummary::new(&job.measured, counted) else { continue };
            found.extend(not_sustained(&job, op, &schedule));
            let service = counted.clat.summary().p50;
            found.extend(service.and_then(|service_ns| late(&job, op, &schedule, service_ns)));
        }
    }
    for finding in &mut found {
        finding.tests.push(test.id.clone());
        // The test is named before the claim.
        if let Some(claim) = finding.claim.strip_prefix(&format!("{}: ", test.id)) {
            finding.claim = claim.to_owned();
        }
    }
    found
}

fn not_sustained(job: &JobRecord, op: Op, schedule: &ScheduleSummary) -> Option<Finding> {
    if schedule.sustained {
        return None;
    }
    let elapsed_ns = job.measured.elapsed_ns().max(1);
    let reached = job.measured.op(op).ios as f64 * 1e9 / elapsed_ns as f64;
    let pauses = job.plan.time.think_time.pause > Nanos::ZERO;
    let who = if pauses { "the target or the think time of the job (thinktime)" } else { "the target" };
    let claim = format!(
        "{}: {who} did not sustain the rate: {:.1} {op}s per second of {:.1} offered, {} never issued, the \
         latest issued {} after its due time.",
        job.name,
        reached,
        schedule.offered_iops,
        schedule.backlog,
        units::latency(schedule.latest_ns),
    );
    let remedy = "Response times grow with the length of the run: offer a lower rate, or allow a higher queue depth \
         (iodepth).";
    Some(
        new(FindingId::RateNotSustained, claim, remedy, job, op)
            .with("offered_iops", rounded(schedule.offered_iops))
            .with("reached_iops", rounded(reached))
            .with("backlog", schedule.backlog)
            .with("latest_ns", schedule.latest_ns),
    )
}

fn late(job: &JobRecord, op: Op, schedule: &ScheduleSummary, service_ns: u64) -> Option<Finding> {
    let late_ns = schedule.late_ns.p99?;
    if late_ns as f64 <= LATE_SHARE * service_ns as f64 {
        return None;
    }
    let claim = format!(
        "{}: the client issued {op}s late: p99 of the delay is {}, the median service time {}.",
        job.name,
        units::latency(late_ns),
        units::latency(service_ns),
    );
    let remedy = if job.plan.time.rate.coalescing > Nanos::ZERO {
        "Response times include this delay, part of which is chosen: one wake-up of the job issues the requests of 20 us. \
         Spread the rate over more jobs of less than 50,000 IOPS each, or use rate_process=poisson."
    } else {
        "Response times include this delay: dedicate a CPU to the client (cpus_allowed), or spread the rate over more \
         jobs."
    };
    Some(
        new(FindingId::GeneratorLate, claim, remedy, job, op)
            .with("late_p99_ns", late_ns)
            .with("service_p50_ns", service_ns),
    )
}

fn new(id: FindingId, claim: String, remedy: &str, job: &JobRecord, op: Op) -> Finding {
    crate::say::finding(id, [], claim, remedy).with("job", job.name.as_str()).with("op", op.name())
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use fathom_record::{Latency, OpOutcome, OpenLoop, PhaseOutcome};

    use super::*;

    fn times(count: u64, ns: u64) -> Latency {
        let mut latency = Latency::default();
        (0..count).for_each(|_| latency.record(ns));
        latency
    }

    /// A job of 10 s under a rate: requests done and left over, usual service time, lateness of the driver.
    fn ids(done: u64, backlog: u64, service_ns: u64, late_ns: u64) -> Vec<String> {
        let open_loop = OpenLoop {
            response: times(done, service_ns + late_ns),
            late: times(done, late_ns),
            latest_ns: late_ns,
            backlog,
        };
        let read = OpOutcome {
            issued: done,
            ios: done,
            clat: times(done, service_ns),
            open_loop,
            ..Default::default()
        };
        let measured = PhaseOutcome {
            end_ns: 10_000_000_000,
            schedule_end_ns: 10_000_000_000,
            read,
            ..Default::default()
        };
        let job = JobRecord { name: "paced".to_owned(), measured, ..Default::default() };
        let test = TestRecord { id: "t".to_owned(), jobs: vec![job], ..Default::default() };
        findings(&test).into_iter().map(|finding| finding.id.to_string()).collect()
    }

    #[test]
    fn rates_and_drivers_that_fell_behind() {
        for (done, backlog, service_ns, late_ns, expected) in [
            (2_000, 0, 1_000_000, 50_000, vec![]),
            (2_000, 20, 1_000_000, 50_000, vec![]),
            (2_000, 21, 1_000_000, 50_000, vec!["rate-not-sustained"]),
            (1_000, 1_000, 1_000_000, 50_000, vec!["rate-not-sustained"]),
            (2_000, 0, 1_000_000, 150_000, vec!["generator-late"]),
            // Too few to have a percentile.
            (900, 0, 1_000_000, 150_000, vec![]),
            // The last one may be in flight when the run ends.
            (3, 1, 1_000_000, 0, vec![]),
        ] {
            assert_eq!(ids(done, backlog, service_ns, late_ns), expected, "{done} {backlog} {late_ns}");
        }
    }

    #[test]
    fn a_job_without_a_rate_has_none_to_keep() {
        let read = OpOutcome { issued: 5, ios: 5, clat: times(5, 100), ..Default::default() };
        let job = JobRecord {
            measured: PhaseOutcome { end_ns: 9, read, ..Default::default() },
            ..Default::default()
        };
        assert_eq!(findings(&TestRecord { jobs: vec![job], ..Default::default() }), []);
    }
}
