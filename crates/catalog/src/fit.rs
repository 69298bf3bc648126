//! The volumes that meet a need: for each type the smallest size and the lowest choices that meet it, or the reason why
//! none does.

use fathom_model::MonthlyCost;
use fathom_predict::{OfferedLoad, ReachedRate, RecurringBurst, limits_bytes, reach};
use fathom_volume::{VolumeLatency, VolumeModel};
use serde::Serialize;

use crate::amount::GIB;
use crate::catalog::Catalog;
use crate::cost::MonthlyUse;
use crate::entry::{CatalogEntry, Lifecycle};
use crate::fit_size;
use crate::fit_why;
use crate::resolve::Parameters;
use crate::sheet::ASSUMED_LATENCY;

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
    /// Latency limits.
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
    /// It applies to reads.
    pub of_reads: bool,
    /// It applies to writes.
    pub of_writes: bool,
}

/// A volume that meets the need.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumeOffer {
    /// Its type.
    pub id: String,
    /// Its provider.
    pub provider: String,
    /// Its size; `None` if the instance determines it and the catalogue does not know it.
    pub size_bytes: Option<u64>,
    /// Its parameters.
    pub parameters: Parameters,
    /// The tier it belongs to.
    pub tier: Option<String>,
    /// The rate that it reaches with these requests.
    pub reach: ReachedRate,
    /// Sustained IOPS of random 4 KiB requests.
    pub iops: Option<f64>,
    /// Sustained bytes per second of sequential 1 MiB requests.
    pub bytes_per_second: Option<f64>,
    /// Its monthly cost, if sourced.
    pub month: Option<MonthlyCost>,
    /// Monthly cost per 1,000 IOPS, if completely known.
    pub month_per_1000_iops: Option<f64>,
    /// Monthly cost per 100 MiB/s, if completely known.
    pub month_per_100_mib_per_second: Option<f64>,
    /// Notes for the buyer.
    pub notes: Vec<String>,
}

/// Seconds of a billing month: 730 hours.
const MONTH_S: f64 = 730.0 * 3600.0;

impl VolumeNeed {
    /// The use in a month.
    fn month(&self) -> MonthlyUse {
        let rate = match self.burst {
            None => self.iops,
            Some(burst) => {
                let share = burst.length_ns as f64 / burst.period_ns as f64;
                self.iops * share + burst.iops_between * (1.0 - share)
            }
        };
        MonthlyUse { ios: rate * MONTH_S, billed_transactions: 0.0 }
    }
}

/// Why a type does not meet the need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnsuitableReason {
    /// Its performance is not published.
    NoModel,
    /// Its data are lost with the instance.
    NotPersistent,
    /// The size is not available.
    Size,
    /// Too few IOPS.
    Iops,
    /// Too little bandwidth.
    Throughput,
    /// Enough only in a burst, which is too short.
    Burst,
    /// Latency is too high.
    Latency,
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
        }
    }
}

/// A type that does not meet the need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnsuitableType {
    /// Its type.
    pub id: String,
    /// The reason.
    pub reason: UnsuitableReason,
    /// The reason in words.
    pub why: String,
}

/// The types to search, and the order of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FitScope<'a> {
    /// Types of this provider only.
    pub provider: Option<&'a str>,
    /// Types that are no longer sold, too.
    pub historical: bool,
    /// Code of the currency that comes first; the others follow in alphabetical order.
    pub currency: Option<&'a str>,
}

impl<'a> FitScope<'a> {
    /// The types that a provider sells.
    pub fn of_provider(provider: &'a str) -> Self {
        FitScope { provider: Some(provider), ..FitScope::default() }
    }
}

/// Volumes that meet the need, priced in one currency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PricedOffers {
    /// Code of the currency.
    pub currency: String,
    /// The cheapest first.
    pub offers: Vec<VolumeOffer>,
}

/// The volumes for a need.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fit {
    /// Volumes with a sourced price, by currency, the cheapest first; those with an unknown part come last.
    pub priced: Vec<PricedOffers>,
    /// Volumes without a sourced price of any of their parts, the smallest first.
    pub unpriced: Vec<VolumeOffer>,
    /// Types that do not meet the need.
    pub others: Vec<UnsuitableType>,
    /// Types that are no longer sold and were therefore left out.
    pub left_out: Vec<String>,
}

impl Fit {
    /// All volumes that meet the need.
    pub fn offers(&self) -> impl Iterator<Item = &VolumeOffer> {
        self.priced.iter().flat_map(|priced| &priced.offers).chain(&self.unpriced)
    }
}

impl Catalog {
    /// The volumes that meet `need`.
    pub fn fit(&self, need: &VolumeNeed, scope: FitScope<'_>) -> Fit {
        let mut fit = Fit::default();
        let asked = |entry: &&CatalogEntry| scope.provider.is_none_or(|name| entry.is_of(name));
        for entry in self.entries().filter(asked) {
            if entry.lifecycle() == Lifecycle::Historical && !scope.historical {
                fit.left_out.push(entry.id().to_owned());
                continue;
            }
            match entry.offer(need) {
                Err(other) => fit.others.push(other),
                Ok(offer) => match offer.month.as_ref().filter(|bill| !bill.parts.is_empty()) {
                    None => fit.unpriced.push(offer),
                    Some(bill) => {
                        let currency = bill.price.currency.clone();
                        match fit.priced.iter_mut().find(|priced| priced.currency == currency) {
                            Some(priced) => priced.offers.push(offer),
                            None => fit.priced.push(PricedOffers { currency, offers: vec![offer] }),
                        }
                    }
                },
            }
        }
        fit.priced.sort_by_key(|priced| {
            (scope.currency != Some(priced.currency.as_str()), priced.currency.clone())
        });
        let rank = |offer: &VolumeOffer| {
            let bill = offer.month.as_ref();
            (bill.is_some_and(|bill| !bill.is_whole()), bill.map_or(0.0, |bill| bill.total))
        };
        for PricedOffers { offers, .. } in &mut fit.priced {
            offers.sort_by(|one, other| {
                rank(one).partial_cmp(&rank(other)).unwrap_or(std::cmp::Ordering::Equal)
            });
        }
        fit.unpriced.sort_by_key(|offer| offer.parameters.size_bytes);
        fit
    }
}

impl CatalogEntry {
    /// True if its provider's name contains `name`.
    pub fn is_of(&self, name: &str) -> bool {
        let (own, name) = (self.provider().to_lowercase(), name.trim().to_lowercase());
        own == name || own.split('/').any(|part| part == name)
    }

    /// The smallest volume of this type that meets the need, or why there is none.
    pub fn offer(&self, need: &VolumeNeed) -> Result<VolumeOffer, UnsuitableType> {
        let other = |reason, why: String| UnsuitableType { id: self.id().to_owned(), reason, why };
        let as_measured = "its provider publishes no limits; it is known as measured alone";
        if let Some(why) = self.unmodelled().or(self.is_as_measured().then_some(as_measured)) {
            return Err(other(UnsuitableReason::NoModel, why.to_owned()));
        }
        if need.persistent && !self.is_persistent() {
            return Err(other(
                UnsuitableReason::NotPersistent,
                "its data are lost with the instance".to_owned(),
            ));
        }
        if need.instance.is_some() && !self.is_persistent() {
            return Err(other(UnsuitableReason::NoModel, "it is a part of its instance".to_owned()));
        }
        if let (_, Some(most)) = self.size_range_gib()
            && need.size_bytes > most * GIB
        {
            let why = format!("not available above {most} GiB");
            return Err(other(UnsuitableReason::Size, why));
        }
        let Some(parameters) = fit_size::least(self, need) else {
            let (reason, why) = fit_why::why_not(self, need);
            return Err(other(reason, why));
        };
        let resolved = match self.resolve(&parameters) {
            Ok(resolved) => resolved,
            Err(refusal) => return Err(other(UnsuitableReason::NoModel, refusal.reason)),
        };
        if let Some(why) = fit_why::unpublished(&resolved.model, need) {
            return Err(other(UnsuitableReason::NoModel, why));
        }
        if let Some(why) = too_slow(&resolved.model, &resolved.assumptions, need) {
            return Err(other(UnsuitableReason::Latency, why));
        }
        let model = &resolved.model;
        let of_all = |load: OfferedLoad| {
            reach(model, &OfferedLoad { read_fraction: need.load.read_fraction, ..load }).iops
        };
        let megabyte = f64::from(1 << 20);
        let notes = fit_why::notes(self, need, &resolved);
        let iops = of_all(OfferedLoad::of(4096.0, false));
        let bytes = of_all(OfferedLoad::of(megabyte, true)).filter(|_| limits_bytes(model));
        let bytes_per_second = bytes.map(|rate| rate * megabyte);
        let month = self.cost_of_month(&parameters, need.month()).ok().flatten();
        let whole = month.as_ref().filter(|month| month.is_whole()).map(|month| month.total);
        let per = |amount: Option<f64>, unit: f64| Some(whole? / (amount? / unit));
        Ok(VolumeOffer {
            id: self.id().to_owned(),
            provider: self.provider().to_owned(),
            reach: reach(model, &need.load),
            iops,
            bytes_per_second,
            month_per_1000_iops: per(iops, 1000.0),
            month_per_100_mib_per_second: per(bytes_per_second, 104_857_600.0),
            month,
            tier: resolved.tier,
            size_bytes: parameters.size_bytes.filter(|_| parameters.tier.is_none()),
            parameters,
            notes,
        })
    }
}

/// Why the latency of a volume exceeds a limit, if it does.
fn too_slow(model: &VolumeModel, assumptions: &[String], need: &VolumeNeed) -> Option<String> {
    let is_assumed = assumptions.iter().any(|reported| reported.starts_with(ASSUMED_LATENCY));
    need.latency.iter().find_map(|asked| {
        let of = |latency: &VolumeLatency| {
            asked.per_million.map_or(latency.mean_ns(), |per_million| latency.quantile_ns(per_million))
        };
        let reads = asked.of_reads.then(|| of(&model.read_latency));
        let writes = asked.of_writes.then(|| of(&model.write_latency));
        let slowest = reads.max(writes).unwrap_or(0);
        let is_slow = slowest >= asked.most_ns;
        let time = fathom_model::units::latency(slowest);
        let how = match (is_assumed, asked.per_million) {
            (true, _) => "assumed for its kind: none is published",
            (false, None) => "as published",
            (false, Some(_)) => "estimated from the published mean",
        };
        is_slow.then(|| format!("its {} is about {time}, {how}", asked.statistic))
    })
}
