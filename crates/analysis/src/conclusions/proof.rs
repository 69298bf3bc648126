//! What the rows of a run prove of a need: that the volume meets it, that it cannot, or neither.
//!
//! Both kinds of proof hold for the volume, not only for the row, so that two selections of tests never contradict each other.
//! They assume of a volume that rate and latency grow with the queue depth, that an I/O costs no less than a smaller one and no
//! more than the smaller ones that it consists of, and that loads can share the time. Latency in a deep queue is one of the
//! queue (Little's law): it disproves a need only where the rate is lower than the need as well.

use fathom_model::units;
use fathom_record::ActivityKind;

use super::OperatingPoint;
use super::measured::{MeasuredOp, MeasuredRow, SINGLE, SyncPattern};
use super::uses::{NeededRate, Use, UseNeed};
use crate::say::count;

/// Rates that miss a need by no more than this meet it: a limit is measured with such an error.
pub(super) const MEETS: f64 = 0.02;
/// Bytes outstanding that count as those of the use.
pub(super) const IN_FLIGHT: f64 = 0.10;

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
            // Of proofs alike the one that rests on the fewest tests.
            let tests = |proof: &Proof| std::cmp::Reverse(proof.tests.len());
            alike
                .max_by(|one, other| {
                    one.point.iops.total_cmp(&other.point.iops).then(tests(one).cmp(&tests(other)))
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
        if is_synced && op.shows_p99(limit_ns, &self.extra_ns(op, is_load)) {
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
            (is_alike && is_synced == stream.is_commit && single.shows_p99(limit_ns, &extra))
                .then_some((rest, single))
        });
        let (rest, single) = rest?;
        Some(Carrier { p99_ns: single.p99_ns(), rest: Some(rest), ..carrier })
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
