//! Which command a record was made by, and with which settings.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::PrepareStage;
use crate::wire::is_default;

/// The command that made a record, with the settings that its report needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Activity {
    /// `bench`, with a suite or profiles.
    Bench(BenchActivity),
    /// `fio`.
    Fio,
    /// `identify`.
    Identify(IdentifyActivity),
    /// `history import`, of another program's output.
    Import(ImportActivity),
    /// `monitor`.
    Monitor,
    /// `ping`.
    Ping(PingActivity),
    /// `prepare`.
    Prepare(PrepareActivity),
    /// `simulate`.
    Simulate(SimulateActivity),
    /// `surface`.
    Surface,
    /// `sweep`.
    Sweep(SweepActivity),
}

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BenchActivity {
    /// Name of the suite; `None` for profiles.
    #[serde(skip_serializing_if = "is_default")]
    pub suite: Option<String>,
    /// What the source of the suite recommends.
    #[serde(skip_serializing_if = "is_default")]
    pub recommended: Option<Recommendation>,
}

/// What a result takes to count as one of a suite, as its source says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recommendation {
    /// Measured time of each test, ns.
    pub runtime_ns: u64,
    /// Size of the test file, or of the range, bytes.
    pub size_bytes: u64,
}

/// The limits of an identification, from which its measurements follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdentifyActivity {
    /// Smallest request, bytes; all are multiples of it.
    pub unit_bytes: u64,
    /// Largest request, bytes.
    pub most_block_bytes: u64,
    /// Highest queue depth.
    pub most_depth: u32,
    /// Most bytes in flight.
    pub most_in_flight_bytes: u64,
    /// Writes are allowed.
    pub writes: bool,
    /// Shortest measurement, ns.
    pub probe_ns: u64,
    /// Time limit, ns.
    pub budget_ns: u64,
    /// Limit of requests.
    pub budget_ios: u64,
    /// Limit of bytes moved.
    pub budget_bytes: u64,
}

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportActivity {
    /// The form of the source.
    pub format: ImportFormat,
    /// The file as it was named; `-` for the standard input.
    pub file: String,
}

/// A form of another program's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImportFormat {
    /// `fathom bench --json`.
    #[serde(rename = "bench-json")]
    BenchJson,
    /// `--output-format=json` or `json+` of fio.
    #[default]
    #[serde(rename = "fio-json")]
    FioJson,
    /// `--output-format=terse` or `--minimal` of fio.
    #[serde(rename = "fio-terse")]
    FioTerse,
    /// What fio prints for people.
    #[serde(rename = "fio-text")]
    FioText,
    /// What ioping prints for people.
    #[serde(rename = "ioping-text")]
    IopingText,
    /// `-B`, `-p` or `-P` of ioping.
    #[serde(rename = "ioping-raw")]
    IopingRaw,
    /// `-J` of ioping.
    #[serde(rename = "ioping-json")]
    IopingJson,
    /// A table of test, metric, value and unit.
    #[serde(rename = "csv")]
    Csv,
    /// The same in TOML.
    #[serde(rename = "toml")]
    Toml,
    /// What dd, sysbench, a disk tester or iostat print.
    #[serde(rename = "program")]
    Program,
    /// Tables of a page.
    #[serde(rename = "table")]
    Table,
    /// Outputs of several formats in one text.
    #[serde(rename = "page")]
    Page,
}

/// The objectives of a ping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PingActivity {
    /// As they were written (`p99<5ms`).
    #[serde(skip_serializing_if = "is_default")]
    pub slo: Vec<String>,
}

/// What was to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PrepareActivity {
    /// The stages, in their order.
    pub stages: Vec<PrepareStage>,
}

/// The load that was simulated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SimulateActivity {
    /// The load and its length, for people.
    pub load: String,
    /// The length that was asked for, ns; `None` where the load ends by itself.
    pub asked_ns: Option<u64>,
}

/// What was looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepActivity {
    /// The latency objective (`lat_ns.p99<5ms`).
    #[serde(skip_serializing_if = "is_default")]
    pub slo: Option<String>,
    /// The rate to reach (`iops>=5000`).
    #[serde(skip_serializing_if = "is_default")]
    pub reach: Option<String>,
}

/// A command that makes records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActivityKind {
    /// `bench`.
    #[default]
    Bench,
    /// `fio`.
    Fio,
    /// `identify`.
    Identify,
    /// `history import`.
    Import,
    /// `monitor`.
    Monitor,
    /// `ping`.
    Ping,
    /// `prepare`.
    Prepare,
    /// `simulate`.
    Simulate,
    /// `surface`.
    Surface,
    /// `sweep`.
    Sweep,
}

impl Default for Activity {
    fn default() -> Activity {
        Activity::Bench(BenchActivity::default())
    }
}

impl Activity {
    /// The command alone.
    pub const fn kind(&self) -> ActivityKind {
        match self {
            Activity::Bench(_) => ActivityKind::Bench,
            Activity::Fio => ActivityKind::Fio,
            Activity::Identify(_) => ActivityKind::Identify,
            Activity::Import(_) => ActivityKind::Import,
            Activity::Monitor => ActivityKind::Monitor,
            Activity::Ping(_) => ActivityKind::Ping,
            Activity::Prepare(_) => ActivityKind::Prepare,
            Activity::Simulate(_) => ActivityKind::Simulate,
            Activity::Surface => ActivityKind::Surface,
            Activity::Sweep(_) => ActivityKind::Sweep,
        }
    }

    /// The suite of a bench.
    pub fn suite(&self) -> Option<&str> {
        match self {
            Activity::Bench(settings) => settings.suite.as_deref(),
            _ => None,
        }
    }
}

impl ImportFormat {
    /// For people.
    pub const fn title(self) -> &'static str {
        match self {
            ImportFormat::BenchJson => "fathom bench JSON",
            ImportFormat::FioJson => "fio JSON",
            ImportFormat::FioTerse => "fio terse",
            ImportFormat::FioText => "fio text",
            ImportFormat::IopingText => "ioping text",
            ImportFormat::IopingRaw => "ioping raw",
            ImportFormat::IopingJson => "ioping JSON",
            ImportFormat::Csv => "CSV",
            ImportFormat::Toml => "TOML",
            ImportFormat::Program => "output of other programs",
            ImportFormat::Table => "tables of a page",
            ImportFormat::Page => "outputs of several formats",
        }
    }
}

impl ActivityKind {
    /// All of them.
    pub const ALL: [ActivityKind; 10] = [
        ActivityKind::Bench,
        ActivityKind::Fio,
        ActivityKind::Identify,
        ActivityKind::Import,
        ActivityKind::Monitor,
        ActivityKind::Ping,
        ActivityKind::Prepare,
        ActivityKind::Simulate,
        ActivityKind::Surface,
        ActivityKind::Sweep,
    ];

    /// The word used in JSON, tables and commands.
    pub const fn name(self) -> &'static str {
        match self {
            ActivityKind::Bench => "bench",
            ActivityKind::Fio => "fio",
            ActivityKind::Identify => "identify",
            ActivityKind::Import => "import",
            ActivityKind::Monitor => "monitor",
            ActivityKind::Ping => "ping",
            ActivityKind::Prepare => "prepare",
            ActivityKind::Simulate => "simulate",
            ActivityKind::Surface => "surface",
            ActivityKind::Sweep => "sweep",
        }
    }

    /// The command of this name.
    pub fn named(name: &str) -> Option<ActivityKind> {
        ActivityKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ActivityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_by_the_names_they_are_written_with() {
        for kind in ActivityKind::ALL {
            let activity: Activity = serde_json::from_str(&format!("{{\"kind\":\"{kind}\"}}")).unwrap();
            assert_eq!((activity.kind(), ActivityKind::named(kind.name())), (kind, Some(kind)));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
            let text = serde_json::to_string(&activity).unwrap();
            assert!(text.starts_with(&format!("{{\"kind\":\"{kind}\"")), "{text}");
            assert_eq!(serde_json::from_str::<Activity>(&text).unwrap(), activity);
        }
        let error = serde_json::from_str::<Activity>("{\"kind\":\"future\"}").unwrap_err().to_string();
        assert!(error.contains("unknown variant `future`"), "{error}");
    }
}
