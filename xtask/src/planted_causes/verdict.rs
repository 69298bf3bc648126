//! What a measurement is held against: its cause was reported, and nothing else was.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fathom_tests::Cap;
use serde_json::{Value, json};

use super::case::{Cause, PLANTED, PlantedCase};

/// Rates of a limit may be wrong by this share.
const WITHIN: f64 = 0.05;
/// Causes of forty that may be missed.
const MISSED: usize = 2;

/// Findings that describe the load and not a cause, and those of the machine, which may be busy with something else.
const OF_LOAD: &[&str] = &[
    "short-run",
    "low-sample",
    "queueing",
    "queue-too-shallow",
    "not-saturated",
    "knee",
    "small-working-set",
    "small-block-for-bandwidth",
    "flush-cost",
    "burst-possible",
    "buffered",
];
const OF_HOST: &[&str] =
    &["cpu-wait", "cpu-steal", "cpu-credit-suspected", "generator-late", "client-cpu-bound"];

/// Findings of which one must be there, and those that may be there as well.
fn expected(cause: &Cause) -> (&'static [&'static str], &'static [&'static str]) {
    match cause {
        Cause::Capped(Cap { read_bps: Some(_), .. }) => (&["bandwidth-cap", "iops-cap"], &[]),
        Cause::Capped(_) => (&["iops-cap"], &[]),
        Cause::Repeat(_) => (&[], &["iops-cap", "bandwidth-cap"]),
        Cause::Decaying(_) => (&["not-steady"], &[]),
        // What a neighbour leaves is no limit, but it is as even as one.
        Cause::Neighbour(_) => (&["foreign-io"], &["iops-cap"]),
        // A client without CPU time has an uneven rate.
        Cause::Starved(_) => (&["cpu-wait"], &["memory-backed", "not-steady"]),
        // Memory completes what should be asynchronous at once, and varies with the load of the machine.
        Cause::MemoryBacked(_) => (&["memory-backed"], &["async-is-not", "not-steady"]),
        Cause::Unwritten(_) => (&["unwritten"], &["not-steady"]),
        Cause::FakeFlush(_) => (&["flush-suspicious"], &["memory-backed", "not-steady"]),
        Cause::Split(_) => (&["splitting"], &[]),
        Cause::Misaligned(_) => (&["alignment"], &["not-steady"]),
        // The server's disk was never written.
        Cause::Stalled(_) => (&["stalled"], &["unwritten", "not-steady"]),
    }
}

/// The result of one case.
pub fn judged(case: &PlantedCase, document: &Value) -> Value {
    let findings = || document["findings"].as_array().into_iter().flatten();
    let ids: BTreeSet<&str> = findings().filter_map(|finding| finding["id"].as_str()).collect();
    let (wanted, allowed) = expected(&case.cause);
    let is_found = wanted.is_empty() || wanted.iter().any(|id| ids.contains(id));
    let wrong_rate = match case.cause {
        Cause::Capped(cap) => findings().find_map(|finding| wrong_rate(finding, &cap)),
        _ => None,
    };
    let is_known = |id: &&str| [wanted, allowed, OF_LOAD, OF_HOST].iter().any(|known| known.contains(id));
    let invented: Vec<&str> = ids.iter().copied().filter(|id| !is_known(id)).collect();
    let verdicts: BTreeMap<&str, &str> = document["conclusions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| Some((one["id"].as_str()?, one["verdict"].as_str()?)))
        .collect();
    let warnings: BTreeSet<&str> = findings()
        .filter(|finding| finding["severity"] != "info")
        .filter_map(|finding| finding["id"].as_str())
        .filter(|id| !OF_HOST.contains(id))
        .collect();
    let rows = document["tests"].as_array().map_or(0, Vec::len);
    json!({"is_found": is_found && wrong_rate.is_none(), "wrong_rate": wrong_rate, "findings": ids, "invented": invented,
        "verdicts": verdicts, "warnings": warnings, "rows": rows})
}

/// The rate of a limit that was reported and is not the one that was set.
fn wrong_rate(finding: &Value, cap: &Cap) -> Option<f64> {
    let (limit, path) = match finding["id"].as_str()? {
        "iops-cap" => (cap.read_iops, "iops"),
        "bandwidth-cap" => (cap.read_bps, "bytes_per_second"),
        _ => return None,
    };
    let rate = finding["evidence"][path].as_f64().unwrap_or(0.0);
    // A limit on bytes holds requests of one size as one on requests does.
    let limit = limit.or(cap.read_bps.map(|bytes| bytes / 4096)).unwrap_or(0) as f64;
    ((rate / limit - 1.0).abs() > WITHIN).then_some(rate)
}

/// `capped-0: found; ["iops-cap", …]`.
pub fn shown(line: &Value) -> String {
    let verdict = match (line["is_found"] == true, line["wrong_rate"].as_f64()) {
        (true, _) => "found".to_owned(),
        (false, Some(rate)) => format!("WRONG RATE {rate}"),
        (false, None) => "MISSED".to_owned(),
    };
    let invented =
        if has_invented(line) { format!("; INVENTED {}", line["invented"]) } else { String::new() };
    format!("{}: {verdict}; {}{invented}", line["case"].as_str().unwrap_or_default(), line["findings"])
}

fn has_invented(line: &Value) -> bool {
    line["invented"].as_array().is_some_and(|all| !all.is_empty())
}

/// All results together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    planted: usize,
    missed: Vec<String>,
    invented: Vec<String>,
    /// Rows of devices without a cause.
    rows: u64,
    /// What differed between repeats: the device and the use or warning.
    flips: BTreeSet<String>,
}

impl Tally {
    pub fn of(lines: &[Value]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            let name = line["case"].as_str().unwrap_or_default();
            if has_invented(line) {
                tally.invented.push(name.to_owned());
            }
            let Some((device, _)) = name.rsplit_once('-').filter(|_| name.starts_with("repeat-")) else {
                tally.planted += 1;
                if line["is_found"] != true {
                    tally.missed.push(name.to_owned());
                }
                continue;
            };
            tally.rows += line["rows"].as_u64().unwrap_or(0);
            let of_device = |other: &&Value| {
                other["case"]
                    .as_str()
                    .is_some_and(|other| other.strip_prefix(device).is_some_and(|rest| rest.starts_with('-')))
            };
            for other in lines.iter().filter(of_device) {
                for (id, verdict) in line["verdicts"].as_object().into_iter().flatten() {
                    if other["verdicts"][id] != *verdict {
                        tally.flips.insert(format!("{device} {id}"));
                    }
                }
                if other["warnings"] != line["warnings"] {
                    tally.flips.insert(format!("{device} warnings"));
                }
            }
        }
        tally
    }

    /// At most 2 of 40 causes were missed, and nothing was invented or differed between repeats.
    pub fn holds(&self) -> bool {
        self.missed.len() * PLANTED as usize <= MISSED * self.planted.max(PLANTED as usize)
            && self.invented.is_empty()
            && self.flips.is_empty()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { planted, missed, invented, rows, flips } = self;
        write!(
            out,
            "{planted} causes, missed: {missed:?}; invented: {invented:?}; {rows} rows without a cause; differed between \
             repeats: {flips:?}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_found_missed_or_invented() {
        let case = PlantedCase::of(0);
        let Cause::Capped(Cap { read_iops: Some(limit), .. }) = case.cause else { panic!("{case:?}") };
        let line = |findings: Value| {
            let mut line = judged(&case, &json!({ "findings": findings }));
            line["case"] = case.name.clone().into();
            line
        };
        let cap = |iops: f64| json!({"id": "iops-cap", "severity": "info", "evidence": {"iops": iops}});
        let check = |line: &Value, expected: &str, holds: bool| {
            assert_eq!(shown(line).split([':', ';']).nth(1).map(str::trim), Some(expected));
            assert_eq!(Tally::of(&vec![line.clone(); 3]).holds(), holds, "{line}");
        };
        check(&line(json!([cap(limit as f64)])), "found", true);
        check(&line(json!([])), "MISSED", false);
        check(&line(json!([cap(limit as f64 * 2.0)])), "WRONG RATE 634", false);
        let foreign = json!({"id": "foreign-io", "severity": "warning"});
        check(&line(json!([cap(limit as f64), foreign])), "found", false);
    }

    #[test]
    fn repeats_must_agree() {
        let line = |name: &str, verdict: &str, warnings: Value| json!({"case": name, "is_found": true, "rows": 9, "verdicts": {"oltp": verdict}, "warnings": warnings});
        let [first, same, other, warned, elsewhere] = [
            line("repeat-1-0", "yes", json!([])),
            line("repeat-1-1", "yes", json!([])),
            line("repeat-1-2", "no", json!([])),
            line("repeat-1-3", "yes", json!(["not-steady"])),
            line("repeat-2-0", "no", json!([])),
        ];
        let flips = |lines: &[&Value]| -> Vec<String> {
            Tally::of(&lines.iter().map(|line| (*line).clone()).collect::<Vec<_>>())
                .flips
                .into_iter()
                .collect()
        };
        assert!(flips(&[&first, &same, &elsewhere]).is_empty());
        assert_eq!(flips(&[&first, &other]), ["repeat-1 oltp"]);
        assert_eq!(flips(&[&first, &warned]), ["repeat-1 warnings"]);
    }
}
