//! Access patterns that volumes are bought for: each an fio job file that says, in comments, what the use needs of it.
//!
//! The lines that begin with `#:` are a TOML table, the rest is the job as fio runs it. What `bench` decides itself
//! (target, size, time) is put aside, as it may not stand in a suite.

use std::path::Path;

use fathom_model::Nanos;
use fathom_options::{EngineRow, MachineNumbers, OptionError, ParseEnvironment, Section, parse_command_line};
use serde::{Deserialize, Serialize};

use crate::AssessError;
use crate::expect::{self, Expectation};
use crate::suite::{Ending, Profile, RESERVED, Suite, SuiteTest};

/// The profiles that come with the program: name and text.
pub const PROFILES: &[(&str, &str)] = &[
    ("streaming-read", include_str!("../../../profiles/streaming-read.fio")),
    ("streaming-write", include_str!("../../../profiles/streaming-write.fio")),
    ("oltp", include_str!("../../../profiles/oltp.fio")),
    ("file-server", include_str!("../../../profiles/file-server.fio")),
    ("web-server", include_str!("../../../profiles/web-server.fio")),
    ("workstation", include_str!("../../../profiles/workstation.fio")),
    ("database-log", include_str!("../../../profiles/database-log.fio")),
    ("virtual-machines", include_str!("../../../profiles/virtual-machines.fio")),
    ("video", include_str!("../../../profiles/video.fio")),
];

/// Stands for all of them.
const ALL: &str = "all";

/// One access pattern and what it asks of a volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UseProfile {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a sentence or two.
    pub description: String,
    /// Where its figures come from.
    pub source: String,
    /// The test; it expects, for each need, what serves the use (class `yes`) and what serves it at a pinch (`marginal`).
    #[serde(flatten)]
    pub test: SuiteTest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHeader {
    title: String,
    source: String,
    #[serde(default)]
    split: bool,
    needs: Vec<RawNeed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNeed {
    metric: String,
    is: String,
    yes: String,
    marginal: String,
}

impl RawNeed {
    fn expectations(&self) -> Result<[Expectation; 2], String> {
        let read = |class: &str, value: &str| expect::read(class, &self.metric, &self.is, value);
        Ok([read(expect::YES, &self.yes)?, read(expect::MARGINAL, &self.marginal)?])
    }
}

/// The profiles of these names, in their order; `all` are all.
///
/// # Errors
/// There is none of one of these names.
pub fn profiles(names: &[String], engines: &[EngineRow]) -> Result<Vec<UseProfile>, AssessError> {
    let mut chosen: Vec<(&'static str, &'static str)> = Vec::new();
    for name in names {
        let found: Vec<_> = PROFILES.iter().filter(|(known, _)| name == ALL || known == name).collect();
        if found.is_empty() {
            return Err(unknown(name));
        }
        for profile in found {
            if !chosen.contains(profile) {
                chosen.push(*profile);
            }
        }
    }
    chosen.into_iter().map(|(name, text)| read(name, text, engines)).collect()
}

/// No profile is called `name`.
pub(crate) fn unknown(name: &str) -> AssessError {
    let known = PROFILES.iter().map(|(known, _)| *known);
    AssessError::unknown("profile", name, known, ", or all; --profile list describes them")
}

fn read(name: &'static str, text: &str, engines: &[EngineRow]) -> Result<UseProfile, AssessError> {
    let error = |field: &str, reason: String| AssessError::Suite {
        suite: "profiles".to_owned(),
        test: Some(name.to_owned()),
        field: field.to_owned(),
        reason,
    };
    let header: String =
        text.lines().filter_map(|line| line.strip_prefix("#:")).collect::<Vec<_>>().join("\n");
    let malformed =
        |source| AssessError::MalformedSuite { suite: format!("profile {name}"), source: Box::new(source) };
    let header: RawHeader = toml::from_str(&header).map_err(malformed)?;
    let option_error = |source| AssessError::SuiteOption {
        suite: "profiles".to_owned(),
        test: name.to_owned(),
        source: Box::new(source),
    };
    let section = section(name, text, engines).map_err(option_error)?;
    let mut options = section.inherited.clone();
    options.retain(|(inherited, _)| !section.raw_options.iter().any(|(said, _)| said == inherited));
    options.extend(section.raw_options.iter().cloned());
    options.retain(|(said, _)| !RESERVED.contains(&said.as_str()));
    let mut expected = Vec::new();
    for need in &header.needs {
        expected.extend(need.expectations().map_err(|reason| error("needs", reason))?);
    }
    let said = |line: &&str| line.starts_with("# ");
    let description: Vec<&str> = text.lines().filter(said).map(|line| line[2..].trim()).collect();
    let (jobs, writes, io_bytes) = SuiteTest::extent(&section);
    Ok(UseProfile {
        name,
        description: description.join(" "),
        source: header.source,
        test: SuiteTest {
            id: name.to_owned(),
            title: header.title.clone(),
            purpose: Some(header.title),
            options,
            ends: Ending::Time,
            split: header.split,
            time_share: 1.0,
            writes,
            jobs,
            io_bytes,
            expected,
        },
    })
}

/// The one job of the file.
fn section(name: &str, text: &str, engines: &[EngineRow]) -> Result<Section, OptionError> {
    let invocation = parse_command_line(
        &[format!("{name}.fio")],
        &ParseEnvironment {
            engines,
            read_file: &|_: &Path| Ok(text.as_bytes().to_vec()),
            variable: &|_| None,
            machine: MachineNumbers::default(),
        },
    )?;
    invocation.sections.into_iter().next().ok_or(OptionError::NoJobs)
}

impl Suite {
    /// The profiles of these names as a suite.
    ///
    /// # Errors
    /// There is none of one of these names.
    pub(crate) fn of_profiles(names: &[String], engines: &[EngineRow]) -> Result<Suite, AssessError> {
        let tests: Vec<SuiteTest> =
            profiles(names, engines)?.into_iter().map(|profile| profile.test).collect();
        let effort = |runtime_ms: u64, ramp_ms: u64, gibibytes: u64| Profile {
            runtime: Nanos::from_millis(runtime_ms),
            ramp: Nanos::from_millis(ramp_ms),
            size: gibibytes << 30,
            limit: None,
        };
        Ok(Suite {
            recommended: None,
            name: "profiles".to_owned(),
            title: if tests.len() == 1 { "Access pattern".to_owned() } else { "Access patterns".to_owned() },
            description: "Access patterns of common uses, each with the needs of its use.".to_owned(),
            source: "see each profile".to_owned(),
            tolerance_percent: 0.0,
            quick: effort(4_500, 500, 4),
            default: effort(18_000, 2_000, 4),
            thorough: effort(120_000, 5_000, 20),
            tests,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::engine_rows;

    fn all() -> Vec<UseProfile> {
        profiles(&[ALL.to_owned()], &engine_rows()).unwrap()
    }

    #[test]
    fn shipped_profiles_are_whole() {
        assert_eq!(all().len(), PROFILES.len());
        for profile in all() {
            let test = &profile.test;
            assert!(profile.description.ends_with('.') && !profile.source.is_empty(), "{}", profile.name);
            assert!(test.options.iter().any(|(name, value)| name == "direct" && value == "1"), "{}", test.id);
            assert!(test.options.iter().all(|(name, _)| name != "size" && name != "runtime"), "{}", test.id);
            for need in test.expected.chunks(2) {
                assert_eq!([&need[0].class, &need[1].class], [expect::YES, expect::MARGINAL]);
                let stricter = match need[0].is {
                    expect::Comparison::AtLeast => need[0].value > need[1].value,
                    _ => need[0].value < need[1].value,
                };
                assert!(stricter && need[0].metric == need[1].metric, "{}: {need:?}", test.id);
            }
        }
    }

    #[test]
    fn which_write_is_known() {
        let writing: Vec<&str> =
            all().iter().filter(|profile| profile.test.writes).map(|profile| profile.name).collect();
        assert_eq!(
            writing,
            ["streaming-write", "oltp", "file-server", "workstation", "database-log", "virtual-machines"]
        );
    }

    #[test]
    fn names_choose() {
        let chosen = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            profiles(&names, &engine_rows())
                .map(|list| list.iter().map(|profile| profile.name).collect::<Vec<_>>())
                .map_err(|error| error.to_string())
        };
        assert_eq!(chosen(&["video", "oltp", "video"]), Ok(vec!["video", "oltp"]));
        assert_eq!(chosen(&["oltp", "all"]).map(|all| all.len()), Ok(PROFILES.len()));
        assert_eq!(chosen(&["oltpp"]), Err("unknown profile 'oltpp'".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let check = |text: &'static str, expected: &str| {
            let error = read("mine", text, &engine_rows()).unwrap_err().to_string();
            assert!(error.contains("mine") && error.contains(expected), "{error}");
        };
        let head = "#: title = 't'\n#: source = 's'\n";
        check("[mine]\nrw=read", "title");
        let need =
            |rest: &str| format!("{head}#: needs = [{{ metric = 'read.iops', {rest} }}]\n[mine]\nrw=read");
        check(need("is = '>=', yes = 'x', marginal = '1'").leak(), "needs: 'x' is not a number");
        check(need("is = '>=', yes = '1'").leak(), "marginal");
        check(format!("{head}#: needs = []\n[mine]\nrw=raed").leak(), "raed");
    }
}
