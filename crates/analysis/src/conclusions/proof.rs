//! What the rows of a run prove of a need: that the volume meets it, that it cannot, or neither.
//!
//! Both kinds of proof hold for the volume, not only for the row, so that two selections of tests never contradict each other.
//! They assume of a volume that rate and latency grow with the queue depth, that an I/O costs no less than a smaller one and no
//! more than the smaller ones that it consists of, and that loads can share the time. Latency in a deep queue is one of the
//! queue (Little's law): it disproves a need only where the rate is lower than the need as well.

use std::cmp::Reverse;

use fathom_model::units;
use fathom_record::ActivityKind;

use super::OperatingPoint;
use super::measured::{BEYOND_P99, MeasuredOp, MeasuredRow, SINGLE, SyncPattern};
use super::uses::{NeededRate, Use, UseNeed};
use crate::findings::pauses::DevicePauses;
use crate::say::{count, percent};

/// Rates that miss a need by no more than this meet it: a limit is measured with such an error.
pub(super) const MEETS: f64 = 0.02;
/// Bytes outstanding that count as those of the use.
const IN_FLIGHT: f64 = 0.10;

/// A need that is proven or disproven.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Proof {
    pub(super) point: OperatingPoint,
    pub(super) reason: String,
    /// Ids of the tests that it rests on.
    pub(super) tests: Vec<String>,
}

/// A part of a use's load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) is_read: bool,
    /// Share of the I/Os.
    pub(super) share: f64,
    /// Writes of which each is followed by a sync.
    pub(super) is_commit: bool,
}

/// The reads and the writes of a use.
pub(super) fn streams(purpose: &Use) -> Vec<Stream> {
    let reads = f64::from(purpose.read_percent) / 100.0;
    let all = [
        Stream { is_read: true, share: reads, is_commit: false },
        Stream { is_read: false, share: 1.0 - reads, is_commit: purpose.synced },
    ];
    all.into_iter().filter(|stream| stream.share > 0.0).collect()
}

/// A row that carries a stream, and what it says of the stream's latency.
#[derive(Clone, Debug)]
struct Carrier<'a> {
    row: &'a MeasuredRow,
    /// I/Os per second that the row shows of this stream.
    rate: f64,
    cost: IoCost,
    p99_ns: Option<u64>,
    /// The test of the latency at rest, where the latency follows from it.
    rest: Option<&'a MeasuredRow>,
    /// The test of larger I/Os, where the cost follows from it.
    larger: Option<&'a MeasuredRow>,
}

/// The most that an I/O of a use costs, beside one of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IoCost {
    /// I/Os of the row.
    pub(super) ios: f64,
    /// Time of the volume beyond them, s.
    pub(super) seconds: f64,
    /// Larger I/Os of another row show it.
    pub(super) by_larger: bool,
}

impl IoCost {
    /// That of an I/O such as the row has.
    const SAME: IoCost = IoCost { ios: 1.0, seconds: 0.0, by_larger: false };
}

impl Carrier<'_> {
    /// I/Os of the use per second, if the stream has the volume to itself.
    fn alone(&self) -> f64 {
        1.0 / (self.cost.ios / self.rate + self.cost.seconds)
    }
}

/// A use, and the rows of a run.
pub(super) struct Case<'a> {
    pub(super) purpose: &'static Use,
    pub(super) rows: &'a [MeasuredRow],
    /// The pauses of the device, which may be none; `None` where no row tells.
    pub(super) pauses: Option<&'a DevicePauses>,
    /// The command whose options a remedy names.
    pub(super) kind: ActivityKind,
    /// Rows in doubt count as well.
    pub(super) ignores_doubt: bool,
}

impl<'a> Case<'a> {
    /// Rows whose figures may be better than the volume show nothing.
    pub(super) fn showing(&self) -> impl Iterator<Item = &'a MeasuredRow> {
        let ignores_doubt = self.ignores_doubt;
        self.rows.iter().filter(move |row| ignores_doubt || row.flattered.is_none())
    }

    /// Shows that the volume meets `need`, by the highest rate that is shown.
    pub(super) fn shown(&self, need: &UseNeed) -> Option<Proof> {
        let together = self.showing().filter_map(|row| self.together(row, need));
        let all: Vec<Proof> = together.chain(self.apart(need)).chain(self.beside(need)).collect();
        let best = |computed: bool| {
            let alike = all.iter().filter(|proof| proof.point.computed == computed);
            // Of proofs alike the one that rests on the fewest tests, at the lowest latency.
            let least = |proof: &Proof| Reverse((proof.tests.len(), proof.point.p99_ns));
            alike
                .max_by(|one, other| {
                    one.point.iops.total_cmp(&other.point.iops).then_with(|| least(one).cmp(&least(other)))
                })
                .cloned()
        };
        best(false).or_else(|| best(true))
    }

    /// One row that carries every stream at once.
    fn together(&self, row: &'a MeasuredRow, need: &UseNeed) -> Option<Proof> {
        let carried = self.carried(row, need)?;
        // The row has all of its streams at once, and beside them the time that larger I/Os take.
        let ios = carried.iter().map(|(stream, carrier)| stream.share * carrier.cost.ios / carrier.rate);
        let beside: f64 = carried.iter().map(|(stream, carrier)| stream.share * carrier.cost.seconds).sum();
        let rate = 1.0 / (ios.reduce(f64::max)? + beside);
        self.proof(need, rate, carried.into_iter().map(|(_, carrier)| carrier).collect())
    }

    fn carried(&self, row: &'a MeasuredRow, need: &UseNeed) -> Option<Vec<(Stream, Carrier<'a>)>> {
        let streams = streams(self.purpose).into_iter();
        streams.map(|stream| Some((stream, self.carrier(row, stream, need)?))).collect()
    }

    /// A row that carries reads and writes at once, and one that carries more of either: loads that share the time.
    fn beside(&self, need: &UseNeed) -> Option<Proof> {
        let mut best: Option<(f64, Vec<Carrier<'a>>)> = None;
        for row in self.showing().filter(|row| row.ops.len() > 1) {
            let Some(carried) = self.carried(row, need) else { continue };
            let [(_, one), (_, other)] = carried.as_slice() else { continue };
            // So much of each stream at once as leaves time for the larger I/Os.
            let beside = one.rate * one.cost.seconds + other.rate * other.cost.seconds;
            let scale = 1.0 / (one.cost.ios.max(other.cost.ios) + beside);
            for (more, rest) in [(&carried[0], &carried[1]), (&carried[1], &carried[0])] {
                let carriers = self.showing().filter_map(|row| self.carrier(row, more.0, need));
                let Some(alone) = carriers.max_by(|one, other| one.alone().total_cmp(&other.alone())) else {
                    continue;
                };
                let gained = (more.1.rate * scale - alone.alone()) / (rest.1.rate * scale);
                let rate = alone.alone() / (more.0.share - rest.0.share * gained);
                let is_known = rate > 0.0 && rate * rest.0.share <= rest.1.rate * scale;
                if is_known && best.as_ref().is_none_or(|(known, _)| rate > *known) {
                    best = Some((rate, vec![one.clone(), other.clone(), alone]));
                }
            }
        }
        let (rate, carriers) = best?;
        self.proof(need, rate, carriers)
    }

    /// A row for each stream: loads of which each has a share of the time.
    fn apart(&self, need: &UseNeed) -> Option<Proof> {
        let best = |stream: Stream| {
            let carriers = self.showing().filter_map(|row| self.carrier(row, stream, need));
            let best = carriers.max_by(|one, other| one.alone().total_cmp(&other.alone()))?;
            Some((stream, best))
        };
        let carried: Vec<(Stream, Carrier<'a>)> =
            streams(self.purpose).into_iter().map(best).collect::<Option<_>>()?;
        if carried.len() < 2 {
            return None;
        }
        let time: f64 = carried.iter().map(|(stream, carrier)| stream.share / carrier.alone()).sum();
        self.proof(need, 1.0 / time, carried.into_iter().map(|(_, carrier)| carrier).collect())
    }

    fn proof(&self, need: &UseNeed, rate: f64, carriers: Vec<Carrier<'a>>) -> Option<Proof> {
        let needed = self.purpose.iops(need);
        // Where fewer bytes were drawn than the shares of the sizes say, a bandwidth limit leaves fewer I/Os of the use.
        let drawn =
            carriers.iter().flat_map(|carrier| &carrier.row.ops).map(|op| op.drawn).fold(1.0, f64::min);
        if rate * drawn < needed * (1.0 - MEETS) {
            return None;
        }
        let mut tests: Vec<&MeasuredRow> = Vec::new();
        let rows = carriers.iter().flat_map(|carrier| [Some(carrier.row), carrier.rest, carrier.larger]);
        for row in rows.flatten() {
            if tests.iter().all(|known| known.test != row.test) {
                tests.push(row);
            }
        }
        let at_rest = carriers.iter().any(|carrier| carrier.rest.is_some());
        let is_converted = carriers.iter().any(|carrier| carrier.cost != IoCost::SAME);
        let computed = at_rest || is_converted || tests.len() > 1;
        // What follows from the latency at rest holds for the rate of the need.
        let rate = if at_rest { rate.min(needed) } else { rate };
        let point = OperatingPoint {
            iops: rate,
            bytes_per_second: rate * self.purpose.mean_block(),
            p99_ns: carriers.iter().filter_map(|carrier| carrier.p99_ns).max(),
            queue_depth: carriers.iter().map(|carrier| carrier.row.depth).fold(0.0, f64::max),
            computed,
        };
        let figure = self.figure(&point, need);
        let reason = if computed {
            let names: Vec<&str> = tests.iter().map(|row| row.test.as_str()).collect();
            let at_least = if at_rest { "at least " } else { "" };
            format!("{at_least}{figure} (computed from {})", names.join("; "))
        } else if tests.iter().any(|row| row.is_paced) {
            // Its depth follows from the rate.
            figure
        } else {
            format!("{figure}, QD {}", count(point.queue_depth))
        };
        Some(Proof { point, reason, tests: tests.into_iter().map(|row| row.test.clone()).collect() })
    }

    /// What `row` shows of `stream` within the latency of `need`.
    fn carrier(&self, row: &'a MeasuredRow, stream: Stream, need: &UseNeed) -> Option<Carrier<'a>> {
        let (purpose, op) = (self.purpose, row.op(stream.is_read)?);
        let is_load = row.is_load_of(purpose);
        let is_deeper = purpose
            .in_flight_bytes
            .is_some_and(|most| row.bytes_in_flight() > most as f64 * (1.0 + IN_FLIGHT));
        let is_alike = is_load || purpose.sequential || row.is_random || stream.is_commit;
        if !is_alike || is_deeper || (purpose.serial && row.depth > SINGLE) {
            return None;
        }
        let cost = self.cost(row, op, is_load);
        let larger = self.larger(op).filter(|_| cost.by_larger).map(|(row, _)| row);
        let carrier = Carrier { row, rate: op.low, cost, p99_ns: None, rest: None, larger };
        let is_synced = row.sync == SyncPattern::Each || !stream.is_commit;
        let Some(limit_ns) = need.p99_ns.map(|ns| ns as f64) else {
            return is_synced.then_some(carrier);
        };
        if is_synced && op.shows_p99(limit_ns, &self.extra_ns(op, is_load), self.late(row, limit_ns)) {
            return Some(Carrier { p99_ns: op.p99_ns(), ..carrier });
        }
        if !row.is_queue || purpose.serial {
            return None;
        }
        let rest = self.showing().find_map(|rest| {
            let single = rest.op(stream.is_read).filter(|_| rest.depth <= SINGLE && rest.ops.len() == 1)?;
            let is_synced = rest.sync == SyncPattern::Each;
            let is_alike = rest.is_random || purpose.sequential || stream.is_commit;
            // Of the I/Os outstanding at the needed rate each waits for the others at most once.
            let outstanding = (purpose.iops(need) * single.mean_ns() / 1e9).ceil().max(1.0);
            let limit_ns = limit_ns - outstanding * 1e9 / carrier.alone().max(f64::MIN_POSITIVE);
            let extra = self.extra_ns(single, false);
            (is_alike
                && is_synced == stream.is_commit
                && single.shows_p99(limit_ns, &extra, self.late(rest, limit_ns)))
            .then_some((rest, single))
        });
        let (rest, single) = rest?;
        Some(Carrier { p99_ns: single.p99_ns(), rest: Some(rest), ..carrier })
    }

    /// Share of arrivals that pauses make later than `limit_ns`. Where no row tells whether silences are the device's, they count as
    /// its; under a rate, latencies are those of arrivals.
    fn late(&self, row: &MeasuredRow, limit_ns: f64) -> f64 {
        match self.pauses {
            _ if row.is_paced => 0.0,
            Some(pauses) => pauses.arrivals_beyond(limit_ns),
            None => row.silent.arrivals_beyond(limit_ns),
        }
    }

    /// The device pauses, also under single I/Os, so that more than one arrival of a hundred waits for too long.
    fn paused(&self, need: &UseNeed) -> Option<Proof> {
        let limit_ns = need.p99_ns? as f64;
        let pauses = self.pauses?;
        let share = pauses.arrivals_beyond(limit_ns * (1.0 + CLEAR));
        let is_paused = |row: &&MeasuredRow| {
            row.depth <= SINGLE
                && !row.is_paced
                && row.silent.arrivals_beyond(limit_ns * (1.0 + CLEAR)) > BEYOND_P99
        };
        let row = self.rows.iter().find(is_paused).filter(|_| share > BEYOND_P99)?;
        let reason = format!(
            "{}: {} of arrivals wait for longer than {}",
            pauses.text()?,
            percent(share),
            units::latency(need.p99_ns?)
        );
        Some(Proof { point: self.point(row, None), reason, tests: vec![row.test.clone()] })
    }

    /// The most that an I/O of the use costs.
    pub(super) fn cost(&self, row: &MeasuredRow, op: &MeasuredOp, is_load: bool) -> IoCost {
        let smallest = op.smallest().max(1);
        let larger = self.larger(op).map(|(_, larger)| larger);
        let of_block = |block: u64| {
            let ios = block.div_ceil(smallest) as f64;
            let several = IoCost { ios, ..IoCost::SAME };
            let Some(larger) = larger.filter(|_| block > smallest) else { return several };
            let transfer = 1.0 / (larger.smallest() as f64 * larger.low);
            let seconds = match self.purpose.serial {
                true => (block - smallest) as f64 * (self.byte_ns(op) / 1e9 + transfer),
                // Below the block size from which the bandwidth limits the rate, an IOPS limit counts one.
                false if row.is_queue && block as f64 * transfer * row.iops() <= 1.0 => 0.0,
                false => block as f64 * transfer,
            };
            let is_less = seconds <= (several.ios - 1.0) / row.iops().max(f64::MIN_POSITIVE);
            if is_less { IoCost { ios: 1.0, seconds, by_larger: true } } else { several }
        };
        if is_load {
            return IoCost::SAME;
        }
        let mut mean = IoCost { ios: 0.0, ..IoCost::SAME };
        for (block, share) in self.shares() {
            let IoCost { ios, seconds, by_larger } = of_block(block);
            mean = IoCost {
                ios: mean.ios + share * ios,
                seconds: mean.seconds + share * seconds,
                by_larger: mean.by_larger || by_larger,
            };
        }
        // Shares add up to 1 but for rounding.
        if (mean.ios - 1.0).abs() < 1e-9 { IoCost { ios: 1.0, ..mean } } else { mean }
    }

    /// How much longer an I/O of each size of the use takes than one of the row, at most, ns; and the share of the size.
    fn extra_ns(&self, op: &MeasuredOp, is_load: bool) -> Vec<(f64, f64)> {
        if is_load {
            return vec![(0.0, 1.0)];
        }
        let byte_ns = self.byte_ns(op);
        let extra = |block: u64| block.saturating_sub(op.smallest()) as f64 * byte_ns;
        self.shares().map(|(block, share)| (extra(block), share)).collect()
    }

    pub(super) fn shares(&self) -> impl Iterator<Item = (u64, f64)> + 'a {
        self.purpose.blocks.iter().map(|&(block, percent)| (block, f64::from(percent) / 100.0))
    }

    /// The most that a byte more takes in one I/O, ns: no I/O was quicker than its bytes.
    fn byte_ns(&self, like: &MeasuredOp) -> f64 {
        let ops = self.showing().filter_map(|row| row.op(like.is_read));
        let quickest = |op: &MeasuredOp| op.least_ns / op.smallest().max(1) as f64;
        ops.chain([like]).map(quickest).fold(f64::INFINITY, f64::min)
    }

    /// The row with the most bytes per second in larger blocks of this operation.
    fn larger(&self, like: &MeasuredOp) -> Option<(&'a MeasuredRow, &'a MeasuredOp)> {
        // Beside the cost of a small random I/O, the bytes of a large one cost no more than in order.
        let ops = self.showing().filter_map(|row| Some((row, row.op(like.is_read)?)));
        let larger = ops.filter(|(_, op)| op.smallest() > like.smallest() && op.low > 0.0);
        let rate = |op: &MeasuredOp| op.smallest() as f64 * op.low;
        larger.max_by(|(_, one), (_, other)| rate(one).total_cmp(&rate(other)))
    }

    /// `3,000 IOPS at p99 3.16 ms`.
    fn figure(&self, point: &OperatingPoint, need: &UseNeed) -> String {
        let rate = rate(point, need);
        let of = if self.purpose.serial { "write and sync " } else { "" };
        match point.p99_ns {
            Some(p99) => format!("{rate} at {of}p99 {}", units::latency(p99)),
            None => rate,
        }
    }
}

/// `3,000 IOPS`, `131 MB/s`: in the unit of the need.
pub(super) fn rate(point: &OperatingPoint, need: &UseNeed) -> String {
    match need.rate {
        NeededRate::Iops(_) => NeededRate::Iops(point.iops).text(),
        NeededRate::Bytes(_) => NeededRate::Bytes(point.bytes_per_second).text(),
    }
}

/// Rates that miss a need by this, and latencies that exceed it, disprove it; in between nothing is proven.
pub(super) const CLEAR: f64 = 0.05;
/// A rate this much higher at another depth shows that no limit held the single I/O.
const UNLIMITED: f64 = 1.3;
/// Bandwidths of one limit agree within this share.
const SAME_BANDWIDTH: f64 = 0.03;

impl Case<'_> {
    /// Share of the time that doubts may have taken from a row; `None` where it disproves nothing.
    fn withheld(&self, row: &MeasuredRow) -> Option<f64> {
        if self.ignores_doubt { Some(0.0) } else { row.withheld }
    }

    /// The share by which the rate of a row must miss a need to disprove it: no less than it is uncertain, and what it lost.
    fn clear(&self, row: &MeasuredRow) -> f64 {
        1.0 - (1.0 - CLEAR.max(row.interval)) * (1.0 - self.withheld(row).unwrap_or(1.0))
    }

    /// Shows that the volume cannot meet `need`.
    pub(super) fn disproved(&self, need: &UseNeed) -> Option<Proof> {
        // Arrivals at random wait for each other, which those of the use need not do: a fixed rate shows, and refutes nothing.
        let bounds = |row: &MeasuredRow| !row.is_paced && self.bounds(row);
        let rows = || self.rows.iter().enumerate().filter(move |(_, row)| bounds(row));
        let by_rate = rows().find_map(|(_, row)| self.too_slow(row, need));
        by_rate
            .or_else(|| self.too_narrow(need))
            .or_else(|| rows().find_map(|(at, row)| self.too_late(at, row, need)))
            .or_else(|| self.paused(need))
    }

    /// True where the volume serves the use no better than it served the row.
    fn bounds(&self, row: &MeasuredRow) -> bool {
        let streams = streams(self.purpose);
        let is_part = |op: &MeasuredOp| streams.iter().any(|stream| stream.is_read == op.is_read);
        let is_load = row.is_load_of(self.purpose);
        let is_synced = match row.sync {
            SyncPattern::None => false,
            SyncPattern::Each => !self.purpose.synced,
            SyncPattern::Some => true,
        };
        self.withheld(row).is_some()
            && row.ops.iter().all(is_part)
            && (is_load || !is_synced && (!self.purpose.sequential || !row.is_random))
    }

    /// The highest rate of the use's I/Os of an operation, if the row had as many as the volume gives.
    fn most(&self, row: &MeasuredRow, op: &MeasuredOp) -> f64 {
        if row.is_load_of(self.purpose) {
            // Where more bytes were drawn than the shares of the sizes say, a bandwidth limit leaves more I/Os of the use.
            return op.high * op.drawn.max(1.0);
        }
        let part = |(block, share): (u64, f64)| share / op.largest().div_ceil(block.max(1)) as f64;
        op.high / self.shares().map(part).sum::<f64>()
    }

    /// The use's rates of the operations of a row, where each is above what the row reached by more than `beyond`.
    fn beyond(&self, row: &MeasuredRow, need: &UseNeed, beyond: f64) -> Option<f64> {
        let streams = streams(self.purpose);
        let needed = |op: &MeasuredOp| {
            let stream = streams.iter().find(|stream| stream.is_read == op.is_read)?;
            let needed = self.purpose.iops(need) * stream.share;
            (needed * (1.0 - beyond) > self.most(row, op)).then_some(needed)
        };
        row.ops.iter().map(needed).sum()
    }

    /// The same for a full queue of reads and writes whose rates the need does not exceed by themselves: time shared between the
    /// need and a load that is shown would exceed both.
    fn mixes_beyond(&self, row: &MeasuredRow, need: &UseNeed) -> Option<f64> {
        let streams = streams(self.purpose);
        let [reads, writes] = streams.as_slice() else { return None };
        let kept = (1.0 - CLEAR) * (1.0 - self.withheld(row)?);
        let rates = |stream: &Stream| Some(self.most(row, row.op(stream.is_read)?) / kept);
        let full = [rates(reads)?, rates(writes)?];
        let iops = self.purpose.iops(need);
        let needed = [iops * reads.share, iops * writes.share];
        let exceeds = |shown: [f64; 2]| {
            let (mut least, mut most) = (0.0_f64, 1.0_f64);
            for at in 0..2 {
                // Of the time, the share `x` of the need: x * needed + (1 - x) * shown >= full.
                let (rise, gap) = (needed[at] - shown[at], full[at] - shown[at]);
                match rise {
                    rise if rise > 0.0 => least = least.max(gap / rise),
                    rise if rise < 0.0 => most = most.min(gap / rise),
                    _ if gap > 0.0 => return false,
                    _ => {}
                }
            }
            least <= most
        };
        let shows = |other: &MeasuredRow| {
            let [op] = other.ops.as_slice() else { return false };
            let is_alike = self.purpose.sequential || other.is_random;
            let cost = self.cost(other, op, false);
            let rate = 1.0 / (cost.ios / op.low + cost.seconds);
            is_alike && exceeds(if op.is_read { [rate, 0.0] } else { [0.0, rate] })
        };
        (row.is_queue && self.showing().any(shows)).then_some(iops)
    }

    /// The factor by which the rate of a row may rise at the depth of the use: latency grows with the depth, so the rate grows by
    /// no more than the depth does. 1 in front of a limit, and where the latency bounds the depth.
    fn growth(&self, row: &MeasuredRow) -> f64 {
        let Some(most) = self.purpose.in_flight_bytes.filter(|_| !row.is_queue) else { return 1.0 };
        let block = self.purpose.mean_block();
        let largest = row.ops.iter().map(MeasuredOp::largest).max().unwrap_or(0) as f64;
        // An I/O of the row is outstanding as at least one of the use.
        let growth = most as f64 / block / (row.depth * (largest / block).max(1.0));
        if growth * (1.0 - IN_FLIGHT) <= 1.0 { 1.0 } else { growth }
    }

    /// The rate is below the need although more outstanding I/Os would not raise it, or would take too long.
    fn too_slow(&self, row: &MeasuredRow, need: &UseNeed) -> Option<Proof> {
        let mixes = || self.mixes_beyond(row, need);
        let by_rate = || self.beyond(row, need, 1.0 - (1.0 - self.clear(row)) / self.growth(row));
        let needed = by_rate().or_else(mixes).filter(|_| !row.is_paced)?;
        let outstanding = need.p99_ns.map(|ns| needed * ns as f64 / 1e9 * (1.0 + IN_FLIGHT));
        let is_deep = row.is_queue
            || self.purpose.serial
            || self.purpose.in_flight_bytes.is_some()
            || outstanding.is_some_and(|enough| row.depth >= enough);
        if !is_deep {
            return None;
        }
        let point = self.point(row, None);
        let needs = match need.rate {
            NeededRate::Iops(_) => NeededRate::Iops(needed),
            NeededRate::Bytes(_) => NeededRate::Bytes(needed * self.purpose.mean_block()),
        };
        let is_part = row.ops.len() < streams(self.purpose).len();
        let of = if is_part { format!(" of {}", row.test) } else { String::new() };
        let (rate, depth) = (rate(&point, need), count(row.depth));
        let reason = format!("{rate}{of}, QD {depth} (needs >= {})", needs.text());
        Some(Proof { point, reason, tests: vec![row.test.clone()] })
    }

    /// Two full queues of different block sizes have the same bandwidth, and the need a higher one.
    fn too_narrow(&self, need: &UseNeed) -> Option<Proof> {
        let streams = streams(self.purpose);
        let bytes = |op: &MeasuredOp| op.high * op.largest() as f64;
        let full = |is_read: bool| {
            let is_full =
                |row: &&MeasuredRow| row.is_queue && row.ops.len() == 1 && self.withheld(row).is_some();
            let rows = self.rows.iter().filter(is_full);
            rows.filter_map(move |row| Some((row, row.op(is_read).filter(|op| op.blocks.len() == 1)?)))
        };
        streams.iter().find_map(|stream| {
            let needed = self.purpose.iops(need) * stream.share * self.purpose.mean_block();
            let is_less = |row: &MeasuredRow, op: &MeasuredOp| {
                bytes(op) < needed * (1.0 - CLEAR) * (1.0 - self.withheld(row).unwrap_or(1.0))
            };
            full(stream.is_read).filter(|(row, op)| is_less(row, op)).find_map(|(row, op)| {
                let is_same = |other: &MeasuredOp| {
                    other.largest() >= 2 * op.largest()
                        && (bytes(other) / bytes(op) - 1.0).abs() <= SAME_BANDWIDTH
                };
                let (other, _) = full(stream.is_read).find(|(_, other)| is_same(other))?;
                let (rate, needs) = (NeededRate::Bytes(bytes(op)).text(), NeededRate::Bytes(needed).text());
                let names = [row, other].map(|row| row.test.as_str()).join("; ");
                let reason = format!("{rate}, whatever the block size ({names}; needs >= {needs})");
                let tests = [row, other].map(|row| row.test.clone()).to_vec();
                Some(Proof { point: self.point(row, None), reason, tests })
            })
        })
    }

    /// The latency exceeds the need at a rate below it, or without a queue.
    fn too_late(&self, at: usize, row: &MeasuredRow, need: &UseNeed) -> Option<Proof> {
        let limit_ns = need.p99_ns?;
        let smallest = self.purpose.blocks.iter().map(|(block, _)| *block).min()?;
        let is_load = row.is_load_of(self.purpose);
        let is_late = |op: &&MeasuredOp| {
            (is_load || op.largest() <= smallest)
                && op.disproves_p99(limit_ns as f64 * (1.0 + CLEAR), self.withheld(row).unwrap_or(1.0))
        };
        let late = row.ops.iter().filter(is_late).max_by_key(|op| op.p99_ns())?;
        // A rate that may meet the need waits in a queue that the need has not.
        let is_slower = !row.is_paced && self.beyond(row, need, self.clear(row)).is_some();
        if !is_slower && !self.is_unloaded(at, late) {
            return None;
        }
        let point = self.point(row, late.p99_ns());
        let (name, ns) = match late.median_ns().filter(|ns| *ns > limit_ns) {
            Some(median) => ("median", median),
            None => ("p99", late.p99_ns()?),
        };
        let reason = format!(
            "{}{name} {} at {} IOPS, QD {} (needs p99 <= {})",
            if late.sync.is_some() { "write and sync " } else { "" },
            units::latency(ns),
            count(row.iops()),
            count(row.depth),
            units::latency(limit_ns)
        );
        Some(Proof { point, reason, tests: vec![row.test.clone()] })
    }

    /// True where no limit held the single I/Os of this row: a later one of blocks no smaller reached a higher rate, or it paused in
    /// between.
    fn is_unloaded(&self, at: usize, op: &MeasuredOp) -> bool {
        let row = &self.rows[at];
        let is_quicker = |later: &MeasuredRow| {
            later
                .op(op.is_read)
                .is_some_and(|other| other.smallest() >= op.largest() && other.low >= UNLIMITED * op.high)
        };
        row.depth <= SINGLE
            && !row.is_exhausted()
            && (row.is_paced || self.rows[at + 1..].iter().any(is_quicker))
    }

    fn point(&self, row: &MeasuredRow, p99_ns: Option<u64>) -> OperatingPoint {
        OperatingPoint {
            iops: row.iops(),
            bytes_per_second: row.iops() * row.mean_block(),
            p99_ns,
            queue_depth: row.depth,
            computed: false,
        }
    }
}
