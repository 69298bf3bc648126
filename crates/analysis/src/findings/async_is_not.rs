//! Notices requests that were to be asynchronous and were not: carried out by worker threads of the kernel, or by the
//! very call that submits them.
//!
//! The measurements behind each threshold are in docs/adr/0014.

use fathom_model::units;
use fathom_record::{Finding, FindingId, JobRecord, OpOutcome, PhaseOutcome, Severity, TestRecord};

use super::Words;
use crate::say::finding;

/// Share of all CPU time, own and the kernel workers', from which on these are the way requests go and not the exception:
/// targets that take nothing else are at 0.22 to 0.79, the odd page in the way or sync in between at 0.15 at most.
const WORKERS_SHARE: f64 = 0.2;
/// CPU time of the workers below which there is too little to tell, ns: two ticks of the coarsest clock that counts it.
const MIN_WORKERS_NS: u64 = 20_000_000;
/// Share of the requests that may be syncs. These have no other way than the workers, which says nothing of the target.
const SYNCS_SHARE: f64 = 0.01;
/// Share of a request's time that passes inside the submitting call where that carries it out: 0.96 and more. Where the
/// kernel takes requests it is 0.15 at most.
const SUBMISSION_SHARE: f64 = 0.9;
/// Waits per request from which on the submitting call waits for the device: once each, against none at all in memory.
const WAITS_PER_REQUEST: f64 = 0.5;
/// Requests below which their times tell too little.
const MIN_REQUESTS: u64 = 100;

/// What a job's workers add up to.
#[derive(Debug, Default)]
struct Sums {
    clones: u64,
    requests: u64,
    syncs: u64,
    /// Measured time of all workers, ns.
    elapsed_ns: u64,
    own_cpu_ns: u64,
    workers: u64,
    workers_cpu_ns: u64,
    waits: u64,
    slat_ns: u128,
    clat_ns: u128,
}

/// How requests were carried out instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FallbackPath {
    /// By worker threads of the kernel.
    KernelWorkers,
    /// By the submitting call, which waited for each.
    SubmissionWaits,
    /// By the submitting call, at once.
    SubmissionCompletes,
}

impl FallbackPath {
    fn name(self) -> &'static str {
        match self {
            FallbackPath::KernelWorkers => "kernel-workers",
            FallbackPath::SubmissionWaits => "submission-waits",
            FallbackPath::SubmissionCompletes => "submission-completes",
        }
    }
}

/// What there is to say of each job of a test.
pub(crate) fn findings(test: &TestRecord, words: Words) -> Vec<Finding> {
    let jobs: Vec<&[JobRecord]> = test.jobs.chunk_by(|one, next| one.job == next.job).collect();
    let found = jobs.iter().filter_map(|clones| {
        let (job, sums) = (&clones[0], Sums::of(clones));
        // What a worker has used that never came back is not known.
        let way = if clones.iter().any(|clone| clone.stuck) { None } else { way(job, &sums) }?;
        let mut finding = of_job(way, job, &sums, words, !test.disks.is_empty());
        finding.tests.push(test.id.clone());
        if jobs.len() > 1 {
            finding.claim = format!("{}: {}", job.name, finding.claim);
        }
        Some(finding)
    });
    found.collect()
}

fn way(job: &JobRecord, sums: &Sums) -> Option<FallbackPath> {
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let all_cpu_ns = sums.own_cpu_ns + sums.workers_cpu_ns;
    let syncs = sums.syncs as f64 > sums.requests as f64 * SYNCS_SHARE || job.plan.io.end_fsync;
    let asked_for = job.plan.engine_option("force_async").is_some_and(|every| every != "0");
    if sums.workers_cpu_ns >= MIN_WORKERS_NS
        && share(sums.workers_cpu_ns as f64, all_cpu_ns as f64) >= WORKERS_SHARE
    {
        return (!syncs && !asked_for && sums.requests > 0).then_some(FallbackPath::KernelWorkers);
    }
    if job.iodepth() < 2 || sums.requests < MIN_REQUESTS || sums.submission_share() < SUBMISSION_SHARE {
        return None;
    }
    let waits = share(sums.waits as f64, sums.requests as f64) >= WAITS_PER_REQUEST;
    Some(if waits { FallbackPath::SubmissionWaits } else { FallbackPath::SubmissionCompletes })
}

impl Sums {
    fn of(clones: &[JobRecord]) -> Sums {
        let mut sums = Sums { clones: clones.len() as u64, ..Sums::default() };
        clones.iter().for_each(|clone| sums.add(&clone.measured));
        sums
    }

    fn add(&mut self, phase: &PhaseOutcome) {
        let PhaseOutcome { cpu, kernel_threads, .. } = phase;
        self.syncs += phase.syncs;
        self.elapsed_ns += phase.elapsed_ns();
        // A thread that submits does the job's own work.
        self.own_cpu_ns += cpu.user_ns + cpu.system_ns + kernel_threads.submitter_ns;
        self.workers += u64::from(kernel_threads.workers);
        self.workers_cpu_ns += kernel_threads.workers_ns;
        self.waits += cpu.voluntary_switches;
        for op in phase.ops() {
            let OpOutcome { ios, slat, clat, .. } = op;
            self.requests += ios;
            self.slat_ns += slat.moments.sum;
            self.clat_ns += clat.moments.sum;
        }
    }

    /// Share of the requests' time that passed before they were issued; 0 where that was not measured.
    fn submission_share(&self) -> f64 {
        let all = self.slat_ns + self.clat_ns;
        if all == 0 { 0.0 } else { self.slat_ns as f64 / all as f64 }
    }

    /// Requests that a worker had in flight after their submission, on average.
    fn in_flight(&self) -> f64 {
        self.clat_ns as f64 / self.elapsed_ns.max(1) as f64
    }

    fn per_request(&self, sum: u64) -> f64 {
        sum as f64 / self.requests.max(1) as f64
    }
}

fn of_job(way: FallbackPath, job: &JobRecord, sums: &Sums, words: Words, on_disk: bool) -> Finding {
    let finding = match way {
        FallbackPath::KernelWorkers => kernel_workers(job, sums, words, on_disk && job.plan.io.direct),
        FallbackPath::SubmissionWaits => submission_waits(job, sums, words),
        FallbackPath::SubmissionCompletes => submission_completes(job, sums, words),
    };
    finding
        .with("way", way.name())
        .with("job", job.name.as_str())
        .with("engine", job.engine())
        .with("iodepth", job.iodepth())
        .with("numjobs", sums.clones)
        .with("requests", sums.requests)
}

/// What makes direct requests wait on a target that takes them otherwise.
const PAGES_IN_THE_WAY: &str = "Pages of the target in the page cache cause this with direct I/O: sync, drop the caches, and run \
     again. If it persists:";

fn kernel_workers(job: &JobRecord, sums: &Sums, words: Words, may_pass: bool) -> Finding {
    let (own, theirs) = (sums.per_request(sums.own_cpu_ns), sums.per_request(sums.workers_cpu_ns));
    let who = match sums.workers {
        0 | 1 => "a kernel worker".to_owned(),
        many => format!("{many} kernel workers"),
    };
    let claim = format!(
        "{} did not run asynchronously: {who} executed I/Os and used {} of CPU time per I/O, in addition to \
         {} in the job.",
        job.engine(),
        units::latency(theirs.round() as u64),
        units::latency(own.round() as u64),
    );
    let psync = match (words, sums.workers) {
        (Words::Own | Words::Sweep, _) => {
            "--engine=psync issues the same calls directly, with less CPU time.".to_owned()
        }
        (Words::Fio, many) => {
            let beside = if many > 1 {
                format!("; --numjobs={many} keeps the same queue depth")
            } else {
                String::new()
            };
            format!("--ioengine=psync issues the same calls directly, with less CPU time{beside}.")
        }
    };
    let remedy = if may_pass { format!("{PAGES_IN_THE_WAY} {psync}") } else { psync };
    new(claim, remedy)
        .with("kernel_workers", sums.workers)
        .with("kernel_workers_cpu_ns_per_request", rounded(theirs))
        .with("own_cpu_ns_per_request", rounded(own))
}

fn submission_waits(job: &JobRecord, sums: &Sums, words: Words) -> Finding {
    let claim = format!(
        "{} did not run asynchronously: submission blocked for {} % of the latency, and the queue depth was \
         {} instead of {}.",
        job.engine(),
        percent(sums.submission_share()),
        few(sums.in_flight()),
        job.iodepth(),
    );
    let depth = u64::from(job.iodepth()) * sums.clones;
    let remedy = match (words, job.plan.io.direct) {
        (Words::Own | Words::Sweep, true) => None,
        (Words::Own | Words::Sweep, false) => Some("Omit --buffered to bypass the page cache.".to_owned()),
        (Words::Fio, true) => Some(format!("--ioengine=psync --numjobs={depth} keeps queue depth {depth}.")),
        (Words::Fio, false) => Some(format!(
            "--direct=1 bypasses the page cache; --ioengine=psync --numjobs={depth} keeps queue depth {depth} in \
             it."
        )),
    };
    submission(new(claim, remedy.unwrap_or_default()), sums)
}

fn submission_completes(job: &JobRecord, sums: &Sums, words: Words) -> Finding {
    let claim = format!(
        "{} completed I/Os during submission: the queue depth was {} instead of {}.",
        job.engine(),
        few(sums.in_flight()),
        job.iodepth(),
    );
    let remedy = match (words, job.plan.io.direct) {
        (_, true) => None,
        (Words::Own | Words::Sweep, false) => Some("Omit --buffered to bypass the page cache.".to_owned()),
        (Words::Fio, false) => Some("--direct=1 bypasses the page cache.".to_owned()),
    };
    Finding { severity: Severity::Info, ..submission(new(claim, remedy.unwrap_or_default()), sums) }
}

/// The evidence that both ways of the submitting call rest on.
fn submission(finding: Finding, sums: &Sums) -> Finding {
    finding
        .with("submission_share", rounded(sums.submission_share()))
        .with("in_flight", rounded(sums.in_flight()))
        .with("waits_per_request", rounded(sums.per_request(sums.waits)))
}

fn new(claim: String, remedy: String) -> Finding {
    Finding { severity: Severity::Warning, ..finding(FindingId::AsyncIsNot, [], claim, remedy) }
}

/// To three decimals, which is finer than anything here is known.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// A share in percent, rounded down so that 100 is all of it.
fn percent(share: f64) -> f64 {
    (share * 1e3).floor() / 10.0
}

/// A number of requests below a handful: two decimals, and one from ten on.
fn few(count: f64) -> String {
    if count < 9.995 { format!("{count:.2}") } else { format!("{count:.1}") }
}

#[cfg(test)]
mod tests {
    use fathom_model::plan::{DepthPlan, EnginePlan};
    use fathom_record::{CpuUsage, DiskOutcome, KernelThreads, Latency, Moments, PlanRecord};

    use super::*;

    /// A job as it was measured: all figures per request, the latency in ns with the share of it before the issue.
    #[derive(Clone, Copy)]
    struct Measured {
        engine: &'static str,
        depth: u32,
        own_cpu_ns: u64,
        workers: u32,
        workers_cpu_ns: u64,
        lat_ns: u64,
        slat_share: f64,
        waits: f64,
    }

    const REQUESTS: u64 = 100_000;

    fn job(of: &Measured) -> JobRecord {
        let slat_ns = (of.lat_ns as f64 * of.slat_share) as u64;
        let latency = |ns: u64| Latency {
            moments: Moments { count: REQUESTS, sum: u128::from(ns * REQUESTS), ..Default::default() },
            ..Default::default()
        };
        let read = OpOutcome {
            ios: REQUESTS,
            slat: latency(slat_ns),
            clat: latency(of.lat_ns - slat_ns),
            ..Default::default()
        };
        let measured = PhaseOutcome {
            end_ns: 1_000_000_000,
            read,
            cpu: CpuUsage {
                user_ns: REQUESTS * 10,
                system_ns: REQUESTS * (of.own_cpu_ns - 10),
                voluntary_switches: (REQUESTS as f64 * of.waits) as u64,
                ..Default::default()
            },
            kernel_threads: KernelThreads {
                workers: of.workers,
                workers_ns: of.workers_cpu_ns * REQUESTS,
                ..Default::default()
            },
            ..Default::default()
        };
        let engine = EnginePlan { name: of.engine.to_owned(), ..Default::default() };
        let plan = PlanRecord { engine, depth: DepthPlan::new(of.depth), ..Default::default() };
        JobRecord { name: "q".to_owned(), plan, measured, ..Default::default() }
    }

    fn test(jobs: Vec<JobRecord>) -> TestRecord {
        TestRecord { id: "t".to_owned(), jobs, ..Default::default() }
    }

    /// engine, depth, own CPU, workers, their CPU, latency, share before the issue, waits.
    type Row = (&'static str, u32, u64, u32, u64, u64, f64, f64);

    fn measured(
        (engine, depth, own_cpu_ns, workers, workers_cpu_ns, lat_ns, slat_share, waits): Row,
    ) -> Measured {
        Measured { engine, depth, own_cpu_ns, workers, workers_cpu_ns, lat_ns, slat_share, waits }
    }

    const TMPFS: Row = ("io_uring", 16, 1030, 2, 1185, 31_677, 0.040, 0.04);
    const COLD_LIBAIO: Row = ("libaio", 16, 38_185, 0, 0, 200_185, 0.999, 1.0);
    const CACHED_URING: Row = ("io_uring", 16, 793, 0, 0, 1515, 0.979, 0.0);

    #[test]
    fn what_real_targets_gave() {
        use FallbackPath::{KernelWorkers, SubmissionCompletes, SubmissionWaits};
        let check = |what: &str, row: Row, expected: Option<FallbackPath>| {
            let job = job(&measured(row));
            assert_eq!(way(&job, &Sums::of(std::slice::from_ref(&job))), expected, "{what}");
        };
        check("tmpfs, read", TMPFS, Some(KernelWorkers));
        check("tmpfs, depth 1", ("io_uring", 1, 2235, 1, 2221, 5408, 0.180, 1.0), Some(KernelWorkers));
        check(
            "ext4, buffered write",
            ("io_uring", 16, 1813, 1, 1585, 35_047, 0.055, 0.03),
            Some(KernelWorkers),
        );
        check(
            "ext4, dirty pages",
            ("io_uring", 16, 4720, 8, 11_000, 378_033, 0.013, 0.57),
            Some(KernelWorkers),
        );
        check("zram, direct", ("io_uring", 16, 1173, 1, 2101, 44_160, 0.022, 0.22), Some(KernelWorkers));
        check(
            "FUSE, buffered write",
            ("io_uring", 16, 29_068, 2, 11_858, 1_009_871, 0.002, 1.2),
            Some(KernelWorkers),
        );
        check("ext4, direct", ("io_uring", 16, 3162, 0, 0, 164_694, 0.024, 0.06), None);
        check("ext4, direct, 1m", ("io_uring", 16, 21_591, 1, 3723, 4_783_067, 0.001, 0.26), None);
        check("loop", ("libaio", 16, 2104, 0, 0, 71_063, 0.043, 0.07), None);
        check("FUSE, direct", ("libaio", 16, 3360, 0, 0, 372_288, 0.133, 0.5), None);
        check("cold reads", ("io_uring", 16, 6343, 0, 0, 290_971, 0.036, 0.06), None);
        check("cold reads, libaio", COLD_LIBAIO, Some(SubmissionWaits));
        check(
            "FUSE, buffered, libaio",
            ("libaio", 16, 10_476, 0, 0, 161_661, 0.999, 1.0),
            Some(SubmissionWaits),
        );
        check("page cache", CACHED_URING, Some(SubmissionCompletes));
        check("zram, libaio", ("libaio", 16, 1635, 0, 0, 3212, 0.990, 0.0), Some(SubmissionCompletes));
        // No queue was asked for.
        check("page cache, depth 1", ("io_uring", 1, 945, 0, 0, 925, 0.969, 0.0), None);
        check("psync", ("psync", 1, 1266, 0, 0, 1141, 0.0, 0.0), None);
        // Virtual time.
        check("sim", ("io_uring", 16, 10, 0, 0, 1_000_000, 0.0, 0.0), None);
    }

    #[test]
    fn what_has_another_reason_is_not_the_targets() {
        let check = |change: fn(&mut JobRecord), expected: usize| {
            let mut job = job(&measured(TMPFS));
            change(&mut job);
            assert_eq!(findings(&test(vec![job]), Words::Fio).len(), expected);
        };
        check(|_| (), 1);
        check(|job| job.measured.syncs = REQUESTS / 100, 1);
        check(|job| job.measured.syncs = REQUESTS / 32, 0);
        check(|job| job.plan.io.end_fsync = true, 0);
        check(|job| job.plan.engine.options = vec![("force_async".to_owned(), "4".to_owned())], 0);
        check(|job| job.plan.engine.options = vec![("force_async".to_owned(), "0".to_owned())], 1);
        check(|job| job.stuck = true, 0);
        check(|job| job.measured.kernel_threads.workers_ns = MIN_WORKERS_NS - 1, 0);
        check(|job| job.measured.read = OpOutcome::default(), 0);
        // Another thread submits: that is the job's own work.
        check(|job| job.measured.kernel_threads.submitter_ns = REQUESTS * 4000, 0);
    }

    #[test]
    fn claims_say_what_was_measured() {
        let check = |row: Row, direct: bool, (words, on_disk): (Words, bool), expected: &[&str]| {
            let mut job = job(&measured(row));
            job.plan.io.direct = direct;
            let mut test = test(vec![job]);
            test.disks.extend(on_disk.then(DiskOutcome::default));
            let found = findings(&test, words).remove(0);
            let said: Vec<String> = [Some(found.claim), found.remedy].into_iter().flatten().collect();
            assert_eq!(said, expected);
        };
        let punted = "io_uring did not run asynchronously: 2 kernel workers executed I/Os and used 1.19 µs of CPU time per I/O, in addition to 1.03 µs in the job.";
        let psync = "--ioengine=psync issues the same calls directly, with less CPU time; --numjobs=2 keeps the same queue depth.";
        check(TMPFS, false, (Words::Fio, false), &[punted, psync]);
        check(TMPFS, true, (Words::Fio, true), &[punted, &format!("{PAGES_IN_THE_WAY} {psync}")]);
        let psync = "--engine=psync issues the same calls directly, with less CPU time.";
        check(TMPFS, false, (Words::Own, true), &[punted, psync]);
        let waited = "libaio did not run asynchronously: submission blocked for 99.8 % of the latency, and the queue depth was 0.02 instead of 16.";
        let psync = "--ioengine=psync --numjobs=16 keeps queue depth 16";
        check(COLD_LIBAIO, true, (Words::Fio, true), &[waited, &format!("{psync}.")]);
        let both = format!("--direct=1 bypasses the page cache; {psync} in it.");
        check(COLD_LIBAIO, false, (Words::Fio, true), &[waited, &both]);
        check(COLD_LIBAIO, true, (Words::Own, true), &[waited]);
        let completed = "io_uring completed I/Os during submission: the queue depth was 0.00 instead of 16.";
        check(CACHED_URING, false, (Words::Fio, true), &[completed, "--direct=1 bypasses the page cache."]);
        check(CACHED_URING, true, (Words::Fio, true), &[completed]);
    }

    #[test]
    fn jobs_are_told_apart_and_their_clones_added() {
        let with = |row: Row, number: u32, name: &str| JobRecord {
            job: number,
            name: name.to_owned(),
            ..job(&measured(row))
        };
        let jobs = vec![with(TMPFS, 0, "a"), with(TMPFS, 0, "a"), with(CACHED_URING, 1, "b")];
        let found = findings(&test(jobs), Words::Fio);
        let ids: Vec<_> = found.iter().map(|finding| (finding.id.clone(), finding.severity)).collect();
        assert_eq!(
            ids,
            [(FindingId::AsyncIsNot, Severity::Warning), (FindingId::AsyncIsNot, Severity::Info)]
        );
        assert!(found[0].claim.starts_with("a: io_uring did not run asynchronously: 4 kernel workers"));
        assert!(found[1].claim.starts_with("b: io_uring completed"), "{}", found[1].claim);
        assert_eq!(found[0].tests, ["t"]);
        let evidence = |name: &str| found[0].evidence[name].clone();
        assert_eq!((evidence("kernel_workers"), evidence("numjobs")), (4.into(), 2.into()));
        assert_eq!(evidence("kernel_workers_cpu_ns_per_request"), 1185.0);
        assert_eq!(evidence("own_cpu_ns_per_request"), 1030.0);
        assert_eq!((evidence("requests"), evidence("way")), ((2 * REQUESTS).into(), "kernel-workers".into()));
    }
}
