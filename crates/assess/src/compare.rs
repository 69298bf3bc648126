//! What `compare` measures and looks up: simulated volumes under the tests of other sources or of a suite, and what the catalogue
//! knows of the volume of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fathom_analysis::compare::is_place;
use fathom_analysis::compare::source::{ComparedSource, SourceKind, SourceRun, VolumeFacts, VolumePrice};
use fathom_catalog::{CatalogEntry, MonthlyUse, Parameters};
use fathom_model::LimitUnit;
use fathom_model::Nanos;
use fathom_predict::reach;
use fathom_record::{Activity, ActivityKind, JobRecord, RunHeader, RunRecord, TYPE_LABEL, TestRecord};
use fathom_volume::VolumeModel;

use crate::AssessError;
use crate::bench;
use crate::catalogue::VolumeTypes;
use crate::identify::KnownVolume;
use crate::machine::engine_rows;
use crate::plan::{BenchPlan, BenchSettings};
use crate::published_rates::{look_up, offered_load};
use crate::simulated::{SimulatedVolume, is_simulated};
use crate::site::RunSettings;
use crate::suite::{Ending, Profile, RESERVED, Suite, SuiteTest, section_of};
use crate::target::BenchTarget;

/// Runs the tests of `suite` `runs` times on `volume`, a name that begins with `sim:`, each time with other random choices. The size in
/// `settings` is that of other sources: a smaller volume is used as a whole.
///
/// # Errors
/// There is no such volume, or a test does not fit it.
pub fn measure(
    volume: &str,
    runs: u32,
    suite: &Suite,
    settings: &BenchSettings,
) -> Result<Vec<RunRecord>, AssessError> {
    let run = |run: u32| {
        let path = PathBuf::from(volume);
        let mut target = BenchTarget::inspect(&path, &[], &settings.run.types)?;
        let size = settings.run.size.map(|size| size.min(target.size().unwrap_or(size)));
        if let BenchTarget::Simulated(volume) = &mut target {
            volume.seed = volume.seed.wrapping_add(u64::from(run));
        }
        let run = RunSettings { target: path, size, ..settings.run.clone() };
        let plan =
            BenchPlan::of_suite(suite.clone(), vec![target], BenchSettings { run, ..settings.clone() })?;
        bench::run(&plan, &mut plan.session(), &mut ())
    };
    (0..runs.max(1)).map(run).collect()
}

/// The tests of runs that were measured, to be run on models; `None` where they have none that can be.
pub fn suite_of<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Option<Suite> {
    let mut timed: Vec<(SuiteTest, Nanos)> = Vec::new();
    let mut profile: Option<Profile> = None;
    for record in records {
        let is_fio = record.header.activity == Activity::Fio;
        for test in record.tests.iter().filter(|test| !is_place(record, &test.id)) {
            if let Some((suite_test, runtime)) = imported_test(test)
                && timed.iter().all(|(known, _)| known.id != suite_test.id)
            {
                let size = test.imported().and_then(|imported| imported.load.size_bytes).unwrap_or(0);
                profile.get_or_insert(Profile { size, ..unknown_profile() });
                timed.push((suite_test, runtime));
            }
            for jobs in test.jobs.chunk_by(|one, next| one.phase == next.phase) {
                let id = if is_fio { &jobs[0].name } else { &test.id };
                let Some((suite_test, runtime)) = suite_test(id, test, jobs) else { continue };
                if timed.iter().any(|(known, _)| known.id == suite_test.id) {
                    continue;
                }
                profile.get_or_insert_with(|| profile_of(record, &jobs[0]));
                timed.push((suite_test, runtime));
            }
        }
    }
    let longest = timed.iter().map(|(_, runtime)| *runtime).max()?;
    let profile = Profile { runtime: longest, ..profile? };
    let shared = |(test, runtime): (SuiteTest, Nanos)| {
        let time_share = if longest > Nanos::ZERO { runtime.0 as f64 / longest.0 as f64 } else { 1.0 };
        SuiteTest { time_share, ..test }
    };
    Some(Suite {
        name: "compare".to_owned(),
        title: "The tests of the other sources".to_owned(),
        description: String::new(),
        source: String::new(),
        tolerance_percent: 0.0,
        quick: profile,
        default: profile,
        thorough: profile,
        recommended: None,
        tests: timed.into_iter().map(shared).collect(),
    })
}

/// Of a run whose ramp is unknown.
fn unknown_profile() -> Profile {
    Profile { runtime: Nanos::ZERO, ramp: Nanos::ZERO, size: 1, limit: None }
}

/// The test of another program, where its output says what it did.
fn imported_test(test: &TestRecord) -> Option<(SuiteTest, Nanos)> {
    let imported = test.imported()?;
    let load = &imported.load;
    let block = load
        .block_size
        .iter()
        .find_map(|(_, range)| range.as_ref())
        .filter(|range| range.min == range.max)?;
    let stated = load.runtime_ns.unwrap_or_else(|| imported.runtime_ns());
    let runtime = if stated > 0 { Nanos(stated) } else { UNKNOWN_RUNTIME };
    let option = |name: &str, value: Option<String>| Some((name.to_owned(), value?));
    let options = [
        option("rw", Some(load.rw.clone()?)),
        option("rwmixread", load.read_percent.map(|percent| percent.to_string())),
        option("bs", Some(block.min.to_string())),
        option("iodepth", load.queue_depth.map(|depth| depth.to_string())),
        option("numjobs", load.jobs.map(|jobs| jobs.to_string())),
        // A model has no page cache.
        option("direct", Some("1".to_owned())),
    ];
    let mut options: Vec<(String, String)> = options.into_iter().flatten().collect();
    let synced = load.sync.iter().filter_map(|option| option.split_once('='));
    options.extend(synced.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let section = section_of(&test.id, &options, &engine_rows()).ok()?;
    Some((SuiteTest::new(&test.id, &test.id, options, &section), runtime))
}

/// Of a test whose source does not say how long it took.
const UNKNOWN_RUNTIME: Nanos = Nanos(30_000_000_000);

/// How long a job waited and how much it used.
fn profile_of(record: &RunRecord, job: &JobRecord) -> Profile {
    let planned = job.plan.io.size.and_then(|size| size.bytes()).unwrap_or(0);
    let size = if record.header.size_bytes > 0 { record.header.size_bytes } else { planned };
    Profile { ramp: job.plan.time.ramp, size: size.max(1), ..unknown_profile() }
}

/// The test that these jobs ran, with its measured time; `None` of jobs that differ.
fn suite_test(id: &str, test: &TestRecord, jobs: &[JobRecord]) -> Option<(SuiteTest, Nanos)> {
    let first = jobs.first()?;
    if jobs.iter().any(|job| job.job != first.job) {
        return None;
    }
    let is_own = |(name, _): &&(String, String)| !first.options.iter().any(|(own, _)| own == name);
    let all = first.global_options.iter().filter(is_own).chain(&first.options);
    let is_kept = |(name, _): &&(String, String)| !RESERVED.contains(&name.as_str());
    let mut options: Vec<(String, String)> = all.clone().filter(is_kept).cloned().collect();
    options.retain(|(name, _)| name != "ioengine");
    let section = section_of(id, &options, &engine_rows()).ok()?;
    let elapsed = jobs.iter().map(|job| job.measured.elapsed_ns()).max().unwrap_or(0);
    let runtime = first.plan.time.runtime.unwrap_or(Nanos(elapsed));
    let title = if test.title.is_empty() { id } else { &test.title };
    let suite_test = SuiteTest {
        ends: if first.plan.time.time_based { Ending::Time } else { Ending::Size },
        split: all.clone().any(|(name, _)| name == "offset_increment"),
        ..SuiteTest::new(id, title, options, &section)
    };
    Some((suite_test, runtime))
}

/// Before the id of published figures, in the name of a source.
pub const PUBLISHED: &str = "published:";

/// The source of this name with these runs.
///
/// # Errors
/// The user's own volume types cannot be read.
pub fn source_of(
    name: String,
    runs: Vec<SourceRun>,
    types: &VolumeTypes,
) -> Result<ComparedSource, AssessError> {
    let is_simulated = |run: &SourceRun| is_simulated_name(&run.record.header.target);
    let is_imported = |run: &SourceRun| run.record.header.activity.kind() == ActivityKind::Import;
    let kind = match runs.iter().all(is_simulated) {
        true => SourceKind::Simulated,
        false if name.starts_with(PUBLISHED) => SourceKind::Published,
        false if runs.iter().any(is_imported) => SourceKind::Imported,
        false => SourceKind::Measured,
    };
    let volume = match runs.first() {
        Some(run) => volume_facts(&run.record, types)?,
        None => VolumeFacts::default(),
    };
    Ok(ComparedSource { name, kind, runs, volume })
}

/// Enters that the volume of a run is of this type (`aws-gp2?size=50GiB`), and what is published of the rates of its tests.
///
/// # Errors
/// There is no such type, or the user's own volume types cannot be read.
pub fn set_volume_type(
    record: &mut RunRecord,
    volume_type: &str,
    types: &VolumeTypes,
) -> Result<(), AssessError> {
    let named = volume_type.strip_prefix("sim:").unwrap_or(volume_type);
    SimulatedVolume::named(format!("sim:{named}").as_ref(), types)?;
    record.header.labels.insert(TYPE_LABEL.to_owned(), named.to_owned());
    let settings = RunSettings { types: types.clone(), ..RunSettings::default() };
    let RunRecord { header, tests, .. } = record;
    tests.iter_mut().for_each(|test| look_up(header, &settings, test));
    Ok(())
}

/// The label that has the price of the volume of a run: `12USD/month`.
pub const PRICE_LABEL: &str = "price";

/// Reads `12USD/month`.
pub fn parse_price(text: &str) -> Option<(f64, String)> {
    let amount = text.strip_suffix("/month")?.trim();
    let end = amount.find(|sign: char| !(sign.is_ascii_digit() || sign == '.'))?;
    let (number, currency) = (amount[..end].parse::<f64>().ok()?, amount[end..].trim());
    let is_currency = !currency.is_empty() && currency.chars().all(|sign| sign.is_ascii_alphabetic());
    (number.is_finite() && is_currency).then(|| (number, currency.to_owned()))
}

/// What the catalogue knows of the volume of a run, and its own price where it has one.
///
/// # Errors
/// The user's own volume types cannot be read.
fn volume_facts(record: &RunRecord, types: &VolumeTypes) -> Result<VolumeFacts, AssessError> {
    let stated = record.header.labels.get(PRICE_LABEL).and_then(|text| parse_price(text));
    let facts = catalogue_facts(record, types)?;
    let Some((per_month, currency)) = stated else { return Ok(facts) };
    let source = format!("label {PRICE_LABEL}");
    let price = Some(VolumePrice { per_month, currency, source, ..VolumePrice::default() });
    Ok(VolumeFacts { price, ..facts })
}

/// What the catalogue knows of the volume of a run.
///
/// # Errors
/// The user's own volume types cannot be read.
fn catalogue_facts(record: &RunRecord, types: &VolumeTypes) -> Result<VolumeFacts, AssessError> {
    let catalog = types.catalogue()?;
    let header = &record.header;
    let Some(known) = KnownVolume::of(catalog, header) else {
        let Some((entry, size_bytes)) = KnownVolume::labelled_type(catalog, header) else {
            return Ok(VolumeFacts { persistent: persistence(header), ..VolumeFacts::default() });
        };
        return Ok(VolumeFacts {
            volume_type: header.labels.get(TYPE_LABEL).cloned(),
            size_bytes,
            persistent: Some(entry.is_persistent()),
            location: Some(location(entry)),
            ..VolumeFacts::default()
        });
    };
    let offered = known.offered.as_ref();
    let size = known.model.size_bytes;
    Ok(VolumeFacts {
        volume_type: Some(known.name.trim_start_matches("sim:").to_owned()),
        size_bytes: Some(size),
        persistent: offered.map(|(entry, _)| entry.is_persistent()).or_else(|| persistence(header)),
        location: offered.map(|(entry, _)| location(entry)),
        limits: limits(record, &known.model),
        price: offered.and_then(|(entry, parameters)| price(entry, parameters)),
    })
}

/// Where the storage of a type is.
fn location(entry: &CatalogEntry) -> &'static str {
    if entry.media().starts_with("local") || !entry.is_persistent() { "local" } else { "network" }
}

/// Whether the target outlives its instance, where its devices tell.
fn persistence(header: &RunHeader) -> Option<bool> {
    let devices = &header.conditions.target.devices;
    match devices.iter().find_map(|device| device.locality.as_deref())? {
        "network" => Some(true),
        "ephemeral" => Some(false),
        _ => None,
    }
}

/// What limits the sustained rate of each test by the published rules.
fn limits(record: &RunRecord, model: &VolumeModel) -> BTreeMap<String, &'static str> {
    let limit = |test: &TestRecord| {
        let by = match reach(model, &offered_load(test)?).limited_by? {
            LimitUnit::Ios => "IOPS",
            LimitUnit::Bytes => "bandwidth",
        };
        Some((test.id.clone(), by))
    };
    record.tests.iter().filter_map(limit).collect()
}

/// The price of the volume itself; I/Os that are billed depend on use.
fn price(entry: &CatalogEntry, parameters: &Parameters) -> Option<VolumePrice> {
    let cost = entry.cost_of_month(parameters, MonthlyUse::default()).ok()??;
    let billed = cost.price.per_million_ios.map(|price| format!("I/Os ({price} per million)"));
    let unknown = cost.price.are_ios_unknown.then(|| "I/Os (price unknown)".to_owned());
    let without_price = cost.unknown.iter().map(|part| format!("{part} (price unknown)"));
    Some(VolumePrice {
        per_month: cost.total,
        currency: cost.price.currency.clone(),
        source: cost.price.source.clone(),
        as_of: cost.price.as_of.clone(),
        is_stale: cost.price.is_stale,
        excluded: without_price.chain(billed).chain(unknown).collect(),
    })
}

/// True where a source names a simulated volume.
pub fn is_simulated_name(name: &str) -> bool {
    is_simulated(name.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Effort;
    use fathom_record::TestSummary;

    fn quick(volume: &str, runs: u32, suite: &Suite, only: &[&str]) -> Vec<RunRecord> {
        let only = only.iter().map(|id| (*id).to_owned()).collect();
        let settings = BenchSettings { effort: Effort::Quick, only, ..BenchSettings::default() };
        measure(volume, runs, suite, &settings).unwrap()
    }

    fn standard() -> Suite {
        Suite::load("standard", &engine_rows()).unwrap()
    }

    #[test]
    fn a_model_runs_the_tests_of_a_record() {
        let measured = quick("sim:custom?iops=1000&latency=1ms", 1, &standard(), &[]);
        let suite = suite_of(&measured).unwrap();
        let again = quick("sim:custom?iops=2000&latency=1ms", 1, &suite, &[]);
        let ids =
            |record: &RunRecord| -> Vec<String> { record.tests.iter().map(|test| test.id.clone()).collect() };
        assert_eq!(ids(&measured[0]), ids(&again[0]));
        for (one, other) in measured[0].tests.iter().zip(&again[0].tests) {
            assert_eq!(one.jobs[0].plan.io, other.jobs[0].plan.io, "{}", one.id);
            assert_eq!(one.jobs.len(), other.jobs.len(), "{}", one.id);
            let times = [one, other].map(|test| TestSummary::new(test).measured_ns / 100_000_000);
            assert!(times[0].abs_diff(times[1]) <= 2, "{}: {times:?}", one.id);
        }
    }

    #[test]
    fn repeated_runs_differ_in_what_is_random() {
        let found = quick("sim:custom?latency=1ms&latency_spread=1", 2, &standard(), &["lat-read"]);
        let iops = |record: &RunRecord| TestSummary::new(&record.tests[0]).total.unwrap().iops;
        assert!(found.len() == 2 && iops(&found[0]) != iops(&found[1]));
    }

    #[test]
    fn a_known_type_has_limits_and_a_price_with_its_source() {
        let record = &quick("sim:aws-gp2?size=100GiB", 1, &standard(), &["rand-read"])[0];
        let facts = volume_facts(record, &VolumeTypes::default()).unwrap();
        assert_eq!(
            (facts.volume_type.as_deref(), facts.persistent),
            (Some("aws-gp2?size=100GiB"), Some(true))
        );
        assert_eq!(facts.limits["rand-read"], "IOPS");
        let price = facts.price.unwrap();
        assert!(
            (price.per_month - 10.0).abs() < 1e-9 && !price.source.is_empty() && price.excluded.is_empty()
        );
    }
}
