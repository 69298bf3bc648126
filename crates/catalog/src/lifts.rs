//! Volumes that lift a limit which a measured volume has reached.

use fathom_predict::{OfferedLoad, limits_bytes, reach};
use fathom_volume::VolumeModel;

use crate::catalog::Catalog;
use crate::entry::CatalogEntry;
use crate::fit::{FitScope, VolumeNeed, VolumeOffer};
use crate::fit_size::{least, meets};
use crate::resolve::Parameters;

/// A measured rate within this relative difference of a published limit counts as that limit.
const SAME_LEVEL: f64 = 0.02;

/// Volumes that lift a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Lift {
    /// The volume's own published limit is higher: something else limits it.
    pub is_below_own_limit: bool,
    /// The smallest volume of the same type that sustains 10 % more.
    pub tenth: Option<Parameters>,
    /// The smallest volume of the same type that sustains twice as much.
    pub twice: Option<Parameters>,
    /// The provider's cheapest other type that sustains 10 % more, by its known price; `None` where that is no cheaper than a
    /// volume of the same type.
    pub next: Option<VolumeOffer>,
}

impl Catalog {
    /// The volumes that sustain more than `met`, the limit of a volume of `entry` with `parameters`.
    pub fn lifts(&self, entry: &CatalogEntry, parameters: &Parameters, met: &VolumeNeed) -> Lift {
        let chosen = Parameters { first_touch: false, ..parameters.clone() };
        let own = entry.resolve(&chosen).ok();
        let level = own.as_ref().and_then(|own| own_level(&own.model, met)).unwrap_or(met.iops);
        let more = |factor: f64| VolumeNeed { iops: level * factor, ..met.clone() };
        let (tenth, next) = self.sustained_alternatives(entry, &more(1.1));
        let is_below_own_limit = own.is_some_and(|own| meets(&own.model, &more(1.1)));
        Lift { is_below_own_limit, tenth, twice: least(entry, &more(2.0)), next }
    }

    /// What a volume of `entry` with `parameters` sustains of small and of large requests, for [`VolumeNeed::besides`]: a volume in
    /// its place should lack nothing of it.
    pub fn sustained_loads(&self, entry: &CatalogEntry, parameters: &Parameters) -> Vec<(OfferedLoad, f64)> {
        let chosen = Parameters { first_touch: false, ..parameters.clone() };
        let Ok(own) = entry.resolve(&chosen) else { return Vec::new() };
        let small = OfferedLoad::of(4096.0, false);
        let large = Some(OfferedLoad::of(f64::from(1 << 20), true)).filter(|_| limits_bytes(&own.model));
        let sustained = |load: OfferedLoad| Some((reach(&own.model, &load).iops?, load));
        let loads = [Some(small), large].into_iter().flatten();
        loads.filter_map(sustained).map(|(rate, load)| (load, rate)).collect()
    }

    /// The smallest volume of `entry` that meets a need, and the provider's cheapest other type that does, by its known
    /// price, unless it costs as much.
    pub fn sustained_alternatives(
        &self,
        entry: &CatalogEntry,
        need: &VolumeNeed,
    ) -> (Option<Parameters>, Option<VolumeOffer>) {
        let fit = self.fit(need, FitScope::of_provider(entry.provider()));
        let known = |offer: &&VolumeOffer| offer.month.as_ref().map_or(f64::INFINITY, |month| month.total);
        let (own, others): (Vec<_>, Vec<_>) = fit.offers().partition(|offer| offer.id == entry.id());
        let next = others.into_iter().min_by(|one, other| known(one).total_cmp(&known(other)));
        let is_cheaper = |next: &&VolumeOffer| own.iter().all(|own| known(next) < known(own));
        (least(entry, need), next.filter(is_cheaper).cloned())
    }
}

/// The published limit that the measured rate reached, if any: the measured rate is never exactly the limit, and 10 %
/// more than it could require a GiB more than necessary.
fn own_level(model: &VolumeModel, met: &VolumeNeed) -> Option<f64> {
    let reach = reach(model, &met.load);
    let levels = [reach.iops, reach.burst.map(|burst| burst.iops)];
    levels.into_iter().flatten().find(|level| (met.iops / level - 1.0).abs() <= SAME_LEVEL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_its_place_lacks_nothing_that_the_volume_sustains() {
        let catalog = Catalog::shipped();
        let entry = catalog.get("aws-gp2").unwrap();
        let parameters = Parameters { size_bytes: Some(5334 << 30), ..Parameters::default() };
        let load = OfferedLoad { read_fraction: Some(1.0), ..OfferedLoad::of(4096.0, false) };
        let met = VolumeNeed {
            size_bytes: 5334 << 30,
            load,
            iops: 16_000.0,
            in_ios: true,
            in_bytes: false,
            burst: None,
            besides: catalog.sustained_loads(entry, &parameters),
            latency: Vec::new(),
            persistent: true,
            instance: None,
        };
        let next = catalog.lifts(entry, &parameters, &met).next.unwrap();
        let chosen = (next.id.as_str(), next.parameters.iops, next.parameters.bytes_per_second);
        // gp3 comes with 125 MiB/s; gp2 of this size has 250.
        assert_eq!(chosen, ("aws-gp3", Some(17_600), Some(250 << 20)));
    }

    #[test]
    fn larger_volumes_and_other_types_lift_a_limit() {
        let check = |id: &str, gib: u64, iops: Option<u64>, rate: f64, expected: (bool, &str, &str, &str)| {
            let catalog = Catalog::shipped();
            let parameters = Parameters { size_bytes: Some(gib << 30), iops, ..Parameters::default() };
            let met = VolumeNeed {
                size_bytes: gib << 30,
                load: OfferedLoad::of(4096.0, false),
                iops: rate,
                in_ios: true,
                in_bytes: false,
                burst: None,
                besides: catalog.sustained_loads(catalog.get(id).unwrap(), &parameters),
                latency: Vec::new(),
                persistent: true,
                instance: None,
            };
            let lift = catalog.lifts(catalog.get(id).unwrap(), &parameters, &met);
            let reported = |parameters: Option<Parameters>| {
                let part = |part: Option<u64>| part.map(|part| format!(" {part}")).unwrap_or_default();
                parameters.map_or("none".to_owned(), |chosen| {
                    format!("{}{}", chosen.size_bytes.unwrap() >> 30, part(chosen.iops))
                })
            };
            let next = lift.next.map_or("none".to_owned(), |offer| offer.id);
            let found = (lift.is_below_own_limit, reported(lift.tenth), reported(lift.twice), next);
            assert_eq!(
                (found.0, found.1.as_str(), found.2.as_str(), found.3.as_str()),
                expected,
                "{id} {gib} {rate}"
            );
        };
        // 3,300 and 6,000 at 3 a GiB.
        check("aws-gp2", 50, None, 3000.0, (false, "1100", "2000", "aws-gp3"));
        check("aws-gp2", 50, None, 150.0, (false, "55", "100", "aws-gp3"));
        check("aws-gp2", 5334, None, 16_000.0, (false, "none", "none", "aws-gp3"));
        check("aws-gp2", 1000, None, 1000.0, (true, "1000", "1000", "aws-gp3"));
        // gp2 of 1,100 GiB has as many, for ten times the price.
        check("aws-gp3", 100, Some(3000), 3000.0, (false, "100 3300", "100 6000", "none"));
        check("vultr-block-hdd", 100, None, 500.0, (false, "none", "none", "vultr-block-nvme"));
        check("hetzner-volume", 100, None, 5000.0, (false, "none", "none", "none"));
    }
}
