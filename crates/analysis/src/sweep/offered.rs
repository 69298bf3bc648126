//! The highest rate under an objective for latency: requests come at their own pace, and their response time counts from
//! when they were due. Pure: the rates tried so far in, the next one out.
//!
//! A closed loop cannot tell it. It offers the next request only when one has completed, so that what waits behind a slow
//! one is never counted.

use fathom_model::units::parse_bytes;
use fathom_record::{LatencySummary, ScheduleSummary, TestRecord, TestStatus, TestSummary};
use serde::{Deserialize, Serialize};

use crate::criterion::{CriterionVerdict, LatencyObjective};
use crate::pattern::{AccessPattern, block_name};
use crate::plateau::SETTLE_NS;
use crate::sweep::knee::curve;
use crate::sweep::plan::NextPoint;
use crate::sweep::point::{SweepPoint, SweepSpot};
use crate::sweep::spec::{SweepSpec, depths, first_blocks};

/// A rate to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedRate {
    /// The pattern.
    pub rw: AccessPattern,
    /// Bytes per request.
    pub block_size_bytes: u64,
    /// Requests that may be in flight; what finds no room waits, and its time counts.
    pub iodepth: u32,
    /// Requests per second, at even distances.
    pub rate_iops: u32,
}

impl OfferedRate {
    /// `randread-4k-r5000`.
    pub fn id(&self) -> String {
        format!("{}-{}-r{}", self.rw.name(), block_name(self.block_size_bytes), self.rate_iops)
    }

    /// What [`OfferedRate::id`] named, with a depth of 0.
    pub(crate) fn of_id(id: &str) -> Option<OfferedRate> {
        let mut words = id.split('-');
        let rw = AccessPattern::named(words.next()?)?;
        let block_size_bytes = parse_bytes(words.next()?).ok()?;
        let rate_iops = words.next()?.strip_prefix('r')?.parse().ok()?;
        words.next().is_none().then_some(OfferedRate { rw, block_size_bytes, iodepth: 0, rate_iops })
    }

    /// `random read 4k at 5000/s`.
    pub fn title(&self) -> String {
        format!("{} {} at {}/s", self.rw.title(), block_name(self.block_size_bytes), self.rate_iops)
    }

    /// The place on the grid that it shares its seed with.
    pub fn spot(&self) -> SweepSpot {
        SweepSpot { rw: self.rw, block_size_bytes: self.block_size_bytes, iodepth: self.iodepth, numjobs: 1 }
    }
}

/// What came of a rate that was offered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfferedPoint {
    /// The rate.
    #[serde(flatten)]
    pub offer: OfferedRate,
    /// How it ended.
    pub status: TestStatus,
    /// Requests completed per second.
    pub iops: f64,
    /// Due to completed.
    pub response_ns: LatencySummary,
    /// The target kept up.
    pub kept_up: bool,
    /// The client made requests late by more than a tenth of what they usually take.
    pub generator_late: bool,
    /// Of that, measured, ns.
    pub measured_ns: u64,
    /// From the start to the end, ns.
    pub elapsed_ns: u64,
}

/// Share of a request's usual service time that the client may be late by.
const LATE_SHARE: f64 = 0.1;

impl OfferedPoint {
    /// What `test` came to; `None` where it offered no rate.
    pub fn of(test: &TestRecord) -> Option<OfferedPoint> {
        let offer = OfferedRate::of_id(&test.id)?;
        let job = test.jobs.first();
        let counted = job.map(|job| if offer.rw.writes() { &job.measured.write } else { &job.measured.read });
        let schedule = job.zip(counted).and_then(|(job, op)| ScheduleSummary::new(&job.measured, op));
        let service = counted.and_then(|op| op.clat.summary().p50);
        let late = schedule.as_ref().and_then(|schedule| schedule.late_ns.p99).zip(service);
        let summary = TestSummary::new(test);
        Some(OfferedPoint {
            offer: OfferedRate { iodepth: job.map_or(0, |job| job.iodepth()), ..offer },
            status: test.status,
            iops: summary.total.unwrap_or_default().iops,
            measured_ns: summary.measured_ns,
            response_ns: counted.map(|op| op.open_loop.response.summary()).unwrap_or_default(),
            kept_up: schedule.is_some_and(|schedule| schedule.sustained),
            generator_late: late.is_some_and(|(late, usual)| late as f64 > LATE_SHARE * usual as f64),
            elapsed_ns: test.elapsed_ns,
        })
    }

    /// Whether the rate meets the objective; inconclusive where the sample does not tell.
    fn passes(&self, slo: &LatencyObjective) -> CriterionVerdict {
        if self.status != TestStatus::Complete || !self.kept_up {
            return CriterionVerdict::Missed;
        }
        slo.verdict(&self.response_ns)
    }
}

/// The rates of one pattern between which the answer lies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Highest {
    /// The pattern.
    pub rw: AccessPattern,
    /// Bytes per request.
    pub block_size_bytes: u64,
    /// The highest rate that was kept, as measured; `None` where none was.
    pub best: Option<OfferedPoint>,
    /// How often that rate was offered.
    pub times: usize,
    /// The lowest rate that was not kept; `None` where none was tried or all were kept.
    pub too_high_iops: Option<u32>,
    /// This host was late with its requests wherever that rate was not kept: the target may keep it.
    pub too_high_for_host: bool,
    /// The search came to its end.
    pub search_complete: bool,
    /// A rate could not be judged: too few requests for the percentile in the time there was.
    pub inconclusive: bool,
}

/// Rates closer than this need no other one between them.
const CLOSE: f64 = 1.03;
/// How often the answer is offered, and how often it must be kept.
const TIMES: usize = 3;
const KEPT: usize = 2;
/// Where a search begins, as a share of the rate that kept to the objective in a closed loop.
const BEGINNING: f64 = 0.9;
/// A rate this much smaller than what the target can do is not worth looking for.
const MIN_SHARE: f64 = 1e-3;

/// Time of one offer: 30 s where the budget allows it.
const LONGEST_NS: u64 = 30_000_000_000;
const SHORTEST_NS: u64 = 1_000_000_000;
/// Offers that a search is thought to take.
const USUAL_OFFERS: u64 = 9;
/// What a percentile needs, and a little more.
const SAMPLES_MARGIN: f64 = 1.1;

/// The rate to offer next, once the grid is measured; `points` are those of the closed loop.
pub fn next_offer(spec: &SweepSpec, points: &[SweepPoint], offered: &[OfferedPoint]) -> NextPoint {
    let Some(slo) = &spec.slo else { return NextPoint::Done };
    let found = searches(slo, spec, points, offered).into_iter().find_map(|search| search.next());
    let Some(offer) = found else { return NextPoint::Done };
    let measured: u64 = points.iter().map(|point| point.elapsed_ns).sum();
    let left = spec.budget_ns.saturating_sub(measured) / spec.patterns.len().max(1) as u64;
    let usual = (left / USUAL_OFFERS).saturating_sub(SETTLE_NS);
    let needed = (slo.samples() * SAMPLES_MARGIN / f64::from(offer.rate_iops) * 1e9) as u64;
    let runtime = usual.max(needed).clamp(SHORTEST_NS, LONGEST_NS);
    let spent = measured + offered.iter().map(|tried| tried.elapsed_ns).sum::<u64>();
    if spent + SETTLE_NS + runtime > spec.budget_ns {
        NextPoint::OutOfTime
    } else {
        NextPoint::Offer(offer, runtime)
    }
}

/// The search of each pattern, over the first block size and one job.
fn searches<'a>(
    slo: &'a LatencyObjective,
    spec: &SweepSpec,
    points: &'a [SweepPoint],
    offered: &'a [OfferedPoint],
) -> Vec<RateSearch<'a>> {
    let Some(&block) = first_blocks(spec).first() else { return Vec::new() };
    let depth = depths(spec).last().copied().unwrap_or(1);
    let jobs = spec.jobs.first().copied().unwrap_or(1);
    let search = |&rw| RateSearch {
        slo,
        offer: OfferedRate { rw, block_size_bytes: block, iodepth: depth, rate_iops: 0 },
        curve: curve(points, (rw, block, jobs)),
        offered,
    };
    spec.patterns.iter().map(search).collect()
}

/// What the offers of a sweep came to, for each pattern and block size that has any.
pub(crate) fn highest(
    slo: &LatencyObjective,
    points: &[SweepPoint],
    offered: &[OfferedPoint],
) -> Vec<Highest> {
    let mut of: Vec<(AccessPattern, u64)> =
        offered.iter().map(|tried| (tried.offer.rw, tried.offer.block_size_bytes)).collect();
    of.sort_unstable();
    of.dedup();
    let jobs = points.first().map_or(1, |point| point.spot.numjobs);
    let search = |(rw, block)| RateSearch {
        slo,
        offer: OfferedRate { rw, block_size_bytes: block, iodepth: 0, rate_iops: 0 },
        curve: curve(points, (rw, block, jobs)),
        offered,
    };
    of.into_iter().filter_map(|of| search(of).highest()).collect()
}

/// Everything that was tried for one pattern and block size.
struct RateSearch<'a> {
    slo: &'a LatencyObjective,
    offer: OfferedRate,
    /// The curve of the closed loop.
    curve: Vec<&'a SweepPoint>,
    offered: &'a [OfferedPoint],
}

/// What is known of one rate.
#[derive(Clone, Copy, PartialEq)]
enum RateVerdict {
    /// Offered so many times more before it is known.
    Open(usize),
    Kept,
    TooMuch,
    Unknown,
}

impl RateSearch<'_> {
    fn tries(&self) -> impl Iterator<Item = &OfferedPoint> {
        let is_ours = |tried: &OfferedRate| {
            (tried.rw, tried.block_size_bytes) == (self.offer.rw, self.offer.block_size_bytes)
        };
        self.offered.iter().filter(move |offered| is_ours(&offered.offer))
    }

    fn verdict(&self, rate: u32) -> RateVerdict {
        let tries: Vec<CriterionVerdict> = self
            .tries()
            .filter(|tried| tried.offer.rate_iops == rate)
            .map(|tried| tried.passes(self.slo))
            .collect();
        let count = |decided| tries.iter().filter(|verdict| verdict.decided() == decided).count();
        let [kept, failed, unknown] = [Some(true), Some(false), None].map(count);
        match (kept, failed, unknown) {
            (_, _, 1..) => RateVerdict::Unknown,
            // One failure ends it on the way; at the answer, two.
            (0, 1.., _) => RateVerdict::TooMuch,
            (_, failed, _) if failed > TIMES - KEPT => RateVerdict::TooMuch,
            (kept, failed, _) if kept + failed >= TIMES => RateVerdict::Kept,
            (kept, failed, _) => RateVerdict::Open(TIMES - kept - failed),
        }
    }

    /// The highest rate not known to be too much, and the lowest that is.
    fn bracket(&self) -> (Option<u32>, Option<u32>) {
        let mut rates: Vec<u32> = self.tries().map(|tried| tried.offer.rate_iops).collect();
        rates.sort_unstable();
        let too_much = rates.iter().copied().find(|&rate| self.verdict(rate) == RateVerdict::TooMuch);
        let is_below = |rate: &&u32| too_much.is_none_or(|limit| **rate < limit);
        (rates.iter().rev().find(is_below).copied(), too_much)
    }

    /// Requests a second in a closed loop: the most of all, and the most that kept to the objective.
    fn closed(&self) -> Option<(f64, Option<f64>)> {
        let sound = || self.curve.iter().filter(|point| point.is_sound());
        let most = sound().map(|point| point.iops).reduce(f64::max)?;
        let kept = sound().filter(|point| self.slo.verdict(&point.lat_ns).is_met());
        Some((most, kept.map(|point| point.iops).reduce(f64::max)))
    }

    /// The rate to offer next.
    fn next(&self) -> Option<OfferedRate> {
        let (most, kept) = self.closed()?;
        let (low, high) = self.bracket();
        let rate = match (low, high) {
            (None, None) => (kept.unwrap_or(most) * BEGINNING) as u32,
            (None, Some(high)) => high / 2,
            // More than a closed loop gets is not to be had.
            (Some(low), high) => {
                if self.verdict(low) == RateVerdict::Unknown {
                    return None;
                }
                let limit = high.map_or(most * CLOSE, f64::from);
                let middle = f64::midpoint(f64::from(low), limit) as u32;
                let is_close = limit <= f64::from(low) * CLOSE || middle <= low;
                if !is_close {
                    middle
                } else if matches!(self.verdict(low), RateVerdict::Open(_)) {
                    low
                } else {
                    return None;
                }
            }
        };
        let is_worth_it = rate > 0 && f64::from(rate) >= most * MIN_SHARE;
        is_worth_it.then_some(OfferedRate { rate_iops: rate, ..self.offer })
    }

    /// What came of it; `None` where nothing was offered.
    fn highest(&self) -> Option<Highest> {
        self.tries().next()?;
        let (low, too_much) = self.bracket();
        let verdict = low.map(|low| self.verdict(low));
        let of_low = || self.tries().filter(|tried| Some(tried.offer.rate_iops) == low);
        let of_high = || self.tries().filter(|tried| Some(tried.offer.rate_iops) == too_much);
        let missed = || of_high().filter(|tried| tried.passes(self.slo).is_missed());
        let kept = of_low().filter(|tried| tried.passes(self.slo).is_met());
        Some(Highest {
            rw: self.offer.rw,
            block_size_bytes: self.offer.block_size_bytes,
            best: kept.last().cloned(),
            times: of_low().count(),
            too_high_iops: too_much,
            too_high_for_host: too_much.is_some() && missed().all(|tried| tried.generator_late),
            search_complete: self.next().is_none() && verdict != Some(RateVerdict::Unknown),
            inconclusive: verdict == Some(RateVerdict::Unknown),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::point::model::Model;

    const FIRST: OfferedRate =
        OfferedRate { rw: AccessPattern::RandRead, block_size_bytes: 4096, iodepth: 256, rate_iops: 0 };

    fn summary(samples: u64, ns: u64) -> LatencySummary {
        let reported = |beyond: u64| (samples / beyond >= 10).then_some(ns);
        LatencySummary {
            samples,
            mean: Some(ns as f64),
            p50: reported(2),
            p99: reported(100),
            max: Some(ns),
            ..LatencySummary::default()
        }
    }

    /// A device that keeps to 1 ms below its cap, where every try lasts `seconds`.
    fn tried(offer: OfferedRate, cap: u32, seconds: u32) -> OfferedPoint {
        let is_sustained = offer.rate_iops <= cap;
        OfferedPoint {
            offer,
            status: TestStatus::Complete,
            iops: f64::from(offer.rate_iops.min(cap)),
            response_ns: summary(
                u64::from(offer.rate_iops * seconds),
                if is_sustained { 1_000_000 } else { 1_000_000_000 },
            ),
            kept_up: is_sustained,
            generator_late: false,
            measured_ns: u64::from(seconds) * 1_000_000_000,
            elapsed_ns: u64::from(seconds) * 1_000_000_000,
        }
    }

    fn searched(
        slo: &str,
        cap: u32,
        judge: impl Fn(&mut OfferedPoint, usize),
    ) -> (Vec<u32>, Option<Highest>) {
        let slo = LatencyObjective::parse_recorded(slo).expect("it is one");
        let model = Model { rest_ns: 500_000.0, ..Model::limited(f64::from(cap), 1e12) };
        let points: Vec<SweepPoint> = [1, 4, 16, 64]
            .map(|depth| model.measure(SweepSpot { iodepth: depth, ..FIRST.spot() }, 10_000_000_000, 0.0))
            .to_vec();
        let mut offered = Vec::new();
        loop {
            let search =
                RateSearch { slo: &slo, offer: FIRST, curve: points.iter().collect(), offered: &offered };
            let Some(offer) = search.next() else {
                return (offered.iter().map(|tried| tried.offer.rate_iops).collect(), search.highest());
            };
            let mut outcome = tried(offer, cap, 10);
            judge(&mut outcome, offered.len());
            offered.push(outcome);
            assert!(offered.len() < 60, "it does not end");
        }
    }

    #[test]
    fn the_highest_rate_is_within_three_percent_and_was_kept_more_than_once() {
        for cap in [5, 40, 997, 5_000, 64_123] {
            // The device does what it does up to its cap, whatever the closed loop was seen to do under the objective.
            for slo in ["p50<2ms", "mean<1100us", "max<1s"] {
                let (rates, highest) = searched(slo, cap, |_, _| {});
                let highest = highest.expect("something was tried");
                let best = highest.best.expect("a rate is kept").offer.rate_iops;
                let is_close = f64::from(best) >= f64::from(cap) / 1.03 - 1.0 && best <= cap;
                assert!(is_close && highest.search_complete, "{cap} {slo}: {best} of {rates:?}");
                assert_eq!(highest.times, 3, "{cap} {slo}: {rates:?}");
                assert!(rates.len() <= 12, "{cap} {slo}: {rates:?}");
            }
        }
    }

    #[test]
    fn one_bad_try_of_three_is_chance_and_two_are_not() {
        let fail = |outcome: &mut OfferedPoint| outcome.kept_up = false;
        let rate_of =
            |highest: Option<Highest>| highest.and_then(|found| found.best).map(|best| best.offer.rate_iops);
        let (rates, highest) = searched("p50<2ms", 1_000, |_, _| {});
        let answer = rate_of(highest).expect("a rate is kept");
        let first = rates.iter().position(|&rate| rate == answer).expect("it was tried");
        let repeats: Vec<usize> = (first + 1..rates.len()).filter(|&index| rates[index] == answer).collect();
        let (_, one_bad) = searched("p50<2ms", 1_000, |outcome, index| {
            if index == repeats[0] {
                fail(outcome);
            }
        });
        assert_eq!(rate_of(one_bad), Some(answer));
        let (_, two_bad) = searched("p50<2ms", 1_000, |outcome, index| {
            if repeats.contains(&index) {
                fail(outcome);
            }
        });
        assert!(rate_of(two_bad) < Some(answer));
    }

    #[test]
    fn a_rate_that_this_host_was_late_with_is_no_limit_of_the_target() {
        let late = |outcome: &mut OfferedPoint, _| {
            outcome.generator_late = outcome.offer.rate_iops > 470;
            outcome.kept_up &= !outcome.generator_late;
        };
        let of = |judge: fn(&mut OfferedPoint, usize)| {
            let highest = searched("p50<2ms", 1_000, judge).1.expect("something was tried");
            (highest.best.map(|best| best.offer.rate_iops > 470), highest.too_high_for_host)
        };
        assert_eq!(of(late), (Some(false), true));
        assert_eq!(of(|_, _| {}), (Some(true), false));
    }

    #[test]
    fn no_rate_and_no_verdict() {
        let (rates, highest) = searched("mean<10us", 1_000, |_, _| {});
        let highest = highest.expect("something was tried");
        assert_eq!((highest.best, highest.search_complete), (None, true), "{rates:?}");
        assert!(rates.windows(2).all(|pair| pair[1] == pair[0] / 2) && rates.len() <= 11, "{rates:?}");
        // Ten times 50 requests tell no p99.
        let (rates, highest) = searched("p99<2ms", 50, |_, _| {});
        let highest = highest.expect("something was tried");
        assert!(highest.inconclusive && !highest.search_complete && rates.len() == 1, "{rates:?}");
        let nothing = RateSearch {
            slo: &LatencyObjective::parse_recorded("max<1s").expect("it is one"),
            offer: FIRST,
            curve: Vec::new(),
            offered: &[],
        };
        assert!(nothing.next().is_none() && nothing.highest().is_none());
    }

    #[test]
    fn the_rate_is_in_the_name() {
        let offer =
            OfferedRate { rw: AccessPattern::Write, block_size_bytes: 1 << 20, iodepth: 0, rate_iops: 5000 };
        assert_eq!(
            (offer.id().as_str(), OfferedRate::of_id("write-1m-r5000")),
            ("write-1m-r5000", Some(offer))
        );
        for id in ["randread-4k-d8", "randread-4k-r5-x2", "randread", "x-4k-r5", ""] {
            assert_eq!(OfferedRate::of_id(id), None, "{id}");
        }
    }
}
