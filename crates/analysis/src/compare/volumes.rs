//! What is known of each volume beyond single tests: sustained rate, burst, limit, price, and the uses that it serves.

use fathom_record::ActivityKind;
use serde::Serialize;

use super::rows::{ComparedRow, RunTest};
use super::source::{ComparedSource, LABELS, SourceKind, VolumePrice};
use crate::Analysis;
use crate::conclusions::{Suitability, USES};
use crate::steady::rate_duration::Lasting;

/// Rates, limits and price of a volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VolumeSummary {
    /// The source, by its letter.
    pub source: &'static str,
    /// As the user named it.
    pub name: String,
    /// Where its figures come from.
    pub kind: SourceKind,
    /// Where its runs were read from.
    pub runs: Vec<String>,
    /// What to know of its figures.
    pub notes: Vec<String>,
    /// Its type, where it is known.
    pub volume_type: Option<String>,
    /// The longest test, ns; 0 where no length is known.
    pub longest_test_ns: u64,
    /// It outlives its instance.
    pub persistent: Option<bool>,
    /// The highest rate that can be held indefinitely, IOPS.
    pub sustained_iops: Option<f64>,
    /// The highest bandwidth that can be held indefinitely, bytes per second.
    pub sustained_bytes_per_second: Option<f64>,
    /// The highest rate that was measured where none is known to be sustained, IOPS.
    pub reached_iops: Option<f64>,
    /// The highest bandwidth of that kind, bytes per second.
    pub reached_bytes_per_second: Option<f64>,
    /// `IOPS` or `bandwidth`: what limits the highest sustained rate.
    pub limited_by: Option<&'static str>,
    /// The fastest test that ran on burst credits.
    pub burst: Option<VolumeBurst>,
    /// What a month costs.
    pub price: Option<VolumePrice>,
    /// The price of 1,000 IOPS per month.
    pub price_per_1000_iops: Option<f64>,
    /// Its range by the interval of the rate, where that has one.
    pub price_per_1000_iops_interval: Option<[f64; 2]>,
    /// The price of 100 MiB/s per month, where large I/Os showed them.
    pub price_per_100_mib: Option<f64>,
}

impl VolumeSummary {
    /// Prices are put in relation to measured rates, of which a burst is not ruled out; else to sustained ones.
    pub fn is_priced_by_reached(&self) -> bool {
        self.reached_iops.is_some() || self.reached_bytes_per_second.is_some()
    }

    /// The bandwidth that prices are put in relation to, bytes per second.
    pub fn priced_bandwidth(&self) -> Option<f64> {
        self.sustained_bytes_per_second.or(self.reached_bytes_per_second)
    }
}

/// A test that ran on burst credits.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VolumeBurst {
    /// The test.
    pub test: String,
    /// Its rate, IOPS.
    pub iops: f64,
    /// How long it lasts, ns; `None` where it does not end, but is billed.
    pub lasts_ns: Option<u64>,
    /// The rate after it, IOPS.
    pub then_iops: Option<f64>,
    /// Time to refill the credits when idle, ns.
    pub refill_ns: Option<u64>,
}

/// The verdicts of all sources on one use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UseRow {
    /// The use, by the name of its profile.
    pub id: &'static str,
    /// The same for people.
    #[serde(rename = "use")]
    pub purpose: &'static str,
    /// Its verdict for each source; `None` where a source is no bench.
    pub verdicts: Vec<Option<UseVerdict>>,
}

/// Whether a volume serves a use, as a bench of it says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UseVerdict {
    /// The verdict.
    pub verdict: Suitability,
    /// The verdict on rates that can be held indefinitely.
    pub sustained: Suitability,
    /// The verdict with its duration.
    pub text: String,
    /// Why.
    pub reason: String,
}

/// The volumes, in the order of the sources.
pub fn volumes(sources: &[ComparedSource], rows: &[ComparedRow]) -> Vec<VolumeSummary> {
    (0..sources.len()).map(|at| volume(&sources[at], rows, at)).collect()
}

/// The bandwidth of smaller I/Os says nothing of the bandwidth limit.
const SMALL_BYTES: f64 = 16.0 * 1024.0;

/// A test with a rate that can be held, or that was reached.
struct Reached<'a> {
    run: &'a RunTest,
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
}

impl<'a> Reached<'a> {
    /// What can be held of it.
    fn held(run: &'a RunTest) -> Option<Reached<'a>> {
        let total = run.summary.total.as_ref().filter(|_| !run.is_paced)?;
        let iops = run.sustained_iops()?;
        let bytes = iops * total.bytes as f64 / total.ios.max(1) as f64;
        Some(Reached { run, iops: Some(iops), bytes_per_second: Some(bytes).filter(|bytes| *bytes > 0.0) })
    }

    /// What was measured, of which it is not known whether it can be held.
    fn open(run: &'a RunTest) -> Option<Reached<'a>> {
        let is_open = run.duration.label == Lasting::Inconclusive && !run.is_paced;
        let total = run.summary.total.as_ref().filter(|_| is_open)?;
        let known = |rate: f64| (rate > 0.0).then_some(rate);
        let (iops, bytes_per_second) = (known(total.iops), known(total.bytes_per_second));
        (iops.is_some() || bytes_per_second.is_some()).then_some(Reached { run, iops, bytes_per_second })
    }

    fn is_random(&self) -> bool {
        self.run.work.operation.as_ref().is_some_and(|operation| operation.starts_with("rand"))
    }

    /// The test with the most IOPS. Sequential I/Os may be counted together, so the rate of random ones is the volume's.
    fn most_iops<'r>(all: &'r [Reached<'a>]) -> Option<&'r Reached<'a>> {
        let known = || all.iter().filter(|one| one.iops.is_some());
        let has_random = known().any(Reached::is_random);
        let of_volume = known().filter(|one| !has_random || one.is_random());
        of_volume.max_by(|one, other| one.iops.unwrap_or(0.0).total_cmp(&other.iops.unwrap_or(0.0)))
    }

    fn most_bytes<'r>(all: &'r [Reached<'a>]) -> Option<&'r Reached<'a>> {
        let known = all.iter().filter(|one| one.bytes_per_second.is_some());
        known.max_by(|one, other| {
            one.bytes_per_second.unwrap_or(0.0).total_cmp(&other.bytes_per_second.unwrap_or(0.0))
        })
    }

    /// True of I/Os that are large enough to show a bandwidth limit.
    fn is_large(&self) -> bool {
        self.bytes_per_second >= self.iops.map(|iops| SMALL_BYTES * iops)
    }
}

fn volume(source: &ComparedSource, rows: &[ComparedRow], at: usize) -> VolumeSummary {
    let usable: Vec<(&ComparedRow, &RunTest)> =
        rows.iter().flat_map(|row| row.usable(at).map(move |run| (row, run))).collect();
    let held: Vec<Reached<'_>> = usable.iter().filter_map(|(_, run)| Reached::held(run)).collect();
    let open = usable.iter().filter_map(|(_, run)| Reached::open(run));
    let reached: Vec<Reached<'_>> = open.filter(|_| held.is_empty()).collect();
    let most_iops = Reached::most_iops(&held);
    let sustained_iops = most_iops.and_then(|held| held.iops);
    let most_bytes = Reached::most_bytes(&held);
    let most_reached = Reached::most_iops(&reached);
    let most_reached_bytes = Reached::most_bytes(&reached);
    let large = most_bytes.or(most_reached_bytes).filter(|one| one.is_large());
    let limited = most_iops.filter(|held| held.run.reaches_its_limit());
    let limited_by = limited.and_then(|held| source.volume.limits.get(&held.run.id).copied());
    let bursts = usable.iter().filter_map(|(row, run)| burst(row, run));
    let price = source.volume.price.clone();
    let per = |amount: Option<f64>, unit: f64| {
        let whole = price.as_ref().filter(|price| price.excluded.is_empty())?;
        Some(whole.per_month / (amount.filter(|amount| *amount > 0.0)? / unit))
    };
    let reached_iops = most_reached.and_then(|reached| reached.iops);
    let price_per_1000_iops = per(sustained_iops.or(reached_iops), 1000.0);
    // After a burst the rate is that of a rule, which has no interval.
    let is_measured = |held: &&Reached<'_>| held.run.duration.label != Lasting::Burst;
    let fraction = most_iops.or(most_reached).filter(is_measured).and_then(|held| held.run.within_fraction);
    let interval = price_per_1000_iops.zip(fraction.filter(|fraction| *fraction < 1.0));
    VolumeSummary {
        source: LABELS[at],
        name: source.name.clone(),
        kind: source.kind,
        runs: source.runs.iter().map(|run| run.origin.clone()).collect(),
        notes: notes(source),
        volume_type: source.volume.volume_type.clone(),
        longest_test_ns: usable.iter().map(|(_, run)| run.summary.measured_ns).max().unwrap_or(0),
        persistent: source.volume.persistent,
        sustained_iops,
        sustained_bytes_per_second: most_bytes.and_then(|one| one.bytes_per_second),
        reached_iops,
        reached_bytes_per_second: most_reached_bytes.and_then(|one| one.bytes_per_second),
        limited_by,
        burst: bursts.max_by(|one, other| one.iops.total_cmp(&other.iops)),
        price_per_1000_iops,
        price_per_1000_iops_interval: interval.map(|(per, half)| [per / (1.0 + half), per / (1.0 - half)]),
        price_per_100_mib: per(large.and_then(|one| one.bytes_per_second), 100.0 * 1024.0 * 1024.0),
        price,
    }
}

/// What its runs say of themselves, each once, and what is missing in the output of other programs.
fn notes(source: &ComparedSource) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let mut add = |note: String| {
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    for run in &source.runs {
        if run.record.header.activity.kind() != ActivityKind::Import {
            continue;
        }
        run.record.header.notes.iter().for_each(|note| add(note.clone()));
        for missing in
            run.record.tests.iter().filter_map(|test| test.imported()).flat_map(|test| &test.missing)
        {
            let line = if missing.line > 0 { format!(", line {}", missing.line) } else { String::new() };
            add(format!("{}{line}: {} {}", run.origin, missing.figure.trim(), missing.reason.text()));
        }
    }
    notes
}

fn burst(row: &ComparedRow, run: &RunTest) -> Option<VolumeBurst> {
    (run.duration.label == Lasting::Burst && !run.is_paced).then(|| VolumeBurst {
        test: row.test.clone(),
        iops: run.summary.total.as_ref().map_or(0.0, |total| total.iops),
        lasts_ns: run.duration.lasts_ns,
        then_iops: run.duration.after_burst(),
        refill_ns: run.duration.refill_ns,
    })
}

/// The verdicts of the benches on every use: those that `bench` itself gives. Empty where no source is a bench.
pub fn use_rows(sources: &[ComparedSource]) -> Vec<UseRow> {
    let all: Vec<Vec<Vec<_>>> = sources
        .iter()
        .map(|source| {
            source.runs.iter().map(|run| Analysis::of(&run.record).conclusions().to_vec()).collect()
        })
        .collect();
    let of_use = |purpose: &'static crate::conclusions::Use| {
        let verdict = |runs: &Vec<Vec<crate::conclusions::Conclusion>>| {
            let mut of_runs = runs.iter().flatten().filter(|one| one.id == purpose.name);
            let first = of_runs.next()?;
            let agree = of_runs.all(|one| (one.verdict, one.sustained) == (first.verdict, first.sustained));
            Some(match agree {
                true => UseVerdict {
                    verdict: first.verdict,
                    sustained: first.sustained,
                    text: first.verdict_text(),
                    reason: first.reason.clone(),
                },
                false => UseVerdict {
                    verdict: Suitability::Inconclusive,
                    sustained: Suitability::Inconclusive,
                    text: Suitability::Inconclusive.name().to_owned(),
                    reason: "its runs disagree".to_owned(),
                },
            })
        };
        UseRow { id: purpose.name, purpose: purpose.title, verdicts: all.iter().map(verdict).collect() }
    };
    let rows: Vec<UseRow> = USES.iter().map(of_use).collect();
    let is_known = rows.iter().any(|row| row.verdicts.iter().any(Option::is_some));
    if is_known { rows } else { Vec::new() }
}
