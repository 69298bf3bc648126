//! A client that could not ask for more: its threads busy, its CPU time taken by the host or withheld by its group.

use fathom_record::{Finding, FindingId, HostInterval, JobRecord, RunRecord};

use crate::rows::RecordRow;
use crate::say::{count, finding, percent};

/// Share of a core from which on a thread has nothing left to give: the rest goes to waking up and to the clock.
const BUSY_THREAD: f64 = 0.9;
/// Share of all CPUs from which on more threads do not help.
const BUSY_MACHINE: f64 = 0.9;
/// CPU time below which a thread's share is a matter of chance, ns.
const MIN_CPU_NS: u64 = 100_000_000;
/// Stolen share of all CPU time over a test that is too much, and over any five seconds.
pub(crate) const STOLEN: f64 = 0.02;
const STOLEN_AT_WORST: f64 = 0.10;
/// Measured time below which a tick or two of stolen time are a large share by chance, ns.
pub(crate) const MIN_SPAN_NS: u64 = 1_000_000_000;
const WORST_SPAN_NS: u64 = 5_000_000_000;
/// Share of the time for which a group was held back that is too much.
pub(crate) const THROTTLED: f64 = 0.01;
/// Share of its time that a thread may wait for a CPU.
const WAITED: f64 = 0.10;
/// Share above which stolen time that has come stays, once credit is spent.
const STILL_STOLEN: f64 = 0.05;

/// What to do about stolen time.
pub(crate) const STEAL_REMEDY: &str = "Repeat at another time, or on a machine with dedicated CPUs.";
/// What to do about a CPU quota.
pub(crate) const QUOTA_REMEDY: &str = "Raise cpu.max (cpu.cfs_quota_us), or measure outside the group.";
/// What to do about other processes that use the CPUs.
pub(crate) const CPU_WAIT_REMEDY: &str =
    "Stop the other processes, or measure on a machine with spare CPU time.";

/// CPU time of a worker, or of what submits in its place, ns.
pub(crate) fn cpu_ns(job: &JobRecord) -> u64 {
    let (cpu, threads) = (&job.measured.cpu, &job.measured.kernel_threads);
    if threads.submitter_ns > 0 { threads.submitter_ns } else { cpu.user_ns + cpu.system_ns }
}

/// Share of its time for which a worker was ready to run and waited for a CPU.
pub(crate) fn run_queue_wait_share(job: &JobRecord) -> f64 {
    let measured = &job.measured;
    measured.cpu.run_queue_wait_ns as f64 / measured.elapsed_ns().max(1) as f64
}

/// CPU time of a worker, or of what submits in its place, as a share of its time.
fn share(job: &JobRecord) -> f64 {
    let cpu_ns = cpu_ns(job);
    if cpu_ns < MIN_CPU_NS { 0.0 } else { cpu_ns as f64 / job.measured.elapsed_ns().max(1) as f64 }
}

/// True where a thread of the row was busy all the time, so that its rate is the client's.
pub(crate) fn is_bound(row: &RecordRow<'_>) -> bool {
    row.jobs().iter().any(|job| share(job) >= BUSY_THREAD)
}

/// True where a thread, or all CPUs, had nothing left to give.
pub(crate) fn has_no_more(record: &RunRecord, row: &RecordRow<'_>) -> bool {
    let host = record.header.host();
    let cpus = f64::from(if host.cpus_allowed > 0 { host.cpus_allowed } else { host.cpus_online });
    let busy: f64 = row.jobs().iter().map(share).sum();
    is_bound(row) || cpus > 0.0 && busy >= BUSY_MACHINE * cpus
}

/// What there is to say of the client of each row.
pub(crate) fn findings(record: &RunRecord, row: &RecordRow<'_>) -> Vec<Finding> {
    let throttled = throttled(record, row);
    // A quota keeps threads waiting as well.
    let waited = if throttled.is_none() { waited(row) } else { None };
    [bound(record, row), steal(row), throttled, waited].into_iter().flatten().collect()
}

/// Threads that were ready to run and were not: the one that waited longest.
fn waited(row: &RecordRow<'_>) -> Option<Finding> {
    let share = run_queue_wait_share;
    let longest = row.jobs().iter().max_by(|one, other| share(one).total_cmp(&share(other)))?;
    if row.summary.measured_ns < MIN_SPAN_NS || share(longest) <= WAITED {
        return None;
    }
    // Whoever kept it waiting was running meanwhile.
    let host: u64 = row.test.host_load.iter().map(|interval| interval.counters.busy_ns).sum();
    let ours: u64 = row.jobs().iter().map(|job| cpu_ns(job) + job.measured.kernel_threads.workers_ns).sum();
    let is_of_others = host.saturating_sub(ours) >= longest.measured.cpu.run_queue_wait_ns;
    let whose = if is_of_others { " that other processes used" } else { "" };
    let claim = format!(
        "a thread waited {} of the time for a CPU{whose}: rates and latencies include these waits.",
        percent(share(longest).min(1.0)),
    );
    let remedy = match is_of_others {
        true => CPU_WAIT_REMEDY,
        false => "Use fewer jobs, or a machine with more CPUs.",
    };
    Some(
        finding(FindingId::CpuWait, [row], claim, remedy)
            .with("longest_wait_fraction", share(longest))
            .with("other_processes_cpu_ns", host.saturating_sub(ours)),
    )
}

fn bound(record: &RunRecord, row: &RecordRow<'_>) -> Option<Finding> {
    if !is_bound(row) || row.is_paced() {
        return None;
    }
    let shares: Vec<f64> = row.jobs().iter().map(share).collect();
    let busy = shares.iter().filter(|&&share| share >= BUSY_THREAD).count();
    let host = record.header.host();
    let cpus = f64::from(if host.cpus_allowed > 0 { host.cpus_allowed } else { host.cpus_online });
    let all_busy = cpus > 0.0 && shares.iter().sum::<f64>() >= BUSY_MACHINE * cpus;
    let most = shares.iter().copied().fold(0.0, f64::max);
    let claim = format!(
        "{busy} of {} threads used {} of a core: the client, not the target, limits the rate to {} IOPS.",
        shares.len(),
        percent(most.min(1.0)),
        count(row.iops()),
    );
    let remedy = match (all_busy, row.is_own()) {
        (true, _) => "All CPUs are busy: use larger blocks, or a machine with more CPUs.",
        (false, true) => "Use more jobs to spread the load over more CPUs (`fathom fio --numjobs=N`).",
        (false, false) => "Use --numjobs to spread the load over more CPUs.",
    };
    Some(
        finding(FindingId::ClientCpuBound, [row], claim, remedy)
            .with("busiest_thread_fraction", most)
            .with("busy_threads", busy)
            .with("threads", shares.len())
            .with("all_cpus_busy", all_busy),
    )
}

/// A sum over intervals as a share of another.
fn portion(load: &[HostInterval], part: fn(&HostInterval) -> u64, whole: fn(&HostInterval) -> u64) -> f64 {
    let sum = |field: fn(&HostInterval) -> u64| load.iter().map(field).sum::<u64>() as f64;
    sum(part) / sum(whole).max(1.0)
}

/// The stolen share of all CPU time.
pub(crate) fn stolen(load: &[HostInterval]) -> f64 {
    portion(load, |interval| interval.counters.steal_ns, |interval| interval.counters.cpu_ns)
}

/// The largest stolen share over five seconds or the whole, where that is shorter than half of it.
fn worst(load: &[HostInterval]) -> f64 {
    let window = |from: usize| {
        let end = load[from].start_ns + WORST_SPAN_NS;
        let length =
            load[from..].iter().take_while(|interval| interval.end_ns <= end + WORST_SPAN_NS / 20).count();
        let slice = &load[from..from + length];
        let is_full = slice.last().is_some_and(|last| last.end_ns + WORST_SPAN_NS / 20 >= end);
        is_full.then(|| stolen(slice))
    };
    (0..load.len()).filter_map(window).fold(0.0, f64::max)
}

fn steal(row: &RecordRow<'_>) -> Option<Finding> {
    let load = &row.test.host_load;
    let (mean, worst) = (stolen(load), worst(load));
    let too_short = row.summary.measured_ns < MIN_SPAN_NS;
    if too_short || !row.has_host_load() || (mean <= STOLEN && worst <= STOLEN_AT_WORST) {
        return None;
    }
    let claim = format!(
        "CPU steal was {}, {} in the worst 5 s: latencies and rates include these pauses.",
        percent(mean),
        percent(worst.max(mean)),
    );
    Some(
        finding(FindingId::CpuSteal, [row], claim, STEAL_REMEDY)
            .with("steal_fraction", mean)
            .with("steal_fraction_worst", worst.max(mean)),
    )
}

/// The share of the time for which the control group withheld CPUs.
pub(crate) fn withheld(load: &[HostInterval]) -> f64 {
    portion(
        load,
        |interval| interval.counters.throttled_ns,
        |interval| interval.end_ns - interval.start_ns.min(interval.end_ns),
    )
}

fn throttled(record: &RunRecord, row: &RecordRow<'_>) -> Option<Finding> {
    let load = &row.test.host_load;
    let share = withheld(load);
    if !row.has_host_load() || share <= THROTTLED {
        return None;
    }
    let limit = record.header.host().cgroup.cpu_limit;
    let of_cpus = limit.map(|cpus| format!(", {} CPUs,", count(cpus))).unwrap_or_default();
    let claim = format!(
        "the CPU limit of the control group{of_cpus} throttled threads for {} of the time: it limits the \
         rate, not the target.",
        percent(share),
    );
    Some(
        finding(FindingId::CgroupThrottled, [row], claim, QUOTA_REMEDY)
            .with("throttled_fraction", share)
            .with(
                "throttled_periods",
                load.iter().map(|interval| interval.counters.throttled_periods).sum::<u64>(),
            )
            .with("cpu_limit", limit),
    )
}

/// Stolen time that came during the run and stayed: what a machine whose CPU credit is spent shows.
pub(crate) fn credit(record: &RunRecord) -> Option<Finding> {
    let tests: Vec<_> = record.tests.iter().filter(|test| !test.host_load.is_empty()).collect();
    let all: Vec<&HostInterval> = tests.iter().flat_map(|test| &test.host_load).collect();
    let of = |interval: &&HostInterval| stolen(std::slice::from_ref(*interval));
    let length = |span: &[&HostInterval]| {
        span.iter().map(|interval| interval.end_ns.saturating_sub(interval.start_ns)).sum::<u64>()
    };
    let mean = |span: &[&HostInterval]| span.iter().map(of).sum::<f64>() / span.len().max(1) as f64;
    let came = all.iter().position(|interval| of(interval) >= STOLEN_AT_WORST)?;
    let (before, after) = all.split_at(came);
    let lasts = length(before) >= WORST_SPAN_NS && length(after) >= WORST_SPAN_NS;
    let stayed = after.iter().all(|interval| of(interval) >= STILL_STOLEN) && mean(after) >= STOLEN_AT_WORST;
    if !lasts || !stayed || mean(before) > STOLEN {
        return None;
    }
    let instance = &record.header.host().provider.instance_type;
    let machine = instance.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    let claim = format!(
        "CPU steal rose from {} to {} during the run and stayed: the machine{machine} has probably exhausted \
         its CPU credits.",
        percent(mean(before)),
        percent(mean(after)),
    );
    let remedy = "Let it idle until its credits refill, or use a machine type without credits.";
    let mut found = finding(FindingId::CpuCreditSuspected, [], claim, remedy)
        .with("steal_fraction_before", mean(before))
        .with("steal_fraction_after", mean(after));
    found.tests = tests.iter().map(|test| test.id.clone()).collect();
    Some(found)
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;
    use fathom_record::HostCounters;

    use super::*;
    use crate::fixture::{SECOND_NS, TestLoad, ids, plan, record};
    use crate::rows::rows;

    fn check(run: &RunRecord) -> Vec<Finding> {
        let rows = rows(run);
        rows.iter().flat_map(|row| findings(run, row)).chain(credit(run)).collect()
    }

    /// Seconds on two CPUs with these shares stolen.
    fn load(stolen: &[f64]) -> Vec<HostInterval> {
        let interval = |(at, share): (usize, &f64)| HostInterval {
            host: 0,
            start_ns: at as u64 * SECOND_NS,
            end_ns: (at as u64 + 1) * SECOND_NS,
            counters: HostCounters {
                cpu_ns: 2 * SECOND_NS,
                steal_ns: (2e9 * share) as u64,
                ..HostCounters::default()
            },
        };
        stolen.iter().enumerate().map(interval).collect()
    }

    #[test]
    fn a_thread_that_is_busy_all_the_time_limits() {
        let check = |share: f64, expected: &[&str]| {
            let mut run = record(&[TestLoad { jobs: 2, ..TestLoad::default() }]);
            let measured = &mut run.tests[0].jobs[1].measured;
            (measured.cpu.user_ns, measured.cpu.system_ns) = (0, (measured.end_ns as f64 * share) as u64);
            assert_eq!(ids(&check(&run)), expected, "{share}");
            run
        };
        check(0.89, &[]);
        let mut run = check(0.95, &["client-cpu-bound"]);
        let claim = super::findings(&run, &rows(&run)[0]).remove(0).claim;
        assert_eq!(
            claim,
            "1 of 2 threads used 95 % of a core: the client, not the target, limits the rate to 2,000 IOPS."
        );
        plan(&mut run, |plan| plan.time.think_time.pause = Nanos(1000));
        assert_eq!(ids(&self::check(&run)), [""; 0]);
        // In virtual time a run costs nothing; a short one too little to tell.
        run = record(&[TestLoad { seconds: vec![0.01], ..TestLoad::default() }]);
        run.tests[0].jobs[0].measured.end_ns = 20_000_000;
        run.tests[0].jobs[0].measured.cpu.user_ns = 20_000_000;
        assert_eq!(ids(&self::check(&run)), [""; 0]);
    }

    #[test]
    fn a_thread_that_waits_for_a_cpu_is_reported_with_who_used_it() {
        let claim = |wait: f64, busy: f64, throttled: f64| {
            let mut run = record(&[TestLoad { jobs: 2, ..TestLoad::default() }]);
            let measured = &mut run.tests[0].jobs[1].measured;
            measured.cpu.run_queue_wait_ns = (measured.end_ns as f64 * wait) as u64;
            run.tests[0].host_load = load(&[0.0; 12]);
            for interval in &mut run.tests[0].host_load {
                interval.counters.busy_ns = (2e9 * busy) as u64;
                interval.counters.throttled_ns = (1e9 * throttled) as u64;
            }
            let found = check(&run).into_iter().find(|found| found.id == FindingId::CpuWait);
            found.map(|found| found.claim)
        };
        assert_eq!(claim(0.09, 0.9, 0.0), None);
        let text = claim(0.4, 0.5, 0.0).unwrap();
        assert!(
            text.starts_with("a thread waited 40 % of the time for a CPU that other processes used: "),
            "{text}"
        );
        // The jobs themselves used the CPUs.
        let text = claim(0.4, 0.1, 0.0).unwrap();
        assert!(text.starts_with("a thread waited 40 % of the time for a CPU: "), "{text}");
        // A quota explains the wait.
        assert_eq!(claim(0.4, 0.5, 0.3), None);
    }

    #[test]
    fn stolen_time() {
        let check = |stolen: &[f64], expected: &[&str]| {
            let mut run = record(&[TestLoad::default()]);
            run.tests[0].host_load = load(stolen);
            assert_eq!(ids(&check(&run)), expected, "{stolen:?}");
        };
        check(&[], &[]);
        check(&[0.01; 12], &[]);
        check(&[0.03; 12], &["cpu-steal"]);
        // Eleven percent for five seconds of sixty.
        let mut seconds = [0.0; 60];
        seconds[20..25].fill(0.11);
        check(&seconds, &["cpu-steal"]);
        seconds[20] = 0.02;
        check(&seconds, &[]);
        // It comes and stays; it comes and goes.
        seconds[30..].fill(0.6);
        check(&seconds, &["cpu-steal"]);
        seconds[..30].fill(0.0);
        check(&seconds, &["cpu-steal", "cpu-credit-suspected"]);
        seconds[58] = 0.0;
        check(&seconds, &["cpu-steal"]);
        let mut short = record(&[TestLoad { seconds: vec![0.5], ..TestLoad::default() }]);
        short.tests[0].jobs[0].measured.end_ns = 500_000_000;
        short.tests[0].host_load = load(&[0.5]);
        assert_eq!(ids(&self::check(&short)), [""; 0]);
    }

    #[test]
    fn time_withheld_by_the_group() {
        let check = |throttled_ns: u64, expected: &[&str]| {
            let mut run = record(&[TestLoad::default()]);
            run.header.hosts[0].cgroup.cpu_limit = Some(0.5);
            run.tests[0].host_load = load(&[0.0; 12]);
            run.tests[0].host_load[3].counters.throttled_ns = throttled_ns;
            assert_eq!(ids(&check(&run)), expected, "{throttled_ns}");
        };
        check(0, &[]);
        check(100_000_000, &[]);
        check(130_000_000, &["cgroup-throttled"]);
    }
}
