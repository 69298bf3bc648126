//! Figures of one source that cannot all be right, and figures of several that tell of one limit.

mod across;
mod stated;
mod within;

use serde::Serialize;

use super::rows::ComparedRow;
use super::source::{ComparedSource, LABELS, SourceKind};

/// A contradiction or a coincidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contradiction {
    /// What it is.
    pub kind: ContradictionKind,
    /// The sources, by their letters.
    pub sources: Vec<&'static str>,
    /// The tests.
    pub tests: Vec<String>,
    /// One sentence.
    pub claim: String,
}

/// The kinds of contradictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContradictionKind {
    /// Rate and latency against the queue depth.
    Little,
    /// Rate times block size against bandwidth.
    RateAndBandwidth,
    /// Bytes over runtime against bandwidth.
    BytesAndRuntime,
    /// Percentiles out of order.
    Percentiles,
    /// The latency of one test against the rate of another with one request at a time.
    LatencyAndRate,
    /// A sequential read faster than the fastest place of the volume.
    FasterThanMaximum,
    /// What a text states against what it measured.
    Stated,
    /// Two volumes of the same bandwidth whose small I/Os differ.
    SharedLimit,
}

/// All of them: within each run, then between the tests of each source, then between pairs of sources.
pub fn contradictions(sources: &[ComparedSource], rows: &[ComparedRow]) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for row in rows {
        for (source, runs) in row.runs.iter().enumerate() {
            for run in runs.iter().filter(|run| run.is_usable()) {
                let of_run = within::of_run(run).into_iter().chain(stated::of_run(run));
                found.extend(of_run.map(|(kind, claim)| Contradiction {
                    kind,
                    sources: vec![LABELS[source]],
                    tests: vec![row.test.clone()],
                    claim: format!("{}, {}: {claim}", LABELS[source], row.test),
                }));
            }
        }
    }
    for source in 0..sources.len() {
        found.extend(across::of_source(rows, source));
    }
    for one in 0..sources.len() {
        // Models have nothing in common that they could share.
        let is_real = |source: &usize| sources[*source].kind != SourceKind::Simulated;
        let pairs =
            (one + 1..sources.len()).map(|other| [one, other]).filter(|pair| pair.iter().all(is_real));
        found.extend(pairs.filter_map(|pair| across::shared_limit(rows, pair)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::ContradictionKind::{BytesAndRuntime, Little, Percentiles, RateAndBandwidth, SharedLimit};
    use super::*;
    use crate::compare::rows::{RunTest, matched_rows};
    use crate::compare::source::SourceRun;
    use crate::compare::work::Work;
    use crate::fixture::{TestLoad, record};
    use fathom_record::OpSummary;
    use fathom_record::import::{Figure, ImportedEntry, ImportedOp, ImportedTest, RateWindows};

    fn source(loads: &[TestLoad]) -> ComparedSource {
        let runs = vec![SourceRun { origin: "a run".to_owned(), record: record(loads) }];
        ComparedSource { runs, ..ComparedSource::default() }
    }

    fn kinds(change: impl Fn(&mut RunTest)) -> Vec<ContradictionKind> {
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
        assert_eq!(kinds(|_| {}), []);
        // An access time of 20 ms beside 1,000 IOPS at depth 4.
        assert_eq!(kinds(|run| read(run).lat_ns.mean = Some(20e6)), [Little]);
        // 0.168 µs for 168 µs.
        assert_eq!(kinds(|run| read(run).lat_ns.mean = Some(168.0)), [Little]);
        let pauses = |run: &mut RunTest| {
            run.work.rate = Some("pauses of 1.00 ms".to_owned());
            read(run).lat_ns.mean = Some(168.0);
        };
        assert_eq!(kinds(pauses), []);
        assert_eq!(kinds(|run| read(run).bytes_per_second *= 1.2), [RateAndBandwidth, BytesAndRuntime]);
        assert_eq!(kinds(|run| run.summary.measured_ns *= 4), [BytesAndRuntime]);
        assert_eq!(kinds(|run| read(run).lat_ns.p50 = Some(9_000_000_000)), [Percentiles]);
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
        assert_eq!(of(source(&[small(2000.0), large("read", 60.5), large("write", 59.5)])), [SharedLimit]);
        assert_eq!(of(source(&[small(1000.0), large("read", 60.5), large("write", 59.5)])), []);
        assert_eq!(of(source(&[small(2000.0), large("read", 60.5), large("write", 99.5)])), []);
    }

    /// The claim on a sequential read at `rate` MiB/s beside a surface whose fastest place has 15.8 MiB/s with one I/O of 64 KiB
    /// in flight.
    fn beside_surface(rate: f64, surface: impl Fn(&mut Work), file: impl Fn(&mut Work)) -> Option<String> {
        const MIB: f64 = 1_048_576.0;
        let load = |id| TestLoad { id, rw: "read", bs: 65_536, ..TestLoad::default() };
        let sources = [source(&[load("surface"), load("file")])];
        let mut rows = matched_rows(&sources);
        let max = Some(Figure { value: 15.8 * MIB, ..Figure::default() });
        let windows = Some(RateWindows { max, ..RateWindows::default() });
        let op = Some(ImportedOp { bandwidth_windows: windows, ..ImportedOp::default() });
        let entries = vec![ImportedEntry { read: op, ..ImportedEntry::default() }];
        rows[0].runs[0][0].imported = Some(ImportedTest { entries, ..ImportedTest::default() });
        read(&mut rows[1].runs[0][0]).bytes_per_second = rate * MIB;
        surface(&mut rows[0].runs[0][0].work);
        file(&mut rows[1].runs[0][0].work);
        let mut found = contradictions(&sources, &rows);
        found.retain(|one| one.kind == ContradictionKind::FasterThanMaximum);
        found.pop().map(|one| one.claim)
    }

    #[test]
    fn a_cache_is_named_only_where_bytes_in_flight_do_not_explain_the_rate() {
        let as_it_is = |_: &mut Work| {};
        let cached = beside_surface(57.4, as_it_is, as_it_is).unwrap();
        assert!(cached.contains("A cache, or a burst, answered it"), "{cached}");
        let deeper = |work: &mut Work| work.iodepth = Some(4);
        assert_eq!(beside_surface(57.4, as_it_is, deeper), None, "four times the bytes in flight");
        assert!(beside_surface(157.4, as_it_is, deeper).is_some_and(|claim| claim.contains("A cache")));
        let larger = |work: &mut Work| work.block_size = Some("1m".to_owned());
        assert_eq!(beside_surface(157.4, as_it_is, larger), None);
        for (unknown, name) in [
            ((|work| work.block_size = None) as fn(&mut Work), "block size of surface"),
            (|work| work.iodepth = None, "queue depth of surface"),
            (|work| work.cache_mode = None, "readahead of surface"),
            (|work| work.cache_mode = Some("buffered".to_owned()), "readahead of surface"),
        ] {
            let claim = beside_surface(57.4, unknown, as_it_is).unwrap();
            assert!(claim.contains(name) && !claim.contains("answered it"), "{claim}");
            assert!(claim.contains("run both with the same block size and queue depth"), "{claim}");
        }
    }

    #[test]
    fn a_latency_of_larger_requests_does_not_contradict_the_rate_of_smaller_ones() {
        let found = |change: fn(&mut Work)| {
            let load = |id| TestLoad { id, ..TestLoad::default() };
            let sources = [source(&[load("access"), load("rand-read")])];
            let mut rows = matched_rows(&sources);
            let access = &mut rows[0].runs[0][0];
            change(&mut access.work);
            let total = access.summary.total.as_mut().unwrap();
            (total.iops, total.lat_ns.mean) = (0.0, Some(6e6));
            let all = contradictions(&sources, &rows);
            let claim = all.into_iter().find(|one| one.kind == ContradictionKind::LatencyAndRate);
            claim.map_or_else(String::new, |one| one.claim)
        };
        assert!(found(|_| {}).contains("A cache or a small test file"));
        assert_eq!(found(|work| work.block_size = Some("64k".to_owned())), "");
        let unknown = found(|work| work.block_size = None);
        assert!(unknown.contains("block size of access is unknown"), "{unknown}");
    }
}
