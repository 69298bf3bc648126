//! The loads of the uses that volumes are bought for, each an fio job file. Loads and needs are defined in
//! `fathom_analysis::conclusions`; a file issues the load of the use of its name, which a test checks.
//!
//! The lines that begin with `#:` are a TOML table, the rest is the job as fio runs it. What `bench` decides itself
//! (target, size, time) is put aside, as it may not stand in a suite.

use std::path::Path;

use fathom_analysis::conclusions::Use;
use fathom_model::Nanos;
use fathom_options::{EngineRow, MachineNumbers, OptionError, ParseEnvironment, Section, parse_command_line};
use serde::{Deserialize, Serialize};

use crate::AssessError;
use crate::error::SUITE_FORMAT;
use crate::suite::{Profile, RESERVED, Suite, SuiteTest};

/// The profiles that come with the program: name and text.
pub const PROFILES: &[(&str, &str)] = &[
    ("oltp", include_str!("../../../profiles/oltp.fio")),
    ("postgresql", include_str!("../../../profiles/postgresql.fio")),
    ("mysql", include_str!("../../../profiles/mysql.fio")),
    ("database-log", include_str!("../../../profiles/database-log.fio")),
    ("etcd", include_str!("../../../profiles/etcd.fio")),
    ("kafka", include_str!("../../../profiles/kafka.fio")),
    ("elasticsearch", include_str!("../../../profiles/elasticsearch.fio")),
    ("web-server", include_str!("../../../profiles/web-server.fio")),
    ("file-server", include_str!("../../../profiles/file-server.fio")),
    ("workstation", include_str!("../../../profiles/workstation.fio")),
    ("virtual-machines", include_str!("../../../profiles/virtual-machines.fio")),
    ("streaming-read", include_str!("../../../profiles/streaming-read.fio")),
    ("streaming-write", include_str!("../../../profiles/streaming-write.fio")),
    ("video", include_str!("../../../profiles/video.fio")),
    ("backup", include_str!("../../../profiles/backup.fio")),
];

/// Stands for all of them.
const ALL: &str = "all";

/// A use, and the test that issues its load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UseProfile {
    /// The load in a sentence or two.
    pub description: String,
    /// The use and its needs.
    #[serde(flatten)]
    pub purpose: &'static Use,
    /// The test.
    pub test: SuiteTest,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHeader {
    #[serde(default)]
    split: bool,
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
    let test = format!("suite profiles: test '{name}'");
    let unknown = || AssessError::usage(format!("{test}: name: is the name of no use"), SUITE_FORMAT);
    let purpose = Use::named(name).ok_or_else(unknown)?;
    let header: String =
        text.lines().filter_map(|line| line.strip_prefix("#:")).collect::<Vec<_>>().join("\n");
    let malformed = |error| AssessError::malformed(&format!("profile {name}"), &error);
    let header: RawHeader = toml::from_str(&header).map_err(malformed)?;
    let section = section(name, text, engines).map_err(|error| AssessError::options_in(&test, &error))?;
    let mut options = section.inherited.clone();
    options.retain(|(inherited, _)| !section.raw_options.iter().any(|(given, _)| given == inherited));
    options.extend(section.raw_options.iter().cloned());
    options.retain(|(given, _)| !RESERVED.contains(&given.as_str()));
    let given = |line: &&str| line.starts_with("# ");
    let description: Vec<&str> = text.lines().filter(given).map(|line| line[2..].trim()).collect();
    Ok(UseProfile {
        description: description.join(" "),
        purpose,
        test: SuiteTest { split: header.split, ..SuiteTest::new(name, purpose.title, options, &section) },
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
    invocation.sections.into_iter().next().ok_or_else(OptionError::no_jobs)
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
    use fathom_analysis::conclusions::USES;
    use fathom_model::BlockSize;
    use fathom_model::plan::Mix;

    use super::*;
    use crate::machine::engine_rows;

    fn all() -> Vec<UseProfile> {
        profiles(&[ALL.to_owned()], &engine_rows()).unwrap()
    }

    #[test]
    fn a_profile_issues_the_load_of_its_use() {
        let all = all();
        assert_eq!(
            all.iter().map(|profile| profile.purpose.name).collect::<Vec<_>>(),
            USES.iter().map(|one| one.name).collect::<Vec<_>>()
        );
        for UseProfile { description, purpose, test } in all {
            let name = purpose.name;
            assert!(description.ends_with('.'), "{name}");
            assert!(test.options.iter().any(|(name, value)| name == "direct" && value == "1"), "{name}");
            assert!(test.options.iter().all(|(name, _)| name != "size" && name != "runtime"), "{name}");
            let options: Vec<(&str, &str)> =
                test.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let section = Section::from_pairs(name, &options, &engine_rows()).unwrap();
            let plan = fathom_options::resolve(&[section], &crate::machine::host_facts()).unwrap();
            let io = &plan.jobs[0].io;
            let reads = match io.pattern.mix {
                Mix::Read => 100,
                Mix::ReadWrite { read_percent } => read_percent,
                _ => 0,
            };
            assert_eq!((reads, io.pattern.random), (purpose.read_percent, !purpose.sequential), "{name}");
            assert_eq!(io.fdatasync_every, u32::from(purpose.synced), "{name}");
            let blocks = BlockSize::of_shares(purpose.blocks);
            assert_eq!(
                (Some(&io.block_size.read), Some(&io.block_size.write)),
                (blocks.as_ref(), blocks.as_ref())
            );
            let depth = u64::from(plan.jobs[0].depth.iodepth * test.jobs);
            if purpose.serial {
                assert_eq!(depth, 1, "{name}");
            }
            if let Some(bytes) = purpose.in_flight_bytes {
                assert_eq!(depth as f64 * purpose.mean_block(), bytes as f64, "{name}");
            }
        }
    }

    #[test]
    fn which_write_is_known() {
        let reading: Vec<&str> =
            all().iter().filter(|profile| !profile.test.writes).map(|profile| profile.purpose.name).collect();
        assert_eq!(reading, ["web-server", "streaming-read", "video"]);
    }

    #[test]
    fn names_choose() {
        let chosen = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            profiles(&names, &engine_rows())
                .map(|list| list.iter().map(|profile| profile.purpose.name).collect::<Vec<_>>())
                .map_err(|error| error.to_string())
        };
        assert_eq!(chosen(&["video", "oltp", "video"]), Ok(vec!["video", "oltp"]));
        assert_eq!(chosen(&["oltp", "all"]).map(|all| all.len()), Ok(PROFILES.len()));
        assert_eq!(chosen(&["oltpp"]), Err("unknown profile 'oltpp'".to_owned()));
    }

    #[test]
    fn errors_name_the_profile() {
        let check = |name: &'static str, text: &'static str, expected: &str| {
            let error = read(name, text, &engine_rows()).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(expected), "{error}");
        };
        check("mine", "[mine]\nrw=read", "the name of no use");
        check("oltp", "#: title = 't'\n[oltp]\nrw=read", "title");
        check("oltp", "[oltp]\nrw=raed", "raed");
    }
}
