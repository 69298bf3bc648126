//! The suitability of a volume for the uses it is bought for.
//!
//! Each use is defined once, in [`uses`], and every run answers from that definition: a suite, some of its tests, a profile. A
//! verdict holds for the volume, not for the depth of a test: it is yes or no where the rows prove it, and inconclusive otherwise.

mod measured;
mod proof;
mod uses;

use fathom_model::{Nanos, units};
use fathom_record::{Activity, ActivityKind};
use serde::Serialize;

use crate::Analysis;
use crate::doubt::FindingDoubt;
use crate::findings::pauses::DevicePauses;
use crate::say::{block, count};
use crate::steady::rate_duration::Lasting;
use measured::{MeasuredOp, MeasuredRow, doubt_name, measured};
use proof::{Case, Proof, Stream, streams};
pub use uses::{NeededRate, USES, Use, UseNeed};

/// Whether a volume serves a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Suitability {
    /// An ordinary installation.
    Yes,
    /// A small installation, and no more.
    Marginal,
    /// Not even a small one.
    No,
    /// Not proven.
    Inconclusive,
}

impl Suitability {
    /// The word used in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            Suitability::Yes => "yes",
            Suitability::Marginal => "marginal",
            Suitability::No => "no",
            Suitability::Inconclusive => "inconclusive",
        }
    }
}

/// A rate and latency that a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OperatingPoint {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// 99th percentile of the slowest operation, ns.
    pub p99_ns: Option<u64>,
    /// Mean number of outstanding I/Os.
    pub queue_depth: f64,
    /// It follows from several tests, and was not measured as such.
    pub computed: bool,
}

/// The verdict on one use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conclusion {
    /// The use, by the name of its profile.
    pub id: &'static str,
    /// The same for people (`OLTP`).
    #[serde(rename = "use")]
    pub purpose: &'static str,
    /// Whether the volume serves it.
    pub verdict: Suitability,
    /// Why, without the use and the verdict.
    pub reason: String,
    /// The rate and latency that prove the verdict; `None` where it is inconclusive.
    pub point: Option<OperatingPoint>,
    /// What serves the use.
    pub full: UseNeed,
    /// What serves a small installation of it.
    pub small: UseNeed,
    /// The tests it rests on, by id.
    pub tests: Vec<String>,
    /// The verdict on rates that can be held indefinitely.
    pub sustained: Suitability,
    /// The rate that can be held after the burst that the verdict rests on, IOPS; of I/Os of the use where it needs a bandwidth.
    pub sustained_iops: Option<f64>,
    /// Time for which the burst lasts that the verdict rests on, ns.
    pub burst_ns: Option<u64>,
    /// Time for which the tests ran that the verdict rests on, ns: the shortest.
    pub measured_ns: u64,
    /// The run was to decide it, and did not: it has the load of the use, or all its operations in the standard suite.
    #[serde(skip)]
    pub is_open: bool,
}

impl Conclusion {
    /// The rate that can be held after the burst, in the unit of the need.
    fn sustained_rate(&self) -> Option<NeededRate> {
        let iops = self.sustained_iops?;
        Some(match self.full.rate {
            NeededRate::Iops(_) => NeededRate::Iops(iops),
            NeededRate::Bytes(_) => NeededRate::Bytes(iops * Use::named(self.id)?.mean_block()),
        })
    }

    /// The verdict with its duration: `yes for 31 min 35 s, then no (150 IOPS)`, `yes (measured for 10 s)`.
    pub fn verdict_text(&self) -> String {
        let (now, later) = (self.verdict.name(), self.sustained.name());
        let after = self.sustained_rate().map(|rate| format!(" ({})", rate.text())).unwrap_or_default();
        let duration = |ns: u64| units::duration(Nanos(ns));
        match (self.burst_ns, self.verdict) {
            // What is left has its figure where it is that of the use's own I/Os.
            (Some(_), _)
                if self.verdict == self.sustained && self.point.is_some_and(|point| !point.computed) =>
            {
                format!("{now}, also after the burst{after}")
            }
            _ if self.verdict == self.sustained => now.to_owned(),
            (Some(ns), Suitability::Inconclusive) => {
                format!("inconclusive for {}, then {later}{after}", duration(ns))
            }
            (Some(ns), _) => format!("{now} for {}, then {later}{after}", duration(ns)),
            (None, Suitability::Inconclusive) => format!("inconclusive, sustained {later}{after}"),
            (None, _) => format!("{now} (measured for {})", duration(self.measured_ns)),
        }
    }
}

/// The suite that asks for every use.
const STANDARD: &str = "standard";

pub(crate) fn conclude(analysis: &Analysis<'_>) -> Vec<Conclusion> {
    let header = &analysis.record.header;
    let kind = header.activity.kind();
    let has_verdicts = matches!(kind, ActivityKind::Bench | ActivityKind::Sweep);
    let rows = measured(analysis);
    if !has_verdicts || header.fleet.is_some() || rows.is_empty() || !analysis.together().is_empty() {
        return Vec::new();
    }
    let sustained: Vec<MeasuredRow> = rows.iter().map(MeasuredRow::sustained).collect();
    let rows: Vec<MeasuredRow> = rows.iter().map(MeasuredRow::with_full_credits).collect();
    let pauses = DevicePauses::of(analysis.rows());
    let asks_all =
        matches!(&header.activity, Activity::Bench(bench) if bench.suite.as_deref() == Some(STANDARD));
    let of_use = |purpose: &'static Use| {
        let case = Case { purpose, rows: &rows, pauses: pauses.as_ref(), kind, ignores_doubt: false };
        let verdict = |rows: &[MeasuredRow]| conclusion(&Case { rows, ..case });
        let found = with_duration(purpose, verdict(&rows), verdict(&sustained), &rows);
        let is_asked = match rows.iter().any(|row| row.is_load_of(purpose)) {
            true => kind == ActivityKind::Bench,
            false => asks_all && missing(&case).is_empty(),
        };
        Conclusion { is_open: is_asked && found.verdict == Suitability::Inconclusive, ..found }
    };
    USES.iter().map(of_use).collect()
}

/// What is proven of a need.
#[derive(Debug)]
struct NeedProof {
    shown: Option<Proof>,
    disproved: Option<Proof>,
}

impl NeedProof {
    fn of(case: &Case<'_>, need: &UseNeed) -> NeedProof {
        NeedProof { shown: case.shown(need), disproved: case.disproved(need) }
    }

    fn is_met(&self) -> Option<bool> {
        match (&self.shown, &self.disproved) {
            (Some(_), None) => Some(true),
            (None, Some(_)) => Some(false),
            _ => None,
        }
    }
}

fn conclusion(case: &Case<'_>) -> Conclusion {
    let purpose = case.purpose;
    let [full, small] = [purpose.full, purpose.small].map(|need| NeedProof::of(case, &need));
    let (verdict, proof, reason) = match (full.is_met(), small.is_met()) {
        (Some(true), _) => (Suitability::Yes, full.shown, None),
        (_, Some(false)) => (Suitability::No, small.disproved, None),
        (Some(false), Some(true)) => {
            let reason = |proof: &Option<Proof>| proof.as_ref().map(|proof| proof.reason.clone());
            let parts = reason(&small.shown).zip(reason(&full.disproved));
            let text = parts.map(|(shown, missed)| format!("{shown}, for a small installation; {missed}"));
            (Suitability::Marginal, small.shown, text)
        }
        _ => (Suitability::Inconclusive, None, Some(inconclusive(case, &full, &small))),
    };
    let (point, known, tests) = match proof {
        Some(proof) => (Some(proof.point), proof.reason, proof.tests),
        None => (None, String::new(), Vec::new()),
    };
    Conclusion {
        id: purpose.name,
        purpose: purpose.title,
        verdict,
        reason: reason.unwrap_or(known),
        point,
        full: purpose.full,
        small: purpose.small,
        tests,
        sustained: verdict,
        sustained_iops: None,
        burst_ns: None,
        measured_ns: 0,
        is_open: false,
    }
}

/// Adds the verdict on the rates that the volume sustains, `later`, and how long the burst before them lasts.
fn with_duration(purpose: &Use, now: Conclusion, later: Conclusion, rows: &[MeasuredRow]) -> Conclusion {
    // A burst is no slower than what remains after it.
    if now.verdict == Suitability::Inconclusive && later.verdict == Suitability::Yes {
        return with_duration(purpose, later.clone(), later, rows);
    }
    // The tests of either verdict: where nothing is proven during the burst, those of what remains.
    let tests = if now.tests.is_empty() { &later.tests } else { &now.tests };
    let of_tests = || rows.iter().filter(|row| tests.contains(&row.test));
    // The verdict rests on what was left of a burst whose end was seen.
    let is_burst =
        |row: &&MeasuredRow| row.duration.label == Lasting::Burst && row.duration.left_iops.is_none();
    let bursts: Vec<&MeasuredRow> = of_tests().filter(is_burst).collect();
    Conclusion {
        sustained: later.verdict,
        sustained_iops: left(purpose, &bursts),
        burst_ns: bursts.iter().filter_map(|row| row.duration.lasts_ns).min(),
        measured_ns: of_tests().map(|row| row.duration.measured_ns).min().unwrap_or_default(),
        ..now
    }
}

/// What remains of the bursts, in I/Os of the use: by the rows with blocks such as it has, where there are any.
fn left(purpose: &Use, bursts: &[&MeasuredRow]) -> Option<f64> {
    let mean_block = purpose.mean_block();
    let is_bandwidth = matches!(purpose.full.rate, NeededRate::Bytes(_));
    let is_alike = |row: &MeasuredRow| match is_bandwidth {
        true => row.mean_block() >= mean_block / 2.0,
        false => row.mean_block() <= mean_block * 2.0,
    };
    let left = |row: &&MeasuredRow| {
        let blocks = if is_bandwidth { row.mean_block() / mean_block } else { 1.0 };
        Some(row.duration.after_burst()? * blocks)
    };
    let alike = bursts.iter().filter(|row| is_alike(row)).filter_map(left).reduce(f64::min);
    alike.or_else(|| bursts.iter().filter_map(left).reduce(f64::min))
}

/// Why nothing is proven, and what would decide.
fn inconclusive(case: &Case<'_>, full: &NeedProof, small: &NeedProof) -> String {
    let purpose = case.purpose;
    for need in [full, small] {
        if let (Some(shown), Some(disproved)) = (&need.shown, &need.disproved) {
            return format!("tests disagree: {}; {}", shown.reason, disproved.reason);
        }
    }
    if let Some(doubt) = doubt(case) {
        return doubt;
    }
    let (missing, needs) = (missing(case), purpose.full.text());
    let known = match (&small.shown, &full.disproved) {
        (Some(proof), _) => format!("{}, for a small installation (needs {needs})", proof.reason),
        (None, Some(proof)) => {
            format!("{}; a small installation needs {}", proof.reason, purpose.small.text())
        }
        _ if !missing.is_empty() => format!("{} not measured (needs {needs})", missing.join(" and ")),
        (None, None) => format!("{} (needs {needs})", nearest(case)),
    };
    format!("{known}; {}", remedy(case))
}

/// What would decide where nothing is proven.
fn remedy(case: &Case<'_>) -> String {
    let purpose = case.purpose;
    let alike: Vec<&MeasuredRow> = case.rows.iter().filter(|row| row.is_load_of(purpose)).collect();
    // The use's own profile measures at the needed rate as well.
    let is_measured = match case.kind {
        ActivityKind::Sweep => !alike.is_empty(),
        _ => alike.iter().any(|row| row.is_paced || row.test.starts_with(purpose.name)),
    };
    if let Some(row) = alike.iter().find(|row| row.is_exhausted()) {
        let refill =
            row.duration.refill_ns.map(|ns| format!(" (they refill in {})", units::duration(Nanos(ns))));
        return format!("measure with full burst credits{}", refill.unwrap_or_default());
    }
    if is_close(case) {
        return "the rate is too close to the need".to_owned();
    }
    match (is_measured, case.kind) {
        (true, ActivityKind::Sweep) => "use a longer --budget, or run `fathom bench`".to_owned(),
        (true, _) => "use a longer --runtime".to_owned(),
        (false, ActivityKind::Sweep) => format!("run `fathom bench --profile {}`", purpose.name),
        (false, _) => format!("run --profile {}", purpose.name),
    }
}

/// A row with the load of the use misses a need by more than meets it and by less than disproves it, which a longer run does
/// not change.
fn is_close(case: &Case<'_>) -> bool {
    let rates = || case.rows.iter().filter(|row| row.is_load_of(case.purpose)).map(MeasuredRow::iops);
    [case.purpose.full, case.purpose.small].iter().any(|need| {
        let missed = |rate: f64| 1.0 - rate / case.purpose.iops(need);
        rates().any(|rate| (proof::MEETS..=proof::CLEAR).contains(&missed(rate)))
    })
}

/// The operations of the use that no row has.
fn missing(case: &Case<'_>) -> Vec<&'static str> {
    let rows_of = |stream: &Stream| {
        let Stream { is_read, is_commit, .. } = *stream;
        let alike = move |row: &&MeasuredRow| {
            row.op(is_read).is_some() && (!is_commit || row.sync == measured::SyncPattern::Each)
        };
        case.rows.iter().filter(alike)
    };
    // Sequential I/O may be cheaper than random I/O.
    let is_alike = |row: &MeasuredRow, stream: &Stream| {
        row.is_random || case.purpose.sequential || stream.is_commit || row.is_load_of(case.purpose)
    };
    let is_missing = |stream: &Stream| !rows_of(stream).any(|row| is_alike(row, stream));
    let name = |stream: Stream| match (stream.is_read, rows_of(&stream).next().is_some()) {
        (true, true) => "random reads",
        (true, false) => "reads",
        _ if stream.is_commit => "commits",
        (false, true) => "random writes",
        (false, false) => "writes",
    };
    streams(case.purpose).into_iter().filter(is_missing).map(name).collect()
}

/// The verdict that rows in doubt would give, and the doubt.
fn doubt(case: &Case<'_>) -> Option<String> {
    let all = Case { ignores_doubt: true, ..*case };
    let [full, small] = [case.purpose.full, case.purpose.small].map(|need| NeedProof::of(&all, &need));
    let in_doubt = |proof: Option<Proof>, of: fn(&MeasuredRow) -> Option<&'static FindingDoubt>| {
        let proof = proof?;
        let mut rows = case.rows.iter().filter(|row| proof.tests.contains(&row.test));
        let doubt = rows.find_map(of)?;
        Some(format!("{}; in doubt: {}", proof.reason, doubt_name(doubt)))
    };
    // Figures that may be too good show nothing, and those that may be too bad disprove nothing.
    [full, small].into_iter().find_map(|need| {
        in_doubt(need.shown, |row| row.flattered).or_else(|| in_doubt(need.disproved, |row| row.impeded))
    })
}

/// The row nearest to the use: that of the highest bandwidth, or where a latency is needed that of the lowest one, of the part of the
/// load that has the higher one.
fn nearest(case: &Case<'_>) -> String {
    let ops_of = |stream: Stream| {
        let rows =
            case.rows.iter().filter(move |row| !stream.is_commit || row.sync == measured::SyncPattern::Each);
        rows.flat_map(move |row| Some((row, row.op(stream.is_read)?)))
    };
    let streams = streams(case.purpose).into_iter();
    let Some(limit_ns) = case.purpose.full.p99_ns else {
        let bytes = |op: &MeasuredOp| op.low * op.largest() as f64;
        let best = streams.flat_map(ops_of).max_by(|one, other| bytes(one.1).total_cmp(&bytes(other.1)));
        return best.map_or_else(String::new, |(row, op)| {
            let rate = NeededRate::Bytes(bytes(op)).text();
            format!("{rate} in blocks of {}, QD {}", block(op.largest()), count(row.depth))
        });
    };
    let best = |stream: Stream| {
        let known = ops_of(stream).filter_map(|(row, op)| Some((op.p99_ns()?, row, stream)));
        known.min_by_key(|(ns, ..)| *ns)
    };
    let best = streams.filter_map(best).max_by_key(|(ns, ..)| *ns);
    best.map_or_else(String::new, |(found, row, stream)| {
        let what = if stream.is_commit { "write and sync p99" } else { "p99" };
        let queue = if found > limit_ns && row.is_queue { ", mostly queueing delay" } else { "" };
        let (latency, iops) = (units::latency(found), count(row.iops()));
        format!("{what} {latency} at {iops} IOPS, QD {}{queue}", count(row.depth))
    })
}

#[cfg(test)]
mod tests;
