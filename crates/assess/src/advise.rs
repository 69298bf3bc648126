//! From an observed or stated load to the cheapest volume that meets an objective: which volumes are predicted, in what order, and
//! what the answer is. The predictions are those of `fathom_analysis::advise`.
//!
//! A stated need is a constraint of the search of the catalogue, so that `advise` and `catalog fit` give one answer. For a recorded load the
//! volume of a type is the lowest sustained rate whose prediction meets the objective, which may be far below the peak of the load, where
//! burst credits or a queue serve that.

mod evidence;
mod passes;
mod predictor;

use std::path::{Path, PathBuf};

use evidence::Evidence;
use fathom_analysis::advise::{
    Advice, AdviceOrder, AdviseObjective, AdviseVerdict, AdvisedCandidate, AdvisedParameters, GrowthBreak,
    ObjectiveSource, UnsuitableCandidate,
};
use fathom_analysis::criterion::{Criterion, CriterionVerdict};
use fathom_catalog::{
    Catalog, CatalogEntry, Constraints, FoundVolume, Instances, Lifecycle, MonthlyUse, Parameters, VolumeNeed,
};
use fathom_model::{CostPart, MonthlyCost, Price};
use fathom_predict::{OfferedLoad, Prediction, PredictionSet, RecurringBurst};
use predictor::{Predictor, VolumeUnderLoad};

use crate::catalogue::VolumeTypes;
use crate::need::NeedSettings;
use crate::simulated::SimulatedVolume;
use crate::{AssessError, ErrorKind};

/// What is asked.
#[derive(Clone, Debug)]
pub struct AdviseSettings {
    /// Recordings of one load; the longest is the load, a finer one shows how bursty it is.
    pub files: Vec<PathBuf>,
    /// Device of a recording that has several.
    pub device: Option<String>,
    /// The needs in place of a recording.
    pub stated: Option<NeedSettings>,
    /// Volumes or types to choose from; empty = the catalogue.
    pub candidates: Vec<String>,
    /// The present volume.
    pub current: Option<String>,
    /// The instance that volumes are attached to.
    pub instance: Option<String>,
    /// Types of this provider; `all` = of every one.
    pub provider: Option<String>,
    /// Bytes to store.
    pub size: Option<u64>,
    /// What is expected; empty = not worse than now by more than 10 %.
    pub expectations: Vec<Criterion>,
    /// The load times so much.
    pub growth: f64,
    /// Types that are no longer sold, too.
    pub historical: bool,
    /// What the best of those that meet the objective is.
    pub order: AdviceOrder,
    /// Code of the currency that comes first.
    pub currency: String,
    /// Prices of candidates by their names, in place of the catalogue's.
    pub prices: Vec<StatedPrice>,
    /// The types that names mean.
    pub types: VolumeTypes,
}

/// What a volume costs a month.
#[derive(Clone, Debug, PartialEq)]
pub struct StatedPrice {
    /// The candidate as it is given.
    pub volume: String,
    /// The amount.
    pub per_month: f64,
    /// Its currency.
    pub currency: String,
}

impl StatedPrice {
    fn is_of(&self, volume: &str) -> bool {
        let [own, other] = [&self.volume, volume].map(|text| text.strip_prefix("sim:").unwrap_or(text));
        // `--instance` is appended to the name.
        let Some(rest) = other.strip_prefix(own) else { return false };
        rest.is_empty() || ["?instance=", "&instance="].iter().any(|instance| rest.starts_with(instance))
    }

    fn bill(&self) -> MonthlyCost {
        MonthlyCost {
            price: Price {
                currency: self.currency.clone(),
                source: "--price".to_owned(),
                ..Price::default()
            },
            total: self.per_month,
            parts: vec![CostPart { what: "volume".to_owned(), amount: 1.0, cost: self.per_month }],
            unknown: Vec::new(),
        }
    }
}

/// What a name says of the instance that its volume is attached to.
const OWN_INSTANCE: [&str; 3] = ["instance=", "instance_iops=", "instance_bandwidth="];
/// All providers.
const ALL: &str = "all";
/// Volumes that are shown beside the answer.
const RUNNERS_UP: usize = 3;
/// The highest growth that is tried, times that of the prediction.
const MAX_GROWTH: f64 = 64.0;
/// The range between met and missed that is searched: 3 %.
const GROWTH_PRECISION: f64 = 1.03;
/// Candidates whose growth is searched.
const GROWN_CANDIDATES: usize = 4;
/// The same where they are ordered by it: the cheapest ones.
const GROWN_FOR_HEADROOM: usize = 24;
/// Requests that may be replayed for one candidate.
const MAX_GROWN_REQUESTS: usize = 40_000_000;
/// Predictions of a search, about.
const GROWTH_PREDICTIONS: usize = 12;

/// Gives the advice.
///
/// # Errors
/// A file cannot be read or holds nothing to predict from, or a volume makes no sense.
pub fn advise(settings: &AdviseSettings) -> Result<Advice, AssessError> {
    let catalog = settings.types.catalogue()?;
    check_prices(settings)?;
    let current = present(settings).transpose()?;
    let evidence = Evidence::read(settings)?;
    let objective = objective(settings, &evidence, current.is_some());
    let predictor = Predictor::new(&evidence, &objective);
    let screen = |volume: &SimulatedVolume| predictor.screen(&VolumeUnderLoad::new(volume, 1.0));
    let screened = current.as_ref().map(screen).transpose()?;
    let mut asker = Asker { settings, predictor: &predictor, objective: &objective, current: None, screened };
    let mut advice = Advice {
        observed: evidence.load.clone(),
        source: objective.source,
        objective: objective.texts(),
        growth: settings.growth,
        current: None,
        order: settings.order,
        candidates: Vec::new(),
        unsuitable: Vec::new(),
        left_out: 0,
        provider: String::new(),
        notes: evidence.notes.clone(),
    };
    let volume = current.as_ref();
    let chosen = asker.choose(catalog, volume, &mut advice)?;
    asker.predict_current(volume, &chosen)?;
    chosen.iter().try_for_each(|chosen| asker.add(chosen, &mut advice))?;
    if let Some(volume) = volume {
        asker.add_current(volume, &mut advice)?;
    }
    advice.rank(&settings.currency);
    asker.confirm(&mut advice)?;
    asker.find_breaks(&mut advice)?;
    Ok(advice)
}

/// Each price is of a volume that is asked for.
fn check_prices(settings: &AdviseSettings) -> Result<(), AssessError> {
    let is_asked = |price: &&StatedPrice| {
        settings.candidates.iter().chain(&settings.current).any(|volume| price.is_of(volume))
    };
    let Some(price) = settings.prices.iter().find(|price| !is_asked(price)) else { return Ok(()) };
    let message = format!("--price {}: no --candidate and no --current has this name", price.volume);
    let hint = format!("add --candidate '{}'", price.volume);
    Err(AssessError::new(ErrorKind::Usage, message, Some(hint)))
}

/// The present volume: on the instance that is asked for, unless it cannot be attached to that, as to one of another provider.
fn present(settings: &AdviseSettings) -> Option<Result<SimulatedVolume, AssessError>> {
    let name = settings.current.as_deref()?;
    let instance = settings.instance.as_deref();
    let is_known = instance.is_some_and(|id| !Instances::shipped().named(id).is_empty());
    let found = named(name, instance, &settings.types);
    Some(match is_known {
        true => found.or_else(|_| named(name, None, &settings.types)),
        false => found,
    })
}

/// The volume that is called so, with or without `sim:`, on the instance that is asked for unless its name says one.
fn named(name: &str, instance: Option<&str>, types: &VolumeTypes) -> Result<SimulatedVolume, AssessError> {
    let mut full = name.to_owned();
    let own = full.split_once('?').map(|(_, parts)| parts);
    let has_own = own
        .is_some_and(|own| own.split('&').any(|part| OWN_INSTANCE.iter().any(|key| part.starts_with(key))));
    if let Some(instance) = instance.filter(|_| !has_own) {
        full += &format!("{}instance={instance}", if own.is_some() { '&' } else { '?' });
    }
    SimulatedVolume::of_name(&full, types)
}

/// What volumes have to give.
fn objective(settings: &AdviseSettings, evidence: &Evidence, has_current: bool) -> AdviseObjective {
    let mut objective = match () {
        () if !settings.expectations.is_empty() => AdviseObjective::given(&settings.expectations),
        () if !evidence.stated.is_empty() => AdviseObjective::of(ObjectiveSource::Given, Vec::new()),
        () if has_current => AdviseObjective::current(),
        () => AdviseObjective::observed(evidence.latencies.iter().copied()),
    };
    objective.requirements.extend(evidence.stated.iter().copied());
    objective.is_endless = evidence.need.is_some();
    objective
}

/// The provider whose types are searched: that which is named, else that of the instance or of the present volume.
fn provider(
    settings: &AdviseSettings,
    current: Option<&SimulatedVolume>,
    catalog: &Catalog,
) -> Option<String> {
    if let Some(provider) = &settings.provider {
        return Some(provider.clone()).filter(|provider| provider != ALL);
    }
    let of_instance = settings.instance.as_deref().and_then(|id| {
        let instances = Instances::shipped();
        let named = instances.named(id);
        named.first().map(|instance| instances.list_of(instance).provider.clone())
    });
    let of_current = || {
        let (id, _) = current?.chosen.as_ref()?;
        Some(catalog.get(id)?.provider().to_owned())
    };
    of_instance.or_else(of_current)
}

/// The instance of searched volumes: that which is named, else that of the present volume.
fn instance(settings: &AdviseSettings, current: Option<&SimulatedVolume>) -> Option<String> {
    let of_current = || current?.chosen.as_ref()?.1.instance.clone();
    settings.instance.clone().or_else(of_current)
}

/// What is asked of volumes.
struct Asker<'a> {
    settings: &'a AdviseSettings,
    predictor: &'a Predictor<'a>,
    objective: &'a AdviseObjective,
    /// The prediction for the present volume, under the load as it is.
    current: Option<PredictionSet>,
    /// The same as the volumes of a search are predicted: theirs are compared with it, one way of arrival with the same.
    screened: Option<PredictionSet>,
}

/// A volume that is predicted.
struct ChosenVolume {
    volume: SimulatedVolume,
    /// The type that it was searched for; `None` where the volume was named.
    of_type: Option<String>,
}

impl Asker<'_> {
    /// The volumes and the cheapest of the types that are named, else of each type.
    fn choose(
        &self,
        catalog: &Catalog,
        current: Option<&SimulatedVolume>,
        advice: &mut Advice,
    ) -> Result<Vec<ChosenVolume>, AssessError> {
        let instance = instance(self.settings, current);
        let mut chosen = Vec::new();
        for name in &self.settings.candidates {
            match catalog.get(name.strip_prefix("sim:").unwrap_or(name)) {
                Some(entry) => chosen.extend(self.of_type(entry, instance.as_deref(), advice)),
                None => {
                    let volume = named(name, self.settings.instance.as_deref(), &self.settings.types)?;
                    chosen.push(ChosenVolume { volume, of_type: None });
                }
            }
        }
        if !self.settings.candidates.is_empty() {
            return Ok(chosen);
        }
        let provider = provider(self.settings, current, catalog);
        advice.provider = provider.clone().unwrap_or_default();
        for entry in catalog.entries() {
            if provider.as_deref().is_some_and(|provider| !entry.is_of(provider)) {
                continue;
            }
            if entry.lifecycle() == Lifecycle::Historical && !self.settings.historical {
                advice.left_out += 1;
                continue;
            }
            chosen.extend(self.of_type(entry, instance.as_deref(), advice));
        }
        Ok(chosen)
    }

    /// The cheapest volume of a type.
    fn of_type(
        &self,
        entry: &CatalogEntry,
        instance: Option<&str>,
        advice: &mut Advice,
    ) -> Option<ChosenVolume> {
        let search = TypeSearch { asker: self, entry, instance: instance.map(str::to_owned) };
        let found = search.best().and_then(|parameters| {
            let target = parameters.target_name(entry.id());
            let volume = SimulatedVolume::named(Path::new(&target), &self.settings.types);
            volume.map_err(|error| error.to_string())
        });
        match found {
            Ok(volume) => Some(ChosenVolume { volume, of_type: Some(entry.id().to_owned()) }),
            Err(why) => {
                advice.unsuitable.push(UnsuitableCandidate { id: entry.id().to_owned(), why });
                None
            }
        }
    }

    /// Predicts the present volume, and with it those that are named: fewer passes over a long recording.
    fn predict_current(
        &mut self,
        current: Option<&SimulatedVolume>,
        chosen: &[ChosenVolume],
    ) -> Result<(), AssessError> {
        let current = current.map(|volume| VolumeUnderLoad::new(volume, 1.0));
        let mut together: Vec<VolumeUnderLoad> = current.iter().cloned().collect();
        if !self.settings.candidates.is_empty() {
            together.extend(chosen.iter().map(|chosen| self.grown(&chosen.volume)));
        }
        self.predictor.prepare(together)?;
        self.current = current.map(|current| self.predictor.predict(&current)).transpose()?;
        Ok(())
    }

    /// A volume under the load that is asked for.
    fn grown(&self, volume: &SimulatedVolume) -> VolumeUnderLoad {
        VolumeUnderLoad::new(volume, self.settings.growth)
    }

    /// The volume of a candidate.
    fn volume(&self, candidate: &AdvisedCandidate) -> Result<SimulatedVolume, AssessError> {
        SimulatedVolume::named(Path::new(&candidate.target), &self.settings.types)
    }

    /// Adds a volume with its prediction.
    fn add(&self, chosen: &ChosenVolume, advice: &mut Advice) -> Result<(), AssessError> {
        match (self.candidate(&chosen.volume), &chosen.of_type) {
            (Ok(candidate), _) => advice.candidates.push(candidate),
            (Err(error), Some(id)) => {
                advice.unsuitable.push(UnsuitableCandidate { id: id.clone(), why: error.to_string() });
            }
            (Err(error), None) => return Err(error),
        }
        Ok(())
    }

    /// The present volume under the load as it is; it is one of the choices as well.
    fn add_current(&self, volume: &SimulatedVolume, advice: &mut Advice) -> Result<(), AssessError> {
        let target = volume.path.display().to_string();
        match advice.candidates.iter_mut().find(|other| other.target == target) {
            Some(same) => same.is_current = true,
            None if self.settings.candidates.is_empty() => {
                let candidate = self.candidate(volume)?;
                advice.candidates.push(AdvisedCandidate { is_current: true, ..candidate });
            }
            None => {}
        }
        if let Some(predicted) = self.current.clone() {
            let verdict = self.objective.verdict(&predicted, self.current.as_ref());
            let candidate = self.described(volume, predicted, verdict, self.predictor.replays(false))?;
            advice.current = Some(AdvisedCandidate { is_current: true, ..candidate });
        }
        Ok(())
    }

    /// A volume with its prediction, verdict and price.
    fn candidate(&self, volume: &SimulatedVolume) -> Result<AdvisedCandidate, AssessError> {
        let is_search = self.settings.candidates.is_empty();
        let (predicted, current) = match is_search {
            true => (self.predictor.screen(&self.grown(volume))?, &self.screened),
            false => (self.predictor.predict(&self.grown(volume))?, &self.current),
        };
        let verdict = self.objective.verdict(&predicted, current.as_ref());
        self.described(volume, predicted, verdict, self.predictor.replays(is_search))
    }

    /// A volume with a prediction and what follows from it.
    fn described(
        &self,
        volume: &SimulatedVolume,
        predicted: PredictionSet,
        verdict: AdviseVerdict,
        is_replayed: bool,
    ) -> Result<AdvisedCandidate, AssessError> {
        let used = |first: &Prediction| {
            let elapsed_s = first.summary.elapsed_ns.max(1) as f64 / 1e9;
            let iops = first.summary.total.as_ref().map_or(0.0, |total| total.iops);
            MonthlyUse::at_rates(iops, first.billed_transactions as f64 / elapsed_s)
        };
        let used = predicted.first().map(used);
        let name = volume.path.to_string_lossy();
        let price = match self.settings.prices.iter().find(|price| price.is_of(&name)) {
            Some(stated) => Some(stated.bill()),
            None => used.map(|used| volume.cost_of_month(&self.settings.types, used)).transpose()?.flatten(),
        };
        let (id, parameters) = match &volume.chosen {
            Some((id, parameters)) => (id.clone(), parameters.clone()),
            None => ("custom".to_owned(), Parameters::default()),
        };
        let target = volume.path.display().to_string();
        let mut notes = volume.own_notes();
        notes.extend(predictor::unconsidered(&volume.model, is_replayed));
        let size_bytes = parameters.size_bytes.or(volume.chosen.is_none().then_some(volume.model.size_bytes));
        Ok(AdvisedCandidate {
            id,
            target,
            instance: parameters.instance.clone(),
            parameters: AdvisedParameters {
                size_bytes: size_bytes.filter(|_| parameters.tier.is_none()),
                iops: parameters.iops,
                bytes_per_second: parameters.bytes_per_second,
                tier: parameters.tier,
            },
            is_current: false,
            verdict,
            predicted,
            is_replayed,
            price,
            breaks: None,
            notes,
        })
    }

    /// Replays the requests on the best candidates, where sums chose them, until one and some runners-up hold.
    fn confirm(&self, advice: &mut Advice) -> Result<(), AssessError> {
        if self.predictor.replays(self.settings.candidates.is_empty()) || !self.predictor.has_requests() {
            return Ok(());
        }
        // As many as are replayed in any case.
        let mut first = Vec::new();
        let may_hold = |candidate: &&AdvisedCandidate| !candidate.verdict.verdict.is_missed();
        for candidate in advice.candidates.iter().filter(may_hold).take(RUNNERS_UP + 1) {
            first.push(self.grown(&self.volume(candidate)?));
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
            candidate.predicted = self.predictor.predict(&self.grown(&self.volume(candidate)?))?;
            candidate.verdict = self.objective.verdict(&candidate.predicted, self.current.as_ref());
            candidate.is_replayed = true;
            held += usize::from(candidate.verdict.verdict.is_met());
        }
        advice.rank(&self.settings.currency);
        Ok(())
    }

    /// Finds the growth at which the best candidates and the present volume break.
    fn find_breaks(&self, advice: &mut Advice) -> Result<(), AssessError> {
        let requests = self.predictor.evidence.requests.len();
        if requests.saturating_mul(GROWTH_PREDICTIONS) > MAX_GROWN_REQUESTS {
            advice.notes.push(
                "the growth at which a volume breaks is not searched: there are too many requests".to_owned(),
            );
            return Ok(());
        }
        let by_headroom = self.settings.order == AdviceOrder::Headroom;
        let count = if by_headroom { GROWN_FOR_HEADROOM } else { GROWN_CANDIDATES };
        for candidate in advice.candidates.iter_mut().take(count) {
            candidate.breaks = self.break_of(candidate, self.settings.growth)?;
        }
        if by_headroom {
            advice.rank(&self.settings.currency);
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
        let volume = self.volume(candidate)?;
        let why = |growth: f64| -> Result<Option<String>, AssessError> {
            let predicted = self.predictor.predict(&VolumeUnderLoad::new(&volume, growth))?;
            let verdict = self.objective.verdict(&predicted, self.current.as_ref());
            Ok((!verdict.verdict.is_met()).then_some(verdict.why))
        };
        let (mut met, mut missed) = (growth, None);
        while met < growth * MAX_GROWTH && missed.is_none() {
            let next = met * 2.0;
            match why(next)? {
                Some(why) => missed = Some((next, why)),
                None => met = next,
            }
        }
        let Some((mut missed, mut reason)) = missed else {
            return Ok(Some(GrowthBreak { growth: None, met_at: met, why: String::new() }));
        };
        while missed / met > GROWTH_PRECISION {
            let middle = (met * missed).sqrt();
            match why(middle)? {
                Some(why) => (missed, reason) = (middle, why),
                None => met = middle,
            }
        }
        Ok(Some(GrowthBreak { growth: Some(missed), met_at: met, why: reason }))
    }
}

/// Rates, of the peak of the load, that are tried one after the other.
const FACTORS: [f64; 4] = [1.0, 1.25, 2.0, 6.0];
/// Steps of a search between two rates.
const STEPS: u32 = 7;
/// Published IOPS apply to requests of at most about this many bytes.
const SMALL: f64 = 16_384.0;

/// The search for a volume of a type.
struct TypeSearch<'a> {
    asker: &'a Asker<'a>,
    entry: &'a CatalogEntry,
    instance: Option<String>,
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
    fn best(&self) -> Result<Parameters, String> {
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
        let volume = VolumeUnderLoad { model: resolved.model, seed: 0, growth: self.asker.settings.growth };
        let predicted = self.asker.predictor.screen(&volume).map_err(|error| error.to_string())?;
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
        let of_current = || Some(present(self.settings)?.ok()?.size());
        let known = self.settings.size.or_else(of_current).or(self.predictor.evidence.size_bytes);
        known.unwrap_or(1 << 30)
    }
}

#[cfg(test)]
mod tests;
