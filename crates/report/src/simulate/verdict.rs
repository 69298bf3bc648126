//! What a simulation says first: what each volume gives to the load, which is the fastest, and which the cheapest.

use fathom_model::units::{duration, latency};
use fathom_model::{LimitUnit, Nanos};
use fathom_record::forecast::Forecast;
use serde::Serialize;

use super::{VolumeForecast, cost_text, iops, short_name};
use crate::view::View;

/// Two rates within this share of each other are the same.
const SAME: f64 = 0.01;

/// What a simulation says first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct SimulateVerdict<'a> {
    volumes: Vec<SimulatedVolume<'a>>,
    /// The volume of the highest rate, or of the lowest latency where rates are the same.
    fastest: Option<&'a str>,
    /// The cheapest of those that reach the highest rate and whose price is known in one currency.
    cheapest: Option<&'a str>,
}

/// What a volume gives to the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct SimulatedVolume<'a> {
    target: &'a str,
    iops: f64,
    lat_p99_ns: Option<u64>,
    /// The burst that ended first.
    ended: Option<EndedBurst>,
    monthly_cost: Option<f64>,
    currency: Option<&'a str>,
}

/// A burst that ended, and the rate from then on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct EndedBurst {
    after_ns: u64,
    baseline_rate: f64,
    unit: LimitUnit,
}

impl EndedBurst {
    fn rate(&self) -> String {
        self.unit.rate_text(self.baseline_rate)
    }

    fn after(&self) -> String {
        duration(Nanos(self.after_ns))
    }
}

impl<'a> SimulatedVolume<'a> {
    fn of(forecast: &'a Forecast) -> SimulatedVolume<'a> {
        let total = forecast.total();
        let cost = forecast.monthly_cost.as_ref().filter(|cost| cost.is_whole() && !cost.parts.is_empty());
        let ended = forecast.credits.iter().filter_map(|credit| {
            let (after_ns, baseline_rate) = (credit.first_exhausted_ns?, credit.baseline_rate);
            Some(EndedBurst { after_ns, baseline_rate, unit: credit.unit })
        });
        SimulatedVolume {
            target: &forecast.target,
            iops: forecast.per_second(total.ios),
            lat_p99_ns: total.lat.summary().p99,
            ended: ended.min_by_key(|ended| ended.after_ns),
            monthly_cost: cost.map(|cost| cost.total),
            currency: cost.map(|cost| cost.price.currency.as_str()),
        }
    }
}

impl<'a> SimulateVerdict<'a> {
    pub(super) fn of(volumes: &[VolumeForecast<'a>]) -> SimulateVerdict<'a> {
        let volumes: Vec<SimulatedVolume<'a>> =
            volumes.iter().map(|(_, forecast)| SimulatedVolume::of(forecast)).collect();
        let most = volumes.iter().map(|volume| volume.iops).fold(0.0, f64::max);
        let top = || volumes.iter().filter(|volume| volume.iops > 0.0 && volume.iops >= most * (1.0 - SAME));
        let fastest = top().min_by_key(|volume| volume.lat_p99_ns.unwrap_or(u64::MAX));
        let mut currencies: Vec<&str> = top().filter_map(|volume| volume.currency).collect();
        currencies.dedup();
        let priced = top().filter(|volume| volume.monthly_cost.is_some() && currencies.len() == 1);
        let cheapest = priced.min_by(|one, other| {
            one.monthly_cost.partial_cmp(&other.monthly_cost).unwrap_or(std::cmp::Ordering::Equal)
        });
        SimulateVerdict {
            fastest: fastest.map(|volume| volume.target),
            cheapest: cheapest.map(|volume| volume.target),
            volumes,
        }
    }

    /// Puts it first.
    pub(super) fn push(&self, forecasts: &[VolumeForecast<'_>], view: &mut View) {
        if let [volume] = self.volumes.as_slice() {
            let ended = volume.ended.as_ref();
            let sustained = |ended: &EndedBurst| {
                format!("{} once the burst credits are exhausted, after {}", ended.rate(), ended.after())
            };
            view.say("Sustains", ended.map(sustained));
            let on_average = if ended.is_some() { ", bursts included" } else { "" };
            view.say("Serves", format!("{}{on_average}", served(volume)));
        } else {
            let named = |target: &str| self.volumes.iter().find(|volume| volume.target == target);
            view.say(
                "Fastest",
                self.fastest
                    .and_then(named)
                    .map(|volume| format!("{}: {}", short_name(volume.target), served(volume))),
            );
            let cost = |target: &str| {
                let (_, forecast) = forecasts.iter().find(|(_, forecast)| forecast.target == target)?;
                Some(format!("{}: {}", short_name(target), cost_text(forecast.monthly_cost.as_ref()?)))
            };
            view.say("Cheapest at that rate", self.cheapest.and_then(cost));
        }
        for volume in self.volumes.iter().filter(|_| self.volumes.len() > 1) {
            let text = volume.ended.as_ref().map(|ended| {
                let (name, after) = (short_name(volume.target), ended.after());
                format!("{name}: burst credits exhausted after {after}, then {}", ended.rate())
            });
            view.say("Burst", text);
        }
    }
}

fn served(volume: &SimulatedVolume<'_>) -> String {
    let p99 = volume.lat_p99_ns.map(|ns| format!(" at p99 {}", latency(ns))).unwrap_or_default();
    format!("{} IOPS{p99}", iops(volume.iops).text)
}
