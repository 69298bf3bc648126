//! The cheapest volume of a type that meets an objective. The size and the choices that sustain a rate are those of `catalog fit`; the
//! search is for the lowest such rate whose prediction meets the objective. It may be far below the peak of the load, where burst
//! credits or a queue serve that.

use fathom_analysis::criterion::CriterionVerdict;
use fathom_catalog::{CatalogEntry, Parameters, VolumeNeed};
use fathom_predict::{OfferedLoad, PredictionSet};

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
    /// The parameters of the volume to show: the cheapest that meets the objective, else one that may, else the largest that was
    /// tried. Or why the type has none.
    pub(super) fn best(&self) -> Result<Parameters, String> {
        let smallest = self.at(0.0)?;
        if smallest.verdict.is_met() {
            return Ok(smallest.parameters);
        }
        let peak = self.asker.predictor.evidence.demand.peak_iops() * self.asker.settings.growth;
        let mut tried = vec![(0.0, smallest)];
        for factor in FACTORS {
            let rate = peak * factor;
            let Ok(volume) = self.at(rate) else {
                let (from, _) = tried[tried.len() - 1];
                // The type does not sustain this rate: the highest that it does.
                let most = self.narrow(from, rate, |volume| volume.is_none());
                tried.extend(most);
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
            let Some((below, _)) = index.checked_sub(1).map(|index| &tried[index]) else {
                return Some(volume.parameters.clone());
            };
            let reached = |volume: Option<&TriedVolume>| volume.is_none_or(|volume| holds(&volume.verdict));
            let found = self.least(*below, *rate, volume.clone(), &reached);
            Some(found.parameters)
        };
        let found = choose(&CriterionVerdict::is_met).or_else(|| choose(&|verdict| !verdict.is_missed()));
        // None does: the largest shows by how much.
        Ok(found.unwrap_or_else(|| tried[tried.len() - 1].1.parameters.clone()))
    }

    /// The smallest volume that sustains `rate`, with its verdict.
    fn at(&self, rate: f64) -> Result<TriedVolume, String> {
        let evidence = self.asker.predictor.evidence;
        let mean = evidence.mean_bytes();
        let need = VolumeNeed {
            size_bytes: self.size_bytes(),
            load: OfferedLoad {
                blocks: vec![(mean, 1.0)],
                sequential: evidence.demand.is_sequential.unwrap_or(false),
                synced_after: None,
                read_fraction: evidence.demand.read_share(),
            },
            iops: rate,
            in_ios: mean <= SMALL,
            in_bytes: false,
            burst: None,
            besides: Vec::new(),
            latency: Vec::new(),
            persistent: true,
            instance: self.instance.clone(),
        };
        let offer = self.entry.offer(&need).map_err(|unsuitable| unsuitable.why)?;
        let resolved = self.entry.resolve(&offer.parameters).map_err(|refusal| refusal.reason)?;
        let predicted = self.asker.predictor.screen(&resolved.model, 0, self.asker.settings.growth);
        let predicted = predicted.map_err(|error| error.to_string())?;
        let verdict = self.compared(&predicted);
        Ok(TriedVolume { parameters: offer.parameters, verdict })
    }

    /// Of named types the search is by sums too, of many requests, and so is the present volume that these are compared with.
    fn compared(&self, predicted: &PredictionSet) -> CriterionVerdict {
        self.asker.objective.verdict(predicted, self.asker.screened.as_ref()).verdict
    }

    fn size_bytes(&self) -> u64 {
        self.asker.size_bytes()
    }

    /// The volume at the highest rate between `low` and `high` before `is_beyond`.
    fn narrow(
        &self,
        mut low: f64,
        mut high: f64,
        is_beyond: impl Fn(Option<&TriedVolume>) -> bool,
    ) -> Option<(f64, TriedVolume)> {
        let mut best = None;
        for _ in 0..STEPS {
            let middle = low + (high - low) / 2.0;
            let volume = self.at(middle).ok();
            match is_beyond(volume.as_ref()) {
                true => high = middle,
                false => {
                    low = middle;
                    best = volume.map(|volume| (middle, volume));
                }
            }
        }
        best
    }

    /// The volume at the lowest rate between `low` and `high`, which has `found`, that has `reached` it.
    fn least(
        &self,
        mut low: f64,
        mut high: f64,
        mut found: TriedVolume,
        reached: &dyn Fn(Option<&TriedVolume>) -> bool,
    ) -> TriedVolume {
        for _ in 0..STEPS {
            let middle = low + (high - low) / 2.0;
            match self.at(middle).ok().filter(|volume| reached(Some(volume))) {
                Some(volume) => (high, found) = (middle, volume),
                None => low = middle,
            }
        }
        found
    }
}

impl Asker<'_> {
    /// Bytes to store: as asked, as the present volume, as the load touches, or the least there is.
    fn size_bytes(&self) -> u64 {
        let of_current = || Some(super::present(self.settings)?.ok()?.size());
        let known = self.settings.size.or_else(of_current).or(self.predictor.evidence.size_bytes);
        known.unwrap_or(1 << 30)
    }
}
