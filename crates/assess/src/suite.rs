//! A suite is data: which tests, with which fio options, for how long, and what is expected of them.
//!
//! Reading one checks every option against the fio grammar, so that a suite which loads can be run. What `bench` itself
//! decides (target, size, time, seeds) a suite may not say.

use std::path::Path;

use fathom_analysis::criterion::{Comparison, Metric, parse_value};
use fathom_model::Nanos;
use fathom_model::plan::SizeSpec;
use fathom_model::units::{parse_bytes, parse_duration};
use fathom_options::{EngineRow, Section};
use fathom_record::{ExpectationRecord, Recommendation};
use fathom_sys::files::SUITE;
use serde::{Deserialize, Serialize};

use crate::AssessError;
use crate::error::SUITE_FORMAT;

/// The suites that come with the program: name and text.
pub const SUITES: &[(&str, &str)] = &[
    ("standard", include_str!("../../../suites/standard.toml")),
    ("database-disk", include_str!("../../../suites/database-disk.toml")),
    ("digitalocean-volumes", include_str!("../../../suites/digitalocean-volumes.toml")),
    ("cloud-disk", include_str!("../../../suites/cloud-disk.toml")),
    ("twin-check", include_str!("../../../suites/twin-check.toml")),
];

/// Options that `bench` sets itself; a suite must not set them.
pub(crate) const RESERVED: &[&str] = &[
    "name", "description", "filename", "directory", "filename_format", "nrfiles", "size", "filesize",
    "offset", "offset_increment", "runtime", "time_based", "ramp_time", "startdelay", "loops", "randseed",
    "randrepeat", "stonewall", "new_group", "unlink", "overwrite", "create_only", "allow_file_create",
    "allow_mounted_write",
];

/// Tests that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// Its name, or the path it was read from.
    pub name: String,
    /// The same for people.
    pub title: String,
    /// One sentence.
    pub description: String,
    /// Who thought of it.
    pub source: String,
    /// By how much, in percent, a value may miss `>=` and `<=` expectations.
    pub tolerance_percent: f64,
    /// Under a minute.
    pub quick: Profile,
    /// Unless something else is asked for.
    pub default: Profile,
    /// Long enough for steady state.
    pub thorough: Profile,
    /// What its source recommends for a result to count.
    pub recommended: Option<Recommendation>,
    /// In the order they run.
    pub tests: Vec<SuiteTest>,
}

/// How long and over how much a suite runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Measured time of each test that ends by time.
    pub runtime: Nanos,
    /// Unmeasured time before it.
    pub ramp: Nanos,
    /// Size of the working file, bytes.
    pub size: u64,
    /// Longest time of a test that ends with its size; `None` = as long as it takes.
    pub limit: Option<Nanos>,
}

/// What ends a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// The runtime of the profile.
    #[default]
    Time,
    /// The end of the file, or of `io_size`.
    Size,
}

/// One test of a suite.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuiteTest {
    /// Its name, unique in the suite.
    pub id: String,
    /// The same for people.
    pub title: String,
    /// fio options as written, those for all tests first; a test's own replace them.
    pub options: Vec<(String, String)>,
    /// What ends it.
    pub ends: Ending,
    /// Every job has a part of the file to itself.
    pub split: bool,
    /// Share of the profile's runtime, 1 = all of it.
    pub time_share: f64,
    /// It writes or trims.
    pub writes: bool,
    /// Workers it runs.
    pub jobs: u32,
    /// Bytes it moves over all jobs, where that is set.
    pub io_bytes: Option<u64>,
    /// What it is expected to reach.
    pub expected: Vec<ExpectationRecord>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSuite {
    title: String,
    description: String,
    source: String,
    #[serde(default)]
    tolerance_percent: f64,
    #[serde(default)]
    options: toml::Table,
    profile: RawProfiles,
    recommended: Option<RawRecommendation>,
    test: Vec<RawTest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRecommendation {
    runtime: String,
    size: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProfiles {
    quick: RawProfile,
    default: RawProfile,
    thorough: RawProfile,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProfile {
    runtime: String,
    ramp: String,
    size: String,
    limit: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTest {
    id: String,
    title: String,
    options: toml::Table,
    #[serde(default)]
    ends: Ending,
    #[serde(default)]
    split: bool,
    time_share: Option<f64>,
    #[serde(default)]
    expect: Vec<RawExpectation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExpectation {
    class: String,
    metric: String,
    is: String,
    value: String,
}

impl RawExpectation {
    /// The expectation without its source and its test; the error says what is wrong with which field.
    fn read(&self) -> Result<ExpectationRecord, String> {
        let RawExpectation { class, metric, is, value } = self;
        Comparison::of(is).ok_or_else(|| format!("'{is}' is not a comparison: use >=, <=, > or <"))?;
        let recorded =
            Metric::parse(metric).filter(|metric| metric.direction.is_some() && metric.is_recorded());
        let metric = recorded.ok_or_else(|| {
            format!("'{metric}' is not a metric: write one such as read.iops or write.lat_ns.p99")
        })?;
        let value = parse_value(metric.kind, value)?;
        let (class, metric, is) = (class.clone(), metric.to_string(), is.clone());
        Ok(ExpectationRecord { class, metric, is, value, ..ExpectationRecord::default() })
    }
}

/// Where in a suite something is wrong.
struct SuitePosition<'a> {
    suite: &'a str,
    test: Option<&'a str>,
}

impl SuitePosition<'_> {
    fn error(&self, field: &str, reason: impl Into<String>) -> AssessError {
        let test = self.test.map(|test| format!("test '{test}': ")).unwrap_or_default();
        AssessError::usage(format!("suite {}: {test}{field}: {}", self.suite, reason.into()), SUITE_FORMAT)
    }
}

impl Suite {
    /// The suite of this name, or the one in the file at this path.
    ///
    /// # Errors
    /// There is no such suite or file, or what it says is not a suite.
    pub fn load(name: &str, engines: &[EngineRow]) -> Result<Suite, AssessError> {
        if let Some((_, text)) = SUITES.iter().find(|(known, _)| *known == name) {
            return Suite::parse(name, text, engines);
        }
        let path = Path::new(name);
        let looks_like_a_path = name.contains('/') || path.extension().is_some_and(|end| end == "toml");
        if !looks_like_a_path && !path.exists() {
            let known = SUITES.iter().map(|(known, _)| *known);
            return Err(AssessError::unknown("suite", name, known, ", or the path of a TOML file"));
        }
        Suite::parse(name, &SUITE.read_text(path)?, engines)
    }

    /// Reads the text of a suite; `name` is what errors call it.
    ///
    /// # Errors
    /// The text is not TOML of the right form, or an option is not one of fio's or has a bad value.
    pub fn parse(name: &str, text: &str, engines: &[EngineRow]) -> Result<Suite, AssessError> {
        let raw: RawSuite = toml::from_str(text).map_err(|error| AssessError::malformed(name, &error))?;
        let spot = SuitePosition { suite: name, test: None };
        if raw.test.is_empty() {
            return Err(spot.error("test", "a suite needs at least one test"));
        }
        if !(0.0..100.0).contains(&raw.tolerance_percent) {
            return Err(spot.error("tolerance_percent", "must be a percentage from 0 to below 100"));
        }
        let shared = written(&spot, &raw.options)?;
        let mut tests: Vec<SuiteTest> = Vec::with_capacity(raw.test.len());
        for test in &raw.test {
            let test = read_test(name, &shared, test, engines)?;
            if tests.iter().any(|other| other.id == test.id) {
                return Err(spot.error("test", format!("two tests have the id '{}'", test.id)));
            }
            tests.push(test);
        }
        Ok(Suite {
            name: name.to_owned(),
            title: raw.title,
            description: raw.description,
            source: raw.source,
            tolerance_percent: raw.tolerance_percent,
            quick: read_profile(&spot, "profile.quick", &raw.profile.quick)?,
            default: read_profile(&spot, "profile.default", &raw.profile.default)?,
            thorough: read_profile(&spot, "profile.thorough", &raw.profile.thorough)?,
            recommended: raw.recommended.as_ref().map(|raw| read_recommendation(&spot, raw)).transpose()?,
            tests,
        })
    }
}

fn read_recommendation(
    spot: &SuitePosition<'_>,
    raw: &RawRecommendation,
) -> Result<Recommendation, AssessError> {
    let error = |reason: String| spot.error("recommended", reason);
    Ok(Recommendation {
        runtime_ns: parse_duration(&raw.runtime).map_err(|reason| error(reason.to_string()))?.0,
        size_bytes: parse_bytes(&raw.size).map_err(|reason| error(reason.to_string()))?,
    })
}

fn read_profile(spot: &SuitePosition<'_>, field: &str, raw: &RawProfile) -> Result<Profile, AssessError> {
    let time = |text: &str| parse_duration(text).map_err(|error| spot.error(field, error.to_string()));
    let profile = Profile {
        runtime: time(&raw.runtime)?,
        ramp: time(&raw.ramp)?,
        size: parse_bytes(&raw.size).map_err(|error| spot.error(field, error.to_string()))?,
        limit: raw.limit.as_deref().map(time).transpose()?,
    };
    if profile.runtime == Nanos::ZERO || profile.size == 0 || profile.limit == Some(Nanos::ZERO) {
        return Err(spot.error(field, "runtime, size and limit must be more than 0"));
    }
    Ok(profile)
}

/// Options as a user would type them, in the order they were written.
fn written(spot: &SuitePosition<'_>, table: &toml::Table) -> Result<Vec<(String, String)>, AssessError> {
    let mut options = Vec::with_capacity(table.len());
    for (name, value) in table {
        if RESERVED.contains(&name.as_str()) {
            return Err(spot.error(name, "is set by bench and cannot be set in a suite"));
        }
        let text = match value {
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Float(number) => number.to_string(),
            toml::Value::Boolean(yes) => u8::from(*yes).to_string(),
            _ => return Err(spot.error(name, "an option must be a string, a number, true or false")),
        };
        options.push((name.clone(), text));
    }
    Ok(options)
}

fn read_test(
    suite: &str,
    shared: &[(String, String)],
    raw: &RawTest,
    engines: &[EngineRow],
) -> Result<SuiteTest, AssessError> {
    let spot = SuitePosition { suite, test: Some(&raw.id) };
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if raw.id.is_empty() || !raw.id.chars().all(is_name) {
        return Err(spot.error("id", "an id consists of lower-case letters, digits and hyphens"));
    }
    let own = written(&spot, &raw.options)?;
    let mut options: Vec<(String, String)> =
        shared.iter().filter(|(name, _)| !own.iter().any(|(other, _)| other == name)).cloned().collect();
    options.extend(own);
    let section = section_of(&raw.id, &options, engines)
        .map_err(|error| AssessError::options_in(&format!("suite {suite}: test '{}'", raw.id), &error))?;
    let time_share = raw.time_share.unwrap_or(1.0);
    if !(time_share > 0.0 && time_share <= 100.0) {
        return Err(spot.error("time_share", "must be a factor above 0 and up to 100"));
    }
    let expected = raw.expect.iter().map(|raw| raw.read().map_err(|reason| spot.error("expect", reason)));
    Ok(SuiteTest {
        ends: raw.ends,
        split: raw.split,
        time_share,
        expected: expected.collect::<Result<_, _>>()?,
        ..SuiteTest::new(&raw.id, &raw.title, options, &section)
    })
}

impl SuiteTest {
    /// The test of a job, `section`, that has these options and ends with its time.
    pub(crate) fn new(id: &str, title: &str, options: Vec<(String, String)>, section: &Section) -> SuiteTest {
        let given = &section.options;
        let jobs = given.numjobs.unwrap_or(1).max(1);
        SuiteTest {
            id: id.to_owned(),
            title: title.to_owned(),
            options,
            ends: Ending::Time,
            split: false,
            time_share: 1.0,
            writes: given.rw.is_some_and(|rw| rw.mix != fathom_model::plan::Mix::Read),
            jobs,
            io_bytes: match given.plan.io.io_size {
                Some(SizeSpec::Bytes(bytes)) => Some(bytes.saturating_mul(u64::from(jobs))),
                _ => None,
            },
            expected: Vec::new(),
        }
    }
}

/// The job that `options` describe.
pub(crate) fn section_of(
    name: &str,
    options: &[(String, String)],
    engines: &[EngineRow],
) -> Result<Section, fathom_options::OptionError> {
    let pairs: Vec<(&str, &str)> =
        options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Section::from_pairs(name, &pairs, engines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::engine_rows;

    const HEAD: &str = "title = 't'\ndescription = 'd'\nsource = 's'\n\
        [profile]\nquick = { runtime = '1s', ramp = '0', size = '1m' }\n\
        default = { runtime = '1s', ramp = '0', size = '1m' }\n\
        thorough = { runtime = '1s', ramp = '0', size = '1m' }\n";

    #[test]
    fn shipped_suites_load() {
        let engines = engine_rows();
        for (name, text) in SUITES {
            let suite = Suite::load(name, &engines).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!suite.tests.is_empty() && !suite.source.is_empty(), "{name}");
            assert!(text.starts_with("# "), "{name} begins by saying what it is for");
            for test in &suite.tests {
                assert!(test.options.iter().any(|(option, _)| option == "rw"), "{name} {}", test.id);
            }
        }
    }

    #[test]
    fn the_standard_suite_has_the_documented_tests() {
        let suite = Suite::load("standard", &engine_rows()).unwrap();
        let ids: Vec<&str> = suite.tests.iter().map(|test| test.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "lat-read", "lat-write", "commit", "rand-read", "rand-write", "rand-mixed", "rand-read-jobs",
                "seq-read", "bw-write", "seq-write-jobs"
            ]
        );
        let writing: Vec<bool> = suite.tests.iter().map(|test| test.writes).collect();
        assert_eq!(writing, [false, true, true, false, true, true, false, false, true, true]);
    }

    #[test]
    fn errors_name_suite_test_and_field() {
        let engines = engine_rows();
        let check = |tests: &str, expected: &str| {
            let error =
                Suite::parse("mine.toml", &format!("{HEAD}{tests}"), &engines).unwrap_err().to_string();
            assert!(error.contains("mine.toml") && error.contains(expected), "{error}");
        };
        let empty = HEAD.replace("[profile]", "test = []\n[profile]");
        let error = Suite::parse("mine.toml", &empty, &engines).unwrap_err().to_string();
        assert!(error.contains("at least one test"), "{error}");
        check("[[test]]\nid='a'\ntitle='A'\noptions={rw='read', size='1g'}", "test 'a': size");
        check("[[test]]\nid='a'\ntitle='A'\noptions={rw='read', iodpeth=4}", "iodpeth");
        check("[[test]]\nid='a'\ntitle='A'\noptions={rw='raed'}", "raed");
        check("[[test]]\nid='a b'\ntitle='A'\noptions={rw='read'}", "test 'a b': id");
        check("[[test]]\nid='a'\ntitle='A'\noptions={rw=[1]}", "test 'a': rw");
        check("[[test]]\nid='a'\ntitle='A'\noptions={rw='read'}\ntime_share=0", "test 'a': time_share");
        let twice = "[[test]]\nid='a'\ntitle='A'\noptions={rw='read'}\n";
        check(&format!("{twice}{twice}"), "two tests");
        let expect = |text: &str| format!("{twice}expect=[{{class='c', {text}}}]");
        check(&expect("metric='read.iops', is='~', value='1'"), "test 'a': expect");
        check(&expect("metric='read.speed', is='>', value='1'"), "test 'a': expect");
        check(&expect("metric='read.lat_ns.p99', is='<', value='5 parsecs'"), "test 'a': expect");
    }

    #[test]
    fn what_is_no_suite_is_said_so() {
        let check = |name: &str, expected: &str| {
            let error = Suite::load(name, &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        };
        check("standrad", "unknown suite 'standrad'");
        check("/no/such/file.toml", "/no/such/file.toml");
        check("/dev/zero", "it is a character device, not a regular file");
        check("/etc", "it is a directory, not a regular file");
    }

    #[test]
    fn values_are_read_in_the_unit_of_their_metric() {
        for (metric, value, expected) in [
            ("read.iops", "5000", Some(5000.0)),
            ("read.iops", "5k", None),
            ("write.bytes_per_second", "200MB", Some(200e6)),
            ("write.bytes_per_second", "200MiB", Some(209_715_200.0)),
            ("read.lat_ns.p99", "5ms", Some(5e6)),
            ("total.clat_ns.mean", "250us", Some(250e3)),
            ("read.iops", "0", None),
            ("read.iops", "nan", None),
            ("read.lat_ns", "5ms", None),
            ("iops", "1", None),
            ("read.iops.mean", "1", None),
        ] {
            let [class, metric, is, value] = ["c", metric, ">=", value].map(str::to_owned);
            let read = RawExpectation { class, metric: metric.clone(), is, value: value.clone() }.read();
            assert_eq!(
                read.as_ref().ok().map(|expectation| expectation.value),
                expected,
                "{metric} {value}: {read:?}"
            );
        }
    }
}
