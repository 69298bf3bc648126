//! The corpus of job files that fathom and Debian's fio both run: `tests/corpus/*.jobs`, a job file after each line
//! `== NAME [COMPARISON]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{FioReport, scratch};

/// A job file.
#[derive(Clone, Debug)]
pub struct CorpusJob {
    /// The name of its part of the corpus.
    pub part: String,
    /// Its own, unique in that part.
    pub name: String,
    /// The job file.
    pub text: String,
    comparison: Comparison,
}

/// What of both reports is equal besides exit status, jobs, errors, keys and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    /// Requests and bytes of each direction.
    Counts,
    /// Bytes of each direction: fio draws other sizes.
    Bytes,
    /// Requests and bytes of all directions together: fio draws another order.
    Sums,
    /// Nothing: they depend on the time.
    Keys,
    /// Not even jobs, errors, keys and files, since fio reports what fathom refuses to start: both fail.
    Status,
    /// Not even the exit status: Debian's fio does not know the option, so only fathom's exit status counts.
    Newer,
    /// Requests and bytes of each direction, unless a signal ended fio, whose Debian build crashes in some runs of the job.
    Crashes,
}

/// What one program made of a job file.
#[derive(Debug, PartialEq)]
struct Ran {
    status: Option<i32>,
    jobs: Vec<String>,
    keys: BTreeSet<String>,
    files: BTreeMap<String, u64>,
}

/// Keys that only fio's document has, and why.
const FIOS_KEYS: &[(&str, &str)] = &[
    ("job options/log_max_value", "log_window_value since 3.38"),
    ("job options/log_unix_epoch", "log_alternate_epoch since 3.38"),
];

/// All job files, in the order of the parts' names.
pub fn corpus() -> Vec<CorpusJob> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut parts: Vec<_> = std::fs::read_dir(&directory)
        .expect("the corpus is in the checkout")
        .map(|entry| entry.expect("its directory can be read").path())
        .collect();
    parts.sort();
    parts.iter().flat_map(|path| part(path)).collect()
}

fn part(path: &Path) -> Vec<CorpusJob> {
    let part = path.file_stem().expect("parts have names").to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).expect("parts are text");
    let jobs = text.split("\n== ").skip(1).map(|job| {
        let (head, text) = job.split_once('\n').expect("a job file follows its name");
        let (name, comparison) = head.split_once(' ').unwrap_or((head, "counts"));
        let comparison = match comparison {
            "counts" => Comparison::Counts,
            "bytes" => Comparison::Bytes,
            "sums" => Comparison::Sums,
            "keys" => Comparison::Keys,
            "status" => Comparison::Status,
            "newer" => Comparison::Newer,
            "crashes" => Comparison::Crashes,
            other => panic!("{}: {other} is no comparison", path.display()),
        };
        CorpusJob { part: part.clone(), name: name.to_owned(), text: text.to_owned(), comparison }
    });
    jobs.collect()
}

impl CorpusJob {
    /// What differs between both programs, a line each.
    pub fn differences(&self, ours: Command, fio: Command) -> Vec<String> {
        let ours = self.run(ours);
        let failure = || {
            let failed = ours.status != Some(0);
            failed.then(|| format!("{}/{}: exit status {:?}", self.part, self.name, ours.status))
        };
        if self.comparison == Comparison::Newer {
            return failure().into_iter().collect();
        }
        let fios = self.run(fio);
        if self.comparison == Comparison::Crashes && fios.status.is_none() {
            return failure().into_iter().collect();
        }
        let mut differences = Vec::new();
        let mut compare = |what: &str, ours: String, fios: String| {
            if ours != fios {
                differences.push(format!("{}/{}: {what}: {ours}, fio {fios}", self.part, self.name));
            }
        };
        compare("exit status", format!("{:?}", ours.status), format!("{:?}", fios.status));
        if self.comparison == Comparison::Status {
            return differences;
        }
        compare("jobs", format!("{:?}", ours.jobs), format!("{:?}", fios.jobs));
        compare("files", format!("{:?}", ours.files), format!("{:?}", fios.files));
        let excused = |key: &&String| FIOS_KEYS.iter().any(|(excused, _)| key.contains(excused));
        let missing: Vec<&String> = fios.keys.difference(&ours.keys).filter(|key| !excused(key)).collect();
        compare("missing keys", format!("{missing:?}"), "[]".to_owned());
        differences
    }

    fn run(&self, mut program: Command) -> Ran {
        let place = scratch();
        std::fs::write(place.path().join("job"), &self.text).expect("the scratch directory is ours");
        program.args(["job", "--output-format=json", "--eta=never"]).current_dir(place.path());
        let output = program.env("CORPUS_SIZE", "256k").stdin(Stdio::null()).output().expect("it can be run");
        let mut ran = Ran {
            status: output.status.code(),
            jobs: Vec::new(),
            keys: BTreeSet::new(),
            files: files(place.path(), self.comparison != Comparison::Keys),
        };
        if String::from_utf8_lossy(&output.stdout).contains("{\n") {
            let document = FioReport::read(&output).document;
            let jobs = document["jobs"].as_array().map_or(&[][..], Vec::as_slice);
            ran.jobs = jobs.iter().map(|job| self.shown(job)).collect();
            keys(&document, "", &mut ran.keys);
        }
        ran
    }

    /// What of a job is compared.
    fn shown(&self, job: &Value) -> String {
        let count = |op: &str, key: &str| job[op][key].as_u64().unwrap_or_default();
        let ops = ["read", "write", "trim"].map(|op| (count(op, "total_ios"), count(op, "io_bytes")));
        let syncs = &job["sync"]["lat_ns"]["N"];
        let amounts = match self.comparison {
            Comparison::Counts | Comparison::Crashes => format!("{ops:?} and {syncs} syncs"),
            Comparison::Bytes => format!("{:?}", ops.map(|(_, bytes)| bytes)),
            Comparison::Sums => {
                format!("{:?}", ops.iter().fold((0, 0), |sum, op| (sum.0 + op.0, sum.1 + op.1)))
            }
            Comparison::Keys | Comparison::Status | Comparison::Newer => String::new(),
        };
        let text = |key: &str| job[key].to_string();
        format!("{} group {} error {} {amounts}", text("jobname"), text("groupid"), text("error"))
    }
}

/// Names and sizes of the files in `directory`; of logs and states of verification, and without `sizes`, the names.
fn files(directory: &Path, sizes: bool) -> BTreeMap<String, u64> {
    let entries = std::fs::read_dir(directory).expect("the scratch directory is ours").flatten();
    entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let has_own_size = [".log", ".fz", ".state", ".txt"].iter().any(|end| name.ends_with(end));
            let size = entry.metadata().map_or(0, |facts| facts.len());
            (name, if has_own_size || !sizes { 0 } else { size })
        })
        .collect()
}

/// Every path of a document; the bins of histograms and the names of disks are one.
fn keys(value: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| keys(value, &format!("{prefix}/{key}"), found));
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, &format!("{prefix}/*"), found)),
        _ => {
            found.insert(prefix.to_owned());
        }
    }
}
