//! The one search over the catalogue: of each type the best volume under constraints, or why it has none.
//!
//! The volumes of a type are its sizes, its tiers and what may be provisioned. A need asks for the smallest of them that serves it,
//! and between two turning points of the rules a larger volume is never slower, so that bisection finds it. A resemblance asks for
//! the closest, by a distance that the caller gives. What the results cost and how they are shown is no matter of this module.

use std::ops::RangeInclusive;

use fathom_model::LimitUnit;
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped};
use fathom_predict::{OfferedLoad, ReachedRate, RecurringBurst, is_limited, limits_bytes, reach, serves};
use fathom_volume::{VolumeLatency, VolumeModel};
use serde::Serialize;

use crate::amount::{self, GIB};
use crate::catalog::Catalog;
use crate::entry::{CatalogEntry, Lifecycle};
use crate::levels::{bytes_range, chooses_bytes, chooses_iops, iops_range};
use crate::resolve::{Parameters, Resolved};
use crate::sheet::{ASSUMED_LATENCY, turning_points};
use crate::wire::{BurstKind, IopsModel};

/// Largest size that is searched for a need if none is published, GiB.
const MAX_GIB: u64 = 65_536;
/// Highest rate that is searched if none is published, IOPS or bytes per second.
const MAX_RATE: u64 = 1_000_000_000_000;
/// Rates with a smaller relative difference are equal.
const SAME: f64 = 1e-9;
/// Published IOPS apply to requests of at most about this many bytes.
const SMALL_BYTES: f64 = 16_384.0;
/// Sizes whose distance is within this of the minimum are equally close.
const TOLERANCE: f64 = 0.005;
/// Largest relative difference between a measured figure and the round figure assumed for it.
const ROUNDING: f64 = 0.015;

/// What a search asks of the volumes of a type.
#[derive(Clone, Copy)]
pub enum Constraints<'a> {
    /// To serve a need: the smallest volume and the lowest choices that do are the best.
    Serves(&'a VolumeNeed),
    /// To resemble what was measured: the closest volume is the best.
    Resembles(&'a Resemblance<'a>),
}

/// The requirements on a volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumeNeed {
    /// Bytes to store.
    pub size_bytes: u64,
    /// The requests.
    #[serde(flatten)]
    pub load: OfferedLoad,
    /// The requests per second.
    pub iops: f64,
    /// The need is in IOPS, so the IOPS of a type must be published.
    pub in_ios: bool,
    /// The need is in bytes per second, so the bandwidth of a type must be published.
    pub in_bytes: bool,
    /// The need applies only in recurring bursts; `None` = permanently.
    pub burst: Option<RecurringBurst>,
    /// Other requests that the volume has to sustain, each kind for itself, and their number per second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub besides: Vec<(OfferedLoad, f64)>,
    pub latency: Vec<LatencyNeed>,
    /// Data must outlive the instance.
    pub persistent: bool,
    /// The instance that the volume is attached to, whose limits apply as well; `None` = one that limits nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// A latency limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyNeed {
    /// Name of the statistic: `p99`, `mean`.
    pub statistic: String,
    /// Requests per million that must be within it; `None` = the mean.
    pub per_million: Option<u32>,
    /// The limit, ns.
    pub most_ns: u64,
    pub of_reads: bool,
    pub of_writes: bool,
}

/// A measured volume and what makes another one similar.
pub struct Resemblance<'a> {
    pub measured: MeasuredVolume,
    /// How far a volume is from it; `None` where they have nothing in common.
    pub distance: &'a dyn Fn(&VolumeModel) -> Option<f64>,
    /// Added for each figure that is chosen so that it fits.
    pub chosen: f64,
    /// Sizes that are tried where the size is unknown.
    pub steps: SizeSteps,
}

/// The measurements of a volume; `None` = unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredVolume {
    pub size_bytes: Option<u64>,
    /// Its highest IOPS.
    pub iops: Option<f64>,
    /// Its highest bandwidth, bytes per second.
    pub bytes_per_second: Option<f64>,
}

/// Sizes from the smallest to the largest of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeSteps {
    /// Each a tenth larger, up to 128 TiB where no largest is published, and every GiB around the closest.
    Fine,
    /// Each a quarter larger, up to 16 TiB.
    Coarse,
}

impl SizeSteps {
    /// The ratio of neighbours, and the largest size where none is published, GiB.
    fn ratio_and_max_gib(self) -> (f64, u64) {
        match self {
            SizeSteps::Fine => (1.1, 1 << 17),
            SizeSteps::Coarse => (1.25, 1 << 14),
        }
    }
}

/// The types to search, and the order of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchScope<'a> {
    /// Types of this provider only.
    pub provider: Option<&'a str>,
    /// Types that are no longer sold, too.
    pub historical: bool,
    /// Code of the currency that comes first; the others follow in alphabetical order.
    pub currency: Option<&'a str>,
}

/// The best volume of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundVolume {
    /// With the size; the smallest of those that are equally close.
    pub parameters: Parameters,
    pub resolved: Resolved,
    /// Its distance, without the cost of chosen figures; 0 where it serves the need.
    pub distance: f64,
    /// The smallest and largest size that are equally close, bytes.
    pub sizes: (u64, u64),
    /// All sizes of this type are equally close.
    pub is_any_size: bool,
    /// Number of figures that were chosen to fit.
    pub chosen: u32,
}

/// Why a type has no volume under the constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnsuitableReason {
    /// Its performance is not published.
    NoModel,
    /// Its data are lost with the instance.
    NotPersistent,
    /// The size is not available.
    Size,
    Iops,
    Throughput,
    /// Enough only in a burst, which is too short.
    Burst,
    Latency,
    /// No volume of it has anything in common with the measured one.
    Unlike,
}

impl UnsuitableReason {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            UnsuitableReason::NoModel => "no_model",
            UnsuitableReason::NotPersistent => "not_persistent",
            UnsuitableReason::Size => "size",
            UnsuitableReason::Iops => "iops",
            UnsuitableReason::Throughput => "throughput",
            UnsuitableReason::Burst => "burst",
            UnsuitableReason::Latency => "latency",
            UnsuitableReason::Unlike => "unlike",
        }
    }
}

/// A type without a volume under the constraints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnsuitableType {
    pub id: String,
    pub reason: UnsuitableReason,
    /// The reason in words.
    pub why: String,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResult<'a> {
    pub found: Vec<(&'a CatalogEntry, FoundVolume)>,
    pub unsuitable: Vec<UnsuitableType>,
    /// Types that are no longer sold and were therefore left out.
    pub left_out: Vec<String>,
}

impl VolumeNeed {
    /// `iops` requests of `load` per second at any time, on a volume of at least this size.
    pub fn permanent(load: OfferedLoad, iops: f64, size_bytes: u64) -> VolumeNeed {
        VolumeNeed {
            size_bytes,
            load,
            iops,
            in_ios: true,
            in_bytes: false,
            burst: None,
            besides: Vec::new(),
            latency: Vec::new(),
            persistent: true,
            instance: None,
        }
    }

    /// True if a volume meets the need, for any share of reads if that is open.
    pub(crate) fn is_met_by(&self, model: &VolumeModel) -> bool {
        serves(model, &self.load, self.iops, self.burst)
            && self.besides.iter().all(|(load, rate)| serves(model, load, *rate, None))
    }

    /// The bytes per second of the requests of which most are needed.
    fn bytes_per_second(&self) -> u64 {
        let besides = self.besides.iter().map(|(load, rate)| rate * load.mean_bytes());
        let most = besides.fold(self.iops * self.load.mean_bytes(), f64::max);
        (most * (1.0 - SAME)).ceil() as u64
    }

    /// A required figure that is not published, so that a volume cannot be shown to meet it.
    fn unpublished(&self, model: &VolumeModel) -> Option<&'static str> {
        let lacks_rate = (self.in_bytes || self.load.mean_bytes() > SMALL_BYTES) && !limits_bytes(model);
        if lacks_rate || self.in_bytes && !is_limited(model, &self.load, LimitUnit::Bytes) {
            return Some("its bandwidth is not published");
        }
        (self.in_ios && !is_limited(model, &self.load, LimitUnit::Ios))
            .then_some("its IOPS are not published")
    }

    /// Why the latency of a volume exceeds a limit, if it does.
    fn too_slow(&self, volume: &Resolved) -> Option<String> {
        let is_assumed = volume.assumptions.iter().any(|reported| reported.starts_with(ASSUMED_LATENCY));
        self.latency.iter().find_map(|asked| {
            let of = |latency: &VolumeLatency| {
                asked.per_million.map_or(latency.mean_ns(), |per_million| latency.quantile_ns(per_million))
            };
            let reads = asked.of_reads.then(|| of(&volume.model.read_latency));
            let writes = asked.of_writes.then(|| of(&volume.model.write_latency));
            let slowest = reads.max(writes).unwrap_or(0);
            let time = fathom_model::units::latency(slowest);
            let how = match (is_assumed, asked.per_million) {
                (true, _) => "assumed for its kind: none is published",
                (false, None) => "as published",
                (false, Some(_)) => "estimated from the published mean",
            };
            (slowest >= asked.most_ns).then(|| format!("its {} is about {time}, {how}", asked.statistic))
        })
    }

    /// A rate of requests like those of the need, in the unit of its limit.
    fn rate_text(&self, limited_by: Option<LimitUnit>, rate: f64) -> String {
        let mean = self.load.mean_bytes();
        if limited_by == Some(LimitUnit::Bytes) {
            let rate = rate * mean / f64::from(1 << 20);
            let figure = if rate >= 100.0 { grouped(rate.round() as u64) } else { format!("{rate:.1}") };
            return format!("{figure} MiB/s");
        }
        let size = match self.load.blocks.as_slice() {
            [(block, _)] => bytes(*block as u64),
            _ => format!("{} on average", bytes(mean as u64)),
        };
        format!("{} IOPS of {size}", grouped(rate as u64))
    }
}

impl Catalog {
    /// The best volume of each type in `scope` under `constraints`.
    pub fn search(&self, scope: SearchScope<'_>, constraints: Constraints<'_>) -> SearchResult<'_> {
        let mut result = SearchResult::default();
        for entry in self.entries() {
            if scope.provider.is_some_and(|name| !entry.is_of(name)) {
                continue;
            }
            if entry.lifecycle() == Lifecycle::Historical && !scope.historical {
                result.left_out.push(entry.id().to_owned());
                continue;
            }
            match entry.search(constraints) {
                Ok(found) => result.found.push((entry, found)),
                Err(unsuitable) => result.unsuitable.push(unsuitable),
            }
        }
        result
    }
}

impl CatalogEntry {
    /// True if `name` means its provider. Names differ in spelling: `Google Cloud` and `GCP`, `Akamai (Linode)` and `Akamai/Linode`.
    pub fn is_of(&self, name: &str) -> bool {
        let words = |name: &str| -> Vec<String> {
            let words = name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
            let words = words.map(|word| if word == "google" { "gcp".to_owned() } else { word });
            words.filter(|word| !word.is_empty() && word != "cloud").collect()
        };
        let own = words(self.provider());
        words(name).iter().any(|word| own.contains(word))
    }

    /// The best volume of this type under `constraints`, or why it has none.
    pub fn search(&self, constraints: Constraints<'_>) -> Result<FoundVolume, UnsuitableType> {
        let as_measured = "its provider publishes no limits; it is known as measured alone";
        if let Some(why) = self.unmodelled().or(self.is_as_measured().then_some(as_measured)) {
            return Err(self.unsuitable(UnsuitableReason::NoModel, why));
        }
        match constraints {
            Constraints::Serves(need) => self.serving(need),
            Constraints::Resembles(resemblance) => self.closest(resemblance),
        }
    }

    fn unsuitable(&self, reason: UnsuitableReason, why: impl Into<String>) -> UnsuitableType {
        UnsuitableType { id: self.id().to_owned(), reason, why: why.into() }
    }

    fn serving(&self, need: &VolumeNeed) -> Result<FoundVolume, UnsuitableType> {
        use UnsuitableReason::{Latency, NoModel, NotPersistent, Size};
        if need.persistent && !self.is_persistent() {
            return Err(self.unsuitable(NotPersistent, "its data are lost with the instance"));
        }
        if need.instance.is_some() && !self.is_persistent() {
            return Err(self.unsuitable(NoModel, "it is a part of its instance"));
        }
        if let Some(most) = self.size_range_gib().1.filter(|most| need.size_bytes > most * GIB) {
            return Err(self.unsuitable(Size, format!("not available above {most} GiB")));
        }
        let parameters = self.smallest(need).ok_or_else(|| self.why_not(need))?;
        let resolved =
            self.resolve(&parameters).map_err(|refusal| self.unsuitable(NoModel, refusal.reason))?;
        if let Some(why) = need.unpublished(&resolved.model) {
            return Err(self.unsuitable(NoModel, why));
        }
        if let Some(why) = need.too_slow(&resolved) {
            return Err(self.unsuitable(Latency, why));
        }
        let size = resolved.model.size_bytes;
        Ok(FoundVolume {
            parameters,
            resolved,
            distance: 0.0,
            sizes: (size, size),
            is_any_size: false,
            chosen: 0,
        })
    }

    /// The parameters of the smallest volume that sustains a need, whatever of it is published; `None` if none does.
    pub(crate) fn smallest(&self, need: &VolumeNeed) -> Option<Parameters> {
        self.tier_choices().into_iter().find_map(|tier| {
            let found = self.smallest_of_tier(need, tier.as_deref())?;
            // A tier is bought as a whole.
            let is_sized = self.wire.iops_model == IopsModel::TieredBySize;
            let tiers = self.wire.tiers.iter().filter(|_| is_sized).filter_map(|tier| tier.size_gib);
            let whole = |size: u64| tiers.map(amount::gib).filter(|tier| *tier >= size).min().unwrap_or(size);
            Some(Parameters { size_bytes: found.size_bytes.map(whole), ..found })
        })
    }

    fn smallest_of_tier(&self, need: &VolumeNeed, tier: Option<&str>) -> Option<Parameters> {
        let sizes = self.sizes_from(need.size_bytes.div_ceil(GIB));
        let last = *sizes.end();
        let at = |gib: u64| self.lowest_choice(need, gib.saturating_mul(GIB), tier);
        let begins = self.breakpoints(sizes);
        for (index, &begin) in begins.iter().enumerate() {
            let end = begins.get(index + 1).map_or(last, |next| next - 1);
            if let Some(found) = at(begin) {
                return Some(found);
            }
            if end > begin && at(end).is_some() {
                return least((begin, end), at);
            }
        }
        None
    }

    /// The lowest IOPS and bandwidth that meet the need at a size.
    fn lowest_choice(&self, need: &VolumeNeed, size_bytes: u64, tier: Option<&str>) -> Option<Parameters> {
        let wire = &self.wire;
        let unit = wire.unit_bytes();
        let with = |iops: Option<u64>, bytes_per_second: Option<u64>| {
            let chosen = Parameters {
                size_bytes: Some(size_bytes),
                iops,
                bytes_per_second,
                tier: tier.map(str::to_owned),
                instance: need.instance.clone(),
                ..Parameters::default()
            };
            let resolved = self.resolve(&chosen).ok()?;
            need.is_met_by(&resolved.model).then_some(chosen)
        };
        if wire.iops_per_provisioned_throughput.is_some() {
            let (low, high) = bytes_range(wire, size_bytes, 0);
            let range = (low.div_ceil(unit), (high / unit).min(MAX_RATE));
            return least(range, |units| with(None, Some(units.saturating_mul(unit))));
        }
        let with_bandwidth = |iops: Option<u64>| {
            if !chooses_bytes(wire) {
                return with(iops, None);
            }
            let (low, high) = bytes_range(wire, size_bytes, iops.unwrap_or(0));
            let whole_units = need.bytes_per_second().div_ceil(unit).saturating_mul(unit);
            (low <= high).then(|| whole_units.clamp(low, high)).and_then(|bytes| with(iops, Some(bytes)))
        };
        if !chooses_iops(wire) {
            return with_bandwidth(None);
        }
        let (low, high) = iops_range(wire, size_bytes);
        least((low, high.min(MAX_RATE)), |iops| with_bandwidth(Some(iops)))
    }

    /// Why the fastest volume of the type does not meet a need.
    fn why_not(&self, need: &VolumeNeed) -> UnsuitableType {
        let best = self.fastest_volumes(need.size_bytes.div_ceil(GIB)).into_iter().filter_map(|parameters| {
            let resolved =
                self.resolve(&Parameters { instance: need.instance.clone(), ..parameters }).ok()?;
            Some((reach(&resolved.model, &need.load), resolved))
        });
        let level = |reach: &ReachedRate| reach.iops.unwrap_or(f64::INFINITY);
        let peak = |reach: &ReachedRate| reach.burst.map_or(level(reach), |burst| burst.iops);
        // A burst may meet a recurring need, but not a permanent one.
        let merit = |reach: &ReachedRate| if need.burst.is_some() { peak(reach) } else { level(reach) };
        let Some((best, resolved)) = best.max_by(|one, other| merit(&one.0).total_cmp(&merit(&other.0)))
        else {
            return self.unsuitable(UnsuitableReason::Size, "not available in that size");
        };
        let sustained = level(&best);
        let lasting = need.rate_text(best.limited_by, sustained);
        if let Some(burst) = best.burst.filter(|burst| burst.iops >= need.iops * (1.0 - SAME)) {
            let lasts = match burst.lasts_ns {
                Some(ns) => format!("for {} at most", duration(Nanos(ns))),
                None => "at extra cost".to_owned(),
            };
            let peak = need.rate_text(burst.limited_by, burst.iops);
            let why = match need.burst {
                None => format!("{lasting} sustained; {peak} {lasts}"),
                Some(_) => format!(
                    "{peak} {lasts}, {lasting} at baseline: not enough for each burst, or refills too slowly"
                ),
            };
            return self.unsuitable(UnsuitableReason::Burst, why);
        }
        let (limited_by, rate) = match best.burst.filter(|_| need.burst.is_some()) {
            Some(burst) => (burst.limited_by, burst.iops),
            None => (best.limited_by, sustained),
        };
        let reason = match limited_by {
            Some(LimitUnit::Bytes) => UnsuitableReason::Throughput,
            _ => UnsuitableReason::Iops,
        };
        let of = match (&resolved.tier, self.size_range_gib().1) {
            (Some(tier), _) => format!(" with {tier}"),
            (None, Some(_)) => format!(" at {}", bytes(resolved.model.size_bytes)),
            (None, None) => String::new(),
        };
        let on = need.instance.as_ref().map(|instance| format!(" on {instance}")).unwrap_or_default();
        self.unsuitable(reason, format!("at most {}{of}{on}", need.rate_text(limited_by, rate)))
    }

    /// Candidates for the fastest volume: at each breakpoint of the rules with all that may be provisioned.
    pub(crate) fn fastest_volumes(&self, least_gib: u64) -> Vec<Parameters> {
        let wire = &self.wire;
        let of = |size: u64, tier: &Option<String>| {
            let size_bytes = size.saturating_mul(GIB);
            let iops = chooses_iops(wire).then(|| iops_range(wire, size_bytes).1);
            let bytes_per_second =
                chooses_bytes(wire).then(|| bytes_range(wire, size_bytes, iops.unwrap_or_default()).1);
            let tier = tier.clone();
            Parameters { size_bytes: Some(size_bytes), iops, bytes_per_second, tier, ..Parameters::default() }
        };
        let tiers = self.tier_choices();
        let sizes = self.breakpoints(self.sizes_from(least_gib));
        sizes.iter().flat_map(|size| tiers.iter().map(|tier| of(*size, tier))).collect()
    }

    /// Sizes of this type from `least_gib` on, GiB.
    fn sizes_from(&self, least_gib: u64) -> RangeInclusive<u64> {
        let (least, most) = self.size_range_gib();
        let first = least_gib.max(least);
        first..=most.unwrap_or(first.max(MAX_GIB))
    }

    /// The sizes among `sizes` at which a rule or tier begins or ends, and both ends, GiB.
    fn breakpoints(&self, sizes: RangeInclusive<u64>) -> Vec<u64> {
        // A burst may be available only below a turning point.
        let turns = turning_points(&self.wire).into_iter().flat_map(|size| [size.saturating_sub(1), size]);
        let is_sized = self.wire.iops_model == IopsModel::TieredBySize;
        let tiers = self.wire.tiers.iter().filter(|_| is_sized).filter_map(|tier| tier.size_gib);
        let tiers = tiers.flat_map(|gib| [gib as u64, gib as u64 + 1]);
        let steps = self.wire.iops_provisioned_by_size.iter();
        let steps = steps.map(|step| step.from_gib).chain(self.wire.iops_extra_from_gib);
        let steps = steps.flat_map(|gib| [(gib as u64).saturating_sub(1), gib.ceil() as u64]);
        let mut points: Vec<u64> =
            turns.chain(tiers).chain(steps).chain([*sizes.start(), *sizes.end()]).collect();
        points.retain(|size| sizes.contains(size));
        points.sort_unstable();
        points.dedup();
        points
    }

    /// The tiers of which one is named, since the instance determines the limits; one `None` of types that have none.
    fn tier_choices(&self) -> Vec<Option<String>> {
        match self.wire.iops_model.is_tiered_by_name() {
            true => self.wire.tiers.iter().map(|tier| Some(tier.name.clone())).collect(),
            false => vec![None],
        }
    }

    /// What may be chosen of a volume that resembles `measured`, at any size; the simplest first.
    fn choices(&self, measured: &MeasuredVolume) -> Vec<Parameters> {
        let wire = &self.wire;
        if wire.iops_model.is_tiered_by_name() {
            let named = |tier| Parameters { tier, ..Parameters::default() };
            return self.tier_choices().into_iter().map(named).collect();
        }
        if wire.tiers.iter().any(|tier| tier.burst_kind == Some(BurstKind::OnDemand)) {
            return [false, true].map(|on_demand| Parameters { on_demand, ..Parameters::default() }).to_vec();
        }
        let unit = wire.unit_bytes();
        let iops = round_figures(measured.iops.filter(|_| chooses_iops(wire)), &[100, 1]);
        // If IOPS follow from bandwidth, bandwidth is derived from the measured IOPS.
        let by_iops = || Some(measured.iops? / wire.iops_per_provisioned_throughput? * unit as f64);
        let can_bytes = wire.throughput_provisioned_max.is_some();
        let bytes = measured.bytes_per_second.or_else(by_iops).filter(|_| can_bytes);
        let bytes = round_figures(bytes, &[unit]);
        let with = |iops: Option<u64>| {
            bytes.iter().map(move |bytes| Parameters {
                iops,
                bytes_per_second: *bytes,
                ..Parameters::default()
            })
        };
        iops.into_iter().flat_map(with).collect()
    }

    /// The volume that resembles a measured one most.
    fn closest(&self, asked: &Resemblance<'_>) -> Result<FoundVolume, UnsuitableType> {
        let found = self.choices(&asked.measured).into_iter().filter_map(|choice| {
            let search = SizeSearch { entry: self, choice, asked };
            match asked.measured.size_bytes {
                Some(size) => search.found(size, (size, size), false),
                None => search.over_sizes(),
            }
        });
        let cost = |found: &FoundVolume| found.distance + f64::from(found.chosen) * asked.chosen;
        let closest = found.min_by(|one, other| cost(one).total_cmp(&cost(other)));
        closest.ok_or_else(|| self.unsuitable(UnsuitableReason::Unlike, "no volume of it is similar"))
    }
}

/// The result of `does` at the least value of a range that has one, if all larger ones have one too.
fn least<T>((mut low, mut high): (u64, u64), does: impl Fn(u64) -> Option<T>) -> Option<T> {
    if low > high {
        return None;
    }
    if let Some(found) = does(low) {
        return Some(found);
    }
    let mut best = does(high)?;
    while high - low > 1 {
        let middle = low.midpoint(high);
        match does(middle) {
            Some(found) => (high, best) = (middle, found),
            None => low = middle,
        }
    }
    Some(best)
}

/// `None`, and the measured figure in whole units of the first unit that is close enough.
fn round_figures(measured: Option<f64>, units: &[u64]) -> Vec<Option<u64>> {
    let near = |value: f64, unit: u64| {
        let rounded = ((value / unit as f64).round() as u64).saturating_mul(unit);
        let is_near = (rounded as f64 - value).abs() <= value * ROUNDING;
        (rounded > 0 && is_near).then_some(rounded)
    };
    let figure = measured.and_then(|value| units.iter().find_map(|&unit| near(value, unit)));
    std::iter::once(None).chain(figure.map(Some)).collect()
}

/// The search for the size of a volume of which all else is chosen.
struct SizeSearch<'a> {
    entry: &'a CatalogEntry,
    choice: Parameters,
    asked: &'a Resemblance<'a>,
}

impl SizeSearch<'_> {
    fn at(&self, size_bytes: u64) -> Option<(Parameters, Resolved, f64)> {
        let parameters = Parameters { size_bytes: Some(size_bytes), ..self.choice.clone() };
        let resolved = self.entry.resolve(&parameters).ok()?;
        let distance = (self.asked.distance)(&resolved.model)?;
        Some((parameters, resolved, distance))
    }

    fn distance(&self, gib: u64) -> Option<f64> {
        Some(self.at(gib * GIB)?.2)
    }

    fn found(&self, size_bytes: u64, sizes: (u64, u64), is_any_size: bool) -> Option<FoundVolume> {
        let (parameters, resolved, distance) = self.at(size_bytes)?;
        let figures = [parameters.iops, parameters.bytes_per_second].into_iter().flatten().count();
        let chosen = figures as u32 + u32::from(parameters.on_demand);
        Some(FoundVolume { parameters, resolved, distance, sizes, is_any_size, chosen })
    }

    /// The closest of all sizes in whole GiB.
    fn over_sizes(&self) -> Option<FoundVolume> {
        let (ratio, max_gib) = self.asked.steps.ratio_and_max_gib();
        let (least, most) = self.entry.size_range_gib();
        let most = most.unwrap_or(max_gib).max(least);
        let next = |size: &u64| Some(((*size as f64 * ratio) as u64).max(size + 1));
        let sizes = std::iter::successors(Some(least), next).take_while(|size| *size < most).chain([most]);
        let known: Vec<(u64, f64)> = sizes.filter_map(|gib| Some((gib, self.distance(gib)?))).collect();
        let index = (0..known.len()).min_by(|&a, &b| known[a].1.total_cmp(&known[b].1))?;
        if self.asked.steps == SizeSteps::Coarse {
            let size = known[index].0 * GIB;
            return self.found(size, (size, size), false);
        }
        let below = known[index.saturating_sub(1)].0;
        let above = known.get(index + 1).map_or(known[index].0, |next| next.0);
        let (best, distance) = self.refined((below, known[index].0, above), known[index].1);
        let fits = |gib: u64| self.distance(gib).is_some_and(|other| other <= distance + TOLERANCE);
        let low = edge(best, known.iter().rev().map(|(gib, _)| *gib).filter(|&gib| gib < best), &fits);
        let high = edge(best, known.iter().map(|(gib, _)| *gib).filter(|&gib| gib > best), &fits);
        let is_any_size = known.len() > 1 && low <= known[0].0 && high >= known[known.len() - 1].0;
        self.found(best * GIB, (low * GIB, high * GIB), is_any_size)
    }

    /// The closest size between two others, and its distance, which falls and then grows.
    fn refined(&self, (below, from, above): (u64, u64, u64), distance: f64) -> (u64, f64) {
        let mut best = (from, distance);
        let (mut low, mut high) = (below, above);
        while low < high {
            let step = ((high - low) / 16).max(1);
            for gib in (low..=high).step_by(usize::try_from(step).unwrap_or(1)) {
                let distance = self.distance(gib).unwrap_or(f64::INFINITY);
                if distance < best.1 - 1e-12 || (distance <= best.1 + 1e-12 && gib < best.0) {
                    best = (gib, distance.min(best.1));
                }
            }
            if step == 1 {
                break;
            }
            (low, high) = (best.0.saturating_sub(step).max(below), (best.0 + step).min(above));
        }
        best
    }
}

/// The farthest size on one side of `best` up to which all fit; `outwards` are the sizes on that side, the closest
/// first.
fn edge(best: u64, outwards: impl Iterator<Item = u64>, fits: &dyn Fn(u64) -> bool) -> u64 {
    let mut inside = best;
    for gib in outwards {
        if fits(gib) {
            inside = gib;
            continue;
        }
        // Between the last that fits and the first that does not.
        let mut outside = gib;
        while inside.abs_diff(outside) > 1 {
            let middle = inside.midpoint(outside);
            if fits(middle) { inside = middle } else { outside = middle }
        }
        return inside;
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    /// The distance of the IOPS baselines.
    fn by_iops(expected: f64) -> impl Fn(&VolumeModel) -> Option<f64> {
        move |model| {
            let limit = model.shared.first()?.ios?;
            Some((limit.baseline().as_f64() / expected).ln().abs())
        }
    }

    fn closest(
        id: &str,
        measured: MeasuredVolume,
        distance: &dyn Fn(&VolumeModel) -> Option<f64>,
    ) -> Option<FoundVolume> {
        let asked = Resemblance { measured, distance, chosen: 0.01, steps: SizeSteps::Fine };
        Catalog::shipped().get(id).unwrap().search(Constraints::Resembles(&asked)).ok()
    }

    fn with_iops(iops: f64) -> MeasuredVolume {
        MeasuredVolume { iops: Some(iops), ..MeasuredVolume::default() }
    }

    fn with_size(size_bytes: u64) -> MeasuredVolume {
        MeasuredVolume { size_bytes: Some(size_bytes), ..MeasuredVolume::default() }
    }

    fn check(id: &str, iops: f64, expected: (u64, u64, u64)) {
        let found = closest(id, with_iops(iops), &by_iops(iops)).unwrap();
        let (low, high) = found.sizes;
        let size = found.parameters.size_bytes.unwrap();
        assert_eq!((size / GIB, low / GIB, high / GIB), expected, "{id} {iops} {found:?}");
    }

    #[test]
    fn sizes_follow_from_iops() {
        check("aws-gp2", 150.0, (50, 50, 50));
        check("aws-gp2", 5000.0, (1667, 1659, 1675));
        // 100 is the minimum, for all sizes up to 33 GiB.
        check("aws-gp2", 100.0, (1, 1, 33));
        check("aws-gp2", 90_000.0, (5334, 5307, 16_384));
    }

    #[test]
    fn a_known_size_is_kept() {
        let found = closest("aws-gp2", with_size(100 * GIB), &by_iops(150.0)).unwrap();
        assert_eq!(found.parameters.size_bytes, Some(100 * GIB));
        assert!((found.distance - 2f64.ln()).abs() < 1e-9);
        assert_eq!(closest("aws-gp2", with_size(64 << 20), &by_iops(150.0)), None);
    }

    #[test]
    fn on_demand_bursts_are_a_choice() {
        let by_peak = |expected: f64| {
            move |model: &VolumeModel| {
                let peak = model.shared.first()?.ios?.peak()?;
                Some((peak.as_f64() / expected).ln().abs())
            }
        };
        let at = |iops: f64| {
            let found = closest("azure-premium-ssd", with_size(1024 * GIB), &by_peak(iops)).unwrap();
            (found.parameters.on_demand, found.chosen)
        };
        assert_eq!(at(30_000.0), (true, 1));
        assert_eq!(at(5_000.0), (false, 0));
    }

    #[test]
    fn unmeasured_bandwidth_follows_from_iops() {
        let found = closest("gcp-hyperdisk-throughput", with_iops(2881.0), &by_iops(2880.0)).unwrap();
        assert_eq!(found.parameters.bytes_per_second, Some(720 << 20));
        assert!(found.distance < 1e-9, "{found:?}");
    }

    #[test]
    fn provisioned_figures_are_chosen_as_round_numbers() {
        let at = |iops: f64| {
            let found = closest("aws-gp3", with_iops(iops), &by_iops(iops)).unwrap();
            (found.parameters.iops, found.chosen)
        };
        assert_eq!(at(4989.0), (Some(5000), 1));
        // Included IOPS need no choice.
        assert_eq!(at(3004.0), (None, 0));
        assert_eq!(at(12_345.0).1, 1);
    }
}
