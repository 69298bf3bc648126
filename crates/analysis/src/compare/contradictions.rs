//! Figures of one source that cannot all be right, and figures of several that tell of one limit.

use fathom_model::units;
use fathom_record::{LatencySummary, OpSummary};
use serde::Serialize;

use super::rows::{ComparedRow, RunTest};
use super::source::{ComparedSource, LABELS, SourceKind};
use super::work::Work;
use crate::plateau::AGREE;
use crate::say::{count, mebibytes, percent};

/// A contradiction or a coincidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contradiction {
    /// `little`, `rate-and-bandwidth`, `bytes-and-runtime`, `percentiles` or `shared-limit`.
    pub kind: &'static str,
    /// The sources, by their letters.
    pub sources: Vec<&'static str>,
    /// The tests.
    pub tests: Vec<String>,
    /// One sentence.
    pub claim: String,
}

/// Printed figures are rounded, and a run ends with what is in flight.
const ROUNDING: f64 = 0.05;
/// A mean number of outstanding I/Os above the depth by more than this is impossible.
const LITTLE: f64 = 0.10;
/// A job that only does I/O spends at least this share of its time waiting for it.
const IDLE: f64 = 0.10;
/// Rates differ by at least this where no common limit holds them.
const APART: f64 = 0.10;
/// Tests in which rates have to agree before they tell of a common limit.
const LEAST_TESTS: usize = 2;
/// Requests from here on are held by limits on bandwidth.
const LARGE_BLOCK: f64 = 65_536.0;

/// All of them: within each source, then between pairs.
pub fn contradictions(sources: &[ComparedSource], rows: &[ComparedRow]) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for row in rows {
        for (source, runs) in row.runs.iter().enumerate() {
            for run in runs.iter().filter(|run| run.is_usable()) {
                let of_run = within(run).into_iter();
                found.extend(of_run.map(|(kind, claim)| Contradiction {
                    kind,
                    sources: vec![LABELS[source]],
                    tests: vec![row.test.clone()],
                    claim: format!("{}, {}: {claim}", LABELS[source], row.test),
                }));
            }
        }
    }
    for one in 0..sources.len() {
        // Models have nothing in common that they could share.
        let is_real = |source: &usize| sources[*source].kind != SourceKind::Simulated;
        let pairs =
            (one + 1..sources.len()).map(|other| [one, other]).filter(|pair| pair.iter().all(is_real));
        found.extend(pairs.filter_map(|pair| shared_limit(rows, pair)));
    }
    found
}

/// What contradicts itself in one run of a test.
fn within(run: &RunTest) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let summary = &run.summary;
    let directions = [("reads", &summary.read), ("writes", &summary.write), ("trims", &summary.trim)];
    let mut outstanding = 0.0;
    for (name, op) in directions.into_iter().filter_map(|(name, op)| Some((name, op.as_ref()?))) {
        found.extend(rate_and_bandwidth(run, name, op));
        found.extend(bytes_and_runtime(summary.measured_ns, name, op));
        found.extend(disordered(name, latency(op)));
        outstanding += op.iops * latency(op).mean.unwrap_or(0.0) / 1e9;
    }
    found.extend(little(run, outstanding));
    found
}

/// Rate times latency against the number of I/Os that the jobs can and do keep outstanding (Little's law).
fn little(run: &RunTest, outstanding: f64) -> Option<(&'static str, String)> {
    let Work { iodepth, jobs, sync, rate, .. } = &run.work;
    let depth = iodepth.zip(*jobs).map(|(depth, jobs)| f64::from(depth) * f64::from(jobs));
    let iops = count(run.summary.total.as_ref().map_or(0.0, |total| total.iops));
    let at = format!("{iops} IOPS at the stated mean latency");
    if let Some(depth) = depth.filter(|depth| outstanding > depth * (1.0 + LITTLE) + 0.05) {
        let text =
            format!("{at} take {} outstanding I/Os, and the test has {}", count(outstanding), count(depth));
        return Some(("little", text));
    }
    // A job that neither waits nor syncs has an I/O outstanding nearly all the time.
    let is_busy = [sync, rate].into_iter().all(|part| part.as_deref() == Some("none"));
    let jobs = f64::from((*jobs)?);
    (is_busy && outstanding > 0.0 && outstanding < jobs * IDLE).then(|| {
        let share = percent(outstanding / jobs);
        (
            "little",
            format!("{at} keep the device busy for {share} of the time: rate and latency do not go together"),
        )
    })
}

fn latency(op: &OpSummary) -> &LatencySummary {
    if op.lat_ns.mean.is_some() { &op.lat_ns } else { &op.clat_ns }
}

/// The rate times the block size against the bandwidth.
fn rate_and_bandwidth(run: &RunTest, name: &str, op: &OpSummary) -> Option<(&'static str, String)> {
    let block = units::parse_bytes(run.work.block_size.as_deref()?).ok()? as f64;
    let by_rate = op.iops * block;
    let differs =
        by_rate > 0.0 && op.bytes_per_second > 0.0 && (by_rate / op.bytes_per_second).ln().abs() > ROUNDING;
    // An end of the range may be a smaller request.
    differs.then(|| {
        let claim = format!(
            "{} IOPS of {} are {}, but the bandwidth of its {name} is {}",
            count(op.iops),
            run.work.block_size.as_deref().unwrap_or_default(),
            mebibytes(by_rate),
            mebibytes(op.bytes_per_second)
        );
        ("rate-and-bandwidth", claim)
    })
}

/// Bytes over the runtime against the bandwidth.
fn bytes_and_runtime(measured_ns: u64, name: &str, op: &OpSummary) -> Option<(&'static str, String)> {
    let by_runtime = op.bytes as f64 * 1e9 / measured_ns as f64;
    let is_stated = op.bytes > 0 && measured_ns > 0 && op.bytes_per_second > 0.0;
    (is_stated && (by_runtime / op.bytes_per_second).ln().abs() > ROUNDING).then(|| {
        let claim = format!(
            "{} of {name} in {} are {}, but the stated bandwidth is {}",
            units::bytes(op.bytes),
            units::duration(fathom_model::Nanos(measured_ns)),
            mebibytes(by_runtime),
            mebibytes(op.bytes_per_second)
        );
        ("bytes-and-runtime", claim)
    })
}

/// Percentiles, and the mean, that are out of order.
fn disordered(name: &str, latency: &LatencySummary) -> Option<(&'static str, String)> {
    let percentiles = [
        ("min", latency.min),
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p95", latency.p95),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("max", latency.max),
    ];
    let known: Vec<(&str, f64)> =
        percentiles.iter().filter_map(|(name, ns)| Some((*name, (*ns)? as f64))).collect();
    let pair = known.windows(2).find(|pair| pair[0].1 > pair[1].1 * (1.0 + ROUNDING))?;
    let text = |(name, ns): (&str, f64)| format!("{name} {}", units::latency(ns as u64));
    Some(("percentiles", format!("latency of {name}: {} is above {}", text(pair[0]), text(pair[1]))))
}

/// Sources whose bandwidths agree in several tests of large blocks although their small I/Os do not: one limit holds both.
fn shared_limit(rows: &[ComparedRow], [one, other]: [usize; 2]) -> Option<Contradiction> {
    let (mut agree, mut apart, mut rates) = (Vec::new(), 0, Vec::new());
    for row in rows.iter().filter(|row| row.is_comparable(one, other)) {
        let rate = |source: usize| row.usable(source).find_map(|run| run.summary.total.clone());
        let Some((first, second)) = rate(one).zip(rate(other)) else { continue };
        if first.iops <= 0.0 || second.iops <= 0.0 || first.ios == 0 {
            continue;
        }
        let log = (second.bytes_per_second / first.bytes_per_second).ln().abs();
        let is_large = first.bytes as f64 / first.ios as f64 >= LARGE_BLOCK;
        match (is_large, log) {
            (true, log) if log <= AGREE => {
                agree.push(row.test.clone());
                rates.push(first.bytes_per_second);
            }
            // A single request at a time meets a latency, not a limit.
            (false, log) if log > APART && row.work_of(one).is_some_and(|work| work.iodepth != Some(1)) => {
                apart += 1;
            }
            _ => {}
        }
    }
    let is_one = agree.len() >= LEAST_TESTS && apart > 0;
    let (least, most) = rates
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
    let at =
        if most <= least * (1.0 + APART) { format!(" at about {}", mebibytes(most)) } else { String::new() };
    is_one.then(|| Contradiction {
        kind: "shared-limit",
        sources: vec![LABELS[one], LABELS[other]],
        claim: format!(
            "{} and {} have the same bandwidth within {:.0} % in {}{at}, although their small I/Os differ: one limit, of the \
             instance or of both types, holds both",
            LABELS[one],
            LABELS[other],
            AGREE * 100.0,
            agree.join(", ")
        ),
        tests: agree,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::rows::matched_rows;
    use crate::compare::source::SourceRun;
    use crate::fixture::{TestLoad, record};

    fn source(loads: &[TestLoad]) -> ComparedSource {
        let runs = vec![SourceRun { origin: "a run".to_owned(), record: record(loads) }];
        ComparedSource { runs, ..ComparedSource::default() }
    }

    fn kinds(change: impl Fn(&mut RunTest)) -> Vec<&'static str> {
        let sources = [source(&[TestLoad { depth: 4, iops: 1000.0, ..TestLoad::default() }])];
        let mut rows = matched_rows(&sources);
        change(&mut rows[0].runs[0][0]);
        contradictions(&sources, &rows).into_iter().map(|one| one.kind).collect()
    }

    fn read(run: &mut RunTest) -> &mut OpSummary {
        run.summary.read.as_mut().unwrap()
    }

    #[test]
    fn figures_that_cannot_all_be_right_are_found() {
        assert_eq!(kinds(|_| {}), [""; 0]);
        // An access time of 20 ms beside 1,000 IOPS at depth 4.
        assert_eq!(kinds(|run| read(run).lat_ns.mean = Some(20e6)), ["little"]);
        // 0.168 µs for 168 µs.
        assert_eq!(kinds(|run| read(run).lat_ns.mean = Some(168.0)), ["little"]);
        let pauses = |run: &mut RunTest| {
            run.work.rate = Some("pauses of 1.00 ms".to_owned());
            read(run).lat_ns.mean = Some(168.0);
        };
        assert_eq!(kinds(pauses), [""; 0]);
        assert_eq!(
            kinds(|run| read(run).bytes_per_second *= 1.2),
            ["rate-and-bandwidth", "bytes-and-runtime"]
        );
        assert_eq!(kinds(|run| run.summary.measured_ns *= 4), ["bytes-and-runtime"]);
        assert_eq!(kinds(|run| read(run).lat_ns.p50 = Some(9_000_000_000)), ["percentiles"]);
    }

    #[test]
    fn the_same_bandwidth_beside_different_rates_is_a_shared_limit() {
        let small = |iops| TestLoad { iops, depth: 32, ..TestLoad::default() };
        let large = |id, iops| TestLoad { id, bs: 1 << 20, iops, ..TestLoad::default() };
        let a = source(&[small(1000.0), large("read", 60.0), large("write", 60.0)]);
        let of = |other: ComparedSource| {
            let sources = [a.clone(), other];
            contradictions(&sources, &matched_rows(&sources))
                .into_iter()
                .map(|one| one.kind)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(source(&[small(2000.0), large("read", 60.5), large("write", 59.5)])), ["shared-limit"]);
        assert_eq!(of(source(&[small(1000.0), large("read", 60.5), large("write", 59.5)])), [""; 0]);
        assert_eq!(of(source(&[small(2000.0), large("read", 60.5), large("write", 99.5)])), [""; 0]);
    }
}
