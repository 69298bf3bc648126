//! The results of the campaign: a line for each job, and a table of all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

/// `mpiexec-killed-join-0: held; join, code 75, 6.1 s`.
pub fn shown(line: &Value) -> String {
    let word = |name: &str| line[name].as_str().unwrap_or("from the beginning").to_owned();
    let code = line["code"].as_i64().map_or_else(|| "no code".to_owned(), |code| format!("code {code}"));
    let seconds = line["seconds"].as_f64().unwrap_or_default();
    let verdict = match violations(line) {
        [] => "held".to_owned(),
        all => {
            let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
            format!("VIOLATED: {}", all.join("; "))
        }
    };
    format!("{}: {verdict}; {}, {code}, {seconds:.1} s", word("case"), word("phase"))
}

fn violations(line: &Value) -> &[Value] {
    line["violations"].as_array().map_or(&[], Vec::as_slice)
}

/// Jobs of one launcher and failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    held: usize,
    violated: usize,
}

/// All results together.
#[derive(Debug, Default)]
pub struct Tally {
    /// By failure and launcher.
    counts: BTreeMap<(String, String), Counts>,
    violated: Vec<String>,
}

impl Tally {
    pub fn of(lines: &[Value]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            let word = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            let counts = tally.counts.entry((word("failure"), word("launcher"))).or_default();
            if violations(line).is_empty() {
                counts.held += 1;
            } else {
                counts.violated += 1;
                tally.violated.push(shown(line));
            }
        }
        tally
    }

    /// Every job ended as documented.
    pub fn holds(&self) -> bool {
        self.violated.is_empty()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failures: BTreeSet<&String> = self.counts.keys().map(|(failure, _)| failure).collect();
        let launchers: BTreeSet<&String> = self.counts.keys().map(|(_, launcher)| launcher).collect();
        write!(out, "{:<17}", "held/violated")?;
        launchers.iter().try_for_each(|launcher| write!(out, " {launcher:>10}"))?;
        for failure in failures {
            write!(out, "\n{failure:<17}")?;
            for &launcher in &launchers {
                let counts = self.counts.get(&(failure.clone(), launcher.clone())).copied();
                let Counts { held, violated } = counts.unwrap_or_default();
                write!(out, " {:>10}", format!("{held}/{violated}"))?;
            }
        }
        self.violated.iter().try_for_each(|line| write!(out, "\n{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn results_are_counted_by_launcher_and_failure() {
        let line = |repeat: usize, violations: Value| {
            json!({"case": format!("mpirun-stopped-{repeat}"), "launcher": "mpirun", "failure": "stopped",
                "phase": "join", "repeat": repeat, "code": 75, "seconds": 6.0, "violations": violations})
        };
        let (held, violated) = (line(0, json!([])), line(1, json!(["no end within 9 s"])));
        assert_eq!(shown(&held), "mpirun-stopped-0: held; join, code 75, 6.0 s");
        assert!(Tally::of(std::slice::from_ref(&held)).holds());
        let tally = Tally::of(&[held, violated]);
        assert!(!tally.holds());
        let text = tally.to_string();
        let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["held/violated", "mpirun"]);
        assert_eq!(rows[1], ["stopped", "1/1"]);
        assert_eq!(
            text.lines().nth(2),
            Some("mpirun-stopped-1: VIOLATED: no end within 9 s; join, code 75, 6.0 s")
        );
    }
}
