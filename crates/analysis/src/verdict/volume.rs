//! What a run says of a volume first: the rates it reached and how long they last, what limits them, which uses it suits, which
//! findings spoil its figures, and what to do next.
//!
//! Everything here is chosen from what the analysis found; nothing is measured or judged anew.

use fathom_record::{Finding, FindingId, RunRecord, Severity, TestStatus};
use serde::Serialize;

use crate::Analysis;
use crate::conclusions::{Conclusion, Suitability};
use crate::doubt::DOUBTS;
use crate::estimate::Estimate;
use crate::findings::REQUESTS_WAIT;
use crate::findings::caps::LARGE_BYTES;
use crate::plateau::AGREE;
use crate::rows::{RecordRow, RowKind};
use crate::say::count;
use crate::steady::levels::before_fall;
use crate::steady::rate_duration::{DurationBasis, Lasting, RateDuration};
use crate::sweep::Sweep;
use crate::sweep::limits::DirectionLimits;
use crate::sweep::point::SweepPoint;

/// What a run says of a volume first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VolumeVerdict {
    /// The highest rates: IOPS of small blocks, then bandwidth of large ones; reads before writes, or both where they are alike.
    pub rates: Vec<RateVerdict>,
    /// The uses, by what the volume does for them.
    pub suitability: SuitabilityVerdict,
    /// The uses whose profiles were run, by their titles, and what was found of each.
    #[serde(skip)]
    pub asked: Vec<(&'static str, String)>,
    /// Findings that spoil figures, the gravest first.
    pub problems: Vec<FindingId>,
    /// What to do next.
    pub next: Option<String>,
}

/// A rate has room above the one that proves a use where it is this many times as high.
const MORE: f64 = 1.05;

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateUnit {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    BytesPerSecond,
}

/// Which I/Os a rate is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateDirection {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads reach it, and so do writes.
    ReadAndWrite,
}

/// The highest rate of one kind, how long it lasts and what limits it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateVerdict {
    /// What it counts.
    pub unit: RateUnit,
    /// Which I/Os it is of.
    pub direction: RateDirection,
    /// The rate as it was measured.
    pub measured: f64,
    /// The 95 % confidence interval of the rate, where there is one.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// How long it lasts.
    pub lasting: Lasting,
    /// The evidence for that.
    pub basis: Option<DurationBasis>,
    /// The volume whose published rule it is.
    pub volume: Option<String>,
    /// The rate that can be held indefinitely, where it is known.
    pub sustained: Option<f64>,
    /// Time for which the measured rate lasts, ns.
    pub lasts_ns: Option<u64>,
    /// Length of the measurement, ns.
    pub measured_ns: u64,
    /// Bytes per I/O.
    pub block_size_bytes: u64,
    /// Mean number of outstanding I/Os.
    pub queue_depth: f64,
    /// The least queue depth that reaches it, where that is known.
    pub queue_depth_enough: Option<f64>,
    /// The finding that says what limits it.
    pub limit: Option<FindingId>,
    /// The finding that puts it in doubt.
    pub doubt: Option<FindingId>,
    /// The test it rests on.
    pub test: String,
}

/// The uses by their names, each in one list.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SuitabilityVerdict {
    /// It serves them, also after a burst.
    pub suitable: Vec<&'static str>,
    /// It serves them as long as burst credits last.
    pub in_bursts: Vec<&'static str>,
    /// It serves small installations of them.
    pub marginal: Vec<&'static str>,
    /// It does not serve them.
    pub unsuitable: Vec<&'static str>,
    /// Nothing is proven.
    pub inconclusive: Vec<&'static str>,
    /// Those of them that the run was to decide.
    #[serde(skip)]
    pub open: Vec<&'static str>,
}

impl VolumeVerdict {
    /// Of the tests of a bench, or of several hosts.
    pub fn of_tests(analysis: &Analysis<'_>) -> VolumeVerdict {
        // A rate of one of several targets is not that of all.
        let is_single = analysis.together().is_empty();
        let rates = both_units(|unit, kind| of_rows(analysis, unit, kind).filter(|_| is_single));
        VolumeVerdict::new(analysis, rates)
    }

    /// Of the points of a sweep.
    pub fn of_sweep(analysis: &Analysis<'_>, sweep: &Sweep) -> VolumeVerdict {
        let rates = both_units(|unit, kind| of_limits(analysis.record, sweep, unit, kind));
        VolumeVerdict::new(analysis, rates)
    }

    fn new(analysis: &Analysis<'_>, rates: Vec<RateVerdict>) -> VolumeVerdict {
        let problems = problems(analysis.record).map(|found| found.id.clone());
        let mut problems: Vec<FindingId> = problems.collect();
        problems.dedup();
        VolumeVerdict {
            suitability: SuitabilityVerdict::of(analysis.conclusions()),
            asked: asked(analysis),
            next: next(analysis.record, &rates),
            problems,
            rates,
        }
    }

    /// True where it is known of each rate what can be held indefinitely.
    pub fn is_sustained(&self) -> bool {
        !self.rates.is_empty() && self.rates.iter().all(|rate| rate.held().is_some())
    }
}

/// The uses whose profiles were run, by their titles, and what was found of each.
fn asked(analysis: &Analysis<'_>) -> Vec<(&'static str, String)> {
    let is_asked = |one: &&Conclusion| analysis.rows().iter().any(|row| row.test.id == one.id);
    let of_use = |found: &Conclusion| (found.purpose, with_need(analysis, found));
    analysis.conclusions().iter().filter(is_asked).map(of_use).collect()
}

/// `yes: 1,031 IOPS at p99 502 us (needs 1,000 IOPS at p99 <= 5.00 ms); reaches 1,658 IOPS`.
fn with_need(analysis: &Analysis<'_>, found: &Conclusion) -> String {
    let mut text = format!("{}: {}", found.verdict_text(), found.reason);
    if !text.contains("(needs ") {
        text += &format!(" (needs {})", found.full.text());
    }
    let rows = analysis.rows().iter();
    let most = rows.filter(|row| row.test.id == found.id).map(|row| row.iops()).fold(0.0, f64::max);
    if found.point.is_some_and(|point| most > MORE * point.iops) {
        text += &format!("; reaches {} IOPS", count(most));
    }
    text
}

impl RateVerdict {
    /// What can be held indefinitely, where it is known.
    pub fn held(&self) -> Option<f64> {
        match self.lasting {
            // A rule allows more than was measured where too few I/Os were in flight.
            Lasting::Sustained => Some(self.measured),
            Lasting::Burst => self.sustained,
            Lasting::Inconclusive => None,
        }
    }

    /// True of rates that need no line each.
    fn is_like(&self, other: &RateVerdict) -> bool {
        let is_near = |one: f64, other: f64| (one / other - 1.0).abs() <= AGREE;
        self.lasting == other.lasting
            && is_near(self.measured, other.measured)
            && match (self.sustained, other.sustained) {
                (Some(one), Some(other)) => is_near(one, other),
                (one, other) => one.is_none() && other.is_none(),
            }
    }
}

/// The rates in both units and directions, those of reads and writes as one where they are alike.
fn both_units(rate: impl Fn(RateUnit, RowKind) -> Option<RateVerdict>) -> Vec<RateVerdict> {
    let of_unit = |unit| match [rate(unit, RowKind::Read), rate(unit, RowKind::Write)] {
        [Some(read), Some(write)] if read.is_like(&write) => {
            // What spoils or limits one of them is said of both.
            let limit = read.limit.clone().or_else(|| write.limit.clone());
            let doubt = read.doubt.clone().or_else(|| write.doubt.clone());
            vec![RateVerdict { direction: RateDirection::ReadAndWrite, limit, doubt, ..read }]
        }
        each => each.into_iter().flatten().collect(),
    };
    [RateUnit::Iops, RateUnit::BytesPerSecond].into_iter().flat_map(of_unit).collect()
}

fn direction(kind: RowKind) -> RateDirection {
    if kind == RowKind::Write { RateDirection::Write } else { RateDirection::Read }
}

/// The highest rate of the tests of one kind: small blocks show IOPS, large ones bandwidth.
fn of_rows(analysis: &Analysis<'_>, unit: RateUnit, kind: RowKind) -> Option<RateVerdict> {
    let rate = |row: &RecordRow<'_>| match unit {
        RateUnit::Iops => row.iops(),
        RateUnit::BytesPerSecond => row.bytes_per_second(),
    };
    let is_of = |row: &&RecordRow<'_>| {
        let is_large = row.block_bytes().is_some_and(|block| block >= LARGE_BYTES);
        row.test.status == TestStatus::Complete
            && row.kind() == Some(kind)
            && row.block_bytes().is_some()
            && is_large == (unit == RateUnit::BytesPerSecond)
            && !row.is_paced()
            && !row.is_synced()
            && rate(row) > 0.0
    };
    let best =
        analysis.tests().iter().filter(is_of).max_by(|one, other| rate(one).total_cmp(&rate(other)))?;
    // The rate of a burst is that before its end, not the mean of both.
    let before = (best.duration().label == Lasting::Burst).then(|| before_fall(&best.test)).flatten();
    let shown = before.as_ref().map(RecordRow::of);
    let shown = shown.as_ref().unwrap_or(best);
    let half = shown.summary.stability.map(|stability| stability.mean_ci95_fraction);
    let scale = rate(best) / best.iops();
    let verdict = RateVerdict {
        low: half.map(|half| rate(shown) * (1.0 - half)),
        high: half.map(|half| rate(shown) * (1.0 + half)),
        block_size_bytes: best.block_bytes()?,
        queue_depth: best.mean_queue_depth(),
        ..RateVerdict::new(unit, direction(kind), rate(shown), best.duration(), scale)
    };
    Some(verdict.with_findings(analysis.record, &best.test.id))
}

/// The limit of a sweep, or the most that it reached.
fn of_limits(record: &RunRecord, sweep: &Sweep, unit: RateUnit, kind: RowKind) -> Option<RateVerdict> {
    let (limits, durations) = match kind {
        RowKind::Write => (&sweep.limits.write, &sweep.rate_durations.write),
        _ => (&sweep.limits.read, &sweep.rate_durations.read),
    };
    let DirectionLimits { iops, bytes_per_second, undecided, .. } = limits;
    let (estimate, duration) = match unit {
        RateUnit::Iops => ((*iops)?, durations.iops.as_ref()?),
        RateUnit::BytesPerSecond => ((*bytes_per_second)?, durations.bytes_per_second.as_ref()?),
    };
    let (measured, low, high) = match estimate {
        Estimate::Known { value, low, high } => (value, Some(low), Some(high)),
        Estimate::AtLeast(low) => (low, Some(low), None),
        Estimate::AtMost(high) => (high, None, Some(high)),
    };
    let is_of = |point: &&SweepPoint| point.is_sound() && point.spot.rw.writes() == (kind == RowKind::Write);
    let rate = |point: &SweepPoint| match unit {
        RateUnit::Iops => point.iops,
        RateUnit::BytesPerSecond => point.bytes_per_second,
    };
    let at_it = sweep.points.iter().filter(is_of).filter(|point| rate(point) >= measured * (1.0 - AGREE));
    // The least depth that reaches it: of IOPS with the smallest blocks, of bytes with the largest.
    let order = |block: u64| if unit == RateUnit::Iops { i128::from(block) } else { -i128::from(block) };
    let point = at_it.min_by_key(|point| (point.spot.in_flight(), order(point.spot.block_size_bytes)))?;
    let limit = match (unit, estimate, limits.is_client_bound, undecided) {
        (_, _, true, _) => Some(FindingId::ClientCpuBound),
        (RateUnit::BytesPerSecond, _, _, Some(_)) => Some(FindingId::UnknownLimit),
        (RateUnit::Iops, Estimate::Known { .. }, ..) => Some(FindingId::IopsCap),
        (RateUnit::BytesPerSecond, Estimate::Known { .. }, ..) => Some(FindingId::BandwidthCap),
        _ => None,
    };
    // Credits of I/Os last longest with the largest blocks.
    let largest = durations.block_size_bytes.unwrap_or(point.spot.block_size_bytes);
    let scale = if unit == RateUnit::Iops { 1.0 } else { largest as f64 };
    let verdict = RateVerdict {
        low,
        high,
        block_size_bytes: point.spot.block_size_bytes,
        queue_depth: f64::from(point.spot.in_flight()),
        queue_depth_enough: limit.as_ref().map(|_| f64::from(point.spot.in_flight())),
        ..RateVerdict::new(unit, direction(kind), measured, duration, scale)
    };
    let found = verdict.with_findings(record, &point.spot.id());
    Some(RateVerdict { limit: found.limit.clone().or(limit), ..found })
}

impl RateVerdict {
    /// `scale` are units for each I/O.
    fn new(
        unit: RateUnit,
        direction: RateDirection,
        measured: f64,
        duration: &RateDuration,
        scale: f64,
    ) -> RateVerdict {
        RateVerdict {
            unit,
            direction,
            measured,
            low: None,
            high: None,
            lasting: duration.label,
            basis: duration.basis,
            volume: duration.volume.clone(),
            sustained: duration.sustained_iops.map(|iops| iops * scale),
            lasts_ns: duration.lasts_ns,
            measured_ns: duration.measured_ns,
            block_size_bytes: 0,
            queue_depth: 0.0,
            queue_depth_enough: None,
            limit: None,
            doubt: None,
            test: String::new(),
        }
    }

    /// What findings on `test` say of it.
    fn with_findings(self, record: &RunRecord, test: &str) -> RateVerdict {
        const LIMITS: [FindingId; 5] = [
            FindingId::ClientCpuBound,
            FindingId::InstanceCap,
            FindingId::IopsCap,
            FindingId::BandwidthCap,
            FindingId::UnknownLimit,
        ];
        let of_test = |id: &FindingId| {
            let is_it = |found: &&Finding| found.id == *id && found.tests.iter().any(|one| one == test);
            record.findings.iter().find(is_it)
        };
        let enough =
            of_test(&FindingId::Queueing).and_then(|found| found.evidence.get("depth_enough")?.as_f64());
        RateVerdict {
            limit: LIMITS.into_iter().find(|id| of_test(id).is_some()),
            doubt: DOUBTS
                .iter()
                .find(|doubt| of_test(&doubt.id).is_some_and(is_problem))
                .map(|doubt| doubt.id.clone()),
            queue_depth_enough: enough.or(self.queue_depth_enough),
            test: test.to_owned(),
            ..self
        }
    }
}

impl SuitabilityVerdict {
    fn of(all: &[Conclusion]) -> SuitabilityVerdict {
        let mut uses = SuitabilityVerdict::default();
        for one in all {
            let lasts = one.burst_ns.is_none() || one.sustained == one.verdict;
            let list = match one.verdict {
                Suitability::Yes if lasts => &mut uses.suitable,
                Suitability::Yes => &mut uses.in_bursts,
                Suitability::Marginal => &mut uses.marginal,
                Suitability::No => &mut uses.unsuitable,
                Suitability::Inconclusive if one.sustained == Suitability::No => &mut uses.unsuitable,
                Suitability::Inconclusive => &mut uses.inconclusive,
            };
            list.push(one.id);
            if one.is_open && one.sustained != Suitability::No {
                uses.open.push(one.id);
            }
        }
        uses
    }
}

/// Why a finding puts figures in doubt, in a few words; `None` of one that does not.
pub fn doubt_reason(id: &FindingId) -> Option<&'static str> {
    DOUBTS.iter().find(|doubt| doubt.id == *id).map(|doubt| doubt.reason)
}

/// True of a finding that spoils figures: it comes before them. That a test is short is said by its length.
pub fn is_problem(found: &Finding) -> bool {
    found.severity >= Severity::Warning
        || doubt_reason(&found.id).is_some() && found.id != FindingId::ShortRun
}

/// The findings that spoil figures, the gravest first.
pub fn problems(record: &RunRecord) -> impl Iterator<Item = &Finding> {
    record.findings.iter().filter(|found| is_problem(found))
}

/// What to do next: about what spoils the figures; else about the limit; else about what is not known yet.
fn next(record: &RunRecord, rates: &[RateVerdict]) -> Option<String> {
    let remedy = |found: &Finding| found.remedy.clone();
    if let Some(text) = problems(record).find_map(remedy) {
        return Some(text);
    }
    let of = |id: FindingId| record.findings.iter().filter(move |found| found.id == id);
    let limits = || of(FindingId::IopsCap).chain(of(FindingId::BandwidthCap));
    let volume = limits().find_map(|found| Some(found.evidence.get("next_volume")?.as_str()?.to_owned()));
    let limit = || limits().find_map(remedy).map(|text| without_wait(&text));
    let others = || {
        let each = [
            FindingId::InstanceCap,
            FindingId::UnknownLimit,
            FindingId::QueueTooShallow,
            FindingId::NotSaturated,
        ];
        each.into_iter().find_map(|id| of(id).find_map(remedy))
    };
    let is_open = rates.iter().any(|rate| rate.lasting == Lasting::Inconclusive);
    let target = &record.header.target;
    let can_be_identified = is_open && record.header.fleet.is_none() && !target.is_empty();
    let identify = || can_be_identified.then(|| format!("`fathom identify {target}` looks for bursts"));
    volume.or_else(limit).or_else(others).or_else(identify)
}

/// A remedy without the sentence that the verdict has said already.
fn without_wait(remedy: &str) -> String {
    let rest = remedy.strip_prefix(REQUESTS_WAIT).unwrap_or(remedy).trim_start_matches([';', '.', ' ']);
    let mut chars = rest.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, record};

    fn verdict(loads: &[TestLoad], findings: Vec<Finding>) -> VolumeVerdict {
        let mut run = record(loads);
        run.findings = findings;
        VolumeVerdict::of_tests(&Analysis::of(&run))
    }

    fn found(id: FindingId, severity: Severity, remedy: &str) -> Finding {
        let (tests, remedy) = (vec!["b".to_owned()], Some(remedy.to_owned()));
        Finding { id, severity, tests, remedy, ..Finding::default() }
    }

    #[test]
    fn the_highest_rate_of_small_and_of_large_blocks_stands_for_the_volume() {
        let loads = [
            TestLoad { id: "a", iops: 2_000.0, depth: 1, ..TestLoad::default() },
            TestLoad { id: "b", iops: 3_000.0, depth: 64, ..TestLoad::default() },
            TestLoad { id: "c", iops: 128.0, bs: 1 << 20, depth: 32, ..TestLoad::default() },
        ];
        let cap = found(
            FindingId::IopsCap,
            Severity::Info,
            "More depth or jobs only add queueing delay; a larger volume.",
        );
        let found = verdict(&loads, vec![cap]);
        let shown: Vec<(&str, f64, Option<FindingId>)> = found
            .rates
            .iter()
            .map(|rate| (rate.test.as_str(), rate.measured.round(), rate.limit.clone()))
            .collect();
        let bytes = f64::from(128 << 20);
        assert_eq!(shown, [("b", 3_000.0, Some(FindingId::IopsCap)), ("c", bytes, None)]);
        assert_eq!(found.rates[0].direction, RateDirection::Read);
        assert_eq!(found.next.as_deref(), Some("A larger volume."));
        assert!(!found.is_sustained());
    }

    #[test]
    fn what_spoils_the_figures_comes_before_a_larger_volume() {
        let loads = [TestLoad { id: "b", ..TestLoad::default() }];
        let cap = found(FindingId::IopsCap, Severity::Info, "Another volume.");
        let foreign = found(FindingId::ForeignIo, Severity::Warning, "Stop the other load.");
        let verdict = verdict(&loads, vec![foreign, cap]);
        assert_eq!(verdict.problems, [FindingId::ForeignIo]);
        assert_eq!(verdict.rates[0].doubt, Some(FindingId::ForeignIo));
        assert_eq!(verdict.next.as_deref(), Some("Stop the other load."));
    }
}
