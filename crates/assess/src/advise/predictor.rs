//! The predictions of one load: one for each way in which it may have arrived.

use std::cell::RefCell;

use fathom_analysis::advise::AdviseObjective;
use fathom_predict::{
    Arrivals, PredictionSet, Replay, ReplayPace, ReplaySettings, Requirement, SumsSettings, predict_sums,
};
use fathom_volume::VolumeModel;

use super::evidence::Evidence;
use super::passes::MAX_TOGETHER;
use crate::AssessError;
use crate::simulated::SimulatedVolume;

/// Requests up to which every candidate is replayed; of more, sums choose the candidates.
const REPLAYED_FOR_ALL: usize = 20_000;
/// Requests that are replayed in all, where sums choose.
const REPLAY_BUDGET: usize = 60_000_000;
/// Candidates that are replayed in any case.
const MIN_REPLAYS: usize = 6;

/// Predicts one load.
pub(super) struct Predictor<'a> {
    pub(super) evidence: &'a Evidence,
    limits: Vec<Requirement>,
    /// Predictions that were made together, since each pass over a long recording takes a while.
    prepared: RefCell<Vec<(VolumeUnderLoad, PredictionSet)>>,
}

/// What is predicted: a volume, and the load times so much.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VolumeUnderLoad {
    pub(super) model: VolumeModel,
    pub(super) seed: u64,
    pub(super) growth: f64,
}

impl VolumeUnderLoad {
    pub(super) fn new(volume: &SimulatedVolume, growth: f64) -> VolumeUnderLoad {
        VolumeUnderLoad { model: volume.model.clone(), seed: volume.seed, growth }
    }
}

impl<'a> Predictor<'a> {
    pub(super) fn new(evidence: &'a Evidence, objective: &AdviseObjective) -> Predictor<'a> {
        Predictor { evidence, limits: objective.latency_limits(), prepared: RefCell::default() }
    }

    /// Whether requests are replayed: of every candidate, or of all that are predicted one by one.
    pub(super) fn replays(&self, is_search: bool) -> bool {
        self.has_requests() && (!is_search || self.evidence.requests.len() <= REPLAYED_FOR_ALL)
    }

    pub(super) fn has_requests(&self) -> bool {
        !self.evidence.requests.is_empty()
    }

    /// Candidates whose replay is affordable.
    pub(super) fn affordable_replays(&self) -> usize {
        (REPLAY_BUDGET / self.evidence.requests.len().max(1)).max(MIN_REPLAYS)
    }

    /// The prediction while candidates are searched: by requests where these are few.
    ///
    /// # Errors
    /// The requests can no longer be read.
    pub(super) fn screen(&self, asked: &VolumeUnderLoad) -> Result<PredictionSet, AssessError> {
        if self.replays(true) { self.predict(asked) } else { Ok(self.of_sums(asked)) }
    }

    /// The best prediction there is.
    ///
    /// # Errors
    /// The requests can no longer be read.
    pub(super) fn predict(&self, asked: &VolumeUnderLoad) -> Result<PredictionSet, AssessError> {
        if !self.has_requests() {
            return Ok(self.of_sums(asked));
        }
        let prepared = self.prepared.borrow();
        if let Some((_, found)) = prepared.iter().find(|(known, _)| known == asked) {
            return Ok(found.clone());
        }
        let found = self.replayed(std::slice::from_ref(asked))?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Predicts several volumes in few passes, where each pass reads the requests anew.
    ///
    /// # Errors
    /// The requests can no longer be read.
    pub(super) fn prepare(&self, volumes: Vec<VolumeUnderLoad>) -> Result<(), AssessError> {
        if !self.evidence.requests.are_read_anew() {
            return Ok(());
        }
        let mut prepared = self.prepared.borrow_mut();
        let mut asked: Vec<VolumeUnderLoad> = Vec::new();
        for volume in volumes {
            let is_known = prepared.iter().any(|(known, _)| *known == volume) || asked.contains(&volume);
            if !is_known {
                asked.push(volume);
            }
        }
        let found = self.replayed(&asked)?;
        prepared.extend(asked.into_iter().zip(found));
        Ok(())
    }

    /// Replays the requests on each of `volumes`, several at once.
    fn replayed(&self, volumes: &[VolumeUnderLoad]) -> Result<Vec<PredictionSet>, AssessError> {
        let paces = self.evidence.paces();
        let each: Vec<(&VolumeUnderLoad, ReplayPace)> =
            volumes.iter().flat_map(|volume| paces.iter().map(move |pace| (volume, *pace))).collect();
        let mut found = Vec::with_capacity(each.len());
        for together in each.chunks(MAX_TOGETHER) {
            let mut replays = Vec::with_capacity(together.len());
            for (volume, pace) in together {
                let settings = ReplaySettings {
                    seed: volume.seed,
                    pace: *pace,
                    growth_milli: milli(volume.growth),
                    length_ns: self.evidence.demand.length_ns,
                    limits: &self.limits,
                };
                replays.push(Replay::new(&volume.model, &settings).map_err(|error| {
                    AssessError::usage(format!("a volume is not valid: {error}"), "name another volume")
                })?);
            }
            self.evidence.requests.replay(&mut replays)?;
            found.extend(replays.into_iter().map(Replay::prediction));
        }
        let mut found = found.into_iter();
        let of = |volume: &VolumeUnderLoad| {
            let sums = self.of_sums(volume);
            let causes = sums.all.into_iter().next().map(|even| even.causes).unwrap_or_default();
            let all = found.by_ref().take(paces.len());
            PredictionSet { all: all.map(|one| one.with_causes_of_sums(&causes)).collect() }
        };
        Ok(volumes.iter().map(of).collect())
    }

    fn of_sums(&self, VolumeUnderLoad { model, growth, .. }: &VolumeUnderLoad) -> PredictionSet {
        let shape = self.evidence.shape.as_deref();
        let is_known = self.evidence.need.is_some() || self.has_requests();
        let arrivals: Vec<Arrivals<'_>> = match (is_known, shape) {
            (true, _) => vec![Arrivals::Evenly],
            (false, Some(shape)) => vec![Arrivals::Evenly, Arrivals::Shaped(shape)],
            (false, None) => vec![Arrivals::Evenly, Arrivals::AtOnce],
        };
        let orders: &[bool] =
            if self.evidence.demand.is_sequential.is_none() { &[false, true] } else { &[false] };
        let directions: &[bool] = if self.evidence.demand.has_directions { &[false] } else { &[false, true] };
        // Disks serve sequential I/Os far faster; elsewhere each counts by its size, whatever the order.
        let is_of_disks = counts_whole_units(model);
        let even = orders.iter().map(|order| (arrivals[0], *order && is_of_disks));
        let ways: Vec<(Arrivals<'_>, bool)> =
            even.chain(arrivals[1..].iter().map(|arrivals| (*arrivals, false))).collect();
        let each = ways.into_iter().flat_map(|(arrivals, is_sequential)| {
            directions.iter().map(move |all_reads| (arrivals, is_sequential, *all_reads))
        });
        let of = |(arrivals, is_sequential, all_reads)| {
            let growth_milli = milli(*growth);
            let limits = &self.limits;
            let settings = SumsSettings { arrivals, is_sequential, all_reads, growth_milli, limits };
            predict_sums(model, &self.evidence.demand, &settings).unwrap_or_default()
        };
        PredictionSet { all: each.map(of).collect() }
    }
}

/// Whether a limit counts short random requests like long ones, and sequential ones together.
fn counts_whole_units(model: &VolumeModel) -> bool {
    let mut stages = model.shared.iter().chain(&model.reads).chain(&model.writes);
    stages.any(|stage| stage.accounting.whole_units && stage.accounting.merges_sequential)
}

/// Thousandths, at least one.
fn milli(growth: f64) -> u64 {
    ((growth * 1000.0).round() as u64).max(1)
}

/// The parts of a model that sums do not take into account.
pub(super) fn unconsidered(model: &VolumeModel, is_replayed: bool) -> Option<String> {
    let parts = [
        (model.cache.is_some(), "its cache"),
        (model.first_touch.is_some(), "its first-touch penalty"),
        (!model.faults.is_empty(), "its stalls"),
        (model.client.is_some(), "the CPU time of the client"),
    ];
    let names: Vec<&str> = parts.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
    (!is_replayed && !names.is_empty())
        .then(|| format!("predicted from sums, without {}", names.join(" and ")))
}
