//! The volumes that publish a measured rate, sustained or while burst credits remain.

use fathom_predict::{OfferedLoad, ReachedRate, burst_lasts_ns, reach};
use fathom_volume::VolumeModel;

use crate::amount::GIB;
use crate::catalog::Catalog;
use crate::closest::MeasuredVolume;
use crate::entry::{CatalogEntry, Lifecycle};
use crate::resolve::Parameters;

/// Rates closer than this are the same.
pub const SAME_RATE: f64 = 0.02;
/// A rate that falls by less than this share when credits are exhausted counts as sustained.
const FALL: f64 = 0.10;
/// Ratio of neighbouring sizes that are tried where the size is unknown.
const STEP: f64 = 1.25;
/// Largest size tried if none is published, GiB.
const MOST_GIB: u64 = 16_384;
/// Provisioned IOPS match a measured rate at multiples of this: any rate is near a multiple of 1.
const ROUND_IOPS: f64 = 500.0;

/// A measured rate.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredRate {
    /// The load.
    pub load: OfferedLoad,
    /// Its rate, IOPS.
    pub iops: f64,
    /// The size of the volume, if it is known, bytes.
    pub size_bytes: Option<u64>,
    /// The provider, if it is known; types of others are left out.
    pub provider: Option<String>,
    /// True for a volume that outlives its instance, false for local storage; `None` if unknown.
    pub persistent: Option<bool>,
}

/// A volume that publishes the measured rate.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedMatch {
    /// Its type.
    pub id: String,
    /// Its size, bytes; if the size is unknown, the smallest that matches.
    pub size_bytes: u64,
    /// The rates of the load.
    pub reached: ReachedRate,
    /// The measured rate is the burst, and lasts for this time from full credits, ns.
    pub burst_lasts_ns: Option<u64>,
}

/// The volumes that publish a measured rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedMatches {
    /// One per type; bursts first, the shortest first, then sustained rates by id.
    pub matches: Vec<PublishedMatch>,
    /// The longest time for which burst credits of any volume last at the measured rate, ns.
    pub longest_burst_ns: Option<u64>,
}

impl Catalog {
    /// The volumes that are sold and publish `measured`.
    pub fn published_matches(&self, measured: &MeasuredRate) -> PublishedMatches {
        let mut found = PublishedMatches::default();
        let is_theirs = |name: &&str| self.entries().any(|entry| is_same_provider(name, entry.provider()));
        // One that the catalogue does not know may resell the volumes of any other.
        let provider = measured.provider.as_deref().filter(is_theirs);
        let is_candidate = |entry: &&CatalogEntry| {
            entry.lifecycle() != Lifecycle::Historical
                && entry.unmodelled().is_none()
                && !entry.is_as_measured()
                && measured.persistent.is_none_or(|persistent| persistent == entry.is_persistent())
                && provider.is_none_or(|name| is_same_provider(name, entry.provider()))
        };
        for entry in self.entries().filter(is_candidate) {
            let volumes = entry.volumes_at(measured);
            let bursts = volumes.iter().filter_map(|(_, model)| bursts_for_ns(model, measured));
            found.longest_burst_ns = found.longest_burst_ns.max(bursts.max());
            let all = volumes.iter().filter_map(|(size, model)| matched(entry, *size, model, measured));
            // Of several volumes of a type, the one whose rate ends.
            found.matches.extend(all.min_by_key(|one| one.burst_lasts_ns.is_none()));
        }
        found.matches.sort_by_key(|one| (one.burst_lasts_ns.unwrap_or(u64::MAX), one.id.clone()));
        found
    }
}

impl CatalogEntry {
    /// The volumes of this type that the measured one may be: sizes in bytes with their models.
    fn volumes_at(&self, measured: &MeasuredRate) -> Vec<(u64, VolumeModel)> {
        let round = (measured.iops / ROUND_IOPS).round() * ROUND_IOPS;
        let figures = MeasuredVolume {
            iops: Some(round).filter(|round| is_same(*round, measured.iops)),
            ..MeasuredVolume::default()
        };
        let choices = self.choices(&figures);
        let sizes = measured.size_bytes.map_or_else(|| self.sizes(), |size| vec![size]);
        let of = |size: u64, parameters: Parameters| Some((size, self.resolve(&parameters).ok()?.model));
        let at = |size: u64| choices.iter().map(move |choice| (size, choice.parameters(size)));
        sizes.into_iter().flat_map(at).filter_map(|(size, parameters)| of(size, parameters)).collect()
    }

    /// Sizes from the smallest to the largest, bytes.
    fn sizes(&self) -> Vec<u64> {
        let (least, most) = self.size_range();
        let gib = |bytes: u64| bytes.div_ceil(GIB).max(1);
        let (least, most) = (gib(least.unwrap_or(GIB)), most.map_or(MOST_GIB, gib));
        let next = |size: &u64| Some(((*size as f64 * STEP) as u64).max(size + 1));
        let sizes = std::iter::successors(Some(least), next).take_while(|size| *size < most);
        sizes.chain([most.max(least)]).map(|size| size * GIB).collect()
    }
}

/// Time for which burst credits of `model` last at the measured rate; `None` if it does not reach the rate, or sustains it.
fn bursts_for_ns(model: &VolumeModel, measured: &MeasuredRate) -> Option<u64> {
    let reached = reach(model, &measured.load);
    let burst = reached.burst?;
    let reaches = burst.iops >= measured.iops * (1.0 - SAME_RATE);
    let falls = reached.iops? < measured.iops * (1.0 - FALL);
    if reaches && falls { burst_lasts_ns(model, &measured.load, measured.iops) } else { None }
}

fn matched(
    entry: &CatalogEntry,
    size_bytes: u64,
    model: &VolumeModel,
    measured: &MeasuredRate,
) -> Option<PublishedMatch> {
    let reached = reach(model, &measured.load);
    let is_burst = reached.burst.is_some_and(|burst| is_same(burst.iops, measured.iops));
    let burst_lasts_ns = bursts_for_ns(model, measured).filter(|_| is_burst);
    let is_sustained = reached.iops.is_some_and(|iops| is_same(iops, measured.iops));
    (burst_lasts_ns.is_some() || is_sustained).then(|| PublishedMatch {
        id: entry.id().to_owned(),
        size_bytes,
        reached,
        burst_lasts_ns,
    })
}

fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= other * SAME_RATE
}

/// Names of providers differ in spelling: `Google Cloud` and `GCP`, `Akamai (Linode)` and `Akamai/Linode`.
fn is_same_provider(one: &str, other: &str) -> bool {
    let words = |name: &str| -> Vec<String> {
        let words = name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
        let words = words.map(|word| if word == "google" { "gcp".to_owned() } else { word });
        words.filter(|word| !word.is_empty() && word != "cloud").collect()
    };
    words(one).iter().any(|word| words(other).contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(iops: f64, gib: Option<u64>, provider: Option<&str>) -> (Vec<String>, Option<u64>) {
        let load = OfferedLoad { read_fraction: Some(1.0), ..OfferedLoad::of(4096.0, false) };
        let measured = MeasuredRate {
            load,
            iops,
            size_bytes: gib.map(|gib| gib * GIB),
            provider: provider.map(str::to_owned),
            persistent: None,
        };
        let found = Catalog::shipped().published_matches(&measured);
        let name = |one: &PublishedMatch| match one.burst_lasts_ns {
            Some(ns) => {
                format!("{} for {} s, then {:.0}", one.id, ns / 1_000_000_000, one.reached.iops.unwrap())
            }
            None => one.id.clone(),
        };
        (found.matches.iter().map(name).collect(), found.longest_burst_ns.map(|ns| ns / 1_000_000_000))
    }

    #[test]
    fn a_rate_may_be_the_burst_of_one_type_and_sustained_by_another() {
        let (found, longest) = matches(3000.0, Some(50), Some("AWS"));
        assert_eq!(found[0], "aws-gp2 for 1894 s, then 150");
        assert!(found.contains(&"aws-gp3".to_owned()), "{found:?}");
        assert_eq!(longest, Some(1894));
        // Without a size, the smallest volume of the type, and the longest burst of any: 900 GiB, 5.4 M at 300.
        let (found, longest) = matches(3000.0, None, Some("AWS"));
        assert_eq!(found[0], "aws-gp2 for 1862 s, then 100");
        assert!(longest.unwrap() > 10_000, "{longest:?}");
    }

    #[test]
    fn a_lower_rate_spends_credits_more_slowly() {
        // 5.4 M credits at 1,000 - 150.
        assert_eq!(matches(1000.0, Some(50), Some("AWS")).1, Some(5_400_000 / 850));
        assert_eq!(matches(150.0, Some(50), Some("AWS")).1, None);
    }

    #[test]
    fn rates_that_no_bucket_gives_have_no_burst() {
        let (found, longest) = matches(500_000.0, None, None);
        assert_eq!(
            (found.iter().filter(|one| one.contains("then")).count(), longest),
            (0, None),
            "{found:?}"
        );
    }

    #[test]
    fn providers_are_recognised_by_their_words() {
        for (one, other, same) in [
            ("Google Cloud", "GCP", true),
            ("Akamai (Linode)", "Akamai/Linode", true),
            ("Alibaba Cloud", "Alibaba", true),
            ("AWS", "AWS", true),
            ("Huawei Cloud", "Google Cloud", false),
            ("AWS", "Azure", false),
        ] {
            assert_eq!(is_same_provider(one, other), same, "{one} {other}");
        }
    }

    #[test]
    fn windows_are_bursts() {
        let (found, longest) = matches(12_000.0, Some(100), Some("Akamai (Linode)"));
        let expected = vec!["linode-block-storage for 60 s, then 8000".to_owned()];
        assert_eq!((found, longest), (expected, Some(60)));
    }
}
