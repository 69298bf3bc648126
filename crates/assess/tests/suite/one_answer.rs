//! One answer to one need: a table of needs over the whole catalogue, in which the search (`catalog fit`), `advise`, the simulation of
//! a load and the simulated source of a comparison agree.

use std::path::Path;

use fathom_analysis::advise::{Advice, AdviceOrder, AdvisedCandidate};
use fathom_analysis::criterion::LatencyObjective;
use fathom_assess::advise::{AdviseSettings, advise};
use fathom_assess::compare::measure;
use fathom_assess::need::{NeedSettings, need};
use fathom_assess::simulate::{JobLoad, SimulateSettings, SimulatedLoad, simulate};
use fathom_assess::{BenchSettings, Effort, RunSettings, Suite, VolumeTypes, engine_rows};
use fathom_catalog::{Catalog, Fit, SearchScope, VolumeOffer};
use fathom_model::Nanos;
use fathom_options::{MachineNumbers, ParseEnvironment};
use fathom_record::TestSummary;
use fathom_runner::StopHandle;

const NEEDS: u64 = 200;
/// Rates of which some seconds can be simulated request by request.
const MAX_SIMULATED_IOPS: f64 = 6_000.0;
/// Limits apply over 10 ms, by which the simulated seconds may be ahead, and the first I/Os take their latency.
const SIMULATED: f64 = 0.025;

/// Numbers that are the same each time.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

/// The need of that number; the first is the one on which `advise` and `catalog fit` used to differ.
fn stated(number: u64) -> NeedSettings {
    if number == 0 {
        return NeedSettings { iops: Some(3_000), persistent: true, ..NeedSettings::default() };
    }
    let mut draws = Draws(number << 32);
    let rate = 10_f64.powf(2.0 + draws.below(2_700) as f64 / 1_000.0) as u64;
    let block = draws.one_of(&[4_u64, 4, 8, 16, 64, 256, 1024]) << 10;
    let rw = draws.one_of(&[
        None,
        Some("randread"),
        Some("randwrite"),
        Some("randrw"),
        Some("read"),
        Some("write"),
    ]);
    let latency = draws.one_of(&[None, None, None, Some("p99<20ms"), Some("mean<700us"), Some("p50<3ms")]);
    let burst = draws.one_of(&[None, None, None, Some((60, 3_600)), Some((1_800, 86_400))]);
    let is_in_bytes = draws.below(4) == 0;
    NeedSettings {
        size: Some((1 + draws.below(4_000)) << 30),
        iops: (!is_in_bytes).then_some(rate),
        bytes_per_second: is_in_bytes.then_some((rate * block).min(2_000 << 20)),
        block: Some(block),
        rw: rw.map(str::to_owned),
        read_percent: (rw == Some("randrw")).then(|| draws.below(101) as u8),
        latency: latency.map(|text| LatencyObjective::parse_recorded(text).unwrap()).into_iter().collect(),
        burst: burst.map(|(length, every)| (Nanos::from_secs(length), Nanos::from_secs(every))),
        baseline_iops: burst.is_some().then_some(10),
        persistent: true,
        ..NeedSettings::default()
    }
}

fn advice(stated: &NeedSettings) -> Advice {
    let settings = AdviseSettings {
        files: Vec::new(),
        device: None,
        stated: Some(stated.clone()),
        candidates: Vec::new(),
        current: None,
        instance: None,
        provider: Some("all".to_owned()),
        size: stated.size,
        expectations: Vec::new(),
        growth: 1.0,
        order: AdviceOrder::Price,
        historical: true,
        currency: "USD".to_owned(),
        prices: Vec::new(),
        types: VolumeTypes::default(),
    };
    advise(&settings).unwrap()
}

/// Both name one volume of each type, or the same reason why there is none; and what is named is predicted to serve.
fn check_advice(fit: &Fit, advice: &Advice, text: &str) {
    let mut offered: Vec<(&str, String)> =
        fit.offers().map(|offer| (offer.id.as_str(), offer.parameters.target_name(&offer.id))).collect();
    let named = |candidate: &AdvisedCandidate| candidate.target.clone();
    let mut advised: Vec<(&str, String)> =
        advice.candidates.iter().map(|candidate| (candidate.id.as_str(), named(candidate))).collect();
    offered.sort();
    advised.sort();
    assert_eq!(offered, advised, "{text}");
    for candidate in &advice.candidates {
        assert!(candidate.verdict.verdict.is_met(), "{text}: {} {:?}", candidate.target, candidate.verdict);
    }
    let unsuitable = fit.others.iter().map(|other| (&other.id, &other.why));
    assert!(unsuitable.eq(advice.unsuitable.iter().map(|other| (&other.id, &other.why))), "{text}");
}

/// The rates of a volume whose credits are exhausted, under as many requests as it takes: of `simulate`, and of a simulated source of
/// `compare`.
fn simulated(offer: &VolumeOffer, options: &[(&str, String)]) -> [f64; 2] {
    let types = VolumeTypes::default();
    let name = offer.parameters.target_name(&offer.id);
    let exhausted = format!("{name}{}credits=0%", if name.contains('?') { '&' } else { '?' });
    let has_credits = fathom_catalog::SimulatedTarget::parse(Catalog::shipped(), &exhausted).is_ok();
    let target = if has_credits { exhausted } else { name };
    let lines: String = options.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    let job = format!("[need]\n{lines}time_based=1\nruntime=4s\n");
    let environment = ParseEnvironment {
        engines: &engine_rows(),
        read_file: &|_| Ok(job.clone().into_bytes()),
        variable: &|_| None,
        machine: MachineNumbers::default(),
    };
    let settings = SimulateSettings {
        volumes: vec![target.clone()],
        types: types.clone(),
        load: SimulatedLoad::Jobs(JobLoad::of_file(Path::new("need.fio"), &environment).unwrap()),
        load_text: String::new(),
        length: None,
        labels: Default::default(),
        command: Vec::new(),
    };
    let record = simulate(&settings, &StopHandle::default(), &mut ()).unwrap();
    let forecast = record.tests[0].forecast().unwrap();
    let table: Vec<String> = options.iter().map(|(name, value)| format!("{name} = \"{value}\"")).collect();
    let profile = "runtime = \"4s\"\nramp = \"0s\"\nsize = \"1GiB\"\n";
    let suite = format!(
        "title = \"Need\"\ndescription = \"A need.\"\nsource = \"fathom\"\n[options]\n[profile.quick]\n{profile}[profile.default]\n\
         {profile}[profile.thorough]\n{profile}[[test]]\nid = \"need\"\ntitle = \"need\"\noptions = {{ {} }}\n",
        table.join(", ")
    );
    let suite = Suite::parse("need", &suite, &engine_rows()).unwrap();
    let run = RunSettings { types, ..RunSettings::default() };
    let settings = BenchSettings { run, effort: Effort::Quick, ..BenchSettings::default() };
    let record = measure(&target, 1, &suite, &settings).unwrap().remove(0);
    let compared = TestSummary::new(&record.tests[0]).total.unwrap().iops;
    [forecast.per_second(forecast.total().ios), compared]
}

#[test]
fn fit_advise_simulate_and_compare_agree_on_two_hundred_needs() {
    let (mut offers, mut simulations) = (0, 0);
    for number in 0..NEEDS {
        let stated = stated(number);
        let asked = need(&stated).unwrap();
        let scope = SearchScope { historical: true, ..SearchScope::default() };
        let fit = Catalog::shipped().fit(&asked.need, scope);
        let text = format!("{number}: {}", asked.text);
        if number == 0 {
            let gp2 = fit.offers().find(|offer| offer.id == "aws-gp2").unwrap();
            assert_eq!(gp2.parameters.size_bytes, Some(1_000 << 30));
        }
        check_advice(&fit, &advice(&stated), &text);
        let all: Vec<&VolumeOffer> = fit.offers().collect();
        offers += all.len();
        // A mix is made of both kinds in its share, so that their rates are those of the whole.
        let is_window =
            |offer: &VolumeOffer| Catalog::shipped().get(&offer.id).unwrap().burst_rule() == Some("window");
        let is_simulated = |offer: &&&VolumeOffer| {
            asked.need.burst.is_none()
                && !is_window(offer)
                && offer.reach.iops.is_some_and(|iops| iops <= MAX_SIMULATED_IOPS)
        };
        let Some(offer) = all.iter().skip(number as usize % all.len().max(1)).chain(&all).find(is_simulated)
        else {
            continue;
        };
        // Bytes are needed of sequential requests unless others are named.
        let usual = if stated.bytes_per_second.is_some() { "read" } else { "randread" };
        let rw = stated.rw.clone().unwrap_or_else(|| usual.to_owned());
        let mut options = vec![
            ("rw", rw),
            ("bs", (asked.need.load.mean_bytes() as u64).to_string()),
            ("iodepth", "1024".to_owned()),
            ("direct", "1".to_owned()),
        ];
        options.extend(stated.read_percent.map(|percent| ("rwmixread", percent.to_string())));
        simulations += 1;
        let expected = offer.reach.iops.unwrap();
        assert!(expected >= asked.need.iops * (1.0 - 1e-9), "{text}: {offer:?}");
        for rate in simulated(offer, &options) {
            // Any mix of reads and writes reaches at least the rate of the slower.
            let is_near = match stated.rw {
                Some(_) => (rate / expected - 1.0).abs() <= SIMULATED,
                None => rate >= expected * (1.0 - SIMULATED),
            };
            assert!(is_near, "{text}: {} {rate}, not {expected}", offer.id);
        }
    }
    assert!(offers > 2_000 && simulations > 50, "{offers} offers, {simulations} simulated");
}
