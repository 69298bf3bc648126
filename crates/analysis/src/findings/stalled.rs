//! Spans in which nothing completed although requests were in flight.

use fathom_model::units;
use fathom_record::{
    Finding, FindingId, Interval, JobRecord, OpSummary, RunRecord, Severity, SlowRequest, Stall, TestSummary,
};

use crate::rows::RecordRow;
use crate::say::{finding, seconds};

/// Length of such a span from which on it is a stall.
const MIN_NS: u64 = 2_000_000_000;
/// A device may take this many times as long for one queue of requests as it takes on average.
const UNEVEN: f64 = 2.0;
/// What the intervals of the series show of such a span: they begin and end within it.
const MIN_SEEN_NS: u64 = 900_000_000;
/// Offsets that are named.
const NAMED: usize = 4;

/// A span without a completion, ns since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StalledSpan {
    start_ns: u64,
    end_ns: u64,
}

/// The longest stall of a row, with how many there were.
pub(crate) fn findings(record: &RunRecord, row: &RecordRow<'_>) -> Option<Finding> {
    let spans = spans(record, row);
    let longest = spans.iter().max_by_key(|span| span.end_ns - span.start_ns)?;
    let waiting = waiting(row, longest);
    let stuck = row.jobs().iter().filter(|job| job.stuck).count();
    let from = row.jobs().iter().map(|job| job.measured.start_ns).min().unwrap_or(0);
    let length = longest.end_ns - longest.start_ns;
    // Requests that never complete are in no list of slow requests: the runner recorded the stall while it lasted.
    let seen = seen(row, longest);
    let slow = waiting.iter().map(|slow| slow.depth).max();
    let depth = slow.unwrap_or(0).max(seen.iter().map(|stall| stall.depth).sum());
    let reported = seen.iter().flat_map(|stall| stall.offsets.iter().copied());
    let mut offsets: Vec<u64> =
        waiting.iter().map(|slow| slow.offset).chain(reported).take(NAMED * 2).collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets.truncate(NAMED);
    let places: Vec<String> = offsets.iter().map(|offset| units::grouped(*offset)).collect();
    let mut claim = format!(
        "no I/O completed for {}, starting at {}, with {depth} in flight",
        seconds(length),
        seconds(longest.start_ns.saturating_sub(from)),
    );
    if !places.is_empty() {
        claim += &format!(" (at offset {})", places.join(", "));
    }
    if spans.len() > 1 {
        claim += &format!("; {} stalls in total", spans.len());
    }
    if stuck > 0 {
        claim += "; the I/Os in flight at the end never completed";
    }
    let severity = if stuck > 0 { Severity::Error } else { Severity::Warning };
    let remedy =
        "Check the kernel log (dmesg) for timeouts and resets; for network storage, check the network path.";
    let found = Finding { severity, ..finding(FindingId::Stalled, [row], claim + ".", remedy) };
    Some(
        found
            .with("start_ns", longest.start_ns)
            .with("length_ns", length)
            .with("depth", depth)
            .with("offsets_bytes", offsets)
            .with("stalls", spans.len())
            .with("never_ended", stuck > 0),
    )
}

/// Spans in which no worker completed anything, each covered by a request that waited through it.
fn spans(record: &RunRecord, row: &RecordRow<'_>) -> Vec<StalledSpan> {
    // Workers that started apart have intervals that overlap, so time is cut wherever one of them begins or ends.
    let intervals: Vec<(StalledSpan, bool)> =
        row.jobs().iter().flat_map(|job| &job.measured.series).map(whether_idle).collect();
    let mut cuts: Vec<u64> = intervals.iter().flat_map(|(span, _)| [span.start_ns, span.end_ns]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut busy: Vec<StalledSpan> =
        intervals.iter().filter(|(_, idle)| !idle).map(|(span, _)| *span).collect();
    busy.sort_unstable_by_key(|span| span.start_ns);
    let (mut busy, mut busy_until_ns) = (busy.into_iter().peekable(), 0);
    let mut idle: Vec<StalledSpan> = Vec::new();
    for pair in cuts.windows(2) {
        while let Some(span) = busy.next_if(|span| span.start_ns <= pair[0]) {
            busy_until_ns = span.end_ns.max(busy_until_ns);
        }
        if pair[0] < busy_until_ns {
            continue;
        }
        match idle.last_mut() {
            Some(span) if span.end_ns == pair[0] => span.end_ns = pair[1],
            _ => idle.push(StalledSpan { start_ns: pair[0], end_ns: pair[1] }),
        }
    }
    idle.retain(|span| span.end_ns - span.start_ns >= MIN_SEEN_NS);
    let neighbours = |span: &StalledSpan| StalledSpan {
        start_ns: cuts.iter().rev().copied().find(|&cut| cut < span.start_ns).unwrap_or(span.start_ns),
        end_ns: cuts.iter().copied().find(|&cut| cut > span.end_ns).unwrap_or(span.end_ns),
    };
    let stalls = idle.into_iter().filter_map(|span| exact(row, &span, &neighbours(&span)));
    let is_long = |span: &StalledSpan| span.end_ns - span.start_ns >= MIN_NS;
    stalls.filter(|span| is_long(span) && !is_explained(record, row, span)).collect()
}

/// From the last request or completion before a span to the first completion after it, by those who waited through it. Both
/// lie within `around`: the intervals beside the span have completions.
fn exact(row: &RecordRow<'_>, span: &StalledSpan, around: &StalledSpan) -> Option<StalledSpan> {
    let waiting = waiting(row, span);
    let end_of = |slow: &SlowRequest| slow.start_ns.saturating_add(slow.lat_ns);
    let slowest = row.jobs().iter().flat_map(|job| &job.slowest);
    let before = slowest.map(end_of).filter(|&end| end <= span.start_ns);
    let start_ns = waiting.iter().map(|slow| slow.start_ns).max();
    let end_ns = waiting.iter().map(|slow| end_of(slow)).min();
    match start_ns.zip(end_ns) {
        Some((start_ns, end_ns)) => {
            let start_ns = before.fold(start_ns, u64::max).max(around.start_ns);
            let end_ns = end_ns.min(around.end_ns);
            Some(if end_ns > start_ns { StalledSpan { start_ns, end_ns } } else { *span })
        }
        None => row.jobs().iter().any(|job| job.stuck).then_some(*span),
    }
}

/// True where a device needs so long for the requests in flight at the rate that it had outside of the span, or, of a test with
/// hardly more requests than were in flight, at the rate of another test: those of a slow device may all complete at the end. One
/// that never completed, in the last span, is explained by no rate.
fn is_explained(record: &RunRecord, row: &RecordRow<'_>, span: &StalledSpan) -> bool {
    let depth: f64 = row.jobs().iter().map(|job| f64::from(job.iodepth())).sum();
    let ios = row.summary.total.as_ref().map_or(0, |total| total.ios) as f64;
    let length = span.end_ns - span.start_ns;
    let other_s = row.summary.measured_ns.saturating_sub(length) as f64 / 1e9;
    let last = row.jobs().iter().flat_map(|job| &job.measured.series).map(|interval| interval.end_ns).max();
    let is_stuck = row.jobs().iter().any(|job| job.stuck) && last.is_some_and(|last| span.end_ns >= last);
    // The completion that ended the span is one of it.
    let usual_s = if ios > 1.0 { depth * other_s / (ios - 1.0) } else { 0.0 };
    let of_others = if ios <= 2.0 * depth { queue_s(record, row, depth) } else { None };
    let usual_s = of_others.unwrap_or(0.0).max(usual_s);
    !is_stuck && length as f64 / 1e9 <= UNEVEN * usual_s
}

/// The time for a queue of the row's requests at the rate of the quickest other test, by requests and by bytes, s.
fn queue_s(record: &RunRecord, row: &RecordRow<'_>, depth: f64) -> Option<f64> {
    let bytes = depth * row.block_bytes()? as f64;
    let others = record.tests.iter().filter(|test| test.id != row.test.id);
    let time = |total: OpSummary| (depth / total.iops).max(bytes / total.bytes_per_second);
    others.filter_map(|test| TestSummary::new(test).total).map(time).reduce(f64::min)
}

fn whether_idle(interval: &Interval) -> (StalledSpan, bool) {
    let is_idle = interval.ops().iter().all(|op| op.ios == 0);
    (StalledSpan { start_ns: interval.start_ns, end_ns: interval.end_ns }, is_idle)
}

/// The stalls that the runner recorded in a span, worker by worker.
fn seen<'r>(row: &'r RecordRow<'_>, span: &StalledSpan) -> Vec<&'r Stall> {
    let within = |stall: &&Stall| {
        stall.start_ns < span.end_ns && stall.start_ns.saturating_add(stall.length_ns) > span.start_ns
    };
    row.jobs().iter().filter_map(|job| job.stalls.iter().find(within)).collect()
}

/// The requests that waited through a span.
fn waiting<'r>(row: &'r RecordRow<'_>, span: &StalledSpan) -> Vec<&'r SlowRequest> {
    let length = span.end_ns - span.start_ns;
    let covers = |slow: &&SlowRequest| {
        let end = slow.start_ns.saturating_add(slow.lat_ns).min(span.end_ns);
        end.saturating_sub(slow.start_ns.max(span.start_ns)) >= length / 10 * 9
    };
    let slowest = |job: &'r JobRecord| job.slowest.iter();
    row.jobs().iter().flat_map(slowest).filter(covers).collect()
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;

    use super::*;
    use crate::fixture::{SECOND_NS, TestLoad, record};
    use crate::rows::rows;

    fn with(zeros: usize, lat_s: u64) -> RunRecord {
        let seconds = [vec![1.0; 3], vec![0.0; zeros], vec![1.0; 4]].concat();
        let mut run = record(&[TestLoad { seconds, depth: 16, ..TestLoad::default() }]);
        run.tests[0].jobs[0].slowest = vec![SlowRequest {
            op: Op::Read,
            start_ns: 3 * SECOND_NS - 1000,
            lat_ns: lat_s * SECOND_NS,
            offset: 8192,
            depth: 16,
        }];
        run
    }

    fn reported(run: &RunRecord) -> Option<Finding> {
        // A device that stands still is not one of an uneven rate as well.
        assert!(
            findings(run, &rows(run)[0]).is_none()
                || crate::findings::evenness::findings(run, &rows(run)[0]).is_none()
        );
        findings(run, &rows(run)[0])
    }

    #[test]
    fn nothing_for_two_seconds() {
        let check = |zeros, lat, expected: bool| {
            assert_eq!(reported(&with(zeros, lat)).is_some(), expected, "{zeros} {lat}")
        };
        check(0, 0, false);
        check(1, 1, false);
        check(2, 2, true);
        // Nothing was in flight: a pause of the job's own.
        check(5, 1, false);
        let found = reported(&with(20, 20)).unwrap();
        assert_eq!(
            found.claim,
            "no I/O completed for 20 s, starting at 3 s, with 16 in flight (at offset 8,192)."
        );
        assert_eq!(found.evidence["length_ns"].as_u64(), Some(20 * SECOND_NS));
    }

    /// A request of 1 MiB every ten seconds, 32 in flight, all issued at the start.
    #[test]
    fn requests_that_a_low_rate_makes_wait_are_no_stall() {
        let every_tenth = |at: usize| if at % 10 == 9 { 1.0 } else { 0.0 };
        let seconds: Vec<f64> = (0..320).map(every_tenth).collect();
        let load =
            TestLoad { rw: "write", bs: 1 << 20, depth: 32, iops: 1.0, seconds, ..TestLoad::default() };
        let mut run = record(&[load]);
        let slow = |number: u64| SlowRequest {
            op: Op::Write,
            start_ns: 0,
            lat_ns: number * 10 * SECOND_NS,
            offset: number << 20,
            depth: 32,
        };
        run.tests[0].jobs[0].slowest = (1..=32).rev().map(slow).collect();
        assert_eq!(reported(&run), None);
        // The same device, for once without a completion for 100 s: ten times as long as usual for one of 2 in flight.
        let job = &mut run.tests[0].jobs[0];
        job.plan.depth = fathom_model::plan::DepthPlan::new(2);
        for interval in &mut job.measured.series[100..200] {
            (interval.write.ios, interval.write.bytes) = (0, 0);
        }
        job.slowest.retain(|slow| slow.lat_ns <= 100 * SECOND_NS || slow.lat_ns > 200 * SECOND_NS);
        let found = reported(&run).expect("it took much longer than usual");
        let length = found.evidence["length_ns"].as_f64().unwrap() / 1e9;
        assert!((99.0..=111.0).contains(&length), "{}", found.claim);
        assert_eq!(found.evidence["stalls"].as_u64(), Some(1));
    }

    #[test]
    fn a_single_request_is_explained_by_the_rate_of_other_tests() {
        let seconds = [vec![0.0; 10], vec![1.0]].concat();
        let single = TestLoad { bs: 1 << 20, iops: 1.0, seconds, ..TestLoad::default() };
        let reported = |iops: f64| {
            let mut run = record(&[single.clone(), TestLoad { id: "other", iops, ..TestLoad::default() }]);
            run.tests[0].jobs[0].slowest =
                vec![SlowRequest { op: Op::Read, start_ns: 0, lat_ns: 10_400_000_000, offset: 0, depth: 1 }];
            findings(&run, &rows(&run)[0]).is_some()
        };
        // 1 MiB at 100 KB/s takes ten seconds.
        assert!(!reported(25.0));
        assert!(reported(2000.0));
    }

    #[test]
    fn a_request_that_never_came_back() {
        let mut run = with(5, 0);
        assert_eq!(reported(&run), None);
        run.tests[0].jobs[0].stuck = true;
        assert_eq!(reported(&run).unwrap().severity, Severity::Error);
        let (start_ns, length_ns) = (3 * SECOND_NS, 5 * SECOND_NS);
        run.tests[0].jobs[0].stalls =
            vec![Stall { start_ns, length_ns, depth: 7, offsets: vec![4096], ..Stall::default() }];
        let found = reported(&run).unwrap();
        assert!(found.claim.contains("with 7 in flight (at offset 4,096)"), "{}", found.claim);
    }

    #[test]
    fn another_worker_that_goes_on_is_no_stall() {
        let mut run = with(5, 5);
        let mut other = run.tests[0].jobs[0].clone();
        for interval in &mut other.measured.series {
            interval.read.ios = 10;
        }
        run.tests[0].jobs.push(other);
        assert_eq!(reported(&run), None);
    }
}
