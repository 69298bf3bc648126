//! The whole account of one invocation, and how it is read back.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::LazyLock;

use fathom_model::text::listed;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::fleet::Capacity;
use crate::plausible::{self, Counters};
use crate::shape;
use crate::wire::is_default;
use crate::{
    Activity, Conditions, ExpectationRecord, Finding, FleetRecord, HostRecord, InterleavedRecord,
    LaunchRecord, RecordError, ScheduledSlot, TestRecord, TestStatus,
};

/// Targets of several hosts that are named.
const MAX_TARGETS: usize = 3;

/// The record version this build reads and writes.
pub const SCHEMA_VERSION: u32 = 2;
/// The `schema` of records written by this build.
pub const SCHEMA: &str = "fathom.record/2";

/// One invocation: under which conditions, what was done, what it tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// `fathom.record/N`.
    pub schema: String,
    /// How the run ended; one that was killed stays incomplete.
    pub status: TestStatus,
    /// What was asked, where and when.
    pub header: RunHeader,
    /// One entry per test, in the order they ran.
    pub tests: Vec<TestRecord>,
    /// What the numbers tell.
    pub findings: Vec<Finding>,
}

impl Default for RunRecord {
    fn default() -> Self {
        RunRecord {
            schema: SCHEMA.to_owned(),
            status: TestStatus::default(),
            header: RunHeader::default(),
            tests: Vec::new(),
            findings: Vec::new(),
        }
    }
}

/// What was asked, where and when. Simulated runs leave host and wall-clock fields empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunHeader {
    /// The command line, program name first.
    pub command: Vec<String>,
    /// The command that made the record, with its settings.
    pub activity: Activity,
    /// The target: an absolute path, or as the user named it; several are separated by commas.
    pub target: String,
    /// Version of the program that wrote the record.
    pub tool_version: String,
    /// Wall clock at the start, ms since the epoch; 0 in virtual time.
    pub started_unix_ms: u64,
    /// The machines that the load came from; none for simulated runs. Workers, disks and intervals name theirs by its index.
    pub hosts: Vec<HostRecord>,
    /// What a fair comparison needs to know.
    pub conditions: Conditions,
    /// Labels of the user (`provider`, `volume`, …).
    #[serde(skip_serializing_if = "is_default")]
    pub labels: BTreeMap<String, String>,
    /// The tags that it was given when it began; the history has those of later.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The job text the run was made from, in fio's job-file form.
    pub job_text: String,
    /// The seed all random choices derive from, where one was given or drawn for the whole run.
    #[serde(skip_serializing_if = "is_default")]
    pub seed: Option<u64>,
    /// Size of the working file or range, bytes; 0 where jobs choose their own.
    #[serde(skip_serializing_if = "is_default")]
    pub size_bytes: u64,
    /// Its place in a comparison of two targets that were measured in turns.
    #[serde(skip_serializing_if = "is_default")]
    pub interleaved: Option<InterleavedRecord>,
    /// Its slot in a schedule.
    #[serde(skip_serializing_if = "is_default")]
    pub scheduled: Option<ScheduledSlot>,
    /// Its place in a parallel job, where a launcher started it.
    #[serde(skip_serializing_if = "is_default")]
    pub launch: Option<LaunchRecord>,
    /// What it was merged from, where it is of several hosts.
    #[serde(skip_serializing_if = "is_default")]
    pub fleet: Option<FleetRecord>,
    /// What the tests are expected to reach.
    #[serde(skip_serializing_if = "is_default")]
    pub expectations: Vec<ExpectationRecord>,
    /// Things a reader should know about the whole run (a size that was reduced), in order.
    #[serde(skip_serializing_if = "is_default")]
    pub notes: Vec<String>,
    /// The signal or other reason that ended the run before its time.
    #[serde(skip_serializing_if = "is_default")]
    pub interrupted: Option<String>,
}

impl RunHeader {
    /// The first host; one without facts where the run was simulated.
    pub fn host(&self) -> &HostRecord {
        static NONE: LazyLock<HostRecord> = LazyLock::new(HostRecord::default);
        self.hosts.first().unwrap_or(&NONE)
    }

    /// What was measured, in a word or a few: the targets of all hosts, each once.
    pub fn target_text(&self) -> Cow<'_, str> {
        let targets: BTreeSet<&str> =
            self.fleet.iter().flat_map(|fleet| &fleet.members).map(|member| member.target.as_str()).collect();
        let targets: Vec<&str> = targets.into_iter().filter(|target| !target.is_empty()).collect();
        match targets.as_slice() {
            [] | [_] => Cow::Borrowed(&self.target),
            several => Cow::Owned(listed(several, MAX_TARGETS)),
        }
    }
}

impl RunHeader {
    /// Reads the header of a record of this version.
    ///
    /// # Errors
    /// The text is not a header.
    pub fn from_json(text: &str) -> Result<RunHeader, RecordError> {
        serde_json::from_str(text).map_err(RecordError::Malformed)
    }
}

/// Only what tells whether the rest can be read.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    schema: Option<String>,
    #[serde(default)]
    header: EnvelopeHeader,
}

/// Whether it is of several hosts.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EnvelopeHeader {
    fleet: Option<IgnoredAny>,
}

impl RunRecord {
    /// Adds a test; where another has its id, the id gets a number.
    pub fn push(&mut self, test: TestRecord) -> &TestRecord {
        self.extend([test]);
        &self.tests[self.tests.len() - 1]
    }

    /// Adds tests in their order, each as [`RunRecord::push`].
    pub fn extend(&mut self, tests: impl IntoIterator<Item = TestRecord>) {
        let mut taken: HashSet<String> = self.tests.iter().map(|test| test.id.clone()).collect();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        for mut test in tests {
            if taken.contains(&test.id) {
                let number = numbers.entry(test.id.clone()).or_insert(1);
                test.id = loop {
                    *number += 1;
                    let numbered = format!("{} ({number})", test.id);
                    if !taken.contains(&numbered) {
                        break numbered;
                    }
                };
            }
            taken.insert(test.id.clone());
            self.tests.push(test);
        }
    }

    /// True where nothing tells how the run ended: it was killed, or still goes on.
    pub fn lacks_end(&self) -> bool {
        let is_incomplete = |status: TestStatus| status == TestStatus::Incomplete;
        let tests_ended = self.tests.iter().all(|test| !is_incomplete(test.status));
        is_incomplete(self.status) && self.header.interrupted.is_none() && tests_ended
    }

    /// Reads a record of this version. Unknown fields are ignored, and missing ones take their default, but for those without
    /// which a part is damaged.
    ///
    /// # Errors
    /// The text is not JSON, is not a record, is of another version than this build reads, or has numbers that no run can
    /// reach.
    pub fn from_json(text: &str) -> Result<RunRecord, RecordError> {
        let envelope: Envelope = serde_json::from_str(text).map_err(RecordError::Malformed)?;
        check_schema(envelope.schema.as_deref())?;
        let counters = if envelope.header.fleet.is_some() { Counters::OfMany } else { Counters::OfOne };
        plausible::check(text, counters).map_err(RecordError::Implausible)?;
        let record: RunRecord = serde_json::from_str(text).map_err(RecordError::Malformed)?;
        shape::check(text)?;
        let adds_up = |test: &TestRecord| Capacity::default().takes(&test.jobs);
        if counters == Counters::OfMany && !record.tests.iter().all(adds_up) {
            let error = serde_json::Error::custom("its counters add up to more than 64 bits hold");
            return Err(RecordError::Implausible(error));
        }
        Ok(record)
    }

    /// Writes the record as one line of JSON.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }

    /// The record as one line of JSON, without a line end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("every map key is a string and no value can fail to be written")
    }
}

/// Refuses what is not a record, or one of another version.
fn check_schema(schema: Option<&str>) -> Result<(), RecordError> {
    let found = schema.unwrap_or_default();
    let version = found.strip_prefix("fathom.record/").and_then(|number| number.parse::<u32>().ok());
    match version {
        Some(SCHEMA_VERSION) => Ok(()),
        Some(version) if version < SCHEMA_VERSION => Err(RecordError::Older { found: version }),
        Some(version) => Err(RecordError::Newer { found: version, known: SCHEMA_VERSION }),
        None => Err(RecordError::NotARecord { found: found.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_schemas_are_read() {
        for (text, expected) in [
            (
                r#"{"schema":"fathom.record/2","header":{"target":"a","activity":{"kind":"bench"}},"tests":[]}"#,
                Ok(()),
            ),
            (
                r#"{"schema":"fathom.record/2","header":{"target":"","activity":{"kind":"fio"}},"tests":[],"later":{"a":[1]}}"#,
                Ok(()),
            ),
            (r#"{"schema":"fathom.record/2"}"#, Err("the record is damaged: it has no 'header'")),
            (
                r#"{"schema":"fathom.record/1"}"#,
                Err("this record has version 1, which only development versions of fathom wrote"),
            ),
            (
                r#"{"schema":"fathom.record/3"}"#,
                Err("this record has version 3, and this program reads versions up to 2"),
            ),
            (r#"{"schema":"fathom.bench/1"}"#, Err("'fathom.bench/1' is not the schema of a run record")),
            (r#"{}"#, Err("this JSON document has no schema, so it is not a run record")),
            ("not json", Err("the record is not valid JSON of the expected form")),
            (
                r#"{"schema":"fathom.record/2","tests":[{"elapsed_ns":18446744073709551615}]}"#,
                Err("the record has a number that cannot have been measured"),
            ),
        ] {
            let read = RunRecord::from_json(text).map(|_| ()).map_err(|error| error.to_string());
            assert_eq!(read, expected.map_err(str::to_owned), "{text}");
        }
    }
}
