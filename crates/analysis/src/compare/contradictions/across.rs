//! Figures of several tests, or of several sources, that do not go together or tell of one limit.

use fathom_model::units;

use super::super::rows::{ComparedRow, RunTest};
use super::super::source::LABELS;
use super::{Contradiction, ContradictionKind};
use crate::plateau::AGREE;
use crate::say::{count, mebibytes};

/// Rates differ by at least this where no common limit holds them.
const APART: f64 = 0.10;
/// Tests in which rates have to agree before they tell of a common limit.
const LEAST_TESTS: usize = 2;
/// Requests from here on are held by limits on bandwidth.
const LARGE_BLOCK: f64 = 65_536.0;
/// The same requests are at most so many times faster in another test.
const SAME_PATH: f64 = 2.0;
/// A test of a file is at most so many times faster than the fastest place of the volume.
const SAME_SURFACE: f64 = 1.5;

/// Between the tests of one source.
pub(super) fn of_source(rows: &[ComparedRow], source: usize) -> Vec<Contradiction> {
    let tests = || rows.iter().filter_map(|row| Some((row, row.usable(source).next()?)));
    let pairs = tests().flat_map(|one| tests().map(move |other| (one, other)));
    let pairs = pairs.filter(|((one, _), (other, _))| one.test != other.test);
    let found = pairs.filter_map(|((one, first), (other, second))| {
        let (kind, claim) = latency_and_rate([(one, first), (other, second)])
            .or_else(|| faster_than_maximum([(one, first), (other, second)]))?;
        let tests = vec![one.test.clone(), other.test.clone()];
        Some(Contradiction {
            kind,
            sources: vec![LABELS[source]],
            tests,
            claim: format!("{}, {claim}", LABELS[source]),
        })
    });
    found.collect()
}

type TestPair<'a> = [(&'a ComparedRow, &'a RunTest); 2];

/// True of one random request at a time.
fn is_single(run: &RunTest) -> bool {
    let is_random = run.work.operation.as_ref().is_some_and(|operation| operation.starts_with("rand"));
    is_random && run.work.iodepth == Some(1) && run.work.jobs.unwrap_or(1) == 1
}

/// A latency of single requests, stated without a rate, against the rate of single requests of another test. Larger I/Os may take
/// longer in proportion to their size.
fn latency_and_rate([(one, first), (other, second)]: TestPair<'_>) -> Option<(ContradictionKind, String)> {
    if !is_single(first) || !is_single(second) || first.work.operation != second.work.operation {
        return None;
    }
    let total = |run: &RunTest| run.summary.total.clone();
    let (latency, rate) = (total(first)?, total(second)?);
    let mean = latency.lat_ns.mean.or(latency.clat_ns.mean).filter(|_| latency.iops == 0.0)?;
    let possible = 1e9 / mean;
    let larger = block_bytes(first).zip(block_bytes(second)).map(|(first, second)| (first / second).max(1.0));
    (rate.iops > possible * larger.unwrap_or(1.0) * SAME_PATH).then(|| {
        let cause = match larger {
            Some(_) => " A cache or a small test file answered one of them".to_owned(),
            None => unknown_cause(
                [(one, first), (other, second)],
                |run| block_bytes(run).is_none().then_some("block size"),
                "larger I/Os, a small test file or a cache",
                "block size and range",
            ),
        };
        let claim = format!(
            "{}: {} IOPS with one request at a time exceed the {} that the latency of {} in {} allows.{cause}",
            other.test,
            count(rate.iops),
            count(possible),
            units::latency(mean.round() as u64),
            one.test,
        );
        (ContradictionKind::LatencyAndRate, claim)
    })
}

/// A sequential read faster than the fastest place of the volume in another sequential read. At the latency of that place the rate
/// grows in proportion to the bytes in flight (Little), so only what is beyond that tells of a cache or a burst.
fn faster_than_maximum([(one, first), (other, second)]: TestPair<'_>) -> Option<(ContradictionKind, String)> {
    let is_read = |run: &RunTest| run.work.operation.as_deref() == Some("read");
    if !is_read(first) || !is_read(second) {
        return None;
    }
    let windows = first.imported.as_ref()?.entries.first()?.read.as_ref()?.bandwidth_windows.as_ref()?;
    let most = windows.max?.value;
    let rate = second.summary.read.as_ref()?.bytes_per_second;
    let more =
        bytes_in_flight(first).zip(bytes_in_flight(second)).map(|(first, second)| (second / first).max(1.0));
    (most > 0.0 && rate > most * more.unwrap_or(1.0) * SAME_SURFACE).then(|| {
        let cause = match more {
            Some(_) => " A cache, or a burst, answered it".to_owned(),
            None => unknown_cause(
                [(one, first), (other, second)],
                |run| match (block_bytes(run), run.work.iodepth, run.work.cache_mode.as_deref()) {
                    (None, ..) => Some("block size"),
                    (_, None, _) => Some("queue depth"),
                    (.., Some("direct")) => None,
                    _ => Some("readahead"),
                },
                "more bytes in flight, readahead, a cache or a burst",
                "block size and queue depth, with direct I/O",
            ),
        };
        let claim = format!(
            "{}: {} is more than {}, the maximum of {}.{cause}",
            other.test,
            mebibytes(rate),
            mebibytes(most),
            one.test
        );
        (ContradictionKind::FasterThanMaximum, claim)
    })
}

/// That the cause is unknown, since a condition of one of the tests is, with the candidates and the test that would decide.
fn unknown_cause(
    tests: TestPair<'_>,
    lacks: impl Fn(&RunTest) -> Option<&'static str>,
    candidates: &str,
    alike: &str,
) -> String {
    let lacking = tests.iter().find_map(|(row, run)| Some(format!("{} of {}", lacks(run)?, row.test)));
    let lacking = lacking.unwrap_or_default();
    format!(
        " The {lacking} is unknown, so the cause may be {candidates}. To decide, run both with the same {alike}"
    )
}

/// Bytes of each request; `None` where they differ, or the source does not say.
fn block_bytes(run: &RunTest) -> Option<f64> {
    units::parse_bytes(run.work.block_size.as_deref()?).ok().map(|bytes| bytes as f64)
}

/// Bytes in flight; `None` where they are unknown, as they are behind a readahead.
fn bytes_in_flight(run: &RunTest) -> Option<f64> {
    let jobs = run.work.jobs.unwrap_or(1);
    let requests = f64::from(run.work.iodepth? * jobs);
    (run.work.cache_mode.as_deref() == Some("direct")).then_some(block_bytes(run)? * requests)
}

/// How a test tells of a shared limit.
enum Evidence {
    /// The same bandwidth of large or sequential I/Os.
    Same(f64),
    /// Other rates of small ones.
    Apart,
}

/// Sources whose bandwidths agree in several tests of large blocks although their small I/Os do not: one limit holds both.
pub(super) fn shared_limit(rows: &[ComparedRow], [one, other]: [usize; 2]) -> Option<Contradiction> {
    let (mut agree, mut apart, mut rates, mut is_single) = (Vec::new(), 0, Vec::new(), true);
    for row in rows.iter().filter(|row| row.is_comparable(one, other)) {
        let Some((first, second)) = row.usable(one).next().zip(row.usable(other).next()) else { continue };
        match evidence(first, second) {
            Some(Evidence::Same(rate)) => {
                agree.push(row.test.clone());
                rates.push(rate);
                is_single &= first.work.iodepth.is_none_or(|depth| depth == 1);
            }
            Some(Evidence::Apart) => apart += 1,
            None => {}
        }
    }
    if agree.len() < LEAST_TESTS || apart == 0 {
        return None;
    }
    let (least, most) = rates
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
    let at =
        if most <= least * (1.0 + APART) { format!(" at about {}", mebibytes(most)) } else { String::new() };
    let alone = if is_single { ", or the latency of one request at a time" } else { "" };
    Some(Contradiction {
        kind: ContradictionKind::SharedLimit,
        sources: vec![LABELS[one], LABELS[other]],
        claim: format!(
            "{} and {} have the same bandwidth within {:.0} % in {}{at}, although their small I/Os differ: one limit, of the \
             instance or of both types{alone}, holds both",
            LABELS[one],
            LABELS[other],
            AGREE * 100.0,
            agree.join(" and ")
        ),
        tests: agree,
    })
}

fn evidence(first: &RunTest, second: &RunTest) -> Option<Evidence> {
    let (one, other) = (first.summary.total.as_ref()?, second.summary.total.as_ref()?);
    let log = |one: f64, other: f64| (one > 0.0 && other > 0.0).then(|| (other / one).ln().abs());
    match is_large(first)? {
        true => log(one.bytes_per_second, other.bytes_per_second)
            .filter(|log| *log <= AGREE)
            .map(|_| Evidence::Same(one.bytes_per_second)),
        // A single request at a time meets a latency, not a limit.
        false => log(one.iops, other.iops)
            .filter(|log| *log > APART && first.work.iodepth != Some(1))
            .map(|_| Evidence::Apart),
    }
}

/// Whether a limit on bandwidth holds the I/Os of a test; `None` where neither their size nor their order is known.
fn is_large(run: &RunTest) -> Option<bool> {
    let total = run.summary.total.as_ref()?;
    if total.ios > 0 && total.bytes > 0 {
        return Some(total.bytes as f64 / total.ios as f64 >= LARGE_BLOCK);
    }
    block_bytes(run).map(|size| size >= LARGE_BLOCK).or_else(|| {
        // Sequential I/Os are merged, or made large enough.
        let operation = run.work.operation.as_deref()?;
        (!operation.starts_with("rand")).then_some(true)
    })
}
