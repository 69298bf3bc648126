//! The published specification of a volume type, applied to a test: its limits for I/Os like those of the test. Pure.
//!
//! The baseline applies always, the burst rate while burst credits remain, and a share of the time where the provider
//! publishes one.

use fathom_catalog::{CatalogEntry, INSTANCE_STAGE};
use fathom_model::BlockSize;
use fathom_model::LimitUnit;
use fathom_model::plan::{JobPlan, Mix};
use fathom_predict::{LoadLimit, OfferedLoad, load_limits};
use fathom_record::{CreditRecord, ExpectationConditions, ExpectationRecord, ShareRecord};
use fathom_volume::{Limit, LimitStage, VolumeModel};

/// ns of a year.
const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;

/// The load of a test.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    /// `read`, `write` or `total`.
    direction: &'static str,
    /// Bytes of a read and the share of all I/Os that are reads; the same for writes.
    reads: (u64, f64),
    writes: (u64, f64),
    sequential: bool,
    depth: u64,
}

impl Shape {
    /// The load of a test; `None` where no provider specifies it: trims, mixed sizes, synchronous writes, uneven
    /// access.
    pub(super) fn of(job: &JobPlan) -> Option<Shape> {
        let io = &job.io;
        if !io.access.is_uniform() {
            return None;
        }
        let fixed = |size: &BlockSize| match size {
            BlockSize::Fixed(bytes) => Some(*bytes),
            BlockSize::Split(_) | BlockSize::Range(_) => None,
        };
        let is_synced = io.synced_after().is_some();
        let (direction, share) = match io.pattern.mix {
            Mix::Read => ("read", 1.0),
            Mix::Write if !is_synced => ("write", 0.0),
            Mix::ReadWrite { read_percent } if !is_synced => ("total", f64::from(read_percent) / 100.0),
            _ => return None,
        };
        let size = |size: &BlockSize, share: f64| if share > 0.0 { fixed(size) } else { Some(0) };
        Some(Shape {
            direction,
            reads: (size(&io.block_size.read, share)?, share),
            writes: (size(&io.block_size.write, 1.0 - share)?, 1.0 - share),
            sequential: !io.pattern.random,
            depth: u64::from(job.depth.iodepth) * job.clones.len().max(1) as u64,
        })
    }

    /// Mean bytes per I/O.
    pub(super) fn bytes(&self) -> f64 {
        self.reads.0 as f64 * self.reads.1 + self.writes.0 as f64 * self.writes.1
    }
}

/// A volume type with its parameters.
pub(super) struct PublishedSpecification<'a> {
    pub(super) source: &'a str,
    pub(super) model: &'a VolumeModel,
    pub(super) entry: Option<&'a CatalogEntry>,
    /// From the user.
    pub(super) tolerance_percent: Option<f64>,
    pub(super) is_rested: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum RateAvailability {
    Always,
    Burst,
}

/// The expectations of a test with the load `shape`.
pub(super) fn determine(
    specification: &PublishedSpecification<'_>,
    test: &str,
    shape: &Shape,
) -> Vec<ExpectationRecord> {
    let usual = |metric: String, is: &str, value: f64| ExpectationRecord {
        source: specification.source.to_owned(),
        test: test.to_owned(),
        metric,
        is: is.to_owned(),
        value,
        tolerance_percent: tolerance(specification),
        ..ExpectationRecord::default()
    };
    let mut all = rates(specification, shape, &usual);
    let most = specification.entry.map(CatalogEntry::latency_limits_ns).unwrap_or_default();
    let most = match shape.direction {
        "read" => most.0,
        "write" => most.1,
        _ => None,
    };
    if let Some(ns) = most.filter(|_| shape.depth == 1) {
        all.push(usual(format!("{}.lat_ns.mean", shape.direction), "<", ns as f64));
    }
    all
}

/// The tolerance of the user, else that of the provider, else the default.
fn tolerance(specification: &PublishedSpecification<'_>) -> f64 {
    let vendor =
        specification.entry.and_then(|entry| entry.published_shares().0).map(|share| (1.0 - share) * 100.0);
    // Nine tenths are not exactly 10 % less than all.
    let vendor = vendor.map(|percent| (percent * 1e6).round() / 1e6);
    specification.tolerance_percent.or(vendor).unwrap_or(super::TOLERANCE_PERCENT)
}

fn rates(
    specification: &PublishedSpecification<'_>,
    shape: &Shape,
    usual: &dyn Fn(String, &str, f64) -> ExpectationRecord,
) -> Vec<ExpectationRecord> {
    let limits = limits_of(specification.model, shape, |stage| stage.name != INSTANCE_STAGE);
    let Some((requests, binding)) = least(&limits, RateAvailability::Always) else { return Vec::new() };
    let machine = instance_limit(specification.model, shape);
    let expectation = |requests: f64, binding: LoadLimit<'_>, credit: Option<CreditRecord>| {
        let machine = machine.filter(|(limit, _)| *limit < requests);
        let is_bytes = binding.unit == LimitUnit::Bytes;
        let per_request = if is_bytes { shape.bytes() } else { 1.0 };
        let name = if is_bytes { "bytes_per_second" } else { "iops" };
        let asked = specification.entry.and_then(CatalogEntry::asked_depth_per_iops).filter(|_| !is_bytes);
        let plain = usual(format!("{}.{name}", shape.direction), ">=", requests * per_request);
        ExpectationRecord {
            conditions: ExpectationConditions {
                block_size_bytes: Some(shape.reads.0.max(shape.writes.0)),
                depth: asked.map(|per_iops| per_iops * requests * binding.tokens),
                instance_limit: machine.map(|(limit, _)| limit * per_request),
                instance_maximum: machine.and_then(|(_, most)| most).map(|most| most * per_request),
                sustained: credit.is_none(),
                credit,
                ..ExpectationConditions::default()
            },
            ..plain
        }
    };
    let always = expectation(requests, binding, None);
    let share = specification.entry.and_then(|entry| entry.published_shares().1).map(|fraction| {
        let is_yearly = specification.entry.is_some_and(CatalogEntry::is_yearly);
        let share = Some(ShareRecord { fraction, period_ns: is_yearly.then_some(YEAR_NS) });
        ExpectationRecord { share, ..always.clone() }
    });
    let burst = least(&limits, RateAvailability::Burst)
        .filter(|(burst, _)| *burst > requests * 1.01)
        .and_then(|(burst, binding)| {
            let credits = limits.iter().filter_map(|met| credit(met, burst, specification.is_rested));
            let shortest = credits.min_by(|one, other| lasts(one).total_cmp(&lasts(other)))?;
            Some(expectation(burst, binding, Some(shortest)))
        });
    std::iter::once(always).chain(share).chain(burst).collect()
}

/// The limit of the instance that `model` is attached to for I/Os of `shape`, IOPS, and its rate while burst credits last, where that
/// is higher.
pub(super) fn instance_limit(model: &VolumeModel, shape: &Shape) -> Option<(f64, Option<f64>)> {
    let limits = limits_of(model, shape, |stage| stage.name == INSTANCE_STAGE);
    let (limit, _) = least(&limits, RateAvailability::Always)?;
    let most = least(&limits, RateAvailability::Burst).map_or(f64::INFINITY, |(most, _)| most);
    Some((limit, (most > limit && most.is_finite()).then_some(most)))
}

/// The lowest limit, and the IOPS that it allows.
fn least<'a>(limits: &[LoadLimit<'a>], level: RateAvailability) -> Option<(f64, LoadLimit<'a>)> {
    let rate = |limit: Limit| match (level, limit) {
        (RateAvailability::Always, limit) => Some(limit.baseline()),
        // Bursts that are billed are not part of the specification.
        (RateAvailability::Burst, Limit::OnDemand { base, .. }) => Some(base),
        (RateAvailability::Burst, limit) => limit.peak(),
    };
    let all = limits.iter().filter_map(|met| Some((rate(met.limit)?.as_f64() / met.tokens, *met)));
    all.min_by(|one, other| one.0.total_cmp(&other.0))
}

/// The limits of the `wanted` stages that apply to a test.
fn limits_of<'a>(
    model: &'a VolumeModel,
    shape: &Shape,
    wanted: fn(&LimitStage) -> bool,
) -> Vec<LoadLimit<'a>> {
    let of = |sizes: &[(u64, f64)]| OfferedLoad {
        blocks: sizes.iter().map(|&(bytes, share)| (bytes as f64, share)).collect(),
        sequential: shape.sequential,
        synced_after: None,
        read_fraction: Some(shape.reads.1),
    };
    let loads = [of(&[shape.reads, shape.writes]), of(&[(shape.reads.0, 1.0)]), of(&[(shape.writes.0, 1.0)])];
    let mut limits = load_limits(model, loads.each_ref(), shape.reads.1);
    limits.retain(|limit| wanted(limit.stage));
    limits
}

/// The burst credits of a limit, and how a rate spends them.
fn credit(met: &LoadLimit<'_>, requests: f64, is_rested: bool) -> Option<CreditRecord> {
    let spends = requests * met.tokens;
    let (base, full, window_ns) = match met.limit {
        Limit::Credit { base, initial, .. } => (base, initial as f64, None),
        Limit::Window { base, burst_ns, rest_ns, .. } => (base, 0.0, Some((burst_ns, rest_ns))),
        Limit::Rate(_) | Limit::OnDemand { .. } => return None,
    };
    let accounting = met.stage.accounting;
    let unit = accounting.unit_bytes.map_or(0, u64::from);
    let is_bytes = met.unit == LimitUnit::Bytes;
    let is_counted = !is_bytes || accounting.whole_units;
    (spends > base.as_f64()).then_some(CreditRecord {
        is_bytes,
        unit_bytes: if is_counted { unit } else { 0 },
        base: base.as_f64(),
        burst: spends,
        full,
        window_ns,
        is_rested,
    })
}

fn lasts(credit: &CreditRecord) -> f64 {
    match credit.window_ns {
        Some((burst_ns, _)) => burst_ns as f64 / 1e9,
        None => credit.full / (credit.burst - credit.base),
    }
}

#[cfg(test)]
mod tests {
    use fathom_catalog::{Catalog, SimulatedTarget};

    use super::*;

    fn reads(bytes: u64, sequential: bool, depth: u64) -> Shape {
        Shape { direction: "read", reads: (bytes, 1.0), writes: (0, 0.0), sequential, depth }
    }

    fn specified(source: &str, shape: &Shape) -> Vec<ExpectationRecord> {
        let target = SimulatedTarget::parse(Catalog::shipped(), source).unwrap();
        let entry = Catalog::shipped().get(&target.id);
        let specification = PublishedSpecification {
            source,
            model: &target.model,
            entry,
            tolerance_percent: None,
            is_rested: true,
        };
        determine(&specification, "t", shape)
    }

    fn reported(source: &str, shape: &Shape) -> Vec<String> {
        let text = |expectation: &ExpectationRecord| {
            let share =
                expectation.share.map(|share| format!(" {} %", share.fraction * 100.0)).unwrap_or_default();
            let credit = expectation.conditions.credit.map(|credit| format!(" for {:.0} s", lasts(&credit)));
            let ExpectationRecord { metric, is, value, tolerance_percent, .. } = expectation;
            format!("{metric}{is}{value:.0}±{tolerance_percent}%{share}{}", credit.unwrap_or_default())
        };
        specified(source, shape).iter().map(text).collect()
    }

    #[test]
    fn limits_become_expectations_at_the_block_size() {
        let k = 1024;
        for (source, shape, expected) in [
            ("custom?iops=5000&bandwidth=200MB", reads(4 * k, false, 64), vec!["read.iops>=5000±5%"]),
            (
                "custom?iops=5000&bandwidth=200MB",
                reads(64 * k, false, 64),
                vec!["read.bytes_per_second>=200000000±5%"],
            ),
            ("custom?iops=1000&io_unit=16KiB", reads(64 * k, false, 64), vec!["read.iops>=250±5%"]),
            ("custom?write_iops=100", reads(4 * k, false, 64), vec![]),
            // 150 always; 5.4 million spent at 2,850 beyond them.
            (
                "aws-gp2-2016?size=50GiB",
                reads(4 * k, false, 64),
                vec!["read.iops>=150±5%", "read.iops>=150±5% 99 %", "read.iops>=3000±5% for 1895 s"],
            ),
            (
                "aws-io1-2012?size=100GiB&iops=1000",
                reads(16 * k, false, 64),
                vec!["read.iops>=1000±10%", "read.iops>=1000±10% 99.9 %"],
            ),
            (
                "do-volume-standard",
                reads(4 * k, false, 64),
                vec!["read.iops>=5000±5%", "read.iops>=7500±5% for 60 s"],
            ),
            (
                "do-volume-standard-2018-04",
                reads(4 * k, false, 1),
                vec!["read.iops>=5000±5%", "read.lat_ns.mean<5000000±5%"],
            ),
        ] {
            assert_eq!(reported(source, &shape), expected, "{source}");
        }
    }

    #[test]
    fn a_mix_meets_the_limits_of_both_directions() {
        let mixed = Shape {
            direction: "total",
            reads: (4096, 0.75),
            writes: (4096, 0.25),
            sequential: false,
            depth: 64,
        };
        assert_eq!(reported("custom?iops=1000", &mixed), ["total.iops>=1000±5%"]);
        // A quarter of all are writes: 100 of them leave room for 400.
        assert_eq!(reported("custom?read_iops=1000&write_iops=100", &mixed), ["total.iops>=400±5%"]);
    }

    #[test]
    fn conditions_come_with_the_expectation() {
        let io1 =
            specified("aws-io1-2012?size=100GiB&iops=1000", &reads(4096, false, 1)).remove(0).conditions;
        assert_eq!((io1.depth, io1.block_size_bytes), (Some(5.0), Some(4096)));
        let gp2 = specified("aws-gp2-2016?size=50GiB", &reads(4096, false, 64));
        assert_eq!(gp2.iter().map(|one| one.conditions.sustained).collect::<Vec<_>>(), [true, true, false]);
        let behind = specified("custom?iops=5000&instance_iops=4000", &reads(4096, false, 64)).remove(0);
        assert_eq!((behind.value, behind.conditions.instance_limit), (5000.0, Some(4000.0)));
        assert_eq!(behind.conditions.instance_maximum, None);
        let of = "aws-gp3?size=500GiB&iops=16000&instance=m6i.large";
        let ExpectationConditions { instance_limit, instance_maximum, .. } =
            specified(of, &reads(4096, false, 64)).remove(0).conditions;
        assert_eq!((instance_limit, instance_maximum), (Some(3600.0), Some(40_000.0)));
    }
}
