//! From the measurements to the result: values where they are known, bounds where another limit hides them, and why.

use fathom_record::{Finding, RunRecord};

use super::credit::NEAR;
use super::probe::{Floor, IoDirection};
use super::script::{Script, identified_of};
use super::state::{
    Curve, DISTURBED, DirectionSharing, EmptiedBucket, FALLEN, ObservedUnit, RateLevel, RestlessRate,
    SmallIoLimit, UnclearFall,
};
use crate::estimate::Estimate;
use crate::findings::instance_limit::{self, InstanceHold};
use crate::identified::{BucketUnit, Burst, EachWay, Figure, FirstTouchCost, Identified};
use crate::rows::{RecordRow, RowKind, rows};
use crate::say::{mebibytes, on_rows};

/// A share of the capacity that is little to be wrong by.
const LITTLE: f64 = 0.05;
impl Script<'_> {
    /// The result; `is_cut` where more remained to be measured.
    pub(crate) fn conclude(mut self, is_cut: bool) -> Identified {
        if !self.found.is_resting && self.is_suspect() {
            self.found.is_doubtful = [true; 2];
        }
        let found = &self.found;
        let mut result =
            Identified { spent: self.spent, longest_peak_ns: found.held_ns, ..Identified::default() };
        let each = |kind: BucketUnit| {
            let of = |way: IoDirection| match &found.curves[way as usize] {
                Some(curve) => Some(self.limit(curve, kind)),
                None => self.highest_measured(way, kind),
            };
            EachWay { read: of(IoDirection::Read), write: of(IoDirection::Write) }
        };
        result.iops = each(BucketUnit::Ios);
        result.bytes_per_second = each(BucketUnit::Bytes);
        let floor = |way: IoDirection| {
            let floor = found.floors[way as usize]?;
            let (low, high) = floor.interval();
            Some(Figure::known(floor.mean, low, high))
        };
        result.lat_ns = EachWay { read: floor(IoDirection::Read), write: floor(IoDirection::Write) };
        result.shares_limits = found.is_shared().filter(|_| !self.is_any_disturbed());
        result.shares_limits_why = self.shared_why();
        if let Some(curve) = found.curves.iter().flatten().next() {
            result.crossover_block_size_bytes = match self.unreliable(curve.way) {
                Some(why) => Figure::unknown(why),
                None => crossover(&iops(curve), &bytes(curve)),
            };
            result.io_unit_bytes = match self.unreliable(curve.way) {
                Some(why) => Figure::unknown(why),
                None => unit(found.unit(curve.way).unwrap_or(ObservedUnit::Hidden)),
            };
            result.parallelism = self.parallelism(curve);
        }
        // Without a reliable unit only the first is reported as such.
        let reported = if found.is_any_doubtful() { 1 } else { found.buckets.len() };
        let fallen = found.buckets.iter().take(reported);
        let credit = fallen.clone().filter(|bucket| self.is_credit(bucket));
        result.bursts = credit.filter_map(|bucket| self.burst(bucket)).collect();
        result.confounders = fallen.filter_map(|bucket| self.other_cause(bucket)).collect();
        result.confounders.extend(self.drift().into_iter().chain(self.other_processes()));
        result.burst_why = self.burst_why(is_cut);
        self.first_touch(&mut result);
        result
    }

    /// Why what follows from several rates of one direction is unreliable; where falls were not watched for, so is that of the
    /// other.
    fn unreliable(&self, way: IoDirection) -> Option<&'static str> {
        let changes = [BucketUnit::Ios, BucketUnit::Bytes].map(|kind| self.by_itself(way, kind));
        match () {
            () if self.found.is_doubtful[way as usize] || self.found.is_any_doubtful() => Some(DOUBTFUL),
            () if self.is_any_disturbed() => Some(OTHERS),
            () if changes != [None, None] || self.has_other_fall(way) => Some(CHANGED),
            () => None,
        }
    }

    /// A limit of one direction of which the budget left the rest unknown: that of the smallest requests, if it was measured, else a
    /// bound, the highest rate that was measured.
    fn highest_measured(&self, way: IoDirection, kind: BucketUnit) -> Option<Figure> {
        let top = self.found.full[way as usize].zip(self.found.full_limit[way as usize]);
        if let Some((top, small_limit)) = top.filter(|_| kind == BucketUnit::Ios) {
            return Some(self.limit(&Curve::of_top(way, top, small_limit), kind));
        }
        let highest = match kind {
            BucketUnit::Ios => self.found.max_rate[way as usize],
            BucketUnit::Bytes => self.found.max_bytes[way as usize],
        };
        let least = Estimate::AtLeast(highest * (1.0 - COARSE_ERROR));
        (highest > 0.0).then(|| Figure::bound(least, CUT_SHORT))
    }

    /// A limit of one direction: a bound where credit may have been used up when it was measured.
    fn limit(&self, curve: &Curve, kind: BucketUnit) -> Figure {
        let (figure, level) = match kind {
            BucketUnit::Ios => (iops(curve), Some(curve.top)),
            BucketUnit::Bytes => (bytes(curve), curve.bulk),
        };
        let block = level.map_or(curve.top.block, |level| level.block);
        if self.may_be_dry(curve.way, kind, block, level.map_or(0.0, |level| level.rate)) {
            return doubtful(&figure);
        }
        let is_sure = |at_ns: u64| !self.found.buckets.is_empty() && !self.was_dry(curve.way, at_ns);
        let is_doubtful = self.found.is_doubtful[curve.way as usize];
        let is_lower =
            self.found.is_long && curve.top.rate < FALLEN * self.found.max_rate[curve.way as usize];
        let by_itself = self.by_itself(curve.way, kind);
        let value = figure.value().unwrap_or(f64::INFINITY);
        match level {
            Some(level) if self.is_disturbed(level.others) => with_others(&figure, &level, kind),
            _ if by_itself.is_some_and(|high| high > value * APART) => {
                let least = by_itself.unwrap_or_default() * (1.0 - COARSE_ERROR);
                Figure::bound(Estimate::AtLeast(least), CHANGED)
            }
            _ if self.has_other_fall(curve.way) => {
                Figure { why: Some(CHANGED.to_owned()), ..doubtful(&figure) }
            }
            _ if (self.found.has_changed || is_lower)
                && !self.found.buckets.iter().any(|bucket| self.is_credit(bucket)) =>
            {
                Figure { why: Some(CHANGED.to_owned()), ..doubtful(&figure) }
            }
            _ if !is_doubtful => figure,
            Some(level) if is_sure(level.at_ns) => figure,
            _ => doubtful(&figure),
        }
    }

    /// A rate of one direction is what a bucket leaves that the other emptied, which both may share: it is no limit then.
    fn may_be_dry(&self, way: IoDirection, kind: BucketUnit, block: u64, rate: f64) -> bool {
        let shares = self.shares()[usize::from(kind == BucketUnit::Bytes)];
        let left =
            |bucket: &EmptiedBucket| bucket.account.base / bucket.account.cost(&self.found, way, block);
        let is_left = |bucket: &EmptiedBucket| (rate / left(bucket) - 1.0).abs() < NEAR;
        let of_other = |bucket: &&EmptiedBucket| bucket.account.kind == kind && !bucket.account.counts(way);
        shares == DirectionSharing::Unknown && self.found.buckets.iter().filter(of_other).any(is_left)
    }

    fn shared_why(&self) -> Option<String> {
        let why = match self.shares() {
            _ if self.found.is_any_doubtful() => DOUBTFUL,
            _ if self.is_any_disturbed() => OTHERS,
            _ if !self.spec.writes => "writes were not measured",
            [DirectionSharing::Shared, DirectionSharing::Apart | DirectionSharing::ApartUnderOne] => {
                "shared IOPS limit, separate bandwidth limits"
            }
            [DirectionSharing::Apart | DirectionSharing::ApartUnderOne, DirectionSharing::Shared] => {
                "separate IOPS limits, shared bandwidth limit"
            }
            [DirectionSharing::ApartUnderOne, _] | [_, DirectionSharing::ApartUnderOne] => {
                "separate limits for reads and writes, and a further one for both together"
            }
            [DirectionSharing::Unknown, DirectionSharing::Unknown] => {
                "inconclusive: reads and writes together reached no common limit, or their rates varied too much"
            }
            _ => return None,
        };
        Some(why.to_owned())
    }

    fn parallelism(&self, curve: &Curve) -> Figure {
        let served = curve.top.rate * self.found.floor_ns(curve.way) / 1e9;
        match curve.small_limit {
            SmallIoLimit::Width(width) => {
                let half = if self.found.floor(curve.way).spread() < 0.02 { 0.0 } else { 0.03 * served };
                let value = if half < 0.5 { width as f64 } else { served };
                Figure::known(value, (value - half).max(1.0), value + half)
            }
            _ if served < 1.0 => Figure::unknown("I/Os complete before another limit admits the next one"),
            SmallIoLimit::Depth => {
                let why = "every I/O in flight was served in parallel";
                Figure::bound(Estimate::AtLeast((served * 0.97).floor()), why)
            }
            _ => Figure::bound(Estimate::AtLeast((served * 0.97).floor()), "another limit was reached first"),
        }
    }

    /// The result for a bucket.
    fn burst(&self, bucket: &EmptiedBucket) -> Option<Burst> {
        let account = &bucket.account;
        let (least, varies) = self.capacity(bucket)?;
        // Where the unit could not show, large requests may have cost more than was counted.
        let uncounted = (self.capacity_at_most(bucket)? - least).max(0.0);
        let is_little = uncounted < 2.0 * LITTLE * least;
        let capacity = if is_little { least + uncounted / 2.0 } else { least };
        let ran_s = bucket.dry.1 as f64 / 1e9;
        let counted = bucket.error * account.base * ran_s + varies + 0.012 * bucket.high + 0.003 * capacity;
        let half = counted + if is_little { uncounted / 2.0 } else { uncounted };
        let around = |value: f64, half: f64| Figure::known(value, (value - half).max(0.0), value + half);
        let base = around(account.base, account.base * (bucket.error * 2.0 + 0.002));
        let rate = self.burst_rate(bucket);
        let highest = match rate.estimate {
            Some(Estimate::Known { value, .. }) => value,
            _ => bucket.high,
        };
        let beyond = (highest - account.base).max(account.base * 0.01);
        let empty = capacity / beyond;
        let empty_half = empty * (half / capacity.max(1e-9) + 0.006 * highest / beyond);
        let seconds_to_empty = match rate.estimate {
            Some(Estimate::Known { .. }) => around(empty, empty_half),
            _ => Figure::bound(Estimate::AtMost(empty + empty_half), "its burst rate was not reached"),
        };
        let (refill, refilled) = match bucket.refilled() {
            Some((regained, rest)) => {
                let value = regained / rest;
                let error = (0.02 * bucket.high + 0.01 * regained) / rest + 0.01 * value;
                let seconds = capacity / value.max(1e-9);
                let share = error / value.max(1e-9) + half / capacity.max(1e-9);
                (around(value, error), around(seconds, seconds * share))
            }
            _ => {
                let why = "refill was not measured; assumed equal to the baseline";
                let seconds = capacity / account.base;
                let mut refill = around(account.base, account.base * 0.05);
                refill.why = Some(why.to_owned());
                (refill, around(seconds, seconds * 0.06))
            }
        };
        let is_doubtful = self.found.is_any_doubtful();
        let if_sure = |figure: Figure| if is_doubtful { Figure::unknown(DOUBTFUL) } else { figure };
        Some(Burst {
            unit: account.kind,
            scope: account.scope,
            burst_rate: rate,
            baseline_rate: base,
            capacity: match () {
                // The unit was looked for while credits were exhausted, so that large requests may have cost more.
                () if is_doubtful && account.kind == BucketUnit::Ios => {
                    Figure::bound(Estimate::AtLeast((least * 0.97 - counted).max(0.0)), DOUBTFUL)
                }
                () if is_little => around(capacity, half),
                () => Figure {
                    why: Some("larger I/Os may have counted as several".to_owned()),
                    ..Figure::known(capacity, (capacity - counted).max(0.0), capacity + half)
                },
            },
            refill_rate: if_sure(refill),
            seconds_to_empty: if_sure(seconds_to_empty),
            seconds_to_refill: if_sure(refilled),
        })
    }

    /// The highest rate of what a bucket counts.
    fn burst_rate(&self, bucket: &EmptiedBucket) -> Figure {
        let way = bucket.account.way();
        let Some(curve) = &self.found.curves[way as usize] else { return Figure::unknown("not measured") };
        let level = self.limit(curve, bucket.account.kind);
        match level.estimate {
            Some(Estimate::Known { value, .. }) if value > bucket.account.base * 1.03 => level,
            Some(Estimate::AtLeast(_)) if self.found.is_doubtful[way as usize] => {
                Figure::bound(Estimate::AtLeast(bucket.high), DOUBTFUL)
            }
            _ => Figure::bound(Estimate::AtLeast(bucket.high), "another limit was reached first"),
        }
    }

    fn burst_why(&self, is_cut: bool) -> Option<String> {
        if let Some(RestlessRate { high, low, .. }) = self.found.restless {
            return Some(format!(
                "the rate fell from {high:.0} to {low:.0} IOPS and rose again without idling: not burst credits"
            ));
        }
        if !self.found.buckets.is_empty() {
            if let Some((other, first)) = self.found.hidden {
                return Some(format!(
                    "unknown for {other}: the burst credits of {first} were exhausted first"
                ));
            }
            if !self.found.buckets.iter().any(|bucket| self.is_credit(bucket)) {
                return Some("the fall of the rate is not attributed to burst credits".to_owned());
            }
            return is_cut.then(|| "the time budget ended before all was measured".to_owned());
        }
        if self.found.drift.is_some() {
            return Some("the rate drifted".to_owned());
        }
        match self.found.unclear {
            Some(UnclearFall { high, low: Some(low), .. }) => {
                return Some(format!(
                    "the rate fell from {high:.0} to {low:.0} IOPS, too little to identify a burst bucket"
                ));
            }
            Some(UnclearFall { high, .. }) => {
                return Some(format!("the rate fell from {high:.0} IOPS to one that was not steady"));
            }
            None => {}
        }
        let seconds = self.found.held_ns.unwrap_or(0) as f64 / 1e9;
        Some(match is_cut {
            false => format!("the highest rates were steady for {seconds:.0} s"),
            true => format!("the highest rates were steady for {seconds:.0} s, until the time budget ended"),
        })
    }

    fn first_touch(&self, result: &mut Identified) {
        let Some(touch) = &self.found.touch else {
            result.first_touch_why = Some("not measured".to_owned());
            return;
        };
        let figure = |floor: &Floor| {
            let (low, high) = floor.interval();
            Figure::known(floor.mean, low, high)
        };
        if self.found.range.is_none() {
            let why = match touch.has_changed {
                true => "the rate changed while first and repeated reads were compared",
                false => "repeated reads of the same offsets took as long as the first",
            };
            result.first_touch_why = Some(why.to_owned());
            result.has_no_first_touch = !touch.has_changed;
            return;
        }
        let share = if touch.share.is_nan() { touch.again.mean / touch.first.mean } else { touch.share };
        result.first_touch = Some(FirstTouchCost {
            first_ns: figure(&touch.first),
            again_ns: figure(&touch.again),
            rate_fraction: Figure::known(share, share * 0.85, (share * 1.15).min(1.0)),
        });
    }
}

/// Why what was measured while credits were exhausted is a bound.
const DOUBTFUL: &str = "burst credits were exhausted during the measurement, and the time budget ended before it was \
     repeated";

/// Why the highest rate that was measured is only a bound.
const CUT_SHORT: &str = "the time budget ended before the limit was established";
/// What a rate is wrong by at most that was measured only to tell a limit from twice as much.
const COARSE_ERROR: f64 = 0.05;

/// Why what was measured beside other processes is unknown.
const OTHERS: &str = "other processes used the device during the measurement";

/// Why what was measured is a bound where it was not the same all the time.
const CHANGED: &str = "the rate changed while the limits were measured";
/// A rate is another one from this many times of it on.
const APART: f64 = 1.03;

/// What is left of a figure that was measured while credit may have run dry.
fn doubtful(figure: &Figure) -> Figure {
    match figure.estimate {
        Some(Estimate::Known { low, .. } | Estimate::AtLeast(low)) => {
            Figure::bound(Estimate::AtLeast(low), DOUBTFUL)
        }
        _ => Figure::unknown(DOUBTFUL),
    }
}

/// What is left of a figure that was measured beside other processes: they had a part of the limit, or have limits of their own.
fn with_others(figure: &Figure, level: &RateLevel, kind: BucketUnit) -> Figure {
    let Some(Estimate::Known { low, .. } | Estimate::AtLeast(low)) = figure.estimate else {
        return figure.clone();
    };
    let (theirs, total) = match kind {
        BucketUnit::Ios => {
            let theirs = level.others.ios;
            (format!("{theirs:.0} IOPS"), format!("{:.0} IOPS", level.rate + theirs))
        }
        BucketUnit::Bytes => {
            let theirs = level.others.bytes;
            (mebibytes(theirs), mebibytes(level.bytes() + theirs))
        }
    };
    let why = format!("other processes had {theirs} of the {total} that the device delivered");
    Figure::bound(Estimate::AtLeast(low), why)
}

/// A limit holds a rate at least this even.
const EVEN: f64 = 0.1;
const UNEVEN: &str = "the rate varied more than it does at a limit";

/// The limit on requests of one direction.
fn iops(curve: &Curve) -> Figure {
    let rate = curve.top.rate;
    let least = Estimate::AtLeast(rate * (0.99 - curve.top.error));
    match curve.small_limit {
        SmallIoLimit::Count if is_varied(&curve.top) => Figure::bound(least, UNEVEN),
        SmallIoLimit::Count => known(&curve.top, rate, curve.top.unreleased()),
        SmallIoLimit::Bytes => Figure::bound(least, "the bandwidth limit applies even to the smallest I/Os"),
        SmallIoLimit::Depth => Figure::bound(least, "the rate grew with the queue depth"),
        SmallIoLimit::Client => Figure::bound(least, "the client was the limit"),
        SmallIoLimit::Width(width) => Figure::bound(least, format!("{width} I/Os are served in parallel")),
    }
}

/// The limit on bytes of one direction.
fn bytes(curve: &Curve) -> Figure {
    // The shortest measurements last for about a second, and a turn more or less counts in them.
    let least = |bytes: f64| Estimate::AtLeast(bytes * (0.99 - curve.top.turn_s));
    match curve.bulk {
        Some(bulk) if bulk.is_busy => Figure::bound(least(bulk.least_bytes()), "the client was the limit"),
        Some(bulk) if is_varied(&bulk) => Figure::bound(least(bulk.least_bytes()), UNEVEN),
        Some(bulk) => known(&bulk, bulk.bytes(), 0.0),
        None => {
            let why = match curve.unit {
                ObservedUnit::Exactly(_) => "larger I/Os count as several",
                _ => "the IOPS limit applies even to the largest I/Os",
            };
            Figure::bound(least(curve.least_bytes), why)
        }
    }
}

fn is_varied(level: &RateLevel) -> bool {
    level.uneven > EVEN || level.varies
}

/// `value` of `level` with its interval. The limit may be higher by `unreleased`, which it never admits.
fn known(level: &RateLevel, value: f64, unreleased: f64) -> Figure {
    let low = value * (1.0 - level.error);
    // Other processes share the limit, or have their own.
    let others = if level.others.share < DISTURBED { level.others.share } else { 0.0 };
    Figure::known(value, low, (value + unreleased) * (1.0 + level.error + others))
}

/// The block size at which both limits meet.
fn crossover(iops: &Figure, bytes: &Figure) -> Figure {
    match (iops.estimate, bytes.estimate) {
        (
            Some(Estimate::Known { value: ios, low: ios_low, high: ios_high }),
            Some(Estimate::Known { value, low, high }),
        ) => Figure::known(value / ios, low / ios_high, high / ios_low),
        (Some(Estimate::Known { low, .. }), Some(Estimate::AtLeast(bytes))) => {
            Figure::bound(Estimate::AtLeast(bytes / low * 0.98), "no bandwidth limit was reached")
        }
        (Some(Estimate::AtLeast(ios)), Some(Estimate::Known { high, .. })) => {
            Figure::bound(Estimate::AtMost(high / ios), "no IOPS limit was reached")
        }
        _ => Figure::unknown("no limit was reached"),
    }
}

/// The largest request that counts as one.
fn unit(unit: ObservedUnit) -> Figure {
    match unit {
        ObservedUnit::Exactly(bytes) => Figure::known(bytes as f64, bytes as f64, bytes as f64),
        ObservedUnit::Above(bytes) => {
            let why = "no larger I/O counted as several";
            Figure::bound(Estimate::AtLeast(bytes as f64), why)
        }
        ObservedUnit::Hidden => Figure::unknown("another limit hides how I/Os are counted"),
    }
}

/// A finding for each limit of the instance that was identified as one of the volume.
pub fn instance_findings(record: &RunRecord) -> Vec<Finding> {
    let has_instance = |row: &RecordRow<'_>| {
        row.test.published.as_ref().is_some_and(|published| published.instance.is_some())
    };
    let rows: Vec<RecordRow<'_>> = rows(record).into_iter().filter(has_instance).collect();
    let Some(found) = (if rows.is_empty() { None } else { identified_of(record) }) else {
        return Vec::new();
    };
    let all: Vec<(&RecordRow<'_>, InstanceHold<'_>)> =
        held(&rows, &found.iops, false).chain(held(&rows, &found.bytes_per_second, true)).collect();
    let holds: Vec<InstanceHold<'_>> = all.iter().map(|(_, hold)| *hold).collect();
    let of_limit = |alike: &Vec<usize>| {
        let alike_holds: Vec<InstanceHold<'_>> = alike.iter().map(|place| holds[*place]).collect();
        on_rows(instance_limit::finding(&alike_holds), alike.iter().map(|place| all[*place].0))
    };
    instance_limit::alike(&holds).iter().map(of_limit).collect()
}

/// The figures that are limits of the instance, each with the measurement that came nearest to it: of the smallest I/Os for IOPS, of
/// the largest for bytes.
fn held<'r, 'a>(
    rows: &'r [RecordRow<'a>],
    figures: &EachWay,
    is_bandwidth: bool,
) -> impl Iterator<Item = (&'r RecordRow<'a>, InstanceHold<'r>)> {
    let hold = move |(kind, figure): (RowKind, Option<f64>)| {
        let of_kind = rows.iter().filter(|row| row.kind() == Some(kind));
        let sized = of_kind.filter_map(|row| Some((row, row.block_bytes()?)));
        let order = |bytes: u64| if is_bandwidth { u64::MAX - bytes } else { bytes };
        let figure = figure?;
        let iops_of = |bytes: u64| if is_bandwidth { figure / bytes as f64 } else { figure };
        let (row, bytes) = sized.min_by(|(one, one_bytes), (other, other_bytes)| {
            let apart = |row: &RecordRow<'_>, bytes: u64| (row.iops() - iops_of(bytes)).abs();
            order(*one_bytes)
                .cmp(&order(*other_bytes))
                .then(apart(one, *one_bytes).total_cmp(&apart(other, *other_bytes)))
        })?;
        let iops = iops_of(bytes);
        let reach = row.test.published.as_ref()?.instance.as_ref()?;
        InstanceHold::of(reach, iops, bytes as f64)
            .filter(|hold| hold.is_bandwidth == is_bandwidth)
            .map(|hold| (row, hold))
    };
    let value = |writes: bool| figures.of(writes).and_then(|figure| figure.value());
    [(RowKind::Read, value(false)), (RowKind::Write, value(true))].into_iter().filter_map(hold)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(block: u64, rate: f64, error: f64, uneven: f64) -> RateLevel {
        RateLevel { block, depth: 4, rate, error, uneven, ios: 100, ..RateLevel::default() }
    }

    /// What is certain of the bytes a second is the low end of what was measured, however high that was.
    #[test]
    fn a_bound_on_bytes_allows_for_the_error_of_its_rate() {
        let check = |bulk: Option<RateLevel>, most: RateLevel, at_most: f64| {
            let curve = Curve {
                way: IoDirection::Read,
                top: level(4096, 1000.0, 0.002, 0.0),
                small_limit: SmallIoLimit::Count,
                bulk,
                most_bytes: most.bytes(),
                least_bytes: most.least_bytes(),
                flat_to: Some(4096),
                unit: ObservedUnit::Hidden,
                both: 4096,
            };
            let figure = bytes(&curve);
            let least = figure.estimate.and_then(|estimate| estimate.low()).expect("a bound");
            assert!(figure.value().is_none() && least < at_most && least > 0.95 * at_most, "{figure:?}");
        };
        // 4 MiB/s, of which 4 % too many were counted.
        let uneven = level(1 << 20, 4.16, 0.06, 0.2);
        check(Some(uneven), uneven, 4.0 * 1048576.0);
        check(None, level(1 << 20, 4.16, 0.06, 0.0), 4.0 * 1048576.0);
    }
}
