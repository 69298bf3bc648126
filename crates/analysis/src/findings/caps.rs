//! Limits that show as a plateau: so many requests a second, or so many bytes, whatever the depth; and what follows for
//! latency and block size.
//!
//! A plateau of one point is no plateau: two points of the run have to agree, or one with a limit that is known.

use fathom_model::units::{self, Nanos};
use fathom_record::{BurstRecord, Finding, FindingId, LatencySummary, RunRecord, stability::Second};
use fathom_stats::sample::mean;
use fathom_stats::{Histogram, histogram};

use crate::accounting::{BlockRate, Charge, IoUnit, charge, deciding_block};
use crate::findings::{client, tail};
use crate::plateau::{self, AGREE, RunRate, at_the_top};
use crate::rows::{MIN_SECONDS, RecordRow, RowKind};
use crate::say::{block, count, finding, mebibytes};
use crate::steady::coefficient_of_variation;
use crate::steady::rate_duration::DurationBasis;

/// Spread from second to second below which a rate is held by a limit: a busy device is less even.
const EVEN: f64 = 0.02;
/// Points are of different depths where one is this many times the other.
const DEEPER: f64 = 2.0;
/// Latency at the cap over that of a single request from which on waiting is what most of it is.
const MOSTLY_WAITING: f64 = 2.0;
/// A larger block must have moved this many times as much before a smaller one is called too small.
const WORTHWHILE: f64 = 1.5;

/// Block sizes are multiples of this.
const SECTOR: u64 = 512;

/// What more depth does at a limit.
pub const REQUESTS_WAIT: &str = "More depth or jobs only add queueing delay";

/// A limit and the rows that show it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cap {
    pub(crate) kind: RowKind,
    /// Requests or bytes per second.
    pub(crate) value: f64,
    /// The limit of a control group that the value agrees with.
    group_limit: Option<u64>,
    /// The limit that the same group sets in the other unit.
    other_group_limit: Option<u64>,
    /// Indices of the rows.
    rows: Vec<usize>,
    /// The unit in which I/Os are counted, and their limit: of a limit on I/Os where one shows, of one on bytes where such a
    /// unit would explain the same rates.
    counted: Option<(IoUnit, f64)>,
}

impl Cap {
    fn io_unit_bytes(&self) -> Option<f64> {
        self.counted.map(|(unit, _)| unit.value())
    }

    /// The block size of all of its rows; `None` where they differ.
    fn block_bytes(&self, rows: &[RecordRow<'_>]) -> Option<u64> {
        let mut sizes = self.rows.iter().map(|&at| rows[at].block_bytes());
        let first = sizes.next()??;
        sizes.all(|size| size == Some(first)).then_some(first)
    }
}

/// The limits of a run.
#[derive(Debug, Default)]
pub(crate) struct Caps {
    pub(crate) iops: Vec<Cap>,
    pub(crate) bytes: Vec<Cap>,
    /// Limits on I/Os or on bytes, in IOPS.
    unknown: Vec<Cap>,
    /// Plateaus of a device that serves I/Os in groups, in IOPS: no limits.
    parallel: Vec<Cap>,
    /// Directory of the control group that sets limits.
    group: Option<String>,
}

impl Caps {
    fn all(&self) -> impl Iterator<Item = &Cap> {
        self.iops.iter().chain(&self.bytes).chain(&self.unknown).chain(&self.parallel)
    }

    /// The rows whose rate a limit on I/Os or bytes holds.
    pub(crate) fn limited<'r, 'a>(
        &'r self,
        rows: &'r [RecordRow<'a>],
    ) -> impl Iterator<Item = &'r RecordRow<'a>> {
        self.iops.iter().chain(&self.bytes).flat_map(|cap| &cap.rows).map(|&at| &rows[at])
    }

    /// The limit on I/Os that counts the syncs of `row` like its writes: both together reach it.
    pub(crate) fn of_syncs(&self, row: &RecordRow<'_>) -> Option<f64> {
        let (write, sync) = (row.summary.write.as_ref()?, row.summary.sync.as_ref()?);
        let seconds = row.summary.measured_ns as f64 / 1e9;
        let reached = (write.ios + sync.ios) as f64 / seconds;
        // One of unknown kind that counts syncs counts I/Os.
        let of_writes = self.iops.iter().chain(&self.unknown).filter(|cap| cap.kind != RowKind::Read);
        of_writes.map(|cap| cap.value).find(|limit| (reached / limit - 1.0).abs() <= AGREE)
    }

    /// Leaves the limits that are set.
    pub(crate) fn keep_set(&mut self) {
        for caps in [&mut self.iops, &mut self.bytes, &mut self.unknown, &mut self.parallel] {
            caps.retain(|cap| cap.group_limit.is_some());
        }
    }

    /// Leaves in each list what other block sizes and the first I/Os in the queue confirm.
    fn confirm(&mut self, rows: &[RecordRow<'_>], servers: Option<Servers>) {
        let is_served_in_groups = |cap: &Cap, unit| {
            servers.is_some_and(|servers| servers.explain(cap, rows)) || is_served_in_groups(cap, rows, unit)
        };
        for cap in std::mem::take(&mut self.iops) {
            match limited_unit(&cap, rows) {
                unit if is_served_in_groups(&cap, unit) => self.parallel.push(cap),
                LimitedUnit::Ios => self.iops.push(cap),
                LimitedUnit::Unknown => self.unknown.push(cap),
                LimitedUnit::Bytes => {
                    let is_known = self.bytes.iter().any(|other| other.kind == cap.kind);
                    let value = cap.value * cap.block_bytes(rows).unwrap_or_default() as f64;
                    self.bytes.extend((!is_known).then_some(Cap { value, counted: None, ..cap }));
                }
            }
        }
        let in_ios = |cap: Cap| {
            let value = mean_rate(rows, &cap.rows, |row| row.settled_iops());
            Cap { value, ..cap }
        };
        for cap in std::mem::take(&mut self.bytes) {
            match limited_unit(&cap, rows) {
                LimitedUnit::Bytes => self.bytes.push(cap),
                LimitedUnit::Unknown => self.unknown.push(in_ios(cap)),
                LimitedUnit::Ios if is_served_in_groups(&cap, LimitedUnit::Ios) => {
                    self.parallel.push(in_ios(cap));
                }
                LimitedUnit::Ios if self.iops.iter().any(|other| other.kind == cap.kind) => {}
                LimitedUnit::Ios => self.iops.push(in_ios(cap)),
            }
        }
    }
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitedUnit {
    Ios,
    Bytes,
    Unknown,
}

/// Finds the plateaus.
pub(crate) fn caps(record: &RunRecord, rows: &[RecordRow<'_>]) -> Caps {
    let each = [RowKind::Read, RowKind::Write].map(|kind| DirectionCaps::of(record, rows, kind));
    let mut caps = Caps { group: record.header.host().cgroup.io_group.clone(), ..Caps::default() };
    for direction in &each {
        let counted = direction.iops_reached(rows, &each).map(|iops| (iops, direction.charge(rows, iops)));
        let is_set = direction.bytes.as_ref().is_some_and(|cap| cap.group_limit.is_some());
        let (mut iops, mut bytes) = (direction.iops.clone(), direction.bytes.clone());
        match counted {
            Some((reached, Charge::Units(unit))) if !is_set => {
                iops = iops.map(|cap| Cap { counted: Some((unit, reached)), ..cap });
                bytes = None;
            }
            Some((reached, Charge::Either(unit))) if !is_set && unit.power_of_two().is_some() => {
                bytes = bytes.map(|cap| Cap { counted: Some((unit, reached)), ..cap });
            }
            _ => {}
        }
        caps.iops.extend(iops);
        caps.bytes.extend(bytes);
    }
    if caps.iops.is_empty() {
        caps.iops = across_directions(rows);
    }
    let inspection = record.header.conditions.target.inspection.as_ref();
    caps.confirm(rows, inspection.and_then(|inspection| Servers::of(&inspection.bursts)));
    // A limit of the other direction at the same rate counts what that one counts.
    let is_of_ios = |cap: &Cap| {
        cap.counted.is_none() && caps.iops.iter().any(|known| (known.value / cap.value - 1.0).abs() <= AGREE)
    };
    let (of_ios, unknown): (Vec<Cap>, Vec<Cap>) = caps.unknown.into_iter().partition(is_of_ios);
    caps.iops.extend(of_ios);
    caps.unknown = unknown;
    let known: Vec<usize> = caps.all().flat_map(|cap| cap.rows.clone()).collect();
    for (caps, is_bytes) in [(&mut caps.iops, false), (&mut caps.unknown, false), (&mut caps.bytes, true)] {
        if let [cap] = caps.as_slice() {
            let other = of_other_direction(cap, rows, is_bytes);
            caps.extend(other.filter(|cap| !cap.rows.iter().any(|at| known.contains(at))));
        }
    }
    for caps in [&mut caps.iops, &mut caps.bytes, &mut caps.unknown] {
        caps.sort_by_key(|cap| cap.kind);
    }
    caps
}

/// True where a row can be held back by a limit: of one kind, and not paced by its own job.
fn can_reach(row: &RecordRow<'_>, kind: RowKind) -> bool {
    row.kind() == Some(kind)
        && row.settled().len() >= MIN_SECONDS
        && row.block_bytes().is_some()
        && row.is_direct()
        && !row.is_paced()
        && !row.is_synced()
}

/// True where a row can tell of a limit that nobody set: as even as one holds a rate.
fn is_point(row: &RecordRow<'_>, kind: RowKind) -> bool {
    can_reach(row, kind) && !client::is_bound(row) && is_even(row)
}

/// True where a rate is as even as a limit holds it.
fn is_even(row: &RecordRow<'_>) -> bool {
    // So few requests a second that their count moves by one.
    settled_spread(row).is_some_and(|spread| spread <= EVEN + 1.5 / row.iops().max(1.0))
}

/// Standard deviation over mean of the settled seconds; `None` where there are too few.
fn settled_spread(row: &RecordRow<'_>) -> Option<f64> {
    let rates: Vec<f64> = row.settled().iter().map(Second::iops).collect();
    if rates.len() < MIN_SECONDS {
        return None;
    }
    (mean(&rates) > 0.0).then(|| coefficient_of_variation(&rates))
}

/// What the process's control group sets as limits for this kind, on whatever device.
pub(crate) fn group_limits(record: &RunRecord, kind: RowKind, unit: &str) -> Vec<u64> {
    let name = format!("{}_{unit}", direction(kind));
    let value = |line: &String| {
        let mut words = line.split(' ').skip(1);
        if words.next()? == name { words.next()?.parse().ok() } else { None }
    };
    record.header.host().cgroup.io_limits.iter().filter_map(value).collect()
}

/// What the limits tell.
pub(crate) fn findings(caps: &Caps, rows: &[RecordRow<'_>]) -> Vec<Finding> {
    let mut found: Vec<Finding> = caps.iops.iter().map(|cap| iops_cap(cap, caps, rows)).collect();
    found.extend(caps.bytes.iter().map(|cap| bandwidth_cap(cap, caps, rows)));
    found.extend(caps.unknown.iter().map(|cap| unknown_limit(cap, caps, rows)));
    // Limits that hardly differ have one remedy.
    for at in 1..found.len() {
        let (earlier, later) = found.split_at_mut(at);
        let figure = |found: &Finding| {
            let name = if found.id == FindingId::IopsCap { "iops" } else { "bytes_per_second" };
            found.evidence.get(name).and_then(|value| value.as_f64()).unwrap_or_default()
        };
        let is_alike =
            |one: &&Finding| one.id == later[0].id && (figure(one) / figure(&later[0]) - 1.0).abs() <= AGREE;
        if let Some(alike) = earlier.iter().find(is_alike) {
            later[0].remedy.clone_from(&alike.remedy);
        }
    }
    found.extend(queueing(caps, rows));
    found.extend(rows.iter().filter_map(|row| small_block(row, caps, rows)));
    found
}

/// The measured figure of a limit, as the tables have it: that of the row nearest to the plateau.
fn measured<'a>(cap: &Cap, rows: &[RecordRow<'a>], of: fn(&RecordRow<'a>) -> f64) -> f64 {
    let off = |figure: &f64| (figure - cap.value).abs();
    let figures = cap.rows.iter().map(|&at| of(&rows[at]));
    figures.min_by(|one, other| off(one).total_cmp(&off(other))).unwrap_or(cap.value)
}

fn iops_cap(cap: &Cap, caps: &Caps, rows: &[RecordRow<'_>]) -> Finding {
    let iops = measured(cap, rows, RecordRow::iops);
    let depths = cap.rows.iter().map(|&at| rows[at].mean_queue_depth());
    let (least, most) =
        depths.fold((f64::MAX, 0.0), |(least, most): (f64, f64), depth| (least.min(depth), most.max(depth)));
    let mut claim =
        format!("{} {} are limited to {} IOPS", blocks(cap, rows), cap.kind.plural(), count(iops));
    if most > least * DEEPER * 0.9 {
        claim += &format!(" at QD {} and at QD {}", count(least), count(most));
    }
    let after = AfterBurst::of(cap, rows, |_, iops| iops);
    claim +=
        &after.as_ref().map_or_else(String::new, |after| after.text(&format!("{} IOPS", count(after.rate))));
    claim += &match (cap.group_limit, cap.other_group_limit) {
        (Some(limit), None) => format!("; the limit of the control group is {}", units::grouped(limit)),
        (Some(limit), Some(other)) => limits_of_group(limit, other),
        (None, _) => String::new(),
    };
    if let Some((unit, _)) = &cap.counted {
        let unit = units::bytes(unit.value() as u64);
        claim += &format!("; I/Os of more than {unit} count as several, one for each {unit}");
    }
    claim += &shared(cap, caps, rows);
    claim += &waits(cap, rows);
    let asked = format!("--iops {:.0}", iops * 2.0);
    finding(
        FindingId::IopsCap,
        cap.rows.iter().map(|&at| &rows[at]),
        claim + ".",
        remedy_of_cap(cap, caps, &asked),
    )
    .with("direction", direction(cap.kind))
    .with("iops", iops)
    .with("depth_least", least)
    .with("depth_most", most)
    .with("sustained_iops", after.map(|after| after.rate))
    .with("io_unit_bytes", cap.io_unit_bytes())
    .with("group_limit_iops", cap.group_limit)
}

/// What a limiter that deals out its rate in slices does to a few requests, where depth 1 shows it.
fn waits(cap: &Cap, rows: &[RecordRow<'_>]) -> String {
    let tail = cap.rows.iter().find_map(|&at| tail::at_limit(&rows[at]));
    tail.map_or_else(String::new, |tail| format!("; {}, the others for nothing", tail.waits()))
}

fn limits_of_group(iops: u64, bytes: u64) -> String {
    format!(
        "; the limits of the control group are {} IOPS and {}",
        units::grouped(iops),
        mebibytes(bytes as f64)
    )
}

/// Whether a mix shows that reads and writes draw on one allowance.
fn shared(cap: &Cap, caps: &Caps, rows: &[RecordRow<'_>]) -> String {
    let other = caps.iops.iter().chain(&caps.unknown).find(|other| other.kind != cap.kind);
    let both_alike = other.is_some_and(|other| (other.value / cap.value - 1.0).abs() <= AGREE);
    let mix =
        rows.iter().find(|row| row.kind() == Some(RowKind::Mixed) && row.is_direct() && !row.is_paced());
    match mix {
        Some(mix) if both_alike && (mix.iops() / cap.value - 1.0).abs() <= AGREE => {
            "; reads and writes share the limit".to_owned()
        }
        Some(mix) if both_alike && mix.iops() > cap.value * 1.1 => {
            "; reads and writes have separate limits".to_owned()
        }
        _ => String::new(),
    }
}

fn bandwidth_cap(cap: &Cap, caps: &Caps, rows: &[RecordRow<'_>]) -> Finding {
    let bytes = measured(cap, rows, RecordRow::bytes_per_second);
    let mut claim =
        format!("{} {} are limited to {}", blocks(cap, rows), cap.kind.plural(), mebibytes(bytes));
    let after = AfterBurst::of(cap, rows, |row, iops| iops * row.block_bytes().unwrap_or(0) as f64);
    claim += &after.as_ref().map_or_else(String::new, |after| after.text(&mebibytes(after.rate)));
    claim += &match (cap.group_limit, cap.other_group_limit) {
        (Some(limit), None) => format!("; the limit of the control group is {}", mebibytes(limit as f64)),
        (Some(limit), Some(other)) => limits_of_group(other, limit),
        (None, _) => String::new(),
    };
    let iops = caps.iops.iter().find(|iops| iops.kind == cap.kind);
    let crossover = iops.map(|iops| bytes / measured(iops, rows, RecordRow::iops));
    claim += &waits(cap, rows);
    if let Some(bytes) = crossover {
        claim += &format!(
            "; the crossover block size is {}: below it the IOPS limit applies, above it the bandwidth limit",
            units::bytes(bytes as u64)
        );
    }
    let asked = format!("--bandwidth {:.0}MiB", bytes * 2.0 / f64::from(1 << 20));
    finding(
        FindingId::BandwidthCap,
        cap.rows.iter().map(|&at| &rows[at]),
        claim + ".",
        remedy_of_cap(cap, caps, &asked),
    )
    .with("direction", direction(cap.kind))
    .with("bytes_per_second", bytes)
    .with("sustained_bytes_per_second", after.map(|after| after.rate))
    .with("crossover_block_size_bytes", crossover)
    .with("group_limit_bytes_per_second", cap.group_limit)
}

/// A limit that I/Os and bytes explain alike.
fn unknown_limit(cap: &Cap, caps: &Caps, rows: &[RecordRow<'_>]) -> Finding {
    let iops = measured(cap, rows, RecordRow::iops);
    let bytes = measured(cap, rows, RecordRow::bytes_per_second);
    let (sizes, kind) = (blocks(cap, rows), cap.kind.plural());
    let after = AfterBurst::of(cap, rows, |_, iops| iops);
    let burst =
        after.as_ref().map_or_else(String::new, |after| after.text(&format!("{} IOPS", count(after.rate))));
    let shared = shared(cap, caps, rows);
    let (claim, deciding) = match cap.counted {
        Some((unit, reached)) => {
            let size = units::bytes(unit.value() as u64);
            let claim = format!(
                "{sizes} {kind} are limited to {}; inconclusive whether by a bandwidth limit or by the limit of {} IOPS with an \
                 I/O counted for each {size}: all sizes measured are multiples of {size}.",
                mebibytes(bytes),
                count(reached),
            );
            (claim, deciding_block(unit.low, SECTOR))
        }
        None => {
            let claim = format!(
                "{sizes} {kind} are limited to {} IOPS, which are {}{burst}{shared}; inconclusive whether the limit counts I/Os or bytes: \
                 no other block size shows which.",
                count(iops),
                mebibytes(bytes),
            );
            (claim, cap.block_bytes(rows).map(|size| if size < LARGE_BYTES { size * 4 } else { size / 4 }))
        }
    };
    let remedy = match deciding {
        Some(size) => format!(
            "Measure blocks of {} as well: `fathom sweep` does, or `fathom sweep --bs {}`.",
            units::bytes(size),
            block(size)
        ),
        None => "Measure another block size as well: `fathom sweep` does.".to_owned(),
    };
    finding(FindingId::UnknownLimit, cap.rows.iter().map(|&at| &rows[at]), claim, remedy)
        .with("direction", direction(cap.kind))
        .with("iops", iops)
        .with("bytes_per_second", bytes)
        .with("sustained_iops", after.map(|after| after.rate))
        .with("io_unit_bytes", cap.io_unit_bytes())
}

fn remedy_of_cap(cap: &Cap, caps: &Caps, asked: &str) -> String {
    match cap.group_limit {
        Some(_) => {
            let name = caps.group.as_ref().map_or_else(String::new, |group| format!(" {group}"));
            format!("Raise the limit of the control group{name}, or measure outside it.")
        }
        None => format!(
            "{REQUESTS_WAIT}; a larger volume or another type has a higher limit. `fathom catalog fit {asked}` \
             lists types with twice the limit, `fathom identify` the types that match this volume."
        ),
    }
}

fn direction(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Read => "read",
        RowKind::Write => "write",
        RowKind::Mixed => "total",
    }
}

/// `4k`, or `4k and 16k`.
fn blocks(cap: &Cap, rows: &[RecordRow<'_>]) -> String {
    let mut sizes: Vec<u64> = cap.rows.iter().filter_map(|&at| rows[at].block_bytes()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.into_iter().map(block).collect::<Vec<_>>().join(" and ")
}

/// A row at a limit whose latency is mostly queueing delay.
struct Queue<'r, 'a> {
    row: &'r RecordRow<'a>,
    /// The latency at depth 1.
    alone_ns: f64,
    /// The depth that is enough for the rate.
    enough: f64,
    cap: f64,
}

/// Latency that is queueing delay, of all rows that have it: one depth is enough for all of them.
fn queueing(caps: &Caps, rows: &[RecordRow<'_>]) -> Option<Finding> {
    let queues: Vec<Queue<'_, '_>> = (0..rows.len()).filter_map(|at| queue(at, caps, rows)).collect();
    let worst = queues.iter().max_by(|one, other| one.row.lat_ns().total_cmp(&other.row.lat_ns()))?;
    let latency = |ns: f64| units::latency(ns as u64);
    let enough = queues.iter().map(|queue| queue.enough).fold(1.0, f64::max);
    let held = |queue: &Queue<'_, '_>| count(queue.row.mean_queue_depth());
    let claim = match queues.as_slice() {
        [Queue { row, alone_ns, .. }] => format!(
            "latency is {}, of which {} is queueing delay: QD {} at {} IOPS; at QD 1 it is {}.",
            latency(row.lat_ns()),
            latency(row.lat_ns() - alone_ns),
            held(worst),
            count(row.iops()),
            latency(*alone_ns),
        ),
        several => {
            let each = several.iter().map(|queue| {
                let (lat, alone) = (latency(queue.row.lat_ns()), latency(queue.alone_ns));
                format!("{lat} at QD {} ({alone} at QD 1)", held(queue))
            });
            let mut each: Vec<String> = each.collect();
            each.dedup();
            format!("latency is mostly queueing delay: {}.", each.join(", "))
        }
    };
    let rates = if queues.len() > 1 { "these rates" } else { "this rate" };
    let remedy = format!("QD {} is enough for {rates}.", count(enough));
    Some(
        finding(FindingId::Queueing, queues.iter().map(|queue| queue.row), claim, remedy)
            .with("lat_ns", worst.row.lat_ns())
            .with("lat_alone_ns", worst.alone_ns)
            .with("depth", worst.row.mean_queue_depth())
            .with("depth_enough", enough)
            .with("cap", worst.cap),
    )
}

fn queue<'r, 'a>(at: usize, caps: &Caps, rows: &'r [RecordRow<'a>]) -> Option<Queue<'r, 'a>> {
    let row = &rows[at];
    let cap = caps.all().find(|cap| cap.rows.contains(&at))?;
    let is_alone = |other: &&RecordRow<'_>| {
        other.kind() == row.kind()
            && other.block_bytes() == row.block_bytes()
            && (0.5..1.1).contains(&other.mean_queue_depth())
    };
    let alone_ns = rows.iter().find(is_alone)?.lat_ns();
    let is_waiting = alone_ns > 0.0 && row.lat_ns() >= MOSTLY_WAITING * alone_ns;
    if row.mean_queue_depth() < DEEPER || !is_waiting {
        return None;
    }
    // A rate that is a little above the cap asks for no whole request more.
    let enough = (row.iops() * alone_ns / 1e9 * (1.0 - AGREE)).ceil().max(1.0);
    Some(Queue { row, alone_ns, enough, cap: cap.value })
}

/// A stream whose blocks are so small that the cap on requests holds it.
fn small_block(row: &RecordRow<'_>, caps: &Caps, rows: &[RecordRow<'_>]) -> Option<Finding> {
    let (kind, size) = (row.kind()?, row.block_bytes()?);
    let cap = caps.iops.iter().find(|cap| cap.kind == kind)?;
    let is_held = (row.settled_iops() / cap.value - 1.0).abs() <= AGREE && !row.is_random();
    let larger = rows.iter().filter(|other| {
        other.kind() == Some(kind)
            && other.block_bytes() > Some(size)
            && other.bytes_per_second() >= WORTHWHILE * row.bytes_per_second()
    });
    let best = larger.max_by(|one, other| one.bytes_per_second().total_cmp(&other.bytes_per_second()))?;
    if !is_held || row.is_paced() || row.is_synced() {
        return None;
    }
    // What rounding adds to the size that was measured asks for no larger one.
    let (measured, needed) = (best.block_bytes()? as f64, best.bytes_per_second() / cap.value);
    let needed = if needed >= measured * (1.0 - AGREE) { measured } else { needed };
    let claim = format!(
        "{} I/Os are too small for bandwidth: {} IOPS are {}; {} blocks reached {}.",
        block(size),
        count(row.iops()),
        mebibytes(row.bytes_per_second()),
        block(best.block_bytes().unwrap_or(0)),
        mebibytes(best.bytes_per_second()),
    );
    let remedy = format!("Use blocks of at least {}.", units::bytes(needed as u64));
    Some(
        finding(FindingId::SmallBlockForBandwidth, [row], claim, remedy)
            .with("block_size_bytes", size)
            .with("block_size_needed_bytes", needed)
            .with("bytes_per_second", row.bytes_per_second()),
    )
}

/// What a limit counts, by the block sizes of its direction: one with the same IOPS, or the same bytes, at two sizes is known.
/// Otherwise a size that exceeds the limit in one unit leaves the other.
fn limited_unit(cap: &Cap, rows: &[RecordRow<'_>]) -> LimitedUnit {
    let Some(own) = cap.block_bytes(rows).filter(|_| cap.group_limit.is_none()) else {
        // Rows of several sizes share one rate, and a set limit is known.
        let same_ios =
            cap.rows.iter().all(|&at| (rows[at].settled_iops() / cap.value - 1.0).abs() <= 2.0 * AGREE);
        return match (same_ios, cap.counted) {
            (true, _) => LimitedUnit::Ios,
            (false, Some(_)) => LimitedUnit::Unknown,
            (false, None) => LimitedUnit::Bytes,
        };
    };
    if cap.counted.is_some() {
        return LimitedUnit::Ios;
    }
    let iops = mean_rate(rows, &cap.rows, |row| row.settled_iops());
    let others = rows
        .iter()
        .filter(|row| row.kind() == Some(cap.kind) && row.is_direct() && !row.is_paced() && !row.is_synced());
    let (mut exceeds_ios, mut exceeds_bytes, mut same_bytes) = (false, false, false);
    for row in others {
        let Some(block) = row.block_bytes().filter(|&block| block != own) else { continue };
        let uncertain = AGREE + row.resolution();
        let ios = row.settled_iops() / iops;
        let bytes = ios * block as f64 / own as f64;
        exceeds_ios |= ios > 1.0 + uncertain;
        exceeds_bytes |= bytes > 1.0 + uncertain;
        same_bytes |= uncertain <= MAX_UNCERTAIN && (bytes - 1.0).abs() <= uncertain;
    }
    match (exceeds_ios, exceeds_bytes) {
        (false, true) => LimitedUnit::Ios,
        (true, false) => LimitedUnit::Bytes,
        (false, false) if same_bytes => LimitedUnit::Bytes,
        _ => LimitedUnit::Unknown,
    }
}

/// A row whose rate is less certain than this agrees with too much.
const MAX_UNCERTAIN: f64 = 0.15;

/// Latencies this many times apart belong to different groups.
const GAP: f64 = 1.25;

/// A service time includes what the client adds, which is no part of the service: the rate of the groups is off by at most this share.
const MAX_OFF: f64 = 0.20;
/// The same of groups of one, which a limiter has as well, at another distance.
const MAX_OFF_ALONE: f64 = 0.05;

/// True of a plateau that is the parallelism of the device over its service time. When a queue begins, the first
/// I/Os complete in a group after one service time, as many after two, and none in between; behind a limiter I/Os complete one by one.
fn is_served_in_groups(cap: &Cap, rows: &[RecordRow<'_>], unit: LimitedUnit) -> bool {
    let is_grouped = |row: &RecordRow<'_>| {
        let mut all = Histogram::default();
        let phases = row.jobs().iter().flat_map(|job| job.ramp.iter().chain([&job.measured]));
        phases.flat_map(|phase| phase.ops()).for_each(|op| all.merge(&op.clat.histogram));
        let median = all.percentile(50.0)?;
        let mut groups: Vec<(u64, f64)> = Vec::new();
        let mut last = 0.0;
        for (bin, count) in all.sparse() {
            let ns = histogram::midpoint(bin) as f64;
            match groups.last_mut().filter(|_| ns <= last * GAP) {
                Some((ios, sum)) => (*ios, *sum) = (*ios + count, *sum + ns * count as f64),
                None => groups.push((count, ns * count as f64)),
            }
            last = ns;
        }
        let [(first, first_ns), (second, second_ns)] = groups.get(..2)?.try_into().ok()?;
        let (service_ns, next_ns) = (first_ns / first as f64, second_ns / second as f64);
        let is_double = (1.6..=2.1).contains(&(next_ns / service_ns)) && next_ns * GAP < median as f64;
        let explained = first as f64 * 1e9 / service_ns / row.settled_iops();
        // A bandwidth limit passes I/Os one by one too.
        let uncertain = match (first, unit) {
            (1, LimitedUnit::Ios) => MAX_OFF_ALONE,
            (1, _) => return None,
            _ => MAX_OFF,
        };
        let is_explained = (explained - 1.0).abs() <= uncertain;
        (is_double && is_explained && first == second).then_some(())
    };
    cap.group_limit.is_none()
        && unit != LimitedUnit::Bytes
        && cap.rows.iter().any(|&at| is_grouped(&rows[at]).is_some())
}

/// Times of a group and the next one are apart by this share of the first time at least: one service time, less what the client adds to
/// each request. A limiter spaces single I/Os so far apart.
const BETWEEN_GROUPS: f64 = 0.3;
/// The second group has waited for the first.
const SECOND_GROUP: std::ops::RangeInclusive<f64> = 1.4..=2.2;
/// Share of the bursts that show the same group, of so many at least, and by how much the times of its first I/O differ: on a limiter
/// that grants I/Os at fixed times both depend on when the burst began.
const SAME_GROUPS: f64 = 0.6;
const MIN_BURSTS: usize = 5;
const SAME_TIME: f64 = 1.3;
/// By how much the groups explain a plateau.
const SERVERS_OFF: f64 = 0.05;

/// A device that serves so many I/Os at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Servers {
    number: usize,
    /// What the client adds to the time of service, at most, ns.
    overhead_ns: f64,
}

impl Servers {
    /// From bursts of reads after a rest: so many complete after one service time, as many again after the next. Behind a limiter they
    /// complete one by one, or all at once.
    fn of(bursts: &[BurstRecord]) -> Option<Servers> {
        let all: Vec<Servers> = bursts.iter().filter_map(|burst| Servers::of_burst(&burst.lat_ns)).collect();
        let like = |number: usize| all.iter().filter(move |one| one.number == number);
        let number = all.iter().map(|one| one.number).max_by_key(|&number| like(number).count())?;
        let mut first: Vec<u64> = bursts.iter().filter_map(|burst| burst.lat_ns.first().copied()).collect();
        first.sort_unstable();
        let (early, late) = (first[first.len() / 4], first[first.len() * 3 / 4]);
        let is_same = like(number).count() as f64 >= SAME_GROUPS * bursts.len() as f64
            && late as f64 <= early as f64 * SAME_TIME;
        let overhead_ns = like(number).map(|one| one.overhead_ns).fold(0.0, f64::max);
        (is_same && bursts.len() >= MIN_BURSTS).then_some(Servers { number, overhead_ns })
    }

    fn of_burst(lat_ns: &[u64]) -> Option<Servers> {
        let apart = BETWEEN_GROUPS * *lat_ns.first()? as f64;
        let end = |from: usize| {
            let is_gap = |at: &usize| lat_ns[at + 1].saturating_sub(lat_ns[*at]) as f64 >= apart;
            (from..lat_ns.len() - 1).find(is_gap).map(|at| at + 1)
        };
        let number = end(0)?;
        let second = end(number)?;
        let means = [&lat_ns[..number], &lat_ns[number..second]]
            .map(|group| group.iter().sum::<u64>() as f64 / group.len() as f64);
        let is_group = number > 1 && second == 2 * number && SECOND_GROUP.contains(&(means[1] / means[0]));
        is_group.then_some(Servers { number, overhead_ns: 2.0 * means[0] - means[1] })
    }

    /// True of a plateau that they make: their number over the time of service, which is that of a request by itself, less the overhead.
    fn explain(self, cap: &Cap, rows: &[RecordRow<'_>]) -> bool {
        let is_of_cap = |block| cap.rows.iter().any(|&at| rows[at].block_bytes() == block);
        let alone = |row: &&RecordRow<'_>| {
            row.kind() == Some(cap.kind)
                && row.is_direct()
                && !row.is_paced()
                && !row.is_synced()
                && row.mean_queue_depth() < ALONE
                && row.block_bytes().is_some()
                && is_of_cap(row.block_bytes())
        };
        let alone_ns = rows.iter().filter(alone).map(RecordRow::lat_ns).min_by(f64::total_cmp);
        let needed_ns = self.number as f64 * 1e9 / mean_rate(rows, &cap.rows, |row| row.settled_iops());
        let is_between = |alone_ns: f64| {
            needed_ns >= (alone_ns - self.overhead_ns) * (1.0 - SERVERS_OFF)
                && needed_ns <= alone_ns * (1.0 + SERVERS_OFF)
        };
        cap.group_limit.is_none() && alone_ns.is_some_and(is_between)
    }
}

/// Requests of such a depth are by themselves.
const ALONE: f64 = 1.5;

/// From here on a plateau of one block size alone is taken for one of bytes.
pub(crate) const LARGE_BYTES: u64 = 64 << 10;

/// The plateaus of one direction.
struct DirectionCaps {
    points: Vec<usize>,
    iops: Option<Cap>,
    bytes: Option<Cap>,
}

impl DirectionCaps {
    fn of(record: &RunRecord, rows: &[RecordRow<'_>], kind: RowKind) -> DirectionCaps {
        let limits = [group_limits(record, kind, "iops"), group_limits(record, kind, "bytes_per_second")];
        let able: Vec<usize> = (0..rows.len()).filter(|&at| can_reach(&rows[at], kind)).collect();
        let is_point = |at: &usize| !client::is_bound(&rows[*at]) && is_even(&rows[*at]);
        let points: Vec<usize> = able.iter().copied().filter(is_point).collect();
        let cap = |rate: fn(&RecordRow<'_>) -> f64, [limits, others]: [&[u64]; 2]| {
            let other_group_limit = if let [other] = others { Some(*other) } else { None };
            set_limit(rows, &able, rate, limits)
                .map(|cap| Cap { other_group_limit, ..cap })
                .or_else(|| common_rate(rows, &points, rate))
        };
        let iops = cap(|row| row.settled_iops(), [&limits[0], &limits[1]]);
        let bytes = cap(|row| row.settled_bytes_per_second(), [&limits[1], &limits[0]]);
        // Where one block size makes a plateau of both, its size decides which.
        let is_large_row = |at: &&usize| rows[**at].block_bytes() >= Some(LARGE_BYTES);
        let is_large = |cap: &Cap| cap.rows.iter().all(|at| is_large_row(&at));
        let is_one_size =
            |cap: &Cap| cap.rows.windows(2).all(|at| rows[at[0]].block_bytes() == rows[at[1]].block_bytes());
        let by_bytes =
            |cap: &Cap| cap.group_limit.is_some() || cap.rows.iter().filter(is_large_row).count() > 1;
        let by_requests = |cap: &Cap| {
            let same = bytes.as_ref().is_some_and(|bytes| bytes.rows == cap.rows);
            cap.group_limit.is_some() || !(is_one_size(cap) && is_large(cap) && same)
        };
        let iops = iops.filter(by_requests).map(|cap| Cap { kind, ..cap });
        let held_by_iops = |cap: &Cap| iops.as_ref().is_some_and(|iops| iops.rows == cap.rows);
        let bytes = bytes.filter(|cap| by_bytes(cap) && !held_by_iops(cap)).map(|cap| Cap { kind, ..cap });
        DirectionCaps { points, iops, bytes }
    }

    /// The IOPS that a limit holds in this direction: its own, or one of the other that the fastest row agrees with.
    fn iops_reached(&self, rows: &[RecordRow<'_>], each: &[DirectionCaps]) -> Option<f64> {
        let top = self.points.iter().map(|&at| rows[at].settled_iops()).fold(0.0, f64::max);
        let own = self.iops.as_ref().map(|cap| cap.value);
        own.or_else(|| {
            let limits = each.iter().filter_map(|other| Some(other.iops.as_ref()?.value));
            limits.into_iter().find(|limit| (top / limit - 1.0).abs() <= AGREE)
        })
    }

    /// What counts of a large request, where those of small ones are `iops`.
    fn charge(&self, rows: &[RecordRow<'_>], iops: f64) -> Charge {
        charge(iops, &held(rows, &self.points, [self.iops.as_ref(), self.bytes.as_ref()]))
    }
}

/// One of the limits that are set, where rows reach it. Their seconds may be uneven: a busy host makes them so, and nothing else
/// explains this very rate.
fn set_limit(
    rows: &[RecordRow<'_>],
    able: &[usize],
    rate: fn(&RecordRow<'_>) -> f64,
    limits: &[u64],
) -> Option<Cap> {
    let at_limit = |limit: u64| -> Vec<usize> {
        let is_at = |at: &usize| (rate(&rows[*at]) / limit as f64 - 1.0).abs() <= AGREE;
        able.iter().copied().filter(is_at).collect()
    };
    let (limit, limited) =
        limits.iter().map(|&limit| (limit, at_limit(limit))).find(|(_, limited)| !limited.is_empty())?;
    let value = mean_rate(rows, &limited, rate);
    Some(Cap {
        kind: RowKind::Read,
        value,
        group_limit: Some(limit),
        other_group_limit: None,
        rows: limited,
        counted: None,
    })
}

/// The highest rate that two points of different depth or block size share.
fn common_rate(rows: &[RecordRow<'_>], points: &[usize], rate: fn(&RecordRow<'_>) -> f64) -> Option<Cap> {
    let agree: Vec<usize> =
        at_the_top(points.iter().map(|&at| rate(&rows[at]))).into_iter().map(|place| points[place]).collect();
    let differ = |one: &RecordRow<'_>, other: &RecordRow<'_>| {
        let (least, most) = (
            one.mean_queue_depth().min(other.mean_queue_depth()),
            one.mean_queue_depth().max(other.mean_queue_depth()),
        );
        most >= least * DEEPER * (1.0 - AGREE) || one.block_bytes() != other.block_bytes()
    };
    let is_plateau = agree.iter().any(|&one| agree.iter().any(|&other| differ(&rows[one], &rows[other])));
    let value = mean_rate(rows, &agree, rate);
    is_plateau.then_some(Cap {
        kind: RowKind::Read,
        value,
        group_limit: None,
        other_group_limit: None,
        rows: agree,
        counted: None,
    })
}

/// The rates that limits held, by block size: of the rows of `caps`, and of block sizes that are on a plateau of their own.
fn held(rows: &[RecordRow<'_>], points: &[usize], caps: [Option<&Cap>; 2]) -> Vec<BlockRate> {
    let mut by_block: Vec<(u64, Vec<usize>)> = Vec::new();
    for &at in points {
        let Some(block) = rows[at].block_bytes() else { continue };
        match by_block.iter_mut().find(|(other, _)| *other == block) {
            Some((_, alike)) => alike.push(at),
            None => by_block.push((block, vec![at])),
        }
    }
    let is_of_cap = |at: &usize| caps.iter().flatten().any(|cap| cap.rows.contains(at));
    let rate = |(block, alike): (u64, Vec<usize>)| {
        let known: Vec<usize> = alike.iter().copied().filter(is_of_cap).collect();
        let iops = match known.is_empty() {
            true => common_rate(rows, &alike, |row| row.settled_iops())?.value,
            false => mean_rate(rows, &known, |row| row.settled_iops()),
        };
        Some(BlockRate { block, iops })
    };
    by_block.into_iter().filter_map(rate).collect()
}

/// The mean of a rate over rows that agree.
fn mean_rate(rows: &[RecordRow<'_>], places: &[usize], rate: fn(&RecordRow<'_>) -> f64) -> f64 {
    plateau::mean(
        places.iter().map(|&at| RunRate { rate: rate(&rows[at]), resolution: rows[at].resolution() }),
    )
}

/// Latencies of a queue in front of a limiter differ by at most this share.
const SAME_WAIT: f64 = 0.10;

/// The limit that reads, writes and a mix of them share, from one row of each with the same blocks: their rates agree, and the
/// latencies of each are those of a queue in front of a limiter.
fn across_directions(rows: &[RecordRow<'_>]) -> Vec<Cap> {
    let top = |kind| {
        let points = (0..rows.len()).filter(|&at| is_point(&rows[at], kind) && is_limited(&rows[at]));
        points.max_by(|&one, &other| rows[one].settled_iops().total_cmp(&rows[other].settled_iops()))
    };
    let Some([read, write, mixed]) =
        top(RowKind::Read).zip(top(RowKind::Write)).zip(top(RowKind::Mixed)).map(|((r, w), m)| [r, w, m])
    else {
        return Vec::new();
    };
    let value = rows[mixed].settled_iops();
    let is_alike = |at: usize| {
        let row = &rows[at];
        row.block_bytes() == rows[mixed].block_bytes()
            && row.block_bytes() < Some(LARGE_BYTES)
            && (row.settled_iops() / value - 1.0).abs() <= AGREE
    };
    if !is_alike(read) || !is_alike(write) {
        return Vec::new();
    }
    let cap = |kind, at: usize| Cap {
        kind,
        value: rows[at].settled_iops(),
        group_limit: None,
        other_group_limit: None,
        rows: vec![at],
        counted: None,
    };
    vec![cap(RowKind::Read, read), cap(RowKind::Write, write)]
}

/// The limit of one direction in the other one, which one row reached: its rate is the same, and its latencies are those of a queue
/// in front of a limiter.
fn of_other_direction(cap: &Cap, rows: &[RecordRow<'_>], is_bytes: bool) -> Option<Cap> {
    let kind = match cap.kind {
        RowKind::Read => RowKind::Write,
        RowKind::Write => RowKind::Read,
        RowKind::Mixed => return None,
    };
    let rate = |at: usize| match is_bytes {
        true => rows[at].settled_bytes_per_second(),
        false => rows[at].settled_iops(),
    };
    let is_alike = |at: &usize| {
        let row = &rows[*at];
        (row.block_bytes() >= Some(LARGE_BYTES)) == is_bytes
            && (rate(*at) / cap.value - 1.0).abs() <= AGREE
            && is_point(row, kind)
            && is_limited(row)
    };
    let found: Vec<usize> = (0..rows.len()).filter(is_alike).collect();
    let value = found.iter().map(|&at| rate(at)).reduce(f64::max)?;
    (cap.group_limit.is_none()).then(|| Cap { kind, value, rows: found, ..cap.clone() })
}

/// True where latencies are those of a queue in front of a limiter: all but a few I/Os wait for the same time, the depth over the
/// rate, and the quickest, which found tokens, for much less. A device without a limit has no such gap.
pub(crate) fn is_limited(row: &RecordRow<'_>) -> bool {
    let Some(total) = &row.summary.total else { return false };
    let LatencySummary { p50, p90, .. } = total.lat_ns;
    let (Some(min), Some(p50), Some(p90)) = (row.least_lat_ns(), p50, p90) else { return false };
    let waiting_ns = row.mean_queue_depth() * 1e9 / row.iops().max(1.0);
    min * 2 <= p50
        && p90 as f64 <= p50 as f64 * (1.0 + SAME_WAIT)
        && (p50 as f64 / waiting_ns - 1.0).abs() <= SAME_WAIT
}

/// What is left of a limit that burst credits raise.
struct AfterBurst {
    /// I/Os or bytes per second.
    rate: f64,
    /// The shortest burst of its rows, ns.
    lasts_ns: Option<u64>,
    is_published: bool,
}

impl AfterBurst {
    /// Of a limit all of whose rows are bursts; `rate` gives what is limited of a row's I/Os per second.
    fn of(cap: &Cap, rows: &[RecordRow<'_>], rate: fn(&RecordRow<'_>, f64) -> f64) -> Option<AfterBurst> {
        let each = cap.rows.iter().map(|&at| {
            let duration = rows[at].duration();
            let rate = rate(&rows[at], duration.after_burst()?);
            let is_published = duration.basis == Some(DurationBasis::PublishedRule);
            Some(AfterBurst { rate, lasts_ns: duration.lasts_ns, is_published })
        });
        let each: Vec<AfterBurst> = each.collect::<Option<_>>()?;
        Some(AfterBurst {
            rate: each.iter().map(|one| one.rate).reduce(f64::min)?,
            lasts_ns: each.iter().filter_map(|one| one.lasts_ns).min(),
            is_published: each.iter().all(|one| one.is_published),
        })
    }

    fn text(&self, rate: &str) -> String {
        match self.lasts_ns.map(|ns| units::duration(Nanos(ns))) {
            Some(lasts) if self.is_published => format!(" in a burst of at most {lasts}, then to {rate}"),
            Some(lasts) => format!(" for {lasts} as observed, then to {rate}"),
            None => format!(" in a burst that is billed, then to {rate}"),
        }
    }
}

#[cfg(test)]
mod tests;
