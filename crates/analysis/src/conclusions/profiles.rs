//! Whether a volume serves the use whose access pattern was run on it: by what the use needs, not by what disks promise.
//!
//! A need is a pair of expectations of one metric, what serves the use and what serves it at a pinch. The worst of the
//! needs decides.

use fathom_model::units;
use fathom_record::{ExpectationRecord, TestRecord, TestStatus};

use super::{Conclusion, Suitability};
use crate::say::{count, mebibytes};

/// The class of an expectation that, met, serves the use.
pub const YES: &str = "yes";
/// The class of an expectation that, met, serves the use at a pinch.
pub const MARGINAL: &str = "marginal";

/// What a test says of its use; nothing where it has none, or was not run to its end.
pub(super) fn of_profile(test: &TestRecord) -> Option<Conclusion> {
    if test.purpose.is_empty() || test.status != TestStatus::Complete {
        return None;
    }
    let needs: Vec<(&ExpectationRecord, Suitability)> = test
        .expected
        .iter()
        .filter(|expected| expected.class == YES)
        .map(|wanted| (wanted, verdict(wanted, &test.expected)))
        .collect();
    let verdict = needs.iter().map(|(_, verdict)| *verdict).max_by_key(|verdict| badness(*verdict))?;
    let parts: Vec<String> = needs.iter().map(|(wanted, verdict)| told(wanted, *verdict)).collect();
    Some(Conclusion {
        purpose: test.purpose.clone(),
        verdict,
        reason: parts.join(", "),
        tests: vec![test.id.clone()],
    })
}

fn verdict(wanted: &ExpectationRecord, all: &[ExpectationRecord]) -> Suitability {
    let at_a_pinch = all.iter().find(|other| other.class == MARGINAL && other.metric == wanted.metric);
    match (wanted.met, at_a_pinch.and_then(|other| other.met)) {
        (Some(true), _) => Suitability::Yes,
        (Some(false), Some(true)) => Suitability::Marginal,
        (Some(false), _) => Suitability::No,
        (None, _) => Suitability::Undecided,
    }
}

/// One need that is not met is enough, whatever is not known of the others.
fn badness(verdict: Suitability) -> u8 {
    match verdict {
        Suitability::Yes => 0,
        Suitability::Marginal => 1,
        Suitability::Undecided => 2,
        Suitability::No => 3,
    }
}

/// `p99 21.0ms (5.00ms is what it takes)`, `4,900 requests a second`.
fn told(need: &ExpectationRecord, verdict: Suitability) -> String {
    let mut words = need.metric.rsplit('.');
    let (last, before) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let direction = need.metric.split('.').nth(1).unwrap_or_default();
    let what = match direction {
        "read" => "reads",
        "write" => "writes",
        "sync" => "commits",
        _ => "requests",
    };
    let shown = |value: f64| match last {
        "iops" => format!("{} {what} a second", count(value)),
        "bytes_per_second" => mebibytes(value),
        _ => units::latency(value.max(0.0).round() as u64),
    };
    let name = match (before, last) {
        (_, "iops") => String::new(),
        (_, "bytes_per_second") => format!("{what} "),
        (_, statistic) if direction == "sync" => format!("commit {statistic} "),
        (_, statistic) => format!("{statistic} "),
    };
    let limit = if last == "iops" { count(need.value) } else { shown(need.value) };
    match (need.observed, verdict) {
        (None, _) => format!("{name}not known, and {limit} is what it takes"),
        (Some(observed), Suitability::Yes) => format!("{name}{}", shown(observed)),
        (Some(observed), _) => format!("{name}{} where {limit} is what it takes", shown(observed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(
        metric: &str,
        (is, yes, marginal): (&str, f64, f64),
        observed: Option<f64>,
    ) -> Vec<ExpectationRecord> {
        let one = |class: &str, value: f64| ExpectationRecord {
            class: class.to_owned(),
            metric: format!("oltp.{metric}"),
            is: is.to_owned(),
            value,
            tolerance_percent: 0.0,
            observed,
            met: observed.map(|observed| if is == "<=" { observed <= value } else { observed >= value }),
        };
        vec![one(YES, yes), one(MARGINAL, marginal)]
    }

    fn said(p99: Option<f64>, iops: f64) -> String {
        let mut expected = need("total.lat_ns.p99", ("<=", 5e6, 20e6), p99);
        expected.extend(need("total.iops", (">=", 1000.0, 200.0), Some(iops)));
        let test = TestRecord {
            id: "oltp".to_owned(),
            purpose: "OLTP".to_owned(),
            status: TestStatus::Complete,
            expected,
            ..TestRecord::default()
        };
        let conclusion = of_profile(&test).unwrap();
        format!("{}: {}, {}", conclusion.purpose, conclusion.verdict.name(), conclusion.reason)
    }

    #[test]
    fn the_worst_need_decides() {
        assert_eq!(said(Some(1e6), 4900.0), "OLTP: yes, p99 1.00ms, 4,900 requests a second");
        assert_eq!(
            said(Some(1e6), 300.0),
            "OLTP: marginal, p99 1.00ms, 300 requests a second where 1,000 is what it takes"
        );
        assert_eq!(
            said(Some(21e6), 4900.0),
            "OLTP: no, p99 21.0ms where 5.00ms is what it takes, 4,900 requests a second"
        );
        assert_eq!(
            said(None, 4900.0),
            "OLTP: undecided, p99 not known, and 5.00ms is what it takes, 4,900 requests a second"
        );
        assert!(said(None, 100.0).starts_with("OLTP: no, "));
    }

    #[test]
    fn what_is_no_profile_has_no_use() {
        assert_eq!(of_profile(&TestRecord { status: TestStatus::Complete, ..TestRecord::default() }), None);
        let failed =
            TestRecord { purpose: "OLTP".to_owned(), status: TestStatus::Failed, ..TestRecord::default() };
        assert_eq!(of_profile(&failed), None);
    }
}
