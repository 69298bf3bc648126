//! Which volumes serve a need: for each type the smallest size, and the least of what can be chosen, that does, and why
//! each of the others falls out.

use fathom_model::MonthlyCost;
use fathom_volume::{VolumeLatency, VolumeModel};

use serde::Serialize;

use crate::amount::GIB;
use crate::catalog::Catalog;
use crate::cost::MonthlyUse;
use crate::entry::{CatalogEntry, Lifecycle};
use crate::fit_size;
use crate::fit_why;
use crate::load::OfferedLoad;
use crate::reach::{ReachedRate, limits_bytes, mean_ns, quantile_ns, reach};
use crate::resolve::Parameters;
use crate::sheet::ASSUMED_LATENCY;

/// What is needed of a volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumeNeed {
    /// Bytes to be kept.
    pub size_bytes: u64,
    /// What the requests are like.
    #[serde(flatten)]
    pub load: OfferedLoad,
    /// How many of them a second.
    pub iops: f64,
    /// The need was told in I/Os a second, so that a type must say how many it gives.
    pub in_ios: bool,
    /// The need was told in bytes a second, so that a type must say how many it gives.
    pub in_bytes: bool,
    /// For so long of each period alone; `None` = for ever.
    pub spell: Option<Spell>,
    /// What a request may take.
    pub latency: Vec<LatencyNeed>,
    /// Data must outlive the instance.
    pub persistent: bool,
}

/// A need that comes and goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spell {
    /// How long it lasts, in one piece.
    pub length_ns: u64,
    /// From the beginning of one to that of the next.
    pub period_ns: u64,
    /// Requests a second in between, like those of the need.
    pub iops_between: f64,
}

/// What requests may take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyNeed {
    /// Its name for people: `p99`, `mean`.
    pub statistic: String,
    /// Requests of a million that must keep it; `None` = the mean.
    pub per_million: Option<u32>,
    /// The most, ns.
    pub most_ns: u64,
    /// Reads are to keep it.
    pub of_reads: bool,
    /// Writes are to keep it.
    pub of_writes: bool,
}

/// A volume that serves the need.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumeOffer {
    /// Its type.
    pub id: String,
    /// Who sells it.
    pub provider: String,
    /// Its size; `None` where that goes with what it belongs to, of which the catalogue does not know the size.
    pub size_bytes: Option<u64>,
    /// Size and what else is chosen.
    pub parameters: Parameters,
    /// The tier it belongs to.
    pub tier: Option<String>,
    /// What it gives requests like these.
    pub reach: ReachedRate,
    /// I/Os a second of 4 KiB in random order, for ever.
    pub iops: Option<f64>,
    /// Bytes a second in sequential requests of 1 MiB, for ever.
    pub bytes_per_second: Option<f64>,
    /// What it costs, where that is sourced.
    pub month: Option<MonthlyCost>,
    /// The price of a month for each 1,000 IOPS, where it is known in whole.
    pub month_per_1000_iops: Option<f64>,
    /// The same for each 100 MiB a second.
    pub month_per_100_mib_per_second: Option<f64>,
    /// What should be known before it is bought.
    pub notes: Vec<String>,
}

/// Seconds of a month as providers bill it: 730 hours.
const MONTH_S: f64 = 730.0 * 3600.0;

impl VolumeNeed {
    /// What it comes to in a month.
    fn month(&self) -> MonthlyUse {
        let rate = match self.spell {
            None => self.iops,
            Some(spell) => {
                let share = spell.length_ns as f64 / spell.period_ns as f64;
                self.iops * share + spell.iops_between * (1.0 - share)
            }
        };
        MonthlyUse { ios: rate * MONTH_S, billed_transactions: 0.0 }
    }
}

/// Why a type does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is no longer sold.
    Historical,
    /// Nobody published what it gives.
    NoModel,
    /// Its data are lost with the instance.
    NotPersistent,
    /// There are none so large.
    Size,
    /// Too few I/Os a second.
    Iops,
    /// Too few bytes a second.
    Throughput,
    /// Enough in a burst, which does not last.
    Burst,
    /// Requests take too long.
    Latency,
}

impl Reason {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Historical => "historical",
            Reason::NoModel => "no_model",
            Reason::NotPersistent => "not_persistent",
            Reason::Size => "size",
            Reason::Iops => "iops",
            Reason::Throughput => "throughput",
            Reason::Burst => "burst",
            Reason::Latency => "latency",
        }
    }
}

/// A type that does not serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Other {
    /// Its type.
    pub id: String,
    /// Why.
    pub reason: Reason,
    /// The same in words.
    pub why: String,
}

/// Volumes that serve, priced in one currency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PricedOffers {
    /// Its code.
    pub currency: String,
    /// The cheapest first.
    pub offers: Vec<VolumeOffer>,
}

/// The answer to a need.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fit {
    /// Those whose price is sourced, by currency, the cheapest first; where a part is not known it comes after those where
    /// all is.
    pub priced: Vec<PricedOffers>,
    /// Those of which no price is sourced, the smallest first.
    pub unpriced: Vec<VolumeOffer>,
    /// The others.
    pub others: Vec<Other>,
}

impl Fit {
    /// All that serve.
    pub fn offers(&self) -> impl Iterator<Item = &VolumeOffer> {
        self.priced.iter().flat_map(|priced| &priced.offers).chain(&self.unpriced)
    }
}

impl Catalog {
    /// What serves `need`, of one provider or of all.
    pub fn fit(&self, need: &VolumeNeed, provider: Option<&str>) -> Fit {
        let mut fit = Fit::default();
        let asked = |entry: &&CatalogEntry| provider.is_none_or(|name| entry.is_of(name));
        for entry in self.entries().filter(asked) {
            match entry.offer(need) {
                Err(other) => fit.others.push(other),
                Ok(offer) => match &offer.month {
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
        fit.priced.sort_by(|one, other| one.currency.cmp(&other.currency));
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
    /// True where `name` is its provider's, or a part of that.
    pub fn is_of(&self, name: &str) -> bool {
        let (own, name) = (self.provider().to_lowercase(), name.trim().to_lowercase());
        own == name || own.split('/').any(|part| part == name)
    }

    /// The least volume of this type that serves, or why there is none.
    pub fn offer(&self, need: &VolumeNeed) -> Result<VolumeOffer, Other> {
        let other = |reason, why: String| Other { id: self.id().to_owned(), reason, why };
        if self.lifecycle() == Lifecycle::Historical {
            let why = format!("its rules are those of {}; no longer sold", self.as_of());
            return Err(other(Reason::Historical, why));
        }
        if let Some(why) = self.unmodelled() {
            return Err(other(Reason::NoModel, why.to_owned()));
        }
        if need.persistent && !self.is_persistent() {
            return Err(other(Reason::NotPersistent, "its data are lost with the instance".to_owned()));
        }
        if let (_, Some(most)) = self.size_range_gib()
            && need.size_bytes > most * GIB
        {
            let why = format!("not available above {most} GiB");
            return Err(other(Reason::Size, why));
        }
        let Some(parameters) = fit_size::least(self, need) else {
            let (reason, why) = fit_why::why_not(self, need);
            return Err(other(reason, why));
        };
        let resolved = match self.resolve(&parameters) {
            Ok(resolved) => resolved,
            Err(refusal) => return Err(other(Reason::NoModel, refusal.reason)),
        };
        if let Some(why) = fit_why::unpublished(&resolved.model, need) {
            return Err(other(Reason::NoModel, why));
        }
        if let Some(why) = too_slow(&resolved.model, &resolved.assumptions, need) {
            return Err(other(Reason::Latency, why));
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

/// Why a volume takes longer than it may, if it does.
fn too_slow(model: &VolumeModel, assumptions: &[String], need: &VolumeNeed) -> Option<String> {
    let is_assumed = assumptions.iter().any(|told| told.starts_with(ASSUMED_LATENCY));
    need.latency.iter().find_map(|asked| {
        let of = |latency: &VolumeLatency| {
            asked.per_million.map_or(mean_ns(latency), |per_million| quantile_ns(latency, per_million))
        };
        let reads = asked.of_reads.then(|| of(&model.read_latency));
        let writes = asked.of_writes.then(|| of(&model.write_latency));
        let slowest = reads.into_iter().chain(writes).fold(0.0, f64::max);
        let is_slow = slowest >= asked.most_ns as f64;
        let time = fathom_model::units::latency(slowest as u64);
        let how = match (is_assumed, asked.per_million) {
            (true, _) => "assumed for its kind: none is published",
            (false, None) => "as published",
            (false, Some(_)) => "estimated from the published mean",
        };
        is_slow.then(|| format!("its {} is about {time}, {how}", asked.statistic))
    })
}
