//! What a surface tells beyond its numbers: whether the rate follows the place or the time, what no medium answered, and
//! what a scan found.

use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, latency};
use fathom_record::{Finding, FindingId, RunRecord, Severity};
use fathom_stats::sample::{median, variance};

use crate::findings::TOUCH;
use crate::say::{count, finding, mebibytes, percent, seconds};
use crate::steady::levels::{Segment, segment, segments};
use crate::surface::Surface;
use crate::surface::point::{State, SurfacePoint};
use crate::surface::scan::Scan;

/// Fewest points that show a trend.
const MIN_POINTS: usize = 16;
/// Share of the variance that the order along an axis has to explain, and standard errors of that share.
const EXPLAINS: f64 = 0.5;
const ERRORS: f64 = 3.0;
/// Halves of a gradual change that differ by less are no finding.
const GRADUAL: f64 = 0.05;
/// Burst rate over mean rate from which on something beside the medium answers.
const BURST_TIMES: f64 = 5.0;
/// Single-request transfer over the saturated rate from which on short runs are faster than long ones.
const ABOVE_SATURATED: f64 = 1.2;

/// Everything there is to say of `surface`, which `record` holds; what goes wrong in single tests included.
pub fn findings(record: &RunRecord, surface: &Surface) -> Vec<Finding> {
    let mut found = of_tests(record);
    // The failed ones are named below.
    found.retain(|found| found.id != FindingId::Errors || surface.scan.is_none());
    found.extend(stalled(surface));
    found.extend(content(surface));
    found.extend(courses(surface, &record.header.command));
    found.extend(burst(surface));
    found.extend(above_saturated(surface));
    found.extend(first_touch(surface));
    found.extend(surface.scan.iter().flat_map(scan));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

/// What the rules for tests say, once for each kind: points are many, short and alike.
fn of_tests(record: &RunRecord) -> Vec<Finding> {
    /// A point that is short or reads sequentially may resemble these; the findings on trends are more precise.
    const NOT_OF_POINTS: [FindingId; 5] = [
        FindingId::Stalled,
        FindingId::BurstSuspected,
        FindingId::NotSteady,
        FindingId::HostCache,
        FindingId::FirstTouch,
    ];
    let all = crate::Analysis::of(record).findings();
    let matters = |found: &&Finding| {
        found.severity >= Severity::Warning && !NOT_OF_POINTS.contains(&found.id)
            || found.id == FindingId::BurstPossible
    };
    let mut kept: Vec<Finding> = Vec::new();
    for found in all.iter().filter(matters) {
        match kept.iter_mut().find(|kept| kept.id == found.id) {
            Some(kept) => kept.tests.extend(found.tests.iter().cloned()),
            None => kept.push(found.clone()),
        }
    }
    for found in &mut kept {
        found.tests.dedup();
        if found.tests.len() > 1 {
            found.claim =
                format!("{} ({} more tests with the same finding)", found.claim, found.tests.len() - 1);
            found.tests.truncate(1);
        }
    }
    kept
}

fn stalled(surface: &Surface) -> Option<Finding> {
    let of_points = surface.points.iter().filter_map(|point| match point.state {
        State::Stalled { stalled_ns: ns } => Some((bytes(point.offset_bytes), ns)),
        _ => None,
    });
    let saturated = surface.saturated_rate.iter().flat_map(|saturated| &saturated.points);
    let of_rates = saturated.chain(&surface.burst_rate);
    let of_rates = of_rates.filter_map(|rate| Some((bytes(rate.offset_bytes), rate.stalled_ns?)));
    let of_rows =
        surface.file_benchmark.iter().filter_map(|row| Some((row.test.title.clone(), row.stalled_ns?)));
    let all: Vec<(String, u64)> = of_points.chain(of_rates).chain(of_rows).collect();
    let (place, longest) = all.iter().max_by_key(|(_, ns)| *ns)?;
    let claim = format!(
        "no I/O completed for {} ({place}){}: the device did not respond. Rates exclude this time.",
        seconds(*longest),
        if all.len() > 1 { format!("; {} stalls in total", all.len()) } else { String::new() },
    );
    let remedy = "Check the kernel log (dmesg) for timeouts and resets.".to_owned();
    let found = finding(FindingId::Stalled, [], claim, remedy);
    Some(found.with("length_ns", *longest).with("tests", all.len() as u64))
}

/// What answered instead of the medium.
fn content(surface: &Surface) -> Vec<Finding> {
    let all = surface.points.len();
    let share =
        |some: usize| format!("{} of the area ({some} of {all} points)", percent(some as f64 / all as f64));
    let mut found = Vec::new();
    let unwritten = surface.count("unwritten");
    if unwritten > 0 {
        let claim = format!(
            "{} looks unwritten (holes, or zeros that are read faster than data) and may not reach the medium. \
             Minimum, maximum, mean and median exclude it; the latencies of single I/Os include it.",
            share(unwritten)
        );
        let remedy = "Write it once before measuring, if all of it will be used.".to_owned();
        let what = finding(FindingId::Unwritten, [], claim, remedy);
        found.push(what.with("points", unwritten as u64).with("of_points", all as u64));
    }
    let cached = surface.count("cached");
    if cached > 0 {
        let claim = format!(
            "memory of this machine served {}, not the device: minimum, maximum, mean and median exclude it.",
            share(cached)
        );
        let remedy = "Omit --buffered to bypass the page cache.".to_owned();
        let what = finding(FindingId::CacheServed, [], claim, remedy);
        found.push(what.with("points", cached as u64).with("of_points", all as u64));
    }
    if surface.is_all_zero() {
        let claim = "all data read are zeros. If nothing was ever written there, these are not the rates of the medium, \
             and there are no others to compare with.";
        found.push(finding(FindingId::Unwritten, [], claim, ""));
    }
    found
}

/// Whether the rate follows the time or the place.
fn courses(surface: &Surface, command: &[String]) -> Vec<Finding> {
    let by_time: Vec<(&SurfacePoint, f64)> =
        surface.points.iter().filter_map(|point| Some((point, point.rate()?))).collect();
    if by_time.len() < MIN_POINTS {
        return Vec::new();
    }
    let in_order = by_time.windows(2).all(|pair| pair[0].0.offset_bytes < pair[1].0.offset_bytes)
        || by_time.windows(2).all(|pair| pair[0].0.offset_bytes > pair[1].0.offset_bytes);
    let of_time = AxisLevels::along(&by_time);
    if in_order {
        return of_time.map(|course| course.of_either(command)).into_iter().collect();
    }
    let mut by_place = by_time.clone();
    by_place.sort_by_key(|(point, _)| point.offset_bytes);
    let of_place = AxisLevels::along(&by_place);
    let explained = |course: &Option<AxisLevels>| course.as_ref().map_or(0.0, |course| course.explains);
    let is_time_first = explained(&of_time) >= explained(&of_place);
    let (course, mut points) = if is_time_first { (of_time, by_time) } else { (of_place, by_place) };
    let Some(course) = course else { return Vec::new() };
    course.divide(&mut points);
    points.sort_by_key(|(point, _)| if is_time_first { point.offset_bytes } else { point.elapsed_ns });
    let left = AxisLevels::along(&points);
    let told =
        |course: &AxisLevels, is_time: bool| if is_time { course.of_time() } else { course.of_place() };
    let second = left.map(|left| told(&left, !is_time_first));
    std::iter::once(told(&course, is_time_first)).chain(second).collect()
}

/// The levels of the rate along an axis.
struct AxisLevels {
    levels: Vec<(Segment, u64, u64)>,
    /// Share of the variance of the logarithms that their order explains.
    explains: f64,
    /// Two halves of a gradual change.
    is_gradual: bool,
}

/// The share of the variance that the order explains: along an axis that they follow neighbours are alike, along another they
/// differ as any two do (von Neumann's ratio). A level of a few points that happen to follow each other shows nothing.
fn explained_by_order(logs: &[f64]) -> f64 {
    let squares = variance(logs) * (logs.len() as f64 - 1.0);
    let steps: f64 = logs.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    if squares > 0.0 { 1.0 - steps / (2.0 * squares) } else { 0.0 }
}

impl AxisLevels {
    /// The levels of `points` in their order; `None` where they do not follow it.
    fn along(points: &[(&SurfacePoint, f64)]) -> Option<AxisLevels> {
        let rates: Vec<f64> = points.iter().map(|(_, rate)| *rate).collect();
        let logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
        let explains = explained_by_order(&logs);
        if explains < EXPLAINS || explains * (rates.len() as f64).sqrt() < ERRORS {
            return None;
        }
        let mut found = segments(&rates);
        let is_gradual = found.len() < 2;
        if is_gradual {
            let (one, other) = rates.split_at(rates.len() / 2);
            found = vec![segment(one), segment(other)];
            if (found[1].median / found[0].median).ln().abs() < GRADUAL {
                return None;
            }
        }
        let mut start = 0;
        let mut levels = Vec::new();
        for segment in found {
            let first = points[start].0;
            start += segment.length;
            levels.push((segment, first.offset_bytes, first.elapsed_ns));
        }
        Some(AxisLevels { levels, explains, is_gradual })
    }

    /// Takes the levels out of the rates that they were found in.
    fn divide(&self, points: &mut [(&SurfacePoint, f64)]) {
        let mut start = 0;
        for (segment, ..) in &self.levels {
            for (_, rate) in &mut points[start..start + segment.length] {
                *rate /= segment.median;
            }
            start += segment.length;
        }
    }

    /// `120 MiB/s, then 30 MiB/s from 83 s on`.
    fn words(&self, at: impl Fn(&(Segment, u64, u64)) -> String) -> String {
        // What is left when other levels are taken out is a ratio, and no device has so low a rate.
        let level = |rate: f64| {
            if rate < 100.0 { format!("{} times the median", count(rate)) } else { mebibytes(rate) }
        };
        match self.levels.as_slice() {
            [first, rest @ ..] if rest.len() <= 3 => {
                let rest: Vec<String> = rest
                    .iter()
                    .map(|step| format!("{} from {} on", level(step.0.median), at(step)))
                    .collect();
                format!("{} at first, {}", level(first.0.median), rest.join(", "))
            }
            all => {
                let medians = || all.iter().map(|(segment, ..)| segment.median);
                let least = medians().fold(f64::INFINITY, f64::min);
                let most = medians().fold(0.0, f64::max);
                let (first, last) = (all[0].0.median, all[all.len() - 1].0.median);
                let (first, last, least, most) = (level(first), level(last), level(least), level(most));
                format!(
                    "{} levels from {least} to {most}, {first} at the start and {last} at the end",
                    all.len()
                )
            }
        }
    }

    fn first_and_last(&self) -> (f64, f64) {
        let median = |level: Option<&(Segment, u64, u64)>| level.map_or(0.0, |(segment, ..)| segment.median);
        (median(self.levels.first()), median(self.levels.last()))
    }

    fn of_time(&self) -> Finding {
        let words = self.words(|(_, _, elapsed)| duration(Nanos(*elapsed)));
        let (first, last) = self.first_and_last();
        let lasts = self.levels.len() == 2 && last < first && !self.is_gradual;
        let what = match lasts {
            true => "burst credits are probably exhausted, or a cache is full",
            false => "noisy neighbours or a time-based limit are probable",
        };
        let claim = format!("the rate depends on the time, not on the offset: {words}; {what}.");
        let remedy =
            "Let the volume idle and measure again: a rate that recovers had exhausted burst credits."
                .to_owned();
        let found = match lasts {
            true => finding(FindingId::BurstSuspected, [], claim, remedy),
            false => finding(FindingId::RateFollowsTime, [], claim, ""),
        };
        self.with_evidence(found)
    }

    fn of_place(&self) -> Finding {
        let words = self.words(|(_, offset, _)| bytes(*offset));
        let (first, last) = self.first_and_last();
        let what = match self.levels.windows(2).all(|pair| pair[1].0.median < pair[0].0.median) {
            true if last < 0.8 * first => "a disk with zones, fast outside and slow inside, is probable",
            _ => "parts of the volume on other media or not yet initialized are probable",
        };
        let claim = format!("the rate depends on the offset, not on the time: {words}; {what}.");
        self.with_evidence(finding(FindingId::RateFollowsPlace, [], claim, ""))
    }

    fn of_either(&self, command: &[String]) -> Finding {
        let words = self.words(|(_, offset, _)| bytes(*offset));
        let said = command.iter().any(|word| word.starts_with("--order"));
        let claim = format!(
            "the rate changes: {words}. Points were read in order of their offsets{}, so time and offset cannot \
             be separated.",
            if said { ", as requested" } else { "" }
        );
        let remedy = "Use --order random to separate them.".to_owned();
        self.with_evidence(finding(FindingId::RateChanges, [], claim, remedy))
    }

    fn with_evidence(&self, found: Finding) -> Finding {
        let (first, last) = self.first_and_last();
        found
            .with("levels", self.levels.len() as u64)
            .with("first_bytes_per_second", first)
            .with("last_bytes_per_second", last)
            .with("explained_share", self.explains)
    }
}

/// A limiter that saves up credit while the test pauses between points.
fn above_saturated(surface: &Surface) -> Option<Finding> {
    let (spread, saturated) = (surface.transfer_rate.as_ref()?, surface.saturated_rate.as_ref()?);
    // First accesses may have been what made the saturated rate low.
    let again = surface.first_touch.and_then(|touch| touch.again_bytes_per_second);
    let (rate, limit) = (spread.weighted_mean.max(spread.median), again.unwrap_or(saturated.mean?));
    let times = rate / limit;
    if times <= ABOVE_SATURATED {
        return None;
    }
    let claim = format!(
        "single-request transfer reached {}, {} times the saturated rate of {}: the volume serves short runs faster than \
         long ones. A limiter's credit that refills in the pauses between points is probable, or burst credits that were \
         exhausted before the saturated rate was measured.",
        mebibytes(rate),
        count(times),
        mebibytes(limit)
    );
    let remedy = "Use the saturated rate; `fathom identify` tells a limit from burst credits.";
    let found = finding(FindingId::TransferAboveSaturated, [], claim, remedy);
    Some(
        found
            .with("transfer_bytes_per_second", rate)
            .with("max_bytes_per_second", spread.max)
            .with("saturated_bytes_per_second", limit),
    )
}

/// Places that are read faster when they are read again.
fn first_touch(surface: &Surface) -> Option<Finding> {
    let touch = surface.first_touch?;
    let times = touch.first_lat_ns.zip(touch.again_lat_ns).map(|(first, again)| {
        let (first, again) = (latency(first as u64), latency(again as u64));
        format!("the first access to a block took {first}, later ones {again}")
    });
    let rates = touch.first_bytes_per_second.zip(touch.again_bytes_per_second).map(|(first, again)| {
        let (first, again) = (mebibytes(first), mebibytes(again));
        format!("blocks were read at {first} for the first time and at {again} when read again")
    });
    let told: Vec<String> = times.into_iter().chain(rates).collect();
    let claim =
        format!("{}: first-touch penalty (a volume created from a snapshot), or a cache.", told.join("; "));
    let found = finding(FindingId::FirstTouch, [], claim, TOUCH);
    Some(
        found
            .with("first_lat_ns", touch.first_lat_ns)
            .with("again_lat_ns", touch.again_lat_ns)
            .with("first_bytes_per_second", touch.first_bytes_per_second)
            .with("again_bytes_per_second", touch.again_bytes_per_second),
    )
}

/// Something that answers what was just read much faster than the rest.
fn burst(surface: &Surface) -> Option<Finding> {
    let rates: Vec<f64> = surface.points.iter().filter_map(SurfacePoint::rate).collect();
    let (burst, usual) = (surface.burst_rate.as_ref()?.bytes_per_second?, median(&rates)?);
    if burst < BURST_TIMES * usual {
        return None;
    }
    let claim = format!(
        "repeated reads reach {}, others {}: a cache between this machine and the medium serves them.",
        mebibytes(burst),
        mebibytes(usual)
    );
    let remedy = "The rates of the surface exclude repeated reads.";
    let found = finding(FindingId::HostCache, [], claim, remedy);
    Some(found.with("burst_bytes_per_second", burst).with("median_bytes_per_second", usual))
}

fn scan(scan: &Scan) -> Vec<Finding> {
    let mut found = Vec::new();
    let unreadable: u64 = scan.unreadable.iter().map(|range| range.length_bytes).sum();
    if let Some(first) = scan.unreadable.first() {
        let places = if scan.unreadable.len() == 1 { "1 range" } else { "several ranges" };
        let claim = format!(
            "{} of {} cannot be read, in {places}, the first at {}.",
            bytes(unreadable),
            bytes(scan.scanned_bytes),
            first.offset_bytes
        );
        let remedy =
            "Back up the data and replace the device; writing to such a sector may make it readable again.";
        let what = finding(FindingId::Unreadable, [], claim, remedy);
        found.push(
            what.with("unreadable_bytes", unreadable)
                .with("places", scan.unreadable.len() as u64)
                .with("first_offset_bytes", first.offset_bytes),
        );
    }
    let again = scan.slow.iter().filter(|block| scan.is_slow_again(block)).count();
    if let Some(worst) = scan.slow.iter().max_by_key(|block| block.lat_ns) {
        let claim = format!(
            "{} took {} or more, the slowest at {} with {}; when read again, {}.",
            if scan.slow.len() == 1 { "1 block".to_owned() } else { format!("{} blocks", scan.slow.len()) },
            latency(scan.slow_from_ns),
            worst.offset_bytes,
            latency(worst.lat_ns),
            match again {
                0 => "none was slow".to_owned(),
                again => format!("{again} were slow again"),
            }
        );
        let severity = if again > 0 { Severity::Warning } else { Severity::Info };
        let what = Finding { severity, ..finding(FindingId::SlowBlocks, [], claim, "") };
        found.push(what.with("blocks", scan.slow.len() as u64).with("slow_again", again as u64));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::ids;
    use fathom_record::TestRecord;
    use fathom_tests::RepeatableNoise;

    use crate::surface::plan::{VisitOrder, places, visits};
    use crate::surface::point::tests::point;
    use crate::surface::{SATURATED, assess};

    /// Points in random order whose rate in MiB/s is `rate(place, time)`, both from 0 to 1.
    fn told(order: VisitOrder, rate: impl Fn(f64, f64) -> f64) -> Vec<Finding> {
        let places = visits(places(1 << 40, 65_536, 100), order, 7);
        let tests = places.iter().enumerate().map(|(number, place)| {
            let noise = 1.0 + ((number * 7919 % 101) as f64 / 50.0 - 1.0) * 0.03;
            let mib = rate(place.offset as f64 / (1u64 << 40) as f64, number as f64 / 100.0) * noise;
            point(place.offset, mib.round() as u64)
        });
        let record = RunRecord { tests: tests.collect(), ..RunRecord::default() };
        findings(&record, &assess(&record))
    }

    #[test]
    fn time_and_place_are_told_apart() {
        let check = |order, rate: &dyn Fn(f64, f64) -> f64, expected: &[&str]| {
            assert_eq!(ids(&told(order, rate)), expected);
        };
        check(VisitOrder::Random, &|_, _| 500.0, &[]);
        check(VisitOrder::Random, &|_, time| if time < 0.6 { 1200.0 } else { 300.0 }, &["burst-suspected"]);
        check(
            VisitOrder::Random,
            &|_, time| if (0.3..0.6).contains(&time) { 300.0 } else { 1200.0 },
            &["rate-follows-time"],
        );
        check(VisitOrder::Random, &|place, _| 2000.0 - 1000.0 * place, &["rate-follows-place"]);
        check(
            VisitOrder::Random,
            &|place, _| if place < 0.5 { 300.0 } else { 600.0 },
            &["rate-follows-place"],
        );
        check(VisitOrder::Ascending, &|place, _| 2000.0 - 1000.0 * place, &["rate-changes"]);
        check(VisitOrder::Descending, &|_, time| if time < 0.6 { 1200.0 } else { 300.0 }, &["rate-changes"]);
        let both = |place: f64, time: f64| (if time < 0.5 { 4.0 } else { 1.0 }) * (600.0 - 300.0 * place);
        check(VisitOrder::Random, &both, &["burst-suspected", "rate-follows-place"]);
    }

    /// Points of a disk whose rate depends on the place, with many orders and numbers of points.
    #[test]
    fn what_follows_the_place_is_never_said_to_follow_the_time() {
        type RateAt = fn(f64) -> f64;
        let zones: [(&str, RateAt); 4] = [
            ("slope", |place| 60e6 - 36e6 * place),
            ("gentle slope", |place| 60e6 - 12e6 * place),
            ("zones", |place| 60e6 - 10e6 * (place * 4.0).floor()),
            ("slow end", |place| if place < 0.8 { 60e6 } else { 25e6 }),
        ];
        for (name, rate) in zones {
            let mut found = [0; 2];
            for seed in 1..=100 {
                let count = 16 + seed as u32 * 7 % 100;
                let mut noise = RepeatableNoise::seeded(seed);
                let places = visits(places(1 << 29, 65_536, count), VisitOrder::Random, seed);
                let tests = places.iter().map(|place| {
                    let rate = rate(place.offset as f64 / (1u64 << 29) as f64);
                    point(place.offset, (rate * (1.0 + 0.01 * noise.normal()) / 1e5) as u64)
                });
                let record = RunRecord { tests: tests.collect(), ..RunRecord::default() };
                let ids: Vec<FindingId> =
                    findings(&record, &assess(&record)).into_iter().map(|found| found.id).collect();
                found[0] += usize::from(ids == [FindingId::RateFollowsPlace]);
                found[1] += usize::from(ids.iter().any(|id| *id != FindingId::RateFollowsPlace));
            }
            assert!(found[0] >= 95 && found[1] == 0, "{name}: {found:?}");
        }
    }

    #[test]
    fn claims_hold_the_levels() {
        let found = told(VisitOrder::Random, |_, time| if time < 0.6 { 1200.0 } else { 300.0 });
        let claim = &found[0].claim;
        assert!(claim.contains("MiB/s at first, 3") && claim.contains("from 1 min on"), "{claim}");
        let found = told(VisitOrder::Random, |place, _| 2000.0 - 1000.0 * place);
        assert!(found[0].claim.contains("a disk with zones"), "{}", found[0].claim);
    }

    #[test]
    fn transfer_beyond_the_saturated_rate_is_no_rate_of_the_volume() {
        let check = |transfer: &[u64], saturated: u64, expected: &[&str]| {
            let mut tests: Vec<TestRecord> = transfer.iter().map(|&mib| point(mib << 30, mib)).collect();
            let mut many = TestRecord { id: format!("{SATURATED}0"), ..point(0, saturated) };
            many.jobs.truncate(1);
            tests.push(many);
            let record = RunRecord { tests, ..RunRecord::default() };
            assert_eq!(ids(&findings(&record, &assess(&record))), expected, "{transfer:?}");
        };
        check(&[100, 110, 105], 95, &[]);
        check(&[100, 2470, 105], 95, &["transfer-above-saturated"]);
        check(&[130, 120, 125], 95, &["transfer-above-saturated"]);
        // A device that is faster with more in flight.
        check(&[100, 110, 105], 800, &[]);
    }

    #[test]
    fn a_few_points_tell_no_course() {
        let tests = [100, 100, 100, 100, 100, 30, 30, 30, 30, 30].map(|mib| point(mib << 30, mib)).to_vec();
        let record = RunRecord { tests, ..RunRecord::default() };
        assert_eq!(findings(&record, &assess(&record)), []);
    }
}
