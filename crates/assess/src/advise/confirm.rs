//! What sums chose is confirmed by the requests themselves.

use std::path::Path;

use fathom_analysis::advise::{Advice, AdvisedCandidate};
use fathom_analysis::criterion::CriterionVerdict;

use super::Asker;
use super::predictor::VolumeUnderLoad;
use crate::AssessError;
use crate::simulated::SimulatedVolume;

/// Volumes that are shown beside the answer.
const RUNNERS_UP: usize = 3;

impl Asker<'_> {
    /// Replays the requests on the best candidates, where sums chose them, until one and some runners-up hold.
    pub(super) fn confirm(&self, advice: &mut Advice) -> Result<(), AssessError> {
        if self.predictor.replays(self.settings.candidates.is_empty()) || !self.predictor.has_requests() {
            return Ok(());
        }
        // As many as are replayed in any case.
        let mut first = Vec::new();
        let may_hold = |candidate: &&AdvisedCandidate| !candidate.verdict.verdict.is_missed();
        for candidate in advice.candidates.iter().filter(may_hold).take(RUNNERS_UP + 1) {
            let volume = SimulatedVolume::named(Path::new(&candidate.target), &self.settings.types)?;
            let growth = self.settings.growth;
            first.push(VolumeUnderLoad { model: volume.model, seed: volume.seed, growth });
        }
        self.predictor.prepare(first)?;
        let mut held = 0;
        for index in 0..advice.candidates.len() {
            let candidate = &mut advice.candidates[index];
            let may_hold = !candidate.verdict.verdict.is_missed();
            let is_within_budget = index < self.predictor.affordable_replays();
            if !may_hold || held > RUNNERS_UP || !is_within_budget {
                if may_hold {
                    let why = "sums of its requests meet the objective; cheaper volumes were replayed request by request";
                    candidate.verdict.verdict = CriterionVerdict::inconclusive(
                        why,
                        Some(format!("replay it: --candidate '{}'", candidate.target)),
                    );
                    why.clone_into(&mut candidate.verdict.why);
                }
                continue;
            }
            let volume = SimulatedVolume::named(Path::new(&candidate.target), &self.settings.types)?;
            candidate.predicted = self.predictor.predict(&volume.model, volume.seed, self.settings.growth)?;
            candidate.verdict = self.objective.verdict(&candidate.predicted, self.current.as_ref());
            candidate.is_replayed = true;
            held += usize::from(candidate.verdict.verdict.is_met());
        }
        advice.rank(&self.settings.currency);
        Ok(())
    }
}
