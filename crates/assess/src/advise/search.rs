//! The volume of a type to advise, by the search of the catalogue. A stated need is a constraint of that search, so that `advise` and
//! `catalog fit` give one answer. For a recorded load it is the lowest sustained rate whose prediction meets the objective, which may
//! be far below the peak of the load, where burst credits or a queue serve that.

use fathom_analysis::advise::ObjectiveSource;
use fathom_analysis::criterion::CriterionVerdict;
use fathom_catalog::{CatalogEntry, Constraints, FoundVolume, Parameters, VolumeNeed};
use fathom_predict::{OfferedLoad, RecurringBurst};

use super::Asker;

/// Rates, of the peak of the load, that are tried one after the other.
const FACTORS: [f64; 4] = [1.0, 1.25, 2.0, 6.0];
/// Steps of a search between two rates.
const STEPS: u32 = 7;
/// Published IOPS apply to requests of at most about this many bytes.
const SMALL: f64 = 16_384.0;

/// The search for a volume of a type.
pub(super) struct TypeSearch<'a> {
    pub(super) asker: &'a Asker<'a>,
    pub(super) entry: &'a CatalogEntry,
    pub(super) instance: Option<String>,
}

/// A volume that was tried.
#[derive(Clone, Debug)]
struct TriedVolume {
    parameters: Parameters,
    verdict: CriterionVerdict,
}

impl TypeSearch<'_> {
    /// The parameters of the volume to show, or why the type has none. Of a stated need it is that of `catalog fit`; of a recorded load
    /// the cheapest that meets the objective, else one that may, else the largest that was tried, which shows by how much it fails.
    pub(super) fn best(&self) -> Result<Parameters, String> {
        if let Some(need) = self.asker.decisive_need() {
            let need = VolumeNeed { instance: self.instance.clone(), ..need };
            return Ok(self.serving(&need)?.parameters);
        }
        let smallest = self.at(0.0)?;
        if smallest.verdict.is_met() {
            return Ok(smallest.parameters);
        }
        let peak = self.asker.predictor.evidence.demand.peak_iops() * self.asker.settings.growth;
        let mut tried = vec![(0.0, smallest)];
        for factor in FACTORS {
            let rate = peak * factor;
            let Ok(volume) = self.at(rate) else {
                // The type does not sustain this rate: the highest that it does.
                let (from, _) = tried[tried.len() - 1];
                let (below, _) = self.bisect((from, rate), &|volume| volume.is_none());
                tried.extend(below.and_then(|(rate, volume)| Some((rate, volume?))));
                break;
            };
            let is_met = volume.verdict.is_met();
            tried.push((rate, volume));
            if is_met {
                break;
            }
        }
        let choose = |holds: &dyn Fn(&CriterionVerdict) -> bool| {
            let index = tried.iter().position(|(_, volume)| holds(&volume.verdict))?;
            let (rate, volume) = &tried[index];
            let below = index.checked_sub(1).map(|index| tried[index].0);
            let reached = |volume: Option<&TriedVolume>| volume.is_some_and(|volume| holds(&volume.verdict));
            let lower = below.and_then(|below| self.bisect((below, *rate), &reached).1);
            Some(lower.as_ref().unwrap_or(volume).parameters.clone())
        };
        let found = choose(&CriterionVerdict::is_met).or_else(|| choose(&|verdict| !verdict.is_missed()));
        Ok(found.unwrap_or_else(|| tried[tried.len() - 1].1.parameters.clone()))
    }

    /// The smallest volume that sustains `rate`, with its verdict.
    fn at(&self, rate: f64) -> Result<TriedVolume, String> {
        let evidence = self.asker.predictor.evidence;
        let mean = evidence.mean_bytes();
        let load = OfferedLoad {
            read_fraction: evidence.demand.read_share(),
            ..OfferedLoad::of(mean, evidence.demand.is_sequential.unwrap_or(false))
        };
        let need = VolumeNeed {
            in_ios: mean <= SMALL,
            instance: self.instance.clone(),
            ..VolumeNeed::permanent(load, rate, self.asker.size_bytes())
        };
        let FoundVolume { parameters, resolved, .. } = self.serving(&need)?;
        let predicted = self.asker.predictor.screen(&resolved.model, 0, self.asker.settings.growth);
        let predicted = predicted.map_err(|error| error.to_string())?;
        // Of named types the search is by sums too, of many requests, and so is the present volume that these are compared with.
        let verdict = self.asker.objective.verdict(&predicted, self.asker.screened.as_ref()).verdict;
        Ok(TriedVolume { parameters, verdict })
    }

    fn serving(&self, need: &VolumeNeed) -> Result<FoundVolume, String> {
        self.entry.search(Constraints::Serves(need)).map_err(|unsuitable| unsuitable.why)
    }

    /// Between two rates, the highest of those tried that does not hold, with its volume as far as there is one, and the volume at the
    /// lowest that does.
    fn bisect(
        &self,
        (mut low, mut high): (f64, f64),
        holds: &dyn Fn(Option<&TriedVolume>) -> bool,
    ) -> (Option<(f64, Option<TriedVolume>)>, Option<TriedVolume>) {
        let (mut below, mut above) = (None, None);
        for _ in 0..STEPS {
            let middle = low + (high - low) / 2.0;
            let volume = self.at(middle).ok();
            match holds(volume.as_ref()) {
                true => (high, above) = (middle, volume),
                false => (low, below) = (middle, Some((middle, volume))),
            }
        }
        (below, above)
    }
}

impl Asker<'_> {
    /// The stated need, where it alone decides: nothing else is expected of volumes.
    fn decisive_need(&self) -> Option<VolumeNeed> {
        let is_decisive =
            self.settings.expectations.is_empty() && self.objective.source != ObjectiveSource::Current;
        let need = self.predictor.evidence.need.clone().filter(|_| is_decisive)?;
        let growth = self.settings.growth;
        let burst =
            need.burst.map(|burst| RecurringBurst { iops_between: burst.iops_between * growth, ..burst });
        Some(VolumeNeed { size_bytes: self.size_bytes(), iops: need.iops * growth, burst, ..need })
    }

    /// Bytes to store: as asked, as the present volume, as the load touches, or the least there is.
    fn size_bytes(&self) -> u64 {
        let of_current = || Some(super::present(self.settings)?.ok()?.size());
        let known = self.settings.size.or_else(of_current).or(self.predictor.evidence.size_bytes);
        known.unwrap_or(1 << 30)
    }
}
