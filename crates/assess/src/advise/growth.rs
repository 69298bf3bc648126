//! At which growth of the load a volume no longer meets its objective, and why.

use std::path::Path;

use fathom_analysis::advise::{Advice, AdvisedCandidate, GrowthBreak};

use super::Asker;
use crate::AssessError;
use crate::simulated::SimulatedVolume;

/// The highest growth that is tried, times that of the prediction.
const MOST: f64 = 64.0;
/// The range between met and missed that is searched: 3 %.
const PRECISION: f64 = 1.03;
/// Candidates whose growth is searched.
const CANDIDATES: usize = 4;
/// Requests that may be replayed for one candidate.
const MOST_REQUESTS: usize = 40_000_000;
/// Predictions of a search, about.
const PREDICTIONS: usize = 12;

impl Asker<'_> {
    /// Finds the growth at which the best candidates and the present volume break.
    pub(super) fn find_breaks(&self, advice: &mut Advice) -> Result<(), AssessError> {
        let requests = self.predictor.evidence.requests.len();
        if requests.saturating_mul(PREDICTIONS) > MOST_REQUESTS {
            advice.notes.push(
                "the growth at which a volume breaks is not searched: there are too many requests".to_owned(),
            );
            return Ok(());
        }
        for candidate in advice.candidates.iter_mut().take(CANDIDATES) {
            candidate.breaks = self.break_of(candidate, self.settings.growth)?;
        }
        if let Some(current) = &mut advice.current {
            current.breaks = self.break_of(current, 1.0)?;
        }
        Ok(())
    }

    fn break_of(
        &self,
        candidate: &AdvisedCandidate,
        growth: f64,
    ) -> Result<Option<GrowthBreak>, AssessError> {
        if !candidate.verdict.verdict.is_met() {
            return Ok(None);
        }
        let volume = SimulatedVolume::named(Path::new(&candidate.target), &self.settings.types)?;
        let why = |growth: f64| -> Result<Option<String>, AssessError> {
            let predicted = self.predictor.predict(&volume.model, volume.seed, growth)?;
            let verdict = self.objective.verdict(&predicted, self.current.as_ref());
            Ok((!verdict.verdict.is_met()).then_some(verdict.why))
        };
        let (mut met, mut missed) = (growth, None);
        while met < growth * MOST && missed.is_none() {
            let next = met * 2.0;
            match why(next)? {
                Some(why) => missed = Some((next, why)),
                None => met = next,
            }
        }
        let Some((mut missed, mut reason)) = missed else {
            return Ok(Some(GrowthBreak { growth: None, met_at: met, why: String::new() }));
        };
        while missed / met > PRECISION {
            let middle = (met * missed).sqrt();
            match why(middle)? {
                Some(why) => (missed, reason) = (middle, why),
                None => met = middle,
            }
        }
        Ok(Some(GrowthBreak { growth: Some(missed), met_at: met, why: reason }))
    }
}
