//! Why jobs failed: on standard error, and the line with which a failed worker ends in fio's text.

use fathom_model::RunPlan;
use fathom_model::text::errno_text;
use fathom_report::fio::{error_place, shown_errno};
use fathom_stats::{FailedRequest, FailureCause, RunOutcome, VerifyOutcome, WorkerFailure, WorkerOutcome};

use crate::output;

/// A failed job ends with a code that is not 0, so standard error may say why.
pub(super) fn tell_failures(outcome: &RunOutcome, plan: &RunPlan) {
    for worker in &outcome.workers {
        let job = plan.jobs.get(worker.job).map_or("", |job| job.name.as_str());
        if let Some(problem) = worker.verified.as_ref().and_then(|verified| verified.unsaved.as_ref()) {
            output::warn(&format!("fio: {job}: {problem}"));
        }
        if let Some(verified) = worker.verified.as_ref().filter(|verified| verified.bad > 0) {
            tell_bad_blocks(job, verified);
            continue;
        }
        let Some(failure) = &worker.failure else { continue };
        output::warn(&failure_line(failure, job, |file| file_name(plan, worker, file)));
        if let Some(hint) = &failure.hint {
            output::warn(hint);
        }
    }
}

/// fio's line for each worker that failed, with its thread.
pub(super) fn ended_lines(outcome: &RunOutcome) -> Vec<String> {
    let failed =
        outcome.workers.iter().filter_map(|worker| Some((worker.thread_id, worker.failure.as_ref()?)));
    failed
        .map(|(pid, failure)| {
            let errno = shown_errno(failure.errno);
            format!("fio: pid={pid}, err={errno}/{}", error_place(errno, failure.cause))
        })
        .collect()
}

/// The name of a worker's file as the job gives it; its number where the files have no names.
fn file_name(plan: &RunPlan, worker: &WorkerOutcome, file: u32) -> String {
    let clone = plan.jobs.get(worker.job).and_then(|job| job.clones.get(worker.clone));
    let path = clone.and_then(|clone| clone.paths.get(file as usize));
    path.map_or_else(|| file.to_string(), |path| path.display().to_string())
}

/// Why a worker failed: in fio's words where fio has some.
fn failure_line(failure: &WorkerFailure, job: &str, name: impl Fn(u32) -> String) -> String {
    match failure.cause {
        FailureCause::Request(FailedRequest { op, file, offset, len }) => {
            let (name, why) = (name(file), errno_text(shown_errno(failure.errno)));
            format!("fio: io_u error on file {name}: {why}: {op} offset={offset}, buflen={len}")
        }
        FailureCause::NoData(FailedRequest { op, file, offset, len }) => {
            format!("fio: {job}: {op} of {len} bytes at offset {offset} of {} moved no data", name(file))
        }
        FailureCause::MaxLatency { request: FailedRequest { op, file, offset, len }, lat_ns, limit_ns } => {
            let name = name(file);
            format!(
                "fio: latency of {lat_ns} nsec exceeds specified max ({limit_ns} nsec): {name} {op} {offset} {len}"
            )
        }
        FailureCause::LeastRate => format!("{job}: {}", failure.message),
        FailureCause::Other => format!("fio: {job}: {}", failure.message),
    }
}

/// What is wrong with blocks that were read, in fio's words, and how many there are.
fn tell_bad_blocks(job: &str, verified: &VerifyOutcome) {
    for bad in &verified.first_bad {
        bad.problem.iter().for_each(|line| output::warn(line));
        bad.dumps.iter().for_each(|line| output::warn(&format!("       {line}")));
    }
    let VerifyOutcome { checked, bad, first_bad, .. } = verified;
    let rest = match bad - first_bad.len() as u64 {
        0 => String::new(),
        rest => format!(", {rest} of them not listed"),
    };
    output::warn(&format!(
        "fio: {job}: {} in {}{rest}",
        counted(*bad, "bad part"),
        counted(*checked, "checked block")
    ));
}

fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_requests_are_told_in_the_words_of_fio() {
        let request = FailedRequest { op: fathom_model::Op::Read, file: 1, offset: 4096, len: 512 };
        let line = |errno, cause| {
            let failure = WorkerFailure { errno, message: "why".to_owned(), cause, hint: None };
            let line = failure_line(&failure, "job", |file| format!("x{file}"));
            let outcome = RunOutcome {
                workers: vec![WorkerOutcome { thread_id: 7, failure: Some(failure), ..Default::default() }],
                ..Default::default()
            };
            (line, ended_lines(&outcome).concat())
        };
        let check = |errno, cause, of_failure: &str, of_end: &str| {
            assert_eq!(line(errno, cause), (of_failure.to_owned(), of_end.to_owned()));
        };
        check(
            95,
            FailureCause::Request(request),
            "fio: io_u error on file x1: Operation not supported: read offset=4096, buflen=512",
            "fio: pid=7, err=95/file:fathom:0, func=io_u error, error=Operation not supported",
        );
        check(
            110,
            FailureCause::MaxLatency { request, lat_ns: 20, limit_ns: 10 },
            "fio: latency of 20 nsec exceeds specified max (10 nsec): x1 read 4096 512",
            "fio: pid=7, err=110/file:fathom:0, func=max latency exceeded, error=Connection timed out",
        );
        check(
            5,
            FailureCause::NoData(request),
            "fio: job: read of 512 bytes at offset 4096 of x1 moved no data",
            "fio: pid=7, err=5/file:fathom:0, func=full resid, error=Input/output error",
        );
        check(
            0,
            FailureCause::Other,
            "fio: job: why",
            "fio: pid=7, err=22/file:fathom:0, func=io_u error, error=Invalid argument",
        );
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(
            (counted(1, "bad part").as_str(), counted(2, "bad part").as_str()),
            ("1 bad part", "2 bad parts")
        );
    }
}
